"""The body of a job's script on its way into another dialect: what the job asks for that a body may ask in turn, and
where its lines stood."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from functools import cache
from typing import TYPE_CHECKING, Final

from sssjob.document.element import Property
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Job
from sssjob.document.units import to_bytes
from sssjob.limits import LIMITS
from sssjob.lrm.idset import one_range
from sssjob.lrm.variables import FACTS, Facts
from sssjob.translators.bodies import MODES, POSITIONAL, Mode
from sssjob.translators.scripts.layout import one_task
from sssjob.translators.scripts.rows import APPROXIMATED, DEAD, ScriptDocument, dialect_of, dialects

if TYPE_CHECKING:
    from sssjob.translators.scripts.base import Asking, Dialect

__all__ = ["all_facts", "asked", "carry", "facts_of", "known", "mode_of"]

_DEFAULT: Final[Mode] = "shim"      # decisions 48
_SHIM: Final = "# >>> sssjob shim: "


def mode_of(options: object) -> Mode:
    """What is to become of bodies. Raises ValueError for another word."""
    if options not in (None, *MODES):
        raise ValueError(f"body is {', '.join(MODES[:-1])} or {MODES[-1]}")
    return _DEFAULT if options is None else MODES[MODES.index(options)]


@cache
def facts_of(dialect: Dialect | None) -> Facts | None:
    """What the jobs of a dialect find; of one that brings no table only the beginnings of variables are known."""
    if dialect is None:
        return None
    if dialect.body is not None or dialect.name in FACTS:
        return dialect.body or FACTS[dialect.name]
    return Facts(dialect.name, dialect.title, dialect.variables or ("\n",), {}, {}, {})


def all_facts() -> dict[str, Facts]:
    """What the jobs of each manager find: the built-in ones, and those of dialects that brought their own."""
    return FACTS | {dialect.name: dialect.body for dialect in dialects() if dialect.body is not None}


_POSITIONAL: Final = re.compile(POSITIONAL)


def carry(asking: Asking, shebang: str, body: str, first: int) -> str:
    """The body for the target. first: lines of the script before it."""
    body = _with_modules(asking, body, first)
    source, target = facts_of(asking.source_dialect), facts_of(asking.dialect)
    if source is None or target is None:
        return body
    if source is target and _SHIM not in body:
        return body
    if asking.source_dialect is not None:
        _generated(asking, asking.source_dialect, body, first)
        _ordered(asking, asking.source_dialect, body, first)
    codes = {**source.codes, **target.codes} if source.codes or target.codes else ()
    coded = any(f"exit {code}" in body for code in codes)
    called = source.passes and not target.passes and _POSITIONAL.search(body) is not None
    if len(body) <= LIMITS.script_bytes and not (source.in_text(body) or coded or called or _SHIM in body):
        return body
    from sssjob.translators.bodies.carry import Body, carried
    from sssjob.translators.bodies.languages import interpreter

    shell = asking.job.first("Shell")
    program = interpreter(f"#!{shell.text}" if shell is not None and shell.text else shebang)
    return carried(Body(body, program, lambda: known(asking), _submission(asking), _inner(asking),
                        _withdrawing(asking, first)), source, target,
                   mode_of(asking.context.options.get("body")), _tell(asking, first),
                   facts=lambda name: facts_of(dialect_of(name)))


#: What stands before a directive in text: a quote, a bracket, or a line break that is spelled (``\\n``).
_IN_TEXT: Final = r"(?<=[\"'(n`>])%s[ \t]+-{1,2}\w"


def _generated(asking: Asking, dialect: Dialect, body: str, first: int) -> None:
    """Report directives of the source that stand in text, which a script that makes scripts writes into them."""
    if not dialect.prefix or body.count(dialect.prefix) == 0:
        return
    message = (f"a directive of {dialect.title} stands in text that the script writes into another one, and stays; "
               "convert that script by itself")
    for hit in re.finditer(_IN_TEXT % re.escape(dialect.prefix), body):
        line, begin = body.count("\n", 0, hit.start()), body.rfind("\n", 0, hit.start()) + 1
        text = body[begin:].partition("\n")[0]
        if not text.lstrip().startswith("#"):
            _tell(asking, first)("SSS513", "directive", message, line, hit.start() - begin + 1, text)


def _ordered(asking: Asking, dialect: Dialect, body: str, first: int) -> None:
    """Report lines that are no directives, by which the source gets storage ready for the job."""
    for prefix, storage in dialect.orders.items():
        for hit in re.finditer(rf"^{re.escape(prefix)}[ \t].*", body, re.MULTILINE) if prefix in body else ():
            _tell(asking, first)(APPROXIMATED, storage, f"{prefix} asks {dialect.title} for a {storage}; for "
                                 f"{asking.dialect.title} the line is a comment, which stays",
                                 body.count("\n", 0, hit.start()), 1, hit[0])


def _submission(asking: Asking) -> Callable[[str, list[str], bool], tuple[str, str] | str]:
    """How calls of a submit command are said to the target, by the name of their dialect."""
    def submit(name: str, words: list[str], read: bool) -> tuple[str, str] | str:
        """The call of a submit command in the target's words, and what is only close; a text says why it stays."""
        from sssjob.translators.scripts.submitting import submission

        source = dialect_of(name)
        if source is None:
            return "its options are not known"
        return submission(source, asking.dialect, words, asking.context.site, read=read)

    return submit


