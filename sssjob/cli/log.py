"""``sssjob log``: the history of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._files import emit
from sssjob.cli._journal import instant, lines, names, on_journal
from sssjob.findings import escape

if TYPE_CHECKING:
    from collections.abc import Callable

    from sssjob.run.client import Client
    from sssjob.run.journal import Event

__all__ = ["command"]


@click.command("log")
@names
@on_journal
def command(client: Client, as_json: bool, ids: tuple[str, ...]) -> int:
    """Print what was done and learnt of these jobs, the oldest first: time (UTC), job, source, what.

    Nobody is asked: this is what the journal holds.
    """
    found: dict[int, dict[int, str]] = {}
    for name in ids:
        for row in client.journal.find(name):
            found.setdefault(row.submission, {})[row.job] = row.id or row.key
    for number, labels in found.items():
        events = [e for e in client.journal.entry(number).events() if e.job in labels]
        if as_json:
            emit(lines([{"time": e.time, "id": labels[e.job], "kind": e.kind, "part": e.part, "source": e.source,
                         "data": e.data} for e in events]))
        else:
            emit("".join(f"{instant(e.time)}  {escape(labels[e.job])}  {escape(e.source)}  {escape(said(e))}\n"
                         for e in events))
    return 0


def said(event: Event) -> str:
    """An event in words."""
    part = f" (part {event.part + 1})" if event.part else ""
    words = _WORDS.get(event.kind)
    return (event.kind if words is None else words(event.data)) + part


def _status(data: dict[str, Any]) -> str:
    metadata = data.get("metadata") or {}
    more = [str(x) for x in (metadata.get("reason"), data.get("message")) if x]
    code = f", exit code {data['exit_code']}" if "exit_code" in data else ""
    return f"{data['state']}{code}{': ' if more else ''}{': '.join(more)}"


def _ended(data: dict[str, Any]) -> str:
    code = "" if data["exit_code"] is None else f", exit code {data['exit_code']}"
    return f"ended: {data['word']}{code}{': ' + data['message'] if data['message'] else ''}"


_WORDS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "intent": lambda data: f"about to be submitted by process {data['pid']} on {data['host']}, tag {data['tag']}",
    "unsent": lambda data: "not submitted: the client was told to end",
    "native": lambda data: f"submitted: native id {data['native_id']}",
    "status": _status, "ended": _ended,
    "cancel": lambda data: "its end is asked for",
    "release": lambda data: "released",
    "note": lambda data: str(data["text"]),
}
