"""JSON: nothing lost, nothing odd taken."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psij import (
    JobAttributes,
    JobSpec,
    JSONSerializer,
    ResourceSpecV1,
    StageIn,
    StageOut,
    StageOutFlags,
    StagingMode,
    serialize,
)

JSON = JSONSerializer()
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
COUNT = st.none() | st.integers(1, 9)


def resources(cores: int | None, gpus: int | None, nodes: int | None, alone: bool, memory: int | None
              ) -> ResourceSpecV1:
    return ResourceSpecV1(node_count=nodes, cpu_cores_per_process=cores, gpu_cores_per_process=gpus,
                          exclusive_node_use=alone, memory=memory)


ATTRIBUTES = st.builds(
    JobAttributes, duration=st.none() | st.timedeltas(timedelta(0), timedelta(days=999)), queue_name=st.none() | TEXT,
    account=st.none() | TEXT,
    custom_attributes=st.none() | st.dictionaries(TEXT, TEXT | st.floats(-9, 9) | st.booleans()))
SPECS = st.builds(
    JobSpec, executable=st.none() | TEXT, arguments=st.none() | st.lists(TEXT), directory=st.none() | TEXT.map(Path),
    name=st.none() | TEXT, inherit_environment=st.booleans(), environment=st.none() | st.dictionaries(TEXT, TEXT),
    stdout_path=st.none() | TEXT, resources=st.none() | st.builds(resources, COUNT, COUNT, COUNT, st.booleans(), COUNT),
    attributes=ATTRIBUTES, launcher=st.none() | TEXT,
    stage_in=st.none() | st.lists(st.builds(StageIn, TEXT, TEXT, st.sampled_from(StagingMode)), max_size=2),
    stage_out=st.none() | st.lists(st.builds(StageOut, TEXT, TEXT, st.integers(0, 15).map(StageOutFlags)), max_size=2),
    cleanup=st.none() | st.lists(TEXT, max_size=2), cleanup_flags=st.integers(0, 15).map(StageOutFlags))


@given(SPECS)
def test_round_trip(spec: JobSpec) -> None:
    text = JSON.dumps(spec)
    assert JSON.loads(text) == spec
    assert JSON.dumps(JSON.loads(text)) == text


@given(SPECS)
def test_quick_and_careful_reading_agree(spec: JobSpec) -> None:
    text = JSON.dumps(spec)
    assert serialize._checked(text) == json.loads(text)
    with suppress(serialize._Odd):
        assert serialize._quick(text) == json.loads(text)


@pytest.mark.parametrize(("members", "place"), [
    ({"name": 5}, "/name: must be text"), ({"arguments": ["a", None]}, "/arguments/1: must be text"),
    ({"environment": {"A": b"x"}}, "/environment/A: must be text"), ({"launcher": b"x"}, "/launcher: must be text"),
    ({"attributes": JobAttributes(queue_name=b"x")}, "/attributes/queue_name: a value of type bytes"),  # type: ignore[arg-type]
    ({"attributes": JobAttributes(-timedelta(1))}, "/attributes/duration: -1 day")])
def test_what_could_not_be_read_back_is_not_written(members: dict[str, Any], place: str) -> None:
    with pytest.raises(ValueError) as caught:
        JSON.dumps(JobSpec(**members))
    assert str(caught.value).startswith(place)


def test_form() -> None:
    spec = JobSpec("/bin/date", ["-u"], "/tmp", inherit_environment=False, resources=ResourceSpecV1(node_count=2),
                   attributes=JobAttributes(timedelta(hours=1), account="a"))
    assert json.loads(JSON.dumps(spec)) == {
        "name": "/bin/date", "executable": "/bin/date", "arguments": ["-u"], "directory": "/tmp",
        "inherit_environment": False, "resources": {"__version": 1, "node_count": 2},
        "attributes": {"duration": "3600 s", "account": "a", "project_name": "a"}}
    assert json.loads(JSON.dumps(JobSpec("x"))) == {"name": "x", "executable": "x", "attributes": {}}


def test_reads_what_psij_python_writes() -> None:
    spec = JSON.loads('{"name": "x", "executable": "x", "environment": {"A": "1"}, "attributes": {"duration": '
                      '"3600.0 s", "project_name": "p", "account": "p"}, "resources": {"__version": 1}}')
    assert spec.attributes == JobAttributes(timedelta(hours=1), account="p")


@pytest.mark.parametrize(("text", "message"), [
    ('{"executable": "a", "executable": "b"}', "/executable: the key is there twice"),
    ('{"attributes": {"custom_attributes": {"x": [NaN]}}}', "/attributes/custom_attributes/x/0: NaN"),
    ('{"attributes": {"custom_attributes": {"x": 1e999}}}', "/attributes/custom_attributes/x: inf"),
    ('{"resources": {"node_count": true}}', "/resources/node_count: must be a whole number, not true or false"),
    ('{"resources": {"node_count": 1.0}}', "/resources/node_count: must be a whole number, not a number"),
    ('{"resources": {"node_count": %s}}' % ("9" * 1000), "/resources/node_count: 999"),
    ('{"resources": {"__version": 2}}', "/resources/__version: version 2"),
    ('{"resources": {"node_count": 2, "process_count": 3}}', "/resources: resources: process_count=3"),
    ('{"executabel": "a"}', "/executabel: the key is not known; did you mean 'executable'?"),
    ('{"a/b~": "a"}', "/a~1b~0: the key is not known"),
    ('{"arguments": ["a", 1]}', "/arguments/1: must be text, not a whole number"),
    ('{"executable": "a\\u0000"}', "/executable: the text contains a NUL"),
    ('{"attributes": {"duration": "soon"}}', "/attributes/duration: 'soon' is not a time limit"),
    ('{"attributes": {"account": "a", "project_name": "b"}}', "/attributes/project_name: 'b' contradicts"),
    ('{"arguments": %s}' % ("[" * 50_000 + "]" * 50_000), "nested more than 32 levels deep"),
    ('{"arguments": %s}' % ("[" * 50 + "]" * 50), "nested more than 32 levels deep"),
    ("[]", "/: a job specification is an object, not a list"),
    ('{"stage_in": [{"source": "a"}]}', "/stage_in/0: 'target' is missing"),
    ("{", ""),
])
def test_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        JSON.loads(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), object(), {1: 2}])
def test_not_written(value: object) -> None:
    spec = JobSpec("x", attributes=JobAttributes(custom_attributes={"a.b": value}))
    with pytest.raises(ValueError, match=r"/attributes/custom_attributes/a\.b"):
        JSON.dumps(spec)


def test_durations_in_seconds() -> None:
    """As services ask for them that take a duration as a whole number."""
    spec = JobSpec("/x", attributes=JobAttributes(timedelta(days=1, seconds=3)))
    text = JSONSerializer(seconds=True).dumps(spec)
    assert json.loads(text)["attributes"] == {"duration": 86403}
    assert json.loads(JSON.dumps(spec))["attributes"] == {"duration": "86403 s"}
    assert JSON.loads(text) == JSON.loads(JSON.dumps(spec)) == spec
    assert json.loads(JSONSerializer(seconds=True).dumps(JobSpec("/x")))["attributes"] == {"duration": 600}
    with pytest.raises(ValueError, match=r"/attributes/duration: 0:00:00.500000 is no whole number of seconds"):
        JSONSerializer(seconds=True).dumps(JobSpec("/x", attributes=JobAttributes(timedelta(seconds=0.5))))


@pytest.mark.parametrize(("written", "seconds"), [
    ("60", 60), ("0.5", 0.5), ('"60"', 3600), ('"60 s"', 60), ("0", None)])
def test_durations_that_are_read(written: str, seconds: float | None) -> None:
    attributes = JSON.loads(f'{{"attributes": {{"duration": {written}}}}}').attributes
    assert attributes is not None
    assert attributes.duration == (None if seconds is None else timedelta(seconds=seconds))


@pytest.mark.parametrize(("written", "problem"), [
    ("-1", "-1 is below zero"), ("1e300", "1e+300 is too long for a time limit"), ("true", "must be text")])
def test_durations_that_are_not(written: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"/attributes/duration: {problem}")):
        JSON.loads(f'{{"attributes": {{"duration": {written}}}}}')
