"""Programs as people write them for psij-python: on the local executor, a real Slurm and a real Grid Engine.

They use what psij-python's documentation shows, with the settings that one gets without asking for any. What comes out
has to be the same everywhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest

from psij import (
    InvalidJobException,
    Job,
    JobAttributes,
    JobExecutor,
    JobExecutorConfig,
    JobSpec,
    JobState,
    JobStatus,
    JobStatusCallback,
    ResourceSpecV1,
    SubmitException,
)
from psij.executors.batch._watch import watcher_of
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from psij.serialize import JSONSerializer
from psij.staging import StageIn, StageOut
from tests.psij.test_batch_labs import enter_lab

LONG = timedelta(seconds=90)


@pytest.fixture(params=["local", *(pytest.param(name, marks=pytest.mark.lab) for name in ("slurm", "sge"))])
def executor(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobExecutor]:
    if request.param != "local":
        enter_lab(request.param, monkeypatch)
    monkeypatch.chdir(tmp_path)
    executor = JobExecutor.get_instance(request.param, config=JobExecutorConfig(work_directory=tmp_path / "work"))
    yield executor
    if isinstance(executor, BatchSchedulerExecutor) and (watcher := watcher_of(executor)):
        watcher.close()


def sh(line: str, **members: object) -> Job:
    return Job(JobSpec("/bin/sh", ["-c", line], **members))  # type: ignore[arg-type]


def ended(*jobs: Job) -> list[JobState]:
    found = []
    for job in jobs:
        status = job.wait(LONG)
        assert status is not None and status is job.status, job
        found.append(status.state)
    return found


def test_getting_started(executor: JobExecutor) -> None:
    job = Job(JobSpec(executable="/bin/sleep", arguments=["1"]))
    assert (job.status.state, job.native_id, job.executor) == (JobState.NEW, None, None)
    executor.submit(job)
    assert job.executor is executor and isinstance(job.native_id, str) and job.native_id in executor.list()
    assert ended(job) == [JobState.COMPLETED] and job.status.exit_code == 0 and job.status.final
    assert executor.name in str(job) and "COMPLETED" in str(job)
    job.cancel()                # nothing happens
    with pytest.raises(InvalidJobException, match="already submitted"):
        executor.submit(job)


def test_callbacks_count_a_hundred_percent(executor: JobExecutor) -> None:
    """The example of a class with a lock and an event, for a few jobs at once; the executor's callback has them all."""
    class Mine(JobStatusCallback):
        def __init__(self) -> None:
            self.left, self.lock, self.done = 5, threading.Lock(), threading.Event()
            self.seen: dict[str, list[str]] = {}

        def job_status_changed(self, job: Job, job_status: JobStatus) -> None:
            with self.lock:
                self.seen.setdefault(job.id, []).append(job_status.state.name)
                if job_status.final:
                    self.left -= 1
                    if self.left == 0:
                        self.done.set()

    mine, own = Mine(), []
    executor.set_job_status_callback(mine)
    jobs = [sh("true") for _ in range(5)]
    jobs[0].set_job_status_callback(lambda _, status: own.append(status.state.name))
    for job in jobs:
        executor.submit(job)
    assert mine.done.wait(LONG.total_seconds())
    expected = ["QUEUED", "ACTIVE", "COMPLETED"]
    assert list(mine.seen.values()) == [expected] * 5 and own == expected


