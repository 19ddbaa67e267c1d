"""Jobs that really run: manager, service and the local executor; and what an executor's statuses mean."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from psij import Job, JobExecutor, JobState, JobStatus, SubmitException
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.manager import ManagedJob, Manager, Result
from sssjob.fluxexec.psijspec import spec_of
from sssjob.fluxexec.runner import PsijRunner, what_ended
from sssjob.fluxexec.service import Ended, Lost, NotStarted, Service, What
from sssjob.fluxexec.simulator import SimulatedRunner
from sssjob.fluxexec.transport import pair
from sssjob.lrm.flux.errors import JobspecError
from sssjob.lrm.flux.jobspec import read_jobspec, shares
from sssjob.lrm.idset import Idset
from tests.fluxexec.support import jobspec
from tests.gate import until_there


class Site:
    """A manager with four ranks, and a service over an executor, in one process."""

    def __init__(self, executor: JobExecutor | None = None, **options: Any) -> None:
        self.loop = Loop()
        self.executor = executor or JobExecutor.get_instance("local")
        self.manager = Manager(Idset.parse("0-3"), self.loop.now)
        self.runner = PsijRunner(self.loop, self.executor, **options)
        self.service = self.join(self.runner)

    def join(self, runner: PsijRunner, **options: Any) -> Service:
        mine, theirs = pair(self.loop)
        self.manager.connect(mine)
        self.service = Service(self.loop, theirs, runner, **options)
        self.service.begin()
        return self.service

    def run(self, until: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not self.loop.run(until, 0.05):       # files are looked at, too
            assert time.monotonic() < end

    def over(self, *jobs: ManagedJob) -> list[Result | None]:
        self.run(lambda: all(job.result for job in jobs))
        return [job.result for job in jobs]


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.runner.end_all(5)
    made.loop.close()


def names(job: ManagedJob) -> list[str]:
    return [name for name, _ in job.events]


def test_jobs_run(site: Site, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    shell = {"options": {"output": {"stdout": {"type": "file", "path": out}}}}
    spec = jobspec("sh", "-c", "pwd; echo $GREETING $FLUX_JOB_ID", cwd=str(tmp_path), shell=shell,
                   environment={"GREETING": "hello", "GONE": None})
    good, bad, none = (site.manager.submit(s) for s in (spec, jobspec("sh", "-c", "exit 3"), jobspec("/no/such")))
    killed = site.manager.submit(jobspec("sh", "-c", "kill -9 $$"))
    assert site.over(good, bad, none, killed) == [Result.COMPLETED, Result.FAILED, Result.FAILED, Result.FAILED]
    assert Path(out).read_text() == f"{tmp_path}\nhello 1\n"
    assert [j.wait_status for j in (good, bad, none, killed)] == [0, 768, None, 9]
    assert none.exception is not None and none.exception["type"] == "exec" and "/no/such" in none.exception["note"]
    assert names(good) == ["alloc", "debug.start-request", "start", "finish", "release", "free", "clean"]
    assert names(none) == ["alloc", "debug.start-request", "exception", "release", "free", "clean"]


def test_a_shell_a_rank(site: Site, tmp_path: Path) -> None:
    site.service.partial = True
    script = f'mkdir d && exit 1; {until_there()}; exit 2'
    job = site.manager.submit(jobspec("sh", "-c", script, nodes=2, cwd=str(tmp_path)))
    site.run(lambda: "release" in names(job))
    (tmp_path / "go").touch()
    assert site.over(job) == [Result.FAILED] and job.wait_status == 512
    assert sorted(c["ranks"] for n, c in job.events if n == "release" and c) == ["0", "1"]


def test_cancel(site: Site) -> None:
    job = site.manager.submit(jobspec("sleep", "100", nodes=2))
    site.run(lambda: "start" in names(job))
    site.manager.cancel(job.id, "enough")
    assert site.over(job) == [Result.CANCELED] and job.wait_status == signal.SIGTERM
    assert names(job)[-5:] == ["exception", "finish", "release", "free", "clean"]


def test_cancel_at_once(site: Site) -> None:
    jobs = [site.manager.submit(jobspec("sleep", "100")) for _ in range(4)]
    for job in jobs:
        site.manager.cancel(job.id)
    assert site.over(*jobs) == [Result.CANCELED] * 4


def test_expiration(site: Site) -> None:
    job = site.manager.submit(jobspec("sleep", "100", duration=0.5))
    assert site.over(job) == [Result.TIMEOUT] and job.wait_status == signal.SIGTERM


def test_reload_in_this_process(site: Site) -> None:
    job = site.manager.submit(jobspec("sleep", "0.3"))
    site.run(lambda: "start" in names(job))
    site.service.close()
    time.sleep(0.5)                                 # it ends while nobody listens
    site.join(site.runner)
    assert site.over(job) == [Result.COMPLETED]
    assert names(job)[2:6] == ["start", "debug.start-lost", "debug.start-request", "debug.exec-reattach-finish"]


def test_reload_by_another_process(tmp_path: Path) -> None:
    site = Site(folder=tmp_path / "state")
    job = site.manager.submit(jobspec("sh", "-c", until_there(), cwd=str(tmp_path)))
    site.run(lambda: "start" in names(job) and (tmp_path / "state" / "1.json").exists())
    lost = site.manager.submit(jobspec("sleep", "100"))
    site.run(lambda: "start" in names(lost))
    site.service.close()
    site.runner.close()
    (tmp_path / "state" / f"{lost.id}.json").write_text('{"executor": "local"')
    os.kill(int(site.runner._runs[lost.id].jobs[0].native_id or 0), signal.SIGKILL)
    after = PsijRunner(site.loop, JobExecutor.get_instance("local"), folder=tmp_path / "state")
    site.join(after)
    site.run(lambda: "debug.exec-reattach-finish" in names(job))
    (tmp_path / "go").touch()
    site.over(job, lost)
    assert job.result is Result.COMPLETED
    assert lost.exception is not None and lost.exception["note"] == "the job's processes were not found"
    after.close()
    site.loop.close()


def test_override_by_the_simulator(site: Site) -> None:
    # Design criteria: "Support execution service override by the Flux simulator."
    site.run(lambda: site.manager.service is not None)
    mine, theirs = pair(site.loop)
    site.manager.connect(mine)
    Service(site.loop, theirs, SimulatedRunner(site.loop), name="sim").begin()
    job = None
    site.run(lambda: site.manager.service is not None and site.manager.service.name == "sim")
    job = site.manager.submit(jobspec("/no/such"))
    assert site.over(job) == [Result.COMPLETED] and site.service.jobs == {}


class Odd(JobExecutor):
    """An executor that takes its time to say no, from the third job on."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[Job] = []
        self.gate = threading.Event()

    def submit(self, job: Job) -> None:
        self.gate.wait(10)
        if len(self.jobs) >= 2:
            raise SubmitException("full", transient=True)
        self._check_job(job)
        job._bind(self)
        self.jobs.append(job)
        job.status = JobStatus(JobState.ACTIVE)

    def cancel(self, job: Job) -> None:
        job.status = JobStatus(JobState.CANCELED)

    def attach(self, job: Job, native_id: str) -> None:
        raise SubmitException("cannot")

    def list(self) -> list[str]:
        return []


