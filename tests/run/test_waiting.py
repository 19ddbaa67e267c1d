"""The truth while a job waits: held, suspended, put back into the queue, and why, told alike by whoever asks."""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from psij import Job, JobState, JobStatus
from psij.executors.batch._watch import watcher_of
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.cli._journal import heard
from sssjob.run import facts
from sssjob.run.events import Listener
from sssjob.run.progress import Progress
from sssjob.run.standing import Running
from tests.run.support import Desk, desk_on, shell

Q, A = JobState.QUEUED, JobState.ACTIVE


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with desk_on("slurm", tmp_path, monkeypatch) as desk:
        yield desk


def look(desk: Desk, name: str = "a") -> Running:
    """A job as a fresh client finds it."""
    client = desk.client()
    row = client.journal.find(name)[0]
    submissions, answered = client.look([client.journal.entry(row.submission)])
    assert answered
    job = submissions[0].jobs[row.job]
    job.refresh()
    return job


def shown(desk: Desk) -> tuple[str, str | None]:
    """State and message as a fresh client says it, which are also what the journal knows then."""
    job = look(desk)
    told = job.row.state, job.row.message
    known = desk.job("a").row
    assert (known.state, known.message) == told
    row = desk.client().journal.find("a")[0]
    assert (row.state, row.message) == told
    return told


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.05)


def statuses(desk: Desk) -> list[tuple[Any, ...]]:
    """The statuses in the journal: state, phase, whether put back, kind of reason."""
    found = [(one["state"], one.get("metadata") or {}) for one in desk.events("a", "status")]
    return [(state, known.get("phase"), bool(known.get("requeued")), known.get("waits")) for state, known in found]


def running(desk: Desk) -> None:
    desk.submit(shell("while [ ! -e go ]; do sleep 0.1; done; exit 3"))
    until(lambda: look(desk).row.state == "Running")


def ends(desk: Desk) -> None:
    (desk.folder / "go").touch()
    assert desk.wait("a") == {"a": ("failed", 3)}


def test_a_job_that_was_put_back_waits(desk: Desk) -> None:
    """Whoever asks, and however often, says the same; its start record is older than its new life in the queue."""
    running(desk)
    assert desk.lab is not None
    desk.lab.update(1, state="PENDING", reason="job requeued in held state", submit=desk.lab.now() + 3)
    assert [shown(desk) for _ in range(3)] == [("Hold", "held: job requeued in held state")] * 3
    desk.lab.update(1, reason="BeginTime")
    assert [shown(desk) for _ in range(2)] == [("Idle", "begin: BeginTime")] * 2
    desk.lab.update(1, state=None, reason=None, start=desk.lab.now() + 5)
    assert [shown(desk) for _ in range(2)] == [("Running", None)] * 2
    told = [one for one, _ in groupby(one[1:] for one in statuses(desk))]      # QUEUED or ACTIVE, as it was found
    runs = (None, False, None)
    assert told[-4:] == [runs, ("HELD", True, "held"), (None, True, "begin"), runs]
    ends(desk)


def test_a_job_that_is_suspended(desk: Desk) -> None:
    running(desk)
    assert desk.lab is not None
    desk.lab.update(1, state="SUSPENDED")
    assert [shown(desk) for _ in range(2)] == [("Suspended", None)] * 2
    desk.lab.update(1, state=None)
    assert [shown(desk) for _ in range(2)] == [("Running", None)] * 2
    assert [one[:2] for one in statuses(desk)][-2:] == [("ACTIVE", "SUSPENDED"), ("ACTIVE", None)]
    ends(desk)


def test_why_a_job_waits(desk: Desk) -> None:
    """An event where the reason changes in kind; that its turn has not come is in no event, but the message is."""
    assert desk.lab is not None
    desk.lab.set(wait=3600)
    desk.submit(shell("exit 3"))
    before = len(desk.events("a", "status"))
    reasons = [("JobHeldUser", "Hold", "held", 1), ("Priority", "Idle", "turn", 2), ("Resources", "Idle", "turn", 2),
               ("PartitionTimeLimit", "Idle", "never", 3), ("PartitionDown", "Idle", "unavailable", 4)]
    for reason, state, kind, events in reasons:
        desk.lab.update(1, reason=reason)
        client = desk.client()
        job = look(desk)
        assert (job.row.state, job.row.message) == (state, f"{kind}: {reason}")
        assert str(job.plan.job.value("StatusMessage")) == f"{kind}: {reason}"
        assert len(desk.events("a", "status")) - before == events, statuses(desk)
        client.look([client.journal.entry(1)])
        assert [(f.rule, f.path, f.message) for f in client.findings] == (
            [("SSS610", "@1.1", f"a can never start as it is: {reason}")] if kind == "never" else [])
    desk.client().cancel(["a"])


