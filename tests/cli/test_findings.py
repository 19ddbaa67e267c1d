"""How findings look on a terminal."""

from __future__ import annotations

import io

import pytest

from sssjob.cli._findings import coloured, masked, picture, show
from sssjob.cli._tables import table
from sssjob.findings import Finding, Findings
from sssjob.xml.encoding import excerpt


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
    screen.truncate(screen.seek(0))
    show(finding(), brief=True)             # of a tree: thousands of them
    assert screen.getvalue() == "f.xml:1:3: SSS301 \x1b[31;1merror\x1b[0m unknown element\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colour(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setenv(name, value)
    assert not coloured(screen)
    show(finding())
    assert "\x1b" not in screen.getvalue() and screen.getvalue().endswith("^\n")


def test_long_lines_are_cut_around_the_place() -> None:
    finding = Findings("f").add("SSS301", "x", "m", line=1, column=500, excerpt="a" * 499 + "X" + "b" * 499)
    assert finding is not None
    source, caret = picture(finding)
    assert len(source) < 105 and source[caret.index("^")] == "X"


def test_wide_and_hostile_characters() -> None:
    finding = Findings("f").add("SSS301", "x", "m", line=1, column=3, excerpt="漢\x1bX")
    assert finding is not None
    assert picture(finding) == ["    漢\\u{001B}X", "              ^"]


def test_place_in_a_line_that_is_cut() -> None:
    """A line longer than an excerpt comes with what is around the place (sssjob.xml.encoding.excerpt)."""
    line = "a" * 999 + "X" + "b" * 999
    finding = Findings("f").add("SSS301", "x", "m", line=1, column=1000, excerpt=excerpt(line, 1000))
    assert finding is not None
    source, caret = picture(finding)
    assert (len(finding.excerpt) < 410, source[caret.index("^")]) == (True, "X")


def test_findings_without_a_line_name_the_path(capsys: pytest.CaptureFixture[str]) -> None:
    finding = Findings("f.json").add("SSS112", "x", "m", path="/Job/Id\x1b")
    assert finding is not None
    show(finding)
    assert capsys.readouterr().err == "f.json:/Job/Id\\u{001B}: SSS112 error m\n"


@pytest.mark.parametrize(("line", "shown"), [
    ('<Variable name="API_TOKEN">t0p</Variable><Variable name="A">b</Variable>',
     '<Variable name="API_TOKEN">***</Variable><Variable name="A">b</Variable>'),
    ("<Variable x='y' name = 'db_Password' >1</Variable>", "<Variable x='y' name = 'db_Password' >*</Variable>"),
    ('<Variable name="A" value="pass">b</Variable>', '<Variable name="A" value="pass">b</Variable>'),
])
def test_secrets_in_the_source_line_are_masked(line: str, shown: str) -> None:
    assert masked(line) == shown


def test_tables() -> None:
    rows: list[list[str | list[str]]] = [["a", "漢字\x1b"], ["a long cell that is folded", ["x", "y"]]]
    assert table(rows, ("One", "Two"), 24) == [
        "One          Two", "────────────────────────", "a            漢字\\u{001B", "             }",
        "a long cell  x", "that is      y", "folded"]
    assert table([["a\nb", []]], ("T", "U"))[2:] == ["a↵b"]
    assert table([["é" * 3, "b"]], ("T", "U")) == ["T    U", "──────", "ééé  b"]
