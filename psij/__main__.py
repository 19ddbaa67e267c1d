"""``python -m psij plugins``: which executors and launchers there are, where they are from, and what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from psij._plugins import EXECUTORS, LAUNCHERS, Plugin, Registry
from psij.job_executor import JobExecutor
from psij.job_launcher import Launcher

_USAGE = "usage: python -m psij plugins"


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


def main(arguments: Sequence[str]) -> int:
    """Print the plugins; the exit status is 0, or 2 for wrong usage."""
    if list(arguments) != ["plugins"]:
        print(_USAGE, file=sys.stderr)
        return 2
    print("\n".join([*_section("Executors", EXECUTORS, JobExecutor), *_section("Launchers", LAUNCHERS, Launcher)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
