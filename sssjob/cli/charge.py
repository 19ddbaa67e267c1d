"""``sssjob charge``: what delivered jobs cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit, once
from sssjob.cli._findings import problem, say
from sssjob.cli._options import Session, common, output_option
from sssjob.cli._prices import Tally, load, page, rates_option
from sssjob.findings import Findings

if TYPE_CHECKING:
    from sssjob.accounting import Charge
    from sssjob.model import Job

__all__ = ["command"]


@click.command("charge")
@click.argument("file", metavar="FILE", shell_complete=files)
@rates_option
@click.option("--itemise", is_flag=True, help="Print the items of every charge instead of the document.")
@output_option
@common
def command(session: Session, file: str, rates_file: str, itemise: bool, output: str) -> int:
    """Charge the jobs of FILE (- is standard input) for what was delivered to them and write Charge into it.

    A job that cannot be charged is told with the reason and stays as it is. With --itemise or --json the document is
    written only where --output says.
    """
    once([file, rates_file])
    from sssjob.accounting import Uncharged, charge
    from sssjob.writer import write_document

    rates = load(session, rates_file)
    if rates is None:
        return 1
    document = session.read(file)
    if session.errors:
        return 1
    tally = Tally(session, file, "charged", rates)
    records = []
    for job, defaults in document.jobs():
        made = charge(job, rates, defaults)
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
        findings.add("SSS606", "Charge", f"Charge {old.text} becomes {new.text}", line=job.line, path="/Job/Charge")
        session.report(findings)
    job.set("Charge", new)
