"""Format ``flux-jobs``: what ``flux jobs -a --json`` prints, read member by member.

    {"jobs": [{"jobid": "fS8Lq1y", "id": 3, "username": "alice", "t_submit": 1.5, "t_run": 2.5, "result": ...}]}

A job that was never allocated has no t_run: it has no start here. EndTime is t_cleanup, when the last task had ended,
and the wall time is what lies between both, rounded once; CPU time and memory are not reported. GPUs are counted in the
summary of resources that the scheduler adds. Empty members are absent from the JSON.

Source: flux-jobs(1) and the job-list fields of flux-core; recorded output of 0.88.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, BinaryIO, ClassVar, Final

from sssjob.document.model import Job
from sssjob.lrm.flux import HOLD, RESULT_NUMBERS, STATE_NUMBERS, STATES
from sssjob.lrm.usage import end_of
from sssjob.translators.recognise import Fit, Sample, by_keys
from sssjob.translators.records._flux import gpus_of, message, number_of, text_of, whole
from sssjob.translators.records._json import members, taken
from sssjob.translators.records._values import state_word
from sssjob.translators.records.base import Reading, Record, Rejected, leaf, moment, translator

__all__ = ["TRANSLATOR"]

_CANCELLED: Final = -128        # returncode of a job that was cancelled before it ran


#: Members that are read, and those that say what others do.
_READ: Final = frozenset((
    "id", "jobid", "name", "username", "userid", "bank", "queue", "cwd", "project", "urgency", "priority", "t_submit",
    "t_sched", "t_run", "t_cleanup", "t_inactive", "runtime", "duration", "state", "result", "returncode", "exception",
    "ncores", "nnodes", "ntasks", "nodelist", "success", "status", "ranks", "expiration", "waitstatus"))


class _Members(Reading):
    keeps: ClassVar[str] = "flux"

    def jobs(self, file: BinaryIO) -> Iterator[Job]:
        """The jobs of the member ``jobs``; what breaks the document itself ends the reading."""
        return taken(self, members(file, "jobs", self.context.limits.child_bytes, self.tell), self._record)

    def _record(self, job: Any, line: int) -> Record:
        if not isinstance(job, dict):
            raise Rejected("json", f"a member of jobs is no object but {type(job).__name__}")
        fields: dict[str, Any] = {k: v for k, v in job.items() if v not in (None, "")}
        native, ident = fields.get("id"), text_of(fields, "jobid")
        if ident is None and not (isinstance(native, int) and not isinstance(native, bool)):
            raise Rejected("id", "neither jobid nor id")
        r = Record(line, self.name(ident or str(native), "jobid") or "", machine=self.machine)
        r.name, r.directory = (self.free_text(text_of(fields, name), name, line) for name in ("name", "cwd"))
        r.user = self.name(text_of(fields, "username") or text_of(fields, "userid"), "username")
        r.project = self.name(text_of(fields, "bank"), "bank")
        r.queue = self.name(text_of(fields, "queue"), "queue")
        if native is not None and ident is not None:
            r.more.append(("LRM", "JobIDRaw", str(native)[:40]))
        for name in ("project", "urgency", "priority"):
            if (text := text_of(fields, name)) is not None:
                r.more.append(("flux", name, text))
        self._times(r, fields)
        self._state(r, fields)
        self._amounts(r, fields)
        self.rest_of(r, dict(_rest(fields)))
        return r

    def _times(self, r: Record, fields: dict[str, Any]) -> None:
        at = {name: number_of(fields, name) for name in ("t_submit", "t_sched", "t_run", "t_cleanup", "t_inactive")}
        r.submit, r.eligible, r.start, r.end = (
            None if (v := at[name]) is None else moment(int(v), name) for name in (
                "t_submit", "t_sched", "t_run", "t_cleanup"))
        begun, ended = at["t_run"], at["t_cleanup"]
        span = None if begun is None or ended is None else whole(max(Decimal(0), ended - begun))
        runtime = number_of(fields, "runtime")
        r.wall = self.first("Duration", r.line, ("t_cleanup - t_run", span), (
            "runtime", whole(runtime) if runtime is not None and begun is not None and ended is not None else None))
        r.ran = begun is not None
        if (asked := number_of(fields, "duration")) and whole(asked):
            r.requested.append(leaf("Duration", whole(asked)))

    def _state(self, r: Record, fields: dict[str, Any]) -> None:
        state, result = (numbers.get(word, word) for word, numbers in (
            (text_of(fields, "state") or "", STATE_NUMBERS), (text_of(fields, "result") or "", RESULT_NUMBERS)))
        r.native = result or state
        r.state = state_word(STATES.get(state), "Completed" if result else "Idle")
        if r.state == "Idle" and fields.get("urgency") == HOLD:
            r.state, r.hold = "Hold", "User"
        code = number_of(fields, "returncode", signed=True)
        if code is None and r.ran and result and (status := number_of(fields, "waitstatus")) is not None:
            exit_code, signal = end_of(int(status) & 0xFFFF)
            code = Decimal(-(signal or 0) if exit_code is None else exit_code)
        if code is not None and code >= 0:
            if code > 255:
                raise Rejected("number", f"returncode {code} is over 255")
            r.exit_code = int(code)
        elif code is not None and code != _CANCELLED:
            r.signal = -int(code)
        exception = fields.get("exception")
        exception = exception if isinstance(exception, dict) and exception.get("occurred") else {}
        kind, note = (str(exception.get(k) or "") for k in ("type", "note"))
        r.message = message(result, kind, note, None if code is None else int(code), r.ran)

    def _amounts(self, r: Record, fields: dict[str, Any]) -> None:
        cores, nodes, tasks = (None if (v := number_of(fields, k)) is None else int(v) for k in (
            "ncores", "nnodes", "ntasks"))
        if r.ran:
            r.processors = cores or None
            text = text_of(fields, "nodelist")
            r.node, n = self.nodes(text, r.line) if text else (None, None)
            r.nodes = nodes or n
            notes = fields.get("annotations")
            sched = notes.get("sched") if isinstance(notes, dict) else None
            summary = sched.get("resource_summary") if isinstance(sched, dict) else None
            gpus = gpus_of(summary) if isinstance(summary, str) else 0
            if gpus:
                r.delivered.append(leaf("Resource", Decimal(gpus), {"name": "GPU"}))
        elif cores:
            r.requested.append(leaf("Processors", cores))
        if tasks:
            r.more.append(("flux", "ntasks", str(tasks)))


def _rest(fields: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The members that no property has; of annotations each of its own, but the scheduler's list of resources."""
    for name, value in fields.items():
        if name == "annotations" and isinstance(value, dict):
            for kind, notes in value.items():
                if not isinstance(notes, dict):
                    yield f"annotations.{kind}", notes
                    continue
                yield from ((f"annotations.{kind}.{key}", note) for key, note in notes.items()
                            if key != "resource_summary")
        elif name not in _READ and value not in ([], {}):
            yield name, value


def _recognise(sample: Sample) -> Fit | None:
    """An object of jobs, the first of which has the time stamps of Flux; sacct's has other members."""
    fit = by_keys(sample, frozenset(("jobs",)))
    return Fit("a JSON object of jobs with t_submit") if fit and '"t_submit"' in sample.head else None


TRANSLATOR = translator("flux-jobs", "Flux jobs, flux jobs --json", _Members, recognise=_recognise)
