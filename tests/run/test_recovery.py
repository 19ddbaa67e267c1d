"""What a client does with many jobs that another one was about to submit when it was killed: few questions, in time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sssjob.run.crew import Crew
from sssjob.run.standing import Running
from sssjob.run.submitting import Submitting
from tests.run.support import FAKES, Desk, desk_on, group, shell

MANY = 1000


@pytest.fixture(params=FAKES)
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Native jobs that were lost on the way are looked for so long that no test sees the end of it."""
    monkeypatch.setattr("sssjob.run.adopting.LOOK_AGAIN_S", 600.0)
    with desk_on(request.param, tmp_path, monkeypatch, lost_after=600.0) as desk:
        yield desk


def intended(desk: Desk, jobs: int, submitted: int = 0) -> None:
    """Have a client killed that has written down what it is about to submit, and has submitted the first of it."""
    give, done = Submitting._give, 0

    def last(self: Submitting, crew: Crew[Running], job: Running) -> None:
        nonlocal done
        if done == submitted:
            while desk.lab is not None and len(desk.lab.jobs()) < submitted:    # another thread may be at the last one
                time.sleep(0.01)
            os.kill(os.getpid(), 9)
        done += 1
        give(self, crew, job)

    def act() -> None:
        Submitting._give = last         # type: ignore[method-assign]
        desk.submit(group(*(shell("sleep 60", name=f"j{n}") for n in range(jobs))))

    desk.killed(act)


def asked(desk: Desk) -> int:
    """How many commands clients have run; jobs that begin ask for the names of their nodes."""
    assert desk.lab is not None
    return sum(words[:3] != ["scontrol", "show", "hostnames"] for words in desk.lab.all_calls())


def test_a_thousand_intents_cost_no_more_than_four_commands(desk: Desk) -> None:
    intended(desk, MANY)
    before = asked(desk)
    client = desk.client()
    submissions, answered = client.look([client.journal.entry(1)], 30)
    assert answered and {job.word for job in submissions[0].jobs} == {"running"}
    assert 1 <= asked(desk) - before <= 4


def test_what_was_submitted_is_found_and_the_rest_is_looked_for(desk: Desk) -> None:
    """All by one answer; nothing that may still be under way is submitted a second time."""
    intended(desk, 8, submitted=3)
    before = asked(desk)
    desk.config.queue_polling_interval = 30.0       # what counts is how often it asks, not how long that takes
    client = desk.client()
    (submission,), answered = client.look([client.journal.entry(1)], 30)
    assert answered and [job.row.native_id is not None for job in submission.jobs] == [True] * 3 + [False] * 5
    assert desk.lab is not None and len(desk.lab.jobs()) == 3
    assert asked(desk) - before <= 6        # and how the three stand, twice at most


def test_a_manager_that_hangs_does_not_hold_up_the_client(desk: Desk) -> None:
    """The time that ``list`` and ``status`` may take counts from their beginning, whatever the commands take."""
    intended(desk, 4)
    assert desk.lab is not None
    for command in ("squeue", "qstat"):
        desk.lab.fault(command, times=-1, sleep=15)
    client, begun = desk.client(), time.monotonic()
    _, answered = client.look([client.journal.entry(1)], 0.5)
    assert not answered and time.monotonic() - begun < 10


def test_no_more_is_submitted_than_the_time_allows(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left is submitted by the client that comes next."""
    intended(desk, 6)
    desk.config.lost_after = 0.0
    ticks = iter([True, True, False])
    with monkeypatch.context() as patch:
        patch.setattr("sssjob.run.engine.Engine.in_time", property(lambda _: next(ticks, False)))
        client = desk.client()
        client.look([client.journal.entry(1)], 30)
    assert desk.lab is not None and len(desk.lab.jobs()) == 2
    client = desk.client()
    client.look([client.journal.entry(1)], 60)
    assert len(desk.lab.jobs()) == len({job["command"] for job in desk.lab.jobs()}) == 6
