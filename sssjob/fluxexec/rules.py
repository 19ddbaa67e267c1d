"""What a stream of responses to one start request may look like, as a checker that reads along.

Source: RFC 32 (start, release, exception, finish) and flux-core 0.88 (reattached; every exception has a note).
"""

from __future__ import annotations

from typing import Any

from sssjob.fluxexec.idset import Idset
from sssjob.lexical import LexicalError

__all__ = ["StreamRules"]

_ONCE = ("start", "reattached", "finish")
_TYPES: dict[str, tuple[tuple[str, type], ...]] = {
    "start": (), "reattached": (), "finish": (("status", int),),
    "release": (("ranks", str), ("final", bool)),
    "exception": (("severity", int), ("type", str), ("note", str)),
}


class StreamRules:
    """Reads the responses for one job. ranks: those of R, None when they are not known."""

    def __init__(self, ranks: Idset | None = None, *, reattach: bool = False) -> None:
        self.ranks, self.left, self.reattach = ranks, ranks, reattach
        self.seen: set[str] = set()
        self.fatal = self.ended = False

    def violation(self, kind: str, data: object) -> str | None:
        """The rule that the next response breaks; None, and it counts as sent, when it breaks none."""
        found = self._ended(kind) or _malformed(kind, data)
        if found is None:
            assert isinstance(data, dict)
            found = self._release(data) if kind == "release" else self._order(kind)
        if found is None:
            self.seen.add(kind)
            self.fatal |= kind == "exception" and isinstance(data, dict) and data["severity"] == 0
        return found

    def _ended(self, kind: str) -> str | None:
        return f"{kind} after the final release" if self.ended else None

    def _order(self, kind: str) -> str | None:
        begun = self.seen & {"start", "reattached"}
        if kind in _ONCE and kind in self.seen:
            return f"{kind} twice"
        if kind in ("start", "reattached"):
            if begun:
                return f"{kind} after {begun.pop()}"
            if "finish" in self.seen:
                return f"{kind} after finish"
            if self.fatal:
                return f"{kind} after a fatal exception"
            if self.reattach != (kind == "reattached"):
                return f"{kind} for a request with reattach={str(self.reattach).lower()}"
        if kind == "finish" and not begun:
            return "finish before start"
        return None

    def _release(self, data: dict[str, Any]) -> str | None:
        released, final = data["ranks"], data["final"]
        if released == "all":
            if not final:
                return "release of all ranks that is not final"
        else:
            found = self._ranks(released, final)
            if found:
                return found
        if final and not self.fatal and self.seen & {"start", "reattached"} and "finish" not in self.seen \
                and not self.seen & {"canceled"}:
            return "final release before finish"
        self.ended = final
        return None

    def _ranks(self, text: str, final: bool) -> str | None:
        try:
            released = Idset.parse(text)
        except LexicalError:
            return f"ranks {text!a:.60} are no idset"
        if self.ranks is None or self.left is None:
            return None
        if released - self.ranks:
            return f"release of ranks {released - self.ranks} outside R"
        if released - self.left:
            return f"release of ranks {released - self.left} twice"
        if not released and not final:
            return "release of no ranks that is not final"
        left = self.left - released
        if final and left:
            return f"final release without ranks {left}"
        self.left = left
        return None

    def canceled(self) -> None:
        """The manager has raised a fatal exception of its own: finish may be left out."""
        self.seen.add("canceled")


def _malformed(kind: str, data: object) -> str | None:
    """What is wrong with the form of a response."""
    if kind not in _TYPES:
        return f"unknown response type {kind!a:.60}"
    if not isinstance(data, dict):
        return f"{kind} without data"
    for key, wanted in _TYPES[kind]:
        value = data.get(key)
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            return f"{kind} without {key} ({wanted.__name__})"
    if kind == "exception" and not 0 <= data["severity"] <= 7:
        return f"severity {data['severity']} is not in 0-7"
    return None
