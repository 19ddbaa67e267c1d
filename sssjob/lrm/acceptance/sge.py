"""What qsub of Grid Engine refuses. Seen with qsub and qmaster of Son of Grid Engine 8.1.9; qsub(1), sge_types(1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from sssjob.lrm.acceptance import Judge, Refusal, bounded
from sssjob.lrm.names import JOB_NAMES

__all__ = ["JUDGE"]

_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?(?::(\d{1,9}))?", re.ASCII)
_SLOTS: Final = re.compile(r"\S+[ \t]+(\d{1,9})?(?:-(\d{1,9})?)?", re.ASCII)
#: Names of accounts and projects; what qmaster says no to in them.
_NO_ACCOUNT: Final = re.compile(r"""[\s"'#*/:?@\\\[\]{}|()]""")


def _tasks(value: str) -> str:
    span = _RANGE.fullmatch(value)
    if span is None:
        return "is no range of tasks"
    if not int(span[1]) or (span[2] and not int(span[2])):
        return "tasks are counted from 1"
    return "a step is at least 1" if span[3] is not None and not int(span[3]) else ""


def _account(value: str) -> str:
    sign = _NO_ACCOUNT.search(value)
    return "" if sign is None else f"contains {sign[0]!r}"


def _slots(value: str) -> str:
    asked = _SLOTS.fullmatch(value)
    return "asks for no slots" if asked is not None and asked[1] is not None and not int(asked[1]) else ""


def _variables(value: str) -> str:
    return "names no variable before =" if re.search(r"(?:\A|,)=", value) else ""


def _together(options: Mapping[str, str]) -> Iterator[Refusal]:
    for name, wanted in (("-tc", "-t"), ("-hold_jid_ad", "-t"), ("-masterq", "-pe")):
        if name in options and wanted not in options and (name, options[name]) != ("-tc", "0"):
            yield Refusal(name, f"{name} wants {wanted}")


JUDGE: Final = Judge("qsub", {
    "-t": _tasks, "-tc": bounded(0, 2**31 - 1), "-N": JOB_NAMES["sge"].fault, "-A": _account, "-P": _account,
    "-ac": _variables, "-v": _variables,
    "-pe": _slots, "-p": bounded(-1023, 1024),
}, _together)
