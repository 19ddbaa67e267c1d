"""What ``convert``, ``account``, ``charge`` and ``ledger export`` do with names: a privacy profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import files
from sssjob.cli._files import read_bytes

if TYPE_CHECKING:
    from sssjob.accounting.privacy import Privacy


def privacy_option(help: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """``--privacy FILE``; help: what it does in this command."""
    return click.option("--privacy", "privacy_file", metavar="FILE", shell_complete=files, help=help)


def load_privacy(name: str | None) -> Privacy | None:
    """The profile of a file, None without one. Raises PrivacyError, AccessError."""
    if name is None:
        return None
    from sssjob.accounting.privacy import read_privacy

    return read_privacy(read_bytes(name), name)
