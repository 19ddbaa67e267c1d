"""Executor ``arc``: jobs of a computing element, against a stand-in that runs them (``tests.fakes.arc``)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from psij import (
    InvalidJobException,
    InvalidStateException,
    Job,
    JobAttributes,
    JobExecutor,
    JobSpec,
    JobState,
    JobStatus,
    QueueFullException,
    ResourceSpecV1,
    SubmitException,
)
from psij.executors import _rest_calls
from psij.executors._arc_description import describe
from psij.executors.arc import ARCExecutorConfig, ARCJobExecutor
from psij.staging import StageIn, StageOut, StageOutFlags, StagingMode
from sssjob.conversion.settings import Layer, Settings, Value
from sssjob.run.client import Client
from sssjob.run.journal import open_journal
from sssjob.xml.reader import read_document
from tests.fakes.arc import ADL, Arc, served


@pytest.fixture
def element(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arc]:
    monkeypatch.setattr(_rest_calls, "_PAUSE_S", 0.001)
    (tmp_path / "ce").mkdir()
    with served(tmp_path / "ce") as server:
        yield server


@pytest.fixture
def executor(element: Arc, tmp_path: Path) -> ARCJobExecutor:
    return executor_of(element.url, tmp_path)


def executor_of(url: str | None, folder: Path, user: str = "amy") -> ARCJobExecutor:
    token = folder / user
    token.write_text(f"T{user}\n")
    token.chmod(0o600)
    config = ARCExecutorConfig(url=url, token_file=token, polling_interval=0.01, request_timeout=10, lost_after=0.05,
                               accounting_delay=0.05, work_directory=folder / "work")
    executor = JobExecutor.get_instance("arc", config=config)
    assert isinstance(executor, ARCJobExecutor)
    return executor


def end_of(job: Job) -> JobStatus:
    status = job.wait(timedelta(seconds=30))
    assert status is not None
    return status


def test_a_job_with_files_runs_to_its_end(executor: ARCJobExecutor, element: Arc, tmp_path: Path) -> None:
    """A program and input that lie here go there; streams and results come back; nothing is left of its record."""
    (tmp_path / "count.sh").write_text("#!/bin/sh\nwc -l <data/in >result; cat; echo \"$WORD\" \"$1\" >&2; exit 3\n")
    (tmp_path / "lines").write_text("1\n2\n")
    (tmp_path / "words").write_text("from stdin")
    job = Job(JobSpec("./count.sh", ["a <b>\n& c"], directory=tmp_path, environment={"WORD": "é"}, stdin_path="words",
                      stdout_path="out", stderr_path=tmp_path / "err", resources=ResourceSpecV1(node_count=1),
                      stage_in=[StageIn(tmp_path / "lines", "data/in")],
                      stage_out=[StageOut("result", tmp_path / "result"),
                                 StageOut("none", tmp_path / "none", StageOutFlags.IF_PRESENT),
                                 StageOut("result", tmp_path / "not", StageOutFlags.ON_SUCCESS)]))
    states: list[JobState] = []
    executor.set_job_status_callback(lambda job, status: states.append(status.state))
    executor.submit(job)
    status = end_of(job)
    assert (status.state, status.exit_code, status.message) == (JobState.FAILED, 3, "LRMS error: (3) Job failed")
    assert status.metadata == {
        "native_id": "id1", "native_state": "FAILED", "start_time": 1795755610.0, "end_time": 1795755620.0,
        "wall_seconds": 10.0, "nodes": ["n1"], "queue": "main", "processors": 1}
    assert states == [JobState.QUEUED, JobState.STAGE_IN, JobState.ACTIVE, JobState.FAILED]
    assert (tmp_path / "out").read_text() == "from stdin"
    assert (tmp_path / "err").read_text() == "é a <b>\n& c\n"
    assert (tmp_path / "result").read_text().strip() == "2"
    assert not (tmp_path / "none").exists() and not (tmp_path / "not").exists()
    assert [*(tmp_path / "work" / "arc").iterdir()] == []
    assert element.jobs["id1"].text("ActivityIdentification/Name") == "./count.sh"


@pytest.mark.parametrize("listed", [True, False])
def test_other_users_lists_and_cancelling(executor: ARCJobExecutor, element: Arc, tmp_path: Path, listed: bool) -> None:
    """Also where one job of an answer is in no list. A job of another user is as good as none."""
    element.listed = listed
    assert executor.list() == []
    job, other = Job(JobSpec("cat", stdin_path=tmp_path / "amy")), Job()
    with pytest.raises(InvalidStateException):
        executor.cancel(job)
    element.refused_files = 503             # so that it waits for its input
    executor.submit(job)
    assert executor.list() == ["id1"]
    bob = executor_of(element.url, tmp_path, "bob")
    assert bob.list() == []
    bob.attach(other, "id1")
    assert (end_of(other).state, other.status.metadata) == (JobState.FAILED, {"reason": "lost"})
    assert not job.status.final
    job.cancel()
    assert end_of(job).state is JobState.CANCELED
    job.cancel()
    executor.attach(again := Job(), "id1")
    assert end_of(again).state is JobState.CANCELED


def test_files_that_cannot_be_brought_at_once(executor: ARCJobExecutor, element: Arc, tmp_path: Path) -> None:
    """They are brought later, by whoever follows the job; a job whose files are refused is ended."""
    element.refused_files = 503
    job = Job(JobSpec("cat", stdin_path=tmp_path / "amy", stdout_path=tmp_path / "out"))
    executor.submit(job)
    assert job.status.state is JobState.QUEUED and element.jobs["id1"].awaited == {"stdin"}
    executor._followed.clear()                          # as if that process had ended
    element.refused_files = 0
    later = Job()
    later._id = job.id
    executor_of(element.url, tmp_path).attach(later, "id1")
    assert end_of(later).state is JobState.COMPLETED and later.status.exit_code == 0
    assert (tmp_path / "out").read_text() == "Tamy\n"
    element.refused_files = 403
    job = Job(JobSpec("cat", stdin_path=tmp_path / "amy"))
    executor.submit(job)
    assert (job.status.state, job.status.message) == (
        JobState.FAILED, "a file cannot be brought: 127.0.0.1 refuses it (403): Forbidden")
    assert element.jobs["id2"].state == "KILLING"


@pytest.mark.parametrize("record", [True, False])
def test_records_that_are_late(executor: ARCJobExecutor, element: Arc, record: bool) -> None:
    """A job that is FINISHED has ended with 0, for its description says that anything else fails."""
    element.record = record
    job = Job(JobSpec("/bin/true"))
    executor.submit(job)
    assert (end_of(job).state, job.status.exit_code) == (JobState.COMPLETED, 0)
    assert executor.list() == []


def test_a_failure_without_a_code(executor: ARCJobExecutor, element: Arc, tmp_path: Path) -> None:
    """It says no code; results that a job did not make are told with what failed."""
    element.record = False
    job = Job(JobSpec("/bin/false", stage_out=[StageOut("result", tmp_path / "result")]))
    executor.submit(job)
    assert (end_of(job).state, job.status.exit_code, job.status.message) == (
        JobState.FAILED, None, "LRMS error: (1) Job failed; files could not be fetched: result is not there")
    job = Job(JobSpec("/bin/true", stage_out=[StageOut("result", tmp_path / "result")]))
    executor.submit(job)
    assert end_of(job).state is JobState.FAILED


def test_a_job_whose_answer_was_cut_off_is_found(executor: ARCJobExecutor, element: Arc) -> None:
    """By its id in its description, among others of the user: one job is made."""
    executor.submit(Job(JobSpec("/bin/true")))
    element.faults = ["cut"]
    job = Job(JobSpec("/bin/true"))
    executor.submit(job)
    assert job.native_id == "id2" and element.made == 2
    assert executor.native_id_of(job.id) == "id2" and executor.native_id_of("another") is None
    assert not executor.may_have_made(job)
    assert end_of(job).state is JobState.COMPLETED


def test_a_job_that_may_be_there_is_not_made_twice(executor: ARCJobExecutor, element: Arc,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows where the search has no answer either; submitted again, it is searched for first."""
    make = element.make

    def make_and_go_down(user: str, text: str) -> dict[str, str]:
        element.down = 503
        return make(user, text)

    monkeypatch.setattr(element, "make", make_and_go_down)
    element.faults = ["cut", "lost"]
    job = Job(JobSpec("/bin/true"))
    with pytest.raises(SubmitException) as error:
        executor.submit(job)
    assert error.value.transient and executor.may_have_made(job) and job.status.state is JobState.NEW
    element.down = 0
    executor.submit(job)
    assert job.native_id == "id1" and element.made == 1
    lost = Job(JobSpec("/bin/true"))
    with pytest.raises(SubmitException, match="does not answer"):
        executor.submit(lost)
    monkeypatch.undo()
    executor.submit(lost)
    assert lost.native_id == "id2" and element.made == 2


