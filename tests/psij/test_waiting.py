"""Why a job waits, in one kind of word for all managers; what is news of a job whose state stays the same for PSI/J.

Reasons of Slurm 22.05.8 and Grid Engine 8.1.9 were seen on real clusters, "Can Never Run" with OpenPBS; the others are
those of the manuals.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from psij import JobState, JobStatus
from psij._delivery import deliver
from psij.executors.batch._followed import Followed, LastAnswer
from psij.executors.batch._news import is_behind
from psij.executors.batch._reasons import Reasons
from psij.executors.batch._tidying import tell_output
from psij.executors.batch.flux import FluxJobExecutor
from psij.executors.batch.slurm import SlurmJobExecutor
from psij.job import Job, JobNewsCallback
from sssjob.lrm import flux, lsf, pbs, sge, slurm, waits
from tests.psij.managers import MANAGERS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "gridengine-8.1.9"
_HEADER = "JOBID|STATE|REASON|SUBMIT_TIME|START_TIME|END_TIME|CPUS|NODES|NODELIST|PARTITION|QOS\n"
_TORQUE = "Job Id: 1.head\n    Job_Name = a\n    job_state = {}\n    comment = {}\n    queue = q\n\n"
_CONDOR = {"ClusterId": 1, "ProcId": 0, "QDate": 5, "CpusProvisioned": 1}
_FLUX = {"id": 7, "status": "SCHED", "t_submit": 5.0, "urgency": 16, "annotations": {}}


def _slurm(state: str, reason: str) -> str:
    return f"{_HEADER}1|{state}|{reason}|5|N/A|N/A|1|1||batch|normal\n"


def _pbs(letter: str, comment: str, **more: object) -> str:
    jobs = {"1.head": {"job_state": letter, "comment": comment, **more}}
    return json.dumps({"pbs_server": "head", "Jobs": jobs})


def _cobalt(state: str) -> str:
    return f"JobID: 1\n    State : {state}\n    Queue : q\n    SubmitTime : N/A\n\n"


#: Manager, answer of the queue, then what is shown: phase, kind, words, whether it was put back.
ANSWERS: Mapping[str, tuple[str, str, tuple[str | None, str | None, str | None, bool]]] = {
    "its turn": ("slurm", _slurm("PENDING", "Priority"), (None, "turn", "Priority", False)),
    "no reason yet": ("slurm", _slurm("PENDING", "None"), (None, None, None, False)),
    "held by the user": ("slurm", _slurm("PENDING", "JobHeldUser"), ("HELD", "held", "JobHeldUser", False)),
    "held by an operator": ("slurm", _slurm("PENDING", "JobHeldAdmin"), ("HELD", "held", "JobHeldAdmin", False)),
    "requeued and held": ("slurm", _slurm("PENDING", "job requeued in held state"),
                          ("HELD", "held", "job requeued in held state", False)),
    "REQUEUE_HOLD": ("slurm", _slurm("REQUEUE_HOLD", "None"), ("HELD", "held", None, False)),
    "SPECIAL_EXIT": ("slurm", _slurm("SPECIAL_EXIT", "None"), ("HELD", "held", None, False)),
    "RESV_DEL_HOLD": ("slurm", _slurm("RESV_DEL_HOLD", "None"), ("HELD", "held", None, False)),
    "REQUEUED": ("slurm", _slurm("REQUEUED", "None"), (None, None, None, True)),
    "longer than the partition": ("slurm", _slurm("PENDING", "PartitionTimeLimit"),
                                  (None, "never", "PartitionTimeLimit", False)),
    "hqw": ("sge", "hqw", ("HELD", "held", None, False)), "Rq": ("sge", "Rq", (None, None, None, True)),
    "Eqw": ("sge", "Eqw", ("ERROR", "held", "Grid Engine cannot start it (state E); qstat -j says why", False)),
    "can never run": ("pbs", _pbs("Q", "Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 8 T: 8)"),
                      (None, "never", "Can Never Run: Insufficient amount of resource: ncpus (R: 64 A: 8 T: 8)",
                       False)),
    "not running": ("pbs", _pbs("Q", "Not Running: Insufficient amount of resource: ncpus"),
                    (None, "turn", "Not Running: Insufficient amount of resource: ncpus", False)),
    "H": ("pbs", _pbs("H", "Job held by alice on Sat Nov 21 08:20:31 2026"),
          ("HELD", "held", "Job held by alice on Sat Nov 21 08:20:31 2026", False)),
    "H of a dependency": ("pbs", _pbs("H", "", substate=22), (None, "dependency", "", False)),
    "W": ("pbs", _pbs("W", ""), (None, "begin", "", False)),
    "Torque": ("pbs_classic", _TORQUE.format("Q", "Not Running: User has reached server running job limit."),
               (None, "limit", "Not Running: User has reached server running job limit.", False)),
    "user_hold": ("cobalt", _cobalt("user_hold"), ("HELD", "held", None, False)),
    "dep_hold": ("cobalt", _cobalt("dep_hold"), (None, "dependency", None, False)),
    "dep_fail": ("cobalt", _cobalt("dep_fail"), ("HELD", "never", None, False)),
    "maxrun_hold": ("cobalt", _cobalt("maxrun_hold"), (None, "limit", None, False)),
    "preempted": ("cobalt", _cobalt("preempted"), (None, None, None, True)),
    "HELD": ("htcondor", json.dumps([_CONDOR | {"JobStatus": 5, "HoldReason": "via condor_hold", "HoldReasonCode": 1}]),
             ("HELD", "held", "held: via condor_hold", False)),
    "no match": ("htcondor", json.dumps([_CONDOR | {"JobStatus": 1, "LastRejMatchReason": "no match found "}]),
                 (None, "turn", "no match found ", False)),
    "idle again": ("htcondor", json.dumps([_CONDOR | {"JobStatus": 1, "JobStartDate": 9}]), (None, None, None, True)),
    "urgency 0": ("flux", json.dumps({"jobs": [_FLUX | {"urgency": 0}]}), ("HELD", "held", "urgency 0", False)),
    "begin-time": ("flux", json.dumps({"jobs": [_FLUX | {"status": "DEPEND", "dependencies": ["begin-time=9.0"]}]}),
                   (None, "begin", "begin-time=9.0", False)),
    "after": ("flux", json.dumps({"jobs": [_FLUX | {"status": "DEPEND", "dependencies": ["after-success=12"]}]}),
              (None, "dependency", "after-success=12", False)),
    "PSUSP": ("lsf", '{"RECORDS": [{"JOBID": "1", "STAT": "PSUSP"}]}', ("HELD", "held", None, False)),
    "HLD": ("nqsv", "1.nqsv HLD\n", ("HELD", "held", None, False)),
    "WAT": ("nqsv", "1.nqsv WAT\n", (None, "begin", None, False)),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_what_the_queue_says_of_a_job_that_waits(case: str) -> None:
    name, out, shown = ANSWERS[case]
    if name == "sge":
        out = (f"<job_info><queue_info/><job_info><job_list state='pending'><JB_job_number>1</JB_job_number>"
               f"<state>{out}</state></job_list></job_info></job_info>")
    (status,) = MANAGERS[name].executor().parse_status_output(0, out).values()
    known = status.metadata or {}
    assert status.state is JobState.QUEUED
    assert (known.get("phase"), known.get("waits"), status.message, known.get("requeued", False)) == shown


@pytest.mark.parametrize(("reason", "kind"), [
    ("Priority", "turn"), ("Resources", "turn"), ("Licenses", "turn"), ("SomethingNew", "turn"), ("None", None),
    ("Dependency", "dependency"), ("DependencyNeverSatisfied", "never"), ("BeginTime", "begin"),
    ("Reservation", "begin"), ("ReservationDeleted", "held"), ("JobHoldMaxRequeue", "held"),
    ("launch failed requeued held", "held"), ("PartitionNodeLimit", "never"), ("PartitionConfig", "never"),
    ("BadConstraints", "never"), ("InvalidQOS", "never"), ("AssocMaxCpuPerJobLimit", "never"),
    ("AssocMaxWallDurationPerJobLimit", "never"), ("QOSMaxWallDurationPerJobLimit", "never"),
    ("QOSMaxCpuPerNode", "never"), ("QOSMinGRES", "never"), ("QOSMinCpuNotSatisfied", "never"),
    ("MaxMemPerLimit", "never"), ("QOSMaxJobsPerUserLimit", "limit"), ("QOSMaxCpuPerUserLimit", "limit"),
    ("AssocGrpCpuLimit", "limit"), ("AssocGrpCPUMinutesLimit", "limit"), ("AssocMaxJobsLimit", "limit"),
    ("QOSGrpNodeLimit", "limit"), ("JobArrayTaskLimit", "limit"), ("PartitionDown", "unavailable"),
    ("PartitionInactive", "unavailable"), ("ReqNodeNotAvail, UnavailableNodes:node3", "unavailable"),
    ("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", "unavailable"),
    ("NodeDown", "unavailable")])
def test_reasons_of_slurm(reason: str, kind: str | None) -> None:
    """A limit on one job is never kept by waiting, one on what runs at once is; budgets decay."""
    assert slurm.waits_for(reason) == kind
    assert kind is None or kind in {getattr(waits, name) for name in waits.__all__}


@pytest.mark.parametrize(("kinds", "lines"), [
    ("never", ['cannot run in queue "all.q" because it is not contained in its hard queue list (-q)',
               '(-l h_rt=1200) cannot run in queue "short.q" because of cluster queue']),
    ("never", ['(-l h_rt=1200) cannot run in queue "a.q@h" because it offers only qf:h_rt=00:01:00']),
    ("turn", ['(-l gpu=10) cannot run at host "localhost" because it offers only hc:gpu=2.000000']),
    ("turn", ['queue instance "all.q@head" dropped because it is full',
              'cannot run in queue "x.q" because it is not contained in its hard queue list (-q)']),
    ("turn", ['cannot run in PE "smp" because it only offers 0 slots']),
    ("held", ["Job is in hold state"]), ("held", ["Job is in error state"]),
    ("unavailable", ['queue instance "all.q@head" dropped because it is disabled']),
    ("limit", ['cannot run because it exceeds limit "alice/////" in rule "most/1"']),
    (None, ['cannot run in queue "x.q" because it is not contained in its hard queue list (-q)',
            "something that no table has"])])
def test_reasons_of_grid_engine(kinds: str | None, lines: list[str]) -> None:
    """Only where all of what is said is for good can a job never start."""
    text = ("\n" + " " * 28).join(lines)
    out = ("=" * 62 + "\n").join(f"job_number:                 {n}\nowner: a\nscheduling info:            {text}\n"
                                 for n in (1, 2))
    reasons = sge.reasons(out)
    assert sorted(reasons) == ["1", "2"] and {kind for kind, _ in reasons.values()} == {kinds}
    assert all(set(words.split("; ")) == set(lines) for _, words in reasons.values())


@pytest.mark.parametrize(("name", "reason", "kind"), [
    (lsf, "Dependency condition invalid or never satisfied;", "never"),
    (lsf, "Job dependency condition not satisfied;", "dependency"),
    (lsf, "The user has reached his/her job slot limit;", "limit"), (lsf, "The queue has been closed;", "unavailable"),
    (lsf, "New job is waiting for scheduling;", "turn"), (lsf, "-", None),
    (lsf, "Job's start time not reached", "begin"),
    (pbs, "Not Running: Queue not started.", "unavailable"), (pbs, "Job will never run", "never"), (pbs, None, None)])
def test_reasons_of_others(name: Any, reason: str | None, kind: str | None) -> None:
    assert name.waits_for(reason) == kind


@pytest.mark.parametrize("job", [{}, {"dependencies": 3}, {"annotations": []}, {"annotations": {"sched": 1}}])
def test_odd_answers_of_flux_are_no_reasons(job: dict[str, Any]) -> None:
    assert flux.waits_for(job) == (None, None)


def test_a_hold_of_one_task_is_not_that_of_the_others() -> None:
    """qstat -j speaks of the array as a whole; the listing tells which of its tasks are held. As seen with 8.1.9."""
    head = "job_number:                 13\njob-array tasks:            1-3:1\nscheduling info:            "
    line = "not all array tasks may be started due to 'max_aj_instances'"
    assert sge.reasons(f"{head}Job is in hold state\n{' ' * 28}{line}\n") == {"13": ("limit", line)}
    assert sge.reasons(f"{head}Job is in hold state\n") == {}


# --- what a program that a signal ended leaves behind

@pytest.mark.parametrize(("words", "code", "shown"), [
    ('/h/launcher_lib.sh: line 58: 15407 Segmentation fault      ( exec -- "$@" ) < "$_PSI_J_STDIN" '
     '>> "$_PSI_J_STDOUT" 2>> "$_PSI_J_STDERR"', 139, "segmentation fault (signal 11)"),
    ('/h/launcher_lib.sh: line 58: 7 Floating point exception(core dumped) ( exec -- "$@" ) < x', 136,
     "floating point exception (signal 8)"),
    ('/h/launcher_lib.sh: line 58:    7 File size limit exceeded( exec -- "$@" ) < x', 153,
     "file size limit exceeded (signal 25)"),       # without a blank where bash needs its whole column for the words
    ('/h/launcher_lib.sh: line 58:    7 Killed                  ( exec -- "$@" )', 137, "killed (signal 9)"),
    ("Terminated", 143, "terminated (signal 15)"),
    ("/bin/bash: warning: setlocale: LC_ALL: cannot change locale (de_DE.UTF-8): No such file or directory\n"
     "/h/launcher_lib.sh: line 58:    7 Killed                  ( exec -- \"$@\" )", 137, "killed (signal 9)"),
    ("/bin/bash: warning: setlocale: LC_ALL: cannot change locale (de_DE.UTF-8)\n"
     "/s/5.job: line 3: warning: setlocale: LC_CTYPE: cannot change locale (xx): No such file or directory", 1, ""),
    ("slurmstepd-n1: error: *** JOB 8 ON n1 CANCELLED AT 2026-11-27T14:17:43 DUE TO JOB REQUEUE ***\nit is bad", 2,
     "it is bad"),      # of the run before
    ("/spool/node1/job00072/slurm_script: line 39: cd: /no where: No such file or directory", 126,
     "the directory /no where: No such file or directory"),
    ("/h/0f/launcher_lib.sh: line 33: /no/e: No such file or directory", 1, "/no/e: No such file or directory"),
    ("my own: line 3: 4 words ( exec", 1, "my own: line 3: 4 words ( exec")])
def test_a_signal_is_told_in_plain_words(words: str, code: int, shown: str, tmp_path: Path) -> None:
    """The place in our own script and its command concern nobody, nor that the submitter's locale is not there."""
    executor = SlurmJobExecutor()
    executor.work_directory = tmp_path
    item = Followed(executor, Job(), "5", True)
    executor._aux_path("5", ".out", item.tag).write_text(f"{words}\n")
    status = JobStatus(JobState.FAILED, message=f"exit code {code}", exit_code=code, metadata={})
    tell_output(executor, item, status)
    assert status.message == ": ".join(filter(None, (f"exit code {code}", shown)))


