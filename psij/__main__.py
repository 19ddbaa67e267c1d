"""``python -m psij``: what there is, and help for programs that were written for psij-python.

``plugins`` shows which executors and launchers there are, where they are from, and what is wrong. ``check-program``
says which differences to psij-python touch a program. ``alias`` writes a wheel that stands for psij-python.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from psij._plugins import EXECUTORS, LAUNCHERS, Plugin, Registry
from psij.job_executor import JobExecutor
from psij.job_launcher import Launcher

_USAGE = """\
usage: python -m psij plugins
       python -m psij check-program FILE...
       python -m psij alias FOLDER [VERSION]"""


def _lines(plugin: Plugin, kind: type) -> list[str]:
    descriptor = plugin.descriptor
    lines = [f"  {descriptor.name} {descriptor.version}",
             f"    descriptor: {descriptor.path}",
             f"    plugin: {plugin.file or descriptor.cls + ' (no such file)'}"]
    if descriptor.aliases:
        lines.insert(1, f"    aliases: {', '.join(descriptor.aliases)}")
    try:
        plugin.load(kind)
    except Exception as e:
        lines.append(f"    error: {type(e).__name__}: {e}")
    return lines


def _section(title: str, registry: Registry, kind: type) -> list[str]:
    return [title, *(line for plugin in registry.all() for line in _lines(plugin, kind))]


def _plugins() -> int:
    print("\n".join([*_section("Executors", EXECUTORS, JobExecutor), *_section("Launchers", LAUNCHERS, Launcher)]))
    return 0


def _check_programs(files: Sequence[str]) -> int:
    """Print which differences touch these programs: 1 where one of them does not run as it is, 3 for a file that cannot
    be read."""
    from psij._program import DIFFERENCES, differences_of, read_program

    status = 0
    for file in files:
        try:
            touched = differences_of(read_program(Path(file)))
        except (OSError, SyntaxError, ValueError) as e:
            print(f"{file}: {e.strerror if isinstance(e, OSError) else e}", file=sys.stderr)
            status = 3
            continue
        for line, name, what in touched:
            print(f"{file}:{line}: {name}: {what}: {DIFFERENCES[name].text}")
            if DIFFERENCES[name].stops:
                status = max(status, 1)
        if not touched:
            print(f"{file}: no difference to psij-python touches it, as far as its text shows")
    return status


def _write_alias(folder: str, *version: str) -> int:
    from psij._alias import write_alias

    try:
        print(write_alias(Path(folder), *version))
    except (OSError, ValueError) as e:
        print(f"{folder}: {e.strerror}" if isinstance(e, OSError) else e, file=sys.stderr)
        return 3 if isinstance(e, OSError) else 2
    return 0


def main(arguments: Sequence[str]) -> int:
    """Carry out a command. The exit status is 0, 1 for a program that does not run as it is, 2 for wrong usage, 3 for
    files that cannot be read or written."""
    match arguments:
        case ["-h" | "--help"]:
            print(_USAGE)
            return 0
        case ["plugins"]:
            return _plugins()
        case ["check-program", _, *_]:
            return _check_programs(arguments[1:])
        case ["alias", folder] | ["alias", folder, _]:
            return _write_alias(folder, *arguments[2:])
    print(_USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:         # whoever reads has enough
        os._exit(141)
