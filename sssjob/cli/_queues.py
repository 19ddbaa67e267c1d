"""Directory queues (dirq): folders of messages, which APEL's and SSM's clients send and take away.

``QUEUE/6566d1a8/6566d1c40a1b2c`` is a message: a folder for each minute, and in it files named by the second, the
microsecond and a digit, all hexadecimal. What another program sees is whole: a message has the suffix ``.tmp`` until
all of them are written. Source: the package dirq of CERN, module QueueSimple; only its names are needed here.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from sssjob.errors import AccessError
from sssjob.findings import escape

_MINUTE: Final = 60
_TEMPORARY: Final = ".tmp"
_TRIES: Final = 1000        # names that are taken already


def messages(lines: Iterable[bytes], header: re.Pattern[bytes]) -> Iterator[bytes]:
    """The messages of a text. header: of the line that begins one."""
    message: list[bytes] = []
    for line in lines:
        if message and header.match(line):
            yield b"".join(message)
            message = []
        message.append(line)
    if message:
        yield b"".join(message)


def enqueue(queue: str, bodies: Iterable[bytes], clock: Callable[[], float] = time.time) -> list[str]:
    """Put messages into a queue, which is made if it is not there, all of them or none; gives their names in it, which
    sort in their order. clock: epoch seconds, of the names. Raises AccessError."""
    now = clock()
    folder = f"{int(now) - int(now) % _MINUTE:08x}"
    place, moment = Path(queue) / folder, int(now * 1_000_000)
    waiting, linked = list[Path](), list[Path]()
    try:
        place.mkdir(parents=True, exist_ok=True)
        for body in bodies:
            moment, path = _written(place, moment, body)
            waiting.append(path)
        for path in waiting:
            linked.append(_linked(path))
        return [f"{folder}/{path.name}" for path in linked]
    except OSError as error:
        for path in linked:
            with suppress(OSError):     # somebody has taken it already
                path.unlink()
        raise AccessError(escape(queue), error.strerror or str(error)) from None
    finally:
        for path in waiting:
            with suppress(OSError):
                path.unlink()
        with suppress(OSError):     # there are messages in it
            place.rmdir()


def _written(place: Path, moment: int, body: bytes) -> tuple[int, Path]:
    """(microseconds behind those of its name, temporary file) of a message that nobody takes yet."""
    for at in range(moment, moment + _TRIES):
        path = place / (_name(at) + _TEMPORARY)
        with suppress(FileExistsError), open(path, "xb") as file:
            try:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                path.unlink()
                raise
            return at + 1, path
    raise _crowded()


def _linked(path: Path) -> Path:
    """A message as others see it, under a name that none has."""
    moment = int(path.name[:8], 16) * 1_000_000 + int(path.name[8:13], 16)
    for at in range(moment, moment + _TRIES):
        with suppress(FileExistsError):
            os.link(path, path.parent / _name(at))
            return path.parent / _name(at)
    raise _crowded()


def _name(microseconds: int) -> str:
    return f"{microseconds // 1_000_000:08x}{microseconds % 1_000_000:05x}{os.getpid() % 16:x}"


def _crowded() -> OSError:
    return OSError(errno.EEXIST, "others put messages into it too fast")