@pytest.mark.parametrize(("words", "shown"), [
    ("Nov 28 01:46:26.536297 UTC 2026 broker.err[0]: rc2.0: /tmp/flux-O0fvSn/jobtmp-0-f838/script Exited (rc=3) 2.2s",
     "exit code 3"),
    ("/s: line 3: mytool: command not found\nNov 28 01:47:45.268790 UTC 2026 broker.err[0]: rc2.0: /tmp/x/script Alarm "
     "clock (rc=142) 8.5s", "exit code 3: /s: line 3: mytool: command not found"),
    ("Nov 28 01:47:45.26 UTC 2026 broker.err[0]: quorum delayed: waiting for node2", "exit code 3: Nov 28 01:47:45.26 "
     "UTC 2026 broker.err[0]: quorum delayed: waiting for node2")])
def test_that_a_script_has_ended_is_no_reason_of_its_failure(words: str, shown: str, tmp_path: Path) -> None:
    """A real broker of Flux 0.88 says so in the output of each script that fails."""
    executor = FluxJobExecutor()
    executor.work_directory = tmp_path
    item = Followed(executor, Job(), "5", True)
    executor._aux_path("5", ".out", item.tag).write_text(f"{words}\n_PSIJ_SCRIPT_DONE\n")
    status = JobStatus(JobState.FAILED, message="exit code 3", exit_code=3, metadata={})
    tell_output(executor, item, status)
    assert status.message == shown


