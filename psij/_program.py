"""Which differences between psij-python and this package touch a program, by its text: nothing of it is run.

What a program does is guessed from names and literals, as written; a name that is bound to something else is taken for
psij's all the same, and what is put together at run time is not seen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from psij._plugins import EXECUTORS, LAUNCHERS


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
    "version": Difference("executors and launchers have versions of their own here, which do not satisfy the "
                          "constraint: leave it out", stops=True),
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
_CLASSES: Final = {"JobAttributes", "JobSpec", "ResourceSpecV1"}
_CONTEXTS: Final = {"multiprocessing", "mp", "context", "ctx", "get_context"}
#: What forks, by its name: the modules that it is from, or names by which these are known.
_FORKING: Final[dict[str, set[str]]] = {
    "fork": {"os"}, "Process": _CONTEXTS, "Pool": _CONTEXTS, "ProcessPoolExecutor": {"concurrent", "futures"}}
_OUR_FILES: Final = re.compile(r"(?:^|/)\.psij(?:/|$)")
_STAGES: Final = {"STAGE_IN", "STAGE_OUT", "CLEANUP"}


def read_program(path: Path) -> ast.Module:
    """The program in a file. Raises OSError; SyntaxError, ValueError for what is no Python, or is nested too deep."""
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (RecursionError, MemoryError):
        raise ValueError("nested too deep, or too large") from None


def differences_of(program: ast.Module) -> list[Touched]:
    """The places that differences touch, by line; each name once a line."""
    texts = _documentation(program)
    nodes = [node for node in ast.walk(program) if id(node) not in texts]
    places = [*(place for node in nodes for look in _LOOKS for place in look(node)), *_metadata(nodes), *_forks(nodes),
              *(place for scope in _scopes(program) for place in _one_by_one(scope))]
    return sorted({(place.line, place.name): place for place in places}.values())


def _documentation(program: ast.Module) -> set[int]:
    """The ids of texts that are statements of their own, as docstrings are."""
    return {id(node.value) for node in ast.walk(program) if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)}


def _scopes(program: ast.Module) -> list[list[ast.AST]]:
    """The nodes of the module outside of functions, and those of each function."""
    functions = [node for node in ast.walk(program) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    within = {id(node) for function in functions for node in ast.walk(function)}
    return [[node for node in ast.walk(program) if id(node) not in within],
            *(list(ast.walk(each)) for each in functions)]


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
    module_there = __import__(module, fromlist=[name])
    return hasattr(module_there, name) or _is_there(f"{module}.{name}")


def _calls(node: ast.AST) -> Iterator[Touched]:
    if not isinstance(node, ast.Call):
        return
    name = _last(node.func)
    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    first = _text(node.args[0]) if node.args else _text(keywords.get("name"))
    if name == "get_instance" and first == "rp":
        yield Touched(node.lineno, "executor-rp", 'get_instance("rp")')
    constraint = _text(node.args[1] if len(node.args) > 1 else keywords.get("version_constraint"))
    if name == "get_instance" and first and constraint and not all(
            kind.fits(first, constraint) for kind in (EXECUTORS, LAUNCHERS)):
        yield Touched(node.lineno, "version", f"get_instance({first!r}, {constraint!r})")
    if (name == "get_instance" and first == "local") or name == "LocalJobExecutor":
        yield Touched(node.lineno, "local-limit", "executor local")
    if name == "ResourceSpecV1":
        if "process_count" in keywords and not {"node_count", "processes_per_node"} & keywords.keys():
            yield Touched(node.lineno, "processes", "process_count alone")
        for keyword in sorted(_COUNTS & keywords.keys()):
            if _is_zero(keywords[keyword]):
                yield Touched(node.lineno, "zero-count", f"{keyword}=0")
    directory = _text(keywords.get("directory"))
    if name == "JobSpec" and directory and not directory.startswith(("/", "~/")):
        yield Touched(node.lineno, "directory", f"directory={directory!r}")
    duration = keywords.get("duration")
    if duration is not None and _is_no_time(duration):
        yield Touched(duration.lineno, "no-limit", "duration=timedelta(0)")
    yield from _custom(name, node, keywords.get("custom_attributes"))


def _custom(name: str, call: ast.Call, attributes: ast.expr | None) -> Iterator[Touched]:
    """Custom attributes that no executor takes."""
    names = attributes.keys if isinstance(attributes, ast.Dict) else []
    if name == "set_custom_attribute":
        names = [*names, *call.args[:1]]
    for key in names:
        text = _text(key)
        if key is not None and text is not None and "." not in text:
            yield Touched(key.lineno, "custom-prefix", repr(text))


def _one_by_one(nodes: list[ast.AST]) -> Iterator[Touched]:
    """What ``_calls`` looks for in the words of a class, in members that are set afterwards."""
    kinds: dict[str, str] = {}          # of objects, by the text that names them
    stated: dict[str, dict[str, ast.Assign]] = {}
    for node in nodes:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(node.value, ast.Call) and _last(node.value.func) in _CLASSES:
                kinds[ast.unparse(target)] = _last(node.value.func)
                members = stated.setdefault(ast.unparse(target), {})
                members.update((word.arg or "", node) for word in node.value.keywords)
            if isinstance(target, ast.Attribute):
                stated.setdefault(ast.unparse(target.value), {})[target.attr] = node
    for name, kind in kinds.items():
        yield from _members(kind, stated.get(name, {}))


def _members(kind: str, stated: dict[str, ast.Assign]) -> Iterator[Touched]:
    """stated: the statement that sets a member last, by the member's name."""
    own = {name: node for name, node in stated.items() if not isinstance(node.value, ast.Call)
           or _last(node.value.func) not in _CLASSES}
    if kind == "ResourceSpecV1":
        if "process_count" in own and not {"node_count", "processes_per_node"} & stated.keys():
            yield Touched(own["process_count"].lineno, "processes", "process_count alone")
        for name in sorted(_COUNTS & own.keys()):
            if _is_zero(own[name].value):
                yield Touched(own[name].lineno, "zero-count", f"{name}=0")
    directory = _text(own["directory"].value) if kind == "JobSpec" and "directory" in own else None
    if directory and not directory.startswith(("/", "~/")):
        yield Touched(own["directory"].lineno, "directory", f"directory={directory!r}")
    if kind == "JobAttributes" and "duration" in own and _is_no_time(own["duration"].value):
        yield Touched(own["duration"].lineno, "no-limit", "duration=timedelta(0)")


