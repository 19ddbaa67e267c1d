"""What the commands on the journal share: their options, and the client that they work with."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._arguments import with_arguments
from sssjob.cli._files import read_bytes
from sssjob.cli._findings import problem, say, show
from sssjob.cli._options import Session, bounded
from sssjob.cli._seconds import MORE_THAN_NONE
from sssjob.cli._settings import following_site_option, settings_for
from sssjob.cli._together import together
from sssjob.document.lexical import utc
from sssjob.document.model import Document
from sssjob.errors import FormatError
from sssjob.findings import Findings, escape
from sssjob.translators.registry import get

if TYPE_CHECKING:

    from sssjob.conversion.settings import Settings
    from sssjob.run.client import Client
    from sssjob.run.on_end import Hook
    from sssjob.run.outcomes import JobOutcome
    from sssjob.run.standing import Running, Submission

#: What is said when a resource manager does not answer.
SILENT: Final = "a resource manager does not answer, or not for all jobs; this is what was known before"
_MOST_RETRIES: Final = 1000
_STILL: Final = 7               # exit status: in the journal, and still to be submitted
_CAUSED: Final = ("failed", "canceled", "skipped")
_PLAIN: Final = ("exit code", "signal")         # how messages begin that say what the exit status says
_STANDING: Final = ("Hold", "Suspended")        # states of a job that waits for somebody
_REFUSED: Final = ("never-ran", "lost", "launch")


def on_journal(function: Callable[..., int]) -> Callable[..., int]:
    """Give a command ``--json`` and a client of the journal; its function gets the client and as_json first. Where
    ``--site`` stands above, it says how executors work."""

    @click.option("--json", "as_json", is_flag=True, help="Results and findings as JSON.")
    @functools.wraps(function)
    def command(as_json: bool, site_name: str | None = None, **rest: Any) -> int:
        """Open the journal, run the function of the command, and give its exit status."""
        settings, site = settings_for(site_name)
        with opened(settings=settings) as client:
            client.site = site
            return stopped(client, function(client, as_json, **rest))

    return command


def submitting(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--retries``, ``--fail-fast``, ``--max-queued``, ``--expand-arrays`` and ``--on-end``: what all commands that
    submit documents have."""
    expand = click.option("--expand-arrays", is_flag=True,
                          help="Make every array a group of jobs, one for each of its elements.")
    retries = click.option("--retries", type=click.IntRange(0, _MOST_RETRIES), metavar="N",
                           help="Try a submission N more times that fails for a reason that may pass (default: 5).")
    fail_fast = click.option("--fail-fast", is_flag=True, help="Let the first job that fails for good end the rest of "
                             "its group, whatever OnFailure says.")
    return retries(fail_fast(capped(expand(on_end_option(function)))))


