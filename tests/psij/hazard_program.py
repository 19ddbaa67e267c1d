"""A program, given as its text, in a process that the server of ``tests.forks`` forks with its imports done."""

from __future__ import annotations

import logging.handlers
import multiprocessing.pool
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

import psij
from psij import _handlers
from psij.executors import _local_engine, _local_starter
from psij.launchers import multiple
from tests.forks import Command

__all__ = ["_handlers", "_local_engine", "_local_starter", "ended", "logging", "main", "multiple", "multiprocessing",
           "psij"]


def main() -> None:
    """Run the text as the interpreter does with ``-W error -W ignore::DeprecationWarning -c``."""
    warnings.simplefilter("ignore", DeprecationWarning)
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    text, sys.argv = sys.argv[1], ["-c", *sys.argv[2:]]
    exec(compile(text, "<string>", "exec"), module.__dict__)


def ended(folder: Path, text: str, *arguments: str) -> tuple[int, str, str]:
    """Run such a program in a folder, to its end: (exit code, output, errors)."""
    with Command([text, *arguments], folder, os.environ, words=("module", "tests.psij.hazard_program")) as running:
        out, err = running.communicate(timeout=240)
    return running.wait(), out, err
