"""What a job asks of names (nodes, features, queues): all of some, any of others, none of the rest; and the way back.

A job asks by one expression over everything in its Requested block. ``choices`` takes out of it what is asked of one
name of property, for a writer that says it in the expressions of its target; what stands in an alternative with other
properties no option can say alone. ``parsed`` and ``put`` make properties of such an expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from sssjob.document.element import Property
from sssjob.document.lexical import LexicalError
from sssjob.document.nodeset import NodeSet
from sssjob.request.asked import GROUP, GROUPS, JOB, NEAREST, TASK, Entry
from sssjob.request.tree import SETS, AllOf, Node, Not, Predicate, Preferred, properties_of
from sssjob.translators.scripts.rows import APPROXIMATED, SITE, Place, Special, place

if TYPE_CHECKING:
    from sssjob.translators.scripts.asking import Asking
    from sssjob.translators.scripts.raw import Option
    from sssjob.translators.scripts.reading import Reading

__all__ = [
    "MOST", "Choice", "Either", "Every", "Term", "any_of", "choices", "drop", "expanded", "fits", "groups_of",
    "host_of_each", "infix", "is_name", "listed", "names_in", "negated", "none_of", "one_host", "parsed", "plain",
    "put", "sayable", "simple_features", "site_resource", "terms"
]

#: Names, or alternatives, that are written one by one.
MOST: Final = 64
_NAME: Final = re.compile(r"[^\s,:;+=&|@'\"\\#*()<>]{1,255}")
#: Brackets within one another.
_DEPTH: Final = 50
_UNDERSTOOD: Final = frozenset(("aggregation", "delimiter", "op", "conj", "group", "preference"))


@dataclass(frozen=True, slots=True)
class Term:
    """A name that is wanted or not. kind: ``name``; ``set``, a range of names any of which will do; ``other``, a
    pattern or a comparison. entry: the property that says it, where it comes from a job."""

    name: str
    wanted: bool = True
    kind: str = "name"
    entry: Entry | None = None


@dataclass(frozen=True, slots=True)
class Every:
    """All of them are demanded."""

    items: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of them is."""

    items: tuple[Choice, ...]


Choice = Term | Every | Either


# -- out of a job
def choices(asking: Asking, tag: str, levels: Sequence[str] | None = None) -> list[Choice]:
    """What is asked of a property, one item for each condition that is demanded. levels: where it counts; None: of
    names of nodes and features at every level of the request, for all of them must hold, of others at the nearest.

    A finding tells of what only an alternative with other properties asks for, and of wishes and weights."""
    if levels is not None or tag not in SETS:
        return _at_nearest(asking, tag, levels or NEAREST)
    stated = {e.level for e in asking.said(tag)}
    all_choices = [choice for some in _REQUESTS if not stated.isdisjoint(some)
                   for choice in _at_nearest(asking, tag, some)]
    if len(all_choices) < 2:
        return all_choices
    return list({_meaning(choice): choice for choice in reversed(all_choices)}.values())[::-1]


#: The levels of a request, each with where it is said: in what stands nearest, or in its defaults.
_REQUESTS: Final = ((JOB,), (GROUP, GROUPS), TASK)


def _meaning(choice: Choice) -> object:
    """What two conditions have in common that demand the same."""
    if isinstance(choice, Term):
        return choice.name, choice.wanted, choice.kind
    return type(choice), tuple(map(_meaning, choice.items))


def _at_nearest(asking: Asking, tag: str, levels: Sequence[str]) -> list[Choice]:
    """What is asked of a property where it is said nearest."""
    entries = asking.find(tag, levels)
    for e in entries:
        e.understood |= _UNDERSTOOD
    if not entries:
        return []
    if not entries[0].slot or asking.demands(entries[0].level):
        return [_of_property(e, True) for e in entries]
    by_item = {id(e.item): e for e in entries}
    choices_made = []
    for node in _demanded(asking.expression(entries[0])):
        tags = {p.tag for p in properties_of(node)}
        if tag in tags and len(tags) > 1:
            for e in _entries(node, by_item):
                asking.dropped(e, f"only an alternative asks for {e.text}: {node}")
        elif tag in tags and (choice := _choice(asking, node, by_item)) is not None:
            choices_made.append(choice)
    return choices_made


