"""Commands on a group that is too large to be held: they say and write what they say of the same group read whole."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sssjob.limits import LIMITS
from tests.cli.conftest import Answer, Command

RATES = """version = "1"
name = "r"
currency = "EUR"
[[rate]]
name = "Processors"
type = "VBR"
rate = 0.5
per = "hour"
"""
JOB = ("  <Job>\n    <Id>{n}</Id>\n    <User>u{user}</User>\n    <State>Completed</State>\n"
       "    <StartTime>{start}</StartTime>\n    <EndTime>{end}</EndTime>\n    <Delivered>\n"
       "      <Processors>{n}</Processors>\n      <Duration>60</Duration>\n    </Delivered>\n  </Job>\n")
LATE = ("  <JobDefaults>\n    <Project>red</Project>\n    <Requested><Processors>4</Processors></Requested>\n"
        "  </JobDefaults>\n")


def group(jobs: int, more: str = "") -> str:
    made = (JOB.format(n=n, user=n % 7, start=1_600_000_000 + n, end=1_600_000_060 + n) for n in range(1, jobs + 1))
    return f"<JobGroup>\n  <Id>g</Id>\n{''.join(made)}{more}</JobGroup>\n"


DOCUMENTS = {
    "plain": group(9), "late": group(5, LATE), "twice": group(3, JOB.format(n=2, user=1, start=7, end=9)),
    "again": group(3, JOB.format(n=2, user=2, start=1_600_000_002, end=1_700_000_000)),
    "unknown": group(3, "  <Job>\n    <Colour>red</Colour>\n  </Job>\n"),
    "charged": group(3, "  <Job>\n    <Id>c</Id>\n    <Charge>7</Charge>\n    <Delivered><Processors>1</Processors>"
                        "<Duration>5</Duration></Delivered>\n  </Job>\n"),
    "waits": group(2, "  <Job>\n    <Id>w</Id>\n    <Dependency>elsewhere</Dependency>\n  </Job>\n"),
    "comment": group(2, "  <!-- why -->\n"), "broken": group(2, "  <Job><Id>5<Id></Job>\n"),
    "one line": group(4).replace("\n", "").replace("  ", ""),
}
COMMANDS = (
    ("check", "{f}"), ("check", "--json", "{f}"), ("check", "--policy", "warn", "--strict", "{f}"),
    ("convert", "-t", "sss", "{f}"), ("convert", "-t", "sss-json", "--option", "indent=0", "{f}"),
    ("convert", "-t", "sss", "--to-profile", "mam", "--policy", "warn", "{f}"), ("convert", "-t", "csv", "{f}"),
    ("convert", "-t", "jsonl", "--policy", "ignore", "{f}"), ("convert", "-t", "sss", "--option", "odd=1", "{f}"),
    ("charge", "--rates", "{r}", "{f}"), ("charge", "--rates", "{r}", "--itemise", "{f}"),
    ("charge", "--rates", "{r}", "--json", "--policy", "warn", "{f}"), ("quote", "--rates", "{r}", "{f}"),
    ("quote", "--rates", "{r}", "--json", "{f}"), ("account", "--by", "User", "{f}"),
    ("show", "{f}"), ("show", "--json", "{f}"), ("show", "--brief", "{f}"), ("show", "--origins", "{f}"),
    ("account", "--rates", "{r}", "--policy", "warn", "{f}"),
)


@pytest.fixture
def both(sssjob: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[Answer, Answer]]:
    """A command on a document as a whole, and part by part."""
    (tmp_path / "rates.toml").write_text(RATES)

    def run(text: str, arguments: tuple[str, ...]) -> tuple[Answer, Answer]:
        (tmp_path / "g.xml").write_text(text)
        given = [a.format(f=tmp_path / "g.xml", r=tmp_path / "rates.toml") for a in arguments]
        whole = sssjob(*given)
        with monkeypatch.context() as patched:
            patched.setattr("sssjob.cli._options.LIMITS", replace(LIMITS, whole_bytes=0, part_bytes=1))
            return whole, sssjob(*given)
    return run


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_as_of_the_whole(both: Callable[..., tuple[Answer, Answer]], name: str, arguments: tuple[str, ...]) -> None:
    whole, streamed = both(DOCUMENTS[name], arguments)
    assert streamed == whole


@pytest.mark.parametrize("kept", ["all", "last"])
def test_attempts(both: Callable[..., tuple[Answer, Answer]], tmp_path: Path, kept: str) -> None:
    """Which attempt is the last is known before the first is charged."""
    (tmp_path / "rates.toml").write_text(f'attempts = "{kept}"\n{RATES}')
    whole, streamed = both(DOCUMENTS["again"].replace("<StartTime>1600000002</StartTime>\n    <EndTime>17",
                                                      "<StartTime>1600000300</StartTime>\n    <EndTime>17"),
                           ("charge", "--rates", "{r}", "--itemise", "{f}"))
    assert streamed == whole and ("a later attempt" in whole.err) == (kept == "last")


def test_of_a_pipe(sssjob: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What can be read only once is kept on the disk."""
    (tmp_path / "g.xml").write_text(DOCUMENTS["plain"])
    whole = sssjob("convert", "-t", "sss", tmp_path / "g.xml")
    monkeypatch.setattr("sssjob.cli._options.LIMITS", replace(LIMITS, whole_bytes=100, part_bytes=1))
    read, write = os.pipe()
    os.write(write, DOCUMENTS["plain"].encode())
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(pipe))
        assert sssjob("convert", "-f", "sss", "-t", "sss").out == whole.out


