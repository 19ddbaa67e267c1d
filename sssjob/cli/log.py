"""``sssjob log``: the history of jobs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

import click

from psij.executors.batch._terms import DEEDS
from sssjob.cli._files import emit
from sssjob.cli._journal import instant, lines, names, on_journal
from sssjob.findings import escape
from sssjob.run.on_end import shown

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
    labels_by_number: dict[int, dict[int, str]] = {}
    for name in ids:
        for row in client.journal.find(name):
            labels_by_number.setdefault(row.submission, {})[row.job] = row.id or row.key
    for number, labels in labels_by_number.items():
        events = [e for e in client.journal.entry(number).events() if e.job in labels or e.kind in _OF_ALL]
        labels |= {e.job: f"@{number}" for e in events if e.job not in labels}
        if as_json:
            emit(lines([{"time": e.time, "id": labels[e.job], "kind": e.kind, "part": e.part, "source": e.source,
                         "data": shown(e.data) if e.kind == "on-end" else e.data} for e in events]))
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
    again = bool(metadata.get("requeued"))
    waits = metadata.get("waits") if again or data["state"] == "QUEUED" else None
    more = [str(x) for x in (metadata.get("reason"), waits, data.get("message")) if x]
    code = f", exit code {data['exit_code']}" if "exit_code" in data else ""
    what = "put back into the queue" if again else data["state"]
    phase = ", suspended" if metadata.get("phase") == "SUSPENDED" else ""
    return f"{what}{phase}{code}{': ' if more else ''}{': '.join(more)}"


def _ended(data: dict[str, Any]) -> str:
    code = "" if data["exit_code"] is None else f", exit code {data['exit_code']}"
    return f"ended: {data['word']}{code}{': ' + data['message'] if data['message'] else ''}"


#: Kinds of events that concern all jobs of a submission.
_OF_ALL: Final = ("cap", "silent", "answers", "unplaced")


def _answer(data: dict[str, Any]) -> str:
    kind, _, name = data["wish"].partition(" ")
    if data.get("begun"):
        return f"the resource manager is about to be told: {data['wish']}"
    if kind == "change":
        return f"change refused: {data['refusal']}" if data["refusal"] else f"changed: {_changes(name)}"
    done = {"rerun": "put back into the queue", "signal": f"{name} was sent"}
    return f"{data['wish']} refused: {data['refusal']}" if data["refusal"] else done.get(kind) or DEEDS[kind]


def _changes(text: str) -> str:
    """What a change says, as ``Memory 4 GB, Name b``."""
    from sssjob.run.changing import shown

    return shown(text)


def _staging(data: dict[str, Any]) -> str:
    words = {"begun": "files: to be staged out after " + str(data.get("status", {}).get("state")),
             "items": f"files: {data.get('items')} staged out", "fetched": "files: all staged out",
             "failed": f"files: {data.get('text')}", "done": "files: done"}
    return words.get(data["step"], str(data["step"]))


_WORDS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "intent": lambda data: f"about to be submitted by process {data['pid']} on {data['host']}, tag {data['tag']}",
    "unplaced": lambda data: "the resource manager did not say which cluster it is",
    "after": lambda data: f"waits for {', '.join(data['keys'])}",
    "held": lambda data: "it waits for its user to release it",
    "unsent": lambda data: f"not submitted: {data.get('text', 'the client was told to end')}",
    "full": lambda data: f"held back: {data['reason']}",
    "cap": lambda data: f"no more than {data['most']} jobs may be in flight from now on",
    "on-end": lambda data: f"when it has ended: {shown(data).get('url') or shlex.join(data['command'])}",
    "hook": lambda data: "--on-end: " + {"failed": "failed, to be tried again", "over": "failed"}.get(
        data["step"], "done"),
    "native": lambda data: f"submitted: native id {data['native_id']}",
    "status": _status, "ended": _ended, "staging": _staging,
    "late": lambda data: f"accounting after the end: {_status(data)}",
    "cancel": lambda data: "its end is asked for",
    "hold": lambda data: "it is to be held",
    "release": lambda data: "it is to be released",
    "rerun": lambda data: "it is to be run again",
    "suspend": lambda data: "it is to be suspended",
    "resume": lambda data: "it is to be resumed",
    "signal": lambda data: f"it is to be sent {data['name']}",
    "change": lambda data: f"it is to be changed: {_changes(data['name'])}",
    "answer": _answer,
    "retry": lambda data: f"tried again, by {data['clause']}: {data['text']}",
    "group": lambda data: f"its end is asked for: {data['text']}",
    "try": lambda data: str(data["text"]),
    "silent": lambda data: f"the resource manager has not answered since {instant(data['since'])} (process "
                           f"{data['pid']} on {data['host']})",
    "answers": lambda data: "the resource manager answers again",
    "note": lambda data: str(data["text"]),
}
