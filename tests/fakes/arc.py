"""A stand-in for the REST interface of A-REX, on loopback: it runs what its jobs say, a step with each question.

Jobs have users (the token), a session directory and a description. What it answers has the shapes of A-REX 6 and 7.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree

ADL = "{http://www.eu-emi.eu/es/2010/12/adl}"
STEPS = ("ACCEPTING", "ACCEPTED", "PREPARING", "SUBMITTING", "QUEUING", "RUNNING", "EXITINGLRMS", "FINISHING")
ENDS = ("FINISHED", "FAILED", "KILLED")


@dataclass
class ArcJob:
    """A job there. steps: the states that are still to come; code: of what has run; error: why it failed."""

    user: str
    description: str
    session: Path
    awaited: set[str]
    steps: list[str] = field(default_factory=lambda: list(STEPS))
    state: str = "ACCEPTING"
    code: int | None = None
    error: str = ""
    had: list[str] = field(default_factory=list)

    def text(self, path: str) -> str | None:
        return ElementTree.fromstring(self.description).findtext("/".join(ADL + part for part in path.split("/")))

    def texts(self, path: str) -> list[str]:
        parts = "/".join(ADL + part for part in path.split("/"))
        return [each.text or "" for each in ElementTree.fromstring(self.description).findall(parts)]

    def step(self) -> None:
        """One step on. It waits in PREPARING for its input."""
        if self.state in ENDS or (self.state == "PREPARING" and self.awaited):
            return
        if self.state == "KILLING":
            self.state = "KILLED"
        elif self.steps:
            self.state = self.steps.pop(0)
            if self.state == "RUNNING":
                self.run()
        else:
            self.state = "FAILED" if self.code else "FINISHED"
        self.had.append(self.state)

    def run(self) -> None:
        """Run what the description says, in the session directory."""
        program = self.session / (self.text("Application/Executable/Path") or "")
        names, values = (self.texts(f"Application/Environment/{member}") for member in ("Name", "Value"))
        with ExitStack() as stack:
            files = [self.text(f"Application/{member}") for member in ("Input", "Output", "Error")]
            streams = [stack.enter_context(open(self.session / name, mode)) if name else subprocess.DEVNULL
                       for name, mode in zip(files, ("rb", "ab", "ab"), strict=True)]
            self.code = subprocess.run(
                [program, *self.texts("Application/Executable/Argument")], cwd=self.session, check=False,
                env={"PATH": "/usr/bin:/bin", **dict(zip(names, values, strict=True))},
                stdin=streams[0], stdout=streams[1], stderr=streams[2]).returncode
        self.error = f"LRMS error: ({self.code}) Job failed" if self.code else ""


class Arc(ThreadingHTTPServer):
    """faults: what becomes of the next requests to make a job: ``cut`` (made, no answer), ``lost`` (not made, no
    answer), a number (that status) or an entry of an answer; down: all requests have that status."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.jobs: dict[str, ArcJob] = {}
        self.faults: list[Any] = []
        self.refused_files = 0
        self.down = 0
        self.made = 0
        self.listed = True      # one job of an answer is in a list, as in A-REX 7
        self.record = True      # the record of a job has its exit code
        self.information = b""  # what it publishes of itself
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/arex/rest/1.0"

    def make(self, user: str, text: str) -> dict[str, str]:
        """Make a job; the entry of the answer."""
        tree = ElementTree.fromstring(text)
        self.made += 1
        native_id = f"id{self.made}"
        session = self.folder / native_id
        session.mkdir()
        awaited = {each.text or "" for each in tree.iterfind(f"{ADL}DataStaging/{ADL}InputFile/{ADL}Name")}
        self.jobs[native_id] = ArcJob(user, text, session, awaited)
        return {"status-code": "201", "reason": "Created", "id": native_id, "state": "ACCEPTING"}


class _Handler(BaseHTTPRequestHandler):
    server: Arc
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        user = str(self.headers["Authorization"])
        path = unquote(address.path).removeprefix("/arex/rest/1.0/").split("/")
        with self.server.lock:
            if self.server.down:
                self._say(self.server.down, b"")
            elif path == ["info"] and query == {"schema": "glue2"} and self.headers["Accept"] == "application/xml":
                self._say(200, self.server.information)
            elif path[0] != "jobs":
                self._say(404, b"")
            elif len(path) > 1:
                self._file(path[1:], user, body)
            elif self.command == "GET":
                states = query.get("state", "").split(",")
                self._jobs(200, [{"id": one} for one, job in self.server.jobs.items() if job.user == user
                                 and (states == [""] or job.state in states)])
            elif query.get("action") == "new":
                self._new(user, body.decode())
            else:
                self._jobs(201, [self._about(query["action"], each["id"], user) for each in json.loads(body)["job"]])

    do_GET = do_POST = do_PUT = _answer

    def _new(self, user: str, text: str) -> None:
        fault = self.server.faults.pop(0) if self.server.faults else None
        if isinstance(fault, int):
            self._say(fault, b"")
        elif isinstance(fault, dict):
            self._jobs(201, [fault])
        elif fault == "lost":
            self.close_connection = True
        else:
            entry = self.server.make(user, text)
            if fault == "cut":
                self.close_connection = True
            else:
                self._jobs(201, [entry])

    def _about(self, action: str, native_id: str, user: str) -> dict[str, Any]:
        job = self.server.jobs.get(native_id)
        if job is None or job.user != user:
            return {"status-code": "404", "reason": "Job not found", "id": native_id, "state": "None"}
        entry: dict[str, Any] = {"status-code": "200", "reason": "OK", "id": native_id}
        if action == "status":
            job.step()
            return entry | {"state": job.state}
        if action == "kill":
            if job.state not in ENDS:
                job.state = "KILLING"
            return entry | {"status-code": "202"}
        record = {"State": ["emies:terminal", f"arcrest:{job.state}"], "RequestedSlots": "1",
                  "StartTime": "2026-11-27T05:00:10Z", "ComputingManagerEndTime": "2026-11-27T05:00:20Z",
                  "UsedTotalWallTime": "10", "Queue": "main", "ExecutionNode": "n1"}
        if job.code is not None and self.server.record:
            record["ExitCode"] = str(job.code)
        return entry | {"info_document": {"ComputingActivity": record | ({"Error": job.error} if job.error else {})}}

    def _file(self, path: list[str], user: str, body: bytes) -> None:
        job = self.server.jobs.get(path[0])
        if job is None or job.user != user:
            self._say(404, b"")
        elif path[1:] == ["diagnose", "description"]:
            self._say(200, job.description.encode())
        elif path[1] != "session" or ".." in path:
            self._say(404, b"")
        elif self.command == "PUT":
            if self.server.refused_files:
                self._say(self.server.refused_files, b"")
                return
            name = "/".join(path[2:])
            file = job.session / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
            file.chmod(0o700)
            job.awaited.discard(name)
            self._say(200, b"")
        else:
            file = job.session.joinpath(*path[2:])
            self._say(200, file.read_bytes()) if file.is_file() else self._say(404, b"")

    def _jobs(self, status: int, entries: list[dict[str, Any]]) -> None:
        jobs = entries[0] if len(entries) == 1 and not self.server.listed else entries
        self._say(status, json.dumps({"job": jobs}).encode() if entries or self.server.listed else b"")

    def _say(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[Arc]:
    """A computing element whose sessions lie in a folder."""
    server = Arc(folder)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
