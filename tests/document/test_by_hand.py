"""What is set by hand is what the reader would have read, or an error at once that names property and section."""

from __future__ import annotations

import pickle
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob import eq, ge, gt, le, matching, ne
from sssjob.document.amount import Amount
from sssjob.document.element import Container, Property
from sssjob.document.model import (
    CLASSES,
    Delivered,
    Environment,
    Job,
    JobDefaults,
    JobGroup,
    Requested,
    Task,
    TaskGroup,
    TaskGroupDefaults,
)
from sssjob.document.vocabulary import CONTAINERS, Element, in_scope, python_name
from sssjob.errors import PropertyError, RejectedError, SSSJobError, UsageError
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.strategies import values

ROWS = [(scope, row) for scope in CONTAINERS for row in in_scope(scope).values()]


def required(row: Element) -> dict[str, Any]:
    return {a.name: a.values[0] if a.values else "a" for a in row.attributes if a.required}


@given(data=st.data())
def test_every_property_comes_back_as_it_was_set(data: st.DataObject) -> None:
    """Whatever the spelling of its name, the value by hand is the value read."""
    scope, row = data.draw(st.sampled_from(ROWS))
    value = data.draw(values(row)) if row.name != "State" else data.draw(st.sampled_from(row.values))
    container = CLASSES[scope]()
    added = container.add(data.draw(st.sampled_from((row.name, python_name(row.name)))), value, **required(row))
    assert (added.tag, added.value) == (row.name, value)
    assert container.items == [added]


TAKEN: list[tuple[type[Container], str, Any, str, dict[str, str]]] = [
    (Job, "memory", "2 GB", "2", {"units": "GB"}),
    (Job, "memory", "2GiB", "2", {"units": "GB"}),
    (Job, "memory", "1.5e3", "1500", {}),
    (Job, "memory", 0.5, "0.5", {}),
    (Job, "memory", Fraction(1, 4), "0.25", {}),
    (Job, "swap", "512 K", "512", {"units": "KB"}),
    (Job, "charge", "12.50 EUR", "12.50", {"units": "EUR"}),
    (Job, "network", "10GigE", "10GigE", {}),
    (Job, "node_count", 4.0, "4", {}),
    (Job, "node_count", " 4 ", "4", {}),
    (Job, "duration", timedelta(hours=1), "3600", {}),
    (Job, "duration", "1:00:00", "3600", {}),
    (Job, "duration", "PT1H", "3600", {}),
    (Job, "cpu_duration", timedelta(seconds=7), "7", {}),
    (Job, "start_time", datetime(2020, 1, 1, tzinfo=UTC), "1577836800", {}),
    (Job, "start_time", datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), "1577836800", {}),
    (Job, "start_time", datetime(2020, 1, 1, 0, 0, 0, 999999, tzinfo=UTC), "1577836800", {}),
    (Job, "start_time", "2020-01-01T00:00:00Z", "1577836800", {}),
    (Job, "start_time", 1577836800, "1577836800", {}),
    (Job, "executable", Path("/bin/true"), "/bin/true", {}),
    (Job, "id", 17, "17", {}),
    (Job, "interactive", True, "true", {}),
    (Job, "state", "running", "Running", {}),
    (Job, "state", "NotQueued", "NotQueued", {}),
    (JobGroup, "state", "Active", "Active", {}),
    (Requested, "processors", ge(8), "8", {"op": "GE"}),
]


@pytest.mark.parametrize(("kind", "name", "value", "text", "attributes"), TAKEN)
def test_values_are_converted(kind: type[Container], name: str, value: Any, text: str,
                              attributes: dict[str, str]) -> None:
    container = kind()
    setattr(container, name, value)
    (made,) = container.properties()
    assert (made.text, made.attributes) == (text, attributes)


