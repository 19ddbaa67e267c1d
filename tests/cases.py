"""Many small cases in one test: each is checked whatever became of the others, and those that fail are told together.

A test of its own costs more than most of these cases do (it is collected, has fixtures, and sends three reports from
one process to another); what it gives beside a name, fixtures that are made anew, a case of a table does not need.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

__all__ = ["Cases"]


class Cases:
    """Checks that belong to one test.

        with Cases() as case:
            for text, value in TABLE.items():
                with case(text):
                    assert read(text) == value

    What an assertion or an error ends is the case only. The test fails at the end, with an ExceptionGroup that holds
    the error of every case that failed, and the name of the case as its note; also where there was no case at all.
    """

    def __init__(self) -> None:
        self._count = 0
        self._errors: list[Exception] = []

    @contextmanager
    def __call__(self, name: object) -> Generator[None]:
        """One case. name: what tells it from the others."""
        self._count += 1
        try:
            yield
        except Exception as error:
            error.add_note(f"case: {name}")
            self._errors.append(error)

    def __enter__(self) -> Cases:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if error is not None:
            return
        assert self._count, "a test without a case"
        if self._errors:
            raise ExceptionGroup(f"{len(self._errors)} of {self._count} cases fail", self._errors)
