"""Directories that a web server has, and the metadata of a virtual machine, which name them or hold the values."""

from __future__ import annotations

import http.client
import json
import queue
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from sssjob.findings import escape
from sssjob.mjf.keys import Area
from sssjob.mjf.limits import LIMITS, Limits
from sssjob.mjf.places import METADATA, NAME, Answer, InMetadata, Nowhere, Place, sized, why

__all__ = ["Web", "metadata", "web_of"]

_AGE: Final = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?([0-9]{1,9})", re.ASCII | re.IGNORECASE)
_REFUSED: Final = re.compile(r"(?:^|[,\s])no-(?:cache|store)\b", re.IGNORECASE)


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

    def read(self, names: Iterable[str], earlier: Mapping[str, Answer]) -> dict[str, Answer]:
        """What the server says within the limits of time; a name that is no key is never sent."""
        requested = list(names)
        keys = [name for name in requested if NAME.fullmatch(name)]
        connection = _Connection(self)
        answers = _in_time(connection, connection.fetched(keys, earlier), keys, self.limits)
        return {name: answers.get(name) or Answer("unreadable", reason="this name is no key") for name in requested}

    def names(self) -> None:
        """None: a server is not listed."""
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

    def fetched(self, names: list[str], earlier: Mapping[str, Answer]) -> Iterator[tuple[str, Answer]]:
        """One connection for all of them. A server that is not there or too slow (OSError) is not asked further."""
        try:
            for name in names:
                try:
                    yield name, self._twice(f"{self.base}/{name}", earlier.get(name))
                except (http.client.HTTPException, ValueError) as error:
                    self.http.close()
                    yield name, Answer("unreadable", reason=why(error))
        finally:
            self.http.close()

    def _twice(self, url: str, earlier: Answer | None) -> Answer:
        """A server may close a connection that was kept; that alone is no failure."""
        kept = self.http.sock is not None
        try:
            return self.get(url, earlier)
        except (http.client.RemoteDisconnected, ConnectionError):
            self.http.close()
            if not kept:
                raise
            return self.get(url, earlier)

    def get(self, url: str, earlier: Answer | None = None, redirects: int = 1) -> Answer:
        """Raises OSError, HTTPException or ValueError where the server gives no answer."""
        path = urlsplit(url)
        headers = {"Accept": "text/plain, */*", "Accept-Encoding": "identity", "User-Agent": "sssjob-mjf"}
        tags = earlier.tags if earlier is not None and earlier.state == "value" else ()
        self.http.request("GET", path.path + (f"?{path.query}" if path.query else ""), headers=headers | dict(tags))
        response = self.http.getresponse()
        if response.status == 304 and tags and earlier is not None:
            response.read()
            return replace(earlier, keep_s=_keep(response, self.limits))
        raw = response.read(self.most + 1)
        whole = not response.length and len(raw) <= self.most
        if not whole:
            self.http.close()
        if response.status in (301, 302, 303, 307, 308):
            return self._redirected(url, response, earlier, redirects)
        return self._answer(response, raw, whole or len(raw) > self.most)

    def _redirected(self, url: str, response: http.client.HTTPResponse, earlier: Answer | None,
                    redirects: int) -> Answer:
        target = urljoin(url, response.headers.get("Location", ""))
        if urlsplit(target)[:2] != self.origin:
            return Answer("unreadable", reason=f"a redirect to another origin: {escape(target, 100)}")
        if not redirects:
            return Answer("unreadable", reason="more than one redirect")
        return self.get(target, earlier, redirects - 1)

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
        answer = sized(raw, replace(self.limits, value_bytes=self.most))
        tags = {"If-None-Match": response.headers.get("ETag"),
                "If-Modified-Since": response.headers.get("Last-Modified")}
        return replace(answer, keep_s=keep, tags=tuple((k, v) for k, v in tags.items() if v and len(v) < 256))


def _keep(response: http.client.HTTPResponse, limits: Limits) -> float:
    """Seconds that an answer may be kept, at most keep_seconds: max-age, else Expires less Date (our own clock where a
    server has none), and of both what a cache between has not used up (Age)."""
    control = ",".join(response.headers.get_all("Cache-Control") or ())
    if _REFUSED.search(control):
        return 0.0
    stated, already = _AGE.search(control), response.headers.get("Age", "")
    try:
        seconds = float(stated[1]) if stated else _until_expires(response)
    except (TypeError, ValueError, OverflowError):      # no date
        return 0.0
    seconds -= float(already) if re.fullmatch("[0-9]{1,9}", already) else 0.0
    return min(max(seconds, 0.0), limits.keep_seconds)


