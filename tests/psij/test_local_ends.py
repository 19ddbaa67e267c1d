"""The local executor: canceling, time limits, and what must not get lost when something is scarce or in the way."""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from psij import Job, JobAttributes, JobExecutorConfig, JobSpec, JobState, JobStatus, SubmitException
from psij.executors import LocalJobExecutor, _local_engine, _local_proc, _local_starter
from psij.executors._local_proc import boot_id, process
from psij.executors._local_starter import ask_end

SOON = timedelta(seconds=60)
DAEMON = ("import os, sys, time\n"
          "if os.fork(): os._exit(0)\n"
          "os.setsid()\n"
          "if os.fork(): os._exit(0)\n"
          "open(sys.argv[1], 'w').write(f'{os.getpid()}\\n')\n"
          "time.sleep(60)\n")


@pytest.fixture(params=["starter", "direct"])
def executor(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalJobExecutor:
    if request.param == "direct":
        monkeypatch.setattr(_local_starter._starters, "tries", 0)
    return LocalJobExecutor(config=JobExecutorConfig(work_directory=tmp_path / "work"))


def make(script: str, limit: float | None = 30, **members: Any) -> Job:
    return Job(JobSpec("/bin/sh", ["-c", script], attributes=JobAttributes(limit and timedelta(seconds=limit)),  # type: ignore[arg-type]
                       **members))


def ended(job: Job) -> tuple[JobStatus, dict[str, Any]]:
    status = job.wait(SOON)
    assert status is not None
    return status, status.metadata or {}


def gone(pid: int) -> bool:
    status = process(pid)
    return status is None or not status.living


def gone_for_sure(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def scarce(*_: object) -> None:
    raise OSError(errno.EMFILE, "Too many open files")


def read(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return path.read_text()


def test_cancel_ends_a_daemon(executor: LocalJobExecutor, tmp_path: Path) -> None:
    """E56."""
    job = Job(JobSpec("/bin/sh", ["-c", f'{sys.executable} -I -S -c "$0" daemon; echo > ready; sleep 60', DAEMON],
                      tmp_path))
    executor.submit(job)
    read(tmp_path / "ready")
    daemon = process(int(read(tmp_path / "daemon")))
    assert daemon is not None and str(daemon.session) != job.native_id
    job.cancel()
    assert ended(job)[0].state is JobState.CANCELED and gone(daemon.pid)


def test_no_shell_stands_between(executor: LocalJobExecutor) -> None:
    job = Job(JobSpec("sleep", ["60"]))
    executor.submit(job)
    command, deadline = b"", time.monotonic() + 60
    while not command and time.monotonic() < deadline:      # empty in the middle of exec
        command = Path(f"/proc/{job.native_id}/cmdline").read_bytes()
    assert command == b"sleep\x0060\0"
    os.kill(int(str(job.native_id)), signal.SIGKILL)
    status, metadata = ended(job)
    assert (status.exit_code, metadata["signal"]) == (137, signal.SIGKILL)


def test_cancel_ends_what_keeps_forking(executor: LocalJobExecutor, tmp_path: Path) -> None:
    forker = ("import os, signal, time\n"
              "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
              "end = time.monotonic() + 10\n"
              "while time.monotonic() < end:\n"
              "    open('ready', 'w').write(f'{os.getpid()}\\n')\n"
              "    if os.fork(): os._exit(0)\n"
              "    time.sleep(0.001)\n")
    job = Job(JobSpec("/bin/sh", ["-c", f'{sys.executable} -I -S -c "$0"; sleep 60', forker], tmp_path))
    executor.submit(job)
    read(tmp_path / "ready")
    job.cancel()
    assert ended(job)[0].state is JobState.CANCELED
    last = (tmp_path / "ready").read_text()
    time.sleep(0.3)
    assert (tmp_path / "ready").read_text() == last


def test_what_is_left_behind_is_left_alone(executor: LocalJobExecutor, tmp_path: Path) -> None:
    job = make("sleep 60 & echo $! > pid", directory=tmp_path)
    executor.submit(job)
    assert ended(job)[0].state is JobState.COMPLETED
    pid = int(read(tmp_path / "pid"))
    assert not gone(pid)
    os.kill(pid, signal.SIGKILL)


def test_time_limit_of_a_job_that_does_not_listen(executor: LocalJobExecutor) -> None:
    job = make("trap '' TERM HUP INT; while :; do sleep 1; done", limit=0.2)
    executor.submit(job)
    status, metadata = ended(job)
    assert (status.state, metadata["reason"], metadata["signal"]) == (JobState.FAILED, "timeout", signal.SIGKILL)
    assert 2 < metadata["wall_seconds"] < 10 and gone(int(str(job.native_id)))


def test_a_stopped_job_can_be_canceled(executor: LocalJobExecutor) -> None:
    job = make("kill -STOP $$; sleep 60")
    executor.submit(job)
    deadline = time.monotonic() + 60
    while getattr(process(int(str(job.native_id))), "state", "") != "T":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    job.cancel()
    assert ended(job)[0].state is JobState.CANCELED


def test_cancel_at_any_moment(executor: LocalJobExecutor) -> None:
    jobs = [make("sleep 0.01") for _ in range(40)]
    for number, job in enumerate(jobs):
        executor.submit(job)
        time.sleep(number % 8 / 400)
        job.cancel()
        job.cancel()
    for job in jobs:
        status, metadata = ended(job)
        assert status.state is JobState.COMPLETED or (status.state, metadata["reason"]) == (JobState.CANCELED, "cancel")
        assert gone(int(str(job.native_id)))
    assert executor.list() == []


def test_cancel_from_the_callback_of_queued(executor: LocalJobExecutor) -> None:
    job = make("sleep 60")
    job.set_job_status_callback(lambda job, status: job.cancel())
    executor.submit(job)
    assert ended(job)[0].state is JobState.CANCELED


def test_many_are_canceled_at_once(executor: LocalJobExecutor) -> None:
    jobs = [make("sleep 60") for _ in range(50)]
    for job in jobs:
        executor.submit(job)
    start = time.monotonic()
    for job in jobs:
        job.cancel()
    assert {ended(job)[0].state for job in jobs} == {JobState.CANCELED} and time.monotonic() - start < 50


def test_references_that_do_not_fit(executor: LocalJobExecutor) -> None:
    """E55: pid, time of start and boot name a process; a pid alone may be another one's by now."""
    job = make("sleep 60")
    executor.submit(job)
    pid, start, boot = str(executor.reference(job)).split("@")
    assert (pid, boot) == (job.native_id, boot_id())
    for other in (LocalJobExecutor(), executor):
        for wrong in (f"{pid}@{int(start) + 1}@{boot}", f"{pid}@{start}@{boot[:-1]}x", f"{pid}@{start}", f"{pid}@",
                      "0", "1", "-1", "", "x", "99999999999", f" {pid}", "\u0661"):
            twin = Job()
            other.attach(twin, wrong)
            assert ended(twin)[1] == {"reason": "lost"}
    assert executor.list() == [pid]
    job.cancel()
    ended(job)


def test_output_without_end(executor: LocalJobExecutor, tmp_path: Path) -> None:
    some: list[dict[str, Any]] = [{}, {"pre_launch": tmp_path / "pre"}, {"stdout_path": tmp_path / "out"}]
    for members in some:
        (tmp_path / "pre").write_text("head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2\n")
        job = make("head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2; exit 3", **members)
        executor.submit(job)
        assert ended(job)[0].exit_code == 3
    assert (tmp_path / "out").stat().st_size == 5_000_000


def test_without_descriptors(executor: LocalJobExecutor, tmp_path: Path) -> None:
    before, used = resource.getrlimit(resource.RLIMIT_NOFILE), max(map(int, os.listdir("/proc/self/fd")))
    job = make("exit 3", stdout_path=tmp_path / "out")
    for room in range(6):
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + room, before[1]))
        try:
            executor.submit(job)
        except SubmitException as e:
            assert e.transient and job.status.state is JobState.NEW and not (tmp_path / "out").exists()
        else:
            break
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    else:
        executor.submit(job)
    assert ended(job)[0].exit_code == 3


def test_engine_that_cannot_start(executor: LocalJobExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    starters = _local_starter._Starters()
    starters.tries = _local_starter._starters.tries
    monkeypatch.setattr(_local_starter, "_starters", starters)
    monkeypatch.setattr(_local_engine, "_engines", {})
    job, twin = make("exit 3"), Job()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pipe", scarce)
        with pytest.raises(SubmitException, match="cannot look after jobs"):
            executor.submit(job)
        with pytest.raises(SubmitException, match="cannot look at process"):
            executor.attach(twin, str(os.getpid()))
    assert job.status.state is twin.status.state is JobState.NEW
    executor.submit(job)
    assert ended(job)[0].exit_code == 3
    starters.retire()


def test_a_lack_is_no_proof_of_the_end(executor: LocalJobExecutor, tmp_path: Path,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    job = make("(trap '' TERM; sleep 60; sleep 60) & echo $! > pid; trap 'exit 0' TERM; wait", directory=tmp_path)
    executor.submit(job)
    pid = int(read(tmp_path / "pid"))
    with monkeypatch.context() as patch:
        patch.setattr(_local_proc, "_read", scarce)
        job.cancel()
        assert job.wait(timedelta(seconds=0.5)) is None and not gone_for_sure(pid)
    assert ended(job)[0].state is JobState.CANCELED and gone(pid)


FEW_DESCRIPTORS = """
import os, resource, sys, threading
from psij import Job, JobSpec
from psij.executors import LocalJobExecutor
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
executor = LocalJobExecutor()
jobs = [Job(JobSpec("/bin/sh", ["-c", "read x; exit 4"], stdin_path=sys.argv[1])) for _ in range(150)]
for job in jobs:
    executor.submit(job)
print(len(executor.list()), threading.active_count(), flush=True)
print({job.wait().exit_code for job in jobs})
"""


def test_more_jobs_than_descriptors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    keeper = os.open(tmp_path / "fifo", os.O_RDWR)
    try:
        done = subprocess.Popen([sys.executable, "-c", FEW_DESCRIPTORS, str(tmp_path / "fifo")], text=True,
                                stdout=subprocess.PIPE)
        with done:
            assert done.stdout is not None
            assert done.stdout.readline() == "150 2\n"
            os.close(keeper)
            keeper = -1
            assert done.stdout.read() == "{4}\n"
    finally:
        if keeper >= 0:
            os.close(keeper)
    assert done.returncode == 0


def test_more_direct_jobs_than_descriptors(executor: LocalJobExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psij.executors._local_proc.open_pidfd", lambda pid: None)
    before = threading.active_count()
    jobs = [make(f"sleep 0.2; exit {number}") for number in range(20)] + [make("sleep 60")]
    for job in jobs:
        executor.submit(job)
    assert threading.active_count() <= before + 1       # the engine, if it is the first test
    jobs[-1].cancel()
    assert [ended(job)[0].exit_code for job in jobs[:-1]] == list(range(20))
    assert ended(jobs[-1])[0].state is JobState.CANCELED


def test_others_who_wait_take_nothing_away(tmp_path: Path) -> None:
    script = ("import os, psij, signal\n"
              "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
              "job = psij.Job(psij.JobSpec('/bin/sh', ['-c', 'exit 5']))\n"
              "psij.JobExecutor.get_instance('local').submit(job)\n"
              "try: os.waitpid(-1, os.WNOHANG)\n"
              "except ChildProcessError: pass\n"
              "assert job.wait().exit_code == 5\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


_CLIENT = """
import sys, time
from psij import Job, JobSpec
from psij.executors.local import LocalJobExecutor
job = Job(JobSpec("/bin/sh", ["-c", "read x < fifo; " + sys.argv[1]], directory=sys.argv[2]))
LocalJobExecutor().submit(job)
print(job.native_id, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("client_lives", [True, False])
@pytest.mark.parametrize(("end", "state", "code", "signal_number"), [
    ("exit 0", JobState.COMPLETED, 0, None), ("exit 5", JobState.FAILED, 5, None),
    ("kill -KILL $$", JobState.FAILED, 137, 9)])
def test_the_end_of_another_clients_job(client_lives: bool, end: str, state: JobState, code: int,
                                        signal_number: int | None, tmp_path: Path) -> None:
    """A success is told as one, although somebody else has started the job and may have gone since."""
    os.mkfifo(tmp_path / "fifo")
    with subprocess.Popen([sys.executable, "-c", _CLIENT, end, str(tmp_path)], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        native_id = client.stdout.readline().strip()
        if not client_lives:
            client.kill()
            client.wait()
        jobs = [Job(), Job()]
        for job in jobs:
            LocalJobExecutor().attach(job, native_id)
        (tmp_path / "fifo").write_text("go\n")
        for job in jobs:
            status = job.wait(timedelta(seconds=60))
            assert status is not None and (status.state, status.exit_code) == (state, code)
            assert (status.metadata or {}).get("signal") == signal_number
            assert "cpu_seconds" in (status.metadata or {})
        client.kill()


def test_who_is_no_starter_is_not_believed() -> None:
    """Anybody may take a name in the abstract namespace."""
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with door:
        door.bind(b"\0psij-starter-%d" % os.getppid())
        door.listen()
        assert ask_end(os.getpid(), os.getppid()) is None       # we listen there, and not our parent
    assert ask_end(os.getpid(), os.getppid()) is None
