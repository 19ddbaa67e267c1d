"""Running documents: jobs in dependency order, side by side where nothing keeps them apart.

psij's status callbacks put events on a queue; everything else, document and decisions, is touched by the calling thread
only. Nothing is polled: the thread sleeps until an event, the start time of a held job or the time limit. Where there
is a journal, what is done and learnt is written there, intents before anything is submitted, and once a second the
thread looks for what other clients have written.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

import psij
from sssjob.errors import AccessError, UsageError
from sssjob.findings import Findings, Policy
from sssjob.model import Document
from sssjob.run import facts
from sssjob.run.journal import Entry, since
from sssjob.run.plan import Need, Plan, make_plan
from sssjob.run.progress import Progress
from sssjob.run.standing import JobOutcome, Outcome, Running, Submission, Word, exit_code, holds, intent

__all__ = ["Engine", "executor_of", "fill", "run"]

_LONGEST_WAIT = 3600.0      # seconds; the queue takes no longer ones than threading.TIMEOUT_MAX
_TICK_S = 1.0               # between looks at what other clients have written
_LOOK_AGAIN_S = 5.0         # between two questions for a job of which nobody knows whether it was submitted
_LOST_S = 60.0              # how long such a job is looked for, unless the executor's lost_after says it
#: Why everything was cancelled -> exit code, 128 + n for signal n; everything else is a time limit, 6.
STOPS: Final = {"hangup": 128 + signal.SIGHUP, "interrupted": 128 + signal.SIGINT, "terminated": 128 + signal.SIGTERM}
RELEASE: Final = "release"      # not to stop but to go on: the user releases what is held
_GRACE = 10.0               # seconds for cancelled jobs to end before we stop waiting for them
_Event = tuple[int, int, psij.JobStatus]


def run(document: Document, executor: str = "local", *, findings: Findings | None = None,
        progress: Progress | None = None, timeout: float | timedelta | None = None, resume: bool = False,
        executor_config: psij.JobExecutorConfig | None = None, cwd: Path | None = None,
        policy: Policy = Policy.REJECT, planned: Callable[[Findings], bool] | None = None,
        enter: Callable[[Document, Plan], Entry | None] | None = None, scripts: Path | None = None,
        backend: psij.JobExecutor | None = None) -> Outcome:
    """Run every job of a document and write the results into it.

    timeout: seconds for all of it; then everything is cancelled and the exit code is 6. resume: jobs that are Completed
    with ExitCode 0 are not run again. cwd: what relative directories refer to. policy: the outermost default.
    planned: asked with the findings before anything starts, which nothing does where it says False. enter: writes what
    is to be run into a journal, if there is one. scripts: where scripts of the document go, else a temporary directory.
    backend: the executor itself, where there is one already.
    Ctrl-C, SIGTERM and SIGHUP cancel everything and the document still gets its facts. With a rejecting finding
    nothing is started and the document is left as it is: exit code 1. Raises UsageError for an executor that is not
    known.
    """
    findings = Findings(document.path) if findings is None else findings
    if findings.rejected:
        return Outcome(document, [], 1, "sssjob", findings)
    made = executor_of(executor, executor_config) if backend is None else backend
    plan = make_plan(document, findings, executor=executor.lower(), cwd=cwd, policy=policy, resume=resume,
                     scripts=scripts)
    try:
        if findings.rejected or not (planned is None or planned(findings)):
            return Outcome(document, [], 1, "sssjob", findings)
        entry = None if enter is None else enter(document, plan)
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        submission = Submission(document, lambda: made, entry, owned=True)
        submission.take_plan(plan)
        submission.begin()
        engine = Engine([submission], findings, progress or Progress(shown=False), seconds)
        try:
            return engine.run()
        finally:
            if entry is not None:
                entry.release()
    finally:
        plan.close()


def executor_of(name: str, config: psij.JobExecutorConfig | None = None) -> psij.JobExecutor:
    """The executor of that name. Raises UsageError."""
    try:
        return psij.JobExecutor.get_instance(name, config=config)
    except ValueError as error:
        raise UsageError(str(error)) from error


def fill(submission: Submission) -> None:
    """Plan the jobs of a submission that another client has begun, as that client did."""
    from sssjob.reader import read_document

    entry = submission.entry
    if entry is None or not any(job.word == "waiting" and not job.plan.parts for job in submission.jobs):
        return
    plan = make_plan(read_document(entry.document), Findings(), executor=entry.executor, cwd=entry.directory,
                     policy=Policy.of(entry.policy) or Policy.REJECT, scripts=entry.folder / "scripts")
    for job, planned in zip(submission.jobs, plan.jobs, strict=True):
        job.plan.parts, job.plan.eligible, job.plan.held = planned.parts, planned.eligible, planned.held


class Engine:
    """Runs and follows the jobs of submissions.

    Those that are not owned belong to other clients: what these write is taken over, and when one is gone so are its
    submissions, if ``take_over`` allows that.
    """

    def __init__(self, submissions: Sequence[Submission], findings: Findings, progress: Progress,
                 timeout: float | None = None, take_over: Callable[[Submission], bool] | None = None) -> None:
        self.submissions, self.findings, self.progress = submissions, findings, progress
        self.take_over = take_over
        self.jobs = [job for s in submissions for job in s.jobs]
        self.place = {id(job): n for n, job in enumerate(self.jobs)}
        self.open = sum(not job.ended for job in self.jobs)
        self.pending = deque(range(len(self.jobs)))     # jobs that may have become ready
        self.held: list[Running] = []           # ready but for their EligibleTime or their Hold
        self.unsure: list[tuple[float, Running, int]] = []      # when to look for a part that may have been submitted
        self.dependents: dict[int, list[Running]] = {}
        for job in self.jobs:
            for need in job.plan.needs:
                for on in need.on:
                    self.dependents.setdefault(id(job.of.jobs[on]), []).append(job)
        self.events: queue.SimpleQueue[_Event | str] = queue.SimpleQueue()
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.unclean: list[Running] = []        # ended, and perhaps not in the journal yet
        self.shared = any(s.entry is not None for s in submissions)
        self.looked = time.monotonic()
        self.stopped: str | None = None         # why everything was cancelled
        self.leaves = False                     # jobs go on when a signal comes
        self.pace = _LONGEST_WAIT               # seconds between two looks at whether all is done
        self.told: set[str] = set()             # what cannot be written, told once
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
            self._write()
            self.progress.close()
            documents = [s.result() for s in self.submissions]
        code, origin = exit_code(self.jobs)
        if self.stopped is not None:
            code, origin = STOPS.get(self.stopped, 6), "sssjob"
        return Outcome(documents[0], [j.outcome for j in self.jobs if j.outcome], code, origin, self.findings,
                       self.stopped)

    def follow(self, done: Callable[[], bool]) -> bool:
        """Start what can be started and follow what runs until all is done, the time is up or a signal comes, which
        ``stopped`` tells; nothing is cancelled. Returns whether it is done."""
        self.leaves = True
        try:
            for submission in self.submissions:
                if submission.owned:
                    self._adopt(submission)
            with _interrupts(self.events, release=True, once=True):
                while True:
                    self._start_ready()
                    self._take_all()
                    if done() or self.stopped is not None:
                        return self.stopped is None
                    event = self._next()
                    if isinstance(event, tuple):
                        self._take(*event)
                    elif event == RELEASE:
                        self._release_all()
                    elif event is not None:
                        self.stopped = event
                    elif self.deadline is not None and time.monotonic() >= self.deadline:
                        return done()
        finally:
            self._write()
            self.progress.close()

    @property
    def idle(self) -> bool:
        """Whether nothing is to be done or taken in just now."""
        return not self.pending and self.events.empty()

    def answered(self) -> bool:
        """Whether the executors have said how all jobs stand that this process follows."""
        return self.idle and all(self._heard(job, part) for job in self.jobs
                                 if job.of.owned and job.word == "running" and not job.ended
                                 for part in range(len(job.seen)))

    def _heard(self, job: Running, part: int) -> bool:
        made, status = job.parts[part], job.seen[part].status
        if made is None:
            return job.seen[part].final or (job.references[part] is None and job.asked)
        if status is not None and status.final:
            return True
        settled = getattr(job.of.executor(), "is_settled", lambda made: made.status.state is not psij.JobState.NEW)
        return bool(settled(made)) and status is not None and not made.status.state.is_greater_than(status.state)

    def _begin(self) -> None:
        for job in self.jobs:
            if job.plan.keep and not job.ended:
                self._end(job, JobOutcome(job.plan.job, job.plan.label, "kept", 0))

    def _follow(self) -> None:
        with _interrupts(self.events, release=any(j.plan.held for j in self.jobs)):
            while True:
                self._start_ready()
                self._take_all()
                if not self.open:
                    return
                event = self._next()
                if isinstance(event, tuple):
                    self._take(*event)
                elif event == RELEASE:
                    self._release_all()
                elif event is not None or (self.deadline is not None and time.monotonic() >= self.deadline):
                    if self.stopped is not None:
                        self._give_up()
                        return
                    self._stop(event or "timeout")

    def _take_all(self) -> None:
        """Take in what is there already, and write it down at once."""
        while not self.events.empty() and not self.pending:
            event = self.events.get()
            if not isinstance(event, tuple):
                self.events.put(event)
                break
            self._take(*event)
        if not self.pending:
            self._write()

    def _next(self) -> _Event | str | None:
        """The next event, or why to stop; None when a held job may be due, others may have written or the time is up.
        """
        if self.shared and time.monotonic() >= self.looked + _TICK_S:
            self._look_around()
        if self.pending:
            return None
        waits = [self.pace]
        if self.deadline is not None:
            waits.append(self.deadline - time.monotonic())
        waits += [self._due(j) - time.time() for j in self.held]
        if self.shared:
            waits.append(self.looked + _TICK_S - time.monotonic())
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
        self.pending.extend(self.place[id(j)] for j in due)
        ready = []
        while self.pending:
            job = self.jobs[self.pending.popleft()]
            if job.word == "waiting" and job.of.owned and job not in self.held and self._consider(job, now):
                job.word = "running"
                ready.append(job)
        if ready:
            self._launch(ready)

    def _consider(self, job: Running, now: float) -> bool:
        """Whether a job is to be started now."""
        if job.cancel:
            self._skip(job, "cancel: on request before it was started", "canceled")
            return False
        verdict = self._verdict(job)
        if isinstance(verdict, Need):
            self._skip(job, f"dependency: {verdict.text} does not hold")
        elif verdict and self._due(job) > now:
            self.held.append(job)
        return verdict is True and self._due(job) <= now

    def _due(self, job: Running) -> float:
        """Epoch seconds before which a job must not start; without end while it is held."""
        return float("inf") if job.plan.held and not job.released else job.plan.eligible or 0

    def _release_all(self) -> None:
        """End the holds: ours, and through the journal those of jobs that other clients look after."""
        for job in self.jobs:
            if not job.ended and not job.released:
                job.released = True
                if job.plan.held or not job.of.owned:
                    job.of.note(job, "release", {})
        self._write(everything=True)

    def _verdict(self, job: Running) -> bool | Need:
        """True: may start; False: has to wait; a Need: that one can no longer hold (decisions 22)."""
        ready = True
        for need in job.plan.needs:
            for other in (job.of.jobs[n] for n in need.on):
                if not other.ended:
                    ready = False
                elif not holds(need, other):
                    return need
        return ready

    def _skip(self, job: Running, message: str, word: Word = "skipped") -> None:
        facts.record_unstarted(job.plan.job, message)
        self._end(job, JobOutcome(job.plan.job, job.plan.label, word, message=message, origin="sssjob"))

    def _launch(self, ready: Iterable[Running]) -> None:
        """Submit jobs. What is about to be submitted is on the disk before the first of them is."""
        prepared = [job for job in ready if self._prepare(job)]
        for submission in {id(j.of): j.of for j in prepared}.values():
            jobs = [job for job in prepared if job.of is submission]
            try:
                if submission.entry is not None:
                    submission.entry.flush()
            except AccessError as error:
                assert submission.entry is not None
                submission.entry.forget("intent")
                for job in jobs:
                    self._refused(job, 0, error)
                continue
            for n, job in enumerate(jobs):
                if self.leaves and self._told_to_leave():
                    for left in jobs[n:]:
                        left.of.note(left, "unsent", {})
                        left.forget()
                    break
                self.progress.changed(job.plan.label, "running")
                for part in range(len(job.parts)):
                    self._submit(job, part)

    def _told_to_leave(self) -> bool:
        """Whether a signal has come, which is then the next event."""
        kept: list[_Event | str] = []
        while not self.events.empty():
            kept.append(self.events.get())
        kept.sort(key=lambda event: isinstance(event, tuple))
        for event in kept:
            self.events.put(event)
        return bool(kept) and kept[0] in STOPS

    def _prepare(self, job: Running) -> bool:
        """Make psij's jobs for the parts of a job, and note that they are about to be submitted."""
        parts = job.plan.parts
        job.prepare(max(len(parts), 1))
        if not parts:
            self._refused(job, 0, ValueError("it can no longer be planned"))
            return False
        for part in range(len(parts)):
            self._prepare_part(job, part)
        return True

    def _prepare_part(self, job: Running, part: int) -> None:
        made = psij.Job(job.plan.parts[part].spec)
        job.parts[part], job.tags[part], job.references[part] = made, made.id, None
        if job.of.entry is not None:
            job.intents[part] = intent(made.id, len(job.plan.parts))
            job.of.note(job, "intent", job.intents[part], part)

    def _submit(self, job: Running, part: int) -> None:
        made, backend = job.parts[part], job.of.executor()
        assert made is not None
        made.set_job_status_callback(_Callback(self.events, self.place[id(job)], part))
        try:
            backend.submit(made)
        except psij.SubmitException as error:
            if error.transient and job.of.entry is not None and self._may_be_there(job, part):
                job.parts[part] = None
                job.asked = True
                self._tell(job, f"nobody knows yet whether it was submitted: {error}")
                self.unsure.append((time.monotonic() + _LOOK_AGAIN_S, job, part))
            else:
                self._refused(job, part, error)
        except psij.InvalidJobException as error:
            self._refused(job, part, error)
        else:
            self._submitted(job, part, made, backend)

    def _submitted(self, job: Running, part: int, made: psij.Job, backend: psij.JobExecutor) -> None:
        """Have the native id on the disk before anything else is done."""
        if job.of.entry is None or made.native_id is None:
            return
        reference = backend.reference(made) if hasattr(backend, "reference") else made.native_id
        self._known(job, part, made.native_id, reference or made.native_id)

    def _known(self, job: Running, part: int, native_id: str, reference: str) -> None:
        job.references[part], job.seen[part].native_id = reference, native_id
        facts.record(job.plan.job, job.seen)
        job.of.note(job, "native", {"native_id": native_id, "reference": reference}, part, job.of.executor().name)
        self._write()

    def _may_be_there(self, job: Running, part: int) -> bool:
        """Whether a submission that failed may have made a job all the same."""
        find = _finder(job)
        if find is None:
            return False
        try:
            return find(job.tags[part]) is not None
        except psij.SubmitException:
            return True

    def _refused(self, job: Running, part: int, error: Exception) -> None:
        """A part that the executor did not take: it failed and never ran."""
        again = isinstance(error, psij.SubmitException) and error.transient
        status = psij.JobStatus(psij.JobState.FAILED, message=str(error), metadata={
            "reason": "never-ran", **({"transient": True} if again else {})})
        self.events.put((self.place[id(job)], part, status))
        for other in job.parts[:part]:
            if other is not None:
                other.cancel()
        for missing in range(part + 1, len(job.parts)):
            self.events.put((self.place[id(job)], missing, status))

    # -- taking over
    def _look_around(self) -> None:
        """What other clients have written, and whether one of them is gone."""
        self.looked = time.monotonic()
        for submission in self.submissions:
            entry = submission.entry
            if entry is None or (submission.ended and not submission.owned):
                continue
            self._take_news(submission)
            if not submission.owned and not submission.ended and self.take_over is not None \
                    and self.take_over(submission):
                self._take_news(submission)
                submission.owned = True
                self._adopt(submission)
        due = [(job, part) for when, job, part in self.unsure if when <= self.looked]
        self.unsure = [item for item in self.unsure if item[0] > self.looked]
        for job, part in due:
            self._look_for(job, part)

    def _take_news(self, submission: Submission) -> None:
        for job in submission.catch_up():
            if job.ended and not submission.owned:
                self._has_ended(job)
            elif submission.owned and job.cancel:
                self._wanted(job)
            if job in self.held:
                self.held.remove(job)
                self.pending.append(self.place[id(job)])
        self.open = sum(not job.ended for job in self.jobs)

    def _has_ended(self, job: Running) -> None:
        """Another client says so."""
        assert job.outcome is not None
        if self.progress.states.get(job.plan.label) != job.outcome.word:
            self.progress.changed(job.plan.label, job.outcome.word, job.outcome.message)

    def _wanted(self, job: Running) -> None:
        """Somebody wants the end of a job of ours."""
        if job.word == "running" and not job.ended:
            self._cancel(job)
        elif job.word == "waiting":
            self.pending.append(self.place[id(job)])

    def _adopt(self, submission: Submission) -> None:
        """Follow what another client has submitted; look for what it may have submitted; go on with the rest."""
        fill(submission)
        for job in submission.jobs:
            self.pending.append(self.place[id(job)])
            if job.word != "running" or job.ended:
                continue
            if all(s.final for s in job.seen):
                self._ended(job)
                continue
            for part, seen in enumerate(job.seen):
                reference = job.references[part]
                if not seen.final and reference is not None:
                    self._attach(job, part, reference)
                elif not seen.final:
                    self._look_for(job, part)

    def _attach(self, job: Running, part: int, reference: str) -> None:
        made = psij.Job()
        made._id = job.tags[part] or made.id        # by which psij knows the files of the job
        made.set_job_status_callback(_Callback(self.events, self.place[id(job)], part))
        job.parts[part] = made
        try:
            job.of.executor().attach(made, reference)
        except psij.SubmitException as error:
            job.parts[part] = None
            self._tell(job, f"cannot be followed: {error}")
            self.unsure.append((time.monotonic() + _LOOK_AGAIN_S, job, part))
            return
        if job.cancel:
            self._cancel(job)

    def _look_for(self, job: Running, part: int) -> None:
        """Ask for a part by its tag: it is there and followed, or certainly is not and starts anew, or the question
        comes again."""
        reference, tag, find = job.references[part], job.tags[part], _finder(job)
        job.asked = True
        if reference is not None:
            self._attach(job, part, reference)
            return
        if find is None or tag is None:
            self._refused_lost(job, part, f"{job.of.executor().name} cannot say whether it was submitted")
            return
        try:
            found = find(tag)
        except psij.SubmitException as error:
            self._tell(job, str(error))
        else:
            if found is not None:
                job.of.note(job, "note", {"text": f"found by its tag {tag}"}, part, job.of.executor().name)
                self._known(job, part, found.partition("@")[0], found)
                self._attach(job, part, found)
                return
            if getattr(job.of.executor(), "records", None) is not None and since(job.intents[part]) is None:
                self._refused_lost(job, part, "the machine was started anew, and nobody knows whether it had begun")
                return
            if self._grace_over(job, part):
                self._anew(job, part)
                return
        self.unsure.append((time.monotonic() + _LOOK_AGAIN_S, job, part))

    def _grace_over(self, job: Running, part: int) -> bool:
        """Whether a submit command that was under way must have done its work by now."""
        made = job.intents[part]
        passed = since(made)
        if passed is None:              # another host or another boot: by our own clock
            passed = time.monotonic() - made.setdefault("_looked", time.monotonic())
        config = job.of.executor().config
        return passed >= float(getattr(config, "lost_after", 0.0 if job.of.executor().name == "local" else _LOST_S))

    def _anew(self, job: Running, part: int) -> None:
        """A part that another client meant to submit and did not."""
        job.of.note(job, "note", {"text": f"nothing bears the tag {job.tags[part]}: it was not submitted"}, part,
                    job.of.executor().name)
        if job.cancel:
            status = psij.JobStatus(psij.JobState.CANCELED, message="on request before it was started",
                                    metadata={"reason": "cancel"})
            self.events.put((self.place[id(job)], part, status))
            return
        if not job.plan.parts:
            fill_all(job)
        self._prepare_part(job, part)
        try:
            assert job.of.entry is not None
            job.of.entry.flush()
        except AccessError as error:
            self._refused(job, part, error)
            return
        self._submit(job, part)

    def _refused_lost(self, job: Running, part: int, message: str) -> None:
        self.events.put((self.place[id(job)], part, psij.JobStatus(
            psij.JobState.FAILED, message=message, metadata={"reason": "lost"})))

    # -- following
    def _take(self, place: int, part: int, status: psij.JobStatus) -> None:
        job = self.jobs[place]
        if job.ended or not job.take(part, status, time.time()):
            return
        job.of.note_status(job, part, status)
        if all(s.final for s in job.seen):
            self._ended(job)

    def _ended(self, job: Running) -> None:
        states = {s.status.state for s in job.seen if s.status is not None}
        word: Word = "failed" if psij.JobState.FAILED in states else "done"
        if psij.JobState.CANCELED in states and word == "done":
            word = "canceled"
        code, signal = facts.outcome_of(job.seen)
        own = any(s.started is not None for s in job.seen)
        self._end(job, JobOutcome(job.plan.job, job.plan.label, word, code, signal,
                                  str(job.plan.job.value("StatusMessage") or ""), "job" if own else "sssjob"))

    def _end(self, job: Running, outcome: JobOutcome) -> None:
        job.word, job.outcome = outcome.word, outcome
        self.open -= 1
        self.pending.extend(self.place[id(other)] for other in self.dependents.get(id(job), ()))
        self.progress.changed(outcome.label, outcome.word, outcome.message)
        job.of.note_outcome(job)
        if job.of.entry is not None:
            self.unclean.append(job)

    # -- writing
    def _write(self, everything: bool = False) -> None:
        """Put what was noted into the journal. What cannot be written is kept for the next time and told once."""
        for submission in self.submissions:
            entry = submission.entry
            if entry is None or not (submission.owned or everything):
                continue
            try:
                entry.flush(ended=submission.owned and entry.ended is None and submission.ended)
                self._clean(submission)
            except AccessError as error:
                if str(error) not in self.told:
                    self.told.add(str(error))
                    self.findings.add("SSS602", "journal", str(error), severity="warning")

    def _clean(self, submission: Submission) -> None:
        """Remove files of jobs whose ends are in the journal now."""
        ended = [job for job in self.unclean if job.of is submission]
        self.unclean = [job for job in self.unclean if job.of is not submission]
        for job in ended:
            backend = job.of.executor()
            for made in job.parts:
                if made is not None and getattr(backend, "files_removable", False):
                    backend.remove_files(made)  # type: ignore[attr-defined]

    def _tell(self, job: Running, message: str) -> None:
        text = f"{job.plan.label}: {message}"
        if text not in self.told:
            self.told.add(text)
            self.findings.add("SSS602", job.plan.label, text, severity="warning")
            job.of.note(job, "note", {"text": message})

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

    def _cancel(self, job: Running) -> None:
        job.cancel = True
        for started in job.parts:
            try:
                if started is not None:
                    started.cancel()
            except psij.SubmitException as error:
                self.findings.add("SSS602", job.plan.label, f"{job.plan.label} could not be cancelled: {error}",
                                  severity="warning")

    def _give_up(self) -> None:
        """Stop waiting for jobs that did not end when told to; in a journal they stay as they are."""
        self._write()
        for job in self.jobs:
            if not job.ended:
                message = "lost: it did not end when it was cancelled; it may still run"
                job.plan.job.set("StatusMessage", message)
                job.word = "failed"
                job.outcome = JobOutcome(job.plan.job, job.plan.label, "failed", message=message, origin="sssjob")
                self.progress.changed(job.plan.label, "failed", message)
                if job.of.entry is not None:
                    job.of.owned = False        # so that the entry is not taken for one that has ended


