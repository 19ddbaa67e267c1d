"""One job in the execution service: which responses its start request gets, and when.

    INIT ──▶ RUNNING ──▶ RELEASING ──▶ DONE         start, finish, release
    RECOVER ─▲  └─▶ KILLING ─▲                      reattached; exception
    INIT, RECOVER ──▶ STOPPING ──▶ DONE             given up: exception, release; shells that are up are ended first

No clock, no process: what happened comes in as calls, what is to be done goes out through ``Hands``. A shell is what
runs the job on one or more ranks. Source: RFC 32; flux-core 0.88 job-exec for what it leaves open.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Protocol

from sssjob.lrm.idset import Idset

__all__ = ["Hands", "JobMachine", "Phase", "wait_status_override"]

_FAILED = 1 << 8        # a wait status: exit code 1


class Phase(Enum):
    """Where a job is."""

    INIT = auto()
    RECOVER = auto()
    RUNNING = auto()
    KILLING = auto()
    STOPPING = auto()
    RELEASING = auto()
    DONE = auto()


_BEGINNINGS = {Phase.INIT: "start", Phase.RECOVER: "reattached"}     # what is sent once all shells are up


class Hands(Protocol):
    """What a job's machine asks for."""

    def respond(self, kind: str, data: dict[str, Any]) -> None:
        """Send a response."""

    def running(self) -> None:
        """Keep the time limit from now on."""

    def terminate(self) -> None:
        """End the shells: SIGTERM, SIGKILL later; ``kill_limit`` when that does not help."""

    def clean(self) -> None:
        """Tidy up after the shells, then call ``cleaned``."""

    def done(self) -> None:
        """The final release was sent."""


class JobMachine:
    """ranks: those of R, None when they are not known. partial: release ranks as their shells end."""

    def __init__(self, hands: Hands, ranks: Idset | None, *, reattach: bool = False, partial: bool = False) -> None:
        self.hands, self.left, self.partial = hands, ranks, partial
        self.phase = Phase.RECOVER if reattach else Phase.INIT
        self.shells: dict[int, Idset | None] = {}       # those that have not ended
        self.down: set[int] = set()                     # those that are not up yet
        self.free = Idset()                             # ranks of shells that have ended, not released yet
        self.status = 0                                 # the greatest so far
        self.override: int | None = None
        self.excepted = False
        self.announced = False                          # with reattached, before the shells were up

    def launching(self, shells: Sequence[Idset | None]) -> None:
        """The job gets these shells, numbered from 0; their ranks are told."""
        if self.phase in _BEGINNINGS or self.phase is Phase.STOPPING:
            self.shells = dict(enumerate(shells))
            self.down = set(self.shells)

    def failed(self, note: str) -> None:
        """The job cannot be started, or not be found again."""
        if self.phase in _BEGINNINGS:
            self._raise(0, "exec", note)
            self._stop()

    def again(self) -> bool:
        """The manager asks for this job again: it lost the first request. False when the job is being given up."""
        if self.phase in (Phase.STOPPING, Phase.DONE):
            return False
        self.announced = True
        self.hands.respond("reattached", {})
        return True

    def up(self, shell: int) -> None:
        """A shell is up, or was: one that is found again."""
        self.down.discard(shell)
        if self.phase in _BEGINNINGS and not self.down:
            self._begin(_BEGINNINGS[self.phase])
            self._release_some()
            self._maybe_finish()

    def exited(self, shell: int, status: int, *, timed_out: bool = False) -> None:
        """A shell has ended with a wait status; timed_out: because the time was up."""
        if shell not in self.shells:
            return
        if timed_out:
            self.expired()
        ranks = self.shells.pop(shell)
        self.status = max(self.status, status)
        if ranks is not None:
            self.free |= ranks
        self.up(shell)
        self._release_some()
        self._maybe_finish()

    def not_started(self, shell: int, note: str) -> None:
        """A shell could not be started."""
        if shell not in self.shells:
            return
        del self.shells[shell]
        self.down.discard(shell)
        self.failed(note)
        self.status = max(self.status, _FAILED)
        self._maybe_finish()

    def lost(self, shell: int, note: str) -> None:
        """A shell that was up is gone, nobody knows how. The first one of a job takes the job with it."""
        if shell not in self.shells:
            return
        if self.phase in _BEGINNINGS:
            self.not_started(shell, note)
            return
        if self.phase is Phase.RUNNING:
            critical = shell == 0 or len(self.shells) == 1
            self._raise(0 if critical else 2, "node-failure", note)
            if critical:
                self._kill()
        self.exited(shell, _FAILED)

    def expired(self) -> None:
        """The time is up."""
        if self.phase is Phase.RUNNING:
            self._raise(0, "timeout", "resource allocation expired")
            self._kill()

    def exception(self, severity: int, wait_status: int | None = None) -> None:
        """An exception was raised on the job by somebody else; only severity 0 ends it."""
        if severity != 0:
            return
        if wait_status is not None and not self.excepted:
            self.override = wait_status_override(wait_status)
        if self.phase in _BEGINNINGS:
            self._stop()
        elif self.phase in (Phase.RUNNING, Phase.KILLING):
            self.excepted = True
            self._kill()

    def kill_limit(self) -> None:
        """Shells do not end, whatever is done."""
        if self.phase in (Phase.KILLING, Phase.STOPPING):
            self.shells.clear()
            self._maybe_finish()

    def cleaned(self) -> None:
        """What was left of the job is tidied up."""
        if self.phase is Phase.RELEASING:
            self._release()

    def _begin(self, kind: str) -> None:
        self.phase = Phase.RUNNING
        if not self.announced:
            self.hands.respond(kind, {})
        self.hands.running()

    def _raise(self, severity: int, kind: str, note: str) -> None:
        self.excepted |= severity == 0
        self.hands.respond("exception", {"severity": severity, "type": kind, "note": note})

    def _kill(self) -> None:
        self.phase = Phase.KILLING
        self.hands.terminate()

    def _stop(self) -> None:
        self.phase = Phase.STOPPING
        if self.shells:
            self.hands.terminate()
        self._maybe_finish()

    def _maybe_finish(self) -> None:
        if self.shells:
            return
        if self.phase is Phase.STOPPING:
            self._release()
        elif self.phase in (Phase.RUNNING, Phase.KILLING):
            self.phase = Phase.RELEASING
            self.hands.respond("finish", {"status": self._verdict()})
            self.hands.clean()

    def _release_some(self) -> None:
        """Release the ranks whose shells have ended, if others have not."""
        if self.partial and self.phase is Phase.RUNNING and self.shells and self.free and self.left is not None:
            self.left -= self.free
            self.hands.respond("release", {"ranks": str(self.free), "final": False})
            self.free = Idset()

    def _verdict(self) -> int:
        if self.override is not None:
            return self.override
        return self.status or (_FAILED if self.excepted else 0)

    def _release(self) -> None:
        self.phase = Phase.DONE
        self.hands.respond("release", {"ranks": "all" if self.left is None else str(self.left), "final": True})
        self.hands.done()


def wait_status_override(wait_status: int) -> int | None:
    """The finish status that the wait status of a fatal exception stands for; None when it is none.

    Source: RFC 32 since 2026-07, exit code or 128 + signal, as an exit code.
    """
    if not 0 <= wait_status <= 0xFFFF:
        return None
    try:
        code = os.waitstatus_to_exitcode(wait_status)
    except ValueError:
        return None
    return (code if code >= 0 else 128 - code) << 8
