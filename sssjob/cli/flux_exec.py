"""``sssjob flux-exec``: an execution service for the Flux job manager."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from sssjob.cli._complete import directories, executors, files
from sssjob.cli._findings import problem
from sssjob.errors import UsageError

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
def serve(executor: str | None, simulate: bool, path: str | None, stdio: bool, broker: str | None, name: str,
          state: str | None, partial: bool) -> int:
    """Run jobs for a job manager, JSON Lines over standard input and output unless told otherwise."""
    if (path is not None) + stdio + (broker is not None) > 1:
        raise UsageError("--socket, --stdio and --broker exclude each other")
    if simulate and (executor is not None or state is not None):
        raise UsageError("--simulate takes no --executor and no --state")
    if not name:
        raise UsageError("--name is empty")
    from sssjob.fluxexec.errors import ProtocolError
    from sssjob.fluxexec.server import Server

    said = _Said()
    logger = logging.getLogger("sssjob.fluxexec")
    logger.addHandler(said)
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
        logger.removeHandler(said)


class _Said(logging.Handler):
    """What the service has to tell, on standard error; a line that repeats is told once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._before: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._before and len(self._before) < 1000:
            self._before.add(text)
            problem(text)
