"""Verdicts beside those of HTCondor: random requests and offers, said as ClassAds too, for what both can say.

The conditions are handed to HTCondor token by token (its ``&&`` binds over ``||`` as And does over Or), so that our own
parser has no part in it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

import pytest

from sssjob.document.model import Job, Property, Requested, new_property
from sssjob.request import Offer, match, parse
from sssjob.request.tree import NEGATED
from sssjob.xml.reader import read_document

classad: Any = pytest.importorskip("classad2", reason="HTCondor's bindings (htcondor) have no wheel for this Python")

PAIRS: Final = 2000
OPS: Final = ("EQ", "NE", "LT", "LE", "GT", "GE")
SIGNS: Final = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
AMOUNTS: Final = ("Processors", "NodeCount", "Memory", "Disk", "Duration")
WHOLE: Final = ("Processors", "NodeCount")
MIB: Final = {"": 1, "MB": 1, "GB": 1024}
QUEUES: Final = ("batch", "Batch", "long", "gpu")
FEATURES: Final = ("ib", "gpu", "zen")


@dataclass(frozen=True)
class Condition:
    """One condition with its place in the tree."""

    tag: str
    value: int | str
    units: str
    op: str
    conj: str
    group: int

    def property(self) -> Property:
        attributes = {"op": self.op, "conj": self.conj, "group": str(self.group), "units": self.units}
        return new_property(self.tag, self.value,
                            {name: text for name, text in attributes.items() if text and text != "0"})

    def classad(self, capacity: bool) -> str:
        """The condition in the language of ClassAds. capacity: an amount that is offered is up to how much there is,
        and a negated condition asks for the opposite amount; else it is so much."""
        negated = self.conj in ("Nand", "Nor")
        if self.tag in AMOUNTS and capacity:
            return self._room(NEGATED[self.op] if negated else self.op)
        if self.tag in AMOUNTS:
            text = f"TARGET.{self.tag} {SIGNS[self.op]} {self._number()}"
        elif self.tag == "Feature":
            text = f'{"!" * (self.op == "NE")}member("{self.value}", TARGET.Feature)'
        else:
            text = f'TARGET.{self.tag} {"=!=" if self.op == "NE" else "=?="} "{self.value}"'
        if self.tag != "Queue":     # what is not offered is not equal, and nothing else
            text = f"ifThenElse(isUndefined(TARGET.{self.tag}), {str(self.op == 'NE').lower()}, {text})"
        return f"!({text})" if negated else f"({text})"

    def _room(self, op: str) -> str:
        number, least = self._number(), int(self.tag in WHOLE)
        there = f"TARGET.{self.tag}"
        text = {"EQ": f"{there} >= {number}", "GE": f"{there} >= {number}", "GT": f"{there} > {number}",
                "LE": f"{there} > 0 && {number} >= {least}", "LT": f"{there} > 0 && {number} > {least}",
                "NE": f"{there} > 0 && !({there} == 1 && {number} == 1 && {least} == 1)"}[op]
        return f"ifThenElse(isUndefined({there}), {str(op == 'NE').lower()}, {text})"

    def _number(self) -> int:
        return int(self.value) * MIB[self.units]


def conditions(draw: random.Random, names: list[str]) -> list[Condition]:
    """A random tree over these names."""
    tree, depth = [], 0
    for place, tag in enumerate(names):
        group = -depth if place == len(names) - 1 else draw.randint(-depth, 1)
        depth += group
        amount = tag in AMOUNTS
        value = draw.randint(0, 9) if amount else draw.choice(FEATURES if tag == "Feature" else QUEUES)
        units = draw.choice(("", "MB", "GB")) if tag in ("Memory", "Disk") else ""
        tree.append(Condition(tag, value, units, draw.choice(OPS if amount else ("EQ", "NE")),
                              draw.choice(("And", "And", "Or", "Nand", "Nor")), group))
    return tree


def requirements(tree: list[Condition], capacity: bool) -> str:
    tokens: list[str] = []
    for place, one in enumerate(tree):
        tokens += ["||" if one.conj in ("Or", "Nor") else "&&"] if place else []
        tokens += ["("] * one.group + [one.classad(capacity)] + [")"] * -one.group
    return " ".join(tokens)


def machine(draw: random.Random) -> tuple[list[Property], Any]:
    """A random offer, and the same as a ClassAd. Every one has processors and nodes."""
    properties: list[Property] = []
    ad = classad.ClassAd()
    for tag in AMOUNTS:
        if tag in WHOLE or draw.random() < 0.8:
            units = draw.choice(("", "MB", "GB")) if tag in ("Memory", "Disk") else ""
            value = draw.randint(0, 9)
            properties.append(new_property(tag, value, {"units": units} if units else {}))
            ad[tag] = value * MIB[units]
    if draw.random() < 0.8:
        queue = draw.choice(QUEUES)
        properties.append(new_property("Queue", queue))
        ad["Queue"] = queue
    features = draw.sample(FEATURES, draw.randint(0, len(FEATURES)))
    if features:
        properties += [new_property("Feature", feature) for feature in features]
        ad["Feature"] = features
    ad["Requirements"] = classad.ExprTree("true")
    return properties, ad


@pytest.mark.parametrize("capacity", [True, False])
def test_as_htcondor_matches(capacity: bool) -> None:
    """Amounts as capacity are asked about once each: what several of one name come to is no matter of ClassAds."""
    draw, outcomes = random.Random(19), [0, 0]
    for _ in range(PAIRS):
        names = [*AMOUNTS, "Queue", "Feature"] if capacity else [*AMOUNTS, "Queue", "Feature"] * 2
        draw.shuffle(names)
        tree = conditions(draw, names[:draw.randint(1, 6)])
        properties, ad = machine(draw)
        request = classad.ClassAd()
        request["Requirements"] = classad.ExprTree(requirements(tree, capacity))
        expression = parse(Requested([one.property() for one in tree]))
        verdict = match(expression, Offer.of(properties), delivered=not capacity)
        if "In all" in str(verdict.explanation):
            continue
        assert verdict.met is bool(ad.symmetricMatch(request)), (requirements(tree, capacity), str(ad))
        outcomes[verdict.met] += 1
    assert sum(outcomes) > PAIRS * 0.8 and min(outcomes) > PAIRS * 0.1


# --- what has to be on one node
PER_NODE: Final = ("Processors", "Memory", "GPU")


@dataclass(frozen=True)
class Places:
    """So many nodes, chunks or tasks, and what each of them needs: processors, MiB, GPUs."""

    what: str
    count: int
    each: dict[str, int]
    units: str
    spread: bool                # GPUs in all instead of for each

    def job(self) -> Job:
        """The same as a job."""
        text, requested = "", [f"<Processors>{self.count * self.each['Processors']}</Processors>"]
        metric = {"node": "PerNode", "chunk": "PerChunk", "task": "PerProcessor"}[self.what]
        memory = self.each["Memory"] * (1024 if self.units == "KB" else 1)
        gpus, gpu_metric = self.each["GPU"], metric
        if self.what == "node":
            requested.append(f"<NodeCount>{self.count}</NodeCount>")
            if self.spread:
                gpus, gpu_metric = gpus * self.count, "Total"
        elif self.what == "chunk":
            text = f"<Extension type='Scheduler' name='ChunkCount'>{self.count}</Extension>"
        if memory:
            requested.append(f"<Memory units='{self.units}' metric='{metric}'>{memory}</Memory>")
        if gpus:
            requested.append(f"<Resource name='GPU' metric='{gpu_metric}'>{gpus}</Resource>")
        return next(iter(read_document(f"<Job>{text}<Requested>{''.join(requested)}</Requested></Job>".encode())
                         .jobs()))[0]

    def classad(self) -> str:
        """The same in the language of ClassAds: each place on one node, and room for all of them."""
        if self.what == "node":
            return " && ".join(f"TARGET.{name} >= {amount}" for name, amount in self.each.items()) + (
                f" && TARGET.Nodes >= {self.count}")
        return " && ".join(f"TARGET.Nodes * (TARGET.{name} / {amount}) >= {self.count}"     # whole numbers
                           for name, amount in self.each.items() if amount)


def test_places_as_htcondor_matches() -> None:
    """Nodes, chunks and single tasks with processors, memory in several units, and GPUs."""
    draw, outcomes = random.Random(31), [0, 0]
    for _ in range(PAIRS):
        what = draw.choice(("node", "chunk", "task"))
        each = {"Processors": 1 if what == "task" else draw.randint(1, 9), "Memory": draw.randint(0, 9),
                "GPU": 0 if what == "task" else draw.randint(0, 3)}
        asked = Places(what, draw.randint(1, 6), each, draw.choice(("KB", "MB")), draw.random() < 0.5)
        nodes, has = draw.randint(1, 6), {name: draw.randint(1, 12) for name in PER_NODE}
        offer = [new_property("NodeCount", nodes), new_property("Processors", has["Processors"], {"metric": "PerNode"}),
                 new_property("Memory", has["Memory"] * 1024, {"metric": "PerNode", "units": "KB"}),
                 new_property("Resource", has["GPU"], {"name": "GPU", "metric": "PerNode"})]
        ad = classad.ClassAd()
        for name, amount in {"Nodes": nodes, **has}.items():
            ad[name] = amount
        ad["Requirements"] = classad.ExprTree("true")
        request = classad.ClassAd()
        request["Requirements"] = classad.ExprTree(asked.classad())
        verdict = match(asked.job(), Offer.of(offer))
        assert verdict.met is bool(ad.symmetricMatch(request)), (asked, str(ad), "\n".join(verdict.lines()))
        outcomes[verdict.met] += 1
    assert min(outcomes) > PAIRS * 0.1
