"""Submissions as they stand: each job of a document with what has become of it, from the history in the journal.

Nothing is started or asked here: reading the events again gives the document with its facts, how each job ended, and
where every fact is from.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import psij
from sssjob.document.graph import derived_state
from sssjob.document.model import Document, Job
from sssjob.findings import Findings
from sssjob.run import facts
from sssjob.run.elements import gather
from sssjob.run.evidence import Disagreement, Source, disagreements
from sssjob.run.journal import Entry, Event, Row, stamp, status_of, status_record
from sssjob.run.plan import Need, Plan, PlannedJob, outline
from sssjob.run.specs import user_name

__all__ = ["JobOutcome", "Outcome", "Running", "Submission", "Word", "ended_record", "exit_code", "intent", "load"]

Word = Literal["waiting", "running", "done", "failed", "canceled", "skipped", "kept"]
Origin = Literal["job", "sssjob"]
_STREAM: Final = "status"       # the source of what a status says without naming one
_HOLD: Final = "Hold"           # State of a job that waits for its user


@dataclass(slots=True)
class JobOutcome:
    """How one job ended. word: done, failed, canceled, skipped (never started) or kept (had succeeded before)."""

    job: Job
    label: str
    word: Word
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    origin: Origin = "job"

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
    origin: Origin
    findings: Findings
    stopped: str | None = None      # why everything was cancelled: timeout, interrupted ...

    @property
    def results(self) -> list[dict[str, Any]]:
        """One JSON object a job, and ``{"kind": "result", ...}`` last."""
        last = {"kind": "result", "origin": self.origin, "exit_code": self.exit_code}
        return [*(job.record() for job in self.jobs), last]


@dataclass(slots=True, eq=False)
class Running:
    """A planned job and what became of it so far.

    number: its place in the plan. tags, references: of its parts, in the resource manager and for attaching; intents:
    where and when each was about to be submitted. parts: those that this process follows. outside: what its
    dependencies mean that are not of the document, by their places.
    """

    plan: PlannedJob
    number: int
    of: Submission
    word: Word = "waiting"
    seen: list[facts.Seen] = field(default_factory=list)
    parts: list[psij.Job | None] = field(default_factory=list)
    tags: list[str | None] = field(default_factory=list)
    references: list[str | None] = field(default_factory=list)
    intents: list[dict[str, Any]] = field(default_factory=list)
    evidence: dict[str, Source] = field(default_factory=dict)
    cancel: bool = False            # somebody wants its end
    released: bool = False          # somebody has ended its Hold
    asked: bool = False             # by tag, at least once
    waits: bool = False             # the resource manager knows its dependencies, and starts it when they allow it
    together: bool = False          # its parts are one native job
    hold: bool = False              # the resource manager holds it until it is released
    apart: bool = False             # it does not, after it has refused them or come to an end of its own
    doomed: Need | None = None      # its end was asked for, because this can no longer hold
    outside: dict[int, tuple[str, ...]] = field(default_factory=dict)
    outcome: JobOutcome | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it is done, now or in an earlier run."""
        return self.word in ("done", "kept")

    @property
    def ended(self) -> bool:
        """Whether its outcome is known."""
        return self.outcome is not None

    @property
    def known_code(self) -> int | None:
        """What OnExit compares: the code or 128 + signal; None where neither is known."""
        if self.outcome is None or (self.outcome.exit_code is None and self.outcome.signal is None):
            return None
        return self.outcome.code

    @property
    def row(self) -> Row:
        """Its line in a list."""
        job, outcome = self.plan.job, self.outcome
        native = [s.native_id for s in self.seen if s.native_id is not None]
        if self.together:
            native = list(dict.fromkeys(one.partition("+")[0] for one in native))
        member = self.plan.member
        entry = self.of.entry
        number, executor = (0, "") if entry is None else (entry.number, entry.executor)
        return Row(number, self.number, _text(job.value("Id")), _text(job.value("Name")), self.plan.label,
                   "+".join(native) or None, executor, str(job.value("State") or "Idle"),
                   None if outcome is None else outcome.word,
                   None if outcome is None or outcome.word == "skipped" else outcome.exit_code,
                   None if member is None else member.id)

    @property
    def started(self) -> bool:
        """Whether any part of it has begun."""
        return any(s.started is not None for s in self.seen)

    def prepare(self, parts: int) -> None:
        """Have room for what is learnt of that many parts."""
        while len(self.seen) < parts:
            self.seen.append(facts.Seen())
            self.parts.append(None)
            self.tags.append(None)
            self.references.append(None)
            self.intents.append({})
        own = self.plan.job.task_groups
        for n, seen in enumerate(self.seen):
            seen.group = own[n] if len(own) == len(self.seen) > 1 else None

    def release(self) -> None:
        """Somebody ends its hold."""
        self.released = True
        if self.plan.job.value("State") == _HOLD and self.word == "waiting":
            self.plan.job.set_as_is("State", "Idle")

    def left_out(self, message: str) -> None:
        """It was not started and never will be; that a resource manager knew of it for a while is no end."""
        self.plan.job.set_as_is("EndTime", None)
        facts.record_unstarted(self.plan.job, message)

    def forget(self) -> None:
        """It was about to be submitted, and certainly was not."""
        self.word, self.waits, self.doomed = "waiting", False, None
        for of_part in (self.seen, self.parts, self.tags, self.references, self.intents):
            of_part.clear()

    def take(self, part: int, status: psij.JobStatus, when: float) -> bool:
        """Take over a status of a part; False if it is none that follows the last one."""
        self.prepare(part + 1)
        seen = self.seen[part]
        before = seen.status
        if before is not None and not status.state.is_greater_than(before.state):
            if status.state is not before.state or status.final:
                return False
            if not facts.says_more(status, before):
                seen.take(status)       # it is the one that is kept up to date from now on
                return False
        seen.take(status)
        self.record()
        metadata = status.metadata or {}
        sources = metadata.get("sources", {})
        self.evidence["state"] = Source(str(sources.get("state", _STREAM)), when)
        for key in [*metadata, *(["exit_code"] if status.exit_code is not None else [])]:
            self.evidence[key] = Source(str(sources.get(key, _STREAM)), when)
        return True

    def refresh(self) -> None:
        """Write anew what is known of a job that has not ended: while its state stays the same, psij only changes the
        metadata of its status."""
        if self.seen and not self.ended:
            self.record()

    def record(self) -> None:
        """Write what is known into the job."""
        facts.record(self.plan.job, self.seen, self.plan.folded, self._origin)

    @property
    def _origin(self) -> facts.Origin | None:
        """Who has submitted it and where; None of a job that was submitted elsewhere and taken over by its id."""
        entry = self.of.entry
        if entry is not None and not any(self.intents):
            return None
        return facts.Origin(user_name(), socket.gethostname() if entry is None else entry.host)

    def sources(self) -> list[tuple[str, str, Source]]:
        """(fact, value, source) of every fact in the document."""
        known = {key: value for seen in self.seen for key, value in seen.known.items()}
        return [(name, value, Source("sssjob", self.of.time) if name in facts.IDENTITY else self._source(keys))
                for name, value, keys in facts.stated(self.plan.job, known)]

    def _source(self, keys: Sequence[str]) -> Source:
        found = next((self.evidence[key] for key in (*keys, "state") if key in self.evidence), None)
        return found or Source("sssjob", self.of.time)

    @property
    def disagreements(self) -> list[Disagreement]:
        """Where sources of its facts disagree."""
        return [one for seen in self.seen if seen.status is not None for one in disagreements(seen.status)]


