"""Settings that all batch executors have."""

from __future__ import annotations

import math
import os
from pathlib import Path

from psij.job_executor_config import JobExecutorConfig

_WORK_THERE = "~/.psij/work"
_NUMBERS = ("queue_polling_interval", "questions_a_minute", "initial_queue_polling_delay",
            "queue_polling_error_threshold", "command_timeout", "accounting_delay", "lost_after", "staging_bytes",
            "submit_commands")


def _stated(stated: float | None, variable: str, default: float) -> float:
    """A setting: as given, else as the environment says it. Raises ValueError for a variable that is no number above 0.
    """
    if stated is not None or not (text := os.environ.get(variable, "")):
        return default if stated is None else stated
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ValueError(f"{variable} has {text!r}, and not a number above 0")
    return number


def _check_number(name: str, value: object) -> None:
    """Raise TypeError for a setting that is no number, ValueError for one below 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}: {value!r}")
    if not value >= 0:
        raise ValueError(f"{name} must not be below 0: {value!r}")


class BatchSchedulerExecutorConfig(JobExecutorConfig):
    """Settings of batch executors; times in seconds.

    queue_polling_interval: longest pause between two status commands while all goes well (30, or what the environment
    variable SSSJOB_POLLING_INTERVAL says). questions_a_minute: how many questions about states and ends there may be in
    a minute while more than a few jobs are followed, unless a shorter interval asks for more (20, or what
    SSSJOB_QUESTIONS_A_MINUTE says). initial_queue_polling_delay:
    from a submission to the first one. queue_polling_error_threshold: failures in a row after which an outage is logged
    (states stay as they are). keep_files: leave scripts and outputs in the work directory; so does the environment
    variable PSIJ_BATCH_KEEP_FILES. submit_commands: how many of them sssjob has run at a time. command_timeout: limit
    of one command. accounting_delay: how long a job that has ended waits for its accounting record.
    lost_after: how long a job of which nothing is known counts as alive, and how
    long a submission without an answer is looked for. default_resources: a job that says nothing of nodes and processes
    asks for one process on one node where managers may refuse jobs without a node count (Slurm, PBS, Torque). ssh_host:
    where the resource manager is, as ssh(1) takes it, None for this machine; all paths of jobs are then paths there,
    and work_directory is ``~/.psij/work`` there unless it is stated. ssh_setup: a line of sh with which each command
    there begins, such as one that sets PATH. ssh_directory: of jobs that state none, and what relative ones refer to
    there, the home directory unless it is stated. Raises TypeError for numbers that are
    none, ValueError for those below 0.
    """

    def __init__(self, launcher_log_file: str | Path | None = None, work_directory: str | Path | None = None,
                 queue_polling_interval: float | None = None, initial_queue_polling_delay: float = 2,
                 queue_polling_error_threshold: int = 2, keep_files: bool = False, *, command_timeout: float = 60,
                 accounting_delay: float = 10, lost_after: float = 60,
                 questions_a_minute: float | None = None, submit_commands: int = 2, default_resources: bool = True,
                 ssh_host: str | None = None, ssh_setup: str | None = None, ssh_directory: str | None = None,
                 staging_bytes: int = 1 << 40) -> None:
        if ssh_host is not None and work_directory is None:
            work_directory = _WORK_THERE
        super().__init__(launcher_log_file, work_directory)
        self.ssh_host, self.ssh_setup, self.ssh_directory = ssh_host, ssh_setup, ssh_directory
        self.queue_polling_interval = _stated(queue_polling_interval, "SSSJOB_POLLING_INTERVAL", 30.0)
        self.questions_a_minute = _stated(questions_a_minute, "SSSJOB_QUESTIONS_A_MINUTE", 20.0)
        self.initial_queue_polling_delay = initial_queue_polling_delay
        self.queue_polling_error_threshold = queue_polling_error_threshold
        self.keep_files = keep_files or "PSIJ_BATCH_KEEP_FILES" in os.environ
        self.command_timeout = command_timeout
        self.accounting_delay = accounting_delay
        self.lost_after = lost_after
        self.submit_commands = submit_commands
        self.default_resources = default_resources
        self.staging_bytes = staging_bytes
        for name in _NUMBERS:
            _check_number(name, getattr(self, name))

    @classmethod
    def _from_config(cls, config: JobExecutorConfig | None) -> BatchSchedulerExecutorConfig:
        """The configuration itself, or one of this class with its settings."""
        if isinstance(config, BatchSchedulerExecutorConfig):
            return config
        config = cls._or_default(config)
        own_config = cls(launcher_log_file=config.launcher_log_file, work_directory=config.work_directory)
        own_config.surroundings, own_config.launcher, own_config.site_defaults = (config.surroundings, config.launcher,
                                                                                  config.site_defaults)
        return own_config
