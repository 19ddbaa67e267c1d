"""``sssjob serve``: the journal, the ledger and conversions for programs on other machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sssjob.cli._complete import directories, executors
from sssjob.cli._complete import files as file_names
from sssjob.cli._files import emit
from sssjob.cli._options import Session, common
from sssjob.cli._secrets import read_secret
from sssjob.cli._settings import settings_of
from sssjob.errors import AccessError, UsageError
from sssjob.findings import escape
from sssjob.limits import LIMITS

if TYPE_CHECKING:
    from sssjob.serve.desk import Desk

__all__ = ["command"]


@click.command("serve")
@click.option("--users", "users_file", metavar="FILE", shell_complete=file_names,
              help="Who may ask, in TOML: [users.NAME] with token and may.")
@click.option("--new-token", "new", metavar="NAME", help="Print a new token of a user, and what FILE has to say of it; "
                                                         "serve nothing.")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS",
              help="Where to listen (default: 127.0.0.1; elsewhere with TLS only).")
@click.option("--port", type=click.IntRange(0, 65535), default=7113, metavar="N",
              help="Port of HTTP (default: 7113; 0: any that is free).")
@click.option("--sssrmap-port", type=click.IntRange(0, 65535), metavar="N",
              help="Port of SSSRMAP (7112 is usual; 0: any that is free); without it there is none.")
@click.option("--sssrmap-key", metavar="FILE", shell_complete=file_names,
              help="The key that all clients of SSSRMAP share; who has it speaks for every user.")
@click.option("--sssrmap-profile", type=click.Choice(["3.1", "gold"]), default="3.1", metavar="NAME",
              help="How messages are understood and answered: 3.1 (default), or gold for clients of Gold and Maui.")
@click.option("--sssrmap-sha1", is_flag=True, help="Take signatures with SHA-1 too, the only ones of old clients.")
@click.option("--certificate", metavar="FILE", shell_complete=file_names, help="Certificate for TLS, in PEM.")
@click.option("--private-key", "private", metavar="FILE", shell_complete=file_names, help="Its key.")
@click.option("--executor", "names", multiple=True, metavar="NAME", shell_complete=executors,
              help="What jobs may be run with, the default first (default: that of the configuration).")
@click.option("--directory", default=".", metavar="DIR", shell_complete=directories,
              help="Where jobs run that name no other place (default: here).")
@click.option("--rates", "rates_file", metavar="FILE", shell_complete=file_names, help="Rates for quotes, in TOML.")
@click.option("--ledger", "place", metavar="FILE|URL", shell_complete=file_names, help="The ledger.")
@click.option("--audit", metavar="FILE", shell_complete=file_names, help="Append who asked for what, as JSON Lines.")
@click.option("--rate", type=click.FloatRange(0.1), default=50.0, metavar="N",
              help="Requests a second of each user in the long run (default: 50).")
@click.option("--connections", type=click.IntRange(1, 10_000), default=200, metavar="N",
              help="Connections at once (default: 200).")
@click.option("--follow", type=click.FloatRange(1), default=30.0, metavar="SECONDS",
              help="How often resource managers are asked how jobs stand (default: 30).")
@click.option("--iri-public", is_flag=True,
              help="Answer about the facility and its resources also without a token, as IRI clients expect.")
@common
def command(session: Session, users_file: str | None, new: str | None, host: str, port: int,
            sssrmap_port: int | None, sssrmap_key: str | None, sssrmap_profile: str, sssrmap_sha1: bool,
            certificate: str | None, private: str | None, names: tuple[str, ...], directory: str,
            rates_file: str | None, place: str | None, audit: str | None, rate: float, connections: int,
            follow: float, iri_public: bool) -> int:
    """Serve HTTP with JSON and XML, and SSSRMAP, until Ctrl-C or SIGTERM comes. It needs the extra `serve`.

    docs/exchange.md shows what can be asked; GET /openapi.json describes it. Jobs run as the account of this command
    and go on when it stops.
    """
    from sssjob.serve.access import read_users

    if new is not None:
        return _print_token(new)
    if users_file is None:
        raise UsageError("--users FILE says who may ask")
    if (certificate is None) != (private is None):
        raise UsageError("--certificate and --private-key belong together")
    if sssrmap_port is None and (sssrmap_key is not None or sssrmap_sha1 or sssrmap_profile != "3.1"):
        raise UsageError("--sssrmap-key, --sssrmap-profile and --sssrmap-sha1 need --sssrmap-port")
    users = read_users(read_secret(users_file, LIMITS.toml_bytes), escape(users_file))
    try:
        from sssjob.serve.counter import Workers
        from sssjob.serve.rmap import Exchange, listening
        from sssjob.serve.running import Listening, address_of, check_tls, listener, serve
        from sssjob.serve.web import Server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "httptools"):
            raise
        raise UsageError("a server needs starlette, uvicorn and httptools: pip install 'sssjob[serve]'") from None
    from sssjob.serve.access import Audit, Pace
    from sssjob.sssrmap.signing import HASHES, Keys

    tls = None if certificate is None or private is None else (certificate, private)
    if tls is not None:
        check_tls(*tls)
    desk = _desk(session, names, directory, rates_file, place)
    if desk is None:
        return session.status() or 1
    try:
        log = Audit(audit)
    except OSError as error:
        raise AccessError(escape(audit or ""), error.strerror or str(error)) from None
    server = Server(Workers(desk), users, log, Pace(rate, int(rate * 2) + 1), Pace(1.0, 20), follow,
                    public=iri_public)
    key = None if sssrmap_key is None else read_secret(sssrmap_key)
    with ExitStack() as stack:
        web = stack.enter_context(listener(host, port, tls is not None))
        shown = [f"{'https' if tls else 'http'}://{address_of(web)}"]
        if sssrmap_port is not None:
            messages = stack.enter_context(listener(host, sssrmap_port, tls is not None))
            exchange = Exchange(users, Keys(key, users.passwords, tuple(HASHES) if sssrmap_sha1 else ("SHA256",)),
                                sssrmap_profile)
            server.beside.append(listening(server, exchange, messages, connections, tls))
            shown.append(f"{'sssrmaps' if tls else 'sssrmap'}://{address_of(messages)}")
        emit("".join(f"{address}\n" for address in shown))
        serve(server, Listening(web, tls, connections))
    return 0


def _print_token(name: str) -> int:
    """Print a token and its entry. Raises UsageError for what is no name of a user."""
    from sssjob.serve.access import new_token, read_users

    token, digest = new_token()
    quoted = json.dumps(name)
    read_users(f'[users.{quoted}]\ntoken = "{digest}"\n'.encode(), "--new-token")
    emit(f'{token}\n[users.{quoted}]\ntoken = "{digest}"\nmay = ["submit"]\n')
    return 0


def _desk(session: Session, names: tuple[str, ...], directory: str, rates_file: str | None, place: str | None
          ) -> Callable[[], Desk] | None:
    """What makes desks; None where rates are wrong, which is told. Raises UsageError, AccessError."""
    from sssjob.cli._prices import load
    from sssjob.run.running import executor_of
    from sssjob.serve.desk import Desk

    settings = settings_of(session, names[0] if names else None)
    chosen = [name.lower() for name in names] or [str(settings.get("executor").value)]
    for name in chosen:
        executor_of(name)
    if not Path(directory).is_dir():
        raise AccessError(escape(directory), "is no directory")
    rates = None
    if rates_file is not None:
        rates = load(session, rates_file)
        if rates is None:
            return None
    return partial(Desk, None, chosen, Path(directory).absolute(), rates, place, settings)
