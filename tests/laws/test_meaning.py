"""What a document asks for survives its way through a format: what is read again is met by the same offers and starts
as many copies, unless a finding says how it differs."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, given, settings

from sssjob.document.element import Container, Property, new_property
from sssjob.document.inherit import effective
from sssjob.document.model import Document
from sssjob.document.vocabulary import in_scope
from sssjob.findings import Policy
from sssjob.request import Offer, Request, Total, match
from sssjob.translators import ReadContext, get
from tests.accounting.test_quoted import quoted_as_charged
from tests.cases import Cases
from tests.laws.documents import geometries, job_of, read, request_in, request_of_text
from tests.laws.readers import READERS
from tests.laws.test_amounts import subject_words, written, written_of
from tests.strategies import FIXED, examples

FORMATS = (*READERS, "sss", "sss-json")
SETTINGS = settings(max_examples=examples(25), derandomize=FIXED, deadline=None,
                    suppress_health_check=list(HealthCheck))


def offered(total: Total, value: Fraction) -> Property:
    """An amount of an offer."""
    tag, name, kind = total.identity
    named = {k: v for k, v in (("name", name), ("type", kind), ("units", total.units)) if v}
    number = Decimal(value.numerator) / Decimal(value.denominator)
    return new_property(tag, int(number) if tag in ("Processors", "NodeCount") else number, named)


@lru_cache(maxsize=64)
def there_and_back(name: str, text: str) -> tuple[Document, Request, frozenset[str]]:
    """The document read again, what it asks for, and what findings are about."""
    output, findings = written_of(name, text)
    context = ReadContext(policy=Policy.WARN)
    back = get(name).read(output.encode(), context)
    return back, request_in(back), frozenset(word for f in (*findings, *context.findings) for word in subject_words(f)
                           if f.severity != "info" or f.rule == "SSS503")


def named(document: Document) -> list[Property]:
    """The features and nodes that a job names, and those of its defaults."""
    job, defaults = next(iter(document.jobs()))
    levels: list[Container] = [job] if defaults is None else [job, defaults]
    scopes = [scope for level in levels for scope in (level, *level.containers("Requested"))]
    return [item for scope in scopes for item in scope.items
            if isinstance(item, Property) and item.tag in ("Feature", "Node")]


def offers_answered_otherwise(name: str, text: str) -> str:
    """Where an offer meets a document and not what is read again of it, or the other way round; empty if none does."""
    document, request = read(text), request_of_text(text)
    totals = [total for total in request.totals.all() if total.known]
    _, again, findings = there_and_back(name, text)
    if findings - {"Environment", "Executable", "Launcher"}:
        return ""       # the other law sees to it that findings are about what differs
    nodes = next((int(total.value) for total in totals if total.identity[0] == "NodeCount"), 1)
    said = [new_property(e.tag, e.text) for e in named(document)]
    if (seconds := request.totals.seconds) is not None:
        said.append(new_property("Duration", seconds))
    one_each = said if any(total.identity[0] == "Processors" for total in totals) else [
        *said, new_property("Processors", max(nodes, len(request.totals.parts)))]     # for each node and each group
    offers = [Offer.of([*one_each, *(offered(total, total.value) for total in totals)])]
    offers += [Offer.of([*one_each, *(offered(t, t.value - 1 if t is less else t.value) for t in totals)])
               for less in totals
               if less.value > {"Processors": nodes, "NodeCount": 1}.get(less.identity[0], 0)]
    offers += [Offer.of([*(p for p in one_each if p is not less), *(offered(t, t.value) for t in totals)])
               for less in said]
    for offer in offers:
        if offer.properties:
            found, before = match(again, offer), match(request, offer)
            if found.met != before.met:
                return "\n".join((text, *before.lines(), *found.lines()))
    return ""


def copies_lost(name: str, text: str) -> str:
    """Where another number of copies starts after all, and nothing is told of it; else empty."""
    _, again, findings = there_and_back(name, text)
    about = {"TaskCount", "TaskDistribution", "TaskGroup", "NodeCount", "Processors"}
    if again.totals.copies == request_of_text(text).totals.copies or not findings.isdisjoint(about):
        return ""
    return f"{text}\n{written_of(name, text)[0]}"


@SETTINGS
@given(geometries())
def test_the_same_offers_meet_what_is_read_again_and_as_many_copies_start(text: str) -> None:
    """Both laws hold of each document in each format, and its quote is what just that costs: making a document up takes
    longer than looking at it."""
    with Cases() as case:
        for name in FORMATS:
            with case(name):
                assert not offers_answered_otherwise(name, text)
                assert not copies_lost(name, text)
        with case("quote"):
            job, defaults = next(iter(read(text).jobs()))
            quoted_as_charged(effective(job, defaults).fold())


#: Where a property can be said; {} is its place.
PLACES = {
    "bare": "{}", "requested": "<Requested>{}</Requested>",
    "task group": "<TaskGroup><TaskCount>2</TaskCount>{}</TaskGroup>",
    "task group, requested": "<TaskGroup><TaskCount>2</TaskCount><Requested>{}</Requested></TaskGroup>",
    "defaults": "<TaskGroupDefaults><Requested>{}</Requested></TaskGroupDefaults>"
                "<TaskGroup><TaskCount>2</TaskCount></TaskGroup>",
    "task": "<TaskGroup><TaskCount>2</TaskCount><TaskDefaults><Requested>{}</Requested></TaskDefaults></TaskGroup>",
}
VALUES: dict[str, int | Decimal] = {"Integer": 4, "Float": Decimal("2.5"), "Duration": 3600}
#: Which resource, or which Extension.
WHICH: dict[str, dict[str, str]] = {"Resource": {"name": "fpga"}, "Extension": {"name": "x", "type": "Scheduler"}}
#: A custom attribute says no more than that it is there, so that an Extension comes back bare and asks for nothing.
SAYS_LESS = {("psij", "Extension")}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("place", PLACES)
def test_every_property_that_can_be_requested_keeps_its_meaning(name: str, place: str) -> None:
    """Whatever of the vocabulary is asked for, at whatever level: an offer that has it and one that says nothing of it
    get the same answers from what is read again, unless a finding names it."""
    counts = [new_property("Processors", 80), new_property("NodeCount", 80)]
    for tag, row in in_scope("Requested").items():
        value: str | int | Decimal = VALUES.get(row.type, row.values[0] if row.values else "alpha")
        which = WHICH.get(tag, {})
        if (name, tag) in SAYS_LESS or (tag in ("Processors", "NodeCount") and place not in ("bare", "requested")):
            continue
        said = "".join(f" {k}='{v}'" for k, v in which.items())
        text = (f"<Job>\n<Executable>/bin/step</Executable>\n"
                f"{PLACES[place].format(f'<{tag}{said}>{value}</{tag}>')}\n</Job>")
        back, _, findings = there_and_back(name, text)
        if not findings.isdisjoint({tag, "TaskGroup"}):
            continue
        full = new_property(tag, value if isinstance(value, str) else value * 20, which)
        for offer in (Offer.of([*(c for c in counts if c.tag != tag), full]),
                      Offer.of([c for c in counts if c.tag != tag])):
            before, after = match(job_of(read(text)), offer), match(job_of(back), offer)
            assert before.met == after.met, "\n".join((tag, *before.lines(), *after.lines()))


def test_an_offer_that_names_nobody_is_for_everybody() -> None:
    """Credentials (section 5.1, table 3) are no capacity; one that names somebody else does not meet."""
    job = job_of(read("<Job><Requested><Project>chem</Project><User>ann</User></Requested></Job>"))
    assert match(job, Offer.of([new_property("Processors", 1)])).met
    assert not match(job, Offer.of([new_property("Processors", 1), new_property("Project", "bio")])).met


def test_the_node_of_a_task_tells_where_it_ran() -> None:
    """Bare in a Task a Node asks for nothing, at any door; below Requested it does."""
    text = ("<Job><Executable>/bin/step</Executable><TaskGroup><TaskCount>1</TaskCount><Task>{}</Task></TaskGroup>"
            "</Job>")
    output, findings = written("slurm", read(text.format("<Node>n1</Node>")))
    assert "n1" not in output and "results of a run are no part of a request" in {f.message for f in findings}
    output, findings = written("slurm", read(text.format("<Requested><Node>n1</Node></Requested>")))
    assert "--nodelist=n1" in output and "Node" not in {f.subject for f in findings}
