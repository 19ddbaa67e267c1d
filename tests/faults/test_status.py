"""E16 to E30: following. No end is invented (P3), no state goes back (P4), a bad job or line concerns no other (P5)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from psij import Job, JobState, JobStatus
from psij.executors.batch._slurm_records import parse_sacct
from psij.executors.batch._watch import watcher_of
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.sge import SGEJobExecutor
from psij.executors.batch.slurm import SlurmJobExecutor
from tests.fakes import sge
from tests.fakes.inside import Inside
from tests.fakes.lab import install
from tests.psij.batch_support import FASTEST, Stand, a_job, ended, known, runs
from tests.psij.managers import Manager

Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))
EVER: dict[str, Any] = {"times": -1}


def rest(seconds: float = 0.5) -> None:
    """Ten questions long."""
    time.sleep(seconds)


def asked(stand: Stand, command: str) -> int:
    return len(stand.lab.calls(command))


@pytest.mark.parametrize("fault", [
    {"sleep": 30}, {"exit": 1, "stderr": "down"}, {"stdout": ""}, {"stdout": "\x00\udcff{ garbage <\n|||\n"},
    {"exit": -9}])
def test_no_answer(each: Stand, kind: Manager, fault: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """E16, E17, E18: the last states are kept, and how old they are is told; an outage is one line in the log."""
    each.executor.config.command_timeout, each.executor.config.lost_after = 0.1, 0.3
    job = runs(each)
    for command in {kind.queue, *kind.ends}:
        each.lab.fault(command, **EVER, **fault)
    rest(0.15)
    before = known(job)["confirmed_at"]
    each.lab.end(job.native_id or "", 4)
    rest(0.7)
    if fault == {"stdout": ""} and kind.silent_is_none:
        assert ended(job).exit_code == 4        # that is how they say that there is no job; the exit file has its end
        return
    assert job.status.state is A and known(job)["confirmed_at"] == before
    for command in {kind.queue, *kind.ends}:
        each.lab.heal(command)
    assert ended(job).exit_code == 4
    messages = [record.message for record in caplog.records]
    assert sum("does not answer; jobs" in one for one in messages) == 1
    assert sum("answers again" in one for one in messages) <= 1


def test_pauses_grow_in_an_outage(stand: Stand) -> None:
    """E17: it is not asked as often as when all goes well."""
    job = runs(stand)
    stand.lab.fault("squeue", **EVER, exit=1)
    rest(0.2)
    before = asked(stand, "squeue")
    rest(1.0)
    assert 1 <= asked(stand, "squeue") - before <= 8 and job.status.state is A


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand: Stand) -> Iterator[tuple[Stand, Stand]]:
    """A Slurm and a Grid Engine."""
    assert stand.inside is not None
    first = stand.inside
    lab = install(str(sge.__file__), sge.COMMANDS, tmp_path / "lab2", tmp_path / "bin")
    lab.set(virtual=True)
    second = Inside(lab, sge.COMMANDS)

    def run(command: list[str], *more: Any, **named: Any) -> Any:
        return (second if set(command) & sge.COMMANDS.keys() else first).run(command, *more, **named)

    monkeypatch.setattr("psij.executors.batch._host.run", run)
    config = BatchSchedulerExecutorConfig(work_directory=tmp_path / "work", **FASTEST)
    other = Stand(lab, SGEJobExecutor(config=config), second)
    yield stand, other
    if watcher := watcher_of(other.executor):
        watcher.close()


def test_others_go_on(both: tuple[Stand, Stand]) -> None:
    """E16: a resource manager that hangs holds up no other one."""
    hangs, goes = both
    hangs.executor.config.command_timeout = 5
    stuck = runs(hangs)
    hangs.lab.fault("squeue", **EVER, sleep=5)
    rest(0.1)
    job, began = a_job("sleep 0.1; exit 3"), time.monotonic()
    goes.executor.submit(job)
    assert ended(job).exit_code == 3 and time.monotonic() - began < 5 and stuck.status.state is A


def test_missing_from_one_answer(each: Stand, kind: Manager) -> None:
    """E18, E19: an empty list, once or for a while, is no end."""
    job = runs(each)
    each.executor.config.lost_after = 30
    each.lab.update(1, hidden=True)
    each.lab.fault(kind.queue, times=4, edit=kind.empty)
    for command in kind.ends:
        each.lab.fault(command, times=4, exit=1, stderr="down")
    rest()
    assert job.status.state is A
    each.lab.end(job.native_id or "", 3)
    assert ended(job).exit_code == 3


def test_notices_of_the_site(each: Stand, kind: Manager) -> None:
    """E23: lines that a site's wrapper prints before an answer are no part of it."""
    for command in (kind.queue, *kind.ends):
        each.lab.fault(command, **EVER, edit=[[r"\A(?=.)", "*** {closed} on [Tue] ***\n[WARN] < 1 h left\n"]])
    job = runs(each)
    each.lab.end(job.native_id or "", 3)
    assert ended(job).exit_code == 3


