"""Submissions as they stand: each job of a document with what has become of it, from the history in the journal.

Nothing is started or asked here: reading the events again gives the document with its facts, how each job ended, and
where every fact is from.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psij
from psij.executors.batch._array_jobs import JobArray
from psij.executors.batch._identity import Identity
from sssjob.document.graph import derived_state
from sssjob.document.model import Document, Job
from sssjob.lrm.waits import HELD
from sssjob.run import facts, turns
from sssjob.run.attempts import Attempt, together
from sssjob.run.changing import take_change
from sssjob.run.elements import gather
from sssjob.run.evidence import LEFT_OUT, Disagreement, Source, disagreements, kind_of, not_its_own
from sssjob.run.history import HOLDS, Event, status_record
from sssjob.run.journal import Entry
from sssjob.run.listing import details_of
from sssjob.run.on_end import Hook
from sssjob.run.outcomes import JobOutcome, Word
from sssjob.run.plan import Need, Plan, PlannedJob
from sssjob.run.replaying import HOLD, replay
from sssjob.run.rows import Row, first_values
from sssjob.run.seen import Seen, news_of, waits_unheld
from sssjob.run.staging import Leaving
from sssjob.users import user_name

__all__ = ["Running", "Submission"]

_STREAM: Final = "status"       # the source of what a status says without naming one
_HOLD_SHOWS_S: Final = 10.0     # until a hold shows in the manager's list, which may be a question of before


@dataclass(slots=True, eq=False)
class Running:
    """A planned job and what became of it so far.

    number: its place in the plan. tags, references: of its parts, in the resource manager and for attaching; intents:
    where and when each was about to be submitted. parts: those that this process follows. outside: what its
    dependencies mean that are not of the document, by their places. attempts: those that are over, after which it was
    tried again; all else is of the last one. why: a failure that ends its group, because of which its end is wanted.
    """

    plan: PlannedJob
    number: int
    of: Submission
    word: Word = "waiting"
    seen: list[Seen] = field(default_factory=list)
    parts: list[psij.Job | None] = field(default_factory=list)
    tags: list[str | None] = field(default_factory=list)
    references: list[str | None] = field(default_factory=list)
    intents: list[dict[str, Any]] = field(default_factory=list)
    evidence: dict[str, Source] = field(default_factory=dict)
    cancel: bool = False            # somebody wants its end
    wants_hold: bool | None = None  # whether the last of the wishes to hold and to release it was to hold it
    wishes: list[str] = field(default_factory=list)     # that have no answer, as of ``wishes``
    answers: dict[str, str] = field(default_factory=dict)   # to the others: why they were refused, or ""
    changes: list[str] = field(default_factory=list)        # that were accepted, as of ``changing``
    undertaken: set[str] = field(default_factory=set)       # wishes that are about to be carried out, or were
    held_at: float | None = None    # by the monotonic clock, when this process had its manager hold it
    asked: bool = False             # by tag, at least once
    waits: bool = False             # the resource manager knows its dependencies, and starts it when they allow it
    together: bool = False          # its parts are one native job
    array: JobArray | None = None   # the native array of which this process submits it, with this element only
    alone: bool = False             # it is not to be submitted as an element of one
    hold: bool = False              # the resource manager holds it until it is released
    apart: bool = False             # it does not, after it has refused them or come to an end of its own
    doomed: Need | None = None      # its end was asked for, because this can no longer hold
    held_for: str | None = None     # why it is held back although its turn has come: there is no room for it
    outside: dict[int, tuple[str, ...]] = field(default_factory=dict)
    outcome: JobOutcome | None = None
    attempts: list[Attempt] = field(default_factory=list)
    why: str | None = None
    staging: dict[int, dict[str, Any]] = field(default_factory=dict)    # by part: what is staged out and removed
    leaving: dict[int, Leaving] = field(default_factory=dict)           # by part: that is being done
    begun: bool = False             # some client was about to submit it
    tries: int = 0                  # submissions of this attempt that failed for a reason that may pass, by all clients
    hooks: dict[str, Hook] = field(default_factory=dict)                # what is done when it has ended

    @property
    def succeeded(self) -> bool:
        """Whether it is done, now or in an earlier run."""
        return self.word in ("done", "kept")

    @property
    def ended(self) -> bool:
        """Whether its outcome is known."""
        return self.outcome is not None

    @property
    def on_hold(self) -> bool:
        """Whether it is not to be submitted before its user releases it."""
        return self.plan.held if self.wants_hold is None else self.wants_hold

    @property
    def known_code(self) -> int | None:
        """What OnExit compares: the code or 128 + signal; None where neither is known."""
        outcome = self.outcome
        return None if outcome is None or (outcome.exit_code is None and outcome.signal is None) else outcome.code

    @property
    def row(self) -> Row:
        """Its line in a list."""
        job, outcome = self.plan.job, self.outcome
        native = [s.native_id for s in self.seen if s.native_id is not None]
        if self.together:
            native = list(dict.fromkeys(native_id.partition("+")[0] for native_id in native))
        member, entry = self.plan.member, self.of.entry
        number, executor, cluster, site = (0, "", None, None) if entry is None else (
            entry.number, entry.executor, entry.cluster, entry.site)
        stated = {name: None if value is None else str(value)
                  for name, value in first_values(job, ("Id", "Name", "State", "StatusMessage")).items()}
        return Row(number, self.number, stated["Id"], stated["Name"], self.plan.label, "+".join(native) or None,
                   executor, stated["State"] or "Idle", None if outcome is None else outcome.word,
                   None if outcome is None or outcome.word == "skipped" else outcome.exit_code,
                   None if member is None else member.id, stated["StatusMessage"] or turns.why(self), cluster, site)

    @property
    def place(self) -> str:
        """Where a finding about it stands: its key in the journal, else its place in the document."""
        return self.plan.path if self.of.entry is None else self.row.key

    @property
    def started(self) -> bool:
        """Whether any part of it has begun."""
        return any(s.started is not None for s in self.seen)

    def prepare(self, parts: int) -> None:
        """Have room for what is learnt of that many parts."""
        if len(self.seen) >= parts:
            return
        while len(self.seen) < parts:
            self.seen.append(Seen())
            self.parts.append(None)
            self.tags.append(None)
            self.references.append(None)
            self.intents.append({})
        own = list(self.plan.job.task_groups)
        for n, seen in enumerate(self.seen):
            seen.group = own[n] if len(own) == len(self.seen) > 1 else None

    def wish(self, wish: str) -> None:
        """Somebody wants something of it."""
        self.wishes.append(wish)
        self.answers.pop(wish, None)
        if wish in HOLDS:
            if self.word == "waiting" and not self.ended:
                self._show_hold(wish == "hold")
            self.wants_hold = wish == "hold"

    def answer(self, wish: str, refusal: str = "") -> None:
        """What became of a wish. refusal: why it was not carried out."""
        if wish in self.wishes:
            self.wishes.remove(wish)
        self.answers[wish] = refusal
        self.undertaken.discard(wish)
        if wish == "hold" and refusal:
            self.wants_hold = False
            return
        if wish.startswith("change ") and not refusal:
            self._change(wish.removeprefix("change "))
        if wish not in HOLDS or refusal:
            return
        if not set(HOLDS) & set(self.wishes):
            self.wants_hold = wish == "hold"        # a signal releases a job without an event of its own
        if not self.ended and not self.started:
            self.hold = wish == "hold" and self.word == "running"
            self._show_hold(wish == "hold")

    def _change(self, text: str) -> None:
        """It was changed. By a name that has changed nobody tells it from others."""
        self.changes.append(text)
        planned = self.of.planned
        stated_again = [] if planned is None or planned.jobs[self.number] is self.plan else [planned.jobs[self.number]]
        for job in (self.plan, *stated_again):
            tags = take_change(job, text)
        if "Name" in tags:
            for noted in self.intents:
                noted.pop("name", None)

    def refusal(self, wish: str) -> str | None:
        """Why a wish was refused; empty where it was carried out, None where nobody has answered."""
        return self.answers.get(wish, "it has ended" if self.ended else None)

    def _show_hold(self, held: bool) -> None:
        """Show a hold, or none, in the State of a job that waits. It then waits for its user, and not for room."""
        if held:
            self.go()
        if held or self.plan.job.value("State") == HOLD:
            self.plan.job.set_as_is("State", HOLD if held else "Idle")
        stated = str(self.plan.job.value("StatusMessage") or "")
        if self.word == "waiting" or (not held and stated.partition(":")[0] == HELD):
            self.plan.job.set_as_is("StatusMessage", None)      # that of the hold, or of what comes before it

    def identity(self, part: int) -> Identity:
        """By what a part is told from others of its native id: its tag, and when it was submitted. Of a job that was
        submitted elsewhere only what was learnt of it since."""
        noted = self.intents[part]
        tags = {noted["tag"]} if noted else set()
        if noted and "array" in noted:
            tags.add(noted["array"]["tag"])
        if noted and self.together:
            tags |= {intent["tag"] for intent in self.intents if intent}
        metadata = self.seen[part].known
        source = str(metadata.get("sources", {}).get("start_time"))
        recorded = kind_of(source) == "exit-file" and metadata.get("starts", 1) == 1
        return Identity(frozenset(tags) or None, noted.get("user", self.of.origin.user) if noted else None,
                        self.seen[part].renamed or noted.get("name"),
                        since=noted.get("since"), until=noted.get("until"),
                        submit_time=metadata.get("submit_time") if "native_state" in metadata else None,    # else ours
                        began=metadata.get("start_time") if recorded else None,
                        after=self.earlier().get(self.seen[part].native_id or ""))

    def earlier(self) -> dict[str, float]:
        """When its earlier attempts were submitted by the manager's clock, by native id."""
        return {str(seen.native_id): float(seen.known["submit_time"]) for attempt in self.attempts
                for seen in attempt.seen if "native_state" in seen.known and "submit_time" in seen.known}

    def followed(self, part: int) -> psij.Job | None:
        """The job of the executor for a part, or one by which the executor finds its files where another client has
        followed it."""
        psij_job, tag, native_id = self.parts[part], self.tags[part], self.seen[part].native_id
        if psij_job is None and tag is not None and native_id is not None:
            psij_job = psij.Job()
            psij_job._id, psij_job._native_id = tag, native_id
        return psij_job

    def hold_back(self, reason: str) -> None:
        """There is no room for it. reason: in words."""
        self.held_for = reason
        self.plan.job.set_as_is("StatusMessage", f"held back: {reason}")

    def go(self) -> None:
        """It is held back no more."""
        if self.held_for is not None:
            self.held_for = None
            self.plan.job.set_as_is("StatusMessage", None)

    def left_out(self, message: str) -> None:
        """It was not started and never will be; that a resource manager knew of it for a while is no end."""
        self.plan.job.set_as_is("EndTime", None)
        facts.record_unstarted(self.plan.job, message)

    def forget(self) -> None:
        """It was about to be submitted, and certainly was not."""
        self.word, self.waits, self.doomed = "waiting", False, None
        for of_part in (self.seen, self.parts, self.tags, self.references, self.intents):
            of_part.clear()
        self.staging.clear()
        self.leaving.clear()
        self.array = None

    def sought(self, part: int) -> str | None:
        """The tag by which a part is looked for in the resource manager: its own, or that of its array."""
        array = self.intents[part].get("array")
        return self.tags[part] if array is None else str(array["tag"])

    def want_end(self) -> None:
        """Somebody wants its end; that of files that are being staged out is the end of that."""
        self.cancel = True
        for leaving in self.leaving.values():
            leaving.canceled = True

    def begin_anew(self, data: Mapping[str, Any]) -> None:
        """Its attempt is over, and another one follows. data: of the event ``retry``."""
        self.attempts.append(Attempt(str(data["clause"]), tuple(self.seen), tuple(self.tags), tuple(self.references),
                                     tuple(self.intents)))
        self.forget()
        self.asked = self.hold = self.wants_hold = False        # what has begun was released
        self.tries = 0
        facts.clear(self.plan.job)
        self.plan.job.set_as_is("StatusMessage", f"retry: {data['text']}")

    def restore(self, message: str) -> None:
        """No other attempt follows after all: its end is that of the last one, and the message says why."""
        last = self.attempts.pop()
        self.prepare(len(last.seen))
        self.seen, self.tags = list(last.seen), list(last.tags)
        self.references, self.intents = list(last.references), list(last.intents)
        self.record()
        facts.reword(self.plan.job, message)

    def end_with_group(self, data: Mapping[str, Any]) -> None:
        """Its end is wanted, because another job of its group has failed. data: of the event ``group``."""
        self.cancel, self.why = True, str(data["text"])

    def take(self, part: int, status: psij.JobStatus, when: float) -> bool:
        """Take over a status of a part; False if it is none that follows the last one."""
        self.prepare(part + 1)
        seen = self.seen[part]
        before, status = seen.status, seen.as_missing(status)
        if not seen.follows(status):
            return False
        seen.keep_put_back(status)
        anew = seen.begins_anew(status)
        seen.take(status)
        if before is not None and not anew and news_of(status) == news_of(before) and not self._shows_no_hold(status):
            self.of.detail(self)        # no event, but the list may know now where it runs
            return False                # it is the one that is kept up to date from now on
        self.record()
        self._learn(status, when)
        return True

    def _shows_no_hold(self, status: psij.JobStatus) -> bool:
        """Whether a hold that the resource manager had accepted is over by its own word, and the State has to say so:
        it did nothing, or somebody else has released the job since."""
        return (self.hold and self.plan.job.value("State") == HOLD and len(self.seen) == 1 and waits_unheld(status)
                and (self.held_at is None or time.monotonic() - self.held_at > _HOLD_SHOWS_S))

    def take_late(self, part: int, status: psij.JobStatus, when: float) -> None:
        """Take over what accounting has told of a part after the end of the job; that may be another end than had been
        thought, where nobody could tell it. What was said beside the words of its parts stays."""
        message, words = self.plan.job.value("StatusMessage"), facts.message_of(together(self.attempts, self.seen))
        self.seen[part].take(status)
        self.record()
        self._learn(status, when)
        if self.outcome is not None and all(seen.final for seen in self.seen):
            before, self.outcome = self.outcome.word, self.verdict()
            self.word = self.outcome.word
            if self.word == before and message and message != words:
                self.outcome.message = facts.reword(self.plan.job, str(message), words or "")
            if self.word == "canceled" and not self.started:
                facts.record_unstarted(self.plan.job, self.outcome.message)

    def verdict(self) -> JobOutcome:
        """How it has ended, by how its parts have."""
        states = {seen.status.state for seen in self.seen if seen.status is not None}
        word: Word = "failed" if psij.JobState.FAILED in states else "done"
        if psij.JobState.CANCELED in states and word == "done":
            word = "canceled"
        code, signal = facts.outcome_of(self.seen)
        return JobOutcome(self.plan.job, self.plan.label, word, code, signal,
                          str(self.plan.job.value("StatusMessage") or ""), "job" if self.started else "sssjob")

    def _learn(self, status: psij.JobStatus, when: float) -> None:
        """Note where the facts of a status are from."""
        metadata = status.metadata or {}
        sources = metadata.get("sources", {})
        self.evidence["state"] = Source(str(sources.get("state", _STREAM)), when)
        for key in [*metadata, *(["exit_code"] if status.exit_code is not None else [])]:
            self.evidence[key] = Source(str(sources.get(key, _STREAM)), when)

    def refresh(self) -> None:
        """Write anew what is known of a job that has not ended: while its state stays the same, psij only changes the
        metadata of its status."""
        if self.seen and not self.ended:
            self.record()

    def record(self) -> None:
        """Write what is known into the job."""
        facts.record(self.plan.job, together(self.attempts, self.seen), self.plan.folded, self._origin)

    @property
    def _origin(self) -> facts.Origin | None:
        """Who has submitted it and where; None of a job that was submitted elsewhere and taken over by its id."""
        taken_over = self.of.entry is not None and not any(self.intents) and not self.attempts
        return None if taken_over else self.of.origin

    def sources(self) -> list[tuple[str, str, Source]]:
        """(fact, value, source) of every fact in the document."""
        metadata = {key: value for seen in together(self.attempts, self.seen) for key, value in seen.known.items()}
        return [(name, value, Source("sssjob", self.of.time) if name in (*facts.IDENTITY, *facts.PLACED)
                 else self._source(keys)) for name, value, keys in facts.stated(self.plan.job, metadata)]

    def _source(self, keys: Sequence[str]) -> Source:
        source = next((self.evidence[key] for key in (*keys, "state") if key in self.evidence), None)
        return source or Source("sssjob", self.of.time)

    @property
    def not_its_own(self) -> list[str]:
        """Why answers about its native ids did not count."""
        return [why for seen in self.seen if seen.status is not None for why in not_its_own(seen.status)]

    @property
    def disagreements(self) -> list[Disagreement]:
        """Where sources of its facts disagree."""
        before = [seen for attempt in self.attempts for seen in attempt.seen]
        return [disagreement for seen in (*before, *self.seen) if seen.status is not None
                for disagreement in disagreements(seen.status)]


