"""Launcher ``aprun``: processes started by Cray ALPS's ``aprun``."""

from __future__ import annotations

from psij.launchers.script_based_launcher import ParallelLauncher

__all__ = ["AprunLauncher"]


class AprunLauncher(ParallelLauncher):
    """Launcher ``aprun``: processes started by Cray ALPS's ``aprun``."""

    script = "aprun_launch.sh"
    command = "aprun"
    joined = False
