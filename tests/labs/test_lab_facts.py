"""Documents run on real clusters: what is in them afterwards is what the accounting of the cluster says.

The accounting is read a second time by other code, the readers of records: sacct's output, and the
file that qacct reads.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sssjob.document.element import Property
from sssjob.document.model import Document, Job, TaskGroup
from sssjob.lrm.hostlist import hosts
from sssjob.translators import ReadContext, get
from sssjob.translators.records.base import RecordTranslator
from sssjob.xml.reader import read_document
from tests.gate import until_there
from tests.psij.test_batch_labs import enter_lab

pytestmark = pytest.mark.lab
EXAMPLES = Path(__file__).parents[1] / "fixtures" / "spec-3.1.0"
BURN = ("import time; x = bytearray(60 &lt;&lt; 20); t = time.process_time()\n"
        "while time.process_time() &lt; t + 1.5: pass")
_COLUMNS = ("JobID,JobName,Cluster,User,Account,Partition,QOS,Submit,Start,End,ElapsedRaw,Suspended,AllocCPUS,NNodes,"
            "NodeList,AllocTRES,TotalCPU,MaxRSS,AveRSS,State,ExitCode")
#: What both have to say alike. The record of Grid Engine has no list of nodes.
_SAME = ("SubmitTime", "StartTime", "EndTime", "CpuDuration", "SuspendDuration")
_DELIVERED = ("Duration", "Processors", "NodeCount", "Node", "Memory", "Resource")
_DEFAULTS = {"Project": "physics"}     # that of the clusters, and of the elaborate example's JobDefaults
_PLACES = ("Machine", "Queue", "Project", "QualityOfService")


#: Fields of a line of Grid Engine's file, accounting(5).
_NUMBER, _TASK, _CPU, _MEM = 5, 35, 36, 37


@dataclass(slots=True)
class Lab:
    """A lab that is entered, and a journal of its own."""

    name: str
    folder: Path

    def __call__(self, *words: str, status: int | None = 0, **variables: str) -> str:
        """Output of ``sssjob``."""
        process = subprocess.run([sys.executable, "-m", "sssjob", *words], capture_output=True, text=True, timeout=150,
                                 env={**os.environ, **variables}, check=False)
        assert status is None or process.returncode == status, process.stderr
        return process.stdout

    def run(self, text: str, *words: str, status: int | None = 0, **variables: str) -> Document:
        """The document after it was run."""
        path = self.folder / "document.xml"
        path.write_text(text)
        out = self("run", "--policy", "warn", "--timeout", "90", "--executor", self.name, *words, str(path),
                   status=status, **variables)
        return read_document(out.encode())

    def job(self, text: str, **more: Any) -> Job:
        return next(job for job, _ in self.run(text, **more).jobs())

    def records(self, native_id: str) -> list[Job]:
        """What accounting has of a job, one Job a run."""
        if self.name == "slurm":
            process = subprocess.run(["env", "TZ=UTC0", "sacct", "-D", "-P", "-j", native_id, "-o", _COLUMNS],
                                     stdout=subprocess.PIPE, check=True)
            kind, found = "sacct", process.stdout
        else:
            kind, found = "sge-acct", b"".join(accounted(native_id))
        reader = get(kind)
        assert isinstance(reader, RecordTranslator) and reader.stream is not None
        return list(reader.stream(io.BytesIO(found), ReadContext(kind, options={"timezone": "UTC"})))


def accounted(native_id: str) -> list[bytes]:
    """The lines of Grid Engine's accounting file of a job, or of one element: one a run, of an array one an element."""
    file = Path(os.environ["SGE_ROOT"], os.environ.get("SGE_CELL", "default"), "common", "accounting")
    number, _, element = native_id.encode().partition(b".")
    lines = [(line, line.split(b":")) for line in file.read_bytes().splitlines(True)]
    return [line for line, fields in lines if fields[_NUMBER:_NUMBER + 1] == [number]
            and (not element or fields[_TASK:_TASK + 1] == [element])]


