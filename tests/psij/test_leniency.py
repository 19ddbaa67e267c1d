"""What programs written for psij-python give and this package takes too; the rows are in docs/psij.md."""

from __future__ import annotations

import asyncio
import io
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import pytest

from psij import (
    AsyncJob,
    AsyncJobStatusCallback,
    InvalidJobException,
    InvalidStateException,
    Job,
    JobAttributes,
    JobExecutor,
    JobSpec,
    JobState,
    JobStatus,
    JobStatusCallback,
    JSONSerializer,
    ResourceSpecV1,
)
from psij._validate import check_spec
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.lrm import LrmExecutor
from psij.executors.local import LocalJobExecutor

_SHOW = "import os, sys; sys.stdout.write('|'.join([*sys.argv[1:], os.environ['N'], os.environ['P'], os.environ['F']]))"


@pytest.mark.parametrize(("given", "texts"), [
    ([Path("/a b"), PurePosixPath("c"), 3, 2.5, True, "x"], ["/a b", "c", "3", "2.5", "True", "x"]),
    (("a", Path("b")), ["a", "b"]),
    (("a", "b"), ("a", "b")),
    ((str(n) for n in range(3)), ["0", "1", "2"]),
    (range(2), ["0", "1"]),
    (map(Path, ["/a"]), ["/a"]),
    ([], []),
    (None, None),
])
def test_arguments(given: Any, texts: object) -> None:
    spec = JobSpec("/x", given)
    assert check_spec(spec).arguments == texts
    written = JSONSerializer().loads(JSONSerializer().dumps(spec)).arguments
    assert written == (list(texts) if isinstance(texts, list | tuple) else None)


def test_numbers_as_names() -> None:
    """Projects and queues that are numbers, as programs set them."""
    spec = JobSpec("/x")
    attributes = spec.attributes
    assert attributes is not None
    stated: Any = spec
    stated.name, stated.attributes.account, stated.attributes.queue_name = 5, 17_001, Path("gpu")
    check_spec(spec)
    assert (spec.name, attributes.account, attributes.queue_name) == ("5", "17001", "gpu")


def test_a_list_of_arguments_is_not_copied() -> None:
    """Specification, setArguments: more can be added to the list that was given."""
    given: list[Any] = ["a"]
    spec = JobSpec("/x", given)
    given.append(7)
    assert check_spec(spec).arguments == ["a", "7"] and given == ["a", 7]


@pytest.mark.parametrize(("given", "message"), [
    ("a b", "arguments must be a list of texts, not str"),
    ({"a"}, "arguments must be a list of texts, not set"),
    ({"a": "b"}, "arguments must be a list of texts, not dict"),
    (5, "arguments must be a list of texts, not int"),
    (["a", None], r"arguments\[1\] must be a str, not NoneType: None"),
    ([b"a"], r"arguments\[0\] must be a str, not bytes: b'a'"),
    ([Path("a\0")], r"arguments\[0\] contains a NUL character: 'a\x00'"),
])
def test_arguments_that_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidJobException) as caught:
        check_spec(JobSpec("/x", given))
    assert caught.value.message == re.sub(r"\\(?=[\[\]])", "", message).replace(r"\x00", "\\x00")


@pytest.mark.parametrize("wrap", [dict, MappingProxyType])
def test_environment(wrap: Any, tmp_path: Path) -> None:
    given: Mapping[str, Any] = wrap({"N": 3, "P": Path("/p"), "F": 0.5})
    spec = JobSpec(sys.executable, ["-c", _SHOW, Path("/a"), 1], stdout_path=tmp_path / "out", environment=given)
    assert spec.environment == {"N": "3", "P": "/p", "F": "0.5"}
    job = Job(spec)
    LocalJobExecutor().submit(job)
    status = job.wait(60)
    assert status is not None and status.exit_code == 0
    assert (tmp_path / "out").read_text() == "/a|1|3|/p|0.5"


def test_the_own_environment() -> None:
    spec = JobSpec("/x", environment=os.environ)
    assert check_spec(spec).environment == dict(os.environ)
    kept: dict[str, str] = {}
    assert JobSpec("/x", environment=kept).environment is kept


@pytest.mark.parametrize(("environment", "message"), [
    ([("A", "b")], "environment must be a dict, not list"),
    ({"A": b"x"}, "environment['A'] must be a str, not bytes: b'x'"),
    ({"A": None}, "environment['A'] must be a str, not NoneType: None"),
])
def test_an_environment_that_is_refused(environment: Any, message: str) -> None:
    with pytest.raises(InvalidJobException) as caught:
        check_spec(JobSpec("/x", environment=environment))
    assert caught.value.message == message


