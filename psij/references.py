"""``${NAME}`` in arguments and in values of environment variables: what it stands for, and how it is said literally.

Source: PSI/J specification, JobSpec.setArguments and setEnvironment, which ask for simple substitution with the brace
syntax of Bash. A name that the job's environment does not have stays as it is in an argument, because shell code in
arguments has variables of its own; in a value of the environment it becomes nothing, as in Bash, where lists of paths
are extended so. A dollar sign or a backslash just before (``$${NAME}``, ``\\${NAME}``) makes the rest literal and is
taken away itself. Everything else is left alone: ``$NAME``, ``${1}``, ``${NAME:-word}``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

__all__ = ["expand", "literal", "pieces"]

_REFERENCE = re.compile(r"([$\\]?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)


def pieces(text: str) -> list[str]:
    """The text as literal, name, literal, name, ..., literal: what is at an odd index is the name of a variable."""
    if "${" not in text:
        return [text]
    literal, end, parts = "", 0, []
    for match in _REFERENCE.finditer(text):
        literal += text[end:match.start()]
        if match[1]:
            literal += match[0][1:]
        else:
            parts += [literal, match[2]]
            literal = ""
        end = match.end()
    return [*parts, literal + text[end:]]


def expand(text: str, environment: Mapping[bytes, bytes], kept: bool = False) -> str:
    """The text with the values of its variables. kept: a name that is not set stays, as in arguments; else it becomes
    nothing, as in values of the environment."""
    if "${" not in text:
        return text
    return "".join(part if index % 2 == 0 else os.fsdecode(environment.get(
        part.encode(), f"${{{part}}}".encode() if kept else b"")) for index, part in enumerate(pieces(text)))


def literal(text: str) -> str:
    """The text that stands for exactly this one where variables are expanded."""
    return text if "${" not in text else _REFERENCE.sub(lambda match: f"{match[1]}$${{{match[2]}}}", text)
