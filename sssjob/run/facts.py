"""What a run found out, written into the document: state, times, exit, amounts delivered.

Times are floored, durations rounded half up (decisions 38); a signal is no exit code (decisions 32); amounts go into
Delivered. Of a job that was run again times are those of the last run, amounts of time are summed, and each run has an
Extension (decisions 37). Which machine, queue, project and quality of service were given is in Delivered too,
unless the job has asked for just these (decisions 4). Only what is known is written.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from psij import JobState
from sssjob.document.element import Container, Property, new_property
from sssjob.document.model import Delivered, Job, Requested, Task, TaskGroup
from sssjob.document.units import from_bytes
from sssjob.lrm.waits import MISSING, NEVER
from sssjob.run.evidence import is_annotation
from sssjob.run.seen import Seen

__all__ = ["PLACED", "RESULTS", "Origin", "clear", "hopeless", "outcome_of", "record", "record_unstarted", "same_host",
           "same_place", "stated", "tell_place"]

#: Results of one life of a job, taken away before another one (decisions 19).
RESULTS = ("State", "StatusMessage", "SubmitTime", "StartTime", "EndTime", "ExitCode", "StartCount", "SuspendDuration",
           "CpuDuration", "Charge")
#: Fact -> the keys of a status' metadata that it is from, the first of them that is there.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "SubmitTime": ("submit_time",), "StartTime": ("start_time",), "EndTime": ("end_time",), "ExitCode": ("exit_code",),
    "CpuDuration": ("cpu_seconds",), "SuspendDuration": ("suspend_seconds",), "StartCount": ("starts", "start_time"),
    "StatusMessage": ("reason", "waits"), "NativeId": ("native_id",), "ExitSignal": ("signal",),
    "LRM/State": ("native_state",), "Attempt": ("attempts",), "Duration": ("wall_seconds", "end_time"),
    "Processors": ("processors",), "NodeCount": ("node_count", "nodes"), "Node": ("nodes",),
    "Memory Max": ("memory_max_bytes",),
    "Memory Average": ("memory_average_bytes",), "Resource GPU": ("gpus",), "Resource Energy": ("energy_joules",),
    "Queue": ("queue",), "Project": ("account",), "QualityOfService": ("qos",), "Machine": ("machine",),
    "User": ("user",)}
#: What the resource manager may choose: property -> key of the metadata.
_PLACES: Final = {"User": "user", "Machine": "machine", "Queue": "queue", "Project": "account",
                  "QualityOfService": "qos"}
_STATES: Final = {JobState.NEW: "Idle", JobState.QUEUED: "Idle", JobState.STAGE_IN: "Idle"}
_NOTHING: Final[Mapping[str, Any]] = {}
_PHASES: Final = {"SUSPENDED": "Suspended", "HELD": "Hold", "ERROR": "Hold"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Who has submitted a job, and on which host."""

    user: str
    host: str


def same_host(one_name: str, other: str) -> bool:
    """Whether two names are of one host, with or without its domain."""
    first, second = one_name.lower(), other.lower()
    return first == second or (("." in first) != ("." in second) and first.split(".")[0] == second.split(".")[0])


#: Extensions of an element of an array that say which one it is, and nothing of a life of it.
IDENTITY = ("ArrayId", "ArrayIndex")
#: Extensions of a job that went to a site: the name of its profile, and where that was chosen among several why it is
#: there (its rank, then why it is at none of the places before), and what was quoted for it there.
PLACED: Final = ("Site", "Route", "Price")


def clear(job: Job) -> None:
    """Take the results of an earlier run away and say that the job waits. What says where it goes stays."""
    stated = {item.tag for item in job.items}
    for tag in RESULTS:
        if tag in stated:
            job.set_as_is(tag, None)
    _strip(job)
    job.set_as_is("State", "Idle")


def tell_place(job: Job, site: str | None, reasons: Sequence[str] = (), price: str | None = None) -> None:
    """Say of a job to which site it goes and why, and what it is to cost there. reasons: a sentence each."""
    for name, texts in zip(PLACED, ((site,), reasons, (price,)), strict=True):
        _extensions(job, name, list(filter(None, texts)))


def same_place(job: Job, other: Job) -> None:
    """Say of a job where another one says that it goes."""
    for name in PLACED:
        _extensions(job, name, [p.text for p in other.all("Extension")
                                if (p.get("type"), p.get("name")) == ("LRM", name)])


