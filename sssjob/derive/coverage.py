"""Writes ``docs/reference/coverage.md``: which format holds which property of a request.

Nothing in the table is said by hand: every cell is what the format's own writer did with a job that asks for that one
thing, and what its own reader found in the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sssjob.conversion.compare import alike, facts
from sssjob.derive.reference import table
from sssjob.document.model import Document
from sssjob.errors import SSSJobError
from sssjob.findings import Findings, Policy
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.registry import BUILT_IN, get
from sssjob.xml.reader import read_document

__all__ = ["PROBES", "Cell", "cell", "coverage", "formats"]

Cell = str      # full, approximate, site, not, silent
_EXTENSION: Final = "<Extension type='Scheduler' name='{}'>{}</Extension>"
_REQUESTED: Final = "<Requested>{}</Requested>"

#: What a job asks for -> how it says so. Source: the neutral record that script dialects have in common.
PROBES: Final[dict[str, str]] = {
    "name": "<Name>job</Name>",
    "queue": "<Queue>batch</Queue>",
    "account": "<Project>phys</Project>",
    "quality of service": "<QualityOfService>high</QualityOfService>",
    "reservation": "<Reservation>r1</Reservation>",
    "machine": "<Machine>alpha</Machine>",
    "user": "<User>alice</User>",
    "group": "<Group>staff</Group>",
    "priority": "<Priority>100</Priority>",
    "nice": _EXTENSION.format("Nice", 10),
    "hold": "<Hold>User</Hold>",
    "start not before": "<EligibleTime>1798761600</EligibleTime>",
    "end not after": "<DeadlineTime>1798761600</DeadlineTime>",
    "wall clock limit": _REQUESTED.format("<Duration>3600</Duration>"),
    "least wall clock limit": _EXTENSION.format("MinDuration", 1800),
    "nodes": _REQUESTED.format("<NodeCount>2</NodeCount>"),
    "nodes from a range": _REQUESTED.format("<NodeCount op='GE'>2</NodeCount><NodeCount op='LE'>4</NodeCount>"),
    "processors": _REQUESTED.format("<Processors>8</Processors>"),
    "tasks": "<TaskGroup><TaskCount>8</TaskCount></TaskGroup>",
    "tasks a node": _REQUESTED.format("<NodeCount>2</NodeCount>")
    + "<TaskGroup><TaskDistribution type='TasksPerNode'>4</TaskDistribution></TaskGroup>",
    "processors a task": "<TaskGroup><TaskCount>4</TaskCount><TaskDefaults><Requested><Processors>2</Processors>"
    "</Requested></TaskDefaults></TaskGroup>",
    "several kinds of part": "<TaskGroup><TaskCount>1</TaskCount><Requested><Feature>big</Feature></Requested>"
    "</TaskGroup><TaskGroup><TaskCount>4</TaskCount></TaskGroup>",
    "memory of the job": _REQUESTED.format("<NodeCount>2</NodeCount><Memory units='GB'>8</Memory>"),
    "memory a node": _REQUESTED.format("<NodeCount>2</NodeCount><Memory units='GB' metric='PerNode'>4</Memory>"),
    "memory a processor": _REQUESTED.format("<Processors>4</Processors><Memory units='GB' metric='PerProcessor'>2"
                                            "</Memory>"),
    "memory a task": "<TaskGroup><TaskCount>4</TaskCount><TaskDefaults><Requested><Memory units='GB'>2</Memory>"
    "</Requested></TaskDefaults></TaskGroup>",
    "disk": _REQUESTED.format("<Disk units='GB'>10</Disk>"),
    "GPUs a node": _REQUESTED.format("<NodeCount>2</NodeCount><Resource name='GPU' metric='PerNode'>4</Resource>"),
    "GPUs of a type": _REQUESTED.format("<NodeCount>1</NodeCount><Resource name='GPU' type='a100' metric='PerNode'>1"
                                       "</Resource>"),
    "other resources": _REQUESTED.format("<NodeCount>1</NodeCount><Resource name='fpga' metric='PerNode'>1</Resource>"),
    "licences": _REQUESTED.format("<Resource name='License' type='matlab'>2</Resource>"),
    "features": _REQUESTED.format("<Feature>ib</Feature>"),
    "one of several features": _REQUESTED.format("<Feature group='1'>a</Feature>"
                                               "<Feature conj='Or' group='-1'>b</Feature>"),
    "nodes by name": _REQUESTED.format("<Node>n1</Node>"),
    "nodes left out": _REQUESTED.format("<Node op='NE'>n1</Node>"),
    "nodes alone": _EXTENSION.format("ExclusiveNodeUse", "true"),
    "limits": "<ResourceLimit name='CPUTime'>3600</ResourceLimit>",
    "array": _EXTENSION.format("Array", "1-10"),
    "array with a step": _EXTENSION.format("Array", "1-9:2"),
    "array of several ranges": _EXTENSION.format("Array", "1,3,5-9"),
    "most elements at once": _EXTENSION.format("Array", "1-10%2"),
    "after a success": "<Dependency condition='OnSuccess'>@JOBID:1@</Dependency>",
    "after a failure": "<Dependency condition='OnFailure'>@JOBID:1@</Dependency>",
    "after any end": "<Dependency condition='OnExit'>@JOBID:1@</Dependency>",
    "directory": "<InitialWorkingDirectory>/scratch/x</InitialWorkingDirectory>",
    "input file": "<InputFile>in.txt</InputFile>",
    "output file": "<OutputFile>out.txt</OutputFile>",
    "error file": "<OutputFile>out.txt</OutputFile><ErrorFile>err.txt</ErrorFile>",
    "files named by the id": "<OutputFile>out.{jobid}</OutputFile>",
    "both streams in one file": "<OutputFile>out.txt</OutputFile><ErrorFile redirectList='Merge'/>",
    "variables": "<Environment><Variable name='A'>1</Variable></Environment>",
    "all variables of the submitter": "<Environment export='true'/>",
    "no variables of the submitter": "<Environment export='false'/>",
    "mail": "<NotificationList uri='a@example.org'>JobStart,JobEnd</NotificationList>",
    "mail at a failure": _EXTENSION.format("MailEvents", "fail"),
    "shell": "<Shell>/bin/bash</Shell>",
    "restarted or not": "<Restartable>false</Restartable>",
    "signal before the end": _EXTENSION.format("Signal", "USR1@60"),
    "comment": _EXTENSION.format("Comment", "text"),
    "umask": _EXTENSION.format("Umask", "077"),
    "arguments": "<Arguments>a b</Arguments>",
}
_CLOSE: Final = ("approximated", "invented", "contradictory", "repaired")
_MARKS: Final = {"full": "full", "approximate": "approximate", "site": "site", "not": "-", "silent": "lost in silence"}


def formats() -> tuple[Translator, ...]:
    """The formats of ours that requests can be written in."""
    return tuple(t for t in map(get, BUILT_IN) if t.kind not in ("record", "offer"))


def _job(inside: str) -> Document:
    text = f"<Job><Executable>/bin/date</Executable>{inside}</Job>"
    return read_document(text.encode(), profile="3.1")


def cell(translator: Translator, inside: str) -> Cell:
    """What a format makes of a job: full, approximate, site (depends on the site), not, or silent: something is gone
    and no finding says so, which a test does not allow."""
    plain = {(f.rule, f.message) for f in _findings(translator, "")[0]}
    findings, text = _findings(translator, inside)
    new = [f for f in findings if (f.rule, f.message) not in plain]
    kinds = [f.kind for f in new if f.severity != "info"]
    if text is None or any(k in ("dropped", "unknown", "refused", "invalid", "limit") for k in kinds):
        return "not"
    if any(k in _CLOSE for k in kinds):
        return "approximate"
    if "site-dependent" in kinds:
        return "site"
    return "full" if new or _held(translator, inside, text) else "silent"


def _findings(translator: Translator, inside: str) -> tuple[Findings, str | None]:
    context = WriteContext(Findings(), policy=Policy.WARN)
    try:
        return context.findings, translator.write(_job(inside), context)
    except SSSJobError:
        return context.findings, None


def _held(translator: Translator, inside: str, text: str) -> bool:
    """Whether the format's own reader finds in a text all that the job says."""
    from sssjob.translators.scripts.base import dialect_of

    again = translator.read(text.encode(), ReadContext(policy=Policy.WARN))
    carried = {(f.name, f.value) for f in facts(again, script=False)}
    dialect = dialect_of(translator.name.removesuffix("-jobspec"))
    if dialect is not None:     # the command line is in the script, and what holds anyway need not be said
        carried |= {("Executable", "/bin/date"), ("Arguments", "a b")}
        carried |= {("Environment export", str(dialect.exports).lower())}
        carried |= {("ErrorFile", "in the output file")} if dialect.merges else set()
    return all(any(name == f.name and alike(name, f.value, value) for name, value in carried)
               for f in facts(_job(inside), script=False))


def coverage() -> str:
    """The page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    translators = formats()
    yield from (
        "# Coverage", "",
        "Generated by `python -m sssjob.derive` from what each format's own writer and reader do with a job that asks",
        "for one thing; do not edit.", "",
        "`full`: written, and read back as it was. `approximate`: something close is written, a finding says what.",
        "`site`: written, but only the site knows whether it means the same; a [profile](../profiles.md) may say.",
        "`-`: dropped, with a finding. Options that only one dialect knows are kept for it and dropped elsewhere, with",
        "a finding.", "")
    yield from table(("", *(f"`{t.name}`" for t in translators)),
                     ((label, *(_MARKS[cell(t, inside)] for t in translators)) for label, inside in PROBES.items()))
