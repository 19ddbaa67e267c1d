"""``sssjob convert``: a document in another format."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from sssjob.cli._complete import directories, files, formats
from sssjob.cli._files import emit, file_name, read_bytes, write_file
from sssjob.cli._findings import record, say
from sssjob.cli._options import Session, bounded, common, output_option, pairs
from sssjob.element import Container
from sssjob.errors import AccessError, SSSJobError, UsageError
from sssjob.findings import RULES, Finding, Findings, Policy, escape
from sssjob.profiles import PROFILES

if TYPE_CHECKING:
    from sssjob.element import Property
    from sssjob.model import Document
    from sssjob.translators.base import ReadContext, Translator
    from sssjob.translators.scripts.raw import Option

__all__ = ["command"]


@click.command("convert")
@click.argument("file", metavar="[FILE]", default="-", shell_complete=files)
@click.option("-f", "--from", "source", required=True, metavar="FORMAT", shell_complete=formats,
              help="Format of FILE: sss, sss-json, psij, sacct ...")
@click.option("-t", "--to", "target", required=True, metavar="FORMAT", shell_complete=formats, help="Format to write.")
@click.option("--to-profile", type=click.Choice(list(PROFILES)), default="3.1", metavar="NAME",
              help="Names to write sss with (default: 3.1).")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE",
              help="An option of a format: indent=N of sss-json (0: one line), timezone=ZONE of records.")
@click.option("--set", "overrides", multiple=True, metavar="OPTION",
              help="An option of the command line that wins over those of a script: --set '--time=5'.")
@click.option("--body", type=click.Choice(["keep"]), help="What becomes of the commands of a script: keep.")
@click.option("--explain", is_flag=True, help="Also say of every property, or directive, what became of it.")
@click.option("--out", "directory", metavar="DIR", shell_complete=directories,
              help="One file a job in DIR, named by Id, else Name.")
@output_option
@common
def command(session: Session, file: str, source: str, target: str, to_profile: str, options: tuple[str, ...],
            overrides: tuple[str, ...], body: str | None, explain: bool, directory: str | None, output: str) -> int:
    """Write FILE (default and -: standard input) in another format.

    What does not carry over is reported; where the policy is to reject it, nothing is written.
    """
    if directory == "":
        raise UsageError("--out '' is no directory")
    if directory is not None and output != "-":
        raise UsageError("--out and --output exclude each other")
    from sssjob.translators.base import ReadContext
    from sssjob.translators.registry import get

    session.explain = explain
    reader, writer = get(source), get(target)
    given = _Options(pairs(options, "--option"))
    if overrides:
        given["set"] = " ".join(overrides)
    if body:
        given["body"] = body
    context = ReadContext(file, Findings(file), session.profile, session.policy, options=given)
    if reader.kind == "record" and directory is None and not explain:
        status = _streamed(_Work(session, writer, to_profile, given), reader, context, output)
        if status is not None:
            return status
    with bounded(file):
        document = reader.read(read_bytes(file), context)
    session.report(context.findings)
    if session.errors:
        return 1
    lenient = Policy.WARN if reader.kind in ("script", "record") else None      # they carry no policy of their own
    work = _Work(session, writer, to_profile, given, session.policy or lenient)
    if directory is not None:
        return _each(work, document, directory)
    text = work.text(document)
    if explain:
        work.explain(document)
    if session.errors:
        return 1
    given.check(source, target)
    emit(text, output)
    return session.status()


class _Options(dict[str, str]):
    """The options of formats, which remembers those that were asked for: all others do not exist."""

    def __init__(self, given: dict[str, str]) -> None:
        super().__init__(given)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> str:
        self.asked.add(key)
        return super().__getitem__(key)

    def check(self, *formats: str) -> None:
        """Refuse an option that no format has asked for."""
        for name in self:
            if name not in self.asked:
                raise UsageError(f"no option {name!r} of {' or '.join(dict.fromkeys(formats))}")


class _Ways(dict[str, tuple[str, str]]):
    """Name of a property -> (kind of the first finding about it, message); places: the same by line and column."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[tuple[int, int], tuple[str, str]] = {}

    def note(self, kind: str, subject: str, message: str, path: str) -> None:
        for name in (path.rpartition("/")[2].partition("[")[0], subject):
            self.setdefault(name, (kind, message))


class _Heard(Findings):
    """Findings that are noted even where the document's own policy is silent."""

    def __init__(self, ways: _Ways) -> None:
        super().__init__()
        self.ways = ways

    def add(self, rule: str, subject: str, message: str, **more: Any) -> Finding | None:
        self.ways.note(RULES[rule].kind, subject, message, more.get("path", ""))
        if more.get("column"):
            self.ways.places.setdefault((more["line"], more["column"]), (RULES[rule].kind, message))
        return super().add(rule, subject, message, **more)


