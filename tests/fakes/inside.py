"""Commands of a stand-in run in the process of the test, instead of as programs: faults without the price of processes.

What stands in for ``psij.executors.batch._command.run`` has its limits and its errors. Commands that the stand-in does
not have are run, and so are shell scripts, but for those that only redirect what a command reads or says.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from psij.executors._environment import ENVIRONMENT
from psij.executors.batch import _command
from tests.fakes.lab import Command, Group, Lab

__all__ = ["Inside", "enter"]


class Inside:
    """``run`` for one stand-in. environments: of the calls so far, by command."""

    def __init__(self, lab: Lab, commands: Mapping[str, Command]) -> None:
        self.lab = lab
        self.folder = lab.root.with_name("bin")     # where the programs lie, first on the path
        self.commands = commands
        self.environments: dict[str, Mapping[bytes, bytes]] = {}
        self.limit = _command.OUTPUT_LIMIT

    def run(self, command: Sequence[str], timeout_s: float, environment: Mapping[bytes, bytes] | None = None,
            limit: int = _command.OUTPUT_LIMIT, message: _command.Message | None = None) -> _command.Result:
        """Run a command to its end, here where the stand-in has it."""
        words, script, merged = _redirected(_without_env(list(command)))
        variables = ENVIRONMENT if environment is None else environment
        if words[0] not in self.commands or os.fsencode(self.folder) not in variables.get(b"PATH", b"").split(b":"):
            return _run(command, timeout_s, environment, limit, message)
        self.environments[words[0]] = dict(variables)
        one, arguments = self.commands[words[0]], words[1:]
        name, one, arguments = one.named(arguments) if isinstance(one, Group) else (words[0], one, arguments)
        answer = Lab(self.lab.root, input=Path(script or os.devnull)).answer(name, one, arguments)
        if merged:
            answer = answer._replace(stdout=answer.stdout + answer.stderr, stderr="")
        time.sleep(min(answer.seconds, timeout_s))
        if answer.seconds > timeout_s:
            raise subprocess.TimeoutExpired(list(command), timeout_s)
        if len(answer.stdout) + len(answer.stderr) > min(limit, self.limit):
            raise _command.OutputLimitError(f"{words!r} put out more than {self.limit} bytes")
        return _command.Result(answer.exit_code, answer.stdout, answer.stderr)


_run = _command.run
_REDIRECTED = re.compile(r'exec (?P<name>\w+)(?P<all> "\$@")?(?P<read> <"\$1")?(?P<merged> 2>&1)?')


def _without_env(words: list[str]) -> list[str]:
    """The command behind ``env``, its options and its variables."""
    if words[0].rpartition("/")[2] != "env":
        return words
    rest = words[1:]
    while rest and (rest[0] == "-u" or "=" in rest[0]):
        rest = rest[2 if rest[0] == "-u" else 1:]
    return rest


def _redirected(words: list[str]) -> tuple[list[str], str | None, bool]:
    """The command that a shell puts in its own place, the file that it reads, and whether errors are in its output."""
    match = _REDIRECTED.fullmatch(words[2]) if words[:2] == ["/bin/sh", "-c"] else None
    if match is None:
        return words, None, False
    arguments = words[4:]
    return [match["name"], *(arguments if match["all"] else ())], arguments[0] if match["read"] else None, bool(
        match["merged"])


def enter(patch: Any, lab: Lab, commands: Mapping[str, Command]) -> Inside:
    """Have executors run commands here. patch: a pytest.MonkeyPatch."""
    inside = Inside(lab, commands)
    patch.setattr("psij.executors.batch._host.run", inside.run)
    return inside
