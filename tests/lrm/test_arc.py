"""States and records of an ARC computing element, in the shapes in which A-REX writes JSON."""

from __future__ import annotations

from typing import Any

import pytest

from sssjob.lrm import arc
from sssjob.lrm.states import Stage


@pytest.mark.parametrize("url, address", [
    ("https://ce.example.org", "https://ce.example.org/arex/rest/1.0"),
    ("https://ce.example.org:8443/", "https://ce.example.org:8443/arex/rest/1.0"),
    ("https://ce.example.org/ce7", "https://ce.example.org/ce7/rest/1.0"),
    ("https://ce.example.org/arex/rest/1.1/", "https://ce.example.org/arex/rest/1.1")])
def test_addresses(url: str, address: str) -> None:
    assert arc.endpoint(url) == address


@pytest.mark.parametrize("answer, ids", [
    ({"job": [{"id": "a"}, {"id": "b"}]}, ["a", "b"]), ({"job": {"id": "a"}}, ["a"]),     # one without a list
    ({"job": []}, []), (None, []), ({}, []), ([], []), ({"job": "x"}, []), ({"job": [None, {"id": "b"}]}, ["b"])])
def test_jobs_of_an_answer(answer: object, ids: list[str]) -> None:
    assert [entry["id"] for entry in arc.entries(answer)] == ids


def test_ends_are_no_states_of_jobs_that_go_on() -> None:
    ends = {word for word, state in arc.STATES.items() if state.stage in arc.ENDED}
    assert ends == {"FINISHED", "FAILED", "KILLED"} and not ends & set(arc.UNENDED)
    assert arc.STATES["FINISHING"].stage is Stage.SILENT        # also of one that never ran


@pytest.mark.parametrize("record, code, facts", [
    ({}, None, {}),
    ({"ExitCode": "3", "RequestedSlots": "4", "UsedTotalWallTime": "40", "UsedTotalCPUTime": "31",
      "UsedMainMemory": "12", "ExecutionNode": ["n1", "n1", "n2"], "Queue": "short",
      "SubmissionTime": "2026-11-27T05:00:00Z", "StartTime": "2026-11-27T05:00:10+00:00",
      "ComputingManagerEndTime": "2026-11-27T05:00:20", "LocalOwner": "nobody"}, 3,
     {"submit_time": 1795755600.0, "start_time": 1795755610.0, "end_time": 1795755620.0, "cpu_seconds": 31,
      "wall_seconds": 10.0, "memory_max_bytes": 12 << 20, "nodes": ["n1", "n2"], "queue": "short",
      "processors": 4, "user": "nobody"}),
    ({"ExitCode": "-1", "UsedMainMemory": "lots", "StartTime": "soon", "ExecutionNode": "n1", "Queue": {"a": "b"},
      "EndTime": ["x"]}, None, {"nodes": ["n1"]})])
def test_facts(record: dict[str, Any], code: int | None, facts: dict[str, Any]) -> None:
    """Of a record that was made, and of one whose values are none: these are left out, and nothing raises."""
    assert arc.facts(record) == (code, facts)


@pytest.mark.parametrize("entry, words", [
    ({"info_document": {"ComputingActivity": {"Error": ["LRMS error: (1)\nFailed", "again"]}}},
     "LRMS error: (1) Failed; again"),
    ({"info_document": {"ComputingActivity": {"Error": "one"}}}, "one"),
    ({"info_document": ""}, None), ({}, None), ({"info_document": {"ComputingActivity": []}}, None)])
def test_errors(entry: dict[str, Any], words: str | None) -> None:
    assert arc.errors(arc.activity(entry)) == words
