"""What resource managers told of jobs that ended, and what becomes of it in the document: recorded outputs, no process.

Slurm's were made on the lab: 2 burnt 1.6 s, 3 exit 200, 4 kill -9, 5 canceled while held, 6 a GPU, 7 four tasks on two
nodes, 8 time limit, 9 deadline, 10 canceled while it ran, 11 requeued, 12 suspended four seconds, 13 killed for its
memory, 14 its node failed, 15 preempted.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from psij import JobState, JobStatus
from psij.executors.batch._evidence import Evidence, decide
from psij.executors.batch._files import ExitFile, node_names
from psij.executors.batch._late import complete
from psij.executors.batch._news import add_nodes, add_starts, kept
from psij.executors.batch._sge_records import parse_qacct
from psij.executors.batch._slurm_records import parse_sacct
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from psij.executors.batch.lsf import LsfJobExecutor
from psij.executors.batch.pbs import PBSJobExecutor
from psij.executors.batch.sge import SGEJobExecutor
from psij.executors.batch.slurm import SlurmJobExecutor
from sssjob.document.model import Document, Job
from sssjob.findings import Findings
from sssjob.run import facts
from sssjob.run.evidence import Source, annotate, disagreements, tell
from sssjob.run.plan import make_plan
from sssjob.run.seen import Seen
from sssjob.validation import check
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document

FIXTURES = Path(__file__).parents[1] / "fixtures"
SLURM, SGE = FIXTURES / "slurm-22.05.8", FIXTURES / "gridengine-8.1.9"
A, C, F, X = (JobState[name] for name in ("ACTIVE", "COMPLETED", "FAILED", "CANCELED"))


def job_of(text: str = "<Job><Id>a</Id><Executable>/bin/true</Executable></Job>") -> Job:
    return next(job for job, _ in read_document(text.encode()).jobs())


def filled(status: JobStatus, job: Job | None = None) -> Job:
    """A job with the facts of a status, which has to be a valid document after it."""
    job = job_of() if job is None else job
    facts.clear(job)
    seen = Seen()
    seen.take(status)
    for _ in range(2):      # the journal tells the same again
        facts.record(job, [seen], job_of(write_document(job)))
    findings = Findings()
    check(Document(job), findings)
    assert not findings.rejected, list(findings)
    return job


def lines(job: Job, *names: str) -> list[str]:
    """The lines of the written document that hold these properties, all but Id and Executable when none is named."""
    chosen_lines = [line.strip() for line in write_document(job).splitlines()[3:-1]]
    return [line for line in chosen_lines if not names or line[1:].startswith(names)]


def slurm(native_id: str, exit: ExitFile | None = None, **known: Any) -> JobStatus:
    """How psij decides on a job of the recorded lab."""
    queue = SlurmJobExecutor().parse_status_output(0, (SLURM / "squeue-facts.txt").read_text())[native_id]
    records = {"sacct": parse_sacct(0, (SLURM / "sacct-facts.psv").read_text())[native_id]}
    decision = decide(Evidence(**{"queue": queue, "in_queue": True, "records": records, "exit": exit, "waited_s": 30.0,
                                  "shown": SlurmJobExecutor._SHOWN_CODES, **known}), 10, 60)
    assert decision is not None
    return decision


# --- Slurm ----------------------------------------------------------------------------------------------------------

def test_everything_that_sacct_has() -> None:
    job = filled(slurm("6", ExitFile(0, "j", 1795289570.0, 1795289571.0)))
    assert lines(job) == [
        "<State>Completed</State>", "<SubmitTime>1795289570</SubmitTime>", "<StartTime>1795289570</StartTime>",
        "<StartCount>1</StartCount>", "<EndTime>1795289571</EndTime>", "<ExitCode>0</ExitCode>",
        '<Extension type="LRM" name="State">COMPLETED</Extension>', "<CpuDuration>0</CpuDuration>", "<Delivered>",
        "<Duration>1</Duration>", "<Processors>1</Processors>", "<NodeCount>1</NodeCount>", "<Node>node1</Node>",
        '<Memory metric="Max" units="KB">3256</Memory>', '<Memory metric="Average" units="KB">3256</Memory>',
        '<Resource name="GPU">1</Resource>', "<Machine>lab</Machine>", "<Queue>debug</Queue>",
        "<Project>chem</Project>", "<QualityOfService>high</QualityOfService>", "</Delivered>"]


def test_several_nodes_and_the_greatest_task() -> None:
    job = filled(slurm("7"))
    assert lines(job, "Processors", "Node", "Memory", "Duration") == [
        "<Duration>2</Duration>", "<Processors>4</Processors>", "<NodeCount>2</NodeCount>",
        '<Node aggregation="List">node2,node3</Node>', '<Memory metric="Max" units="KB">11024</Memory>',
        '<Memory metric="Average" units="KB">11024</Memory>']


def test_200_stays_200_although_sacct_says_72() -> None:
    for status in (slurm("3", ExitFile(200)), slurm("3", ExitFile(200), records={})):
        job = filled(status)
        assert lines(job, "ExitCode", "StatusMessage") == [
            "<ExitCode>200</ExitCode>", "<StatusMessage>exit code 200</StatusMessage>"]
        assert list(disagreements(status)) == []        # it is how sacct shows 200
    assert [d.text for d in disagreements(slurm("3", ExitFile(5)))] == [
        "ExitCode: exit-file says 5, sacct 72; the former counts"]


def test_a_job_that_starts_anew_at_once_was_submitted_before() -> None:
    """The queue has the time at which it was put back, in the second of its second start."""
    seen = Seen()
    seen.take(JobStatus(JobState.QUEUED, metadata={"submit_time": 1.5}))
    seen.take(JobStatus(JobState.ACTIVE, metadata={"start_time": 12.0}))
    seen.take(JobStatus(JobState.CANCELED, metadata={
        "submit_time": 12.0, "start_time": 12.0, "starts": 2, "sources": {"submit_time": "queue"}}))
    assert (seen.submitted, seen.started) == (1.5, 12.0)


def test_a_job_that_runs_anew_after_a_while_was_submitted_before_its_first_start() -> None:
    """The queue has the time at which it was put back long before the second start, and after the first one."""
    seen = Seen()
    for state, known in (
            (JobState.QUEUED, {"submit_time": 27.0}), (JobState.ACTIVE, {"start_time": 28.0, "submit_time": 27.0}),
            (JobState.QUEUED, {"submit_time": 41.0, "start_time": 28.0, "requeued": True}),
            (JobState.ACTIVE, {"submit_time": 41.0, "start_time": 57.0}),
            (JobState.ACTIVE, {"submit_time": 41.0, "start_time": 57.0, "phase": "SUSPENDED"})):
        seen.take(JobStatus(state, metadata=known))
        assert seen.submitted == 27.0
    assert (seen.began, seen.started) == (28.0, 57.0)


def test_the_time_of_a_requeue_is_no_time_of_submission_where_no_other_is_known() -> None:
    """The controller's record of a job that a client has seen for the first time after it was put back."""
    seen = Seen()
    seen.take(JobStatus(JobState.ACTIVE, metadata={"start_time": 5.0, "sources": {"start_time": "start-record"}}))
    seen.take(JobStatus(JobState.CANCELED, metadata={
        "submit_time": 14.0, "start_time": 18.0, "starts": 2, "sources": {"submit_time": "scontrol"}}))
    assert (seen.submitted, seen.started) == (None, 18.0)
    seen.take(JobStatus(JobState.CANCELED, metadata={
        "submit_time": 1.0, "start_time": 18.0, "starts": 2, "sources": {"submit_time": "sacct"}}))
    assert seen.submitted == 1.0


