"""How long GPUs worked, as steps of Slurm tell it: both forms of sacct say the same, and what is not told is not 0."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest

from sssjob.document.model import Job
from sssjob.findings import Findings
from sssjob.translators import ReadContext
from sssjob.translators.registry import get

COLUMNS = "JobID|Start|End|ElapsedRaw|State|AllocTRES|TRESUsageInTot"


def jobs(data: bytes, source: str) -> list[Job]:
    translator = get(source)
    context = ReadContext(findings=Findings("-"), options={"machine": "m", "timezone": "UTC"})
    return list(translator.stream(BytesIO(data), context))      # type: ignore[attr-defined]


def worked(job: Job) -> list[str]:
    return [p.text for p in job.all("Extension") if p.get("name") == "GpuDuration"]


@pytest.mark.parametrize(("steps", "seconds"), [
    ([("batch", 1000, 30), ("0", 500, 180)], ["1200"]), ([("batch", 1000, 0)], ["0"]), ([("batch", 1000, None)], []),
    ([("batch", 3, 50)], ["2"]), ([("batch", 1000, None), ("0", 900, 7)], ["63"]), ([], [])])
def test_text_and_json(steps: list[tuple[str, int, int | None]], seconds: list[str]) -> None:
    """Per cent of the time of each step, of all its GPUs together; half a second counts as one."""
    text = [COLUMNS, "7|1795000000|1795001000|1000|COMPLETED|cpu=8,gres/gpu=2,node=1|"]
    document: dict[str, Any] = {
        "job_id": 7, "state": {"current": ["COMPLETED"]}, "nodes": "n1", "tres": {"allocated": [
            {"type": "cpu", "name": "", "count": 8}, {"type": "gres", "name": "gpu", "count": 2}]},
        "time": {"start": 1795000000, "end": 1795001000, "elapsed": 1000}, "steps": []}
    for name, elapsed, busy in steps:
        usage = "cpu=00:00:07,mem=1M" if busy is None else f"cpu=00:00:07,gres/gpumem=1M,gres/gpuutil={busy}"
        text.append(f"7.{name}|1795000000|1795001000|{elapsed}|COMPLETED|cpu=8|{usage}")
        measured = [] if busy is None else [{"type": "gres", "name": "gpuutil", "count": busy}]
        document["steps"].append({"step": {"name": name}, "time": {"elapsed": elapsed}, "tres": {
            "requested": {"total": [{"type": "gres", "name": "gpumem", "count": 9}, *measured]}}})
    for data, source in (("\n".join([*text, ""]), "sacct"), (json.dumps({"jobs": [document]}), "sacct-json")):
        assert [worked(job) for job in jobs(data.encode(), source)] == [seconds], source


@pytest.mark.parametrize(("usages", "seconds"), [
    (("gres/gpuutil=50", "gres/gpuutil=100"), ["1500"]), (("gres/gpuutil=50", "cpu=00:00:01"), [])])
def test_components_add_up(usages: tuple[str, str], seconds: list[str]) -> None:
    """The GPUs of a heterogeneous job are those of all components, so what one of them does not tell nobody knows."""
    text = [COLUMNS]
    for n, usage in enumerate(usages):
        text += [f"7+{n}|1795000000|1795001000|1000|COMPLETED|cpu=8,gres/gpu=1,node=1|",
                 f"7+{n}.batch|1795000000|1795001000|1000|COMPLETED|cpu=8|{usage}"]
    (job,) = jobs("\n".join([*text, ""]).encode(), "sacct")
    assert worked(job) == seconds


@pytest.mark.parametrize("usage", ["gres/gpuutil=x", "gres/gpuutil=-1", "gres/gpuutil=1e9", "vgres/gpuutil=7",
                                   "gres/gpuutil=9999999999", "gres/gpuutil="])
def test_texts_that_are_no_per_cent(usage: str) -> None:
    text = f"{COLUMNS}\n7|1795000000|1795001000|1000|COMPLETED|gres/gpu=1|\n7.0||||COMPLETED||{usage}\n"
    (job,) = jobs(text.encode(), "sacct")
    assert worked(job) == []
