"""``sssjob resume``: let jobs go on that are suspended."""

from __future__ import annotations

from sssjob.cli._wishes import wish

__all__ = ["command"]

command = wish("resume", """\
Let these jobs go on, which are suspended.

Exit status as of `suspend`.
""")
