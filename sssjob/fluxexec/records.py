"""What a later process needs to ask a service for a job again: jobspec, R and time of start, one file a job.

Written before the start request goes out and gone when the job is over, by the executor ``fluxexec`` for services at a
socket: the service finds the processes by the job's id, but a start request has to be whole, with reattach too. A
jobspec holds variables of the job's environment: nobody else may read the files.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sssjob.fluxexec.messages import loads, members
from sssjob.lrm.flux.errors import ProtocolError
from sssjob.lrm.flux.ids import write_id

__all__ = ["Record", "Records"]

log = logging.getLogger("sssjob.fluxexec")


@dataclass(frozen=True, slots=True)
class Record:
    """started: seconds since the epoch, of the start request where the answer was not seen."""

    jobspec: dict[str, Any]
    r: dict[str, Any]
    started: float


@dataclass(frozen=True, slots=True)
class Records:
    """folder: where they lie. service: the socket that they are about."""

    folder: Path
    service: str

    def path(self, number: int) -> Path:
        """The file of a job."""
        return self.folder / f"{write_id(number)}.json"

    def write(self, number: int, record: Record) -> None:
        """Record a job; where that cannot be done it is told, and the job runs."""
        text = json.dumps({"service": self.service, "jobspec": record.jobspec, "R": record.r,
                           "started": record.started}, separators=(",", ":"))
        path = self.path(number)
        new = path.with_suffix(".new")
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
                file.write(text)
            os.replace(new, path)
        except OSError as error:
            log.warning("job %s cannot be attached to later: %s", write_id(number), error)

    def read(self, number: int) -> Record | None:
        """The record of a job; None where there is none of this service."""
        try:
            data = members(loads(self.path(number).read_bytes()), "the record")
            jobspec, r = members(data.get("jobspec"), "jobspec"), members(data.get("R"), "R")
            started = data.get("started")
            if isinstance(started, bool) or not isinstance(started, int | float):
                raise ProtocolError("started is no time")
        except FileNotFoundError:
            return None
        except (OSError, ProtocolError) as error:
            log.warning("the record of job %s cannot be read: %s", write_id(number), error)
            return None
        return Record(jobspec, r, float(started)) if data.get("service") == self.service else None

    def remove(self, number: int) -> None:
        """A job is over."""
        try:
            self.path(number).unlink(missing_ok=True)
        except OSError as error:
            log.warning("the record of job %s cannot be removed: %s", write_id(number), error)