@dataclass(slots=True)
class _Work:
    """Writing one format."""

    session: Session
    writer: Translator
    profile: str
    options: _Options
    policy: Policy | None = None

    def text(self, document: Document) -> str:
        """The document in the format, its findings reported."""
        findings = Findings(document.path)
        text = self._written(document, findings, self.policy)
        self.session.report(findings)
        return text if text.endswith("\n") else text + "\n"

    def _written(self, document: Document, findings: Findings, policy: Policy | None) -> str:
        from sssjob.translators.base import WriteContext

        try:
            return self.writer.write(document, WriteContext(findings, self.profile, policy, self.options))
        except ValueError as error:
            if isinstance(error, SSSJobError) or not self.options:
                raise
            raise UsageError(f"--option: {error}") from error

    def explain(self, document: Document) -> None:
        """The way of every property on standard error: the kind of what was found about it, else exact."""
        ways = _Ways()
        self._written(document, _Heard(ways), Policy.WARN)
        if (script := getattr(document, "origins", None)) is not None:
            self._directives(script, ways)
            return
        for finding in document.findings or ():
            ways.note(finding.kind, finding.subject, finding.message, finding.path)
        for name in dict.fromkeys(name for body in document.bodies() for name in _names(body)):
            above, _, tag = name.rpartition("/")
            way, why = ways.get("JobGroup" if above == "JobGroup" else tag, ("exact", ""))
            if self.session.as_json:
                record({"type": "way", "name": name, "way": way} | ({"message": why} if why else {}))
            else:
                say(escape(f"{name}: {way}{f' ({why})' if why else ''}", 1000))

    def _directives(self, origins: Mapping[int, tuple[Property, Option]], ways: _Ways) -> None:
        """The way of every directive of a script, in the order in which they stand there."""
        said: dict[Option, list[str]] = {}
        for prop, option in origins.values():
            said.setdefault(option, []).append(" ".join([prop.tag, *filter(None, [prop.attributes.get("name")])]))
        for option in sorted(said, key=lambda o: (o.line, o.column)):
            way, why = ways.places.get((option.line, option.column), ("exact", ""))
            names = ", ".join(dict.fromkeys(said[option]))
            if self.session.as_json:
                record({"type": "way", "line": option.line, "column": option.column, "directive": option.shown,
                        "name": names, "way": way} | ({"message": why} if why else {}))
            else:
                say(escape(f"{option.line}:{option.column}: {option.shown} -> {names}: {way}"
                           f"{f' ({why})' if why else ''}", 1000))


@contextmanager
def _source(name: str) -> Iterator[BinaryIO]:
    """A file or (``-``) standard input, to read piece by piece."""
    if name == "-":
        yield sys.stdin.buffer
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open(name, "rb"))
        except (OSError, ValueError) as error:
            raise AccessError(escape(name) or "''", getattr(error, "strerror", None) or str(error)) from None
        yield file


def _streamed(work: _Work, reader: Translator, context: ReadContext, output: str) -> int | None:
    """Records converted job by job, then their counts; None where one of the formats cannot be streamed."""
    from sssjob.translators.base import WriteContext
    from sssjob.translators.records.stream import opened, streams, texts

    session = work.session
    writing = WriteContext(context.findings, work.profile, session.policy, work.options)
    if not streams(reader, work.writer, writing):
        return None
    kept: list[str] = []
    with _source(context.path) as source:
        stream = opened(reader, source, context)
        pieces = texts(stream, work.writer, writing, context.path)
        work.options.check(reader.name, work.writer.name)
        for piece in pieces:
            session.report(context.findings)
            if session.errors:
                return 1
            if output == "-":
                emit(piece)
            else:
                kept.append(piece)
    session.report(context.findings)
    counts = stream.counts
    if session.as_json:
        record({"type": "counts", "file": context.path} | counts.record())
    elif not session.quiet:
        say(escape(f"{context.path}: {counts}", 1000))
    if session.errors or (counts.read and not counts.given):
        return 1
    if output != "-":
        emit("".join(kept), output)
    return session.status()


def _names(container: Container, above: str = "") -> Iterator[str]:
    """Every property of a container and of those in it, as ``Job/Requested/Memory``."""
    path = f"{above}{container.tag}/"
    for item in container.items:
        if isinstance(item, Container):
            yield from _names(item, path)
        else:
            yield path + item.tag


def _each(work: _Work, document: Document, directory: str) -> int:
    """All jobs are translated before the first file is written: under Reject there is none."""
    taken: set[str] = set()
    session, suffixes = work.session, work.writer.suffixes
    findings = Findings(document.path)
    for group in document.groups():
        findings.add("SSS501", "JobGroup", "the files of single jobs have no place for "
                     f"{', '.join(dict.fromkeys(p.tag for p in group.properties()))} of the group",
                     policy=session.policy or Policy.WARN, line=group.line, path="/JobGroup")
    session.report(findings)
    made = [(file_name(name, taken, suffixes[0] if suffixes else ".txt"), work.text(single))
            for name, single in _singles(document)]
    if session.explain:
        work.explain(document)
    if session.errors:
        return 1
    work.options.check(work.writer.name)
    try:
        Path(directory).mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise AccessError(escape(directory), error.strerror or str(error)) from None
    for name, text in made:
        write_file(str(Path(directory) / name), text.encode("utf-8"))
        emit(f"{Path(directory) / name}\n")
    return session.status()


def _singles(document: Document) -> Iterator[tuple[str, Document]]:
    """(name, document) of every job, defaults folded in."""
    from sssjob.inherit import effective

    for number, (job, defaults) in enumerate(document.jobs(), 1):
        name = job.value("Id") or job.value("Name") or f"job-{number}"
        whole = job if defaults is None else effective(job, defaults).fold()
        yield str(name), replace(document, root=whole, findings=None)
