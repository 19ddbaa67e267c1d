"""E01 to E15: submitting. No job is lost (P1), and none is made twice (P2)."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from psij import JobState, SubmitException
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from sssjob.run.client import Client
from sssjob.run.journal import open_journal
from tests.cli.test_journal import Site, eventually, group, shell
from tests.forks import Command
from tests.psij.batch_support import FASTEST, Stand, a_job, ended, hurried
from tests.psij.managers import Manager

CarriedOut = Callable[..., dict[str, Any]]
NEVER = {"times": -1}


def test_it_hangs(each: Stand, kind: Manager) -> None:
    """E01: stopped at its limit; when the search has found nothing, trying again is right."""
    each.lab.fault(kind.submit, sleep=30)
    job, began = a_job("exit 3"), time.monotonic()
    what = "not submitted" if kind.asked_by_tag else "Nobody knows.*"
    with pytest.raises(SubmitException, match=rf"{what}: the submit command took longer than [\d.]+ s") as raised:
        each.executor.submit(job)
    assert time.monotonic() - began < 25 and raised.value.transient is kind.asked_by_tag
    assert job.status.state is JobState.NEW and len(each.lab.calls(kind.submit)) == 1
    if not kind.asked_by_tag:
        return
    assert each.files() == []
    each.executor.submit(job)
    assert ended(job).exit_code == 3 and len(each.lab.jobs()) == 1


@pytest.mark.parametrize("fault", [{"sleep": 30}, {"stdout": ""}, {"stdout": "warning: the disk is nearly full\n"},
                                   {"exit": -9}])
def test_the_job_is_there(each: Stand, kind: Manager, fault: dict[str, Any]) -> None:
    """E02, E03, E04, E06: too slow, no answer, no id in it, or killed; there is one job, and it is ours."""
    each.lab.fault(kind.submit, after=True, **fault)
    job = a_job("sleep 0.3; exit 3")
    each.executor.submit(job)
    assert len(each.lab.jobs()) == len(each.lab.calls(kind.submit)) == 1
    assert ended(job).exit_code == 3


def test_a_part_of_an_id(stand: Stand) -> None:
    """E03: the answer ends within the id, which is then another job's."""
    (stand.lab.root / "last").write_text("41")
    stand.lab.fault("sbatch", cut=1)
    job = a_job("sleep 0.3; exit 3")
    stand.executor.submit(job)
    assert job.native_id == "42"
    assert ended(job).exit_code == 3


@pytest.mark.parametrize("said", ["12;north\n", "Welcome to north!\n\n12;north\n"])
def test_id_and_cluster(stand: Stand, said: str) -> None:
    """E05."""
    stand.lab.fault("sbatch", after=True, stdout=said)
    job = a_job("sleep 5")
    stand.executor.submit(job)
    assert (job.native_id, (job.status.metadata or {})["machine"]) == ("12", "north")


