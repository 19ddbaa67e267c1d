"""Calls in the midst of which a signal handler may call psij as well.

Python runs signal handlers in the main thread, between any two steps of what that is doing. A handler that submits
while the main thread submits would wait for locks of the frame that it has interrupted, which cannot go on before the
handler has ended. So in a program that handles signals the main thread holds no lock: what it asks of psij is done by
another thread, which no handler interrupts, while the main thread waits (``apart``). What a handler asks that has
interrupted such a wait, and need not have an answer, is handed over to be done one after another (``hand_over``):
handlers that come faster than jobs can be submitted would otherwise pile up.

The threads are raw ones: to start a ``threading.Thread`` takes a lock that the main thread may hold too.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what ``signal`` makes of it takes ten times as long
import atexit
import contextvars
import logging
import queue
import signal
import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from types import BuiltinFunctionType, NoneType
from typing import Any, Final, Generic, TypeVar

from psij import _forks
from psij._delivery import log_failure
from psij.exceptions import SubmitException

_T = TypeVar("_T")
_LAST_S = 10.0      # how long the end of the program waits for what was handed over
_BEGIN_S = 1.0      # a thread that has not begun by then will find that nobody waits for it
_NUMBERS: Final = tuple(map(int, signal.valid_signals()))
_NO_HANDLERS: Final = frozenset({int, NoneType, BuiltinFunctionType})       # the last one is that of Ctrl-C
_log = logging.getLogger("psij")


class _Call(Generic[_T]):
    """A call that another thread makes. busy: it does so now.

    A signal handler may raise between any two steps of the thread that waits, which then leaves the call.
    """

    def __init__(self, call: Callable[[], _T], undo: Callable[[], object] | None) -> None:
        self.busy = self._begun = self._left = False
        self._call, self._undo = call, undo
        self._results: list[_T] = []
        self._error: BaseException | None = None
        self._done, self._over = allocate_lock(), allocate_lock()       # for who waits, and for who undoes
        self._done.acquire()
        self._over.acquire()
        self._context = contextvars.copy_context()

    def result(self) -> _T:
        """Have the call made, and wait. Raises what it raises; where a signal handler raises, the call is undone."""
        try:
            _open.append(self)
            try:
                start_new_thread(self._run, ())
            except RuntimeError:        # there can be no more threads: so it may hang, else it would fail
                return self._call()
            self._done.acquire()
            error, self._error = self._error, None
        except BaseException:
            self._left = True
            if self._undo is not None:
                hand_over(self._take_back)
            raise
        finally:
            with suppress(ValueError):
                _open.remove(self)
        if error is not None:
            raise error
        return self._results[0]

    def _run(self) -> None:
        self.busy = self._begun = True
        _mine.passing = True
        try:
            if not self._left:
                self._results.append(self._context.run(self._call))
        except BaseException as e:
            self._error = e
        self.busy = False
        self._done.release()
        self._over.release()

    def _take_back(self) -> None:
        """Undo what was done, once it is; a thread that begins later does nothing."""
        while not self._over.acquire(timeout=_BEGIN_S):
            if not self._begun:
                return
        if self._results and self._undo is not None:
            self._undo()

    def forked(self) -> None:
        """In a forked child, which has no thread that makes the call."""
        if self._over.locked():
            self.busy, self._error = False, SubmitException("the process that was to do it was forked meanwhile")
            self._done.release()
            self._over.release()


class _Later:
    """Calls that are made one after another by a thread that is there while there are some."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()      # may be interrupted in itself
        self._working = allocate_lock()

    def put(self, call: Callable[[], object]) -> None:
        """Have a call made. Raises SubmitException where there can be no thread."""
        self._calls.put(call)
        if not self._working.locked():      # else that thread looks once more after its end
            try:
                start_new_thread(self._work, ())
            except RuntimeError as e:
                raise SubmitException(f"no thread can be started: {e}", e, transient=True) from e

    def _work(self) -> None:
        _mine.passing = True
        while not self._calls.empty() and self._working.acquire(blocking=False):
            try:
                with suppress(queue.Empty):
                    while True:
                        _guarded(self._calls.get_nowait())
            finally:
                self._working.release()

    def finish(self) -> None:
        """At the end of the program: wait until all is done, but not for ever."""
        if self._working.acquire(timeout=_LAST_S):
            self._working.release()
            self._work()
        if count := self._calls.qsize():
            _log.warning("The program ends before %d more calls that signal handlers asked for are made", count)


def _guarded(call: Callable[[], object]) -> None:
    try:
        call()
    except SubmitException as e:
        _log.warning("What a signal handler asked for was not done: %s", e)
    except Exception:
        log_failure("What a signal handler asked for was not done")


class _Here:
    """What is to be put right in a forked child."""

    def _forked(self) -> None:
        global _later
        _later = _Later()
        for call in tuple(_open):
            call.forked()


_open: list[_Call[Any]] = []     # that the main thread waits for: the last one in the innermost handler
_later = _Later()
_mine = threading.local()
_here = _Here()
_forks.tell(_here)
atexit.register(lambda: _later.finish())


def _may_be_interrupted() -> bool:
    """Whether this is the thread that runs signal handlers, and there are some that are the program's own."""
    return threading.get_ident() == threading.main_thread().ident and not _NO_HANDLERS.issuperset(
        map(type, map(_signal.getsignal, _NUMBERS)))


def passing() -> bool:
    """Whether this thread ends with the call that it makes, so that nothing is worth keeping for it."""
    return hasattr(_mine, "passing")


def interrupting() -> bool:
    """Whether the caller is a signal handler that has interrupted ``apart``."""
    return bool(_open) and threading.get_ident() == threading.main_thread().ident and any(
        call.busy for call in tuple(_open))


def apart(call: Callable[[], _T], undo: Callable[[], object] | None = None) -> _T:
    """What a call gives, which must hold no lock of this thread meanwhile; in another thread where a signal handler may
    interrupt this one. undo: what is to be done after it where such a handler has raised instead."""
    return _Call(call, undo).result() if _may_be_interrupted() else call()


def aside(call: Callable[[], _T]) -> _T:
    """What a call gives, which is made by another thread than the main one: not even Ctrl-C ends it half-way."""
    return _Call(call, None).result() if threading.get_ident() == threading.main_thread().ident else call()


def hand_over(call: Callable[[], object]) -> None:
    """Have a call made soon by another thread, after all that was handed over before. What it raises is logged."""
    _later.put(call)
