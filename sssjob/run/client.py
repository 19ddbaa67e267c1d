"""What clients of the journal do: submit, look, wait, cancel, attach.

A submission is looked after by the client that holds its lease. For resource managers that is whoever needs it at the
moment: the next one takes over what the last one left, finds by their tags jobs whose submission got lost on the way,
and starts what has waited for them. For the executor ``local`` it is a process of its own (``keeping``).
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import psij
from sssjob.conversion.settings import Settings
from sssjob.document.element import new_property
from sssjob.document.model import Document, Job
from sssjob.document.sweeps import expand
from sssjob.errors import AccessError, UsageError
from sssjob.findings import Findings, Policy
from sssjob.run.backends import KEPT, LOCAL, lasting_executor, shared_key
from sssjob.run.beside import connected, stalled
from sssjob.run.caps import Caps, caps_of
from sssjob.run.configuring import config_of, following, load_settings, pinned
from sssjob.run.engine import Engine
from sssjob.run.entering import Prepared, cap_event, known_keys, write_down
from sssjob.run.history import Event
from sssjob.run.journal import Entry, Journal
from sssjob.run.keeper import keep
from sssjob.run.loading import load
from sssjob.run.on_end import Hook, promise_all
from sssjob.run.outcomes import Outcome
from sssjob.run.placing import cluster_of, unplaced
from sssjob.run.plan import Plan, make_plan
from sssjob.run.progress import Progress
from sssjob.run.rows import GONE, Row
from sssjob.run.running import executor_of, run
from sssjob.run.standing import Running, Submission
from sssjob.run.storage import is_full, make_folder
from sssjob.run.submitting import RETRIES
from sssjob.run.unsaid import say
from sssjob.run.whereabouts import Whereabouts
from sssjob.xml.writer import write_document

if TYPE_CHECKING:
    from sssjob.run.refreshing import Refreshed

__all__ = ["LOOK_S", "Client"]

LOOK_S = 20.0       # how long a resource manager may take to say how jobs stand
_PACE_S = 0.1       # between two looks at whether it has
_WAITER = "`sssjob wait`"


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
    whereabouts: Whereabouts = field(default_factory=Whereabouts)
    _routing: bool = False          # it is taking steps of routes
    _backends: dict[str, psij.JobExecutor] = field(default_factory=dict)
    _plans: dict[str, psij.JobExecutor] = field(default_factory=dict)       # by executor and settings: that plan

    def submit(self, document: Document, executor: str, *, policy: Policy = Policy.REJECT, cwd: Path | None = None,
               planned: Callable[[Findings], bool] | None = None, request: str | None = None,
               on_end: Sequence[Hook] = (), like: Entry | None = None) -> Submission | None:
        """Write a document into the journal and submit what can be submitted; None where findings reject it.

        Parts that are refused have failed when this returns. request: what its user calls this; the same once more
        gives the submission that was made first, and goes on with it. on_end: what any client does for each job when it
        has ended. like: an earlier submission, at whose site and with whose settings it is made. Raises UsageError,
        also for another document under a request that was made, and AccessError; then nothing was submitted.
        """
        prepared = self.prepare(document, executor, policy=policy, cwd=cwd, planned=planned, request=request,
                                on_end=on_end, like=like)
        if prepared is None:
            return None
        self.enter(prepared)
        assert prepared.entry is not None
        return self.begin([prepared]).get(prepared.token) or self.standing(prepared.entry)

    def prepare(self, document: Document, executor: str, *, policy: Policy = Policy.REJECT, cwd: Path | None = None,
                planned: Callable[[Findings], bool] | None = None, request: str | None = None,
                on_end: Sequence[Hook] = (), is_new: bool = False, like: Entry | None = None) -> Prepared | None:
        """The first third of ``submit``: plan a document; None where findings reject it. Nothing is in the journal.
        is_new: nobody can have made a request of this name before. like: as of ``submit``."""
        document = expand(document, self.findings)
        token = token_hex(8)
        stated = self._stated(executor) if like is None else following(like, self._stated(executor))
        backend = self._planning(executor, stated)
        say(document, backend, cwd or Path.cwd())
        prepared = Prepared(document, write_document(document, findings=Findings()), executor.lower(), cwd, policy,
                            request, on_end, token, self.journal.folder(token))
        earlier = None if request is None or is_new else self.journal.requested(request)
        if earlier is not None:
            prepared.entered(earlier)
            return prepared
        prepared.backend = backend
        prepared.site = self.site if like is None else like.site
        try:
            prepared.settings = pinned(stated, prepared.backend)
            prepared.plan = make_plan(
                document, self.findings, executor=prepared.executor, cwd=cwd, policy=policy, backend=prepared.backend,
                scripts=prepared.folder / "scripts", follower=_WAITER, known=partial(known_keys, self.journal))
            if self.findings.rejected or not (planned is None or planned(self.findings)):
                prepared.drop()
                return None
            prepared.cluster = cluster_of(prepared.backend)
        except BaseException:
            prepared.drop()
            raise
        return prepared

    def _planning(self, executor: str, stated: Mapping[str, Any]) -> psij.JobExecutor:
        """The executor by which submissions are planned, one for all of them unless the caller has configured it."""
        if self.config is not None:
            return executor_of(executor, self._config(executor))
        key = f"{executor} {sorted(stated.items())}"       # a route goes from one site to the next
        if key not in self._plans:
            self._plans[key] = executor_of(executor, config_of(executor, stated))
        return self._plans[key]

    def enter(self, prepared: Prepared) -> None:
        """The second third: write it into the journal, in one transaction. Raises UsageError, AccessError; then nothing
        of it is there."""
        if prepared.entry is not None:
            return
        try:
            with self.journal.together():
                entry = self._write_down(prepared)
                entry.flush()
        except BaseException:
            prepared.drop()
            raise
        prepared.entered(entry)     # another process may have been quicker with the same request

    def begin(self, several: Sequence[Prepared]) -> dict[str, Submission]:
        """The last third: submit what can be submitted of what is in the journal, all of it by one engine. Gives, by
        their tokens, the submissions that were followed here; others have a process of their own."""
        begun, fresh = dict[str, Submission](), dict[str, Submission]()
        entries, unkept = list[Entry](), list[Entry]()
        for prepared in several:
            entry = prepared.entry
            assert entry is not None
            if not prepared.fresh:
                begun[prepared.token] = self._once_more(entry, prepared.on_end)
            elif entry.executor not in KEPT:
                fresh[prepared.token] = self._first(prepared)
                entries.append(entry)
            elif not entry.held():
                unkept.append(entry)
        if unkept:
            keep(unkept)
        if fresh:
            mine = [*fresh.values(), *stalled(self, entries)]
            together = connected(self, mine)
            others = together[len(mine):]       # a resource manager is told to wait only for what is known to be alive
            self._follow(together, lambda engine: engine.answered(others), LOOK_S if others else None,
                         pace=_PACE_S if others else None, brief=False)
        return begun | fresh

    def _first(self, prepared: Prepared) -> Submission:
        """A submission that nobody has begun, ours unless another client was quicker."""
        entry, plan = prepared.entry, prepared.plan
        assert entry is not None and plan is not None
        submission = Submission(prepared.document, cache(lambda: self.backend(entry)), entry, time=entry.time)
        submission.take_plan(plan)
        promise_all(submission.jobs, prepared.on_end)
        submission.begin()
        submission.cap = self.max_queued
        submission.owned = entry.take()
        return submission

    def _once_more(self, entry: Entry, on_end: Sequence[Hook]) -> Submission:
        """A submission that was made by an earlier request of the same name, as it stands; what is still to be
        submitted of it is, and what is to be done at ends is promised."""
        submission = self.standing(entry)
        self._promise(submission.jobs, on_end)
        self._set_cap(submission)
        if self.own(submission):
            self._follow(connected(self, [submission]), Engine.answered, LOOK_S, pace=_PACE_S, brief=False)
        return submission

    def run(self, document: Document, executor: str = LOCAL, *, timeout: float | None = None, resume: bool = False,
            policy: Policy = Policy.REJECT, cwd: Path | None = None,
            planned: Callable[[Findings], bool] | None = None, on_end: Sequence[Hook] = ()) -> Outcome:
        """Run a document to its end, written into the journal; as ``sssjob.run.run`` otherwise."""
        token = token_hex(8)
        folder = self.journal.folder(token)
        backend = lasting_executor(executor, self._config(executor), folder)
        make_folder(folder)
        settings = pinned(self._stated(executor), backend)

        def enter(document: Document, plan: Plan) -> Entry:
            """Write the submission into the journal and take its lease."""
            text = write_document(document, findings=Findings())
            prepared = Prepared(document, text, executor.lower(), cwd, policy, None, on_end, token, folder, plan,
                                backend, self.site, settings, cluster_of(backend))
            entry = self._write_down(prepared)
            entry.take()
            return entry

        try:
            return run(document, executor, findings=self.findings, progress=self.progress, timeout=timeout,
                       resume=resume, cwd=cwd, policy=policy, planned=planned, enter=enter, backend=backend,
                       scripts=folder / "scripts", retries=self.retries, known=partial(known_keys, self.journal),
                       beside=lambda submission: connected(self, [submission])[1:], max_queued=self.max_queued,
                       caps=self.caps(), on_end=on_end)
        finally:
            if not (folder / "lease").exists():         # it was never begun
                shutil.rmtree(folder, ignore_errors=True)

    def attach(self, executor: str, native_id: str) -> Submission:
        """Take a job that was submitted elsewhere into the journal, and look how it stands."""
        backend = executor_of(executor, self._config(executor))
        cluster, host = cluster_of(backend), getattr(backend, "host", None)     # names of clusters come twice
        rows = [r for r in self.journal.rows() if r.executor == executor.lower() and r.native_id == native_id
                and r.cluster == cluster
                and getattr(self.backend(self.journal.entry(r.submission)), "host", None) == host]
        if rows and rows[-1].outcome is None:
            return self.look([self.journal.entry(rows[-1].submission)])[0][0]
        job = Job()
        job.put_as_is("Id", [new_property("Id", native_id)])
        document = Document(job)
        row = Row(0, 0, native_id, None, native_id, executor=executor.lower())
        data = {"native_id": native_id.partition("@")[0], "reference": native_id}
        token = token_hex(8)
        entry = self.journal.add(token, executor.lower(), write_document(document), Path.cwd(), "Reject", None, [row],
                                 [Event(0, "native", "user", data), *unplaced(backend, cluster)], cluster,
                                 site=self.site, settings=pinned(self._stated(executor), backend))
        return self.look([entry])[0][0]

    def standing(self, entry: Entry) -> Submission:
        """A submission as the journal knows it; nobody is asked."""
        return load(entry, cache(lambda: self.backend(entry)))

    def standings(self, entries: Iterable[Entry]) -> list[Submission]:
        """The same of several, without those that another client takes out of the journal meanwhile."""
        submissions = []
        for entry in entries:
            try:
                submissions.append(self.standing(entry))
            except UsageError:
                if self.journal.end_of(entry.number) != GONE:
                    raise
        return submissions

    def look(self, entries: Iterable[Entry], seconds: float | None = None, *, steps: bool = True
             ) -> tuple[list[Submission], bool]:
        """How submissions stand, the resource managers asked once, and whether they have answered; what has waited for
        jobs that have ended is started. seconds: the longest to wait for an answer (20). steps: documents that go to
        one of several sites go on. A submission that another client takes out of the journal meanwhile is left out,
        unless its jobs were known to have ended."""
        if steps:
            self.take_steps()
        submissions = self.standings(entries)
        for submission in submissions:
            self.own(submission)
        submissions = [submission for submission in submissions if not self.whereabouts.is_gone(self, submission)]
        answered = self._follow(connected(self, submissions), Engine.answered, LOOK_S if seconds is None else seconds,
                                pace=_PACE_S)
        return submissions, answered and not self.whereabouts.silent

    def wait(self, names: Sequence[str], seconds: float | None = None,
             on_end: Sequence[Hook] = ()) -> tuple[list[Running], bool]:
        """The jobs of these names, and whether all of them have ended; the submissions that they belong to are run on.

        seconds: the longest to wait. on_end: what is done for each of them when it has ended, if that was not promised
        before; by any client. Of a document that goes from one site to the next the jobs there are waited for.
        """
        from sssjob.run.routing import due_s, followed, successor

        until = math.inf if seconds is None else time.monotonic() + seconds
        self.take_steps()
        while True:
            names = followed(self.journal, names)
            due, seconds_left = due_s(self.journal), until - time.monotonic()
            jobs, ended = self.finish(names, None if min(due, seconds_left) == math.inf
                                      else max(min(due, seconds_left), 0.0), on_end)
            self.take_steps()
            numbers = {job.row.submission for job in jobs}      # which may be taken out from now on
            if self.stopped or seconds_left <= due or (
                    ended and all(successor(self.journal, number) is None for number in numbers)):
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
        submissions, jobs = self.standing_of([row for name in names for row in self.journal.find(name)])
        self._promise(jobs, on_end)
        for submission in submissions:
            self._set_cap(submission)
            self.own(submission)
        self._follow(connected(self, submissions), lambda engine: all(
            (job.ended and (not on_end or all(h.waits for h in job.hooks.values()))) or self.whereabouts.is_left(job)
            for job in jobs), seconds, take_over=True)
        return jobs, all(job.ended for job in jobs)

    def _promise(self, jobs: Sequence[Running], hooks: Sequence[Hook]) -> None:
        for job in jobs if hooks else ():
            fresh = [hook for hook in hooks if hook.id not in job.hooks]
            if fresh and not job.plan.keep and job.of.entry is not None:
                job.of.entry.reopen([Event(job.number, "on-end", "user", hook.promise()) for hook in fresh])
                promise_all([job], fresh)

    def cancel(self, names: Sequence[str], seconds: float | None = None) -> tuple[list[Running], bool]:
        """Ask for the end of jobs, whoever looks after them. Returns them, and whether all have ended meanwhile.

        seconds: the longest to wait for that (20). Parts of a group that a client has left to the next one are
        submitted before.
        """
        self.take_steps()
        self._want("cancel", names, "user", {})
        return self.wait(names, LOOK_S if seconds is None else seconds)

    def _want(self, kind: str, names: Sequence[str], source: str, data: dict[str, Any]) -> list[Row]:
        """Write into the journal what is wanted of jobs, as far as they have not ended; all of these names."""
        rows = [row for name in names for row in self.journal.find(name)]
        for number in dict.fromkeys(row.submission for row in rows):
            self.journal.entry(number).flush(*(Event(row.job, kind, source, data) for row in rows
                                               if row.submission == number and row.outcome is None))
        return rows

    def ask(self, wish: str, names: Sequence[str], seconds: float | None = None, *, source: str = "user"
            ) -> list[Running]:
        """Ask for something to be done with jobs, whoever looks after them. wish: one of WISHES, signal with its name,
        as ``signal USR1``; source: who wants it.

        Returns them, with what became of it in their ``answers``, as far as that was known in time. Of jobs that had
        ended nothing was asked. seconds: the longest to wait for the answers (20).
        """
        kind, _, signal = wish.partition(" ")
        if source == "user":
            self.take_steps()           # as of cancel
        rows = self._want(kind, names, source, {"name": signal} if signal else {})
        submissions, jobs = self.standing_of(rows)
        had_ended = {row.key for row in rows if row.outcome is not None}
        for job in jobs:
            if job.row.key in had_ended:
                job.answers.pop(wish, None)     # of an earlier wish
        for submission in submissions:
            self.own(submission)
        self._follow(connected(self, submissions),
                     lambda engine: all(not job.wishes or self.whereabouts.is_left(job) for job in jobs),
                     LOOK_S if seconds is None else seconds, take_over=True)
        return jobs

    def again(self, number: int, jobs: Sequence[int], on_end: Sequence[Hook] = (), part_of: str | None = None
              ) -> list[Submission]:
        """Submit jobs of a submission once more that have ended: ``sssjob.run.again``."""
        from sssjob.run.again import again

        return again(self, number, jobs, on_end, part_of)

    def refresh(self, names: Sequence[str], since: float | None = None, seconds: float | None = None) -> Refreshed:
        """Ask accounting for what it had not told of jobs when they ended; of all jobs where there are no names.

        since: seconds since the epoch; ends that were learnt before it are left alone. seconds: as of ``look``.
        """
        from sssjob.run.refreshing import refresh

        rows = [row for name in names for row in self.journal.find(name)] if names else self.journal.ended_since(since)
        return refresh(self, rows, since, every=bool(names), seconds=seconds)

    def key(self, entry: Entry) -> str:
        """Names the executor of a submission: that of another one with the same key is the same."""
        host = following(entry, self._stated(entry.executor)).get("ssh_host")
        return shared_key(entry) if host is None else f"{shared_key(entry)} {host}"

    def kept(self, entries: Sequence[Entry]) -> list[Submission]:
        """Submissions of which we hold the leases, and after them those whose jobs their jobs depend on."""
        submissions = [self.standing(entry) for entry in entries]       # which nobody takes out meanwhile
        for submission in submissions:
            submission.owned = True
        return connected(self, submissions)

    # -- what they share
    def standing_of(self, rows: Sequence[Row]) -> tuple[list[Submission], list[Running]]:
        """Submissions of rows as the journal knows them, and the jobs of the rows, each once; nobody is asked."""
        entries = self.journal.entries(dict.fromkeys(row.submission for row in rows))
        loaded = {number: standing for standing in self.standings(entries)
                  if standing.entry is not None and (number := standing.entry.number)}
        places = dict.fromkeys((row.submission, row.job) for row in rows if row.submission in loaded)
        return list(loaded.values()), [loaded[number].jobs[job] for number, job in places]

    def backend(self, entry: Entry) -> psij.JobExecutor:
        """The executor of a submission, one for all submissions with the same settings."""
        name = entry.executor
        key = f"{shared_key(entry)} {sorted(following(entry, self._stated(name)).items())}"
        if key not in self._backends:
            self._backends[key] = lasting_executor(name, self._config(name, entry), entry.folder)
        return self._backends[key]

    def caps(self) -> Caps:
        """How many jobs of an executor, or of all, may be in flight."""
        return caps_of(load_settings() if self.settings is None else self.settings)

    def _stated(self, executor: str) -> dict[str, Any]:
        return {} if self.settings is None else self.settings.stated(executor)

    def _config(self, executor: str, entry: Entry | None = None) -> psij.JobExecutorConfig | None:
        """The configuration of an executor. entry: a submission that is followed."""
        if self.config is not None:
            return copy(self.config)
        stated = self._stated(executor)
        return config_of(executor, stated if entry is None else following(entry, stated))

    def _write_down(self, prepared: Prepared) -> Entry:
        return write_down(prepared, self.journal, max_queued=self.max_queued, why=self.why)

    def _set_cap(self, submission: Submission) -> None:
        """Have the cap that is stated now hold for a submission that an earlier client made."""
        stated = self.max_queued is not None and self.max_queued != submission.cap
        if stated and submission.entry is not None and not submission.ended:
            submission.entry.flush(cap_event(self.max_queued))
            submission.cap = self.max_queued

    def own(self, submission: Submission) -> bool:
        """Look after a submission, unless another client does; see that one does, on this machine."""
        entry = submission.entry
        assert entry is not None
        if submission.kept or self.whereabouts.is_gone(self, submission) \
                or not (submission.ended or self._can_run(submission, entry)):
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
        else:
            self.whereabouts.is_gone(self, submission)      # which is told
        return submission.owned

    def _can_run(self, submission: Submission, entry: Entry) -> bool:
        """Whether this client could look after it."""
        try:
            submission.executor()
        except UsageError as error:
            self.findings.add("SSS602", f"@{entry.number}", f"@{entry.number}: {error}", severity="warning")
            return False
        return self.whereabouts.is_here(self, entry)

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
