"""What a running job finds: the variables and commands of each resource manager, by meaning.

One ``Facts`` a dialect; the script writers name no variable of a resource manager anywhere else. A meaning is a word
such as ``job_id``; two variables of one meaning hold the same thing. A dialect of a third party brings its own in
``Dialect.body``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

__all__ = ["FACTS", "Facts", "Given"]


@dataclass(frozen=True, slots=True)
class Given:
    """How a job comes by a fact.

    text: shell text that may stand between double quotes. needs: the variable that must be there for it (empty: none);
    none: the value of that variable that says that there is nothing. top: true only before the first command; array:
    only in an array. close: in which way it is not quite the same (empty: it is the same).
    """

    text: str
    needs: str = ""
    none: str = ""
    top: bool = False
    array: bool = False
    close: str = ""

    @property
    def name(self) -> str:
        """The variable that it simply is, or nothing."""
        inner = self.text[2:-1]
        return inner if self.text == f"${{{inner}}}" and inner.isidentifier() else ""


@dataclass(frozen=True, eq=False)
class Facts:
    """A dialect.

    variables: name -> meaning, the first of a meaning is the one to use; with an empty meaning it is the dialect's
    alone. prefixes: any other name that begins so is the dialect's alone. gives: what is said otherwise than by a
    variable. absent: what a variable holds where there is nothing to say. constants: variables that are the same in
    every job. values: words that they hold and that look like names. no_index: what it fills in for the index of an
    array in the file names of a job that is none, where no call can make it one. asked: meanings that are set only
    where the job asks for them. commands: command, or its first two words -> what it does; words: what is done ->
    command. hosts, slots: a command that prints a line a node, and one a task or slot. counts: what a line of slots
    is. unique: whether each element of an array has an id of its own. phrases: what is said to other programs, and
    holds only here -> what it does. codes: exit codes of a script that say more than that it failed -> what they do.
    passes: the submit command passes words behind the script on to it.
    """

    name: str
    title: str
    prefixes: tuple[str, ...]
    variables: Mapping[str, str]
    commands: Mapping[str, str]
    words: Mapping[str, str]
    gives: Mapping[str, Given] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    values: tuple[str, ...] = ()
    no_index: str = ""
    asked: tuple[str, ...] = ()
    hosts: str = ""
    slots: str = ""
    hosts_need: str = ""
    counts: Literal["tasks", "slots"] = "slots"
    unique: bool = False
    phrases: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)
    passes: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All that a body may use of it: beginnings of variables, variables that begin otherwise, commands, phrases."""
        variables = [n for n in (*self.variables, *self.constants) if not self.own(n)]
        return (*self.prefixes, *variables, *dict.fromkeys(c.partition(" ")[0] for c in self.commands), *self.phrases)

    def in_text(self, text: str) -> bool:
        """Whether a text may use anything of it; quick, and sometimes wrongly true."""
        for name in self.names:         # noqa: SIM110   any() would ask a generator for each of them
            if name in text:
                return True
        return False

    def own(self, name: str) -> bool:
        """Whether a name tells by itself whose it is."""
        return name.startswith(self.prefixes)


def _commands(text: str, **acts: str) -> dict[str, str]:
    """Commands that only the dialect has, and those that do something which others do too."""
    return dict.fromkeys(text.split(), "") | {command.replace("__", " "): act for command, act in acts.items()}


def _phrases(hydra: str, component: str = "") -> dict[str, str]:
    """What tells an mpirun which manager starts its tasks: Hydra's options and variables of Intel MPI (Using the Hydra
    Process Manager; Intel MPI reference), components plm and ras of Open MPI."""
    words = [f"-{option} {hydra}" for option in ("bootstrap", "launcher", "rmk")]
    words += [f"I_MPI_HYDRA_{name}={hydra}" for name in ("BOOTSTRAP", "RMK")]
    words += [f"mca {kind} {component}" for kind in ("plm", "ras") if component]
    return dict.fromkeys(words, "tells mpirun how tasks are started")


#: PBS_O_LOGNAME and SGE_O_LOGNAME are what the submitter's LOGNAME says, which may be nothing (seen).
_USER: Final = Given("$(id -un)")

