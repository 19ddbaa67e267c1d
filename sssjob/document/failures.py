"""What a document says is to become of failures: the Extensions ``Retry`` and ``OnFailure`` of the type Scheduler.

``Retry`` lists the failures after which a job is submitted once more, in clauses between blanks::

    node-failure=3 preempted timeout=2:Duration*2,max=24h memory=2:Memory*1.5,max=64GB exit(75,100-110)=2 total=5

A clause is a class of failures, how often a job is tried again after it (once where no number stands), and what the
next attempt asks for more of. ``OnFailure`` is ``keep-going`` or ``fail-fast``: whether a failure ends the rest of the
group. This module knows the words and nothing of attempts; ``sssjob/run/attempts.py`` counts those.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final, Self

from sssjob.document.element import Container, Item, Property, new_property
from sssjob.document.model import Document, Job, JobDefaults, JobGroup, Requested
from sssjob.document.units import to_bytes
from sssjob.limits import LIMITS, Limits
from sssjob.lrm.clocks import UNITS

__all__ = ["CLASSES", "END_ALL", "EXIT", "NAMES", "POLICIES", "RETRY", "Change", "Clause", "FailurePolicyError",
           "Retry", "ends_all", "fault_of", "policy_of", "retry_of", "stated", "with_fail_fast", "without_policy"]

_SIGNAL: Final = "signal"
#: Class -> reasons, as StatusMessage begins, of which it stands. What is in no class never is tried again: that a job
#: was cancelled, waits in vain, or that nobody knows how it ended or whether it has.
CLASSES: Final[Mapping[str, tuple[str, ...]]] = {
    "node-failure": ("node-failure", "boot"), "preempted": ("preempted",), "timeout": ("timeout",),
    "cpu-limit": ("cpu-limit",), "memory": ("memory",), _SIGNAL: ("signal",), "launch": ("launch",),
}
#: Exit codes that count as a signal: with 128 + n ends a shell, and so each batch script, whose program signal n ended.
_BY_SIGNAL: Final = range(129, 193)
EXIT: Final = "exit"            # an exit code other than 0
_FAILED: Final = "failed"       # any of these that no other clause names
_NONE: Final = "none"           # the whole text: none, whatever the defaults of the group say
_TOTAL: Final = "total"         # no class: the most further attempts in all
#: The Extensions, and the words of OnFailure: whether a failure ends the rest of the group.
RETRY, END_ALL = "Retry", "OnFailure"
NAMES: Final = (RETRY, END_ALL)
POLICIES: Final = {"keep-going": False, "fail-fast": True}

_CLAUSE: Final = re.compile(
    r"(?P<word>[A-Za-z-]+)(?:\((?P<codes>[^()]*)\))?(?:=(?P<most>[^:]*))?(?P<changes>:.*)?", re.S)
_COUNT: Final = re.compile(r"\d{1,9}", re.ASCII)
_CODES: Final = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?", re.ASCII)
_CHANGE: Final = re.compile(
    r"(?P<name>[A-Za-z]+)(?P<sign>[*+])(?P<amount>[\d.]+[A-Za-z]*)(?:,max=(?P<most>[\d.]+[A-Za-z]*))?", re.ASCII)
_AMOUNT: Final = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([A-Za-z]*)", re.ASCII)
_SECONDS: Final = {"": 1} | {letter: UNITS[letter] for letter in "smhd"}
_MB: Final = 1 << 20
_LARGEST_CODE: Final = 255
_FACTORS: Final = (Decimal(1), Decimal(100))        # a factor lies above the first and is no more than the second
_SCALED: Final = ("Duration", "Memory")
_HOLDERS: Final = ("Job", "JobDefaults", "Requested")
_CONTEXT: Final = "Scheduler"


class FailurePolicyError(ValueError):
    """A text that is no failure policy. column: of the clause that is wrong, from 1."""

    def __init__(self, message: str, column: int = 1) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True, slots=True)
class Change:
    """What the next attempt asks for more of: Duration in seconds, or Memory in bytes.

    factor: what the amount of the attempt before is multiplied by (1: not), more: what is added then; most: the
    greatest amount that is ever asked for, None where nothing limits it. Each holds for an amount in the form in which
    the request says it, per node for example.
    """

    name: str
    factor: Decimal
    more: Decimal
    most: Decimal | None
    text: str

    def of(self, amount: Decimal) -> Decimal:
        """The next amount, rounded up to a whole second, byte, or MB above that. One that is at the limit already, or
        above, stays."""
        grown = amount * self.factor + self.more
        step = _MB if self.name == "Memory" and grown > _MB else 1
        whole = (grown / step).to_integral_value(ROUND_CEILING) * step
        return max(amount, whole if self.most is None else min(whole, self.most))


@dataclass(frozen=True, slots=True)
class Clause:
    """word: the class. codes: the (first, last) exit codes that are meant, none: all. most: further attempts."""

    word: str
    most: int
    codes: tuple[tuple[int, int], ...] = ()
    changes: tuple[Change, ...] = ()

    @property
    def name(self) -> str:
        """What tells it from the other clauses: ``timeout``, ``exit(75,100-110)``."""
        codes = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in self.codes)
        return f"{self.word}({codes})" if codes else self.word

    def __str__(self) -> str:
        return f"{self.name}={self.most}{''.join(f':{change.text}' for change in self.changes)}"


@dataclass(frozen=True, slots=True)
class Retry:
    """Which failures are followed by another attempt. total: the most further attempts, whatever their reasons."""

    clauses: tuple[Clause, ...]
    total: int

    @classmethod
    def of(cls, text: str, limits: Limits = LIMITS) -> Self:
        """The clauses of a text. Raises FailurePolicyError."""
        if text.strip() == _NONE:
            return cls((), 0)
        clauses: list[Clause] = []
        total: int | None = None
        for hit in re.finditer(r"\S+", text):
            try:
                word = hit[0].partition("=")[0]
                if word == _TOTAL:
                    if total is not None:
                        raise FailurePolicyError("'total' stands there twice")
                    total = _count(hit[0].partition("=")[2], limits)
                else:
                    clauses.append(_clause(hit[0], limits))
                    _check_apart(clauses)
            except FailurePolicyError as error:
                raise FailurePolicyError(f"Retry, column {hit.start() + 1}, {hit[0][:80]!r}: {error}",
                                         hit.start() + 1) from None
        if not clauses:
            raise FailurePolicyError("Retry names no failure; " + _known())
        return cls(tuple(clauses), limits.retries if total is None else total)

    def clause_for(self, reason: str | None, code: int | None) -> Clause | None:
        """The clause for a failure; the most specific one, whatever their order. None: it is not tried again.

        reason: the first word of its StatusMessage, None where the exit code says all.
        """
        by_name = {clause.word: clause for clause in self.clauses if not clause.codes}
        if reason is None:
            if not code:
                return None
            listed = (c for c in self.clauses if any(first <= code <= last for first, last in c.codes))
            signal = by_name.get(_SIGNAL) if code in _BY_SIGNAL else None
            return next(listed, None) or signal or by_name.get(EXIT) or by_name.get(_FAILED)
        word = next((name for name, reasons in CLASSES.items() if reason in reasons), None)
        return None if word is None else by_name.get(word) or by_name.get(_FAILED)

    def next_for(self, reason: str | None, code: int | None, before: Sequence[str]) -> Clause | None:
        """The clause after which another attempt begins; None where the job has failed for good.

        before: the names of the clauses that began the attempts after the first one.
        """
        clause = self.clause_for(reason, code)
        if clause is None or len(before) >= self.total or before.count(clause.name) >= clause.most:
            return None
        return clause

    def named(self, name: str) -> Clause | None:
        """The clause of that name."""
        return next((clause for clause in self.clauses if clause.name == name), None)

    def unknown_to(self, reasons: Collection[str]) -> list[str]:
        """Classes that name no reason that a manager can tell. reasons: those that it can, beside exit codes."""
        return [clause.word for clause in self.clauses
                if clause.word in CLASSES and clause.word != _SIGNAL and not set(CLASSES[clause.word]) & set(reasons)]

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of the properties that some clause changes."""
        return tuple(dict.fromkeys(change.name for clause in self.clauses for change in clause.changes))


