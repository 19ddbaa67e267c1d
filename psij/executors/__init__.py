"""Executors that psij brings along."""

from psij.executors.local import LocalJobExecutor

__all__ = ["LocalJobExecutor"]
