"""Scripts that print what they see run on a real manager as they are, and converted on the other one: they leave the
same files with the same text, in both body modes, or a finding has told what differs. So they do when sssjob submits
them as they are, to their own manager.

All jobs of all scripts are submitted at once; a file of each tells that it has ended. ``PLACE`` in a script is the
folder that it runs in, of which there is one for each run.
"""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sssjob.conversion.site import read_site
from sssjob.findings import Finding, Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from tests.labs.test_lab_bodies import lab

pytestmark = pytest.mark.lab
SITE = read_site("""\
name = "lab"
[sge.pe.smp]
allocation_rule = "$pe_slots"
[sge.pe.mpi]
allocation_rule = "$fill_up"
[sge.complex]
gpu = "GPU per job"
mem = "Memory"
""")
SUBMIT = {"slurm": "sbatch --parsable", "sge": "qsub -terse"}
#: The mode of a script that sssjob submits.
RUN = "run"
#: A stand-in for mpirun, which the labs lack: so many copies, one after another, and without a number one a slot.
MPIRUN = """\
#!/bin/sh
copies=${NSLOTS:-${SLURM_NTASKS:-1}}
case $1 in -np | -n) copies=$2; shift 2 ;; esac
for copy in $(seq "$copies"); do "$@"; done
"""


@dataclass(frozen=True)
class Case:
    """A script. told: what a finding says of a difference (empty: there is none); elements: of an array, or of jobs
    in all; files: that are there before; modes: in which it is converted."""

    source: str
    directives: str
    body: str
    told: str = ""
    elements: int = 1
    files: dict[str, str] = field(default_factory=dict)
    modes: tuple[str, ...] = ("shim", "translate")
    first: str = "#!/bin/bash"

    def text(self, place: Path) -> str:
        """The script for a place; its last line says that it, or an element of it, has ended."""
        end = "mktemp PLACE/.done.XXXXXX > /dev/null\n" if self.first.endswith("sh") else ""
        return f"{self.first}\n{self.directives}\n{self.body}\n{end}".replace("PLACE", str(place))


OUT = "#SBATCH -o PLACE/out"
GRID = "#$ -S /bin/bash -j y -o PLACE/out"
#: Scripts that another one submits, each with the end that ``Case.text`` gives.
TWO_STEPS = {f"{name}.sh": f"#!/bin/bash\n#$ -S /bin/bash -cwd\n{pause}echo {name} >> order\n"
             "mktemp .done.XXXXXX > /dev/null\n" for name, pause in (("one", "sleep 3\n"), ("two", ""))}
