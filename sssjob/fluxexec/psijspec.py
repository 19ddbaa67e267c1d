"""A PSI/J specification as a Flux jobspec V1, for the executor ``fluxexec``, and a jobspec as one of PSI/J.

What PSI/J expands (``${NAME}`` in environment and arguments, ``~/``) is expanded here: a jobspec is taken to the
letter. What a jobspec has no word for is refused. Source: RFC 14 and 25; the rows of PSI/J beside it are in
docs/flux-exec.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

from psij import InvalidJobException, JobAttributes, JobSpec, ResourceSpecV1
from psij.executors._environment import ENVIRONMENT
from psij.executors._local_plan import home
from psij.executors.batch._options import directory as directory_of
from psij.references import expand
from sssjob.lrm.flux.jobspec import Jobspec

__all__ = ["jobspec_of", "spec_of"]

_FEATURES: Final = "mjf."
_LAUNCHERS: Final = (None, "single", "multiple")
#: Member -> why it cannot be said, where it is set.
_REFUSED: Final = {
    "pre_launch": "a jobspec has no script before the launch",
    "post_launch": "a jobspec has no script after the launch",
    "stage_in": "a service stages no files", "stage_out": "a service stages no files",
    "cleanup": "a service removes no files",
}


def jobspec_of(spec: JobSpec, inherited: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The jobspec of a checked specification. Raises InvalidJobException for what cannot be said.

    inherited: variables that the service does not have, and the job is to have where it inherits any; None: it has all.
    """
    _refuse(spec)
    command, stated = [os.fspath(spec.executable or ""), *(spec.arguments or ())], dict(spec.environment or {})
    if any("${" in text for text in (*command[1:], *stated.values())):
        environment = _environment(spec)
        command[1:] = [expand(text, environment, kept=True) for text in command[1:]]
        stated = {name: os.fsdecode(environment[name.encode()]) for name in stated}
    if not spec.inherit_environment:
        command = _alone(command, stated)
        stated = {}
    elif inherited is not None:
        stated = {**inherited, **stated}
    return {"version": 1, "resources": [_resources(spec)],
            "tasks": [{"command": command, "slot": "task", "count": _count(spec)}],
            "attributes": {"system": _system(spec, stated)} | _user(spec)}


def _refuse(spec: JobSpec) -> None:
    for member, why in _REFUSED.items():
        if getattr(spec, member):
            raise InvalidJobException(f"{member} cannot be said: {why}")
    if spec.launcher not in _LAUNCHERS:
        raise InvalidJobException(f"launcher {spec.launcher!r} cannot be said: the service starts the processes "
                                  "(single and multiple can)")
    attributes = spec.attributes
    if attributes is not None and attributes.reservation_id is not None:
        raise InvalidJobException("attributes.reservation_id cannot be said: a jobspec has no reservations")
    for name in (attributes.custom_attributes or ()) if attributes is not None else ():
        if name.lower().startswith("fluxexec."):
            raise InvalidJobException(f"custom attribute {name!r} is not known (fluxexec has none)")
    if isinstance(spec.resources, ResourceSpecV1) and spec.resources.memory:
        raise InvalidJobException("resources.memory cannot be said: a jobspec has cores and GPUs")


def _environment(spec: JobSpec) -> dict[bytes, bytes]:
    """The job's environment as PSI/J makes it, each value with those before it."""
    variables = dict(ENVIRONMENT) if spec.inherit_environment else {}
    for name, value in (spec.environment or {}).items():
        variables[name.encode()] = os.fsencode(expand(str(value), variables))
    return variables


def _alone(command: list[str], stated: Mapping[str, str]) -> list[str]:
    """A command that has these variables and no others."""
    if "=" in command[0]:
        raise InvalidJobException(f"executable {command[0]!r}: env(1), which keeps other variables out, would take it "
                                  "for a variable")
    return ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in stated.items()), *command]


