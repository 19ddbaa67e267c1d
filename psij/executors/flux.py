"""The Flux executor under the name of psij-python's module."""

from psij.executors.batch.flux import FluxJobExecutor

__all__ = ["FluxJobExecutor"]
