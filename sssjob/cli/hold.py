"""``sssjob hold``: keep jobs that wait from starting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sssjob.cli._journal import on_jobs
from sssjob.cli._wishes import asked

if TYPE_CHECKING:
    from sssjob.run.client import Client

__all__ = ["command"]


@on_jobs("hold", "The longest to wait until it is done")
def command(client: Client, as_json: bool, ids: tuple[str, ...], timeout: float | None) -> int:
    """Keep these jobs from starting until they are released (`release`).

    Jobs that wait in the queue of a resource manager are held there; those that were not submitted yet are held in the
    journal. Exit status 5: refused, because the job has begun or ended or the executor cannot hold it; 4: a resource
    manager could not be asked; the wish stands, and the next client repeats it.
    """
    return asked(client, as_json, "hold", ids, timeout)
