"""Settings of an executor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from psij.surroundings import Surroundings

__all__ = ["JobExecutorConfig"]


class JobExecutorConfig:
    """Settings that every executor has.

    launcher_log_file: where launcher scripts write a log, None for nowhere. work_directory: where psij keeps its own
    files (launcher scripts, node files); made when first needed. By default what the environment variable
    PSIJ_WORK_DIRECTORY says (``~/`` at its start is the home directory), else ``~/.psij/work``. surroundings: what
    makes the surroundings of jobs where they run (psij.surroundings), None for none. launcher: for who makes JobSpecs:
    what starts the tasks of jobs that name no launcher, None where nothing is preferred. site_defaults: whether the
    site's defaults are filled into jobs.
    """

    DEFAULT: ClassVar[JobExecutorConfig]
    DEFAULT_WORK_DIRECTORY: ClassVar[Path] = Path(os.path.expanduser("~/.psij/work"))

    def __init__(self, launcher_log_file: str | Path | None = None, work_directory: str | Path | None = None) -> None:
        self.surroundings: Surroundings | None = None
        self.launcher: str | None = None
        self.site_defaults = True
        self.launcher_log_file = launcher_log_file
        self.work_directory = self._default_work_directory() if work_directory is None else work_directory

    @staticmethod
    def _or_default(config: JobExecutorConfig | None) -> JobExecutorConfig:
        """The configuration, or the default one for None. Raises TypeError for anything else."""
        if not isinstance(config, JobExecutorConfig | None):
            raise TypeError(f"config must be a JobExecutorConfig, not {type(config).__name__}")
        return JobExecutorConfig.DEFAULT if config is None else config

    @classmethod
    def _default_work_directory(cls) -> Path:
        text = os.environ.get("PSIJ_WORK_DIRECTORY")
        if not text:
            return cls.DEFAULT_WORK_DIRECTORY
        path = os.path.expanduser(text)
        return Path(path if path.startswith("~/") else os.path.abspath(path))

    @property
    def launcher_log_file(self) -> Path | None:
        """Where launcher scripts write a log; text is taken too."""
        return self._launcher_log_file

    @launcher_log_file.setter
    def launcher_log_file(self, path: str | Path | None) -> None:
        """Have launchers write their log there; None: nowhere."""
        self._launcher_log_file = None if path is None else Path(path)

    @property
    def work_directory(self) -> Path:
        """Where psij keeps its own files; text is taken too. ``~`` at its start is the home directory, that of another
        host where jobs are there. Raises SubmitException where there is none."""
        if self._work_directory.parts[:1] != ("~",) or getattr(self, "ssh_host", None) is not None:
            return self._work_directory
        try:
            return self._work_directory.expanduser()
        except RuntimeError as e:
            from psij.exceptions import SubmitException

            raise SubmitException("there is no home directory for the files of psij: set PSIJ_WORK_DIRECTORY, or HOME",
                                  e) from e

    @work_directory.setter
    def work_directory(self, path: str | Path) -> None:
        """Have scripts and records there."""
        self._work_directory = Path(path)


JobExecutorConfig.DEFAULT = JobExecutorConfig()