def test_an_executor_that_has_no_room() -> None:
    odd = Odd()
    site = Site(odd, split=True)
    job = site.manager.submit(jobspec("true", nodes=3))
    odd.gate.set()
    assert site.over(job) == [Result.FAILED]
    assert job.exception is not None and job.exception["note"] == "full"
    assert [j.status.state for j in odd.jobs] == [JobState.CANCELED] * 2
    site.runner.close()
    site.loop.close()


def test_an_executor_with_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Odd()
    monkeypatch.setattr(odd, "submit", lambda job: dict[str, str]()["fault"])
    site = Site(odd)
    job = site.manager.submit(jobspec())
    assert site.over(job) == [Result.FAILED]
    assert job.exception is not None and job.exception["note"] == "'fault'"
    site.runner.close()
    site.loop.close()


def test_what_has_started_is_recorded_before_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that is killed as soon as a job manager knows of a start finds the job again."""
    site = Site(folder=tmp_path / "state")
    write, recorded = PsijRunner._write, []

    def late(runner: PsijRunner, run: Any) -> None:
        time.sleep(0.2)
        write(runner, run)

    def changed(job: ManagedJob, event: str) -> None:
        if event == "start":
            recorded.append((tmp_path / "state" / f"{job.id}.json").exists())

    monkeypatch.setattr(PsijRunner, "_write", late)
    site.manager.changed = changed
    jobs = [site.manager.submit(jobspec("sleep", "0.1")), site.manager.submit(jobspec("sleep", "0.5", nodes=2))]
    assert site.over(*jobs) == [Result.COMPLETED] * 2 and recorded == [True, True]
    assert names(jobs[0]) == ["alloc", "debug.start-request", "start", "finish", "release", "free", "clean"]
    site.runner.close()
    site.loop.close()


class Slow(Odd):
    """An executor that takes all jobs, once it may, and notes how many it had at each cancel."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def submit(self, job: Job) -> None:
        self.gate.wait(10)
        job._bind(self)
        self.jobs.append(job)
        job.status = JobStatus(JobState.ACTIVE)

    def cancel(self, job: Job) -> None:
        self.seen.append(len(self.jobs))
        super().cancel(job)