#: sbatch(1) of 22.05, section OUTPUT ENVIRONMENT VARIABLES; SLURM_NTASKS is set only where tasks are asked for (seen).
_SLURM: Final = Facts(
    "slurm", "Slurm", ("SLURM_", "SBATCH_", "SLURMD_"),
    {"SLURM_JOB_ID": "job_id", "SLURM_JOBID": "job_id", "SLURM_JOB_NAME": "job_name",
     "SLURM_SUBMIT_DIR": "submit_dir", "SLURM_SUBMIT_HOST": "submit_host", "SLURM_JOB_USER": "user",
     "SLURM_JOB_UID": "uid", "SLURMD_NODENAME": "host", "SLURM_JOB_PARTITION": "queue",
     "SLURM_JOB_ACCOUNT": "account", "SLURM_JOB_NODELIST": "node_list", "SLURM_NODELIST": "node_list",
     "SLURM_JOB_NUM_NODES": "nodes", "SLURM_NNODES": "nodes", "SLURM_NTASKS": "tasks", "SLURM_NPROCS": "tasks",
     "SLURM_NTASKS_PER_NODE": "tasks_per_node", "SLURM_TASKS_PER_NODE": "task_map",
     "SLURM_CPUS_PER_TASK": "cpus_per_task", "SLURM_CPUS_ON_NODE": "cpus_on_node",
     "SLURM_ARRAY_JOB_ID": "array_id", "SLURM_ARRAY_TASK_ID": "array_index", "SLURM_ARRAY_TASK_MIN": "array_first",
     "SLURM_ARRAY_TASK_MAX": "array_last", "SLURM_ARRAY_TASK_STEP": "array_step",
     "SLURM_ARRAY_TASK_COUNT": "array_count", "SLURM_MEM_PER_NODE": "memory_per_node",
     "SLURM_MEM_PER_CPU": "memory_per_cpu", "SLURM_NODEID": "node_rank", "SLURM_RESTART_COUNT": "restarts",
     "SLURM_JOB_GPUS": "gpu_list", "SLURM_GPUS": "gpus", "SLURM_GPUS_PER_NODE": "gpus_per_node",
     "SLURM_TMPDIR": "site_scratch", "SLURM_GPUS_PER_TASK": "gpus_per_task", "SLURM_GPUS_ON_NODE": "gpus_on_node"},
    _commands("salloc sacct sacctmgr sattach sbcast sgather scontrol scrontab sdiag sinfo sprio squeue sreport "
              "sstat sshare strigger seff sview smap", sbatch="submit", srun="launch", ibrun="launch", scancel="cancel",
              scontrol__hold="hold", scontrol__release="release", scontrol__show="hosts"),
    {"cancel": "scancel", "hold": "scontrol hold", "release": "scontrol release", "launch": "srun"},
    {"restarts": Given("${SLURM_RESTART_COUNT}", "SLURM_RESTART_COUNT", close="it counts how often"),
     "gpu_list": Given("${SLURM_JOB_GPUS}", "SLURM_JOB_GPUS", close="it numbers the devices of the node")},
    asked=("tasks", "tasks_per_node", "cpus_per_task", "memory_per_node", "memory_per_cpu", "gpus", "gpus_per_node",
           "gpus_per_task"),
    hosts='scontrol show hostnames "$SLURM_JOB_NODELIST"', hosts_need="SLURM_JOB_NODELIST",
    slots='scontrol show hostnames "$SLURM_JOB_NODELIST" | awk -v counts="$SLURM_TASKS_PER_NODE" \'\n'
          '    BEGIN {\n'
          '        n = split(counts, part, ",")\n'
          '        for (i = 1; i <= n; i++) {\n'
          '            times = 1\n'
          '            if (match(part[i], /\\(x[0-9]+\\)/)) times = substr(part[i], RSTART + 2, RLENGTH - 3)\n'
          '            for (j = 0; j < times; j++) count[++nodes] = part[i] + 0\n'
          '        }\n'
          '    }\n'
          '    { for (j = 0; j < count[NR]; j++) print }\'',
    counts="tasks", unique=True, phrases=_phrases("slurm", "slurm"), passes=True)

_PBS_VARIABLES: Final = {
    "PBS_JOBID": "job_id", "PBS_JOBNAME": "job_name", "PBS_O_WORKDIR": "submit_dir", "PBS_O_HOST": "submit_host",
    "PBS_O_HOME": "home", "PBS_O_LOGNAME": "user", "PBS_QUEUE": "queue", "PBS_O_QUEUE": "queue",
    "PBS_NODEFILE": "slot_file", "PBS_O_PATH": "", "PBS_O_SHELL": "", "PBS_O_LANG": "", "PBS_O_MAIL": "",
    "PBS_O_SYSTEM": "", "PBS_O_TZ": "", "PBS_NODENUM": "node_rank", "PBS_TASKNUM": "",
    "PBS_JOBCOOKIE": "", "PBS_MOMPORT": "",
}
_PBS_COMMANDS: Final = _commands(
    "qalter qmove qmsg qorder qrerun qselect qsig qstat pbsdsh pbsnodes pbs_tmrsh tracejob",
    qsub="submit", qdel="cancel", qhold="hold", qrls="release", aprun="launch")