def _until_expires(response: http.client.HTTPResponse) -> float:
    end, date = parsedate_to_datetime(response.headers["Expires"]), response.headers.get("Date")
    start = datetime.now(UTC) if date is None else parsedate_to_datetime(date)
    return (end - start).total_seconds()


def _in_time(connection: _Connection, answers: Iterator[tuple[str, Answer]], names: list[str],
             limits: Limits) -> dict[str, Answer]:
    """Answers as a thread of its own gives them, each within request_seconds, all within pass_seconds.

    The time-out of a socket does not help against a name server, nor a server that sends a byte now and then.
    """
    answered: dict[str, Answer] = {}
    arriving: queue.SimpleQueue[tuple[str, Answer] | BaseException | None] = queue.SimpleQueue()
    stopped = threading.Event()

    def work() -> None:
        """Ask for one answer after the other, until nobody waits any more."""
        try:
            for pair in answers:
                arriving.put(pair)
                if stopped.is_set():
                    return
            arriving.put(None)
        except Exception as error:          # whatever a foreign server brings about is told of its keys
            arriving.put(error)

    threading.Thread(target=work, name="sssjob-mjf", daemon=True).start()
    end, reason = time.monotonic() + limits.pass_seconds, ""
    while True:
        try:
            item = arriving.get(timeout=max(0.0, min(limits.request_seconds, end - time.monotonic())))
        except queue.Empty:
            late = "pass_seconds" if time.monotonic() >= end else "request_seconds"
            reason = f"no answer within {late} = {getattr(limits, late):g} s"
            break
        if not isinstance(item, tuple):
            reason = why(item) if item else ""
            break
        answered[item[0]] = item[1]
    stopped.set()
    connection.stop()
    return {name: answered.get(name) or Answer("unreadable", reason=reason) for name in names}


def web_of(base: str, limits: Limits = LIMITS, context: ssl.SSLContext | None = None) -> Web | None:
    """The part of a web server that an http: or https: URL names; None for anything else, which includes URLs with a
    user, a query or a fragment."""
    try:
        url = urlsplit(base)
        if (url.scheme in ("http", "https") and base.startswith(f"{url.scheme}://") and url.hostname
                and "@" not in url.netloc and not (url.query or url.fragment) and (url.port or 1) > 0
                and re.fullmatch(r"[!-~]+", base)):
            return Web(base.rstrip("/"), limits, context)
    except ValueError:
        pass
    return None


@lru_cache(maxsize=8)
def metadata(url: str = METADATA, limits: Limits = LIMITS) -> Mapping[Area, Place]:
    """The places that the metadata of a virtual machine name, asked once in the life of the process.

    Two forms are known: ``meta.machinefeatures`` and ``meta.jobfeatures`` hold the values of the variables, or
    ``meta["mjf@machinefeatures@hs06"]`` and the like hold the values themselves. Without an answer: no places.
    """
    short = replace(limits, request_seconds=limits.metadata_seconds, pass_seconds=limits.metadata_seconds)
    web = web_of(url, short)
    if web is None:
        return {}

    connection = _Connection(web, limits.metadata_bytes)

    def asked() -> Iterator[tuple[str, Answer]]:
        """The answer for the address itself, under the empty name."""
        yield "", connection.get(url)
        connection.http.close()

    try:
        document = json.loads(_in_time(connection, asked(), [""], short)[""].raw)
    except (ValueError, RecursionError):
        return {}                   # no metadata, which most machines have not
    meta = document.get("meta") if isinstance(document, dict) else None
    return dict(_places(meta, limits)) if isinstance(meta, dict) else {}


def _places(meta: dict[str, object], limits: Limits) -> Iterator[tuple[Area, Place]]:
    areas: tuple[Area, ...] = ("machine", "job")
    for area in areas:
        base, start = meta.get(f"{area}features"), f"mjf@{area}features@"
        values = {k.removeprefix(start): v for k, v in meta.items() if k.startswith(start) and isinstance(v, str)}
        if isinstance(base, str):
            # A server in the network does not get to name local files.
            yield area, web_of(base, limits) or Nowhere("the metadata name no http: or https: URL")
        elif values:
            yield area, InMetadata(values)
