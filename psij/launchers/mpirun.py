"""Launcher ``mpirun``: an MPI program through ``mpirun``."""

from __future__ import annotations

from psij.launchers.script_based_launcher import ParallelLauncher

__all__ = ["MPILauncher"]


class MPILauncher(ParallelLauncher):
    """Launcher ``mpirun``: an MPI program through ``mpirun``."""

    script = "mpi_launch.sh"
    command = "mpirun"
    joined = False