def _strip(scope: Container) -> None:
    """Delivered, the facts of a resource manager and their sources, here and in the task groups."""
    scope.items = [i for i in scope.items if i.tag != "Delivered" and not (
        isinstance(i, Property) and (is_annotation(i) or (i.tag == "Extension" and i.get("type") == "LRM"
                                                          and i.get("name") not in (*IDENTITY, *PLACED))))]
    for child in scope.containers("TaskGroup"):
        _strip(child)
        _strip_tasks(child)


def _strip_tasks(group: Container) -> None:
    """What an earlier run said of tasks, and those that only it has made."""
    for task in list(group.containers("Task")):
        if task.first("Process") is not None:
            task.items = [i for i in task.items if i.tag not in ("Node", "Session", "Process")]
            if not task.items and not task.attributes:
                group.items = [i for i in group.items if i is not task]


def record(job: Job, parts: Sequence[Seen], asked: Job | None = None, origin: Origin | None = None) -> None:
    """Write what is known of a job's parts into the job. asked: the job with its defaults, as it was submitted.

    origin: who submitted it and where, None where it was submitted by somebody else.
    """
    job.set_as_is("State", _state(parts))
    if origin is not None:
        job.set_as_is("SubmitHost", origin.host)
    _time(job, "SubmitTime", min, [p.submitted for p in parts])
    _time(job, "StartTime", min, [p.started for p in parts])
    _native(job, parts)
    if starts := [int(p.known.get("starts", 1)) for p in parts if p.started is not None]:
        job.set_as_is("StartCount", max(starts))
    elif parts and all(p.final for p in parts):
        job.set_as_is("StartTime", None)
        job.set_as_is("StartCount", None)
    _tasks(parts)
    job.set_as_is("StatusMessage", _waiting(parts))
    if all(p.final for p in parts):
        _ended(job, parts, asked or job, origin)


def _state(parts: Sequence[Seen]) -> str:
    """Completed when all have ended, Running when one runs; suspended or held where that is known of all."""
    if parts and all(p.final for p in parts):
        return "Completed"
    states = {_state_of(p) for p in parts}
    if "Running" in states or any(p.final for p in parts):
        return "Running"
    return states.pop() if len(states) == 1 else "Idle"


def hopeless(parts: Sequence[Seen]) -> str | None:
    """The resource manager's words for why a job can never start; None where it does not say so."""
    return next((str(p.status.message or "the resource manager gives no reason") for p in parts
                 if p.status is not None and p.status.state is JobState.QUEUED and p.known.get("waits") == NEVER), None)


def _state_of(part: Seen) -> str:
    if part.status is None:
        return "Idle"
    state = _PHASES.get(str(part.known.get("phase"))) or _STATES.get(part.status.state, "Running")
    return "Idle" if part.known.get("requeued") and state != "Hold" else state


def _waiting(parts: Sequence[Seen]) -> str | None:
    """Why a job that has not ended waits: of the first part that does, the kind of reason and the resource manager's
    words."""
    for p in parts:
        if p.status is not None and not p.final and (
                _state_of(p) in ("Idle", "Hold") or p.known.get("waits") == MISSING):
            kind, words = str(p.known.get("waits") or ""), str(p.status.message or "")
            reasons = [words] if words.startswith(f"{kind}: ") else [x for x in (kind, words) if x]
            return ": ".join(reasons) or ("put back into the queue" if p.known.get("requeued") else None)
    return None


def _time(job: Job, tag: str, choose: Callable[[list[float]], float], values: Iterable[float | None]) -> None:
    times_known = [v for v in values if v is not None]
    if times_known:
        job.set_as_is(tag, math.floor(choose(times_known)))


def _native(job: Job, parts: Sequence[Seen]) -> None:
    """The native ids as Extensions, of task groups that were started one by one at each of them, and as Id where the
    job has none (decisions 18)."""
    ids = [p.native_id for p in parts if p.native_id is not None]
    if not ids:
        return
    if job.first("Id") is None:
        job.set_as_is("Id", ids[0])
    for p in parts:
        if p.group is not None and p.native_id is not None:
            _extensions(p.group, "NativeId", [p.native_id])
    if any(p.group is None for p in parts):
        _extensions(job, "NativeId", ids)


