"""Format ``htcondor-history``: job ClassAds as ``condor_history -long`` prints them and history files hold them, as
``-json`` or ``-jsonl`` prints them, and extracts with a line a job.

    ClusterId = 377260
    Owner = "alice"
    RemoteWallClockTime = 910.0
    *** Offset = 0 ClusterId = 377260 ...

    [{"ClusterId": 377260, "Owner": "alice", "RemoteWallClockTime": 910.0}, ...]

    head#377260.0#1795251000|alice|910|57|11|1795251100|1795252100|2048|4096|4

A line is an attribute, names are of any case, of one that stands twice the last counts; a blank line or one of stars
ends a job. A line of an extract has the attributes that the option ``columns`` names (``ClusterId,ProcId,Owner``),
parted by the option ``delimiter`` (a bar; ``tab``, ``blank``, ``comma``): what ``condor_history -autoformat`` prints.
Without columns they are the ten that APEL's parser takes, of jobs that have ended, with or without the multiplier of
CPU time behind them.

RemoteWallClockTime is that of all runs and holds suspended time, which Duration does not. Jobs of the scheduler and
local universe (7, 12) run beside the machine: they have nothing delivered. Attributes that have no property and are not
told of are how the job was submitted and matched. Ads name no machine: option ``machine``.

Source: the job ClassAd attributes of the HTCondor manual, appendix A, and its page of condor_history; job history files
of 7.4; extracts in APEL's tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, BinaryIO, ClassVar, Final, cast

from sssjob.document.model import Job
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.lrm.htcondor import NUMBERS, cpu, ended_at, host_of, in_use, peak, started_at
from sssjob.lrm.states import NativeState, Stage
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import Fit, Sample, by_beginning, by_keys
from sssjob.translators.records._delimiters import joined
from sssjob.translators.records._json import Begun, taken, values
from sssjob.translators.records._lines import Line
from sssjob.translators.records._usage import GRID, whole
from sssjob.translators.records._values import state_word
from sssjob.translators.records.base import Reading, Record, Rejected, count, leaf, number, translator, words

__all__ = ["TRANSLATOR"]

_FIELDS: Final = 10_000         # attributes of one job
_BESIDE: Final = (7, 12)        # universes that use no slot
_GRID_JOB: Final = "9"          # the universe of jobs that another manager runs: nobody counts what is committed
#: The columns of APEL's extract.
_EXTRACT: Final = ("globaljobid", "owner", "remotewallclocktime", "remoteusercpu", "remotesyscpu", "jobstartdate",
                   "enteredcurrentstatus", "residentsetsize_raw", "imagesize_raw", "requestcpus")
#: Times that sites charge by in place of the wall time: without runs that were lost, or of the last run only.
_COMMITTED: Final = ("CommittedTime", "CommittedSuspensionTime", "CommittedSlotTime", "LastRemoteWallClockTime")
#: Attributes that are numbers, and names that a submitter is given or that no text is; all others may hold a delimiter.
_COUNTED: Final = frozenset((
    "clusterid", "procid", "jobuniverse", "jobstatus", "qdate", "jobstartdate", "jobcurrentstartdate", "completiondate",
    "enteredcurrentstatus", "remotewallclocktime", "remoteusercpu", "remotesyscpu", "cumulativesuspensiontime",
    "numjobstarts", "numshadowstarts", "requestcpus", "requestmemory", "requestdisk", "requestgpus", "cpusprovisioned",
    "gpusprovisioned", "machineattrcpus0", "memoryusage", "residentsetsize", "residentsetsize_raw", "imagesize",
    "imagesize_raw", "exitcode", "exitsignal", "holdreasoncode", "cputmult", *(name.lower() for name in _COMMITTED)))
_NAMED: Final = frozenset((
    "globaljobid", "owner", "user", "projectname", "acctgroup", "accountinggroup", "remotehost", "lastremotehost",
    "exitbysignal", "x509userproxysubject", "x509userproxyvoname", "x509userproxyfirstfqan"))
_COUNT: Final = re.compile(r"(?:-?\d[\d.eE+-]{0,40}|undefined|error)?", re.ASCII | re.IGNORECASE)
_DELIMITERS: Final = {"tab": "\t", "blank": " ", "comma": ","}
_EXPRESSION: Final = re.compile(r"/Expr\((.*)\)/", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r"([A-Za-z_][\w.]{0,255})\s*=\s*(.*)", re.ASCII | re.DOTALL)
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)


class _Reading(Reading):
    keeps: ClassVar[str] = "htcondor"

    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self.said: dict[str, str] = {}
        self.begins = 0
        self.wrong: Rejected | None = None
        self.whole = True
        self.texts: list[str] = []
        self.stateless = False          # whether it was told that no state is said
        self.has_rows = False           # whether rows of APEL's extract stood before
        delimiter = context.options.get("delimiter", "|")
        self.delimiter = _DELIMITERS.get(delimiter, delimiter)
        columns = words(context.options.get("columns"))
        self.columns = None if columns is None else [c.strip().lower() for c in columns.split(",")]
        if not self.delimiter or "=" in self.delimiter:
            raise UsageError(f"delimiter {escape(delimiter, 20)!r} parts no columns")
        if self.columns is not None and ("" in self.columns or len(set(self.columns)) < len(self.columns)):
            raise UsageError(f"columns {escape(columns or '', 60)!r} is a list of attributes, each once")

    def jobs(self, file: BinaryIO) -> Iterator[Job]:
        """The jobs of a history: ClassAds by lines, rows of an extract, or JSON."""
        begun = Begun(file)
        if begun.first in (b"[", b"{"):
            ads = values(cast(BinaryIO, begun), self.context.limits.child_bytes, self.tell)
            return taken(self, ads, lambda ad, line: self._record(_json_ad(ad), line))
        return super().jobs(cast(BinaryIO, begun))

    def skips(self, line: Line) -> bool:
        """Gathers the attributes of a job; the line that ends it, or one of an extract, is the record."""
        text = line.text.strip()
        if not self.said and text and self._extracted(text):
            if self.wrong is not None:          # what stood before it was no ad, and is rejected by itself
                self.counts.read += 1
                self.reject(self.begins, self.wrong.reason, str(self.wrong))
                self.unfinished()
            return False
        if not text or text.startswith("***"):
            return not self.said and self.wrong is None
        self.begins = self.begins or line.number
        self.whole = line.whole
        if self.keeping:
            self.texts.append(line.text)
        match = _ATTRIBUTE.fullmatch(text)
        if line.note:
            self.tell("SSS542", "encoding", f"{line.note}, written as \\x and their code", line.number)
        if line.long or len(self.said) >= _FIELDS:
            self.wrong = self.wrong or Rejected("too-long", f"a line is longer than the limit text "
                                                f"({self.context.limits.text} bytes)" if line.long else
                                                f"more than {_FIELDS} attributes")
        elif match is None:
            self.wrong = self.wrong or Rejected("columns", f"{escape(text, 60)!r} is not of the form Attribute = value")
        else:
            self.said[match[1].lower()] = match[2].strip()
        return True

    def _extracted(self, text: str) -> bool:
        """Whether a line outside of an ad is one of an extract."""
        if self.columns is not None:
            return True
        if _ATTRIBUTE.fullmatch(text) or text.startswith("***"):
            return False
        return text.count(self.delimiter) in (9, 10) or (self.has_rows and self.wrong is None)

    def take(self, line: Line) -> Iterable[Job]:
        """The job that has just ended, or that of one row."""
        if self.said or self.wrong is not None:
            return (self._ended(),)
        fields = [f.strip() for f in line.text.strip().split(self.delimiter if self.delimiter != " " else None)]
        columns = self.columns or (*_EXTRACT, "cputmult")[:len(fields)]
        self.has_rows = True
        if len(columns) < len(_EXTRACT) and self.columns is None:
            raise Rejected("columns", f"{len(fields)} columns in place of {len(_EXTRACT)}")
        if len(fields) != len(columns):
            fields = self._put_right(fields, columns, line.number)
        fields_by_name = dict(zip(columns, fields, strict=True))
        if self.columns is None:
            fields_by_name["completiondate"] = fields_by_name["enteredcurrentstatus"]
        return (self.given(self._record(_Ad(fields_by_name), line.number)),)

    def _put_right(self, fields: list[str], columns: Sequence[str], line: int) -> list[str]:
        """Make a row of as many fields as there are columns, where texts of a user may hold the delimiter. Rejected:
        columns."""
        free = [column for column in columns if column not in _COUNTED | _NAMED]
        row = joined(fields, columns, self.delimiter, free=free, form=_may_be)
        if row is None:
            if len(fields) < len(columns) and free:
                self.tell("SSS544", "columns", "the line may be a piece of a row that a line end in a text has broken, "
                          "and rows beside it part of that text: read the output of condor_history -json, or an "
                          f"extract without {', '.join(free)}", line)
            raise Rejected("columns", f"{len(fields)} columns in place of {len(columns)}" + (
                ", and a delimiter that is part of a text cannot be told: print the extract with one that no text holds"
                if len(fields) > len(columns) else ""))
        for column, text in zip(columns, row, strict=True):
            if self.delimiter in text:
                self.tell("SSS542", column, f"the delimiter stands in {column}, which takes it", line)
        return row

    def rest(self) -> Iterable[Job]:
        """A job at the end of the input: it is whole where its last line is."""
        if not self.said and self.wrong is None:
            return ()
        begins, torn = self.begins, not self.whole
        self.counts.read += 1
        try:
            job = self._ended()
        except Rejected as why:
            self.reject(begins, "torn" if torn else why.reason, str(why))
            return ()
        self.counts.given += 1
        self.tell("SSS542", "torn", "the last line has no end and may be cut" if torn else
                  "no blank line ends the last ad, which may be cut", begins)
        return (job,)

    def unfinished(self) -> Iterable[str]:
        """The job that the end of this part of the log may have cut: it comes again, so it is not given now."""
        texts, self.texts = self.texts, []
        self.said, self.wrong, self.begins = {}, None, 0
        return texts

    def _ended(self) -> Job:
        attributes, wrong, begins = self.said, self.wrong, self.begins
        self.said, self.wrong, self.begins, self.texts = {}, None, 0, []
        try:
            if wrong is not None:
                raise wrong
            return self.given(self._record(_Ad(attributes), begins))
        except Rejected as why:
            why.line = begins
            raise

    def _record(self, ad: _Ad, line: int) -> Record:
        cluster, proc, global_id = ad.count("ClusterId"), ad.count("ProcId"), ad.text("GlobalJobId")
        ident = _of_global(global_id) if cluster is None else f"{cluster}.{proc or 0}"
        if ident is None:
            raise Rejected("id", "no ClusterId")
        r = Record(line, self.name(ident, "GlobalJobId") or "", machine=self.machine)
        whole(r, "GlobalJob", self.name(global_id, "GlobalJobId"))
        whole(r, "GlobalUser", self.name(ad.text("x509userproxysubject"), "x509userproxysubject"))
        r.user = self.name(ad.text("Owner"), "Owner")
        r.name = self.free_text(ad.text("JobBatchName"), "JobBatchName", line)
        r.project = self.name(ad.text("ProjectName") or ad.text("AcctGroup") or ad.text("AccountingGroup"), "AcctGroup")
        host, sharp, _ = (global_id or "").partition("#")
        r.submit_host = self.name(host if sharp else None, "GlobalJobId")
        r.directory = self.free_text(ad.text("Iwd"), "Iwd", line)
        for name, kind, shown in (("User", "htcondor", "User"), ("JobUniverse", "htcondor", "JobUniverse"),
                                  ("cputmult", "htcondor", "cputmult"),
                                  ("x509UserProxyVOName", GRID, "VO"), ("x509UserProxyFirstFQAN", GRID, "FQAN")):
            if text := ad.text(name):
                r.more.append((kind, shown, text))
        self._times(r, ad, self._state(r, ad))
        self._used(r, ad)
        _requested(r, ad)
        for name in _COMMITTED:
            text = ad.text(name) or ""
            if text.strip("0.") or (text and name == "CommittedTime" and ad.text("JobUniverse") != _GRID_JOB):
                r.more.append(("htcondor", name, text))
        self.rest_of(r, {name: ad.nested.get(name) or ad.text(name) or "" for name in ad.attributes.keys() - ad.read})
        return r

    def _state(self, r: Record, ad: _Ad) -> NativeState | None:
        status = ad.count("JobStatus")
        native = None if status is None else NUMBERS.get(status)
        if status is not None and native is None:
            raise Rejected("number", f"JobStatus {status} is not known")
        if status is None and not self.stateless and not ad.count("CompletionDate"):
            self.stateless = True
            self.tell("SSS541", "JobStatus", "neither JobStatus nor CompletionDate is there; a history lists jobs that "
                      "have left the queue: they are taken as Completed, at EnteredCurrentStatus where that is there",
                      r.line)
        r.state = state_word(native)
        r.native = "" if native is None else native.word.partition("_")[0].capitalize()
        if native is not None and native.stage is Stage.HELD:
            r.hold = "User" if ad.count("HoldReasonCode") == 1 else "System"
            r.message = ad.text("HoldReason") or ""
        if native is not None and native.reason:
            r.message = f"{native.reason}: {escape(ad.text('RemoveReason') or 'removed', 500)}"
        if (ad.text("ExitBySignal") or "").lower() == "true":
            r.signal = ad.count("ExitSignal")
            r.message = r.message or f"signal: {r.signal}"
        elif native in (None, NUMBERS[4]) and (code := ad.count("ExitCode")) is not None:
            r.exit_code, r.exit_status = (code, "") if code < 256 else (None, str(code))
        return native

    def _times(self, r: Record, ad: _Ad, native: NativeState | None) -> None:
        at = {n: self.time(ad.number_text(n), n, r.line) for n in (
            "QDate", "JobStartDate", "JobCurrentStartDate", "CompletionDate", "EnteredCurrentStatus")}
        r.submit, r.start, last = at["QDate"], started_at(at.get), at["JobCurrentStartDate"]
        if r.state == "Completed":
            r.end = ended_at(at.get, native)
        if last not in (None, r.start):
            r.more.append(("htcondor", "JobCurrentStartDate", str(last)))
        starts = ad.count("NumJobStarts")
        r.starts = starts or ad.count("NumShadowStarts")
        r.ran = r.start is not None
        if not r.ran and r.state == "Completed":
            r.message = f"never-ran: {r.message}" if r.message else "never-ran"
        r.suspended = ad.count("CumulativeSuspensionTime") or None

    def _used(self, r: Record, ad: _Ad) -> None:
        """Wall and CPU time of all runs; a slot's amounts."""
        seconds = ad.seconds("RemoteWallClockTime")
        away = r.suspended or 0
        wall = None if seconds is None else in_use(seconds, away)
        if ad.count("JobUniverse") in _BESIDE:
            if seconds is not None:
                r.more.append(("htcondor", "RemoteWallClockTime", str(seconds)))
            return
        span = None if r.end is None or r.start is None or (r.starts or 0) > 1 else max(0, r.end - r.start - away)
        r.wall = self.first("Duration", r.line, ("RemoteWallClockTime", wall or None), (
            "CompletionDate - JobStartDate", span))
        spent, resident = cpu(ad.number), peak(ad.number)
        r.cpu = None if spent is None else _rounded(spent)
        r.processors = self.first("Processors", r.line, ("CpusProvisioned", ad.count("CpusProvisioned") or None), (
            "MachineAttrCpus0", ad.count("MachineAttrCpus0") or None))
        if r.processors is None:
            r.processors = ad.count("RequestCpus") or None
        gpus = ad.count("GPUsProvisioned")
        if gpus := ad.count("RequestGpus") if gpus is None else gpus:
            r.delivered.append(leaf("Resource", Decimal(gpus), {"name": "GPU"}))
        memory = (resident, "KB") if resident else (ad.number("MemoryUsage"), "MB")
        if memory[0]:
            r.delivered.append(leaf("Memory", memory[0], {"units": memory[1], "metric": "Max"}))
        if image := ad.number("ImageSize_RAW") or ad.number("ImageSize"):
            r.more.append(("LRM", "MaxVMSize", f"{image} KB"))
        if host := host_of(ad.text):
            r.node, r.nodes = self.nodes(host, r.line)


