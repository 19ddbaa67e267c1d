"""The demands of the PSI/J specification, each with the test that shows it.

A demand is a sentence with MUST, SHALL or SHOULD (in either case) that asks something of an implementation; ``demand``
names its section and says in own words what is asked. The table in docs/psij.md is made from these marks:
``python tests/psij/test_spec.py`` writes it.
"""

from __future__ import annotations

import inspect
import itertools
import os
import runpy
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from packaging.version import Version

import psij
from psij import (
    InvalidJobException,
    InvalidStateException,
    Job,
    JobAttributes,
    JobExecutor,
    JobExecutorConfig,
    JobSpec,
    JobState,
    JobStatus,
    JobStatusCallback,
    Launcher,
    ResourceSpecV1,
    SubmitException,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "psij.md"
BEGIN, END = "<!-- demands: python tests/psij/test_spec.py -->\n", "<!-- end of demands -->\n"
SOON = timedelta(seconds=60)
NEVER = str(2**22 + 1)      # above the greatest process id


@dataclass(frozen=True)
class Demand:
    """section: of the specification. level: MUST, SHALL or SHOULD, in lower case where the text has it so."""

    section: str
    level: str
    asks: str
    test: str


DEMANDS: list[Demand] = []
_Test = TypeVar("_Test", bound=Callable[..., object])


def demand(section: str, level: str, asks: str) -> Callable[[_Test], _Test]:
    """Mark a test as the one of a demand."""
    def mark(test: _Test) -> _Test:
        place = next((i for i, known in enumerate(DEMANDS) if known.test == test.__name__), len(DEMANDS))
        DEMANDS.insert(place, Demand(section, level, asks, test.__name__))     # the upper mark comes later
        return test
    return mark


@pytest.fixture
def executor(tmp_path: Path) -> JobExecutor:
    return JobExecutor.get_instance("local", config=JobExecutorConfig(work_directory=tmp_path / "work"))


class Recorder(JobStatusCallback):
    """Notes statuses; ``final`` is set with the last."""

    def __init__(self) -> None:
        self.statuses: list[JobStatus] = []
        self.final = threading.Event()

    def job_status_changed(self, job: Job, job_status: JobStatus) -> None:
        self.statuses.append(job_status)
        if job_status.final:
            self.final.set()

    def states(self) -> list[JobState]:
        assert self.final.wait(20)
        return [status.state for status in self.statuses]


class Backend(JobExecutor):
    """An executor whose backend is the test."""

    def submit(self, job: Job) -> None:
        self._check_job(job)
        job._bind(self)

    def cancel(self, job: Job) -> None:
        job.status = JobStatus(JobState.CANCELED)

    def attach(self, job: Job, native_id: str) -> None:
        job._attach(self)
        job._native_id = native_id

    def list(self) -> list[str]:
        return []


def shell(code: str, *arguments: str, **members: object) -> JobSpec:
    return JobSpec("/bin/sh", ["-c", code, *arguments], **members)  # type: ignore[arg-type]


def run(executor: JobExecutor, spec: JobSpec) -> JobStatus:
    job = Job(spec)
    executor.submit(job)
    status = job.wait(SOON)
    assert status is not None
    return status


@pytest.fixture
def sleeper(executor: JobExecutor) -> Iterator[Job]:
    job = Job(JobSpec("/bin/sleep", ["60"]))
    executor.submit(job)
    yield job
    job.cancel()
    job.wait(SOON)


# -- JobExecutor ------------------------------------------------------------------------------------------------------

@demand("JobExecutor.getName", "should", "a name that is simple and says what it is")
def test_executor_name() -> None:
    ours = runpy.run_path(str(Path(psij.__file__).with_name("descriptors") / "core_descriptors.py"))
    assert all(d.name.isidentifier() for d in ours["__PSI_J_EXECUTORS__"])
    assert JobExecutor.get_instance("local").name == "local"


@demand("JobExecutor.getVersion", "should", "the version class that the platform has")
def test_executor_version() -> None:
    assert isinstance(JobExecutor.get_instance("local").version, Version)


@demand("JobExecutor.submit", "should", "wrong specifications are found early; nothing has happened then")
@pytest.mark.parametrize("spec", [None, JobSpec(), JobSpec("/bin/true", ["a\0"]), JobSpec("/bin/true", launcher="no"),
                                  JobSpec("/bin/true", attributes=JobAttributes(timedelta(-1)))])
def test_submit_fails_early(spec: JobSpec | None, executor: JobExecutor) -> None:
    job, recorder = Job(spec), Recorder()
    job.set_job_status_callback(recorder)
    status = job.status
    with pytest.raises(InvalidJobException):
        executor.submit(job)
    assert job.status is status and job.executor is None and executor.list() == []
    job.spec = JobSpec("/bin/true")
    executor.submit(job)
    assert recorder.states()[0] is JobState.QUEUED      # of the second submit; the first left no status


@demand("JobExecutor.list", "must", "native ids are different for different jobs")
@demand("JobExecutor.list", "MUST", "each job submitted here that is not final is listed")
def test_list(executor: JobExecutor) -> None:
    jobs = [Job(JobSpec("/bin/sleep", ["60"])) for _ in range(3)]
    for job in jobs:
        executor.submit(job)
    assert sorted(executor.list()) == sorted(str(job.native_id) for job in jobs) and len(set(executor.list())) == 3
    jobs[0].cancel()
    jobs[0].wait(SOON)
    assert set(executor.list()) >= {str(job.native_id) for job in jobs[1:]}
    for job in jobs[1:]:
        job.cancel()
        job.wait(SOON)


@demand("JobExecutor.list", "SHALL", "only ids that can be attached to are listed")
def test_listed_can_be_attached(executor: JobExecutor, sleeper: Job) -> None:
    for native_id in executor.list():
        job = Job()
        executor.attach(job, native_id)
        status = job.wait(SOON, JobState.ACTIVE)
        assert status is not None and status.state is JobState.ACTIVE


@demand("JobExecutor.attach", "MUST NOT", "no callback before the job is attached and has a valid status")
def test_attach_comes_before_callbacks(executor: JobExecutor, sleeper: Job) -> None:
    job, seen, done = Job(), [], threading.Event()

    def callback(job: Job, status: JobStatus) -> None:
        seen.append((job.executor, job.native_id, status.state, job.status.state is not JobState.NEW))
        if status.state is JobState.ACTIVE:
            done.set()

    job.set_job_status_callback(callback)
    executor.attach(job, str(sleeper.native_id))
    assert done.wait(20)
    assert seen == [(executor, sleeper.native_id, state, True) for state in (JobState.QUEUED, JobState.ACTIVE)]


@demand("JobExecutor.attach", "will", "a job that cannot be attached becomes FAILED")
@pytest.mark.parametrize("native_id", [NEVER, "", "no number", "-1", "0"])
def test_attach_to_nothing(native_id: str, executor: JobExecutor) -> None:
    job = Job()
    executor.attach(job, native_id)
    status = job.wait(SOON)
    assert status is not None and status.state is JobState.FAILED and status.message


@demand("JobExecutor.attach", "MUST", "InvalidJobException for a job that is not NEW")
def test_attach_only_new(executor: JobExecutor, sleeper: Job) -> None:
    with pytest.raises(InvalidJobException):
        executor.attach(sleeper, str(sleeper.native_id))
    job = Job()
    executor.attach(job, str(sleeper.native_id))
    with pytest.raises(InvalidJobException):
        executor.attach(job, str(sleeper.native_id))


@demand("JobExecutor.attach", "MUST", "status and specification that the job had are discarded")
def test_attach_discards() -> None:
    job = Job(JobSpec("/bin/true", resources=ResourceSpecV1(node_count=9)))
    Backend().attach(job, "1")
    assert job.spec is None and job.native_id == "1"


# -- Job: the state model ---------------------------------------------------------------------------------------------

@demand("Job: State Model", "MUST", "transitions follow the model: NEW, QUEUED, ACTIVE, one final state")
@demand("Job", "must", "executors keep to the state model")
@pytest.mark.parametrize(("spec", "final"), [(shell("exit 0"), JobState.COMPLETED), (shell("exit 3"), JobState.FAILED)])
def test_state_model(spec: JobSpec, final: JobState, executor: JobExecutor) -> None:
    job, of_job, of_executor = Job(spec), Recorder(), Recorder()
    assert job.status.state is JobState.NEW
    job.set_job_status_callback(of_job)
    executor.set_job_status_callback(of_executor)
    executor.submit(job)
    assert of_job.states() == of_executor.states() == [JobState.QUEUED, JobState.ACTIVE, final]


@demand("Job: State Model", "MUST", "CANCELED comes when the backend has done it, not with the request")
def test_canceled_when_it_is_over(executor: JobExecutor, tmp_path: Path) -> None:
    code = "trap 'sleep 0.3; echo over >over; exit' TERM; echo ready >ready; while :; do sleep 0.01; done"
    job = Job(shell(code, directory=tmp_path))
    executor.submit(job)
    while not (tmp_path / "ready").exists():
        time.sleep(0.01)
    job.cancel()
    assert job.status.state is JobState.ACTIVE
    status = job.wait(SOON)
    assert status is not None and status.state is JobState.CANCELED and (tmp_path / "over").exists()


@demand("Job: State Model", "MUST NOT", "what a backend reports beyond the model makes no status")
@pytest.mark.parametrize("first", list(JobState))
@pytest.mark.parametrize("second", list(JobState))
def test_no_other_transitions(first: JobState, second: JobState) -> None:
    job = Job()
    job.status = JobStatus(first)
    before, possible = job.status, second.is_greater_than(first)
    job.status = status = JobStatus(second)
    assert job.status is (status if possible else before)


@demand("Job: State Model", "MUST", "states that the backend has not are reported all the same")
@demand("Job: State Model", "MUST", "QUEUED is reported between NEW and ACTIVE")
@demand("Job.getStatus", "must", "missing states are simulated")
def test_missing_states() -> None:
    job, recorder = Job(), Recorder()
    job.set_job_status_callback(recorder)
    job.status = JobStatus(JobState.ACTIVE)
    job.status = JobStatus(JobState.COMPLETED)
    assert recorder.states() == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]
    job, recorder = Job(), Recorder()
    job.set_job_status_callback(recorder)
    job.status = JobStatus(JobState.COMPLETED)
    assert recorder.states() == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]