@pytest.mark.parametrize("known", [{"requeued": True}, {"requeued": False, "start_time": 16.0}, {}])
def test_the_time_of_a_requeue_is_none_where_the_first_start_was_never_seen(known: dict[str, Any]) -> None:
    """The list that shows it again is the first answer since it was submitted, by our clock or by the manager's."""
    seen = Seen()
    first = {"submit_time": 5.0} | ({} if known else {"native_state": "PENDING"})
    seen.take(JobStatus(JobState.QUEUED, metadata=first))
    seen.take(JobStatus(JobState.QUEUED, metadata={"submit_time": 14.0, "native_state": "Rq", **known}))
    assert seen.submitted == 5.0


def test_a_job_that_was_put_back_and_cancelled_unseen_did_not_run_until_then() -> None:
    """Without accounting: its own record tells the first start, the queue only that it is in it since later. It was
    held to have run all the time (seed 11059162)."""
    seen = Seen()
    seen.take(JobStatus(JobState.ACTIVE, metadata={"start_time": 20.0, "sources": {"start_time": "start-record"}}))
    seen.take(JobStatus(JobState.CANCELED, metadata={
        "submit_time": 65.0, "end_time": 195.0, "native_state": "CANCELLED", "sources": {"submit_time": "queue"}}))
    assert (seen.started, seen.put_back) == (20.0, True)


@pytest.mark.parametrize(("words", "shown"), [
    ("held: by rule 7", "held: by rule 7"), ("by rule 7", "held: by rule 7"), (None, "held"),
    ("heldback", "held: heldback")])
def test_why_a_job_waits_is_told_once(words: str | None, shown: str) -> None:
    """HTCondor's message says itself that the job is held."""
    job = filled(JobStatus(JobState.QUEUED, message=words, metadata={"phase": "HELD", "waits": "held"}))
    assert (job.value("State"), job.value("StatusMessage")) == ("Hold", shown)


def test_a_job_that_is_cancelled_while_it_waits_again_has_no_known_duration() -> None:
    """Its run had ended before, and nobody says when."""
    seen, job = Seen(), job_of()
    seen.take(JobStatus(JobState.ACTIVE, metadata={"start_time": 1795289570.0}))
    seen.take(JobStatus(JobState.ACTIVE, metadata={"start_time": 1795289570.0, "requeued": True}))
    seen.take(JobStatus(JobState.CANCELED, metadata={"end_time": 1795289770.0}))
    facts.record(job, [seen], job_of())
    assert lines(job, "StartTime", "EndTime", "Duration") == [
        "<StartTime>1795289570</StartTime>", "<EndTime>1795289770</EndTime>"]


def test_a_signal_is_no_exit_code() -> None:
    job = filled(slurm("4"))
    assert job.first("ExitCode") is None
    assert lines(job, "Extension")[:1] == ['<Extension type="LRM" name="ExitSignal">9</Extension>']
    assert str(job.value("StatusMessage")).startswith("signal: ")


@pytest.mark.parametrize(("native_id", "canceled"), [("5", True), ("5", False), ("9", False)])
def test_a_job_that_never_ran_has_no_delivered_usage(native_id: str, canceled: bool) -> None:
    """5 has Start = End in sacct, and 9 has 1:0 as an exit code."""
    job = filled(slurm(native_id, canceled=canceled))
    assert not job.delivered
    assert not {"StartTime", "StartCount", "ExitCode", "CpuDuration"} & {item.tag for item in job.items}
    assert job.value("State") == "Completed"
    assert str(job.value("StatusMessage")).startswith("cancel" if native_id == "5" else "deadline: its deadline passed")


