"""Requests to a facility that speaks HTTP: one connection each, JSON, files, a token from a file.

The token is in no address, no message and no log. Nothing is redirected elsewhere, for the token would go there too.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import socket
import ssl
import stat
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from psij.exceptions import SubmitException

_LONGEST = 16 << 20         # bytes of an answer that is read
_TOKEN = 1 << 14            # bytes of a token
_TRIES = 4
_PAUSE_S = 0.5              # before the first further try; each later one is twice as long
_LATEST_S = 30.0            # the longest pause that a facility may ask for
_SECONDS = re.compile("[0-9]{1,6}")
_AGAIN = (429, 500, 502, 503, 504)
_DETAIL = 500               # characters of a facility's own words
_CHUNK = 1 << 20
_T = TypeVar("_T")
_Take = Callable[[http.client.HTTPResponse], _T]        # what becomes of an answer


class FacilityError(SubmitException):
    """A request that a facility did not do. status: of HTTP, 0 where there was no answer; pause: seconds after which it
    wants to be asked again, None where it does not say that."""

    def __init__(self, message: str, status: int = 0, exception: BaseException | None = None,
                 pause: float | None = None) -> None:
        super().__init__(message, exception, transient=status == 0 or status in _AGAIN)
        self.status, self.pause = status, pause


class Facility:
    """One facility. url: up to the version, as ``https://api.example.org/api/v2``; token_file: has the token, and is
    readable by its owner only; timeout: seconds for each answer, of a file for each piece of it. Raises ValueError for
    an address that is none, and for one without TLS that is not this machine's."""

    def __init__(self, url: str, token_file: Path | None, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url!r} is no address of a facility, as https://api.example.org/api/v2")
        if parts.username is not None or parts.password is not None:
            raise ValueError("the address of a facility has no user and no password in it")
        if parts.scheme == "http" and token_file is not None and not _is_here(parts.hostname):
            raise ValueError(f"{url!r} is without TLS: anybody on the way could read the token")
        self._host, self._port, self._tls = parts.hostname, parts.port, parts.scheme == "https"
        self._base, self._token_file, self._timeout = parts.path.rstrip("/"), token_file, timeout

    def ask(self, method: str, *path: str, body: object = None, key: str | None = None, again: bool = False,
            **parameters: str | int) -> Any:
        """The JSON of an answer, None where there is none.

        path: its segments; body: text is sent as XML, anything else as JSON; key: names the request, so that sent again
        it is done once; again: it may be done twice. Only such requests, and those that change nothing, are sent again.
        Raises FacilityError.
        """
        headers = {"Accept": "application/json"}
        data = None
        if body is not None:
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            headers["Content-Type"] = "application/xml" if isinstance(body, str) else "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        return self._send(method, path, parameters, headers, data, self._json,
                          _TRIES if again or key is not None or method in ("GET", "DELETE") else 1)

    def text(self, *path: str, kind: str | None = None, **parameters: str | int) -> bytes:
        """The content of a text that a facility has. kind: of media, where it has several. Raises FacilityError."""
        return self._send("GET", path, parameters, {} if kind is None else {"Accept": kind}, None, self._whole, _TRIES)

    def put(self, source: Path, *path: str) -> None:
        """Bring a file to a facility. Raises FacilityError, OSError where the file cannot be read."""
        with open(source, "rb"):
            pass
        self._send("PUT", path, {}, {"Content-Type": "application/octet-stream"}, source, self._whole, _TRIES)

    def fetch(self, target: Path, *path: str) -> None:
        """Bring a file here, whole or not at all. Raises FacilityError, OSError where it cannot be written."""
        fresh = target.with_name(f".psij-{uuid.uuid4().hex}")

        def take(response: http.client.HTTPResponse) -> None:
            """Write what the answer brings, and give it its name when all of it is there."""
            try:
                with open(fresh, "xb") as file:
                    while chunk := self._read(response, _CHUNK):
                        file.write(chunk)
                if response.length:
                    raise FacilityError(f"{self._host} does not answer: the file ends too early", 0)
                os.replace(fresh, target)
            finally:
                fresh.unlink(missing_ok=True)

        self._send("GET", path, {}, {}, None, take, _TRIES, whole=False)

    def _send(self, method: str, path: Sequence[str], parameters: Mapping[str, str | int], headers: dict[str, str],
              data: bytes | Path | None, take: _Take[_T], tries: int, whole: bool = True) -> _T:
        """What ``take`` makes of the answer. tries: how often it is sent, while there is none. whole: all of the answer
        has to be there in time, and not each piece of a file."""
        target = "/".join((self._base, *(quote(segment, safe="") for segment in path)))
        target += f"?{urlencode(parameters)}" if parameters else ""
        headers |= self._authorization()
        for tries_left in reversed(range(tries)):
            try:
                return self._once(method, target, data, headers, take, whole)
            except FacilityError as error:
                if not (tries_left and error.transient):
                    raise
                time.sleep(_PAUSE_S * 2 ** (tries - 1 - tries_left) if error.pause is None else error.pause)
        raise AssertionError("unreachable")

    def _authorization(self) -> Mapping[str, str]:
        """The header with the token, which is read anew: it may have been renewed."""
        if self._token_file is None:
            return {}
        path = self._token_file
        try:
            with open(path, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                token = file.read(_TOKEN).strip()
        except OSError as e:
            raise FacilityError(f"the token cannot be read: {path}: {e.strerror}", 401, e) from e
        if stat.S_IMODE(mode) & 0o077:
            raise FacilityError(f"the token can be read by others: {path}: take their rights away (chmod 600)", 401)
        if not token or not all(0x21 <= octet < 0x7f for octet in token):
            raise FacilityError(f"{path} has no token: one line of visible ASCII characters", 401)
        return {"Authorization": f"Bearer {token.decode()}"}

    def _once(self, method: str, target: str, data: bytes | Path | None, headers: Mapping[str, str],
              take: _Take[_T], whole: bool) -> _T:
        connection = http.client.HTTPSConnection(
            self._host, self._port, timeout=self._timeout, context=ssl.create_default_context()) if self._tls else \
            http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        with ExitStack() as stack:
            stack.callback(connection.close)
            sent: dict[str, str] = dict(headers)
            body: bytes | BinaryIO | None = None if isinstance(data, Path) else data
            if isinstance(data, Path):
                body = stack.enter_context(open(data, "rb"))
                sent["Content-Length"] = str(os.fstat(body.fileno()).st_size)
            try:
                connection.connect()
                if not isinstance(data, Path) and whole:
                    stack.enter_context(self._in_time(connection.sock))
                connection.request(method, target, body, sent)
                response = stack.enter_context(connection.getresponse())
                text = b"" if response.status // 100 == 2 else response.read(_LONGEST)
            except (OSError, http.client.HTTPException) as e:
                raise self._unanswered(e) from e
            if response.status // 100 != 2:
                stated = response.headers.get("Retry-After", "")
                raise FacilityError(f"{self._host} refuses it ({response.status}): {_words(text, response.reason)}",
                                    response.status,
                                    pause=min(float(stated), _LATEST_S) if _SECONDS.fullmatch(stated) else None)
            return take(response)

    @contextmanager
    def _in_time(self, line: socket.socket) -> Iterator[None]:
        """The end of an answer that takes longer than its time in all; each piece of it may come in time."""
        too_late = threading.Event()

        def end() -> None:
            too_late.set()
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(self._timeout, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except FacilityError:
            if not too_late.is_set():
                raise
        finally:
            timer.cancel()
        if too_late.is_set():
            raise self._unanswered(TimeoutError("timed out"))

    def _unanswered(self, error: Exception) -> FacilityError:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
        return FacilityError(f"{self._host} does not answer: {why}", 0, error)

    def _read(self, response: http.client.HTTPResponse, size: int) -> bytes:
        try:
            return response.read(size)
        except (OSError, http.client.HTTPException) as e:
            raise self._unanswered(e) from e

    def _whole(self, response: http.client.HTTPResponse) -> bytes:
        text = self._read(response, _LONGEST + 1)
        if len(text) > _LONGEST:
            raise FacilityError(f"the answer of {self._host} is longer than {_LONGEST} bytes", 413)
        return text

    def _json(self, response: http.client.HTTPResponse) -> Any:
        text = self._whole(response)
        if not text.strip():
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as e:
            raise FacilityError(f"the answer of {self._host} is no JSON", 502, e) from e


def _is_here(host: str) -> bool:
    """Whether a host is this machine by any resolver."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" and socket.gethostbyname(host).startswith("127.")


def _words(text: bytes, reason: str = "") -> str:
    """What a facility says of a refusal: problem details, an object of FastAPI, or text; reason: of the status line,
    which is all that some say."""
    shown = text.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        members = json.loads(text)
        if isinstance(members, dict):
            shown = str(members.get("detail") or members.get("title") or members.get("message") or shown)
    return "".join(c if c.isprintable() else "?" for c in shown[:_DETAIL] or reason[:_DETAIL]) or "it says nothing"
