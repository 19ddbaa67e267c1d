"""What has to be on one node: nodes of a request, chunks and tasks are not divided between nodes of an offer."""

from __future__ import annotations

import pytest

from sssjob.document.model import Job
from sssjob.request import Offer, match
from sssjob.request.many import Offers, verdicts
from sssjob.xml.reader import read_document

#: Ten nodes of 48 processors, 180 GB and 4 GPUs.
NODES = ("<NodeCount>10</NodeCount><Processors>480</Processors><Memory units='GB' metric='PerNode'>180</Memory>"
         "<Resource name='GPU' metric='PerNode'>4</Resource>")
WIDTH = "<Extension type='Scheduler' name='NodeProcessors'>48</Extension>"
CHUNKS = "<Extension type='Scheduler' name='ChunkCount'>{}</Extension>"


def job(text: str, requested: str = "") -> Job:
    return next(iter(read_document(f"<Job>{text}<Requested>{requested}</Requested></Job>".encode()).jobs()))[0]


@pytest.mark.parametrize("text, requested, meets", [
    ("<TaskDistribution type='TasksPerNode'>48</TaskDistribution>", "<NodeCount>2</NodeCount>", True),
    ("<TaskDistribution type='TasksPerNode'>49</TaskDistribution>", "<NodeCount>2</NodeCount>", False),
    ("", "<NodeCount>2</NodeCount><Processors>96</Processors>", True),
    ("", "<NodeCount>2</NodeCount><Processors>97</Processors>", False),
    ("", "<NodeCount op='GE'>2</NodeCount><Processors>97</Processors>", True),       # may lie on three
    ("", "<Processors>480</Processors>", True),
    ("<TaskDistribution>{1,2}{3}</TaskDistribution>", "", True),
    ("<TaskDistribution type='ProcessorsPerTask'>48</TaskDistribution>", "<Processors>96</Processors>", True),
    ("<TaskDistribution type='ProcessorsPerTask'>49</TaskDistribution>", "<Processors>98</Processors>", False),
    (CHUNKS.format(4), "<Processors>192</Processors>", True),
    (CHUNKS.format(4), "<Processors>193</Processors>", False),
    (CHUNKS.format(20), "<Memory units='GB' metric='PerChunk'>90</Memory>", True),
    (CHUNKS.format(2), "<Memory units='GB' metric='PerChunk'>200</Memory>", False),
    (CHUNKS.format(2), "<Resource name='GPU' metric='PerChunk'>4</Resource>", True),
    (CHUNKS.format(2), "<Resource name='GPU' metric='PerChunk'>5</Resource>", False),
    (CHUNKS.format(10), "<Processors>250</Processors>", True),
    (CHUNKS.format(11), "<Processors>275</Processors>", False),      # 25 on each: one on a node
    (CHUNKS.format(11), "<Processors>274</Processors>", True),       # ten of 25, and one of 24
    (CHUNKS.format(21), "<Memory units='GB' metric='PerChunk'>90</Memory>", False),
    (CHUNKS.format(10), "<Resource name='GPU' metric='PerChunk'>3</Resource>", True),
    (CHUNKS.format(11), "<Resource name='GPU' metric='PerChunk'>3</Resource>", False),
    ("<TaskDistribution type='ProcessorsPerTask'>25</TaskDistribution>", "<Processors>250</Processors>", True),
    ("<TaskDistribution type='ProcessorsPerTask'>25</TaskDistribution>", "<Processors>275</Processors>", False),
    ("", "<Processors>20</Processors><Memory units='GB' metric='PerProcessor'>90</Memory>", True),
    ("", "<Processors>20</Processors><Memory units='GB' metric='PerProcessor'>90.5</Memory>", False),
    ("", "<NodeCount>1</NodeCount><Resource name='GPU'>4</Resource>", True),
    ("", "<NodeCount>1</NodeCount><Resource name='GPU'>5</Resource>", False),
    ("", "<NodeCount>3</NodeCount><Resource name='GPU'>10</Resource>", True),
    ("", "<NodeCount>1</NodeCount><Memory units='GB'>181</Memory>", False),
    ("", "<NodeCount>2</NodeCount><Memory units='GB'>360</Memory>", True),
    ("<TaskDistribution type='TasksPerNode'>40</TaskDistribution>",
     "<NodeCount>1</NodeCount><Memory units='GB' metric='PerProcessor'>4.5</Memory>", True),
    ("<TaskDistribution type='TasksPerNode'>40</TaskDistribution>",
     "<NodeCount>1</NodeCount><Memory units='GB' metric='PerProcessor'>5</Memory>", False),
    ("<TaskDistribution type='ProcessorsPerTask'>40</TaskDistribution>",
     "<Processors>40</Processors><Memory units='GB' metric='PerProcessor'>5</Memory>", False)])
def test_one_place_is_on_one_node(text: str, requested: str, meets: bool) -> None:
    """Said alike of one offer and of many, however the offer says what its nodes have."""
    asked = job(text, requested)
    every = [Offer.of(job(offer)) for offer in (
        NODES + WIDTH, NODES.replace("<Processors>480", "<Processors metric='PerNode'>48"))]
    assert [match(asked, offer).met for offer in every] == [meets, meets], "\n".join(match(asked, every[0]).lines())
    assert [verdict.met for verdict in verdicts(asked, Offers(every))] == [meets, meets]


def test_totals_do_not_say_what_a_node_has() -> None:
    assert match(job("", "<NodeCount>2</NodeCount><Processors>97</Processors>"), Offer.of(job(NODES))).met


def test_the_reason_names_the_place() -> None:
    asked = job(CHUNKS.format(2), "<Processors>128</Processors>")
    assert [part.sentence() for part in match(asked, Offer.of(job(NODES + WIDTH))).explanation.failing()] == [
        "Processors >= 64 on one node: offered 48 (a chunk of 64 processors)"]


def test_memory_in_all_and_on_a_node_is_said_in_units_that_people_use() -> None:
    """In the largest one in which the amount is whole, as `explain` says it: bytes stood there."""
    asked = job(CHUNKS.format(20), "<Processors>40</Processors><Memory units='GB' metric='PerChunk'>91</Memory>")
    assert [part.sentence() for part in match(asked, Offer.of(job(NODES + WIDTH))).explanation.failing()] == [
        "Memory >= 1820 GB: offered 1800 GB (20 chunks of Memory 91 GB)",
        "room for 20 chunks, each with Memory 91 GB: offered 180 GB on each of 10 nodes (10 have room)"]
