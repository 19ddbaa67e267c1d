"""Words for the state of a job (Table 2 and the words of other systems), and who asks what they mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from sssjob.document.graph import derived_state
from sssjob.document.model import Document, Job, JobGroup, Requested, new_property
from sssjob.document.states import STATES, job_state
from sssjob.document.vocabulary import element
from sssjob.findings import Findings
from sssjob.request import Offer, match, request_of
from sssjob.run import make_plan
from sssjob.xml.writer import write_document
from tests.spec.support import document, told

#: The five words of the text, NotQueued of a submission, and the words of Maui (SSS 3.0): what they mean, the Hold and
#: the StatusMessage that they imply; None: nobody can say.
WORDS = """
    Idle        Idle      - -
    Hold        Hold      - -
    Running     Running   - -
    Suspended   Suspended - -
    Completed   Completed - -
    NotQueued   NotQueued - -
    idle        Idle      - -
    starting    Idle      - -
    running     Running   - -
    removed     Completed - removed
    completed   Completed - -
    held        Hold      - -
    deferred    Hold      Batch -
    submiterr   Completed - submission~failed
    vacated     Completed - vacated
    notrun      Idle      - -
    notqueued   NotQueued - -
    unknown     -         - -
    batchhold   Hold      Batch -
    userhold    Hold      User -
    systemhold  Hold      System -
    staging     Idle      - -
    staged      Idle      - -
    suspended   Suspended - -
    lost        -         - -
"""
ROWS = [[None if part == "-" else part.replace("~", " ") for part in line.split()]
        for line in WORDS.strip().splitlines()]


def job(state: str | None, **more: int) -> Job:
    items = [] if state is None else [new_property("State", state)]
    return Job([new_property("Id", "j"), *items, *(new_property(tag, n) for tag, n in more.items())])


@pytest.mark.parametrize(("word", "state", "hold", "message"), ROWS, ids=[str(r[0]) for r in ROWS])
def test_what_a_word_means(word: str, state: str | None, hold: str | None, message: str | None) -> None:
    for text in (word, word.upper(), f" {word}\n"):
        assert job_state(text) == (state, hold, message)


def test_there_are_no_other_words() -> None:
    assert set(STATES) == {str(word).lower() for word, state, *_ in ROWS if state is not None}
    assert {s.state for s in STATES.values()} == {*element("Job", "State").values, "NotQueued"}
    assert [job_state(v).state for v in ("Dreaming", "", None, 7)] == [None] * 4


@pytest.mark.parametrize(("word", "severity", "message"), [
    ("Idle", None, ""), ("running", "info", "State 'running' is taken for Running"),
    ("held", "warning", "State 'held' is taken for Hold"),
    ("deferred", "warning", "State 'deferred' is taken for Hold with Hold 'Batch'"),
    ("removed", "warning", "State 'removed' is taken for Completed with StatusMessage 'removed'"),
])
def test_check_tells_what_a_word_is_taken_for(word: str, severity: str | None, message: str) -> None:
    text = f"<Job><Id>j</Id><State>{word}</State></Job>"
    for profile in ("liberal", "3.1"):
        findings = told(text, profile)
        assert [(f.rule, f.severity, f.message) for f in findings] == (
            [] if severity is None else [("SSS420", severity, message)])


@pytest.mark.parametrize("text", [
    "<Job><Id>j</Id><State>Wibble</State></Job>", "<Job><Id>j</Id><State>lost</State></Job>",
    "<JobGroup><Id>g</Id><State>Running</State><Job>j</Job></JobGroup>",
])
def test_a_word_that_nobody_knows_is_a_doubt(text: str) -> None:
    for profile in ("liberal", "3.1"):
        assert [(f.rule, f.severity, f.subject) for f in told(text, profile)] == [("SSS424", "warning", "State")]


def test_a_document_keeps_its_own_word() -> None:
    text = "<Job>\n  <Id>j</Id>\n  <State>deferred</State>\n</Job>\n"
    assert write_document(document(text)) == text


@pytest.mark.parametrize(("words", "state"), [
    (["completed", "removed", "Vacated"], "Completed"), (["running", "notrun"], "Active"), (["SUSPENDED"], "Active"),
    (["notqueued", "NotQueued"], "NotQueued"), (["completed", "idle"], "Active"),
])
def test_the_state_of_a_group(words: list[str], state: str) -> None:
    assert derived_state(JobGroup([job(w) for w in words])) == state
    waiting = JobGroup([job("deferred", SubmitTime=1), job("userhold", SubmitTime=1)])
    assert derived_state(waiting) == "Unstarted"


@pytest.mark.parametrize(("word", "waits"), [
    ("idle", True), ("deferred", True), ("starting", True), ("unknown", True), (None, True), ("running", False),
    ("suspended", False), ("removed", False), ("completed", False),
])
def test_match_knows_who_still_waits(word: str | None, waits: bool) -> None:
    """A bare property is requested while the job waits, delivered when it has ended."""
    waiting = job(word, Processors=4)
    assert (str(request_of(waiting)) == "Job: Processors = 4") is waits
    done = word in ("removed", "completed")
    assert bool(Offer.of(waiting).used) is done
    assert match(Requested([new_property("Processors", 4)]), waiting).met


@pytest.mark.parametrize(("word", "code", "kept"), [
    ("Completed", 0, True), ("completed", 0, True), ("Completed", 1, False), ("removed", 0, False),
    ("running", 0, False), ("Dreaming", 0, False),
])
def test_resume_keeps_what_succeeded(word: str, code: int, kept: bool, tmp_path: Path) -> None:
    done = job(word, ExitCode=code)
    done.executable = "/bin/true"
    plan = make_plan(Document(done), Findings(), cwd=tmp_path, resume=True)
    assert [j.keep for j in plan.jobs] == [kept]


@pytest.mark.parametrize(("word", "rules"), [
    ("running", ["SSS305", "SSS420"]), ("suspended", ["SSS305", "SSS420"]), ("idle", ["SSS420"]),
    ("notqueued", ["SSS420"]),
])
def test_a_job_that_runs_has_an_id_under_any_word(word: str, rules: list[str]) -> None:
    assert [f.rule for f in told(f"<Job><State>{word}</State></Job>")] == rules
