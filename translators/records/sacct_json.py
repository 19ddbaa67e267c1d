"""Format ``sacct-json``: what ``sacct --json`` prints (21.08 and later), read member by member.

    {"jobs": [{"job_id": 12, "user": "alice", "state": {"current": ["COMPLETED"]}, "time": {...}, "tres": {...}}]}

Numbers are plain or ``{set, infinite, number}``, a state is a word or a list of them. Each member becomes the rows
that the text form has, so both forms give equal jobs; where 22.05 leaves codes and CPU time out (0 for every normal
exit), they are absent here or summed from the steps. Up to 22.05.7 ``time.start`` holds the eligible time: then the
start is counted back from the end.

Source: the Slurm OpenAPI documents of dbv0.0.37 to v0.0.42; recorded output of 22.05.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO, Final

from sssjob.document.model import Job
from sssjob.lrm.slurm import job_id, member, number
from sssjob.translators.recognise import by_keys
from sssjob.translators.records._json import members
from sssjob.translators.records.base import Rejected, translator
from sssjob.translators.records.sacct import Rows

__all__ = ["TRANSLATOR"]

#: Column of the text form -> keys of a job.
_TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "jobname": ("name",), "cluster": ("cluster",), "user": ("user",), "group": ("group",), "account": ("account",),
    "wckey": ("wckey", "wckey"), "partition": ("partition",), "qos": ("qos",), "nodelist": ("nodes",),
    "reservation": ("reservation", "name"), "reason": ("state", "reason"), "comment": ("comment", "job"),
    "workdir": ("working_directory",), "sluid": ("sluid",),
}
_NUMBERS: Final[dict[str, tuple[str, ...]]] = {
    "submit": ("time", "submission"), "eligible": ("time", "eligible"), "start": ("time", "start"),
    "end": ("time", "end"), "elapsedraw": ("time", "elapsed"), "suspended": ("time", "suspended"),
    "timelimitraw": ("time", "limit"), "reqcpus": ("required", "CPUs"), "allocnodes": ("allocation_nodes",),
    "restarts": ("restart_cnt",),
}


#: Members of which others than those above are read, or which say what these do.
_READ: Final = frozenset((
    *(keys[0] for keys in (*_TEXTS.values(), *_NUMBERS.values())), "job_id", "array", "het", "exit_code",
    "derived_exit_code", "tres", "steps", "kill_request_user", "association"))
#: Members of which not all is read.
_PARTS: Final = {"comment": ("job",), "tres": ("allocated", "requested")}


class _Members(Rows):
    def jobs(self, file: BinaryIO) -> Iterator[Job]:
        """The jobs of the member ``jobs``; what breaks the document itself ends the reading."""
        found_jobs = members(file, "jobs", self.context.limits.child_bytes, self.tell)
        number = 1
        try:
            for number, member in found_jobs:
                yield from self.accepted(number, partial(self._member, member, number))
        except Rejected as why:
            self.counts.read += 1
            self.reject(number, why.reason, str(why))
        yield from self.rest()

    def _member(self, job: Any, number: int) -> Iterable[Job]:
        if not isinstance(job, dict):
            raise Rejected("json", f"a member of jobs is no object but {type(job).__name__}")
        steps = [("batch" if member(s, "step", "name") == "batch" else "step", _step(s)) for s in _list(job, "steps")]
        done = self.fold(self._job_row(job, number), number)
        assert self.run is not None
        part = next(reversed(self.run.parts.values()))
        self.rest_of(part.record, dict(_rest(job)))
        for name, texts in steps:
            self.step(part, name, texts[:-1], texts[-1])
        for step in _list(job, "steps"):
            part.gpus_worked(_busy(step), _digits(_number(member(step, "time", "elapsed"))), "")
        return done

    def _job_row(self, job: dict[str, Any], line: int) -> dict[str, str]:
        """The row of the text form."""
        ident = _number(member(job, "job_id"))
        if not ident:
            raise Rejected("id", "no job_id")
        row = {column: _text(member(job, *keys)) for column, keys in _TEXTS.items()}
        row |= {column: _digits(_number(member(job, *keys))) for column, keys in _NUMBERS.items()}
        row |= {"jobid": job_id(job), "jobidraw": str(ident), "state": _state(job),
                "exitcode": _code(job, "exit_code"), "derivedexitcode": _code(job, "derived_exit_code"),
                "alloctres": _tres(job, "allocated"), "reqtres": _tres(job, "requested"), "reqmem": _memory(job),
                "totalcpu": _seconds(member(job, "time", "total"))}
        killer = _text(member(job, "kill_request_user"))
        if row["state"] == "CANCELLED" and killer:
            row["state"] += f" by {killer}"
        if row["state"].startswith("FAILED") and row["exitcode"] == "0:0":
            row["exitcode"] = ""
            self.tell("SSS544", "ExitCode", "ExitCode: this release prints 0 for a job that failed; left out", line)
        self._started(row, line)
        return row

    def _started(self, row: dict[str, str], line: int) -> None:
        """Put right a start that is the eligible time."""
        start, end, elapsed = row["start"], row["end"], row["elapsedraw"]
        if start == row["eligible"] and start and end and elapsed and int(end) and int(elapsed):
            back = int(end) - int(elapsed) - int(row["suspended"] or 0)
            if back > int(start) + 2:
                self.tell("SSS541", "StartTime", f"StartTime: time.start is the eligible time {start}; {back}, the "
                          "end less the elapsed time, is taken", line)
                row["start"] = str(back)


def _rest(job: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The members that say something and that no property has."""
    for name, value in job.items():
        if name in _PARTS and isinstance(value, dict):
            yield from ((f"{name}.{key}", text) for key, text in value.items() if key not in _PARTS[name] and text)
        elif name not in _READ and value and not (isinstance(value, dict) and not any(value.values())):
            yield name, value


