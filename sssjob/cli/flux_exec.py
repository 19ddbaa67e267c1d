"""``sssjob flux-exec``: an execution service for the Flux job manager, and a checker of recorded streams."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import directories, executors, files
from sssjob.cli._files import emit, opened
from sssjob.cli._findings import problem, say
from sssjob.cli._mjf import mjf_options
from sssjob.errors import UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.fluxexec.rules import Profile

__all__ = ["command"]


@click.group("flux-exec")
def command() -> None:
    """The Flux job execution protocol."""


@command.command("serve")
@click.option("--executor", metavar="NAME", shell_complete=executors,
              help="What to run jobs with; see `executors` (default: local).")
@click.option("--simulate", is_flag=True, help="Run nothing; time jumps to where something happens.")
@click.option("--socket", "path", metavar="PATH", shell_complete=files, help="Listen at a Unix socket.")
@click.option("--stdio", is_flag=True, help="Speak over standard input and output (default).")
@click.option("--broker", metavar="URI", help="Register with the Flux broker at local://PATH; `-`: that of $FLUX_URI.")
@click.option("--name", default="sssjob-exec", metavar="NAME", help="The name to register as (default: sssjob-exec).")
@click.option("--state", metavar="DIR", shell_complete=directories,
              help="Leave jobs running at the end; a service with the same DIR finds them again.")
@click.option("--partial", is_flag=True, help="Release ranks one by one, as they get free.")
@mjf_options
def serve(executor: str | None, simulate: bool, path: str | None, stdio: bool, broker: str | None, name: str,
          state: str | None, partial: bool) -> int:
    """Run jobs for a job manager, JSON Lines over standard input and output unless told otherwise."""
    if (path is not None) + stdio + (broker is not None) > 1:
        raise UsageError("--socket, --stdio and --broker exclude each other")
    if simulate and (executor is not None or state is not None):
        raise UsageError("--simulate takes no --executor and no --state")
    if not name:
        raise UsageError("--name is empty")
    from sssjob.fluxexec.server import Server
    from sssjob.lrm.flux.errors import ProtocolError

    messages = _Said()
    logger = logging.getLogger("sssjob.fluxexec")
    logger.addHandler(messages)
    try:
        server = Server(None if simulate else executor or "local", state=Path(state) if state else None, name=name,
                        partial=partial)
        if path is not None:
            return server.serve_socket(path)
        return server.serve_stdio() if broker is None else server.serve_broker(None if broker == "-" else broker)
    except ProtocolError as error:
        problem(str(error), status=5)
        return 5
    finally:
        logger.removeHandler(messages)


@command.command("check")
@click.argument("stream", metavar="STREAM.jsonl", shell_complete=files)
@click.option("--profile", type=click.Choice(("rfc32-2022", "rfc32-2026", "flux-core")), default="flux-core",
              help="Whose reading of the protocol (default: flux-core).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each violation.")
def check(stream: str, profile: Profile, as_json: bool) -> int:
    """Hold a recorded stream of messages against the protocol (- is standard input).

    Prints each line that breaks a rule: its number, the rule, what is wrong, and what flux-core would do. Exit status 1
    where there is one.
    """
    from sssjob.fluxexec.check import StreamCheck

    checked, violations = StreamCheck(profile), 0
    with opened(stream) as source:
        for violation in checked.check(source):
            violations += 1
            emit(json.dumps(violation.record()) + "\n" if as_json else escape(f"{stream}:{violation}", 1000) + "\n")
    if checked.open and not as_json:
        say(f"jobs without a final release, where the stream ends: {len(checked.open)}")
    return int(violations > 0)


class _Said(logging.Handler):
    """What the service has to tell, on standard error; a line that repeats is told once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._before: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Say it on standard error, once."""
        text = record.getMessage()
        if text not in self._before and len(self._before) < 1000:
            self._before.add(text)
            problem(text)
