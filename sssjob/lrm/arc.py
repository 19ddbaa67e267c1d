"""An ARC computing element (A-REX): states of its REST interface, and what its record of a job says.

Source: the REST interface of A-REX 6 and 7 (versions 1.0 and 1.1), its source, and GLUE 2.0 (GFD-R-P.147),
ComputingActivity, as its information provider fills it in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from sssjob.lrm.states import NativeState, Stage, by_word

__all__ = ["DESCRIPTION_NAMESPACE", "ENDED", "FULL", "STATES", "UNENDED", "activity", "endpoint", "entries", "errors",
           "facts"]

#: Of the Activity Description Language.
DESCRIPTION_NAMESPACE: Final = "http://www.eu-emi.eu/es/2010/12/adl"
#: FINISHING and KILLING do not say whether the job has run.
STATES: Final[Mapping[str, NativeState]] = by_word(
    NativeState("ACCEPTING", Stage.WAITING),
    NativeState("ACCEPTED", Stage.WAITING),
    NativeState("PREPARING", Stage.WAITING, phase="STAGE_IN"),
    NativeState("PREPARED", Stage.WAITING),
    NativeState("SUBMITTING", Stage.WAITING),
    NativeState("QUEUING", Stage.WAITING),
    NativeState("HELD", Stage.HELD, phase="HELD"),
    NativeState("RUNNING", Stage.RUNNING),
    NativeState("EXITINGLRMS", Stage.ENDED),
    NativeState("OTHER", Stage.SILENT),
    NativeState("EXECUTED", Stage.ENDED),
    NativeState("FINISHING", Stage.SILENT, phase="STAGE_OUT"),
    NativeState("KILLING", Stage.SILENT),
    NativeState("FINISHED", Stage.DONE),
    NativeState("FAILED", Stage.FAILED),
    NativeState("KILLED", Stage.CANCELED),
    NativeState("WIPED", Stage.SILENT),         # as good as unknown: how it ended is not kept
)
ENDED: Final = frozenset((Stage.DONE, Stage.FAILED, Stage.CANCELED))
#: States of jobs that have not ended.
UNENDED: Final = tuple(word for word, state in STATES.items() if state.stage not in ENDED and word != "WIPED")
#: What A-REX says where its limit of jobs is reached.
FULL: Final = re.compile(r"no more jobs allowed", re.IGNORECASE)
_VERSION: Final = re.compile(r"/rest/[0-9.]+/?$")
_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_ZONED: Final = re.compile(r".*(?:Z|[+-][0-9]{2}:?[0-9]{2})", re.ASCII)
_MIB: Final = 1 << 20


def endpoint(url: str) -> str:
    """The address of the interface, up to its version, of a computing element: ``https://ce.example.org`` has it at
    ``/arex/rest/1.0``; what says a version is as it is."""
    if _VERSION.search(url):
        return url.rstrip("/")
    return url.rstrip("/") + ("" if urlsplit(url).path.strip("/") else "/arex") + "/rest/1.0"


def entries(answer: object) -> Iterator[Mapping[str, Any]]:
    """The jobs of an answer in JSON, ``{"job": [{"id": ..., "status-code": ...}]}``. A-REX writes one job without a
    list, and none as an empty text."""
    jobs = answer.get("job") if isinstance(answer, Mapping) else None
    for job in jobs if isinstance(jobs, list) else [jobs]:
        if isinstance(job, Mapping):
            yield job


def activity(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The ComputingActivity of an entry of an answer to ``info``; an empty one where it has none."""
    document = entry.get("info_document")
    record = document.get("ComputingActivity") if isinstance(document, Mapping) else None
    return record if isinstance(record, Mapping) else {}


def errors(record: Mapping[str, Any]) -> str | None:
    """What a ComputingActivity says of a failure, on one line."""
    shown = "; ".join(_texts(record, "Error"))
    return "".join(c if c.isprintable() else " " for c in shown[:500]) or None


def facts(record: Mapping[str, Any]) -> tuple[int | None, dict[str, Any]]:
    """The exit code of a ComputingActivity, None where it has none, and what else is known, by the names of a usage
    record: times in seconds since the epoch, memory in bytes. A-REX counts the wall time of each slot, and memory in
    MiB."""
    slots = _number(record, "RequestedSlots")
    wall, memory = _number(record, "UsedTotalWallTime"), _number(record, "UsedMainMemory")
    values: dict[str, Any] = {
        "submit_time": _time(record, "SubmissionTime"), "start_time": _time(record, "StartTime"),
        "end_time": _time(record, "ComputingManagerEndTime"), "cpu_seconds": _number(record, "UsedTotalCPUTime"),
        "wall_seconds": None if wall is None else wall / (slots or 1),
        "processors": slots or None, "user": next(_texts(record, "LocalOwner"), None),
        "memory_max_bytes": memory * _MIB if memory else None,       # 0 is not measured
        "nodes": list(dict.fromkeys(_texts(record, "ExecutionNode"))) or None,
        "queue": next(_texts(record, "Queue"), None)}
    return _number(record, "ExitCode"), {name: value for name, value in values.items() if value is not None}


def _texts(record: Mapping[str, Any], name: str) -> Iterator[str]:
    value = record.get(name)
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and text.strip():
            yield text.strip()


def _number(record: Mapping[str, Any], name: str) -> int | None:
    text = next(_texts(record, name), "")
    return int(text) if _NUMBER.fullmatch(text) else None


def _time(record: Mapping[str, Any], name: str) -> float | None:
    text = next(_texts(record, name), "")
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text if _ZONED.fullmatch(text) else f"{text}+00:00").timestamp()
    return None
