"""``sssjob hold``, ``release``, ``suspend``, ``resume``, ``signal``, ``change`` and ``cancel``: something is asked for
of jobs that the journal knows, and what became of it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import problem
from sssjob.cli._journal import and_more, lines, on_jobs, told
from sssjob.errors import UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.standing import Running

__all__ = ["asked", "commands"]

#: What is asked for where the name of the command says all of it -> its help.
_WISHES: Final = {
    "hold": """\
Keep these jobs from starting until they are released (`release`).

Jobs that wait in the queue of a resource manager are held there; those that were not submitted yet are held in the
journal. Exit status 5: refused, because the job has begun or ended or the executor cannot hold it; 4: a resource
manager could not be asked; the wish stands, and the next client repeats it.
""",
    "release": """\
End the hold of these jobs: of `hold`, or of Hold User in their documents.

Holds that an operator or the system set stay. Exit status 5: refused, or the job has ended; 4: a resource manager
could not be asked; the wish stands, and the next client repeats it.
""",
    "suspend": """\
Stop the processes of these jobs, which run, until they are resumed (`resume`).

Exit status 5: refused, because the job does not run, the executor cannot suspend it, or the resource manager lets
its operators alone do that; 4: a resource manager could not be asked; the wish stands, and the next client repeats
it.
""",
    "resume": """\
Let these jobs go on, which are suspended.

Exit status as of `suspend`.
""",
}


def _wish(name: str, text: str) -> click.Command:
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
    return _answered(jobs, wish, as_json)


def _answered(jobs: Sequence[Running], wish: str, as_json: bool) -> int:
    """Tell of which jobs a wish was refused or has no answer; the exit status."""
    labels_by_refusal: dict[str | None, list[str]] = {}
    for job in jobs:
        labels_by_refusal.setdefault(job.refusal(wish), []).append(job.plan.label)
    waiting = labels_by_refusal.pop(None, [])
    labels_by_refusal.pop("", None)
    for refusal, labels in labels_by_refusal.items():
        problem(f"{and_more(labels)}: {refusal}", as_json=as_json, status=5)
    if waiting:
        problem(f"asked for, and not done yet: {and_more(waiting)}", as_json=as_json, status=4)
    return 4 if waiting else 5 if labels_by_refusal else 0


def _record(job: Running, wish: str) -> dict[str, Any]:
    refusal = job.refusal(wish)
    return job.row.record() | {"answer": "waiting" if refusal is None else "refused" if refusal else "done",
                               **({"refusal": refusal} if refusal else {})}


@on_jobs("signal", "The longest to wait until it is done")
@click.option("-s", "--signal", "signal", metavar="NAME", required=True, help="Which signal, as USR1 or SIGUSR1.")
def signal(client: Client, as_json: bool, ids: tuple[str, ...], timeout: float | None, signal: str) -> int:
    """Send a signal to the processes of these jobs, which run.

    It is asked of a resource manager once only: when the client is killed just then, nobody can say whether it came.
    Exit status 5: refused, because the job does not run or the executor has no signals; 4: a resource manager could not
    be asked.
    """
    from sssjob.run.signals import signal_name

    return asked(client, as_json, f"signal {signal_name(signal)}", ids, timeout)


@on_jobs("change", "The longest to wait until it is done")
@click.option("-s", "--set", "settings", metavar="PROPERTY=VALUE", multiple=True, required=True,
              help="What is to be otherwise, as Duration=2:00:00 or 'Memory=4 GB' (repeatable).")
def change(client: Client, as_json: bool, ids: tuple[str, ...], timeout: float | None, settings: tuple[str, ...]
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


@on_jobs("cancel", "The longest to wait for their ends")
def cancel(client: Client, as_json: bool, ids: tuple[str, ...], timeout: float | None) -> int:
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
        problem(f"asked for, and not ended yet: {and_more(going)}", as_json=as_json, status=4 if troubles else 0)
    return 4 if troubles and not done else 0


commands: Final = {name: _wish(name, text) for name, text in _WISHES.items()} | {
    "cancel": cancel, "change": change, "signal": signal}
