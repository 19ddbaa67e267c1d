"""Launcher ``srun``: processes started by Slurm's ``srun``."""

from __future__ import annotations

from psij.launchers.script_based_launcher import ParallelLauncher

__all__ = ["SrunLauncher"]


class SrunLauncher(ParallelLauncher):
    """Launcher ``srun``: processes started by Slurm's ``srun``."""

    script = "srun_launch.sh"
    command = "srun"
