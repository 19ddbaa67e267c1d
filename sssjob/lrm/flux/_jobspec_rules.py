"""What is wrong with a jobspec V1, by three judges that do not agree.

``schema``: the JSON Schema of RFC 25. ``rfc``: its text, which also wants attributes.system with a duration and the
command as a list, and lets nodes be exclusive. ``flux``: what an instance of flux-core takes; some of it fails later,
when the job starts. Seen with flux-core 0.88 and with the schema, on documents that each get one place wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

Level = Literal["schema", "rfc", "flux"]
#: Vertices below one another that are looked at.
_DEPTH: Final = 32
_KEYS: Final = ("version", "resources", "tasks", "attributes")


def faults(value: object, level: Level = "rfc") -> list[str]:
    """What is wrong with a value that should be a jobspec, as ``path: message``; empty: nothing."""
    if not isinstance(value, dict):
        return ["jobspec: is no object"]
    missing = [f"jobspec: the key {key} is missing" for key in _KEYS if key not in value]
    return missing or list(_LEVELS[level](value))


def _known(vertex: dict[str, Any], path: str, *names: str) -> Iterator[str]:
    for key in vertex:
        if key not in names:
            yield f"{path}: the key {key!r} is not known"


def _whole(value: object, least: int | None = 1) -> bool:
    """A number without fraction as JSON Schema counts it: 1.0 is one."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    return number and (least is None or value >= least)     # type: ignore[operator]


# -- RFC 25
def _schema(top: dict[str, Any], *, text: bool = False) -> Iterator[str]:
    if not _whole(top["version"]) or top["version"] != 1:
        yield "version: is not 1"
    resources = top["resources"]
    if not isinstance(resources, list) or len(resources) != 1:
        yield "resources: is no list of one"
    else:
        yield from _outer(resources[0], text)
    yield from _attributes(top["attributes"], text)
    yield from _tasks(top["tasks"], text)


def _outer(vertex: object, text: bool) -> Iterator[str]:
    kind = vertex.get("type") if isinstance(vertex, dict) else None
    if kind == "node":
        assert isinstance(vertex, dict)
        more = ("exclusive",) if text else ()
        yield from _vertex(vertex, "resources[0]", "with", *more)
        inner = vertex.get("with")
        if not isinstance(inner, list) or len(inner) != 1:
            yield "resources[0].with: is no list of one slot"
        else:
            yield from _slot(inner[0], "resources[0].with[0]")
    else:
        yield from _slot(vertex, "resources[0]")


def _vertex(vertex: dict[str, Any], path: str, *more: str) -> Iterator[str]:
    yield from _known(vertex, path, "type", "count", "unit", *more)
    if not _whole(vertex.get("count")):
        yield f"{path}.count: is no whole number from 1"
    for key, kind, name in (("unit", str, "text"), ("label", str, "text"), ("exclusive", bool, "true or false")):
        if key in (*more, "unit") and key in vertex and not isinstance(vertex[key], kind):
            yield f"{path}.{key}: is not {name}"


def _slot(vertex: object, path: str) -> Iterator[str]:
    if not isinstance(vertex, dict) or vertex.get("type") != "slot":
        yield f"{path}: is no slot"
        return
    yield from _vertex(vertex, path, "with", "label", "exclusive")
    if "label" not in vertex:
        yield f"{path}: the key label is missing"
    inside = vertex.get("with")
    if not isinstance(inside, list) or not 1 <= len(inside) <= 2:
        yield f"{path}.with: is no list of cores and GPUs"
        return
    for number, inner in enumerate(inside):
        if not isinstance(inner, dict) or inner.get("type") not in ("core", "gpu"):
            yield f"{path}.with[{number}]: is neither core nor gpu"
        else:
            yield from _vertex(inner, f"{path}.with[{number}]")


def _attributes(value: object, text: bool) -> Iterator[str]:
    if value is None and not text:
        return
    if not isinstance(value, dict):
        yield "attributes: is no object"
        return
    yield from _known(value, "attributes", "system", "user")
    for key in value:
        if key in ("system", "user") and not isinstance(value[key], dict):
            yield f"attributes.{key}: is no object"
    system = value.get("system")
    if isinstance(system, dict):
        yield from _system(system)
    if text and (not isinstance(system, dict) or "duration" not in system):
        yield "attributes.system: the key duration is missing"


def _system(system: dict[str, Any]) -> Iterator[str]:
    duration = system.get("duration", 0)
    if isinstance(duration, bool) or not isinstance(duration, int | float) or not duration >= 0:
        yield "attributes.system.duration: is no number of seconds"
    if not isinstance(system.get("cwd", ""), str):
        yield "attributes.system.cwd: is no text"
    if not isinstance(system.get("environment", {}), dict):
        yield "attributes.system.environment: is no object"


def _tasks(value: object, text: bool) -> Iterator[str]:
    if not isinstance(value, list) or len(value) > 1 or (text and not value):
        yield "tasks: is no list of one"
        return
    for task in value:
        if not isinstance(task, dict):
            yield "tasks[0]: is no object"
            return
        yield from _known(task, "tasks[0]", "command", "slot", "count")
        for key in ("command", "slot", "count"):
            if key not in task:
                yield f"tasks[0]: the key {key} is missing"
        yield from _command(task.get("command", ["x"]), text)
        if not isinstance(task.get("slot", ""), str):
            yield "tasks[0].slot: is no text"
        count = task.get("count", {"total": 1})
        if not isinstance(count, dict) or len(count) != 1 or not (
                _whole(count.get("total")) or (_whole(count.get("per_slot")) and count["per_slot"] == 1)):
            yield "tasks[0].count: is neither {per_slot: 1} nor {total: N}"


