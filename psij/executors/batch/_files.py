"""The files of a batch job in the work directory: submit script; records, output and node file by native id and tag.

Directories are 0700 and our own, files 0600. The exit file has one line, the exit code (psij-python's form), or four:
exit code, id of the job, start and end in seconds since the epoch by the clock of the node. The start record has one
line a start: id of the job and time. Both appear under their names when they are whole. What does not belong to us is
no record.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["KEEP", "ExitFile", "clear_old", "exit_file", "make_private", "node_names", "output_tail", "recorded",
           "starts", "write_script"]

_CODE = re.compile(r"(\d{1,3})", re.ASCII)
_TIME = re.compile(r"\d{1,12}", re.ASCII)
_NODE = re.compile(r"[\w.-]{1,255}", re.ASCII)
_TAIL = 2048
_LONGEST = 1 << 16     # bytes of a record that are read
_OLD_S = 30 * 24 * 3600
_ENDINGS = (".job", ".out", ".ec", ".nodefile", ".keep", ".start", ".new")
#: Of the directory of a native job in which those are noted who are attached to it.
KEEP = ".keep"
_MARKERS = ("_PSIJ_SCRIPT_DONE", "_PSI_J_LAUNCHER_DONE")


@dataclass(frozen=True, slots=True)
class ExitFile:
    """What a submit script wrote at its end. Times are seconds since the epoch, None when they are not in it."""

    code: int
    job_id: str | None = None
    start_time: float | None = None
    end_time: float | None = None


def make_private(directory: Path) -> Path:
    """Make a directory that only we can enter; one of ours that others can enter is closed.

    Raises PermissionError for one that belongs to somebody else, who could put scripts and records into it.
    """
    if not directory.is_dir():
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = directory.stat()
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "the work directory belongs to another user", str(directory))
    if stat.S_IMODE(found.st_mode) & 0o077:
        directory.chmod(0o700)
    return directory


def clear_old(directory: Path, now: float) -> None:
    """Remove files that nobody has touched for a month, left by programs that ended before their jobs."""
    for entry in os.scandir(directory):
        if not entry.name.endswith(_ENDINGS):
            continue
        with suppress(OSError):         # gone meanwhile, or not to be removed: no reason not to submit
            if now - entry.stat(follow_symlinks=False).st_mtime <= _OLD_S:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry, ignore_errors=True)
            else:
                os.unlink(entry)


def write_script(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a new file with that mode; nothing is left when that fails. Undecodable bytes go out as they came in."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with open(fd, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            file.write(text)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def exit_file(path: Path, job_id: str | None) -> ExitFile | None:
    """The exit file, if it is there and whole. job_id: of our job; a file that names another one is an old one."""
    lines = _lines(path) or [""]
    code = _CODE.fullmatch(lines[0].strip()) if len(lines) in (1, 4) else None
    if code is None or int(code[1]) > 255:
        return None
    if len(lines) == 1:
        return ExitFile(int(code[1]))
    if job_id is not None and lines[1] != job_id:
        return None
    start, end = (float(text) if _TIME.fullmatch(text) else None for text in lines[2:])
    return ExitFile(int(code[1]), lines[1], start, end)


def starts(path: Path, job_id: str | None) -> list[float]:
    """Times of the starts of a job, seconds since the epoch; empty when there is no whole record.

    job_id: of our job; None for any, then those of the last one that is named.
    """
    rows = [line.partition(" ") for line in _lines(path) or ()]
    wanted = job_id or (rows[-1][0] if rows else None)
    return [float(time) for name, _, time in rows if name == wanted and _TIME.fullmatch(time)]


def recorded(directory: Path) -> Iterator[tuple[str, str]]:
    """(native id, id of the job) of all jobs that have written a record there, those that have begun first."""
    names = sorted(os.listdir(directory)) if directory.is_dir() else []
    for name in names:
        if name.endswith(".start"):
            rows = [line.partition(" ") for line in _lines(directory / name) or ()]
            yield from ((_native_id(name, ".start", job_id), job_id) for job_id, _, time in rows
                        if _TIME.fullmatch(time))
    for name in names:
        if name.endswith(".ec") and (end := exit_file(directory / name, None)) is not None and end.job_id is not None:
            yield _native_id(name, ".ec", end.job_id), end.job_id


def _native_id(name: str, suffix: str, job_id: str) -> str:
    """The native id in the name of a record."""
    return name.removesuffix(suffix).removesuffix(f".{job_id}")


def node_names(path: Path) -> list[str]:
    """The hosts in the node file of a job, each once; empty when there is none of ours, or not the whole of it."""
    lines = _lines(path) or []
    names = list(dict.fromkeys(line.strip() for line in lines))
    return names if names and sum(map(len, lines)) + len(lines) < _LONGEST and all(map(_NODE.fullmatch, names)) else []


def _lines(path: Path) -> list[str] | None:
    """The lines of a record; None when there is none of ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, encoding="ascii", errors="replace") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                return None
            return file.read(_LONGEST).splitlines()
    except OSError:         # not there, not yet, or not to be read now: no record
        return None


def output_tail(path: Path) -> tuple[str, bool]:
    """The end of a script's own output without end markers, and whether there was an end marker."""
    with suppress(OSError), open(path, "rb") as file:       # a script that never ran has none
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        lines = file.read(_TAIL).decode("utf-8", "replace").splitlines()
        kept = [line for line in lines if line not in _MARKERS]
        return "\n".join(kept).strip(), len(kept) < len(lines)
    return "", False
