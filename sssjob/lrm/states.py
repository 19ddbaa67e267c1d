"""What a native state means, in words that no manager owns. Each manager's table of states stands in its module."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["NativeState", "Stage", "by_word"]


class Stage(Enum):
    """How far a job is. AGAIN: a run of it has ended and it waits for the next; ENDED: it is over, and its exit says
    how; SILENT: the state says nothing about the job."""

    WAITING = 0
    HELD = 1
    RUNNING = 2
    SUSPENDED = 3
    AGAIN = 4
    ENDED = 5
    DONE = 6
    FAILED = 7
    CANCELED = 8
    SILENT = 9


@dataclass(frozen=True, slots=True)
class NativeState:
    """word: as the manager writes it; reason: why a job in it has ended, as in docs/facts.md; phase: what the manager
    is doing with the job, where the stage alone does not tell; waits: why a job in it waits (``waits``), where the
    state alone tells."""

    word: str
    stage: Stage
    reason: str | None = None
    phase: str | None = None
    waits: str | None = None

    @property
    def cause(self) -> str:
        """Why a job in it has ended, as a StatusMessage begins; empty where the state does not say it."""
        return "cancel" if self.stage is Stage.CANCELED else self.reason or ""


def by_word(*states: NativeState) -> dict[str, NativeState]:
    """Word -> state."""
    return {state.word: state for state in states}