_Q_WORDS: Final = {"cancel": "qdel", "hold": "qhold", "release": "qrls", "launch": "mpirun"}
#: Moab's commands, which stand in scripts for Torque.
_MOAB: Final = _commands("checkjob mjobctl showq showstart", msub="submit", canceljob="cancel")
#: What a directory of the job's own is called where the manager makes one.
_SCRATCH: Final = Given("${TMPDIR}", "TMPDIR")
_PBS_NUMBER: Final = "${PBS_JOBID%%[!0-9]*}"    # of 123.server, 123[4].server
_PBS_ID: Final = Given(_PBS_NUMBER, "PBS_JOBID")
_PBS_HOSTS: Final = "awk '!seen[$0]++' \"$PBS_NODEFILE\""

#: What PBS_ENVIRONMENT holds in a job with a script, and in one with a terminal.
_PBS_VALUES: Final = "PBS_BATCH", "PBS_INTERACTIVE"

#: qsub(1B) of PBS Pro, section ENVIRONMENT VARIABLES; pbs_mom of OpenPBS 23.06.
_PBSPRO: Final = Facts(
    "pbspro", "PBS Pro", ("PBS_",),
    _PBS_VARIABLES | {"PBS_ARRAY_INDEX": "array_index", "PBS_ARRAY_ID": "array_id", "PBS_JOBDIR": "",
                      "PBS_ACCOUNT": "account", "PBS_TMPDIR": "", "NCPUS": "cpus_on_node",
                      "TMPDIR": "scratch"},
    _PBS_COMMANDS, _Q_WORDS,
    {"job_id": _PBS_ID, "user": _USER, "array_id": Given(_PBS_NUMBER, "PBS_ARRAY_INDEX"), "scratch": _SCRATCH},
    constants={"PBS_ENVIRONMENT": "PBS_BATCH"}, values=_PBS_VALUES, hosts=_PBS_HOSTS, slots='cat "$PBS_NODEFILE"',
    hosts_need="PBS_NODEFILE", counts="tasks", phrases=_phrases("pbs", "tm"))

#: qsub(1B) of Torque 6.1, its server and its pbs_mom. The name of an element of an array carries its index.
_TORQUE: Final = Facts(
    "torque", "Torque", ("PBS_",),
    _PBS_VARIABLES | {"PBS_ARRAYID": "array_index", "PBS_NUM_NODES": "nodes", "PBS_NP": "tasks",
                      "PBS_NUM_PPN": "tasks_per_node", "PBS_WALLTIME": "walltime", "PBS_VNODENUM": "",
                      "PBS_GPUFILE": "", "PBS_O_INITDIR": "", "TMPDIR": "scratch"},
    _PBS_COMMANDS | _MOAB, _Q_WORDS,
    {"job_id": _PBS_ID, "user": _USER, "array_id": Given(_PBS_NUMBER, "PBS_ARRAYID"), "scratch": _SCRATCH,
     "array_job_name": Given("${PBS_JOBNAME%-$PBS_ARRAYID}", "PBS_ARRAYID"),
     "cpus_on_node": Given("${PBS_NUM_PPN}", "PBS_NUM_PPN")},
    constants={"PBS_ENVIRONMENT": "PBS_BATCH"}, values=_PBS_VALUES, hosts=_PBS_HOSTS, slots='cat "$PBS_NODEFILE"',
    hosts_need="PBS_NODEFILE", phrases=_phrases("pbs", "tm"))

