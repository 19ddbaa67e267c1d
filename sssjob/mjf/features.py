"""The features of a job at one moment: a reading for every key, notes on doubtful ones, and values derived from them.

This module turns keys of the draft into those of the note. It reads no files: ``reader`` does that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sssjob.mjf.keys import AREAS, KEYS, VARIABLES, Area, Grade, Key, keys_of
from sssjob.mjf.places import Answer
from sssjob.mjf.status import Figures, figures
from sssjob.mjf.values import MJFValueError, Value, read_value, revised

__all__ = ["Features", "Note", "Reading", "State", "TimeLeft", "reading"]

State = Literal["value", "absent", "unreadable", "stale"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of one key.

    state: ``absent`` is a statement of the provider, ``unreadable`` says nothing but the reason; ``stale``: a value
    that does not hold now, because it could not be read again or because its time has passed. raw: as found.
    source: the name of the file, where that is another key's.
    """

    key: Key
    state: State
    value: Value | None = None
    raw: str = ""
    reason: str = ""
    source: str = ""

    def record(self) -> dict[str, Any]:
        """As a JSON object; empty members are left out, except state and value."""
        more = {"unit": self.key.unit, "raw": self.raw, "reason": self.reason, "from": self.source}
        return {"state": self.state, "value": self.value} | {k: v for k, v in more.items() if v}


@dataclass(frozen=True, slots=True)
class Note:
    """Something doubtful. code: ``mjf-conflict`` and the like, see docs/mjf.md. key: the variable, where it is about
    all keys of a directory."""

    code: str
    severity: Grade
    key: str
    message: str

    def record(self) -> dict[str, str]:
        """As a JSON object."""
        return {"code": self.code, "severity": self.severity, "key": self.key, "message": self.message}

    def __str__(self) -> str:
        return f"{self.key}: {self.code} {self.severity} {self.message}"


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """seconds: until the first end that is known, may be negative. by: the key that it comes from. unsure: keys that
    could not be read and might end it sooner."""

    seconds: float
    by: str
    unsure: tuple[str, ...] = ()


def reading(key: Key, answer: Answer, now: float) -> Reading:
    """The typed reading of an answer. now: Unix seconds, which a shutdown time must not lie before."""
    if answer.state != "value":
        return Reading(key, answer.state, reason=answer.reason)
    raw = answer.raw.decode("utf-8", "backslashreplace")
    try:
        value = read_value(key.kind, answer.raw)
    except MJFValueError as error:
        return Reading(key, "unreadable", raw=raw, reason=str(error))
    if key.limit and value == 0:
        return Reading(key, "unreadable", raw=raw, reason="0 is no limit, and no limit has no spelling")
    if key.name in _SHUTDOWNS and isinstance(value, int | float) and value < now:
        return Reading(key, "stale", value, raw, "the time has passed")
    return Reading(key, "value", value, raw)


_SHUTDOWNS = ("shutdowntime", "shutdowntime_job")


