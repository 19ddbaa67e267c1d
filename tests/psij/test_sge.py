"""The Grid Engine executor: recorded outputs of 8.1.9, what is its own on the stand-in, directives."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from psij import InvalidJobException, Job, JobAttributes, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch._answers import job_state
from psij.executors.batch._files import exit_file
from psij.executors.batch._sge_records import parse_qacct
from psij.executors.batch.sge import SGEExecutorConfig, SGEJobExecutor
from sssjob.lrm.sge import records_of, state_of
from sssjob.templates.quoting import sge
from tests.psij.batch_support import Stand, a_job, ended, refusal, run_script, runs
from tests.psij.managers import MANAGERS

MANAGER = MANAGERS["sge"]
Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))
RECORDED = Path(__file__).parents[1] / "fixtures/gridengine-8.1.9"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


# --- recorded outputs ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("name", "expected"), [
    ("qstat.xml", {"1": (A, "r"), "3": (A, "r"), "3.2": (A, "r"), "3.4": (Q, "qw"), "10": (Q, "qw"), "5": (Q, "hqw"),
                   "11": (A, "r")}),
    ("qstat-susp.xml", {"13": (A, "s"), "15": (Q, "t"), "14": (Q, "Rq"), "5": (Q, "hqw")}),
    ("qstat-errors.xml", {"10": (Q, "qw"), "15": (Q, "Eqw"), "16": (Q, "Eqw"), "19": (Q, "qw")})])
def test_recorded_queue(name: str, expected: dict[str, tuple[JobState, str]]) -> None:
    statuses = SGEJobExecutor().parse_status_output(0, recorded(name))
    states = {key: (status.state, (status.metadata or {})["native_state"]) for key, status in statuses.items()}
    assert expected.items() <= states.items()


def test_recorded_running_job() -> None:
    status = SGEJobExecutor().parse_status_output(0, recorded("qstat.xml"))["8"]
    assert status.time == 1795251032 and status.metadata == {
        "native_state": "r", "start_time": 1795251032, "queue": "all.q", "processors": 1, "nodes": ["head"],
        "node_count": 1}


def test_recorded_ends() -> None:
    """The fields failed and exit_status of qacct are read together, as accounting(5) and sge_status(5) explain them:
    the job that exited with 100 (failed 30) ran, those with 26 and 28 never did."""
    ends = parse_qacct(0, recorded("qacct-j-all.txt"))
    assert {key: (status.state, status.exit_code, (status.metadata or {}).get("reason"),
                  (status.metadata or {}).get("signal")) for key, status in ends.items() if "." not in key} == {
        "1": (C, 0, None, None), "2": (F, 3, None, None), "4": (F, 139, "signal", 11), "3": (C, 0, None, None),
        "14": (C, 0, None, None), "11": (F, 137, "signal", 9), "15": (F, 100, None, None),
        "8": (F, 137, "timeout", 9), "9": (F, 138, "timeout", 10), "5": (C, 0, None, None),
        "20": (F, 1, None, None),
        "16": (F, None, "launch", None), "27": (C, 0, None, None), "18": (C, 0, None, None), "17": (C, 0, None, None),
        "13": (C, 0, None, None)}
    assert (ends["14"].metadata or {})["starts"] == 2


#: What the manual says of these; all other failures of jobs that never ran are of their start.
REASONS = {18: "node-failure", 19: "node-failure", 37: "timeout"}


@pytest.mark.parametrize("failed", range(40))
def test_a_job_that_ran_has_its_exit_code(failed: int) -> None:
    """What the manual says of each failure, for the status as for what is delivered."""
    record = recorded("qacct-j-1.txt")
    text = re.sub(r"(?m)^(failed +)\S.*$", rf"\g<1>{failed}", re.sub(r"(?m)^(exit_status +)\S+", r"\g<1>7", record))
    status = parse_qacct(0, text).get("1")
    if failed in (24, 25):
        assert status is None       # there will be another run
        return
    assert status is not None
    metadata = status.metadata or {}
    ran = failed in (0, 12, 13, 14, 15, 16, 17, 30, 37)
    assert ("wall_seconds" in metadata, status.exit_code, metadata.get("reason")) == (
        ran, 7 if ran else None, REASONS.get(failed, None if ran else "launch"))


def test_recorded_usage() -> None:
    status = parse_qacct(0, recorded("qacct-j-1.txt"))["1"]
    assert status.time == 1795251036 and status.metadata == {
        "native_state": "done", "submit_time": 1795251032, "start_time": 1795251032, "end_time": 1795251036,
        "wall_seconds": 4, "cpu_seconds": 3.707, "memory_max_bytes": int(47.777 * (1 << 20)), "processors": 2,
        "memory_average_bytes": int(120.229 * (1 << 20) / 3.707),
        "queue": "all.q", "account": "physics", "starts": 1}


def test_recorded_array() -> None:
    """Tasks of an array are no runs of one job: its first failure counts, and usage adds up."""
    status = parse_qacct(0, recorded("qacct-array.txt"))["11"]
    assert (status.state, status.exit_code, status.time) == (F, 9, 1795294290) and status.metadata == {
        "native_state": "done", "submit_time": 1795294287, "start_time": 1795294287, "end_time": 1795294290,
        "wall_seconds": 6, "cpu_seconds": pytest.approx(0.021), "memory_max_bytes": 5083496, "processors": 1,
        "queue": "all.q", "starts": 1, "nodes": ["localhost"], "node_count": 1}


@pytest.mark.parametrize(("failed", "found"), [("25  : rescheduling", set()), ("100 : x", {"11", "11.1"})])
def test_an_array_of_which_a_task_runs_again(failed: str, found: set[str]) -> None:
    text = recorded("qacct-array.txt").replace("failed       0    ", f"failed       {failed}", 1)
    assert set(parse_qacct(0, text)) == found | {"11.2", "11.3"}


def test_recorded_run_that_was_put_back() -> None:
    """qacct has no times of it; that it ran is what its ``failed`` says, and so both runs are counted. The qsub_time of
    the second one is that at which it was put back, by which a job was submitted after its first start."""
    status = parse_qacct(0, recorded("qacct-rescheduled.txt"))["202"]
    assert status.metadata is not None and status.metadata.pop("attempts") == [
        {"native_state": "failed 25  : rescheduling", "exit_code": 0, "wall_seconds": 0.0, "nodes": ["localhost"]},
        {"native_state": "done", "exit_code": 0, "start_time": 1795438799.0, "end_time": 1795438803.0,
         "wall_seconds": 4.0, "nodes": ["localhost"]}]
    assert (status.state, status.exit_code, status.time) == (C, 0, 1795438803) and status.metadata == {
        "native_state": "done", "start_time": 1795438799, "end_time": 1795438803, "wall_seconds": 4,
        "cpu_seconds": pytest.approx(0.025), "memory_max_bytes": int(4.633 * (1 << 20)), "processors": 1,
        "queue": "all.q", "starts": 2, "nodes": ["localhost"], "node_count": 1}


@pytest.mark.parametrize("last", [
    "iow 0.000\nmaxvmem 1.8M\n",                                                  # 6.0
    "iow 0.000\nmaxvmem 1.8M\narid undefined\n",                                  # 6.2u5
    "ioops 80\nmaxvmem 1.8M\nmaxrss 1024\nmaxpss 0.000\narid undefined\njc_name NONE\n",      # Univa
    "iow 0.000s\nmaxvmem 1.8MB\narid undefined\ncategory -l h_rt=9\n",            # 8.1
])
def test_where_a_record_ends(last: str) -> None:
    """The last field is another one in each release; a record that is cut off behind any line before that is none."""
    wallclock = "9s" if "category" in last else "9"
    first = (f"{'=' * 62}\njobnumber 7\nfailed 37\nexit_status 137\nend_time Thu Sep 10 17:35:17 2015\n"
             f"ru_wallclock {wallclock}\ncpu 1.5\n")
    (whole,) = records_of(first + last)
    counted = {name: whole[name] for name in whole.keys() & {"cpu", "maxrss", "category"}}
    for end in range(len(first), len(first + last)):
        try:
            (record,) = records_of((first + last)[:end])
        except ValueError:
            continue
        assert {name: record.get(name) for name in counted} == counted
    with pytest.raises(ValueError, match="cut off"):
        records_of(first)
    with pytest.raises(ValueError, match="cut off"):
        records_of("")


def test_recorded_unknown() -> None:
    assert parse_qacct(1, recorded("err-qacct-unknown.txt.stderr")) == {}
    assert parse_qacct(1, recorded("err-qacct-no-file.txt.stderr")) == {}
    for text in (recorded("err-unknown.xml"), "", "<job_info>", "error: commlib"):
        with pytest.raises(ValueError):
            SGEJobExecutor().parse_status_output(0, text)
    with pytest.raises(RuntimeError):
        parse_qacct(1, "error: commlib error")
    assert parse_qacct(0, "Total System Usage\n    WALLCLOCK         UTIME\n") == {}      # of a file without a record
    with pytest.raises(ValueError, match="does not say whether job 1 failed: 'x'"):      # and not that it never began
        parse_qacct(0, re.sub(r"(?m)^failed .*$", "failed x", recorded("qacct-j-1.txt")))


def test_the_ends_of_many_jobs_cost_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """180 jobs that ended in a minute cost 184 commands, each of which read the whole file. Where that does not lie
    here, or has no record of a job, each job is asked for; behind SSH it is looked for with the one command."""
    each = [["env", "TZ=UTC0", "qacct", "-j", number] for number in ("37", "9")]
    monkeypatch.setenv("SGE_ROOT", str(tmp_path))
    executor = SGEJobExecutor()
    assert [source.commands for source in executor._sources(["37.1", "37.2", "9"])] == [each, []]
    cell = tmp_path / "default/common"
    cell.mkdir(parents=True)
    lines = [f"q:host:group:me:{job}:me:1:0\n" for job in ("37:1", "x:37", "y:137", "z:9")]
    (cell / "accounting").write_text("# a comment\n" + "".join(lines))
    (program := tmp_path / "qacct").write_text('#!/bin/sh\necho "$@"\nexec cat "$3"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    first, later = executor._sources(["37.1", "37.2", "9"])
    assert (later.commands, later.late, len(first.commands)) == (each, True, 1)
    assert executor._run_command(first.commands[0]) == f"-j -f /dev/stdin\n{lines[1]}{lines[3]}"
    assert executor._sources(["9"])[0].commands == each[1:]
    monkeypatch.setattr(executor, "host", SimpleNamespace(is_here=False, environ={"SGE_ROOT": "/far"}))
    first, later = executor._sources(["37.1", "9"])
    assert (first.commands[0][-1], len(first.commands), later.commands) == ("/far/default/common/accounting", 1, each)


@pytest.mark.parametrize(("letters", "state", "phase"), [
    ("qw", Q, None), ("hqw", Q, "HELD"), ("t", Q, "STARTING"), ("ht", Q, "STARTING"), ("r", A, None), ("Rr", A, None),
    ("Rq", Q, None), ("Rt", Q, "STARTING"),
    ("s", A, "SUSPENDED"), ("ts", A, "SUSPENDED"), ("S", A, "SUSPENDED"), ("T", A, "SUSPENDED"), ("Eqw", Q, "ERROR"),
    ("dr", A, "CANCELING"), ("dt", Q, "CANCELING"), ("dqw", Q, "CANCELING"), ("dRr", A, "CANCELING"), ("hr", A, None)])
def test_letters(letters: str, state: JobState, phase: str | None) -> None:
    native = state_of(letters)
    assert native is not None and (job_state(native, letters, "state"), native.phase) == (state, phase)


def test_a_job_that_waits_for_others_is_not_held() -> None:
    """Grid Engine's letters call both a hold (qsub -h, -hold_jid, -h with -hold_jid, an array, -hold_jid_ad of it)."""
    statuses = SGEJobExecutor().parse_status_output(0, recorded("qstat-after.xml"))
    facts = {key: status.metadata or {} for key, status in statuses.items()}
    held, waits = ("hqw", "HELD", "held"), ("hqw", None, "dependency")
    assert {key: (known["native_state"], known.get("phase"), known["waits"]) for key, known in facts.items()} == {
        "57": held, "58": waits, "59": waits, "60": held, "60.1": held, "60.2": held, "60.3": held,
        "61": waits, "61.1": waits, "61.2": waits, "61.3": waits}


