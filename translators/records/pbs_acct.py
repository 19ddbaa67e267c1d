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
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Final

from sssjob.element import Property
from sssjob.findings import escape
from sssjob.lexical import LexicalError
from sssjob.model import Job
from sssjob.nodeset import fold
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import by_beginning
from sssjob.translators.records._lines import Line
from sssjob.translators.records.base import (
    Reading,
    Record,
    Rejected,
    amount,
    count,
    leaf,
    micros,
    node,
    recall,
    rounded,
    thousands,
    translator,
    words,
)
from sssjob.units import to_bytes

__all__ = ["TRANSLATOR", "TYPES"]

#: Type of record -> what it does: one of ends, requeues, tells, no job.
TYPES: Final[dict[str, str]] = {
    "E": "ends", "R": "requeues",
    **dict.fromkeys(("Q", "S", "s", "D", "A", "C", "T", "z", "r", "a", "M", "u", "c", "e"), "tells"),
    **dict.fromkeys(("U", "Y", "B", "F", "K", "k", "L", "P", "p"), "no job"),
}
_LINE: Final = re.compile(r"(?:^|[\s:])(\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d);([A-Za-z]{1,2});([^;]*);(.*)$",
                          re.ASCII | re.DOTALL)
_QUOTED: Final = re.compile(r'([A-Za-z_][\w.\-]*)=(?:"((?:[^"\\]++|\\.)*+)"|(\S*+))')
#: Jobs that have not ended, of which this many are held; the oldest is given as it stands when one more comes.
_OPEN: Final = 100_000
_HELD: Final = 256 << 20    # characters of their records, likewise
_HOSTS: Final = 100_000
_FEW: Final = 1000          # hosts of a list that is remembered
#: Exit_status below zero -> reason (Torque; OpenPBS and PBS Pro). Source: job.h, pbs_job.h.
_CODES: Final[dict[int, tuple[str, str]]] = {
    -1: ("launch", "launch"), -2: ("launch", "launch"), -3: ("launch", "launch"), -8: ("launch", "launch"),
    -9: ("launch", ""), -10: ("memory", ""), -11: ("timeout", ""), -12: ("cpu-limit", ""),
    -24: ("", "cpu-limit"), -25: ("", "cpu-limit"), -26: ("", "memory"), -27: ("", "memory"), -28: ("", "cpu-limit"),
    -29: ("", "timeout"),
}
#: Resource_List -> ResourceLimit.
_LIMITS: Final = {"cput": "CPUTime", "pmem": "MaxMemorySize", "vmem": "MaxSwap"}


@dataclass(slots=True)
class _Open:
    """A job so far: its attributes, the line of its first record, and what the types told. seconds: suspended; texts:
    its lines, where they are kept."""

    line: int
    facts: dict[str, str] = field(default_factory=dict)
    types: str = ""
    records: int = 0
    length: int = 0
    why: str = ""
    ended: int | None = None
    since: int | None = None
    seconds: int = 0
    suspended: bool = False
    texts: list[tuple[int, str]] = field(default_factory=list)


