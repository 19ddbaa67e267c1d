"""``docs/glossary.md`` stays short, and no term of it is a word that only the page uses."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| ([a-z ]+) \| (.+) \|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
TERMS = dict(row for row in ROWS if row[0] != "term")


def test_there_are_few_and_each_once() -> None:
    assert 0 < len(TERMS) <= 25
    assert len(ROWS) - 1 == len(TERMS) and list(TERMS) == sorted(TERMS)


def test_each_is_explained_by_a_sentence() -> None:
    assert [term for term, meaning in TERMS.items() if not meaning.endswith((".", "...")) or len(meaning) < 40] == []


def test_the_code_uses_each() -> None:
    """In three files or more."""
    uses = dict.fromkeys(TERMS, 0)
    patterns = {term: re.compile(rf"\b{term}s?\b", re.IGNORECASE) for term in TERMS}
    for room in ("sssjob", "translators", "psij", "templates"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if any(folder.is_symlink() for folder in path.parents):
                continue
            text = path.read_text()
            for term in [term for term, files in uses.items() if files < 3]:
                uses[term] += bool(patterns[term].search(text))
    assert [term for term, files in uses.items() if files < 3] == []
