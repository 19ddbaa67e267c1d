"""The same directories made by the job's own script, where that is the first of us to run on the node.

Text for a POSIX shell and nothing else: the values that are known when the script is written, and those that the
resource manager puts into the job's environment. It never fails a job: what cannot be made is left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.mjf.keys import KEYS, Key
from sssjob.mjf.values import Value, write_value

__all__ = ["EPILOGUE", "Variable", "prologue"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}", re.ASCII)

# -m and chmod: whatever the umask. A number with a 0 in front would be octal, a bare 0 is no limit, and one of more
# than twelve digits might not fit once it is multiplied.
_HEAD: Final = r"""_mjf=
if [ -z "${MACHINEFEATURES:-}${JOBFEATURES:-}" ] && _mjf=$(mktemp -d "${TMPDIR:-/tmp}/mjf-XXXXXXXXXX" 2>/dev/null) &&
    chmod 0755 "$_mjf" && mkdir -m 0755 "$_mjf/machine" "$_mjf/job" "$_mjf/status"
then
    _mjf_put() {
        { printf '%s\n' "$2" >"$_mjf/.new" && chmod 0644 "$_mjf/.new" && mv -f "$_mjf/.new" "$_mjf/$1"; } || :
    }
    _mjf_number() { case $2 in '' | 0* | *[!0-9]* | ?????????????*) ;; *) _mjf_put "$1" "$(($2 * $3))" ;; esac; }
    _mjf_word() { case $2 in '' | *[[:space:][:cntrl:]]*) ;; *) _mjf_put "$1" "$2" ;; esac; }
"""
_TAIL: Final = """    export MACHINEFEATURES="$_mjf/machine" JOBFEATURES="$_mjf/job" JOBSTATUS="$_mjf/status"
fi
"""
#: What removes the directories again, for the end of the script or its trap.
EPILOGUE: Final = """[ -z "${_mjf:-}" ] || rm -rf -- "$_mjf"
"""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the job's environment that holds a value. factor: of its unit in the key's (MiB: 1048576)."""

    name: str
    factor: int = 1


def prologue(values: Mapping[str, Value], variables: Mapping[str, Variable] | None = None) -> str:
    """Lines that make the directories and export their variables, unless the site has set them.

    A value counts more than a variable of the same key. Without a jobstart_secs the clock says when the job started.
    """
    lines = [f"_mjf_put {_place(name)} {shlex.quote(_text(name, value))}" for name, value in values.items()]
    for name, variable in (variables or {}).items():
        if name not in values:
            lines.append(_from(variable, _key(name)))
    if "jobstart_secs" not in {*values, *(variables or {})}:
        lines.append('_mjf_number job/jobstart_secs "$(date +%s)" 1')
    return _HEAD + "".join(f"    {line}\n" for line in lines) + _TAIL


def _from(variable: Variable, key: Key) -> str:
    if not _NAME.fullmatch(variable.name) or variable.factor < 1:
        raise UsageError(f"{key.name}: {escape(variable.name, 60)!r} x {variable.factor} is no variable with a factor")
    if key.kind in ("id", "path"):
        return f'_mjf_word {_place(key.name)} "${{{variable.name}:-}}"'
    return f'_mjf_number {_place(key.name)} "${{{variable.name}:-}}" {variable.factor}'


def _key(name: str) -> Key:
    key = KEYS.get(name)
    if key is None or key.area == "status":
        raise UsageError(f"no key of a provider: {escape(name, 60)!r}")
    return key


def _place(name: str) -> str:
    return f"{_key(name).area}/{name}"


def _text(name: str, value: Value) -> str:
    try:
        return write_value(_key(name), value)
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
