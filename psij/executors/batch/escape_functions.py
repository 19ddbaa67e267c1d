"""Quoting of values in Mustache templates."""

from __future__ import annotations

from sssjob.templates.quoting import word

__all__ = ["bash_escape"]


def bash_escape(o: object) -> str:
    """A value as one word of a bash script, exactly. Not for inside double quotes: the generator sees to that."""
    return str(word(o))