def test_a_cancel_has_its_turn_between_submissions() -> None:
    """Jobs that wait are submitted together, but none before a call that was made before it."""
    slow = Slow()
    loop = Loop()
    runner = PsijRunner(loop, slow, split=True)
    manager = Manager(Idset.parse("0-99"), loop.now)
    mine, theirs = pair(loop)
    manager.connect(mine)
    Service(loop, theirs, runner).begin()
    early = [manager.submit(jobspec()) for _ in range(10)]
    loop.run(lambda: all(job.outstanding for job in early), 60)
    loop.run(timeout=0.1)               # they have come to the executor, which takes none
    manager.cancel(early[0].id)
    loop.run(timeout=0.1)
    late = [manager.submit(jobspec()) for _ in range(50)]
    loop.run(lambda: all(job.outstanding for job in late), 60)
    loop.run(timeout=0.1)
    slow.gate.set()
    loop.run(lambda: all(job.started for job in late), 60)
    for job in early + late:
        manager.cancel(job.id)
    loop.run(lambda: all(job.result for job in early + late), 60)
    assert slow.seen[0] <= 10 and len(slow.seen) == 60
    runner.close()
    loop.close()


def test_one_psij_job_for_all_ranks() -> None:
    odd = Odd()
    odd.gate.set()
    site = Site(odd)
    job = site.manager.submit(jobspec("true", nodes=3, slots=2, duration=90, queue="q", bank="b"))
    site.run(lambda: "start" in names(job))
    spec = odd.jobs[0].spec
    assert spec is not None and spec.resources is not None
    assert spec.resources._values() == {  # type: ignore[attr-defined]
        "node_count": 3, "process_count": 6, "processes_per_node": None, "cpu_cores_per_process": 1,
        "gpu_cores_per_process": None, "exclusive_node_use": False, "memory": None}
    assert (spec.attributes.duration and spec.attributes.duration.total_seconds(), spec.attributes.queue_name,
            spec.attributes.account) == (90, "q", "b")
    odd.jobs[0].status = JobStatus(JobState.FAILED, message="gone", metadata={"reason": "lost"})
    assert site.over(job) == [Result.FAILED]
    assert job.exception is not None and job.exception["type"] == "node-failure"
    site.runner.close()
    site.loop.close()


C, F, X = JobState.COMPLETED, JobState.FAILED, JobState.CANCELED