def _extensions(scope: Container, name: str, values: Sequence[str]) -> None:
    """Put Extensions of a resource manager's in place of those of that name; the order of all others is kept."""
    before = [item for item in scope.all("Extension")
              if item.attributes.get("name") == name and item.attributes.get("type") == "LRM"]
    if [item.text for item in before] == list(values):
        return
    old = {id(item) for item in before}
    at = scope.items.index(before[0]) if before else len(scope.items)
    new_items = [new_property("Extension", v, {"type": "LRM", "name": name}) for v in values]
    kept = [item for item in scope.items if id(item) not in old]        # the first old one has only kept ones before it
    scope.items = [*kept[:at], *new_items, *kept[at:]]


def _tasks(parts: Sequence[Seen]) -> None:
    """Node, session and process of the only task of a task group, where the executor tells them."""
    for p in parts:
        task_facts = {"Node": p.known.get("nodes", ()), "Session": p.known.get("session"),
                      "Process": p.known.get("process")}
        if p.group is None or task_facts["Process"] is None or len(task_facts["Node"]) != 1 or not _is_single(p.group):
            continue
        if not p.group.tasks:
            p.group.items.append(Task())
        task = p.group.tasks[0]
        for tag, value in (("Node", task_facts["Node"][0]), ("Session", task_facts["Session"]),
                           ("Process", task_facts["Process"])):
            if value is not None and (tag != "Node" or task.first(tag) is None):
                task.set_as_is(tag, value)


def _is_single(group: TaskGroup) -> bool:
    """Whether a task group has one task."""
    return group.value("TaskCount") in (None, 1) and len(group.tasks) < 2


def _ended(job: Job, parts: Sequence[Seen], asked: Job, origin: Origin | None) -> None:
    ran = [p for p in parts if p.started is not None]
    _time(job, "EndTime", max, (p.ended_at for p in ran or parts))
    code, signal = outcome_of(parts)
    job.set_as_is("ExitCode", code)
    _extensions(job, "ExitSignal", [] if signal is None else [str(signal)])
    _extensions(job, "State", list(dict.fromkeys(str(p.known["native_state"]) for p in parts
                                                 if "native_state" in p.known)))
    job.set_as_is("StatusMessage", message_of(parts))
    _extensions(job, "Attempt", [attempt for p in ran for attempt in map(_attempt, p.known.get("attempts", ()))])
    cpu = _values(ran, "cpu_seconds")
    if cpu:
        job.set_as_is("CpuDuration", _half_up(sum(cpu, Decimal(0))))
    suspended = _values(ran, "suspend_seconds")
    if suspended:
        job.set_as_is("SuspendDuration", _half_up(max(suspended)))
    if ran:
        _deliver(job, ran)
        for p in ran:
            if p.group is not None:
                _deliver(p.group, [p])
        _pilots(job, ran)
    _places(job, parts, asked, origin)


def _pilots(job: Job, parts: Sequence[Seen]) -> None:
    """What a pilot said of its use of processors (Machine/Job Features); of several pilots nothing can be said."""
    pilots = [p for p in parts if "pilot" in p.known]
    if len(pilots) == 1 and len(parts) == 1:
        from sssjob.mjf.job import record_pilot

        record_pilot(job, pilots[0].known["pilot"], pilots[0].failed)


def outcome_of(parts: Sequence[Seen]) -> tuple[int | None, int | None]:
    """(exit code, signal) of a job: of the first part that failed, else of the first (decisions 11, 32)."""
    counts = next((p for p in parts if p.failed), parts[0] if parts else Seen())
    signal = counts.known.get("signal")
    code = counts.status.exit_code if counts.status is not None else None
    return (None, int(signal)) if signal is not None else (code, None)


def message_of(parts: Sequence[Seen]) -> str | None:
    """Reason word and text of the first part that failed (decisions 33)."""
    failed = next((p for p in parts if p.failed), None)
    if failed is None or failed.status is None:
        return None
    reason, text = failed.known.get("reason"), failed.status.message
    if failed.status.state is JobState.CANCELED:
        reason = reason or "cancel"
    return ": ".join(dict.fromkeys(str(x) for x in (reason, text) if x)) or None


