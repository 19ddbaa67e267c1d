"""``sssjob quote``: what requested jobs would cost."""

from __future__ import annotations

import click

from sssjob.accounting import Uncharged
from sssjob.accounting.pricing import Quotation
from sssjob.accounting.times import TimeError, moment
from sssjob.cli._complete import files
from sssjob.cli._files import Results, once
from sssjob.cli._findings import problem, say
from sssjob.cli._options import Session, common, reading, zone_of
from sssjob.cli._prices import PricedJobs, load, page, quoted, rates_of, rates_option, tell_unsaid
from sssjob.errors import UsageError
from sssjob.findings import Findings

__all__ = ["command"]


@click.command("quote")
@click.argument("file", metavar="FILE", shell_complete=files)
@rates_option
@click.option("--itemise", is_flag=True, help="Print the items of every quote.")
@click.option("--start", metavar="TIME", help="When the jobs would start, where the rates go by the time of day: epoch "
                                              "seconds or ISO 8601.")
@click.option("--timezone", metavar="ZONE", help="Zone of a --start that has none, as Europe/Berlin.")
@common
@reading
def command(session: Session, file: str, rates_file: str | None, itemise: bool, start: str | None,
            timezone: str | None) -> int:
    """Print what the jobs of FILE (- is standard input) will be charged if they get what they request.

    Of a range the least counts, of Duration the most. Where the rates go by the time of day and nothing says when a job
    starts, it is quoted as if it started now. A job that cannot be quoted is reported with what is missing, and the
    exit status is 1.
    """
    rates_path = rates_of(session, rates_file)
    once([file, rates_path])
    from sssjob.document.sweeps import jobs_in

    at = None if start is None else _moment(start, timezone)
    rates = load(session, rates_path)
    if rates is None:
        return 1
    tally = PricedJobs(session, file, "quoted", rates)
    results = Results()
    findings = Findings(file)
    with session.opened(file) as document:
        if session.errors:
            return 1
        tally.places = document.places
        for job, defaults in jobs_in(document, findings):
            price, from_now = quoted(Quotation(job, defaults), rates, at)
            if from_now:
                findings.add("SSS503", "StartTime", "the rates go by the time of day; quoted as if the job started now "
                             "(--start names another time)", severity="info")
            results.add(page([tally.add(job, price)], as_json=session.as_json, itemise=itemise))
            session.errors += isinstance(price, Uncharged)
    session.report(findings)
    tell_unsaid(session, file, tally.unsaid, tally.done, "quoted")
    if not tally.jobs:
        problem(f"{file}: there is no job", as_json=session.as_json, status=1)
        return 1
    results.add(page([tally.record()], as_json=session.as_json, itemise=itemise))
    results.emit()
    if tally.jobs > 1 and not (session.as_json or session.quiet):
        say(str(tally))
    return session.status()


def _moment(start: str, timezone: str | None) -> int:
    """Epoch seconds of --start."""
    zone = None if timezone is None else zone_of(timezone)
    try:
        return moment(start, zone)
    except TimeError as error:
        raise UsageError(f"--start: {error}") from None
