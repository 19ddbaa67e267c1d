"""Every fault has its tests."""

from __future__ import annotations

import os

import pytest

from tests.faults.mutations import MUTATIONS, missing, survivors
from tests.faults.table import FAULTS, ON_CLUSTERS, cited


def test_every_fault_is_cited() -> None:
    assert {fault for fault, _ in cited("psij", "run", "cli", "faults")} == set(FAULTS)


def test_those_on_clusters() -> None:
    assert {fault for fault, test in cited("labs", "psij") if "lab" in test.partition("::")[0]} >= set(ON_CLUSTERS)


def test_every_fault_has_a_mutation() -> None:
    assert {one.fault for one in MUTATIONS} == set(FAULTS) and missing() == []


@pytest.mark.soak
@pytest.mark.skipif(os.environ.get("SSSJOB_SOAK") != "1", reason="takes minutes: SSSJOB_SOAK=1")
def test_no_handling_can_be_taken_out() -> None:
    """Each test of a fault fails when what handles the fault is taken out."""
    assert [(one.fault, one.test) for one, lives in survivors() if lives] == []
