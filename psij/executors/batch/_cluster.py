"""Which cluster a resource manager's commands talk to.

A home directory, and with it a journal, may be shared by several clusters whose native ids are the same. An executor
says by which words its cluster is told from others of its kind; two of equal words are the same one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LONGEST = 500      # characters of each word: they are shown to people and kept in journals


@dataclass(frozen=True, slots=True)
class Cluster:
    """name: what its site calls it. place: where its manager is, as precisely as that is known and lasts."""

    name: str
    place: str = ""

    def __str__(self) -> str:
        name, place = (re.sub(r"[^ -~]|\s+", "_", text)[:_LONGEST] for text in (self.name, self.place))
        return f"{name} ({place})" if place else name


def first(pattern: str, text: str) -> str:
    """What the first group of a pattern matches in a text of lines, without blanks around it; empty where nothing."""
    match = re.search(pattern, text, re.MULTILINE)
    return "" if match is None else match[1].strip()
