"""``convert`` of a directory: every file in it on its own, in several processes, each result whole or not at all.

What cannot be read or converted is told and the rest goes on. Nothing outside of the two directories is read or
written: links that lead out are left alone on both sides.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sssjob.cli._app import status_of
from sssjob.cli._diffs import difference, wants_scripts
from sssjob.cli._files import emit, file_name, read_bytes, write_file
from sssjob.cli._findings import problem
from sssjob.cli._tables import table
from sssjob.cli._walking import walked
from sssjob.consequences import worst_first
from sssjob.conversion.converting import Conversion, singles
from sssjob.errors import AccessError, RejectedError, UsageError
from sssjob.findings import Finding, Findings, escape
from sssjob.processes import Stopped, in_order, processes, stoppable
from sssjob.translators.recognise import NoFormatError, Sample
from sssjob.translators.registry import get, names

if TYPE_CHECKING:
    from sssjob.cli._options import Session
    from sssjob.document.model import Document
    from sssjob.translators.base import Translator

#: What becomes of a file -> what it adds to the exit status.
OUTCOMES: Final = {"converted": 0, "rejected": 1, "collision": 1, "unreadable": 3, "unwritten": 3, "failed": 3,
                   "skipped": 0}
_MOST: Final = 20           # kinds of findings in the summary
_REFRESH: Final = 0.1       # seconds between two looks of the bar


@dataclass(slots=True)
class Outcome:
    """What became of one file, named from its tree. message: why, where there is no finding; usage: the command line
    is to blame, not the file; diff: the result as a difference, where nothing is written."""

    file: str
    outcome: str
    outputs: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    overflow: int = 0
    message: str = ""
    format: str = ""
    usage: bool = False
    diff: str = ""

    def record(self) -> dict[str, Any]:
        """As JSON; every record has every key, and diff where there is one."""
        return {"file": self.file, "outcome": self.outcome, "format": self.format, "outputs": self.outputs,
                "message": self.message, "findings": [f.record() for f in self.findings],
                "more_findings": self.overflow} | ({"diff": self.diff} if self.diff else {})


@dataclass(slots=True)
class Tree:
    """The two directories, and how files are converted. diff: nothing is written, differences are printed."""

    root: Path
    out: Path
    how: Conversion
    diff: bool = False
    suffixes: frozenset[str] = field(default_factory=lambda: all_suffixes())
    made: set[Path] = field(default_factory=set)        # folders of results that are there and within

    # -- in this process
    def found(self) -> Iterator[Outcome | str]:
        """The files in order of their names, or what became of them already; hidden ones and the output left out."""
        for walked_file in walked(self.root, self.out):
            name = self.named(Path(walked_file.name))
            yield Outcome(name, walked_file.outcome, message=walked_file.why) if walked_file.outcome else name

    def named(self, path: Path) -> str:
        """A path from the root of the tree."""
        return str(path.relative_to(self.root))

    # -- in any process
    def convert(self, file: str) -> Outcome:
        """One file, read, converted and written."""
        findings = Findings(file)
        outcome = Outcome(file, "converted")
        try:
            self._convert(file, findings, outcome)
        except (RejectedError, UsageError) as error:
            outcome.outcome = "rejected"
            outcome.message = "" if isinstance(error, RejectedError) else str(error)
        except (Exception, RecursionError) as error:
            status, why = status_of(error)
            outcome.outcome = "unreadable" if isinstance(error, OSError) else "rejected" if status == 1 else "failed"
            outcome.message = why
        outcome.findings, outcome.overflow = list(findings), findings.overflow
        return outcome

    def _convert(self, file: str, findings: Findings, outcome: Outcome) -> None:
        how = self.how
        path = self.root / file
        data = read_bytes(str(path))
        sample = Sample(data, file)
        try:
            reader, _ = how.reader(sample, file)
        except NoFormatError:
            outcome.outcome, outcome.message = "skipped", "no format is recognised in it"
            return
        outcome.format = reader.name
        how.options.bodies(reader, how.writer)
        if self.diff:
            wants_scripts(reader, how.writer)
        context = how.reading(reader, file, sample)
        context.findings = findings
        document = how.read(reader, data, context)
        findings.extend(how.gate(reader, document))
        findings.raise_if_rejected()
        try:
            texts = self._texts(document, file, how, findings, reader)
            how.options.check(how.source, how.target)
        except UsageError:
            outcome.usage = True
            raise
        findings.raise_if_rejected()
        if self.diff:
            (name, text), = texts.items()
            outcome.diff = difference((file, reader.name, data), (name, how.target, text), findings)
            return
        mode = stat.S_IMODE(path.stat().st_mode) & 0o777
        for name, text in texts.items():
            runs = how.writer.files is not None and text.startswith("#!")
            try:
                self._write(name, text, mode | 0o100 if runs else mode)
            except OSError as error:
                outcome.outcome, outcome.message = "unwritten", status_of(error)[1]
                return
            outcome.outputs.append(name)

    def _texts(self, document: Document, file: str, how: Conversion, findings: Findings, reader: Translator
               ) -> dict[str, str]:
        """Names of files, from the output directory -> texts."""
        policy = how.carrying(reader)
        name = output_name(file, how.writer, self.suffixes)
        if how.writer.kind == "script" and len(jobs := list(singles(document))) > 1:
            above, taken = os.path.splitext(file)[0], set[str]()
            return {f"{above}/{n}": text for job, single in jobs
                    for n, text in how.files(single, how.writing(
                        findings, policy, file_name(job, taken, ""))).items()}
        if how.writer.files is not None:
            stem = os.path.basename(os.path.splitext(file)[0])
            files = how.files(document, how.writing(findings, policy, stem))
            return {os.path.join(os.path.dirname(file), n): text for n, text in files.items()}
        return {name: how.text(document, how.writing(findings, policy, os.path.splitext(os.path.basename(name))[0]))}

    def _write(self, name: str, text: str, mode: int) -> None:
        path = self.out / name
        if path.parent not in self.made:
            self._folder(path.parent)
        write_file(str(path), text.encode("utf-8", "surrogateescape"), mode=mode, durable=False)

    def _folder(self, folder: Path) -> None:
        """Make a folder of results, once; AccessError where it is not in the output directory."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AccessError(escape(str(folder)), error.strerror or str(error)) from None
        within = os.path.realpath(self.out)
        if os.path.commonpath((within, os.path.realpath(folder))) != within:
            raise AccessError(escape(str(folder)), "a link leads out of the output directory")
        self.made.add(folder)


