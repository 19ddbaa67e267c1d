"""The product is written for readers: what others call says what it does, and a name says what it holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType
from typing import Final

ROOT = Path(__file__).parents[2]
#: Names that say nothing of what they hold.
VAGUE: Final = frozenset((
    "found", "given", "it", "known", "left", "made", "one", "said", "thing", "things", "told", "wanted"))
#: Functions in which such a name still stands; there may only be fewer.
MOST_VAGUE: Final = 11


def sources() -> Iterator[Path]:
    """The modules of the product."""
    for room in ("sssjob", "translators", "psij", "templates"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if not any(part.is_symlink() for part in path.parents):
                yield path


def product() -> Iterator[tuple[str, ast.Module]]:
    """The modules of the product by their paths."""
    for path in sources():
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods, also of nested classes, but not those inside functions."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.If | ast.Try):
            yield from functions(node.body)


def compiled() -> Iterator[tuple[str, CodeType]]:
    """The functions and methods of the product, also of nested classes, by their modules' paths; from the bytecode that
    Python keeps, which is read in a tenth of the time of the text."""
    for path in sources():
        code = SourceFileLoader(path.stem, str(path)).get_code(path.stem)
        assert code is not None
        yield from ((str(path.relative_to(ROOT)), function) for function in inside(code))


def inside(code: CodeType) -> Iterator[CodeType]:
    """The functions in a module or class, but not those inside functions."""
    for const in code.co_consts:
        if isinstance(const, CodeType) and not const.co_name.startswith("<"):
            yield from [const] if const.co_flags & CO_OPTIMIZED else inside(const)


def bound(function: CodeType) -> set[str]:
    """The names that a function and what is inside it bind."""
    return {*function.co_varnames, *function.co_cellvars}.union(
        *(bound(const) for const in function.co_consts if isinstance(const, CodeType)))


def test_what_others_call_has_a_docstring() -> None:
    """In private modules too: whoever reads the caller looks there."""
    assert [f"{path}:{name}" for path, tree in product() for name in undocumented(tree)] == []


def undocumented(tree: ast.Module) -> list[str]:
    """Line and name of each public function of a module that has no docstring."""
    return [f"{function.lineno} {function.name}" for function in functions(tree.body)
            if not function.name.startswith("_") and not any(map(is_overload, function.decorator_list))
            and ast.get_docstring(function) is None]


def is_overload(decorator: ast.expr) -> bool:
    """Whether a decorator makes one of several signatures, the last of which has the docstring."""
    return isinstance(decorator, ast.Name) and decorator.id == "overload"


def test_names_say_what_they_hold() -> None:
    vague = [f"{path}:{function.co_firstlineno} {function.co_name}: {', '.join(sorted(names))}"
             for path, function in compiled() if (names := VAGUE & bound(function))]
    assert len(vague) <= MOST_VAGUE, vague
