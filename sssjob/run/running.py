"""``run``: a document from its plan to its results."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from datetime import timedelta
from pathlib import Path

import psij
from sssjob.document.model import Document
from sssjob.document.sweeps import expand
from sssjob.errors import UsageError
from sssjob.findings import Findings, Policy
from sssjob.run.caps import Caps
from sssjob.run.engine import Engine
from sssjob.run.journal import Entry
from sssjob.run.on_end import Hook, promise_all
from sssjob.run.outcomes import Outcome
from sssjob.run.plan import Plan, make_plan
from sssjob.run.progress import Progress
from sssjob.run.standing import Submission
from sssjob.run.submitting import RETRIES
from sssjob.run.unsaid import say

__all__ = ["executor_of", "run"]


def run(document: Document, executor: str = "local", *, findings: Findings | None = None,
        progress: Progress | None = None, timeout: float | timedelta | None = None, resume: bool = False,
        executor_config: psij.JobExecutorConfig | None = None, cwd: Path | None = None,
        policy: Policy = Policy.REJECT, planned: Callable[[Findings], bool] | None = None,
        enter: Callable[[Document, Plan], Entry | None] | None = None, scripts: Path | None = None,
        backend: psij.JobExecutor | None = None, retries: int = RETRIES,
        known: Callable[[str, bool], Sequence[str]] | None = None,
        beside: Callable[[Submission], Sequence[Submission]] | None = None, max_queued: int | None = None,
        caps: Caps | None = None, on_end: Sequence[Hook] = (), site: str | None = None) -> Outcome:
    """Run every job of a document, of a sweep all of its jobs, and write the results into it.

    timeout: seconds for all of it; then everything is cancelled and the exit code is 6. resume: jobs that are Completed
    with ExitCode 0 are not run again. cwd: what relative directories refer to. policy: the outermost default.
    planned: asked with the findings before anything starts, which nothing does where it says False. enter: writes what
    is to be run into a journal, if there is one. scripts: where scripts of the document go, else a temporary directory.
    backend: the executor itself, where there is one already. retries: further tries of a submission that failed for a
    reason that may pass. known: keys of the jobs in a journal that an id means, or a Name where its second argument
    says so; beside: the submissions of those that jobs depend on. max_queued: the most jobs that may be submitted and
    not have ended; None: as many as there are. caps: of executors. on_end: what is done for each job when it has ended.
    site: the name of the profile by which it is run, where there is no journal.
    Ctrl-C, SIGTERM and SIGHUP cancel everything and the document still gets its facts. With a rejecting finding
    nothing is started and the document gets no facts: exit code 1. Raises UsageError for an executor that is not
    known.
    """
    findings = Findings(document.path) if findings is None else findings
    if not findings.rejected:
        document = expand(document, findings)
    if findings.rejected:
        return Outcome(document, [], 1, "sssjob", findings)
    backend_ = executor_of(executor, executor_config) if backend is None else backend
    say(document, backend, cwd or Path.cwd())
    plan = make_plan(document, findings, executor=executor.lower(), cwd=cwd, policy=policy, resume=resume,
                     scripts=scripts, backend=backend_, known=known)
    try:
        if findings.rejected or not (planned is None or planned(findings)):
            return Outcome(document, [], 1, "sssjob", findings)
        entry = None if enter is None else enter(document, plan)
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        submission = Submission(document, lambda: backend_, entry, owned=True, cap=max_queued)
        submission.take_plan(plan)
        promise_all(submission.jobs, on_end)
        submission.begin(site)
        others = () if beside is None else beside(submission)
        engine = Engine([submission, *others], findings, progress or Progress(shown=False), seconds, retries=retries,
                        caps=caps)
        try:
            return engine.run()
        finally:
            for submission_ in (submission, *others):
                if submission_.entry is not None:
                    submission_.entry.release()
    finally:
        plan.close()


def executor_of(name: str, config: psij.JobExecutorConfig | None = None) -> psij.JobExecutor:
    """The executor of that name; where SSSJOB_MJF is set it provides Machine/Job Features. Raises UsageError."""
    config = copy(config or psij.JobExecutorConfig.DEFAULT)
    config.site_defaults = False        # the settings of sssjob have been filled in
    if "SSSJOB_MJF" in os.environ and config.surroundings is None:
        from sssjob.mjf.provider import from_environment

        config.surroundings = from_environment(os.environ)
    try:
        return psij.JobExecutor.get_instance(name, config=config)
    except ValueError as error:
        raise UsageError(str(error)) from error
