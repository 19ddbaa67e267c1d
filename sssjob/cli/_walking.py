"""The files below a folder, for the commands that take whole trees. Nothing outside of the folder is named, no link to
a folder is followed, so that links in circles are harmless, and hidden files are left out."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from sssjob.limits import LIMITS

if TYPE_CHECKING:
    from sssjob.translators.base import Translator
    from sssjob.translators.recognise import Sample

_HEAD: Final = 8192         # bytes in which a binary file has a NUL


class Found(NamedTuple):
    """A file of a tree, its path as text; or what is left alone (``skipped``) or cannot be read (``unreadable``), and
    why."""

    name: str
    outcome: str = ""
    why: str = ""


def walked(root: Path, without: Path | None = None) -> Iterator[Found]:
    """The files in order of their names. without: a folder that is left out."""
    within = root.resolve()
    left_out = None if without is None else without.resolve()
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda e: e.name)
        except OSError as error:
            yield Found(str(folder), "unreadable", error.strerror or str(error))
            continue
        below = []
        is_here = folder == Path()
        for entry in entries:
            if entry.name.startswith("."):
                continue
            name = entry.name if is_here else entry.path
            if entry.is_dir(follow_symlinks=False):
                path = Path(name)
                if left_out is None or path.resolve() != left_out:
                    below.append(path)
            elif not entry.is_file(follow_symlinks=False) and (why := _left_alone(Path(name), within)):
                yield Found(name, "skipped", why)
            else:
                yield Found(name)
        folders += reversed(below)


def _left_alone(path: Path, within: Path) -> str:
    """Why a file is not looked at."""
    try:
        target = path.resolve(strict=True)
        kind = target.stat().st_mode
    except (OSError, RuntimeError):
        return "a link that leads nowhere"
    if not target.is_relative_to(within):
        return "a link that leads out of the tree"
    if stat.S_ISDIR(kind):
        return "a link to a directory"
    return "" if stat.S_ISREG(kind) else "no regular file"


def script_of(name: str) -> tuple[Sample | str, list[Translator]]:
    """The text of a file of a folder, and the dialects that it may be in; of one that is no script the reason, and no
    dialect."""
    from sssjob.translators.recognise import Sample, scripts

    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, _HEAD)
        binary = b"\0" in data
        if not binary and len(data) == _HEAD:
            with open(descriptor, "rb", closefd=False) as file:
                data += file.read(LIMITS.script_bytes + 1 - _HEAD)
    finally:
        os.close(descriptor)
    if binary or len(data) > LIMITS.script_bytes:
        return "binary" if binary else "too large for a script", []
    sample = Sample(data, name)
    fits = scripts(sample)
    return sample if fits else "not recognised as a script", fits