def fill_all(job: Running) -> None:
    """Plan a job that was begun before and has to be begun anew."""
    job.word = "waiting"
    fill(job.of)
    job.word = "running"


def _finder(job: Running) -> Callable[[str | None], str | None] | None:
    """How to find a native job by its tag; None where the executor knows no way."""
    found: Callable[[str | None], str | None] | None = getattr(job.of.executor(), "native_id_of", None)
    return found


@contextmanager
def _interrupts(events: queue.SimpleQueue[_Event | str], release: bool = False, once: bool = False) -> Iterator[None]:
    """Have Ctrl-C, SIGTERM and SIGHUP put a word on the queue, so that none strikes between two steps of the
    book-keeping; a signal that is ignored stays so. release: SIGUSR1 too. once: the second one ends the process."""
    def tell(why: str, number: int, frame: FrameType | None) -> None:
        events.put(why)
        if once and why != RELEASE:
            signal.signal(number, signal.SIG_DFL)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    words = {code - 128: why for why, code in STOPS.items()} | ({int(signal.SIGUSR1): RELEASE} if release else {})
    for number, why in words.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, partial(tell, why))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


class _Callback(psij.JobStatusCallback):
    """Puts every status of one part on the queue."""

    def __init__(self, events: queue.SimpleQueue[_Event | str], number: int, part: int) -> None:
        self.events, self.number, self.part = events, number, part

    def job_status_changed(self, job: psij.Job, job_status: psij.JobStatus) -> None:
        """Called by psij's delivery thread."""
        self.events.put((self.number, self.part, job_status))
