"""The interface of launchers: what starts the processes of a job once its resources are there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from psij.job import Job
from psij.job_executor_config import JobExecutorConfig

if TYPE_CHECKING:
    from psij.descriptor import Descriptor

__all__ = ["Launcher"]


class Launcher(ABC):
    """Makes the command line that starts a job's processes."""

    DEFAULT_LAUNCHER_NAME = "single"

    def __init__(self, config: JobExecutorConfig | None = None) -> None:
        self.config = JobExecutorConfig.DEFAULT if config is None else config

    @abstractmethod
    def get_launch_command(self, job: Job) -> list[str]:
        """The command, word by word, that starts the processes of the job and waits for them."""

    def is_launcher_failure(self, output: str) -> bool:
        """Whether what the launch command printed shows that starting failed, rather than the executable; False
        unless a launcher knows better."""
        return False

    def get_launcher_failure_message(self, output: str) -> str:
        """What to tell the user of a failed launch: the output."""
        return output

    @staticmethod
    def get_instance(name: str, version_constraint: str | None = None,
                     config: JobExecutorConfig | None = None) -> Launcher:
        """A new launcher of that name (in any case); see JobExecutor.get_instance for the constraint and errors."""
        from psij._plugins import LAUNCHERS

        cls, _ = LAUNCHERS.get(name, version_constraint, Launcher)
        launcher: Launcher = cls(config=config)
        return launcher

    @staticmethod
    def register_launcher(desc: Descriptor, root: str | Path) -> None:
        """Make a launcher known. root: the folder under which the module of its class lies."""
        from psij._plugins import LAUNCHERS

        LAUNCHERS.register(desc, Path(root))

    @staticmethod
    def get_launcher_names() -> set[str]:
        """Names of all launchers that can be asked for."""
        from psij._plugins import LAUNCHERS

        return LAUNCHERS.names()
