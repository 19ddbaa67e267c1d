"""Format ``flux-eventlog``: what happened to jobs of Flux, event by event.

    {"timestamp": 1795251065.64, "name": "submit", "context": {"userid": 1001, "urgency": 16, "flags": 0, "version": 1}}
    1795251065.641801 submit userid=1001 urgency=16 flags=0 version=1
    {"id": 57545850880, "events": [{"timestamp": 1795251065.64, "name": "submit", ...}], "jobspec": {...}, "R": {...}}

The first form is the log of one job as the KVS holds it and ``flux job eventlog --format=json`` prints it, the second
what ``flux job eventlog`` prints otherwise, the third a message of the job manager's journal, which tells of all jobs.
A line is a record. An event names its job only in the journal, or where somebody has added a member ``id``; else the
option ``id`` does, for a log of one job.

StartTime is when resources were given (alloc), EndTime when the job came to its cleanup (finish, or an exception of
severity 0 before it), as ``flux-jobs`` has them. What was given stands in the journal's R, else in the scheduler's
summary; the name, the queue and what was asked for only in the journal's jobspec. Events that are not known are read
over: plug-ins add theirs.

Source: RFC 18 (event logs), RFC 21 (states and events), RFC 20 (R), RFC 25 (jobspec) of Flux.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, NamedTuple

from sssjob.document.lexical import LexicalError
from sssjob.document.model import Job
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.lrm.flux import HOLD, RESULTS, STATES
from sssjob.lrm.flux.errors import ExecLimitError, JobspecError
from sssjob.lrm.flux.ids import GREATEST, read_id, write_id
from sssjob.lrm.flux.resources import read_resources
from sssjob.lrm.usage import end_of
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import Fit, Sample, by_beginning, by_keys
from sssjob.translators.records._flux import held, message, number_of, text_of, whole
from sssjob.translators.records._json import escaped
from sssjob.translators.records._lines import Line
from sssjob.translators.records._open import OpenJob, Waiting
from sssjob.translators.records._values import state_word
from sssjob.translators.records.base import Reading, Record, Rejected, leaf, moment, translator, words

__all__ = ["TRANSLATOR"]

_DEPTH: Final = 16              # of resources in a jobspec
_COUNT: Final = 10**9           # of one of them
_WORD: Final = 0xffff           # the greatest wait status
_TEXT: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?|\d{4}-\d\d-\d\dT\S{1,40}) ([\w.-]{1,200})(?: (.*))?",
                          re.ASCII | re.DOTALL)
_KEY: Final = re.compile(r"([^\s=]{1,200})=")
_MEMBER: Final = "attributes.system."
#: Event -> state of the job that it begins, where it has no end yet.
_PHASES: Final = {"submit": "NEW", "validate": "DEPEND", "depend": "PRIORITY", "priority": "SCHED", "alloc": "RUN"}


class _Event(NamedTuple):
    """One event."""

    name: str
    at: Decimal
    context: dict[str, Any]


@dataclass(slots=True)
class _Pending(OpenJob):
    """What has been told of a job. at: time of an event; ends: the event that brought it to its cleanup; facts: members
    of submit, urgency, jobspec ..."""

    number: int = 0
    state: str = "NEW"
    at: dict[str, Decimal] = field(default_factory=dict)
    ends: str = ""
    exception: tuple[str, str] = ("", "")
    status: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    nodes: str = ""


class _Reading(Reading):
    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self.open = Waiting[int, _Pending]()
        named = words(context.options.get("id"))
        self.alone = None if named is None else _ident(named)
        self.begun = False              # a log without ids has had its submit

    def take(self, line: Line) -> Iterable[Job]:
        """Add the events of one line; gives the job that ended with them."""
        message = _parsed((escaped(line.text) if line.note else line.text).strip())
        events = message.get("events", [message])
        if not isinstance(events, list) or not all(isinstance(e, dict) for e in events):
            raise Rejected("json", "events is no list of objects")
        parsed_events = [self._event(e) for e in events]
        resources_given = _given(message.get("R"))
        number = self._number(message, [e.name for e in parsed_events])
        done = [job for oldest in self.open.too_many(number) for job in self._stands(oldest)]
        pending = self.open.add(number, _Pending(line.number, number=number), line, keeping=self.keeping)
        _spec(pending, message.get("jobspec"))
        pending.given, pending.nodes = resources_given or (pending.given, pending.nodes)
        for event in parsed_events:
            _tell(pending, event)
        if pending.state != "INACTIVE":
            return done
        self.open.take(number)
        return [*done, self.given(self._record(pending, line.number))]

    def rest(self) -> Iterator[Job]:
        """Jobs that have not ended in this log, in the order in which they began."""
        while self.open.jobs:
            yield from self._stands(next(iter(self.open.jobs)))

    def unfinished(self) -> Iterable[str]:
        """Lines of jobs that have not ended."""
        return self.open.lines()

    # -- one event
    def _number(self, message: dict[str, Any], names: list[str]) -> int:
        """The id of the job that a line is about. Rejected: id, orphan."""
        ident = next((v for k in ("id", "jobid") if (v := message.get(k)) is not None), None)
        if ident is None and self.alone is None:
            raise Rejected("id", "an event names no job; the option id does, for the log of one")
        number = self.alone if ident is None else _ident(ident)
        assert number is not None
        if "submit" not in names and number not in self.open:
            raise Rejected("orphan", f"{escape(', '.join(names), 40)} of job {write_id(number)}, whose submit is not "
                           "here, or which has ended")
        if "submit" in names and ident is None:
            if self.begun:
                raise Rejected("id", "the log of another job begins, and the option id names one")
            self.begun = True
        return number

    def _event(self, event: dict[str, Any]) -> _Event:
        """Rejected: json, number, time."""
        name, at, details = event.get("name"), event.get("timestamp"), event.get("context")
        if not isinstance(name, str) or not name:
            raise Rejected("json", "an event has no name")
        context = details if isinstance(details, dict) else {}
        if name == "finish" and (number_of(context, "status") or 0) > _WORD:
            raise Rejected("number", f"status {context['status']} is no wait status")
        if isinstance(at, str):
            match = re.search(r"\.(\d{1,9})", at)
            seconds = self.time(at, "timestamp", 0)
            at = None if seconds is None else seconds + (float(f"0.{match[1]}") if match else 0)
        value = number_of({"timestamp": at}, "timestamp")
        if not value:
            raise Rejected("time", f"event {escape(name, 40)} has no timestamp")
        moment(int(value), "timestamp")
        return _Event(name, value, context)

    def _stands(self, number: int) -> list[Job]:
        """The job of one that has no end."""
        pending = self.open.take(number)
        assert pending is not None
        try:
            return [self.given(self._record(pending, pending.line))]
        except Rejected as why:
            self.reject(pending.line, why.reason, str(why), taken=pending.records)
            return []

    # -- a job
    def _record(self, pending: _Pending, line: int) -> Record:
        facts = pending.facts
        r = Record(line, write_id(pending.number, "f58"), machine=self.machine)
        for name, tag in (("userid", "user"), ("bank", "project"), ("queue", "queue")):
            setattr(r, tag, self.name(text_of(facts, name), name))
        r.name, r.directory = (self.free_text(text_of(facts, name), name, line) for name in ("name", "cwd"))
        r.more.append(("LRM", "JobIDRaw", str(pending.number)))
        for name in ("project", "urgency", "priority"):
            if (text := text_of(facts, name)) is not None:
                r.more.append(("flux", name, text))
        at = pending.at
        r.submit, r.eligible, r.start, r.end = (
            None if (v := at.get(name)) is None else int(v) for name in ("submit", "priority", "alloc", "cleanup"))
        r.ran = "alloc" in at
        r.wall = self.first("Duration", line, ("cleanup - alloc", _span(at, "cleanup")),
                            ("finish - alloc", _span(at, "finish")))
        self._ended(r, pending)
        self._amounts(r, pending)
        return r

    def _ended(self, r: Record, pending: _Pending) -> None:
        kind, note = pending.exception
        result = "" if not pending.ends else RESULTS.get(kind, "FAILED") if pending.ends == "exception" else (
            "FAILED" if pending.status else "COMPLETED")
        r.native = result if pending.state == "INACTIVE" else pending.state
        r.state = state_word(STATES.get(pending.state), "Idle")
        if r.state == "Idle" and pending.facts.get("urgency") == HOLD:
            r.state, r.hold = "Hold", "User"
        code = None
        if pending.status is not None:
            r.exit_code, r.signal = end_of(pending.status)
            code = r.exit_code
        if pending.state == "INACTIVE":
            r.message = message(result, kind, note, code if r.signal is None else -r.signal, r.ran)

    def _amounts(self, r: Record, pending: _Pending) -> None:
        if r.ran:
            r.processors = pending.given.get("core") or None
            r.node, n = self.nodes(pending.nodes, r.line) if pending.nodes else (None, None)
            r.nodes = pending.given.get("rank") or n
            if gpus := pending.given.get("gpu"):
                r.delivered.append(leaf("Resource", Decimal(gpus), {"name": "GPU"}))
        for kind, tag in (("core", "Processors"), ("node", "NodeCount")):
            if count := pending.asked.get(kind):
                r.requested.append(leaf(tag, count))
        if (limit := number_of(pending.facts, "duration")) and whole(limit):
            r.requested.append(leaf("Duration", whole(limit)))
        if gpus := pending.asked.get("gpu"):
            r.requested.append(leaf("Resource", Decimal(gpus), {"name": "GPU"}))


def _parsed(text: str) -> dict[str, Any]:
    """A line as an object. Rejected: json, columns."""
    if not text.startswith("{"):
        match = _TEXT.fullmatch(text)
        if not match:
            raise Rejected("columns", "neither a JSON object nor of the form TIMESTAMP NAME KEY=VALUE ...")
        stamp, name, rest = match.groups()
        at = stamp if "T" in stamp else float(stamp)
        return {"timestamp": at, "name": name, "context": _context(rest or "")}
    try:
        value = json.loads(text)
    except RecursionError:
        raise Rejected("json", "nested too deep") from None
    except ValueError as error:
        raise Rejected("json", escape(str(error), 200)) from None
    assert isinstance(value, dict)       # it begins with a brace
    return value


def _context(text: str) -> dict[str, Any]:
    """``userid=1001 note="a b"``, whose values are JSON. Rejected: json."""
    values: dict[str, Any] = {}
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        match = _KEY.match(text, at)
        if not match:
            raise Rejected("json", f"{escape(text[at:], 40)!r} is not of the form KEY=VALUE")
        try:
            values[match[1]], at = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            raise Rejected("json", f"the value of {escape(match[1], 40)} is no JSON") from None
        at += len(text[at:at + 1])
    return values


def _ident(ident: object) -> int:
    """The number of a job id in any of its forms. Rejected: id."""
    if isinstance(ident, int) and not isinstance(ident, bool) and 0 <= ident <= GREATEST:
        return ident
    try:
        return read_id(str(ident))
    except (LexicalError, UsageError):      # words, without the extra that reads them
        raise Rejected("id", f"{escape(str(ident), 40)!r} is no job id") from None


def _tell(pending: _Pending, event: _Event) -> None:
    """Take over what an event says."""
    name, at, context = event.name, event.at, event.context
    if name == "finish":
        status = number_of(context, "status")
        pending.status = None if status is None else int(status)
    elif name == "jobspec-update":
        pending.facts |= {k.removeprefix(_MEMBER): v for k, v in context.items() if k.startswith(_MEMBER)}
    elif name in ("submit", "urgency", "priority"):
        pending.facts |= {k: v for k, v in context.items() if k in ("urgency", "priority") or (k, name) == (
            "userid", "submit")}
    elif name == "alloc":
        summary = _summary(context)
        pending.given = pending.given or (held(summary) if isinstance(summary, str) else {})
    pending.at.setdefault(name, at)
    fatal = name == "exception" and context.get("severity") == 0
    if (name == "finish" or fatal) and not pending.ends:
        pending.ends, pending.at["cleanup"], pending.state = name, at, "CLEANUP"
        if fatal:
            pending.exception = str(context.get("type") or ""), str(context.get("note") or "")
    elif name == "clean":
        pending.state = "INACTIVE"
    elif name in _PHASES and not pending.ends:
        pending.state = _PHASES[name]


def _summary(context: dict[str, Any]) -> object:
    """The scheduler's summary of an alloc event."""
    notes = context.get("annotations")
    if not isinstance(notes, dict):
        return None
    sched = notes.get("sched")
    return sched.get("resource_summary") if isinstance(sched, dict) else notes.get("sched.resource_summary")


