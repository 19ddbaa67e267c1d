"""A look at counts is as good as the totals of the request: what it takes for fitting fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.limits import LIMITS
from sssjob.validation._contradictions import unfit
from sssjob.validation._spread import spread_over
from tests.laws.documents import geometries, job_of, read

COUNT = st.one_of(st.none(), st.integers(0, 6))


def _element(tag: str, number: int | None, more: str = "") -> str:
    return "" if number is None else f"<{tag}{more}>{number}</{tag}>"


@st.composite
def _plain(draw: st.DrawFn) -> str:
    """A job of one task group that says each count once, wherever it may stand."""
    nodes, tasks, cpus, processors, spread = (draw(COUNT) for _ in range(5))
    kind = draw(st.sampled_from(["TasksPerNode", "ProcessorsPerTask"]))
    distribution = draw(st.sampled_from(["", "<TaskDistribution>Block</TaskDistribution>",
                                         "<TaskDistribution type='Geometry'>{0,1}{2}</TaskDistribution>",
                                         _element("TaskDistribution", spread, f" type='{kind}'")]))
    each = _element("Processors", cpus)
    of_task = f"<TaskDefaults><Requested>{each}</Requested></TaskDefaults>" if each else ""
    asked, bare, chunks = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    counts = _element("NodeCount", nodes) + _element("Processors", processors)
    at_job = f"<Requested>{counts}</Requested>" if asked else counts
    in_group = f"{at_job if bare else ''}{_element('TaskCount', tasks)}{distribution}{of_task}"
    more = "<Extension name='ChunkCount' type='Scheduler'>3</Extension>" if chunks else ""
    return f"<Job><Id>a</Id>{'' if bare else at_job}<TaskGroup>{in_group}{more}</TaskGroup></Job>"


def _choice(counts: list[int], tag: str) -> str:
    """Counts of which one is enough, in brackets."""
    if len(counts) < 2:
        return "".join(_element(tag, count) for count in counts)
    attributes = [" group='1'", *[" conj='Or'"] * (len(counts) - 2), " conj='Or' group='-1'"]
    return "".join(map(_element, [tag] * len(counts), counts, attributes))


@st.composite
def _said_several_times(draw: st.DrawFn) -> str:
    """A job that says a count at several levels or leaves a choice of it, and lists tasks."""
    some = st.lists(st.integers(1, 6), max_size=3)
    spread, tasks, listed = draw(COUNT), draw(COUNT), draw(st.integers(0, 4))
    kind = draw(st.sampled_from(["TasksPerNode", "ProcessorsPerTask"]))
    levels = ["".join(_choice(draw(some), tag) for tag in draw(st.permutations(["NodeCount", "Processors"])))
              for _ in range(2)]
    other = draw(st.sampled_from(["", "<Memory>5</Memory>", "<Memory conj='Or'>5</Memory>"]))
    each = draw(st.sampled_from(["", "<Processors>2</Processors>"]))
    group = (f"{_element('TaskCount', tasks)}{_element('TaskDistribution', spread, f' type={kind!r}')}"
             f"<Requested>{levels[1]}{other}</Requested>"
             + "".join(f"<Task><Name>t{n}</Name><Requested>{each}</Requested></Task>" for n in range(listed)))
    return f"<Job><Id>a</Id><Requested>{levels[0]}</Requested><TaskGroup>{group}</TaskGroup></Job>"


@given(st.one_of(_plain(), geometries(), _said_several_times()))
def test_what_fits_at_a_look_fits(text: str) -> None:
    job = job_of(read(text))
    if not spread_over([job]):
        assert unfit(job, None, LIMITS) == []


@pytest.mark.parametrize(("inside", "fits"), [
    ("<NodeCount>2</NodeCount><TaskGroup><TaskCount>16</TaskCount><TaskDistribution type='TasksPerNode'>8"
     "</TaskDistribution></TaskGroup>", True),
    ("<NodeCount>2</NodeCount><TaskGroup><TaskCount>17</TaskCount><TaskDistribution type='TasksPerNode'>8"
     "</TaskDistribution></TaskGroup>", False),
    ("<NodeCount>3</NodeCount><TaskGroup><TaskCount>2</TaskCount></TaskGroup>", False),
    ("<Processors>8</Processors><TaskGroup><TaskCount>4</TaskCount><TaskDefaults><Processors>4</Processors>"
     "</TaskDefaults></TaskGroup>", False),
    ("<Processors>8</Processors><TaskGroup><TaskCount>4</TaskCount><TaskDefaults><Processors>2</Processors>"
     "</TaskDefaults></TaskGroup>", True),
    ("<Processors>4</Processors><TaskGroup><TaskCount>2</TaskCount><Requested><Processors group='1'>12</Processors>"
     "<Processors conj='Or' group='-1'>16</Processors></Requested><Task/><Task/></TaskGroup>", True),
    ("<Processors>4</Processors><TaskGroup><Requested><Processors group='1'>12</Processors>"
     "<Processors conj='Or' group='-1'>2</Processors></Requested><Task/><Task/><Task/></TaskGroup>", False),
    ("<NodeCount>3</NodeCount><TaskGroup><Task/><Task/></TaskGroup>", False),
])
def test_the_look(inside: str, fits: bool) -> None:
    assert spread_over([job_of(read(f"<Job>{inside}</Job>"))]) is not fits
