"""Elements of arrays that go out together: as a native array, by one submit command.

What is ready at the same time and differs by its index only becomes one array, where the executor has arrays; the rest,
and an element that is tried again, is a job of its own. Each element has its own intent, tag and native id in the
journal, beside the tag of its array: by that one the array is looked for where nobody knows whether it was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import psij
from psij.executors.batch._array_jobs import JobArray, texts_of
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.run.abilities import SubmitsArrays
from sssjob.run.standing import Running
from sssjob.templates.quoting import NUMBER_MARK

if TYPE_CHECKING:
    from sssjob.run.engine import Engine

__all__ = ["Arrays", "arrays_for", "whole_of"]


def arrays_for(backend: psij.JobExecutor, specs: Sequence[psij.JobSpec], indices: Sequence[int],
               most: int | None = None) -> Sequence[JobArray]:
    """The native arrays as which elements can be submitted; none where they go out one by one."""
    if not isinstance(backend, SubmitsArrays) or len(specs) < 2:
        return ()
    return backend.arrays(specs, indices, most)


class Arrays:
    """The arrays of an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._siblings: dict[int, list[Running]] = {}       # by identity of the array's job: its elements
        self._limited: dict[int, bool] = {}                 # by the same: whether the manager keeps to its limit
        self._told: set[int] = set()                        # by the same: that its elements go alone
        for job in engine.jobs:
            if job.plan.member is not None:
                self._siblings.setdefault(id(job.plan.member.job), []).append(job)

    def look_anew(self) -> None:
        """Decide anew which limits of arrays the resource manager keeps to: they hold for one native array, so all
        elements that have not ended have to go out together."""
        self._limited.clear()

    def is_limited(self, job: Running) -> bool:
        """Whether the resource manager is told how many elements of this one's array may run at a time."""
        member = job.plan.member
        if member is None or member.array.throttle is None:
            return False
        key = id(member.job)
        if key not in self._limited:
            mine = self._open(job)
            self._limited[key] = all(map(_is_plain, mine)) and self.engine.room.takes(job, len(mine)) and len(
                arrays_for(job.of.executor(), [element.plan.parts[0].spec for element in mine], _indices(mine),
                           member.array.throttle)) == 1
        return self._limited[key]

    def gathered(self, jobs: Sequence[Running]) -> list[list[Running]]:
        """Jobs that are prepared, as they go out: those of one list by one command, and with an ``array`` of theirs."""
        groups: dict[tuple[object, ...], list[Running]] = {}
        for n, job in enumerate(jobs):
            groups.setdefault(_kind(job) or (n,), []).append(job)
        return [some for group in groups.values() for some in self._parted(group)]

    def _parted(self, group: list[Running]) -> list[list[Running]]:
        first, member = group[0], group[0].plan.member
        if member is None or _kind(first) is None:
            if member is not None:
                self._tell_alone(first)
                _without_native_array(first, member.id)
            return [group]
        group.sort(key=_index)
        limited = self.is_limited(first)
        arrays = arrays_for(first.of.executor(), [element.parts[0].spec or psij.JobSpec() for element in group
                                                  if element.parts[0] is not None], _indices(group),
                            member.array.throttle if limited else None)
        if limited and (len(arrays) != 1 or len(group) != len(self._open(first))):
            self._limited[id(member.job)] = False
            group = self.engine.starting.within_limit(group)
            return self._parted(group) if group else []
        if not arrays:
            if len(group) > 1:
                self._tell_alone(first)
            for job in group:
                _without_native_array(job, member.id)
            return [[job] for job in group]
        elements_left = iter(group)
        return [[_element(next(elements_left), array, number) for number in array.indices] for array in arrays]

    def _tell_alone(self, job: Running) -> None:
        """Tell once why the elements of an array take a submit command each."""
        assert job.plan.member is not None
        key = id(job.plan.member.job)
        if job.attempts or job.alone or key in self._told or len(self._siblings[key]) < 2:
            return
        self._told.add(key)
        if (why := _why_alone(job)) is not None:
            self.engine.findings.add("SSS602", "Extension", f"{job.plan.member.id}: its elements are submitted one by "
                                     f"one: {why}", path=job.place, severity="info")

    def _open(self, job: Running) -> list[Running]:
        """The elements of an array that have not ended."""
        assert job.plan.member is not None
        return [element for element in self._siblings[id(job.plan.member.job)] if not element.ended]


def _is_plain(job: Running) -> bool:
    """Whether an element waits for nothing of its own."""
    return job.word in ("waiting", "running") and not (
        job.begun or job.on_hold or job.cancel or job.attempts or job.alone) and len(job.plan.parts) == 1


def _kind(job: Running) -> tuple[object, ...] | None:
    """What elements have in common that can go out together; None of a job that goes out alone."""
    member = job.plan.member
    if member is None or job.attempts or job.alone or job.staging or len(job.parts) != 1 or job.parts[0] is None:
        return None
    return id(job.of), id(member.job), job.hold, job.waits


def _why_alone(job: Running) -> str | None:
    """Why elements of an array go out one by one; None where no command is saved by another way."""
    backend = job.of.executor()
    if not isinstance(backend, BatchSchedulerExecutor):
        return None
    if backend.array_limits() is None:
        return f"{backend.name} is given no arrays by sssjob"
    if backend.config.surroundings is not None:
        return "each has Machine/Job Features of its own"
    if len(job.parts) > 1:
        return "each has several TaskGroups"
    staged = job.staging or any(part is not None and part.spec is not None and part.spec.stage_in for part in job.parts)
    return "each has files that are staged" if staged else "they differ by more than their index"


def _without_native_array(job: Running, array_id: str) -> None:
    """Where elements go out one by one, call the array of one what the document calls it, for it has no native id."""
    for part in job.parts:
        spec = None if part is None else part.spec
        if spec is None or NUMBER_MARK not in "".join(texts_of(spec)):
            continue
        assert part is not None
        part.spec = copy(spec)
        for name in ("stdin_path", "stdout_path", "stderr_path"):
            path = getattr(spec, name)
            setattr(part.spec, name, None if path is None else str(path).replace(NUMBER_MARK, array_id))
        part.spec.environment = {name: str(value).replace(NUMBER_MARK, array_id)
                                 for name, value in (spec.environment or {}).items()}


def _element(job: Running, array: JobArray, number: int) -> Running:
    """A job as an element of an array."""
    psij_job = job.parts[0]
    assert psij_job is not None
    psij_job._id = job.tags[0] = array.element_tag(number)
    job.array = replace(array, indices={number: array.indices[number]})
    return job


def _index(job: Running) -> int:
    return 0 if job.plan.member is None else job.plan.member.index


def _indices(jobs: Sequence[Running]) -> list[int]:
    return [_index(job) for job in jobs]


def whole_of(jobs: Sequence[Running]) -> JobArray:
    """The array of which these are elements."""
    arrays = [job.array for job in jobs if job.array is not None]
    return replace(arrays[0], indices={number: index for each_array in arrays for number,
                                       index in each_array.indices.items()})
