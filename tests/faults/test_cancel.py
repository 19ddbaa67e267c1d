"""E31 to E37: ends that are asked for, resource managers that are slow or gone, clocks."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from psij import Job, JobState, JobStatus, SubmitException
from psij.executors.batch._followed import Followed
from psij.executors.batch._watch import Watcher
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from sssjob.findings import Policy
from sssjob.run.client import Client
from sssjob.run.journal import open_journal
from sssjob.xml.reader import read_document
from tests.cli.test_journal import shell
from tests.fakes import slurm
from tests.fakes.lab import install
from tests.faults.conftest import bare
from tests.faults.test_status import EVER, asked, rest
from tests.psij.batch_support import FASTEST, Stand, a_job, ended, known, runs
from tests.psij.managers import Manager

A, C, F, X = (JobState[name] for name in ("ACTIVE", "COMPLETED", "FAILED", "CANCELED"))


def test_it_has_just_ended(each: Stand, kind: Manager) -> None:
    """E31: no error, and the end is what it was."""
    job = runs(each)
    for command in {kind.queue, *kind.ends}:
        each.lab.fault(command, times=3, exit=1)
    each.lab.end(job.native_id or "", 3)
    job.cancel()
    assert (ended(job).state, job.status.exit_code) == (F, 3)
    job.cancel()


@pytest.mark.parametrize("words", ["Invalid job id specified", "Job/step already completing or completed"])
def test_words_for_having_ended(stand: Stand, words: str) -> None:
    """E31."""
    job = runs(stand)
    stand.lab.fault("scancel", exit=1, stderr=f"scancel: error: Kill job error on job id 1: {words}\n")
    job.cancel()
    rest(0.2)
    assert job.status.state is A
    stand.lab.end("1", 0)
    assert ended(job).state is C


def test_canceled_before_the_id_is_known(each: Stand, kind: Manager) -> None:
    """E32: remembered, and done as soon as it is."""
    each.lab.fault(kind.submit, edit=[], sleep=0.2)
    job = a_job("sleep 600")
    submit = each.executor._run_submit

    def canceled(command: list[str]) -> str:
        submission = submit(command)
        job.cancel()
        return submission

    each.executor._run_submit = canceled  # type: ignore[method-assign]
    each.executor.submit(job)
    assert ended(job).state is X and len(each.lab.calls(kind.cancel)) == 1


def test_end_is_seen_before_the_cancel_command_answers(each: Stand, kind: Manager) -> None:
    """E32: the end that a slow command brings about is ours, though its records are there before the answer."""
    each.lab.fault(kind.cancel, edit=[], sleep=0.3)
    job = runs(each)
    job.cancel()
    assert ended(job).state is X


def test_said_and_not_done(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """E33: alive until the manager says otherwise; it is asked again, three times at most."""
    monkeypatch.setattr("psij.executors.batch._watch._CANCEL_AGAIN_S", 0.15)
    job = runs(stand)
    stand.lab.fault("scancel", **EVER, stdout="")
    job.cancel()
    rest(1.2)
    assert job.status.state is A and asked(stand, "scancel") == 3
    stand.lab.heal("scancel")
    job.cancel()
    assert ended(job).state is X


def test_attached_to_nothing(each: Stand, kind: Manager) -> None:
    """E34, T18: FAILED with a reason, no exception in a thread, and what is no id is in no command."""
    hostile = ("1; rm -rf /", "-u root", "../1", "1\n2")
    jobs = {native_id: Job() for native_id in ("999", "999.head", "999.0", "", *hostile, *kind.foreign)}
    for native_id, job in jobs.items():
        each.executor.attach(job, native_id)
    assert {(ended(job).state, known(job)["reason"]) for job in jobs.values()} == {(F, "lost")}
    words = [word for command in (kind.queue, *kind.ends) for call in each.lab.calls(command) for word in call]
    assert [one for one in hostile if any(one in word for word in words)] == []


def test_attached_to_nothing_that_remembers(stand: Stand) -> None:
    """E34: where queue and accounting know every job, two answers of theirs are enough; silence is none."""
    stand.executor.config.lost_after = 600
    stand.lab.fault("sacct", times=3, exit=1, stderr="sacct: error: slurmdbd: Connection refused")
    job = Job()
    stand.executor.attach(job, "999")
    assert (ended(job).state, known(job)["reason"]) == (F, "lost")
    assert asked(stand, "squeue") > 1 and asked(stand, "sacct") > 3


@pytest.mark.parametrize(("missed", "silent", "own", "listed", "lost"), [
    (2, False, False, False, True), (1, False, False, False, False), (2, True, False, False, False),
    (2, False, True, False, False), (2, False, False, True, False)])
def test_who_is_lost_without_a_wait(stand: Stand, monkeypatch: pytest.MonkeyPatch, missed: int, silent: bool, own: bool,
                                    listed: bool, lost: bool) -> None:
    """E34, E19: what others made, nobody has ever listed, and all who would know have answered twice."""
    stand.executor.config.lost_after = 600
    monkeypatch.setattr(stand.executor, "_ask_sources", lambda ids, late, whose: ({}, silent))
    job, watcher = Job(), Watcher(("slurm",))
    item = Followed(stand.executor, job, "999", own)
    item.missed, item.ended_at, item.asked_s = missed, time.monotonic(), time.monotonic()
    item.queue = JobStatus(A) if listed else None
    watcher._decide_all([item])
    assert (job.status.state is F) is lost


def test_slow_accounting(stand: Stand) -> None:
    """E35: holds up no question to the queue, and no other job."""
    stand.executor.config.command_timeout = 10
    first = runs(stand)
    stand.lab.fault("sacct", **EVER, edit=[], sleep=4)
    stand.lab.end("1", 3)
    while not asked(stand, "sacct"):
        time.sleep(0.01)
    second = a_job("sleep 600")
    stand.executor.submit(second)
    assert second.wait(timedelta(seconds=60), A) is not None
    before = asked(stand, "squeue")
    rest(0.3)
    assert asked(stand, "squeue") > before and not first.status.final
    assert ended(first).exit_code == 3


def test_no_accounting(stand: Stand) -> None:
    """E35: asked once."""
    stand.lab.set(accounting=False)
    jobs = [runs(stand), runs(stand)]
    for number, job in enumerate(jobs):
        stand.lab.end(job.native_id or "", number)
        assert (ended(job).exit_code, known(job)["sources"]["exit_code"]) == (number, "exit-file")
    assert asked(stand, "sacct") == 1


def test_gone_for_good(each: Stand, kind: Manager) -> None:
    """E36: the last states stay and are old; wait comes back in time; a cancel says that it could not be."""
    job = runs(each)
    for command in {kind.queue, kind.cancel, kind.submit, *kind.ends}:
        each.lab.fault(command, **EVER, exit=1, stderr="Unable to contact slurm controller (connect failure)")
    began = time.monotonic()
    assert job.wait(timedelta(seconds=0.3)) is None and time.monotonic() - began < 30
    with pytest.raises(SubmitException):
        job.cancel()
    rest(0.9)           # longer than lost_after
    assert job.status.state is A and time.time() - known(job)["confirmed_at"] > 0.5


LEAVES = """
import sys, threading
from psij import Job, JobSpec
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.slurm import SlurmJobExecutor
executor = SlurmJobExecutor(config=BatchSchedulerExecutorConfig(work_directory=sys.argv[1], queue_polling_interval=0.1,
                                                               initial_queue_polling_delay=0.1, command_timeout=30))
