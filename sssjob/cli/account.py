"""``sssjob account``: totals of documents and accounting logs, as a table and as a page with plots."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import click

from sssjob.cli._complete import files, formats
from sssjob.cli._files import emit, logs_of, once, read_bytes
from sssjob.cli._findings import problem, say, width
from sssjob.cli._jobs import jobs_of
from sssjob.cli._ledger import moment_of
from sssjob.cli._options import Session, bounded, common, format_option, zone_of
from sssjob.cli._privacy import load_privacy, privacy_option
from sssjob.cli._tables import table
from sssjob.conversion.converting import AUTO
from sssjob.document.element import new_property
from sssjob.errors import UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.accounting import Uncharged
    from sssjob.accounting.capacity import Capacity
    from sssjob.accounting.plans import Plans
    from sssjob.accounting.privacy import Privacy
    from sssjob.accounting.totals import Totals
    from sssjob.document.model import Job, JobDefaults
    from sssjob.translators.records.sums import Summary

__all__ = ["command"]

_EVERY: Final = ("hour", "day", "week", "month", "year")


@click.command("account")
@click.argument("names", metavar="FILE...", nargs=-1, required=True, shell_complete=files)
@click.option("-f", "--from", "source", metavar="FORMAT", default=AUTO, shell_complete=formats,
              help="Format of FILE: sacct, pbs-acct, sss ... (default: auto, the one that is recognised of each).")
@format_option
@click.option("--by", "by", multiple=True, metavar="PROPERTY",
              help="Add up by this property; may repeat (default: Project). --by '' adds up all jobs.")
@click.option("--every", type=click.Choice(_EVERY), metavar="PERIOD",
              help="Add up for each hour, day, week, month or year (default: all time).")
@click.option("--timezone", "zone", default="UTC", metavar="ZONE",
              help="Zone in which the periods begin (default: UTC).")
@click.option("--spread", is_flag=True,
              help="Spread a job over the periods in which it ran (default: all of it belongs to the one it ended in).")
@click.option("--since", metavar="TIME", help="Only jobs that ended from this time on; with --spread what ran.")
@click.option("--until", metavar="TIME", help="Only jobs that ended before this time.")
@click.option("--where", "where", multiple=True, metavar="PROPERTY=VALUE",
              help="Only jobs with this value (!=: without); may repeat, values of one property are alternatives.")
@click.option("--top", type=click.IntRange(1), metavar="N", help="Only the N greatest groups of a period.")
@click.option("--sort", default="processor_h", metavar="FIGURE",
              help="The figure that groups are sorted by, the greatest first; -FIGURE: the least.")
@click.option("--compare", is_flag=True, help="Hold each group against the period before (--every).")
@click.option("--capacity", "capacity_file", metavar="FILE", shell_complete=files,
              help="What the machine had (TOML), for its utilisation; with --spread.")
@click.option("--cube", metavar="FILE.parquet", shell_complete=files,
              help="Write sums by day, user, project and queue for other tools.")
@click.option("--rates", "rates_file", metavar="FILE", shell_complete=files,
              help="Charge the jobs by these rates (default: the Charge that they state).")
@privacy_option("What names become, and how small a group may be (TOML).")
@click.option("--report", metavar="PAGE.html", shell_complete=files, help="Write a page with plots too.")
@common
def command(session: Session, names: tuple[str, ...], source: str, options: tuple[str, ...], by: tuple[str, ...],
            every: str | None, zone: str, spread: bool, since: str | None, until: str | None, where: tuple[str, ...],
            top: int | None, sort: str, compare: bool, capacity_file: str | None, cube: str | None,
            rates_file: str | None, privacy_file: str | None, report: str | None) -> int:
    """Add up what the jobs of documents or accounting logs used, by any property and over time."""
    from sssjob.accounting._sacct_totals import SacctTotals
    from sssjob.accounting.attempts import last_runs
    from sssjob.accounting.cube import CELLS, CUBE
    from sssjob.accounting.plans import Plans
    from sssjob.accounting.totals import Totals
    from sssjob.accounting.unended import Unended
    from sssjob.cli._prices import hinted, load, nothing_taken, options_of
    from sssjob.translators.records.base import Counts
    from sssjob.translators.records.sums import Summary

    names = logs_of(names)
    once([*names, *filter(None, (rates_file, privacy_file, capacity_file))])
    read_options = options_of(source, options)
    rates = load(session, rates_file) if rates_file else None
    if rates_file and rates is None:
        return 1
    privacy = load_privacy(privacy_file)
    _check(sort, compare and every is None, cube is not None and privacy is not None)
    bounds = _bounds(since, until, zone) | {"where": where, "spread": spread}
    totals = Totals([name for name in by or ("Project",) if name], every, zone_of(zone), **bounds,    # type: ignore[arg-type]
                    least=privacy.least if privacy else 1, top=top, sort=sort, compare=compare,
                    capacity=_capacity(capacity_file, every, bounds, zone_of(zone)))
    sums = [totals] if cube is None else [totals, Totals(CUBE, "day", zone_of(zone), **bounds, most=CELLS)]
    read, uncharged, unsaid = list[Counts](), Counter[str](), Counter[str]()
    whole = SacctTotals(sums, rates, uncharged, unsaid)
    columns = whole if whole.suits and not privacy else None
    adding = _Adding(sums, None if rates is None else Plans(rates), privacy, uncharged, unsaid,
                     lambda: _refuse_of_sums(every, spread, rates_file, privacy_file, cube))
    last, unended = rates is not None and rates.attempts == "last", Unended(whole.ended)
    with last_runs(adding.charges) as waiting:
        for name in names:
            with session.tolerant(name), bounded(name), hinted(session, name, source):
                for job_or_sum in jobs_of(session, source, name, read_options, read, None if last else columns):
                    if isinstance(job_or_sum, Summary):
                        adding.add(job_or_sum)
                    elif not unended.takes(*job_or_sum):
                        (waiting if last else adding).add(job_or_sum)
        for pair in unended.rest():
            (waiting if last else adding).add(pair)
        for job, defaults, earlier in waiting:
            adding.add((job, defaults), earlier=earlier)
    totals.tell_again(unended.again)
    if session.errors:
        return session.status()
    if source == AUTO and not session.unread:
        read_options.check("the formats that were recognised")
    session.errors += nothing_taken(read)
    if rates is not None:
        totals.digits[rates.currency] = rates.precision
    _print(session, totals, uncharged, unsaid, names)
    if report is not None and session.failures < len(names):        # else there is nothing to show
        emit(_page(totals, uncharged, names, source), report)
    if cube is not None and session.failures < len(names):
        _write_cube(sums[1], cube)
    return session.status()


def _bounds(since: str | None, until: str | None, zone: str) -> dict[str, Any]:
    """Epoch seconds of the times between which jobs count. Raises UsageError."""
    return {"since": moment_of(since, zone, "--since"), "until": moment_of(until, zone, "--until")}


def _write_cube(totals: Totals, file: str) -> None:
    """Write the totals of each day, user, project and queue."""
    from sssjob.accounting.cube import cube_of

    emit(cube_of(totals), file)


def _check(sort: str, has_no_periods: bool, names_are_private: bool) -> None:
    """Refuse, with UsageError, a sort by what is no figure, a comparison without periods, a cube of private
    names."""
    from sssjob.accounting.totals import FIGURES

    if sort.removeprefix("-") not in FIGURES:
        raise UsageError(f"--sort {escape(sort, 40)!r} is no figure ({', '.join(FIGURES)})")
    if has_no_periods:
        raise UsageError("--compare holds periods against each other: name them with --every")
    if names_are_private:
        raise UsageError("--cube writes names and groups of any size, which --privacy forbids")


@dataclass(slots=True)
class _Adding:
    """Adding up jobs. sums: to each of which; plans: what jobs cost; uncharged: counts why jobs have no charge,
    unsaid: for which rates they do not say an amount; refuse: raises UsageError where a sum over jobs cannot be added.
    """

    sums: list[Totals]
    plans: Plans | None
    privacy: Privacy | None
    uncharged: Counter[str]
    unsaid: Counter[str]
    refuse: Callable[[], None]

    def charges(self, job: Job, defaults: JobDefaults | None) -> bool:
        """Whether a job has a charge by the rates."""
        from sssjob.accounting import Uncharged

        return self.plans is not None and not isinstance(_priced(job, defaults, self.plans), Uncharged)

    def add(self, job_or_sum: Summary | tuple[Job, JobDefaults | None], *, earlier: bool = False) -> None:
        """Add a job, or a sum over jobs. earlier: a later run of it is charged, and only that one is."""
        from sssjob.accounting import Uncharged
        from sssjob.accounting.attempts import EARLIER

        totals, *others = self.sums
        if not isinstance(job_or_sum, tuple):
            self.refuse()
            totals.add(job_or_sum.job(), jobs=job_or_sum.jobs)
            return
        job, result, unsaid = _charged(*job_or_sum, self.plans)
        if earlier:
            result = result if isinstance(result, Uncharged) else EARLIER
            job.set_as_is("Charge", None)
        user = str(job.value("User") or "")       # what becomes of the name changes nothing about whose it is
        for more in others:
            more.add(job)
        if totals.add(self.privacy.applied(job) if self.privacy else job, user):
            if isinstance(result, Uncharged):
                self.uncharged[str(result.reason)] += 1
            else:
                self.unsaid.update(unsaid)


def _capacity(file: str | None, every: str | None, bounds: Mapping[str, Any], zone: ZoneInfo) -> Capacity | None:
    """The capacity of a file. UsageError where no utilisation comes of it, ProblemsError where the file is wrong."""
    from sssjob.accounting.capacity import read_capacity

    if file is None:
        return None
    if not bounds["spread"]:
        raise UsageError("--capacity needs --spread: what is utilised in a period is what ran in it")
    if every is None and None in (bounds["since"], bounds["until"]):
        raise UsageError("--capacity needs periods: --every, or --since and --until")
    return read_capacity(read_bytes(file).decode("utf-8", "replace"), file, zone)


def _refuse_of_sums(every: str | None, spread: bool, rates_file: str | None, privacy_file: str | None,
                    cube: str | None) -> None:
    """UsageError for what can be said of jobs only."""
    for named, refused in ((f"--every {every}", every not in (None, "month", "year")), ("--spread", spread),
                           ("--rates", rates_file is not None), ("--privacy", privacy_file is not None),
                           ("--cube", cube is not None)):
        if refused:
            raise UsageError(f"{named} is for jobs; a sum tells the month of its jobs and what they used together")


def _charged(job: Job, defaults: JobDefaults | None, plans: Plans | None
             ) -> tuple[Job, Decimal | Uncharged | None, tuple[str, ...]]:
    """The job with its defaults and, by rates, its charge and what that leaves out (``Charge.unsaid``)."""
    from sssjob.accounting import Uncharged
    from sssjob.document.inherit import effective

    whole = job if defaults is None else effective(job, defaults).fold()
    if plans is None:
        return whole, None, ()
    priced = _priced(job, defaults, plans)
    price, unsaid = (priced, ()) if isinstance(priced, Uncharged) else priced
    units = {"units": plans.rates.currency} if plans.rates.currency else {}
    whole.set_as_is("Charge", None if isinstance(price, Uncharged) else new_property("Charge", price, units))
    return whole, price, unsaid


def _priced(job: Job, defaults: JobDefaults | None, plans: Plans) -> tuple[Decimal, tuple[str, ...]] | Uncharged:
    """The charge of a job by rates, and what that leaves out (``Charge.unsaid``)."""
    from sssjob.accounting import Charge, charge

    priced = plans.amount(job) if defaults is None else charge(job, plans.rates, defaults)
    return (priced.amount, priced.unsaid) if isinstance(priced, Charge) else priced


def _print(session: Session, totals: Totals, uncharged: Counter[str], unsaid: Counter[str], files: Sequence[str]
           ) -> None:
    from sssjob.cli._prices import tell_unsaid

    groups, whole = totals.groups(), totals.whole()
    tell_unsaid(session, files[0] if len(files) == 1 else "", unsaid, whole.jobs - uncharged.total())
    if session.as_json:
        for g in groups:
            period = {"period": g.period} if g.period else {}
            key = dict(zip(totals.by, g.key, strict=True))
            emit(json.dumps({"type": "total", **period, "key": key, **g.record(whole)}) + "\n")
        omitted = {"left_out": dict(sorted(totals.left_out.items()))} if totals.left_out else {}
        none = {"not_charged": dict(sorted(uncharged.items()))} if uncharged else {}
        emit(json.dumps({"type": "whole", **totals.record(), **omitted, **none}) + "\n")
        return
    if groups:
        rows, titles = _rows(totals)
        names = len(totals.by) + bool(groups[0].period)
        most = width(sys.stdout) if sys.stdout.isatty() else sys.maxsize       # what reads a pipe wants whole names
        emit("".join(f"{line}\n" for line in table(rows, titles, most, texts=names)))
    elif (totals.where or totals.bounded) and not session.quiet:
        say("no job that ran is as --where, --since and --until say")
    for why, count in sorted(totals.left_out.items()):
        problem(f"{count} job{'s' * (count != 1)} left out: {why}", as_json=False)
    for why, count in sorted(uncharged.items()):
        problem(f"{count} job{'s' * (count != 1)} not charged: {why}", as_json=False)


def _rows(totals: Totals) -> tuple[list[list[str]], list[str]]:
    """Rows and titles of the table: only figures that some group has."""
    from sssjob.accounting.report import cell
    from sssjob.accounting.totals import FIGURES

    groups = totals.groups()
    whole = totals.whole()
    records = [g.record(whole) if len(groups) > 1 else g.sums.record() | g.beside for g in groups]
    figures = [n for n in FIGURES if any(r.get(n) for r in records)]
    periods = ["period"] if groups[0].period else []
    rows = [[*([g.period] if periods else []), *g.key, *(cell(r.get(n), totals.digits) for n in figures)]
            for g, r in zip(groups, records, strict=True)]
    if len(rows) > 1:
        head = ["in all", *[""] * (len(periods) + len(totals.by) - 1)] if periods or totals.by else []
        figures_of_all = totals.record()
        rows.append([*head, *(cell(figures_of_all.get(n), totals.digits) for n in figures)])
    return rows, [*periods, *totals.by, *figures]


def _page(totals: Totals, uncharged: Counter[str], names: tuple[str, ...], source: str) -> str:
    from sssjob.accounting.report import page

    shown = ", ".join(escape(n.rpartition("/")[2], 80) for n in names[:5]) + (" ..." if len(names) > 5 else "")
    by = f" by {', '.join(totals.by)}" if totals.by else ""
    return page(totals.groups(), totals.whole(), totals.by, title=f"Usage{by}", source=f"{shown} ({source})",
                left_out=totals.left_out, not_charged=uncharged, periods=totals.periods(), record=totals.record(),
                digits=totals.digits)