def test_a_count_of_zero_is_not_stated() -> None:
    zero = ResourceSpecV1(node_count=0, process_count=0, processes_per_node=0, cpu_cores_per_process=0,
                          gpu_cores_per_process=0, memory=0)
    assert zero == ResourceSpecV1(gpu_cores_per_process=0, memory=0)
    zero.process_count = 4
    zero.node_count = 0
    assert (zero.computed_node_count, zero.computed_process_count) == (1, 4)
    with pytest.raises(InvalidJobException, match=r"resources.node_count must be at least 1, not -1"):
        ResourceSpecV1(node_count=-1)


class _NumberOfAnArray:
    """As NumPy's: no int, but a whole number."""

    def __index__(self) -> int:
        return 6


def test_a_count_that_was_computed_by_another_library() -> None:
    number: Any = _NumberOfAnArray()
    resources = ResourceSpecV1(process_count=number)
    resources.node_count = number
    assert resources == ResourceSpecV1(node_count=6, process_count=6) and type(resources.node_count) is int


def test_a_duration_of_zero_is_no_limit() -> None:
    attributes = JobAttributes(duration=timedelta(0))
    assert attributes == JobAttributes(duration=None) and attributes.duration is None
    attributes.duration = timedelta(seconds=1)
    attributes.duration = JobAttributes.parse_walltime("00:00:00")
    assert attributes.duration is None
    with pytest.raises(InvalidJobException, match=r"attributes.duration must not be below zero"):
        check_spec(JobSpec("/x", attributes=JobAttributes(timedelta(seconds=-1))))


@pytest.mark.parametrize("timeout", [0, 0.0, timedelta(0), -1, -math.inf])
def test_seconds_are_a_timeout(timeout: Any) -> None:
    assert Job(JobSpec("/x")).wait(timeout) is None


def _function(job: Job, status: JobStatus) -> None: ...


async def _coroutine_function(job: Job, status: JobStatus) -> None: ...


class _Callback(JobStatusCallback):
    def job_status_changed(self, job: Job, job_status: JobStatus) -> None: ...


@pytest.mark.parametrize(("callback", "message"), [
    ("x", r"a status callback is a JobStatusCallback or a function \(job, job_status\), not 'x'"),
    (_Callback, "a status callback is an object of the class _Callback, not the class itself"),
    (_coroutine_function, "a status callback of a Job is no coroutine function, .* those are for AsyncJob"),
])
def test_what_is_no_callback(callback: Any, message: str) -> None:
    """Each status of the job failed in the log."""
    for told in (Job(), LocalJobExecutor()):
        told.set_job_status_callback(_function)
        with pytest.raises(TypeError, match=message):
            told.set_job_status_callback(callback)
    number: Any = 7
    with pytest.raises(TypeError, match="a status callback is an AsyncJobStatusCallback or a function"):
        AsyncJob().set_job_status_callback(number)
    no_object: Any = AsyncJobStatusCallback
    with pytest.raises(TypeError, match="an object of the class AsyncJobStatusCallback, not the class itself"):
        AsyncJob().set_job_status_callback(no_object)


@pytest.mark.parametrize("states", ["ACTIVE", ["ACTIVE"], [JobState.ACTIVE, None]])
def test_what_is_no_target(states: Any) -> None:
    with pytest.raises(TypeError, match=r"target_states must be JobStates, not ('A'|'ACTIVE'|None)"):
        Job().wait(0, states)


def test_states_alone_may_come_first() -> None:
    """As in the examples of the specification, where a wait for a state names no timeout."""
    several: list[Any] = [[JobState.ACTIVE], JobState.ACTIVE, {JobState.ACTIVE, JobState.FAILED}]
    for states in several:
        job = Job(JobSpec("/bin/sleep", ["9"]))
        LocalJobExecutor().submit(job)
        status = job.wait(states)
        assert status is not None and status.state is JobState.ACTIVE
        job.cancel()
    assert asyncio.run(AsyncJob().wait([JobState.NEW])) is not None


