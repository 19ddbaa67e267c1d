"""What an executor may be able to do beyond PSI/J: a protocol for each ability, of which isinstance asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pathlib import Path

    import psij
    from psij.executors.batch._array_jobs import JobArray
    from psij.executors.batch._terms import Order, Search

__all__ = ["Brings", "CancelsMany", "Changes", "Doubts", "Finds", "FindsMany", "Holds", "OrdersMany", "PreparesAhead",
           "Refers", "SubmitsArrays", "SubmitsTogether", "Tidies"]


@runtime_checkable
class Brings(Protocol):
    """Brings programs that lie here to where its jobs run."""

    def brings(self, path: Path) -> str:
        """The path by which jobs start a program."""


@runtime_checkable
class CancelsMany(Protocol):
    """Cancels many jobs by few commands."""

    def cancel_many(self, jobs: Sequence[psij.Job]) -> dict[psij.Job, psij.SubmitException]:
        """Ask for their ends; those for which that failed."""


@runtime_checkable
class Changes(Protocol):
    """Changes what a job asks for that was submitted."""

    def change(self, job: psij.Job, before: psij.JobSpec, after: psij.JobSpec) -> None:
        """Have it ask for what ``after`` says; ``before`` says what it was submitted with. Raises SubmitException."""


@runtime_checkable
class Doubts(Protocol):
    """Knows of a submission that raised whether there may be a job all the same."""

    def may_have_made(self, job: psij.Job) -> bool:
        """Whether nobody knows what became of it."""


@runtime_checkable
class Finds(Protocol):
    """Finds a native job by its tag. Raises SubmitException where that is not known now."""

    def native_id_of(self, job_id: str) -> str | None:
        """The native id; None where there certainly is no such job."""


@runtime_checkable
class FindsMany(Protocol):
    """Finds native jobs by their tags, with one question."""

    def native_ids_of(self, job_ids: Sequence[str]) -> Search:
        """What is known of each."""


@runtime_checkable
class Holds(Protocol):
    """Has custom attributes with which a job is held until its user releases it; None where it cannot be."""

    def hold_attributes(self) -> Mapping[str, object] | None:
        """Name and value of each."""


@runtime_checkable
class OrdersMany(Protocol):
    """Holds, releases, suspends and resumes many jobs by few commands."""

    def order_many(self, jobs: Sequence[psij.Job], order: Order) -> dict[psij.Job, psij.SubmitException]:
        """Have it done; those for which that failed."""


@runtime_checkable
class PreparesAhead(Protocol):
    """Submits by commands, and prepares a job while those of others run; submit_commands: how many at a time."""

    submit_commands: int

    def prepare(self, job: psij.Job) -> None:
        """Do what can be done before its own command runs."""

    def withdraw(self, job: psij.Job) -> None:
        """Undo that."""


@runtime_checkable
class Refers(Protocol):
    """Names a job for good, where its native id alone comes again."""

    def reference(self, job: psij.Job) -> str | None:
        """The name; None where it has none now."""


@runtime_checkable
class SubmitsArrays(Protocol):
    """Submits jobs that differ by an index only as the elements of native arrays."""

    def arrays(self, specs: Sequence[psij.JobSpec], indices: Sequence[int], most: int | None) -> Sequence[JobArray]:
        """The arrays as which they can be submitted, in their order; none where they go out one by one."""

    def submit_array(self, jobs: Sequence[psij.Job], array: JobArray) -> None:
        """Submit one of them."""

    def element_id(self, native_id: str, number: int) -> str:
        """The native id of an element. native_id: of the whole."""


@runtime_checkable
class SubmitsTogether(Protocol):
    """Submits jobs as the parts of one native job; part_id: the native id of a part, of that of the whole."""

    def submit_together(self, jobs: Sequence[psij.Job]) -> None:
        """Submit them."""

    def part_id(self, native_id: str, number: int) -> str:
        """The native id of a part."""


@runtime_checkable
class Tidies(Protocol):
    """Leaves files of jobs that have ended until they are to be removed."""

    files_removable: bool

    def remove_files(self, job: psij.Job) -> None:
        """Remove those of a job."""
