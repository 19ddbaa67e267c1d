"""Task groups with commands of their own start under ``run`` by the line that ``convert`` writes for the manager."""

from __future__ import annotations

import shlex

import pytest

from sssjob.findings import Findings, Policy
from sssjob.translators.base import WriteContext
from sssjob.translators.registry import get
from sssjob.xml.reader import read_document
from tests.run.test_native import EXECUTORS, planned

NAMES = ("pbspro", "torque", "lsf")
TWO = "<TaskCount>2</TaskCount>"
#: The items of the job, and of its task groups.
CASES = {
    "executables": ("", f"{TWO}<Executable>/bin/a</Executable>", "<Executable>/bin/b</Executable><Arguments>-x 1"
                    "</Arguments>"),
    "arguments of words with signs": (
        "<Executable>/bin/a</Executable>", f"{TWO}<Arguments>'a b' '$HOME' \"it's\" '${{X}}'</Arguments>",
        f"{TWO}<Arguments>a:b</Arguments>"),
    "one has the command of the job": ("<Executable>/bin/a</Executable><Arguments>all</Arguments>", TWO,
                                       "<TaskCount>3</TaskCount><Executable>/bin/b</Executable>"),
    "one command, which a group without tasks starts once": (
        "<Executable>/bin/a</Executable>", TWO, "<Requested><Processors>4</Processors></Requested>"),
    "directories and variables": (
        "<InitialWorkingDirectory>/scratch</InitialWorkingDirectory>",
        "<Executable>/bin/a</Executable><InitialWorkingDirectory>/tmp</InitialWorkingDirectory>",
        "<Executable>/bin/b</Executable><Environment><Variable name='V'>1 2</Variable></Environment>"),
    "amounts and limits": (
        "<Requested><Duration>7200</Duration></Requested>",
        f"{TWO}<Executable>/bin/a</Executable><Requested><Duration>600</Duration></Requested><TaskDefaults><Requested>"
        "<Processors>2</Processors></Requested></TaskDefaults>",
        f"{TWO}<Executable>/bin/b</Executable><Requested><Duration>900</Duration></Requested>"),
}


def document_of(of_job: str, *groups: str) -> bytes:
    """A job and its task groups."""
    inner = "".join(f"<TaskGroup>{group}</TaskGroup>" for group in groups)
    return f"<Job>{of_job}{inner}</Job>".encode()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", NAMES)
def test_the_line_of_the_script_is_what_runs(name: str, case: str) -> None:
    """``run`` refused all of them: a JobSpec holds one kind of task."""
    document = read_document(document_of(*CASES[case]))
    script = get(name).write(document, WriteContext(Findings("f"), policy=Policy.WARN))
    parts, findings = planned(document, EXECUTORS[name])
    assert not findings.rejected, [str(f) for f in findings]
    (shown,) = parts
    submitted = "".join(shown.rendered.files.values())
    line = next(line for line in reversed(submitted.splitlines()) if " mpirun " in line)
    started = shlex.split(line[line.index(" mpirun ") + 1:])
    assert started == shlex.split(script.splitlines()[-1])
    limit = [line for line in script.splitlines() if "walltime" in line or " -W " in line]
    assert set(limit) <= set(submitted.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_an_argument_that_is_a_colon_is_refused_at_both_doors(name: str) -> None:
    """mpirun took it for the end of a command."""
    document = read_document(document_of("", "<Executable>/bin/a</Executable><Arguments>x : y</Arguments>",
                                         "<Executable>/bin/b</Executable>"))
    told = Findings("f")
    get(name).write(document, WriteContext(told, policy=Policy.WARN))
    for findings in (told, planned(document, EXECUTORS[name])[1]):
        assert ("SSS501", "Arguments") in {(f.rule, f.subject) for f in findings}


@pytest.mark.parametrize("name", sorted(set(EXECUTORS) - {*NAMES, "slurm"}))
def test_managers_that_start_one_command_refuse_as_convert_does(name: str) -> None:
    """The place is that of the second task group."""
    document = read_document(document_of(*CASES["executables"]))
    findings = planned(document, EXECUTORS[name])[1]
    assert any(f.rule == "SSS602" and f.subject == "TaskGroup" and f.rejects for f in findings)


@pytest.mark.parametrize("name", NAMES)
def test_streams_of_a_group_are_refused_at_both_doors(name: str) -> None:
    """A script has one output file, and so has the one command."""
    document = read_document(document_of("", *(f"<Executable>/bin/{n}</Executable><OutputFile>{n}.out</OutputFile>"
                                                for n in "ab")))
    findings = Findings("f")
    get(name).write(document, WriteContext(findings, policy=Policy.WARN))
    assert any(f.subject == "OutputFile" and f.rule == "SSS501" for f in findings), [str(f) for f in findings]
    assert planned(document, EXECUTORS[name])[1].rejected


def test_slurm_starts_a_group_without_tasks_once() -> None:
    """It was started for each of its processors."""
    (shown, *_), findings = planned(read_document(document_of(
        "<Executable>/bin/a</Executable>", TWO, "<Requested><Processors>4</Processors></Requested>")), "slurm")
    assert not findings.rejected
    submitted = "".join(shown.rendered.files.values())
    assert "--het-group=0 --ntasks=2 " in submitted and "--het-group=1 --ntasks=1 " in submitted
    assert "\n#SBATCH --ntasks=4\n" in submitted


def test_what_a_manager_does_not_have_is_lost_as_convert_loses_it() -> None:
    """The job was refused whatever the policy."""
    document = read_document(document_of("<Name>two words</Name><Executable>/bin/a</Executable><Duration>60</Duration>"
                                         "<NodeCount>1</NodeCount><Queue>day</Queue>"))
    _, findings = planned(document, "htcondor", Policy.WARN)
    assert [f.message for f in findings if f.subject == "Queue"] == ["Queue: the executor htcondor does not honour it"]
    assert not findings.rejected and planned(document, "htcondor")[1].rejected
    (shown,), findings = planned(document, "cobalt")
    assert "#COBALT --jobname two_words\n" in "".join(shown.rendered.files.values()) and not findings.rejected


def test_what_groups_differ_in_is_named() -> None:
    """That only the first group is carried was said of a job of which all groups start."""
    directory = "<InitialWorkingDirectory>/{}</InitialWorkingDirectory>".format
    _, findings = planned(read_document(document_of("<Executable>/bin/a</Executable>", TWO + directory("a"),
                                                    TWO + directory("b"))), "pbs")
    assert [f.message for f in findings if f.subject == "TaskGroup"] == [
        "a JobSpec holds one kind of task, the job has 2 task groups, which differ in InitialWorkingDirectory: what "
        "the first says is carried"]
