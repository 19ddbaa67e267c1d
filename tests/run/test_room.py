"""Queues with limits: what has no room is held back, not lost, and goes as soon as there is room."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sssjob.conversion.settings import Settings, read_config
from sssjob.run import room
from sssjob.run.arrays import Arrays
from sssjob.run.caps import Caps, caps_of
from sssjob.run.standing import Submission
from sssjob.run.submitting import Submitting
from sssjob.xml.reader import read_document
from tests.run.support import FAKES, Desk, desk_on, group, shell

MOST = 2


@pytest.fixture(params=FAKES)
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A manager that takes two jobs at once, and is asked by one command at a time: so the first two are in it."""
    monkeypatch.setattr(room, "_PAUSE_S", (60.0, 60.0))
    with desk_on(request.param, tmp_path, monkeypatch, lost_after=1.0, submit_commands=1) as desk:
        assert desk.lab is not None
        desk.lab.set(most=MOST)
        yield desk


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(room, "_CAP_S", 0.2)
    with desk_on("slurm", tmp_path, monkeypatch, lost_after=1.0) as slurm:
        yield slurm


def several(number: int, script: str = "sleep 0.3") -> str:
    return group(*(shell(f"echo j{n} >> ran; {script}", name=f"j{n}") for n in range(number)))


def words(desk: Desk, jobs: int) -> list[str]:
    return [desk.job(f"j{n}").word for n in range(jobs)]


def in_queue(desk: Desk) -> int:
    assert desk.lab is not None
    return sum(job["end"] is None for job in desk.lab.jobs())


def submits(desk: Desk) -> int:
    assert desk.lab is not None
    return sum(len(desk.lab.calls(command)) for command in ("sbatch", "qsub"))


def test_a_full_queue_costs_no_retry_and_loses_nothing(desk: Desk) -> None:
    """All of them run, though none may be tried a second time; one is offered whenever another one has ended."""
    submission = desk.submit(several(7, "until test -e go; do sleep 0.05; done"), retries=0)
    waiting = [job for job in submission.jobs if job.word == "waiting"]
    assert len(waiting) == 7 - MOST and desk.lab is not None
    assert all(str(job.plan.job.value("StatusMessage")).startswith("held back: the queue is full: ") for job in waiting)
    (desk.folder / "go").touch()
    assert set(desk.wait("g").values()) == {("done", 0)}
    assert sorted(desk.text("ran").split()) == [f"j{n}" for n in range(7)]
    assert len(desk.lab.jobs()) == 7 and submits(desk) <= 7 + 1 + 7     # a refusal at first, and one after each end


def test_what_is_held_back_is_in_the_journal(desk: Desk) -> None:
    """Another client knows why a job waits, and goes on with it."""
    desk.submit(several(4, "sleep 60"), retries=0)
    job = desk.job("j3")
    reason = job.held_for or ""
    assert job.word == "waiting" and reason.startswith("the queue is full: ")
    assert [data["reason"] for data in desk.events("j3", "full")] == [reason]
    assert desk.client().journal.find("j3")[0].message == f"held back: {reason}"
    assert desk.lab is not None
    before = submits(desk)
    while any(one["pid"] is None and "lasts" not in one for one in desk.lab.jobs()):      # they begin a moment later
        time.sleep(0.02)
    for one in desk.lab.jobs():
        desk.lab.kill(one)
    client = desk.client()
    assert client.wait(["j0", "j1"], 60)[1]
    assert submits(desk) > before and words(desk, 4)[2:] == ["running", "running"]
    assert desk.job("j3").held_for is None and desk.job("j3").plan.job.value("StatusMessage") is None


def test_killed_while_it_is_full(desk: Desk) -> None:
    """Nothing is lost or doubled when the client dies just after the manager has said no."""
    desk.killed(lambda: desk.submit(several(5), retries=0))
    assert set(desk.wait("g").values()) == {("done", 0)}
    assert sorted(desk.text("ran").split()) == [f"j{n}" for n in range(5)]


