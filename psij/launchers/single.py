"""Launcher ``single``: one copy of the executable."""

from __future__ import annotations

from pathlib import Path

from psij.job_executor_config import JobExecutorConfig
from psij.launchers.script_based_launcher import ScriptBasedLauncher

__all__ = ["SingleLauncher"]


class SingleLauncher(ScriptBasedLauncher):
    """Launcher ``single``: one copy of the executable."""

    def __init__(self, config: JobExecutorConfig | None = None) -> None:
        super().__init__(Path(__file__).resolve().parent / "single_launch.sh", config)