@pytest.mark.parametrize(("native_id", "message"), [
    ("8", "timeout: the time limit was reached (Slurm says TIMEOUT)"),
    ("9", "deadline: its deadline passed (Slurm says DEADLINE)"),
    ("10", "cancel"),
    ("14", "node-failure: a node failed (Slurm says NODE_FAIL)"),
    ("15", "preempted: preempted by another job (Slurm says PREEMPTED)"),
    ("4", "signal: Slurm says FAILED, JobLaunchFailure"),
    ("2", None)])
def test_ends_are_told_apart(native_id: str, message: str | None) -> None:
    job = filled(slurm(native_id))
    assert job.value("StatusMessage") == message
    assert job.first("ExitCode") is None or native_id == "2"


def test_a_kill_for_memory_is_told_by_the_step() -> None:
    """sacct has the same record as after any kill -9; the step says it in the script's output."""
    status = slurm("13")
    SlurmJobExecutor()._explain(status, "slurmstepd: error: Job 13 exceeded memory limit (224989184 > 31457280)")
    assert str(filled(status).value("StatusMessage")).startswith("memory: out of memory (Slurm says FAILED")


def test_a_requeued_job_shows_every_attempt() -> None:
    job = filled(slurm("11", ExitFile(0, "j", 1795289588.0, 1795289594.0)))
    assert lines(job, "StartTime", "EndTime", "StartCount", "Duration", "Extension") == [
        "<StartTime>1795289588</StartTime>", "<StartCount>2</StartCount>", "<EndTime>1795289594</EndTime>",
        '<Extension type="LRM" name="State">COMPLETED</Extension>',
        '<Extension type="LRM" name="Attempt">start=1795289574 end=1795289577 exit=0 state=REQUEUED nodes=node2'
        '</Extension>',
        '<Extension type="LRM" name="Attempt">start=1795289588 end=1795289594 exit=0 state=COMPLETED nodes=node2'
        '</Extension>', "<Duration>9</Duration>"]


def test_suspended_time_is_no_running_time() -> None:
    job = filled(slurm("12"))
    assert lines(job, "SuspendDuration", "Duration") == ["<SuspendDuration>4</SuspendDuration>",
                                                         "<Duration>3</Duration>"]


def test_without_accounting_the_queue_and_the_exit_file_say_what_they_know() -> None:
    exit = ExitFile(0, "j", 1795289570.0, 1795289572.0)
    job = filled(slurm("2", exit, records={}))
    assert lines(job, "ExitCode", "Duration", "Memory", "Cpu", "Node", "Project") == [
        "<ExitCode>0</ExitCode>", "<Duration>2</Duration>", "<NodeCount>1</NodeCount>", "<Node>node1</Node>"]
    running = JobStatus(A, metadata={"start_time": 1795289570.0})
    only = decide(Evidence(queue=running, exit=exit, missed=2, waited_s=30.0), 0, 60)
    assert only is not None
    job = filled(only)
    assert lines(job, "StartTime", "EndTime", "ExitCode", "Duration", "Processors") == [
        "<StartTime>1795289570</StartTime>", "<EndTime>1795289572</EndTime>", "<ExitCode>0</ExitCode>",
        "<Duration>2</Duration>"]
    nothing = decide(Evidence(queue=running, missed=2, waited_s=99.0), 0, 60)
    assert nothing is not None
    assert str(filled(nothing).value("StatusMessage")).startswith("lost: it is in no queue and in no accounting record")
    assert filled(nothing).first("ExitCode") is None


def test_types_of_gpus_are_named_where_they_add_up() -> None:
    text = (SLURM / "sacct-facts.psv").read_text().replace("gres/gpu=1,mem", "gres/gpu=3,gres/gpu:a=1,gres/gpu:b=2,mem")
    job = filled(parse_sacct(0, text)["6"])
    assert lines(job, "Resource") == ['<Resource name="GPU" type="a">1</Resource>',
                                      '<Resource name="GPU" type="b">2</Resource>']
    job = filled(parse_sacct(0, text.replace("gpu:b=2", "gpu:b=1"))["6"])
    assert lines(job, "Resource") == ['<Resource name="GPU">3</Resource>']


def test_energy_where_it_is_measured() -> None:
    text = (SLURM / "sacct-facts.psv").read_text().replace("node=1||chem|high", "node=1|512|chem|high")
    assert lines(filled(parse_sacct(0, text)["6"]), "Resource") == [
        '<Resource name="GPU">1</Resource>', '<Resource name="Energy" units="J">512</Resource>']


# --- Grid Engine ----------------------------------------------------------------------------------------------------

def grid_engine(name: str, native_id: str) -> JobStatus:
    return parse_qacct(0, (SGE / name).read_text())[native_id]


def test_everything_that_qacct_has() -> None:
    assert lines(filled(grid_engine("qacct-j-1.txt", "1"))) == [
        "<State>Completed</State>", "<SubmitTime>1795251032</SubmitTime>", "<StartTime>1795251032</StartTime>",
        "<StartCount>1</StartCount>", "<EndTime>1795251036</EndTime>", "<ExitCode>0</ExitCode>",
        '<Extension type="LRM" name="State">done</Extension>', "<CpuDuration>4</CpuDuration>", "<Delivered>",
        "<Duration>4</Duration>", "<Processors>2</Processors>", '<Memory metric="Max" units="B">50097815</Memory>',
        '<Memory metric="Average" units="B">34008428</Memory>',
        "<Queue>all.q</Queue>", "<Project>physics</Project>", "</Delivered>"]


