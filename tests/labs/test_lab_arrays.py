"""Arrays on real clusters: every element once, no more at a time than allowed, whoever looks after them."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.labs.test_lab_dependencies import GATE, REAL
from tests.psij.test_batch_labs import enter_lab
from tests.run.support import Desk, after, desk_on, group, shell

pytestmark = pytest.mark.lab


@pytest.fixture(params=["slurm", "sge"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    enter_lab(request.param, monkeypatch)
    with desk_on(request.param, tmp_path, monkeypatch, **REAL) as made:
        yield made


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
    while (found := states()) != ["Running", "Idle", "Running"]:
        assert time.monotonic() < until, found
        time.sleep(0.5)
    assert desk.client().cancel([names[1]])[1]
    (desk.folder / "go").touch()
    assert desk.wait(*names) == {names[0]: ("failed", 2), names[1]: ("canceled", None), native: ("failed", 1)}
