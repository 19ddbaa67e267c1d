"""Columns of many jobs: what is read, where it comes from, and that every layout tells the same."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from sssjob.errors import RejectedError, UsageError
from sssjob.xml.rows import ACCOUNTING, arrow, rows
from tests.xml.test_pieces import plain

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


def test_a_column_may_be_asked_for_in_several_ways() -> None:
    job = "<Job><User>ann</User><Duration>1</Duration><Delivered><Duration>5</Duration></Delivered></Job>"
    assert list(rows(f"<JobGroup>{job}</JobGroup>", ("Duration", "User", "Delivered/Duration", "UserId"))) == [
        (5, "ann", 5, "ann")]


#: Jobs whose shape alone does not tell the values: name -> the job, User and Processors of it.
DOUBTFUL = {
    "entities": ("<Job><User>a&amp;b</User><Processors>1</Processors></Job>", ("a&b", 1)),
    "elements in a text": ("<Job><User>a<b>c</b>d</User><Processors>1</Processors></Job>", ("a", 1)),
    "> in an attribute": ('<Job><User x="&lt;a>b">c</User><Processors>1</Processors></Job>', ("c", 1)),
    "> in a text": ("<Job><User>a>b>/User></User><Processors>1</Processors></Job>", ("a>b>/User>", 1)),
    "> as an end tag": ("<Job><Name>a>User></Name><User>b</User><Processors>1</Processors></Job>", ("b", 1)),
    "no text": ("<Job><User></User><Processors>1</Processors></Job>", (None, 1)),
    "no text the first time": ("<Job><User/><User>b</User><Processors>1</Processors></Job>", ("b", 1)),
    "a block without text": (
        "<Job><User>b</User><Processors>1</Processors><Delivered><Processors/></Delivered></Job>", ("b", None)),
    "two blocks": ("<Job><User>b</User><Delivered><Processors>1</Processors></Delivered><Delivered>"
                   "<Processors>2</Processors></Delivered></Job>", ("b", 2)),
    "a job in a job": ("<Job><User>b</User><Job>x</Job><Processors>1</Processors></Job>", ("b", 1)),
    "the mark": ("<Job><User>\ue0006<b/></User><Processors>1</Processors></Job>", ("\ue0006", 1)),
    "text beside elements": ("<Job>a<User>b</User>c<Processors>1</Processors></Job>", ("b", 1)),
    "another namespace": ("<Job><User xmlns='urn:x'>a</User><Processors>1</Processors></Job>", (None, 1)),
}


@pytest.mark.parametrize(("job", "expected"), DOUBTFUL.values(), ids=DOUBTFUL.keys())
def test_what_takes_thought_says_the_same_among_plain_jobs(job: str, expected: tuple[Any, ...]) -> None:
    """A group is read by the shapes of its jobs, a job alone by its tree."""
    columns = ("User", "Processors")
    usual = "<Job><User>ann</User><Processors>4</Processors></Job>"
    if "another" not in job:
        assert list(rows(job, columns)) == [expected]
    listed = [("ann", 4), expected, ("ann", 4), expected, ("ann", 4)]
    assert list(rows(f"<JobGroup>{usual}{job}{usual}{job}{usual}</JobGroup>", columns)) == listed


def test_an_attribute_that_is_another_in_each_job() -> None:
    """So many shapes are more than are kept."""
    text = "".join(f'<Job><User a="{n}">u{n}</User></Job>' for n in range(5000))
    assert list(rows(f"<JobGroup>{text}</JobGroup>", ("User",))) == [(f"u{n}",) for n in range(5000)]


@pytest.mark.parametrize("text", [
    "<Response><Data><Job><Id>a</Id></Job></Data><Data><Job><Id>b</Id></Job></Data></Response>",
    "<Response><Data><JobGroup><Job><Id>a</Id></Job></JobGroup><Job><Id>b</Id></Job></Data></Response>",
    "<Response><Data><JobGroup><Job><Id>a</Id></Job></JobGroup><JobGroup><Job><Id>b</Id></Job></JobGroup></Data>"
    "</Response>",
    "<Response><Data><Job><Id>b</Id></Job><JobGroup><Job><Id>a</Id></Job></JobGroup></Data></Response>",
])
def test_jobs_in_several_places_of_a_message(text: str) -> None:
    assert sorted(rows(text, ("Id",))) == [("a",), ("b",)]


def test_what_is_wrong_with_defaults_is_told_at_the_jobs() -> None:
    text = "<JobGroup>\n<Job><Id>a</Id></Job><JobDefaults>\n<Processors>many</Processors></JobDefaults></JobGroup>"
    with pytest.raises(RejectedError) as error:
        list(rows(text, ("Processors",)))
    assert [(f.rule, f.line) for f in error.value.findings] == [("SSS201", 2)]


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
