"""The rooms of the project and what each may import: one table, and by name the imports that do not keep to it yet.

Every import counts, whether it stands at the top of a module or inside a function; those for annotations alone
(``if TYPE_CHECKING``) do not. A room is a package, or for the modules that lie in ``sssjob/`` itself a line below.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.sources import imports, imports_of

ROOT: Final = Path(__file__).parents[1]
LINKED: Final = ("schemas", "templates", "translators")     # installed inside sssjob

#: Modules in sssjob/ itself -> the room they belong to.
FLAT: Final = {module: room for room, modules in {
    "ground": "errors limits packages places processes users version",
    "document": "consequences findings rules",
    "front": "front __main__",
}.items() for module in modules.split()}

BELOW: Final = "ground lrm document"
#: Room -> rooms that it may import, beside itself.
MAY_IMPORT: Final = {room: set(others.split()) for room, others in {
    "ground": "",
    "lrm": "ground",
    "templates": "lrm",
    "psij": "ground lrm templates",
    "schemas": "",
    "document": "ground lrm",
    "request": BELOW,
    "xml": f"{BELOW} request schemas",
    "query": f"{BELOW} xml request",
    "validation": f"{BELOW} xml request schemas",
    "translators": f"{BELOW} xml request validation templates psij",
    "conversion": f"{BELOW} xml request validation query translators templates",
    "derive": f"{BELOW} xml request validation query translators templates conversion schemas sssrmap",
    "accounting": f"{BELOW} xml request validation query translators templates conversion",
    "mjf": f"{BELOW} xml request validation query translators templates conversion psij",
    "fluxexec": f"{BELOW} xml request validation query translators templates conversion psij mjf",
    "run": f"{BELOW} xml request validation query translators templates conversion psij mjf",
    "sssrmap": f"{BELOW} xml request validation query conversion accounting run",
    "serve": f"{BELOW} xml request validation query translators conversion accounting run sssrmap",
}.items()}
#: Rooms above all others: the command line, and the package's own front door.
ABOVE_ALL: Final = {"cli", "front"}

#: Imports against the table: (module, module). None may be added; whoever mends one takes it out.
EXCEPTIONS: Final = {
    ("sssjob.document.element", "sssjob.xml._twin_dicts"),
    ("sssjob.document.model", "sssjob.xml._twin_dicts"),
}

#: Imports inside functions that close a circle of modules: (module, module). None may be added, as with the exceptions.
ARROWS_BACK: Final = {
    ("sssjob.document.element", "sssjob.xml._twin_dicts"),
    ("sssjob.document.model", "sssjob.xml._twin_dicts"),
    ("sssjob.translators.scripts.body", "sssjob.translators.scripts.submitting"),
}


@cache
def modules() -> dict[str, Path]:
    """Name of each module of the product -> its file."""
    modules: dict[str, Path] = {}
    for top in ("psij", "sssjob", *LINKED):
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = list(path.relative_to(ROOT).with_suffix("").parts)
            if any(folder.is_symlink() for folder in path.parents):
                continue
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            modules[f"sssjob.{name}" if top in LINKED else name] = path
    return modules


def room(module: str) -> str:
    """The room of a module of the product."""
    top, _, rest = module.partition(".")
    first = rest.partition(".")[0]
    if top == "psij":
        return "psij"
    return FLAT.get(first) or first or "front"


def imported(statements: Iterable[ast.Import | ast.ImportFrom]) -> Iterator[str]:
    """The modules of the product that are imported."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            assert not node.level, "relative imports are not used here"
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in modules() else node.module or ""


@cache
def arrows() -> frozenset[tuple[str, str]]:
    """(module, module that it imports), of all the product."""
    return frozenset((module, other) for module, path in modules().items()
                     for other in set(imported(imports_of(path.resolve())[1])) & modules().keys()
                     if other != module)


@cache
def against_the_table() -> frozenset[tuple[str, str]]:
    """(module, module that it must not import), of all the product."""
    return frozenset((module, other) for module, other in arrows() if room(module) not in ABOVE_ALL
                     and room(other) != room(module) and room(other) not in MAY_IMPORT[room(module)])


def test_every_module_has_a_room() -> None:
    assert {room(module) for module in modules()} == MAY_IMPORT.keys() | ABOVE_ALL


def test_rooms_import_what_lies_below() -> None:
    """A new arrow against the table is an error, whatever it is for: the table or the module has to change."""
    assert against_the_table() - EXCEPTIONS == set()


def test_exceptions_still_stand() -> None:
    assert EXCEPTIONS - against_the_table() == set()


def test_no_arrow_goes_round() -> None:
    """What lies below can never import what lies above, by no chain of rooms."""
    def reached(room: str, seen: frozenset[str]) -> set[str]:
        return {room}.union(*(reached(other, seen | {room}) for other in MAY_IMPORT[room] - seen))

    assert not [room for room, others in MAY_IMPORT.items() for other in others if room in reached(other, frozenset())]


def in_circles(graph: frozenset[tuple[str, str]]) -> set[tuple[str, str]]:
    """The arrows of a graph that are part of a circle: what is left when ends are taken away again and again."""
    remaining = set(graph)
    while True:
        importing, imported_ones = {m for m, _ in remaining}, {m for _, m in remaining}
        inner = {(m, other) for m, other in remaining if m in imported_ones and other in importing}
        if inner == remaining:
            return remaining
        remaining = inner


def test_modules_import_in_one_direction() -> None:
    """An import inside a function hides a circle from Python, not from who reads the code."""
    assert in_circles(arrows() - ARROWS_BACK) == set()
    assert {arrow for arrow in ARROWS_BACK if not in_circles(arrows() - ARROWS_BACK | {arrow})} == set()


def test_types_and_functions_are_told_apart() -> None:
    tree = ast.parse("if TYPE_CHECKING:\n    import sssjob.cli\ndef f():\n    from sssjob import errors\nimport psij\n")
    assert list(imported(imports(tree, annotations=False))) == ["sssjob.errors", "psij"]
