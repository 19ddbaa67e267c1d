"""The table of keys: area, kind, unit, which text defines them, and how those of the draft become those of the note.

Sources: HSF-TN-2016-02 ``Machine/Job Features`` ("note", sections MACHINEFEATURES and JOBFEATURES) and HEPiX draft 0.99
of 2014-05-15 ("draft", lists 1 to 3). The grades are those of the WLCG probe.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

__all__ = ["AREAS", "KEYS", "VARIABLES", "Area", "Grade", "Key", "Kind", "keys_of"]

Area = Literal["machine", "job", "status"]
Kind = Literal["int", "float", "time", "id", "path", "bool", "signed"]
Grade = Literal["error", "warning", "info"]

AREAS: Final[tuple[Area, ...]] = ("machine", "job", "status")
#: Area -> the variable that names its directory. The note has no JOBSTATUS.
VARIABLES: Final = MappingProxyType[Area, str](
    {"machine": "MACHINEFEATURES", "job": "JOBFEATURES", "status": "JOBSTATUS"})


@dataclass(frozen=True, slots=True)
class Key:
    """A key, which is also the name of its file.

    unit: as shown beside the value (``s``, ``bytes``, ``unix time`` ...). draft: only the draft has it. limit: 0 says
    nothing. grade: how bad it is that the key is missing. of, factor: a key of the draft is converted to the key ``of``
    of the note by multiplying its value by ``factor``. normalised: its seconds are divided by cpufactor_lrms to become
    those of that key.
    """

    name: str
    area: Area
    kind: Kind
    unit: str = ""
    dynamic: bool = False
    draft: bool = False
    limit: bool = False
    grade: Grade = "info"
    of: str = ""
    factor: int = 1
    normalised: bool = False


_TIME: Final = "unix time"
_ROWS: Final = (
    Key("total_cpu", "machine", "int", "processors", grade="error"),
    Key("hs06", "machine", "float", "HS06", grade="warning"),
    Key("shutdowntime", "machine", "time", _TIME, dynamic=True),
    Key("grace_secs", "machine", "int", "s"),
    Key("jobslots", "machine", "int", "slots", dynamic=True, draft=True),
    Key("phys_cores", "machine", "int", "cores", draft=True),
    Key("log_cores", "machine", "int", "cores", draft=True),
    Key("shutdown_command", "machine", "path", draft=True),

    Key("allocated_cpu", "job", "int", "processors", grade="error"),
    Key("hs06_job", "job", "float", "HS06", grade="warning"),
    Key("shutdowntime_job", "job", "time", _TIME, dynamic=True),
    Key("grace_secs_job", "job", "int", "s"),
    Key("jobstart_secs", "job", "time", _TIME, grade="error"),
    Key("job_id", "job", "id", grade="error"),
    Key("wall_limit_secs", "job", "int", "s", limit=True, grade="error"),
    Key("cpu_limit_secs", "job", "int", "s", limit=True, grade="error"),
    Key("max_rss_bytes", "job", "int", "bytes", limit=True, grade="warning"),
    Key("max_swap_bytes", "job", "int", "bytes", limit=True, grade="warning"),
    Key("scratch_limit_bytes", "job", "int", "bytes", limit=True, grade="warning"),
    Key("allocated_CPU", "job", "int", "processors", draft=True, of="allocated_cpu"),
    Key("mem_limit_MB", "job", "int", "MB (10^6)", draft=True, limit=True, of="max_rss_bytes", factor=10**6),
    Key("disk_limit_GB", "job", "int", "GB (10^9)", draft=True, limit=True, of="scratch_limit_bytes", factor=10**9),
    Key("cpufactor_lrms", "job", "float", draft=True),
    Key("wall_limit_secs_lrms", "job", "int", "normalised s", draft=True, limit=True, of="wall_limit_secs",
        normalised=True),
    Key("cpu_limit_secs_lrms", "job", "int", "normalised s", draft=True, limit=True, of="cpu_limit_secs",
        normalised=True),

    # used_CPU is also the lock of the directory. The draft calls priority_factor an integer and gives no least one.
    Key("used_CPU", "status", "int", "cores", dynamic=True, draft=True),
    Key("last_job_start", "status", "time", _TIME, dynamic=True, draft=True),
    Key("first_exp_job_end", "status", "time", _TIME, dynamic=True, draft=True),
    Key("last_exp_job_end", "status", "time", _TIME, dynamic=True, draft=True),
    Key("last_max_job_end", "status", "time", _TIME, dynamic=True, draft=True),
    Key("add_uncom_time", "status", "int", "cpu s", dynamic=True, draft=True),
    Key("add_final_exp_waste", "status", "int", "cpu s", dynamic=True, draft=True),
    Key("can_postpone_last_job", "status", "bool", dynamic=True, draft=True),
    Key("priority_factor", "status", "signed", dynamic=True, draft=True),
)
#: Name -> key; no name stands in two areas.
KEYS: Final = MappingProxyType({key.name: key for key in _ROWS})


def keys_of(area: Area) -> tuple[Key, ...]:
    """The keys of an area in the order of the texts, the note's before those that only the draft has."""
    return tuple(key for key in _ROWS if key.area == area)
