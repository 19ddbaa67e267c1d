"""The local executor with real processes."""

from __future__ import annotations

import itertools
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import psij
from psij import (
    InvalidJobException,
    InvalidStateException,
    Job,
    JobAttributes,
    JobExecutorConfig,
    JobSpec,
    JobState,
    JobStatus,
)
from psij.executors import LocalJobExecutor, _local_inherited, _local_starter
from psij.executors._local_proc import process
from tests.psij.local_support import starters_killed, wait_until

SOON = timedelta(seconds=60)


@pytest.fixture
def executor(tmp_path: Path) -> LocalJobExecutor:
    return LocalJobExecutor(config=JobExecutorConfig(work_directory=tmp_path / "work"))


def make(script: str, custom: dict[str, object] | None = None, limit: float | None = 30, **members: Any) -> Job:
    duration = None if limit is None else timedelta(seconds=limit)
    return Job(JobSpec("/bin/sh", ["-c", script], attributes=JobAttributes(duration, custom_attributes=custom),
                       **members))


def ended(job: Job) -> tuple[JobStatus, dict[str, Any]]:
    status = job.wait(SOON)
    assert status is not None
    return status, status.metadata or {}


def finish(executor: LocalJobExecutor, job: Job) -> tuple[JobStatus, dict[str, Any]]:
    executor.submit(job)
    return ended(job)


def gone(pid: int) -> bool:
    status = process(pid)
    return status is None or status.state in "ZX"


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return path.read_text()


def running() -> str:
    """The command lines of all processes."""
    found = ""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += path.read_text(errors="replace") + "\n"
    return found


@pytest.mark.parametrize(("script", "state", "code", "number"), [
    ("exit 0", JobState.COMPLETED, 0, None),
    ("exit 3", JobState.FAILED, 3, None),
    ("exit 200", JobState.FAILED, 200, None),
    ("kill -TERM $$", JobState.FAILED, 143, signal.SIGTERM),
    ("kill -KILL $$", JobState.FAILED, 137, signal.SIGKILL),
])
def test_end(executor: LocalJobExecutor, script: str, state: JobState, code: int, number: int | None) -> None:
    job = make(script)
    status, metadata = finish(executor, job)
    assert (status.state, status.exit_code, metadata.get("signal")) == (state, code, number)
    assert metadata["native_id"] == job.native_id and metadata["node_count"] == 1 == len(metadata["nodes"])
    assert metadata["submit_time"] <= metadata["start_time"] <= metadata["end_time"]
    assert set(metadata["sources"].values()) == {"measured"} and executor.list() == []
    with pytest.raises(InvalidStateException):
        executor.submit(job)
    job.cancel()


def test_usage_is_measured(executor: LocalJobExecutor) -> None:
    script = ("import time; x = bytearray(400 << 20); x[::4096] = b'x' * len(x[::4096])\n"
              "while time.process_time() < .4: pass")
    job = make('python3 -c "$0"')
    assert job.spec is not None and job.spec.arguments is not None
    job.spec.arguments.append(script)
    status, metadata = finish(executor, job)
    assert status.exit_code == 0
    assert 0.4 <= metadata["cpu_seconds"] < 2 and metadata["wall_seconds"] >= 0.4
    assert 400 << 20 <= metadata["memory_max_bytes"] < 500 << 20


def test_environment_and_expansion(executor: LocalJobExecutor, tmp_path: Path,
                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "outer")
    job = Job(JobSpec("/usr/bin/env", ["printf", "%s|%s|%s", "${A}", "$A", "${NONE}."], tmp_path,
                      environment={"A": "${OUTER}/1", "B": 2}, stdout_path="out"))
    assert finish(executor, job)[0].exit_code == 0
    assert (tmp_path / "out").read_text() == "outer/1|$A|${NONE}."
    job = Job(JobSpec("env", inherit_environment=False, environment={"B": "${OUTER}x"}, stdout_path=tmp_path / "env"))
    finish(executor, job)
    assert (tmp_path / "env").read_text() == "B=x\n"


