"""Moab's packing of a script into one text: ``\\START`` and two-digit lower-case hex escapes.

Source: Moab manual, Submitting Jobs via msub in XML; the form is the one that Maui's unpack routine reads.
"""

from __future__ import annotations

import re

__all__ = ["pack", "unpack"]

_ESCAPE = re.compile(r"\\([0-9a-f]{2})")
_SAFE = re.compile(r"[^A-Za-z0-9!/._,:=+@%^~-]")


def unpack(text: str) -> str:
    """The script in a SubmitString; a text without ``\\START`` is the script itself."""
    text = text.strip()
    if not text.startswith("\\START"):
        return text
    return _ESCAPE.sub(lambda m: chr(int(m.group(1), 16)), text.removeprefix("\\START"))


def pack(script: str) -> str:
    """The SubmitString of a script; bytes of UTF-8 above 127 stay as they are."""
    return "\\START" + _SAFE.sub(lambda m: f"\\{ord(m.group()):02x}" if ord(m.group()) < 128 else m.group(), script)
