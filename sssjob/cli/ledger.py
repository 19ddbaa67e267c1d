"""``sssjob ledger``: money as documents in a journal that only grows."""

from __future__ import annotations

import click

from sssjob.cli import _ledger_accounts, _ledger_import, _ledger_invoice, _ledger_looking, _ledger_posting
from sssjob.cli._ledger_charging import charge
from sssjob.cli._ledger_recharging import recharge, take_back

__all__ = ["charge", "command"]


@click.group("ledger")
def command() -> None:
    """Accounts, quotes, holds, charges, refunds and statements."""


for _each in (*_ledger_posting.COMMANDS, charge, recharge, take_back, *_ledger_accounts.COMMANDS,
              *_ledger_looking.COMMANDS, *_ledger_invoice.COMMANDS, *_ledger_import.COMMANDS):
    command.add_command(_each)
