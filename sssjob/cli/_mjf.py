"""The options with which jobs get Machine/Job Features."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from sssjob.cli._complete import directories

__all__ = ["mjf_options", "provided"]


def mjf_options(command: Callable[..., int]) -> Callable[..., int]:
    """``--mjf`` and ``--mjf-root``: while the command runs, executors provide Machine/Job Features."""
    @wraps(command)
    def inside(*arguments: Any, mjf: bool, mjf_root: str | None, **options: Any) -> int:
        with provided(mjf, mjf_root):
            return command(*arguments, **options)

    made: Callable[..., int] = click.option(
        "--mjf-root", metavar="DIR", shell_complete=directories,
        help="The folder that they lie in, on the node (default: $TMPDIR); implies --mjf.")(inside)
    return click.option("--mjf", is_flag=True,
                        help="Give jobs Machine/Job Features: $MACHINEFEATURES, $JOBFEATURES, $JOBSTATUS.")(made)


@contextmanager
def provided(mjf: bool, root: str | None) -> Iterator[None]:
    """While this lasts, executors provide Machine/Job Features, those of processes that are started too."""
    from sssjob.mjf.provider import ENVIRONMENT

    if not mjf and root is None:
        yield
        return
    before = os.environ.get(ENVIRONMENT)
    os.environ[ENVIRONMENT] = root or ""
    try:
        yield
    finally:
        if before is None:
            del os.environ[ENVIRONMENT]
        else:
            os.environ[ENVIRONMENT] = before
