"""``sssjob list``: the jobs of the journal."""

from __future__ import annotations

import re
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from sssjob.cli._complete import executors, files
from sssjob.cli._files import emit
from sssjob.cli._findings import width
from sssjob.cli._journal import heard, lines, on_journal, patience, tell_held_back, told
from sssjob.cli._profiles import load_site
from sssjob.cli._tables import needed, table
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.lrm.clocks import UNITS, clock

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.listing import Filter, Listed
    from sssjob.run.standing import Submission

__all__ = ["TITLES", "choosing", "command", "job_cells", "list_text", "moment", "spell"]

TITLES: Final = ("id", "key", "native id", "name", "site", "executor", "queue", "state", "submitted", "time", "nodes",
                 "why")
_WHY: Final = 11
_ALWAYS: Final = (0, 1, 5, 7)   # columns that are there in any case
_BENEATH: Final = (_WHY, 10, 8, 6, 3, 4)    # columns that stand under their jobs where there is no room, in this order
_SHORTEST_WHY: Final = 24       # columns for why a job waits or how it ended, in which it can be read beside the others
_LONGEST_WHY: Final = 60        # characters of why a job waits or how it ended
_UNSEEN: Final = 10_000         # columns where standard output is no terminal: a line a job
_AGO: Final = re.compile(r"(\d{1,6})([smhdw])")
_WATCH_S: Final = 2.0


@click.command("list")
@click.option("--all", "ended", is_flag=True, help="List jobs that have ended, too.")
@click.option("--state", "states", multiple=True, metavar="STATE",
              help="Only those that are Idle, Hold, Running, Suspended, Completed, or done, failed, canceled, skipped, "
                   "kept; may repeat.")
@click.option("--executor", metavar="NAME", shell_complete=executors, help="Only those of this executor.")
@click.option("--site", "site_of", metavar="NAME", shell_complete=files,
              help="Only those submitted by this profile: the name of the site, or the file.")
@click.option("--name", metavar="PATTERN", help="Only those whose id or name fits, with * and ?.")
@click.option("--since", metavar="TIME",
              help="Only those submitted since 2026-11-22, 2026-11-22T10:00 (UTC), or 3d ago.")
@click.option("--group", metavar="ID", help="Only those of this group or array, or of this submission: @3.")
@click.option("--sort", metavar="COLUMN", default="key",
              help="By id, key, name, site, executor, state, queue, submitted, elapsed or nodes; -COLUMN: backwards.")
@click.option("--offline", is_flag=True, help="What the journal knows; no resource manager is asked.")
@click.option("--watch", is_flag=True, help="List again every two seconds, until Ctrl-C.")
@patience("The longest to wait for answers of the resource managers")
@on_journal
def command(client: Client, as_json: bool, ended: bool, states: tuple[str, ...], executor: str | None,
            site_of: str | None, name: str | None, since: str | None, group: str | None, sort: str, offline: bool,
            watch: bool, timeout: float | None) -> int:
    """List the jobs of the journal that have not ended, the oldest first.

    The resource managers are asked once. Exit status 4: one of them does not answer.
    """
    if offline and timeout is not None:
        raise UsageError("--offline waits for nobody: it goes without --timeout")
    if watch and as_json:
        raise UsageError("--watch is for people: it goes without --json")
    if executor is not None:
        _check_executor(client, executor)
    if group is not None:
        _check_group(client, group)
    site = None if site_of is None else _site_named(client, site_of)
    chosen = choosing(ended, states, executor, site, name, since, group, sort)
    status = _listed(client, as_json, chosen, offline, timeout)
    while watch:
        time.sleep(_WATCH_S)
        emit("\x1b[H\x1b[2J" if sys.stdout.isatty() else "\n")
        status = _listed(client, as_json, chosen, offline, timeout)
    return status


def choosing(ended: bool, states: tuple[str, ...], executor: str | None, site: str | None, name: str | None,
             since: str | None, group: str | None, sort: str) -> Filter:
    """The filter of these options. Raises UsageError."""
    from sssjob.run.listing import Filter

    chosen = Filter(ended, states, executor, site, name, None if since is None else moment(since), group, sort)
    chosen.question()           # what is wrong is told before anybody is asked
    return chosen


def _site_named(client: Client, name: str) -> str:
    """The site as the journal knows it, of its name or the file of its profile. Raises UsageError for one that nobody
    knows, AccessError, SiteError."""
    from sssjob.run.listing import submitted_to

    names = submitted_to(client.journal, "site")
    if name in names:
        return name
    try:
        site, _ = load_site(name)
    except UsageError as error:
        jobs = f"those with jobs: {escape(', '.join(names))}" if names else "no job was submitted by a profile"
        raise UsageError(f"{error}; {jobs}") from None
    assert site is not None
    return site.name


