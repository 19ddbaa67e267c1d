"""A job in its outline says what the job says, and only jobs that differ in nothing but values share one."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting.dimensions import all_delivered
from sssjob.accounting.entries import LedgerError, Said
from sssjob.document.element import Property, Value
from sssjob.document.model import Delivered, Document, Job, Requested, TaskGroup
from sssjob.document.outlines import Outlines
from tests.strategies import documents, examples

NAMES = ("Id", "Machine", "Project", "StartTime", "Duration", "Memory", "Extension", "Delivered")
ATTRIBUTES: tuple[dict[str, str], ...] = (
    {}, {"units": "GB"}, {"name": "NativeId", "type": "LRM"}, {"type": "LRM", "name": "NativeId"}, {"name": "State"})
VALUES: st.SearchStrategy[Value] = st.sampled_from(["7", 7, 8, True])


@st.composite
def properties(draw: st.DrawFn) -> list[Property]:
    """Properties whose attributes are objects of their own."""
    return [Property(draw(st.sampled_from(NAMES)), draw(VALUES), dict(draw(st.sampled_from(ATTRIBUTES))))
            for _ in range(draw(st.integers(0, 4)))]


@st.composite
def odd_jobs(draw: st.DrawFn) -> Job:
    """A job with any number of Requested and Delivered, in any places."""
    job = Job(draw(properties()))
    for slot in draw(st.lists(st.sampled_from([Requested, Delivered]), max_size=3)):
        job.items.insert(draw(st.integers(0, len(job.items))), slot(draw(properties())))
    return job


def spelt(job: Job) -> tuple[object, ...]:
    """All of a job but its values, without any outline."""
    return tuple((item.tag, tuple(item.attributes.items()), item.value.__class__) if isinstance(item, Property) else
                 (item.tag, tuple((p.tag, tuple(p.attributes.items()), p.value.__class__) for p in item.properties()))
                 for item in job.items if isinstance(item, Property | Requested | Delivered))


def key(statement: Said) -> object:
    try:
        return statement.key
    except LedgerError as error:
        return str(error)


def holds(job: Job, outlines: Outlines) -> bool:
    """Whether a job has an outline; what that says is what the job says."""
    outlined = outlines.of(job)
    if outlined is None:
        return False
    outline, values = outlined.outline, outlined.values
    items: list[Any] = [*job.items]
    items += [item for slot in outline.slots for item in items[slot].items]
    for place, field in enumerate(outline.fields):
        assert (field.kind, field.tag, field.attributes) == (type(items[place]), items[place].tag,
                                                             items[place].attributes)
        assert not isinstance(items[place], Property) or (values[place], type(values[place])) == (
            items[place].value, field.value_class)
    assert items[:outline.bare] == job.items
    for slot, inside in outline.slots.items():
        assert [items[place] for place in inside] == items[slot].items
    assert {name: items[place] for name, place in outline.places.items()} == all_delivered(job)
    alone, walked = Said(job), Said(outlined)
    assert key(walked) == key(alone)
    assert [(walked.text(name), walked.number(name)) for name in NAMES] == [
        (alone.text(name), alone.number(name)) for name in NAMES]
    return True


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(odd_jobs(), min_size=2, max_size=6))
def test_jobs_share_an_outline_where_only_values_differ(jobs: list[Job]) -> None:
    outlines = Outlines()
    for job in jobs:
        assert holds(job, outlines)
    for one in jobs:
        for other in jobs:
            of_one, of_other = outlines.of(one), outlines.of(other)
            assert of_one is not None and of_other is not None
            assert (of_one.outline is of_other.outline) is (spelt(one) == spelt(other))


@settings(max_examples=examples(20), deadline=None)
@given(documents())
def test_any_document(document: Document) -> None:
    outlines = Outlines()
    for job, _ in list(document.jobs()) * 2:
        assert holds(job, outlines) or job.reference is not None or any(
            not isinstance(item, Property) for item in job.items)


def test_what_stands_in_parts_has_no_outline() -> None:
    """Its task groups may say what the job does not."""
    for job in (Job([TaskGroup([Property("Id", "1")])]), Job([], None, "other"), Job([Delivered([], None, "other")])):
        assert Outlines().of(job) is None


def test_attributes_of_two_jobs_are_not_taken_for_each_other() -> None:
    """Though the ones of the first job are gone when those of the second take their place in memory."""
    outlines, units = Outlines(), ("MB", "GB")
    for n in range(400):
        outlined = outlines.of(Job([Property("Memory", n, {"units": units[n % 2]})]))
        assert outlined is not None and outlined.outline.fields[0].attributes == {"units": units[n % 2]}
