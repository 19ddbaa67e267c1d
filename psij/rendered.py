"""What a submission would hand over, for who wants to see it before anything is submitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Rendered"]


@dataclass(frozen=True, slots=True)
class Rendered:
    """The command that submits or starts a job, as words, and what it gets.

    files: path -> text of the files that are written before it, the script first. directory: where it is started, None
    where that does not matter. environment: variables that it gets beside those of the submitter. streams: stdin,
    stdout and stderr -> path, of a process that is started at once. request: the text of a request that goes to a
    service, for which there is no command.
    """

    command: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    directory: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    streams: Mapping[str, str] = field(default_factory=dict)
    request: str | None = None
