"""Script bodies: what a job prints under the target is what it printed under the source; the rest is told."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from pwd import getpwuid
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.errors import UsageError
from sssjob.findings import Findings
from sssjob.limits import LIMITS
from sssjob.lrm.variables import FACTS, Facts
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.bodies import MODES, Mode
from sssjob.translators.bodies import shell as grammar
from sssjob.translators.bodies.carry import Body, carried
from sssjob.translators.bodies.languages import interpreter
from sssjob.translators.bodies.values import FILES
from tests.cases import Cases
from tests.strategies import examples

Rows = list[tuple[str, str, int, int]]
#: What the job of ``machine`` asks for.
ASKED = {"tasks": "4", "nodes": "2", "tasks_per_node": "2", "cpus_per_task": "1", "walltime": "600", "gpus": "8",
         "gpus_per_node": "4", "gpus_on_node": "4", "gpus_per_task": "2"}
WIDE = {"tasks": "4", "cpus_per_task": "2"}
ARRAY = {"array": "2-6:2", "array_first": "2", "array_last": "6", "array_step": "2", "array_count": "3"}


def carry(text: str, source: str, target: str, mode: Mode = "shim", asked: Mapping[str, str] = MappingProxyType({}),
          program: str = "sh", seconds: float = LIMITS.shell_seconds) -> tuple[str, Rows]:
    """The body for the target, and (rule, subject, line, column) of each finding but those of what was carried."""
    findings: Rows = []
    body = carried(Body(text, program, lambda: asked), FACTS[source], FACTS[target], mode,
                   lambda rule, subject, message, line, column, _: findings.append((rule, subject, line + 1, column)),
                   replace(LIMITS, shell_seconds=seconds), FACTS.get)
    return body, [t for t in findings if t[0] != "SSS517"]


# --- the same job on eight systems
class Machine:
    """A job 4242 of two nodes with two tasks each, as each resource manager shows it to a script."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        self.work = folder / "a b"                                  # where it was submitted
        self.work.mkdir()
        self.program("scontrol", 'test "$1 $2" = "show hostnames" && printf "n1\\nn2\\n"')
        self.program("hostname", "echo n1")
        self.program("flux", 'case "$*" in "getattr jobid") echo f2;; '
                     '"job id --to=dec f2") echo 4242;; "getattr hostlist") echo n1,n2;; '
                     '"getattr size") echo 2;; "hostlist -e local") echo "n1 n2";; esac')
        (folder / "slots").write_text("n1\nn1\nn2\nn2\n")
        (folder / "nodes").write_text("n1\nn2\n")
        (folder / "pe").write_text("n1 2 UNDEFINED UNDEFINED\nn2 2 UNDEFINED UNDEFINED\n")
        (folder / "ad").write_text(f'Args = ""\nClusterId = 4242\nProcId = 4\nRequestCpus = 2\nIwd = "{self.work}"\n')

    def program(self, name: str, text: str) -> None:
        """A command of a resource manager."""
        file = self.folder / "bin" / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def environment(self, name: str, array: bool) -> dict[str, str]:
        """The variables of the job."""
        at, work = str(self.folder), str(self.work)
        home, user = os.environ.get("HOME", "/"), getpwuid(os.getuid()).pw_name
        pbs = {"PBS_JOBID": "4242[4].srv" if array else "4242.srv", "PBS_JOBNAME": "fit", "PBS_O_WORKDIR": work,
               "PBS_O_HOST": "login", "PBS_QUEUE": "long", "PBS_O_QUEUE": "long", "PBS_NODEFILE": f"{at}/slots",
               "PBS_ENVIRONMENT": "PBS_BATCH", "PBS_NODENUM": "0", "PBS_O_HOME": home, "PBS_O_LOGNAME": user}
        whole: dict[str, dict[str, str]] = {
            "slurm": {"SLURM_JOB_ID": "4242", "SLURM_JOBID": "4242", "SLURM_JOB_NAME": "fit",
                      "SLURM_SUBMIT_DIR": work, "SLURM_SUBMIT_HOST": "login", "SLURM_JOB_PARTITION": "long",
                      "SLURM_JOB_ACCOUNT": "physics", "SLURM_JOB_NODELIST": "n1,n2", "SLURM_NODELIST": "n1,n2",
                      "SLURM_JOB_NUM_NODES": "2", "SLURM_NNODES": "2", "SLURM_NTASKS": "4", "SLURM_NPROCS": "4",
                      "SLURM_NTASKS_PER_NODE": "2", "SLURM_TASKS_PER_NODE": "2(x2)", "SLURM_CPUS_PER_TASK": "1",
                      "SLURM_CPUS_ON_NODE": "2", "SLURMD_NODENAME": "n1", "SLURM_JOB_USER": user,
                      "SLURM_JOB_UID": str(os.getuid()), "SLURM_NODEID": "0", "SLURM_JOB_GPUS": "0,1",
                      "SLURM_GPUS": "8", "SLURM_GPUS_PER_NODE": "4", "SLURM_GPUS_PER_TASK": "2",
                      "SLURM_GPUS_ON_NODE": "4"},
            "pbspro": pbs | {"PBS_ACCOUNT": "physics", "NCPUS": "2"},
            "torque": pbs | {"PBS_NUM_NODES": "2", "PBS_NP": "4", "PBS_NUM_PPN": "2", "PBS_WALLTIME": "600"},
            "lsf": {"LSB_JOBID": "4242", "LSB_JOBNAME": "fit[4]" if array else "fit", "LS_SUBCWD": work,
                    "LSB_SUB_HOST": "login", "LSB_SUB_USER": user, "LSB_QUEUE": "long", "LSB_PROJECT_NAME": "physics",
                    "LSB_HOSTS": "n1 n1 n2 n2", "LSB_MCPU_HOSTS": "n1 2 n2 2", "LSB_DJOB_HOSTFILE": f"{at}/slots",
                    "LSB_DJOB_NUMPROC": "4", "LSB_MAX_NUM_PROCESSORS": "4",
                    "LSB_BATCH_JID": "4242[4]" if array else "4242", "LSB_JOBINDEX": "4" if array else "0"},
            "sge": {"JOB_ID": "4242", "JOB_NAME": "fit", "REQUEST": "fit", "SGE_O_WORKDIR": work,
                    "SGE_O_HOST": "login", "SGE_O_HOME": home, "SGE_O_LOGNAME": user,
                    "QUEUE": "long", "SGE_ACCOUNT": "sge", "PE_HOSTFILE": f"{at}/pe",
                    "NHOSTS": "2", "NSLOTS": "4", "RESTARTED": "0", "ENVIRONMENT": "BATCH", "TMP": at} | dict.fromkeys(
                        ("SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE"), "undefined"),
            "cobalt": {"COBALT_JOBID": "4242", "COBALT_NODEFILE": f"{at}/nodes", "COBALT_JOBSIZE": "2",
                       "COBALT_PARTSIZE": "2", "COBALT_JOBNAME": "fit", "COBALT_PROJECT": "physics",
                       "COBALT_QUEUE": "long"},
            "htcondor": {"_CONDOR_JOB_AD": f"{at}/ad", "_CONDOR_SCRATCH_DIR": at,
                         "_CONDOR_AssignedGPUs": "CUDA0,CUDA1"},
            "flux": {"FLUX_URI": "local:///x"},
        }
        if array:
            for name_, more in {
                "slurm": {"SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_JOB_ID": "4242", "SLURM_ARRAY_TASK_MIN": "2",
                          "SLURM_ARRAY_TASK_MAX": "6", "SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_COUNT": "3"},
                "pbspro": {"PBS_ARRAY_INDEX": "4", "PBS_ARRAY_ID": "4242"},
                "torque": {"PBS_ARRAYID": "4"},
                "lsf": {"LSB_JOBINDEX_END": "6", "LSB_JOBINDEX_STEP": "2"},
                "sge": {"SGE_TASK_ID": "4", "SGE_TASK_FIRST": "2", "SGE_TASK_LAST": "6", "SGE_TASK_STEPSIZE": "2"},
            }.items():
                whole[name_] |= more
        users = {"HOME": home, "PATH": f"{at}/bin:{os.environ['PATH']}", "TMPDIR": at, "CUDA_VISIBLE_DEVICES": "0,1"}
        return users | whole[name]

    def printed(self, text: str, name: str, program: str = "sh", array: bool = False) -> str:
        """What a body prints as a job of a resource manager."""
        process = subprocess.run([program, "-c", text], env=self.environment(name, array), capture_output=True,
                                 text=True, timeout=120, cwd=self.work)
        return process.stdout + process.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def variables(facts: Facts) -> list[str]:
    return [*facts.variables, *facts.constants]


def shown(name: str, facts: Facts) -> str:
    """A line that prints a variable: a file by its text, a job id of PBS as scripts cut it."""
    if facts.variables.get(name, "").endswith("_file"):
        return f'echo "{name}:" $(cat "${{{name}:-/dev/null}}")\n'
    cut = "%%[!0-9]*" if name == "PBS_JOBID" else ""
    return f'echo "{name}: ${{{name}{cut}}}"\n'