# --- what is read of an answer

def test_a_reason_that_changes_is_read_anew() -> None:
    executor, known = SlurmJobExecutor(), LastAnswer()
    rows = [f"1|PENDING|{reason}|5|N/A|N/A|1|1||batch|normal\n" for reason in ("Priority", "JobHeldUser")]
    for row in rows:
        (status,) = executor._changed_lines(_HEADER + row, known, "|").values()
        assert status is not None
        known["1"] = known.offered["1"]
        assert executor._changed_lines(_HEADER + row, known, "|") == {"1": None}


def test_a_refusal_of_htcondor_that_comes_later_is_read() -> None:
    executor, known = MANAGERS["htcondor"].executor(), LastAnswer()
    for more in ({}, {"LastRejMatchReason": "no match found "}):
        (status,) = executor._changed_rows(0, json.dumps([_CONDOR | {"JobStatus": 1} | more]), known).values()
        assert status is not None and status.message == more.get("LastRejMatchReason")
        known |= known.offered


def test_jobs_that_nobody_follows_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a list of many jobs only those that are followed become statuses, and only their lines are kept."""
    executor, known, made = SlurmJobExecutor(), LastAnswer(), list[str]()
    known.followed = frozenset(["7", "9999"])
    shown = executor._status

    def counted(state: str, row: Any) -> JobStatus | None:
        made.append(state)
        return shown(state, row)

    monkeypatch.setattr(executor, "_status", counted)
    out = _HEADER + "".join(f"{n}|PENDING|Priority|5|N/A|N/A|1|1||batch|normal\n" for n in range(10_000))
    assert set(executor._changed_lines(out, known, "|")) == {"7", "9999"}
    assert len(made) == len(known.lines) == 2
    known |= known.offered
    assert executor._changed_lines(out, known, "|") == {"7": None, "9999": None} and len(made) == 2
    assert set(executor._changed_lines(out[:-3], known, "|")) == {"7"}      # the last line was cut off


# --- the question why

class _Asked:
    """An executor that is asked why."""

    name = "asked"

    def __init__(self, *answers: object) -> None:
        self.answers, self.commands = list(answers), list[list[str]]()

    def _reasons_command(self, ids: list[str]) -> list[str]:
        self.commands.append(ids)
        return ["why", *ids]

    def _ask(self, command: list[str]) -> tuple[int, str]:
        return 0, ""

    def _reasons(self, code: int, out: str) -> object:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _followed(executor: _Asked, native_id: str) -> Followed:
    item = Followed.__new__(Followed)
    item.executor, item.native_id, item.queue = executor, native_id, None  # type: ignore[assignment]
    return item


def test_one_question_for_all_jobs_that_wait() -> None:
    executor = _Asked({"1": ("never", "no such thing"), "9": ("held", "of a stranger")})
    items = [_followed(executor, one) for one in "1234"]
    old, new = {"submit_time": 10.0}, {"submit_time": 95.0}
    items[1].queue = JobStatus(JobState.QUEUED, metadata=old)
    seen: dict[str, JobStatus | None] = {
        "1": JobStatus(JobState.QUEUED, metadata=old), "2": None, "3": JobStatus(JobState.QUEUED, metadata=new),
        "4": JobStatus(JobState.ACTIVE, metadata=old)}
    reasons = Reasons()
    reasons.add(items, seen, 100.0)
    assert executor.commands == [["1", "2"]] and sorted(seen) == ["1", "2", "3", "4"]
    first = seen["1"]
    assert first is not None and (first.message, first.metadata) == ("no such thing", {**old, "waits": "never"})
    assert seen["2"] is None
    reasons.add(items, seen, 101.0)
    assert len(executor.commands) == 1      # not again so soon


def test_of_too_many_jobs_each_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task of an array has the reason of the array."""
    monkeypatch.setattr("psij.executors.batch._reasons._PAUSE_S", 0.0)
    monkeypatch.setattr("psij.executors.batch._reasons._MOST", 2)
    executor, reasons = _Asked(*[{"1": ("turn", "full")}] * 4), Reasons()
    shown: list[dict[str, JobStatus | None]] = []
    for _ in range(4):
        shown.append(dict.fromkeys(["1", "2", "1.3"], JobStatus(JobState.QUEUED, metadata={})))
        reasons.add([_followed(executor, one) for one in shown[-1]], shown[-1], 100.0)
    assert executor.commands == [["1", "2"], ["1.3", "1"], ["2", "1.3"], ["1", "2"]]
    assert [status.message for status in shown[1].values() if status is not None] == ["full", None, "full"]


