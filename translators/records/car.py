"""Format ``car``: the Compute Accounting Record of EMI, which APEL takes as XML, read and written.

    <UsageRecords xmlns="http://eu-emi.eu/namespaces/2012/11/computerecord" ...><UsageRecord>...</UsageRecord>

What only the grid knows stands in Extensions of type Grid: Site, Infrastructure, Middleware, VO, VOGroup, VORole, FQAN,
ServiceLevel (``HEPSPEC 10.5``). Options of writing: ``site``, ``vo``, ``benchmark`` (``_grid``), where the job names
none; ``created``, the epoch seconds that stand in createTime (default: now). Group and role are read under both names
that are in use, ``group`` and ``vo-group``. Aggregated records (SummaryRecord) are sums over many jobs and are rejected
so; ``car-summary`` reads and writes them.

Source: EMI Compute Accounting Record 1.2, its schema; records of ARC and of APEL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, ClassVar, Final

from sssjob.document.endings import FAILURE, why_word
from sssjob.document.units import from_bytes
from sssjob.translators.recognise import by_root
from sssjob.translators.records._grid import benchmarks, vo_of
from sssjob.translators.records._usage import GRID, Taking, documents, whole
from sssjob.translators.records._xml import element, instant, local, stamp, text_of
from sssjob.translators.records.base import Record, Rejected, number, translator
from sssjob.translators.records.ur1 import UsageReading, attribute, moment_of

__all__ = ["NAMESPACE", "SUMMARIES", "TABLES_ONLY", "TRANSLATOR", "CarReading", "grid_of", "invented", "site_of"]

NAMESPACE: Final = "http://eu-emi.eu/namespaces/2012/11/computerecord"
SUMMARIES: Final = "http://eu-emi.eu/namespaces/2012/11/aggregatedcomputerecord"
#: type of a GroupAttribute -> name of an Extension of type Grid.
_GROUPS: Final = {"FQAN": "FQAN", "vo-group": "VOGroup", "group": "VOGroup", "vo-role": "VORole", "role": "VORole"}
#: What can be made of sums.
TABLES_ONLY: Final = "a table (-t csv, jsonl, parquet) and account take sums"
#: The Extension of a record that says by what its durations are multiplied; what such a factor is.
_CPUTMULT: Final = {"name": "cputmult", "type": "htcondor"}
_FACTOR: Final = re.compile(r"\d{1,9}(\.\d{0,9})?", re.ASCII)


class CarReading(UsageReading):
    """The records of a document; those that are sums are rejected."""

    records: ClassVar[frozenset[str]] = frozenset(("UsageRecord", "SummaryRecord"))
    context_type: ClassVar[str] = "car"
    texts: ClassVar[Mapping[str, str]] = {"JobName": "name", "MachineName": "machine", "SubmitHost": "submit_host",
                                          "Queue": "queue"}

    def record(self, element: Any, number: int) -> Record:
        """What one record says. Rejected: summary, for the sum over many jobs."""
        if local(element) == "SummaryRecord":
            raise Rejected("summary", f"an aggregated record is a sum over many jobs; {TABLES_ONLY}")
        return super().record(element, number)

    def _who(self, r: Record, item: Any, text: str | None) -> None:
        for part in item:
            name, value = local(part), self.name(text_of(part), local(part))
            if name == "LocalUserId":
                r.user = value
            elif name == "LocalGroup":
                r.group = value
            elif name == "GlobalUserName":
                whole(r, "GlobalUser", value)
            elif name == "GroupAttribute" and value:
                kind = attribute(part, "type") or "GroupAttribute"
                if kind == "project":
                    r.project = value
                else:
                    r.more.append((GRID, _GROUPS.get(kind, kind), value))
            elif value:
                r.more.append((GRID, "VO" if name == "Group" else name, value))

    def _level(self, r: Record, item: Any, text: str | None) -> None:
        if number(text or "", "ServiceLevel") is not None:
            r.more.append((GRID, "ServiceLevel", f"{attribute(item, 'type') or 'custom'} {text}"))

    def _site(self, r: Record, item: Any, text: str | None) -> None:
        if text:
            r.more.append((GRID, "Site", text))

    def _infrastructure(self, r: Record, item: Any, text: str | None) -> None:
        for key, name in (("type", "Infrastructure"), ("description", "InfrastructureDescription")):
            if value := attribute(item, key):
                r.more.append((GRID, name, value))

    def _middleware(self, r: Record, item: Any, text: str | None) -> None:
        for key, name in (("name", "Middleware"), ("version", "MiddlewareVersion"),
                          ("description", "MiddlewareDescription")):
            if value := attribute(item, key):
                r.more.append((GRID, name, value))

    elements: ClassVar[Mapping[str, str]] = {
        **UsageReading.elements, "UserIdentity": "_who", "ServiceLevel": "_level", "Site": "_site",
        "Infrastructure": "_infrastructure", "Middleware": "_middleware", "ExitStatus": "_exit",
    }


# --- writing ------------------------------------------------------------------------------------------------------

def site_of(t: Taking) -> str | None:
    """The name of the site: what the job says, else the option."""
    return t.fact(GRID, "Site") or _given(t)


def _given(t: Taking) -> str | None:
    text = t.telling.context.options.get("site")
    if text:
        t.lost("SSS503", "Extension Site", "the site is the one that the option names")
    return text or None


def invented(t: Taking, *, scaled: bool = True) -> tuple[int, int, int, int] | None:
    """(start, end, wall, CPU) that a record must have; None, which is reported, where the job has no times. A wall time
    that is not stated is what lies between; CPU time that was not measured is zero: both are told. scaled: durations as
    APEL's parser of HTCondor has them."""
    start, end = t.job.value("StartTime"), t.job.value("EndTime")
    if not (isinstance(start, int) and isinstance(end, int) and instant(start) and instant(end) and start and end):
        t.lost("SSS546", "Job", "a job without StartTime and EndTime has no usage and is left out")
        return None
    t.number("StartTime"), t.number("EndTime")
    wall, cpu = t.amount("Duration"), t.number("CpuDuration")
    if wall is None:
        t.lost("SSS503", "Duration", "a Duration that is not stated is the time between StartTime and EndTime")
    if cpu is None:
        t.lost("SSS503", "CpuDuration", "CPU time that was not measured is written as 0")
    factor = _multiplier(t) if scaled else Decimal(1)
    wall_s, cpu_s = (int((factor * ran).to_integral_value(ROUND_HALF_UP)) for ran in (
        max(0, end - start) if wall is None else int(wall.text), cpu or 0))
    return start, end, wall_s, cpu_s