PAIRS = [(a, b) for a in FACTS for b in FACTS if a != b]
DASHES = [s for s in ("sh", "bash", "dash", "ksh", "zsh") if shutil.which(s)]


@pytest.mark.parametrize("array", [False, True], ids=["", "array"])
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_shimmed_job_prints_the_same(source: str, target: str, array: bool, machine: Machine) -> None:
    """Every variable of the source, but for those that a finding names."""
    facts, asked = FACTS[source], ASKED | (ARRAY if array else {})
    findings = {t[1] for t in carry("".join(shown(n, facts) for n in variables(facts)), source, target, asked=asked)[1]}
    text = "".join(shown(n, facts) for n in variables(facts) if n not in findings)
    body, none = carry(text, source, target, asked=asked)
    assert none == []
    for program in ("sh", "bash"):
        assert machine.printed(body, target, program, array) == machine.printed(text, source, program, array)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_translated_job_prints_the_same(source: str, target: str, machine: Machine) -> None:
    """Those that can be renamed, in every kind of expansion in which they can be, and what is made at the top."""
    facts = FACTS[source]
    lines: list[str] = []
    for name in variables(facts):
        number = facts.variables.get(name) in ("tasks", "nodes")
        if facts.variables.get(name) in FILES:      # its name is another in each job
            line = shown(name, facts)
            lines += [] if carry(line, source, target, "translate", asked=ASKED)[1] else [line]
            continue
        for line in (f'echo "{name}: ${name}|${{{name}}}_x"\n', f"echo {name} ${name}\n",
                     f"cat <<EOF\n a ${name} ${{{name}:-none}}\nEOF\n", f'x="${{{name}:+set}}"; echo "$x"\n',
                     f"echo $((${name} + 1)) $(({name} * 2)) `echo ${name}`\n" if number else ""):
            if line and not carry(line, source, target, "translate", asked=ASKED)[1] and name != "PBS_JOBID":
                lines.append(line)
    text = "".join(lines)
    body, findings = carry(text, source, target, "translate", asked=ASKED)
    assert findings == []
    left = {n for n in variables(facts) if f"${n}|" in body and f"export {n}=" not in body}
    there = {*variables(FACTS[target]), *(n for n, m in facts.variables.items() if m in facts.asked)}
    assert left <= there
    assert machine.printed(body, target) == machine.printed(text, source)


@pytest.mark.parametrize("program", DASHES)
@pytest.mark.parametrize("array", [False, True], ids=["", "array"])
def test_what_is_unset_stays_unset(program: str, array: bool, machine: Machine) -> None:
    """Also under -eu, where a line of the shim that fails would end the job."""
    text = "set -eu\necho ${SLURM_ARRAY_TASK_ID-unset} ${SLURM_ARRAY_TASK_MAX-unset} ${SLURM_CPUS_PER_TASK-unset}\n"
    for target in ("sge", "lsf", "pbspro"):
        body, findings = carry(text, "slurm", target, program=program, asked=ARRAY if array else {})
        assert findings == ([] if array or target != "pbspro" else [("SSS510", "SLURM_ARRAY_TASK_MAX", 2, 35)])
        assert machine.printed(f"set -eu\n{body}", target, program, array) == \
            ("4 6 unset\n" if array else "unset unset unset\n")


def test_what_says_nothing_says_it_in_the_other_words(machine: Machine) -> None:
    """A job that is no element has SGE_TASK_ID undefined and LSB_JOBINDEX 0."""
    for source, text, out in (("sge", "echo $SGE_TASK_ID\n", "undefined\n"), ("lsf", "echo $LSB_JOBINDEX\n", "0\n")):
        for target in ("slurm", "pbspro", "torque"):
            body, findings = carry(text, source, target)
            assert findings == [] and machine.printed(body, target) == out
            body, findings = carry(text, source, target, "translate")
            assert findings == [] and machine.printed(body, target) == out
            body, _ = carry(text, source, target, "translate", asked=ARRAY)
            assert machine.printed(body, target, array=True) == "4\n"


# --- what is written
BODY = """\
# $SLURM_JOB_ID in a comment
cd "$SLURM_SUBMIT_DIR" || exit 1
echo "$SLURM_JOB_ID_x${SLURM_JOB_NAME:-none} $SLURM_CPUS_PER_TASK"x$SLURM_JOB_NAME"_"
echo '$SLURM_JOB_ID' "it's ${SLURM_JOB_ID}" # $SLURM_NNODES
cat > x.$SLURM_JOB_ID <<'EOF'
$SLURM_SUBMIT_DIR
EOF
for h in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do echo $h; done
time srun -n $SLURM_NTASKS ./a.out --x=$SLURM_PROCID
srun --multi-prog ./b; srun --mpi=pmi2 hostname
scancel $SLURM_JOB_ID
sbatch next.sh
echo srun sbatch; ls srun.log ./sbatch/x
"""
TRANSLATED = """\
# >>> sssjob shim: slurm on pbspro, d22c2430
export SLURM_CPUS_PER_TASK=2
# <<< sssjob shim
# $SLURM_JOB_ID in a comment
cd "$PBS_O_WORKDIR" || exit 1
echo "$SLURM_JOB_ID_x${PBS_JOBNAME:-none} $SLURM_CPUS_PER_TASK"x$PBS_JOBNAME"_"
echo '$SLURM_JOB_ID' "it's ${PBS_JOBID%%[!0-9]*}" # $SLURM_NNODES
cat > x.${PBS_JOBID%%[!0-9]*} <<'EOF'
$SLURM_SUBMIT_DIR
EOF
for h in $({ awk '!seen[$0]++' "$PBS_NODEFILE"; }); do echo $h; done
time mpirun -np $(wc -l < "$PBS_NODEFILE") ./a.out --x=$SLURM_PROCID
srun --multi-prog ./b; mpirun hostname
qdel ${PBS_JOBID%%[!0-9]*}
sbatch next.sh
echo srun sbatch; ls srun.log ./sbatch/x
"""
SHIM = """\
# >>> sssjob shim: slurm on pbspro, c94dde5b
if [ -n "${PBS_O_WORKDIR+x}" ]; then export SLURM_SUBMIT_DIR="${PBS_O_WORKDIR}"; fi
if [ -n "${PBS_JOBNAME+x}" ]; then export SLURM_JOB_NAME="${PBS_JOBNAME}"; fi
export SLURM_CPUS_PER_TASK=2
if [ -n "${PBS_JOBID+x}" ]; then export SLURM_JOB_ID="${PBS_JOBID%%[!0-9]*}"; fi
scontrol() {
    case "${1:-} ${2:-}" in
    "show hostnames" | "show hostname") awk '!seen[$0]++' "$PBS_NODEFILE" ;;
    *) command scontrol "$@" ;;
    esac
}
if [ -n "${PBS_NODEFILE+x}" ]; then export SLURM_JOB_NODELIST=\\
"$(awk '!seen[$0]++' "$PBS_NODEFILE" | paste -s -d , -)"; fi
srun() (
    sss_tasks=
    while :; do
        case "${1-}" in
        --mpi=*) shift ;;
        -n) sss_tasks="$2"; shift 2 || exit 2 ;;
        -*) echo "srun: $1 has no equal here" >&2; exit 2 ;;
        *) break ;;
        esac
    done
    mpirun ${sss_tasks:+-np} ${sss_tasks:+"$sss_tasks"} "$@"
)
if [ -n "${PBS_NODEFILE+x}" ]; then export SLURM_NTASKS="$(wc -l < "$PBS_NODEFILE")"; fi
scancel() { case " $*" in *" -"*) command scancel "$@" ;; *) qdel "$@" ;; esac; }
# <<< sssjob shim
"""


def test_translate() -> None:
    body, findings = carry(BODY, "slurm", "pbspro", "translate", asked=WIDE)
    assert body == TRANSLATED
    assert sorted(findings, key=lambda t: t[2:]) == [
        ("SSS510", "SLURM_JOB_ID_x", 3, 7), ("SSS513", "SLURM_JOB_ID", 4, 8), ("SSS513", "SLURM_SUBMIT_DIR", 6, 2),
        ("SSS512", "srun", 9, 6), ("SSS510", "SLURM_PROCID", 9, 40), ("SSS511", "srun", 10, 1),
        ("SSS512", "srun", 10, 24), ("SSS511", "sbatch", 12, 1)]


def test_shim() -> None:
    body, findings = carry(BODY, "slurm", "pbspro", asked=WIDE, program="bash")
    assert body == SHIM.replace("=\\\n", "=") + BODY
    assert [t[:3] for t in findings] == [
        ("SSS510", "SLURM_JOB_ID_x", 3), ("SSS512", "srun", 9), ("SSS510", "SLURM_PROCID", 9), ("SSS511", "srun", 10),
        ("SSS512", "srun", 10), ("SSS511", "sbatch", 12)]


