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
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from sssjob.document.element import Property
from sssjob.document.model import Job
from sssjob.errors import UsageError
from sssjob.findings import Findings, escape
from sssjob.lrm.slurm import NOWHERE, stated
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import by_beginning
from sssjob.translators.records import _again
from sssjob.translators.records._again import Once
from sssjob.translators.records._broken import parted_from, unbroken
from sssjob.translators.records._delimiters import FREE, joined, may_be
from sssjob.translators.records._lines import Line
from sssjob.translators.records._sacct_plans import PlannedRow, RowPlans
from sssjob.translators.records._sacct_rows import (
    COUNTED,
    ENDS,
    EXTENSIONS,
    SIGNALS,
    Columns,
    Part,
    RowCounts,
    RunRows,
    Texts,
    asked_memory,
    energy_of,
    job_of,
    time_limit,
    using,
    whole_record,
)
from sssjob.translators.records._tres import TRES, TresTexts, tres
from sssjob.translators.records.base import (
    Heading,
    Parting,
    Reading,
    Record,
    Rejected,
    count,
    heading,
    leaf,
    micros,
    rounded,
    translator,
)

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
    "alloctres": "Delivered/Processors, NodeCount, Memory, Resource (Energy where ConsumedEnergy says none)",
    "cputimeraw": "Delivered/Processors",
    "reqcpus": "Requested/Processors", "reqtres": "Requested/*", "reqmem": "Requested/Memory",
    "reqnodes": "Requested/NodeCount", "allocnodes": "Delivered/NodeCount", "nnodes": "Delivered/NodeCount",
    "nodelist": "Delivered/Node", "totalcpu": "CpuDuration", "usercpu": "CpuDuration", "systemcpu": "CpuDuration",
    "maxrss": "Delivered/Memory metric=Max", "maxvmsize": "Extension MaxVMSize",
    "consumedenergyraw": "Delivered/Resource Energy", "consumedenergy": "Delivered/Resource Energy",
    "exitcode": "ExitCode, Extension ExitSignal", "derivedexitcode": "Extension DerivedExitCode",
    "state": "State, StatusMessage", "reason": "StatusMessage and Hold of a pending job", "restarts": "StartCount",
    "planned": "Extension Planned", "reserved": "Extension Planned", "comment": "Extension Comment",
    "workdir": "InitialWorkingDirectory", "ntasks": "", "cputime": "",
    "tresusageintot": "Extension GpuDuration, by gres/gpuutil of the steps",
}
_OTHER: Final = "print the log with another --delimiter, and name it with the option delimiter"
_HEADING: Final = ("User", "Group", "Account", "Cluster", "Partition", "QOS", "Reservation")
_COMPONENTS: Final = 10_000
_NAMED: Final = 1 << 14         # texts of whose a job is that are remembered
_KEPT: Final = 100_000          # rows of the last run of a log that is read in parts


