"""A submission on its way into the journal: planned, then written down, then begun.

The three steps are apart so that many submissions that come together are written in one transaction
(``Client.prepare``, ``Client.enter``, ``Client.begin``).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psij
from sssjob.document.model import Document
from sssjob.errors import UsageError
from sssjob.findings import Policy
from sssjob.run.journal import Entry
from sssjob.run.on_end import Hook
from sssjob.run.plan import Plan

__all__ = ["Prepared"]


@dataclass(slots=True)
class Prepared:
    """A submission that can be written down.

    text: the document as the journal keeps it; token: names its folder; request: what its user calls it; plan, backend:
    None where an earlier request of this name made it; cluster: what the backend's resource manager said that it is,
    asked before the journal is written, which nobody else could write meanwhile; entry: where it stands in the journal,
    None before it does.
    """

    document: Document
    text: str
    executor: str
    directory: Path | None
    policy: Policy
    request: str | None
    on_end: Sequence[Hook]
    token: str
    folder: Path
    plan: Plan | None = None
    backend: psij.JobExecutor | None = None
    cluster: str | None = None
    entry: Entry | None = None

    @property
    def fresh(self) -> bool:
        """Whether it is in the journal now, and not an earlier one with the same request."""
        return self.entry is not None and self.entry.token == self.token

    def entered(self, entry: Entry) -> None:
        """It stands there. Raises UsageError where that is a submission of something else under the same request."""
        if entry.token != self.token:
            self.drop()
            if (entry.document, entry.executor) != (self.text, self.executor):
                raise UsageError(f"the token is that of @{entry.number}, which is another document or for another "
                                 "executor")
        self.entry = entry

    def drop(self) -> None:
        """Remove its folder: it is not submitted."""
        shutil.rmtree(self.folder, ignore_errors=True)
