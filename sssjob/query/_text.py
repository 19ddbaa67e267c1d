"""The text of a query: tokens, what is refused before anything runs, what is cheap, and the spelling of names.

The lexer covers XPath 1.0 and 3.1 and tells the names of elements and attributes from functions, axes, operators,
keywords and types, which is all that is needed to rewrite names and to refuse functions. It does not parse.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from sssjob.document.vocabulary import CONTAINERS, ELEMENTS, in_scope
from sssjob.errors import QueryError
from sssjob.query._functions import FUNCTIONS, PREFIX

CHARACTERS: Final = 10_000      # longest query
DEPTH: Final = 64               # open brackets
_CHEAP_TOKENS: Final = 500      # a query evaluated without a guard
_CHEAP_PREDICATES: Final = 16

Role = Literal["space", "string", "number", "variable", "element", "attribute", "function", "axis", "word", "type",
               "wildcard", "dot", "sign"]


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the query and what it is; ``word`` is an operator or keyword that is a name."""

    text: str
    role: Role


_NO_TEXT: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_NAME: Final = r"[^\W\d][\w.\-·]*"
_TOKEN: Final = re.compile(
    rf"""(?P<space>\s+)
    |(?P<string>"(?:[^"]|"")*"|'(?:[^']|'')*')
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<variable>\$\s*(?:Q\{{[^{{}}]*\}})?{_NAME}(?::{_NAME})?)
    |(?P<name>(?:Q\{{[^{{}}]*\}}|\*:|{_NAME}:(?=[^\W\d]))?{_NAME}(?!:[^\W\d]))
    |(?P<wild>(?:Q\{{[^{{}}]*\}}|{_NAME}:)\*)
    |(?P<sign>::|//|\.\.|\|\||!=|<=|>=|<<|>>|=>|:=|[][(){{}}@/|+\-*=<>,.!?#:;])""",
    re.VERBOSE,
)
_ENDS: Final = frozenset(")]}")
_LEADS: Final = frozenset({"for", "let", "some", "every"})
_TWO_WORDS: Final = frozenset({"instance", "treat", "castable", "cast"})
_OPENING: Final = frozenset("([{")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: The functions of XPath 1.0.
FUNCTIONS_10: Final = _words(
    "last position count id local-name namespace-uri name string concat starts-with contains substring-before "
    "substring-after substring string-length normalize-space translate boolean not true false lang number sum floor "
    "ceiling round")
#: Tests of the kind of a node: written like functions.
_KINDS_10: Final = frozenset({"comment", "node", "processing-instruction", "text"})
_KINDS: Final = _KINDS_10 | {"attribute", "document-node", "element", "empty-sequence", "item", "namespace-node",
                             "schema-attribute", "schema-element", "function", "map", "array", "if"}
#: The functions of XPath 3.1 that see the document and their arguments only.
FUNCTIONS_31: Final = FUNCTIONS_10 | _words(
    "abs adjust-date-to-timezone adjust-dateTime-to-timezone adjust-time-to-timezone avg base-uri "
    "codepoint-equal codepoints-to-string compare contains-token current-date current-dateTime current-time data "
    "dateTime day-from-date day-from-dateTime days-from-duration deep-equal default-collation default-language "
    "distinct-values empty encode-for-uri ends-with error escape-html-uri exactly-one exists filter fold-left "
    "fold-right for-each for-each-pair format-date format-dateTime format-integer format-number format-time "
    "function-arity function-name generate-id has-children head hours-from-dateTime hours-from-duration "
    "hours-from-time idref implicit-timezone in-scope-prefixes index-of innermost insert-before iri-to-uri "
    "local-name-from-QName lower-case matches max min minutes-from-dateTime minutes-from-duration minutes-from-time "
    "month-from-date month-from-dateTime months-from-duration namespace-uri-for-prefix namespace-uri-from-QName "
    "nilled node-name normalize-unicode one-or-more outermost parse-ietf-date parse-json path prefix-from-QName "
    "QName remove replace resolve-QName reverse root round-half-to-even seconds-from-dateTime seconds-from-duration "
    "seconds-from-time serialize sort string-join string-to-codepoints subsequence tail timezone-from-date "
    "timezone-from-dateTime timezone-from-time tokenize unordered upper-case year-from-date year-from-dateTime "
    "years-from-duration zero-or-one")
