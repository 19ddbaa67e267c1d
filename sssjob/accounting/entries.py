"""The entries of a ledger, and the values that are derived from them: accounts, statements, the outcome of a job, and
the rows of a store."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property, lru_cache, partial
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

from sssjob.accounting.arithmetic import plain
from sssjob.accounting.dimensions import all_delivered
from sssjob.accounting.times import shown
from sssjob.document.element import Property, text_of
from sssjob.document.held import delivered, seconds
from sssjob.document.model import Job, TaskGroup
from sssjob.document.outlines import Outline, OutlinedJob
from sssjob.errors import SSSJobError
from sssjob.findings import Policy, escape
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document

__all__ = [
    "ABOUT_RUNS", "COLUMNS", "EXACT", "KINDS", "NAMES", "NEVER", "NUMBERS", "Account", "By", "Encoded", "Entry", "Kind",
    "LedgerError", "Posted", "Said", "Statement", "Usage", "account_of", "at_start", "bounded", "content_of",
    "document_of", "encoded", "end_of", "entry_of", "job_of", "key_of", "named", "positive", "sealed", "stated",
]

Kind = Literal["account", "deposit", "withdrawal", "expiry", "credit", "quote", "hold", "release", "charge", "reversal",
               "refund", "adjustment", "closing"]
#: Which time of an entry counts: when it was posted, or when the run that it is about started or ended.
By = Literal["posted", "start", "end"]
#: Kind of an entry -> what its amount does to (balance, holds).
KINDS: Final[dict[str, tuple[int, int]]] = {
    "account": (0, 0), "deposit": (1, 0), "withdrawal": (-1, 0), "expiry": (-1, 0), "credit": (0, 0), "quote": (0, 0),
    "hold": (0, 1), "release": (0, -1), "charge": (-1, 0), "reversal": (1, 0), "refund": (1, 0), "adjustment": (1, 0),
    "closing": (0, 0),
}
#: Kinds of entries about a run of a job.
ABOUT_RUNS: Final = ("charge", "reversal", "refund")
#: Never started, or the record does not say when: no time is.
NEVER: Final = -1
EXACT: Final = Context(prec=200)
_MOST: Final = Decimal(10) ** 60
#: Numbers of entries, and times, are below.
NUMBERS: Final = 2 ** 63
_NOTHING_MORE: Final[Mapping[str, Any]] = {}
_NAMING: Final = frozenset(("Extension", "TaskGroup"))       # what may say a native id
_TOKEN: Final = re.compile(r"\S.{0,199}")


#: Canonical JSON: what entries are hashed by.
encoded: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class LedgerError(SSSJobError):
    """What was asked cannot be posted; nothing was."""


class Encoded(Mapping[str, Any]):
    """A JSON object as its canonical text, which is read when somebody asks for what is in it."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _items(self) -> dict[str, Any]:
        items: dict[str, Any] = json.loads(self.text)
        return items

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class Entry(NamedTuple):
    """One entry. amount: 0 or more, of an adjustment and an expiry either sign; machine, job, start, user_name: of the
    job that it is about ("" and -1: none); refers: number of the entry that it answers, 0: none; token: names the
    request, so that it is done once."""

    number: int
    time: int
    kind: str
    account: str
    currency: str
    amount: Decimal
    machine: str = ""
    job: str = ""
    start: int = NEVER
    refers: int = 0
    token: str | None = None
    user_name: str = ""
    document: Mapping[str, Any] = _NOTHING_MORE
    hash: str = ""

    @property
    def change(self) -> Decimal:
        """What it does to the balance."""
        return self.amount * KINDS[self.kind][0]

    def moment(self, by: By) -> int:
        """Its time in epoch seconds: when it was posted, or the start or end of the run that it is about. Entries that
        are about no run, or of one whose times nobody said, belong to when they were posted; what was posted about the
        end of a run whose month was closed belongs to the moment from which the books were open."""
        if by == "posted" or self.kind not in ABOUT_RUNS:
            return self.time
        if by == "start":
            return self.time if self.start == NEVER else self.start
        booked = self.document.get("booked")
        return booked if isinstance(booked, int) else self.ended

    @property
    def ended(self) -> int:
        """When the run that it is about ended, in epoch seconds, even if the books of that time are closed; when it was
        posted, where it is about no run or nobody said when that ended."""
        end = self.document.get("end") if self.kind in ABOUT_RUNS else None
        return end if isinstance(end, int) else self.time

    def uses(self) -> tuple[tuple[int, Decimal], ...]:
        """(epoch seconds, amount; below 0: given back) of what it uses of deposits with a term."""
        return ((self.ended, -self.change),) if self.kind in ABOUT_RUNS or self.kind == "withdrawal" else ()

    def digest(self, previous: str) -> str:
        """SHA-256 of the entry behind the one with that digest."""
        return _digest(attrgetter(*NAMES[:12])(self), previous, _text_of(self.document))

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        record = {"number": self.number, "time": self.time, "kind": self.kind, "account": self.account,
                  "currency": self.currency, "amount": plain(self.amount), "machine": self.machine or None,
                  "job": self.job or None, "start": None if self.start == NEVER else self.start,
                  "refers": self.refers or None, "token": self.token, "user": self.user_name or None,
                  "document": {k: dict(v) if isinstance(v, Encoded) else v for k, v in self.document.items()},
                  "hash": self.hash}
        return {k: v for k, v in record.items() if v is not None}


