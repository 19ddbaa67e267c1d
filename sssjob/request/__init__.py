"""What a document asks for: the only room that interprets a request.

``tree`` makes the boolean expression of a Requested block, ``levels`` collects the expressions of a job, its task
groups and tasks, ``asked`` asks for single items, ``layout`` says how tasks and processors are spread, ``totals`` adds
everything up, ``offers``, ``matching`` and ``verdict`` hold a request against what is offered, ``many`` against many
offers at once, ``least`` makes one value a property of it for formats that know no expressions, ``explaining`` says it
in words.
Source: SSS job object 3.1.0, sections 3, 5, 6, 8, 10 and 11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sssjob.request.least import LeastRequest, Single, least_request
    from sssjob.request.levels import Level, Request, request_of, requests_in
    from sssjob.request.many import Offers, Verdict, verdicts
    from sssjob.request.matching import Explanation, Match
    from sssjob.request.offers import Offer
    from sssjob.request.totals import Total, Totals
    from sssjob.request.tree import (
        AllOf,
        AnyOf,
        Expression,
        Node,
        Not,
        Predicate,
        Preferred,
        check_property,
        names_of,
        parse,
    )
    from sssjob.request.verdict import match

__all__ = [
    "AllOf", "AnyOf", "Explanation", "Expression", "LeastRequest", "Level", "Match", "Node", "Not", "Offer",
    "Offers", "Predicate", "Preferred", "Request", "Single", "Total", "Totals", "Verdict", "check_property",
    "least_request", "match", "names_of", "parse", "request_of", "requests_in", "verdicts",
]

#: Name -> the module that has it: whoever needs only the tree pays for no more.
_PLACES: Final[dict[str, str]] = {
    **dict.fromkeys(("LeastRequest", "Single", "least_request"), "least"),
    **dict.fromkeys(("Level", "Request", "request_of", "requests_in"), "levels"),
    **dict.fromkeys(("Explanation", "Match"), "matching"),
    **dict.fromkeys(("Offers", "Verdict", "verdicts"), "many"),
    "Offer": "offers",
    **dict.fromkeys(("Total", "Totals"), "totals"),
    **dict.fromkeys(("AllOf", "AnyOf", "Expression", "Node", "Not", "Predicate", "Preferred", "check_property",
                     "names_of", "parse"), "tree"),
    "match": "verdict",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{place}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