def average_as_printed(lines: list[bytes]) -> float | None:
    """Bytes: the average memory of a job from the digits that qacct prints of these lines; None where none was sampled.

    qacct prints ``cpu`` in thousandths of a second and ``mem`` in thousandths of its unit. Of a job of a hundredth of
    a second that is another average than the file's six digits make, and so no difference of the two sources.
    """
    runs: dict[bytes, tuple[float, float]] = {}
    for fields in (line.split(b":") for line in lines):
        used, cpu = runs.get(fields[_TASK], (0.0, 0.0))
        runs[fields[_TASK]] = used + as_printed(float(fields[_MEM]) * (1 << 30)), cpu + round(float(fields[_CPU]), 3)
    return max((used / cpu for used, cpu in runs.values() if used and cpu), default=None)


def as_printed(size: float) -> float:
    """A number of bytes after it was printed with three decimals in the largest unit of 1024 that is not more."""
    power = next(n for n in (40, 30, 20, 10, 0) if size >= 1 << n or not n)
    return round(size / (1 << power), 3) * (1 << power)


def same_size(one: float | None, other: float | None) -> bool:
    """Whether two amounts of memory in bytes are alike but for the three decimals that qacct prints of kilobytes and
    more, and the fraction of a byte."""
    return one == other or (one is not None and other is not None and abs(one - other) <= 1 + 0.0005 * min(one, other))


