"""A facility in front of a real Slurm: ``sssjob serve``, and programs of PSI/J that submit by the executor iri."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import psij
from psij.executors.iri import IRIExecutorConfig
from tests.psij.test_batch_labs import enter_lab

pytestmark = pytest.mark.lab


@pytest.fixture
def facility(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[psij.JobExecutor]:
    """The executor iri of a server whose jobs Slurm runs, and whose journal the test has too."""
    enter_lab("slurm", monkeypatch)
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    process = subprocess.run([sys.executable, "-m", "sssjob", "serve", "--new-token", "amy"], check=True,
                             capture_output=True, text=True)
    token, _, lines = process.stdout.partition("\n")
    for name, text in (("token", token), ("users.toml", lines)):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "sssjob", "serve", "--users", "users.toml", "--executor", "slurm", "--port", "0",
               "--follow", "1"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        config = IRIExecutorConfig(url=f"{url}/api/v2", resource="slurm", token_file=tmp_path / "token",
                                   polling_interval=0.5)
        try:
            yield psij.JobExecutor.get_instance("iri", config=config)
        finally:
            server.terminate()
            assert server.wait(30) == 0


def spec_of(tmp_path: Path, out: str, command: str, **attributes: str) -> psij.JobSpec:
    return psij.JobSpec(
        executable="/bin/sh", arguments=["-c", command], directory=tmp_path, stdout_path=tmp_path / out,
        environment={"GREETING": "hello from 'there'"}, inherit_environment=False,
        resources=psij.ResourceSpecV1(node_count=2, processes_per_node=1, exclusive_node_use=False),
        attributes=psij.JobAttributes(duration=timedelta(minutes=2), queue_name="batch",
                                      custom_attributes={f"slurm.{name}": text for name, text in attributes.items()}))


def test_jobs_of_a_facility_over_slurm(facility: psij.JobExecutor, tmp_path: Path) -> None:
    """What the description says reaches Slurm: nodes, partition, environment, its own options; ends come back with
    their exit codes, and a job that was canceled is gone there."""
    good = psij.Job(spec_of(tmp_path, "out", 'echo "$GREETING $SLURM_JOB_NUM_NODES $SLURM_JOB_PARTITION"; '
                                             "squeue -h -j $SLURM_JOB_ID -o %k", comment="over the wire"))
    bad, endless = (psij.Job(spec_of(tmp_path, "/dev/null", command)) for command in ("exit 3", "exec sleep 300"))
    for job in (good, bad, endless):
        facility.submit(job)
    for job, expected in ((good, (psij.JobState.COMPLETED, 0)), (bad, (psij.JobState.FAILED, 3))):
        status = job.wait(timeout=timedelta(seconds=90))
        assert status is not None and (status.state, status.exit_code) == expected, status
    endless.cancel()
    status = endless.wait(timeout=timedelta(seconds=90))
    assert status is not None and status.state is psij.JobState.CANCELED, status
    assert (tmp_path / "out").read_text() == "hello from 'there' 2 batch\nover the wire\n"
    queued = subprocess.run(["squeue", "-h", "-o", "%Z"], capture_output=True, text=True, check=True, timeout=30)
    assert str(tmp_path) not in queued.stdout
