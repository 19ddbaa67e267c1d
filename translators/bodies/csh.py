"""Variables of a shim in a script for csh, which lines of sh work out and csh takes over.

csh has no functions, no ``${X%%.*}`` and no text over several lines, so that the lines of a shim stay those of sh: they
stand in a here-document, and what they export comes back as lines of ``setenv``. Commands of the other manager are not
carried there. Source: tcsh(1), Input/output, source and setenv.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

__all__ = ["CSH", "in_csh"]

#: Interpreters that read csh.
CSH: Final = ("csh", "tcsh")
#: What csh makes the same text of again: it replaces ``!`` in quotes too.
_QUOTED: Final = r"""printf %s "$sss_value" | sed "s/'/'\\\\''/g; s/!/\\\\!/g""" + '"'


def in_csh(lines: Sequence[str], names: Iterable[str]) -> list[str]:
    """Lines of csh that set what lines of sh export. names: of the variables, some of which may be unset.

    The end of the here-document stands in quotes in both places: csh compares it as it is written.
    """
    return [
        "set sss_shim = `mktemp`", "sh > $sss_shim << 'SSSJOB'", *"\n".join(lines).split("\n"),
        f"for sss_name in {' '.join(names)}; do",
        '    eval "sss_value=\\${$sss_name-}; sss_set=\\${$sss_name+x}"',
        f"""    if [ -n "$sss_set" ]; then printf "setenv %s '%s'\\n" "$sss_name" "$({_QUOTED})"; fi""",
        "done", "'SSSJOB'", "source $sss_shim", "rm -f $sss_shim", "unset sss_shim"]
