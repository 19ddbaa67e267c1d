"""Rows of sacct while they come: what their columns say, the runs and parts that they make, and what those come to.

Source: sacct(1), Job Accounting Fields; recorded output of 22.05.8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from operator import itemgetter
from typing import Final, NamedTuple

from sssjob.document.element import Property
from sssjob.document.kinds import CLASSES
from sssjob.document.units import to_bytes
from sssjob.findings import escape
from sssjob.lrm.slurm import CODED, exit_of, state_of
from sssjob.translators.records._again import Once
from sssjob.translators.records._slurm import ending, merged
from sssjob.translators.records.base import Record, Rejected, amount, count, leaf, micros, rounded, thousands, words

EXTENSIONS: Final = {"wckey": "WCKey", "derivedexitcode": "DerivedExitCode", "comment": "Comment",
                     "sluid": "SLUID"}
_EXIT: Final = re.compile(r"-?\d{0,20}(?::-?\d{0,20})?", re.ASCII)
_BUSY: Final = re.compile(r"(?:^|,)gres/gpuutil=(\d{1,9})(?:,|$)", re.ASCII)
SIGNALS: Final[Once[str, int | None]] = Once(lambda text: _code(text)[1])
_Resource: Final = CLASSES["Resource"]
_ENERGY: Final = {"name": "Energy", "units": "J"}
_PEAKS: Final[Once[str, dict[str, str]]] = Once(lambda unit: {"units": unit, "metric": "Max"})

#: Sections of a row: columns that together say one thing.
_WHO: Final = ("user", "uid", "group", "gid", "account", "cluster", "partition", "qos", "reservation")
_TIMES: Final = ("submit", "eligible", "start", "end", "elapsedraw", "elapsed", "suspended", "restarts")
_ENDED: Final = ("state", "exitcode", "reason")
COUNTED: Final = ("reqcpus", "reqnodes", "alloccpus", "ncpus", "allocnodes", "nnodes")
_HELD: Final = ("alloctres", "reqtres", "reqmem", "nodelist", "cputimeraw", "timelimitraw", "timelimit", *COUNTED)
_USED: Final = ("totalcpu", "usercpu", "systemcpu", "maxrss", "maxvmsize")
_MEASURED: Final = ("tresusageintot", "elapsedraw", "elapsed")
_MORE: Final = ("jobname", "workdir", "jobidraw", "planned", "reserved", "consumedenergyraw", "consumedenergy",
                *EXTENSIONS)
#: The texts of a section.
Texts = tuple[str, ...]
#: An amount and its unit.
_Size = tuple[Decimal, str]


class Columns:
    """Columns of one order: of each section where its texts stand in a row, whose last text is empty for what is not
    there."""

    __slots__ = ("ended", "exit", "held", "id", "measured", "more", "names", "states_tres", "times", "used", "who")

    def __init__(self, names: Texts) -> None:
        self.names = names
        place = {name: i for i, name in enumerate(names)}
        self.id, self.exit = place.get("jobid", -1), place.get("exitcode", -1)
        self.who, self.times, self.ended, self.held, self.used, self.more = (
            itemgetter(*(place.get(name, -1) for name in section))
            for section in (_WHO, _TIMES, _ENDED, _HELD, _USED, _MORE))
        self.measured = itemgetter(*(place.get(name, -1) for name in _MEASURED)) if _MEASURED[0] in place else None
        self.states_tres = "alloctres" in place


class Part:
    """A component of a run while its rows come: its record, the CPU time of its own row, and what the steps add. CPU
    time in microseconds, GPU time in hundredths of a second. What nobody says stands in the class."""

    cpu: int | None = None
    peak: _Size | None = None
    swap: _Size | None = None
    signal: int | None = None
    gpu: int | None = None

    def __init__(self, record: Record, own: int | None) -> None:
        self.record, self.own = record, own

    def grow(self, peak: _Size | None, swap: _Size | None) -> None:
        """Keep the greatest sizes."""
        self.peak, self.swap = _greater(self.peak, peak), _greater(self.swap, swap)

    def gpus_worked(self, texts: str, raw: str, clock: str) -> None:
        """Add how long the GPUs worked in a step: of each the per cent of the time that it was busy, of all together
        their sum. texts: of TRESUsageInTot."""
        busy = _BUSY.search(texts)
        elapsed = count(raw, "ElapsedRaw") if raw else rounded(micros(clock, "Elapsed"))
        if busy is not None and elapsed is not None:
            self.gpu = (self.gpu or 0) + int(busy[1]) * elapsed


def _greater(old: _Size | None, new: _Size | None) -> _Size | None:
    if old is None or new is None:
        return new or old
    return new if to_bytes(*new) > to_bytes(*old) else old


class RunRows:
    """A run of a job while its rows come, by index of the component."""

    __slots__ = ("base", "parts")

    def __init__(self, base: str) -> None:
        self.base = base
        self.parts: dict[str, Part] = {}


class RowCounts(NamedTuple):
    """What the columns of counts of a row say. requested: Processors and NodeCount that were asked for."""

    processors: int | None
    nodes: int | None
    requested: tuple[Property, ...]


def _ending(texts: Texts) -> tuple[str, int | None, int | None, str, tuple[str, str, str | None, bool]]:
    """(the manager's state, signal, exit code, status that is neither, what ``ending`` gives) of State, ExitCode and
    Reason. Rejected: number."""
    state, exits, reason = texts
    native = words(state) or ""
    code, signal = _code(exits)
    if code is not None and (signal or not (code or native.partition(" ")[0] in CODED)):
        code = None
    known_state = state_of(native)     # by its word alone, which does not say who cancelled the job
    return (native if known_state is None else known_state.word, signal or None, code, exits if code is None else "",
            ending(native, reason, signal or None))


ENDS: Final = Once(_ending)


def whole_record(run: RunRows) -> Record:
    """The record of a run, of its components what they add up to."""
    for part in run.parts.values():
        _finish(part)
    if len(run.parts) == 1 and (only := run.parts.get("")) is not None:
        return only.record
    records = [part.record for part in run.parts.values()]
    first = records[0]
    job = Record(first.line, run.base, first.machine)
    job.name, job.heading, job.directory = first.name, first.heading, first.directory
    job.submit, job.eligible = first.submit, first.eligible
    job.state, job.hold, job.native, job.exit_status = first.state, first.hold, first.native, first.exit_status
    job.more, job.starts = [more for more in first.more if more[1] != "GpuDuration"], first.starts
    worked = [part.gpu for part in run.parts.values() if part.gpu is not None]
    if len(worked) == len(records):
        job.more.append(_worked(sum(worked)))
    merged(job, records)
    return job


def _finish(part: Part) -> None:
    """Put into the record of a job what its steps said."""
    r = part.record
    if part.peak:
        r.delivered.append(leaf("Memory", part.peak[0], _PEAKS[part.peak[1]]))
    if part.swap:
        r.more.append(("LRM", "MaxVMSize", f"{part.swap[0]:f} {part.swap[1]}"))
    if part.gpu is not None and r.ran:
        r.more.append(_worked(part.gpu))
    used = part.own or part.cpu         # sacct -X prints 0 for the job and no step
    r.cpu = rounded(part.own if used is None and not r.wall else used)
    if r.signal is None and r.exit_code is None and part.signal and r.state == "Completed" and r.ran:
        r.signal = part.signal


def _worked(hundredths: int) -> tuple[str, str, str]:
    """The Extension of how long GPUs worked."""
    return "LRM", "GpuDuration", str((hundredths + 50) // 100)


def energy_of(texts: list[str]) -> Property | None:
    """The energy of ConsumedEnergyRaw, else of ConsumedEnergy; None where neither says one. Rejected: number."""
    raw, rounded_text = texts
    energy = (thousands(raw, "consumedenergyraw") if raw else None) or (
        thousands(rounded_text, "consumedenergy") if rounded_text else None)
    return _Resource("Resource", energy, _ENERGY) if energy else None


def time_limit(text: str, name: str) -> int | None:
    """Seconds of TimelimitRaw (minutes) or Timelimit; None for UNLIMITED and Partition_Limit. Rejected: number."""
    if name == "Timelimit":
        return rounded(micros(text, name)) if text[:1].isdigit() else None
    minutes = count(text, name)
    return None if minutes is None else minutes * 60


def asked_memory(text: str, name: str) -> Property | None:
    """The memory of ReqMem, per processor (``4Gc``), per node (``4Gn``) or in all. Rejected: number."""
    per = {"c": "PerProcessor", "n": "PerNode"}.get(text[-1:], "")
    size = amount(text[:-1] if per else text, name, "MB")
    return None if size is None or not size[0] else leaf(
        "Memory", size[0], {"units": size[1], "metric": per or "Total"})


def _code(text: str) -> tuple[int | None, int | None]:
    """(exit code, signal) of ``rc:sig``."""
    code, signal = exit_of(text)
    if not _EXIT.fullmatch(text):
        raise Rejected("number", f"ExitCode {escape(text, 40)!r} is not of the form code:signal")
    return code, signal


def using(texts: Texts) -> tuple[int | None, _Size | None, _Size | None]:
    """(microseconds of TotalCPU, else of UserCPU and SystemCPU; the peaks of memory and swap that were sampled) of a
    row. Rejected: number."""
    total, user, system, peak, swap = texts
    used = micros(total, "TotalCPU")
    if used is None and (user or system):
        parts = micros(user, "UserCPU"), micros(system, "SystemCPU")
        used = None if parts == (None, None) else (parts[0] or 0) + (parts[1] or 0)
    return used, _size(peak, "maxrss") if peak else None, _size(swap, "maxvmsize") if swap else None


def _size(text: str, column: str) -> _Size | None:
    """A size that was sampled: empty and 0 were not."""
    size = amount(text, column)
    return size if size is not None and size[0] else None


def job_of(head: bytes, options: Mapping[str, str]) -> Callable[[bytes], bytes] | None:
    """Of a row the number of its job, that of its steps, components and other runs too; None where the first line names
    no columns."""
    names = [n.strip().partition(b"%")[0].lower() for n in head.split(b"|")]
    if b"jobid" not in names or options.get("columns") is not None or options.get("delimiter", "|") != "|":
        return None
    at = names.index(b"jobid")

    def job(line: bytes) -> bytes:
        """The number of the job that a row is about; empty in a row that is cut off."""
        fields = line.split(b"|", at + 1)
        return fields[at].partition(b".")[0].partition(b"+")[0] if at < len(fields) else b""

    return job
