"""Which differences between psij-python and this package touch a program, by its text: nothing of it is run.

What a program does is guessed from names and literals, as written; a name that is bound to something else is taken for
psij's all the same, and what is put together at run time is not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Difference", "Touched", "differences_of", "read_program"]


class Difference(NamedTuple):
    """A difference, and what to do about it."""

    text: str
    stops: bool = False     # the program does not run as it is


class Touched(NamedTuple):
    """A place in a program that a difference touches. line: from 1."""

    line: int
    name: str
    what: str


#: Differences by name; docs/psij.md has all of them.
DIFFERENCES: Final[dict[str, Difference]] = {
    "module": Difference("this package has no such module or name", stops=True),
    "executor-rp": Difference("executor rp (RADICAL-Pilot) is not there: use the executor of the resource manager",
                              stops=True),
    "variables": Difference("${NAME} in arguments and values of the environment is replaced where the job's "
                            "environment has NAME; write $${NAME} for the text itself"),
    "processes": Difference("process_count without node_count spreads over whatever nodes have room: give node_count=1 "
                            "for one node"),
    "zero-count": Difference("a count of 0 is taken for one that is not stated"),
    "no-limit": Difference("timedelta(0) is no time limit on every executor, and is read back as None"),
    "local-limit": Difference("executor local keeps the time limit, which is 10 minutes unless duration states "
                              "another; duration=None is none"),
    "metadata": Difference("status.metadata is always there: a dictionary with facts of the job; go through .items()"),
    "callbacks": Difference("callbacks come from one thread of psij's own, and not from the thread that submits"),
    "fork": Difference("a forked child follows jobs of its parent for itself: a cancel there is FAILED by a signal for "
                       "the parent"),
    "directory": Difference("a relative directory is taken from the current directory of the program that submits"),
    "custom-prefix": Difference("a custom attribute without the prefix of an executor, as in slurm.constraint, has no "
                                "effect"),
    "type-errors": Difference("wrong types raise TypeError or InvalidJobException; typeguard is not used"),
    "states": Difference("STAGE_IN, STAGE_OUT and CLEANUP come only for jobs that stage or clean up"),
    "files": Difference("the files in ~/.psij are for the package itself; their names and contents differ"),
}
_COUNTS: Final = {"node_count", "process_count", "processes_per_node", "cpu_cores_per_process",
                  "gpu_cores_per_process"}
_CALLBACKS: Final = {"set_job_status_callback", "JobStatusCallback"}
_STAGES: Final = {"STAGE_IN", "STAGE_OUT", "CLEANUP"}


def read_program(path: Path) -> ast.Module:
    """The program in a file. Raises OSError; SyntaxError, ValueError for what is no Python, or is nested too deep."""
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (RecursionError, MemoryError):
        raise ValueError("nested too deep, or too large") from None


def differences_of(program: ast.Module) -> list[Touched]:
    """The places that differences touch, by line; each name once a line."""
    touched = {(one.line, one.name): one for node in ast.walk(program) for look in _LOOKS for one in look(node)}
    return sorted(touched.values())


def _imports(node: ast.AST) -> Iterator[Touched]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == "psij" and not _is_there(alias.name):
                yield Touched(node.lineno, "module", f"import {alias.name}")
            if alias.name.split(".")[0] == "typeguard":
                yield Touched(node.lineno, "type-errors", f"import {alias.name}")
    if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
        if node.module.split(".")[0] == "typeguard":
            yield Touched(node.lineno, "type-errors", f"from {node.module} import")
        if node.module.split(".")[0] == "psij":
            for alias in node.names:
                if alias.name != "*" and not _has(node.module, alias.name):
                    yield Touched(node.lineno, "module", f"from {node.module} import {alias.name}")


def _public(module: str) -> str:
    """The module up to its first private part: one below that is not loaded, for it may be a program."""
    parts = module.split(".")
    private = next((number for number, part in enumerate(parts) if part.startswith("_")), len(parts))
    return ".".join(parts[:private + 1])


def _is_there(module: str) -> bool:
    try:
        return find_spec(_public(module)) is not None
    except ImportError:         # one above it is not there
        return False


def _has(module: str, name: str) -> bool:
    if not _is_there(module):
        return False
    if _public(module) != module or module.rpartition(".")[2].startswith("_"):
        return True         # nobody knows: what is private is not loaded
    found = __import__(module, fromlist=[name])
    return hasattr(found, name) or _is_there(f"{module}.{name}")


def _calls(node: ast.AST) -> Iterator[Touched]:
    if not isinstance(node, ast.Call):
        return
    name = _last(node.func)
    keywords = {one.arg: one.value for one in node.keywords if one.arg is not None}
    first = _text(node.args[0]) if node.args else _text(keywords.get("name"))
    if name == "get_instance" and first == "rp":
        yield Touched(node.lineno, "executor-rp", 'get_instance("rp")')
    if (name == "get_instance" and first == "local") or name == "LocalJobExecutor":
        yield Touched(node.lineno, "local-limit", "executor local")
    if name == "ResourceSpecV1":
        if "process_count" in keywords and not {"node_count", "processes_per_node"} & keywords.keys():
            yield Touched(node.lineno, "processes", "process_count alone")
        for one in sorted(_COUNTS & keywords.keys()):
            if _is_zero(keywords[one]):
                yield Touched(node.lineno, "zero-count", f"{one}=0")
    directory = _text(keywords.get("directory"))
    if name == "JobSpec" and directory and not directory.startswith(("/", "~/")):
        yield Touched(node.lineno, "directory", f"directory={directory!r}")
    duration = keywords.get("duration")
    if isinstance(duration, ast.Call) and _last(duration.func) == "timedelta" \
            and all(_is_zero(one) for one in (*duration.args, *(word.value for word in duration.keywords))):
        yield Touched(duration.lineno, "no-limit", "duration=timedelta(0)")
    if name in ("fork", "Process", "Pool", "ProcessPoolExecutor"):
        yield Touched(node.lineno, "fork", name)
    yield from _custom(name, node, keywords.get("custom_attributes"))


def _custom(name: str, call: ast.Call, given: ast.expr | None) -> Iterator[Touched]:
    """Custom attributes that no executor takes."""
    names = given.keys if isinstance(given, ast.Dict) else []
    if name == "set_custom_attribute":
        names = [*names, *call.args[:1]]
    for one in names:
        text = _text(one)
        if one is not None and text is not None and "." not in text:
            yield Touched(one.lineno, "custom-prefix", repr(text))


def _names(node: ast.AST) -> Iterator[Touched]:
    if isinstance(node, ast.Attribute):
        if node.attr == "metadata":
            yield Touched(node.lineno, "metadata", ".metadata")
        if node.attr in _STAGES:
            yield Touched(node.lineno, "states", node.attr)
        if node.attr == "TypeCheckError":
            yield Touched(node.lineno, "type-errors", node.attr)
    if isinstance(node, ast.Attribute | ast.Name) and (name := _last(node)) in _CALLBACKS:
        yield Touched(node.lineno, "callbacks", name)


def _texts(node: ast.AST) -> Iterator[Touched]:
    text = _text(node)
    if text is not None and "${" in text.replace("$${", "").replace("\\${", ""):
        yield Touched(getattr(node, "lineno", 1), "variables", "${...}")
    if text is not None and ".psij" in text:
        yield Touched(getattr(node, "lineno", 1), "files", ".psij")


_LOOKS: Final[tuple[Callable[[ast.AST], Iterator[Touched]], ...]] = (_imports, _calls, _names, _texts)


def _last(node: ast.AST) -> str:
    """The last part of a dotted name; empty for what is none."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, bool | str | bytes) and node.value == 0