#: LSF reference, Environment variables set for job execution. Jobs that are no element have index 0; the name of an
#: element carries its index. A slot is a task, whose processors affinity[core(n)] gives.
_LSF: Final = Facts(
    "lsf", "LSF", ("LSB_", "LS_", "LSF_"),
    {"LSB_JOBID": "job_id", "LSB_JOBNAME": "element_name", "LS_SUBCWD": "submit_dir", "LSB_SUB_HOST": "submit_host",
     "LSB_SUB_USER": "user", "LSB_QUEUE": "queue", "LSB_PROJECT_NAME": "account", "LSB_HOSTS": "slot_hosts",
     "LSB_MCPU_HOSTS": "host_counts", "LSB_DJOB_HOSTFILE": "slot_file", "LSB_DJOB_NUMPROC": "tasks",
     "LSB_MAX_NUM_PROCESSORS": "tasks", "LSB_BATCH_JID": "element_id",
     "LSB_JOBINDEX": "array_index", "LSB_JOBINDEX_END": "array_last", "LSB_JOBINDEX_STEP": "array_step"},
    _commands("bjobs bpeek bhist bacct bhosts bqueues bmod bpost bread brequeue brun bswitch lsload lshosts lsrun "
              "lsgrun blaunch", bsub="submit", bkill="cancel", bstop="hold", bresume="release", jsrun="launch",
              lrun="launch", **{"mpirun.lsf": "launch"}),
    {"cancel": "bkill", "hold": "bstop", "release": "bresume", "launch": "mpirun"},
    {"job_name": Given("${LSB_JOBNAME%%[[]*}", "LSB_JOBNAME"), "array_id": Given("${LSB_JOBID}", "LSB_JOBINDEX", "0")},
    {"LSB_JOBINDEX": "0"},
    hosts="printf '%s\\n' \"$LSB_MCPU_HOSTS\" | awk '{ for (i = 1; i < NF; i += 2) print $i }'",
    slots="printf '%s\\n' \"$LSB_MCPU_HOSTS\" | "
          "awk '{ for (i = 1; i < NF; i += 2) for (j = 0; j < $(i + 1); j++) print $i }'",
    hosts_need="LSB_MCPU_HOSTS", counts="tasks", phrases=_phrases("lsf", "lsf"))

#: qsub(1) of Grid Engine 8.1.9, section ENVIRONMENTAL VARIABLES; PE_HOSTFILE is there in parallel jobs only, and
#: SGE_ACCOUNT holds the word of -A, not the project.
_SGE: Final = Facts(
    "sge", "Grid Engine", ("SGE_",),
    {"JOB_ID": "job_id", "JOB_NAME": "job_name", "SGE_O_WORKDIR": "submit_dir", "SGE_O_HOST": "submit_host",
     "SGE_O_HOME": "home", "SGE_O_LOGNAME": "user", "QUEUE": "queue", "SGE_ACCOUNT": "",
     "PE_HOSTFILE": "pe_file", "NHOSTS": "nodes", "NSLOTS": "tasks", "SGE_TASK_ID": "array_index",
     "SGE_TASK_FIRST": "array_first", "SGE_TASK_LAST": "array_last", "SGE_TASK_STEPSIZE": "array_step",
     "REQUEST": "job_name", "NQUEUES": "", "RESTARTED": "restarts", "PE": "", "TMPDIR": "scratch", "TMP": "scratch"},
    _commands("qalter qacct qconf qhost qlogin qmod qmon qping qquota qresub qrsh qselect qsh qstat qtcsh",
              qsub="submit", qdel="cancel", qhold="hold", qrls="release", ibrun="launch"),
    _Q_WORDS, {"user": _USER, "array_id": Given("${JOB_ID}", "SGE_TASK_ID", "undefined"), "scratch": _SCRATCH,
               "cpus_on_node": Given("${NSLOTS}", "NSLOTS", close="it counts the slots of all hosts"),
               "restarts": Given("${RESTARTED}", "RESTARTED", "0", close="it says only that it was started again")},
    dict.fromkeys(("SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE"), "undefined")
    | {"RESTARTED": "0"},
    {"ENVIRONMENT": "BATCH"},
    hosts="if [ -n \"${PE_HOSTFILE:-}\" ]; then awk '{ print $1 }' \"$PE_HOSTFILE\"; else hostname; fi",
    slots="if [ -n \"${PE_HOSTFILE:-}\" ]; then "
          "awk '{ for (i = 0; i < $2; i++) print $1 }' \"$PE_HOSTFILE\"; else hostname; fi",
    hosts_need="JOB_ID", phrases=_phrases("sge", "gridengine") | dict.fromkeys(
        ("$TMPDIR/machines", "${TMPDIR}/machines"), "is the list of hosts that a parallel environment for MPI makes"),
    codes={"99": "has the job run again", "100": "puts the job into the error state"},      # sge_diagnostics(1)
    passes=True)

