"""Trees of many files: whatever ends one of the processes, no file is left halfway; a full disk, names of any bytes."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from sssjob.cli._trees import Tree
from sssjob.consequences import CONSEQUENCES
from tests.cli.conftest import Command

SCRIPT = "#!/bin/sh\n#SBATCH --job-name=a\ndate\n"
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are copies of this one, which may have threads of other tests."""
    monkeypatch.setattr("sssjob.processes.threading.active_count", lambda: 1)


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
    assert any(line.startswith("\\u{001B}[31m.sh:4:1: SSS512 ") for line in err.splitlines())      # the first by name
    assert {f["file"] for f in json.loads(Path("r.json").read_text())["files"]} == {
        *map(os.fsdecode, names), "a.sh", "b.sh", "c.sh"}


def test_results_that_only_the_format_names(sssjob: Command, tree: Path) -> None:
    """HTCondor's files have no blanks in their names: what two files share is told, not overwritten in silence."""
    (tree / "d e.sh").write_text(SCRIPT)
    (tree / "d_e.sh").write_text(SCRIPT)
    code, out, err = sssjob("convert", "-q", "-f", "slurm", "-t", "htcondor", "scripts", "--out", "out", "--jobs", "1")
    assert code == 1 and "collision  1" in out
    assert err == "sssjob: d_e.sh: the result d_e.sub is that of d e.sh too, and holds one of them\n"


def test_what_is_said_of_a_file_is_not_said_again_of_the_next(sssjob: Command, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for name in ("a.sh", "b.sh", "c.sh"):
        (folder / name).write_text("#!/bin/sh\n#SBATCH --hint=multithread\n#SBATCH --exclude=n1,n2\n")
    code, _, err = sssjob("convert", "-f", "slurm", "-t", "pbspro", str(folder), "--out", str(tmp_path / "o"))
    files = [line.partition(":")[0] for line in err.splitlines()]
    last = err.splitlines()[-1]
    assert code == 0 and set(files[:-1]) == {"a.sh"} and len(files) == len(set(err.splitlines()))
    assert re.fullmatch(r"sssjob: \d+ findings that say the same of other files are not shown; --report and --json "
                        r"have all of them", last)
    order = {str(word): number for number, word in enumerate(CONSEQUENCES)}
    said = [(line.partition("[")[2].partition("]")[0], line.split(":")[1]) for line in err.splitlines()[:-1]]
    places = [(order.get(word, len(order)), int(at) if at.isdigit() else 0) for word, at in said]
    assert places == sorted(places)
    # strict counts what is not shown, too
    assert sssjob("convert", "--strict", "-q", "-f", "slurm", "-t", "pbspro", str(folder), "--out",
                  str(tmp_path / "o")).code == 1
