"""Executor ``iri``: jobs of a facility; against a real server of ours, and against one that does what is wrong."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from psij import (
    InvalidJobException,
    InvalidStateException,
    Job,
    JobAttributes,
    JobExecutor,
    JobSpec,
    JobState,
    ResourceSpecV1,
    SubmitException,
)
from psij.executors import _rest_calls
from psij.executors._rest_calls import Facility
from psij.executors.iri import IRIExecutorConfig, IRIJobExecutor, facility_form
from psij.staging import StageIn
from sssjob.conversion.settings import Layer, Settings, Value
from sssjob.run.client import Client
from sssjob.run.journal import open_journal
from sssjob.xml.reader import read_document
from tests.serve.conftest import Place, served


def executor(url: str, token: Path | None, resource: str | None = "local") -> IRIJobExecutor:
    config = IRIExecutorConfig(url=url, resource=resource, token_file=token, polling_interval=0.05, request_timeout=10,
                               lost_after=0.1)
    executor = JobExecutor.get_instance("iri", config=config)
    assert isinstance(executor, IRIJobExecutor)
    return executor


def token_of(folder: Path, text: str = "Tamy\n") -> Path:
    path = folder / "token"
    path.write_text(text)
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with served(tmp_path_factory.mktemp("facility"), follow_s=0.2) as server:
        yield server


@pytest.fixture(params=["v1", "v2"])
def facility(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> IRIJobExecutor:
    return executor(f"http://127.0.0.1:{place.port}/api/{request.param}", token_of(tmp_path))


def test_jobs_run_at_a_facility(facility: IRIJobExecutor, place: Place, tmp_path: Path) -> None:
    """Submitted, followed to its end with its exit code, attached to, listed and cancelled; the token is in no log."""
    job = Job(JobSpec("/bin/sh", ["-c", "echo $WORD; exit 3"], environment={"WORD": "there"},
                      stdout_path=tmp_path / "out", resources=ResourceSpecV1(node_count=1),
                      attributes=JobAttributes(timedelta(minutes=5))))
    states: list[JobState] = []
    facility.set_job_status_callback(lambda job, status: states.append(status.state))
    facility.submit(job)
    status = job.wait(timedelta(seconds=30))
    assert status is not None and (status.state, status.exit_code) == (JobState.FAILED, 3)
    assert states[0] is JobState.QUEUED and states[-1] is JobState.FAILED
    assert (tmp_path / "out").read_text() == "there\n"
    other = Job()
    facility.attach(other, str(job.native_id))
    status = other.wait(timedelta(seconds=30))
    assert status is not None and (status.state, status.exit_code) == (JobState.FAILED, 3)

    long = Job(JobSpec("/bin/sleep", ["60"]))
    with pytest.raises(InvalidStateException):
        facility.cancel(long)
    facility.submit(long)
    assert facility.list() == [long.native_id]
    long.cancel()
    status = long.wait(timedelta(seconds=30))
    assert status is not None and status.state is JobState.CANCELED
    long.cancel()
    assert "Tamy" not in place.audit.read_text()
    facility.submit(Job(JobSpec("/bin/true")))
    with pytest.raises(InvalidJobException, match="Extension such: the executor local does not honour it"):
        facility.submit(Job(JobSpec("/bin/true", attributes=JobAttributes(custom_attributes={"no.such": "x"}))))


def test_many_jobs_are_asked_for_by_pages(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psij.executors.iri._FEW", 2)
    monkeypatch.setattr("psij.executors.iri._PAGE", 2)
    facility = executor(f"http://127.0.0.1:{place.port}/api/v2", token_of(tmp_path, "Tbob"))
    jobs = [Job(JobSpec("/bin/true")) for _ in range(4)]
    facility.submit_all(jobs)
    for job in jobs:
        job.wait(timedelta(seconds=60))
    assert [job.status.state for job in jobs] == [JobState.COMPLETED] * 4


def test_documents_run_at_a_facility(place: Place, tmp_path: Path) -> None:
    """By the settings of sssjob; the journal here follows what the journal there runs."""
    stated = {"facility": f"http://127.0.0.1:{place.port}/api/v2", "resource": "local",
              "token_file": str(token_of(tmp_path)), "polling_interval": 0.1}
    settings = Settings([Layer({name: Value(value, "test") for name, value in stated.items()})])
    document = read_document(b"<Job><Id>far</Id><Executable>/bin/sh</Executable>"
                             b"<Arguments>-c 'exit 4'</Arguments></Job>")
    with open_journal(tmp_path / "journal.db") as journal:
        client = Client(journal, settings=settings)
        submission = client.submit(document, "iri", cwd=tmp_path)
        assert submission is not None and submission.jobs[0].row.native_id is not None
        (job,), ended = client.wait(["far"], 30)
        assert ended and (job.row.outcome, job.row.exit_code) == ("failed", 4)
    with open_journal(place.journal) as journal:
        row = journal.rows()[-1]
        assert row.exit_code == 4
        assert "<Duration" not in journal.entry(row.submission).document


Answer = tuple[int, str, dict[str, str]]        # status, body, further headers


class Wrong(ThreadingHTTPServer):
    """A facility that answers what it is told to. asked: what came: method, path, key, token, body."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[Answer | None] = []
        self.asked: list[tuple[str, str, str | None, str | None, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/api/v2"


class _Handler(BaseHTTPRequestHandler):
    server: Wrong
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.command, self.path, self.headers["Idempotency-Key"],
                                  self.headers["Authorization"], json.loads(body) if body else None))
        answer = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
        if answer is None:      # it is done, and the answer is lost
            self.close_connection = True
            return
        status, text, headers = answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


