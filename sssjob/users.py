"""Who the user of this process is."""

from __future__ import annotations

import functools
import getpass
import os

__all__ = ["user_name"]


def user_name() -> str:
    """The name of the user of this process; its number where it has none."""
    return _user_name(os.getuid(), tuple(map(os.environ.get, ("LOGNAME", "USER", "LNAME", "USERNAME"))))


@functools.cache
def _user_name(number: int, stated: tuple[str | None, ...]) -> str:
    """The same, remembered: the system may have to ask another machine. stated: what getpass looks at before that."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(number)
