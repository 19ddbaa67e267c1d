"""Format ``jsdl``: the Job Submission Description Language 1.0 of the OGF.

With its POSIX application, and the HPC profile and SPMD application. Sources: GFD.136 (JSDL 1.0, first edition GFD.56),
GFD.111 (HPC Profile Application Extension), GFD.115 (SPMD Application Extension). Times are seconds, sizes bytes; a
number is exact, or lies in ranges, several of which are alternatives.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from math import ceil, floor
from typing import Any

from lxml import etree

from sssjob.document.model import Document, Job
from sssjob.document.units import from_bytes
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import Fit, Sample, by_root
from sssjob.translators.scripts.base import asking_for
from sssjob.translators.scripts.grammars import literal_name
from sssjob.translators.scripts.writing import with_scripts
from sssjob.translators.specs._elements import ElementReader, document_of, local, text_of, whole_text
from sssjob.translators.specs._jsdl_names import (
    APPLICATIONS,
    FILES,
    FORMAT,
    HPCPA,
    JSDL,
    KEPT,
    LIMITS,
    NUMBERS,
    OPS,
    POSIX,
    SPMD,
    TEXTS,
)
from sssjob.translators.specs._jsdl_to import Writer
from sssjob.xml.xmlio import parse_tree

__all__ = ["TRANSLATOR", "files", "read", "write"]


def read(data: bytes, context: ReadContext) -> Document:
    """The document of a JobDefinition. Raises RejectedError when it is none."""
    root = parse_tree(data, findings=context.findings, repairs=False, limits=context.limits)
    return document_of(root, f"{{{JSDL}}}JobDefinition", "JobDefinition of JSDL 1.0", FORMAT, context,
                       lambda reading: JobReader(reading).definition(root))


def _written(document: Document, context: WriteContext) -> tuple[str, dict[str, str]]:
    asked = asking_for(FORMAT, document, context)
    writer = Writer(asked[0])
    return whole_text(asked, writer.definition()), writer.scripts


def _recognise(sample: Sample) -> Fit | None:
    return by_root(sample, frozenset(("JobDefinition",)), frozenset((JSDL,)))


write, files = with_scripts(_written, ".jsdl")

TRANSLATOR = Translator("jsdl", "JSDL 1.0 JobDefinition (XML)", "spec", read, write, (".jsdl",), _recognise, files,
                        one_job=True)


class JobReader(ElementReader):
    """One JobDefinition on its way into a job."""

    kind = "jsdl"

    # -- elements
    def definition(self, root: Any) -> Job:
        """The job of a JobDefinition; its properties before its containers."""
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
            handler = parts.get(local(node)) if etree.QName(node).namespace == JSDL else None
            if handler is None:
                self.unknown(node)
            else:
                handler(node)
        self.sorted_items()
        return self.reading.job

    def identification(self, part: Any) -> None:
        """JobIdentification: name, description, the first project; the rest is kept."""
        places = {"JobName": "Name", "Description": "Extension[name=Comment,type=Scheduler]"}
        projects = 0
        for node in part:
            name = local(node)
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
        """Application: its name, and the application of one of the three profiles."""
        for node in part:
            name = local(node)
            if node.tag in APPLICATIONS:
                self.run(node, APPLICATIONS[node.tag])
            elif etree.QName(node).namespace != JSDL:
                self.unknown(node)
            elif name == "ApplicationName":
                self.put("Application", node)
            elif name in ("ApplicationVersion", "Description"):
                self.reading.put("Extension", text_of(node), self.option(node), type="jsdl",
                                 name="ApplicationDescription" if name == "Description" else name)
            else:
                self.unknown(node)

    def run(self, part: Any, space: str) -> None:
        """POSIXApplication, HPCProfileApplication or SPMDApplication; space: its namespace."""
        if space != POSIX:
            self.reading.put("Extension", local(part), self.option(part), type="jsdl", name="Application")
        self.attributes(part)
        arguments: list[str] = []
        for node in part:
            name, of = local(node), etree.QName(node).namespace
            if of == SPMD and space == SPMD:
                self.parallel(node)
            elif of not in (POSIX, HPCPA):
                self.unknown(node)
            elif name in FILES and text_of(node):
                self.attributes(node)
                self.reading.put(TEXTS[name], literal_name(text_of(node)), self.option(node))
            elif name in TEXTS:
                self.attributes(node)
                self.put(TEXTS[name], node)
            elif name == "Argument":
                self.attributes(node)
                arguments.append(node.text or "")
            elif name == "Environment":
                self.attributes(node, "name")
                self.reading.put("Environment/Variable", node.text or "", self.option(node), name=node.get("name", ""))
            elif name == "WallTimeLimit":
                self.count("Requested/Duration", node)
            elif name in LIMITS:
                self.put(f"ResourceLimit[name={LIMITS[name]}]", node)
            else:
                self.unknown(node)
        if arguments:
            self.reading.put("Arguments", shlex.join(arguments), self.option(part))

    def parallel(self, node: Any) -> None:
        """The numbers of an SPMDApplication."""
        name = local(node)
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

    def resources(self, part: Any) -> None:
        """Resources: ranges of numbers, hosts, system, architecture; the rest is kept."""
        for node in part:
            name = local(node)
            if etree.QName(node).namespace != JSDL:
                self.unknown(node)
            elif name in NUMBERS:
                self.number(node, *NUMBERS[name])
            elif name == "CandidateHosts":
                hosts = [text_of(h) for h in node if local(h) == "HostName" and text_of(h)]
                if hosts:
                    more = {"aggregation": "List"} if len(hosts) > 1 else {}
                    self.reading.put("Requested/Node", ",".join(hosts), self.option(node), **more)
            elif name == "ExclusiveExecution":
                exclusive = "true" if text_of(node) in ("true", "1") else "false"
                self.reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", exclusive, self.option(node))
            elif name == "OperatingSystem":
                self.system(node)
            elif name == "CPUArchitecture":
                for inner in node:
                    if local(inner) == "CPUArchitectureName":
                        self.put("Requested/Architecture", inner)
                    else:
                        self.unknown(inner)
            elif name in KEPT:
                self.keep(node)
            else:
                self.unknown(node)

    def system(self, part: Any) -> None:
        """OperatingSystem: its name; its version is kept."""
        for node in part:
            if local(node) == "OperatingSystemType":
                for inner in node:
                    if local(inner) == "OperatingSystemName":
                        self.put("Requested/OperatingSystem", inner)
                    else:
                        self.unknown(inner)
            elif local(node) == "OperatingSystemVersion":
                self.keep(node)
            else:
                self.unknown(node)

    # -- ranges
    def number(self, node: Any, tag: str, metric: str, in_bytes: bool) -> None:
        """The ranges of a number: (op, value) of all that is demanded together, in alternatives."""
        alternatives: list[list[tuple[str, Decimal]]] = []
        for inner in node:
            bounds = self.bounds(inner)
            if bounds is None:
                return
            alternatives.append(bounds)
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
        """One requested amount; bytes get the largest unit that is exact. Of what is counted a bound between two whole
        numbers becomes the one that means the same, and an exact number of them has to be whole."""
        where = f"Requested/{tag}"
        if in_bytes:
            number, units = from_bytes(value)
            self.reading.put(where, number, self.option(node), units=units, **more)
        elif tag == "Network":
            self.reading.put(where, value, self.option(node), **more)
        else:
            op = more.get("op", "EQ")
            if op == "EQ" and value != int(value):
                self.reading.refuse(f"{local(node)}: {value} is no whole number", node.sourceline or 0, 0, local(node))
            self.reading.put(where, ceil(value) if op in ("GE", "LT") else floor(value), self.option(node), **more)

    def bounds(self, node: Any) -> list[tuple[str, Decimal]] | None:
        """(op, value) of an exact value or a bound, or both of a range; None, and refused, for anything else."""
        name = local(node)
        if name == "Exact":
            self.attributes(node, "epsilon")
            value, tolerance = _number(text_of(node)), _number(node.get("epsilon") or "0")
            if value is None or tolerance is None:
                pairs = None
            elif tolerance:
                pairs = [("GE", max(Decimal(0), value - tolerance)), ("LE", value + tolerance)]
            else:
                pairs = [("EQ", value)]
        elif name == "Range":
            inner = [self.bounds(n) for n in node if local(n) in ("LowerBound", "UpperBound")]
            pairs = None if len(inner) != 2 or None in inner else [pair for part in inner if part for pair in part]
        elif name in OPS:
            value = _number(text_of(node))
            exclusive = node.get("exclusiveBound") in ("true", "1")
            pairs = None if value is None else [(OPS[name][exclusive], value)]
        else:
            pairs = None
        if pairs is None:
            self.reading.refuse(f"{name}: {text_of(node)[:80]!r} is no range of numbers", node.sourceline or 0, 0, name)
        return pairs

    def staging(self, part: Any) -> None:
        """DataStaging: a copy from or to a URI that overwrites; any other is kept whole."""
        parts = {local(n): n for n in part}
        simple = {"FileName", "Source", "Target", "CreationFlag"}
        uris = {name: text_of(next((u for u in parts[name] if local(u) == "URI"), parts[name]))
                for name in ("Source", "Target") if name in parts}
        flag = text_of(parts["CreationFlag"]) if "CreationFlag" in parts else "overwrite"
        if "FileName" not in parts or not uris or set(parts) - simple or flag != "overwrite" or not all(uris.values()):
            self.keep(part)
            return
        file = text_of(parts["FileName"])
        if "Source" in uris:
            self.copy(part, "StageIn", uris["Source"], file)
        if "Target" in uris:
            self.copy(part, "StageOut", file, uris["Target"])


def _number(text: str) -> Decimal | None:
    try:
        value = Decimal(text) if len(text) <= 64 else None
    except InvalidOperation:
        return None
    return value if value is not None and value.is_finite() and 0 <= value < Decimal("1e24") else None
