"""Commands of the source as functions of a shim: they take the words that the body gives and call what does the same on
the target.

A function of a submit command knows the calls of the body by the shape of their words, and takes no other.

A function takes only what the table of launchers knows to be the same, in the forms that the body uses; anything else
ends it with a message. What cannot be a function (behind ``exec`` or ``nohup``, named by its path) stays as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sssjob.translators.bodies.commands import Launch
from sssjob.translators.bodies.launchers import AMOUNTS, HELD, ONCE, SOFT, Form, Launcher, asked_tasks, untold
from sssjob.translators.bodies.shell import WRAPPERS, Use

__all__ = ["Functions"]

#: Shells that take any word for the name of a function, and those that know ``time`` as a word of their own.
_ANY_NAME: Final = ("bash", "zsh")
_TIME: Final = ("bash", "ksh", "ksh93", "mksh", "zsh")


@dataclass(slots=True)
class _Calls:
    """What the calls of a launcher say: the forms of their options, what need not be said again, and what the other
    one has to be told although they do not say it, by meaning; counted: as that of ``Said``."""

    launcher: Launcher
    to: Launcher
    default: str = ""
    forms: dict[Form, None] = field(default_factory=dict)
    holding: dict[str, dict[str, None]] = field(default_factory=dict)
    untold: dict[str, str] = field(default_factory=dict)
    counted: dict[Form, dict[str, None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Submission:
    """A call of a submit command: what tells it from others, and the lines that make the call of the target."""

    conditions: tuple[str, ...]
    lines: tuple[str, ...]


class Functions:
    """The functions of one shim. program: the shell; job_values: what the job asks for."""

    def __init__(self, program: str, job_values: Mapping[str, str]) -> None:
        self.program, self.known = program, job_values
        self.refused: set[str] = set()                          # commands of which some call is left
        self._made: dict[str, dict[str, _Part]] = {}            # command -> second word -> what it calls

    def unfit(self, use: Use) -> str:
        """Why a command cannot be a function, or nothing."""
        if use.end - use.start != len(use.name):
            return "a function has no path"
        if not re.fullmatch(r"[A-Za-z_]\w*", use.name, re.ASCII) and self.program not in _ANY_NAME:
            return f"{self.program} takes no such name for a function"
        wrapper = next((w for w in use.before if w in WRAPPERS and (w != b"time" or self.program not in _TIME)), None)
        return f"{wrapper.decode()} starts no function" if wrapper is not None else ""

    def call(self, name: str, second: str, word: str) -> None:
        """A command that calls another one with the same words."""
        self._made.setdefault(name, {})[second] = word

    def launch(self, use: Use, second: str, launch: Launch) -> None:
        """A call of a launcher."""
        parts = self._made.setdefault(use.name, {})
        calls = parts.setdefault(second, _Calls(launch.launcher, launch.to, launch.default))
        assert isinstance(calls, _Calls)
        calls.forms |= launch.said.forms
        for form, texts in launch.said.counted.items():
            calls.counted.setdefault(form, {}).update(texts)
        calls.untold |= untold(launch.said.values, launch.launcher, launch.to, self.known)
        for key, (_, value) in launch.values.items():
            if key not in launch.to.writes:
                calls.holding.setdefault(key, {})[value.decode("utf-8", "surrogateescape")] = None
        if use.kind == "held":                          # more may follow where it is used
            for key, asked in HELD.items():
                if key not in launch.to.writes and (text := self.known.get(asked, "")).isdigit():
                    calls.holding.setdefault(key, {})[text] = None
            calls.forms |= dict.fromkeys(self._all(calls))
            self.refused.add(use.name)

    def submit(self, use: Use, length: int, call: str) -> str:
        """A call of a submit command, length words of which name it, as one of the target's; why there is none."""
        second = use.words[1].text.decode() if length == 2 else ""
        words = [w.text.decode("utf-8", "surrogateescape") for w in use.words[length:]]
        submission = _submission(words, f"command {call}" if call.split()[0] == use.name else call)
        if isinstance(submission, str):
            return submission
        calls = self._made.setdefault(use.name, {}).setdefault(second, [])
        assert isinstance(calls, list)
        if submission not in calls:
            calls.append(submission)
        return ""

    def _all(self, calls: _Calls) -> Iterator[Form]:
        """All forms of options that the target can be told."""
        fit = {"own", "tuning", "same", *SOFT, *calls.to.writes, *calls.holding,
               *(m for s in calls.launcher.sums for m in (s[1], s[3]))}
        for name, meaning in calls.launcher.reads.items():
            if meaning not in fit:
                continue
            optional = name in calls.launcher.optional
            if name in calls.launcher.flags or optional:
                yield name, "flag"
            else:
                yield name, "apart"
            if name.startswith("--") and name not in calls.launcher.flags:
                yield name, "equals"
            elif meaning in AMOUNTS or optional:
                yield name, "glued"

    def lines(self, name: str) -> list[str]:
        """The lines that define the function."""
        parts = self._made[name]
        if "" in parts:
            lines = self._part(name, parts[""])
            return [f"{name}() {{ {lines[0]}; }}"] if len(lines) == 1 else [f"{name}() (", *_in(lines), ")"]
        lines_of_function = ['case "${1:-} ${2:-}" in']
        for second, part in parts.items():
            if second == "show":
                lines_of_function.append(f'"show hostnames" | "show hostname") {part} ;;')
            else:
                lines_of_function += [f'"{second} "*)', *_in(["shift", *self._part(f"{name} {second}", part)]),
                                      "    ;;"]
        lines_of_function += [f'*) command {name} "$@" ;;', "esac"]
        within = any(isinstance(part, _Calls | list) for part in parts.values())
        return [f"{name}() {'(' if within else '{'}", *_in(lines_of_function), ")" if within else "}"]

    def _part(self, name: str, part: _Part) -> list[str]:
        if isinstance(part, list):
            return list(_by_shape(name, part))
        if isinstance(part, str):
            return [f'case " $*" in *" -"*) command {name} "$@" ;; *) {part} "$@" ;; esac']
        return list(self._launch(name, part))

    def _launch(self, name: str, calls: _Calls) -> Iterator[str]:
        """The lines of the shell function that stands for a launcher. Its body runs in a subshell, so that its
        variables do not change those of the script."""
        launcher, to = calls.launcher, calls.to
        keys = {launcher.reads[form[0]] for form in calls.forms} - ONCE - (SOFT - to.writes.keys())
        sums = [s for s in launcher.sums if s[1] in keys | {"all_nodes"} and s[3] in keys | launcher.ones]
        names = list(dict.fromkeys([*keys & {*to.writes}, *sorted(keys), *(s[0] for s in sums), *launcher.ones & {
            *to.writes}]))
        if names:
            yield " ".join(f"sss_{m}={'1' if m in launcher.ones else ''}" for m in sorted(names))
        refusal = f'echo "{name}: {{}} has no equal here" >&2; exit 2'
        if calls.forms or launcher.ends or name.partition(" ")[0] in self.refused:
            yield from ("while :; do", '    case "${1-}" in', *_in(_cases(calls)), f"    -*) {refusal.format('$1')} ;;",
                        "    *) break ;;", "    esac", "done")
        yield from self._sums(sums, names)
        if "gpus" in names and "gpus" in to.writes:
            yield '[ "$sss_gpus" != 0 ] || sss_gpus='
        for key, texts in calls.holding.items():
            if key in names:
                refused = refusal.format(f"$sss_{key}")
                yield f'case "$sss_{key}" in "" | {" | ".join(texts)}) ;; *) {refused} ;; esac'
        yield f'{" ".join([to.name, *self._options(calls, names)])} "$@"'

    def _sums(self, sums: list[tuple[str, str, str, str, bool]], names: list[str]) -> Iterator[str]:
        for key, first, sign, second, absent in sums:
            value = self.known.get("nodes", "") if first == "all_nodes" else f"sss_{first}"
            if (first == "all_nodes" and not value.isdigit()) or (key == first and second not in names):
                continue
            test = f'[ -n "$sss_{key}" ]' if absent else f'[ -z "$sss_{first}" ]'
            yield f"{test} || sss_{key}=$(({value} {sign} {f'sss_{second}' if second in names else '1'}))"

    def _options(self, calls: _Calls, names: list[str]) -> Iterator[str]:
        launcher, to = calls.launcher, calls.to
        missing = {key: text for key, text in calls.untold.items() if key in ("cpus", "gpus") or not
                   {"tasks", "nodes", "per_node"} & {*names}}
        for key, option in to.writes.items():
            before, braces, _ = option.partition("{}")
            if key == "tasks" and (launcher.default or calls.default):
                value = launcher.default if launcher.default != "?" else ""
                value = value or asked_tasks(launcher, self.known)
                if key in names:
                    yield f'{before}"${{sss_tasks:{f"-{value}" if value.isdigit() else "?"}}}"'
                else:
                    yield f"{before}{value}"
            elif key in missing:
                yield f'{before}"${{sss_{key}:-{missing[key]}}}"' if key in names else before + missing[key]
            elif key not in names or not option:
                continue
            elif not braces:
                yield f"${{sss_{key}:+{option}}}"
            elif not before.endswith(" "):
                yield f'${{sss_{key}:+{before}"$sss_{key}"}}'
            else:
                yield f'${{sss_{key}:+{before.strip()}}} ${{sss_{key}:+"$sss_{key}"}}'