def _known() -> str:
    return f"known are {', '.join((*CLASSES, EXIT, f'{EXIT}(CODES)', _FAILED))}"


def _clause(text: str, limits: Limits) -> Clause:
    hit = _CLAUSE.fullmatch(text)
    if hit is None:
        raise FailurePolicyError("is no clause such as timeout=2:Duration*2,max=24h")
    word, codes, most = hit["word"], hit["codes"], hit["most"]
    if word not in CLASSES and word not in (EXIT, _FAILED):
        raise FailurePolicyError(f"{word!r} is no class of failures; {_known()}")
    if codes is not None and word != EXIT:
        raise FailurePolicyError(f"only {EXIT} has codes, not {word}")
    changes = tuple(_changes((hit["changes"] or "").split(":")[1:]))
    return Clause(word, 1 if most is None else _count(most, limits), () if codes is None else _codes(codes), changes)


def _count(text: str, limits: Limits) -> int:
    if not _COUNT.fullmatch(text) or not int(text):
        raise FailurePolicyError(f"{text[:20]!r} is no number of attempts; it is at least 1")
    if int(text) > limits.retries:
        raise FailurePolicyError(f"{text} further attempts are more than {limits.retries} (limit retries)")
    return int(text)


def _codes(text: str) -> tuple[tuple[int, int], ...]:
    ranges = []
    for part in text.split(","):
        hit = _CODES.fullmatch(part.strip())
        first, last = (int(hit[1]), int(hit[2] or hit[1])) if hit is not None else (0, 0)
        if not 0 < first <= last <= _LARGEST_CODE:
            raise FailurePolicyError(f"{part[:20]!r} is no exit code from 1 to {_LARGEST_CODE} and no range of them")
        ranges.append((first, last))
    return tuple(ranges)


