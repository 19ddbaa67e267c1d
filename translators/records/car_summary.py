"""Format ``car-summary``: jobs added up by month, as aggregated records of EMI's Compute Accounting Record.

    <SummaryRecords xmlns="http://eu-emi.eu/namespaces/2012/11/aggregatedcomputerecord" ...>
    <SummaryRecord><Site>S</Site><Month>11</Month><Year>2026</Year>...<NumberOfJobs>100</NumberOfJobs></SummaryRecord>

A sum for each site, month and year (of EndTime, UTC), user, VO, group, role, machine, submit host, queue,
infrastructure, middleware, benchmark, number of nodes and of processors. Options of writing: ``site`` and ``benchmark``
(``HEPSPEC 11.4``), where the job names none. A sum is no job: reading gives none, each is rejected so; but a table
(``csv``, ``jsonl``, ``parquet``) takes the sums as they are, and ``account`` adds them up.

Source: EMI Compute Accounting Record 1.2, aggregated; the example of the record and a published test record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final

from sssjob.document.model import Job
from sssjob.translators.base import WriteContext
from sssjob.translators.recognise import by_root
from sssjob.translators.records._adding import Levels, Sum, added
from sssjob.translators.records._grid import vo_of
from sssjob.translators.records._usage import GRID, Taking, Telling
from sssjob.translators.records._xml import element, fit, instant, stamp
from sssjob.translators.records.base import translator
from sssjob.translators.records.car import NAMESPACE, SUMMARIES, CarReading, grid_of
from sssjob.translators.records.sums import SUMS, sums

__all__ = ["TRANSLATOR"]

_Key = tuple[str, str, str]     # what stands before the times, between them and the number of jobs, after it


def _texts(jobs: Iterable[Job], context: WriteContext) -> Iterator[str]:
    context.options.get("site"), context.options.get("benchmark"), context.options.get("vo")

    def pieces() -> Iterator[str]:
        """The frame, and a record for each sum."""
        yield '<?xml version="1.0" encoding="UTF-8"?>\n'
        yield f'<SummaryRecords xmlns="{SUMMARIES}" xmlns:urf="{NAMESPACE}">\n'
        for key, total in added(jobs, Telling(context), _key).items():
            yield f"<SummaryRecord>{fit(_record(key, total))}</SummaryRecord>\n"
        yield "</SummaryRecords>\n"
    return pieces()


def _key(t: Taking, site: str, end: datetime, levels: Levels) -> _Key:
    head = [element("Site", site), element("Month", str(end.month)), element("Year", str(end.year)),
            element("UserIdentity", list(_user(t)))]
    for tag, source in (("MachineName", "Machine"), ("SubmitHost", "SubmitHost"), ("Queue", "Queue")):
        if (text := t.text(source)) is not None:
            head.append(element(tag, text))
    level = ""
    if levels:
        level = element("ServiceLevel", format(levels[0][1], "f"), {"urf:type": levels[0][0]})
    if len(levels) > 1:
        t.lost("SSS501", "Extension ServiceLevel", "one benchmark has a place, the first")
    sizes = [(tag, t.amount(tag, least=1)) for tag in ("NodeCount", "Processors")]
    return "".join((*head, *grid_of(t))), level, "".join(element(tag, p.text) for tag, p in sizes if p is not None)


def _user(t: Taking) -> Iterator[str]:
    if (text := t.text("GlobalUser")) is not None:
        yield element("GlobalUserName", text, {"urf:type": "opensslCompat"} if text.startswith("/") else None)
    for tag, name, attributes in (("Group", "VO", None), ("GroupAttribute", "VOGroup", {"urf:type": "vo-group"}),
                                  ("GroupAttribute", "VORole", {"urf:type": "vo-role"})):
        if (text := vo_of(t) if name == "VO" else t.fact(GRID, name)) is not None:
            yield element(tag, text, attributes)


def _record(key: _Key, total: Sum) -> str:
    head, level, sizes = key
    return "".join((
        head, element("EarliestEndTime", instant(total.earliest) or ""),
        element("LatestEndTime", instant(total.latest) or ""), element("WallDuration", stamp(total.wall)),
        element("CpuDuration", stamp(total.cpu)), level, element("NumberOfJobs", str(total.jobs)), sizes))


_ROOTS: Final = frozenset(("SummaryRecord", "SummaryRecords"))

TRANSLATOR = replace(
    translator("car-summary", "EMI aggregated Compute Accounting Record", CarReading, (), _texts,
               lambda sample: by_root(sample, _ROOTS, frozenset((SUMMARIES,)))), sums=sums, totals=SUMS)