def test_records_of_slaves_are_parts_of_one_run() -> None:
    """A parallel environment with accounting_summary FALSE: a task's record comes before that of the job."""
    known = grid_engine("qacct-slaves.txt", "1").metadata or {}
    assert (known["starts"], known["wall_seconds"], known["processors"]) == (1, 3, 3)
    assert "attempts" not in known
    assert known["cpu_seconds"] == pytest.approx(0.287 + 0.077)
    assert known["memory_max_bytes"] == int(61.980 * (1 << 20))


def block(start: str, end: str, **fields: str) -> str:
    known = {"hostname": "h", "jobnumber": "7", "granted_pe": "mpi", "slots": "2", "failed": "0", "exit_status": "0",
             "qsub_time": "Sat Nov 21 10:00:00 2026", "start_time": f"Sat Nov 21 {start} 2026",
             "end_time": f"Sat Nov 21 {end} 2026", "ru_wallclock": "5s", "cpu": "1.000s",
             "category": "NONE", **fields}
    return "=" * 10 + "\n" + "".join(f"{name:<12} {value}\n" for name, value in known.items())


@pytest.mark.parametrize(("blocks", "starts", "cpu"), [
    ([("10:00:01", "10:00:02"), ("10:00:03", "10:00:04"), ("10:00:01", "10:00:06")], 1, 3),   # two tasks in turn
    ([("10:00:01", "10:00:06"), ("10:00:01", "10:00:06")], 1, 2),                           # a task as long as the job
    ([("10:00:01", "10:00:06"), ("10:00:07", "10:00:09")], 2, 2),                               # run again
    ([("10:00:01", "10:00:02"), ("10:00:01", "10:00:06"), ("10:00:08", "10:00:09"), ("10:00:07", "10:00:09")], 2, 4)])
def test_slaves_and_runs(blocks: list[tuple[str, str]], starts: int, cpu: int) -> None:
    text = "".join(block(*one) for one in blocks)
    known = parse_qacct(0, text)["7"].metadata or {}
    assert (known["starts"], known["cpu_seconds"], len(known.get("attempts", [1]))) == (starts, cpu, starts)
    again = "".join(block(*one, granted_pe="NONE") for one in blocks)
    assert (parse_qacct(0, again)["7"].metadata or {})["starts"] == len(set(blocks))      # one that comes twice is one


def test_a_rerun_of_grid_engine_shows_every_attempt() -> None:
    job = filled(grid_engine("qacct-j-all.txt", "14"))
    assert lines(job, "StartCount", "Extension") == [
        "<StartCount>2</StartCount>", '<Extension type="LRM" name="State">done</Extension>',
        '<Extension type="LRM" name="Attempt">start=1795251035 end=1795251036 exit=99 state=failed nodes=head'
        '</Extension>',
        '<Extension type="LRM" name="Attempt">start=1795251040 end=1795251040 exit=0 state=done nodes=head</Extension>']


@pytest.mark.parametrize(("native_id", "message"), [
    ("8", "timeout: the time limit was reached"), ("9", "timeout: the time limit was reached"),
    ("4", "signal: ended by signal 11"), ("15", "exit code 100"),
    ("2", "exit code 3"), ("1", None)])
def test_ends_of_grid_engine_are_told_apart(native_id: str, message: str | None) -> None:
    """8 passed h_rt, 9 s_rt."""
    record = grid_engine("qacct-j-all.txt", native_id)
    status = decide(Evidence(records={"qacct": record}, missed=2), 10, 60)
    assert status is not None and filled(status).value("StatusMessage") == message


@pytest.mark.parametrize(("category", "failed", "code", "reason"), [
    ("-l h_rt=5", "37", "137", "timeout"), ("-l h_rt=0:0:5,h_vmem=15M", "37", "137", "timeout"),
    ("-l h_cpu=1,h_rt=300", "37", "137", "cpu-limit"), ("-l h_rt=300,h_vmem=15M", "37", "137", "memory"),
    ("NONE", "37", "137", "timeout"), ("-l s_rt=5", "100", "138", "timeout"), ("-l s_rt=50", "100", "138", "signal"),
    ("-l s_cpu=1", "100", "152", "cpu-limit"), ("-l h_rt=:::x", "100", "137", "signal")])
def test_which_limit_it_was(category: str, failed: str, code: str, reason: str) -> None:
    text = block("10:00:01", "10:00:06", category=category, failed=f"{failed}  : said", exit_status=code)
    assert (parse_qacct(0, text)["7"].metadata or {})["reason"] == reason


@pytest.mark.parametrize(("canceled", "wanted", "letters", "state"), [
    (True, False, "r", X), (False, True, "r", X), (False, False, "dr", X), (False, False, "r", F)])
def test_a_deleted_job_was_canceled_where_that_is_known(canceled: bool, wanted: bool, letters: str, state: JobState
                                                        ) -> None:
    """The record is the same as after a stray kill -9. The qdel may be that of an earlier client, which was killed,
    while nobody answers the question of the next one."""
    queue = SGEJobExecutor()._status(letters, {"slots": "1"})
    record = grid_engine("qacct-j-all.txt", "11")
    status = decide(Evidence(queue=queue, records={"qacct": record}, missed=2, waited_s=30, canceled=canceled,
                             wanted=wanted), 10, 60)
    assert status is not None and status.state is state
    assert str(filled(status).value("StatusMessage")).startswith("cancel" if state is X else "signal")


# --- sources --------------------------------------------------------------------------------------------------------