def _is_no_time(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _last(node.func) == "timedelta" \
        and all(_is_zero(argument) for argument in (*node.args, *(word.value for word in node.keywords)))


def _metadata(nodes: list[ast.AST]) -> Iterator[Touched]:
    """Metadata of statuses: of what is named so, of what ``wait`` gave, and of what is a JobStatus by annotation."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None and _is_status(
                node.value, names):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
        if isinstance(node, ast.arg) and node.annotation is not None and "JobStatus" in ast.unparse(node.annotation):
            names.add(node.arg)
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr == "metadata" and _is_status(node.value, names):
            yield Touched(node.lineno, "metadata", ".metadata")


def _is_status(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Await):
        return _is_status(node.value, names)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "wait"
    name = _last(node)
    return name in names or "status" in name.lower()


def _forks(nodes: list[ast.AST]) -> Iterator[Touched]:
    """What forks; not what another module has by the same name, as psutil.Process."""
    modules = {alias.asname or alias.name: node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)
               for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.Call) and (name := _last(node.func)) in _FORKING:
            base = _base(node.func.value) if isinstance(node.func, ast.Attribute) else modules.get(name, "")
            if base.split(".")[0] in _FORKING[name]:
                yield Touched(node.lineno, "fork", name)


def _base(node: ast.AST) -> str:
    return _last(node.func) if isinstance(node, ast.Call) else _last(node)


def _names(node: ast.AST) -> Iterator[Touched]:
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id == "psij" and not _has("psij", node.attr):
            yield Touched(node.lineno, "module", f"psij.{node.attr}")
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
    if text is not None and _OUR_FILES.search(text):
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
