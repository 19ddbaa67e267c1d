"""Trackable resources (TRES) of Slurm: texts as ``billing=8,cpu=8,energy=51007,gres/gpu:a100=1,mem=32G,node=1``.

``tres`` reads a text with care. Logs hold millions of texts that differ in numbers only: a ``TresForm`` is a text in
which the numbers are open. ``TresTexts`` has ``tres`` read one text of each form, looks where its numbers came out, and
puts those of other texts of the form there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple

from sssjob.document.element import Property
from sssjob.document.units import byte_factor
from sssjob.lrm.slurm import gpus as gpus_among
from sssjob.lrm.slurm import tres as split
from sssjob.translators.records._again import LONGEST
from sssjob.translators.records._record import leaf
from sssjob.translators.records._values import amount, count, thousands

_ITEM: Final = re.compile(r"([a-z]+(?:/[^=,|]*)?)=(0|[1-9][0-9]{0,14})([KMGTP]?)", re.ASCII)
_FORMS: Final = 64                  # texts that differ in more than numbers
_TOTAL: Final = {"metric": "Total"}
#: Resources that stand in ``TRES.energy``, and those of what was asked for that nobody asks for.
_ELSEWHERE: Final = {"AllocTRES": ("Energy",), "ReqTRES": ("Billing", "Energy")}
#: Numbers by which it is seen where those of a form come out: each is told from each and from sums of them.
_MARK: Final = 4_000_003
_MARKED: Final = 24                 # numbers of a form for which there are some
_SHORT: Final = 160                 # characters of a text that is remembered as it is
_TEXTS: Final = 1 << 10


@dataclass(slots=True)
class TRES:
    """cpu, nodes: counts; size, total: the text of the memory of ReqTRES, and what it comes to; properties: what
    becomes of the rest in Delivered (of AllocTRES, memory among them) or Requested (of ReqTRES, without its memory, of
    which ReqMem says how it is meant); energy: of AllocTRES, what the steps used, which ConsumedEnergy says too."""

    cpu: int | None = None
    nodes: int | None = None
    size: str = ""
    total: Property | None = None
    properties: tuple[Property, ...] = ()
    gpus_differ: str = field(default="")
    energy: Property | None = None


def tres(text: str, name: str) -> TRES:
    """What a text of the column AllocTRES or ReqTRES says. Memory without unit is in MB. Rejected: number."""
    result = TRES()
    rest: list[tuple[str, Decimal]] = []
    memory: tuple[Decimal, str] | None = None
    for kind, value in split(text):
        if kind == "cpu":
            result.cpu = count(value, f"{name} cpu")
        elif kind == "node":
            result.nodes = count(value, f"{name} node")
        elif kind == "mem":
            result.size, memory = value, amount(value, f"{name} mem", "MB")
        elif (number := thousands(value, f"{name} {kind}")) is not None:
            rest.append((kind, number))
    resources, result.gpus_differ = _resources(rest)
    kept = [p for p in resources if p.get("name") not in _ELSEWHERE[name]]
    if name == "AllocTRES":
        result.energy = next((p for p in resources if p.get("name") == "Energy"), None)
    if memory is not None and name == "AllocTRES":
        kept.insert(0, leaf("Memory", memory[0], {"units": memory[1]} | _TOTAL))
    elif memory is not None and memory[0]:
        result.total = leaf("Memory", memory[0], {"units": memory[1]} | _TOTAL)
    result.properties = tuple(kept)
    return result


def _resources(items: Sequence[tuple[str, Decimal]]) -> tuple[tuple[Property, ...], str]:
    """(Resources, what is wrong) of (``gres/gpu:a100``, count): of GPUs the types, where they add up to the total."""
    others: list[Property] = []
    for kind, value in items:
        category, _, what = kind.partition("/")
        if not value or kind.startswith("gres/gpu:") or kind == "gres/gpu":
            continue
        if category == "license":
            others.append(_resource("License", what, value))
        elif category == "gres":
            label, _, model = what.partition(":")
            others.append(_resource(label, model, value))
        elif kind == "billing":
            others.append(_resource("Billing", "", value))
        elif kind == "energy":
            others.append(_resource("Energy", "", value, "J"))
        elif category == "bb":
            others.append(_resource("BurstBuffer", what, value))
    total, typed, wrong = gpus_among(items)
    gpu = [_resource("GPU", model, value) for model, value in typed.items() if value]
    if not typed and total:
        gpu = [_resource("GPU", "", total)]
    return (*gpu, *others), wrong


def _resource(name: str, kind: str, value: Decimal, units: str = "") -> Property:
    attributes = {"name": name} | ({"type": kind} if kind else {}) | ({"units": units} if units else {})
    return leaf("Resource", value, attributes)


# --- forms ----------------------------------------------------------------------------------------------------------

class TresForm(NamedTuple):
    """A text of TRES in which numbers are open. pieces: what stands before each and behind the last; match: the full
    match of a text, its groups the numbers; cpu, node, total: which of them are these (total: of GPUs), -1 for none;
    typed: those that add up to total; free: the others; memory: whether memory is said."""

    pieces: tuple[str, ...]
    match: Callable[[str], re.Match[str] | None]
    cpu: int
    node: int
    total: int
    typed: tuple[int, ...]
    free: tuple[int, ...]
    memory: bool

    def text(self, processors: int, nodes: int, amounts: Sequence[int]) -> str:
        """The text with these numbers; amounts: the free ones and the typed ones, in their order."""
        numbers = [0] * (len(self.pieces) - 1)
        for at, number in zip(self.free, amounts, strict=True):
            numbers[at] = number
        for at, number in ((self.cpu, processors), (self.node, nodes)):
            if at >= 0:
                numbers[at] = number
        if self.total >= 0 and self.typed:
            numbers[self.total] = sum(numbers[at] for at in self.typed)
        return self.pieces[0] + "".join(f"{n}{piece}" for n, piece in zip(numbers, self.pieces[1:], strict=True))

    def adds_up(self, numbers: Sequence[str]) -> bool:
        """Whether the GPUs of the types are as many as all of them, where both are said."""
        if not self.typed or self.total < 0:
            return True
        if len(self.typed) == 1:
            return numbers[self.total] == numbers[self.typed[0]]
        return int(numbers[self.total]) == sum([int(numbers[at]) for at in self.typed])


class TresForms:
    """The forms of the texts of TRES in a log."""

    def __init__(self) -> None:
        self.forms: list[TresForm] = []
        self._last: int = 0

    def cut(self, text: str) -> tuple[int, tuple[str, ...]] | None:
        """(which form, its numbers) of a text; None where the reader has to look at it."""
        forms, last = self.forms, self._last
        if forms and (match := (form := forms[last]).match(text)) is not None:
            numbers = match.groups()
            return (last, numbers) if not form.typed or form.adds_up(numbers) else None
        for at, form in enumerate(forms):
            if (match := form.match(text)) is not None:
                self._last = at
                numbers = match.groups()
                return (at, numbers) if form.adds_up(numbers) else None
        return self._cut_anew(text)

    def _cut_anew(self, text: str) -> tuple[int, tuple[str, ...]] | None:
        """As ``cut``, of a text of none of the forms so far."""
        new = _form(text) if len(self.forms) < _FORMS else None
        if new is None or (match := new.match(text)) is None:
            return None
        self._last = len(self.forms)
        self.forms.append(new)
        numbers = match.groups()
        return (self._last, numbers) if new.adds_up(numbers) else None


def _form(text: str) -> TresForm | None:
    """The form of a text; zeros belong to it. None where something is odd or stands twice."""
    kinds, pattern, pieces = list[str](), "", [""]
    zeros = set[str]()
    for n, item in enumerate(text.split(",") if text else ()):
        match = _ITEM.fullmatch(item)
        if match is None or (match[3] and match[1] != "mem") or match[1] in zeros or match[1] in kinds:
            return None
        kind, number, unit = match.groups()
        if number == "0" and kind in ("cpu", "node"):
            return None
        before = f"{',' if n else ''}{kind}="
        if number == "0":
            zeros.add(kind)
            pattern += re.escape(before + number + unit)
            pieces[-1] += before + number + unit
            continue
        kinds.append(kind)
        pattern += f"{re.escape(before)}([1-9][0-9]{{0,{8 if kind in ('cpu', 'node') else 14}}}){unit}"
        pieces[-1] += before
        pieces.append(unit)
    if any(kind.startswith("gres/gpu") for kind in zeros) and any(kind.startswith("gres/gpu") for kind in kinds):
        return None
    at = {kind: i for i, kind in enumerate(kinds)}
    typed = tuple(i for i, kind in enumerate(kinds) if kind.startswith("gres/gpu:"))
    total = at.get("gres/gpu", -1)
    bound = {at.get("cpu", -1), at.get("node", -1), total if typed else -1}
    return TresForm(tuple(pieces), re.compile(pattern, re.ASCII).fullmatch, at.get("cpu", -1), at.get("node", -1),
                    total, typed, tuple(i for i in range(len(kinds)) if i not in bound), "mem" in at)


def memory_place(form: TresForm) -> tuple[int, int] | None:
    """(which number of a form is its memory, bytes of one); None where no memory is said."""
    at = _which(form, "mem")
    return None if at is None else (at, byte_factor(f"{form.pieces[at + 1][:1].strip(',') or 'M'}B"))


def energy_place(form: TresForm) -> tuple[int, int] | None:
    """(which number of a form is its energy, joules of one); None where no energy is said."""
    at = _which(form, "energy")
    return None if at is None else (at, 1)


def _which(form: TresForm, kind: str) -> int | None:
    """Which number of a form is that of a kind."""
    return next((at for at, before in enumerate(form.pieces[:-1]) if f",{before}".endswith(f",{kind}=")), None)


#: Class, tag, attributes and number of a property.
_Place = tuple[type[Property], str, dict[str, str], int]


class Places(NamedTuple):
    """Where the numbers of a form come out. cpu, node: which numbers are these, -1: None; total: of the memory (number,
    letter of its unit, class, attributes); properties, energy: (class, tag, attributes, number) of each."""

    cpu: int
    node: int
    total: tuple[int, str, type[Property], dict[str, str]] | None
    properties: tuple[_Place, ...]
    energy: _Place | None


class TresTexts(dict[str, TRES]):
    """What ``tres`` makes of the texts of one column (``name``); short ones are remembered."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.forms = name, TresForms()
        self._places: dict[int, Places | None] = {}

    def __missing__(self, text: str) -> TRES:
        if not LONGEST:             # the tests read every log with care, too
            return tres(text, self.name)
        cut = self.parted(text)
        result = tres(text, self.name) if cut is None else self._put(*cut)
        if len(text) < _SHORT:
            if len(self) >= _TEXTS:
                self.clear()
            self[text] = result
        return result

    def parted(self, text: str) -> tuple[int, tuple[str, ...], Places] | None:
        """(which form, its numbers, where they come out) of a text; None where ``tres`` has to look at it."""
        cut = self.forms.cut(text)
        if cut is None:
            return None
        form, numbers = cut
        places = self._places[form] if form in self._places else self.places(form)
        return None if places is None else (form, numbers, places)

    def places(self, form: int) -> Places | None:
        """Where the numbers of a form come out; None where it has none."""
        try:
            return self._places[form]
        except KeyError:
            places = self._places[form] = self._learn(self.forms.forms[form])
            return places

    def _put(self, form: int, numbers: tuple[str, ...], places: Places) -> TRES:
        """The numbers of a text of a form in their places."""
        cpu, node, memory, properties, energy = places
        size, total = "", None
        if memory is not None:
            place, letter, memory_class, of_total = memory
            size = numbers[place] + letter
            total = memory_class("Memory", Decimal(numbers[place]), of_total)
        return TRES(int(numbers[cpu]) if cpu >= 0 else None, int(numbers[node]) if node >= 0 else None, size, total,
                    tuple([kind(tag, Decimal(numbers[at]), attributes) for kind, tag, attributes, at in properties]),
                    energy=None if energy is None else energy[0](energy[1], Decimal(numbers[energy[3]]), energy[2]))

    def _learn(self, form: TresForm) -> Places | None:
        """The places of a form, by what is made of numbers that are told apart; None where one does not come out as it
        is."""
        if len(form.free) > _MARKED:
            return None
        marks = [_MARK << n for n in range(len(form.free))]
        text = form.text(_MARK - 1, _MARK - 2, marks)
        match = form.match(text)
        if match is None:
            return None
        at = {Decimal(number): n for n, number in enumerate(match.groups())}
        result = tres(text, self.name)
        total = result.total
        numbers = [p.value for p in (*result.properties, *(p for p in (total, result.energy) if p is not None))]
        if result.gpus_differ or any(number not in at for number in numbers) or (result.cpu, result.nodes) != (
                _MARK - 1 if form.cpu >= 0 else None, _MARK - 2 if form.node >= 0 else None):
            return None
        return Places(form.cpu, form.node, None if total is None or not isinstance(total.value, Decimal) else (
            at[total.value], result.size.lstrip("0123456789"), type(total), total.attributes),
            tuple(_place(p, at) for p in result.properties),
            None if result.energy is None else _place(result.energy, at))


def _place(item: Property, at: Mapping[Decimal, int]) -> _Place:
    """Where the number of a property stands. at: number -> which one it is."""
    assert isinstance(item.value, Decimal)
    return type(item), item.tag, item.attributes, at[item.value]