_PREFIXES: Final = frozenset({"xs", "math", "map", "array"})
_DOCUMENTS: Final = _words(
    "doc doc-available document collection uri-collection unparsed-text unparsed-text-lines unparsed-text-available "
    "environment-variable available-environment-variables json-doc system-property function-lookup apply "
    "load-xquery-module transform parse-xml parse-xml-fragment trace json-to-xml static-base-uri resolve-uri "
    "document-uri analyze-string element-available function-available unparsed-entity-uri key xml-to-json "
    "random-number-generator id element-with-id generate-id") - FUNCTIONS_31
_COMPARISONS: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})
_OPERATORS_10: Final = frozenset({"and", "or", "div", "mod"})
_CHEAP_SIGNS: Final = frozenset({"[", "]", "(", ")", "@", ",", "+", "-", "*", "::"})
#: Functions whose time the form of a query does not bound: a range of nodes may be long to read.
_DEAR: Final = frozenset({"id", "lang", f"{PREFIX}:nodes"})
_AXES_DOWN: Final = frozenset({"child", "attribute", "self", "descendant", "descendant-or-self"})


# --- tokens -------------------------------------------------------------------------------------------------------

def tokens(query: str) -> list[Token]:
    """The tokens of a query with their roles; raises QueryError for what no query can hold."""
    if len(query) > CHARACTERS:
        raise QueryError(f"the query has {len(query)} characters, more than {CHARACTERS}")
    if not is_text(query):
        raise QueryError("the query holds characters that XML does not know")
    query_tokens = _split(query)
    significant = [i for i, t in enumerate(query_tokens) if t.role != "space"]
    _roles(query_tokens, significant)
    _check_depth(query_tokens)
    return query_tokens


def is_text(text: str) -> bool:
    """Whether XML can hold it: no control characters, no surrogates (undecodable bytes of a command line)."""
    return _NO_TEXT.search(text) is None


def _split(query: str) -> list[Token]:
    query_tokens: list[Token] = []
    at = 0
    while at < len(query):
        if query.startswith("(:", at):
            at = _comment_end(query, at)
            query_tokens.append(Token(" ", "space"))
            continue
        match = _TOKEN.match(query, at)
        if match is None:
            raise QueryError(f"the query is wrong at character {at + 1}: {query[at:at + 20]!r}")
        kind = match.lastgroup
        role: Role = {"space": "space", "string": "string", "number": "number", "variable": "variable",
                      "name": "element", "wild": "wildcard"}.get(kind or "", "sign")  # type: ignore[assignment]
        query_tokens.append(Token(match.group(), role))
        at = match.end()
    return query_tokens


def _comment_end(query: str, at: int) -> int:
    depth = 0
    for match in re.compile(r"\(:|:\)").finditer(query, at):
        depth += 1 if match.group() == "(:" else -1
        if depth == 0:
            return match.end()
    raise QueryError("a comment of the query is never closed")


def _roles(query_tokens: list[Token], significant: list[int]) -> None:
    """Give names, ``*`` and ``.`` the role that their place gives them."""
    before: Token | None = None
    for n, index in enumerate(significant):
        token = query_tokens[index]
        after = query_tokens[significant[n + 1]].text if n + 1 < len(significant) else ""
        if token.role == "element":
            token = Token(token.text, _role(token.text, before, after))
        elif token.text == "*" and not _operand(before):
            token = Token("*", "wildcard")
        elif token.text in {".", ".."}:
            token = Token(token.text, "dot")
        query_tokens[index] = token
        before = token


def _operand(token: Token | None) -> bool:
    """Whether an operand ends here, so that a name or ``*`` that follows is an operator."""
    if token is None:
        return False
    if token.role == "sign":
        return token.text in _ENDS or token.text == "?"
    return token.role in {"string", "number", "variable", "element", "attribute", "type", "wildcard", "dot"}


def _role(name: str, before: Token | None, after: str) -> Role:
    if before is not None and before.role == "word" and before.text in _TWO_WORDS:
        return "word"
    if after == "::":
        return "axis"
    if before is not None and before.text in {"of", "as"} and before.role == "word":
        return "function" if after == "(" else "type"
    if _operand(before):
        return "word"
    if after in {"(", "#"}:
        return "function"
    if after == "{" or (after.startswith("$") and name in _LEADS):
        return "word"
    if before is not None and before.text in {"@", "?"}:
        return "attribute"
    return "element"