_B = "5.1 Table 2"
REFUSED: list[tuple[type[Container], str, Any, dict[str, Any], str, str, str]] = [
    (Job, "NodeCount", "many", {}, "SSS201", "NodeCount", _B),
    (Job, "NodeCount", 1.5, {}, "SSS201", "NodeCount", _B),
    (Job, "NodeCount", True, {}, "SSS201", "NodeCount", _B),
    (Job, "NodeCount", -1, {}, "SSS205", "NodeCount", _B),
    (Job, "NodeCount", 10**70, {}, "SSS201", "NodeCount", _B),
    (Job, "Memory", "2 XB", {}, "SSS206", "Memory", "5.1 Table 4"),
    (Job, "Memory", 2, {"units": "parsec"}, "SSS206", "Memory", "5.1 Table 4"),
    (Job, "Memory", "2 GB", {"units": "MB"}, "SSS206", "Memory", "5.1 Table 4"),
    (Job, "Memory", float("nan"), {}, "SSS201", "Memory", "5.1 Table 4"),
    (Job, "Memory", Decimal("1e999999999"), {}, "SSS201", "Memory", "5.1 Table 4"),
    (Job, "Memory", Fraction(1, 3), {}, "SSS201", "Memory", "5.1 Table 4"),
    (Job, "Memory", "plenty", {}, "SSS201", "Memory", "5.1 Table 4"),
    (Job, "Memory", -2, {}, "SSS205", "Memory", "5.1 Table 4"),
    (Job, "Duration", timedelta(seconds=1.5), {}, "SSS201", "Duration", _B),
    (Job, "Duration", timedelta(seconds=-1), {}, "SSS201", "Duration", _B),
    (Job, "Duration", datetime(2020, 1, 1, tzinfo=UTC), {}, "SSS201", "Duration", _B),
    (Job, "StartTime", datetime(2020, 1, 1), {}, "SSS201", "StartTime", _B),
    (Job, "StartTime", date(2020, 1, 1), {}, "SSS201", "StartTime", _B),
    (Job, "StartTime", timedelta(hours=1), {}, "SSS201", "StartTime", _B),
    (Job, "StartTime", "2020-01-01 00:00:00", {}, "SSS201", "StartTime", _B),
    (Job, "StartTime", "now", {}, "SSS201", "StartTime", _B),
    (Job, "StartTime", datetime(1969, 1, 1, tzinfo=UTC), {}, "SSS201", "StartTime", _B),
    (Job, "Interactive", 1, {}, "SSS201", "Interactive", _B),
    (Job, "Id", "", {}, "SSS201", "Id", _B),
    (Job, "Id", "a" * 2000, {}, "SSS110", "Id", _B),
    (Job, "Id", ["a"], {}, "SSS201", "Id", _B),
    (Job, "Charge", "0x10", {}, "SSS201", "Charge", _B),
    (Job, "Arguments", "a\x00b", {}, "SSS201", "Arguments", _B),
    (Job, "State", "Waiting", {}, "SSS201", "State", _B),
    (Job, "State", "Removed", {}, "SSS201", "State", _B),
    (JobGroup, "State", "Running", {}, "SSS201", "State", "4.1 Table 1"),
    (Job, "Foo", 1, {}, "SSS301", "Job", "5.0"),
    (Job, "JobId", "1", {}, "SSS301", "Job", "5.0"),
    (Job, "Requested", "1", {}, "SSS303", "Job", "5.0"),
    (Job, "TaskCount", 1, {}, "SSS303", "TaskCount", "6.1 Table 6"),
    (Delivered, "Executable", "/bin/true", {}, "SSS303", "Executable", _B),
    (Requested, "SuspendDuration", 1, {}, "SSS303", "SuspendDuration", _B),
    (Requested, "Processors", 4, {"op": "BOGUS"}, "SSS203", "Processors", "5.1 Table 4"),
    (Requested, "Processors", 4, {"conj": "Xor"}, "SSS203", "Processors", "5.1 Table 4"),
    (Requested, "Processors", 4, {"context": "Somewhere"}, "SSS203", "Processors", "5.1 Table 4"),
    (Requested, "Processors", 4, {"group": "a"}, "SSS207", "Processors", "5.1 Table 4"),
    (Requested, "Processors", 4, {"performancefactor": 1}, "SSS302", "Processors", "5.1 Table 4"),
    (Requested, "Processors", 4, {"awarenessPolicy": "Maybe"}, "SSS210", "Processors", "5.1 Table 4"),
    (Job, "Processors", 4, {"op": "GE"}, "SSS302", "Processors", "5.1 Table 4"),
    (Job, "Processors", ge(8), {}, "SSS302", "Processors", "5.1 Table 4"),
    (Requested, "Processors", ge(1) & le(2), {}, "SSS201", "Processors", "5.1 Table 4"),
    (Job, "Resource", 4, {}, "SSS208", "Resource", "5.1 Resource Element"),
    (Job, "ResourceLimit", 4, {"name": "MaxMemory", "type": "Firm"}, "SSS203", "ResourceLimit",
     "5.1 ResourceLimit Element"),
    (Job, "NodeCount", Property("TaskCount", 1), {}, "SSS303", "NodeCount", _B),
    (Job, "NodeCount", Property("NodeCount", "many"), {}, "SSS201", "NodeCount", _B),
]


