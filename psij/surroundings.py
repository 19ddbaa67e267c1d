"""What stands around a job where it runs: directories, variables, services. psij has none of its own.

``JobExecutorConfig.surroundings`` names an object that makes them. Executor ``local`` calls ``enter`` before a job
starts and ``leave`` after it has ended; batch executors write the lines of ``around`` into the submit script, and give
what these have left behind (``$_psij_files.left``) to ``read``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from psij.job import Job

__all__ = ["Around", "Entered", "Surroundings", "Told"]


@dataclass(frozen=True, slots=True)
class Told:
    """What a resource manager tells a job on its node of what it was granted.

    lines: for sh, before the words are used. words: amount to (shell word, factor). Known amounts: native_id,
    start_time (seconds since the epoch), processors (of the job on this node), node_processors, wall_seconds,
    cpu_seconds, memory_bytes, swap_bytes, scratch_bytes (of the job on this node). A word that gives no whole number
    above 0 tells nothing. each_node: lines for sh that run the words ``"$@"`` on every node of a job of several, or on
    every other one, once or more; the words have no blanks and need not keep any quotes. Empty where nothing can.
    several: the job has parts, each with nodes of its own.
    """

    lines: str = ""
    words: Mapping[str, tuple[str, int]] = field(default_factory=lambda: MappingProxyType({}))
    each_node: str = ""
    several: bool = False


@dataclass(frozen=True, slots=True)
class Around:
    """Lines for bash before and after a job, in the submit script. variables: those that before exports, which jobs
    keep that inherit nothing else. guard: words before a program that a launcher starts, on whatever node."""

    before: str
    after: str = ""
    variables: tuple[str, ...] = ()
    guard: tuple[str, ...] = ()


class Entered(Protocol):
    """The surroundings of one job on this machine."""

    @property
    def variables(self) -> Mapping[str, str]:
        """For the job's environment."""

    def leave(self) -> Mapping[str, Any]:
        """Take them away; keys for the metadata of the final status."""


class Surroundings(Protocol):
    """Makes the surroundings of jobs. Exceptions are logged, and the job runs without them."""

    def check(self, job: Job) -> None:
        """Raise InvalidJobException for what the job says wrong."""

    def enter(self, job: Job, processors: int, native_id: str) -> Entered:
        """Before a job starts on this machine. processors: what it holds."""

    def around(self, job: Job, told: Told) -> Around:
        """For the submit script of a job."""

    def read(self, job: Job, text: str) -> Mapping[str, Any]:
        """Keys for the metadata of the final status, from what the lines have left behind."""