def _demanded(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, AllOf) else (node,)


def _entries(node: Node, by_item: dict[int, Entry]) -> list[Entry]:
    return [by_item[id(p)] for p in properties_of(node) if id(p) in by_item]


def _choice(asking: Asking, node: Node, by_item: dict[int, Entry]) -> Choice | None:
    """A part of the expression that is about one property alone; None for what is only wished for."""
    if isinstance(node, Predicate):
        return _of_property(by_item[id(node.property)], True)
    if isinstance(node, Not):
        return _of_property(by_item[id(node.item.property)], False)
    if isinstance(node, Preferred):
        entries = _entries(node, by_item)
        asking.note(APPROXIMATED, entries[0], f"{entries[0].tag}: " + (
            "which of them is liked better is not carried" if node.required else
            f"the wish for {', '.join(e.text for e in entries)} is not carried"))
        if not node.required:
            return None
    parts = [part for item in node.items if (part := _choice(asking, item, by_item)) is not None]
    return _one(parts, Every if isinstance(node, AllOf) else Either)


def _one(parts: Sequence[Choice], kind: type[Every | Either]) -> Choice:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def _of_property(entry: Entry, positive: bool) -> Choice:
    """One property: of a List or Range any name is meant, or none."""
    op, how = entry.attributes.get("op", "EQ"), entry.attributes.get("aggregation")
    positive = positive is (op != "NE")
    if op not in ("EQ", "NE") or how not in (None, "List", "Range"):
        return Term(entry.text, positive, "other", entry)
    if how == "Range":
        return Term(entry.text, positive, "set", entry)
    if how is None:
        return Term(entry.text.strip(), positive, "name", entry)
    parts = entry.text.split(entry.attributes.get("delimiter") or ",")
    names = [Term(part.strip(), positive, "name", entry) for part in parts if part.strip()]
    return _one(names, Either if positive else Every) if names else Term(entry.text, positive, "other", entry)


# -- shapes
def is_name(text: str) -> bool:
    """Whether a text can stand in a list: no sign that parts or assigns is in it."""
    return _NAME.fullmatch(text) is not None


def terms(choice: Choice) -> Iterator[Term]:
    """All names in it."""
    if isinstance(choice, Term):
        yield choice
    else:
        for item in choice.items:
            yield from terms(item)


def negated(choice: Choice) -> Choice:
    """What holds where it does not."""
    if isinstance(choice, Term):
        return Term(choice.name, not choice.wanted, choice.kind, choice.entry)
    return (Either if isinstance(choice, Every) else Every)(tuple(map(negated, choice.items)))


def any_of(choice: Choice) -> list[Term] | None:
    """The names of which any will do; None for another shape."""
    items = choice.items if isinstance(choice, Either) else (choice,)
    return [i for i in items if isinstance(i, Term) and i.wanted] if all(
        isinstance(i, Term) and i.wanted for i in items) else None


def none_of(choice: Choice) -> list[Term] | None:
    """The names that are not wanted; None for another shape."""
    return any_of(negated(choice))


def groups_of(choice: Choice) -> list[list[Term]] | None:
    """Alternatives, each a list of names that are all demanded; None where there are more than ``MOST``."""
    if isinstance(choice, Term):
        return [[choice]]
    parts = [groups_of(item) for item in choice.items]
    some = [part for part in parts if part is not None]
    if len(some) < len(parts):
        return None
    if isinstance(choice, Either):
        alternatives = [group for part in some for group in part]
    else:
        count = 1
        for part in some:
            count *= len(part)
        if count > MOST:
            return None
        alternatives = [[term for group in combined for term in group] for combined in product(*some)]
    return alternatives if len(alternatives) <= MOST else None


