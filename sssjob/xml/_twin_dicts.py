"""The JSON twin as Python objects: the same shape (see ``sssjob.xml.twin``), for whoever has no use for its text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeVar

from sssjob.document.element import Container
from sssjob.document.model import Document
from sssjob.errors import UsageError
from sssjob.xml._twin_reading import from_json
from sssjob.xml._twin_writing import Number, dump, to_json

C = TypeVar("C", bound=Container)


def dict_of(document: Document | Container) -> dict[str, Any]:
    """The twin of a document, or of a container as one, as dicts and lists.

    A number is an int, a float that has its value exactly, or a Decimal where no float has."""
    members: dict[str, Any] = json.loads(
        to_json(Document(document) if isinstance(document, Container) else document, indent=None), parse_float=_number)
    return members


def document_of(twin: Mapping[str, Any]) -> Document:
    """The document of such a dict. Raises RejectedError with what is wrong, UsageError for what JSON has no form of."""
    document = from_json("".join(dump(_plain(twin), None, 0)))
    if document.findings is not None:
        document.findings.raise_if_rejected()
    return document


def container_of(kind: type[C], twin: Mapping[str, Any]) -> C:
    """The one container of a kind in such a dict."""
    root = document_of(twin).root
    if not isinstance(root, kind):
        raise UsageError(f"the dict has the key {root.tag}, not {kind.tag}")
    return root


def _number(text: str) -> float | Decimal:
    value = float(text)
    return value if Decimal(repr(value)) == Decimal(text) else Decimal(text)


def _plain(value: Any) -> Any:
    """What JSON has forms for: numbers as their digits."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float | Decimal):
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if not number.is_finite():
            raise UsageError(f"{value} is no finite number")
        return Number(format(number, "f"))
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    raise UsageError(f"a {type(value).__name__} has no place in the twin: text, numbers, booleans, lists and mappings")
