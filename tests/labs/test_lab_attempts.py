"""Jobs that are tried again on real clusters: native jobs of their own, one after the other, each counted."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.psij.test_batch_labs import enter_lab
from tests.run.support import Desk, after, desk_on, group, shell

pytestmark = pytest.mark.lab
REAL = {"real": True, "queue_polling_interval": 2, "initial_queue_polling_delay": 0.5, "accounting_delay": 10,
        "lost_after": 30}
STOPS_AT_3 = "echo $SSSJOB_ATTEMPT >> ran; test $SSSJOB_ATTEMPT = 3 || exit 75"


def retry(text: str) -> str:
    return f"<Extension type='Scheduler' name='Retry'>{text}</Extension>"


@pytest.fixture(params=["slurm", "sge"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    enter_lab(request.param, monkeypatch)
    with desk_on(request.param, tmp_path, monkeypatch, **REAL) as made:
        yield made


def attempts(desk: Desk, name: str) -> list[dict[str, str]]:
    """What a document says of each attempt of a job."""
    job = desk.job(name)
    job.refresh()
    texts = [p.text for p in job.plan.job.all("Extension") if p.get("name") == "Attempt"]
    return [dict(word.split("=", 1) for word in text.split(" ")) for text in texts]


def test_three_attempts_of_three_clients(desk: Desk) -> None:
    """Nobody watches while an attempt ends; who comes next begins another one, and the successor waits for the last."""
    desk.killed(lambda: desk.submit(group(shell(STOPS_AT_3, retry("exit(75)=5 failed")),
                                          shell("echo b >> ran", after("a"), name="b"))))
    until = time.monotonic() + 60
    while desk.text("ran") != "1\n":
        assert time.monotonic() < until
        time.sleep(0.2)
    assert desk.wait("g") == {"a": ("done", 0), "b": ("done", 0)}
    assert desk.text("ran").split() == ["1", "2", "3", "b"]
    numbers = attempts(desk, "a")
    assert [(one["exit"], one.get("retry")) for one in numbers] == [("75", "exit(75)"), ("75", "exit(75)"), ("0", None)]
    assert len({one["native"] for one in numbers}) == 3
    ends = [(int(one["start"]), int(one["end"])) for one in numbers]
    assert all(before[1] <= following[0] for before, following in itertools.pairwise(ends)), ends
    assert desk.job("a").plan.job.value("StartCount") == 3


def test_a_cancel_from_elsewhere_is_no_failure(desk: Desk) -> None:
    desk.submit(shell("echo x >> ran; exec sleep 60", retry("failed=3 exit=9")))
    until = time.monotonic() + 60
    while not desk.text("ran"):
        assert time.monotonic() < until
        time.sleep(0.2)
    native = desk.job("a").row.native_id
    assert native is not None
    subprocess.run(["scancel" if desk.executor == "slurm" else "qdel", native], check=True, capture_output=True)
    assert desk.wait("a")["a"][0] == "canceled"
    assert desk.text("ran") == "x\n"


def test_more_time_after_a_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grid Engine counts seconds, Slurm minutes: here the first attempt gets two of them, the second eight."""
    enter_lab("sge", monkeypatch)
    with desk_on("sge", tmp_path, monkeypatch, **REAL) as desk:
        desk.submit(shell("echo x >> ran; sleep 5", retry("timeout=2:Duration*4"),
                          "<Requested><Duration>2</Duration></Requested>"))
        assert desk.wait("a") == {"a": ("done", 0)}
        assert desk.text("ran") == "x\nx\n"
        assert [one.get("retry") for one in attempts(desk, "a")] == ["timeout", None]


def test_fail_fast_ends_what_runs_and_what_waits(desk: Desk) -> None:
    fail_fast = "<Extension type='Scheduler' name='OnFailure'>fail-fast</Extension>"
    outcome = desk.run(group(f"<JobDefaults>{fail_fast}</JobDefaults>", shell("exec sleep 100"),
                             shell("sleep 1; exit 3", name="b"), shell("echo no >> ran", after("a"), name="c")))
    assert {job.label: job.word for job in outcome.jobs} == {"a": "canceled", "b": "failed", "c": "skipped"}
    assert {job.message for job in outcome.jobs if job.label != "b"} == {"fail-fast: b failed"}
    assert (desk.text("ran"), outcome.exit_code) == ("", 3)


@pytest.mark.parametrize("desk", ["slurm"], indirect=True)
def test_a_heterogeneous_job_is_tried_again_as_a_whole(desk: Desk) -> None:
    """Its components fail together; the next attempt is another native job of all of them."""
    part = ("<TaskGroup><Executable>/bin/sh</Executable><Arguments>-c 'echo {0} >> ran; "
            "test $SSSJOB_ATTEMPT = 2 || exit 3'</Arguments><TaskCount>1</TaskCount></TaskGroup>")
    outcome = desk.run(f"<Job><Id>a</Id><Environment export='true'/>{retry('exit(3)=4')}"
                       f"{part.format('one')}{part.format('two')}</Job>")
    assert sorted(desk.text("ran").split()) == ["one", "one", "two", "two"]
    ((job, _),) = outcome.document.jobs()
    assert (outcome.exit_code, job.value("StartCount")) == (0, 2)
    assert [one.get("retry") for one in attempts(desk, "a")] == ["exit(3)", None] * 2
