"""The states of a job and their partial order (PSI/J specification, JobState; staging states as in psij-python)."""

from __future__ import annotations

from enum import Enum

__all__ = ["JobState", "JobStateOrder"]


_FIRST_FINAL = 6


class JobState(Enum):       # _value_ is value, without the detour that costs a third of a change of state
    """State of a job.

    NEW < QUEUED < STAGE_IN < ACTIVE < STAGE_OUT < CLEANUP < each of COMPLETED, FAILED, CANCELED. Two different final
    states have no order: neither is greater than the other. Numbers are those of psij-python's head; nothing here
    depends on them.
    """

    NEW = 0
    QUEUED = 1
    STAGE_IN = 2
    ACTIVE = 3
    STAGE_OUT = 4
    CLEANUP = 5
    COMPLETED = 6
    FAILED = 7
    CANCELED = 8

    def is_greater_than(self, other: JobState) -> bool | None:
        """True if this state comes after the other one, False if not; None for two different final states."""
        if self is other:
            return False
        mine, theirs = self._value_, other._value_
        return None if mine >= _FIRST_FINAL and theirs >= _FIRST_FINAL else mine > theirs

    def __gt__(self, other: object) -> bool:
        return self.is_greater_than(other) is True if isinstance(other, JobState) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self is other or self > other if isinstance(other, JobState) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return other > self if isinstance(other, JobState) else NotImplemented

    def __le__(self, other: object) -> bool:
        return other >= self if isinstance(other, JobState) else NotImplemented

    @property
    def final(self) -> bool:
        """True for COMPLETED, FAILED and CANCELED."""
        return self._value_ >= _FIRST_FINAL

    @staticmethod
    def from_name(name: str) -> JobState:
        """The state of that name. Raises KeyError for any other text."""
        return JobState[name]

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


class JobStateOrder:
    """What must come before what."""

    @staticmethod
    def prev(state: JobState) -> JobState | None:
        """The state that a job must have had directly before this one, or None.

        NEW has none, and neither have FAILED and CANCELED, which can follow any state that is not final.
        """
        if state in (JobState.NEW, JobState.FAILED, JobState.CANCELED):
            return None
        return JobState(state.value - 1)
