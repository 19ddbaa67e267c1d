"""Work on many files in several processes: whatever ends one of them, no file is left halfway and no process behind."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sssjob.cli._pool import Stopped, Stops, in_order, processes, stoppable
from sssjob.cli._trees import Tree
from tests.cli.conftest import Command

NAMES = [f"{n:03}" for n in range(120)]
SCRIPT = "#!/bin/sh\n#SBATCH --job-name=a\ndate\n"
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def echo(name: str) -> str:
    return f"{name} {os.getpid() != FIRST}"


def signalled(name: str) -> str:
    """A signal to the first process while a file is made, and the file all the same."""
    if name == "007":
        os.kill(FIRST, NUMBER)
    Path(name).write_text("whole")
    return name


FIRST, NUMBER = os.getpid(), signal.SIGTERM


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Processes are copies of this one, which may have threads of other tests."""
    monkeypatch.setattr("sssjob.cli._pool.threading.active_count", lambda: 1)
    monkeypatch.setattr(sys.modules[__name__], "FIRST", os.getpid())
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "scripts"
    root.mkdir()
    for name in ("a.sh", "b.sh", "c.sh"):
        (root / name).write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return root


def temporary(folder: Path) -> list[Path]:
    return list(folder.rglob(".sssjob-*"))


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_come_in_order(alone: None, jobs: int) -> None:
    """From one process or several; the collector sees everything again afterwards."""
    before = gc.get_freeze_count()
    assert list(in_order(echo, str, NAMES, jobs, Stops())) == [f"{n} {jobs > 1}" for n in NAMES]
    assert gc.get_freeze_count() == before
    assert list(in_order(echo, str, [], jobs, Stops())) == []


@pytest.mark.parametrize(("asked", "files", "made"), [(None, 3, 1), (3, 2, 2), (3, 100, 3), (1, 9999, 1), (4, 0, 1)])
def test_how_many_processes(asked: int | None, files: int, made: int) -> None:
    assert processes(asked, files) == made
    assert processes(None, 10**6) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
def test_a_signal_ends_the_work_between_two_files(
        alone: None, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, jobs: int) -> None:
    monkeypatch.setattr(sys.modules[__name__], "NUMBER", number)
    done: list[str] = []
    with pytest.raises((KeyboardInterrupt, Stopped)) as caught, stoppable() as stops:
        for name in in_order(signalled, str, NAMES, jobs, stops):
            done.append(name)
    assert getattr(caught.value, "status", 130) == SIGNALS[number]
    assert len(done) < len(NAMES) and done == NAMES[:len(done)]
    assert {p.read_text() for p in Path().iterdir()} == {"whole"} and Path("007").exists()
    assert jobs > 1 or len(list(Path().iterdir())) == 8
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)


def test_a_signal_that_is_ignored_stays_ignored(alone: None) -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


ORPHANS = """
import os, signal, sys
from pathlib import Path
from sssjob.cli._pool import Stops, in_order
FIRST = os.getpid()
def work(name):
    if name == "7":
        os.kill(FIRST, signal.SIGKILL)
    Path(sys.argv[1], name).write_text("whole")
    return name
print(list(in_order(work, str, [str(n) for n in range(1000)], 2, Stops())))
"""


