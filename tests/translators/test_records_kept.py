"""What records say is kept, or named: attributes that nobody reads, odd values that were only requested, states that
are not said."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Final

import pytest

from sssjob.document.model import Job
from sssjob.errors import UsageError
from sssjob.translators import ReadContext, get
from sssjob.translators.records.base import RecordTranslator


def read(name: str, text: str, **options: str) -> tuple[Job, list[str]]:
    """The only job of a log, and the findings."""
    translator = get(name)
    assert isinstance(translator, RecordTranslator) and translator.stream is not None
    context = ReadContext("log", options={"timezone": "UTC", "machine": "m"} | options)
    (job,) = translator.stream(BytesIO(text.encode()), context)
    return job, [f.message for f in context.findings]


def delivered(job: Job, tag: str) -> list[str]:
    return [p.text for c in job.containers("Delivered") for p in c.all(tag)]


def gpus(job: Job) -> list[str]:
    return [p.text for c in job.containers("Delivered") for p in c.all("Resource") if p.get("name") == "GPU"]


PBS: Final = ('11/21/2026 11:00:00;E;1.m;user=a account="chem" ctime=1000 start=2000 end=5600 exec_host=n/0*8 '
              "Exit_status=0 resources_used.walltime=01:00:00 Resource_List.walltime=02:00:00 {}\n")
AD: Final = ("ClusterId = 9\nProcId = 0\nOwner = \"ann\"\nJobUniverse = 5\nJobStartDate = 1700000000\n"
             "CompletionDate = 1700000600\nRemoteWallClockTime = 500.0\nNumJobStarts = 2\n{}\n\n")
ROW: Final = ("JobID|Start|End|ElapsedRaw|State|AllocTRES|NodeList|ReqMem|ReqTRES|ReqCPUS|Timelimit|MaxRSS\n"
              "1|1000|4600|3600|COMPLETED|cpu=8,node=1|{nodes}|{mem}|{tres}|{cpus}|{limit}|{rss}\n")
GOOD: Final = {"nodes": "n1", "mem": "4G", "tres": "cpu=8", "cpus": "8", "limit": "02:00:00", "rss": "5K"}


def test_attributes_of_pbs_that_nobody_reads_are_named_once() -> None:
    """As columns of sacct are; the names of a site are no longer lost."""
    text = PBS.format("Resource_List.feature=gpu Resource_List.matlab=4 resources_used.energy=42")
    assert read("pbs-acct", text)[1] == [
        "attributes not carried over (in so many records): Resource_List.feature (1), Resource_List.matlab (1), "
        "resources_used.energy (1)"]
    assert read("pbs-acct", PBS.format(""))[1] == []


def test_attributes_of_condor_and_cobalt_that_nobody_reads_are_named_once() -> None:
    job, findings = read("htcondor-history", AD.format("JobStatus = 4\nCommittedTime = 290\nCommittedSlotTime = 290.0\n"
                                                  "LastRemoteWallClockTime = 300.0\nMyOwn = 1"))
    assert {p.get("name"): p.text for p in job.all("Extension")}.items() >= {
        "CommittedTime": "290", "LastRemoteWallClockTime": "300.0", "CommittedSlotTime": "290.0"}.items()
    assert findings == ["attributes not carried over (in so many records): myown (1)"]
    assert read("cobalt-acct", "03/01/2026 10:00:00;E;5;resource=m user=a start=1000 end=2000 Exit_status=0 "
                "resources_used.nodect=1 force=1\n")[1] == [
        "attributes not carried over (in so many records): force (1)"]


@pytest.mark.parametrize("more", [
    "Resource_List.nodect=1:gpu=2", "Resource_List.neednodes=1:ppn=8:gpus=2", "Resource_List.gpu=2",
    "Resource_List.ngpus=2", "Resource_List.nodes=1:ppn=8:gpus=2",
])
def test_gpus_of_old_torque(more: str) -> None:
    """Five ways to ask for them; all of them were given."""
    assert gpus(read("pbs-acct", PBS.format(more))[0]) == ["2"]


@pytest.mark.parametrize("more", ["Resource_List.nodect=many", "Resource_List.ncpus=8x", "Resource_List.ngpus=1.5",
                                  "Resource_List.mem=a_lot"])
def test_an_odd_request_of_pbs_costs_itself(more: str) -> None:
    job, findings = read("pbs-acct", PBS.format(more))
    assert (delivered(job, "Duration"), delivered(job, "Processors")) == (["3600"], ["8"])
    assert [text.endswith("it is left out") for text in findings] == [True] and more.partition("=")[0] in findings[0]
    job, findings = read("pbs-acct", PBS.replace("02:00:00", "soon").format(""))
    assert delivered(job, "Duration") == ["3600"] and "Resource_List.walltime 'soon'" in findings[0]


@pytest.mark.parametrize(("column", "value"), [("mem", "16?"), ("tres", "cpu=x"), ("cpus", "8x"), ("limit", "1-x")])
def test_an_odd_request_of_sacct_costs_itself(column: str, value: str) -> None:
    """A ReqMem of ``16?`` was seen in logs of a site."""
    job, findings = read("sacct", ROW.format(**GOOD | {column: value}))
    assert (delivered(job, "Duration"), delivered(job, "Processors")) == (["3600"], ["8"])
    assert [text.endswith("it is left out") for text in findings] == [True]


def test_a_job_that_ran_was_somewhere() -> None:
    """An elapsed time counts for more than a list of nodes that says there were none."""
    job, findings = read("sacct", ROW.format(**GOOD | {"nodes": "None assigned"}))
    assert (job.value("StartTime"), delivered(job, "Duration"), delivered(job, "Node")) == (1000, ["3600"], [])
    assert findings == ["NodeList is None assigned, and it ran for 3600 s; the time is taken"]


@pytest.mark.parametrize("unit", ["", "K"])
def test_a_peak_that_was_never_set_is_absent(unit: str) -> None:
    """Slurm's NO_VAL64 less 1 and the like, in whatever unit they are printed."""
    for value in (2**64 - 1, 2**64 - 2):
        job, _ = read("sacct", ROW.format(**GOOD | {"rss": f"{value}{unit}"}))
        assert delivered(job, "Memory") == []


