"""What the formats of Flux have in common: members of its JSON, why a job ended, what a summary of resources names."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from sssjob.findings import escape
from sssjob.lrm.flux import EXCEPTIONS, STATES
from sssjob.lrm.idset import ranges
from sssjob.lrm.states import Stage
from sssjob.translators.records.base import Rejected, number

_RANKS: Final = re.compile(r"rank(\d+|\[[\d,-]+\])/(\S+)", re.ASCII)
_IDS: Final = re.compile(r"([a-z]+)(\d+|\[[\d,-]+\])", re.ASCII)
_SUMMARY: Final = 100_000       # characters of a summary that are looked at


def text_of(fields: dict[str, Any], name: str) -> str | None:
    """A text, or a number as one."""
    value = fields.get(name)
    return None if value is None or isinstance(value, (dict, list, bool)) else str(value)


def number_of(fields: dict[str, Any], name: str, *, signed: bool = False) -> Decimal | None:
    """A number; None where it is absent, or negative and not signed. Rejected: number."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Rejected("number", f"{name} {escape(str(value), 40)!r} is no number")
    amount = number(str(abs(value)), name)
    if amount is None or value >= 0:
        return amount
    return -amount if signed else None


def whole(value: Decimal) -> int:
    """Half up."""
    return int(value.quantize(Decimal(1), ROUND_HALF_UP))


def message(result: str, kind: str, note: str, code: int | None, ran: bool) -> str:
    """StatusMessage of a job that did not complete: the reason, then the exception's type and note, else its code."""
    state = STATES.get(result)
    if state is None or state.stage not in (Stage.FAILED, Stage.CANCELED):
        return ""
    why = state.cause or EXCEPTIONS.get(kind) or ("failed" if ran else "launch")
    words = ": ".join(filter(None, (kind, note))) or (f"returncode {code}" if code is not None else result.lower())
    return f"{why}: {escape(words, 500)}"


def held(summary: str) -> dict[str, int]:
    """How many of each kind ``rank[0-1]/core[0-3],gpu[0-1]`` names: rank, core, gpu."""
    counts: dict[str, int] = {}
    for ranks, children in _RANKS.findall(summary[:_SUMMARY]):
        count = _members(ranks)
        counts["rank"] = counts.get("rank", 0) + count
        for kind, ids in _IDS.findall(children):
            counts[kind] = counts.get(kind, 0) + count * _members(ids)
    return counts


def gpus_of(summary: str) -> int:
    """How many GPUs a summary names."""
    return held(summary).get("gpu", 0)


def _members(ids: str) -> int:
    """How many numbers an idset has."""
    named = ranges(ids.strip("[]"))
    return sum(map(len, named)) if named is not None else 0
