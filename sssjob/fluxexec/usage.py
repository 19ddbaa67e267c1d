"""What a service has measured of a job, beyond the protocol: member ``usage`` in the data of its ``finish`` response.

    {"status": 0, "usage": {"cpu_seconds": 1.5, "nodes": ["n1"], "hs06_job": 12.5, "pilot": {"cores_max": 4.0}}}

RFC 32 has no such member. flux-core takes responses with members that it does not know (tried with 0.88), and nothing
of it is sent to a broker. The keys are those of the metadata of a final PSI/J status.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from sssjob.lrm.flux.errors import EXEC_LIMITS, ExecLimitError, ExecLimits, ProtocolError

__all__ = ["read_usage", "together", "usage_of"]

_LONGEST: Final = 255       # characters of the name of a node
#: Key -> how the numbers of several shells become one.
_NUMBERS: Final[Mapping[str, Callable[[Iterable[float]], float]]] = {
    "cpu_seconds": math.fsum, "suspend_seconds": max, "memory_max_bytes": max, "energy_joules": math.fsum,
    "hs06_job": math.fsum}
#: Of what a pilot said (Machine/Job Features); a waste may be negative: nothing is clamped.
_PILOT: Final = ("cores_mean", "cores_max", "kill_waste", "draining_waste")


def usage_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What the metadata of the final status of one shell have of it."""
    return {key: value for key, value in metadata.items() if key in _NUMBERS or key in ("nodes", "pilot")}


def together(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The usage of a job from that of its shells."""
    reported = [part for part in parts if part]
    if len(reported) < 2:
        return dict(reported[0]) if reported else {}
    total: dict[str, Any] = {key: how(part[key] for part in reported if key in part)
                             for key, how in _NUMBERS.items() if any(key in part for part in reported)}
    nodes = list(dict.fromkeys(node for part in reported for node in part.get("nodes", ())))
    pilots = [part["pilot"] for part in reported if part.get("pilot")]
    pilot = {key: math.fsum(p[key] for p in pilots if key in p) for key in _PILOT if any(key in p for p in pilots)}
    return total | ({"nodes": nodes} if nodes else {}) | ({"pilot": pilot} if pilot else {})


def read_usage(value: object, limits: ExecLimits = EXEC_LIMITS) -> dict[str, Any]:
    """The usage that a service states; keys that are not known are left out. Raises ProtocolError, ExecLimitError."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ProtocolError("usage is no object")
    numbers: dict[str, Any] = {key: _number(value[key], f"usage.{key}", least=0) for key in _NUMBERS if key in value}
    if "nodes" in value:
        numbers["nodes"] = _nodes(value["nodes"], limits)
    if "pilot" in value:
        if not isinstance(value["pilot"], dict):
            raise ProtocolError("usage.pilot is no object")
        numbers["pilot"] = {key: _number(value["pilot"][key], f"usage.pilot.{key}", least=None)
                         for key in _PILOT if key in value["pilot"]}
    return numbers


def _number(value: object, what: str, least: float | None) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1 << 62 or (
            least is not None and value < least):
        raise ProtocolError(f"{what} is no number in range")
    return value


def _nodes(value: object, limits: ExecLimits) -> list[str]:
    if not isinstance(value, list) or not all(
            isinstance(name, str) and 0 < len(name) <= _LONGEST and name.isprintable() for name in value):
        raise ProtocolError("usage.nodes is no list of names")
    if len(value) > limits.ranks:
        raise ExecLimitError(f"usage has {len(value)} nodes", "ranks")
    return value
