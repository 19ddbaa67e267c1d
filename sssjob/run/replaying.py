"""What each event of the journal changes in a job as it stands: its history, read again, gives it with its facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from sssjob.run import facts
from sssjob.run.evidence import Source
from sssjob.run.history import WISHES, Event, stamp, status_of
from sssjob.run.on_end import take_event as take_hook
from sssjob.run.on_end import take_promise
from sssjob.run.outcomes import JobOutcome
from sssjob.run.placing import UNPLACED
from sssjob.run.staging import take_event

if TYPE_CHECKING:
    from psij import JobStatus
    from sssjob.run.standing import Running

__all__ = ["HOLD", "intent", "replay"]

HOLD: Final = "Hold"            # State of a job that waits for its user


def replay(job: Running, event: Event) -> None:
    """Change a job by an event."""
    change = _CHANGES.get(event.kind)
    if change is not None:
        change(job, event)


def intent(tag: str, parts: int, after: Mapping[str, object] | None = None,
           staging: Mapping[str, Any] | None = None, array: Mapping[str, Any] | None = None, name: str | None = None,
           user: str | None = None, **flags: bool) -> dict[str, Any]:
    """The data of an event ``intent``. after: with what the resource manager is told to wait. staging: what is done
    after its end. array: of which it is an element: ``tag``, and its ``number`` there. name: under which accounting
    knows it, where that tells no tag. user: as whom it is submitted, where that is on another host. flags: ``hold`` (it
    holds it), ``together`` (all parts are one native job), ``stages_in`` (files are brought before the command)."""
    return {"tag": tag, "parts": parts, **({"after": dict(after)} if after else {}),
            **({"staging": dict(staging)} if staging else {}), **({"array": dict(array)} if array else {}),
            **({"name": name} if name is not None else {}), **({"user": user} if user is not None else {}),
            **{word: True for word, true in flags.items() if true}, **stamp()}


def _intent(job: Running, event: Event) -> None:
    job.go()
    job.prepare(int(event.data.get("parts", event.part + 1)))
    job.word, job.begun = "running", True
    job.tags[event.part], job.intents[event.part] = event.data["tag"], {**event.data, "since": event.time}
    if "staging" in event.data:
        job.staging[event.part] = event.data["staging"]
    job.references[event.part] = None
    job.waits, job.hold = bool(event.data.get("after")), bool(event.data.get("hold"))
    job.together = bool(event.data.get("together"))


def _native(job: Running, event: Event) -> None:
    job.prepare(event.part + 1)
    job.word = "running"
    job.references[event.part] = event.data["reference"]
    if job.intents[event.part]:
        job.intents[event.part]["until"] = event.time
    job.seen[event.part].native_id = event.data["native_id"]
    job.record()
    job.evidence["native_id"] = Source(event.source, event.time)


def _try(job: Running, event: Event) -> None:
    job.tries = int(event.data["tries"])


def _ended(job: Running, event: Event) -> None:
    end = event.data
    if end["word"] == "skipped":
        job.left_out(end["message"])
    elif job.attempts and not job.seen:
        job.restore("")
        job.plan.job.set_as_is("StatusMessage", end["message"])
    elif job.why is not None and end["word"] == "canceled":
        job.plan.job.set_as_is("StatusMessage", end["message"])
    elif end["word"] == "canceled" and not job.started and not job.attempts:
        facts.record_unstarted(job.plan.job, end["message"])
    job.outcome = JobOutcome(job.plan.job, job.plan.label, end["word"], end["exit_code"], end["signal"],
                             end["message"], end["origin"])
    job.word = job.outcome.word


def _full(job: Running, event: Event) -> None:
    job.forget()
    job.hold_back(str(event.data["reason"]))


def _cap(job: Running, event: Event) -> None:
    job.of.cap = int(event.data["most"])


def _after(job: Running, event: Event) -> None:
    job.outside[int(event.data["need"])] = tuple(event.data["keys"])


def _answer(job: Running, event: Event) -> None:
    if event.data.get("begun"):
        job.undertaken.add(event.data["wish"])
    else:
        job.answer(event.data["wish"], event.data["refusal"])


def _held(job: Running, event: Event) -> None:
    if event.data.get("there"):
        job.plan.held_there = True
    else:
        job.plan.held = True
    job.plan.job.set_as_is("State", HOLD)


def _silent(job: Running, event: Event) -> None:
    job.of.silent = event.data


def _unplaced(job: Running, event: Event) -> None:
    if job.of.entry is not None:
        job.of.entry.way = event.data["way"]


def _answers(job: Running, event: Event) -> None:
    job.of.silent = None


def _taken(take: Callable[[int, JobStatus, float], object], event: Event) -> None:
    take(event.part, status_of(event.data), event.time)


#: Kind of an event -> what it changes. All other events are for readers of the log.
_CHANGES: Final[dict[str, Callable[[Running, Event], None]]] = {
    "after": _after, "intent": _intent, "unsent": lambda job, event: job.forget(), "try": _try, "native": _native,
    "status": lambda job, event: _taken(job.take, event), "late": lambda job, event: _taken(job.take_late, event),
    "ended": _ended, "cancel": lambda job, event: job.want_end(), "staging": take_event, "on-end": take_promise,
    "hook": take_hook,
    **dict.fromkeys(WISHES, lambda job, event: job.wish(f"{event.kind} {event.data.get('name', '')}".rstrip())),
    "answer": _answer, "held": _held, "retry": lambda job, event: job.begin_anew(event.data),
    "group": lambda job, event: job.end_with_group(event.data), "full": _full, "cap": _cap, "silent": _silent,
    "answers": _answers, UNPLACED: _unplaced}