#: An entry of its members: as the class makes it, in a third of the time.
_entry: Final[Callable[[tuple[Any, ...]], Entry]] = partial(tuple.__new__, Entry)


@dataclass(slots=True)
class Account:
    """An account as it stands."""

    account: str
    currency: str
    balance: Decimal = Decimal(0)
    held: Decimal = Decimal(0)
    credit: Decimal = Decimal(0)

    @property
    def available(self) -> Decimal:
        """What can still be held."""
        return self.balance - self.held + self.credit

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"account": self.account, "currency": self.currency, "balance": plain(self.balance),
                "held": plain(self.held), "credit": plain(self.credit), "available": plain(self.available)}

    def take(self, entry: Entry) -> None:
        """Take over what an entry does."""
        of_balance, of_held = KINDS[entry.kind]
        if of_balance:
            self.balance = (EXACT.add if of_balance > 0 else EXACT.subtract)(self.balance, entry.amount)
        if of_held:
            self.held = (EXACT.add if of_held > 0 else EXACT.subtract)(self.held, entry.amount)
        if entry.kind == "credit":
            self.credit = entry.amount


@dataclass(frozen=True, slots=True)
class Statement:
    """An account over a time: entries that change the balance, between an opening and a closing one, in the order of
    the time that counts (by)."""

    account: str
    currency: str
    since: int | None
    until: int | None
    opening: Decimal
    entries: tuple[Entry, ...]
    closing: Decimal
    by: By = "posted"

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"account": self.account, "currency": self.currency, "since": self.since, "until": self.until,
                "by": self.by, "opening": plain(self.opening), "entries": [e.record() for e in self.entries],
                "closing": plain(self.closing)}


@dataclass(slots=True)
class Usage:
    """What an account was given, what its jobs cost over a time less what was given back of it, and what the accounts
    below it have used beyond what they had (``below``)."""

    account: str
    currency: str
    given: Decimal = Decimal(0)
    used: Decimal = Decimal(0)
    below: Decimal = Decimal(0)

    @property
    def percent(self) -> Decimal | None:
        """How much of what was given is used, to a tenth of a per cent; None where nothing was given."""
        with localcontext(EXACT):
            return (100 * (self.used + self.below) / self.given).quantize(Decimal("0.1")) if self.given > 0 else None

    def reached(self, percent: Decimal) -> bool:
        """Whether so much of what was given is used; anything is too much of nothing."""
        with localcontext(EXACT):
            used = self.used + self.below
            return used > 0 if self.given <= 0 else 100 * used >= percent * self.given

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        percent = self.percent
        return {"account": self.account, "currency": self.currency, "given": plain(self.given),
                "used": plain(self.used), "below": plain(self.below),
                "percent": None if percent is None else plain(percent)}

    def take(self, entry: Entry, within: bool) -> None:
        """Take over what an entry does. within: whether it lies in the time of what is used."""
        if entry.kind in ABOUT_RUNS:
            self.used -= entry.change if within else 0
        else:
            self.given += entry.change


class Posted(NamedTuple):
    """What became of a job. outcome: charged, superseded (another charge before it was reversed), unchanged (charged
    already), other-rates (charged by other rates, and left so), contradicts (another charge says something else of the
    run, and was left; see detail) or not (see reason; entry: the charge of before, where that stays). detail: of a job
    that was charged, why it should not have used its account, if it should not; unsaid: as of its Charge."""

    outcome: Literal["charged", "superseded", "unchanged", "other-rates", "contradicts", "not"]
    entry: Entry | None = None
    reason: str = ""
    detail: str = ""
    account: Account | None = None
    unsaid: tuple[str, ...] = ()


def key_of(job: Job) -> tuple[str, str, int]:
    """(Machine, native id or Id, StartTime) of a job: what it is charged under (decisions 18, 61).

    Raises LedgerError where the Machine or both ids are missing, or the StartTime is no time.
    """
    return Said(job).key