def _resources(spec: JobSpec) -> dict[str, Any]:
    """A slot a process, inside nodes where the specification has nodes; with launcher single one slot has it all."""
    resources = spec.resources if isinstance(spec.resources, ResourceSpecV1) else ResourceSpecV1()
    by_node = resources.node_count is not None or resources.processes_per_node is not None
    nodes = resources.computed_node_count if by_node else None
    slots = resources.computed_process_count if nodes is None else resources.computed_processes_per_node
    merged = 1 if spec.launcher == "multiple" else slots
    inside = [{"type": kind, "count": count * merged}
              for kind, count in (("core", resources.cpu_cores_per_process or 1),
                                  ("gpu", resources.gpu_cores_per_process or 0))
              if count]
    slot = {"type": "slot", "count": slots // merged, "label": "task", "with": inside}
    if nodes is None:
        if resources.exclusive_node_use:
            raise InvalidJobException("resources.exclusive_node_use cannot be said without node_count")
        return slot
    exclusive = {"exclusive": True} if resources.exclusive_node_use else {}
    return {"type": "node", "count": nodes, "with": [slot]} | exclusive


def _count(spec: JobSpec) -> dict[str, int]:
    """One task a slot; with launcher single, one in all."""
    return {"per_slot": 1} if spec.launcher == "multiple" else {"total": 1}


def _system(spec: JobSpec, environment: Mapping[str, str]) -> dict[str, Any]:
    attributes = spec.attributes
    directory = directory_of(spec)
    system: dict[str, Any] = {"duration": 0, "cwd": directory, "environment": dict(environment)}
    if attributes is not None:
        if attributes.duration is not None:
            system["duration"] = attributes.duration.total_seconds()
        system |= {key: value for key, value in (("queue", attributes.queue_name), ("bank", attributes.account))
                 if value is not None}
    if spec._name is not None:
        system["job"] = {"name": spec._name}
    options: dict[str, Any] = {}
    for side, name in (("input", "stdin"), ("output", "stdout"), ("output", "stderr")):
        path = getattr(spec, f"{name}_path")
        if path is not None:
            whole = os.path.join(directory, home(str(path)))
            options.setdefault(side, {})[name] = {"type": "file", "path": whole}
    if options:
        system["shell"] = {"options": options}
    return system


def _user(spec: JobSpec) -> dict[str, Any]:
    """The custom attributes ``mjf.KEY`` (Machine/Job Features), for a service that provides them."""
    custom = spec.attributes.custom_attributes if spec.attributes is not None else None
    features = {name[len(_FEATURES):]: value for name, value in (custom or {}).items()
                if name.lower().startswith(_FEATURES)}
    return {"user": {"mjf": features}} if features else {}


def spec_of(job: Jobspec, tasks: int, nodes: int | None = None, *, variables: dict[str, str],
            limit: bool = True) -> JobSpec:
    """The PSI/J specification of so many tasks of a job, on so many nodes where the executor has nodes.

    limit: have the executor keep the time limit as well.
    """
    even = nodes is None or tasks % nodes == 0
    resources = _shared_resources(nodes if even else None, tasks, job.cores, job.gpus or None, job.exclusive)
    duration = timedelta(seconds=job.duration) if limit and job.duration else None
    features: dict[str, object] | None = {f"mjf.{name}": value for name, value in job.features.items()} or None
    return JobSpec(
        executable=job.command[0], arguments=list(job.command[1:]), directory=job.cwd, name=job.name,
        environment={**job.environment, **variables}, stdin_path=job.streams.get("stdin"),
        stdout_path=job.streams.get("stdout"), stderr_path=job.streams.get("stderr"), resources=resources,
        attributes=JobAttributes(duration=duration, queue_name=job.queue, account=job.bank, custom_attributes=features),
        launcher="multiple" if tasks > 1 else None)


@lru_cache(maxsize=64)
def _shared_resources(nodes: int | None, processes: int, cores: int, gpus: int | None,
                      exclusive: bool) -> ResourceSpecV1:
    """Jobs alike share theirs, which nobody changes."""
    return ResourceSpecV1(node_count=nodes, process_count=processes, cpu_cores_per_process=cores,
                          gpu_cores_per_process=gpus, exclusive_node_use=exclusive)
