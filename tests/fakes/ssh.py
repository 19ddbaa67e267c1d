"""Stands in for ``ssh``: what it is sent is run by sh, with the home directory and the commands of a host.

``FOLDER/HOST`` is a host: ``home``, ``bin`` (first on the path there), ``log`` with the words of each call, and perhaps
``trouble``, lines of sh that come before the command, which is in ``$command``.
"""

from __future__ import annotations

import shlex
from pathlib import Path

__all__ = ["add_host", "install"]

_SSH = """#!/bin/sh
words="$*"
while [ "$1" != -- ]; do shift; done
folder={folder}/${{2#*@}}
command=$3
[ -d "$folder" ] || {{ echo "ssh: Could not resolve hostname $2" >&2; exit 255; }}
printf '%s\\n' "$words" >> "$folder/log"
echo "Welcome to $2."
echo "You have no mail" >&2
HOME=$folder/home
PATH=$folder/bin:$PATH
export HOME PATH
cd "$HOME"
[ ! -f "$folder/trouble" ] || . "$folder/trouble"
eval "$command"
"""


def install(folder: Path, bin: Path) -> None:
    """Put the stand-in into a folder of programs. folder: of the hosts."""
    for one in (folder, bin):
        one.mkdir(parents=True, exist_ok=True)
    (bin / "ssh").write_text(_SSH.format(folder=shlex.quote(str(folder))))
    (bin / "ssh").chmod(0o755)


def add_host(folder: Path, name: str) -> Path:
    """Have a host of that name; its folder."""
    for part in ("home", "bin"):
        (folder / name / part).mkdir(parents=True)
    (folder / name / "log").touch()
    return folder / name
