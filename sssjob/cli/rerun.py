"""``sssjob rerun``: run jobs again."""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING

from sssjob.cli._files import emit
from sssjob.cli._findings import problem, show
from sssjob.cli._journal import ended_badly, hooks, lines, on_end_option, on_jobs
from sssjob.cli._wishes import asked
from sssjob.errors import UsageError
from sssjob.findings import Findings, escape

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.journal import Journal
    from sssjob.run.on_end import Hook
    from sssjob.run.rows import Row

__all__ = ["command"]


@on_jobs("rerun", "The longest to wait until running jobs are back in the queue")
@on_end_option
def command(client: Client, as_json: bool, ids: tuple[str, ...], timeout: float | None, on_end: tuple[str, ...]) -> int:
    """Run these jobs again.

    A job that runs is put back into the queue by its resource manager, under its native id, as a further attempt. A
    job that has ended is submitted anew, as its document described it and with the same executor: a submission of its
    own, whose ids are printed, one a line; what was promised for the end of all of these jobs (`--on-end`) is done
    for the new ones too, and so is what is asked for here. Exit status 5: refused; 4: a resource manager could not be
    asked or did not take a job, and trying again may help; 7: some of what was submitted anew is still to be
    submitted, as of `submit`.
    """
    end_hooks = hooks(on_end)
    rows = list({row.key: row for name in ids for row in client.journal.find(name)}.values())
    going = [row.key for row in rows if row.outcome is None]
    if going and end_hooks:
        raise UsageError(f"--on-end is for jobs that have ended and are submitted anew: {', '.join(going)} has not; "
                         "`sssjob wait --on-end` is for a job that goes on")
    status = asked(client, as_json, "rerun", going, timeout) if going else 0
    ended = _as_first_submitted(client.journal, [row for row in rows if row.outcome is not None])
    return max(status, _anew(client, as_json, ended, end_hooks)) if ended else status


def _as_first_submitted(journal: Journal, rows: list[Row]) -> list[Row]:
    """Jobs of a document of which some were run again already, in its first submission, which has all that they
    depend on."""
    first: dict[tuple[str, str], dict[str, Row]] = {}
    for number in sorted({row.submission for row in rows}):
        first.setdefault(journal.origin_of(number), {row.label: row for row in journal.rows_of(number)})
    return list({row.key: row for each in rows
                 for row in (first[journal.origin_of(each.submission)].get(each.label, each),)}.values())


def _anew(client: Client, as_json: bool, rows: list[Row], on_end: list[Hook]) -> int:
    """Submit jobs that have ended; the exit status."""
    status = 0
    names: dict[str, str] = {}          # of a document that has parts: what names it from now on
    for number in dict.fromkeys(row.submission for row in rows):
        client.findings = Findings()
        document, part = client.journal.document_of(number)
        part_of = names.setdefault(document, token_hex(8)) if part else None
        try:
            submissions = client.again(number, [row.job for row in rows if row.submission == number], on_end, part_of)
        except UsageError as error:
            problem(escape(str(error)), as_json=as_json, status=5)
            status = 5
            continue
        for finding in client.findings.moved(f"@{number}"):
            if finding.severity != "info":      # those were told at the first submission
                show(finding, as_json=as_json)
        if client.findings.rejected:
            return 5
        for submission in submissions:
            assert submission.entry is not None
            new = client.journal.rows_of(submission.entry.number)
            emit(lines([row.record() for row in new]) if as_json
                 else "".join(f"{client.journal.name_of(row)}\n" for row in new))
        status = max(status, ended_badly(submissions, as_json))
    return status
