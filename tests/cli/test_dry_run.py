"""``--dry-run``: what would go out is printed by the way that submits it; nothing starts and nothing is noted."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from psij import Job
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.slurm import SlurmJobExecutor
from sssjob.findings import Findings
from sssjob.run import make_plan
from sssjob.run.rehearsal import rehearse
from sssjob.xml.reader import read_document
from tests.forks import Command

JOB = ("<Job><Id>a</Id><Executable>/bin/echo</Executable><Arguments>hi 'x y'</Arguments>"
       "<Environment export='true'><Variable name='A'>b c</Variable></Environment>{}</Job>")
EXECUTORS = ["slurm", "sge", "pbs", "pbs_classic", "lsf", "htcondor", "flux", "cobalt", "nqsv", "local", "fluxexec"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "f.xml").write_text(JOB.format(""))
    return tmp_path


def sssjob(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command as it is called without any manager's commands in its path."""
    environment = {**os.environ, "HOME": str(home), "SSSJOB_JOURNAL": str(home / "journal.db"), "PATH": "/usr/bin:/bin"}
    with Command(words, home, environment) as command:
        out, err = command.communicate(60)
        return subprocess.CompletedProcess(words, command.wait(60), out, err)


@pytest.mark.parametrize("verb", ["run", "submit"])
def test_nothing_starts_and_nothing_is_noted(home: Path, verb: str) -> None:
    """No manager is there, which nobody misses; there is no journal afterwards, and no output of the job."""
    dry_run = sssjob(home, verb, "--dry-run", "-q", "--executor", "slurm", "f.xml")
    assert (dry_run.returncode, dry_run.stderr) == (0, "")
    command, path, first = dry_run.stdout.splitlines()[:3]
    assert re.fullmatch(r"\$ sbatch --parsable \S+\.job", command)
    assert (path, first) == (f"--- {command.split()[-1]}", "#!/bin/bash")
    assert not (home / "journal.db").exists() and not list(home.glob("job-a.*"))


def test_command_of_this_machine(home: Path) -> None:
    dry_run = sssjob(home, "run", "--dry-run", "-q", "f.xml")
    streams = f"</dev/null >{home}/job-a.out 2>{home}/job-a.err"
    assert dry_run.stdout == f"$ cd {home} && env 'A=b c' /bin/echo hi 'x y' {streams}\n"


def test_as_json(home: Path) -> None:
    dry_run = sssjob(home, "run", "--dry-run", "--json", "--executor", "htcondor", "f.xml")
    (record,) = map(json.loads, dry_run.stdout.splitlines())
    assert (record["kind"], record["job"], record["executor"]) == ("submission", "a", "htcondor")
    script, description = record["files"]
    assert record["command"] == ["condor_submit", "-terse", description["path"]]
    assert script["text"].startswith("#!/bin/bash\n") and description["text"].endswith("queue 1\n")


def test_findings_reject_as_they_do(home: Path) -> None:
    (home / "f.xml").write_text(JOB.format("<Requested><Feature>a;b</Feature></Requested>"))
    dry_run = sssjob(home, "run", "--dry-run", "--executor", "slurm", "f.xml")
    assert (dry_run.returncode, dry_run.stdout) == (1, "") and "Feature" in dry_run.stderr


@pytest.mark.parametrize(("executor", "option"), [("slurm", "--priority"), ("lsf", "-sp"), ("htcondor", "priority")])
def test_what_the_submit_command_refuses_does_not_go_out(home: Path, executor: str, option: str) -> None:
    """A run is refused as ``convert`` refuses the script, before anything is submitted."""
    (home / "f.xml").write_text(JOB.format(f"<Priority>1{'0' * 30}</Priority>"))
    dry_run = sssjob(home, "run", "--dry-run", "--executor", executor, "f.xml")
    assert (dry_run.returncode, dry_run.stdout) == (1, "")
    assert f"SSS501 error {option} 1{'0' * 30}: " in dry_run.stderr and "refuses it: is not from" in dry_run.stderr


def test_what_comes_before_is_told(home: Path) -> None:
    (home / "f.xml").write_text("<JobGroup><Id>g</Id>" + JOB.format("") + JOB.format(
        "<Dependency>a</Dependency>").replace("<Id>a", "<Id>b") + "</JobGroup>")
    dry_run = sssjob(home, "submit", "--dry-run", "-q", "--executor", "slurm", "f.xml")
    assert dry_run.stdout.count("\n$ sbatch") + dry_run.stdout.startswith("$ sbatch") == 2
    assert "# b: after OnSuccess a" in dry_run.stdout


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_executor_shows_it(home: Path, executor: str) -> None:
    dry_run = sssjob(home, "run", "--dry-run", "-q", "--json", "--executor", executor, "f.xml")
    (record,) = map(json.loads, dry_run.stdout.splitlines())
    assert dry_run.returncode == 0 and (record.get("command") or record["request"])


def test_it_is_what_goes_out(tmp_path: Path) -> None:
    """The very script that a submission gives to sbatch, but for the id of the job."""
    backend = SlurmJobExecutor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path / "work"))
    document = read_document(JOB.format("<Requested><Duration>60</Duration></Requested>").encode())
    plan = make_plan(document, Findings(), executor="slurm", backend=backend, cwd=tmp_path)
    (shown,) = rehearse(plan, backend)
    ((path, text),) = shown.rendered.files.items()
    assert not list(tmp_path.glob("work/**/*.job"))
    job = Job(plan.jobs[0].parts[0].spec)
    backend._submissions.prepare(job)
    written = backend._script_path(job).read_text()
    assert written == text.replace(Path(path).stem, job.id)