@pytest.mark.parametrize(("kind", "name", "value", "attributes", "rule", "subject", "section"), REFUSED)
def test_wrong_values_raise_at_once(kind: type[Container], name: str, value: Any, attributes: dict[str, Any], rule: str,
                                    subject: str, section: str) -> None:
    container = kind()
    with pytest.raises(PropertyError) as caught:
        container.add(name, value, **attributes)
    error = caught.value
    assert (error.finding.rule, error.name, error.section) == (rule, subject, section)
    assert isinstance(error, RejectedError | ValueError) and isinstance(error, SSSJobError)
    assert section in str(error) and rule in str(error) and "\n" not in str(error)
    assert container.items == []
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_naive_datetime_is_told_what_to_do() -> None:
    with pytest.raises(PropertyError, match=r"has no time zone; say which it is, as value\.replace"):
        Job().start_time = datetime(2020, 1, 1)


def test_an_attribute_in_python_s_spelling_is_the_same() -> None:
    added = Requested().add("processors", 4, performance_factor=0.5, consumption_rate=1, dynamic=True,
                            duration=timedelta(minutes=1), op="ge")
    assert added.attributes == {"performanceFactor": "0.5", "consumptionRate": "1", "dynamic": "true", "duration": "60",
                                "op": "GE"}
    again = read_document(write_document(Requested([added])))
    assert again.root == Requested([added]) and not again.findings


def test_setting_replaces_in_place_and_none_takes_away() -> None:
    job = Job(id="1", node_count=2, user="ann")
    job.node_count = 3
    job.id = None
    job.hold = "User"
    job.hold = ("User", "System")
    assert [(p.tag, p.value) for p in job.properties()] == [("NodeCount", 3), ("User", "ann"), ("Hold", "User"),
                                                            ("Hold", "System")]
    job.hold = ()
    assert job.hold == ()


def test_copies_that_share_their_items_keep_theirs() -> None:
    job = Job(id="1")
    copy = Job(job.items)
    copy.id = "2"
    assert (job.id, copy.id) == ("1", "2")


def test_del_takes_away_as_none_does() -> None:
    """Properties that stand once and often, blocks, lists of children and their defaults; del of what is not there is
    as quiet as setting it to None."""
    job = Job(id="1", node_count=2, hold=["User", "System"], requested={"memory": "2 GB"}, environment={"A": "1"},
              task_groups=[TaskGroup(task_count=2)], defaults=TaskGroupDefaults(task_count=1))
    for _ in range(2):
        del job.id, job.node_count, job.hold, job.requested.memory, job.environment, job.task_groups, job.defaults
    assert job == Job(requested=Requested()) and not job.requested
    del job.requested
    assert job == Job()


@pytest.mark.parametrize(("kind", "name", "value", "message"), [
    (JobGroup, "jobs", Job(), "a list of Job is expected in JobGroup, not one Job: put it in brackets, [...]"),
    (Job, "task_groups", TaskGroup(),
     "a list of TaskGroup is expected in Job, not one TaskGroup: put it in brackets, [...]"),
    (TaskGroup, "tasks", 5, "a list of Task is expected in TaskGroup, not a int"),
    (TaskGroupDefaults, "tasks", [Job()], "a Task is expected in TaskGroupDefaults, not a Job"),
    (Job, "defaults", JobDefaults(), "a TaskGroupDefaults is expected in Job, not a JobDefaults")])
def test_children_of_another_kind_are_refused_in_a_sentence(kind: Any, name: str, value: Any, message: str
                                                            ) -> None:
    """Whether the container is made with them or gets them later; one that is not in a list had a TypeError of Python's
    own. None takes them away, as it does a property."""
    container = kind()
    for give in (lambda: setattr(container, name, value), lambda: kind(**{name: value})):
        with pytest.raises(UsageError, match=re.escape(message)):
            give()
    setattr(container, name, None)
    assert container.items == kind(**{name: None}).items == []


# --- making -------------------------------------------------------------------------------------------------------

