"""``sssjob survey``: what a tree of scripts leaves open that only a site can answer, and a draft of its profile."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import click

from sssjob.cli._app import status_of
from sssjob.cli._complete import files as file_names
from sssjob.cli._complete import formats
from sssjob.cli._files import emit, read_bytes
from sssjob.cli._findings import problem
from sssjob.cli._lint_files import Named, named
from sssjob.cli._options import Session, common
from sssjob.cli._profiles import load_site, site_option
from sssjob.cli._tables import table
from sssjob.cli._walking import script_of
from sssjob.conversion.converting import AUTO
from sssjob.conversion.drafting import draft, is_untouched
from sssjob.conversion.site import Site
from sssjob.conversion.survey import KINDS, Survey, Use, surveyed
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import escape
from sssjob.processes import Stopped, in_order, processes, stoppable
from sssjob.translators.recognise import Sample, scripts
from sssjob.translators.registry import get

__all__ = ["command"]

_SHOWN: Final = 5           # files of each reason that are named


@click.command("survey")
@click.argument("trees", nargs=-1, required=True, metavar="TREE...", shell_complete=file_names)
@click.option("-f", "--from", "source", default=AUTO, metavar="FORMAT", shell_complete=formats,
              help="Dialect of the scripts (default: auto, the one that is recognised of each).")
@click.option("--top", type=click.IntRange(1), default=20, metavar="N", help="Names of each kind (default: 20).")
@click.option("--draft", "draft_file", metavar="FILE", shell_complete=file_names,
              help="Write a draft of the site profile to FILE, which has no answers yet (- prints it in place of the "
                   "tables).")
@click.option("--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes (default: cores).")
@site_option
@common
def command(session: Session, trees: tuple[str, ...], source: str, top: int, draft_file: str | None, jobs: int | None,
            site_file: str | None) -> int:
    """List the names, units and modules in every script below TREE that only a site can answer, with counts and
    examples, and draft the site profile that answers them."""
    if source != AUTO:
        from sssjob.translators.lint import lint

        lint(source, b"")                   # a format that is none of scripts is told first
    if draft_file is not None and os.path.isfile(draft_file) and not is_untouched(
            read_bytes(draft_file).decode("utf-8", "replace")):
        raise UsageError(f"--draft {escape(draft_file)}: there is a file already, which may have answers in it; name "
                         "another one, and compare")
    how = _Surveying(source, load_site(site_file)[0])
    survey, omitted = Survey(), _Left()
    files = list(named(trees, skip_others=True))
    try:
        with stoppable() as stops:
            for result in in_order(how.surveyed, _died, files, processes(jobs, len(files)), stops):
                if result.uses is None:
                    omitted.add(result)
                else:
                    survey.add(result.dialect, result.name, result.uses)
    except Stopped as error:
        problem(f"ended by {error}", as_json=session.as_json, status=error.status)
        return error.status
    omitted.tell(session)
    if draft_file is not None:
        emit(draft(survey), draft_file)
    if session.as_json:
        emit("".join(json.dumps(record) + "\n" for record in (
            *survey.records(), {"type": "summary", "scripts": survey.formats, "left_out": dict(omitted.counts)})))
    elif draft_file != "-":
        emit(_tables(survey, top))
    return 3 if omitted.failures else 0


@dataclass(slots=True)
class _Surveyed:
    """What came of one file. uses None: it is left out, for the reason of message; failed: it could not be read."""

    name: str
    dialect: str = ""
    uses: list[Use] | None = None
    message: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class _Surveying:
    """How files are read; it can be sent to another process."""

    source: str
    site: Site | None

    def surveyed(self, file: Named) -> _Surveyed:
        """One file; whatever goes wrong with it is said of it."""
        if file.outcome:
            return _Surveyed(file.name, message=file.why, failed=file.outcome == "unreadable")
        try:
            return self._surveyed(file)
        except RejectedError:
            return _Surveyed(file.name, message="refused by its own reader, sssjob lint says why")
        except UsageError as error:
            return _Surveyed(file.name, message=str(error))
        except (Exception, RecursionError, MemoryError) as error:
            return _Surveyed(file.name, message=status_of(error)[1].removeprefix(f"{file.name}: "), failed=True)

    def _surveyed(self, file: Named) -> _Surveyed:
        if file.given:
            sample = Sample(read_bytes(file.name), file.name)
            fits = scripts(sample)
        else:
            script, fits = script_of(file.name)
            if isinstance(script, str):
                return _Surveyed(file.name, message=script)
            sample = script
        if self.source != AUTO:
            fits = [get(self.source)]
        if len(fits) != 1:
            return _Surveyed(file.name, message="several dialects fit" if fits else "not recognised as a script")
        return _Surveyed(file.name, fits[0].name, surveyed(fits[0], sample, self.site))


def _died(file: Named) -> _Surveyed:
    return _Surveyed(file.name, message="the process that read it died", failed=True)


@dataclass(slots=True)
class _Left:
    """The files that are left out, by the reason."""

    counts: Counter[str] = field(default_factory=Counter)
    names: dict[str, list[str]] = field(default_factory=dict)
    failures: int = 0

    def add(self, result: _Surveyed) -> None:
        """One file."""
        self.counts[result.message] += 1
        self.failures += result.failed
        some = self.names.setdefault(result.message, [])
        if len(some) < _SHOWN:
            some.append(result.name)

    def tell(self, session: Session) -> None:
        """Each reason with its count and some names, on standard error."""
        if session.quiet or session.as_json:
            return
        for why, count in sorted(self.counts.items()):
            more = ", ..." if count > _SHOWN else ""
            names = ", ".join(map(escape, self.names[why]))
            problem(f"{count} {'file' if count == 1 else 'files'} left out, {why}: {names}{more}")


def _tables(survey: Survey, top: int) -> str:
    """The scripts by dialect, then a table of each kind of question."""
    formats = sorted(survey.formats.items(), key=lambda row: (-row[1], row[0]))
    pieces = ["\n".join(table([[name, str(count)] for name, count in formats] or [["no script", "0"]],
                              ("format", "scripts")))]
    for kind, about in KINDS.items():
        rows = survey.of(kind)
        if rows:
            key = f" ({about.key} of a site profile)" if about.key else ""
            pieces.append("\n".join([f"{about.title}{key}", *_rows([
                [question.name, question.dialect, str(answer.scripts), str(answer.uses), answer.example]
                for question, answer in rows[:top]]), *([f"and {len(rows) - top} more"] if len(rows) > top else [])]))
    return "\n\n".join(pieces) + "\n"


def _rows(rows: Sequence[Sequence[str]]) -> list[str]:
    return table([[escape(cell) for cell in row] for row in rows], ("name", "format", "scripts", "uses", "example"))