def test_streams_and_directory(executor: LocalJobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "sub").mkdir()
    (tmp_path / "in").write_text("from stdin")
    (tmp_path / "sub" / "out").write_text("old ")
    script = "cat; pwd >&2"
    finish(executor, make(script, {"local.stdout_mode": "append"}, directory="~/sub", stdin_path="~/in",
                          stdout_path="out", stderr_path=tmp_path / "err"))
    assert (tmp_path / "sub" / "out").read_text() == "old from stdin"
    assert (tmp_path / "err").read_text() == f"{tmp_path}/sub\n"
    finish(executor, make("echo a; echo b >&2", {"local.merge": "stdout-to-stderr"}, stderr_path=tmp_path / "err"))
    assert (tmp_path / "err").read_text() == "a\nb\n"
    for mode in ("share", "append"):
        finish(executor, make("echo a", {"local.stdout_mode": mode}, stdout_path=tmp_path / "err"))
    assert (tmp_path / "err").read_text() == "a\na\n"
    finish(executor, make("echo a; echo b >&2", stdout_path=tmp_path / "same", stderr_path=tmp_path / "same"))
    assert (tmp_path / "same").read_text() == "a\nb\n"
    for launcher in ("single", "multiple"):     # its own standard output, as in psij-python, and not the program's
        finish(executor, make("echo a; echo b >&2", launcher=launcher, stdout_path=tmp_path / "own",
                              stderr_path="/dev/stdout"))
        assert (tmp_path / "own").read_text() == "a\nb\n"


@pytest.mark.parametrize(("members", "message"), [
    ({"executable": "/no/such"}, "cannot start /no/such: No such file"),
    ({"executable": "/etc/passwd"}, "cannot start /etc/passwd: Permission denied"),
    ({"directory": "/no/such"}, "the directory /no/such does not exist"),
    ({"directory": "/etc/passwd"}, "the directory /etc/passwd is not a directory"),
    ({"stdout_path": "/no/such/file"}, "cannot open standard output /no/such/file"),
    ({"stdin_path": "/no/such"}, "cannot open standard input /no/such"),
    ({"stderr_path": "/tmp"}, "cannot open standard error /tmp: Is a directory"),
])
def test_launch_failures(executor: LocalJobExecutor, members: dict[str, Any], message: str) -> None:
    status, metadata = finish(executor, Job(JobSpec(**{"executable": "/bin/true", **members})))
    assert (status.state, metadata["reason"], status.exit_code) == (JobState.FAILED, "launch", None)
    assert message in str(status.message) and executor.list() == []


