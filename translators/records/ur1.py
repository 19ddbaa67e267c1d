"""Format ``ur1``: OGF Usage Record 1.0, read and written.

    <UsageRecords xmlns="http://schema.ogf.org/urf/2003/09/urf" xmlns:urf="http://schema.ogf.org/urf/2003/09/urf">
    <JobUsageRecord><RecordIdentity urf:recordId="head:12:1795251032"/>...</JobUsageRecord>
    </UsageRecords>

One record a job. The record has no element for the exit code, the group and other properties: they are Resources named
like the property, Extensions are Resources named ``type:name``. Read are also what SGAS, DEISA and Gratia add, whatever
the namespace. Option of writing: ``created``, the epoch seconds that stand in createTime (default: now).

Source: GFD.98, sections 5 to 10; extensions as their records show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, ClassVar, Final

from sssjob.document.element import Property
from sssjob.document.held import ran
from sssjob.document.units import from_bytes
from sssjob.findings import escape
from sssjob.translators.recognise import by_root
from sssjob.translators.records._usage import GRID, Taking, documents, outcome, whole
from sssjob.translators.records._xml import XMLReading, element, instant, local, seconds, stamp, text_of
from sssjob.translators.records.base import Record, count, leaf, number, translator

__all__ = ["INSTANTS", "NAMESPACE", "TRANSLATOR", "UsageReading", "attribute", "moment_of", "times_of"]

NAMESPACE: Final = "http://schema.ogf.org/urf/2003/09/urf"
_RECORDS: Final = frozenset(("JobUsageRecord", "UsageRecord"))

#: Element -> field of Record.
_TEXTS: Final = {"JobName": "name", "MachineName": "machine", "SubmitHost": "submit_host", "Queue": "queue",
                 "ProjectName": "project", "ServiceLevel": "qos"}
#: Element -> tag of an amount of bytes.
_SIZES: Final = {"Memory": "Memory", "Swap": "Swap", "Disk": "Disk", "Network": "Network"}
_METRICS: Final = {"average": "Average", "total": "Total", "min": "Min", "max": "Max"}
#: Properties of a job that are written as a Resource of their name, and the field of Record of those that have one.
_WORDS: Final = {"Group": "group", "Reservation": "reservation", "InitialWorkingDirectory": "directory",
                 "TimeCategory": "", "Quote": ""}
_COUNTS: Final = {"ExitCode": "exit_code", "StartCount": "starts"}
#: storageUnit -> unit of bytes; b, Kb ... are bits.
_UNITS: Final = {"B": "B", "KB": "KB", "MB": "MB", "GB": "GB", "PB": "PB", "EB": "EB"}
INSTANTS: Final = {"submit": "submit", "ctime": "submit", "etime": "eligible", "begin": "begin"}
_SUSPENDED: Final = ("suspended", "CumulativeSuspensionTime")
_IGNORED: Final = frozenset(("KeyInfo",))


# --- reading ------------------------------------------------------------------------------------------------------

class UsageReading(XMLReading):
    """One pass over records in the elements of Usage Record 1.0; later formats add theirs."""

    records: ClassVar[frozenset[str]] = _RECORDS
    context_type: ClassVar[str] = "ur1"
    """type of the Extensions for what only this format knows."""
    texts: ClassVar[Mapping[str, str]] = _TEXTS
    elements: ClassVar[Mapping[str, str]] = {
        "RecordIdentity": "_identity", "JobIdentity": "_job", "UserIdentity": "_user", "Charge":
        "_charge", "WallDuration": "_wall", "NodeCount": "_nodes", "Processors": "_processors",
        "StartTime": "_start", "EndTime": "_end", "SubmitTime": "_submit", "ExitCode": "_exit",
        "TimeInstant": "_moment", "TimeDuration": "_span", "ConsumableResource": "_consumable",
        "Resource": "_resource",
    }
    """Element -> the method that takes it."""

    def record(self, element: Any, number: int) -> Record:
        """What one record says. Rejected: a value of another form."""
        r = Record(number, "", machine=self.machine)
        word: str | None = None
        message: str | None = None
        cpu: dict[str, int] = {}
        hosts: list[str] = []
        for item in element:
            name, text = local(item), text_of(item)
            if name == "Status":
                word, message = text, attribute(item, "description")
            elif name == "CpuDuration" or name in ("UserTime", "KernelTime"):
                if text and (value := seconds(text, name)) is not None:
                    cpu[attribute(item, "usageType") or name] = value
            elif name == "Host":
                hosts += [text] if text else []
            else:
                self._item(r, item, name, text)
        if not r.id:
            raise self.no_id()
        own = cpu.get("CpuDuration", cpu.get("all"))
        parts = [cpu[k] for k in ("user", "system") if k in cpu] or [cpu[k] for k in ("UserTime", "KernelTime")
                                                                     if k in cpu]
        r.cpu = self.first("CpuDuration", number, ("CpuDuration", own), ("user and system", sum(parts) if parts else
                           None))
        outcome(r, word, message)
        if hosts:
            r.node, n = self.nodes(",".join(hosts), number)
            r.nodes = self.first("NodeCount", number, ("NodeCount", r.nodes), ("Host", n)) if n and r.nodes else r.nodes
        return r

    def _item(self, r: Record, item: Any, name: str, text: str | None) -> None:
        """One element of a record."""
        handler = self.elements.get(name)
        if name in self.texts:
            value = self.free_text(text, name, r.line) if name == "JobName" else self.name(text, name)
            setattr(r, self.texts[name], getattr(r, self.texts[name]) if value is None else value)
        elif handler is None and name in _SIZES:
            self._size(r, item, name, text)
        elif handler is not None:
            getattr(self, handler)(r, item, text)
        elif len(item):
            self.once("SSS545", name, f"no place for {escape(name, 80)}", r.line)
        elif text and name not in _IGNORED:
            r.more.append((self.context_type, name, text))

    def _identity(self, r: Record, item: Any, text: str | None) -> None:
        if value := attribute(item, "recordId"):
            r.more.append((GRID, "RecordId", value))

    def _job(self, r: Record, item: Any, text: str | None) -> None:
        for part in item:
            value = self.name(text_of(part), local(part))
            if local(part) == "LocalJobId":
                r.id = value or ""
            elif local(part) == "GlobalJobId":
                whole(r, "GlobalJob", value)
            elif value:
                r.more.append(("LRM", local(part), value))
        if not r.id and (global_id := next((p.text for p in r.others if p.tag == "GlobalJob"), "")):
            r.id = global_id

    def _user(self, r: Record, item: Any, text: str | None) -> None:
        for part in item:
            name, value = local(part), self.name(text_of(part), local(part))
            if name == "LocalUserId":
                r.user = value
            elif name.lower() == "globalusername":
                whole(r, "GlobalUser", value)
            elif name == "VO":
                self._vo(r, part)
            elif value:
                r.more.append((GRID, "VO" if name == "ReportableVOName" else "FQAN" if name == "VOName" else
                               name, value))

    def _vo(self, r: Record, item: Any) -> None:
        for part in item.iter():
            if part is not item and (text := text_of(part)):
                r.more.append((GRID, {"Name": "VO", "Issuer": "VOIssuer", "Group": "VOGroup", "Role": "VORole"}.get(
                    local(part), local(part)), text))

    def _charge(self, r: Record, item: Any, text: str | None) -> None:
        if (value := number(text or "", "Charge")) is not None:
            unit = attribute(item, "unit")
            r.others.append(leaf("Charge", value, {"units": unit} if unit else {}))
        if formula := attribute(item, "formula"):
            r.more.append((self.context_type, "Formula", formula))

    def _wall(self, r: Record, item: Any, text: str | None) -> None:
        r.wall = seconds(text, "WallDuration") if text else None

    def _nodes(self, r: Record, item: Any, text: str | None) -> None:
        r.nodes = count(text or "", "NodeCount")

    def _processors(self, r: Record, item: Any, text: str | None) -> None:
        value = count(text or "", "Processors")
        rate = number(attribute(item, "consumptionRate") or "", "consumptionRate")
        if value is not None and rate is not None:
            r.delivered.insert(0, leaf("Processors", value, {"consumptionRate": format(rate, "f")}))
        else:
            r.processors = value

    def _start(self, r: Record, item: Any, text: str | None) -> None:
        r.start = self.time(text or "", "StartTime", r.line)

    def _end(self, r: Record, item: Any, text: str | None) -> None:
        r.end = self.time(text or "", "EndTime", r.line)

    def _submit(self, r: Record, item: Any, text: str | None) -> None:
        r.submit = self.time(text or "", "SubmitTime", r.line)

    def _exit(self, r: Record, item: Any, text: str | None) -> None:
        self._resource_of(r, "ExitCode", text or "")

    def _moment(self, r: Record, item: Any, text: str | None) -> None:
        kind = attribute(item, "type") or ""
        if kind in INSTANTS and text:
            setattr(r, INSTANTS[kind], self.time(text, f"TimeInstant {kind}", r.line))
        elif text:
            r.more.append((self.context_type, f"TimeInstant {kind}".strip(), text))

    def _span(self, r: Record, item: Any, text: str | None) -> None:
        kind = attribute(item, "type") or ""
        if kind in _SUSPENDED and text:
            r.suspended = seconds(text, f"TimeDuration {kind}")
        elif text:
            r.more.append((self.context_type, f"TimeDuration {kind}".strip(), text))

    def _consumable(self, r: Record, item: Any, text: str | None) -> None:
        value = number(text or "", "ConsumableResource")
        if value is not None:
            name, _, kind = (attribute(item, "description") or "Unknown").partition("/")
            r.delivered.append(leaf("Resource", value, {k: v for k, v in (
                ("name", name), ("type", kind), ("units", attribute(item, "units"))) if v}))

    def _resource(self, r: Record, item: Any, text: str | None) -> None:
        name = attribute(item, "description") or "Resource"
        if text is not None:
            self._resource_of(r, name, text)

    def _resource_of(self, r: Record, name: str, text: str) -> None:
        kind, sign, rest = name.partition(":")
        if name in _COUNTS:
            value = count(text, name)
            if name == "ExitCode" and value is not None and value > 255:
                r.exit_status = text
            else:
                setattr(r, _COUNTS[name], value)
        elif name in _WORDS:
            free = name == "InitialWorkingDirectory"
            name_text = self.free_text(text, name, r.line) if free else self.name(text, name)
            if _WORDS[name]:
                setattr(r, _WORDS[name], name_text)
            else:
                whole(r, name, name_text)
        elif name == "AccountingGroup" and r.project is None:
            r.project = self.name(text, name)
        elif sign and kind and rest:
            r.more.append((kind, rest, text))
        else:
            r.more.append((self.context_type, name, text))

    def _size(self, r: Record, item: Any, name: str, text: str | None) -> None:
        value = number(text or "", name)
        if not value:
            return
        unit, kind = attribute(item, "storageUnit") or "B", attribute(item, "type")
        metric = _METRICS.get((attribute(item, "metric") or "total").lower(), "Total")
        if unit not in _UNITS or (kind or "physical").lower() not in ("physical", "dedicated"):
            r.more.append((self.context_type, f"{name} {kind or ''} {metric}".replace("  ", " "), f"{text} {unit}"))
            return
        r.delivered.append(leaf(_SIZES[name], value, {"units": _UNITS[unit], "metric": metric}))


def attribute(item: Any, name: str) -> str | None:
    """An attribute, whatever its namespace."""
    value: str | None
    for key, value in item.attrib.items():
        if key.rpartition("}")[2] == name:
            return value
    return None


# --- writing ------------------------------------------------------------------------------------------------------

def _elements(t: Taking, created: str | None) -> Iterator[str]:
    """The elements of a record, in the order of the schema; nothing for a job that cannot be one."""
    identity = t.identity()
    if identity is None:
        return
    status, ident = identity
    global_id = t.global_id()
    yield element("RecordIdentity", "", {"urf:recordId": t.record_id(global_id), "urf:createTime": created})
    yield element("JobIdentity", (element("GlobalJobId", global_id), element("LocalJobId", ident)))
    users = [element(tag, text) for tag, text in (("LocalUserId", t.text("User")), ("GlobalUserName",
             t.text("GlobalUser"))) if text is not None]
    if users:
        yield element("UserIdentity", users)
    if (name := t.text("Name")) is not None:
        yield element("JobName", name)
    charge = t.property("Charge", "units")
    if charge is not None:
        yield element("Charge", charge.text, {"urf:unit": charge.get("units")})
    yield element("Status", status, {"urf:description": t.text("StatusMessage") or ""})
    yield from _amounts(t)
    yield from times_of(t)
    for tag, source in (("MachineName", "Machine"), ("SubmitHost", "SubmitHost"), ("Queue", "Queue"),
                        ("ProjectName", "Project")):
        if (text := t.text(source)) is not None:
            yield element(tag, text)
    for host in t.hosts():
        yield element("Host", host)
    yield from _resources(t)
    t.rest()


def _amounts(t: Taking) -> Iterator[str]:
    for tag in ("Disk", "Memory", "Swap", "Network"):
        for size, metric in t.sizes(tag, *_METRICS.values()):
            value, unit = from_bytes(size, highest="EB")
            if unit == "TB":
                value, unit = value * 1024, "GB"
            yield element(tag, format(value, "f"), {"urf:metric": metric.lower(), "urf:storageUnit": unit})


def times_of(t: Taking) -> Iterator[str]:
    """The times of a job beside start and end, and how long it was suspended."""
    if (suspended := t.number("SuspendDuration")) is not None:
        yield element("TimeDuration", stamp(suspended), {"urf:type": "suspended"})
    eligible = t.fact("LRM", "EligibleStamp")
    stamped = int(eligible) if eligible and eligible.isdecimal() and len(eligible) < 13 else 0
    for kind, subject, value in (("submit", "SubmitTime", t.number("SubmitTime")),
                                 ("begin", "EligibleTime", t.number("EligibleTime")),
                                 ("etime", "Extension EligibleStamp", None if eligible is None else stamped)):
        if value is not None:
            yield from moment_of(t, "TimeInstant", value, {"urf:type": kind}, subject)
    if eligible is not None and eligible != str(stamped):
        t.lost("SSS502", "Extension EligibleStamp", "an EligibleStamp is written as the time that it is")
    if (qos := t.text("QualityOfService")) is not None:
        yield element("ServiceLevel", qos)
    if (wall := t.amount("Duration")) is not None:
        yield element("WallDuration", stamp(int(wall.text)))
    elif (seconds_run := ran(t.job)) is not None:
        t.lost("SSS503", "Duration", "a Duration that is not stated is the time between StartTime and EndTime")
        yield element("WallDuration", stamp(int(seconds_run)))
    if (cpu := t.number("CpuDuration")) is not None:
        yield element("CpuDuration", stamp(cpu))
    if (nodes := t.amount("NodeCount", least=1)) is not None:
        yield element("NodeCount", nodes.text)
    if (held := t.amount("Processors", "consumptionRate", least=1)) is not None:
        yield element("Processors", held.text, {"urf:consumptionRate": held.get("consumptionRate")})
    for tag in ("EndTime", "StartTime"):
        if (value := t.number(tag)) is not None:
            yield from moment_of(t, tag, value)


def moment_of(t: Taking, tag: str, value: int, attributes: dict[str, str | None] | None = None, subject: str = "",
              ) -> Iterator[str]:
    """An element with a time; a time that it cannot hold is reported with the subject (default: the tag)."""
    text = instant(value)
    if text is None or not value:
        t.lost("SSS501", subject or tag, f"{value} is no time that the record can hold")
    else:
        yield element(tag, text, attributes)


def _resources(t: Taking) -> Iterator[str]:
    """What has no element of its own, under its name."""
    for tag in (*_COUNTS, *_WORDS):
        prop = t.job.first(tag)
        if prop is not None and not prop.attributes and (text := t.text(tag)) is not None:
            yield element("Resource", text, {"urf:description": tag})
    for p in t.job.all("Extension"):
        kind, name = p.get("type"), p.get("name")
        if t.find(p) is None or not kind or not name or ":" in kind or not _keeps(kind, name):
            continue
        t.use(p, "name", "type")
        if (text := t.clean(p.text, f"Extension {name}")) is not None:
            yield element("Resource", text, {"urf:description": name if kind == "ur1" else f"{kind}:{name}"})
    for p in t.delivered.all("Resource") if t.delivered else ():
        if _named(p) and t.find(p, "Delivered") is not None:
            t.use(p, "name", "type", "units", place="Delivered")
            kind = p.get("type")
            yield element("ConsumableResource", p.text, {
                "urf:description": f"{p.get('name')}/{kind}" if kind else p.get("name"), "urf:units": p.get("units")})


def _keeps(kind: str, name: str) -> bool:
    """Whether an Extension comes back from its name."""
    return name.strip() == name and not (kind == "ur1" and (":" in name or name in _COUNTS or name in _WORDS
                                                           or name == "AccountingGroup"))


def _named(p: Property) -> bool:
    name = p.get("name") or ""
    return bool(name) and "/" not in name and isinstance(p.value, Decimal) and p.value >= 0


TRANSLATOR = translator("ur1", "OGF Usage Record 1.0", UsageReading, (),
                        documents(NAMESPACE, "JobUsageRecord", _elements),
                        lambda sample: by_root(sample, _RECORDS | {"UsageRecords"}, frozenset((NAMESPACE,))))
