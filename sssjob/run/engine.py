"""The loop that runs and follows the jobs of submissions.

psij's status callbacks put events on a queue; everything else, documents and decisions, is touched by the calling
thread only. Nothing is polled: the thread sleeps until an event, the start time of a held job or the time limit. Where
there is a journal, what is done and learnt is written there, intents before anything is submitted, and once a second
the thread looks for what other clients have written.

What may start is decided in ``starting`` and submitted in ``submitting``, elements of arrays together (``arrays``);
jobs that another client has begun are taken over in ``adopting``; ``recording`` writes the journal.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import psij
from sssjob.findings import Findings, joined
from sssjob.run import facts
from sssjob.run.adopting import Adopting
from sssjob.run.arrays import Arrays
from sssjob.run.caps import Caps
from sssjob.run.ending import Ending
from sssjob.run.events import AnyEvent, Listener
from sssjob.run.evidence import LEFT_OUT, tell
from sssjob.run.failing import Failing
from sssjob.run.gates import Gates
from sssjob.run.on_end import Done, OnEnd
from sssjob.run.outcomes import MAY_RUN, JobOutcome, Outcome, ended_record, exit_code
from sssjob.run.plan import Need
from sssjob.run.progress import Progress
from sssjob.run.recording import Recording
from sssjob.run.room import Room
from sssjob.run.signals import RELEASE, STOPS, interrupts
from sssjob.run.silence import listen
from sssjob.run.staging import Promised, Step
from sssjob.run.standing import Running, Submission
from sssjob.run.starting import MOST_NATIVE, Starting
from sssjob.run.submitting import RETRIES, Submitting
from sssjob.run.wishes import Wishes

__all__ = ["Engine"]

_LONGEST_WAIT: Final = 3600.0   # seconds; the queue takes no longer ones than threading.TIMEOUT_MAX
_TICK_S: Final = 1.0            # between looks at what other clients have written
_GRACE: Final = 10.0            # seconds for cancelled jobs to end before we stop waiting for them
_NEVER_RAN: Final = frozenset(("dependency", "launch"))     # reasons of a job that its dependency may have ended


class Engine:
    """Runs and follows the jobs of submissions.

    Those that are not owned belong to other clients: what these write is taken over, and when one is gone so are its
    submissions, if ``take_over`` allows that. retries: how often a submission is tried again that failed for reasons
    that may pass. brief: when the time is up nothing more is submitted.
    """

    def __init__(self, submissions: Sequence[Submission], findings: Findings, progress: Progress,
                 timeout: float | None = None, take_over: Callable[[Submission], bool] | None = None,
                 retries: int = RETRIES, brief: bool = False, caps: Caps | None = None) -> None:
        self.submissions, self.findings, self.progress = submissions, findings, progress
        self.take_over, self.brief = take_over, brief
        self.jobs = [job for s in submissions for job in s.jobs]
        self.place = {id(job): n for n, job in enumerate(self.jobs)}
        self.open = {id(s): sum(not job.ended for job in s.jobs) for s in submissions}
        self.gates = Gates(self.jobs)
        self.pending = deque(range(len(self.jobs)))     # jobs for which something may have been decided
        self.events: queue.SimpleQueue[AnyEvent] = queue.SimpleQueue()
        self.room = Room(self, self._elsewhere, Caps() if caps is None else caps)
        self.arrays = Arrays(self)
        self.starting = Starting(self)
        self.submitting = Submitting(self, retries)
        self.adopting = Adopting(self)
        self.wishes = Wishes(self)
        self.failing = Failing(self)
        self.promised = Promised(self)
        self.ending = Ending(self)
        self.on_end = OnEnd(self)
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.shared = any(s.entry is not None for s in submissions)
        self.recording = Recording(self)
        self.looked = time.monotonic()
        self.latest: int | None = None          # the number of the last event in the journal when we looked
        self.stopped: str | None = None         # why everything was cancelled
        self.signals: list[str] = []            # that have come
        self.leaves = False                     # jobs go on when a signal comes
        self.pace = _LONGEST_WAIT               # seconds between two looks at whether all is done
        self.told: set[str] = set()             # what cannot be written, told once
        self.doubted: dict[int, Running] = {}   # cancelled by nobody knows whom, by identity; looked at again
        self.came: dict[tuple[int, int], psij.JobStatus] = {}   # by place and part, the last one that a callback told
        progress.total = len(self.jobs)
        several = len(submissions) > 1      # two of their jobs may have one label
        self.names = {id(job): f"{job.row.key} {job.plan.label}" if several else job.plan.label for job in self.jobs}

    # -- to the end, or for a while
    def run(self) -> Outcome:
        """The jobs of the first submission, to their ends; the others are those that they depend on."""
        main = self.submissions[0]
        self._show_all()
        self._begin(main)
        try:
            self._follow(main)
        except BaseException:           # nothing that goes wrong here may leave jobs behind
            self._stop(main, "internal error")
            raise
        finally:
            self._leave()
            document = main.result()
        code, origin = exit_code(main.jobs)
        if self.stopped is not None or self.on_end.stopped_by in STOPS:
            code, origin = STOPS.get(self.stopped or self.on_end.stopped_by, 6), "sssjob"
        return Outcome(document, [j.outcome for j in main.jobs if j.outcome], code, origin, self.findings, self.stopped)

    def follow(self, done: Callable[[], bool]) -> bool:
        """Start what can be started and follow what runs until all is done, the time is up or a signal comes, which
        ``stopped`` tells; nothing is cancelled. Returns whether it is done."""
        self.leaves = True
        self._show_all()
        try:
            for submission in self.submissions:
                if submission.owned:
                    self.adopting.adopt(submission)
                    self._take_wishes(submission)
            with interrupts(self.events, self.signals, release=True, once=True):
                while True:
                    self.wishes.carry_out()
                    self.starting.start_ready()
                    self.adopting.ask()
                    self.ending.carry_out()
                    self._take_all()
                    if (done() and self.on_end.idle) or self.stopped is not None:
                        return self.stopped is None
                    event = self._next()
                    if isinstance(event, tuple):
                        self._take(*event)
                    elif callable(event):
                        event()
                    elif event == RELEASE:
                        self._release_all()
                    elif event is not None:
                        self.stopped = event
                    elif self.deadline is not None and time.monotonic() >= self.deadline:
                        return done()
        finally:
            self._leave()

    def _leave(self) -> None:
        """Tell what is known of jobs that cannot start, have nothing go on behind the back of the next client, write
        down what was done, and end the display."""
        self._warn_all()
        self.promised.leave()
        self.on_end.leave()
        kept: list[AnyEvent] = []
        while not self.events.empty():
            event = self.events.get()
            if isinstance(event, tuple) and event[3] is None:       # no executor tells it again
                self._take(*event)
            else:
                kept.append(event)
        for event in kept:
            self.events.put(event)
        self.submitting.leave()
        self.recording.look_for_room()
        self.recording.write()
        self.adopting.leave()
        self.progress.close()

    @property
    def in_time(self) -> bool:
        """Whether more jobs may be submitted."""
        return not self.brief or self.deadline is None or time.monotonic() < self.deadline

    @property
    def idle(self) -> bool:
        """Whether nothing is to be done or taken in just now, but for what is done when jobs have ended."""
        return not (self.pending or self.submitting.later or self.adopting.seeks or self.wishes.due) \
            and self.events.empty()

    def answered(self, of: Sequence[Submission] | None = None) -> bool:
        """Whether the executors have said how all jobs stand that this process follows. of: those of these only."""
        jobs = self.jobs if of is None else [job for submission in of for job in submission.jobs]
        return self.idle and all(self.heard(job, part) for job in jobs
                                 if job.of.owned and job.word == "running" and not job.ended
                                 for part in range(len(job.seen)))

    def heard(self, job: Running, part: int) -> bool:
        """Whether the executor has said how a part stands since this process follows it, and its callback has come."""
        if part in job.leaving and not job.seen[part].final:
            return self.promised.waits(job, part)
        psij_job, status = job.parts[part], job.seen[part].status
        if psij_job is None:
            return job.seen[part].final or (job.references[part] is None and job.asked)
        if status is not None and status.final:
            return True
        settled = getattr(job.of.executor(), "is_settled",
                          lambda psij_job: psij_job.status.state is not psij.JobState.NEW)
        if not settled(psij_job) or status is None:
            return False
        last = psij_job.status
        return not (last.metadata or last.state.value) or self.came.get((self.place[id(job)], part)) is last

    def _begin(self, main: Submission) -> None:
        for job in main.jobs:
            if job.plan.keep and not job.ended:
                self.end(job, JobOutcome(job.plan.job, job.plan.label, "kept", 0))
        for other in self.submissions[1:]:
            if other.owned:
                self.adopting.adopt(other)

    def _follow(self, main: Submission) -> None:
        with interrupts(self.events, self.signals, release=any(j.plan.held or j.plan.held_there for j in main.jobs)):
            while True:
                self.wishes.carry_out()
                self.starting.start_ready()
                self.adopting.ask()
                self.ending.carry_out()
                self._take_all()
                if not self.open[id(main)] and self.on_end.idle:
                    return
                event = self._next()
                if isinstance(event, tuple):
                    self._take(*event)
                elif callable(event):
                    event()
                elif event == RELEASE:
                    self._release_all()
                elif event is not None or (self.deadline is not None and time.monotonic() >= self.deadline):
                    if not self.open[id(main)]:
                        self.on_end.stop(event or "timeout")
                        return
                    if self.stopped is not None:
                        self._give_up(main)
                        return
                    self._stop(main, event or "timeout")

    def _take_all(self) -> None:
        """Take in what is there already, and write it down at once."""
        self.promised.begin_due()
        while not self.events.empty() and not self.pending:
            event = self.events.get()
            if isinstance(event, str):
                self.events.put(event)
                break
            event() if callable(event) else self._take(*event)
        if not self.pending:
            self.recording.write()
        self.on_end.begin()

    def _next(self) -> AnyEvent | None:
        """The next event, or why to stop; None when a held job may be due, others may have written or the time is up.
        """
        if self.shared and time.monotonic() >= self.looked + _TICK_S:
            self._look_around()
        if self.pending or self.wishes.due:
            return None
        waits = [self.pace]
        if self.deadline is not None:
            waits.append(self.deadline - time.monotonic())
        waits += [part.next_due() for part in (
            self.starting, self.submitting, self.ending, self.promised, self.room, self.on_end)]
        if self.shared:
            waits.append(self.looked + _TICK_S - time.monotonic())
        try:
            return self.events.get(timeout=max(min(waits), 0.0))
        except queue.Empty:
            return None

    # -- what others have done
    def _elsewhere(self, executor: str | None, cluster: str | None) -> int:
        """How many jobs of an executor on a cluster, or of all, are in flight that other clients look after, or nobody.
        """
        entry = self.submissions[0].entry
        mine = [s.entry.number for s in self.submissions if s.owned and s.entry is not None]
        return 0 if entry is None else sum(entry.journal.in_flight(executor, cluster, mine).values())

    def _look_around(self) -> None:
        """What other clients have written, and whether one of them is gone."""
        self.looked = time.monotonic()
        journal = next(s.entry for s in self.submissions if s.entry is not None).journal
        before, self.latest = self.latest, journal.latest_event()       # one question for all of them
        for submission in self.submissions:
            entry = submission.entry
            if entry is None or (submission.kept and not submission.owned):
                continue
            if self.latest != before:
                self._take_news(submission)
            if not submission.owned and not submission.kept and self.take_over is not None:
                if self.take_over(submission):
                    self._take_news(submission)
                    self.adopting.adopt(submission)
                    self._take_wishes(submission)
                else:
                    self._count(submission)
        self.recording.look_for_room()
        self.adopting.look_again(self.looked)
        for job in self.doubted.values():
            self.pend(job)
        self.doubted.clear()
        listen(self.submissions)

    def _take_news(self, submission: Submission) -> None:
        for job in submission.catch_up():
            if submission.owned and job.cancel:
                self._wanted(job)
            self.wishes.take(job)
            if submission.owned and job.ended:
                self.on_end.resume(job)
            if not submission.owned and not job.ended:
                self.show(job)
        self._count(submission)

    def _take_wishes(self, submission: Submission) -> None:
        for job in submission.jobs:
            self.wishes.take(job)

    def _count(self, submission: Submission) -> None:
        """Count its jobs that have not ended. Where that is news, another client has said so, and told us or who asked
        for the lease: jobs that wait for its jobs hear of it."""
        before, self.open[id(submission)] = self.open[id(submission)], sum(not job.ended for job in submission.jobs)
        if self.open[id(submission)] < before:
            for job in filter(lambda job: job.ended, submission.jobs):
                for other in self.gates.ended(job):
                    self.pend(other)
                self.show(job)

    def _wanted(self, job: Running) -> None:
        """Somebody wants the end of a job of ours."""
        if job.word == "running" and not job.ended:
            self.cancel(job)
        elif job.word == "waiting":
            self.starting.unhold(job)
            self.pend(job)

    def _release_all(self) -> None:
        """End the holds: ours, and through the journal those of jobs that other clients look after."""
        for job in self.jobs:
            self.wishes.release(job)
        self.wishes.carry_out()
        self.recording.write(everything=True)

    # -- following
    def pend(self, job: Running) -> None:
        """Have it looked at whether a job may start, or has to end."""
        self.pending.append(self.place[id(job)])

    def pend_after(self, job: Running) -> None:
        """Look again at jobs that may be submitted because this one is there."""
        for other in self.gates.after(job, MOST_NATIVE):
            self.pend(other)

    def tell_status(self, job: Running, part: int, status: psij.JobStatus) -> None:
        """Have a status taken in that no executor has told."""
        self.events.put((self.place[id(job)], part, status, None))

    def listen(self, job: Running, part: int, psij_job: psij.Job) -> None:
        """Have what an executor tells of a part taken in."""
        psij_job.set_job_status_callback(Listener(self.events, self.place[id(job)], part))

    def _take(self, place: int, part: int, status: psij.JobStatus | Step | Done, tag: str | None) -> None:
        job = self.jobs[place]
        if isinstance(status, Done):
            self.on_end.take(job, status)
            return
        stale = tag is not None and (part >= len(job.tags) or job.tags[part] != tag)   # of an earlier submission
        if stale or job.ended:
            return
        if isinstance(status, Step):
            self.promised.take_step(job, part, status)
            return
        if tag is not None:
            self.came[place, part] = status
        if self.promised.takes(job, part, status, tag):
            return
        if tag is not None and not status.final:        # the resource manager knows it: others can be told to wait
            self.pend_after(job)
        if job.take(part, status, time.time()):
            job.of.note_status(job, part, job.seen[part].status or status)
            self.show(job)
            if all(s.final for s in job.seen):
                self.settle(job)

    def show(self, job: Running, message: str = "") -> None:
        """Show how a job stands now, and why; message: that of its end without one."""
        message = message or ("" if job.outcome is None else job.outcome.message)
        self.progress.changed(self.names[id(job)], _shown(job), message)

    def _show_all(self) -> None:
        self.progress.begin({self.names[id(job)]: _shown(job) for job in self.jobs})

    def _warn_all(self) -> None:
        """Tell of the jobs that can never start as they are, as it is known in the end, whoever looks after them."""
        for job in self.jobs:
            text = None if job.ended else facts.hopeless(job.seen)
            if text is not None:
                self.findings.add("SSS610", job.plan.label, f"{job.plan.label} can never start as it is: {text}",
                                  severity="warning", path=job.place)

    def settle(self, job: Running) -> None:
        """All parts have ended: so has the job, unless it only came to no start."""
        reasons = {s.known.get("reason") for s in job.seen}
        if job.waits and not job.started and (not job.cancel or reasons == {"lost"}):   # no cancel ends what is lost
            verdict = self.gates.verdict(job)
            if isinstance(verdict, Need):
                self.starting.skip(job, f"dependency: {verdict.text} does not hold")
                return
            if reasons & _NEVER_RAN:    # what it waits for has not ended as far as we know, or has ended well
                if verdict:
                    self.submitting.once_more(job)
                return
            if not verdict and self.gates.may_be_unmet(job, self.heard):    # its manager took it out
                self.doubted[id(job)] = job
                return
        outcome = job.verdict()
        if outcome.word == "failed" and self.failing.begins_anew(job):
            return
        if outcome.word == "canceled" and job.why is not None:
            if not (job.started or job.attempts):
                self.starting.skip(job, job.why)
                return
            job.plan.job.set_as_is("StatusMessage", job.why)
            outcome = job.verdict()
        tell(self.findings, job.plan.label, job.disagreements, job.place)
        for why in job.not_its_own:
            self.findings.add(LEFT_OUT, job.plan.label, f"{job.plan.label}: {why}", path=job.place)
        self.end(job, outcome)

    def end(self, job: Running, outcome: JobOutcome) -> None:
        """A job has ended, or will never start. One that got no native id is called in its document what it was called
        here: what is Completed has an Id (section 5.1, table 2)."""
        job.word, job.outcome = outcome.word, outcome
        if job.plan.job.first("Id") is None:
            job.plan.job.set_as_is("Id", job.plan.label)
        self.open[id(job.of)] -= 1
        for other in (*self.gates.ended(job), *self.starting.has_ended(job)):
            self.pend(other)
        self.show(job)
        job.of.note(job, "ended", ended_record(outcome))
        self.failing.has_ended(job)
        self.on_end.has_ended(job)
        self.recording.has_ended(job)

    # -- telling
    def tell(self, job: Running, message: str) -> None:
        """Tell something of a job, once."""
        text = f"{job.plan.label}: {joined(message)}"
        if text not in self.told:
            self.told.add(text)
            self.findings.add("SSS602", job.plan.label, text, severity="warning", path=job.place)
            job.of.note(job, "note", {"text": message})

    # -- stopping
    def _stop(self, main: Submission, why: str) -> None:
        """Cancel what runs and give up what waits; the ends come as events."""
        self.stopped = why
        self.deadline = time.monotonic() + _GRACE
        for job in main.jobs:
            if job.word == "waiting":
                self.starting.skip(job, f"cancel: {why} before it was started")
            elif job.word == "running":
                self.cancel(job)
        self.ending.carry_out()

    def cancel(self, job: Running) -> None:
        """Ask for the end of a job, with the next step of the loop."""
        job.want_end()
        self.submitting.give_up(job)
        self.ending.want(job)

    def end_natively(self, job: Running) -> bool:
        """Ask for the end of what runs for a job at once; whether that could be done."""
        return self.ending.end([job])

    def _give_up(self, main: Submission) -> None:
        """Stop waiting for jobs that did not end when told to; in a journal they stay as they are."""
        self.recording.write()
        for job in main.jobs:
            if not job.ended:
                job.plan.job.set_as_is("StatusMessage", MAY_RUN)
                job.word = "failed"
                job.outcome = JobOutcome(job.plan.job, job.plan.label, "failed", message=MAY_RUN, origin="sssjob")
                self.show(job)
                if job.of.entry is not None:
                    job.of.owned = False        # so that the entry is not taken for one that has ended


def _shown(job: Running) -> str:
    """The word of ``Progress`` for how a job stands."""
    if job.word != "running":
        return job.word
    return "running" if job.plan.job.value("State") in ("Running", "Suspended") else "queued"
