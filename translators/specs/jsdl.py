"""Format ``jsdl``: the Job Submission Description Language 1.0 of the OGF.

With its POSIX application, and the HPC profile and SPMD application. Sources: GFD.136 (JSDL 1.0, first edition GFD.56),
GFD.111 (HPC Profile Application Extension), GFD.115 (SPMD Application Extension). Times are seconds, sizes bytes; a
number is exact, or lies in ranges, several of which are alternatives.
"""

from __future__ import annotations

from lxml import etree

from sssjob.document.model import Document
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import Fit, Sample, by_root
from sssjob.translators.scripts.base import Reading, asking_for, leftovers
from sssjob.translators.scripts.rows import DirectivePlaces
from sssjob.translators.scripts.writing import with_scripts
from sssjob.translators.specs._jsdl_from import JobReader
from sssjob.translators.specs._jsdl_names import FORMAT, JSDL
from sssjob.translators.specs._jsdl_to import Writer
from sssjob.xml.xmlio import parse_tree

__all__ = ["TRANSLATOR", "files", "read", "write"]


def read(data: bytes, context: ReadContext) -> Document:
    """The document of a JobDefinition. Raises RejectedError when it is none."""
    findings = context.findings
    root = parse_tree(data, findings=findings, repairs=False, limits=context.limits)
    if root.tag != f"{{{JSDL}}}JobDefinition":
        findings.add("SSS109", str(root.tag), "is no JobDefinition of JSDL 1.0", line=root.sourceline or 0)
        findings.raise_if_rejected()
    reading = Reading(FORMAT, context)
    job = JobReader(reading).definition(root)
    findings.raise_if_rejected()
    return Document(job, {}, context.path, context.profile, findings, places=DirectivePlaces(reading.origins))


def _written(document: Document, context: WriteContext) -> tuple[str, dict[str, str]]:
    asked = asking_for(FORMAT, document, context)
    writer = Writer(asked[0])
    root = writer.definition()
    asked[0].extension("Dialect")
    leftovers(asked)
    etree.indent(root)
    text = etree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n', writer.scripts


def _recognise(sample: Sample) -> Fit | None:
    return by_root(sample, frozenset(("JobDefinition",)), frozenset((JSDL,)))


write, files = with_scripts(_written, ".jsdl")

TRANSLATOR = Translator("jsdl", "JSDL 1.0 JobDefinition (XML)", "spec", read, write, (".jsdl",), _recognise, files)