SLURM = {
    "memory of the job": Case("slurm", f"{OUT}\n#SBATCH -n 1 --mem=200M", 'echo "$SLURM_MEM_PER_NODE $SLURM_NTASKS"'),
    "memory of a processor": Case("slurm", f"{OUT}\n#SBATCH -N 1 -n 2 --mem-per-cpu=100M",
                                  'echo "${SLURM_MEM_PER_CPU} ${SLURM_MEM_PER_NODE-unset}"'),
    "gpus": Case("slurm", f"{OUT}\n#SBATCH -n 1 --gpus-per-node=1",
                 'echo "$SLURM_GPUS_PER_NODE ${SLURM_GPUS_PER_TASK-unset}"'),
    "threads": Case("slurm", f"{OUT}\n#SBATCH -n 1 -c 3",
                    'export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK; echo "$OMP_NUM_THREADS ${SLURM_CPUS_PER_TASK:-1}"'),
    "an appended file": Case("slurm", f"{OUT} --open-mode=append", "echo new", files={"out": "old\n"}),
    "an emptied file": Case("slurm", OUT, "echo new", "Grid Engine appends to a file that is there",
                            files={"out": "old\n"}),
    "streams apart": Case("slurm", "#SBATCH -J apart -o PLACE/%x.out -e PLACE/%x.err", "echo one; echo two >&2"),
    "ids in names": Case("slurm", "#SBATCH -J ids -o PLACE/%x-%j.out", "echo $SLURM_JOB_ID; echo two >&2"),
    "underscores between ids": Case("slurm", "#SBATCH -a 2-4 -o PLACE/x_%A_%a_z.out", "echo $SLURM_ARRAY_TASK_ID",
                                    elements=3),
    "errors alone": Case("slurm", "#SBATCH -o /dev/null -e PLACE/err", "echo one; echo two >&2"),
    "input": Case("slurm", f"{OUT} -i PLACE/in", "cat; echo read", files={"in": "a line\n"}),
    "a directory": Case("slurm", f"{OUT} -D PLACE/sub dir".replace("sub dir", "sub"), "pwd; ls",
                        files={"sub/file": ""}),
    "an array from 0": Case("slurm", "#SBATCH -a 0-2 -o /dev/null", "echo $SLURM_ARRAY_TASK_ID > PLACE/$"
                            "{SLURM_ARRAY_TASK_ID}.txt", elements=3),
    "an array with a step": Case(
        "slurm", "#SBATCH -a 1-7:3 -o PLACE/out.%a",
        'echo "$SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX $SLURM_ARRAY_TASK_STEP '
        '$SLURM_ARRAY_TASK_COUNT"', elements=3),
    "the first of an array": Case(
        "slurm", "#SBATCH -a 5-6 -o PLACE/out.%a",
        'if [ "$SLURM_ARRAY_TASK_ID" -eq "$SLURM_ARRAY_TASK_MIN" ]; then echo first; else echo other; fi', elements=2),
    "an index as a line": Case("slurm", "#SBATCH -a 1-3 -o PLACE/out.%a",
                               'sed -n "${SLURM_ARRAY_TASK_ID}p" PLACE/list', elements=3, files={"list": "a\nb\nc\n"}),
    "a name with a blank": Case("slurm", f'{OUT} -J "my job"', 'echo "$SLURM_JOB_NAME"',
                                "is not taken there; it is my_job"),
    "the submitter's variables": Case("slurm", f"{OUT} --export=ALL,A=1", 'echo "$A ${LAB_OUTSIDE-unset}"'),
    "none of them": Case("slurm", f"{OUT} --export=NONE", 'echo "${LAB_OUTSIDE-unset}"'),
    "one of them": Case("slurm", f"{OUT} --export=LAB_OUTSIDE,B=x", 'echo "${LAB_OUTSIDE-unset} $B"'),
    "a live here-document": Case("slurm", f"{OUT} -J live -n 2 -N 1",
                                 "cat <<E\n$SLURM_JOB_NAME ${SLURM_NTASKS} $((SLURM_NTASKS + 1)) \\$SLURM_NTASKS\nE"),
    "a dead here-document": Case("slurm", f"{OUT} -J dead", "cat <<'E'\n$SLURM_JOB_NAME\nE"),
    "an indented here-document": Case("slurm", f"{OUT} -J tabs", "cat <<-E\n\t$SLURM_JOB_NAME\n\tE"),
    "operators": Case("slurm", f"{OUT} -J a-b-c",
                      'echo "${SLURM_JOB_NAME%%-*} ${#SLURM_JOB_NAME} ${SLURM_JOB_NAME/b/x} ${SLURM_JOB_NAME:2:1}"'),
    "indirection": Case("slurm", f"{OUT} -J direct", "name=SLURM_JOB_NAME; echo ${!name}", modes=("shim",)),
    "arithmetic": Case("slurm", f"{OUT} -n 3 -N 1", "((n = SLURM_NTASKS * 2)); let m=SLURM_NTASKS+1; echo $n $m; "
                       "for ((i = 0; i < SLURM_NTASKS; i++)); do echo $i; done"),
    "words": Case("slurm", f"{OUT} -J word", 'echo $HOME/$SLURM_JOB_NAME.log x.$SLURM_JOB_NAME.$USER.y "$HOME"/'
                  '"$SLURM_JOB_NAME".z \'$SLURM_JOB_NAME\''),
    "backquotes": Case("slurm", f"{OUT} -J back", "echo `echo $SLURM_JOB_NAME` $(basename $SLURM_JOB_NAME)"),
    "unset under set -u": Case("slurm", OUT, 'set -eu; echo "${SLURM_ARRAY_TASK_ID:-none} ${SLURM_RESTART_COUNT:-0}"'),
    "a trap of its own": Case("slurm", f"{OUT} -J trapped", 'trap \'echo "bye $SLURM_JOB_NAME"\' EXIT; echo work'),
    "a trap on a signal": Case("slurm", f"{OUT} -J caught", 'trap \'echo "got $SLURM_JOB_NAME" "${SLURM_NTASKS:-1}"\' '
                               "USR1; kill -USR1 $$; echo on"),
    "text of another shell": Case("slurm", f"{OUT} -J inner -n 2 -N 1", 'bash -c \'echo "$SLURM_JOB_NAME $0" '
                                  '"${SLURM_NTASKS}"\' word; bash -c "echo \\$SLURM_NTASKS $SLURM_JOB_NAME"; '
                                  'eval \'echo "$SLURM_JOB_NAME"\''),
    "memory of one task's threads": Case("slurm", f"{OUT}\n#SBATCH -n 1 -c 3 --mem=300M",
                                         'echo "$SLURM_MEM_PER_NODE $SLURM_CPUS_PER_TASK"'),
    "a job after another": Case("slurm", OUT, 'id=$(sbatch --parsable -o /dev/null one.sh); sbatch -d afterany:$id '
                                "-o /dev/null two.sh > /dev/null", elements=3, files=TWO_STEPS),
    "a function": Case("slurm", f"{OUT} -J fun", 'f() { echo "$1 $SLURM_JOB_NAME"; }; f a; (f b); f c | cat'),
    "a child process": Case("slurm", f"{OUT} -J child", 'bash -c \'echo "${SLURM_JOB_NAME}"\'', modes=("shim",)),
    "a plain shell": Case("slurm", f"{OUT} -n 2 -N 1", 'echo "$((SLURM_NTASKS)) $SLURM_JOB_NUM_NODES"',
                          first="#!/bin/sh"),
    "a list of nodes": Case("slurm", f"{OUT} -N 1 -n 2",
                            'scontrol show hostnames "$SLURM_JOB_NODELIST" > PLACE/.n; wc -l < PLACE/.n'),
    "tasks by the launcher": Case("slurm", f"{OUT} -N 1 -n 2", "srun echo task; srun -n 1 echo one"),
    "a launcher in a variable": Case("slurm", f"{OUT} -N 1 -n 2", 'run="srun -n 2"; $run echo task', modes=("shim",)),
    "a limit": Case("slurm", f"{OUT}\nulimit -c 0", "ulimit -c"),
    "where it was submitted": Case("slurm", OUT, 'cd /; cd "$SLURM_SUBMIT_DIR"; pwd'),
    "another language": Case("slurm", OUT, "import os, tempfile; print(os.environ.get('SLURM_JOB_NAME', 'unset')); "
                             "tempfile.mkstemp(prefix='.done.', dir='PLACE')",
                             "the script uses SLURM_JOB_NAME of Slurm", first="#!/usr/bin/env python3"),
}
SGE = {
    "slots of a serial job": Case("sge", GRID, 'echo "$NSLOTS $((NSLOTS * 2)) plain-$NSLOTS.txt"'),
    "slots of a host": Case("sge", f"{GRID} -pe smp 3", 'echo $NSLOTS; awk "{ n += \\$2 } END { print NR, n }" '
                            "$PE_HOSTFILE", "it counts tasks, not slots, and a task has 3 processors"),
    "tasks of mpi": Case("sge", f"{GRID} -pe mpi 2", "mpirun -np $NSLOTS echo task"),
    "scratch": Case("sge", GRID, 'D=${TMPDIR:-$TMP}; echo a > "$D/x"; cat "$D/x"; [ -d "$D" ] && [ "$D" != /tmp ] '
                    "&& echo own"),
    "variables": Case("sge", f'{GRID} -v A=1,B="x y"', 'echo "$A|$B|${LAB_OUTSIDE-unset}"'),
    "all variables": Case("sge", f"{GRID} -V", 'echo "${LAB_OUTSIDE-unset}"'),
    "a working directory": Case("sge", f"{GRID} -wd PLACE/sub", "pwd", files={"sub/x": ""}),
    "the home directory": Case("sge", GRID, 'pwd | sed "s#$HOME#home#"',
                               "a job of Grid Engine starts in the home directory"),
    "the submit directory": Case("sge", f"{GRID} -cwd", "pwd"),
    "an input file": Case("sge", f"{GRID} -i PLACE/in", "cat", files={"in": "a line\n"}),
    "two files": Case("sge", "#$ -S /bin/bash -N two -o PLACE/$JOB_NAME.$JOB_ID.o -e PLACE/$JOB_NAME.$JOB_ID.e",
                      "echo one; echo two >&2"),
    "a file that is there": Case("sge", GRID, "echo new", files={"out": "old\n"}),
    "names of elements": Case("sge", "#$ -S /bin/bash -j y -t 3-5 -o PLACE/$JOB_ID.$TASK_ID",
                              'echo "$SGE_TASK_ID $SGE_TASK_FIRST $SGE_TASK_LAST $SGE_TASK_STEPSIZE"', elements=3),
    "a limit of elements": Case("sge", "#$ -S /bin/bash -j y -t 1-3 -tc 1 -o PLACE/out.$TASK_ID",
                                "echo $SGE_TASK_ID", elements=3),
    "no element": Case("sge", GRID, 'echo "$SGE_TASK_ID ${SGE_TASK_LAST}"', modes=("shim",)),
    "words of the shell": Case("sge", f"{GRID} -N w", "echo $HOME/$JOB_NAME.log out-$NSLOTS-cores $USER.$JOB_NAME.tgz"),
    "a document with directives": Case("sge", f"{GRID} -cwd -N outer", "cat > PLACE/c.sh <<'E'\n#SBATCH -J x\n./a\nE"),
    "a name in a document": Case("sge", f"{GRID} -N named", "cat <<E\n$JOB_NAME $NSLOTS\nE"),
    "the submitter": Case("sge", f"{GRID} -cwd", 'echo "$SGE_O_HOME" "$SGE_O_WORKDIR" | sed "s#$HOME#home#"'),
    "amounts": Case("sge", f"{GRID} -l h_rt=60 -l mem=100M", "echo ran"),
    "a gpu": Case("sge", f"{GRID} -l gpu=1", "echo ran"),
    "restarts": Case("sge", f"{GRID} -r y", "echo ${RESTARTED:-0}"),
    "defaults of variables": Case("sge", GRID, 'echo "${NSLOTS:-7} ${SGE_TASK_ID:+set}"', modes=("shim",)),
    "a variable of its cell": Case("sge", GRID, 'echo "${SGE_CELL-unset}"', "the script uses SGE_CELL"),
    "a job that is held for another": Case(
        "sge", f"{GRID} -cwd", "id=$(qsub -terse -j y -o /dev/null one.sh); "
        "qsub -hold_jid $id -j y -o /dev/null two.sh > /dev/null", elements=3, files=TWO_STEPS),
    "a name of the user in a file": Case("sge", "#$ -S /bin/bash -j y -N own -o PLACE/$USER.$JOB_NAME.out", "echo ran"),
    "loops over slots": Case("sge", f"{GRID} -pe smp 2", "for i in $(seq $NSLOTS); do echo $i; done; "
                             'while [ "${n:=0}" -lt "$NSLOTS" ]; do n=$((n + 1)); done; echo $n'),
}
#: What only those scripts do that are not converted.
OWN = {
    "a script that says nothing": Case("slurm", "#SBATCH -n 1", "echo one; echo two >&2; echo $SLURM_JOB_NAME"),
    "appended without a name": Case("slurm", "#SBATCH --open-mode=append", "echo one"),
    "an array that says nothing": Case("slurm", "#SBATCH -a 3,5", "echo $SLURM_ARRAY_TASK_ID", elements=2),
    "errors that are named": Case("slurm", "#SBATCH -e PLACE/%x.%j.err", "echo one; echo two >&2"),
    "a login's variables": Case("slurm", f"{OUT} --export=LAB_OUTSIDE", 'echo "$HOME $USER $PATH $LAB_OUTSIDE"; '
                                'srun sh -c \'echo "$LAB_OUTSIDE $HOME"\''),
    "a signal for the script": Case("slurm", f"{OUT}\n#SBATCH -t 1 --signal=B:USR1@55",
                                    "trap 'echo got; ended=1' USR1; while [ -z \"$ended\" ]; do sleep 0.2; done"),
    "parts": Case("slurm", f"{OUT} -n 1\n#SBATCH hetjob\n#SBATCH -n 2", "echo once; srun --het-group=0,1 echo task"),
    "other managers' variables": Case("slurm", "#SBATCH -a 1-2 -o PLACE/out.%a",
                                      "env | grep -c 'PBS_ARRAY\\|SGE_TASK\\|LSB_JOBINDEX'", elements=2),
    "files in the working directory": Case("sge", "#$ -S /bin/bash -cwd", "echo one; echo two >&2; echo $JOB_NAME"),
    "elements in the working directory": Case("sge", "#$ -S /bin/bash -cwd -j y -N n -t 2-4:2", "echo $SGE_TASK_ID",
                                              elements=2),
    "a folder of files": Case("sge", "#$ -S /bin/bash -cwd -o logs -e PLACE/logs/ -N n", "echo one; echo two >&2",
                              files={"logs/kept": ""}),
    "a host before a file": Case("sge", "#$ -S /bin/bash -o :PLACE/out -j y", "echo one"),
    "the manager's variables": Case("sge", GRID, 'echo "$HOME $USER $SHELL $LOGNAME ${LAB_OUTSIDE-unset}"'),
    "once more": Case("sge", f"{GRID} -cwd", "echo ${RESTARTED:-0}; [ -e again ] || { touch again; exit 99; }"),
}
CASES = {**SLURM, **SGE, **{name: replace(case, modes=()) for name, case in OWN.items()}}


