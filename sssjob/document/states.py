"""States of jobs under the words of other systems: what they mean in the five words of the specification.

State is an open list, so a document keeps its own word; whoever has to know what it means asks ``job_state``. Source:
SSS job object 3.1.0, section 5.1; the other words are those of the Maui scheduler.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

__all__ = ["STATES", "JobState", "Word", "has_not_begun", "job_state", "waits"]

#: The words of Table 2, and NotQueued for a job that no resource manager has yet.
Word = Literal["NotQueued", "Idle", "Hold", "Running", "Suspended", "Completed"]


class JobState(NamedTuple):
    """What a State means. state: None for a word that nobody knows; hold: the Hold that it implies; message: the
    StatusMessage that it implies."""

    state: Word | None
    hold: str | None = None
    message: str | None = None


#: Word in lower case -> what it means.
STATES: Final[dict[str, JobState]] = {
    "notqueued": JobState("NotQueued"),
    "idle": JobState("Idle"),
    "notrun": JobState("Idle"),
    "staging": JobState("Idle"),
    "staged": JobState("Idle"),
    "starting": JobState("Idle"),           # nothing runs yet
    "hold": JobState("Hold"),
    "held": JobState("Hold"),
    "userhold": JobState("Hold", "User"),
    "systemhold": JobState("Hold", "System"),
    "batchhold": JobState("Hold", "Batch"),
    "deferred": JobState("Hold", "Batch"),
    "running": JobState("Running"),
    "suspended": JobState("Suspended"),
    "completed": JobState("Completed"),
    "removed": JobState("Completed", message="removed"),
    "vacated": JobState("Completed", message="vacated"),
    "submiterr": JobState("Completed", message="submission failed"),
}
_UNKNOWN: Final = JobState(None)


def job_state(text: object) -> JobState:
    """What a job's State means, in any case; ``state`` is None where it is absent or not known (lost, unknown ...)."""
    return STATES.get(text.strip().lower(), _UNKNOWN) if isinstance(text, str) else _UNKNOWN


def waits(text: object) -> bool:
    """Whether a job with this State has not started: then its bare properties are what it asks for (section 10)."""
    return job_state(text).state not in ("Running", "Suspended", "Completed")


def has_not_begun(text: object) -> bool:
    """Whether this State says that a job has not started, so that nothing was delivered to it; one that is absent or
    not known does not say so: the job may be a record."""
    return text != "Completed" and job_state(text).state in ("NotQueued", "Idle", "Hold")   # as most are: no search