def infix(choice: Choice, spell: Callable[[Term], str], both: str, either: str, inner: bool = False) -> str:
    """As text with two operators, of which ``both`` binds closer, and round brackets."""
    if isinstance(choice, Term):
        return spell(choice)
    sign = both if isinstance(choice, Every) else either
    closer = isinstance(choice, Every) and len(choice.items) > 1
    text = sign.join(infix(item, spell, both, either, closer) for item in choice.items)
    return f"({text})" if inner and isinstance(choice, Either) else text


def sayable(asking: Asking, choice: Choice, against: Callable[[Term], str]) -> bool:
    """Whether the target can say every name of a condition; if not, each property in it is dropped with the reason.

    against: why a term cannot be said; empty: it can."""
    reasons = [(term, why) for term in terms(choice) if (why := against(term))]
    if reasons:
        drop(asking, choice, reasons[0][1])
    return not reasons


def drop(asking: Asking, choice: Choice, why: str) -> None:
    """The findings for a condition that is not carried, at each place that says the same."""
    reported = {id(entry) for entry, _ in asking.lost}
    for item in {id(t.entry): t.entry.item for t in terms(choice) if t.entry is not None}.values():
        for entry in asking.said(item.tag):
            if entry.item == item and id(entry) not in reported:
                reported.add(id(entry))
                asking.dropped(entry, why)


def expanded(terms_found: Iterable[Term], most: int = MOST) -> list[str] | None:
    """The names of nodes of terms that are names and ranges, each once; None where they are no such or too many."""
    names: dict[str, None] = {}
    for term in terms_found:
        if term.kind == "other":
            return None
        some: Iterable[str] = (term.name,)
        if term.kind == "set":
            try:
                nodes = NodeSet.parse_range(term.name)
            except LexicalError:
                return None
            if nodes.count > most:
                return None
            some = nodes
        names.update(dict.fromkeys(some))
    return list(names) if len(names) <= most else None


def names_in(terms_found: Iterable[Term]) -> str:
    """The names for people."""
    return ", ".join(dict.fromkeys(term.name for term in terms_found))


def simple_features(asking: Asking) -> list[Entry]:
    """Features that are all simply wanted, for a target whose lists hold no other condition; others are told."""
    entries = []
    for choice in choices(asking, "Feature"):
        if isinstance(choice, Term) and choice.wanted and choice.kind == "name" and choice.entry is not None:
            entries.append(choice.entry)
        else:
            drop(asking, choice, f"{asking.dialect.title} takes features that are all wanted, no alternatives of them")
    return entries


def site_resource(asking: Asking, entry: Entry | None, name: str, what: str = "resource") -> None:
    """The finding for a name that the target takes for that of a resource (what), which an administrator has to define
    there; a script of the same dialect had it already, and a site profile that gave the name knows it."""
    site, tag = asking.context.site, "" if entry is None else entry.tag
    if asking.source == asking.dialect.name or (site is not None and name in site.map.get(tag, {}).values()):
        return
    asking.note(SITE, entry, f"asked for as the {what} {name}, a name that the site has to know")


def one_host(asking: Asking, why: str) -> Entry | None:
    """The one host that is asked for by name; other conditions on nodes are told with the reason. Of several that are
    all asked for none is taken: the whole job would be on it."""
    hosts: list[tuple[Term, Entry]] = []
    for choice in choices(asking, "Node"):
        if isinstance(choice, Term) and choice.wanted and choice.kind == "name" and choice.entry is not None \
                and is_name(choice.name):
            hosts.append((choice, choice.entry))
        else:
            drop(asking, choice, why)
    if len(hosts) == 1:
        return hosts[0][1]
    for choice, _ in hosts:
        drop(asking, choice, why)
    return None


