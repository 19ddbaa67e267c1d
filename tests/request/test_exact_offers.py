"""A request of chunks is met by an offer of exactly what it comes to, and not by one unit less of anything."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.element import Property, new_property
from sssjob.request import Offer, match
from tests.laws.documents import read, request_in
from tests.strategies import FIXED, examples

_COUNT = st.integers(1, 6)


@st.composite
def _groups(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    """A task group of equal chunks, and what it comes to, worked out by hand."""
    chunks, processors, gibibytes, gpus = draw(_COUNT), draw(_COUNT), draw(_COUNT), draw(_COUNT)
    text = (f"<TaskGroup><Extension name='ChunkCount' type='Scheduler'>{chunks}</Extension><Requested>"
            f"<Processors metric='PerChunk'>{processors}</Processors>"
            f"<Memory metric='PerChunk' units='GB'>{gibibytes}</Memory>"
            f"<Resource name='GPU' metric='PerChunk'>{gpus}</Resource></Requested></TaskGroup>")
    return text, {"Processors": chunks * processors, "Memory": chunks * gibibytes, "Resource": chunks * gpus}


def _offered(totals: dict[str, int], less: str = "") -> Offer:
    """All of it, but for one unit of one amount."""
    attributes = {"Processors": {}, "Memory": {"units": "GB"}, "Resource": {"name": "GPU"}}
    properties: list[Property] = [new_property(tag, value - (tag == less), attributes[tag])
                                  for tag, value in totals.items()]
    return Offer.of(properties)


@settings(max_examples=examples(15), derandomize=FIXED, deadline=None)
@given(st.lists(_groups(), min_size=1, max_size=3))
def test_exactly_what_chunks_come_to_meets_and_one_unit_less_does_not(groups: list[tuple[str, dict[str, int]]]) -> None:
    """Over several groups of chunks of different sizes too."""
    request = request_in(read(f"<Job>{''.join(text for text, _ in groups)}</Job>"))
    totals = {tag: sum(of_group[tag] for _, of_group in groups) for tag in groups[0][1]}
    assert match(request, _offered(totals)).met
    assert not any(match(request, _offered(totals, less)).met for less in totals)
