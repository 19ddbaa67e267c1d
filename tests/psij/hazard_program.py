"""A program, given as its text, in a process that the server of ``tests.forks`` forks with its imports done."""

from __future__ import annotations

import logging.handlers
import multiprocessing.pool
import sys
import warnings
from types import ModuleType

import psij
from psij import _handlers
from psij.executors import _local_engine, _local_starter
from psij.launchers import multiple

__all__ = ["_handlers", "_local_engine", "_local_starter", "logging", "main", "multiple", "multiprocessing", "psij"]


def main() -> None:
    """Run the text as the interpreter does with ``-W error -W ignore::DeprecationWarning -c``."""
    warnings.simplefilter("ignore", DeprecationWarning)
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    text, sys.argv = sys.argv[1], ["-c"]
    exec(compile(text, "<string>", "exec"), module.__dict__)