def test_everything_can_be_made_with_what_is_in_it() -> None:
    group = JobGroup(id="g", awareness_policy="Warn", defaults=JobDefaults(queue="batch"), jobs=[
        Job(id="1", executable="/bin/true", requested={"processors": 8, "memory": None},
            delivered=Delivered(duration=1), environment={"A": "b"},
            defaults=TaskGroupDefaults(requested={"processors": 1}),
            task_groups=[TaskGroup(task_count=2, tasks=[Task(node="n1")])])])
    text = """\
<JobGroup awarenessPolicy="Warn">
  <Id>g</Id>
  <JobDefaults>
    <Queue>batch</Queue>
  </JobDefaults>
  <Job>
    <Id>1</Id>
    <Executable>/bin/true</Executable>
    <Requested>
      <Processors>8</Processors>
    </Requested>
    <Delivered>
      <Duration>1</Duration>
    </Delivered>
    <Environment>
      <Variable name="A">b</Variable>
    </Environment>
    <TaskGroupDefaults>
      <Requested>
        <Processors>1</Processors>
      </Requested>
    </TaskGroupDefaults>
    <TaskGroup>
      <TaskCount>2</TaskCount>
      <Task>
        <Node>n1</Node>
      </Task>
    </TaskGroup>
  </Job>
</JobGroup>
"""
    assert write_document(group) == text


@pytest.mark.parametrize("members", [{"foo": 1}, {"requested": 5}, {"task_groups": [Job()]}, {"jobs": []},
                                     {"awareness_policy": "Maybe"}, {"node_count": "many"}, {"environment": ["A=b"]}])
def test_what_cannot_be_in_it_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises((PropertyError, UsageError)):
        Job(**members)


def test_export_of_an_environment() -> None:
    environment = Environment(export=True)
    environment["A"] = "b"
    environment["B"] = ""
    environment["A"] = "c"
    del environment["B"]
    assert environment.export is True and environment.variables() == {"A": "c"} and "A" in environment
    with pytest.raises(KeyError):
        del environment["B"]


# --- sentences ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("condition", "terms"), [
    (ge(8) & le(16), [("GE", "8", "And", 0), ("LE", "16", "And", 0)]),
    (ge(8) | ne(4), [("GE", "8", "And", 1), ("NE", "4", "Or", -1)]),
    ((ge(8) & le(16)) | gt(64), [("GE", "8", "And", 2), ("LE", "16", "And", -1), ("GT", "64", "Or", -1)]),
    (gt(64) | (ge(8) & le(16)), [("GT", "64", "And", 1), ("GE", "8", "Or", 1), ("LE", "16", "And", -2)]),
    ((ge(1) | ge(2)) & (ge(3) | ge(4)), [("GE", "1", "And", 2), ("GE", "2", "Or", -1), ("GE", "3", "And", 1),
                                         ("GE", "4", "Or", -2)]),
])
def test_conditions_become_properties(condition: Any, terms: list[tuple[str, str, str, int]]) -> None:
    job = Job()
    job.requested.processors = condition
    assert [(p.op, p.text, p.conj, p.group) for p in job.requested.all("Processors")] == terms
    assert not read_document(write_document(job)).findings


def test_what_may_stand_several_times_takes_conditions_and_lists_of_them() -> None:
    requested = Requested(node=matching("n[0-9]+") | eq("m1"), feature=["a", eq("b") | eq("c")])
    assert [(p.text, p.op, p.conj, p.group) for p in requested.properties()] == [
        ("n[0-9]+", "Match", "And", 1), ("m1", "EQ", "Or", -1),
        ("a", "EQ", "And", 0), ("b", "EQ", "And", 1), ("c", "EQ", "Or", -1)]
    requested.node = None
    assert {p.tag for p in requested.properties()} == {"Feature"}


@pytest.mark.parametrize("value", [b"ib", bytearray(b"ib"), memoryview(b"ib"), {"ib": 1}])
def test_neither_bytes_nor_a_mapping_is_a_list_of_values(value: Any) -> None:
    with pytest.raises(PropertyError, match=f"Feature: a {type(value).__name__} is no String"):
        Job().feature = value


def test_a_condition_within_a_comparison_is_refused() -> None:
    with pytest.raises(UsageError, match="a value is compared with, not a condition"):
        ge(le(4))       # type: ignore[arg-type]


def test_conditions_are_not_truths() -> None:
    with pytest.raises(UsageError, match="with & and"):
        assert ge(8) and le(16)
    with pytest.raises(UsageError, match="joined to another one"):
        ge(8) & 16      # type: ignore[operator]
    assert Requested(feature=matching("hash*")).feature[0].op == "Match"


