"""Requests side by side: what one takes of an offer is not free for the next one."""

from __future__ import annotations

import pytest

from sssjob.request import Offer, requests_in
from sssjob.request.taking import Taken, share_nodes
from tests.request.test_many import job

NODES = "<NodeCount>4</NodeCount><Processors>32</Processors><Memory units='GB' metric='PerNode'>16</Memory>"


def taken(*texts: tuple[str, int]) -> Taken:
    return Taken.of((request, count) for text, count in texts
                    for request in requests_in(job(f"<Requested>{text}</Requested>")))


@pytest.mark.parametrize(("before", "needed", "turn"), [
    ((), "<Processors>32</Processors>", 0),
    ((("<Processors>16</Processors>", 1),), "<Processors>16</Processors>", 0),
    ((("<Processors>16</Processors>", 1),), "<Processors>17</Processors>", 1),
    ((("<Processors>32</Processors>", 3),), "<Processors>1</Processors>", 3),
    # one that says nothing takes a processor; a node that is asked for with processors may be shared
    ((("<Duration>60</Duration>", 31),), "<Duration>60</Duration>", 0),
    ((("<Duration>60</Duration>", 32),), "<Duration>60</Duration>", 1),
    ((("<NodeCount>1</NodeCount><Processors>1</Processors>", 4),), "<NodeCount>1</NodeCount><Processors>1</Processors>",
     0),
    # memory of all nodes, in another unit
    ((("<Processors>1</Processors><Memory units='GB'>60</Memory>", 1),),
     "<Processors>1</Processors><Memory units='MB'>4096</Memory>", 0),
    ((("<Processors>1</Processors><Memory units='GB'>60</Memory>", 1),),
     "<Processors>1</Processors><Memory units='MB'>4097</Memory>", 1),
    # of what the offer does not say there is enough
    ((("<Resource name='License' type='x'>9</Resource>", 1),), "<Resource name='License' type='x'>9</Resource>", 0),
])
def test_in_which_turn_there_is_room(before: tuple[tuple[str, int], ...], needed: str, turn: int) -> None:
    offer = Offer.of(job(NODES))
    assert taken(*before).turn(offer, taken((needed, 1))) == turn
    step_by_step = Taken()
    for text, count in before:
        for _ in range(count):
            step_by_step.add(taken((text, 1)))
    assert step_by_step.turn(offer, taken((needed, 1))) == turn


def test_the_longest_counts() -> None:
    both = taken(("<Duration>60</Duration>", 1), ("<Duration>3600</Duration>", 2))
    assert (both.seconds, Taken().seconds) == (3600, 0)


@pytest.mark.parametrize(("nodes", "others", "shared"), [
    ("<Node>a1</Node>", "<Node>a1</Node>", True),
    ("<Node aggregation='Range'>a[1-9]</Node>", "<Node>a7</Node>", True),
    ("<Node aggregation='Range'>a[1-9]</Node>", "<Node aggregation='Range'>a[9-900]</Node>", True),
    ("<Node aggregation='Range'>a[1-9]</Node>", "<Node aggregation='Range'>a[10-900],b[1-9]</Node>", False),
    ("<Node aggregation='Range'>a[1-9]</Node>", "", False),
])
def test_offers_that_share_a_node(nodes: str, others: str, shared: bool) -> None:
    one, other = Offer.of(job(nodes + NODES)), Offer.of(job(others + NODES))
    assert share_nodes(one, other) is share_nodes(other, one) is shared
