"""Jobs that are tried again: each attempt a submission of its own, begun after the end of the one before, recorded and
counted; and failures that end the rest of a group."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path

import pytest

from psij import JobState, JobStatus
from sssjob.document.element import Property
from sssjob.document.failures import Retry
from sssjob.document.model import Job
from sssjob.run.attempts import Attempt, changes_of, end_of, together
from sssjob.run.facts import record
from sssjob.run.plan import outline
from sssjob.run.seen import Seen
from sssjob.xml.reader import read_document
from tests.run.support import Desk, after, desk_on, group, shell

STOPS_AT_3 = "echo $SSSJOB_ATTEMPT >> ran; test $SSSJOB_ATTEMPT = 3 || exit 75"


def retry(text: str) -> str:
    return f"<Extension type='Scheduler' name='Retry'>{text}</Extension>"


FAIL_FAST = "<Extension type='Scheduler' name='OnFailure'>fail-fast</Extension>"


def attempts(job: Job) -> list[str]:
    """The attempts that a document tells of, without what is another one each time."""
    def word(text: str) -> bool:
        return text.partition("=")[0] in ("exit", "signal", "retry")

    return [" ".join(filter(word, p.text.split())) for p in job.all("Extension") if p.get("name") == "Attempt"]


def test_an_exit_code_is_tried_again_until_it_is_another(desk: Desk) -> None:
    """Those that wait for the job wait for its last attempt."""
    outcome = desk.run(group(shell(STOPS_AT_3, retry("exit(75)=5 timeout")),
                             shell("echo well >> ran", after("a"), name="b"),
                             shell("echo badly >> ran", after("a", "OnFailure"), name="c")))
    assert [(job.label, job.word, job.exit_code) for job in outcome.jobs] == [
        ("a", "done", 0), ("b", "done", 0), ("c", "skipped", None)] or outcome.jobs[1].label == "c"
    assert desk.text("ran").split() == ["1", "2", "3", "well"]
    (job, _), *_ = outcome.document.jobs()
    assert (job.value("StartCount"), job.value("ExitCode"), job.value("StatusMessage")) == (3, 0, None)
    assert attempts(job) == ["exit=75 retry=exit(75)", "exit=75 retry=exit(75)", "exit=0"]
    natives = [p.text.split()[0] for p in job.all("Extension") if p.get("name") == "Attempt"]
    assert len(set(natives)) == 3
    assert [data["text"] for data in desk.events("a", "retry")] == [
        "attempt 2 after exit code 75", "attempt 3 after exit code 75"]
    assert len({data["tag"] for data in desk.events("a", "intent")}) == 3
    standing = desk.job("a")
    standing.refresh()
    assert (standing.plan.job.value("StartCount"), attempts(standing.plan.job)) == (3, attempts(job))


def test_used_up(desk: Desk) -> None:
    outcome = desk.run(group(shell("echo x >> ran; exit 4", retry("exit=2 total=1")),
                             shell("echo badly >> ran", after("a", "OnFailure"), name="b")))
    assert desk.text("ran").split() == ["x", "x", "badly"]
    assert (outcome.exit_code, outcome.jobs[0].word) == (0, "failed")
    assert str(outcome.jobs[0].job.value("StatusMessage")).startswith("exit code 4")


def test_an_attempt_begins_afresh(slurm: Desk) -> None:
    """Submissions that failed before were of the attempt before, and what has run had been released."""
    slurm.submit(shell("sleep 60"))
    job = slurm.job("a")
    job.tries, job.plan.held = 5, True
    job.begin_anew({"clause": "exit", "text": "attempt 2 after exit code 3"})
    assert (job.tries, job.on_hold) == (0, False)


def test_another_client_goes_on_with_it(desk: Desk) -> None:
    """Nobody watches while the first attempt ends, and its successor is not the manager's to start."""
    desk.submit(group(shell(STOPS_AT_3, retry("exit(75)=2")), shell("echo b >> ran", after("a"), name="b")))
    assert desk.told("b") == {}
    assert desk.wait("g") == {"a": ("done", 0), "b": ("done", 0)}
    assert desk.text("ran").split() == ["1", "2", "3", "b"]


