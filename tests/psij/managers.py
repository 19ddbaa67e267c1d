"""The resource managers of the batch executors, a row each: the tests that concern all of them run over this table.

Texts are what a manager says, or is taken to say: where they come from stands in the tests of its own file.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from psij import JobAttributes, ResourceSpecV1
from psij.executors.batch.cobalt import CobaltJobExecutor
from psij.executors.batch.flux import FluxJobExecutor
from psij.executors.batch.htcondor import HTCondorJobExecutor
from psij.executors.batch.lrm import LrmExecutor
from psij.executors.batch.lsf import LsfJobExecutor
from psij.executors.batch.nqsv import NQSVJobExecutor
from psij.executors.batch.pbs import PBSJobExecutor
from psij.executors.batch.pbs_classic import PBSClassicJobExecutor
from psij.executors.batch.sge import SGEJobExecutor
from psij.executors.batch.slurm import SlurmJobExecutor
from sssjob.templates.quoting import Directive, bsub, cobalt, condor, flux, nqsv, pbs, sbatch, sge
from tests.fakes import cobalt as fake_cobalt
from tests.fakes import flux as fake_flux
from tests.fakes import htcondor as fake_htcondor
from tests.fakes import lsf as fake_lsf
from tests.fakes import nqsv as fake_nqsv
from tests.fakes import pbs as fake_pbs
from tests.fakes import pbs_classic as fake_pbs_classic
from tests.fakes import sge as fake_sge
from tests.fakes import slurm as fake_slurm
from tests.fakes.lab import Record

__all__ = ["MANAGERS", "Canceling", "Limit", "Manager", "Script", "Submitting", "Whole"]


@dataclass(frozen=True, slots=True)
class Submitting:
    """A submit command.

    unknown: a pattern of the stand-in's own refusal of the attributes ``bad``. refused: what is said to a job that will
    never be taken; later: to one that may be when it is tried again; full: to one for which there is no room; unsaid:
    when it is not known whether it was. ids: answers and the id in each; no_ids: answers in which there is none.
    """

    command: str
    unknown: str
    refused: tuple[str, ...]
    later: tuple[str, ...]
    full: tuple[str, ...]
    unsaid: str
    ids: Mapping[str, str]
    no_ids: tuple[str, ...]
    bad: JobAttributes = field(default_factory=lambda: JobAttributes(queue_name="nosuch"))


@dataclass(frozen=True, slots=True)
class Canceling:
    """A cancel command.

    gone: what it says of a job that has ended, or that nobody knows. failed: when it could not, and whether trying
    again may help.
    """

    command: str
    gone: tuple[str, ...]
    failed: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Whole:
    """The whole way of a job.

    shown: its name as the stand-in knows it, where that differs. nodes: the node file. facts: of the end; sources: who
    told some of them. custom: attributes that the resources need.
    """

    name: str
    resources: ResourceSpecV1
    nodes: str
    facts: Mapping[str, Any]
    sources: Mapping[str, str]
    custom: Mapping[str, object] = field(default_factory=dict)
    shown: str | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """A submit script.

    sentinel: what its directives begin with. in_template: how many stand in the template. written: what becomes of a
    directive; unfit: those that cannot be written. option: a custom attribute that takes text. keeps: a variable of
    the manager's. The rest is how the job is told its id, which is 5: environment, arguments, or a command that says
    it.
    """

    sentinel: str | None
    written: Callable[[Directive], str]
    unfit: tuple[Directive, ...]
    keeps: str
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    command: str | None = None
    in_template: int = 0
    option: str = "comment"


@dataclass(frozen=True, slots=True)
class Limit:
    """A job that its time limit ended. noted: what makes one of a record of the stand-in; the rest is its end."""

    noted: Callable[[Record], Mapping[str, Any]]
    message: str
    exit_code: int | None = None
    reason: str = "timeout"


@dataclass(frozen=True, slots=True)
class Manager:
    """A resource manager: what stands in for it, its executor and names, the commands that ask for states and ends.

    hold: attributes of a job that is not to start. odd: a state that it does not have, and what is logged of it.
    foreign: what are no ids of jobs. empty: what makes an answer one without jobs. cut: characters of an answer that
    end within a line. remembers: whether it knows jobs that have ended. tells_signals: whether it tells a signal from
    the exit code that a shell makes of it. asked_by_tag: whether jobs can be looked for by tag. silent_is_none: whether
    an empty answer says that there are no jobs. slow: whether some questions are programs although commands run inside.
    """

    fake: ModuleType
    executor: type[LrmExecutor]
    names: tuple[str, ...]
    queue: str
    ends: tuple[str, ...]
    hold: Mapping[str, object]
    odd: tuple[Any, str]
    foreign: tuple[str, ...]
    empty: tuple[tuple[str, str], ...]
    submitting: Submitting
    canceling: Canceling
    whole: Whole
    script: Script
    limit: Limit
    cut: int = 60
    remembers: bool = True
    tells_signals: bool = True
    asked_by_tag: bool = True
    silent_is_none: bool = False
    slow: bool = False

    @property
    def submit(self) -> str:
        """The submit command."""
        return self.submitting.command

    @property
    def cancel(self) -> str:
        """The cancel command."""
        return self.canceling.command


def _unfit(option: str, *values: str) -> tuple[Directive, ...]:
    return tuple(Directive(option, value, "f") for value in values)


_TWO = ResourceSpecV1(node_count=2, processes_per_node=2)
_TWO_OF_THREE = ResourceSpecV1(node_count=2, processes_per_node=2, cpu_cores_per_process=3)
_NODES = "node1\nnode1\nnode2\nnode2\n"
_OWN = {"exit_code": "exit-file"}
_SBATCH = "sbatch: error: Batch job submission failed:"
_NO_SERVER = "cannot connect to server head (errno=111)"
_BY_POLICY = "The job attribute PeriodicRemove expression '{}' evaluated to TRUE"

_POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
_SLURM = Manager(
    fake_slurm, SlurmJobExecutor, ("slurm", "Slurm"), "squeue", ("sacct", "scontrol"), {"slurm.hold": True},
    odd=("TELEPORTING", "Slurm's job state 'TELEPORTING' is not known; jobs in it keep their last state"),
    foreign=("all", "1_x"), empty=((r"^\d+\|.*\n", ""),), cut=110,
    submitting=Submitting(
        "sbatch", "Invalid partition name",
        refused=(f"{_SBATCH} Invalid account or account/partition combination specified",
                 f"sbatch: error: QOSMaxCpuPerJobLimit\n{_SBATCH} {_POLICY}",
                 f"sbatch: error: AssocMaxWallDurationPerJobLimit\n{_SBATCH} {_POLICY}"),
        later=(f"{_SBATCH} {_POLICY}", f"{_SBATCH} Unable to contact slurm controller (connect failure)",
               f"sbatch: error: AssocGrpCPUMinutesLimit\n{_SBATCH} {_POLICY}"),
        full=(*(f"sbatch: error: {reason}\n{_SBATCH} {_POLICY}" for reason in (
            "QOSMaxSubmitJobPerUserLimit", "AssocMaxSubmitJobLimit", "AssocGrpSubmitJobsLimit", "QOSGrpSubmitJobsLimit",
            "MaxSubmitJobsPerAccount")), f"{_SBATCH} Resource temporarily unavailable"),
        unsaid=f"{_SBATCH} Socket timed out on send/recv operation",
        ids={"12\n": "12", "welcome\n12;north\n": "12"},
        no_ids=("", "12 13", "Submitted batch job 7", "12\n13\n", "-1")),
    canceling=Canceling(
        "scancel", gone=("scancel: error: Kill job error on job id 1: Invalid job id specified",
                         "scancel: error: Job/step already completing or completed"),
        failed={"scancel: error: Access/permission denied": False, "Unable to contact slurm controller": True}),
    whole=Whole("a \"b\" 'c'", _TWO, _NODES,
                {"native_state": "COMPLETED", "nodes": ["node1"], "node_count": 1, "processors": 1, "cpu_seconds": 1.5,
                 "memory_max_bytes": 52424 << 10, "queue": "batch"}, _OWN | {"native_state": "sacct"}),
    script=Script("#SBATCH", sbatch, _unfit("partition", "a\nb", "\x1b"), "SLURM_NTASKS", {"SLURM_JOB_ID": "5"},
                  in_template=2),
    limit=Limit(lambda job: {"state": "TIMEOUT"}, "the time limit was reached (Slurm says TIMEOUT)", 137))

_SGE = Manager(
    fake_sge, SGEJobExecutor, ("sge",), "qstat", ("qacct",), {"sge.h": True},
    odd=("ZZ", "Grid Engine's job state 'ZZ' is not known; jobs in it keep their last state"),
    foreign=("all", "1.x"), empty=(("<job_list.*</job_list>", ""),),
    submitting=Submitting(
        "qsub", "unknown queue",
        refused=('Unable to run job: Job was rejected because job requests unknown queue "nosuch"\nExiting.',),
        later=("Unable to run job: unable to send message to qmaster using port 1 on host \"h\": got send error\n"
               "Exiting.",),
        full=("Unable to run job: job rejected: only 5 jobs are allowed per user (current job count: 5)\nExiting.",
              "Unable to run job: job rejected: Only 9 jobs are allowed per cluster (current job count: 9)\nExiting."),
        unsaid="Unable to run job: Error reading answer list from qmaster",
        ids={"12\n": "12"}, no_ids=("", "Your job 1 (\"x\") has been submitted\n", "3.1-4:1\n", "1\n2\n")),
    canceling=Canceling(
        "qdel", gone=('denied: job "9" does not exist',),
        failed={'root - you do not have the necessary privileges to delete the job "9"': False,
                "error: commlib error: got select error": True, "failed receiving gdi request": True}),
    whole=Whole("a|b;c", ResourceSpecV1(process_count=2, cpu_cores_per_process=3), "head\nhead\n",
                {"cpu_seconds": 1.5}, _OWN | {"cpu_seconds": "qacct"}, {"sge.pe": "smp"}),
    script=Script("#$", sge, _unfit("q", "a\nb", "a\tb", 'a"b', "a'b", "a#b", "a\\b", " a", "", " ", "a\u2028"),
                  "SGE_ROOT", {"JOB_ID": "5"}),
    limit=Limit(lambda job: {"failed": "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit"},
                "the time limit was reached", 137))

_PBS = Manager(
    fake_pbs, PBSJobExecutor, ("pbs", "pbspro", "PBS"), "qstat", ("qselect",), {"pbs.h": True},
    odd=("Y", "PBS's job state 'Y' is not known; jobs in it keep their last state"),
    foreign=("all", "12", "999.head "), empty=((r"(?s).*", '{"timestamp": 1, "pbs_version": "23"}'),), cut=600,
    slow=True,
    submitting=Submitting(
        "qsub", "Unknown queue", refused=("qsub: Unauthorized Request",),
        later=(f"qsub: {_NO_SERVER}",),
        full=("qsub: would exceed complex's per-user limit of jobs in 'Q' state",
              "qsub: would exceed queue generic's per-user limit", "qsub: would exceed complex's limit of jobs",
              "qsub: Maximum number of jobs in 'Q' state for user alice already in complex"),
        unsaid="qsub: End of File", ids={"welcome\n12.pbs.example.org\n": "12.pbs.example.org"},
        no_ids=("", "12", "12.a 13.b", "12.a\n13.a\n", "-1.a", "qsub: 12.a")),
    canceling=Canceling(
        "qdel", gone=("qdel: Job has finished 25.head", "qdel: Unknown Job Id 9.head"),
        failed={"qdel: Unauthorized Request 25.head": False, f"qdel: {_NO_SERVER}": True}),
    whole=Whole("a+b-c_1.2", _TWO, _NODES, {"cpu_seconds": 1, "nodes": ["head"], "queue": "workq"},
                _OWN | {"cpu_seconds": "qstat -x"}),
    script=Script("#PBS", pbs, (*_unfit("A", "\n", "", "tab\t", "\u202e"), Directive("long", "x"), Directive("1")),
                  "PBS_QUEUE", {"PBS_JOBID": "5"}, option="M"),
    limit=Limit(lambda job: {"status": -29}, "PBS says exit status -29"))

_PBS_CLASSIC = Manager(
    fake_pbs_classic, PBSClassicJobExecutor, ("pbs_classic", "torque"), "qstat", (), {"pbs.h": True},
    odd=("Z", "PBS's job state 'Z' is not known; jobs in it keep their last state"), foreign=("all",),
    empty=((r"(?s)<Job>.*</Job>", ""), (r"(?s)^Job Id.*", "")), cut=600,
    submitting=Submitting(
        "qsub", "Unknown queue", refused=("qsub: submit error (Unauthorized Request  MSG=...)",),
        later=(f"qsub: {_NO_SERVER}",), full=(
            "qsub: submit error (Maximum number of jobs already in queue MSG=total number of jobs in queue exceeds the "
            "queue limit: user a@b, queue batch)",
            "qsub: submit error (Maximum number of jobs already in queue for user MSG=total number of current user's "
            "jobs exceeds the queue limit: user a@b, queue batch)"),
        unsaid="qsub: End of File", ids={"2\n": "2", "welcome\n2.head.example.org\n": "2.head.example.org"},
        no_ids=("", "2 3", "2\n3\n", "-1", "qsub: 2")),
    canceling=Canceling(
        "qdel", gone=("qdel: Unknown Job Id 9",
                      "qdel: Request invalid for state of job MSG=invalid state for job - COMPLETE"),
        failed={"qdel: Unauthorized Request  MSG=operation not permitted": False, f"qdel: {_NO_SERVER}": True}),
    whole=Whole("a|b:c", _TWO_OF_THREE, _NODES, {"cpu_seconds": 1, "nodes": ["node1", "node2"], "processors": 3},
                _OWN),
    script=Script("#PBS", pbs, _unfit("A", "\n", ""), "PBS_QUEUE", {"PBS_JOBID": "5"}, option="M"),
    limit=Limit(lambda job: {"status": -11}, "PBS says exit status -11"))

_LSF = Manager(
    fake_lsf, LsfJobExecutor, ("lsf",), "bjobs", ("bhist",), {"lsf.H": True},
    odd=("ODD", "LSF's job state 'ODD' is not known; jobs in it keep their last state"), foreign=("0 ", "1[x]"),
    empty=((r"(?s).*", '{"COMMAND":"bjobs","JOBS":0,"RECORDS":[]}'),), cut=600, tells_signals=False,
    submitting=Submitting(
        "bsub", "No such queue", refused=("User permission denied. Job not submitted.",),
        later=("Cannot connect to LSF. Please wait ...",),
        full=("User <u>: Pending job threshold reached. Retrying in 60 seconds...",
              "Pending job slot limit of queue <q> is reached. Job not submitted."),
        unsaid="Failed in sending/receiving a message",
        ids=dict.fromkeys(("Job <12> is submitted to queue <normal>.\n",
                           "welcome\nJob <12> is submitted to default queue <a>.",
                           "Job <12> is submitted to queue <a>, esub says hello"), "12"),
        no_ids=("", "12", "Job <12>", "Job <12> is submitted to queue <a>.\nJob <13> is submitted to queue <a>.",
                "Job <-1> is submitted to queue <a>.")),
    canceling=Canceling(
        "bkill", gone=("Job <9>: Job has already finished", "Job <9>: No matching job found"),
        failed={"Job <9>: Permission denied": False, "LSF is down. Please wait ...": True}),
    whole=Whole("a 'b' c", _TWO_OF_THREE, _NODES,
                {"cpu_seconds": 1, "nodes": ["hostA", "hostB"], "queue": "normal"}, _OWN),
    script=Script("#BSUB", bsub, (*_unfit("P", "\n", "", "tab\t", "\u202e", "#"), Directive("a b", "x")), "LSB_QUEUE",
                  {"LSB_JOBID": "5"}, option="u"),
    limit=Limit(lambda job: {"term": "TERM_RUNLIMIT: job killed after reaching LSF run time limit"},
                "TERM_RUNLIMIT: job killed after reaching LSF run time limit", 137))

_COBALT = Manager(
    fake_cobalt, CobaltJobExecutor, ("cobalt",), "qstat", (), {"cobalt.held": True},
    odd=("teleporting", "Cobalt's job state 'teleporting' is not known; jobs in it keep their last state"),
    foreign=("-f", "1 2"), empty=((r"(?s)^\d.*", ""), (r"(?s)JobID.*", "")), silent_is_none=True, remembers=False,
    submitting=Submitting(
        "qsub", "Queue 'nosuch' does not exist", refused=("QueueError: Queue 'nosuch' does not exist",),
        later=("Failed to connect to queue manager", "System draining. Try again later"),
        full=("The limit of 5 jobs per user in the 'prod' queue has been reached",),
        unsaid="Error submitting job", ids={"Job routed to queue \"prod\".\n603816\n": "603816"},
        no_ids=("", "job 603816", "1\n2\n", "failed to create the job.  Maybe a queue isn't there?")),
    canceling=Canceling("qdel", gone=("qdel: Job 9 not found",),
                        failed={"qdel: Permission denied": False, "Failed to connect to queue manager": True}),
    whole=Whole("a\"b'c#$HOME", _TWO, _NODES, {"native_state": "done", "queue": "default"},
                _OWN | {"native_state": "cobaltlog"}),
    script=Script("#COBALT", cobalt, _unfit("queue", "", " ", "a b", "a\tb", "a\nb", "a\u00a0b", "a\x85b"),
                  "COBALT_PARTNAME", {"COBALT_JOBID": "5"}),
    limit=Limit(lambda job: {"why": "maximum execution time exceeded; initiating job terminiation"},
                "the time limit was reached"))

_HTCONDOR = Manager(
    fake_htcondor, HTCondorJobExecutor, ("htcondor", "condor"), "condor_q", ("condor_history",),
    {"htcondor.hold": True},
    odd=(88, "HTCondor's JobStatus '88' is not known; jobs in it keep their last state"),
    foreign=("-all", "1.0 2.0", "alice"), empty=((r"(?s).*", "[]"),), silent_is_none=True,
    submitting=Submitting(
        "condor_submit", "Invalid accounting_group", refused=("ERROR: Invalid accounting_group: nosuch",),
        later=("ERROR: Can't find address of local schedd",),
        full=tuple(f"ERROR: Number of submitted jobs would exceed {limit}" for limit in (
            "MAX_JOBS_PER_OWNER", "MAX_JOBS_SUBMITTED")),
        unsaid="ERROR: Failed to commit job submission into the queue", ids={"WARNING: x\n12.0 - 12.0\n": "12.0"},
        no_ids=("", "12.0", "12.0 - 12.4\n", "1 job(s) submitted to cluster 5.\n", "1.0 - 1.0\n2.0 - 2.0\n"),
        bad=JobAttributes(account="nosuch")),
    canceling=Canceling(
        "condor_rm", gone=("Job 9.0 not found", "Couldn't find/remove all jobs in cluster 9"),
        failed={"Permission denied to remove job 9.0": False, "ERROR: Can't find address of local schedd": True}),
    whole=Whole("a \"b\" 'c' $HOME \\ ü", ResourceSpecV1(process_count=3), f"{platform.node()}\n" * 3,
                {"cpu_seconds": 1.5, "memory_max_bytes": 52424 << 10, "nodes": ["node1"]},
                _OWN | {"cpu_seconds": "condor_history"}, shown='"a \\"b\\" \'c\' $HOME \\ ü"'),
    script=Script(None, condor, _unfit("x", "a$$b\\", "a\nb\\", "a\x85b\\", "\x00\\", "\\"), "_CONDOR_SCRATCH_DIR",
                  arguments=("5",)),
    limit=Limit(lambda job: {"why": _BY_POLICY.format(job["given"]["periodic_remove"])},
                _BY_POLICY.format("JobStatus == 2 && time() - JobCurrentStartDate > 60")))

_FLUX = Manager(
    fake_flux, FluxJobExecutor, ("flux",), "flux-jobs", (), {"flux.urgency": "hold"},
    odd=("TELEPORTING", "Flux's job state 'TELEPORTING' is not known; jobs in it keep their last state"),
    foreign=("ƒzzz", "-a"), empty=((r"(?s).*", json.dumps({"jobs": []})),), slow=True,
    submitting=Submitting(
        "flux-batch", "Invalid queue 'nosuch' specified",
        refused=("flux-batch: error: unrecognized arguments: --nosuch",),
        later=("flux-batch: ERROR: job submission is disabled: upgrade",
               "flux-batch: ERROR: Unable to connect to Flux: ECONNREFUSED"),
        full=("flux-batch: ERROR: user/bank has max active jobs",
              "flux-batch: ERROR: [Errno 22] user has max active jobs",
              "flux-batch: ERROR: user has reached the maximum number of active jobs"),
        unsaid="flux-batch: ERROR: timed out", ids={"ƒS8Lq1y\n": "16492003328"},
        no_ids=("", "f1 f2", "ƒS8Lq1y\nƒS8Lq1y\n", "flux-batch: x")),
    canceling=Canceling(
        "flux-cancel",
        gone=("flux-cancel: ERROR: ƒ4fr: unknown job id", "flux-cancel: ERROR: ƒ4fr: job is inactive"),
        failed={"flux-cancel: ERROR: guests can only cancel their own jobs": False,
                "flux-cancel: ERROR: Unable to connect to Flux": True}),
    whole=Whole("a \"b\" 'c' {{id}} ü", _TWO, _NODES, {"native_state": "COMPLETED", "nodes": ["node1"]}, _OWN),
    script=Script("#FLUX:", flux, _unfit("queue", "a\nb", "a\x1bb"), "FLUX_URI", command="flux"),
    limit=Limit(lambda job: {"state": "TIMEOUT", "exception": {"occurred": True, "severity": 0, "type": "timeout",
                                                               "note": "expired"}},
                "Flux says TIMEOUT, timeout: expired"))

_NQSV = Manager(
    fake_nqsv, NQSVJobExecutor, ("nqsv",), "qstat", (), {"nqsv.h": True},
    odd=("ZZZ", "NQSV's request state 'ZZZ' is not known; jobs in it keep their last state"),
    foreign=("all", "1.nqsv"), empty=((r"(?s).*", "Batch Request: 1.nqsv does not exist on nqsv.\n"),), cut=6,
    remembers=False, asked_by_tag=False,
    submitting=Submitting(
        "qsub", "No such queue", refused=("qsub: Permission denied.",),
        later=("qsub: Cannot connect to the batch server.",),
        full=("qsub: Request exceeds the submit number limit of the queue.",), unsaid="qsub: timed out",
        ids={"Request 996644.nqsv submitted to queue: gen_S.\n": "996644"},
        no_ids=("", "996644", "Request 1.a submitted to queue: q.\nRequest 2.a submitted to queue: q.", "Request x")),
    canceling=Canceling("qdel", gone=("Batch Request: 9.nqsv does not exist on nqsv.",),
                        failed={"qdel: permission denied": False, "qdel: Cannot connect to the batch server.": True}),
    whole=Whole("a_b.c", _TWO_OF_THREE, _NODES, {}, _OWN),
    script=Script("#PBS", nqsv, _unfit("A", "", "a b", "'", '"', "#", "\n", "\\", "ü", "a;b"), "NQSV_X",
                  {"PBS_JOBID": "0:5.nqsv"}, option="M"),
    limit=Limit(lambda job: {}, "it is in no queue and in no accounting record, and no exit code of it was found",
                reason="lost"))         # nothing is told of a request that has ended

MANAGERS: Final[Mapping[str, Manager]] = {
    "slurm": _SLURM, "sge": _SGE, "pbs": _PBS, "pbs_classic": _PBS_CLASSIC, "lsf": _LSF, "cobalt": _COBALT,
    "htcondor": _HTCONDOR, "flux": _FLUX, "nqsv": _NQSV}
