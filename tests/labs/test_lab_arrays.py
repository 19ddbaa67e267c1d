"""Arrays on real clusters: every element once, no more at a time than allowed, whoever looks after them."""

from __future__ import annotations

import calendar
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.document.arrays import Array
from sssjob.run.standing import Running
from tests.labs.test_lab_dependencies import GATE, REAL
from tests.psij.test_batch_labs import enter_lab
from tests.run.support import Desk, after, desk_on, group, shell

pytestmark = pytest.mark.lab


@pytest.fixture(params=["slurm", "sge"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    enter_lab(request.param, monkeypatch)
    with desk_on(request.param, tmp_path, monkeypatch, **REAL) as desk:
        yield desk


def array(text: str) -> str:
    return f"<Extension type='Scheduler' name='Array'>{text}</Extension>"


def test_elements(desk: Desk) -> None:
    outcome = desk.run(group(shell("echo $SLURM_ARRAY_TASK_ID $SGE_TASK_ID >> ran", array("2-6:2")),
                             shell("wc -l < ran > n", after("a"), name="b")))
    assert outcome.exit_code == 0
    assert sorted(desk.text("ran").splitlines()) == ["2 2", "4 4", "6 6"] and desk.text("n").strip() == "3"
    job = next(job for job, _ in outcome.document.jobs() if job.value("Id") == "a")
    elements = [p.text.split() for p in job.all("Extension") if p.get("name") == "ArrayElement"]
    assert [words[:2] for words in elements] == [["2", "Completed"], ["4", "Completed"], ["6", "Completed"]]


def test_a_killed_client_leaves_the_limit_to_the_next(desk: Desk) -> None:
    desk.killed(lambda: desk.submit(shell(f"echo x >> ran; {GATE}", array("1-3%1"))))
    until = time.monotonic() + 30
    while not desk.text("ran"):
        assert time.monotonic() < until
        time.sleep(0.2)
    desk.client().wait(["a"], 3)
    assert desk.text("ran") == "x\n"
    (desk.folder / "go").touch()
    assert set(desk.wait("a").values()) == {("done", 0)} and desk.text("ran") == "x\n" * 3


def records(desk: Desk, native: str) -> dict[str, tuple[int, int]]:
    """Exit code and start of the elements of an array by their native ids, as accounting has them."""
    if desk.executor == "slurm":
        said = subprocess.run(["env", "SLURM_TIME_FORMAT=%s", "sacct", "-X", "-n", "-P", "-j", native, "-o",
                               "JobID,ExitCode,Start"], capture_output=True, text=True, check=True).stdout
        rows = [line.split("|") for line in said.splitlines()]
        return {one: (int(code.partition(":")[0]), int(start) if start.isdecimal() else 0) for one, code, start in rows}
    said = subprocess.run(["env", "TZ=UTC0", "qacct", "-j", native], capture_output=True, text=True, check=True).stdout
    records = {}
    for text in said.split("=" * 62)[1:]:
        row = {name: value.strip() for name, _, value in (line.partition(" ") for line in text.splitlines())}
        start = calendar.timegm(time.strptime(row["start_time"], "%a %b %d %H:%M:%S %Y"))
        records[f"{row['jobnumber']}.{row['taskid']}"] = int(row["exit_status"]), start
    return records


@pytest.mark.parametrize("text", ["1-1000", "1-100", "0-375:25,380-399%4"])
def test_one_command_for_many_elements(desk: Desk, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are cancelled, the client is killed, and what the document says is what accounting says."""
    if (desk.executor, text) == ("sge", "1-1000") and os.environ.get("SSSJOB_SOAK") != "1":
        pytest.skip("Grid Engine takes three minutes for a thousand elements: SSSJOB_SOAK=1")
    indices = Array.of(text).indices
    run_submit = BatchSchedulerExecutor._run_submit

    def counted(self: BatchSchedulerExecutor, command: list[str]) -> str:
        with open(desk.folder / "commands", "a", encoding="ascii") as file:
            file.write(f"{command[0]}\n")
        return run_submit(self, command)

    monkeypatch.setattr(BatchSchedulerExecutor, "_run_submit", counted)
    desk.killed(lambda: desk.submit(shell("echo $SLURM_ARRAY_TASK_ID >> ran; exit $((SLURM_ARRAY_TASK_ID % 7 == 3))",
                                          array(text))))
    assert len(desk.text("commands").splitlines()) == 1
    gone = [f"a_{n}" for n in indices[-3:]]
    desk.client().cancel(gone, 60)
    ends = desk.wait("a", seconds=900)
    assert len(ends) == len(indices) and {ends[name][0] for name in gone} <= {"canceled", "done", "failed"}
    ran = {int(n) for n in desk.text("ran").split()}
    jobs = dict(zip(indices, standing(desk), strict=True))
    for n in indices:
        word, code = ends[f"a_{n}"]
        assert word == "canceled" or (word, code) == (("failed", 1) if n % 7 == 3 else ("done", 0)), (n, word, code)
        assert n in ran or word == "canceled"
    stated = {str(job.row.native_id): (ends[f"a_{n}"][1], int(str(job.plan.job.value("StartTime"))))
              for n, job in jobs.items() if ends[f"a_{n}"][0] != "canceled"}
    array_id = str(jobs[indices[0]].row.native_id).replace("_", ".").partition(".")[0]
    patience = time.monotonic() + 90
    while not stated.keys() <= (recorded := records(desk, array_id)).keys() and time.monotonic() < patience:
        time.sleep(1)       # the controller hands records of many ends to accounting one by one
    assert {native: recorded.get(native) for native in stated} == stated
    assert not list((desk.folder / "work").glob("*/*.job"))


def standing(desk: Desk) -> list[Running]:
    """All jobs of the first submission, as the journal knows them."""
    client = desk.client()
    return client.standing(client.journal.entry(1)).jobs


def test_elements_are_held_and_wait_as_jobs_do(desk: Desk) -> None:
    """A held element leaves its place to the next, of an array that the manager limits; others wait for one element."""
    desk.submit(group(shell(f"{GATE}; echo $SLURM_ARRAY_TASK_ID >> ran", array("1-3%1")),
                      shell("true", after("a", "OnExit"), name="b")))
    client = desk.client()
    client.ask("hold", ["a_2"], 30)
    assert desk.job("a_2").answers == {"hold": ""}
    (desk.folder / "go").touch()
    assert desk.wait("a_3") == {"a_3": ("done", 0)} and desk.text("ran") == "1\n3\n"
    client.ask("release", ["a_2"], 30)
    assert desk.wait("a_2", "b") == {"a_2": ("done", 0), "b": ("done", 0)}


def test_one_element_is_released_run_again_and_waited_for(desk: Desk) -> None:
    """The commands of the managers mean one element where they are given its id."""
    held = "<Hold>User</Hold><Restartable>true</Restartable>"
    desk.submit(group(shell(f"echo $SLURM_ARRAY_TASK_ID >> ran; {GATE}", array("1-3"), held),
                      shell("cp ran after", after("a"), name="b")))
    client = desk.client()
    client.ask("release", ["a_2"], 30)
    until = time.monotonic() + 60
    while desk.text("ran") != "2\n" or not desk.job("a_2").started:
        assert time.monotonic() < until, desk.text("ran")
        client.look([client.journal.entry(1)])
        time.sleep(0.5)
    client.ask("rerun", ["a_2"], 30)
    assert desk.job("a_2").answers == {"release": "", "rerun": ""}
    while desk.text("ran") != "2\n2\n":
        assert time.monotonic() < until + 120, desk.text("ran")
        time.sleep(0.5)
    assert [desk.job(f"a_{n}").row.state for n in (1, 3)] == ["Hold", "Hold"]
    (desk.folder / "go").touch()
    client.ask("release", ["a_1", "a_3"], 30)
    assert set(desk.wait("a", "b").values()) == {("done", 0)}
    assert sorted(desk.text("after").split()) == ["1", "2", "2", "3"]
    assert len([words for words in desk.job("a_2").plan.job.all("Extension") if words.get("name") == "Attempt"]) == 2


#: How a native array of four is submitted, two at a time; the task that waits for no gate ends with its number.
NATIVE = {
    "slurm": (["sbatch", "--parsable", "--array=1-4%2", "--output=/dev/null"], "$SLURM_ARRAY_TASK_ID", "{}_{}"),
    "sge": (["qsub", "-terse", "-S", "/bin/bash", "-t", "1-4", "-tc", "2", "-cwd", "-o", "/dev/null", "-j", "y"],
            "$SGE_TASK_ID", "{}.{}")}


def test_native_arrays_of_others(desk: Desk) -> None:
    """An element that runs, one that waits and the whole are followed; cancelling an element ends that one only."""
    command, index, form = NATIVE[desk.executor]
    (desk.folder / "native.sh").write_text(f"#!/bin/bash\ncd '{desk.folder}'\n{GATE}\nexit {index}\n")
    said = subprocess.run([*command, "native.sh"], cwd=desk.folder, capture_output=True, text=True, check=True).stdout
    native = re.split(r"[.;\s]", said)[0]
    names = [form.format(native, n) for n in (2, 4)] + [native]

    def states() -> list[str | None]:
        desk.client().look([desk.client().journal.entry(n) for n in (1, 2, 3)])
        return [desk.job(name).row.state for name in names]

    for name in names:
        desk.client().attach(desk.executor, name)
    until = time.monotonic() + 30
    while (states_of_jobs := states()) != ["Running", "Idle", "Running"]:
        assert time.monotonic() < until, states_of_jobs
        time.sleep(0.5)
    assert desk.client().cancel([names[1]])[1]
    (desk.folder / "go").touch()
    assert desk.wait(*names) == {names[0]: ("failed", 2), names[1]: ("canceled", None), native: ("failed", 1)}
