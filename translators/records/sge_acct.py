"""Format ``sge-acct``: the accounting file of Grid Engine and its descendants, colon separated, 45 fields or more.

    all.q:head:alice:alice:exit3.sh:2:sge:0:1795251032:1795251032:1795251032:0:3:0:0.002396:...

Every line is a run; tasks of an array carry their number, slaves of a parallel job (pe_taskid) are gathered until the
line of their master and become its TaskGroups: their CPU time adds up, their wall time does not. Times in milliseconds
(Univa from 8.2) are recognised. The file names no machine: option ``machine``.

Source: accounting(5) of 8.1.9; fields from 46 read off lines of Univa 8.x; recorded output of 8.1.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from operator import itemgetter
from typing import Final

from sssjob.document.element import Property
from sssjob.document.model import Job
from sssjob.findings import escape
from sssjob.lrm.sge import FAILED
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import by_beginning
from sssjob.translators.records._again import Once
from sssjob.translators.records._lines import Line
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

#: Words of the manager for some of them.
_WORDS: Final = {25: "rescheduled", 30: "asked for an error state", 37: "run time limit exceeded", 100: "killed",
                 28: "no such working directory"}
_LEAST: Final = 43
_BEYOND: Final = ("",) * 7      # for what later releases append
_SLAVES: Final = 100_000
_COLONS: Final = 9          # colons in a name or an account
_EPOCH: Final = 9           # digits of a time
_NO_ACCOUNT: Final = ("sge", "NONE")
_HALF, _MICRO = Decimal("0.5"), Decimal("0.000001")
_IN_BYTES, _IN_KB, _MEAN = ({"units": unit, "metric": metric} for unit, metric in (
    ("B", "Max"), ("KB", "Max"), ("GB", "Average")))
_who: Final = itemgetter(0, 2, 3, 31, 43, 49)
_OPTION: Final = re.compile(r"(?:^|\s)-(l|pe|q)\s+(\S+)(?:\s+(\d[\d,-]*))?", re.ASCII)


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
        if not fields[5].strip("0"):
            raise Rejected("id", "job number 0")
        fields += _BEYOND
        record = self._record(fields, line.number)
        key = fields[5], fields[35]
        if fields[41] not in ("NONE", ""):
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
        r.name = self.name(words(f[4]), "job_name")
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
            cpu, both = rounded(micros(f[36], "cpu")), _both(f[14], f[15])
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
        """The peak (maxrss of Univa, else ru_maxrss in KB) and the average, which mem holds in GB times CPU seconds.
        spent: microseconds of cpu, where they are known."""
        peak, units = number(f[47], "maxrss"), _IN_BYTES
        if not peak:
            peak, units = number(f[16], "ru_maxrss"), _IN_KB
        if peak:
            r.delivered.append(leaf("Memory", peak, units))
        held = None if spent is None else sixths(f[37])
        product, cpu = (number(f[37], "mem"), number(f[36], "cpu")) if held is None else (
            Decimal(held), Decimal(spent or 0))
        if product and cpu:
            r.delivered.append(leaf("Memory", (product / cpu).quantize(_MICRO), _MEAN))
        if (text := f[42].partition(".")[0].strip()) and text != "0":
            r.more.append(("LRM", "MaxVMSize", f"{text} B"))


def _both(one: str, other: str) -> int | None:
    """Whole seconds of ru_utime and ru_stime, half up. Rejected: number."""
    user, system = number(one, "ru_utime"), number(other, "ru_stime")
    return None if user is None or system is None else int(user + system + _HALF)


def _ending(texts: tuple[str, str, bool]) -> tuple[str, int | None, int | None, str, str]:
    """(the manager's state, exit code, signal, status that is neither, message) of failed and exit_status, and of
    whether the job ran. Above 128 and failed, the signal is what is over 128. Rejected: number."""
    told, status, ran = texts
    failed, code = count(told.partition(" ")[0], "failed"), count(status, "exit_status")
    native = f"failed={told}"
    if code is not None and code > 255:
        raise Rejected("number", f"exit_status {code} is over 255")
    if not failed:
        return native, code, None, "", ""
    why = FAILED.get(failed, "") if ran else "never-ran"
    text = f"failed {failed}" + (f" ({_WORDS[failed]})" if failed in _WORDS else "")
    message = f"{why}: {text}" if why else text
    if code is not None and code > 128:
        return native, None, code - 128, str(code), message
    return native, code, None, "", message


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
    """What the category says: ``-l h_rt=300,mem=50M -pe smp 2 -q short.q``. Lower case suffixes are 1000 based."""
    found: list[Property] = []
    for option, value, slots in _OPTION.findall(category):
        if option == "pe" and _digits(slots):
            found.append(leaf("Processors", int(slots)))
        elif option == "l":
            found += _limits(value)
    return tuple(found)


_REQUESTED: Final = Once(_requested)
_SLOTS: Final[Once[str, int | None]] = Once(lambda text: count(text, "slots") or None)


def _limits(text: str) -> Iterator[Property]:
    for item in text.split(","):
        name, _, value = item.partition("=")
        if name == "h_rt":
            if limit := rounded(micros(value, "h_rt") if value[:1].isdigit() else None):
                yield leaf("Duration", limit)
        elif name in ("h_vmem", "mem_free", "mem", "h_rss") and value[:1].isdigit():
            yield leaf("Extension", value, {"name": name, "type": "sge"})
        elif name in ("gpu", "gpus", "ngpus") and _digits(value) and len(value) < 10:
            yield leaf("Resource", Decimal(value), {"name": "GPU", "metric": "PerSlot"})
        elif value:
            yield leaf("Extension", value, {"name": name, "type": "sge"})


_FIRST: Final = re.compile(rf"(?:#[^\n]*\n)*+(?:[\w.@-]*+:){{2}}(?:[^:\n]*+:){{{_LEAST - 3},}}", re.ASCII)

_JOB: Final = re.compile(rb"\A(?:[^:]*+:){5}(\d++):")

TRANSLATOR = translator("sge-acct", "Grid Engine accounting file", _Reading, parting=Parting(_JOB),
                        recognise=lambda sample: by_beginning(sample, _FIRST, f"{_LEAST} fields parted by colons"))