class Said:
    """What a job says of itself, looked up once: what was delivered, else what stands bare (decisions 4, 5). subject:
    the job, in its outline where it has one."""

    __slots__ = ("_by_name", "_outlined", "subject")

    def __init__(self, subject: Job | OutlinedJob) -> None:
        self.subject = subject
        self._outlined = None if isinstance(subject, Job) else subject
        self._by_name = all_delivered(subject) if isinstance(subject, Job) else {}

    @property
    def job(self) -> Job:
        """The job itself."""
        return self.subject if isinstance(self.subject, Job) else self.subject.job

    def text(self, tag: str) -> str:
        """The text of a property, empty where there is none."""
        if self._outlined is None:
            property_ = self._by_name.get(tag)
            return "" if property_ is None else property_.text.strip()
        place = self._outlined.outline.places.get(tag)
        if place is None:
            return ""
        value = self._outlined.values[place]
        return value.strip() if value.__class__ is str else text_of(value)

    def number(self, tag: str) -> int | None:
        """A time or duration in whole seconds, as it stands."""
        if self._outlined is None:
            property_ = self._by_name.get(tag)
            value = None if property_ is None else property_.value
        else:
            place = self._outlined.outline.places.get(tag)
            value = None if place is None else self._outlined.values[place]
        return int(value) if isinstance(value, int | Decimal) else None

    def _bare(self, tag: str) -> object:
        """The value of the first property of that name that stands bare."""
        if self._outlined is not None:
            place = self._outlined.outline.places.get(tag)
            if place is None or place < self._outlined.outline.bare:
                return None if place is None else self._outlined.values[place]
        return self.job.value(tag)

    @property
    def key(self) -> tuple[str, str, int]:
        """As ``key_of``."""
        ident = self._native_id() or self.text("Id")
        machine = self.text("Machine")
        if not ident:
            raise LedgerError("it has no Id")
        if not machine:
            raise LedgerError("it names no Machine, which is part of what it is charged under; for a script a site "
                              "profile (--site) names it, for records the option machine")
        stamp = self._bare("StartTime")
        start = seconds(stamp) if isinstance(stamp, int) else NEVER
        if start >= NUMBERS:
            raise LedgerError("its StartTime is beyond all calendars")
        return machine, ident, start

    def _native_id(self) -> str:
        """What the manager calls it: the job, else the first task group of it that says so."""
        if self._outlined is not None:      # it has no task groups
            place = _native_id(self._outlined.outline)
            return "" if place is None else text_of(self._outlined.values[place])
        groups = list[TaskGroup]()
        for item in [item for item in self.job.items if item.tag in _NAMING]:
            if isinstance(item, TaskGroup):
                groups.append(item)
            elif isinstance(item, Property) and _is_native_id(item.attributes):
                return item.text
        return next((p.text for group in groups for p in group.all("Extension") if _is_native_id(p.attributes)), "")

    @property
    def user(self) -> str:
        """The User, as far as an entry keeps it."""
        return self.text("User")[:200]


@lru_cache(maxsize=1 << 12)
def _native_id(outline: Outline) -> int | None:
    """Where the jobs of an outline say what the manager calls them."""
    return next((place for place in outline.extensions if _is_native_id(outline.fields[place].attributes)), None)


def _is_native_id(attributes: Mapping[str, str]) -> bool:
    return attributes.get("name") == "NativeId" and attributes.get("type") == "LRM"


def end_of(charge: Entry) -> dict[str, int]:
    """When the run of a charge ended, as the entries that answer it keep it too."""
    end = charge.document.get("end")
    return {"end": end} if isinstance(end, int) else {}


def at_start(start: int) -> str:
    """When a run started, in a message."""
    return "at an unknown time" if start == NEVER else shown(start)


def stated(job: Job, tag: str) -> str:
    """What was delivered, else what stands bare (decisions 4, 5)."""
    property_ = delivered(job, tag)
    return "" if property_ is None else property_.text.strip()


# --- rows ---------------------------------------------------------------------------------------------------------

NAMES: Final = ("number", "time", "kind", "account", "currency", "amount", "machine", "job", "start", "refers",
                 "token", "user_name", "document", "hash")
COLUMNS: Final = ", ".join(NAMES)


_texts: Final = json.encoder.encode_basestring_ascii


def _text_of(value: object) -> str:
    """The canonical JSON of a value of an entry, or of its document, as ``encoded`` has it: what stands in an entry is
    short, and an encoder of its own for each would take longer than its work."""
    kind = value.__class__
    if kind is str:
        return _texts(str(value))
    if kind is int:
        return str(value)
    if type(value) is Encoded:      # isinstance of a Mapping takes longer than all the rest
        return value.text
    if isinstance(value, list):
        return "[" + ",".join([_texts(item) if item.__class__ is str else _text_of(item) for item in value]) + "]"
    if isinstance(value, dict):
        form, names = _object(tuple(value))
        return form % tuple([
            _texts(item) if (item := value[name]).__class__ is str else str(item) if item.__class__ is int else
            _text_of(item) for name in names])
    return "null" if value is None else encoded(value)