for method in ("GET", "POST", "DELETE"):
    setattr(_Handler, f"do_{method}", _Handler._answer)


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wrong]:
    monkeypatch.setattr(_rest_calls, "_PAUSE_S", 0.01)
    server = Wrong()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


DONE: Answer = (200, '{"id": "7", "status": {"state": "completed", "exit_code": 0}}', {})


def test_a_submission_is_sent_again_under_its_key(wrong: Wrong, tmp_path: Path) -> None:
    """Where the answer was lost, or the facility was busy: the key is that of the job, so that it makes one."""
    wrong.answers = [None, (503, "", {}), (429, "", {"Retry-After": "0"}), DONE]
    job = Job(JobSpec("/bin/true"))
    facility = executor(wrong.url, token_of(tmp_path))
    facility.submit(job)
    assert job.status.state is JobState.COMPLETED and job.native_id == "7"
    assert [one[:4] for one in wrong.asked] == [("POST", "/api/v2/compute/job/local", job.id, "Bearer Tamy")] * 4
    assert wrong.asked[0][4] == {
        "name": "/bin/true", "executable": "/bin/true", "attributes": {"duration": 600}}
    with pytest.raises(InvalidStateException):
        facility.submit(job)


@pytest.mark.parametrize("answer, kind, transient, words", [
    ((422, '{"detail": "queue_name: no such queue"}', {}), InvalidJobException, None, "no such queue"),
    ((401, "", {}), SubmitException, False, "Unauthorized"),
    ((302, "", {"Location": "http://127.0.0.1:1/"}), SubmitException, False, "302"),
    ((200, "<html>", {}), SubmitException, True, "is no JSON"),
    ((200, "[" * 100_000, {}), SubmitException, True, "is no JSON"),
    ((200, '{"id": 7}', {}), SubmitException, False, "did not say what it is called"),
    ((503, '{"title": "down\\u001b[2J"}', {}), SubmitException, True, r"down\?\[2J"),
    (None, SubmitException, True, "does not answer")])
def test_what_a_facility_does_not_do(wrong: Wrong, answer: Answer | None,
                                     kind: type[Exception], transient: bool | None, words: str) -> None:
    """It is told by the facility's own words; the job is NEW and can be submitted again."""
    wrong.answers = [answer]
    job = Job(JobSpec("/bin/true"))
    with pytest.raises(kind, match=words) as error:
        executor(wrong.url, None).submit(job)
    assert job.status.state is JobState.NEW
    assert transient is None or getattr(error.value, "transient", None) is transient
    wrong.answers = [DONE]
    executor(wrong.url, None).submit(job)
    assert len({one[2] for one in wrong.asked}) == 1


def test_answers_too_long_are_not_read(wrong: Wrong, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rest_calls, "_LONGEST", 1000)
    wrong.answers = [(200, '"' + "x" * 2000 + '"', {})]
    with pytest.raises(SubmitException, match="longer than 1000 bytes"):
        executor(wrong.url, None).list()


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n",
                                  b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"HTTP/1.1 503 No\r\n\r\n"])