def test_what_was_asked_for_is_waited_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue has answered, and the callback that says so is late: who looks does not go on with an older answer."""
    assert desk.lab is not None
    desk.lab.set(wait=3600)
    desk.submit(shell("exit 3"))
    desk.lab.update(1, reason="Resources")
    assert look(desk).row.message == "turn: Resources"
    job_news = Listener.job_news

    def late(callback: Listener, job: Job, status: JobStatus) -> None:
        time.sleep(1)
        job_news(callback, job, status)

    monkeypatch.setattr(Listener, "job_news", late)
    desk.lab.update(1, reason="PartitionDown")
    assert shown(desk) == ("Idle", "unavailable: PartitionDown")
    desk.client().cancel(["a"])


def test_a_client_that_follows_tells_the_others(desk: Desk) -> None:
    """Events of the client that holds the lease; the others read them."""
    running(desk)
    assert desk.lab is not None
    submission = desk.client().standing(desk.client().journal.entry(1))
    assert submission.entry is not None and submission.entry.take()
    try:        # nobody else asks now
        desk.lab.update(1, state="SUSPENDED")
        assert look(desk).row.state == "Running"
    finally:
        submission.entry.release()
    assert shown(desk) == ("Suspended", None)
    desk.lab.update(1, state=None)
    ends(desk)


def test_a_manager_that_falls_silent(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    """Who follows the job writes it down, and that it answers again; the others say since when, and who that is."""
    running(desk)
    assert desk.lab is not None
    waiting = threading.Thread(target=lambda: desk.client().wait(["a"], 60))
    waiting.start()
    try:
        until(lambda: desk.client().journal.entry(1).held())
        desk.lab.fault("squeue", times=-1, exit=1, stderr="slurm_load_jobs error: Unable to contact slurm controller")
        until(lambda: bool(desk.events("a", "silent")))
        client = desk.client()
        submissions, answered = client.look([client.journal.entry(1)])
        assert heard(submissions, answered, False) == 4
        (data,) = desk.events("a", "silent")
        assert re.fullmatch(
            rf"sssjob: @1: slurm has not answered since [\d: -]+ UTC; process {data['pid']} on {data['host']} looks "
            r"after its jobs; this is what was known before\n", capfd.readouterr().err)
        desk.lab.heal("squeue")
        until(lambda: bool(desk.events("a", "answers")))
        client = desk.client()
        submissions, answered = client.look([client.journal.entry(1)])
        assert heard(submissions, answered, False) == 0
    finally:
        (desk.folder / "go").touch()
        waiting.join()
    assert len(desk.events("a", "silent", "answers")) == 2


def test_who_waits_for_a_client_that_has_no_room_to_write_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """That client learns of the end and cannot write it down, so that nothing would ever be heard of the job."""
    running(desk)
    submission = desk.client().standing(desk.client().journal.entry(1))
    assert submission.entry is not None and submission.entry.take()
    monkeypatch.setattr("sssjob.run.recording.has_no_room", lambda _: True)
    client, stream = desk.client(), io.StringIO()
    client.progress = Progress(stream=stream)
    looks = desk.client()
    try:
        assert client.wait(["a"], 1.5)[1] is False
        looks.look([looks.journal.entry(1)], 1)
    finally:
        submission.entry.release()
    text = (f"{client.journal.path}: the disk is full: what other clients learn of jobs is not written before there is "
            "room")
    assert (stream.getvalue(), [f.message for f in client.findings]) == (f"sssjob: {text}\n", [text])
    assert [f.message for f in looks.findings] == [text]
    ends(desk)


def test_what_a_manager_says_in_lines_is_told_in_one(desk: Desk) -> None:
    """Why a job cannot be cancelled: nobody knows whether it is still the same one."""
    running(desk)
    assert desk.lab is not None
    desk.lab.fault("squeue", times=-1, exit=1, stderr="slurm_load_jobs error: it is away\nsqueue: try later\n")
    client = desk.client()
    client.cancel(["a"], 2)
    (finding,) = [f for f in client.findings if "could not be cancelled" in f.message]
    assert finding.message.endswith("exit code 1: slurm_load_jobs error: it is away; squeue: try later")
    desk.lab.heal("squeue")


def test_broken_bytes_and_odd_times_of_an_answer_keep_no_end_back(slurm: Desk) -> None:
    """No journal and no document can hold such bytes: the submission could not be written any more, by any client. The
    time comes from a source that has a true one, and what was left out is said."""
    assert slurm.lab is not None
    slurm.lab.fault("sbatch", stderr="sbatch: error: Not \udcff\x1b here\n", exit=1)
    slurm.submit(shell("true", name="b"))
    slurm.lab.fault("squeue", times=-1, edit=[[r"\|None\|", "|Res\udcffources|"], [r"\|batch\|", "|bat\x01ch|"]])
    slurm.lab.fault("sacct", times=-1, edit=[[r"\|\d{10}\|(?=\d{10}\|\d+\|00:)", "|86400|"],
                                             [r"\|batch\|", "|b\udcff|"]])
    slurm.lab.set(wait=0.5)
    slurm.submit(shell("exit 3"))
    assert slurm.wait("b", "a") == {"b": ("failed", None), "a": ("failed", 3)}
    job = slurm.job("a")
    assert job.seen[0].started is not None and abs(job.seen[0].started - time.time()) < 100
    assert "queue" not in job.seen[0].known         # neither source has it in whole letters
    assert job.not_its_own == ["left out, as about another job: sacct says that start_time 86400.0 is no time of it"]


def test_an_end_is_asked_for_until_the_manager_answers(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was given up, and a job that had been cancelled before, by a client that died, was lost without accounting."""
    monkeypatch.setattr("sssjob.run.ending._PAUSE_S", 0.05)
    running(desk)
    assert desk.lab is not None
    desk.lab.fault("squeue", times=2, exit=1, stderr="squeue: try later\n")
    client = desk.client()
    client.cancel(["a"], 20)
    assert [(row.id, row.outcome) for row in client.journal.rows()] == [("a", "canceled")]
    assert len([f for f in client.findings if "could not be cancelled" in f.message]) == 1


