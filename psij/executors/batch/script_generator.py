"""Submit scripts from Mustache templates in psij-python's form, for third-party executors.

Rendered with pystache (imported when used). With the standard escape function a value may stand
bare or inside quotes: where it stands is looked at in the rendered text, not guessed. A value with a line break in it
never becomes part of a directive.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from psij.exceptions import InvalidJobException
from psij.executors.batch.escape_functions import bash_escape
from psij.job import Job
from psij.job_executor_config import JobExecutorConfig
from psij.job_spec import JobSpec
from sssjob.templates.quoting import Directive, QuotingError, checked, word

__all__ = ["SubmitScriptGenerator", "TemplatedScriptGenerator"]

# Partials that psij-python's templates may name. The end is known by the exit file, and the executor stages.
_BATCH_LIB = """_psij_update_status() {
    [ "$1" = ACTIVE ] || return 0
    (
        umask 077
        echo "{{job.id}} $(date +%s)" >"{{psij.script_dir}}/{{job.id}}.start.new" &&
            mv -f "{{psij.script_dir}}/{{job.id}}.start.new" "{{psij.script_dir}}/{{job.id}}.start"
    ) 2>/dev/null || :
}
"""
_PARTIALS = {"batch_lib": _BATCH_LIB, "stagein": "", "stageout": "", "cleanup": ""}
_MARK = re.compile("\x01([0-9a-f]*)\x02")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./*?-]*", re.ASCII)


class SubmitScriptGenerator(ABC):
    """Writes the submit script of a job."""

    def __init__(self, config: JobExecutorConfig) -> None:
        self.config = config

    @abstractmethod
    def generate_submit_script(self, job: Job, context: dict[str, object], out: IO[str]) -> None:
        """Write the script. context: as from BatchSchedulerExecutor._create_script_context."""


class TemplatedScriptGenerator(SubmitScriptGenerator):
    """Renders a Mustache template. escape: applied to what ``{{name}}`` puts out."""

    def __init__(self, config: JobExecutorConfig, template_path: Path,
                 escape: Callable[[object], str] = bash_escape) -> None:
        super().__init__(config)
        self.template_path = Path(template_path)
        self.escape = escape

    @cached_property
    def _renderer(self) -> tuple[Any, Any]:
        """The renderer and the parsed template."""
        import pystache

        class Renderer(pystache.Renderer):  # type: ignore[misc]
            """Members of enumerations as their values, truth as 1 and 0, None as nothing."""

            def str_coerce(self, value: object) -> str:
                """The text that stands for a value in a script."""
                return _text(value)

        renderer = Renderer(escape=_mark if self.escape is bash_escape else self.escape, partials=_PARTIALS,
                            string_encoding="utf-8", missing_tags="ignore")
        return renderer, pystache.parse(self.template_path.read_text(encoding="utf-8"))

    def generate_submit_script(self, job: Job, context: dict[str, object], out: IO[str]) -> None:
        """Render the template. Raises InvalidJobException for a value that a directive cannot hold."""
        renderer, template = self._renderer
        text = renderer.render(template, self._with_library(context))
        out.write("".join(_placed(text, job.spec)))

    def _with_library(self, context: dict[str, object]) -> dict[str, object]:
        """The context with functions that take the text of a section, rendered."""
        psij = context.get("psij")
        if not isinstance(psij, dict):
            return context
        import pystache

        plain = pystache.Renderer(escape=lambda text: text, missing_tags="ignore")

        def section(function: Callable[..., object]) -> Callable[[str], str]:
            """A section whose text is rendered first and then given to a function of the library."""
            return lambda text: str(function(plain.render(text, context)))

        library = {name: section(function) for name, function in psij.get("lib", {}).items()}
        return {**context, "psij": {**psij, "lib": library}}


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Enum):
        return str(value.value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def _mark(text: str) -> str:
    """A value to be quoted once its place is known."""
    return f"\x01{text.encode('utf-8', 'surrogatepass').hex()}\x02"


def _placed(text: str, spec: JobSpec | None) -> Iterator[str]:
    """The parts of a rendered script, each marked value quoted for its place."""
    context, at = "", 0     # "" bare, else the quote; "#" a comment or directive, '#"' a quoted part of one
    for match in _MARK.finditer(text):
        literal = text[at:match.start()]
        yield literal
        context, at = _context_after(context, literal), match.end()
        value = bytes.fromhex(match[1]).decode("utf-8", "surrogatepass")
        if context.startswith("#"):
            yield _in_directive(value, context[1:], spec)
        else:
            yield f"{context}{word(value)}{context}"
            context = context or "."     # a word has begun: a number sign that follows begins no comment
    yield text[at:]


def _context_after(context: str, literal: str) -> str:
    """The quoting that is open after a piece of a shell script."""
    line_start = context == "" 
    context = "" if context == "." else context
    skip = False
    for character in literal:
        if skip:
            skip = False
        elif character == "\n" and context in ("", "#", '#"', "#'"):
            context, line_start = "", True
            continue
        elif context.startswith("#"):
            if character in "\"'":
                context = "#" if context[1:] == character else context if len(context) > 1 else "#" + character
        elif context == "'":
            context = "" if character == "'" else context
        elif character == "\\":
            skip = True
        elif character == '"':
            context = "" if context == '"' else '"'
        elif context == "" and character == "'":
            context = "'"
        elif context == "" and character == "#" and line_start:
            context = "#"
        line_start = line_start and character in " \t"
    return context


def _in_directive(value: str, quote: str, spec: JobSpec | None) -> str:
    try:
        checked(Directive("value", value, _field(value, spec)))
    except QuotingError as e:
        raise InvalidJobException(str(e), e) from e
    if _PLAIN.fullmatch(value):
        return value
    if '"' in value or "\\" in value or quote == "'":
        raise InvalidJobException(f"{_field(value, spec)} {value!r} cannot be quoted in a directive")
    return value if quote else f'"{value}"'


def _field(value: str, spec: JobSpec | None) -> str:
    """The member of a specification that has this value, for messages."""
    attributes = spec.attributes if spec is not None else None
    if spec is None or attributes is None:
        return "value"
    members: dict[str, object] = {"name": spec.name, "attributes.queue_name": attributes.queue_name,
                                  "attributes.account": attributes.account,
                                  "attributes.reservation_id": attributes.reservation_id}
    members |= {f"custom attribute {name!r}": item for name, item in (attributes.custom_attributes or {}).items()}
    return next((name for name, item in members.items() if item is not None and _text(item) == value), "value")
