"""Rates: what a site charges for, read from TOML. Numbers are exact decimals as they stand in the text.

    name = "cluster"
    version = "2026-01"
    currency = "EUR"
    precision = 2

    [[rate]]
    type = "VBR"
    name = "Processors"
    rate = 0.012
    per = "hour"

Types are those of Gold: value-based (VB) or name-based (NB); for a resource over time (R), for usage (U), as a
multiplier (M), as a fee (F). All keys are in docs/charging.md.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, get_args
from zoneinfo import ZoneInfo

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StringConstraints,
    ValidationError,
    model_validator,
)

from sssjob.accounting.arithmetic import Figure, Rounding, number, plain
from sssjob.document.vocabulary import CONSUMABLE, ELEMENTS
from sssjob.errors import ProblemsError
from sssjob.lrm.clocks import UNITS, time_zone
from sssjob.xml._faults import model_problem
from sssjob.xml._toml import TOMLError, read_toml

__all__ = [
    "PER", "Benchmark", "Billing", "Named", "Plan", "PriceList", "Prices", "Rate", "RateSet", "RatesError",
    "TimeCategory", "Weight", "read_rates",
]

Type = Literal["VBR", "NBR", "VBU", "NBU", "VBM", "NBM", "VBF", "NBF"]
#: Seconds in what a rate is for.
PER: Final = {word: UNITS[word[0]] for word in ("second", "minute", "hour", "day")}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
#: 3.1.0's name of a property that rates may call by an older one.
_ALIASES: Final = {alias: e.name for e in ELEMENTS for alias in e.aliases} | {"Nodes": "NodeCount"}
#: The senses of a consumable resource: as rates may write them -> the specification's word (section 5.1).
_CONTEXTS: Final = {word: word for word in CONSUMABLE[0].values} | dict(CONSUMABLE[0].aliases)
#: Names that Gold gives to Memory in one sense.
_IN_CONTEXT: Final = {"UtilizedMemory": "Used", "DedicatedMemory": "Dedicated", "RequestedMemory": "Dedicated"}


class RatesError(ProblemsError):
    """Rates that are wrong."""


def _exact(value: object) -> object:
    """Only what stands exactly in the text: no floats, no booleans."""
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise ValueError("a number, as 0.5 or \"0.5\"")
    return value


Exact = Annotated[Decimal, BeforeValidator(_exact), Field(allow_inf_nan=False, max_digits=40, decimal_places=24)]
Money = Annotated[Exact, Field(ge=0)]
Positive = Annotated[Exact, Field(gt=0)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Zone = Annotated[ZoneInfo, BeforeValidator(lambda key: time_zone(str(key)))]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Rate(_Table):
    """One rate. name: the property that is multiplied (VB) or that selects by its value, the instance (NB; ``*``: any
    without a rate of its own); when: further properties that have to have these values."""

    type: Type
    name: Name
    instance: Name | None = None
    rate: Exact
    per: Literal["second", "minute", "hour", "day"] | None = None
    units: Name | None = None
    when: dict[Name, Name] = Field(default_factory=dict)
    resource_type: Name | None = None
    metric: Name | None = None
    context: Name | None = None
    benchmark: Name | None = None
    required: bool = False

    @model_validator(mode="after")
    def _whole(self) -> Self:
        named = self.type.startswith("NB")
        if named and self.instance is None:
            raise ValueError(f"{self.type} needs an instance, the value of {self.name} that it is for")
        if self.per is not None and not self.timed:
            raise ValueError(f"{self.type} has no per: it does not go by time")
        stated_keys = [k for k in ("units", "resource_type", "metric", "context") if getattr(self, k) is not None]
        stated_keys += ["instance"] if not named and self.instance is not None else []
        if stated_keys and (named or "instance" in stated_keys):
            raise ValueError(f"{self.type} has no {stated_keys[0]}")
        if self.benchmark is not None and self.type != "VBR":
            raise ValueError(f"{self.type} has no benchmark")
        return self

    @model_validator(mode="before")
    @classmethod
    def _in_context(cls, keys: Any) -> Any:
        """``UtilizedMemory`` is Memory in the sense of Used, and ``Utilized`` another word for Used."""
        if not isinstance(keys, dict):
            return keys
        keys = dict(keys)
        sense = _IN_CONTEXT.get(str(keys.get("name")))
        if sense is not None and str(keys.get("type", "")).startswith("VB"):
            keys["name"] = "Memory"
            if _CONTEXTS.get(str(keys.setdefault("context", sense))) != sense:
                raise ValueError(f"its name says context {sense}, and its context {keys['context']}")
        if isinstance(keys.get("context"), str):
            keys["context"] = _CONTEXTS.get(keys["context"], keys["context"])
        return keys

    @cached_property
    def timed(self) -> bool:
        """Whether it goes by time."""
        return self.type in ("VBR", "NBR")

    @cached_property
    def canonical(self) -> str:
        """The name of 3.1.0 for its name."""
        return _ALIASES.get(self.name, self.name)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What no two rates share."""
        when = tuple(sorted(self.when.items()))
        return self.type, self.canonical, self.instance, when, self.resource_type, self.metric, self.context

    @cached_property
    def sought(self) -> tuple[str | None, ...]:
        """What says which amounts it prices, and in which unit."""
        return self.canonical, self.resource_type, self.metric, self.context, self.units

    @cached_property
    def term(self) -> Figure:
        """Its number, as arithmetic shows it."""
        return number(self.rate, self.label)

    @cached_property
    def seconds(self) -> Figure | None:
        """The seconds that it is for; None: one."""
        return None if PER[self.per or "second"] == 1 else number(PER[self.per or "second"], f"s/{self.per}")

    @cached_property
    def label(self) -> str:
        """``NBM QualityOfService=high``, as the arithmetic shows it."""
        instance = self.instance or self.resource_type
        conditions_stated = {"metric": self.metric, "context": self.context, **self.when}
        conditions = "".join(f", {k}={v}" for k, v in conditions_stated.items() if v is not None)
        return f"{self.type} {self.name}{f'={instance}' if instance else ''}{conditions}"