# --- what follows what

def _running(*statuses: JobStatus) -> Running:
    from sssjob.run.plan import outline
    from sssjob.run.standing import Submission
    from sssjob.xml.reader import read_document

    document = read_document(shell("true").encode())
    submission = Submission(document, lambda: None)  # type: ignore[arg-type, return-value]
    submission.take_plan(outline(document))
    for status in statuses:
        submission.jobs[0].take(0, status, 0.0)
    return submission.jobs[0]


def _status(state: JobState, **metadata: Any) -> JobStatus:
    return JobStatus(state, metadata=metadata)


_START = {"start_time": 100.0, "sources": {"start_time": "start-record"}}
_AGAIN = {"start_time": 200.0, "sources": {"start_time": "start-record"}}


@pytest.mark.parametrize(("before", "then", "news", "state"), [
    ([_status(A, **_START)], _status(Q, submit_time=150.0, native_state="PD"), True, "Idle"),
    ([_status(A, **_START)], _status(Q, submit_time=50.0, native_state="PD"), True, "Idle"),    # too late for a list
    ([_status(A, **_START)], _status(Q, submit_time=50.0), False, "Running"),   # attached to a process
    ([_status(A, **_START)], _status(Q, submit_time=50.0, requeued=True), True, "Idle"),
    ([_status(A, start_time=1e12)], _status(Q, submit_time=50.0, native_state="PD"), False, "Running"),
    ([_status(A, **_START), _status(A, requeued=True, phase="HELD")], _status(A, **_START), False, "Hold"),
    ([_status(A, **_START), _status(Q, submit_time=150.0, native_state="PD")], _status(A, **_START), False, "Idle"),
    ([_status(A, **_START), _status(Q, submit_time=150.0, native_state="PD")], _status(A, **_AGAIN), True, "Running"),
    ([_status(A, **_START), _status(Q, submit_time=150.0, native_state="PD")],
     _status(A, requeued=True), False, "Idle"),
    ([_status(A, **_START), _status(A, phase="SUSPENDED")], _status(A, **_START), False, "Suspended"),
    ([_status(Q, waits="turn")], _status(Q), False, "Idle"), ([_status(Q)], _status(Q, waits="limit"), True, "Idle"),
    ([_status(Q)], _status(Q, phase="HELD", waits="held"), True, "Hold")])
def test_which_status_is_news(before: list[JobStatus], then: JobStatus, news: bool, state: str) -> None:
    job = _running(*before)
    assert (job.take(0, then, 0.0), facts._state(job.seen)) == (news, state)


def test_who_looks_again_and_again_leaves_nothing_behind(desk: Desk) -> None:
    """A server does, for as long as it runs: were the jobs of each look followed for ever, there would soon be more of
    them than the resource manager may be asked about, and no end would be seen any more."""
    for name in "ab":
        desk.submit(shell("until [ -e go ]; do sleep 0.05; done", name=name))
    client = desk.client()
    entries = [client.journal.entry(number) for number in client.journal.unclosed()]
    for _ in range(3):
        submissions, answered = client.look(entries)
        backend = submissions[0].executor()
        assert answered and isinstance(backend, BatchSchedulerExecutor)
        watcher = watcher_of(backend)
        assert watcher is not None and not watcher.all_followed()
    (desk.folder / "go").touch()
    until(lambda: all(submission.ended for submission in client.look(entries)[0]))
