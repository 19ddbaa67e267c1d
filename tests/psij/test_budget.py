"""The ceiling on questions: what comes after a quiet time is asked at once, and no minute has more of them."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from psij import Job, JobSpec
from psij.executors.batch._budget import Budget
from psij.executors.batch._lookout import LOOK_S
from psij.executors.batch._watch import Watcher, watcher_of
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.slurm import SlurmJobExecutor


@pytest.mark.parametrize("a_minute", [2.0, 20.0, 300.0])
@pytest.mark.parametrize("quiet_s", [0.0, 600.0])
def test_no_minute_has_more_than_it_may(monkeypatch: pytest.MonkeyPatch, a_minute: float, quiet_s: float) -> None:
    now = 1000.0
    monkeypatch.setattr("psij.executors.batch._budget.time.monotonic", lambda: now)
    budget = Budget()
    now += quiet_s
    asked = []
    while now < 1000.0 + quiet_s + 300:
        if (wait := budget.wait_s(a_minute)) > 0:
            now += wait + 1e-9
            continue
        budget.spend()
        asked.append(now)
    at_once = sum(when == asked[0] for when in asked)
    assert at_once == max(int(a_minute * 0.3), 1)
    assert max(sum(begin <= when < begin + 60 for when in asked) for begin in asked) <= a_minute + 1
    assert len(asked) >= 0.65 * a_minute * 5


def test_accounting_is_asked_right_after_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where jobs end all the time both wait for the same questions: the queue was asked several times in a row, and the
    ends that it showed were told three questions later."""
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    watcher = _watcher_of_many_jobs()
    asked: list[tuple[str, float]] = []
    while now < 1300.0:
        waits = {"_ends_asked_at": watcher._budget_s(of_ends=True), "_asked_at": watcher._budget_s()}
        name = min(waits, key=waits.__getitem__)
        if waits[name] > 0:
            now += waits[name] + 1e-9
            continue
        watcher._budget.spend()
        setattr(watcher, name, now)
        asked.append((name, now))
    pauses = [after[1] - before[1] for before, after in itertools.pairwise(asked[10:]) if after[0] == "_ends_asked_at"]
    assert len(pauses) > 30 and max(pauses) < 0.01


def test_the_last_ends_of_many_jobs_are_of_the_same_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """When 20 jobs of 220 were left nobody counted any more, and a minute had 29 questions."""
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    watcher = _watcher_of_many_jobs()
    for _ in range(5):
        assert watcher._budget_s() == 0
        watcher._budget.spend()
    assert watcher._budget_s() > 0
    watcher._followed.popitem()
    assert watcher._budget_s() > 0
    now += 61
    for _ in range(30):
        watcher._budget.spend()
        assert watcher._budget_s() == 0         # of a few jobs


def _watcher_of_many_jobs() -> Watcher:
    watcher = Watcher(("x",))
    config = SimpleNamespace(questions_a_minute=20.0)
    one: Any = SimpleNamespace(executor=SimpleNamespace(config=config))
    watcher._interval = 30.0
    watcher._followed = {Job(): one for _ in range(21)}
    return watcher


def test_what_was_spent_while_nobody_counted_is_not_owed() -> None:
    budget = Budget()
    for _ in range(1000):
        budget.spend()
    assert budget.wait_s(20.0) > 60
    budget.forgive()
    assert budget.wait_s(20.0) == 0


@pytest.mark.parametrize(("variable", "setting", "default"), [
    ("SSSJOB_POLLING_INTERVAL", "queue_polling_interval", 30), ("SSSJOB_QUESTIONS_A_MINUTE", "questions_a_minute", 20)])
def test_settings_by_the_environment(monkeypatch: pytest.MonkeyPatch, variable: str, setting: str,
                                     default: float) -> None:
    """What a program says counts before them."""
    monkeypatch.delenv(variable, raising=False)
    assert getattr(BatchSchedulerExecutorConfig(), setting) == default
    monkeypatch.setenv(variable, "7.5")
    assert getattr(BatchSchedulerExecutorConfig(), setting) == 7.5
    given: dict[str, Any] = {setting: 3}
    assert getattr(BatchSchedulerExecutorConfig(**given), setting) == 3
    for text in ("x", "0", "-1", "inf", "nan"):
        monkeypatch.setenv(variable, text)
        with pytest.raises(ValueError, match=f"{variable} has '{text}', and not a number above 0"):
            BatchSchedulerExecutorConfig()


def test_jobs_that_are_submitted_in_a_row_wake_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks the queue looks at the clock every half second, and not once for each job: that was a tenth of the CPU
    time of a submission."""
    looked: list[float] = []
    monkeypatch.setattr(Watcher, "_look", lambda self: looked.append(time.monotonic()))
    numbers = iter(range(1, 100))
    monkeypatch.setattr(SlurmJobExecutor, "_run_submit", lambda *_: f"{next(numbers)}\n")
    executor = SlurmJobExecutor(config=BatchSchedulerExecutorConfig(
        work_directory=tmp_path, queue_polling_interval=600, initial_queue_polling_delay=600))
    began = time.monotonic()
    for _ in range(40):
        executor.submit(Job(JobSpec("/bin/true")))
    try:
        assert len(looked) <= 2 + (time.monotonic() - began) / LOOK_S
    finally:
        watcher = watcher_of(executor)
        assert watcher is not None
        watcher.close()
