"""Resource managers that have fallen silent: who looks after the jobs writes it down, so that all others can tell."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sssjob.run.standing import Submission

__all__ = ["listen", "told"]


def listen(submissions: Iterable[Submission]) -> None:
    """Note, of the submissions that this process owns, where their resource manager falls silent or answers again."""
    for submission in submissions:
        if not submission.owned or submission.ended:
            continue
        hears = getattr(submission.executor(), "hears", None)
        answers, since = (True, None) if hears is None else hears()
        if since is not None and submission.silent is None:
            data = {"since": since, "host": socket.gethostname(), "pid": os.getpid()}
            submission.silent = data
            submission.note(submission.jobs[0], "silent", data)
        elif answers and submission.silent is not None:
            submission.silent = None
            submission.note(submission.jobs[0], "answers", {})


def told(submission: Submission) -> str | None:
    """Since when nothing was heard of the jobs of a submission, and who looks after them; None where it is heard of."""
    if submission.silent is None or submission.entry is None or submission.ended:
        return None
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(submission.silent["since"]))
    keeper = f"process {submission.silent['pid']} on {submission.silent['host']} looks after its jobs"
    return f"@{submission.entry.number}: {submission.entry.executor} has not answered since {since} UTC; {keeper}"
