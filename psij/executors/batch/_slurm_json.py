"""Exit codes from ``sacct --json``, of the releases in which they are right.

The text of sacct takes 128 off codes from 128, the JSON does not: it has the wait status in its parts. But it has 0 for
every normal exit in 22.05 (seen in 22.05.8), the eligible time for the start from 21.08 to 22.05.7, and costs the
manager about 8 ms a job, the text 0.1. So the text is asked for all jobs, and this only for those of which the code is
not certain. Which release answers stands in the answer.

Source: DUMP_FUNC(PROCESS_EXIT_CODE) of Slurm's data_parser plugins, of which v0.0.39 in 23.02 is the first; recorded
output of 22.05.8. Text in, objects out.
"""

from __future__ import annotations

import re
from typing import Any

from psij.executors.batch._identity import Claim, Whose, tags_in
from psij.executors.batch._slurm_records import native_state
from psij.executors.batch._terms import SourceOffError, check_status_exit_code
from psij.job_status import JobStatus
from sssjob.lrm.answers import json_answer
from sssjob.lrm.slurm import job_id, member, number

FIRST_GOOD = (23, 2)        # the first release with the data_parser plugins
_NO_JSON = re.compile(r"option|json|plugin|serializer|not supported", re.IGNORECASE)


def command(native_ids: list[str]) -> list[str]:
    """The question about the last runs of these jobs."""
    return ["sacct", "--json", "-j", ",".join(native_ids)]


def parse_codes(exit_code: int, out: str, whose: Whose | None = None) -> dict[str, JobStatus]:
    """Exit codes by native id, as statuses with nothing else in them; of jobs that ended in themselves.

    Raises SourceOffError where sacct has no JSON or that of a release before FIRST_GOOD, ValueError for other answers.
    """
    if exit_code != 0 and _NO_JSON.search(out):
        raise SourceOffError(out.strip()[:200])
    check_status_exit_code("sacct --json", exit_code, out)
    document = json_answer("sacct --json", out)
    jobs = member(document, "jobs")
    if not isinstance(jobs, list):
        raise ValueError("sacct --json gave no jobs")
    release = _release(document)
    if release < FIRST_GOOD:
        raise SourceOffError(f"the JSON of release {'.'.join(map(str, release))} has no exit codes")
    whose = Whose() if whose is None else whose
    return dict(code for job in jobs if (code := _code(job, whose)) is not None)


def _code(job: Any, whose: Whose) -> tuple[str, JobStatus] | None:
    """The id and the code of a job that has ended; None of any other, and of one with numbers that are none."""
    try:
        text = f"{member(job, 'comment', 'job')} {member(job, 'submit_line')}"
        submitted = number(member(job, "time", "submission"))
        claim = Claim(tags_in(text) if member(job, "submit_line") or tags_in(text) else None,
                      str(member(job, "user") or "") or None, submit_time=submitted)
        if not whose.takes(job_id(job), claim):
            return None
        code = number(member(job, "exit_code", "return_code"))
        state = native_state(_word(member(job, "state", "current")))
        if code is not None and state is not None and state[1].final:
            return job_id(job), JobStatus(state[1], exit_code=code)
    except ValueError:
        pass
    return None


def _release(document: Any) -> tuple[int, ...]:
    """``(23, 2)`` of the version in ``meta``: texts below ``slurm``, once numbers below ``Slurm``."""
    version = next((release for key in ("slurm", "Slurm") if (release := member(document, "meta", key, "version"))),
                   None)
    parts = [str(member(version, part)) for part in ("major", "minor")]
    if not all(part.isdecimal() for part in parts):
        raise ValueError("sacct --json does not say of which release it is")
    return tuple(map(int, parts))


def _word(value: Any) -> str:
    """A state, which is a word or a list of them, the base state first."""
    return str(value[0] if isinstance(value, list) and value else value)
