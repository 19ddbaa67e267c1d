"""Jobs that are held, run again, suspended and signalled: each resource manager has its own commands for that."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from psij import Job, JobAttributes, JobState, JobStatus, SubmitException
from psij.executors.batch._terms import DEEDS
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig
from sssjob.run.running import executor_of
from tests.psij.batch_support import Stand, a_job, ended, runs
from tests.psij.managers import MANAGERS, Manager

#: What is told to each manager of job 1, in the order of DEEDS; None: it has no such command.
COMMANDS = {
    "slurm": ("scontrol uhold 1", "scontrol release 1", "scontrol requeue 1", "scontrol suspend 1", "scontrol resume 1",
              "scancel --full --signal=USR1 1"),
    "sge": ("qhold 1", "qrls 1", "qmod -rj 1", "qmod -sj 1", "qmod -usj 1", None),
    "pbs": ("qhold 1", "qrls 1", "qrerun 1", "qsig -s suspend 1", "qsig -s resume 1", "qsig -s SIGUSR1 1"),
    "pbs_classic": ("qhold 1", "qrls 1", "qrerun 1", "qsig -s suspend 1", "qsig -s resume 1", "qsig -s SIGUSR1 1"),
    "lsf": ("bstop 1", "bresume 1", "brequeue 1", "bstop 1", "bresume 1", "bkill -s USR1 1"),
    "flux": ("flux job urgency 1 hold", "flux job urgency 1 default", None, None, None, "flux job kill -s SIGUSR1 1"),
    "htcondor": ("condor_hold 1", "condor_release 1", "condor_vacate_job 1", "condor_suspend 1", "condor_continue 1",
                 None),
    "cobalt": ("qhold 1", "qrls 1", None, None, None, None),
    "nqsv": ("/opt/nec/nqsv/bin/qhold 1", "/opt/nec/nqsv/bin/qrls 1", "/opt/nec/nqsv/bin/qrerun 1", None, None, None),
}


@pytest.fixture(params=MANAGERS)
def manager(request: pytest.FixtureRequest) -> Manager:
    """Each of them."""
    return MANAGERS[request.param]


@pytest.mark.parametrize("name", MANAGERS)
def test_commands(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psij.executors.batch.nqsv.Path.exists", lambda path: True)
    executor = executor_of(name, BatchSchedulerExecutorConfig(work_directory=tmp_path))
    assert isinstance(executor, BatchSchedulerExecutor)
    commands = [executor.get_order_command(order, "1", "USR1") for order in DEEDS]
    assert tuple(None if words is None else " ".join(words) for words in commands) == COMMANDS[name]


def test_a_part_of_a_heterogeneous_job_is_not_held_alone(tmp_path: Path) -> None:
    executor = executor_of("slurm", BatchSchedulerExecutorConfig(work_directory=tmp_path))
    assert isinstance(executor, BatchSchedulerExecutor)
    commands = [executor.get_order_command(order, "12+1", "USR1") or [] for order in DEEDS]
    assert [words[-1] for words in commands] == ["12"] * 6


def test_attributes_of_a_hold(manager: Manager, quick: Stand) -> None:
    """A job is submitted with a hold on every manager, and the release that it has ends it."""
    attributes = quick.executor.hold_attributes()
    assert attributes == manager.hold
    job = a_job("exit 3", attributes=JobAttributes(custom_attributes=dict(attributes)))
    quick.executor.submit(job)
    assert quick.lab.jobs()[0]["held"]
    quick.executor.release(job)
    assert ended(job).exit_code == 3


def test_a_job_that_waits_is_held_and_released(manager: Manager, quick: Stand) -> None:
    quick.lab.set(wait=600)
    job = a_job("exit 3")
    quick.executor.submit(job)
    quick.executor.hold(job)
    quick.lab.set(wait=0)
    quick.lab.tick()
    assert (quick.lab.jobs()[0]["held"], quick.lab.jobs()[0]["start"]) == (True, None)
    quick.executor.release(job)
    assert ended(job).exit_code == 3
    for act in (quick.executor.hold, quick.executor.release, quick.executor.rerun):     # nothing happens to it any more
        act(job)


def test_many_jobs_are_held_and_released_by_few_commands(manager: Manager, quick: Stand) -> None:
    """`hold` of an array of 1,000 took a command for each element, and most of them began meanwhile. What has ended is
    told alone; where a manager takes one id only, each job is."""
    quick.lab.set(wait=600)
    jobs = [a_job("exit 3") for _ in range(5)]
    for job in jobs:
        quick.executor.submit(job)
    quick.lab.cancel(quick.lab.jobs()[4])
    before = len(quick.lab.all_calls())
    failed = quick.executor.order_many(jobs, "hold")
    orders = [words for words in quick.lab.all_calls()[before:] if {"hold", "uhold"} & set(words) or "hold" in words[0]
              or words[0] == "bstop"]
    assert set(failed) <= {jobs[4]} and [job["held"] for job in quick.lab.jobs()[:4]] == [True] * 4
    assert len(orders) <= (5 if "flux" in orders[0][0] else 3), orders
    assert quick.executor.order_many(jobs[:4], "release") == {}
    assert not any(job["held"] for job in quick.lab.jobs())
    assert quick.executor.cancel_many(jobs[:4]) == {} and {ended(job).state.name for job in jobs[:4]} == {"CANCELED"}


@pytest.mark.parametrize(("name", "told", "done"), [
    ("htcondor", "Job 4.0 held", True), ("htcondor", "Job 4.0 not held to be released", False),
    ("lsf", "Job <4> is being stopped", True), ("lsf", "Job <4>: Job has already finished", False),
    ("slurm", "4_1: Job has already finished", False)])
def test_what_is_done_is_not_told_once_more(name: str, told: str, done: bool, tmp_path: Path) -> None:
    """A command for many jobs fails because of one of them. The others are held by then, and a manager that refuses to
    hold a job twice would have them said to be refused."""
    executor = executor_of(name, BatchSchedulerExecutorConfig(work_directory=tmp_path))
    assert isinstance(executor, BatchSchedulerExecutor)
    assert executor._order_done(told) is done


@pytest.mark.parametrize(("name", "answers", "untold", "failed"), [
    ("lsf", ["Job <1> is being stopped\nJob <2>: Job has already finished", "Job <3> is being stopped"],
     ["2", "4"], []),
    ("lsf", ["Job <2>: Job has already finished"] * 2, ["2", "1", "3", "4"], []),
    ("lsf", ["Job <2>: Job has already finished", ""], ["2"], []),
    ("slurm", ["Access/permission denied"], ["1", "2", "3", "4"], []),
    ("slurm", ["Unable to contact slurm controller"], [], ["1", "2", "3", "4"])])
def test_what_a_command_for_many_jobs_leaves(name: str, answers: list[str], untold: list[str], failed: list[str],
                                             tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that its answer names are told alone, but for those to which it was done, and the others together once more;
    where it speaks of no job, each is told alone if that was a refusal, and none if nobody was there to be asked."""
    executor = executor_of(name, BatchSchedulerExecutorConfig(work_directory=tmp_path))
    assert isinstance(executor, BatchSchedulerExecutor)
    commands = iter(answers)

    def run(command: list[str]) -> str:
        if out := next(commands):
            raise subprocess.CalledProcessError(1, command, out)
        return ""

    monkeypatch.setattr(executor, "_run_command", run)
    alone, failures = executor._tell_many(["1", "2", "3", "4"], "hold")
    assert (alone, list(failures)) == (untold, failed) and all(error.transient for error in failures.values())


