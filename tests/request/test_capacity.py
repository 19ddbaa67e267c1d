"""An offer is capacity: what is asked for in all, held against up to how much there is."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings

from sssjob.document.model import Job, JobDefaults, Property, new_property
from sssjob.request import Offer, Total, match, request_of
from sssjob.xml.reader import read_document
from tests.strategies import FIXED, requests


def job(text: str) -> Job:
    root = read_document(f"<Job>{text}</Job>".encode()).root
    assert isinstance(root, Job)
    return root


def meets(request: str, offer: str) -> bool:
    return match(job(request), job(offer)).met


def grouped(*bodies: str) -> str:
    return "".join(f"<TaskGroup>{body}</TaskGroup>" for body in bodies)


@pytest.mark.parametrize(("request_", "met", "short"), [
    # a limit that is longer, a place that is larger
    ("<Requested><Duration>3600</Duration><Processors>4</Processors></Requested>",
     "<Processors>128</Processors><Duration>7200</Duration>", "<Processors>128</Processors><Duration>3599</Duration>"),
    ('<Requested><Duration op="LE">3600</Duration></Requested>', "<Duration>7200</Duration>", "<Duration>0</Duration>"),
    ('<Requested><Processors op="GE">8</Processors><Processors op="LE">16</Processors></Requested>',
     "<Processors>8</Processors>", "<Processors>7</Processors>"),
    ('<Requested><Processors op="GT">8</Processors></Requested>', "<Processors>9</Processors>",
     "<Processors>8</Processors>"),
    ("<Memory units='GB'>2</Memory>", "<Memory>2048</Memory>", "<Memory>2047</Memory>"),
    # tasks need processors
    (grouped("<TaskCount>64</TaskCount>"), "<Processors>64</Processors>", "<Processors>63</Processors>"),
    ("<Processors>4</Processors>" + grouped("<TaskCount>6</TaskCount>"), "<Processors>6</Processors>",
     "<Processors>5</Processors>"),
    (grouped("<TaskCount>4</TaskCount><TaskDefaults><Processors>2</Processors></TaskDefaults>"),
     "<Processors>8</Processors>", "<Processors>7</Processors>"),
    (grouped("<Task><Id>1</Id></Task><Task><Id>2</Id></Task>"), "<Processors>2</Processors>",
     "<Processors>1</Processors>"),
    # task groups add up
    (grouped('<Requested><Processors op="GE">8</Processors></Requested>') * 2, "<Processors>16</Processors>",
     "<Processors>15</Processors>"),
    (grouped("<Memory>8</Memory>", "<Memory>4</Memory>"), "<Memory>12</Memory>", "<Memory>11</Memory>"),
    (grouped("<NodeCount>2</NodeCount>", "<NodeCount>1</NodeCount>"), "<NodeCount>3</NodeCount>",
     "<NodeCount>2</NodeCount>"),
    (grouped('<Resource name="License" type="x">1</Resource>') * 2, '<Resource name="License" type="x">2</Resource>',
     '<Resource name="License" type="x">1</Resource>'),
    # amounts per something
    ("<NodeCount>2</NodeCount><Memory units='GB' metric='PerNode'>4</Memory>",
     "<NodeCount>2</NodeCount><Memory units='GB'>8</Memory>", "<NodeCount>2</NodeCount><Memory units='GB'>7</Memory>"),
    ("<NodeCount>2</NodeCount><Memory units='GB' metric='PerNode'>4</Memory>",
     "<NodeCount>9</NodeCount><Memory units='GB' metric='PerNode'>4</Memory>",
     "<NodeCount>9</NodeCount><Memory units='GB' metric='PerNode'>3</Memory>"),
    ("<Processors>3</Processors><Memory units='GB' metric='PerProcessor'>2</Memory>",
     "<Processors>128</Processors><Memory units='GB'>6</Memory>",
     "<Processors>128</Processors><Memory units='GB'>5</Memory>"),
    (grouped("<TaskCount>4</TaskCount><TaskDefaults><Memory units='GB'>2</Memory></TaskDefaults>"),
     "<Processors>4</Processors><Memory units='GB'>8</Memory>",
     "<Processors>4</Processors><Memory units='GB'>7</Memory>"),
    # geometry and tasks of a node give nodes
    (grouped("<TaskDistribution>{1}{2,3}{4,5,6}</TaskDistribution>"),
     "<Processors>6</Processors><NodeCount>3</NodeCount>", "<Processors>6</Processors><NodeCount>2</NodeCount>"),
    ("<Processors>8</Processors><TaskDistribution type='TasksPerNode'>2</TaskDistribution>",
     "<Processors>8</Processors><NodeCount>4</NodeCount>", "<Processors>8</Processors><NodeCount>3</NodeCount>"),
    (grouped("<TaskCount>6</TaskCount><TaskDistribution type='TasksPerNode'>2</TaskDistribution>"),
     "<Processors>6</Processors><NodeCount>3</NodeCount>", "<Processors>6</Processors><NodeCount>2</NodeCount>"),
    # alternatives: any way that fits in all
    (grouped('<Requested><Processors>16</Processors><Processors conj="Or">4</Processors></Requested>',
             "<Processors>4</Processors>"), "<Processors>8</Processors>", "<Processors>7</Processors>"),
    ('<Requested><Processors group="1">8</Processors><Memory group="-1">1</Memory><Processors conj="Or" group="1">1'
     '</Processors><Memory group="-1">8</Memory></Requested>' + grouped("<TaskCount>1</TaskCount>"),
     "<Processors>1</Processors><Memory>8</Memory>", "<Processors>7</Processors><Memory>7</Memory>"),
    # names are met as the text says
    ("<Requested><Node aggregation='Pattern'>n.*</Node></Requested>", "<Node>n1</Node>", "<Node>m1</Node>"),
    ("<Feature>a</Feature><Feature>b</Feature>", "<Feature>a</Feature><Feature>b</Feature>", "<Feature>a</Feature>"),
    # negated amounts
    ("<Requested><Memory>1</Memory><Processors conj='Nand' op='LT'>4</Processors></Requested>",
     "<Memory>1</Memory><Processors>9</Processors>", "<Memory>1</Memory><Processors>3</Processors>"),
])
def test_met_and_not_met(request_: str, met: str, short: str) -> None:
    assert meets(request_, met)
    assert not meets(request_, short)


@pytest.mark.parametrize("described", [
    '<Extension type="Scheduler" name="Restartable">true</Extension>',
    '<Extension type="Scheduler" name="Dialect">slurm</Extension>',
    '<Extension type="Scheduler" name="ChunkCount">1</Extension>', "<Name>x</Name>", "<OutputFile>x</OutputFile>",
    '<Extension type="PSIJ" name="PreLaunch">x</Extension>',
])
def test_what_describes_asks_for_nothing(described: str) -> None:
    assert meets(described + "<Processors>4</Processors>", "<Processors>4</Processors>")


def test_an_extension_in_requested_asks() -> None:
    asked = '<Requested><Extension type="Site" name="Fast">true</Extension></Requested>'
    assert not meets(asked, "<Processors>4</Processors>")
    assert meets(asked, '<Extension type="Site" name="Fast">true</Extension>')


def test_contradictions_are_met_by_nothing() -> None:
    asked = '<Requested><Processors op="GE">16</Processors><Processors op="LE">8</Processors></Requested>'
    result = match(job(asked), job("<Processors>128</Processors>"))
    assert not result.met and "\n".join(result.lines()) == """\