def test_letters_that_say_nothing() -> None:
    assert state_of("u") is None and state_of("") is None and state_of("X") is None


# --- on the stand-in -------------------------------------------------------------------------------------------------

def test_cancel_by_somebody_else(quick: Stand) -> None:
    """The state letter d seen in qstat is evidence of a cancel."""
    job = runs(quick)
    quick.lab.update(1, state="dr")
    job.wait(timedelta(seconds=0.2))
    quick.lab.kill(quick.lab.jobs()[0], 9)
    assert ended(job).state is X


@pytest.mark.parametrize(("answer", "unbegun"), [
    ("root has deleted job 3\n", {"3"}),
    ("root has deleted job 4\nroot has deleted job 5\ndenied: job \"6\" does not exist\n", {"4", "5"}),
    ("root has deleted job-array task 6.2\n", {"6.2"}),
    ("root has registered the job 7 for deletion\n", set()),
    ("r has registered the job-array task 8.1 for deletion\nr has deleted job 8\nr has deleted job 9\n", {"9"}),
    ("job 12 is already in deletion\n", set())])
def test_what_qdel_says_of_jobs_that_had_not_begun(answer: str, unbegun: set[str]) -> None:
    """Answers of 8.1.9. Of job 8, an array, one element ran."""
    assert SGEJobExecutor()._unbegun(answer) == unbegun