def _spec(pending: _Pending, spec: object) -> None:
    """The jobspec that the journal gives with submit."""
    if not isinstance(spec, dict):
        return
    attributes = spec.get("attributes")
    system = attributes.get("system") if isinstance(attributes, dict) else None
    if isinstance(system, dict):
        job = system.get("job")
        pending.facts |= {k: v for k, v in system.items() if k in ("duration", "queue", "bank", "project", "cwd")}
        pending.facts |= {"name": job["name"]} if isinstance(job, dict) and "name" in job else _command(spec)
    pending.asked = {}
    _asked(spec.get("resources"), pending.asked)


def _given(resources: object) -> tuple[dict[str, int], str] | None:
    """(how many of each kind, hosts) of the R that the journal gives with alloc. Rejected: json."""
    if resources is None:
        return None
    try:
        problems = read_resources(resources)
    except (JobspecError, ExecLimitError) as error:
        raise Rejected("json", escape(str(error), 200)) from None
    counts = {"rank": problems.ranks.count, "core": problems.count("core"), "gpu": problems.count("gpu")}
    return counts, ",".join(dict.fromkeys(problems.hosts.values()))


def _command(spec: dict[str, Any]) -> dict[str, str]:
    """The name of a job that has none of its own: that of its command."""
    tasks = spec.get("tasks")
    first = tasks[0] if isinstance(tasks, list) and tasks else None
    command = first.get("command") if isinstance(first, dict) else None
    word = command[0] if isinstance(command, list) and command else None
    return {"name": word.rpartition("/")[2]} if isinstance(word, str) else {}


def _asked(vertices: object, counts: dict[str, int], times: int = 1, depth: int = 0) -> None:
    """Add up the nodes, cores and GPUs of a jobspec; a count that is a range is not one number."""
    for vertex in vertices if isinstance(vertices, list) and depth < _DEPTH else ():
        count = vertex.get("count") if isinstance(vertex, dict) else None
        if isinstance(count, int) and not isinstance(count, bool) and 0 < count * times <= _COUNT:
            kind = str(vertex.get("type"))
            counts[kind] = counts.get(kind, 0) + count * times
            _asked(vertex.get("with"), counts, count * times, depth + 1)


def _span(at: dict[str, Decimal], end: str) -> int | None:
    return whole(max(Decimal(0), at[end] - at["alloc"])) if end in at and "alloc" in at else None


_FIRST: Final = re.compile(r"\d{9,11}\.\d+ submit userid=\d+ ", re.ASCII)


def _recognise(sample: Sample) -> Fit | None:
    return (by_keys(sample, frozenset(("timestamp", "name"))) or by_keys(sample, frozenset(("id", "events")))
            or by_beginning(sample, _FIRST, "the submit event of a job"))


TRANSLATOR = translator("flux-eventlog", "Flux job event logs", _Reading, recognise=_recognise)
