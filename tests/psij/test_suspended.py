"""Jobs of this machine that are suspended, resumed and signalled."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import psij
from psij import Job, JobAttributes, JobExecutor, JobSpec, SubmitException
from psij.executors.local import LocalJobExecutor

#: Counts in a file as long as it may, by a process of its own; ends when there is a file ``go``.
COUNTS = ("trap 'echo got >> got' USR1; "
          "sh -c 'trap \"\" USR1; while test ! -e go; do echo x >> counted; sleep 0.01; done' & "
          "until test -e go; do sleep 0.01; done; exit 3")


@pytest.fixture
def executor() -> LocalJobExecutor:
    backend = JobExecutor.get_instance("local")
    assert isinstance(backend, LocalJobExecutor)
    return backend


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def are_stopped(session: int) -> bool:
    """Whether all processes of a session are stopped, which they are one after the other; proc(5), /proc/PID/stat."""
    states = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, of_session = file.read_text().rpartition(")")[2].split()[:4]
            states += [state] if int(of_session) == session else []
    return "T" in states and set(states) <= {"D", "T", "Z"}      # D: it waits for a child that is stopped, as vfork(2)


def stands(path: Path) -> bool:
    """Whether nothing is added to a file for a while."""
    before = size(path)
    time.sleep(0.2)
    return size(path) == before


def counting(executor: LocalJobExecutor, folder: Path) -> Job:
    """A job that runs and counts."""
    job = Job(JobSpec("/bin/sh", ["-c", COUNTS], directory=folder, attributes=JobAttributes(duration=None)))
    executor.submit(job)
    until(lambda: size(folder / "counted"))
    return job


def test_all_processes_stop_and_go_on(executor: LocalJobExecutor, tmp_path: Path) -> None:
    """A signal that comes meanwhile waits; the time is told as suspended, and not as wall time."""
    job, counted = counting(executor, tmp_path), tmp_path / "counted"
    executor.suspend(job)
    assert (job.status.state.name, (job.status.metadata or {})["phase"]) == ("ACTIVE", "SUSPENDED")
    until(lambda: stands(counted))
    executor.signal(job, "USR1")
    assert not (tmp_path / "got").exists()
    before = size(counted)
    executor.resume(job)
    assert "phase" not in (job.status.metadata or {})
    until(lambda: size(counted) > before and (tmp_path / "got").exists())
    (tmp_path / "go").touch()
    status = job.wait()
    assert status is not None and status.exit_code == 3
    facts = status.metadata or {}
    assert facts["suspend_seconds"] >= 0.2
    assert facts["wall_seconds"] + facts["suspend_seconds"] == pytest.approx(facts["end_time"] - facts["start_time"])
    for act in (executor.suspend, executor.resume, lambda job: executor.signal(job, "TERM")):    # it has ended
        act(job)


def test_another_process_finds_it_suspended(executor: LocalJobExecutor, tmp_path: Path) -> None:
    """What stopped it may be gone; who attaches sees how it stands, and lets it go on."""
    job = counting(executor, tmp_path)
    executor.suspend(job)
    other, again = JobExecutor.get_instance("local"), Job()
    assert isinstance(other, LocalJobExecutor) and job.native_id is not None
    until(lambda: stands(tmp_path / "counted") and are_stopped(int(job.native_id or 0)))
    other.attach(again, executor.reference(job) or "")
    assert (again.status.metadata or {})["phase"] == "SUSPENDED"
    other.resume(again)
    (tmp_path / "go").touch()
    assert [None if status is None else status.exit_code for status in (job.wait(), again.wait())] == [3, 3]


def test_a_suspended_job_is_canceled(executor: LocalJobExecutor, tmp_path: Path) -> None:
    """Processes that are stopped can be ended all the same."""
    job = counting(executor, tmp_path)
    executor.suspend(job)
    job.cancel()
    status = job.wait()
    assert status is not None and status.state is psij.JobState.CANCELED


def test_a_signal_that_ends_it_is_a_failure(executor: LocalJobExecutor, tmp_path: Path) -> None:
    job = counting(executor, tmp_path)
    executor.signal(job, "KILL")
    status = job.wait()
    assert status is not None and (status.state.name, (status.metadata or {})["signal"]) == ("FAILED", 9)


@pytest.mark.parametrize("launcher", ["single", "multiple"])
def test_launchers_outlive_what_is_for_the_program(executor: LocalJobExecutor, tmp_path: Path, launcher: str) -> None:
    """Before and after the program there are scripts, which would die of a signal that the program knows."""
    for name in ("before", "after"):
        (tmp_path / name).write_text(f"touch {tmp_path}/{name}.done\n")
    job = Job(JobSpec("/bin/sh", ["-c", COUNTS], directory=tmp_path, launcher=launcher, pre_launch=tmp_path / "before",
                      post_launch=tmp_path / "after", attributes=JobAttributes(duration=None)))
    executor.submit(job)
    until(lambda: size(tmp_path / "counted"))
    executor.signal(job, "USR1")
    until(lambda: size(tmp_path / "got"))
    (tmp_path / "go").touch()
    status = job.wait()
    assert status is not None and status.exit_code == 3
    assert (tmp_path / "after.done").exists()


def test_what_does_not_run_here_is_refused(executor: LocalJobExecutor) -> None:
    for act in (executor.suspend, executor.resume):
        with pytest.raises(SubmitException, match="it does not run here"):
            act(Job(JobSpec("/bin/true")))
