"""Arguments of scripts and programs after ``--`` of ``run`` and ``submit``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command

SCRIPT = "#!/bin/sh\n#SBATCH -J a\nfor one; do echo \"<$one>\"; done\n"
ODD = ("a b", "", "it's", "$HOME", "*", "--help", "--", "\u00fc")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    Path("job.sh").write_text(SCRIPT)


def test_a_script_has_them(sssjob: Command) -> None:
    """Each as it stands, whatever a shell would do with it."""
    answer = sssjob("run", "-q", "job.sh", "--executor", "local", "--", *ODD)
    assert answer.code == 0, answer.err
    assert Path("job-a.out").read_text() == "".join(f"<{one}>\n" for one in ODD)


def test_they_take_the_place_of_those_of_the_document(sssjob: Command) -> None:
    Path("job.xml").write_text("<Job><Executable>/bin/echo</Executable><Arguments>old</Arguments>"
                               "<OutputFile>out</OutputFile></Job>")
    for more, text in ((["--", "new"], "new\n"), (["--"], "\n"), ([], "old\n")):
        assert sssjob("run", "-q", "job.xml", "--executor", "local", *more).code == 0
        assert Path("out").read_text() == text
        Path("out").unlink()


@pytest.mark.parametrize("command", ["run", "submit"])
def test_the_dry_run_shows_them(sssjob: Command, command: str) -> None:
    answer = sssjob(command, "-q", "--dry-run", "job.sh", "--executor", "local", "--", "x y", "z")
    assert (answer.code, "'x y' z" in answer.out) == (0, True), answer


@pytest.mark.parametrize(("document", "words", "code", "problem"), [
    ("<JobGroup><Id>g</Id><Job><Id>a</Id><Executable>/bin/true</Executable></Job><Job><Id>b</Id>"
     "<Executable>/bin/true</Executable></Job></JobGroup>", ["--", "a"], 2, "of the program of one job"),
    ("<Job><Id>a</Id></Job>", ["--", "a"], 2, "names no program"),
    (SCRIPT, ["--", "\x01"], 1, "Arguments holds characters that XML cannot hold"),
    (SCRIPT, ["a", "b"], 2, "(a b): arguments of a script follow `--`")])
def test_refused(sssjob: Command, document: str, words: list[str], code: int, problem: str) -> None:
    """Nothing is run then."""
    Path("job").write_text(document)
    answer = sssjob("run", "job", "--executor", "local", *words)
    assert (answer.code, problem in answer.err) == (code, True), answer
    assert not list(Path().glob("*.out"))
