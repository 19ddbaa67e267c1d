"""``sssjob executors``: what ``run --executor`` knows."""

from __future__ import annotations

import json

import click

from sssjob.cli._files import emit

__all__ = ["command"]


@click.command("executors")
@click.option("--json", "as_json", is_flag=True, help="A JSON array.")
def command(as_json: bool) -> int:
    """List the executors that jobs can be run with, one a line."""
    from psij import JobExecutor

    names = sorted(JobExecutor.get_executor_names())
    emit(json.dumps(names) + "\n" if as_json else "".join(f"{name}\n" for name in names))
    return 0