def output_name(file: str, writer: Translator, suffixes: frozenset[str]) -> str:
    """What a file is called afterwards: as before, but for a suffix that says another format. suffixes: of all."""
    stem, suffix = os.path.splitext(file)
    if writer.files is not None:
        return stem + writer.suffixes[0]
    recognised = suffix == ".sh" or suffix in suffixes
    if writer.kind == "script" and (not recognised or suffix == ".sh" or suffix in writer.suffixes):
        return file
    return (stem if recognised else file) + (writer.suffixes[0] if writer.suffixes else ".txt")


def all_suffixes() -> frozenset[str]:
    """The suffixes of all formats that can be loaded."""
    suffixes: set[str] = set()
    for name in names():
        try:
            suffixes.update(get(name).suffixes)
        except UsageError:
            continue                # a third party's that cannot be loaded; asked for, it is told
    return frozenset(suffixes)


# -- telling
def convert_tree(session: Session, tree: Tree, jobs: int | None, report: str | None) -> int:
    """All files of a tree; the summary on standard output, findings on standard error; gives the exit status."""
    if not tree.diff:
        _apart(tree)
    session.brief = True
    files_found = list(tree.found())
    decided = [outcome for outcome in files_found if isinstance(outcome, Outcome)]
    named = {file: output_name(file, tree.how.writer, tree.suffixes) for file in files_found if isinstance(file, str)}
    times = Counter(named.values())
    decided += [Outcome(file, "collision", message=f"{name} would be the result of another file too")
                for file, name in named.items() if times[name] > 1]
    files = [file for file, name in named.items() if times[name] == 1]
    try:
        tree.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AccessError(escape(str(tree.out)), error.strerror or str(error)) from None
    tally = _TreeSummary()
    try:
        with stoppable() as stops, _Report(report, tree) as written, _bar(session, len(files)) as advance:
            for outcome in decided:
                _tell(session, outcome, tally, written)
            for outcome in in_order(tree.convert, _died, files, processes(jobs, len(files)), stops):
                if outcome.usage:
                    raise UsageError(outcome.message)
                _once(outcome, tally)
                _tell(session, outcome, tally, written)
                if not session.as_json:
                    emit(outcome.diff)
                advance()
            written.counts = dict(tally.outcomes)
    except Stopped as error:
        problem(f"ended by {error}", as_json=session.as_json, status=error.status)
        return error.status
    if tally.repeated and not session.quiet:
        problem(f"{tally.repeated} findings that say the same of other files are not shown; --report and --json have "
                "all of them")
    if not tree.diff or session.as_json:
        _summary(session, tally)
    status = max((OUTCOMES[name] for name in tally.outcomes), default=0)
    return status or int(session.flawed)


