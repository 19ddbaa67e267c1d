"""Native arrays, which others have submitted: an array as one job, and which tasks a text names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from psij.job_state import JobState
from psij.job_status import JobStatus
from sssjob.lrm.idset import ranges

__all__ = ["MOST_TASKS", "of_elements", "task_numbers"]

MOST_TASKS = 100_000        # of one line that are counted out; what has more is known as a whole only

#: What becomes of the facts of the elements of an array, by their keys.
_FACTS: dict[str, Callable[[Any], Any]] = {
    "submit_time": min, "start_time": min, "end_time": max, "wall_seconds": sum, "cpu_seconds": sum,
    "memory_max_bytes": max, "memory_average_bytes": max, "processors": max, "node_count": max, "starts": max}
_ENDS = ("end_time", "wall_seconds", "cpu_seconds", "memory_max_bytes", "memory_average_bytes")
# Which element counts for the whole: the first of these states.
_ENDED = (JobState.FAILED, JobState.CANCELED, JobState.COMPLETED)
_GOING = (JobState.ACTIVE, JobState.QUEUED)


def of_elements(elements: Sequence[JobStatus]) -> JobStatus:
    """The status of an array, from those of its elements in their order; of one element its own.

    While one of them has not ended it runs if any of them has begun. Then: from its first start to its last end, the
    exit of the first that failed. Usage is added up; of memory, slots and runs it is the most that one element had.
    """
    if len(elements) == 1:
        return elements[0]
    ended = all(element.state.final for element in elements)
    order = _ENDED if ended else _GOING
    counts = min(elements, key=lambda element: order.index(element.state) if element.state in order else len(order))
    state = JobState.ACTIVE if not ended and any(element.state.final for element in elements) else counts.state
    facts = dict(counts.metadata or {})
    facts.pop("attempts", None)
    for key, choose in _FACTS.items():
        values = [element.metadata[key] for element in elements if element.metadata and key in element.metadata]
        if values and (ended or key not in _ENDS):
            facts[key] = choose(values)
    if "nodes" in facts:
        facts["nodes"] = list(dict.fromkeys(n for element in elements
                                            for n in (element.metadata or {}).get("nodes", ())))
    time = facts.get("end_time") if ended else facts.get("start_time" if state is JobState.ACTIVE else "submit_time")
    return JobStatus(state, time=time, exit_code=counts.exit_code, message=counts.message, metadata=facts)


def task_numbers(text: str) -> Iterator[int]:
    """The tasks that ``4`` or ``3-9:2,12`` names; none where it has another form or names more than MOST_TASKS."""
    named = ranges(text)
    if named is not None and sum(map(len, named)) <= MOST_TASKS:
        for span in named:
            yield from span