def test_room_that_others_make(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of ours is in the queue: it is asked again after a while, and once it takes one job the others follow."""
    assert desk.lab is not None
    desk.lab.set(most=0)
    monkeypatch.setattr(room, "_PAUSE_S", (0.3, 0.6))
    submission = desk.submit(several(3), retries=0)
    assert [job.word for job in submission.jobs] == ["waiting"] * 3 and submits(desk) == 1
    for _ in range(30):
        desk.client().wait(["g"], 2)
        if submits(desk) > 1:
            break
    assert submits(desk) > 1 and not desk.lab.jobs()
    desk.lab.set(most=3)
    assert set(desk.wait("g").values()) == {("done", 0)}


def test_a_cancel_of_what_is_held_back(desk: Desk) -> None:
    desk.submit(several(3, "sleep 60"), retries=0)
    before = submits(desk)
    client = desk.client()
    _, done = client.cancel(["g"], 60)
    assert done and {desk.job(f"j{n}").word for n in range(3)} == {"canceled"} and submits(desk) == before


def test_a_hold_of_what_is_held_back(desk: Desk) -> None:
    """It waits for its user then, and what makes room is offered to the next one."""
    desk.submit(several(4, "sleep 60"), retries=0)
    assert desk.lab is not None
    assert desk.client().ask("hold", ["j2"])[0].answers == {"hold": ""}
    job = desk.job("j2")
    assert (job.held_for, job.plan.job.value("State"), job.plan.job.value("StatusMessage")) == (
        None, "Hold", "held: until its user releases it")
    desk.lab.kill(desk.lab.jobs()[0])
    desk.client().wait(["j0"], 60)
    assert words(desk, 4)[2:] == ["waiting", "running"]


def test_one_full_queue_does_not_close_the_others(slurm: Desk) -> None:
    assert slurm.lab is not None
    slurm.lab.fault("sbatch", times=1, exit=1, stderr="sbatch: error: QOSMaxSubmitJobPerUserLimit")
    made = slurm.submit(group(shell("true", "<Queue>a</Queue>", name="x"), shell("true", "<Queue>a</Queue>", name="y"),
                              shell("true", "<Queue>b</Queue>", name="z")), retries=0)
    assert [job.word for job in made.jobs] == ["waiting", "waiting", "running"]


def test_a_limit_that_queues_share_lets_no_queue_starve(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each end of a job of the other queue was followed by one of that queue, and the first job of this one, which was
    offered after pauses alone, found the manager full until all others had run."""
    monkeypatch.setattr(room, "_SHARED", 1.0)
    names = ["x0", "x1", "x2", "y", *(f"x{n}" for n in range(3, 9))]
    desk.run(group(*(shell(f"sleep {2 if name in names[:2] else 0.2}", f"<Queue>{name[0]}</Queue>", name=name)
                     for name in names)))
    assert desk.lab is not None
    assert [job["name"] for job in desk.lab.jobs()].index("y") < 7


def test_a_cap_of_a_submission(slurm: Desk) -> None:
    """Never more than three at once, whichever client goes on with it."""
    submission = slurm.submit(several(8, "sleep 0.2"), max_queued=3)
    assert [job.word for job in submission.jobs] == ["running"] * 3 + ["waiting"] * 5 and submits(slurm) == 3
    assert submission.jobs[7].held_for == "of its submission no more than 3 may be in flight"
    assert slurm.job("j0").of.cap == 3
    assert set(slurm.wait("g").values()) == {("done", 0)}
    assert submits(slurm) == 8 and slurm.lab is not None
    spans = [(job["submit"], job["end"]) for job in slurm.lab.jobs()]
    assert max(sum(begin <= at < end for begin, end in spans) for at, _ in spans) <= 3


def test_a_cap_can_be_changed_later(slurm: Desk) -> None:
    slurm.submit(several(6, "sleep 600"), max_queued=1)
    slurm.client(max_queued=4).wait(["g"], 0.5)
    for _ in range(30):         # what its time did not allow is left to the next client
        if submits(slurm) >= 4:
            break
        slurm.client().wait(["g"], 2)
    assert slurm.job("j0").of.cap == 4 and submits(slurm) == 4


def test_a_request_that_is_made_again_with_another_cap(slurm: Desk) -> None:
    for most in (1, 3):
        client = slurm.client(max_queued=most)
        client.submit(read_document(several(4, "sleep 600").encode()), "slurm", cwd=slurm.folder, request="r")
        assert slurm.job("j0").of.cap == most
    assert submits(slurm) == 3


def test_the_users_own_caps(slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """They count what is in flight of all submissions, of other clients too."""
    monkeypatch.setenv("SSSJOB_MAX_QUEUED", "2")
    slurm.submit(group(shell("sleep 4", name="a"), shell("sleep 4", name="b")))
    submission = slurm.submit(shell("true", name="c"))
    assert submission.jobs[0].held_for == "of slurm no more than 2 may be in flight" and in_queue(slurm) == 2
    assert slurm.wait("c") == {"c": ("done", 0)}


@pytest.mark.parametrize(("of", "step", "mine", "others"), [
    (Arrays, "gathered", ["running", "waiting", "waiting"], ["running", "running"]),
    (Submitting, "_submit_each", ["running"] * 3, ["waiting", "waiting"])])
def test_clients_that_submit_at_the_same_moment_keep_to_the_cap(
        slurm: Desk, monkeypatch: pytest.MonkeyPatch, of: type, step: str, mine: list[str], others: list[str]) -> None:
    """One submits while the other has counted and has not written down what it is about to submit: three clients at
    once had fifteen jobs in the queue where five were allowed. Or it has written that down, and no command has run."""
    monkeypatch.setenv("SSSJOB_MAX_QUEUED", "3")
    as_ever, submissions = getattr(of, step), list[Submission]()

    def meanwhile(self: object, jobs: Sequence[object]) -> object:
        monkeypatch.setattr(of, step, as_ever)
        submissions.append(slurm.submit(group(shell("sleep 2", name="a"), shell("sleep 2", name="b"))))
        return as_ever(self, jobs)

    monkeypatch.setattr(of, step, meanwhile)
    submissions.append(slurm.submit(several(3)))
    assert [[job.word for job in submission.jobs] for submission in submissions] == [others, mine]
    assert in_queue(slurm) == 3
    assert set(slurm.wait("@1", "@2").values()) == {("done", 0)}


def test_what_a_killed_client_was_about_to_submit_counts(slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be in the queue. Who waits for the room looks after it, so that it does not fill the cap for ever."""
    monkeypatch.setenv("SSSJOB_MAX_QUEUED", "2")
    assert slurm.lab is not None
    slurm.lab.fault("sbatch", kill="before")
    slurm.killed(lambda: slurm.submit(group(shell("sleep 1", name="a"), shell("sleep 1", name="b"))))
    submission = slurm.submit(shell("true", name="c"))
    assert submission.jobs[0].held_for == "of slurm no more than 2 may be in flight"
    assert slurm.wait("c") == {"c": ("done", 0)} and slurm.wait("a", "b") == dict.fromkeys("ab", ("done", 0))


def test_the_process_that_looks_after_jobs_of_this_machine_keeps_to_caps(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job says how many run beside it."""
    monkeypatch.setenv("SSSJOB_MAX_QUEUED", "1")
    with desk_on("local", tmp_path, monkeypatch) as desk:
        desk.submit(group(*(shell("mkdir alone && sleep 0.3 && rmdir alone", name=f"j{n}") for n in range(3))))
        assert set(desk.wait("g").values()) == {("done", 0)}


def test_caps_are_settings() -> None:
    """Of each executor, of one by its name, and of all together."""
    config = b"max_queued = 5\nmax_queued_total = 9\n[executors.SGE]\nmax_queued = 1\n"
    caps = caps_of(Settings([read_config(config, "x")]))
    assert (caps.of("slurm"), caps.of("sge"), caps.of_all) == (5, 1, 9)
    assert caps_of(Settings()) == Caps()
