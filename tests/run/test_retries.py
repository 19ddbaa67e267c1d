"""Submissions that fail for a reason that may pass: tried again, so often and no more, and never blindly."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sssjob.run import submitting
from tests.run.support import Desk, after, desk_on, group, shell

LATER = "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)"
UNKNOWN = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(submitting, "_PAUSE_S", (0.05, 0.2))
    with desk_on("slurm", tmp_path, monkeypatch, lost_after=0.5) as made:
        yield made


def tries(desk: Desk) -> int:
    assert desk.lab is not None
    return len(desk.lab.calls("sbatch"))


def test_it_is_taken_at_last(desk: Desk) -> None:
    assert desk.lab is not None
    desk.lab.fault("sbatch", times=3, exit=1, stderr=LATER)
    submission = desk.submit(shell("echo x >> ran"))
    assert submission.jobs[0].row.native_id is not None and tries(desk) == 4
    assert desk.wait("a") == {"a": ("done", 0)} and desk.text("ran") == "x\n"
    notes = [note["text"].partition(" in ")[0] for note in desk.events("a", "try")]
    assert notes == ["try 2 of 6", "try 3 of 6", "try 4 of 6"]


def test_tries_of_a_client_that_was_killed_count(desk: Desk) -> None:
    assert desk.lab is not None
    desk.lab.fault("sbatch", times=-1, exit=1, stderr=LATER)
    pid = os.fork()
    if pid == 0:
        desk.submit(shell("true"), retries=1000)
        os._exit(1)
    while not desk.client().journal.rows() or len(desk.events("a", "try")) < 3:
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    before = len(desk.events("a", "try"))
    assert desk.client(retries=before + 2).wait(["a"], 60)[1]
    assert [data["tries"] for data in desk.events("a", "try")] == list(range(1, before + 3))
    assert desk.job("a").word == "failed"


@pytest.mark.parametrize("retries", [0, 2])
def test_at_most_so_often(desk: Desk, retries: int) -> None:
    """E09."""
    assert desk.lab is not None
    desk.lab.fault("sbatch", times=-1, exit=1, stderr=LATER)
    submission = desk.submit(shell("true"), retries=retries)
    (job,) = submission.jobs
    assert tries(desk) == retries + 1
    assert (job.word, job.seen[0].known) == ("failed", {"reason": "never-ran", "transient": True})


def test_what_is_refused_for_good_is_not_tried_again(desk: Desk) -> None:
    submission = desk.submit(shell("true", "<Queue>nosuch</Queue>"))
    assert (submission.jobs[0].word, tries(desk)) == ("failed", 1)


def test_the_tag_is_asked_for_before_the_next_try(desk: Desk) -> None:
    """The command says that it may have failed, and has not: one job."""
    assert desk.lab is not None
    desk.lab.fault("sbatch", times=1, exit=1, stderr=UNKNOWN, after=True)
    desk.submit(shell("echo x >> ran"))
    assert desk.wait("a") == {"a": ("done", 0)}
    assert (tries(desk), desk.text("ran")) == (1, "x\n")


def test_it_appears_between_two_tries(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager that answered that there is none, and has one when the pause is over."""
    assert desk.lab is not None
    monkeypatch.setattr(submitting, "_PAUSE_S", (1.0, 1.0))
    desk.lab.fault("sbatch", times=1, exit=1, stderr=LATER, after=True)      # it says it took none, and did
    desk.submit(shell("echo x >> ran"))
    assert desk.wait("a") == {"a": ("done", 0)}
    assert (tries(desk), desk.text("ran")) == (1, "x\n")


def test_the_others_do_not_wait_for_it(desk: Desk) -> None:
    assert desk.lab is not None
    desk.lab.fault("sbatch", times=1, exit=1, stderr=LATER)
    desk.submit(group(shell("echo a >> ran"), shell("echo b >> ran", name="b"),
                      shell("echo c >> ran", after("a"), name="c")))
    assert {word for word, _ in desk.wait("g").values()} == {"done"}
    assert sorted(desk.text("ran").split()) == ["a", "b", "c"]


def test_a_cancel_ends_the_tries(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert desk.lab is not None
    monkeypatch.setattr(submitting, "_PAUSE_S", (60.0, 60.0))
    desk.lab.fault("sbatch", times=-1, exit=1, stderr=LATER)
    outcome = desk.run(shell("true"), timeout=1)
    assert [(job.word, job.message) for job in outcome.jobs] == [
        ("canceled", "cancel: on request before it was started")]
    assert (outcome.exit_code, tries(desk)) == (6, 1)