def _multiplier(t: Taking) -> Decimal:
    """By what APEL's parser of HTCondor multiplies all durations of a job: the last column of its extract."""
    text = next((p.text for p in t.job.all("Extension") if p.attributes == _CPUTMULT), "1")
    if not _FACTOR.fullmatch(text):
        return Decimal(1)           # and that the Extension has no place is told
    t.fact(_CPUTMULT["type"], _CPUTMULT["name"])
    if Decimal(text) != 1:
        t.lost("SSS502", "Duration", "durations are multiplied by Extension cputmult, as APEL's parser does")
    return Decimal(text)


def _elements(t: Taking, created: str | None) -> Iterator[str]:
    """The elements of a record in the order of the schema; nothing for a job that cannot be one."""
    status, ident, site = t.status(), t.text("Id"), site_of(t)
    if status is None or ident is None or site is None:
        t.lost("SSS546", "Job", "a job is left out without Id, a State that Status has a word for, and a site, which "
               "the option site can name")
        return
    used = invented(t)
    if used is None:
        return
    start, end, wall, cpu = used
    global_id = t.global_id()
    yield element("RecordIdentity", "", {"urf:createTime": created, "urf:recordId": t.record_id(global_id)})
    yield element("JobIdentity", (element("GlobalJobId", global_id), element("LocalJobId", ident)))
    if users := list(_user(t)):
        yield element("UserIdentity", users)
    if (name := t.text("Name")) is not None:
        yield element("JobName", name)
    message, code = t.text("StatusMessage"), t.number("ExitCode")
    if status == "failed" and not code and why_word(t.job) not in FAILURE:
        t.lost("SSS502", "StatusMessage", "that a signal ended the job is told by the Status failed alone")
    yield element("Status", status, {"urf:description": message or ""})
    if code is not None:
        yield element("ExitStatus", str(code))
    yield from grid_of(t)
    yield element("WallDuration", stamp(wall))
    yield element("CpuDuration", stamp(cpu), {"urf:usageType": "all"})
    yield from _level(t)
    for size, metric in t.sizes("Memory", "Average", "Max", "Total"):
        value, unit = from_bytes(size, highest="GB")
        yield element("Memory", format(value, "f"), {"urf:type": "Physical", "urf:metric": metric.lower(),
                                                     "urf:storageUnit": unit})
    if (submitted := t.number("SubmitTime")) is not None:
        yield from moment_of(t, "TimeInstant", submitted, {"urf:type": "submit"}, "SubmitTime")
    for tag, least in (("NodeCount", 1), ("Processors", 1)):
        if (amount := t.amount(tag, least=least)) is not None:
            yield element(tag, amount.text)
    yield element("EndTime", instant(end) or "")
    yield element("StartTime", instant(start) or "")
    for tag, source in (("MachineName", "Machine"), ("SubmitHost", "SubmitHost"), ("Queue", "Queue")):
        if (text := t.text(source)) is not None:
            yield element(tag, text)
    yield element("Site", site)
    for host in t.hosts():
        yield element("Host", host)
    t.rest()