def host_of_each(asking: Asking, nodes: int | None, tasks: int | None) -> list[str]:
    """The hosts that the first nodes of a job are to be, where all of them are asked for by name; empty where they are
    not, or are more than its nodes. Without a number of nodes they are as many as tasks, where that is said. One name
    is that of all nodes, but in Slurm, whose --nodelist names some of them. Any of so many names as there are nodes
    are all of them."""
    stated = asking.said("Node")
    if len(stated) == 1 and nodes and nodes > 1 and "aggregation" in stated[0].attributes:
        asked_for = choices(asking, "Node")
        terms = [term for choice in asked_for for term in (choice.items if isinstance(choice, Either) else (choice,))
                 if isinstance(term, Term) and term.wanted]
        every = expanded(terms) or []
        return every if len(asked_for) == 1 and len(every) == nodes and all(map(is_name, every)) else []
    if len(stated) < 2 and (not stated or nodes in (None, 1) or asking.source != "slurm"):
        return []
    every_condition = choices(asking, "Node")
    unwanted = [c for c in every_condition if isinstance(c, Term) and not c.wanted]
    conditions = [c for c in every_condition if c not in unwanted]
    names = [c.name for c in conditions if isinstance(c, Term) and c.wanted and c.kind == "name" and is_name(c.name)]
    fit = len(names) <= nodes if nodes else tasks in (None, len(names))
    if not fit or len(names) < len(conditions) or (unwanted and nodes and len(names) < nodes):
        return []
    for entry in {id(term.entry): term.entry for term in unwanted if names}.values():
        asking.note(APPROXIMATED, entry, "left out, for no host is taken but those that are asked for by name", "info")
    return names


# -- into a job
_TOKEN: Final = re.compile(r"""\s*(?:(?P<sign>&&|\|\||[&|()]|!(?![=]))|"""
                           r"""(?P<atom>(?:"[^"]*"|'[^']*'|!=|[^&|()!"'\s])(?:"[^"]*"|'[^']*'|!=|[^&|()!"'])*))""")


def parsed(text: str, term: Callable[[str], Choice | None], *, mixed: bool = True) -> Choice | None:
    """The expression that a text stands for: names joined by ``&`` or ``&&``, ``|`` or ``||``, ``!`` before what is not
    wanted, round brackets. None for what is none.

    term: what stands between the signs; None where that is no name. mixed: whether both operators may stand side by
    side, and one binds closer; else each wants brackets."""
    tokens: list[tuple[str, str]] = []
    at, text = 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        tokens.append((match["sign"][0] if match["sign"] else "", (match["atom"] or "").strip()))
        at = match.end()
    try:
        parser = _Parser(tokens, term, mixed)
        expression = parser.either(0)
    except ValueError:
        return None
    return expression if parser.at == len(tokens) else None


class _Parser:
    """A recursive descent; ValueError for what has no form."""

    def __init__(self, tokens: list[tuple[str, str]], term: Callable[[str], Choice | None], mixed: bool) -> None:
        self.tokens, self.term, self.mixed, self.at = tokens, term, mixed, 0

    def take(self, sign: str) -> bool:
        """Go past a sign if it comes next; whether it did."""
        if self.at < len(self.tokens) and self.tokens[self.at][0] == sign:
            self.at += 1
            return True
        return False

    def either(self, depth: int) -> Choice:
        """Parts of which one is wanted. depth: brackets that are open. Raises ValueError."""
        parts = [self.both(depth)]
        while self.take("|"):
            parts.append(self.both(depth))
        if len(parts) > 1 and not self.mixed and any(at_once for _, at_once in parts):
            raise ValueError("two operators side by side")
        return _one([part for part, _ in parts], Either)

    def both(self, depth: int) -> tuple[Choice, bool]:
        """Parts that are all wanted, and whether there are several."""
        parts = [self.one(depth)]
        while self.take("&"):
            parts.append(self.one(depth))
        return _one(parts, Every), len(parts) > 1

    def one(self, depth: int) -> Choice:
        """One name, or an expression in brackets. Raises ValueError."""
        if depth > _DEPTH:
            raise ValueError("too deep")
        if self.take("!"):
            return negated(self.one(depth + 1))
        if self.take("("):
            expression = self.either(depth + 1)
            if not self.take(")"):
                raise ValueError("a bracket is not closed")
            return expression
        made_of = self.term(self.tokens[self.at][1]) if self.at < len(self.tokens) and not self.tokens[self.at][0] \
            else None
        if made_of is None:
            raise ValueError("no name")
        self.at += 1
        return made_of


