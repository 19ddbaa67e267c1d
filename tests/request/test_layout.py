"""How tasks and processors are spread: the numbers against a count of one place after another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.request.layout import Kind, Layout, even

#: What is stated -> tasks, slots, processors in all, processors of a task, nodes.
CASES = [
    (Layout(), None, None, None, None, None),
    (Layout(processors=4), None, 4, 4, None, None),
    (Layout(processors=8, cpus=2), 4, 4, 8, 2, None),
    (Layout(processors=8, tasks=4), 4, 4, 8, 2, None),
    (Layout(processors=7, tasks=4), 4, 4, 7, None, None),
    (Layout(processors=9, cpus=2), 4, 4, 9, 2, None),
    (Layout(tasks=64), 64, 64, 64, None, None),
    (Layout(tasks=4, cpus=2), 4, 4, 8, 2, None),
    (Layout(tasks=8, processors=4), 8, 8, 8, None, None),
    (Layout(nodes=3, processors=4), None, 4, 4, None, 3),
    (Layout(nodes=4, processors=3), None, 4, 4, None, 4),
    (Layout(nodes=4, tasks=3), 3, 3, 4, None, 4),
    (Layout(nodes=2, per_node=3), 6, 6, 6, None, 2),
    (Layout(per_node=2, tasks=6, cpus=2), 6, 6, 12, 2, 3),
    (Layout(per_node=2, processors=6), 6, 6, 6, 1, 3),
    (Layout(per_node=2, tasks=5), 5, 5, 5, None, 3),
    (Layout(geometry=(1, 2, 3)), 6, 6, 6, None, 3),
    (Layout(nodes=2, cpus=4), None, None, 8, 4, 2),
    (Layout(cpus=4), None, None, 4, 4, None),
    (Layout(nodes=2), None, None, None, None, 2),
    (Layout(chunks=1, processors=8), 1, 1, 8, 8, 1),
    (Layout(chunks=2), 2, 2, 2, None, None),
]


@pytest.mark.parametrize(("layout", "tasks", "slots", "processors", "each", "nodes"), CASES)
def test_what_follows(layout: Layout, tasks: int | None, slots: int | None, processors: int | None, each: int | None,
                      nodes: int | None) -> None:
    assert (layout.task_total, layout.slots, layout.processor_total, layout.processors_each,
            layout.node_total) == (tasks, slots, processors, each, nodes)


@pytest.mark.parametrize(("layout", "nodes"), [
    (Layout(cpus=10), 1), (Layout(tasks=1), 1), (Layout(tasks=1, cpus=4), 1), (Layout(processors=1), 1),
    (Layout(tasks=1, cpus=4, processors=4), 1), (Layout(tasks=1, processors=1), 1),
    (Layout(tasks=1, processors=8), None), (Layout(tasks=2), None), (Layout(tasks=2, cpus=4), None),
    (Layout(processors=2), None), (Layout(), None), (Layout(chunks=2), None), (Layout(chunks=1, processors=8), 1),
    (Layout(nodes=2, cpus=4), 2), (Layout(tasks=1, per_node=1), 1),
])
def test_what_amounts_of_a_node_are_multiplied_with(layout: Layout, nodes: int | None) -> None:
    """One processor, or one task with its own, is on one node; of two of them nobody knows."""
    assert layout.node_factor == nodes


@pytest.mark.parametrize(("layout", "places", "kinds"), [
    (Layout(nodes=3, processors=4), 3, [Kind(1, None, 2), Kind(2, None, 1)]),      # section 3.0
    (Layout(nodes=3, tasks=4), 3, [Kind(1, 2, 2), Kind(2, 1, 1)]),
    (Layout(geometry=(1, 2, 3)), 3, [Kind(1, 1, 1), Kind(1, 2, 2), Kind(1, 3, 3)]),
    (Layout(per_node=4, tasks=6), 2, [Kind(1, 4, 4), Kind(1, 2, 2)]),
    (Layout(tasks=4, cpus=2), 2, [Kind(2, 2, 4)]),
    (Layout(nodes=2), 2, [Kind(2)]),
    (Layout(nodes=4, tasks=4, processors=7), 4, [Kind(3, 1, 2), Kind(1, 1, 1)]),
    (Layout(nodes=4, tasks=2, processors=4), 4, [Kind(2, 1, 1), Kind(2, 0, 1)]),     # a node without tasks has one
])
def test_kinds_of_places(layout: Layout, places: int, kinds: list[Kind]) -> None:
    assert layout.kinds(places) == kinds


@pytest.mark.parametrize(("nodes", "most", "tasks", "widened"), [
    (4, 8, 2, (4, 8)), (4, 8, 10, (5, 8)), (4, 8, 40, (8, None)), (4, None, 40, (4, None))])
def test_a_range_of_nodes_is_as_wide_as_its_tasks_need(nodes: int, most: int | None, tasks: int,
                                                       widened: tuple[int, int | None]) -> None:
    """Two tasks a node: never less than the least, nor more than the most."""
    layout = Layout(nodes=nodes, nodes_most=most, tasks=tasks)
    layout.widen(2)
    assert (layout.nodes, layout.nodes_most) == widened


@pytest.mark.parametrize(("tasks", "empty"), [(6, False), (5, False), (4, True), (3, True)])
def test_a_distribution_that_leaves_a_node_empty_is_odd(tasks: int, empty: bool) -> None:
    assert bool(Layout(nodes=3, tasks=tasks, per_node=2).doubt("TasksPerNode")) == empty


def test_further_units_go_along() -> None:
    assert Layout(tasks=16).kinds(16, 4) == [Kind(4, 1, 1, 1), Kind(12, 1, 1, 0)]


NUMBERS = st.one_of(st.none(), st.integers(1, 40))


@given(nodes=NUMBERS, tasks=NUMBERS, per_node=NUMBERS, cpus=NUMBERS, processors=NUMBERS, places=st.integers(1, 50),
       units=NUMBERS)
def test_nothing_is_lost_and_nothing_multiplied(nodes: int | None, tasks: int | None, per_node: int | None,
                                                cpus: int | None, processors: int | None, places: int,
                                                units: int | None) -> None:
    """Whatever is stated, the kinds of places add up to the totals, and no place differs from another by more than a
    task's worth."""
    layout = Layout(nodes, None, tasks, per_node, cpus, processors)
    kinds = layout.kinds(places, units)
    assert sum(kind.count for kind in kinds) == places
    for total, name in ((layout.task_total, "tasks"), (layout.processor_total, "processors"), (units, "units")):
        if total is None:
            assert all(getattr(kind, name) is None for kind in kinds)
        else:
            assert sum(kind.count * getattr(kind, name) for kind in kinds) == total
    assert len(kinds) <= 6


@given(st.integers(0, 300), st.integers(1, 40))
def test_even(total: int, places: int) -> None:
    shares = even(total, places)
    assert sum(shares) == total and max(shares) - min(shares) <= 1 and shares == sorted(shares, reverse=True)
