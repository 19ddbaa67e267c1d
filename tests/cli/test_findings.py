"""How findings look on a terminal."""

from __future__ import annotations

import io

import pytest

from sssjob.cli._findings import coloured, picture, show
from sssjob.findings import Finding, Findings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def finding() -> Finding:
    found = Findings("f.xml").add("SSS301", "Colour", "unknown element", line=1, column=3, excerpt="  <Colour/>")
    assert found is not None
    return found


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal; called in the test, because pytest sets its own between fixture and test."""
    made = Terminal()
    monkeypatch.setattr("sys.stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return made


def test_caret_and_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    show(finding())
    assert screen.getvalue() == (
        "f.xml:1:3: SSS301 \x1b[31;1merror\x1b[0m unknown element\n      <Colour/>\n      ^\n")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colour(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setenv(name, value)
    assert not coloured(screen)
    show(finding())
    assert "\x1b" not in screen.getvalue() and screen.getvalue().endswith("^\n")


def test_long_lines_are_cut_around_the_place() -> None:
    found = Findings("f").add("SSS301", "x", "m", line=1, column=500, excerpt="a" * 499 + "X" + "b" * 499)
    assert found is not None
    source, caret = picture(found)
    assert len(source) < 105 and source[caret.index("^")] == "X"


def test_wide_and_hostile_characters() -> None:
    found = Findings("f").add("SSS301", "x", "m", line=1, column=3, excerpt="漢\x1bX")
    assert found is not None
    assert picture(found) == ["    漢\\u{001B}X", "              ^"]
