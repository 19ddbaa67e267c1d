"""Helpers that plug-ins import from psij-python."""

from __future__ import annotations

import os
import threading
from typing import ClassVar, Self

__all__ = ["SingletonThread"]


class SingletonThread(threading.Thread):
    """A thread of which each process has at most one per class; a forked child gets its own."""

    _instances: ClassVar[dict[tuple[type, int], SingletonThread]] = {}
    _lock: ClassVar[threading.RLock] = threading.RLock()

    def __init__(self, name: str | None = None, daemon: bool = False) -> None:
        super().__init__(name=name, daemon=daemon)

    @classmethod
    def get_instance(cls) -> Self:
        """The thread of this class in this process, started."""
        with cls._lock:
            key = (cls, os.getpid())
            thread = cls._instances.get(key)
            if not isinstance(thread, cls):
                thread = cls._instances[key] = cls()
                thread.start()
            return thread