def test_lost(each: Stand, kind: Manager) -> None:
    """E19: a job that is known nowhere is FAILED with reason lost, after lost_after and not before."""
    each.executor.config.lost_after = 0.8
    job = runs(each)
    each.lab.drop(job.native_id or "")
    began = time.monotonic()
    status = ended(job)
    assert (status.state, status.exit_code, known(job)["reason"]) == (F, None, "lost")
    assert time.monotonic() - began > 0.7


def test_silence_does_not_count(stand: Stand) -> None:
    """E19, E36: time in which somebody did not answer is no time in which the job was known nowhere."""
    job = runs(stand)
    stand.lab.drop("1")
    stand.lab.fault("sacct", **EVER, exit=1)
    rest(1.5)
    assert job.status.state is A
    stand.lab.heal("sacct")
    assert ended(job).state is F


@pytest.mark.parametrize(("accounting", "records", "code", "reason"), [
    (True, True, 3, None), (True, False, 3, None), (False, True, 3, None), (False, False, None, "lost")])
def test_purged_before_its_end_was_seen(stand: Stand, accounting: bool, records: bool, code: int | None,
                                        reason: str | None) -> None:
    """E20: accounting or the exit file tell; where there is neither, nobody says that it went well."""
    stand.lab.set(accounting=accounting, **({} if records else {"late": 600}))
    job = runs(stand)
    stand.lab.fault("squeue", times=3, exit=1)
    stand.lab.end("1", 3)
    stand.lab.set(forget=0)
    status = ended(job)
    assert (status.state, status.exit_code, known(job).get("reason")) == (F, code, reason)


def test_ended_but_nobody_knows_how(tmp_path: Path) -> None:
    """E20: PBS says that a job has ended and states no exit status: FAILED with unknown-exit, never COMPLETED."""
    from psij.executors.batch._evidence import Evidence, decide

    ended_somehow = JobStatus(F, metadata={"reason": "unknown-exit", "native_state": "F"})
    status = decide(Evidence(queue=ended_somehow, in_queue=True, waited_s=99), 10, 60)
    assert status is not None
    assert (status.state, status.exit_code, (status.metadata or {})["reason"]) == (F, None, "unknown-exit")


def test_cut_in_a_line(stand: Stand) -> None:
    """E21: whole lines are used; what is left of the last one is not taken for a word."""
    first, second = runs(stand), runs(stand)
    stand.lab.update(1, state="SUSPENDED")
    stand.lab.fault("squeue", **EVER, edit=[[r"(?s)^(JOBID.*?\n1\|.*?\n2\|)RUNNING.*", r"\1FAILED"]])
    rest()
    assert (known(first)["native_state"], known(second)["native_state"]) == ("SUSPENDED", "RUNNING")
    assert (first.status.state, second.status.state) == (A, A)


