"""The executors and launchers that psij brings along; installed as ``psij-descriptors/core_descriptors.py``."""

from packaging.version import Version

from psij.descriptor import Descriptor

__PSI_J_EXECUTORS__ = [
    Descriptor("local", Version("0.2.0"), "psij.executors.local.LocalJobExecutor", nice_name="Local"),
    Descriptor("slurm", Version("0.2.0"), "psij.executors.batch.slurm.SlurmJobExecutor", nice_name="Slurm"),
    Descriptor("pbs", Version("0.2.0"), "psij.executors.batch.pbs.PBSJobExecutor", ["pbspro"], "PBS Pro"),
    Descriptor("pbs_classic", Version("0.2.0"), "psij.executors.batch.pbs_classic.PBSClassicJobExecutor", ["torque"],
               "PBS Classic"),
    Descriptor("lsf", Version("0.2.0"), "psij.executors.batch.lsf.LsfJobExecutor", nice_name="LSF"),
    Descriptor("nqsv", Version("0.2.0"), "psij.executors.batch.nqsv.NQSVJobExecutor", nice_name="NQSV"),
    Descriptor("sge", Version("0.2.0"), "psij.executors.batch.sge.SGEJobExecutor", ["gridengine"], "Grid Engine"),
    Descriptor("flux", Version("0.2.0"), "psij.executors.batch.flux.FluxJobExecutor", nice_name="Flux"),
    Descriptor("htcondor", Version("0.2.0"), "psij.executors.batch.htcondor.HTCondorJobExecutor", ["condor"],
               "HTCondor"),
    Descriptor("cobalt", Version("0.2.0"), "psij.executors.batch.cobalt.CobaltJobExecutor", nice_name="Cobalt"),
    Descriptor("iri", Version("0.1.0"), "psij.executors.iri.IRIJobExecutor", nice_name="IRI Facility API"),
    Descriptor("arc", Version("0.1.0"), "psij.executors.arc.ARCJobExecutor", nice_name="ARC"),
]

__PSI_J_LAUNCHERS__ = [
    Descriptor("single", Version("0.2.0"), "psij.launchers.single.SingleLauncher"),
    Descriptor("multiple", Version("0.2.0"), "psij.launchers.multiple.MultipleLauncher"),
    Descriptor("mpirun", Version("0.2.0"), "psij.launchers.mpirun.MPILauncher"),
    Descriptor("srun", Version("0.0.1"), "psij.launchers.srun.SrunLauncher"),
    Descriptor("aprun", Version("0.0.1"), "psij.launchers.aprun.AprunLauncher"),
    Descriptor("jsrun", Version("0.0.1"), "psij.launchers.jsrun.JsrunLauncher", aliases=["jrun"]),
]
