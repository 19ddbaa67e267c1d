"""The commands of sssjob, those of groups too, for tests that hold something against all of them."""

from __future__ import annotations

from collections.abc import Iterator

import click

from sssjob.cli._app import cli


def commands() -> Iterator[tuple[str, click.Command]]:
    """Each command and group by its words, such as ``ledger import gold``."""
    return _below(cli, cli.make_context("sssjob", ["--help"], resilient_parsing=True), "")


def _below(group: click.Group, context: click.Context, name: str) -> Iterator[tuple[str, click.Command]]:
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        yield f"{name} {word}".strip(), command
        if isinstance(command, click.Group):
            yield from _below(command, context, f"{name} {word}".strip())