def amount(text: str, tag: str = "Memory") -> Amount:
    added = Job().add(tag, text, **({"name": "x"} if tag == "Resource" else {}))
    assert isinstance(added, Amount)
    return added


@pytest.mark.parametrize(("left", "right", "order"), [
    ("2 GB", "2 GB", 0), ("2 GB", "2048 MB", 0), ("2 GB", 2048, 0), ("2 GB", 2, 1), ("1 GB", "1025 MB", -1),
    ("2048", "2GB", 0), ("1.5", Decimal("1.5"), 0), ("0.1", 0.1, 0), ("1", Fraction(1, 3), 1),
    ("2 GB", amount("1 TB"), -1),
])
def test_amounts_compare(left: str, right: Any, order: int) -> None:
    mine = amount(left)
    assert (mine < right, mine <= right, mine > right, mine >= right) == (
        order < 0, order <= 0, order > 0, order >= 0)
    if not isinstance(right, Property):
        assert (mine == right) is (order == 0)


def test_amounts_that_do_not_compare() -> None:
    with pytest.raises(UsageError, match="J cannot be compared with kWh"):
        assert amount("5 J", "Resource") > "1 kWh"
    with pytest.raises(TypeError):
        assert amount("5") > "much"
    assert amount("2 GB") != "much" and amount("2 GB") != Job().add("Memory", "2048 MB")
    assert hash(amount("2 GB")) == hash(amount("2 GB"))


# --- blocks -------------------------------------------------------------------------------------------------------

def test_a_block_that_is_not_there_joins_with_the_first_thing() -> None:
    job = Job()
    assert not job.requested and job.requested.processors is None and job.items == []
    job.requested.processors = 4
    job.delivered.add_as_is("Duration", 5)
    job.environment.items.append(Property("Variable", "b", {"name": "A"}))
    assert [i.tag for i in job.items] == ["Requested", "Delivered", "Environment"]
    job.requested.processors = 5
    assert job.requested == Requested(processors=5) and type(job.requested.items) is list
    job.requested = None
    assert not job.requested and [i.tag for i in job.items] == ["Delivered", "Environment"]


def test_several_blocks_are_one_when_changed() -> None:
    job = Job([Requested(processors=1), Delivered(duration=1), Requested(memory=2)])
    assert [p.tag for p in job.requested.properties()] == ["Processors", "Memory"]
    job.requested.processors = 4
    assert job.items == [Requested(processors=4, memory=2), Delivered(duration=1)]


@pytest.mark.parametrize("text", ["2027-01-01", "2027-01-01T10:00:00", "2027-01-01 10:00", "2027-01-01T10-05:00x"])
def test_a_date_without_a_zone_is_refused(text: str) -> None:
    """The day of a date was taken for its zone."""
    job = Job()
    with pytest.raises(PropertyError, match="no time with a zone"):
        job.start_time = text


@pytest.mark.parametrize(("text", "seconds"), [
    ("2027-01-01T00:00:00+02:00", 1798754400), ("20270101T000000Z", 1798761600), ("2027-01-01T00:00-05", 1798779600)])
def test_a_time_with_a_zone_is_taken(text: str, seconds: int) -> None:
    job = Job()
    job.start_time = text
    assert job.start_time == seconds


@pytest.mark.parametrize("name", ["value", "attributes", "tag", "spelling"])
def test_what_a_property_says_cannot_be_changed_in_place(name: str) -> None:
    """One object stands in every job of a document that says the same; all of them were changed."""
    job = Job(node_count=2, requested={"memory": "2 GB"})
    for p in (job.requested.memory, job.first("NodeCount")):
        assert p is not None
        before = p.text, dict(p.attributes)
        with pytest.raises(AttributeError, match=rf"its {name} cannot be set: .*job\.{python_name(p.tag)} = "):
            setattr(p, name, "8")
        with pytest.raises(AttributeError, match=f"its {name} cannot be deleted"):
            delattr(p, name)
        assert (p.text, p.attributes) == before and pickle.loads(pickle.dumps(p)) == p


def test_no_attributes_stay_none_of_all_properties() -> None:
    """The empty attributes are one object, of every property and container without any."""
    p = Property("NodeCount", 2)
    with pytest.raises(TypeError, match="replace"):
        p.attributes["op"] = "GE"
    assert p.replace(op="GE").attributes == {"op": "GE"} and Property("NodeCount", 2).attributes == {}