class _Reading(Reading):
    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self.open: dict[str, _Open] = {}
        self.length = 0

    def take(self, line: Line) -> Iterable[Job]:
        found = _LINE.search(line.text)
        if not found:
            raise Rejected("columns", "not of the form MM/DD/YYYY HH:MM:SS;TYPE;ID;attributes")
        month, day, year, clock, kind, ident, rest = found.groups()
        does = TYPES.get(kind)
        if does is None:
            raise Rejected("type", f"type {kind} is not known")
        if does == "no job":
            raise Rejected("no-job", f"type {kind} (reservation, licence or provisioning)")
        ident = ident.strip()
        if not ident or not (ident[0].isdigit()):
            raise Rejected("id", f"{escape(ident, 40)!r} is no job id")
        self.name(ident, "id")
        said = attributes(rest)
        stamp = f"{year}-{month}-{day}T{clock}"
        if does == "tells":
            done = self._tell(kind, ident, said, rest, stamp, line.number)
            if self.keeping:
                self.open[ident].texts.append((line.number, line.text))
            return done
        old = self.open.get(ident) or _Open(line.number)
        record = self._record(ident, kind, old, old.facts | said, stamp, line.number)
        if ident in self.open:
            self._left(ident)
        if kind == "R":
            again = {k: v for k, v in old.facts.items() if k in ("user", "group", "account", "project", "jobname",
                     "queue", "ctime", "qtime", "owner") or k.startswith("Resource_List.")}
            new = self.open[ident] = _Open(line.number, again, "Q", 0)
            if self.keeping:        # what it was before the run that has ended is told by those lines only
                new.texts = [*old.texts, (line.number, line.text)]
        return (self.given(record),)

    def unfinished(self) -> Iterable[str]:
        lines = (line for job in self.open.values() for line in job.texts)
        return (text for _, text in sorted(lines))

    def _tell(self, kind: str, ident: str, said: dict[str, str], rest: str, stamp: str, number: int) -> Iterable[Job]:
        done: list[Job] = []
        job = self.open.get(ident)
        if job is None:
            while self.open and (len(self.open) >= _OPEN or self.length > _HELD):
                done += self._stands(*self._left(next(iter(self.open))))
            job = self.open[ident] = _Open(number)
        job.types += kind if len(job.types) < 64 else ""
        job.records += 1
        job.length += len(rest)
        self.length += len(rest)
        if kind in "zr":
            self._suspended(job, kind, stamp)
        elif kind in "DA":
            job.why = (f"cancel: deleted by {said['requestor']}" if "requestor" in said else
                       f"{'cancel' if kind == 'D' else 'launch'}: {'deleted' if kind == 'D' else 'aborted'}"
                       + (f" ({rest.strip()})" if rest.strip() else ""))
            job.ended = self._stamp(stamp, number)
        else:
            job.facts |= said
        return done

    def _left(self, ident: str) -> tuple[str, _Open]:
        """Take a job out of those that are open."""
        job = self.open.pop(ident)
        self.length -= job.length
        return ident, job

    def _stamp(self, text: str, number: int) -> int | None:
        """The epoch of the stamp of a line, where its zone is known."""
        return None if self.zone is None else self.time(text, "stamp", number)

    def _suspended(self, job: _Open, kind: str, stamp: str) -> None:
        """Add up the time between z and r; without a zone by the clock of the server."""
        at = self.epoch(stamp[:16], "stamp", None if self.zone else "Z", 0) + int(stamp[17:])
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
            return [self.given(self._record(ident, "", job, job.facts, "", job.line))]
        except Rejected as why:
            self.reject(job.line, why.reason, str(why), taken=job.records)
            return []

    # -- the record
    def _record(self, ident: str, kind: str, job: _Open, facts: dict[str, str], stamp: str, number: int) -> Record:
        get = facts.get
        r = Record(number, ident)
        r.name = self.name(get("jobname"), "jobname")
        r.user = self.name(get("user"), "user")
        r.group = self.name(get("group"), "group")
        r.project = self.name(words(get("account")), "account")
        r.queue = self.name(get("queue"), "queue")
        r.reservation = self.name(get("resvname") or get("resvID"), "resvname")
        r.submit_host = self.name(get("owner", "").partition("@")[2], "owner")
        r.machine = self.machine or self.name(get("resource") or ident.partition(".")[2], "server")
        r.array = _array(ident)
        if (second := words(get("project"), "_pbs_project_default")) is not None:
            r.more.append(("pbspro", "PBSProject", second))
        self._times(r, kind, job, facts, stamp)
        self._state(r, kind, job, facts)
        self._amounts(r, facts)
        self._used(r, job, facts)
        return r

    def _times(self, r: Record, kind: str, job: _Open, facts: dict[str, str], stamp: str) -> None:
        r.submit = self.time(facts.get("ctime", ""), "ctime", r.line)
        r.eligible = self.time(facts.get("etime", ""), "etime", r.line)
        r.start = self.time(facts.get("start", ""), "start", r.line)
        r.end = self.time(facts.get("end", ""), "end", r.line) if kind else job.ended
        if kind and r.end is None:
            r.end = self._stamp(stamp, r.line)
        queued = self.time(facts.get("qtime", ""), "qtime", r.line)
        if queued is not None and queued != r.submit:
            r.more.append(("LRM", "QueueTime", str(queued)))
        if text := facts.get("eligible_time"):
            r.more.append(("LRM", "EligibleDuration", str(rounded(micros(text, "eligible_time")))))
        r.starts = count(facts.get("run_count", ""), "run_count")

    def _state(self, r: Record, kind: str, job: _Open, facts: dict[str, str]) -> None:
        """State, message, exit code and signal; a signal alone is no evidence of a deletion, a D record is."""
        r.native = kind or job.types[-1:]
        r.ran = r.start is not None and not r.id.partition(".")[0].endswith("[]")
        if not kind:
            r.ran = r.ran and "S" in job.types.upper()
            if job.why:
                r.message = job.why
                return
            r.state = "Suspended" if job.suspended else "Running" if r.ran else "Idle"
            return
        text = facts.get("Exit_status", "")
        if text and not re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
            raise Rejected("number", f"Exit_status {escape(text, 40)!r} is no whole number")
        code = int(text) if text else None
        if code is not None and 0 <= code < 256:
            r.exit_code = code
        elif code is not None:
            r.exit_status = text
            r.signal = code - 256 if 256 <= code < 512 else None
        pro = "run_count" in facts or "exec_vnode" in facts
        reason = _CODES.get(code, ("", ""))[pro] if code is not None else ""
        if job.why:
            r.message = job.why
        elif kind == "R":
            r.message = "requeued"
        elif reason or r.signal is not None:
            r.message = f"{reason or 'signal'}: Exit_status {text}"
        elif code is None or code < 0 or code >= 512:
            r.message = f"unknown-exit: Exit_status {text}" if text else "unknown-exit"

    def _amounts(self, r: Record, facts: dict[str, str]) -> None:
        """Processors, nodes, GPUs: what was used, assigned and asked for, in this order."""
        get, number = facts.get, r.line
        chunks = recall(vnodes, get("exec_vnode", ""))
        hosts, slots, wrong = recall(exec_host, get("exec_host", ""))
        if wrong:
            self.tell("SSS541", "exec_host", f"exec_host: {wrong}", number)
        asked = count(get("Resource_List.ncpus", ""), "Resource_List.ncpus")
        by_nodes, gpus_asked = nodes_spec(get("Resource_List.nodes", ""))
        nodes = count(get("Resource_List.nodect", ""), "Resource_List.nodect")
        if r.ran:
            used = count(get("resources_used.ncpus", ""), "resources_used.ncpus")
            evidence = [("resources_used.ncpus", used or None), ("exec_vnode", chunks.cpus or None),
                        ("total_execution_slots", count(get("total_execution_slots", ""), "total_execution_slots")),
                        ("exec_host", slots or None)]
            if all(v is None for _, v in evidence):
                evidence += [("Resource_List.nodes", by_nodes), ("Resource_List.ncpus", asked)]
            r.processors = self.first("Processors", number, *evidence)
            r.nodes = self.first("NodeCount", number, (
                "unique_node_count", count(get("unique_node_count", ""), "unique_node_count")),
                ("exec_host", len(hosts) or None), ("exec_vnode", chunks.hosts or None))
            if r.nodes is None:
                r.nodes = nodes
            r.node = (_nodes if len(hosts) < _FEW else _nodes.__wrapped__)(hosts)
            if chunks.memory:
                r.delivered.append(leaf("Memory", chunks.memory / 1024, {"units": "KB", "metric": "Total"}))
            gpus = chunks.gpus if "exec_vnode" in facts else None
            gpus = next((n for n in (gpus, count(get("Resource_List.ngpus", ""), "ngpus"),
                                     count(get("Resource_List.gpus", ""), "gpus"), gpus_asked) if n), None)
            if gpus:
                r.delivered.append(leaf("Resource", Decimal(gpus), {"name": "GPU"}))
        r.requested = list(_requested(facts, asked or by_nodes, nodes, gpus_asked))
        for name, limit in _LIMITS.items():
            if text := get(f"Resource_List.{name}"):
                r.limits.append(leaf("ResourceLimit", text, {"name": limit}))

    def _used(self, r: Record, job: _Open, facts: dict[str, str]) -> None:
        get = facts.get
        r.cpu = rounded(micros(get("resources_used.cput", ""), "resources_used.cput"))
        span = r.end - r.start if r.end is not None and r.start is not None else None
        wall = rounded(micros(get("resources_used.walltime", ""), "resources_used.walltime"))
        r.suspended = job.seconds or None
        if wall is None and span is not None:
            wall = max(0, span - job.seconds)
        elif wall is not None and span is not None and r.ran:
            left = span - wall - job.seconds
            if abs(left) > max(5, span // 100):         # usage is sampled, a few seconds are no evidence
                self.first("Duration", r.line, ("resources_used.walltime", wall), ("end - start", span - job.seconds))
                r.more.append(("LRM", "Elapsed", str(span)))
        r.wall = wall
        for name, tag in (("mem", "Memory"), ("vmem", "Swap")):
            size = amount(get(f"resources_used.{name}", ""), f"resources_used.{name}")
            if size is not None and size[0]:
                r.delivered.append(leaf(tag, size[0], {"units": size[1], "metric": "Max"}))
        if energy := thousands(get("resources_used.energy_used", ""), "energy_used"):
            r.delivered.append(leaf("Resource", energy, {"name": "Energy", "units": "J"}))
        if text := get("resources_used.cpupercent"):
            r.more.append(("LRM", "CpuPercent", text))
        if text := get("session"):
            r.more.append(("LRM", "Session", text))


# --- texts --------------------------------------------------------------------------------------------------------

def attributes(text: str) -> dict[str, str]:
    """``a=1 b="two words" c=3``; a word without = belongs to the value before it."""
    if '"' in text:
        return {m[1]: m[3] if m[2] is None else m[2].replace('\\"', '"').replace("\\\\", "\\")
                for m in _QUOTED.finditer(text)}
    found: dict[str, str] = {}
    name = ""
    for word in text.split():
        key, sign, value = word.partition("=")
        if sign:
            name = key
            found[name] = value
        elif name:
            found[name] += f" {word}"
    return found


@dataclass(slots=True)
class _Chunks:
    """What exec_vnode assigns; memory in bytes."""

    cpus: int = 0
    gpus: int = 0
    memory: Decimal = Decimal(0)
    hosts: int = 0


@lru_cache(maxsize=1 << 12)
def vnodes(text: str) -> _Chunks:
    """``(h1:ncpus=24:ngpus=2:mem=5kb+h2:ncpus=2)+(h1:ncpus=1)``. Rejected: number."""
    made = _Chunks()
    names = set()
    for part in text.replace("(", "").replace(")", "").split("+") if text else ():
        name, *resources = part.split(":")
        names.add(name)
        for resource in resources:
            key, _, value = resource.partition("=")
            if key == "ncpus":
                made.cpus += count(value, "exec_vnode ncpus") or 0
            elif key == "ngpus":
                made.gpus += count(value, "exec_vnode ngpus") or 0
            elif key == "mem" and (size := amount(value, "exec_vnode mem")):
                made.memory += to_bytes(*size)
    made.hosts = len(names)
    return made


@lru_cache(maxsize=1 << 12)
def exec_host(text: str) -> tuple[tuple[str, ...], int, str]:
    """(hosts, processors, what is wrong) of ``h/0+h/1``, ``h/0-3,7``, ``h/0*13``; ``*0`` leaves it to exec_vnode."""
    hosts: dict[str, None] = {}
    slots = 0
    for part in text.split("+") if text else ():
        host, _, places = part.partition("/")
        hosts[host] = None
        if len(hosts) > _HOSTS:
            return (), 0, f"more than {_HOSTS} hosts"
        _, star, times = places.partition("*")
        if star:
            slots += int(times) if re.fullmatch(r"\d{1,9}", times, re.ASCII) else 0
            continue
        for piece in places.split(","):
            low, dash, high = piece.partition("-")
            if not re.fullmatch(r"\d{0,9}", low + high, re.ASCII) or (dash and not (low and high)):
                return (), 0, f"{escape(part, 60)!r} is not of the form host/0-3"
            slots += max(0, int(high) - int(low) + 1) if dash else 1
    return tuple(hosts), slots, ""


def nodes_spec(text: str) -> tuple[int | None, int | None]:
    """(processors, GPUs) of Torque's ``2:ppn=8:gpus=1+host:ppn=4``; None where it is none."""
    if not text:
        return None, None
    cpus = gpus = 0
    for part in text.split("+"):
        first, *others = part.split(":")
        times = int(first) if re.fullmatch(r"\d{1,9}", first, re.ASCII) else 1
        said = {k: int(v) for k, _, v in (o.partition("=") for o in others) if re.fullmatch(r"\d{1,9}", v, re.ASCII)}
        cpus += times * said.get("ppn", 1)
        gpus += times * said.get("gpus", 0)
    return cpus, gpus or None


@lru_cache(maxsize=1 << 12)
def _nodes(hosts: tuple[str, ...]) -> Property | None:
    try:
        return recall(node, fold(hosts))[0] if hosts else None
    except LexicalError:
        return leaf("Node", ",".join(hosts), {"aggregation": "List"})


def _array(ident: str) -> tuple[str, str] | None:
    """(id of the array, index) of ``4[2].head`` and of Torque's ``4-2.head``."""
    found = re.match(r"(\d+)(?:\[(\d+)\]|-(\d+)(?=\.|$))(.*)", ident, re.ASCII | re.DOTALL)
    if not found:
        return None
    return (f"{found[1]}[]{found[4]}", found[2]) if found[2] else (f"{found[1]}{found[4]}", found[3])


_TEXT: Final = 4096         # characters of texts that are remembered
_ASKED: Final = ("walltime", "mem", "ngpus", "select", "place", "nodes")


def _requested(facts: dict[str, str], cpus: int | None, nodes: int | None, gpus: int | None) -> tuple[Property, ...]:
    """What Resource_List asks for. Rejected: number."""
    texts = tuple(facts.get(f"Resource_List.{name}", "") for name in _ASKED)
    asked = _asked if sum(map(len, texts)) < _TEXT else _asked.__wrapped__
    return asked(texts, cpus, nodes, gpus)


@lru_cache(maxsize=1 << 12)
def _asked(texts: tuple[str, ...], cpus: int | None, nodes: int | None, gpus: int | None) -> tuple[Property, ...]:
    said = dict(zip(_ASKED, texts, strict=True))
    found: list[Property] = [leaf(tag, n) for tag, n in (("Processors", cpus), ("NodeCount", nodes)) if n]
    if limit := rounded(micros(said["walltime"], "Resource_List.walltime")):
        found.append(leaf("Duration", limit))
    size = amount(said["mem"], "Resource_List.mem")
    if size and size[0]:
        found.append(leaf("Memory", size[0], {"units": size[1], "metric": "Total"}))
    if gpus := count(said["ngpus"], "Resource_List.ngpus") or gpus:
        found.append(leaf("Resource", Decimal(gpus), {"name": "GPU"}))
    found += (leaf("Extension", said[name], {"name": name, "type": "torque" if name == "nodes" else "pbspro"})
              for name in ("select", "place", "nodes") if said[name])
    return tuple(found)


#: Lines of Cobalt have resource=.
_FIRST: Final = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z]{1,2};(?![^\n]*\bresource=)", re.ASCII)

TRANSLATOR = translator("pbs-acct", "PBS accounting log (OpenPBS, PBS Pro, Torque)", _Reading,
                        recognise=lambda sample: by_beginning(sample, _FIRST, "a stamp, a type of record and an id"))