def test_keep_tells_each_use() -> None:
    body, findings = carry('echo $SLURM_JOB_ID "${SLURM_JOB_ID}" # $SLURM_NNODES\nsrun x\n', "slurm", "lsf", "keep")
    assert body == 'echo $SLURM_JOB_ID "${SLURM_JOB_ID}" # $SLURM_NNODES\nsrun x\n'
    assert findings == [("SSS510", "SLURM_JOB_ID", 1, 6), ("SSS510", "SLURM_JOB_ID", 1, 21), ("SSS511", "srun", 2, 1)]


def test_without_a_use_nothing_changes() -> None:
    text = "echo $X ${HOME} 'x' \"y\" \\\n\tz # SLURM\xe9\nmpirun -n 4 ./a\n"
    with Cases() as case:
        for source, target in PAIRS:
            for mode in MODES:
                with case((source, target, mode)):
                    assert carry(text, source, target, mode) == (text, [])


def test_nothing_is_parsed_without_a_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "_parser", lambda: pytest.fail("parsed"))
    carry("echo $X\n" * 1000, "slurm", "pbspro", "translate")


def test_a_variable_of_the_body_s_own() -> None:
    """QUEUE and JOB_ID are names that a script may well use itself."""
    text = "QUEUE=x\nfor JOB_ID in 1 2; do echo $JOB_ID $QUEUE; done\necho QUEUE REQUEST\n"
    for mode in MODES:
        assert carry(text, "sge", "slurm", mode) == (text, [])


def test_pbs_and_torque_share() -> None:
    assert carry("cd $PBS_O_WORKDIR; qsub x; qdel $PBS_JOBID; cat $PBS_NODEFILE\n", "pbspro", "torque") == (
        "cd $PBS_O_WORKDIR; qsub x; qdel $PBS_JOBID; cat $PBS_NODEFILE\n", [])
    body, findings = carry("qsub x; qdel 5\n", "pbspro", "sge", "translate")
    assert (body, findings) == ("qsub x; qdel 5\n", [("SSS511", "qsub", 1, 1)])


COMMANDS = [
    ("srun -n4 -N 2 ./a -n 5", "slurm", "flux", "flux run -n 4 -N 2 ./a -n 5"),
    ("srun --ntasks=4 --cpus-per-task 2 ./a", "slurm", "cobalt", "aprun -n 4 -d 2 ./a"),
    ("aprun -n 8 -N 4 -d 2 ./a", "cobalt", "slurm", "srun -n 8 --ntasks-per-node=4 -c 2 ./a"),
    ("aprun ./a", "cobalt", "slurm", "srun -n 1 ./a"),
    ("jsrun -n 4 -a 2 -c 8 ./a", "lsf", "slurm", "srun -n 8 -c 4 ./a"),
    ("jsrun -n 4 -a 2 -c 8 -g 4 ./a", "lsf", "slurm", "srun -n 8 -c 4 --gpus-per-task=2 ./a"),
    ("jsrun -n 4 -g1 ./a", "lsf", "flux", "flux run -n 4 -g 1 ./a"),
    ("jsrun -n 4 -a 2 -c 4 -g 0 ./a", "lsf", "slurm", "srun -n 8 -c 2 ./a"),
    ("jsrun -n 4 -g 0 ./a", "lsf", "flux", "flux run -n 4 ./a"),
    ("srun -n 4 --gpus-per-task=$N ./a", "slurm", "flux", "flux run -n 4 -g $N ./a"),
    ("ibrun ./a -n 5", "slurm", "pbspro", "mpirun ./a -n 5"),
    ("ibrun -n 4 ./a", "slurm", "cobalt", "aprun -n 4 ./a"),
    ("time ibrun -np $SLURM_NNODES ./a", "slurm", "sge", "time mpirun -np $NHOSTS ./a"),
    ("ibrun ./a", "sge", "slurm", "srun ./a"),
    ("aprun -n 32 -N 8 -d 2 ./a", "pbspro", "slurm", "srun -n 32 --ntasks-per-node=8 -c 2 ./a"),
    ("aprun -n 32 ./a", "torque", "cobalt", "aprun -n 32 ./a"),
    ("lrun -T4 -N2 ./a", "lsf", "slurm", "srun -n 8 -N 2 --ntasks-per-node=4 ./a"),
    ("lrun -p4 ./a", "lsf", "sge", "mpirun -np 4 ./a"),
    ("mpirun.lsf ./a", "lsf", "slurm", "srun ./a"),
    ("mpirun.lsf ./a", "lsf", "pbspro", "mpirun ./a"),
    ("canceljob $PBS_JOBID", "torque", "slurm", "scancel $SLURM_JOB_ID"),
    ("flux run -n 4 ./a", "flux", "slurm", "srun -n 4 ./a"),
    ("srun -n $(($SLURM_NNODES * 2)) ./a", "slurm", "flux",
     "flux run -n $(($(flux getattr size) * 2)) ./a"),
    ("FOO=1 exec srun -n 2 ./a > $SLURM_JOB_ID", "slurm", "sge", "FOO=1 exec mpirun -np 2 ./a > $JOB_ID"),
    ("srun -n4 -D /x --mpi=pmi2 -l --export=ALL ./a", "slurm", "flux", "flux run -n 4 --cwd=/x -l ./a"),
    ("srun --chdir=/x -v -u ./a", "slurm", "lsf", "mpirun -wdir /x ./a"),
    ("jsrun -n 4 -r 2 -a 3 ./a", "lsf", "slurm", "srun -n 12 --ntasks-per-node=6 ./a"),
    ("jsrun -n $N -r 2 -c 7 ./a", "lsf", "slurm", "srun -n $N --ntasks-per-node=2 -c 7 ./a"),
    ("aprun -n 4 -e A=1 -e \"B=x $N\" ./a", "pbspro", "slurm", "env A=1 \"B=x $N\" srun -n 4 ./a"),
    ("runjob --np 64 -p 16 : ./a -p 3", "cobalt", "slurm", "srun -n 64 --ntasks-per-node=16 ./a -p 3"),
    ("runjob -n 8 --block $COBALT_PARTNAME --verbose=INFO : ./a", "cobalt", "slurm",
     "srun -n 8 --ntasks-per-node=1 ./a"),
    ("runjob --np $((2 * N)) --ranks-per-node=$N --cwd=\"$PWD\" --label --exp-env HOME : ./a", "cobalt", "slurm",
     "srun -n $((2 * N)) --ntasks-per-node=$N --chdir=\"$PWD\" -l ./a"),
    ("runjob --np 4 --envs A=1 B=2 --envs C=3 : ./a", "cobalt", "slurm",
     "env A=1 B=2 C=3 srun -n 4 --ntasks-per-node=1 ./a"),
    ("srun -n 4 --cpu-bind=cores --mem=4G --exclusive --kill-on-bad-exit=1 -K --hint=nomultithread ./a", "slurm",
     "flux", "flux run -n 4 ./a"),
    ("srun -n 4 -m block:block -O -pdebug -t 10 --overlap --cpu-bind=verbose,cores --label ./a -m", "slurm", "sge",
     "mpirun -np 4 ./a -m"),
    ("srun -n 4 --export=ALL,A=1,HOME,B=$N ./a", "slurm", "flux", "env A=1 B=$N flux run -n 4 ./a"),
    ("srun -n 4 --export=ALL,A=1 --mem=0 ./a", "slurm", "pbspro", "env A=1 mpirun -np 4 ./a"),
    ("srun -n 4 -o out -e e -i in -J step ./a", "slurm", "flux",
     "flux run -n 4 --output=out --error=e --input=in --job-name=step ./a"),
    ("srun -n 4 -o $N.txt -w n1 --label ./a", "slurm", "flux",
     "flux run -n 4 -l --output=$N.txt --requires=host:n1 ./a"),
    ("srun -n 4 -o out.%t ./a", "slurm", "sge", "mpirun -np 4 ./a"),
    ("srun -n 4 -N $SLURM_NNODES -o out ./a", "slurm", "sge", "mpirun -np 4 ./a"),
    ("aprun -n 4 -cc cpu -ss -j 1 ./a", "pbspro", "slurm", "srun -n 4 ./a"),
    ("jsrun -n 4 -b packed:4 -d packed --smpiargs=-gpu -E A=1 -o out ./a", "lsf", "slurm",
     "env A=1 srun -n 4 --output=out ./a"),
    ("flux run -n 4 -o cpu-affinity=per-task -x --output=out --setopt mpi=none ./a", "flux", "slurm",
     "srun -n 4 --output=out ./a"),
    ("scontrol hold 5; scontrol release 5 6", "slurm", "sge", "qhold 5; qrls 5 6"),
    ("bkill $LSB_JOBID", "lsf", "htcondor", "condor_rm $(sed -n 's/^ClusterId = //p' \"$_CONDOR_JOB_AD\")"),
]


