"""Attributes of a job that are not resources: time limit, queue, account, and options of single executors."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

__all__ = ["JobAttributes"]

_CLOCK = r"([0-9]+):([0-9]{1,2})(?::([0-9]{1,2}))?"
_NUMBER = r"([0-9]+(?:\.[0-9]*)?)[ \t]*([HMShms]?)"


class JobAttributes:
    """How a job is to be treated.

    duration: time limit, 10 minutes by default; None, or one of no length, for no limit, read back as None. queue_name,
    account, reservation_id: names known to the backend. custom_attributes: options of single executors,
    ``<executor>.<option>`` to value. project_name: old name of account.
    """

    def __init__(self, duration: timedelta | None = timedelta(minutes=10), queue_name: str | None = None,
                 account: str | None = None, reservation_id: str | None = None,
                 custom_attributes: dict[str, object] | None = None, project_name: str | None = None) -> None:
        self.duration = duration
        self.queue_name = queue_name
        self.account = account
        self.reservation_id = reservation_id
        self.custom_attributes = custom_attributes
        if project_name is not None:
            self.project_name = project_name

    @property
    def duration(self) -> timedelta | None:
        """The time limit, None where there is none."""
        return self._duration

    @duration.setter
    def duration(self, duration: timedelta | None) -> None:
        """Have this as the longest run; None or zero: the manager's own limit."""
        self._duration = None if duration == timedelta(0) else duration

    @property
    def project_name(self) -> str | None:
        """The account, under its old name. Setting it logs a warning."""
        return self.account

    @project_name.setter
    def project_name(self, name: str | None) -> None:
        """Set ``account``, under the older name that psij-python still takes; a warning says so."""
        import logging

        logging.getLogger("psij").warning("JobAttributes.project_name is deprecated, use account")
        self.account = name

    def set_custom_attribute(self, name: str, value: object) -> None:
        """Set one option: name as ``<executor>.<option>``."""
        if self.custom_attributes is None:
            self.custom_attributes = {}
        self.custom_attributes[name] = value

    def get_custom_attribute(self, name: str) -> object | None:
        """The value of one option, None when it is not set."""
        return (self.custom_attributes or {}).get(name)

    @staticmethod
    def parse_walltime(walltime: str) -> timedelta:
        """A time limit from ``hh:mm:ss``, ``hh:mm``, ``mm`` (digits only: minutes), or a number with unit h, m or s.

        Raises ValueError for any other text.
        """
        from sssjob.lrm.clocks import UNITS, total

        text = walltime.strip()
        if clock := re.fullmatch(_CLOCK, text):
            hours, minutes, seconds = (int(part or 0) for part in clock.groups())
            if minutes < 60 and seconds < 60:
                return _span(total((hours, minutes, seconds)), walltime)
        elif (number := re.fullmatch(_NUMBER, text)) and (number[2] or number[1].isdigit()):
            return _span(float(number[1]) * UNITS[number[2].lower() or "m"], walltime)
        raise ValueError(f"{walltime!r} is not a time limit (known forms: hh:mm:ss, hh:mm, mm, and a number with the "
                         f"unit h, m or s)")

    def _values(self) -> dict[str, Any]:
        return {"duration": self.duration, "queue_name": self.queue_name, "account": self.account,
                "reservation_id": self.reservation_id, "custom_attributes": self.custom_attributes}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobAttributes) and self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"JobAttributes({', '.join(f'{key}={value!r}' for key, value in self._values().items())})"


def _span(seconds: float, text: str) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(f"{text!r} is too long for a time limit") from None
