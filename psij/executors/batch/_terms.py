"""The words in which batch executors and what drives them speak: kinds of failure, sources of evidence, errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal

from psij.exceptions import SubmitException
from psij.executors.batch._identity import Whose
from psij.job_status import JobStatus

UNKNOWN_ERROR = "PSIJ: Unknown error"      # what hooks get of a command that failed and said nothing


class InvalidJobStateError(Exception):
    """A job cannot be canceled because it has ended already; raised by process_cancel_command_output."""


class SourceOffError(Exception):
    """A source of final states does not exist at this site (such as accounting that is turned off)."""


class Failure(Enum):
    """What the failure of a submit command means."""

    REFUSED = "no job was made, and trying again will not help"
    FULL = "no job was made, as there are as many as may be; there is room when some have ended"
    LATER = "no job was made, and trying again later may help"
    UNKNOWN = "a job may have been made"


@dataclass(frozen=True, slots=True)
class Search:
    """What a search for jobs by their tags gave. found: native ids by id of the job. silence: why nobody knows of the
    other jobs whether they were made, None where they certainly were not; transient where it may be known later."""

    found: Mapping[str, str]
    silence: SubmitException | None


@dataclass(frozen=True, slots=True)
class Source:
    """A source of evidence on jobs that have ended. commands: asked one after the other.

    parse: exit code, output and the jobs that are asked about to statuses by native id, which need not be final; what
    is another job's of the same id is left out. Raises SourceOffError when there is no such source here. late: asked
    only when the others have been silent on a job for accounting_delay.
    """

    name: str
    commands: Sequence[list[str]]
    parse: Callable[[int, str, Whose], Mapping[str, JobStatus]]
    late: bool = False


#: What a resource manager can be told to do with a job.
Order = Literal["hold", "release", "clear", "rerun", "suspend", "resume", "signal"]
#: Orders that may be given once more to a job to which they were given, so that one command is for many jobs.
MANY: Final[tuple[Order, ...]] = ("hold", "release", "suspend", "resume")
IDS_AT_ONCE: Final = 100        # native ids in one command
#: The same, and that it asks for something else.
AnyOrder = Order | Literal["change"]
#: Order -> what is done to the job then, as a participle.
DEEDS: Final[Mapping[Order, str]] = {"hold": "held", "release": "released", "rerun": "run again",
                                     "suspend": "suspended", "resume": "resumed", "signal": "signalled"}


@dataclass(frozen=True, slots=True)
class Orders:
    """What a resource manager is told to do with a job: commands, in which ``{}`` stands for the native id of the job,
    and in signal ``{signal}`` for the name of one, as ``USR1``. A command whose last word is the id takes more of them
    behind it, and where that word is ``{,}`` they are one word, separated by commas.

    cancel: its last word is the id. over: what cancel says of a job that has ended. All
    others: None where there is no such command. clear: what releases a job that is in error. held: option of the
    submit command with which a job is held from the beginning, and its value; empty where there is none.
    """

    cancel: str
    over: re.Pattern[str]
    hold: str | None = None
    release: str | None = None
    clear: str | None = None
    rerun: str | None = None
    suspend: str | None = None
    resume: str | None = None
    signal: str | None = None
    held: Mapping[str, object] = field(default_factory=dict)


def check_status_exit_code(command: str, exit_code: int, out: str) -> None:
    """Raise RuntimeError when a status command failed; for parse_status_output."""
    if exit_code != 0:
        raise RuntimeError(f"{command} failed with exit code {exit_code}: {out.strip()[:2000] or UNKNOWN_ERROR}")