class TimeCategory(_Table):
    """Part of the calendar: local times of the zone of the rates, on some weekdays or dates (all if none is named)."""

    name: Name
    days: list[Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]] = Field(default_factory=list)
    dates: list[date] = Field(default_factory=list)
    start: time = Field(default=time(), alias="from")
    end: time = Field(default=time(), alias="to")

    @model_validator(mode="after")
    def _local(self) -> Self:
        if self.start.tzinfo or self.end.tzinfo:
            raise ValueError("times of day have no offset: they are those of the timezone")
        return self

    def holds(self, day: date) -> bool:
        """Whether it starts on that day."""
        return (not self.days and not self.dates) or _DAYS[day.weekday()] in self.days or day in self.dates


class Benchmark(_Table):
    """Scores of a processor of each machine; processor time counts as on a machine with the reference score.

    features: a job that states its share of the benchmark (Machine/Job Features, Extension hs06_job of type MJF) counts
    by that, divided by its processors.
    """

    reference: Positive = Decimal(1)
    machine: dict[Name, Positive] = Field(default_factory=dict)
    features: bool = False

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.machine and not self.features:
            raise ValueError("machine is empty, and features is not true")
        return self


class Weight(_Table):
    """A weight of TRESBillingWeights, as ``0.25G``: per GiB."""

    number: Money
    suffix: Literal["", "K", "M", "G", "T", "P"] = ""

    @model_validator(mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        match = re.fullmatch(r"([0-9]*\.?[0-9]+|[0-9]+\.)([KMGTP]?)B?", str(value).strip(), re.IGNORECASE | re.ASCII)
        if isinstance(value, bool) or match is None:
            raise ValueError("a weight, as 1.0 or \"0.25G\"")
        return {"number": match[1], "suffix": match[2].upper()}


class Billing(_Table):
    """Slurm's billing TRES, priced as the amount ``Billing``. Source: slurm.conf, TRESBillingWeights, PriorityFlags."""

    weights: dict[Name, Weight]
    flags: Literal["SUM", "MAX_TRES", "MAX_TRES_GRES"] = "SUM"
    truncate: bool = True

    @model_validator(mode="after")
    def _known(self) -> Self:
        for name in self.weights:
            if not re.fullmatch(r"cpu|mem|node|energy|(gres|license)/.+", name, re.IGNORECASE):
                raise ValueError(f"{name!r} is none of CPU, Mem, Node, Energy, gres/NAME, license/NAME")
        return self


class Plan:
    """Rates as charges ask for them: by the last letter of their type, and by type and property (``kin``)."""

    __slots__ = ("kin", "kinds")

    def __init__(self, rates: Iterable[Rate]) -> None:
        self.kinds: dict[str, list[Rate]] = {each[2]: [] for each in get_args(Type)}
        self.kin: dict[tuple[str, str], list[Rate]] = {}
        for rate in rates:
            self.kinds[rate.type[2]].append(rate)
            self.kin.setdefault((rate.type, rate.canonical), []).append(rate)


class PriceList(_Table):
    """Rates that hold from a moment on, in place of all before. valid_from: a date is its midnight, and a time without
    an offset one of the clocks, in the timezone of the rates."""

    valid_from: datetime | date
    rate: list[Rate] = Field(min_length=1)


class Prices(NamedTuple):
    """The rates that hold from a moment on (epoch seconds; None: from the beginning). name: how items show it."""

    since: int | None
    rates: Sequence[Rate]
    name: str
    plan: Plan


class Named(_Table):
    """Rates that a quote guarantees to jobs that name it; each replaces the rate that is for the same."""

    expires: datetime | None = None
    when: dict[Name, Name] = Field(default_factory=dict)
    rate: list[Rate]

    @model_validator(mode="after")
    def _zoned(self) -> Self:
        if self.expires is not None and self.expires.tzinfo is None:
            raise ValueError("expires needs an offset from UTC, as 2026-12-31T00:00:00Z")
        return self


class RateSet(_Table):
    """One version of all rates of a site."""

    name: Name
    version: Name
    currency: str = ""
    precision: int = Field(default=2, strict=True, ge=0, le=9)
    rounding: Rounding = "half-up"
    step: Positive | None = None
    minimum: Money = Decimal(0)
    granularity: int = Field(default=1, strict=True, ge=1, le=366 * 86400)
    minimum_duration: int = Field(default=0, strict=True, ge=0, le=366 * 86400)
    combine: Literal["sum", "max"] = "sum"
    timezone: Zone | None = None
    split: Literal["border", "start"] = "border"
    profile: Literal["sss", "gold"] = "sss"
    attempts: Literal["all", "last", "committed"] = "all"
    system_faults: Literal["charged", "free"] = "charged"
    rate: list[Rate] = Field(default_factory=list)
    price_list: list[PriceList] = Field(default_factory=list)
    valid_by: Literal["end", "start", "split"] = "end"
    time_category: list[TimeCategory] = Field(default_factory=list)
    benchmark: dict[Name, Benchmark] = Field(default_factory=dict)
    billing: Billing | None = None
    quote: dict[Name, Named] = Field(default_factory=dict)
    _digest: str = PrivateAttr("")
    _text: str = PrivateAttr("")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.step is not None and (Fraction(self.step) * 10**self.precision).denominator != 1:
            raise ValueError(f"step {self.step} has more digits than precision = {self.precision}")
        if self.time_category and self.timezone is None:
            raise ValueError("time_category needs a timezone")
        self._in_time()
        for where, rates in self._lists:
            self._check(where, rates)
        return self

    def _in_time(self) -> None:
        """Refuse price lists that are not in the order of their time."""
        last = None
        for n, prices in enumerate(self.price_list):
            moment = self._moment(f"price_list[{n}]", prices.valid_from)
            if last is not None and moment <= last:
                raise ValueError(f"price_list[{n}].valid_from: {prices.valid_from} is not after the one before")
            last = moment

    def _moment(self, where: str, when: datetime | date) -> int:
        """Epoch seconds of a valid_from."""
        if not isinstance(when, datetime):
            when = datetime.combine(when, time())
        if when.tzinfo is None:
            if self.timezone is None:
                raise ValueError(f"{where}.valid_from needs an offset, or the rates a timezone")
            when = when.replace(tzinfo=self.timezone)
        return int(when.timestamp())

    @property
    def _lists(self) -> Iterator[tuple[str, list[Rate]]]:
        """Every list of rates with its path."""
        yield "rate", self.rate
        yield from ((f"price_list[{n}].rate", prices.rate) for n, prices in enumerate(self.price_list))
        yield from ((f"quote.{name}.rate", quote.rate) for name, quote in self.quote.items())

    def _check(self, where: str, rates: list[Rate]) -> None:
        seen: dict[tuple[object, ...], int] = {}
        for n, r in enumerate(rates):
            if seen.setdefault(r.key, n) != n:
                raise ValueError(f"{where}[{n}] is for the same as {where}[{seen[r.key]}]: {r.label}")
            if r.rate < 0 and self.profile != "gold":
                raise ValueError(f"{where}[{n}].rate: below 0, as only a bank of Gold has it (profile = \"gold\")")
            if r.benchmark is not None and r.benchmark not in self.benchmark:
                raise ValueError(f"{where}[{n}].benchmark: no table benchmark.{r.benchmark}")
            if r.canonical == "TimeCategory" and self.time_category and r.instance not in self._categories:
                raise ValueError(f"{where}[{n}].instance: no time_category {r.instance!r}")

    @property
    def _categories(self) -> list[str]:
        return [*(c.name for c in self.time_category), "*"]

    @cached_property
    def prices(self) -> tuple[Prices, ...]:
        """What holds where no quote is named, in the order of time; the first from the beginning."""
        later = (Prices(self._moment("price_list", p.valid_from), p.rate, f"from {p.valid_from}", Plan(p.rate))
                 for p in self.price_list)
        return Prices(None, self.rate, "", Plan(self.rate)), *later

    def prices_at(self, moment: int) -> Prices:
        """What holds at a moment in epoch seconds."""
        return next(p for p in reversed(self.prices) if p.since is None or p.since <= moment)

    @cached_property
    def borders(self) -> tuple[int, ...]:
        """When the price lists but the first begin to hold, in epoch seconds."""
        return tuple([p.since for p in self.prices if p.since is not None])

    def place_of(self, start: int, end: int) -> int | None:
        """How many borders lie before the price list that alone prices a job of that time (epoch seconds; end: not
        before start); None where the job is split between several."""
        first, last = (bisect(self.borders, moment) for moment in (start, max(start, end - 1)))
        if self.valid_by == "split" and first != last:
            return None
        return first if self.valid_by == "start" else last

    @cached_property
    def paths(self) -> tuple[tuple[str, Rate], ...]:
        """Every rate with the path of its table, as ``rate[0]`` or ``quote.NAME.rate[0]``."""
        return tuple((f"{where}[{n}]", rate) for where, rates in self._lists for n, rate in enumerate(rates))

    @cached_property
    def by_queue(self) -> bool:
        """Whether a rate goes by the queue."""
        return any(rate.name == "Queue" for _, rate in self.paths)

    @cached_property
    def how(self) -> str:
        """How charges are rounded, in words."""
        return f"{self.rounding} to {plain(self.smallest)}"

    @cached_property
    def smallest(self) -> Decimal:
        """What charges are multiples of."""
        return self.step or Decimal(1).scaleb(-self.precision)

    @cached_property
    def dated(self) -> bool:
        """Whether a charge depends on the time of day at which a job ran."""
        named = any(r.canonical == "TimeCategory" or "TimeCategory" in r.when for _, r in self.paths)
        return named and bool(self.time_category)

    @cached_property        # of a private name pydantic makes a search, and each charge asks for it
    def digest(self) -> str:
        """SHA-256 of what the text means: comments and the layout of the file do not count."""
        return self._digest

    @property
    def text(self) -> str:
        """The text that they were read from."""
        return self._text

    @cached_property
    def identity(self) -> str:
        """``name version sha256:...``, what a charge was made by."""
        return f"{self.name} {self.version}" + (f" sha256:{self._digest[:16]}" if self._digest else "")


def read_rates(data: bytes | str, path: str = "-") -> RateSet:
    """The rates of a TOML text. Raises RatesError with every problem and the path of its key."""
    try:
        rates = RateSet.model_validate(read_toml(data, parse_float=Decimal))
    except ValidationError as error:
        raise RatesError(path, [model_problem(e) for e in error.errors()]) from None
    except TOMLError as error:
        raise RatesError(path, [str(error)]) from None
    text = data.decode("utf-8") if isinstance(data, bytes) else data
    meaning = rates.model_dump_json(exclude_defaults=True)
    rates._text, rates._digest = text, hashlib.sha256(meaning.encode()).hexdigest()
    return rates
