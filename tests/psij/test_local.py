"""The local executor with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import psij
from psij import InvalidStateException, Job, JobAttributes, JobExecutorConfig, JobSpec, JobState, JobStatus
from psij.executors import LocalJobExecutor
from psij.executors._local_plan import expand
from psij.executors._local_proc import process

SOON = timedelta(seconds=10)


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
    found = process(pid)
    return found is None or found.state in "ZX"


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 5
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return path.read_text()


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
    assert (tmp_path / "out").read_text() == "outer/1|$A|."
    job = Job(JobSpec("env", inherit_environment=False, environment={"B": "${OUTER}x"}, stdout_path=tmp_path / "env"))
    finish(executor, job)
    assert (tmp_path / "env").read_text() == "B=x\n"
    assert expand("${1A} ${A} $${A}", {"A": "x"}) == "${1A} x $x"


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
    finish(executor, make("echo a; echo b >&2", stdout_path=tmp_path / "same", stderr_path=tmp_path / "same"))
    assert (tmp_path / "same").read_text() == "a\nb\n"


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


def test_script_without_interpreter_line(executor: LocalJobExecutor, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("exit 7")
    (tmp_path / "x").chmod(0o755)
    assert finish(executor, Job(JobSpec("./x", directory=tmp_path)))[0].exit_code == 7


def test_limits(executor: LocalJobExecutor, tmp_path: Path) -> None:
    custom: dict[str, object] = {"local.rlimit.nofile": "40:50", "local.nice": 4, "slurm.whatever": object()}
    status, _ = finish(executor, make('ulimit -n; nice; echo "${LC_CTYPE-none}"', custom, stdout_path=tmp_path / "out",
                                      inherit_environment=False))
    assert status.exit_code == 0 and (tmp_path / "out").read_text() == "40\n4\nnone\n"
    status, metadata = finish(executor, make("while :; do :; done", {"local.rlimit.cpu": "1:2"}))
    assert (status.exit_code, metadata["reason"]) == (128 + signal.SIGXCPU, "cpu-limit")
    job = Job(JobSpec("/no/such", attributes=JobAttributes(custom_attributes={"local.nice": 1})))
    status, metadata = finish(executor, job)
    assert metadata["reason"] == "launch" and "/no/such: No such file" in str(status.message)


def test_time_limit(executor: LocalJobExecutor, tmp_path: Path) -> None:
    status, metadata = finish(executor, make("sleep 60 & echo $! > pid; wait", limit=0.3, directory=tmp_path))
    assert (status.state, metadata["reason"]) == (JobState.FAILED, "timeout") and metadata["wall_seconds"] < 2
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
    status, metadata = ended(stranger)
    assert (status.state, status.exit_code, metadata["reason"]) == (JobState.FAILED, None, "unknown-exit")
    late = Job()
    executor.attach(late, reference)
    assert ended(late)[1] == {"reason": "lost"}
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
