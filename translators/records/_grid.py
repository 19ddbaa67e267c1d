"""What a site knows of its jobs and no resource manager says: the virtual organisation and the benchmark.

    vo=chem:atlas,bio:biomed,*:ops
    benchmark=HEPscore23 15.3; colony=HEPscore23 18.1; colony/gpu=HEPscore23 22, hepspec 19

A VO is that of the Project, else of the Group, else of ``*``. A benchmark is that of the Machine and the Queue, else of
the Machine, else the one without a place; several of one place are parted by commas.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.translators.records._usage import GRID, Taking
from sssjob.translators.records.base import Rejected, number

_Levels = list[tuple[str, Decimal]]


def parsed(text: str) -> _Levels | None:
    """(type, figure) of ``HEPSPEC 11.4, HEPscore23 15.3``; None where it is none."""
    levels = []
    for part in text.split(","):
        kind, _, figure = part.strip().rpartition(" ")
        try:
            value = number(figure, "ServiceLevel")
        except Rejected:
            return None
        if value is None or not kind or set(kind) & set(" :{}=;"):
            return None
        levels.append((kind, value))
    return levels


@lru_cache(maxsize=64)
def _benchmarks(text: str) -> dict[str, _Levels]:
    """Levels by ``Machine/Queue``, ``Machine``, and "" for all others. Raises UsageError."""
    places: dict[str, _Levels] = {}
    for part in text.split(";"):
        place, sign, named = part.rpartition("=")
        levels = parsed(named.strip())
        if levels is None or place.strip() in places or (sign and not place.strip()):
            raise UsageError("benchmark is a name and a number (HEPscore23 15.3), of others than all machines with "
                             f"their place once (; colony/gpu=HEPscore23 22), not {escape(part.strip(), 60)!r}")
        places[place.strip()] = levels
    return places


def benchmarks(t: Taking) -> _Levels:
    """The benchmarks of a job's machine: what the job says, else the option."""
    text = t.fact(GRID, "ServiceLevel")
    if text is not None:
        stated = parsed(text)
        if stated is None:
            t.lost("SSS501", "Extension ServiceLevel", "a ServiceLevel is names and numbers: HEPSPEC 11.4")
        return stated or []
    option = t.telling.context.options.get("benchmark")
    if option is None:
        return []
    places = _benchmarks(option)
    machine, queue = (str(t.job.value(tag) or "").strip() for tag in ("Machine", "Queue"))
    levels = next((places[place] for place in (f"{machine}/{queue}", machine, "") if place in places), None)
    if levels is None:
        t.lost("SSS504", "Extension ServiceLevel",
               f"the option benchmark has none of machine {escape(machine, 60) or '-'}")
        return []
    t.lost("SSS503", "Extension ServiceLevel", "the benchmark is the one that the option names")
    return levels


@lru_cache(maxsize=64)
def _organisations(text: str) -> dict[str, str]:
    """VO by Project or Group. Raises UsageError."""
    names: dict[str, str] = {}
    for part in text.split(","):
        name, _, organisation = (word.strip() for word in part.rpartition(":"))
        if not name or not organisation or name in names:
            raise UsageError(f"vo is a list of PROJECT:VO, each project once, not {escape(part.strip(), 60)!r}")
        names[name] = organisation
    return names


def vo_of(t: Taking) -> str | None:
    """The VO of a job: what the job says, else the option, unless an FQAN says it."""
    stated = t.fact(GRID, "VO")
    option = t.telling.context.options.get("vo")
    fqan = any(p.get("type") == GRID and p.get("name") == "FQAN" for p in t.job.all("Extension"))
    if stated is not None or option is None or fqan:
        return stated
    names = _organisations(option)
    keys = [str(t.job.value(tag) or "").strip() for tag in ("Project", "Group")]
    vo_name = next((names[key] for key in (*keys, "*") if key in names), None)
    if vo_name is None:
        t.lost("SSS504", "Extension VO", f"the option vo has none of project {escape(keys[0], 60) or '-'}")
    else:
        t.lost("SSS503", "Extension VO", "the VO is the one that the option names")
    return vo_name
