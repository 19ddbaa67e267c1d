"""``sssjob show``: nothing of a document is hidden, and what holds is shown at every level."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings

from sssjob.cli import show
from sssjob.cli.show import moment, records
from sssjob.document.element import Container, Property, Raw
from sssjob.document.model import Document
from sssjob.document.vocabulary import ELEMENTS
from sssjob.findings import escape
from tests.cli.conftest import Command
from tests.strategies import documents, examples

_TIMES = frozenset(e.name for e in ELEMENTS if e.type == "DateTime")


def test_show(sssjob: Command, place: Path) -> None:
    out = sssjob("show", "job.xml").out
    assert "Job demo.1 · hello" in out and "≥ 64 MB" in out and "t0p" not in out
    assert "t0p" in sssjob("show", "--secrets", "job.xml").out
    assert "JobDefaults" in sssjob("show", "--origins", "group.xml").out
    assert "a   " in sssjob("show", "--brief", "group.xml").out
    (record,) = [json.loads(line) for line in sssjob("show", "--json", "job.xml").out.splitlines()]
    assert record["requested"] == {"Processors": ["≥ 1"], "Memory": ["≥ 64 MB"]}
    assert record["environment"] == {"API_TOKEN": ["***"]}


@pytest.mark.parametrize(("inner", "cells"), [
    ('<Requested><Nodes>3</Nodes><Processors metric="PerNode">4</Processors>'
     '<Memory metric="PerNode" units="GB">8</Memory><Duration>7200</Duration></Requested>'
     '<Delivered><Nodes>3</Nodes><Processors metric="PerNode">4</Processors>'
     '<Memory metric="PerNode" units="GB">6</Memory><Duration>60</Duration></Delivered>',
     ["7200 → 60", "12 → 12", "24 GB → 18 GB"]),
    ("<TaskGroup><TaskCount>2</TaskCount><Requested><Duration>60</Duration></Requested></TaskGroup>"
     "<TaskGroup><TaskCount>1</TaskCount></TaskGroup><StartTime>1767607200</StartTime><EndTime>1767607230</EndTime>",
     ["60 → 30", "3", "·"]),
    *((f'{state}<Duration>600</Duration><NodeCount>2</NodeCount><Requested><Processors preference="1">4</Processors>'
       '<Processors preference="9">32</Processors><Memory metric="PerNode" units="GB">8</Memory></Requested>',
       ["600", "32", "16 GB"]) for state in ("", "<State>Hold</State>")),
    ('<Requested><Processors op="GE">4</Processors></Requested><Delivered><Processors>4</Processors></Delivered>',
     ["·", "≥ 4 → 4", "·"])])
def test_brief_amounts_are_those_of_the_whole_job(sssjob: Command, place: Path, inner: str, cells: list[str]) -> None:
    """As ``explain`` and a charge have them: those of each node are multiplied out, those of task groups added up; what
    stands bare in a job that waits is asked for."""
    Path("one.xml").write_text(f"<Job><Id>1</Id>{inner}</Job>")
    row = sssjob("show", "-q", "--brief", "one.xml").out.splitlines()[2]
    assert [cell.strip() for cell in row.split("  ") if cell.strip()] == [
        "1", "Hold" if "Hold" in inner else "·", "·", *cells]


def test_show_everything_that_stands_there(sssjob: Command, place: Path) -> None:
    assert sssjob("show", "offer.xml").out == (
        "Delivered\nProperty    Value\n─────────────────\nProcessors  2\nMemory      1 GB\n\n")
    assert sssjob("show", "group.xml").out.startswith(
        "Job group g\n\nJobDefaults\nProperty  Value\n───────────────\nProject   red\n\nJob a\n")


def test_codes_expressions_references_and_tasks(sssjob: Command, place: Path) -> None:
    """The code of a dependency, brackets and Or, and what refers to something else change what a document means."""
    Path("a.xml").write_text("""<JobGroup><Id>g</Id><Job>ref-77</Job><Job awarenessPolicy="Warn"><Id>j1</Id></Job><Job>
        <Id>j2</Id><Dependency condition="OnExit" code="3">j1</Dependency><Requested><Memory group="1">4</Memory>
        <Memory conj="Or" group="-1" dynamic="true">8</Memory></Requested><Environment export="true">
        <Variable name="A">1</Variable></Environment><TaskGroup>tg9</TaskGroup><TaskGroup><TaskCount>2</TaskCount>
        <TaskDefaults><Memory context="Used" duration="5">1</Memory></TaskDefaults>
        <Task><Id>0</Id><Node>n1</Node></Task><Task><Id>1</Id></Task></TaskGroup>
        <ErrorFile redirectList="Merge"/></Job></JobGroup>""")
    assert sssjob("show", "-q", "a.xml").out == """\
Job group g

Job → ref-77

Job j1
Property          Value
───────────────────────
@awarenessPolicy  Warn

