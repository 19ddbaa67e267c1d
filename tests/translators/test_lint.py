"""Scripts for their own resource manager: each doubt by the input that shows it, and scripts that give none."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.cli import main
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Policy
from sssjob.limits import LIMITS
from sssjob.rules import RULES
from sssjob.translators.lint import CHECKS, lint, noteworthy
from sssjob.translators.registry import SCRIPT_FORMATS
from sssjob.translators.scripts.base import dialect_of
from sssjob.translators.scripts.reading import Unremarkable
from tests.strategies import examples

SAMPLES = Path(os.environ.get("SSSJOB_SAMPLES") or "/nowhere") / "scripts-corpus"
FIXTURES = Path(__file__).parents[1] / "fixtures" / "scripts"
no_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="SSSJOB_SAMPLES names no folder with scripts-corpus")


def told(name: str, text: str, policy: Policy | None = None) -> list[tuple[str, str, int, int]]:
    """(rule, severity, line, column) of each finding."""
    findings = lint(name, text.encode("utf-8", "surrogateescape"), "x", policy)
    return [(f.rule, f.severity, f.line, f.column) for f in findings]


S, P, B = "#!/bin/sh\n#SBATCH ", "#!/bin/sh\n#PBS ", "#!/bin/sh\n"
CASES: list[tuple[str, str, list[tuple[str, str, int, int]]]] = [
    # what the readers say
    ("slurm", B + "set -e\n#SBATCH --time=5:00:00\n", [("SSS506", "warning", 3, 1)]),
    ("slurm", S + "--mem=1G --mem-per-cpu=1G\n", [("SSS505", "error", 2, 18)]),
    ("slurm", S + "--array=5-3\n", [("SSS505", "error", 2, 9)]),
    ("slurm", S + "--gpus-per-task=1\n", [("SSS505", "error", 2, 9)]),
    ("slurm", S + "--array={{ last }}-3\n", [("SSS530", "info", 2, 17)]),
    ("pbspro", P + "-J 3-3\n", [("SSS505", "error", 2, 6)]),
    ("pbspro", P + "-q a,b\n", [("SSS505", "error", 2, 6)]),
    ("pbspro", P + '-N "x y"\n', [("SSS505", "error", 2, 6)]),
    ("pbspro", P + "-l place=excl\n" "#PBS -l mem=3gb\n", [("SSS505", "error", 3, 6)]),
    ("torque", P + "-t 5-3\n", [("SSS505", "error", 2, 6)]),
    ("cobalt", "#!/bin/sh\n#COBALT -q a -t 10\n", [("SSS505", "warning", 0, 0)]),
    ("htcondor", "request_cpus = 1\nqueue\n", [("SSS505", "error", 2, 1)]),
    ("slurm", "#SBATCH -N 1\n", [("SSS505", "error", 1, 0)]),
    ("slurm", "#!/bin/sh\r\n#SBATCH -N 1\r\n", [("SSS505", "error", 1, 10)]),
    ("slurm", B + "#PBS -N x\n", [("SSS304", "warning", 2, 1)]),
    ("slurm", S + "--nodes=many\n", [("SSS505", "error", 2, 9)]),
    ("pbspro", P + "-N x # name\n", [("SSS505", "error", 2, 11)]),
    ("torque", P + "-N x # name\n", []),
    # commented out, late, ignored
    ("slurm", B + "##SBATCH -N 1\n# SBATCH -N 1\n# #SBATCH -n 2\n# SBATCHES\n",
     [("SSS520", "info", 2, 1), ("SSS520", "info", 3, 1), ("SSS520", "info", 4, 1)]),
    ("pbspro", B + "##PBS -q a\n", [("SSS520", "info", 2, 1)]),
    ("pbspro", P + "-q a\n#SBATCH -N 1\n#SBATCH -n 1\n", [("SSS526", "info", 3, 1)]),
    # times
    ("slurm", S + "-t 1:30\n", [("SSS522", "warning", 2, 9)]),
    ("slurm", S + "-t 1:30:00\n#SBATCH --time-min=90\n", []),
    ("pbspro", P + "-l walltime=24:00\n", [("SSS522", "warning", 2, 6)]),
    ("slurm", S + "--time=0\n", [("SSS523", "warning", 2, 9)]),
    # options
    ("sge", "#!/bin/sh\n#$ -t 1-2\n#$ -o x_$JOB_ID_$TASK_ID.log -e $HOMES/y\n", []),
    ("flux", "#!/bin/sh\n#FLUX: -n1\n#FLUX: --requires=a\n#FLUX: --requires=b\n#FLUX: --dependency=afterok:f1\n"
             "#FLUX: --dependency=afterok:f2\n", []),
    ("slurm", S + "-N 1\n#SBATCH -N 2 -J a\n#SBATCH -J a\n", [("SSS524", "warning", 3, 9)]),
    ("slurm", S + "-n 1\n#SBATCH hetjob\n#SBATCH -n 2\n", []),
    ("slurm", S + "--tasks 8\n", [("SSS525", "warning", 2, 9)]),
    ("slurm", S + "--job=x\n", [("SSS525", "info", 2, 9)]),
    ("flux", "#!/bin/sh\n# flux: --env-remove=LD_*\n", []),
    ("slurm", S + "--ntasks-pre-node=2\n", [("SSS505", "error", 2, 9)]),
    ("pbspro", P + "-l waltime=1:00:00\n", [("SSS529", "warning", 2, 6)]),
    ("torque", P + "-l pvmem=1gb,matlab=2\n", []),
    ("slurm", S + "-o log_$USER_%j.out\n", [("SSS531", "warning", 2, 9)]),
    ("torque", P + "-o $PBS_JOBID.out -v X=1\n", []),
    ("slurm", S + "-o log_%Y.%j.%%Y\n", [("SSS532", "warning", 2, 9)]),
    ("slurm", S + "-J “a” # ”\n", [("SSS533", "warning", 2, 12)]),
    # lines
    ("torque", "#!/bin/sh\r\n#PBS -N x\r\n", [("SSS527", "warning", 1, 10)]),
    ("pbspro", "#PBS -N x\n", [("SSS528", "warning", 1, 1)]),
    ("sge", "#!/bin/sh\n#$ -N a\ncat > x <<EOF\n#$ -N inner\nEOF\n",
     [("SSS521", "warning", 4, 1), ("SSS524", "warning", 4, 4)]),
    ("slurm", B + "<<<<<<< HEAD\n#SBATCH -N 1\n", [("SSS534", "error", 2, 1), ("SSS506", "warning", 3, 1)]),
    ("slurm", S + "-J {{name}}\necho {{ x }} {% if y %} @FOO@ a@B.c %(n)s $${x} ${x} %s\n",
     [("SSS530", "info", 2, 12), ("SSS530", "info", 3, 25), ("SSS530", "info", 3, 37), ("SSS530", "info", 3, 43)]),
    ("flux", B + "#FLUX: -n 1\n#FLUX: --output={{name}}.{{id.f58}}.{{ site }}\n", [("SSS530", "info", 3, 37)]),
    ("flux", B + "#FLUX: -n 1 --output=out.{{jobid}}.{{node.name}}\n", []),
    ("slurm", S + "-n 1     # l\u2019essai \u2013 deux\n", []),
    # what the document of several jobs needs says nothing of the script
    ("htcondor", "executable = /bin/true\nqueue 2\n", []),
    # the body
    ("slurm", S + "-N 1\ncd $PBS_O_WORKDIR; echo ${PBS_O_WORKDIR} '$PBS_JOBID' # $LSB_JOBID\n",
     [("SSS535", "info", 3, 4)]),
    ("slurm", S + "-N 1\nx=$SLURM_CPUS_PER_TASK; y=${SLURM_CPUS_PER_TASK:-1}\n", [("SSS536", "warning", 3, 3)]),
    ("slurm", S + "-c 4\nx=$SLURM_CPUS_PER_TASK\n", []),
    # text of other scripts
    ("slurm", B + "cat > x <<EOF\n#SBATCH -N 2\nEOF\necho '\n#SBATCH -N 3\n'\n#SBATCH -N 4\n",
     [("SSS506", "info", 3, 1), ("SSS506", "info", 6, 1), ("SSS506", "warning", 8, 1)]),
    # what only another system would make of it is no doubt
    ("slurm", S + "--begin=2026-01-01T00:00:00 --nodelist=n[1-4]\n", []),
    ("htcondor", "# one\nexecutable = a\narguments = $(Process)\nqueue f from list.txt\n", []),
    ("cobalt", "#!/bin/sh\n#COBALT -n 4 -t 5 -o $jobid -e x/$COBALT_JOBID.err\n", []),
    ("lsf", "#!/bin/sh\r\n#BSUB -J a\r\n", [("SSS527", "warning", 1, 10)]),
    ("flux", "#!/bin/sh\n# flux: --out=x\n", [("SSS525", "warning", 2, 9)]),
    # memory of LSF
    ("lsf", "#!/bin/sh\n#BSUB -M 6000 -R rusage[tmp=1,mem=20,x=1]\n#BSUB -R rusage[mem=20GB] -n 4\n",
     [("SSS537", "info", 2, 7), ("SSS537", "info", 2, 15)]),
    ("lsf", "#!/bin/sh\n#BSUB -M 6GB -R select[mem>1000]\n", []),
    # memory of PBS and Grid Engine in bytes
    ("pbspro", P + "-l mem=384\n#PBS -l vmem=2gb,pmem=4000000\n", [("SSS537", "warning", 2, 6)]),
    ("pbspro", P + "-l select=2:ncpus=2:mem=16+1:mem=2gb\n", [("SSS537", "warning", 2, 6)]),
    ("torque", P + "-l nodes=1,pmem=4000\n", [("SSS537", "warning", 2, 6)]),
    ("sge", "#!/bin/sh\n#$ -l h_vmem=4,mem_free=4G\n", [("SSS537", "warning", 2, 4)]),
    # streams
    ("pbspro", P + "-oe\n#PBS -joe -e x\n", [("SSS538", "warning", 2, 6), ("SSS538", "warning", 3, 11)]),
    ("torque", P + "-j oe -o x.out\n", []), ("sge", "#!/bin/sh\n#$ -j y -e x\n", [("SSS538", "warning", 2, 9)]),
    ("sge", "#!/bin/sh\n#$ -j n -e x -o logs/\n", []), ("lsf", "#!/bin/sh\n#BSUB -o logs/\n", []),
    ("slurm", S + "-o logs/\n", [("SSS538", "warning", 2, 9)]),
    ("sge", "#!/bin/sh\n#$ -wd runs/a\n", [("SSS538", "warning", 2, 4)]),        # Eqw, seen with 8.1.9
    *(("sge", f"#!/bin/sh\n#$ -wd {place} -tc 0\n", []) for place in ("/runs", "$HOME", "~")),
    ("slurm", S + "--time={resources.runtime} --mem={res[mem]} -n {n:d}\n",
     [("SSS507", "warning", 2, at) for at in (9, 36, 53)]),
    ("slurm", S + "-a 1-4 -o %A.log -e %x.%3a\n", [("SSS538", "warning", 2, 16)]),
    ("slurm", S + "-a 1-4 -o /dev/null -e %j\n", []), ("slurm", S + "-o x.log\n", []),
    ("slurm", S + "-a 1-4 -o /dev/shm/x -e %j\n", [("SSS538", "warning", 2, 16)]),        # a file, not a device
    # signs
    ("slurm", S + "-J=foo --comment==x\n", [("SSS539", "warning", 2, 9)]),
    ("torque", P + "-N=foo\n", [("SSS539", "warning", 2, 6)]),
    ("sge", "#!/bin/sh\n#$ -v \"A=x#y\" -N a\n#$ -N a # why\n", [("SSS539", "warning", 2, 11)]),
    ("htcondor", "executable = a\narguments = 300 # to sleep\nqueue\n", [("SSS539", "warning", 2, 17)]),
    ("slurm", "#!/usr/bin/env python3\n#SBATCH -c 4\nx = '$PBS_JOBID'\n", []),
]


@pytest.mark.parametrize(("name", "text", "expected"), CASES)
def test_cases(name: str, text: str, expected: list[tuple[str, str, int, int]]) -> None:
    assert told(name, text) == expected


def test_each_rule_has_a_page_and_each_check_a_case() -> None:
    shown = {rule for *_, found in CASES for rule, *_ in found}
    rules = {check.rule for check in CHECKS}
    assert rules == {"SSS505", *(rule for rule in RULES if rule[:5] in ("SSS52", "SSS53") or "SSS55" < rule < "SSS6")}
    assert rules <= shown


def test_hints() -> None:
    assert [f.hint for f in lint("slurm", (S + "--ntasks-pre-node=2\n").encode())] == [
        "did you mean --ntasks-per-node?"]
    assert [f.hint for f in lint("slurm", (S + "--image=2\n").encode())] == [""]


def test_a_policy_makes_refusals_warnings() -> None:
    assert told("slurm", "#SBATCH -N 1\n", Policy.WARN) == [("SSS505", "warning", 1, 0)]


def test_no_script() -> None:
    assert told("slurm", "#!/bin/sh\n\0\xff") == [("SSS505", "error", 2, 0)]
    with pytest.raises(RejectedError, match="SSS110"):
        lint("slurm", b"#" * (LIMITS.script_bytes + 1))
    with pytest.raises(UsageError):
        lint("sacct", b"")


@pytest.mark.parametrize("text", ["", "\n" * 100_000, "#SBATCH " * 20_000, "#!/bin/sh\n" + "#SBATCH -J x\n" * 20_000,
                                  "#!/bin/sh\n" + "{{ " * 100_000, "#!/bin/sh\necho " + "$PBS_JOBID" * 100_000,
                                  "#!/bin/sh\n#SBATCH -o " + "%" * 50_000 + "$a" * 50_000])
def test_hostile_text(text: str) -> None:
    assert len(told("slurm", text)) <= LIMITS.findings + 1


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("slurm/*.sh")), ids=lambda p: p.stem)
def test_our_own_scripts_give_no_errors_but_those_of_the_reader(path: Path) -> None:
    text = path.read_text()
    assert {rule for rule, severity, *_ in told("slurm", text) if severity == "error"} <= {"SSS505"}


@no_samples
def test_public_scripts() -> None:
    """Nothing but what the real command refuses is an error; few scripts in ten get a warning of a check."""
    warned = 0
    paths = [p for name in ("slurm", "pbspro", "torque") for p in sorted((SAMPLES / name).glob("*.sh"))]
    for path in paths:
        findings = told(path.parent.name, path.read_bytes().decode("utf-8", "surrogateescape"))
        assert {r for r, severity, *_ in findings if severity == "error"} <= {"SSS505", "SSS534"}
        warned += any(r >= "SSS520" and severity == "warning" for r, severity, *_ in findings)
    assert 0 < warned < len(paths) // 2


# --- what is known of earlier scripts
_VALUES = ("1", "0", "2-1", "1-10%4", "many", "4G", "4", "x y", "a,b", "=x", "{{ n }}", "01:30", "$HOME/x", "%j.%q",
           "oe", "n1+n2:ppn=2", "2:ncpus=3", "mpi 4", "cyclic", "afterok:1", "ALL", "Memory >= 4 && (x == 1)",
           "B:USR1@60")


@st.composite
def written_scripts(draw: st.DrawFn) -> tuple[str, bytes]:
    """A dialect and a script of it with some of its options, which have values of any kind."""
    dialect = dialect_of(draw(st.sampled_from(SCRIPT_FORMATS)))
    assert dialect is not None
    values = st.sampled_from((None, *_VALUES))
    pairs = draw(st.lists(st.tuples(st.sampled_from(sorted(dialect.known)), values), max_size=8))
    if not dialect.prefix:
        lines = ["executable = x", *(f"{name} = {value or ''}" for name, value in pairs), "queue"]
    else:
        lines = ["#!/bin/sh", *(f"{dialect.prefix} {name}" if value is None else
                                f"{dialect.prefix} {name}{'=' if name[1] == '-' or ' ' in name else ' '}{value}"
                                for name, value in pairs), "echo $SLURM_ARRAY_TASK_ID"]
    return dialect.name, "\n".join([*lines, ""]).encode()


@settings(max_examples=examples(40))
@given(st.lists(written_scripts(), min_size=1, max_size=6))
def test_what_is_told_does_not_depend_on_the_scripts_before(several: list[tuple[str, bytes]]) -> None:
    """An option that nothing was to be said about is not read again; that must not change a finding of another one."""
    for name, data in several:
        alone = lint(name, data, "x", remarks=Unremarkable(noteworthy))
        assert list(lint(name, data, "x")) == list(alone)


def test_few_options_are_kept_in_mind() -> None:
    remarks = Unremarkable(noteworthy, most=2)
    for number in range(1, 8):
        assert not list(lint("slurm", f"#!/bin/sh\n#SBATCH --nodes={number}\n".encode(), "x", remarks=remarks))
        assert 1 <= len(remarks) <= 2
    assert not list(lint("slurm", f"#!/bin/sh\n#SBATCH --nodelist={'n' * 300}\n".encode(), "x", remarks=remarks))
    assert len(remarks) == 1


# --- the command
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.sh", tmp_path / "bad.sh"
    good.write_text("#!/bin/sh\n#SBATCH -t 1:30\necho\n")
    bad.write_text("#!/bin/sh\n#SBATCH --nodes=many\n")
    assert main(["lint", str(good)]) == 0
    assert capsys.readouterr().err == (
        f"{good}:2:9: SSS522 warning [breaks] --time 1:30 is 1 min and 30 s, not 1 h and 30 min\n")
    assert main(["lint", "--strict", str(good)]) == 1
    assert main(["lint", "--quiet", str(good)]) == 0
    capsys.readouterr()
    assert main(["lint", "--json", "-f", "slurm", str(good), str(bad), str(tmp_path / "none")]) == 3
    out, err = capsys.readouterr()
    assert [(r["ok"], r["errors"], r["warnings"]) for r in map(json.loads, out.splitlines())] == [
        (True, 0, 1), (False, 1, 0), (False, 0, 0)]
    assert [r.get("rule") for r in map(json.loads, err.splitlines())] == ["SSS522", "SSS505", None]
    assert main(["lint", "--policy", "warn", str(bad)]) == 0


def test_the_command_and_what_it_does_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = tmp_path / "plain.sh"
    plain.write_text("#!/bin/sh\necho\n")
    assert main(["lint", str(plain)]) == 2 and "--from" in capsys.readouterr().err
    assert main(["lint", "-f", "sacct", str(plain)]) == 2 and "batch scripts" in capsys.readouterr().err
    assert main(["lint", "-f", "slrum", str(plain)]) == 2 and "did you mean slurm" in capsys.readouterr().err
    assert main(["explain", "SSS522"]) == 0 and re.search("minutes and seconds", capsys.readouterr().out)
