"""Faults of real resource managers: a controller that stands still or is restarted, nodes and jobs that are taken away,
accounts that do not exist, jobs that are purged or end while they are canceled."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from psij import JobAttributes, JobState, SubmitException
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from tests.psij.batch_support import a_job
from tests.psij.test_batch_labs import LABS, executor, facts, final, only, told_by

__all__ = ["executor"]      # a fixture

pytestmark = pytest.mark.lab
A, C, F, X = (JobState[name] for name in ("ACTIVE", "COMPLETED", "FAILED", "CANCELED"))
CONTROLLERS = {"slurm": "slurmctld", "sge": "sge_qmaster"}
OUTAGE_S = 6


def said_by(*words: str) -> str:
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def controller(name: str) -> int:
    """The process of this lab's controller."""
    for line in (Path(os.environ[LABS[name]]) / "procs").read_text().splitlines():
        pid = int(line.split()[0])
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") if Path(f"/proc/{pid}").exists() else [b""]
        if os.path.basename(words[0]).decode() == CONTROLLERS[name]:
            return pid
    raise AssertionError(f"{CONTROLLERS[name]} does not run")


@contextmanager
def away(name: str) -> Iterator[None]:
    """A controller that is ended and started again with what it has on disk."""
    pid = controller(name)
    os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + 60
    try:
        while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
            assert time.monotonic() < until, f"{CONTROLLERS[name]} does not end"
            time.sleep(0.1)
        yield
    finally:
        subprocess.run([Path(__file__).parent / f"{name}-up", os.environ[LABS[name]]], check=True, timeout=100,
                       stdout=subprocess.DEVNULL)


@contextmanager
def standing_still(name: str) -> Iterator[None]:
    """A controller that answers nobody and loses nothing."""
    pid = controller(name)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_controller_stands_still(executor: BatchSchedulerExecutor, caplog: pytest.LogCaptureFixture) -> None:
    """E16, E17: no state changes meanwhile, and afterwards the end is known that came in the meantime."""
    executor.config.command_timeout = 2
    job = a_job("sleep 3; exit 5")
    executor.submit(job)
    assert job.wait(timedelta(seconds=30), A) is not None
    with standing_still(executor.name):
        time.sleep(12)
        assert job.status.state is A
    assert facts(job) == (F, 5, None, None)
    assert len([one for one in caplog.records if "does not answer; jobs" in one.message]) == 1


def test_the_controller_is_restarted(executor: BatchSchedulerExecutor, caplog: pytest.LogCaptureFixture) -> None:
    """E17, E06: commands fail meanwhile. Who submits is told to try later; what runs goes on, and its end in the outage
    is known afterwards."""
    executor.config.command_timeout = 20        # sbatch gives up after 9 s
    running, refused = a_job("sleep 6; exit 5"), a_job("exit 6")
    executor.submit(running)
    assert running.wait(timedelta(seconds=30), A) is not None
    with away(executor.name):
        with pytest.raises(SubmitException) as raised:
            executor.submit(refused)
        assert raised.value.transient and refused.status.state is JobState.NEW
        time.sleep(OUTAGE_S)
        assert running.status.state is A
    executor.submit(refused)
    assert facts(running) == (F, 5, None, None) and facts(refused) == (F, 6, None, None)
    said = [one for one in caplog.records if one.levelno >= logging.WARNING and "answers again" not in one.message]
    assert len(said) <= 1 and all("does not answer; jobs" in one.message for one in said)


@pytest.mark.parametrize("how", ["preempted", "node-failure"])
def test_taken_away_and_run_again(executor: BatchSchedulerExecutor, how: str) -> None:
    """E26: Slurm itself puts a job back; it stays ACTIVE, and both runs are shown."""
    only(executor, "slurm")
    options: dict[str, object] = {"slurm.requeue": True, "slurm.exclusive": True, "slurm.nodelist": "node2"}
    seen: list[JobState] = []
    job = a_job("sleep 5; exit 5", attributes=JobAttributes(timedelta(minutes=1), custom_attributes=options))
    job.set_job_status_callback(lambda _, status: seen.append(status.state))
    executor.submit(job)
    assert job.wait(timedelta(seconds=60), A) is not None
    time.sleep(2)
    if how == "preempted":
        executor.submit(strong := a_job("true", attributes=JobAttributes(timedelta(minutes=1), custom_attributes={
            "slurm.qos": "high", "slurm.exclusive": True, "slurm.nodelist": "node2"})))
        assert final(strong).state is C
    else:
        told_by("scontrol", "update", "nodename=node2", "state=down", "reason=test")
        time.sleep(3)
        subprocess.run(["scontrol", "update", "nodename=node2", "state=idle"], check=False, stderr=subprocess.DEVNULL)
    assert facts(job) == (F, 5, None, None)
    time.sleep(0.2)
    metadata = job.status.metadata or {}
    assert seen == [JobState.QUEUED, A, F] and metadata["starts"] == 2
    first, second = metadata["attempts"]
    assert first["native_state"] in {"preempted": ("PREEMPTED", "REQUEUED"), "node-failure": ("NODE_FAIL",
                                                                                            "REQUEUED")}[how]
    assert second["exit_code"] == 5 and first["start_time"] < second["start_time"] == metadata["start_time"]


