"""``sssjob quote`` of rates that go by the time of day, where nothing says when a job starts."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Command

RATES = Path(__file__).parents[2] / "examples" / "rates.toml"


def test_a_job_without_a_start_is_quoted_as_if_it_started_now(sssjob: Command, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -n 2 -t 10\nhostname\n")
    answer = sssjob("quote", "--rates", RATES, script)
    assert answer.code == 0 and answer.out == "job-1: 0.01 EUR\n"
    assert "SSS503 info the rates go by the time of day; quoted as if the job started now" in answer.err
