"""``sssjob change``: have jobs ask for something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sssjob.cli._journal import on_jobs
from sssjob.cli._wishes import asked
from sssjob.errors import UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.run.client import Client

__all__ = ["command"]


@on_jobs("change", "The longest to wait until it is done")
@click.option("-s", "--set", "settings", metavar="PROPERTY=VALUE", multiple=True, required=True,
              help="What is to be otherwise, as Duration=2:00:00 or 'Memory=4 GB' (repeatable).")
def command(client: Client, as_json: bool, ids: tuple[str, ...], timeout: float | None, settings: tuple[str, ...]
            ) -> int:
    """Have these jobs ask for something else: another time limit, queue, account, name, priority, more memory.

    What was not submitted yet is planned anew; what was is changed by its resource manager, all of it or nothing. The
    document of the job follows. Exit status 5: refused, because the resource manager does not change that, or the job
    has begun or ended; 4: a resource manager could not be asked; the wish stands, and the next client repeats it.
    """
    from sssjob.run.changing import change_of

    pairs = [(name.strip(), value) for name, equals, value in (text.partition("=") for text in settings) if equals]
    if len(pairs) < len(settings):
        wrong = next(text for text in settings if "=" not in text)
        raise UsageError(f"--set {escape(wrong, 60)}: PROPERTY=VALUE is expected")
    return asked(client, as_json, f"change {change_of(pairs)}", ids, timeout)
