"""Where a run stands, for people: one live line on stderr when that is a terminal, else nothing at all."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from sssjob.findings import escape

if TYPE_CHECKING:
    from rich.status import Status

__all__ = ["Progress"]


class Progress:
    """Told of every change of a job. stream: stderr by default; shown: whether to print (None: if it is a terminal)."""

    def __init__(self, total: int = 0, stream: IO[str] | None = None, shown: bool | None = None) -> None:
        self.total = total
        self.stream = sys.stderr if stream is None else stream
        self.shown = self.stream.isatty() if shown is None else shown
        self.states: dict[str, str] = {}
        self._status: Status | None = None

    def changed(self, label: str, state: str, message: str = "") -> None:
        """A job came into a state: waiting, queued, running, done, failed, canceled, skipped or kept."""
        self.states[label] = state
        if self.shown:
            try:
                self._show(label, state, message)
            except OSError:             # the terminal has gone; the jobs have not
                self.shown = False

    def _show(self, label: str, state: str, message: str) -> None:
        from rich.text import Text

        status = self._started()
        if state in ("done", "failed", "canceled", "skipped", "kept"):
            status.console.print(Text(f"{escape(label)}: {state}{': ' + escape(message) if message else ''}"))
        line = Text(self.line())
        line.truncate(status.console.width - 3, overflow="ellipsis")    # a line that wraps would leave rests behind
        status.update(line)

    def line(self) -> str:
        """``3 of 7 jobs ended, running: a, b``."""
        counts = Counter(self.states.values())
        ended = sum(n for state, n in counts.items() if state not in ("waiting", "queued", "running"))
        names = [escape(label, 40) for label, state in self.states.items() if state == "running"]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        running = f", running: {', '.join(names[:5])}{more}" if names else ""
        return f"{ended} of {max(self.total, len(self.states))} jobs ended{running}"

    def _started(self) -> Status:
        if self._status is None:
            from rich.console import Console

            self._status = Console(file=self.stream, markup=False, highlight=False).status("")
            self._status.start()
        return self._status

    def close(self) -> None:
        """Take the live line away."""
        status, self._status = self._status, None
        if status is not None:
            with suppress(OSError):
                status.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