def reword(job: Job, message: str, words_before: str = "") -> str:
    """Put what a message says beside the words of the resource manager beside those that stand in the job now. One that
    stood alone, such as why a job was ended, stays alone. words_before: those with which the message begins.
    """
    words = str(job.value("StatusMessage") or "")
    added = message.removeprefix(words_before).removeprefix("; ")
    message = f"{words}; {added}" if words and message.startswith(words_before) else message
    job.set_as_is("StatusMessage", message)
    return message


def _attempt(metadata: Mapping[str, Any]) -> str:
    """One run in words: ``start=1795282977 end=1795282980 exit=0 state=REQUEUED nodes=node1,node2``; signal=N in place
    of exit where a signal ended it. Of several submissions of one job ``native=17`` stands before, and ``retry=CLAUSE``
    after it, where that clause began the next one. Only what is known is in it."""
    facts = {"start": metadata.get("start_time"), "end": metadata.get("end_time"), "exit": metadata.get("exit_code"),
             "signal": metadata.get("signal")}
    words = [f"{name}={math.floor(value)}" for name, value in facts.items() if value is not None]
    state = str(metadata.get("native_state") or "").split(" ")[0]
    words += [f"state={state}"] if state else []
    nodes = ",".join(map(str, metadata.get("nodes", ())))
    words += [f"nodes={nodes}"] if nodes else []
    before, after = ([f"{word}={metadata[key]}"] if metadata.get(key) is not None else []
                     for word, key in (("native", "native_id"), ("retry", "retry")))
    return " ".join([*before, *words, *after])


def _half_up(seconds: Decimal | int) -> int:
    return int(Decimal(seconds).to_integral_value(ROUND_HALF_UP))


def _plain(number: Decimal) -> Decimal:
    """Without a fraction that is zero."""
    return number.to_integral_value() if number == number.to_integral_value() else number


def _values(parts: Sequence[Seen], key: str) -> list[Decimal]:
    """The numbers that parts have for a key."""
    return [Decimal(str(p.known[key])) for p in parts if key in p.known]


def _deliver(scope: Job | TaskGroup, parts: Sequence[Seen]) -> None:
    """Write the Delivered block of a job or a task group."""
    block = Delivered()
    if all(p.ended_at is not None and not p.put_back for p in parts):
        block.add_as_is("Duration", _half_up(_duration(parts)))
    processors = _values(parts, "processors")
    if any("spans" in p.known for p in parts):
        for seconds, count in sorted(_spans(parts).items(), reverse=True):
            block.add_as_is("Processors", count, duration=str(seconds), dynamic="true")
    elif processors:
        block.add_as_is("Processors", _held(parts, int(sum(processors))))
    _nodes(block, parts)
    for metric, key in (("Max", "memory_max_bytes"), ("Average", "memory_average_bytes")):
        if sizes := _values(parts, key):
            amount, units = from_bytes(int(max(sizes)))
            block.add_as_is("Memory", amount, metric=metric, units=units)
    for model, count in _gpus(parts).items():
        block.add_as_is("Resource", Decimal(count), name="GPU", type=model or None)
    if shares := _values(parts, "hs06_job"):
        block.add_as_is("Extension", f"{sum(shares, Decimal(0)).normalize():f}", name="hs06_job", type="MJF")
    if energy := _values(parts, "energy_joules"):
        block.add_as_is("Resource", _plain(sum(energy, Decimal(0))), name="Energy", units="J")
    scope.items = [i for i in scope.items if i.tag != "Delivered"] + [block]


def _spans(parts: Sequence[Seen]) -> dict[int, int]:
    """Seconds -> processors that were held so long, where some were given back before the end."""
    spans: dict[int, int] = {}
    for p in parts:
        whole = [[p.known.get("processors", 0), _duration([p])]]
        for count, seconds in p.known.get("spans", whole):
            held = _half_up(Decimal(str(seconds)))
            spans[held] = spans.get(held, 0) + int(count)
    return spans


def _duration(parts: Sequence[Seen]) -> Decimal:
    """Seconds: what the resource manager counted, of several parts and without a count from start to end."""
    walls = _values(parts, "wall_seconds")
    if len(parts) == len(walls) == 1:
        return max(walls[0], Decimal(0))
    start = min(p.started for p in parts if p.started is not None)
    end = max(p.known.get("end_time", p.status.time if p.status else start) for p in parts)
    suspended = max(_values(parts, "suspend_seconds"), default=Decimal(0))
    earlier = max(_values(parts, "earlier_seconds"), default=Decimal(0))
    return earlier + max(Decimal(str(end - start)) - suspended, Decimal(0))


