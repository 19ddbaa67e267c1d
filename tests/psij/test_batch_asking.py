"""Commands that are not there, that fail and that hang: what is said of them, and how often."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from psij import Job, JobExecutorConfig, JobState, JobStatus
from psij.executors.batch._asking import reason
from psij.executors.batch._followed import Followed
from psij.executors.batch._identity import Whose
from psij.executors.batch._watch import Watcher
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.slurm import SlurmJobExecutor


@pytest.mark.parametrize(("command", "name"), [
    (["nosuch", "-x"], "nosuch"), (["env", "TZ=UTC0", "nosuch", "-j", "1"], "nosuch"),
    (["env", "-u", "X", "/no/such"], "/no/such"),
    (["/bin/sh", "-c", 'exec nosuch <"$1"', "sh", "/dev/null"], "nosuch")])
def test_commands_that_are_not_there(tmp_path: Path, command: list[str], name: str) -> None:
    """E08: also behind what they run in; named, with the path that was searched."""
    executor = SlurmJobExecutor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path))
    for function in (executor._run_command, executor._run_submit):
        with pytest.raises(FileNotFoundError) as raised:
            function(command)
        assert reason(raised.value) == f"{name!r} is not found (PATH is {os.environ['PATH']!r})"


def test_a_program_that_ends_with_127_is_there(tmp_path: Path) -> None:
    executor = SlurmJobExecutor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path))
    with pytest.raises(subprocess.CalledProcessError):
        executor._run_command(["env", "A=b", "/bin/sh", "-c", "echo env: x: none >&2; exit 127"])


@pytest.mark.parametrize(("error", "said"), [
    (subprocess.TimeoutExpired(["env", "-u", "X", "A=b", "/bin/squeue", "-x"], 2.5), "squeue took longer than 2.5 s"),
    (subprocess.CalledProcessError(3, ["x"], " words \n"), "words"),
    (subprocess.CalledProcessError(3, ["x"], ""), "exit code 3"),
    (PermissionError(errno.EACCES, "Not allowed", "x"), f"'x': Not allowed (PATH is {os.environ['PATH']!r})"),
    (OSError(errno.EIO, "Input/output error"), "[Errno 5] Input/output error")])
def test_reasons_for_people(error: Exception, said: str) -> None:
    assert reason(error) == said


def test_an_outage_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                               caplog: pytest.LogCaptureFixture) -> None:
    """E17: of the log, whatever many lines the resource manager uses."""
    executor, watcher = SlurmJobExecutor(config=JobExecutorConfig(work_directory=tmp_path)), Watcher(("test",))

    def fail(_: list[str]) -> str:
        raise subprocess.TimeoutExpired(["env", "squeue"], 9.0)

    monkeypatch.setattr(executor, "_run_command", fail)
    for _ in range(4):
        watcher._poll([Followed(executor, Job(), "1", True)], ["1"])
    monkeypatch.setattr(executor, "_run_command", lambda _: "JOBID|STATE|\n")
    watcher._poll([Followed(executor, Job(), "1", True)], ["1"])
    watcher._outage.report(executor.name, 2, subprocess.CalledProcessError(1, ["squeue"], "one\ntwo\n"))
    watcher._outage.report(executor.name, 2, subprocess.CalledProcessError(1, ["squeue"], "one\ntwo\n"))
    assert caplog.messages == [
        f"{executor.name} does not answer; jobs keep their last known states: squeue took longer than 9 s",
        f"{executor.name} answers again",
        f"{executor.name} does not answer; jobs keep their last known states: one; two"]


def test_a_question_that_hangs_is_an_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A qstat whose qmaster stands still takes a minute to fail: two minutes and a half nobody was told of it."""
    executor, watcher = SlurmJobExecutor(config=JobExecutorConfig(work_directory=tmp_path)), Watcher(("test",))
    watcher._asked_at, now = 1.0, [1000.0]
    heard: list[tuple[bool, float | None]] = []
    monkeypatch.setattr("psij.executors.batch._outage.time",
                        SimpleNamespace(monotonic=lambda: now[0], time=lambda: 5000 + now[0]))

    def hang(_: list[str]) -> str:
        for seconds in (20.0,) * 3:
            now[0] += seconds
            heard.append(watcher.hears())
        return "JOBID|STATE|\n"

    monkeypatch.setattr(executor, "_run_command", hang)
    watcher._poll([Followed(executor, Job(), "1", True)], ["1"])
    assert heard == [(True, None), (False, 6000.0), (False, 6000.0)] and watcher.hears() == (True, None)


def test_accounting_that_is_silent_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                               caplog: pytest.LogCaptureFixture) -> None:
    """E35: until it answers again."""
    executor = SlurmJobExecutor(config=JobExecutorConfig(work_directory=tmp_path))
    answers = ["", "", "JobID|State\n", "", ""]

    def sacct(_: list[str]) -> str:
        if answer := answers.pop(0):
            return answer
        raise subprocess.CalledProcessError(1, ["sacct"], "Problem talking to the database:\nConnection refused\n")

    monkeypatch.setattr(executor, "_run_command", sacct)
    assert [executor._ask_sources(["1"], set(), Whose()) for _ in range(5)] == [({}, silent) for silent in (
        True, True, False, True, True)]
    said = "sacct failed with exit code 1: Problem talking to the database:; Connection refused"
    assert caplog.messages == [f"{executor.name}: sacct gives no records: {said}"] * 2


def test_hooks_that_raise_are_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                        caplog: pytest.LogCaptureFixture) -> None:
    """P5: other jobs go on."""
    executor, watcher = SlurmJobExecutor(config=JobExecutorConfig(work_directory=tmp_path)), Watcher(("test",))
    monkeypatch.setattr(executor, "_run_command", lambda _: "JOBID|STATE|\n" + "".join(
        f"{number}|RUNNING|None|1|2|3|1|1|n1|q|normal\n" for number in (1, 2)))
    bad, good = Followed(executor, Job(), "1", True), Followed(executor, Job(), "2", True)
    told = executor._set_job_status

    def raising(job: Job, status: JobStatus) -> None:
        if job is bad.job:
            raise RuntimeError("a hook of ours")
        told(job, status)

    monkeypatch.setattr(executor, "_set_job_status", raising)
    for _ in range(3):
        watcher._states.forget("1")
        watcher._poll([bad, good], ["1", "2"])
    assert good.job.status.state is JobState.ACTIVE and bad.job.status.state is JobState.NEW
    assert caplog.messages == ["Following job 1 of test failed"]