class Rows(Reading):
    """Rows of text by column, as they come from sacct, to jobs."""

    keeps: ClassVar[str] = "slurm"

    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self.delimiter = context.options.get("delimiter", "|")
        if not self.delimiter:
            raise UsageError("option delimiter is empty")
        self.columns: list[str] = []
        self.free: list[int] = []           # the columns in which the delimiter may stand
        self.is_closed: bool | None = None  # whether lines end with the delimiter; None: nothing has said it
        self.is_guessed = False             # whether it was the first line that said so, which a user may have written
        self.piece: list[str] | None = None     # the fields of the line that was just rejected because it is no row
        self.is_broken = False                  # whether the row at hand may go on behind what was read
        self.broken: list[str] = []             # its last piece and what stands behind that, where the log goes on
        self.others: list[tuple[int, str]] = []     # columns that become Extensions because option keep asks for it
        self.rows = Columns(())
        self.orders = Once(Columns)
        self.who = Once(self._names, most=_NAMED)
        self.assigned, self.wanted = TresTexts("AllocTRES"), TresTexts("ReqTRES")
        self.counted = Once(self._counts, self.findings)
        self.limited = Once(self._limit, self.findings)
        self.memory = Once(self._memory, self.findings)
        self.run: RunRows | None = None
        self.planned: PlannedRow | None = None      # a run of one row so far, whose job is known
        self.runs = 0                               # that have begun
        self.has_steps = False                      # of the last run, so that the next one may have some
        self.plans: RowPlans | None = None          # of rows as they come
        self.all_plans = Once(self._plans)
        self.clock = "ElapsedRaw"           # the column that tells how long the job at hand took
        self.header = self.head = ""        # the last header; the one above the rows of the run
        self.texts: list[str] = []          # the rows of the run, where they are kept, and headers among them
        column_option = context.options.get("columns")
        if column_option is not None:
            self._name(column_option.split(","))
            self.is_closed = None
            if "jobid" not in self.columns:
                raise UsageError("option columns names no JobID")

    # -- rows
    def jobs_of(self, some: Iterable[Line]) -> Iterator[Job]:
        """The jobs of lines, of which those between the pieces of a broken row are rejected."""
        return super().jobs_of(unbroken(self, some))

    def skips(self, line: Line) -> bool:
        """Empty lines and headers, which name the columns from there on."""
        if self.columns and line.text[:1].isdigit():
            return False
        if not line.text.strip():
            return True
        if not self.is_header(line.text):
            return False
        self._name(line.text.split(self.delimiter))
        self.header = line.text
        if self.keeping and (self.run or self.planned):
            self.texts.append(line.text)
        return True

    def is_header(self, text: str) -> bool:
        """Whether a line names columns."""
        return (not self.columns or text[:5].lower() == "jobid") and "jobid" in (
            name.strip().lower() for name in text.split(self.delimiter))

    def _name(self, names: list[str]) -> None:
        """Take names as the columns from here on; tell which are not carried over."""
        self.is_closed = bool(names) and not names[-1].strip()         # --parsable ends its lines with the delimiter
        self.is_guessed = False
        if self.is_closed:
            names = names[:-1]
        self.columns = [n.strip().partition("%")[0].lower() for n in names]
        self.free = [i for i, n in enumerate(self.columns) if n in FREE]
        self.rows = self.orders[tuple(self.columns)]
        self.plans = self.all_plans[self.rows] if _again.LONGEST and not self.keep_all else None
        lost = [n.strip() for n, low in zip(names, self.columns, strict=True)
                if low not in COLUMNS and low not in EXTENSIONS]
        if self.keep_all:
            self.others = [(at, n.strip()) for at, n in enumerate(names) if n.strip() in lost]
        elif lost:
            self.tell("SSS501", "columns", f"columns not carried over: {escape(', '.join(lost), 600)}")

    def take(self, line: Line) -> Iterable[Job]:
        """Add one row; gives the job before it when a new one begins."""
        fields = line.text.split(self.delimiter)
        if len(fields) != len(self.columns) or not self.columns:
            self._put_right(fields, line.number)
        elif self.is_guessed:
            raise Rejected("columns", "the line does not end with the delimiter, as one before it did, of which a name "
                           f"may hold it: {_OTHER}")
        elif self.is_closed is None:
            self.is_closed = False
        ident = fields[self.rows.id]
        if not ident or not ident[0].isdigit():
            self.piece = fields
            raise Rejected("id", f"JobID {escape(ident, 40)!r} is none")
        fields.append("")
        before, plans = self.runs, self.plans
        planned = None
        if plans is not None and not self.has_steps and "." not in ident and "+" not in ident:
            try:
                planned = plans.of(fields, ident, line.number)
            except Rejected:
                planned = None          # the reader tells why
        done = self._folded(self.rows, ident, fields, line.number) if planned is None else self._begun(planned)
        if self.keeping:
            if self.runs > before:
                self.head, self.texts = self.header, []
            if len(self.texts) < _KEPT:
                self.texts.append(line.text)
        return done

    def unfinished(self) -> Iterable[str]:
        """The header, the rows of the last run, of which steps may follow, and a piece of a row."""
        return [text for text in (self.head or self.header, *self.texts, *self.broken) if text]

    def _put_right(self, fields: list[str], number: int) -> None:
        """Make a row of as many fields as there are columns. Rejected: header, columns."""
        if not self.columns:
            raise Rejected("header", "no header and no option columns says what the columns are")
        if self.is_closed is None:
            self.is_closed = not fields[-1] and (joined(fields[:-1], self.columns, self.delimiter) is not None or
                                                 joined(fields, self.columns, self.delimiter) is None)
            self.is_guessed = self.is_closed and bool(self.free)
        row = self.row_of(fields)
        if row is None:
            self.piece = fields
            why = "" if len(fields) < len(self.columns) else (
                f", and a delimiter that is part of a text cannot be told: {_OTHER}")
            raise Rejected("columns", f"{len(fields)} columns, not {len(self.columns)}{why}")
        fields[:] = row
        for at in self.free:
            if self.delimiter in fields[at]:
                self.tell("SSS542", self.columns[at], f"the delimiter stands in {self.columns[at]}, which takes it",
                          number)

    def row_of(self, fields: list[str]) -> list[str] | None:
        """The texts of a row by column; None where its fields are those of no row."""
        if len(fields) == len(self.columns):
            return fields
        if self.is_closed and not fields[-1]:
            fields = fields[:-1]
            if len(fields) == len(self.columns):
                return fields
        return joined(fields, self.columns, self.delimiter, form=may_be if len(self.free) > 1 else None)

    def fold(self, row: Mapping[str, str], number: int) -> Iterable[Job]:
        """Add a row, by name of the column, to the run it belongs to; gives the job before it when a new one begins."""
        return self._folded(self.orders[tuple(row)], row["jobid"], [*row.values(), ""], number)

    def _begun(self, planned: PlannedRow) -> Iterable[Job]:
        """Begin a run with a row whose job is known; gives the job before it."""
        done = self.rest()
        self.planned = planned
        self.runs += 1
        return done

    def _folded(self, columns: Columns, ident: str, row: list[str], number: int) -> Iterable[Job]:
        offset, base = "", ident
        if "." in ident or "+" in ident:
            if self.planned is not None:            # the row tells more of that run
                self._look_at(self.planned)
            run = self.run
            ident, _, step = ident.partition(".")
            base, _, offset = ident.partition("+")
            if step:
                if run is None or run.base != base or offset not in run.parts:
                    raise Rejected("orphan", f"step {escape(row[columns.id], 60)}, whose job does not stand before it")
                self.has_steps = True
                self.step(run.parts[offset], step, columns.used(row), row[columns.exit])
                if columns.measured is not None:
                    run.parts[offset].gpus_worked(*columns.measured(row))
                return ()
        run = self.run
        part = self._part(columns, row, ident, number)
        if run is not None and offset and run.base == base and len(run.parts) >= _COMPONENTS:
            raise Rejected("too-long", f"a job of more than {_COMPONENTS} components")
        done: Iterable[Job] = ()
        if run is None or not offset or run.base != base or offset in run.parts:
            done = self.rest()
            run = self.run = RunRows(base)
            self.runs += 1
            self.has_steps = False
        run.parts[offset] = part
        return done

    def _look_at(self, planned: PlannedRow) -> None:
        """Read the row of a run whose job was known, for its job will be another one."""
        self.planned, self.run = None, RunRows(planned.ident)
        self.run.parts[""] = self._part(self.rows, planned.row, planned.ident, planned.number)

    def _part(self, columns: Columns, row: list[str], ident: str, number: int) -> Part:
        """What a row of a job, or of a component, says. Rejected."""
        self.at = number
        record = self._record(columns, row, ident, number)
        cpu, peak, swap = using(columns.used(row))
        part = Part(record, cpu)
        if peak is not None or swap is not None:
            part.grow(peak, swap)
        return part

    def rest(self) -> Iterable[Job]:
        """The last job."""
        run, planned, self.run, self.planned = self.run, self.planned, None, None
        if planned is None:
            return () if run is None else (self.given(whole_record(run)),)
        if planned.machine is None:
            self.nameless(planned.number)
        self.counts.jobs += 1
        job: Any = planned.outlined() if self.outlining else planned.job()
        return (job,)

    def _plans(self, columns: Columns) -> RowPlans:
        """The plans of rows with these columns."""
        context = self.context
        options = {name: text for name, text in context.options.items() if name != "columns"}
        learns = Rows(ReadContext("-", Findings("-"), limits=context.limits, options=options))
        learns.nameless(0)
        return RowPlans(self, columns, learns)

    # -- the record of a row
    def _record(self, columns: Columns, row: list[str], ident: str, number: int) -> Record:
        self.name(ident, "JobID")
        machine, identity = self.who[columns.who(row)]
        r = Record(number, ident, machine)
        r.heading = identity
        name, workdir, raw, planned, reserved, *energies, first, two, three, four = columns.more(row)
        r.name = self.free_text(name, "JobName", number)
        r.directory = workdir or None
        base, _, index = ident.partition("_")
        if index:
            r.array = base, index
        self._times(r, columns.times(row))
        self._state(r, columns.ended(row))
        self._amounts(r, columns.held(row), columns.states_tres)
        if r.ran and (energy := energy_of(energies) or self.assigned[columns.held(row)[0]].energy):
            r.delivered.append(energy)
        if raw and raw != ident:
            r.more.append(("LRM", "JobIDRaw", raw))
        if first or two or three or four:
            r.more += [("LRM", name, text) for name, text in zip(
                EXTENSIONS.values(), (first, two, three, four), strict=True) if text and text != "0:0"]
        for at, other in self.others if columns is self.rows else ():
            if row[at]:
                r.more.append((self.keeps, other, row[at]))
        if (text := planned or reserved)[:1].isdigit():
            r.more.append(("LRM", "Planned", str(rounded(micros(text, "Planned")))))
        return r

    def _names(self, texts: Texts) -> tuple[str | None, Heading]:
        """Machine, and all that says whose a job is."""
        user, uid, group, gid, account, cluster, partition, qos, reservation = texts
        names = (user or uid, group or gid, account, cluster, partition, stated(qos.strip()) or "", reservation)
        if max(map(len, names)) > self.context.limits.identifier:
            for text, name in zip(names, _HEADING, strict=True):
                self.name(text, name)
        machine = cluster or self.machine
        of_user, of_group, project, _, queue, service, reserved = [name or None for name in names]
        return machine, heading(of_user, of_group, project, machine, queue, service, reserved)

    def _times(self, r: Record, texts: Texts) -> None:
        submit, eligible, start, end, raw, elapsed, suspended, restarts = texts
        number = r.line
        r.submit = self.time(submit, "Submit", number)
        r.eligible = r.submit if eligible == submit else self.time(eligible, "Eligible", number)
        r.start = self.time(start, "Start", number)
        r.wall = count(raw, "ElapsedRaw")
        self.clock = "Elapsed" if r.wall is None else "ElapsedRaw"
        if elapsed:
            r.wall = self.first("Duration", number, ("ElapsedRaw", r.wall),
                                ("Elapsed", rounded(micros(elapsed, "Elapsed"))))
        if suspended and suspended != "00:00:00":
            r.suspended = rounded(micros(suspended, "Suspended")) or None
        near = None if r.start is None or r.wall is None else r.start + r.wall + (r.suspended or 0)
        r.end = self.time(end, "End", number, near)
        again = count(restarts, "Restarts")
        r.starts = None if again is None else again + 1

    def _amounts(self, r: Record, texts: Texts, states_tres: bool) -> None:
        """Add what a job was assigned and asked for."""
        alloc, req, reqmem, nodelist, raw, limited, limit, *counts = texts
        number = r.line
        allocated = self.assigned[alloc]
        r.ran = ((r.start is not None or r.wall not in (None, 0)) and (
            bool(r.wall) or nodelist not in NOWHERE if nodelist else bool(r.wall) or (
                allocated.cpu is not None if states_tres else r.start is not None)))
        try:
            asked = self.wanted[req]
        except Rejected:            # each odd member is told and left out
            asked = tres(",".join(item for item in req.split(",") if self.asked(tres, item, "ReqTRES") is not None),
                         "ReqTRES")
        if not r.ran:               # while a job waits its counts are what it asks for
            r.requested += self.counted[False, allocated.cpu, allocated.nodes, asked.cpu, asked.nodes, None, None,
                                        *counts].requested
        else:
            listed, quotient = self._ran(r, nodelist, raw, number)
            r.processors, r.nodes, requested = self.counted[
                True, allocated.cpu, allocated.nodes, asked.cpu, asked.nodes, listed, quotient, *counts]
            r.delivered += allocated.properties
            r.requested += requested
            if allocated.gpus_differ:
                self.tell("SSS541", "Resource", f"GPU: AllocTRES {allocated.gpus_differ}", number)
        time_limit_asked = self.limited[limited, limit]
        if time_limit_asked is not None:
            r.requested.append(time_limit_asked)
        memory = asked.total if reqmem == asked.size or not reqmem[:1].isdigit() else self.memory[reqmem]
        if memory is not None:
            r.requested.append(memory)
        r.requested += asked.properties

    def _ran(self, r: Record, nodelist: str, raw: str, number: int) -> tuple[int | None, int | None]:
        """(how many nodes are listed, CPUTimeRAW over the elapsed time) of a job that ran."""
        listed = None
        if nodelist and nodelist in NOWHERE:
            self.tell("SSS541", "NodeList", f"NodeList is {nodelist}, and it ran for {r.wall} s; the time is taken",
                      number)
        elif nodelist:
            r.node, listed = self.nodes(nodelist, number)
        if r.start is not None and r.end is not None:
            self._spent(r, r.end - r.start)
        cpus = count(raw, "CPUTimeRAW") if raw else None
        return listed, cpus // r.wall if cpus and r.wall and not cpus % r.wall else None

    def _spent(self, r: Record, span: int) -> None:
        """Wall time and suspended time beside the time from start to end."""
        if r.wall is None:
            r.wall = max(0, span - (r.suspended or 0))
        elif r.suspended is None and span > r.wall:
            r.suspended = span - r.wall
        elif abs(span - (r.suspended or 0) - r.wall) > 2:
            self.first("Duration", r.line, (self.clock, r.wall), (
                "End - Start - Suspended" if r.suspended else "End - Start", span - (r.suspended or 0)))
            if span >= 0:
                r.more.append(("LRM", "Elapsed", str(span)))

    def _counts(self, numbers: tuple[bool | int | str | None, ...]) -> RowCounts:
        """Processors and nodes, and those and the time that were asked for. Rejected: number."""
        ran, alloc_cpu, alloc_nodes, asked_cpu, asked_nodes, listed, quotient, *texts = numbers
        row, number = dict(zip(COUNTED, map(str, texts), strict=True)), self.at
        assert not isinstance(alloc_cpu, str) and not isinstance(alloc_nodes, str) and not isinstance(quotient, str)
        assert not isinstance(asked_cpu, str) and not isinstance(asked_nodes, str) and not isinstance(listed, str)
        cpus, nodes = count(row["ncpus"], "NCPUS"), count(row["nnodes"], "NNodes")
        asked = TRES(asked_cpu, asked_nodes)
        if not ran:
            return RowCounts(None, None, tuple(self._requested(row, asked, cpus or None, nodes or None, number)))
        processors = self.first(
            "Processors", number, ("AllocCPUS", count(row["alloccpus"], "AllocCPUS") or None),
            ("AllocTRES", alloc_cpu), ("NCPUS", cpus or None), ("CPUTimeRAW / Elapsed", quotient))
        counted = self.first("NodeCount", number, ("AllocNodes", count(row["allocnodes"], "AllocNodes")),
                             ("AllocTRES", alloc_nodes), ("NNodes", nodes), ("NodeList", listed))
        return RowCounts(processors, counted, tuple(self._requested(row, asked, None, None, number)))

    def _requested(self, row: Mapping[str, str], asked: TRES, cpus: int | None, nodes: int | None,
                   number: int) -> Iterator[Property]:
        some, many = (self.asked(count, row[name.lower()], name) for name in ("ReqCPUS", "ReqNodes"))
        n = self.first("Requested/Processors", number, ("ReqCPUS", some), ("ReqTRES", asked.cpu), ("NCPUS", cpus))
        if n:
            yield leaf("Processors", n)
        n = self.first("Requested/NodeCount", number, ("ReqNodes", many), ("ReqTRES", asked.nodes), ("NNodes", nodes))
        if n:
            yield leaf("NodeCount", n)

    def _limit(self, texts: Texts) -> Property | None:
        """The time limit that was asked for, of TimelimitRaw and Timelimit. An odd one is told."""
        raw, text = texts
        limit = self.asked(time_limit, *((raw, "TimelimitRaw") if raw[:1].isdigit() else (text, "Timelimit")))
        return None if limit is None else leaf("Duration", limit)

    def _memory(self, text: str) -> Property | None:
        """ReqMem; before 21.08 it ends in c (a CPU) or n (a node). An odd one is told."""
        return self.asked(asked_memory, text, "ReqMem")

    def _state(self, r: Record, texts: Texts) -> None:
        r.native, r.signal, r.exit_code, r.exit_status, ended = ENDS[texts]
        r.state, r.message, r.hold, is_known = ended
        if not r.native:
            r.state = "Completed" if r.end is not None else "Running" if r.start is not None else "Idle"
        elif not is_known:
            self.tell("SSS203", "State", f"State {escape(r.native, 60)!r} is not known, taken as {r.state}", r.line)
        if r.state != "Completed":
            r.end = r.exit_code = None

    def step(self, part: Part, name: str, texts: Texts, exits: str) -> None:
        """Add what a step tells of its job: CPU time, peaks, and of the batch step the signal."""
        signal = SIGNALS[exits]
        used, peak, swap = using(texts)
        if used is not None:
            part.cpu = (part.cpu or 0) + used
        part.grow(peak, swap)
        if signal and name == "batch":
            part.signal = signal


_HEADER: Final = re.compile(r"(?=[^\n]*\bJobID(?:Raw)?\b)[A-Z]\w*+(?:\|[A-Z]\w*+)*+\|?\r?(?:\n|\Z)", re.IGNORECASE)

_PARTING: Final = Parting(header=job_of, apart=parted_from, again=re.compile(rb"\njobid", re.IGNORECASE))

TRANSLATOR = translator("sacct", "Slurm accounting, sacct --parsable2", Rows, (".psv",), parting=_PARTING,
                        recognise=lambda sample: by_beginning(sample, _HEADER, "columns of sacct, one of them JobID"))
