"""The program that runs a script, and names of a resource manager where the grammar of the shell does not read it: csh,
Python, Perl, awk ...

What stands right before a name tells whether it is used; nothing is parsed.
"""

from __future__ import annotations

import re
from typing import Final

from sssjob.lrm.variables import Facts

__all__ = ["SHELLS", "interpreter", "is_used"]


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


#: Bytes before a name that are looked at.
_BEFORE: Final = 500
#: Shells that the grammar does not read.
_CSH: Final = ("csh", "tcsh", "fish")
#: What stands before a command in those, and in programs that start one.
_CALLED: Final = re.compile(rb"(?:\A|[;|&(`])\s*\Z")
_NAMED: Final = re.compile(rb"[\"'`]\Z")
#: What stands before a variable in csh, Perl and Python.
_EXPANDED: Final = re.compile(rb"(?:\$[{?#]?|\$ENV\{[\"']?|environ(?:\.get\(|\[)[\"']|getenv\([\"'])\Z")


def is_used(data: bytes, at: int, name: str, source: Facts, interpreter: str, own: dict[str, bool]) -> bool:
    """Whether a name at a place of a script is one of the source's, and no comment: one that tells whose it is, a
    variable that is read and that the script does not set itself, a command that is called. own: whether the script
    sets a variable, which is looked up once for all places."""
    begin = max(0, at - _BEFORE)
    before = data[max(begin, data.rfind(b"\n", begin, at) + 1):at].lstrip()
    if before[:1] == b"#":
        return False
    if source.own(name) or name in source.phrases:
        return True
    if name in source.variables or name in source.constants:
        if _EXPANDED.search(before) is None:
            return False
        if name not in own:
            own[name] = _sets(data, name)
        return not own[name]
    return name in source.commands and (_CALLED if interpreter in _CSH else _NAMED).search(before) is not None


def _sets(data: bytes, name: str) -> bool:
    """Whether the script sets a variable itself."""
    own = rb"\bset(?:env)?[ \t]+%s\b|^[ \t]*%s[ \t]*=" % (name.encode(), name.encode())
    return re.search(own, data, re.MULTILINE) is not None
