"""PSI/J: one interface to submit, watch and cancel jobs wherever they run.

The public names are those of psij-python, so that code written for it runs unchanged. Importing this package starts no
thread, opens no file and runs no plugin: executors and launchers are looked up when one is asked for by name. The
serializers and what is for asyncio are loaded when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from psij.exceptions import (
    InvalidJobException,
    InvalidStateException,
    JobException,
    QueueFullException,
    SubmitException,
)
from psij.job import FunctionJobStatusCallback, Job, JobStatusCallback
from psij.job_attributes import JobAttributes
from psij.job_executor import JobExecutor
from psij.job_executor_config import JobExecutorConfig
from psij.job_launcher import Launcher
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpec, ResourceSpecV1
from psij.staging import URI, StageIn, StageOut, StageOutFlags, StagingMode
from psij.version import __version__

if TYPE_CHECKING:
    from psij.async_job import AsyncFunctionJobStatusCallback, AsyncJob, AsyncJobStatusCallback
    from psij.async_job_executor import AsyncJobExecutor
    from psij.serialize import JSONSerializer, Serializer

__all__ = [
    "URI",
    "AsyncFunctionJobStatusCallback",
    "AsyncJob",
    "AsyncJobExecutor",
    "AsyncJobStatusCallback",
    "FunctionJobStatusCallback",
    "InvalidJobException",
    "InvalidStateException",
    "JSONSerializer",
    "Job",
    "JobAttributes",
    "JobException",
    "JobExecutor",
    "JobExecutorConfig",
    "JobSpec",
    "JobState",
    "JobStatus",
    "JobStatusCallback",
    "Launcher",
    "QueueFullException",
    "ResourceSpec",
    "ResourceSpecV1",
    "Serializer",
    "StageIn",
    "StageOut",
    "StageOutFlags",
    "StagingMode",
    "SubmitException",
    "__version__",
]


#: Name -> module, of what is loaded when it is first used: JSON and asyncio cost more than all the rest.
_LATER = {"JSONSerializer": "serialize", "Serializer": "serialize", "AsyncFunctionJobStatusCallback": "async_job",
          "AsyncJob": "async_job", "AsyncJobStatusCallback": "async_job", "AsyncJobExecutor": "async_job_executor",
          "Descriptor": "descriptor", "VERSION": "version"}
#: Modules that ``import psij`` of psij-python loads, or its executors: programs name them without importing them.
_MODULES = ("descriptor", "executors", "launchers", "serialize", "utils")


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(f"psij.{_LATER[name]}"), name)
    if name in _MODULES:
        return import_module(f"psij.{name}")
    raise AttributeError(f"module 'psij' has no attribute {name!r}")
