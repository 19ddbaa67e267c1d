"""The HTTP provider: publishes local directories read-only, with cache headers.

What it serves are the keys of the table and nothing else in those directories, so no path leads anywhere: a name that
is no key is not found, whatever it spells. Static keys may be kept for ten minutes, dynamic ones for half of one.
"""

from __future__ import annotations

import hashlib
import html
import os
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

from sssjob.mjf.keys import KEYS, Area, keys_of
from sssjob.mjf.limits import LIMITS, Limits
from sssjob.mjf.places import Here

__all__ = ["PATHS", "Server"]

#: Area -> the first part of the path, as the metadata keys are called.
PATHS: Final[Mapping[Area, str]] = {"machine": "machinefeatures", "job": "jobfeatures", "status": "jobstatus"}


class Server(HTTPServer):
    """Serves directories until ``shutdown``. directories: area -> local directory. address: (host, port); port 0
    takes a free one. A thread a request, at most ``connections`` of them."""

    daemon_threads = True

    def __init__(self, directories: Mapping[Area, str], address: tuple[str, int] = ("127.0.0.1", 0),
                 limits: Limits = LIMITS) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self.directories, self.limits = dict(directories), limits
        self._room = threading.BoundedSemaphore(limits.connections)
        super().__init__(address, _Handler)

    @property
    def urls(self) -> dict[Area, str]:
        """Area -> the URL of its directory, without a slash at the end."""
        host, port = self.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        return {area: f"http://{shown}:{port}/{PATHS[area]}" for area in self.directories}

    def server_bind(self) -> None:
        """Without asking a name server for our own name."""
        socket.socket.setsockopt(self.socket, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve it in a thread of its own; closed at once where there are too many."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        threading.Thread(target=self._work, args=(request, client_address), daemon=True).start()

    def _work(self, request: socket.socket, client_address: Any) -> None:
        """One request, cut off after connection_seconds however it trickles."""
        end = threading.Timer(self.limits.connection_seconds, _cut, (request,))
        end.daemon = True
        end.start()
        try:
            with suppress(OSError, ValueError):     # a client that left or was cut off; nobody reads a log here
                self.finish_request(request, client_address)
        finally:
            end.cancel()
            with suppress(OSError):
                self.shutdown_request(request)
            self._room.release()


def _cut(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """HTTP/1.0: one request a connection."""

    server: Server
    server_version = "sssjob-mjf"
    sys_version = ""

    def do_GET(self) -> None:
        """A key, or the list of an area."""
        self._serve(body=True)

    def do_HEAD(self) -> None:
        """The same without its body."""
        self._serve(body=False)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nobody reads it."""

    def _serve(self, body: bool) -> None:
        parts = self.path.partition("?")[0].split("/")
        area = next((a for a, p in PATHS.items() if parts[1:2] == [p] and a in self.server.directories), None)
        if area is None or len(parts) > 3 or parts[0]:
            self._send(HTTPStatus.NOT_FOUND, b"", 60, body)
        elif len(parts) == 2 or not parts[2]:
            self._list(area, body)
        else:
            self._key(area, parts[2], body)

    def _key(self, area: Area, name: str, body: bool) -> None:
        key = KEYS.get(name)
        if key is None or key.area != area:
            self._send(HTTPStatus.NOT_FOUND, b"", 60, body)
            return
        seconds = self._seconds(key.dynamic)
        place = Here(self.server.directories[area], self.server.limits)
        answer = place.read([name], {})[name]
        if answer.state == "absent":
            self._send(HTTPStatus.NOT_FOUND, b"", self._seconds(True), body)
        elif answer.state == "unreadable":
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, b"", 0, body)
        else:
            self._send(HTTPStatus.OK, answer.raw, seconds, body, self._modified(area, name))

    def _list(self, area: Area, body: bool) -> None:
        directory = self.server.directories[area]
        names = set(Here(directory).names() or ())
        links = "".join(f'<li><a href="/{PATHS[area]}/{html.escape(k.name)}">{html.escape(k.name)}</a></li>\n'
                        for k in keys_of(area) if k.name in names)
        page = f"<!doctype html>\n<title>{PATHS[area]}</title>\n<ul>\n{links}</ul>\n"
        self._send(HTTPStatus.OK, page.encode(), self._seconds(True), body, kind="text/html; charset=utf-8")

    def _seconds(self, dynamic: bool) -> int:
        limits = self.server.limits
        return int(limits.reread_seconds if dynamic else limits.keep_seconds)

    def _modified(self, area: Area, name: str) -> str:
        try:
            return self.date_time_string(os.stat(os.path.join(self.server.directories[area], name)).st_mtime)
        except OSError:
            return ""               # gone since: then there is no key either

    def _send(self, status: HTTPStatus, data: bytes, keep_s: int, body: bool, modified: str = "",
              kind: str = "text/plain; charset=utf-8") -> None:
        tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"' if status is HTTPStatus.OK else ""
        if tag and self._confirmed(tag, modified):
            status, data = HTTPStatus.NOT_MODIFIED, b""
        self.send_response(status)
        self.send_header("Cache-Control", f"max-age={keep_s}" if keep_s else "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in (("ETag", tag), ("Last-Modified", modified)):
            if value:
                self.send_header(name, value)
        if status is not HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def _confirmed(self, tag: str, modified: str) -> bool:
        """Whether the client has this already; a tag counts more than a time."""
        tags = self.headers.get("If-None-Match")
        if tags is not None:
            return tag in [t.strip().removeprefix("W/") for t in tags.split(",")] or tags.strip() == "*"
        since = self.headers.get("If-Modified-Since")
        if not modified or since is None:
            return False
        try:
            return parsedate_to_datetime(modified) <= parsedate_to_datetime(since)
        except (TypeError, ValueError, OverflowError):
            return False            # no date, or one without a zone: it is as if it was not there
