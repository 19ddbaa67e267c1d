"""Arguments of a script after ``--`` on the command line, as ``sbatch job.sh a b`` has them after the name."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

import click

from sssjob.errors import UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.document.model import Document

__all__ = ["TakesArguments", "with_arguments"]

_META: Final = "sssjob.arguments"


class TakesArguments(click.Command):
    """A command that runs documents: what stands after ``--`` are arguments of the program, and no files."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what follows ``--`` for ``with_arguments``."""
        if "--" in args:
            place = args.index("--")
            args, ctx.meta[_META] = args[:place], args[place + 1:]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if not error.message.startswith("Got unexpected extra argument"):
                raise
            raise click.UsageError(f"{error.message}: arguments of a script follow `--`", ctx) from error

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line says so."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGUMENT...]"]


def with_arguments(document: Document) -> None:
    """Give the one job of a document the arguments of the command line, in place of those that it states.

    Raises UsageError where there are several jobs or task groups, for nobody could say whose they are, and
    PropertyError of a character that no XML document can hold.
    """
    arguments = click.get_current_context().meta.get(_META)
    if arguments is None:
        return
    jobs = [job for job, *_ in document.jobs()]
    if len(jobs) != 1 or len(jobs[0].task_groups) > 1 or jobs[0].value("Executable") is None:
        raise UsageError(f"{escape(document.path, 80)}: the arguments after -- are those of the program of one job; "
                         "this document has another number of jobs or of task groups, or names no program")
    jobs[0].arguments = shlex.join(arguments)
