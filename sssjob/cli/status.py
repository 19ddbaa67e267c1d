"""``sssjob status``: documents as they stand."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import problem, width
from sssjob.cli._journal import SILENT, facts, lines, names, on_journal, patience, told
from sssjob.cli._tables import table
from sssjob.errors import UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.standing import Running

__all__ = ["command"]


@click.command("status")
@names
@click.option("--sources", is_flag=True, help="Instead of the document every fact with its source and age.")
@click.option("--annotate", is_flag=True, help="Write the source of each fact into the document (Extension SSSJob).")
@patience("The longest to wait for an answer of the resource manager")
@on_journal
def command(client: Client, as_json: bool, ids: tuple[str, ...], sources: bool, annotate: bool,
            timeout: float | None) -> int:
    """Print the documents of these jobs as they stand, with the facts so far.

    ID: the document's Id, the native id, executor:native id, the Id of a group, or @3.1 as `list` shows it. The
    resource manager is asked once, and jobs whose turn has come are submitted. Exit status 4: it does not answer, and
    what was known before is printed.
    """
    if annotate and (sources or as_json):
        other = "--json" if as_json else "--sources"
        raise UsageError(f"--annotate is about the document, which {other} does not print")
    from sssjob.run.evidence import annotate as write_sources

    found = [client.journal.find(name) for name in ids]
    numbers = dict.fromkeys(row.submission for rows in found for row in rows)
    entries = [client.journal.entry(number) for number in numbers]
    submissions, answered = client.look(entries, timeout)
    standing = dict(zip(numbers, submissions, strict=True))
    jobs = [[standing[row.submission].jobs[row.job] for row in rows] for rows in found]
    for job in {id(job): job for several in jobs for job in several}.values():
        job.refresh()
    told(client, as_json)
    if as_json:
        emit(lines([job.row.record() | {"message": str(job.plan.job.value("StatusMessage") or "") or None,
                                        "facts": facts(job), "disagreements": [d.record() for d in job.disagreements]}
                    for several in jobs for job in several]))
    elif sources:
        emit("\n".join("\n".join([*_sources(job), ""]) for several in jobs for job in several))
    else:
        for job in [job for several in jobs for job in several] if annotate else ():
            write_sources(job.plan.job, job.sources())
        emit("".join(_text(several) for several in jobs))
    if not answered:
        problem(SILENT, as_json=as_json, status=4)
    return 0 if answered else 4


def _text(jobs: list[Running]) -> str:
    """The document: the whole where all of its jobs are meant, else the jobs alone, with what they inherit."""
    from sssjob.document.inherit import effective
    from sssjob.xml.writer import write_document

    whole = jobs[0].of
    if len(jobs) == len(whole.jobs):
        return write_document(whole.result())
    return "".join(write_document(effective(job.plan.job, job.plan.group.defaults if job.plan.group else None).fold())
                   for job in jobs)


def _sources(job: Running) -> list[str]:
    now = time.time()
    rows = [[name, value, str(source), f"{round(max(now - source.time, 0.0), 1):g} s"]
            for name, value, source in job.sources()]
    return [f"{job.plan.label} ({job.row.key})", *table(rows, ["fact", "value", "source", "age"], width(sys.stdout)),
            *(f"{d.rule} {escape(d.text)}" for d in job.disagreements)]
