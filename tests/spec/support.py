"""What the tests of the specification share: how they cite a sentence, and what is said about a text."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from sssjob.document.model import Document
from sssjob.errors import RejectedError
from sssjob.findings import Finding, Findings, Policy
from sssjob.validation import check
from sssjob.xml.reader import read_document

__all__ = ["both", "document", "examples", "needs_published_text", "published_text", "refused", "rules", "spec", "told"]

_F = TypeVar("_F", bound=Callable[..., Any])


def spec(section: str, *numbers: int | str) -> Callable[[_F], _F]:
    """Marks a test that shows sentences of the published text.

    section, numbers: as in docs/reference/conformance.md, which is made from these marks; without numbers all rows of
    a table. Literals only: the marks are read from the source.
    """
    return lambda test: test


def told(text: str | bytes | Path, profile: str = "liberal", policy: Policy | None = None) -> list[Finding]:
    """All that reading and checking say about a text."""
    findings = Findings()
    try:
        read = read_document(text, profile=profile, policy=policy)
    except RejectedError as error:
        return list(error.findings)
    assert read.findings is not None
    findings.extend(read.findings)
    check(read, findings, profile)
    return list(findings)


def rules(text: str | bytes | Path, profile: str = "liberal") -> list[str]:
    """The rules of all findings."""
    return [f.rule for f in told(text, profile)]


def refused(text: str | bytes | Path, profile: str = "3.1") -> list[str]:
    """The rules of the findings that reject."""
    return [f.rule for f in told(text, profile) if f.rejects]


def both(text: str) -> tuple[bool, bool]:
    """Whether profile liberal and profile 3.1 take a text."""
    return not refused(text, "liberal"), not refused(text, "3.1")


def document(text: str | bytes, profile: str = "liberal") -> Document:
    """A document that is read without a rejecting finding."""
    read = read_document(text, profile=profile)
    assert read.findings is not None and not read.findings.rejected, [str(f) for f in read.findings or ()]
    return read


def examples() -> Path:
    """The folder of the published examples, as printed."""
    return Path(__file__).parents[1] / "fixtures" / "spec-3.1.0"


def _published() -> Path | None:
    folder = os.environ.get("SSSJOB_SAMPLES")
    path = Path(folder) / "specs" / "seeds" / "sss-job-object-3.1.0.txt" if folder else None
    return path if path is not None and path.is_file() else None


def published_text() -> str:
    """The published text of release 3.1.0."""
    path = _published()
    assert path is not None
    return path.read_text(encoding="utf-8")


#: The published text is no part of this project; ``SSSJOB_SAMPLES`` names a folder that holds it.
needs_published_text = pytest.mark.skipif(
    _published() is None, reason="SSSJOB_SAMPLES names no folder that holds the published text of release 3.1.0")
