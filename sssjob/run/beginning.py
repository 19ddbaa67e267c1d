"""Custom attributes with which a job is submitted beside those of its document: when it may begin, and that no hold of
its keeps it from that."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import psij
from psij.executors.batch._options import custom_of
from sssjob.run.abilities import Holds
from sssjob.run.standing import Running

if TYPE_CHECKING:
    from sssjob.run.plan import PlannedJob

__all__ = ["begin_attributes", "begin_of", "no_hold", "with_attributes"]

_LATEST: Final = (1 << 31) - 1  # seconds since the epoch that every manager knows; Slurm takes later ones for no time


def begin_of(job: Running) -> Mapping[str, object] | None:
    """As ``begin_attributes``, of a job that is looked after."""
    return begin_attributes(job.plan, job.of.executor()) if job.plan.eligible else {}


def begin_attributes(plan: PlannedJob, backend: object) -> Mapping[str, object] | None:
    """The custom attributes with which a resource manager waits for the EligibleTime of a job; None where it cannot,
    none for a time that has come."""
    if not plan.eligible or plan.eligible <= time.time():
        return {}
    say = getattr(backend, "begin_attributes", None)
    wait: Mapping[str, object] | None = None if say is None or plan.eligible > _LATEST else say(plan.eligible)
    taken = {name for part in plan.parts for name in custom_of(part.spec)}
    return None if wait is None or taken & wait.keys() else wait


def no_hold(job: Running) -> dict[str, object]:
    """The custom attributes that take back those with which a job would be submitted with a hold."""
    backend = job.of.executor()
    held = backend.hold_attributes() if isinstance(backend, Holds) else None
    return dict.fromkeys(held or {}, False)


def with_attributes(spec: psij.JobSpec, attributes: Mapping[str, object]) -> psij.JobSpec:
    """A copy with further custom attributes."""
    spec_copy = copy.copy(spec)
    spec_copy.attributes = copy.deepcopy(spec.attributes) if spec.attributes is not None else psij.JobAttributes()
    for name, value in attributes.items():
        spec_copy.attributes.set_custom_attribute(name, value)
    return spec_copy
