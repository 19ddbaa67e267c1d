"""``sssjob lsp`` as a program that the server of ``tests.forks`` forks with everything imported that it uses."""

from __future__ import annotations

import sys

from sssjob.cli import _language_server
from sssjob.cli import main as commands

__all__ = ["_language_server", "main"]


def main() -> None:
    """Be the command, with the arguments behind the name of this module."""
    sys.argv = ["sssjob", *sys.argv[1:]]
    sys.exit(commands())