def test_streams_environment_and_scripts_around(executor: JobExecutor, tmp_path: Path) -> None:
    (tmp_path / "pre").write_text("export FROM_PRE='pre x'\n")
    (tmp_path / "post").write_text("echo post >post.out\n")
    (tmp_path / "in").write_text("some input\n")
    job = Job(JobSpec(
        "/bin/sh", ["-c", 'cat; echo "$1|$FROM_PRE|$N|$WHERE"; pwd; echo problem >&2', "sh", "${WORD} $NOT `x` \"'"],
        directory=tmp_path, name="a_name", environment={"N": 3, "WORD": "w", "WHERE": "${WORD}/${UNSET}."},
        stdin_path=tmp_path / "in", stdout_path=tmp_path / "out", stderr_path=tmp_path / "err",
        pre_launch=tmp_path / "pre", post_launch=tmp_path / "post"))
    executor.submit(job)
    assert ended(job) == [JobState.COMPLETED], job.status
    assert (tmp_path / "out").read_text().splitlines() == [
        "some input", "w $NOT `x` \"'|pre x|3|w/.", str(tmp_path)]
    assert (tmp_path / "err").read_text() == "problem\n" and (tmp_path / "post.out").read_text() == "post\n"


def test_waiting(executor: JobExecutor) -> None:
    job = sh("sleep 3")
    executor.submit(job)
    assert job.wait(timedelta(0), JobState.COMPLETED) is None
    queued = job.wait(timedelta(0), [JobState.QUEUED])
    assert queued is not None
    active = job.wait(LONG, [JobState.ACTIVE, JobState.FAILED])
    assert active is not None and active.state is JobState.ACTIVE
    began = time.monotonic()
    assert job.wait(timedelta(milliseconds=200)) is None and time.monotonic() - began > 0.15
    assert ended(job) == [JobState.COMPLETED]
    for target in JobState:
        assert job.wait(timedelta(0), target) is job.status


def test_ends(executor: JobExecutor, tmp_path: Path) -> None:
    """Codes, signals, programs that are not there, time limits: each has a message that says what happened."""
    lines = {"exit 7": 7, "exit 0": 0, "exit 200": 200, "kill -9 $$": 137}
    jobs = [sh(line) for line in lines]
    missing, nowhere = Job(JobSpec("/no/such/program")), sh("true", directory=tmp_path / "nowhere")
    canceled = sh("sleep 100")
    for job in (canceled, *jobs, missing, nowhere):
        executor.submit(job)
    assert canceled.wait(LONG, JobState.ACTIVE) is not None
    canceled.cancel()
    assert ended(*jobs) == [JobState.FAILED, JobState.COMPLETED, JobState.FAILED, JobState.FAILED]
    assert [job.status.exit_code for job in jobs] == list(lines.values())
    assert ended(missing, nowhere, canceled) == [JobState.FAILED, JobState.FAILED, JobState.CANCELED]
    assert "/no/such/program" in (missing.status.message or ""), missing.status
    assert "nowhere" in (nowhere.status.message or ""), nowhere.status
    assert "Traceback" not in "".join(job.status.message or "" for job in (missing, nowhere, canceled, *jobs))


def test_resources(executor: JobExecutor, tmp_path: Path) -> None:
    custom: dict[str, object] = {"sge.pe": "smp", "pbs.for": "others", "cobalt.for": "others"}
    line = 'echo "$_PSI_J_PROCESS_INDEX_ of $_PSI_J_PROCESS_COUNT"; wc -l <$PSIJ_NODEFILE'
    job = Job(JobSpec("/bin/sh", ["-c", line], stdout_path=tmp_path / "out", launcher="multiple",
                      resources=ResourceSpecV1(node_count=1, processes_per_node=2),
                      attributes=JobAttributes(duration=timedelta(minutes=5), custom_attributes=custom)))
    assert job.spec is not None and isinstance(job.spec.resources, ResourceSpecV1)
    assert job.spec.resources.computed_process_count == 2
    executor.submit(job)
    assert ended(job) == [JobState.COMPLETED], job.status
    assert sorted((tmp_path / "out").read_text().split("\n")) == ["", "1 of 2", "2", "2", "2 of 2"]


