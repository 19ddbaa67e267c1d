"""Columns of many jobs: what is read, where it comes from, and that every layout tells the same."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from sssjob.errors import RejectedError, UsageError
from sssjob.rows import ACCOUNTING, arrow, rows
from tests.test_pieces import plain

COLUMNS = ("Id", "User", "Queue", "StartTime", "Charge", "Processors", "Requested/Processors", "Delivered/Duration")


#: The same jobs as other programs write them.
LAYOUTS = {
    "no line breaks": lambda text: re.sub(r"\n\s*", "", text),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "comments": lambda text: text.replace("<Queue>", "<!-- x --><Queue>"),
    "namespace": lambda text: text.replace("<JobGroup>", '<JobGroup xmlns="urn:x">'),
    "prefix": lambda text: re.sub("<(/?)", r"<\1s:", text).replace("<s:JobGroup>", '<s:JobGroup xmlns:s="urn:x">'),
    "CDATA": lambda text: text.replace(">batch<", "><![CDATA[batch]]><"),
    "in a message": lambda text: f"<Response><Data>{text}</Data></Response>",
    "without a group": lambda text: text.replace("JobGroup>", "Data>").replace("  <Id>g</Id>\n", ""),
    "lower case": lambda text: text.replace("Job>", "job>"),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("columns", [COLUMNS, ACCOUNTING, ("UserId", "Memory")])
def test_every_layout_tells_the_same(layout: Any, columns: tuple[str, ...]) -> None:
    text = layout(plain())
    if text.startswith("<Data>"):
        text = f"<Response>{text}</Response>"
    assert list(rows(text, columns)) == list(rows(plain(), columns))
    assert len(list(rows(text, columns))) == 21


def test_where_a_value_comes_from() -> None:
    """Delivered before the bare property, a category only itself; JobDefaults fill in, even after the jobs."""
    text = """<JobGroup>
  <Job>
    <Id>a</Id>
    <Processors>1</Processors>
    <Delivered>
      <Processors>4</Processors>
    </Delivered>
    <Requested>
      <Processors op="GE">2</Processors>
    </Requested>
    <TaskGroup>
      <Requested>
        <Processors>99</Processors>
      </Requested>
      <Name>Master</Name>
    </TaskGroup>
    <Name>n</Name>
  </Job>
  <Job><Id>b</Id><Processors>1</Processors></Job>
  <JobDefaults>
    <User>ann</User>
    <Name>default</Name>
  </JobDefaults>
</JobGroup>
"""
    assert list(rows(text, ("Id", "Name", "User", "Processors", "Requested/Processors"))) == [
        ("a", "n", "ann", 4, 2), ("b", "default", "ann", 1, None)]


def test_types() -> None:
    text = "<Job>\n  <Charge>1.50</Charge>\n  <Duration>P1D</Duration>\n  <User> ann </User>\n</Job>\n"
    assert list(rows(text, ("Charge", "Duration", "User", "Id"))) == [(Decimal("1.50"), 86400, "ann", None)]


@pytest.mark.parametrize("column", ["Colour", "Offered/Memory", "", "Requested/"])
def test_unknown_columns_are_refused(column: str) -> None:
    with pytest.raises(UsageError, match="unknown column"):
        list(rows("<Job><Id>a</Id></Job>", (column,)))


def test_a_value_of_another_type_is_refused_with_its_line() -> None:
    text = plain().replace("<Processors>777<", "<Processors>many<")
    line = plain().split("<Id>m<")[0].count("\n")       # of the job
    with pytest.raises(RejectedError) as error:
        list(rows(text, ("Requested/Processors",)))
    assert [(f.rule, f.line) for f in error.value.findings] == [("SSS201", line)]


def test_arrow() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="Arrow tables need the extra tables")
    table = arrow(plain(), COLUMNS)
    assert table.column_names == list(COLUMNS) and table.num_rows == 21
    assert table.schema.field("StartTime").type == pyarrow.int64()
    assert table.to_pylist()[-1] == dict(zip(COLUMNS, ("m", "ann", "marked", None, None, None, 777, None), strict=True))
    assert arrow("<JobGroup>\n  <Id>g</Id>\n</JobGroup>\n", COLUMNS).num_rows == 0
