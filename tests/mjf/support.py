"""What the tests of Machine/Job Features share: directories, and a web server that does what it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sssjob.mjf import Reader
from sssjob.mjf.keys import VARIABLES, Area
from sssjob.mjf.limits import Limits
from sssjob.mjf.reader import place_of

__all__ = ["NOW", "PATIENT", "QUICK", "Clock", "Site", "Web", "machine", "reader", "served"]

#: For tests of what answers, on a machine that is busy.
PATIENT = Limits(request_seconds=30, pass_seconds=60, metadata_seconds=30, lock_seconds=0.2)
#: Short enough for tests of what is slow.
QUICK = Limits(request_seconds=0.3, pass_seconds=0.8, metadata_seconds=0.3, lock_seconds=0.2)
NOW = 1_700_000_000


@dataclass
class Clock:
    """A clock that stands still unless it is moved."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


@dataclass
class Site:
    """Directories of a site, written as other providers write them."""

    root: Path
    clock: Clock = field(default_factory=Clock)

    def write(self, area: Area, **values: object) -> Path:
        """Files as a shell would write them; bytes as they are."""
        place = self.root / area
        place.mkdir(exist_ok=True)
        for name, value in values.items():
            (place / name).write_bytes(value if isinstance(value, bytes) else f"{value}\n".encode())
        return place

    def reader(self, limits: Limits = PATIENT) -> Reader:
        """A reader of what there is."""
        areas = [area for area in VARIABLES if (self.root / area).is_dir()]
        return Reader({area: place_of(str(self.root / area), limits) for area in areas}, limits, self.clock,
                      self.clock)


def machine(base: str, clock: Clock | None = None, limits: Limits = PATIENT) -> Reader:
    """A reader of one base as MACHINEFEATURES."""
    clock = clock or Clock()
    return Reader({"machine": place_of(base, limits)}, limits, clock, clock)


def reader(environment: Mapping[str, str], **more: Any) -> Reader:
    """A reader of an environment."""
    return Reader.from_environment(environment, limits=PATIENT, **more)


Reply = Callable[[BaseHTTPRequestHandler], None] | bytes | int


@dataclass
class Web:
    """A loopback server: path -> body, status, or a function. asked: paths with their conditions."""

    base: str
    replies: dict[str, Reply] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)


@contextmanager
def served(context: Any = None) -> Iterator[Web]:
    """A server for the time of a test. context: for https."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            web.asked.append(self.path)
            web.conditions.append(self.headers.get("If-None-Match") or "")
            reply = web.replies.get(self.path, 404)
            if callable(reply):
                reply(self)
                return
            tag = web.headers.get("ETag")
            status = reply if isinstance(reply, int) else 304 if tag and tag == web.conditions[-1] else 200
            body = reply if isinstance(reply, bytes) and status == 200 else b""
            self.send_response(status)
            for name, value in web.headers.items():
                self.send_header(name, value)
            if status != 304:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """The client went away, as it may."""

    with Quiet(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        web = Web(f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield web
        finally:
            web.stopped.set()
            server.shutdown()
            thread.join()
