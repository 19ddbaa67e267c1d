"""Rows in which a text holds the delimiter: which fields belong together. The columns are those of sacct where no
others are named.

sacct quotes nothing, nor does condor_history, so that a job whose user called it ``a|b`` has a field more than there
are columns. The fields are put together again where the columns allow one way only; a guess would let a user write
another account into the row.

Source: sacct(1), Job Accounting Fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Final

from sssjob.lrm.slurm import state_of

__all__ = ["FREE", "fits", "joined", "may_be"]

#: Columns in which a user may write the delimiter and line ends -> the characters that Slurm keeps of such a text.
#: Source: tables of accounting_storage/mysql (text has 65,535 bytes), max_submit_line_size of slurm.conf(5), PATH_MAX.
FREE: Final = {
    "jobname": 1_024, "comment": 65_535, "admincomment": 65_535, "systemcomment": 65_535, "extra": 65_535,
    "submitline": 1 << 20, "workdir": 4_096, "wckey": 1_024, "container": 4_096, "constraints": 65_535,
    "stdin": 4_096, "stdout": 4_096, "stderr": 4_096}
#: Fields above the number of columns for which a way is looked for. Slurm's names of jobs have up to 1,024 characters.
_MOST: Final = 1024
_FORMS: Final = {form: re.compile(pattern, re.ASCII) for form, pattern in {
    "time": r"\d{1,20}|\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?|Unknown|None|N/A",
    "count": r"-?\d{0,20}", "clock": r"[\d:.-]*|INVALID", "limit": r"[\d:-]*|UNLIMITED|Partition_Limit",
    "size": r"[\d.]*[A-Za-z?]{0,3}", "tres": r"(?:[a-z]+(?:/[^=,]*)?=[^=,]*(?:,|\Z))*",
    "exit": r"(?:-?\d+(?::-?\d+)?)?", "id": r"(?:\d[\w.+\[\],%-]*)?",
}.items()}
#: The form that the texts of a column have whoever the job is of.
_FORM: Final = {column: form for form, columns in {
    "time": ("submit", "eligible", "start", "end"),
    "count": ("elapsedraw", "cputimeraw", "alloccpus", "ncpus", "reqcpus", "reqnodes", "allocnodes", "nnodes", "uid",
              "gid", "restarts", "ntasks", "timelimitraw", "priority", "associd", "dbindex", "qosraw"),
    "clock": ("elapsed", "suspended", "totalcpu", "usercpu", "systemcpu", "cputime", "planned", "reserved"),
    "limit": ("timelimit",), "size": ("maxrss", "maxvmsize", "reqmem", "consumedenergy", "consumedenergyraw"),
    "tres": ("alloctres", "reqtres", "tresusageintot"), "exit": ("exitcode", "derivedexitcode"),
    "id": ("jobid", "jobidraw"),
}.items() for column in columns}


def may_be(text: str, column: str) -> bool:
    """Whether a column of sacct may hold a text."""
    if column == "state":
        return state_of(text) is not None
    return column not in _FORM or _FORMS[_FORM[column]].fullmatch(text) is not None


def joined(fields: Sequence[str], columns: Sequence[str], delimiter: str, *, free: Collection[str] = FREE,
           form: Callable[[str, str], bool] | None = may_be) -> list[str] | None:
    """A row of as many fields as there are columns, of one that may have more; None where no way, or more than one,
    puts them together. columns: their names in lower case; free: those that may hold the delimiter; form: whether a
    text (first) may stand in a column, None: any text in any. Several ways that differ in free texts only are one way:
    then the first free text takes all that it can.
    """
    before = _before(fields, columns, free, form)
    for at in range(len(columns) - 1, -1, -1):
        behind = before[at + 1]
        most = max(behind, default=-1)
        before[at] = {more for more in before[at] if (more <= most if columns[at] in free else more in behind)}
        if columns[at] not in free and len({fields[at + more] for more in before[at]}) != 1:
            return None
    if not before[0]:
        return None
    ends = [0]
    for column, behind in zip(columns, before[1:], strict=True):
        ends.append(max(behind) if column in free else ends[-1])
    return [delimiter.join(fields[at + first:at + last + 1]) for at, (first, last) in enumerate(pairwise(ends))]


def fits(fields: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether fields can be put together as a row of sacct by the forms of the columns, in one way or more."""
    return bool(_before(fields, columns, FREE, may_be)[-1])


def _before(fields: Sequence[str], columns: Sequence[str], free: Collection[str],
            form: Callable[[str, str], bool] | None) -> list[set[int]]:
    """Of each column how many fields the columns before it may have taken beside their own, and last of all columns,
    which is empty where no way leads to the last field."""
    extra = len(fields) - len(columns)
    before: list[set[int]] = [{0}] if 0 <= extra <= _MOST else [set()]
    for at, column in enumerate(columns):
        if column in free:
            before.append(set(range(min(before[at], default=extra + 1), extra + 1)))
        else:
            before.append({more for more in before[at] if form is None or form(fields[at + more], column)})
    before[-1] &= {extra}
    return before
