"""The files of a batch job in the work directory: submit script; records, output and node file by native id and tag.

Directories are 0700 and our own, files 0600. The exit file has one line, the exit code (psij-python's form), or four:
exit code, id of the job, start and end in seconds since the epoch by the clock of the node. The start record has one
line a start: id of the job and time. Both appear under their names when they are whole. What does not belong to us is
no record. They lie where the commands are run: on a host (``_host``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from psij.executors.batch._host import HERE, Host

_CODE = re.compile(r"(\d{1,3})", re.ASCII)
_TIME = re.compile(r"\d{1,12}", re.ASCII)
_NODE = re.compile(r"[\w.-]{1,255}", re.ASCII)
_TAIL = 2048
_LONGEST = 1 << 16     # bytes of a record that are read
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


def exit_file(path: Path, job_id: str | None, host: Host = HERE) -> ExitFile | None:
    """The exit file, if it is there and whole. job_id: of our job; a file that names another one is an old one."""
    lines = _lines(path, host) or [""]
    code = _CODE.fullmatch(lines[0].strip()) if len(lines) in (1, 4) else None
    if code is None or int(code[1]) > 255:
        return None
    if len(lines) == 1:
        return ExitFile(int(code[1]))
    if job_id is not None and lines[1] != job_id:
        return None
    start, end = (float(text) if _TIME.fullmatch(text) else None for text in lines[2:])
    return ExitFile(int(code[1]), lines[1], start, end)


def starts(path: Path, job_id: str | None, host: Host = HERE) -> list[float]:
    """Times of the starts of a job, seconds since the epoch; empty when there is no whole record.

    job_id: of our job; None for any, then those of the last one that is named.
    """
    rows = [line.partition(" ") for line in _lines(path, host) or ()]
    job_name = job_id or (rows[-1][0] if rows else None)
    return [float(time) for name, _, time in rows if name == job_name and _TIME.fullmatch(time)]


def recorded(directory: Path, host: Host = HERE) -> Iterator[tuple[str, str]]:
    """(native id, id of the job) of all jobs that have written a record there, those that have begun first."""
    names = sorted(host.names(directory))
    for name in names:
        if name.endswith(".start"):
            rows = [line.partition(" ") for line in _lines(directory / name, host) or ()]
            yield from ((_native_id(name, ".start", job_id), job_id) for job_id, _, time in rows
                        if _TIME.fullmatch(time))
    for name in names:
        end = exit_file(directory / name, None, host) if name.endswith(".ec") else None
        if end is not None and end.job_id is not None:
            yield _native_id(name, ".ec", end.job_id), end.job_id


def _native_id(name: str, suffix: str, job_id: str) -> str:
    """The native id in the name of a record."""
    return name.removesuffix(suffix).removesuffix(f".{job_id}")


def node_names(path: Path, host: Host = HERE) -> list[str]:
    """The hosts in the node file of a job, each once; empty when there is none of ours, or not the whole of it."""
    lines = _lines(path, host) or []
    names = list(dict.fromkeys(line.strip() for line in lines))
    return names if names and sum(map(len, lines)) + len(lines) < _LONGEST and all(map(_NODE.fullmatch, names)) else []


def _lines(path: Path, host: Host) -> list[str] | None:
    """The lines of a record; None when there is none of ours."""
    text = host.record(path, _LONGEST)
    return None if text is None else text.splitlines()


def output_tail(path: Path, host: Host = HERE) -> tuple[str, bool]:
    """The end of a script's own output without end markers, and whether there was an end marker."""
    lines = host.tail(path, _TAIL).decode("utf-8", "replace").splitlines()
    kept = [line for line in lines if line not in _MARKERS]
    return "\n".join(kept).strip(), len(kept) < len(lines)
