"""``sssjob journal``: the journal as a whole: what has ended is taken out, or written as documents."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from sssjob.cli._files import Results, emit
from sssjob.cli._findings import problem
from sssjob.cli._options import output_option
from sssjob.cli.list_ import moment
from sssjob.document.model import Document

if TYPE_CHECKING:
    from sssjob.run.journal import Entry, Journal

__all__ = ["command"]

_FORMATS: Final = ("sss", "sss-json", "records")


@click.group("journal")
def command() -> None:
    """The journal as a whole."""


@command.command("prune")
@click.option("--before", metavar="TIME", help="Only what had ended by 2026-11-22, 2026-11-22T10:00 (UTC), or 30d ago.")
@click.option("--keep", type=click.IntRange(0), default=0, metavar="N",
              help="Not the newest N submissions that have ended.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and leave it.")
@click.option("--json", "as_json", is_flag=True, help="The numbers as an object.")
def prune_command(before: str | None, keep: int, dry_run: bool, as_json: bool) -> int:
    """Take submissions out of the journal of which all jobs have ended.

    Nothing goes that runs or waits, that a client is busy with, or that a job which waits depends on. The room in the
    file is given back.
    """
    from sssjob.run.journal import open_journal
    from sssjob.run.pruning import prune

    at = None if before is None else moment(before)
    with open_journal() as journal:
        pruned = prune(journal, at, keep, dry_run)
    if as_json:
        emit(json.dumps({"submissions": pruned.submissions, "jobs": pruned.jobs, "kept": pruned.kept,
                         "freed": pruned.freed, "dry_run": dry_run}) + "\n")
    else:
        stay = f"; {pruned.kept} stay, which jobs that wait or clients need" if pruned.kept else ""
        pruned_text = f"{_counted(pruned.submissions, 'submission')} of {_counted(pruned.jobs, 'job')}"
        emit(f"{'would go' if dry_run else 'gone'}: {pruned_text}{stay}\n")
    if pruned.trouble is not None:
        problem(f"the room was not given back: {pruned.trouble}", as_json=as_json)
    return 0


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


@command.command("export")
@click.option("--to", "target", type=click.Choice(_FORMATS), default="sss", metavar="FORMAT",
              help="sss (a JobGroup, the default), sss-json (a document a line) or records (what `list --json` has).")
@click.option("--since", metavar="TIME", help="Only what ended then or later, as of `list`.")
@click.option("--before", metavar="TIME", help="Only what had ended by then.")
@output_option
def export(target: str, since: str | None, before: str | None, output: str) -> int:
    """Write the jobs of submissions that have ended, with their facts, the oldest first.

    Each job stands with what it inherits. One submission after another is read, so that a large journal takes little
    memory. Exit status 5: no job has ended then; a JobGroup without jobs, which no command takes, is not written.
    """
    from sssjob.run.journal import open_journal
    from sssjob.run.pruning import ended_entries

    begin, end = (None if text is None else moment(text) for text in (since, before))
    kept, jobs = Results(), 0
    with open_journal() as journal:
        for entry in ended_entries(journal, begin, end):
            for text in _texts(journal, entry, target):
                kept.add(f"<JobGroup>\n  <Id>journal</Id>\n{text}" if target == "sss" and not jobs else text)
                jobs += 1
    if target == "sss":
        if not jobs:
            problem("no job has ended then: there is nothing of which a JobGroup could be made", status=5)
            return 5
        kept.add("</JobGroup>\n")
    kept.emit(output)
    return 0


def _texts(journal: Journal, entry: Entry, target: str) -> Iterator[str]:
    """The jobs of a submission in a format."""
    from sssjob.document.inherit import effective
    from sssjob.run.client import Client
    from sssjob.run.listing import Filter, listed
    from sssjob.xml.writer import write_document

    if target == "records":
        now = time.time()
        for row in listed(journal, Filter(ended=True, group=f"@{entry.number}")):
            yield json.dumps(row.record(now)) + "\n"
        return
    submission = Client(journal).standing(entry)
    ends = {event.job: event.time for event in entry.events() if event.kind == "ended"}
    if submission.document.files:
        problem(f"@{entry.number}: {len(submission.document.files)} files that came with the document are not written")
    for number, job in enumerate(submission.jobs):
        single = effective(job.plan.job, job.plan.group.defaults if job.plan.group else None).fold()
        if number in ends and not (single.first("StartTime") or single.first("EndTime")):
            single.set_as_is("EndTime", int(ends[number]))      # tells it from others of its Id that never began
        yield write_document(single) if target == "sss" else json.dumps(Document(single).to_dict()) + "\n"
