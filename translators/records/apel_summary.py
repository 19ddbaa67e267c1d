"""Format ``apel-summary``: jobs added up by month, as APEL's summary messages v0.2, v0.3 and v0.4.

    APEL-summary-job-message: v0.2
    Site: SITE-A
    Month: 11
    Year: 2026
    ...
    NumberOfJobs: 100
    %%

A sum for each site, month and year (of EndTime, UTC), user, VO, group, role, submit host, infrastructure, benchmark,
number of nodes and of processors. v0.3 is the normalised form: durations times the benchmark, Si2k over 250. Options:
``version`` (0.2, the default, 0.3 or 0.4), ``site`` and ``benchmark`` (``HEPscore23 15.3``) where the job names none.
A sum is no job: reading gives none, each summary is rejected so; but a table (``csv``, ``jsonl``, ``parquet``) takes
the sums as they are (``sums``).

Source: the message formats of APEL; its published test messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Final

from sssjob.document.model import Job
from sssjob.translators.base import WriteContext
from sssjob.translators.recognise import Fit, Sample, by_beginning
from sssjob.translators.records._adding import Levels, Sum, added
from sssjob.translators.records._grid import vo_of
from sssjob.translators.records._usage import GRID, Taking, Telling
from sssjob.translators.records.apel import HEADER, MESSAGE, MessageReading, option
from sssjob.translators.records.base import translator
from sssjob.translators.records.sums import SUMS, sums

__all__ = ["TRANSLATOR"]

_Key = tuple[tuple[str, str], ...]


def _texts(jobs: Iterable[Job], context: WriteContext) -> Iterator[str]:
    version = option(context, "version", "0.2", "0.3", "0.4")
    telling = Telling(context)
    context.options.get("site"), context.options.get("benchmark"), context.options.get("vo")

    def pieces() -> Iterator[str]:
        """A block for each sum, with the headers of messages between them."""
        summaries = added(jobs, telling, partial(_key, version), version == "0.3")
        for n, (key, total) in enumerate(summaries.items()):
            yield (f"APEL-summary-job-message: v{version}\n" if n % MESSAGE == 0 else "") + "".join(
                f"{name}: {value}\n" for name, value in (*key, *_amounts(total, version))) + "%%\n"
    return pieces()


def _key(version: str, t: Taking, site: str, end: datetime, levels: Levels) -> _Key:
    """What a sum is of, as the lines that say so."""
    amounts = [(tag, None if (p := t.amount(tag, least=1)) is None else p.text) for tag in ("NodeCount", "Processors")]
    shown = [(kind, format(figure, "f")) for kind, figure in levels]
    level: list[tuple[str, str | None]] = []
    if version == "0.4" and shown:
        level = [("ServiceLevel", "{" + ", ".join(f"{k}: {v}" for k, v in shown) + "}")]
    elif version == "0.2" and shown:
        level = [("ServiceLevelType", shown[0][0]), ("ServiceLevel", shown[0][1])]
        if len(shown) > 1:
            t.lost("SSS501", "Extension ServiceLevel", "one benchmark has a place, the first; version 0.4 has all")
    infrastructure = "Infrastructure" if version == "0.3" else "InfrastructureType"
    lines = (("Site", site), ("Month", str(end.month)), ("Year", str(end.year)),
             ("GlobalUserName", t.text("GlobalUser")), ("VO", vo_of(t)), ("VOGroup", t.fact(GRID, "VOGroup")),
             ("VORole", t.fact(GRID, "VORole")), ("SubmitHost", t.text("SubmitHost")),
             (infrastructure, t.fact(GRID, "Infrastructure")), *level, *amounts)
    return tuple((name, value) for name, value in lines if value is not None)


def _amounts(total: Sum, version: str) -> Iterator[tuple[str, str]]:
    yield "EarliestEndTime", str(total.earliest)
    yield "LatestEndTime", str(total.latest)
    yield "WallDuration", str(total.wall)
    yield "CpuDuration", str(total.cpu)
    if version == "0.3":
        for name, value in (("NormalisedWallDuration", total.normal_wall), ("NormalisedCpuDuration", total.normal_cpu)):
            yield name, format(value.quantize(Decimal(1), ROUND_HALF_UP), "f")
    yield "NumberOfJobs", str(total.jobs)


_FIRST: Final = re.compile("APEL-(?:normalised-)?summary(?:-job)?-message:")


def _recognise(sample: Sample) -> Fit | None:
    return by_beginning(sample, _FIRST, "a header of APEL's summaries")


TRANSLATOR = replace(translator("apel-summary", "APEL summary messages", MessageReading, (), _texts, _recognise),
                     sums=sums, totals=SUMS, header=HEADER)
