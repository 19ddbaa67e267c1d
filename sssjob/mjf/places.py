"""A place is where one of the three directories lies: here a local directory; ``web`` has servers and the metadata of
virtual machines.

A place answers for keys with the bytes it found, "absent", or why it cannot be told. Nothing here hangs or raises: a
directory or a server that cannot be read is an answer too, and never "absent".
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from sssjob.findings import escape
from sssjob.mjf.limits import LIMITS, Limits

__all__ = ["METADATA", "NAME", "Answer", "Here", "InMetadata", "Nowhere", "Place", "sized", "why"]

#: Where OpenStack's metadata are found; vac and vcycle hand over the same form.
METADATA: Final = "http://169.254.169.254/openstack/latest/meta_data.json"
#: Of a key.
NAME: Final = re.compile(r"[A-Za-z0-9_]{1,255}", re.ASCII)


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

    def read(self, names: Iterable[str], earlier: Mapping[str, Answer]) -> dict[str, Answer]:
        """An answer for every name. earlier: earlier answers, which a server may confirm instead of repeating them."""
        ...

    def names(self) -> list[str] | None:
        """The names that there are; None where a place cannot be listed."""
        ...


@dataclass(frozen=True, slots=True)
class Nowhere:
    """A place that cannot be read (reason), or that nobody has named (absent)."""

    reason: str
    absent: bool = False

    def read(self, names: Iterable[str], earlier: Mapping[str, Answer]) -> dict[str, Answer]:
        """The same answer for every name."""
        return dict.fromkeys(names, Answer("absent" if self.absent else "unreadable", reason=self.reason))

    def names(self) -> None:
        """None: it cannot be listed."""
        return None


@dataclass(frozen=True, slots=True)
class InMetadata:
    """Values that stood in the metadata themselves (``mjf@machinefeatures@hs06``)."""

    values: Mapping[str, str]

    def read(self, names: Iterable[str], earlier: Mapping[str, Answer]) -> dict[str, Answer]:
        """What the metadata say."""
        return {name: self._answer(name) for name in names}

    def _answer(self, name: str) -> Answer:
        value = self.values.get(name)
        return _ABSENT if value is None else Answer("value", value.encode("utf-8", "surrogatepass"))

    def names(self) -> list[str]:
        """The names that the metadata have, sorted."""
        return sorted(self.values)


# --- local directories

@dataclass(frozen=True, slots=True)
class Here:
    """A local directory."""

    path: str
    limits: Limits = LIMITS

    def read(self, names: Iterable[str], earlier: Mapping[str, Answer]) -> dict[str, Answer]:
        """The contents of the files of these names; nothing outside the directory is read."""
        try:
            directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            return Nowhere(f"{escape(self.path)}: {why(error)}").read(names, earlier)
        try:
            return {name: self._answer(directory, name) for name in names}
        finally:
            os.close(directory)

    def names(self) -> list[str] | None:
        """The names in the directory, sorted, up to the limit names; None where it cannot be read."""
        try:
            with os.scandir(self.path) as entries:
                return sorted(entry.name for entry, _ in zip(entries, range(self.limits.names), strict=False))
        except (OSError, ValueError):
            return None

    def _answer(self, directory: int, name: str) -> Answer:
        """Only regular files are opened, links only where they stay in the directory; a FIFO never makes us wait."""
        try:
            if not NAME.fullmatch(name):
                return Answer("unreadable", reason="this name is no key")
            mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            if not stat.S_ISLNK(mode):
                return self._regular(mode, name, directory)
            folder, target = os.path.split(os.path.realpath(os.path.join(self.path, name), strict=True))
            if folder != os.path.realpath(self.path):
                return Answer("unreadable", reason="a link that leads out of the directory")
            # by its last name alone: whatever lay between could become another link meanwhile
            return self._regular(os.stat(target, dir_fd=directory, follow_symlinks=False).st_mode, target, directory)
        except FileNotFoundError:
            return _ABSENT if not _linked(directory, name) else Answer("unreadable", reason="a link that leads nowhere")
        except OSError as error:
            return Answer("unreadable", reason=why(error))

    def _regular(self, mode: int, name: str, directory: int) -> Answer:
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
        return sized(raw, self.limits)


def _linked(directory: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def sized(raw: bytes, limits: Limits) -> Answer:
    """A value, unless it is too large."""
    if len(raw) > limits.value_bytes:
        return Answer("unreadable", reason=f"larger than value_bytes = {limits.value_bytes} bytes")
    return Answer("value", raw)


def why(error: BaseException) -> str:
    """What went wrong, in a few words."""
    if isinstance(error, TimeoutError):
        return "no answer in time (request_seconds)"
    return escape((getattr(error, "strerror", None) or str(error) or type(error).__name__), 200)
