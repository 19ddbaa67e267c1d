"""Sums over many jobs, which are no jobs: summary messages of APEL (v0.2 to v0.4, normalised ones too) and aggregated
records of CAR (SummaryRecord), as rows of a table. Both ``apel-summary`` and ``car-summary`` read either of them, where
the target is a table.

Source: the message formats of APEL; the EMI Compute Accounting Record 1.2, aggregated; their published test messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO, ClassVar, Final, cast

from sssjob.document.model import Job
from sssjob.findings import escape
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.records._json import Begun
from sssjob.translators.records._usage import GRID, whole
from sssjob.translators.records._xml import XMLReading, local, seconds, text_of
from sssjob.translators.records.apel import NULL, TYPES, MessageReading, benchmarks_of
from sssjob.translators.records.base import Reading, Record, Rejected, Stream, as_job, count
from sssjob.translators.records.table import Cell, Column, Table
from sssjob.translators.records.ur1 import attribute

__all__ = ["SUMS", "Summary", "sums"]


@dataclass(slots=True)
class Summary:
    """The jobs of a month and of one key, added up. earliest, latest: of their ends, epoch seconds; wall, cpu: seconds;
    normalised_wall, normalised_cpu: times the benchmark, a number or ``name number, ...``."""

    line: int
    site: str
    month: str
    jobs: int = 0
    user: str | None = None
    vo: str | None = None
    vo_group: str | None = None
    vo_role: str | None = None
    machine: str | None = None
    submit_host: str | None = None
    queue: str | None = None
    infrastructure: str | None = None
    benchmark: str | None = None
    nodes: int | None = None
    processors: int | None = None
    earliest: int | None = None
    latest: int | None = None
    wall: int | None = None
    cpu: int | None = None
    normalised_wall: str | None = None
    normalised_cpu: str | None = None

    def job(self) -> Job:
        """What all of its jobs are together, as one that ended when the last of them did, else in the middle of the
        month: whose they are, the sums of their times, the size of each."""
        r = Record(self.line, f"{self.site} {self.month}", self.machine)
        r.queue, r.submit_host = self.queue, self.submit_host
        whole(r, "GlobalUser", self.user)
        r.more += [(GRID, name, text) for name, text in (
            ("Site", self.site), ("VO", self.vo), ("VOGroup", self.vo_group), ("VORole", self.vo_role),
            ("Infrastructure", self.infrastructure), ("ServiceLevel", self.benchmark)) if text]
        year, month = map(int, self.month.split("-"))
        r.end = self.latest or int(datetime(year, month, 15, 12, tzinfo=UTC).timestamp())
        r.wall, r.cpu, r.processors, r.nodes = self.wall, self.cpu, self.processors, self.nodes
        return as_job(r)


def _rows(summaries: Iterable[Any], columns: tuple[Column, ...], context: WriteContext) -> Iterator[list[Cell]]:
    for summary in summaries:
        yield [c.cell(summary) for c in columns]


#: The columns of a sum. Times are epoch seconds UTC.
SUMS: Final = Table((
    Column("site", "name", "Site", lambda s: s.site),
    Column("month", "text", "Year and Month: 2026-11", lambda s: s.month),
    Column("global_user", "name", "GlobalUserName", lambda s: s.user),
    Column("vo", "name", "VO; Group of CAR", lambda s: s.vo),
    Column("vo_group", "name", "VOGroup", lambda s: s.vo_group),
    Column("vo_role", "name", "VORole", lambda s: s.vo_role),
    Column("machine", "name", "MachineName", lambda s: s.machine),
    Column("submit_host", "name", "SubmitHost", lambda s: s.submit_host),
    Column("queue", "name", "Queue", lambda s: s.queue),
    Column("infrastructure", "word", "InfrastructureType", lambda s: s.infrastructure),
    Column("benchmark", "text", "ServiceLevelType, ServiceLevel", lambda s: s.benchmark),
    Column("nodes", "count", "NodeCount", lambda s: s.nodes),
    Column("processors", "count", "Processors", lambda s: s.processors),
    Column("earliest_end", "epoch s", "EarliestEndTime", lambda s: s.earliest),
    Column("latest_end", "epoch s", "LatestEndTime", lambda s: s.latest),
    Column("wall_s", "s", "WallDuration", lambda s: s.wall),
    Column("cpu_s", "s", "CpuDuration", lambda s: s.cpu),
    Column("normalised_wall", "text", "NormalisedWallDuration", lambda s: s.normalised_wall),
    Column("normalised_cpu", "text", "NormalisedCpuDuration", lambda s: s.normalised_cpu),
    Column("jobs", "count", "NumberOfJobs", lambda s: s.jobs),
), _rows)

#: Key -> field.
_NAMES: Final = {"GlobalUserName": "user", "VO": "vo", "VOGroup": "vo_group", "VORole": "vo_role",
                 "MachineName": "machine", "SubmitHost": "submit_host", "Queue": "queue",
                 "InfrastructureType": "infrastructure", "Infrastructure": "infrastructure"}
_COUNTS: Final = {"NodeCount": "nodes", "Processors": "processors", "NumberOfJobs": "jobs"}
_SPANS: Final = {"WallDuration": "wall", "CpuDuration": "cpu"}
_NORMAL: Final = {"NormalisedWallDuration": "normalised_wall", "NormalisedCpuDuration": "normalised_cpu"}
_ENDS: Final = {"EarliestEndTime": "earliest", "LatestEndTime": "latest"}
_HEAD: Final = ("Site", "Month", "Year", "ServiceLevel", "ServiceLevelType")


def _made(reading: Reading, texts: Mapping[str, str], line: int) -> Summary:
    """The sum of keys and texts. Rejected: id, number, time, zone, too-long."""
    site = reading.name(texts.get("Site"), "Site")
    month, year = (count(texts.get(name, ""), name) for name in ("Month", "Year"))
    if site is None or month is None or year is None:
        raise Rejected("id", "no Site, Month and Year")
    if not (1 <= month <= 12 and 1000 <= year <= 9999):
        raise Rejected("time", f"Month {month} of Year {year} is no month")
    summary = Summary(line, site, f"{year}-{month:02}")
    for key, text in texts.items():
        if key in _NAMES:
            setattr(summary, _NAMES[key], reading.name(text, key))
        elif key in _COUNTS:
            setattr(summary, _COUNTS[key], count(text, key))
        elif key in _SPANS:
            setattr(summary, _SPANS[key], seconds(text, key) if text.startswith("P") else count(text, key))
        elif key in _NORMAL:
            setattr(summary, _NORMAL[key], ", ".join(" ".join(p) for p in benchmarks_of(text)).removeprefix("custom "))
        elif key in _ENDS:
            setattr(summary, _ENDS[key], reading.time(text, key, line))
        elif key not in _HEAD:
            reading.tell("SSS545", key, f"no place for {escape(key, 80)}", line)
    levels = benchmarks_of(texts.get("ServiceLevel", ""), texts.get("ServiceLevelType", ""))
    summary.benchmark = ", ".join(" ".join(pair) for pair in levels) or None
    if not summary.jobs or (summary.wall is None and summary.normalised_wall is None):
        raise Rejected("number", "no NumberOfJobs above 0, or no WallDuration")
    return summary


class _Messages(MessageReading):
    def _job(self, fields: dict[str, str], wrong: Rejected | None, first: int) -> Any:
        if self.kind is None:
            raise Rejected("header", "no line names the kind of message")
        if TYPES.get(self.kind) != "summary":
            raise Rejected("type" if self.kind in TYPES else "no-job", f"a message of kind {self.kind} is no summary")
        if wrong is not None:
            raise wrong
        summary = _made(self, {k: v for k, v in fields.items() if v.lower() not in NULL}, first)
        self.counts.jobs += summary.jobs
        return summary


class _Aggregated(XMLReading):
    records: ClassVar[frozenset[str]] = frozenset(("SummaryRecord",))

    def record(self, element: Any, number: int) -> Any:
        """The sum of one record. Rejected: a value of another form."""
        texts: dict[str, str] = {}
        for item in element:
            name, text = local(item), text_of(item)
            if name == "UserIdentity":
                self._user(item, texts)
            elif name == "Infrastructure":
                text = attribute(item, "type") or text
            elif name == "ServiceLevel":
                texts["ServiceLevelType"] = attribute(item, "type") or ""
            if text and name != "UserIdentity":
                texts[name] = text
        return _made(self, texts, number)

    def _user(self, item: Any, texts: dict[str, str]) -> None:
        for part in item:
            name, text = local(part), text_of(part)
            kind = (attribute(part, "type") or "").removeprefix("vo-")
            key = {"Group": "VO", "GroupAttribute": f"VO{kind.title()}"}.get(name, name)
            if text:
                texts[key] = text

    def given(self, record: Any) -> Any:
        """Count the jobs of a sum."""
        self.counts.jobs += record.jobs
        return record


def sums(file: BinaryIO, context: ReadContext) -> Stream:
    """The sums of a stream of messages or of an XML document, one by one; the counts tell how many jobs they are of."""
    begun = Begun(file)
    reading = (_Aggregated if begun.first == b"<" else _Messages)(context)
    return Stream(reading.jobs(cast(BinaryIO, begun)), reading)
