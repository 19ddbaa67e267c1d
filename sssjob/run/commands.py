"""The submit commands of jobs: how many run beside one another, and what is done before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sssjob.run.abilities import PreparesAhead
from sssjob.run.standing import Running

__all__ = ["most_at_once", "prepare_scripts"]


def most_at_once(jobs: Sequence[Running]) -> int:
    """How many submit commands may run while that of a job does, itself among them; 0 where the job is submitted here:
    elements of an array, a job of several parts, and one whose executor runs no such command."""
    backend = jobs[0].of.executor()
    alone = jobs[0].array is None and len(jobs[0].parts) == 1
    commands = getattr(backend, "submit_commands", None) if alone else None     # isinstance of a protocol takes longer
    return 0 if commands is None else max(commands, 1)


def prepare_scripts(consignments: Sequence[Sequence[Running]]) -> None:
    """Do ahead what can be done before the submit commands of jobs run, as far as threads submit them."""
    for jobs in consignments:
        if most_at_once(jobs) and jobs[0].parts[0] is not None:
            cast(PreparesAhead, jobs[0].of.executor()).prepare(jobs[0].parts[0])
