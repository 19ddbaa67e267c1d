"""The group of commands, each loaded when it is named, and the one place where an exception becomes an exit status."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Final

import click

from sssjob.cli._findings import problem, say, swallow
from sssjob.errors import QueryError, QueryTimeout, SSSJobError, UnknownJobError, UsageError
from sssjob.packages import psij_trouble
from sssjob.version import __version__

#: The variable that a shell asks for completions with.
COMPLETE: Final = "_SSSJOB_COMPLETE"

#: Command -> the line that ``sssjob --help`` shows; its module has the same name, unless _MODULES or _TOGETHER has it.
COMMANDS: Final = {
    "account": "Add up what jobs used, by any property and over time.",
    "ask": "Ask documents, the journal or the ledger a query of SSSRMAP.",
    "attach": "Take a job that was submitted elsewhere into the journal.",
    "cancel": "Ask for the end of jobs.",
    "canonical": "Write documents in their canonical form, or its digest.",
    "change": "Have jobs ask for something else.",
    "charge": "Charge jobs for what was delivered to them.",
    "check": "Read documents and report what is wrong or doubtful.",
    "completion": "Print the completion script for a shell.",
    "config": "Settings, and where each is from.",
    "convert": "Write a document in another format.",
    "diff": "Compare two documents or scripts by what they mean.",
    "executors": "List what jobs can be run with.",
    "explain": "Explain a rule (SSS123), or what a document or script asks for.",
    "flux-exec": "Run jobs for a Flux job manager.",
    "hold": "Keep jobs that wait from starting.",
    "journal": "Take what has ended out of the journal, or write it as documents.",
    "ledger": "Accounts, quotes, holds, charges, refunds and statements.",
    "lint": "Say what is doubtful in batch scripts for their own resource manager.",
    "list": "List the jobs of the journal.",
    "log": "Print the history of jobs.",
    "lsp": "Serve an editor: findings, meanings, conversions of scripts.",
    "match": "Say whether an offer meets what a document requests.",
    "merge": "Put what is known of returned jobs into their group.",
    "mjf": "Machine/Job Features: read, check, write and serve them.",
    "offers": "Ask the resource manager of a site what it offers.",
    "patch": "Apply what `diff --json` wrote.",
    "query": "Evaluate an XPath expression over documents.",
    "quote": "Say what jobs would be charged for what they request.",
    "rates": "Check rates, and count the jobs that meet each of them.",
    "release": "Let jobs start that are held.",
    "rerun": "Run jobs again.",
    "resume": "Let jobs go on that are suspended.",
    "route": "Say at which of several sites a document fits, and where best.",
    "run": "Run a document and write it back with its results.",
    "serve": "Serve documents, jobs and the ledger over HTTP.",
    "show": "Show a document as tables.",
    "sign": "Sign what a document says.",
    "signal": "Send a signal to the processes of jobs.",
    "sites": "List the sites that have a profile, or check one.",
    "split": "Write each job of a group as a document of its own.",
    "status": "Print documents as they stand, with the facts so far.",
    "submit": "Submit documents and return.",
    "suspend": "Stop the processes of jobs that run.",
    "survey": "List what scripts leave to the site, and draft its profile.",
    "top": "Show how groups and jobs go on.",
    "verify": "Say who signed what a document says.",
    "wait": "Wait for the end of jobs.",
}
_MODULES: Final = {"flux-exec": "flux_exec", "list": "list_"}
#: Commands of one kind, which are in a module together -> that module.
_TOGETHER: Final = {
    **dict.fromkeys(("cancel", "change", "hold", "release", "resume", "signal", "suspend"), "wishes"),
    **dict.fromkeys(("diff", "patch"), "differing"), **dict.fromkeys(("merge", "split"), "grouping"),
    **dict.fromkeys(("canonical", "sign", "verify"), "signing")}


class Commands(click.Group):
    """Knows its commands by name and imports one only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands; nothing is imported."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command, imported now; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        name = _TOGETHER.get(cmd_name) or _MODULES.get(cmd_name, cmd_name)
        module = importlib.import_module(f"sssjob.cli.{name}")
        command = module.commands[cmd_name] if cmd_name in _TOGETHER else module.command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of a line; an unknown name lists the known ones, or the one that was meant."""
        name = args[0]
        if not name.startswith("-") and name not in COMMANDS and not ctx.resilient_parsing:
            import difflib

            close = difflib.get_close_matches(name, COMMANDS, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(COMMANDS)}"
            raise click.UsageError(f"no such command {name!r} ({hint})", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help, from the table: no command is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="sssjob", message="%(prog)s %(version)s")
def cli() -> None:
    """Read, check, convert, run and charge jobs: each is one document, the SSS job object, from request to charge.

    Results go to standard output, findings to standard error. Exit status: 0 fine, 1 rejecting findings, 2 usage,
    3 file or network; `run` passes the job's own code on.
    """


def status_of(error: BaseException) -> tuple[int, str]:
    """(exit status, message; empty: say nothing) of an exception that ends a command."""
    match error:
        case KeyboardInterrupt() | click.Abort():
            return 130, "interrupted"
        case BrokenPipeError():
            return 141, ""
        case click.exceptions.Exit():
            return error.exit_code, ""
        case QueryTimeout():
            return 1, str(error)
        case UnknownJobError():
            return 5, str(error)
        case UsageError() | QueryError():
            return 2, str(error)
        case OSError():
            return 3, _os_message(error)
        case SSSJobError():
            return 1, str(error)
        case RecursionError() | MemoryError():
            return 1, f"the input is too large or too deeply nested ({type(error).__name__})"
    if trouble := psij_trouble():
        return 1, trouble
    return 70, f"internal error: {type(error).__name__}: {error} (set SSSJOB_DEBUG=1 for the traceback)"


def _os_message(error: OSError) -> str:
    if isinstance(error, SSSJobError) or not error.strerror:
        return str(error)
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    try:
        os.getcwd()
    except OSError as gone:
        return f"the current directory: {gone.strerror}"
    return error.strerror


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit status; nothing escapes but with SSSJOB_DEBUG set."""
    _open_streams()
    as_json = "--json" in arguments
    try:
        status = _invoke(arguments)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        return _wrong(error, as_json)
    except BaseException as error:
        status, message = status_of(error)
        if os.environ.get("SSSJOB_DEBUG") and status not in (0, 141):
            raise
        if message:
            problem(message, as_json=as_json, status=status)
        if isinstance(error, OSError):
            swallow(sys.stdout)
        return status


def _invoke(arguments: list[str]) -> Any:
    """Not click's own ``main``: that turns a broken pipe into exit status 1."""
    asked = os.environ.get(COMPLETE)
    if asked:
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "sssjob", COMPLETE, asked)
    if not arguments:
        with cli.make_context("sssjob", ["--help"], resilient_parsing=True) as context:
            say(context.get_help())
        return 2
    with cli.make_context("sssjob", list(arguments)) as context:
        return cli.invoke(context)


def _wrong(error: click.ClickException, as_json: bool) -> int:
    """Say what is wrong with the command line itself; what the user typed is escaped."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        say(error.format_message())         # a command that has commands, alone
        return error.exit_code
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None and not as_json:
        say(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n")
    problem(error.format_message(), as_json=as_json, status=error.exit_code)
    return error.exit_code


def _open_streams() -> None:
    """Put something in the place of closed standard streams, so that no file which is opened later takes it.

    Reading and writing there fails as it would on a closed stream; what goes to standard error is dropped.
    """
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)
    sys.stdin = sys.stdin or os.fdopen(0, "r", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
