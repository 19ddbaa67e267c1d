"""``sssjob mjf``: what a site tells a running job, read, checked, waited for, written and served."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from sssjob.cli._complete import directories, files
from sssjob.cli._files import emit
from sssjob.cli._findings import problem, record, say, width
from sssjob.cli._options import Session, pairs
from sssjob.cli._seconds import SECONDS
from sssjob.cli._tables import table
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.mjf.places import METADATA

if TYPE_CHECKING:
    from sssjob.mjf import Figures, Note, Reader, TimeLeft

__all__ = ["command", "wait"]

_json = click.option("--json", "as_json", is_flag=True, help="Results and notes as JSON.")
_metadata = click.option(
    "--metadata", is_flag=False, flag_value=METADATA, metavar="[URL]",
    help="Ask the metadata of a virtual machine where no variable is set; at OpenStack's address unless told another.")


@click.group("mjf", invoke_without_command=True)
@_json
@click.pass_context
def command(context: click.Context, as_json: bool) -> int:
    """Machine/Job Features: MACHINEFEATURES, JOBFEATURES and JOBSTATUS. Without a command: show."""
    if context.invoked_subcommand is None:
        return _show(as_json, None)
    if as_json:
        raise UsageError(f"--json stands behind {context.invoked_subcommand}")
    return 0


@command.command("show")
@_json
@_metadata
def show(as_json: bool, metadata: str | None) -> int:
    """Print every key with its value and state, and what follows from them."""
    return _show(as_json, metadata)


def _reader(metadata: str | None = None) -> Reader:
    """metadata: the address to ask where no variable is set. Raises UsageError for what is no http: or https: URL."""
    from sssjob.mjf import Reader

    if metadata is None:
        return Reader.from_environment(os.environ)
    if not metadata.startswith(("http://", "https://")):
        raise UsageError(f"--metadata {escape(metadata)!r} is no http: or https: URL")
    reader = Reader.from_environment(os.environ, ask_metadata=True, url=metadata)
    if not reader.places.keys() & {"machine", "job"}:
        say(f"{escape(metadata, 200)}: no Machine/Job Features in the metadata, or no answer")
    return reader


def _told(note: Note, as_json: bool) -> None:
    if as_json:
        record({"type": "note"} | note.record())
    else:
        say(escape(str(note), 1000))


def _show(as_json: bool, metadata: str | None) -> int:
    from sssjob.mjf.keys import AREAS

    features = _reader(metadata).read()
    if as_json:
        emit(json.dumps(features.record(), indent=2) + "\n")
        return 0
    rows = [(r.key.name, "-" if r.value is None else str(r.value), r.key.unit, r.state, _why(r.source, r.reason))
            for area in AREAS for r in features.area(area).values() if not r.key.draft or r.state != "absent"]
    emit("".join(f"{line}\n" for line in table(rows, ("KEY", "VALUE", "UNIT", "STATE", ""), width(sys.stdout))))
    lines = [*_left(features.remaining()), *_of_a_pilot(features.figures())]
    if lines:
        emit("\n" + "".join(f"{line}\n" for line in lines))
    for note in features.notes:
        _told(note, False)
    return 0


def _left(time_left: TimeLeft | None) -> Iterator[str]:
    if time_left is not None:
        unsure = f"; not known: {', '.join(time_left.unsure)}" if time_left.unsure else ""
        yield f"{_until(time_left.seconds, time_left.by)}{unsure}"


def _of_a_pilot(figures: Figures) -> Iterator[str]:
    figures_shown = (("expected to end in", figures.remaining_expected, "s"),
                     ("at the latest in", figures.remaining_max, "s"),
                     ("draining wastes", figures.draining_waste, "cpu s"),
                     ("killing wastes", figures.kill_waste, "cpu s"))
    parts = [f"{text} {value:.0f} {unit}" for text, value, unit in figures_shown if value is not None]
    if parts:
        yield f"pilot: {', '.join(parts)}"


def _until(seconds: float, by: str) -> str:
    """``600 s until wall_limit_secs``; ``since`` where it is past."""
    return f"{abs(seconds):.0f} s {'until' if seconds >= 0 else 'since'} {by}"


def _why(source: str, reason: str) -> str:
    return "; ".join(filter(None, (f"from {source}" if source else "", reason)))


@command.command("check")
@_json
@_metadata
@click.option("--strict", is_flag=True, help="Exit status 1 for warnings too.")
def check(as_json: bool, metadata: str | None, strict: bool) -> int:
    """Say what is missing or wrong, graded as the WLCG probe does; exit status 1 where something is."""
    from sssjob.mjf import check as checked

    notes = checked(_reader(metadata), os.environ)
    if as_json:
        emit("".join(json.dumps(note.record()) + "\n" for note in notes))
    else:
        emit("".join(escape(str(note), 1000) + "\n" for note in notes))
    return int(any(n.severity == "error" or (strict and n.severity == "warning") for n in notes))


@command.command("wait-shutdown")
@click.option("--before", type=SECONDS, default=0.0, metavar="SECONDS", help="Return that long before it (default: 0).")
@click.option("--limit", is_flag=True, help="The end of the wall-clock limit counts too.")
@click.option("--interval", type=SECONDS, default=30.0, metavar="SECONDS", help="How often to look (default: 30).")
@click.option("--timeout", type=SECONDS, metavar="SECONDS", help="Exit status 6 then.")
@_metadata
@_json
def wait_shutdown(before: float, limit: bool, interval: float, timeout: float | None, metadata: str | None,
                  as_json: bool) -> int:
    """Wait until a shutdown of the machine or the job is near, and print when it is.

    A time that cannot be read is not taken for none: it is reported once, and the waiting goes on.
    """
    return wait(_reader(metadata), before, limit, max(interval, 0.1), timeout, as_json)


def wait(reader: Reader, before: float, limit: bool, interval: float, timeout: float | None, as_json: bool,
         sleep: Callable[[float], None] = time.sleep) -> int:
    """The exit status: 0 when what ends the job first is less than ``before`` seconds away, 6 after the time-out."""
    if not reader.places:
        problem("neither MACHINEFEATURES nor JOBFEATURES is set", as_json=as_json, status=3)
        return 3
    end = math.inf if timeout is None else reader.ticks() + timeout
    reported: set[tuple[str, str]] = set()
    while True:
        features = reader.read(force=True)
        for note in features.notes:
            if "shutdown" in note.key and (note.code, note.key) not in reported:
                reported.add((note.code, note.key))
                _told(note, as_json)
        shutdown = features.shutdown()
        ends: list[tuple[float, str]] = []
        if isinstance(shutdown.value, int | float):
            ends.append((shutdown.value - features.now, shutdown.key.name))
        time_left = features.remaining() if limit else None
        if time_left is not None:
            ends.append((time_left.seconds, time_left.by))
        near = min(ends, default=None)
        if near is not None and near[0] <= before:
            emit(json.dumps({"type": "result", "seconds": near[0], "by": near[1]}) + "\n" if as_json
                 else f"{_until(*near)}\n")
            return 0
        pause = min(interval, end - reader.ticks(), near[0] - before if near is not None else math.inf)
        if reader.ticks() >= end:
            problem("timeout: no shutdown is near", as_json=as_json, status=6)
            return 6
        sleep(max(pause, 0.01))


@command.command("write")
@click.argument("directory", metavar="DIR", shell_complete=directories)
@click.option("--from", "file", metavar="FILE", shell_complete=files, help="A document with one job, for its values.")
@click.option("--set", "values", multiple=True, metavar="KEY=VALUE", help="A value; may repeat.")
@click.option("--unset", "gone", multiple=True, metavar="KEY", help="A key to take away; may repeat.")
@click.option("--draft", is_flag=True, help="The keys of draft 0.99 too.")
@click.option("--remove", is_flag=True, help="Remove DIR, when it was made by this command.")
@_json
def write(directory: str, file: str | None, values: tuple[str, ...], gone: tuple[str, ...], draft: bool, remove: bool,
          as_json: bool) -> int:
    """Make or update the directories DIR/machine, DIR/job and DIR/status, and print the variables for a shell.

    Every file changes at once. A shutdown time is never set nearer than the grace time that was published.
    """
    from sssjob.mjf import Directories

    if not directory or "\0" in directory:
        raise UsageError(f"DIR {escape(directory)!r} is no directory")
    features_written = Directories(os.path.abspath(directory), draft=draft)
    if remove:
        if file or values or gone:
            raise UsageError("--remove stands alone")
        features_written.remove()
        return 0
    session = Session(as_json=as_json)
    values_stated = (_values(session, file) if file is not None else {}) | _given(values)
    if session.errors:
        return session.status()
    features_written.make()
    times = {name: values_stated.pop(name) for name in ("shutdowntime", "shutdowntime_job") if name in values_stated}
    features_written.set(values_stated)
    for name, when in times.items():
        near = features_written.announce(name, when)
        if near != when:
            say(f"{name}: {near}, for {when} is past or nearer than the grace time")
    features_written.unset(*gone)
    emit(json.dumps(features_written.environment()) + "\n" if as_json else features_written.exports())
    return session.status()


def _given(values: tuple[str, ...]) -> dict[str, Any]:
    from sssjob.mjf import KEYS, read_value

    parsed: dict[str, Any] = {}
    for name, text in pairs(values, "--set").items():
        try:
            parsed[name] = read_value(KEYS[name].kind, text) if name in KEYS else text
        except ValueError as error:
            raise UsageError(f"--set {name}: {error}") from None
    return parsed


def _values(session: Session, file: str) -> dict[str, Any]:
    from sssjob.mjf import values_of

    jobs = list(session.read(file).jobs())
    if len(jobs) != 1:
        raise UsageError(f"{file} holds {len(jobs)} jobs; the features are those of one")
    return values_of(*jobs[0])


@command.command("serve")
@click.option("--machine", metavar="DIR", shell_complete=directories, help="Default: $MACHINEFEATURES.")
@click.option("--job", metavar="DIR", shell_complete=directories, help="Default: $JOBFEATURES.")
@click.option("--status", metavar="DIR", shell_complete=directories, help="Default: $JOBSTATUS.")
@click.option("--bind", default="127.0.0.1", metavar="ADDRESS", help="Where to listen (default: 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: a free one.")
def serve(machine: str | None, job: str | None, status: str | None, bind: str, port: int) -> int:
    """Publish the directories over HTTP until Ctrl-C, and print the variables that name them."""
    from sssjob.mjf import VARIABLES, Server

    asked = dict(zip(VARIABLES, (machine, job, status), strict=True))
    bases = {area: asked[area] or os.environ.get(name, "") for area, name in VARIABLES.items()}
    served = {area: os.path.abspath(path) for area, path in bases.items() if asked[area] or path.startswith("/")}
    for area, path in served.items():
        if not os.path.isdir(path):
            raise UsageError(f"{f'--{area}' if asked[area] else f'${VARIABLES[area]}'}: {escape(path)} is no directory")
    if not served:
        raise UsageError("no directory to serve: name one with --machine, --job or --status")
    with Server(served, (bind, port)) as server:
        emit("".join(f"export {VARIABLES[area]}={url}\n" for area, url in server.urls.items()))
        server.serve_forever()
    return 0