@pytest.mark.parametrize(("line", "source", "target", "out"), COMMANDS)
def test_commands(line: str, source: str, target: str, out: str) -> None:
    body, findings = carry(line + "\n", source, target, "translate")
    assert body == out + "\n" and {t[0] for t in findings} <= {"SSS512"}


#: Commands that the functions of a shim call.
CALLED = ("mpirun", "srun", "aprun", "qdel", "qhold", "qrls", "scancel", "condor_rm")


@pytest.fixture
def stand_ins(machine: Machine) -> Machine:
    """Each says how it was called, and variables that it was given."""
    for name in CALLED:
        machine.program(name, f'printf "%s " {name} "$@" A=${{A-}} B=${{B-}} C=${{C-}}; echo')
    flux = machine.folder / "bin" / "flux"
    machine.program("flux", flux.read_text().replace("#!/bin/sh\n", "").replace(
        "esac", 'run*|cancel*) printf "%s " flux "$@" A=${A-}; echo;; esac'))
    return machine


@pytest.mark.parametrize("program", DASHES)
@pytest.mark.parametrize("target", list(FACTS))
def test_functions_call_what_is_written(target: str, program: str, stand_ins: Machine) -> None:
    """The shim does what ``translate`` says, for the same words; what a function cannot be is told."""
    bodies, outs = [], []
    for line, source, to, out in COMMANDS:
        if to != target:
            continue
        strict = "set -e" if "PARTNAME" in line else "set -eu"
        body, findings = carry(f"{strict}\nN=3\n{line}\n", source, to, program=program)
        unfit = "exec" in line or (program not in ("bash", "zsh") and ("time " in line or "mpirun.lsf" in line))
        launchers = re.findall(r"\w*run(?:\.lsf)?", line)
        assert [t[1] for t in findings if t[0] == "SSS511"] == (launchers[:1] if unfit else [])
        if not unfit:
            bodies.append(f"(\n{body})\n")
            outs.append(f"( N=3; {out} )\n")
    first, second = (stand_ins.printed("".join(texts), target, program) for texts in (bodies, outs))
    assert [x for x in first.split("\n") if "A=" in x] == [x for x in second.split("\n") if "A=" in x]
    assert second.count("A=") >= len(outs)


def test_a_function_takes_what_the_table_knows_and_no_more(stand_ins: Machine) -> None:
    """Another call of the same command, which stays, ends with a message instead of starting something else."""
    body, findings = carry("srun -N 2 -n 4 ./a\nsrun -N 1 ./b || echo $?\nsrun -n 2 --multi-prog c || echo $?\n",
                           "slurm", "sge", asked=ASKED)
    assert findings == [("SSS512", "srun", 1, 1), ("SSS511", "srun", 2, 1), ("SSS511", "srun", 3, 1)]
    assert stand_ins.printed(body, "sge") == (
        "mpirun -np 4 ./a A= B= C= \n2\n2\nsrun: 1 has no equal here\nsrun: --multi-prog has no equal here\n")
    body, _ = carry("scancel 5\nscancel -u me || echo left\n", "slurm", "sge")
    assert stand_ins.printed(body, "sge").startswith("qdel 5 A= B= C= \n")


def test_the_gpus_of_a_node_need_not_be_asked_for_again(stand_ins: Machine) -> None:
    """``--gres`` counts for each node (srun(1)); another number of them is told, and refused by the shim."""
    calls = "srun --gres=gpu:4 -n 4 ./a\nsrun -n 2 --gres gpu:a100:4 ./b\nsrun --gres=gpu:2 ./c"
    body, findings = carry(f"{calls}\n", "slurm", "pbspro", "translate", asked=ASKED)
    assert body == "mpirun -np 4 ./a\nmpirun -np 2 ./b\nsrun --gres=gpu:2 ./c\n"
    assert [t for t in findings if t[0] == "SSS511"] == [("SSS511", "srun", 3, 1)]
    body, _ = carry(f"{calls} || echo $?\n", "slurm", "pbspro", asked=ASKED)
    assert stand_ins.printed(body, "pbspro") == (
        "mpirun -np 4 ./a A= B= C= \nmpirun -np 2 ./b A= B= C= \n2\nsrun: --gres=gpu:2 has no equal here\n")


@pytest.mark.parametrize(("asked", "target", "out"), [
    ({"tasks": "1", "cpus_per_task": "10"}, "sge", "mpirun -np 1"), (WIDE, "torque", "mpirun -np 4"),
    ({"tasks": "1", "cpus_per_task": "10"}, "htcondor", "mpirun -np 1"), (WIDE, "pbspro", "mpirun"),
    (WIDE, "lsf", "mpirun"), ({"tasks": "4"}, "sge", "mpirun"), ({"cpus_per_task": "10"}, "sge", ""),
    ({}, "htcondor", ""), ({}, "torque", "mpirun")])
def test_mpirun_is_told_the_tasks_where_slots_are_no_tasks(asked: dict[str, str], target: str, out: str) -> None:
    """``srun ./a`` of one task with ten processors is no ten tasks in ten slots."""
    body, findings = carry("srun ./a\n", "slurm", target, "translate", asked=asked)
    assert (body, findings[0][0]) == ((f"{out} ./a\n", "SSS512") if out else ("srun ./a\n", "SSS511"))
    body, _ = carry("srun ./a\n", "slurm", target, asked=asked)
    assert (f'srun() {{ {out} "$@"; }}\n' in body) == bool(out)


@pytest.mark.parametrize("value", ["{{n}}", "$(date)", "2) date ;; *", "2-4"])
def test_amounts_that_are_no_numbers_do_not_get_into_commands(value: str) -> None:
    """A placeholder of a template, or worse: it is text of a directive, and no part of the script."""
    asked = {"tasks": value, "nodes": value, "tasks_per_node": value}
    for mode in ("shim", "translate"):
        body, findings = carry(f"srun -N '{value}' ./a\nsrun ./b\n", "slurm", "flux", mode, asked=asked)
        assert body.count(value) == 1
        assert [t[0] for t in findings if t[1] == "srun"][-1:] == ["SSS511"]
        body, _ = carry(f"srun -N {value} -n 4 ./a\n", "slurm", "sge", mode, asked=asked)
        assert body.count(value) == 1


@pytest.mark.parametrize(("source", "line"), [
    ("pbspro", "N=$(wc -l < $PBS_NODEFILE)"), ("torque", "sort -u ${PBS_NODEFILE} > hosts"),
    ("sge", "awk '{print $1}' $PE_HOSTFILE"), ("lsf", "for h in $LSB_HOSTS; do ssh $h; done"),
    ("lsf", "cp $LSB_DJOB_HOSTFILE ."), ("cobalt", "cat ${COBALT_NODEFILE:?}")])
def test_translate_makes_at_the_top_what_a_shim_would(source: str, line: str) -> None:
    """Lists of nodes: the command that makes one stands before the first command, the use as it did."""
    body, findings = carry(f"{line}\n", source, "slurm", "translate")
    assert (body, findings) == carry(f"{line}\n", source, "slurm") and findings == []
    assert body.startswith(f"# >>> sssjob shim: {source} on slurm, ") and body.endswith(f"\n{line}\n")
    assert carry(body, "slurm", source, "translate")[0] == f"{line}\n"


@pytest.mark.parametrize(("source", "target", "line", "definition"), [
    ("slurm", "pbspro", './a $(($SLURM_CPUS_PER_TASK)) "$SLURM_CPUS_PER_TASK"', "SLURM_CPUS_PER_TASK=1"),
    ("torque", "sge", "./a -w ${PBS_WALLTIME}", "PBS_WALLTIME=600"),
    ("torque", "flux", "./a -p ${PBS_NUM_PPN:-1}", "PBS_NUM_PPN=2"),
    ("slurm", "lsf", "./a -m $SLURM_MEM_PER_NODE", "SLURM_MEM_PER_NODE=2048")])
def test_what_a_directive_says_stands_in_one_place(source: str, target: str, line: str, definition: str) -> None:
    """An amount that the target has no variable for is set at the top, where it is changed with the directive."""
    body, _ = carry(f"{line}\n", source, target, "translate", asked=ASKED | {"memory_per_node": "2048"})
    assert body.split("\n")[1:] == [f"export {definition}", "# <<< sssjob shim", line, ""]