def test_where_the_current_directory_was_removed(executor: LocalJobExecutor, tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for directory in (None, "sub"):
        with pytest.raises(InvalidJobException) as caught:
            executor.submit(Job(JobSpec("/bin/true", directory=directory)))
        assert caught.value.message == (
            "directory must be absolute, for the current directory of this program is not there any more")
    assert finish(executor, Job(JobSpec("/bin/true", directory="/")))[0].state is JobState.COMPLETED


def test_script_without_interpreter_line(executor: LocalJobExecutor, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("exit 7")
    (tmp_path / "x").chmod(0o755)
    assert finish(executor, Job(JobSpec("./x", directory=tmp_path)))[0].exit_code == 7


def test_limits(executor: LocalJobExecutor, tmp_path: Path) -> None:
    custom: dict[str, object] = {"local.rlimit.nofile": "40:50", "local.nice": 4, "slurm.whatever": object()}
    status, _ = finish(executor, make('ulimit -n; nice; echo "${LC_CTYPE-none}"', custom, stdout_path=tmp_path / "out",
                                      inherit_environment=False))
    assert status.exit_code == 0 and (tmp_path / "out").read_text() == f"40\n{min(os.nice(0) + 4, 19)}\nnone\n"
    status, metadata = finish(executor, make("while :; do :; done", {"local.rlimit.cpu": "1:2"}))
    assert (status.exit_code, metadata["reason"]) == (128 + signal.SIGXCPU, "cpu-limit")
    job = Job(JobSpec("/no/such", attributes=JobAttributes(custom_attributes={"local.nice": 1})))
    status, metadata = finish(executor, job)
    assert metadata["reason"] == "launch" and "/no/such: No such file" in str(status.message)


def test_time_limit(executor: LocalJobExecutor, tmp_path: Path) -> None:
    status, metadata = finish(executor, make("sleep 60 & echo $! > pid; wait", limit=0.3, directory=tmp_path))
    assert (status.state, metadata["reason"]) == (JobState.FAILED, "timeout") and metadata["wall_seconds"] < 30
    assert gone(int((tmp_path / "pid").read_text()))


def test_cancel_ends_everything(executor: LocalJobExecutor, tmp_path: Path) -> None:
    script = ("(trap '' TERM; sleep 60; sleep 60) & echo $! > a; setsid sleep 60 & echo $! > b; echo > ready; "
              "trap 'exit 0' TERM; wait")
    job = make(script, limit=None, directory=tmp_path)
    executor.submit(job)
    wait_for(tmp_path / "ready")
    assert executor.list() == [job.native_id]
    job.cancel()
    job.cancel()
    status, metadata = ended(job)
    assert (status.state, metadata["reason"]) == (JobState.CANCELED, "cancel")
    assert all(gone(int((tmp_path / name).read_text())) for name in "ab") and gone(int(str(job.native_id)))


def test_multiple(executor: LocalJobExecutor, tmp_path: Path) -> None:
    script = 'echo "$_PSI_J_PROCESS_INDEX_/$_PSI_J_PROCESS_COUNT"; wc -l < "$PSIJ_NODEFILE" >&2; ' \
             'exit $((_PSI_J_PROCESS_INDEX_ * 2 - 2))'
    job = make(script, launcher="multiple", resources=psij.ResourceSpecV1(process_count=3),
               stdout_path=tmp_path / "out", stderr_path=tmp_path / "err")
    status, metadata = finish(executor, job)
    assert status.exit_code == 2 and "signal" not in metadata
    assert sorted((tmp_path / "out").read_text().split()) == ["1/3", "2/3", "3/3"]
    assert (tmp_path / "err").read_text().split() == ["3", "3", "3"]
    assert metadata["processors"] == min(3, len(os.sched_getaffinity(0)))
    assert list((tmp_path / "work" / "local").iterdir()) == []


def test_pre_and_post_launch(executor: LocalJobExecutor, tmp_path: Path) -> None:
    (tmp_path / "pre").write_text("export FROM_PRE=yes\n")
    (tmp_path / "post").write_text(f"echo $FROM_PRE > {tmp_path}/post.out\n")
    members: dict[str, Any] = {"pre_launch": tmp_path / "pre", "post_launch": tmp_path / "post",
                               "stdout_path": tmp_path / "out"}
    status, _ = finish(executor, make('echo "$FROM_PRE ${_PSI_J_OUTPUT_READY-clean}"; exit 4', **members))
    assert status.exit_code == 4 and (tmp_path / "out").read_text() == "yes clean\n"
    assert (tmp_path / "post.out").read_text() == "yes\n"
    (tmp_path / "pre").write_text("echo no licence; false\n")
    status, _ = finish(executor, make("echo never", **members))
    assert (status.exit_code, status.message) == (1, "no licence") and (tmp_path / "out").read_text() == ""


def test_callbacks(executor: LocalJobExecutor) -> None:
    seen: list[tuple[str, JobState]] = []
    all_done = threading.Event()
    second = make("exit 0")

    def on_job(job: Job, status: JobStatus) -> None:
        seen.append(("job", status.state))
        if status.final:
            executor.submit(second)
            second.wait()

    def on_executor(job: Job, status: JobStatus) -> None:
        seen.append(("executor" if job is first else "second", status.state))
        if job is second and status.final:
            all_done.set()

    first = make("exit 0")
    first.set_job_status_callback(on_job)
    executor.set_job_status_callback(on_executor)
    executor.submit(first)
    assert all_done.wait(10)
    states = [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]
    assert seen == [*((who, s) for s in states for who in ("job", "executor")), *(("second", s) for s in states)]


def test_attach(executor: LocalJobExecutor, tmp_path: Path) -> None:
    job, twin = make("read x < fifo; exit 3", directory=tmp_path), Job()
    os.mkfifo(tmp_path / "fifo")
    executor.submit(job)
    reference = executor.reference(job)
    assert reference is not None and reference.startswith(f"{job.native_id}@")
    executor.attach(twin, reference)
    stranger = Job()
    LocalJobExecutor().attach(stranger, reference)
    assert twin.wait(SOON, JobState.ACTIVE) and stranger.status.state is JobState.ACTIVE
    (tmp_path / "fifo").write_text("go\n")
    assert ended(job)[0].exit_code == ended(twin)[0].exit_code == 3
    assert ended(stranger)[0].exit_code == 3
    late = Job()
    executor.attach(late, reference)
    assert ended(late)[0].exit_code == 3
    with pytest.raises(InvalidStateException):
        executor.attach(late, reference)


def test_cancel_of_a_foreign_process(executor: LocalJobExecutor) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        job = Job()
        executor.attach(job, str(child.pid))
        job.cancel()
        assert ended(job)[0].state is JobState.CANCELED
    assert child.returncode == -signal.SIGTERM


def test_many(executor: LocalJobExecutor) -> None:
    jobs = [make(f"exit {number}") for number in range(40)]
    for job in jobs:
        executor.submit(job)
    assert [ended(job)[0].exit_code for job in jobs] == list(range(40))


_ALLOCATE = "import sys; x = b'x' * (int(sys.argv[1]) << 20)"


def python_job(megabytes: int, custom: dict[str, object] | None = None, **members: Any) -> Job:
    return Job(JobSpec(sys.executable, ["-I", "-S", "-c", _ALLOCATE, str(megabytes)],
                       attributes=JobAttributes(timedelta(seconds=30), custom_attributes=custom), **members))


@pytest.fixture
def big_client() -> bytearray:
    return bytearray(b"x") * (150 << 20)


@pytest.mark.parametrize("custom", [None, {"local.rlimit.nofile": "40:50", "local.nice": 1}])
@pytest.mark.parametrize("members", [{}, {"launcher": "multiple", "resources": psij.ResourceSpecV1(process_count=2)}])
def test_memory_of_small_jobs(executor: LocalJobExecutor, big_client: bytearray, custom: dict[str, object] | None,
                              members: dict[str, Any]) -> None:
    for megabytes in (50, 5):
        status, metadata = finish(executor, python_job(megabytes, custom, **members))
        assert status.exit_code == 0 and metadata["sources"]["memory_max_bytes"] == "measured"
        assert megabytes << 20 <= metadata["memory_max_bytes"] < (megabytes + 25) << 20


def test_memory_of_tiny_jobs(executor: LocalJobExecutor, big_client: bytearray) -> None:
    """What is not told from the memory of the process that starts them is left out; it is not theirs."""
    _, metadata = finish(executor, Job(JobSpec("true")))
    assert "memory_max_bytes" not in metadata and metadata["cpu_seconds"] < 1
    status, metadata = finish(executor, make("x=$(head -c 9000000 /dev/zero | tr '\\0' x); exit 4"))
    assert status.exit_code == 4 and 9000000 <= metadata["memory_max_bytes"] < 40 << 20


def test_without_starter(executor: LocalJobExecutor, big_client: bytearray, tmp_path: Path,
                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_local_starter, "_starters", _local_starter._Starters())
    monkeypatch.setattr(_local_starter, "_MAIN", tmp_path / "none")
    assert "memory_max_bytes" not in finish(executor, Job(JobSpec("true")))[1]
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 + 100     # than we had: other tests ran before
    assert more << 20 <= finish(executor, python_job(more))[1]["memory_max_bytes"] < (more + 50) << 20
    test_limits(executor, tmp_path)
    (tmp_path / "none").write_text("raise SystemExit\n")
    monkeypatch.setattr(_local_starter, "_starters", _local_starter._Starters())
    for _ in range(5):
        assert finish(executor, make("exit 3"))[0].exit_code == 3
    assert not _local_starter._starters.tries
    for program in ("/no/such", "no-such-program"):
        status, metadata = finish(executor, Job(JobSpec(program)))
        assert metadata["reason"] == "launch" and f"cannot start {program}: No such file" in str(status.message)


def test_starter_is_replaced(executor: LocalJobExecutor, tmp_path: Path) -> None:
    finish(executor, make("exit 0"))
    first = _local_starter._starters.starter
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    assert finish(executor, make("kill -9 $$"))[1]["signal"] == signal.SIGKILL
    assert gone(first.pid) and process(first.pid) is None
    old = os.umask(0o027)
    try:
        finish(executor, make("umask", stdout_path=tmp_path / "out"))
    finally:
        os.umask(old)
    assert int((tmp_path / "out").read_text(), 8) == 0o027
    finish(executor, make("umask", stdout_path=tmp_path / "out"))
    assert int((tmp_path / "out").read_text(), 8) == old


def test_jobs_inherit_little(executor: LocalJobExecutor, tmp_path: Path) -> None:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:            # not from dash, which clears the mask before it starts a command
        finish(executor, Job(JobSpec("grep", ["-E", "^(Sig(Ign|Blk)|NSsid):", "/proc/self/status"],
                                     stdout_path=tmp_path / "status")))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    status = dict(line.split(":") for line in (tmp_path / "status").read_text().splitlines())
    assert int(status["SigBlk"], 16) == 1 << signal.SIGUSR1 - 1
    assert not int(status["SigIgn"], 16) & (1 << signal.SIGPIPE - 1)
    job = Job(JobSpec("ls", ["/proc/self/fd"], stdout_path=tmp_path / "out"))
    finish(executor, job)
    assert (tmp_path / "out").read_text().split() == ["0", "1", "2", "3"]       # 3: the folder itself
    assert status["NSsid"].strip() not in ("0", str(os.getsid(0)))


def test_a_descriptor_that_became_anothers_is_left_alone(executor: LocalJobExecutor, tmp_path: Path) -> None:
    """A program that closes all descriptors, as daemons do, may open files under their numbers."""
    assert executor is not None
    _local_inherited.inherited()
    status = _local_inherited._mine.status
    (tmp_path / "file").write_text("Name:")
    with open(tmp_path / "file") as file:
        os.dup2(file.fileno(), status.fd)
    assert _local_inherited.inherited()[0] and _local_inherited._mine.status is not status
    number = status.fd
    del status
    os.close(number)            # it is still open: else this raises


@pytest.mark.parametrize("custom", [{}, {"local.nice": 1}], ids=["posix_spawn", "fork"])
@pytest.mark.parametrize("named", list(itertools.product((False, True), repeat=3)), ids=str)
def test_streams_that_are_not_named_are_dev_null(executor: LocalJobExecutor, tmp_path: Path, custom: dict[str, object],
                                                 named: tuple[bool, bool, bool]) -> None:
    """What the starter has itself is not handed over with the job: no place of the three may be mixed up."""
    paths = {f"{name}_path": tmp_path / name if there else None
             for name, there in zip(("stdin", "stdout", "stderr"), named, strict=True)}
    (tmp_path / "stdin").touch()
    look = "import os; open('seen', 'w').write(' '.join(os.readlink(f'/proc/self/fd/{i}') for i in range(3)))"
    spec = JobSpec(sys.executable, ["-ISc", look], directory=tmp_path,
                   attributes=JobAttributes(custom_attributes=custom))
    for name, path in paths.items():
        setattr(spec, name, path)
    job = Job(spec)
    finish(executor, job)
    assert (tmp_path / "seen").read_text().split() == [str(path or "/dev/null") for path in paths.values()]


def test_jobs_outlive_the_starter(executor: LocalJobExecutor, tmp_path: Path) -> None:
    job, endless = make("read x < fifo; exit 6", directory=tmp_path), make("sleep 60")
    os.mkfifo(tmp_path / "fifo")
    executor.submit(job)
    executor.submit(endless)
    starter = _local_starter._starters.starter
    assert starter is not None
    os.kill(starter.pid, signal.SIGKILL)
    assert finish(executor, make("exit 3"))[0].exit_code == 3
    (tmp_path / "fifo").write_text("go\n")
    status, metadata = ended(job)
    assert (status.state, status.exit_code, metadata["reason"]) == (JobState.FAILED, None, "unknown-exit")
    endless.cancel()
    assert ended(endless)[0].state is JobState.CANCELED and gone(int(str(endless.native_id)))
    assert process(starter.pid) is None


def test_replaced_starter_goes_with_its_last_job(executor: LocalJobExecutor, tmp_path: Path) -> None:
    job = make("read x < fifo; exit 6", directory=tmp_path)
    os.mkfifo(tmp_path / "fifo")
    executor.submit(job)
    starter = _local_starter._starters.starter
    old = os.umask(0o027)
    try:
        finish(executor, make("exit 0"))
    finally:
        os.umask(old)
    assert starter is not None and starter is not _local_starter._starters.starter
    (tmp_path / "fifo").write_text("go\n")
    assert ended(job)[0].exit_code == 6
    wait_until(lambda: process(starter.pid) is None)


def test_starter_that_started_nothing_goes_too(executor: LocalJobExecutor) -> None:
    starters = []
    for mask in (0o027, 0o077, 0o022):
        old = os.umask(mask)
        try:
            finish(executor, Job(JobSpec("/no/such")))
        finally:
            os.umask(old)
        starters.append(_local_starter._starters.starter)
    assert len(set(starters)) == 3
    for starter in starters[:-1]:
        assert starter is not None
        wait_until(lambda: process(starter.pid) is None)  # noqa: B023


def test_interrupted_submit_leaves_nothing(executor: LocalJobExecutor, tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    finish(executor, make("exit 0"))

    def interrupted(starter: _local_starter.Starter) -> _local_starter._Answer:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(_local_starter.Starter, "_answer", interrupted)
    job = make(f"sleep 60; : {tmp_path}")
    with pytest.raises(KeyboardInterrupt):
        executor.submit(job)
    assert job.status.state is JobState.NEW and job.executor is None and executor.list() == []
    wait_until(lambda: str(tmp_path) not in running())
    assert finish(executor, make("exit 3"))[0].exit_code == 3


def test_starters_killed_at_any_moment(executor: LocalJobExecutor, tmp_path: Path) -> None:
    jobs = [make(f"echo {number} >> out", directory=tmp_path) for number in range(80)]
    with starters_killed(0.03):
        for job in jobs:
            executor.submit(job)
    states = [ended(job)[0].state for job in jobs]
    lines = [int(line) for line in (tmp_path / "out").read_text().split()]
    assert len(lines) == len(set(lines)) and executor.list() == []
    assert {number for number, state in enumerate(states) if state is JobState.COMPLETED} <= set(lines)


def test_jobs_stay_when_we_are_killed_and_the_starter_goes_with_the_last(tmp_path: Path) -> None:
    script = ("import os, psij, signal\n"
              "from psij.executors import _local_starter\n"
              f"job = psij.Job(psij.JobSpec('/bin/sh', ['-c', 'read x < fifo; echo $x > out'], {str(tmp_path)!r}))\n"
              "psij.JobExecutor.get_instance('local').submit(job)\n"
              "print(_local_starter._starters.starter.pid, job.native_id, flush=True)\n"
              "os.kill(os.getpid(), signal.SIGKILL)\n")
    os.mkfifo(tmp_path / "fifo")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    starter, job = (int(pid) for pid in done.stdout.split())
    assert done.returncode == -signal.SIGKILL
    assert not gone(job)
    (tmp_path / "fifo").write_text("still here\n")
    assert wait_for(tmp_path / "out") == "still here\n"
    wait_until(lambda: gone(starter))


def test_import_has_no_side_effects() -> None:
    script = ("import signal, threading, sys, os\n"
              "def state():\n"
              "    return ([signal.getsignal(n) for n in signal.valid_signals()], threading.active_count(),\n"
              "            sorted(os.listdir('/proc/self/fd')), os.environ.copy())\n"
              "before = state()\n"
              "import psij, psij.executors.local\n"
              "from psij.executors import _local_starter\n"
              "assert state() == before and _local_starter._starters.starter is None and not _local_starter._hooked\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_submits_from_many_threads(executor: LocalJobExecutor) -> None:
    jobs = [[make(f"exit {number}") for number in range(15)] for _ in range(4)]

    def submit(mine: list[Job]) -> None:
        for job in mine:
            executor.submit(job)

    threads = [threading.Thread(target=submit, args=(mine,)) for mine in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[ended(job)[0].exit_code for job in mine] for mine in jobs] == [list(range(15))] * 4


def descriptors() -> dict[str, str]:
    """What is open, by number; but the descriptor by which that is looked at."""
    paths = {}
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            paths[name] = os.readlink(f"/proc/self/fd/{name}")
    return paths


def test_nothing_stays_open(executor: LocalJobExecutor) -> None:
    finish(executor, make("exit 0"))
    before = descriptors()
    for _ in range(5):
        finish(executor, make("exit 0"))
        finish(executor, Job(JobSpec("/no/such")))
        finish(executor, Job(JobSpec("/bin/true", attributes=JobAttributes(
            custom_attributes={"local.rlimit.nofile": "unlimited"}))))
    assert descriptors() == before


def test_fork_has_a_starter_of_its_own(executor: LocalJobExecutor) -> None:
    script = ("import os, psij\n"
              "def run():\n"
              "    job = psij.Job(psij.JobSpec('/bin/sh', ['-c', 'exit 5']))\n"
              "    psij.JobExecutor.get_instance('local').submit(job)\n"
              "    status = job.wait()\n"
              "    assert status.exit_code == 5 and 'memory_max_bytes' not in status.metadata, status\n"
              "run()\n"
              "pid = os.fork()\n"
              "run()\n"
              "if pid: assert os.waitpid(pid, 0)[1] == 0\n")
    done = subprocess.run([sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", script],
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
