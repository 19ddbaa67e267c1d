"""Where a run stands, for people: one live line on stderr when that is a terminal, else nothing at all."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import IO, TYPE_CHECKING, Final, Self

from sssjob.findings import escape
from sssjob.lrm.clocks import clock

if TYPE_CHECKING:
    from rich.status import Status
    from rich.text import Text

__all__ = ["Progress"]

_GOING: Final = ("running", "queued", "waiting")
_BADLY: Final = ("failed", "canceled", "skipped")
_ENDED: Final = ("done", *_BADLY, "kept")
_FEW: Final = 20            # jobs of which each end has a line of its own; of more, only bad ends
_RATE_S: Final = 10.0       # a rate says nothing before
_REFRESH: Final = 4.0       # times a second that the line is drawn


class Progress:
    """Told of every change of a job. stream: stderr by default; shown: whether to print (None: if it is a terminal).

    states: of the jobs by their names: waiting, queued, running, done, failed, canceled, skipped or kept.
    """

    def __init__(self, total: int = 0, stream: IO[str] | None = None, shown: bool | None = None) -> None:
        self.total = total
        self.stream = sys.stderr if stream is None else stream
        self.shown = self.stream.isatty() if shown is None else shown
        self._quiet = shown is False
        self.states: dict[str, str] = {}
        self._counts = dict.fromkeys((*_GOING, *_ENDED), 0)     # never another key: the line is drawn by a thread
        self._before = 0            # jobs that had ended when we began
        self._began = time.monotonic()
        self._status: Status | None = None

    def begin(self, states: Mapping[str, str]) -> None:
        """Set out with jobs as they stand, and draw the line at once."""
        for name, state in states.items():
            self._count(name, state)
        self._before = self._ended
        self._began = time.monotonic()
        self._drawn(self._started)

    def changed(self, label: str, state: str, message: str = "") -> None:
        """A job came into a state."""
        before = self.states.get(label)
        if before == state:
            return
        self._count(label, state)
        if state in _BADLY or (state in _ENDED and max(self.total, len(self.states)) <= _FEW):
            self._drawn(lambda: self._say(label, state, message))
        else:
            self._drawn(self._started)

    def warn(self, text: str) -> None:
        """Say at once, on a terminal or not, what keeps the jobs' states from being known."""
        def say() -> None:
            line = f"sssjob: {escape(text, 1000)}"
            if self.shown:
                from rich.text import Text

                self._started().console.print(Text(line))
            else:
                self.stream.write(f"{line}\n")
                self.stream.flush()

        if not self._quiet:
            with suppress(OSError):
                say()

    def _count(self, name: str, state: str) -> None:
        before = self.states.get(name)
        if before is not None:
            self._counts[before] -= 1
        self.states[name] = state
        self._counts[state] += 1

    def _drawn(self, draw: Callable[[], object]) -> None:
        if self.shown:
            try:
                draw()
            except OSError:             # the terminal has gone; the jobs have not
                self.shown = False

    def _say(self, label: str, state: str, message: str) -> None:
        from rich.text import Text

        text = f"{escape(label)}: {state}{': ' + escape(message) if message else ''}"
        self._started().console.print(Text(text))

    @property
    def _ended(self) -> int:
        return sum(self._counts[state] for state in _ENDED)

    def line(self) -> str:
        """``3 of 7 jobs ended, 1 failed, 2 running, 1 queued, 1 waiting, 0:01:05, 2.8 a minute``; what is 0 is left
        out, and the rate of the first seconds."""
        seconds = time.monotonic() - self._began
        parts = [f"{self._ended} of {max(self.total, len(self.states))} jobs ended"]
        parts += [f"{self._counts[state]} {state}" for state in (*_BADLY, *_GOING) if self._counts[state]]
        if self._ended < max(self.total, len(self.states)):
            parts.append(clock(int(seconds), 1))
            if seconds >= _RATE_S and self._ended > self._before:
                parts.append(f"{(self._ended - self._before) * 60 / seconds:.3g} a minute")
        return ", ".join(parts)

    def _started(self) -> Status:
        if self._status is None:
            from rich.console import Console

            console = Console(file=self.stream, markup=False, highlight=False)
            self._status = console.status(_Line(self, console.width - 3), refresh_per_second=_REFRESH)
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


class _Line:
    """What rich draws: the line as it is at that moment, no longer than the terminal is wide."""

    def __init__(self, progress: Progress, width: int) -> None:
        self.progress, self.width = progress, width

    def __rich__(self) -> Text:
        from rich.text import Text

        words = self.progress.line()
        line = Text(words if len(words) <= self.width else words.rpartition(", ")[0])       # rather no rate than half
        line.truncate(self.width, overflow="ellipsis")      # a line that wraps would leave rests behind
        return line
