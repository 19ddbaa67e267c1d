"""The options with which jobs get Machine/Job Features."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from sssjob.cli._complete import directories
from sssjob.errors import AccessError, UsageError
from sssjob.findings import escape

_HERE = ("local", "fluxexec")       # executors whose jobs run on this machine


def mjf_options(command: Callable[..., int]) -> Callable[..., int]:
    """``--mjf`` and ``--mjf-root``: while the command runs, executors provide Machine/Job Features."""
    @wraps(command)
    def inside(*arguments: Any, mjf: bool, mjf_root: str | None, **options: Any) -> int:
        """Run the command while executors provide Machine/Job Features. Raises UsageError for a root that cannot be."""
        if options.get("simulate") and (mjf or mjf_root is not None):
            raise UsageError("--simulate runs nothing that could have Machine/Job Features")
        if mjf_root is not None:
            _check(mjf_root, options.get("executor") or "local")
        with provided(mjf, mjf_root):
            return command(*arguments, **options)

    decorated: Callable[..., int] = click.option(
        "--mjf-root", metavar="DIR", shell_complete=directories,
        help="The folder that they lie in, on the node (default: $TMPDIR); implies --mjf.")(inside)
    return click.option("--mjf", is_flag=True,
                        help="Give jobs Machine/Job Features: $MACHINEFEATURES, $JOBFEATURES, $JOBSTATUS.")(decorated)


def _check(root: str, executor: str) -> None:
    """Raise UsageError for what is no absolute path, and AccessError for a folder of this machine in which no
    directories can be made; the nodes of a resource manager cannot be looked at."""
    if not os.path.isabs(root):
        raise UsageError(f"--mjf-root {escape(root)!r} is no absolute path: the directories lie there, on the node")
    if executor.lower() not in _HERE:
        return
    if not os.path.isdir(root):
        raise AccessError(escape(root), "--mjf-root: no such directory on this machine")
    if not os.access(root, os.W_OK | os.X_OK):
        raise AccessError(escape(root), "--mjf-root: no directory can be made in it")


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
