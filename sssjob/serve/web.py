"""Documents over HTTP: one table of operations, from which the routes and their description (OpenAPI) follow.

Nobody without a token learns more than a status code. What an operation does not know is refused by name: parameters,
members of JSON, types of bodies. Errors are JSON objects ``{"status", "message", "findings"}``.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, Router, compile_path
from starlette.types import Receive, Scope, Send

from sssjob.errors import AccessError, RejectedError, SSSJobError, UnknownJobError
from sssjob.findings import escape
from sssjob.limits import LIMITS, Limits
from sssjob.serve.access import Audit, DeniedError, Pace, User, Users
from sssjob.serve.contract import EVERYTHING, contract
from sssjob.serve.counter import Counter, Workers
from sssjob.serve.desk import ConflictError, Desk, LackingError, records
from sssjob.serve.events import Happening, Happenings, happenings
from sssjob.serve.iri import REPLY, of_iri, problem
from sssjob.serve.operations import Answer, Call, Operation, RequestError

__all__ = ["Server", "application"]

_OWNERS: Final = 10_000     # of submissions, that are remembered
_LOOK_S: Final = 0.25       # between two looks for news in the journal
_SOONEST_S: Final = 5.0     # between two questions how jobs stand, where clients ask for that
_FOLLOW_S: Final = 15.0     # that resource managers have to say how jobs stand; longer than accounting may be late
_ANYBODY: Final = User("", frozenset())
_HIDDEN: Final = 404        # the status of jobs that a user may not see: as if there were none


@dataclass(slots=True)
class Server:
    """What the faces of a server share. follow_s: seconds between two questions how jobs stand, when nobody asks for
    them meanwhile (``asked``); beside: what else works as long as the server does; public: whether operations that are
    open to everybody elsewhere need no token here."""

    workers: Workers
    users: Users
    audit: Audit
    pace: Pace
    strangers: Pace         # of requests without a token, by address
    follow_s: float = 30.0
    limits: Limits = LIMITS
    beside: list[AbstractAsyncContextManager[None]] = field(default_factory=list)
    public: bool = False
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    counter: Counter = field(init=False)
    happenings: Happenings = field(init=False)
    _changes: int = field(default=-1, init=False)
    _owners: dict[int, str | None] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.counter = Counter(self.workers)
        self.happenings = Happenings(self._read)

    async def _read(self, number: int) -> tuple[list[Happening], int]:
        return await self.workers.do("news", lambda desk: happenings(desk.journal, number))

    async def owner(self, submission: int) -> str | None:
        """The user whose a submission is. No thread is asked again and again, for all listeners hear of the same."""
        if submission not in self._owners:
            if len(self._owners) >= _OWNERS:
                self._owners.clear()
            self._owners[submission] = await self.workers.do("news", lambda desk: desk.owner(submission))
        return self._owners[submission]

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Follow jobs and look for news meanwhile."""
        self.happenings.begin(await self.workers.do("news", lambda desk: desk.journal.latest_event()))
        tasks = [asyncio.create_task(self._warm()), asyncio.create_task(self._again(_LOOK_S, self._news)),
                 asyncio.create_task(self._again(min(_SOONEST_S, self.follow_s), self._follow))]
        try:
            async with AsyncExitStack() as stack:
                for other in self.beside:
                    await stack.enter_async_context(other)
                yield
        finally:
            self.happenings.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.counter.close()
            gc.unfreeze()

    async def _warm(self) -> None:
        """Have all modules in memory that a submission needs, and have the garbage collector pass over them, which
        would go through them again and again while requests wait."""
        await self.workers.do("enter", Desk.warm)
        gc.freeze()

    async def _again(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except SSSJobError as error:        # a journal that is full or locked may be well the next time
                print(f"sssjob: {escape(str(error), 400)}", file=sys.stderr)
            await asyncio.sleep(seconds)

    async def _news(self) -> None:
        if await self.workers.do("news", lambda desk: desk.journal.changes()) != self._changes:
            self._changes = await self.workers.do("news", lambda desk: desk.journal.changes())
            await self.happenings.look()

    async def _follow(self) -> None:
        """Ask how jobs stand, and wait until somebody wants to know it, or it is time."""
        self.asked.clear()
        await self.workers.do("follow", lambda desk: desk.follow(_FOLLOW_S))
        with suppress(TimeoutError):
            await asyncio.wait_for(self.asked.wait(), max(self.follow_s - _SOONEST_S, 0.0))


class _JSON(JSONResponse):
    """JSON in ASCII: a script may hold octets of no encoding, for which UTF-8 has no place."""

    def render(self, content: Any) -> bytes:
        """The body."""
        return json.dumps(content).encode("ascii")


def application(server: Server) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """The ASGI application."""
    return _Application(server)


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """An operation as an application of its own, without what Starlette puts around functions."""

    operation: Operation
    answer: Callable[[Operation, Request], Awaitable[Response]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        response = await self.answer(self.operation, Request(scope, receive, send))
        await response(scope, receive, send)


class _Application:
    """Knows who asks before anything else is looked at."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.router = Router([Route(operation.path, _Endpoint(operation, self.answer), methods=[operation.method])
                              for operation in EVERYTHING], redirect_slashes=False)
        self._public = [compile_path(operation.path)[0] for operation in EVERYTHING if operation.is_public]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            response = self._stranger(scope)
            if response is not None:
                await response(scope, receive, send)
            else:
                await self._routed(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _routed(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self         # what no operation is for is then told here
        try:
            await self.router(scope, receive, send)
        except HTTPException as error:
            request, user = Request(scope), scope["sssjob.user"]
            asked = f"{scope['method']} {scope['path']}"
            headers = {"Allow": self._methods(scope["path"])} if error.status_code == 405 else error.headers
            response = _problem(error.status_code, f"{asked} is nothing that can be asked here", headers=headers)
            if _is_iri(scope):
                response = _details(response, request)
            self.server.audit.note(user=user.name or None, address=_address(request), status=error.status_code,
                                   operation="none")
            await response(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.server.working():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    def _methods(self, path: str) -> str:
        """All that can be done at a place, of which each route knows one thing."""
        return ", ".join(sorted({method for route in self.router.routes if isinstance(route, Route)
                                 and route.path_regex.match(path) for method in route.methods or ()}))

    def _stranger(self, scope: Scope) -> Response | None:
        """The answer to who may not ask, or not now; None: the user stands in the scope."""
        if (scope["method"], scope["path"]) == ("GET", "/health"):
            return Response(status_code=204)
        request = Request(scope)
        address = _address(request) or ""
        stated = request.headers.getlist("authorization")
        scheme, _, token = (stated[0] if len(stated) == 1 else "").partition(" ")
        user = self.server.users.of(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            wait = self.server.strangers.wait(address)
            if not (wait or stated) and self._is_public(scope):
                scope["sssjob.user"] = _ANYBODY
                return None
            status = 429 if wait else 401
            self.server.audit.note(address=address, status=status, operation="none")
            return Response(status_code=status, headers={"WWW-Authenticate": "Bearer"} if not wait else
                            {"Retry-After": str(int(wait) + 1)})
        wait = self.server.pace.wait(user.name)
        if wait:
            self.server.audit.note(user=user.name, address=address, status=429, operation="none")
            response = _problem(429, "too many requests", headers={"Retry-After": str(int(wait) + 1)})
            return _details(response, request) if _is_iri(scope) else response
        scope["sssjob.user"] = user
        return None

    def _is_public(self, scope: Scope) -> bool:
        """Whether a request is one that everybody may make."""
        return self.server.public and scope["method"] in ("GET", "HEAD") and any(
            path.match(scope["path"]) for path in self._public)

    async def answer(self, operation: Operation, request: Request) -> Response:
        """What an operation answers, or why not."""
        user: User = request.scope["sssjob.user"]
        begun = time.monotonic()
        subject: str | None = None
        try:
            call = Call(user, operation.arguments(request), await self._body(operation, request))
            subject = call.subject
            response = await self._done(operation, call)
        except Exception as error:
            if operation.style == "iri":
                response = _details(_refusal(of_iri(error)), request)
            else:
                response = _refusal(error)
        self.server.audit.note(
            user=user.name or None, address=_address(request), subject=subject, operation=operation.name,
            status=response.status_code, seconds=round(time.monotonic() - begun, 3))
        return response

    async def _done(self, operation: Operation, call: Call) -> Response:
        if operation.name == "events":
            return self._stream(call)
        if operation.name == "openapi":
            return _JSON(contract())
        (status, answer), headers = await self._result(operation, call)
        if status == 204:
            return Response(status_code=204)
        if isinstance(answer, str):
            return PlainTextResponse(answer, status, media_type="application/xml")
        return _JSON(answer, status, headers)

    async def _result(self, operation: Operation, call: Call) -> tuple[Answer, dict[str, str] | None]:
        """What an operation answers, and further headers."""
        workers, make_order, taken = self.server.workers, operation.order, operation.taken
        if make_order is not None and taken is not None:
            order = make_order((), call) if operation.style == "own" else await workers.do(
                "convert", lambda desk: make_order(desk.executors, call))      # it reads the body
            submitted = await self.server.counter.submit(order)
            keyed = operation.style == "iri" and order.key is not None
            return taken(submitted), {REPLY: "miss" if submitted.fresh else "hit"} if keyed else None
        function = operation.function
        assert function is not None
        if operation.about_jobs:
            self.server.asked.set()
        return await workers.do(operation.pool, lambda desk: function(desk, call)), None

    def _stream(self, call: Call) -> Response:
        async def sees(submission: int) -> bool:
            """Whether the user may see a submission."""
            return call.user.may("see-all") or call.user.name == await self.server.owner(submission)

        since = call.whole("since") if call.stated("since") else call.whole("Last-Event-ID") if call.stated(
            "Last-Event-ID") else None
        return StreamingResponse(self.server.happenings.stream(since, sees), media_type="text/event-stream",
                                 headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def _body(self, operation: Operation, request: Request) -> bytes:
        """The body, which is limited in size and in the time that it takes."""
        limits = self.server.limits
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise RequestError(415, "no Content-Encoding is taken")
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(limits.message_seconds):
                async for piece in request.stream():
                    size += len(piece)
                    if size > limits.body_bytes:
                        raise RequestError(413, f"the body is longer than the limit body_bytes ({limits.body_bytes})",
                                           closes=True)
                    pieces.append(piece)
        except TimeoutError:
            raise RequestError(408, f"the body takes longer than the limit message_seconds "
                                    f"({limits.message_seconds:g})", closes=True) from None
        except ClientDisconnect:
            raise RequestError(400, "the body ended early") from None
        operation.check_type(request.headers.get("content-type"), bool(size))
        return b"".join(pieces)


def _address(request: Request) -> str | None:
    """Where a request is from."""
    return None if request.client is None else request.client.host


def _refusal(error: Exception) -> Response:
    """The answer that an error is."""
    if isinstance(error, RequestError):
        return _problem(error.status, str(error), headers={"Connection": "close"} if error.closes else None)
    if isinstance(error, RejectedError):
        return _problem(422, str(error), error.findings)
    if isinstance(error, UnknownJobError):
        return _problem(_HIDDEN, str(error))
    if isinstance(error, DeniedError):
        return _problem(403, str(error))
    if isinstance(error, LackingError):
        return _problem(501, str(error))
    if isinstance(error, ConflictError):
        return _problem(409, str(error))
    if isinstance(error, AccessError):
        return _problem(503, "the journal or the ledger cannot be used now")
    if isinstance(error, SSSJobError):
        return _problem(400, str(error))
    traceback.print_exception(error)
    return _problem(500, "an internal error; the server's log has it")


def _problem(status: int, message: str, findings: Any = (), headers: Mapping[str, str] | None = None) -> Response:
    return _JSON({"status": status, "message": escape(message, 2000), "findings": records(findings)}, status,
                        None if headers is None else dict(headers))


def _is_iri(scope: Scope) -> bool:
    """Whether something is asked of the IRI Facility API, whose errors are problem details."""
    return str(scope["path"]).startswith("/api/")


def _details(refusal: Response, request: Request) -> Response:
    """A refusal as problem details of RFC 9457."""
    refused = json.loads(bytes(refusal.body))
    causes = "; ".join(str(finding["message"]) for finding in refused["findings"] if finding["severity"] == "error")
    body = problem(refusal.status_code, HTTPStatus(refusal.status_code).phrase, causes or refused["message"],
                   request.url.path)
    kept = {name: refusal.headers[name] for name in ("connection", "allow", "retry-after") if name in refusal.headers}
    return _JSON(body, refusal.status_code, kept, media_type="application/problem+json")