class _Ad:
    """The attributes of a job, by names in lower case."""

    def __init__(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes
        self.read: set[str] = set()         # names that somebody has asked for
        self.nested: dict[str, Any] = {}    # of JSON: lists and ads, which no property takes

    def text(self, name: str) -> str | None:
        """A string without its quotes, or what else stands there; None for undefined."""
        self.read.add(name.lower())
        raw = self.attributes.get(name.lower(), "")
        match = _STRING.fullmatch(raw)
        text = match[1].replace('\\"', '"').replace("\\\\", "\\") if match else raw
        return None if not text or text.lower() in ("undefined", "error") else text

    def number_text(self, name: str) -> str:
        """The digits of a number; empty for an expression, which nobody has evaluated."""
        self.read.add(name.lower())
        raw = self.attributes.get(name.lower(), "")
        return raw if raw[:1].isdigit() or raw[:1] == "-" else ""

    def number(self, name: str) -> Decimal | None:
        """A number, not negative. Rejected: number."""
        return number(self.number_text(name), name)

    def count(self, name: str) -> int | None:
        """A whole number, not negative. Rejected: number."""
        return count(self.number_text(name), name)

    def seconds(self, name: str) -> int | None:
        """A number of seconds, rounded."""
        value = self.number(name)
        return None if value is None else _rounded(value)


def _json_ad(ad: Any) -> _Ad:
    """The attributes of an ad in JSON, as ClassAds spell them: an expression is a text ``/Expr(...)/``. Rejected: json,
    too-long."""
    if not isinstance(ad, dict):
        raise Rejected("json", f"an ad is no object but {type(ad).__name__}")
    if len(ad) > _FIELDS:
        raise Rejected("too-long", f"more than {_FIELDS} attributes")
    attributes, nested = dict[str, str](), dict[str, Any]()
    for name, value in ad.items():
        if isinstance(value, str):
            match = _EXPRESSION.fullmatch(value)
            attributes[name.lower()] = match[1] if match else \
                '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        elif isinstance(value, (bool, int, float)):
            attributes[name.lower()] = str(value)
        elif value:
            attributes[name.lower()], nested[name.lower()] = "undefined", value
    json_ad = _Ad(attributes)
    json_ad.nested = nested
    return json_ad


def _may_be(text: str, column: str) -> bool:
    """Whether an attribute of an extract may have a text."""
    return column not in _COUNTED or _COUNT.fullmatch(text) is not None


def _of_global(global_id: str | None) -> str | None:
    """The Cluster.Proc that stands in a GlobalJobId, or all of one that has another form."""
    parts = (global_id or "").split("#")
    return (parts[1] if len(parts) > 2 else global_id) or None


def _rounded(value: Decimal) -> int:
    return int(value.quantize(Decimal(1), ROUND_HALF_UP))


def _requested(r: Record, ad: _Ad) -> None:
    if cpus := ad.count("RequestCpus"):
        r.requested.append(leaf("Processors", cpus))
    for name, tag, units in (("RequestMemory", "Memory", "MB"), ("RequestDisk", "Disk", "KB")):
        if value := ad.number(name):
            r.requested.append(leaf(tag, value, {"units": units, "metric": "Total"}))
    if gpus := ad.count("RequestGpus"):
        r.requested.append(leaf("Resource", Decimal(gpus), {"name": "GPU"}))


_FIRST: Final = re.compile(r"(?:[A-Za-z_]\w*+ = [^\n]*\n){1,400}?(?:ClusterId|JobStatus|MyType) = ", re.ASCII | re.I)

_BARS: Final = re.compile(r"[^|\n]+\|[^|\n]*(?:\|[\d.]*){3}(?:\|\d{9,10}){2}(?:\|\w*){3,4}\n", re.ASCII)


def _recognise(sample: Sample) -> Fit | None:
    return (by_beginning(sample, _FIRST, "attributes of a job ClassAd")
            or by_keys(sample, frozenset(("ClusterId",)), frozenset(("JobStatus", "GlobalJobId", "QDate")))
            or by_beginning(sample, _BARS, "the ten columns of APEL's extract"))


TRANSLATOR = translator("htcondor-history", "HTCondor job history, ClassAds", _Reading, recognise=_recognise)
