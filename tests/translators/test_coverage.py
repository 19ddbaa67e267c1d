"""The table of what each format holds: no cell is a loss that no finding tells."""

from __future__ import annotations

import pytest

from sssjob.derive.coverage import PROBES, cell, formats
from sssjob.translators import get
from sssjob.xml.reader import read_document


@pytest.mark.parametrize("name", [t.name for t in formats()])
def test_nothing_is_lost_in_silence(name: str) -> None:
    labels = {label for label, inside in PROBES.items() if cell(get(name), inside) == "silent"}
    assert not labels


@pytest.mark.parametrize("label", PROBES)
def test_every_probe_is_a_job_that_our_own_format_holds(label: str) -> None:
    document = read_document(f"<Job><Executable>/bin/date</Executable>{PROBES[label]}</Job>".encode(), profile="3.1")
    assert not document.findings
    assert cell(get("sss"), PROBES[label]) == cell(get("sss-json"), PROBES[label]) == "full"


def test_the_words_of_the_table() -> None:
    """One cell of each kind, of a format whose manual says so."""
    assert cell(get("slurm"), PROBES["wall clock limit"]) == "full"
    assert cell(get("pbspro"), PROBES["nodes from a range"]) == "approximate"
    assert cell(get("slurm"), PROBES["start not before"]) == "site"
    assert cell(get("pbspro"), PROBES["quality of service"]) == "not"
