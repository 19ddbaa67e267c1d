"""Templates of submit scripts, one per resource manager, and the one way to render them.

Every value goes through a filter of ``sssjob.templates.quoting`` that says where it stands (a word of the shell, an
option in a directive). What comes out of a filter is marked; anything unmarked in ``{{ }}`` is an error,
so that a forgotten filter fails a test and is never an injection. Values are never compiled as templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from sssjob.templates._plans import Plan, UnplannedError, filter_of, shape_of, slot_text, with_slots
from sssjob.templates.quoting import FILTERS, Quoted

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

__all__ = ["UnquotedError", "environment", "render", "render_planned"]


class UnquotedError(TypeError):
    """A template puts out a value that went through no filter; value: the value."""

    def __init__(self, value: object) -> None:
        super().__init__(f"a template puts out {value!r} without a quoting filter")
        self.value = value


def _only_quoted(value: object) -> object:
    if type(value) is not Quoted and type(value) is not int:
        text = slot_text(value)
        if text is None:
            raise UnquotedError(value)
        return text
    return value


@cache
def environment() -> SandboxedEnvironment:
    """The Jinja2 environment of all templates here: sandboxed, undefined names are errors, filters by context."""
    from jinja2 import PackageLoader, StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    jinja = SandboxedEnvironment(
        loader=PackageLoader("sssjob", "templates"), undefined=StrictUndefined, finalize=_only_quoted,
        auto_reload=False, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    jinja.filters.update({name: filter_of(quote) for name, quote in FILTERS.items()})
    return jinja


@cache
def _template(name: str) -> Any:
    return environment().get_template(name)


def render(name: str, context: Mapping[str, Any]) -> str:
    """The text of a template. Raises QuotingError for a value that cannot stand where the template puts it."""
    text: str = _template(name).render(context)
    return text


#: By template and shape: the plan; None for a shape that was seen once, False for one that has none.
_plans: dict[tuple[object, ...], Plan | Literal[False] | None] = {}
_MOST_PLANS: Final = 200


def render_planned(name: str, context: Mapping[str, Any]) -> str:
    """What ``render`` gives, for a template that is rendered for many jobs: contexts of one shape share a plan, from
    the second on. Raises as ``render``."""
    values: list[Any] = []
    shape = (name, *shape_of(context, values))
    try:
        plan = _plans.get(shape)
    except TypeError:           # something that has no hash
        return render(name, context)
    if plan is None:
        if shape in _plans:
            plan = _plans[shape] = _plan_of(name, context)
        else:
            if len(_plans) >= _MOST_PLANS:
                _plans.clear()
            _plans[shape] = None
    return plan.text(values) if plan else render(name, context)


def _plan_of(name: str, context: Mapping[str, Any]) -> Plan | Literal[False]:
    uses: list[Any] = []
    try:
        return Plan(render(name, with_slots(context, uses)), uses)
    except UnplannedError:
        return False
