"""``sssjob config``: the settings that hold, and where each is from."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import problem, width
from sssjob.cli._settings import following_site_option, settings_for
from sssjob.cli._tables import table

__all__ = ["command"]


@click.group("config")
def command() -> None:
    """Settings of the configuration file, of the environment and of a site profile."""


@command.command("show")
@following_site_option
@click.option("--json", "as_json", is_flag=True, help="An object with name, value and source for each setting.")
def show(site_name: str | None, as_json: bool) -> int:
    """Print every setting with the value that holds and where it is from.

    That is ``default``, a file with its line, a site profile, or a variable of the environment. Settings of one
    executor follow those of all, as executors.NAME.SETTING. An executor that is not installed here is named on
    standard error.
    """
    from psij import JobExecutor

    settings = list(settings_for(site_name)[0].shown())
    if as_json:
        emit("".join(json.dumps({"name": name, "value": setting.value, "source": setting.source}) + "\n"
                     for name, setting in settings))
    else:
        rows = [[name, _shown(setting.value), setting.source] for name, setting in settings]
        emit("\n".join([*table(rows, ["setting", "value", "from"], width(sys.stdout)), ""]))
    named = {str(setting.value if name == "executor" else name.split(".")[1]): setting.source
             for name, setting in settings if name.startswith("executor")}
    installed = JobExecutor.get_executor_names()
    for executor in sorted(name for name in named if name.lower() not in installed):
        problem(f"{named[executor]}: there is no executor {executor!r} here (known: {', '.join(sorted(installed))})",
                as_json=as_json)
    return 0


def _shown(value: Any) -> str:
    return "" if value is None else str(value)