def messages(line: str, source: str, target: str, asked: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """What is told of a line that is translated."""
    findings: list[str] = []
    carried(Body(line + "\n", "sh", lambda: asked), FACTS[source], FACTS[target], "translate",
            lambda rule, subject, message, line, column, _: findings.append(message))
    return findings


@pytest.mark.parametrize(("line", "target", "message"), [
    ("srun -n 4 --mem=4G --hint=x ./a", "flux",
     "srun became flux run; --mem, --hint left out, for flux run is told nothing of the kind"),
    ("srun -n 4 --export=ALL,A=1 ./a", "pbspro",
     "srun became mpirun, which is the MPI's and starts its tasks in its own way; whether tasks on other nodes get its "
     "variables depends on the MPI"),
    ("srun -n 4 -o out.%t ./a", "flux", "srun became flux run; -o left out, for flux run is told nothing of the kind"),
    ("srun -n 4 -i in ./a", "pbspro",
     "srun is a command of Slurm; the line is kept: mpirun cannot say a file of standard input"),
    ("srun -n 4 -c $SLURM_CPUS_PER_TASK ./a", "sge",
     "srun became mpirun, which is the MPI's and starts its tasks in its own way"),
])
def test_options_of_a_launcher_that_only_tune_are_left_out_and_told(line: str, target: str, message: str) -> None:
    assert messages(line, "slurm", target, {"cpus_per_task": "2"}) == [message]


def test_the_function_of_a_launcher_changes_nothing_of_the_script(stand_ins: Machine) -> None:
    """Its variables are its own, those that it exports too; the exit status is the command's."""
    stand_ins.program("srun", 'echo "A=${A-none} nodes=$nodes"; exit 3')
    text = "set -eu\nexport nodes=7 sss_tasks=8 A=a\nrunjob --np 4 --envs A=1 : ./a || echo $? $A $sss_tasks\n"
    body, _ = carry(text, "cobalt", "slurm")
    assert stand_ins.printed(body, "slurm") == "A=1 nodes=7\n3 a 8\n"


@pytest.mark.parametrize(("line", "words"), [
    ('run="srun -n 4"', ["srun", "-n", "4"]), ("run='srun -n $N -c 2'", ["srun", "-n", "$N", "-c", "2"]),
    ("run=srun", ["srun"]), ('export run="srun --mpi=pmix"', ["srun", "--mpi=pmix"]),
    ('run="srun -n $((2 * N))"', ["srun"]), ('x="the srun"', []), ("run=srun.log", []), ('run="srun.log -n"', []),
    ('run="${x}srun"', []), ('echo "srun -n 4"', []), ("run=(srun -n 4)", [])])
def test_a_launcher_that_a_variable_holds(line: str, words: list[str]) -> None:
    uses = grammar.Shell(line.encode(), LIMITS).uses(re.compile(rb"(?<!\w)srun(?!\w)"))
    found = [w for use in uses if use.kind == "held" for w in use.words]
    assert [w.text.decode() for w in found] == words == [line[w.start:w.end] for w in found]


@pytest.mark.parametrize("program", DASHES)
@pytest.mark.parametrize(("source", "line"), [("slurm", 'run="srun -n 4"'), ("cobalt", 'run="runjob --np 4"')])
def test_an_option_at_the_end_of_a_call_ends_it(source: str, line: str, program: str, stand_ins: Machine) -> None:
    """The value is missing: shift fails, and in bash the loop would go on for ever."""
    body, _ = carry(f"{line}\n$run {line.split()[1]} || echo ended\n", source, "sge", program=program, asked=ASKED)
    assert stand_ins.printed(body, "sge", program).startswith("ended\n")


def test_a_held_launcher_starts_what_it_says(stand_ins: Machine) -> None:
    text = 'run="srun -n 4"\n$run --quiet -N 2 ./a\n$run --bcast ./b || echo $?\n'
    body, findings = carry(text, "slurm", "sge", asked=ASKED)
    assert findings == [("SSS512", "srun", 1, 6)]
    assert stand_ins.printed(body, "sge") == "mpirun -np 4 ./a A= B= C= \n2\nsrun: --bcast has no equal here\n"
    assert carry(text, "slurm", "sge", "keep") == carry(text, "slurm", "sge", "translate") == (
        text, [("SSS511", "srun", 1, 6)])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("line", "source", "target", "places"), [
    ("mpirun -rmk pbs -np 4 ./a; mpirun --mca plm tm ./a", "pbspro", "slurm", [("-rmk pbs", 8), ("mca plm tm", 37)]),
    ("mpirun -rmk pbs ./a", "pbspro", "torque", []),
    ("export I_MPI_HYDRA_BOOTSTRAP=slurm; echo '-rmk slurm' # -rmk slurm", "slurm", "lsf",
     [("I_MPI_HYDRA_BOOTSTRAP=slurm", 8)]),
    ("mpirun -machinefile $TMPDIR/machines ./a", "sge", "slurm", [("$TMPDIR/machines", 21)]),
    ('cat "${TMPDIR}/machines"', "sge", "flux", [("${TMPDIR}/machines", 6)]),
])
def test_what_tells_an_mpirun_of_its_manager(line: str, source: str, target: str, places: list[tuple[str, int]],
                                             mode: Mode) -> None:
    assert carry(line + "\n", source, target, mode) == (
        line + "\n", [("SSS511", name, 1, column) for name, column in places])


@pytest.mark.parametrize(("line", "is_reported"), [
    ('echo "SLURM_JOB_ID = $SLURM_JOB_ID"', False), ("run --env SLURM_JOB_ID=$SLURM_JOB_ID x", False),
    ('echo -e "SLURM_JOB_ID\\t5"', False), ('[ -e x ] || echo "no SLURM_JOB_ID, set it" >&2', False),
    ("echo SLURM_JOB_ID | envsubst", True), ('echo "export SLURM_JOB_ID" > x.sh', True),
    ("echo '$SLURM_JOB_ID'", True), ("foo SLURM_JOB_ID", True), ("x=$(echo SLURM_JOB_ID); ${!x}", True)])
def test_names_that_people_read(line: str, is_reported: bool) -> None:
    """What is shown, and the name beside its value, is text; what another program may look up is told."""
    assert bool(carry(f"{line}\n", "slurm", "sge", "translate")[1]) is is_reported


def test_what_is_taken_away_need_not_be_there() -> None:
    """``unset`` of a variable that the target does not have is neither told nor a reason to set it."""
    text = "unset SLURM_GTIDS SLURM_JOB_ID; unset -v SLURM_MEM_PER_CPU\necho unset SLURM_GTIDS\n"
    translated, findings = carry(text, "slurm", "pbspro", "translate")
    assert translated == text and [(rule, line) for rule, _, line, _ in findings] == [("SSS510", 2)]
    assert carry(text, "slurm", "pbspro")[0] == text


@pytest.mark.parametrize("text", [
    "((SLURM_NTASKS++))", "((SLURM_NTASKS += 2))", "((--SLURM_NTASKS))", "(( SLURM_NTASKS = 3 ))"])
def test_what_arithmetic_sets_has_its_value_from_above(text: str) -> None:
    """No other name can be counted up in its place, so it is set before the first command."""
    script = carry(text + "\n", "slurm", "pbspro", "translate")[0].splitlines()
    assert script[1:] == [
        'if [ -n "${PBS_NODEFILE+x}" ]; then export SLURM_NTASKS="$(wc -l < "$PBS_NODEFILE")"; fi',
        "# <<< sssjob shim", text]


@pytest.mark.parametrize(("line", "source", "target"), [
    ("srun -N 2 ./a", "slurm", "sge"), ("srun ./a", "slurm", "flux"), ("srun", "slurm", "sge"),
    ("srun --multi-prog x", "slurm", "pbspro"), ("srun -n", "slurm", "pbspro"), ("jsrun ./a", "lsf", "slurm"),
    ("jsrun -n 3 -a 2 -c 3 ./a", "lsf", "slurm"), ("scancel -u $USER", "slurm", "sge"), ("scancel", "slurm", "sge"),
    ("condor_hold 5", "htcondor", "flux"), ("ibrun -o 4 -n 4 ./a", "slurm", "pbspro"), ("lrun -T4 ./a", "lsf", "slurm"),
    ("jsrun -n 4 -a 2 -g 3 ./a", "lsf", "slurm"), ("jsrun -n 4 -a 99999999999999 -c 4 ./a", "lsf", "slurm"),
    ("srun -n 4 -i in ./a", "slurm", "sge"), ("srun -n 4 --export=ALL,'A=1,2' ./a", "slurm", "flux"),
    ("runjob --np 4 : ./a", "cobalt", "sge"),
    ("mpirun.lsf -np 4 ./a", "lsf", "slurm"), ("srun -n 4 --gpus-per-task=1 ./a", "slurm", "sge"),
    ("scontrol show job 5", "slurm", "sge"),
    ("ls | xargs /usr/bin/srun x", "slurm", "sge"),
])
def test_commands_that_stay(line: str, source: str, target: str) -> None:
    body, findings = carry(line + "\n", source, target, "translate")
    assert body == line + "\n" and len(findings) == (0 if "xargs" in line else 1)


