"""The last look at what is written: nothing goes out that the target's own submit command is known to refuse."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sssjob.lrm.acceptance import Judge, Refusal, judge_of
from sssjob.translators.scripts.raw import TEMPLATE
from sssjob.translators.scripts.rows import DROPPED, INVENTED, STREAMS, Row, place

if TYPE_CHECKING:
    from sssjob.request.asked import Entry
    from sssjob.translators.scripts.asking import Asking

__all__ = ["accepted", "said_by", "subject_of"]

Spoken = list[tuple[str, "str | None", "Asking"]]
#: A word of an option of the layout -> the property that it says; the first that is there counts.
_LAYOUT: Final = {"mem": "Memory", "memory": "Memory", "pmem": "Memory", "gpu": "Resource", "gpus": "Resource",
                  "disk": "Disk", "cpus": "Processors", "ncpus": "Processors", "ntasks": "TaskCount",
                  "nodes": "NodeCount"}
#: How many options may be taken out of one job for what they are together with others.
_MOST: Final = 20


def accepted(asked: Sequence[Asking], options: Spoken, *, of_own: bool = False, partial: bool = False) -> Spoken:
    """The options without those that the target refuses, each with a finding. A script that goes back to its own
    dialect keeps all of its options, for ``lint`` tells what is refused of those, unless of_own; and placeholders are
    anything. partial: the submit command gets other options beside these."""
    dialect = asked[0].dialect
    judge = judge_of(dialect.name)
    if judge is None or (asked[0].source == dialect.name and not of_own):
        return options
    if len(asked) > 1 and judge.whole:
        options = _of_one_part(judge, asked[0], options)
    of_each = defaultdict[int, list[tuple[str, "str | None"]]](list)
    out: set[tuple[int, str]] = set()
    for name, value, asking in options:
        if name != dialect.separator:
            of_each[id(asking)].append((name, value))
    for asking in asked:
        own = of_each[id(asking)]
        for _ in range(_MOST):
            refusals = [r for r in judge.refusals(own, partial=partial) if not _templated(r, own)]
            refused = {r.option: r for r in refusals if not r.missing}
            if not refused:
                break
            for refusal in refused.values():
                value = next((value for name, value in own if name == refusal.option), None)
                asking.note(DROPPED, said_by(asking, refusal.option, value), f"{_shown(refusal, own)}: {judge.command} "
                            f"refuses it: {refusal.why}", subject=subject_of(asking, refusal.option, value))
            own = [option for option in own if option[0] not in refused]
            out.update((id(asking), name) for name in refused)
        for refusal in refusals:
            if refusal.missing:
                asking.note(INVENTED, None, f"{refusal.option}: {judge.command} of {dialect.title} refuses a job "
                            f"without it unless its command line says it: {refusal.why}", "warning",
                            subject_of(asking, refusal.option))
    return [option for option in options if (id(option[2]), option[0]) not in out] if out else options


def _of_one_part(judge: Judge, first: Asking, options: Spoken) -> Spoken:
    """The options without those that a job of several parts may not have."""
    for name, value in dict.fromkeys((name, value) for name, value, _ in options if name in judge.whole):
        first.note(DROPPED, said_by(first, name, value), f"{_shown(Refusal(name, ''), [(name, value)])}: "
                   f"{judge.command} refuses it: {judge.whole[name]}", subject=subject_of(first, name, value))
    return [option for option in options if option[0] not in judge.whole]


def said_by(asking: Asking, option: str, value: str | None) -> Entry | None:
    """The property that an option was written from; None where it is not the only one that may have been."""
    row = asking.dialect.known.get(option)
    if row is not None and not row.of:
        words = re.split("[-_ ]", option)
        tag = next((tag for word, tag in _LAYOUT.items() if word in words), "")
        entries = [e for e in asking.said(tag) if tag != "Resource" or e.attributes.get("name") == "GPU"]
        return entries[0] if len(entries) == 1 else None
    places = () if row is None else row.of or ()
    entries = [e for p in map(place, filter(None, places)) for e in asking.said(p.tag)
               if p.attributes.items() <= e.attributes.items()]
    if len(entries) > 1:
        entries = [e for e in entries if value is not None and e.text and e.text in value]
    if len(entries) > 1:      # one file for both streams: every manager has an option that begins as the stream does
        letter = option.lstrip("-")[:1].upper()
        entries = [e for e in entries if e.tag in STREAMS and e.tag[0] == letter]
    return entries[0] if len(entries) == 1 else None


def subject_of(asking: Asking, option: str, value: str | None = None) -> str:
    """What a finding about an option is about: the property that it says, else the option."""
    row = asking.dialect.known.get(option)
    if isinstance(row, Row) and row.place:
        return place(row.place).tag
    entry = said_by(asking, option, value)
    return option if entry is None else entry.tag


def _templated(refusal: Refusal, options: Sequence[tuple[str, str | None]]) -> bool:
    return any(name == refusal.option and value and TEMPLATE.search(value, 0, 4096) for name, value in options)


def _shown(refusal: Refusal, options: Sequence[tuple[str, str | None]]) -> str:
    value = next((value for name, value in options if name == refusal.option), None)
    return refusal.option if value is None else f"{refusal.option} {value[:80]}"
