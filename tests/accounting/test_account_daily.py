"""``account`` of daily dumps, which tell of a run each day while it runs, and once more when it has ended."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sssjob.accounting.unended import Unended
from sssjob.cli import main
from sssjob.document.element import new_property
from sssjob.document.endings import Ended
from sssjob.document.model import Job
from tests.accounting.test_histories import BEGIN, Run, clusters
from tests.strategies import examples

HEADER = "JobID|Cluster|Account|User|Start|End|ElapsedRaw|State|AllocTRES|ExitCode"
RATES = 'name = "r"\nversion = "1"\nattempts = "{}"\nrate = [{{ type = "VBR", name = "Processors", rate = 1 }}]\n'


def day(runs: list[Run], since: int, now: int) -> str:
    """What ``sacct -S`` prints at a time: the runs that ended since the last time, and those that still run."""
    rows = [HEADER]
    for run in runs:
        if run.start > now or run.end <= since:
            continue
        over = run.end <= now
        state = ("PREEMPTED" if run.requeued else "COMPLETED") if over else "RUNNING"
        rows.append("|".join((str(run.ident), "colony", "chem", "ann", str(BEGIN + run.start), str(
            BEGIN + run.end) if over else "Unknown", str(min(run.end, now) - run.start), state,
            f"cpu={run.cpus},node=1", "0:0")))
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("more", [(), ("--rates", "{}/rates.toml"), ("--privacy", "{}/private.toml"),
                                  ("--spread", "--every", "hour")])
@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(runs=clusters(), data=st.data())
def test_each_run_counts_once(capsys: pytest.CaptureFixture[str], more: tuple[str, ...], runs: list[Run],
                              data: st.DataObject) -> None:
    """Whichever order the dumps are read in, by columns and by lines: what ran is what ran, and a run that no dump sees
    end counts for as long as the last one says. Dumps overlap, and one is there twice."""
    runs = [run for run in runs if run.end > run.start]
    edges = [0, *sorted(data.draw(st.sets(st.integers(1, 130), min_size=1, max_size=5)))]
    last = edges[-1]
    seen = [run for run in runs if run.start <= last]
    attempts = data.draw(st.sampled_from(("all", "last"))) if "--rates" in more else "all"
    with TemporaryDirectory() as folder:
        Path(folder, "rates.toml").write_text(RATES.format(attempts))
        Path(folder, "private.toml").write_text("")
        names = []
        for since, now in pairwise(edges):
            Path(folder, f"{now}").write_text(day(runs, max(0, since - data.draw(st.integers(0, 60))), now))
            names.append(f"{folder}/{now}")
        Path(folder, "copy").write_text(Path(data.draw(st.sampled_from(names))).read_text())
        names.append(f"{folder}/copy")
        status = main(["account", "-f", "sacct", "--json", "-q", *(text.format(folder) for text in more),
                       *data.draw(st.permutations(names))])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    if not seen:
        return
    (whole,) = [line for line in lines if line["type"] == "whole"]
    used = sum((min(run.end, last) - run.start) * run.cpus for run in seen if min(run.end, last) > run.start)
    assert status == 0 and abs(whole["processor_h"] - used / 3600) < 0.001
    assert whole["jobs"] == len(seen)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest runs, between one and two times the number."""
    monkeypatch.setattr("sssjob.document.endings._REMEMBERED", 2)
    ended = Ended()
    keys = [("m", str(number), 1) for number in range(7)]
    assert [ended.first((key,)) for key in keys] == [[True]] * 7
    assert [key in ended for key in keys] == [False] * 4 + [True] * 3
    assert ended.first([keys[6], ("n", "6", 1), ("m", "6", 2), keys[6]]) == [False, True, True, False]


def test_a_run_that_runs_and_one_that_is_told_again_wait_or_go() -> None:
    unended = Unended(Ended())
    for state, taken in (("Completed", False), ("Running", True), ("Completed", True)):
        for number in range(2 if state == "Running" else 1):
            job = Job([new_property("Id", str(number)), new_property("State", state), new_property("StartTime", 5)])
            assert unended.takes(job, None) is taken
    assert [job.value("Id") for job, _ in unended.rest()] == ["1"] and unended.again == 2
