"""The command line. ``main`` answers ``--version`` before anything else is imported; the rest is in ``_app`` and in one
module a command, which is imported when the command is used."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: the process's own) and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-V"]):
        from sssjob.version import __version__

        try:
            print(f"sssjob {__version__}", flush=True)
            return 0
        except OSError:                 # told below, as for every command
            pass
    from sssjob.cli._app import run

    return run(arguments)
