"""Templates of submit scripts, one per resource manager, and the one way to render them.

Every value goes through a filter of ``sssjob.templates.quoting`` that says where it stands (a word of the shell, an
option in a directive). What comes out of a filter is marked; anything unmarked in ``{{ }}`` is an error,
so that a forgotten filter fails a test and is never an injection. Values are never compiled as templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from sssjob.templates.quoting import FILTERS, Quoted

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

__all__ = ["UnquotedError", "environment", "render"]


class UnquotedError(TypeError):
    """A template puts out a value that went through no filter; value: the value."""

    def __init__(self, value: object) -> None:
        super().__init__(f"a template puts out {value!r} without a quoting filter")
        self.value = value


def _only_quoted(value: object) -> object:
    if type(value) is not Quoted and type(value) is not int:
        raise UnquotedError(value)
    return value


@cache
def environment() -> SandboxedEnvironment:
    """The Jinja2 environment of all templates here: sandboxed, undefined names are errors, filters by context."""
    from jinja2 import PackageLoader, StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    jinja = SandboxedEnvironment(
        loader=PackageLoader("sssjob", "templates"), undefined=StrictUndefined, finalize=_only_quoted,
        auto_reload=False, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    jinja.filters.update(FILTERS)
    return jinja


@cache
def _template(name: str) -> Any:
    return environment().get_template(name)


def render(name: str, context: Mapping[str, Any]) -> str:
    """The text of a template. Raises QuotingError for a value that cannot stand where the template puts it."""
    text: str = _template(name).render(context)
    return text
