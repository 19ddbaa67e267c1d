"""Reads MACHINEFEATURES, JOBFEATURES and JOBSTATUS, and keeps what it read for as long as it may.

    >>> features = Reader.from_environment({"JOBFEATURES": "/tmp/mjf-7/job"}).read()
    >>> features["wall_limit_secs"].value, features.remaining()

Static keys are read once. Dynamic ones are read again after ``reread_seconds``, or later where a server says so, or at
once with ``force``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from sssjob.findings import escape
from sssjob.mjf.features import Features, Reading, reading
from sssjob.mjf.keys import AREAS, KEYS, VARIABLES, Area, keys_of
from sssjob.mjf.limits import LIMITS, Limits
from sssjob.mjf.places import METADATA, Answer, Here, Nowhere, Place
from sssjob.mjf.status import locked

if TYPE_CHECKING:
    import ssl

__all__ = ["Reader", "place_of"]


def place_of(base: str, limits: Limits = LIMITS, context: ssl.SSLContext | None = None) -> Place:
    """The place that a variable's value names; what is no place can only be unreadable, never absent."""
    if base.startswith("/"):
        return Here(base.rstrip("/") or "/", limits)
    if base.startswith("file:"):
        try:
            url = urlsplit(base)
        except ValueError:
            url = None
        if url is not None and url.netloc in ("", "localhost") and url.path.startswith("/"):
            return Here(unquote(url.path).rstrip("/") or "/", limits)
    else:
        from sssjob.mjf.web import web_of

        if (web := web_of(base, limits, context)) is not None:
            return web
    return Nowhere(f"{escape(base, 100)!r} is no absolute path and no file:, http: or https: URL")


@dataclass(slots=True)
class _Held:
    """An answer, until when it is not asked for again (None: never), and the last one that was a value."""

    answer: Answer
    until: float | None
    good: Answer | None = None
    reason: str = ""            # why the good one is not up to date


@dataclass(slots=True)
class Reader:
    """places: area -> place; an area that is not named is absent. clock: Unix seconds; ticks: seconds of a clock that
    is never set."""

    places: Mapping[Area, Place]
    limits: Limits = LIMITS
    clock: Callable[[], float] = time.time
    ticks: Callable[[], float] = time.monotonic
    _held: dict[str, _Held] = field(default_factory=dict)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, ask_metadata: bool = False, url: str = METADATA,
                         limits: Limits = LIMITS, context: ssl.SSLContext | None = None) -> Reader:
        """The places that the variables name.

        ask_metadata: where neither MACHINEFEATURES nor JOBFEATURES is set, the metadata of a virtual machine are asked
        at url, once in the life of the process. context: for https.
        """
        places: dict[Area, Place] = {area: place_of(environment[name], limits, context)
                                     for area, name in VARIABLES.items() if environment.get(name)}
        if ask_metadata and not places.keys() & {"machine", "job"}:
            from sssjob.mjf.web import metadata

            places = {**places, **metadata(url, limits)}
        return cls(places, limits)

    def place(self, area: Area) -> Place:
        """Where an area is read from."""
        return self.places.get(area) or Nowhere(f"{VARIABLES[area]} is not set", absent=True)

    def read(self, *, force: bool = False) -> Features:
        """Everything, as of now. force: dynamic keys are read again however short ago that was."""
        for area in AREAS:
            names = [key.name for key in keys_of(area) if self._due(key.name, force)]
            if not names:
                continue
            place = self.place(area)
            if area == "status" and not isinstance(place, Nowhere):
                self._take_status(place)
            else:
                good = {n: held.good for n in names if (held := self._held.get(n)) and held.good}
                self._take(place.read(names, good))
        now = self.clock()
        return Features.of({name: self._reading(name, held, now) for name, held in self._held.items()}, now)

    def get(self, name: str, *, force: bool = False) -> Reading:
        """One key, with the draft's spelling taken for the note's; everything else that is due is read too."""
        return self.read(force=force)[name]

    def _due(self, name: str, force: bool) -> bool:
        held = self._held.get(name)
        if held is None:
            return True
        return held.until is not None and (force or self.ticks() >= held.until)

    def _take(self, answers: Mapping[str, Answer]) -> None:
        for name, answer in answers.items():
            static = not KEYS[name].dynamic and reading(KEYS[name], answer, 0).value is not None
            wait = max(self.limits.reread_seconds, answer.keep_s)
            before = self._held.get(name)
            good = answer if answer.state == "value" else None
            if answer.state == "unreadable" and before is not None:
                good = before.good
            self._held[name] = _Held(answer, None if static else self.ticks() + wait, good, answer.reason)

    def _take_status(self, place: Place) -> None:
        """Read all keys of the pilot as one consistent set: under the lock where there is one, else by reading twice
        until both readings agree."""
        names = [key.name for key in reversed(keys_of("status"))]   # used_CPU last: closing it gives the lock back
        if isinstance(place, Here):
            with locked(place.path, exclusive=False, limits=self.limits) as lock:
                if lock.held:
                    self._take(place.read(names, {}))
                    return
                reason = lock.reason
        else:
            reason = "the pilot kept writing"
        answers = _twice(place, names) if reason != "busy" else None
        if answers is None:
            answers = dict.fromkeys(names, Answer("unreadable", reason=f"used_CPU: {reason}"))
        self._take(answers)

    def _reading(self, name: str, held: _Held, now: float) -> Reading:
        current = reading(KEYS[name], held.answer, now)
        if current.state != "unreadable" or held.answer.state == "value" or held.good is None:
            return current
        last = reading(KEYS[name], held.good, now)
        return current if last.value is None else replace(last, state="stale", reason=f"not read again: {held.reason}")


def _twice(place: Place, names: list[str]) -> dict[str, Answer] | None:
    """Two readings that agree, or None."""
    before = place.read(names, {})
    for _ in range(3):
        if any(a.state == "unreadable" for a in before.values()):
            return before
        after = place.read(names, {})
        if [(a.state, a.raw) for a in before.values()] == [(a.state, a.raw) for a in after.values()]:
            return after
        before = after
    return None
