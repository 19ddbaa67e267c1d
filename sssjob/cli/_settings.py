"""The settings of a command that runs or follows jobs: of its options, the environment and the configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import executors, files

if TYPE_CHECKING:
    from sssjob.cli._options import Session
    from sssjob.conversion.settings import Settings

executor_option = click.option("--executor", metavar="NAME", shell_complete=executors,
                               help="What to run with; see `executors` (default: that of the configuration, else "
                                    "local).")


def following_site_option(function: Callable[..., int]) -> Callable[..., int]:
    """``--site`` of commands that follow jobs: how their executors work."""
    return click.option("--site", "site_name", metavar="FILE", shell_complete=files,
                        help="The site profile, or its name in the folder of the configuration: how executors work.")(
                            function)


def settings_of(session: Session, executor: str | None) -> Settings:
    """The settings for a document that is run; a site profile that the configuration names is used for reading too."""
    from sssjob.cli._profiles import load_site
    from sssjob.run.configuring import load_settings

    options = {} if executor is None else {"executor": (executor, "--executor")}
    named = None if session.site is None else (session.site, session.site_path)
    settings = load_settings(named, options)
    site = settings.get("site").value
    if session.site is None and site is not None:
        session.site, session.site_path = load_site(str(site))
    return settings


def settings_for(site_name: str | None = None) -> tuple[Settings, str | None]:
    """The settings for jobs that are followed, and the name of their site. site_name: what ``--site`` says."""
    from sssjob.cli._profiles import load_site
    from sssjob.run.configuring import load_settings

    site, path = load_site(site_name)
    return load_settings(None if site is None else (site, path)), None if site is None else site.name
