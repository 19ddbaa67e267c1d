"""Which reasons for the end of a job each executor can tell, derived from the tables of the managers.

The words are those of docs/facts.md. An exit code of the job's own, every executor tells. What stands here beside the
tables is what an executor finds out itself: Slurm's step says that it was out of memory, Grid Engine's record which
limit was passed, the description of HTCondor's job why it was removed. Proved on real clusters: Slurm and Grid Engine;
the others by their documents and stand-ins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sssjob.lrm import flux, lsf, pbs, sge, slurm

__all__ = ["ALIASES", "EXECUTORS", "SELDOM", "reasons_of"]

_SIGNAL: Final = frozenset(("signal",))
_TOLD: Final[Mapping[str, frozenset[str]]] = {
    "slurm": _SIGNAL | {state.reason for state in slurm.STATES.values() if state.reason is not None},
    "sge": frozenset(sge.FAILED.values()) | {"cpu-limit", "memory"},
    "pbs": _SIGNAL | {reason for _, reason in pbs.FAILURES.values() if reason},
    "pbs_classic": _SIGNAL | {reason for reason, _ in pbs.FAILURES.values() if reason},
    "lsf": frozenset(reason for _, reason in lsf.TERMINATIONS.values() if reason) | {"launch"},
    "flux": _SIGNAL | frozenset(flux.EXCEPTIONS.values()),
    "fluxexec": _SIGNAL | frozenset(flux.EXCEPTIONS.values()),
    "htcondor": _SIGNAL | {"timeout"},
    "cobalt": _SIGNAL | {"timeout"},
    "nqsv": _SIGNAL,
    "iri": frozenset(),         # a facility says an exit code, or that a job was cancelled or failed
    "arc": frozenset(),         # A-REX says an exit code, and what failed in words of its own
    "local": _SIGNAL | {"timeout", "cpu-limit", "launch"},
}

#: (executor, reason) -> why few of the failures that a user means by a reason are told by it.
#: Source: queue_conf(5), RESOURCE LIMITS; seen with Grid Engine 8.1.9: what passes h_vmem is refused by setrlimit(2).
SELDOM: Final[Mapping[tuple[str, str], str]] = {
    ("sge", "memory"): "Grid Engine refuses a program memory beyond the limit, and the program ends by an exit code of "
                       "its own; memory are only jobs that Grid Engine ends, as several processes pass it together",
}

#: The executors that come along, by the names that psij knows them by.
EXECUTORS: Final = frozenset(_TOLD)
#: Their other names, which psij takes too; among them the names of formats that their managers have.
ALIASES: Final[Mapping[str, str]] = {"pbspro": "pbs", "torque": "pbs_classic", "gridengine": "sge",
                                     "condor": "htcondor"}


def reasons_of(executor: str) -> frozenset[str] | None:
    """The reasons that an executor can tell, by its name; None of one that is not known here, such as a plug-in."""
    return _TOLD.get(executor)
