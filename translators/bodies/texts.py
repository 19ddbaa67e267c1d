"""Names in the text of a body that no shell expands: what people read, and what another program runs."""

from __future__ import annotations

import re
from typing import Final

from sssjob.translators.bodies.shell import Use

__all__ = ["is_call", "is_label"]

#: The value of a variable behind its name; what shows text to people, and what sends it to something else.
_NAMED: Final = re.compile(rb"\s*[=:]\s*[\"']?\$\{?(\w+)")
_SHOWS: Final = re.compile(rb"(?:^|[;&|{]|(?<!\$)\(|\bthen|\bdo|\belse)\s*(?:echo|printf)\s[^;|&>`]*\Z", re.MULTILINE)
_SENT: Final = re.compile(rb"\||>(?!\s*&\s*2\b)")
#: What stands before a call in a text, and after its name.
_BEGINS_CALL: Final = re.compile(rb"[\"';&|(][ \t]*\Z")
_CALLED_WITH: Final = re.compile(rb"[ \t]+(?:-{1,2}[A-Za-z]|\./|\{)")


def is_call(data: bytes, use: Use) -> bool:
    """Whether a text begins with a call, or goes on with one, that is not only shown: ``--cluster "qsub -V"``. data:
    the whole body."""
    line = data.rfind(b"\n", 0, use.start) + 1
    return _BEGINS_CALL.search(data, line, use.start) is not None and _CALLED_WITH.match(
        data, use.end) is not None and _SHOWS.search(data, line, use.start) is None


def is_label(data: bytes, use: Use) -> bool:
    """Whether a name is a word that people read: ``(PBS_ARRAYID)``, ``echo "SLURM_NTASKS: $SLURM_NTASKS"``, or that of
    a variable beside its value: ``--env SLURM_NTASKS=$SLURM_NTASKS``. data: the whole body."""
    before, after = data[use.start - 1:use.start], data[use.end:use.end + 1]
    if (after == b":" and before in (b"", b" ", b"\t", b'"', b"'")) or (before, after) == (b"(", b")"):
        return True
    if (hit := _NAMED.match(data, use.end)) is not None and hit[1] == use.name.encode():
        return True
    line, end = data.rfind(b"\n", 0, use.start) + 1, data.find(b"\n", use.end)
    return before not in (b"$", b"{") and _SHOWS.search(data, line, use.start) is not None and \
        _SENT.search(data, use.end, len(data) if end < 0 else end) is None