Job j2
Property    Value                Requested
────────────────────────────────────────────────────────────────────
Dependency  j1 (OnExit, code 3)
ErrorFile   (Merge)
Memory                           4 (group 1)
                                 8 (conj Or, group -1, dynamic true)
$@export    true
$A          1
Requested, as it is evaluated:
  one of
    Memory 4 MB
    Memory 8 MB [dynamic true]

Task group 1 → tg9

Task group 2, 2 explicit tasks
Property   Value
────────────────
TaskCount  2

Task group 2, TaskDefaults
Property  Value
──────────────────────────────
Memory    1 (Used, duration 5)

Task  Property  Value
─────────────────────
1     Id        0
1     Node      n1
2     Id        1

"""


def test_origins_at_every_level(sssjob: Command, place: Path) -> None:
    """Defaults of implicit tasks too; task groups and tasks that nothing is said of are not shown."""
    Path("a.xml").write_text(
        "<JobGroup><Id>g</Id><JobDefaults><TaskGroupDefaults><TaskDefaults><Memory>7</Memory></TaskDefaults>"
        "</TaskGroupDefaults></JobDefaults><Job><Id>a</Id></Job><Job><Id>b</Id><TaskGroup><TaskCount>2</TaskCount>"
        "</TaskGroup></Job></JobGroup>")
    shown = [json.loads(line) for line in sssjob("show", "-q", "--json", "--origins", "a.xml").out.splitlines()]
    rows = [[tuple(row.values()) for row in record["effective"]] for record in shown if "effective" in record]
    memory = ("bare", "Memory", "7", "JobDefaults/TaskGroupDefaults/TaskDefaults")
    assert rows == [
        [("Job", "bare", "Id", "a", "Job"), ("task group 1, each task", *memory)],
        [("Job", "bare", "Id", "b", "Job"), ("task group 1", "bare", "TaskCount", "2", "TaskGroup"),
         ("task group 1, each task", *memory)]]
    assert "task group 1, each task  bare" in sssjob("show", "-q", "--origins", "a.xml").out


def test_files_and_what_is_around_a_document(sssjob: Command, place: Path) -> None:
    Path("a.xml").write_text('<Request action="Submit"><Object>Job</Object><Job><Id>1</Id><Executable>#s</Executable>'
                             '</Job><File id="s">date</File></Request>')
    out = sssjob("show", "-q", "a.xml").out
    assert "Request/@action  Submit" in out and "Request/Object   Job" in out
    assert out.endswith("File s, 4 characters\n\n")


def test_long_values_are_not_cut_off(sssjob: Command, place: Path) -> None:
    Path("a.xml").write_text(f"<Job><Id>1</Id><Arguments>{'x' * 999}</Arguments></Job>")
    assert sssjob("show", "-q", "a.xml").out.count("x") == 999


def _values(scope: Container) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(name, every text that has to be shown with it) of all that stands in a container and below it."""
    yield from ((f"@{name}", (text,)) for name, text in scope.attributes.items())
    for item in scope.items:
        if isinstance(item, Container):
            yield from _values(item)
        elif isinstance(item, Raw):
            yield item.tag, (item.text, *item.attributes.values(), *(str(getattr(c, "text", c)) for c in item.children))
        else:
            assert isinstance(item, Property)
            said = {name: text for name, text in item.attributes.items() if name != "op"}
            name = said.pop("name") if item.tag == "Variable" else item.tag
            text = moment(item.text) if item.tag in _TIMES else item.text
            named = (attribute for attribute in said if attribute in ("conj", "group", "preference", "code"))
            yield name, (text.strip(), *said.values(), *named)


def _shown(record: Any) -> Iterator[tuple[str, str]]:
    """(name, text) of everything in a record."""
    for key, value in record.items():
        if key in ("properties", "requested", "delivered", "environment"):
            yield from ((name, text) for name, texts in value.items() for text in texts)
        elif key in ("defaults", "task_groups", "tasks"):
            for inner in value:
                yield from _shown(inner)


@given(documents())
@settings(max_examples=examples(20), deadline=None)
def test_nothing_of_a_document_is_hidden(document: Document) -> None:
    """Every property with every attribute is in a record, as often as it stands there, and all of it on the page."""
    made = list(records(document, origins=False, secrets=True, inherited=False))
    shown = [pair for record in made for pair in _shown(record)]
    expected = list(_values(document.root)) if isinstance(document.root, Container) else []
    assert Counter(name for name, _ in shown) == Counter(name for name, _ in expected)
    by_name: dict[str, list[str]] = {}
    for name, text in shown:
        by_name.setdefault(name, []).append(text)
    for name, texts in expected:
        assert any(all(text in line for text in texts) for line in by_name[name]), (name, texts)
    with mock.patch("sssjob.cli.show.width", return_value=100_000):
        page = "\n".join(line for record in made for line in show._page(record))
    for name, text in shown:
        assert escape(text.replace("\n", "↵"), 1000).rstrip() in page, (name, text)
