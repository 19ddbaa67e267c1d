"""What readers of accounting records have in common: one record at a time out of a stream, never the whole.

Every input record ends as part of a Job or as rejected, with a reason of ``REASONS`` and its line; ``Counts`` adds
up: read = given + rejected. A record that is wrong concerns one job, so its finding is a warning and reading goes on.
What is not measured is absent, never zero.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Final, TypeVar

from sssjob.document.element import Property
from sssjob.document.model import Document, Job, JobGroup
from sssjob.document.outlines import OutlinedJob
from sssjob.errors import SSSJobError, UsageError
from sssjob.findings import Policy, Severity, escape
from sssjob.lrm.slurm import UNSET
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.records._counts import Counts
from sssjob.translators.records._lines import Line, lines
from sssjob.translators.records._record import Heading, Record, as_job, heading, leaf, node, node_of_hosts, prop, recall
from sssjob.translators.records._values import (
    BYTES,
    EPOCHS,
    FLOAT,
    REASONS,
    Rejected,
    amount,
    count,
    micros,
    moment,
    number,
    rounded,
    seconds,
    sixths,
    state_word,
    thousands,
    words,
)
from sssjob.translators.records._zones import chosen, epoch_of, even_day, zone_of

if TYPE_CHECKING:
    from sssjob.translators.recognise import Fit, Sample
    from sssjob.translators.records.table import Table
    from sssjob.validation.large import Large

__all__ = [
    "BYTES", "REASONS", "UNFORESEEN", "Counts", "Heading", "Line", "Parting", "Reading", "Record", "RecordTranslator",
    "Rejected", "Stream", "amount", "as_job", "count", "effective_jobs", "group", "group_id", "heading", "leaf",
    "micros", "moment", "no_reading", "no_writing", "node", "node_of_hosts", "number", "prop", "recall", "rounded",
    "seconds", "sixths", "state_word", "thousands", "translator", "unforeseen", "words",
]

# The rules that findings about records go under.
_REJECTED: Final = "SSS540"
_DISAGREE: Final = "SSS541"
_REPAIRED: Final = "SSS542"
_ORDER: Final = "SSS543"
_OPEN: Final = "SSS544"
_WITHOUT_PLACE: Final = "SSS545"

#: Seconds in which two pieces of evidence agree; and the part of the greater one.
_CLOSE: Final = (2, 0.01)
_LOCAL: Final = 100_000                 # minutes of local time whose epoch is kept
_SECONDS: Final = {f":{n:02}": n for n in range(60)}
_MINUTES: Final = {f"{hour:02}:{minute:02}": 3600 * hour + 60 * minute for hour in range(24) for minute in range(60)}



#: What a reader may stumble over in a record that nobody has thought of: it costs that record only.
UNFORESEEN: Final = (ArithmeticError, LookupError, ValueError, RecursionError)


def unforeseen(error: BaseException) -> str:
    """What to say of such an error; what is raised on purpose goes on."""
    if isinstance(error, SSSJobError):
        raise error
    return f"{type(error).__name__}: {escape(str(error))}"


_DAY: Final = re.compile(r"\d{4}-\d\d-\d\dT", re.ASCII)
_ISO: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:\.\d{1,9})?)?\s?(Z|[+-]\d\d:?\d\d)?", re.ASCII)


# --- reading ------------------------------------------------------------------------------------------------------

_Value = TypeVar("_Value")


class Reading:
    """One pass over one input: ``take`` gives the jobs that a line completes, ``rest`` those at the end.

    Options of every format: timezone, for times that name no zone; machine, where the records name none. keeps: the
    type of the Extensions that option keep makes of attributes that no property has; empty where it has none.
    """

    keeps: ClassVar[str] = ""

    def __init__(self, context: ReadContext) -> None:
        self.context = context
        self.findings = context.findings
        self.zone = zone_of(context.options.get("timezone"))
        self.machine = words(context.options.get("machine"))
        self.counts = Counts()
        self.at = 0                     # the line that findings about amounts are for
        self.outlining = False          # whether jobs may come in their outlines, as ``Stream.outlined`` gives them
        self.keeping = False            # whether the log goes on another time
        self.kept: list[str] = []       # then: what has to come again before its next part
        self.unread: Counter[str] = Counter()       # attributes that no record carries over, and in how many they are
        keep = context.options.get("keep") if self.keeps else None
        if keep not in (None, "all"):
            raise UsageError(f"option keep is all, not {escape(str(keep), 40)!r}")
        self.keep_all = keep is not None
        self._nameless = False
        self._epochs: dict[str, tuple[int, int]] = {}
        self._days: dict[str, int | None] = {}  # day, as YYYY-MM-DDT -> its first second, where its clocks go on evenly

    # -- of a format
    def skips(self, line: Line) -> bool:
        """Whether a line is no record: blank, a comment, a header."""
        return not line.text or line.text.isspace()

    def take(self, line: Line) -> Iterable[Job]:
        """The jobs that this record completes. Raises Rejected."""
        raise NotImplementedError

    def rest(self) -> Iterable[Job]:
        """The jobs that the end of the input completes."""
        return ()

    def unfinished(self) -> Iterable[str]:
        """The lines, in their order, of jobs that later lines of the log may complete; needs ``keeping``."""
        return ()

    # -- for all
    def all_jobs(self, file: BinaryIO) -> Iterator[Job]:
        """The jobs of a stream; at its end the attributes that were not carried over are reported, once."""
        yield from self.jobs(file)
        if self.unread:
            named = ", ".join(f"{name} ({n})" for name, n in sorted(self.unread.items()))
            self.findings.add("SSS501", "attributes", "attributes not carried over (in so many records): "
                              f"{escape(named, 2000)}", severity="info")
            self.unread.clear()

    def rest_of(self, r: Record, attributes: Mapping[str, Any]) -> None:
        """Keep attributes that no property has as Extensions where option keep asks for it, else count them."""
        if not self.keep_all:
            self.unread.update(attributes.keys())
            return
        texts = ((name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
                 for name, value in sorted(attributes.items()))
        r.more += [(self.keeps, name, text) for name, text in texts if text]

    def asked(self, read: Callable[[str, str], _Value | None], text: str, name: str) -> _Value | None:
        """A value that was only asked for, not delivered: an odd one is reported and left out, and its record stays."""
        try:
            return read(text, name)
        except Rejected as why:
            self.tell(_REPAIRED, name, f"{why}; it is left out", self.at)
            return None

    def jobs(self, file: BinaryIO) -> Iterator[Job]:
        """The jobs of a stream, in bounded memory."""
        try:
            yield from self.jobs_of(lines(file, self.context.limits.text))
        except Rejected as why:         # it is no text
            self.counts.read += 1
            self.reject(why.line, why.reason, str(why))

    def jobs_of(self, some: Iterable[Line]) -> Iterator[Job]:
        """The jobs of lines that hold all that is said of them; called again, it goes on with other lines."""
        counts, skips, take = self.counts, self.skips, self.take
        for line in some:
            if skips(line):
                continue
            counts.read += 1
            try:
                jobs = take(line) if line.whole and not line.note and not line.long else self._taken(line)
                if jobs.__class__ is not tuple:
                    jobs = list(jobs)
            except Rejected as why:
                reason = "torn" if not line.whole and why.reason != "no-job" else why.reason
                self.reject(why.line or line.number, reason, str(why), line.text)
            except UNFORESEEN as error:
                self.reject(line.number, "unread", unforeseen(error), line.text)
            else:
                counts.given += 1
                yield from jobs
        if self.keeping:
            self.kept = list(self.unfinished())
        yield from self.rest()

    def _taken(self, line: Line) -> Iterable[Job]:
        """As ``take``, of a line that is odd in some way."""
        if line.long:
            raise Rejected("too-long", f"longer than the limit text ({self.context.limits.text} bytes)")
        if line.note:
            self.tell(_REPAIRED, "encoding", f"{line.note}, written as \\x and their code", line.number)
        jobs = list(self.take(line))
        if not line.whole:
            self.tell(_REPAIRED, "torn", "the last line has no end and may be cut", line.number)
        return jobs

    def accepted(self, number: int, jobs: Callable[[], Iterable[Job]]) -> list[Job]:
        """The jobs of one record that is no line of text; none where it is rejected, which is counted and told."""
        self.counts.read += 1
        try:
            results = list(jobs())
        except Rejected as why:
            self.reject(number, why.reason, str(why))
        except UNFORESEEN as error:
            self.reject(number, "unread", unforeseen(error))
        else:
            self.counts.given += 1
            return results
        return []

    def given(self, record: Record) -> Job:
        """The job of a record, counted; doubtful times are reported, and once that no machine is named."""
        self.check(record)
        if record.machine is None:
            self.nameless(record.line)
        self.counts.jobs += 1
        return as_job(record)

    def nameless(self, number: int) -> None:
        """Tell, once, that no machine is named; number: of the first line of which that is so."""
        if not self._nameless:
            self._nameless = True
            self.findings.add(_OPEN, "Machine", "the records name no machine; the option machine does",
                              severity="info", line=number)

    def reject(self, number: int, reason: str, message: str, excerpt: str = "", *, taken: int = 0) -> None:
        """Count a record as rejected and tell why; taken: how many that were given before go with it."""
        n = taken or 1
        self.counts.given -= taken
        self.counts.rejected += n
        self.counts.reasons[reason] += n
        severity: Severity = "info" if reason == "no-job" else "warning"
        more = f" ({taken} records)" if taken > 1 else ""
        self.findings.add(_REJECTED, reason, f"record rejected: {reason}: {message}{more}", severity=severity,
                          line=number, excerpt=escape(excerpt, 120))

    def tell(self, rule: str, subject: str, message: str, number: int = 0) -> None:
        """A finding that rejects nothing."""
        self.findings.add(rule, subject, message, policy=self.context.policy or Policy.WARN, line=number)

    def first(self, subject: str, number: int, *evidence: tuple[str, int | None]) -> int | None:
        """The first that is there of (source, value); reported where another one disagrees with it."""
        taken: tuple[str, int] | None = None
        for source, value in evidence:
            if value is None:
                continue
            if taken is None:
                taken = source, value
            elif taken[1] != value and not _agree(taken[1], value, subject in ("Processors", "NodeCount")):
                self.tell(_DISAGREE, subject, f"{subject}: {taken[0]} says {taken[1]}, {source} says {value}; "
                          f"{taken[0]} is taken", number)
        return None if taken is None else taken[1]

    def plain_moment(self, text: str) -> int | None:
        """Epoch seconds of a time that needs no thought: seconds, or one of a day whose clocks go on evenly; None of
        any other text."""
        if len(text) == 19:
            day, minutes, seconds = self._days.get(text[:11]), _MINUTES.get(text[11:16]), _SECONDS.get(text[16:])
            if day is None and text[:11] not in self._days:
                day = self._new_day(text[:11])
            if day is not None and minutes is not None and seconds is not None:
                return day + minutes + seconds
        elif text.isdigit() and text.isascii() and len(text) <= 10 and 0 < (value := int(text)) < EPOCHS:
            return value
        return None

    def _new_day(self, day: str) -> int | None:
        """As ``even_day``, of ``YYYY-MM-DDT``; None where it has another form or no zone is named."""
        if self.zone is None or not _DAY.fullmatch(day):
            return None
        if len(self._days) > _LOCAL:
            self._days.clear()
        first = self._days[day] = even_day(day[:10], self.zone)
        return first

    def time(self, text: str, name: str, number: int, near: int | None = None) -> int | None:
        """Epoch seconds of a time as digits or as ISO 8601; None where absent. near: as of ``epoch``. Rejected: time,
        zone."""
        quick = self.plain_moment(text)
        if quick is not None:
            return quick
        if text.isdigit() and text.isascii() and len(text) <= 20:
            value = int(text)
            return None if value == 0 or value in UNSET else moment(value, name)
        if not text or text in ("Unknown", "None", "N/A", "-1"):
            return None
        match = _ISO.fullmatch(text)
        if not match:
            if FLOAT.fullmatch(text):
                return None if text.startswith("-") else moment(int(Decimal(text)), name) or None
            raise Rejected("time", f"{name} {escape(text, 40)!r} is no time")
        date, minute, second, offset = match.groups()
        if int(second or 0) > 60:
            raise Rejected("time", f"{name} {escape(text, 40)!r} is no time")
        return self.epoch(f"{date}T{minute}", name, offset, number, near) + int(second or 0)

    def epoch(self, minute: str, name: str, offset: str | None, number: int, near: int | None = None) -> int:
        """Epoch seconds of ``YYYY-MM-DDTHH:MM`` in a zone; of an hour that occurs twice the first is taken, unless the
        second one has the moment that other evidence gives. near: that moment.

        Rejected: zone; UsageError where it is the first record that needs one.
        """
        seconds_known = self._epochs.get(key := minute + (offset or ""))
        if seconds_known is None:
            zone = self.zone if offset is None else zone_of("+00:00" if offset == "Z" else offset)
            if zone is None:
                message = (f"{name} {minute} names no zone; name it with the option timezone (timezone=UTC, "
                           "timezone=Europe/Berlin), or have the times written as seconds")
                if not self.counts.given:       # all of the input will be like that
                    raise UsageError(message)
                raise Rejected("zone", message)
            if len(self._epochs) > _LOCAL:
                self._epochs.clear()
            seconds_known = self._epochs[key] = epoch_of(minute, zone, name)
        seconds, doubt = chosen(seconds_known, near)
        if doubt:
            self.tell(_OPEN, name, f"{name} {minute} {doubt}", number)
        return seconds

    def check(self, r: Record) -> None:
        """Tell of times out of order and of more CPU time than there was."""
        if r.start is not None and r.end is not None and r.end < r.start:
            self.tell(_ORDER, "EndTime", f"job {escape(r.id, 60)} ends {r.start - r.end} s before it starts", r.line)
        if r.start is not None and r.submit is not None and r.start < r.submit - _CLOSE[0]:
            self.tell(_ORDER, "StartTime", f"job {escape(r.id, 60)} starts {r.submit - r.start} s before it was "
                      "submitted", r.line)
        if r.cpu and r.wall is not None and r.processors and r.cpu > 2 * (r.wall + 60) * r.processors:
            self.tell(_DISAGREE, "CpuDuration", f"CpuDuration: {r.cpu} s are more than {r.processors} processors have "
                      f"in {r.wall} s", r.line)

    def nodes(self, text: str, number: int) -> tuple[Property | None, int | None]:
        """(Node, how many) of a host list; a malformed one is told."""
        node_property, n, wrong = recall(node, text)
        if wrong:
            self.tell(_DISAGREE, "Node", f"Node: {wrong}", number)
            return None, None
        return node_property, n

    def name(self, text: str | None, name: str) -> str | None:
        """An identifier. Rejected: too-long."""
        most = self.context.limits.identifier
        if text is not None and len(text) > most:
            raise Rejected("too-long", f"{name} is longer than the limit identifier ({most})")
        return text or None

    def free_text(self, text: str | None, name: str, number: int) -> str | None:
        """A text that users choose and no manager looks at; one that is too long is told and left out, so that nobody
        keeps a job out of the accounts by its name."""
        most = self.context.limits.identifier
        if text is not None and len(text) > most:
            self.tell(_WITHOUT_PLACE, name, f"{name} has {len(text)} characters, the limit identifier is {most}: left "
                      "out", number)
            return None
        return text or None


def _agree(first: int, other: int, exact: bool) -> bool:
    return not exact and abs(first - other) <= max(_CLOSE[0], _CLOSE[1] * max(first, other))


class Stream:
    """The jobs of one input, one by one; ``counts`` is complete when they are through."""

    def __init__(self, jobs: Iterator[Job], reading: Reading) -> None:
        self._jobs = jobs
        self._reading = reading

    @property
    def counts(self) -> Counts:
        """What has become of the records so far."""
        return self._reading.counts

    def keep(self) -> None:
        """Have ``kept`` filled: for a log that is read in parts. Before the first job is taken."""
        self._reading.keeping = True

    @property
    def kept(self) -> list[str]:
        """After the last job: the lines of jobs that have not ended in this part of the log. A caller that reads a log
        in parts puts them before the next part."""
        return self._reading.kept

    def __iter__(self) -> Iterator[Job]:
        return self._jobs

    def outlined(self) -> Iterator[Job | OutlinedJob]:
        """The jobs, those in their outlines of which no more than the values were looked at."""
        self._reading.outlining = True
        return self._jobs


# --- translators --------------------------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class Parting:
    """How a log can be parted between readers. job: a pattern whose first group names the job of a line, where lines of
    one job stand apart; without it each line is a job of its own. header: of a log whose first line names columns,
    gives what tells of a line whose job it is, where those of one job follow each other, or None where the log cannot
    be parted; again: where such a line comes once more, it cannot. apart: of the first line, gives in how many bytes
    behind a line others may belong to it, 0 behind a whole one."""

    job: re.Pattern[bytes] | None = None
    header: Callable[[bytes, Mapping[str, str]], Callable[[bytes], bytes] | None] | None = None
    again: re.Pattern[bytes] | None = None
    apart: Callable[[bytes], Callable[[bytes], int]] | None = None


@dataclass(frozen=True, slots=True)
class RecordTranslator(Translator):
    """A format of records. stream(file, context) reads job by job; texts(jobs, context) writes so, blobs(jobs, context)
    what is no text; sums(file, context) reads what is no job, for a table of the columns totals; rows(records, context,
    table) writes those; None: cannot. header: the line that begins a message, where the text is of messages."""

    stream: Callable[[BinaryIO, ReadContext], Stream] | None = None
    texts: Callable[[Iterable[Job], WriteContext], Iterator[str]] | None = None
    blobs: Callable[[Iterable[Job], WriteContext], Iterator[bytes]] | None = None
    sums: Callable[[BinaryIO, ReadContext], Stream] | None = None
    totals: Table | None = None
    rows: Callable[[Iterable[Any], WriteContext, Table], Iterator[str] | Iterator[bytes]] | None = None
    parting: Parting | None = None
    header: re.Pattern[bytes] | None = None


def no_reading(data: bytes, context: ReadContext) -> Document:
    """For a format that is only written."""
    raise UsageError("this format can be written, not read")


def no_writing(document: Document, context: WriteContext) -> str:
    """For a format that is only read."""
    raise UsageError("this format can be read, not written")


def translator(
    name: str, title: str, reading: type[Reading], suffixes: tuple[str, ...] = (),
    texts: Callable[[Iterable[Job], WriteContext], Iterator[str]] | None = None,
    recognise: Callable[[Sample], Fit | None] | None = None, parting: Parting | None = None,
) -> RecordTranslator:
    """The translator of a format that is read by ``reading``."""

    def stream(file: BinaryIO, context: ReadContext) -> Stream:
        """The jobs of a log, one after another."""
        reader = reading(context)
        return Stream(reader.all_jobs(file), reader)

    def read(data: bytes, context: ReadContext) -> Document:
        """The whole log as a JobGroup."""
        from io import BytesIO

        return group(stream(BytesIO(data), context), context)

    def write(document: Document, context: WriteContext) -> str:
        """The records of all jobs as one text."""
        assert texts is not None
        return "".join(texts(effective_jobs(document), context))

    return RecordTranslator(name, title, "record", read, no_writing if texts is None else write, suffixes, recognise,
                            stream=stream, texts=texts, parting=parting)


def effective_jobs(document: Document | Large) -> Iterator[Job]:
    """The jobs of a document of any size with what they inherit from JobDefaults."""
    from sssjob.document.inherit import effective

    for job, defaults in document.jobs():
        yield job if defaults is None else effective(job, defaults).fold()


def group(jobs: Stream, context: ReadContext) -> Document:
    """All jobs as the JobGroup of a document, named after the source."""
    all_jobs = list(jobs)
    head = [prop("Id", group_id(context.path))]
    if all_jobs and all(job.state == "Completed" for job in all_jobs):
        head.append(prop("State", "Completed"))
    return Document(JobGroup(chain(head, all_jobs)), path=context.path, findings=context.findings)


def group_id(path: str) -> str:
    """The Id of a group of records: the name of its source, without folders."""
    return escape(PurePosixPath(path).name, 200) or "-"