def _changes(texts: Sequence[str]) -> Iterator[Change]:
    names = set()
    for text in texts:
        hit = _CHANGE.fullmatch(text)
        if hit is None or hit["name"] not in _SCALED:
            raise FailurePolicyError(f"{text[:40]!r} is no change such as Duration*2,max=24h or Memory+4GB")
        name = hit["name"]
        if name in names:
            raise FailurePolicyError(f"{name} is changed twice")
        names.add(name)
        factor, more = Decimal(1), Decimal(0)
        if hit["sign"] == "*":
            factor = _factor(hit["amount"])
        else:
            more = _amount(name, hit["amount"])
        yield Change(name, factor, more, None if hit["most"] is None else _amount(name, hit["most"]), text)


def _factor(text: str) -> Decimal:
    hit = _AMOUNT.fullmatch(text)
    if hit is None or hit[2] or not _FACTORS[0] < Decimal(hit[1]) <= _FACTORS[1]:
        raise FailurePolicyError(f"{text[:20]!r} is no factor above {_FACTORS[0]} and up to {_FACTORS[1]}")
    return Decimal(hit[1])


def _amount(name: str, text: str) -> Decimal:
    """Seconds or bytes."""
    hit = _AMOUNT.fullmatch(text)
    try:
        if hit is not None and name == "Duration":
            amount = Decimal(hit[1]) * _SECONDS[hit[2]]
        elif hit is not None:
            amount = to_bytes(Decimal(hit[1]), hit[2])
        else:
            raise LookupError
        if not amount or amount != amount.to_integral_value():
            raise LookupError
    except LookupError:
        units = "a whole number of seconds (s, m, h, d)" if name == "Duration" else "an amount such as 4GB"
        raise FailurePolicyError(f"{text[:20]!r} is not {units}") from None
    return amount


