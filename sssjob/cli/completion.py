"""``sssjob completion bash|zsh|fish``: a script to be read by the shell."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the completion script for SHELL: bash, zsh or fish.

    For bash: `source <(sssjob completion bash)` in ~/.bashrc.
    """
    from click.shell_completion import get_completion_class

    from sssjob.cli._app import cli

    kind = get_completion_class(shell)
    assert kind is not None
    completion = kind(cli, {}, "sssjob", "_SSSJOB_COMPLETE")
    click.echo(completion.source_template % completion.source_vars())
    return 0
