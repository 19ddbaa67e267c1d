"""Jobspecs in YAML: the types of JSON alone, without aliases, and where each value stands in the text.

Source: RFC 14 of Flux, which has its examples in YAML; https://yaml.org/spec/1.1/ as PyYAML reads it.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

from sssjob.errors import UsageError
from sssjob.xml.json_places import TextValue

__all__ = ["YamlFault", "read_yaml", "values_in"]

_BOM = b"\xef\xbb\xbf"


class YamlFault(ValueError):
    """A text is no YAML that holds JSON. line, column: where, from 1; 0 where that is not known."""

    def __init__(self, message: str, mark: Any = None) -> None:
        super().__init__(message)
        self.line: int = 0 if mark is None else mark.line + 1
        self.column: int = 0 if mark is None else mark.column + 1


def _loader() -> Any:
    """PyYAML and its loader for the types of JSON: days stay text."""
    try:
        import yaml
    except ImportError:
        raise UsageError("reading YAML needs PyYAML: pip install 'sssjob[yaml]'") from None

    class Loader(yaml.SafeLoader):
        """The types of JSON."""

    Loader.yaml_implicit_resolvers = {
        sign: [(tag, form) for tag, form in resolvers if not tag.endswith((":timestamp", ":merge", ":value"))]
        for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
    return yaml, Loader


def read_yaml(text: str, depth: int) -> Any:
    """The value of a YAML document without aliases, which could grow without end. Raises YamlFault."""
    yaml, loader = _loader()
    level = 0
    try:
        for event in yaml.parse(text, loader):
            if isinstance(event, yaml.AliasEvent):
                raise YamlFault(f"an alias, *{event.anchor}, is not taken", event.start_mark)
            level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if level > depth:
                raise YamlFault(f"more than {depth} levels (limit depth)", event.start_mark)
        value = yaml.load(text, loader)
    except yaml.YAMLError as error:
        raise YamlFault(f"no YAML: {getattr(error, 'problem', None) or 'malformed'}",
                        getattr(error, "problem_mark", None)) from None
    if not _is_json(value):
        raise YamlFault("a value is of no type of JSON")
    return value


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_json(v) for k, v in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def values_in(data: bytes) -> list[TextValue]:
    """The outermost value of a YAML text that ``read_yaml`` has read, with the offset in bytes of all that is in it."""
    yaml, loader = _loader()
    text = data.decode("utf-8-sig")
    start = len(_BOM) if data.startswith(_BOM) else 0
    offsets = range(start, start + len(text) + 1) if text.isascii() else list(
        accumulate((len(character.encode()) for character in text), initial=start))

    def value_of(node: Any, at: int) -> TextValue:
        """What a node says. at: where it stands, or its key."""
        if isinstance(node, yaml.ScalarNode):
            return TextValue(at, str(node.value).encode())
        value = TextValue(at, b"{" if isinstance(node, yaml.MappingNode) else b"[")
        for number, member in enumerate(node.value):
            key, inner = member if isinstance(member, tuple) else (None, member)
            value.members.append((number if key is None else key.value,
                                  value_of(inner, offsets[(key or inner).start_mark.index])))
        return value

    node = yaml.compose(text, loader)
    return [value_of(node, offsets[node.start_mark.index])]
