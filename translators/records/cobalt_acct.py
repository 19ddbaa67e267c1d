"""Format ``cobalt-acct``: accounting logs of Cobalt, whose lines look like those of PBS.

    11/21/2026 09:00:00;E;123;Exit_status=0 Resource_List.ncpus=64 ctime=1.5 start=9.5 end=42.0 resource=mira ...

Times are seconds with fractions, values with blanks stand in quotes, None is no value. Records of a job are gathered
until its E; jobs without one are given at the end, as they stand. A and D tell why a job was stopped: of one that had
started an E follows. What comes about a job behind its E, without a Q before, is told already, and so are tasks (TS,
TE); records of nodes and reservations are no jobs.

Source: the accounting module of Cobalt; its published test lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import ClassVar, Final

from sssjob.document.element import Property
from sssjob.document.model import Job
from sssjob.findings import escape
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import by_beginning
from sssjob.translators.records._lines import Line
from sssjob.translators.records._open import OpenJob, Waiting
from sssjob.translators.records._pbs import attributes, tell_forged
from sssjob.translators.records.base import (
    Reading,
    Record,
    Rejected,
    count,
    leaf,
    micros,
    moment,
    number,
    rounded,
    translator,
)

__all__ = ["TRANSLATOR", "TYPES"]

#: Type of record -> what it does: ends the job, tells of it, concerns a part of it, concerns no job.
TYPES: Final[dict[str, str]] = {
    "E": "ends",
    **dict.fromkeys(("A", "D", "Q", "S", "R", "C", "T", "M", "P", "HA", "HR", "QA", "UA", "UR"), "tells"),
    **dict.fromkeys(("TS", "TE"), "part"),
    **dict.fromkeys(("B", "F", "K", "U", "Y", "YA", "k", "NU", "ND", "L"), "no job"),
}
_ENDED: Final = 200_000         # jobs that had their E, of which it is known
_STOPS: Final = {"D": "cancel: deleted", "A": "launch: aborted"}
_ABSENT: Final = ("None", "N/A", "NOTSET", "unknown")
_LINE: Final = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;([A-Za-z]{1,2});([^;]*);(.*)", re.ASCII | re.DOTALL)


@dataclass(slots=True)
class _Pending(OpenJob):
    """What has been told of a job: facts, types, the type of the last record, the record that stopped it (A, D)."""

    facts: dict[str, str] = field(default_factory=dict)
    stop: str = ""
    types: str = ""
    last: str = ""


#: The attributes that become part of a job; all others are told.
_READ: Final = frozenset((
    "resource", "jobname", "user", "group", "account", "queue", "cwd", "ctime", "etime", "start", "end", "Exit_status",
    "resources_used.walltime", "resources_used.ncpus", "resources_used.nodect", "resources_used.location", "exec_host",
    "Resource_List.ncpus", "Resource_List.nodect", "Resource_List.walltime", "mode", "priority_core_hours", "exe",
    "args", "session"))


class _Reading(Reading):
    keeps: ClassVar[str] = "cobalt"

    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self.open = Waiting[str, _Pending]()
        self.ended: dict[str, None] = {}        # the last jobs that had their E

    def take(self, line: Line) -> Iterable[Job]:
        """Add one event; gives the jobs that are whole with it."""
        match = _LINE.fullmatch(line.text.strip())
        if not match:
            raise Rejected("columns", "not of the form MM/DD/YYYY HH:MM:SS;TYPE;ID;attributes")
        kind, ident, rest = match.groups()
        does = TYPES.get(kind)
        if does is None:
            raise Rejected("type", f"type {kind} is not known")
        if does == "no job":
            raise Rejected("no-job", f"type {kind} (reservation or nodes)")
        if does == "part":
            raise Rejected("part", f"type {kind}: a task of job {escape(ident, 40)}")
        ident = self.name(ident.strip(), "id") or ""
        if not ident[:1].isdigit():
            raise Rejected("id", f"{escape(ident, 40)!r} is no job id")
        tell_forged(self, ident, rest, line.number)
        fields = {k: v for k, v in attributes(rest).items() if v not in _ABSENT and v}
        if does == "tells":
            if kind == "Q":
                self.ended.pop(ident, None)
            elif ident in self.ended:
                raise Rejected("part", f"type {kind}: job {escape(ident, 40)} has had its E")
            return self._tell(kind, ident, fields, line)
        pending = self.open.jobs.get(ident) or _Pending(line.number)
        job = self.given(self._record(ident, kind, pending, fields, line.number))
        self.open.take(ident)
        if len(self.ended) >= _ENDED:
            del self.ended[next(iter(self.ended))]
        self.ended[ident] = None
        return (job,)

    def rest(self) -> Iterator[Job]:
        """Jobs that have not ended in this log, in the order in which they began."""
        while self.open.jobs:
            yield from self._stands(next(iter(self.open.jobs)))

    def unfinished(self) -> Iterable[str]:
        """Lines of jobs that have not ended."""
        return self.open.lines()

    def _tell(self, kind: str, ident: str, fields: dict[str, str], line: Line) -> list[Job]:
        done = [job for oldest in self.open.too_many(ident) for job in self._stands(oldest)]
        pending = self.open.add(ident, _Pending(line.number), line, keeping=self.keeping)
        pending.facts |= fields
        pending.stop = kind if kind in _STOPS else pending.stop
        pending.last = kind
        pending.types += kind[:1] if len(pending.types) < 64 else ""
        return done

    def _stands(self, ident: str) -> list[Job]:
        """The job of one that has no E."""
        pending = self.open.take(ident)
        assert pending is not None
        try:
            kind = next((kind for kind in "SQ" if kind in pending.types), pending.last)
            return [self.given(self._record(ident, pending.stop or kind, pending, {}, pending.line))]
        except Rejected as why:
            self.reject(pending.line, why.reason, str(why), taken=pending.records)
            return []

    def _record(self, ident: str, kind: str, pending: _Pending, fields: dict[str, str], line: int) -> Record:
        """fields: what the last record adds to what was told."""
        facts = pending.facts | fields
        get = facts.get
        r = Record(line, ident, machine=self.machine or self.name(get("resource"), "resource"))
        for name, tag in (("user", "user"), ("group", "group"), ("account", "project"), ("queue", "queue")):
            setattr(r, tag, self.name(get(name), name))
        r.name, r.directory = (self.free_text(get(name), name, line) for name in ("jobname", "cwd"))
        times = {name: self._exact(get(name, ""), name) for name in ("ctime", "etime", "start", "end")}
        r.submit, r.eligible, r.start, r.end = (None if v is None else int(v) for v in times.values())
        self._state(r, kind, pending.stop, facts)
        begun, ended = times["start"], times["end"]
        span = None if begun is None or ended is None else max(Decimal(0), ended - begun)
        used = rounded(micros(get("resources_used.walltime", ""), "resources_used.walltime"))
        r.wall = self.first("Duration", line, ("resources_used.walltime", used or None), (
            "end - start", None if span is None else int(span.quantize(Decimal(1), ROUND_HALF_UP))))
        self._amounts(r, facts)
        for name in ("mode", "priority_core_hours", "exe", "args", "session"):
            if text := get(name):
                r.more.append(("cobalt", name, text))
        self.rest_of(r, {name: facts[name] for name in facts.keys() - _READ})
        return r

    def _exact(self, text: str, name: str) -> Decimal | None:
        """A time with its fraction; None where it is absent or not positive. Rejected: number, time."""
        value = number(text, name)
        if not value or value < 1:
            return None
        moment(int(value), name)
        return value

    def _state(self, r: Record, kind: str, stop: str, facts: dict[str, str]) -> None:
        r.native = kind
        r.ran = r.start is not None
        if kind != "E" and not stop:
            r.state = "Running" if r.ran and kind != "Q" else "Idle"
            return
        text = facts.get("Exit_status", "")
        code = count(text, "Exit_status")
        if code is not None and code < 256:
            r.exit_code = code
        elif text:
            r.exit_status = text
            r.signal = code - 256 if code is not None and code < 512 else None
        if stop:
            r.message = _STOPS[stop]
        elif r.signal is not None:
            r.message = f"signal: Exit_status {text}"

    def _amounts(self, r: Record, facts: dict[str, str]) -> None:
        get = facts.get
        asked, nodes = (count(get(f"Resource_List.{n}", ""), n) for n in ("ncpus", "nodect"))
        if r.ran:
            r.processors = self.first("Processors", r.line, (
                "resources_used.ncpus", count(get("resources_used.ncpus", ""), "resources_used.ncpus") or None),
                ("Resource_List.ncpus", asked or None))
            place = get("exec_host") or get("resources_used.location") or ""
            r.node, n = self.nodes(place.replace(":", ","), r.line) if re.fullmatch(r"[\w.:,\[\]-]+", place) else (
                None, None)
            r.nodes = count(get("resources_used.nodect", ""), "resources_used.nodect") or n or nodes
        r.requested = list(_requested(asked, nodes, facts))


def _requested(cpus: int | None, nodes: int | None, facts: dict[str, str]) -> Iterator[Property]:
    if cpus:
        yield leaf("Processors", cpus)
    if nodes:
        yield leaf("NodeCount", nodes)
    if limit := rounded(micros(facts.get("Resource_List.walltime", ""), "Resource_List.walltime")):
        yield leaf("Duration", limit)


_FIRST: Final = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Z]{1,2};\d+;[^\n]*\bresource=", re.ASCII)

TRANSLATOR = translator("cobalt-acct", "Cobalt accounting log", _Reading,
                        recognise=lambda sample: by_beginning(sample, _FIRST, "records of jobs with resource="))
