"""The tables of ``sssjob top``, which its live view and its plain one share."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

from sssjob.cli._findings import width
from sssjob.cli._tables import table
from sssjob.cli.list_ import list_text, spell

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.overview import Overview

#: Columns of groups.
TITLES: Final = ("key", "group", "queued", "running", "done", "failed", "left out", "ends in", "why", "executor")
_LOOK_S: Final = 5.0


def refreshed(client: Client) -> list[Overview]:
    """Where everything stands, after the resource managers were asked once."""
    from sssjob.run.overview import overview

    client.look([client.journal.entry(number) for number in client.journal.unclosed()], _LOOK_S)
    return overview(client.journal, time.time())


def key_of(group: Overview) -> str:
    """What names all of its jobs: ``@1``, of a group that went to several sites ``@1 @3``."""
    return " ".join(f"@{number}" for number in group.numbers)


def cells(group: Overview) -> list[str]:
    """A line of the table of groups."""
    counts = (group.queued, group.running, group.done, group.failed, group.left)
    return [key_of(group), group.name, *map(str, counts),
            "" if group.remaining is None else f"~{spell(group.remaining)}", group.why, ", ".join(group.executors)]


def text_of(overviews: list[Overview]) -> str:
    """Both tables."""
    if not overviews:
        return "no job waits or runs\n"
    open_ones = [job for group in overviews for job in group.jobs if job.row.outcome is None]
    groups = table([cells(group) for group in overviews], TITLES, width(sys.stdout))
    return "\n".join([*groups, "", list_text(open_ones, time.time())])