def test_no_process_outlives_the_first(tmp_path: Path) -> None:
    """Killed, so that it can end nobody: the others end by themselves, which closes their standard output."""
    done = subprocess.run([sys.executable, "-c", ORPHANS, str(tmp_path)], capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL and done.stdout == b""
    assert {p.read_text() for p in tmp_path.iterdir()} == {"whole"} and len(list(tmp_path.iterdir())) < 1000


DEATHS = """
import os, signal, sys, time
from pathlib import Path
from sssjob.cli import _pool
from sssjob.cli._pool import Stops, in_order
_pool._GRACE_S = 0.5
folder = Path(sys.argv[1])
def work(name):
    if name == "7" or (name == "9" and not (folder / "9").exists()):
        (folder / name).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "hang":
        (folder / "pid").write_text(str(os.getpid()))
        time.sleep(1000)
    if name == "wrong":
        while not (folder / "pid").exists():
            time.sleep(0.01)
        raise ValueError("wrong")
    return name
"""


def program(text: str, folder: Path) -> str:
    """What a program prints that may take copies of itself, having no threads."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", DEATHS + text, str(folder)], capture_output=True,
                          text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("jobs", [2, 5])
def test_a_process_that_is_killed_costs_its_name_alone(tmp_path: Path, jobs: int) -> None:
    """A name over which one process ends is tried once more, and given up when the second one ends too."""
    names = [str(n) for n in range(200)]
    assert program(f"print(*in_order(work, 'died {{}}'.format, {names!r}, {jobs}, Stops()), sep=',')", tmp_path) == (
        ",".join("died 7" if name == "7" else name for name in names) + "\n")


def test_a_process_that_does_not_end_is_killed(tmp_path: Path) -> None:
    """After the grace: what another one raised reaches the caller, and the one that hangs is gone."""
    out = program("try:\n list(in_order(work, str, ['hang', 'wrong'], 2, Stops()))\n"
                  "except ValueError as error:\n print(error)\n", tmp_path)
    assert out == "wrong\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


# --- the command
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("number", SIGNALS, ids=lambda n: n.name)
def test_the_command_ends_by_a_signal(sssjob: Command, tree: Path, alone: None, monkeypatch: pytest.MonkeyPatch,
                                      number: signal.Signals, jobs: str) -> None:
    """What is there is whole; no report, no table, nothing temporary; one line."""
    monkeypatch.chdir(tree.parent)
    whole = sssjob("convert", "-q", "-f", "slurm", "-t", "pbspro", "scripts/a.sh").out
    real, first = Tree.convert, os.getpid()

    def told(self: Tree, file: str) -> object:
        if file == "b.sh":
            os.kill(first, number)
        return real(self, file)

    monkeypatch.setattr(Tree, "convert", told)
    code, out, err = sssjob("convert", "-q", "-f", "slurm", "-t", "pbspro", "scripts", "--out", "out", "--report", "r",
                            "--jobs", jobs)
    said = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert (code, out, err) == (SIGNALS[number], "", f"sssjob: {said}\n")
    assert {p.read_text() == whole for p in Path("out").iterdir()} <= {True}
    assert not Path("r").exists() and temporary(tree.parent) == []


def test_a_full_disk(sssjob: Command, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result of before stays as it was, what still fits is written, and the report says which did not."""
    real = os.replace
    Path("out").mkdir()
    Path("out/b.sh").write_text("before")

    def full(one: str, other: str | Path) -> None:
        if str(other).endswith("b.sh"):
            raise OSError(28, "No space left on device", one)
        real(one, other)

    monkeypatch.setattr(os, "replace", full)
    code, out, err = sssjob("convert", "-q", "-f", "slurm", "-t", "pbspro", "scripts", "--out", "out", "--jobs", "1")
    assert code == 3 and "unwritten  1" in out and err == "sssjob: b.sh: out/b.sh: No space left on device\n"
    assert Path("out/b.sh").read_text() == "before" and Path("out/c.sh").exists() and temporary(tree.parent) == []


def test_names_of_any_bytes(sssjob: Command, tree: Path) -> None:
    """A line break, a byte that is no UTF-8, an escape, an option: converted under their names, told on one line."""
    names = [b"a\nb.sh", b"\xff\xfe.sh", b"\x1b[31m.sh", b"-rf.sh", "ü x.sh".encode()]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(tree), name))).write_text(SCRIPT + "srun ./a\n")
    code, out, err = sssjob("convert", "-f", "slurm", "-t", "pbspro", "scripts", "--out", "out", "--report", "r.json")
    assert code == 0 and "converted  8" in out
    assert set(os.listdir(b"out")) == {*names, b"a.sh", b"b.sh", b"c.sh"}
    assert all(line.isprintable() for line in err.splitlines())
    assert any(line.startswith("a\\u{000A}b.sh:4:1: SSS512 ") for line in err.splitlines())
    assert {f["file"] for f in json.loads(Path("r.json").read_text())["files"]} == {
        *map(os.fsdecode, names), "a.sh", "b.sh", "c.sh"}


def test_results_that_only_the_format_names(sssjob: Command, tree: Path) -> None:
    """HTCondor's files have no blanks in their names: what two files share is told, not overwritten in silence."""
    (tree / "d e.sh").write_text(SCRIPT)
    (tree / "d_e.sh").write_text(SCRIPT)
    code, out, err = sssjob("convert", "-q", "-f", "slurm", "-t", "htcondor", "scripts", "--out", "out", "--jobs", "1")
    assert code == 1 and "collision  1" in out
    assert err == "sssjob: d_e.sh: the result d_e.sub is that of d e.sh too, and holds one of them\n"