def capped(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--max-queued``: how many jobs of a submission may be in flight."""
    return click.option("--max-queued", type=click.IntRange(1), metavar="N",
                        help="Have at most N jobs of the document submitted and not ended at any time.")(function)


def on_end_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--on-end``: what is done for each job when it has ended."""
    return click.option("--on-end", metavar="COMMAND|URL", multiple=True,
                        help="Run this, or post the document there, once for each job that has ended (repeatable).")(
                            function)


def hooks(texts: Sequence[str]) -> list[Hook]:
    """What ``--on-end`` says. Raises UsageError."""
    from sssjob.run.on_end import hook_of

    return [hook_of(text) for text in texts]


def submitted(session: Session, name: str, executor: str, fail_fast: bool, expand_arrays: bool) -> Document:
    """The document of a file as it is to be submitted; what is lost where arrays are expanded is reported.

    executor: a script that may be of its manager is taken for one where nothing else tells the format, and a script
    that its manager and a relative of that would take.
    fail_fast: a failure ends the rest of its group, which the document says, so that every client keeps to it.
    expand_arrays: arrays become groups.
    """
    with bounded(name):
        data = read_bytes(name)
    session.preferred = functools.partial(_dialect_of, executor)
    try:
        document = session.read(name, data)
    except FormatError:
        format = _format_by(executor, session, name, data)
        if not format:
            raise
        document = session.read(name, data, source=format)
    return shaped(session, session.swept(document), name, fail_fast, expand_arrays)


def _dialect_of(executor: str) -> str:
    """The script format of an executor's manager; empty where it has none with directives."""
    from sssjob.run.native import native_of
    from sssjob.run.running import executor_of

    native = native_of(executor_of(executor))
    return native.dialect.name if native is not None and native.dialect.prefix else ""


def _format_by(executor: str, session: Session, name: str, data: bytes) -> str:
    """The script format of an executor's manager, which is reported, where a text may be one; else empty."""
    from sssjob.translators.recognise import as_script_of

    dialect = _dialect_of(executor)
    if not dialect or not (why := as_script_of(data, name, dialect)):
        return ""
    session.recognised(name, get(dialect), why)
    return dialect


def shaped(session: Session, document: Document, name: str, fail_fast: bool, expand_arrays: bool) -> Document:
    """A document as it is to be submitted. name: of its file; all others as of ``submitted``."""
    if not session.errors:              # they are told already
        with_arguments(document)
    if fail_fast:
        from sssjob.document.failures import with_fail_fast

        with_fail_fast(document)
    if expand_arrays:
        from sssjob.document.arrays import expand

        findings = Findings(name)
        document = expand(document, findings)
        session.report(findings)
    return document


def stopped(client: Client, status: int) -> int:
    """The exit status of a command, which a signal may have cut short."""
    from sssjob.run.signals import STOPS

    return STOPS.get(client.stopped or "", status)


@contextmanager
def opened(progress: bool = False, retries: int | None = None, max_queued: int | None = None,
           settings: Settings | None = None) -> Iterator[Client]:
    """A client of the journal. progress: on a terminal, show how jobs go on. retries, max_queued: as ``--retries`` and
    ``--max-queued`` say. settings: how executors work."""
    from sssjob.run.client import Client
    from sssjob.run.journal import open_journal
    from sssjob.run.progress import Progress

    with open_journal() as journal:
        client = Client(journal, progress=Progress(shown=None if progress else False), max_queued=max_queued,
                        settings=settings)
        if retries is not None:
            client.retries = retries
        yield client


def patience(meaning: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """``--timeout``: how long to wait, and for what."""
    return click.option("--timeout", type=MORE_THAN_NONE, metavar="SECONDS", help=f"{meaning} (default: 20).")


def names(function: Callable[..., int]) -> Callable[..., int]:
    """``ID...``: the jobs that a command is about."""
    return click.argument("ids", metavar="ID...", nargs=-1, required=True)(function)


def on_jobs(name: str, waits_for: str) -> Callable[[Callable[..., int]], click.Command]:
    """A command about jobs of the journal, with ``ID...``, ``--site``, ``--json`` and ``--timeout``. waits_for: what
    the time is for."""

    def command(function: Callable[..., int]) -> click.Command:
        """The command of a function that takes a client and the ids of jobs."""
        return click.command(name)(names(following_site_option(patience(waits_for)(on_journal(function)))))

    return command


def told(client: Client, as_json: bool) -> int:
    """Print the findings, those that are alike of several jobs as one but in JSON; how many there were."""
    findings = list(client.findings)
    for finding in findings if as_json else (first for first, _ in together(findings)):
        show(finding, as_json=as_json)
    return len(findings)


def heard(submissions: Iterable[Submission], answered: bool, as_json: bool) -> int:
    """The exit status of a command that asks how submissions stand: 4, with a message, where a manager does not answer,
    this client or the one that looks after the jobs."""
    from sssjob.run.silence import told as silence

    lost = [text for submission in submissions if not submission.owned and (text := silence(submission)) is not None]
    for text in lost:
        problem(f"{text}; this is what was known before", as_json=as_json, status=4)
    if not answered:
        problem(SILENT, as_json=as_json, status=4)
    return 4 if lost or not answered else 0


def lines(records: Sequence[dict[str, Any]]) -> str:
    """JSON Lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def instant(seconds: float) -> str:
    """A time as people read it, in UTC."""
    return utc(seconds, "%Y-%m-%d %H:%M:%S")


def facts(job: Running) -> list[dict[str, Any]]:
    """What is known of a job, with source and age in seconds."""
    from sssjob.run.evidence import fact_records

    return fact_records(job.sources(), time.time())


def tell_causes(jobs: Iterable[JobOutcome]) -> None:
    """Why jobs ended badly or never began, where that is more than their code or signal says, a line for each reason,
    which names the first job and says how many more there are."""
    reasons: dict[str, list[JobOutcome]] = {}
    for job in jobs:
        says_no_more = job.message.startswith(_PLAIN) or (not job.message and (job.exit_code or job.signal))
        if job.word in _CAUSED and not says_no_more:
            reasons.setdefault(job.message or "it is not known how it ended", []).append(job)
    for reason, alike in reasons.items():
        problem(f"{and_more([job.label for job in alike])}: {reason}", status=alike[0].code)


def tell_waiting(jobs: Iterable[Running]) -> None:
    """How jobs stand that are held or suspended, or of which it is known why they wait, a line for all that stand
    alike."""
    standing: dict[str, list[str]] = {}
    for job in jobs:
        job.refresh()
        row = job.row
        if not job.ended and (row.message or row.state in _STANDING):
            standing.setdefault(", ".join(filter(None, (row.state, row.message))), []).append(job.plan.label)
    for text, labels in standing.items():
        say(escape(f"{and_more(labels)}: {text}"))


def and_more(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def ended_badly(submissions: Sequence[Submission], as_json: bool, again: bool = False) -> int:
    """Exit status for jobs that a resource manager did not take, which is reported: 5, or 4 where trying again may
    help. 7 where none was refused, and some are in the journal and still to be submitted. again: they may have been
    submitted by an earlier client, so that nobody was asked about them now."""
    codes = set()
    refusals: dict[tuple[str, int], list[str]] = {}
    unsure: list[Running] = []
    for job in (job for submission in submissions for job in submission.jobs):
        refused = next((s for s in job.seen if s.known.get("reason") in _REFUSED), None)
        if job.word == "failed" and refused is not None and refused.status is not None:
            code = 4 if refused.known.get("transient") else 5
            refusals.setdefault((str(refused.status.message), code), []).append(job.plan.label)
        elif job.word == "running" and (job.asked or (again and job.of.owned)) and None in job.references:
            unsure.append(job)
    if unsure:
        codes.add(_STILL)
        they, are, was = ("it", "is", "was") if len(unsure) == 1 else ("they", "are", "were")
        problem(f"{and_more([job.plan.label for job in unsure])}: nobody knows yet whether {they} {was} submitted; "
                f"{they} {are} in the journal as {and_more([job.row.key for job in unsure])}, and the next client "
                f"asks again and goes on: do not submit {'it' if len(unsure) == 1 else 'them'} once more",
                as_json=as_json, status=_STILL)
    for (reason, code), labels in refusals.items():
        codes.add(code)
        problem(f"{and_more(labels)}: {reason}", as_json=as_json, status=code)
    codes |= {_STILL} if tell_held_back(submissions, as_json) else set()
    return max(codes - {_STILL}, default=max(codes, default=0))


def tell_held_back(submissions: Sequence[Submission], as_json: bool) -> bool:
    """Tell which jobs there is no room for, or nobody who answers, a line for each reason; whether that is because of
    a resource manager for any."""
    from sssjob.run.room import AWAY, FULL

    reasons: dict[str, list[Running]] = {}
    for job in (job for submission in submissions for job in submission.jobs):
        if job.word == "waiting" and job.held_for is not None:
            reasons.setdefault(job.held_for, []).append(job)
    for reason, jobs in reasons.items():
        many = f"{and_more([job.row.key for job in jobs])} {'is' if len(jobs) == 1 else 'are'}"
        away = reason.endswith(AWAY)
        problem(f"{many} held back: {reason}; submitted when {'it does' if away else 'there is room'}, by any client "
                "(`sssjob wait`)", as_json=as_json, status=_STILL if away or reason.startswith(FULL) else 0)
    return any(reason.startswith(FULL) or reason.endswith(AWAY) for reason in reasons)
