"""What clients of the journal do: submit, look, wait, cancel, attach.

A submission is looked after by the client that holds its lease. For resource managers that is whoever needs it at the
moment: the next one takes over what the last one left, finds by their tags jobs whose submission got lost on the way,
and starts what has waited for them. For the executor ``local`` it is a process of its own (``keeping``).
"""

from __future__ import annotations

import math
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import psij
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from psij.executors.local import LocalJobExecutor
from sssjob.conversion.settings import Settings
from sssjob.document.element import new_property
from sssjob.document.model import Document, Job
from sssjob.document.sweeps import expand
from sssjob.errors import AccessError, UsageError
from sssjob.findings import Findings, Policy
from sssjob.run.caps import Caps, caps_of
from sssjob.run.configuring import config_of, following, load_settings, pin
from sssjob.run.engine import Engine
from sssjob.run.entering import Prepared
from sssjob.run.journal import Entry, Event, Journal
from sssjob.run.keeper import keep
from sssjob.run.listing import Details, details_of
from sssjob.run.on_end import Hook, promise_all
from sssjob.run.outcomes import JobOutcome, Outcome, ended_record
from sssjob.run.placing import ASK_AGAIN_S, cluster_of, place, unplaced, way_of
from sssjob.run.plan import Plan, make_plan
from sssjob.run.progress import Progress
from sssjob.run.rows import AGAIN, Row
from sssjob.run.running import executor_of, run
from sssjob.run.standing import Running, Submission, load
from sssjob.run.storage import is_full, make_folder
from sssjob.run.submitting import RETRIES
from sssjob.xml.writer import write_document

if TYPE_CHECKING:
    from sssjob.run.refreshing import Refreshed

__all__ = ["KEPT", "LOOK_S", "Client", "backend_of"]

