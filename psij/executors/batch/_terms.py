"""The words in which batch executors and what drives them speak: kinds of failure, sources of evidence, errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from psij.job_status import JobStatus

__all__ = ["UNKNOWN_ERROR", "Failure", "InvalidJobStateError", "Source", "SourceOffError", "check_status_exit_code"]

UNKNOWN_ERROR = "PSIJ: Unknown error"      # what hooks get of a command that failed and said nothing


class InvalidJobStateError(Exception):
    """A job cannot be canceled because it has ended already; raised by process_cancel_command_output."""


class SourceOffError(Exception):
    """A source of final states does not exist at this site (such as accounting that is turned off)."""


class Failure(Enum):
    """What the failure of a submit command means."""

    REFUSED = "no job was made, and trying again will not help"
    LATER = "no job was made, and trying again later may help"
    UNKNOWN = "a job may have been made"


@dataclass(frozen=True, slots=True)
class Source:
    """A source of evidence on jobs that have ended. commands: asked one after the other.

    parse: exit code and output to statuses by native id, which need not be final. Raises SourceOffError when there is
    no such source here. late: asked only when the others have been silent on a job for accounting_delay.
    """

    name: str
    commands: Sequence[list[str]]
    parse: Callable[[int, str], Mapping[str, JobStatus]]
    late: bool = False


def check_status_exit_code(command: str, exit_code: int, out: str) -> None:
    """Raise RuntimeError when a status command failed; for parse_status_output."""
    if exit_code != 0:
        raise RuntimeError(f"{command} failed with exit code {exit_code}: {out.strip()[:2000] or UNKNOWN_ERROR}")