@demand("JobState.isGreaterThan", "must", "notifications are delivered in the order of the states")
@demand("Job.wait", "should", "who needs every state uses callbacks: they miss none")
def test_notifications_in_order() -> None:
    recorders = [Recorder() for _ in range(50)]
    jobs = [Job() for _ in recorders]
    for job, recorder in zip(jobs, recorders, strict=True):
        job.set_job_status_callback(recorder)
    for state in (JobState.QUEUED, JobState.ACTIVE, JobState.QUEUED, JobState.FAILED, JobState.COMPLETED):
        for job in jobs:
            job.status = JobStatus(state)
    for recorder in recorders:
        assert recorder.states() == [JobState.QUEUED, JobState.ACTIVE, JobState.FAILED]


def test_order_of_states() -> None:
    """JobState.isGreaterThan: transitive, and final states cannot be compared."""
    for a, b, c in itertools.product(JobState, repeat=3):
        if a.is_greater_than(b) and b.is_greater_than(c):
            assert a.is_greater_than(c)
    for a, b in itertools.permutations(JobState, 2):
        assert (a.is_greater_than(b) is None) == (a.final and b.final)


# -- JobSpec ----------------------------------------------------------------------------------------------------------

@demand("JobSpec.setName", "should", "the name travels with the job, to where people look for it")
def test_name() -> None:
    assert JobSpec("/bin/x", name="my job").name == "my job" and JobSpec("/bin/x").name == "/bin/x"
    script = submit_script(JobSpec("/bin/x", name="my-job"))
    assert "my-job" in script


