"""Format ``ur2``: OGF Usage Record 2.0, read and written.

    <UsageRecords xmlns="http://schema.ogf.org/urf/2013/04/urf" ...><UsageRecord><RecordIdentityBlock>...

Properties stand in blocks. Each component of a job is a ComputeUsageBlock of its own; reading gives a TaskGroup for
each where there are several. The project is a GlobalGroupAttribute of type ``project``, the benchmark (Extension
ServiceLevel of type Grid) stands with the hosts. Blocks of memory, storage, network and cloud: ``_ur2_blocks``.
Options of writing: ``site``; ``created``, the epoch seconds that stand in CreateTime (default: now).

Source: GFD.204, sections 5 to 12.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from sssjob.document.model import Delivered, Job, TaskGroup
from sssjob.translators.recognise import by_root
from sssjob.translators.records._grid import parsed
from sssjob.translators.records._ur2_blocks import BLOCKS, Blocks, blocks
from sssjob.translators.records._usage import GRID, Taking, documents, outcome, whole
from sssjob.translators.records._xml import element, instant, local, seconds, stamp, text_of
from sssjob.translators.records.base import Record, translator
from sssjob.translators.records.car import invented, site_of
from sssjob.translators.records.ur1 import INSTANTS, UsageReading, attribute, moment_of

__all__ = ["NAMESPACE", "TRANSLATOR"]

NAMESPACE: Final = "http://schema.ogf.org/urf/2013/04/urf"
_BLOCKS: Final = ("RecordIdentityBlock", "SubjectIdentityBlock", "JobUsageBlock")


class _Reading(UsageReading):
    records: ClassVar[frozenset[str]] = frozenset(("UsageRecord",))
    context_type: ClassVar[str] = "ur2"
    texts: ClassVar[Mapping[str, str]] = {
        "JobName": "name", "MachineName": "machine", "SubmitHost": "submit_host", "Queue": "queue",
        "ServiceLevel": "qos", "LocalUserId": "user", "LocalGroupId": "group"}

    def record(self, element: Any, number: int) -> Record:
        """What one record says, block by block."""
        r = Record(number, "", machine=self.machine)
        self.word: str | None = None
        parts: list[Record] = []
        blocks = Blocks(self)
        for block in element:
            name = local(block)
            kind = name.removesuffix("UsageBlock")
            if name in _BLOCKS:
                for item in block:
                    self._item(r, item, local(item), text_of(item))
            elif name == "ComputeUsageBlock":
                parts.append(self._compute(block, number, len(parts)))
            elif kind != name and kind in BLOCKS:
                blocks.take(kind, block)
            else:
                self.once("SSS545", name, f"no place for {name}", number)
        r.id = r.id or next((p.text for p in r.others if p.tag == "GlobalJob"), "") or self.name(
            blocks.of_cloud("LocalVirtualMachineId", "GlobalVirtualMachineId"), "LocalVirtualMachineId") or ""
        if not r.id:
            raise self.no_id()
        self._together(r, parts)
        word = self.word or blocks.of_cloud("Status")
        outcome(r, word, None)
        blocks.give(r, word)
        return r

    def _compute(self, block: Any, number: int, at: int) -> Record:
        """One component."""
        part = Record(number, str(at))
        hosts: list[str] = []
        levels: dict[str, None] = {}
        for item in block:
            name, text = local(item), text_of(item)
            if name == "ExecutionHost":
                hosts += [t for h in item if local(h) == "Hostname" and (t := text_of(h))]
                levels |= dict.fromkeys(f"{attribute(h, 'type') or 'custom'} {t}" for h in item
                                        if local(h) == "Benchmark" and (t := text_of(h)))
                if any(local(h) not in ("Hostname", "Benchmark") for h in item):
                    self.once("SSS545", "ExecutionHost", "no place for the processes of ExecutionHost", number)
            elif name == "HostType" and text:
                part.more.append(("ur2", "HostType", text))
            else:
                self._item(part, item, name, text)
        if hosts:
            part.node, _ = self.nodes(",".join(hosts), number)
        if levels:
            part.more.append((GRID, "ServiceLevel", ", ".join(levels)))
        return part

    def _together(self, r: Record, parts: list[Record]) -> None:
        """A job of one component has its amounts; of several their sums, the first start and the last end."""
        if not parts:
            return
        r.start = min((p.start for p in parts if p.start is not None), default=None)
        r.end = max((p.end for p in parts if p.end is not None), default=None)
        r.exit_code = next((p.exit_code for p in parts if p.exit_code), parts[0].exit_code)
        r.exit_status = next((p.exit_status for p in parts if p.exit_status), "")
        r.wall = max((p.wall for p in parts if p.wall is not None), default=None)
        for name in ("cpu", "processors", "nodes"):
            values = [v for p in parts if (v := getattr(p, name)) is not None]
            setattr(r, name, sum(values) if values else None)
        for p in parts:
            r.others += p.others
            r.more += (fact for fact in p.more if fact not in r.more)
        if len(parts) == 1:
            r.node, r.delivered = parts[0].node, [*parts[0].delivered, *r.delivered]
        else:
            r.parts = parts

    # -- elements
    def _local(self, r: Record, item: Any, text: str | None) -> None:
        r.id = self.name(text, "LocalJobId") or ""

    def _global(self, r: Record, item: Any, text: str | None) -> None:
        whole(r, "GlobalJob", self.name(text, "GlobalJobId"))

    def _person(self, r: Record, item: Any, text: str | None) -> None:
        whole(r, "GlobalUser", self.name(text, "GlobalUserId"))

    def _status(self, r: Record, item: Any, text: str | None) -> None:
        self.word = text

    def _cpu(self, r: Record, item: Any, text: str | None) -> None:
        r.cpu = seconds(text, "CpuDuration") if text else None

    def _group(self, r: Record, item: Any, text: str | None) -> None:
        kind = attribute(item, "type") or "GlobalGroupAttribute"
        if kind == "project":
            r.project = self.name(text, kind)
        elif text:
            r.more.append((GRID, kind, text))

    def _grid(self, r: Record, item: Any, text: str | None) -> None:
        if text:
            r.more.append((GRID, {"GlobalGroupId": "VO"}.get(local(item), local(item)), text))
        if about := attribute(item, "description"):
            r.more.append((GRID, f"{local(item)}Description", about))

    def _nothing(self, r: Record, item: Any, text: str | None) -> None:
        """CreateTime is no fact of the job."""

    elements: ClassVar[Mapping[str, str]] = {
        **{k: v for k, v in UsageReading.elements.items() if k in (
            "Charge", "WallDuration", "NodeCount", "Processors", "StartTime", "EndTime", "TimeInstant")},
        "RecordId": "_grid", "Site": "_grid", "Infrastructure": "_grid", "GlobalGroupId": "_grid",
        "CreateTime": "_nothing", "LocalJobId": "_local", "GlobalJobId": "_global", "GlobalUserId": "_person",
        "Status": "_status", "CpuDuration": "_cpu", "GlobalGroupAttribute": "_group", "ExitStatus": "_exit",
    }


# --- writing ------------------------------------------------------------------------------------------------------

def _blocks(t: Taking, created: str | None) -> Iterator[str]:
    """The blocks of a record; nothing for a job that cannot be one."""
    identity = t.identity()
    if identity is None:
        return
    status, ident = identity
    global_id, site = t.global_id(), site_of(t)
    if status in ("failed", "aborted") and t.job.first("StatusMessage") is None:
        t.lost("SSS502", "StatusMessage", f"Status {status} is read as a StatusMessage")
    kind = t.fact(GRID, "Infrastructure")
    about = t.fact(GRID, "InfrastructureDescription") if kind is not None else None
    yield _block("RecordIdentityBlock", ("RecordId", t.record_id(global_id)), ("CreateTime", created), ("Site", site),
                 more=() if kind is None else (element("Infrastructure", kind, {"urf:description": about}),))
    yield _subject(t)
    yield from _compute(t)
    instants = [text for tag, kind in (("SubmitTime", "submit"), ("EligibleTime", "begin"))
                if (value := t.number(tag)) is not None
                for text in moment_of(t, "TimeInstant", value, {"urf:type": kind}, tag)]
    yield _block("JobUsageBlock", ("GlobalJobId", global_id), ("LocalJobId", ident), *(
        (tag, t.text(source)) for tag, source in (("JobName", "Name"), ("MachineName", "Machine"),
                                                  ("SubmitHost", "SubmitHost"))),
        ("SubmitType", t.fact("ur2", "SubmitType")), ("Queue", t.text("Queue")),
        more=(*instants, *_instants(t), *_plain(("ServiceLevel", t.text("QualityOfService")), ("Status", status))))
    yield from blocks(t, status)
    t.rest()


def _instants(t: Taking) -> Iterator[str]:
    """Times of other kinds than those that are properties, as the record had them."""
    for p in t.job.all("Extension"):
        name = p.get("name") or ""
        kind = name.removeprefix("TimeInstant").strip()
        if p.get("type") == "ur2" and name == f"TimeInstant {kind}".strip() and kind not in INSTANTS and p.text and \
                " ".join(p.text.split()) == p.text and t.find(p) is not None:
            t.use(p, "name", "type")
            yield element("TimeInstant", p.text, {"urf:type": kind or None})


def _plain(*pairs: tuple[str, str | None]) -> Iterator[str]:
    return (element(tag, text) for tag, text in pairs if text is not None)


def _block(name: str, *pairs: tuple[str, str | None], more: Iterable[str] = ()) -> str:
    """A block of elements; nothing where it has none."""
    inside = "".join((*_plain(*pairs), *more))
    return f"<{name}>{inside}</{name}>" if inside else ""


def _subject(t: Taking) -> str:
    project = t.text("Project")
    groups = [element("GlobalGroupAttribute", text, {"urf:type": name}) for name in ("FQAN", "VOGroup", "VORole")
              if (text := t.fact(GRID, name)) is not None]
    return _block("SubjectIdentityBlock", ("LocalUserId", t.text("User")), ("LocalGroupId", t.text("Group")),
                  ("GlobalUserId", t.text("GlobalUser")), ("GlobalGroupId", t.fact(GRID, "VO")),
                  more=(*groups, *(() if project is None else (
                      element("GlobalGroupAttribute", project, {"urf:type": "project"}),))))


def _compute(t: Taking) -> Iterator[str]:
    """A block for each component, else one for the job; none without the times that each must have."""
    start, end = t.job.value("StartTime"), t.job.value("EndTime")
    if not (isinstance(start, int) and isinstance(end, int) and start and end and instant(start) and instant(end)):
        return
    used = invented(t, scaled=False)
    assert used is not None
    _, _, wall, cpu = used
    code, charge = t.number("ExitCode"), t.property("Charge", "units")
    ends = [("StartTime", instant(start)), ("EndTime", instant(end))]
    own = [*_plain(("ExitStatus", None if code is None else str(code)))] + (
        [] if charge is None else [element("Charge", charge.text, {"urf:unit": charge.get("units")})])
    parts = [g for g in t.job.task_groups if g.delivered]
    if parts:
        yield from _parts(t, parts, ends, cpu, wall, own)
        return
    held, nodes = t.amount("Processors", "consumptionRate", least=1), t.amount("NodeCount", least=1)
    yield _block("ComputeUsageBlock", ("CpuDuration", stamp(cpu)), ("WallDuration", stamp(wall)), *ends, more=(
        *_hosts(t), *_plain(("HostType", t.fact("ur2", "HostType"))),
        *(() if held is None else (element("Processors", held.text, {
            "urf:consumptionRate": held.get("consumptionRate")}),)),
        *(() if nodes is None else (element("NodeCount", nodes.text),)), *own))


def _hosts(t: Taking) -> Iterator[str]:
    """The nodes, each with the benchmark, which has no place where none is named."""
    hosts = t.hosts()
    level = next((p.text for p in t.job.all("Extension") if p.get("type") == GRID and p.get("name") == "ServiceLevel"),
                 "")
    levels = parsed(level) if hosts else None
    shown = [(kind, format(figure, "f")) for kind, figure in levels or ()]
    if ", ".join(" ".join(pair) for pair in shown) != level or not t.fact(GRID, "ServiceLevel"):
        shown = []
    benchmarks = [element("Benchmark", figure, {"urf:type": kind}) for kind, figure in shown]
    return (element("ExecutionHost", [element("Hostname", h), *benchmarks]) for h in hosts)


def _parts(t: Taking, parts: list[TaskGroup], ends: list[tuple[str, str | None]], cpu: int, wall: int, own: list[str],
           ) -> Iterator[str]:
    """Components: amounts of their own, the CPU time of the job in the first."""
    for tag in ("TaskGroup", "Processors", "NodeCount", "Node", "Duration"):
        t.lost("SSS502", tag, "components are written with Processors, NodeCount and Duration; those of the job are "
               "read as their sums")
    for n, part in enumerate(parts):
        inside = Taking(Job([d for d in part.containers("Delivered") if isinstance(d, Delivered)][:1]), t.telling)
        held, nodes, time = (inside.amount(tag) for tag in ("Processors", "NodeCount", "Duration"))
        yield _block("ComputeUsageBlock", ("CpuDuration", stamp(0 if n else cpu)),
                     ("WallDuration", stamp(wall if time is None else int(time.text))), *ends, more=(
            *(element("ExecutionHost", [element("Hostname", h)]) for h in inside.hosts()),
            *_plain(*((p.tag, p.text) for p in (held, nodes) if p is not None)),
            *(() if n else own)))
        inside.rest()


TRANSLATOR = translator("ur2", "OGF Usage Record 2.0", _Reading, (),
                        documents(NAMESPACE, "UsageRecord", _blocks, "site"),
                        lambda sample: by_root(sample, frozenset(("UsageRecord", "UsageRecords")),
                                               frozenset((NAMESPACE,))))