_Part = str | _Calls | list[_Submission]
#: From the first variable of a word to the last one, and what may stand around them.
_BLOCK: Final = re.compile(r"\$(?:\{\w+\}|\w+)(?:[^\"]*\$(?:\{\w+\}|\w+))?", re.ASCII)
_AROUND: Final = re.compile(r"[\w./:=,@%+-]*", re.ASCII)


def _submission(words: list[str], call: str) -> _Submission | str:
    """A call as a shape of words: a word without variables is that word, one with some is what stands around them."""
    if any("$@" in word or "${@}" in word for word in words):
        return "how many words it has is not known"
    conditions, lines = [f"[ $# -eq {len(words)} ]"], list[str]()
    blocks: dict[str, str] = {}
    for number, word in enumerate(words, 1):
        block, argument = _BLOCK.search(word), f"${{{number}}}"
        if block is None:
            try:
                (plain,) = shlex.split(word)
            except ValueError:
                return "a word of it is no plain one"
            conditions.append(f'[ "{argument}" = {shlex.quote(plain)} ]')
            continue
        before, after = (part.replace('"', "") for part in (word[:block.start()], word[block.end():]))
        if not _AROUND.fullmatch(before) or not _AROUND.fullmatch(after):
            return "a word of it is no plain one"
        blocks[block[0]] = name = f"sss_{number}" if before or after else str(number)
        if before:
            conditions.append(f'[ "{argument}" != "${{{number}#{before}}}" ]')
            lines.append(f'{name}="${{{number}#{before}}}"')
        if after:
            conditions.append(f'[ "{argument}" != "${{{number}%{after}}}" ]')
            lines.append(f'{name}="${{{name if before else number}%{after}}}"')
    written = _with_blocks(call, blocks)
    return written if not written.startswith("=") else _Submission(tuple(conditions), (*lines, written[1:]))


