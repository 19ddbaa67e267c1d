"""Options without a value, as Extensions of their manager: what ``convert`` and ``submit`` write of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command

FLAGS = [("slurm", "no-requeue", "#SBATCH --no-requeue"), ("slurm", "contiguous", "#SBATCH --contiguous"),
         ("sge", "notify", "#$ -notify"), ("lsf", "ul", "#BSUB -ul"), ("flux", "unbuffered", "#FLUX: --unbuffered")]


def doors(manager: str) -> list[list[str]]:
    """What writes a script for a manager."""
    return [["convert", "-f", "sss", "-t", manager, "job.xml"],
            ["submit", "--dry-run", "-q", "--executor", manager, "job.xml"]]


def with_extension(folder: Path, manager: str, name: str, text: str) -> None:
    (folder / "job.xml").write_text(
        "<Job><Executable>/bin/true</Executable><Environment export='true'/><OutputFile>/dev/null</OutputFile>"
        f"<ErrorFile>/dev/null</ErrorFile><Extension type='{manager}' name='{name}'>{text}</Extension></Job>")


@pytest.mark.parametrize(("manager", "name", "line"), FLAGS)
def test_a_flag_is_said_by_true_or_by_nothing_and_by_no_other_text(
        sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manager: str, name: str, line: str) -> None:
    """Managers refuse ``--no-requeue=""`` as well as ``--contiguous=maybe``."""
    monkeypatch.chdir(tmp_path)
    for words in doors(manager):
        for text in ("", "true"):
            with_extension(tmp_path, manager, name, text)
            answer = sssjob(*words)
            assert answer.code == 0 and line in answer.out.splitlines(), (words, text, answer)
        with_extension(tmp_path, manager, name, "maybe")
        answer = sssjob(*words)
        assert (answer.code, line in answer.out, "takes no value" in answer.err) == (1, False, True), (words, answer)


@pytest.mark.parametrize(("text", "line"), [("", "#SBATCH --nice"), ("true", "#SBATCH --nice"),
                                            ("5", "#SBATCH --nice=5")])
def test_an_option_that_needs_no_value_may_have_one(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                    text: str, line: str) -> None:
    monkeypatch.chdir(tmp_path)
    with_extension(tmp_path, "slurm", "nice", text)
    for words in doors("slurm"):
        answer = sssjob(*words)
        assert answer.code == 0 and line in answer.out.splitlines(), (words, answer)
