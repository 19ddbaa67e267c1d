"""Virtual time: what programs with threads see of it."""

from __future__ import annotations

import queue
import threading
import time

import pytest

from tests.simulation.kernel import Deadlock, Kernel


def _lived(seed: int, work: object, seconds: float = 1e9) -> Kernel:
    kernel = Kernel(seed)
    with kernel.installed():
        process = kernel.process("one", work)      # type: ignore[arg-type]
        try:
            kernel.run(lambda: process.dead or process.failure is not None or kernel.now > seconds)
        finally:
            kernel.close()
        if process.failure is not None:
            raise process.failure
    return kernel


def test_a_day_passes_at_once() -> None:
    began = time.perf_counter()
    kernel = _lived(1, lambda: time.sleep(86_400))
    assert kernel.now >= 86_400 and time.perf_counter() - began < 60


def test_threads_speak_through_queues_conditions_and_events() -> None:
    """Each primitive does what the real one does: nothing is lost, waits end at their limits, locks are held by one."""
    heard: list[object] = []

    def work() -> None:
        items: queue.SimpleQueue[int] = queue.SimpleQueue()
        ready, lock = threading.Event(), threading.RLock()

        def speak() -> None:
            ready.wait()
            for number in range(3):
                with lock, lock:
                    items.put(number)

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        with pytest.raises(queue.Empty):
            items.get(timeout=5)
        heard.append(round(time.monotonic()))
        ready.set()
        heard.extend(items.get() for _ in range(3))
        thread.join()
        heard.append(thread.is_alive())

    _lived(2, work)
    assert heard == [5, 0, 1, 2, False]


def test_a_killed_program_does_nothing_more() -> None:
    """Not even what stands behind ``finally``; another one goes on, and its lock was not the other's."""
    done: list[str] = []
    kernel = Kernel(3)

    def hangs() -> None:
        try:
            time.sleep(10)
            done.append("woke")
        finally:
            if not kernel.over:
                done.append("finally")

    with kernel.installed():
        first = kernel.process("first", hangs)

        def kills() -> None:
            time.sleep(5)
            first.kill()
            time.sleep(20)

        second = kernel.process("second", kills)
        kernel.run(lambda: second.dead)
        kernel.close()
    assert done == []


def test_who_waits_for_ever_is_told() -> None:
    with pytest.raises(Deadlock, match="everybody waits"):
        _lived(4, lambda: threading.Event().wait())
