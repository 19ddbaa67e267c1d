"""The files of a batch job in the work directory: submit script, and exit code, output and node file by native id.

Directories are 0700, files 0600. The exit file has one line, the exit code (psij-python's form), or four: exit code,
id of the job, start and end in seconds since the epoch by the clock of the node.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ExitFile", "clear_old", "exit_file", "make_private", "output_tail", "write_script"]

_CODE = re.compile(r"(\d{1,3})", re.ASCII)
_TIME = re.compile(r"\d{1,12}", re.ASCII)
_TAIL = 2048
_OLD_S = 30 * 24 * 3600
_ENDINGS = (".job", ".out", ".ec", ".nodefile", ".keep", ".new")
_MARKERS = ("_PSIJ_SCRIPT_DONE", "_PSI_J_LAUNCHER_DONE")


@dataclass(frozen=True, slots=True)
class ExitFile:
    """What a submit script wrote at its end. Times are seconds since the epoch, None when they are not in it."""

    code: int
    job_id: str | None = None
    start_time: float | None = None
    end_time: float | None = None


def make_private(directory: Path) -> Path:
    """Make a directory that only we can enter; one of ours that others can enter is closed."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = directory.stat()
    if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & 0o077:
        directory.chmod(0o700)
    return directory


def clear_old(directory: Path, now: float) -> None:
    """Remove files that nobody has touched for a month, left by programs that ended before their jobs."""
    for entry in os.scandir(directory):
        if entry.name.endswith(_ENDINGS) and now - entry.stat(follow_symlinks=False).st_mtime > _OLD_S:
            with suppress(OSError):
                os.unlink(entry)


def write_script(path: Path, text: str) -> None:
    """Write a new file with mode 0600; nothing is left when that fails. Undecodable bytes go out as they came in."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            file.write(text)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def exit_file(path: Path, job_id: str | None) -> ExitFile | None:
    """The exit file, if it is there and whole. job_id: of our job; a file that names another one is an old one."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            lines = file.read(4096).splitlines()
    except OSError:
        return None
    code = _CODE.fullmatch(lines[0].strip()) if len(lines) in (1, 4) else None
    if code is None or int(code[1]) > 255:
        return None
    if len(lines) == 1:
        return ExitFile(int(code[1]))
    if job_id is not None and lines[1] != job_id:
        return None
    start, end = (float(text) if _TIME.fullmatch(text) else None for text in lines[2:])
    return ExitFile(int(code[1]), lines[1], start, end)


def output_tail(path: Path) -> tuple[str, bool]:
    """The end of a script's own output without end markers, and whether there was an end marker."""
    with suppress(OSError), open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        lines = file.read(_TAIL).decode("utf-8", "replace").splitlines()
        kept = [line for line in lines if line not in _MARKERS]
        return "\n".join(kept).strip(), len(kept) < len(lines)
    return "", False
