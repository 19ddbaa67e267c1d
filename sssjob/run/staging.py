"""Files that jobs leave behind: staged out and removed by whichever client looks after the jobs, after their ends.

The executor is given a specification without them. When it tells how a job ended, that is noted first, with all that is
known of the end, so that the next client neither asks for it again nor does again what had been done. Then the files
are staged out in a thread, and the end counts when that is over. Who does so holds the lease of the submission: a
client that leaves stops its threads before it gives that back.

What is to be staged is worked out when the job is about to be submitted, and stands in the journal with the intent:
relative paths mean what they meant to the client that submitted.
"""

from __future__ import annotations

import copy
import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

import psij
from psij.executors._local_staging import (
    ENDS,
    Item,
    Staging,
    StagingError,
    StagingStopped,
    in_background,
    spoil,
)
from psij.executors.batch._staging import placed, staging_of
from psij.job import _ran
from psij.staging import StageOutFlags, StagingMode
from sssjob.run.history import Event, status_of, status_record
from sssjob.run.pauses import NONE, Pause

if TYPE_CHECKING:
    from sssjob.run.engine import Engine
    from sssjob.run.standing import Running, Submission

__all__ = ["Leaving", "Promised", "Step", "take_event"]

_LEAVE_S: Final = 10.0          # patience with a file system that hangs, before the lease stays with this process
_LOOK_S: Final = 0.05           # between two looks whether to go on waiting for the journal
_PAUSE_S: Final = (1.0, 60.0)   # before the second try, and before any
_AWAY_S: Final = 10.0           # before a host that gives no answer is tried again
_log = logging.getLogger("sssjob")
#: What of an end is shown while files are staged out: that the job ran, and where.
_SHOWN: Final[tuple[str, ...]] = ("native_id", "submit_time", "start_time", "starts", "nodes", "process", "session",
                                  "sources")


@dataclass(slots=True, eq=False)
class Leaving:
    """A part of a job that has ended and of which files are staged out.

    status: its end. ran: whether it had started. done: items that are staged out; fetched: all are. tries: that failed
    for a reason that may pass; pause: before the next one. again: some client may have begun before. canceled:
    somebody wanted its end meanwhile.
    """

    status: psij.JobStatus
    ran: bool
    done: int = 0
    fetched: bool = False
    tries: int = 0
    pause: Pause = NONE
    again: bool = False
    canceled: bool = False
    working: bool = False           # a thread of this process is at it,
    left: bool = False              # and was told to leave it
    idle: threading.Event = field(default_factory=threading.Event)

    def stops(self) -> bool:
        """Whether a thread that stages is to end."""
        return self.left or (self.canceled and self.status.state is not psij.JobState.CANCELED)


@dataclass(frozen=True, slots=True)
class Step:
    """What a thread that stages has to say. data: of an event ``staging``. written: set when that is on the disk."""

    data: dict[str, Any]
    written: threading.Event | None = None
    status: psij.JobStatus | None = None        # the end, with what became of the files


def take_event(job: Running, event: Event) -> None:
    """Take in an event ``staging`` of the journal."""
    data = event.data
    if data["step"] == "begun":
        job.leaving[event.part] = Leaving(status_of(data["status"]), bool(data["ran"]), again=True)
        return
    leaving = job.leaving.get(event.part)
    if leaving is None:
        return
    leaving.done = int(data.get("items", leaving.done))
    leaving.fetched |= data["step"] == "fetched"
    if data["step"] == "failed":
        leaving.tries, leaving.pause = int(data["tries"]), Pause(event.time, float(data["pause"]))


