"""Format ``pbs-acct``: the accounting logs of OpenPBS, PBS Professional and Torque (server_priv/accounting/YYYYMMDD).

    11/21/2026 08:20:28;E;0.head;user=alice group=alice account="chem" ... run_count=1

The records of one job (Q queued, S started, D deleted, z and r suspended and resumed ...) are gathered until its E
(ended) or R (requeued: one Job for that run) comes; what has not ended by the end of the log is given as it stands.
Times inside records are epoch seconds; the stamps of the lines are local, and only with the option ``timezone`` do they
tell when a job was deleted or, in Torque, requeued. Records of reservations, licences and provisioning are no jobs.

Source: OpenPBS accounting log (acct.h, accounting.c; Administrator's Guide, Accounting); Torque job accounting;
recorded output of OpenPBS 23.06.06.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar, Final

from sssjob.document.element import Property
from sssjob.document.model import Job
from sssjob.findings import escape
from sssjob.lrm.pbs import ended, exec_host
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import by_beginning
from sssjob.translators.records._again import Forms, Once
from sssjob.translators.records._lines import Line
from sssjob.translators.records._pbs import (
    HELD,
    LIMITS,
    READ,
    WHO,
    Chunks,
    Facts,
    Said,
    Texts,
    array_of,
    form_of,
    node_of,
    nodes_spec,
    requested,
    section,
    tell_forged,
    vnodes,
)
from sssjob.translators.records.base import (
    Heading,
    Parting,
    Reading,
    Record,
    Rejected,
    amount,
    count,
    heading,
    leaf,
    micros,
    recall,
    rounded,
    seconds,
    thousands,
    translator,
    words,
)

__all__ = ["TRANSLATOR", "TYPES"]

#: Type of record -> what it does: one of ends, requeues, tells, no job.
TYPES: Final[dict[str, str]] = {
    "E": "ends", "R": "requeues",
    **dict.fromkeys(("Q", "S", "s", "D", "A", "C", "T", "z", "r", "a", "M", "u", "c", "e"), "tells"),
    **dict.fromkeys(("U", "Y", "B", "F", "K", "k", "L", "P", "p"), "no job"),
}
_LINE: Final = re.compile(r"(?:^|[\s:])(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]{1,2});([^;]*);(.*)$",
                          re.ASCII | re.DOTALL)
#: Jobs that have not ended, of which this many are held; the oldest is given as it stands when one more comes.
_OPEN: Final = 100_000
_MOST: Final = 256 << 20    # characters of their records, likewise
_SIDES: Final = 4           # records of one job that each say something else, before they are put together
_PEAKS: Final[Once[str, dict[str, str]]] = Once(lambda unit: {"units": unit, "metric": "Max"})
#: What a job is before it runs: R leaves that to its next run.
_LASTING: Final = frozenset(("user", "group", "account", "project", "jobname", "queue", "ctime", "qtime", "owner"))


@dataclass(slots=True)
class _Open:
    """A job so far: its attributes, the line of its first record, and what the types told. seconds: suspended; texts:
    its lines, where they are kept."""

    line: int
    facts: list[Facts] = field(default_factory=list)
    types: str = ""
    records: int = 0
    length: int = 0
    why: str = ""
    ended: int | None = None
    since: int | None = None
    seconds: int = 0
    suspended: bool = False
    texts: list[tuple[int, str]] = field(default_factory=list)


#: What is known before its first record.
_NEW: Final = _Open(0)


@dataclass(frozen=True, slots=True)
class _Who:
    """Whose a job is. machine: that the record names, or the id."""

    heading: Heading
    machine: str | None
    more: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class _Held:
    """The amounts that a job was assigned and asked for."""

    processors: int | None = None
    nodes: int | None = None
    node: Property | None = None
    delivered: tuple[Property, ...] = ()
    requested: tuple[Property, ...] = ()
    limits: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True)
class _Caches:
    """What was made of whose jobs are (with the server in the id), and of what they held while they ran and asked for
    where they did not, by what ``Said`` has: texts, or the runs of a form."""

    who: Once[Any, _Who]
    held: Once[Any, _Held]
    asked: Once[Any, _Held]


class _Reading(Reading):
    keeps: ClassVar[str] = "pbs"

    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self.open: dict[str, _Open] = {}
        self.length = 0
        self.forms = Forms(form_of, ' "')
        self.texts = texts = _Caches(Once(self._who, self.findings), Once(partial(self._held, True), self.findings),
                                    Once(partial(self._held, False), self.findings))
        self.runs = _Caches(Once(lambda who_texts: texts.who[section(WHO, who_texts[0]), who_texts[1]], self.findings),
                           Once(lambda runs: texts.held[section(HELD, runs)], self.findings),
                           Once(lambda runs: texts.asked[section(HELD, runs)], self.findings))
        self.ends = Once(_ending)
        self.counted = Once(partial(count, name="run_count"))

    def take(self, line: Line) -> Iterable[Job]:
        """Add one event; gives the jobs that are whole with it."""
        text = line.text
        cut = self.forms.cut(text)
        if cut is not None:
            form, values = cut
            stamp, kind, ident, rest = values[0], form.kind, values[1], ""
        else:
            stamp, kind, ident, rest = _parted(text)
        does = TYPES.get(kind)
        if does is None:
            raise Rejected("type", f"type {kind} is not known")
        if does == "no job":
            raise Rejected("no-job", f"type {kind} (reservation, licence or provisioning)")
        ident = ident.strip()
        if not ident or not (ident[0].isdigit()):
            raise Rejected("id", f"{escape(ident, 40)!r} is no job id")
        self.name(ident, "id")
        tell_forged(self, ident, rest, line.number)         # a form has each name once
        if does == "tells":
            facts = Facts(rest) if cut is None else Facts(text.split(";", 3)[3], cut[0])
            done = self._tell(kind, ident, facts, stamp, line.number)
            if self.keeping:
                self.open[ident].texts.append((line.number, line.text))
            return done
        old = self.open.get(ident, _NEW)
        if cut is not None and not self.keep_all and (
                not old.facts or all(facts.keys <= form.keys for facts in old.facts)):
            record = self._record(ident, kind, old, form.said(values), self.runs, stamp, line.number)
            self.unread.update(form.unread)
        else:
            facts = Facts(rest if cut is None else text.split(";", 3)[3]).over(old.facts)
            record = self._record(ident, kind, old, facts.said(), self.texts, stamp, line.number)
            self.rest_of(record, {name: facts.named[name] for name in facts.keys - READ})
        if old is not _NEW:
            self._left(ident)
        if kind == "R":
            self._again(ident, old, line)
        return (self.given(record),)

    def _again(self, ident: str, old: _Open, line: Line) -> None:
        """The job whose run has ended waits for the next one."""
        again = Facts("")
        again.named.update((k, v) for facts in old.facts for k, v in facts.named.items()
                           if k in _LASTING or k.startswith("Resource_List."))
        new = self.open[ident] = _Open(line.number, [again], "Q", 0)
        if self.keeping:        # what it was before the run that has ended is told by those lines only
            new.texts = [*old.texts, (line.number, line.text)]

    def unfinished(self) -> Iterable[str]:
        """Lines of jobs that have not ended."""
        lines = (line for job in self.open.values() for line in job.texts)
        return (text for _, text in sorted(lines))

    def _tell(self, kind: str, ident: str, facts: Facts, stamp: str, number: int) -> Iterable[Job]:
        done: list[Job] = []
        job = self.open.get(ident)
        if job is None:
            while self.open and (len(self.open) >= _OPEN or self.length > _MOST):
                done += self._stands(*self._left(next(iter(self.open))))
            job = self.open[ident] = _Open(number)
        job.types += kind if len(job.types) < 64 else ""
        job.records += 1
        rest = facts.text
        job.length += len(rest)
        self.length += len(rest)
        if kind in "zr":
            self._suspended(job, kind, stamp)
        elif kind in "DA":
            by = facts.named.get("requestor")
            job.why = (f"cancel: deleted by {by}" if by is not None else
                       f"{'cancel' if kind == 'D' else 'launch'}: {'deleted' if kind == 'D' else 'aborted'}"
                       + (f" ({rest.strip()})" if rest.strip() else ""))
            job.ended = self._stamp(stamp, number)
        else:
            job.facts = [*(old for old in job.facts if not old.keys <= facts.keys), facts]
            if len(job.facts) > _SIDES:
                first, *others = job.facts
                job.facts = [first.with_more(others)]
        return done

    def _left(self, ident: str) -> tuple[str, _Open]:
        """Take a job out of those that are open."""
        job = self.open.pop(ident)
        self.length -= job.length
        return ident, job

    def _stamp(self, text: str, number: int) -> int | None:
        """The epoch of the stamp of a line, where its zone is known."""
        return None if self.zone is None else self.time(_iso(text), "stamp", number)

    def _suspended(self, job: _Open, kind: str, stamp: str) -> None:
        """Add up the time between z and r; without a zone by the clock of the server."""
        at = self.epoch(_iso(stamp)[:16], "stamp", None if self.zone else "Z", 0) + int(stamp[17:])
        if kind == "z":
            job.since, job.suspended = at, True
        elif job.since is not None:
            job.seconds += max(0, at - job.since)
            job.since, job.suspended = None, False

    def rest(self) -> Iterable[Job]:
        """Jobs that have not ended in this log, in the order in which they began."""
        for ident, job in self.open.items():
            if job.records:
                yield from self._stands(ident, job)
        self.open.clear()

    def _stands(self, ident: str, job: _Open) -> list[Job]:
        """The job of one that has no E."""
        try:
            facts = Facts("").over(job.facts)
            record = self._record(ident, "", job, facts.said(), self.texts, "", job.line)
            self.rest_of(record, {name: facts.named[name] for name in facts.keys - READ})
            return [self.given(record)]
        except Rejected as why:
            self.reject(job.line, why.reason, str(why), taken=job.records)
            return []

    # -- the record
    def _record(self, ident: str, kind: str, job: _Open, facts: Said, known_texts: _Caches, stamp: str,
                number: int) -> Record:
        who, when, ended, held, used = facts
        self.at = number
        whose = known_texts.who[who, "" if self.machine else ident.partition(".")[2]]
        r = Record(number, ident, whose.machine)
        r.heading = whose.heading
        if whose.more:
            r.more += whose.more
        if "[" in ident or "-" in ident:
            r.array = array_of(ident)
        self._times(r, kind, job, when, stamp)
        self._state(r, kind, job, ended)
        self._amounts(r, (known_texts.held if r.ran else known_texts.asked)[held])
        self._used(r, job, used)
        return r

    def _who(self, texts: tuple[Texts, str]) -> _Who:
        (user, group, account, queue, *booked, owner, server, second), place = texts
        machine = self.machine or self.name(server, "server") or self.name(place, "server")
        identity = heading(self.name(user, "user"), self.name(group, "group"), self.name(words(account), "account"),
                           machine, self.name(queue, "queue"), None, self.name(booked[0] or booked[1], "resvname"),
                           self.name(owner.partition("@")[2], "owner"))
        project = words(second, "_pbs_project_default")
        return _Who(identity, machine, () if project is None else (("pbspro", "PBSProject", project),))

    def _times(self, r: Record, kind: str, job: _Open, texts: Texts, stamp: str) -> None:
        name, created, eligible, start, end, queued, waited, runs = texts
        line = r.line
        r.name = self.free_text(name, "jobname", line)
        r.submit = self.time(created, "ctime", line)
        same = created.isdigit()        # a local time that occurs twice is told by its name
        r.eligible = r.submit if same and eligible == created else self.time(eligible, "etime", line)
        r.start = self.time(start, "start", line)
        r.end = self.time(end, "end", line) if kind else job.ended
        if kind and r.end is None:
            r.end = self._stamp(stamp, line)
        if not (same and queued == created):
            at = self.time(queued, "qtime", line)
            if at is not None and at != r.submit:
                r.more.append(("LRM", "QueueTime", str(at)))
        if waited:
            r.more.append(("LRM", "EligibleDuration", str(rounded(micros(waited, "eligible_time")))))
        if runs:
            r.starts = self.counted[runs]

    def _state(self, r: Record, kind: str, job: _Open, texts: Texts) -> None:
        """State, message, exit code and signal; a signal alone is no evidence of a deletion, a D record is."""
        r.native = kind or job.types[-1:]
        r.ran = r.start is not None and not ("[]" in r.id and r.id.partition(".")[0].endswith("[]"))
        if not kind:
            r.ran = r.ran and "S" in job.types.upper()
            if job.why:
                r.message = job.why
                return
            r.state = "Suspended" if job.suspended else "Running" if r.ran else "Idle"
            return
        r.exit_code, r.signal, r.exit_status, message = self.ends[texts]
        r.message = job.why or ("requeued" if kind == "R" else message)

    def _amounts(self, r: Record, held: _Held) -> None:
        r.processors, r.nodes, r.node = held.processors, held.nodes, held.node
        if held.delivered:
            r.delivered += held.delivered
        if held.limits:
            r.limits += held.limits
        r.requested += held.requested

    def _held(self, ran: bool, texts: Texts) -> _Held:
        """Processors, nodes, GPUs: what was used, assigned and asked for, in this order."""
        (vnode, host, ncpus, spec, nodect, used, places, unique, ngpus, gpus, gpu, need, walltime, memory, select,
         place, *limits) = texts
        line = self.at
        chunks = recall(vnodes, vnode)
        hosts, slots, wrong = recall(exec_host, host)
        if wrong:
            self.tell("SSS541", "exec_host", f"exec_host: {wrong}", line)
        asked = self.asked(count, ncpus, "Resource_List.ncpus")
        by_nodes, gpus_asked = nodes_spec(spec)
        nodect, colon, beside = nodect.partition(":")          # old Torque: 1:gpu=2
        nodes = self.asked(count, nodect, "Resource_List.nodect")
        some_gpus = [self.asked(count, text, name) for text, name in (
            (ngpus, "Resource_List.ngpus"), (gpus, "Resource_List.gpus"), (gpu, "Resource_List.gpu"))]
        gpus_asked = next((n for n in (*some_gpus, gpus_asked, nodes_spec(need)[1],
                                       _gpus_beside(beside) if colon else None) if n), None)
        held = _Held()
        if ran:
            evidence = [("resources_used.ncpus", count(used, "resources_used.ncpus") or None),
                        ("exec_vnode", chunks.cpus or None),
                        ("total_execution_slots", count(places, "total_execution_slots")),
                        ("exec_host", slots or None)]
            if all(v is None for _, v in evidence):
                evidence += [("Resource_List.nodes", by_nodes), ("Resource_List.ncpus", asked)]
            processors = self.first("Processors", line, *evidence)
            counted = self.first("NodeCount", line, ("unique_node_count", count(unique, "unique_node_count")),
                                 ("exec_host", len(hosts) or None), ("exec_vnode", chunks.hosts or None))
            held = _Held(processors, nodes if counted is None else counted,
                         node_of(hosts),
                         tuple(_assigned(chunks, (chunks.gpus if vnode else None) or gpus_asked)))
        walltime = walltime if self.asked(micros, walltime, "Resource_List.walltime") is not None else ""
        memory = memory if self.asked(amount, memory, "Resource_List.mem") is not None else ""
        asked_for = requested((walltime, memory, "", select, place, spec), asked or by_nodes, nodes, gpus_asked)
        limited = tuple(leaf("ResourceLimit", text, {"name": limit})
                        for text, limit in zip(limits, LIMITS.values(), strict=True) if text)
        return replace(held, requested=asked_for, limits=limited)

    def _used(self, r: Record, job: _Open, texts: Texts) -> None:
        cput, walltime, memory, swap, joule, percent, session = texts
        r.cpu = seconds(cput, "resources_used.cput")
        wall = seconds(walltime, "resources_used.walltime")
        r.suspended = job.seconds or None
        if r.end is not None and r.start is not None:
            span = r.end - r.start
            if wall is None:
                wall = max(0, span - job.seconds)
            elif r.ran and abs(span - wall - job.seconds) > max(5, span // 100):   # usage is sampled
                self.first("Duration", r.line, ("resources_used.walltime", wall), ("end - start", span - job.seconds))
                r.more.append(("LRM", "Elapsed", str(span)))
        r.wall = wall
        if (size := amount(memory, "resources_used.mem")) is not None and size[0]:
            r.delivered.append(leaf("Memory", size[0], _PEAKS[size[1]]))
        if swap and (size := amount(swap, "resources_used.vmem")) is not None and size[0]:
            r.delivered.append(leaf("Swap", size[0], _PEAKS[size[1]]))
        if joule and (energy := thousands(joule, "energy_used")):
            r.delivered.append(leaf("Resource", energy, {"name": "Energy", "units": "J"}))
        if percent:
            r.more.append(("LRM", "CpuPercent", percent))
        if session:
            r.more.append(("LRM", "Session", session))


def _gpus_beside(text: str) -> int | None:
    """The GPUs of what stands behind a number of nodes: ``gpu=2``."""
    match = re.fullmatch(r"gpus?=(\d{1,9})", text, re.ASCII)
    return int(match[1]) if match else None


def _assigned(chunks: Chunks, gpus: int | None) -> Iterator[Property]:
    if chunks.memory:
        yield leaf("Memory", chunks.memory / 1024, {"units": "KB", "metric": "Total"})
    if gpus:
        yield leaf("Resource", Decimal(gpus), {"name": "GPU"})


def _ending(texts: Texts) -> tuple[int | None, int | None, str, str]:
    """(exit code, signal, status that is neither, message) of an Exit_status; PBS Pro says how often a job ran, or on
    which vnodes. Rejected: number."""
    text, runs, vnode = texts
    if not text:
        return None, None, "", "unknown-exit"
    if not re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
        raise Rejected("number", f"Exit_status {escape(text, 40)!r} is no whole number")
    code = int(text)
    exit_code, signal, reason = ended(code, bool(runs or vnode))
    if exit_code is not None:
        return exit_code, None, "", ""
    return None, signal, text, f"{reason or 'unknown-exit'}: Exit_status {text}"


# --- texts --------------------------------------------------------------------------------------------------------

def _iso(stamp: str) -> str:
    """The stamp of a line as ``YYYY-MM-DDTHH:MM:SS``."""
    return f"{stamp[6:10]}-{stamp[:2]}-{stamp[3:5]}T{stamp[11:]}"


def _parted(text: str) -> tuple[str, str, str, str]:
    """Stamp, type, id and attributes of any line. Rejected: columns."""
    match = _LINE.search(text)
    if not match:
        raise Rejected("columns", "not of the form MM/DD/YYYY HH:MM:SS;TYPE;ID;attributes")
    stamp, kind, ident, rest = match.groups()
    return stamp, kind, ident, rest


#: Lines of Cobalt have resource=.
_FIRST: Final = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z]{1,2};(?![^\n]*\bresource=)", re.ASCII)

_JOB: Final = re.compile(rb"(?:^|[\s:])\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z]{1,2};([^;]*);")

TRANSLATOR = translator("pbs-acct", "PBS accounting log (OpenPBS, PBS Pro, Torque)", _Reading, parting=Parting(_JOB),
                        recognise=lambda sample: by_beginning(sample, _FIRST, "a stamp, a type of record and an id"))
