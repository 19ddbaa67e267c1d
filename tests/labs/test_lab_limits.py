"""Limits that real clusters set to the jobs of a user: nothing is lost, and few commands are wasted on a full queue."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from tests.psij.test_batch_labs import enter_lab
from tests.run.support import Desk, desk_on, group, shell

pytestmark = pytest.mark.lab
MOST, MANY = 10, 30
COUNTED = {"slurm": ("sbatch", "squeue", "sacct", "scancel"), "sge": ("qsub", "qstat", "qacct", "qdel")}
SUBMIT = """
import sys
from pathlib import Path
from tests.run.support import Desk, group, shell
desk = Desk(sys.argv[1], Path(sys.argv[2]), None)
desk.submit(group(*(shell(f"echo {n} >> ran", name=f"j{n}") for n in range(int(sys.argv[3])))))
"""


def told(*words: str, text: str | None = None) -> str:
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, input=text, timeout=60).stdout


@contextmanager
def limit(name: str, most: int, folder: Path) -> Iterator[None]:
    """At most so many jobs of a user."""
    if name == "slurm":
        change = ("sacctmgr", "-i", "modify", "qos", "normal", "set")
        told(*change, f"MaxSubmitJobsPerUser={most}")
        try:
            yield
        finally:
            told(*change, "MaxSubmitJobsPerUser=-1")
        return
    before = told("qconf", "-sconf")
    file = folder / "global"
    file.write_text(re.sub(r"(?m)^max_u_jobs .*", f"max_u_jobs {most}", before))
    told("qconf", "-Mconf", str(file))
    try:
        yield
    finally:
        file.write_text(before)
        told("qconf", "-Mconf", str(file))


@pytest.fixture(params=COUNTED)
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk on a real lab whose commands write down that they are called."""
    name = request.param
    enter_lab(name, monkeypatch)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for command in COUNTED[name]:
        (bin_ / command).write_text(f'#!/bin/sh\necho "${{0##*/}} $(date +%s) $*" >> "{tmp_path}/calls"\n'
                                    'PATH=${PATH#*:} exec "${0##*/}" "$@"\n')
        (bin_ / command).chmod(0o755)
    with desk_on(name, tmp_path, monkeypatch, real=True) as desk:
        monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
        yield desk


def calls(desk: Desk, *names: str) -> int:
    return sum(line.split()[0] in names for line in desk.text("calls").splitlines())


def test_more_jobs_than_may_be(desk: Desk, tmp_path: Path) -> None:
    """Thirty jobs where ten may be: all of them run, with hardly more submit commands than jobs."""
    with limit(desk.executor, MOST, tmp_path):
        made = desk.submit(group(*(shell(f"echo {n} >> ran; sleep 1", name=f"j{n}") for n in range(MANY))), retries=0)
        waiting = [job for job in made.jobs if job.word == "waiting"]
        assert MANY - len(waiting) >= MOST and waiting
        assert all((job.held_for or "").startswith("the queue is full: ") for job in waiting)
        assert set(desk.wait("g", seconds=200).values()) == {("done", 0)}
    assert sorted(map(int, desk.text("ran").split())) == list(range(MANY))
    assert calls(desk, "sbatch", "qsub") <= MANY + 10


def test_a_cancel_of_many_jobs(desk: Desk) -> None:
    """As few commands as their number allows, though some of the jobs have ended already."""
    count = 110
    desk.submit(group(*(shell("true" if n < 3 else "sleep 600", name=f"j{n}") for n in range(count))))
    assert desk.client().wait(["j0", "j1", "j2"], 60)[1]
    jobs, done = desk.client().cancel(["g"], 90)
    assert done and [job.word for job in jobs] == ["done"] * 3 + ["canceled"] * (count - 3)
    assert calls(desk, "scancel", "qdel") <= 4


def test_jobs_that_keep_ending_share_questions(desk: Desk) -> None:
    """With the settings that a user has; Grid Engine is asked for the record of each job by a qacct of its own. The
    ceiling is one of each client: what was asked while the jobs were submitted is not the second one's."""
    desk.config = BatchSchedulerExecutorConfig(work_directory=desk.folder / "work", lost_after=60)
    desk.submit(group(*(shell(f"sleep {n % 6}", name=f"j{n}") for n in range(150))))
    before = len(desk.text("calls").splitlines())
    assert set(desk.wait("g", seconds=300).values()) == {("done", 0)}
    times = [int(line.split()[1]) for line in desk.text("calls").splitlines()[before:]
             if line.split()[0] in ("squeue", "sacct", "qstat")]
    assert max(sum(begin <= when < begin + 60 for when in times) for begin in times) <= 20 + 3    # and of other kinds


def test_a_client_that_is_killed_while_it_submits_two_hundred(desk: Desk, tmp_path: Path) -> None:
    """The next one finds what there is by one question, and the rest once it cannot be under way any more."""
    with subprocess.Popen([sys.executable, "-c", SUBMIT, desk.executor, str(tmp_path), "200"],
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}) as client:
        until = time.monotonic() + 60
        while calls(desk, "sbatch", "qsub") < 60:
            assert time.monotonic() < until and client.poll() is None
            time.sleep(0.02)
        client.send_signal(signal.SIGKILL)
        client.wait()
    asked = ("squeue", "sacct", "qstat")        # qacct is asked for each job that has ended
    before = calls(desk, *asked)
    quick, desk.config = desk.config, BatchSchedulerExecutorConfig(     # with the pauses that a user has
        work_directory=desk.folder / "work", lost_after=600)
    one = desk.client()
    (submission,), answered = one.look([one.journal.entry(1)], 30)
    assert answered and calls(desk, *asked) - before <= 12
    known = sum(job.row.native_id is not None for job in submission.jobs)
    assert 50 <= known < 200
    desk.config = quick
    desk.config.lost_after = 2.0
    assert set(desk.wait("g", seconds=250).values()) == {("done", 0)}
    assert sorted(map(int, desk.text("ran").split())) == list(range(200))
