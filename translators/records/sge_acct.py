"""Format ``sge-acct``: the accounting file of Grid Engine and its descendants, colon separated, 45 fields or more.

    all.q:head:alice:alice:exit3.sh:2:sge:0:1795251032:1795251032:1795251032:0:3:0:0.002396:...

Every line is a run; tasks of an array carry their number, slaves of a parallel job (pe_taskid) are gathered until the
line of their master and become its TaskGroups: their CPU time adds up, their wall time does not. Times in milliseconds
(Univa from 8.2) are recognised. The file names no machine: option ``machine``.

Source: accounting(5) of 8.1.9; fields from 46 read off lines of Univa 8.x; recorded output of 8.1.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from operator import itemgetter
from typing import Final

from sssjob.document.element import Property
from sssjob.document.model import Job
from sssjob.findings import escape
from sssjob.lrm.sge import FAILED, FAILURES, ended, peak, requested, seconds
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import by_beginning
from sssjob.translators.records._again import Once
from sssjob.translators.records._lines import Line
from sssjob.translators.records._values import BYTES, FLOAT, cpu_of
from sssjob.translators.records.base import (
    Heading,
    Parting,
    Reading,
    Record,
    Rejected,
    count,
    heading,
    leaf,
    micros,
    number,
    rounded,
    sixths,
    translator,
    words,
)

__all__ = ["TRANSLATOR"]

_LEAST: Final = 43
_BEYOND: Final = ("",) * 7      # for what later releases append
_SLAVES: Final = 100_000
_COLONS: Final = 9          # colons in a name or an account
_CATEGORY: Final = 100      # colons in a category
_NO_TASK: Final = ("NONE", "")
_TASK: Final = re.compile(r"NONE|\d+\.[^:]*[A-Za-z][^:]*", re.ASCII)      # ``1.node7``, as a slave has
_EPOCH: Final = 9           # digits of a time
_NO_ACCOUNT: Final = ("sge", "NONE")
_MICRO: Final = Decimal("0.000001")
_PEAKS: Final = {letter: {"units": BYTES[letter], "metric": "Max"} for letter in ("", "K")}
_MEAN: Final = {"units": "GB", "metric": "Average"}
_SIZES: Final = {"maxrss": 47, "ru_maxrss": 16}         # where a field stands
_who: Final = itemgetter(0, 2, 3, 31, 43, 49)


class _Reading(Reading):
    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self.slaves: dict[tuple[str, str], list[Record]] = {}
        self.held = 0
        self.texts: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self.who = Once(self._names)
        self.ends = Once(_ending)
        self.hosts = Once(self._node, self.findings)
        self.at = 0         # the line that findings about hosts are for

    def skips(self, line: Line) -> bool:
        """Comments and empty lines."""
        text = line.text
        return len(text.strip()) < 2 or text[0] == "#"

    def take(self, line: Line) -> Iterable[Job]:
        """Add one line; gives the jobs that are whole with it."""
        fields = line.text.split(":")
        if len(fields) < _LEAST:
            raise Rejected("columns", f"{len(fields)} fields, not {_LEAST} or more")
        if not (fields[5].isdigit() and fields[8].isdigit()):
            fields = self._unshifted(fields)
            if len(fields) < _LEAST:
                raise Rejected("columns", f"{len(fields)} fields, not {_LEAST} or more")
        if fields[41] not in _NO_TASK:
            fields = _with_category(fields)
        if not fields[5].strip("0"):
            raise Rejected("id", "job number 0")
        fields += _BEYOND
        record = self._record(fields, line.number)
        key = fields[5], fields[35]
        if fields[41] not in _NO_TASK:
            if self.held >= _SLAVES:
                raise Rejected("too-long", f"more than {_SLAVES} slaves of parallel jobs wait for their master")
            record.id, record.requested = fields[41], []
            self.slaves.setdefault(key, []).append(record)
            self.held += 1
            if self.keeping:
                self.texts.setdefault(key, []).append((line.number, line.text))
            return ()
        if self.slaves and (slaves := self.slaves.pop(key, [])):
            self.texts.pop(key, None)
            self.held -= len(slaves)
            _gather(record, slaves)
        return (self.given(record),)

    def rest(self) -> Iterable[Job]:
        """Slaves whose own record did not come are rejected."""
        for (ident, _), slaves in self.slaves.items():
            for slave in slaves:
                self.reject(slave.line, "orphan", f"slave of job {ident}, whose own record is not here", taken=1)
        self.slaves.clear()
        return ()

    def unfinished(self) -> Iterable[str]:
        """Lines of slaves whose own record has not come yet."""
        return (text for _, text in sorted(line for lines in self.texts.values() for line in lines))

    def _unshifted(self, fields: list[str]) -> list[str]:
        """Fields of a line with colons in its job name or account: the times say how many."""
        for names in range(1, _COLONS):
            for accounts in range(1, _COLONS):
                at = 4 + names                  # the job number; the account follows, the priority, three times
                times = at + accounts + 2
                if (times + 2 < len(fields) and fields[at].strip("0") and len(fields[times]) >= _EPOCH
                        and all(_digits(fields[i]) for i in (at, times, times + 1, times + 2))):
                    return [*fields[:4], ":".join(fields[4:at]), fields[at], ":".join(fields[at + 1:times - 1]),
                            *fields[times - 1:]]
        raise Rejected("columns", f"job number {escape(fields[5], 40)!r} is no whole number")

    def _record(self, f: list[str], line: int) -> Record:
        task = f[35]
        array = None if task in ("0", "") else (f[5], task)
        r = Record(line, f[5] if array is None else f"{f[5]}.{task}", self.machine)
        r.heading, r.array = self.who[_who(f)], array
        r.name = self.free_text(words(f[4]), "job_name", line)
        if (account := f[6]) not in _NO_ACCOUNT and (text := words(account, *_NO_ACCOUNT)) is not None:
            r.more.append(("sge", "Account", text))
        r.submit = self.time(f[8], "submission_time", line)
        r.start = self.time(f[9], "start_time", line)
        r.end = self.time(f[10], "end_time", line)
        r.ran = r.start is not None
        r.native, r.exit_code, r.signal, r.exit_status, r.message = self.ends[f[11], f[12], r.ran]
        self._used(r, f)
        r.requested += _REQUESTED[f[39]]
        if f[33] != "NONE" and words(f[33], "NONE"):
            r.more.append(("sge", "ParallelEnvironment", f[33]))
        return r

    def _names(self, texts: tuple[str, ...]) -> Heading:
        qname, group, owner, project, booked, host = texts
        return heading(
            self.name(words(owner), "owner"), self.name(words(group), "group"),
            self.name(words(project, "NONE"), "project"), self.machine, self.name(words(qname), "qname"), None,
            self.name(booked, "arid") if booked.strip("0") else None, self.name(words(host), "submit_host"))

    def _used(self, r: Record, f: list[str]) -> None:
        """Wall time is ru_wallclock, but 0 there says nothing where the clock says otherwise."""
        span = r.end - r.start if r.end is not None and r.start is not None else None
        wall = rounded(micros(f[13], "ru_wallclock"))
        if wall and wall == span:
            r.wall = wall
        else:
            r.wall = self.first("Duration", r.line, ("ru_wallclock", wall or None), ("end_time - start_time",
                                None if span is None else max(0, span)))
        spent, user, system = sixths(f[36]), sixths(f[14]), sixths(f[15])
        if spent is not None and user is not None and system is not None:
            cpu, both = rounded(spent), rounded(user + system)
        else:
            cpu, both = rounded(micros(f[36], "cpu")), cpu_of(f[14], f[15])
        r.cpu = cpu if both == cpu else self.first("CpuDuration", r.line, ("cpu", cpu),
                                                   ("ru_utime + ru_stime", both or None))
        r.processors = _SLOTS[f[34]]
        if r.ran:
            self.at = r.line
            r.node = self.hosts[f[1]]
            if r.processors == 1 and r.node is not None:
                r.nodes = 1         # of more slots the line names the first host only
        self._memory(r, f, spent)

    def _node(self, text: str) -> Property | None:
        return self.nodes(text, self.at)[0] if words(text, "UNKNOWN") else None

    def _memory(self, r: Record, f: list[str], spent: int | None) -> None:
        """The peak and the average, which mem holds in GB times CPU seconds. spent: microseconds of cpu, where they are
        known."""
        if size := peak(lambda name: number(f[_SIZES[name]], name)):
            r.delivered.append(leaf("Memory", size[0], _PEAKS[size[1]]))
        held = None if spent is None else sixths(f[37])
        product, cpu = (number(f[37], "mem"), number(f[36], "cpu")) if held is None else (
            Decimal(held), Decimal(spent or 0))
        if product and cpu:
            r.delivered.append(leaf("Memory", (product / cpu).quantize(_MICRO), _MEAN))
        if (text := f[42].partition(".")[0].strip()) and text != "0":
            r.more.append(("LRM", "MaxVMSize", f"{text} B"))


def _ending(texts: tuple[str, str, bool]) -> tuple[str, int | None, int | None, str, str]:
    """(the manager's state, exit code, signal, status that is neither, message) of failed and exit_status, and of
    whether the job ran. Rejected: number."""
    failed_code, status, ran = texts
    failed, code = count(failed_code.partition(" ")[0], "failed"), count(status, "exit_status")
    native = f"failed={failed_code}"
    if code is not None and code > 255:
        raise Rejected("number", f"exit_status {code} is over 255")
    if not failed:
        return native, code, None, "", ""
    why = FAILED.get(failed, "") if ran else "never-ran"
    text = f"failed {failed}" + (f" ({FAILURES[failed]})" if failed in FAILURES else "")
    message = f"{why}: {text}" if why else text
    exit_code, signal = ended(failed, code)
    return native, exit_code, signal, "" if signal is None else status, message


def _with_category(fields: list[str]) -> list[str]:
    """Fields of a line with colons in its category, as ``-l h_rt=24:00:00`` has: iow, pe_taskid and maxvmem, which have
    forms of their own, stand behind it, and are followed by two fields, by none, or of other releases by more."""
    length = len(fields)
    for at in (length - 5, length - 3, *range(40, min(length - 2, 40 + _CATEGORY))):
        iow, task, peak_size = fields[at:at + 3]
        if at >= 40 and FLOAT.fullmatch(iow) and _TASK.fullmatch(task) and FLOAT.fullmatch(peak_size):
            return fields if at == 40 else [*fields[:39], ":".join(fields[39:at]), *fields[at:]]
    return fields


def _digits(text: str) -> bool:
    return text.isdigit() and text.isascii()


def _gather(master: Record, slaves: list[Record]) -> None:
    """Add to the master's record what its slaves used."""
    own = Record(master.line, "master")
    own.wall, own.node, own.delivered = master.wall, master.node, master.delivered
    master.cpu = sum(r.cpu or 0 for r in (master, *slaves))
    for slave in slaves:
        slave.processors = None         # the slots are those of the whole job
    master.parts = [own, *slaves]
    hosts = {p.text: None for r in master.parts for p in (r.node,) if p is not None}
    master.nodes = len(hosts)
    master.node = leaf("Node", ",".join(hosts), {"aggregation": "List"}) if len(hosts) > 1 else own.node


def _requested(category: str) -> tuple[Property, ...]:
    """What a category asks for."""
    return tuple(p for name, value in requested(category) if (p := _request(name, value)) is not None)


_REQUESTED: Final = Once(_requested)
_SLOTS: Final[Once[str, int | None]] = Once(lambda text: count(text, "slots") or None)


def _request(name: str, value: str) -> Property | None:
    """A request as a property; None where it asks for no limit. A value of another form than it should have is kept as
    an Extension."""
    if name == "pe":
        return leaf("Processors", int(value)) if _digits(value) else None
    if name == "h_rt":
        with suppress(ValueError):
            limit = seconds(value)
            return leaf("Duration", limit) if limit else None
    elif name in ("gpu", "gpus", "ngpus") and _digits(value) and len(value) < 10:
        return leaf("Resource", Decimal(value), {"name": "GPU", "metric": "PerSlot"})
    return leaf("Extension", value, {"name": name, "type": "sge"})


_FIRST: Final = re.compile(rf"(?:#[^\n]*\n)*+(?:[\w.@-]*+:){{2}}(?:[^:\n]*+:){{{_LEAST - 3},}}", re.ASCII)

_JOB: Final = re.compile(rb"\A(?:[^:]*+:){5}(\d++):")

TRANSLATOR = translator("sge-acct", "Grid Engine accounting file", _Reading, parting=Parting(_JOB),
                        recognise=lambda sample: by_beginning(sample, _FIRST, f"{_LEAST} fields parted by colons"))
