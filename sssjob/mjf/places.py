"""Where the directories lie: a local directory, a part of a web server, or the metadata of a virtual machine.

A place answers for keys with the bytes it found, "absent", or why it cannot be told. Nothing here hangs or raises: a
directory or a server that cannot be read is an answer too, and never "absent".
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import re
import socket
import ssl
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final, Literal, Protocol
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from sssjob.findings import escape
from sssjob.mjf.keys import Area
from sssjob.mjf.limits import LIMITS, Limits

__all__ = ["METADATA", "Answer", "Here", "Nowhere", "Place", "Told", "Web", "metadata", "place_of"]

#: Where OpenStack's metadata are found; vac and vcycle hand over the same form.
METADATA: Final = "http://169.254.169.254/openstack/latest/meta_data.json"
_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,255}", re.ASCII)
_AGE: Final = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?([0-9]{1,9})", re.ASCII | re.IGNORECASE)
_REFUSED: Final = re.compile(r"(?:^|[,\s])no-(?:cache|store)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a place says of a key. keep_s: how long the server lets it be kept. tags: for the next conditional GET."""

    state: Literal["value", "absent", "unreadable"]
    raw: bytes = b""
    reason: str = ""
    keep_s: float = 0.0
    tags: tuple[tuple[str, str], ...] = ()


_ABSENT: Final = Answer("absent")


class Place(Protocol):
    """A directory of keys."""

    def read(self, names: Iterable[str], known: Mapping[str, Answer]) -> dict[str, Answer]:
        """An answer for every name. known: earlier answers, which a server may confirm instead of repeating them."""
        ...

    def names(self) -> list[str] | None:
        """The names that there are; None where a place cannot be listed."""
        ...


@dataclass(frozen=True, slots=True)
class Nowhere:
    """A place that cannot be read (reason), or that nobody has named (absent)."""

    reason: str
    absent: bool = False

    def read(self, names: Iterable[str], known: Mapping[str, Answer]) -> dict[str, Answer]:
        return dict.fromkeys(names, Answer("absent" if self.absent else "unreadable", reason=self.reason))

    def names(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Told:
    """Values that stood in the metadata themselves (``mjf@machinefeatures@hs06``)."""

    values: Mapping[str, str]

    def read(self, names: Iterable[str], known: Mapping[str, Answer]) -> dict[str, Answer]:
        return {name: self._answer(name) for name in names}

    def _answer(self, name: str) -> Answer:
        value = self.values.get(name)
        return _ABSENT if value is None else Answer("value", value.encode("utf-8", "surrogatepass"))

    def names(self) -> list[str]:
        return sorted(self.values)


# --- local directories

@dataclass(frozen=True, slots=True)
class Here:
    """A local directory."""

    path: str
    limits: Limits = LIMITS

    def read(self, names: Iterable[str], known: Mapping[str, Answer]) -> dict[str, Answer]:
        try:
            directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            return Nowhere(f"{escape(self.path)}: {_why(error)}").read(names, known)
        try:
            return {name: self._answer(directory, name) for name in names}
        finally:
            os.close(directory)

    def names(self) -> list[str] | None:
        try:
            with os.scandir(self.path) as entries:
                return sorted(entry.name for entry, _ in zip(entries, range(self.limits.names), strict=False))
        except (OSError, ValueError):
            return None

    def _answer(self, directory: int, name: str) -> Answer:
        """Only regular files are opened, links only where they stay in the directory; a FIFO never makes us wait."""
        try:
            if not _NAME.fullmatch(name):
                return Answer("unreadable", reason="this name is no key")
            mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            if not stat.S_ISLNK(mode):
                return self._regular(mode, name, directory)
            target = os.path.realpath(os.path.join(self.path, name), strict=True)
            if not target.startswith(os.path.realpath(self.path).rstrip("/") + "/"):
                return Answer("unreadable", reason="a link that leads out of the directory")
            return self._regular(os.stat(target).st_mode, target, None)
        except FileNotFoundError:
            return _ABSENT if not _linked(directory, name) else Answer("unreadable", reason="a link that leads nowhere")
        except OSError as error:
            return Answer("unreadable", reason=_why(error))

    def _regular(self, mode: int, name: str, directory: int | None) -> Answer:
        if not stat.S_ISREG(mode):
            return Answer("unreadable", reason="not a regular file")
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY,
                         dir_fd=directory)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return Answer("unreadable", reason="not a regular file")
            raw = os.read(handle, self.limits.value_bytes + 1)
        finally:
            os.close(handle)
        return _sized(raw, self.limits)


