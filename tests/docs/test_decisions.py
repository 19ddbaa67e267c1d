"""``docs/decisions.md`` answers what no published text settles; whoever reads a reference to it in the code finds the
row, and nothing refers to a text that the repository does not have."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "decisions.md"
ROWS = {int(number) for number in re.findall(r"^### (\d+)\. ", PAGE.read_text(), re.MULTILINE)}
#: "decisions 4, 5", "decisions 7 and 8", "decision 13".
REFERENCE = re.compile(r"\bdecisions?\s+(\d+(?:(?:,\s*|\s+and\s+)\d+)*)")
#: Names of working papers that are no part of the repository, and letters of the plan that it was built by.
#: What such a reference holds, and the whole of it: few texts hold the first, which are found many times faster.
OUTSIDE = {word: re.compile(pattern, re.IGNORECASE) for word, pattern in {
    "rosetta ": r"rosetta \d", "job-states": r"\bjob-states\b", "lrm-facts": r"\blrm-facts\b",
    "of the design": r"\bof the design\b", "house-": r"\bHOUSE-\d", "meaning-": r"\bMEANING-\d",
    "specs/": r"\bspecs/[\w-]+\.md", "style.md": r"\bstyle\.md\b", "threats.md": r"\bthreats\.md\b"}.items()}


def texts() -> Iterator[tuple[str, str]]:
    """Name and text of each file of code, tests and docs."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", "*.py", "*.md", "*.j2", "*.toml", "*.sh"], cwd=ROOT,
                            capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no checkout of git")
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if name and path.is_file() and path != Path(__file__) and name != "CHANGELOG.md":
            yield name, path.read_text(errors="replace")


def test_each_reference_has_its_row() -> None:
    missing = [(name, number) for name, text in texts() for reference in REFERENCE.findall(text)
               for number in map(int, re.findall(r"\d+", reference)) if number not in ROWS]
    assert missing == []


def test_rows_are_numbered_once() -> None:
    numbers = re.findall(r"^### (\d+)\. ", PAGE.read_text(), re.MULTILINE)
    assert len(numbers) == len(set(numbers)) and len(numbers) > 40


def test_each_question_is_answered() -> None:
    """A heading is a question, and text follows it."""
    parts = re.split(r"^### \d+\. ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    short = [heading for heading, _, answer in (part.partition("\n") for part in parts)
             if not heading.endswith("?") or len(answer.strip()) < 60]
    assert short == []


def test_nothing_refers_to_a_text_outside() -> None:
    outside = [(name, hit[0]) for name, text in texts() for lower in [text.lower()]
               for word, pattern in OUTSIDE.items() if word in lower for hit in pattern.finditer(text)]
    assert outside == []
