"""Launcher ``multiple``: copies of the executable side by side on this machine."""

from __future__ import annotations

from psij.launchers.script_based_launcher import ParallelLauncher

__all__ = ["MultipleLauncher"]


class MultipleLauncher(ParallelLauncher):
    """Launcher ``multiple``: copies of the executable side by side on this machine."""

    script = "multi_launch.sh"