def _command(value: object, text: bool) -> Iterator[str]:
    if isinstance(value, str) and not text:
        return
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        yield "tasks[0].command: is no list of texts"


def _rfc(top: dict[str, Any]) -> Iterator[str]:
    yield from _schema(top, text=True)


# -- flux-core
def _flux(top: dict[str, Any]) -> Iterator[str]:
    yield from _known(top, "jobspec", *_KEYS)
    version = top["version"]
    if isinstance(version, bool) or not isinstance(version, int) or version != 1:
        yield "version: is not 1"
    for key in ("resources", "tasks"):
        if not isinstance(top[key], list):
            yield f"{key}: is no list"
    if isinstance(top["resources"], list):
        yield from _flux_vertices(top["resources"], "resources", 0)
    for number, task in enumerate(top["tasks"] if isinstance(top["tasks"], list) else ()):
        yield from _flux_task(task, f"tasks[{number}]")
    attributes = top["attributes"]
    system = attributes.get("system") if isinstance(attributes, dict) else None
    if isinstance(attributes, dict):
        yield from _known(attributes, "attributes", "system", "user")
    if not isinstance(system, dict) or "duration" not in system:
        yield "attributes.system: is no object with a duration"
        return
    yield from _flux_dependencies(system.get("dependencies", []), "attributes.system.dependencies")
    yield from _flux_constraint(system.get("constraints", {}), "attributes.system.constraints", 0)
    if isinstance(system["duration"], bool) or not isinstance(
            system["duration"], int | float) or not (
            system["duration"] < float("inf")):
        yield "attributes.system.duration: is no number"
    if not isinstance(system.get("queue", ""), str):
        yield "attributes.system.queue: is no text"


def _flux_dependencies(value: object, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: is no list"
        return
    for number, dependency in enumerate(value):
        for key in ("scheme", "value"):
            if not isinstance(dependency, dict) or not isinstance(dependency.get(key), str):
                yield f"{path}[{number}]: is no object with the text {key}"


#: Operators of RFC 31, and whether what they hold are constraints.
_OPERATORS: Final = {"properties": False, "hostlist": False, "ranks": False, "and": True, "or": True, "not": True}


def _flux_constraint(value: object, path: str, depth: int) -> Iterator[str]:
    if not isinstance(value, dict) or depth > _DEPTH:
        yield f"{path}: is no object" if depth <= _DEPTH else f"{path}: more than {_DEPTH} levels"
        return
    for name, inner in value.items():
        if name not in _OPERATORS:
            yield f"{path}: the operator {name!r} is not known"
        elif not isinstance(inner, list):
            yield f"{path}.{name}: is no list"
        elif _OPERATORS[name]:
            for number, constraint in enumerate(inner):
                yield from _flux_constraint(constraint, f"{path}.{name}[{number}]", depth + 1)


def _flux_vertices(vertices: list[Any], path: str, depth: int) -> Iterator[str]:
    if depth > _DEPTH:
        yield f"{path}: more than {_DEPTH} levels"
        return
    for number, vertex in enumerate(vertices):
        at = f"{path}[{number}]"
        if not isinstance(vertex, dict) or not isinstance(vertex.get("type"), str) or "count" not in vertex:
            yield f"{at}: is no object with type and count"
            continue
        count = vertex["count"]
        if isinstance(count, bool) or not isinstance(count, int):
            yield f"{at}.count: is no whole number"
        elif vertex["type"] in ("node", "slot", "core") and count < 1:
            yield f"{at}.count: is less than 1"
        if vertex["type"] == "slot" and "label" not in vertex:
            yield f"{at}: the key label is missing"
        for key, kind, name in (("label", str, "text"), ("exclusive", bool, "true or false")):
            if not isinstance(vertex.get(key, kind()), kind):
                yield f"{at}.{key}: is not {name}"
        inner = vertex.get("with", [])
        if not isinstance(inner, list):
            yield f"{at}.with: is no list"
        else:
            yield from _flux_vertices(inner, f"{at}.with", depth + 1)


def _flux_task(task: object, path: str) -> Iterator[str]:
    if not isinstance(task, dict) or not {"command", "slot", "count"} <= task.keys():
        yield f"{path}: is no object with command, slot and count"
        return
    command, count = task["command"], task["count"]
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        yield f"{path}.command: is no list of texts"
    if not isinstance(task["slot"], str):
        yield f"{path}.slot: is no text"
    if not isinstance(count, dict) or len(count) != 1:
        yield f"{path}.count: has not exactly one key"
        return
    (key, number), = count.items()
    if key not in ("per_slot", "total"):
        yield f"{path}.count: the key {key!r} is not known"
    elif not _whole(number):
        yield f"{path}.count.{key}: is no whole number from 1"


_LEVELS: Final[dict[str, Callable[[dict[str, Any]], Iterator[str]]]] = {"schema": _schema, "rfc": _rfc, "flux": _flux}
