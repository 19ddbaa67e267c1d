"""Flux jobspec V1 and R as far as running a job needs them, and a jobspec as a PSI/J specification.

Reading is strict about what is run (command, counts, streams) and silent about what is not (unknown attributes);
``faults`` judges a whole jobspec. Sources: RFC 14 and 25 (jobspec), RFC 20 (R). Not here: constraints and dependencies,
which are over when a job starts (the format ``flux-jobspec`` has them).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from sssjob.errors import LexicalError
from sssjob.lrm.flux._jobspec_rules import Level, faults
from sssjob.lrm.flux.errors import EXEC_LIMITS, ExecLimitError, JobspecError
from sssjob.lrm.idset import Idset

__all__ = ["Jobspec", "Layout", "Level", "Resources", "faults", "read_jobspec", "read_layout", "read_r", "read_task",
           "shares", "write_r"]


@dataclass(frozen=True, slots=True)
class Resources:
    """R: what was allocated. starttime, expiration: seconds since the epoch, 0 when not stated."""

    ranks: Idset
    starttime: float = 0.0
    expiration: float = 0.0


@dataclass(frozen=True, slots=True)
class Jobspec:
    """duration: seconds, 0 for none. simulate: attributes.user.simulate, for the simulator. features:
    attributes.user.mjf, keys of Machine/Job Features and what the job says of them."""

    command: tuple[str, ...]
    tasks: int = 1
    cores: int = 1              # of a task's slot
    gpus: int = 0
    nodes: int | None = None
    exclusive: bool = False
    duration: float = 0.0
    cwd: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    name: str | None = None
    queue: str | None = None
    bank: str | None = None
    streams: dict[str, str] = field(default_factory=dict)
    simulate: dict[str, Any] = field(default_factory=dict)
    features: dict[str, str | int | float] = field(default_factory=dict)


def read_r(value: object) -> Resources:
    """R, version 1. Raises JobspecError."""
    top = _object(value, "R")
    if top.get("version") != 1 or isinstance(top.get("version"), bool):
        raise JobspecError("R has not version 1")
    execution = _object(top.get("execution"), "R execution")
    ranks = Idset()
    for entry in _list(execution.get("R_lite"), "R_lite"):
        text = _object(entry, "R_lite entry").get("rank")
        try:
            ranks |= Idset.parse(_text(text, "rank"))
        except LexicalError as error:
            raise JobspecError(f"R_lite rank: {error}") from None
    if not ranks:
        raise JobspecError("R has no ranks")
    if ranks.count > EXEC_LIMITS.ranks:
        raise ExecLimitError(f"R has {ranks.count} ranks", "ranks")
    return Resources(ranks, _seconds(execution, "starttime"), _seconds(execution, "expiration"))


def write_r(ranks: Idset, cores: int = 1, starttime: float = 0.0, expiration: float = 0.0) -> dict[str, Any]:
    """R for these ranks with so many cores each."""
    core = "0" if cores == 1 else f"0-{cores - 1}"
    return {"version": 1, "execution": {"R_lite": [{"rank": str(ranks), "children": {"core": core}}],
                                        "starttime": starttime, "expiration": expiration}}


def read_jobspec(value: object) -> Jobspec:
    """A jobspec, version 1. Raises JobspecError."""
    top = _object(value, "jobspec")
    if top.get("version") != 1 or isinstance(top.get("version"), bool):
        raise JobspecError("jobspec has not version 1")
    attributes = _object(top.get("attributes") or {}, "attributes")
    system = _object(attributes.get("system") or {}, "attributes.system")
    command, count = read_task(top.get("tasks"))
    layout = read_layout(top.get("resources"))
    if not layout.cores:
        raise JobspecError("a slot without core")
    tasks = count["total"] if "total" in count else layout.total * count.get("per_slot", 1)
    if tasks > EXEC_LIMITS.tasks:
        raise ExecLimitError(f"jobspec has {tasks} tasks", "tasks")
    shell = _object(system.get("shell") or {}, "shell")
    user = _object(attributes.get("user") or {}, "attributes.user")
    return Jobspec(
        command, tasks, layout.cores, layout.gpus, layout.nodes, layout.exclusive, _seconds(system, "duration"),
        _maybe(system, "cwd"),
        _environment(system.get("environment")), _maybe(_object(system.get("job") or {}, "job"), "name"),
        _maybe(system, "queue"), _maybe(system, "bank") or _maybe(system, "project"),
        _streams(_object(shell.get("options") or {}, "shell.options")),
        _object(user.get("simulate") or {}, "attributes.user.simulate"), _features(user.get("mjf")))


def read_task(value: object) -> tuple[tuple[str, ...], dict[str, int]]:
    """(command, count by kind) of the key ``tasks``. Raises JobspecError."""
    tasks = _list(value, "tasks")
    if len(tasks) != 1:
        raise JobspecError("tasks has not exactly one entry")
    task = _object(tasks[0], "task")
    command = tuple(_text(word, "command") for word in _list(task.get("command"), "command"))
    if not command or not command[0]:
        raise JobspecError("command is empty")
    count = _object(task.get("count") or {}, "count")
    return command, {key: _count(count[key], f"count.{key}") for key in ("per_slot", "total") if key in count}


@dataclass(frozen=True, slots=True)
class Layout:
    """The resources of a jobspec. slots: of each node where there are nodes, else in all; cores, gpus: of a slot."""

    slots: int = 1
    cores: int = 1
    gpus: int = 0
    nodes: int | None = None
    exclusive: bool = False
    label: str = "task"

    @property
    def total(self) -> int:
        """Slots in all."""
        return self.slots * (self.nodes or 1)

    def vertices(self) -> list[dict[str, Any]]:
        """As the key ``resources`` holds them."""
        inside = [{"type": kind, "count": count} for kind, count in (("core", self.cores), ("gpu", self.gpus)) if count]
        slot = {"type": "slot", "count": self.slots, "with": inside, "label": self.label}
        if self.nodes is None:
            return [slot]
        return [{"type": "node", "count": self.nodes, "with": [slot]} | ({"exclusive": True} if self.exclusive else {})]


def read_layout(value: object) -> Layout:
    """The resources of a jobspec: a slot, or a node with a slot in it. Raises JobspecError for all else."""
    nodes, exclusive = None, False
    vertices = _list(value, "resources")
    for _ in range(2):
        if len(vertices) != 1:
            raise JobspecError("resources is no single node or slot")
        vertex = _object(vertices[0], "resource")
        if vertex.get("type") == "slot":
            held = _inside(vertex.get("with"))
            return Layout(_count(vertex.get("count"), "count"), held.get("core", 0), held.get("gpu", 0), nodes,
                          exclusive, _text(vertex.get("label", "task"), "label"))
        if vertex.get("type") != "node" or nodes is not None:
            break
        nodes, exclusive = _count(vertex.get("count"), "count"), vertex.get("exclusive") is True
        vertices = _list(vertex.get("with"), "with")
    raise JobspecError("resources is no slot, and no node with a slot in it")


def _inside(value: object) -> dict[str, int]:
    """What a slot has, by type."""
    counts: dict[str, int] = {}
    for item in _list(value, "with"):
        vertex = _object(item, "resource")
        kind, count = vertex.get("type"), vertex.get("count")
        if kind == "gpu" and count == 0:
            continue
        counts[_text(kind, "type")] = _count(count, "count")
    return counts


def _environment(value: object) -> dict[str, str]:
    """Variables; null stands for one that is not set."""
    members = _object(value or {}, "environment")
    for name in members:
        if not name or "=" in _text(name, "environment"):
            raise JobspecError(f"environment: {name!a:.60} is no name")
    return {name: _text(text, f"environment {name}") for name, text in members.items() if text is not None}


def _features(value: object) -> dict[str, str | int | float]:
    """Texts and numbers by key; whether they are right is the provider's to say."""
    members = _object(value or {}, "attributes.user.mjf")
    for name, stated in members.items():
        if not isinstance(stated, str | int | float) or isinstance(stated, bool):
            raise JobspecError(f"attributes.user.mjf: {name!a:.60} is no text and no number")
    return members


