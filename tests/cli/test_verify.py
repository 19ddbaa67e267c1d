"""``sssjob convert --verify`` with stand-ins of Slurm and Grid Engine: what it runs, what it tells, what it leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from tests.cli.conftest import Command
from tests.fakes import cobalt, flux, htcondor, lsf, pbs, pbs_classic, sge, slurm
from tests.fakes.lab import Lab, install

HEAD = "#!/bin/bash\n#SBATCH --time=00:05:00\n"


class Managers(NamedTuple):
    """Both stand-ins, and the directory with the script."""

    slurm: Lab
    sge: Lab
    folder: Path

    def script(self, body: str) -> Path:
        """A script of Slurm."""
        path = self.folder / "job.sh"
        path.write_text(f"{HEAD}{body}\n")
        return path

    def kept(self) -> list[Path]:
        """Directories of runs that are there."""
        return list(self.folder.glob(".sssjob-verify-*"))


@pytest.fixture
def managers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Managers]:
    """Slurm and Grid Engine, first on the path."""
    labs = [install(str(fake.__file__), fake.COMMANDS, tmp_path / name, tmp_path / "bin")
            for name, fake in (("slurm", slurm), ("sge", sge))]
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("SSSJOB_POLLING_INTERVAL", "0.1")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    yield Managers(labs[0], labs[1], folder)
    for lab in labs:
        lab.close()


def test_equal_runs_leave_nothing(managers: Managers, sssjob: Command) -> None:
    """An id in a name and in a text is that of each job; the directory is that of each run."""
    for _ in range(2):          # the ids of the two managers are not the same
        managers.sge.stranger()
    managers.script('echo "in $PWD for $SLURM_JOB_ID" > "out.$SLURM_JOB_ID"; mkdir d; echo 4113 > d/f')
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--verify")
    assert (done.code, managers.kept()) == (0, []), done.err
    assert "converted (Grid Engine): job 3 completed, exit code 0\n" in done.err
    assert done.err.endswith("verify: both runs ended alike and left the same\n")
    assert done.out.startswith("#!/bin/bash\n#$ -l h_rt=00:05:00\n")


def test_a_number_that_only_contains_the_id_is_none(managers: Managers, sssjob: Command) -> None:
    managers.sge.stranger()
    managers.script('echo "$SLURM_JOB_ID"; echo "41$SLURM_JOB_ID" > text')
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--verify", "-q")
    assert done.code == 1 and done.err.splitlines()[3:6] == ["  @@ -1 +1 @@", "  -411", "  +412"]


def test_commands_are_told_before_they_go_out(managers: Managers, sssjob: Command) -> None:
    managers.script("true")
    managers.slurm.fault("sbatch", exit=1, stderr="sbatch: error: Invalid account\n")
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--verify")
    assert done.code == 5
    lines = [line for line in done.err.splitlines() if "SSS" not in line]
    assert [line.partition(": cd ")[0] for line in lines[:2]] == ["original (Slurm)", "converted (Grid Engine)"]
    assert [line.partition(" && ")[2] for line in lines[:2]] == ["sbatch --parsable job.sh", "qsub -terse job.sh"]
    assert lines[2:] == ["sssjob: original (Slurm): sbatch: error: Invalid account"]
    assert managers.sge.jobs() == [] and managers.kept() == []


def test_the_first_is_cancelled_where_the_second_is_refused(managers: Managers, sssjob: Command) -> None:
    managers.script("sleep 60")
    managers.sge.fault("qsub", exit=1, stderr="Unable to run job: unknown resource\nExiting.\n")
    other = managers.slurm.stranger()
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--verify")
    assert done.code == 5
    assert "original (Slurm): job 2 is cancelled\n" in done.err and "unknown resource" in done.err
    assert managers.slurm.calls("scancel") == [["2"]]
    assert [job["end"] is None for job in managers.slurm.jobs() if job["id"] == other["id"]] == [True]
    (kept,) = managers.kept()
    assert f"their files are kept in {kept}" in done.err


@pytest.mark.parametrize(("target", "fake", "command", "files"), [
    ("pbspro", pbs, "qsub job.sh", {"job.sh"}), ("torque", pbs_classic, "qsub job.sh", {"job.sh"}),
    ("lsf", lsf, "env LSB_NTRIES=1 /bin/sh -c 'exec bsub <\"$1\"' sh job.sh", {"job.sh"}),
    ("cobalt", cobalt, "qsub job.sh", {"job.sh"}), ("flux", flux, "flux batch job.sh", {"job.sh"}),
    ("htcondor", htcondor, "condor_submit -terse job.sub", {"job.sub", "job.sh"}),
])
def test_each_manager_has_its_own_command(managers: Managers, sssjob: Command, target: str, fake: ModuleType,
                                          command: str, files: set[str]) -> None:
    """It is called where the script and what belongs to it lie; here it refuses the job."""
    managers.script("sleep 60")
    lab = install(str(fake.__file__), fake.COMMANDS, managers.folder.parent / "other", managers.folder.parent / "bin")
    name = {"lsf": "bsub", "htcondor": "condor_submit", "flux": "flux-batch"}.get(target, "qsub")
    lab.fault(name, exit=1, stderr="not today\n")
    done = sssjob("convert", "-t", target, "job.sh", "--verify")
    (kept,) = managers.kept()
    assert f"/converted && {command}\n" in done.err and "not today; their files are kept" in done.err
    assert {path.name for path in (kept / "converted").iterdir()} == files and len(lab.calls(name)) == 1
    assert managers.slurm.calls("scancel") == [["1"]] and done.code in (4, 5)


@pytest.mark.parametrize("answer", ["", "no number\n"])
def test_an_answer_without_an_id_is_told_as_that(managers: Managers, sssjob: Command, answer: str) -> None:
    managers.script("true")
    managers.slurm.fault("sbatch", exit=0, stdout=answer, after=True)
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--verify")
    assert done.code == 4 and "nobody knows whether there is a job now: no id in the answer" in done.err


def test_what_differs_is_shown_and_kept(managers: Managers, sssjob: Command) -> None:
    managers.script('echo same > same; echo "${JOB_ID-none} of here" > text; [ -n "$JOB_ID" ] || touch alone; '
                    'exit ${JOB_ID:+3}')
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--body", "keep", "--verify", "-q")
    (kept,) = managers.kept()
    assert (done.code, done.err.splitlines()) == (1, [
        "end: original (Slurm) completed, exit code 0; converted (Grid Engine) failed, exit code 3",
        "alone: original (Slurm) left it, converted (Grid Engine) did not",
        "text: it differs", "  --- original (Slurm)", "  +++ converted (Grid Engine)", "  @@ -1 +1 @@",
        "  -none of here", "  +1 of here", f"verify: the runs differ; their files are kept in {kept}"])
    assert (kept / "converted" / "text").read_text() == "1 of here\n"


def test_json_is_records(managers: Managers, sssjob: Command) -> None:
    managers.script("echo > ${JOB_ID-x}")
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--body", "keep", "--verify", "--json")
    *steps, record = [json.loads(line) for line in done.err.splitlines()]
    messages = [step["message"] for step in steps if step["type"] == "progress"]
    assert len(messages) == 4 and messages[0].endswith("/original && sbatch --parsable job.sh")
    assert (record["type"], record["equal"], record["kept"]) == ("verified", False, str(managers.kept()[0]))
    assert record["converted"] == {"manager": "sge", "site": None, "directory": f"{record['kept']}/converted",
                                   "native_id": "1", "state": "COMPLETED", "exit_code": 0}
    assert [one["subject"] for one in record["differences"]] == ["x", "1"]


def test_a_job_that_cannot_be_cancelled_is_told_also_with_q(managers: Managers, sssjob: Command) -> None:
    managers.script("sleep 60")
    managers.slurm.fault("scancel", exit=1, stderr="scancel: error: Access denied\n", times=-1)
    managers.sge.fault("qsub", exit=1, stderr="no\n")
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--verify", "-q")
    assert done.code == 5
    assert "sssjob: original (Slurm): job 1 could not be cancelled and may go on: " in done.err, done.err


def test_jobs_that_both_fail_are_equal_and_prove_little(managers: Managers, sssjob: Command) -> None:
    managers.script("echo > half; exit 9")
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--verify")
    assert done.code == 0 and "both failed, so nothing is proved" in done.err and managers.kept() == []


def test_a_job_may_remove_its_directory(managers: Managers, sssjob: Command) -> None:
    managers.script('rm -r "$PWD"')
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--verify")
    assert (done.code, managers.kept()) == (0, []), done.err


def test_what_cannot_be_read_or_removed_is_told(managers: Managers, sssjob: Command,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    managers.script("echo > f")
    monkeypatch.setattr("sssjob.run.verifying.shutil.rmtree", lambda path, ignore_errors: None)
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--verify")
    assert done.code == 0 and f"{managers.kept()[0]} could not be removed\n" in done.err
    monkeypatch.setattr("sssjob.run.leavings.Path.read_bytes", refuse)
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--verify", "-q")
    assert done.code == 3
    assert re.fullmatch("sssjob: f: what the jobs have left cannot be read: Permission denied; it is kept in "
                        rf"{managers.folder}/\.sssjob-verify-\w+\n", done.err)


def refuse(path: Path) -> bytes:
    """In place of reading a file: root may read all."""
    raise PermissionError(13, "Permission denied", path.name)


def test_a_time_limit_cancels_what_goes_on(managers: Managers, sssjob: Command) -> None:
    managers.script('[ -n "$JOB_ID" ] || sleep 60')
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--body", "keep", "--verify", "--verify-timeout",
                  "1.2")
    assert done.code == 6 and "not both jobs had ended after 1.2 s; what had not ended was cancelled" in done.err
    assert managers.slurm.calls("scancel") == [["1"]] and managers.sge.calls("qdel") == []
    assert len(managers.kept()) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_cancels_both(managers: Managers, sssjob: Command, number: signal.Signals, code: int) -> None:
    managers.script("sleep 60")

    def interrupt() -> None:
        """Send the signal once both jobs are there."""
        until = time.monotonic() + 30
        while time.monotonic() < until and not managers.sge.jobs():
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    sender = threading.Thread(target=interrupt)
    sender.start()
    done = sssjob("convert", "-f", "slurm", "-t", "sge", "job.sh", "--verify")
    sender.join()
    assert done.code == code, done.err
    assert managers.slurm.calls("scancel") == [["1"]] and managers.sge.calls("qdel") == [["1"]]


def test_out_and_a_directory_of_its_own(managers: Managers, sssjob: Command) -> None:
    """The script of a job is submitted from the directory that is named, under its own name."""
    script = managers.script('basename "$(dirname "$(dirname "$PWD")")" > place')
    (managers.folder / "shared").mkdir()
    done = sssjob("convert", "-t", "sge", script, "--out", "new", "--verify", "--verify-in", "shared")
    assert done.code == 0, done.err
    assert f"cd {managers.folder / 'shared'}/.sssjob-verify-" in done.err
    assert len(list((managers.folder / "new").iterdir())) == 1 and not list((managers.folder / "shared").iterdir())


@pytest.mark.parametrize(("arguments", "why"), [
    (["-t", "sss", "job.sh", "--verify"], "sss is no format of such scripts"),
    (["-t", "psij", "job.sh", "--verify"], "psij is no format of such scripts"),
    (["-t", "sge", "job.xml", "--verify"], "sss is no format of such scripts"),
    (["-f", "sacct", "-t", "apel", "job.sh", "--verify"], "sacct is no format of such scripts"),
    (["-t", "jsdl", "job.sh", "--verify"], "jsdl is no format of such scripts"),
    (["-t", "sge", ".", "--verify", "--out", "x"], "--verify is for one script"),
    (["-t", "sge", "job.sh", "--verify", "--diff"], "--verify and --diff exclude each other"),
    (["-t", "sge", "job.sh", "--verify", "--verify-in", "absent"], "there is no such directory"),
    (["-t", "sge", "job.sh", "--verify-in", "."], "--verify-in is for --verify"),
    (["-t", "sge", "job.sh", "--verify-timeout", "5"], "--verify-timeout is for --verify"),
    (["-t", "sge", "job.sh", "--verify", "--verify-timeout", "0"], "--verify-timeout"),
])
def test_refused_before_anything_runs(managers: Managers, sssjob: Command, arguments: list[str], why: str) -> None:
    managers.script("true")
    (managers.folder / "job.xml").write_text("<Job><Executable>/bin/true</Executable></Job>")
    done = sssjob("convert", *arguments)
    assert (done.code, done.out) == (2, "") and why in done.err
    assert managers.slurm.all_calls() == [] and managers.kept() == []


def test_a_manager_out_of_reach(managers: Managers, sssjob: Command) -> None:
    managers.script("true")
    done = sssjob("convert", "-t", "lsf", "job.sh", "--verify", "-q")
    assert (done.code, done.out, managers.slurm.all_calls()) == (3, "", [])
    assert done.err == ("sssjob: bkill: LSF cannot be reached from here, for this command of it is not in PATH; "
                        "--verify needs both managers\n")


def test_nothing_runs_where_the_conversion_is_refused(managers: Managers, sssjob: Command) -> None:
    managers.script("true").write_text(f"{HEAD}#SBATCH --qos=high\ntrue\n")
    done = sssjob("convert", "-t", "sge", "job.sh", "--verify", "--policy", "reject")
    assert (done.code, managers.slurm.all_calls(), managers.kept()) == (1, [], [])
    assert done.err.endswith("sssjob: --verify ran nothing, for the conversion was not as it should be\n")
