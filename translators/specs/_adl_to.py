"""A job on its way into an ActivityDescription of ADL."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil
from typing import Any

from lxml import etree

from sssjob.request.asked import JOB, NEAREST
from sssjob.translators.scripts.base import APPROXIMATED, DROPPED, INVENTED, Asking
from sssjob.translators.scripts.environment import named_variables
from sssjob.translators.scripts.layout import Part, amount_of, one_part, total_of, unknown_factor
from sssjob.translators.scripts.notices import mail
from sssjob.translators.scripts.resource_limits import limits_of
from sssjob.translators.scripts.side_by_side import copies_of
from sssjob.translators.scripts.streams import file_name, source_merges
from sssjob.translators.scripts.writing import words_of
from sssjob.translators.specs._adl_names import ADL, ARC, KEPT, ORDER, PARTS, PLATFORMS, SIZES, STATES, STREAMS
from sssjob.translators.specs._elements import ElementWriter, in_order


class Writer(ElementWriter):
    """One job on its way into an ActivityDescription."""

    space, kind = ADL, "adl"

    def __init__(self, asking: Asking) -> None:
        super().__init__(asking)
        self.streams: list[str] = []        # the files of both streams, in the session directory

    def activity(self) -> Any:
        """The root element, without parts that are empty."""
        spaces: Any = {None: ADL, "nordugrid-adl": ARC}
        root = etree.Element(f"{{{ADL}}}ActivityDescription", nsmap=spaces)
        for name, fill in zip(PARTS, (self.identification, self.application, self.resources, self.staging),
                              strict=True):
            part = etree.Element(f"{{{ADL}}}{name}")
            fill(part)
            for kept, space in KEPT[name].items():
                self.kept(part, kept, space)
            if len(part):
                root.append(in_order(part, ORDER[name]))
        etree.cleanup_namespaces(root)
        return root

    def identification(self, part: Any) -> None:
        """ActivityIdentification: name and comment."""
        name, comment = self.asking.one("Name", (JOB,)), self.asking.extension("Comment")
        if name is not None and name.text:
            self.add(part, "Name", name.text, name)
        if comment is not None:
            self.add(part, "Description", comment.text, comment)

    def application(self, part: Any) -> None:
        """Application: the executable, its files and variables, mail, the earliest start."""
        run = etree.Element(f"{{{ADL}}}Executable")
        (path, entry), arguments = self.executable(), self.asking.one("Arguments")
        if path:
            self.add(run, "Path", path, entry)
        for word in words_of(self.asking, arguments):
            self.add(run, "Argument", word, arguments)
        self.kept(run, "FailIfExitCodeNotEqualTo")
        if len(run):
            part.append(run)
        self.files(part)
        for e in named_variables(self.asking):
            variable = etree.SubElement(part, f"{{{ADL}}}Environment")
            self.add(variable, "Name", e.attributes["name"], e)
            self.add(variable, "Value", e.text, e)
            if len(variable) != 2:
                part.remove(variable)
        export = self.asking.export()
        if export is not None:
            self.asking.note(DROPPED if export else APPROXIMATED, None, "Environment/@export: an activity finds "
                             "no variables of the submitter anyway", "warning" if export else "info",
                             "Environment/@export")
        self.mail(part)
        start = self.asking.one("EligibleTime")
        if start is not None:
            try:
                moment = datetime.fromtimestamp(int(start.text), UTC)
            except (ValueError, OverflowError, OSError):
                self.asking.dropped(start, f"{start.text[:80]} is no time that can be written")
            else:
                self.add(part, "StartTime", f"{moment.year:04d}{moment:%m%d%H%M%S}Z", start, ARC)

    def files(self, part: Any) -> None:
        """Input, Output and Error; errors that go where output goes are of the same name."""
        output: str | None = None
        for name, tag in STREAMS.items():
            text, redirects = file_name(self.asking, tag)
            if "Merge" in redirects and not text and self.streams:
                text = self.streams[0]
            elif tag == "ErrorFile" and not self.asking.said(tag) and source_merges(self.asking):
                text = output
            elif "Merge" in redirects and tag == "ErrorFile":
                self.asking.note(DROPPED, self.asking.one(tag), "there is no output for it to go to")
            if not text:
                continue
            self.add(part, name, text, self.asking.one(tag, carried=("redirectList",)))
            output = text if name == "Output" else output
            if name != "Input" and text[0] != "/" and text not in self.streams:
                self.streams.append(text)

    def mail(self, part: Any) -> None:
        """Notification by mail, in the states that stand for events."""
        states, address = mail(self.asking, STATES, {"fail": "end", "abort": "end"})
        entry = self.asking.one("NotificationList", carried=("uri",))
        if not states:
            return
        if address is None:
            self.asking.note(DROPPED, entry, "nobody is named to whom mail would go", subject="NotificationList")
            return
        if STATES["begin"] in states:
            self.asking.note(APPROXIMATED, entry, "mail at begin is sent when the activity is handed to the batch "
                             "system, not when it starts", "info", "NotificationList")
        notification = etree.SubElement(part, f"{{{ADL}}}Notification")
        for name, text in (("Protocol", "email"), ("Recipient", address), *(("OnState", state) for state in states)):
            self.add(notification, name, text, entry)

    def resources(self, part: Any) -> None:
        """Resources: system, sizes, slots, queue and times."""
        self.system(part)
        layout = one_part(self.asking)
        slots = self.slots(part, layout)
        for name, (tag, metric) in SIZES.items():
            amount = layout.memory if tag == "Memory" else amount_of(self.asking, layout, tag)
            if amount is None:
                continue
            total = total_of(amount, layout)
            if total is None and amount.per == "PerNode" and slots == 1:
                total = amount.value
            if total is None:
                unknown_factor(self.asking, amount.entry, f"{tag}: {amount.per} is written for "
                               f"{'each slot' if metric else 'the activity'}")
                total = amount.value * (slots if metric else 1)
            size = -(-total // slots) if metric else total
            if metric and amount.per != "PerProcessor" and slots > 1:
                self.asking.note(APPROXIMATED, amount.entry, f"{tag}: {size} bytes for each of {slots} slots"
                                 f"{', rounded up' if total % slots else ''}", None if total % slots else "info")
            self.add(part, name, str(size), amount.entry)
        if layout.gpus is not None:
            self.asking.dropped(layout.gpus.entry, "a kind of coprocessor can be asked for, not how many of them",
                                "Resource GPU")
        for e in layout.beside:
            self.asking.dropped(e, f"another amount of {e.tag} is written")
        queue, limit = self.asking.one("Queue"), self.asking.at("Requested/Duration")
        if queue is not None and queue.text:
            self.add(part, "QueueName", queue.text, queue)
        for seconds in limits_of(self.asking, "CPUTime", ("", "Hard")):
            self.add(part, "TotalCPUTime", str(seconds))
        if limit is not None:
            if int(limit.text) >= 0:
                self.add(part, "WallTime", limit.text, limit)
            else:
                self.asking.dropped(limit, "a limit is no negative number")

    def system(self, part: Any) -> None:
        """OperatingSystem and Platform."""
        name, outer = self.asking.one("OperatingSystem"), etree.Element(f"{{{ADL}}}OperatingSystem")
        if name is not None and name.text:
            self.add(outer, "Name", name.text, name)
        for more in ("Family", "Version"):
            for e in self.asking.find("Extension", NEAREST, name=f"OperatingSystem{more}", type="adl"):
                self.add(outer, more, e.text, e)
        if len(outer):
            part.append(outer)
        platform = self.asking.one("Architecture")
        if platform is not None:
            word = PLATFORMS.get(platform.text.lower())
            if word is None:
                self.asking.dropped(platform, f"a Platform is one of {', '.join(sorted(set(PLATFORMS.values())))}")
            else:
                if word != platform.text:
                    self.asking.note(APPROXIMATED, platform, f"the Platform is called {word}", "info")
                self.add(part, "Platform", word, platform)

    def slots(self, part: Any, layout: Part) -> int:
        """SlotRequirement, where the job says anything of it; how many slots there are."""
        processors, hosts = layout.processor_total, layout.node_total
        slots = max(processors or 1, hosts or 1)
        exclusive = self.asking.extension("ExclusiveNodeUse")
        self.copies_start(layout)
        if processors is None and hosts is None and exclusive is None:
            return slots
        if processors is None and hosts is None:
            self.asking.note(INVENTED, None, "Processors: one slot is asked for, because nothing is said of hosts "
                             "without a number of slots", "info", "Processors")
        outer = etree.SubElement(part, f"{{{ADL}}}SlotRequirement")
        self.add(outer, "NumberOfSlots", str(slots))
        if len(set(layout.geometry)) > 1:
            self.asking.note(DROPPED, layout.sources.get("distribution"), "the tasks of each host cannot be said",
                             subject="TaskDistribution")
        if layout.nodes_most is not None:
            self.asking.note(APPROXIMATED, layout.sources.get("nodes"), f"NodeCount: {layout.nodes} are asked for, not "
                             f"up to {layout.nodes_most}", subject="NodeCount")
        if hosts:
            kept = self.asking.extension("SlotsPerHost", "adl")
            each = int(kept.text) if kept is not None and kept.text.isdigit() and len(kept.text) < 16 else 0
            if not each or ceil(slots / each) != hosts:
                each = -(-slots // hosts)
            if -(-slots // each) == hosts:
                self.add(outer, "SlotsPerHost", str(each))
            else:
                self.asking.note(DROPPED, layout.sources.get("nodes") or layout.sources.get("distribution"),
                                 f"NodeCount: no number of slots for each host spreads {slots} over {hosts}",
                                 subject="NodeCount")
        if exclusive is not None:
            if exclusive.text not in ("true", "false"):
                self.asking.note(APPROXIMATED, exclusive, f"{exclusive.text} is written as true")
            self.add(outer, "ExclusiveExecution", "false" if exclusive.text == "false" else "true")
        return slots

    def copies_start(self, layout: Part) -> None:
        """Tell of tasks: an activity is started once, on the first of its hosts."""
        copies = copies_of(self.asking)
        if copies != 1:
            entry = next((e for tag in ("TaskCount", "TaskDistribution") for e in self.asking.said(tag)), None)
            self.asking.note(DROPPED, entry, f"TaskCount: an activity is started once, not {copies} times; what "
                             "it starts may use all of its slots", subject="TaskCount")

    def staging(self, part: Any) -> None:
        """DataStaging: the script, files that are copied, and the streams, which stay to be fetched."""
        for name in self.scripts:
            file = etree.SubElement(part, f"{{{ADL}}}InputFile")
            self.add(file, "Name", name)
            self.add(file, "IsExecutable", "true")
        away = set[str]()
        for kind, source, target, e in self.copies():
            inward = kind == "StageIn"
            file = etree.Element(f"{{{ADL}}}{'InputFile' if inward else 'OutputFile'}")
            self.add(file, "Name", target if inward else source, e)
            self.add(etree.SubElement(file, f"{{{ADL}}}{'Source' if inward else 'Target'}"), "URI",
                     source if inward else target, e)
            part.append(file)
            if not inward:
                away.add(source)
        for name in self.streams:
            if name not in away:
                self.add(etree.SubElement(part, f"{{{ADL}}}OutputFile"), "Name", name)
