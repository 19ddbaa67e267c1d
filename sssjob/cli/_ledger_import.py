"""``sssjob ledger import``: what another bank holds, brought over."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC
from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit
from sssjob.cli._findings import say
from sssjob.cli._ledger import currency, line, opened_ledger, place, timezone
from sssjob.cli._options import Session, common, zone_of
from sssjob.errors import AccessError, UsageError
from sssjob.findings import Findings, escape

if TYPE_CHECKING:
    from sssjob.accounting.gold import Row


@click.group("import")
def bring() -> None:
    """Bring over what another bank holds."""


@bring.command("gold")
@click.argument("folder", metavar="FOLDER", shell_complete=files)
@currency
@click.option("--precision", type=click.IntRange(0, 9), default=0,
              help="Digits behind the point of charges (default: 0).")
@click.option("--write-rates", metavar="FILE", shell_complete=files, help="Write the ChargeRates as rates in TOML.")
@click.option("--dry-run", is_flag=True, help="Post nothing, only say what would be posted.")
@timezone
@place
@common
def gold(session: Session, folder: str, currency: str, precision: int, write_rates: str | None, dry_run: bool,
         timezone: str | None, place: str | None) -> int:
    """Bring over a bank of Gold: FOLDER holds a file for each object (Account, Allocation, AccountProject ...), as
    goldsh OBJECT Query --raw prints it. What a ledger cannot say is reported; asked again, nothing is posted twice."""
    from sssjob.accounting.gold import bank_of, rates_of
    from sssjob.accounting.gold import bring as bring_over
    from sssjob.accounting.rates import read_rates

    findings_by_file: dict[str, Findings] = {}
    tables = _tables(folder, findings_by_file)
    zone = UTC if timezone is None else zone_of(timezone)
    banks = bank_of(tables, zone, int(time.time()), findings_by_file.__getitem__)
    rates = None
    if "ChargeRate" in tables:
        path = next(path for path in findings_by_file if _object(path) == "ChargeRate")
        rates = rates_of(tables["ChargeRate"], os.path.basename(os.path.abspath(folder)), currency, precision,
                         findings_by_file[path])
    for findings in findings_by_file.values():
        session.report(findings)
    if session.errors:
        return session.status()
    if rates is not None:
        read_rates(rates, folder)       # RatesError for what no set of rates can say
        if write_rates is None:
            say(f"{len(tables['ChargeRate'])} ChargeRates are there; --write-rates FILE writes them")
        elif not dry_run:
            emit(rates, write_rates)
    elif write_rates is not None:
        raise UsageError(f"--write-rates: {escape(folder)} has no table ChargeRate")
    if dry_run:
        return session.status()
    with opened_ledger(place) as ledger:
        posted = bring_over(ledger, banks, currency)
    emit("".join(json.dumps(entry.record()) + "\n" if session.as_json else f"{line(entry)}\n" for entry in posted))
    return session.status()


def _object(path: str) -> str:
    """The table that a file is called as; empty for another file."""
    from sssjob.accounting.gold import TABLES

    stem = os.path.basename(path).partition(".")[0].lower().removeprefix("g_").replace("_", "")
    return next((name for name in TABLES if name.lower() == stem), "")


def _tables(folder: str, findings_by_file: dict[str, Findings]) -> dict[str, list[Row]]:
    """The tables of a folder. findings_by_file: the findings about each file are put there."""
    from sssjob.accounting.gold import rows_of

    tables: dict[str, list[Row]] = {}
    try:
        paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    except OSError as error:
        raise AccessError(escape(folder), error.strerror or str(error)) from None
    for path in paths:
        name, findings = _object(path), findings_by_file.setdefault(path, Findings(path))
        if not name:
            findings.add("SSS545", "table", "a file that is called as no table that is brought over", severity="info")
            continue
        if name in tables:
            raise UsageError(f"{escape(folder)} has two files for {name}")
        try:
            with open(path, encoding="utf-8") as file:
                tables[name] = rows_of(file.read(), name, path, findings)
        except (OSError, UnicodeError) as error:
            raise AccessError(escape(path), getattr(error, "strerror", None) or "is no UTF-8") from None
    if "Account" not in tables and "ChargeRate" not in tables:
        raise UsageError(f"{escape(folder)} has neither a table Account nor ChargeRate of Gold")
    return tables


COMMANDS = (bring,)