@pytest.mark.parametrize("fault, kind, words", [
    ({"status-code": "500", "reason": "It\u001b is wrong"}, InvalidJobException, r"It\? is wrong"),
    ({"status-code": "500", "reason": "No more jobs allowed"}, QueueFullException, "No more jobs allowed"),
    ({"status-code": "201", "reason": "Created"}, InvalidJobException, "refuses the job: Created"),
    (501, InvalidJobException, "Not Implemented"), (403, SubmitException, "Forbidden"),
    (500, SubmitException, "Internal Server Error")])
def test_refusals(executor: ARCJobExecutor, element: Arc, fault: Any, kind: type[Exception], words: str,
                  tmp_path: Path) -> None:
    """The job is NEW and can be submitted again; no record is left of what is certainly not there."""
    element.faults = [fault]
    job = Job(JobSpec("/bin/true"))
    with pytest.raises(kind, match=words):
        executor.submit(job)
    assert job.status.state is JobState.NEW
    assert len([*(tmp_path / "work" / "arc").iterdir()]) == (fault == 500)
    executor.submit(job)
    assert end_of(job).state is JobState.COMPLETED


def test_states_stay_while_nothing_is_heard(executor: ARCJobExecutor, element: Arc, tmp_path: Path,
                                            caplog: pytest.LogCaptureFixture) -> None:
    """However long that is: only what the computing element does not know is lost."""
    caplog.set_level(logging.WARNING, "psij")
    element.refused_files = 503
    job = Job(JobSpec("cat", stdin_path=tmp_path / "amy"))
    executor.submit(job)
    element.down = 401
    assert job.wait(timedelta(seconds=0.2)) is None and job.status.state is JobState.QUEUED
    assert len(caplog.records) == 1
    element.refused_files = element.down = 0
    assert end_of(job).state is JobState.COMPLETED


