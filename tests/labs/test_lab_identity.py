"""Native ids that mean several jobs, on real managers: two clusters with one home, and counters that are set back."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.labs.test_lab_faults import controller
from tests.psij.test_batch_labs import LABS, enter_lab
from tests.run.support import Desk, after, desk_on, group, shell

pytestmark = pytest.mark.lab
REAL = {"real": True, "queue_polling_interval": 2, "initial_queue_polling_delay": 0.5, "accounting_delay": 10,
        "lost_after": 30}
HERE = Path(__file__).parent
STRANGER_S = 600
SUBMIT = {"slurm": ["sbatch", "--parsable", "--job-name=stranger", "--output=/dev/null", f"--wrap=sleep {STRANGER_S}"],
          "sge": ["qsub", "-terse", "-N", "stranger", "-o", "/dev/null", "-j", "y", "-b", "y", "sleep",
                  str(STRANGER_S)]}
CANCEL = {"slurm": "scancel", "sge": "qdel"}


def said(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def lives(name: str, native_id: str) -> bool:
    """Whether the stranger still runs or waits."""
    if name == "slurm":
        return said("squeue", "-h", "-j", native_id, "-o", "%T").strip() in ("RUNNING", "PENDING")
    return subprocess.run(["qstat", "-j", native_id], check=False, capture_output=True).returncode == 0


def ended_controller(name: str) -> None:
    pid = controller(name)
    os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + 60
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < until, f"the controller of {name} does not end"
        time.sleep(0.1)


def set_back(name: str, number: int) -> None:
    """Have the manager forget its queue, and give this number to the next job."""
    lab = Path(os.environ[LABS[name]])
    ended_controller(name)
    if name == "slurm":
        for path in (lab / "ctld").iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        conf = lab / "etc" / "slurm.conf"
        conf.write_text(re.sub(r"^FirstJobId=.*", f"FirstJobId={number}", conf.read_text(), flags=re.MULTILINE))
    else:
        (lab / "spool/qmaster/jobseqnum").write_text(f"{number}\n")
    subprocess.run([HERE / f"{name}-up", lab], check=True, timeout=200, stdout=subprocess.DEVNULL)


@pytest.fixture(params=["slurm", "sge"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """On a lab whose counter may be set back: a Slurm of its own, which the other tests do not see."""
    enter_lab(request.param, monkeypatch)
    with ExitStack() as labs:
        if request.param == "slurm":
            enter(labs.enter_context(a_slurm("lab")), monkeypatch)
        yield labs.enter_context(desk_on(request.param, tmp_path, monkeypatch, **REAL))


@contextmanager
def a_slurm(name: str) -> Iterator[Path]:
    """A Slurm of that name; its folder, whose path has to be short."""
    folder = Path(tempfile.mkdtemp(prefix="sssjob"))
    own = {key: value for key, value in os.environ.items() if key != "SLURM_CONF"}
    try:
        subprocess.run([HERE / "slurm-up", folder], check=True, timeout=200, stdout=subprocess.DEVNULL,
                       env={**own, "SLURM_LAB_NAME": name, "SLURM_LAB_NODES": "1"})
        yield folder
    finally:
        subprocess.run([HERE / "slurm-down", "--wipe", folder], check=True, timeout=100, stdout=subprocess.DEVNULL)


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LABS["slurm"], str(folder))
    enter_lab("slurm", monkeypatch)


def ran(desk: Desk) -> str:
    """The native id of a job of two seconds that has ended, of which the journal knows no end yet."""
    desk.submit(shell("sleep 2; exit 3", name="a"))
    native_id = desk.job("a").row.native_id
    assert native_id is not None
    until = time.monotonic() + 60
    while lives(desk.executor, native_id):
        assert time.monotonic() < until
        time.sleep(0.2)
    time.sleep(1)       # accounting writes the record meanwhile
    desk.close()
    return native_id


def test_the_id_of_an_ended_job_is_another_jobs(desk: Desk) -> None:
    """The counter is set back to our id, and somebody's job has it: it runs on when ours is cancelled, and the document
    has our own end and times."""
    native_id = ran(desk)
    set_back(desk.executor, int(native_id) if desk.executor == "slurm" else int(native_id) - 1)
    other = said(*SUBMIT[desk.executor]).strip()
    try:
        assert other == native_id
        client = desk.client()
        jobs, done = client.cancel(["a"], 60)
        assert done and (jobs[0].row.outcome, jobs[0].row.exit_code) == ("failed", 3)
        assert lives(desk.executor, other)
        assert float(str(jobs[0].plan.job.value("EndTime"))) - float(str(jobs[0].plan.job.value("StartTime"))) < 60
        assert {finding.rule for finding in client.findings} == {"SSS622"}
    finally:
        subprocess.run([CANCEL[desk.executor], other], check=False, capture_output=True)


def test_dependencies_know_the_end_of_a_job_whose_id_is_another_jobs(desk: Desk) -> None:
    """Our job has ended, of which only accounting knows, and somebody's job runs under its id: ours is not running for
    ever, what depends on it does not wait for that one, and what is left out has none of its times."""
    native_id = ran(desk)
    set_back(desk.executor, int(native_id) if desk.executor == "slurm" else int(native_id) - 1)
    other = said(*SUBMIT[desk.executor]).strip()
    try:
        assert other == native_id
        desk.submit(group(shell("sleep 1", after("a", "OnFailure"), name="b"), shell("true", after("a"), name="c")))
        assert desk.wait("a", "b", "c") == {"a": ("failed", 3), "b": ("done", 0), "c": ("skipped", None)}
        assert lives(desk.executor, other)
        times = [desk.job(name).plan.job.value("StartTime") for name in "abc"]
        assert times[2] is None and float(str(times[0])) < float(str(times[1]))
        assert desk.job("a").plan.job.value("StartCount") == 1 and desk.job("c").row.native_id is None
    finally:
        subprocess.run([CANCEL[desk.executor], other], check=False, capture_output=True)


@pytest.mark.parametrize("name", ["other", "lab"])
def test_two_clusters_with_one_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Two Slurms, of different names and of one, count from 1: neither takes the other's results, cancels its jobs or
    submits for it."""
    enter_lab("slurm", monkeypatch)
    with a_slurm("lab") as one, a_slurm(name) as two:
        enter(one, monkeypatch)
        with desk_on("slurm", tmp_path, monkeypatch, **REAL) as desk:
            desk.submit(shell("sleep 40; exit 4", name="a"))
            desk.close()
            enter(two, monkeypatch)
            stranger = said(*SUBMIT["slurm"]).strip()
            assert stranger == desk.job("a").row.native_id
            client = desk.client()
            _, done = client.wait(["a"], 5)
            assert not done and list(client.whereabouts.elsewhere) == [1]
            jobs, done = desk.client().cancel(["a"], 3)
            assert not done and jobs[0].row.outcome is None and lives("slurm", stranger)
            desk.close()
            enter(one, monkeypatch)
            assert desk.wait("a")["a"][0] == "canceled"
