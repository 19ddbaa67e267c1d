"""Format ``adl``: the Activity Description Language of the EMI Execution Service, as ARC computing elements take it.

An activity is started once, in a session directory of its own; a slot is a processor, memory is counted for each slot,
sizes are bytes and times seconds. Sources: see ``_adl_names``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from lxml import etree

from sssjob.document.model import Document, Job
from sssjob.document.units import from_bytes
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import Fit, Sample, by_root
from sssjob.translators.scripts.base import asking_for
from sssjob.translators.scripts.grammars import literal_name
from sssjob.translators.scripts.notices import read_mail
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.writing import with_scripts
from sssjob.translators.specs._adl_names import ADL, ARC, FORMAT, KEPT, PARTS, PLACES, SIZES, STATES, STREAMS, TIMES
from sssjob.translators.specs._adl_to import Writer
from sssjob.translators.specs._elements import ElementReader, bare, document_of, local, text_of, whole_text
from sssjob.xml.xmlio import parse_tree

__all__ = ["TRANSLATOR", "files", "read", "write"]


def read(data: bytes, context: ReadContext) -> Document:
    """The document of an ActivityDescription. Raises RejectedError when it is none."""
    findings = context.findings
    root = parse_tree(data, findings=findings, repairs=False, limits=context.limits)
    if local(root) == "ActivityDescriptions":       # what the REST interface takes several in
        if len(root) != 1:
            findings.add("SSS505", "ActivityDescriptions", f"{len(root)} activities, a document holds one",
                         severity="error", line=root.sourceline or 0)
            findings.raise_if_rejected()
        root = root[0]
    return document_of(root, f"{{{ADL}}}ActivityDescription", "ActivityDescription of ADL", FORMAT, context,
                       lambda reading: ActivityReader(reading).activity(root))


def _written(document: Document, context: WriteContext) -> tuple[str, dict[str, str]]:
    asked = asking_for(FORMAT, document, context)
    writer = Writer(asked[0])
    return whole_text(asked, writer.activity()), writer.scripts


def _recognise(sample: Sample) -> Fit | None:
    return by_root(sample, frozenset(("ActivityDescription",)), frozenset((ADL,))) or by_root(
        sample, frozenset(("ActivityDescriptions",)))


write, files = with_scripts(_written, ".adl")

TRANSLATOR = Translator("adl", "ADL ActivityDescription (XML)", "spec", read, write, (".adl",), _recognise, files)

#: Elements of which there may be any number.
_MANY: Final = ("Environment", "Notification", "InputFile", "OutputFile")
#: A time as ARC writes it; XML has another form.
_MDS: Final = re.compile(r"\d{14}Z", re.ASCII)


class ActivityReader(ElementReader):
    """One ActivityDescription on its way into a job."""

    kind = "adl"
    several_slots = False       # the activity has more slots than one

    def activity(self, root: Any) -> Job:
        """The job of an ActivityDescription; its properties before its containers."""
        self.attributes(root)
        handlers = dict(zip(PARTS, (self.identification, self.application, self.resources, self.staging), strict=True))
        for part in root:
            handler = handlers.pop(local(part), None) if etree.QName(part).namespace == ADL else None
            if handler is None:
                self.unknown(part, "is said already" if local(part) in PARTS else "is not known")
            else:
                handler(part)
        self.sorted_items()
        return self.reading.job

    def others(self, part: Any, own_names: frozenset[str]) -> list[Any]:
        """The elements of a part that its own handler reads, by their names. Places and what is kept are read here; an
        element that is unknown, or stands twice where one may stand, is a finding."""
        name, rest, seen = local(part), [], set[str]()
        places, kept = PLACES.get(name, {}), KEPT[name]
        self.attributes(part)
        for node in part:
            tag, space = local(node), etree.QName(node).namespace
            if tag == "LoggingDirectory" and space == ADL:
                space = ARC         # ARC takes it from either
            again = tag in seen and tag not in _MANY
            seen.add(tag)
            if space == kept.get(tag) and (again or tag not in own_names):
                self.keep(node)
            elif (tag not in own_names and tag not in places) or space != (ARC if tag == "StartTime" else ADL):
                self.unknown(node)
            elif again:
                self.unknown(node, "is said already")
            elif tag in own_names:
                rest.append(node)
            else:
                self.attributes(node)
                self.put(places[tag], node)
        return rest

    def identification(self, part: Any) -> None:
        """ActivityIdentification: name and description; the rest is kept."""
        self.others(part, frozenset())

    def application(self, part: Any) -> None:
        """Application: the executable, its files and variables, mail, the earliest start."""
        nodes = self.others(part, frozenset(("Executable", "Environment", "Notification", "StartTime", *STREAMS)))
        nodes.sort(key=lambda node: local(node) == "Error")         # which may go where the output goes
        for node in nodes:
            name = local(node)
            if name == "Executable":
                self.executable(node)
            elif name == "Environment":
                self.variable(node)
            elif name == "Notification":
                self.notification(node)
            elif name == "StartTime":
                self.start(node)
            elif text_of(node):
                self.stream(node)

    def stream(self, node: Any) -> None:
        """Input, Output or Error; errors in the file of the output go there too."""
        self.attributes(node)
        self.no_elements(node)
        text, tag = literal_name(text_of(node)), STREAMS[local(node)]
        if tag == "ErrorFile" and text == self.reading.job.value("OutputFile"):
            self.reading.put(tag, "", self.option(node), redirectList="Merge")
        else:
            self.reading.put(tag, text, self.option(node))

    def executable(self, part: Any) -> None:
        """Executable: path, arguments, and the exit code that is kept."""
        self.attributes(part)
        arguments: list[str] = []
        for node in part:
            name = local(node)
            if etree.QName(node).namespace != ADL:
                self.unknown(node)
            elif name == "Path":
                self.attributes(node)
                self.put("Executable", node)
            elif name == "Argument":
                self.attributes(node)
                self.no_elements(node)
                arguments.append(node.text or "")
            elif name == "FailIfExitCodeNotEqualTo":
                self.keep(node)
            else:
                self.unknown(node)
        if arguments:
            self.reading.put("Arguments", shlex.join(arguments), self.option(part))

    def variable(self, part: Any) -> None:
        """Environment: a name and a value."""
        texts = self.texts(part, "Name", "Value")
        if texts.get("Name"):
            self.reading.put("Environment/Variable", texts.get("Value", ""), self.option(part), name=texts["Name"])
        else:
            self.unknown(part, "has no Name")

    def texts(self, part: Any, *names: str) -> dict[str, str]:
        """The texts of the elements of these names inside another; others are told."""
        self.attributes(part)
        texts: dict[str, str] = {}
        for node in part:
            if local(node) in names and etree.QName(node).namespace == ADL and local(node) not in texts:
                self.attributes(node)
                self.no_elements(node)
                texts[local(node)] = node.text or ""
            else:
                self.unknown(node)
        return texts

    def notification(self, part: Any) -> None:
        """Notification: mail to one address in states that are events of ours; any other is kept."""
        recipients = [n for n in part if local(n) == "Recipient"]
        states = [text_of(n) for n in part if local(n) == "OnState"]
        events = [event for event, state in STATES.items() if state in states]
        protocol = [text_of(n) for n in part if local(n) == "Protocol"]
        simple = len(recipients) == 1 and protocol == ["email"] and len(states) == len(events) and events \
            and bare(part, 3 + len(states)) and text_of(recipients[0])
        if not simple or self.reading.job.first("NotificationList") is not None:
            self.keep(part)
            return
        address = text_of(recipients[0])
        option = self.option(recipients[0])
        read_mail(self.reading, events, Option(option.name, address, option.line, 0, ""), self.option(part))

    def start(self, node: Any) -> None:
        """StartTime, which ARC writes in one of two forms, in UTC where no zone is named."""
        self.attributes(node)
        self.no_elements(node)
        text = text_of(node)
        try:
            moment = datetime.strptime(text, "%Y%m%d%H%M%SZ") if _MDS.fullmatch(text) else datetime.fromisoformat(text)
            seconds = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        except (ValueError, OverflowError):
            self.refuse(node, f"{text[:80]!r} is no time")
            return
        self.reading.put("EligibleTime", seconds, self.option(node))

    def resources(self, part: Any) -> None:
        """Resources: sizes, times, slots and the operating system; the rest has a place or is kept."""
        nodes = self.others(part, frozenset(("OperatingSystem", "SlotRequirement", *SIZES, *TIMES)))
        nodes.sort(key=lambda node: local(node) != "SlotRequirement")       # what is of each slot depends on it
        for node in nodes:
            name = local(node)
            if name == "OperatingSystem":
                self.system(node)
            elif name == "SlotRequirement":
                self.slots(node)
            elif name in TIMES:
                self.attributes(node)
                self.count(TIMES[name], node)
            else:
                self.attributes(node)
                number, (tag, metric) = self.number_of(node), SIZES[name]
                if number is not None:
                    amount, units = from_bytes(Decimal(number))
                    several = metric and self.several_slots
                    self.reading.put(f"Requested/{tag}", amount, self.option(node), units=units,
                                     **({"metric": metric} if several else {}))

    def system(self, part: Any) -> None:
        """OperatingSystem: its name; family and version are kept."""
        for name, text in self.texts(part, "Name", "Family", "Version").items():
            if name == "Name" and text.strip():
                self.reading.put("Requested/OperatingSystem", text.strip(), self.option(part))
            elif name != "Name":
                self.reading.put("Extension", text, self.option(part), type=self.kind, name=f"OperatingSystem{name}")

    def slots(self, part: Any) -> None:
        """SlotRequirement: slots, on as many hosts as they fill; what a host has is kept where that says more."""
        self.attributes(part)
        nodes = {local(n): n for n in part if etree.QName(n).namespace == ADL}
        for node in part:
            if node is not nodes.get(local(node)) or local(node) not in ("NumberOfSlots", "SlotsPerHost",
                                                                         "ExclusiveExecution"):
                self.unknown(node)
            elif local(node) != "SlotsPerHost":
                self.attributes(node)
        slots = self.number_of(nodes["NumberOfSlots"]) if "NumberOfSlots" in nodes else None
        if not slots:
            self.refuse(part, "NumberOfSlots has to say how many slots, one at least")
            return
        self.several_slots = slots > 1
        host = nodes.get("SlotsPerHost")
        each = slots
        if host is not None:
            self.attributes(host, "useNumberOfSlots")
            if host.get("useNumberOfSlots", "") not in ("true", "1"):
                each = self.number_of(host) or 0
            if not each:
                self.refuse(host, "a host has one slot at least")
                return
        hosts = -(-slots // each)
        if hosts > 1 and slots == hosts * each:
            self.reading.put("Requested/Processors", each, self.option(nodes["NumberOfSlots"]), metric="PerNode")
        else:
            self.reading.put("Requested/Processors", slots, self.option(nodes["NumberOfSlots"]))
        if host is not None:
            self.reading.put("Requested/NodeCount", hosts, self.option(host))
            if each != -(-slots // hosts):
                self.reading.put("Extension", str(each), self.option(host), type=self.kind, name="SlotsPerHost")
        exclusive = nodes.get("ExclusiveExecution")
        if exclusive is not None:
            self.no_elements(exclusive)
            words: Mapping[str, str] = {"true": "true", "1": "true", "false": "false", "0": "false"}
            if text_of(exclusive) in words:
                self.reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", words[text_of(exclusive)],
                                 self.option(exclusive))
            else:
                self.refuse(exclusive, f"{text_of(exclusive)[:80]!r} is neither true nor false")

    def staging(self, part: Any) -> None:
        """DataStaging: a copy from or to one URI; any other file is kept whole, but for those that the streams go
        to."""
        for node in self.others(part, frozenset(("InputFile", "OutputFile"))):
            inward = local(node) == "InputFile"
            names = [text_of(n) for n in node if local(n) == "Name"]
            ends = [n for n in node if local(n) == ("Source" if inward else "Target")]
            uris = [text_of(n) for end in ends for n in end if local(n) == "URI"]
            if not inward and bare(node, 2) and names and literal_name(names[0]) in [
                    self.reading.job.value(tag) for tag in ("OutputFile", "ErrorFile")]:
                continue
            if not bare(node, 4) or not (names and names[0] and uris and uris[0]):
                self.keep(node)
            elif inward:
                self.copy(node, "StageIn", uris[0], names[0])
            else:
                self.copy(node, "StageOut", names[0], uris[0])