def test_what_a_description_holds(tmp_path: Path) -> None:
    spec = JobSpec("sh", ["-c", "echo $${X} $Y ${A}"], name="a & b", environment={"A": "1", "B": "<${A}>"},
                   stdout_path=tmp_path / "both", stderr_path=tmp_path / "both", stdin_path="/dev/null",
                   resources=ResourceSpecV1(node_count=2, processes_per_node=3, cpu_cores_per_process=2,
                                            exclusive_node_use=True, memory=25),
                   attributes=JobAttributes(timedelta(seconds=60.5), "long", custom_attributes={"slurm.nice": 5}))
    described = describe(spec, "t<1")
    tree = ElementTree.fromstring(described.text)
    texts = [(each.tag.removeprefix(ADL), each.text) for each in tree.iter() if each.text and each.text.strip()]
    assert texts == [
        ("Name", "a & b"), ("Annotation", "psij:t<1"), ("Path", ".psij-start.sh"), ("FailIfExitCodeNotEqualTo", "0"),
        ("Output", "stdout"), ("Error", "stdout"), ("IndividualPhysicalMemory", "3"), ("WallTime", "61"),
        ("NumberOfSlots", "12"), ("SlotsPerHost", "6"), ("ExclusiveExecution", "true"), ("QueueName", "long"),
        ("Name", ".psij-start.sh"), ("IsExecutable", "true"), ("Name", "/")]
    assert described.script == """\
#!/bin/bash
rm -f -- "$0"
export A=1
export B='<1>'
exec -- /usr/bin/env sh -c 'echo ${X} $Y 1'
"""
    assert described.inputs == {} and [one.path for one in described.outputs] == [str(tmp_path / "both")]
    plain = describe(JobSpec("echo", ["a", "b=1"], environment={"A": "1"}), "t")
    words = [each.text for each in ElementTree.fromstring(plain.text)[1].iter() if each.text and each.text.strip()]
    assert words == ["/usr/bin/env", "echo", "a", "b=1", "0", "A", "1"] and plain.script is None
    odd = describe(JobSpec("echo", ["a"], environment={"A": "1", "B-C": "2", "PWD": "3"}), "t").script
    assert odd is not None
    assert odd.splitlines()[2:] == ["export A=1", "exec -- /usr/bin/env B-C=2 PWD=3 /usr/bin/env echo a"]
    bare = describe(JobSpec("/bin/true", attributes=JobAttributes(None)), "t").text
    assert "WallTime" not in bare and "SlotsPerHost" not in bare and "Queue" not in bare


