"""Several task groups: side by side, as parts of one native job, or as one; and the script of such a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from psij import InvalidJobException, Job, JobSpec, ResourceSpecV1
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.sge import SGEJobExecutor
from psij.executors.batch.slurm import SlurmJobExecutor
from psij.staging import StageIn
from sssjob.findings import Findings, Policy
from sssjob.run import make_plan
from sssjob.run.native import left
from sssjob.run.running import executor_of
from sssjob.xml.reader import read_document

GROUP = "<TaskGroup><TaskCount>{count}</TaskCount><Executable>/bin/{program}</Executable></TaskGroup>"


def planned(executor: str, where: Path, *groups: tuple[int, str], policy: Policy = Policy.REJECT) -> Any:
    text = "".join(GROUP.format(count=count, program=program) for count, program in groups)
    text += "<Extension type='sge' name='pe'>mpi</Extension>" * (executor == "sge")
    findings = Findings()
    plan = make_plan(read_document(f"<Job><Id>a</Id><Environment export='true'/>{text}</Job>".encode()), findings,
                     executor=executor, cwd=where, policy=policy, backend=executor_of(executor))
    return plan, findings


@pytest.mark.parametrize(("executor", "parts", "together"), [("local", 2, False), ("slurm", 2, True)])
def test_groups_apart(executor: str, parts: int, together: bool, tmp_path: Path) -> None:
    plan, findings = planned(executor, tmp_path, (1, "true"), (2, "false"))
    (job,) = plan.jobs
    assert not findings.rejected and (len(job.parts), job.together) == (parts, together)
    assert [part.spec.executable for part in job.parts] == ["/bin/true", "/bin/false"]


@pytest.mark.parametrize("executor", ["sge", "lsf", "htcondor", "flux", "cobalt", "pbs"])
def test_groups_as_one(executor: str, tmp_path: Path) -> None:
    """Where there is no such job: alike groups are one group, unlike ones are started by one command or refused
    (decisions 11)."""
    plan, findings = planned(executor, tmp_path, (1, "true"), (2, "true"))
    ((part,),) = [job.parts for job in plan.jobs]
    assert not findings.rejected and part.spec.resources == ResourceSpecV1(process_count=3)
    assert ("SSS502", "TaskGroup") in {(f.rule, f.subject) for f in findings}
    findings = planned(executor, tmp_path, (1, "true"), (2, "false"))[1]
    refused = [] if executor in ("lsf", "pbs") else [("SSS602", "TaskGroup")]
    assert [(f.rule, f.subject) for f in findings.rejecting()] == refused
    assert not planned(executor, tmp_path, (1, "true"), (2, "false"), policy=Policy.WARN)[1].rejected


def test_what_is_left_of_a_job_is_worked_out_once_for_all_groups(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was copied with all of its groups for each of them: a plan of 1,000 took four seconds."""
    copies: list[Any] = []

    def counting(*asked: Any) -> Any:
        copies.append(left(*asked))
        return copies[-1]

    monkeypatch.setattr("sssjob.run.specs.left", counting)
    (job,) = planned("local", tmp_path, *[(1, "true")] * 8)[0].jobs
    assert len(job.parts) == 8 and len(copies) == 1


def script(where: Path, *specs: JobSpec) -> str:
    """The script of jobs that are submitted together, as sbatch gets it."""
    made = SlurmJobExecutor(config=BatchSchedulerExecutorConfig(work_directory=where / "work", default_resources=False))
    seen: list[str] = []

    def submit(command: list[str]) -> str:
        seen.append(Path(command[-1]).read_text())
        return "12\n"

    made._run_submit = submit  # type: ignore[method-assign]
    made._submitted = lambda *_: None  # type: ignore[method-assign]
    jobs = [Job(spec) for spec in specs]
    made.submit_together(jobs)
    for number, job in enumerate(jobs):
        seen[0] = seen[0].replace(job.id, f"<id {number}>")
    return seen[0].replace(str(where / "work" / "slurm"), "<records>").replace(str(where), "<where>")


