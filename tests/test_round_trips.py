"""What a document means survives being written and read: ``match`` says the same of both, whatever is offered."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.element import Item, Property, new_property
from sssjob.document.model import Document, Job, JobGroup, Requested, TaskGroup
from sssjob.findings import Findings
from sssjob.request import match
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.validation import check
from sssjob.xml.profiles import PROFILES
from sssjob.xml.reader import read_document
from tests.cases import Cases
from tests.strategies import FIXED, examples

NAMES = st.sampled_from(["a", "b", "c", "n1", "n2"])
#: Names of nodes and features as they may be said; one of the offer is among them or is not.
SAID: st.SearchStrategy[tuple[str, dict[str, str]]] = st.one_of(
    NAMES.map(lambda name: (name, {})),
    st.lists(NAMES, min_size=1, max_size=3).map(lambda names: (",".join(names), {"aggregation": "List"})),
    st.lists(NAMES, min_size=2, max_size=3).map(lambda names: (
        ";".join(names), {"aggregation": "List", "delimiter": ";"})),
    st.just(("[ab]|n.*", {"aggregation": "Pattern"})))
RANGES = st.sampled_from(["n[1-2]", "n[2-3],b", "x[1-9]"]).map(lambda text: (text, {"aggregation": "Range"}))
SIGNS = {"conj": st.sampled_from(["And", "Or", "Nand", "Nor"]), "op": st.sampled_from(["EQ", "NE"]),
         "preference": st.sampled_from(["1", "2", "-1"])}


@st.composite
def _property(draw: st.DrawFn, slot: bool) -> Property:
    tag = draw(st.sampled_from(["Feature", "Feature", "Node", "Queue", "Network", "Machine", "Processors",
                                "NodeCount"]))
    value: int | str
    more: dict[str, str] = {}
    if tag in ("Feature", "Node"):
        value, more = draw(st.one_of(SAID, RANGES) if tag == "Node" else SAID)
    else:
        value = draw(st.integers(1, 4)) if tag in ("Processors", "NodeCount") else draw(NAMES)
    if slot:
        chosen = draw(st.sets(st.sampled_from(sorted(SIGNS)), max_size=1))
        more = {**more, **{name: draw(SIGNS[name]) for name in chosen}}
        if tag == "Network" and "op" not in more and draw(st.booleans()):
            value, more = "[ab]", {**more, "op": "Match"}
    return new_property(tag, value, more)


@st.composite
def _items(draw: st.DrawFn, slot: bool = False, most: int = 4) -> list[Item]:
    items: list[Item] = list(draw(st.lists(_property(slot), max_size=most)))
    if slot and len(items) > 1 and draw(st.booleans()):
        for at, sign in ((0, "1"), (draw(st.integers(0, len(items) - 1)), "-1")):
            item = items[at]
            assert isinstance(item, Property)
            total = int(item.get("group") or 0) + int(sign)
            items[at] = item.replace(group=str(total) if total else None)
    return items


@st.composite
def requests(draw: st.DrawFn) -> Document:
    """A document with one job that asks, bare and below Requested, for the job and for its task groups."""
    job = Job(draw(_items()))
    if draw(st.booleans()):
        job.items.append(Requested(draw(_items(True))))
    for _ in range(draw(st.integers(0, 2))):
        group = TaskGroup(draw(_items(most=3)))
        if draw(st.booleans()):
            group.items.append(Requested(draw(_items(True, 3))))
        job.items.append(group)
    return Document(JobGroup([job]) if draw(st.booleans()) else job)


@st.composite
def offers(draw: st.DrawFn) -> Document:
    """What a site may have, and what a job was given."""
    names = [new_property(tag, draw(NAMES)) for tag in ("Queue", "Network", "Machine") if draw(st.booleans())]
    sets = [new_property(tag, name) for tag in ("Feature", "Node") for name in draw(st.lists(NAMES, max_size=3))]
    amounts = [new_property(tag, draw(st.integers(1, 4))) for tag in ("Processors", "NodeCount")]
    return Document(Job([*names, *sets, *amounts]))


def verdict(request: Document, offer: Document) -> tuple[bool, object]:
    answer = match(request, offer)
    return answer.met, answer.score


def again(name: str, profile: str, document: Document) -> Document | None:
    """What comes back; None where a finding says that not all of it went out."""
    findings = Findings("x")
    text = get(name).write(document, WriteContext(findings, profile=profile))
    if any(f.kind == "dropped" for f in findings):
        return None
    return get(name).read(text.encode(), ReadContext(profile=profile if profile == "mam" else "liberal"))


DOORS = [("sss", profile) for profile in PROFILES] + [("sss-json", "3.1")]


@settings(max_examples=examples(25), derandomize=FIXED, deadline=None)
@given(requests(), offers())
def test_a_written_request_asks_for_the_same_and_a_written_offer_offers_it(request: Document, offer: Document) -> None:
    with Cases() as case:
        for name, profile in DOORS:
            with case(f"{name} {profile}"):
                read = again(name, profile, request)
                assert read is None or verdict(read, offer) == verdict(request, offer)
                read = again(name, profile, offer)
                assert read is None or verdict(request, read) == verdict(request, offer)


@settings(max_examples=examples(25), derandomize=FIXED, deadline=None)
@given(requests())
def test_one_feature_stands_bare(request: Document) -> None:
    """As the text has it, unless a finding says that nothing else means the same."""
    findings = Findings("x")
    text = get("sss").write(request, WriteContext(findings))
    strict = Findings("x")
    check(read_document(text), strict, "3.1")
    assert {f.rule for f in findings} >= {f.rule for f in strict if f.subject == "Feature" and f.rule == "SSS304"}