def test_a_submission_that_gets_no_answer(executor: BatchSchedulerExecutor) -> None:
    """E06: the controller takes the request after the command was given up: one job, and it is followed."""
    executor.config.command_timeout = 3
    executor.config.lost_after = 40
    job = a_job("exit 6")
    with standing_still(executor.name):
        thread = threading.Thread(target=_submit, args=(executor, job))
        thread.start()
        time.sleep(6)
    thread.join(120)
    assert not thread.is_alive()
    if job.native_id is None:           # the request was never taken: nothing bears the tag
        assert executor.native_id_of(job.id) is None
        executor.submit(job)
    assert facts(job) == (F, 6, None, None)
    executor.config.keep_files = True
    assert executor._look_up([job.id]) in (({job.id: [job.native_id]}, True), ({}, True))


def _submit(executor: BatchSchedulerExecutor, job: object) -> None:
    try:
        executor.submit(job)  # type: ignore[arg-type]
    except SubmitException as error:
        assert error.transient


def test_an_account_that_does_not_exist(executor: BatchSchedulerExecutor) -> None:
    """E07: refused for good, in Slurm's words."""
    only(executor, "slurm")
    with pytest.raises(SubmitException, match="Invalid account") as raised:
        executor.submit(a_job("true", attributes=JobAttributes(timedelta(minutes=1), account="nosuch")))
    assert not raised.value.transient and not any(executor.work_directory.iterdir())


@pytest.fixture
def forgetful(executor: BatchSchedulerExecutor) -> Iterator[None]:
    """A Slurm that forgets what has ended within seconds."""
    only(executor, "slurm")
    conf = Path(os.environ["SLURM_CONF"])
    before = conf.read_text()
    assert "MinJobAge=" in before
    conf.write_text(re.sub(r"MinJobAge=\d+", "MinJobAge=2", before))
    told_by("scontrol", "reconfigure")
    yield
    conf.write_text(before)
    told_by("scontrol", "reconfigure")


def test_purged_while_nobody_looked(executor: BatchSchedulerExecutor, forgetful: None) -> None:
    """E20: accounting has the end of a job that squeue has never shown as ended."""
    executor.config.queue_polling_interval = executor.config.initial_queue_polling_delay = 600
    job = a_job("exit 7")
    ask, asked = executor._ask_queue, threading.Event()

    def later(*arguments: object) -> object:
        asked.wait(120)         # the client is asleep
        return ask(*arguments)  # type: ignore[arg-type]

    executor._ask_queue = later  # type: ignore[method-assign, assignment]
    executor.submit(job)
    until = time.monotonic() + 110
    while job.native_id in said_by("squeue", "-h", "-t", "all", "-o", "%i").split():
        assert time.monotonic() < until, "squeue still lists it"
        time.sleep(1)
    assert not job.status.final
    asked.set()
    assert facts(job) == (F, 7, None, None) and (job.status.metadata or {})["sources"]["native_state"] == "sacct"


def test_canceled_while_they_end(executor: BatchSchedulerExecutor) -> None:
    """E31: whoever is first: no error, and the end is the one that accounting has."""
    jobs = [a_job("sleep 2") for _ in range(8)]
    for job in jobs:
        executor.submit(job)
    for job in jobs:
        assert job.wait(timedelta(seconds=60), A) is not None
    for number, job in enumerate(jobs):
        started = (job.status.metadata or {}).get("start_time", job.status.time)
        time.sleep(max(0.0, started + 1.8 + number * 0.1 - time.time()))
        job.cancel()
    ends = [final(job).state for job in jobs]
    assert set(ends) <= {C, X}
    if executor.name == "slurm":
        for job, end in zip(jobs, ends, strict=True):
            said = said_by("sacct", "-X", "-n", "-P", "-j", job.native_id or "", "-o", "State").strip()
            assert said.split(" ")[0] == {C: "COMPLETED", X: "CANCELLED"}[end]
