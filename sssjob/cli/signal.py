"""``sssjob signal``: send a signal to the processes of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sssjob.cli._journal import on_jobs
from sssjob.cli._wishes import asked
from sssjob.run.signals import signal_name

if TYPE_CHECKING:
    from sssjob.run.client import Client

__all__ = ["command"]


@on_jobs("signal", "The longest to wait until it is done")
@click.option("-s", "--signal", "signal", metavar="NAME", required=True, help="Which signal, as USR1 or SIGUSR1.")
def command(client: Client, as_json: bool, ids: tuple[str, ...], timeout: float | None, signal: str) -> int:
    """Send a signal to the processes of these jobs, which run.

    It is asked of a resource manager once only: when the client is killed just then, nobody can say whether it came.
    Exit status 5: refused, because the job does not run or the executor has no signals; 4: a resource manager could not
    be asked.
    """
    return asked(client, as_json, f"signal {signal_name(signal)}", ids, timeout)