@pytest.mark.parametrize("value", [None, JobSpec("/bin/true"), "17", AsyncJob()])
def test_what_is_no_job(value: Any) -> None:
    """It is refused by a sentence, and not by an attribute that it lacks."""
    message = f"an executor takes a Job, not {type(value).__name__}"
    for name in ("local", "slurm", "htcondor", "flux", "iri"):
        executor = JobExecutor.get_instance(name)
        with pytest.raises(InvalidJobException, match=message):
            executor.submit(value)
        with pytest.raises(InvalidJobException, match=message):
            executor.attach(value, "17")


@pytest.mark.parametrize("name", [None, 5, b"local"])
def test_what_is_no_name_of_an_executor(name: Any) -> None:
    with pytest.raises(TypeError, match=r"the name of a plug-in \(executor\) is a text"):
        JobExecutor.get_instance(name)


def test_any_executor_of_the_kind_cancels() -> None:
    """Services make a new executor for each request; one of another kind does not take the job for its own."""
    job = Job(JobSpec("/bin/sleep", ["9"]))
    JobExecutor.get_instance("local").submit(job)
    with pytest.raises(InvalidStateException, match=r"not submitted to an executor of this kind \(slurm\)"):
        JobExecutor.get_instance("slurm").cancel(job)
    JobExecutor.get_instance("local").cancel(job)
    status = job.wait(20)
    assert status is not None and status.state is JobState.CANCELED


def test_names_that_need_no_import_of_their_own() -> None:
    """Modules that psij-python loads with itself; a fresh process, for other tests have loaded them here."""
    code = ("import psij\n"
            "assert psij.VERSION == psij.__version__\n"
            "assert psij.Descriptor is psij.descriptor.Descriptor\n"
            "assert psij.launchers.MultipleLauncher and psij.executors.LocalJobExecutor\n"
            "assert psij.serialize.JSONSerializer is psij.JSONSerializer and psij.utils\n")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_serializers_have_dictionaries() -> None:
    """Programs call these two methods of psij-python's serializers to put a specification into an answer of theirs."""
    spec = JobSpec("/bin/date", ["-u"], resources=ResourceSpecV1(node_count=2))
    data = JSONSerializer()._from_spec(spec)
    assert data == json.loads(JSONSerializer().dumps(spec)) and JSONSerializer()._to_spec(data) == spec
    job: Any = Job(spec)
    with pytest.raises(TypeError, match="what is written is a JobSpec, not Job"):
        JSONSerializer().dumps(job)


def test_a_process_id_is_a_native_id() -> None:
    """os.getpid() and Popen.pid are numbers; what is neither is refused before the job is tied to the executor."""
    process = subprocess.Popen(["/bin/sleep", "9"])
    executor, job = LocalJobExecutor(), Job()
    number: Any = process.pid
    nothing: Any = None
    executor.attach(job, number)
    process.kill()
    process.wait()
    assert job.native_id == str(process.pid)
    status = job.wait(20)
    assert status is not None and status.metadata is not None and status.metadata["reason"] == "unknown-exit"
    unused = Job()
    for name in ("local", "slurm", "flux", "htcondor", "iri"):
        with pytest.raises(TypeError, match="native_id must be a str, not NoneType: None"):
            JobExecutor.get_instance(name).attach(unused, nothing)
    assert unused.executor is None


@pytest.mark.parametrize("name", ["local", "slurm", "iri"])
def test_what_is_no_configuration(name: str) -> None:
    config: Any = {"work_directory": "/tmp"}
    with pytest.raises(TypeError, match="config must be a JobExecutorConfig, not dict"):
        JobExecutor.get_instance(name, config=config)


@pytest.mark.parametrize(("setting", "error", "message"), [
    ({"queue_polling_interval": "30"}, TypeError, "queue_polling_interval must be a number, not str: '30'"),
    ({"command_timeout": timedelta(seconds=2)}, TypeError, "command_timeout must be a number, not timedelta: .*"),
    ({"queue_polling_error_threshold": True}, TypeError, "queue_polling_error_threshold must be .*, not bool: True"),
    ({"lost_after": -1}, ValueError, "lost_after must not be below 0: -1"),
    ({"initial_queue_polling_delay": math.nan}, ValueError, "initial_queue_polling_delay must not be below 0: nan"),
])
def test_a_setting_that_is_no_number(setting: Any, error: type[Exception], message: str) -> None:
    """Text failed when the first job was submitted, or in the thread that follows jobs."""
    with pytest.raises(error, match=message):
        BatchSchedulerExecutorConfig(**setting)


