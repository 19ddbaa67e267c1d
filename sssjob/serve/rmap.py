"""SSSRMAP: messages are verified, understood and answered; and its small socket server, for old chunks are not those
that a server of HTTP takes.

Who signs with the shared key speaks for any user by ``actor``; who signs with a password for the own one. A request
that changes something has an id, and is done once however often it comes: SSSRMAP has no time in what is signed, so a
recorded message could be sent again. Old clients send no id; in profile ``gold`` the same message is refused for some
minutes.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from lxml import etree

from sssjob.document.model import Job
from sssjob.errors import AccessError, RejectedError, SSSJobError, UnknownJobError, UsageError
from sssjob.findings import Findings, Policy, escape
from sssjob.limits import LIMITS
from sssjob.run.changing import change_of, change_text
from sssjob.run.signals import signal_name
from sssjob.serve.access import DeniedError, User, Users
from sssjob.serve.bank import ACTIONS, answer, of_project
from sssjob.serve.desk import ConflictError, Desk, LackingError, Order
from sssjob.serve.web import Server
from sssjob.sssrmap import (
    SAFE,
    Count,
    Data,
    Envelope,
    File,
    Get,
    MessageError,
    Object,
    Option,
    Request,
    Response,
    Set,
    Status,
    Where,
    read_message,
    status_of,
    write_message,
)
from sssjob.sssrmap.framing import FrameError, Receiver, framed_chunk, framed_end, framed_head
from sssjob.sssrmap.signing import Keys, verify
from sssjob.sssrmap.writer import part_text
from sssjob.xml.writer import escaped

__all__ = ["Exchange", "Replays", "listening"]

_AT_ONCE: Final = 1 << 16
_WRITE_S: Final = 20.0          # that a client has to take an answer
_LINGER_S: Final = 1.0          # for what it still sends
_OBJECTS: Final = 1000          # of one piece of an answer
_REPLAY_S: Final = 300.0
_KEPT: Final = 10_000           # latest answers to requests that change jobs
#: Action -> what is asked for; of Signal with the name that its Option says.
_WISHES: Final = {"Cancel": "cancel", "Start": "release", "Requeue": "rerun", "Suspend": "suspend", "Resume": "resume",
                  "Signal": "signal"}
_OF_JOBS: Final = ("Submit", "Modify", *_WISHES)
#: Action -> (parts of a request that it heeds, Options that it knows).
_HEEDED: Final[dict[str, tuple[tuple[type, ...], tuple[str, ...]]]] = {
    "Query": ((Get, Where, Option), ("Limit", "Offset", "Unique", "ShowHidden", "Project")),
    "Submit": ((Data, File), ()), "Modify": ((Where, Set, Data), ()),
    **dict.fromkeys(_WISHES, ((Where,), ())), "Signal": ((Where, Option), ("Signal",))}
_HOLDS: Final = {"User": "hold", "": "release"}     # Hold -> what is asked for
_UNIQUE: Final = ("Id", "JobId", "NativeId", "Key")     # properties that name one job


class Replays:
    """Signatures of messages that changed something, as long as they may not come again."""

    def __init__(self, seconds: float = _REPLAY_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._seen: dict[str, float] = {}
        self._lock = threading.Lock()

    def check(self, signature: str) -> None:
        """Raise MessageError (424) for a signature that was seen a short time ago."""
        now = self._clock()
        with self._lock:
            while self._seen and now - next(iter(self._seen.values())) > self._seconds:
                del self._seen[next(iter(self._seen))]
            if signature in self._seen:
                raise MessageError("424", f"Failed authenticating message: (The same message came "
                                          f"{now - self._seen[signature]:.0f} s ago; an id makes two of it).")
            self._seen[signature] = now


@dataclass(slots=True)
class Exchange:
    """What messages mean here. keys: who may sign; profile: how messages are read and answered."""

    users: Users
    keys: Keys
    profile: str = "3.1"
    replays: Replays = field(default_factory=Replays)
    _wishes: dict[tuple[str, str], tuple[Request, Response]] = field(default_factory=dict)      # by user and id

    def answer(self, desk: Desk, octets: bytes) -> tuple[list[Response], str | None, str | None]:
        """The pieces of the answer to a message, whatever it is; who asked, and for what, as far as that is known."""
        actor = action = None
        try:
            findings = Findings("-")
            message = read_message(octets, profile=self.profile, findings=findings)
            type_ = verify(octets, message, self.keys)
            request = message.request
            actor, action = request.actor, request.action
            refusal = request.refusal()
            if refusal is not None:
                return [_failure(refusal, actor)], actor, action
            if self.profile != "gold":
                _tell_unheeded(request, findings)
            status = status_of(findings)
            if not status.succeeded:
                return [_failure(status, actor)], actor, action
            pieces = self._done(desk, message, request, type_)
            if status.value == "Warning":
                pieces = [_warned(piece, status) for piece in pieces]
            return pieces, actor, action
        except Exception as error:
            return [_failure(_status(error), actor)], actor, action

    def _done(self, desk: Desk, message: Envelope, request: Request, type_: str) -> list[Response]:
        user = self.users.named(request.actor or "")
        if user is None:
            raise MessageError("444", f"{escape(request.actor or '', 60)} is nobody here")
        kind = request.objects[0].name
        _check_action(kind, request.action or "")
        if request.action not in SAFE:
            self._once(message, request)
        if request.action == "Query":
            return desk.ask(user, of_project(request), self.profile, _OBJECTS)
        if kind == "Job" and request.action == "Submit":
            return [_submitted(desk, user, request)]
        if kind == "Job" and request.action in _WISHES:
            return [self._wished(desk, user, request, [(_wish_of(request), request.all(Where))])]
        if kind == "Job" and request.action == "Modify":
            return [self._wished(desk, user, request, _changes_of(request))]
        with desk.ledger(create=False) as ledger:
            return [answer(ledger, desk.rates, user, request, self.profile)]

    def _wished(self, desk: Desk, user: User, request: Request, wishes: Iterable[tuple[str, Sequence[Where]]]
                ) -> Response:
        """Ask for something, unless a request of this id did so before, which is answered as it was then. Raises
        MessageError (740) for another request of the same id."""
        if not request.id:
            return _wished(desk, user, request, wishes)
        earlier = self._wishes.get((user.name, request.id))
        if earlier is None:
            earlier = request, _wished(desk, user, request, wishes)
            self._wishes[user.name, request.id] = earlier
            while len(self._wishes) > _KEPT:
                del self._wishes[next(iter(self._wishes))]
        elif earlier[0] != request:
            raise MessageError("740", f"The id {escape(request.id, 60)} was used for another request.")
        return earlier[1]

    def _once(self, message: Envelope, request: Request) -> None:
        """Raise MessageError for a request that could be made twice by who only heard it."""
        if request.id:
            if len(request.id) > LIMITS.identifier:
                raise MessageError("314", f"The id is longer than the limit identifier ({LIMITS.identifier}).")
            return
        if self.profile != "gold":
            raise MessageError("314", "A request that changes something needs an id, so that it is done once.")
        assert message.signature is not None
        self.replays.check(message.signature.value or "")


def _tell_unheeded(request: Request, findings: Findings) -> None:
    """Tell what an action makes nothing of, as awarenessPolicy says: it would be passed over in silence."""
    policy = Policy.of(request.policy or "") or Policy.REJECT
    bank = request.action in {action for _, action in ACTIONS}
    parts, options = _HEEDED.get(request.action or "", ((Option, Data) if bank else (object,), ()))
    for part in request.parts:
        name = type(part).__name__
        if isinstance(part, Option) and not bank and part.name not in options:
            findings.add("SSS301", f"Option {part.name}", f"{request.action} knows no Option {escape(part.name, 60)}",
                         policy=policy)
        elif not isinstance(part, (Object, *parts)):
            findings.add("SSS301", name, f"{request.action} makes nothing of {name}", policy=policy)
    if len(request.all(Data)) > 1:
        findings.add("SSS301", "Data", "one Data is read, the first", policy=policy)


def _check_action(kind: str, action: str) -> None:
    """Raise MessageError for what is not done here: 740 where another kind of object has the action, else 313."""
    if action == "Query" or (kind, action) in ACTIONS or (kind == "Job" and action in _OF_JOBS):
        return
    if action in _OF_JOBS or any(action == other for _, other in ACTIONS):
        raise MessageError("740", f"{action} is not a valid action for a {escape(kind, 40)} object")
    raise MessageError("313", f"{escape(action, 40)} of {escape(kind, 40)} is not supported here")


def _submitted(desk: Desk, user: User, request: Request) -> Response:
    """Submit the jobs in Data, with the Files beside it that they name; the id of the request is its key."""
    data = request.data
    if data is None or not data.content.strip():
        raise MessageError("314", "No job is in Data.")
    files = "".join(map(part_text, request.all(File)))
    submitted = desk.submit(Order(user, f"<Data>{data.content}{files}</Data>".encode(), "sss", key=request.id))
    objects = "".join(f"<Job><Id>{escaped(str(row['id']))}</Id><Key>{row['key']}</Key></Job>"
                      for row in submitted.jobs)
    return Response((Status.of("000"), Count(len(submitted.jobs)), Data(objects)), request.actor)


def _wished(desk: Desk, user: User, request: Request, wishes: Iterable[tuple[str, Sequence[Where]]]) -> Response:
    """Ask for something for the jobs that conditions select; without any there would be no end to them. Who gives no id
    has to name each job: such a message can be recorded and sent again later, for jobs that are not made yet."""
    answers = []
    for wish, wheres in wishes:
        selected = _selected(desk, user, request, wheres)
        if isinstance(selected, Response):
            return selected
        answers += [(wish, desk.wish(user, wish, key)) for key in selected]
    rows = [row for _, answer in answers for row in answer["jobs"]]
    refusals = [f"{key}: {text}" for _, answer in answers for key, text in answer["refusals"].items()]
    objects = "".join(f"<Job><Key>{row['key']}</Key><State>{escaped(str(row['state']))}</State></Job>" for row in rows)
    status = Status.of("000")
    if refusals:
        status = Status.of("740" if len(refusals) == len(rows) else "100", escape("; ".join(refusals), 1000))
    return Response((status, Count(len(rows) - len(refusals)), *((Data(objects),) if rows else ())), request.actor)


def _selected(desk: Desk, user: User, request: Request, wheres: Sequence[Where]) -> list[str] | Response:
    """The keys of the jobs that conditions select, or why they cannot be. Raises MessageError."""
    if not wheres:
        raise MessageError("314", "Where has to say which jobs are meant.")
    if not request.id and not all(where.name in _UNIQUE and where.op in (None, "EQ") and where.value != "NULL"
                                  for where in wheres):
        raise MessageError("314", f"Without an id Where has to name each job by {', '.join(_UNIQUE)}.")
    (selected,) = desk.ask(user, Request("Query", request.actor, (Object("Job"), Get("Key"), *wheres)))
    if not selected.status.succeeded:
        return selected
    return [] if selected.data is None else _keys(selected.data)


def _wish_of(request: Request) -> str:
    """What an action asks for. Raises MessageError (314) for a Signal that is not said, UsageError for none."""
    wish = _WISHES[request.action or ""]
    if wish != "signal":
        return wish
    names = [option.value for option in request.all(Option) if option.name == "Signal"]
    if len(names) != 1:
        raise MessageError("314", "The Option Signal has to say which one is sent, as USR1.")
    return f"signal {signal_name(names[0])}"


def _changes_of(request: Request) -> list[tuple[str, Sequence[Where]]]:
    """What a Modify asks for, and for which jobs: Set says it of those that Where selects, or each Job in Data of the
    one of its Id. Raises MessageError, RejectedError."""
    changes, data = request.all(Set), request.data
    if bool(changes) == (data is not None):
        raise MessageError("314", "Set has to say what is changed, or the jobs in Data.")
    if data is None:
        if any(change.op not in (None, "Assign") for change in changes):
            raise MessageError("318", "Set assigns what a job is to have, and does nothing else to it.")
        holds = [_hold(change.value) for change in changes if change.name == "Hold"]
        if len(holds) > 1:
            raise MessageError("318", "A job has one Hold.")
        settings = [(change.name, f"{change.value} {change.units or ''}".rstrip()) for change in changes
                    if change.name != "Hold"]
        changed = [_change(partial(change_of, settings))] if settings else []
        return [(wish, request.all(Where)) for wish in _in_order(holds, changed)]
    if request.all(Where):
        raise MessageError("318", "Where selects nothing of what is in Data.")
    document = data.document()
    if document.findings is not None:
        document.findings.raise_if_rejected()
    asked: list[tuple[str, Sequence[Where]]] = []
    for job, _ in document.jobs():
        identifier, items = job.value("Id"), [item for item in job.items if item.tag not in ("Id", "Hold")]
        texts = _in_order([_hold(p.text) for p in job.all("Hold")],
                          [_change(partial(change_text, Job(items)))] if items else [])
        if identifier is None or not texts:
            raise MessageError("314", "A Job in Data has to have its Id and what is changed.")
        asked += [(text, (Where("Id", str(identifier)),)) for text in texts]
    return asked


def _change(make: Callable[[], str]) -> str:
    """The text of a wish. Raises MessageError for what cannot be changed (316) or has no such value (317)."""
    try:
        return f"change {make()}"
    except UsageError as error:
        raise MessageError("316", f"{escape(str(error), 400)}.") from None
    except RejectedError as error:
        raise MessageError("317", escape(str(error), 400)) from None


def _in_order(holds: list[str], changes: list[str]) -> list[str]:
    """What is asked for one after the other: a job that is held is changed before it may start."""
    return [*changes, *holds] if holds == ["release"] else [*holds, *changes]


def _hold(value: str) -> str:
    """What setting Hold asks for. Raises MessageError."""
    if value.strip() not in _HOLDS:
        raise MessageError("317", f"Hold is {escape(value, 40)!r}, and may be User, or empty for none.")
    return _HOLDS[value.strip()]


def _keys(data: Data) -> list[str]:
    return [str(element.text) for element in etree.fromstring(f"<Data>{data.content}</Data>").iter("Key")]


def _failure(status: Status, actor: str | None) -> Response:
    return Response((status,), actor)


def _warned(piece: Response, status: Status) -> Response:
    """A piece of an answer that succeeded, with a warning."""
    if piece.status.value != "Success":
        return piece
    return replace(piece, parts=tuple(status if isinstance(part, Status) else part for part in piece.parts))


def _status(error: Exception) -> Status:
    """The Status that an error is."""
    if isinstance(error, MessageError):
        return error.status
    if isinstance(error, RejectedError):
        rejecting = Findings("-")
        for finding in error.findings:
            rejecting.add(finding.rule, finding.subject, finding.message, severity=finding.severity)
        status = status_of(rejecting)
        return status if any(f.kind in ("unknown", "dropped") for f in error.findings) else Status.of(
            "300", escape(str(error), 1000))
    if isinstance(error, DeniedError):
        return Status.of("444", str(error))
    if isinstance(error, LackingError):
        return Status.of("730", str(error))
    if isinstance(error, (ConflictError, UnknownJobError)):
        return Status.of("740", escape(str(error), 1000))
    if isinstance(error, AccessError):
        return Status.of("730", "The journal or the ledger cannot be used now.")
    if isinstance(error, SSSJobError):
        return Status.of("314", escape(str(error), 1000))
    traceback.print_exception(error)
    return Status.of("720", "An internal error; the log of the server has it.")


@asynccontextmanager
async def listening(server: Server, exchange: Exchange, listener: socket.socket, connections: int,
                    tls: tuple[str, str] | None = None) -> AsyncIterator[None]:
    """Answer messages on a socket as long as the context lasts. connections: the most of them at once; tls: files of a
    certificate and its key."""
    open_now: set[asyncio.Task[None]] = set()

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection, or close it where there are too many."""
        task = asyncio.current_task()
        assert task is not None
        if len(open_now) < connections:
            open_now.add(task)
            try:
                await _Connection(server, exchange, reader, writer).serve()
            finally:
                open_now.discard(task)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    context: ssl.SSLContext | None = None
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
    async with await asyncio.start_server(met, sock=listener, limit=_AT_ONCE, ssl=context):
        try:
            yield
        finally:
            for task in open_now:
                task.cancel()
            await asyncio.gather(*open_now, return_exceptions=True)