_UNSAID: Final = "scripts use it, but the manual does not name it"
#: qsub(1) of Cobalt. A job starts in the directory where it was submitted. Name, project and queue are seen in public
#: scripts alone.
_COBALT: Final = Facts(
    "cobalt", "Cobalt", ("COBALT_",),
    {"COBALT_JOBID": "job_id", "COBALT_NODEFILE": "node_file", "COBALT_JOBSIZE": "nodes", "COBALT_PARTSIZE": "nodes",
     "COBALT_JOBNAME": "job_name", "COBALT_PROJECT": "account", "COBALT_QUEUE": "queue",
     "COBALT_PARTNAME": "", "COBALT_RESID": "", "COBALT_STARTTIME": "", "COBALT_ENDTIME": ""},
    _commands("cqsub cqstat cqdel cqwait qalter qmove qselect qstat nodelist partlist cobalt-mpirun",
              qsub="submit", qdel="cancel", qhold="hold", qrls="release", aprun="launch", runjob="launch"),
    _Q_WORDS | {"launch": "aprun"},
    {"submit_dir": Given("${PWD}", top=True), "job_name": Given("${COBALT_JOBNAME}", "COBALT_JOBNAME", close=_UNSAID),
     "account": Given("${COBALT_PROJECT}", "COBALT_PROJECT", close=_UNSAID),
     "queue": Given("${COBALT_QUEUE}", "COBALT_QUEUE", close=_UNSAID)},
    hosts='cat "$COBALT_NODEFILE"', hosts_need="COBALT_NODEFILE", phrases=_phrases("cobalt"), passes=True)

_AD: Final = "$(sed -n 's/^{} = //p' \"$_CONDOR_JOB_AD\")"
#: HTCondor manual, Environment variables for running jobs: most of it stands in the file of the job's ad.
_HTCONDOR: Final = Facts(
    "htcondor", "HTCondor", ("_CONDOR_",), {"_CONDOR_SCRATCH_DIR": "scratch", "_CONDOR_AssignedGPUs": "gpu_list"},
    _commands("condor_q condor_history condor_status condor_qedit condor_ssh_to_job condor_chirp condor_run "
              "condor_wait", condor_submit="submit", condor_rm="cancel", condor_hold="hold", condor_release="release"),
    {"cancel": "condor_rm", "hold": "condor_hold", "release": "condor_release", "launch": "mpirun"},
    {"job_id": Given(_AD.format("ClusterId"), "_CONDOR_JOB_AD"),
     "array_id": Given(_AD.format("ClusterId"), "_CONDOR_JOB_AD", array=True),
     "array_index": Given(_AD.format("ProcId"), "_CONDOR_JOB_AD", array=True, close="it counts from 0"),
     "gpu_list": Given("${CUDA_VISIBLE_DEVICES}", "CUDA_VISIBLE_DEVICES", close="it names devices as CUDA does"),
     "submit_dir": Given("$(sed -n 's/^Iwd = \"\\(.*\\)\"$/\\1/p' \"$_CONDOR_JOB_AD\")", "_CONDOR_JOB_AD"),
     "cpus_on_node": Given(_AD.format("RequestCpus"), "_CONDOR_JOB_AD")}, no_index="0", passes=True)

#: flux-environment(7): the batch script is the initial program of an instance of its own; FLUX_JOB_ID and the like are
#: unset there, and commands tell; it has a broker on each node (flux-broker-attributes(7), size). The id is given as
#: the number that other managers have, for scripts compute with it (a port); getattr prints its short form.
_FLUX: Final = Facts(
    "flux", "Flux", ("FLUX_",),
    {"FLUX_JOB_CC": ""},
    _commands("flux", flux__batch="submit", flux__run="launch", flux__cancel="cancel"),
    {"cancel": "flux cancel", "launch": "flux run"},
    {"job_id": Given("$(flux job id --to=dec $(flux getattr jobid))", "FLUX_URI"),
     "nodes": Given("$(flux getattr size)", "FLUX_URI"),
     "node_list": Given("$(flux getattr hostlist)", "FLUX_URI"),
     "submit_dir": Given("${PWD}", top=True)},
    hosts="flux hostlist -e local | tr ' ' '\\n'", hosts_need="FLUX_URI", counts="tasks", unique=True, passes=True)

FACTS: Final[dict[str, Facts]] = {
    facts.name: facts for facts in (_SLURM, _PBSPRO, _TORQUE, _LSF, _SGE, _COBALT, _HTCONDOR, _FLUX)}
