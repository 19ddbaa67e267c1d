"""Named limits of Machine/Job Features; a reason that names one of these fields says which limit was reached."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LIMITS", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes (``*_bytes``), times in seconds (``*_seconds``), all others are counts."""

    value_bytes: int = 4_096            # one value
    digits: int = 64                    # digits of one number
    names: int = 1_000                  # names of one directory that are looked at
    request_seconds: float = 5.0        # one key over HTTP, from the name server to the last byte
    pass_seconds: float = 15.0          # all keys of one area over HTTP
    metadata_seconds: float = 1.0       # the metadata address
    metadata_bytes: int = 65_536
    lock_seconds: float = 2.0           # the lock of used_CPU
    reread_seconds: float = 30.0        # a dynamic key is not read again sooner
    keep_seconds: float = 600.0         # what a server may ask to be kept
    connections: int = 64               # of the HTTP provider at one time
    connection_seconds: float = 10.0    # one request to the HTTP provider


LIMITS = Limits()