@dataclass(frozen=True, slots=True)
class Features:
    """All readings of one moment. now: Unix seconds."""

    readings: Mapping[str, Reading]
    now: float
    notes: list[Note] = field(default_factory=list)

    @classmethod
    def of(cls, readings: Mapping[str, Reading], now: float) -> Features:
        """With the draft's keys taken for those of the note that have no value, and everything doubtful noted."""
        features = cls(dict(readings), now)
        features.notes.extend(features._merged())
        features.notes.extend(features._doubts())
        return features

    def __getitem__(self, name: str) -> Reading:
        """The reading of a key; KeyError for a name that is none."""
        return self.readings.get(name) or Reading(KEYS[name], "absent")

    def value(self, name: str) -> Any:
        """The value of a key, stale or not; None where there is none."""
        return self[name].value

    def area(self, area: Area) -> dict[str, Reading]:
        """The readings of an area, in the order of the texts."""
        return {key.name: self[key.name] for key in keys_of(area)}

    # --- both generations

    def _merged(self) -> Iterator[Note]:
        readings = self.readings
        assert isinstance(readings, dict)
        draft: dict[str, Value] = {r.key.name: r.value for r in readings.values()
                                   if r.key.draft and r.value is not None}
        for name, value in draft.items():
            key = KEYS[name]
            if not key.of:
                continue
            values = revised({name: value} | {k: draft[k] for k in ("cpufactor_lrms",) if k in draft})
            stated = self[key.of]
            if not values:
                yield Note("mjf-no-factor", "warning", name, "is normalised, and there is no cpufactor_lrms above 0")
            elif stated.value is None:
                readings[key.of] = Reading(stated.key, readings[name].state, values[key.of], stated.raw,
                                           readings[name].reason, name)
            else:
                yield from self._compared(key, value, values[key.of], stated.value)

    def _compared(self, key: Key, value: Value, draft_value: float, stated: Value) -> Iterator[Note]:
        """A draft key beside the note's: equal within what the draft's unit can say."""
        assert not isinstance(stated, str) and not isinstance(value, str)
        factor = self.value("cpufactor_lrms") if key.normalised else None
        slack = 1 + 1 / factor if factor else key.factor - 1
        if abs(draft_value - stated) <= slack:
            return
        if factor and abs(value * factor - stated) <= 1 + factor:
            yield Note("mjf-factor-inverted", "warning", key.name,
                       f"{value} is {key.of} divided by cpufactor_lrms, not multiplied; {key.of} is trusted")
            return
        yield Note("mjf-conflict", "warning", key.of,
                   f"{stated} {KEYS[key.of].unit}, but {key.name} = {value} gives {draft_value:g}")

    # --- what is doubtful

    def _doubts(self) -> Iterator[Note]:
        reasons: dict[str, list[str]] = {}
        for reading in self.readings.values():
            if reading.state == "unreadable":
                reasons.setdefault(reading.reason, []).append(reading.key.name)
            elif reading.state == "stale":
                yield Note("mjf-stale", "warning", reading.key.name, reading.reason)
        for reason, names in reasons.items():
            whole = next((VARIABLES[a] for a in AREAS if {key.name for key in keys_of(a)} == set(names)), None)
            more = f" (and {len(names) - 1} more keys)" if len(names) > 1 and whole is None else ""
            yield Note("mjf-unreadable", "warning", whole or names[0], reason + more)
        used, allocated = self.value("used_CPU"), self.value("allocated_cpu")
        if used is not None and allocated is not None and used > allocated:
            yield Note("mjf-overused", "warning", "used_CPU", f"{used} cores in use, allocated_cpu is {allocated}")
        for time, grace in (("shutdowntime", "grace_secs"), ("shutdowntime_job", "grace_secs_job")):
            if self[time].value is not None and self[grace].state == "absent":
                yield Note("mjf-no-grace", "info", grace, f"is required where {time} may be set for running jobs")

    # --- what follows

    def shutdown(self, past: Literal["count", "ignore"] = "count") -> Reading:
        """The earlier of both shutdown times; else an unreadable one; else absent: no shutdown is foreseen.

        past: a time that has passed counts, as it does for glideinWMS (drain now), or is ignored as left over.
        """
        shutdowns = [self[name] for name in _SHUTDOWNS]
        moments = [(r.value, r) for r in shutdowns if isinstance(r.value, int | float)]
        moments = [(when, r) for when, r in moments if past == "count" or when >= self.now]
        if moments:
            return min(moments, key=lambda pair: pair[0])[1]
        return next((r for r in shutdowns if r.state == "unreadable"), Reading(KEYS["shutdowntime"], "absent"))

    def elapsed(self, start: float | None = None) -> float | None:
        """Seconds since the job started. start: our own start time, taken where jobstart_secs is not known."""
        begun = self.value("jobstart_secs")
        begun = start if begun is None else begun
        return None if begun is None else self.now - begun

    def remaining(self, start: float | None = None, past: Literal["count", "ignore"] = "count") -> TimeLeft | None:
        """Seconds until the wall-clock limit or a shutdown, whichever comes first; None where nothing is known."""
        ends: dict[str, float] = {}
        elapsed, limit = self.elapsed(start), self.value("wall_limit_secs")
        if elapsed is not None and limit is not None:
            ends["wall_limit_secs"] = limit - elapsed
        shutdown = self.shutdown(past)
        if shutdown.value is not None:
            assert not isinstance(shutdown.value, str)
            ends[shutdown.key.name] = shutdown.value - self.now
        if not ends:
            return None
        unsure = [n for n in (*_SHUTDOWNS, "wall_limit_secs", "jobstart_secs") if self[n].state == "unreadable"]
        by = min(ends, key=lambda name: ends[name])
        return TimeLeft(ends[by], by, tuple(unsure))

    def figures(self) -> Figures:
        """remaining_time, draining_waste and kill_waste, by what the pilot has written into its status directory."""
        return figures({name: self.value(name) for name in self.readings}, self.now)

    def record(self) -> dict[str, Any]:
        """Every key with value and state, what follows, and the notes, as a JSON object."""
        time_left, shutdown, pilot = self.remaining(), self.shutdown(), self.figures()
        derived = {
            "elapsed_s": self.elapsed(),
            "remaining_s": time_left and time_left.seconds, "remaining_by": time_left and time_left.by,
            "unsure": list(time_left.unsure) if time_left else [],
            "shutdown_state": shutdown.state,
            "shutdown_s": None if shutdown.value is None else shutdown.value - self.now,  # type: ignore[operator]
            "pilot_remaining_expected_s": pilot.remaining_expected, "pilot_remaining_max_s": pilot.remaining_max,
            "draining_waste_cpu_s": pilot.draining_waste, "kill_waste_cpu_s": pilot.kill_waste,
        }
        return {"now": self.now,
                **{area: {name: r.record() for name, r in self.area(area).items()} for area in AREAS},
                "derived": derived, "notes": [note.record() for note in self.notes]}
