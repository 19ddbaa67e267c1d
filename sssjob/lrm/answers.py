"""What commands answer: a submit command the id of the job that was made, or words that say whether trying again can
help; others tables, XML and JSON, before which a site's own wrapper may print lines of its own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["SubmitAnswers", "behind_notices", "json_answer"]

_JSON = re.compile(r"""^[ \t]*(?=\{\s*["}]|\[\s*[\[{"\]])""", re.MULTILINE)      # "[WARN] ..." is no array
_DECODER = json.JSONDecoder(strict=False)


def behind_notices(out: str, begins: str) -> str:
    """What a command has put out from the first line on that begins so; all of it where there is none."""
    if out.startswith(begins):
        return out
    place = out.find(f"\n{begins}")
    return out if place < 0 else out[place + 1:]


def json_answer(command: str, out: str) -> Any:
    """The JSON in what a command has put out, where lines of something else may stand before and after it.

    Raises ValueError, which names the command, where there is none, more than one, or not the whole of it.
    """
    begin = _JSON.search(out)
    if begin is None:
        raise ValueError(f"{command} gave no JSON: {out[:200]!r}")
    try:
        answer, end = _DECODER.raw_decode(out, begin.end())
    except ValueError as e:
        raise ValueError(f"{command} gave no whole JSON: {e}") from e
    if _JSON.search(out, end):
        raise ValueError(f"{command} gave more than one answer: {out[end:end + 200]!r}")
    return answer


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