def _nodes(block: Delivered, parts: Sequence[Seen]) -> None:
    """NodeCount as the resource manager counts; of several parts each node once, where all are named."""
    nodes = list(dict.fromkeys(str(n) for p in parts for n in p.known.get("nodes", ())))
    counts = [int(p.known["node_count"]) for p in parts if "node_count" in p.known]
    if len(parts) == len(counts) == 1:
        block.add_as_is("NodeCount", counts[0])
    elif nodes and all("nodes" in p.known for p in parts):
        block.add_as_is("NodeCount", len(nodes))
    if nodes:
        block.add_as_is("Node", ",".join(nodes), aggregation="List" if len(nodes) > 1 else None)


def _gpus(parts: Sequence[Seen]) -> dict[str, int]:
    """How many GPUs of each type; the type is empty where it is not named."""
    counts: dict[str, int] = {}
    for p in parts:
        typed = p.known.get("gpu_types") or ({"": p.known["gpus"]} if p.known.get("gpus") else {})
        for model, count in typed.items():
            counts[str(model)] = counts.get(str(model), 0) + int(count)
    return counts


def _held(parts: Sequence[Seen], total: int) -> int:
    """Processors of parts side by side: on this machine no more than we may use (decisions 39)."""
    measured = all(p.known.get("sources", {}).get("processors") == "measured" for p in parts)
    return min(total, len(os.sched_getaffinity(0))) if measured else total


def _places(job: Job, parts: Sequence[Seen], asked: Job, origin: Origin | None) -> None:
    """User, Machine, Queue, Project and QualityOfService: where they are not those asked for they are in Delivered, and
    a bare name, which says both, moves to Requested. Nothing is given to a job that never ran."""
    delivered = next(iter(job.containers("Delivered")), None)
    for tag, key in _PLACES.items():
        actual = next((str(p.known[key]) for p in parts if key in p.known), None)
        if actual is None and tag == "User" and origin is not None:
            actual = origin.user
        wanted_texts = [p.text for scope in (asked, *asked.containers("Requested")) for p in scope.all(tag)]
        if actual is None or delivered is None or wanted_texts == [actual] or (
                tag == "Machine" and len(wanted_texts) == 1 and same_host(wanted_texts[0], actual)):
            continue
        delivered.set_as_is(tag, actual)
        if wanted_texts and not any(scope.first(tag) for scope in job.containers("Requested")):
            block = next(iter(job.containers("Requested")), None)
            if block is None:
                block = Requested()
                job.items.append(block)
            block.items += job.all(tag) or [new_property(tag, text) for text in wanted_texts]
            job.set_as_is(tag, None)


def record_unstarted(job: Job, message: str) -> None:
    """A job that was not started and never will be: Completed, no times, no code (decisions 22)."""
    job.set_as_is("State", "Completed")
    job.set_as_is("StatusMessage", message)


def stated(job: Job, metadata: Mapping[str, Any] = _NOTHING) -> list[tuple[str, str, tuple[str, ...]]]:
    """(fact, value, keys of the metadata it may be from) of every fact that a job holds.

    metadata: the metadata. What a user has asked for is a fact where the resource manager says the same.
    """
    facts = [(p.tag, p.text, _KEYS.get(p.tag, ())) for tag in RESULTS for p in job.all(tag)]
    facts += [(tag, p.text, (key,)) for tag, key in _PLACES.items() for p in job.all(tag)
              if metadata.get(key) == p.text]
    for p in job.all("Extension"):
        if p.get("type") == "LRM":
            name = str(p.get("name"))
            name = f"LRM/{name}" if name in RESULTS else name
            facts.append((name, p.text, _KEYS.get(name, ())))
    for group in job.task_groups:
        facts += [("NativeId", p.text, _KEYS["NativeId"]) for p in group.all("Extension")
                  if (p.get("type"), p.get("name")) == ("LRM", "NativeId")]
    for block in job.containers("Delivered"):
        for p in block.properties():
            name = " ".join(x for x in (p.tag, p.get("name") or p.get("metric")) if x)
            facts.append((f"Delivered/{name}", f"{p.text} {p.get('units') or ''}".strip(), _KEYS.get(name, ())))
    return facts