@pytest.mark.parametrize(("name", "message"), [
    ("launcher.srnu.cpu-bind", "no launcher is called 'srnu'; did you mean 'launcher.srun.cpu-bind'"),
    ("launcher.mpirn.x", "no launcher is called 'mpirn'; did you mean 'launcher.mpirun.x'"),
    ("launcher.srun", "names no option of a launcher; write 'launcher.srun.<option>'"),
    ("launcher", "names no option of a launcher; write 'launcher.srun.<option>'"),
])
def test_an_option_of_no_launcher(name: str, message: str) -> None:
    """It had no effect, in silence."""
    with pytest.raises(InvalidJobException, match=re.escape(f"custom attribute {name!r}") + ":? " + re.escape(message)):
        check_spec(JobSpec("/x", attributes=JobAttributes(custom_attributes={name: "cores"})))
    check_spec(JobSpec("/x", attributes=JobAttributes(custom_attributes={"launcher.ours-at-home.x": 1})))


def test_what_is_no_timeout() -> None:
    with pytest.raises(ValueError, match="timeout must be a number of seconds, not nan"):
        Job().wait(math.nan)
    text: Any = "1 s"
    with pytest.raises(TypeError, match="timeout must be a timedelta or a number of seconds, not str"):
        Job(JobSpec("/x")).wait(text)


@pytest.mark.parametrize(("manager", "members", "sizes"), [
    ("slurm", {}, "--nodes=1 --ntasks=1 --ntasks-per-node=1"),
    ("slurm", {"resources": ResourceSpecV1()}, "--nodes=1 --ntasks=1 --ntasks-per-node=1"),
    ("slurm", {"resources": ResourceSpecV1(cpu_cores_per_process=2)},
     "--nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=2"),
    ("slurm", {"resources": ResourceSpecV1(process_count=8)}, "--ntasks=8"),
    ("slurm", {"slurm.nodes": 4}, "--nodes=4"),
    ("slurm", {"slurm.n": "2", "slurm.qos": "q"}, "-n 2"),
    ("slurm", {"slurm.qos": "q"}, "--nodes=1 --ntasks=1 --ntasks-per-node=1"),
    ("slurm", {"psij.resources": "custom"}, ""),
    ("pbs", {}, "-l select=1:ncpus=1:mpiprocs=1 -l place=scatter"),
    ("pbs", {"resources": ResourceSpecV1(process_count=8)}, "-l select=8:ncpus=1:mpiprocs=1 -l place=free"),
    ("pbs", {"pbs.l": "select=2:ncpus=4"}, "-l select=2:ncpus=4"),
    ("pbs", {"pbs.l": "software=x"}, "-l select=1:ncpus=1:mpiprocs=1 -l place=scatter -l software=x"),
    ("pbs", {"pbs.l": ["place=excl", "filesystems=home"]}, "-l place=excl -l filesystems=home"),
    ("pbs_classic", {}, "-l nodes=1:ppn=1"),
    ("pbs_classic", {"pbs.l": ["nodes=2", "mem=1gb"]}, "-l nodes=2 -l mem=1gb"),
    ("lsf", {}, ""), ("sge", {}, ""), ("flux", {}, ""),
])
def test_a_job_without_resources(manager: str, members: dict[str, Any], sizes: str, tmp_path: Path) -> None:
    """Sites refuse jobs without a node count; what a job says itself is not said twice."""
    custom = {name: value for name, value in members.items() if "." in name}
    attributes = JobAttributes(None, custom_attributes=custom)
    spec = JobSpec("/bin/date", resources=members.get("resources"), attributes=attributes)
    assert _sizes(manager, spec, tmp_path, True) == sizes
    if not members:
        assert _sizes(manager, spec, tmp_path, False) == ""


def _sizes(manager: str, spec: JobSpec, folder: Path, default: bool) -> str:
    """The directives of a script that are about nodes and processes."""
    config = BatchSchedulerExecutorConfig(work_directory=folder, default_resources=default)
    executor = JobExecutor.get_instance(manager, config=config)
    assert isinstance(executor, LrmExecutor)
    text = io.StringIO()
    job = Job(spec)
    executor.generate_submit_script(job, executor._create_script_context(job), text)
    directives = [line.partition(" ")[2] for line in text.getvalue().splitlines() if re.match(r"#[A-Z$]", line)]
    return " ".join(one for one in directives if re.match(r"--(nodes|ntasks|cpus-per)|-l |-n |-pe |-R ", one))
