"""``sssjob route``: at which of several sites, and in which queue, a document fits, and which of them is best."""

from __future__ import annotations

import click

from sssjob.cli._complete import files
from sssjob.cli._files import once, read_bytes
from sssjob.cli._options import Session, common
from sssjob.cli._routing import Choice, rehearsed, routed, routing_options, tell
from sssjob.cli._seconds import MORE_THAN_NONE
from sssjob.cli.offers import ANSWER_S
from sssjob.conversion.converting import AUTO
from sssjob.errors import UsageError

__all__ = ["command"]


@click.command("route")
@click.argument("file", metavar="FILE", shell_complete=files)
@click.option("--site", "asked", multiple=True, metavar="SITE", help="One of --sites (may repeat).")
@click.option("-f", "--from", "source", default=AUTO, metavar="FORMAT", help="Format of FILE (default: auto).")
@click.option("--explain", is_flag=True, help="Every condition with what was offered for it, and the smallest change "
                                              "with which an offer would meet.")
@click.option("--dry-run", is_flag=True, help="Print what would go out to the best of them, byte for byte.")
@click.option("--timeout", type=MORE_THAN_NONE, metavar="SECONDS",
              help="The longest to wait for each answer of the managers of --sites (default: 30).")
@routing_options
@common
def command(session: Session, file: str, sites: str, offer_files: tuple[str, ...], asked: tuple[str, ...], starts: bool,
            together: bool, source: str, explain: bool, dry_run: bool, timeout: float | None) -> int:
    """Say of every offer of every site whether it meets what FILE requests, the best one first. Of a group each part
    whose jobs do not depend on others is told by itself, unless --together is given.

    Those that meet are ranked by value (the share of the preferences that they meet, less what performanceFactor takes
    off for a later start), then by what the site refused of late, then by price (of the rates that the profile names;
    only where all prices are in one currency; without a price after those with one), then, of parts of a group, by the
    room beside those before, then by start, then in the order given, those of --sites and --site last. Nothing is
    submitted. Exit status 0: one of them meets (of each part), 1: none does, 4: none does, and a manager gave no
    answer.
    """
    session.source = source
    if timeout is not None and not (sites or asked):
        raise UsageError("--timeout is for managers that are asked: it goes with --sites or --site")
    choice = Choice(session, sites, offer_files, asked, ANSWER_S if timeout is None else timeout)
    once([file, *filter(None, choice.files.values())])
    routings = routed(session, file, read_bytes(file), choice, starts, _refusals(), together)
    if routings is None:
        return session.status()
    if dry_run and all(routing.places for routing in routings):
        return rehearsed(session, routings, file)
    for routing in routings:
        tell(session, routing, explain)
    return session.status() or max(routing.status for routing in routings)


def _refusals() -> dict[str, float]:
    """What sites refused of late, by the journal; nothing where there is none, and none is made."""
    from sssjob.run.journal import open_journal
    from sssjob.run.routing import refusals
    from sssjob.run.storage import default_path

    if not default_path().exists():
        return {}
    with open_journal() as journal:
        return refusals(journal)