BASE = JobStatus(C, exit_code=0, metadata={
    "submit_time": 5.0, "start_time": 100.0, "end_time": 200.0, "wall_seconds": 1000.0, "memory_max_bytes": 1000000,
    "processors": 4, "nodes": ["n1.site", "n2"], "queue": "q", "starts": 2,
    "sources": dict.fromkeys(("start_time", "queue"), "acct"),
    "attempts": [{"start_time": 10.0}, {"start_time": 100.0}]})


@pytest.mark.parametrize(("key", "other", "agrees"), [
    ("start_time", 102.0, True), ("start_time", 102.5, False), ("start_time", 9.0, True), ("end_time", 10.0, False),
    ("wall_seconds", 1009.0, True), ("wall_seconds", 1012.0, False), ("memory_max_bytes", 1009999, True),
    ("memory_max_bytes", 1020000, False), ("processors", 5, False), ("nodes", ["n2", "n1"], True),
    ("nodes", ["n2"], False), ("queue", "p", False), ("starts", 1, False), ("exit_code", 3, False),
    ("memory_max_bytes", "much", False), ("not_there", 1, True), ("submit_time", 50.0, True),      # put back then
    ("submit_time", 8.0, False)])
def test_what_counts_as_agreement(key: str, other: Any, agrees: bool) -> None:
    status = JobStatus(C, exit_code=0, metadata={**(BASE.metadata or {}), "others": {key: {"queue": other}}})
    found = list(disagreements(status))
    assert (found == []) is agrees
    if found:
        assert (found[0].rule, found[0].key) == ("SSS621" if key == "exit_code" else "SSS620", key)


@pytest.mark.parametrize(("source", "other", "agrees"), [
    ("queue", 205.0, True), ("scontrol", 205.0, True), ("queue", 99.0, False), ("qacct", 205.0, False)])
def test_a_queue_has_the_submission_of_the_last_run_only(source: str, other: float, agrees: bool) -> None:
    """A job that ran from 100 on was put back at 205 and cancelled in the queue: accounting has the first submission.
    No job is submitted after it has begun, so the other time is no contradiction."""
    status = JobStatus(X, metadata={"submit_time": 90.0, "start_time": 100.0, "end_time": 210.0, "sources":
                                    {"submit_time": "sacct"}, "others": {"submit_time": {source: other}}})
    assert (list(disagreements(status)) == []) is agrees


def test_a_disagreement_is_a_warning_that_names_both() -> None:
    status = slurm("2", ExitFile(0, "j", 1795289570.0, 1795289590.0))
    findings = Findings()
    tell(findings, "a", disagreements(status), "@3.1")
    assert [(f.rule, f.severity, f.subject, f.path, f.message) for f in findings] == [(
        "SSS620", "warning", "EndTime", "@3.1",
        "a: EndTime: sacct says 1795289572, exit-file 1795289590; the former counts")]
    assert [d.record() for d in disagreements(status)] == [{
        "rule": "SSS620", "fact": "EndTime", "key": "end_time", "value": 1795289572.0, "source": "sacct",
        "other": 1795289590.0, "other_source": "exit-file"}]


def test_an_end_that_the_manager_learns_late_is_when_the_nodes_were_free() -> None:
    """Slurm's controller hung for 47 s as a job ended (seen on a real one): it is charged as accounting has it
    (decision 36), for others had no use of its nodes, and its user can write the exit file; but it is said why."""
    status = slurm("2", ExitFile(0, "j", 1795289570.0, 1795289525.0))
    metadata = status.metadata or {}
    assert (metadata["end_time"], metadata["start_time"] + metadata["wall_seconds"]) == (1795289572.0, 1795289572.0)
    assert [d.text for d in disagreements(status) if d.key == "end_time"] == [
        "EndTime: sacct says 1795289572, exit-file 1795289525; the former counts, for the nodes were kept for 47 s "
        "after the job's own end"]


def test_the_order_of_evidence() -> None:
    """Decisions 36: accounting, measured, exit file, stream; the exit code from the exit file."""
    exit = ExitFile(0, "j", 1795289570.0, 1795289572.0)
    sources = (slurm("2", exit).metadata or {})["sources"]
    assert {sources[key] for key in ("start_time", "end_time", "cpu_seconds", "processors", "state")} == {"sacct"}
    assert sources["exit_code"] == "exit-file"
    queue = JobStatus(A, metadata={"start_time": 1.0, "processors": 1})
    known = decide(Evidence(queue=queue, exit=exit, missed=2, waited_s=30.0), 10, 60)
    assert known is not None
    assert (known.metadata or {})["sources"] == {"state": "exit-file", "start_time": "exit-file",
                                                 "end_time": "exit-file", "processors": "queue",
                                                 "exit_code": "exit-file"}
    late = decide(replace(Evidence(queue=queue, exit=exit, missed=2, waited_s=30.0),
                          records={"sacct": JobStatus(A, metadata={"processors": 9})}), 10, 60)
    assert late is not None and (late.metadata or {})["processors"] == 1    # a record from before the end


def test_an_old_word_of_the_queue_is_no_other_opinion() -> None:
    """The queue last spoke of the first run, the one that was requeued."""
    queue = JobStatus(A, metadata={"start_time": 1795289574.0, "nodes": ["node1"], "processors": 3})
    status = slurm("11", queue=queue, in_queue=False, missed=2)
    assert "others" not in (status.metadata or {}) or list(disagreements(status)) == []
    again = slurm("2", queue=replace_metadata(queue, requeued=True), in_queue=False, missed=2)
    assert list(disagreements(again)) == []


