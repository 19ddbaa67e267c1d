"""What a job asks of names survives a script: the document that is read back is met by the same offers, unless a
finding names the property."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.element import Item, Property, new_property
from sssjob.document.model import Document, Job, Requested
from sssjob.findings import Findings, Policy
from sssjob.request import match
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.registry import SCRIPT_FORMATS
from tests.cases import Cases
from tests.strategies import FIXED, examples

NAMES = {"Feature": st.sampled_from(["a", "b", "c"]), "Node": st.sampled_from(["n1", "n2", "x"]),
         "Queue": st.sampled_from(["q", "r"])}
LISTS = [{}, {}, {"aggregation": "List"}, {"aggregation": "List", "delimiter": ";"}]


@st.composite
def _condition(draw: st.DrawFn, signs: bool) -> Property:
    tag = draw(st.sampled_from(sorted(NAMES)))
    value, more = draw(NAMES[tag]), dict[str, str]()
    if tag != "Queue":
        more = draw(st.sampled_from(LISTS))
        if more:
            value = more.get("delimiter", ",").join(draw(st.lists(NAMES[tag], min_size=1, max_size=3)))
    if tag == "Node" and draw(st.integers(0, 4)) == 0:
        value, more = draw(st.sampled_from([("n[1-2]", {"aggregation": "Range"}), ("n.*", {"aggregation": "Pattern"})]))
    for name, texts in (("op", ["NE"]), ("conj", ["Or", "Or", "Nand"]), ("preference", ["1", "-1"])) if signs else ():
        if draw(st.integers(0, 3)) == 0:
            more = {**more, name: draw(st.sampled_from(texts))}
    return new_property(tag, value, more)


@st.composite
def requests(draw: st.DrawFn) -> Job:
    """Bare conditions, and an expression of them in brackets here and there."""
    items: list[Item] = list(draw(st.lists(_condition(False), max_size=2)))
    asked = draw(st.lists(_condition(True), max_size=4))
    if len(asked) > 1 and draw(st.booleans()):
        last = draw(st.integers(1, len(asked) - 1))
        asked[0], asked[last] = asked[0].replace(group="1"), asked[last].replace(group="-1")
    if draw(st.booleans()):
        asked.append(new_property("NodeCount", draw(st.integers(1, 3))))
    return Job([new_property("Executable", "/bin/true"), *items, *([Requested(asked)] if asked else [])])


@st.composite
def offers(draw: st.DrawFn) -> Job:
    """Some of the names."""
    sets = [new_property(tag, name) for tag in ("Feature", "Node")
            for name in draw(st.lists(NAMES[tag], max_size=3, unique=True))]
    return Job([new_property("Queue", draw(NAMES["Queue"])), *sets])


def conditions(job: Job) -> Job:
    """The job with nothing but what it asks of names."""
    kept: list[Item] = [item for item in job.items if item.tag in NAMES]
    for block in job.containers():
        if block.tag == "Requested":
            kept.append(Requested([p for p in block.properties() if p.tag in NAMES]))
        elif block.tag == "TaskGroup":
            kept += conditions(block).items     # type: ignore[arg-type]
    return Job(kept)


@settings(max_examples=examples(60), derandomize=FIXED, deadline=None)
@given(requests(), st.lists(offers(), min_size=1, max_size=4))
def test_conditions_come_back(job: Job, offered: list[Job]) -> None:
    with Cases() as case:
        for name in SCRIPT_FORMATS:
            with case(name):
                _come_back(name, job, offered)


def _come_back(name: str, job: Job, offered: list[Job]) -> None:
    findings = Findings("x")
    text = get(name).write(Document(job), WriteContext(findings, policy=Policy.WARN))
    back = get(name).read(text.encode(), ReadContext(policy=Policy.WARN))
    subjects = {f.subject.partition("/")[0] for f in findings}
    if subjects.isdisjoint(NAMES):
        again = conditions(next(j for j, _ in back.jobs()))
        for offer in offered:
            assert match(again, offer).met == match(conditions(job), offer).met