@dataclass(slots=True)
class _Connection:
    """One connection, on which one message is answered."""

    server: Server
    exchange: Exchange
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def serve(self) -> None:
        """Receive, answer, and leave."""
        receiver = Receiver("request", gold=self.exchange.profile == "gold", limits=self.server.limits)
        address = str((self.writer.get_extra_info("peername") or ("",))[0])
        try:
            if self.server.pace.wait(f"sssrmap {address}"):
                raise FrameError("230", "Too many messages; try again later.", 429)
            await self._receive(receiver)
        except FrameError as error:
            if error.code != "243":
                self._note(address, None, error.code)
                await self._reply(error.http, [_failure(error.status, None)], "host" in receiver.headers)
            return
        except (OSError, TimeoutError):
            return
        octets = receiver.payloads[0]
        pieces, actor, action = await self.server.workers.do(
            "change" if _changes(octets) else "query", lambda desk: self.exchange.answer(desk, octets))
        if action == "Query":
            self.server.asked.set()
        status = next(part for part in pieces[0].parts if isinstance(part, Status))
        self._note(address, actor, status.code, action)
        root = "root element is" in (status.message or "") and status.code == "242"
        await self._reply(400 if root else 200, pieces, "host" in receiver.headers)

    async def _receive(self, receiver: Receiver) -> None:
        async with asyncio.timeout(self.server.limits.message_seconds):
            while not receiver.complete:
                receiver.feed(await self.reader.read(_AT_ONCE))

    async def _reply(self, http: int, pieces: Iterable[Response], stock: bool) -> None:
        writer = self.writer
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_WRITE_S):
                writer.write(framed_head(http, stock=stock))
                for piece in pieces:
                    writer.write(framed_chunk(write_message(Envelope(piece)).encode(), stock=stock))
                    await writer.drain()
                writer.write(framed_end(stock=stock))
                await writer.drain()
                if writer.can_write_eof():
                    writer.write_eof()
            async with asyncio.timeout(_LINGER_S):      # a reset would take the answer away from who still sends
                while await self.reader.read(_AT_ONCE):
                    pass

    def _note(self, address: str, actor: str | None, code: str | None, action: str | None = None) -> None:
        self.server.audit.note(user=actor, address=address, operation=f"SSSRMAP {action or 'none'}", status=code)


def _changes(octets: bytes) -> bool:
    """Whether a message looks as if it changed something: it is then done by the thread for that. A guess, which
    decides about nothing else."""
    return b'action="Query"' not in octets and b'action="Balance"' not in octets