def _linked(directory: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _sized(raw: bytes, limits: Limits) -> Answer:
    if len(raw) > limits.value_bytes:
        return Answer("unreadable", reason=f"larger than value_bytes = {limits.value_bytes} bytes")
    return Answer("value", raw)


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time (request_seconds)"
    return escape((getattr(error, "strerror", None) or str(error) or type(error).__name__), 200)


# --- web servers

@dataclass(slots=True)
class Web:
    """A part of a web server: GET alone, no proxy, one redirect within the origin, a limit on bytes and time.

    context: for https; by default the system's certificates count.
    """

    base: str
    limits: Limits = LIMITS
    context: ssl.SSLContext | None = None
    tree: SplitResult = field(init=False)

    def __post_init__(self) -> None:
        self.tree = urlsplit(self.base)

    def read(self, names: Iterable[str], known: Mapping[str, Answer]) -> dict[str, Answer]:
        wanted = list(names)
        keys = [name for name in wanted if _NAME.fullmatch(name)]
        connection = _Connection(self)
        made = _in_time(connection, connection.fetched(keys, known), keys, self.limits)
        return {name: made.get(name) or Answer("unreadable", reason="this name is no key") for name in wanted}

    def names(self) -> None:
        return None


class _Connection:
    """One connection to an origin, which is opened again where the server closes it."""

    def __init__(self, web: Web, body_bytes: int | None = None) -> None:
        host, port, limit = web.tree.hostname or "", web.tree.port, web.limits.request_seconds
        self.base, self.origin = web.base, web.tree[:2]
        self.limits = web.limits
        self.most = body_bytes or web.limits.value_bytes
        self.http: http.client.HTTPConnection = (
            http.client.HTTPSConnection(host, port, timeout=limit, context=web.context or ssl.create_default_context())
            if web.tree.scheme == "https" else http.client.HTTPConnection(host, port, timeout=limit))

    def stop(self) -> None:
        """Wake the thread that waits for the server."""
        with suppress(OSError):
            if self.http.sock is not None:
                self.http.sock.shutdown(socket.SHUT_RDWR)

    def fetched(self, names: list[str], known: Mapping[str, Answer]) -> Iterator[tuple[str, Answer]]:
        """One connection for all of them. A server that is not there or too slow (OSError) is not asked further."""
        try:
            for name in names:
                try:
                    yield name, self._twice(f"{self.base}/{name}", known.get(name))
                except (http.client.HTTPException, ValueError) as error:
                    self.http.close()
                    yield name, Answer("unreadable", reason=_why(error))
        finally:
            self.http.close()

    def _twice(self, url: str, known: Answer | None) -> Answer:
        """A server may close a connection that was kept; that alone is no failure."""
        kept = self.http.sock is not None
        try:
            return self.get(url, known)
        except (http.client.RemoteDisconnected, ConnectionError):
            self.http.close()
            if not kept:
                raise
            return self.get(url, known)

    def get(self, url: str, known: Answer | None = None, redirects: int = 1) -> Answer:
        """Raises OSError, HTTPException or ValueError where the server gives no answer."""
        path = urlsplit(url)
        headers = {"Accept": "text/plain, */*", "Accept-Encoding": "identity", "User-Agent": "sssjob-mjf"}
        tags = known.tags if known is not None and known.state == "value" else ()
        self.http.request("GET", path.path + (f"?{path.query}" if path.query else ""), headers=headers | dict(tags))
        response = self.http.getresponse()
        if response.status == 304 and tags and known is not None:
            response.read()
            return replace(known, keep_s=_keep(response, self.limits))
        raw = response.read(self.most + 1)
        whole = not response.length and len(raw) <= self.most
        if not whole:
            self.http.close()
        if response.status in (301, 302, 303, 307, 308):
            return self._redirected(url, response, known, redirects)
        return self._answer(response, raw, whole or len(raw) > self.most)

    def _redirected(self, url: str, response: http.client.HTTPResponse, known: Answer | None, left: int) -> Answer:
        target = urljoin(url, response.headers.get("Location", ""))
        if urlsplit(target)[:2] != self.origin:
            return Answer("unreadable", reason=f"a redirect to another origin: {escape(target, 100)}")
        if not left:
            return Answer("unreadable", reason="more than one redirect")
        return self.get(target, known, left - 1)

    def _answer(self, response: http.client.HTTPResponse, raw: bytes, whole: bool) -> Answer:
        keep = _keep(response, self.limits)
        if response.status in (404, 410):
            return Answer("absent", keep_s=keep)
        if response.status != 200:
            return Answer("unreadable", reason=f"HTTP status {response.status} {escape(response.reason, 60)}".rstrip())
        if not whole:
            return Answer("unreadable", reason="the body ends early")
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            return Answer("unreadable", reason="a coded body that was not asked for")
        found = _sized(raw, replace(self.limits, value_bytes=self.most))
        tags = {"If-None-Match": response.headers.get("ETag"),
                "If-Modified-Since": response.headers.get("Last-Modified")}
        return replace(found, keep_s=keep, tags=tuple((k, v) for k, v in tags.items() if v and len(v) < 256))


def _keep(response: http.client.HTTPResponse, limits: Limits) -> float:
    """Seconds that an answer may be kept: max-age less Age, else Expires less Date, at most keep_seconds."""
    control = ",".join(response.headers.get_all("Cache-Control") or ())
    if _REFUSED.search(control):
        return 0.0
    age = _AGE.search(control)
    if age:
        already = response.headers.get("Age", "0")
        seconds = float(age[1]) - (float(already) if re.fullmatch("[0-9]{1,9}", already) else 0.0)
    else:
        try:
            end, start = (parsedate_to_datetime(response.headers[name]) for name in ("Expires", "Date"))
            seconds = (end - start).total_seconds()
        except (TypeError, ValueError, OverflowError):
            return 0.0
    return min(max(seconds, 0.0), limits.keep_seconds)


def _in_time(connection: _Connection, answers: Iterator[tuple[str, Answer]], names: list[str],
             limits: Limits) -> dict[str, Answer]:
    """Answers as a thread of its own gives them, each within request_seconds, all within pass_seconds.

    The time-out of a socket does not help against a name server, nor a server that sends a byte now and then.
    """
    made: dict[str, Answer] = {}
    given: queue.SimpleQueue[tuple[str, Answer] | BaseException | None] = queue.SimpleQueue()
    stopped = threading.Event()

    def work() -> None:
        try:
            for pair in answers:
                given.put(pair)
                if stopped.is_set():
                    return
            given.put(None)
        except Exception as error:          # whatever a foreign server brings about is told of its keys
            given.put(error)

    threading.Thread(target=work, name="sssjob-mjf", daemon=True).start()
    end, reason = time.monotonic() + limits.pass_seconds, ""
    while True:
        try:
            item = given.get(timeout=max(0.0, min(limits.request_seconds, end - time.monotonic())))
        except queue.Empty:
            late = "pass_seconds" if time.monotonic() >= end else "request_seconds"
            reason = f"no answer within {late} = {getattr(limits, late):g} s"
            break
        if not isinstance(item, tuple):
            reason = _why(item) if item else ""
            break
        made[item[0]] = item[1]
    stopped.set()
    connection.stop()
    return {name: made.get(name) or Answer("unreadable", reason=reason) for name in names}


# --- which one

def place_of(base: str, limits: Limits = LIMITS, context: ssl.SSLContext | None = None) -> Place:
    """The place that a variable's value names; what is no place can only be unreadable, never absent."""
    if base.startswith("/"):
        return Here(base.rstrip("/") or "/", limits)
    try:
        url = urlsplit(base)
        if url.scheme == "file" and url.netloc in ("", "localhost") and url.path.startswith("/"):
            return Here(unquote(url.path).rstrip("/") or "/", limits)
        if (url.scheme in ("http", "https") and base.startswith(f"{url.scheme}://") and url.hostname
                and "@" not in url.netloc and not (url.query or url.fragment) and (url.port or 1) > 0
                and re.fullmatch(r"[!-~]+", base)):
            return Web(base.rstrip("/"), limits, context)
    except ValueError:
        pass
    return Nowhere(f"{escape(base, 100)!r} is no absolute path and no file:, http: or https: URL")


@lru_cache(maxsize=8)
def metadata(url: str = METADATA, limits: Limits = LIMITS) -> Mapping[Area, Place]:
    """The places that the metadata of a virtual machine name, asked once in the life of the process.

    Two forms are known: ``meta.machinefeatures`` and ``meta.jobfeatures`` hold the values of the variables, or
    ``meta["mjf@machinefeatures@hs06"]`` and the like hold the values themselves. Without an answer: no places.
    """
    short = replace(limits, request_seconds=limits.metadata_seconds, pass_seconds=limits.metadata_seconds)
    web = place_of(url, short)
    if not isinstance(web, Web):
        return {}

    connection = _Connection(web, limits.metadata_bytes)

    def asked() -> Iterator[tuple[str, Answer]]:
        yield "", connection.get(url)
        connection.http.close()

    try:
        found = json.loads(_in_time(connection, asked(), [""], short)[""].raw)
    except (ValueError, RecursionError):
        return {}
    meta = found.get("meta") if isinstance(found, dict) else None
    return dict(_places(meta, limits)) if isinstance(meta, dict) else {}


def _places(meta: dict[str, object], limits: Limits) -> Iterator[tuple[Area, Place]]:
    areas: tuple[Area, ...] = ("machine", "job")
    for area in areas:
        base, start = meta.get(f"{area}features"), f"mjf@{area}features@"
        values = {k.removeprefix(start): v for k, v in meta.items() if k.startswith(start) and isinstance(v, str)}
        if isinstance(base, str):
            # A server in the network does not get to name local files.
            place = place_of(base, limits)
            yield area, place if isinstance(place, Web) else Nowhere("the metadata name no http: or https: URL")
        elif values:
            yield area, Told(values)
