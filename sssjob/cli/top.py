"""``sssjob top``: a live view of groups and jobs."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import width
from sssjob.cli._journal import on_journal
from sssjob.cli._seconds import MORE_THAN_NONE
from sssjob.cli._tables import table
from sssjob.cli.list_ import list_text, spell

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.overview import Overview

__all__ = ["TITLES", "cells", "command", "refreshed", "text_of"]

#: Columns of groups.
TITLES: Final = ("key", "group", "executor", "queued", "running", "done", "failed", "left out", "ends in", "why")
_INTERVAL_S: Final = 2.0
_LOOK_S: Final = 5.0


@click.command("top")
@click.option("--interval", type=MORE_THAN_NONE, default=_INTERVAL_S, metavar="SECONDS",
              help="Between two looks (default: 2).")
@click.option("--once", is_flag=True, help="Print the tables once and leave.")
@on_journal
def command(client: Client, as_json: bool, interval: float, once: bool) -> int:
    """Show how groups and jobs go on, until q is pressed.

    Arrows choose a job; h holds it, r releases it, c cancels it, each after a question. Where standard output is no
    terminal, or textual (the extra `top`) is not installed, tables are printed again and again. When a group ends is a
    guess from the jobs that have ended.
    """
    if as_json:
        import json

        emit("".join(json.dumps(job.record(time.time())) + "\n" for group in refreshed(client) for job in group.jobs))
        return 0
    if not once and sys.stdout.isatty():
        try:
            from sssjob.cli._top import live
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "textual":
                raise
        else:
            return live(client, interval)
    emit(text_of(refreshed(client)))
    while not once:
        time.sleep(interval)
        emit(("\x1b[H\x1b[2J" if sys.stdout.isatty() else "\n") + text_of(refreshed(client)), safe=True)
    return 0


def refreshed(client: Client) -> list[Overview]:
    """Where everything stands, after the resource managers were asked once."""
    from sssjob.run.overview import overview

    client.look([client.journal.entry(number) for number in client.journal.unclosed()], _LOOK_S)
    return overview(client.journal, time.time())


def cells(group: Overview) -> list[str]:
    """A line of the table of groups."""
    counts = (group.queued, group.running, group.done, group.failed, group.left)
    return [f"@{group.number}", group.name, group.executor, *map(str, counts),
            "" if group.remaining is None else f"~{spell(group.remaining)}", group.why]


def text_of(overviews: list[Overview]) -> str:
    """Both tables."""
    if not overviews:
        return "no job waits or runs\n"
    open_ones = [job for group in overviews for job in group.jobs if job.row.outcome is None]
    groups = table([cells(group) for group in overviews], TITLES, width(sys.stdout))
    return "\n".join([*groups, "", list_text(open_ones, time.time())])