def test_slots_are_no_tasks_where_a_task_has_several_processors() -> None:
    assert carry("echo $SLURM_NTASKS\n", "slurm", "sge", asked=WIDE)[1] == [
        ("SSS512", "SLURM_NTASKS", 1, 6)]
    assert carry("echo $SLURM_NTASKS\n", "slurm", "sge", asked={"tasks": "4"})[1] == []
    assert carry("echo $SLURM_NTASKS\n", "slurm", "sge", "translate", asked=WIDE)[0] == "echo $((NSLOTS / 2))\n"
    assert carry("echo $NSLOTS\n", "sge", "slurm", "translate", asked=WIDE)[0] == "echo $((SLURM_NTASKS * 2))\n"
    assert carry("cat $PE_HOSTFILE\n", "sge", "pbspro", asked=WIDE)[1] == [("SSS512", "PE_HOSTFILE", 1, 5)]


def test_elements_of_an_array_have_one_id_on_some() -> None:
    assert carry("echo $SLURM_JOB_ID\n", "slurm", "sge", asked=ARRAY)[1] == [("SSS512", "SLURM_JOB_ID", 1, 6)]


def test_a_job_that_starts_elsewhere_does_not_know_where_it_was_submitted() -> None:
    assert 'SLURM_SUBMIT_DIR="${PWD}"' in carry("cd $SLURM_SUBMIT_DIR\n", "slurm", "flux")[0]
    assert carry("cd $SLURM_SUBMIT_DIR\n", "slurm", "flux", asked={"directory": "/x"})[1] == [
        ("SSS510", "SLURM_SUBMIT_DIR", 1, 4)]


# --- there and back
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_the_shim_goes_where_it_is_not_needed(source: str, target: str) -> None:
    names = [n for n in variables(FACTS[source]) if n not in variables(FACTS[target])]
    text = "".join(f"echo ${n}\n" for n in names)
    there, _ = carry(text, source, target, asked=ASKED)
    assert carry(there, target, target) == (there, [])              # a fixed point
    assert carry(there, target, source, asked=ASKED)[0] == text         # and back
    third = next(n for n in FACTS if n not in (source, target))
    assert carry(there, target, third, asked=ASKED)[0] == carry(text, source, third, asked=ASKED)[0]


def test_a_shim_for_two() -> None:
    """A body that was given a shim, and then commands of the system that it came to."""
    there, _ = carry("echo $SLURM_JOB_NAME\n", "slurm", "sge")
    mixed = there + "echo $SGE_O_HOST\n"
    body, findings = carry(mixed, "sge", "pbspro")
    assert body.startswith("# >>> sssjob shim: slurm+sge on pbspro, ") and findings == []
    assert body.endswith("# <<< sssjob shim\necho $SLURM_JOB_NAME\necho $SGE_O_HOST\n")
    assert carry(body, "pbspro", "lsf")[0].startswith("# >>> sssjob shim: slurm+sge on lsf, ")


def test_an_edited_shim_stays() -> None:
    there, _ = carry("echo $SLURM_JOB_NAME\n", "slurm", "sge")
    edited = there.replace("${JOB_NAME}", "my-${JOB_NAME}")
    body, findings = carry(edited, "sge", "slurm")
    assert body.endswith(edited) and ("SSS518", "shim", 1, 1) in findings
    assert carry("# >>> sssjob shim: slurm on sge, 00000000\necho\n", "sge", "slurm") == (
        "# >>> sssjob shim: slurm on sge, 00000000\necho\n", [])            # no end


def test_places_below_a_shim_are_those_of_the_script() -> None:
    there, _ = carry("echo $SLURM_JOB_NAME $SLURM_FOO\n", "slurm", "sge")
    assert there.count("\n") == 4
    assert carry(there, "sge", "pbspro")[1] == [("SSS510", "SLURM_FOO", 4, 22)]


# --- other languages, bad input
@pytest.mark.parametrize(("line", "name"), [
    ("#!/bin/bash -l", "bash"), ("#! /usr/bin/env python3", "python3"), ("#!/usr/bin/env -S bash -eu", "bash"),
    ("#!/usr/bin/env A=b zsh", "zsh"), ("#!", "sh"), ("", "sh"), ("#!/bin/csh -f", "csh")])
def test_interpreter(line: str, name: str) -> None:
    assert interpreter(line) == name


@pytest.mark.parametrize(("program", "text"), [
    ("python3", "import os\nprint(os.environ['SLURM_JOB_ID'])\n# SLURM_NNODES\nx = os.environ['SLURM_JOB_ID']\n"),
    ("fish", "echo y\nif $SLURM_JOB_ID echo x\n"), ("perl", "print\n$ENV{SLURM_JOB_ID};\n")])
def test_other_languages_are_kept(program: str, text: str) -> None:
    for mode in MODES:
        body, findings = carry(text, "slurm", "sge", mode, program=program)
        assert body == text and [t[:3] for t in findings] == [("SSS515", "SLURM_JOB_ID", 2)]


@pytest.mark.parametrize(("program", "text", "places"), [
    ("fish", "echo $NSLOTS ${JOB_ID} $?QUEUE REQUEST\nqsub x\nif (1) echo qsub; qdel 5 | qstat\n# qsub $NHOSTS\n",
     [("NSLOTS", 1, 7), ("JOB_ID", 1, 16), ("QUEUE", 1, 26), ("qsub", 2, 1), ("qdel", 3, 19), ("qstat", 3, 28)]),
    ("tcsh", "set QUEUE = x\nsetenv JOB_ID 5\necho $QUEUE $JOB_ID\ncat $TMPDIR/machines\n",
     [("$TMPDIR/machines", 4, 5)]),
    ("python3", "j = os.environ['JOB_ID']\nos.getenv(\"QUEUE\")\nrun(['qsub', 'x'])\nqdel = 'JOB_NAME'\n",
     [("JOB_ID", 1, 17), ("QUEUE", 2, 12), ("qsub", 3, 7)]),
    ("perl", "print $ENV{NSLOTS}; system('qdel 5');\n", [("NSLOTS", 1, 12), ("qdel", 1, 29)]),
])
def test_names_in_other_languages(program: str, text: str, places: list[tuple[str, int, int]]) -> None:
    """Names that do not tell whose they are count where a variable is read or a command stands."""
    for mode in MODES:
        assert carry(text, "sge", "slurm", mode, program=program) == (text, [("SSS515", *place) for place in places])


CSH = """if ($?SLURM_JOB_ID) echo "$SLURM_JOB_ID $SLURM_JOB_NAME"
set n = $SLURM_NTASKS
@ m = $n * 2
if (! $?SLURM_ARRAY_TASK_ID) echo $m `cat $SLURM_NOWHERE`
srun ./a
"""


@pytest.mark.parametrize("mode", ["shim", "translate"])
def test_csh_finds_the_variables_of_the_source(mode: Mode, tmp_path: Path) -> None:
    """Lines of sh work them out, whatever signs are in them; what has no equal, and commands, are told as before."""
    body, findings = carry(CSH, "slurm", "pbspro", mode, program="tcsh")
    assert body.endswith(f"# <<< sssjob shim\n{CSH}") and carry(body, "pbspro", "slurm", mode, program="csh")[0] == CSH
    assert findings == [("SSS512", "SLURM_NTASKS", 2, 10), ("SSS515", "SLURM_NOWHERE", 4, 44), ("SSS515", "srun", 5, 1)]
    if shutil.which("tcsh") is None:
        pytest.skip("no tcsh")
    (tmp_path / "nodes").write_text("n1\nn1\nn2\n")
    text = body.replace("`cat $SLURM_NOWHERE`", "end").replace("srun ./a\n", "")
    done = subprocess.run(["tcsh", "-f"], input=text, capture_output=True, text=True, check=True, env={
        "PATH": "/usr/bin:/bin", "PBS_JOBID": "77.srv", "PBS_JOBNAME": "it's $HOME! \\ \"a\" `b`",
        "PBS_NODEFILE": str(tmp_path / "nodes"), "TMPDIR": str(tmp_path)})
    assert (done.stdout, done.stderr) == ("77 it's $HOME! \\ \"a\" `b`\n6 end\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["nodes"]


@pytest.mark.parametrize("text", [
    "echo $SLURM_JOB_ID\nif [ ; then ((\n", "echo \"$SLURM_JOB_ID\n", "$(" * 500 + "$SLURM_JOB_ID",
    "cat <<EOF\n$SLURM_JOB_ID\n", "case x in $SLURM_JOB_ID", "\x01\udc80 ${SLURM_JOB_ID\n",
    "${SLURM_JOB_ID:-${A:-$(srun}\n",
    "|é" * 15_000 + "$SLURM_JOB_ID", "<<" * 400 + "$SLURM_JOB_ID", "((((" * 3000 + "SLURM_JOB_ID"])
def test_broken_shell_is_kept_and_told(text: str) -> None:
    body, findings = carry(text, "slurm", "sge", "translate", seconds=0.1)
    assert findings or "SLURM" not in body
    body, _ = carry(text, "slurm", "sge", "shim", seconds=0.1)
    assert body.endswith(text)


@pytest.mark.parametrize("text", [
    "echo $SLURM_JOB_ID\n" * 70_000,                            # more bytes than are parsed
    "<<" * 50_000 + "$SLURM_JOB_ID",                            # takes time by its square
    "|é" * 20_000 + "$SLURM_JOB_ID",
    "(" * 70_000 + "echo $SLURM_JOB_ID", "\"$(" * 30_000 + "$SLURM_JOB_ID", "$SLURM_JOB_ID " * 3000])
def test_large_bodies_are_not_looked_at_in_whole(text: str) -> None:
    _, findings = carry(text, "slurm", "sge", "translate", seconds=0.1)
    assert "SSS516" in {t[0] for t in findings}
    assert len(findings) <= LIMITS.shell_uses + 2


@pytest.mark.parametrize("mode", ["shim", "translate"])
def test_a_command_of_many_words_is_told_and_not_looked_at(mode: Mode) -> None:
    words = "".join(f" w{i}" for i in range(LIMITS.shell_words))
    body, findings = carry(f"A=1 srun -n 4{words}\n", "slurm", "torque", mode)
    assert body.endswith(f"A=1 srun -n 4{words}\n") and [t[0] for t in findings] == ["SSS511"]
    uses = list(grammar.Shell(f"srun{words}\n".encode(), LIMITS).uses(re.compile(rb"srun")))
    assert [(u.kind, u.long, u.words) for u in uses] == [("command", True, ())]     # no list of words for each name


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "_parser", lambda: None)
    with pytest.raises(UsageError, match="tree-sitter-bash are not installed"):
        carry("echo $SLURM_JOB_NAME\n", "slurm", "sge", "translate")
    body, findings = carry("# $SLURM_NNODES\necho $SLURM_JOB_NAME\n", "slurm", "sge")
    assert "SLURM_JOB_NAME=" in body and "SLURM_NNODES=" not in body and findings == []
    for mode in ("shim", "keep"):
        assert carry("date\nsrun ./a\nsrun ./b\n", "slurm", "sge", mode) == (
            "date\nsrun ./a\nsrun ./b\n", [("SSS516", "script", 2, 1)])       # told, and once


