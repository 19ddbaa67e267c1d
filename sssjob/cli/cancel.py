"""``sssjob cancel``: ask for the end of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sssjob.cli._files import emit
from sssjob.cli._findings import problem
from sssjob.cli._journal import lines, on_jobs, told

if TYPE_CHECKING:
    from sssjob.run.client import Client

__all__ = ["command"]


@on_jobs("cancel", "The longest to wait for their ends")
def command(client: Client, as_json: bool, ids: tuple[str, ...], timeout: float | None) -> int:
    """Ask for the end of these jobs, and wait a little for it.

    Jobs that were not submitted yet never are. Nothing happens to jobs that have ended. Exit status 4: a resource
    manager could not be asked; the wish stands, and the next client repeats it.
    """
    jobs, done = client.cancel(ids, timeout)
    troubles = told(client, as_json)
    if as_json:
        emit(lines([job.row.record() for job in jobs]))
    going = [job.plan.label for job in jobs if not job.ended]
    if going:
        problem(f"asked for, and not ended yet: {', '.join(going)}", as_json=as_json, status=4 if troubles else 0)
    return 4 if troubles and not done else 0