def replace_metadata(status: JobStatus, **more: Any) -> JobStatus:
    return JobStatus(status.state, status.time, metadata={**(status.metadata or {}), **more})


def test_more_starts_than_accounting_tells() -> None:
    known: dict[str, Any] = {"starts": 1, "sources": {"starts": "sacct"}}
    add_starts(known, 3, "start-record")
    assert known == {"starts": 3, "sources": {"starts": "start-record"}, "others": {"starts": {"sacct": 1}}}
    add_starts(known, 2, "queue")
    assert known["starts"] == 3
    status = JobStatus(C, metadata=known)
    assert [d.text for d in disagreements(status)] == ["StartCount: start-record says 3, sacct 1; the former counts"]


def test_a_job_that_the_queue_alone_saw_begin() -> None:
    """Grid Engine shows a job in state t while it hands it to the node, whose daemon was killed (seen on a real one): a
    charge for 17 s was told of a job that never ran. Accounting has no start, and the job has recorded none."""
    queue = JobStatus(A, metadata={"native_state": "dt", "start_time": 1795824799.0, "nodes": ["h"], "node_count": 1,
                                   "processors": 1, "phase": "CANCELING"})
    never = parse_qacct(0, block("10:00:01", "10:00:02", failed="21  : in recognizing job", hostname="UNKNOWN",
                                 start_time="-/-", end_time="-/-", ru_wallclock="0s", cpu="0.000s"))["7"]
    status = decide(Evidence(queue=queue, records={"qacct": never}, missed=2, canceled=True), 10, 60)
    assert status is not None
    add_starts(status.metadata or {}, 1, "queue")
    assert [d.text for d in disagreements(status)] == ["StartCount: qacct says 0, queue 1; the former counts"]
    seen, job = Seen(), job_of()
    for each in (queue, status):
        seen.take(each)
        facts.record(job, [seen], job_of())
    assert lines(job, "StartTime", "StartCount", "Delivered", "StatusMessage") == [
        "<StatusMessage>cancel: Grid Engine says in recognizing job</StatusMessage>"]
    late = complete(JobStatus(X, 1795824816.0, "canceled on request", metadata={
        **(queue.metadata or {}), "starts": 1,
        "sources": {"state": "cancel", "start_time": "queue", "starts": "queue"}}), {"qacct": never}, {})
    assert late is not None and "start_time" not in (late.metadata or {})


def test_a_job_that_accounting_never_saw_begin() -> None:
    """Slurm's controller was killed as the job began, and when it was started again cancelled it as one that waits
    (seen on a real one). The job's own record has the start; until when it ran is not known, so nothing is charged."""
    queue = JobStatus(A, metadata={"start_time": 1795289565.0, "nodes": ["node1"], "node_count": 1, "processors": 1})
    status = slurm("5", queue=queue, in_queue=False, missed=2, canceled=True)
    add_starts(status.metadata or {}, 1, "start-record")
    assert [d.text for d in disagreements(status) if d.other_source == "sacct"] == [
        "StartCount: start-record says 1, sacct 0; the former counts, and for how long it had its nodes is not known"]
    assert lines(filled(status), "StartTime", "StartCount", "EndTime", "Duration", "Node>") == [
        "<StartTime>1795289565</StartTime>", "<StartCount>1</StartCount>", "<EndTime>1795289570</EndTime>",
        "<Node>node1</Node>"]
    never = slurm("5", queue=JobStatus(JobState.QUEUED, metadata={"submit_time": 1795289570.0}))
    assert list(disagreements(never)) == [] and lines(filled(never), "StartTime", "StartCount", "Delivered") == []


def test_annotate() -> None:
    job = filled(slurm("4"))
    rows = [(name, value, Source("sacct", 5.0)) for name, value, _ in facts.stated(job)]
    names = [name for name, _, _ in rows]
    assert {"State", "StartTime", "Delivered/Duration", "Delivered/Processors", "Delivered/Queue", "ExitSignal",
            "LRM/State"} <= set(names)
    before = write_document(job)
    for _ in range(2):
        annotate(job, rows)
        text = write_document(job)
        assert text.count('type="SSSJob"') == len(names) == len(set(names))
        assert '<Extension type="SSSJob" name="Source.Delivered.Duration">accounting (sacct)</Extension>' in text
    findings = Findings()
    check(Document(job), findings)
    assert not findings.rejected
    facts.clear(job)
    assert "SSSJob" not in write_document(job) and "LRM" not in write_document(job)
    assert filled(slurm("4"), job) is job and write_document(job) == before


def test_kinds_of_sources() -> None:
    shown = {name: str(Source(name, 0.0)) for name in (
        "sacct", "condor_history", "queue", "status", "scontrol", "exit-file", "node-file", "measured", "user")}
    assert shown == {
        "sacct": "accounting (sacct)", "condor_history": "accounting (condor_history)", "queue": "stream (queue)",
        "status": "stream", "scontrol": "stream (scontrol)", "exit-file": "exit-file",
        "node-file": "exit-file (node-file)", "measured": "measured", "user": "user"}


# --- what was asked for and what was given --------------------------------------------------------------------------

@pytest.mark.parametrize(("asked", "shown"), [
    ("", {"Delivered": "debug"}), ("<Queue>debug</Queue>", {"Job": "debug"}),
    ("<Requested><Queue>debug</Queue></Requested>", {"Requested": "debug"}),
    ("<Queue>a,b</Queue>", {"Requested": "a,b", "Delivered": "debug"}),
    ("<Requested><Queue>a</Queue><Duration>5</Duration></Requested>", {"Requested": "a", "Delivered": "debug"})])
