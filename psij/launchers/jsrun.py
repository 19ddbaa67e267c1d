"""Launcher ``jsrun``: processes started by LSF's ``jsrun``."""

from __future__ import annotations

from psij.launchers.script_based_launcher import ParallelLauncher

__all__ = ["JsrunLauncher"]


class JsrunLauncher(ParallelLauncher):
    """Launcher ``jsrun``: processes started by LSF's ``jsrun``."""

    script = "jsrun_launch.sh"
    command = "jsrun"
