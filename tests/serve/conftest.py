"""A server on loopback in a thread of this process, and clients of its users."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import uvicorn

from sssjob.accounting import read_rates
from sssjob.limits import LIMITS, Limits
from sssjob.run.journal import Entry
from sssjob.run.keeper import keep
from sssjob.serve import running
from sssjob.serve.access import Audit, Pace, User, Users
from sssjob.serve.counter import Workers
from sssjob.serve.desk import Desk
from sssjob.serve.rmap import Exchange
from sssjob.serve.rmap import listening as answering
from sssjob.serve.web import Server
from sssjob.sssrmap.signing import Keys
from tests.forks import fork_keepers

#: Name of a user -> rights; the token is the name with a T before it.
USERS: Final = {"amy": ("submit",), "bob": ("submit",), "eve": (), "root": (
    "submit", "see-all", "cancel-all", "act-for", "ledger", "bank")}
KEY: Final = b"oraclekey"
RATES: Final = ('name = "site"\nversion = "1"\ncurrency = ""\n[[rate]]\ntype = "VBR"\nname = "Processors"\nrate = 1\n'
                'per = "second"\n')


class Reply(NamedTuple):
    """An answer. body: JSON, else text."""

    status: int
    body: Any
    headers: dict[str, str]


class Place(NamedTuple):
    """A server that runs. port: of HTTP; messages: of SSSRMAP; audit: its log; journal: its file."""

    port: int
    messages: int
    audit: Path
    journal: Path
    server: Server

    def call(self, user: str | None, method: str, path: str, body: str | bytes | None = None,
             **headers: str) -> Reply:
        """Ask in a user's name; members of headers have _ for -."""
        stated = {name.replace("_", "-"): text for name, text in headers.items()}
        if user is not None:
            stated["Authorization"] = f"Bearer T{user}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body.encode() if isinstance(body, str) else body, stated)
            response = connection.getresponse()
            text = response.read().decode()
            is_json = response.headers.get("content-type", "").endswith("json")
            return Reply(response.status, json.loads(text) if is_json else text, dict(response.headers))
        finally:
            connection.close()

    def log(self) -> list[dict[str, Any]]:
        """The lines of the audit log."""
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


Serving = Callable[..., AbstractContextManager[Place]]


def users() -> Users:
    """All users; the password of each is the name with a P before it."""
    return Users({hashlib.sha256(f"T{name}".encode()).hexdigest(): User(name, frozenset(rights))
                  for name, rights in USERS.items()}, {name: f"P{name}".encode() for name in USERS})


@contextmanager
def served(folder: Path, *, limits: Limits = LIMITS, pace: Pace | None = None, strangers: Pace | None = None,
           connections: int = 100, ledger: str | None = None, follow_s: float = 5.0, profile: str = "3.1",
           hashes: tuple[str, ...] = ("SHA256",), tls: tuple[str, str] | None = None, public: bool = False
           ) -> Iterator[Place]:
    """A server with a journal in a folder. profile, hashes: of SSSRMAP, whose shared key is KEY; tls: files of a
    certificate and its key."""
    journal, audit = folder / "journal.db", folder / "audit.log"
    desk = partial(Desk, journal, ("local",), folder, read_rates(RATES.encode()), ledger, limits=limits)
    server = Server(Workers(desk), users(), Audit(str(audit)), pace or Pace(1e6, 1_000_000),
                    strangers or Pace(1e6, 1_000_000), follow_s, limits, public=public)
    listening = running.listener("127.0.0.1", 0, False)
    messages = running.listener("127.0.0.1", 0, False)
    exchange = Exchange(users(), Keys(KEY, users().passwords, hashes), profile)
    server.beside.append(answering(server, exchange, messages, connections, tls))
    process = running.process_of(server, running.Listening(listening, tls, connections))
    thread = threading.Thread(target=process.run, kwargs={"sockets": [listening]})
    with pytest.MonkeyPatch.context() as patch:
        fork_keepers(patch)
        thread.start()
        try:
            _until_started(process, thread)
            yield Place(listening.getsockname()[1], messages.getsockname()[1], audit, journal, server)
        finally:
            process.should_exit = True
            thread.join(30)
            server.workers.close()
            server.audit.close()
            assert not thread.is_alive()


@contextmanager
def still(folder: Path, *, limits: Limits = LIMITS, connections: int = 100) -> Iterator[Place]:
    """A server whose jobs are in its journal and never begin, which spares a process for each of them."""
    def kept(entries: Sequence[Entry]) -> None:
        if entries[0].journal.path.parent != folder:
            keep(entries)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sssjob.run.client.keep", kept)
        with served(folder, limits=limits, connections=connections) as place:
            yield place


def _until_started(process: uvicorn.Server, thread: threading.Thread) -> None:
    async def started() -> None:
        async with asyncio.timeout(20):
            while not process.started:
                assert thread.is_alive()
                await asyncio.sleep(0.005)

    asyncio.run(started())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server for tests that only look, or look at what they made."""
    with served(tmp_path_factory.mktemp("serve")) as server:
        yield server


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server whose jobs never begin."""
    with still(tmp_path_factory.mktemp("quiet")) as server:
        yield server


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    """Start a server whose files are in the folder of the test."""
    return partial(served, tmp_path)


@pytest.fixture
def small() -> Limits:
    """Limits that a test reaches."""
    return replace(LIMITS, body_bytes=2_000, message_seconds=0.3, head_bytes=2_000)
