"""``sssjob submit``: write documents into the journal and hand their jobs to an executor."""

from __future__ import annotations

import click

from sssjob.cli._complete import executors, files
from sssjob.cli._dry_run import dry_run_option, print_rehearsal
from sssjob.cli._files import emit, once
from sssjob.cli._findings import problem
from sssjob.cli._journal import ended_badly, expanded, lines, opened, stopped, submitting
from sssjob.cli._mjf import mjf_options
from sssjob.cli._options import Session, common, reading
from sssjob.findings import Findings, Policy

__all__ = ["command"]


@click.command("submit")
@click.argument("names", metavar="FILE...", nargs=-1, required=True, shell_complete=files)
@click.option("--executor", default="local", metavar="NAME", shell_complete=executors,
              help="What to run with; see `executors` (default: local).")
@dry_run_option
@mjf_options
@submitting
@common
@reading
def command(session: Session, names: tuple[str, ...], executor: str, retries: int | None, expand_arrays: bool,
            dry_run: bool) -> int:
    """Submit the jobs of every FILE (- is standard input) and print their ids, one a line.

    Jobs that wait for others are started by whichever client next asks for them (`status`, `wait`, `submit`); on this
    machine (`local`) by a process that stays. Exit status 4 or 5: a resource manager did not take a job, and trying
    again may help or will not.
    """
    once(names)
    documents = []
    for name in names:
        document = session.read(name)
        if expand_arrays:
            findings = Findings(name)
            document = expanded(document, findings)
            session.report(findings)
        documents.append((name, document))
    if session.status():
        return 1
    if dry_run:
        return max(print_rehearsal(session, document, name, executor) for name, document in documents)
    worst = 0
    with opened(retries=retries) as client:
        for name, document in documents:
            client.findings = Findings(name)

            def planned(findings: Findings) -> bool:
                session.report(findings)
                return session.status() == 0

            made = client.submit(document, executor, policy=session.policy or Policy.REJECT, planned=planned)
            session.report(client.findings)
            if made is None:
                return 1
            assert made.entry is not None
            rows = client.journal.rows_of(made.entry.number)
            emit(lines([r.record() for r in rows]) if session.as_json
                 else "".join(f"{client.journal.name_of(r)}\n" for r in rows))
            worst = stopped(client, max(worst, ended_badly([made], session.as_json)))
            if client.stopped:
                problem(f"{client.stopped}: what was not submitted yet is by the next client, unless it is cancelled",
                        as_json=session.as_json, status=worst)
                break
    return worst or session.status()