job = Job(JobSpec("/bin/sleep", ["600"]))
executor.submit(job)
import time
while not list(__import__("pathlib").Path(sys.argv[2]).glob("asked")):
    time.sleep(0.02)
"""


def test_leaving_while_it_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E36, E48: a program ends although a status command hangs and threads live."""
    install(str(slurm.__file__), slurm.COMMANDS, tmp_path / "lab", tmp_path / "bin").set(virtual=True)
    (tmp_path / "bin" / "squeue").write_text(f"#!/bin/sh\n: >{tmp_path}/asked\nexec sleep 90\n")
    done = subprocess.run([sys.executable, "-c", LEAVES, tmp_path / "work", tmp_path], timeout=60, check=False,
                          env=bare(tmp_path), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


# --- clocks

def run_one(stand: Stand, script: str, tmp_path: Path) -> str:
    """The document of a job that was run to its end with a journal."""
    with open_journal(tmp_path / "j.db") as journal:
        client = Client(journal, config=BatchSchedulerExecutorConfig(work_directory=tmp_path / "w", **FASTEST))
        outcome = client.run(read_document(shell(script).encode()), "slurm", policy=Policy.IGNORE, cwd=tmp_path)
    assert outcome.stopped is None
    from sssjob.findings import Findings
    from sssjob.xml.writer import write_document

    return write_document(outcome.document, findings=Findings())


@pytest.mark.parametrize(("clock", "node"), [(3600, -3600), (-3600, 3600), (0, 3600)])
@pytest.mark.parametrize("accounting", [True, False])
def test_clocks_that_differ(stand: Stand, tmp_path: Path, clock: float, node: float, accounting: bool) -> None:
    """E37: how long it ran is by one clock."""
    stand.lab.set(clock=clock, node_clock=node, accounting=accounting)
    text = run_one(stand, "sleep 0.3; exit 3", tmp_path)
    assert "<Duration>0</Duration>" in text or "<Duration>1</Duration>" in text, text


@pytest.mark.parametrize("step", [-7200.0, 7200.0])
def test_a_clock_that_is_set(stand: Stand, monkeypatch: pytest.MonkeyPatch, step: float) -> None:
    """E37: nothing here is timed by a clock that can be set."""
    job = runs(stand)
    true = time.time
    monkeypatch.setattr(time, "time", lambda: true() + step)
    stand.lab.set(clock=-step)
    before = asked(stand, "squeue")
    rest(0.4)
    assert 2 <= asked(stand, "squeue") - before <= 12 and job.status.state is A
    stand.lab.end("1", 3)
    status = ended(job)
    assert status.exit_code == 3 and known(job)["wall_seconds"] >= 0
