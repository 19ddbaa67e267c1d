"""Which interpreters of Python jobs can be submitted in."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module

from psij.exceptions import SubmitException

__all__ = ["check_interpreter"]


def _is_main() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):        # since Python 3.13, and before
        with suppress(ImportError):
            interpreters = import_module(name)
            return bool(interpreters.get_current() == interpreters.get_main())
    return True


#: Found out at once: an import when a job is submitted would wait for ever in a signal handler that interrupts it.
_MAIN_INTERPRETER = _is_main()


def _gil_is_on() -> bool:
    """Since Python 3.13 it may be off; in such a build an import may switch it on at any time."""
    is_enabled = getattr(sys, "_is_gil_enabled", None)
    return is_enabled is None or bool(is_enabled())


def check_interpreter() -> None:
    """Raise SubmitException in a subinterpreter, where a thread that is left ends the whole process with it, without
    the global interpreter lock: what several threads do to one object is proved with it alone; and in an interpreter
    that comes to its end, where no modules and threads are to be had."""
    if sys.is_finalizing():
        raise SubmitException("the program has ended: its interpreter takes no more jobs")
    if not _MAIN_INTERPRETER:
        raise SubmitException("jobs can be submitted and attached to in the main interpreter of a process only")
    if not _gil_is_on():
        raise SubmitException("psij is not proved without the global interpreter lock of Python: run this "
                              "free-threaded build with PYTHON_GIL=1, or -X gil=1")