def test_killed_after_the_decision_and_before_the_submission(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event is in the journal, the intent is not: the next client begins the attempt, once."""
    if desk.executor == "local":
        pytest.skip("its process is another one; the kill sweep has it")
    desk.submit(shell(STOPS_AT_3, retry("exit(75)=2")))

    def dies() -> None:
        from sssjob.run.submitting import Submitting

        monkeypatch.setattr(Submitting, "launch", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        desk.wait("a")

    desk.killed(dies)
    assert (len(desk.events("a", "retry")), len(desk.events("a", "intent"))) == (1, 1)
    assert desk.job("a").plan.job.value("StatusMessage") == "retry: attempt 2 after exit code 75"
    assert desk.wait("a") == {"a": ("done", 0)}
    assert desk.text("ran").split() == ["1", "2", "3"]


def test_cancel_ends_the_attempts(desk: Desk) -> None:
    desk.submit(shell("echo x >> ran; exec sleep 60", retry("failed=3 signal=3 exit=9")))
    stop = threading.Event()

    def begun() -> bool:
        return bool(desk.text("ran")) or stop.wait(0.05)

    for _ in range(600):
        if begun():
            break
    jobs, ended = desk.client().cancel(["a"], 60)
    assert ended and jobs[0].word == "canceled" and desk.events("a", "retry") == []
    assert desk.text("ran") == "x\n"


def test_a_cancel_between_two_attempts_leaves_the_end_of_the_first(slurm: Desk,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    from sssjob.run.submitting import Submitting

    slurm.submit(shell("echo x >> ran; exit 7", retry("exit=3")))
    with monkeypatch.context() as patch:
        patch.setattr(Submitting, "launch", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        slurm.killed(lambda: slurm.wait("a"))
    jobs, ended = slurm.client().cancel(["a"], 60)
    assert ended and jobs[0].outcome is not None
    for job in (jobs[0], slurm.job("a")):
        assert job.outcome is not None
        assert (job.word, job.outcome.exit_code, job.plan.job.value("ExitCode"), job.plan.job.value("StatusMessage")) \
            == ("failed", 7, 7, "exit code 7; not tried again: cancel: on request before it was started")
        assert next(iter(job.plan.job.containers("Delivered")), None) is not None
    assert slurm.text("ran") == "x\n"


@pytest.mark.parametrize(("state", "policy", "scripts"), [
    ("TIMEOUT", "timeout=3:Duration*2,max=3m", ["00:01:00", "00:02:00", "00:03:00"]),
    ("OUT_OF_MEMORY", "memory=2:Memory*1.5,max=1GB", ["--mem=600M", "--mem=900M", "--mem=1G"]),
    ("NODE_FAIL", "node-failure=1", ["00:01:00", "00:01:00"]),
    ("BOOT_FAIL", "node-failure=1", ["00:01:00", "00:01:00"]),
    ("PREEMPTED", "timeout failed=1", ["00:01:00", "00:01:00"]),
    ("DEADLINE", "failed=3", ["00:01:00"]),
    ("NODE_FAIL", "timeout", ["00:01:00"]),
])
def test_the_manager_is_asked_for_more(slurm: Desk, state: str, policy: str, scripts: list[str]) -> None:
    """Each attempt ends as the manager says; after it comes what the clause asks for, up to its limit."""
    assert slurm.lab is not None
    slurm.submit(shell("exec sleep 60", retry(policy), "<Requested><Duration>60</Duration>"
                       "<Memory units='MB'>600</Memory></Requested>"))
    for number in range(len(scripts)):
        jobs = slurm.lab.jobs()
        assert len(jobs) == number + 1
        slurm.lab.kill(jobs[-1], 9)
        slurm.lab.update(jobs[-1]["number"], state=state, end=slurm.lab.now(), exit=0, signal=0)
        client = slurm.client()
        client.wait(["a"], 60) if number + 1 == len(scripts) else client.look(
            [client.journal.entry(1)], 60)
        for _ in range(40):
            if number + 1 == len(scripts) or len(slurm.lab.jobs()) > number + 1:
                break
            client.look([client.journal.entry(1)], 5)
    made = slurm.lab.jobs()
    assert len(made) == len(scripts)
    assert [text in Path(job["script"]).read_text() for job, text in zip(made, scripts, strict=True)] == [
        True] * len(scripts)
    assert slurm.job("a").word == "failed"


def test_an_element_of_an_array_is_tried_again_alone(slurm: Desk) -> None:
    outcome = slurm.run(shell("echo $SLURM_ARRAY_TASK_ID >> ran; test $SLURM_ARRAY_TASK_ID$SSSJOB_ATTEMPT != 21",
                              "<Extension type='Scheduler' name='Array'>1-3%1</Extension>", retry("exit")))
    assert sorted(slurm.text("ran").split()) == ["1", "2", "2", "3"] and outcome.exit_code == 0


def test_a_class_that_the_manager_cannot_tell_is_refused(slurm: Desk, tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    assert slurm.refused(shell("true", retry("cpu-limit"))) == [("SSS602", "Extension")]
    assert slurm.refused(shell("true", retry("timeout:Duration*2"))) == [("SSS605", "Duration")]
    assert slurm.refused(shell("true", retry("nonsense"))) == [("SSS426", "Extension")]
    (tmp_path / "sge").mkdir()
    with desk_on("sge", tmp_path / "sge", monkeypatch) as other:
        assert other.refused(shell("true", retry("preempted"))) == [("SSS602", "Extension")]
        told = other.run(shell("true", "<Memory>100</Memory>", retry("memory:Memory*2"))).findings
        assert [f.severity for f in told if "Retry names memory: Grid Engine refuses" in f.message] == ["info"]


def test_what_a_job_says_counts_and_not_the_defaults_of_its_group() -> None:
    document = read_document(group(f"<JobDefaults>{retry('exit=2')}{FAIL_FAST}</JobDefaults>", shell("true"), shell(
        "true", retry("timeout"), name="b"), shell("true", retry("none"), FAIL_FAST.replace("fail-fast", "keep-going"),
                                                   name="c")).encode())
    plans = [(job.retry and str(job.retry.clauses[0]), job.fail_fast) for job in outline(document).jobs]
    assert plans == [("exit=2", True), ("timeout=1", True), (None, False)]


# --- what is known of several attempts

def ended(reason: str | None, code: int | None = None, state: JobState = JobState.FAILED, **known: object) -> Seen:
    metadata = {**({} if reason is None else {"reason": reason}), **known}
    return Seen(started=10.0, status=JobStatus(state, exit_code=code, metadata=metadata))


@pytest.mark.parametrize(("parts", "expected"), [
    ([ended("timeout")], ("timeout", None)),
    ([ended(None, 3)], (None, 3)),
    ([ended(None, 137, signal=9)], ("signal", 137)),
    ([ended(None, 0, JobState.COMPLETED), ended("memory")], ("memory", None)),
    ([ended("timeout"), ended("lost")], None),
    ([ended("timeout"), Seen()], None),
    ([ended("unknown-exit")], None),
    ([ended(None, None, JobState.CANCELED)], None),
    ([ended("timeout"), ended(None, None, JobState.CANCELED)], None),
    ([ended(None, 0, JobState.COMPLETED)], None),
    ([], None),
])
def test_only_a_failure_that_is_certain_is_followed_by_another_attempt(
        parts: list[Seen], expected: tuple[str | None, int | None] | None) -> None:
    assert end_of(parts) == expected


def test_use_of_all_attempts_is_counted() -> None:
    """Times of the last run, sums of time, the greatest memory; processors that changed say how long they were held."""
    first = Seen(native_id="7", submitted=1.0, started=10.0, status=JobStatus(JobState.FAILED, 70.0, "out", None, {
        "reason": "timeout", "start_time": 10, "end_time": 70, "wall_seconds": 60, "cpu_seconds": 50, "processors": 2,
        "memory_max_bytes": 4096, "native_state": "TIMEOUT", "nodes": ["n1"]}))
    last = Seen(native_id="8", submitted=80.0, started=100.0, status=JobStatus(JobState.COMPLETED, 130.0, None, 0, {
        "start_time": 100, "end_time": 130, "wall_seconds": 30, "cpu_seconds": 20, "processors": 4,
        "memory_max_bytes": 1024, "native_state": "COMPLETED", "nodes": ["n2"]}))
    job = Job()
    record(job, together([Attempt("timeout", (first,))], [last]))
    assert (job.value("SubmitTime"), job.value("StartTime"), job.value("EndTime"), job.value("StartCount"),
            job.value("CpuDuration"), job.value("ExitCode")) == (1, 100, 130, 2, 70, 0)
    (block,) = job.containers("Delivered")
    assert [(p.tag, p.text, p.get("duration")) for p in block.items if isinstance(p, Property)] == [
        ("Duration", "90", None), ("Processors", "2", "60"), ("Processors", "4", "30"),
        ("NodeCount", "1", None), ("Node", "n2", None), ("Memory", "4", None)]
    assert [p.text for p in job.all("Extension") if p.get("name") == "Attempt"] == [
        "native=7 start=10 end=70 state=TIMEOUT nodes=n1 retry=timeout",
        "native=8 start=100 end=130 exit=0 state=COMPLETED nodes=n2"]


def test_an_attempt_of_which_nobody_knows_its_end_leaves_no_sum() -> None:
    """Grid Engine knows of no start of a job whose node died: a client that looked an hour later charged that hour."""
    first = Seen(started=10.0, status=JobStatus(JobState.FAILED, 3600.0, None, None, {
        "reason": "node-failure", "starts": 1, "others": {"starts": {"qacct": 0}}}))
    job, alone = Job(), Job()
    record(alone, [first])
    record(job, together([Attempt("node-failure", (first,))], [
        ended(None, 0, JobState.COMPLETED, start_time=4000, end_time=4030, wall_seconds=30)]))
    assert (alone.value("EndTime"), job.value("EndTime"), job.value("StartCount")) == (None, 4030, 2)
    assert [block.first("Duration") for each in (alone, job) for block in each.containers("Delivered")] in (
        [None], [None, None])


def test_an_attempt_that_was_refused_leaves_the_facts_of_the_one_before() -> None:
    first = ended("node-failure", start_time=10, end_time=40, wall_seconds=30)
    refused = Seen(status=JobStatus(JobState.FAILED, 50.0, "no such queue", None, {"reason": "never-ran"}))
    job = Job()
    record(job, together([Attempt("node-failure", (first,))], [refused]))
    assert (job.value("StartTime"), job.value("EndTime"), job.value("StatusMessage"), job.value("StartCount")) == (
        10, 40, "never-ran: no such queue", 1)


def test_the_changes_of_all_clauses_come_one_after_the_other() -> None:
    policy = Retry.of("timeout=2:Duration*2 memory:Memory+1GB")
    assert [change.text for change in changes_of(policy, ["timeout", "memory", "timeout"])] == [
        "Duration*2", "Memory+1GB", "Duration*2"]
    assert Decimal(240) == changes_of(policy, ["timeout"])[0].of(Decimal(120))


# --- the rest of a group

def test_fail_fast(desk: Desk) -> None:
    """After its last attempt a failure ends what runs and leaves out what waits; what has ended stays as it is."""
    outcome = desk.run(group(f"<JobDefaults>{FAIL_FAST}</JobDefaults>", shell("exec sleep 60"),
                             shell("exit 3", retry("exit"), after("d"), name="b"),
                             shell("echo no >> ran", after("a"), name="c"), shell("true", name="d")))
    words = {job.label: (job.word, job.message) for job in outcome.jobs}
    assert words["a"] == ("canceled", "fail-fast: b failed")
    assert words["c"] == ("skipped", "fail-fast: b failed")
    assert (words["b"][0], words["d"][0], outcome.exit_code) == ("failed", "done", 3)
    assert desk.text("ran") == "" and len(desk.events("b", "retry")) == 1
    assert next(job.value("StatusMessage") for job, _ in outcome.document.jobs()) == "fail-fast: b failed"
    assert desk.job("a").plan.job.value("StatusMessage") == "fail-fast: b failed"


def test_a_failure_with_an_answer_ends_nothing(slurm: Desk) -> None:
    outcome = slurm.run(group(f"<JobDefaults>{FAIL_FAST}</JobDefaults>", shell("exit 3"),
                              shell("echo mended >> ran", after("a", "OnFailure"), name="b"),
                              shell("sleep 1; echo c >> ran", name="c")))
    assert sorted(slurm.text("ran").split()) == ["c", "mended"] and outcome.exit_code == 0


def test_fail_fast_of_an_array_and_not_of_others(slurm: Desk) -> None:
    outcome = slurm.run(shell("test $SLURM_ARRAY_TASK_ID != 1 || exit 2; exec sleep 60", FAIL_FAST,
                              "<Extension type='Scheduler' name='Array'>1-3</Extension>"))
    assert [(job.label, job.word) for job in outcome.jobs if job.label == "a_1"] == [("a_1", "failed")]
    assert {job.word for job in outcome.jobs if job.label != "a_1"} == {"canceled"} and outcome.exit_code == 2


def test_the_next_client_ends_the_rest(slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure is in the journal, and whoever saw it died before it did anything."""
    from sssjob.run.failing import Failing

    slurm.submit(group(f"<JobDefaults>{FAIL_FAST}</JobDefaults>", shell("exec sleep 60"), shell("exit 3", name="b")))
    with monkeypatch.context() as patch:
        patch.setattr(Failing, "end_groups", lambda _: None)
        slurm.killed(lambda: slurm.wait("b"))
    assert slurm.job("b").word == "failed"
    assert slurm.wait("g") == {"a": ("canceled", None), "b": ("failed", 3)}


# --- several task groups

GROUPS = ("<Job><Id>a</Id><Environment export='true'/>{}<TaskGroup><Executable>/bin/sh</Executable>"
          "<Arguments>-c 'echo one >> ran; sleep 1'</Arguments></TaskGroup><TaskGroup><Executable>/bin/sh</Executable>"
          "<Arguments>-c 'echo two >> ran; sleep 1; test $SSSJOB_ATTEMPT = 2 || exit 3'</Arguments></TaskGroup></Job>")


@pytest.mark.parametrize("desk", ["local"], indirect=True)
def test_all_task_groups_are_started_again(desk: Desk) -> None:
    outcome = desk.run(GROUPS.format(retry("exit(3)=4")))
    assert sorted(desk.text("ran").split()) == ["one", "one", "two", "two"]
    ((job, _),) = outcome.document.jobs()
    assert (outcome.exit_code, job.value("StartCount")) == (0, 2)
    (block,) = job.containers("Delivered")
    duration = block.value("Duration")
    assert isinstance(duration, int) and duration >= 2      # of both attempts
    assert [p.text.split()[-1] for p in job.all("Extension") if p.get("name") == "Attempt"].count("retry=exit(3)") == 2
