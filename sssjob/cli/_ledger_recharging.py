"""``sssjob ledger recharge`` and ``take-back``: charges that are there, made anew by other rates or reversed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import problem, say
from sssjob.cli._ledger import line, moment_of, money, opened_ledger, place, plain, rates, reason, timezone, where
from sssjob.cli._ledger_charging import TOLD, Outcomes, posted_row, summary
from sssjob.cli._options import Session, common
from sssjob.cli._prices import load, tell_unsaid
from sssjob.errors import UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.accounting.ledger import Entry, Posted
    from sssjob.document.model import Job


_since = click.option("--since", metavar="TIME", help="Only jobs that ended from this time on.")
_until = click.option("--until", metavar="TIME", help="Only jobs that ended before this time.")


def _choice(since: str | None, until: str | None, zone: str | None, where: tuple[str, ...]
            ) -> Callable[[Entry, Job], bool]:
    """Whether a charge is one of those that the options name. Raises UsageError."""
    from sssjob.accounting.dimensions import Condition

    first, end = moment_of(since, zone, "--since"), moment_of(until, zone, "--until")
    conditions = Condition.all_of(where)
    return lambda entry, job: (first is None or entry.ended >= first) and (end is None or entry.ended < end) and all(
        condition.holds(job) for condition in conditions)


@click.command("recharge")
@rates
@_since
@_until
@timezone
@where
@click.option("--dry-run", is_flag=True, help="Post nothing, say what would become of the charges.")
@click.option("--itemise", is_flag=True, help="Print every new charge.")
@place
@common
def recharge(session: Session, rates_file: str, since: str | None, until: str | None, timezone: str | None,
             where: tuple[str, ...], dry_run: bool, itemise: bool, place: str | None) -> int:
    """Charge anew by other rates what is charged already: all of it, or jobs of a time, a project, a queue. No log is
    needed; what was refunded stays so.

    A charge that comes to the same stays as it is, and so does that of a job for which these rates have no price: the
    status is 1 then.
    """
    chosen = _choice(since, until, timezone, where)
    new_rates = load(session, rates_file)
    if new_rates is None:
        return 1

    work = _Recharging(session, itemise)
    with opened_ledger(place, create=False) as ledger:
        after: int | None = 0
        while after is not None:
            after, outcomes = ledger.recharges(new_rates, chosen, after=after, dry_run=dry_run)
            for entry, posted in outcomes:
                work.tell(entry, posted)
        for account in list(work.tally.overdrawn) if not dry_run else ():
            work.tally.overdrawn[account] = ledger.standing(*account).available
    tell_unsaid(session, rates_file, work.unsaid, work.tally.outcomes["superseded"])
    work.close(dry_run)
    return session.status()


@click.command("take-back")
@_since
@_until
@timezone
@where
@click.option("--dry-run", is_flag=True, help="Post nothing, print the charges that would be taken back.")
@reason
@place
@plain
def take_back(since: str | None, until: str | None, timezone: str | None, where: tuple[str, ...], dry_run: bool,
              reason: str, place: str | None, as_json: bool) -> int:
    """Reverse the charges of jobs that should not have been charged, as those of a wrong log: all of them or none. The
    options say which ones; what was refunded of them stays."""
    if not (since or until or where):
        raise UsageError("which charges? Name them with --where, --since or --until")
    chosen = _choice(since, until, timezone, where)
    with opened_ledger(place, create=False) as ledger:
        charges = ledger.take_back(chosen, reason=reason, dry_run=dry_run)
    sums: dict[str, Decimal] = {}
    for entry in charges:
        sums[entry.currency] = sums.get(entry.currency, Decimal(0)) + entry.amount
    emit("".join((json.dumps(entry.record()) if as_json else line(entry)) + "\n" for entry in charges))
    if not as_json:
        amounts = "".join(f"; {money(amount, unit)}" for unit, amount in sorted(sums.items()))
        say(f"{len(charges)} charge{'s' * (len(charges) != 1)} taken back{amounts}" + "; nothing was posted" * dry_run)
    return 0


class _Recharging:
    """What became of the charges. before: by currency, what those came to that others replace."""

    def __init__(self, session: Session, itemise: bool) -> None:
        self.session, self.itemise, self.tally = session, itemise, Outcomes()
        self.before, self.kept, self.unsaid = dict[str, Decimal](), Counter[str](), Counter[str]()

    def tell(self, old: Entry, posted: Posted) -> None:
        """Count one, and print it where that is asked for."""
        self.tally.add(posted)
        if posted.outcome == "superseded":
            self.unsaid.update(posted.unsaid)
            self.before[old.currency] = self.before.get(old.currency, Decimal(0)) + old.amount
        elif posted.outcome == "not" and posted.entry is not None:
            self.kept[posted.reason] += 1
        if posted.outcome == "not" and not (self.session.as_json or self.session.quiet) and (
                self.tally.reasons[posted.reason] <= TOLD):
            say(f"{escape(old.job, 100)}: not charged anew: {posted.reason} ({escape(posted.detail, 400)})")
        if self.session.as_json:
            emit(json.dumps(posted_row(old.job, posted) | {"before": f"{old.amount:f}"}) + "\n")
        elif self.itemise and posted.outcome == "superseded" and posted.entry is not None:
            emit(f"{line(posted.entry)}, {money(old.amount, old.currency)} before\n")

    def close(self, dry_run: bool) -> None:
        """Print the sums."""
        session = self.session
        if self.kept:
            session.errors += 1
            reasons = ", ".join(f"{reason} {n}" for reason, n in sorted(self.kept.items()))
            problem(f"{self.kept.total()} charges stay, because these rates have no price for their jobs ({reasons})",
                    as_json=session.as_json)
        if dry_run:
            self.tally.overdrawn.clear()
        summary(session, self.tally)
        if not (session.quiet or session.as_json):
            if not self.tally.outcomes:
                say("none of the charges in force that the options choose was made by other rates")
            before = ", ".join(money(amount, unit) for unit, amount in sorted(self.before.items()))
            say(f"before: {before or 0}" + "; nothing was posted" * dry_run)
