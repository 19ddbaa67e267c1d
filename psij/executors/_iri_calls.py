"""Requests to a facility that speaks the IRI Facility API: one connection each, JSON, a token from a file.

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
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
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


class FacilityError(SubmitException):
    """A request that a facility did not do. status: of HTTP, 0 where there was no answer; pause: seconds after which it
    wants to be asked again, None where it does not say that."""

    def __init__(self, message: str, status: int, exception: BaseException | None = None,
                 pause: float | None = None) -> None:
        super().__init__(message, exception, transient=status == 0 or status in _AGAIN)
        self.status, self.pause = status, pause


class Facility:
    """One facility. url: up to the version, as ``https://api.example.org/api/v2``; token_file: has the token, and is
    readable by its owner only; timeout: seconds for each answer. Raises ValueError for an address that is none, and for
    one without TLS that is not this machine's."""

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

    def ask(self, method: str, *path: str, body: object = None, key: str | None = None,
            **parameters: str | int) -> Any:
        """The JSON of an answer, None where there is none. path: its segments; key: names the request, so that sent
        again it is done once: only such a request, and one that changes nothing, is sent again. Raises FacilityError.
        """
        target = "/".join((self._base, *(quote(segment, safe="") for segment in path)))
        target += f"?{urlencode(parameters)}" if parameters else ""
        headers = {"Accept": "application/json", **self._authorization()}
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        tries = _TRIES if key is not None or method in ("GET", "DELETE") else 1
        for tries_left in reversed(range(tries)):
            try:
                return self._once(method, target, data, headers)
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

    def _once(self, method: str, target: str, data: bytes | None, headers: Mapping[str, str]) -> Any:
        connection = http.client.HTTPSConnection(
            self._host, self._port, timeout=self._timeout, context=ssl.create_default_context()) if self._tls else \
            http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        try:
            connection.request(method, target, data, dict(headers))
            response = connection.getresponse()
            text = response.read(_LONGEST + 1)
        except (OSError, http.client.HTTPException) as e:
            why = e.strerror if isinstance(e, OSError) and e.strerror else str(e) or type(e).__name__
            raise FacilityError(f"{self._host} does not answer: {why}", 0, e) from e
        finally:
            connection.close()
        if len(text) > _LONGEST:
            raise FacilityError(f"the answer of {self._host} is longer than {_LONGEST} bytes", 413)
        if not 200 <= response.status < 300:
            stated = response.headers.get("Retry-After", "")
            raise FacilityError(f"{self._host} refuses it ({response.status}): {_words(text)}", response.status,
                                pause=min(float(stated), _LATEST_S) if _SECONDS.fullmatch(stated) else None)
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


def _words(text: bytes) -> str:
    """What a facility says of a refusal: problem details, an object of FastAPI, or text."""
    shown = text.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        members = json.loads(text)
        if isinstance(members, dict):
            shown = str(members.get("detail") or members.get("title") or members.get("message") or shown)
    return "".join(c if c.isprintable() else "?" for c in shown[:_DETAIL]) or "it says nothing"
