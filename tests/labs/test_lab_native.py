"""Jobs that are run ask a real cluster for what their scripts ask it for, and one document goes the whole way.

The manager's own listing is compared: of a script that its submit command takes, and of the same script that was read
and submitted as a document.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.psij.test_batch_labs import enter_lab

pytestmark = pytest.mark.lab
RATES = Path(__file__).parents[2] / "examples" / "rates.toml"
#: What differs between any two jobs, and what a run says in its own way: the script, its name, files and environment.
_OWN = {
    "slurm": {"JobId", "JobName", "Command", "WorkDir", "StdErr", "StdIn", "StdOut", "Comment", "SubmitTime",
              "Priority", "AllocNode:Sid", "AccrueTime", "LastSchedEval", "EligibleTime", "StartTime", "EndTime",
              "Power", "Reason", "SuspendTime", "SecsPreSuspend", "Deadline", "Scheduler"},
    "sge": {"job_number", "exec_file", "submission_time", "sge_o_workdir", "job_name", "stdout_path_list", "env_list",
            "stderr_path_list", "script_file", "context", "merge", "cwd", "job_args", "shell_list", "mail_list",
            "sge_o_path", "sge_o_home", "sge_o_log_name", "sge_o_shell", "sge_o_host", "binding", "scheduling info"}}
_SLURM = (
    "-n 4 -t 10 -C lab -L matlab:2 --nice=10 --mem-per-cpu=100",
    "-N 2 --ntasks-per-node=2 --mem=200M -w node[1-2] --exclusive -p batch",
    "-n 1 --gpus-per-node=2 --tmp=10M --requeue --overcommit",
    "-G fake:2 -n 2 -c 2 --exclude=node3 -A physics --qos=high",
    "-n 3 -N 3 --gres=gpu:1 --mail-type=END,FAIL --mail-user=a@example.org --no-requeue",
    "-n 2 --switches=1@10 --signal=B:USR1@60 -C 'odd&lab' --spread-job")
_SGE = (
    "-pe smp 2 -l h_rt=0:10:0 -l mem=200M -p -5",
    "-q all.q -l gpu=1 -P physics -r y -l matlab=1",
    "-soft -l arch=lx-amd64\n#$ -hard -l h_vmem=1G -R y -m e -M a@example.org",
    "-pe mpi 2-4 -l h_rt=600 -r n")


@dataclass(slots=True)
class Desk:
    """A lab that is entered, in a folder of its own."""

    name: str
    folder: Path

    def sssjob(self, *words: str) -> str:
        """Output of ``sssjob``, which must end well."""
        return self.output(sys.executable, "-m", "sssjob", *words)

    def output(self, *words: str) -> str:
        """Output of a command, which must end well."""
        process = subprocess.run(words, capture_output=True, text=True, timeout=150, check=False)
        assert process.returncode == 0, (words, process.stderr)
        return process.stdout

    def document(self, script: str) -> Path:
        """A script as a document."""
        (self.folder / "job.sh").write_text(script)
        text = self.sssjob("convert", "-q", "-f", self.name, "-t", "sss", "--policy", "warn", "job.sh")
        path = self.folder / "job.xml"
        path.write_text(text)
        return path

    def listed(self, native_id: str) -> dict[str, str]:
        """What the manager lists of a job."""
        if self.name == "slurm":
            text = self.output("scontrol", "show", "job", "-o", native_id)
            found = dict(re.findall(r"(?:^| )([A-Z][\w:/]*)=(.*?)(?= [A-Z][\w:/]*=|$)", text.strip()))
        else:
            lines = self.output("qstat", "-j", native_id).splitlines()
            found = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        return {name: value for name, value in found.items() if name not in _OWN[self.name]}


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    enter_lab(request.param, monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    monkeypatch.setenv("SSSJOB_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.chdir(tmp_path)
    yield Desk(request.param, tmp_path)


@pytest.mark.parametrize(("desk", "options"), [*(("slurm", o) for o in _SLURM), *(("sge", o) for o in _SGE)],
                         indirect=["desk"])
def test_a_run_asks_for_what_the_script_asks_for(desk: Desk, options: str) -> None:
    """Both are held, so that they can be compared while they wait; what the manager has of them is the same."""
    mark, hold = ("#SBATCH", "--hold") if desk.name == "slurm" else ("#$", "-h")
    document = desk.document(f"#!/bin/sh\n{mark} {hold}\n{mark} {options}\nsleep 1\n")
    if desk.name == "slurm":
        submitted = [desk.output("sbatch", "--parsable", "job.sh").strip()]
    else:
        submitted = [desk.output("qsub", "-terse", "job.sh").strip()]
    try:
        desk.sssjob("submit", "-q", "--executor", desk.name, str(document))
        (row,) = map(json.loads, desk.sssjob("list", "--json").splitlines())
        submitted.append(row["native_id"])
        script, run = map(desk.listed, submitted)
        assert run == script
    finally:
        subprocess.run(["scancel" if desk.name == "slurm" else "qdel", *submitted], capture_output=True, check=False)


@pytest.mark.parametrize("desk", ["slurm", "sge"], indirect=True)
def test_the_whole_circle(desk: Desk) -> None:
    """The script itself goes to every door: match, quote, hold, run, Delivered, charge and statement."""
    mark, asked = ("#SBATCH", "-N 1 -n 2 --mem=100M -t 2 -A physics") if desk.name == "slurm" else \
        ("#$", "-pe smp 2 -l h_rt=120 -P physics")
    (desk.folder / "job.sh").write_text(f"#!/bin/sh\n{mark} {asked}\nsleep 2\n")
    rates = "--rates", str(RATES)
    (desk.folder / "offer.xml").write_text(
        "<Job><Machine>lab</Machine><Project>physics</Project><Processors>64</Processors><Duration>7200</Duration>"
        "<NodeCount>4</NodeCount><Memory units='GB'>4</Memory></Job>")
    assert desk.sssjob("match", "-q", "job.sh", "offer.xml").strip() == "met"
    quote = desk.sssjob("quote", "--json", "-q", "--start", "2026-11-23T12:00Z", *rates, "job.sh")
    quoted = json.loads(quote.splitlines()[0])
    assert float(quoted["charge"]) > 0, quoted
    desk.sssjob("ledger", "deposit", "physics", "10", "--currency", "EUR")
    returned = desk.sssjob("run", "-q", "--timeout", "120", "--executor", desk.name, "job.sh")
    (desk.folder / "back.xml").write_text(returned)
    for fact in ("<State>Completed</State>", "<ExitCode>0</ExitCode>", "<SubmitHost>", "<User>", "<Machine>",
                 "<Processors>2</Processors>", "<Node>"):
        assert fact in returned, (fact, returned)
    desk.sssjob("ledger", "charge", *rates, "back.xml")
    statement = desk.sssjob("ledger", "statement", "physics")
    assert "charge" in statement and desk.sssjob("ledger", "verify")
