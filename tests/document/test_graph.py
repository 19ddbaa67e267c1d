"""Dependencies of a group: resolution, order, cycles, and the state of the group."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.graph import CycleError, Dependencies, derived_state
from sssjob.document.model import Job, JobDefaults, JobGroup, Property, new_property
from sssjob.findings import Findings


def job(identifier: str | None, *needs: str | Property, name: str | None = None) -> Job:
    items = [] if identifier is None else [new_property("Id", identifier)]
    if name is not None:
        items.append(new_property("Name", name))
    return Job([*items, *(n if isinstance(n, Property) else new_property("Dependency", n) for n in needs)])


def by_name(name: str) -> Property:
    return new_property("Dependency", name, {"designator": "JobName"})


def order(*jobs: Job) -> list[str]:
    graph = Dependencies.of(JobGroup(list(jobs)))
    return [graph.labels[n] for n in graph.order()]


def rules(group: JobGroup) -> list[tuple[str, str]]:
    findings = Findings()
    Dependencies.of(group).check(findings)
    return [(f.rule, f.message) for f in findings]


def test_order_is_that_of_the_document_where_it_can_be() -> None:
    assert order(job("c", "a"), job("b"), job("a"), job("d")) == ["b", "a", "c", "d"]
    assert order() == []


def test_links() -> None:
    exits = new_property("Dependency", "a", {"condition": "OnExit", "code": "3"})
    ignored = new_property("Dependency", "a", {"code": "3"})
    graph = Dependencies.of(JobGroup([job("a"), job("b", exits), job("c", ignored, "zz")]))
    first, second, third = graph.links
    assert (first.condition, first.code, first.needs, first.by_name) == ("OnExit", 3, (0,), False)
    assert (second.condition, second.code) == ("OnSuccess", None)
    assert graph.unknown() == (third,) and third.target == "zz"
    assert [(e.job, e.needs) for e in graph.edges] == [(1, 0), (2, 0)]
    assert graph.links_of() == {1: (first,), 2: (second, third)}


def test_all_of_a_name_must_hold() -> None:
    graph = Dependencies.of(JobGroup([job("z", by_name("x")), job("a", name="x"), job("b", name="x")]))
    assert [e.needs for e in graph.edges] == [1, 2]
    assert graph.order() == (1, 2, 0)


def test_an_id_that_nobody_has_may_be_a_name() -> None:
    assert order(job(None, "first", name="second"), job(None, name="first")) == ["first", "second"]


def test_dependencies_of_defaults() -> None:
    defaults = JobDefaults([new_property("Dependency", "a")])
    group = JobGroup([defaults, job("b"), job("c", "d"), Job(reference="a"), job("d", "a")])
    assert [(e.job, e.needs) for e in Dependencies.of(group).edges] == [(0, 2), (1, 3), (3, 2)]


def test_cycle_names_its_jobs() -> None:
    group = JobGroup([job("x"), job("a", "b"), job("b", "c"), job("c", "a", "x")])
    with pytest.raises(CycleError, match=r"^a -> b -> c -> a$") as caught:
        Dependencies.of(group).order()
    assert caught.value.cycle == ["a", "b", "c", "a"]
    assert pickle.loads(pickle.dumps(caught.value)).cycle == caught.value.cycle
    assert rules(group) == [("SSS410", "dependencies form a cycle: a -> b -> c -> a")]


def test_cycle_of_one_and_through_a_name() -> None:
    assert Dependencies.of(JobGroup([job("a", "a")])).cycle() == ["a", "a"]
    group = JobGroup([job("a", by_name("x")), job("b", "a", name="x"), job("c", name="x")])
    assert Dependencies.of(group).cycle() == ["a", "b", "a"]


def test_an_element_of_an_array_is_named_by_its_index() -> None:
    """It was a job that is not in the group; to wait for one of one's own elements is to wait for oneself."""
    array = new_property("Extension", "1-3", {"type": "Scheduler", "name": "Array"})
    a, b, c = job("a"), job("b", "a_2"), job("c", "a_4", "a_x", "b_1")
    a.items.append(array)
    assert [(link.job, link.needs) for link in Dependencies.of(JobGroup([a, b, c])).links] == [
        (1, (0,)), (2, ()), (2, ()), (2, ())]
    circle = job("a", "a_2")
    circle.items.append(array)
    assert Dependencies.of(JobGroup([circle])).cycle() == ["a", "a"]


def test_unknown_jobs() -> None:
    group = JobGroup([job("a", "elsewhere")])
    assert rules(group) == [("SSS411", "job a depends on 'elsewhere', which is not in the group")]
    findings = Findings()
    Dependencies.of(group).check(findings, known=["elsewhere"])
    assert not list(findings)


def test_long_chains_and_wide_names() -> None:
    chain = [job(str(n), str(n - 1)) if n else job("0") for n in range(10_000)]
    assert Dependencies.of(JobGroup(chain)).order() == tuple(range(10_000))
    chain[0].add("Dependency", "9999")
    with pytest.raises(CycleError) as caught:
        Dependencies.of(JobGroup(chain)).order()
    assert len(caught.value.cycle) == 10_001 and len(str(caught.value)) < 500
    wide = [job(None, name="x") for _ in range(5_000)] + [job(None, by_name("x")) for _ in range(5_000)]
    assert Dependencies.of(JobGroup(wide)).order() == tuple(range(10_000))


@given(st.lists(st.lists(st.integers(0, 11), max_size=3), min_size=1, max_size=12))
def test_order_holds_or_a_cycle_is_real(needs: list[list[int]]) -> None:
    group = JobGroup([job(str(n), *(str(m) for m in found)) for n, found in enumerate(needs)])
    graph = Dependencies.of(group)
    edges = {(e.job, e.needs) for e in graph.edges}
    try:
        found = graph.order()
    except CycleError as error:
        steps = list(zip(error.cycle, error.cycle[1:], strict=False))
        assert steps and all((int(a), int(b)) in edges for a, b in steps)
        assert graph.cycle() == error.cycle
    else:
        place = {n: i for i, n in enumerate(found)}
        assert sorted(found) == list(range(len(needs))) and all(place[a] > place[b] for a, b in edges)
        assert graph.cycle() is None


def state(value: str | None, **more: int) -> Job:
    items = [] if value is None else [new_property("State", value)]
    return Job([*items, *(new_property(tag, n) for tag, n in more.items())])


@pytest.mark.parametrize(("jobs", "expected"), [
    ([], "NotQueued"), ([state(None), state("Idle")], "NotQueued"),
    ([state("Idle", SubmitTime=1), state("Hold", SubmitTime=1)], "Unstarted"),
    ([state("Idle", SubmitTime=1), state(None)], "Unstarted"),
    ([state("Running"), state(None)], "Active"), ([state("Completed"), state("Idle", SubmitTime=1)], "Active"),
    ([state("Suspended")], "Active"), ([state("Completed"), state("Completed")], "Completed"),
    ([state("Completed"), Job(reference="x")], "Completed"), ([state("Idle", StartTime=1)], "Active"),
    ([state("Idle"), JobDefaults([new_property("SubmitTime", 1)])], "Unstarted"),
])
def test_state_of_a_group(jobs: list[Job], expected: str) -> None:
    assert derived_state(JobGroup(jobs)) == expected