def test_a_name_is_in_delivered_only_where_it_is_another_one(asked: str, shown: dict[str, str]) -> None:
    text = f"<Job><Id>a</Id><Executable>/bin/true</Executable>{asked}</Job>"
    seen = Seen()
    seen.take(slurm("6"))
    job = job_of(text)
    facts.clear(job)
    for _ in range(2):
        facts.record(job, [seen], job_of(text))
    assert {scope.tag: p.text for scope in (job, *job.containers()) for p in scope.all("Queue")} == shown
    facts.clear(job)
    assert [p.text for scope in (job, *job.containers()) for p in scope.all("Queue")] == [
        text for place, text in shown.items() if place != "Delivered"]      # so that it can be run again elsewhere
    rows = facts.stated(job, {"queue": "debug"})
    assert ("Queue", "debug", ("queue",)) in rows if "Job" in shown else rows == [("State", "Idle", ())]


def test_a_default_that_the_manager_did_not_take_is_named_in_the_job() -> None:
    text = "<JobGroup><Id>g</Id><JobDefaults><Queue>x</Queue></JobDefaults><Job><Id>a</Id><Executable>/e</Executable>" \
           "</Job></JobGroup>"
    document = read_document(text.encode())
    job = next(job for job, _ in document.jobs())
    seen = Seen()
    seen.take(slurm("6"))
    facts.record(job, [seen], job_of("<Job><Id>a</Id><Executable>/e</Executable><Queue>x</Queue></Job>"))
    assert job.requested is not None and job.requested.value("Queue") == "x"
    assert job.delivered is not None and job.delivered.value("Queue") == "debug"


# --- states of jobs that have not ended -----------------------------------------------------------------------------

@pytest.mark.parametrize(("state", "metadata", "shown"), [
    ("QUEUED", {}, "Idle"), ("QUEUED", {"phase": "HELD"}, "Hold"), ("ACTIVE", {}, "Running"),
    ("ACTIVE", {"phase": "SUSPENDED"}, "Suspended"), ("ACTIVE", {"phase": "CLEANUP"}, "Running"),
    ("ACTIVE", {"requeued": True}, "Idle"), ("QUEUED", {"phase": "ERROR"}, "Hold")])
def test_states(state: str, metadata: dict[str, Any], shown: str) -> None:
    seen = Seen()
    seen.take(JobStatus(JobState[state], metadata=metadata))
    job = job_of()
    facts.record(job, [seen])
    assert job.value("State") == shown


def test_parts_side_by_side() -> None:
    """Task groups of their own: amounts side by side are summed, times and peaks the greatest."""
    first = JobStatus(C, exit_code=0, metadata={
        "start_time": 10.0, "end_time": 20.0, "wall_seconds": 10, "processors": 2, "node_count": 1, "nodes": ["a"],
        "memory_max_bytes": 2048, "gpus": 1, "energy_joules": 5, "suspend_seconds": 3, "cpu_seconds": 1.25})
    second = JobStatus(C, exit_code=0, metadata={
        "start_time": 12.0, "end_time": 32.5, "wall_seconds": 20, "processors": 4, "node_count": 2,
        "nodes": ["a", "b"], "memory_max_bytes": 1024, "gpus": 2, "energy_joules": 6, "cpu_seconds": 1.25})
    parts = [Seen(), Seen()]
    for part, status in zip(parts, (first, second), strict=True):
        part.take(status)
    job = job_of()
    facts.record(job, parts)
    assert job.delivered is not None
    assert lines(job, "CpuDuration", "SuspendDuration", "StartTime", "EndTime") == [
        "<StartTime>10</StartTime>", "<EndTime>32</EndTime>", "<CpuDuration>3</CpuDuration>",
        "<SuspendDuration>3</SuspendDuration>"]
    assert [(p.tag, p.value) for p in job.delivered.properties()] == [
        ("Duration", 20), ("Processors", Decimal(6)), ("NodeCount", 2), ("Node", "a,b"), ("Memory", Decimal(2)),
        ("Resource", Decimal(3)), ("Resource", Decimal(11))]


# --- records of the submit script, names ----------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "names"), [
    ("b\na\nb\n", ["b", "a"]), ("", []), ("a b\n", []), ("a\n$(x)\n", []), ("n\n" * 40000, [])])
def test_the_node_file(tmp_path: Path, text: str, names: list[str]) -> None:
    (tmp_path / "1.nodefile").write_text(text)
    assert node_names(tmp_path / "1.nodefile") == names
    assert node_names(tmp_path / "2.nodefile") == []


def test_nodes_from_the_node_file_only_where_nobody_else_names_them() -> None:
    known: dict[str, Any] = {"node_count": 3, "sources": {"node_count": "qacct"}}
    add_nodes(known, lambda: ["a", "b"])
    assert known == {"node_count": 3, "nodes": ["a", "b"], "sources": {"node_count": "qacct", "nodes": "node-file"}}
    add_nodes(known, lambda: ["c"])
    assert known["nodes"] == ["a", "b"]