def test_an_answer_that_comes_byte_by_byte(head: bytes) -> None:
    """Each piece came in time, and the client waited for as long as they came."""
    over = threading.Event()

    def drip(server: socket.socket) -> None:
        line, _ = server.accept()
        with line, suppress(OSError):
            line.sendall(head)
            while not over.wait(0.05):
                line.sendall(b"X: y\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        with pytest.raises(SubmitException, match="does not answer: timed out"):
            Facility(f"http://127.0.0.1:{server.getsockname()[1]}/api", None, 0.3).ask("POST", "jobs")
        over.set()
        thread.join()


def test_states_stay_while_nothing_is_heard(wrong: Wrong, caplog: pytest.LogCaptureFixture) -> None:
    """That is logged once. What is no state says nothing; a job that the facility forgets is lost after a while."""
    caplog.set_level(logging.WARNING, "psij")
    active: Answer = (200, '{"id": "7", "status": {"state": "active"}}', {})
    odd: list[Answer] = [(200, text, {}) for text in (
        "[]", "null", '{"status": {"state": 5}}', '{"status": {"state": "resting"}}')]
    wrong.answers = [active, (401, "", {}), (401, "", {}), *odd, (404, "", {})]
    job = Job(JobSpec("/bin/true"))
    executor(wrong.url, None).submit(job)
    assert job.status.state is JobState.ACTIVE
    status = job.wait(timedelta(seconds=20))
    assert status is not None and (status.state, status.metadata) == (JobState.FAILED, {"reason": "lost"})
    assert [record.message for record in caplog.records] == [
        "executor iri: nothing is heard of 1 job: 127.0.0.1 refuses it (401): Unauthorized"]


def test_tokens(wrong: Wrong, tmp_path: Path) -> None:
    """Are read anew for each request, by their owner only, and are sent over TLS or to this machine only."""
    wrong.answers = [(200, "[]", {})]
    token = token_of(tmp_path, "first")
    facility = executor(wrong.url, token)
    facility.list()
    token.write_text("second\n")
    facility.list()
    assert [one[3] for one in wrong.asked] == ["Bearer first", "Bearer second"]
    for text, mode, words in (("", 0o600, "has no token"), ("two\nlines", 0o600, "has no token"),
                              ("third", 0o640, "can be read by others"), (None, 0, "cannot be read")):
        token.unlink()
        if text is not None:
            token.write_text(text)
            token.chmod(mode)
        with pytest.raises(SubmitException, match=words):
            facility.list()
    assert len(wrong.asked) == 2


@pytest.mark.parametrize("url", ["ftp://a/b", "http://", "http://192.0.2.1/api/v2", "https://amy:secret@a/api",
                                 "https://a/api?x=1"])
def test_addresses_that_are_none(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        Facility(url, token_of(tmp_path), 1.0)
    with pytest.raises(InvalidJobException):
        executor(url, token_of(tmp_path)).submit(Job(JobSpec("/bin/true")))


def test_what_is_not_stated() -> None:
    for facility in (executor("http://127.0.0.1:1/api", None, None), IRIJobExecutor()):
        with pytest.raises(InvalidJobException, match="needs the address of a facility"):
            facility.submit(Job(JobSpec("/bin/true")))


@pytest.mark.parametrize("spec, members", [
    (JobSpec("/x", attributes=JobAttributes(account="chem")),      # the form has no project_name
     {"name": "/x", "executable": "/x", "attributes": {"duration": 600, "account": "chem"}}),
    (JobSpec("/x"), {"name": "/x", "executable": "/x", "attributes": {"duration": 600}}),
    (JobSpec("/x", attributes=JobAttributes(None)), {"name": "/x", "executable": "/x", "attributes": {}}),
    (JobSpec("/x", resources=ResourceSpecV1(process_count=2), attributes=JobAttributes(
        timedelta(hours=1), "debug", custom_attributes={"slurm.nice": 5})),
     {"name": "/x", "executable": "/x", "resources": {"process_count": 2, "exclusive_node_use": False}, "attributes": {
         "duration": 3600, "queue_name": "debug", "custom_attributes": {"slurm.nice": "5"}}}),
    (JobSpec("/x", inherit_environment=False, resources=ResourceSpecV1(node_count=1, exclusive_node_use=True)),
     {"name": "/x", "executable": "/x", "inherit_environment": False, "attributes": {"duration": 600},
      "resources": {"node_count": 1, "exclusive_node_use": True}})])
def test_the_form_that_a_facility_takes(spec: JobSpec, members: dict[str, Any]) -> None:
    assert facility_form(spec) == members


@pytest.mark.parametrize("make", [
    lambda: JobSpec("/x", stage_in={StageIn("a", "b")}),
    lambda: JobSpec("/x", attributes=JobAttributes(timedelta(seconds=1.5)))])
def test_what_has_no_place_there(make: Callable[[], JobSpec]) -> None:
    with pytest.raises(InvalidJobException):
        facility_form(make())
