"""``sssjob executors``: what ``run --executor`` knows, and which of them can work here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from sssjob.cli._files import emit
from sssjob.cli._seconds import MORE_THAN_NONE
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.packages import check_psij

if TYPE_CHECKING:
    import psij
    from sssjob.conversion.site import Site

__all__ = ["command", "trouble"]

_PATIENCE_S = 10.0          # how long each resource manager may take to answer


@click.command("executors")
@click.option("--check", is_flag=True, help="Ask each whether it can work here: is its command there, does it answer?")
@click.option("--timeout", type=MORE_THAN_NONE, metavar="SECONDS",
              help="With --check, the longest to wait for each (default: 10).")
@click.option("--json", "as_json", is_flag=True, help="A JSON array; with --check a record an executor.")
def command(as_json: bool, check: bool, timeout: float | None) -> int:
    """List the executors that jobs can be run with, one a line."""
    check_psij()
    from psij import JobExecutor

    if timeout is not None and not check:
        raise UsageError("--timeout is about --check")
    names = sorted(JobExecutor.get_executor_names())
    if not check:
        emit(json.dumps(names) + "\n" if as_json else "".join(f"{name}\n" for name in names))
        return 0
    checked = [(name, trouble(name, timeout or _PATIENCE_S)) for name in names]
    if as_json:
        emit("".join(json.dumps({"executor": name, "works": not why, "why": why or None}) + "\n"
                     for name, why in checked))
    else:
        widest = max(map(len, names))
        emit("".join(f"{name:{widest}}  {why or 'works'}\n" for name, why in checked))
    return 0


def trouble(name: str, seconds: float, site: tuple[Site, str] | None = None) -> str:
    """Why jobs cannot be run with an executor just now, in one line; empty where they can. site: whose settings hold
    for a service, and the path of its profile.

    Raises ForeignPackageError where the package psij is not ours."""
    check_psij()
    from psij import InvalidJobException, JobExecutor, SubmitException
    from psij.executors._polling import PollingExecutor
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig
    from sssjob.run.configuring import config_of, load_settings

    try:
        settings: Any = BatchSchedulerExecutorConfig(command_timeout=seconds)
        if name in ("arc", "iri"):
            settings = config_of(name, load_settings(site).stated(name) | {"command_timeout": seconds})
        executor: psij.JobExecutor = JobExecutor.get_instance(name, config=settings)
        if isinstance(executor, BatchSchedulerExecutor | PollingExecutor):
            executor.list()
    except (SubmitException, InvalidJobException) as error:
        text = "; ".join(filter(None, map(str.strip, str(error).split("\n"))))
        return escape(text.removeprefix(f"The jobs of {executor.name} cannot be listed: ").partition(" (PATH is")[0])
    except (ValueError, TypeError, OSError) as error:
        return escape(str(error))
    return ""
