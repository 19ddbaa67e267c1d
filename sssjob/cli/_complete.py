"""What the shell may offer for an argument; everything is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem


def files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files: the shell knows them."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def directories(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Directories: the shell knows them."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


def formats(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The formats that there are."""
    from sssjob.translators.registry import names

    return [name for name in names() if name.startswith(incomplete)]


def executors(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The executors that there are."""
    from psij import JobExecutor

    return sorted(name for name in JobExecutor.get_executor_names() if name.startswith(incomplete))


def rules_or_files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The ids of rules, else files."""
    from click.shell_completion import CompletionItem

    from sssjob.rules import RULES

    rules = [CompletionItem(rule) for rule in RULES if incomplete and rule.startswith(incomplete.upper())]
    return rules or files(context, parameter, incomplete)
