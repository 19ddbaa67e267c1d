"""What readers of accounting records have in common: one record at a time out of a stream, never the whole.

Every input record ends as part of a Job or as rejected, with a reason of ``REASONS`` and its line; ``Counts`` adds
up: read = given + rejected. A record that is wrong concerns one job, so its finding is a warning and reading goes on.
What is not measured is absent, never zero.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, TypeVar
from zoneinfo import ZoneInfo

from sssjob.accessors import CLASSES
from sssjob.element import NO_ATTRIBUTES, Item, Property, Value
from sssjob.errors import SSSJobError, UsageError
from sssjob.findings import Policy, Severity, escape
from sssjob.lexical import LexicalError
from sssjob.model import Delivered, Document, Job, JobGroup, Requested, TaskGroup
from sssjob.nodeset import NodeSet
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.records._lines import Line, lines

if TYPE_CHECKING:
    from sssjob.translators.recognise import Fit, Sample

__all__ = [
    "BYTES", "REASONS", "UNFORESEEN", "Counts", "Reading", "Record", "RecordTranslator", "Rejected", "Stream",
    "amount", "as_job", "count", "effective_jobs", "group", "group_id", "leaf", "micros", "moment", "no_reading",
    "no_writing", "node", "number", "prop", "recall", "rounded", "thousands", "translator", "unforeseen", "words",
]

#: Why a record is rejected.
REASONS: Final[dict[str, str]] = {
    "columns": "another number of columns than it should have",
    "header": "no header names the columns",
    "id": "no identifier",
    "json": "not the JSON that it should be",
    "no-job": "a record of something that is no job",
    "number": "a number that is none",
    "part": "told already by another record of its job",
    "orphan": "part of a job whose own record is not here",
    "summary": "a sum over many jobs, no job",
    "time": "a time that is none",
    "too-long": "longer than a limit",
    "torn": "the input ends inside it",
    "type": "a kind of record that is not known",
    "unread": "no reader has foreseen it; worth a report",
    "xml": "not the XML that it should be",
    "zone": "a time without zone, and no zone was named",
}
# The rules that findings about records go under.
_REJECTED: Final = "SSS540"
_DISAGREE: Final = "SSS541"
_REPAIRED: Final = "SSS542"
_ORDER: Final = "SSS543"
_OPEN: Final = "SSS544"

#: What a counter holds that was never set (Slurm's NO_VAL and INFINITE, -1 without sign).
_UNSET: Final = frozenset({2**32 - 2, 2**32 - 1, 2**64 - 2, 2**64 - 1})
_LATEST: Final = 253_402_300_800        # the year 10000
#: Seconds in which two pieces of evidence agree; and the part of the greater one.
_CLOSE: Final = (2, 0.01)
_MINUTES: Final = 100_000               # minutes of local time whose epoch is kept
_EXPANDED: Final = 10_000               # names of a node list that are written out


#: What a reader may stumble over in a record that nobody has thought of: it costs that record only.
UNFORESEEN: Final = (ArithmeticError, LookupError, ValueError, RecursionError)


def unforeseen(error: BaseException) -> str:
    """What to say of such an error; what is raised on purpose goes on."""
    if isinstance(error, SSSJobError):
        raise error
    return f"{type(error).__name__}: {escape(str(error))}"


class Rejected(Exception):
    """This record cannot be taken. reason: one of REASONS; line: where the record begins, 0 for the line at hand."""

    def __init__(self, reason: str, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.reason, self.line = reason, line


@dataclass(slots=True)
class Counts:
    """Records read, given (part of a Job), rejected; Jobs made of those given; rejected records by reason."""

    read: int = 0
    given: int = 0
    rejected: int = 0
    jobs: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def record(self) -> dict[str, int | dict[str, int]]:
        """The counts as a JSON object."""
        return {"read": self.read, "given": self.given, "rejected": self.rejected, "jobs": self.jobs,
                "reasons": dict(sorted(self.reasons.items()))}

    def __str__(self) -> str:
        why = ", ".join(f"{reason} {n}" for reason, n in sorted(self.reasons.items()))
        return (f"{self.read} records read: {self.given} given as {self.jobs} jobs, {self.rejected} rejected"
                + (f" ({why})" if why else ""))


# --- values -------------------------------------------------------------------------------------------------------

_CLOCK: Final = re.compile(r"(?:(\d{1,9})-)?(?:(?:(\d{1,12}):)?(\d{1,12}):)?(\d{1,18})(?:\.(\d{1,12}))?", re.ASCII)
_AMOUNT: Final = re.compile(r"(\d{1,24}(?:\.\d{0,12})?)\s*([A-Za-z]{0,3})", re.ASCII)
_FLOAT: Final = re.compile(r"-?\d{1,18}(?:\.\d{0,18})?(?:[eE][+-]?\d{1,2})?", re.ASCII)


def count(text: str, name: str) -> int | None:
    """A whole number; None where it is empty, negative or was never set. Rejected: number."""
    if text.isdigit() and text.isascii() and len(text) <= 20:
        value = int(text)
        return None if value in _UNSET else value
    if not text or (text[0] == "-" and text[1:].isdigit() and text.isascii()):
        return None
    raise Rejected("number", f"{name} {escape(text, 40)!r} is no whole number")


def number(text: str, name: str) -> Decimal | None:
    """A number with a fraction; None where it is empty or negative. Rejected: number."""
    if not text:
        return None
    if not _FLOAT.fullmatch(text):
        raise Rejected("number", f"{name} {escape(text, 40)!r} is no number")
    value = Decimal(text.rstrip("0").rstrip(".") if "." in text and "e" not in text.lower() else text)
    return None if value < 0 else value


def micros(text: str, name: str) -> int | None:
    """Microseconds of ``[[D-]HH:]MM:SS[.mmm]`` or of plain seconds; None where empty or negative. Rejected: number."""
    if not text:
        return None
    found = _CLOCK.fullmatch(text)
    if not found:
        if text[0] == "-" and _FLOAT.fullmatch(text):
            return None
        raise Rejected("number", f"{name} {escape(text, 40)!r} is no duration")
    days, hours, minutes, seconds, part = found.groups()
    whole = int(days or 0) * 86_400 + int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds)
    return whole * 1_000_000 + (int((part + "00000")[:6]) if part else 0)


def rounded(us: int | None) -> int | None:
    """Whole seconds of microseconds, half up."""
    return None if us is None else (us + 500_000) // 1_000_000


#: Letter -> unit of bytes, 1024 based.
BYTES: Final = {"": "B", "B": "B", "K": "KB", "M": "MB", "G": "GB", "T": "TB", "P": "PB", "E": "EB"}
_STEPS: Final = tuple(dict.fromkeys(BYTES.values()))


def amount(text: str, name: str, default: str = "B") -> tuple[Decimal, str] | None:
    """(amount, unit) of ``144000M``, ``10gb`` or ``3.5G``; default: the unit of a bare number. Rejected: number."""
    if not text or text.startswith("-"):
        return None
    found = _AMOUNT.fullmatch(text)
    if found:
        letter = found[2].upper().removesuffix("IB").removesuffix("B")
        if found[2].lower() == "b":
            letter = "B"
        if letter in BYTES:
            return Decimal(found[1]), BYTES[letter] if found[2] else default
        if len(letter) <= 2 and letter.endswith("W"):       # PBS: words of eight bytes
            return Decimal(found[1]) * 8, BYTES.get(letter[:-1], "B")
    raise Rejected("number", f"{name} {escape(text, 40)!r} is no amount of memory")


def thousands(text: str, name: str) -> Decimal | None:
    """A count, maybe with K, M, G, which are 1000 based where no memory is counted. Rejected: number."""
    size = amount(text, name)
    if size is None or size[0] >= 2**63:
        return None
    return size[0] * Decimal(1000) ** _STEPS.index(size[1])


def words(text: str | None, *absent: str) -> str | None:
    """The text, None where it is empty or one of the words that say so."""
    text = (text or "").strip()
    return None if not text or text in absent else text


_ISO: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::(\d\d)(?:\.\d{1,9})?)?\s?(Z|[+-]\d\d:?\d\d)?", re.ASCII)


def _zone(name: str | None) -> tzinfo | None:
    """The zone of that name (``UTC``, ``Europe/Berlin``, ``+02:00``); UsageError for one that is not known."""
    if name is None:
        return None
    try:
        if re.fullmatch(r"[+-]\d\d:?\d\d", name, re.ASCII):
            return timezone(timedelta(hours=int(name[:3]), minutes=int(name[0] + name[-2:])))
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ValueError, LookupError, OSError):
        raise UsageError(f"no time zone {escape(name, 60)!r} (known: UTC, +02:00, Europe/Berlin ...)") from None


def moment(value: int, name: str) -> int:
    """Epoch seconds; those in milliseconds are recognised. Rejected: time."""
    if value > 100_000_000_000:
        value //= 1000
    if not 0 <= value < _LATEST:
        raise Rejected("time", f"{name} {value} is no time")
    return value


# --- properties ---------------------------------------------------------------------------------------------------

_T_co = TypeVar("_T_co", covariant=True)
_LONG: Final = 4096         # characters of a text that is not remembered
_class: Final = CLASSES.get


def leaf(tag: str, value: Value, attributes: dict[str, str] = NO_ATTRIBUTES) -> Property:
    """A property of the class that belongs to the name."""
    return _class(tag, Property)(tag, value, attributes)


@lru_cache(maxsize=1 << 13, typed=True)
def prop(tag: str, value: Value) -> Property:
    """A property without attributes; equal ones are one object."""
    return leaf(tag, value)


class _Remembered(Protocol[_T_co]):
    """What lru_cache makes of a function."""

    def __call__(self, text: str, *more: str) -> _T_co: ...
    @property
    def __wrapped__(self) -> Callable[..., _T_co]: ...


def recall(function: _Remembered[_T_co], text: str, *more: str) -> _T_co:
    """What a remembering function gives for a text; long texts are not remembered."""
    return function(text, *more) if len(text) < _LONG else function.__wrapped__(text, *more)


@lru_cache(maxsize=1 << 12)
def _extension(kind: str, name: str) -> dict[str, str]:
    return {"name": name, "type": kind}


@lru_cache(maxsize=1 << 14)
def node(text: str) -> tuple[Property | None, int, str]:
    """(Node, number of names, what is wrong) of a host list ``a[01-03,7],b2``."""
    try:
        names = NodeSet.parse_range(text)
    except LexicalError as error:
        return None, 0, str(error)
    if "[" not in text and "," not in text:
        return leaf("Node", text), 1, ""
    folded = text.count("[") == 1 and text.endswith("]") and "," not in text[: text.index("[")]
    if not folded and names.count <= _EXPANDED:
        return leaf("Node", ",".join(names), {"aggregation": "List"}), names.count, ""
    return leaf("Node", text, {"aggregation": "Range"}), names.count, ""


# --- a record -----------------------------------------------------------------------------------------------------

@dataclass(slots=True)
class Record:
    """The typed facts of one job: times in epoch seconds, durations in seconds, absent is None.

    begin: the start asked for; native: the state in the manager's word; message: why it ended, for StatusMessage;
    ran: whether it used the machine; requested and delivered: the amounts but Processors, NodeCount, Node, Duration
    of the delivered ones; limits: ResourceLimits; more: Extensions as (type, name, text); others: properties of the job
    that have no field here; parts: components.
    """

    line: int
    id: str
    name: str | None = None
    user: str | None = None
    group: str | None = None
    project: str | None = None
    machine: str | None = None
    queue: str | None = None
    qos: str | None = None
    reservation: str | None = None
    submit_host: str | None = None
    directory: str | None = None
    submit: int | None = None
    begin: int | None = None
    eligible: int | None = None
    start: int | None = None
    end: int | None = None
    state: str = "Completed"
    hold: str | None = None
    native: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    exit_status: str = ""
    starts: int | None = None
    suspended: int | None = None
    cpu: int | None = None
    wall: int | None = None
    ran: bool = True
    processors: int | None = None
    nodes: int | None = None
    node: Property | None = None
    array: tuple[str, str] | None = None
    requested: list[Property] = field(default_factory=list)
    delivered: list[Property] = field(default_factory=list)
    limits: list[Property] = field(default_factory=list)
    more: list[tuple[str, str, str]] = field(default_factory=list)
    others: list[Property] = field(default_factory=list)
    parts: list[Record] = field(default_factory=list)


#: Attribute of Record -> property of the job, in the order of writing.
_HEAD: Final = (
    ("name", "Name"), ("user", "User"), ("group", "Group"), ("project", "Project"), ("machine", "Machine"),
    ("queue", "Queue"), ("qos", "QualityOfService"), ("reservation", "Reservation"), ("submit_host", "SubmitHost"),
    ("directory", "InitialWorkingDirectory"),
)
_LIFE: Final = (
    ("submit", "SubmitTime"), ("begin", "EligibleTime"), ("start", "StartTime"), ("end", "EndTime"),
    ("starts", "StartCount"), ("exit_code", "ExitCode"), ("suspended", "SuspendDuration"), ("cpu", "CpuDuration"),
)
_HEAD_TAGS, _LIFE_TAGS = (tuple(tag for _, tag in pairs) for pairs in (_HEAD, _LIFE))
_head, _life = (attrgetter(*(name for name, _ in pairs)) for pairs in (_HEAD, _LIFE))


def as_job(r: Record) -> Job:
    """The job object of a record. Never ran: no start, no exit code, nothing delivered."""
    items: list[Item] = [leaf("Id", r.id)]
    for tag, text in zip(_HEAD_TAGS, _head(r), strict=True):
        if text is not None:
            items.append(prop(tag, text) if len(text) < _LONG else leaf(tag, text))
    items += r.others
    items.append(prop("State", r.state))
    if r.hold:
        items.append(prop("Hold", r.hold))
    if r.message:
        items.append(leaf("StatusMessage", r.message))
    if not r.ran:
        r.start = r.exit_code = r.signal = r.cpu = r.suspended = None
    for tag, value in zip(_LIFE_TAGS, _life(r), strict=True):
        if value is not None:
            items.append(leaf(tag, value))
    for kind, name, text in _extensions(r):
        items.append(leaf("Extension", text, _extension(kind, name)))
    items += r.limits
    items += _slots(r)
    for part in r.parts:
        items.append(TaskGroup([prop("Id", part.id), *_slots(part)], line=part.line))
    return Job(items, line=r.line)


def _extensions(r: Record) -> Iterator[tuple[str, str, str]]:
    if r.native:
        yield "LRM", "State", r.native
    if r.signal is not None:
        yield "LRM", "ExitSignal", str(r.signal)
    if r.exit_status:
        yield "LRM", "ExitStatus", r.exit_status
    if r.eligible is not None:
        yield "LRM", "EligibleStamp", str(r.eligible)
    if r.array:
        yield "LRM", "ArrayId", r.array[0]
        yield "LRM", "ArrayIndex", r.array[1]
    yield from r.more


def _slots(r: Record) -> Iterator[Item]:
    if r.requested:
        yield Requested(r.requested)
    if not r.ran:
        return
    found: list[Item] = [prop(tag, value) for tag, value in (
        ("Processors", r.processors), ("NodeCount", r.nodes), ("Duration", r.wall)) if value is not None]
    if r.node is not None:
        found.append(r.node)
    found += r.delivered
    if found:
        yield Delivered(found)


# --- reading ------------------------------------------------------------------------------------------------------

class Reading:
    """One pass over one input: ``take`` gives the jobs that a line completes, ``rest`` those at the end.

    Options of every format: timezone, for times that name no zone; machine, where the records name none.
    """

    def __init__(self, context: ReadContext) -> None:
        self.context = context
        self.findings = context.findings
        self.zone = _zone(context.options.get("timezone"))
        self.machine = words(context.options.get("machine"))
        self.counts = Counts()
        self.keeping = False            # whether the log goes on another time
        self.kept: list[str] = []       # then: what has to come again before its next part
        self._nameless = False
        self._epochs: dict[str, tuple[int, bool]] = {}

    # -- of a format
    def skips(self, line: Line) -> bool:
        """Whether a line is no record: blank, a comment, a header."""
        return not line.text.strip()

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
    def jobs(self, file: BinaryIO) -> Iterator[Job]:
        """The jobs of a stream, in bounded memory."""
        for line in lines(file, self.context.limits.text):
            if self.skips(line):
                continue
            self.counts.read += 1
            try:
                made = self._taken(line)
            except Rejected as why:
                reason = "torn" if not line.whole and why.reason != "no-job" else why.reason
                self.reject(why.line or line.number, reason, str(why), line.text)
            except UNFORESEEN as error:
                self.reject(line.number, "unread", unforeseen(error), line.text)
            else:
                yield from made
        if self.keeping:
            self.kept = list(self.unfinished())
        yield from self.rest()

    def _taken(self, line: Line) -> list[Job]:
        if line.long:
            raise Rejected("too-long", f"longer than the limit text ({self.context.limits.text} bytes)")
        if line.note:
            self.tell(_REPAIRED, "encoding", f"{line.note}, written as \\x and their code", line.number)
        made = list(self.take(line))
        self.counts.given += 1
        if not line.whole:
            self.tell(_REPAIRED, "torn", "the last line has no end and may be cut", line.number)
        return made

    def given(self, record: Record) -> Job:
        """The job of a record, counted; doubtful times are told, and once that no machine is named."""
        self.check(record)
        if record.machine is None and not self._nameless:
            self._nameless = True
            self.findings.add(_OPEN, "Machine", "the records name no machine; the option machine does",
                              severity="info", line=record.line)
        self.counts.jobs += 1
        return as_job(record)

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
        """The first that is there of (source, value); told where another one disagrees with it."""
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

    def time(self, text: str, name: str, number: int) -> int | None:
        """Epoch seconds of a time as digits or as ISO 8601; None where absent. Rejected: time, zone."""
        if text.isdigit() and text.isascii() and len(text) <= 20:
            value = int(text)
            return None if value == 0 or value in _UNSET else moment(value, name)
        if not text or text in ("Unknown", "None", "N/A", "-1"):
            return None
        found = _ISO.fullmatch(text)
        if not found:
            if _FLOAT.fullmatch(text):
                return None if text.startswith("-") else moment(int(Decimal(text)), name) or None
            raise Rejected("time", f"{name} {escape(text, 40)!r} is no time")
        day, minute, second, offset = found.groups()
        if int(second or 0) > 60:
            raise Rejected("time", f"{name} {escape(text, 40)!r} is no time")
        return self.epoch(f"{day}T{minute}", name, offset, number) + int(second or 0)

    def epoch(self, minute: str, name: str, offset: str | None, number: int) -> int:
        """Epoch seconds of ``YYYY-MM-DDTHH:MM`` in a zone; of an hour that occurs twice the first is taken.

        Rejected: zone; UsageError where it is the first record that needs one.
        """
        key = minute + (offset or "")
        known = self._epochs.get(key)
        if known is None:
            zone = self.zone if offset is None else _zone("+00:00" if offset == "Z" else offset)
            if zone is None:
                message = (f"{name} {minute} names no zone; name it with the option timezone (timezone=UTC, "
                           "timezone=Europe/Berlin), or have the times written as seconds")
                if not self.counts.given:       # all of the input will be like that
                    raise UsageError(message)
                raise Rejected("zone", message)
            if len(self._epochs) > _MINUTES:
                self._epochs.clear()
            known = self._epochs[key] = _epoch(minute, zone, name)
        if known[1]:
            self.tell(_OPEN, name, f"{name} {minute} occurs twice in its zone (end of summer time); the first one "
                      "is taken", number)
        return known[0]

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
        made, n, wrong = recall(node, text)
        if wrong:
            self.tell(_DISAGREE, "Node", f"Node: {wrong}", number)
            return None, None
        return made, n

    def name(self, text: str | None, name: str) -> str | None:
        """An identifier. Rejected: too-long."""
        if text is not None and len(text) > self.context.limits.identifier:
            raise Rejected("too-long", f"{name} is longer than the limit identifier "
                           f"({self.context.limits.identifier})")
        return text or None


def _agree(one: int, other: int, exact: bool) -> bool:
    return not exact and abs(one - other) <= max(_CLOSE[0], _CLOSE[1] * max(one, other))


def _epoch(minute: str, zone: tzinfo, name: str) -> tuple[int, bool]:
    """(epoch seconds, whether this minute occurs twice)."""
    try:
        local = datetime.fromisoformat(minute).replace(tzinfo=zone)
        seconds = int(local.timestamp())
        later = int(local.replace(fold=1).timestamp())
    except (ValueError, OverflowError):
        raise Rejected("time", f"{name} {minute} is no time") from None
    if not 0 <= seconds < _LATEST:
        raise Rejected("time", f"{name} {minute} is no time")
    return seconds, later > seconds


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
        """After the last job: the lines that have to come again before the next part of the log."""
        return self._reading.kept

    def __iter__(self) -> Iterator[Job]:
        return self._jobs


# --- translators --------------------------------------------------------------------------------------------------

@dataclass(frozen=True, slots=True)
class RecordTranslator(Translator):
    """A format of records. stream(file, context) reads job by job; texts(jobs, context) writes so, blobs(jobs, context)
    what is no text; None: cannot."""

    stream: Callable[[BinaryIO, ReadContext], Stream] | None = None
    texts: Callable[[Iterable[Job], WriteContext], Iterator[str]] | None = None
    blobs: Callable[[Iterable[Job], WriteContext], Iterator[bytes]] | None = None


def no_reading(data: bytes, context: ReadContext) -> Document:
    """For a format that is only written."""
    raise UsageError("this format can be written, not read")


def no_writing(document: Document, context: WriteContext) -> str:
    """For a format that is only read."""
    raise UsageError("this format can be read, not written")


def translator(
    name: str, title: str, reading: type[Reading], suffixes: tuple[str, ...] = (),
    texts: Callable[[Iterable[Job], WriteContext], Iterator[str]] | None = None,
    recognise: Callable[[Sample], Fit | None] | None = None,
) -> RecordTranslator:
    """The translator of a format that is read by ``reading``."""

    def stream(file: BinaryIO, context: ReadContext) -> Stream:
        made = reading(context)
        return Stream(made.jobs(file), made)

    def read(data: bytes, context: ReadContext) -> Document:
        from io import BytesIO

        return group(stream(BytesIO(data), context), context)

    def write(document: Document, context: WriteContext) -> str:
        assert texts is not None
        return "".join(texts(effective_jobs(document), context))

    return RecordTranslator(name, title, "record", read, no_writing if texts is None else write, suffixes, recognise,
                            stream=stream, texts=texts)


def effective_jobs(document: Document) -> Iterator[Job]:
    """The jobs of a document with what they inherit from JobDefaults."""
    from sssjob.inherit import effective

    for job, defaults in document.jobs():
        yield job if defaults is None else effective(job, defaults).fold()


def group(jobs: Stream, context: ReadContext) -> Document:
    """All jobs as the JobGroup of a document, named after the source."""
    found = list(jobs)
    head = [prop("Id", group_id(context.path))]
    if found and all(job.state == "Completed" for job in found):
        head.append(prop("State", "Completed"))
    return Document(JobGroup(chain(head, found)), path=context.path, findings=context.findings)


def group_id(path: str) -> str:
    """The Id of a group of records: the name of its source, without folders."""
    return escape(PurePosixPath(path).name, 200) or "-"