@dataclass
class Run:
    """One script on one manager."""

    place: Path
    elements: int
    native_id: str = ""
    findings: list[Finding] = field(default_factory=list)

    def files(self, *, ids: bool = True) -> dict[str, str]:
        """What it has left, by name, with its folder as a word, and its id too unless ids."""
        def plain(text: str) -> str:
            text = text.replace(str(self.place), "PLACE")
            return text if ids else re.sub(rf"(?<!\d){self.native_id}(?!\d)", "ID", text)

        return {plain(str(path.relative_to(self.place))): plain(path.read_text())
                for path in sorted(self.place.rglob("[!.]*")) if path.is_file() and path.name != "job"}


def submitted(folders: dict[str, str], manager: str, case: Case, text: str, place: Path, mode: str) -> Run:
    """A script that is handed in; its place has what it reads."""
    top = place.parent
    for name, content in case.files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(content)
    (place / "job").write_text(text)
    how = SUBMIT[manager] if mode != RUN else \
        f"{sys.executable} -m sssjob submit -q --policy warn -f {manager} --executor {manager}"
    native_id = "" if mode != RUN else f" && {sys.executable} -m sssjob list --all --offline --json"
    command = f'. "$0/env.sh" && PATH="{top}/bin:$PATH" LAB_OUTSIDE=yes {how} job{native_id}'
    user = pwd.getpwuid(os.getuid())        # Slurm hands on what its submitter has, Grid Engine asks the system
    done = subprocess.run(["/bin/bash", "-c", command, folders[manager]], cwd=place, capture_output=True, text=True,
                          env={**os.environ, "USER": user.pw_name, "HOME": user.pw_dir,
                               "SSSJOB_JOURNAL": f"{place}.journal"}, timeout=120, check=False)
    assert done.returncode == 0, (text, done.stderr)
    native = re.search(r'(?<="native_id": ")\d+' if mode == RUN else r"\d+", done.stdout)
    assert native is not None, done.stdout
    return Run(place, case.elements, native[0])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Run]:
    """Every script as it is (mode empty or RUN) and converted, by its name and the mode of its body, after all have
    ended."""
    folders = {name: lab(name) for name in ("slurm", "sge")}
    top = tmp_path_factory.mktemp("same")
    (top / "bin").mkdir()
    (top / "bin" / "mpirun").write_text(MPIRUN)
    (top / "bin" / "mpirun").chmod(0o755)
    runs: dict[tuple[str, str], Run] = {}
    for number, (name, case) in enumerate(CASES.items()):
        other = "sge" if case.source == "slurm" else "slurm"
        for mode in ("", RUN, *case.modes):
            place = top / f"{number}{mode}"
            place.mkdir()
            text, findings = case.text(place).replace("mpirun -np", f"{top}/bin/mpirun -np"), Findings("job")
            if mode in case.modes:
                document = get(case.source).read(text.encode(), ReadContext("job", findings, site=SITE))
                text = get(other).write(document, WriteContext(findings, policy=Policy.WARN, site=SITE,
                                                               options={"body": mode})).replace("@PE@", "smp")
                text = text.replace("mpirun ", f"{top}/bin/mpirun ").replace(f"{top}/bin/{top}/bin/", f"{top}/bin/")
            runs[name, mode] = submitted(folders, other if mode in case.modes else case.source, case, text, place,
                                         mode)
            runs[name, mode].findings = list(findings)
    until = time.monotonic() + 400
    while time.monotonic() < until and not all(
            len(list(run.place.glob(".done.*"))) >= run.elements for run in runs.values()):
        time.sleep(0.5)
    return runs


@pytest.mark.parametrize(("name", "mode"), [
    (name, mode) for name, case in CASES.items() for mode in (RUN, *case.modes)])
def test_both_leave_the_same_or_it_was_told(runs: dict[tuple[str, str], Run], name: str, mode: str) -> None:
    case, before, after = CASES[name], runs[name, ""], runs[name, mode]
    warnings = [f.message for f in after.findings]
    if case.told and mode != RUN:
        assert any(case.told in message for message in warnings), warnings
        assert after.files() != before.files() and after.files(), "what is told does not differ"
        return
    same = after.files() == before.files() or after.files(ids=False) == before.files(ids=False)
    assert same and before.files(), (after.files(), before.files(), (after.place / "job").read_text())
