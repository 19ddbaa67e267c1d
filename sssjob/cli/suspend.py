"""``sssjob suspend``: stop the processes of jobs that run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sssjob.cli._journal import on_jobs
from sssjob.cli._wishes import asked

if TYPE_CHECKING:
    from sssjob.run.client import Client

__all__ = ["command"]


@on_jobs("suspend", "The longest to wait until it is done")
def command(client: Client, as_json: bool, ids: tuple[str, ...], timeout: float | None) -> int:
    """Stop the processes of these jobs, which run, until they are resumed (`resume`).

    Exit status 5: refused, because the job does not run, the executor cannot suspend it, or the resource manager lets
    its operators alone do that; 4: a resource manager could not be asked; the wish stands, and the next client repeats
    it.
    """
    return asked(client, as_json, "suspend", ids, timeout)
