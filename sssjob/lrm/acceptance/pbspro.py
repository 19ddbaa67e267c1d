"""What qsub of PBS Pro and OpenPBS refuses.

Sources: chk_Jrange.c, ck_job_name.c and parse_destid.c of OpenPBS; PBS_MAXJOBNAME of pbs_ifl.h; the flag
ATR_DFLAG_CVTSLT of pbs_ecl_svr_resc_def.c; verify_value_mailpoints of ecl_verify_values.c, and what its own test of
``-m j`` expects; qsub(1B), -l and -p.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from sssjob.lrm.acceptance import Judge, Refusal, bounded, one_word
from sssjob.lrm.names import JOB_NAMES

__all__ = ["JUDGE"]

_RANGE: Final = re.compile(r"(\d{1,9})-(\d{1,9})(?::(\d{1,9}))?(?:%\d{1,9})?", re.ASCII)
#: Resources that the server makes a select of; they cannot stand beside one, nor beside place.
_OF_CHUNKS: Final = ("ncpus", "mem", "vmem", "mpiprocs", "ompthreads", "ngpus", "naccelerators", "arch", "host",
                     "vnode", "aoe", "nodes")


def _indices(value: str) -> str:
    span = _RANGE.fullmatch(value)
    if span is None:
        return "is no range of indices"
    if int(span[2]) <= int(span[1]):
        return "the end of a range is above its start"
    return "a step is at least 1" if span[3] is not None and not int(span[3]) else ""


_EVENTS: Final = re.compile(r"n|[abej]*[abe][abej]*")


def _events(value: str) -> str:
    return "" if _EVENTS.fullmatch(value) else "is n alone, or letters of abej of which j is not the only one"


def _resources(options: Mapping[str, str]) -> Iterator[Refusal]:
    if "j" in options.get("-m", "") and "-J" not in options:
        yield Refusal("-m", "only an array has mail of its elements (j)")
    beside = next((name for name in ("select", "place") if f"-l {name}" in options), None)
    if beside is None:
        return
    for name in _OF_CHUNKS:
        if f"-l {name}" in options:
            yield Refusal(f"-l {name}", f"-l {name} and -l {beside} exclude each other")


JUDGE: Final = Judge("qsub", {
    "-J": _indices, "-m": _events, "-N": JOB_NAMES["pbspro"].fault, "-q": one_word(", ", "destination"),
    "-p": bounded(-1024, 1023),
}, _resources)