def _list(value: Any, *keys: str) -> list[Any]:
    value_there = member(value, *keys)
    return value_there if isinstance(value_there, list) else []


def _text(value: Any) -> str:
    """A text; empty for null and for the 0 that stands for no name."""
    if value is None or value == 0 or isinstance(value, (dict, list)):
        return ""
    return str(value)


def _number(value: Any) -> int | None:
    """A number, plain or with set and infinite. Rejected: number."""
    try:
        return number(value)
    except ValueError as error:
        raise Rejected("number", str(error)) from None


def _digits(value: int | None) -> str:
    return "" if value is None else str(value)


def _state(job: Any) -> str:
    current = member(job, "state", "current")
    return _text(current[0] if isinstance(current, list) and current else current)


def _code(job: Any, key: str) -> str:
    """``rc:sig``; empty where neither is there."""
    code = _number(member(job, key, "return_code"))
    signal = member(job, key, "signal", "id")
    number = _number(member(job, key, "signal", "signal_id") if signal is None else signal)
    return "" if code is None and not number else f"{code or 0}:{number or 0}"


def _tres(job: Any, key: str) -> str:
    """TRES as the text form prints them; memory is in MiB."""
    parts = []
    for item in _list(job, "tres", key):
        kind, name, n = _text(member(item, "type")), _text(member(item, "name")), _number(member(item, "count"))
        if kind and n is not None and "," not in name:
            parts.append(f"{kind}/{name}={n}" if name else f"{kind}={n}{'M' if kind == 'mem' else ''}")
    return ",".join(parts)


def _memory(job: Any) -> str:
    """ReqMem in MiB, a CPU or a node."""
    per_cpu, per_node = (_number(member(job, "required", f"memory_per_{x}")) for x in ("cpu", "node"))
    return f"{per_cpu}Mc" if per_cpu else f"{per_node}Mn" if per_node else ""


def _seconds(value: Any) -> str:
    seconds, part = _number(member(value, "seconds")), _number(member(value, "microseconds"))
    return "" if seconds is None else f"{seconds}.{part or 0:06d}"


def _step(step: Any) -> tuple[str, ...]:
    """What a step used, as ``Rows.step`` takes it: it stands under ``requested`` in spite of the name, in bytes."""
    peaks = {_text(member(peak, "type")): _size(_number(member(peak, "count")))
             for peak in _list(step, "tres", "requested", "max")}
    return (_seconds(member(step, "time", "total")), "", "", peaks.get("mem", ""), peaks.get("vmem", ""),
            _code(step, "exit_code"))


def _busy(step: Any) -> str:
    """How busy the GPUs were in a step, as the text form prints it in TRESUsageInTot."""
    shares = [_number(member(used, "count")) for used in _list(step, "tres", "requested", "total")
              if (member(used, "type"), member(used, "name")) == ("gres", "gpuutil")]
    return f"gres/gpuutil={shares[0]}" if shares and shares[0] is not None else ""


def _size(value: int | None) -> str:
    """Bytes as the text form prints them."""
    return _digits(value) if not value or value % 1024 else f"{value // 1024}K"


TRANSLATOR = translator("sacct-json", "Slurm accounting, sacct --json", _Members, (".json",),
                        recognise=lambda sample: by_keys(sample, frozenset(("jobs",)), frozenset(("meta", "errors"))))
