"""What templates of psij-python's form may use, and how long the words of a job may be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from psij.exceptions import InvalidJobException
from psij.job import Job
from psij.job_spec import JobSpec

if TYPE_CHECKING:
    from psij.executors.batch._hooks import BatchHooks

__all__ = ["check_lengths", "script_context"]

_LONGEST_WORD = 128 * 1024 - 1      # bytes of an argument or a variable that Linux can hand to a program


def script_context(executor: BatchHooks, job: Job) -> dict[str, Any]:
    """``job``, ``env``, ``custom_attributes``, ``psij`` and, of a job with a time limit, ``formatted_job_duration``."""
    from psij.executors.batch.template_function_library import ALL

    spec = job.spec
    assert spec is not None
    context: dict[str, Any] = {
        "job": job,
        "env": [{"name": name, "value": value} for name, value in (spec.environment or {}).items()],
        "custom_attributes": _by_prefix(spec),
        "psij": {"lib": ALL, "launch_command": executor._launch_command(job), "debug": 0,
                 "script_dir": str(executor.work_directory), "us_file": "", "us_port": 0, "us_addrs": ""}}
    if spec.attributes is not None and spec.attributes.duration is not None:
        context["formatted_job_duration"] = executor._format_duration(spec.attributes.duration)
    return context


def _by_prefix(spec: JobSpec) -> dict[str, Any]:
    """Custom attributes as templates see them: prefix to ``{key, value}`` pairs; a name without a dot to its value."""
    found: dict[str, Any] = {}
    custom = spec.attributes.custom_attributes if spec.attributes is not None else None
    for name, value in (custom or {}).items():
        prefix, dot, key = name.partition(".")
        if dot:
            found.setdefault(prefix.lower(), []).append({"key": key, "value": value})
        else:
            found[name] = value
    return found


def check_lengths(spec: JobSpec) -> None:
    """Refuse words that the system could not hand to the program. Raises InvalidJobException naming the member."""
    named = [("executable", spec.executable or ""),
             *((f"arguments[{index}]", text) for index, text in enumerate(spec.arguments or ())),
             *((f"environment[{name!r}]", f"{name}={value}") for name, value in (spec.environment or {}).items())]
    for field, text in named:
        if len(text) > _LONGEST_WORD // 4 and len(os.fsencode(text)) > _LONGEST_WORD:
            raise InvalidJobException(f"{field} has more than {_LONGEST_WORD} bytes, which no program can be given")
