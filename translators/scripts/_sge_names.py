"""Names in scripts for Grid Engine: queues, of which an expression may fit several, and the jobs that are waited for.

Sources: sge_types(1), wc_queue_list; submit(1), -q and -hold_jid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sssjob.translators.scripts.base import APPROXIMATED, SITE, Asking, Reading, Special
from sssjob.translators.scripts.choices import listed
from sssjob.translators.scripts.common import Written
from sssjob.translators.scripts.dependencies import CORRESPONDING, OF_DEPENDENCIES, corresponding, foreign_id
from sssjob.translators.scripts.raw import Option


def joined(options: list[Option], *, wins: bool = False) -> Option:
    """Options that add up as one. wins: those of the command line replace those of the script."""
    of_line = [o for o in options if not o.line] if wins else []
    last = options[-1]
    return Option(last.name, ",".join(o.value or "" for o in of_line or options), last.line, last.column, last.text)


# -- dependencies
#: A variable alone, in a call of qsub that a script makes, is taken for what ``qsub -terse`` printed.
_ID: Final = re.compile(r"\d+|@JOBID:[^@]*@|\$\w+|\$\{\w+\}", re.ASCII)
_PATTERN: Final = re.compile(r"[*?\[\]]")


def _read_hold(reading: Reading, options: Mapping[str, Option]) -> None:
    if "-hold_jid_ad" in options:
        _read_elements(reading)
    if "-hold_jid" not in options:
        return
    option = joined(reading.every("-hold_jid"))
    patterns = []
    for text in re.split(r"[,\s]+", option.value or ""):
        if _ID.fullmatch(text):
            reading.put("Dependency", text, option, condition="OnExit")
        elif _PATTERN.search(text):
            patterns.append(text)
        elif text:
            reading.put("Dependency", text, option, condition="OnExit", designator="JobName")
    if patterns:
        reading.put("Extension[name=hold_jid,type=sge]", ",".join(patterns), option)


def _write_hold(asking: Asking) -> Written:
    ids = []
    for e in asking.find("Dependency"):
        e.understood |= {"condition", "designator", "code"}
        condition = e.attributes.get("condition", "OnSuccess")
        named = e.attributes.get("designator", "JobId") == "JobName"
        job = e.text if named else e.text.removesuffix("[]")        # of an array the number alone is the id
        if condition == "OnFailure" or "code" in e.attributes or (named and _ID.fullmatch(job)) or not (
                _ID.fullmatch(job) or re.fullmatch(r"[^\s,*?@\[\]\"'#]+", job)):
            asking.dropped(e, "Grid Engine waits only for the end of jobs")
            continue
        if condition != "OnExit":
            asking.note(APPROXIMATED, e, "Grid Engine waits for the end of the job, not for its success")
        ids.append(e.text if named else foreign_id(asking, e))
    kept = asking.extension("hold_jid", "sge")
    ids += [kept.text] if kept is not None else []
    elements = [text for e in asking.said("Extension") if e.attributes.get("name") == "DependencyOther"
                and e.text.startswith(CORRESPONDING) and (text := corresponding(asking, e))]
    return [(name, ",".join(texts)) for name, texts in (("-hold_jid", ids), ("-hold_jid_ad", elements)) if texts]


def _read_elements(reading: Reading) -> None:
    """``-hold_jid_ad``: each element waits for the one of the same index; patterns of names are kept."""
    option = joined(reading.every("-hold_jid_ad"))
    arrays = [text for text in re.split(r"[,\s]+", option.value or "") if text]
    if arrays and all(re.fullmatch(r"[\w.-]+", array_id, re.ASCII) for array_id in arrays):
        reading.put("Extension[name=DependencyOther,type=Scheduler]", CORRESPONDING + ":".join(arrays), option)
    else:
        reading.keep(option)


HOLD: Final = Special(("-hold_jid", "-hold_jid_ad"), _read_hold, _write_hold, of=(
    *OF_DEPENDENCIES, "Extension[name=hold_jid,type=sge]"))


# -- queues
_QUEUES: Final = listed("-q", "Queue", join=lambda reading: joined(reading.every("-q"), wins=True))


#: An expression that several queues may fit (sge_types(1), wc_cqueue): no name of a queue holds its signs. Braces are
#: those of a template.
_QUEUE_PATTERN: Final = re.compile(r"[^{}]*[!*?\[\]|&][^{}]*")


def _read_queues(reading: Reading, options: Mapping[str, Option]) -> None:
    """``-q``: queues, some perhaps on a host or a group of hosts alone, which the site knows as it knows what fits an
    expression; such a list is kept as it is."""
    option, site = joined(reading.every("-q"), wins=True), reading.context.site
    queues = {} if site is None else site.map.get("Queue", {})
    names = [name for name in (option.value or "").split(",") if name not in queues]
    patterns = [name for name in names if _QUEUE_PATTERN.fullmatch(name)]
    for name in names:
        if "@" in name and name not in patterns:
            reading.tell(SITE, option, f"{name} is a queue on some hosts alone; what that is elsewhere map.Queue of a "
                         "site profile says")
    if not patterns:
        _QUEUES.read(reading, options)
        return
    reading.tell(SITE, option, f"{', '.join(patterns)[:80]} may fit several queues; which those are elsewhere "
                 "map.Queue of a site profile says")
    reading.keep(option)


def _write_queues(asking: Asking) -> Written:
    """``-q`` of the names, or of what was kept as it is."""
    own = asking.extension("q", "sge")
    return list(_QUEUES.write(asking)) if own is None else [("-q", own.text)]


QUEUES: Final = Special(("-q",), _read_queues, _write_queues, of=("Queue", "Extension[name=q,type=sge]"))
