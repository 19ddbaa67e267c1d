"""Lines of shell by which the script of a job makes the directories, on nodes where sssjob runs no process before it.

The lines are plain POSIX shell. They hold the values that are known when the script is written, and ask the resource
manager on the node for the others. They never fail a job: what cannot be made is left out. What the pilot has said last
goes into ``$_psij_files.left`` at the end, where that variable names a place.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.mjf.keys import KEYS, VARIABLES, Key, keys_of
from sssjob.mjf.values import Value
from sssjob.mjf.writer import MARK, key_of, written

__all__ = ["EPILOGUE", "EXPORTED", "GUARD", "Layer", "Variable", "Word", "prologue"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}", re.ASCII)
_TREE: Final = "SSSJOB_MJF_TREE"
_EACH_S: Final = 60         # for the other nodes; the job does not wait longer
#: All variables that the lines export.
EXPORTED: Final = (*VARIABLES.values(), _TREE)

# -m and chmod: whatever the umask.
_MAKE: Final = f"""mkdir -m 0755 "$_mjf/machine" "$_mjf/job" "$_mjf/status" && : >"$_mjf/{MARK}" &&
    uname -n >"$_mjf/.node\""""
# A number with a 0 in front would be octal, a bare 0 is no limit, and one of more than twelve digits might not fit once
# it is multiplied.
_FUNCTIONS: Final = r"""_mjf_put() {
    { printf '%s\n' "$2" >"$_mjf/.new" && chmod 0644 "$_mjf/.new" && mv -f "$_mjf/.new" "$_mjf/$1"; } || :
}
_mjf_number() {
    case $2 in
        '' | 0* | *[!0-9]* | ?????????????*) ;;
        *) [ "$(($2 * $3 / $4))" = 0 ] || _mjf_put "$1" "$(($2 * $3 / $4))" ;;
    esac
}
_mjf_word() { case $2 in '' | *[[:space:][:cntrl:]]*) ;; *) _mjf_put "$1" "$2" ;; esac; }
"""
_SHARE: Final = r"""if [ ! -f "$_mjf/job/hs06_job" ] && [ -f "$_mjf/job/allocated_cpu" ] &&
    [ -f "$_mjf/machine/total_cpu" ] && [ -f "$_mjf/machine/hs06" ]
then
    _mjf_put job/hs06_job "$(awk 'FNR == 1 { v[++n] = $1 } END { printf "%.6g", v[1] * v[2] / v[3] }' \
        "$_mjf/machine/hs06" "$_mjf/job/allocated_cpu" "$_mjf/machine/total_cpu")"
fi
"""
_STATUS: Final = " ".join(key.name for key in keys_of("status"))
_AFTER: Final = f"""_mjf_after() {{
    [ -n "${{_mjf:-}}" ] || return 0
    if [ -n "${{_psij_files:-}}" ] && {{ [ -f "$_mjf/status/used_CPU" ] || [ -f "$_mjf/job/hs06_job" ]; }}; then
        (
            umask 077
            printf 'now=%s\\n' "$(date +%s)"
            for _mjf_key in job/allocated_cpu job/hs06_job {' '.join(f'status/{name}' for name in _STATUS.split())}; do
                [ ! -f "$_mjf/$_mjf_key" ] || [ -h "$_mjf/$_mjf_key" ] ||
                    printf '%s=%s\\n' "${{_mjf_key#*/}}" "$(head -c 64 "$_mjf/$_mjf_key" | head -n 1)"
            done
        ) >"$_psij_files.left" 2>/dev/null || :
    fi
    rm -rf -- "$_mjf" 2>/dev/null || :
    if command -v _mjf_each >/dev/null; then _mjf_each remove; rm -f -- "$_psij_files.mjf"; fi
    _mjf=
}}
"""
#: What removes the directories again, for the end of the script and its trap.
EPILOGUE: Final = """if command -v _mjf_after >/dev/null; then _mjf_after; fi
"""
#: Words before a program on any node of a job: where the directories are not this node's own, it does not see them.
GUARD: Final = ("/bin/sh", "-c", f'[ -z "${_TREE}" ] || [ "$(cat "${_TREE}/.node" 2>/dev/null)" = "$(uname -n)" ] || '
                f'unset {" ".join(EXPORTED)}; exec "$@"', "sh")


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the job's environment that holds a value. factor: of its unit in the key's (MiB: 1048576)."""

    name: str
    factor: int = 1


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the shell that gives a value, such as a command substitution, taken as it is. factor: as above."""

    text: str
    factor: int = 1


Layer = Mapping[str, "Value | Variable | Word"]


