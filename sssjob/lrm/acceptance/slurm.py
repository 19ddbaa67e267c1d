"""What sbatch refuses. Seen with sbatch of Slurm 22.05.8, for the most part with ``--test-only``; sbatch(1);
Heterogeneous Job Support of the Slurm documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from sssjob.lrm.acceptance import Judge, Refusal, at_least, bounded
from sssjob.lrm.idset import one_range

__all__ = ["JUDGE"]

_LONGEST: Final = 1024
#: Options of which only one may stand.
_ONE_OF: Final = (
    ("--mem", "--mem-per-cpu", "--mem-per-gpu"),
    ("--cpus-per-task", "--cpus-per-gpu"),
    ("--ntasks-per-node", "--ntasks-per-gpu"),
    ("--gpus-per-task", "--ntasks-per-gpu"),
)
_COUNTS: Final = ("--ntasks", "--cpus-per-task", "--ntasks-per-node", "--threads-per-core", "--ntasks-per-core",
                  "--ntasks-per-socket", "--ntasks-per-gpu", "--cpus-per-gpu", "--sockets-per-node",
                  "--cores-per-socket")


def _indices(value: str) -> str:
    for part in re.sub(r"%\d{1,9}\Z", "", value).split(",") if value else ():
        span = one_range(part)
        if span is None:
            return "is no list of indices"
        if span[1] < span[0]:
            return "a range runs backwards"
        if not span[2]:
            return "a step is at least 1"
    return ""


def _name(value: str) -> str:
    return f"has more than {_LONGEST} characters" if len(value) > _LONGEST else ""


def _owner(value: str) -> str:
    return "" if re.fullmatch(r"[\w.][\w.$-]*", value) else "is no name and no number of one user or group"


def _together(options: Mapping[str, str]) -> Iterator[Refusal]:
    for names in _ONE_OF:
        stated = [name for name in names if name in options]
        if len(stated) > 1:
            yield Refusal(stated[-1], f"{' and '.join(stated)} exclude each other")
    if "--gpus-per-task" in options and "--ntasks" not in options and "--gpus" not in options \
            and "--ntasks-per-node" not in options:
        yield Refusal("--gpus-per-task", "--gpus-per-task wants --ntasks or --gpus")
    if "--gpus-per-socket" in options and "--sockets-per-node" not in options:
        yield Refusal("--gpus-per-socket", "--gpus-per-socket wants --sockets-per-node")
    if "--mem-per-gpu" in options and not any(name.startswith("--gpus") or name == "--gres" for name in options):
        yield Refusal("--mem-per-gpu", "--mem-per-gpu wants an option that asks for GPUs")


JUDGE: Final = Judge("sbatch", {
    **dict.fromkeys(_COUNTS, at_least(1)), "--array": _indices, "--job-name": _name,
    "--uid": _owner, "--gid": _owner,
    "--priority": bounded(0, 4294967293), "--nice": bounded(-2147483645, 2147483645),
}, _together, whole={"--array": "a heterogeneous job is no array"})
