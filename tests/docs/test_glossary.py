"""``docs/glossary.md`` stays short, and no term of it is a word that only the page uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| ([a-z ]+) \| (.+) \|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
TERMS = dict(row for row in ROWS if row[0] != "term")
CODE = [path.read_text() for room in ("sssjob", "translators", "psij", "templates")
        for path in sorted((ROOT / room).rglob("*.py")) if not any(part.is_symlink() for part in path.parents)]


def test_there_are_few_and_each_once() -> None:
    assert 0 < len(TERMS) <= 25
    assert len(ROWS) - 1 == len(TERMS) and list(TERMS) == sorted(TERMS)


def test_each_is_explained_by_a_sentence() -> None:
    assert [term for term, meaning in TERMS.items() if not meaning.endswith((".", "...")) or len(meaning) < 40] == []


@pytest.mark.parametrize("term", TERMS)
def test_the_code_uses_it(term: str) -> None:
    used = re.compile(rf"\b{term}s?\b", re.IGNORECASE)
    assert sum(bool(used.search(text)) for text in CODE) >= 3
