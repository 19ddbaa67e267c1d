"""What a service has measured of a job: from its shells to the final status and the document."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psij import InvalidJobException, Job, JobAttributes, JobSpec, JobState, JobStatus, ResourceSpecV1
from sssjob.document.element import Property
from sssjob.document.model import Job as Document
from sssjob.fluxexec.executor import FluxExecConfig, FluxExecExecutor
from sssjob.fluxexec.service import Ended
from sssjob.fluxexec.usage import read_usage, together, usage_of
from sssjob.lrm.flux.errors import ExecLimitError, ExecLimits, ProtocolError
from sssjob.mjf.provider import Provider
from sssjob.run import facts
from sssjob.run.seen import Seen
from tests.fluxexec.support import UP, Peer, start
from tests.fluxexec.test_executor import FINAL, SOON, START, service, told, until

NUMBERS = st.floats(0, 1e15)
USAGE = st.fixed_dictionaries({}, optional={
    "cpu_seconds": NUMBERS, "suspend_seconds": NUMBERS, "memory_max_bytes": st.integers(0, 1 << 50),
    "energy_joules": NUMBERS, "hs06_job": NUMBERS, "nodes": st.lists(st.sampled_from("abcd"), min_size=1, unique=True),
    "pilot": st.fixed_dictionaries({}, optional={
        "cores_mean": NUMBERS, "cores_max": NUMBERS, "kill_waste": st.floats(-1e15, 1e15),
        "draining_waste": st.floats(-1e15, 1e15)})})


@given(st.lists(USAGE, max_size=4))
def test_shells_together(parts: list[dict[str, Any]]) -> None:
    made = together(parts)
    assert read_usage(made) == made                     # what a service says can be read
    assert usage_of(made) == made
    assert set(made) <= {key for part in parts for key in part}
    for key in ("cpu_seconds", "energy_joules", "hs06_job"):
        assert made.get(key, 0) == math.fsum(part.get(key, 0) for part in parts)
    assert made.get("memory_max_bytes", 0) == max((part.get("memory_max_bytes", 0) for part in parts), default=0)
    assert set(made.get("nodes", ())) == {node for part in parts for node in part.get("nodes", ())}
    if len(parts) == 1:
        assert made == parts[0]


def test_two_shells() -> None:
    assert together([
        {"cpu_seconds": 1.5, "nodes": ["a"], "pilot": {"cores_max": 2.0, "kill_waste": -3.0}, "hs06_job": 10},
        {}, {"cpu_seconds": 2.0, "nodes": ["b", "a"], "pilot": {"cores_max": 3.0}, "memory_max_bytes": 7}]) == {
            "cpu_seconds": 3.5, "nodes": ["a", "b"], "pilot": {"cores_max": 5.0, "kill_waste": -3.0}, "hs06_job": 10,
            "memory_max_bytes": 7}


@pytest.mark.parametrize("wrong", [
    [], "x", 1, {"cpu_seconds": "1"}, {"cpu_seconds": True}, {"cpu_seconds": -1}, {"hs06_job": math.inf},
    {"hs06_job": math.nan}, {"memory_max_bytes": 1 << 70}, {"nodes": "n1"}, {"nodes": [1]}, {"nodes": [""]},
    {"nodes": ["a\nb"]}, {"nodes": ["x" * 256]}, {"pilot": []}, {"pilot": {"cores_max": None}}])
def test_a_usage_that_is_none_costs_the_usage_alone(wrong: object, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ProtocolError):
        read_usage(wrong)
    status = told(START, ("finish", {"status": 768, "usage": wrong}), FINAL)
    assert (status.state, status.exit_code) == (JobState.FAILED, 3)
    assert "job 1: usage" in caplog.text and "cpu_seconds" not in (status.metadata or {})


def test_keys_that_are_not_known_are_left_out() -> None:
    assert read_usage({"cpu_seconds": 1, "colour": "red", "pilot": {"mood": 1}}) == {"cpu_seconds": 1, "pilot": {}}
    with pytest.raises(ExecLimitError, match="limit ranks"):
        read_usage({"nodes": ["a"] * 3}, ExecLimits(ranks=2))


def test_a_service_tells_it_with_finish_and_no_broker_sees_it() -> None:
    for broker in (False, True):
        peer = Peer(partial=True)
        peer.service.broker = broker
        peer.say(start(1, ranks="0-1"))
        peer.tell(UP)
        peer.tell(UP, 1)
        peer.tell(Ended(0, usage={"cpu_seconds": 1.0}))
        peer.tell(Ended(0, usage={"cpu_seconds": 1.0}))         # told twice, counted once
        peer.tell(Ended(256, usage={"cpu_seconds": 2.0}), 1)
        finish = [data for kind, data in peer.answers() if kind == "finish"]
        assert finish == [{"status": 256} if broker else {"status": 256, "usage": {"cpu_seconds": 3.0}}]


def test_sources() -> None:
    usage = {"cpu_seconds": 2.5, "nodes": ["a", "b"], "pilot": {"cores_max": 2.0}}
    status: JobStatus = told(START, ("finish", {"status": 0, "usage": usage}), FINAL, ranks="0-3")
    known = status.metadata or {}
    assert known["node_count"] == 2 and known["cpu_seconds"] == 2.5 and known["pilot"] == {"cores_max": 2.0}
    assert (known["sources"]["cpu_seconds"], known["sources"]["start_time"]) == ("measured", "status")


# Pilots: Machine/Job Features of jobs that go through a service

PILOT = 'cd "$JOBSTATUS"; for x in used_CPU=%s last_job_start=1000 add_uncom_time=5; do echo ${x#*=} >${x%%=*}; ' \
    'done; cat "$JOBFEATURES/job_id" >/dev/null; cat "$JOBFEATURES/wall_limit_secs" "$JOBFEATURES/hs06_job"; exit 3'


def pilot(tmp_path: Path, custom: dict[str, object], count: int = 1, cores: int = 3) -> Job:
    spec = JobSpec("/bin/sh", ["-c", PILOT % cores], stdout_path=tmp_path / "out", launcher="multiple",
                   resources=ResourceSpecV1(process_count=count) if count == 1 else ResourceSpecV1(
                       node_count=count, processes_per_node=1),
                   attributes=JobAttributes(timedelta(seconds=77), custom_attributes=custom))
    return Job(spec)


@pytest.fixture(params=["exec", "unix"])
def executor(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
             ) -> Iterator[FluxExecExecutor]:
    """With the service in this process, and at a socket, where the service provides."""
    import subprocess

    for name in ("MACHINEFEATURES", "JOBFEATURES", "JOBSTATUS"):
        monkeypatch.delenv(name, raising=False)
    config, url, process = FluxExecConfig(work_directory=tmp_path / "work", ranks=4), "exec:local", None
    if request.param == "unix":
        url = f"unix:{tmp_path}/exec"
        words = ["timeout", "120", *service(), str(tmp_path / "exec"), "--partial", "--mjf-root", str(tmp_path)]
        process = subprocess.Popen(words)
        until((tmp_path / "exec").exists)
    else:
        config.surroundings = Provider(root=str(tmp_path))
    made = FluxExecExecutor(url, config)
    yield made
    made.close()
    if process is not None:
        process.terminate()
        process.wait(20)


def test_a_pilot_is_heard(executor: FluxExecExecutor, tmp_path: Path) -> None:
    job = pilot(tmp_path, {"mjf.hs06_job": 12.5})
    before = time.time()
    executor.submit(job)
    status = job.wait(SOON)
    assert status is not None and status.exit_code == 3
    assert (tmp_path / "out").read_text() == "77\n12.5\n"
    known = status.metadata or {}
    assert known["hs06_job"] == 12.5 and known["nodes"] == [os.uname().nodename]
    assert (known["pilot"]["cores_mean"], known["pilot"]["cores_max"]) == (3.0, 3.0)
    assert 5 + 3 * (before - 1001) <= known["pilot"]["kill_waste"] <= 5 + 3 * (time.time() - 999)
    assert list(tmp_path.glob("mjf-*")) == []
    document, seen = Document(), Seen()
    seen.take(JobStatus(JobState.ACTIVE, before))
    seen.take(status)
    facts.record(document, [seen])
    assert document.delivered is not None
    said = [(p.tag, p.get("metric") or p.get("name"), p.text) for p in document.delivered.items
            if isinstance(p, Property)]
    assert {("Processors", "Average", "3"), ("Processors", "Max", "3"), ("Extension", "hs06_job", "12.5")} <= set(said)
    assert any(name == "kill_waste" for _, name, _ in said) and document.value("CpuDuration") is not None


def test_pilots_on_several_ranks_are_one(executor: FluxExecExecutor, tmp_path: Path) -> None:
    job = pilot(tmp_path, {"mjf.hs06_job": 5}, count=2, cores=2)
    executor.submit(job)
    status = job.wait(SOON)
    assert status is not None and status.metadata is not None
    assert status.metadata["pilot"]["cores_max"] == 4.0 and status.metadata["hs06_job"] == 10.0
    assert sorted((tmp_path / "out").read_text().split()) == ["5", "5", "77", "77"]


def test_keys_that_are_none_are_refused(tmp_path: Path) -> None:
    config = FluxExecConfig(work_directory=tmp_path, ranks=1)
    config.surroundings = Provider(root=str(tmp_path))
    executor = FluxExecExecutor(config=config)
    with pytest.raises(InvalidJobException, match="no key of Machine/Job Features"):
        executor.submit(pilot(tmp_path, {"mjf.nope": 1}))
    executor.close()


@pytest.mark.parametrize("wrong", [[], {"hs06_job": None}, {"hs06_job": True}, {"hs06_job": [1]}])
def test_features_of_a_jobspec_that_are_none(wrong: object) -> None:
    peer = Peer()
    spec = {**start().payload["jobspec"], "attributes": {"user": {"mjf": wrong or "x"}}}    # type: ignore[index]
    peer.say(start(spec=spec))
    (kind, data), _ = peer.answers()
    assert kind == "exception" and "attributes.user.mjf" in data["note"]


def test_who_asks_for_surroundings_at_a_socket_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "exec"))
        listener.listen()
        config = FluxExecConfig(work_directory=tmp_path, ranks=1)
        config.surroundings = Provider(root=str(tmp_path))
        executor = FluxExecExecutor(f"unix:{tmp_path}/exec", config)
        for _ in range(2):
            executor.submit(Job(JobSpec("/bin/true")))
        assert caplog.text.count("flux-exec serve --mjf") == 1
        executor.close()
