"""A request that asks for more: every amount in the form in which it was said, and totals that follow."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sssjob.document.failures import Change, Retry
from sssjob.document.model import Job
from sssjob.request import request_of
from sssjob.request.growing import amounts_of, grown
from sssjob.xml.reader import read_document


def job_of(text: str) -> Job:
    (job, _), = read_document(f"<Job><Id>a</Id>{text}</Job>".encode()).jobs()
    return job


def changes(text: str) -> tuple[Change, ...]:
    return tuple(change for clause in Retry.of(text).clauses for change in clause.changes)


def test_memory_per_node_stays_per_node_and_the_total_follows() -> None:
    job = job_of("""<Requested><NodeCount>2</NodeCount><Memory metric="PerNode" units="GB">3</Memory>
        <Duration>100</Duration></Requested>""")
    more = grown(job, changes("memory:Memory*1.5,max=4GB:Duration*1.001"))
    assert [(p.text, p.get("units"), p.get("metric")) for block in more.containers("Requested")
            for p in block.all("Memory")] == [("4", "GB", "PerNode")]
    assert amounts_of(more, "Duration") == [Decimal(101)]
    before, after = ([int(total.value) for total in request_of(one).totals.all() if total.identity[0] == "Memory"]
                     for one in (job, more))
    assert (before, after) == ([6 << 30], [8 << 30])


@pytest.mark.parametrize("text", [
    '<Requested><Memory op="LE" units="GB">3</Memory></Requested>',
    '<Requested><Memory units="XB">3</Memory></Requested>',
    '<Delivered><Memory units="GB">3</Memory><Duration>60</Duration></Delivered>',
])
def test_what_nobody_needs_is_not_asked_for_more_of(text: str) -> None:
    job = job_of(text)
    assert (amounts_of(job, "Memory"), amounts_of(job, "Duration")) == ([], [])
    assert grown(job, changes("memory:Memory*2:Duration*2")).items == job.items


def test_amounts_of_task_groups_and_tasks_grow_too() -> None:
    job = job_of("""<TaskGroup><Requested><Memory units="MB">100</Memory></Requested>
        <Task><Requested><Memory units="MB">1</Memory></Requested></Task></TaskGroup>""")
    more = grown(job, changes("memory:Memory+1GB"))
    assert sorted(amounts_of(more, "Memory")) == [(1 << 30) + (1 << 20), (1 << 30) + (100 << 20)]
    assert sorted(amounts_of(job, "Memory")) == [1 << 20, 100 << 20]
