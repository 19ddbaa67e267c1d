"""Script bodies: the variables and commands of one resource manager in the words of another.

``sssjob.lrm.variables`` holds the table of each dialect, ``carry`` does the work; neither is imported before a body
needs it.
"""

from __future__ import annotations

from typing import Final, Literal

__all__ = ["MODES", "POSITIONAL", "Mode"]

#: What becomes of a body.
Mode = Literal["keep", "translate", "shim"]
MODES: Final[tuple[Mode, ...]] = ("keep", "translate", "shim")

#: A word of the script's own call, as a shell expands it.
POSITIONAL: Final = r"\$(?:[1-9@#*]|\{(?:[1-9@*]|#\}))"