@lru_cache(maxsize=1 << 8)
def _object(names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """(the canonical JSON of an object with these members, with a mark for each value; the names in its order)."""
    in_order = sorted(names)
    marked = ",".join([f"{_texts(name)}:".replace("%", "%%") + "%s" for name in in_order])
    return f"{{{marked}}}", tuple(in_order)


def _digest(values: Sequence[Any], previous: str, document: str) -> str:
    """SHA-256 of an entry behind the one with that digest. values: of the columns before its document; document: its
    text."""
    number, now, kind, account, currency, amount, machine, job, start, refers, token, user = values
    texts = ",".join(map(_texts, (kind, account, currency, str(amount), machine, job)))
    of_token = "null" if token is None else _texts(token)
    return hashlib.sha256(
        f"[{_texts(previous)},{number},{now},{texts},{start},{refers},{of_token},{_texts(user)},{document}]".encode()
    ).hexdigest()


def sealed(draft: Entry, number: int, now: int, document: Mapping[str, Any],
           previous: str) -> tuple[Entry, tuple[Any, ...]]:
    """An entry with its number, time, document and its hash behind the one with that hash, and its values of
    COLUMNS."""
    values = (number, now, *draft[2:5], str(draft.amount), *draft[6:12])
    text = _text_of(document)
    digest = _digest(values, previous, text)
    return _entry((number, now, *draft[2:12], document, digest)), (*values, text, digest)


def entry_of(row: Any) -> Entry:
    """Raises LedgerError for a row that no ledger has written."""
    values = list(row)
    try:
        values[5], values[12] = Decimal(values[5]), json.loads(values[12])
    except (ArithmeticError, RecursionError, TypeError, ValueError):
        values[12] = None
    entry = Entry(**dict(zip(NAMES, values, strict=True)))
    if entry.kind not in KINDS or not isinstance(entry.document, dict) or not entry.amount.is_finite() or not all(
            isinstance(n, int) for n in (entry.number, entry.time, entry.start, entry.refers)) or not all(
            isinstance(t, str) for t in (entry.account, entry.currency, entry.machine, entry.job, entry.user_name,
                                          entry.hash)):
        raise LedgerError(f"entry {escape(str(entry.number), 30)} is not what was written")
    return entry


def account_of(name: str, currency: str, amounts: Iterable[Any]) -> Account:
    """Raises LedgerError for amounts that are none."""
    try:
        decimals = [Decimal(amount) for amount in amounts]
    except (ArithmeticError, TypeError, ValueError):
        decimals = [Decimal("NaN")]
    if not all(amount.is_finite() for amount in decimals):
        raise LedgerError(f"account {escape(str(name), 60)}: what is kept of it is no amount")
    return Account(name, currency, *decimals)


# --- what may be posted ---------------------------------------------------------------------------------------------

def positive(amount: Decimal) -> Decimal:
    """An amount above 0. Raises LedgerError."""
    if not amount > 0:
        raise LedgerError(f"{plain(amount)} is not above 0")
    return bounded(amount)


def bounded(amount: Decimal) -> Decimal:
    """An amount that entries can hold. Raises LedgerError."""
    if not amount.is_finite() or abs(amount) >= _MOST or amount.as_tuple().exponent < -24:     # type: ignore[operator]
        raise LedgerError("an amount has at most 60 digits before and 24 behind the point")
    return amount


def named(text: str, kind: str) -> None:
    """Raises LedgerError for a text that is no name. kind: of what."""
    if not _TOKEN.fullmatch(text) or not text.isprintable() or text != text.strip():
        raise LedgerError(f"{escape(text, 60)!r} is no {kind} (1 to 200 printable characters)")


# --- jobs ---------------------------------------------------------------------------------------------------------

def document_of(job: Job) -> str:
    """The text of a job without what charging writes into it."""
    return write_document(Job([i for i in job.items if i.tag != "Charge"], dict(job.attributes) or None),
                          policy=Policy.IGNORE)


def content_of(account: str, text: str) -> str:
    """What tells whether another record of a run says the same."""
    return hashlib.sha256(f"{account}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


def job_of(text: object) -> Job:
    """The job that an entry holds. Raises LedgerError."""
    job = read_document(str(text).encode(), policy=Policy.IGNORE).root
    if not isinstance(job, Job):
        raise LedgerError("what is stored is no job")
    return job
