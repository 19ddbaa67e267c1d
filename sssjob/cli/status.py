"""``sssjob status``: documents as they stand."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import problem, width
from sssjob.cli._journal import facts, heard, lines, on_journal, patience, told
from sssjob.cli._ledger import moment_of
from sssjob.cli._settings import following_site_option
from sssjob.cli._tables import table
from sssjob.errors import UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.standing import Running

__all__ = ["command"]

_LEAST_S = 0.1      # for the resource manager where accounting has taken all of the time


@click.command("status")
@click.argument("ids", metavar="ID...", nargs=-1)
@click.option("--refresh", is_flag=True,
              help="First ask accounting for facts that it did not have when jobs ended; without IDs for all jobs.")
@click.option("--since", metavar="TIME", help="With --refresh: ends from this time on (UTC unless it says its zone).")
@click.option("--sources", is_flag=True, help="Instead of the document every fact with its source and age.")
@click.option("--annotate", is_flag=True, help="Write the source of each fact into the document (Extension SSSJob).")
@following_site_option
@patience("The longest to wait for an answer of the resource manager")
@on_journal
def command(client: Client, as_json: bool, ids: tuple[str, ...], refresh: bool, since: str | None, sources: bool,
            annotate: bool, timeout: float | None) -> int:
    """Print the documents of these jobs as they stand, with the facts so far.

    ID: the document's Id, the native id, executor:native id, the Id of a group, or @3.1 as `list` shows it. The
    resource manager is asked once, and jobs whose turn has come are submitted. Exit status 4: it does not answer, and
    what was known before is printed.
    """
    if not refresh and (since is not None or not ids):
        raise UsageError("--since goes with --refresh" if since is not None else "Missing argument 'ID...'.")
    if annotate and (sources or as_json):
        other = "--json" if as_json else "--sources"
        raise UsageError(f"--annotate is about the document, which {other} does not print")
    from sssjob.run.evidence import annotate as write_sources
    from sssjob.run.returning import text_of

    begun = time.monotonic()
    silent = refresh and _refreshed(client, as_json, ids, since, timeout)
    if not ids:
        return 4 if silent else 0
    rows_by_name = [client.journal.find(name) for name in ids]
    numbers = dict.fromkeys(row.submission for rows in rows_by_name for row in rows)
    entries = [client.journal.entry(number) for number in numbers]
    rest = None if timeout is None else max(timeout - (time.monotonic() - begun), _LEAST_S)
    submissions, answered = client.look(entries, rest)
    standing = dict(zip(numbers, submissions, strict=True))
    jobs = [[standing[row.submission].jobs[row.job] for row in rows] for rows in rows_by_name]
    for job in {id(job): job for several in jobs for job in several}.values():
        job.refresh()
    told(client, as_json)
    if as_json:
        emit(lines([job.row.record() | {"facts": facts(job), "disagreements": [d.record() for d in job.disagreements],
                                        "left_out": job.not_its_own}
                    for several in jobs for job in several]))
    elif sources:
        emit("\n".join("\n".join([*_sources(job), ""]) for several in jobs for job in several))
    else:
        for job in [job for several in jobs for job in several] if annotate else ():
            write_sources(job.plan.job, job.sources())
        emit("".join(text_of(client.journal, several) for several in jobs))
    unheard = heard(submissions, answered, as_json)
    elsewhere = any(number in client.whereabouts.elsewhere for number in numbers)
    return 4 if unheard or silent or elsewhere else 0


def _refreshed(client: Client, as_json: bool, ids: tuple[str, ...], since: str | None, timeout: float | None) -> bool:
    """Ask accounting; of the whole journal print what it told. Whether some of it gave no answer."""
    refreshed_jobs = client.refresh(ids, moment_of(since, "UTC", "--since"), timeout)
    if not ids:
        told(client, as_json)
        if as_json:
            emit(lines([refreshed_jobs.jobs[key].row.record() | {"added": added} for key,
                        added in refreshed_jobs.facts.items()]))
        else:
            emit("".join(f"{key} {escape(refreshed_jobs.jobs[key].plan.label)}: {escape(_listed(added), 1000)}\n"
                         for key, added in refreshed_jobs.facts.items()))
    for name in refreshed_jobs.silent:
        problem(f"accounting of {name} does not answer, or not for all jobs", as_json=as_json, status=4)
    return bool(refreshed_jobs.silent)


def _listed(added: dict[str, str]) -> str:
    return ", ".join(f"{fact}={value}" for fact, value in added.items()) or "the sources of its facts"


def _sources(job: Running) -> list[str]:
    from sssjob.run.evidence import LEFT_OUT

    now = time.time()
    rows = [[name, value, str(source), f"{round(max(now - source.time, 0.0), 1):g} s"]
            for name, value, source in job.sources()]
    place = f", site {escape(job.row.site)}" if job.row.site is not None else ""
    return [f"{job.plan.label} ({job.row.key}{place})",
            *table(rows, ["fact", "value", "source", "age"], width(sys.stdout)),
            *(f"{d.rule} {escape(d.text)}" for d in job.disagreements),
            *(f"{LEFT_OUT} {escape(why)}" for why in job.not_its_own)]