def _inner(asking: Asking) -> Callable[[str, str, bool], tuple[str, str] | str]:
    """How a script in a here-document is written for the target, by the name of its dialect."""
    def inner(name: str, text: str, quoted: bool) -> tuple[str, str] | str:
        """The script of a here-document in the target's dialect, and what is only close; a text says why it stays."""
        from sssjob.translators.scripts.submitting import inner_script

        return inner_script(name, asking.dialect, text, asking.context.site, quoted=quoted)

    return inner


def known(asking: Asking) -> dict[str, str]:
    """What the job asks for, and how the target counts the elements of its array."""
    values = asked(asking.job)
    if asking.dialect.threads and one_task(asking):
        values |= {"tasks": "1", "cpus_per_task": values["processors"]}
    index = asking.dialect.index
    if index is not None and "array" in values and (shift := index(values["array"])):
        values["array_shift"] = shift
    return values


def _tell(asking: Asking, first: int) -> Callable[[str, str, str, int, int, str], None]:
    """What records a finding (rule, subject, message, line, column, text) about a line of the body, at the line of the
    script. first: lines of the script before the body."""
    stood = asking.document.lines if isinstance(asking.document, ScriptDocument) else []

    def tell(rule: str, subject: str, message: str, line: int, column: int, text: str) -> None:
        """Report something about the commands, at its line in the whole script."""
        at = line + first
        asking.findings.add(rule, subject, message, line=stood[at] if at < len(stood) else at + 1, column=column,
                            excerpt=text)

    return tell


def _withdrawing(asking: Asking, first: int) -> Callable[[int, int], None]:
    """What takes back that directives stay in a here-document, for lines of the body. first: as of ``_tell``."""
    stood = asking.document.lines if isinstance(asking.document, ScriptDocument) else []

    def withdraw(begin: int, end: int) -> None:
        """The directives from one line to another were converted with the call that reads them."""
        at, last = (stood[n + first] if n + first < len(stood) else n + first + 1 for n in (begin, end))
        for findings in (asking.findings, asking.document.findings):
            if findings is not None:
                findings.withdraw(DEAD, "directive", at, last)

    return withdraw


def _with_modules(asking: Asking, body: str, first: int) -> str:
    """The body with this site's names of environment modules, where a site profile says them."""
    site = asking.context.site
    if site is None or not site.modules or mode_of(asking.context.options.get("body")) == "keep":
        return body
    from sssjob.translators.bodies.modules import renamed

    return renamed(body, site.modules, _tell(asking, first))


