"""The calls of programs that use psij-python, in their order, on the local executor and on a stand-in for Slurm.

Each function does with PSI/J what one published program does (pydra's worker, the pilot launcher of radical.pilot,
gert, tierkreis, the redun executor of AgResearch, radical.orbit, bioimageflow), and returns what that would see.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import psij
from psij.executors.batch._watch import watcher_of
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig
from tests.fakes import slurm as fake_slurm
from tests.fakes.lab import install

SITE = """\
[executors.slurm]
queue_polling_interval = 0.2
initial_queue_polling_delay = 0.05
accounting_delay = 1
lost_after = 5
"""


@pytest.fixture(params=["local", "slurm"])
def name(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An executor's name; the programs ask for it by themselves, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(psij.JobExecutorConfig, "DEFAULT_WORK_DIRECTORY", tmp_path / "work")
    monkeypatch.setenv("PSIJ_CONFIG", str(tmp_path / "site.toml"))
    (tmp_path / "site.toml").write_text(SITE)
    if request.param == "local":
        yield "local"
        return
    lab = install(str(fake_slurm.__file__), fake_slurm.COMMANDS, tmp_path / "lab", tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    yield "slurm"
    executor = psij.JobExecutor.get_instance("slurm")
    if isinstance(executor, BatchSchedulerExecutor) and (watcher := watcher_of(executor)):
        watcher.close()
    lab.close()


def test_pydra(name: str, tmp_path: Path) -> None:
    """A coroutine that submits and waits; the program is named, its arguments are paths, one is added later."""
    program = tmp_path / "run.py"
    program.write_text("import sys; print(sys.argv[1:])")

    async def run() -> tuple[str, int]:
        executor = psij.JobExecutor.get_instance(name)
        spec: Any = psij.JobSpec()
        spec.executable, spec.arguments = Path(sys.executable), [program, tmp_path / "task.pkl"]
        spec.arguments.append("--rerun")
        spec.stdout_path, spec.stderr_path = tmp_path / "demo.stdout", tmp_path / "demo.stderr"
        job = psij.Job()
        job.spec = spec
        executor.submit(job)
        job.wait()
        return spec.stdout_path.read_text(), spec.stderr_path.stat().st_size

    assert asyncio.run(run()) == (f"['{tmp_path}/task.pkl', '--rerun']\n", 0)


def test_radical_pilot(name: str, tmp_path: Path) -> None:
    """One executor with a callback, whose jobs are found in a dictionary under a lock; attributes set one by one."""
    lock, pilots, seen = threading.RLock(), dict[str, str](), dict[str, list[str]]()

    def tell(job: psij.Job, status: psij.JobStatus) -> None:
        with lock:
            if job.id in pilots:
                seen.setdefault(pilots[job.id], []).append(status.state.name)

    executor = psij.JobExecutor.get_instance(name)
    executor.set_job_status_callback(tell)
    jobs = {}
    for pilot, command in (("one", "echo $PILOT"), ("two", "sleep 60")):
        attributes = psij.JobAttributes()
        attributes.duration = timedelta(minutes=10)
        attributes.queue_name, attributes.project_name, attributes.reservation_id = None, "project", None
        if name == "slurm":
            attributes.set_custom_attribute(name="slurm.qos", value="debug")
            attributes.set_custom_attribute(name="slurm.constraint", value="knl&cache")
        spec = psij.JobSpec()
        spec.attributes, spec.executable, spec.arguments = attributes, "/bin/sh", ["-c", command]
        spec.environment, spec.directory = {"PILOT": pilot}, tmp_path
        spec.stdout_path, spec.stderr_path = f"{pilot}.out", f"{pilot}.err"
        spec.inherit_environment = name == "local"
        spec.resources = psij.ResourceSpecV1(node_count=None, process_count=1, exclusive_node_use=False)
        jobs[pilot] = psij.Job(spec)
        pilots[jobs[pilot].id] = pilot
        executor.submit(jobs[pilot])
    jobs["two"].wait(target_states=[psij.JobState.ACTIVE])
    jobs["two"].cancel()
    for job in jobs.values():
        job.wait()
    _until(lambda: all(len(states) == 3 for states in seen.values()))
    assert seen == {"one": ["QUEUED", "ACTIVE", "COMPLETED"], "two": ["QUEUED", "ACTIVE", "CANCELED"]}
    assert (tmp_path / "one.out").read_text() == "one\n"


def test_gert(name: str, tmp_path: Path) -> None:
    """Several steps in one shell; specifications that are alike are equal; cancel through the executor."""
    def spec() -> psij.JobSpec:
        resources, attributes = psij.ResourceSpecV1(), psij.JobAttributes()
        resources.process_count, resources.memory = 1, 512 * 1024 * 1024
        attributes.duration = timedelta(minutes=30.0)
        return psij.JobSpec(executable="/bin/bash", arguments=["-c", "set -e\n(echo a > a.out)\n(for i in 1 2; do echo "
                            "${i} >> b.out; done; exit 4)"], resources=resources, attributes=attributes, name=None,
                            directory=tmp_path)

    assert spec() == spec()
    executor, done = psij.JobExecutor.get_instance(name), threading.Event()
    job = psij.Job(spec())
    job.set_job_status_callback(lambda job, status: done.set() if status.final else None)
    executor.submit(job)
    assert job.wait() is job.status and done.wait(20)
    executor.cancel(job)        # it has ended
    assert (job.status.state, job.status.exit_code) == (psij.JobState.FAILED, 4)
    assert (tmp_path / "b.out").read_text() == "1\n2\n"


def test_tierkreis(name: str, tmp_path: Path) -> None:
    """A specification made of another one: counts of 0, a time limit of 0, numbers in the environment, a launcher."""
    words = shlex.split("/bin/sh -c 'echo $NUMBER $OMPI' sh")
    custom: dict[str, Any] = {f"{name}.mail-user": "me@example.org"} if name == "slurm" else {}
    spec = psij.JobSpec(
        name="job", executable=words[0], arguments=words[1:], environment={"NUMBER": 5, "OMPI": "x"},
        stdout_path=tmp_path / "out", stderr_path=tmp_path / "err", launcher="single",
        resources=psij.ResourceSpecV1(node_count=1, process_count=None, processes_per_node=None,
                                      cpu_cores_per_process=1, gpu_cores_per_process=0, memory=None),
        attributes=psij.JobAttributes(duration=timedelta(), queue_name=None, account=None,
                                      custom_attributes=custom or None))
    job = psij.Job(spec)
    psij.JobExecutor.get_instance(name).submit(job)
    status = job.wait()
    assert status is not None and status.state is psij.JobState.COMPLETED
    assert (tmp_path / "out").read_text() == "5 x\n" and shlex.join(spec.arguments or []) == shlex.join(words[1:])


@pytest.mark.parametrize(("command", "code"), [("exit 0", 0), ("echo trouble >&2; exit 3", 3), ("kill -9 $$", 137)])
def test_redun(name: str, command: str, code: int, tmp_path: Path) -> None:
    """A batch configuration for every executor, its work directory is the current folder, an option of Slurm."""
    attributes: dict[str, Any] = {"custom_attributes": {"slurm.job-name": "pre.tool"}, "duration": timedelta(minutes=1)}
    spec = psij.JobSpec(executable="/bin/sh", arguments=["-c", command], directory=os.getcwd(),
                        stdout_path=str(tmp_path / "o"), stderr_path=str(tmp_path / "e"),
                        attributes=psij.JobAttributes(**attributes))
    here = Path(os.getcwd())
    config = BatchSchedulerExecutorConfig(launcher_log_file=here / ".psij", work_directory=here)
    job = psij.Job(spec)
    psij.JobExecutor.get_instance(name, config=config).submit(job)
    status = job.wait()
    assert status is not None and status.exit_code == code
    assert status.state is (psij.JobState.FAILED if code else psij.JobState.COMPLETED)
    assert (tmp_path / "e").read_text() == ("trouble\n" if code == 3 else "")


def test_radical_orbit(name: str, tmp_path: Path) -> None:
    """Streams that are named after the job, read by the callback of the end; polling of status beside."""
    spec = psij.JobSpec()
    spec.executable, spec.arguments = "/bin/sh", ["-c", "echo out; echo err >&2; exit 2"]
    spec.directory, spec.environment = str(tmp_path), {"A": "b"}
    spec.attributes = psij.JobAttributes()
    spec.attributes.duration = timedelta(seconds=int("60"))
    spec.attributes.queue_name = spec.attributes.account = spec.attributes.reservation_id = None
    spec.resources = psij.ResourceSpecV1(node_count=1)
    job = psij.Job(spec)
    spec.stdout_path, spec.stderr_path = str(tmp_path / f"{job.id}.out"), str(tmp_path / f"{job.id}.err")
    executor = psij.JobExecutor.get_instance(name)
    if hasattr(executor, "poll_interval"):
        executor.poll_interval = 5.0
    told: list[tuple[str, int | None, str, str]] = []

    def tell(job: psij.Job, status: psij.JobStatus) -> None:
        assert job.spec is not None
        if status.final:
            told.append((str(status.state).removeprefix("JobState."), status.exit_code,
                         Path(str(job.spec.stdout_path)).read_text(), Path(str(job.spec.stderr_path)).read_text()))

    job.set_job_status_callback(tell)
    executor.submit(job)
    assert job.native_id
    while not job.status.final:
        job.wait(timedelta(milliseconds=50))
    _until(lambda: bool(told))
    assert told == [("FAILED", 2, "out\n", "err\n")]


def test_bioimageflow(name: str, tmp_path: Path) -> None:
    """A configuration that is not the executor's own; the job is looked at by another object that is attached to it."""
    assert name in psij.JobExecutor.get_executor_names()
    config = psij.JobExecutorConfig(work_directory=tmp_path / "w")
    job = psij.Job(psij.JobSpec("/bin/sh", ["-c", "sleep 0.3"], resources=psij.ResourceSpecV1(node_count=1)))
    psij.JobExecutor.get_instance(name, config=config).submit(job)
    assert job.native_id is not None
    twin, executor = psij.Job(), psij.JobExecutor.get_instance(name, config=config)
    executor.attach(twin, job.native_id)
    while (status := twin.wait(timedelta(seconds=1))) is None:
        continue
    assert status.state is psij.JobState.COMPLETED and status.exit_code == 0


def _until(true: Callable[[], bool]) -> None:
    waited = threading.Event()
    for _ in range(400):
        if true():
            return
        waited.wait(0.05)
    raise AssertionError("it does not become true")
