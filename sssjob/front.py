"""The front door in Python: one function for what each command does, over documents, jobs, texts and files alike.

A source is a Document, a container (``Job`` ...), or something to be read: a ``Path``, bytes, an open file, or a str.
A str is text when it holds a line break, or begins (after blanks) with ``<`` or ``{``; every other str names a file.
Findings that reject raise RejectedError, unless the function returns findings or was given a collector for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from io import TextIOBase
from math import inf
from pathlib import Path
from types import NoneType
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from sssjob.conversion.converting import AUTO, Conversion, Options
from sssjob.document.element import Container
from sssjob.document.model import Document, Job, JobDefaults
from sssjob.errors import AccessError, RejectedError, UsageError
from sssjob.findings import Findings, Policy
from sssjob.packages import check_psij
from sssjob.places import check_name
from sssjob.xml.reader import read_bytes

if TYPE_CHECKING:

    from sssjob.accounting import Charge, RateSet, Uncharged
    from sssjob.conversion.site import Site
    from sssjob.document.inherit import Effective
    from sssjob.query import Result, Version
    from sssjob.request import Match
    from sssjob.run import Outcome
    from sssjob.translators.base import Translator

__all__ = ["Converted", "Source", "check", "convert", "effective", "explain", "match", "query", "quote", "read", "run",
           "submit", "write"]

Source = Document | Container | Path | bytes | str | IO[bytes] | IO[str]
Readable = Path | bytes | str | IO[bytes] | IO[str]
#: What the text of a document begins with after blanks, and no name of a file is taken to.
_BEGINS: Final = ("<", "{")


class Converted(NamedTuple):
    """What ``convert`` gives: the text, and all findings of reading and of writing."""

    text: str
    findings: Findings


# --- reading and writing ------------------------------------------------------------------------------------------

def read(source: Readable, *, format: str = AUTO, profile: str = "liberal", policy: Policy | str | None = None,
         options: Mapping[str, str] | None = None, site: Site | Path | str | None = None,
         findings: Findings | None = None) -> Document:
    """The document of a text or a file, in any format that ``sssjob convert`` reads; see the rule for a str above.

    format: its name, or ``auto``, the one that is recognised. policy: the outermost awarenessPolicy (Reject, Warn,
    Ignore). options: of the format. site: a site profile, or its file. findings: collects what was found, which
    ``document.findings`` has too. Raises AccessError, UsageError (no format fits), RejectedError (with findings given
    only where nothing can be built).
    """
    data, path = _data(source)
    _expect("findings", findings, (Findings, NoneType))
    how = _how(format, "sss", policy, profile, "3.1", options, site)
    document, read_findings = _read(how, data, path)
    how.options.check(format)
    if findings is None:
        read_findings.raise_if_rejected()
    else:
        findings.extend(read_findings)
    return document


def _read(how: Conversion, data: bytes, path: str) -> tuple[Document, Findings]:
    reader = _reader(how, data, path)
    context = how.reading(reader, path)
    document = how.read(reader, data, context)
    if document.findings is None:
        document.findings = context.findings
    return document, document.findings


def write(source: Document | Container, *, format: str = "sss", path: Path | str | None = None, profile: str = "3.1",
          policy: Policy | str | None = None, options: Mapping[str, str] | None = None,
          site: Site | Path | str | None = None, findings: Findings | None = None) -> str:
    """The text of a document or a container in a format, also written to a file where a path is given.

    What was made by hand is checked first. Raises RejectedError where something rejects (nothing is written then);
    findings: collects all findings, also those that only warn. AccessError where the file cannot be written.
    """
    if not isinstance(source, Document | Container):
        raise UsageError(f"a document, a Job or a JobGroup is expected, not a {type(source).__name__}")
    _expect("findings", findings, (Findings, NoneType))
    _expect("path", path, (Path, str, NoneType))
    document = _document(source)
    how = _how("sss", format, policy, "liberal", profile, options, site)
    _ = how.writer
    collected = Findings(document.path) if findings is None else findings
    before = len(collected)
    if not document.facts:
        _gate(document, collected)
        _refuse(collected, before)
    name = "" if path is None else Path(path).stem
    text = how.text(document, how.writing(collected, how.policy, name))
    _refuse(collected, before)
    how.options.check(format)
    if path is not None:
        from sssjob.cli._files import write_file

        write_file(str(path), text.encode("utf-8", "surrogateescape"))
    return text


def convert(source: Source, to: str = "slurm", *, format: str = AUTO, profile: str = "liberal",
            to_profile: str = "3.1", policy: Policy | str | None = None, options: Mapping[str, str] | None = None,
            site: Site | Path | str | None = None) -> Converted:
    """A source in another format, with all findings. Raises RejectedError where something does not carry over and the
    policy is to reject that; ``policy="Warn"`` makes it a finding. Other names are those of ``read`` and ``write``."""
    how = _how(format, to, policy, profile, to_profile, options, site)
    _ = how.writer
    if isinstance(source, Document | Container):
        document = _document(source)
        findings, carrying = Findings(document.path), how.policy
    else:
        data, path = _data(source)
        document, read_findings = _read(how, data, path)
        read_findings.raise_if_rejected()
        findings = Findings(path)
        findings.extend(read_findings)
        carrying = how.carrying(_reader(how, data, path))
    if not document.facts:
        _gate(document, findings, profile)
        findings.raise_if_rejected()
    text = how.text(document, how.writing(findings, carrying))
    findings.raise_if_rejected()
    how.options.check(format, to)
    return Converted(text, findings)


def _how(format: str, to: str, policy: Policy | str | None, profile: str, to_profile: str,
         options: Mapping[str, str] | None, site: Site | Path | str | None) -> Conversion:
    """How something is read and written. Raises UsageError for what is of another type than it has to be."""
    for name, value in (("format", format), ("format", to), ("profile", profile), ("profile", to_profile)):
        _expect(name, value, (str,))
    _expect("options", options, (Mapping, NoneType))
    for option, text in (options or {}).items():
        _expect(f"option {option}", text, (str,))
    return Conversion(format, to, _policy(policy), profile, to_profile, Options(options), _site(site))


def _reader(how: Conversion, data: bytes, path: str) -> Translator:
    """The format of a text, as every door takes it."""
    from sssjob.conversion.intake import format_of

    return format_of(data, path, how.source)[0]


# --- asking -------------------------------------------------------------------------------------------------------

def check(source: Source, *, format: str = AUTO, profile: str = "liberal",
          policy: Policy | str | None = None) -> Findings:
    """Everything that is wrong or doubtful with a source; ask the findings for ``rejected``. Nothing is raised for it,
    but AccessError where a file cannot be read and UsageError where no format fits."""
    try:
        document, findings = _given(source, format, profile, policy)
    except RejectedError as error:
        return _collected(error)
    _gate(document, findings, profile)
    return findings


def match(requested: Source, offer: Source, *, delivered: bool = False, strict: bool = False) -> Match:
    """Whether an offer meets what a source requests: ``.met``, and why, as text.

    An offer says up to how much there is; delivered: it is what a job was given, compared to the letter (section 8.1).
    strict: brackets have to balance.
    """
    from sssjob.request import match as match_documents

    return match_documents(_body(requested), _body(offer), delivered=delivered, strict=strict)


def explain(source: Source, *, findings: Findings | None = None) -> str:
    """What the jobs of a source ask for and what that comes to in all, in words, as ``sssjob explain`` prints it; of a
    job that was started also what it was given.

    What ``check`` rejects is shown too, for nothing is made of it; findings: collects what ``check`` finds. Raises
    RejectedError where the source cannot be read.
    """
    from sssjob.request.explaining import explained

    document, read_findings = _given(source)
    read_findings.raise_if_rejected()
    _expect("findings", findings, (Findings, NoneType))
    if findings is not None:
        findings.extend(read_findings)
        _gate(document, findings)
    return "".join(map(str, explained(_expanded(document))))


def quote(source: Source, rates: RateSet | Readable, *,
          start: int | datetime | None = None) -> list[Charge | Uncharged]:
    """What each job of a source would cost by rates (a RateSet, or TOML: text or a file), in order of the document.

    start: when the jobs would start, for rates that go by the time of day: epoch seconds or an aware datetime. Raises
    RatesError, UsageError for a datetime without a time zone.
    """
    from sssjob.accounting import quote as quote_job
    from sssjob.accounting import read_rates
    from sssjob.accounting.rates import RateSet

    if not isinstance(rates, RateSet):
        rates = read_rates(*_data(rates))
    _expect("start", start, (int, datetime, NoneType))
    if isinstance(start, datetime) and start.utcoffset() is None:
        raise UsageError(f"start: {start} has no time zone")
    at = int(start.timestamp() // 1) if isinstance(start, datetime) else start
    return [quote_job(job, rates, defaults, start=at) for job, defaults in _swept(source).jobs()]


def query(expression: str, source: Source, *, version: Version | None = None,
          variables: Mapping[str, str] | None = None, policy: Policy | str | None = None,
          effective: bool = False) -> list[Result]:
    """The results of an XPath expression over a source, which is read, whatever its format. policy: the source has to
    pass all checks under it, else it is looked at as it stands; effective: each job as it counts, with all defaults
    folded in. Raises QueryError, RejectedError, UsageError where the
    two stand the other way round."""
    from sssjob.query import query as query_document
    from sssjob.xml.writer import write_document

    if not isinstance(expression, str) or expression.lstrip()[:1] in _BEGINS:
        raise UsageError(f"{_turned(expression, source)}, and this is no expression")
    _expect("variables", variables, (Mapping, NoneType))
    for name in variables or {}:
        _expect("the name of a variable", name, (str,))
    try:
        document, findings = _given(source, policy=policy)
    except AccessError as error:
        if isinstance(source, str) and "\0" not in expression and Path(expression).is_file():
            raise UsageError(f"{_turned(expression, source)}, and the first of these names a file") from error
        raise
    if policy is not None:
        _gate(document, findings)
    findings.raise_if_rejected()
    text = write_document(document, findings=Findings(document.path))
    return list(query_document(expression, text.encode(), version=version, variables=dict(variables or {}),
                               path=document.path, effective=effective))


def _turned(expression: object, source: object) -> str:
    return f"query takes the expression first, then the source, not ({expression!r:.40}, {source!r:.40})"


def effective(job: Job, defaults: JobDefaults | None = None) -> Effective:
    """What holds for a job beside these JobDefaults: every value with where it was said; ``.fold()`` is a job with all
    of it."""
    from sssjob.document.inherit import effective as effective_job

    if not isinstance(job, Job):
        raise UsageError(f"a Job is expected, as document.jobs() gives them with their defaults, not a "
                         f"{type(job).__name__}")
    _expect("defaults", defaults, (JobDefaults, NoneType))
    return effective_job(job, defaults)


# --- running ------------------------------------------------------------------------------------------------------

def run(source: Source, executor: str = "local", *, timeout: float | None = None, resume: bool = False,
        policy: Policy | str | None = None, cwd: Path | None = None) -> Outcome:
    """Run the jobs of a source to their end and give the outcome: ``.document`` with its results, ``.exit_code``.

    The same as ``sssjob run`` without the journal. timeout: seconds for all of it. resume: do not run again what is
    Completed with exit code 0. Raises RejectedError before anything starts.
    """
    check_psij()
    from sssjob.run import run as run_document

    _expect("executor", executor, (str,))
    _expect("timeout", timeout, (int, float, NoneType))
    if timeout is not None and not 0 <= timeout < inf:
        raise UsageError(f"timeout has to be a number of seconds, not {timeout!r}")
    _expect("cwd", cwd, (Path, str, NoneType))
    document, findings = _admitted(source, policy)
    outcome = run_document(document, executor, findings=findings, timeout=timeout, resume=resume,
                           cwd=cwd, policy=_policy(policy) or Policy.REJECT)
    if not outcome.jobs and outcome.origin == "sssjob":
        outcome.findings.raise_if_rejected()
    return outcome


def submit(source: Source, executor: str = "local", *, policy: Policy | str | None = None,
           cwd: Path | None = None) -> list[str]:
    """Hand the jobs of a source to an executor, written into the journal, and give their names there, by which
    ``sssjob status``, ``wait`` and ``cancel`` know them. Raises RejectedError before anything is submitted."""
    check_psij()
    from sssjob.run.client import Client
    from sssjob.run.journal import open_journal

    _expect("executor", executor, (str,))
    _expect("cwd", cwd, (Path, str, NoneType))
    document, findings = _admitted(source, policy)
    with open_journal() as journal:
        client = Client(journal, findings)
        submitted = client.submit(document, executor, policy=_policy(policy) or Policy.REJECT, cwd=cwd)
        if submitted is None or submitted.entry is None:
            client.findings.raise_if_rejected()
            return []
        return [journal.name_of(row) for row in journal.rows_of(submitted.entry.number)]


# --- sources ------------------------------------------------------------------------------------------------------

def _data(source: Readable) -> tuple[bytes, str]:
    """(bytes, path) of something to be read; a str is text or names a file, as the rule above says."""
    if isinstance(source, str):
        if _is_text(source):
            return source.encode("utf-8", "surrogatepass"), "-"
        return _file(Path(source), source)
    if isinstance(source, Path):
        return _file(source, str(source))
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "-"
    if not hasattr(source, "read"):
        raise UsageError(f"a document, a path, text, bytes or an open file is expected, not a {type(source).__name__}")
    name = getattr(source, "name", "-")
    path = name if isinstance(name, str) else "-"
    try:
        if isinstance(source, TextIOBase) or isinstance(source.read(0), str):   # a temporary file is no TextIOBase
            return str(source.read()).encode("utf-8", "surrogateescape"), path
        return read_bytes(source, path), path  # type: ignore[arg-type]  # whatever else can be read gives bytes
    except ValueError as error:         # a file that is closed, or a text in another encoding
        raise AccessError(path, str(error)) from error


def _is_text(source: str) -> bool:
    """Whether a str is the text of a document, as the rule above says; else it names a file."""
    return "\n" in source or source.lstrip()[:1] in _BEGINS


def _file(place: Path, path: str) -> tuple[bytes, str]:
    check_name(path)
    return read_bytes(place), path


def _document(source: Document | Container) -> Document:
    """The document that is given, or of a container. A list that was given to one may hold anything: UsageError."""
    document = source if isinstance(source, Document) else Document(source)
    for body in document.bodies():
        body._listed(body.items)
    return document


def _given(source: Source, format: str = AUTO, profile: str = "liberal",
           policy: Policy | str | None = None) -> tuple[Document, Findings]:
    """The document of a source, with a collector that holds what was found when it was read."""
    if isinstance(source, Document | Container):
        document = _document(source)
        findings = Findings(document.path)
        findings.extend(document.findings or Findings())
        return document, findings
    findings = Findings()
    document = read(source, format=format, profile=profile, policy=policy, findings=findings)
    findings.file = document.path
    return document, findings


def _admitted(source: Source, policy: Policy | str | None = None) -> tuple[Document, Findings]:
    """The document of a source that passes the gate, and what was found; RejectedError for every other."""
    document, findings = _given(source, policy=policy)
    _gate(document, findings)
    findings.raise_if_rejected()
    return document, findings


def _swept(source: Source) -> Document:
    """The same with every sweep as the jobs that it makes."""
    return _expanded(_admitted(source)[0])


def _expanded(document: Document) -> Document:
    from sssjob.document.sweeps import expand

    findings = Findings()
    expanded = expand(document, findings)
    findings.raise_if_rejected()
    return expanded


def _body(source: Source) -> Document | Container:
    if not isinstance(source, Container):
        return _swept(source)
    _admitted(source)
    return source


def _gate(document: Document, findings: Findings, profile: str = "liberal") -> None:
    """Add what the gate finds that every command has."""
    from sssjob.conversion.intake import gate

    findings.extend(gate(document, profile))


def _refuse(findings: Findings, reported: int) -> None:
    new = list(findings)[reported:]
    if any(f.rejects for f in new):
        raise RejectedError(new)


def _collected(error: RejectedError) -> Findings:
    findings = Findings()
    for f in error.findings:
        findings.add(f.rule, f.subject, f.message, severity=f.severity, line=f.line, column=f.column, path=f.path,
                     hint=f.hint, excerpt=f.excerpt, consequence=f.consequence)
        findings.file = f.file
    return findings


def _expect(name: str, value: object, kinds: tuple[type, ...]) -> None:
    """Raise UsageError where an argument is of none of these types."""
    if not isinstance(value, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds if kind is not NoneType)
        raise UsageError(f"{name} has to be {expected}, not {value!r:.60}")


def _policy(policy: Policy | str | None) -> Policy | None:
    if policy is None or isinstance(policy, Policy):
        return policy
    word = Policy.of(policy) if isinstance(policy, str) else None
    if word is None:
        raise UsageError(f"no policy {policy!r} (known: {', '.join(p.value for p in Policy)})")
    return word


def _site(site: Site | Path | str | None) -> Site | None:
    if site is None:
        return None
    from sssjob.conversion.site import Site, read_site

    _expect("site", site, (Site, Path, str))
    return site if isinstance(site, Site) else read_site(*_data(site))
