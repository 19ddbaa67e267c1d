"""The nodes and features of a job of Slurm.

Source: sbatch(1) of 22.05, ``--constraint``, ``--nodelist`` and ``--exclude``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from sssjob.document.lexical import LexicalError, LimitError
from sssjob.document.nodeset import NodeSet
from sssjob.translators.scripts.base import APPROXIMATED, Asking, Reading
from sssjob.translators.scripts.choices import (
    Every,
    Term,
    any_of,
    choices,
    drop,
    expanded,
    groups_of,
    is_name,
    names_in,
    none_of,
    parsed,
    put,
    sayable,
    site_resource,
    terms,
)
from sssjob.translators.scripts.common import Written
from sssjob.translators.scripts.raw import Option

_FEATURE: Final = re.compile(r"[\w.-]+")


def read_constraint(reading: Reading, options: Mapping[str, Option]) -> None:
    """Features joined by ``&`` and ``|``; sbatch reads both side by side from left to right, and counts and square
    brackets are about single nodes: such are kept."""
    option = options["--constraint"]
    choice = parsed(option.value or "", lambda name: Term(name) if _FEATURE.fullmatch(name) else None, mixed=False)
    if choice is None or not all(term.wanted for term in terms(choice)):
        reading.keep(option)
    else:
        put(reading, "Requested/Feature", choice, option)


def write_constraint(asking: Asking) -> Written:
    """What sbatch holds of an expression: alternatives, each some features joined by ``&``."""
    choices_written = [c for c in choices(asking, "Feature") if sayable(asking, c, _no_feature)]
    groups = groups_of(Every(tuple(choices_written)))
    if groups is None:
        for choice in choices_written:
            drop(asking, choice, "it comes to too many alternatives")
        return []
    if asking.source:
        for term in {term.name: term for group in groups for term in group}.values():
            site_resource(asking, term.entry, term.name, "feature")
    texts = ["&".join(dict.fromkeys(term.name for term in group)) for group in groups if group]
    if len(texts) > 1:
        texts = [f"({text})" if "&" in text else text for text in dict.fromkeys(texts)]
    return [("--constraint", "|".join(texts))] if texts else []


def _no_feature(term: Term) -> str:
    if not term.wanted:
        return f"Slurm cannot ask for nodes without {term.name[:80]}"
    return "" if term.kind == "name" and is_name(term.name) else f"{term.name[:80]!r} is no name for Slurm"


#: Names of a list that are put one by one: all of them are asked for.
_LISTED: Final = 256


def read_nodelist(reading: Reading, options: Mapping[str, Option]) -> None:
    """``--nodelist``: all of these nodes; ``--exclude``: none of those. A list may be in a file, which is kept."""
    for name, more in (("--nodelist", {}), ("--exclude", {"op": "NE"})):
        option = options.get(name)
        if option is None:
            continue
        if "/" in (option.value or ""):
            reading.keep(option)
            continue
        for text in re.findall(r"(?:\[[^\[\]]*\]|[^,\[])+", option.value or ""):
            every = expanded([Term(text, kind="set")], _LISTED) if "[" in text and not more else None
            for node in every or (text,):
                kind = {"aggregation": "Range"} if "[" in node else {}
                reading.put("Requested/Node", node, option, **kind, **more)
            if "[" in text and not more and every is None and _is_a_list(text):
                reading.tell(APPROXIMATED, option, f"{text[:80]} are too many names to ask for all of them; the job "
                             "asks for any")


def _is_a_list(text: str) -> bool:
    """Whether the text is a list of nodes at all, however many: of another the check of the document tells."""
    try:
        NodeSet.parse_range(text)
    except LimitError:
        return True
    except LexicalError:
        return False
    return True


def write_nodelist(asking: Asking) -> Written:
    """Nodes that are all asked for, and those that are not wanted."""
    asked, excluded = [], []
    for choice in choices(asking, "Node"):
        if not sayable(asking, choice, _no_node):
            continue
        unwanted, any_terms = none_of(choice), any_of(choice)
        if unwanted is not None:
            excluded += unwanted
        elif any_terms is not None and _all_needed(asking, any_terms):
            asked.append((choice, any_terms))
        else:
            drop(asking, choice, "Slurm asks for all nodes of a list, and the job for any of them")
    names = [term.name for _, any_terms in asked for term in any_terms]
    if asking.source != "slurm" and _too_many(asking, [term for _, any_terms in asked for term in any_terms]):
        for choice, _ in asked:
            drop(asking, choice, "Slurm takes a list of nodes only where all of them are asked for")
        names = []
    return [(option, _hosts(texts)) for option, texts in (
        ("--nodelist", names), ("--exclude", [term.name for term in excluded])) if texts]


def _no_node(term: Term) -> str:
    if "/" in term.name:
        return f"{term.name[:80]} would be the file of a list to Slurm"
    if term.kind == "set":
        return ""
    return "" if term.kind == "name" and is_name(term.name) else "only lists of names can be said"


def _hosts(texts: list[str]) -> str:
    """A list of hosts, names that count on folded."""
    if len(texts) < 2:
        return "".join(texts)
    try:
        return str(NodeSet.parse_range(",".join(texts)))
    except LexicalError:
        return ",".join(texts)


def _all_needed(asking: Asking, any_terms: list[Term]) -> bool:
    """Whether nodes of which any will do are all needed: one alone, or as many as the job has nodes."""
    if len(any_terms) == 1 and any_terms[0].kind == "name":
        return True
    count = _counted(any_terms)
    if count is None or (count > 1 and count not in _node_counts(asking)):
        return False
    if count > 1:
        asking.note(APPROXIMATED, any_terms[0].entry,
                    f"all of {names_in(any_terms)[:80]} are asked for, as many as the job "
                    "has nodes", "info")
    return True


def _counted(named_terms: Sequence[Term]) -> int | None:
    try:
        return len(named_terms) if all(t.kind == "name" for t in named_terms) else NodeSet.parse_range(
            ",".join(t.name for t in named_terms)).count
    except LexicalError:
        return None             # names that are no set are counted by nobody; reading told of them


def _node_counts(asking: Asking) -> list[int]:
    return [e.value for e in asking.said("NodeCount") if isinstance(e.value, int)]


def _too_many(asking: Asking, named_terms: Sequence[Term]) -> bool:
    """Whether more nodes are named than are asked for: sbatch then refuses the script."""
    counts, named = _node_counts(asking), _counted(named_terms)
    return bool(counts) and named is not None and named > max(counts)