@pytest.mark.parametrize("members, words", [
    ({"launcher": "mpirun"}, "without a launcher"), ({"pre_launch": "x"}, "pre_launch"),
    ({"cleanup": ["x"]}, "cleanup"),
    ({"attributes": JobAttributes(account="chem")}, "no account"),
    ({"attributes": JobAttributes(reservation_id="r")}, "no reservation"),
    ({"resources": ResourceSpecV1(gpu_cores_per_process=1)}, "GPUs"),
    ({"attributes": JobAttributes(custom_attributes={"arc.x": 1})}, "no option arc.x"),
    ({"attributes": JobAttributes(custom_attributes={"psij.stdout_mode": "append"})}, "no option psij.stdout_mode"),
    ({"arguments": ["${HOME}"]}, "whose value is not known"), ({"environment": {"A": "${B}"}}, "variable A"),
    ({"attributes": JobAttributes(queue_name="\x01")}, "0x01"), ({"executable": "a=b"}, "env would take it"),
    ({"executable": "./none"}, "is not a file here"), ({"stdin_path": "none"}, "is not a file here"),
    ({"stdout_path": "none/out"}, "its directory is not there"), ({"stdout_path": "."}, "it is a directory"),
    ({"stage_in": [StageIn("f", "../f")]}, "not inside"), ({"stage_in": [StageIn("f", "/f")]}, "not inside"),
    ({"stage_in": [StageIn("http://h/f", "f")]}, "not a file here"),
    ({"stage_in": [StageIn("f", "stdout")]}, "another"),
    ({"stage_in": [StageIn("f", "f", StagingMode.MOVE)]}, "not moved"),
    ({"stage_in": [StageIn("f", "g"), StageIn("h", "g")]}, "another"),
    ({"stage_out": [StageOut("f", "ftp://h/f")]}, "not a file here")])
def test_what_has_no_place_there(members: dict[str, Any], words: str, tmp_path: Path,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "fh":
        (tmp_path / name).write_text("")
    with pytest.raises(InvalidJobException, match=words):
        describe(JobSpec(**{"executable": "/x", **members}), "t")


def test_what_is_not_stated(tmp_path: Path) -> None:
    for executor in (executor_of(None, tmp_path), ARCJobExecutor(), executor_of("http://192.0.2.1", tmp_path)):
        with pytest.raises(InvalidJobException, match=r"needs the address|without TLS"):
            executor.submit(Job(JobSpec("/bin/true")))


def test_documents_run_at_a_computing_element(element: Arc, tmp_path: Path) -> None:
    """By the settings of sssjob. Another process follows the job, and fetches what the first one left there; a program
    that the document brings goes along."""
    executor_of(None, tmp_path)
    stated = {"facility": element.url.removesuffix("/rest/1.0"), "token_file": str(tmp_path / "amy"),
              "polling_interval": 0.01, "accounting_delay": 0.05, "work_directory": str(tmp_path / "work")}
    settings = Settings([Layer({name: Value(value, "test") for name, value in stated.items()})])
    document = read_document(
        b"<Request action='Submit'><Object>Job</Object><Data><Job><Id>far</Id><Executable>#s</Executable>"
        b"<OutputFile>out</OutputFile></Job></Data><File id='s'>#!/bin/sh\necho there; exit 4\n</File></Request>")
    with open_journal(tmp_path / "journal.db") as journal:
        submission = Client(journal, settings=settings).submit(document, "arc", cwd=tmp_path)
        assert submission is not None and submission.jobs[0].row.native_id == "id1"
        (job,), ended = Client(journal, settings=settings).wait(["far"], 30)
        assert ended and (job.row.outcome, job.row.exit_code) == ("failed", 4)
    assert (tmp_path / "out").read_text() == "there\n"


def test_jobs_that_were_submitted_elsewhere(element: Arc, executor: ARCJobExecutor, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal follows one by the settings that held when it took the job; a client without settings can say no
    more than that it hears nothing."""
    monkeypatch.setattr("sssjob.run.client.LOOK_S", 1.0)       # for so long it listens
    job = Job(JobSpec("/bin/false"))
    executor.submit(job)
    end_of(job)
    stated = {"facility": element.url, "token_file": str(tmp_path / "amy"), "accounting_delay": 0.05}
    settings = Settings([Layer({name: Value(value, "test") for name, value in stated.items()})])
    with open_journal(tmp_path / "journal.db") as journal:
        Client(journal, settings=settings).attach("arc", "id1")
        (followed,), ended = Client(journal, settings=Settings([])).wait(["id1"], 30)
        assert ended and (followed.row.outcome, followed.row.exit_code) == ("failed", 1)
        Client(journal, settings=Settings([])).attach("arc", "id9")
        (followed,), ended = Client(journal, settings=Settings([])).wait(["id9"], 0.1)
        assert not ended and followed.row.outcome is None
