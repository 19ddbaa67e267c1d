"""A job that waits until the test says so, but not for ever."""

from __future__ import annotations

import shlex
from os import PathLike, fspath

__all__ = ["until_there"]


def until_there(path: str | PathLike[str] = "go", seconds: float = 60) -> str:
    """Lines of shell that wait for a file. seconds: at most; a test that is killed leaves no loop that goes on."""
    return f'for _ in $(seq {round(seconds * 20)}); do [ ! -e {shlex.quote(fspath(path))} ] || break; sleep 0.05; done'
