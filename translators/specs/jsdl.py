"""Format ``jsdl``: the Job Submission Description Language 1.0 of the OGF.

With its POSIX application, and the HPC profile and SPMD application. Sources: GFD.136 (JSDL 1.0, first edition GFD.56),
GFD.111 (HPC Profile Application Extension), GFD.115 (SPMD Application Extension). Times are seconds, sizes bytes; a
number is exact, or lies in ranges, several of which are alternatives.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from lxml import etree

from sssjob.element import Container, Property
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.model import Document, Environment, Job
from sssjob.translators.asked import AMOUNTS, GROUP, GROUPS, NEAREST, TASK
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import Fit, Sample, by_root
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    DROPPED,
    SITE,
    Asking,
    Dialect,
    Entry,
    Reading,
    Scan,
    asking_for,
    leftovers,
    script_of,
)
from sssjob.translators.scripts.common import file_name, named_variables
from sssjob.translators.scripts.raw import Option, shell_words
from sssjob.units import from_bytes, to_bytes
from sssjob.xmlio import parse_tree

__all__ = ["TRANSLATOR", "files", "read", "write"]

JSDL: Final = "http://schemas.ggf.org/jsdl/2005/11/jsdl"
POSIX: Final = "http://schemas.ggf.org/jsdl/2005/11/jsdl-posix"
HPCPA: Final = "http://schemas.ggf.org/jsdl/2006/07/jsdl-hpcpa"
SPMD: Final = "http://schemas.ogf.org/jsdl/2007/02/jsdl-spmd"
_DEFAULT: Final[Any] = {None: JSDL}
_APPLICATIONS: Final = {f"{{{POSIX}}}POSIXApplication": POSIX, f"{{{HPCPA}}}HPCProfileApplication": HPCPA,
                        f"{{{SPMD}}}SPMDApplication": SPMD}
_SAFE: Final = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

#: Element of an application -> property.
_TEXTS: Final = {"Executable": "Executable", "Input": "InputFile", "Output": "OutputFile", "Error": "ErrorFile",
                 "WorkingDirectory": "InitialWorkingDirectory", "UserName": "User", "GroupName": "Group"}
_FILES: Final = ("Input", "Output", "Error")
#: Limit of a POSIX application -> name of a ResourceLimit, and whether both count bytes.
_LIMITS: Final = {
    "CPUTimeLimit": "CPUTime", "FileSizeLimit": "FileSize", "CoreDumpLimit": "CoreFileSize",
    "DataSegmentLimit": "DataSegSize", "LockedMemoryLimit": "MaxMemLock", "MemoryLimit": "MaxMemorySize",
    "OpenDescriptorsLimit": "OpenFiles", "PipeSizeLimit": "PipeSize", "StackSizeLimit": "StackSize",
    "ProcessCountLimit": "MaxProcesses", "VirtualMemoryLimit": "MaxSwap", "ThreadCountLimit": "MaxThreads"}
#: Number among the resources -> (property, metric, whether it is in bytes), in the order of the schema.
_NUMBERS: Final = {
    "IndividualCPUCount": ("Processors", "PerNode", False),
    "IndividualNetworkBandwidth": ("Network", "PerNode", False),
    "IndividualPhysicalMemory": ("Memory", "PerNode", True), "IndividualVirtualMemory": ("Swap", "PerNode", True),
    "IndividualDiskSpace": ("Disk", "PerNode", True), "TotalCPUCount": ("Processors", "", False),
    "TotalPhysicalMemory": ("Memory", "", True), "TotalVirtualMemory": ("Swap", "", True),
    "TotalDiskSpace": ("Disk", "", True), "TotalResourceCount": ("NodeCount", "", False)}
#: Elements without a property, kept as they are.
_KEPT: Final = ("FileSystem", "IndividualCPUSpeed", "IndividualCPUTime", "TotalCPUTime", "OperatingSystemVersion")
_OPS: Final = {"LowerBoundedRange": ("GE", "GT"), "UpperBoundedRange": ("LE", "LT"), "LowerBound": ("GE", "GT"),
               "UpperBound": ("LE", "LT")}
_ORDER: Final = ("CandidateHosts", "FileSystem", "ExclusiveExecution", "OperatingSystem", "CPUArchitecture",
                 "IndividualCPUSpeed", "IndividualCPUTime", "IndividualCPUCount", "IndividualNetworkBandwidth",
                 "IndividualPhysicalMemory", "IndividualVirtualMemory", "IndividualDiskSpace", "TotalCPUTime",
                 "TotalCPUCount", "TotalPhysicalMemory", "TotalVirtualMemory", "TotalDiskSpace", "TotalResourceCount")

_FORMAT: Final = Dialect("jsdl", "JSDL", "", (), lambda reading, lines: Scan(), lambda name, value: "",
                         lambda reading, text: [], {}, (), lambda lines: [])


# -- reading
def read(data: bytes, context: ReadContext) -> Document:
    """The document of a JobDefinition. Raises RejectedError when it is none."""
    findings = context.findings
    root = parse_tree(data, findings=findings, repairs=False, limits=context.limits)
    if root.tag != f"{{{JSDL}}}JobDefinition":
        findings.add("SSS109", str(root.tag), "is no JobDefinition of JSDL 1.0", line=root.sourceline or 0)
        findings.raise_if_rejected()
    job = _Reader(Reading(_FORMAT, context)).definition(root)
    findings.raise_if_rejected()
    return Document(job, {}, context.path, context.profile, findings)


def _local(node: Any) -> str:
    return str(etree.QName(node).localname)


def _text(node: Any) -> str:
    return (node.text or "").strip()


def _plain(node: Any, made: Any) -> Any:
    """A copy whose prefixes do not depend on the document that it stands in."""
    made.attrib.update(node.attrib)
    made.text = node.text
    for inner in node:
        _plain(inner, etree.SubElement(made, inner.tag))
    return made


class _Reader:
    """One JobDefinition on its way into a job."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    # -- telling
    def unknown(self, node: Any, why: str = "is not known") -> None:
        """An element that is not carried; the policy decides."""
        self.reading.findings.add("SSS301", _local(node), f"{_local(node)}: {why}", line=node.sourceline or 0,
                                  policy=self.reading.context.policy or Policy.WARN)

    def option(self, node: Any) -> Option:
        return Option(_local(node), _text(node)[:200], node.sourceline or 0, 0, "")

    def keep(self, node: Any) -> None:
        """An element that only JSDL has, as its text or XML."""
        value = node.text or ""
        if len(node) or node.attrib:
            value = etree.tostring(_plain(node, etree.Element(node.tag, nsmap=_DEFAULT)), encoding="unicode")
        self.reading.put("Extension", value, self.option(node), type="jsdl", name=_local(node))

    def put(self, where: str, node: Any, **more: str) -> None:
        text = _text(node)
        if text:
            self.reading.put(where, text, self.option(node), **more)

    def attributes(self, node: Any, *known: str) -> None:
        for name in node.attrib:
            if name not in known:
                self.reading.findings.add("SSS302", f"{_local(node)}/@{name}", f"{_local(node)}: attribute {name} is "
                                          "not carried", policy=self.reading.context.policy or Policy.WARN,
                                          line=node.sourceline or 0)

    # -- elements
    def definition(self, root: Any) -> Job:
        self.attributes(root, "id")
        descriptions = [n for n in root if n.tag == f"{{{JSDL}}}JobDescription"]
        for node in root:
            if node not in descriptions[:1]:
                self.unknown(node)
        if not descriptions:
            self.reading.findings.add("SSS505", "JobDescription", "there is no JobDescription")
        parts = {"JobIdentification": self.identification, "Application": self.application,
                 "Resources": self.resources, "DataStaging": self.staging}
        for node in descriptions[0] if descriptions else ():
            known = parts.get(_local(node)) if etree.QName(node).namespace == JSDL else None
            if known is None:
                self.unknown(node)
            else:
                known(node)
        job = self.reading.job
        job.items.sort(key=lambda item: isinstance(item, Container))
        return job

    def identification(self, part: Any) -> None:
        places = {"JobName": "Name", "Description": "Extension[name=Comment,type=Scheduler]"}
        projects = 0
        for node in part:
            name = _local(node)
            if etree.QName(node).namespace != JSDL:
                self.unknown(node)
            elif name in places:
                self.put(places[name], node)
            elif name == "JobProject" and not projects:
                projects += 1
                self.put("Project", node)
            elif name in ("JobProject", "JobAnnotation"):
                self.keep(node)
            else:
                self.unknown(node)

    def application(self, part: Any) -> None:
        for node in part:
            name = _local(node)
            if node.tag in _APPLICATIONS:
                self.run(node, _APPLICATIONS[node.tag])
            elif etree.QName(node).namespace != JSDL:
                self.unknown(node)
            elif name == "ApplicationName":
                self.put("Application", node)
            elif name in ("ApplicationVersion", "Description"):
                self.reading.put("Extension", _text(node), self.option(node), type="jsdl",
                                 name="ApplicationDescription" if name == "Description" else name)
            else:
                self.unknown(node)

    def run(self, part: Any, space: str) -> None:
        if space != POSIX:
            self.reading.put("Extension", _local(part), self.option(part), type="jsdl", name="Application")
        self.attributes(part)
        arguments: list[str] = []
        for node in part:
            name, of = _local(node), etree.QName(node).namespace
            if of == SPMD and space == SPMD:
                self.parallel(node)
            elif of not in (POSIX, HPCPA):
                self.unknown(node)
            elif name in _FILES and _text(node):
                self.attributes(node)
                self.reading.put(_TEXTS[name], _text(node).replace("{", "{{").replace("}", "}}"), self.option(node))
            elif name in _TEXTS:
                self.attributes(node)
                self.put(_TEXTS[name], node)
            elif name == "Argument":
                self.attributes(node)
                arguments.append(node.text or "")
            elif name == "Environment":
                self.attributes(node, "name")
                self.reading.put("Environment/Variable", node.text or "", self.option(node), name=node.get("name", ""))
            elif name == "WallTimeLimit":
                self.count("Requested/Duration", node)
            elif name in _LIMITS:
                self.put(f"ResourceLimit[name={_LIMITS[name]}]", node)
            else:
                self.unknown(node)
        if arguments:
            self.reading.put("Arguments", shlex.join(arguments), self.option(part))

    def parallel(self, node: Any) -> None:
        name = _local(node)
        places = {"NumberOfProcesses": "TaskGroup/TaskCount",
                  "ProcessesPerHost": "TaskGroup/TaskDistribution[type=TasksPerNode]",
                  "ThreadsPerProcess": "TaskGroup/TaskDefaults/Requested/Processors"}
        if name in places:
            self.attributes(node)
            self.count(places[name], node)
        elif name == "SPMDVariation":
            self.keep(node)
        else:
            self.unknown(node)

    def count(self, where: str, node: Any) -> None:
        text = _text(node)
        if re.fullmatch(r"\+?\d{1,15}", text, re.ASCII):
            self.reading.put(where, int(text), self.option(node))
        elif text:
            self.reading.refuse(f"{_local(node)}: {text[:80]!r} is no whole number", node.sourceline or 0, 0,
                                _local(node))

    def resources(self, part: Any) -> None:
        for node in part:
            name = _local(node)
            if etree.QName(node).namespace != JSDL:
                self.unknown(node)
            elif name in _NUMBERS:
                self.number(node, *_NUMBERS[name])
            elif name == "CandidateHosts":
                hosts = [_text(h) for h in node if _local(h) == "HostName" and _text(h)]
                if hosts:
                    more = {"aggregation": "List"} if len(hosts) > 1 else {}
                    self.reading.put("Requested/Node", ",".join(hosts), self.option(node), **more)
            elif name == "ExclusiveExecution":
                exclusive = "true" if _text(node) in ("true", "1") else "false"
                self.reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", exclusive, self.option(node))
            elif name == "OperatingSystem":
                self.system(node)
            elif name == "CPUArchitecture":
                for inner in node:
                    if _local(inner) == "CPUArchitectureName":
                        self.put("Requested/Architecture", inner)
                    else:
                        self.unknown(inner)
            elif name in _KEPT:
                self.keep(node)
            else:
                self.unknown(node)

    def system(self, part: Any) -> None:
        for node in part:
            if _local(node) == "OperatingSystemType":
                for inner in node:
                    if _local(inner) == "OperatingSystemName":
                        self.put("Requested/OperatingSystem", inner)
                    else:
                        self.unknown(inner)
            elif _local(node) == "OperatingSystemVersion":
                self.keep(node)
            else:
                self.unknown(node)

    # -- ranges
    def number(self, node: Any, tag: str, metric: str, in_bytes: bool) -> None:
        """The ranges of a number: (op, value) of all that is demanded together, in alternatives."""
        alternatives: list[list[tuple[str, Decimal]]] = []
        for inner in node:
            made = self.bounds(inner)
            if made is None:
                return
            alternatives.append(made)
        if not alternatives:
            self.unknown(node, "has no range")
        several = len(alternatives) > 1
        for n, alternative in enumerate(alternatives):
            for m, (op, value) in enumerate(alternative):
                more = {"op": op} if op != "EQ" else {}
                opens = (several and n == 0 and m == 0) + (len(alternative) > 1 and several and m == 0)
                last = m == len(alternative) - 1
                closes = (several and n == len(alternatives) - 1 and last) + (len(alternative) > 1 and several and last)
                if n and not m:
                    more["conj"] = "Or"
                if opens - closes:
                    more["group"] = str(opens - closes)
                if metric:
                    more["metric"] = metric
                self.amount(node, tag, value, in_bytes, more)

    def amount(self, node: Any, tag: str, value: Decimal, in_bytes: bool, more: Mapping[str, str]) -> None:
        where = f"Requested/{tag}"
        if in_bytes:
            number, units = from_bytes(value)
            self.reading.put(where, number, self.option(node), units=units, **more)
        elif tag == "Network":
            self.reading.put(where, value, self.option(node), **more)
        else:
            if value != int(value):
                self.reading.findings.add(APPROXIMATED, _local(node), f"{_local(node)}: {value} is rounded up",
                                          line=node.sourceline or 0)
            self.reading.put(where, -int(-value // 1), self.option(node), **more)

    def bounds(self, node: Any) -> list[tuple[str, Decimal]] | None:
        name = _local(node)
        if name == "Exact":
            self.attributes(node, "epsilon")
            if _number(node.get("epsilon") or "0"):
                self.reading.findings.add(APPROXIMATED, "Exact/@epsilon", "the tolerance of a number is not carried",
                                          line=node.sourceline or 0)
            value = _number(_text(node))
            made = None if value is None else [("EQ", value)]
        elif name == "Range":
            inner = [self.bounds(n) for n in node if _local(n) in ("LowerBound", "UpperBound")]
            made = None if len(inner) != 2 or None in inner else [pair for part in inner if part for pair in part]
        elif name in _OPS:
            value = _number(_text(node))
            exclusive = node.get("exclusiveBound") in ("true", "1")
            made = None if value is None else [(_OPS[name][exclusive], value)]
        else:
            made = None
        if made is None:
            self.reading.refuse(f"{name}: {_text(node)[:80]!r} is no range of numbers", node.sourceline or 0, 0, name)
        return made

    def staging(self, part: Any) -> None:
        found = {_local(n): n for n in part}
        simple = {"FileName", "Source", "Target", "CreationFlag"}
        uris = {name: _text(next((u for u in found[name] if _local(u) == "URI"), found[name]))
                for name in ("Source", "Target") if name in found}
        flag = _text(found["CreationFlag"]) if "CreationFlag" in found else "overwrite"
        if "FileName" not in found or not uris or set(found) - simple or flag != "overwrite" or not all(uris.values()):
            self.keep(part)
            return
        file = _text(found["FileName"])
        for name, kind in (("Source", "StageIn"), ("Target", "StageOut")):
            if name in uris:
                pair = (uris[name], file) if name == "Source" else (file, uris[name])
                text = json.dumps({"source": pair[0], "target": pair[1]}, ensure_ascii=False)
                self.reading.put(f"Extension[name={kind},type=PSIJ]", text, self.option(part))


def _number(text: str) -> Decimal | None:
    try:
        value = Decimal(text) if len(text) <= 64 else None
    except InvalidOperation:
        return None
    return value if value is not None and value.is_finite() and 0 <= value < Decimal("1e24") else None


# -- writing
def write(document: Document, context: WriteContext) -> str:
    """The JobDefinition of the one job in a document; what it cannot say is in ``context.findings``."""
    text, scripts = _written(document, context)
    for name in scripts:
        context.findings.add(SITE, "Executable", f"the script of the job belongs into {name}, beside the description "
                             "(--out writes both)", policy=context.policy or Policy.WARN)
    return text


def files(document: Document, context: WriteContext) -> Mapping[str, str]:
    """``NAME.jsdl``, and the script ``NAME.sh`` where the job has one."""
    text, scripts = _written(document, context)
    stem = next((name.removesuffix(".sh") for name in scripts), context.name or "job")
    return {f"{stem}.jsdl": text, **scripts}


def _written(document: Document, context: WriteContext) -> tuple[str, dict[str, str]]:
    asked = asking_for(_FORMAT, document, context)
    writer = _Writer(asked[0])
    root = writer.definition()
    asked[0].extension("Dialect")
    leftovers(asked)
    etree.indent(root)
    text = etree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n', writer.scripts


class _Writer:
    """One job on its way into a JobDefinition."""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking
        self.scripts: dict[str, str] = {}
        self.spaces: Any = {None: JSDL, "jsdl-posix": POSIX}

    def definition(self) -> Any:
        parts = [self.identification(), self.application(), self.resources(), *self.staging()]
        root = etree.Element(f"{{{JSDL}}}JobDefinition", nsmap=self.spaces)
        description = etree.SubElement(root, f"{{{JSDL}}}JobDescription")
        for part in parts:
            if len(part):
                description.append(part)
        return root

    def add(self, into: Any, element: str, text: str, entry: Entry | None = None, space: str = JSDL,
            **more: str) -> None:
        """One element with text; a character that XML cannot hold is told."""
        if _SAFE.search(text) or any(map(_SAFE.search, more.values())):
            if entry is not None:
                self.asking.dropped(entry, "a character in it cannot stand in XML")
            return
        node = etree.SubElement(into, f"{{{space}}}{element}", more)
        node.text = text

    def kept(self, into: Any, name: str, space: str = JSDL) -> None:
        """What was kept of an element: its text or XML."""
        for e in self.asking.find("Extension", NEAREST, name=name, type="jsdl"):
            if not e.text.startswith("<"):
                self.add(into, name, e.text, e, space)
                continue
            try:
                node = parse_tree(e.text.encode(), findings=Findings("jsdl"), repairs=False)
            except (RejectedError, UnicodeEncodeError):
                self.asking.dropped(e, "is no XML")
                continue
            if node.tag != f"{{{space}}}{name}":
                self.asking.dropped(e, f"is no element {name}")
            else:
                into.append(node)

    def identification(self) -> Any:
        part = etree.Element(f"{{{JSDL}}}JobIdentification")
        name, comment = self.asking.one("Name"), self.asking.extension("Comment")
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
        part = etree.Element(f"{{{JSDL}}}Application")
        name = self.asking.one("Application")
        if name is not None and name.text:
            self.add(part, "ApplicationName", name.text, name)
        self.kept(part, "ApplicationVersion")
        for e in self.asking.find("Extension", NEAREST, name="ApplicationDescription", type="jsdl"):
            self.add(part, "Description", e.text, e)
        parallel = {tag: self.whole(self.asking.one(tag, levels, carried=("type",))) for tag, levels in (
            ("TaskCount", (GROUP, GROUPS)), ("TaskDistribution", AMOUNTS), ("Processors", TASK))}
        said = self.asking.extension("Application", "jsdl")
        kind = said.text if said is not None else "POSIXApplication"
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
        if len(run) or said is not None:
            part.append(run)
        return part

    def whole(self, entry: Entry | None) -> int | None:
        if entry is None:
            return None
        if entry.text.isdigit() and int(entry.text) and entry.attributes.get("type", "TasksPerNode") == "TasksPerNode":
            return int(entry.text)
        self.asking.dropped(entry, f"{entry.text} is no number that is carried")
        return None

    def run(self, run: Any, space: str) -> None:
        self.command(run, space)
        for name in _FILES:
            text, _ = file_name(self.asking, _TEXTS[name], holds=())
            if text:
                self.add(run, name, text, self.asking.one(_TEXTS[name], carried=("redirectList",)), space)
        directory = self.asking.one("InitialWorkingDirectory")
        if directory is not None and directory.text:
            self.add(run, "WorkingDirectory", directory.text, directory, space)
        environment = self.asking.job.environment
        for e in named_variables(self.asking):
            self.add(run, "Environment", e.text, e, space, name=e.attributes["name"])
        if isinstance(environment, Environment) and environment.export is not None:
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
            entry = self.asking.one(_TEXTS[name])
            if entry is not None and entry.text:
                if name == "GroupName" and space == HPCPA:
                    self.asking.dropped(entry)
                else:
                    self.add(run, name, entry.text, entry, space)

    def command(self, run: Any, space: str) -> None:
        entry, arguments = self.asking.one("Executable"), self.asking.one("Arguments")
        text = "" if entry is None else entry.text
        if text.startswith("#") and text[1:] in self.asking.document.files:
            job = self.asking.job
            said = self.asking.context.name or str(job.value("Name") or job.value("Id") or "job")
            name = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', said).strip('.')[:100] or 'job'}.sh"
            self.scripts[name] = script_of(self.asking)
            text = name
        if text:
            self.add(run, "Executable", text, entry, space)
        if arguments is not None:
            try:
                words = shell_words(arguments.text)
            except ValueError as error:
                self.asking.note(APPROXIMATED, arguments, f"taken as one argument: {error}")
                words = [arguments.text]
            for word in words:
                self.add(run, "Argument", word, arguments, space)

    def limits(self, run: Any, space: str) -> None:
        names = {limit: name for name, limit in _LIMITS.items()}
        found = {e.attributes.get("name", ""): e for e in self.asking.find("ResourceLimit")}
        for e in found.values():
            e.understood |= {"name"}
            if e.attributes.get("name") not in names or space == HPCPA or not re.fullmatch(r"\d+", e.text):
                self.asking.dropped(e)
        for limit, name in names.items():
            e_ = found.get(limit)
            if e_ is not None and space != HPCPA and re.fullmatch(r"\d+", e_.text):
                self.add(run, name, e_.text, e_, space)

    def resources(self) -> Any:
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
        for name, (tag, metric, in_bytes) in _NUMBERS.items():
            self.number(part, name, tag, metric, in_bytes)
        for name in ("FileSystem", "IndividualCPUSpeed", "IndividualCPUTime", "TotalCPUTime"):
            self.kept(part, name)
        part[:] = sorted(part, key=lambda node: _ORDER.index(_local(node)))
        return part

    def hosts(self, part: Any) -> None:
        hosts: list[str] = []
        for e in self.asking.find("Node"):
            e.understood |= {"aggregation"}
            if e.attributes.keys() & {"op", "conj", "group", "preference"} or e.attributes.get(
                    "aggregation", "List") != "List":
                self.asking.dropped(e, "only names of hosts can be said")
            else:
                hosts += [h.strip() for h in e.text.split(",")]
        if len(hosts) > 1 and self.asking.source:
            self.asking.note(APPROXIMATED, None, "Node: any of the hosts, not all of them", subject="Node")
        if hosts:
            outer = etree.SubElement(part, f"{{{JSDL}}}CandidateHosts")
            for host in hosts:
                self.add(outer, "HostName", host)

    def number(self, part: Any, name: str, tag: str, metric: str, in_bytes: bool) -> None:
        """The alternatives of a number; an expression that has no such form is taken down to its least request."""
        metrics = (metric,) if metric else ("", "Total")
        found = [e for e in self.asking.entries if e.tag == tag and e.slot in ("", "Requested") and e.level in AMOUNTS
                 and isinstance(e.item, Property) and e.attributes.get("metric", "") in metrics]
        nearest = next((level for level in AMOUNTS if any(e.level == level for e in found)), "")
        found = [e for e in found if e.level == nearest]
        if not found:
            return
        alternatives = _alternatives(found)
        if alternatives is None:
            more = {"metric": metric} if metric else {}
            one = self.asking.one(tag, AMOUNTS, carried=("units", "metric", "context"), **more)
            alternatives = [] if one is None else [[one]]
        outer = etree.Element(f"{{{JSDL}}}{name}")
        for alternative in alternatives:
            for e in alternative:
                e.used = True
                e.understood |= {"units", "metric", "op", "conj", "group"}
            self.range(outer, alternative, in_bytes)
        if len(outer):
            part.append(outer)

    def range(self, outer: Any, alternative: list[Entry], in_bytes: bool) -> None:
        into = etree.SubElement(outer, f"{{{JSDL}}}Range") if len(alternative) == 2 else outer
        for e in alternative:
            op = e.attributes.get("op", "EQ") if e.taken is None else "EQ"
            value = Decimal(str(e.value))
            if in_bytes:
                value = to_bytes(value, e.attributes.get("units"))
            name = "Exact" if op == "EQ" else ("LowerBound" if op in ("GE", "GT") else "UpperBound")
            more = {"exclusiveBound": "true"} if op in ("GT", "LT") else {}
            name += "edRange" if name != "Exact" and into is outer else ""
            self.add(into, name, f"{value.normalize():f}", e, **more)

    def staging(self) -> Iterable[Any]:
        for kind, name in (("StageIn", "Source"), ("StageOut", "Target")):
            for e in self.asking.find("Extension", NEAREST, name=kind, type="PSIJ"):
                try:
                    found = json.loads(e.text)
                    source, target = str(found["source"]), str(found["target"])
                except (ValueError, LookupError, TypeError):
                    self.asking.dropped(e, "is no file to transfer")
                    continue
                if set(found) - {"source", "target"}:
                    self.asking.dropped(e, f"{source}: the file is copied, whatever becomes of the job")
                    continue
                part = etree.Element(f"{{{JSDL}}}DataStaging")
                self.add(part, "FileName", target if kind == "StageIn" else source, e)
                self.add(part, "CreationFlag", "overwrite")
                self.add(etree.SubElement(part, f"{{{JSDL}}}{name}"), "URI", source if kind == "StageIn" else target, e)
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
    wanted = [0] * len(entries)
    if len(parts) > 1:
        at = 0
        wanted[0] += 1
        for part in parts:
            if len(part) == 2:
                wanted[at] += 1
                wanted[at + 1] -= 1
            at += len(part)
        wanted[-1] -= 1
    stated = [int(e.attributes.get("group", "0") or 0) for e in entries]
    return parts if stated == wanted else None


def _recognise(sample: Sample) -> Fit | None:
    return by_root(sample, frozenset(("JobDefinition",)), frozenset((JSDL,)))


TRANSLATOR = Translator("jsdl", "JSDL 1.0 JobDefinition (XML)", "spec", read, write, (".jsdl",), _recognise, files)
