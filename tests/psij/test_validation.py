"""What submit refuses, and what constructors compute."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from psij import InvalidJobException, Job, JobAttributes, JobSpec, JobState, ResourceSpecV1, SubmitException
from psij.executors import LocalJobExecutor

EXECUTOR = LocalJobExecutor()


def custom(name: str, value: object) -> dict[str, Any]:
    return {"attributes": JobAttributes(custom_attributes={name: value})}


@pytest.mark.parametrize(("members", "message"), [
    ({"executable": None}, "no executable"),
    ({"executable": ""}, "executable is empty"),
    ({"executable": True}, "executable must be a str, not bool"),
    ({"arguments": "-l"}, "arguments must be a list"),
    ({"arguments": ["a", None]}, r"arguments\[1\] must be a str, not NoneType"),
    ({"arguments": ["a\0"]}, r"arguments\[0\] contains a NUL"),
    ({"arguments": ["\ud800"]}, "cannot be encoded"),
    ({"environment": {"A=B": "x"}}, "is not the name of a variable"),
    ({"environment": {"": "x"}}, "is not the name of a variable"),
    ({"environment": {"A\0": "x"}}, "contains a NUL"),
    ({"environment": {"\ud800": "x"}}, "cannot be encoded"),
    ({"environment": {"A": "\0"}}, "contains a NUL"),
    ({"environment": ["A"]}, "environment must be a dict"),
    ({"inherit_environment": 1}, "inherit_environment must be"),
    ({"resources": 3}, "resources must be a ResourceSpec"),
    ({"attributes": {}}, "attributes must be JobAttributes"),
    ({"attributes": JobAttributes(-timedelta(1))}, "duration must not be below zero"),
    ({"attributes": JobAttributes(60)}, "duration must be a timedelta"),  # type: ignore[arg-type]
    ({"launcher": "../x"}, "is not the name of a launcher"),
    ({"launcher": "mpirn"}, "No such launcher: 'mpirn'"),
    (custom("slurm", [{"key": "constraint", "value": "knl"}]),
     "custom attribute 'slurm' names an executor and none of its options; write 'slurm.constraint'"),
    (custom("pbs_classic", "x"), "names an executor and none of its options; write 'pbs_classic.<option>'"),
    (custom("local.", 1), "names an executor and none of its options"),
    (custom("slrum.qos", "x"), "no executor is called 'slrum'; did you mean 'slurm.qos'?"),
    (custom("lfs.R", "x"), "no executor is called 'lfs'; did you mean 'lsf.R'?"),
    (custom("laucher.srun.exclusive", True), "did you mean 'launcher.srun.exclusive'?"),
    (custom("local.merg", "x"), "did you mean 'local.merge'"),
    (custom("local.merge", "x"), "must be one of"),
    (custom("local.rlimit.cpu", "x"), "must be 'soft:hard'"),
    (custom("local.rlimit.cpu", "5:4"), "soft limit above hard limit"),
    (custom("local.nice", True), "must be a whole number"),
])
def test_refused(members: dict[str, Any], message: str) -> None:
    job = Job(JobSpec(**{"executable": "/bin/true", **members}))
    with pytest.raises(InvalidJobException, match=message):
        EXECUTOR.submit(job)
    assert job.status.state is JobState.NEW and job.executor is None and EXECUTOR.list() == []


def test_exported_functions_are_variables() -> None:
    """What ``dict(os.environ)`` holds on a cluster with environment modules."""
    job = Job(JobSpec("/bin/true", environment={"BASH_FUNC_module%%": "() { :; }"}))
    EXECUTOR.submit(job)
    status = job.wait(timedelta(seconds=20))
    assert status is not None and status.state is JobState.COMPLETED


@pytest.mark.parametrize("environment", [{1: "a"}, {"a": b"x"}, {"a": None}])
def test_environment_types_are_type_errors(environment: Any) -> None:
    with pytest.raises(TypeError):
        EXECUTOR.submit(Job(JobSpec("/bin/true", environment=environment)))


def test_no_specification() -> None:
    with pytest.raises(InvalidJobException, match="no specification"):
        EXECUTOR.submit(Job())


@pytest.mark.parametrize(("given", "expected"), [
    ({}, (1, 1, 1)),
    ({"process_count": 6}, (1, 6, 6)),
    ({"node_count": 3}, (3, 3, 1)),
    ({"processes_per_node": 4}, (1, 4, 4)),
    ({"node_count": 3, "process_count": 6}, (3, 6, 2)),
    ({"process_count": 6, "processes_per_node": 2}, (3, 6, 2)),
    ({"node_count": 3, "processes_per_node": 2}, (3, 6, 2)),
])
def test_computed_counts(given: dict[str, int], expected: tuple[int, int, int]) -> None:
    spec = ResourceSpecV1(**given)  # type: ignore[arg-type]
    assert (spec.computed_node_count, spec.computed_process_count, spec.computed_processes_per_node) == expected


@pytest.mark.parametrize("given", [{"node_count": 2, "process_count": 3}, {"node_count": -1}, {"memory": -1},
                                   {"node_count": 2, "process_count": 6, "processes_per_node": 2}])
def test_inconsistent_counts(given: dict[str, int]) -> None:
    with pytest.raises(InvalidJobException):
        ResourceSpecV1(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "seconds"), [
    ("01:02:03", 3723), ("1:30", 5400), ("30", 1800), ("2h", 7200), ("3 m", 180), ("3600.0 s", 3600), ("1.5s", 1.5)])
def test_walltime(text: str, seconds: float) -> None:
    assert JobAttributes.parse_walltime(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "1:99", "-5", "1.5", "5 d", "1:2:3:4", "9" * 30 + "h"])
def test_no_walltime(text: str) -> None:
    with pytest.raises(ValueError):
        JobAttributes.parse_walltime(text)


def test_spec_reads_back() -> None:
    spec = JobSpec("/bin/ls", ["-l"], "/tmp", environment={"A": 1, "B": "x"}, cleanup={"a"})
    assert str(spec.directory) == "/tmp" and spec.environment == {"A": "1", "B": "x"} and spec.name == "/bin/ls"
    assert spec == JobSpec("/bin/ls", ["-l"], "/tmp", environment={"A": "1", "B": "x"}, cleanup={"a"})
    assert spec != JobSpec("/bin/ls") and spec.attributes == JobAttributes()


def test_without_the_lock_of_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A free-threaded build is told; with its lock switched on all is well."""
    job, twin = Job(JobSpec("/bin/true")), Job()
    monkeypatch.setattr("sys._is_gil_enabled", lambda: False, raising=False)
    refused = pytest.raises(SubmitException, match=r"^psij is not proved without .* with PYTHON_GIL=1, or -X gil=1$")
    with refused:
        EXECUTOR.submit(job)
    with refused:
        EXECUTOR.attach(twin, "1")
    assert {job.status.state, twin.status.state} == {JobState.NEW}
    monkeypatch.setattr("sys._is_gil_enabled", lambda: True)
    EXECUTOR.submit(job)
    assert (status := job.wait(60)) and status.exit_code == 0
