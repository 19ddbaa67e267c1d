"""JOBSTATUS: what a pilot says about the jobs in it, the lock on used_CPU, and the numbers that follow.

The draft asks readers and writers to lock used_CPU first and does not say how: here it is a record lock (``lockf``),
shared by readers. The file is never replaced, since a lock stays with the file that was replaced.
"""

from __future__ import annotations

import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from sssjob.errors import AccessError, UsageError
from sssjob.findings import escape
from sssjob.mjf._files import naming, put
from sssjob.mjf.keys import KEYS
from sssjob.mjf.limits import LIMITS, Limits
from sssjob.mjf.values import Value, write_value

__all__ = ["Busy", "Candidate", "Figures", "Lock", "PilotStatus", "Usage", "figures", "least_critical", "locked"]

LOCK_FILE: Final = "used_CPU"
#: Record locks belong to a process and are gone when it closes the file anywhere: threads take turns.
_TURN: Final = threading.Lock()
_PAUSE: Final = 0.01


class Busy(AccessError):
    """Somebody else has held the lock of used_CPU for lock_seconds."""


@dataclass(frozen=True, slots=True)
class Lock:
    """handle: of used_CPU, to write it through. reason: why the lock is not held; ``busy``: somebody else holds it."""

    held: bool
    reason: str = ""
    handle: int = -1


