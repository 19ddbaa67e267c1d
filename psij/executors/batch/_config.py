"""Settings that all batch executors have."""

from __future__ import annotations

import os
from pathlib import Path

from psij.job_executor_config import JobExecutorConfig

__all__ = ["BatchSchedulerExecutorConfig"]


class BatchSchedulerExecutorConfig(JobExecutorConfig):
    """Settings of batch executors; times in seconds.

    queue_polling_interval: longest pause between two status commands while all goes well. initial_queue_polling_delay:
    from a submission to the first one. queue_polling_error_threshold: failures in a row after which an outage is logged
    (states stay as they are). keep_files: leave scripts and outputs in the work directory; so does the environment
    variable PSIJ_BATCH_KEEP_FILES. command_timeout: limit of one command. accounting_delay: how long a job that has
    ended waits for its accounting record. lost_after: how long a job of which nothing is known counts as alive, and how
    long a submission without an answer is looked for.
    """

    def __init__(self, launcher_log_file: str | Path | None = None, work_directory: str | Path | None = None,
                 queue_polling_interval: float = 30, initial_queue_polling_delay: float = 2,
                 queue_polling_error_threshold: int = 2, keep_files: bool = False, *, command_timeout: float = 60,
                 accounting_delay: float = 10, lost_after: float = 60) -> None:
        super().__init__(launcher_log_file, work_directory)
        self.queue_polling_interval = queue_polling_interval
        self.initial_queue_polling_delay = initial_queue_polling_delay
        self.queue_polling_error_threshold = queue_polling_error_threshold
        self.keep_files = keep_files or "PSIJ_BATCH_KEEP_FILES" in os.environ
        self.command_timeout = command_timeout
        self.accounting_delay = accounting_delay
        self.lost_after = lost_after

    @classmethod
    def _from_config(cls, config: JobExecutorConfig | None) -> BatchSchedulerExecutorConfig:
        """The configuration itself, or one of this class with its settings."""
        if isinstance(config, BatchSchedulerExecutorConfig):
            return config
        config = config or JobExecutorConfig.DEFAULT
        made = cls(launcher_log_file=config.launcher_log_file, work_directory=config.work_directory)
        made.surroundings = config.surroundings
        return made
