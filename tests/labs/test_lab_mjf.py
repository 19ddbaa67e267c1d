"""Jobs on a real Slurm and a real Grid Engine print their own JOBFEATURES, which are what they were granted."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch._watch import watcher_of
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig
from psij.executors.batch.sge import SGEExecutorConfig
from psij.executors.batch.slurm import SlurmJobExecutor
from sssjob.mjf.provider import Provider
from tests.psij.test_batch_labs import enter_lab

pytestmark = pytest.mark.lab
SHOW = 'cd "$MACHINEFEATURES/.." && for f in */*; do echo "$f=$(cat "$f")"; done'
SITE = {"hs06": 400.0, "grace_secs_job": 30}


@pytest.fixture(params=["slurm", "sge"])
def executor(request: pytest.FixtureRequest, tmp_path: Path,
             monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchSchedulerExecutor]:
    enter_lab(request.param, monkeypatch)
    (tmp_path / "scratch").mkdir()
    settings: dict[str, Any] = {"work_directory": tmp_path / "work", "queue_polling_interval": 2,
                                "initial_queue_polling_delay": 0.5}
    config = (SGEExecutorConfig(**settings, memory_resource="mem") if request.param == "sge" else
              BatchSchedulerExecutorConfig(**settings))
    config.surroundings = Provider(SITE, root=str(tmp_path / "scratch"))
    made = JobExecutor.get_instance(request.param, config=config)
    assert isinstance(made, BatchSchedulerExecutor)
    yield made
    if watcher := watcher_of(made):
        watcher.close()


def run(executor: BatchSchedulerExecutor, tmp_path: Path, script: str, **members: Any) -> tuple[Job, dict[str, Any]]:
    custom = members.pop("custom", {}) | ({"sge.pe": "smp"} if executor.name == "sge" else {})
    attributes = JobAttributes(members.pop("limit", timedelta(minutes=3)), custom_attributes=custom)
    job = Job(JobSpec("/bin/bash", ["-c", script], stdout_path=tmp_path / "out", stderr_path=tmp_path / "err",
                      attributes=attributes, **members))
    executor.submit(job)
    status = job.wait(timedelta(seconds=90))
    assert status is not None and status.state is JobState.COMPLETED, (status, (tmp_path / "err").read_text())
    return job, status.metadata or {}


def keys(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def test_what_was_granted(executor: BatchSchedulerExecutor, tmp_path: Path) -> None:
    memory = 600 << 20
    resources = ResourceSpecV1(process_count=1, cpu_cores_per_process=3, memory=memory)
    job, known = run(executor, tmp_path, f'{SHOW}; echo 2 >"$JOBSTATUS/used_CPU"', resources=resources,
                     inherit_environment=False, environment={"PATH": os.environ["PATH"]})
    values = keys(tmp_path / "out")
    slurm = executor.name == "slurm"
    assert int(values.pop("job/jobstart_secs")) == pytest.approx(known["start_time"], abs=2)
    assert int(values.pop("job/scratch_limit_bytes")) > 0
    total = 4 if slurm else os.cpu_count()
    assert total is not None
    assert values == {
        "job/job_id": job.native_id, "job/allocated_cpu": str(known["processors"]), "job/wall_limit_secs": "180",
        "job/grace_secs_job": "30", "machine/hs06": "400", "machine/total_cpu": str(total),
        "job/hs06_job": f"{400 * 3 / total:.6g}", "job/max_rss_bytes": str(memory)}
    assert known["processors"] == 3 and known["hs06_job"] == 400 * 3 / total
    assert known["pilot"] == {"cores_mean": 2.0, "cores_max": 2.0}
    assert list((tmp_path / "scratch").iterdir()) == []


def test_limits_that_nobody_asked_for(executor: BatchSchedulerExecutor, tmp_path: Path) -> None:
    """A limit of the partition or queue is known too, where the resource manager tells it."""
    if executor.name == "slurm":
        custom: dict[str, object] = {"slurm.partition": "debug"}        # a minute, unless stated
    else:
        custom = {"sge.l": "h_cpu=100,h_vmem=1G"}
    job, _ = run(executor, tmp_path, SHOW, limit=None, custom=custom,
                     resources=ResourceSpecV1(process_count=1, cpu_cores_per_process=2))
    values = keys(tmp_path / "out")
    if executor.name == "slurm":
        assert (values["job/wall_limit_secs"], values["job/max_rss_bytes"]) == ("60", str(200 << 20))
    else:       # of a job with two slots
        assert "job/wall_limit_secs" not in values
        assert (values["job/cpu_limit_secs"], values["job/max_rss_bytes"]) == ("200", str(2 << 30))
    assert values["job/job_id"] == job.native_id


def test_several_nodes(executor: BatchSchedulerExecutor, tmp_path: Path) -> None:
    if executor.name == "sge":
        pytest.skip("the lab has one host")
    program = "import os; print(os.environ['SLURMD_NODENAME'], os.path.isdir(os.environ.get('JOBFEATURES', '')))"
    job = Job(JobSpec(sys.executable, ["-c", program], stdout_path=tmp_path / "out", launcher="srun",
                      resources=ResourceSpecV1(node_count=2, processes_per_node=1),
                      attributes=JobAttributes(timedelta(minutes=3))))
    executor.submit(job)
    status = job.wait(timedelta(seconds=90))
    assert status is not None and status.state is JobState.COMPLETED, status
    # all nodes of the lab are one machine, so that they share the directories
    assert sorted((tmp_path / "out").read_text().splitlines()) == ["node1 True", "node2 True"]
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("inherit", [True, False])
def test_the_parts_of_a_heterogeneous_job(executor: BatchSchedulerExecutor, tmp_path: Path, inherit: bool) -> None:
    if not isinstance(executor, SlurmJobExecutor):
        pytest.skip("Grid Engine has no such jobs")
    script = 'echo "$SLURMD_NODENAME $(cat "$JOBFEATURES/job_id" "$JOBFEATURES/wall_limit_secs" | tr "\\n" " ")"'
    parts = [Job(JobSpec("/bin/bash", ["-c", script], stdout_path=tmp_path / str(number), launcher="srun",
                         inherit_environment=inherit, environment={} if inherit else {"PATH": os.environ["PATH"]},
                         resources=ResourceSpecV1(node_count=1, processes_per_node=1),
                         attributes=JobAttributes(timedelta(minutes=3)))) for number in range(2)]
    executor.submit_together(parts)
    for part in parts:
        status = part.wait(timedelta(seconds=90))
        assert status is not None and status.state is JobState.COMPLETED, status
    whole = str(parts[0].native_id).partition("+")[0]
    # all nodes of the lab are one machine, so that they share the directories
    assert [(tmp_path / str(number)).read_text().split()[1:] for number in range(2)] == [[whole, "180"]] * 2
    assert list((tmp_path / "scratch").iterdir()) == [] and list((tmp_path / "work").rglob("*.mjf")) == []


def test_a_job_that_is_ended_leaves_nothing(executor: BatchSchedulerExecutor, tmp_path: Path) -> None:
    job = Job(JobSpec("/bin/bash", ["-c", 'echo ready; sleep 60'], stdout_path=tmp_path / "out",
                      attributes=JobAttributes(timedelta(minutes=3))))
    executor.submit(job)
    end = time.monotonic() + 60
    while not (tmp_path / "out").exists() or not (tmp_path / "out").read_text():
        assert time.monotonic() < end, datetime.now()
        time.sleep(0.1)
    assert len(list((tmp_path / "scratch").iterdir())) == 1
    job.cancel()
    status = job.wait(timedelta(seconds=90))
    assert status is not None and status.state is JobState.CANCELED
    left = list((tmp_path / "scratch").iterdir())
    # Grid Engine kills the script at once: what is left is ours to sweep
    assert left == [] if executor.name == "slurm" else len(left) <= 1
