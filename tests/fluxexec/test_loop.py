"""The loop: calls from other threads, times that are far away, timers that are taken back."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from sssjob.fluxexec import loop as loop_module
from sssjob.fluxexec.loop import Loop


@pytest.fixture(params=["no descriptor", "a descriptor"])
def loop(request: pytest.FixtureRequest) -> Iterator[Loop]:
    """With a descriptor the loop sleeps in poll(2), without one it waits for calls alone."""
    loop = Loop()
    fds = os.pipe()
    if request.param == "a descriptor":
        loop.watch(fds[0], 1, lambda events: None)
    yield loop
    loop.close()
    for fd in fds:
        os.close(fd)


@pytest.mark.parametrize("crowded", [False, True])
def test_calls_of_other_threads(loop: Loop, crowded: bool) -> None:
    loop.crowded = lambda: crowded
    got: list[int] = []

    def work(first: int) -> None:
        for number in range(first, first + 500):
            loop.post(lambda number=number: got.append(number))     # type: ignore[misc]

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 500)]
    for thread in threads:
        thread.start()
    assert loop.run(lambda: len(got) == 1000, timeout=120)
    for first in (0, 500):
        assert [n for n in got if first <= n < first + 500] == list(range(first, first + 500))


def test_it_can_be_stopped_while_it_sleeps(loop: Loop) -> None:
    threading.Timer(0.05, loop.stop).start()
    assert loop.run(timeout=120)


@pytest.mark.parametrize("days", [25, 10_000_000])
def test_a_time_that_poll_cannot_wait_for(loop: Loop, days: int) -> None:
    """A job with a limit of 25 days ended the loop: poll(2) takes milliseconds in 31 bits."""
    loop.at(loop.now() + days * 86400, lambda: pytest.fail("not yet"))
    assert not loop.run(lambda: False, timeout=0.05)        # the time-out counts, and
    threading.Timer(0.05, lambda: loop.post(loop.stop)).start()
    assert loop.run()                                       # without one, what others post


@pytest.mark.parametrize(("late_s", "busy"), [(0.0, True), (1e9, False)])
def test_a_timer_does_not_wait_for_ever(loop: Loop, monkeypatch: pytest.MonkeyPatch, late_s: float, busy: bool) -> None:
    """Calls come first, for the end of a job may be among them; but a time limit comes though there are always more."""
    monkeypatch.setattr(loop_module, "_LATE_S", late_s)
    seen: list[str] = []

    def more() -> None:
        seen.append("call")
        if len(seen) < 5000:
            loop.soon(more)

    loop.soon(more)
    loop.at(loop.now(), lambda: seen.append("timer"))
    assert loop.run(lambda: "timer" in seen, timeout=120)
    assert (len(seen) < 5000) == busy


def test_timers_that_are_taken_back_are_forgotten() -> None:
    """Limits of jobs that are long over lay about until their time: days, at hundreds a second."""
    loop = Loop(virtual=True)
    kept = [loop.at(1e6 + n, lambda: None) for n in range(10)]
    for n in range(50 * loop_module._FEW):
        loop.at(1e9 + n, lambda: None).cancel()
    assert len(loop._timers) <= loop_module._FEW + 1
    live = [entry[2] for entry in loop._timers if entry[2].call is not None]
    assert sorted(live, key=lambda timer: timer.when) == kept
    seen: list[float] = []
    for timer in kept:
        timer.call = lambda: seen.append(loop.now())
    loop.run()
    assert seen == [1e6 + n for n in range(10)]