def _with_blocks(call: str, blocks: Mapping[str, str]) -> str:
    """``=`` and a call with the function's own variables in the places of those of the body; else why there is none."""
    if not blocks:
        return "its variables stand apart there" if "$" in call else f"={call}"
    taken: set[str] = set()

    def own(hit: re.Match[str]) -> str:
        """The variable of the function in place of a text of the body, in quotes where none are around it."""
        taken.add(hit[0])
        inside = call.count('"', 0, hit.start()) % 2 == 1
        return f"${{{blocks[hit[0]]}}}" if inside else f'"${{{blocks[hit[0]]}}}"'

    longest = sorted(blocks, key=len, reverse=True)
    written = re.sub(rf"(?:{'|'.join(map(re.escape, longest))})(?!\w)", own, call)
    if taken != blocks.keys() or "$" in re.sub(r"\$\{(?:sss_)?\d+\}", "", written):
        return "its variables stand apart there"
    return f"={written}"


def _by_shape(name: str, submissions: list[_Submission]) -> Iterator[str]:
    """The lines of a function of a submit command."""
    for number, submission in enumerate(submissions):
        yield f"{'elif' if number else 'if'} {' && '.join(submission.conditions)}; then"
        yield from _in(list(submission.lines))
    yield from ("else", f'    echo "{name}: $* has no equal here" >&2', "    exit 2", "fi")


