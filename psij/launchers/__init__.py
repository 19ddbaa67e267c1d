"""A launcher starts the processes of a job: one, several, or those of an MPI program."""

from psij.launchers.aprun import AprunLauncher
from psij.launchers.jsrun import JsrunLauncher
from psij.launchers.mpirun import MPILauncher
from psij.launchers.multiple import MultipleLauncher
from psij.launchers.single import SingleLauncher
from psij.launchers.srun import SrunLauncher

__all__ = ["AprunLauncher", "JsrunLauncher", "MPILauncher", "MultipleLauncher", "SingleLauncher", "SrunLauncher"]
