"""Dependencies, holds, accounts, QoS and reservations on real clusters."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.psij.test_batch_labs import enter_lab
from tests.run.support import Desk, after, desk_on, eventually, group, shell

pytestmark = pytest.mark.lab
REAL = {"real": True, "queue_polling_interval": 2, "initial_queue_polling_delay": 0.5, "accounting_delay": 10,
        "lost_after": 30}
#: How long a job waits for its gate, in seconds; then it ends with a code of its own, and no test waits for ever.
GATE_S, GATE_CODE = 120, 97
GATE = f"n=0; until test -e go; do test $((n += 1)) -le {GATE_S * 10} || exit {GATE_CODE}; sleep 0.1; done"


@pytest.fixture(params=["slurm", "sge"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    enter_lab(request.param, monkeypatch)
    with desk_on(request.param, tmp_path, monkeypatch, **REAL) as made:
        yield made


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    enter_lab("slurm", monkeypatch)
    with desk_on("slurm", tmp_path, monkeypatch, **REAL) as made:
        yield made


def said(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def test_every_condition_after_every_end(desk: Desk) -> None:
    """The same group as on the stand-ins: here the real manager decides what it was told to decide."""
    jobs = [shell("sleep 1", name="well"), shell("sleep 1; exit 3", name="badly"),
            shell("true", after("badly"), name="never")]
    expected = {"well": ("done", 0), "badly": ("failed", 3), "never": ("skipped", None)}
    may = {("well", "OnSuccess"), ("well", "OnExit"), ("badly", "OnFailure"), ("badly", "OnExit")}
    for other in ("well", "badly", "never"):
        for condition in ("OnSuccess", "OnFailure", "OnExit"):
            name = f"{other}-{condition}"
            jobs.append(shell(f"touch {name}", after(other, condition), name=name))
            expected[name] = ("done", 0) if (other, condition) in may else ("skipped", None)
    desk.submit(group(*jobs))
    assert desk.wait("g") == expected
    assert {p.name for p in desk.folder.glob("*-On*") if not p.suffix} == {f"{a}-{b}" for a, b in may}
    if desk.executor == "slurm":
        native = desk.job("never").row.native_id
        assert native is not None and "CANCELLED" in said("sacct", "-X", "-n", "-P", "-o", "State", "-j", native)
        assert desk.told("badly-OnFailure")["slurm.dependency"] == f"afternotok:{desk.job('badly').row.native_id}"


def test_it_goes_on_without_any_client(desk: Desk) -> None:
    """What the manager was told it does; the rest is started by the next client."""
    text = group(shell(f"{GATE}; echo a >> ran"), shell("echo b >> ran; exit 1", after("a"), name="b"),
                 shell("echo c >> ran", after("b", "OnFailure"), name="c"),
                 shell("echo x >> ran", after("a", "OnExit"), name="x"))
    desk.killed(lambda: desk.submit(text))
    (desk.folder / "go").touch()
    own = "b" if desk.executor == "slurm" else "x"
    until = time.monotonic() + 60
    while own not in desk.text("ran"):
        assert time.monotonic() < until
        time.sleep(0.2)
    assert {n: word for n, (word, _) in desk.wait("g").items()} == {
        "a": "done", "b": "failed", "c": "done", "x": "done"}
    assert sorted(desk.text("ran").split()) == ["a", "b", "c", "x"]


def test_a_dependency_that_is_never_satisfied(slurm: Desk) -> None:
    """Slurm would keep it for ever; here it is given no chance to."""
    slurm.submit(group(shell(f"{GATE}; exit 1"), shell("true", after("a"), name="b")))
    native = str(slurm.job("b").row.native_id)
    said("scontrol", "update", f"jobid={native}", "dependency=afterok:" + str(slurm.job("a").row.native_id))
    (slurm.folder / "go").touch()
    assert slurm.wait("g") == {"a": ("failed", 1), "b": ("skipped", None)}
    assert native not in said("squeue", "-h", "-o", "%i").split()
    assert str(slurm.job("b").plan.job.value("StatusMessage")) == "dependency: OnSuccess a does not hold"


def test_a_cancelled_job_has_failed(slurm: Desk) -> None:
    slurm.submit(group(shell("sleep 60"), shell("echo b > b", after("a", "OnFailure"), name="b")))
    said("scancel", str(slurm.job("a").row.native_id))
    assert slurm.wait("g") == {"a": ("canceled", None), "b": ("done", 0)}


def test_a_hold_of_the_user(desk: Desk) -> None:
    desk.submit(shell("exit 2", "<Hold>User</Hold>"))
    native = str(desk.job("a").row.native_id)
    if desk.executor == "slurm":
        assert said("squeue", "-h", "-o", "%r", "-j", native).strip() == "JobHeldUser"
    else:
        assert " hqw " in said("qstat", "-u", "*")
    assert not desk.client().wait(["a"], 2)[1]
    said(*(["scontrol", "release", native] if desk.executor == "slurm" else ["qrls", native]))
    assert desk.wait("a") == {"a": ("failed", 2)}


def test_holds_of_others_are_no_users_to_ask(desk: Desk) -> None:
    for hold in ("System", "Operator", "Batch"):
        assert desk.refused(shell("true", f"<Hold>{hold}</Hold>")) == [("SSS602", "Hold")]


def test_account_quality_and_reservation_reach_slurm(slurm: Desk) -> None:
    name = f"r{time.time_ns()}"
    said("scontrol", "create", "reservation", f"reservationname={name}", "starttime=now", "duration=5", "users=root",
         "nodes=node3")
    try:
        outcome = slurm.run(shell("scontrol -o show job $SLURM_JOB_ID > shown", f"<Reservation>{name}</Reservation>"
                                  "<Project>chem</Project><QualityOfService>high</QualityOfService><Queue>batch</Queue>"))
        assert [job.word for job in outcome.jobs] == ["done"]
        shown = dict(word.partition("=")[::2] for word in slurm.text("shown").split())
        assert [shown[field] for field in ("Account", "QOS", "Reservation", "Partition", "NodeList")] == [
            "chem", "high", name, "batch", "node3"]
    finally:
        said("scontrol", "delete", f"reservationname={name}")


def test_project_and_queue_reach_grid_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_lab("sge", monkeypatch)
    with desk_on("sge", tmp_path, monkeypatch, **REAL) as desk:
        outcome = desk.run(shell("true", "<Project>chem</Project><Queue>short.q</Queue>"))
        assert [job.word for job in outcome.jobs] == ["done"]
        record = dict(line.split(None, 1) for line in said("qacct", "-j", str(desk.job("a").row.native_id)).splitlines()
                      if len(line.split(None, 1)) == 2)
        assert (record["project"].strip(), record["qname"].strip()) == ("chem", "short.q")
        assert desk.refused(shell("true", "<QualityOfService>high</QualityOfService>")) == [
            ("SSS602", "QualityOfService")]


def test_both_streams_in_one_file(desk: Desk) -> None:
    outcome = desk.run(shell("echo out; echo err >&2", "<OutputFile>both</OutputFile>"
                             "<ErrorFile redirectList='Merge'/>"))
    assert outcome.exit_code == 0 and sorted(desk.text("both").split()) == ["err", "out"]
    assert not list(desk.folder.glob("job-*"))


def test_an_unknown_account_is_refused_for_good(slurm: Desk) -> None:
    submission = slurm.submit(shell("true", "<Project>nosuch</Project>"))
    (job,) = submission.jobs
    assert job.word == "failed" and "account" in str(job.outcome and job.outcome.message)
    assert len(slurm.events("a", "note")) == 0


def test_a_time_that_the_manager_waits_for(desk: Desk) -> None:
    """It starts without any client, and not before its time."""
    eligible = int(time.time()) + 12
    desk.killed(lambda: desk.submit(shell("date +%s > began", f"<EligibleTime>{eligible}</EligibleTime>")))
    native_id = desk.job("a").row.native_id
    assert native_id is not None and not desk.text("began")
    until = time.monotonic() + 90
    while not desk.text("began"):
        assert time.monotonic() < until
        time.sleep(0.5)
    assert int(desk.text("began")) >= eligible and desk.wait("a") == {"a": ("done", 0)}
    assert desk.job("a").row.native_id == native_id


def test_a_job_is_suspended_signalled_and_resumed(desk: Desk) -> None:
    """The manager stops the processes, and tells of it; the signal comes to the script itself, which runs its trap. Of
    Grid Engine the refusal is asked: it has no command for signals."""
    desk.submit(shell("trap \"echo got > got\" USR1; echo a > began; until test -e go; do sleep 0.1; done; exit 5"))

    def state() -> str:
        """The State of the job, asked anew."""
        return str(desk.client().wait(["a"], 2)[0][0].plan.job.value("State"))

    def asked(wish: str) -> str:
        """Why a wish was refused."""
        return desk.client().ask(wish, ["a"], 60)[0].answers[wish]

    eventually(lambda: (desk.folder / "began").exists() and state() == "Running", 90)
    assert asked("suspend") == ""
    eventually(lambda: state() == "Suspended", 90)
    assert asked("resume") == ""
    eventually(lambda: state() == "Running", 90)
    if desk.executor == "slurm":
        assert asked("signal USR1") == ""
        eventually(lambda: (desk.folder / "got").exists(), 90)
    else:
        assert asked("signal USR1").endswith("cannot be signalled: sge has no command for that")
    assert "cannot be resumed" in asked("resume")       # it is not suspended: in the manager's words
    (desk.folder / "go").touch()
    assert desk.wait("a") == {"a": ("failed", 5)}
