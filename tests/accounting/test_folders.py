"""A folder of logs is what its files are, in the order of their names, for every command that reads logs of jobs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.accounting.test_unsaid import HEADER, RATES, ROWS
from tests.cli.conftest import Command

SACCT = ("-f", "sacct", "--option", "timezone=UTC")
FILES = ("logs/2026-01-01.txt", "logs/2026-01-02.txt.gz", "logs/2026-01-03.txt")
COMMANDS = {
    "account": ("account", *SACCT), "account by its rates": ("account", *SACCT, "--rates", "rates.toml"),
    "charge": ("charge", *SACCT, "--rates", "rates.toml"), "charge of any format": (
        "charge", "-f", "auto", "--option", "timezone=UTC", "--rates", "rates.toml"),
    "ledger": ("ledger", "charge", *SACCT, "--rates", "rates.toml", "--itemise"),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of three logs, of which one is compressed, and what is no log: a hidden file and a folder."""
    monkeypatch.chdir(tmp_path)
    Path("rates.toml").write_text(RATES)
    Path("logs/older").mkdir(parents=True)
    for number in (2, 0, 1):            # another order than that of the names
        text = HEADER + "".join(f"{number}{row}\n" for row in ROWS.splitlines())
        data = text.encode()
        Path(FILES[number]).write_bytes(gzip.compress(data) if FILES[number].endswith(".gz") else data)
    Path("logs/.part").write_text("half a line")
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_is_its_files(sssjob: Command, place: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    answers = []
    for number, names in enumerate((("logs",), FILES)):
        monkeypatch.setenv("SSSJOB_LEDGER", f"{number}.db")
        answers.append(sssjob(*COMMANDS[name], *names))
    folder, each = answers
    assert folder.code == 0 and folder.out and folder == each


def test_rates_are_held_against_a_folder(sssjob: Command, place: Path) -> None:
    folder, each = (sssjob("rates", "check", *SACCT, "rates.toml", *(word for name in names for word in (
        "--against", name))) for names in (("logs",), FILES))
    assert folder == each and "9 charged" in folder.err


def test_a_ledger_reads_a_folder_alike_with_and_without_resume(sssjob: Command, place: Path) -> None:
    for order in (("--resume",), ()), ((), ("--resume",)):
        ledger = ("ledger", "charge", "--ledger", f"{len(order[0])}.db", *SACCT, "--rates", "rates.toml", "logs")
        first, again = (sssjob(*ledger, *options) for options in order)
        assert (first.code, again.code) == (0, 0) and "9 charged" in first.err and "charged" not in (
            again.err.splitlines()[-1].replace("unchanged", "").replace("not charged", "")), (first, again)


@pytest.mark.parametrize("words", [(*COMMANDS["account"],), (*COMMANDS["charge"],), (*COMMANDS["ledger"],), (
    "rates", "check", *SACCT, "rates.toml", "--against")])
def test_a_folder_without_files_is_refused(sssjob: Command, place: Path, words: tuple[str, ...]) -> None:
    Path("empty").mkdir()
    answer = sssjob(*words, "empty")
    assert (answer.code, answer.out, answer.err) == (3, "", "sssjob: empty: the folder has no files\n")
