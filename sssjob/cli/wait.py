"""``sssjob wait``: follow jobs to their ends."""

from __future__ import annotations

import click

from sssjob.cli._files import emit
from sssjob.cli._findings import problem, record
from sssjob.cli._journal import (
    capped,
    hooks,
    lines,
    names,
    on_end_option,
    opened,
    tell_causes,
    tell_held_back,
    tell_waiting,
    told,
)
from sssjob.cli._seconds import SECONDS
from sssjob.cli._settings import following_site_option, settings_for

__all__ = ["command"]


@click.command("wait")
@names
@click.option("--timeout", type=SECONDS, metavar="SECONDS",
              help="Exit status 6 after so many seconds; the jobs go on.")
@click.option("--no-job-code", is_flag=True, help="Exit status 0 once the jobs have ended, however they ended.")
@capped
@on_end_option
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@following_site_option
@click.option("--json", "as_json", is_flag=True, help="A record a job, and whose the exit status is.")
def command(ids: tuple[str, ...], timeout: float | None, no_job_code: bool, max_queued: int | None, quiet: bool,
            as_json: bool, site_name: str | None, on_end: tuple[str, ...]) -> int:
    """Wait until all of these jobs have ended; what waits for them in their documents is started meanwhile.

    The exit status is the job's own (128 + n for signal n); of several, that of the first failure that no other job
    answered. Ctrl-C ends the waiting, not the jobs; USR1 releases jobs that are held by the user.
    """
    from sssjob.run.outcomes import exit_code
    from sssjob.run.signals import STOPS

    end_hooks = hooks(on_end)
    with opened(progress=not (quiet or as_json), max_queued=max_queued, settings=settings_for(site_name)[0]) as client:
        jobs, done = client.wait(ids, timeout, end_hooks)
        told(client, as_json)
        if as_json:
            emit(lines([job.row.record() | (job.outcome.record() if job.outcome else {}) for job in jobs]))
        if not as_json:
            tell_causes(job.outcome for job in jobs if job.outcome is not None)
        elsewhere = client.whereabouts.elsewhere
        if done:
            code, origin = exit_code(jobs)
        elif elsewhere and client.stopped is None and all(job.ended or job.row.submission in elsewhere for job in jobs):
            code, origin = 4, "sssjob"
        else:
            code, origin = STOPS.get(client.stopped or "", 6), "sssjob"
            tell_held_back(list({id(job.of): job.of for job in jobs}.values()), as_json)
            problem(f"{client.stopped or 'timeout'}: {sum(not job.ended for job in jobs)} of {len(jobs)} jobs have not "
                    "ended; they go on", as_json=as_json, status=code)
            tell_waiting(() if as_json else jobs)
    if as_json:
        record({"kind": "result", "origin": origin, "exit_code": code})
    return 0 if no_job_code and done else code