def test_a_history_without_states_lists_jobs_that_have_left() -> None:
    """An extract that names its columns; without JobStatus they were Idle for ever."""
    row = "ce.example.org#7.0#1700000000|ann|100|90|5|1700000000|1700000100|2048|4096|2\n"
    columns = ("GlobalJobId,Owner,RemoteWallClockTime,RemoteUserCpu,RemoteSysCpu,JobStartDate,EnteredCurrentStatus,"
               "ResidentSetSize_RAW,ImageSize_RAW,RequestCpus")
    job, findings = read("htcondor-history", row, columns=columns)
    assert (job.value("State"), job.value("EndTime"), delivered(job, "Duration")) == ("Completed", 1700000100, ["100"])
    assert findings == ["neither JobStatus nor CompletionDate is there; a history lists jobs that have left the queue: "
                        "they are taken as Completed, at EnteredCurrentStatus where that is there"]
    assert read("htcondor-history", row)[1] == []


def _extension(job: Job, name: str) -> str | None:
    return next((p.text for p in job.all("Extension") if p.get("name") == name), None)


@pytest.mark.parametrize(("more", "code", "signal"), [
    ("ExitCode = 3\n", 3, None), ("ExitCode = 3\nJobStatus = 3\n", None, None),
    ("ExitCode = 0\nExitBySignal = true\nExitSignal = 9\n", None, "9")])
def test_the_exit_code_of_a_history_without_states(more: str, code: int | None, signal: str | None) -> None:
    """A job that failed was one that said nothing of its end; one that was removed has no code of its own."""
    job, _ = read("htcondor-history", 'ClusterId = 9\nProcId = 0\nOwner = "ann"\nJobStartDate = 1700000000\n'
                  f"EnteredCurrentStatus = 1700000600\nRemoteWallClockTime = 500.0\n{more}\n")
    assert (job.value("ExitCode"), _extension(job, "ExitSignal")) == (code, signal)


