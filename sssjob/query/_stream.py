"""How a stream answers a query: which queries are plainly about one job, and how the answers of the jobs become one.

What is not plain is analysed by ``_local`` in the process of the queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple

from sssjob.errors import QueryError
from sssjob.query._local import BESIDE, INSIDE, JOBS
from sssjob.query._results import Kind, Places, Result
from sssjob.query._text import Token

_COMPARISONS: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})
_SIGNS: Final = _COMPARISONS | {"@", "/", "[", "]", "(", ")", ","}
#: Functions that give no number, so that a condition made of them is no place.
_FUNCTIONS: Final = frozenset({"contains", "starts-with", "not", "normalize-space", "string", "concat", "translate",
                               "substring-before", "substring-after", "true", "false", "local-name", "name"})


class Plan(NamedTuple):
    """how: ``each`` (results of every job), or how values are put together: sum, min, max, any, all. around: nodes
    outside of the jobs may be among the results and have to be left out."""

    how: str
    around: bool = False


def plain(query_tokens: Sequence[Token]) -> Plan | None:
    """The plan of a path down from the root to jobs, or from a job, with conditions that are no places; or of count()
    or sum() of such a path from the root. None where that is not plain."""
    row = [t for t in query_tokens if t.role != "space"]
    if len(row) > 3 and row[0].role == "function" and row[0].text in ("count", "sum") and row[-1].text == ")":
        inner = row[2:-1]
        return Plan("sum") if inner[0].text in ("/", "//") and _is_path(inner) else None
    return Plan("each") if _is_path(row) else None


def leads_through_jobs(query_tokens: Sequence[Token]) -> bool:
    """Whether a query is plain, and its path names the jobs: nothing beside them is among the results."""
    row = [t for t in query_tokens if t.role != "space"]
    outside = takewhile(lambda token: token.text != "[", row)
    return plain(row) is not None and any(t.role == "element" and t.text in JOBS for t in outside)


def _is_path(row: Sequence[Token]) -> bool:
    depth, names = 0, []
    for index, token in enumerate(row):
        sign = token.text if token.role == "sign" else ""
        depth += (sign == "[") - (sign == "]")
        if depth or sign == "]":
            if not _is_condition(token, row[index - 1], row[index + 1] if index + 1 < len(row) else token):
                return False
        elif token.role == "element":
            names.append(token.text)
        elif token.role != "attribute" and not (sign in ("/", "@") or (sign == "//" and not index)):
            return False
        if sign == "[" and row[0].text == "/" and JOBS.isdisjoint(names):
            return False
    return _reaches(row[0].text, names)


def _reaches(start: str, names: Sequence[str]) -> bool:
    """Whether the names of a path lead to jobs or into them."""
    if not names or any(":" in name for name in names):
        return False
    if start != "/":
        return names[0] in INSIDE - BESIDE or (start == "//" and names[0] in JOBS)
    around = next((n for n, name in enumerate(names) if name in JOBS), None)
    return around is not None and INSIDE.isdisjoint(names[:around])


def _is_condition(token: Token, before: Token, after: Token) -> bool:
    if token.role == "number":
        return before.text in _COMPARISONS or after.text in _COMPARISONS
    if token.role == "function":
        return token.text in _FUNCTIONS
    if token.role == "word":
        return token.text in ("and", "or")
    if token.role == "sign":
        return token.text in _SIGNS
    return token.role in ("element", "attribute", "string") or token.text == "."


# --- one answer ---------------------------------------------------------------------------------------------------

def _fewest(values: list[Any], pick: Callable[[Any], Any]) -> Any:
    if len({type(v) for v in values}) > 1:
        raise QueryError("the jobs give numbers and texts; there is no order between them")
    return next((v for v in values if v != v), None) or pick(values)


#: How values of two jobs become one, what that is of no job (None: nothing), and its kind (None: theirs).
_COMBINE: Final[dict[str, tuple[Callable[[list[Any]], Any], Any]]] = {
    "sum": (sum, 0.0), "any": (any, False), "all": (all, True),
    "min": (lambda values: _fewest(values, min), None), "max": (lambda values: _fewest(values, max), None),
}


def combined(how: str, results: Iterable[Result], places: Places) -> list[Result]:
    """The one value of the whole document from those of its jobs; min and max of nothing are nothing."""
    combine, value = _COMBINE[how]
    for result in results:
        value = result.value if value is None else combine([value, result.value])
    if value is None:
        return []
    kind: Kind = "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
    return [Result(float(value) if kind == "number" else value, places, (kind, None, ""))]
