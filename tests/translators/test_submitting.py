"""Calls of submit commands in scripts that drive other jobs: the same by the target's command, or kept and told why."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get


def converted(source: str, target: str, commands: str, body: str = "translate") -> tuple[list[str], list[str]]:
    """The commands of the target, and what is told of them."""
    document = get(source).read(f"#!/bin/bash\n{commands}\n".encode(), ReadContext("s", Findings("s")))
    context = WriteContext(Findings("s"), policy=Policy.WARN, options={"body": body})
    lines = get(target).write(document, context).splitlines()
    own = [line for line in lines if not line.startswith("#") and line != 'cd "$PBS_O_WORKDIR"']
    return own, [f.message for f in context.findings if f.rule in ("SSS511", "SSS512")]


@pytest.mark.parametrize(("source", "target", "call", "expected"), [
    ("slurm", "pbspro", "sbatch next.sh", "qsub next.sh"),
    ("slurm", "pbspro", "ID=$(sbatch --parsable -p long a.sh)", "ID=$(qsub -q long a.sh)"),
    ("slurm", "pbspro", "sbatch --dependency=afterok:$ID -t 90 -J step b.sh",
     "qsub -N step -l walltime=01:30:00 -W depend=afterok:$ID b.sh"),
    ("slurm", "sge", "sbatch -J a$i x.sh $i", "qsub -N a$i x.sh $i"),
    ("slurm", "sge", "I=`sbatch --parsable x.sh`", "I=`qsub -terse x.sh`"),
    ("slurm", "lsf", 'sbatch --mail-user=a@b --array=1-3 "$f"', "bsub -J '[1-3]' -u a@b < \"$f\""),
    ("slurm", "flux", "sbatch -J 'a b' -d afterok:${ID} x.sh y",
     "flux batch --job-name='a b' --dependency=afterok:${ID} x.sh y"),
    ("slurm", "pbspro", "sbatch -p q <<E\n./a\nE", "qsub -q q <<E\n./a\nE"),
    ("slurm", "pbspro", "sbatch -p q x.sh > log 2>&1 && echo ok", "qsub -q q x.sh > log 2>&1 && echo ok"),
    ("pbspro", "slurm", "A=$(qsub -l select=1:ncpus=4:mpiprocs=4 a.sh)",
     "A=$(sbatch --parsable --nodes=1 --ntasks-per-node=4 a.sh)"),
    ("pbspro", "slurm", "qsub -W depend=afterany:$A b.sh | tee log",
     "sbatch --parsable --dependency=afterany:$A b.sh | tee log"),
    ("sge", "slurm", "qsub -q a.q -t 1-3 run.sh 5", "sbatch --partition=a.q --array=1-3 run.sh 5"),
    ("lsf", "slurm", "bsub -q night -W 60 < job.lsf", "sbatch --partition=night --time=01:00:00 < job.lsf"),
    ("flux", "slurm", "id=$(flux batch -q q -n 4 a.sh)", "id=$(sbatch --parsable --partition=q --ntasks=4 a.sh)"),
])
def test_a_call_becomes_one_of_the_target(source: str, target: str, call: str, expected: str) -> None:
    lines, told = converted(source, target, call)
    assert lines == expected.split("\n")
    assert not any("is kept" in message for message in told)


@pytest.mark.parametrize(("source", "target", "call", "why"), [
    ("slurm", "pbspro", "sbatch x.sh a", "qsub passes no arguments on to the script"),
    ("slurm", "pbspro", "ID=$(sbatch x.sh)", "what it prints is read, which is no id alone"),
    ("slurm", "pbspro", "sbatch x.sh | awk '{print $4}'", "what it prints is read, which is no id alone"),
    ("slurm", "lsf", "ID=$(sbatch --parsable x.sh)", "what it prints is read, which is no id alone"),
    ("slurm", "pbspro", 'sbatch --wrap "echo hi"',
     "wrap echo hi: PBS Pro has no place for this option of Slurm"),
    ("slurm", "pbspro", "sbatch -d afterok:7 x.sh", "it names a job by the id that it has under another manager"),
    ("slurm", "sge", "sbatch -n 4 x.sh", "@PE@ stands for a name that only the site knows"),
    ("slurm", "pbspro", 'sbatch -J "run $i" x.sh', "PBS Pro cannot take all of its variables"),
    ("slurm", "sge", "sbatch $OPTS x.sh", "$OPTS may hold options"),
    ("slurm", "sge", "sbatch -J $(date +%s) x.sh", "a word of it is made by the shell"),
    ("slurm", "sge", "sbatch -J '$x' x.sh", "a word of it is made by the shell"),
    ("slurm", "pbspro", "sbatch -p $SLURM_JOB_PARTITION x.sh", "a name of Slurm stands among its words"),
    ("slurm", "sge", "sbatch --no-such x.sh", "--no-such: no such option"),
    ("slurm", "sge", "sbatch <<E -p q\n./a\nE", "a redirection stands among its words"),
    *(("slurm", target, f"sbatch <<{rest}", "the script in its here-document has directives; convert that as a script "
       f"of its own: {why}") for target, rest, why in (
        ("sge", "'E'\n#!/bin/sh\n#SBATCH -J a\nE",
         "Grid Engine would obey its directives as those of the script around it"),
        ("cobalt", "'E'\n#!/bin/sh\n#SBATCH -J a\nE", "one of the two commands reads no script from its input"),
        ("pbspro", "E\n#!/bin/sh\n#SBATCH -J a\n./a \\$X\nE", "the shell that writes it expands it, and it has guarded "
         "signs or names of Slurm"),
        ("pbspro", "E\n#!/bin/sh\n#SBATCH -J a\n./a $SLURM_NTASKS\nE",
         "the shell that writes it expands it, and it has guarded signs or names of Slurm"),
        ("pbspro", "E\n#!/bin/sh\n#SBATCH -J ${x%%.*}\nE", "a directive in it is made by the shell that writes it"),
        ("pbspro", "E\n#!/bin/sh\n#SBATCH -n $N\nE", "--ntasks $N: is no number"),
        ("pbspro", "'E'\n#!/bin/sh\n#SBATCH -a 1-3 --hint=x --switches=1\nE", "--switches 1: Extension Switches"),
        ("pbspro", "'E'\n#!/bin/sh\n#SBATCH --nodes=many\nE", "--nodes many: is no number of nodes"),
        ("torque", "-E\n\t#SBATCH -J a\n\tE", "its lines begin with tabs, or it is one of several"),
        ("torque", "E\n#SBATCH -J a\n", "its lines begin with tabs, or it is one of several"))),
    ("slurm", "htcondor", "sbatch x.sh", "HTCondor has no command that does this"),
    ("pbspro", "flux", "qsub -J 1-5 c.sh", "Flux has no option for Extension Array"),
    ("sge", "slurm", "qsub -hold_jid $J x.sh", "Dependency: Slurm cannot say this dependency"),
    ("lsf", "slurm", "bsub -q q ./a", "bsub runs a command here and no script"),
])
def test_a_call_that_has_no_equal_is_kept_and_told(source: str, target: str, call: str, why: str) -> None:
    _, told = converted(source, target, call)
    assert [message for message in told if message.endswith(f"the line is kept: {why}")
            or message.partition("the line is kept: ")[2].startswith(why)] == told[:1]


@pytest.mark.parametrize("body", ["keep", "shim"])
def test_other_modes_keep_it(body: str) -> None:
    assert converted("slurm", "pbspro", "sbatch x.sh", body)[0][-1] == "sbatch x.sh"


@pytest.mark.parametrize("call", [
    "sbatch", "sbatch -J", "sbatch '", "sbatch -J \\\n x.sh", "sbatch " + "-J a " * 400 + "x"])
def test_odd_calls_are_carried_or_kept(call: str) -> None:
    lines, _ = converted("slurm", "pbspro", call)
    assert lines


def test_a_directive_in_a_here_document_is_one_of_another_script() -> None:
    document = get("slurm").read(b"#!/bin/sh\ncat > a.sh <<E\n#SBATCH -n 2\nE\n#SBATCH -n 3\n", ReadContext())
    assert [(f.line, f.message) for f in document.findings or ()] == [
        (3, "the directive stands in a here-document, for a script that this one writes, and asks for nothing here; "
            "--body translate converts it where a submit command reads it, else convert that script by itself"),
        (5, "the directive is dead: sbatch stops reading at the first command; it stays in the script as a comment")]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_shell_makes_the_same_words_of_the_values() -> None:
    """Names with blanks, quotes and variables arrive as one word, expanded."""
    lines, _ = converted("slurm", "flux", "sbatch -J \"it's $X\" x.sh")
    told = subprocess.run(["bash", "-c", f'X="1  2"; flux() {{ printf "<%s>" "$@"; }}; {lines[0]}'],
                          capture_output=True, text=True, check=True)
    assert "<--job-name=it's 1  2>" in told.stdout and told.stdout.endswith("<x.sh>")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(("source", "target", "call", "submitted"), [
    ("slurm", "pbspro", "i=7; sbatch -p fast <<E\n#!/bin/bash\n#SBATCH -J j$i\n#SBATCH -t 60 -o out/%x.%j\n"
                        "srun -n 4 ./a ${i}x\nE\n",
     "<-q><fast>#!/bin/bash\n#PBS -N j7\n#PBS -l walltime=01:00:00\n#PBS -j oe\n#PBS -o \"out/j7.^jobid^\"\n"
     "cd \"$PBS_O_WORKDIR\"\nmpirun -np 4 ./a 7x\n"),
    ("slurm", "torque", "i=7; sbatch <<E\n#!/bin/bash\n#SBATCH -J j$i -o %x.o%j\n./a\nE\n",
     "<>#!/bin/bash\n#PBS -N j7\n#PBS -j oe\n#PBS -o \"j7.o${PBS_JOBID}\"\ncd \"$PBS_O_WORKDIR\"\n./a\n"),
    ("torque", "pbspro", "qsub <<'E'\n#!/bin/sh\n#PBS -l nodes=1:ppn=4\n#PBS -t 1-3\n./a $PBS_ARRAYID \\$x\nE\n",
     "<>#!/bin/sh\n#PBS -l select=1:ncpus=4:mpiprocs=4\n#PBS -l place=scatter\n#PBS -J 1-3\n"
     "./a $PBS_ARRAY_INDEX \\$x\n"),
    ("lsf", "slurm", "N=2; bsub <<E\n#!/bin/sh\n#BSUB -J a$N\n#BSUB -n 4\n./a\nE\n",
     "<>#!/bin/sh\n#SBATCH --job-name=a2\n#SBATCH --ntasks=4\n./a\n")])
def test_a_script_in_a_here_document_goes_with_its_call(source: str, target: str, call: str, submitted: str) -> None:
    """A shell runs the driver, and what the new command is given and reads is the script for the new manager, with what
    the driver filled in, and what is left to the job left to it."""
    document = get(source).read(f"#!/bin/bash\n{call}".encode(), ReadContext(findings=Findings(), policy=Policy.WARN))
    text = get(target).write(document, WriteContext(Findings(), policy=Policy.WARN, options={"body": "translate"}))
    assert isinstance(text, str)
    command = {"slurm": "sbatch"}.get(target, "qsub")
    driver = "\n".join(line for line in text.splitlines() if line != 'cd "$PBS_O_WORKDIR"')
    done = subprocess.run(["bash", "-u"], input=f'{command}() {{ printf "<%s>" "$@"; cat; }}\n{driver}\n', text=True,
                          capture_output=True, check=True, env={"PATH": "/usr/bin:/bin"})
    assert done.stdout == submitted
