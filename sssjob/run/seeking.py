"""The search for native jobs by their tags: one question for all of them, while the engine goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import psij
from psij.executors.batch._terms import Search
from sssjob.run.abilities import Finds, FindsMany

__all__ = ["Seeker", "can_search", "search"]


def can_search(backend: psij.JobExecutor) -> bool:
    """Whether an executor knows a way to find its jobs by their tags."""
    return isinstance(backend, FindsMany | Finds)


def search(backend: psij.JobExecutor, tags: Sequence[str]) -> Search:
    """Which native jobs bear these tags. An executor that is asked for each tag alone, and does not answer for one,
    leaves the others unknown too, as one that answers for all of them does. backend: one that ``can_search``."""
    if isinstance(backend, FindsMany):
        return backend.native_ids_of(tags)
    assert isinstance(backend, Finds)
    native_ids: dict[str, str] = {}
    silence = None
    for tag in tags:
        try:
            native_id = backend.native_id_of(tag)
        except psij.SubmitException as error:
            silence = error
        else:
            native_ids |= {} if native_id is None else {tag: native_id}
    return Search(native_ids, silence)


class Seeker:
    """Asks executors for tags, each executor one question at a time.

    A resource manager is asked in a thread of its own, for it may take as long as its commands may: who waits for the
    answer keeps its own time limit. tell: given a function that takes the answer in, to be called by the engine.
    """

    def __init__(self, tell: Callable[[Callable[[], None]], None]) -> None:
        self._tell = tell
        self._asking: set[int] = set()      # by identity: executors that have not answered yet

    def is_asking(self, backend: psij.JobExecutor | None = None) -> bool:
        """Whether the answer to an earlier question is still to come, from one executor or from any."""
        return bool(self._asking) if backend is None else id(backend) in self._asking

    def ask(self, backend: psij.JobExecutor, tags: Sequence[str], take: Callable[[str, Search], None]) -> None:
        """Have ``take`` called with each tag and what is known of it. An executor that keeps records of its own has
        answered when this returns."""
        if not isinstance(backend, FindsMany):
            for tag in tags:
                take(tag, search(backend, [tag]))
            return
        self._asking.add(id(backend))

        def taken(answer: Search) -> None:
            """Hand the answer on, tag by tag, in the thread of the engine."""
            self._asking.discard(id(backend))
            for tag in tags:
                take(tag, answer)

        def work() -> None:
            """Ask the executor, in a thread of its own; what it raises is no answer."""
            try:
                answer = search(backend, tags)
            except Exception as error:      # of a hook, which may raise anything: no answer
                answer = Search({}, psij.SubmitException(f"{backend.name} gave no answer: {error}", transient=True))
            self._tell(lambda: taken(answer))

        threading.Thread(target=work, name=f"sssjob-{backend.name}-search", daemon=True).start()
