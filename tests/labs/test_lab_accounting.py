"""What the status stream put into Delivered is what the accounting of the cluster says, field by field.

Jobs of every kind run on a real cluster through ``sssjob submit``; afterwards sacct's output, and the file that qacct
reads, are read by our own readers of records and held against the documents. ``ALLOWED`` names every difference that
may be, and why; all else has to be equal.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pytest

from sssjob.document.model import Job
from sssjob.lrm.hostlist import hosts
from sssjob.xml.reader import read_document
from tests.labs.test_lab_facts import (
    BURN,
    Lab,
    accounted,
    amounts,
    average_as_printed,
    facts,
    same_size,
    shell,
)
from tests.psij.test_batch_labs import enter_lab

pytestmark = pytest.mark.lab
_LATER = {"slurm": '<Extension type="slurm" name="begin">now+1hour</Extension>',
          "sge": '<Extension type="sge" name="a">203801010000</Extension>'}
_PAIR = '<Extension type="sge" name="pe">smp</Extension><Requested><Processors>2</Processors></Requested>'
_ARRAY = "<Extension type='Scheduler' name='Array'>1-2</Extension>"


class Kind(NamedTuple):
    """A job to run. text: the document of a job of that Id; act: what is done to it while it runs."""

    text: str
    act: str = ""


def burning(name: str, more: str = "") -> str:
    return (f"<Job><Id>{name}</Id><Executable>/usr/bin/python3</Executable><Arguments>-c '{BURN}'</Arguments>{more}"
            "<Environment export='true'/></Job>")


KINDS: Final = {
    "success": Kind(shell("sleep 2", name="success")),
    "cpu": Kind(burning("cpu")),
    "code200": Kind(shell("sleep 1; exit 200", name="code200")),
    "code3": Kind(shell("exit 3", name="code3")),
    "signal": Kind(shell("sleep 1; kill -9 0", name="signal")),
    "limit": Kind(shell("sleep 100", "<Requested><Duration>10</Duration></Requested>", name="limit")),
    "waiting": Kind(shell("true", "{later}", name="waiting"), "cancel"),
    "running": Kind(shell("sleep 100", name="running"), "cancel-running"),
    "pair": Kind(burning("pair", _PAIR)),
    "array": Kind(shell("sleep 1", _ARRAY, name="array")),
    "memory": Kind(burning("memory", '<Requested><Memory units="MB">300</Memory></Requested>')),
    # the last, so that it still runs when it is requeued
    "again": Kind(shell("sleep 8", '<Extension type="sge" name="r">y</Extension>', name="again"), "requeue"),
}


@dataclass(slots=True)
class Done:
    """The jobs of a lab after they have ended, and their records, one each run."""

    lab: Lab
    jobs: dict[str, Job]

    def records(self, kind: str) -> list[Job]:
        return [record for native in self.native(kind) for record in self.lab.records(native)]

    def native(self, kind: str) -> list[str]:
        """The names that the manager has for a job, of an array for its elements."""
        job = self.jobs[kind]
        elements = [dict(w.split("=", 1) for w in text.split() if "=" in w)["NativeId"] for text in facts(
            job, "ArrayElement")]
        return elements or facts(job, "NativeId")

    def said(self, kind: str) -> dict[str, Any]:
        """What accounting says of a job, with the average of memory from the digits that qacct prints."""
        made = of_records(self.records(kind), kind == "array")
        if self.lab.name == "sge":
            averages = [average_as_printed(accounted(native)) for native in self.native(kind)]
            made["Memory Average"] = max((one for one in averages if one is not None), default=None)
        return {name: value for name, value in made.items() if value is not None}


def listed(lab: Lab) -> dict[str, dict[str, Any]]:
    return {str(j["id"]): j for j in map(json.loads, lab("list", "--all", "--json").splitlines())}


def running(lab: Lab, name: str) -> str:
    for _ in range(120):
        job = listed(lab)[name]
        if job["state"] == "Running":
            return str(job["native_id"])
        time.sleep(0.5)
    raise AssertionError(job)


@pytest.fixture(scope="module", params=["slurm", "sge"])
def done(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    with pytest.MonkeyPatch.context() as patch:
        enter_lab(request.param, patch)
        folder = tmp_path_factory.mktemp(request.param)
        patch.setenv("HOME", str(folder))
        patch.setenv("SSSJOB_JOURNAL", str(folder / "journal.db"))
        patch.delenv("XDG_STATE_HOME", raising=False)
        patch.chdir(folder)
        lab = Lab(request.param, folder)
        for name, kind in KINDS.items():
            (folder / f"{name}.xml").write_text(kind.text.replace("{later}", _LATER[lab.name]))
            lab("submit", "--policy", "warn", "--executor", lab.name, str(folder / f"{name}.xml"))
        for name, kind in reversed(KINDS.items()):
            act(lab, name, kind.act)
        yield Done(lab, {name: ended(lab, name) for name in KINDS})


def act(lab: Lab, name: str, what: str) -> None:
    if what == "cancel":
        lab("cancel", name, status=None)
    elif what == "cancel-running":
        running(lab, name)
        time.sleep(1.5)
        lab("cancel", name, status=None)
    elif what == "requeue":
        native = running(lab, name)
        time.sleep(1.5)
        again = ["scontrol", "requeue"] if lab.name == "slurm" else ["qmod", "-rj"]
        subprocess.run([*again, native], check=True, stdout=subprocess.DEVNULL)


def ended(lab: Lab, name: str) -> Job:
    lab("wait", name, "--timeout", "200", status=None)
    return next(job for job, _ in read_document(lab("status", name).encode()).jobs())


# --- what is compared -----------------------------------------------------------------------------------------------

_TIMES: Final = ("SubmitTime", "StartTime", "EndTime", "ExitCode")
_SUMS: Final = ("CpuDuration", "SuspendDuration")
_PLACES: Final = ("Machine", "Queue", "Project", "QualityOfService")

#: (lab, kind of job, field): why the two may differ; * stands for any.
ALLOWED: Final = {
    ("slurm", "*", "User"): "who submitted the job, which run knows itself",
    ("sge", "*", "User"): "who submitted the job, which run knows itself",
    ("sge", "*", "Machine"): "the name of the cell's cluster, which no record has",
    ("slurm", "*", "Memory Total"): "what the job was given, which the document has in Requested",
    ("slurm", "*", "Memory Average"): "AveRSS, which the reader does not carry over",
    ("slurm", "*", "Resource Billing"): "what a site charges for, not what a job got",
    ("slurm", "code200", "ExitCode"): "sacct of 22.05 prints codes from 128 less 128; the exit file has the code its"
    "elf",
    ("slurm", "limit", "ExitSignal"): "how Slurm ended the batch step; the stream tells why: a time limit",
    ("slurm", "running", "ExitSignal"): "how Slurm ended the batch step; the stream tells why: a cancellation",
    ("sge", "again", "SubmitTime"): "the line of the last run has the time of rescheduling, that of the first has none",
    ("sge", "*", "NodeCount"): "a line of the accounting names the master's host; of a parallel job there may be more",
}


def of_document(job: Job) -> dict[str, Any]:
    """What the status stream put into a document."""
    made: dict[str, Any] = {tag: job.value(tag) for tag in (*_TIMES, *_SUMS)}
    made["ExitSignal"] = next(iter(facts(job, "ExitSignal")), None)
    if job.delivered:
        made |= {k: v for k, v in amounts(job).items() if k not in _PLACES}
        made |= {tag: job.delivered.value(tag) for tag in _PLACES}
    if "Node" in made:
        made["Node"] = sorted(set(str(made["Node"]).split(",")))
    return {k: v for k, v in made.items() if v is not None}


def of_records(records: list[Job], several: bool) -> dict[str, Any]:
    """What accounting says of all runs of a job, or of all elements of an array: times and code of the last (of an
    array the first start and the last end), sums of durations, the greatest memory."""
    last = records[-1]
    made: dict[str, Any] = {tag: last.value(tag) for tag in _TIMES}
    # the line of a rescheduled run of Grid Engine has no times
    made["SubmitTime"] = next(v for r in records if (v := r.value("SubmitTime")) is not None)
    if several:
        made["StartTime"] = min(r.value("StartTime") for r in records)      # type: ignore[type-var]
        made["EndTime"] = max(r.value("EndTime") for r in records)          # type: ignore[type-var]
    for tag in _SUMS:
        found = [int(str(v)) for r in records if (v := r.value(tag)) is not None]
        made[tag] = sum(found) if found else None
    made["ExitSignal"] = next(iter(facts(last, "ExitSignal")), None)
    ran = [r for r in records if r.delivered]
    for r in ran:
        for name, value in amounts(r).items():
            if name == "Duration":
                made[name] = made.get(name, 0) + value
            elif name.startswith("Memory"):
                made[name] = max(made.get(name, 0), value)
            elif name == "Node":
                made[name] = sorted({*(made.get(name, []) if several else []), *hosts(str(value))})
            else:
                made[name] = value
    if ran:
        made |= {tag: last.value(tag) for tag in _PLACES}
    return {k: v for k, v in made.items() if v is not None}


def differences(lab: str, kind: str, ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Field: (of the document, of accounting), of those that nothing allows to differ."""
    differences = {}
    for name in sorted(ours.keys() | theirs.keys()):
        one, other = ours.get(name), theirs.get(name)
        close = name.startswith("Memory") and same_size(one, other)
        if not (one == other or close or {(lab, kind, name), (lab, "*", name)} & ALLOWED.keys()):
            differences[name] = one, other
    return differences


@pytest.mark.parametrize("kind", KINDS)
def test_accounting_says_the_same(done: Done, kind: str) -> None:
    job = done.jobs[kind]
    records = done.records(kind)
    if (done.lab.name, kind) == ("sge", "waiting"):
        assert records == []            # Grid Engine's accounting has no job that never ran
        return
    assert records and job.value("State") == "Completed"
    assert differences(done.lab.name, kind, of_document(job), done.said(kind)) == {}


def test_what_ran_was_delivered(done: Done) -> None:
    """So that the comparison is not of nothing."""
    ran = {kind for kind, job in done.jobs.items() if job.delivered}
    assert ran == KINDS.keys() - {"waiting"}
    assert {kind: amounts(done.jobs[kind])["Processors"] for kind in ("success", "pair")} == {"success": 1, "pair": 2}
    assert amounts(done.jobs["limit"])["Duration"] >= 10
    assert min(amounts(done.jobs[k])["Memory Max"] for k in ("cpu", "memory")) > 60 << 20