def test_a_pipe_without_end(sssjob: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk does not fill up."""
    monkeypatch.setattr("sssjob.cli._options.LIMITS", replace(LIMITS, whole_bytes=100, spool_bytes=500))
    read, write = os.pipe()
    os.write(write, DOCUMENTS["plain"].encode())
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(pipe))
        answer = sssjob("check", "-f", "sss", "-")
    assert answer.code == 1 and "SSS110 error larger than spool_bytes = 500 bytes" in answer.err


def test_nothing_is_left_half_written(sssjob: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A job that is refused at the end of the document keeps the file that was there."""
    monkeypatch.setattr("sssjob.cli._options.LIMITS", replace(LIMITS, whole_bytes=0, part_bytes=1))
    (tmp_path / "g.xml").write_text(DOCUMENTS["unknown"])
    (tmp_path / "out.xml").write_text("before")
    assert sssjob("convert", "-t", "sss", "-o", tmp_path / "out.xml", tmp_path / "g.xml").code == 1
    assert (tmp_path / "out.xml").read_text() == "before" and len(list(tmp_path.iterdir())) == 2


#: The command in a process where groups of 1 kB are large, and then the peak of its memory. It is forked for it: what
#: a program is started in counts as that of the one that started it, which may have held more than the command does.
PEAK = """import os, sys
from dataclasses import replace
if pid := os.fork():
    _, status, usage = os.wait4(pid, 0)
    sys.stderr.write(f"\\npeak {usage.ru_maxrss}")
    os._exit(os.waitstatus_to_exitcode(status))
from sssjob import limits
limits.LIMITS = replace(limits.LIMITS, whole_bytes=1000)
from sssjob.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("arguments", [("check",), ("convert", "-t", "sss", "-o", "/dev/null"),
                                       ("quote", "--rates", "{r}")], ids=" ".join)
def test_memory(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """None of the jobs by which one group is larger costs a sixth of what one takes in a group that is read whole."""
    (tmp_path / "rates.toml").write_text(RATES)
    peaks = []
    for jobs in (2_000, 6_000):
        (tmp_path / "g.xml").write_text(group(jobs).replace("Delivered", "Requested"))
        command = [sys.executable, "-W", "ignore", "-c", PEAK,
                   *(a.format(r=tmp_path / "rates.toml") for a in arguments), "g.xml"]
        child = subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert child.returncode in (0, 1)
        peaks.append(int(child.stderr.rpartition("peak ")[2]) * 1024)
    assert peaks[1] - peaks[0] < 4_000 * 1_500, peaks
