"""``sssjob route``: at which of several sites, and in which queue, a document fits, and which of them is best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import files
from sssjob.cli._dry_run import print_rehearsal
from sssjob.cli._files import once, read_bytes
from sssjob.cli._options import Session, common
from sssjob.cli._routing import Choice, routed, routing_options, settings_at, tell
from sssjob.conversion.converting import AUTO

if TYPE_CHECKING:
    pass

__all__ = ["command"]


@click.command("route")
@click.argument("file", metavar="FILE", shell_complete=files)
@click.option("--site", "asked", multiple=True, metavar="SITE", help="One of --sites (may repeat).")
@click.option("-f", "--from", "source", default=AUTO, metavar="FORMAT", help="Format of FILE (default: auto).")
@click.option("--explain", is_flag=True, help="Every condition with what was offered for it, and the smallest change "
                                              "with which an offer would meet.")
@click.option("--dry-run", is_flag=True, help="Print what would go out to the best of them, byte for byte.")
@routing_options
@common
def command(session: Session, file: str, sites: str, offer_files: tuple[str, ...], asked: tuple[str, ...], starts: bool,
            source: str, explain: bool, dry_run: bool) -> int:
    """Say of every offer of every site whether it meets what FILE requests, the best one first.

    Those that meet are ranked by value (the share of the preferences that they meet, less what performanceFactor takes
    off for a later start), then by what the site refused of late, then by price (of the rates that the profile names;
    only where all prices are in one currency; without a price after those with one), then by start, then in the order
    given, those of --sites and --site last. Nothing is submitted. Exit status 0: one of them meets, 1: none does, 4:
    none does, and a manager gave no answer.
    """
    from sssjob.run.choosing import placed

    session.source = source
    choice = Choice(session, sites, offer_files, asked)
    once([file, *filter(None, choice.files.values())])
    routing = routed(session, file, read_bytes(file), choice, starts, _refusals())
    if routing is None:
        return session.status()
    if dry_run and routing.places:
        best = routing.places[0]
        return print_rehearsal(session, placed(best.wanted, best.queue), file, settings_at(best))
    tell(session, routing, explain)
    return session.status() or (0 if routing.places else 4 if routing.silent else 1)


def _refusals() -> dict[str, float]:
    """What sites refused of late, by the journal; nothing where there is none, and none is made."""
    from sssjob.run.journal import open_journal
    from sssjob.run.routing import refusals
    from sssjob.run.storage import default_path

    if not default_path().exists():
        return {}
    with open_journal() as journal:
        return refusals(journal)
