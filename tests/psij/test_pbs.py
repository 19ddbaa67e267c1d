"""The PBS executor: recorded outputs of OpenPBS 23.06, what is its own on the stand-in, directives."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from psij import Job, JobAttributes, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch.batch_scheduler_executor import (
    BatchSchedulerExecutorConfig,
    InvalidJobStateError,
    SourceOffError,
)
from psij.executors.batch.pbs import PBSJobExecutor
from sssjob.lrm.pbs import STATES
from sssjob.templates.quoting import Directive, pbs
from tests.fakes import pbs as fake
from tests.psij.batch_support import Stand, a_job, ended, refusal, runs
from tests.psij.managers import MANAGERS

MANAGER = MANAGERS["pbs"]
Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))
RECORDED = Path(__file__).parents[1] / "fixtures/openpbs-23.06.06"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


# --- recorded outputs ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["qstat-f.json", "qstat-f.txt"])
def test_recorded_queue(name: str) -> None:
    """Both forms say the same."""
    statuses = PBSJobExecutor().parse_status_output(0, recorded(name))
    assert {key: (status.state, (status.metadata or {})["native_state"], (status.metadata or {}).get("phase"))
            for key, status in statuses.items()} == {
        "23.head": (A, "R", None), "27[].head": (A, "B", None), "28.head": (Q, "H 22", None),
        "30.head": (Q, "H", "HELD"), "31.head": (Q, "W", None), "32.head": (Q, "R 41", "PRERUN"),
        "33.head": (Q, "Q", None), "34.head": (Q, "R 41", "PRERUN"), "35.head": (Q, "H", "HELD"),
        "36.head": (Q, "R 41", "PRERUN"), "37.head": (Q, "R 41", "PRERUN"), "38.head": (Q, "R 41", "PRERUN")}
    assert statuses["33.head"].message == "Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 8 T: 8)"
    assert statuses["23.head"].time == 1795249471 and statuses["23.head"].metadata == {
        "native_state": "R", "queue": "workq", "submit_time": 1795249471, "start_time": 1795249471, "nodes": ["head"],
        "account": "chem", "machine": "head",
        "node_count": 1, "processors": 2}


@pytest.mark.parametrize("name", ["qstat-t-f.json", "qstat-t-f.txt"])
def test_recorded_arrays(name: str) -> None:
    """Elements of an array that is held are held, and what the comment of an array that has begun says is no reason why
    its elements wait."""
    statuses = PBSJobExecutor().parse_status_output(0, recorded(name))
    assert {key: (status.state, status.exit_code, (status.metadata or {}).get("phase"), status.message)
            for key, status in statuses.items()} == {
        "7[].head": (A, None, None, None), "7[1].head": (F, 7, None, None), "7[3].head": (A, None, None, None),
        "7[5].head": (A, None, None, None), "7[7].head": (Q, None, None, None), "7[9].head": (Q, None, None, None),
        "8[].head": (Q, None, "HELD", None), "8[1].head": (Q, None, "HELD", None), "8[2].head": (Q, None, "HELD", None)}


@pytest.mark.parametrize(("ids", "asks"), [([], False), (["12[].head", "13.head"], False), (["12[3].head"], True)])
def test_elements_are_listed_where_one_is_followed(ids: list[str], asks: bool) -> None:
    executor = PBSJobExecutor()
    assert ("-t" in executor.get_status_command(ids)) is asks
    assert (executor.dependency_attributes({"ok": ["1.head", *ids]}) is None) is asks      # depend knows no elements


def test_recorded_suspended_and_rerun() -> None:
    statuses = PBSJobExecutor().parse_status_output(0, recorded("qstat-susp.json"))
    assert (statuses["37.head"].state, (statuses["37.head"].metadata or {})["phase"]) == (A, "SUSPENDED")


def test_recorded_ends() -> None:
    """Substate and exit status are read together: only both say how a job of PBS ended."""
    ends = PBSJobExecutor()._parse_history(0, recorded("qstat-x-f.txt"))
    assert {key: (status.state, status.exit_code, (status.metadata or {}).get("reason"))
            for key, status in ends.items() if key in (
                "0.head", "2.head", "6.head", "7.head", "9.head", "11.head", "12.head", "25.head", "26.head",
                "43.head")} == {
        "0.head": (C, 0, None), "2.head": (F, 127, None), "6.head": (F, None, "dependency"), "7.head": (X, None, None),
        "9.head": (F, None, "timeout"), "11.head": (X, None, None), "12.head": (X, None, None),
        "25.head": (F, 3, None), "26.head": (F, 139, None), "43.head": (F, None, "dependency")}
    assert all(status.final for status in ends.values())


def test_recorded_usage() -> None:
    ends = PBSJobExecutor()._parse_history(0, recorded("qstat-x-f.txt"))
    assert ends["1.head"].time == 1795249226 and ends["1.head"].metadata == {
        "native_state": "F", "queue": "workq", "submit_time": 1795249223, "start_time": 1795249223,
        "end_time": 1795249226, "nodes": ["head"], "node_count": 1, "processors": 3, "wall_seconds": 3,
        "cpu_seconds": 1, "memory_max_bytes": 55148 << 10, "account": "chem", "machine": "head"}
    assert "memory_max_bytes" not in (ends["2.head"].metadata or {})       # 0kb: it was over before the first sample
    assert (ends["15.head"].metadata or {})["starts"] == 2
    assert "start_time" not in (ends["12.head"].metadata or {})


def test_recorded_unknown() -> None:
    """An unknown id among known ones: exit code 153, the others are there."""
    executor = PBSJobExecutor()
    both = "\n".join([recorded("err-mixed.txt").rstrip("\n"), recorded("err-mixed.txt.stderr")])
    assert list(executor.parse_status_output(153, both)) == ["37.head"]
    assert executor._parse_history(153, recorded("err-unknown.txt.stderr")) == {}
    assert executor.parse_status_output(153, recorded("err-unknown.txt") + recorded("err-unknown.txt.stderr")) == {}


@pytest.mark.parametrize(("code", "text"), [
    (0, "{"), (0, "{}"), (0, "welcome to the cluster\n"), (1, "qstat: cannot connect to server head (errno=111)"),
    (0, '{"pbs_server": "head", "Jobs": {"1.head": {"a": 005}}}')])
def test_no_answer(code: int, text: str) -> None:
    with pytest.raises((ValueError, RuntimeError)):
        PBSJobExecutor().parse_status_output(code, text)


def test_no_history() -> None:
    with pytest.raises(SourceOffError):
        PBSJobExecutor()._parse_history(1, "qstat: PBS is not configured to maintain job history")


@pytest.mark.parametrize(("name", "meaning"), [
    ("err-bad-queue", "REFUSED"), ("err-bad-resource", "REFUSED"), ("err-walltime-over-queue", "REFUSED"),
    ("err-bad-select", "REFUSED"), ("err-as-root", "REFUSED")])
def test_recorded_refusals(name: str, meaning: str) -> None:
    assert PBSJobExecutor()._classify_failure(170, recorded(f"{name}.txt.stderr")).name == meaning


@pytest.mark.parametrize("name", ["err-qdel-done", "err-qdel-unknown"])
def test_recorded_cancel_of_ended(name: str) -> None:
    with pytest.raises(InvalidJobStateError):
        PBSJobExecutor().process_cancel_command_output(35, recorded(f"{name}.txt.stderr"))


def test_recorded_list() -> None:
    native_ids = PBSJobExecutor().parse_list_output(recorded("qselect.txt"))
    assert native_ids[:2] == ["27[].head", "28.head"] and len(native_ids) == 11


def test_every_letter() -> None:
    assert {word[0] for word in STATES} == set("QHWTMRSUBEXFC0")


@pytest.mark.parametrize(("fields", "state", "code", "reason"), [
    ({"Exit_status": 256 + 9, "substate": 93}, F, 137, "signal"),
    ({"Exit_status": -27, "substate": 93}, F, None, "memory"), ({"Exit_status": -3, "substate": 93}, F, None, "launch"),
    ({"substate": 93, "exec_host": "a/0"}, F, None, "unknown-exit"),
    ({"Exit_status": 255, "substate": 93}, F, 255, None), ({"substate": 94}, Q, None, None)])
def test_exit_status(fields: dict[str, object], state: JobState, code: int | None, reason: str | None) -> None:
    answer = json.dumps({"pbs_server": "head", "Jobs": {"1.head": {"job_state": "F", **fields}}})
    status = PBSJobExecutor().parse_status_output(0, answer)["1.head"]
    assert (status.state, status.exit_code, (status.metadata or {}).get("reason")) == (state, code, reason)


def test_a_variable_that_looks_like_a_job() -> None:
    """Whatever a variable holds, it changes no other job: of two jobs with one id neither counts."""
    plain = fake.plain("1.head", {"job_state": "R", "Variable_List": {
        "A": "\n    job_state = F\n    Exit_status = 0\n\nJob Id: 2.head\n    job_state = F\n    Exit_status = 0"}})
    out = plain + "\n" + fake.plain("2.head", {"job_state": "Q"}) + "\n"
    statuses = PBSJobExecutor().parse_status_output(0, out)
    assert {key: status.state for key, status in statuses.items()} == {"1.head": A}


# --- on the stand-in -------------------------------------------------------------------------------------------------

def test_without_history(quick: Stand) -> None:
    """E35: an ended job is nowhere; the exit file has its code, and a cancel that was accepted its end."""
    quick.lab.set(accounting=False)
    jobs = [a_job("exit 0"), a_job("exit 5"), a_job("sleep 30")]
    for job in jobs:
        quick.executor.submit(job)
    jobs[2].wait(timedelta(seconds=60), A)
    jobs[2].cancel()
    assert [(ended(job).state, job.status.exit_code) for job in jobs] == [(C, 0), (F, 5), (X, None)]
    assert len([call for call in quick.lab.calls("qstat") if "-x" in call]) == 1


def test_json_that_is_none(quick: Stand) -> None:
    """openpbs issue 1255: a variable 005 makes JSON that cannot be read. The plain form is asked, then and later."""
    bad = '{"pbs_server": "head",\n"Jobs": {"1.head": {"job_state": "R", "Variable_List": {"foo":005}}}}\n'
    jobs = [a_job("sleep 0.3"), a_job("exit 3")]
    for job in jobs:
        quick.executor.submit(job)
    quick.lab.fault("qstat", times=1, stdout=bad)
    assert [ended(job).exit_code for job in jobs] == [0, 3]
    asked = [call for call in quick.lab.calls("qstat") if "-x" not in call]
    assert ["-f"] in asked and ["-f", "-F", "json"] not in asked[asked.index(["-f"]):]


@pytest.mark.parametrize("name", ["qstat-f.json", "qstat-f.txt", "qstat-x-f.txt"])
def test_answer_cut_anywhere(name: str) -> None:
    """E21: what is left says the same as the whole, or nothing."""
    def seen(text: str) -> dict[str, str]:
        return {key: str(status) for key, status in PBSJobExecutor().parse_status_output(0, text).items()}

    text = recorded(name)
    whole = seen(text)
    line_ends = [match.end() for match in re.finditer("\n", text)]
    for length in [*range(0, len(text), 1009), *line_ends[::17]]:
        try:
            found = seen(text[:length])
        except ValueError:
            continue
        assert found.items() <= whole.items() or len(text[:length].split("Job Id:")) == 2, length


# --- submitting ----------------------------------------------------------------------------------------------------

def test_found_in_the_history(quick: Stand) -> None:
    """A job that ended without an exit file is found too."""
    job = runs(quick)
    quick.lab.kill(quick.lab.jobs()[0], 9)
    ended(job)
    assert quick.executor.native_id_of(job.id) == "1.head"
    assert quick.executor.native_id_of("00000000-0000") is None
    quick.lab.update(1, owner="mary")
    (quick.executor.work_directory / f"1.head.{job.id}.ec").unlink(missing_ok=True)
    assert quick.executor.native_id_of(job.id) is None


def test_a_signal_that_the_server_shows_as_a_zero(quick: Stand) -> None:
    """OpenPBS 23.06 says Exit_status 0 of a job whose shell and script a qsig killed: that the script wrote down no end
    is told beside it."""
    job = runs(quick)
    quick.lab.update(1, status=0)
    quick.lab.kill(quick.lab.jobs()[0], 11)
    status = ended(job)
    assert (status.state, status.exit_code) == (C, 0)
    assert (status.metadata or {})["others"]["exit_code"] == {
        "exit-file": "none, for the script did not come to its end"}


def test_variables_of_qsub(quick: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PBS_DPREFIX", "#X")
    assert quick.executor.get_submit_command(a_job("true"), Path("f")) == ["env", "-u", "PBS_DPREFIX", "qsub", "f"]


# --- directives ----------------------------------------------------------------------------------------------------

_AS_SAID = BatchSchedulerExecutorConfig(default_resources=False)


def directives(spec: JobSpec) -> list[str]:
    job = Job(spec)
    return [str(pbs(one)) for one in PBSJobExecutor(config=_AS_SAID)._directives(job, spec) if one.option not in "Sojv"]


@pytest.mark.parametrize(("members", "expected"), [
    ({}, ["-N n", "-V", "-l walltime=00:10:00"]),
    ({"inherit_environment": False, "attributes": JobAttributes(timedelta(days=2, seconds=1.5), "q@s", "a b")},
     ["-N n", "-q q@s", '-A "a b"', "-l walltime=48:00:02"]),
    ({"attributes": JobAttributes(None, reservation_id="R12")}, ["-N n", "-V", "-q R12"]),
    ({"attributes": JobAttributes(None, "q", "a", reservation_id="R12")}, ["-N n", "-V", "-A a", "-q R12"]),
    ({"attributes": JobAttributes(None, custom_attributes={
        "pbs.umask": "027", "pbs.release_nodes_on_stageout": True, "pbs.cust_attr1": "x y"})},
     ["-N n", "-V", "-W umask=027", "-W release_nodes_on_stageout=true", '-W "cust_attr1=x y"']),
    ({"attributes": JobAttributes(None, custom_attributes={
        "pbs.l": "filesystems=home:eagle", "PBS.p": 5, "pbs.h": True, "pbs.x": None, "pbs.y": False, "slurm.z": 1,
        "pbs.W": 'depend=afterok:1.a,group_list="x y"'})},
     ["-N n", "-V", "-l filesystems=home:eagle", "-p 5", "-h", "-W 'depend=afterok:1.a,group_list=\"x y\"'"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(
        node_count=2, processes_per_node=3, cpu_cores_per_process=4, gpu_cores_per_process=1, exclusive_node_use=True,
        memory=4 << 30)},
     ["-N n", "-V", "-l select=2:ncpus=12:mpiprocs=3:ngpus=3:mem=2097152kb", "-l place=scatter:exclhost"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(
        process_count=3, cpu_cores_per_process=2, memory=6000)},
     ["-N n", "-V", "-l select=3:ncpus=2:mpiprocs=1:mem=2kb", "-l place=free"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(exclusive_node_use=True)},
     ["-N n", "-V", "-l select=1:ncpus=1:mpiprocs=1", "-l place=free:exclhost"]),
])
def test_directives(members: dict[str, object], expected: list[str]) -> None:
    assert directives(JobSpec("/bin/true", name="n", **members)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(("executable", "name"), [("/bin/true", "true"), ("/a/2 b.py", "job_2_b_py"),
                                                  ("/a/ü", "job__")])
def test_name_of_the_executable(executable: str, name: str) -> None:
    assert directives(JobSpec(executable))[0] == f"-N {name}"


def test_a_queue_beside_a_reservation_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    spec = JobSpec("/bin/true", attributes=JobAttributes(queue_name="q", reservation_id="R77"))
    for _ in range(2):
        directives(spec)
    assert caplog.messages == [
        "attributes.queue_name 'q' is not used: reservation 'R77' is a queue, and a job is in one"]


def test_a_custom_attribute_of_nobody_is_told_once(quick: Stand, caplog: pytest.LogCaptureFixture) -> None:
    attributes = JobAttributes(custom_attributes={"select_": 1, "mine.x": 1})
    for _ in range(2):
        quick.executor._checked(Job(JobSpec("/bin/true", attributes=attributes)))
    assert caplog.messages == ["Custom attribute 'select_' does nothing: options of pbs are called 'pbs.<option>'"]


def test_custom_name_wins_over_that_of_the_executable() -> None:
    spec = JobSpec("/bin/true", attributes=JobAttributes(None, custom_attributes={"pbs.N": "mine"}))
    assert directives(spec) == ["-V", "-N mine"]


@pytest.mark.parametrize(("attributes", "message"), [
    ({"pbs.J": "1-3"}, "one job"), ({"pbs.o": "x"}, "stdout_path"), ({"pbs.W": "block=true"}, "hold up"),
    ({"pbs.l": "a=1,walltime=5"}, "both say walltime"), ({"pbs.A": "x"}, "say the same"),
    ({"pbspro.l": "a=1"}, "write 'pbs.l'"),
    ({"pbs.Output_Path": "x"}, "stdout_path"), ({"pbs.interactive": True}, "in the background"),
    ({"pbs.account_name": "y"}, "say the same"), ({"pbs.Resource_List": "walltime=5"}, "both say walltime"),
    ({"pbs.W": "umask=7, Join_Path=oe"}, "for Join_Path: use stdout_path"),
    ({"pbs.W": "Priority=7"}, "for Priority: write pbs.p"),
    ({"pbs.block": True}, "hold up"), ({"pbs.1": 1}, "not an option of qsub"),
    ({"pbs.p": {1}}, "must be text, a number"),
    ({"pbs.A b": "x"}, "not the name of an option"), ({"pbs.M": "a\n#PBS -p 1"}, "line break"),
    ({"pbs.M": "a\"b'c"}, "both kinds of quotes"), ({"pbs.M": "a\\"}, "backslash"), ({"pbs.M": ""}, "empty")])
def test_custom_attributes_refused(quick: Stand, attributes: dict[str, object], message: str) -> None:
    reason = refusal(quick, attributes=JobAttributes(timedelta(minutes=1), account="x", custom_attributes=attributes))
    assert message in reason and f"custom attribute {next(iter(attributes))!r}" in reason


@pytest.mark.parametrize(("members", "message"), [
    ({"name": "a b"}, "name"), ({"name": ""}, "name"), ({"name": "x" * 237}, "name"),
    ({"attributes": JobAttributes(account="a\nb")}, "attributes.account"),
    ({"attributes": JobAttributes(queue_name="a\\b")}, "attributes.queue_name")])
def test_refused_members(quick: Stand, members: dict[str, object], message: str) -> None:
    assert message in refusal(quick, **members)


@pytest.mark.parametrize("value", ["a b", "it's", 'say "x"', "$(id)", "a;b", "#x", "ü ☃", "{{ x }}", "*"])
def test_filter(value: str) -> None:
    """Read back as the stand-in does: one word."""
    match = fake._WORD.match(pbs(Directive("A", value)))
    assert match is not None and value in match.groups()
