"""``sssjob convert``: a document in another format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from sssjob.model import Document
    from sssjob.translators.base import Translator

__all__ = ["command"]


@click.command("convert")
@click.argument("file", metavar="[FILE]", default="-", shell_complete=files)
@click.option("-f", "--from", "source", required=True, metavar="FORMAT", shell_complete=formats,
              help="Format of FILE: sss, sss-json, psij.")
@click.option("-t", "--to", "target", required=True, metavar="FORMAT", shell_complete=formats, help="Format to write.")
@click.option("--to-profile", type=click.Choice(list(PROFILES)), default="3.1", metavar="NAME",
              help="Names to write sss with (default: 3.1).")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE",
              help="An option of a format: indent=N of sss-json (0: one line).")
@click.option("--explain", is_flag=True, help="Also say of every property what became of it.")
@click.option("--out", "directory", metavar="DIR", shell_complete=directories,
              help="One file a job in DIR, named by Id, else Name.")
@output_option
@common
def command(session: Session, file: str, source: str, target: str, to_profile: str, options: tuple[str, ...],
            explain: bool, directory: str | None, output: str) -> int:
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
    context = ReadContext(file, Findings(file), session.profile, session.policy, options=given)
    with bounded(file):
        document = reader.read(read_bytes(file), context)
    session.report(context.findings)
    if session.errors:
        return 1
    work = _Work(session, writer, to_profile, given)
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
    """Name of a property -> (kind of the first finding about it, message)."""

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
        return super().add(rule, subject, message, **more)


@dataclass(slots=True)
class _Work:
    """Writing one format."""

    session: Session
    writer: Translator
    profile: str
    options: _Options

    def text(self, document: Document) -> str:
        """The document in the format, its findings reported."""
        findings = Findings(document.path)
        text = self._written(document, findings, self.session.policy)
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
        for finding in document.findings or ():
            ways.note(finding.kind, finding.subject, finding.message, finding.path)
        for name in dict.fromkeys(name for body in document.bodies() for name in _names(body)):
            above, _, tag = name.rpartition("/")
            way, why = ways.get("JobGroup" if above == "JobGroup" else tag, ("exact", ""))
            if self.session.as_json:
                record({"type": "way", "name": name, "way": way} | ({"message": why} if why else {}))
            else:
                say(escape(f"{name}: {way}{f' ({why})' if why else ''}", 1000))


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
    from sssjob.model import Document

    for number, (job, defaults) in enumerate(document.jobs(), 1):
        name = job.value("Id") or job.value("Name") or f"job-{number}"
        whole = job if defaults is None else effective(job, defaults).fold()
        yield str(name), Document(whole, document.files, document.path, document.profile)
