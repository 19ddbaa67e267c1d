"""``sssjob convert``: a document, a script or records in another format; of a directory every file in it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import directories, files, formats
from sssjob.cli._diffs import difference, wants_scripts
from sssjob.cli._files import Results, Source, emit, file_name, opened, write_file
from sssjob.cli._findings import record, say
from sssjob.cli._log_findings import LogFindings
from sssjob.cli._options import Session, bounded, common, fail_on_option, output_option, pairs
from sssjob.cli._privacy import load_privacy, privacy_option
from sssjob.cli._profiles import load_ids, load_site, site_option
from sssjob.cli._recognised import recognised
from sssjob.cli._verify import Proof, verify_options
from sssjob.conversion.converting import AUTO, Conversion, Options, singles
from sssjob.errors import AccessError, UsageError
from sssjob.findings import Finding, Findings, Policy, escape
from sssjob.translators.registry import BUILT_IN
from sssjob.xml.profiles import PROFILES

if TYPE_CHECKING:
    from sssjob.accounting.privacy import Privacy
    from sssjob.document.model import Document
    from sssjob.translators.base import ReadContext, Translator

__all__ = ["command"]


@click.command("convert", epilog=f"Formats: {', '.join(BUILT_IN)}.")
@click.argument("file", metavar="[FILE|DIR]", default="-", shell_complete=files)
@click.option("-f", "--from", "source", default=AUTO, metavar="FORMAT", shell_complete=formats,
              help="Format of FILE (default: auto, the one that is recognised).")
@click.option("-t", "--to", "target", required=True, metavar="FORMAT", shell_complete=formats, help="Format to write.")
@click.option("--to-profile", type=click.Choice(list(PROFILES)), default="3.1", metavar="NAME",
              help="Names to write sss with (default: 3.1).")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE",
              help="An option of a format: indent=N of sss-json (0: one line), timezone=ZONE of records.")
@click.option("--set", "overrides", multiple=True, metavar="OPTION",
              help="An option of the command line that wins over those of a script: --set '--time=5'.")
@click.option("--body", type=click.Choice(["keep", "translate", "shim"]),
              help="What becomes of the commands of a script (default: shim).")
@click.option("--layout", type=click.Choice(["in-place", "canonical"]),
              help="Where directives of a script go (default: in-place, where those of a script stood).")
@click.option("--comments", is_flag=True, help="Put what a script cannot say into it as comments.")
@click.option("--id-map", "id_map", metavar="FILE", shell_complete=files,
              help="New ids of jobs that dependencies name: CSV of OLD,NEW or a JSON object.")
@privacy_option("What names become where records are made of records (TOML).")
@site_option
@click.option("--to-site", "to_site_file", metavar="FILE", shell_complete=files,
              help="The same of the site that the result is for, where it is another one than that of FILE.")
@click.option("--explain", is_flag=True, help="Also say of every property, or directive, what became of it.")
@click.option("--diff", is_flag=True, help="Print a unified diff of scripts with the reasons beside each hunk; write "
                                            "nothing.")
@click.option("--out", "directory", metavar="DIR", shell_complete=directories,
              help="One file a job in DIR, named by Id, else Name; of a directory the tree of results.")
@click.option("--queue", metavar="DIR", shell_complete=directories,
              help="Put the messages (apel, apel-summary, apel-sync) into a directory queue, one file each.")
@click.option("--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes for a directory (default: cores).")
@click.option("--report", metavar="FILE", shell_complete=files, help="What became of each file of DIR, as JSON.")
@output_option
@common
@fail_on_option
@verify_options
def command(session: Session, file: str, source: str, target: str, to_profile: str, options: tuple[str, ...],
            overrides: tuple[str, ...], body: str | None, layout: str | None, comments: bool, id_map: str | None,
            privacy_file: str | None, site_file: str | None, to_site_file: str | None,
            explain: bool, diff: bool, directory: str | None,
            queue: str | None, jobs: int | None, report: str | None, output: str, proof: Proof | None) -> int:
    """Write FILE (default and -: standard input) in another format, or every file of the directory DIR.

    What does not carry over is reported; where the policy is to reject it, nothing is written.
    """
    if directory == "":
        raise UsageError("--out '' is no directory")
    if directory is not None and output != "-":
        raise UsageError("--out and --output exclude each other")
    if diff and directory is not None:
        raise UsageError("--diff and --out exclude each other")
    if queue is not None and (directory is not None or output != "-" or diff or explain):
        raise UsageError("--queue excludes --out, --output, --diff and --explain")
    values = pairs(options, "--option") | ({"set": " ".join(overrides)} if overrides else {}) | (
        {"body": body} if body else {}) | ({"layout": layout} if layout else {}) | (
        {"comments": "yes"} if comments else {})
    sites = load_site(site_file), load_site(to_site_file)
    how = Conversion(source, target, session.policy, session.profile, to_profile, Options(values), sites[0][0],
                     load_ids(id_map), sites[1][0])
    if proof is not None and how.to_site is not None:
        proof.sites = sites
    elif proof is not None and how.site is not None and how.site.ssh is not None:
        raise UsageError(f"--site is behind SSH ({how.site.ssh.host}), and without --to-site --verify runs both jobs "
                         "here; --to-site names where the converted script runs")
    _ = how.writer                                      # an unknown name is told first
    session.explain = explain
    if privacy_file is not None and (directory is not None or explain):
        raise UsageError(f"--privacy is for one file of records, without {'--explain' if explain else '--out'}")
    if _is_tree(file):
        if proof is not None:
            raise UsageError("--verify is for one script")
        if queue is not None:
            raise UsageError("--queue is for one file")
        if explain:
            raise UsageError("--explain is for one file")
        if directory is None and not diff:
            raise AccessError(escape(file), "is a directory; --out names the one for the results")
        from sssjob.cli._trees import Tree, convert_tree

        return convert_tree(session, Tree(Path(file), Path(directory or file), how, diff=diff), jobs, report)
    if jobs is not None or report is not None:
        raise UsageError(f"{'--jobs' if jobs is not None else '--report'} is for a directory")
    conversion = _One(session, how, file, explain, load_privacy(privacy_file), diff, proof)
    return conversion.run(directory, output) if queue is None else _queued(conversion, queue)


def _queued(conversion: _One, queue: str) -> int:
    """Convert a file to messages, and put them into a directory queue."""
    import tempfile

    from sssjob.cli._queues import enqueue, messages

    header = getattr(conversion.how.writer, "header", None)
    if header is None:
        raise UsageError(f"--queue is for messages (apel, apel-summary, apel-sync), not for {conversion.how.target}")
    with tempfile.TemporaryDirectory(prefix="sssjob-") as folder:
        text = Path(folder) / "messages"
        status = conversion.run(None, str(text))
        if not text.is_file():
            return status
        with open(text, "rb") as lines:
            names = enqueue(queue, messages(lines, header))
    if conversion.session.as_json:
        record({"type": "messages", "queue": queue, "names": names})
    elif not conversion.session.quiet:
        say(f"{escape(queue)}: {len(names)} message{'s' * (len(names) != 1)}")
    return status


def _is_tree(name: str) -> bool:
    """Whether a directory is named."""
    try:
        return name != "-" and Path(name).is_dir()
    except (OSError, ValueError):
        return False


def _stem(output: str) -> str:
    """How what is written is called."""
    return "" if output == "-" else Path(output).stem


@dataclass(slots=True)
class _One:
    """Converting one file."""

    session: Session
    how: Conversion
    name: str
    explain: bool
    privacy: Privacy | None
    diff: bool = False
    proof: Proof | None = None
    reported: bool = False      # whether the findings of reading are told already

    def run(self, directory: str | None, output: str) -> int:
        """All of it; gives the exit status."""
        if self.how.source != AUTO:
            self.how.reader(b"", self.name)         # an unknown format is told before a file that is not there
        with opened(self.name) as file:
            status = self._run(Source(file, self.name), directory, output)
        return status if self.proof is None else self.proof.status(self.session, status)

    def _run(self, source: Source, directory: str | None, output: str) -> int:
        how, session = self.how, self.session
        reader, source = recognised(session, source, how.source)
        context = how.reading(reader, self.name)
        how.options.bodies(reader, how.writer)
        if self.diff:
            wants_scripts(reader, how.writer)
        if self.proof is not None:
            self.proof.wants_scripts(reader, how.writer)
        if reader.kind == "record" and directory is None and not self.explain:
            status = self._streamed(reader, source, context, output)
            if status is not None:
                return status
        if self.privacy is not None:
            raise UsageError(f"--privacy is for records: {reader.name} or {how.target} is no format of them")
        if reader.name == "sss" and directory is None and not self.explain and how.in_pieces:
            status = self._in_pieces(reader, source, output)
            if status is not None:
                return status
        with bounded(self.name):
            if reader.name == "sss" and directory is None and how.writer.one_job and (file := source.again()):
                how.refuse_many(file, self.name)
            data = source.whole()
            document = how.read(reader, data, context)
        gate = how.gate(reader, document)
        findings_read = [*context.findings, *gate]
        by_line = reader.kind == "script" and not any(finding.rejects for finding in findings_read)
        if not self.reported and not by_line:
            session.report(findings_read)
            session.report(context.findings)
        if session.errors:
            return 1
        policy = how.carrying(reader)
        if self.proof is not None:
            self.proof.prepare(session, how, reader, (self.name, data), document, policy)
        if directory is not None:
            return self._each(document, policy, directory, (context.findings, gate) if by_line else None)
        findings = Findings(document.path)
        try:
            text = self._blob(document, policy) or self._text(document, policy, output, findings)
        finally:
            if by_line:
                session.report_once([*context.findings, *gate, *findings], again=True)      # some are withdrawn by now
                session.report(context.findings)        # they are shown; those that were too many are told
            session.report(findings)
        if self.explain:
            self._explained(document)
        if session.errors:
            return 1
        how.options.check(how.source, how.target)
        if self.diff:
            text = difference((self.name, reader.name, data), (self.name, how.target, str(text)),
                              [*context.findings, *findings])
        emit(text, output)
        return session.status()

    def _in_pieces(self, reader: Translator, source: Source, output: str) -> int | None:
        """A large group, never held; None for all that is to be read whole. Nothing is written before all is there."""
        from sssjob.validation.large import WholeError

        session, how = self.session, self.how
        session.source, session.site = reader.name, how.destination
        large = session.large(source)
        if large is None:
            return None
        if session.errors:
            return 1
        findings, results, binary = Findings(large.path), Results(), False
        try:
            for piece in how.pieces(large, how.writing(findings, how.carrying(reader), _stem(output))) or ():
                results.add(piece)
                binary = binary or isinstance(piece, bytes)
        except WholeError:
            self.reported = True
            return None
        session.report(findings)
        if session.errors:
            return 1
        how.options.check(how.source, how.target)
        results.emit(output, binary=binary)
        return session.status()

    def _text(self, document: Document, policy: Policy | None, output: str, findings: Findings) -> str:
        """The document in the format, and what was found while it was written."""
        return self.how.text(document, self.how.writing(findings, policy, _stem(output)))

    def _blob(self, document: Document, policy: Policy | None) -> bytes | None:
        """The same of a format that is no text; None for all others."""
        writer = self.how.writer
        if writer.kind != "record":
            return None
        from sssjob.translators.records.base import RecordTranslator, effective_jobs

        if not isinstance(writer, RecordTranslator) or writer.blobs is None:
            return None
        findings = Findings(document.path)
        data = b"".join(writer.blobs(effective_jobs(document), self.how.writing(findings, policy)))
        self.session.report(findings)
        return data

    def _explained(self, document: Document) -> None:
        from sssjob.cli._ways import explain

        explain(self.how, document, as_json=self.session.as_json)

    def _each(self, document: Document, policy: Policy | None, directory: str,
              of_script: tuple[Findings, Findings] | None) -> int:
        """All jobs are translated before the first file is written: under Reject there is none. of_script: what
        reading a script has found, which is shown with all that its jobs add, each cause once, but for what writing
        them withdraws; None: findings that jobs share are shown once."""
        session, how = self.session, self.how
        shown: list[Finding] = []
        findings = Findings(document.path)
        findings.places = document.places
        for group in document.groups():
            findings.add("SSS501", "JobGroup", "the files of single jobs have no place for "
                         f"{', '.join(dict.fromkeys(p.tag for p in group.properties()))} of the group",
                         policy=session.policy or Policy.WARN, within=group, path="/JobGroup")
        shown.extend(findings)
        taken: dict[str, int] = {}
        results, places = Results(), dict[str, tuple[int, int]]()
        try:
            for name, single in singles(document):
                if of_script is not None:
                    single.findings = document.findings
                findings = Findings(document.path)
                files = how.files(single, how.writing(findings, policy, file_name(name, taken, "")))
                places |= {name: results.add(text) for name, text in files.items()}
                shown.extend(findings)
                if self.explain:
                    self._explained(single)
        finally:
            if of_script is None:           # what stands in the defaults of a group is found with each job
                placed = {(f.line, f.column, f.rule, f.message, f.line or id(f)): f for f in shown}
                session.report(placed.values(), document)
            else:
                session.report_once([*itertools.chain(*of_script), *shown], again=True)
        if session.errors:
            return 1
        how.options.check(how.target)
        try:
            Path(directory).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise AccessError(escape(directory), error.strerror or str(error)) from None
        for name, place in places.items():
            octets = results.piece(place)
            runs = how.writer.files is not None and octets.startswith(b"#!")      # the manager starts it as it is
            write_file(str(Path(directory) / name), octets, mode=0o700 if runs else 0o600)
            emit(f"{Path(directory) / name}\n")
        return session.status()

    def _streamed(self, reader: Translator, source: Source, context: ReadContext, output: str) -> int | None:
        """Records converted job by job, then their counts; None where one of the formats cannot be streamed."""
        if reader.kind != "record":
            return None         # what records take need not be imported
        from sssjob.translators.records.stream import opened as jobs_of
        from sssjob.translators.records.stream import pieces, streams, sums

        session, how = self.session, self.how
        writing = how.writing(context.findings, how.carrying(reader))
        if not streams(reader, how.writer, writing):
            return None
        if self.privacy is not None and sums(reader, how.writer):
            raise UsageError("--privacy is for records of jobs, not for sums")
        kept: list[bytes] = []
        stream = jobs_of(reader, source.stream(), context, how.writer)
        jobs = stream if self.privacy is None else map(self.privacy.applied, stream)
        texts = pieces(jobs, how.writer, writing, context.path, reader)
        how.options.check(reader.name, how.writer.name)
        with LogFindings(session, context.findings) as log_findings:
            for piece in texts:
                log_findings.take()
                if session.errors:
                    return 1
                if output == "-":
                    emit(piece)
                else:
                    kept.append(piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogateescape"))
        counts = stream.counts
        if session.as_json:
            record({"type": "counts", "file": context.path} | counts.record())
        elif not session.quiet:
            say(escape(f"{context.path}: {counts}", 1000))
        if session.errors or (counts.read and not counts.given):
            return 1
        if output != "-":
            emit(b"".join(kept), output)
        return session.status()
