"""Format ``sacct``: what ``sacct --parsable2`` prints, with any columns.

    JobID|User|State|ExitCode|Start|End|ElapsedRaw|AllocTRES
    12|alice|COMPLETED|0:0|1795248554|1795248556|2|billing=1,cpu=1,mem=100M,node=1
    12.batch||COMPLETED|0:0|1795248554|1795248556|2|cpu=1,mem=100M,node=1

The header names the columns, or the option ``columns`` does (a comma list, where the header was left out); option
``delimiter`` where it is no vertical bar. Rows of steps are folded into their job, components of a heterogeneous job
are its TaskGroups, every run of a requeued job (``-D``) is a Job. Times need the option ``timezone`` unless sacct was
told SLURM_TIME_FORMAT=%s.

Source: sacct(1), Job Accounting Fields; recorded output of 22.05.8. Not known to sacct's text: exit codes from 128,
which 22.05 prints less 128.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from sssjob.element import Property
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.model import Job
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import by_beginning
from sssjob.translators.records._lines import Line
from sssjob.translators.records._slurm import CODED, TRES, ending, merged, tres
from sssjob.translators.records.base import (
    Reading,
    Record,
    Rejected,
    amount,
    count,
    leaf,
    micros,
    recall,
    rounded,
    thousands,
    translator,
    words,
)
from sssjob.units import to_bytes

__all__ = ["COLUMNS", "TRANSLATOR", "Rows"]

#: Column in lower case -> what becomes of it. Columns that are not here are not carried over.
COLUMNS: Final[dict[str, str]] = {
    "jobid": "Id; array and component index from it", "jobidraw": "Extension JobIDRaw, where it differs",
    "jobname": "Name", "cluster": "Machine", "user": "User", "uid": "User, where that is empty", "group": "Group",
    "gid": "Group, where that is empty", "account": "Project", "wckey": "Extension WCKey", "partition": "Queue",
    "qos": "QualityOfService", "reservation": "Reservation", "submit": "SubmitTime",
    "eligible": "Extension EligibleStamp", "start": "StartTime", "end": "EndTime", "elapsedraw": "Delivered/Duration",
    "elapsed": "Delivered/Duration", "suspended": "SuspendDuration", "timelimitraw": "Requested/Duration",
    "timelimit": "Requested/Duration", "alloccpus": "Delivered/Processors", "ncpus": "Delivered/Processors",
    "alloctres": "Delivered/Processors, NodeCount, Memory, Resource", "cputimeraw": "Delivered/Processors",
    "reqcpus": "Requested/Processors", "reqtres": "Requested/*", "reqmem": "Requested/Memory",
    "reqnodes": "Requested/NodeCount", "allocnodes": "Delivered/NodeCount", "nnodes": "Delivered/NodeCount",
    "nodelist": "Delivered/Node", "totalcpu": "CpuDuration", "usercpu": "CpuDuration", "systemcpu": "CpuDuration",
    "maxrss": "Delivered/Memory metric=Max", "maxvmsize": "Extension MaxVMSize",
    "consumedenergyraw": "Delivered/Resource Energy", "consumedenergy": "Delivered/Resource Energy",
    "exitcode": "ExitCode, Extension ExitSignal", "derivedexitcode": "Extension DerivedExitCode",
    "state": "State, StatusMessage", "reason": "StatusMessage and Hold of a pending job", "restarts": "StartCount",
    "planned": "Extension Planned", "reserved": "Extension Planned", "comment": "Extension Comment",
    "workdir": "InitialWorkingDirectory", "ntasks": "", "cputime": "",
}
#: Columns in which a user may write the delimiter.
_FREE: Final = ("jobname", "comment", "admincomment", "systemcomment", "extra", "submitline", "workdir", "wckey",
                "container", "constraints", "stdin", "stdout", "stderr")
_EXTENSIONS: Final = {"wckey": "WCKey", "derivedexitcode": "DerivedExitCode", "comment": "Comment",
                      "sluid": "SLUID"}
_COMPONENTS: Final = 10_000
_TOTAL: Final = {"metric": "Total"}


@dataclass(slots=True)
class _Run:
    """A run of a job while its rows come: by index of the component its record, the CPU time of its own row, and what
    the steps add. CPU time in microseconds."""

    base: str
    records: dict[str, Record] = field(default_factory=dict)
    own: dict[str, int | None] = field(default_factory=dict)
    cpu: dict[str, int] = field(default_factory=dict)
    peaks: dict[tuple[str, str], tuple[Decimal, str]] = field(default_factory=dict)
    signals: dict[str, int] = field(default_factory=dict)

    def grow(self, offset: str, sizes: dict[str, tuple[Decimal, str]]) -> None:
        """Keep the greatest size of each column."""
        for column, size in sizes.items():
            old = self.peaks.get((offset, column))
            if old is None or to_bytes(*size) > to_bytes(*old):
                self.peaks[offset, column] = size


class Rows(Reading):
    """Rows of text by column, as they come from sacct, to jobs."""

    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self.delimiter = context.options.get("delimiter", "|")
        if not self.delimiter:
            raise UsageError("option delimiter is empty")
        self.columns: list[str] = []
        self.free = -1
        self.run: _Run | None = None
        given = context.options.get("columns")
        if given is not None:
            self._name(given.split(","))
            if "jobid" not in self.columns:
                raise UsageError("option columns names no JobID")

    # -- rows
    def skips(self, line: Line) -> bool:
        if not line.text.strip():
            return True
        if not self.columns or line.text[:5].lower() == "jobid":
            names = line.text.split(self.delimiter)
            if "jobid" in (n.strip().lower() for n in names):
                self._name(names)
                return True
        return False

    def _name(self, names: list[str]) -> None:
        """Take names as the columns from here on; tell which are not carried over."""
        if names and not names[-1].strip():         # --parsable ends its lines with the delimiter
            names = names[:-1]
        self.columns = [n.strip().partition("%")[0].lower() for n in names]
        free = [i for i, n in enumerate(self.columns) if n in _FREE]
        self.free = free[0] if len(free) == 1 else -1
        lost = [n.strip() for n, low in zip(names, self.columns, strict=True)
                if low not in COLUMNS and low not in _EXTENSIONS]
        if lost:
            self.tell("SSS501", "columns", f"columns not carried over: {escape(', '.join(lost), 600)}")

    def _row(self, line: Line) -> dict[str, str]:
        """Column -> text. Rejected: header, columns, id."""
        if not self.columns:
            raise Rejected("header", "no header and no option columns says what the columns are")
        fields = line.text.split(self.delimiter)
        extra = len(fields) - len(self.columns)
        if extra == 1 and not fields[-1]:
            fields.pop()
        elif extra > 0 and self.free >= 0:
            end = self.free + extra + 1
            fields[self.free:end] = [self.delimiter.join(fields[self.free:end])]
            self.tell("SSS542", self.columns[self.free], f"the delimiter stands in {self.columns[self.free]}, which "
                      "takes it", line.number)
        elif extra:
            raise Rejected("columns", f"{len(fields)} columns, not {len(self.columns)}")
        row = dict(zip(self.columns, fields, strict=True))
        if not row["jobid"] or not row["jobid"][0].isdigit():
            raise Rejected("id", f"JobID {escape(row['jobid'], 40)!r} is none")
        return row

    def take(self, line: Line) -> Iterable[Job]:
        return self.fold(self._row(line), line.number)

    def fold(self, row: dict[str, str], number: int) -> Iterable[Job]:
        """Add a row to the run it belongs to; gives the job before it when a new one begins."""
        ident, _, step = row["jobid"].partition(".")
        base, _, offset = ident.partition("+")
        run = self.run
        if step:
            if run is None or run.base != base or offset not in run.records:
                raise Rejected("orphan", f"step {escape(row['jobid'], 60)}, whose job does not stand before it")
            self._step(run, offset, step, row)
            return ()
        record = self._record(row, ident, number)
        used, sizes = _cpu(row), _sizes(row)
        done: Iterable[Job] = ()
        if run is not None and offset and run.base == base and len(run.records) >= _COMPONENTS:
            raise Rejected("too-long", f"a job of more than {_COMPONENTS} components")
        if run is None or not offset or run.base != base or offset in run.records:
            done = self.rest()
            run = self.run = _Run(base)
        run.records[offset], run.own[offset] = record, used
        run.grow(offset, sizes)
        return done

    def rest(self) -> Iterable[Job]:
        run, self.run = self.run, None
        return () if run is None else (self.given(self._whole(run)),)

    # -- the record of a row
    def _record(self, row: dict[str, str], ident: str, number: int) -> Record:
        get = row.get
        r = Record(number, ident)
        self.name(ident, "JobID")
        r.name = self.name(get("jobname"), "JobName")
        r.user = self.name(get("user") or get("uid"), "User")
        r.group = self.name(get("group") or get("gid"), "Group")
        r.project = self.name(get("account"), "Account")
        r.machine = self.name(get("cluster"), "Cluster") or self.machine
        r.queue = self.name(get("partition"), "Partition")
        r.qos = self.name(words(get("qos"), "Unknown"), "QOS")      # it says so of a job that ended just now
        r.reservation = self.name(get("reservation"), "Reservation")
        r.directory = get("workdir") or None
        base, _, index = ident.partition("_")
        if index:
            r.array = base, index
        self._times(r, row)
        self._state(r, row)
        self._amounts(r, row)
        if get("jobidraw", ident) not in (ident, ""):
            r.more.append(("LRM", "JobIDRaw", row["jobidraw"]))
        for column, name in _EXTENSIONS.items():
            if (text := get(column)) and text != "0:0":
                r.more.append(("LRM", name, text))
        text = get("planned") or get("reserved") or ""
        if text[:1].isdigit():
            r.more.append(("LRM", "Planned", str(rounded(micros(text, "Planned")))))
        return r

    def _times(self, r: Record, row: dict[str, str]) -> None:
        get, number = row.get, r.line
        r.submit = self.time(get("submit", ""), "Submit", number)
        r.eligible = self.time(get("eligible", ""), "Eligible", number)
        r.start = self.time(get("start", ""), "Start", number)
        r.end = self.time(get("end", ""), "End", number)
        r.wall = self.first("Duration", number, ("ElapsedRaw", count(get("elapsedraw", ""), "ElapsedRaw")),
                            ("Elapsed", rounded(micros(get("elapsed", ""), "Elapsed"))))
        r.suspended = rounded(micros(get("suspended", ""), "Suspended")) or None
        restarts = count(get("restarts", ""), "Restarts")
        r.starts = None if restarts is None else restarts + 1

    def _amounts(self, r: Record, row: dict[str, str]) -> None:
        get, number = row.get, r.line
        allocated = recall(tres, get("alloctres", ""), "AllocTRES")
        asked = recall(tres, get("reqtres", ""), "ReqTRES")
        r.ran = _ran(r, row, allocated)
        if r.ran and r.start is not None and r.end is not None:
            span = r.end - r.start
            if r.wall is None:
                r.wall = max(0, span - (r.suspended or 0))
            elif r.suspended is None and span > r.wall:
                r.suspended = span - r.wall
            elif abs(span - (r.suspended or 0) - r.wall) > 2:
                self.first("Duration", number, ("ElapsedRaw", r.wall), ("End - Start - Suspended",
                                                                        span - (r.suspended or 0)))
                r.more.append(("LRM", "Elapsed", str(span)))
        cpus = count(get("ncpus", ""), "NCPUS")
        nodes = count(get("nnodes", ""), "NNodes")
        if r.ran:
            raw = count(get("cputimeraw", ""), "CPUTimeRAW")
            r.processors = self.first(
                "Processors", number, ("AllocCPUS", count(get("alloccpus", ""), "AllocCPUS") or None),
                ("AllocTRES", allocated.cpu), ("NCPUS", cpus or None),
                ("CPUTimeRAW / Elapsed", raw // r.wall if raw and r.wall and not raw % r.wall else None))
            r.node, listed = self.nodes(get("nodelist", ""), number) if get("nodelist") else (None, None)
            r.nodes = self.first("NodeCount", number, ("AllocNodes", count(get("allocnodes", ""), "AllocNodes")),
                                 ("AllocTRES", allocated.nodes), ("NNodes", nodes), ("NodeList", listed))
            r.delivered += _held(allocated, row)
            if allocated.gpus_differ:
                self.tell("SSS541", "Resource", f"GPU: AllocTRES {allocated.gpus_differ}", number)
            cpus = nodes = None         # while a job waits they are what it asks for
        r.requested = self._requested(row, asked, cpus or None, nodes or None, number)

    def _requested(self, row: dict[str, str], asked: TRES, cpus: int | None, nodes: int | None,
                   number: int) -> list[Property]:
        found: list[Property] = []
        n = self.first("Requested/Processors", number, ("ReqCPUS", count(row.get("reqcpus", ""), "ReqCPUS")),
                       ("ReqTRES", asked.cpu), ("NCPUS", cpus))
        if n:
            found.append(leaf("Processors", n))
        n = self.first("Requested/NodeCount", number, ("ReqNodes", count(row.get("reqnodes", ""), "ReqNodes")),
                       ("ReqTRES", asked.nodes), ("NNodes", nodes))
        if n:
            found.append(leaf("NodeCount", n))
        limit = _limit(row)
        if limit is not None:
            found.append(leaf("Duration", limit))
        memory = _asked_memory(row.get("reqmem", ""), asked)
        if memory is not None:
            found.append(memory)
        return [*found, *(p for p in asked.others if p.get("name") not in ("Billing", "Energy"))]

    def _state(self, r: Record, row: dict[str, str]) -> None:
        r.native = words(row.get("state")) or ""
        code, signal = _code(row.get("exitcode", ""))
        word = r.native.partition(" ")[0]
        r.signal = signal or None
        if code is not None and not r.signal and (code or word in CODED):
            r.exit_code = code
        if r.exit_code is None:
            r.exit_status = row.get("exitcode", "")
        r.state, r.message, r.hold, known = ending(r.native, row.get("reason", ""), r.signal)
        if not r.native:
            r.state = "Completed" if r.end is not None else "Running" if r.start is not None else "Idle"
        elif not known:
            self.tell("SSS203", "State", f"State {escape(r.native, 60)!r} is not known, taken as {r.state}", r.line)
        if r.state != "Completed":
            r.end = r.exit_code = None

    # -- steps
    def _step(self, run: _Run, offset: str, step: str, row: dict[str, str]) -> None:
        """What a step tells of its job: CPU time, peaks, and of the batch step the signal."""
        used, sizes, signal = _cpu(row), _sizes(row), _code(row.get("exitcode", ""))[1]
        if used is not None:
            run.cpu[offset] = run.cpu.get(offset, 0) + used
        run.grow(offset, sizes)
        if step == "batch" and signal:
            run.signals[offset] = signal

    def _whole(self, run: _Run) -> Record:
        for offset, record in run.records.items():
            self._folded(run, offset, record)
        records = list(run.records.values())
        if len(records) == 1 and "" in run.records:
            return records[0]
        first = records[0]
        job = Record(first.line, run.base, **{name: getattr(first, name) for name in (
            "name", "user", "group", "project", "machine", "queue", "qos", "reservation", "directory", "submit",
            "eligible")})
        job.state, job.hold, job.native, job.exit_status = first.state, first.hold, first.native, first.exit_status
        job.more, job.starts = first.more, first.starts
        merged(job, records)
        return job

    def _folded(self, run: _Run, offset: str, r: Record) -> None:
        """Put into the record of a job what its steps said."""
        peak, swap = run.peaks.get((offset, "maxrss")), run.peaks.get((offset, "maxvmsize"))
        if peak:
            r.delivered.append(leaf("Memory", peak[0], {"units": peak[1], "metric": "Max"}))
        if swap:
            r.more.append(("LRM", "MaxVMSize", f"{swap[0]:f} {swap[1]}"))
        used = run.own[offset] or run.cpu.get(offset)       # sacct -X prints 0 for the job and no step
        r.cpu = rounded(run.own[offset] if used is None and not r.wall else used)
        if r.signal is None and r.exit_code is None and offset in run.signals and r.state == "Completed" and r.ran:
            r.signal = run.signals[offset]


def _ran(r: Record, row: dict[str, str], allocated: TRES) -> bool:
    """Whether a job used the machine: a start time alone is no evidence (lrm-facts: cancelled jobs may have one)."""
    if r.start is None and r.wall in (None, 0):
        return False
    if row.get("nodelist"):
        return row["nodelist"] != "None assigned"
    if r.wall:
        return True
    if "alloctres" in row:
        return allocated.cpu is not None
    return r.start is not None


def _held(allocated: TRES, row: dict[str, str]) -> Iterator[Property]:
    if allocated.memory is not None:
        yield leaf("Memory", allocated.memory[0], {"units": allocated.memory[1]} | _TOTAL)
    yield from (p for p in allocated.others if p.get("name") != "Energy")
    for column in ("consumedenergyraw", "consumedenergy"):
        if energy := thousands(row.get(column, ""), column):
            yield leaf("Resource", energy, {"name": "Energy", "units": "J"})
            return


def _limit(row: dict[str, str]) -> int | None:
    """Seconds of TimelimitRaw (minutes) or Timelimit; None for UNLIMITED and Partition_Limit."""
    raw = row.get("timelimitraw", "")
    if raw[:1].isdigit():
        minutes = count(raw, "TimelimitRaw")
        return None if minutes is None else minutes * 60
    text = row.get("timelimit", "")
    return rounded(micros(text, "Timelimit")) if text[:1].isdigit() else None


def _asked_memory(text: str, asked: TRES) -> Property | None:
    """ReqMem; before 21.08 it ends in c (a CPU) or n (a node)."""
    per = {"c": "PerProcessor", "n": "PerNode"}.get(text[-1:], "")
    size = amount(text[:-1] if per else text, "ReqMem", "MB") if text[:1].isdigit() else asked.memory
    if size is None or not size[0]:
        return None
    return leaf("Memory", size[0], {"units": size[1], "metric": per or "Total"})


def _code(text: str) -> tuple[int | None, int | None]:
    """(exit code, signal) of ``rc:sig``."""
    code, _, signal = text.partition(":")
    return count(code, "ExitCode"), count(signal, "ExitCode")


def _cpu(row: dict[str, str]) -> int | None:
    """Microseconds of TotalCPU, else of UserCPU and SystemCPU."""
    total = micros(row.get("totalcpu", ""), "TotalCPU")
    if total is not None:
        return total
    user, system = micros(row.get("usercpu", ""), "UserCPU"), micros(row.get("systemcpu", ""), "SystemCPU")
    return None if user is None and system is None else (user or 0) + (system or 0)


def _sizes(row: dict[str, str]) -> dict[str, tuple[Decimal, str]]:
    """The peaks that were sampled: empty and 0 were not."""
    found = {}
    for column in ("maxrss", "maxvmsize"):
        size = amount(row.get(column, ""), column)
        if size is not None and size[0]:
            found[column] = size
    return found


_HEADER: Final = re.compile(r"(?=[^\n]*\bJobID(?:Raw)?\b)[A-Z]\w*+(?:\|[A-Z]\w*+)*+\|?\r?(?:\n|\Z)", re.IGNORECASE)

TRANSLATOR = translator("sacct", "Slurm accounting, sacct --parsable2", Rows, (".psv",),
                        recognise=lambda sample: by_beginning(sample, _HEADER, "columns of sacct, one of them JobID"))
