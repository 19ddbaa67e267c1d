"""What the tests of runs share: a desk with a journal of its own, on stand-ins or on a real lab."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from psij.executors.batch._watch import Watcher, watcher_of
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig
from sssjob.findings import Findings, Policy
from sssjob.run.client import Client
from sssjob.run.journal import open_journal
from sssjob.run.outcomes import Outcome
from sssjob.run.standing import Running, Submission
from sssjob.xml.reader import read_document
from tests.fakes import lab, sge, slurm
from tests.forks import fork_keepers

__all__ = ["FAST", "Desk", "after", "desk_on", "eventually", "group", "shell"]

FAKES = {"slurm": slurm, "sge": sge}
FAST: dict[str, Any] = {"queue_polling_interval": 0.15, "initial_queue_polling_delay": 0.05, "command_timeout": 20,
                        "accounting_delay": 1.0, "lost_after": 2.0}


def shell(script: str, *more: str, name: str = "a") -> str:
    """A job that runs a line of shell."""
    return (f"<Job><Id>{name}</Id><Executable>/bin/sh</Executable><Arguments>-c '{escape(script)}'</Arguments>"
            f"<Environment export='true'/>{''.join(more)}</Job>")


def after(other: str, condition: str = "OnSuccess", code: int | None = None) -> str:
    """A Dependency."""
    said = "" if code is None else f" code='{code}'"
    return f"<Dependency condition='{condition}'{said}>{other}</Dependency>"


def group(*jobs: str) -> str:
    """A JobGroup of jobs."""
    return f"<JobGroup><Id>g</Id>{''.join(jobs)}</JobGroup>"


class Desk:
    """Clients of one journal. lab: the stand-in, where there is one."""

    def __init__(self, executor: str, folder: Path, stand_in: lab.Lab | None, **settings: Any) -> None:
        self.executor, self.folder, self.lab = executor, folder, stand_in
        self.config = BatchSchedulerExecutorConfig(work_directory=folder / "work", **{**FAST, **settings})
        self.made: list[Client] = []

    def client(self, **members: Any) -> Client:
        """Another client."""
        config = None if self.executor == "local" else self.config
        self.made.append(Client(open_journal(self.folder / "journal.db"), config=config, **members))
        return self.made[-1]

    def submit(self, text: str, policy: Policy = Policy.REJECT, **members: Any) -> Submission:
        """Submit a document, which must be taken."""
        client = self.client(**members)
        submission = client.submit(read_document(text.encode()), self.executor, cwd=self.folder, policy=policy)
        assert submission is not None, [str(f) for f in client.findings]
        return submission

    def refused(self, text: str) -> list[tuple[str, str]]:
        """Rules and subjects of what rejects a document."""
        findings = Findings()
        client = self.client(findings=findings)
        assert client.submit(read_document(text.encode()), self.executor, cwd=self.folder) is None
        return [(f.rule, f.subject) for f in findings.rejecting()]

    def run(self, text: str, **options: Any) -> Outcome:
        """Run a document to its end."""
        options.setdefault("timeout", 90)
        return self.client().run(read_document(text.encode()), self.executor, cwd=self.folder, **options)

    def wait(self, *names: str, seconds: float = 90) -> dict[str, tuple[str, int | None]]:
        """Outcome and exit code of jobs by their labels, once they have ended."""
        jobs, done = self.client().wait(names, seconds)
        assert done, [(job.plan.label, job.word, job.row) for job in jobs]
        return {job.plan.label: (job.word, job.outcome.exit_code if job.outcome else None) for job in jobs}

    def left(self, number: int = 1) -> None:
        """Wait until nobody looks after a submission that has ended, and its folder is gone."""
        while self.client().journal.entry(number).folder.exists():
            time.sleep(0.05)

    def job(self, name: str) -> Running:
        """A job as the journal knows it."""
        client = self.client()
        row = client.journal.find(name)[0]
        return client.standing(client.journal.entry(row.submission)).jobs[row.job]

    def events(self, name: str, *kinds: str) -> list[dict[str, Any]]:
        """Data of the events of a job."""
        client = self.client()
        row = client.journal.find(name)[0]
        return [e.data for e in client.journal.entry(row.submission).events() if e.job == row.job and e.kind in kinds]

    def told(self, name: str) -> dict[str, Any]:
        """What the resource manager was told that a job waits for."""
        return {key: value for data in self.events(name, "intent") for key, value in data.get("after", {}).items()}

    def text(self, name: str) -> str:
        """What a job has written to a file."""
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def killed(self, act: Callable[[], object]) -> None:
        """Do something in a process that is killed at once when it is done."""
        pid = os.fork()
        if pid == 0:
            try:
                act()
            finally:
                os.kill(os.getpid(), 9)
        os.waitpid(pid, 0)

    def close(self) -> None:
        """Leave nothing behind."""
        for client in self.made:
            for backend in client._backends.values():
                watcher = watcher_of(backend) if isinstance(backend, BatchSchedulerExecutor) else None
                if isinstance(watcher, Watcher):
                    watcher.close()
            client.journal.close()


def eventually(is_so: Callable[[], object], seconds: float = 30) -> None:
    """Wait until something is so."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


@contextmanager
def desk_on(executor: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Iterator[Desk]:
    """A desk for an executor; its stand-in comes first on the path, where it has one."""
    made = None
    monkeypatch.chdir(folder)
    fork_keepers(monkeypatch)
    if executor in FAKES and not settings.pop("real", False):
        fake = FAKES[executor]
        made = lab.install(str(fake.__file__), fake.COMMANDS, folder / "lab", folder / "bin")
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    desk = Desk(executor, folder, made, **settings)
    try:
        yield desk
    finally:
        desk.close()
        if made is not None:
            made.close()
