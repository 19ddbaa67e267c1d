"""The PBS executor: recorded outputs of OpenPBS 23.06, the whole way of a job on its stand-in, faults, directives."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from psij import (
    InvalidJobException,
    Job,
    JobAttributes,
    JobExecutor,
    JobSpec,
    JobState,
    ResourceSpecV1,
    SubmitException,
)
from psij.executors.batch.batch_scheduler_executor import InvalidJobStateError, SourceOffError
from psij.executors.batch.pbs import PBSJobExecutor
from psij.executors.batch.pbs_base import PBSState
from sssjob.templates.quoting import Directive, QuotingError, pbs
from tests.fakes import pbs as fake
from tests.psij.batch_support import VIRTUAL, Stand, a_job, ended, stand_in

Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))
RECORDED = Path(__file__).parents[1] / "fixtures/openpbs-23.06.06"


@pytest.fixture
def stand(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand_in(fake, PBSJobExecutor, tmp_path, monkeypatch, virtual=request.function.__name__ in VIRTUAL) as made:
        yield made


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


def test_recorded_suspended_and_rerun() -> None:
    found = PBSJobExecutor().parse_status_output(0, recorded("qstat-susp.json"))
    assert (found["37.head"].state, (found["37.head"].metadata or {})["phase"]) == (A, "SUSPENDED")


def test_recorded_ends() -> None:
    """job-states.md, section 5: substate and exit status together."""
    found = PBSJobExecutor()._parse_history(0, recorded("qstat-x-f.txt"))
    assert {key: (status.state, status.exit_code, (status.metadata or {}).get("reason"))
            for key, status in found.items() if key in (
                "0.head", "2.head", "6.head", "7.head", "9.head", "11.head", "12.head", "25.head", "26.head",
                "43.head")} == {
        "0.head": (C, 0, None), "2.head": (F, 127, None), "6.head": (F, None, "dependency"), "7.head": (X, None, None),
        "9.head": (F, None, "timeout"), "11.head": (X, None, None), "12.head": (X, None, None),
        "25.head": (F, 3, None), "26.head": (F, 139, None), "43.head": (F, None, "dependency")}
    assert all(status.final for status in found.values())


def test_recorded_usage() -> None:
    found = PBSJobExecutor()._parse_history(0, recorded("qstat-x-f.txt"))
    assert found["1.head"].time == 1795249226 and found["1.head"].metadata == {
        "native_state": "F", "queue": "workq", "submit_time": 1795249223, "start_time": 1795249223,
        "end_time": 1795249226, "nodes": ["head"], "node_count": 1, "processors": 3, "wall_seconds": 3,
        "cpu_seconds": 1, "memory_max_bytes": 55148 << 10, "account": "chem", "machine": "head"}
    assert "memory_max_bytes" not in (found["2.head"].metadata or {})       # 0kb: it was over before the first sample
    assert (found["15.head"].metadata or {})["starts"] == 2
    assert "start_time" not in (found["12.head"].metadata or {})


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
    found = PBSJobExecutor().parse_list_output(recorded("qselect.txt"))
    assert found[:2] == ["27[].head", "28.head"] and len(found) == 11


def test_every_letter() -> None:
    assert {state.letter[0] for state in PBSState} == set("QHWTMRSUBEXFC0")


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
    found = PBSJobExecutor().parse_status_output(0, out)
    assert {key: status.state for key, status in found.items()} == {"1.head": A}


# --- the whole way -------------------------------------------------------------------------------------------------

def test_whole_way(stand: Stand, tmp_path: Path) -> None:
    job = a_job("echo out; sleep 0.5", name="a+b-c_1.2", stdout_path=tmp_path / "o")
    stand.executor.submit(job)
    assert job.native_id == "1.head" and stand.executor.list() == ["1.head"]
    status = ended(job)
    assert stand.states(job) == [Q, A, C]
    assert (tmp_path / "o").read_text() == "out\n" and stand.lab.jobs()[0]["name"] == "a+b-c_1.2"
    metadata = status.metadata or {}
    assert status.exit_code == 0 and metadata["sources"]["exit_code"] == "exit-file"
    assert metadata["cpu_seconds"] == 1 and metadata["sources"]["cpu_seconds"] == "qstat -x"
    assert metadata["nodes"] == ["head"] and metadata["queue"] == "workq"
    assert metadata["submit_time"] <= metadata["start_time"] <= metadata["end_time"] == status.time
    assert stand.files() == []


@pytest.mark.parametrize("code", [3, 139, 200, 255])
def test_exit_codes(stand: Stand, code: int) -> None:
    job = a_job(f"exit {code}")
    stand.executor.submit(job)
    assert (ended(job).state, job.status.exit_code) == (F, code)


def test_cancel(stand: Stand) -> None:
    running, queued = a_job("sleep 30"), a_job("sleep 30", attributes=JobAttributes(custom_attributes={"pbs.h": True}))
    stand.executor.submit(running)
    stand.executor.submit(queued)
    running.wait(timedelta(seconds=5), A)
    running.cancel()
    queued.cancel()
    assert [ended(job).state for job in (running, queued)] == [X, X]
    assert stand.states(running) == [Q, A, X] and stand.states(queued) == [Q, X]
    running.cancel()


def test_without_history(stand: Stand) -> None:
    """E35: an ended job is nowhere; the exit file has its code, and a cancel that was accepted its end."""
    stand.lab.set(accounting=False)
    jobs = [a_job("exit 0"), a_job("exit 5"), a_job("sleep 30")]
    for job in jobs:
        stand.executor.submit(job)
    jobs[2].wait(timedelta(seconds=5), A)
    jobs[2].cancel()
    assert [(ended(job).state, job.status.exit_code) for job in jobs] == [(C, 0), (F, 5), (X, None)]
    assert len([call for call in stand.lab.calls("qstat") if "-x" in call]) == 1


def test_lost(stand: Stand) -> None:
    job = a_job("sleep 30")
    stand.executor.submit(job)
    job.wait(timedelta(seconds=5), A)
    stand.lab.drop(job.native_id or "")
    assert (ended(job).state, (job.status.metadata or {})["reason"]) == (F, "lost")


def test_time_limit(stand: Stand) -> None:
    """The exit file may be there all the same: the script goes on after the signal of a limit."""
    job = a_job("sleep 30")
    stand.executor.submit(job)
    job.wait(timedelta(seconds=5), A)
    stand.lab.update(1, status=-29)
    stand.lab.kill(stand.lab.jobs()[0], 9)
    status = ended(job)
    assert (status.state, status.exit_code, (status.metadata or {})["reason"]) == (F, None, "timeout")


@pytest.mark.parametrize("fault", [
    {"exit": 1, "stderr": "qstat: cannot connect to server head (errno=111)\n"}, {"exit": 0, "stdout": "garbage\n"},
    {"sleep": 30}, {"stdout": ""}])
def test_queue_does_not_answer(stand: Stand, fault: dict[str, object], caplog: pytest.LogCaptureFixture) -> None:
    """E16, E17, E18."""
    stand.executor.config.command_timeout = 0.5
    job = a_job("sleep 0.3; exit 4")
    stand.executor.submit(job)
    stand.lab.fault("qstat", times=-1, **fault)
    time.sleep(1.2)
    assert not job.status.final
    stand.executor.config.command_timeout = 5
    stand.lab.heal("qstat")
    assert ended(job).exit_code == 4


def test_json_that_is_none(stand: Stand) -> None:
    """openpbs issue 1255: a variable 005 makes JSON that cannot be read. The plain form is asked, then and later."""
    bad = '{"pbs_server": "head",\n"Jobs": {"1.head": {"job_state": "R", "Variable_List": {"foo":005}}}}\n'
    jobs = [a_job("sleep 1"), a_job("exit 3")]
    for job in jobs:
        stand.executor.submit(job)
    stand.lab.fault("qstat", times=1, stdout=bad)
    assert [ended(job).exit_code for job in jobs] == [0, 3]
    asked = [call for call in stand.lab.calls("qstat") if "-x" not in call]
    assert ["-f"] in asked and ["-f", "-F", "json"] not in asked[asked.index(["-f"]):]


def test_cut_answer(stand: Stand) -> None:
    """E21."""
    jobs = [a_job("sleep 0.5") for _ in range(2)]
    for job in jobs:
        stand.executor.submit(job)
    stand.lab.fault("qstat", times=2, after=True, cut=600)
    assert [ended(job).state for job in jobs] == [C, C]


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


def test_unknown_state_word(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    """E22."""
    odd, plain = a_job("sleep 30"), a_job("exit 0")
    stand.executor.submit(odd)
    odd.wait(timedelta(seconds=5), A)
    stand.lab.update(1, state="Y")
    stand.executor.submit(plain)
    assert ended(plain).state is C and odd.status.state is A
    assert [record.message for record in caplog.records].count(
        "PBS's job state 'Y' is not known; jobs in it keep their last state") == 1


# --- submitting ----------------------------------------------------------------------------------------------------

def test_refused(stand: Stand) -> None:
    with pytest.raises(SubmitException, match="Unknown queue") as raised:
        stand.executor.submit(a_job("true", attributes=JobAttributes(queue_name="nosuch")))
    assert not raised.value.transient and stand.files() == []


@pytest.mark.parametrize("text", [
    "qsub: would exceed complex's per-user limit of jobs in 'Q' state",
    "qsub: cannot connect to server head (errno=111)",
    "qsub: Maximum number of jobs in 'Q' state for user alice already in complex"])
def test_transient(stand: Stand, text: str) -> None:
    stand.lab.fault("qsub", exit=1, stderr=text)
    with pytest.raises(SubmitException) as raised:
        stand.executor.submit(a_job("true"))
    assert raised.value.transient and stand.lab.jobs() == []


@pytest.mark.parametrize("script", ["sleep 0.3; exit 3", "exit 3"])
@pytest.mark.parametrize("fault", [{"stdout": "", "exit": 0}, {"stderr": "qsub: End of File", "exit": 1}])
def test_made_but_not_told(stand: Stand, fault: dict[str, object], script: str) -> None:
    """E02 to E06: found by its tag, in the queue or in the history, and there is one."""
    stand.lab.fault("qsub", after=True, **fault)
    job = a_job(script)
    stand.executor.submit(job)
    assert job.native_id == "1.head" and len(stand.lab.jobs()) == 1
    assert ended(job).exit_code == 3


def test_not_made_and_not_told(stand: Stand) -> None:
    stand.lab.fault("qsub", stdout="hm\n")
    with pytest.raises(SubmitException, match="not submitted") as raised:
        stand.executor.submit(a_job("true"))
    assert raised.value.transient and stand.files() == []


def test_found_in_the_history(stand: Stand) -> None:
    """A job that ended without an exit file is found too."""
    job = a_job("sleep 30")
    stand.executor.submit(job)
    job.wait(timedelta(seconds=5), A)
    stand.lab.kill(stand.lab.jobs()[0], 9)
    ended(job)
    assert stand.executor.native_id_of(job.id) == "1.head"
    assert stand.executor.native_id_of("00000000-0000") is None
    stand.lab.update(1, owner="mary")
    (stand.executor.work_directory / "1.head.ec").unlink(missing_ok=True)
    assert stand.executor.native_id_of(job.id) is None


def test_id_in_the_answer() -> None:
    executor = PBSJobExecutor()
    assert executor.job_id_from_submit_output("welcome\n12.pbs.example.org\n") == "12.pbs.example.org"
    for text in ("", "12", "12.a 13.b", "12.a\n13.a\n", "-1.a", "qsub: 12.a"):
        with pytest.raises(ValueError):
            executor.job_id_from_submit_output(text)


def test_variables_of_qsub(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PBS_DPREFIX", "#X")
    assert stand.executor.get_submit_command(a_job("true"), Path("f")) == ["env", "-u", "PBS_DPREFIX", "qsub", "f"]


@pytest.mark.parametrize("native_id", ["999.head", "-u mary", "all", "", "1;2", "../1", "1\n2", "12"])
def test_attach_to_nothing(stand: Stand, native_id: str) -> None:
    """E34, T18."""
    job = Job()
    stand.executor.attach(job, native_id)
    assert (ended(job).state, (job.status.metadata or {})["reason"]) == (F, "lost")


def test_attach_to_an_ended_job(stand: Stand) -> None:
    first, job = a_job("exit 6"), Job()
    stand.executor.submit(first)
    ended(first)
    stand.executor.attach(job, first.native_id or "")
    assert ended(job).exit_code == 6


# --- directives ----------------------------------------------------------------------------------------------------

def directives(spec: JobSpec) -> list[str]:
    job = Job(spec)
    return [str(pbs(one)) for one in PBSJobExecutor()._directives(job, spec) if one.option not in "Sojv"]


@pytest.mark.parametrize(("members", "expected"), [
    ({}, ["-N n", "-V", "-l walltime=00:10:00"]),
    ({"inherit_environment": False, "attributes": JobAttributes(timedelta(days=2, seconds=1.5), "q@s", "a b")},
     ["-N n", "-q q@s", '-A "a b"', "-l walltime=48:00:02"]),
    ({"attributes": JobAttributes(None, reservation_id="R12")}, ["-N n", "-V", "-q R12"]),
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


def test_custom_name_wins_over_that_of_the_executable() -> None:
    spec = JobSpec("/bin/true", attributes=JobAttributes(None, custom_attributes={"pbs.N": "mine"}))
    assert directives(spec) == ["-V", "-N mine"]


@pytest.mark.parametrize(("attributes", "message"), [
    ({"pbs.J": "1-3"}, "one job"), ({"pbs.o": "x"}, "stdout_path"), ({"pbs.W": "block=true"}, "hold up"),
    ({"pbs.l": "a=1,walltime=5"}, "both say walltime"), ({"pbs.A": "x"}, "say the same"),
    ({"pbs.nice": 1}, "not an option of qsub"), ({"pbs.p": [1]}, "must be text, a number"),
    ({"pbs.A b": "x"}, "not the name of an option"), ({"pbs.M": "a\n#PBS -p 1"}, "line break"),
    ({"pbs.M": "a\"b'c"}, "both kinds of quotes"), ({"pbs.M": "a\\"}, "backslash"), ({"pbs.M": ""}, "empty")])
def test_custom_attributes_refused(stand: Stand, attributes: dict[str, object], message: str) -> None:
    said = JobAttributes(timedelta(minutes=1), account="x", custom_attributes=attributes)
    with pytest.raises(InvalidJobException, match=message) as raised:
        stand.executor.submit(a_job("true", attributes=said))
    assert f"custom attribute {next(iter(attributes))!r}" in raised.value.message
    assert stand.files() == [] and stand.lab.jobs() == []


@pytest.mark.parametrize(("members", "message"), [
    ({"name": "a b"}, "name"), ({"name": ""}, "name"), ({"name": "x" * 237}, "name"),
    ({"attributes": JobAttributes(queue_name="q", reservation_id="R1")}, "attributes.reservation_id"),
    ({"attributes": JobAttributes(account="a\nb")}, "attributes.account"),
    ({"attributes": JobAttributes(queue_name="a\\b")}, "attributes.queue_name")])
def test_refused_members(stand: Stand, members: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidJobException, match=re.escape(message)):
        stand.executor.submit(a_job("true", **members))
    assert stand.files() == [] and stand.lab.jobs() == []


@pytest.mark.parametrize("value", ["a b", "it's", 'say "x"', "$(id)", "a;b", "#x", "ü ☃", "{{ x }}", "*"])
def test_filter(value: str) -> None:
    """Read back as the stand-in does: one word."""
    match = fake._WORD.match(pbs(Directive("A", value)))
    assert match is not None and value in match.groups()


@pytest.mark.parametrize("directive", [Directive("A", "\n"), Directive("A", ""), Directive("long", "x"),
                                       Directive("1"), Directive("A", "tab\t"), Directive("A", "\u202e")])
def test_filter_refuses(directive: Directive) -> None:
    with pytest.raises(QuotingError):
        pbs(directive)


def test_node_file(stand: Stand, tmp_path: Path) -> None:
    job = a_job('cat "$PSIJ_NODEFILE"', stdout_path=tmp_path / "o",
                resources=ResourceSpecV1(node_count=2, processes_per_node=2))
    stand.executor.submit(job)
    ended(job)
    assert (tmp_path / "o").read_text() == "node1\nnode1\nnode2\nnode2\n"


def test_environment_that_is_not_inherited(stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "1")
    job = Job(JobSpec("/usr/bin/env", stdout_path=tmp_path / "o", inherit_environment=False, environment={"A": "1"}))
    stand.executor.submit(job)
    ended(job)
    names = {line.partition("=")[0] for line in (tmp_path / "o").read_text().splitlines()}
    assert {"A", "PBS_JOBID", "PBS_NODEFILE", "PSIJ_NODEFILE"} <= names and not names & {"MINE", "PATH", "HOME"}


@pytest.mark.parametrize("name", ["pbs", "pbspro", "PBS"])
def test_names(name: str) -> None:
    assert type(JobExecutor.get_instance(name)).__name__ == "PBSJobExecutor"
