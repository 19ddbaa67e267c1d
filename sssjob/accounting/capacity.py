"""What a machine had to give, for the utilisation of ``sssjob account``.

    [[capacity]]
    from = 2026-01-01           # in the zone of the periods; a time may have an offset
    processors = 10240
    gpus = 64

Each entry holds until the next one begins; before the first there was nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, tzinfo
from itertools import pairwise
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sssjob.errors import ProblemsError
from sssjob.xml._faults import model_problem
from sssjob.xml._toml import TOMLError, read_toml

__all__ = ["Capacity", "read_capacity"]

_Count = Annotated[int, Field(strict=True, ge=0, le=10**12)]
_END: Final = 2**62


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    since: datetime | date = Field(alias="from")
    processors: _Count
    gpus: _Count = 0


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    capacity: list[_Entry] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Capacity:
    """steps: (epoch seconds from when on, processors, GPUs), in the order of time."""

    steps: tuple[tuple[int, int, int], ...]

    def given(self, first: int, last: int) -> Mapping[str, int]:
        """``processors`` and ``gpus`` x seconds between two moments, the last one not included."""
        whole = {"processors": 0, "gpus": 0}
        for (since, processors, gpus), (until, _, _) in pairwise((*self.steps, (_END, 0, 0))):
            held = max(0, min(last, until) - max(first, since))
            whole["processors"] += held * processors
            whole["gpus"] += held * gpus
        return whole


def read_capacity(text: str, path: str, zone: tzinfo) -> Capacity:
    """The capacity of a TOML text. zone: of dates, and of times without an offset. Raises ProblemsError."""
    try:
        entries = _File.model_validate(read_toml(text)).capacity
    except ValidationError as error:
        raise ProblemsError(path, [model_problem(e) for e in error.errors()]) from None
    except TOMLError as error:
        raise ProblemsError(path, [str(error)]) from None
    steps = tuple((_moment(entry.since, zone), entry.processors, entry.gpus) for entry in entries)
    if any(later[0] <= earlier[0] for earlier, later in pairwise(steps)):
        raise ProblemsError(path, ["the entries of capacity do not follow one another in time"])
    return Capacity(steps)


def _moment(when: datetime | date, zone: tzinfo) -> int:
    whole = when if isinstance(when, datetime) else datetime.combine(when, time())
    return int((whole if whole.tzinfo else whole.replace(tzinfo=zone)).timestamp())
