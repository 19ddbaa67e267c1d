"""Hypothesis strategies of job objects: any document that XML and the JSON twin can hold."""

from __future__ import annotations

import os
from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from sssjob.document.element import Container, Item, Property, Raw, Value, new_property
from sssjob.document.model import CLASSES, Document, File
from sssjob.document.vocabulary import AWARENESS, CONTAINERS, DELIVERED, REQUESTED, Attribute, Element, in_scope

__all__ = ["attribute_texts", "containers", "documents", "examples", "properties", "requests", "values"]

_LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Zl", "Zp", "Zs", "Cf", "Co"))
#: Text without outer white space, control or invisible characters.
WORDS = st.text(_LETTERS, min_size=1, max_size=12)
_AMOUNTS = st.decimals(min_value=0, max_value=10**12, allow_nan=False, allow_infinity=False, places=3)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "Integer": st.integers(0, 10**12), "DateTime": st.integers(0, 2**33), "Duration": st.integers(0, 10**9),
    "Float": _AMOUNTS, "Boolean": st.booleans(), "String": WORDS,
}


#: The few examples of a law are always the same, so that a run says the same as the one before; many are drawn anew.
FIXED: Final = "SSSJOB_EXAMPLES" not in os.environ


def examples(few: int) -> int:
    """How many examples a law is tried on: few, or as many as ``SSSJOB_EXAMPLES`` says."""
    return int(os.environ.get("SSSJOB_EXAMPLES") or few)


@cache
def values(e: Element) -> st.SearchStrategy[Value]:
    """Values of an element's type."""
    if e.may_be_empty and e.verbatim:
        return st.one_of(st.just(""), WORDS, st.just(" two\nlines "))
    return _VALUES[e.type]


@cache
def attribute_texts(a: Attribute) -> st.SearchStrategy[str]:
    """Canonical texts of an attribute."""
    if a.values:
        return st.sampled_from(a.values)
    if a.type == "Boolean":
        return st.sampled_from(("true", "false"))
    if a.type == "String":
        return st.sampled_from(("GB", "MB")) if a.name == "units" else WORDS
    return st.integers(1, 9).map(str)


@st.composite
def properties(draw: st.DrawFn, container: str) -> Property:
    """A property that may stand in a container, with some of its attributes."""
    e = draw(_elements(container))
    rows, some = _attributes(container, e)
    wanted = draw(some) | {a.name for a in e.attributes if a.required}
    attributes = {n: draw(attribute_texts(rows[n])) for n in rows if n in wanted}
    return new_property(e.name, draw(values(e)), attributes)


# Strategies are made once: one that is made while an example is drawn costs as much as what it draws.

@cache
def _elements(container: str) -> st.SearchStrategy[Element]:
    return st.sampled_from(list(in_scope(container).values()))


@cache
def _attributes(container: str, e: Element) -> tuple[dict[str, Attribute], st.SearchStrategy[set[str]]]:
    """The attributes that an element may have in a container, by their names, and some of these names."""
    inherited = {"R": REQUESTED, "D": DELIVERED}.get(CONTAINERS[container].category, ())
    rows = {a.name: a for a in (*inherited, *e.attributes, AWARENESS)}
    return rows, st.sets(st.sampled_from(list(rows)), max_size=3)


@cache
def _some_properties(container: str) -> st.SearchStrategy[list[Property]]:
    return st.lists(properties(container), min_size=1, max_size=5)


@cache
def _some_containers(name: str, depth: int, most: int) -> st.SearchStrategy[list[Container]]:
    return st.lists(containers(name, depth), max_size=most)


_RAWS = st.builds(Raw, st.sampled_from(("Unknown", "{urn:other}thing")),
                  st.dictionaries(st.sampled_from(("a", "value")), WORDS, max_size=2), WORDS,
                  st.lists(st.builds(Raw, st.just("Inner"), st.just({}), WORDS), max_size=2))
