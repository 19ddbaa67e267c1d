"""What a stream of responses to one start request may look like, as a checker that reads along.

``RULES`` names each rule and says what flux-core does where it is broken. The profiles are the readings of three times:
rfc32-2022 knows no ``reattached`` and no ``ranks`` "all"; flux-core needs a note in every exception.
Source: RFC 32 (start, release, exception, finish) and flux-core 0.88 (reattached; what it does, tried with a real one).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from sssjob.document.lexical import LexicalError
from sssjob.lrm.idset import Idset

__all__ = ["PROFILES", "RULES", "Broken", "Profile", "StreamRules", "WireRule", "word"]

Profile = Literal["rfc32-2022", "rfc32-2026", "flux-core"]
PROFILES: Final[tuple[Profile, ...]] = ("rfc32-2022", "rfc32-2026", "flux-core")
_IGNORED: Final = "logs an error and ignores the response"
_LOGGED: Final = "takes it and checks nothing; ranks are freed by the final release alone"


@dataclass(frozen=True, slots=True)
class WireRule:
    """effect: what flux-core does. taken: the response has an effect all the same."""

    id: str
    effect: str
    taken: bool = False


_ROWS: Final = (
    WireRule("unknown-type", _IGNORED), WireRule("data", _IGNORED), WireRule("member", _IGNORED),
    WireRule("note", "cannot post the event: the exception is lost, and the job stays in RUN"),
    WireRule("severity", "posts it as it is; only 0 ends the job", True),
    WireRule("after-final", _IGNORED),
    WireRule("start-twice", "logs it; no effect"), WireRule("start-late", "logs it; no effect on the result"),
    WireRule("reattached", "notes it in the event log for debugging; no effect"),
    WireRule("start-for-reattach", "takes it for the start, if there was none", True),
    WireRule("finish-twice", "keeps the later wait status and the earlier result"),
    WireRule("finish-early", "takes it: the job has ended without a start", True),
    WireRule("idset", _LOGGED, True), WireRule("outside-R", _LOGGED, True),
    WireRule("released-twice", _LOGGED, True),
    WireRule("no-ranks", _LOGGED, True), WireRule("all-not-final", _LOGGED, True), WireRule("all", _LOGGED, True),
    WireRule("ranks-left", "frees all ranks of the job", True),
    WireRule("final-early", "sends the start request again, with reattach when the job was started: for ever, if the "
         "service goes on like this", True),
)
#: Id -> rule.
RULES: Final = MappingProxyType({rule.id: rule for rule in _ROWS})
_ONCE: Final = {"start": "start-twice", "reattached": "reattached", "finish": "finish-twice"}
_TYPES: Final[dict[str, tuple[tuple[str, type], ...]]] = {
    "start": (), "reattached": (), "finish": (("status", int),),
    "release": (("ranks", str), ("final", bool)),
    "exception": (("severity", int), ("type", str)),
}


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule, and in words what broke it."""

    rule: WireRule
    text: str

    def __str__(self) -> str:
        return self.text


def _broken(rule: str, text: str) -> Broken:
    return Broken(RULES[rule], text)