def _user(t: Taking) -> Iterator[str]:
    if (text := t.text("GlobalUser")) is not None:
        yield element("GlobalUserName", text, {"urf:type": "opensslCompat"} if text.startswith("/") else None)
    if (text := vo_of(t)) is not None:
        yield element("Group", text)
    for kind, name in (("FQAN", "FQAN"), ("vo-group", "VOGroup"), ("vo-role", "VORole")):
        while (text := t.fact(GRID, name)) is not None:
            yield element("GroupAttribute", text, {"urf:type": kind})
    if (text := t.text("Project")) is not None:
        yield element("GroupAttribute", text, {"urf:type": "project"})
    for tag, source in (("LocalUserId", "User"), ("LocalGroup", "Group")):
        if (text := t.text(source)) is not None:
            yield element(tag, text)


def grid_of(t: Taking) -> Iterator[str]:
    """Infrastructure, which must be there, and Middleware."""
    kind, about = t.fact(GRID, "Infrastructure"), t.fact(GRID, "InfrastructureDescription")
    if kind is None:
        kind = "local"
        t.lost("SSS503", "Extension Infrastructure", "an Infrastructure that is not stated is local")
    yield element("Infrastructure", "", {"urf:type": kind, "urf:description": about})
    names = [t.fact(GRID, n) for n in ("Middleware", "MiddlewareVersion", "MiddlewareDescription")]
    if any(names):
        yield element("Middleware", "", dict(zip(("urf:name", "urf:version", "urf:description"), names, strict=True)))


def _level(t: Taking) -> Iterator[str]:
    text = t.fact(GRID, "ServiceLevel")
    if text is None:
        levels = benchmarks(t)
        if len(levels) > 1:
            t.lost("SSS501", "Extension ServiceLevel", "one benchmark has a place, the first")
        for kind, figure in levels[:1]:
            yield element("ServiceLevel", format(figure, "f"), {"urf:type": kind})
        return
    kind, _, value = text.partition(" ")
    try:
        number(value, "ServiceLevel")
    except Rejected:
        value = ""
    if value and not value.startswith("-"):
        yield element("ServiceLevel", value, {"urf:type": kind})
    else:
        t.lost("SSS501", "Extension ServiceLevel", "a ServiceLevel is a name and a number")


_ROOTS: Final = frozenset(("UsageRecord", "UsageRecords"))

TRANSLATOR = translator("car", "EMI Compute Accounting Record", CarReading, (),
                        documents(NAMESPACE, "UsageRecord", _elements, "site", "vo", "benchmark"),
                        lambda sample: by_root(sample, _ROOTS, frozenset((NAMESPACE,))))