_MAYBE_RAW = st.lists(_RAWS, max_size=1)
_POLICIES: st.SearchStrategy[dict[str, str]] = st.sampled_from(({}, {"awarenessPolicy": "Ignore"}))


@st.composite
def containers(draw: st.DrawFn, name: str, depth: int = 2) -> Container:
    """A container with properties, children and now and then an element of another vocabulary, in any order."""
    items: list[Item] = list(draw(_some_properties(name)))
    if depth:
        for child, _, _ in CONTAINERS[name].children:
            most = 2 if CONTAINERS[child].category or depth == 1 else 1
            items += draw(_some_containers(child, depth - 1, most))
    items += draw(_MAYBE_RAW)
    policy = draw(_POLICIES)
    return CLASSES[name](draw(st.permutations(items)), dict(policy))


_FILES = st.lists(st.builds(File, WORDS, st.text(st.characters(codec="utf-8"), max_size=30),
                            st.sampled_from((None, "base64"))), max_size=2, unique_by=lambda f: f.id)
_ROOTS = st.sampled_from(("Job", "JobGroup", "TaskGroup", "Requested", "Delivered")).flatmap(
    cache(lambda name: containers(name)))


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """A document with one of the roots; with Files beside it now and then."""
    root = draw(_ROOTS)
    return Document(root, {f.id: f for f in draw(_FILES)})


_COUNTS = st.one_of(st.none(), st.integers(1, 6))
_FEW = ("Total", "PerNode", "PerProcessor")
_METRICS = (*_FEW, "PerGPU", "PerSlot", "PerChunk")


@st.composite
def requests(draw: st.DrawFn, *, wide: bool = False) -> str:
    """The inside of a Job that asks for processors, nodes, memory and GPUs at the job, its task groups and their tasks.

    wide: for licences and a Duration too, with every metric at any level and tasks one by one, so that now and then
    nothing says what an amount is multiplied with.
    """

    def amount(tag: str, **attributes: str) -> str:
        value = draw(_COUNTS)
        said = "".join(f' {k}="{v}"' for k, v in attributes.items())
        return "" if value is None else f"<{tag}{said}>{value}</{tag}>"

    def memory(metrics: tuple[str, ...]) -> str:
        per = draw(st.sampled_from(metrics))
        units = draw(st.sampled_from(("MB", "GB"))) if wide else "MB"
        return amount("Memory", units=units, **({} if per == "Total" else {"metric": per}))

    def level(nodes: bool) -> str:
        text = amount("Processors") + amount("Resource", name="GPU")
        if nodes:
            text = f"<NodeCount>{draw(st.integers(1, 4))}</NodeCount>" + text
        if wide:
            text += memory(_METRICS) + amount("Resource", name="License", type="matlab")
        else:
            text += memory(tuple(per for per in _FEW if per == "Total" or (per == "PerNode" and nodes) or (
                per == "PerProcessor" and "<Processors" in text)))
        return f"<Requested>{text}</Requested>" if draw(st.booleans()) else text

    def task() -> str:
        if not wide:
            return amount("Processors") + amount("Memory")
        return amount("Processors") + amount("Resource", name="GPU", type="a100") + memory(_METRICS)

    groups = []
    for _ in range(draw(st.integers(0, 3))):
        tasks = draw(_COUNTS)
        count = "" if tasks is None else f"<TaskCount>{tasks}</TaskCount>"
        inner = f"<TaskDefaults>{task()}</TaskDefaults>" if draw(st.booleans()) else ""
        if wide:
            inner += draw(st.sampled_from(("", '<TaskDistribution type="TasksPerNode">2</TaskDistribution>',
                                           '<TaskDistribution type="ProcessorsPerTask">3</TaskDistribution>')))
            inner += "".join(f"<Task>{task()}</Task>" for _ in range(draw(st.integers(0, 2))))
        groups.append(f"<TaskGroup>{count}{level(draw(st.booleans()))}{inner}</TaskGroup>")
    duration = amount("Duration") if wide else ""
    return duration + level(draw(st.booleans())) + "".join(groups)
