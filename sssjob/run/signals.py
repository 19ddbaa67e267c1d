"""Signals that end or release a run, as words on a queue: none strikes between two steps of the book-keeping; and the
names of those that jobs are sent."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Final

from sssjob.errors import UsageError
from sssjob.findings import escape

__all__ = ["RELEASE", "STOPS", "interrupts", "signal_name"]

#: Why everything was cancelled -> exit code, 128 + n for signal n; everything else is a time limit, 6.
STOPS: Final = {"hangup": 128 + signal.SIGHUP, "interrupted": 128 + signal.SIGINT, "terminated": 128 + signal.SIGTERM}
RELEASE: Final = "release"      # not to stop but to go on: the user releases what is held


@contextmanager
def interrupts(events: queue.SimpleQueue[Any], words: list[str], release: bool = False,
               once: bool = False) -> Iterator[None]:
    """Have Ctrl-C, SIGTERM and SIGHUP put a word on the queue; a signal that is ignored stays so. words: gets the word
    too, for who does not come to the queue for a while. release: SIGUSR1 too. once: the second one ends the process."""
    def tell(why: str, number: int, frame: FrameType | None) -> None:
        """Put the word for a signal on the queue; with ``once`` the next one has its usual effect."""
        events.put(why)
        words.append(why)
        if once and why != RELEASE:
            signal.signal(number, signal.SIG_DFL)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    reasons = {code - 128: why for why, code in STOPS.items()} | ({int(signal.SIGUSR1): RELEASE} if release else {})
    for number, why in reasons.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, partial(tell, why))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def signal_name(text: str) -> str:
    """The name of a signal without SIG, as ``USR1``. text: a name in any case, with SIG or without it; a number would
    mean another signal on another machine. Raises UsageError."""
    name = text.strip().upper().removeprefix("SIG")
    if f"SIG{name}" not in signal.Signals.__members__ or name.startswith(("RT", "CLD")):
        raise UsageError(f"{escape(text, 40)!r} is no signal (known: as HUP, INT, TERM, USR1, USR2, STOP, CONT, KILL)")
    return name
