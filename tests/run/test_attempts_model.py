"""Any policy, any ends, any deaths of clients: attempts are neither lost nor doubled, and the document counts them all.

The manager is one in memory, whose jobs end as a script says as soon as they are submitted. A client dies when it is
about to write, or has just written, or just before or after a submission; from then on nothing of it is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psij import Job, JobExecutor, JobExecutorConfig, JobSpec, JobState, JobStatus
from sssjob.document.failures import Retry
from sssjob.run import backends
from sssjob.run import client as client_module
from sssjob.run.client import Client
from sssjob.run.journal import Entry, open_journal
from sssjob.run.standing import Running
from sssjob.xml.reader import read_document
from tests.strategies import examples

SECONDS = 7
_REASONS = ("timeout", "memory", "node-failure", "preempted", "signal", "launch", "deadline", "lost", "unknown-exit")
ENDS = st.lists(st.one_of(st.sampled_from(_REASONS), st.sampled_from((1, 2, 75))), max_size=6)
POLICIES = st.lists(st.sampled_from(("timeout", "memory", "node-failure", "exit", "exit(75)", "signal")), min_size=1,
                    unique=True).flatmap(lambda words: st.tuples(*(st.integers(1, 3) for _ in words)).map(
                        lambda counts: " ".join(f"{word}={n}" for word, n in zip(words, counts, strict=True))))
DEATHS = st.lists(st.tuples(st.sampled_from(("before a write", "after a write", "before a submission",
                                             "after a submission")), st.integers(1, 5)), max_size=4)


class DiedError(BaseException):
    """The client is killed."""


@dataclass
class World:
    """The manager. ends: of its jobs, in their order, a reason or an exit code; after them all end well."""

    ends: list[str | int]
    tags: dict[str, int] = field(default_factory=dict)
    commands: list[list[str]] = field(default_factory=list)
    death: tuple[str, int] | None = None

    def reach(self, point: str) -> None:
        """Die if the time has come."""
        if self.death is None or self.death[0] != point:
            return
        self.death = (point, self.death[1] - 1)
        if self.death[1] <= 0:
            raise DiedError(point)

    @property
    def dead(self) -> bool:
        return self.death is not None and self.death[1] <= 0

    def end(self, number: int) -> JobStatus:
        """How the job of that number ended."""
        start = 1000 * number + 1
        known: dict[str, Any] = {"native_id": str(number), "submit_time": start - 1, "start_time": start,
                                 "end_time": start + SECONDS, "wall_seconds": SECONDS}
        how = self.ends[number - 1] if number <= len(self.ends) else 0
        if isinstance(how, str):
            return JobStatus(JobState.FAILED, known["end_time"], how, metadata={**known, "reason": how})
        return JobStatus(JobState.FAILED if how else JobState.COMPLETED, known["end_time"], exit_code=how,
                         metadata=known)


class Scripted(JobExecutor):
    """A client's side of it."""

    def __init__(self, world: World) -> None:
        super().__init__(config=JobExecutorConfig())
        self.config.lost_after = 0      # type: ignore[attr-defined]
        self.world = world
        self._name = "scripted"

    def submit(self, job: Job) -> None:
        self.world.reach("before a submission")
        spec: JobSpec = self._check_job(job)
        job._bind(self)
        number = self.world.tags[job.id] = len(self.world.tags) + 1
        self.world.commands.append([str(spec.environment and spec.environment.get("SSSJOB_ATTEMPT"))])
        self.world.reach("after a submission")
        self._follow(job, number)

    def _follow(self, job: Job, number: int) -> None:
        job._native_id = str(number)
        for status in (JobStatus(JobState.QUEUED, 1000 * number), JobStatus(JobState.ACTIVE, 1000 * number + 1),
                       self.world.end(number)):
            self._set_job_status(job, status)

    def attach(self, job: Job, native_id: str) -> None:
        job._attach(self)
        self._follow(job, int(native_id))

    def native_id_of(self, tag: str | None) -> str | None:
        return str(self.world.tags[tag]) if tag in self.world.tags else None

    def is_settled(self, job: Job) -> bool:
        return job.status.final

    def cancel(self, job: Job) -> None:
        pass

    def list(self) -> list[str]:
        return []


def expected(policy: Retry, ends: list[str | int]) -> tuple[int, bool]:
    """How many attempts there are, and whether the last ends well."""
    before: list[str] = []
    for end in ends:
        if end == 0:
            return len(before) + 1, True
        reason, code = (end, None) if isinstance(end, str) else (None, end)
        clause = None if reason in ("lost", "unknown-exit") else policy.next_for(reason, code, before)
        if clause is None:
            return len(before) + 1, False
        before.append(clause.name)
    return len(before) + 1, True


def lived(folder: Path, world: World, text: str | None) -> Running | None:
    """One client, to the end of the job or to its death: None. text: the document that it submits, unless it waits."""
    journal = open_journal(folder / "journal.db")
    write = Entry._write

    def dying(entry: Entry, *rest: Any) -> None:
        if world.dead:
            raise DiedError
        world.reach("before a write")
        write(entry, *rest)
        world.reach("after a write")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Entry, "_write", dying)
        for module in (client_module, backends):
            patch.setattr(module, "executor_of", lambda *_: Scripted(world))
        client = Client(journal)
        try:
            if text is not None:
                assert client.submit(read_document(text.encode()), "scripted", cwd=folder) is not None
            (job,), done = client.wait(["a"], 60)
            assert done
            return job
        except DiedError:
            return None
        finally:
            journal.close()


@settings(max_examples=examples(40), deadline=None)
@given(POLICIES, ENDS, DEATHS)
def test_attempts_are_neither_lost_nor_doubled(policy: str, ends: list[str | int],
                                               deaths: list[tuple[str, int]]) -> None:
    world = World(ends)
    text = ("<Job><Id>a</Id><Executable>/bin/true</Executable>"
            f"<Extension type='Scheduler' name='Retry'>{policy}</Extension></Job>")
    with TemporaryDirectory() as name:
        folder = Path(name)
        job: Running | None = None
        for death in [*deaths, None]:
            world.death = death
            with open_journal(folder / "journal.db") as journal:
                is_submitted = bool(journal.rows())
            job = lived(folder, world, None if is_submitted else text)
        assert job is not None and job.outcome is not None
        attempts, well = expected(Retry.of(policy), ends)
        assert world.commands == [[str(n)] for n in range(1, attempts + 1)]
        assert job.word == ("done" if well else "failed")
        document = job.plan.job
        assert (document.value("StartCount"), document.value("StartTime"), document.value("SubmitTime")) == (
            attempts, 1000 * attempts + 1, 1000)
        (block,) = document.containers("Delivered")
        assert block.value("Duration") == attempts * SECONDS
        natives = [p.text.split()[0] for p in document.all("Extension") if p.get("name") == "Attempt"]
        assert natives == ([f"native={n}" for n in range(1, attempts + 1)] if attempts > 1 else [])
        with open_journal(folder / "journal.db") as journal:
            again = Client(journal).standing(journal.entry(1)).jobs[0]
            again.refresh()
            assert (again.plan.job, again.word) == (document, job.word)
