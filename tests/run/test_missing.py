"""Jobs that a resource manager knows nothing of any more: somebody has removed them before they began, its memory was
purged, or it was installed anew. Lists tell that at once, and no client has to be the one that waits long enough."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.run.support import FAKES, Desk, desk_on, eventually, shell

HELD = shell("sleep 60", "<Hold>User</Hold>")


@pytest.fixture(params=FAKES)
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr("psij.executors.batch._ends._MISSING_S", 0.2)
    with desk_on(request.param, tmp_path, monkeypatch, lost_after=600.0) as made:
        yield made


def looked(desk: Desk) -> tuple[object, object, bool]:
    """State and StatusMessage of the job for another client, and whether the manager has answered."""
    client = desk.client()
    (submission,), answered = client.look([client.journal.entry(1)], 20)
    job = submission.jobs[0].plan.job
    return job.value("State"), job.value("StatusMessage"), answered


def removed(desk: Desk) -> dict[str, Any]:
    """Submit a job, which vanishes without a trace before it begins; what the stand-in knew of it."""
    native_id = desk.submit(HELD).jobs[0].row.native_id
    assert desk.lab is not None
    job = desk.lab.drop(native_id or "")
    assert job is not None
    return job


def test_the_list_says_so_and_does_not_wait_for_more(desk: Desk) -> None:
    """A list that waits for a word about such a job would take its whole time limit, each time."""
    removed(desk)
    for _ in range(2):
        assert looked(desk)[1:] == ("missing: it is in no queue and in no accounting record", True)
    assert [data["message"] for data in desk.events("a", "status") if "message" in data] == [
        "it is in no queue and in no accounting record"]


def test_the_time_counts_over_clients(desk: Desk) -> None:
    """None of them has to follow the job for as long as it may be unknown."""
    removed(desk)
    assert looked(desk)[2]
    desk.config.lost_after = 0.1
    assert desk.wait("a") == {"a": ("failed", None)}
    assert str(looked(desk)[1]).startswith("lost: ")


def test_a_clock_that_is_set_forward_ends_no_wait(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a client follows a job, its own monotonic clock counts."""
    removed(desk)
    clocks = iter([time.time(), *(time.time() + 3600.0 * n for n in range(1, 10_000))])
    monkeypatch.setattr("psij.executors.batch._ends.time", SimpleNamespace(time=lambda: next(clocks)))
    (job,), ended = desk.client().wait(["a"], 2.0)
    assert (ended, job.plan.job.value("StatusMessage")) == (
        False, "missing: it is in no queue and in no accounting record")


def test_silence_is_no_such_word(desk: Desk) -> None:
    removed(desk)
    assert desk.lab is not None
    for command in ("sacct", "qacct"):
        desk.lab.fault(command, times=-1, exit=1, stderr="error: connection refused")
    client = desk.client()
    (submission,), answered = client.look([client.journal.entry(1)], 1.5)
    assert not answered and submission.jobs[0].plan.job.value("StatusMessage") is None


def test_a_job_that_is_listed_again_goes_on(desk: Desk) -> None:
    """Its manager had forgotten it only for a while."""
    job = removed(desk)
    assert str(looked(desk)[1]).startswith("missing: ")
    desk.config.lost_after = 0.1
    assert desk.lab is not None
    (desk.lab.root / f"{job['number']}.json").write_text(json.dumps(job))
    state, why, answered = looked(desk)
    assert (state, str(why).startswith("held"), answered) == ("Hold", True, True)


def test_accounting_that_is_behind_puts_no_job_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that was killed has forgotten a job that runs, and accounting knows of its submission alone: the
    record of its start counts, and nobody says that the job waits again."""
    monkeypatch.setattr("psij.executors.batch._news._BEHIND_S", 0.0)
    with desk_on("slurm", tmp_path, monkeypatch) as desk:
        lab = desk.lab
        assert lab is not None
        desk.killed(lambda: desk.submit(shell("sleep 60")))
        eventually(lambda: list(desk.folder.glob("work/**/*.start")))
        record, = desk.folder.glob("work/**/*.start")
        record.rename(tmp_path / "late")
        lab.fault("squeue", times=-1, edit=[(r"(?m)^\d.*\n", "")])
        lab.fault("sacct", times=-1, edit=[("RUNNING", "PENDING")])
        client = desk.client()
        waiting = threading.Thread(target=client.wait, args=(["a"], 6.0))
        waiting.start()
        eventually(lambda: len(lab.calls("sacct")) > 1)       # the first answer has been read
        (tmp_path / "late").rename(record)
        waiting.join()
        assert desk.events("a", "status")[-1]["state"] == "ACTIVE"
        assert not any("requeued" in data["metadata"] for data in desk.events("a", "status"))
