"""What a run would hand to its executor, job by job, without handing over anything."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import psij
from psij.executors.batch._array_jobs import numbers_text
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from psij.rendered import Rendered
from sssjob.document.lexical import utc
from sssjob.errors import UsageError
from sssjob.run.arrays import arrays_for
from sssjob.run.beginning import begin_attributes, with_attributes
from sssjob.run.plan import Plan, PlannedJob

__all__ = ["Rehearsed", "rehearse"]


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """One submission. label: of the job, or of an array with its indices; part: number of the task group where each is
    a submission of its own, else 0.

    waits: what comes before it: dependencies, an EligibleTime or a hold that the executor is not told of at this time.
    """

    label: str
    part: int
    rendered: Rendered
    waits: tuple[str, ...] = ()

    def record(self, executor: str) -> dict[str, Any]:
        """As a JSON object; what is empty is left out."""
        rendered = self.rendered
        members = {"part": self.part, "command": list(rendered.command), "directory": rendered.directory,
                   "environment": dict(rendered.environment), "streams": dict(rendered.streams),
                   "files": [{"path": path, "text": text} for path, text in rendered.files.items()],
                   "request": rendered.request, "waits": list(self.waits)}
        return {"kind": "submission", "job": self.label, "executor": executor} | {k: v for k, v in members.items() if v}

    def text(self) -> str:
        """As people read it: the command as a shell would be given it, then each file below a line with its path."""
        rendered = self.rendered
        lines = [f"# {self.label}: {reason}" for reason in self.waits]
        if rendered.command:
            lines.append(f"$ {_shell(rendered)}")
        text = "".join(f"{line}\n" for line in lines)
        for path, content in rendered.files.items():
            text += f"--- {path}\n{content}{'' if content.endswith(chr(10)) else chr(10)}"
        return text + ("" if rendered.request is None else f"{rendered.request}\n")


def _shell(rendered: Rendered) -> str:
    words = [f"{name}={value}" for name, value in rendered.environment.items()]
    command = shlex.join([*(["env", *words] if words else []), *rendered.command])
    signs = {"stdin": "<", "stdout": ">", "stderr": "2>"}
    streams = "".join(f" {signs[name]}{shlex.quote(path)}" for name, path in rendered.streams.items())
    return (f"cd {shlex.quote(rendered.directory)} && " if rendered.directory is not None else "") + command + streams


def rehearse(plan: Plan, backend: psij.JobExecutor) -> Iterator[Rehearsed]:
    """The submissions of a plan in document order; of jobs that have succeeded before there are none.

    Raises UsageError for an executor that cannot show them, InvalidJobException for a job that it would refuse.
    """
    if not hasattr(backend, "render"):
        raise UsageError(f"the executor {backend.name} cannot show what it would submit")
    for _, elements in groupby(plan.jobs, lambda job: id(job if job.member is None else job.member.job)):
        jobs = [job for job in elements if job.parts]
        arrays = list(_as_arrays(plan, jobs, backend)) if len(jobs) > 1 else []
        yield from arrays or (rehearsed for job in jobs for rehearsed in _alone(plan, job, backend))


def _alone(plan: Plan, job: PlannedJob, backend: Any) -> Iterator[Rehearsed]:
    """The submissions of a job."""
    begin = begin_attributes(job, backend)
    specs = [with_attributes(part.spec, begin) if begin else part.spec for part in job.parts]
    together: Sequence[Sequence[psij.JobSpec]] = [specs] if job.together else [[spec] for spec in specs]
    for number, some in enumerate(together, 1):
        rendered: Rendered = backend.render([psij.Job(spec) for spec in some])
        rendered = replace(rendered, files={**rendered.files, **_scripts(plan, some, backend)})
        yield Rehearsed(job.label, number if len(together) > 1 else 0, rendered, tuple(_waits(job, begin is None)))


def _as_arrays(plan: Plan, jobs: Sequence[PlannedJob], backend: Any) -> Iterator[Rehearsed]:
    """The native arrays of elements; nothing where they are submitted one by one."""
    first, member = jobs[0], jobs[0].member
    assert member is not None
    begin = begin_attributes(first, backend)
    specs = [with_attributes(job.parts[0].spec, begin) if begin else job.parts[0].spec for job in jobs]
    if len(first.parts) == 1:
        for array in arrays_for(backend, specs, [job.member.index for job in jobs if job.member is not None],
                                member.array.throttle):
            rendered: Rendered = backend.render_array(array)
            rendered = replace(rendered, files={**rendered.files, **_scripts(plan, specs[:1], backend)})
            numbers = numbers_text(list(array.indices.values()))
            yield Rehearsed(f"{member.id}[{numbers}]", 0, rendered, tuple(_waits(first, begin is None)))


def _scripts(plan: Plan, specs: Sequence[psij.JobSpec], backend: Any) -> dict[str, str]:
    """The scripts of the document that specifications start."""
    paths = {Path(spec.executable) for spec in specs if spec.executable is not None and plan.scripts is not None
             and plan.scripts in Path(spec.executable).parents}
    programs = backend.host.programs if isinstance(backend, BatchSchedulerExecutor) else {}
    texts = {str(spec.executable): programs[str(spec.executable)].decode("utf-8", "surrogateescape") for spec in specs
             if str(spec.executable) in programs}
    return texts | {str(path): path.read_text("utf-8", "surrogateescape") for path in sorted(paths)}


def _waits(job: PlannedJob, here: bool) -> Iterator[str]:
    for need in job.needs:
        yield f"after {need.text}; where the resource manager can wait for it, its native id is told when it is known"
    if job.held and not job.held_there:
        yield "held until it is released"
    if here:
        yield f"not before {utc(job.eligible or 0)}"
