"""The blocks of ``ur2`` beside those of the job: memory, storage, network, cloud.

The amounts are properties: Delivered/Memory and Swap (a MemoryUsageBlock of class RAM or Swap), Disk (the first
StorageUsageBlock), Network (inbound and outbound of all NetworkUsageBlocks), SuspendDuration (CloudUsageBlock). What
stands beside them is an Extension of type ``ur2``, named by block and element, with the attribute behind ``@``:
``Storage StorageShare``, ``Storage 2 FileCount``, ``Memory RAM HostType``, ``Cloud TimeInstant@type``. Writing makes
the blocks of them again. Times that are those of the job are not repeated.

Source: GFD.204, sections 8 to 11.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from sssjob.document.units import to_bytes
from sssjob.findings import escape
from sssjob.translators.records._usage import Taking
from sssjob.translators.records._values import DIGITS
from sssjob.translators.records._xml import XMLReading, element, instant, local, seconds, stamp, text_of
from sssjob.translators.records.base import Record, leaf, number

#: Block -> its elements in order; ! behind a name: it is required.
BLOCKS: Final[dict[str, tuple[str, ...]]] = {
    "Memory": ("MemoryClass!", "MemoryResourceCapacityUsed!", "MemoryResourceCapacityAllocated",
               "MemoryResourceCapacityRequested", "StartTime!", "EndTime!", "ExecutionHost", "HostType", "Charge"),
    "Storage": ("StorageShare", "StorageMedia", "StorageClass", "DirectoryPath", "FileCount",
                "StorageResourceCapacityUsed!", "StorageLogicalCapacityUsed", "StorageResourceCapacityAllocated",
                "StartTime!", "EndTime!", "Host", "HostType", "Charge"),
    "Cloud": ("LocalVirtualMachineId", "GlobalVirtualMachineId", "Status!", "SuspendDuration", "ImageId", "MachineName",
              "SubmitHost", "TimeInstant", "ServiceLevel"),
    "Network": ("NetworkClass!", "NetworkInboundUsed!", "NetworkOutboundUsed!", "Charge"),
}
#: MemoryClass -> tag.
_CLASSES: Final = {"RAM": "Memory", "Swap": "Swap"}
#: Element of a cloud block -> field of Record, where no JobUsageBlock says it.
_CLOUD: Final = (("MachineName", "machine"), ("SubmitHost", "submit_host"), ("ServiceLevel", "qos"))
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_BYTES: Final = re.compile(rf"\d{{1,{DIGITS}}}", re.ASCII)
#: Element -> the form that its text has to have; None of a duration, which is that of the job, fits.
_FORMS: Final = {"SuspendDuration": re.compile("(?!)"), "StartTime": _TIME, "EndTime": _TIME, **dict.fromkeys((
    "MemoryResourceCapacityUsed", "MemoryResourceCapacityAllocated", "MemoryResourceCapacityRequested", "FileCount",
    "StorageResourceCapacityUsed", "StorageLogicalCapacityUsed", "StorageResourceCapacityAllocated",
    "NetworkInboundUsed", "NetworkOutboundUsed"), _BYTES)}
_NAMED: Final = tuple(f"Memory {word}" for word in _CLASSES)
_FACT: Final = re.compile(r"((?:Memory RAM|Memory Swap|Memory|Storage|Cloud|Network)(?: [2-9]| [1-9]\d{1,3})?) "
                          r"([A-Z]\w*)(?:@(\w+))?", re.ASCII)


# --- reading ------------------------------------------------------------------------------------------------------

class Blocks:
    """The blocks of one record, gathered; ``give`` makes properties of them when the job itself is known."""

    def __init__(self, reading: XMLReading) -> None:
        self.reading = reading
        self.found: list[tuple[str, Any]] = []
        self.labels: dict[str, int] = {}

    def take(self, kind: str, block: Any) -> None:
        """A block of that kind."""
        self.found.append((kind, block))

    def of_cloud(self, *names: str) -> str | None:
        """The text of the first of these elements in the cloud block."""
        texts_by_name = {local(item): text_of(item) for kind, block in self.found if kind == "Cloud" for item in block}
        return next((text for name in names if (text := texts_by_name.get(name))), None)

    def give(self, r: Record, word: str | None) -> None:
        """Their properties and Extensions. word: the Status of the job. Rejected: number, too-long."""
        for name, tag in _CLOUD:
            if getattr(r, tag) is None:
                setattr(r, tag, self.reading.name(self.of_cloud(name), name))
        own = _own(r.start, r.end, word) | {name: getattr(r, tag) for name, tag in _CLOUD}
        traffic = Decimal(0)
        for kind, block in self.found:
            own_facts = {k: v for k, v in self._said(kind, block, r.line).items() if own.get(k) != v}
            label = self._label(kind, own_facts.get("MemoryClass"))
            if kind != label.rstrip(" 0123456789"):         # the class stands in the label
                del own_facts["MemoryClass"]
            if kind == "Network":
                traffic += sum(number(own_facts.get(n, ""), n) or 0
                               for n in ("NetworkInboundUsed", "NetworkOutboundUsed"))
            elif kind == "Cloud" and (text := own_facts.pop("SuspendDuration", "")):
                r.suspended = seconds(text, "SuspendDuration")
            elif label in _AMOUNTS:
                tag, name = _AMOUNTS[label]
                if value := number(own_facts.pop(name, ""), name):
                    r.delivered.append(leaf(tag, value, {"units": "B", "metric": "Max"}))
            r.more += (("ur2", f"{label} {name}", text) for name, text in own_facts.items())
        if traffic:
            r.delivered.append(leaf("Network", traffic, {"units": "B", "metric": "Total"}))

    def _said(self, kind: str, block: Any, line: int) -> dict[str, str]:
        """Element, or element@attribute, -> text; what else there is, is told."""
        names_known = {name.rstrip("!") for name in BLOCKS[kind]}
        texts: dict[str, str] = {}
        for item in block:
            name = local(item)
            if name == "ExecutionHost":
                hosts = [h for h in item if local(h) == "Hostname"]
                if len(hosts) != len(item) or len(hosts) != 1:
                    self._lost(kind, f"all of {name}", line)
                item = hosts[0] if hosts else item
            if name not in names_known or name in texts or len(item):
                self._lost(kind, name, line)
                continue
            if (text := text_of(item)) is not None:
                texts[name] = " ".join(text.split())
                texts |= {f"{name}@{k.rpartition('}')[2]}": " ".join(v.split()) for k, v in item.attrib.items()
                          if v.strip()}
        return texts

    def _lost(self, kind: str, name: str, line: int) -> None:
        self.reading.once("SSS545", f"{kind} {name}", f"no place for {escape(name, 80)} of {kind}UsageBlock", line)

    def _label(self, kind: str, word: str | None) -> str:
        """The name of a block: ``Storage``, the second block of a kind ``Storage 2``. A memory block whose class is
        RAM or Swap carries the class in its name: ``Memory RAM``."""
        label = f"{kind} {word}" if kind == "Memory" and word in _CLASSES else kind
        self.labels[label] = n = self.labels.get(label, 0) + 1
        return label if n == 1 else f"{label} {n}"


#: Block -> (tag of its amount, the element that states it).
_AMOUNTS: Final = {"Storage": ("Disk", "StorageResourceCapacityUsed"),
                   **{f"Memory {word}": (tag, "MemoryResourceCapacityUsed") for word, tag in _CLASSES.items()}}


def _own(start: object, end: object, status: str | None) -> dict[str, str]:
    """What a block does not repeat: times and Status of the job."""
    repeated = {} if status is None else {"Status": status}
    for tag, value in (("StartTime", start), ("EndTime", end)):
        if isinstance(value, int) and value and (text := instant(value)):
            repeated[tag] = text
    return repeated


# --- writing ------------------------------------------------------------------------------------------------------

def blocks(t: Taking, status: str) -> Iterator[str]:
    """All blocks, in the order of the format. status: of the job."""
    own = _own(t.job.value("StartTime"), t.job.value("EndTime"), status)
    facts = _facts(t, own)
    for word in _CLASSES:
        yield from _several(t, f"Memory {word}", facts, own | {"MemoryClass": word})
    yield from _several(t, "Memory", facts, own)
    yield from _several(t, "Storage", facts, own)
    if facts.get("Cloud") and _makes("Cloud", facts["Cloud"], own):
        suspended = t.number("SuspendDuration")
        yield _block(t, "Cloud", facts["Cloud"], own | ({} if suspended is None else {
            "SuspendDuration": stamp(suspended)}))
    yield from _network(t, facts, own)


def _several(t: Taking, label: str, facts: dict[str, dict[str, str]], own: dict[str, str]) -> Iterator[str]:
    """The blocks of a label, one after another as long as there are."""
    if label in _AMOUNTS:
        yield (text := _measured(t, label, facts.get(label, {}), own))
    else:
        yield (text := _block(t, label, facts.get(label, {}), own))
    n = 1
    while text and (more := f"{label} {(n := n + 1)}") in facts:
        yield (text := _block(t, more, facts[more], own))


def _network(t: Taking, facts: dict[str, dict[str, str]], own: dict[str, str]) -> Iterator[str]:
    """NetworkUsageBlocks. Network alone does not tell inbound from outbound, so it has no place."""
    written = [text for text in _several(t, "Network", facts, own) if text]
    yield from written
    labels = ["Network", *(f"Network {n}" for n in range(2, len(written) + 1))][:len(written)]
    traffic = sum(int(facts[label][name]) for label in labels for name in ("NetworkInboundUsed", "NetworkOutboundUsed"))
    network = None if t.delivered is None else t.delivered.first("Network")
    if written and network is not None and isinstance(network.value, Decimal) and network.get("metric") == "Total" \
            and network.get("units") is not None and to_bytes(network.value, network.get("units")) == traffic:
        t.use(network, "units", "metric", place="Delivered")
    elif traffic:
        t.lost("SSS502", "Network", "Network is read as the sum of what the Extensions of the blocks say")


def _facts(t: Taking, own: dict[str, str]) -> dict[str, dict[str, str]]:
    """Block -> element, or element@attribute, -> text, of the Extensions that tell of blocks and do not say again what
    the job says."""
    beside = {"MachineName": t.job.value("Machine"), "SubmitHost": t.job.value("SubmitHost"),
              "ServiceLevel": t.job.value("QualityOfService")}
    own = own | {name: str(value) for name, value in beside.items()}
    facts_by_block: dict[str, dict[str, str]] = {}
    for p in t.job.all("Extension"):
        match = _FACT.fullmatch(p.get("name") or "") if p.get("type") == "ur2" else None
        if match is None or t.find(p) is None or own.get(match[2]) == p.text or beside.get(match[2], "") is None:
            continue
        if match[2] != "MemoryClass" or not match[1].startswith(_NAMED):      # their class stands in the label
            facts_by_block.setdefault(match[1], {}).setdefault(match[2] + (f"@{match[3]}" if match[3] else ""), p.text)
    return facts_by_block


def _measured(t: Taking, label: str, own_facts: dict[str, str], own: dict[str, str]) -> str:
    """The block of an amount that is a property: the peak, else the total."""
    tag, name = _AMOUNTS[label]
    kind = label.partition(" ")[0]
    if name in own_facts or not _makes(kind, own_facts, own | {name: "0"}):
        own_facts = {}
    if not _makes(kind, own_facts, own | {name: "0"}):
        return ""
    peak = next(((n, m) for m in ("Max", "Total") for n, _ in t.sizes(tag, m)), None)
    if peak is None:
        return ""
    if peak[1] != "Max":
        t.lost("SSS502", tag, f"the capacity that was used does not tell total from peak: {tag} is read as Max")
    return _block(t, label, own_facts, own | {name: str(peak[0])})


def _makes(kind: str, own_facts: dict[str, str], own: dict[str, str]) -> bool:
    """Whether facts make a block: all that it must have, nothing that it cannot have or that comes back otherwise."""
    names = {name.rstrip("!") for name in BLOCKS[kind]}
    if any(name[-1] == "!" and name[:-1] not in own_facts | own for name in BLOCKS[kind]):
        return False
    return all(name in names and (not at or name in own_facts) and _fits(key, text) for key, text in own_facts.items()
               for name, at, _ in [key.partition("@")])


def _fits(key: str, text: str) -> bool:
    form = _FORMS.get(key)
    if " ".join(text.split()) != text or not text or (key == "MemoryClass" and text in _CLASSES):
        return False
    return form is None or form.fullmatch(text) is not None


def _block(t: Taking, label: str, own_facts: dict[str, str], own: dict[str, str]) -> str:
    """A block of facts and of what the job says; nothing, and all is left, where the facts do not make one."""
    kind = label.partition(" ")[0]
    if not _makes(kind, own_facts, own):
        return ""
    items = []
    for name in (n.rstrip("!") for n in BLOCKS[kind]):
        text = own_facts.get(name, own.get(name))
        if text is not None:
            more: dict[str, str | None] = {f"urf:{k.partition('@')[2]}": v for k, v in own_facts.items()
                                           if k.startswith(f"{name}@")}
            items.append(element("ExecutionHost", [element("Hostname", text, more)]) if name == "ExecutionHost" else
                         element(name, text, more))
    for key in own_facts:
        t.fact("ur2", f"{label} {key}")
    return element(f"{kind}UsageBlock", items)