def _check_executor(client: Client, name: str) -> None:
    """Raises UsageError for an executor that is not there, and that the journal has no job of."""
    from sssjob.run.listing import submitted_to

    if name.lower() not in submitted_to(client.journal, "executor"):
        from psij import JobExecutor

        names = sorted(JobExecutor.get_executor_names())
        if name.lower() not in names:
            raise UsageError(f"there is no executor {escape(name)!r} (known: {', '.join(names)})")


def _check_group(client: Client, group: str) -> None:
    """Raises UsageError for a group, or a submission, that the journal does not have."""
    from sssjob.run.listing import knows_group

    if not knows_group(client.journal, group):
        kind = "submission" if group.startswith("@") else "group"
        raise UsageError(f"there is no {kind} {escape(group, 80)!r} in the journal")


def moment(text: str) -> float:
    """Seconds since the epoch of a date, a date with a time (UTC where no zone is named), or ``3d``: so long ago.

    Raises UsageError.
    """
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return time.time() - int(ago[1]) * UNITS[ago[2]]
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"{escape(text, 80)!r} is no time, as 2026-11-22, 2026-11-22T10:00 or 3d (ago)") from None


def _listed(client: Client, as_json: bool, chosen: Filter, offline: bool, timeout: float | None) -> int:
    from sssjob.run.listing import listed

    answered = True
    submissions: list[Submission] = []
    if not offline:
        numbers = client.journal.unclosed()
        submissions, answered = client.look([client.journal.entry(number) for number in numbers], timeout)
    told(client, as_json)
    jobs = listed(client.journal, chosen)
    now = time.time()
    if as_json:
        emit(lines([job.record(now) for job in jobs]))
    elif jobs:
        emit(list_text(jobs, now))
    tell_held_back(submissions, as_json)
    return heard(submissions, answered, as_json)


def list_text(jobs: list[Listed], now: float) -> str:
    """The table, without columns in which nothing stands, and its totals. now: seconds since the epoch."""
    from sssjob.run.listing import totals

    rows = [job_cells(job, now) for job in jobs]
    used = [n for n, _ in enumerate(TITLES) if n in _ALWAYS or any(row[n] for row in rows)]
    room = width(sys.stdout, _UNSEEN)
    beneath = _without_room(rows, used, room)
    beside = [n for n in used if n not in beneath]
    under = [", ".join(row[n] if n == _WHY else f"{TITLES[n]} {row[n]}" for n in beneath if row[n]) for row in rows]
    shown = table([[row[n] for n in beside] for row in rows], [TITLES[n] for n in beside], room, beneath=under)
    return "\n".join([*shown, totals(jobs), ""])


def _without_room(rows: list[list[str]], used: list[int], room: int) -> list[int]:
    """The columns of used for which a terminal of that width has no room beside the others, in their order."""
    widths = dict(zip(used, needed([[row[n] for n in used] for row in rows], [TITLES[n] for n in used]), strict=True))
    if _WHY in widths:
        widths[_WHY] = min(widths[_WHY], _SHORTEST_WHY)
    moved: list[int] = []
    for column in _BENEATH:
        if column in used and sum(widths.values()) - len("  ") > room:
            moved.append(column)
            del widths[column]
    return sorted(moved)


def job_cells(job: Listed, now: float) -> list[str]:
    """A line of the table, for TITLES."""
    row, details = job.row, job.details
    code = "" if row.exit_code is None else f" {row.exit_code}"
    submitted = "" if details.submitted is None else \
        datetime.fromtimestamp(details.submitted, UTC).strftime("%m-%d %H:%M:%S")
    elapsed, waited = job.elapsed(now), job.waited(now)
    shown = spell(elapsed) if elapsed is not None else "" if waited is None else \
        f"{'waits' if row.outcome is None else 'waited'} {spell(waited)}"
    return [row.id or row.label, row.key, row.native_id or "", row.name or "", row.site or "", row.executor,
            details.queue or "", row.state if row.outcome is None else f"{row.outcome}{code}", submitted, shown,
            "" if details.nodes is None else str(details.nodes), escape(row.message or "", _LONGEST_WHY)]


def spell(seconds: float) -> str:
    """``1-02:03:04``: days, hours, minutes and seconds."""
    days, rest = divmod(int(seconds), UNITS["d"])
    return f"{days}-{clock(rest)}" if days else clock(rest, 1)
