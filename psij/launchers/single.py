"""Launcher ``single``: one copy of the executable."""

from __future__ import annotations

from pathlib import Path

from psij.job_executor_config import JobExecutorConfig
from psij.launchers.script_based_launcher import ScriptBasedLauncher, script_and_config

__all__ = ["SingleLauncher"]


class SingleLauncher(ScriptBasedLauncher):
    """Launcher ``single``: one copy of the executable. script_path: the script of a subclass, its own by default."""

    def __init__(self, script_path: Path | JobExecutorConfig | None = None,
                 config: JobExecutorConfig | None = None) -> None:
        super().__init__(*script_and_config(script_path, config, Path(__file__).resolve().parent / "single_launch.sh"))