def test_the_tables_hold_together() -> None:
    meanings = {m for f in FACTS.values() for m in f.variables.values()}
    for name, facts in FACTS.items():
        assert facts.name == name
        assert set(facts.gives) <= meanings | {"array_id", "array_job_name"}
        assert set(facts.absent) <= set(facts.variables)
        assert set(facts.words) <= {"cancel", "hold", "release", "launch"}
        for value in facts.gives.values():
            assert subprocess.run(["sh", "-n", "-c", f'x="{value.text}"'], check=False).returncode == 0




# --- by way of whole scripts
def converted(text: str, source: str, target: str, **options: str) -> tuple[str, list[tuple[str, int]]]:
    """The script of the target, and (rule, line) of the findings about its body."""
    document = get(source).read(text.encode(), ReadContext("x", Findings("x")))
    context = WriteContext(Findings("x"), options=options)
    body = get(target).write(document, context)
    return body, [(f.rule, f.line) for f in context.findings if "SSS510" <= f.rule <= "SSS516"]


SCRIPT = """\
#!/bin/bash
# a comment
#SBATCH --job-name=fit

cd "$SLURM_SUBMIT_DIR"
# another
srun ./a > $SLURM_JOB_ID
"""


@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_there_and_back(target: str) -> None:
    there, findings = converted(SCRIPT, "slurm", target)
    assert findings == [("SSS512", 7)]
    assert there.startswith("#!/bin/bash\n# a comment\n#PBS -N fit\n# >>> sssjob shim")
    assert there.partition("# <<< sssjob shim\n")[2] == SCRIPT.partition("=fit\n")[2]
    assert converted(there, target, target) == (there, [])
    back, _ = converted(there, target, "slurm")
    assert back == SCRIPT


def test_the_job_s_own_amounts_are_known() -> None:
    body, findings = converted("#!/bin/sh\n#SBATCH -n 4 -c 3 --mem=2G\necho $SLURM_CPUS_PER_TASK $SLURM_MEM_PER_NODE\n",
                           "slurm", "pbspro")
    assert findings == []
    assert "export SLURM_CPUS_PER_TASK=3\nexport SLURM_MEM_PER_NODE=2048\n" in body


def test_the_shell_of_the_directives_counts() -> None:
    """-S /bin/csh: the #! line is not what runs it."""
    text = "#!/bin/sh\n#PBS -S /bin/csh\ncd $PBS_O_WORKDIR\n"
    body, findings = converted(text, "pbspro", "slurm")
    assert findings == [] and "sh > $sss_shim << 'SSSJOB'" in body


# --- any text
PIECES = st.sampled_from([
    "echo ", "$SLURM_JOB_ID", "${SLURM_NTASKS}", "${SLURM_JOB_NAME:-x}", "$((SLURM_NNODES+1))", "'", '"', "`", "$(",
    ")", "{ ", "; }", "\n", " ", ";", "|", "# ", "srun -n 2 ./a", "scancel $SLURM_JOB_ID", "<<EOF\n", "EOF\n",
    "<<'E'\n", "E\n", "if ", "then ", "fi\n", "SLURM_JOB_ID", "=", "\\", "é", "\udc80", "${", "}", "[[ ", " ]]", "((",
    "))", "case x in x) ", "esac"])


@settings(max_examples=examples(75))
@given(st.lists(PIECES, max_size=25).map("".join), st.sampled_from(list(FACTS)))
def test_any_text(text: str, target: str) -> None:
    """Never an exception; what a shell can read it can still read; a shim only stands before the text."""
    body, _ = carry(text, "slurm", target, "translate", asked=ASKED)
    assert carry(text, "slurm", target, "keep")[0] == text
    assert carry(text, "slurm", target, asked=ASKED)[0].endswith(text)
    if body != text:
        before, after = (subprocess.run(["bash", "-n"], input=t.encode("utf-8", "surrogateescape"), capture_output=True,
                                        check=False) for t in (text, body))
        assert before.returncode != 0 or after.returncode == 0


@pytest.mark.parametrize(("source", "asked", "tasks"), [
    ("sge", {}, "1"), ("sge", {"processors": "4"}, ""), ("torque", {"nodes": "2"}, "2"), ("torque", {"tasks": "8"}, ""),
    ("lsf", {}, "1")])
def test_tasks_that_nobody_asked_for(source: str, asked: dict[str, str], tasks: str) -> None:
    """The others say how many slots any job has; Slurm says it where the job asks for a number of tasks."""
    name = {"sge": "NSLOTS", "torque": "PBS_NP", "lsf": "LSB_DJOB_NUMPROC"}[source]
    out, findings = carry(f"echo n-${name}.txt $(({name}*2))\n", source, "slurm", "translate", asked)
    value, count = (f"${{SLURM_NTASKS:-{tasks}}}",) * 2 if tasks else ("$SLURM_NTASKS", "SLURM_NTASKS")
    assert out == f"echo n-{value}.txt $(({count}*2))\n" and [rule for rule, *_ in findings if rule != "SSS517"] == []


def test_words_with_several_variables() -> None:
    """The grammar of the shell sees the second name of a word for text."""
    out, _ = carry("cp a $HOME/$JOB_ID.log; tar czf $HOME/run_$JOB_ID.tgz d > $HOME/out-$NSLOTS-cores.txt\n", "sge",
                   "slurm", "translate", {"processors": "2"})
    assert out == ("cp a $HOME/$SLURM_JOB_ID.log; tar czf $HOME/run_$SLURM_JOB_ID.tgz d "
                   "> $HOME/out-$SLURM_NTASKS-cores.txt\n")


@pytest.mark.parametrize(("text", "source", "target", "places"), [
    ("[ -e done ] || exit 99\n", "sge", "slurm", [("exit 99", 16)]),
    ("f && { exit 100; }\n", "slurm", "sge", [("exit 100", 8)]),
    ("if x; then exit 99; fi\n", "sge", "pbspro", [("exit 99", 12)]),
    ("# exit 99\necho exit 99 'exit 99'\nexit 98\n", "sge", "slurm", []), ("exit 99\n", "slurm", "pbspro", []),
])
def test_exit_codes_that_are_orders(text: str, source: str, target: str, places: list[tuple[str, int]]) -> None:
    """Grid Engine runs a job again that ends with 99 (sge_diagnostics(1)): told in both directions."""
    for mode in MODES:
        body, findings = carry(text, source, target, mode)
        assert body == text
        assert [(subject, column) for rule, subject, _, column in findings if rule == "SSS511"] == places


@pytest.mark.parametrize(("source", "line", "rules"), [
    ("slurm", "echo SLURM_NTASKS: 4", []), ("torque", 'echo "(PBS_ARRAYID) index"', []),
    ("slurm", "awk 'BEGIN { print ENVIRON[\"SLURM_JOB_ID\"] }'", ["SSS513"]),
    ("slurm", "printenv SLURM_JOB_ID", ["SSS513"]),
    ("slurm", "echo 'cd $SLURM_SUBMIT_DIR' >> x.sh", ["SSS513"]),
    ("slurm", "bash -c 'echo \\$SLURM_JOB_ID'", ["SSS513"])])
