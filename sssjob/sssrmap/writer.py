"""From messages to XML: ``write_message``, in the form that old peers read and sign.

Names have no namespace, empty elements an end tag, attributes double quotes and the order of ``ATTRIBUTES``; no white
space stands between elements. What was read and not understood is written again as it stood.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from sssjob.document.values import writable
from sssjob.errors import UsageError
from sssjob.sssrmap.model import (
    Count,
    Data,
    Envelope,
    File,
    Foreign,
    Get,
    Object,
    Part,
    Request,
    Response,
    Signature,
    Status,
    Token,
)
from sssjob.xml.writer import escaped, quoted

__all__ = ["DECLARATION", "body_of", "part_text", "write_message"]

DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


def write_message(message: Envelope) -> str:
    """The text of a message, with its XML declaration. Raises UsageError for text that XML cannot hold."""
    signature = "" if message.signature is None else _signature(message.signature)
    return DECLARATION + _element("Envelope", message.attributes, body_of(message) + signature)


def body_of(message: Envelope) -> str:
    """The Body alone: what is signed."""
    body = message.body
    inner = "" if body is None else body.markup if isinstance(body, Foreign) else _whole(body)
    return _element("Body", (), inner)


def _whole(body: Request | Response) -> str:
    return _element(type(body).__name__, _attributes(body), "".join(map(part_text, body.parts)))


def part_text(part: Part) -> str:
    """A part of a message as XML. Raises UsageError for what XML cannot hold."""
    match part:
        case Foreign():
            return part.markup
        case Count():
            return _element("Count", (), str(part.value))
        case Status():
            stated = (("Value", part.value), ("Code", part.code), ("Message", part.message))
            return _element("Status", (), "".join(_element(name, (), _text(text, name))
                                                  for name, text in stated if text is not None)
                            + "".join(f.markup for f in part.foreign))
        case Data():
            return _element("Data", _attributes(part), part.content)
        case Get():
            inner = ""
        case Object():
            inner = part.name
        case File():
            inner = part.text
        case _:
            inner = part.value
    name = type(part).__name__
    return _element(name, _attributes(part), _text(inner, name))


def _signature(signature: Signature) -> str:
    inner = ""
    for name, text, method in (("DigestValue", signature.digest, signature.digest_method),
                               ("SignatureValue", signature.value, signature.value_method)):
        if text is not None:
            inner += _element(name, () if method is None else (("method", method),), _text(text, name))
    token = signature.token
    if isinstance(token, Token):
        inner += _element("SecurityToken", _attributes(token), _text(token.text, "SecurityToken"))
    return _element("Signature", (), inner)


def _attributes(part: Any) -> Iterator[tuple[str, str]]:
    """The attributes of a part that are said, in the order of its table, and those that were not understood."""
    for xml, python, _ in part.ATTRIBUTES:
        value = getattr(part, python)
        if value is not None:
            yield xml, str(value)
    yield from part.extra


def _element(name: str, attributes: Iterable[tuple[str, str]], inner: str) -> str:
    stated = "".join(f' {key}="{quoted(_checked(value, key))}"' for key, value in attributes)
    return f"<{name}{stated}>{inner}</{name}>"


def _text(text: str, subject: str) -> str:
    return escaped(_checked(text, subject))


def _checked(text: str, subject: str) -> str:
    if not writable(text):
        raise UsageError(f"{subject} holds characters that XML cannot hold")
    return text