def test_a_job_in_error_is_released_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends the holds of the others would leave it in error."""
    executor = executor_of("sge", BatchSchedulerExecutorConfig(work_directory=tmp_path))
    jobs = [a_job("exit 3") for _ in range(3)]
    for number, job in enumerate(jobs):
        job._native_id = str(number)
        job.status = JobStatus(JobState.QUEUED, metadata={"phase": "ERROR"} if number == 1 else {})
    alone: list[Job] = []
    monkeypatch.setattr(executor, "_run_command", lambda command: "")
    monkeypatch.setattr(executor, "_act", lambda job, _: alone.append(job))
    assert isinstance(executor, BatchSchedulerExecutor) and executor.order_many(jobs, "release") == {}
    assert alone == [jobs[1]]


def test_a_job_that_was_not_submitted_is_refused(manager: Manager, quick: Stand) -> None:
    """There is nothing yet that the manager could be told of; trying again may help."""
    for act in (quick.executor.hold, quick.executor.release):
        with pytest.raises(SubmitException, match="has not been given it yet") as raised:
            act(a_job("true"))
        assert raised.value.transient


def test_a_job_that_runs_is_run_again(manager: Manager, quick: Stand) -> None:
    quick.lab.set(hold_again=True)
    job = runs(quick)
    if quick.executor.get_order_command("rerun", "1") is None:
        with pytest.raises(SubmitException, match=r"cannot be run again: .* has no command for that") as raised:
            quick.executor.rerun(job)
        assert not raised.value.transient and quick.lab.jobs()[0]["start"] is not None
        return
    quick.executor.rerun(job)
    assert (quick.lab.jobs()[0]["start"], quick.lab.jobs()[0]["id"]) == (None, job.native_id)
    job.cancel()
    assert ended(job).state.name == "CANCELED"


def test_refusals_are_told(manager: Manager, quick: Stand) -> None:
    """What the manager says is in the message, and whether trying again may help."""
    attributes = JobAttributes(custom_attributes={**manager.hold})
    job = a_job("true", attributes=attributes)
    quick.executor.submit(job)
    command = (quick.executor.get_order_command("hold", job.native_id or "") or [""])
    name = "flux-job" if "flux" in command else Path(command[-2] if len(command) == 2 else command[0]).name
    for text, transient in ((manager.submitting.refused[0], False), (manager.submitting.later[0], True)):
        quick.lab.fault(name, exit=1, stderr=text)
        with pytest.raises(SubmitException) as raised:
            quick.executor.hold(job)
        assert str(raised.value) == f"Job {job.native_id} cannot be held: {text.strip()}"
        assert raised.value.transient is transient
    job.cancel()


@pytest.mark.parametrize(("phase", "command"), [("ERROR", "qmod -cj 7"), ("HELD", "qrls 7")])
def test_a_job_in_error_is_released_by_what_clears_the_error(phase: str, command: str, tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    """qrls ends well and leaves it in error: the job was said to be released, and waited for ever. Seen with 8.1.9."""
    executor, job = executor_of("sge", BatchSchedulerExecutorConfig(work_directory=tmp_path)), a_job("true")
    assert isinstance(executor, BatchSchedulerExecutor)
    told: list[str] = []
    job._native_id, job._status = "7", JobStatus(JobState.QUEUED, metadata={"phase": phase})

    def run(words: list[str]) -> str:
        told.append(" ".join(words))
        if phase == "ERROR":            # and so it ends, where it has done it
            raise subprocess.CalledProcessError(1, words, "root@localhost cleared error state of job 7\n")
        return ""

    monkeypatch.setattr(executor, "_run_command", run)
    executor.release(job)
    assert told == [command]


def test_what_grid_engine_says_of_a_job_that_cannot_run_again(tmp_path: Path) -> None:
    """qmod ends well in any case. Seen with 8.1.9."""
    executor = executor_of("sge", BatchSchedulerExecutorConfig(work_directory=tmp_path))
    assert isinstance(executor, BatchSchedulerExecutor)
    pending = "Modify operation can not be applied on job-array task 8.1 in pending/hold state"
    texts = ("Pushed rescheduling of job 6 on host localhost\n", "The job 7 is not restartable\n", pending, "")
    assert [executor.order_refusal("rerun", text) for text in texts] == [
        None, "The job 7 is not restartable", pending, "qmod says nothing"]
