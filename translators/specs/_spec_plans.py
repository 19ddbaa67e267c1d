"""JobSpecs of jobs that differ only in texts of no consequence: a plan of the shape that they share is filled in.

The shape of a job is all that it says, but for names, arguments, variables and names of files that consist of harmless
characters, and its time limit in seconds: of these it has where they stand, and how many words arguments are. A plan is
what ``to_spec`` makes of a job of that shape with marks in the place of these values. It is recorded when a shape is
seen for the second time, and holds only where ``to_spec`` finds nothing to tell, and where a job with other marks gives
the same with these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from datetime import timedelta
from typing import Final, TypeVar, cast

from psij import JobSpec
from sssjob.document.element import Container, Item, Property, new_property
from sssjob.document.model import Job
from sssjob.findings import Findings, Policy
from sssjob.request.asked import Target
from sssjob.translators.specs._psij_to_spec import to_spec

__all__ = ["SpecPlans"]

C = TypeVar("C", bound=Container)
_Value = str | list[str] | timedelta

#: Shapes that are known of a document; further ones take the whole way.
_MOST: Final = 1000
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+,@%=-]+")
_WORD: Final = rf"(?:{_PLAIN.pattern}|'[A-Za-z0-9_./+,@%= -]* [A-Za-z0-9_./+,@%= -]*')"
_WORDS: Final = re.compile(rf"{_WORD}(?: {_WORD})*")
_EACH: Final = re.compile(_WORD)
_SECONDS: Final = re.compile(r"[1-9][0-9]{0,7}")
#: Property -> the member of a JobSpec that says it, for those whose values are no part of a shape, by the container in
#: which they stand; none says ``Id``. ``duration`` is one of its attributes; variables of ``environment`` have names.
_MEMBERS: Final[Mapping[str, Mapping[str, str]]] = {
    "Job": {"Id": "", "Name": "name", "Arguments": "arguments", "InputFile": "stdin_path", "OutputFile": "stdout_path",
            "ErrorFile": "stderr_path"},
    "Environment": {"Variable": "environment"}, "Requested": {"Duration": "duration"}}
_NONE: Final[Mapping[str, str]] = {}
_ENDS: Final = object()     # in a shape: of a container


class _Shape:
    """The shape of a job, and its values.

    key: the shape, as a value; None where something is said that only the whole way knows. places: member and name for
    each of the values.
    """

    __slots__ = ("_parts", "key", "places", "values")

    def __init__(self, job: Job) -> None:
        self.values: list[_Value] = []
        self.places: list[tuple[str, str]] = []
        self._parts: list[object] = []
        is_known = self._enter(job, _MEMBERS["Job"])
        # a name that is the executable too is none
        is_known = is_known and len(set(self.places)) == len(self.places) and not any(
            place[0] == "name" and value in self._parts for place, value in zip(self.places, self.values, strict=True))
        self.key = tuple(self._parts) if is_known else None

    def _enter(self, scope: Container, members: Mapping[str, str]) -> bool:
        """Whether all that a container holds is known."""
        parts = self._parts
        parts += (scope.tag, scope.spelling, tuple((scope.attributes or {}).items()), scope.reference)
        for item in scope.items:
            if isinstance(item, Property):
                value = _value_of(item, members)
                parts += (item.tag, item.spelling, tuple(item.attributes.items()) if item.attributes else (),
                          item.text if value is None else _kind_of(value))
                if value is not None:
                    self.values.append(value)
                    self.places.append((members[item.tag], item.attributes.get("name", "")))
            elif not isinstance(item, Container) or not self._enter(item, _members_in(item, scope)):
                return False
        parts.append(_ENDS)
        return True


def _members_in(scope: Container, outer: Container) -> Mapping[str, str]:
    return _MEMBERS.get(scope.tag, _NONE) if outer.tag == "Job" else _NONE


def _value_of(item: Property, members: Mapping[str, str]) -> _Value | None:
    """The value of a property that is no part of the shape; None of one that is."""
    member = members.get(item.tag)
    if member is None:
        return None
    text = item.text
    if member == "duration":
        return timedelta(seconds=int(text)) if _SECONDS.fullmatch(text) else None
    if member == "arguments":
        return [word.strip("'") for word in _EACH.findall(text)] if _WORDS.fullmatch(text) else None
    return text if _PLAIN.fullmatch(text) else None


def _kind_of(value: _Value) -> int:
    """What of a value is part of the shape: how many words it is."""
    return len(value) if type(value) is list else 0


class SpecPlans:
    """Makes the JobSpecs of the jobs of one document."""

    def __init__(self) -> None:
        self._plans: dict[object, JobSpec | None] = {}      # by shape; None: seen once, or to be made the whole way
        self._seen_once: set[object] = set()

    def to_spec(self, job: Job, findings: Findings, *, policy: Policy, files: Mapping[str, str], target: Target
                ) -> JobSpec:
        """As ``to_spec`` of a job as a whole. findings: has none yet."""
        shape = _Shape(job)
        key = None if shape.key is None or files else (policy, target, shape.key)
        plan = None if key is None else self._plans.get(key)
        if plan is not None:
            return _filled(plan, shape.places, shape.values)
        spec = to_spec(job, findings, policy=policy, files=files, target=target)
        if key in self._seen_once:
            self._seen_once.discard(key)
            self._plans[key] = None if findings.told else _recorded(job, shape, policy, target)
        elif key is not None and key not in self._plans and len(self._plans) + len(self._seen_once) < _MOST:
            self._seen_once.add(key)
        return spec


def _recorded(job: Job, shape: _Shape, policy: Policy, target: Target) -> JobSpec | None:
    """The plan of a shape: what a marked job becomes; None where the marks are not all that tells such jobs apart."""
    findings, others = Findings(), _marks(shape.values, 72_007)
    plan, other = (to_spec(_marked(job, _MEMBERS["Job"], iter(marks)), findings, policy=policy, target=target)
                   for marks in (_marks(shape.values, 3601), others))
    return None if findings.told or _filled(plan, shape.places, others) != other else plan


def _marks(values: Sequence[_Value], first: int) -> list[_Value]:
    """Other values of the same kinds, all of them different."""
    return [timedelta(seconds=first + n) if isinstance(value, timedelta) else f"mark-{first}-{n}"
            if isinstance(value, str) else [f"word-{first}-{n}-{k}" for k in range(len(value))]
            for n, value in enumerate(values)]


def _marked(scope: C, members: Mapping[str, str], marks: Iterator[_Value]) -> C:
    """A copy of a container with marks in place of its values."""
    items: list[Item] = []
    for item in scope.items:
        if isinstance(item, Container):
            items.append(_marked(item, _members_in(item, scope), marks))
        elif isinstance(item, Property) and _value_of(item, members) is not None:
            mark = next(marks)
            text = " ".join(mark) if isinstance(mark, list) else mark if isinstance(mark, str) else str(mark.seconds)
            items.append(new_property(item.tag, text, dict(item.attributes)))
        else:
            items.append(item)
    return type(scope)(items, scope.attributes or None, scope.reference, scope.line, scope.spelling)


def _filled(plan: JobSpec, places: Sequence[tuple[str, str]], values: Sequence[_Value]) -> JobSpec:
    """A JobSpec of its own with these values."""
    spec, attributes = copy(plan), copy(plan.attributes)
    assert attributes is not None
    spec.attributes, spec.resources = attributes, copy(plan.resources)
    if attributes.custom_attributes is not None:
        attributes.custom_attributes = dict(attributes.custom_attributes)
    spec.arguments = None if plan.arguments is None else list(plan.arguments)
    environment = spec.environment = None if plan.environment is None else dict(plan.environment)
    for (member, name), value in zip(places, values, strict=True):
        if member == "duration":
            attributes.duration = cast(timedelta, value)
        elif member == "environment":
            cast("dict[str, object]", environment)[name] = value
        elif member:
            setattr(spec, member, value)
    return spec