def _in(lines: list[str] | Iterator[str]) -> list[str]:
    return [f"    {line}" for line in lines]


_VALUE: Final = {"apart": '"$2"', "equals": '"${1#*=}"', "glued": '"${1#??}"', "flag": "1"}
_PATTERN: Final = {"apart": "{}", "equals": "{}=*", "glued": "{}[0-9]*", "flag": "{}"}


def _cases(calls: _Calls) -> Iterator[str]:
    """One for each thing that is done, with all forms of options that say so; the longer ones first."""
    launcher = calls.launcher
    forms_by_key: dict[str, list[str]] = {}
    for name, form in sorted(calls.forms, key=lambda f: (f[1] == "glued", launcher.reads[f[0]])):
        meaning, shift = launcher.reads[name], "shift 2 || exit 2" if form == "apart" else "shift"
        if meaning == "same":
            for pattern, act in _same(launcher, name, form, calls.counted.get((name, form), ())):
                forms_by_key.setdefault(act, []).append(pattern)
            continue
        act = f"sss_{meaning}={_VALUE[form]}; "
        if meaning in ("own", "tuning") or (meaning in SOFT and meaning not in calls.to.writes):
            act = ""
        elif meaning in ONCE:
            act = f"export {_VALUE[form]}; "
        forms_by_key.setdefault(act + shift, []).append(_pattern(name, form, meaning))
    for act, patterns in forms_by_key.items():
        yield f"{' | '.join(patterns)}) {act} ;;"
    if launcher.ends:
        if "setting" in {launcher.reads[f[0]] for f in calls.forms}:
            yield '[A-Za-z_]*=*) export "$1"; shift ;;'
        yield f"{launcher.ends}) shift; break ;;"


def _pattern(name: str, form: str, meaning: str) -> str:
    """The words that say an option in one of its forms."""
    return f"{name}?*" if form == "glued" and meaning not in AMOUNTS else _PATTERN[form].format(name)


def _same(launcher: Launcher, name: str, form: str, counted: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(pattern, what is done) of an option that says what holds anyway; a variable of the source's may be unset.
    counted: more values of it that hold."""
    plain = [*sorted(v.decode() for v in launcher.same[name] if b"$" not in v), *counted]
    if form == "equals" and plain == ["ALL"]:
        yield f"{name}=ALL,*", (
            'sss_rest="${1#*=ALL,},"; while [ -n "$sss_rest" ]; do export "${sss_rest%%,*}"; '
            'sss_rest="${sss_rest#*,}"; done; shift')
    if form == "equals":
        yield from ((f"{name}={value}", "shift") for value in plain or [""])
    elif plain:
        yield name, f'case "${{2-}}" in {" | ".join(plain)}) shift 2 ;; *) exit 2 ;; esac'
    else:
        yield name, f'case "${{2-}}" in -* | {launcher.ends or "-"}) shift ;; *) shift 2 || exit 2 ;; esac'
