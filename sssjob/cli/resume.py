"""``sssjob resume``: let jobs go on that are suspended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sssjob.cli._journal import on_jobs
from sssjob.cli._wishes import asked

if TYPE_CHECKING:
    from sssjob.run.client import Client

__all__ = ["command"]


@on_jobs("resume", "The longest to wait until it is done")
def command(client: Client, as_json: bool, ids: tuple[str, ...], timeout: float | None) -> int:
    """Let these jobs go on, which are suspended.

    Exit status as of `suspend`.
    """
    return asked(client, as_json, "resume", ids, timeout)
