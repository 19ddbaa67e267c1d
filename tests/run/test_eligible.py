"""EligibleTime: handed to resource managers that can wait for a time, waited out here for the others."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from psij import JobExecutor
from psij.executors.batch.slurm import SlurmJobExecutor
from tests.run.support import Desk, after, desk_on, group, shell

NOON = 1_795_262_400        # 2026-11-21 12:00:00 UTC
BEFORE = 1_793_491_200      # 2026-11-01 00:00:00 UTC: that night New York has 01:30 twice


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(("executor", "expected"), [
    ("slurm", {"slurm.begin": "uts1795262401"}), ("sge", {"sge.a": "202611210700.01"}),
    ("pbs", {"pbs.a": "202611210700.01"}), ("pbs_classic", {"pbs.a": "202611210700.01"}),
    ("lsf", {"lsf.b": "2026:11:21:07:01"}), ("flux", {"flux.dependency": "begin-time:1795262401"}),
    ("cobalt", None), ("htcondor", None), ("nqsv", None)])
@pytest.mark.usefixtures("new_york")
def test_what_is_said(executor: str, expected: dict[str, object] | None) -> None:
    """Rounded up: never before."""
    assert JobExecutor.get_instance(executor).begin_attributes(NOON + 0.5) == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize("executor", ["sge", "pbs", "lsf"])
@pytest.mark.usefixtures("new_york")
def test_a_time_that_the_clock_shows_twice_is_not_said(executor: str) -> None:
    """It might be taken for the first one, an hour too early."""
    say = JobExecutor.get_instance(executor).begin_attributes  # type: ignore[attr-defined]
    half_hours = range(BEFORE, BEFORE + 86_400, 1800)
    first = next(at for at in half_hours if time.strftime("%H%M", time.localtime(at)) == "0130")
    assert [say(at) is None for at in (first, first + 3600, first + 7200)] == [True, True, False]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with desk_on("slurm", tmp_path, monkeypatch) as made:
        yield made


def begins(desk: Desk) -> dict[str, str | None]:
    """What each script asks for, by the name of its job."""
    found = {}
    for script in (desk.folder / "work" / "slurm").glob("*.job"):
        text = script.read_text()
        names = re.findall("echo (\\w+)", text)
        at = re.search(r"^#SBATCH --begin=(\S+)$", text, re.MULTILINE)
        found[names[0]] = None if at is None else at[1]
    return found


def test_it_is_submitted_at_once(desk: Desk) -> None:
    """But not the time that has come, nor where the document has an option of its own for it."""
    later = int(time.time()) + 3600

    def job(name: str, at: int, *more: str) -> str:
        return shell(f"echo {name}; sleep 60", f"<EligibleTime>{at}</EligibleTime>", *more, name=name)

    submission = desk.submit(group(job("later", later), job("past", 1), job("after", later, after("later")), job(
        "own", later, "<Extension type='slurm' name='begin'>now+1hour</Extension>"), job("never", 10 ** 20)))
    assert begins(desk) == {"later": f"uts{later}", "past": None, "after": f"uts{later}"}
    assert {job.plan.label: job.word for job in submission.jobs if job.plan.label != "past"} == {
        "later": "running", "after": "running", "own": "waiting", "never": "waiting"}
    assert "slurm.dependency" in desk.told("after") and "slurm.begin" not in desk.told("after")
    assert desk.client().cancel(["g"])[1]


def test_whoever_takes_over_says_it_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client was killed before its submit command, and the next one submits."""
    monkeypatch.setattr("sssjob.run.adopting.LOOK_AGAIN_S", 0.2)
    later = int(time.time()) + 3600
    with monkeypatch.context() as patch:
        patch.setattr(SlurmJobExecutor, "_run_submit", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        desk.killed(lambda: desk.submit(shell("echo a", f"<EligibleTime>{later}</EligibleTime>")))
    assert desk.job("a").row.native_id is None
    until = time.monotonic() + 30
    while desk.job("a").row.native_id is None:
        desk.client().wait(["a"], 3)
        assert time.monotonic() < until
    assert set(begins(desk).values()) == {f"uts{later}"}
    assert desk.client().cancel(["a"])[1]
