"""The smallest change with which an offer meets, in words, and that it always does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from sssjob.document.model import Job
from sssjob.request import Offer, match
from sssjob.request.changing import Change, smallest_change
from sssjob.xml.reader import read_document
from tests.request.test_many import conditions, machines
from tests.strategies import FIXED, examples, requests


def job(text: str) -> Job:
    root = read_document(f"<Job>{text}</Job>".encode()).root
    assert isinstance(root, Job)
    return root


@pytest.mark.parametrize(("request_", "offer", "changes"), [
    ("<Queue>batch</Queue>", "<Queue>batch</Queue>", []),
    ("<Requested><Duration>7200</Duration><Queue>batch</Queue></Requested>",
     "<Duration>3600</Duration><Queue>debug</Queue>",
     ["Duration 3600 instead of 7200", "Queue debug instead of batch"]),
    # in the unit and the metric in which it is asked for
    ("<Memory units='GB'>8</Memory>", "<Memory units='MB'>5000</Memory>", ["Memory 4 GB instead of 8"]),
    ("<Requested><Memory units='GB' metric='PerNode'>9</Memory></Requested>",
     "<NodeCount>2</NodeCount><Memory units='GB'>8</Memory>", ["Memory 4 GB instead of 9"]),
    ("<Requested><Feature>ib</Feature><Resource name='GPU'>2</Resource></Requested>", "<Queue>q</Queue>",
     ["without Feature = ib", "without Resource GPU = 2"]),
    ("<Requested><Queue op='Match'>b.*</Queue></Requested>", "<Queue>long</Queue>", ["Queue long instead of b.*"]),
    ("<Requested><Processors op='LT'>1</Processors></Requested>", "<Processors>4</Processors>",
     ["without Processors < 1"]),
    # of alternatives the one with the fewest changes
    ("<Requested><Queue>a</Queue><Processors>8</Processors><Queue conj='Or'>b</Queue></Requested>",
     "<Queue>c</Queue><Processors>4</Processors>", ["Queue c instead of b"]),
    # what all of it comes to
    ("<TaskGroup><TaskCount>8</TaskCount></TaskGroup>", "<Processors>5</Processors>", ["TaskCount 5 instead of 8"]),
    ("<Requested><Processors>16</Processors><Memory metric='PerProcessor'>10</Memory></Requested>",
     "<Processors>16</Processors><Memory>100</Memory>", ["Memory 6 instead of 10"]),
])
def test_in_words(request_: str, offer: str, changes: list[str]) -> None:
    smallest = smallest_change(job(request_), None, Offer.of(job(offer)))
    assert smallest is not None
    assert [str(change) for change in smallest] == changes


def test_none_is_known() -> None:
    """Two task groups of one processor each do not fit where there is one, whatever is lowered."""
    two = job("<TaskGroup><TaskCount>1</TaskCount></TaskGroup>" * 2)
    assert smallest_change(two, None, Offer.of(job("<Processors>1</Processors>"))) is None


@settings(max_examples=examples(40), deadline=None, derandomize=FIXED)
@given(conditions() | requests(wide=True), machines())
def test_with_the_change_it_is_met(request_: str, offered: str) -> None:
    asked, offer = job(request_), Offer.of(job(offered))
    changes = smallest_change(asked, None, offer)
    if changes is not None:
        assert bool(changes) is not match(asked, offer).met
        assert all(change != Change(change.property, change.property) for change in changes)
