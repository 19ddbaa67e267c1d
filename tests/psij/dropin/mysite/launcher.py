# ruff: noqa
# mypy: ignore-errors
from pathlib import Path
from typing import List, Optional

from psij import Job, JobExecutorConfig
from psij.launchers.script_based_launcher import ScriptBasedLauncher


class GreetingLauncher(ScriptBasedLauncher):
    def __init__(self, config: Optional[JobExecutorConfig] = None) -> None:
        super().__init__(Path(__file__).parent / "greeting_launch.sh", config)

    def get_additional_args(self, job: Job) -> List[str]:
        return ["good day"]

    def _files_to_deploy(self) -> List[Path]:
        return super()._files_to_deploy() + [Path(__file__).parent / "name.txt"]