@pytest.mark.parametrize("edit", [
    [[r"^1\|RUNNING\|None", "1|RUNNING|Reason with blanks, (and) a; \udcff\x1b]0;x\x07"]],        # blanks, odd bytes
    [[r"^1\|RUNNING(.*)", r"1|RUNNING\1|more|columns"]],
    [[r"^(1\|RUNNING.*)", "slurm_load_jobs: warning: hm\n\\1\n\n  \n"]]])
def test_odd_lines(stand: Stand, edit: list[list[str]]) -> None:
    """E23: the job of an odd line keeps its state at worst, the others go on."""
    stand.lab.fault("squeue", **EVER, edit=edit)
    first, second = a_job("sleep 600"), a_job("sleep 0.2; exit 3")
    stand.executor.submit(first)
    stand.executor.submit(second)
    assert first.wait(timedelta(seconds=60), A) is not None      # its own record says so
    assert ended(second).exit_code == 3 and first.status.state is A
    stand.lab.end("1", 5)
    assert ended(first).exit_code == 5


def test_unknown_word(each: Stand, kind: Manager, caplog: pytest.LogCaptureFixture) -> None:
    """E22: that job keeps its state, and it is told once; others are updated."""
    odd = runs(each)
    word, message = kind.odd
    each.lab.update(1, state=word)
    plain = a_job("sleep 0.1; exit 3")
    each.executor.submit(plain)
    assert ended(plain).exit_code == 3 and odd.status.state is A
    rest(0.2)
    assert caplog.messages.count(message) == 1
    each.lab.update(1, state=None)
    each.lab.end(odd.native_id or "", 4)
    assert ended(odd).exit_code == 4


def test_old_answers(stand: Stand) -> None:
    """E24: answers of a server that is behind take nothing back."""
    job = runs(stand)
    for state in ("PENDING", "RUNNING", "PENDING"):
        stand.lab.update(1, state=state)
        rest(0.2)
        assert job.status.state is A
    stand.lab.update(1, state=None)
    stand.lab.end("1", 3)
    assert ended(job).exit_code == 3
    stand.lab.update(1, end=None, state="RUNNING")
    rest(0.2)
    assert stand.states(job) == [Q, A, F] and job.status.state is F


def test_ended_between_two_questions(each: Stand, kind: Manager) -> None:
    """E25: a job that was seen waiting and then ended has been ACTIVE, at the time that the manager tells."""
    each.lab.set(wait=30)
    job = a_job("exit 0")
    each.executor.submit(job)
    rest(0.2)
    assert job.status.state is Q
    each.lab.fault(kind.queue, times=4, exit=1)
    began = each.lab.now() - 20
    each.lab.update(1, start=began)
    each.lab.end(job.native_id or "", 0)
    assert ended(job).state is C
    assert each.states(job) == [Q, A, C]
    if kind.queue not in ("qstat",) or kind.ends:       # where somebody tells when it began
        active = next(status for status in each.seen[job.id] if status.state is A)
        assert active.time == pytest.approx(began, abs=1.1)


def test_requeued(stand: Stand) -> None:
    """E26: PSI/J cannot go back: it stays ACTIVE, is marked, and its starts are counted."""
    job = runs(stand)
    stand.lab.update(1, state="PENDING")
    rest()
    assert job.status.state is A and known(job)["requeued"] is True
    stand.lab.update(1, state=None, start=stand.lab.now() + 60)     # or it is the start that the job recorded
    rest(0.3)
    assert known(job)["requeued"] is False
    stand.lab.end("1", 3)
    assert ended(job).exit_code == 3 and stand.states(job) == [Q, A, F] and known(job)["starts"] == 2


@pytest.mark.parametrize(("state", "phase"), [("SUSPENDED", "SUSPENDED"), ("COMPLETING", "CLEANUP"),
                                              ("STOPPED", "SUSPENDED"), ("STAGE_OUT", "STAGE_OUT")])
