"""The texts of the Extensions StageIn, StageOut, Cleanup and CleanupFlags of type PSIJ, into a JobSpec.

    {"source": "http://host/file", "target": "file", "mode": "LINK"}
    {"source": "out", "target": "back/out", "flags": "IF_PRESENT|ON_SUCCESS"}

A text that says anything else is refused whole, because half of it would stage other files than were meant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import EnumMeta
from typing import Any, Final

from psij import JobSpec, StageIn, StageOut, StageOutFlags, StagingMode

__all__ = ["STAGING", "read_staging"]

#: Extension -> the members of its object; those of Cleanup and CleanupFlags are no objects.
_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "StageIn": ("source", "target", "mode"), "StageOut": ("source", "target", "mode", "flags")}
#: Names of the Extensions.
STAGING: Final = (*_MEMBERS, "Cleanup", "CleanupFlags")


def read_staging(spec: JobSpec, name: str, text: str) -> None:
    """Put what one of these Extensions says into a JobSpec. Raises ValueError with what is wrong with the text."""
    if name == "Cleanup":
        spec.cleanup = {*(spec.cleanup or ()), text}
    elif name == "CleanupFlags":
        spec.cleanup_flags = _flags(text)
    else:
        staging = _members(name, text)
        source, target = staging["source"], staging["target"]
        mode = StagingMode[_word(StagingMode, "mode", staging.get("mode", "COPY"))]
        if name == "StageIn":
            spec.stage_in = {*(spec.stage_in or ()), StageIn(source, target, mode)}
        else:
            out = StageOut(source, target, _flags(staging.get("flags", "ALWAYS")), mode)
            spec.stage_out = {*(spec.stage_out or ()), out}


def _members(name: str, text: str) -> dict[str, str]:
    """The members of an object, all of them texts, source and target among them."""
    try:
        staging: Any = json.loads(text)
    except (ValueError, RecursionError):
        staging = None
    if not isinstance(staging, dict):
        raise ValueError('it is no JSON object like {"source": "a", "target": "b"}')
    for member in ("source", "target"):
        if not staging.get(member):
            raise ValueError(f"{member} is missing")
    for member, value in staging.items():
        if member not in _MEMBERS[name]:
            raise ValueError(f"{member!r} is not known (known: {', '.join(_MEMBERS[name])})")
        if not isinstance(value, str):
            raise ValueError(f"{member} is no text")
    return staging


def _word(words: EnumMeta, what: str, word: str) -> str:
    if word not in words.__members__:
        raise ValueError(f"{what} {word!r} is not known (known: {', '.join(words.__members__)})")
    return word


def _flags(text: str) -> StageOutFlags:
    """``IF_PRESENT|ON_ERROR`` as flags."""
    flags = StageOutFlags.NONE
    for word in text.split("|"):
        flags |= StageOutFlags[_word(StageOutFlags, "flag", word)]
    return flags