def _check_depth(query_tokens: list[Token]) -> None:
    depth = 0
    for token in query_tokens:
        if token.role == "sign" and token.text in _OPENING:
            depth += 1
            if depth > DEPTH:
                raise QueryError(f"the query has more than {DEPTH} open brackets")
        elif token.role == "sign" and token.text in _ENDS:
            depth -= 1


# --- what is refused ----------------------------------------------------------------------------------------------

def check(query_tokens: list[Token]) -> None:
    """Raise QueryError, naming it, for a function that reaches beyond the document, and for unknown ones."""
    for token in query_tokens:
        if token.role == "function":
            _check_function(token.text)


def _check_function(name: str) -> None:
    prefix, _, local = name.rpartition(":")
    if name.startswith(("Q{", "*:")):
        raise QueryError(f"function {name}() is refused: write it without a namespace")
    if local in _DOCUMENTS and prefix in {"", "fn"}:
        raise QueryError(f"function {name}() is refused: a query sees the document and its variables only")
    if prefix == PREFIX and local in FUNCTIONS:
        return
    if prefix == PREFIX:
        raise QueryError(f"there is no function {name}(); of the prefix {PREFIX} there are {', '.join(FUNCTIONS)}")
    if prefix in _PREFIXES or (prefix in {"", "fn"} and (local in FUNCTIONS_31 or (not prefix and local in _KINDS))):
        return
    if prefix:
        raise QueryError(f"function {name}() is refused: extension functions are not available")
    raise QueryError(f"there is no function {name}()")


def needs_31(query_tokens: list[Token]) -> bool:
    """Whether the query uses a function that XPath 1.0 has not."""
    return any(t.role == "function" and t.text not in FUNCTIONS_10 and t.text not in _KINDS_10
               and not t.text.startswith(f"{PREFIX}:") for t in query_tokens)


def needs_amounts(query_tokens: list[Token]) -> bool:
    """Whether the query uses a function of amounts."""
    return any(t.role == "function" and t.text.startswith(f"{PREFIX}:") for t in query_tokens)


def reason(error: object) -> str:
    """What a library says of a query that it cannot evaluate, in words that a user can follow."""
    text = " ".join(str(error).split())[:500] or type(error).__name__
    return {"Invalid context size": "last() counts nothing here: it belongs into a condition, [last()]",
            "Invalid context position": "position() counts nothing here: it belongs into a condition, [position() = 1]",
            "Invalid type": "a function or an operator that takes nodes was given a value",
            "Undefined variable": "it has a variable that was not given (--var NAME=VALUE)",
            "Undefined namespace prefix": "it has a prefix that the root of the document does not declare",
            }.get(text, text)


# --- what is cheap ------------------------------------------------------------------------------------------------

def linear(query_tokens: list[Token]) -> bool:
    """Whether XPath 1.0 evaluates the query in time linear in the document, by its form alone.

    True only for paths that go down, with ``//`` at the start of a path outside of predicates, whose predicates stay
    below their own node and compare with literals, numbers or variables. Unions are not linear in libxml2.
    """
    row = [t for t in query_tokens if t.role != "space"]
    if len(row) > _CHEAP_TOKENS or sum(t.text == "[" for t in row) > _CHEAP_PREDICATES:
        return False
    inside = deep = 0
    anything = False
    for index, token in enumerate(row):
        before = row[index - 1] if index else None
        after = row[index + 1] if index + 1 < len(row) else None
        inside += (token.text == "[") - (token.text == "]") if token.role == "sign" else 0
        if not _cheap(token, before, after, inside, anything):
            return False
        if token.text == "//" or (token.role == "axis" and token.text.startswith("descendant")):
            deep += 1
            anything = anything or after is None or after.role != "element"
    return deep <= 4


