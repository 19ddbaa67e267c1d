"""Jobs that are changed after they were submitted: what each resource manager is told, and what it does not change."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from psij import Job, JobAttributes, JobSpec, JobState, JobStatus, ResourceSpecV1, SubmitException
from psij.exceptions import InvalidJobException
from psij.executors.batch._changes import megabytes
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig
from sssjob.run.running import executor_of
from tests.psij.batch_support import Stand, a_job, ended, runs
from tests.psij.managers import MANAGERS, Manager

#: Member of a specification -> its value before and after.
MEMBERS: dict[str, tuple[Any, Any]] = {
    "name": ("old", "new"), "duration": (timedelta(minutes=10), timedelta(minutes=90)),
    "queue_name": ("debug", "long"), "account": ("physics", "chem"), "memory": (1 << 30, 3 << 30)}
#: What each manager is told of job 1, by what is changed; None: it is refused.
TOLD: dict[str, dict[str, list[str] | None]] = {
    "slurm": {"name": ["scontrol update JobId=1 JobName=new"],
              "duration": ["scontrol update JobId=1 TimeLimit=01:30:00"],
              "queue_name": ["scontrol update JobId=1 Partition=long"],
              "account": ["scontrol update JobId=1 Account=chem"],
              "memory": ["scontrol update JobId=1 MinMemoryCPU=3072"]},
    "sge": {"name": ["qalter -N new 1"], "duration": ["qalter -l h_rt=01:30:00 -l mem_free=1048576K 1"],
            "queue_name": ["qalter -q long 1"], "account": ["qalter -P chem 1"],
            "memory": ["qalter -l h_rt=00:10:00 -l mem_free=3145728K 1"]},
    "pbs": {"name": ["qalter -N new 1"], "duration": ["qalter -l walltime=01:30:00 1"], "queue_name": ["qmove long 1"],
            "account": ["qalter -A chem 1"], "memory": ["qalter -l select=1:ncpus=1:mpiprocs=1:mem=3145728kb 1"]},
    "pbs_classic": {"name": ["qalter -N new 1"], "duration": ["qalter -l walltime=01:30:00 1"],
                    "queue_name": ["qmove long 1"], "account": ["qalter -A chem 1"],
                    "memory": ["qalter -l mem=3145728kb 1"]},
    "lsf": {"name": ["bmod -J new 1"], "duration": ["bmod -W 01:30 1"], "queue_name": ["bmod -q long 1"],
            "account": ["bmod -P chem 1"], "memory": ["bmod -R rusage[mem=3145728KB/host] 1"]},
    "flux": {"name": ["flux update 1 name=new"], "duration": ["flux update 1 duration=5400s"],
             "queue_name": ["flux update 1 queue=long"], "account": None},
    "htcondor": {"name": ['condor_qedit 1 JobBatchName="new"'],
                 "duration": ["condor_qedit 1 PeriodicRemove=JobStatus == 2 && time() - JobCurrentStartDate > 5400"],
                 "account": None, "memory": ["condor_qedit 1 RequestMemory=3072"]},
    "cobalt": {"name": None, "duration": ["qalter -t 90 1"], "queue_name": ["qmove long 1"],
               "account": ["qalter -A chem 1"]},
    "nqsv": {"name": ["qalter -N new 1"], "duration": ["qalter -l elapstim_req=01:30:00 1"],
             "queue_name": ["qmove long 1"], "account": ["qalter -A chem 1"], "memory": None},
}


def spec(members: dict[str, Any]) -> JobSpec:
    """A specification with these members."""
    own = dict(members)
    memory = own.pop("memory", None)
    return JobSpec("/bin/date", name=own.pop("name", None), attributes=JobAttributes(**own), resources=ResourceSpecV1(
        process_count=1, memory=memory) if memory is not None else None)


def made(name: str, tmp_path: Path, state: JobState = JobState.QUEUED) -> tuple[BatchSchedulerExecutor, Job]:
    """An executor, and job 1 of it."""
    executor = executor_of(name, BatchSchedulerExecutorConfig(work_directory=tmp_path))
    assert isinstance(executor, BatchSchedulerExecutor)
    job = Job()
    job._native_id = "1"
    job._status = JobStatus(state)
    return executor, job


@pytest.mark.parametrize("name", MANAGERS)
def test_what_a_manager_is_told(name: str, tmp_path: Path) -> None:
    """Each member alone beside all others that it has, which stay; on the way back it is told the same of before."""
    executor, job = made(name, tmp_path)
    own = {member: pair for member, pair in MEMBERS.items() if member in TOLD[name]}
    before = {member: pair[0] for member, pair in own.items()}
    by_member: dict[str, list[str] | None] = {}
    for member, (_, after) in own.items():
        try:
            commands = executor.get_change_commands(job, spec(before), spec(before | {member: after}))
            by_member[member] = [" ".join(command).removeprefix("/opt/nec/nqsv/bin/") for command in commands]
        except InvalidJobException as error:
            assert str(error).endswith(f"of a job that was submitted is not changed by {executor.name}")
            by_member[member] = None
    assert by_member == TOLD[name]
    assert executor.get_change_commands(job, spec(before), spec(before)) == []


def test_what_is_one_command_is_one(tmp_path: Path) -> None:
    """A manager that is told all of it at once takes all of it or nothing."""
    executor, job = made("slurm", tmp_path)
    befores, afters = ({name: pair[side] for name, pair in MEMBERS.items()} for side in (0, 1))
    (command,) = executor.get_change_commands(job, spec(befores), spec(afters))
    assert " ".join(command) == ("scontrol update JobId=1 JobName=new Partition=long Account=chem TimeLimit=01:30:00 "
                                 "MinMemoryCPU=3072")


@pytest.mark.parametrize("before, after, reason", [
    (JobSpec("/bin/a"), JobSpec("/bin/b"), "executable"),
    (JobSpec("/bin/a", ["1"]), JobSpec("/bin/a", ["2"]), "arguments"),
    (JobSpec("/bin/a", environment={"A": "1"}), JobSpec("/bin/a", environment={"A": "2"}), "environment"),
    (JobSpec("/bin/a", stdout_path="o"), JobSpec("/bin/a", stdout_path="p"), "stdout_path"),
    (JobSpec("/bin/a", launcher="mpirun", resources=ResourceSpecV1(process_count=2)),
     JobSpec("/bin/a", launcher="mpirun", resources=ResourceSpecV1(process_count=3)), "launcher"),
])
@pytest.mark.parametrize("name", ["slurm", "pbs", "lsf"])
def test_what_the_script_says_stays(name: str, before: JobSpec, after: JobSpec, reason: str, tmp_path: Path) -> None:
    """The script is with the manager already, also the command that starts a number of processes."""
    executor, job = made(name, tmp_path)
    with pytest.raises(InvalidJobException, match=f"{reason}.*: the script that was submitted says it"):
        executor.get_change_commands(job, before, after)


def test_what_cannot_be_taken_back(tmp_path: Path) -> None:
    executor, job = made("pbs", tmp_path)
    before = spec({"account": "chem", "duration": timedelta(minutes=1)})
    for after, field in (({"duration": timedelta(minutes=1)}, "account"), ({"account": "chem", "duration": None},
                                                                           "duration")):
        with pytest.raises(InvalidJobException, match=f"^attributes.{field} cannot be taken back"):
            executor.get_change_commands(job, before, spec(after))


@pytest.mark.parametrize("name, changes", [
    ("slurm", True), ("pbs", True), ("lsf", True), ("flux", True), ("sge", False), ("htcondor", False),
    ("cobalt", False), ("nqsv", False)])
def test_the_limit_of_a_job_that_runs(name: str, changes: bool, tmp_path: Path) -> None:
    """It is changed where the manager heeds it then; elsewhere the document would say what never comes."""
    executor, job = made(name, tmp_path, JobState.ACTIVE)
    before, after = (spec({"duration": MEMBERS["duration"][side]}) for side in (0, 1))
    if changes:
        assert executor.get_change_commands(job, before, after)
    else:
        with pytest.raises(InvalidJobException, match="of a job that has begun is not changed"):
            executor.get_change_commands(job, before, after)
    with pytest.raises(InvalidJobException, match="of a job that"):
        executor.get_change_commands(job, spec({"account": "a"}), spec({"account": "b"}))


def test_sizes_that_a_manager_takes_in_megabytes() -> None:
    assert [megabytes(value) for value in ("1K", "1025KB", "2G", "700", "512 + 5")] == ["1", "2", "2048", "700",
                                                                                       "512 + 5"]


@pytest.fixture(params=MANAGERS)
def manager(request: pytest.FixtureRequest) -> Manager:
    """Each of them."""
    return MANAGERS[request.param]


def test_a_job_that_waits_is_changed(manager: Manager, quick: Stand) -> None:
    """It is changed in the queue, and ends as others do; once it has ended nothing happens."""
    quick.lab.set(wait=600)
    job = a_job("exit 3", attributes=JobAttributes(timedelta(minutes=10)))
    quick.executor.submit(job)
    assert job.spec is not None
    after = a_job("exit 3", attributes=JobAttributes(timedelta(minutes=90))).spec
    assert after is not None
    quick.executor.change(job, job.spec, after)
    assert len(quick.lab.jobs()[0]["changed"]) == 1
    quick.lab.set(wait=0)
    quick.lab.tick()
    assert ended(job).exit_code == 3
    quick.executor.change(job, job.spec, JobSpec("/bin/other"))


def test_a_job_whose_name_has_changed_is_still_the_same(manager: Manager, quick: Stand) -> None:
    """Where nothing but the name tells whose records are, it tells nothing any more."""
    quick.lab.set(wait=600)
    job = a_job("exit 3", attributes=JobAttributes(timedelta(minutes=10)))
    job.spec.name = "old"       # type: ignore[union-attr]
    quick.executor.submit(job)
    assert job.spec is not None
    after = a_job("exit 3", attributes=JobAttributes(timedelta(minutes=10))).spec
    assert after is not None
    after.name = "new"
    try:
        quick.executor.change(job, job.spec, after)
    except SubmitException:
        assert manager is MANAGERS["cobalt"]
    else:
        (record,) = quick.lab.jobs()
        quick.lab.update(record["number"], name="new")
    quick.lab.set(wait=0)
    quick.lab.tick()
    assert ended(job).exit_code == 3


def test_what_failed_half_way_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another queue is a command of its own; where the rest is refused then, the job goes back to its queue."""
    executor, job = made("pbs", tmp_path)
    commands_run: list[str] = []

    def tell(job: Job, order: str, deed: str, command: list[str]) -> None:
        """Refuse what is not a move."""
        commands_run.append(" ".join(command))
        if command[0] != "qmove":
            raise SubmitException("refused")

    monkeypatch.setattr(executor, "_tell", tell)
    before = {"queue_name": "a", "account": "x"}
    with pytest.raises(SubmitException, match="refused"):
        executor.change(job, spec(before), spec({"queue_name": "b", "account": "y"}))
    assert commands_run == ["qmove b 1", "qalter -A y 1", "qmove a 1"]


def test_a_refusal_is_told(quick: Stand, manager: Manager) -> None:
    job = runs(quick)
    assert job.spec is not None
    with pytest.raises(SubmitException, match=f"Job {job.native_id} cannot be changed: executable, arguments: "):
        quick.executor.change(job, job.spec, JobSpec("/bin/other"))
    job.cancel()
