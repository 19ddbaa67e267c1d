"""What a job held in all is one amount, at whichever door: charges, sums, tables and usage records multiply out what is
one of each node, add up what only task groups say, and take each group for the time that it says itself."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.conftest import Command


class Held(NamedTuple):
    """What stands in a job, and what that is: processors, their seconds, nodes, bytes of memory (None: not said)."""

    inner: str
    processors: int
    processor_seconds: int
    nodes: int | None
    memory: int | None


def _group(delivered: str) -> str:
    return f"<TaskGroup><Delivered>{delivered}</Delivered></TaskGroup>"


GB = 2**30
CASES = {
    "of each node": Held('<Delivered><Nodes>3</Nodes><Processors metric="PerNode">4</Processors>'
                         '<Memory metric="PerNode" units="GB">6</Memory></Delivered>', 12, 43200, 3, 18 * GB),
    "of each processor": Held('<Delivered><Processors>5</Processors><Memory metric="PerProcessor" units="GB">2</Memory>'
                              "</Delivered>", 5, 18000, None, 10 * GB),
    "of each GPU": Held('<Delivered><Processors>1</Processors><Resource name="GPU">4</Resource>'
                        '<Memory metric="PerGPU" units="GB">3</Memory></Delivered>', 1, 3600, None, 12 * GB),
    "task groups": Held(_group("<NodeCount>2</NodeCount><Processors>8</Processors>")
                        + _group("<NodeCount>1</NodeCount><Processors>2</Processors>"), 10, 36000, 3, None),
    "task groups, one ended early": Held(
        _group("<Processors>8</Processors>") + _group("<Processors>2</Processors><Duration>1800</Duration>"),
        10, 8 * 3600 + 2 * 1800, None, None),
    "task groups, of each node": Held(
        _group('<NodeCount>2</NodeCount><Processors metric="PerNode">8</Processors>')
        + _group("<NodeCount>1</NodeCount><Processors>2</Processors>"),
        18, 64800, 3, None),
    "the job's own beside groups": Held(
        "<Delivered><Processors>16</Processors></Delivered>" + _group("<Processors>8</Processors>"),
        16, 57600, None, None),
}
RATES = """name = "r"
version = "1"
precision = 3
rate = [{ type = "VBR", name = "Processors", rate = 1, per = "second" }]
"""


@pytest.fixture
def one_job(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    """A job that ran for an hour and says no Duration, in the file ``job.xml`` of the current folder."""
    held = CASES[request.param]
    monkeypatch.chdir(tmp_path)
    Path("rates.toml").write_text(RATES)
    Path("job.xml").write_text(
        "<Job><Id>1</Id><User>amy</User><Project>chem</Project><Machine>m</Machine><State>Completed</State><ExitCode>0</ExitCode>"
        f"<SubmitTime>1767607200</SubmitTime><StartTime>1767607200</StartTime><EndTime>1767610800</EndTime>{held.inner}"
        "</Job>")
    return held


ALL = pytest.mark.parametrize("one_job", CASES, indirect=True)


@ALL
def test_charge(sssjob: Command, one_job: Held) -> None:
    text = sssjob("charge", "-q", "--rates", "rates.toml", "job.xml").out
    assert f">{one_job.processor_seconds}.000</Charge>" in text


@ALL
def test_account(sssjob: Command, one_job: Held) -> None:
    row = json.loads(sssjob("account", "--json", "-q", "job.xml").out.splitlines()[0])
    assert row["processor_h"] * 3600 == pytest.approx(one_job.processor_seconds, abs=36)


@ALL
def test_table(sssjob: Command, one_job: Held) -> None:
    rows = list(csv.DictReader(StringIO(sssjob("convert", "-q", "-t", "csv", "job.xml").out)))
    if "TaskGroup" not in one_job.inner:
        row = rows[0]
        cells = [row[name] for name in ("processors", "nodes", "mem_total_bytes", "wall_s")]
        expected = (one_job.processors, one_job.nodes, one_job.memory, 3600)
        assert cells == ["" if value is None else str(value) for value in expected]
    elif "Processors>16<" not in one_job.inner:         # one of each component; the job's own is read as their sum
        assert sum(int(row["processors"]) for row in rows) == one_job.processors
        assert sum(int(row["processors"]) * int(row["wall_s"]) for row in rows) == one_job.processor_seconds


@ALL
@pytest.mark.parametrize("format", ["ur1", "car", "apel", "ur2"])
def test_usage_record(sssjob: Command, one_job: Held, format: str) -> None:
    options = [] if format == "ur1" else ["--option", "site=S"]
    text = sssjob("convert", "-q", "-t", format, *options, "job.xml").out
    if format == "ur2" and "TaskGroup" in one_job.inner:        # a block of each component
        if "Processors>16<" not in one_job.inner:
            assert sum(map(int, re.findall(r"<Processors>(\d+)<", text))) == one_job.processors
        return
    sign = ": " if format == "apel" else ">"
    assert re.findall(rf"\bProcessors{sign}(\d+)", text) == [str(one_job.processors)]
    assert re.findall(rf"\bNodeCount{sign}(\d+)", text) == ([] if one_job.nodes is None else [str(one_job.nodes)])
    assert re.findall(rf"\bWallDuration{sign}(?:PT)?(\d+)", text) == ["3600"]
    if one_job.memory is not None and format in ("ur1", "car"):
        assert f'storageUnit="GB">{one_job.memory // GB}<' in text


@ALL
def test_workload_format(sssjob: Command, one_job: Held) -> None:
    *_, line = sssjob("convert", "-q", "-t", "swf", "job.xml").out.split("\n; Note")[0].splitlines()
    fields = line.split()
    kib = "-1" if one_job.memory is None else f"{one_job.memory / 1024 / one_job.processors:g}"
    assert fields[3:5] == ["3600", str(one_job.processors)]
    assert float(fields[6]) == pytest.approx(float(kib), rel=1e-4)


@ALL
def test_invoice(sssjob: Command, one_job: Held) -> None:
    """A job that says no Duration ran from StartTime to EndTime on the invoice too."""
    sssjob("ledger", "charge", "-q", "--ledger", "l.db", "--rates", "rates.toml", "job.xml")
    text = sssjob("ledger", "invoice", "chem", "2026-01", "--ledger", "l.db", "--timezone", "UTC").out
    assert f"{one_job.processor_seconds / 3600:.2f}" in text


@pytest.mark.parametrize("format", ["ur1", "car", "apel", "ur2"])
def test_of_each_of_how_many_is_told(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
                                     ) -> None:
    """Four processors of each of nobody knows how many nodes are never written as four."""
    monkeypatch.chdir(tmp_path)
    Path("job.xml").write_text(
        '<Job><Id>1</Id><State>Completed</State><StartTime>1767607200</StartTime><EndTime>1767610800</EndTime><Delivered>'
        '<Processors metric="PerNode">4</Processors></Delivered></Job>')
    answer = sssjob("convert", "-t", format, *([] if format == "ur1" else ["--option", "site=S"]), "job.xml")
    assert "no place for Delivered/Processors" in answer.err
    assert "Processors>4" not in answer.out and "Processors: 4" not in answer.out


@pytest.mark.parametrize("state", ["Idle", "Deferred"])
def test_a_job_that_waits_holds_nothing(sssjob: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
                                        ) -> None:
    """Its bare amounts, those of task groups too, are what it asks for; sums and records took them for delivered."""
    monkeypatch.chdir(tmp_path)
    Path("job.xml").write_text(f"<Job><Id>1</Id><State>{state}</State><Executable>/bin/true</Executable><Duration>600"
                               "</Duration><NodeCount>2</NodeCount><TaskGroup><Processors>8</Processors></TaskGroup></Job>")
    row = json.loads(sssjob("convert", "-q", "-t", "jsonl", "job.xml").out)
    assert row == {"id": "1", "state": state, "requested_wall_s": 600, "requested_processors": 8, "requested_nodes": 2}
    code, out, errors = sssjob("account", "job.xml")
    assert (code, out) == (0, "") and "1 job left out: did not run" in errors
    fields = sssjob("convert", "-q", "-t", "swf", "--policy", "warn", "job.xml").out.splitlines()[-1].split()
    assert (fields[3:5], fields[7:9]) == (["-1", "-1"], ["8", "600"])
    record = sssjob("convert", "-q", "-t", "ur1", "--policy", "warn", "job.xml").out
    assert "WallDuration" not in record and "Processors" not in record and "NodeCount" not in record