def test_members_of_json_that_no_property_has_are_named() -> None:
    """Once, with the number of records; those without a value, and those that say what others do, are not."""
    job = {"id": 7, "jobid": "f8", "t_submit": 1.0, "t_run": 2.0, "t_cleanup": 9.0, "result": "COMPLETED", "foo": 7,
           "bar": None, "dependencies": [],
           "annotations": {"sched": {"resource_summary": "x", "note": 1}, "user": {"a": 1}}}
    assert read("flux-jobs", json.dumps({"jobs": [job]}))[1][-1] == (
        "attributes not carried over (in so many records): annotations.sched.note (1), annotations.user.a (1), foo (1)")
    ad = {"ClusterId": 9, "ProcId": 0, "JobStatus": 4, "JobStartDate": 1700000000, "CompletionDate": 1700000600,
          "RemoteWallClockTime": 500.0, "Owner": ["ann"], "Foo": {"a": 1}, "Bar": [1], "Baz": [], "Qux": None}
    text = json.dumps(ad)
    assert read("htcondor-history", f"{text}\n")[1][-1] == (
        "attributes not carried over (in so many records): bar (1), foo (1)")
    record = {"job_id": 1, "state": {"current": ["COMPLETED"]}, "time": {"start": 1000, "end": 4600, "elapsed": 3600},
              "tres": {"allocated": [{"type": "cpu", "count": 4}], "max": [1]}, "licenses": "a:1", "container": "",
              "priority": {"set": False, "number": 0}, "comment": {"job": "x", "administrator": "y"}, "nodes": "n1"}
    assert read("sacct-json", json.dumps({"jobs": [record]}))[1][-1] == (
        "attributes not carried over (in so many records): comment.administrator (1), licenses (1), tres.max (1)")


COBALT: Final = "03/01/2026 10:00:00;E;5;ctime=1000 etime=1000 start=2000 end=5600 user=ann Exit_status=0 " \
                "resources_used.walltime=01:00:00 new.key=a_b\n"


@pytest.mark.parametrize(("name", "text", "kind", "expected"), [
    ("pbs-acct", PBS.format('Resource_List.foo=bar x.y="two words"'), "pbs",
     {"Resource_List.foo": "bar", "x.y": "two words"}),
    ("cobalt-acct", COBALT, "cobalt", {"new.key": "a_b"}),
    ("htcondor-history", AD.format('Foo = 3\nBar = "x"\nBaz = {1,2}\nGone = undefined'), "htcondor",
     {"foo": "3", "bar": "x", "baz": "{1,2}"}),
    ("htcondor-history", json.dumps({"ClusterId": 9, "ProcId": 0, "JobStatus": 4, "Foo": {"a": [1]}}) + "\n",
     "htcondor", {"foo": '{"a": [1]}'}),
    ("flux-jobs", json.dumps({"jobs": [{"id": 7, "jobid": "f8", "t_submit": 1.0, "foo": 7,
                                        "annotations": {"user": {"a": "b"}}}]}), "flux",
     {"foo": "7", "annotations.user.a": "b"}),
    ("sacct-json", json.dumps({"jobs": [{"job_id": 1, "licenses": "a:1", "tres": {"max": [1]}}]}), "slurm",
     {"licenses": "a:1", "tres.max": "[1]"}),
    ("sacct", "JobID|Start|AdminComment|End|ElapsedRaw|State|Layout\n1|1000|hello there|4600|3600|COMPLETED|\n"
              "1.batch|1000|no|4600|3600|COMPLETED|x\n", "slurm", {"AdminComment": "hello there"}),
])
def test_all_is_kept_where_that_is_asked_for(name: str, text: str, kind: str, expected: dict[str, str]) -> None:
    """The same attributes that are named else: as Extensions, in the manager's words, and nothing is told of them."""
    named, findings = read(name, text)
    kept, none = read(name, text, keep="all")
    more = [p for p in kept.all("Extension") if p.get("type") == kind and p.get("name") in expected]
    assert {str(p.get("name")): p.text for p in more} == expected and len(more) == len(expected)
    assert any("not carried over" in f for f in findings) and not any("not carried over" in f for f in none)
    assert len(kept.items) == len(named.items) + len(expected)
    with pytest.raises(UsageError, match="option keep is all, not 'some'"):
        read(name, text, keep="some")
