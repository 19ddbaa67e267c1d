"""``sssjob diff`` and ``patch``: two documents or scripts of any formats, compared by what they mean, and what differs,
applied to another one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._complete import files, formats
from sssjob.cli._files import emit, once, read_bytes
from sssjob.cli._findings import LONG, width
from sssjob.cli._options import Session, common, output_option, reading
from sssjob.cli._profiles import load_site, site_option
from sssjob.cli._tables import table
from sssjob.conversion.converting import AUTO
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings, escape

if TYPE_CHECKING:
    from sssjob.conversion.compare import Difference, Habits
    from sssjob.document.model import Document

__all__ = ["commands"]


@click.command("diff")
@click.argument("first_name", metavar="A", shell_complete=files)
@click.argument("second_name", metavar="B", shell_complete=files)
@click.option("-f", "--from", "sources", multiple=True, metavar="FORMAT", shell_complete=formats,
              help="Format of A and B, or of each if given twice (default: auto, the one that is recognised).")
@click.option("--no-script", is_flag=True, help="Do not compare the commands of scripts.")
@site_option
@common
def diff(session: Session, first_name: str, second_name: str, sources: tuple[str, ...], no_script: bool,
         site_file: str | None) -> int:
    """Compare A and B by what they mean: properties by level, units and layouts made equal.

    Exit status 0: they mean the same; 1: they do not, or one of them is refused.
    """
    if len(sources) > 2:
        raise UsageError("--from is given once for both, or twice")
    once([first_name, second_name])
    from sssjob.conversion.compare import differences

    first, *rest = sources or (AUTO,)
    session.site = load_site(site_file)[0]
    a, b = (session.read(name, source=source, facts=True)
            for name, source in ((first_name, first), (second_name, rest[0] if rest else first)))
    if session.errors:
        return 1
    unequal, same = differences(a, b, script=not no_script, habits=_habits())
    if session.as_json:
        emit(json.dumps({"equal": not unequal, "same": same, "differences": [
            {"subject": d.subject, "a": d.one, "b": d.other} for d in unequal], "patch": _patch(a, b)}) + "\n")
    elif unequal:
        long = [d for d in unequal if d.one and d.other and "\n" in d.one + d.other]
        rows = [[d.subject, *_cells(d)] for d in unequal if d not in long]
        lines = table(rows, ("about", first_name, second_name), width(sys.stdout, LONG)) if rows else []
        emit("".join(f"{line}\n" for line in [*lines, *_unified(long, first_name, second_name)]))
    return 1 if unequal else session.status()


def _patch(a: Document, b: Document) -> dict[str, Any] | None:
    """What ``sssjob patch`` makes the other document with; None where one of them cannot be written as a document."""
    from sssjob.conversion.patching import patch_of

    try:
        return patch_of(a, b)
    except RejectedError:
        return None


def _habits() -> Habits:
    """What the dialects do without a word."""
    from sssjob.conversion.compare import Habits
    from sssjob.translators.scripts.base import dialect_of
    from sssjob.translators.scripts.body import all_facts

    def merges(name: str) -> bool:
        """Whether a dialect puts both streams into one file unless told otherwise."""
        dialect = dialect_of(name)
        return dialect is not None and dialect.merges

    def exports(name: str) -> str:
        """Which variables of the submitter a dialect hands on unless told otherwise."""
        dialect = dialect_of(name)
        return "" if dialect is None else str(dialect.exports).lower()

    return Habits(merges, frozenset(name for facts in all_facts().values() for name, meaning in facts.variables.items()
                                    if meaning == "submit_dir"), exports)


def _cells(d: Difference) -> list[list[str]]:
    """The two values, each as its lines."""
    return [["-"] if text is None else (text or '""').split("\n") for text in (d.one, d.other)]


def _unified(differences: Iterable[Difference], first: str, other: str) -> Iterator[str]:
    """Texts of several lines as unified diffs, which say where in the text the lines stand."""
    for d in differences:
        if d.one is not None and d.other is not None:
            lines = unified_diff(d.one.split("\n"), d.other.split("\n"), f"{first}: {d.subject}",
                                 f"{other}: {d.subject}",
                                 lineterm="")
            yield from map(escape, lines)


@click.command("patch")
@click.argument("file", metavar="FILE", shell_complete=files)
@click.argument("patch_file", metavar="PATCH", shell_complete=files)
@output_option
@common
@reading
def patch(session: Session, file: str, patch_file: str, output: str) -> int:
    """Apply PATCH, which `sssjob diff --json A B` wrote, to FILE, and write the document that comes of it.

    FILE need not be A: an edit is applied where what it takes stands. Exit status 1: an edit does not fit, and nothing
    is written.
    """
    once([file, patch_file])
    from sssjob.conversion.patching import apply, read_patch
    from sssjob.xml.writer import write_document

    edits = read_patch(read_bytes(patch_file), patch_file)
    document = session.read(file, facts=True)
    if session.errors:
        return 1
    findings = Findings(patch_file)
    patched = apply(document, edits, findings)
    session.report([finding for finding in findings if not session.knows(finding)])
    if findings.rejected:
        return 1
    emit(write_document(patched, policy=session.policy), output)
    return session.status()


commands: Final = {"diff": diff, "patch": patch}
