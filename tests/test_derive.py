"""What is generated is up to date, and the table of what is implemented has no holes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sssjob.derive.__main__ import generated
from sssjob.derive.conformance import STATEMENTS, statements
from sssjob.rules import RULES
from sssjob.vocabulary import ELEMENTS

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(("name", "text"), [(n, make()) for n, make in generated()], ids=[n for n, _ in generated()])
def test_generated_files_are_up_to_date(name: str, text: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == text, "run: python -m sssjob.derive"


def test_no_demand_without_an_answer() -> None:
    assert [s for s in statements() if s.level in ("MUST", "SHOULD") and not (s.module and s.test)] == []
    assert {s.level for s in STATEMENTS} == {"MUST", "SHOULD", "MAY"}


@pytest.mark.parametrize("path", sorted({p for s in statements() for p in (s.module, s.test)}))
def test_what_the_table_names_exists(path: str) -> None:
    assert (ROOT / path).is_file()


def test_every_element_and_rule_has_its_place_in_the_reference() -> None:
    elements = (ROOT / "docs/reference/elements.md").read_text(encoding="utf-8")
    rules = (ROOT / "docs/reference/rules.md").read_text(encoding="utf-8")
    assert [e.name for e in ELEMENTS if f"| `{e.name}` |" not in elements] == []
    assert [r for r in RULES if f'<a id="{r.lower()}"></a>' not in rules] == []
