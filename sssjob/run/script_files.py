"""Scripts that come with a document, as files that a job can run: written once, where the executor finds them."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from psij import JobExecutor
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.document.model import File
from sssjob.errors import AccessError
from sssjob.run.abilities import Brings
from sssjob.run.storage import make_folder, reason_of

if TYPE_CHECKING:
    from sssjob.run.plan import Plan

__all__ = ["ScriptFiles", "as_file_name"]


class ScriptFiles:
    """The scripts of one plan, in its private directory, or where the executor brings them."""

    def __init__(self, plan: Plan, backend: JobExecutor | None) -> None:
        self.plan, self.backend = plan, backend
        self._paths: dict[str, str] = {}        # id of a File and shell -> where it lies

    def path(self, file: File, shell: str | None) -> str:
        """Where a script lies for the job, written when it is first asked for. shell: the interpreter that is to run it
        in place of its own."""
        key = f"{file.id}\0{shell}"
        if key not in self._paths:
            if self.plan.scripts is None:
                self.plan.scripts = Path(tempfile.mkdtemp(prefix="sssjob-"))    # mode 0700
            path = self.plan.scripts / f"{len(self._paths)}-{as_file_name(file.id)}"
            try:
                _write(path, _with_shell(file.content(), shell))
            except OSError as error:
                raise AccessError(str(path), f"the script of a job cannot be written: {reason_of(error)}") from error
            self._paths[key] = str(path)
        if isinstance(self.backend, Brings) and not (
                isinstance(self.backend, BatchSchedulerExecutor) and self.backend.host.is_here):
            return self.backend.brings(Path(self._paths[key]))
        return self._paths[key]


def _write(path: Path, content: bytes) -> None:
    """Have a program in a private folder, whole or not at all; that of an earlier plan may be running."""
    make_folder(path.parent)
    descriptor, fresh = tempfile.mkstemp(prefix=".", dir=path.parent)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
    os.chmod(fresh, 0o700)
    os.replace(fresh, path)


def _with_shell(content: bytes, shell: str | None) -> bytes:
    """The script with the interpreter that is to run it: Shell, else its own ``#!``, else /bin/sh."""
    has_own = content.startswith(b"#!")
    if has_own and shell is None:
        return content
    chosen = shell or "/bin/sh"
    line = f"#!{chosen if chosen.startswith('/') else '/usr/bin/env ' + chosen}\n".encode()
    return line + content.partition(b"\n")[2] if has_own else line + content


def as_file_name(text: str) -> str:
    """The text as part of a file name."""
    return re.sub(r"[^\w.@%+=,-]", "_", text).lstrip(".-") or "_"