def test_a_specification_from_a_file(executor: JobExecutor, tmp_path: Path) -> None:
    spec = JobSpec("/bin/sh", ["-c", "echo $A >out"], directory=tmp_path, name="n", environment={"A": "b c"},
                   resources=ResourceSpecV1(process_count=1), attributes=JobAttributes(timedelta(minutes=2)))
    with open(tmp_path / "spec.json", "w") as file:
        JSONSerializer().dump(spec, file)
    read = JSONSerializer().load(StringIO((tmp_path / "spec.json").read_text()))
    assert read == spec
    executor.submit(job := Job(read))
    assert ended(job) == [JobState.COMPLETED] and (tmp_path / "out").read_text() == "b c\n"


def test_somebody_else_goes_on(executor: JobExecutor, tmp_path: Path) -> None:
    """Another process attaches, sees the end, and has callbacks."""
    job = sh("sleep 4; exit 3")
    executor.submit(job)
    assert job.wait(LONG, JobState.ACTIVE) is not None
    program = """if True:
        import sys
        from datetime import timedelta
        from threading import Event
        from psij import Job, JobExecutor, JobExecutorConfig
        executor = JobExecutor.get_instance(sys.argv[1], config=JobExecutorConfig(work_directory=sys.argv[2]))
        job, told = Job(), Event()
        job.set_job_status_callback(lambda _, status: told.set() if status.final else None)
        executor.attach(job, sys.argv[3])
        status = job.wait(timedelta(seconds=60))
        print(job.spec, status.state.name, status.exit_code, job.native_id == sys.argv[3], told.wait(10))
    """
    done = subprocess.run([sys.executable, "-c", program, executor.name, str(tmp_path / "work"), job.native_id or ""],
                          capture_output=True, text=True, timeout=100, check=False)
    assert (done.stdout, done.stderr) == ("None FAILED 3 True True\n", "")
    assert ended(job) == [JobState.FAILED] and job.status.exit_code == 3


@pytest.mark.parametrize(("spec", "what"), [
    (None, "specification"), (JobSpec(), "executable"), (JobSpec("x" * 5, ["a\0b"]), "arguments"),
    (JobSpec("/bin/true", launcher="nosuch"), "launcher"),
    (JobSpec("/bin/true", environment={"A B=": "x"}), "environment")])
def test_what_is_wrong_is_said_at_once(executor: JobExecutor, spec: JobSpec | None, what: str) -> None:
    job = Job(spec)
    with pytest.raises(InvalidJobException, match=what) as raised:
        executor.submit(job)
    assert raised.value.message == str(raised.value) and job.status.state is JobState.NEW
    assert job.native_id is None


def test_cancel_before_submit(executor: JobExecutor) -> None:
    with pytest.raises(SubmitException, match="never submitted"):
        sh("true").cancel()


def test_staging(executor: JobExecutor, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("given\n")
    (tmp_path / "job").mkdir()
    seen: list[str] = []
    job = sh("cat in in >out", directory=tmp_path / "job", stage_in={StageIn(tmp_path / "given", "in")},
             stage_out={StageOut("out", tmp_path / "got")}, cleanup={"in"})
    job.set_job_status_callback(lambda _, status: seen.append(status.state.name))
    executor.submit(job)
    assert ended(job) == [JobState.COMPLETED], job.status
    assert (tmp_path / "got").read_text() == "given\n" * 2 and not (tmp_path / "job/in").exists()
    time.sleep(0.2)
    assert seen == ["QUEUED", "STAGE_IN", "ACTIVE", "STAGE_OUT", "CLEANUP", "COMPLETED"]


def test_nothing_is_left(executor: JobExecutor, tmp_path: Path) -> None:
    """After the end there are no files but the launcher's scripts, and no process."""
    before = set(os.listdir("/proc/self/task"))
    jobs = [sh("true"), sh("exit 1")]
    for job in jobs:
        executor.submit(job)
    ended(*jobs)
    work = tmp_path / "work" / executor.name
    assert not work.exists() or os.listdir(work) == []
    assert len(set(os.listdir("/proc/self/task")) - before) <= 6
