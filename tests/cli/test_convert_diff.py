"""``convert --diff``: a diff that patch(1) applies, with the reasons beside each hunk."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.cli import main
from sssjob.cli._diffs import difference

FIXTURES = Path(__file__).parents[1] / "fixtures" / "scripts"
SCRIPTS = sorted(p for p in FIXTURES.glob("*/made-*") if p.parent.name != "htcondor")
Output = pytest.CaptureFixture[str]
needs_patch = pytest.mark.skipif(shutil.which("patch") is None, reason="patch(1) is not installed")
SGE = "#!/bin/sh\n#$ -N a\n#$ -l gpu=1\n\n" + "date\n" * 9 + "echo $NSLOTS\n"


def patched(folder: Path, before: bytes, diff: str) -> bytes:
    """What patch(1) makes of a text."""
    (folder / "x").write_bytes(before)
    (folder / "d").write_bytes(diff.encode("utf-8", "surrogateescape"))
    subprocess.run(["patch", "-s", "--binary", "--no-backup-if-mismatch", "-o", "y", "x", "d"], cwd=folder, check=True)
    return (folder / "y").read_bytes()


def test_the_reasons_stand_beside_each_hunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.sh").write_text(SGE)
    assert main(["convert", "-q", "--diff", "--body", "translate", "-f", "sge", "-t", "slurm", "a.sh"]) == 0
    head, first, why, last = capsys.readouterr().out.split("@@ ", 3)
    assert (head, first) == ("--- a.sh\tsge\n+++ a.sh\tslurm\n", "-1,6 +1,5 ")
    assert "; SSS502 [looks] Environment: " in why and "; line 3: SSS501 [breaks] -l gpu 1: " in why
    assert why.splitlines()[1:] == [" #!/bin/sh", "-#$ -N a", "-#$ -l gpu=1", "+#SBATCH --job-name=a", " ", " date",
                                    " date"]
    assert last == "-11,4 +10,4 @@\n date\n date\n date\n-echo $NSLOTS\n+echo ${SLURM_NTASKS:-1}\n"


@needs_patch
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: f"{p.parent.name}-{p.stem}")
@pytest.mark.parametrize("target", ["slurm", "pbspro", "lsf"])
def test_patch_makes_the_converted_script(path: Path, target: str, tmp_path: Path, capsys: Output) -> None:
    arguments = ["convert", "-q", "-f", path.parent.name, "-t", target, "--policy", "warn", str(path)]
    status = main(arguments)
    text = capsys.readouterr().out
    assert main([*arguments, "--diff"]) == status
    diff = capsys.readouterr().out
    if status == 0:
        assert patched(tmp_path, path.read_bytes(), diff) == text.encode("utf-8", "surrogateescape")


@needs_patch
@given(st.lists(st.sampled_from(["a", "b", "c\r", "-x", "@@", "", "\xe9"]), max_size=30),
       st.lists(st.sampled_from(["a", "b", "c\r", "+x", "", "\xe9"]), max_size=30), st.booleans(), st.booleans())
def test_any_two_texts(tmp_path_factory: pytest.TempPathFactory, before: list[str], after: list[str], ends: bool,
                       ends_too: bool) -> None:
    old, new = ("\n".join(lines) + "\n" * end for lines, end in ((before, ends), (after, ends_too)))
    diff = difference(("x", "slurm", old.encode()), ("x", "lsf", new), [])
    assert bool(diff) == (old != new)
    if diff and new:            # patch(1) removes a file that becomes empty
        assert patched(tmp_path_factory.mktemp("d"), old.encode(), diff) == new.encode()


def test_of_a_tree_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "t"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "a.sh").write_text("#!/bin/sh\n#$ -N a\n")
    (root / "b.sh").write_text("#!/bin/sh\n#$ -N b\n")
    (root / "plain").write_text("words\n")
    assert main(["convert", "-q", "--diff", "-f", "auto", "-t", "slurm", "t"]) == 0
    assert [line.split("@@ SSS")[0] for line in capsys.readouterr().out.splitlines()] == [
        "--- b.sh\tsge", "+++ b.sh\tslurm", "@@ -1,2 +1,2 ", " #!/bin/sh", "-#$ -N b", "+#SBATCH --job-name=b",
        "--- deep/a.sh\tsge", "+++ deep/a.sh\tslurm", "@@ -1,2 +1,2 ", " #!/bin/sh", "-#$ -N a",
        "+#SBATCH --job-name=a"]
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a.sh", "b.sh", "deep", "plain", "t"]
    assert main(["convert", "--json", "--diff", "-f", "auto", "-t", "slurm", "t"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [bool(r.get("diff")) for r in records] == [True, False, True, False]


@pytest.mark.parametrize("arguments", [
    ["-f", "sge", "-t", "sss", "a.sh"], ["-f", "sge", "-t", "htcondor", "a.sh"],
    ["-f", "sge", "-t", "slurm", "--out", "d", "a.sh"], ["-f", "sss", "-t", "slurm", "a.xml"],
])
def test_only_scripts_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.sh").write_text(SGE)
    Path("a.xml").write_text("<Job><Executable>/bin/date</Executable></Job>")
    assert main(["convert", "--diff", *arguments]) == 2


def test_an_id_of_another_system_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    """Of a document it is told that the job is not in it; a script waits for none that could be."""
    monkeypatch.chdir(tmp_path)
    Path("a.sh").write_text("#!/bin/sh\n#SBATCH -d afterok:12\n./a\n")
    assert main(["convert", "-f", "slurm", "-t", "sge", "-o", "b.sh", "a.sh"]) == 0
    about = [line.split(": ")[1:] for line in capsys.readouterr().err.splitlines() if "afterok:12" in line]
    assert about == [["SSS502 warning [breaks] --dependency afterok:12",
                      "Grid Engine waits for the end of the job, not for its success"],
                     ["SSS504 warning [breaks] --dependency afterok:12",
                      "12 is an id of another system; @JOBID:12@ stands for its successor"]]
