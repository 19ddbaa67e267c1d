"""What a submit command answers: the id of the job that was made, or words that say whether trying again can help."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["SubmitAnswers"]


@dataclass(frozen=True, slots=True)
class SubmitAnswers:
    """The answers of one submit command.

    command: its name. native_id: the form of ids of jobs, also of elements of arrays. submitted: the line that names
    the new job, whose first group is its id. full: words of a failure, without a job, because there are as many as a
    limit allows; one job alone never reaches it. later: words of one that may pass for another reason. unknown: words
    of a failure after which there may be a job all the same.
    """

    command: str
    native_id: re.Pattern[str]
    submitted: re.Pattern[str]
    full: re.Pattern[str]
    later: re.Pattern[str]
    unknown: re.Pattern[str]

    def job_id(self, out: str) -> str:
        """The id, from the one line that names it. ValueError where no line or several do."""
        ids = [match[1] for line in out.splitlines() if (match := self.submitted.fullmatch(line.strip()))]
        if len(ids) != 1:
            raise ValueError(f"{self.command} gave no job id: {out!r}")
        return ids[0]

    def is_id(self, text: str) -> bool:
        """Whether a text has the form of an id."""
        return self.native_id.fullmatch(text) is not None

    def passes(self, out: str) -> bool:
        """Whether a failure with these words may pass."""
        return bool(self.full.search(out) or self.later.search(out) or self.unknown.search(out))
