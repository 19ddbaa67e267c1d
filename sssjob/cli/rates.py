"""``sssjob rates``: what a site charges for, looked at before it costs anybody anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit, logs_of, once
from sssjob.cli._findings import problem, say
from sssjob.cli._jobs import jobs_of
from sssjob.cli._options import Session, bounded, common, format_option, reading
from sssjob.cli._prices import hinted, load, nothing_taken, options_of
from sssjob.cli._tables import table
from sssjob.conversion.converting import AUTO
from sssjob.errors import UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.accounting import RateSet
    from sssjob.accounting.doubts import Doubt, RateUse
    from sssjob.translators.records.base import Counts

__all__ = ["command"]


@click.group("rates")
def command() -> None:
    """Rates in TOML: what is wrong or doubtful in them, and which of them jobs meet."""


@command.command("check")
@click.argument("rates_file", metavar="FILE", shell_complete=files)
@click.option("--against", "logs", multiple=True, metavar="LOG", shell_complete=files,
              help="Documents or accounting logs: count the jobs that meet each rate (may be given several times).")
@format_option
@common
@reading
def check(session: Session, rates_file: str, logs: tuple[str, ...], options: tuple[str, ...]) -> int:
    """Check the rates of FILE: names that are no properties, amounts that are none, units of something else.

    With --against every rate is printed with the number of jobs that met it, and one that no job met is named with the
    values that they have instead. The exit status is 1 where something is doubtful.
    """
    from sssjob.accounting.doubts import RateUse, doubts
    from sssjob.translators.records.sums import Summary

    logs = logs_of(logs)
    once([rates_file, *logs])
    rates = load(session, rates_file, doubts=False)
    if rates is None:
        return 1
    rate_doubts = doubts(rates)
    _tell(session, rates_file, rate_doubts)
    if not logs:
        if not rate_doubts and not (session.quiet or session.as_json):
            count = len(rates.paths)
            say(f"{escape(rates_file)}: {count} rate{'s' * (count != 1)}, none of them doubtful")
        return 1 if rate_doubts else session.status()
    usage = RateUse(rates)
    read_options = options_of(session.source, options)
    read: list[Counts] = []
    for name in logs:
        with session.tolerant(name), bounded(name), hinted(session, name, session.source):
            for job_or_sum in jobs_of(session, session.source, name, read_options, read):
                if isinstance(job_or_sum, Summary):
                    raise UsageError(f"{escape(name)} holds sums over jobs, and rates are for jobs")
                usage.add(*job_or_sum)
    if session.source == AUTO and not (session.unread or session.errors):
        read_options.check("the formats that were recognised")
    session.errors += nothing_taken(read)
    unmet = list(usage.doubts())
    _print(session, rates, usage)
    _tell(session, rates_file, unmet)
    return 1 if rate_doubts or unmet else session.status()


def _tell(session: Session, file: str, rate_doubts: list[Doubt]) -> None:
    """Print doubts, each on a line."""
    session.warnings += len(rate_doubts)
    for doubt in rate_doubts:
        if session.as_json:
            emit(json.dumps({"type": "doubt", "path": doubt.path, "message": doubt.message, "hint": doubt.hint}) + "\n")
        else:
            problem(f"{escape(file)}: {doubt}", as_json=False)


def _print(session: Session, rates: RateSet, usage: RateUse) -> None:
    """Print the number of jobs of each rate, and of those without a charge."""
    if session.as_json:
        for path, rate in rates.paths:
            emit(json.dumps({"type": "rate", "path": path, "rate": rate.label, "jobs": usage.met[path]}) + "\n")
        emit(json.dumps({"type": "counts", "jobs": usage.jobs, "charged": usage.charged,
                         "not": dict(sorted(usage.reasons.items()))}) + "\n")
        return
    rows = [(path, escape(rate.label, 200), str(usage.met[path])) for path, rate in rates.paths]
    emit("".join(f"{line}\n" for line in table(rows, ("path", "rate", "jobs"))))
    if not session.quiet:
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(usage.reasons.items()))
        say(f"{usage.jobs} job{'s' * (usage.jobs != 1)}: {usage.charged} charged"
            + (f", {usage.reasons.total()} not ({reasons})" if reasons else ""))
