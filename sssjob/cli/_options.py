"""What the commands that read documents share: their options, and the session that reads, reports and keeps score."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._app import status_of
from sssjob.cli._complete import files, formats
from sssjob.cli._files import Source, opened, read_bytes
from sssjob.cli._findings import problem, record, say, show
from sssjob.cli._log_findings import LogFindings
from sssjob.cli._together import repeated, together
from sssjob.consequences import CONSEQUENCES, Consequence, worst_first
from sssjob.conversion.converting import AUTO, Options
from sssjob.conversion.intake import Taken, gate
from sssjob.document.model import Document
from sssjob.errors import FormatError, RejectedError, SSSJobError, UsageError
from sssjob.findings import Finding, Findings, Policy, escape
from sssjob.limits import LIMITS
from sssjob.lrm.clocks import time_zone
from sssjob.translators.base import Translator
from sssjob.xml.profiles import PROFILES

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from sssjob.conversion.site import Site
    from sssjob.validation.large import Large

#: The rule that the gate and whoever lays out a job tell alike.
_TWICE: Final = "SSS414"


@dataclass(slots=True)
class Session:
    """One command: its shared options, and the worst that has happened so far."""

    policy: Policy | None = None
    profile: str = "liberal"
    as_json: bool = False
    quiet: bool = False
    strict: bool = False
    explain: bool = False                               # findings of kind exact are told too (decisions 15)
    brief: bool = False                                 # a line each, on a terminal too
    dead: bool = True                                   # directives that count for nothing are told too
    source: str = AUTO                                  # the format to read,
    preferred: Callable[[], str] = str                  # and the one that is meant of those that take the same lines
    site: Site | None = None                            # what only the site knows,
    site_path: str = ""                                 # and the file that says so
    anew: bool = False                                  # files are read several times, and told of once
    fail_on: Consequence | None = None                  # warnings of this, or of worse, make the status 1
    warnings: int = 0
    errors: int = 0
    failures: int = 0                                   # files that could not be read
    unknown: int = 0                                    # files whose format is not known
    _worst: int = 100                                   # the worst of the warnings so far (``worst_first``)
    _seen: dict[int, Finding] = field(default_factory=dict)
    _said: set[tuple[str, str, str]] = field(default_factory=set)
    _gate: set[tuple[str, int, int, str]] = field(default_factory=set)
    _unshown: dict[int, int] = field(default_factory=dict)

    def report_together(self, findings: Findings, document: Document) -> None:
        """The same for the findings of a plan, of which those that many jobs share are shown once. JSON has them all.
        """
        self._report_groups(findings, lambda fresh: together(fresh, document, whole=not findings.overflow))

    def report_once(self, findings: Findings | Sequence[Finding], *, again: bool = False) -> None:
        """The same for the findings of one file, by line: what stands there several times is shown once with its count.
        """
        self._report_groups(findings, repeated, again=again)

    def _report_groups(self, findings: Findings | Sequence[Finding],
                       grouped: Callable[[list[Finding]], list[tuple[Finding, list[Finding]]]], *, again: bool = True
                       ) -> None:
        if self.as_json:
            self.report(findings, again=again)
            return
        for shown, stands_for in grouped([finding for finding in findings if not self._told_before(finding)]):
            self.report([shown], again=False)
            self.errors += (len(stands_for) - 1) * shown.rejects
            self.warnings += (len(stands_for) - 1) * (shown.severity == "warning")
            if again:
                self._remember(stands_for)
        self._overflow(findings)

    def report(self, findings: Iterable[Finding] | None, *, again: bool = True) -> None:
        """Print the findings that were not printed before, and count them. again: they may come another time, so that
        they are remembered."""
        for finding in findings or ():
            if self._told_before(finding):
                continue
            if again:
                self._remember([finding])
            if self.anew or finding.rule == _TWICE:
                self._gate.add((finding.file, finding.line, finding.column, finding.message))
            counts = self.count(finding)
            if counts or not (self.quiet or (finding.kind == "exact" and not self.explain)):
                show(finding, as_json=self.as_json, brief=self.brief)
        self._overflow(findings)

    def _remember(self, findings: Sequence[Finding]) -> None:
        self._seen |= {id(finding): finding for finding in findings}
        self._said |= {(finding.file, finding.rule, finding.message) for finding in findings}

    def count(self, finding: Finding) -> bool:
        """Keep score of a finding; whether it makes the exit status 1."""
        warning = finding.severity == "warning"
        rank = worst_first(finding.severity, finding.consequence)
        self.errors += finding.rejects
        self.warnings += warning
        if warning:
            self._worst = min(self._worst, rank)
        return finding.rejects or (warning and (self.strict or self._fails(rank)))

    def _fails(self, rank: int) -> bool:
        return self.fail_on is not None and rank <= worst_first("warning", self.fail_on)

    @property
    def flawed(self) -> bool:
        """Whether a warning was told that makes the exit status 1."""
        return (self.strict and self.warnings > 0) or self._fails(self._worst)

    def _told_before(self, finding: Finding) -> bool:
        """Whether this finding was shown, or one that says the same of the same place."""
        return id(finding) in self._seen or ((self.anew or finding.rule == _TWICE) and (
            finding.file, finding.line, finding.column, finding.message) in self._gate)

    def _overflow(self, findings: object) -> None:
        """Report, once, that there are more findings than are kept."""
        overflow = getattr(findings, "overflow", 0)
        if overflow > self._unshown.get(id(findings), 0) and not self.quiet:
            problem(f"{overflow} more findings are not shown", as_json=self.as_json)
        if overflow:
            self._unshown[id(findings)] = overflow

    def knows(self, finding: Finding) -> bool:
        """Whether the same was told of the document before, by whoever looked at it first."""
        return (finding.file, finding.rule, finding.message) in self._said

    def read(self, name: str, data: bytes | None = None, *, source: str | None = None, options: Options | None = None,
             facts: bool = False) -> Document:
        """The document of that name, its findings and those of the gate reported: a command that makes something of
        it goes on only where none of them rejects. data: its text, when it was read before; source: the format, else
        what ``--from`` says; options: of the format; facts: records are taken as their readers gave them, without the
        gate, for they ask for nothing.
        """
        return self.admit(name, data, source=source, options=options, facts=facts).document

    def admit(self, name: str, data: bytes | None = None, *, source: str | None = None, options: Options | None = None,
              facts: bool = False) -> Taken:
        """The same with the format and the text."""
        taken = self.take(name, data, source=source, options=options)
        if not (facts and taken.reader.kind == "record"):
            self.report(gate(taken.document, self.profile))
        return taken

    def swept(self, document: Document) -> Document:
        """A document with every sweep as the jobs that it makes; what is wrong with one is reported."""
        from sssjob.document.sweeps import expand

        if self.errors:                 # they are told already
            return document
        findings = Findings(document.path)
        expanded = expand(document, findings)
        self.report(findings)
        return expanded

    @contextmanager
    def opened(self, name: str) -> Iterator[Document | Large]:
        """As ``read``, for commands that look at one job after another (``jobs``): a large group is not held."""
        with opened(name) as file:
            source = Source(file, name)
            large = self.large(source)
            if large is None:
                yield self.read(name, source.whole())
            else:
                yield large

    def large(self, source: Source, *, checked: bool = True) -> Large | None:
        """A large JobGroup as ``read`` reads it; None for all that is to be read whole, about which nothing is reported
        yet. checked: without the gate if False."""
        from sssjob.conversion.intake import large

        with bounded(source.name):
            file = source.again(LIMITS) if self.source in (AUTO, "sss") else None
            group = None if file is None else large(
                file, source.name, source=self.source, policy=self.policy, profile=self.profile, site=self.site,
                checked=checked, limits=LIMITS)
        if group is not None:
            self.report(group.findings)
            self.report(group.checks)
        return group

    def take(self, name: str, data: bytes | None = None, *, source: str | None = None, options: Options | None = None
             ) -> Taken:
        """The same without the gate, for commands that only look at a text."""
        from sssjob.conversion.intake import take

        with bounded(name):
            taken = take(read_bytes(name) if data is None else data, name, source=source or self.source,
                         policy=self.policy, profile=self.profile, site=self.site, options=options,
                         preferred=self.preferred)
        if taken.reader.name == "sss-json" and self.profile != "liberal":
            raise UsageError(f"{escape(name)} is JSON, which has one form; --profile {self.profile} is for XML")
        if taken.reader.kind != "document":
            self.recognised(name, taken.reader, taken.why)
        if taken.reader.kind == "record":
            with LogFindings(self, Findings(name)) as log_findings:
                log_findings.add(taken.findings)
            self._overflow(taken.findings)
        else:
            self.report(taken.findings if self.dead else [f for f in taken.findings if f.kind != "dead"])
        return taken

    def recognised(self, name: str, reader: Translator, why: str) -> None:
        """Tell what a file was recognised as, and by what (empty: its format was named)."""
        key = name, 0, 0, f"{reader.name}: {why}"
        if self.anew and key in self._gate:
            return
        self._gate.add(key)
        if why and self.as_json:
            record({"type": "recognised", "file": name, "format": reader.name, "message": why})
        elif why and not self.quiet:
            say(escape(f"{name}: {reader.name}: {why}", 1000))

    def defaults(self, reader: Translator) -> Mapping[str, str]:
        """The options of a format that the site gives."""
        return {} if self.site is None else self.site.defaults(reader.name, reader.kind)

    def scan(self, name: str) -> Findings:
        """What reading a file of any size job by job finds, reported."""
        from sssjob.xml.streaming import stream_jobs

        findings = Findings(name)
        for _ in stream_jobs(Path(name), profile=self.profile, path=name, policy=self.policy, findings=findings):
            continue
        self.report(findings)
        return findings

    def tolerant(self, name: str) -> _Tolerant:
        """A context in which a rejected document or an unreadable file is reported and counted."""
        return _Tolerant(self, name)

    @property
    def unread(self) -> int:
        """How many files could not be read, or were not recognised."""
        return self.failures + self.unknown

    def status(self) -> int:
        """The exit status by what was reported so far: 3 a file could not be read, 2 a format is not known, 1
        rejected, else 0."""
        if self.unread:
            return 3 if self.failures else 2
        return 1 if self.errors or self.flawed else 0


class _Tolerant:
    def __init__(self, session: Session, name: str) -> None:
        self.session, self.name = session, name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        session = self.session
        if isinstance(error, (MemoryError, RecursionError)):
            error = _exhausted(self.name, error)
        if isinstance(error, RejectedError):
            session.report(error.findings)
            session.errors += not any(f.rejects for f in error.findings)
            return True
        if isinstance(error, FormatError):
            session.unknown += 1
            problem(str(error), as_json=session.as_json, status=2)
            return True
        if isinstance(error, (SSSJobError, OSError)):
            status, message = status_of(error)
            if status not in (1, 3):
                return False
            if not isinstance(error, OSError):
                message = f"{self.name}: {message}"
            session.failures += status == 3
            session.errors += status == 1
            problem(message, as_json=session.as_json, status=status)
            return True
        return False


@contextmanager
def bounded(name: str) -> Iterator[None]:
    """Have an input that takes too much memory or nests too deep be refused like any other limit (SSS110)."""
    try:
        yield
    except (MemoryError, RecursionError) as error:
        raise _exhausted(name, error) from None


def _exhausted(name: str, error: BaseException) -> RejectedError:
    reason = "takes more memory than there is" if isinstance(error, MemoryError) else "is nested too deep"
    findings = Findings(name)
    findings.add("SSS110", "memory", f"the input {reason}")
    return RejectedError(list(findings))


def common(function: Callable[..., int]) -> Callable[..., int]:
    """Give a command the shared options; its function gets a Session first and returns the exit status."""

    @click.option("--policy", type=click.Choice(["reject", "warn", "ignore"], case_sensitive=False), metavar="POLICY",
                  help="What to do with what is not supported: reject, warn or ignore (default: the document's own).")
    @click.option("--profile", type=click.Choice(list(PROFILES)), default="liberal", metavar="NAME",
                  help=f"How strictly to read: {', '.join(PROFILES)} (default: liberal).")
    @click.option("--json", "as_json", is_flag=True, help="Results and findings as JSON.")
    @click.option("-q", "--quiet", is_flag=True, help="Only findings that reject.")
    @click.option("--strict", is_flag=True, help="Exit status 1 for warnings too.")
    @functools.wraps(function)
    def command(policy: str | None, profile: str, as_json: bool, quiet: bool, strict: bool, **rest: Any) -> int:
        """Run the function with a Session of the shared options; errors become findings and an exit status."""
        session = Session(Policy.of(policy) if policy else None, profile, as_json, quiet, strict)
        try:
            return function(session, **rest)
        except RejectedError as error:
            session.report(error.findings)
            return 1
        except SSSJobError as error:
            status, message = status_of(error)
            problem(message, as_json=as_json, status=status)
            return status

    return command


def reading(function: Callable[..., int]) -> Callable[..., int]:
    """``--from`` and ``--site`` of commands that read any format; its place is below ``common``."""
    from sssjob.cli._profiles import load_site, site_option

    @click.option("-f", "--from", "source", default=AUTO, metavar="FORMAT", shell_complete=formats,
                  help="Format of what is read (default: auto, the one that is recognised).")
    @site_option
    @functools.wraps(function)
    def command(session: Session, source: str, site_file: str | None, **rest: Any) -> int:
        """Put the format and the site profile into the Session, and run the function."""
        session.source = source
        session.site, session.site_path = load_site(site_file)
        return function(session, **rest)

    return command


def pairs(items: Iterable[str], option: str) -> dict[str, str]:
    """The values of an option of the form NAME=VALUE that may repeat."""
    values = {}
    for item in items:
        name, sign, value = item.partition("=")
        if not sign or not name:
            raise UsageError(f"{option} {item!r}: not of the form NAME=VALUE")
        values[name] = value
    return values


def zone_of(name: str) -> ZoneInfo:
    """The time zone that ``--timezone`` names. Raises UsageError."""
    try:
        return time_zone(name)
    except ValueError as error:
        raise UsageError(f"--timezone {error}") from None


def format_option(function: Callable[..., int]) -> Callable[..., int]:
    """The option ``--option`` of commands that read records."""
    return click.option("--option", "options", multiple=True, metavar="NAME=VALUE",
                        help="An option of the format, as timezone=UTC or machine=NAME.")(function)


def fail_on_option(function: Callable[..., int]) -> Callable[..., int]:
    """``--fail-on`` of commands that tell what findings mean for a job; its place is below ``common``."""

    @click.option("--fail-on", type=click.Choice(list(CONSEQUENCES)), metavar="WORD",
                  help="Exit status 1 for warnings of what breaks the job, costs more too, or looks different too.")
    @functools.wraps(function)
    def command(session: Session, fail_on: Consequence | None, **rest: Any) -> int:
        """Put what ``--fail-on`` says into the Session, and run the function."""
        session.fail_on = fail_on
        return function(session, **rest)

    return command


def output_option(function: Callable[..., int]) -> Callable[..., int]:
    """``-o FILE``: where the result goes."""
    return click.option("-o", "--output", metavar="FILE", default="-", shell_complete=files,
                        help="Write the result to FILE, whole or not at all (default: standard output).")(function)
