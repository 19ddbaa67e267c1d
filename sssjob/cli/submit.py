"""``sssjob submit``: write documents into the journal and hand their jobs to an executor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sssjob.cli._arguments import TakesArguments
from sssjob.cli._complete import files
from sssjob.cli._dry_run import dry_run_option, print_rehearsal
from sssjob.cli._files import emit, once
from sssjob.cli._findings import problem
from sssjob.cli._journal import ended_badly, hooks, lines, opened, shaped, stopped, submitted, submitting
from sssjob.cli._mjf import mjf_options
from sssjob.cli._options import Session, common, reading
from sssjob.cli._routing import together_option
from sssjob.cli._seconds import MORE_THAN_NONE
from sssjob.cli._settings import executor_option, settings_of
from sssjob.errors import UsageError
from sssjob.findings import Findings, Policy

if TYPE_CHECKING:
    from sssjob.document.model import Document
    from sssjob.run.client import Client

__all__ = ["command"]


@click.command("submit", cls=TakesArguments)
@click.argument("names", metavar="FILE...", nargs=-1, required=True, shell_complete=files)
@executor_option
@click.option("--sites", metavar="SITE,SITE...", default="",
              help="Submit each FILE to the best of these sites, whose managers are asked what they offer, and to the "
                   "next one where that refuses it.")
@click.option("--offers", "offer_files", multiple=True, metavar="SITE=FILE",
              help="A further site with what it offers (may repeat), as of `route`.")
@click.option("--starts", is_flag=True, help="With --sites: ask the managers when it would start, as `route` does.")
@click.option("--reroute-after", type=MORE_THAN_NONE, metavar="SECONDS",
              help="With --sites: cancel jobs that wait longer than this, and submit them to the next site.")
@together_option
@click.option("--token", metavar="TEXT", help="Name of the request: asked again, it submits nothing new.")
@dry_run_option
@mjf_options
@submitting
@common
@reading
def command(session: Session, names: tuple[str, ...], executor: str | None, sites: str, offer_files: tuple[str, ...],
            starts: bool, reroute_after: float | None, together: bool, token: str | None, retries: int | None,
            fail_fast: bool, max_queued: int | None, expand_arrays: bool, dry_run: bool, on_end: tuple[str, ...]
            ) -> int:
    """Submit the jobs of every FILE (- is standard input) and print their ids, one a line.

    Jobs that wait for others are started by whichever client next asks for them (`status`, `wait`, `submit`); on this
    machine (`local`) by a process that stays. Exit status 4 or 5: a resource manager did not take a job, and trying
    again may help or will not. 7: all is in the journal and some of it still to be submitted, which the next client
    does: submitting it again would run it twice. What follows `--` are arguments of the script or program of each FILE,
    as those of `sbatch job.sh a b`.
    """
    from sssjob.run.configuring import complete

    once(names)
    _check_token(token, len(names) > 1 and not (sites or offer_files), dry_run)
    end_hooks = hooks(on_end)
    if sites or offer_files:
        if executor or session.site:
            raise UsageError("--sites and --offers say where jobs go, and go without --site and --executor")
        from sssjob.cli._sending import Terms, submit_routed

        terms = Terms(starts, reroute_after, together or fail_fast or max_queued is not None, dry_run, retries,
                      max_queued, token, end_hooks,
                      lambda document, name: shaped(session, document, name, fail_fast, expand_arrays))
        return submit_routed(session, names, sites, offer_files, terms)
    if starts or together or reroute_after is not None:
        raise UsageError("--starts, --reroute-after and --together go with --sites")
    settings = settings_of(session, executor)
    executor = str(settings.get("executor").value)
    documents = [(name, submitted(session, name, executor, fail_fast, expand_arrays)) for name in names]
    if session.status():
        return 1
    if dry_run:
        return max(print_rehearsal(session, document, name, settings) for name, document in documents)
    worst = 0
    with opened(retries=retries, max_queued=max_queued, settings=settings) as client:
        client.site = None if session.site is None else session.site.name
        for name, document in documents:
            client.findings = Findings(name)
            complete(document, executor, settings, client.findings)

            def planned(findings: Findings, document: Document = document) -> bool:
                """Report what the plan of the document lost; whether it may be submitted."""
                session.report(findings, document)
                return session.status() == 0

            submission = client.submit(document, executor, policy=session.policy or Policy.REJECT, planned=planned,
                                       request=token, on_end=end_hooks)
            session.report(client.findings, document)
            if submission is None:
                return 1
            assert submission.entry is not None
            _print_ids(session, client, submission.entry.number)
            worst = stopped(client, max(worst, ended_badly([submission], session.as_json, token is not None)))
            if client.stopped:
                problem(f"{client.stopped}: what was not submitted yet is by the next client, unless it is cancelled",
                        as_json=session.as_json, status=worst)
                break
    return worst or session.status()


def _print_ids(session: Session, client: Client, number: int) -> None:
    """Print the ids of the jobs of a submission, one a line, or their rows as JSON."""
    rows = client.journal.rows_of(number)
    emit(lines([row.record() for row in rows]) if session.as_json
         else "".join(f"{client.journal.name_of(row)}\n" for row in rows))


def _check_token(token: str | None, of_several: bool, dry_run: bool) -> None:
    """Refuse, with UsageError, a name of a request that is empty, of several submissions, or of none."""
    if token is not None and (of_several or not token or dry_run):
        raise UsageError("--token names the submission of one FILE, with --sites of all: it has to be a text, and goes "
                         "without --dry-run")
