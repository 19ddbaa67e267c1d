"""Format ``apel-sync``: how many jobs a site says to have had, by submit host and month; only written.

    APEL-sync-message: v0.1
    Site: SITE-A
    Month: 11
    SubmitHost: ce.example.org
    Year: 2026
    NumberOfJobs: 1200
    %%

The receiver compares them with the jobs that have come. Months are those of EndTime (UTC). Jobs without a submit host
are counted under ``None``, as the receiver keeps those whose messages name none. Option: ``site``, where the jobs name
none.

Source: the message formats of APEL; its published test messages; its record classes, which fill in ``None``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from sssjob.document.endings import Ended
from sssjob.document.model import Document, Job
from sssjob.translators.base import WriteContext
from sssjob.translators.records._adding import TOLD_AGAIN
from sssjob.translators.records._usage import Taking, Telling
from sssjob.translators.records.apel import HEADER, MESSAGE
from sssjob.translators.records.base import RecordTranslator, effective_jobs, no_reading
from sssjob.translators.records.car import invented, site_of

__all__ = ["TRANSLATOR"]

_NO_HOST: Final = "None"


def _texts(jobs: Iterable[Job], context: WriteContext) -> Iterator[str]:
    telling = Telling(context)
    context.options.get("site")

    def pieces() -> Iterator[str]:
        """A record for each submit host and month, with the head of a message before the first of each."""
        for n, ((site, host, year, month), count) in enumerate(sorted(_counted(jobs, telling).items())):
            yield ("APEL-sync-message: v0.1\n" if n % MESSAGE == 0 else "") + (
                f"Site: {site}\nMonth: {month}\nSubmitHost: {host}\nYear: {year}\nNumberOfJobs: {count}\n%%\n")
    return pieces()


def _counted(jobs: Iterable[Job], telling: Telling) -> Counter[tuple[str, str, int, int]]:
    """Jobs by site, submit host, year and month; those that no message of jobs has are told."""
    counts: Counter[tuple[str, str, int, int]] = Counter()
    ended = Ended()
    for job in jobs:
        t = Taking(job, telling)
        site, host = site_of(t), t.text("SubmitHost") or _NO_HOST
        used = None if job.value("State") not in ("Completed", None) else invented(t, scaled=False)
        if site is None or used is None:
            t.lost("SSS546", "Job", "a job is left out that has not ended, or without a site, which the option site "
                   "can name")
            continue
        if ended.again(job):
            t.lost("SSS546", "Id", TOLD_AGAIN)
            continue
        end = datetime.fromtimestamp(used[1], UTC)
        counts[site, host, end.year, end.month] += 1
        t.lost("SSS502", "Job", "jobs are counted: no job can be read back from a count")
    return counts


def _write(document: Document, context: WriteContext) -> str:
    return "".join(_texts(effective_jobs(document), context))


TRANSLATOR = RecordTranslator("apel-sync", "APEL counts of jobs", "record", no_reading, _write, (), texts=_texts,
                              header=HEADER)
