"""Format ``swf``: traces in the Standard Workload Format 2.2, read and written.

    ; UnixStartTime: 1389642318
    184 561553 0 61 16 -1 -1 16 43200 819200 1 6 1 -1 -1 1 -1 -1

Eighteen numbers a job, -1 for what is not known. Times count from the header's UnixStartTime, else from the option
``origin`` (epoch seconds), else from 1970, which is told. Lines of parts of a job (status 2, 3, 4) are told by its
summary line already. Writing: users, groups, applications and queues are numbers here: one that is a number stays,
others are numbered in the order in which they come, and the last lines say which is which.

Source: the definition of the format, Parallel Workloads Archive, swf.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Final

from sssjob.document.element import Value
from sssjob.document.held import as_decimal, held, in_all, per_of, ran
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Job
from sssjob.document.units import to_bytes
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.request.in_all import asked_in_all
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.recognise import by_beginning
from sssjob.translators.records._lines import Line
from sssjob.translators.records._usage import Telling
from sssjob.translators.records.base import Reading, Record, Rejected, leaf, moment, number, translator, words

__all__ = ["FIELDS", "TRANSLATOR"]

#: The fields of a line, in order.
FIELDS: Final = (
    "job", "submit (s)", "wait (s)", "run (s)", "allocated processors", "average CPU seconds of a processor",
    "used memory of a processor (KB)", "requested processors", "requested time (s)",
    "requested memory of a processor (KB)", "status", "user", "group", "executable", "queue", "partition",
    "preceding job", "think time (s)",
)
#: status -> StatusMessage.
#: Keys of the header that say what the lines mean.
_HEADER: Final = ("UnixStartTime", "Computer")
_STATUS: Final = {0: "failed", 1: "completed", 5: "cancel: cancelled"}
_PARTS: Final = (2, 3, 4)
_NAMED: Final = 1_000_000       # numbers from here on stand for names
_IDS: Final = 1_000_000_000     # and for ids that are no numbers


def _origin(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isdigit() and text.isascii() and len(text) < 12):
        raise UsageError(f"origin is a time in epoch seconds, not {escape(text, 40)!r}")
    return int(text)


class _Reading(Reading):
    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self.origin = _origin(context.options.get("origin"))
        self.given_origin = self.origin is not None
        self.heads: dict[str, str] = {}         # where they are kept

    def skips(self, line: Line) -> bool:
        """Comments, of which UnixStartTime is the origin of all times."""
        text = line.text.strip()
        if text.startswith(";"):
            key, _, value = text[1:].partition(":")
            value = value.strip()
            if self.keeping and key.strip() in _HEADER:
                self.heads[key.strip()] = line.text
            if key.strip() == "UnixStartTime" and value.isdigit() and len(value) < 12 and not self.given_origin:
                self.origin = int(value)
            elif key.strip() == "Computer" and self.machine is None:
                self.machine = self.name(words(value[:200]), "Computer")
            return True
        return not text

    def unfinished(self) -> Iterable[str]:
        """The comments that say what the lines mean."""
        return self.heads.values()

    def take(self, line: Line) -> Iterable[Job]:
        """The job of one line."""
        fields = line.text.split()
        if len(fields) != len(FIELDS):
            raise Rejected("columns", f"{len(fields)} fields, not {len(FIELDS)}")
        values = [number(text, name) for text, name in zip(fields, FIELDS, strict=True)]
        ident, status = values[0], values[10]
        if ident is None:
            raise Rejected("id", f"job {escape(fields[0], 40)!r} is no number of a job")
        if status is not None and int(status) in _PARTS:
            raise Rejected("part", f"status {int(status)}: a part of job {ident}")
        if self.origin is None:
            self.origin = 0
            self.tell("SSS544", "SubmitTime", "the header names no UnixStartTime, and the option origin is not there: "
                      "times count from 1970", line.number)
        return (self.given(self._record(values, line.number)),)

    def _record(self, v: list[Decimal | None], line: int) -> Record:
        r = Record(line, str(v[0]), machine=self.machine)
        submit, wait, run, held, cpu, memory = v[1:7]
        if submit is not None:
            r.submit = moment(int((self.origin or 0) + submit), "submit")
            if wait is not None:
                r.start = moment(int((self.origin or 0) + submit + wait), "start")
                if run is not None:
                    r.end = moment(int((self.origin or 0) + submit + wait + run), "end")
        status = None if v[10] is None else int(v[10])
        r.native = "" if status is None else str(status)
        r.message = _STATUS.get(-1 if status is None else status, "")
        r.ran = bool(run) or (run is not None and status != 5)
        r.wall = None if run is None else int(run + Decimal("0.5"))
        r.processors = int(held) if held else None
        if cpu is not None and held:
            r.cpu = int(cpu * held + Decimal("0.5"))
        if memory and held:
            r.delivered.append(leaf("Memory", memory * held, {"units": "KB", "metric": "Average"}))
        r.user, r.group, r.queue = (None if n is None else str(n) for n in (v[11], v[12], v[14]))
        for n, tag, attributes in ((v[7], "Processors", {}), (v[8], "Duration", {}),
                                   (v[9], "Memory", {"units": "KB", "metric": "PerProcessor"})):
            if n:
                r.requested.append(leaf(tag, n if tag == "Memory" else int(n), attributes))
        r.more = [("swf", name, str(n)) for name, n in zip(
            ("Executable", "Partition", "PrecedingJob", "ThinkTime"), (v[13], *v[15:]), strict=True) if n is not None]
        return r


# --- writing ------------------------------------------------------------------------------------------------------

class _Writing:
    """Lines of jobs; names get numbers as they come."""

    def __init__(self, context: WriteContext) -> None:
        self.context = context
        self.origin = _origin(context.options.get("origin")) or 0
        self.names: dict[str, dict[str, int]] = {}
        self.telling = Telling(context)
        self.ids = _IDS

    def pieces(self, jobs: Iterable[Job]) -> Iterator[str]:
        """The header, a line a job, and the names behind the numbers."""
        yield f"; Version: 2.2\n; UnixStartTime: {self.origin}\n"
        for job in jobs:
            yield self.line(job)
        for kind, numbers in self.names.items():
            for name, n in numbers.items():
                yield f"; Note: {kind} {n} is {escape(name, 200)}\n"

    def line(self, job: Job) -> str:
        """One job: -1 for what is not known."""
        submit, start = (_whole(job.value(t)) for t in ("SubmitTime", "StartTime"))
        run, processors = _count(ran(job)), _count(held(job, "Processors"))
        cpu = _whole(job.value("CpuDuration"))
        average = None if cpu is None or not processors else Decimal(cpu) / processors
        wait = start - submit if start is not None and submit is not None else None
        first = None if submit is None else submit - self.origin
        if first is not None and first < 0:
            self.tell("SubmitTime", "a job was submitted before the origin; its time is left out")
            first = None
        self.lost(job)
        fields = [self.ident(job), first, wait if wait is None or wait >= 0 else None, run, processors, average,
                  self.memory(job, processors), _count(asked_in_all(job, "Processors")),
                  _count(asked_in_all(job, "Duration")), self.asked(job), _status(job),
                  self.name("user", job.value("User")), self.name("group", job.value("Group")),
                  self.name("executable", _fact(job, "Executable")), self.name("queue", job.value("Queue")),
                  self.name("partition", _fact(job, "Partition")), _fact(job, "PrecedingJob"),
                  _fact(job, "ThinkTime")]
        return " ".join("-1" if f is None else _short(f) for f in fields) + "\n"

    def ident(self, job: Job) -> int | str:
        """A job number: the Id where it is one, else the next that is free, told."""
        text = str(job.value("Id") or "")
        if text.isdigit() and text.isascii() and len(text) < 19:
            return text
        self.tell("Id", "an Id that is no number gets one")
        self.ids += 1
        return self.ids

    def name(self, kind: str, value: Value | None) -> int | str | None:
        """A number for a name, the same for the same name; a number stays."""
        text = None if value is None else str(value)
        if text is None or (text.isdigit() and text.isascii() and len(text) < 19):
            return text
        numbers = self.names.setdefault(kind, {})
        return numbers.setdefault(text, _NAMED + len(numbers))

    def memory(self, job: Job, processors: int | None) -> Decimal | None:
        """KB of one processor, of the average, else of the total."""
        sizes = job.delivered.all("Memory") if job.delivered and processors else []
        for metric in ("Average", "Total"):
            for p in sizes:
                stated = p.get("metric")
                if ("Total" if per_of(stated) else stated) == metric and (total := in_all(job, p)) is not None:
                    return _kb(as_decimal(total), p.get("units"), processors or 1)
        return None

    def asked(self, job: Job) -> Decimal | None:
        """KB of one processor that were asked for."""
        p = job.requested.first("Memory") if job.requested else None
        n = _count(asked_in_all(job, "Processors"))
        if p is None or not isinstance(p.value, Decimal) or p.get("metric") not in ("PerProcessor", "Total", None):
            return None
        return _kb(p.value, p.get("units"), 1 if p.get("metric") == "PerProcessor" else n or 1)

    def lost(self, job: Job) -> None:
        """Tell of properties that have no field."""
        for item in job.items:
            if item.tag not in _KEPT:
                self.tell(item.tag, f"no field for {item.tag}")

    def tell(self, subject: str, message: str) -> None:
        """Tell once of what is lost or made up."""
        self.telling.tell("SSS501", subject, message)


_KEPT: Final = frozenset(("Id", "User", "Group", "Queue", "State", "StatusMessage", "SubmitTime", "StartTime",
                          "EndTime", "CpuDuration", "Requested", "Delivered", "Extension", "ExitCode", "Processors",
                          "Duration"))


def _whole(value: Value | None) -> int | None:
    return value if isinstance(value, int) else None


def _count(amount: Fraction | None) -> int | None:
    return int(amount) if amount is not None and amount.denominator == 1 else None


def _fact(job: Job, name: str) -> str | None:
    return next((p.text for p in job.all("Extension") if p.get("name") == name and p.get("type") == "swf"), None)


def _kb(value: Decimal, units: str | None, n: int) -> Decimal | None:
    try:
        return to_bytes(value, units) / 1024 / n
    except LexicalError:
        return None             # an unknown unit: told when the document was read (SSS206)


def _status(job: Job) -> int | None:
    if job.value("State") != "Completed":
        return None
    message = str(job.value("StatusMessage") or "")
    if message.startswith("cancel"):
        return 5
    return 1 if job.value("ExitCode") == 0 or message == "completed" else 0


def _short(value: int | str | Decimal) -> str:
    if not isinstance(value, Decimal):
        return str(value)
    text = format(value.quantize(Decimal("0.01")), "f")
    return text.rstrip("0").rstrip(".")


def _texts(jobs: Iterable[Job], context: WriteContext) -> Iterator[str]:
    return _Writing(context).pieces(jobs)


_FIRST: Final = re.compile(r"(?:;[^\n]*\n|\s+)*+(?:-?\d+(?:\.\d+)?[ \t]+){17}-?\d", re.ASCII)

TRANSLATOR = translator("swf", "Standard Workload Format 2.2", _Reading, (".swf",), _texts,
                        lambda sample: by_beginning(sample, _FIRST, f"{len(FIELDS)} numbers a line"))
