"""What ``hold``, ``release``, ``rerun``, ``suspend``, ``resume``, ``signal`` and ``change`` share: a wish is asked for,
and what became of it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sssjob.cli._files import emit
from sssjob.cli._findings import problem
from sssjob.cli._journal import lines, on_jobs, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from sssjob.run.client import Client
    from sssjob.run.standing import Running


def wish(name: str, text: str) -> click.Command:
    """The command that asks for something to be done with jobs, where its name says all of it. text: its help."""
    def command(client: Client, as_json: bool, ids: tuple[str, ...], timeout: float | None) -> int:
        return asked(client, as_json, name, ids, timeout)

    command.__doc__ = text
    return on_jobs(name, "The longest to wait until it is done")(command)


def asked(client: Client, as_json: bool, wish: str, ids: Sequence[str], timeout: float | None) -> int:
    """Ask for something to be done with jobs, and tell what became of it. wish: as of ``Client.ask``.

    Returns the exit status: 0 done for all, 4 a resource manager could not be asked, 5 refused.
    """
    jobs = client.ask(wish, ids, timeout)
    told(client, as_json)
    if as_json:
        emit(lines([_record(job, wish) for job in jobs]))
    return answered(jobs, wish, as_json)


def answered(jobs: Sequence[Running], wish: str, as_json: bool) -> int:
    """Tell of which jobs a wish was refused or has no answer; the exit status."""
    status = 0
    for job in jobs:
        refusal = job.refusal(wish)
        if refusal:
            status = 5
            problem(f"{job.plan.label}: {refusal}", as_json=as_json, status=5)
    waiting = [job.plan.label for job in jobs if job.refusal(wish) is None]
    if waiting:
        problem(f"asked for, and not done yet: {', '.join(waiting)}", as_json=as_json, status=4)
    return 4 if waiting else status


def _record(job: Running, wish: str) -> dict[str, Any]:
    refusal = job.refusal(wish)
    return job.row.record() | {"answer": "waiting" if refusal is None else "refused" if refusal else "done",
                               **({"refusal": refusal} if refusal else {})}