def test_words_that_people_read_are_not_told(source: str, line: str, rules: list[str]) -> None:
    """A label stays, and nobody has to look at it; what another program reads is told."""
    body, findings = carry(f"{line}\n", source, "sge", "translate")
    assert body == f"{line}\n" and [rule for rule, *_ in findings] == rules


@pytest.mark.parametrize(("asked", "target", "out"), [
    ({"nodes": "2"}, "flux", "flux run -n 2 -N 2 ./a"),
    ({"nodes": "2", "tasks_per_node": "4", "tasks": "8"}, "cobalt", "aprun -n 8 -N 4 ./a"),
    ({"tasks": "8", "cpus_per_task": "6", "gpus_per_node": "4", "nodes": "1"}, "cobalt", "aprun -n 8 -d 6 ./a"),
    ({"tasks": "4", "cpus_per_task": "6", "gpus_per_node": "8", "nodes": "1"}, "flux", "flux run -n 4 -c 6 -g 2 ./a"),
    ({"tasks": "4", "gpus_per_task": "1"}, "flux", "flux run -n 4 -g 1 ./a"),
    ({"tasks": "4", "gpus": "6"}, "flux", "srun ./a"), ({"tasks": "4", "gpus": "4"}, "flux", "flux run -n 4 -g 1 ./a"),
    ({"tasks": "3", "nodes": "2"}, "flux", "flux run -n 3 -N 2 ./a"), ({"nodes": "{n}"}, "flux", "srun ./a"),
    ({"nodes": "2", "tasks_per_node": "x"}, "flux", "srun ./a"), ({}, "flux", "srun ./a")])
def test_tasks_that_srun_starts_unasked(asked: dict[str, str], target: str, out: str, stand_ins: Machine) -> None:
    """One on each node, or as many as the job says of a node, each with its share of the job: a launcher that knows
    nothing of the job is told. Without any number the call stays, and where a task has no GPUs of its own."""
    assert carry("srun ./a\n", "slurm", target, "translate", asked=asked)[0] == f"{out}\n"
    if not out.startswith("srun"):
        body, _ = carry("srun ./a\n", "slurm", target, asked=asked)
        assert stand_ins.printed(body, target).startswith(out)


@pytest.mark.parametrize(("source", "name", "array", "value", "rules"), [
    ("sge", "JOB_ID", True, "$SLURM_ARRAY_JOB_ID", []), ("lsf", "LSB_JOBID", True, "$SLURM_ARRAY_JOB_ID", []),
    ("sge", "JOB_ID", False, "$SLURM_JOB_ID", []), ("torque", "PBS_JOBID", True, "$SLURM_JOB_ID", []),
    ("pbspro", "PBS_JOBID", True, "$SLURM_JOB_ID", [])])
def test_the_id_that_all_elements_of_an_array_share(source: str, name: str, array: bool, value: str,
                                                    rules: list[str]) -> None:
    """Torque says with the number of the array which element it is; the others have the number alone."""
    out, findings = carry(f"echo ${name}", source, "slurm", "translate", {"array": "1-4"} if array else {})
    assert out == f"echo {value}"
    assert [finding[0] for finding in findings] == rules


@pytest.mark.parametrize("line", [
    "trap 'echo \"$SLURM_JOB_ID\"' EXIT", "eval 'echo $SLURM_JOB_ID'", "bash -c 'echo ${SLURM_JOB_ID#x}'",
    "echo | xargs /bin/sh -ec 'echo $SLURM_JOB_ID'"])
def test_text_that_a_shell_of_the_job_runs_finds_its_variables(line: str, tmp_path: Path) -> None:
    """What is run when the job ends, or by a shell that it starts, has its variables set above."""
    out, findings = carry(f"{line}\n", "slurm", "sge", "translate", program="bash")
    assert out.endswith(f"\n{line}\n") and findings == []
    shown = subprocess.run(["bash", "-c", out], env={"PATH": os.environ["PATH"], "JOB_ID": "77"}, text=True,
                           capture_output=True, check=True, timeout=60, cwd=tmp_path).stdout
    assert shown == "77\n"


def test_variables_in_the_text_of_what_a_launcher_starts() -> None:
    """A number of the node is another one in each task, and none of the script's; others may not get there."""
    out, findings = carry("srun bash -c 'echo $SLURM_NODEID $SLURM_JOB_ID'\n", "slurm", "pbspro", "translate",
                      {"tasks": "4"}, "bash")
    assert [(rule, name) for rule, name, *_ in findings] == [
        ("SSS513", "SLURM_NODEID"), ("SSS512", "SLURM_JOB_ID"), ("SSS512", "srun")]
    assert "export SLURM_JOB_ID=" in out and "export SLURM_NODEID" not in out
    assert out.endswith("mpirun bash -c 'echo $SLURM_NODEID $SLURM_JOB_ID'\n")


def test_ids_of_elements_that_another_manager_gives_all_of_them() -> None:
    """Directories named by 12[3].server are one for all elements where the id is 12."""
    _, findings = carry("mkdir $PBS_JOBID", "pbspro", "lsf", "translate", {"array": "1-4"})
    assert [finding[:2] for finding in findings] == [("SSS512", "PBS_JOBID")]
    assert carry("mkdir $PBS_JOBID", "pbspro", "lsf", "translate")[1] == []


@pytest.mark.parametrize(("line", "column"), [
    ('snakemake --cluster "qsub -V -pe smp {threads}"', 22), ("nextflow run x --cmd='qsub -q a'", 23),
    ('ssh login "cd $PWD && qsub -N a x.sh"', 23), ('parallel "qsub ./a {}" ::: 1 2', 11),
    ('echo "qsub -q x failed"', 0), ("grep 'qsub' log", 0), ('mail -s "qsub failed" me', 0), ("x  # 'qsub -V'", 0)])
def test_calls_in_text_that_another_program_runs(line: str, column: int) -> None:
    """Workflow engines are told the submit command as text: no mode carries it, and all tell it."""
    for mode in MODES:
        out, findings = carry(f"{line}\n", "sge", "slurm", mode)
        assert out == f"{line}\n"
        assert findings == ([("SSS513", "qsub", 1, column)] if column else [])


TRAPS = [("scancel", "trap 'echo late; scancel $SLURM_JOB_ID' TERM; kill $$"),
         ("scancel", "trap \"scancel $SLURM_JOB_ID\" 0"), ("scancel", "eval 'if :; then scancel 4242; fi'"),
         ("srun", 'eval "srun -n 2 echo task"')]


@pytest.mark.parametrize(("name", "text"), TRAPS)
def test_commands_in_the_text_of_a_trap_are_functions_of_the_shim(name: str, text: str, tmp_path: Path) -> None:
    """They run in this shell, later; no other mode can give them."""
    lines, findings = carry(f"#!/bin/bash\n{text}\n", "slurm", "sge", program="bash")
    assert text in lines and f"\n{name}() " in lines and not [rule for rule, *_ in findings if rule == "SSS511"]
    for program, words in (("qdel", 'echo "deleted $*"'), ("mpirun", 'echo "started $*"')):
        (tmp_path / program).write_text(f"#!/bin/sh\n{words}\n")
        (tmp_path / program).chmod(0o755)
    ran = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, check=False,
                         env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "JOB_ID": "4242"})
    assert ran.stdout.splitlines()[-1] == {"scancel": "deleted 4242", "srun": "started -np 2 echo task"}[name]
    for mode in ("translate", "keep"):
        _, findings = carry(f"#!/bin/bash\n{text}\n", "slurm", "sge", mode, program="bash")
        assert [one for one in findings if one[0] == "SSS511"] == [
            ("SSS511", name, 2, text.index(name) + 1)]


@pytest.mark.parametrize(("text", "rules"), [
    ("trap 'scontrol requeue $SLURM_JOB_ID' USR1", ["SSS511"]), ("trap \"squeue\" 0", ["SSS511"]),
    ("trap 'a && squeue | b' 0", ["SSS511"]), ("trap '(squeue)' 0", ["SSS511"]), ("trap 'a\n squeue' 0", ["SSS511"]),
    ("trap 'echo squeue; b squeue' 0", []), ("trap 'squeue=1' 0", []), ("trap 'squeue.sh' 0", []),
    ("trap squeue 0", []), ("echo 'squeue'", [])])
def test_what_a_trap_runs_of_commands_without_an_equal_is_told(text: str, rules: list[str]) -> None:
    """As it is outside of it, and only where the text has a command and no word."""
    for mode in MODES:
        body, findings = carry(f"#!/bin/bash\n{text}\n", "slurm", "sge", mode, program="bash")
        assert text in body and [rule for rule, subject, *_ in findings if not subject.startswith("SLURM")] == rules
