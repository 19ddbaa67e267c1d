"""The live line: what runs is told apart from what is queued and what waits, from the first moment on."""

from __future__ import annotations

import io
import re
import time

import pytest

from sssjob.run.progress import Progress, _Line


class Terminal(io.StringIO):
    """A terminal that keeps what is written."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("sssjob.run.progress.time.monotonic", lambda: now[0])
    return now


def test_the_line(clock: list[float]) -> None:
    progress = Progress(7, shown=False)
    progress.begin({"a": "done", "b": "failed", "c": "running", "d": "queued", "e": "waiting", "f": "waiting",
                    "g": "kept"})
    assert progress.line() == "3 of 7 jobs ended, 1 failed, 1 running, 1 queued, 2 waiting, 0:00:00"
    clock[0] += 65
    for name in "cde":
        progress.changed(name, "done")
    assert progress.line() == "6 of 7 jobs ended, 1 failed, 1 waiting, 0:01:05, 2.77 a minute"
    progress.changed("f", "skipped")
    assert progress.line() == "7 of 7 jobs ended, 1 failed, 1 skipped"


def test_what_the_journal_knew_is_no_rate(clock: list[float]) -> None:
    """A client that takes over counts what had ended, and not as its own speed."""
    progress = Progress(shown=False)
    progress.begin({str(n): "done" if n < 100 else "running" for n in range(200)})
    clock[0] += 60
    assert progress.line() == "100 of 200 jobs ended, 100 running, 0:01:00"
    progress.changed("100", "done")
    progress.changed("100", "done")
    assert progress.line() == "101 of 200 jobs ended, 99 running, 0:01:00, 1 a minute"
    # where it does not fit, rather no rate than half of it
    assert [str(_Line(progress, width).__rich__()) for width in (54, 53)] == [
        progress.line(), "101 of 200 jobs ended, 99 running, 0:01:00"]


@pytest.mark.parametrize("jobs", [3, 200])
def test_it_is_drawn_at_once_and_ends_have_lines(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has to happen first. Of many jobs only bad ends have a line of their own."""
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    progress = Progress(jobs, stream)
    progress.begin({str(n): "queued" for n in range(jobs)})
    until = time.monotonic() + 60
    while f"0 of {jobs} jobs ended, {jobs} queued" not in stream.getvalue():
        assert time.monotonic() < until
        time.sleep(0.01)
    for n in range(3):
        progress.changed(str(n), "failed" if n else "done", "exit code 1" if n == 2 else "")
    progress.close()
    said = re.findall(r"(\d+: (?:done|failed)[^\n\x1b]*)", stream.getvalue())
    assert [one.strip() for one in said] == ["0: done", "1: failed", "2: failed: exit code 1"][1 if jobs > 20 else 0:]


@pytest.mark.parametrize(("stream", "shown", "text"), [
    (io.StringIO(), None, "sssjob: the disk is full\n"), (io.StringIO(), False, ""), (Terminal(), False, "")])
def test_a_warning_is_told_at_once(stream: io.StringIO, shown: bool | None, text: str) -> None:
    """Also where no line is drawn; not to who wants no progress."""
    Progress(shown=shown, stream=stream).warn("the disk is full")
    assert stream.getvalue() == text


def test_a_warning_stands_above_the_line() -> None:
    stream = Terminal()
    with Progress(1, stream) as progress:
        progress.begin({"a": "running"})
        progress.warn("the disk\n[red] is full")
    assert "sssjob: the disk\\u{000A}[red] is full" in stream.getvalue()
