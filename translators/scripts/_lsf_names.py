"""The hosts and features of a job of LSF: ``-m``, and the section ``select`` of ``-R``.

Source: bsub of LSF 10.1; Administering LSF, resource requirement strings.
"""

from __future__ import annotations

import re
from typing import Final

from sssjob.translators.scripts._lsf_expressions import names_of
from sssjob.translators.scripts.base import APPROXIMATED, DROPPED, Asking, Reading
from sssjob.translators.scripts.choices import (
    Choice,
    Every,
    Term,
    any_of,
    choices,
    drop,
    expanded,
    infix,
    none_of,
    parsed,
    put,
    sayable,
    site_resource,
    terms,
)
from sssjob.translators.scripts.common import Written
from sssjob.translators.scripts.raw import Option

_HOST: Final = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_RESOURCE: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


# -- reading
def read_hosts(reading: Reading, option: Option) -> None:
    """``-m``: hosts any of which will do; preferences and groups of others are kept."""
    names = list(dict.fromkeys((option.value or "").split()))
    if names and all(map(_HOST.fullmatch, names)) and not {"all", "others"} & set(names):
        listed = {"aggregation": "List"} if len(names) > 1 else {}
        reading.put("Requested/Node", ",".join(names), option, **listed)
    else:
        reading.keep(option)


def selection(reading: Reading, option: Option, text: str) -> str:
    """Features, and hosts that are not wanted where all is demanded; another expression of features as it is."""
    names = names_of(text)
    if names is None:
        return _alternatives(reading, option, text)
    if any(value and (name != "hname" or sign == "==") for name, sign, value in names):
        return text
    for name, _, value in names:
        if value:
            reading.put("Requested/Node", value, option, op="NE")
        else:
            reading.put("Requested/Feature", name, option)
    return ""


_UNWANTED: Final = re.compile(r"hname\s*!=\s*(['\"]?)([\w.-]+)\1", re.ASCII)


def _alternatives(reading: Reading, option: Option, text: str) -> str:
    """Another selection: conditions that are all demanded, each about features alone or a host that is not wanted."""
    def term(text: str) -> Term | None:
        """A host that is not wanted, or a feature; None for anything else."""
        if (host := _UNWANTED.fullmatch(text)) is not None:
            return Term(host[2], False, "Node")
        return Term(text, True, "Feature") if _RESOURCE.fullmatch(text) else None

    choice = parsed(text, term)
    parts = choice.items if isinstance(choice, Every) else () if choice is None else (choice,)
    tags = [{each.kind for each in terms(part)} for part in parts]
    if not parts or any(len(tag) > 1 or ("Node" in tag and none_of(part) is None)
                        for part, tag in zip(parts, tags, strict=True)):
        return text
    for part, (tag,) in zip(parts, tags, strict=True):
        put(reading, f"Requested/{tag}", part, option)
    return ""


# -- writing
def select(asking: Asking) -> list[str]:
    """Features, and hosts that are not wanted."""
    features = [c for c in choices(asking, "Feature") if sayable(asking, c, _no_resource)]
    for term in (t for choice in features for t in terms(choice)):
        site_resource(asking, term.entry, term.name)
    silent, asking.silent = asking.silent, True         # told where the hosts are written
    unwanted = [names for choice in choices(asking, "Node") if (names := _excluded(choice)) is not None]
    asking.silent = silent
    hosts = [Term(name, False, "host") for names in unwanted for name in names]
    text = infix(Every((*features, *hosts)), _selected, " && ", " || ")
    return [f"select[{text}]"] if text else []


def _selected(term: Term) -> str:
    """A feature, or a host that is not wanted, as a term of a selection."""
    if term.kind == "host":
        return f"hname!={term.name}" if _RESOURCE.fullmatch(term.name) else f"hname!='{term.name}'"
    return term.name if term.wanted else f"!{term.name}"


def _no_resource(term: Term) -> str:
    return "" if term.kind == "name" and _RESOURCE.fullmatch(term.name) else \
        f"{term.name[:80]!r} is no name of a resource"


def _excluded(choice: Choice) -> list[str] | None:
    """The names of hosts that are not wanted; None where the condition asks for something else."""
    unwanted = none_of(choice)
    names = None if unwanted is None else expanded(unwanted)
    return names if names is not None and all(map(_HOST.fullmatch, names)) else None


def write_hosts(asking: Asking) -> Written:
    """``-m``: any of the hosts will do."""
    host_lists: list[list[str]] = []
    for choice in choices(asking, "Node"):
        if _excluded(choice) is not None:
            continue
        names = expanded(any_of(choice) or [Term("", kind="other")])
        if names is None or not all(map(_HOST.fullmatch, names)):
            drop(asking, choice, "bsub takes names of hosts, any of which will do")
        else:
            host_lists.append(names)
    if len(host_lists) > 1 and any(len(names) > 1 for names in host_lists):
        asking.note(DROPPED, None, "Node: one list of hosts can be said", subject="Node")
        host_lists = host_lists[:1]
    names = list(dict.fromkeys(name for names in host_lists for name in names))
    if len(host_lists) > 1:
        asking.note(APPROXIMATED, None, "Node: any of the hosts, not all of them", subject="Node")
    return [("-m", " ".join(names))] if names else []