def test_the_end_of_a_job_that_never_began_waits_for_no_record(quick: Stand) -> None:
    """There will be none, and qdel has said so; a job that ran has one, for which its end waits."""
    config = quick.executor.config
    config.accounting_delay = config.lost_after = 600
    held = a_job("sleep 30", attributes=JobAttributes(custom_attributes={"sge.h": True}))
    quick.executor.submit(held)
    held.cancel()
    assert ended(held, 30).state is X and held.status.metadata is not None and "reason" not in held.status.metadata


def test_error_state(quick: Stand) -> None:
    job = a_job("sleep 30", attributes=JobAttributes(custom_attributes={"sge.h": True}))
    quick.executor.submit(job)
    quick.lab.update(1, state="Eqw")
    job.wait(timedelta(seconds=0.2))
    assert job.status.state is Q and "cannot start" in (job.status.message or "")
    job.cancel()
    assert ended(job).state is X


@pytest.mark.parametrize("code", [99, 100])
def test_codes_that_mean_something_else(tmp_path: Path, code: int) -> None:
    """To Grid Engine: the job must not run again or be held; its record has the true code."""
    executor, job = SGEJobExecutor(), a_job(f"exit {code}")
    assert run_script(MANAGER, executor, job, tmp_path) == 1
    noted = exit_file(executor.work_directory / f"5.{job.id}.ec", job.id)
    assert noted is not None and noted.code == code


