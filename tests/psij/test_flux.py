"""The Flux executor: recorded outputs of 0.88, what is its own on the stand-in, directives."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1, SubmitException
from psij.executors.batch.batch_scheduler_executor import InvalidJobStateError
from psij.executors.batch.flux import FluxJobExecutor, decimal_id, parse_jobs
from psij.executors.flux import FluxJobExecutor as Theirs
from sssjob.templates.quoting import Directive, QuotingError, flux, flux_path
from tests.fakes import flux as fake
from tests.psij.batch_support import Stand, a_job, ended, refusal
from tests.psij.managers import MANAGERS

MANAGER = MANAGERS["flux"]
Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))
# jobs*.json: flux jobs -a --json; job-info-jobspec.json: flux job info ID jobspec; err-*: flux cancel 12345
RECORDED = Path(__file__).parents[1] / "fixtures/flux-0.88"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


# --- recorded outputs ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("name", "expected"), [
    ("jobs.json", {
        "16492003328": (C, 0, None), "24360517632": (F, 3, None), "35618029568": (F, 139, None),
        "44946161664": (C, 0, None), "57545850880": (Q, None, None), "65364033536": (F, None, "timeout"),
        "71437385728": (F, None, "launch"), "74071408640": (A, None, None), "76587991040": (Q, None, None),
        "79205236736": (Q, None, None), "82107695104": (Q, None, None), "84792049664": (Q, None, None),
        "84825604096": (Q, None, None), "84825604097": (Q, None, None), "87543513088": (Q, None, None),
        "90462748672": (Q, None, None)}),
    ("jobs-end.json", {
        "16492003328": (C, 0, None), "24360517632": (F, 3, None), "35618029568": (F, 139, None),
        "44946161664": (C, 0, None), "57545850880": (X, None, None), "65364033536": (F, None, "timeout"),
        "71437385728": (F, None, "launch"), "74071408640": (C, 0, None), "76587991040": (X, None, None),
        "79205236736": (X, None, None), "82107695104": (C, 0, None), "84792049664": (C, 0, None),
        "84825604096": (C, 0, None), "84825604097": (C, 0, None), "87543513088": (F, None, "launch"),
        "90462748672": (F, None, "launch")})])
def test_recorded_jobs(name: str, expected: dict[str, tuple[JobState, int | None, str | None]]) -> None:
    statuses = FluxJobExecutor().parse_status_output(0, recorded(name))
    assert {key: (status.state, status.exit_code, (status.metadata or {}).get("reason"))
            for key, status in statuses.items()} == expected
    assert parse_jobs(0, recorded(name)).keys() == expected.keys()


def test_recorded_usage() -> None:
    status = FluxJobExecutor().parse_status_output(0, recorded("jobs-end.json"))["74071408640"]
    assert status.time == 1795251070.1930578 and status.metadata == {
        "native_state": "COMPLETED", "submit_time": 1795251066.6272483, "start_time": 1795251068.1494706,
        "end_time": 1795251070.1930578, "wall_seconds": 2.0435872077941895, "nodes": ["head", "head"], "node_count": 2,
        "processors": 4}


def test_recorded_job_that_never_ran() -> None:
    statuses = FluxJobExecutor().parse_status_output(0, recorded("jobs-end.json"))
    assert statuses["71437385728"].metadata == {
        "native_state": "FAILED", "submit_time": 1795251066.4705987, "end_time": 1795251066.504811, "reason": "launch"}
    assert statuses["71437385728"].message == \
        "Flux says FAILED, alloc: unsatisfiable request: need 9 exclusive node(s), only 2 eligible"


def test_recorded_specification() -> None:
    """The tag is looked for in the specifications of jobs; this one has none."""
    specification = json.loads(recorded("job-info-jobspec.json"))
    job, executor = Job(), FluxJobExecutor()
    lines = [f"5 {json.dumps(specification)}"]
    specification["attributes"]["user"] = {"sssjob": {"id": job.id}}
    lines += [f"71 {json.dumps(specification)}", f"7 {json.dumps(specification)}", ""]
    assert executor._parse_lookup("\n".join(lines)) == {job.id: ["7", "71"]}


def test_recorded_cancel_of_an_unknown_job() -> None:
    with pytest.raises(InvalidJobStateError):
        FluxJobExecutor().process_cancel_command_output(1, recorded("err-unknown-cancel.txt.stderr"))
    with pytest.raises(SubmitException) as raised:
        FluxJobExecutor().process_cancel_command_output(1, "flux-cancel: ERROR: Unable to connect to Flux")
    assert raised.value.transient


def test_answers_of_other_forms() -> None:
    (one,) = [job for job in json.loads(recorded("jobs.json"))["jobs"] if job["id"] == 24360517632]
    assert parse_jobs(0, json.dumps(one))["24360517632"].exit_code == 3
    assert parse_jobs(1, json.dumps({"jobs": [one]}) + "\nJobID ƒ4fr unknown").keys() == {"24360517632"}
    assert parse_jobs(1, "JobID 5 unknown") == {} and parse_jobs(0, "") == {}
    with pytest.raises(RuntimeError):
        parse_jobs(1, "flux-jobs: ERROR: connection refused")
    for text in ("", "{", '{"jobs"', "[]"):
        with pytest.raises((ValueError, TypeError)):
            FluxJobExecutor().parse_status_output(0, text)
    killed = {**one, "waitstatus": 9, "returncode": -9}
    status = parse_jobs(0, json.dumps(killed))["24360517632"]
    assert (status.exit_code, (status.metadata or {})["signal"]) == (137, 9)
    raised = {**one, "exception": {"occurred": True, "severity": 0, "type": "mine", "note": "n"}}
    status = parse_jobs(0, json.dumps(raised))["24360517632"]
    assert ((status.metadata or {})["reason"], status.message) == ("exception", "Flux says FAILED, mine: n")


@pytest.mark.parametrize(("text", "expected"), [
    ("ƒS8Lq1y", "16492003328"), ("fS8Lq1y", "16492003328"), ("ƒ3EEkPpU", "84825604097"), ("16492003328", "16492003328"),
    ("ƒ", None), ("f0", None), ("fl", None), ("f1;2", None), ("-a", None), ("", None), ("٣", None), ("f1\n", None)])
def test_ids(text: str, expected: str | None) -> None:
    assert decimal_id(text) == expected


# --- on the stand-in -------------------------------------------------------------------------------------------------

def test_left_the_list(quick: Stand) -> None:
    """Jobs that ended long ago are not listed any more: they are asked for by their ids."""
    quick.lab.set(forget=0)
    jobs = [a_job("exit 0"), a_job("exit 5")]
    for job in jobs:
        quick.executor.submit(job)
    assert [ended(job).state for job in jobs] == [C, F]
    attached = Job()
    quick.executor.attach(attached, fake.f58(int(jobs[1].native_id or "")))
    assert attached.native_id == jobs[1].native_id and ended(attached).exit_code == 5


def test_node_file(stand: Stand, tmp_path: Path) -> None:
    job = a_job('cat "$PSIJ_NODEFILE"', stdout_path=tmp_path / "o",
                resources=ResourceSpecV1(node_count=2, processes_per_node=2, gpu_cores_per_process=1))
    stand.executor.submit(job)
    ended(job)
    assert (tmp_path / "o").read_text() == "node1\nnode1\nnode2\nnode2\n"
    assert stand.lab.calls("flux-run") == [
        ["--ntasks=4", "--nodes=2", "--cores-per-task=1", "--gpus-per-task=1", "hostname"]]


# --- directives ----------------------------------------------------------------------------------------------------

def directives(spec: JobSpec) -> list[str]:
    made = FluxJobExecutor()._directives(Job(spec), spec)
    return [flux(one) for one in made if one.option not in ("output", "setattr")]


@pytest.mark.parametrize(("members", "expected"), [
    ({}, ["--time-limit=600s", "--nslots=1"]),
    ({"attributes": JobAttributes(timedelta(seconds=1.5), "q", "chem")},
     ["--queue=q", "--bank=chem", "--time-limit=2s", "--nslots=1"]),
    ({"attributes": JobAttributes(None, custom_attributes={
        "flux.requires": "a b|c", "FLUX.urgency": 5, "flux.unbuffered": True, "flux.x": None, "slurm.y": 1})},
     ["--nslots=1", "--requires=a\\ b\\|c", "--urgency=5", "--unbuffered"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(
        node_count=2, processes_per_node=3, cpu_cores_per_process=4, gpu_cores_per_process=1, exclusive_node_use=True)},
     ["--nslots=6", "--nodes=2", "--cores-per-slot=4", "--gpus-per-slot=1", "--exclusive"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(process_count=3)}, ["--nslots=3"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(process_count=3, exclusive_node_use=True)},
     ["--nslots=3", "--nodes=1", "--exclusive"])])
def test_directives(members: dict[str, Any], expected: list[str]) -> None:
    assert directives(JobSpec("/bin/true", name="n", **members)) == ["--job-name=n", *expected]


@pytest.mark.parametrize(("members", "message"), [
    ({"resources": ResourceSpecV1(memory=1 << 30)}, r"resources\.memory"),
    ({"attributes": JobAttributes(reservation_id="r")}, r"attributes\.reservation_id"),
    ({"attributes": JobAttributes(queue_name="a\n#FLUX: --urgency=1")}, r"attributes\.queue_name .*line break"),
    ({"attributes": JobAttributes(account="a\x1bb")}, r"attributes\.account"),
    ({"attributes": JobAttributes(custom_attributes={"flux.cc": "1-3"})}, "flux.cc.*one job"),
    ({"attributes": JobAttributes(custom_attributes={"flux.output": "x"})}, "flux.output.*stdout_path"),
    ({"attributes": JobAttributes(custom_attributes={"flux.a b": "x"})}, "flux.a b"),
    ({"attributes": JobAttributes(custom_attributes={"flux.urgency": {1}})}, "flux.urgency"),
    ({"name": "x" * 1025}, "name has more than 1024"), ({"name": "a\nb"}, "name")])
def test_refused_specifications(quick: Stand, members: dict[str, Any], message: str) -> None:
    assert re.search(message, refusal(quick, **members))


@pytest.mark.parametrize(("value", "text"), [
    ("a b", r"--qq=a\ b"),
    ("", "--qq=''"), ('"""', r"--qq=\"\"\""), ("'''", r"--qq=\'\'\'"), ("a#b;c", r"--qq=a\#b\;c"),
    ("\\", "--qq=\\\\"), ("ü{{id}}", r"--qq=\ü\{\{id\}\}"), ("a\tb", "--qq=a\\\tb")])
def test_quoting(value: str, text: str) -> None:
    """As the parser of flux-core 0.88 reads it; 40,000 random values were tried with it."""
    assert flux(Directive("qq", value, "f")) == text


def test_file_names() -> None:
    assert flux_path("/a{b}") == "/a{b}"
    with pytest.raises(QuotingError):
        flux_path("/a{{id}}")


def test_another_instance() -> None:
    executor = JobExecutor.get_instance("flux", url="ssh://host/run/flux")
    assert isinstance(executor, FluxJobExecutor)
    assert executor.get_list_command()[:3] == ["env", "FLUX_URI=ssh://host/run/flux", "flux"]
    assert Theirs is FluxJobExecutor
