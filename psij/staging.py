"""What to copy to and from a job's place: types only; executors do the work."""

from __future__ import annotations

import re
from enum import Enum, Flag
from pathlib import Path
from urllib.parse import ParseResult, urlparse

__all__ = ["URI", "StageIn", "StageOut", "StageOutFlags", "StagingMode"]


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|file:", re.ASCII)


class URI:
    """A URI or a plain path. ``str()`` gives the text back unchanged."""

    def __init__(self, urlstring: str) -> None:
        self._text = urlstring
        self._parts: ParseResult = urlparse(urlstring)

    @classmethod
    def _of_path(cls, path: str) -> URI:
        """A plain path, whatever characters it has."""
        uri = cls("")
        uri._text, uri._parts = path, ParseResult("", "", path, "", "", "")
        return uri

    scheme = property(lambda self: self._parts.scheme, doc="Scheme, empty for a plain path.")
    netloc = property(lambda self: self._parts.netloc, doc="User, host and port as written.")
    path = property(lambda self: self._parts.path, doc="Path.")
    params = property(lambda self: self._parts.params, doc="Parameters of the last path segment.")
    query = property(lambda self: self._parts.query, doc="Query.")
    fragment = property(lambda self: self._parts.fragment, doc="Fragment.")

    @property
    def hostname(self) -> str | None:
        """Host name in lower case, or None."""
        return self._parts.hostname

    @property
    def port(self) -> int | None:
        """Port, or None. Raises ValueError when it is not a port number."""
        return self._parts.port

    @property
    def username(self) -> str | None:
        """User name, or None."""
        return self._parts.username

    @property
    def password(self) -> str | None:
        """Password, or None."""
        return self._parts.password

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"URI({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, URI) and (self._text, self._parts) == (other._text, other._parts)

    def __hash__(self) -> int:
        return hash(self._text)


class StagingMode(Enum):
    """How a file gets to its target; LINK makes a symbolic link."""

    COPY = 1
    LINK = 2
    MOVE = 3


class StageOutFlags(Flag):
    """When a file is staged out (or removed, for ``cleanup_flags``)."""

    NONE = 0
    IF_PRESENT = 1
    ON_SUCCESS = 2
    ON_ERROR = 4
    ON_CANCEL = 8
    ALWAYS = 14


def _as_uri(value: str | Path | URI) -> URI:
    """Text is a URI when it begins with a scheme and a slash, or with ``file:``; else a plain path, as a Path is."""
    if isinstance(value, str):
        return URI(value) if _SCHEME.match(value) else URI._of_path(value)
    return URI._of_path(str(value)) if isinstance(value, Path) else value


class StageIn:
    """A file or folder to bring to the job before it starts.

    source: text, Path or URI; a relative path is under the client's directory. target: a relative path is under the
    job's directory.
    """

    def __init__(self, source: str | Path | URI, target: str | Path, mode: StagingMode = StagingMode.COPY) -> None:
        self.source: URI = _as_uri(source)
        self.target: Path = Path(target)
        self.mode = mode

    def _key(self) -> tuple[object, ...]:
        return (self.source, self.target, self.mode)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StageIn) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"StageIn({str(self.source)!r}, {str(self.target)!r}, {self.mode})"


class StageOut:
    """A file or folder to bring back after the job.

    source: a relative path is under the job's directory. target: text, Path or URI; a relative path is under the
    client's directory. Flags with none of the ON_* bits mean ALWAYS, with IF_PRESENT kept.
    """

    def __init__(self, source: str | Path, target: str | Path | URI, flags: StageOutFlags = StageOutFlags.ALWAYS,
                 mode: StagingMode = StagingMode.COPY) -> None:
        self.source: Path = Path(source)
        self.target: URI = _as_uri(target)
        self.flags = flags
        self.mode = mode

    @property
    def flags(self) -> StageOutFlags:
        """When to bring it back."""
        return self._flags

    @flags.setter
    def flags(self, flags: StageOutFlags) -> None:
        """Have these conditions; none of them means ALWAYS."""
        self._flags = flags if flags & StageOutFlags.ALWAYS else flags | StageOutFlags.ALWAYS

    def _key(self) -> tuple[object, ...]:
        return (self.source, self.target, self.flags, self.mode)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StageOut) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"StageOut({str(self.source)!r}, {str(self.target)!r}, {self.flags}, {self.mode})"
