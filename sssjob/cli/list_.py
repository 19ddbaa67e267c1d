"""``sssjob list``: the jobs of the journal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import problem, width
from sssjob.cli._journal import SILENT, lines, on_journal, patience, told
from sssjob.cli._tables import table
from sssjob.errors import UsageError

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.journal import Row

__all__ = ["command"]


@click.command("list")
@click.option("--all", "ended", is_flag=True, help="Those too that have ended.")
@click.option("--offline", is_flag=True, help="What the journal knows; no resource manager is asked.")
@patience("The longest to wait for answers of the resource managers")
@on_journal
def command(client: Client, as_json: bool, ended: bool, offline: bool, timeout: float | None) -> int:
    """List the jobs of the journal that have not ended, the oldest first.

    The resource managers are asked once. Exit status 4: one of them does not answer.
    """
    if offline and timeout is not None:
        raise UsageError("--offline waits for nobody: it goes without --timeout")
    answered = True
    if not offline:
        open_ones = dict.fromkeys(row.submission for row in client.journal.rows(ended=False))
        _, answered = client.look([client.journal.entry(number) for number in open_ones], timeout)
    told(client, as_json)
    rows = client.journal.rows(ended=ended)
    if as_json:
        emit(lines([row.record() for row in rows]))
    elif rows:
        titles = ["id", "key", "native id", "name", "executor", "state"]
        emit("\n".join([*table([_cells(row) for row in rows], titles, width(sys.stdout)), ""]))
    if not answered:
        problem(SILENT, as_json=as_json, status=4)
    return 0 if answered else 4


def _cells(row: Row) -> list[str]:
    code = "" if row.exit_code is None else f" {row.exit_code}"
    return [row.id or row.label, row.key, row.native_id or "", row.name or "", row.executor,
            row.state if row.outcome is None else f"{row.state} ({row.outcome}{code})"]