def test_a_job_that_is_cleaned_up_keeps_the_nodes_that_it_had() -> None:
    """squeue lists those of a COMPLETING job that are not given back yet."""
    row = ("JOBID|STATE|REASON|SUBMIT_TIME|START_TIME|END_TIME|CPUS|NODES|NODELIST|PARTITION|QOS\n"
           "7|{}|None|1|{}|9|{}|{}|{}|b|normal\n")
    read = SlurmJobExecutor().parse_status_output
    runs = read(0, row.format("RUNNING", 5, 4, 2, "n[1-2]"))["7"]
    ends = read(0, row.format("COMPLETING", 5, 2, 1, "n2"))["7"]
    assert {"nodes", "node_count", "processors"}.isdisjoint(ends.metadata or {})
    assert kept(runs, ends) | (ends.metadata or {}) == {**(runs.metadata or {}), "phase": "CLEANUP",
                                                         "native_state": "COMPLETING"}
    assert kept(runs, read(0, row.format("COMPLETING", 6, 2, 1, "n2"))["7"]) == {}     # of another run
    assert kept(runs, read(0, row.format("PENDING", "N/A", 2, 1, ""))["7"]) == kept(None, runs) == {}


@pytest.mark.parametrize(("executor", "name", "fit"), [
    (SGEJobExecutor(), "Heavy Water", "Heavy_Water"), (SGEJobExecutor(), "3-Phase", "_3-Phase"),
    (SGEJobExecutor(), "plain", "plain"), (PBSJobExecutor(), "Heavy Water", "Heavy_Water"),
    (LsfJobExecutor(), "a[1]", "a_1_"), (SlurmJobExecutor(), "Heavy Water", "Heavy Water")])
def test_a_name_that_the_manager_does_not_take(executor: BatchSchedulerExecutor, name: str, fit: str,
                                               tmp_path: Path) -> None:
    text = f"<Job><Id>a</Id><Name>{name}</Name><Executable>/bin/true</Executable><Environment export='true'/></Job>"
    findings = Findings()
    plan = make_plan(read_document(text.encode()), findings, executor=executor.name, cwd=tmp_path, backend=executor)
    assert plan.jobs[0].parts[0].spec.name == fit
    assert [f.rule for f in findings if f.subject == "Name"] == ([] if fit == name else ["SSS502"])
    assert plan.jobs[0].job.value("Name") == name


# --- who, where, and which process ----------------------------------------------------------------------------------

def test_who_has_run_it_and_where() -> None:
    job = job_of()
    seen = Seen()
    seen.take(JobStatus(C, time=12.0, exit_code=0, metadata={
        "native_id": "7", "start_time": 10.0, "end_time": 12.0, "machine": "lab"}))
    facts.record(job, [seen], job_of(), facts.Origin("amy", "login1"))
    assert lines(job, "SubmitHost", "User", "Machine") == [
        "<SubmitHost>login1</SubmitHost>", "<User>amy</User>", "<Machine>lab</Machine>"]
    asked = "<Job><Id>a</Id><User>amy</User><Machine>lab.example.org</Machine><Executable>/bin/true</Executable></Job>"
    job = job_of(asked)
    facts.record(job, [seen], job_of(asked), facts.Origin("amy", "login1"))
    assert [(p.tag, p.text) for p in job.properties() if p.tag in ("User", "Machine")] == [
        ("User", "amy"), ("Machine", "lab.example.org")]
    assert not [p for block in job.containers("Delivered") for p in block.properties()
                if p.tag in ("User", "Machine")]


def test_which_process_each_group_was() -> None:
    """Native ids stand at the groups that they are of; a run of the document again takes all of it away."""
    text = ("<Job><Id>a</Id><TaskGroup><TaskCount>1</TaskCount><Executable>/bin/a</Executable></TaskGroup>"
            "<TaskGroup><Executable>/bin/b</Executable><Task><Name>t</Name></Task></TaskGroup>"
            "<TaskGroup><TaskCount>2</TaskCount><Executable>/bin/c</Executable></TaskGroup></Job>")
    job = job_of(text)
    parts = []
    for number, group in enumerate(job.task_groups, 11):
        seen = Seen(group)
        seen.take(JobStatus(C, time=12.0, exit_code=0, metadata={
            "native_id": str(number), "start_time": 10.0, "end_time": 12.0, "nodes": ["n1"], "process": number,
            "session": number}))
        parts.append(seen)
    for _ in range(2):
        facts.record(job, parts)
    assert not [p for p in job.all("Extension") if p.get("name") == "NativeId"]
    assert [[p.text for p in g.all("Extension")] for g in job.task_groups] == [["11"], ["12"], ["13"]]
    assert [[[(p.tag, p.text) for p in t.properties()] for t in g.tasks] for g in job.task_groups] == [
        [[("Node", "n1"), ("Session", "11"), ("Process", "11")]],
        [[("Name", "t"), ("Node", "n1"), ("Session", "12"), ("Process", "12")]], []]
    assert [value for name, value, _ in facts.stated(job) if name == "NativeId"] == ["11", "12", "13"]
    findings = Findings()
    check(Document(job), findings)
    assert not findings.rejected, list(findings)
    facts.clear(job)
    job.set("State", None)
    assert job == job_of(text)


def test_order_of_what_was_there_is_kept() -> None:
    """Facts come behind it, and those of a run in the place of those of the run before."""
    text = ("<Job><Extension name='Dialect' type='Scheduler'>slurm</Extension><Id>a</Id>"
            "<Executable>/bin/true</Executable><Extension name='x' type='site'>1</Extension></Job>")
    job = job_of(text)
    before = list(job.items)
    for native_id in ("1", "2"):
        seen = Seen()
        seen.take(JobStatus(C, time=12.0, exit_code=0, metadata={
            "native_id": native_id, "start_time": 10.0, "end_time": 12.0, "native_state": "COMPLETED"}))
        facts.record(job, [seen])
        assert job.items[:4] == before
    assert [p.text for p in job.all("Extension") if p.get("type") == "LRM"] == ["2", "COMPLETED"]
