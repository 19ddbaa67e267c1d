"""What one record of any manager says of a run: one object of plain values, and the numbers that its fields spell.

A field is None where the record does not say it. Each manager's module makes these of its own records; who keeps books
or follows a job takes them from here, whoever the manager is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

__all__ = ["Usage", "end_of", "known_sum", "of_runs", "present", "quantity", "whole"]

N = TypeVar("N", int, float)

_NUMBER: Final = re.compile(r"\d{1,18}(?:\.\d{0,18})?", re.ASCII)
_WHOLE: Final = re.compile(r"\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One run, or one step of it.

    native_state: the state in the manager's words; queue, account, qos, machine: as the manager names them.
    submit_time, start_time, end_time: seconds since the epoch. ran: whether it had a place to run, without which a
    start is none. nodes: names of its hosts, each once; node_count, processors, gpus: counts; gpu_types: by model.
    starts: how often it was started. wall_seconds: without the time in which it was suspended, which is
    suspend_seconds; cpu_seconds: of all processors. memory_max_bytes, memory_average_bytes: what was resident.
    energy_joules: of all nodes. exit_code: as the manager writes it; signal: 0 and None for none.
    """

    native_state: str | None = None
    submit_time: float | None = None
    queue: str | None = None
    account: str | None = None
    qos: str | None = None
    machine: str | None = None
    ran: bool = False
    start_time: float | None = None
    nodes: list[str] | None = None
    node_count: float | None = None
    processors: float | None = None
    gpus: float | None = None
    gpu_types: Mapping[str, int] | None = None
    starts: float | None = None
    end_time: float | None = None
    wall_seconds: float | None = None
    suspend_seconds: float | None = None
    cpu_seconds: float | None = None
    memory_max_bytes: int | None = None
    memory_average_bytes: int | None = None
    energy_joules: float | None = None
    exit_code: int | None = None
    signal: int | None = None

    def facts(self, *, began: bool, over: bool) -> dict[str, Any]:
        """What is known, by name. began: of where it runs too; over: of its end and of what it used too.

        A job that never ran used nothing, whatever its record says. How it ended is not among the facts.
        """
        names = _WHOSE + (_WHERE if began and self.ran else ()) + (("end_time",) if over else ())
        return self.known(*names, *(_USED if over and self.ran else ()))

    def attempt(self) -> dict[str, Any]:
        """What is known of it as one run among others of a job."""
        fields = self.known("native_state", "start_time", "end_time", "exit_code", "signal", "wall_seconds", "nodes")
        if not fields.get("signal"):
            fields.pop("signal", None)
        else:
            fields.pop("exit_code", None)
        return fields

    def known(self, *names: str) -> dict[str, Any]:
        """Those of these fields that are known."""
        return present({name: getattr(self, name) for name in names})


_WHOSE: Final = ("native_state", "submit_time", "queue", "account", "qos", "machine")
_WHERE: Final = ("start_time", "nodes", "node_count", "processors", "gpus", "gpu_types", "starts")
_USED: Final = ("wall_seconds", "suspend_seconds", "cpu_seconds", "memory_max_bytes", "memory_average_bytes",
                "energy_joules")


def present(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Those facts that are not None."""
    return {name: value for name, value in facts.items() if value is not None}


def of_runs(runs: Sequence[Usage], parts: Iterable[Usage] = ()) -> Usage:
    """The job whose runs these are, in order. parts: steps and tasks of them, which tell of memory only.

    It was submitted when the first run says, for later ones have the time at which it was put back, ended with the last
    one, and stands where it was last given a place. Use adds up; of memory it is the most that one run or part had.
    """
    began = [run for run in runs if run.ran]
    last, place, all_parts = runs[-1], (began or runs)[-1], (*began, *parts)
    return replace(
        last, submit_time=runs[0].submit_time, ran=place.ran,
        start_time=place.start_time, nodes=place.nodes, node_count=place.node_count, processors=place.processors,
        gpus=place.gpus, gpu_types=place.gpu_types,
        starts=len(began) or None, wall_seconds=known_sum(run.wall_seconds for run in began),
        suspend_seconds=known_sum(run.suspend_seconds for run in began),
        cpu_seconds=known_sum(run.cpu_seconds for run in began),
        energy_joules=known_sum(run.energy_joules for run in began),
        memory_max_bytes=max((usage.memory_max_bytes or 0 for usage in all_parts), default=0) or None,
        memory_average_bytes=max((usage.memory_average_bytes or 0 for usage in all_parts), default=0) or None)


def known_sum(values: Iterable[N | None]) -> N | None:
    """The sum of what is known; None where nothing is."""
    amounts = [value for value in values if value is not None]
    return sum(amounts) if amounts else None


def end_of(status: int) -> tuple[int | None, int | None]:
    """(exit code, signal) of a wait status, wait(2): one of them, the other is None."""
    signal = status & 0x7F
    return (None, signal) if signal else (status >> 8, None)


def quantity(text: str) -> float | None:
    """A number that is not negative; None for anything else, such as ``Unknown``."""
    return float(text) if _NUMBER.fullmatch(text) else None


def whole(text: str | None) -> int | None:
    """A count; None for anything else."""
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None
