"""Jobs added up by month, for the formats that hold sums: ``apel-summary`` and ``car-summary``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, TypeVar

from sssjob.document.endings import Ended
from sssjob.document.model import Job
from sssjob.translators.records._grid import benchmarks
from sssjob.translators.records._usage import Taking, Telling
from sssjob.translators.records.car import invented, site_of

Levels = list[tuple[str, Decimal]]      # benchmarks: name, figure
_Key = TypeVar("_Key")
_SI2K: Final = 250      # Si2k of one HEPSPEC
#: Why a record is not counted.
TOLD_AGAIN: Final = "a record is left out of whose run another one tells"


@dataclass(slots=True)
class Sum:
    """The jobs of one key. earliest, latest: of their ends, epoch seconds. normal: times the benchmark."""

    jobs: int = 0
    wall: int = 0
    cpu: int = 0
    earliest: int = 1 << 62
    latest: int = 0
    normal_wall: Decimal = Decimal(0)
    normal_cpu: Decimal = Decimal(0)


def added(jobs: Iterable[Job], telling: Telling, key_of: Callable[[Taking, str, datetime, Levels], _Key],
          normalised: bool = False) -> dict[_Key, Sum]:
    """The sums of jobs by a key, which is made of a job, its site, when it ended (UTC) and its benchmarks.

    normalised: jobs without a benchmark are left out. All that are left out are told, and that no job comes back.
    """
    sums: dict[_Key, Sum] = {}
    ended = Ended()
    for job in jobs:
        t = Taking(job, telling)
        site = site_of(t)
        if site is None or t.job.value("State") not in ("Completed", None):
            t.lost("SSS546", "Job", "a job is left out that has not ended, or without a site, which the option site "
                   "can name")
            continue
        levels = benchmarks(t)
        if normalised and not levels:
            t.lost("SSS546", "Job", "a job without a benchmark cannot be normalised and is left out; the option "
                   "benchmark can name it")
            continue
        used = invented(t)
        if used is None:
            continue
        if ended.again(job):
            t.lost("SSS546", "Id", TOLD_AGAIN)
            continue
        _, end, wall, cpu = used
        _add(sums.setdefault(key_of(t, site, datetime.fromtimestamp(end, UTC), levels), Sum()), end, wall, cpu, levels)
        t.lost("SSS502", "Job", "jobs are added up: no job can be read back from a sum")
    return sums


def _add(total: Sum, end: int, wall: int, cpu: int, levels: Levels) -> None:
    total.jobs += 1
    total.wall += wall
    total.cpu += cpu
    total.earliest, total.latest = min(total.earliest, end), max(total.latest, end)
    if levels:
        kind, figure = levels[0]
        factor = figure / _SI2K if kind.lower() == "si2k" else figure
        total.normal_wall += wall * factor
        total.normal_cpu += cpu * factor
