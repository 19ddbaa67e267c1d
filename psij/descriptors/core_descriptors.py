"""The executors and launchers that psij brings along; installed as ``psij-descriptors/core_descriptors.py``."""

from packaging.version import Version

from psij.descriptor import Descriptor

__PSI_J_EXECUTORS__ = [
    Descriptor("local", Version("0.2.0"), "psij.executors.local.LocalJobExecutor", nice_name="Local"),
]

__PSI_J_LAUNCHERS__ = [
    Descriptor("single", Version("0.2.0"), "psij.launchers.single.SingleLauncher"),
    Descriptor("multiple", Version("0.2.0"), "psij.launchers.multiple.MultipleLauncher"),
    Descriptor("mpirun", Version("0.2.0"), "psij.launchers.mpirun.MPILauncher"),
    Descriptor("srun", Version("0.0.1"), "psij.launchers.srun.SrunLauncher"),
    Descriptor("aprun", Version("0.0.1"), "psij.launchers.aprun.AprunLauncher"),
    Descriptor("jsrun", Version("0.0.1"), "psij.launchers.jsrun.JsrunLauncher", aliases=["jrun"]),
]