def _streams(options: dict[str, Any]) -> dict[str, str]:
    """stdin, stdout and stderr that go from or to files."""
    paths: dict[str, str] = {}
    if not ("input" in options or "output" in options):
        return paths
    for side, name in (("input", "stdin"), ("output", "stdout"), ("output", "stderr")):
        stream = _object(_object(options.get(side) or {}, side).get(name) or {}, name)
        if stream.get("type") == "file":
            paths[name] = _text(stream.get("path"), f"{name} path")
    return paths


def shares(tasks: int, ranks: Idset) -> list[tuple[Idset, int]]:
    """(rank, tasks on it) for every rank that gets a task, as even as can be."""
    count = ranks.count
    each = ((Idset(((rank, rank),)), tasks * (n + 1) // count - tasks * n // count) for n, rank in enumerate(ranks))
    return [(rank, share) for rank, share in each if share]


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise JobspecError(f"{what} is no object")
    return value


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise JobspecError(f"{what} is no list")
    return value


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise JobspecError(f"{what} is no text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise JobspecError(f"{what} is no text in Unicode") from None
    return value


def _maybe(data: dict[str, Any], key: str) -> str | None:
    return None if data.get(key) is None else _text(data[key], key)


def _count(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 31:
        raise JobspecError(f"{what} is no whole number from 1")
    return value


def _seconds(data: dict[str, Any], key: str) -> float:
    value = data.get(key) or 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 40:
        raise JobspecError(f"{key} is no number of seconds")
    return float(value) if math.isfinite(value) else 0.0