class Promised:
    """The staging of an engine's jobs."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._ready: list[tuple[Running, int]] = []             # to be begun when that is on the disk
        self._at_work: list[tuple[Running, int, Leaving]] = []
        self._later: list[tuple[Running, int]] = []             # that failed and are to be tried again
        self._unwritten: list[tuple[Submission, threading.Event]] = []
        self._at_end = False

    # -- before the submission
    def take_out(self, job: Running, part: int, spec: psij.JobSpec) -> psij.JobSpec:
        """What of a specification is the executor's: all but what is done after the end, which is noted of the job.

        Files that an earlier intent has moved to their places are not moved there again.
        """
        if not (spec.stage_in or spec.stage_out or spec.cleanup):
            return spec
        base = str(job.of.entry.directory) if job.of.entry is not None else os.getcwd()
        try:
            whole = staging_of(spec, job.of.executor(), base)
        except (psij.InvalidJobException, OSError):     # the executor says so itself
            return spec
        if whole is None or job.together:               # parts of one native job cannot stage: told by the executor
            return spec
        rest = copy.copy(spec)
        rest.stage_in = [psij.StageIn(Path(item.source), Path(item.target), item.mode) for item in whole.stage_in
                         if not (job.begun and whole.is_brought(item))]
        if whole.stage_out or whole.cleanup:
            job.staging[part] = _record(whole)
            rest.stage_out, rest.cleanup = [], []
        return rest

    # -- after the end
    def takes(self, job: Running, part: int, status: psij.JobStatus, tag: str | None) -> bool:
        """Whether a status is an end after which files are staged out: then it counts later. tag: None for what no
        executor has told."""
        if tag is None or not status.final or part not in job.staging:
            return False
        if (status.metadata or {}).get("reason") == "lost":
            return False
        if part in job.leaving:
            return True
        ran = status.state is psij.JobState.COMPLETED or _ran(status) or (
            part < len(job.seen) and job.seen[part].started is not None)
        job.leaving[part] = Leaving(status, ran)
        job.of.note(job, "staging", {"step": "begun", "ran": ran, "status": status_record(status)}, part)
        self._ready.append((job, part))
        if job.of.entry is None:
            self.written(job.of)
        return True

    def resume(self, job: Running, part: int) -> None:
        """Go on with what another client has begun."""
        self._later.append((job, part))

    def take_step(self, job: Running, part: int, step: Step) -> None:
        """Take in what a thread has to say."""
        leaving = job.leaving[part]
        leaving.done = int(step.data.get("items", leaving.done))
        leaving.fetched |= step.data["step"] == "fetched"
        if step.data["step"] == "failed":
            leaving.tries, leaving.again = int(step.data["tries"]), True
            leaving.pause = Pause(time.time(), step.data["pause"])
            self._later.append((job, part))
            self.engine.tell(job, str(step.data["text"]))
        job.of.note(job, "staging", step.data, part)
        if step.written is not None:
            self._unwritten.append((job.of, step.written))
            if job.of.entry is None:
                self.written(job.of)
        if step.status is not None:
            self.engine.tell_status(job, part, step.status)

    def written(self, submission: Submission) -> None:
        """What was noted of a submission is on the disk, as far as that can be."""
        for of, done in self._unwritten:
            if of is submission:
                done.set()
        self._unwritten = [item for item in self._unwritten if item[0] is not submission]
        ready = [item for item in self._ready if item[0].of is submission]
        self._ready = [item for item in self._ready if item[0].of is not submission]
        for job, part in ready:
            self._begin(job, part)

    def begin_due(self) -> None:
        """Try again what is due."""
        later, self._later = self._later, []
        for job, part in later:
            if job.leaving[part].pause.seconds_left():
                self._later.append((job, part))
            else:
                self._begin(job, part)

    def next_due(self) -> float:
        """Seconds until something is to be tried again."""
        return min((job.leaving[part].pause.seconds_left() for job, part in self._later), default=float("inf"))

    def waits(self, job: Running, part: int) -> bool:
        """Whether nothing more is to be learnt of a part just now: a try has failed, and the next one is not due."""
        return not job.leaving[part].working and job.leaving[part].pause.seconds_left() > 0

    def leave(self) -> None:
        """Stop all threads that stage, and begin nothing more, which the next client does; the lease of a submission
        whose threads do not stop stays with this process."""
        self._at_end = True
        for _, _, leaving in self._at_work:
            leaving.left = True
        until = time.monotonic() + _LEAVE_S
        for job, _, leaving in self._at_work:
            if not leaving.idle.wait(max(until - time.monotonic(), 0.0)) and job.of.entry is not None:
                job.of.entry.stays_held = True

    # -- the work
    def _begin(self, job: Running, part: int) -> None:
        leaving = job.leaving[part]
        if job.ended or leaving.working or self._at_end:
            return
        leaving.working, leaving.left = True, False
        leaving.idle.clear()
        self._at_work = [item for item in self._at_work if item[2].working]
        self._at_work.append((job, part, leaving))
        staging = placed(_staging(job.staging[part]), job.of.executor())
        in_background(partial(self._work, job, part, leaving, staging))

    def _work(self, job: Running, part: int, leaving: Leaving, staging: Staging) -> None:
        """In a staging thread."""
        place = self.engine.place[id(job)]

        def say(data: dict[str, Any], status: psij.JobStatus | None = None, certain: bool = False) -> None:
            """Have a step written into the journal; certain: wait until it is on the disk. Raises StagingStopped."""
            step = Step(data, threading.Event() if certain else None, status)
            self.engine.events.put((place, part, step, None))
            while step.written is not None and not step.written.wait(_LOOK_S):
                if leaving.left:
                    raise StagingStopped

        def show(state: psij.JobState) -> None:
            """Have the job shown in this state, with the facts that were known before."""
            metadata = leaving.status.metadata or {}
            shown = {key: metadata[key] for key in _SHOWN if key in metadata}
            self.engine.events.put((place, part, psij.JobStatus(state, metadata=shown), None))

        status = copy.copy(leaving.status)
        failure: StagingError | None = None
        try:
            failure = _stage(staging, leaving, status, say, show)
        except StagingStopped:
            if not leaving.left:
                spoil(status, psij.JobState.CANCELED, "cancel", "canceled on request while files were staged out")
        leaving.working = False
        retries = self.engine.submitting.retries
        if failure is not None and failure.transient and (failure.away or leaving.tries < retries):
            tries = leaving.tries + 1
            pause = _AWAY_S if failure.away else min(_PAUSE_S[0] * 2.0 ** leaving.tries, _PAUSE_S[1])
            number = "" if failure.away else f" (try {tries + 1} of {retries + 1})"
            say({"step": "failed", "tries": leaving.tries if failure.away else tries, "pause": pause,
                 "text": f"{failure}; tried again in {pause:g} s at the soonest, by any client{number}"})
        elif not leaving.left:
            if failure is not None:
                spoil(status, psij.JobState.FAILED, failure.reason, str(failure))
            metadata = status.metadata or {}
            if leaving.ran and not metadata.get("end_unknown"):    # what follows the program's end is none of its time
                status.metadata = {"end_time": leaving.status.time, **metadata}
            status.time = time.time()
            say({"step": "done"}, status)
        leaving.idle.set()


def _stage(staging: Staging, leaving: Leaving, status: psij.JobStatus, say: Any, show: Any) -> StagingError | None:
    """Stage out and clean up; what went wrong. Raises StagingStopped."""
    end = ENDS[status.state]
    try:
        if leaving.ran and staging.stage_out and not leaving.fetched:
            show(psij.JobState.STAGE_OUT)
            staging.fetch(end, leaving.stops, leaving.done, leaving.again, lambda count, certain: say(
                {"step": "items", "items": count}, certain=certain))
        if staging.cleanup:             # only after all was fetched
            if leaving.ran:
                say({"step": "fetched"}, certain=True)      # what is removed cannot be fetched again
                show(psij.JobState.CLEANUP)
            if leaving.left:
                raise StagingStopped
            staging.remove(end)
    except StagingError as error:
        return error
    except StagingStopped:
        raise
    except Exception as error:
        _log.exception("Error while staging for a job")
        return StagingError("stage-out", str(error))
    return None


def _record(staging: Staging) -> dict[str, Any]:
    """What is done after the end, as a JSON object."""
    return {"directory": staging.directory, "mark": token_hex(4), "cleanup": list(staging.cleanup),
            "flags": staging.cleanup_flags.value,
            "out": [[item.source, item.target, item.mode.name, item.flags.value] for item in staging.stage_out]}


def _staging(record: Mapping[str, Any]) -> Staging:
    """The staging of ``_record``."""
    out = tuple(Item(source, target, StagingMode[mode], StageOutFlags(flags))
                for source, target, mode, flags in record["out"])
    return Staging(record["directory"], (), out, tuple(record["cleanup"]), StageOutFlags(record["flags"]),
                   record["mark"])
