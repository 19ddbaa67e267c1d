"""``sssjob attach``: jobs that were submitted elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from sssjob.cli._complete import executors
from sssjob.cli._files import emit
from sssjob.cli._findings import problem
from sssjob.cli._journal import ended_badly, lines, on_journal, told
from sssjob.cli._settings import following_site_option
from sssjob.errors import UsageError

if TYPE_CHECKING:
    from sssjob.run.client import Client

__all__ = ["command"]

_OPEN: Final = ("nothing is known yet of some of these jobs: there is none, or its resource manager does not answer; "
                "`sssjob wait` finds out")


@click.command("attach")
@click.argument("ids", metavar="NATIVE-ID...", nargs=-1, required=True)
@click.option("--executor", metavar="NAME", shell_complete=executors,
              help="The executor of the jobs; or name it with the id: slurm:1234.")
@following_site_option
@on_journal
def command(client: Client, as_json: bool, ids: tuple[str, ...], executor: str | None) -> int:
    """Take jobs that a resource manager has into the journal, and print their ids, one a line.

    --site says where they are, and by that whose.

    Exit status 5: it knows no such job. 4: it has not said so yet; the job is in the journal all the same.
    """
    native = []
    if executor is None and client.site is not None and client.settings is not None:
        executor = str(client.settings.get("executor").value)
    for ident in ids:
        name, colon, native_id = ident.partition(":")
        if executor is None and not colon:
            raise UsageError(f"{ident}: whose job is it? (--executor NAME, or NAME:{ident})")
        if executor is not None and name.lower() != executor.lower():
            name, native_id = executor, ident
        native.append((name, native_id))
    submissions = [client.attach(*pair) for pair in native]
    told(client, as_json)
    rows = [job.row for submission in submissions for job in submission.jobs]
    emit(lines([r.record() for r in rows]) if as_json else "".join(f"{client.journal.name_of(r)}\n" for r in rows))
    if any(r.outcome is None and r.state == "Idle" and job.seen[0].status is None
           for r, job in zip(rows, (j for s in submissions for j in s.jobs), strict=True)):
        problem(_OPEN, as_json=as_json, status=4)
        return 4
    return ended_badly(submissions, as_json)
