"""Who may do what: users with their tokens and rights, read from a file; how fast each of them may ask; the audit log.

The file has the digests of tokens only, so that who reads it cannot ask in a user's name::

    [users.amy]
    token = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
    may = ["submit"]
    password = "in clear"           # of SSSRMAP, whose signatures are made with it; without it there are none of amy's
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from sssjob.document.element import Container, Property
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.xml._faults import model_problem
from sssjob.xml._toml import TOMLError, read_toml

__all__ = ["RIGHTS", "Audit", "DeniedError", "Pace", "User", "Users", "new_token", "others", "read_users"]

#: Right -> what it allows. Who has none of them converts, matches and quotes documents.
RIGHTS: Final = {
    "submit": "submits jobs, and sees, cancels, holds, suspends, signals and changes the own ones",
    "see-all": "sees the jobs of all users",
    "cancel-all": "cancels, holds, suspends, signals and changes the jobs of all users",
    "act-for": "submits documents that name another User",
    "ledger": "sees the accounts of the ledger",
    "bank": "deposits, withdraws, quotes, reserves, charges and refunds in SSSRMAP",
}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DIGEST: Final = re.compile("sha256:([0-9a-f]{64})")


class DeniedError(UsageError):
    """Something that a user has not the right to."""


@dataclass(frozen=True, slots=True)
class User:
    """Who asks. rights: names of RIGHTS."""

    name: str
    rights: frozenset[str]

    def may(self, right: str) -> bool:
        """Whether the user has a right."""
        return right in self.rights

    def require(self, right: str) -> None:
        """Raise DeniedError where the user has not a right."""
        if right not in self.rights:
            raise DeniedError(f"{self.name} has not the right {right}")


def others(scope: Container, user: User) -> list[str]:
    """The Users whom a job or its defaults ask for, besides this one; who ran a job is a fact, and asks for nothing."""
    names: list[str] = []
    stack = [scope]
    while stack:
        for item in stack.pop().items:
            if isinstance(item, Container):
                stack += [item] if item.tag != "Delivered" else ()
            elif item.tag == "User" and isinstance(item, Property) and item.text != user.name:
                names.append(item.text)
    return names


class Users:
    """All users, by the digests of their tokens."""

    def __init__(self, by_digest: Mapping[str, User], passwords: Mapping[str, bytes] | None = None) -> None:
        self._by_digest = dict(by_digest)
        self._by_name = {user.name: user for user in self._by_digest.values()}
        #: By name, of those who have one: what they sign messages of SSSRMAP with.
        self.passwords = dict(passwords or {})

    def __len__(self) -> int:
        return len(self._by_digest)

    def of(self, token: str) -> User | None:
        """Whose a token is. The digest is looked up, not the token: how long that takes tells nothing of a token."""
        return self._by_digest.get(_digest(token))

    def named(self, name: str) -> User | None:
        """The user of a name."""
        return self._by_name.get(name)


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    token: str
    may: list[str] = []
    password: str | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    users: dict[str, _Entry]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def new_token() -> tuple[str, str]:
    """A token that nobody can guess, and what stands for it in the file."""
    token = secrets.token_urlsafe(32)
    return token, f"sha256:{_digest(token)}"


def read_users(data: bytes, path: str = "-") -> Users:
    """The users of a TOML text. Raises UsageError, which names every problem."""
    try:
        file = _File.model_validate(read_toml(data))
    except TOMLError as error:
        raise UsageError(f"{path}: {error}") from None
    except ValidationError as error:
        problems = "; ".join(map(model_problem, error.errors()[:20]))
        raise UsageError(f"{path}: {escape(problems, 1000)}") from None
    users: dict[str, User] = {}
    for name, entry in file.users.items():
        digest = _DIGEST.fullmatch(entry.token)
        unknown = [right for right in entry.may if right not in RIGHTS]
        if not _NAME.fullmatch(name):
            raise UsageError(f"{path}: {escape(name, 80)!r} is no name of a user (letters, digits, '.', '_', '-')")
        if digest is None:
            raise UsageError(f"{path}: users.{name}.token is not of the form sha256:<64 hexadecimal digits>")
        if unknown:
            raise UsageError(f"{path}: users.{name}.may: unknown right {escape(unknown[0], 40)!r} "
                             f"(known: {', '.join(RIGHTS)})")
        if entry.password == "":
            raise UsageError(f"{path}: users.{name}.password is empty")
        if digest[1] in users:
            raise UsageError(f"{path}: users.{name} has the token of users.{users[digest[1]].name}")
        users[digest[1]] = User(name, frozenset(entry.may))
    return Users(users, {name: entry.password.encode() for name, entry in file.users.items() if entry.password})


@dataclass(slots=True)
class Pace:
    """How fast each one may ask. rate: requests a second in the long run; burst: at once."""

    rate: float
    burst: int
    clock: Callable[[], float] = time.monotonic
    _states: dict[str, tuple[float, float]] = field(default_factory=dict)   # name -> (what is left, when)

    def wait(self, name: str) -> float:
        """Seconds until a request may be made; 0: it may now, and is counted."""
        now = self.clock()
        tokens, when = self._states.get(name, (float(self.burst), now))
        tokens = min(tokens + (now - when) * self.rate, float(self.burst))
        if tokens < 1:
            self._states[name] = (tokens, now)
            return (1 - tokens) / self.rate
        if len(self._states) > 10_000:          # names of addresses: those that have all of it back say nothing
            self._states = {other: state for other, state in self._states.items()
                            if state[0] + (now - state[1]) * self.rate < self.burst}
        self._states[name] = (tokens - 1, now)
        return 0.0


class Audit:
    """The log of who asked for what, a JSON object a line; nothing of a body or a token is in it."""

    def __init__(self, path: str | None, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._file = -1 if path is None else os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def note(self, **facts: Any) -> None:
        """Write a line, whole; facts without a value are left out. A log that cannot be written is told, and stops
        nothing."""
        if self._file < 0:
            return
        stated = {"time": round(self._clock(), 3)} | {name: value for name, value in facts.items() if value is not None}
        line = json.dumps(stated).encode() + b"\n"
        try:
            with self._lock:
                if os.write(self._file, line) < len(line):
                    os.write(self._file, b"\n")
        except OSError as error:
            print(f"sssjob: the audit log cannot be written: {error.strerror}", file=sys.stderr)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