def test_a_question_that_fails_again_and_again_is_put_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psij.executors.batch._reasons._PAUSE_S", 0.0)
    executor = _Asked(*[ValueError("odd")] * 9)
    reasons, status = Reasons(), JobStatus(JobState.QUEUED, metadata={})
    for _ in range(5):
        seen: dict[str, JobStatus | None] = {"1": status}
        reasons.add([_followed(executor, "1")], seen, 100.0)
        assert seen == {"1": status}
    assert len(executor.commands) == 3


# --- news

@pytest.mark.parametrize(("queue", "behind"), [
    (None, False), (JobStatus(JobState.ACTIVE, metadata={"submit_time": 200.0}), False),
    (JobStatus(JobState.QUEUED, metadata={"submit_time": 50.0, "confirmed_at": 90.0}), False),
    (JobStatus(JobState.QUEUED, metadata={"submit_time": 50.0, "confirmed_at": 110.0}), False),
    (JobStatus(JobState.QUEUED, metadata={"submit_time": 50.0, "confirmed_at": 170.0}), True),
    (JobStatus(JobState.QUEUED, metadata={"submit_time": 120.0, "confirmed_at": 130.0}), True),
    (JobStatus(JobState.QUEUED), False)])
def test_a_record_of_a_start_before_the_job_was_put_back(queue: JobStatus | None, behind: bool) -> None:
    """It is read after the queue has spoken, and must not make the job run again."""
    assert is_behind(100.0, queue) is behind


def test_news_goes_to_those_who_want_it() -> None:
    """PSI/J tells of states only; who asks for news is told of the rest, in order."""
    class News(JobNewsCallback):
        def job_status_changed(self, job: Job, job_status: JobStatus) -> None:
            told.append(("state", job_status.metadata))

        def job_news(self, job: Job, job_status: JobStatus) -> None:
            told.append(("news", job_status.metadata))

    told: list[tuple[str, dict[str, Any] | None]] = []
    job = Job()
    job.set_job_status_callback(News())
    job.status = JobStatus(JobState.ACTIVE, metadata={"n": 1})
    job._renew(JobStatus(JobState.ACTIVE, metadata={"n": 2}))
    job._renew(JobStatus(JobState.QUEUED, metadata={"n": 3}))       # of another state: nothing
    job.status = JobStatus(JobState.COMPLETED, metadata={"n": 4})
    job._renew(JobStatus(JobState.COMPLETED, metadata={"n": 5}))    # an end stays
    delivered = threading.Event()
    deliver(job.id, delivered.set)
    assert delivered.wait(60)
    assert [one for one in told if one[1]] == [("state", {"n": 1}), ("news", {"n": 2}), ("state", {"n": 4})]
