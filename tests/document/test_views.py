"""The jobs of a group, and what else stands in containers, are live lists."""

from __future__ import annotations

from collections.abc import MutableSequence

import pytest

from sssjob.document.model import Job, JobDefaults, JobGroup, Property, Task, TaskGroup
from sssjob.errors import UsageError


def group_of(*ids: str) -> JobGroup:
    return JobGroup([Property("Id", "g"), *(Job(id=i) for i in ids), JobDefaults(queue="q")])


def ids(group: JobGroup) -> list[str | None]:
    return [i.id for i in group.items if isinstance(i, Job)]


def test_appending_is_seen_in_the_document() -> None:
    group, job = group_of("a"), Job(id="b")
    jobs = group.jobs
    jobs.append(job)
    assert ids(group) == ["a", "b"] and group.jobs[1] is job and len(jobs) == 2 and job in jobs
    assert [i.tag for i in group.items] == ["Id", "Job", "Job", "JobDefaults"]
    job.task_groups.append(TaskGroup(task_count=1))
    job.task_groups[0].tasks.append(Task(node="n"))
    assert job.items[-1] == TaskGroup(task_count=1, tasks=[Task(node="n")])


def test_it_does_all_that_a_list_does() -> None:
    group = group_of("a", "b", "c")
    jobs, plain = group.jobs, ["a", "b", "c"]
    assert isinstance(jobs, MutableSequence)

    def same() -> bool:
        return ids(group) == plain == [j.id for j in jobs] and len(jobs) == len(plain)

    for at in (0, 2, -1, 99, -99):
        jobs.insert(at, Job(id=f"i{at}"))
        plain.insert(at, f"i{at}")
        assert same()
    assert jobs.pop().id == plain.pop() and jobs.pop(1).id == plain.pop(1) and same()
    del jobs[1:3], plain[1:3]
    jobs[0], plain[0] = Job(id="x"), "x"
    jobs[1:2], plain[1:2] = [Job(id="y"), Job(id="z")], ["y", "z"]
    jobs.extend([Job(id="e")])
    plain.append("e")
    jobs.reverse()
    plain.reverse()
    assert same() and jobs == list(jobs) and jobs[1:] == list(jobs)[1:] and jobs != []
    jobs.remove(jobs[0])
    del plain[0]
    assert same() and repr(jobs) == repr(list(jobs))
    jobs.clear()
    assert ids(group) == [] and not jobs and [i.tag for i in group.items] == ["Id", "JobDefaults"]
    with pytest.raises(IndexError):
        jobs[0]


def test_iterating_while_it_changes_sees_what_was_there() -> None:
    group = group_of("a", "b", "c")
    for job in group.jobs:
        group.jobs.remove(job)
    assert ids(group) == []


@pytest.mark.parametrize("wrong", [Task(), "a", None])
def test_only_its_kind_is_taken(wrong: object) -> None:
    group = group_of("a")
    with pytest.raises(UsageError, match="a Job is expected in JobGroup"):
        group.jobs.append(wrong)    # type: ignore[arg-type]
    with pytest.raises(UsageError):
        group.jobs = [Job(), wrong]     # type: ignore[list-item]
    assert ids(group) == ["a"]


def test_defaults_are_set_and_taken_away() -> None:
    group = group_of("a")
    group.defaults = JobDefaults(queue="r")
    assert [i for i in group.items if isinstance(i, JobDefaults)] == [JobDefaults(queue="r")]
    group.defaults = None
    assert group.defaults is None
    with pytest.raises(UsageError):
        group.defaults = Job()      # type: ignore[assignment]
    twice = JobGroup([JobDefaults(queue="a"), JobDefaults(user="u")])
    assert twice.defaults is not None
    twice.defaults.project = "p"
    assert twice.items == [JobDefaults(queue="a", user="u", project="p")]
