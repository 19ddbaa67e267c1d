"""The job objects of other systems, where they are at hand: ``SSSJOB_SAMPLES`` names the folder that holds them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sssjob.errors import RejectedError
from sssjob.findings import Findings
from sssjob.validation import check
from sssjob.xml.reader import read_document
from sssjob.xml.twin import from_json, to_json
from sssjob.xml.writer import write_document

PROFILE = {"14": "mam", "15": "msub", "16": "msub"}
NO_JOBS = ("07", "13")


def samples() -> list[Path]:
    """The documents, or none where there are no samples."""
    folder = os.environ.get("SSSJOB_SAMPLES")
    return sorted((Path(folder) / "samples-sss").glob("*.xml")) if folder else []


def test_samples_are_at_hand() -> None:
    if not os.environ.get("SSSJOB_SAMPLES"):
        pytest.skip("SSSJOB_SAMPLES names no folder of samples")
    assert len(samples()) >= 16


@pytest.mark.parametrize("path", samples(), ids=lambda p: p.stem)
def test_sample_reads_checks_and_round_trips(path: Path) -> None:
    number = path.name[:2]
    if number in NO_JOBS:
        with pytest.raises(RejectedError, match="SSS109"):
            read_document(path)
        return
    profile = PROFILE.get(number, "liberal")
    document = read_document(path, profile=profile)
    findings = Findings(str(path))
    check(document, findings)
    assert document.findings is not None
    assert not document.findings.rejected and not findings.rejected, [*document.findings, *findings]
    for names in {"3.1", "3.0", profile}:
        reported = Findings()
        text = write_document(document, profile=names, findings=reported)
        again = read_document(text, profile=profile)
        # The other forms of 3.1, of which sample 04 has one, and brackets that balance, of which sample 03 has some.
        assert {f.rule for f in reported} <= {"SSS502", "SSS402"}
        assert [j for j, _ in again.jobs()] == [j for j, _ in document.jobs()] or len(reported)
        assert write_document(again, profile=names) == text
        assert again.files == document.files
    assert from_json(to_json(document)).root == document.root
