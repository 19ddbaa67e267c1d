"""Format ``flux-jobs``: what ``flux jobs -a --json`` prints, read member by member.

    {"jobs": [{"jobid": "fS8Lq1y", "id": 3, "username": "alice", "t_submit": 1.5, "t_run": 2.5, "result": ...}]}

A job that was never allocated has no t_run: it has no start here. EndTime is t_cleanup, when the last task had ended,
and the wall time is what lies between both, rounded once; CPU time and memory are not reported. GPUs are counted in the
summary of resources that the scheduler adds. Empty members are absent from the JSON.

Source: flux-jobs(1) and the job-list fields of flux-core; recorded output of 0.88.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, BinaryIO, Final

from sssjob.findings import escape
from sssjob.model import Job
from sssjob.translators.recognise import Fit, Sample, by_keys
from sssjob.translators.records._json import members
from sssjob.translators.records.base import (
    UNFORESEEN,
    Reading,
    Record,
    Rejected,
    leaf,
    moment,
    number,
    translator,
    unforeseen,
)

__all__ = ["TRANSLATOR", "gpus_of"]

_STATES: Final = {"INACTIVE": "Completed", "RUN": "Running", "CLEANUP": "Running", "SCHED": "Idle", "PRIORITY": "Idle",
                  "DEPEND": "Idle", "NEW": "Idle"}
_REASONS: Final = {"CANCELED": "cancel", "TIMEOUT": "timeout", "FAILED": "failed"}
_CANCELLED: Final = -128        # returncode of a job that was cancelled before it ran
_RANKS: Final = re.compile(r"rank(\d+|\[[\d,-]+\])/(\S+)", re.ASCII)
_GPUS: Final = re.compile(r"gpu(\d+|\[[\d,-]+\])", re.ASCII)


class _Members(Reading):
    def jobs(self, file: BinaryIO) -> Iterator[Job]:
        """The jobs of the member ``jobs``; what breaks the document itself ends the reading."""
        at = 1
        try:
            for at, member in members(file, "jobs", self.context.limits.child_bytes):
                self.counts.read += 1
                try:
                    job = self.given(self._record(member, at))
                    self.counts.given += 1
                except Rejected as why:
                    self.reject(at, why.reason, str(why))
                except UNFORESEEN as error:
                    self.reject(at, "unread", unforeseen(error))
                else:
                    yield job
        except Rejected as why:
            self.counts.read += 1
            self.reject(at, why.reason, str(why))

    def _record(self, job: Any, line: int) -> Record:
        if not isinstance(job, dict):
            raise Rejected("json", f"a member of jobs is no object but {type(job).__name__}")
        said: dict[str, Any] = {k: v for k, v in job.items() if v not in (None, "")}
        native, ident = said.get("id"), _text(said, "jobid")
        if ident is None and not (isinstance(native, int) and not isinstance(native, bool)):
            raise Rejected("id", "neither jobid nor id")
        r = Record(line, self.name(ident or str(native), "jobid") or "", machine=self.machine)
        r.name = self.name(_text(said, "name"), "name")
        r.user = self.name(_text(said, "username") or _text(said, "userid"), "username")
        r.project = self.name(_text(said, "bank"), "bank")
        r.queue = self.name(_text(said, "queue"), "queue")
        r.directory = self.name(_text(said, "cwd"), "cwd")
        if native is not None and ident is not None:
            r.more.append(("LRM", "JobIDRaw", str(native)[:40]))
        for name in ("project", "urgency", "priority"):
            if (text := _text(said, name)) is not None:
                r.more.append(("flux", name, text))
        self._times(r, said)
        self._state(r, said)
        self._amounts(r, said)
        return r

    def _times(self, r: Record, said: dict[str, Any]) -> None:
        at = {name: _number(said, name) for name in ("t_submit", "t_sched", "t_run", "t_cleanup", "t_inactive")}
        r.submit, r.eligible, r.start, r.end = (
            None if (v := at[name]) is None else moment(int(v), name) for name in (
                "t_submit", "t_sched", "t_run", "t_cleanup"))
        begun, ended = at["t_run"], at["t_cleanup"]
        span = None if begun is None or ended is None else _whole(max(Decimal(0), ended - begun))
        runtime = _number(said, "runtime")
        r.wall = self.first("Duration", r.line, ("t_cleanup - t_run", span), (
            "runtime", _whole(runtime) if runtime is not None and begun is not None and ended is not None else None))
        r.ran = begun is not None
        if (asked := _number(said, "duration")) and _whole(asked):
            r.requested.append(leaf("Duration", _whole(asked)))

    def _state(self, r: Record, said: dict[str, Any]) -> None:
        state, result = _text(said, "state") or "", _text(said, "result") or ""
        r.native = result or state
        r.state = _STATES.get(state, "Completed" if result else "Idle")
        if r.state == "Idle" and said.get("urgency") == 0:
            r.state, r.hold = "Hold", "User"
        code = _number(said, "returncode", signed=True)
        if code is not None and code >= 0:
            if code > 255:
                raise Rejected("number", f"returncode {code} is over 255")
            r.exit_code = int(code)
        elif code is not None and code != _CANCELLED:
            r.signal = -int(code)
        if result in _REASONS:
            told = said.get("exception")
            told = told if isinstance(told, dict) and told.get("occurred") else {}
            why = "launch" if result == "FAILED" and not r.ran else _REASONS[result]
            kind, note = (str(told.get(k) or "") for k in ("type", "note"))
            said_why = ": ".join(filter(None, (kind, note))) or (
                f"returncode {code}" if code is not None else result.lower())
            r.message = f"{why}: {escape(said_why, 500)}"

    def _amounts(self, r: Record, said: dict[str, Any]) -> None:
        cores, nodes, tasks = (None if (v := _number(said, k)) is None else int(v) for k in (
            "ncores", "nnodes", "ntasks"))
        if r.ran:
            r.processors = cores or None
            text = _text(said, "nodelist")
            r.node, n = self.nodes(text, r.line) if text else (None, None)
            r.nodes = nodes or n
            notes = said.get("annotations")
            sched = notes.get("sched") if isinstance(notes, dict) else None
            summary = sched.get("resource_summary") if isinstance(sched, dict) else None
            gpus = gpus_of(summary) if isinstance(summary, str) else 0
            if gpus:
                r.delivered.append(leaf("Resource", Decimal(gpus), {"name": "GPU"}))
        elif cores:
            r.requested.append(leaf("Processors", cores))
        if tasks:
            r.more.append(("flux", "ntasks", str(tasks)))


def gpus_of(summary: str) -> int:
    """How many GPUs ``rank[0-1]/core[0-3],gpu[0-1]`` names."""
    return sum(_members_of(ranks) * sum(_members_of(ids) for ids in _GPUS.findall(held))
               for ranks, held in _RANKS.findall(summary[:100_000]))


def _members_of(ids: str) -> int:
    """How many numbers an idset has."""
    total = 0
    for piece in ids.strip("[]").split(","):
        low, dash, high = piece.partition("-")
        total += max(0, int(high[:9]) - int(low[:9]) + 1) if dash and low and high else bool(low)
    return total


def _text(said: dict[str, Any], name: str) -> str | None:
    value = said.get(name)
    return None if value is None or isinstance(value, (dict, list, bool)) else str(value)


def _number(said: dict[str, Any], name: str, *, signed: bool = False) -> Decimal | None:
    """A number; None where it is absent, or negative and not signed. Rejected: number."""
    value = said.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Rejected("number", f"{name} {escape(str(value), 40)!r} is no number")
    found = number(str(abs(value)), name)
    if found is None or value >= 0:
        return found
    return -found if signed else None


def _whole(value: Decimal) -> int:
    return int(value.quantize(Decimal(1), ROUND_HALF_UP))


def _recognise(sample: Sample) -> Fit | None:
    """An object of jobs, the first of which has the time stamps of Flux; sacct's has other members."""
    found = by_keys(sample, frozenset(("jobs",)))
    return Fit("a JSON object of jobs with t_submit") if found and '"t_submit"' in sample.head else None


TRANSLATOR = translator("flux-jobs", "Flux jobs, flux jobs --json", _Members, recognise=_recognise)
