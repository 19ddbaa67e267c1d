"""Files that a job names by its id: the native one where it has no other, which only the job itself knows.

Two jobs of one script wrote the same file, the second over the first.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from tests.run.support import desk_on

_SLURM = "<Extension type='Scheduler' name='Dialect'>slurm</Extension>"


def _job(script: str, *more: str) -> str:
    return (f"<Job><Name>n</Name>{''.join(more)}<Executable>/bin/sh</Executable>"
            f"<Arguments>-c '{escape(script)}'</Arguments><Environment export='true'/></Job>")


def _files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("o-*")}


@pytest.mark.parametrize("executor", ["slurm", "sge"])
def test_each_job_of_a_script_has_a_file_of_its_own(executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                    ) -> None:
    """A script of Slurm that names one file for its output gets its errors there too, as Slurm has it."""
    text = _job("echo out; echo err >&2", _SLURM, "<OutputFile>o-{name}-{jobid}.log</OutputFile>")
    with desk_on(executor, tmp_path, monkeypatch) as desk:
        ids = [str(next(desk.run(text).document.jobs())[0].id) for _ in range(2)]
    assert len(set(ids)) == 2
    assert _files(tmp_path) == {f"o-n-{native_id}.log": "out\nerr\n" for native_id in ids}
    assert not list(tmp_path.glob("*.err"))


def test_an_id_that_is_stated_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk_on("slurm", tmp_path, monkeypatch) as desk:
        desk.run(_job("echo out; echo err >&2", "<Id>mine</Id><OutputFile>o-{jobid}</OutputFile>"))
    assert _files(tmp_path) == {"o-mine": "out\n"}


_ARRAY = ("<Extension type='Scheduler' name='Array'>3-5:2</Extension>",
          "<OutputFile>o-{array_jobid}-{index:2}</OutputFile>")


@pytest.mark.parametrize("executor", ["slurm", "sge"])
def test_elements_name_their_array(executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk_on(executor, tmp_path, monkeypatch) as desk:
        array_id = next(desk.run(_job("echo $SLURM_ARRAY_JOB_ID", *_ARRAY)).document.jobs())[0].id
    assert str(array_id).isdigit()
    assert _files(tmp_path) == {f"o-{array_id}-0{index}": f"{array_id}\n" for index in (3, 5)}


def test_elements_that_go_out_one_by_one_name_it_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their native ids have nothing in common."""
    monkeypatch.setattr(BatchSchedulerExecutor, "arrays", lambda *_: [])
    with desk_on("slurm", tmp_path, monkeypatch) as desk:
        desk.run(_job("echo $SLURM_ARRAY_JOB_ID", *_ARRAY))
    assert _files(tmp_path) == {f"o-n-0{index}": "n\n" for index in (3, 5)}