def test_node_file_without_parallel_environment(tmp_path: Path) -> None:
    job = a_job('cat "$PSIJ_NODEFILE"', stdout_path=tmp_path / "o")
    assert run_script(MANAGER, SGEJobExecutor(), job, tmp_path, HOSTNAME="head") == 0
    assert (tmp_path / "o").read_text() == "head\n"


# --- directives ----------------------------------------------------------------------------------------------------

def directives(spec: JobSpec, **site: Any) -> list[str]:
    executor = SGEJobExecutor(config=SGEExecutorConfig(**site))
    made = executor._directives(Job(spec), spec)
    return [sge(one) for one in made if one.option not in ("S", "o", "j") and "sssjob=" not in str(one.value)]


@pytest.mark.parametrize(("members", "site", "expected"), [
    ({}, {}, ["-N n", "-V", "-l h_rt=00:10:00"]),
    ({"inherit_environment": False, "attributes": JobAttributes(None, "a.q", "physics", "12")}, {},
     ["-N n", "-q a.q", "-P physics", "-ar 12"]),
    ({"attributes": JobAttributes(None, custom_attributes={"sge.p": -5, "sge.notify": True, "SGE.m": "be",
                                                           "sge.x": False, "sge.ac": "a=b c"})}, {},
     ["-N n", "-V", "-p -5", "-notify", "-m be", '-ac "a=b c"']),
    ({"attributes": JobAttributes(None, custom_attributes={"sge.pe": "mpi"}),
      "resources": ResourceSpecV1(process_count=4, cpu_cores_per_process=2, memory=8 << 30)}, {},
     ["-N n", "-V", "-pe mpi 8", "-l mem_free=1048576K"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(process_count=2, gpu_cores_per_process=1,
                                                                     exclusive_node_use=True, memory=1)},
     {"parallel_environment": "smp", "memory_resource": "mem", "gpu_resource": "gpu", "exclusive_resource": "excl"},
     ["-N n", "-V", "-pe smp 2", "-l mem=1K", "-l gpu=1", "-l excl=true"]),
    # the first environment that gives the hosts, else the one that is preferred
    *(({"resources": asked, "attributes": JobAttributes(None)},
       {"parallel_environment": "any", "parallel_environments": rules}, ["-N n", "-V", pe])
      for rules in [{"mpi": "$round_robin", "smp": "$pe_slots", "pairs": 2}] for asked, pe in [
          (ResourceSpecV1(process_count=4), "-pe mpi 4"),
          (ResourceSpecV1(node_count=1, process_count=4), "-pe smp 4"),
          (ResourceSpecV1(node_count=2, processes_per_node=1, cpu_cores_per_process=2), "-pe pairs 4"),
          (ResourceSpecV1(node_count=2, processes_per_node=4), "-pe any 8")])])
