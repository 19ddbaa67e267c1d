"""Submissions that a client looks after beside those that it was asked for, so that these can go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.journal import Entry
    from sssjob.run.standing import Submission

__all__ = ["connected", "stalled"]


def connected(client: Client, submissions: Sequence[Submission]) -> list[Submission]:
    """These submissions, and after them those whose jobs their jobs depend on, and those that fill a cap which keeps
    their jobs back."""
    by_number = {s.entry.number: s for s in submissions if s.entry is not None}
    rest = list(submissions)
    for submission in rest:         # grows meanwhile
        keys = {key for job in submission.jobs if not job.ended
                for named in job.outside.values() for key in named if key.startswith("@")}
        for key in sorted(keys):
            number, _, job = key.removeprefix("@").partition(".")
            unread = [int(number)] if int(number) not in by_number else []
            for other in client.standings(client.journal.entries(unread)):
                by_number[int(number)] = other
                client.own(other)
                rest.append(other)
            if int(number) in by_number:
                submission.outside[key] = by_number[int(number)].jobs[int(job) - 1]
    return rest + _rivals(client, by_number)


def _rivals(client: Client, by_number: Mapping[int, Submission]) -> list[Submission]:
    """Submissions, beside those of ``by_number``, whose jobs count against the user's own caps and that nobody looks
    after, so that nobody would know when they end."""
    caps = client.caps()
    waiting = {s.entry.executor for s in by_number.values() if s.entry is not None
               and any(job.word == "waiting" for job in s.jobs)}
    if not waiting or (caps.of_all is None and all(caps.of(name) is None for name in waiting)):
        return []
    numbers = {number for name in ([None] if caps.of_all is not None else sorted(waiting))
               for number in client.journal.in_flight(name, None, by_number)}
    rivals = client.standings(client.journal.entries(sorted(numbers)))
    return [submission for submission in rivals if client.own(submission)]


def stalled(client: Client, entries: Sequence[Entry]) -> list[Submission]:
    """Submissions other than these that nobody looks after: of the executors of these those of which jobs wait to be
    submitted, of all those for whose ends something is still to be done, which needs no resource manager."""
    journal = client.journal
    numbers, places = {entry.number for entry in entries}, {(entry.executor, entry.cluster) for entry in entries}
    waiting = [number for name in sorted({name for name, _ in places}) for number in journal.waiting(name)]
    entries_here = [entry for entry in journal.entries(number for number in waiting if number not in numbers)
                    if (entry.executor, entry.cluster) in places]
    others = client.standings((*entries_here, *journal.entries(journal.unkept())))
    for submission in others:
        client.own(submission)
    return [submission for submission in others if submission.owned]