@demand("JobSpec.setDirectory", "must", "absolute, or from the home directory with ~/")
def test_directory(executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    for directory, expected in (("~/below", tmp_path / "below"), (str(tmp_path), tmp_path)):
        assert run(executor, shell("pwd >~/pwd.out", directory=directory)).exit_code == 0
        assert (tmp_path / "pwd.out").read_text() == f"{expected}\n"


@demand("JobSpec.setEnvironment", "must", "${NAME} in values is replaced")
@demand("JobSpec.setArguments", "are", "and in arguments likewise")
def test_environment(executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE", "base")
    spec = shell('printf "%s\\n" "$LIST" "$1"', "sh", "<${LIST}${UNSET}> $BASE", stdout_path=tmp_path / "out",
                 environment={"LIST": "more:${BASE}"})
    assert run(executor, spec).exit_code == 0
    assert (tmp_path / "out").read_text() == "more:base\n<more:base${UNSET}> $BASE\n"


@demand("JobSpec.setPreLaunch", "SHALL", "what pre-launch sets is there for the launcher")
@demand("JobSpec.setPreLaunch", "should", "and the launcher hands it on to every rank")
@demand("JobSpec.setPostLaunch", "SHALL", "post-launch is sourced after the end of every rank")
@demand("JobSpec.setPreLaunch, setPostLaunch", "SHALL", "POSIX shell scripts are what is sourced")
def test_pre_and_post_launch(executor: JobExecutor, tmp_path: Path) -> None:
    (tmp_path / "pre").write_text("# POSIX only\nWORD=${WORD:-set}\nexport WORD\nonce=$((1 + 1)); : >started.$once\n")
    (tmp_path / "post").write_text('if [ "$once" -eq 2 ]; then ls ended.* | wc -l >post.out; fi\n')
    code = 'sleep 0.$((_PSI_J_PROCESS_INDEX_ * 2)); echo $WORD; : >ended.$_PSI_J_PROCESS_INDEX_'
    spec = shell(code, directory=tmp_path, launcher="multiple", resources=ResourceSpecV1(process_count=3),
                 pre_launch=tmp_path / "pre", post_launch=tmp_path / "post", stdout_path="out")
    assert run(executor, spec).exit_code == 0
    assert (tmp_path / "out").read_text() == "set\n" * 3
    assert (tmp_path / "post.out").read_text().strip() == "3"
    assert len(list(tmp_path.glob("started.*"))) == 1


@demand("JobSpec.setLauncher", "required", "launchers single, multiple and mpirun are there")
@demand("JobSpec.setLauncher", "must", "and one for each executor that has its own: srun for slurm")
def test_launchers() -> None:
    assert {"single", "multiple", "mpirun"} <= Launcher.get_launcher_names()
    own = {"slurm": "srun", "lsf": "jsrun", "cobalt": "aprun"}
    assert {own[name] for name in JobExecutor.get_executor_names() & own.keys()} <= Launcher.get_launcher_names()
    assert {"srun", "jsrun", "aprun"} <= Launcher.get_launcher_names()


# -- JobStatus, callbacks, exceptions ---------------------------------------------------------------------------------

@demand("JobStatus", "should", "times are those of the transitions, from the backend where it has them")
def test_times(executor: JobExecutor) -> None:
    job, recorder = Job(shell("sleep 0.3")), Recorder()
    job.set_job_status_callback(recorder)
    before = time.time()
    executor.submit(job)
    recorder.states()
    times = [status.time for status in recorder.statuses]
    assert before <= times[0] <= times[1] and times[1] + 0.3 <= times[2] <= time.time()
    told = Job()
    told.set_job_status_callback(filled := Recorder())
    told.status = JobStatus(JobState.COMPLETED, 9.0, metadata={"submit_time": 1.0, "start_time": 5})
    filled.states()
    assert [status.time for status in filled.statuses] == [1.0, 5.0, 9.0]


@demand("JobStatusCallback.jobStatusChanged", "must", "listeners implement the method")
def test_callback_is_abstract() -> None:
    with pytest.raises(TypeError):
        JobStatusCallback()  # type: ignore[abstract]
    assert list(inspect.signature(JobStatusCallback.job_status_changed).parameters) == ["self", "job", "job_status"]


@demand("JobStatusCallback.jobStatusChanged", "should", "the status given is the one announced, whatever job.status is")
def test_status_of_the_announcement() -> None:
    job, seen, done = Job(), [], threading.Event()

    def callback(job: Job, status: JobStatus) -> None:
        if status.state is JobState.QUEUED:
            job.wait(SOON)
        seen.append((status.state, job.status.state))
        if status.final:
            done.set()

    job.set_job_status_callback(callback)
    job.status = JobStatus(JobState.QUEUED)
    job.status = JobStatus(JobState.COMPLETED)
    assert done.wait(20)
    assert seen == [(state, JobState.COMPLETED) for state in (JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED)]


@demand("JobStatusCallback.jobStatusChanged", "must", "listeners return quickly; one that does not harms nobody")
def test_slow_callback(executor: JobExecutor) -> None:
    release, slow, other, recorder = threading.Event(), Job(shell("exit 0")), Job(shell("exit 0")), Recorder()
    slow.set_job_status_callback(lambda job, status: [None, None][release.wait(20)])
    other.set_job_status_callback(recorder)
    executor.submit(slow)
    executor.submit(other)
    assert slow.wait(SOON) is not None and other.wait(SOON) is not None
    assert recorder.final.wait(10) and not release.is_set()
    release.set()


@demand("InvalidJobException.getMessage", "should", "clear to an end user: what is wrong, where, what was expected")
@demand("InvalidJobException.getException", "should", "the cause is for debugging and not part of the message")
def test_invalid_job(executor: JobExecutor) -> None:
    given: list[Any] = ["a", None]
    with pytest.raises(InvalidJobException) as caught:
        executor.submit(Job(JobSpec("/bin/true", given)))
    assert caught.value.message == str(caught.value) == "arguments[1] must be a str, not NoneType: None"
    cause = InvalidJobException("wrong", ValueError("inside"))
    assert str(cause) == "wrong" and isinstance(cause.exception, ValueError)


@demand("SubmitException.getMessage", "should", "clear to an end user")
@demand("SubmitException.getException", "should", "the cause is for debugging and not part of the message")
@demand("SubmitException.isTransient", "would", "says whether trying again may help")
def test_submit_exception() -> None:
    error = SubmitException("no answer", OSError("inside"), transient=True)
    assert str(error) == error.message == "no answer" and isinstance(error.exception, OSError)
    assert error.transient and error.isTransient() and not SubmitException("refused").transient


def test_invalid_state(executor: JobExecutor) -> None:
    """InvalidStateException: submitting twice, cancelling what was never submitted."""
    job = Job(shell("exit 0"))
    executor.submit(job)
    with pytest.raises(InvalidStateException):
        executor.submit(job)
    with pytest.raises(InvalidStateException):
        Job().cancel()
    with pytest.raises(InvalidStateException):
        executor.cancel(Job())
    job.wait(SOON)


# -- resources and attributes -----------------------------------------------------------------------------------------

def submit_script(spec: JobSpec) -> str:
    """What the slurm executor gives to sbatch."""
    slurm = pytest.importorskip("psij.executors.batch.slurm", reason="there is no slurm executor yet")
    import io

    executor = slurm.SlurmJobExecutor()
    job, out = Job(spec), io.StringIO()
    executor.generate_submit_script(job, executor._create_script_context(job), out)
    return out.getvalue()


@demand("ResourceSpecV1.setNodeCount", "must", "the LRM is told to allocate that many nodes")
@demand("ResourceSpecV1.setExclusiveNodeUse", "should", "nodes are shared or not, as stated")
def test_nodes() -> None:
    script = submit_script(JobSpec("/bin/x", resources=ResourceSpecV1(node_count=7, exclusive_node_use=True)))
    assert "--nodes=7\n" in script.replace('"', "") and "--exclusive" in script
    assert "--exclusive" not in submit_script(JobSpec("/bin/x", resources=ResourceSpecV1(node_count=7)))


@demand("JobAttributes.setReservationId", "should", "the job goes to the reservation")
def test_reservation() -> None:
    script = submit_script(JobSpec("/bin/x", attributes=JobAttributes(reservation_id="res.1")))
    assert "--reservation=res.1\n" in script.replace('"', "")


@demand("JobAttributes.setDuration", "is", "10 minutes when nothing is said")
@demand("TimeInterval", "should", "the platform's own class; made of units or of hours, minutes and seconds")
@demand("TimeUnit", "must", "seconds, minutes and hours")
def test_time_intervals() -> None:
    assert JobAttributes().duration == timedelta(minutes=10)
    parse = JobAttributes.parse_walltime
    assert [parse(text) for text in ("7s", "7m", "7h")] == [timedelta(seconds=n) for n in (7, 420, 25200)]
    assert parse("1:02:03").total_seconds() == 3723


# -- backends ---------------------------------------------------------------------------------------------------------

@demand("Implementation notes", "should", "one status command asks for many jobs")
def test_bulk_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = pytest.importorskip("psij.executors.batch.batch_scheduler_executor", reason="there is no batch base yet")
    asked: list[set[str]] = []

    class Scheduler(base.BatchSchedulerExecutor):  # type: ignore[name-defined,misc]
        _NAME_ = "stand-in"

        def generate_submit_script(self, job: Job, context: object, submit_file: object) -> None:
            pass

        def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
            return ["/bin/echo", f"{len(asked)}{time.monotonic_ns()}"]

        def job_id_from_submit_output(self, out: str) -> str:
            return out.strip()

        def get_cancel_command(self, native_id: str) -> list[str]:
            return ["/bin/true"]

        def process_cancel_command_output(self, exit_code: int, out: str) -> None:
            pass

        def get_status_command(self, native_ids: object) -> list[str]:
            asked.append(set(native_ids))  # type: ignore[call-overload]
            return ["/bin/echo", *asked[-1]]

        def parse_status_output(self, exit_code: int, out: str) -> dict[str, JobStatus]:
            return {word: JobStatus(JobState.COMPLETED, exit_code=0) for word in out.split()} if len(out.split()) == 5 \
                else {word: JobStatus(JobState.QUEUED) for word in out.split()}

        def get_list_command(self) -> list[str]:
            return ["/bin/true"]

    config = base.BatchSchedulerExecutorConfig(work_directory=tmp_path, queue_polling_interval=1,
                                               initial_queue_polling_delay=1)
    scheduler = Scheduler(config=config)
    jobs = [Job(JobSpec("/bin/true")) for _ in range(5)]
    for job in jobs:
        scheduler.submit(job)
    for job in jobs:
        status = job.wait(SOON)
        assert status is not None and status.state is JobState.COMPLETED
    assert {str(job.native_id) for job in jobs} in asked and len(asked) <= 3


# -- the table --------------------------------------------------------------------------------------------------------

def table() -> str:
    """The demands as a table for docs/psij.md."""
    rows = [f"| {d.section} | {d.level} | {d.asks} | `{d.test}` |" for d in DEMANDS]
    return "\n".join(["| section | word | what is asked | test |", "| --- | --- | --- | --- |", *rows, ""])


def test_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0] == table(), "run: python tests/psij/test_spec.py"


def main() -> None:
    """Write the table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.partition(END)[2], encoding="utf-8")
    print(f"{os.path.relpath(PAGE)}: {len(DEMANDS)} demands")


if __name__ == "__main__":
    main()
