"""The executors that psij brings along. A class is imported when a program asks for it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psij.executors.batch.cobalt import CobaltJobExecutor
    from psij.executors.batch.lsf import LsfJobExecutor
    from psij.executors.batch.slurm import SlurmJobExecutor
    from psij.executors.local import LocalJobExecutor

__all__ = ["CobaltJobExecutor", "LocalJobExecutor", "LsfJobExecutor", "SlurmJobExecutor"]

_MODULES = {"CobaltJobExecutor": "batch.cobalt", "LocalJobExecutor": "local", "LsfJobExecutor": "batch.lsf",
            "SlurmJobExecutor": "batch.slurm"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