def _cheap(token: Token, before: Token | None, after: Token | None, inside: int, anything: bool) -> bool:
    text, starts = token.text, not _operand(before)
    if token.role == "sign":
        if text == "//":
            return not inside and (starts or (before is not None and before.text == "."))
        if text == "/":
            return not (inside and starts)
        if text in _COMPARISONS:
            return _plain(before, after)
        return text in _CHEAP_SIGNS
    if token.role == "axis":
        first = before is None or before.text not in {"/", "//"}
        return text in _AXES_DOWN and (not text.startswith("descendant") or (first and not inside))
    if token.role == "word":
        return text in _OPERATORS_10
    if token.role == "function":
        return text not in _DEAR and not (inside and anything)
    if token.role in {"dot", "wildcard"}:
        return text != ".." and not (inside and anything)
    return token.role != "type"


def _plain(before: Token | None, after: Token | None) -> bool:
    return any(t is not None and t.role in {"string", "number", "variable"} for t in (before, after)) or (
        after is not None and (after.text in {"last", "true", "false", "-"}
                               or (after.role == "function" and after.text.startswith(f"{PREFIX}:"))))


# --- spelling -----------------------------------------------------------------------------------------------------

@cache
def _spellings() -> Mapping[str, dict[str, tuple[str, ...]]]:
    """Name in a query -> spelling in a document -> containers in which it means the same (none: anywhere)."""
    rows: dict[str, list[int]] = {}
    for number, row in enumerate(ELEMENTS):
        for name in (row.name, *row.aliases):
            rows.setdefault(name, []).append(number)
    spellings: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, numbers in rows.items():
        for number in numbers:
            for other in (ELEMENTS[number].name, *ELEMENTS[number].aliases):
                if set(rows[other]) <= set(numbers):
                    spellings.setdefault(name, {})[other] = ()
                else:
                    spellings.setdefault(name, {}).setdefault(other, _parents(number))
    for container in CONTAINERS.values():
        names = (container.name, *container.aliases)
        for name in names:
            spellings.setdefault(name, {}).update(dict.fromkeys(names, ()))
    return spellings


def _parents(number: int) -> tuple[str, ...]:
    """The containers in which the name of a row means this row."""
    row = ELEMENTS[number]
    homes = [c for c in CONTAINERS.values() if in_scope(c.name).get(row.name) is row]
    return tuple(name for c in homes for name in (c.name, *c.aliases))


def candidates(query_tokens: list[Token]) -> frozenset[str]:
    """Every spelling that could stand in a document for the names in the query."""
    table = _spellings()
    homes_of = {s: homes for t in query_tokens if t.role == "element" for s, homes in table.get(t.text, {}).items()}
    return frozenset(homes_of).union(*homes_of.values())


def spell(query_tokens: list[Token], occurring: Collection[str], namespaced: bool = False) -> str:
    """The query with its names as the document spells them; the same text where nothing has to change.

    occurring: the ``candidates`` that occur in the document; namespaced: match local names.
    """
    kind_test = 0
    out: list[str] = []
    above = before = ""         # the token before the last one, and the last one
    for token in query_tokens:
        text = token.text
        if token.role == "function" and text in {"element", "attribute", "schema-element", "schema-attribute"}:
            kind_test = 1
        elif text == ")" and kind_test:
            kind_test = 0
        elif token.role == "element" and not kind_test and ":" not in text and not text.startswith("Q{"):
            text = _test(text, occurring, namespaced, above if before in {"/", "["} else "")
        out.append(text)
        if token.role != "space":
            above, before = before, token.text if token.role in {"element", "sign"} else ""
    return "".join(out)


def _test(name: str, occurring: Collection[str], namespaced: bool, step: str = "") -> str:
    """The node test for a name; step: the name of the step above it, where the query has one."""
    names = _spellings().get(name, {name: ()})
    present = {s: () if step in homes else tuple(h for h in homes if h in occurring) or homes
               for s, homes in names.items() if s in occurring} or {name: ()}
    if not namespaced and list(present) == [name] and not present[name]:
        return name
    tests = []
    for spelling, homes in sorted(present.items(), key=lambda item: item[0] != name):
        condition = f"local-name()='{spelling}'" if namespaced else f"self::{spelling}"
        if homes:
            above = " or ".join(f"local-name(..)='{h}'" if namespaced else f"parent::{h}" for h in homes)
            condition = f"{condition} and ({above})"
        tests.append(condition)
    if len(tests) == 1 and not namespaced:
        return f"{next(iter(present))}[{above}]" if homes else next(iter(present))
    return f"*[{' or '.join(tests)}]"