@dataclass(slots=True, eq=False)
class Submission:
    """A document, its jobs, and its entry in the journal (None: it is not written down).

    owned: this process holds the lease, starts the jobs and follows them. last: the number of the last event taken in.
    outside: jobs of other submissions that jobs of this one depend on, by their keys.
    """

    document: Document
    executor: Callable[[], psij.JobExecutor]
    entry: Entry | None = None
    jobs: list[Running] = field(default_factory=list)
    owned: bool = False
    last: int = 0
    time: float = 0.0
    outside: dict[str, Running] = field(default_factory=dict)

    def take_plan(self, plan: Plan) -> None:
        """Set out with the jobs of a plan."""
        self.jobs = [Running(p, n, self, outside={i: need.outside for i, need in enumerate(p.needs) if need.outside})
                     for n, p in enumerate(plan.jobs)]

    def begin(self) -> None:
        """Take away what an earlier run of the document found out."""
        for job in self.jobs:
            if not job.plan.keep:
                facts.clear(job.plan.job)
                if job.plan.held:
                    job.plan.job.set_as_is("State", _HOLD)

    @property
    def ended(self) -> bool:
        """Whether all of its jobs have ended."""
        return all(job.ended for job in self.jobs)

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
        everything about its jobs except the cancel and release requests of other clients, so it reads only those."""
        if self.entry is None:
            return []
        concerned = []
        for event in self.entry.events(self.last, wishes=self.owned):
            self.last = event.number
            job = self.jobs[event.job]
            _TAKEN.get(event.kind, _ignore)(job, event)
            concerned.append(job)
        return concerned

    # -- writing it
    def note(self, job: Running, kind: str, data: dict[str, Any], part: int = 0, source: str = "sssjob",
             when: float = 0.0) -> None:
        """Remember an event for the next flush."""
        if self.entry is not None:
            self.entry.note(Event(job.number, kind, source, data, part, when), job.row if self.owned else None)

    def note_status(self, job: Running, part: int, status: psij.JobStatus) -> None:
        """The same for a status."""
        sources = sorted(set((status.metadata or {}).get("sources", {}).values()))
        self.note(job, "status", status_record(status), part, "+".join(map(str, sources)) or _STREAM)
        for one in disagreements(status):
            self.note(job, "note", {"text": f"{one.rule}: {one.text}", **one.record()}, part)

    def note_outcome(self, job: Running) -> None:
        """The same for an end."""
        assert job.outcome is not None
        self.note(job, "ended", ended_record(job.outcome))


def ended_record(outcome: JobOutcome) -> dict[str, Any]:
    """The data of an event ``ended``."""
    return {"word": outcome.word, "exit_code": outcome.exit_code, "signal": outcome.signal,
            "message": outcome.message, "origin": outcome.origin}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _intent(job: Running, event: Event) -> None:
    job.prepare(int(event.data.get("parts", event.part + 1)))
    job.word = "running"
    job.tags[event.part], job.intents[event.part] = event.data["tag"], event.data
    job.references[event.part] = None
    job.waits, job.hold = bool(event.data.get("after")), bool(event.data.get("hold"))
    job.together = bool(event.data.get("together"))


def _native(job: Running, event: Event) -> None:
    job.prepare(event.part + 1)
    job.word = "running"
    job.references[event.part] = event.data["reference"]
    job.seen[event.part].native_id = event.data["native_id"]
    job.record()
    job.evidence["native_id"] = Source(event.source, event.time)


def _status(job: Running, event: Event) -> None:
    job.take(event.part, status_of(event.data), event.time)


def _ended(job: Running, event: Event) -> None:
    known = event.data
    if known["word"] == "skipped":
        job.left_out(known["message"])
    elif known["word"] == "canceled" and not job.started:
        facts.record_unstarted(job.plan.job, known["message"])
    job.outcome = JobOutcome(job.plan.job, job.plan.label, known["word"], known["exit_code"], known["signal"],
                             known["message"], known["origin"])
    job.word = job.outcome.word


def _unsent(job: Running, event: Event) -> None:
    job.forget()


def _after(job: Running, event: Event) -> None:
    job.outside[int(event.data["need"])] = tuple(event.data["keys"])


def _cancel(job: Running, event: Event) -> None:
    job.cancel = True


def _release(job: Running, event: Event) -> None:
    first = not job.released
    job.release()
    if first and job.of.owned:
        job.of.note(job, "note", {"text": "its hold is ended"})


def _held(job: Running, event: Event) -> None:
    job.plan.held = True
    job.plan.job.set_as_is("State", _HOLD)


def _ignore(job: Running, event: Event) -> None:
    """Events that are for readers of the log."""


_TAKEN: Final[dict[str, Callable[[Running, Event], None]]] = {
    "after": _after, "intent": _intent, "unsent": _unsent, "native": _native, "status": _status, "ended": _ended,
    "cancel": _cancel, "release": _release, "held": _held}


def load(entry: Entry, executor: Callable[[], psij.JobExecutor]) -> Submission:
    """A submission out of the journal, as it stands there."""
    from sssjob.xml.reader import read_document

    document = read_document(entry.document, path=entry.name or f"@{entry.number}")
    found = Submission(document, executor, entry, time=entry.time)
    found.take_plan(outline(document))
    for event in entry.events():
        if event.kind == "ended" and event.data["word"] == "kept":
            found.jobs[event.job].plan.keep = True
    found.begin()
    found.catch_up()
    return found


def intent(tag: str, parts: int, after: Mapping[str, object] | None = None, **said: bool) -> dict[str, Any]:
    """The data of an event ``intent``. after: with what the resource manager is told to wait. said: ``hold`` (it holds
    it), ``together`` (all parts are one native job)."""
    return {"tag": tag, "parts": parts, **({"after": dict(after)} if after else {}),
            **{name: True for name, true in said.items() if true}, **stamp()}


def exit_code(jobs: Sequence[Running]) -> tuple[int, Origin]:
    """The exit code for these jobs: of the first that failed and that no other one answered (decisions 51)."""
    for job in jobs:
        if job.word in ("failed", "canceled") and not _answered(job):
            assert job.outcome is not None
            return job.outcome.code, job.outcome.origin
    return 0, "job"


def _answered(job: Running) -> bool:
    return any(other.word == "done" and any(job.number in need.on and need.condition != "OnSuccess"
                                            for need in other.plan.needs) for other in job.of.jobs)
