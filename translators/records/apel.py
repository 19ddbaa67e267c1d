"""Format ``apel``: individual job messages of APEL, read (v0.1 to v0.4) and written (v0.3, v0.4).

    APEL-individual-job-message: v0.3
    Site: SITE-A
    LocalJobId: 31564872
    WallDuration: 234256
    ...
    %%

Lines ``Key: value``; ``%%`` ends a record; none, null and nothing are no value. What only the grid knows stands in
Extensions of type Grid: Site, Infrastructure, InfrastructureDescription, VO, VOGroup, VORole, FQAN, ServiceLevel
(``HEPSPEC 11.4``, several parted by commas). After 1000 records a new message begins, as the receiver takes them.
Options of writing: ``version`` (0.3, the default, or 0.4), ``site``, ``vo`` and ``benchmark`` (``_grid``) where the
job names none, ``created``: epoch seconds after which, and two days, no job may end (default: now). Summaries, sync and
cloud messages are no jobs and are rejected so; ``apel-summary`` writes summaries.

Source: the message formats of APEL; its published test messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from sssjob.document.model import Job
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.recognise import by_beginning
from sssjob.translators.records._grid import benchmarks, vo_of
from sssjob.translators.records._lines import Line
from sssjob.translators.records._usage import GRID, Taking, Telling, whole
from sssjob.translators.records.base import Reading, Record, Rejected, count, leaf, number, translator
from sssjob.translators.records.car import TABLES_ONLY, invented, site_of

__all__ = ["HEADER", "MESSAGE", "NULL", "TRANSLATOR", "TYPES", "MessageReading", "benchmarks_of", "option"]

MESSAGE: Final = 1000           # records of one message
_FIELDS: Final = 256            # lines of one record
_AHEAD: Final = 2 * 86_400
NULL: Final = ("", "none", "null")
_HEADER: Final = re.compile(r"APEL-([a-z-]+)-message:\s*v(\d{1,3}\.\d{1,3})\s*", re.ASCII)
TYPES: Final = {"individual-job": "", "summary-job": "summary", "normalised-summary": "summary"}
#: Key -> field of Record.
_TEXTS: Final = {"SubmitHost": "submit_host", "MachineName": "machine", "Queue": "queue", "LocalUserId": "user"}
_GRID: Final = {"Site": "Site", "FQAN": "FQAN", "VO": "VO", "VOGroup": "VOGroup", "VORole": "VORole",
                "InfrastructureType": "Infrastructure", "InfrastructureDescription": "InfrastructureDescription"}
_NUMBERS: Final = {"WallDuration": "wall", "CpuDuration": "cpu", "Processors": "processors", "NodeCount": "nodes"}
_TIMES: Final = {"StartTime": "start", "EndTime": "end"}


# --- reading ------------------------------------------------------------------------------------------------------

class MessageReading(Reading):
    """One pass over messages."""

    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self.kind: str | None = None
        self.fields: dict[str, str] = {}
        self.first_line = 0
        self.wrong: Rejected | None = None
        self.texts: list[str] = []

    def skips(self, line: Line) -> bool:
        """Gathers the lines of a record; the line that ends it is the record."""
        text = line.text.strip()
        if text == "%%":
            return not self.fields and self.wrong is None
        if not text:
            return True
        header = _HEADER.fullmatch(text)
        if header:
            self.kind = header[1]
            return True
        self.first_line = self.first_line or line.number
        if self.keeping:
            self.texts.append(line.text)
        key, sign, value = text.partition(":")
        if line.note:
            self.tell("SSS542", "encoding", f"{line.note}, written as \\x and their code", line.number)
        if line.long or len(self.fields) >= _FIELDS:
            self.wrong = Rejected("too-long", f"longer than the limit text ({self.context.limits.text} bytes)"
                                  if line.long else f"more than {_FIELDS} lines")
        elif not sign:
            self.wrong = self.wrong or Rejected("columns", f"{escape(text, 60)!r} is not of the form Key: value")
        else:
            self.fields[key.strip()] = value.strip()
        return True

    def take(self, line: Line) -> Iterable[Job]:
        """The job of the record that has just ended."""
        fields, wrong, first = self.fields, self.wrong, self.first_line
        self.fields, self.wrong, self.first_line, self.texts = {}, None, 0, []
        try:
            return (self._job(fields, wrong, first),)
        except Rejected as why:
            why.line = first
            raise

    def unfinished(self) -> Iterable[str]:
        """The record that the end of this part of the log may have cut: it comes again."""
        texts, self.texts = self.texts, []
        self.fields, self.wrong = {}, None
        return texts if self.kind is None else [f"APEL-{self.kind}-message: v0.3", *texts]

    def _job(self, fields: dict[str, str], wrong: Rejected | None, first: int) -> Job:
        if self.kind is None:
            raise Rejected("header", "no line names the kind of message")
        if self.kind not in TYPES:
            raise Rejected("no-job", f"a message of kind {self.kind}")
        if TYPES[self.kind]:
            jobs = escape(fields.get("NumberOfJobs", "many"), 20)
            raise Rejected(TYPES[self.kind], f"{self.kind}: {jobs} jobs of a month; {TABLES_ONLY}")
        if wrong is not None:
            raise wrong
        return self.given(self._record({k: v for k, v in fields.items() if v.lower() not in NULL}, first))

    def rest(self) -> Iterable[Job]:
        """A record that the end of the input cuts is rejected."""
        if self.fields or self.wrong:
            self.counts.read += 1
            self.reject(self.first_line, "torn", "the input ends inside it")
        return ()

    def _record(self, fields: dict[str, str], line: int) -> Record:
        ident = self.name(fields.pop("LocalJobId", None), "LocalJobId")
        if ident is None:
            raise Rejected("id", "no LocalJobId")
        r = Record(line, ident, machine=self.machine)
        levels = benchmarks_of(fields.pop("ServiceLevel", ""), fields.pop("ServiceLevelType", ""))
        for key, text in fields.items():
            if key in _TEXTS:
                setattr(r, _TEXTS[key], self.name(text, key))
            elif key in _GRID:
                r.more.append((GRID, _GRID[key], text))
            elif key in _NUMBERS:
                setattr(r, _NUMBERS[key], count(text, key))
            elif key in _TIMES:
                setattr(r, _TIMES[key], self.time(text, key, line))
            elif key == "GlobalUserName":
                whole(r, "GlobalUser", self.name(text, key))
            elif key == "MemoryReal":
                if value := number(text, key):
                    r.delivered.append(leaf("Memory", value, {"units": "KB", "metric": "Max"}))
            elif key == "MemoryVirtual":
                if number(text, key):
                    r.more.append(("LRM", "MaxVMSize", f"{text} KB"))
            else:
                r.more.append(("apel", key, text))
        if levels:
            r.more.append((GRID, "ServiceLevel", ", ".join(f"{k} {v}" for k, v in levels)))
        return r


def benchmarks_of(level: str, kind: str = "") -> list[tuple[str, str]]:
    """(type, figure) of ``11.4`` of a type, or of ``{hepspec: 11.4, HEPscore23: 15.3}``. Rejected: number."""
    if not level or level.lower() in NULL:
        return []
    if not level.startswith("{"):
        number(level, "ServiceLevel")
        return [(" ".join(kind.split()) or "custom", level)]
    levels = []
    for part in level.strip("{} ").split(","):
        name, sign, figure = (p.strip(" \"'") for p in part.partition(":"))
        if not sign or not name or number(figure, "ServiceLevel") is None:
            raise Rejected("number", f"ServiceLevel {escape(level, 60)!r} is not of the form {{type: figure}}")
        levels.append((name, figure))
    return levels


# --- writing ------------------------------------------------------------------------------------------------------

def option(context: WriteContext, name: str, *choices: str) -> str:
    """An option that has one of these values; the first is the default."""
    text = context.options.get(name, choices[0])
    if text not in choices:
        raise UsageError(f"{name} is {' or '.join(choices)}, not {escape(text, 40)!r}")
    return text


def _texts(jobs: Iterable[Job], context: WriteContext) -> Iterator[str]:
    version = option(context, "version", "0.3", "0.4")
    telling = Telling(context)
    created = telling.created()
    context.options.get("site"), context.options.get("benchmark"), context.options.get("vo")

    def pieces() -> Iterator[str]:
        """A block for each job, a header before each thousand of them."""
        n = 0
        for job in jobs:
            lines = _lines(Taking(job, telling), version, created)
            if lines:
                yield (f"APEL-individual-job-message: v{version}\n" if n % MESSAGE == 0 else "") + "".join(
                    f"{k}: {v}\n" for k, v in lines) + "%%\n"
                n += 1
    return pieces()


def _lines(t: Taking, version: str, created: int) -> list[tuple[str, str]]:
    """The lines of a record, in the order of the format; none for a job that cannot be one."""
    ident, site = t.text("Id"), site_of(t)
    if ident is None or site is None or not _ended(t, created):
        t.lost("SSS546", "Job", "a job is left out without Id, a site, which the option site can name, or an end that "
               "lies after its start and not in the future")
        return []
    used = invented(t)
    if used is None:
        return []
    start, end, wall, cpu = used
    machine = ("SubmitHost", t.text("SubmitHost")), ("MachineName", t.text("Machine")), ("Queue", t.text("Queue"))
    vo = vo_of(t)
    grid = {key: vo if key == "VO" else t.fact(GRID, name) for key, name in _GRID.items() if key != "Site"}
    amounts = [(tag, None if (p := t.amount(tag, least=1)) is None else p.text) for tag in ("Processors", "NodeCount")]
    lines: list[tuple[str, str | None]] = [
        ("Site", site), *machine, ("LocalJobId", ident), ("LocalUserId", t.text("User")),
        ("GlobalUserName", t.text("GlobalUser")), *((k, grid[k]) for k in ("FQAN", "VO", "VOGroup", "VORole")),
        ("WallDuration", str(wall)), ("CpuDuration", str(cpu)), *amounts, ("StartTime", str(start)),
        ("EndTime", str(end)), *((k, grid[k]) for k in ("InfrastructureDescription", "InfrastructureType")),
        ("MemoryReal", _memory(t)), ("MemoryVirtual", _virtual(t)), *_levels(t, version)]
    t.rest()
    for key, value in lines:
        if value is not None and value.lower() in NULL:
            t.lost("SSS501", _SUBJECTS.get(key, key), f"{key} {value!r} is read as no value")
    return [(k, v) for k, v in lines if v is not None]


#: Key -> what findings call it.
_SUBJECTS: Final = {"MachineName": "Machine", "LocalJobId": "Id", "LocalUserId": "User", "GlobalUserName": "GlobalUser",
                    **{k: f"Extension {v}" for k, v in _GRID.items()}}


def _ended(t: Taking, created: int) -> bool:
    """Whether the job has ended, after it began and not in the future."""
    start, end = t.job.value("StartTime"), t.job.value("EndTime")
    state = t.property("State")
    if state is None:
        t.lost("SSS503", "State", "a job without State is one that has ended")
    return (isinstance(start, int) and isinstance(end, int) and start <= end <= created + _AHEAD
            and (state is None or state.value == "Completed"))


def _memory(t: Taking) -> str | None:
    """The peak in KB, rounded up."""
    size = next((n for n, _ in t.sizes("Memory", "Max")), None)
    if size is not None and size % 1024:
        t.lost("SSS502", "Memory", "Memory is rounded up to KB")
    return None if size is None else str(-(-size // 1024))


def _virtual(t: Taking) -> str | None:
    """The peak of virtual memory that an Extension states in KB."""
    text = next((p.text for p in t.job.all("Extension") if p.get("type") == "LRM" and p.get("name") == "MaxVMSize"), "")
    match = re.fullmatch(r"([1-9]\d{0,17}) KB", text, re.ASCII)
    return None if match is None or t.fact("LRM", "MaxVMSize") is None else match[1]


def _levels(t: Taking, version: str) -> list[tuple[str, str | None]]:
    levels = benchmarks(t)
    if not levels:
        return []
    shown = [(kind, format(value, "f")) for kind, value in levels]
    if version == "0.4":
        return [("ServiceLevel", "{" + ", ".join(f"{k}: {v}" for k, v in shown) + "}")]
    if len(shown) > 1:
        t.lost("SSS502", "Extension ServiceLevel", "of several benchmarks v0.3 holds the first")
    return [("ServiceLevelType", shown[0][0]), ("ServiceLevel", shown[0][1])]


#: The line that begins a message; no key of a record is like it.
HEADER: Final = re.compile(rb"APEL-[a-z-]+-message:")

TRANSLATOR = replace(
    translator("apel", "APEL individual job messages", MessageReading, (), _texts,
               lambda sample: by_beginning(sample, re.compile("APEL-individual-job-message:"),
                                           "APEL-individual-job-message")),
    header=HEADER)
