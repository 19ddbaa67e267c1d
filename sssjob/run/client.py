"""What clients of the journal do: submit, look, wait, cancel, attach.

A submission is looked after by the client that holds its lease. For resource managers that is whoever needs it at the
moment: the next one takes over what the last one left, finds by their tags jobs whose submission got lost on the way,
and starts what has waited for them. For the executor ``local`` it is a process of its own (``keeper``).
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

import psij
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from psij.executors.local import LocalJobExecutor
from sssjob.document.element import new_property
from sssjob.document.model import Document, Job
from sssjob.errors import UsageError
from sssjob.findings import Findings, Policy
from sssjob.run.engine import Engine
from sssjob.run.journal import Entry, Event, Journal, Row, make_folder
from sssjob.run.keeper import keep
from sssjob.run.plan import Plan, make_plan
from sssjob.run.progress import Progress
from sssjob.run.running import executor_of, run
from sssjob.run.standing import JobOutcome, Outcome, Running, Submission, ended_record, load
from sssjob.run.submitting import RETRIES
from sssjob.xml.writer import write_document

__all__ = ["LOOK_S", "Client", "backend_of"]

LOOK_S = 20.0       # how long a resource manager may take to say how jobs stand
_PACE_S = 0.1       # between two looks at whether it has
_LOCAL = "local"
_KEPT = (_LOCAL, "fluxexec")      # executors in a process of ours, which has to stay
_WAITER = "`sssjob wait`"


def backend_of(entry: Entry, config: psij.JobExecutorConfig | None = None) -> psij.JobExecutor:
    """The executor of a submission."""
    return _durable(executor_of(entry.executor, copy(config)), entry.folder)


def _durable(executor: psij.JobExecutor, folder: Path) -> psij.JobExecutor:
    """An executor that leaves what tells how a job ended until that is in the journal."""
    if isinstance(executor, LocalJobExecutor):
        executor.records = folder / "records"
    elif isinstance(executor, BatchSchedulerExecutor) and not executor.config.keep_files:
        executor.config.keep_files = True
        executor.files_removable = True
    return executor


@dataclass(slots=True)
class Client:
    """One client. config: of executors, the default ones when None. findings: what is to be told. retries: further
    tries of a submission that failed for a reason that may pass."""

    journal: Journal
    findings: Findings = field(default_factory=Findings)
    progress: Progress = field(default_factory=lambda: Progress(shown=False))
    config: psij.JobExecutorConfig | None = None
    retries: int = RETRIES
    stopped: str | None = None      # the signal that ended a wait
    _backends: dict[str, psij.JobExecutor] = field(default_factory=dict)

    def submit(self, document: Document, executor: str, *, policy: Policy = Policy.REJECT, cwd: Path | None = None,
               planned: Callable[[Findings], bool] | None = None) -> Submission | None:
        """Write a document into the journal and submit what can be submitted; None where findings reject it.

        Parts that are refused have failed when this returns. Raises UsageError, AccessError; then nothing was
        submitted.
        """
        backend = executor_of(executor, copy(self.config))
        token = token_hex(8)
        folder = self.journal.folder(token)
        make_folder(folder)
        try:
            plan = make_plan(document, self.findings, executor=executor.lower(), cwd=cwd, policy=policy,
                             scripts=folder / "scripts", follower=_WAITER, backend=backend, known=self._known)
            if self.findings.rejected or not (planned is None or planned(self.findings)):
                shutil.rmtree(folder, ignore_errors=True)
                return None
            entry = self._enter(token, document, plan, executor, cwd, policy)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if entry.executor in _KEPT:
            keep(entry)
            return self._load(entry)
        submission = Submission(document, lambda: self._backend(entry), entry, time=entry.time)
        submission.take_plan(plan)
        submission.begin()
        submission.owned = entry.take()
        mine = [submission, *self._stalled(entry)]
        connected = self._connected(mine)
        others = connected[len(mine):]          # a resource manager is told to wait only for what is known to be alive
        self._follow(connected, lambda engine: engine.answered_for(others), LOOK_S if others else None,
                     pace=_PACE_S if others else None)
        return submission

    def run(self, document: Document, executor: str = _LOCAL, *, timeout: float | None = None, resume: bool = False,
            policy: Policy = Policy.REJECT, cwd: Path | None = None,
            planned: Callable[[Findings], bool] | None = None) -> Outcome:
        """Run a document to its end, written into the journal; as ``sssjob.run.run`` otherwise."""
        token = token_hex(8)
        backend = _durable(executor_of(executor, copy(self.config)), self.journal.folder(token))
        make_folder(self.journal.folder(token))

        def enter(document: Document, plan: Plan) -> Entry:
            entry = self._enter(token, document, plan, executor, cwd, policy)
            entry.take()
            return entry

        try:
            return run(document, executor, findings=self.findings, progress=self.progress, timeout=timeout,
                       resume=resume, cwd=cwd, policy=policy, planned=planned, enter=enter, backend=backend,
                       scripts=self.journal.folder(token) / "scripts", retries=self.retries, known=self._known,
                       beside=lambda submission: self._connected([submission])[1:])
        finally:
            folder = self.journal.folder(token)
            if not (folder / "lease").exists():         # it was never begun
                shutil.rmtree(folder, ignore_errors=True)

    def attach(self, executor: str, native_id: str) -> Submission:
        """Take a job that was submitted elsewhere into the journal, and look how it stands."""
        executor_of(executor, copy(self.config))
        known = [r for r in self.journal.rows() if r.executor == executor.lower() and r.native_id == native_id]
        if known and known[-1].outcome is None:
            return self.look([self.journal.entry(known[-1].submission)])[0][0]
        job = Job()
        job.put_as_is("Id", [new_property("Id", native_id)])
        document = Document(job)
        row = Row(0, 0, native_id, None, native_id, executor=executor.lower())
        data = {"native_id": native_id.partition("@")[0], "reference": native_id}
        entry = self.journal.add(token_hex(8), executor.lower(), write_document(document), Path.cwd(), "Reject", None,
                                 [row], [Event(0, "native", "user", data)])
        return self.look([entry])[0][0]

    def standing(self, entry: Entry) -> Submission:
        """A submission as the journal knows it; nobody is asked."""
        return self._load(entry)

    def look(self, entries: Iterable[Entry], seconds: float | None = None) -> tuple[list[Submission], bool]:
        """How submissions stand, the resource managers asked once, and whether they have answered; what has waited for
        jobs that have ended is started. seconds: the longest to wait for an answer (20)."""
        submissions = [self._load(entry) for entry in entries]
        for submission in submissions:
            self.own(submission)
        return submissions, self._follow(self._connected(submissions), Engine.answered,
                                         LOOK_S if seconds is None else seconds, pace=_PACE_S)

    def wait(self, names: Sequence[str], seconds: float | None = None) -> tuple[list[Running], bool]:
        """The jobs of these names, and whether all of them have ended; the submissions that they belong to are run on.

        seconds: the longest to wait.
        """
        submissions, jobs = self._named(names)
        for submission in submissions:
            self.own(submission)
        done = self._follow(self._connected(submissions), lambda engine: all(job.ended for job in jobs), seconds,
                            take_over=True)
        return jobs, done

    def cancel(self, names: Sequence[str], seconds: float | None = None) -> tuple[list[Running], bool]:
        """Ask for the end of jobs, whoever looks after them. Returns them, and whether all have ended meanwhile.

        seconds: the longest to wait for that (20).
        """
        rows = [row for name in names for row in self.journal.find(name)]
        for number in dict.fromkeys(row.submission for row in rows):
            entry = self.journal.entry(number)
            entry.flush(*(Event(row.job, "cancel", "user", {}) for row in rows
                          if row.submission == number and row.outcome is None))
        return self.wait(names, LOOK_S if seconds is None else seconds)

    def kept(self, entry: Entry) -> list[Submission]:
        """A submission of which we hold the lease, and those whose jobs its jobs depend on."""
        submission = self._load(entry)
        submission.owned = True
        return self._connected([submission])

    # -- what they share
    def _named(self, names: Sequence[str]) -> tuple[list[Submission], list[Running]]:
        rows = [row for name in names for row in self.journal.find(name)]
        loaded = {n: self._load(self.journal.entry(n)) for n in dict.fromkeys(row.submission for row in rows)}
        places = dict.fromkeys((row.submission, row.job) for row in rows)
        return list(loaded.values()), [loaded[number].jobs[job] for number, job in places]

    def _load(self, entry: Entry) -> Submission:
        return load(entry, lambda: self._backend(entry))

    def _backend(self, entry: Entry) -> psij.JobExecutor:
        key = _key(entry)
        if key not in self._backends:
            self._backends[key] = backend_of(entry, self.config)
        return self._backends[key]

    def _enter(self, token: str, document: Document, plan: Plan, executor: str, cwd: Path | None,
               policy: Policy) -> Entry:
        """Write a plan down."""
        jobs = Submission(document, lambda: executor_of(executor))
        jobs.take_plan(plan)
        rows = []
        for job in jobs.jobs:
            rows.append(job.row)
            rows[-1].state = "Completed" if job.plan.keep else "Hold" if job.plan.held else "Idle"
            rows[-1].outcome = "kept" if job.plan.keep else None
        first = [Event(job.number, "ended", "sssjob", ended_record(JobOutcome(job.plan.job, job.plan.label, "kept", 0)))
                 for job in jobs.jobs if job.plan.keep]
        first += [Event(job.number, "held", "sssjob", {}) for job in jobs.jobs if job.plan.held and not job.plan.keep]
        first += [Event(job.number, "after", "sssjob", {"need": need, "keys": keys})
                  for job in jobs.jobs for need, keys in job.outside.items()]
        group = next((str(g.value("Id")) for g in document.groups() if g.value("Id") is not None), None)
        text = write_document(document, findings=Findings())
        return self.journal.add(token, executor.lower(), text, cwd or Path.cwd(), policy.value, group, rows, first)

    def _known(self, name: str) -> list[str]:
        """Keys of the jobs in the journal that an id in a document means."""
        if name.startswith("@"):
            return []
        try:
            return [row.key for row in self.journal.find(name)]
        except UsageError as error:
            if "several jobs" in str(error):
                raise
            return []

    def _connected(self, submissions: Sequence[Submission]) -> list[Submission]:
        """These, and after them those whose jobs their jobs depend on, which are looked after as well."""
        found = {s.entry.number: s for s in submissions if s.entry is not None}
        rest = list(submissions)
        for submission in rest:         # grows meanwhile
            keys = {key for job in submission.jobs if not job.ended
                    for named in job.outside.values() for key in named if key.startswith("@")}
            for key in sorted(keys):
                number, _, job = key.removeprefix("@").partition(".")
                if int(number) not in found:
                    found[int(number)] = other = self._load(self.journal.entry(int(number)))
                    self.own(other)
                    rest.append(other)
                submission.outside[key] = found[int(number)].jobs[int(job) - 1]
        return rest

    def _stalled(self, but: Entry) -> list[Submission]:
        """Other submissions of which jobs wait to be submitted and nobody looks after."""
        numbers = dict.fromkeys(r.submission for r in self.journal.rows(ended=False)
                                if r.submission != but.number and r.executor == but.executor and r.native_id is None)
        found = [self._load(self.journal.entry(number)) for number in numbers]
        for submission in found:
            self.own(submission)
        return [submission for submission in found if submission.owned]

    def own(self, submission: Submission) -> bool:
        """Look after a submission, unless another client does; see that one does, on this machine."""
        entry = submission.entry
        assert entry is not None
        if submission.ended or not self._can_run(submission, entry):
            return False
        if entry.executor in _KEPT:
            if not entry.held() and entry.ended is None:
                keep(entry)
            submission.catch_up()
            return False
        submission.owned = entry.take()
        if submission.owned:
            submission.owned = False
            submission.catch_up()       # what the one before us wrote last
            submission.owned = True
        return submission.owned

    def _can_run(self, submission: Submission, entry: Entry) -> bool:
        """Whether this client could look after it: jobs of another machine are that one's."""
        if entry.executor in _KEPT and entry.host != socket.gethostname():
            return False
        try:
            submission.executor()
        except UsageError as error:
            self.findings.add("SSS602", f"@{entry.number}", f"@{entry.number}: {error}", severity="warning")
            return False
        return True

    def _follow(self, submissions: list[Submission], done: Callable[[Engine], bool], seconds: float | None = None,
                take_over: bool = False, pace: float | None = None) -> bool:
        engine = Engine(submissions, self.findings, self.progress, seconds, self.own if take_over else None,
                        self.retries)
        engine.pace = engine.pace if pace is None else pace
        try:
            return engine.follow(lambda: done(engine))
        finally:
            self.stopped = engine.stopped
            for submission in submissions:
                if submission.entry is not None:
                    submission.entry.release()


def _key(entry: Entry) -> str:
    """Submissions to a resource manager share an executor, and so its status commands."""
    return f"{entry.executor}@{entry.number}" if entry.executor in _KEPT else entry.executor
