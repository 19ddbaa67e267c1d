"""The parts of one job in Slurm: components of a heterogeneous one, which a single srun starts.

Sources: "Heterogeneous Job Support" of Slurm's documentation; srun(1), --het-group. Seen with 22.05.8: components end
together, with the state of the script; none can be cancelled alone; one without --error has that of the first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from psij.exceptions import InvalidJobException
from psij.executors.batch._options import appended
from psij.job import Job
from psij.job_spec import JobSpec
from psij.launchers.script_based_launcher import process_count
from psij.resource_spec import ResourceSpecV1
from sssjob.templates import render
from sssjob.templates.quoting import slurm_path, word

_PART = "slurm-part.sh.j2"
_DEVICES = ("/", "dev")
_ONCE = (None, "", "single")
_LAUNCHERS = (*_ONCE, "srun")


def check_part(spec: JobSpec) -> None:
    """Refuse, with InvalidJobException, what a part cannot have."""
    if spec.launcher not in _LAUNCHERS:
        raise InvalidJobException(f"launcher {spec.launcher!r}: the parts of one job are started by srun")
    if spec.pre_launch is not None or spec.post_launch is not None:
        raise InvalidJobException("pre_launch and post_launch: the parts of one job are started by one srun")


def step(parts: Sequence[tuple[Job, dict[str, Any]]]) -> str:
    """The commands that empty the files for output and start all parts. Each comes with its resolved specification and
    what _PART needs."""
    specs = [job.spec for job, _ in parts if job.spec is not None]
    outputs = [getattr(spec, f"{stream}_path") for spec in specs for stream in ("stdout", "stderr")
               if stream not in appended(spec)]
    emptied = [f": >{word(path)}" for path in dict.fromkeys(outputs) if path is not None and path.parts[:2] != _DEVICES]
    started = "srun " + " : ".join(" ".join(map(word, _component(number, job, context)))
                                   for number, (job, context) in enumerate(parts))
    return "\n".join([*emptied, started])


def _component(number: int, job: Job, context: dict[str, Any]) -> Iterator[str]:
    spec = job.spec
    assert spec is not None
    yield f"--het-group={number}"
    once = spec.launcher in _ONCE       # one process, which has all processors of its node
    yield f"--ntasks={1 if once else process_count(job)}"
    asked = spec.resources
    if not once and isinstance(asked, ResourceSpecV1) and asked.cpu_cores_per_process is not None:
        yield f"--cpus-per-task={asked.cpu_cores_per_process}"
    yield "--open-mode=append"      # two streams may have one file
    yield f"--input={'none' if spec.stdin_path is None else slurm_path(spec.stdin_path)}"
    yield f"--output={'/dev/null' if spec.stdout_path is None else slurm_path(spec.stdout_path)}"
    yield f"--error={'/dev/null' if spec.stderr_path is None else slurm_path(spec.stderr_path)}"
    yield from ("/bin/bash", "-c", render(_PART, context))


def whole_id(native_id: str) -> str:
    """The id of a heterogeneous job, of which no component ends, is held or runs again alone; else the id itself."""
    return native_id.partition("+")[0]
