"""The program that runs a script, by its first line."""

from __future__ import annotations

from typing import Final

__all__ = ["SHELLS", "interpreter"]

#: Interpreters whose scripts the grammar of the shell reads.
SHELLS: Final = ("sh", "bash", "dash", "ash", "ksh", "ksh93", "mksh", "zsh")


def interpreter(first: str) -> str:
    """The program of a ``#!`` line without its folder (``bash``), past ``env``; ``sh`` where there is none."""
    if not first.startswith("#!"):
        return "sh"
    words = [w for w in first[2:].split() if "=" not in w]
    names = [w.rpartition("/")[2] for w in words]
    if names[:1] == ["env"]:
        names = [n for n in names[1:] if not n.startswith("-")]
    return names[0] if names else "sh"