_PLACES: Final = {
    "NodeCount": "nodes", "TaskCount": "tasks", "Processors": "processors", "Duration": "walltime",
    "Queue": "queue", "Project": "account",
    "InitialWorkingDirectory": "directory",
}
_MEMORY: Final = {"PerNode": "memory_per_node", "PerProcessor": "memory_per_cpu"}
_GPUS: Final[dict[str | None, tuple[str, ...]]] = {None: ("gpus",), "PerNode": ("gpus_per_node", "gpus_on_node")}
_ASKED: Final = frozenset((*_PLACES, "TaskDistribution", "Memory", "Resource", "Extension"))
#: Digits of counts that are multiplied no more.
_LONG: Final = 20


def asked(job: Job) -> dict[str, str]:
    """Meaning and value of what the job states, where it states one value; tasks also where they follow from those of a
    node."""
    values: dict[str, str] = {}
    groups, ranges = list(job.containers("TaskGroup")), False
    for scope in (job, *(groups if len(groups) < 2 else ())):
        for body in (scope, *scope.containers("Requested")):
            for item in body.items:
                if item.tag not in _ASKED or not isinstance(item, Property) or (
                        item.tag == "Extension" and item.attributes.get("name") != "Array"):
                    continue
                if item.attributes.get("op", "EQ") == "EQ":
                    values.update(_said(item))
                else:
                    ranges = ranges or item.tag == "NodeCount"
    for group in groups:
        for requested in (r for d in group.containers("TaskDefaults") for r in d.containers("Requested")):
            values.update(("cpus_per_task", p.text) for p in requested.all("Processors") if p.get("op", "EQ") == "EQ")
            values.update(("gpus_per_task", p.text) for p in requested.all("Resource")
                          if p.get("name") == "GPU" and p.get("metric") is None and p.get("op", "EQ") == "EQ")
    if "tasks_per_node" in values and "tasks" not in values and not ranges and (number := _tasks(values)):
        values["tasks"] = number
    tasks, processors = values.get("tasks", ""), values.get("processors", "")
    if "cpus_per_task" not in values and tasks.isdecimal() and processors.isdecimal() and len(tasks + processors) < \
            _LONG and int(processors) > int(tasks) > 0 == int(processors) % int(tasks):
        values["cpus_per_task"] = str(int(processors) // int(tasks))        # of each chunk of PBS: ncpus by mpiprocs
    if values.get("nodes") == "1" and not ranges and "gpus" in values:
        values.setdefault("gpus_on_node", values["gpus"])
    return values


def _tasks(values: Mapping[str, str]) -> str:
    """The number of tasks of a job that says those of a node, or nothing: as many as its processors are for, or those
    of its nodes."""
    if "nodes" not in values and "processors" in values:
        counts = values["processors"], values.get("cpus_per_task", "1")
    else:
        counts = values.get("nodes", "1"), values["tasks_per_node"]
    if not all(map(str.isdecimal, counts)) or len("".join(counts)) >= _LONG:
        return ""
    first, second = map(int, counts)
    if "nodes" in values or "processors" not in values:
        return str(first * second)
    return str(first // second) if second and first % second == 0 else ""


def _said(item: Property) -> Iterable[tuple[str, str]]:
    """The same of one property; of Extensions the array alone says any."""
    tag, of = item.tag, item.attributes.get
    if tag in _PLACES:
        return ((_PLACES[tag], text),) if (text := item.text) else ()
    if tag == "Extension":
        return _array(item.text)
    if tag == "TaskDistribution":
        return (("tasks_per_node", item.text),) if of("type") == "TasksPerNode" else ()
    if tag == "Memory" and of("metric") in _MEMORY:
        try:
            amount = to_bytes(Decimal(item.text), of("units")) / (1 << 20)
        except (LexicalError, ArithmeticError):
            return ()               # the writer of options tells of it
        return ((_MEMORY[of("metric", "")], str(int(amount.to_integral_value(ROUND_CEILING)))),)
    if tag == "Resource" and of("name") == "GPU":
        return [(meaning, item.text) for meaning in _GPUS.get(of("metric"), ())]
    return ()


def _array(text: str) -> Iterator[tuple[str, str]]:
    yield "array", text
    tasks = one_range(text.partition("%")[0])
    if tasks is not None:
        first, last, step = tasks
        yield from (("array_first", str(first)), ("array_last", str(last)), ("array_step", str(step or 1)),
                    ("array_count", str(max(0, last - first) // (step or 1) + 1)))
