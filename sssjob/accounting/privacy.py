"""Privacy profiles: which properties of a job are shown as pseudonyms or not at all, and how small a group may be.

    key_file = "secret.key"
    least = 5

    [properties]
    User = "pseudonym"
    Name = "redact"

A pseudonym is a keyed hash (HMAC-SHA256), the same for the same name as long as the key is the same, so that sums by
user stay sums by user. Who has the key can make the pseudonyms of known names; nobody else can. All keys are in
docs/account.md.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, StringConstraints, ValidationError, field_validator

from sssjob.document.element import Container, Item, Property, new_property
from sssjob.document.model import Job
from sssjob.document.vocabulary import ELEMENTS
from sssjob.errors import ProblemsError
from sssjob.findings import escape
from sssjob.xml._faults import model_problem
from sssjob.xml._toml import TOMLError, read_toml

__all__ = ["Privacy", "PrivacyError", "read_privacy"]

What = Literal["keep", "pseudonym", "redact"]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_KNOWN: Final = frozenset(e.name for e in ELEMENTS)
#: What tells how much a job had, when, and where it ran, and not whose it is or what it did: numbers, times, and names
#: that the site has given.
_FIGURES: Final = frozenset((
    *(e.name for e in ELEMENTS if e.type != "String"), "Id", "State", "Machine", "Queue", "Partition", "Project",
    "QualityOfService", "Reservation", "TimeCategory", "ResourceManagerType", "Architecture", "OperatingSystem",
    "Feature", "Hold", "Type", "Node"))
#: Extensions of the manager that are no number, and tell no more than that: which element, and its own word for the
#: state, of which only the first is left (``CANCELLED by 1234``).
_OF_MANAGER: Final = ("ArrayId", "ArrayIndex", "NativeId", "JobIDRaw", "Planned", "ExitStatus", "DerivedExitCode",
                      "MaxVMSize")
_NUMBER: Final = re.compile(r"[0-9][0-9.,:+-]*")
_SHORTEST: Final = 16           # bytes of a key
_LONGEST: Final = 1 << 16


class PrivacyError(ProblemsError):
    """A profile that is wrong."""


class Privacy(BaseModel):
    """A profile. properties: what becomes of each that is named; others: of all that are not (``figures``: numbers,
    times and names of the site are kept, all other texts are left out); extensions: of every Extension but those of
    type LRM; least: users of which a group of a summary has to consist to be shown."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key_file: _Name | None = None
    properties: dict[_Name, What] = Field(default_factory=dict)
    others: Literal["figures", "keep", "redact"] = "figures"
    extensions: Literal["keep", "redact"] = "redact"
    least: int = Field(default=1, strict=True, ge=1, le=1_000_000)
    _key: bytes = PrivateAttr(b"")

    @field_validator("properties")
    @classmethod
    def _properties(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if name not in _KNOWN:
                raise ValueError(f"{name!r} is no property of a job")
            if name in ("Id", "State") and value[name] == "redact":
                raise ValueError(f"{name} cannot be left out, for a job must have it")
        return value

    def pseudonym(self, name: str, text: str) -> str:
        """What stands for the text of a property: 16 letters and digits, after its initial."""
        digest = hmac.new(self._key, f"{name}\0{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
        return f"{name[0].lower()}-{base64.b32encode(digest[:10]).decode().lower()}"

    def treatment(self, tag: str) -> What:
        """What becomes of a property of a job."""
        return self.properties.get(tag) or self._of_others(tag)

    def applied(self, job: Job) -> Job:
        """The job as it may be shown; the given one stays as it is."""
        shown = self._container(job)
        assert isinstance(shown, Job)
        return shown

    def _container(self, container: Container) -> Container:
        items = [shown for item in container.items if (shown := self._item(item)) is not None]
        return type(container)(items, dict(container.attributes) or None, container.reference, container.line)

    def _of_others(self, tag: str) -> What:
        """What becomes of a property that the profile does not name."""
        if tag in ("Id", "State"):
            return "keep"
        if self.others == "figures":
            return "keep" if tag in _FIGURES else "redact"
        return self.others

    def _item(self, item: Item) -> Item | None:
        if isinstance(item, Container):
            return self._container(item)
        if not isinstance(item, Property):      # not understood: nobody can say what is in it
            return item if self.others == self.extensions == "keep" else None
        if item.tag == "Extension" and item.get("type") != "LRM":
            return item if self.extensions == "keep" else None
        if item.tag == "Extension" and self.others == "figures" and item.tag not in self.properties:
            return _of_manager(item)
        treatment = self.treatment(item.tag)
        if treatment == "keep":
            return item
        if treatment == "pseudonym":
            return new_property(item.tag, self.pseudonym(item.tag, item.text), _plain(item))
        if item.tag == "StatusMessage":         # the word for the reason names nobody
            return new_property(item.tag, item.text.partition(":")[0])
        return None


def _of_manager(item: Property) -> Property | None:
    """An Extension of type LRM as far as it is a figure."""
    name, text = item.get("name"), item.text.strip()
    if name == "State":
        return new_property(item.tag, text.partition(" ")[0], dict(item.attributes))
    return item if name in _OF_MANAGER or _NUMBER.fullmatch(text) else None


def _plain(item: Property) -> dict[str, str]:
    """The attributes of a property that hold no text of the user."""
    return {k: v for k, v in item.attributes.items() if k in ("aggregation", "delimiter", "condition", "designator")}


def read_privacy(text: bytes, path: str = "-", *, environment: Callable[[str], str | None] = os.environ.get) -> Privacy:
    """The profile of a TOML text. The key stands in key_file (beside the profile), else in SSSJOB_PRIVACY_KEY.

    Raises PrivacyError with every problem and the path of its key.
    """
    try:
        privacy = Privacy.model_validate(read_toml(text))
    except ValidationError as error:
        raise PrivacyError(path, [model_problem(e) for e in error.errors()]) from None
    except TOMLError as error:
        raise PrivacyError(path, [str(error)]) from None
    if "pseudonym" in privacy.properties.values():
        privacy._key = _key(privacy.key_file, path, environment)
    return privacy


def _key(name: str | None, path: str, environment: Callable[[str], str | None]) -> bytes:
    if name is None:
        key = (environment("SSSJOB_PRIVACY_KEY") or "").encode("utf-8", "surrogateescape")
        source = "SSSJOB_PRIVACY_KEY"
    else:
        file = Path(path).parent / name
        source = f"key_file {escape(str(file))}"
        try:
            with open(file, "rb") as stream:
                key = stream.read(_LONGEST).strip()
        except (OSError, ValueError) as error:
            raise PrivacyError(path, [f"{source}: {getattr(error, 'strerror', None) or error}"]) from None
    if len(key) < _SHORTEST:
        raise PrivacyError(path, [f"{source}: pseudonyms need a key of {_SHORTEST} bytes or more"])
    return key