@pytest.fixture(params=["slurm", "sge"])
def lab(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    enter_lab(request.param, monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    yield Lab(request.param, tmp_path)


def only(lab: Lab, name: str, why: str) -> None:
    if lab.name != name:
        pytest.skip(why)


def shell(script: str, more: str = "", name: str = "a") -> str:
    text = script.replace("&", "&amp;").replace("<", "&lt;")
    return (f"<Job><Id>{name}</Id><Executable>/bin/bash</Executable><Arguments>-c '{text}'</Arguments>{more}"
            "<Environment export='true'/></Job>")


def facts(job: Job, name: str) -> list[str]:
    """Those of the job, and of its task groups where they were started one by one."""
    return [p.text for scope in (job, *job.task_groups) for p in scope.all("Extension")
            if (p.get("type"), p.get("name")) == ("LRM", name)]


def native_id(job: Job) -> str:
    return facts(job, "NativeId")[0]


def amounts(job: Job | TaskGroup, *names: str) -> dict[str, Any]:
    """Delivered, each value under its name with metric or name."""
    assert job.delivered is not None
    found = {" ".join(x for x in (p.tag, p.get("metric") or p.get("name")) if x): _value(p)
             for p in job.delivered.properties()}
    return {name: value for name, value in found.items() if not names or name.split(" ")[0] in names}


def parts_of(job: Job) -> list[Job | TaskGroup]:
    groups: list[Job | TaskGroup] = [*job.task_groups]
    return groups or [job]


def _value(p: Property) -> Any:
    factor = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}.get(p.get("units") or "", 1)
    return p.text if isinstance(p.value, str) else float(p.text) * factor


def place(job: Job, tag: str) -> str | None:
    """What was given: in Delivered, else as it was asked for."""
    scopes = (*job.containers("Delivered"), job)
    return next((p.text for scope in scopes for p in scope.all(tag)), _DEFAULTS.get(tag))


def agrees(lab: Lab, job: Job) -> Job:
    """Hold a job against its records of one run; the record."""
    records = lab.records(native_id(job))
    assert len(records) == 1
    record = records[0]
    for tag in _SAME:
        assert job.value(tag) == record.value(tag), tag
    ours, theirs = amounts(job, *_DELIVERED), amounts(record, *_DELIVERED)
    if "Memory Average" in theirs and lab.name == "sge":
        theirs["Memory Average"] = average_as_printed(accounted(native_id(job)))
    for name, value in theirs.items():
        if name == "Node":
            assert lab.name == "sge" or str(ours[name]).split(",") == hosts(str(value))
        elif name.startswith("Memory"):
            assert name == "Memory Total" or same_size(ours.get(name), value), name
        elif name != "Resource Billing":
            assert ours.get(name) == value, name
    for tag in _PLACES:
        stated = record.value(tag)
        given = place(job, tag)         # sacct says Unknown of the QOS of a job that ended just now, now and then
        assert stated is None or given == stated or (given is None and tag == "QualityOfService"), tag
    return record


def quiet(lab: Lab, *ids: str) -> None:
    """No two sources have said different things of these jobs."""
    for line in lab("status", "--json", *ids, status=None).splitlines():
        answer = json.loads(line)
        assert answer["disagreements"] == []


# --- the published examples -----------------------------------------------------------------------------------------

def moderate(lab: Lab) -> str:
    """With executables, a project and a queue that the lab has."""
    text = (EXAMPLES / "moderate.xml").read_text().replace("”", '"')
    changes = {"/usr/local/nwchem/bin/nwchem": "/usr/bin/python3", "-input basis.in": f"-c '{BURN}'",
               "nwchemdev": "chem", "/home/peterk</Init": f"{lab.folder}</Init", ">12</Processors": ">2</Processors",
               'units="GB">2</Memory': 'units="MB">200</Memory', "Colony": "lab", "BottomFeeder": "normal",
               "batch_normal": "batch" if lab.name == "slurm" else "all.q",
               "</Job>": '<Extension type="sge" name="pe">smp</Extension></Job>'}
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def test_the_moderate_example(lab: Lab) -> None:
    job = lab.job(moderate(lab))
    agrees(lab, job)
    assert (job.value("State"), job.value("ExitCode"), job.value("StartCount")) == ("Completed", 0, 1)
    assert job.value("Id") == "PBS.1234.0" and job.first("Charge") is None
    ours = amounts(job)
    assert ours["Processors"] == 2 and ours["NodeCount"] == 1 and ours["Memory Max"] > 60 << 20
    assert 1 <= int(str(job.value("CpuDuration"))) <= 3
    quiet(lab, "PBS.1234.0")


def elaborate(lab: Lab) -> str:
    """The three faults of the print repaired, and names that the lab has; what it cannot honour stays in."""
    text = (EXAMPLES / "elaborate.xml").read_text().replace("”", '"')
    slurm = lab.name == "slurm"
    changes = {"    <Environment>\n  </JobDefaults>": "    </Environment>\n  </JobDefaults>", "2048<Memory>":
               "200</Memory>", "GrandChallenge18": "physics", "~/bin:</Var": "/bin</Var",
               "/usr/local/gridphys/bin/lvcalc</Executable>": f"/usr/bin/python3</Executable><Arguments>-c '{BURN}'"
               "</Arguments>", "batch_normal": "batch" if slurm else "all.q",
               "<Queue>batch</Queue>": f"<Queue>{'batch' if slurm else 'all.q'}</Queue>", "<Memory>1024":
               "<Memory>200", "/usr/local/bin/stage-coordinator": "/bin/true",
               "/usr/local/bin/stage-slave": "/bin/true",
               ">4</NodeCount": ">2</NodeCount", ">12</P": ">6</P", ">16</P": ">9</P", "ESSL2": "matlab",
               "Jumbo-Frame": "lab", "fr15n.*": "node.*",
               "<Memory>512": "<Memory>300", ">43200<": ">600<",
               "</JobDefaults>": '<Extension type="sge" name="pe">smp</Extension>' + (
                   "" if slurm else '<Extension type="Scheduler" name="Launcher">multiple</Extension>')
               + "</JobDefaults>",
               # one way to share out memory for all components, else srun refuses its own variables
               "<TaskCount>1</TaskCount>": "<TaskCount>1</TaskCount><NodeCount>1</NodeCount>",
               'TasksPerNode">1': f'TasksPerNode">{1 if slurm else 2}'}       # Grid Engine's lab has one host
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    # Grid Engine is asked for a feature as a resource of that name, and its lab has none
    return text if slurm else re.sub(r"<Feature[^>]*>lab</Feature>", "", text)


def test_the_elaborate_example(lab: Lab) -> None:
    document = lab.run(elaborate(lab), status=None)
    first, second = (job for job, _ in document.jobs())
    agrees(lab, first)
    assert (first.value("State"), first.value("ExitCode")) == ("Completed", 0)
    assert amounts(first)["Processors"] == 2 and amounts(first)["Memory Max"] > 60 << 20
    assert amounts(first)["NodeCount"] == (2 if lab.name == "slurm" else 1)
    assert (second.value("State"), second.value("ExitCode")) == ("Completed", 0)
    if lab.name == "slurm":         # two components, each with figures of its own
        parts = [group.delivered for group in second.task_groups]
        records = [record for native in facts(second, "NativeId") for record in lab.records(native)]
        theirs = {amounts(part)["Processors"] for record in records for part in parts_of(record)}
        assert len(parts) == 2 and all(part is not None for part in parts)
        assert {amounts(part)["Processors"] for part in second.task_groups} == theirs == {1, 6}
        assert amounts(second)["Processors"] == 7 and amounts(second)["NodeCount"] == 3
    else:                           # it has no such thing: the first group runs, which the policy allows
        agrees(lab, second)
    quiet(lab, "workflow1")


# --- truths that the clusters teach ---------------------------------------------------------------------------------

def test_200_is_200(lab: Lab) -> None:
    job = lab.job(shell("exit 200"), status=200)
    assert (job.value("ExitCode"), facts(job, "ExitSignal")) == (200, [])
    assert job.value("StatusMessage") == "exit code 200"
    quiet(lab, "a")
    rows = lab("status", "a", "--sources", status=None)
    assert re.search(r"^ExitCode +200 +exit-file ", rows, re.MULTILINE)
    assert re.search(r"^Delivered/Duration +\d+ +accounting \((sacct|qacct)\) ", rows, re.MULTILINE)


def test_a_signal_is_no_exit_code(lab: Lab) -> None:
    job = lab.job(shell("kill -9 0"), status=137)
    assert (job.first("ExitCode"), facts(job, "ExitSignal")) == (None, ["9"])
    assert str(job.value("StatusMessage")).startswith("signal")


def test_cancelled_before_it_ran(lab: Lab) -> None:
    hold = ('<Extension type="slurm" name="begin">now+1hour</Extension>' if lab.name == "slurm" else
            '<Extension type="sge" name="a">203801010000</Extension>')
    path = lab.folder / "held.xml"
    path.write_text(shell("true", hold))
    lab("submit", "--policy", "warn", "--executor", lab.name, str(path))
    lab("cancel", "a", status=None)
    lab("wait", "a", "--timeout", "60", status=None)
    job = next(job for job, _ in read_document(lab("status", "a").encode()).jobs())
    assert job.value("State") == "Completed" and not job.delivered
    assert not {"StartTime", "StartCount", "ExitCode", "CpuDuration"} & {item.tag for item in job.items}
    assert str(job.value("StatusMessage")).startswith("cancel")


def started(lab: Lab, text: str) -> str:
    """Submit a document and wait until its job runs; the native id."""
    path = lab.folder / "document.xml"
    path.write_text(text)
    lab("submit", "--policy", "warn", "--executor", lab.name, str(path))
    for _ in range(40):
        listed = json.loads(lab("list", "--json").splitlines()[0])
        if listed["state"] == "Running":
            return str(listed["native_id"])
        time.sleep(0.5)
    raise AssertionError(listed)


def has_lines(path: Path, count: int) -> None:
    """Wait until there are so many lines in a file; the limit of the test ends it."""
    while not path.exists() or path.read_text().count("\n") < count:
        time.sleep(0.2)


def ended(lab: Lab, status: int | None = 0) -> Job:
    lab("wait", "a", "--timeout", "100", status=status)
    return next(job for job, _ in read_document(lab("status", "a").encode()).jobs())


def test_a_requeued_job_shows_every_attempt(lab: Lab) -> None:
    again = ["scontrol", "requeue"] if lab.name == "slurm" else ["qmod", "-rj"]
    begun, go = lab.folder / "begun", lab.folder / "go"
    native = started(lab, shell(f"echo >> {begun}; {until_there(go)}", '<Extension type="sge" name="r">y</Extension>'))
    has_lines(begun, 1)
    time.sleep(1.5)     # the second attempt starts in another second than the first
    subprocess.run([*again, native], check=True, stdout=subprocess.DEVNULL)
    has_lines(begun, 2)
    go.touch()
    job = ended(lab)
    records = lab.records(native)
    assert job.value("StartCount") == len(records) == len(facts(job, "Attempt")) == 2
    attempts = [dict(word.split("=", 1) for word in text.split()) for text in facts(job, "Attempt")]
    for attempt, record in zip(attempts, records, strict=True):     # of a rescheduled run qacct has no times
        assert attempt.get("end") == (None if not record.delivered else str(record.value("EndTime")))
        assert record.value("StartTime") in (None, int(attempt["start"]))
    last = records[-1]
    assert (job.value("StartTime"), job.value("EndTime")) == (last.value("StartTime"), last.value("EndTime"))
    assert int(str(job.value("SubmitTime"))) <= int(attempts[0]["start"]) < int(attempts[1]["start"])
    assert amounts(job)["Duration"] == sum(amounts(r)["Duration"] for r in records if r.delivered)
    quiet(lab, "a")


def test_suspended_time(lab: Lab) -> None:
    only(lab, "slurm", "qacct does not tell how long a job was suspended")
    go = lab.folder / "go"
    native = started(lab, shell(until_there(go)))
    subprocess.run(["scontrol", "suspend", native], check=True)
    time.sleep(3)
    assert 'State>Suspended</' in lab("status", "a")
    subprocess.run(["scontrol", "resume", native], check=True)
    go.touch()
    job = ended(lab)
    assert int(str(job.value("SuspendDuration"))) >= 2
    agrees(lab, job)


def test_a_gpu(lab: Lab) -> None:
    only(lab, "slurm", "qacct does not tell what was held of a consumable")
    job = lab.job(shell("sleep 1", '<Extension type="slurm" name="gres">gpu:1</Extension>'))
    assert amounts(job)["Resource GPU"] == 1
    agrees(lab, job)


def test_slaves_of_a_parallel_environment(lab: Lab) -> None:
    only(lab, "sge", "parallel environments are Grid Engine's")
    script = 'qrsh -inherit $HOSTNAME /usr/bin/seq 2000000'
    job = lab.job(shell(script, '<Extension type="sge" name="pe">mpi</Extension><Processors>3</Processors>'
                        '<Extension type="Scheduler" name="Launcher">single</Extension>'))
    records = lab.records(native_id(job))
    parts = [group for record in records for group in record.task_groups]
    assert len(records) == 1 and len(parts) >= 2
    assert job.value("CpuDuration") == records[0].value("CpuDuration")
    assert (job.value("StartCount"), facts(job, "Attempt")) == (1, [])
    assert (amounts(job)["Processors"], amounts(job)["NodeCount"]) == (3, 1)


def test_without_accounting(lab: Lab) -> None:
    """A sacct and a qacct that say that there is none."""
    folder = lab.folder / "bin"
    folder.mkdir()
    for command, said in (("sacct", "Slurm accounting storage is disabled"), ("qacct", "error: job id 1 not found")):
        (folder / command).write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
        (folder / command).chmod(0o700)
    job = lab.job(shell("sleep 1; exit 3"), status=3, PATH=f"{folder}:{os.environ['PATH']}")
    assert (job.value("State"), job.value("ExitCode"), job.value("StartCount")) == ("Completed", 3, 1)
    assert {"Duration", "NodeCount", "Node"} <= amounts(job).keys() and "Memory Max" not in amounts(job)
    assert 1 <= amounts(job)["Duration"] <= 4 and job.first("CpuDuration") is None
    rows = lab("status", "a", "--sources", status=None)
    assert "accounting" not in rows


def test_other_names_than_asked_for(lab: Lab) -> None:
    only(lab, "slurm", "Grid Engine refuses a list of queues in one word that it does not know")
    job = lab.job(shell("true", "<Requested><Queue>closed</Queue><Queue conj='Or'>debug</Queue></Requested>"))
    assert job.delivered is not None and job.requested is not None
    assert (job.requested.value("Queue"), job.delivered.value("Queue")) == ("closed", "debug")
    assert (job.delivered.value("Machine"), job.delivered.value("Project")) == ("lab", "physics")
