"""Changes as a value: what makes one document of another, and their application.

A patch is JSON: ``{"patch": 1, "from": digest, "to": digest, "edits": [...]}``. An edit says where it stands, by a path
of the document before, and what it takes and gives there, as XML: ``{"at": "/Job/Requested", "place": 1, "after": ...,
"old": [...], "new": [...]}``, or ``"attributes": {name: [before, after]}``. Edits of inner elements stand before those
of the elements around them, and of one element the last first: paths and places stay those of the document before.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from difflib import SequenceMatcher
from typing import Any, Final

from lxml import etree

from sssjob.document.model import Document
from sssjob.document.values import writable
from sssjob.errors import QueryError, RejectedError
from sssjob.findings import Findings, escape
from sssjob.limits import LIMITS
from sssjob.query import Selector
from sssjob.xml._faults import parse_fault
from sssjob.xml.canonical import canonical_tree, digest
from sssjob.xml.reader import read_document
from sssjob.xml.xmlio import parse_tree

__all__ = ["apply", "patch_of", "read_patch"]

_VERSION: Final = 1
_PLAIN_ID: Final = re.compile(r"[^'\"&<>]{1,200}")
#: A step of a path that ``diff`` writes.
_STEP: Final = re.compile(r"/([^/\[]+(?:\[(?:Id='[^']*'|[0-9]+)\])?)")
_STEPS: Final = re.compile(f"(?:{_STEP.pattern})*")


# --- making one ---------------------------------------------------------------------------------------------------

def patch_of(first: Document, other: Document) -> dict[str, Any]:
    """The patch that makes the other document of the first. Raises RejectedError for what cannot be written."""
    before, after = canonical_tree(first), canonical_tree(other)
    if _head(before) != _head(after):
        edits: list[dict[str, Any]] = [{"at": "/", "old": [_text(before)], "new": [_text(after)]}]
    else:
        edits = list(_edits(before, after, f"/{_local(before)}"))
    return {"patch": _VERSION, "from": digest(first), "to": digest(other), "edits": edits}


def _edits(before: Any, after: Any, path: str) -> Iterator[dict[str, Any]]:
    """What makes one element of another of the same name and text."""
    if dict(before.items()) != dict(after.items()):
        names = dict.fromkeys((*before.keys(), *after.keys()))
        yield {"at": path, "attributes": {n: [before.get(n), after.get(n)] for n in names
                                          if before.get(n) != after.get(n)}}
    old, new = _keys(before), _keys(after)
    hunks: list[dict[str, Any]] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            for mine, theirs, key in zip(before[a:b], after[c:d], old[a:b], strict=True):
                if len(mine) or len(theirs):
                    yield from _edits(mine, theirs, f"{path}/{key}")
        else:
            hunks.append({"at": path, "place": a, "after": old[a - 1] if a else None,
                          "old": [_text(e) for e in before[a:b]], "new": [_text(e) for e in after[c:d]]})
    yield from reversed(hunks)


def _keys(element: Any) -> list[str]:
    """What each child is known by: a container by its Id or number, a property by all that it says."""
    ids = Counter((child.tag, _id(child)) for child in element)
    numbers: Counter[str] = Counter()
    keys = []
    for child in element:
        numbers[child.tag] += 1
        name = _id(child)
        if not _is_container(child):
            keys.append(_text(child))
        elif name is not None and _PLAIN_ID.fullmatch(name) and ids[child.tag, name] == 1:
            keys.append(f"{_local(child)}[Id='{name}']")
        else:
            keys.append(f"{_local(child)}[{numbers[child.tag]}]")
    return keys


def _is_container(element: Any) -> bool:
    return len(element) > 0 and not (element.text or "").strip() and "}" not in element.tag


def _id(element: Any) -> str | None:
    identifier = element.find("Id")
    return None if identifier is None else identifier.text


def _head(element: Any) -> tuple[str, str]:
    return element.tag, (element.text or "").strip()


def _local(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _text(element: Any) -> str:
    alone = deepcopy(element)
    alone.tail = None
    return etree.tostring(alone, method="c14n").decode()


# --- reading and applying one -------------------------------------------------------------------------------------

def read_patch(data: bytes, path: str = "-") -> dict[str, Any]:
    """The patch of a text: that of ``diff --json`` or a patch alone. Raises RejectedError (SSS111, SSS112, SSS110)."""
    findings = Findings(path)
    if len(data) > LIMITS.message_bytes:
        _refuse(findings, "SSS110", f"the patch is larger than the limit message_bytes ({LIMITS.message_bytes})")
    try:
        patch = json.loads(data)
    except (ValueError, RecursionError) as error:
        _refuse(findings, "SSS111", escape(parse_fault(error)))
    patch = patch.get("patch", patch) if isinstance(patch, dict) and isinstance(patch.get("patch"), dict) else patch
    if not isinstance(patch, dict) or patch.get("patch") != _VERSION or not isinstance(patch.get("edits"), list):
        _refuse(findings, "SSS112", f'no patch: an object with "patch": {_VERSION} and "edits" is expected')
    for number, edit in enumerate(patch["edits"], 1):
        if not _is_edit(edit):
            _refuse(findings, "SSS112", f"edit {number} of the patch is none")
    return dict(patch)


def _refuse(findings: Findings, rule: str, message: str) -> None:
    findings.add(rule, "patch", message)
    raise RejectedError(list(findings))


def _is_edit(edit: object) -> bool:
    if not isinstance(edit, dict) or not isinstance(edit.get("at"), str):
        return False
    if not edit.keys() <= ({"at", "attributes"} if "attributes" in edit else {"at", "place", "after", "old", "new"}):
        return False
    attributes = edit.get("attributes")
    if attributes is not None:
        return isinstance(attributes, dict) and all(
            writable(name) and isinstance(pair, list) and len(pair) == 2
            and all(text is None or (isinstance(text, str) and writable(text)) for text in pair)
            for name, pair in attributes.items())
    return all(isinstance(edit.get(name), list) and all(isinstance(text, str) for text in edit[name])
               for name in ("old", "new")) and isinstance(edit.get("after"), str | None) and _is_place(
                   edit.get("place", 0))


def _is_place(place: object) -> bool:
    return isinstance(place, int) and not isinstance(place, bool) and place >= 0


def apply(document: Document, patch: Mapping[str, Any], findings: Findings) -> Document:
    """The document with a patch applied, read anew. Edits that do not fit are findings (SSS428).

    An edit whose place has moved is applied where what it takes stands, if it stands in one place only. The document
    that the patch was made of has to become the one that it makes. Raises RejectedError for edits that do not fit, and
    for a result that is no document or not that one.
    """
    root = canonical_tree(document)
    places = _Places(root)
    for number, edit in enumerate(patch["edits"], 1):
        try:
            root = _applied(root, edit, places)
        except (_Misfit, QueryError) as error:
            findings.add("SSS428", escape(edit["at"], 80), f"edit {number} at {escape(edit['at'], 200)}: {error}")
            if findings.overflow:
                break
    findings.raise_if_rejected()
    patched = read_document(etree.tostring(root), profile="3.1", path=document.path)
    findings.extend((patched.findings or Findings()).moved(document.path))
    if patch.get("from") == digest(document) and patch.get("to") != digest(patched):
        findings.add("SSS428", "to", f"the patch was changed: of this document it makes {digest(patched)}, "
                                     f"not {escape(str(patch.get('to')), 80)} as it says")
        findings.raise_if_rejected()
    return patched


class _Misfit(Exception):
    """Why an edit cannot be applied."""


class _Places:
    """Where things stood in the document before: each path that ``diff`` writes is found without a search."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._keys: dict[Any, dict[Any, str]] = {}
        self._children: dict[Any, dict[str, Any]] = {}

    def keys(self, element: Any) -> dict[Any, str]:
        """The children that an element had, each with what it is known by."""
        if element not in self._keys:
            self._keys[element] = dict(zip(element, _keys(element), strict=True))
        return self._keys[element]

    def element(self, path: str) -> Any:
        """The element at a path. Raises _Misfit where there is none or several, QueryError for what is no path."""
        start = f"/{_local(self.root)}"
        element = self.root if path == start or path.startswith(f"{start}/") else None
        if element is not None and _STEPS.fullmatch(path, len(start)) is None:
            element = None
        for step in _STEP.findall(path, len(start)) if element is not None else ():
            if element not in self._children:
                self._children[element] = {key: child for child, key in self.keys(element).items()}
            element = self._children[element].get(step)
            if element is None:
                break
        if element is not None:
            return element
        selected = Selector(path).select(self.root)
        if len(selected) != 1 or isinstance(selected[0], str):
            raise _Misfit(f"{len(selected)} elements stand there, not one")
        return selected[0]