- all levels
  + Job
    + all of
      + Processors >= 16: offered 128
      + Processors <= 8: offered 128
  - In all
    - the conditions contradict each other"""


def test_the_reason_names_what_adds_up() -> None:
    result = match(job("<Requested><NodeCount>1</NodeCount></Requested>" + grouped("<TaskCount>64</TaskCount>")),
                   job("<Processors>1</Processors><NodeCount>1</NodeCount>"))
    assert "\n".join(result.lines()) == """\
- all levels
  + Job
    + NodeCount = 1: offered 1
  - In all
    - Processors >= 64: offered 1 (64 tasks)"""


def test_used_amounts_are_compared_literally_when_asked() -> None:
    asked, given = job("<Requested><Processors>4</Processors></Requested>"), job("<Processors>128</Processors>")
    assert match(asked, given).met and not match(asked, given, delivered=True).met


def test_memory_of_nodes_that_only_some_task_groups_state_is_no_known_total() -> None:
    groups = "<TaskGroup><Id>g</Id><Requested><NodeCount>2</NodeCount></Requested></TaskGroup><TaskGroup><Id>h</Id>{}" \
             "</TaskGroup><Requested><Memory metric='PerNode'>100</Memory></Requested>"
    for rest, known in (("", False), ("<Requested><NodeCount>1</NodeCount></Requested>", True)):
        amounts = request_of(job(groups.format("<TaskCount>2</TaskCount>" + rest))).totals.amounts
        assert [total.known for identity, total in amounts.items() if identity[0] == "Memory"] == [known]


def test_what_listed_tasks_ask_for_is_added_up() -> None:
    tasks = "".join(f"<Task><Id>{n}</Id><Requested><Resource name='GPU'>{n}</Resource></Requested></Task>"
                    for n in (2, 3))
    (total,) = request_of(job(f"<TaskGroup><Id>g</Id>{tasks}</TaskGroup>")).totals.amounts.values()
    assert total.value == 5
    assert (total.known, total.origin) == (True, "2 tasks")


def test_defaults_take_part_in_the_totals() -> None:
    defaults = read_document(
        b"<JobGroup><Id>g</Id><JobDefaults><TaskGroup><TaskCount>8</TaskCount></TaskGroup></JobDefaults>"
        b"<Job><Id>1</Id></Job></JobGroup>").root
    found = next(c for c in defaults.containers("JobDefaults"))     # type: ignore[union-attr]
    assert isinstance(found, JobDefaults)
    totals = request_of(job("<Id>1</Id>"), found).totals
    assert totals.tasks == totals.copies == 8 and totals.processors is not None and totals.processors.value == 8


@pytest.mark.parametrize(("text", "copies"), [
    ("<Executable>a</Executable>", 1), ("<Executable>a</Executable><Processors>8</Processors>", 1),
    ("<Executable>a</Executable>" + grouped("<TaskCount>6</TaskCount>"), 6),
    ("<Executable>#Script</Executable>" + grouped("<TaskCount>6</TaskCount>"), 1),
    (grouped("<Executable>a</Executable>", "<Executable>b</Executable><TaskCount>4</TaskCount>"), 5),
    ("<Executable>a</Executable><TaskDistribution>{1}{2,3}</TaskDistribution>", 3),
    ("<Executable>a</Executable><NodeCount>3</NodeCount><TaskDistribution>2</TaskDistribution>", 1),
    ("<Executable>a</Executable><Processors>8</Processors><TaskDistribution type='ProcessorsPerTask'>2"
     "</TaskDistribution>", 1),
    (grouped("<Executable>a</Executable><TaskCount>4</TaskCount>")
     + "<Extension type='Scheduler' name='Launcher'>single</Extension>", 1),
])
def test_copies(text: str, copies: int) -> None:
    assert request_of(job(text)).totals.copies == copies


# --- an offer of exactly the totals meets a request, one of a unit less of any does not ---------------------------

def offered(total: Total, value: Fraction) -> Property:
    tag, name, kind = total.identity
    named = {k: v for k, v in (("name", name), ("type", kind), ("units", total.units)) if v}
    number = Decimal(value.numerator) / Decimal(value.denominator)
    return new_property(tag, int(number) if tag in ("Processors", "NodeCount") else number, named)


@settings(deadline=None, derandomize=FIXED)
@given(requests())
def test_exactly_the_totals_meet_and_one_unit_less_does_not(text: str) -> None:
    request = request_of(job(text))
    totals = request.totals.all()
    exact = Offer.of([offered(total, total.value) for total in totals])
    if not exact.properties:
        return
    verdict = match(request, exact)
    assert verdict.met, "\n".join(verdict.lines())
    nodes = next((total.value for total in totals if total.identity[0] == "NodeCount"), Fraction(1))
    for less in totals:
        if (less.identity[0] == "NodeCount" and less.value == 1) or (
                less.identity[0] == "Processors" and less.value <= nodes) or not less.known:
            continue            # every offer has one, and as many processors as nodes
        short = Offer.of([offered(t, t.value - 1 if t is less else t.value) for t in totals])
        verdict = match(request, short)
        assert not verdict.met, (less, "\n".join(verdict.lines()))


def test_offers_may_be_given_per_node() -> None:
    offer = replace(Offer.of([new_property("Memory", 4, {"metric": "PerNode", "units": "GB"}),
                              new_property("NodeCount", 4)]))
    assert match(job("<NodeCount>4</NodeCount><Memory units='GB'>16</Memory>"), offer).met
    assert not match(job("<NodeCount>4</NodeCount><Memory units='GB'>17</Memory>"), offer).met
    assert not match(job("<NodeCount>2</NodeCount><Memory units='GB'>16</Memory>"), offer).met
