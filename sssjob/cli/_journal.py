"""What the commands on the journal share: their options, and the client that they work with."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._findings import problem, show
from sssjob.cli._seconds import MORE_THAN_NONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sssjob.document.model import Document
    from sssjob.findings import Findings
    from sssjob.run.client import Client
    from sssjob.run.standing import JobOutcome, Running, Submission

__all__ = ["SILENT", "ended_badly", "expanded", "facts", "instant", "lines", "names", "on_journal", "opened",
           "patience", "stopped", "submitting", "tell_causes", "told"]

#: What is said when a resource manager does not answer.
SILENT: Final = "a resource manager does not answer, or not for all jobs; this is what was known before"
_MOST_RETRIES: Final = 1000
_REFUSED: Final = ("never-ran", "lost", "launch")


def on_journal(function: Callable[..., int]) -> Callable[..., int]:
    """Give a command ``--json`` and a client of the journal; its function gets the client and as_json first."""

    @click.option("--json", "as_json", is_flag=True, help="Results and findings as JSON.")
    @functools.wraps(function)
    def command(as_json: bool, **rest: Any) -> int:
        with opened() as client:
            return stopped(client, function(client, as_json, **rest))

    return command


def submitting(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--retries`` and ``--expand-arrays``: what all commands that submit documents have."""
    expand = click.option("--expand-arrays", is_flag=True,
                          help="Make every array a group of jobs, one for each of its elements.")
    retries = click.option("--retries", type=click.IntRange(0, _MOST_RETRIES), metavar="N",
                           help="Try a submission N more times that fails for a reason that may pass (default: 5).")
    return retries(expand(function))


def expanded(document: Document, findings: Findings) -> Document:
    """A document with its arrays as groups; what is lost is in the findings."""
    from sssjob.document.arrays import expand

    return expand(document, findings)


def stopped(client: Client, status: int) -> int:
    """The exit status of a command, which a signal may have cut short."""
    from sssjob.run.signals import STOPS

    return STOPS.get(client.stopped or "", status)


@contextmanager
def opened(progress: bool = False, retries: int | None = None) -> Iterator[Client]:
    """A client of the journal. progress: on a terminal, show how jobs go on. retries: as ``--retries`` says."""
    from sssjob.run.client import Client
    from sssjob.run.journal import open_journal
    from sssjob.run.progress import Progress

    with open_journal() as journal:
        client = Client(journal, progress=Progress(shown=None if progress else False))
        if retries is not None:
            client.retries = retries
        yield client


def patience(meaning: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """``--timeout``: how long to wait, and for what."""
    return click.option("--timeout", type=MORE_THAN_NONE, metavar="SECONDS", help=f"{meaning} (default: 20).")


def names(function: Callable[..., int]) -> Callable[..., int]:
    """``ID...``: the jobs that a command is about."""
    return click.argument("ids", metavar="ID...", nargs=-1, required=True)(function)


def told(client: Client, as_json: bool) -> int:
    """Print the findings; how many there were."""
    found = list(client.findings)
    for finding in found:
        show(finding, as_json=as_json)
    return len(found)


def lines(records: Sequence[dict[str, Any]]) -> str:
    """JSON Lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def instant(seconds: float) -> str:
    """A time as people read it, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def facts(job: Running) -> list[dict[str, Any]]:
    """What is known of a job, with source and age in seconds."""
    now = time.time()
    return [{"fact": name, "value": value, "source": source.kind, "by": source.name, "time": source.time,
             "age": round(max(now - source.time, 0.0), 1)} for name, value, source in job.sources()]


def tell_causes(jobs: Iterable[JobOutcome]) -> None:
    """Why jobs failed that ended with neither a code nor a signal, a line each."""
    for job in jobs:
        if job.word == "failed" and job.exit_code is None and job.signal is None:
            problem(f"{job.label}: {job.message or 'it is not known how it ended'}", status=job.code)


def ended_badly(submissions: Sequence[Submission], as_json: bool) -> int:
    """Exit status for jobs that a resource manager did not take: 5, or 4 where trying again may help; told."""
    worst = 0
    for submission in submissions:
        for job in submission.jobs:
            refused = next((s for s in job.seen if s.known.get("reason") in _REFUSED), None)
            if job.word == "failed" and refused is not None and refused.status is not None:
                code = 4 if refused.known.get("transient") else 5
                problem(f"{job.plan.label}: {refused.status.message}", as_json=as_json, status=code)
                worst = max(worst, code)
            elif job.word == "running" and job.asked and None in job.references:
                problem(f"{job.plan.label}: nobody knows yet whether it was submitted; `sssjob status` asks again",
                        as_json=as_json, status=4)
                worst = max(worst, 4)
    return worst