def _applied(root: Any, edit: Mapping[str, Any], places: _Places) -> Any:
    if edit["at"] == "/":
        if [_text(root)] != edit["old"] or len(edit["new"]) != 1:
            raise _Misfit("the document is not the one that the patch replaces")
        return _element(edit["new"][0])
    element = places.element(edit["at"])
    if "attributes" in edit:
        for name, (before, after) in edit["attributes"].items():
            if element.get(name) not in (before, after):
                raise _Misfit(f"{escape(name, 60)} is {escape(str(element.get(name)), 60)!r}, not "
                              f"{escape(str(before), 60)!r}")
            if after is None:
                element.attrib.pop(name, None)
            else:
                try:
                    element.set(name, after)
                except ValueError:
                    raise _Misfit(f"{escape(name, 60)} is no attribute of XML") from None
        return root
    at = _place(element, edit, places)
    new = [_element(text) for text in edit["new"]]
    element[at:at + len(edit["old"])] = new
    return root


def _place(element: Any, edit: Mapping[str, Any], before: _Places) -> int:
    """Where the children stand that an edit takes, or where it puts some; most stand where the edit says."""
    old, stated, after = edit["old"], edit.get("place", 0), edit.get("after")
    keys = before.keys(element)
    if old and stated >= 0 and [_text(child) for child in element[stated:stated + len(old)]] == old:
        return int(stated)
    if not old and 0 < stated <= len(element) and keys.get(element[stated - 1]) == after is not None:
        return int(stated)
    if old:
        texts = [_text(child) for child in element]
        places = [at for at in range(len(texts) - len(old) + 1) if texts[at:at + len(old)] == old]
        if stated in places or len(places) == 1:
            return stated if stated in places else places[0]
        what = "does not stand there" if not places else "stands in several places"
        raise _Misfit(f"{escape(old[0], 200)} {what}")
    if after is None:
        return 0
    places = [at for at, child in enumerate(element, 1) if keys.get(child) == after]
    if stated in places or len(places) == 1:
        return stated if stated in places else places[0]
    raise _Misfit(f"{escape(str(after), 200)}, behind which it belongs, does not stand there")


def _element(text: str) -> Any:
    try:
        return parse_tree(text.encode("utf-8", "surrogatepass"), findings=Findings(), repairs=False)
    except RejectedError as error:
        raise _Misfit(f"what it puts there is no XML: {error.findings[0].message}") from None
