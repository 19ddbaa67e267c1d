"""``sssjob release``: let jobs start that are held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sssjob.cli._journal import on_jobs
from sssjob.cli._wishes import asked

if TYPE_CHECKING:
    from sssjob.run.client import Client

__all__ = ["command"]


@on_jobs("release", "The longest to wait until it is done")
def command(client: Client, as_json: bool, ids: tuple[str, ...], timeout: float | None) -> int:
    """End the hold of these jobs: of `hold`, or of Hold User in their documents.

    Holds that an operator or the system set stay. Exit status 5: refused, or the job has ended; 4: a resource manager
    could not be asked; the wish stands, and the next client repeats it.
    """
    return asked(client, as_json, "release", ids, timeout)