def _died(file: str) -> Outcome:
    return Outcome(file, "failed", message="the process that converted it died")


def _once(outcome: Outcome, tally: _TreeSummary) -> None:
    """Tell of a result that another file has too, as only the format that names its files could know."""
    owners = [(name, tally.owners.setdefault(name, outcome.file)) for name in outcome.outputs]
    shared = next(((name, other) for name, other in owners if other != outcome.file), None)
    if shared is not None:
        outcome.outcome = "collision"
        outcome.message = f"the result {shared[0]} is that of {shared[1]} too, and holds one of them"


def _apart(tree: Tree) -> None:
    """Refuse an output directory that the tree lies in: results would replace what is still to be read."""
    if tree.root.resolve().is_relative_to(tree.out.resolve()):
        raise UsageError(f"--out {escape(str(tree.out))}: {escape(str(tree.root))} lies in it")


class _Cause(NamedTuple):
    """What findings of a tree are counted by; rank: how bad it is (``worst_first``)."""

    rank: int
    job: str
    rule: str
    kind: str
    subject: str


@dataclass(slots=True)
class _TreeSummary:
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: Counter[_Cause] = field(default_factory=Counter)
    files: Counter[_Cause] = field(default_factory=Counter)
    owners: dict[str, str] = field(default_factory=dict)            # result -> the file that it was made of
    told: set[tuple[str, str]] = field(default_factory=set)         # rule and message of what was shown
    repeated: int = 0                                               # findings that said the same of another file

    def fresh(self, findings: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
        """The findings that are to be shown, and those that say what was said of a file before; errors are shown of
        every file."""
        shown_before = self.told
        shown = [f for f in findings if f.rejects or (f.rule, f.message) not in shown_before]
        kept = {id(f) for f in shown}
        shown_before.update((f.rule, f.message) for f in shown)
        return shown, [f for f in findings if id(f) not in kept]


def _tell(session: Session, outcome: Outcome, tally: _TreeSummary, report: _Report) -> None:
    tally.outcomes[outcome.outcome] += 1
    causes = [_Cause(worst_first(f.severity, f.consequence), "refuses" if f.rejects else f.consequence, f.rule, f.kind,
                     f.subject) for f in outcome.findings if f.kind != "exact"]
    tally.findings.update(causes)
    tally.files.update(set(causes))
    report.add(outcome)
    if session.as_json:
        session.report(outcome.findings, again=False)
    else:
        shown, again = tally.fresh(outcome.findings)
        session.report_once(shown)
        session.warnings += sum(f.severity == "warning" for f in again)
        tally.repeated += len(again)
    if outcome.overflow and not session.quiet:
        problem(f"{outcome.file}: {outcome.overflow} more findings are not shown", as_json=session.as_json)
    if outcome.message and (OUTCOMES[outcome.outcome] or not session.quiet):
        message = outcome.message if outcome.message.startswith(outcome.file) else f"{outcome.file}: {outcome.message}"
        problem(message, as_json=session.as_json, status=OUTCOMES[outcome.outcome])
    if session.as_json:
        emit(json.dumps({"type": "file"} | outcome.record()) + "\n")


def _summary(session: Session, tally: _TreeSummary) -> None:
    total = sum(tally.outcomes.values())
    if session.as_json:
        emit(json.dumps({"type": "summary", "files": total, "outcomes": dict(tally.outcomes)}) + "\n")
        return
    rows = [[name, str(tally.outcomes[name])] for name in OUTCOMES if tally.outcomes[name]]
    emit("\n".join(table([*rows, ["all", str(total)]], ("outcome", "files"))) + "\n")
    causes = sorted(tally.findings.items(), key=lambda item: (item[0].rank, -item[1]))[:_MOST]
    if causes and not session.quiet:
        rows = [[*cause[1:], str(times), str(tally.files[cause])] for cause, times in causes]
        emit("\n" + "\n".join(table(rows, ("job", "rule", "kind", "about", "times", "files"))) + "\n")
        if len(tally.findings) > _MOST:
            emit(f"and {len(tally.findings) - _MOST} more\n")


class _Report:
    """The report of a run as one JSON object, written as it goes and put in its place in the end."""

    def __init__(self, name: str | None, tree: Tree) -> None:
        self.name, self.tree = name, tree
        self.counts: dict[str, int] = {}
        self.separator = "\n"

    def __enter__(self) -> _Report:
        if self.name is None:
            return self
        try:
            folder = os.path.dirname(os.path.abspath(self.name))
            handle, self.temporary = tempfile.mkstemp(prefix=".sssjob-", dir=folder)
        except (OSError, ValueError) as error:
            raise AccessError(escape(self.name) or "''", getattr(error, "strerror", None) or str(error)) from None
        self.file = open(handle, "w", encoding="utf-8")
        head = {"from": self.tree.how.source, "to": self.tree.how.target, "tree": str(self.tree.root),
                "out": str(self.tree.out)}
        self.file.write(json.dumps(head)[:-1] + ', "files": [')
        return self

    def add(self, outcome: Outcome) -> None:
        """Write down what became of one file."""
        if self.name is not None:
            self.file.write(self.separator + json.dumps(outcome.record()))
            self.separator = ",\n"

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self.name is None:
            return
        try:
            self.file.write(f"\n], \"outcomes\": {json.dumps(self.counts)}}}\n")
            self.file.close()
            if kind is None:
                os.replace(self.temporary, self.name)
        except OSError as failed:
            raise AccessError(escape(self.name), failed.strerror or str(failed)) from None
        finally:
            if os.path.lexists(self.temporary):
                os.unlink(self.temporary)


@contextmanager
def _bar(session: Session, total: int) -> Iterator[Any]:
    """A progress bar on a terminal; gives what is called after each file."""
    if session.quiet or session.as_json or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns: Iterable[Any] = (TextColumn("converting"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    shown = 0.0

    def advance() -> None:
        """Count one more file; the bar is drawn again when it has been some time."""
        nonlocal shown
        progress.advance(task)
        if time.monotonic() - shown > _REFRESH:
            progress.refresh()
            shown = time.monotonic()

    # without a thread of its own, so that processes can be copies of this one
    with Progress(*columns, console=Console(stderr=True), redirect_stdout=False, transient=True,
                  auto_refresh=False) as progress:
        task = progress.add_task("", total=total)
        yield advance
