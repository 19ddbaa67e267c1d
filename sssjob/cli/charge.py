"""``sssjob charge``: what delivered jobs cost."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit, once
from sssjob.cli._findings import problem, say
from sssjob.cli._options import Session, common, format_option, output_option, reading
from sssjob.cli._prices import Tally, hinted, load, options_of, page, rates_option
from sssjob.cli._recognised import Looked
from sssjob.conversion import AUTO
from sssjob.errors import UsageError
from sssjob.findings import Findings

if TYPE_CHECKING:
    from sssjob.accounting import Charge, RateSet
    from sssjob.model import Document, Job

__all__ = ["command"]


@click.command("charge")
@click.argument("names", metavar="FILE...", nargs=-1, required=True, shell_complete=files)
@rates_option
@format_option
@click.option("--itemise", is_flag=True, help="Print the items of every charge instead of the document.")
@click.option("--jobs", type=click.IntRange(1, 1024), default=1, metavar="N",
              help="Processes for the logs (default: 1).")
@click.option("--dask", metavar="ADDRESS", help="Spread the logs over the Dask cluster of this scheduler.")
@output_option
@common
@reading
def command(session: Session, names: tuple[str, ...], rates_file: str, options: tuple[str, ...],
            itemise: bool, jobs: int, dask: str | None, output: str) -> int:
    """Charge the jobs of FILE (- is standard input) for what was delivered to them: documents or accounting logs.

    A document comes back with Charge written into it. Of accounting logs a table is made, one row a job: CSV, Parquet
    where --output ends in .parquet, or a Parquet file for each log where it is a folder. A job that cannot be charged
    is told with the reason.
    """
    once([*names, rates_file])
    with closing(Looked()) as looked:
        source = looked.format(session, names) if session.source == AUTO else session.source
        return _charged(session, names, rates_file, source, options, itemise, jobs, dask, output, looked)


def _charged(session: Session, names: tuple[str, ...], rates_file: str, source: str, options: tuple[str, ...],
             itemise: bool, jobs: int, dask: str | None, output: str, looked: Looked) -> int:
    from sssjob.translators.records.base import RecordTranslator
    from sssjob.translators.registry import get

    reader = get(source)
    given = options_of(reader, options)
    rates = load(session, rates_file)
    if rates is None:
        return 1
    if isinstance(reader, RecordTranslator) and reader.stream is not None:
        if itemise:
            raise UsageError("--itemise is for documents; a table has no room for it (see sssjob ledger)")
        from sssjob.cli._charge_tables import charge_logs

        all_options = {**session.defaults(reader), **given.given}
        return charge_logs(session, names, rates, source, all_options, output, jobs, dask, looked)
    if len(names) > 1 or jobs > 1 or dask is not None:
        raise UsageError(f"several files, --jobs and --dask are for accounting logs (-f), not for {source}")
    file = names[0]
    with hinted(session, file, source):
        document = session.read(file, looked.whole(file), source=source, options=given, facts=True)
    return 1 if session.errors else _document(session, document, file, rates, itemise, output)


def _document(session: Session, document: Document, file: str, rates: RateSet, itemise: bool, output: str) -> int:
    from sssjob.accounting import Uncharged
    from sssjob.accounting.attempts import charges
    from sssjob.writer import write_document

    tally = Tally(session, file, "charged", rates)
    records = []
    for job, made in charges(document, rates):
        records.append(tally.add(job, made))
        if isinstance(made, Uncharged):
            session.warnings += 1
        else:
            _fill(session, file, job, made)
    if not tally.jobs:
        problem(f"{file}: there is no job", as_json=session.as_json, status=1)
        return 1
    if itemise or session.as_json:
        emit(page([*records, tally.record()], as_json=session.as_json, itemise=True))
    if output != "-" or not (itemise or session.as_json):
        findings = Findings(file)
        text = write_document(document, findings=findings)
        session.report(findings)
        emit(text, output)
    if not (session.as_json or session.quiet):
        say(str(tally))
    return session.status()


def _fill(session: Session, file: str, job: Job, made: Charge) -> None:
    """Write the charge into the job; another one that stood there is told."""
    from sssjob.element import new_property

    new = new_property("Charge", made.amount, {"units": made.currency} if made.currency else {})
    old = job.first("Charge")
    if old is not None and (old.value, old.get("units")) != (new.value, new.get("units")):
        findings = Findings(file)
        findings.add("SSS606", "Charge", f"Charge {old.text} becomes {new.text}", within=job, path="/Job/Charge",
                     item=old)
        session.report(findings)
    job.set_as_is("Charge", new)