class StreamRules:
    """Reads the responses for one job. ranks: those of R, None when they are not known."""

    __slots__ = ("ended", "fatal", "freed", "profile", "ranks", "reattach", "seen")

    def __init__(self, ranks: Idset | None = None, *, reattach: bool = False, profile: Profile = "flux-core") -> None:
        self.ranks, self.reattach, self.profile = ranks, reattach, profile
        self.freed = Idset()        # ranks that were released, as far as they were named
        self.seen: frozenset[str] = frozenset()
        self.fatal = self.ended = False

    def broken(self, kind: object, data: object) -> Broken | None:
        """The rule that the next response breaks; None, and it counts as sent, when it breaks none."""
        problem = self._ended(kind) or _malformed(kind, data, self.profile)
        if problem is None:
            assert isinstance(data, dict) and isinstance(kind, str)
            problem = self._release(data) if kind == "release" else self._order(kind)
        if problem is None:
            self._sent(kind, data)
        return problem

    def take(self, kind: object, data: object) -> None:
        """Count a response as flux-core does that breaks a rule and has an effect all the same."""
        self._sent(kind, data)
        if kind == "release" and isinstance(data, dict):
            self.ended = data.get("final") is True
            self.freed |= _ids(data.get("ranks")) or Idset()

    def canceled(self) -> None:
        """The manager has raised a fatal exception of its own: finish may be left out."""
        self.seen |= {"canceled"}

    @property
    def begun(self) -> bool:
        """Whether the job was started."""
        return bool(self.seen & {"start", "reattached"}) or (self.reattach and self.profile == "rfc32-2022")

    def _sent(self, kind: object, data: object) -> None:
        if isinstance(kind, str):
            self.seen |= {kind}
        self.fatal |= kind == "exception" and isinstance(data, dict) and data.get("severity") == 0

    def _ended(self, kind: object) -> Broken | None:
        return _broken("after-final", f"{word(kind)} after the final release") if self.ended else None

    def _order(self, kind: str) -> Broken | None:
        if kind in _ONCE and kind in self.seen:
            return _broken(_ONCE[kind], f"{kind} twice")
        if kind in ("start", "reattached"):
            return self._beginning(kind)
        if kind == "finish" and not self.begun:
            return _broken("finish-early", "finish before start")
        return None

    def _beginning(self, kind: str) -> Broken | None:
        rule = "start-late" if kind == "start" else "reattached"
        begun = self.seen & {"start", "reattached"}
        if begun:
            return _broken("start-twice" if kind == "start" else "reattached", f"{kind} after {min(begun)}")
        if "finish" in self.seen:
            return _broken(rule, f"{kind} after finish")
        if self.fatal:
            return _broken(rule, f"{kind} after a fatal exception")
        if self.reattach != (kind == "reattached") and self.profile != "rfc32-2022":
            rule = "start-for-reattach" if kind == "start" else "reattached"
            return _broken(rule, f"{kind} for a request with reattach={str(self.reattach).lower()}")
        return None

    def _release(self, data: dict[str, Any]) -> Broken | None:
        released, final = data["ranks"], data["final"]
        problem, freed = self._ranks(released, final)
        if problem is not None:
            return problem
        if final and not self.fatal and self.begun and not self.seen & {"finish", "canceled"}:
            return _broken("final-early", "final release before finish")
        self.ended, self.freed = final, freed
        return None

    def _ranks(self, text: str, final: bool) -> tuple[Broken | None, Idset]:
        """The rule that the ranks of a release break, and what was released after it."""
        if text == "all":
            if self.profile == "rfc32-2022":
                return _broken("all", "ranks 'all', which the text of 2022 does not know"), self.freed
            return (None if final else _broken("all-not-final", "release of all ranks that is not final")), self.freed
        released = _ids(text)
        if released is None:
            return _broken("idset", f"ranks {text!a:.60} are no idset"), self.freed
        freed = self.freed | released
        if self.ranks is not None and released - self.ranks:
            return _broken("outside-R", f"release of ranks {_short(released - self.ranks)} outside R"), freed
        again = released - (released - self.freed)
        if again:
            return _broken("released-twice", f"release of ranks {_short(again)} twice"), freed
        if not released and not final:
            return _broken("no-ranks", "release of no ranks that is not final"), freed
        if final and self.ranks is not None and self.ranks - freed:
            return _broken("ranks-left", f"final release without ranks {_short(self.ranks - freed)}"), freed
        return None, freed


def _ids(text: object) -> Idset | None:
    try:
        return Idset.parse(text) if isinstance(text, str) else None
    except LexicalError:
        return None                 # ``_malformed`` tells


def _short(ids: Idset) -> str:
    text = str(ids)
    return text if len(text) <= 60 else f"{text[:60]}..."


def word(kind: object) -> str:
    """A type of response for a message."""
    return kind if kind in _TYPES and isinstance(kind, str) else f"{kind!a:.60}"


def _malformed(kind: object, data: object, profile: Profile) -> Broken | None:
    """What is wrong with the form of a response."""
    if not isinstance(kind, str) or kind not in _TYPES or (kind == "reattached" and profile == "rfc32-2022"):
        return _broken("unknown-type", f"unknown response type {kind!a:.60}")
    if not isinstance(data, dict):
        return _broken("data", f"{kind} without data")
    for key, types in _TYPES[kind]:
        value = data.get(key)
        if not isinstance(value, types) or (types is int and isinstance(value, bool)):
            return _broken("member", f"{kind} without {key} ({types.__name__})")
    if kind != "exception":
        return None
    note = data.get("note")
    if not isinstance(note, str) and (profile == "flux-core" or note is not None):
        return _broken("note", "exception without note (str)")
    if not 0 <= data["severity"] <= 7:
        return _broken("severity", f"severity {data['severity']} is not in 0-7")
    return None
