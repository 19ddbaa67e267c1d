"""A job on its way into a JobDefinition of JSDL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from math import ceil
from typing import Any

from lxml import etree

from sssjob.document.element import Property
from sssjob.request import request_of
from sssjob.request.asked import AMOUNTS, GROUP, GROUPS, JOB, NEAREST, TASK
from sssjob.translators.scripts.base import APPROXIMATED, DROPPED, Asking, Entry
from sssjob.translators.scripts.choices import Term, any_of, choices, drop, expanded
from sssjob.translators.scripts.environment import named_variables
from sssjob.translators.scripts.layout import Part, one_part, total_of
from sssjob.translators.scripts.side_by_side import copies_of
from sssjob.translators.scripts.streams import file_name, source_merges
from sssjob.translators.scripts.writing import words_of
from sssjob.translators.specs._elements import ElementWriter, in_order
from sssjob.translators.specs._jsdl_names import FILES, HPCPA, JSDL, LIMITS, NUMBERS, ORDER, POSIX, SPMD, TEXTS


class Writer(ElementWriter):
    """One job on its way into a JobDefinition."""

    space, kind = JSDL, "jsdl"

    def __init__(self, asking: Asking) -> None:
        super().__init__(asking)
        self.spaces: Any = {None: JSDL, "jsdl-posix": POSIX}
        self.part = one_part(asking) if len(asking.groups) > 1 else None

    def definition(self) -> Any:
        """The root element, without parts that are empty."""
        parts = [self.identification(), self.application(), self.resources(), *self.staging()]
        root = etree.Element(f"{{{JSDL}}}JobDefinition", nsmap=self.spaces)
        description = etree.SubElement(root, f"{{{JSDL}}}JobDescription")
        for part in parts:
            if len(part):
                description.append(part)
        return root

    def identification(self) -> Any:
        """JobIdentification, in the order of its schema."""
        part = etree.Element(f"{{{JSDL}}}JobIdentification")
        name, comment = self.asking.one("Name", (JOB,)), self.asking.extension("Comment")
        if name is not None and name.text:
            self.add(part, "JobName", name.text, name)
        if comment is not None:
            self.add(part, "Description", comment.text, comment)
        self.kept(part, "JobAnnotation")
        project = self.asking.one("Project")
        if project is not None and project.text:
            self.add(part, "JobProject", project.text, project)
        self.kept(part, "JobProject")
        return part

    def application(self) -> Any:
        """Application, with the profile that holds what the job says."""
        part = etree.Element(f"{{{JSDL}}}Application")
        name = self.asking.one("Application")
        if name is not None and name.text:
            self.add(part, "ApplicationName", name.text, name)
        self.kept(part, "ApplicationVersion")
        for e in self.asking.find("Extension", NEAREST, name="ApplicationDescription", type="jsdl"):
            self.add(part, "Description", e.text, e)
        parallel = self.parallel()
        self.processes(parallel)
        application = self.asking.extension("Application", "jsdl")
        kind = application.text if application is not None else "POSIXApplication"
        if any(n is not None for n in parallel.values()):
            kind = "SPMDApplication"
        space = {"HPCProfileApplication": HPCPA, "SPMDApplication": SPMD}.get(kind, POSIX)
        if space != POSIX:
            self.spaces["jsdl-hpcpa" if space == HPCPA else "jsdl-spmd"] = space
        inner = HPCPA if space == HPCPA else POSIX
        run = etree.Element(f"{{{space}}}{kind}") if space != POSIX else etree.Element(f"{{{POSIX}}}POSIXApplication")
        self.run(run, inner)
        if space == SPMD:
            for name_, tag in (("NumberOfProcesses", "TaskCount"), ("ProcessesPerHost", "TaskDistribution"),
                               ("ThreadsPerProcess", "Processors")):
                if parallel[tag] is not None:
                    self.add(run, name_, str(parallel[tag]), None, SPMD)
            self.kept(run, "SPMDVariation", SPMD)
        if len(run) or application is not None:
            part.append(run)
        return part

    def parallel(self) -> dict[str, int | None]:
        """The numbers of an SPMDApplication, by the property that says them; of several task groups those of the one
        kind of task that they come to."""
        part = self.part
        if part is None:
            return {tag: self.whole(self.asking.one(tag, levels, carried=("type",))) for tag, levels in (
                ("TaskCount", (GROUP, GROUPS)), ("TaskDistribution", AMOUNTS), ("Processors", TASK))}
        if part.geometry:
            self.asking.note(DROPPED, part.sources.get("distribution"), "the tasks of each host cannot be said",
                             subject="TaskDistribution")
        return {"TaskCount": part.tasks, "TaskDistribution": part.per_node, "Processors": part.cpus}

    def processes(self, counts: dict[str, int | None]) -> None:
        """Say how many processes there are where the job leaves it to follow, and tell of a script started as often."""
        totals = request_of(self.asking.job, bare=True).totals
        layout = self.part or totals.layout
        slots = layout.slots or layout.nodes
        if counts["TaskCount"] is None and slots and any(n is not None for n in counts.values()):
            counts["TaskCount"] = slots
        processes, copies = counts["TaskCount"] or 1, copies_of(self.asking)
        if processes != copies:
            entry = next((e for tag in ("TaskCount", "TaskDistribution") for e in self.asking.said(tag)), None)
            self.asking.note(DROPPED, entry, f"TaskCount: the {processes} processes of an SPMDApplication are as many "
                             f"copies of the executable, not {copies}", subject="TaskCount")

    def whole(self, entry: Entry | None) -> int | None:
        """A number of an SPMDApplication; None where there is none, or none that can be said."""
        if entry is None:
            return None
        if entry.text.isdigit() and int(entry.text) and entry.attributes.get("type", "TasksPerNode") == "TasksPerNode":
            return int(entry.text)
        self.asking.dropped(entry, f"{entry.text} is no number that is carried")
        return None

    def run(self, run: Any, space: str) -> None:
        """The elements of an application, in the order of its schema; space: their namespace."""
        self.command(run, space)
        output: str | None = None
        for name in FILES:
            text, _ = file_name(self.asking, TEXTS[name], holds=())
            output = text if name == "Output" else output
            if name == "Error" and not self.asking.said(TEXTS[name]) and source_merges(self.asking) and output:
                self.asking.note(DROPPED, None, f"ErrorFile: without one {self.asking.origin} sends both streams to "
                                 "one file, which JSDL cannot say", subject="ErrorFile")
            if text:
                self.add(run, name, text, self.asking.one(TEXTS[name], carried=("redirectList",)), space)
        directory = self.asking.one("InitialWorkingDirectory")
        if directory is not None and directory.text:
            self.add(run, "WorkingDirectory", directory.text, directory, space)
        for e in named_variables(self.asking):
            self.add(run, "Environment", e.text, e, space, name=e.attributes["name"])
        if self.asking.export() is not None:
            self.asking.note(DROPPED, None, "Environment/@export: JSDL does not say whether the submitter's variables "
                             "go along", "warning", "Environment/@export")
        limit = self.asking.at("Requested/Duration")
        if limit is not None:
            if space == POSIX and int(limit.text) >= 0:
                self.add(run, "WallTimeLimit", limit.text, limit, space)
            else:
                self.asking.dropped(limit, "an application of the HPC profile has no limits")
        self.limits(run, space)
        for name in ("UserName", "GroupName"):
            entry = self.asking.one(TEXTS[name])
            if entry is not None and entry.text:
                if name == "GroupName" and space == HPCPA:
                    self.asking.dropped(entry)
                else:
                    self.add(run, name, entry.text, entry, space)

    def command(self, run: Any, space: str) -> None:
        """Executable and Argument; a script of the document becomes a file of its own."""
        (text, entry), arguments = self.executable(), self.asking.one("Arguments")
        if text:
            self.add(run, "Executable", text, entry, space)
        for word in words_of(self.asking, arguments):
            self.add(run, "Argument", word, arguments, space)

    def limits(self, run: Any, space: str) -> None:
        """ResourceLimits; the HPC profile has none."""
        names = {limit: name for name, limit in LIMITS.items()}
        limits = {e.attributes.get("name", ""): e for e in self.asking.find("ResourceLimit")}
        for e in limits.values():
            e.understood |= {"name"}
            if e.attributes.get("name") not in names or space == HPCPA or not re.fullmatch(r"\d+", e.text):
                self.asking.dropped(e)
        for limit, name in names.items():
            e_ = limits.get(limit)
            if e_ is not None and space != HPCPA and re.fullmatch(r"\d+", e_.text):
                self.add(run, name, e_.text, e_, space)

    def resources(self) -> Any:
        """Resources, in the order of its schema."""
        part = etree.Element(f"{{{JSDL}}}Resources")
        self.hosts(part)
        exclusive = self.asking.extension("ExclusiveNodeUse")
        if exclusive is not None:
            if exclusive.text not in ("true", "false"):
                self.asking.note(APPROXIMATED, exclusive, f"{exclusive.text} is written as true")
            self.add(part, "ExclusiveExecution", "false" if exclusive.text == "false" else "true")
        system = self.asking.one("OperatingSystem")
        if system is not None or self.asking.find("Extension", NEAREST, name="OperatingSystemVersion", type="jsdl"):
            outer = etree.SubElement(part, f"{{{JSDL}}}OperatingSystem")
            if system is not None:
                self.add(etree.SubElement(outer, f"{{{JSDL}}}OperatingSystemType"), "OperatingSystemName", system.text,
                         system)
            self.kept(outer, "OperatingSystemVersion")
        architecture = self.asking.one("Architecture")
        if architecture is not None:
            self.add(etree.SubElement(part, f"{{{JSDL}}}CPUArchitecture"), "CPUArchitectureName", architecture.text,
                     architecture)
        of_groups = () if self.part is None else ("Processors", "NodeCount", "Memory")
        for name, (tag, metric, in_bytes) in NUMBERS.items():
            if tag not in of_groups:
                self.number(part, name, tag, metric, in_bytes)
        if self.part is not None:
            self.of_groups(part, self.part)
        self.beside_gpus(part)
        self.in_all(part)
        for name in ("FileSystem", "IndividualCPUSpeed", "IndividualCPUTime", "TotalCPUTime"):
            self.kept(part, name)
        return in_order(part, ORDER)

    def hosts(self, part: Any) -> None:
        """CandidateHosts: names alone, of which any will do."""
        host_lists: list[list[str]] = []
        for choice in choices(self.asking, "Node"):
            names = expanded(any_of(choice) or [Term("", kind="other")])
            if names is None:
                drop(self.asking, choice, "only names of hosts can be said, of which any will do")
            elif host_lists and (len(names) > 1 or len(host_lists[0]) > 1):
                drop(self.asking, choice, "one list of hosts can be said")
            else:
                host_lists.append(names)
        if len(host_lists) > 1:
            self.asking.note(APPROXIMATED, None, "Node: any of the hosts, not all of them", subject="Node")
        hosts = [name for names in host_lists for name in names]
        if hosts:
            outer = etree.SubElement(part, f"{{{JSDL}}}CandidateHosts")
            for host in hosts:
                self.add(outer, "HostName", host)

    def number(self, part: Any, name: str, tag: str, metric: str, in_bytes: bool) -> None:
        """The alternatives of a number; an expression that has no such form is taken down to its least request."""
        metrics = (metric,) if metric else ("", "Total")
        entries = [e for e in self.asking.entries if e.tag == tag and e.slot in ("", "Requested") and e.level in AMOUNTS
                   and isinstance(e.item, Property) and e.attributes.get("metric", "") in metrics]
        nearest = next((level for level in AMOUNTS if any(e.level == level for e in entries)), "")
        entries = [e for e in entries if e.level == nearest]
        if not entries:
            return
        alternatives = _alternatives(entries)
        if alternatives is None:
            more = {"metric": metric} if metric else {}
            entry = self.asking.one(tag, AMOUNTS, carried=("units", "metric", "context"), **more)
            alternatives = [] if entry is None else [[entry]]
        outer = etree.Element(f"{{{JSDL}}}{name}")
        for alternative in alternatives:
            for e in alternative:
                e.used = True
                e.understood |= {"units", "metric", "op", "conj", "group"}
            self.range(outer, alternative, in_bytes)
        if len(outer):
            part.append(outer)

    def of_groups(self, outer: Any, part: Part) -> None:
        """The amounts of several task groups as those of the one kind of task that they come to."""
        memory = part.memory
        total = None if memory is None else total_of(memory, part)
        for name, number, entry in (("TotalCPUCount", part.processors, part.sources.get("processors")),
                                    ("TotalResourceCount", part.nodes, part.sources.get("nodes")),
                                    ("TotalPhysicalMemory", total, None if memory is None else memory.entry)):
            if number:
                self.add(etree.SubElement(outer, f"{{{JSDL}}}{name}"), "Exact", str(number), entry)
        if memory is not None and total is None:
            self.asking.dropped(memory.entry, "nothing says what it is multiplied with")
        for e in part.beside:
            self.asking.dropped(e, "another amount is written")
        if part.gpus is not None:
            self.asking.dropped(part.gpus.entry, subject="Resource GPU")

    def beside_gpus(self, outer: Any) -> None:
        """Say the processors that each GPU has beside it, or those of tasks that GPUs count, as those of the whole job,
        which alone has a place."""
        entry = self.asking.extension("CpusPerGPU") if self.asking.says("CpusPerGPU") else None
        totals = request_of(self.asking.job, bare=True).totals
        processors = totals.processors
        if entry is None and processors is not None and self.part is None and totals.layout.tasks and not any(
                map(self.asking.said, ("TaskCount", "TaskDistribution", "Processors", "NodeCount"))) and (
                not self.asking.listed):
            self.add(etree.SubElement(outer, f"{{{JSDL}}}TotalCPUCount"), "Exact", str(processors.value))
        if entry is None:
            return
        if processors is None or not processors.known or outer.find(f"{{{JSDL}}}TotalCPUCount") is not None or (
                self.part is not None):
            self.asking.dropped(entry)
            return
        self.asking.note(APPROXIMATED, entry, f"{processors.value} processors in all, {entry.text} beside each GPU",
                         "info")
        self.add(etree.SubElement(outer, f"{{{JSDL}}}TotalCPUCount"), "Exact", str(processors.value), entry)

    def in_all(self, part: Any) -> None:
        """Say amounts of each task, processor or GPU, for which JSDL has no place, as those of the whole job."""
        amounts = request_of(self.asking.job, bare=True).totals.amounts
        for name, (tag, metric, in_bytes) in NUMBERS.items():
            total = amounts.get((tag, None, None))
            entry = next((e for e in self.asking.said(tag) if not e.used), None)
            if metric or not in_bytes or total is None or not total.known or entry is None or any(
                    e.used for e in self.asking.said(tag)):
                continue
            if self.asking.one(tag, NEAREST, carried=("units", "metric")) is not None:
                self.asking.note(APPROXIMATED, entry, f"{tag}: written for the whole job, {total.origin}", "info")
                self.add(etree.SubElement(part, f"{{{JSDL}}}{name}"), "Exact", str(ceil(total.value)))

    def range(self, outer: Any, alternative: list[Entry], in_bytes: bool) -> None:
        """One alternative: an exact value, one bound, or a range of two."""
        amounts = [(e, self.asking.in_bytes(e) if in_bytes else Decimal(str(e.value))) for e in alternative]
        bounds = [(e, value) for e, value in amounts if value is not None]
        into = etree.SubElement(outer, f"{{{JSDL}}}Range") if len(bounds) == 2 else outer
        for e, value in bounds:
            op = e.attributes.get("op", "EQ") if e.taken is None else "EQ"
            name = "Exact" if op == "EQ" else ("LowerBound" if op in ("GE", "GT") else "UpperBound")
            more = {"exclusiveBound": "true"} if op in ("GT", "LT") else {}
            name += "edRange" if name != "Exact" and into is outer else ""
            self.add(into, name, f"{value.normalize():f}", e, **more)

    def staging(self) -> Iterable[Any]:
        """A DataStaging for each copy, and those that were kept whole."""
        for kind, source, target, e in self.copies():
            part = etree.Element(f"{{{JSDL}}}DataStaging")
            inward = kind == "StageIn"
            self.add(part, "FileName", target if inward else source, e)
            self.add(part, "CreationFlag", "overwrite")
            self.add(etree.SubElement(part, f"{{{JSDL}}}{'Source' if inward else 'Target'}"), "URI",
                     source if inward else target, e)
            yield part
        holder = etree.Element("holder")
        self.kept(holder, "DataStaging")
        yield from list(holder)


def _alternatives(entries: list[Entry]) -> list[list[Entry]] | None:
    """The entries by alternative, each one bound or a lower and an upper one; None for another expression."""
    parts: list[list[Entry]] = []
    for e in entries:
        if e.attributes.get("preference") or e.attributes.get("op", "EQ") not in ("EQ", "GE", "GT", "LE", "LT"):
            return None
        conj = e.attributes.get("conj", "And") if parts else "Or"
        if conj == "Or":
            parts.append([e])
        elif conj == "And":
            parts[-1].append(e)
        else:
            return None
    for part in parts:
        ops = [e.attributes.get("op", "EQ") for e in part]
        if len(part) > 2 or (len(part) == 2 and not (ops[0] in ("GE", "GT") and ops[1] in ("LE", "LT"))):
            return None
    counts = [0] * len(entries)
    if len(parts) > 1:
        at = 0
        counts[0] += 1
        for part in parts:
            if len(part) == 2:
                counts[at] += 1
                counts[at + 1] -= 1
            at += len(part)
        counts[-1] -= 1
    stated = [int(e.attributes.get("group", "0") or 0) for e in entries]
    return parts if stated == counts else None