LOOK_S = 20.0       # how long a resource manager may take to say how jobs stand
_PACE_S = 0.1       # between two looks at whether it has
_LOCAL = "local"
KEPT = (_LOCAL, "fluxexec")     # executors in a process of ours, which has to stay
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
    """One client. config: of all executors; without it that of the settings, for each executor. findings: what is
    to be told. retries: further tries of a submission that failed for a reason that may pass. max_queued: the most jobs
    of each submission in flight, from now on; None: as it was said before, or as many as there are."""

    journal: Journal
    findings: Findings = field(default_factory=Findings)
    progress: Progress = field(default_factory=lambda: Progress(shown=False))
    config: psij.JobExecutorConfig | None = None
    settings: Settings | None = None
    retries: int = RETRIES
    max_queued: int | None = None
    site: str | None = None         # the name of the profile by which documents are submitted
    why: str = ""                   # why they go there
    stopped: str | None = None      # the signal that ended a wait
    elsewhere: dict[int, str] = field(default_factory=dict)     # submissions on another cluster: number -> which
    unsaid: set[int] = field(default_factory=set)               # those of which nobody says whether they are
    _routing: bool = False          # it is taking steps of routes
    _clusters: dict[str, tuple[float, str | None]] = field(default_factory=dict)    # by executor: until when, which
    _backends: dict[str, psij.JobExecutor] = field(default_factory=dict)
    _plans: dict[str, psij.JobExecutor] = field(default_factory=dict)       # by executor and settings: that plan
    _looked: dict[int, float] = field(default_factory=dict)     # by number: until when tags are not sought again

    def submit(self, document: Document, executor: str, *, policy: Policy = Policy.REJECT, cwd: Path | None = None,
               planned: Callable[[Findings], bool] | None = None, request: str | None = None,
               on_end: Sequence[Hook] = ()) -> Submission | None:
        """Write a document into the journal and submit what can be submitted; None where findings reject it.

        Parts that are refused have failed when this returns. request: what its user calls this; the same once more
        gives the submission that was made first, and goes on with it. on_end: what any client does for each job when it
        has ended. Raises UsageError, also for another document under a request that was made, and AccessError; then
        nothing was submitted.
        """
        prepared = self.prepare(document, executor, policy=policy, cwd=cwd, planned=planned, request=request,
                                on_end=on_end)
        if prepared is None:
            return None
        self.enter(prepared)
        assert prepared.entry is not None
        return self.begin([prepared]).get(prepared.token) or self._load(prepared.entry)

    def prepare(self, document: Document, executor: str, *, policy: Policy = Policy.REJECT, cwd: Path | None = None,
                planned: Callable[[Findings], bool] | None = None, request: str | None = None,
                on_end: Sequence[Hook] = (), is_new: bool = False) -> Prepared | None:
        """The first third of ``submit``: plan a document; None where findings reject it. Nothing is in the journal.
        is_new: nobody can have made a request of this name before."""
        document = expand(document, self.findings)
        token = token_hex(8)
        prepared = Prepared(document, write_document(document, findings=Findings()), executor.lower(), cwd, policy,
                            request, on_end, token, self.journal.folder(token))
        earlier = None if request is None or is_new else self.journal.requested(request)
        if earlier is not None:
            prepared.entered(earlier)
            return prepared
        prepared.backend = self._planning(executor)
        try:
            pin(prepared.folder, self._stated(executor), prepared.backend)
            prepared.plan = make_plan(
                document, self.findings, executor=prepared.executor, cwd=cwd, policy=policy, backend=prepared.backend,
                scripts=prepared.folder / "scripts", follower=_WAITER, known=self._known)
            if self.findings.rejected or not (planned is None or planned(self.findings)):
                prepared.drop()
                return None
            prepared.cluster = cluster_of(prepared.backend)
        except BaseException:
            prepared.drop()
            raise
        return prepared

    def _planning(self, executor: str) -> psij.JobExecutor:
        """The executor by which submissions are planned, one for all of them unless its configuration is the caller's.
        """
        if self.config is not None:
            return executor_of(executor, self._config(executor))
        key = f"{executor} {sorted(self._stated(executor).items())}"       # a route goes from one site to the next
        if key not in self._plans:
            self._plans[key] = executor_of(executor, self._config(executor))
        return self._plans[key]

    def enter(self, prepared: Prepared) -> None:
        """The second third: write it into the journal, in one transaction. Raises UsageError, AccessError; then nothing
        of it is there."""
        if prepared.entry is not None:
            return
        try:
            with self.journal.together():
                entry = self._enter(prepared)
                entry.flush()
        except BaseException:
            prepared.drop()
            raise
        prepared.entered(entry)     # another process may have been quicker with the same request

    def begin(self, several: Sequence[Prepared]) -> dict[str, Submission]:
        """The last third: submit what can be submitted of what is in the journal, all of it by one engine. Gives, by
        their tokens, the submissions that were followed here; others have a process of their own."""
        begun: dict[str, Submission] = {}
        fresh: dict[str, Submission] = {}
        entries = []
        unkept = []
        for prepared in several:
            entry = prepared.entry
            assert entry is not None
            if not prepared.fresh:
                begun[prepared.token] = self._once_more(entry)
            elif entry.executor not in KEPT:
                fresh[prepared.token] = self._first(prepared)
                entries.append(entry)
            elif not entry.held():
                unkept.append(entry)
        if unkept:
            keep(unkept)
        if fresh:
            mine = [*fresh.values(), *self._stalled(entries)]
            connected = self._connected(mine)
            others = connected[len(mine):]      # a resource manager is told to wait only for what is known to be alive
            self._follow(connected, lambda engine: engine.answered(others), LOOK_S if others else None,
                         pace=_PACE_S if others else None, brief=False)
        return begun | fresh

    def _first(self, prepared: Prepared) -> Submission:
        """A submission that nobody has begun, ours unless another client was quicker."""
        entry, plan = prepared.entry, prepared.plan
        assert entry is not None and plan is not None
        submission = Submission(prepared.document, cache(lambda: self._backend(entry)), entry, time=entry.time)
        submission.take_plan(plan)
        submission.promise(prepared.on_end)
        submission.begin()
        submission.cap = self.max_queued
        submission.owned = entry.take()
        return submission

    def _once_more(self, entry: Entry) -> Submission:
        """A submission that was made by an earlier request of the same name, as it stands; what is still to be
        submitted of it is."""
        submission = self._load(entry)
        self._set_cap(submission)
        if self.own(submission):
            self._follow(self._connected([submission]), Engine.answered, LOOK_S, pace=_PACE_S, brief=False)
        return submission

    def run(self, document: Document, executor: str = _LOCAL, *, timeout: float | None = None, resume: bool = False,
            policy: Policy = Policy.REJECT, cwd: Path | None = None,
            planned: Callable[[Findings], bool] | None = None, on_end: Sequence[Hook] = ()) -> Outcome:
        """Run a document to its end, written into the journal; as ``sssjob.run.run`` otherwise."""
        token = token_hex(8)
        backend = _durable(executor_of(executor, self._config(executor)), self.journal.folder(token))
        make_folder(self.journal.folder(token))
        pin(self.journal.folder(token), self._stated(executor), backend)

        def enter(document: Document, plan: Plan) -> Entry:
            """Write the submission into the journal and take its lease."""
            entry = self._enter(Prepared(document, write_document(document, findings=Findings()), executor.lower(), cwd,
                                         policy, None, on_end, token, self.journal.folder(token), plan, backend,
                                         cluster_of(backend)))
            entry.take()
            return entry

        try:
            return run(document, executor, findings=self.findings, progress=self.progress, timeout=timeout,
                       resume=resume, cwd=cwd, policy=policy, planned=planned, enter=enter, backend=backend,
                       scripts=self.journal.folder(token) / "scripts", retries=self.retries, known=self._known,
                       beside=lambda submission: self._connected([submission])[1:], max_queued=self.max_queued,
                       caps=self.caps(), on_end=on_end)
        finally:
            folder = self.journal.folder(token)
            if not (folder / "lease").exists():         # it was never begun
                shutil.rmtree(folder, ignore_errors=True)

    def attach(self, executor: str, native_id: str) -> Submission:
        """Take a job that was submitted elsewhere into the journal, and look how it stands."""
        backend = executor_of(executor, self._config(executor))
        cluster = cluster_of(backend)
        rows = [r for r in self.journal.rows() if r.executor == executor.lower() and r.native_id == native_id
                and r.cluster == cluster]
        if rows and rows[-1].outcome is None:
            return self.look([self.journal.entry(rows[-1].submission)])[0][0]
        job = Job()
        job.put_as_is("Id", [new_property("Id", native_id)])
        document = Document(job)
        row = Row(0, 0, native_id, None, native_id, executor=executor.lower())
        data = {"native_id": native_id.partition("@")[0], "reference": native_id}
        token = token_hex(8)
        pin(self.journal.folder(token), self._stated(executor))
        entry = self.journal.add(token, executor.lower(), write_document(document), Path.cwd(), "Reject", None, [row],
                                 [Event(0, "native", "user", data), *unplaced(backend, cluster)], cluster)
        return self.look([entry])[0][0]

    def standing(self, entry: Entry) -> Submission:
        """A submission as the journal knows it; nobody is asked."""
        return self._load(entry)

    def look(self, entries: Iterable[Entry], seconds: float | None = None, *, steps: bool = True
             ) -> tuple[list[Submission], bool]:
        """How submissions stand, the resource managers asked once, and whether they have answered; what has waited for
        jobs that have ended is started. seconds: the longest to wait for an answer (20). steps: documents that go to
        one of several sites go on."""
        if steps:
            self.take_steps()
        submissions = [self._load(entry) for entry in entries]
        for submission in submissions:
            self.own(submission)
        answered = self._follow(self._connected(submissions), Engine.answered, LOOK_S if seconds is None else seconds,
                                pace=_PACE_S)
        return submissions, answered and not self.unsaid

    def wait(self, names: Sequence[str], seconds: float | None = None,
             on_end: Sequence[Hook] = ()) -> tuple[list[Running], bool]:
        """The jobs of these names, and whether all of them have ended; the submissions that they belong to are run on.

        seconds: the longest to wait. on_end: what is done for each of them when it has ended, if that was not promised
        before; by any client. Of a document that goes from one site to the next the jobs there are waited for.
        """
        from sssjob.run.routing import due_s, followed

        until = math.inf if seconds is None else time.monotonic() + seconds
        self.take_steps()
        while True:
            names = followed(self.journal, names)
            due, seconds_left = due_s(self.journal), until - time.monotonic()
            jobs, ended = self.finish(names, None if min(due, seconds_left) == math.inf
                                      else max(min(due, seconds_left), 0.0), on_end)
            self.take_steps()
            stands = list(dict.fromkeys(f"@{job.row.submission}" for job in jobs))
            if self.stopped or seconds_left <= due or (ended and followed(self.journal, stands) == stands):
                return jobs, ended

    def take_steps(self) -> None:
        """Have documents that go to one of several sites go on."""
        from sssjob.run.routing import go_on

        if not self._routing:
            self._routing = True
            try:
                go_on(self)
            finally:
                self._routing = False

    def finish(self, names: Sequence[str], seconds: float | None = None,
               on_end: Sequence[Hook] = ()) -> tuple[list[Running], bool]:
        """The same of the submissions that these names mean now."""
        submissions, jobs = self._named(names)
        for job in jobs if on_end else ():
            self._promise(job, on_end)
        for submission in submissions:
            self._set_cap(submission)
            self.own(submission)
        self._follow(self._connected(submissions), lambda engine: all(
            self._is_left(job) or (job.ended and (not on_end or all(hook.waits for hook in job.hooks.values())))
            for job in jobs), seconds, take_over=True)
        return jobs, all(job.ended for job in jobs)

    def _promise(self, job: Running, hooks: Sequence[Hook]) -> None:
        entry = job.of.entry
        assert entry is not None
        fresh = [hook for hook in hooks if hook.id not in job.hooks]
        if fresh and not job.plan.keep:
            entry.reopen([Event(job.number, "on-end", "user", hook.promise()) for hook in fresh])
            promise_all([job], fresh)

    def cancel(self, names: Sequence[str], seconds: float | None = None) -> tuple[list[Running], bool]:
        """Ask for the end of jobs, whoever looks after them. Returns them, and whether all have ended meanwhile.

        seconds: the longest to wait for that (20). Parts of a group that a client has left to the next one are
        submitted before.
        """
        self.take_steps()
        rows = [row for name in names for row in self.journal.find(name)]
        for number in dict.fromkeys(row.submission for row in rows):
            entry = self.journal.entry(number)
            entry.flush(*(Event(row.job, "cancel", "user", {}) for row in rows
                          if row.submission == number and row.outcome is None))
        return self.wait(names, LOOK_S if seconds is None else seconds)

    def ask(self, wish: str, names: Sequence[str], seconds: float | None = None, *, source: str = "user"
            ) -> list[Running]:
        """Ask for something to be done with jobs, whoever looks after them. wish: one of WISHES, signal with its name,
        as ``signal USR1``; source: who wants it.

        Returns them, with what became of it in their ``answers``, as far as that was known in time. Of jobs that had
        ended nothing was asked. seconds: the longest to wait for the answers (20).
        """
        kind, _, signal = wish.partition(" ")
        data = {"name": signal} if signal else {}
        if source == "user":
            self.take_steps()           # as of cancel
        rows = [row for name in names for row in self.journal.find(name)]
        for number in dict.fromkeys(row.submission for row in rows):
            self.journal.entry(number).flush(*(Event(row.job, kind, source, data) for row in rows
                                               if row.submission == number and row.outcome is None))
        submissions, jobs = self._named(names)
        had_ended = {row.key for row in rows if row.outcome is not None}
        for job in jobs:
            if job.row.key in had_ended:
                job.answers.pop(wish, None)     # of an earlier wish
        for submission in submissions:
            self.own(submission)
        self._follow(self._connected(submissions),
                     lambda engine: all(not job.wishes or self._is_left(job) for job in jobs),
                     LOOK_S if seconds is None else seconds, take_over=True)
        return jobs

    def again(self, number: int, jobs: Sequence[int], on_end: Sequence[Hook] = (), part_of: str | None = None
              ) -> list[Submission]:
        """Submit jobs of a submission once more that have ended, as ``submit`` does; the new submissions.

        jobs: their places. on_end: what is done for each job when it has ended, besides what was promised for the end
        of each of the earlier ones. part_of: a random text, where further submissions that are run again are parts of
        the same document. What a rejecting finding keeps back is not among them. Raises UsageError,
        AccessError.
        """
        from sssjob.run.again import again

        entry = self.journal.entry(number)
        earlier = self._load(entry)
        chosen = [earlier.jobs[n] for n in jobs]
        promised = [hook for hook in chosen[0].hooks.values() if all(hook.id in job.hooks for job in chosen)]
        hooks = list({hook.id: hook for hook in (*promised, *on_end)}.values())
        submissions = []
        for document in again(earlier, chosen):
            submission = self.submit(document, entry.executor, policy=Policy.of(entry.policy) or Policy.REJECT,
                                     cwd=entry.directory, on_end=hooks,
                                     request=None if part_of is None else f"{AGAIN}{part_of}.{number}")
            if submission is not None:
                submissions.append(submission)
        return submissions

    def refresh(self, names: Sequence[str], since: float | None = None) -> Refreshed:
        """Ask accounting for what it had not told of jobs when they ended; of all jobs where there are no names.

        since: seconds since the epoch; ends that were learnt before it are left alone.
        """
        from sssjob.run.refreshing import refresh

        rows = [row for name in names for row in self.journal.find(name)] if names else self.journal.ended_since(since)
        return refresh(self, rows, since, every=bool(names))

    def key(self, entry: Entry) -> str:
        """Names the executor of a submission: that of another one with the same key is the same."""
        host = following(entry.folder, self._stated(entry.executor)).get("ssh_host")
        return _key(entry) if host is None else f"{_key(entry)} {host}"

    def kept(self, entries: Sequence[Entry]) -> list[Submission]:
        """Submissions of which we hold the leases, and after them those whose jobs their jobs depend on."""
        submissions = [self._load(entry) for entry in entries]
        for submission in submissions:
            submission.owned = True
        return self._connected(submissions)

    # -- what they share
    def _named(self, names: Sequence[str]) -> tuple[list[Submission], list[Running]]:
        rows = [row for name in names for row in self.journal.find(name)]
        loaded = {n: self._load(self.journal.entry(n)) for n in dict.fromkeys(row.submission for row in rows)}
        places = dict.fromkeys((row.submission, row.job) for row in rows)
        return list(loaded.values()), [loaded[number].jobs[job] for number, job in places]

    def _load(self, entry: Entry) -> Submission:
        return load(entry, cache(lambda: self._backend(entry)))

    def _backend(self, entry: Entry) -> psij.JobExecutor:
        key = f"{_key(entry)} {sorted(following(entry.folder, self._stated(entry.executor)).items())}"
        if key not in self._backends:
            self._backends[key] = backend_of(entry, self._config(entry.executor, entry.folder))
        return self._backends[key]

    def caps(self) -> Caps:
        """How many jobs of an executor, or of all, may be in flight."""
        return caps_of(load_settings() if self.settings is None else self.settings)

    def _stated(self, executor: str) -> dict[str, Any]:
        return {} if self.settings is None else self.settings.stated(executor)

    def _config(self, executor: str, folder: Path | None = None) -> psij.JobExecutorConfig | None:
        """The configuration of an executor. folder: of a submission that is followed."""
        if self.config is not None:
            return copy(self.config)
        stated = self._stated(executor)
        return config_of(executor, stated if folder is None else following(folder, stated))

    def _enter(self, prepared: Prepared) -> Entry:
        """Write a plan down. No resource manager is asked: other clients wait for the journal meanwhile."""
        document, plan, backend, cluster = prepared.document, prepared.plan, prepared.backend, prepared.cluster
        assert plan is not None and backend is not None
        jobs = Submission(document, lambda: backend)
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
        first += unplaced(backend, cluster)
        first += [Event(job.number, "note", "sssjob", {"text": self.why}) for job in jobs.jobs if self.why]
        first += [self._cap()] if self.max_queued is not None else []
        first += [Event(job.number, "on-end", "user", hook.promise()) for job in jobs.jobs for hook in prepared.on_end
                  if not job.plan.keep]
        group = next((str(g.value("Id")) for g in document.groups() if g.value("Id") is not None), None)
        entry = self.journal.add(prepared.token, prepared.executor, prepared.text, prepared.directory or Path.cwd(),
                                 prepared.policy.value, group, rows, first, cluster, prepared.request, self.site)
        entry.asked_until = time.monotonic() + ASK_AGAIN_S
        if entry.token == prepared.token:
            entry.way = None if cluster is not None else way_of(backend)
            for job in jobs.jobs:
                if details_of(job) != Details():
                    entry.detail(job.number, partial(details_of, job))
        return entry

    def _cap(self) -> Event:
        """What keeps the cap of a submission."""
        return Event(0, "cap", "user", {"most": self.max_queued})

    def _set_cap(self, submission: Submission) -> None:
        """Have the cap that is stated now hold for a submission that an earlier client made."""
        stated = self.max_queued is not None and self.max_queued != submission.cap
        if stated and submission.entry is not None and not submission.ended:
            submission.entry.flush(self._cap())
            submission.cap = self.max_queued

    def _known(self, name: str, by_name: bool = False) -> list[str]:
        """Keys of the jobs in the journal that an id in a document means, or a Name."""
        if by_name:
            return [row.key for row in self.journal.named(name)]
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
        by_number = {s.entry.number: s for s in submissions if s.entry is not None}
        rest = list(submissions)
        for submission in rest:         # grows meanwhile
            keys = {key for job in submission.jobs if not job.ended
                    for named in job.outside.values() for key in named if key.startswith("@")}
            for key in sorted(keys):
                number, _, job = key.removeprefix("@").partition(".")
                if int(number) not in by_number:
                    by_number[int(number)] = other = self._load(self.journal.entry(int(number)))
                    self.own(other)
                    rest.append(other)
                submission.outside[key] = by_number[int(number)].jobs[int(job) - 1]
        rest += self._rivals(by_number)
        return rest

    def _rivals(self, by_number: Mapping[int, Submission]) -> list[Submission]:
        """Submissions, beside those that were found, whose jobs count against the user's own caps and that nobody looks
        after, so that nobody would know when they end."""
        caps = self.caps()
        waiting = {s.entry.executor for s in by_number.values() if s.entry is not None
                   and any(job.word == "waiting" for job in s.jobs)}
        if not waiting or (caps.of_all is None and all(caps.of(name) is None for name in waiting)):
            return []
        numbers = dict.fromkeys(row.submission for row in self.journal.rows(ended=False)
                                if row.submission not in by_number and row.native_id is not None
                                and (caps.of_all is not None or row.executor in waiting))
        rivals = [self._load(self.journal.entry(number)) for number in numbers]
        return [submission for submission in rivals if self.own(submission)]

    def _stalled(self, but: Sequence[Entry]) -> list[Submission]:
        """Other submissions that nobody looks after: of the executors of these those of which jobs wait to be
        submitted, of all those for whose ends something is still to be done, which needs no resource manager."""
        mine, places = {entry.number for entry in but}, {(entry.executor, entry.cluster) for entry in but}
        numbers = [number for name in sorted({name for name, _ in places}) for number in self.journal.waiting(name)]
        entries_here = [entry for number in numbers if number not in mine
                        and ((entry := self.journal.entry(number)).executor, entry.cluster) in places]
        stalled = [self._load(entry) for entry in (*entries_here, *map(self.journal.entry, self.journal.unkept()))]
        for submission in stalled:
            self.own(submission)
        return [submission for submission in stalled if submission.owned]

    def own(self, submission: Submission) -> bool:
        """Look after a submission, unless another client does; see that one does, on this machine."""
        entry = submission.entry
        assert entry is not None
        if submission.kept or not (submission.ended or self._can_run(submission, entry)):
            return False
        if entry.executor in KEPT and not submission.ended:
            if not entry.held() and entry.ended is None:
                keep([entry])
            submission.catch_up()
            return False
        try:
            submission.owned = entry.take()
        except AccessError as error:
            if not is_full(error):
                raise
            self.findings.add("SSS602", f"@{entry.number}", f"{error}; nothing is done for its jobs meanwhile",
                              severity="warning")
        if submission.owned:
            submission.owned = False
            submission.catch_up()       # what the one before us wrote last
            submission.owned = True
        return submission.owned

    def _can_run(self, submission: Submission, entry: Entry) -> bool:
        """Whether this client could look after it: jobs of another machine are that one's."""
        if entry.executor in KEPT and entry.host != socket.gethostname():
            return False
        try:
            submission.executor()
        except UsageError as error:
            self.findings.add("SSS602", f"@{entry.number}", f"@{entry.number}: {error}", severity="warning")
            return False
        return self.is_here(entry)

    def is_here(self, entry: Entry) -> bool:
        """Whether the jobs of a submission are on the cluster that this client talks to, as far as that is known."""
        if entry.executor in KEPT:
            return True
        if entry.cluster is None and entry.way is not None:
            entry.cluster = self.journal.entry(entry.number).cluster        # another client may know it by now
            return self._is_here(entry) if entry.cluster is not None else self._is_unplaced_here(entry)
        return entry.cluster is None or self._is_here(entry)

    def _is_here(self, entry: Entry) -> bool:
        """Whether the jobs of a submission are on the cluster that this client talks to; told where they are not."""
        cluster_here = self._here(entry)
        if cluster_here is None:
            self.unsaid.add(entry.number)
            return False
        self.unsaid.discard(entry.number)
        if cluster_here == entry.cluster:
            self.elsewhere.pop(entry.number, None)
            return True
        self._leave(entry, f"is on the cluster {entry.cluster}; this is {cluster_here}. "
                           "Its jobs are left alone here, and "
                           "shown as they were last")
        return False

    def _is_unplaced_here(self, entry: Entry) -> bool:
        """The same of a submission whose cluster did not say which one it is: reached by the same way it is the same
        one, and where a job bears a tag of it, it is there. That none does is no evidence of anything."""
        backend = self._backend(entry)
        if entry.way == way_of(backend):
            place(entry, backend)
            return True
        if self._looked.get(entry.number, -math.inf) > time.monotonic():
            return False
        tags = [event.data["tag"] for event in entry.events() if event.kind == "intent"]
        try:
            shown = bool(tags) and isinstance(backend, BatchSchedulerExecutor) and backend.shows_any(tags)
        except psij.SubmitException:
            self.unsaid.add(entry.number)
            return False
        self.unsaid.discard(entry.number)
        if shown:
            place(entry, backend)
            self.elsewhere.pop(entry.number, None)
            return True
        self._looked[entry.number] = time.monotonic() + ASK_AGAIN_S
        self._leave(entry, f"was submitted on {entry.host} while its resource manager did not say which cluster it is, "
                           "and no job of it is known here. Its jobs are left alone until a client there looks")
        return False

    def _here(self, entry: Entry) -> str | None:
        """The cluster that this client talks to; None where nobody says it now."""
        key = self.key(entry)
        until, cluster_here = self._clusters.get(key, (0.0, None))
        if until <= time.monotonic():
            cluster_here = cluster_of(self._backend(entry))
            until = math.inf if cluster_here is not None else time.monotonic() + ASK_AGAIN_S
            self._clusters[key] = until, cluster_here
        return cluster_here

    def _leave(self, entry: Entry, why: str) -> None:
        """Tell, once, that the jobs of a submission are not here."""
        if entry.number not in self.elsewhere:
            self.elsewhere[entry.number] = entry.cluster or ""
            self.findings.add("SSS602", f"@{entry.number}", f"@{entry.number} {why}", severity="warning")

    def _is_left(self, job: Running) -> bool:
        """Whether a job is on another cluster, and no client looks after it there."""
        entry = job.of.entry
        return entry is not None and entry.number in self.elsewhere and not entry.held()

    def _follow(self, submissions: list[Submission], done: Callable[[Engine], bool], seconds: float | None = None,
                take_over: bool = False, pace: float | None = None, brief: bool = True) -> bool:
        """Have an engine follow submissions until all is done or the time is up. brief: then nothing more is submitted
        either, and the next client goes on; all jobs of a document that is being submitted are."""
        engine = Engine(submissions, self.findings, self.progress, seconds, self.own if take_over else None,
                        self.retries, brief, self.caps())
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
    return f"{entry.executor}@{entry.number}" if entry.executor in KEPT else entry.executor