@pytest.mark.parametrize(("status", "up", "what"), [
    (JobStatus(C), True, Ended(0)), (JobStatus(C, exit_code=0), True, Ended(0)),
    (JobStatus(F, exit_code=3), True, Ended(768)), (JobStatus(F, exit_code=143), True, Ended(143 << 8)),
    (JobStatus(F, exit_code=143, metadata={"signal": 15}), True, Ended(15)),
    (JobStatus(F, exit_code=139, metadata={"signal": 11, "core_dumped": True}), True, Ended(139)),
    (JobStatus(F, metadata={"reason": "timeout"}), True, Ended(15, timed_out=True)),
    (JobStatus(F, exit_code=143, metadata={"reason": "timeout", "signal": 15}), True, Ended(15, timed_out=True)),
    (JobStatus(F, message="no file"), False, NotStarted("no file")), (JobStatus(X), True, Ended(15)),
    (JobStatus(X), False, NotStarted("the job is CANCELED")), (JobStatus(F, message="gone"), True, Lost("gone")),
    (JobStatus(F, exit_code=1, message="?", metadata={"reason": "unknown-exit"}), True, Lost("?")),
])
def test_what_a_status_says(status: JobStatus, up: bool, what: What) -> None:
    assert what_ended(status, up) == what


# Simulator

def test_a_simulated_week_takes_no_time() -> None:
    loop = Loop(virtual=True)
    manager = Manager(Idset.parse("0-9"), loop.now)
    mine, theirs = pair(loop)
    manager.connect(mine)
    Service(loop, theirs, SimulatedRunner(loop, split=True)).begin()
    jobs = [manager.submit(jobspec("sleep", "3600", nodes=4)) for _ in range(4)]
    jobs += [manager.submit(jobspec("sleep", "1e6", duration=7200)), manager.submit(jobspec("false"))]
    jobs.append(manager.submit({**jobspec(), "attributes": {"user": {"simulate": {"runtime": 5, "status": 11}}}}))
    begin = time.process_time()
    loop.run()
    assert time.process_time() - begin < 5
    took = {job.id: job.times[names(job).index("finish")] for job in jobs}
    assert took == {1: 3600, 2: 3600, 3: 7200, 4: 7200, 5: 10800, 6: 3600, 7: 3605}
    assert [job.result for job in jobs[3:]] == [Result.COMPLETED, Result.TIMEOUT, Result.FAILED, Result.FAILED]
    assert (jobs[4].wait_status, jobs[6].wait_status) == (15, 11)


@pytest.mark.slow
def test_many_jobs() -> None:
    loop = Loop(virtual=True)
    manager = Manager(Idset.parse("0-99"), loop.now)
    mine, theirs = pair(loop)
    manager.connect(mine)
    Service(loop, theirs, SimulatedRunner(loop)).begin()
    jobs = [manager.submit(jobspec()) for _ in range(5000)]
    loop.run()
    assert {job.result for job in jobs} == {Result.COMPLETED}


# Jobspec

@pytest.mark.parametrize(("tasks", "ranks", "expected"), [
    (4, "0-1", [2, 2]), (5, "0-1", [2, 3]), (1, "0-2", [1]), (3, "7", [3])])
def test_shares(tasks: int, ranks: str, expected: list[int]) -> None:
    assert [count for _, count in shares(tasks, Idset.parse(ranks))] == expected


def test_jobspec() -> None:
    job = read_jobspec({**jobspec("a", "b", nodes=2, slots=3), "tasks": [
        {"command": ["a", "b"], "slot": "task", "count": {"total": 5}}]})
    assert (job.command, job.nodes, job.tasks) == (("a", "b"), 2, 5)
    spec = spec_of(job, 5, 2, variables={})
    assert spec.resources is not None and spec.launcher == "multiple"
    assert (spec.resources.node_count, spec.resources.process_count) == (None, 5)  # type: ignore[attr-defined]


@pytest.mark.parametrize("resources", [
    [], [{}], [{"type": "slot", "count": 1}], [{"type": "slot", "count": 0, "with": [{"type": "core", "count": 1}]}],
    [{"type": "slot", "count": 1, "with": []}], [{"type": "node", "count": 1, "with": [{"type": "node", "count": 1}]}],
    [{"type": "slot", "count": True, "with": [{"type": "core", "count": 1}]}], None, [1]])
def test_resources_that_are_none(resources: Any) -> None:
    with pytest.raises(JobspecError):
        read_jobspec({**jobspec(), "resources": resources})