def test_directives(members: dict[str, Any], site: dict[str, Any], expected: list[str]) -> None:
    assert directives(JobSpec("/bin/true", name="n", **members), **site) == expected


@pytest.mark.parametrize(("members", "message"), [
    ({"resources": ResourceSpecV1(process_count=2)}, "needs a parallel environment.*sge.pe"),
    ({"resources": ResourceSpecV1(gpu_cores_per_process=1)}, r"resources\.gpu_cores_per_process.*gpu_resource"),
    ({"resources": ResourceSpecV1(exclusive_node_use=True)}, r"resources\.exclusive_node_use"),
    ({"attributes": JobAttributes(queue_name="a\n#$ -p 5")}, r"attributes\.queue_name .*line break"),
    ({"attributes": JobAttributes(account="a b # c")}, r"attributes\.account .*'#'"),
    ({"attributes": JobAttributes(account="it's")}, r"attributes\.account"),
    ({"attributes": JobAttributes(account="")}, r"attributes\.account"),
    ({"attributes": JobAttributes(custom_attributes={"sge.t": "1-3"})}, "sge.t.*one job"),
    ({"attributes": JobAttributes(custom_attributes={"sge.pe": "smp 4"})}, "sge.pe"),
    ({"name": "x" * 513}, "name has more than 512"), ({"name": "a b"}, "name 'a b'"), ({"name": "1a"}, "name '1a'"),
    ({"name": ""}, "name ''"),
    ({"name": "a/b"}, "name"), ({"name": "nå"}, "name"), ({"name": "a\n"}, "name"), ({"name": "a#b"}, "name"),
    ({"name": '"'}, "name")])
def test_refused_specifications(quick: Stand, members: dict[str, Any], message: str) -> None:
    assert re.search(message, refusal(quick, **members))


@pytest.mark.parametrize(("name", "resources", "fits"), [
    ("smp", ResourceSpecV1(node_count=1, processes_per_node=4), True),
    ("smp", ResourceSpecV1(node_count=2, processes_per_node=4), False),
    ("smp", ResourceSpecV1(process_count=4), True),
    ("pairs", ResourceSpecV1(node_count=2, processes_per_node=2), True),
    ("pairs", ResourceSpecV1(node_count=2, processes_per_node=4), False),
    ("mpi", ResourceSpecV1(process_count=4), True),
    ("mpi", ResourceSpecV1(node_count=2, processes_per_node=2), False),
    ("unheard", ResourceSpecV1(node_count=2, processes_per_node=2), True)])
def test_layout(quick: Stand, name: str, resources: ResourceSpecV1, fits: bool) -> None:
    """A parallel environment says how slots are spread; one that cannot give what is asked for is refused."""
    spec = JobSpec("/bin/true", resources=resources, attributes=JobAttributes(custom_attributes={"sge.pe": name}))
    if fits:
        quick.executor._check_spec(spec)
    else:
        with pytest.raises(InvalidJobException, match="allocation_rule"):
            quick.executor._check_spec(spec)


def test_name_made_of_the_executable() -> None:
    names = [directives(JobSpec(path))[0] for path in ("/bin/true", "/x/a b'c", "/x/7z", "/x/ü")]
    assert names == ["-N true", "-N a_b_c", "-N _7z", "-N _"]
