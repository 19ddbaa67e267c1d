"""Writes ``docs/reference/conformance.md``: every MUST, SHOULD and MAY of release 3.1.0, and of SSSRMAP, and how it is
met.

A sentence is known by its section and number: the number counts the words MUST, SHOULD and MAY of the section, as the
published text prints them; letters are sentences without such a word. The rows of Tables 1 to 7 derive from the
vocabulary. What shows that a sentence holds is not said here: tests cite it (``@spec("4.0", 2)``,
``@spec("5.1 Table 2")`` for all rows of a table), and ``citations`` collects that from their source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sssjob.derive.exchange import EXCHANGE
from sssjob.derive.reference import table
from sssjob.derive.statements import Row, Statement, numbered
from sssjob.document.vocabulary import ELEMENTS

__all__ = ["STATEMENTS", "Statement", "citations", "conformance", "rows_of_tables"]

ROOT: Final = Path(__file__).resolve().parents[2]


_ATTRIBUTE: Final = "sssjob/document/values.py::attribute_text"
_CHILDREN: Final = "sssjob/validation/__init__.py::_Checker.children"
_CONTAINERS: Final = "sssjob/document/vocabulary.py::CONTAINERS"
_COUNTED: Final = "sssjob/xml/_elements.py::ElementReader._repeated"
_EFFECTIVE: Final = "sssjob/document/inherit.py::Effective"
_ELEMENTS: Final = "sssjob/document/vocabulary.py::ELEMENTS"
_FINDINGS: Final = "sssjob/findings.py::Findings.add"
_GRAPH: Final = "sssjob/document/graph.py::Dependencies"
_GROUP: Final = "sssjob/validation/__init__.py::_Checker.group"
_MATCH: Final = "sssjob/request/verdict.py::match"
_NAMES: Final = "sssjob/request/tree.py::names_of"
_OFFER: Final = "sssjob/request/offers.py::Offer"
_PARSE: Final = "sssjob/request/tree.py::parse"
_PLAN: Final = "sssjob/run/plan.py::make_plan"
_READER: Final = "sssjob/xml/reader.py::read_document"
_STREAMS: Final = "sssjob/validation/_looks.py::Looks.merged"
_TO_SPEC: Final = "translators/specs/_psij_to_spec.py::to_spec"
_UNITS: Final = "sssjob/document/units.py::byte_factor"


def _consumable(name: str, text: str, code: str) -> tuple[Row, Row]:
    return ("MAY", f"a consumable resource has {name}: {text}", code), ("MAY", f"@{name} is supported", code)


def _redirected(stream: str, values: str) -> tuple[Row, ...]:
    return (
        ("may", f"without {stream}, or with an empty one, the queuing system chooses", _PLAN),
        ("MAY", f"{stream} has redirectList: {values}", _ATTRIBUTE),
        ("SHOULD", f"@redirectList of {stream} is supported", _TO_SPEC),
    )


def _container(name: str, child: str, twice: str) -> tuple[Row, ...]:
    return (
        ("MUST", f"{name} has one property or more", _READER),
        ("MAY", f"{child} elements stand in it", _CONTAINERS),
        ("MAY", f"{twice} stands in it at most once", _CHILDREN),
    )


_TEXT: Final[dict[str, tuple[Row, ...]]] = {
    "1.3": (
        ("may", "a receiver keeps only the parts that it needs", "sssjob/xml/streaming.py::stream_jobs"),
        ("may", "the three examples of the text are job objects", _READER),
        ("-", "Charge has units, a currency, in the elaborate example", _ELEMENTS),
    ),
    "2.2": (
        ("must", "String, Integer, Float, Boolean, DateTime and Duration have the forms that are given",
         "sssjob/document/values.py::typed"),
        ("MUST", "a property with appearance MUST stands in its parent", _GROUP),
        ("SHOULD", "a property with appearance SHOULD is recommended", "sssjob/validation/__init__.py"),
        ("MAY", "a property with appearance MAY is optional", "sssjob/validation/__init__.py"),
        ("MUST", "a property with compliance MUST is supported", _ELEMENTS),
        ("SHOULD", "a property with compliance SHOULD is supported", _ELEMENTS),
        ("MAY", "a property with compliance MAY is supported", _ELEMENTS),
        ("must", "only what is marked R stands in Requested, only what is marked D in Delivered", _READER),
    ),
    "2.3": (
        ("must", "elements stand as often as their cardinality says", "sssjob/derive/xsd.py::xsd11"),
    ),
    "3.0": (
        ("must", "the jobs of a group form a directed acyclic graph", "sssjob/document/graph.py::Dependencies.cycle"),
        ("must", "job defaults hold for every job of the group that does not state the property", _EFFECTIVE),
        ("must", "a job without a task group has one implicit task group",
         "sssjob/document/inherit.py::Effective.task_group"),
        ("must", "a task group without a task has one implicit task", "sssjob/document/inherit.py::TaskGroupView.task"),
        ("must", "task group defaults and task defaults hold likewise", _EFFECTIVE),
        ("may", "3 nodes and 4 processors are 4 tasks", _TO_SPEC),
    ),
    "4.0": (
        ("MAY", "JobGroup is supported", _CONTAINERS),
        ("MUST", "a JobGroup has one property or more", _READER),
        ("MUST", "a JobGroup contains one Job or more", _GROUP),
        ("MAY", "a JobGroup contains JobDefaults (JobsDefaults in this sentence)", _CHILDREN),
    ),
    "4.1 Job": (("MUST", "a JobGroup contains one Job or more", _GROUP),),
    "4.1 JobDefaults": (("MAY", "a JobGroup contains JobDefaults at most once", _CHILDREN),),
    "4.2": (("may", "text alone in JobGroup refers to a group by its Id", _READER),),
    "5.0": (
        ("MUST", "Job is supported", _CONTAINERS),
        ("MAY", "JobDefaults is supported where JobGroup is", _CONTAINERS),
        *_container("a Job", "TaskGroup", "TaskGroupDefaults"),
        ("must", "JobDefaults stands only in a JobGroup", _READER),
        ("must", "what a Job states overrides its sibling JobDefaults", _EFFECTIVE),
    ),
    "5.1 Table 2": (
        ("may", "Hold stands more than once", _ELEMENTS),
        ("may", "Executable is a path, a URL, or #id of a File beside the job",
         "sssjob/validation/_looks.py::Looks.executable"),
    ),
    "5.1 Feature Element": (
        ("SHOULD", "Feature is supported", _NAMES),
        ("MAY", "Feature stands at most once in a scope", _COUNTED),
        ("MAY", "Feature has aggregation: List or Pattern", _NAMES),
        ("MAY", "@aggregation of Feature is supported", _NAMES),
        ("MAY", "with List, delimiter says what parts the features; by default a comma", _NAMES),
        ("MAY", "Feature stands in Requested and Delivered", _OFFER),
    ),
    "5.1 OutputFile Element": _redirected("OutputFile", "Append, Close, Flush, Keep, Merge"),
    "5.1 ErrorFile Element": (
        *_redirected("ErrorFile", "Append, Close, Flush, Keep, Merge"),
        ("may", "the effect of redirectList depends on the order of OutputFile and ErrorFile", _STREAMS),
    ),
    "5.1 InputFile Element": _redirected("InputFile", "Close"),
    "5.1 NotificationList Element": (
        ("MAY", "NotificationList has uri, by default a mail address", _ELEMENTS),
        ("MAY", "@uri of NotificationList is supported", _ELEMENTS),
        ("may", "NotificationList is a comma list of JobStart, JobEnd, All, None",
         "sssjob/validation/_looks.py::Looks.notification"),
    ),
    "5.1 ResourceLimit Element": (
        ("MUST", "ResourceLimit has name", _ELEMENTS),
        ("MUST", "@name of ResourceLimit is supported", "sssjob/run/specs.py::Specs._limits"),
        ("MAY", "ResourceLimit has type, Hard or Soft; without it both are set",
         "sssjob/run/specs.py::Specs._limits"),
    ),
    "5.1 Environment Element": (
        ("MAY", "Environment has export: the submitter's variables go along",
         "sssjob/document/inherit.py::View.export"),
        ("SHOULD", "Environment is supported", "sssjob/document/inherit.py::View.environment"),
        ("MAY", "Environment stands at most once in a scope", _CHILDREN),
        ("MAY", "Environment contains Variables", "sssjob/document/model.py::Environment.variables"),
    ),
    "5.1 Variable Element": (
        ("MUST", "Variable has name", _ELEMENTS),
        ("MUST", "@name of Variable is supported", "sssjob/document/model.py::Environment.variables"),
    ),
    "5.1 Node Element": (
        ("SHOULD", "Node is supported", _NAMES),
        ("MAY", "Node stands at most once in a scope", _COUNTED),
        ("MAY", "Node has aggregation: List, Pattern or Range", _NAMES),
        ("MAY", "@aggregation of Node is supported", _NAMES),
        ("MAY", "with List, delimiter says what parts the nodes; by default a comma", _NAMES),
        ("MAY", "Node has count, the instances of each node", _MATCH),
        ("MAY", "Node stands in Requested and Delivered", _OFFER),
    ),
    "5.1 TaskDistribution Element": (
        ("SHOULD", "TaskDistribution is supported", "sssjob/validation/_looks.py::Looks.distribution"),
        ("MAY", "TaskDistribution stands at most once in a scope", _COUNTED),
        ("MAY", "TaskDistribution has type: Rule, TasksPerNode, ProcessorsPerTask, Geometry",
         "sssjob/request/geometry.py::distribution_of"),
        ("MAY", "@type of TaskDistribution is supported", "sssjob/request/geometry.py::Geometry"),
        ("must", "components resolve contradicting Processors, NodeCount and TaskCount",
         "sssjob/validation/_looks.py::Looks.distribution"),
    ),
    "5.1 Dependency Element": (
        ("SHOULD", "Dependency is supported where job groups are", _GRAPH),
        ("SHOULD", "Dependency is supported", _GRAPH),
        ("MAY", "Dependency stands any number of times; all of them hold", _GRAPH),
        ("MAY", "Dependency has condition: OnSuccess (the default), OnFailure, OnExit", _GRAPH),
        ("MUST", "@condition of Dependency is supported", _GRAPH),
        ("MAY", "with OnExit, code is the exit code that triggers; without it any does", _GRAPH),
        ("MAY", "Dependency has designator: JobId (the default) or JobName", _GRAPH),
        ("MAY", "@designator of Dependency is supported", _GRAPH),
    ),
    "5.1 Consumable Resources": (
        *_consumable("context", "Configured, Available (the default), Used, Dedicated", _MATCH),
        *_consumable("units", "else a default unit", _UNITS),
        *_consumable("metric", "such as Total, Average, Min, Max", _MATCH),
        *_consumable("duration", "where not the job's", _ELEMENTS),
        *_consumable("consumptionRate", "the average fraction used", _ELEMENTS),
        *_consumable("dynamic", "whether the allocation may grow or shrink", _ELEMENTS),
    ),
    "5.1 Resource Element": (
        ("SHOULD", "Resource is supported", _MATCH),
        ("MAY", "Resource stands any number of times in a scope", _ELEMENTS),
        ("MAY", "Resource stands in Requested and Delivered", _OFFER),
        ("MUST", "Resource has name", _ELEMENTS),
        ("MUST", "@name of Resource is supported", _MATCH),
        ("MAY", "Resource has type", _MATCH),
        ("SHOULD", "@type of Resource is supported", _MATCH),
    ),
    "5.1 Extension Element": (
        ("MAY", "Extension is supported", _ELEMENTS),
        ("MUST", "Extension has name", _ELEMENTS),
        ("MUST", "@name of Extension is supported", _ELEMENTS),
        ("MAY", "Extension has type, its context", _ELEMENTS),
        ("SHOULD", "@type of Extension is supported", _ELEMENTS),
    ),
    "5.1 TaskGroup": (("MAY", "a Job contains TaskGroups", _CONTAINERS),),
    "5.1 TaskGroupDefaults": (
        ("MAY", "a Job contains TaskGroupDefaults (zero or more here, at most one in 5.0)", _CHILDREN),
    ),
    "5.2": (("may", "text alone in Job refers to a job by its Id", _READER),),
    "6.0": (
        ("MAY", "TaskGroup is supported", _CONTAINERS),
        ("MAY", "TaskGroupDefaults is supported", _CONTAINERS),
        *_container("a TaskGroup", "Task", "TaskDefaults"),
        ("must", "TaskGroupDefaults stands only in a Job or JobDefaults", _READER),
        ("must", "what a TaskGroup states overrides its sibling TaskGroupDefaults", _EFFECTIVE),
    ),
    "6.1 Table 6": (("must", "the Id of a TaskGroup is unique in its job", _CHILDREN),),
    "6.1 Task": (("MAY", "a TaskGroup contains any number of Tasks", _CONTAINERS),),
    "6.1 TaskDefaults": (
        ("MAY", "a TaskGroup contains TaskDefaults (zero or more here, at most one in 6.0)", _CHILDREN),
    ),
    "6.2": (("may", "text alone in TaskGroup refers to one by its Id", _READER),),
    # The bullets of 7.0 repeat those of 6.0; they are read with Task for TaskGroup (section 14, oddity 7).
    "7.0": (
        ("MAY", "Task is supported", _CONTAINERS),
        ("MAY", "TaskDefaults is supported", _CONTAINERS),
        ("MUST", "a Task has one property or more", _READER),
        ("MAY", "no element stands in a Task but properties: the sentence belongs to 6.0", _CONTAINERS),
        ("MAY", "no TaskDefaults stands in a Task: the sentence belongs to 6.0", _CONTAINERS),
        ("must", "TaskDefaults stands only in a TaskGroup or TaskGroupDefaults", _READER),
        ("must", "what a Task states overrides its sibling TaskDefaults", _EFFECTIVE),
    ),
    "7.1 Table 7": (("must", "the Id of a Task is unique in its task group", _CHILDREN),),
    "7.2": (("may", "text alone in Task refers to one by its Id", _READER),),
    "8.0": (
        ("should", "a property stands in a category only where it needs one; a bare one is requested while the job "
         "waits, delivered when it has ended", "sssjob/request/levels.py::request_of"),
    ),
    "8.1": (
        ("SHOULD", "Requested is supported", _PARSE),
        ("MAY", "a requested property has op: EQ (the default), NE, LT, GT, LE, GE, Match", _MATCH),
        ("SHOULD", "@op is supported", _MATCH),
        ("MAY", "a requested property has conj: And (the default), Or, Nand, Nor", _PARSE),
        ("MAY", "@conj is supported", _PARSE),
        ("MAY", "a requested property has group, brackets that open or close", _PARSE),
        ("MAY", "@group of a requested property is supported", _PARSE),
        ("MAY", "a requested property has preference, a weight among alternatives", _MATCH),
        ("MAY", "@preference is supported: one of the positive has to be met, of the negative none", _MATCH),
        ("MAY", "a requested property has performanceFactor, a hint", _ELEMENTS),
        ("MAY", "@performanceFactor is supported: kept, and never decides", _MATCH),
    ),
    "8.2": (
        ("SHOULD", "Delivered is supported", _OFFER),
        ("MAY", "a delivered property has group", "sssjob/document/vocabulary.py::DELIVERED"),
        ("MAY", "@group of a delivered property is supported", _READER),
        ("may", "the answers of the text meet its requests", _MATCH),
    ),
    "9.0": (
        ("MUST", "Warn accepts, and tells the names that are not understood", _FINDINGS),
        ("MAY", "awarenessPolicy is supported", "sssjob/findings.py::Policy"),
        ("MUST", "without the attribute, or where it is not looked at, what is not supported is rejected", _FINDINGS),
        ("SHOULD", "a rejection names the element or attribute", "sssjob/findings.py::Finding"),
        ("MAY", "awarenessPolicy stands on any property and container", "sssjob/document/vocabulary.py::AWARENESS"),
        ("must", "Reject refuses what is not supported, element or attribute, name or value", _FINDINGS),
        ("may", "what is not critical is ignored", "sssjob/run/specs.py::Specs._target"),
        ("may", "Ignore accepts in silence", _FINDINGS),
        ("must", "absent, the policy is Reject", _READER),
        ("must", "an element overrides the policy of what contains it", _READER),
    ),
    "A": (("may", "units of bytes are powers of 2 to the tenth, from B to DB", _UNITS),),
}


STATEMENTS: Final = tuple(s for section, rows in _TEXT.items() for s in numbered(section, rows))


def rows_of_tables() -> tuple[Statement, ...]:
    """The rows of Tables 1 to 7 and what the text uses beside them; number: the name of the property."""
    return tuple(Statement(e.section, e.name, e.compliance, f"{e.name} of {e.table} is supported", _ELEMENTS)
                 for e in ELEMENTS if "Table" in e.section or e.compliance == "-")


# --- citations ----------------------------------------------------------------------------------------------------

Cited = dict[tuple[str, str], list[str]]


def citations(folder: Path = ROOT / "tests") -> Cited:
    """(section, number) -> ``file::function`` of every test that cites it; number ``*``: the rows of a table.

    Raises ValueError for a citation that is not made of literals."""
    cited: Cited = {}
    for path in sorted(folder.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "@spec(" not in text:
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                for section, numbers in _cited(node):
                    for number in numbers or ("*",):
                        place = f"{path.relative_to(folder.parent).as_posix()}::{node.name}"
                        cited.setdefault((section, number), []).append(place)
    return cited


def _cited(node: ast.FunctionDef) -> Iterator[tuple[str, tuple[str, ...]]]:
    for call in node.decorator_list:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "spec":
            section, *numbers = map(ast.literal_eval, call.args)
            yield section, tuple(map(str, numbers))


# --- the page -----------------------------------------------------------------------------------------------------

def _tests(s: Statement, cited: Cited) -> str:
    places = cited.get((s.section, s.number)) or (cited.get((s.section, "*"), []) if not _is_sentence(s) else [])
    return "<br>".join(f"`{place.removeprefix('tests/')}`" for place in places)


def _is_sentence(s: Statement) -> bool:
    return not s.number[0].isupper()


def _rows(statements: tuple[Statement, ...], cited: Cited) -> Iterator[tuple[str, ...]]:
    for s in statements:
        yield s.section, s.number, s.level, s.text, f"`{s.code}`", _tests(s, cited)


_ABOUT: Final = """\
Sentences in our own words. A number counts the words MUST, SHOULD and MAY of a section as the published text prints
them; a letter is a sentence that demands or allows without such a word, which stands in small letters here. The last
column is collected from the tests, which cite what they show: `@spec("4.0", 2)`; places are below `tests/`. What is met
in `ELEMENTS` or `CONTAINERS` is met by its row there: reader, writer, typed access and schemas derive from the rows.

Of the protocol SSSRMAP only the table of contents is published today; its sentences are those of the schema that was
shipped with Gold, and what Gold, Maui, Slurm's former client and the C library send and take: MUST is what they fail
without, SHOULD what one of them does without.
"""


def conformance() -> str:
    """The text of ``docs/reference/conformance.md``."""
    cited = citations()
    lines = ["<!-- Generated by `python -m sssjob.derive`; do not edit. -->\n",
             "# What is implemented of release 3.1.0\n", _ABOUT]
    head = ("section", "no.", "level", "statement", "met in", "shown by")
    for title, statements in (("Sentences of the text", STATEMENTS), ("Rows of the tables", rows_of_tables()),
                              ("Sentences of SSSRMAP", EXCHANGE)):
        lines.append(f"## {title}\n")
        lines += (line.replace("&lt;br>", "<br>") for line in table(head, _rows(statements, cited)))
        lines.append("")
    return "\n".join(lines)