def _check_apart(clauses: Sequence[Clause]) -> None:
    """The last clause names what no other one does."""
    *others, last = clauses
    for other in others:
        if other.word == last.word and bool(other.codes) == bool(last.codes):
            common = [code for first, end in last.codes for code in range(first, end + 1)
                      if any(a <= code <= b for a, b in other.codes)]
            if common or not last.codes:
                raise FailurePolicyError(f"{last.word if not common else f'exit code {common[0]}'} stands there twice")


# --- in documents -------------------------------------------------------------------------------------------------

def policy_of(item: Item) -> str | None:
    """Which of the Extensions ``NAMES`` an item is; None for anything else."""
    if item.tag == "Extension" and isinstance(item, Property) and item.get("type") == _CONTEXT:
        return name if (name := item.get("name")) in NAMES else None
    return None


def stated(job: Job, name: str) -> Property | None:
    """The Extension of a job with its defaults."""
    holders: list[Container] = [*job.containers("Requested"), job]
    return next((p for holder in holders for p in holder.all("Extension") if policy_of(p) == name), None)


def retry_of(job: Job, limits: Limits = LIMITS) -> Retry | None:
    """What a job with its defaults says of further attempts; None where there are none. Raises FailurePolicyError."""
    p = stated(job, RETRY)
    retry = None if p is None else Retry.of(p.text, limits)
    return retry if retry is not None and retry.clauses else None


def ends_all(job: Job) -> bool:
    """Whether the failure of a job ends the rest of its group. Raises FailurePolicyError."""
    p = stated(job, END_ALL)
    return p is not None and _word(p)


def fault_of(p: Property, within: str, limits: Limits = LIMITS) -> str | None:
    """What is wrong with an Extension of these names; None where all is well, and for any other property.

    within: the name of the container that it stands in.
    """
    name = policy_of(p)
    if name is None:
        return None
    if within not in _HOLDERS:
        return f"{name} is about a whole job and cannot stand in {within}"
    try:
        if name == RETRY:
            Retry.of(p.text, limits)
        else:
            _word(p)
    except FailurePolicyError as error:
        return str(error)
    return None


def _word(p: Property) -> bool:
    """Whether a failure ends the rest of the group."""
    if p.text.strip() not in POLICIES:
        raise FailurePolicyError(f"OnFailure {p.text[:40]!r} is none of {', '.join(POLICIES)}")
    return POLICIES[p.text.strip()]


def without_policy(job: Job) -> Job:
    """The job without these Extensions, which ask a resource manager for nothing; the same where it has none."""
    if not any(policy_of(item) for holder in (job, *job.containers("Requested")) for item in holder.items
               if item.tag == "Extension"):
        return job
    items: list[Item] = [Requested([p for p in i.items if not policy_of(p)], i.attributes, None, i.line)
                         if isinstance(i, Requested) else i for i in job.items if not policy_of(i)]
    return Job(items, job.attributes, None, job.line)


def with_fail_fast(document: Document) -> None:
    """Have a failure end the rest of its group, in every group and job of a document; it is said in its defaults."""
    fail_fast = new_property("Extension", "fail-fast", {"type": _CONTEXT, "name": END_ALL})
    for body in document.bodies():
        holder: Container = body
        if isinstance(body, JobGroup):
            if body.defaults is None:
                body.items.insert(next((n for n, i in enumerate(body.items) if i.tag == "Job"), len(body.items)),
                                  JobDefaults())
            assert body.defaults is not None
            holder = body.defaults
            for job in body.jobs:
                _drop(job)
        _drop(holder)
        holder.items.append(fail_fast)


def _drop(scope: Container) -> None:
    if any(policy_of(item) == END_ALL for item in scope.items):
        scope.items = [item for item in scope.items if policy_of(item) != END_ALL]
