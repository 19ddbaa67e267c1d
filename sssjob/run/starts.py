"""When a document would start, by the resource manager's own estimate for a submission that is not made."""

from __future__ import annotations

import subprocess
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psij
from psij import InvalidJobException
from psij.executors.batch._command import OutputLimitError
from psij.executors.batch._host import HERE
from sssjob.document.sweeps import expand
from sssjob.findings import Findings, Policy, escape
from sssjob.lrm.slurm_nodes import TEST_ONLY, start_shown
from sssjob.run.configuring import complete, config_of
from sssjob.run.plan import make_plan
from sssjob.run.rehearsal import rehearse
from sssjob.run.running import executor_of
from sssjob.run.unsaid import say

if TYPE_CHECKING:
    from sssjob.conversion.settings import Settings
    from sssjob.document.model import Document
    from sssjob.run.rehearsal import Rehearsed

__all__ = ["NoEstimateError", "estimated_start"]

_SUBMIT: Final = "sbatch"
#: Submissions of a document that are asked about one by one; of further ones nobody is asked.
_MOST: Final = 8
#: A command that is given a text on its standard input; sh has the text in place of its own name.
_GIVEN: Final = 'printf %s "$0" | "$@"'


class NoEstimateError(Exception):
    """The manager would refuse the submission, or does not say when it would start; the message says why."""


def estimated_start(document: Document, settings: Settings, policy: Policy | None, seconds: float) -> float | None:
    """When the last of the submissions of a document would start, in seconds since the epoch; None where the manager
    gives no estimates (all but Slurm). The document is completed by the settings, as that of a run. seconds: how long
    each answer may take.

    Raises NoEstimateError.
    """
    executor = str(settings.get("executor").value)
    if executor.lower() != "slurm":
        return None
    findings, backend = Findings(document.path), executor_of(executor, config_of(executor, settings.stated(executor)))
    document = expand(document, findings)
    complete(document, executor, settings, findings)
    say(document, backend, Path.cwd())
    plan = make_plan(document, findings, executor=executor.lower(), policy=policy or Policy.REJECT, backend=backend)
    try:
        if findings.rejected:
            reason = next(finding.message for finding in findings if finding.rejects)
            raise NoEstimateError(f"it would be refused: {escape(reason)}")
        submissions = list(rehearse(plan, backend))
        if len(submissions) > _MOST:
            raise NoEstimateError(f"it is of {len(submissions)} submissions, more than {_MOST}")
        return max((_start(submission, backend, seconds) for submission in submissions), default=None)
    except InvalidJobException as error:
        raise NoEstimateError(escape(str(error))) from None
    finally:
        plan.close()


def _start(submission: Rehearsed, backend: psij.JobExecutor, seconds: float) -> float:
    """When one submission would start. backend: the executor of it; seconds: how long the answer may take."""
    host = getattr(backend, "host", HERE)
    command = submission.rendered.command
    path, script = next(iter(submission.rendered.files.items()), ("", ""))
    if not command or command[0].rpartition("/")[2] != _SUBMIT or command[-1] != path:
        raise NoEstimateError("the submission is no script that sbatch could be asked about")
    words = (command[0], *TEST_ONLY[1:], *(word for word in command[1:-1] if word != "--parsable"))
    try:
        result = host.run(("/bin/sh", "-c", _GIVEN, script, *words), seconds, look=False)
    except (subprocess.TimeoutExpired, OutputLimitError, OSError) as error:
        raise NoEstimateError(f"{_SUBMIT}: {escape(str(error))}") from None
    start = start_shown(f"{result.stdout}\n{result.stderr}")
    if start is None:
        lines = [line for line in result.output.splitlines() if line.strip()]
        raise NoEstimateError(escape("; ".join(lines[-2:]), 300) or f"{_SUBMIT} ended with {result.exit_code}")
    return datetime.fromisoformat(start).timestamp()
