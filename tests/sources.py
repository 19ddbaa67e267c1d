"""What the modules of the product import, for tests of the house."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["imports", "imports_of"]


@cache
def imports_of(path: Path) -> tuple[list[ast.Import | ast.ImportFrom], list[ast.Import | ast.ImportFrom]]:
    """The import statements of a module, and those of them that are not for annotations alone. Two files of tests ask
    for those of the whole product, which takes more than a second to parse."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return list(imports(tree, annotations=True)), list(imports(tree, annotations=False))


def imports(tree: ast.AST, *, annotations: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements of a tree, wherever in it. annotations: also those for annotations alone (``if
    TYPE_CHECKING``). No expression is looked into: that would take most of the time."""
    if isinstance(tree, ast.Import | ast.ImportFrom):
        yield tree
    elif annotations or not (isinstance(tree, ast.If) and isinstance(tree.test, ast.Name)
                             and tree.test.id == "TYPE_CHECKING"):
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            for inner in getattr(tree, name, ()):
                yield from imports(inner, annotations=annotations)
