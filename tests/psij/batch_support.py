"""What the tests of batch executors share: an executor on a stand-in, jobs, a record of callbacks, scripts that run."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from psij import InvalidJobException, Job, JobAttributes, JobSpec, JobState, JobStatus
from psij.executors.batch._host import HERE
from psij.executors.batch._watch import watcher_of
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig
from psij.executors.batch.lrm import LrmExecutor
from tests.fakes.inside import Inside, enter
from tests.fakes.lab import Lab, install
from tests.psij.managers import Manager

__all__ = ["FAST", "FASTEST", "Stand", "a_job", "ended", "hurried", "is_seen_running", "known", "quick_stand",
           "refusal", "run_script", "runs", "script_text", "stand_in"]

FAST: Mapping[str, Any] = {"queue_polling_interval": 0.3, "initial_queue_polling_delay": 0.1, "command_timeout": 20,
                           "accounting_delay": 1.0, "lost_after": 2.0}
#: For commands that run in this process.
FASTEST: Mapping[str, Any] = {"queue_polling_interval": 0.05, "initial_queue_polling_delay": 0.02,
                              "command_timeout": 0.4, "accounting_delay": 0.15, "lost_after": 0.6}
_SLOW: Mapping[str, Any] = {"command_timeout": 15.0}    # where some commands are programs all the same
_BATCH = "psij.executors.batch"
_PAUSES: Mapping[str, Any] = {
    f"{_BATCH}._submission._LOOKUP_S": (0.02, 0.2), f"{_BATCH}._watch._SETTLE_S": (0.05, 0.3),
    f"{_BATCH}._watch.LOOK_S": 0.05, f"{_BATCH}._lookout.LOOK_S": 0.05, f"{_BATCH}._watch._SOON_S": (0.05, 0.08),
    f"{_BATCH}._agenda._LINGER_S": 0.3, "sssjob.run.engine._TICK_S": 0.05, "sssjob.run.submitting.LOOK_AGAIN_S": 0.1,
    "sssjob.run.adopting.LOOK_AGAIN_S": 0.1, "sssjob.run.submitting._PAUSE_S": (0.05, 0.5)}


def hurried(patch: Any) -> None:
    """Shorten the pauses that no configuration names. patch: a pytest.MonkeyPatch.

    Modules are imported by their names, not reached as attributes: ``sssjob.run`` may be the function of that name.
    """
    for name, value in _PAUSES.items():
        module, _, constant = name.rpartition(".")
        patch.setattr(import_module(module), constant, value)


class Stand:
    """An executor with a stand-in beneath it. seen: states by job, as they were told. inside: what runs its commands
    in this process, if they do not run as programs."""

    def __init__(self, lab: Lab, executor: BatchSchedulerExecutor, inside: Inside | None = None) -> None:
        self.lab = lab
        self.inside = inside
        self.executor = executor
        self.seen: dict[str, list[JobStatus]] = {}
        self._told = threading.Condition()
        executor.set_job_status_callback(self._note)

    def _note(self, job: Job, status: JobStatus) -> None:
        with self._told:
            self.seen.setdefault(job.id, []).append(status)
            self._told.notify_all()

    def states(self, job: Job) -> list[JobState]:
        """States of a job that its callback was told, once the last of them has been."""
        with self._told:        # what is told of a state later on is no status of its own
            self._told.wait_for(lambda: [s.state for s in self.seen.get(job.id, ())][-1:] == [job.status.state], 60)
            return [status.state for status in self.seen.get(job.id, ())]

    def files(self) -> list[str]:
        """Names of the files in the work directory."""
        folder = self.executor.work_directory
        return sorted(os.listdir(folder)) if folder.exists() else []


@contextmanager
def stand_in(fake: ModuleType, cls: type[BatchSchedulerExecutor], folder: Path, monkeypatch: Any,
             virtual: bool = False, programs: bool = True, **settings: Any) -> Iterator[Stand]:
    """An executor of that class on the stand-in of that module. virtual: its commands run in this process, and its jobs
    are none. programs: whether commands are called as programs, a few of them though the others are virtual."""
    lab = install(str(fake.__file__), fake.COMMANDS, folder / "lab", folder / "bin", forked=programs)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    given = {**(FASTEST if virtual else FAST), **settings}
    config = BatchSchedulerExecutorConfig(work_directory=folder / "work", **given)
    inside = None
    if virtual:
        hurried(monkeypatch)
        lab.set(virtual=True)
        inside = enter(monkeypatch, lab, fake.COMMANDS)
    stand = Stand(lab, cls(config=config), inside)
    try:
        yield stand
    finally:
        lab.close()
        if watcher := watcher_of(stand.executor):
            watcher.close()


def quick_stand(manager: Manager, folder: Path, monkeypatch: Any) -> AbstractContextManager[Stand]:
    """An executor on the stand-in of a manager: commands run in this process, and jobs are none."""
    settings = _SLOW if manager.slow else {}
    return stand_in(manager.fake, manager.executor, folder, monkeypatch, virtual=True,
                    programs=manager.slow, **settings)


def a_job(script: str, **members: Any) -> Job:
    """A job that runs a line of shell."""
    members.setdefault("attributes", JobAttributes(timedelta(minutes=1)))
    return Job(JobSpec("/bin/bash", ["-c", script], **members))


def ended(job: Job, seconds: float = 60) -> JobStatus:
    """The final status. Fails when the job does not end."""
    status = job.wait(timedelta(seconds=seconds))
    assert status is not None, f"still {job.status} after {seconds} s"
    return status


def known(job: Job) -> dict[str, Any]:
    """What is known of a job beside its state."""
    return job.status.metadata or {}


def runs(stand: Stand, script: str = "sleep 600", **members: Any) -> Job:
    """A job that runs, and the queue has said so."""
    job = a_job(script, **members)
    stand.executor.submit(job)
    is_seen_running(job)
    return job


def is_seen_running(job: Job) -> None:
    """Wait until a job runs, and the queue has said so. Fails when it does not."""
    assert job.wait(timedelta(seconds=60), JobState.ACTIVE) is not None
    until = time.monotonic() + 60
    while "native_state" not in known(job):
        assert time.monotonic() < until
        time.sleep(0.01)


def refusal(stand: Stand, **members: Any) -> str:
    """What is said of a job that cannot be expressed: nothing is left of it, and the manager has not heard of it."""
    with pytest.raises(InvalidJobException) as raised:
        stand.executor.submit(a_job("true", **members))
    assert stand.files() == [] and stand.lab.jobs() == []
    return raised.value.message


def script_text(executor: LrmExecutor, job: Job) -> str:
    """The submit script of a job."""
    out = StringIO()
    executor.generate_submit_script(job, executor._create_script_context(job), out)
    return out.getvalue()


def run_script(manager: Manager, executor: LrmExecutor, job: Job, folder: Path, **environment: str) -> int:
    """Run the submit script of a job as its manager would, as job 5; its exit code. The stand-in is not needed."""
    executor.work_directory = folder / "work"
    executor.work_directory.mkdir()
    HERE.write(folder / "script", script_text(executor, job).encode("utf-8", "surrogateescape"))
    form = manager.script
    if form.command is not None:
        (folder / form.command).write_text("#!/bin/sh\necho 5\n")
        (folder / form.command).chmod(0o755)
    known = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **form.environment, **environment}
    return subprocess.run(["/bin/bash", folder / "script", *form.arguments], check=False, env=known,
                          stdout=subprocess.DEVNULL).returncode