def put(reading: Reading, where: str, choice: Choice, option: Option) -> None:
    """Properties at a place below Requested that ask for just that, whatever stands beside them."""
    for name, kind, more in _flat(choice):
        attributes = {"aggregation": "Range"} if kind == "set" else {}
        reading.put(where, name, option, **attributes, **more)


def _flat(choice: Choice) -> Iterator[tuple[str, str, dict[str, str]]]:
    rows: list[tuple[Term, str, list[int]]] = []

    def walk(part: Choice, conj: str) -> None:
        """Add the terms of a choice in order, each with its conjunction and the brackets that it opens and closes."""
        if isinstance(part, Term):
            rows.append((part, conj, [0]))
            return
        first = len(rows)
        for number, item in enumerate(part.items):
            walk(item, conj if number == 0 else "And" if isinstance(part, Every) else "Or")
        if isinstance(part, Either):
            rows[first][2][0] += 1
            rows[-1][2][0] -= 1

    walk(choice, "And")
    for term, conj, (group,) in rows:
        more = {"conj": conj} if conj == "Or" else {}
        more |= {"op": "NE"} if not term.wanted else {}
        yield term.name, term.kind, more | ({"group": str(group)} if group else {})


# -- lists
def listed(option: str, tag: str, separator: str = ",", *, join: Callable[[Reading], Option] | None = None,
           what: str = "") -> Special:
    """The row of an option that takes several names, any of which will do, such as queues.

    join: the option as it is meant, where several of a name add up; what: the kind of thing that is named, where other
    managers call such a thing otherwise."""
    at: Place = place(tag)
    parting = re.compile(rf"[{separator}\s]+")

    def read(reading: Reading, options: Mapping[str, Option]) -> None:
        """The names that the option lists: any of them will do."""
        given_option = options[option] if join is None else join(reading)
        text = given_option.value or ""
        names = [text] if "{{" in text else [name for name in parting.split(text) if name]
        if len(names) < 2:
            reading.put(tag, names[0] if names else text, given_option)
        else:
            put(reading, f"Requested/{tag}", Either(tuple(Term(name) for name in dict.fromkeys(names))), given_option)

    def write(asking: Asking) -> list[tuple[str, str | None]]:
        """The option for names of which any will do; other conditions are dropped."""
        choices_written = [c for c in choices(asking, tag, at.levels)
                           if sayable(asking, c, lambda t: _no_name(t, parting))]
        texts: list[str] = []
        for choice in choices_written:
            names = any_of(choice)
            if names is None:
                drop(asking, choice, f"{asking.dialect.title} takes any of several names, and no other condition")
            elif texts:
                drop(asking, choice, f"{texts[0]} is asked for already")
            else:
                texts.append(separator.join(dict.fromkeys(term.name for term in names)))
                if what and asking.source not in ("", asking.dialect.name):
                    asking.note(SITE, names[0].entry, f"{texts[0]} is named as {what}, whose name the site knows")
        return [(option, text) for text in texts]

    return Special((option,), read, write, of=(tag,))


def _no_name(term: Term, parting: re.Pattern[str]) -> str:
    if not term.wanted:
        return f"{term.name} can only be asked for, not excluded"
    if term.kind == "name" and "{{" not in term.name and parting.search(term.name):
        return f"{term.name[:80]!r} is no single name"
    return "" if term.kind == "name" else f"{term.name[:80]} is no list of names"


def fits(asking: Asking, entry: Entry, text: str) -> bool:
    """Whether a name can stand in a list of the target's: no sign that parts or assigns is in it."""
    if is_name(text):
        return True
    asking.dropped(entry, f"{text[:80]!r} is no name for {asking.dialect.title}")
    return False


def plain(entries: list[Entry]) -> bool:
    """Whether properties are simply all demanded."""
    return all(isinstance(e.item, Property) and not e.attributes.keys() & {"op", "conj", "group", "preference"}
               for e in entries)
