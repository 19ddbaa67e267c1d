"""A script on a host behind SSH with a stream of bytes to it or from it, which need not fit into memory.

The script goes to ``sh -s`` as those of ``_ssh`` do, after a greeting was answered. The stream is sent only when the
script has said that it begins: a shell that reads ahead has read nothing of the stream then. Nothing may be silent for
longer than a time limit; the whole may take as long as it likes. Sources: ssh(1), sh(1) of POSIX.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from psij.executors.batch._host import CutError, UnreachableError

if TYPE_CHECKING:
    from psij.executors.batch._ssh import SSHHost

_CHUNK: Final = 1 << 17
_LOOK_S: Final = 0.2            # between two looks whether to go on
_LEAVE_S: Final = 1.0           # for a script whose stream was given up
_NOISE: Final = 1 << 20         # bytes that logins and scripts may print beside the stream
_SAYS: Final = 3                # last lines of standard error that are told


class LineStopped(Exception):
    """Somebody wants no more of it."""


class LineEnded(Exception):
    """The script has ended, before it was to: ``Line.ended`` says why."""


class Line:
    """One script and its stream, as a context manager; what is under way at its end is given up.

    idle_s: how long nothing may be heard, and nothing be taken. stop: asked now and then whether to go on. In the
    script ``$sssjob_mark`` is a word that nobody can know; lines that begin with it and ``says`` are for ``heard``.
    Methods raise UnreachableError (nothing was run), CutError and LineStopped.
    """

    def __init__(self, host: SSHHost, script: str, idle_s: float, stop: Callable[[], bool]) -> None:
        self._host, self._script, self._idle_s, self._stop = host, script, idle_s, stop
        self._mark = f"sssjob-{token_hex(16)}"
        self._in, self._err, self._out = bytearray(), bytearray(), memoryview(b"")
        self._begun = False
        self._since = time.monotonic()

    def __enter__(self) -> Line:
        try:
            self._process = subprocess.Popen(
                self._host.words(self._idle_s), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                bufsize=0, start_new_session=True)
        except FileNotFoundError:
            raise UnreachableError(f"{self._host.name}: there is no ssh here") from None
        assert self._process.stdin is not None and self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        os.set_blocking(self._stdin.fileno(), False)
        self._selector = selectors.DefaultSelector()
        for file in (self._stdout, self._stderr):
            self._selector.register(file, selectors.EVENT_READ)
        try:
            self.send(f"printf '%s\\n' '{self._mark}'\n".encode())
            self._until(f"{self._mark}\n".encode())
            self._begun = True
            self.send(_whole(self._mark, self._host.setup, self._script))
            self._until(f"{self._mark} begins\n".encode())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for file in (self._stdin, self._stdout, self._stderr):
            with suppress(OSError):     # what was not sent is of no use any more
                file.close()
        try:
            self._process.wait(_LEAVE_S)        # the script tidies up when its stream ends
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError, PermissionError):     # it has ended
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    # --- the stream ------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> int:
        """Send all of it; its length. Raises LineEnded too."""
        self._out = memoryview(data)
        if self._out:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
            try:
                while self._out:
                    self._turn()
                    if len(self._in) > _NOISE:
                        raise CutError(f"{self._host.name}: the answer cannot be understood")
            except CutError:
                if f"\n{self._mark} ended ".encode() in self._in:
                    raise LineEnded from None
                raise
            finally:
                self._selector.unregister(self._stdin)
        return len(data)

    def end(self) -> None:
        """There is no more to be sent."""
        self._stdin.close()

    def read(self, size: int) -> bytes:
        """Up to so many bytes of what comes, at least one."""
        while not self._in:
            self._turn()
        data = bytes(self._in[:size])
        del self._in[:size]
        return data

    def heard(self) -> str:
        """The next line that the script says to us. Raises LineEnded where it has ended without."""
        says, ended = f"{self._mark} says ".encode(), f"\n{self._mark} ended ".encode()
        while says not in self._in:
            if ended in self._in:
                raise LineEnded
            self._turn()
        self._until(says)
        return self._until(b"\n").decode("utf-8", "surrogateescape")

    def ended(self) -> tuple[int, str]:
        """The exit code of the script, when it has ended, and what it has written to standard error."""
        self._until(f"\n{self._mark} ended ".encode())
        code = self._until(b"\n")
        until = f"{self._mark} ended\n".encode()
        with suppress(CutError):        # an ssh that keeps the two apart may be late with one of them
            while until not in self._err:
                self._turn()
        errors = self._err.partition(f"{self._mark} begins\n".encode())[2].partition(until)[0]
        return int(code) if code.isdigit() else 255, _last(errors)

    # --- turns -----------------------------------------------------------------------------------------------------

    def _until(self, end: bytes) -> bytes:
        """What comes before these bytes, which are taken too."""
        while (at := self._in.find(end)) < 0:
            if len(self._in) > _NOISE:
                raise CutError(f"{self._host.name}: the answer cannot be understood")
            self._turn()
        data = bytes(self._in[:at])
        del self._in[:at + len(end)]
        return data

    def _turn(self) -> None:
        """Read and write what can be now."""
        if self._stop():
            raise LineStopped
        open_ones = self._selector.get_map()
        if self._stdout.fileno() not in open_ones:
            raise self._lost(_last(self._err) or "ssh says nothing")
        ready = self._selector.select(_LOOK_S)
        for key, _ in ready:
            if key.fileobj is self._stdin:
                self._write()
                continue
            data = os.read(key.fd, _CHUNK)
            self._since = time.monotonic()
            if not data:
                self._selector.unregister(key.fileobj)
            elif key.fileobj is self._stdout:
                self._in += data
            else:
                self._err = (self._err + data)[-_NOISE:]
        if time.monotonic() - self._since > self._idle_s:
            raise self._lost(f"nothing was heard for {self._idle_s:g} s")

    def _write(self) -> None:
        with suppress(BlockingIOError, BrokenPipeError):    # broken: it has ended, and its outputs say why
            self._out = self._out[os.write(self._stdin.fileno(), self._out[:_CHUNK]):]
            self._since = time.monotonic()

    def _lost(self, why: str) -> OSError:
        if not self._begun:
            return UnreachableError(f"{self._host.name}: {why}")
        return CutError(f"{self._host.name}: the line was lost: {why}")


def _whole(mark: str, setup: str, script: str) -> bytes:
    """The script that is sent: one compound command, of which nothing is run before all of it was read."""
    return f"""{{
{{
:
{setup}
}} </dev/null
sssjob_mark='{mark}'
printf '%s begins\\n' '{mark}'; printf '%s begins\\n' '{mark}' >&2
(
LC_ALL=C; export LC_ALL
{script}
)
sssjob_code=$?
printf '\\n%s ended %s\\n' '{mark}' "$sssjob_code"; printf '%s ended\\n' '{mark}' >&2
exit 0
}}
""".encode("utf-8", "surrogateescape")


def _last(text: bytes | bytearray) -> str:
    """What standard error says, in a line."""
    lines = bytes(text).decode("utf-8", "replace").splitlines()[-_SAYS:]
    return "; ".join(filter(None, map(str.strip, lines)))[:400]
