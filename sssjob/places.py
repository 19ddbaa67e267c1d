"""Names of files, and where those of configuration and of state belong for the user, also without a home directory.

In a container whose user has no name, or in a service without HOME, nobody knows a home directory: there the user has
no configuration, and what is to be kept has to be told a place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sssjob.errors import AccessError

__all__ = ["check_name", "configuration_files", "state_folder"]


def check_name(name: str) -> None:
    """Raise AccessError for a text that is the name of no file: it is empty, holds a NUL, or one half of a surrogate
    pair, for which the system has no bytes."""
    try:
        possible = name != "" and "\0" not in os.fsdecode(os.fsencode(name))
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise AccessError(name or "''", "no file can have this name")


def configuration_files(program: str, variable: str,
                        environment: Mapping[str, str] = os.environ) -> list[tuple[Path, bool]]:
    """The files of configuration, the one that counts least first, each with whether it has to be there.

    Those of the system (XDG_CONFIG_DIRS, /etc/xdg), then that of the user (XDG_CONFIG_HOME, ~/.config), or the one that
    the variable names; all are ``PROGRAM/config.toml``. The user's is left out where its folder cannot be looked into,
    as root's home directory cannot by a service that has given up its rights.
    """
    import platformdirs

    system = reversed(platformdirs.site_config_dir(program, multipath=True).split(os.pathsep))
    files = [(Path(folder, "config.toml"), False) for folder in system]
    if stated := environment.get(variable):
        return [*files, (Path(stated), True)]
    try:
        own = Path(platformdirs.user_config_dir(program), "config.toml")
        with suppress(FileNotFoundError, NotADirectoryError):
            own.stat()
    except (RuntimeError, PermissionError):     # no home directory; or another user's
        return files
    return [*files, (own, False)]


def state_folder(program: str, variable: str) -> Path:
    """Where the program keeps what is to outlive it (XDG_STATE_HOME, ~/.local/state). variable: names another place,
    for the message. Raises AccessError where there is no home directory."""
    import platformdirs

    try:
        return Path(platformdirs.user_state_dir(program))
    except RuntimeError:
        raise AccessError("~/.local/state", f"there is no home directory; set HOME, XDG_STATE_HOME or {variable}"
                          ) from None