@contextmanager
def locked(directory: str, *, exclusive: bool, limits: Limits = LIMITS) -> Iterator[Lock]:
    """The lock of a status directory. exclusive: for writing; used_CPU is made where it is absent."""
    end = time.monotonic() + limits.lock_seconds
    if not _TURN.acquire(timeout=limits.lock_seconds):
        yield Lock(False, "busy")
        return
    try:
        flags = (os.O_RDWR | os.O_CREAT) if exclusive else os.O_RDONLY
        try:
            handle = os.open(os.path.join(directory, LOCK_FILE),
                             flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError as error:
            yield Lock(False, error.strerror or str(error))
            return
        try:
            yield _lock(handle, exclusive, end)
        finally:
            os.close(handle)
    finally:
        _TURN.release()


def _lock(handle: int, exclusive: bool, end: float) -> Lock:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        return Lock(False, "not a regular file")
    while True:
        try:
            fcntl.lockf(handle, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            return Lock(True, handle=handle)
        except (BlockingIOError, PermissionError):
            if time.monotonic() >= end:
                return Lock(False, "busy")
            time.sleep(_PAUSE)
        except OSError as error:
            return Lock(False, error.strerror or str(error))


@dataclass(slots=True)
class PilotStatus:
    """What a pilot writes into $JOBSTATUS.

        status = PilotStatus(os.environ["JOBSTATUS"], allocated=8)
        status.update(used_CPU=6, last_job_start=int(time.time()), first_exp_job_end=...)

    allocated: allocated_CPU, which used_CPU must not exceed. quiet_s: how long the other values are left alone after
    can_postpone_last_job has gone back to True; the draft says "a significant amount of time".
    """

    directory: str
    allocated: int | None = None
    quiet_s: float = 600.0
    limits: Limits = LIMITS
    clock: Callable[[], float] = time.time
    _postpones: bool | None = None
    _quiet_until: float = 0.0

    def update(self, **values: Value | None) -> tuple[str, ...]:
        """Write some keys under the lock; None takes one away. Gives the names that were left alone.

        Raises UsageError for what is no key or no value of it, Busy, and AccessError.
        """
        texts = {name: _text(name, value, self.allocated) for name, value in values.items()}
        now, postpones = self.clock(), values.get("can_postpone_last_job")
        put_off = tuple(n for n in texts if n != "can_postpone_last_job" and now < self._quiet_until)
        to_write = {n: t for n, t in texts.items() if n not in put_off}
        path = os.path.join(self.directory, LOCK_FILE)
        if not os.path.lexists(path) and to_write.get(LOCK_FILE) is None:
            raise UsageError("used_CPU has to be in the first update: it is the lock of all others")
        with locked(self.directory, exclusive=True, limits=self.limits) as lock:
            if not lock.held:
                raise (Busy if lock.reason == "busy" else AccessError)(escape(path), lock.reason)
            self._write(lock, to_write)
        if self._postpones is False and postpones is True:
            self._quiet_until = now + self.quiet_s
        if isinstance(postpones, bool):
            self._postpones = postpones
        return put_off

    def _write(self, lock: Lock, texts: Mapping[str, str | None]) -> None:
        for name, text in texts.items():
            if name != LOCK_FILE and text is not None:
                put(self.directory, name, text)
            elif name != LOCK_FILE:
                with naming(os.path.join(self.directory, name)):
                    if os.path.lexists(os.path.join(self.directory, name)):
                        os.unlink(os.path.join(self.directory, name))
        text = texts.get(LOCK_FILE)
        if text is not None:
            with naming(os.path.join(self.directory, LOCK_FILE)):
                os.fchmod(lock.handle, 0o644)
                os.ftruncate(lock.handle, os.pwrite(lock.handle, f"{text}\n".encode(), 0))


def _text(name: str, value: Value | None, allocated: int | None) -> str | None:
    key = KEYS.get(name)
    if key is None or key.area != "status":
        names = ", ".join(k.name for k in KEYS.values() if k.area == "status")
        raise UsageError(f"no key of JOBSTATUS: {name!r} (known: {names})")
    if value is None:
        if name == LOCK_FILE:
            raise UsageError("used_CPU is the lock of all others and cannot be taken away")
        return None
    if key.kind == "time" and isinstance(value, float):
        value = int(value)              # the draft: UNIX time (integer)
    if name == LOCK_FILE and allocated is not None and isinstance(value, int) and value > allocated:
        raise UsageError(f"used_CPU = {value} is more than allocated_CPU = {allocated}")
    try:
        return write_value(key, value)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


# --- the numbers

@dataclass(frozen=True, slots=True)
class Figures:
    """What the draft's formulas give; None where an input is missing. Nothing is clamped: a time that is over is
    negative. Seconds, and cpu seconds for the wastes."""

    remaining_expected: float | None        # a good faith estimate
    remaining_max: float | None             # an enforced limit
    draining_waste: float | None
    kill_waste: float | None


def figures(values: Mapping[str, float | None], now: float) -> Figures:
    """remaining_time at both levels of confidence, draining_waste and kill_waste. Source: draft 0.99, conversion
    formulas."""

    def figure(*names: str) -> list[float] | None:
        """The values of all these names; None if one of them is missing."""
        numbers = [v for v in map(values.get, names) if v is not None]
        return numbers if len(numbers) == len(names) else None

    expected, bound = figure("last_exp_job_end"), figure("last_max_job_end")
    allocated = figure("allocated_cpu") or figure("allocated_CPU")
    drain = figure("used_CPU", "first_exp_job_end", "add_final_exp_waste")
    kill = figure("add_uncom_time", "used_CPU", "last_job_start")
    return Figures(
        expected[0] - now if expected else None,
        bound[0] - now if bound else None,
        (allocated[0] - drain[0]) * (drain[1] - now) + drain[2] if allocated and drain else None,
        kill[0] + kill[1] * (now - kill[2]) if kill else None,
    )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pilot that might have to go. user: whose it is."""

    name: str
    user: str
    values: Mapping[str, float | None]


def least_critical(jobs: Iterable[Candidate], now: float) -> Candidate | None:
    """The job that its user can spare first: the lowest priority_factor, then the least waste when killed.

    A job without a priority comes after those with one, a job without a waste after those with one: what is not known
    is not taken for small. Raises UsageError for jobs of several users, whose priorities cannot be compared.
    """
    candidates = list(jobs)
    users = sorted({job.user for job in candidates})
    if len(users) > 1:
        raise UsageError(f"priority_factor does not compare jobs of different users ({', '.join(users[:5])})")

    def order(job: Candidate) -> tuple[bool, float, bool, float]:
        """The key to sort a job by: priority first, then waste; what is missing comes last."""
        priority, waste = job.values.get("priority_factor"), figures(job.values, now).kill_waste
        return priority is None, priority or 0, waste is None, waste or 0

    return min(candidates, key=order, default=None)


@dataclass(slots=True)
class Usage:
    """Cores in use over time, from one snapshot to the next."""

    greatest: float | None = None
    _area: float = 0.0
    _begun: float | None = None
    _last: tuple[float, float] | None = field(default=None)

    def take(self, now: float, used: float | None) -> None:
        """A snapshot; the cores of the one before count until now."""
        if self._last is not None:
            self._area += self._last[1] * max(0.0, now - self._last[0])
        if used is None:
            used = self._last[1] if self._last is not None else None
        if used is None:
            return
        self._begun = now if self._begun is None else self._begun
        self._last = (now, used)
        self.greatest = used if self.greatest is None else max(self.greatest, used)

    @property
    def mean(self) -> float | None:
        """The mean over time; of one snapshot its own number; None without any."""
        if self._last is None or self._begun is None:
            return None
        span = self._last[0] - self._begun
        return self._area / span if span > 0 else self._last[1]
