"""The truth while a job waits, on real clusters: held, suspended, put back, never to start; told by all commands."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.psij.test_batch_labs import enter_lab
from tests.run.support import shell

pytestmark = pytest.mark.lab


@dataclass(slots=True)
class Desk:
    """A lab that is entered, with a journal of its own."""

    name: str
    folder: Path

    def sssjob(self, *words: str) -> tuple[str, str]:
        """Output and messages of ``sssjob``."""
        process = subprocess.run([sys.executable, "-m", "sssjob", *words], capture_output=True, text=True, timeout=150,
                                 check=False)
        return process.stdout, process.stderr

    def submit(self, script: str, *more: str) -> str:
        """Submit a job named ``a``; its native id."""
        (self.folder / "a.xml").write_text(shell(script, *more))
        out, err = self.sssjob("submit", "-q", "--executor", self.name, "a.xml")
        assert out == "a\n", err
        return str(self.row()["native_id"])

    def row(self) -> dict[str, str]:
        """The job as ``list`` tells it, which is what ``status`` does."""
        out, _ = self.sssjob("list", "--json")
        (row,) = map(json.loads, out.splitlines())
        return dict(row)

    def becomes(self, state: str, *messages: str | None) -> str | None:
        """Wait until fresh clients say so, with one of these messages, which is returned, and all commands the same."""
        end = time.monotonic() + 60
        while True:
            row = self.row()
            if row["state"] == state and row["message"] in messages and self._is_told_alike(row):
                return row["message"]
            assert time.monotonic() < end, json.dumps(row)
            time.sleep(0.2)

    def _is_told_alike(self, row: dict[str, str]) -> bool:
        """Whether ``list`` and both forms of ``status`` say what ``list`` has said a moment ago."""
        steady = {key: value for key, value in row.items() if key not in ("waited", "elapsed")}
        told, message = json.loads(self.sssjob("status", "a", "--json")[0]), row["message"]
        if not self.row().items() >= steady.items() or any(told[key] != row[key] for key in steady if key in told):
            return False
        return (f"<StatusMessage>{message}<" in self.sssjob("status", "a")[0]) is (message is not None)


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    enter_lab(request.param, monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    monkeypatch.chdir(tmp_path)
    made = Desk(request.param, tmp_path)
    yield made
    made.sssjob("cancel", "a")


def _do(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=60)


on_slurm = pytest.mark.parametrize("desk", ["slurm"], indirect=True)
on_sge = pytest.mark.parametrize("desk", ["sge"], indirect=True)


@on_slurm
@pytest.mark.parametrize(("asked", "state", "messages", "never"), [
    ("<Hold>User</Hold>", "Hold", ["held: JobHeldUser"], False),
    ("<Requested><Queue>closed</Queue></Requested>", "Idle", ["unavailable: PartitionDown"], False),
    # the second where the nodes of the partition have not all come up yet (22.05, seen)
    ("<Requested><Queue>debug</Queue><Duration>36000</Duration></Requested>", "Idle",
     ["never: PartitionTimeLimit", "never: PartitionConfig"], True)])
def test_why_a_job_waits_in_slurm(desk: Desk, asked: str, state: str, messages: list[str], never: bool) -> None:
    desk.submit("exit 3", asked)
    desk.becomes(state, *messages)
    assert ("SSS610" in desk.sssjob("status", "a")[1]) is never
    err = desk.sssjob("wait", "--timeout", "1", "a")[1]
    assert any(f"a: {state}, {message}" in err for message in messages)


@on_slurm
def test_a_life_in_slurm(desk: Desk) -> None:
    """Suspended and resumed, put back and held, released: each is an event, and who asks first writes it."""
    native_id = desk.submit("while [ ! -e go ]; do sleep 0.2; done; exit 3")
    desk.becomes("Running", None)
    _do("scontrol", "suspend", native_id)
    desk.becomes("Suspended", None)
    _do("scontrol", "resume", native_id)
    desk.becomes("Running", None)
    _do("scontrol", "requeuehold", native_id)
    desk.becomes("Hold", "held: job requeued in held state")
    _do("scontrol", "release", native_id)
    (desk.folder / "go").touch()
    desk.sssjob("wait", "a", "--timeout", "120")
    out, _ = desk.sssjob("log", "a")
    told = [line.split("  ", 3)[3] for line in out.splitlines()]
    assert "ACTIVE, suspended" in told
    assert "put back into the queue: held: job requeued in held state" in told
    assert told[-1].startswith("ended: failed, exit code 3")


@on_sge
def test_why_a_job_waits_in_grid_engine(desk: Desk) -> None:
    desk.submit("exit 3", "<Requested><Queue>short.q</Queue><Duration>1200</Duration></Requested>")
    end = time.monotonic() + 90
    while not str((row := desk.row())["message"]).startswith("never: "):
        assert time.monotonic() < end, row
        time.sleep(1)
    assert "short.q" in row["message"] and row["state"] == "Idle"
    assert "SSS610" in desk.sssjob("status", "a")[1]


@on_sge
def test_a_life_in_grid_engine(desk: Desk) -> None:
    native_id = desk.submit("while [ ! -e go ]; do sleep 0.2; done; exit 3", "<Hold>User</Hold>")
    desk.becomes("Hold", "held")
    _do("qrls", native_id)
    desk.becomes("Running", None)
    _do("qmod", "-sj", native_id)
    desk.becomes("Suspended", None)
    _do("qmod", "-usj", native_id)
    desk.becomes("Running", None)
    (desk.folder / "go").touch()
    desk.sssjob("wait", "a", "--timeout", "120")
    assert "ACTIVE, suspended" in desk.sssjob("log", "a")[0]
