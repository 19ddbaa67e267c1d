"""``--dry-run`` of ``run`` and ``submit``: prints what would go out, and starts nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import problem
from sssjob.errors import UsageError
from sssjob.findings import Findings, Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psij import JobExecutor
    from sssjob.cli._options import Session
    from sssjob.conversion.settings import Settings
    from sssjob.document.model import Document
    from sssjob.run.plan import Plan

dry_run_option = click.option("--dry-run", is_flag=True,
                              help="Print the scripts and commands that would go out; start and note nothing.")


def print_rehearsal(session: Session, document: Document, name: str, settings: Settings, resume: bool = False) -> int:
    """Print what a run of a document would hand to an executor; the exit status. name: of the file, for findings.
    settings: that hold, the executor among them."""
    from psij import InvalidJobException
    from sssjob.run.rehearsal import rehearse

    findings, backend = Findings(name), backend_of(settings)
    plan = plan_of(session, document, settings, backend, findings, resume)
    try:
        session.report_together(findings, document)
        if session.status():
            return 1
        shown = list(rehearse(plan, backend))
        emit("".join(f"{json.dumps(rehearsal.record(backend.name))}\n" for rehearsal in shown) if session.as_json
             else "\n".join(rehearsal.text() for rehearsal in shown))
    except InvalidJobException as error:
        problem(str(error), as_json=session.as_json, status=5)
        return 5
    finally:
        plan.close()
    return 0


def backend_of(settings: Settings) -> JobExecutor:
    """The executor that settings name, for plans."""
    from sssjob.run.configuring import config_of
    from sssjob.run.running import executor_of

    executor = str(settings.get("executor").value)
    return executor_of(executor, config_of(executor, settings.stated(executor)))


def plan_of(session: Session, document: Document, settings: Settings, backend: JobExecutor, findings: Findings,
            resume: bool = False) -> Plan:
    """The plan of a document, to be closed; what settings say is put into the document, what it loses into findings."""
    from sssjob.run.configuring import complete
    from sssjob.run.plan import make_plan
    from sssjob.run.unsaid import say

    executor = str(settings.get("executor").value)
    complete(document, executor, settings, findings)
    say(document, backend, Path.cwd())
    return make_plan(document, findings, executor=executor.lower(), policy=session.policy or Policy.REJECT,
                     resume=resume, backend=backend, known=_known)


def _known(name: str, by_name: bool) -> Sequence[str]:
    """Keys of the jobs in the journal that an id means, or a Name; where there is no journal none is made."""
    from sssjob.run.journal import open_journal
    from sssjob.run.storage import default_path

    if not default_path().exists():
        return []
    with open_journal() as journal:
        try:
            return [row.key for row in (journal.named(name) if by_name else journal.find(name))]
        except UsageError as error:
            if "several jobs" in str(error):
                raise
            return []
