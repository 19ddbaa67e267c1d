"""Writes ``docs/reference/conformance.md``: every MUST, SHOULD and MAY of release 3.1.0 and how it is met.

Sentences of the text are the rows of ``STATEMENTS``; support of single elements and attributes derives from the
vocabulary. Statements are in our own words; the section numbers are those of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sssjob.derive.reference import table
from sssjob.vocabulary import AWARENESS, CONSUMABLE, CONTAINERS, DELIVERED, ELEMENTS, REQUESTED

__all__ = ["STATEMENTS", "Statement", "conformance", "statements"]


@dataclass(frozen=True, slots=True)
class Statement:
    """One requirement: section, level, what it demands, the module that meets it and the test file that shows it."""

    section: str
    level: str
    text: str
    module: str
    test: str


_READER, _WRITER = "sssjob/reader.py", "sssjob/writer.py"
_SCHEMA, _VALIDATION, _INHERIT = "sssjob/derive/xsd11.py", "sssjob/validation.py", "sssjob/inherit.py"
_REQUIREMENTS, _GRAPH = "sssjob/requirements.py", "sssjob/graph.py"
_T_READER, _T_SCHEMA, _T_VALIDATION = "tests/test_reader.py", "tests/test_schema.py", "tests/test_validation.py"
_T_INHERIT, _T_REQUIREMENTS = "tests/test_inherit.py", "tests/test_requirements.py"
_T_GRAPH, _T_AWARENESS = "tests/test_graph.py", "tests/test_awareness.py"
_T_LEXICAL, _T_EXAMPLES = "tests/test_lexical.py", "tests/spec/test_worked_examples.py"

_ROWS: Final[tuple[tuple[str, str, str, str, str], ...]] = (
    ("1.3", "MAY", "a receiver keeps only the parts of a message it needs", _READER, _T_EXAMPLES),
    ("2.2", "MUST", "String, Integer, Float, Boolean, DateTime and Duration have the given lexical forms",
     "sssjob/lexical.py", _T_LEXICAL),
    ("2.2", "MUST", "a property with appearance MUST stands in its parent", _VALIDATION, _T_VALIDATION),
    ("2.2", "SHOULD", "a property with appearance SHOULD is recommended, not demanded", _VALIDATION, _T_VALIDATION),
    ("2.3", "MUST", "elements stand as often as their cardinality says", _SCHEMA, _T_SCHEMA),
    ("3.0", "MUST", "jobs of a group form a directed acyclic graph by their dependencies", _GRAPH, _T_GRAPH),
    ("3.0", "MUST", "a job without a task group has one implicit one; a group without tasks one implicit task",
     _INHERIT, _T_INHERIT),
    ("3.0", "MUST", "a default holds unless the sibling element states the property itself", _INHERIT, _T_INHERIT),
    ("4.0", "MUST", "a JobGroup has one property or more", _SCHEMA, _T_SCHEMA),
    ("4.0", "MUST", "a JobGroup contains one Job or more", _SCHEMA, _T_SCHEMA),
    ("4.0", "MAY", "a JobGroup contains JobDefaults; more than one are read as one, in order", _READER, _T_READER),
    ("4.2", "MAY", "text alone in JobGroup refers to a group by its id", _READER, _T_READER),
    ("5.0", "MUST", "JobDefaults stands only inside a JobGroup", _SCHEMA, _T_SCHEMA),
    ("5.0", "MUST", "a Job has one property or more", _SCHEMA, _T_SCHEMA),
    ("5.0", "MUST", "properties of a Job override those of the sibling JobDefaults", _INHERIT, _T_INHERIT),
    ("5.0", "MAY", "TaskGroup elements stand in a Job", _READER, _T_READER),
    ("5.0", "MAY", "TaskGroupDefaults stands in a Job at most once", _SCHEMA, _T_SCHEMA),
    ("5.1", "MAY", "Hold stands more than once", _READER, _T_READER),
    ("5.1", "MAY", "Executable is a path, a URI, or #id of a File in the same message", _READER, _T_READER),
    ("5.1", "MAY", "Feature and Node hold several names by aggregation, with a delimiter for List",
     "sssjob/nodeset.py", "tests/test_nodeset.py"),
    ("5.1", "MAY", "OutputFile, ErrorFile and InputFile are absent or empty: the queuing system chooses", _READER,
     _T_READER),
    ("5.1", "MUST", "ResourceLimit and Variable have a name attribute", _SCHEMA, _T_SCHEMA),
    ("5.1", "MAY", "Environment stands at most once in a scope and holds variables", _SCHEMA, _T_SCHEMA),
    ("5.1", "MUST", "components resolve contradicting Processors, NodeCount and TaskCount", _VALIDATION,
     _T_VALIDATION),
    ("5.1", "MAY", "Dependency stands more than once; all of them hold", _GRAPH, _T_GRAPH),
    ("5.1", "MUST", "code of a Dependency counts only with condition OnExit", _SCHEMA, _T_SCHEMA),
    ("5.1", "MUST", "Resource and Extension have a name attribute", _SCHEMA, _T_SCHEMA),
    ("5.1", "MAY", "Resource stands more than once and in Requested or Delivered", _READER, _T_READER),
    ("5.2", "MAY", "text alone in Job refers to a job by its id", _READER, _T_READER),
    ("6.0", "MUST", "TaskGroupDefaults stands only inside a Job or JobDefaults", _SCHEMA, _T_SCHEMA),
    ("6.0", "MUST", "properties of a TaskGroup override those of the sibling TaskGroupDefaults", _INHERIT, _T_INHERIT),
    ("6.0", "MUST", "a TaskGroup has one property or more", _SCHEMA, _T_SCHEMA),
    ("6.0", "MAY", "Task elements stand in a TaskGroup", _READER, _T_READER),
    ("6.1", "MUST", "the Id of a TaskGroup is unique in its job", _SCHEMA, _T_SCHEMA),
    ("6.2", "MAY", "text alone in TaskGroup refers to one by its id", _READER, _T_READER),
    ("7.0", "MUST", "TaskDefaults stands only inside a TaskGroup or TaskGroupDefaults", _SCHEMA, _T_SCHEMA),
    ("7.1", "MUST", "the Id of a Task is unique in its task group", _SCHEMA, _T_SCHEMA),
    ("7.2", "MAY", "text alone in Task refers to one by its id", _READER, _T_READER),
    ("8.0", "SHOULD", "a property stands in a category only when it needs one", _WRITER, "tests/test_writer.py"),
    ("8.1", "MUST", "with positive preferences one of the alternatives has to be met", _REQUIREMENTS, _T_REQUIREMENTS),
    ("8.1", "MAY", "with negative preferences none has to be met; weights rank them", _REQUIREMENTS, _T_REQUIREMENTS),
    ("8.1", "SHOULD", "op compares: EQ, NE, LT, GT, LE, GE, Match", _REQUIREMENTS, _T_REQUIREMENTS),
    ("8.1", "MAY", "conj and group make one boolean expression of a Requested block", _REQUIREMENTS, _T_REQUIREMENTS),
    ("8.2", "MAY", "group brackets delivered properties of one aggregation", _READER, _T_READER),
    ("9.0", "MAY", "awarenessPolicy stands on any property or container and holds for what is inside", _READER,
     _T_AWARENESS),
    ("9.0", "MUST", "without the attribute, or where it is not checked, Reject holds", _READER, _T_AWARENESS),
    ("9.0", "MUST", "Reject refuses an object with parts that are not supported", _READER, _T_AWARENESS),
    ("9.0", "SHOULD", "a refusal names the element or attribute", "sssjob/findings.py", _T_AWARENESS),
    ("9.0", "MUST", "Warn goes on and lists what is not understood", "sssjob/findings.py", _T_AWARENESS),
    ("9.0", "MAY", "Ignore goes on silently", "sssjob/findings.py", _T_AWARENESS),
    ("A", "MAY", "units of bytes are powers of 2 to the tenth", "sssjob/units.py", "tests/test_units.py"),
)
STATEMENTS: Final = tuple(Statement(*row) for row in _ROWS)


def _derived() -> Iterator[Statement]:
    """Support of containers, properties and attributes: the reader knows every row of the vocabulary."""
    for c in CONTAINERS.values():
        yield Statement(c.section, c.compliance, f"support {c.name}", _READER, _T_READER)
        for a in c.attributes:
            yield Statement(a.section, a.compliance, f"support {c.name}/@{a.name}", _READER, _T_READER)
    shared = (("any element", (AWARENESS,)), ("requested property", REQUESTED), ("delivered property", DELIVERED),
              ("consumable resource", CONSUMABLE))
    for owner, attributes in shared:
        for a in attributes:
            yield Statement(a.section, a.compliance, f"support @{a.name} of a {owner}", _READER, _T_READER)
    for e in ELEMENTS:
        yield Statement(e.section, e.compliance, f"support {e.name} of {e.table}", _READER, _T_READER)
        for a in e.attributes:
            if a not in CONSUMABLE:
                yield Statement(a.section, a.compliance, f"support {e.name}/@{a.name}", _READER, _T_READER)


def statements() -> tuple[Statement, ...]:
    """All rows: those of the text, then those that derive from the vocabulary."""
    return (*STATEMENTS, *_derived())


def conformance() -> str:
    """The text of ``docs/reference/conformance.md``."""
    lines = ["<!-- Generated by `python -m sssjob.derive`; do not edit. -->\n",
             "# What is implemented of release 3.1.0\n",
             "Level - marks what the text uses without a row of its own.\n"]
    head = ("section", "level", "statement", "met in", "shown by")
    for title, rows in (("Sentences of the text", STATEMENTS), ("Elements and attributes", tuple(_derived()))):
        lines.append(f"## {title}\n")
        lines += table(head, ((s.section, s.level, s.text, f"`{s.module}`", f"`{s.test}`") for s in rows))
        lines.append("")
    return "\n".join(lines)
