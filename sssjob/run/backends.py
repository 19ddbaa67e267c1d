"""Executors that are used by way of a journal: which of them need a process of ours, and what they leave behind."""

from __future__ import annotations

from copy import copy
from pathlib import Path

import psij
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from psij.executors.local import LocalJobExecutor
from sssjob.run.journal import Entry
from sssjob.run.running import executor_of

__all__ = ["KEPT", "LOCAL", "lasting_executor", "shared_key"]

LOCAL = "local"
KEPT = (LOCAL, "fluxexec")      # executors in a process of ours, which has to stay


def lasting_executor(name: str, config: psij.JobExecutorConfig | None, folder: Path) -> psij.JobExecutor:
    """An executor that leaves what tells how a job ended until that is in the journal.

    folder: of the submission, in the journal. Raises UsageError for a name that is not known.
    """
    executor = executor_of(name, copy(config))
    if isinstance(executor, LocalJobExecutor):
        executor.records = folder / "records"
    elif isinstance(executor, BatchSchedulerExecutor) and not executor.config.keep_files:
        executor.config.keep_files = True
        executor.files_removable = True
    return executor


def shared_key(entry: Entry) -> str:
    """Names the executor of a submission: submissions to a resource manager share one, and so its status commands."""
    return f"{entry.executor}@{entry.number}" if entry.executor in KEPT else entry.executor
