"""``sssjob lsp`` as a program that the server of ``tests.forks`` forks with everything imported that it uses."""

from __future__ import annotations

import sys

import sssjob.cli._language_server
from sssjob.cli import main as commands


def main() -> None:
    """Be the command, with the arguments behind the name of this module."""
    assert sssjob.cli._language_server.server
    sys.argv = ["sssjob", *sys.argv[1:]]
    sys.exit(commands())