def test_phases_of_a_running_job(stand: Stand, state: str, phase: str) -> None:
    """E27: ACTIVE, with the native state and what it means, however long it takes."""
    job = runs(stand)
    stand.lab.update(1, state=state)
    rest(0.3)
    assert (job.status.state, known(job)["native_state"], known(job)["phase"]) == (A, state, phase)
    stand.lab.update(1, state=None)
    rest(0.3)
    assert known(job)["native_state"] == "RUNNING" and "phase" not in known(job)
    assert stand.states(job) == [Q, A]


def test_told_by_poll_and_by_record(each: Stand) -> None:
    """E28: starts and ends come from records and from the queue; each is told once."""
    jobs = [a_job(f"sleep 0.{n}; exit {n % 2}") for n in range(6)]
    for job in jobs:
        each.executor.submit(job)
    for number, job in enumerate(jobs):
        ended(job)
        assert each.states(job) == [Q, A, F if number % 2 else C]


def test_callbacks_that_raise_and_block(stand: Stand) -> None:
    """E29: other callbacks and the questions to the manager go on."""
    free = threading.Event()

    def blocks(job: Job, status: JobStatus) -> None:
        free.wait(20)

    def raises(job: Job, status: JobStatus) -> None:
        raise RuntimeError("from a callback")

    states: list[JobState] = []
    jobs = [a_job("sleep 0.2; exit 3") for _ in range(3)]
    for job, callback in zip(jobs, (blocks, raises, lambda _, status: states.append(status.state)), strict=True):
        job.set_job_status_callback(callback)
        stand.executor.submit(job)
    assert [ended(job).exit_code for job in jobs] == [3, 3, 3]
    until = time.monotonic() + 60
    while states != [Q, A, F] and time.monotonic() < until:
        time.sleep(0.05)
    heard = list(states)
    free.set()
    assert heard == stand.states(jobs[1]) == [Q, A, F]


def test_callbacks_that_submit_cancel_and_wait(stand: Stand) -> None:
    """E30: nothing waits for itself."""
    second, done = a_job("sleep 600"), threading.Event()

    def told(job: Job, status: JobStatus) -> None:
        if status.state is F:
            stand.executor.submit(second)
            second.wait(timedelta(seconds=60), A)
            second.cancel()
            second.wait(timedelta(seconds=60))
            done.set()

    first = a_job("exit 3")
    first.set_job_status_callback(told)
    stand.executor.submit(first)
    assert done.wait(10) and second.status.state is X


def test_order_of_columns() -> None:
    """E50: what a column is follows from the header, not from its place."""
    text = (Path(__file__).parents[1] / "fixtures/slurm-22.05.8/sacct.psv").read_text()
    rows = [line.split("|") for line in text.splitlines()]
    turned = "\n".join("|".join(["new", *row[::-1]]) if n else "|".join(["NewColumn", *row[::-1]])
                       for n, row in enumerate(rows)) + "\n"
    with pytest.raises(ValueError):
        parse_sacct(0, turned)      # the first one is known, for a header must be told from a message
    turned = "".join("|".join([row[0], "new" if n else "NewColumn", *row[:0:-1]]) + "\n" for n, row in enumerate(rows))
    assert {key: (one.state, one.exit_code, one.metadata) for key, one in parse_sacct(0, turned).items()} == {
        key: (one.state, one.exit_code, one.metadata) for key, one in parse_sacct(0, text).items()}


def test_several_clients_of_one_slurm(stand: Stand) -> None:
    """P7: a second executor asks nothing by itself."""
    other = SlurmJobExecutor(config=stand.executor.config)
    jobs = [runs(stand), a_job("sleep 600")]
    other.submit(jobs[1])
    assert jobs[1].wait(timedelta(seconds=60), A) is not None
    assert watcher_of(other) is watcher_of(stand.executor)
