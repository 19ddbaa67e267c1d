"""Jobspecs: what each of the judges says of a document, against what they were recorded to say."""

from __future__ import annotations

from typing import Any

import pytest

from sssjob.lrm.flux.jobspec import faults
from tests.fluxexec.support import vectors

VERDICTS = vectors("jobspec-verdicts")
#: Only an instance knows its queues.
_QUEUES = {"queue"}


@pytest.mark.parametrize("case", VERDICTS, ids=[v["name"] for v in VERDICTS])
def test_verdicts(case: dict[str, Any]) -> None:
    value = case["jobspec"]
    assert (not faults(value, "schema")) is case["rfc25_schema"]
    if case["name"] not in _QUEUES:
        assert (not faults(value, "flux")) is case["flux_ingest"]


@pytest.mark.parametrize(("change", "message"), [
    ({"attributes": {"system": {}}}, "attributes.system: the key duration is missing"),
    ({"attributes": None}, "attributes: is no object"),
    ({"tasks": [{"command": "app", "slot": "task", "count": {"per_slot": 1}}]},
     "tasks[0].command: is no list of texts"),
    ({"tasks": []}, "tasks: is no list of one"),
])
def test_the_text_of_the_rfc_wants_more_than_its_schema(change: dict[str, Any], message: str) -> None:
    value = VERDICTS[0]["jobspec"] | change
    assert faults(value, "schema") == [] and message in faults(value, "rfc")


def test_the_text_lets_nodes_be_exclusive() -> None:
    base = VERDICTS[0]["jobspec"]
    value = base | {"resources": [base["resources"][0] | {"exclusive": True}]}
    assert faults(value, "rfc") == [] and faults(value, "schema") and faults(value, "flux") == []


def test_a_deep_graph_ends() -> None:
    vertex: dict[str, Any] = {"type": "slot", "count": 1, "label": "task"}
    for _ in range(5000):
        vertex = {"type": "rack", "count": 1, "with": [vertex]}
    assert faults(VERDICTS[0]["jobspec"] | {"resources": [vertex]}, "flux")


@pytest.mark.parametrize("value", [None, [], "x", 1, {"version": 1}])
def test_what_is_no_jobspec_at_all(value: object) -> None:
    assert all(faults(value, level) for level in ("schema", "rfc", "flux"))
