"""What answers of resource managers have in common: whole lines, ids and tags, and what PSI/J makes of a native state.

Text in, values out: no process and no file in here, and no manager is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from psij.executors.batch._options import warn_once
from psij.job_state import JobState
from sssjob.lrm.states import NativeState, Stage
from sssjob.lrm.usage import present
from sssjob.lrm.waits import HELD

T = TypeVar("T")
_PIECE = 1 << 16        # characters of a long answer that are taken apart at once


def whole_lines(out: str) -> list[str]:
    """The lines of an answer. Raises ValueError where the last one is cut off: what would follow is missing too, and
    may be of a job that is shown."""
    *lines, rest = out.split("\n")
    if rest:
        raise ValueError(f"the answer is cut off behind {rest[-80:]!r}")
    return lines


def line_blocks(out: str, start: int) -> Iterator[list[str]]:
    """The whole lines of a list of jobs from a place on, some at a time: of a million jobs few are wanted. One that was
    cut off is left out: each line tells of one job, and of a job that is not there others are asked."""
    while start < len(out):
        end = out.find("\n", start + _PIECE)
        end = out.rfind("\n", start) if end < 0 else end
        if end < 0:
            return
        yield out[start:end].split("\n")
        start = end + 1


def readable(command: str, entries: Iterable[T], is_job: Callable[[T], object]) -> list[T]:
    """The entries of an answer that can be understood as jobs. Raises ValueError where there are some and none can: it
    has another form, and says nothing of what it does not list."""
    every_entry = list(entries)
    jobs = [entry for entry in every_entry if is_job(entry)]
    if every_entry and not jobs:
        raise ValueError(f"{command} tells of no job what is asked for: {every_entry[0]!r:.200}")
    return jobs


_IN_BRACKETS = re.compile(r"(\d+)\[\d*\](.*)", re.ASCII)


def array_id(native_id: str) -> str:
    """The id of the array that ``12_3``, ``12_[4-9%2]``, ``12.3`` or ``12[3].host`` (``12[].host``) is an element of;
    any other id as it is."""
    if (in_brackets := _IN_BRACKETS.fullmatch(native_id)) is not None:
        return f"{in_brackets[1]}[]{in_brackets[2]}"
    return re.split(r"[_.]", native_id, maxsplit=1)[0]


def by_tag(shown: Iterable[tuple[str, str]], age: Callable[[str], Any]) -> dict[str, list[str]]:
    """Native ids by tag, each once and the oldest first. shown: (tag, native id). age: of an id, to sort by."""
    native_ids: dict[str, set[str]] = {}
    for tag, native_id in shown:
        native_ids.setdefault(tag, set()).add(native_id)
    return {tag: sorted(ids, key=age) for tag, ids in native_ids.items()}


#: What PSI/J makes of a native state; None: the state of the job stays as it was. Of a job that is over, its exit says
#: whether it completed.
_JOB_STATES: dict[Stage, JobState | None] = {
    Stage.WAITING: JobState.QUEUED, Stage.HELD: JobState.QUEUED, Stage.AGAIN: JobState.QUEUED,
    Stage.RUNNING: JobState.ACTIVE, Stage.SUSPENDED: JobState.ACTIVE, Stage.ENDED: JobState.COMPLETED,
    Stage.DONE: JobState.COMPLETED, Stage.FAILED: JobState.FAILED, Stage.CANCELED: JobState.CANCELED,
    Stage.SILENT: None}


def job_state(native: NativeState | None, word: str, kind: str) -> JobState | None:
    """The state that PSI/J makes of a native one; None, with a warning, for a word that is not known.

    word: as the manager wrote it. kind: as ``Flux's job state``.
    """
    if native is None:
        warn_unknown(kind, word)
        return None
    return _JOB_STATES[native.stage]


def standing(native: NativeState, common: JobState, kind: str | None = None) -> dict[str, Any]:
    """The metadata of a job that a state tells of: its phase, and of one that waits what ``waiting`` says."""
    return present({"phase": native.phase}) | (waiting(native, kind) if common is JobState.QUEUED else {})


def waiting(native: NativeState, kind: str | None = None) -> dict[str, Any]:
    """The metadata of a job that waits: what is done with it, why it waits in kind (``sssjob.lrm.waits``), and whether
    the state says that it was put back into the queue. kind: as the reason says it, None where there is none."""
    held = native.stage is Stage.HELD or kind == HELD
    facts = {"phase": native.phase or ("HELD" if held else None),
             "waits": native.waits or (HELD if held else kind), "requeued": native.stage is Stage.AGAIN or None}
    return present(facts)


def warn_unknown(kind: str, state: str) -> None:
    """Log, once in this process, a state that a newer resource manager may have. kind: as ``Flux's job state``."""
    warn_once((kind, state), "%s %r is not known; jobs in it keep their last state", kind, state)


def lines_by_id(out: str, native_ids: Iterable[str]) -> Mapping[str, str]:
    """The lines of an answer that name an id, by that id."""
    wanted_ids, lines_of = set(native_ids), dict[str, list[str]]()
    for line in out.splitlines():
        for word in set(re.findall(r"[\w.\[\]+-]*\w\]?", line)) & wanted_ids:
            lines_of.setdefault(word, []).append(line)
    return {native_id: "\n".join(lines) for native_id, lines in lines_of.items()}
