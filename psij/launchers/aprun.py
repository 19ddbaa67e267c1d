"""Launcher ``aprun``: processes started by Cray ALPS's ``aprun``."""

from __future__ import annotations

from pathlib import Path

from psij.job import Job
from psij.job_executor_config import JobExecutorConfig
from psij.launchers.script_based_launcher import ScriptBasedLauncher, process_count

__all__ = ["AprunLauncher"]


class AprunLauncher(ScriptBasedLauncher):
    """Launcher ``aprun``: processes started by Cray ALPS's ``aprun``."""

    def __init__(self, config: JobExecutorConfig | None = None) -> None:
        super().__init__(Path(__file__).resolve().parent / "aprun_launch.sh", config)

    def get_additional_args(self, job: Job) -> list[str]:
        """The total number of processes."""
        return [str(process_count(job))]