@dataclass(slots=True, eq=False)
class Submission:
    """A document, its jobs, and its entry in the journal (None: it is not written down).

    owned: this process holds the lease, starts the jobs and follows them. silent: since when the resource manager has
    not answered who follows them (since, host, pid); None while it does. last: the number of the last event taken in.
    outside: jobs of other submissions that jobs of this one depend on, by their keys.
    """

    document: Document
    executor: Callable[[], psij.JobExecutor]
    entry: Entry | None = None
    jobs: list[Running] = field(default_factory=list)
    owned: bool = False
    cap: int | None = None          # the most of its jobs that may be in flight
    silent: dict[str, Any] | None = None
    last: int = 0
    time: float = 0.0
    outside: dict[str, Running] = field(default_factory=dict)
    planned: Plan | None = None     # by which its jobs can be planned once more
    _origin: facts.Origin | None = None

    def take_plan(self, plan: Plan) -> None:
        """Set out with the jobs of a plan."""
        self.planned = plan if plan.planning is not None else None
        self.jobs = [Running(p, n, self, outside={i: need.outside for i, need in enumerate(p.needs) if need.outside})
                     for n, p in enumerate(plan.jobs)]

    def begin(self, site: str | None = None) -> None:
        """Take away what an earlier run of the document found out, and say where it is now. site: without an entry."""
        for job in self.jobs:
            if not job.plan.keep:
                facts.clear(job.plan.job)
                if self.entry is None or not self.entry.is_routed:      # whose document says so, and why
                    facts.tell_place(job.plan.job, site if self.entry is None else self.entry.site)
                if job.plan.shows_hold:
                    job.plan.job.set_as_is("State", HOLD)

    @property
    def origin(self) -> facts.Origin:
        """Who has submitted it, and where."""
        if self._origin is None:
            self._origin = facts.Origin(user_name(), socket.gethostname() if self.entry is None else self.entry.host)
        return self._origin

    @property
    def cluster(self) -> str | None:
        """Where its jobs are; None where that is not known."""
        return None if self.entry is None else self.entry.cluster

    @property
    def ended(self) -> bool:
        """Whether all of its jobs have ended."""
        return all(job.ended for job in self.jobs)

    @property
    def kept(self) -> bool:
        """Whether all of its jobs have ended, and all is done that was promised for that."""
        return all(job.ended and all(hook.over for hook in job.hooks.values()) for job in self.jobs)

    def result(self) -> Document:
        """The document as it stands, with every array as one job."""
        arrays: dict[int, tuple[Job, list[Job]]] = {}
        for job in self.jobs:
            member = job.plan.member
            if member is not None and not job.plan.keep:
                arrays.setdefault(id(member.job), (member.job, []))[1].append(job.plan.job)
        for whole, elements in arrays.values():
            gather(whole, elements)
        for group in self.document.groups():
            group.set_as_is("State", derived_state(group))
        return self.document

    # -- reading the history
    def catch_up(self) -> list[Running]:
        """Read what was written to the journal since the last time; gives the jobs concerned. The owning process knows
        everything about its jobs except what other clients want of them, so it reads only that."""
        return [] if self.entry is None else self.live_through(self.entry.events(self.last, wishes=self.owned))

    def live_through(self, events: Iterable[Event]) -> list[Running]:
        """Change the jobs by events that follow the last one; gives the jobs concerned."""
        concerned = []
        for event in events:
            self.last = event.number
            concerned.append(self.jobs[event.job])
            replay(concerned[-1], event)
        return concerned

    # -- writing it
    def note(self, job: Running, kind: str, data: dict[str, Any], part: int = 0, source: str = "sssjob",
             when: float = 0.0) -> None:
        """Remember an event for the next flush."""
        if self.entry is not None:
            self.entry.note(Event(job.number, kind, source, data, part, when), job.row if self.owned else None)
            self.detail(job)

    def detail(self, job: Running) -> None:
        """Have the list show at the next flush what is known of a job now."""
        if self.entry is not None and self.owned:
            self.entry.detail(job.number, lambda: details_of(job))

    def note_status(self, job: Running, part: int, status: psij.JobStatus) -> None:
        """The same for a status."""
        sources = sorted(set((status.metadata or {}).get("sources", {}).values()))
        self.note(job, "status", status_record(status), part, "+".join(map(str, sources)) or _STREAM)
        for disagreement in disagreements(status):
            self.note(job, "note", {"text": f"{disagreement.rule}: {disagreement.text}", **disagreement.record()}, part)
        for why in not_its_own(status):
            self.note(job, "note", {"text": f"{LEFT_OUT}: {why}"}, part)
