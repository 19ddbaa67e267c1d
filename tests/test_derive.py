"""What is generated is up to date, and the table of what is implemented has no holes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from sssjob.derive.__main__ import generated
from sssjob.derive.conformance import STATEMENTS as OF_JOBS
from sssjob.derive.conformance import Cited, citations, conformance, rows_of_tables
from sssjob.derive.exchange import EXCHANGE
from sssjob.document.vocabulary import ELEMENTS
from sssjob.rules import RULES

ROOT = Path(__file__).resolve().parents[1]
STATEMENTS = (*OF_JOBS, *EXCHANGE)


@cache
def cited() -> Cited:
    """The tests that cite each sentence."""
    return citations()


@pytest.mark.parametrize(("name", "text_of"), [pytest.param(*file, id=file[0]) for file in generated()])
def test_generated_files_are_up_to_date(name: str, text_of: Callable[[], str]) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == text_of(), "run: python -m sssjob.derive"


def test_every_sentence_is_cited_by_a_test() -> None:
    assert [(s.section, s.number) for s in STATEMENTS if not cited().get((s.section, s.number))] == []


def test_every_row_of_a_table_is_shown() -> None:
    assert [t for t in sorted({s.section for s in rows_of_tables()}) if not cited().get((t, "*"))] == []
    lines = [line for line in conformance().splitlines() if line.startswith("| ")]
    assert len(lines) > 150 and [line for line in lines if not line.split(" | ")[-1].strip(" |")] == []


def test_what_is_cited_exists() -> None:
    known = {(s.section, s.number) for s in STATEMENTS} | {(s.section, "*") for s in rows_of_tables()}
    assert sorted(set(cited()) - known) == []


def _defined(path: Path) -> frozenset[str]:
    """Names that a module defines at its top, and ``Class.method`` of its classes."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{n.name}" for n in node.body if isinstance(n, ast.FunctionDef)}
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(
            node, ast.AnnAssign) else []
        names |= {t.id for t in targets if isinstance(t, ast.Name)}
    return frozenset(names)


def test_what_the_table_names_exists() -> None:
    places = {p for places in cited().values() for p in places} | {s.code for s in (*STATEMENTS, *rows_of_tables())}
    names: dict[str, set[str]] = {}
    for place in places:
        file, _, name = place.partition("::")
        names.setdefault(file, set()).update([name] if name else [])
    assert {file: gone for file in names if (gone := names[file] - _defined(ROOT / file))} == {}


def test_levels() -> None:
    assert {s.level.upper() for s in STATEMENTS} == {"MUST", "SHOULD", "MAY", "-"}
    assert len({(s.section, s.number) for s in STATEMENTS}) == len(STATEMENTS)


def test_citations_are_read_from_the_source(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text(
        '@spec("4.0", 1, "a")\n@other\n@spec("5.1 Table 2")\ndef test_a() -> None:\n    pass\n\n\n'
        "def test_b() -> None:\n    pass\n", encoding="utf-8")
    place = ["tests/test_x.py::test_a"]
    assert citations(tmp_path / "tests") == {("4.0", "1"): place, ("4.0", "a"): place, ("5.1 Table 2", "*"): place}


def test_every_element_and_rule_has_its_place_in_the_reference() -> None:
    elements = (ROOT / "docs/reference/elements.md").read_text(encoding="utf-8")
    rules = (ROOT / "docs/reference/rules.md").read_text(encoding="utf-8")
    assert [e.name for e in ELEMENTS if f"| `{e.name}` |" not in elements] == []
    assert [r for r in RULES if f'<a id="{r.lower()}"></a>' not in rules] == []


def test_every_rule_that_the_source_names_is_in_the_table() -> None:
    named = {rule for top in ("sssjob", "translators") for path in (ROOT / top).rglob("*.py")
             for rule in re.findall(r'"(SSS\d{3})"', path.read_text(encoding="utf-8"))}
    assert named - set(RULES) <= {"SSS123"}
