"""``sssjob top``: a live view of groups and jobs."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from sssjob.cli._files import emit
from sssjob.cli._journal import on_journal
from sssjob.cli._seconds import MORE_THAN_NONE
from sssjob.cli._top_tables import refreshed, text_of

if TYPE_CHECKING:
    from sssjob.run.client import Client

__all__ = ["command"]

_INTERVAL_S: Final = 2.0


@click.command("top")
@click.option("--interval", type=MORE_THAN_NONE, default=_INTERVAL_S, metavar="SECONDS",
              help="Between two looks (default: 2).")
@click.option("--once", is_flag=True, help="Print the tables once and leave.")
@on_journal
def command(client: Client, as_json: bool, interval: float, once: bool) -> int:
    """Show how groups and jobs go on, until q is pressed.

    Arrows choose a job or, after tab, a group; h holds it, r releases it, c cancels it, each after a question, and
    enter shows all jobs of a group alone. The parts of a group that went to several sites are one line. Where standard
    output is no terminal, or textual (the extra `top`) is not installed, tables are printed again and again. When a
    group ends is a guess from the jobs that have ended.
    """
    if as_json:
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