@pytest.mark.parametrize(("executor", "option"), [("slurm", "#SBATCH --array=2-10:2%3"), ("sge", "#$ -t 2-10:2")])
def test_an_array_is_one_command(home: Path, executor: str, option: str) -> None:
    """With the one script for all elements, whose index stands in it where each of them differs."""
    array = "<Extension type='Scheduler' name='Array'>2-10:2%3</Extension><OutputFile>o-{index:3}</OutputFile>"
    (home / "f.xml").write_text(JOB.format(array))
    dry_run = sssjob(home, "submit", "--dry-run", "-q", "--json", "--executor", executor, "f.xml")
    (record,) = map(json.loads, dry_run.stdout.splitlines())
    assert record["job"] == "a[2-10:2]"
    ((script,),) = [record["files"]]
    assert f"\n{option}\n" in script["text"] and 'o-"${_psij_index_3}"' in script["text"]


def test_a_script_without_directives_is_one_of_the_manager_that_is_to_run_it(home: Path) -> None:
    """As sbatch and qsub take it. One that submits is told as such, and where no manager has scripts nothing is."""
    (home / "job.sh").write_text("#!/bin/sh\nhostname\n")
    (home / "calls.sh").write_text("#!/bin/sh\nqsub job.sh\n")
    for verb, executor, name in (("run", "slurm", "slurm"), ("submit", "sge", "sge"), ("run", "pbs_classic", "torque")):
        dry_run = sssjob(home, verb, "--dry-run", "--executor", executor, "job.sh")
        assert dry_run.returncode == 0 and dry_run.stdout.endswith("#!/bin/sh\nhostname\n")
        assert dry_run.stderr.startswith(
            f"job.sh: {name}: a script without directives, for the manager that is to run it\n")
    for executor, script in (("htcondor", "job.sh"), ("local", "job.sh"), ("slurm", "calls.sh"), ("slurm", "f.txt")):
        (home / "f.txt").write_text("hostname\n")
        dry_run = sssjob(home, "run", "--dry-run", "--executor", executor, script)
        assert (dry_run.returncode, dry_run.stdout) == (2, "")
        assert dry_run.stderr.startswith(f"sssjob: {script}: no format is recognised in it")


def test_what_both_pbs_take_is_of_the_one_that_is_to_run_it(home: Path) -> None:
    """Run on Torque it was read as PBS Pro's, so that it began elsewhere and wrote other files. What is said counts."""
    (home / "job.pbs").write_text("#!/bin/sh\n#PBS -l ncpus=4,mem=4gb,walltime=600\nhostname\n")
    for verb, executor, more, name, other in (
            ("run", "pbs_classic", (), "torque", "pbspro"), ("submit", "pbs", (), "pbspro", "torque"),
            ("run", "slurm", (), "pbspro", "torque"), ("run", "pbs_classic", ("-f", "pbspro"), "", "")):
        dry = sssjob(home, verb, "--dry-run", "--executor", executor, *more, "job.pbs")
        assert dry.returncode == 0, dry.stderr
        title = "Torque" if name == "torque" else "PBS Pro"
        assert dry.stderr.startswith(f"job.pbs: {name}: 1 line of #PBS that {title} obeys, in line 2; {other} would "
                                     "read it too\n" if name else "job.pbs:/Job: SSS503")
        assert ("job-1.out" in dry.stdout) is ((executor == "pbs_classic" and not name) or executor == "slurm")


@pytest.mark.parametrize(("executor", "target"), [("pbs", "pbspro"), ("lsf", "lsf"), ("flux", "flux")])
def test_the_output_file_of_a_later_task_group_is_what_convert_makes_of_it(home: Path, executor: str, target: str
                                                                           ) -> None:
    """That of all groups where the first one has none, else it is lost, at both doors; a run was refused, and with
    another policy it started the tasks of the first group alone."""
    groups = ("<Job><Executable>/bin/a</Executable>{}<TaskGroup><TaskCount>1</TaskCount></TaskGroup>\n<TaskGroup>"
              "<TaskCount>2</TaskCount><OutputFile>b.out</OutputFile></TaskGroup></Job>")
    (home / "f.xml").write_text(groups.format(""))
    converted = sssjob(home, "convert", "-t", target, "f.xml")
    dry_run = sssjob(home, "run", "--dry-run", "--executor", executor, "f.xml")
    message = "f.xml:2:36: SSS502 warning [looks] OutputFile: task group 1 says none, and gets that of another one\n"
    assert message in converted.stderr and message in dry_run.stderr
    assert "b.out\n" in converted.stdout and re.search(rf" {home}/b\.out \S+ 3 /bin/a", dry_run.stdout)
    (home / "f.xml").write_text(groups.format("<OutputFile>a.out</OutputFile>"))
    for words in (("convert", "-t", target), ("run", "--dry-run", "--executor", executor)):
        refused = sssjob(home, *words, "f.xml")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "that of the first task group is taken for all, task group 2 has b.out\n" in refused.stderr