def test_language_of_answers(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """E05: in other languages nobody could read them; a job that inherits the environment keeps the user's own."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    job = a_job("sleep 5")
    stand.executor.submit(job)
    stand.executor.list()
    assert stand.inside is not None
    spoken = {name: words.get(b"LC_ALL") for name, words in stand.inside.environments.items()}
    assert spoken | {"squeue": b"C", "sbatch": b"de_DE.UTF-8"} == spoken


@pytest.mark.parametrize(("content", "mode", "expected"), [
    ("#!/bin/sh\n", 0o644, "Permission denied"), ("\x7fELF of another machine", 0o755, "Exec format error")])
def test_a_command_that_cannot_run(stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str,
                                   mode: int, expected: str) -> None:
    """E08: the error names the command and the path."""
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "sbatch").write_text(content)
    (tmp_path / "odd" / "sbatch").chmod(mode)
    monkeypatch.setenv("PATH", str(tmp_path / "odd"))
    with pytest.raises(SubmitException, match=rf"'sbatch'.*{expected}.*PATH is '{tmp_path}/odd'") as raised:
        stand.executor.submit(a_job("true"))
    assert not raised.value.transient and stand.files() == []


# --- clients that are killed

SUBMIT = {"do": "submit", "jobs": [{"script": "sleep 0.1; exit 3"}]}


@pytest.mark.parametrize(("die", "accepted"), [
    (["sssjob.run.journal", "Journal.add", "before", 1], False),            # E10
    (["sssjob.run.journal", "Journal.add", "after", 1], False),             # a job and its plan are written as one
    (["sssjob.run.journal", "Entry.flush", "before", 1], False),
    (["sssjob.run.journal", "Entry.flush", "after", 1], False),
    (["sssjob.run.client", "Client.begin", "before", 1], True),             # E11
    (["sssjob.run.journal", "Entry.flush", "before", 2], True),             # E12
    (["sssjob.run.journal", "Entry.flush", "after", 2], True)])             # E13
def test_killed_at_a_write(carried_out: CarriedOut, die: list[Any], accepted: bool) -> None:
    """E10, E11, E12, E13: nothing is claimed, or the job is run, once."""
    answers = carried_out({**SUBMIT, "die": die})
    assert answers["wrong"] == []
    assert [(job[2], job[3]) for job in answers["jobs"]] == ([("failed", 3)] if accepted else [])
    assert len(answers["native"]) == accepted


def test_killed_when_the_id_is_written(carried_out: CarriedOut) -> None:
    """E13: whoever comes next sees it without asking, where ids are not so many that they share a disk access."""
    slow = {"do": "fault", "command": "sbatch", "times": 1, "edit": [], "sleep": 0.2}
    answers = carried_out(slow, {**SUBMIT, "die": ["sssjob.run.submitting", "Submitting.known", "after", 1]})
    assert answers["wrong"] == [] and answers["before"] == [["a0", "1", None, None]]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("manager", ["slurm", "sge", "pbs", "htcondor", "nqsv"])
def test_killed_at_the_command(carried_out: CarriedOut, manager: str, when: str) -> None:
    """E11, E12: before and after the resource manager took the job."""
    command = {"slurm": "sbatch", "htcondor": "condor_submit"}.get(manager, "qsub")
    answers = carried_out({"do": "fault", "command": command, "times": 1, "kill": when}, SUBMIT, manager=manager)
    assert answers["wrong"] == []
    if (manager, when) == ("nqsv", "before"):       # nobody can say that it was not submitted
        assert [job[2:] for job in answers["jobs"]] == [["failed", None]] and answers["native"] == []
    else:
        assert [job[2:] for job in answers["jobs"]] == [["failed", 3]] and len(answers["native"]) == 1


# --- signals

@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site("slurm", tmp_path)
    yield made
    assert made.lab is not None
    made.lab.close()


def started(site: Site, count: int = 30) -> Command:
    """A client with two submit commands under way that take their time."""
    assert site.lab is not None
    site.lab.fault("sbatch", sleep=2, skip=1, times=2, edit=[])
    (site.folder / "job.xml").write_text(group(*(shell("true", name=f"j{n}") for n in range(count))))
    running = site.start("submit", "job.xml", "--executor", "slurm", "-q", "--policy", "ignore")
    eventually(lambda: site.lab is not None and len(site.lab.calls("sbatch")) == 3)
    return running


def test_a_signal_while_submitting(site: Site) -> None:
    """E15: the submissions under way are finished and written down, no other one begins."""
    running = started(site)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    assert running.returncode == 143 and site.lab is not None and len(site.lab.jobs()) == 3
    assert len([r for r in site.records("list", "--all", "--offline") if r["native_id"]]) == 3


def test_a_second_signal_ends_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """E15: and what the first would have waited for is found by its tag."""
    hurried(monkeypatch)
    running = started(site, 3)
    running.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    began = time.monotonic()
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    assert running.returncode == -signal.SIGTERM and time.monotonic() - began < 2.5
    monkeypatch.setenv("PATH", site.environment["PATH"])
    config = BatchSchedulerExecutorConfig(work_directory=site.folder / ".psij" / "work", **{**FASTEST,
                                                                                            "command_timeout": 10})
    with open_journal(site.journal) as journal:
        _, done = Client(journal, config=config).wait(["g"], 60)
        assert done and [row.outcome for row in journal.rows()] == ["done"] * 3
    assert site.lab is not None and len(site.lab.jobs()) == 3


def test_submitting_side_by_side(stand: Stand) -> None:
    """E02: a slow submission holds up no other one."""
    stand.lab.fault("sbatch", after=True, sleep=30)
    slow, quick = a_job("sleep 0.2"), a_job("exit 4")
    thread = threading.Thread(target=stand.executor.submit, args=(slow,))
    thread.start()
    while not stand.lab.calls("sbatch"):
        time.sleep(0.01)
    stand.executor.submit(quick)
    assert slow.status.state is JobState.NEW
    thread.join()
    assert (ended(quick).exit_code, ended(slow).exit_code) == (4, 0)