def prologue(*layers: Layer, root: str | None = None, lines: str = "", each_node: str = "", draft: bool = False,
             override: bool = False) -> str:
    """Lines that make the directories and export their variables, unless the site has set them (override: even then).

    Of the layers a later one counts more, as far as it gives a value. Without a jobstart_secs the clock says when the
    job started. root: the folder of the tree, ``$TMPDIR`` unless stated. lines: for sh, before words are used.
    each_node: lines that run ``"$@"`` on the other nodes (psij.surroundings); there the directories have the same path.
    They are given _EACH_S seconds. draft: the keys of draft 0.99 are written beside those of the note.
    """
    fill = _FUNCTIONS + "".join(f"{line}\n" for line in (*lines.splitlines(), *_puts(layers, draft)))
    if any("hs06" in layer for layer in layers):
        fill += _SHARE
    place = '"${TMPDIR:-/tmp}/mjf-XXXXXXXXXX"' if root is None else shlex.quote(f"{root}/mjf-XXXXXXXXXX")
    condition = "" if override else '[ -z "${MACHINEFEATURES:-}${JOBFEATURES:-}" ] && '
    text = f"_mjf=\nif {condition}_mjf=$(mktemp -d {place} 2>/dev/null) &&\n    chmod 0755 \"$_mjf\" && {_MAKE}\nthen\n"
    text += _indented(fill)
    text += _indented("".join(f'export {name}="$_mjf/{area}"\n' for area, name in VARIABLES.items()))
    text += f'    export {_TREE}="$_mjf"\n'
    if each_node:
        text += _indented(_elsewhere(fill, each_node))
    text += _indented(_AFTER) + '    trap _mjf_after EXIT\nelse\n    [ -z "$_mjf" ] || rm -rf -- "$_mjf"\nfi\n'
    return text


def _elsewhere(fill: str, each_node: str) -> str:
    """Lines that make the same directories on the other nodes, by a file that all nodes see.

    A launcher may pass words through another shell, lose the environment, and come to a node several times: the file is
    run with plain words alone, and whoever makes the tree of a node fills it.
    """
    there = ('PATH=$PATH:/usr/bin:/bin\n_mjf=$2 _psij_files=${0%.mjf}\nexport PSIJ_NODEFILE="$_psij_files.nodefile"\n'
             f'if [ "$1" = remove ]; then\n    [ ! -f "$_mjf/{MARK}" ] || rm -rf -- "$_mjf"\n    exit 0\nfi\n'
             f'mkdir -m 0755 "$_mjf" && {_MAKE} || exit 0\n{fill}')
    return (f"""_mjf_there={shlex.quote(there)}
if [ -n "${{_psij_files:-}}" ] && (umask 077; printf '%s' "$_mjf_there" >"$_psij_files.mjf"); then
    _mjf_each() {{
        case $_psij_files$_mjf in *[!][A-Za-z0-9_./+-]*) return ;; esac
        timeout -k 5 {_EACH_S} /bin/sh -c {shlex.quote(each_node)} sh /bin/sh "$_psij_files.mjf" "$1" "$_mjf" \\
            </dev/null >/dev/null 2>&1 || :
    }}
    _mjf_each make
fi
""")


def _indented(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))


def _puts(layers: tuple[Layer, ...], draft: bool) -> Iterator[str]:
    """The lines that write the keys."""
    if not any(name == "jobstart_secs" and _is_value(value) for layer in layers for name, value in layer.items()):
        yield '_mjf_number job/jobstart_secs "$(date +%s)" 1 1'
    for layer in layers:
        for name, value in layer.items():
            yield from _put(key_of(name), value, draft)


def _is_value(value: object) -> bool:
    return not isinstance(value, Variable | Word)


def _put(key: Key, value: Value | Variable | Word, draft: bool) -> Iterator[str]:
    drafts = [k for k in KEYS.values() if draft and k.of == key.name and not k.normalised]
    if isinstance(value, Variable | Word):
        word = _word(key, value)
        if key.kind in ("id", "path"):
            yield f"_mjf_word {_place(key)} {word}"
        else:
            yield f"_mjf_number {_place(key)} {word} {value.factor} 1"
        yield from (f"_mjf_number {_place(k)} {word} {value.factor} {k.factor}" for k in drafts)
        return
    yield f"_mjf_put {_place(key)} {shlex.quote(written(key, value))}"
    for k in drafts:
        if isinstance(value, int | float) and value // k.factor:
            yield f"_mjf_put {_place(k)} {int(value // k.factor)}"


def _word(key: Key, value: Variable | Word) -> str:
    if value.factor < 1 or (isinstance(value, Variable) and not _NAME.fullmatch(value.name)):
        shown = value.name if isinstance(value, Variable) else value.text
        raise UsageError(f"{key.name}: {escape(shown, 60)!r} x {value.factor} is no variable with a factor")
    return f'"${{{value.name}:-}}"' if isinstance(value, Variable) else f'"{value.text}"'


def _place(key: Key) -> str:
    return f"{key.area}/{key.name}"
