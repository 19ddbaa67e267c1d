"""What a job needs of the machine (PSI/J specification, ResourceSpec and ResourceSpecV1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import index
from types import NoneType
from typing import Any, SupportsIndex

from psij.exceptions import InvalidJobException, InvalidJobTypeException

__all__ = ["ResourceSpec", "ResourceSpecV1"]

_COUNTS = ("node_count", "process_count", "processes_per_node", "cpu_cores_per_process", "gpu_cores_per_process",
           "memory")
_AT_LEAST_ONE = frozenset(_COUNTS[:4])
_PLAIN = (int, NoneType, bool)


class ResourceSpec(ABC):
    """Base of all forms of resource requirements."""

    @property
    @abstractmethod
    def version(self) -> int:
        """The number of the form."""

    @staticmethod
    def get_instance(version: int) -> ResourceSpec:
        """An empty specification of that version. Raises ValueError when the version is not known (known: 1)."""
        if version == 1 and not isinstance(version, bool):
            return ResourceSpecV1()
        raise ValueError(f"Version {version!r} of resource specifications is not known (known: 1)")


class ResourceSpecV1(ResourceSpec):
    """Equal processes on equal nodes.

    Counts are whole numbers; 0 is taken for one that is not stated, and read back as None (but for
    gpu_cores_per_process and memory, of which a job may want none). memory is in bytes for the whole job. Where two or
    three of node_count, process_count and processes_per_node are given, process_count = node_count x processes_per_node
    must hold, else InvalidJobException.
    """

    def __init__(self, node_count: int | None = None, process_count: int | None = None,
                 processes_per_node: int | None = None, cpu_cores_per_process: int | None = None,
                 gpu_cores_per_process: int | None = None, exclusive_node_use: bool = False,
                 memory: int | None = None) -> None:
        self.node_count = node_count
        self.process_count = process_count
        self.processes_per_node = processes_per_node
        self.cpu_cores_per_process = cpu_cores_per_process
        self.gpu_cores_per_process = gpu_cores_per_process
        self.exclusive_node_use = exclusive_node_use
        self.memory = memory
        self._check()

    def __setattr__(self, name: str, value: object) -> None:
        if type(value) not in _PLAIN and isinstance(value, SupportsIndex):
            value = index(value)        # a whole number of NumPy
        unstated = type(value) is int and value == 0 and name in _AT_LEAST_ONE
        object.__setattr__(self, name, None if unstated else value)

    @property
    def version(self) -> int:
        """1."""
        return 1

    @property
    def computed_node_count(self) -> int:
        """Nodes, stated or following from the rest."""
        if self.node_count:
            return self.node_count
        if self.process_count and self.processes_per_node:
            return self.process_count // self.processes_per_node
        return 1

    @property
    def computed_process_count(self) -> int:
        """Processes in total, stated or following from the rest."""
        if self.process_count:
            return self.process_count
        return (self.node_count or 1) * (self.processes_per_node or 1)

    @property
    def computed_processes_per_node(self) -> int:
        """Processes on each node, stated or following from the rest."""
        if self.processes_per_node:
            return self.processes_per_node
        return (self.process_count or 1) // self.node_count if self.node_count and self.process_count else (
            self.process_count or 1)

    @property
    def memory_kb(self) -> int | None:
        """Memory of the whole job in KiB, rounded down; None when not stated."""
        return None if self.memory is None else self.memory // 1024

    def _check(self) -> None:
        """Raise InvalidJobException (also a TypeError for a wrong type) for values that make no sense."""
        for name in _COUNTS:
            _check_count(name, getattr(self, name))
        if not isinstance(self.exclusive_node_use, bool):
            raise InvalidJobTypeException("resources.exclusive_node_use must be True or False")
        nodes, processes, per_node = self.node_count, self.process_count, self.processes_per_node
        divisor = nodes or per_node
        if processes and divisor and processes % divisor:
            raise InvalidJobException(f"resources: process_count={processes} cannot be shared out evenly with "
                                      f"node_count={nodes}, processes_per_node={per_node}")
        if processes and nodes and per_node and processes != nodes * per_node:
            raise InvalidJobException(f"resources: process_count={processes} is not node_count x processes_per_node = "
                                      f"{nodes} x {per_node}")

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*_COUNTS[:5], "exclusive_node_use", "memory")}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourceSpecV1) and self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ResourceSpecV1({', '.join(f'{key}={value!r}' for key, value in self._values().items())})"


def _check_count(name: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidJobTypeException(f"resources.{name} must be a whole number, not {value!r}")
    least = 1 if name in _AT_LEAST_ONE else 0
    if value < least:
        raise InvalidJobException(f"resources.{name} must be at least {least}, not {value}")
