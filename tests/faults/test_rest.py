"""E49 to E58: many jobs, other formats, records, names, clusters, processes of this machine, pauses, signals."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from psij import InvalidJobException, JobState
from psij.executors.batch import _agenda, _watch
from psij.executors.batch.slurm import SlurmJobExecutor
from tests.fakes import slurm
from tests.faults.test_status import EVER, asked, rest
from tests.psij.batch_support import Stand, a_job, ended, known, runs, stand_in
from tests.psij.managers import Manager
from tests.psij.test_batch import TheirExecutor

A, C, F = (JobState[name] for name in ("ACTIVE", "COMPLETED", "FAILED"))


@pytest.mark.parametrize("record", ["", "0", "0\n1\n", "0\nanother\n1\n2\n", "0\n0\n0\n0\n"])
def test_exit_files_of_nobody(stand: Stand, record: str) -> None:
    """E51: of an older job with the same number, or half there: nothing follows."""
    stand.executor.config.lost_after = 1.0
    stand.lab.set(accounting=False, late=600)
    job = runs(stand)
    (stand.executor.work_directory / f"1.{job.id}.ec").write_text(record)
    rest(0.3)
    assert job.status.state is A
    stand.lab.drop("1")
    status = ended(job)
    expected = (0, None) if record == "0" else (None, "lost")      # psij-python's form names no job
    assert (status.exit_code, known(job).get("reason")) == expected


@pytest.mark.parametrize("executor", [SlurmJobExecutor, TheirExecutor])
def test_a_program_that_prints_our_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: Any) -> None:
    """E52: how it ended does not follow from what it prints."""
    with stand_in(slurm, executor, tmp_path, monkeypatch) as stand:
        stand.lab.set(forget=0, accounting=False)
        job = a_job("echo _PSIJ_SCRIPT_DONE; echo _PSI_J_LAUNCHER_DONE; exit 3")
        stand.executor.submit(job)
        status = ended(job)
        assert (status.state, status.exit_code) == (F, 3) and "_DONE" not in (status.message or "")
        killed = a_job("echo _PSIJ_SCRIPT_DONE; sleep 30")
        stand.executor.submit(killed)
        while not stand.lab.jobs()[1]["pid"]:
            time.sleep(0.02)
        rest(0.3)
        stand.lab.kill(stand.lab.jobs()[1], 9)
        assert ended(killed).state is F and killed.status.exit_code is None


ODD = ["x JobState=COMPLETED ExitCode=0:0", "a|COMPLETED|b", "</JB_name><state>dr</state>", '", "job_state": "F',
       "%j%x",
       "a\tb", "\u202eevil", "Job Id: 1.head", "Exit_status = 0", "1 user 0:01 R"]


def test_names_that_look_like_answers(each: Stand) -> None:
    """E53: refused where they cannot be taken; otherwise they end no job, their own or another one."""
    plain, odd = runs(each), {name: a_job("sleep 0.2; exit 3", name=name) for name in ODD}
    for name in ODD:
        try:
            each.executor.submit(odd[name])
        except InvalidJobException as error:
            assert "name" in error.message
            del odd[name]
    assert {name: ended(job).exit_code for name, job in odd.items()} == dict.fromkeys(odd, 3)
    rest(0.1)
    assert plain.status.state is A
    each.lab.end(plain.native_id or "", 4)
    assert ended(plain).exit_code == 4


def test_a_cluster_that_is_away(stand: Stand) -> None:
    """E54: jobs of which the answer says nothing stay as they are, others go on."""
    away, here = runs(stand), a_job("sleep 0.2; exit 3")
    stand.lab.fault("squeue", **EVER, edit=[[r"^1\|.*\n", ""]])
    stand.lab.fault("sacct", **EVER, edit=[[r"(?s)^1(\.\w+)?\|[^\n]*\n", ""]])
    stand.lab.fault("scontrol", **EVER, exit=1, stderr="slurm_load_jobs error: Unable to contact slurm controller")
    stand.executor.submit(here)
    assert ended(here).exit_code == 3
    rest(1.0)
    assert away.status.state is A
    for command in ("squeue", "sacct", "scontrol"):
        stand.lab.heal(command)
    stand.lab.end("1", 5)
    assert ended(away).exit_code == 5


def test_asleep_for_hours(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """E57: afterwards it is asked once, not as often as it could have been; no time limit has run out meanwhile."""
    monkeypatch.setattr(_watch, "_watchers", {})        # the times of this watcher will lie in the future
    stand.executor.config.lost_after = 30
    first, second = runs(stand), runs(stand)
    stand.lab.fault("squeue", **EVER, edit=[[r"^2\|.*\n", ""]])
    stand.lab.fault("sacct", **EVER, edit=[[r"^2\|.*\n", ""]])
    stand.lab.fault("scontrol", **EVER, edit=[[r"(?s).+", ""]])
    rest(0.3)
    slept = [0.0]
    for module in (_agenda, _watch):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=time.time,
                                                            monotonic=lambda: time.monotonic() + slept[0]))
    before = asked(stand, "squeue")
    slept[0] = 8 * 3600.0
    rest(0.4)
    assert 1 <= asked(stand, "squeue") - before <= 12
    assert (first.status.state, second.status.state) == (A, A)
    stand.lab.heal("sacct")         # it says that the job runs, and the queue has not listed it for hours
    rest(0.4)
    assert (first.status.state, second.status.state) == (A, A)
    for command in ("squeue", "scontrol"):
        stand.lab.heal(command)
    for job in (first, second):
        stand.lab.end(job.native_id or "", 3)
        assert ended(job).exit_code == 3


def test_codes_and_signals(each: Stand, kind: Manager) -> None:
    """E58: a signal is no exit code, and an exit code no signal, however the manager writes them."""
    jobs = {end: runs(each) for end in ((3, 0), (137, 0), (143, 0), (200, 0), (0, 9), (0, 15))}
    for (code, signal), job in jobs.items():
        each.lab.end(job.native_id or "", code, signal)
    for (code, signal), job in jobs.items():
        status = ended(job)
        if signal and known(job).get("reason") == "lost":       # where nothing but the exit file has codes
            assert not kind.remembers and status.exit_code is None
        elif signal:
            told = signal if kind.tells_signals else None
            assert (status.exit_code, known(job).get("signal")) == (128 + signal, told)
        else:
            assert (status.exit_code, "signal" in known(job)) == (code, False)
