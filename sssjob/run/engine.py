"""Running a document: jobs in dependency order, side by side where nothing keeps them apart.

psij's status callbacks put events on a queue; everything else, document and decisions, is touched by the calling thread
only. Nothing is polled: the thread sleeps until an event, the start time of a held job or the time limit.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal

import psij
from sssjob.errors import UsageError
from sssjob.findings import Findings, Policy
from sssjob.graph import derived_state
from sssjob.model import Document, Job
from sssjob.run import facts
from sssjob.run.plan import Need, Plan, PlannedJob, make_plan
from sssjob.run.progress import Progress

__all__ = ["JobOutcome", "Outcome", "run"]

Word = Literal["waiting", "running", "done", "failed", "canceled", "skipped", "kept"]
_LONGEST_WAIT = 3600.0      # seconds; the queue takes no longer ones than threading.TIMEOUT_MAX
#: Why everything was cancelled -> exit code, 128 + n for signal n; everything else is a time limit, 6.
_STOPS: Final = {"hangup": 128 + signal.SIGHUP, "interrupted": 128 + signal.SIGINT, "terminated": 128 + signal.SIGTERM}
_RELEASE: Final = "release"     # not to stop but to go on: the user releases what is held
_GRACE = 10.0               # seconds for cancelled jobs to end before we stop waiting for them


@dataclass(slots=True)
class JobOutcome:
    """How one job ended. word: done, failed, canceled, skipped (never started) or kept (had succeeded before)."""

    job: Job
    label: str
    word: Word
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    origin: Literal["job", "sssjob"] = "job"

    @property
    def code(self) -> int:
        """As an exit code of a process: its own, 128 + n for signal n, 5 for an end with neither (decisions 51)."""
        if self.word in ("done", "kept", "skipped"):
            return self.exit_code or 0
        if self.signal is not None:
            return 128 + self.signal
        return self.exit_code or 5

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        known = {"exit_code": self.exit_code, "signal": self.signal, "message": self.message or None,
                 "id": self.job.value("Id"), "name": self.job.value("Name"), "start_time": self.job.value("StartTime"),
                 "end_time": self.job.value("EndTime")}
        return {"kind": "job", "label": self.label, "outcome": self.word} | {
            k: v for k, v in known.items() if v is not None}


@dataclass(slots=True)
class Outcome:
    """The document with its results, how each job ended, and the exit code with whose it is (decisions 51)."""

    document: Document
    jobs: list[JobOutcome]
    exit_code: int
    origin: Literal["job", "sssjob"]
    findings: Findings
    stopped: str | None = None      # why everything was cancelled: timeout, interrupted ...

    @property
    def results(self) -> list[dict[str, Any]]:
        """One JSON object a job, and ``{"kind": "result", ...}`` last."""
        last = {"kind": "result", "origin": self.origin, "exit_code": self.exit_code}
        return [*(job.record() for job in self.jobs), last]


@dataclass(slots=True, eq=False)
class _Running:
    """A planned job and what became of it so far."""

    plan: PlannedJob
    number: int
    word: Word = "waiting"
    seen: list[facts.Seen] = field(default_factory=list)
    psij: list[psij.Job] = field(default_factory=list)
    outcome: JobOutcome | None = None

    @property
    def succeeded(self) -> bool:
        return self.word in ("done", "kept")

    @property
    def ended(self) -> bool:
        return self.outcome is not None

    @property
    def known_code(self) -> int | None:
        """What OnExit compares: the code or 128 + signal; None where neither is known."""
        if self.outcome is None or (self.outcome.exit_code is None and self.outcome.signal is None):
            return None
        return self.outcome.code


_Event = tuple[int, int, psij.JobStatus]


def run(document: Document, executor: str = "local", *, findings: Findings | None = None,
        progress: Progress | None = None, timeout: float | timedelta | None = None, resume: bool = False,
        executor_config: psij.JobExecutorConfig | None = None, cwd: Path | None = None,
        policy: Policy = Policy.REJECT, planned: Callable[[Findings], bool] | None = None) -> Outcome:
    """Run every job of a document and write the results into it.

    timeout: seconds for all of it; then everything is cancelled and the exit code is 6. resume: jobs that are Completed
    with ExitCode 0 are not run again. cwd: what relative directories refer to. policy: the outermost default.
    planned: asked with the findings before anything starts, which nothing does where it says False.
    Ctrl-C, SIGTERM and SIGHUP cancel everything and the document still gets its facts. With a rejecting finding
    nothing is started and the document is left as it is: exit code 1. Raises UsageError for an executor that is not
    known.
    """
    findings = Findings(document.path) if findings is None else findings
    if findings.rejected:
        return Outcome(document, [], 1, "sssjob", findings)
    backend = _executor(executor, executor_config)
    plan = make_plan(document, findings, executor=executor.lower(), cwd=cwd, policy=policy, resume=resume)
    try:
        if findings.rejected or not (planned is None or planned(findings)):
            return Outcome(document, [], 1, "sssjob", findings)
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        return _Engine(document, plan, backend, findings, progress or Progress(shown=False), seconds).run()
    finally:
        plan.close()


def _executor(name: str, config: psij.JobExecutorConfig | None) -> psij.JobExecutor:
    try:
        return psij.JobExecutor.get_instance(name, config=config)
    except ValueError as error:
        raise UsageError(str(error)) from error


class _Engine:
    """One run."""

    def __init__(self, document: Document, plan: Plan, executor: psij.JobExecutor, findings: Findings,
                 progress: Progress, timeout: float | None) -> None:
        self.document, self.executor, self.findings, self.progress = document, executor, findings, progress
        self.jobs = [_Running(p, n) for n, p in enumerate(plan.jobs)]
        self.open = len(self.jobs)              # jobs that have not ended
        self.pending = deque(range(self.open))  # jobs that may have become ready
        self.held: list[_Running] = []          # ready but for their EligibleTime or their Hold
        self.released = False
        self.dependents: dict[int, list[int]] = {}
        for job in self.jobs:
            for need in job.plan.needs:
                for on in need.on:
                    self.dependents.setdefault(on, []).append(job.number)
        self.events: queue.SimpleQueue[_Event | str] = queue.SimpleQueue()
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.stopped: str | None = None         # why everything was cancelled
        progress.total = len(self.jobs)

    def run(self) -> Outcome:
        """All jobs, to their ends."""
        self._begin()
        try:
            self._follow()
        except BaseException:           # nothing that goes wrong here may leave jobs behind
            self._stop("internal error")
            raise
        finally:
            self.progress.close()
            for group in self.document.groups():
                group.set("State", derived_state(group))
        code, origin = self._exit_code()
        return Outcome(self.document, [j.outcome for j in self.jobs if j.outcome], code, origin, self.findings,
                       self.stopped)

    def _begin(self) -> None:
        for job in self.jobs:
            if job.plan.keep:
                self._end(job, JobOutcome(job.plan.job, job.plan.label, "kept", 0))
            else:
                facts.clear(job.plan.job)

    def _follow(self) -> None:
        with _interrupts(self.events, release=any(j.plan.held for j in self.jobs)):
            while True:
                self._start_ready()
                if not self.open:
                    return
                event = self._next()
                if isinstance(event, tuple):
                    self._take(*event)
                elif event == _RELEASE:
                    self.released = True
                elif event is not None or (self.deadline is not None and time.monotonic() >= self.deadline):
                    if self.stopped is not None:
                        self._give_up()
                        return
                    self._stop(event or "timeout")

    def _next(self) -> _Event | str | None:
        """The next event, or why to stop; None when a held job may be due or the time is up."""
        waits = [_LONGEST_WAIT]
        if self.deadline is not None:
            waits.append(self.deadline - time.monotonic())
        waits += [self._due(j) - time.time() for j in self.held]
        try:
            return self.events.get(timeout=max(min(waits), 0.0))
        except queue.Empty:
            return None

    # -- starting
    def _start_ready(self) -> None:
        """Start or skip every job whose dependencies have decided; a skipped one may decide others."""
        now = time.time()
        due = [j for j in self.held if self._due(j) <= now]
        self.held = [j for j in self.held if j not in due]
        self.pending.extend(j.number for j in due)
        while self.pending:
            job = self.jobs[self.pending.popleft()]
            if job.word == "waiting" and job not in self.held:
                self._consider(job, now)

    def _consider(self, job: _Running, now: float) -> None:
        verdict = self._verdict(job)
        if isinstance(verdict, Need):
            self._skip(job, f"dependency: {verdict.text} does not hold")
        elif verdict and self._due(job) > now:
            self.held.append(job)
        elif verdict:
            self._start(job)

    def _due(self, job: _Running) -> float:
        """Epoch seconds before which a job must not start; without end while it is held."""
        return float("inf") if job.plan.held and not self.released else job.plan.eligible or 0

    def _verdict(self, job: _Running) -> bool | Need:
        """True: may start; False: has to wait; a Need: that one can no longer hold (decisions 22)."""
        ready = True
        for need in job.plan.needs:
            for other in (self.jobs[n] for n in need.on):
                if not other.ended:
                    ready = False
                elif not _holds(need, other):
                    return need
        return ready

    def _skip(self, job: _Running, message: str) -> None:
        facts.record_unstarted(job.plan.job, message)
        self._end(job, JobOutcome(job.plan.job, job.plan.label, "skipped", message=message))

    def _start(self, job: _Running) -> None:
        job.word = "running"
        own = job.plan.job.task_groups
        same = len(own) == len(job.plan.parts) and len(own) > 1
        job.seen = [facts.Seen(own[n] if same else None) for n in range(len(job.plan.parts))]
        job.psij = [psij.Job(part.spec) for part in job.plan.parts]
        self.progress.changed(job.plan.label, "running")
        for n, started in enumerate(job.psij):
            started.set_job_status_callback(_Callback(self.events, job.number, n))
            try:
                self.executor.submit(started)
            except (psij.InvalidJobException, psij.SubmitException) as error:
                self._refused(job.number, n, error)

    def _refused(self, number: int, part: int, error: Exception) -> None:
        """A part that the executor did not take: it failed and never ran."""
        status = psij.JobStatus(psij.JobState.FAILED, message=str(error), metadata={"reason": "never-ran"})
        self.events.put((number, part, status))
        for other in self.jobs[number].psij[:part]:
            other.cancel()

    # -- following
    def _take(self, number: int, part: int, status: psij.JobStatus) -> None:
        job = self.jobs[number]
        if job.ended:
            return
        job.seen[part].take(status)
        facts.record(job.plan.job, job.seen)
        if all(s.final for s in job.seen):
            self._ended(job)

    def _ended(self, job: _Running) -> None:
        states = {s.status.state for s in job.seen if s.status is not None}
        word: Word = "failed" if psij.JobState.FAILED in states else "done"
        if psij.JobState.CANCELED in states and word == "done":
            word = "canceled"
        code, signal = facts.outcome_of(job.seen)
        own = any(s.started is not None for s in job.seen)
        self._end(job, JobOutcome(job.plan.job, job.plan.label, word, code, signal,
                                  str(job.plan.job.value("StatusMessage") or ""), "job" if own else "sssjob"))

    def _end(self, job: _Running, outcome: JobOutcome) -> None:
        job.word, job.outcome = outcome.word, outcome
        self.open -= 1
        self.pending.extend(self.dependents.get(job.number, ()))
        self.progress.changed(outcome.label, outcome.word, outcome.message)

    # -- stopping
    def _stop(self, why: str) -> None:
        """Cancel what runs and give up what waits; the ends come as events."""
        self.stopped = why
        self.held.clear()
        self.deadline = time.monotonic() + _GRACE
        for job in self.jobs:
            if job.word == "waiting":
                self._skip(job, f"cancel: {why} before it was started")
            elif job.word == "running":
                self._cancel(job)

    def _cancel(self, job: _Running) -> None:
        for started in job.psij:
            try:
                started.cancel()
            except psij.SubmitException as error:
                self.findings.add("SSS602", job.plan.label, f"{job.plan.label} could not be cancelled: {error}",
                                  severity="warning")

    def _give_up(self) -> None:
        """Stop waiting for jobs that did not end when told to."""
        for job in self.jobs:
            if not job.ended:
                message = "lost: it did not end when it was cancelled; it may still run"
                job.plan.job.set("StatusMessage", message)
                self._end(job, JobOutcome(job.plan.job, job.plan.label, "failed", message=message, origin="sssjob"))

    # -- the exit code
    def _exit_code(self) -> tuple[int, Literal["job", "sssjob"]]:
        if self.stopped is not None:
            return _STOPS.get(self.stopped, 6), "sssjob"
        for number, job in enumerate(self.jobs):
            if job.word in ("failed", "canceled") and not self._answered(number):
                assert job.outcome is not None
                return job.outcome.code, job.outcome.origin
        return 0, "job"

    def _answered(self, number: int) -> bool:
        return any(other.word == "done" and any(number in need.on and need.condition != "OnSuccess"
                                                for need in other.plan.needs) for other in self.jobs)


@contextmanager
def _interrupts(events: queue.SimpleQueue[_Event | str], release: bool = False) -> Iterator[None]:
    """Have Ctrl-C, SIGTERM and SIGHUP put a word on the queue, so that none strikes between two steps of the
    book-keeping; a signal that is ignored stays so. release: SIGUSR1 too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    words = {code - 128: why for why, code in _STOPS.items()} | ({int(signal.SIGUSR1): _RELEASE} if release else {})
    for number, why in words.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, lambda *_, why=why: events.put(why))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _holds(need: Need, other: _Running) -> bool:
    """Whether the end of a job is what a dependency asks for."""
    if other.word == "skipped":
        return False
    if need.condition == "OnExit":
        return need.code is None or (other.known_code is not None and other.known_code == need.code)
    return other.succeeded == (need.condition == "OnSuccess")


class _Callback(psij.JobStatusCallback):
    """Puts every status of one part on the queue."""

    def __init__(self, events: queue.SimpleQueue[_Event | str], number: int, part: int) -> None:
        self.events, self.number, self.part = events, number, part

    def job_status_changed(self, job: psij.Job, job_status: psij.JobStatus) -> None:
        """Called by psij's delivery thread."""
        self.events.put((self.number, self.part, job_status))

