"""The words of a job in its submit script: variables that are exported, the program and its arguments.

In arguments bash puts the values of variables when the job runs; ``psij.references`` says what that means.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from psij.exceptions import InvalidJobException
from psij.job_spec import JobSpec
from psij.references import literal, pieces
from sssjob.templates.quoting import Quoted, expanding_word, word

# Variables that bash sets itself, so that ``export`` cannot hand them on; they go through env(1). Seen with bash 5.2.
_OF_BASH = frozenset([
    "BASH", "BASHOPTS", "BASHPID", "BASH_ALIASES", "BASH_ARGC", "BASH_ARGV", "BASH_ARGV0", "BASH_CMDS", "BASH_COMMAND",
    "BASH_EXECUTION_STRING", "BASH_LINENO", "BASH_SOURCE", "BASH_SUBSHELL", "BASH_VERSINFO", "BASH_VERSION",
    "COMP_WORDBREAKS", "DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS", "HISTCMD", "IFS",
    "LINENO", "OLDPWD", "OPTERR", "OPTIND", "PPID", "PS4", "PWD", "RANDOM", "SECONDS", "SHELLOPTS", "SHLVL", "SRANDOM",
    "UID", "_"])
# Those of them that a job has in its environment all the same.
_HANDED_ON = frozenset(["OLDPWD", "PWD", "SHLVL", "_"])
# Variables that bash gives itself, without handing them on, where the environment does not have them. Seen with 5.2.
_OWN = frozenset(["HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "PATH", "TERM"])


def needs_env(name: str) -> bool:
    """Whether bash cannot hand on a variable, so that it goes through env(1)."""
    return name in _OF_BASH or not (name.isascii() and name.isidentifier())


def through_env(assignments: Sequence[str], executable: str) -> list[str]:
    """The words before a program that env(1) gives variables; none where there are none. assignments: ``NAME=value``.

    Raises InvalidJobException for a program that env(1) would take for a variable.
    """
    if not assignments:
        return []
    if "=" in executable:
        raise InvalidJobException(f"executable {executable!r}: env(1), which sets those variables of environment that "
                                  "the shell cannot hand on, would take it for a variable")
    end_of_options = ["--"] if any(each.startswith("-") for each in assignments) else []
    return ["/usr/bin/env", *end_of_options, *assignments]


def program(spec: JobSpec) -> list[str]:
    """Executable and arguments; through env(1) where there are variables that bash cannot hand on."""
    return [*_through_env(spec), os.fspath(spec.executable or ""), *(spec.arguments or ())]


def _through_env(spec: JobSpec) -> list[str]:
    """``through_env`` for a job, with variables in the values."""
    assignments = [f"{literal(name)}={value}" for name, value in (spec.environment or {}).items() if needs_env(name)]
    return through_env(assignments, os.fspath(spec.executable or ""))


def exported(spec: JobSpec) -> list[tuple[str, Quoted]]:
    """The variables that bash exports, each with the word of its value."""
    return [(name, expanding_word(pieces(text)) if "${" in (text := str(value)) else word(text))
            for name, value in (spec.environment or {}).items() if not needs_env(name)]


def program_words(spec: JobSpec) -> Quoted:
    """What ``program`` gives, for bash."""
    return _line([program(spec)[0], *_after_executable(spec)])


def command_words(command: Sequence[str], spec: JobSpec) -> dict[str, Any]:
    """A launch command for a template. launcher: the words that are literal; arguments: what follows them."""
    arguments = program(spec)[1:]
    count = len(arguments)
    if count and list(command[-count:]) == arguments:
        return {"launcher": list(command[:-count]), "arguments": _line(_after_executable(spec))}
    if any("${" in argument for argument in arguments):         # a launcher that puts them elsewhere
        return {"launcher": [], "arguments": _line([_argument(part, spec) for part in command])}
    return {"launcher": list(command), "arguments": Quoted("")}


def shell_only(spec: JobSpec) -> list[str]:
    """Names in arguments that bash may know although they are not in the job's environment."""
    return sorted(_OWN.intersection(name for argument in spec.arguments or () for name in pieces(argument)[1::2]))


def _line(words: Sequence[str]) -> Quoted:
    return Quoted(" ".join(part if isinstance(part, Quoted) else word(part) for part in words))


def _after_executable(spec: JobSpec) -> list[Quoted]:
    """The words of ``program`` after the first."""
    before = [expanding_word(pieces(each)) for each in _through_env(spec)[1:]]
    executable = [word(os.fspath(spec.executable or ""))] if before else []
    return [*before, *executable, *[_argument(argument, spec) if "${" in argument else word(argument)
                                    for argument in spec.arguments or ()]]


def _argument(text: str, spec: JobSpec) -> Quoted:
    """An argument, in which a name that the job's environment does not have stays as it is."""
    parts = pieces(text)
    stated = spec.environment or {}
    quoted, rest = "", parts[:1]
    for name, following in zip(parts[1::2], parts[2::2], strict=True):
        if name not in _OF_BASH or name in _HANDED_ON:
            rest += [name, following]
        elif name in stated:            # it goes through env(1): bash does not have its value
            quoted += _part(rest) + expanding_word(pieces(str(stated[name])))
            rest = [following]
        else:
            rest[-1] += f"${{{name}}}{following}"
    return Quoted(quoted + _part(rest)) if quoted else expanding_word(rest, kept=True)


def _part(parts: list[str]) -> str:
    return "" if parts == [""] else expanding_word(parts, kept=True)