def test_the_script(tmp_path: Path) -> None:
    text = script(tmp_path, JobSpec("/bin/a", ["x y", "${V}"], "/d", environment={"V": "it's"}, stdout_path="out"),
                  JobSpec("/bin/b", [], "/e f", inherit_environment=True, stdout_path="o%", stderr_path="o%",
                          launcher="srun", resources=ResourceSpecV1(process_count=4, cpu_cores_per_process=2)))
    lines = text.splitlines()
    assert lines[1:lines.index("")] == [
        "#SBATCH --open-mode=append", "#SBATCH --export=ALL", "#SBATCH --job-name=a",
        "#SBATCH --output=<records>/%j+0.<id 0>.out", "#SBATCH --time=00:10:00",
        "#SBATCH --comment=sssjob:<id 0>",
        "#SBATCH hetjob", "#SBATCH --job-name=b", "#SBATCH --output=<records>/%j.<id 1>.out",
        "#SBATCH --time=00:10:00", "#SBATCH --ntasks=4", "#SBATCH --cpus-per-task=2", "#SBATCH --comment=sssjob:<id 1>",
        "# Job <id 0> of psij. Records of start and end, output and node file are named by both ids."]
    assert '_psij_native="$SLURM_JOB_ID"+0' in lines
    start = lines.index(": >/d/out")
    assert lines[start:start + 3] == [": >/d/out", ": >'/e f/o%'", (
        "srun --het-group=0 --ntasks=1 --open-mode=append --input=none --output=/d/out --error=/dev/null /bin/bash -c "
        "$'cd -- /d || exit 126\\012export V=\\'it\\'\"\\'\"\\'s\\'\\012exec /bin/a \\'x y\\' "
        "\"${V-\\\\${V\\\\}}\"\\012' : "
        "--het-group=1 --ntasks=4 --cpus-per-task=2 --open-mode=append --input=none '--output=/e f/o%%' "
        "'--error=/e f/o%%' /bin/bash -c $'cd -- \\'/e f\\' || exit 126\\012exec /bin/b\\012'")]
    assert lines[start + 3] == "_PSIJ_JOB_EC=$?"


@pytest.mark.parametrize(("members", "expected"), [
    ({"launcher": "mpirun"}, "launcher 'mpirun': the parts of one job are started by srun"),
    ({"pre_launch": "/x"}, "pre_launch and post_launch"),
    ({"stage_in": {StageIn("/x", "y")}}, "parts of one native job cannot stage files"),
])
def test_what_a_part_cannot_have(members: dict[str, Any], expected: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidJobException, match=expected):
        script(tmp_path, JobSpec("/bin/a"), JobSpec("/bin/b", **members))


def test_managers_without_such_jobs(tmp_path: Path) -> None:
    executor = SGEJobExecutor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path))
    with pytest.raises(InvalidJobException, match="sge has no jobs of several parts here"):
        executor.submit_together([Job(JobSpec("/bin/a")), Job(JobSpec("/bin/b"))])


@pytest.mark.parametrize(("out", "expected"), [
    ("12+0|sssjob:ID|/w/ID.job\n12+1|sssjob:other|/w/ID.job\n", ["12+0"]),
    ("12+0|(null)|/w/ID.job\n12+1|(null)|/w/ID.job\n", ["12+0", "12+1"]),
    ("9||sbatch --parsable /w/ID.job\n10||sbatch /w/ID.job\n8|x|/w/y.job\n7\nnonsense|sssjob:ID|\n", ["9", "10"]),
])
def test_finding_a_part_by_its_tag(out: str, expected: list[str], tmp_path: Path) -> None:
    executor = SlurmJobExecutor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path))
    job = Job()
    assert executor._parse_lookup("JOBID|COMMENT|COMMAND\n" + out.replace("ID", job.id))[job.id] == expected
    for cut in ("", "\n", "JOBID|COMM"):       # else it would say that there is no such job, and one is made again
        with pytest.raises(ValueError, match=r"without a header|is cut off"):
            executor._parse_lookup(cut)
    assert (executor.part_id("12", 1), executor.part_id("12+0", 2)) == ("12+1", "12+2")
    assert executor.get_cancel_command("12+1") == ["scancel", "12"]
