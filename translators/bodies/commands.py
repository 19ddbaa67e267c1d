"""Commands of a resource manager in a body, and those of another that do the same.

What cancels, holds and releases jobs takes ids alone; a launcher takes the options that the other one has too
(``launchers``). Anything else stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sssjob.lrm.variables import Facts
from sssjob.translators.bodies.launchers import (
    LAUNCHERS,
    Launcher,
    Place,
    Said,
    Value,
    left_out,
    parsed,
    resolved,
    written,
)
from sssjob.translators.bodies.shell import Use

__all__ = ["Edit", "Launch", "act_of", "applied", "hosts_asked", "replaced", "same_command", "submitted"]

@dataclass(frozen=True, slots=True)
class Launch:
    """What a launcher is told, and what in the words that launchers share."""

    launcher: Launcher
    to: Launcher
    said: Said
    values: Mapping[str, Place]
    default: str = ""       # tasks that ``to`` starts when nothing is said


@dataclass(frozen=True, slots=True)
class Edit:
    """What takes the place of some bytes: text, and between its pieces what the body has there (start, end).

    differs: how it is not the same, to stand after its name (empty: it is); gone: what is left out, where it stands;
    launch: of a launcher.
    """

    start: int
    end: int
    pieces: tuple[Value, ...]
    differs: str = ""
    gone: tuple[tuple[int, int], ...] = ()
    launch: Launch | None = None

    @property
    def word(self) -> str:
        """The command that does it now."""
        return self.launch.to.name if self.launch is not None else str(self.pieces[0])


def act_of(use: Use, facts: Facts) -> tuple[str, int]:
    """What a command of the source does, and how many words say so; nothing for what only it has."""
    if len(use.words) > 1:
        act = facts.commands.get(f"{use.name} {use.words[1].text.decode('utf-8', 'replace')}")
        if act is not None:
            return act, 2
    return facts.commands.get(use.name, ""), 1


def same_command(use: Use, act: str, source: Facts, target: Facts) -> bool:
    """Whether the target's command is the very same one."""
    return use.name in target.commands and (source.prefixes == target.prefixes
                                            or (bool(act) and target.words.get(act) == use.name))


_OWN_NODES: Final = {form % name for name in (b"SLURM_JOB_NODELIST", b"SLURM_NODELIST")
                     for form in (b"$%s", b"${%s}", b'"$%s"', b'"${%s}"')}


def hosts_asked(use: Use) -> bool:
    """``scontrol show hostnames``, of the job's own nodes."""
    words = [w.text for w in use.words]
    return words[1:3] in ([b"show", b"hostnames"], [b"show", b"hostname"]) and (
        len(words) == 3 or (len(words) == 4 and words[3] in _OWN_NODES))


def replaced(use: Use, source: Facts, target: Facts, job_values: Mapping[str, str]) -> Edit | str:
    """The edit that says the same in the target's words, or why there is none."""
    act, length = act_of(use, source)
    if act == "hosts" and hosts_asked(use) and target.hosts and "\n" not in target.hosts:
        return Edit(use.start, use.words[-1].end, (f"{{ {target.hosts}; }}",))
    if act in ("cancel", "hold", "release"):
        return _on_jobs(use, act, length, target)
    if act == "launch":
        return _launch(use, length, target, job_values)
    return ""


_GAP: Final = re.compile(rb"(?:[ \t]|\\\n)*")
_PIPED: Final = re.compile(rb"[ \t]*\|(?!\|)")
#: A here-document, and lines of it that submit commands obey.
_HERE: Final = re.compile(rb"<<(-?)[ \t]*([\"'\\]?)(\w+)[\"']?")
_DIRECTIVE: Final = re.compile(rb"^[ \t]*#(?:[ \t]*(?:SBATCH|PBS|BSUB|COBALT)\b|\$|[ \t]*(?:flux|FLUX):)", re.MULTILINE)


Answer = tuple[str, str] | str


def applied(data: bytes, span: tuple[int, int], edits: Sequence[Edit], inner: Sequence[Edit]) -> bytes:
    """The bytes of a range with the edits in it. inner: those that are made in the pieces of others."""
    pieces, at = list[bytes](), span[0]
    for edit in sorted(edits, key=lambda e: e.start):
        if edit.start < at or edit.end > span[1]:
            continue
        pieces.append(data[at:edit.start])
        for piece in edit.pieces:
            within = [] if isinstance(piece, str) else [e for e in inner if piece[0] <= e.start and e.end <= piece[1]]
            pieces.append(piece.encode() if isinstance(piece, str) else applied(data, piece, within, inner))
        at = edit.end
    pieces.append(data[at:span[1]])
    return b"".join(pieces)


def submitted(use: Use, length: int, data: bytes, submit: Callable[[list[str], bool], Answer],
              inner: Callable[[str, bool], Answer]) -> Edit | str:
    """The edit of a call of a submit command, with the script in its here-document where that has directives, or why
    there is none. length: how many words name the command; inner: such a script for the target, or why it stays;
    whether its text is quoted."""
    words = use.words[length:]
    ends = [w.end for w in use.words]
    if any(_GAP.fullmatch(data, end, after.start) is None for end, after in zip(ends, use.words[1:], strict=False)):
        return "a redirection stands among its words"
    line_end = data.find(b"\n", ends[-1])
    line = data[ends[-1]:len(data) if line_end < 0 else line_end]
    here = _document(data, ends[-1], line)
    script: Answer = ("", "") if here is None else here if isinstance(here, str) else inner(
        data[here[0]:here[1]].decode("utf-8", "surrogateescape"), here[2])
    if isinstance(script, str):
        return f"the script in its here-document has directives; convert that as a script of its own: {script}"
    before = data[data.rfind(b"\n", 0, use.start) + 1:use.start]
    read = before.count(b"$(") > before.count(b")") or before.count(b"`") % 2 == 1 or _PIPED.match(line) is not None
    answer = submit([w.text.decode("utf-8", "surrogateescape") for w in words], read)
    if isinstance(answer, str):
        return answer
    call, differs = answer
    if call.startswith("printf ") and (use.outer[0] != use.start or here is not None):
        return "words before it, or a here-document, would go to another command"
    if here is None or isinstance(here, str):
        return Edit(use.start, ends[-1], (call,), f"; {differs}" if differs else "")
    differs = "; ".join(filter(None, (differs, script[1])))
    return Edit(use.start, here[1], (call, (ends[-1], here[0]), script[0]), f"; {differs}" if differs else "",
                gone=((here[0], here[1]),))


def _document(data: bytes, at: int, line: bytes) -> tuple[int, int, bool] | str | None:
    """Where the here-document of a call stands that has directives in it, and whether it is quoted; None: there is no
    such, else why it cannot be said. at: the end of the words of the call; line: the rest of its line."""
    hit = _HERE.search(line)
    if hit is None:
        return None
    start = at + len(line) + 1
    end = re.compile(rb"^" + (rb"\t*" if hit[1] else rb"") + hit[3] + rb"$", re.MULTILINE).search(data, start)
    stop = len(data) if end is None else end.start()
    if not _DIRECTIVE.search(data, start - 1, stop):
        return None
    if end is None or hit[1] or _HERE.search(line, hit.end()):
        return "its lines begin with tabs, or it is one of several"
    return start, stop, bool(hit[2])


def _on_jobs(use: Use, act: str, length: int, target: Facts) -> Edit | str:
    word, rest = target.words.get(act), use.words[length:]
    if word is None:
        return f"{target.title} has no command that does this"
    if not rest or any(w.text.startswith(b"-") for w in rest):
        return "only ids may follow"
    return Edit(use.start, use.words[length - 1].end, (word,))


def _launch(use: Use, length: int, target: Facts, job_values: Mapping[str, str]) -> Edit | str:
    """A call of a launcher; one that a variable holds may lack its program."""
    launcher = LAUNCHERS.get(" ".join([use.name, "run"][:length]))
    to = LAUNCHERS.get(target.words.get("launch", ""))
    if launcher is None or to is None:
        return f"{target.title} has no launcher like it"
    call = parsed(use.words[length:], launcher)
    if isinstance(call, str):
        return call
    if call.end == len(use.words) - length and use.kind != "held":
        return "no program follows"
    default = to.default or _unasked(target, job_values)
    values = resolved(call, launcher, to, job_values, default)
    if isinstance(values, str):
        return values
    settings = [piece for where in call.settings for piece in (where, " ")]
    pieces = [*(["env ", *settings] if settings else []), to.name, *written(values, to)]
    differs = ", which is the MPI's and starts its tasks in its own way" if to.name == "mpirun" else ""
    if reasons := left_out(call, launcher, to):
        differs += f"; {reasons}"
    return Edit(use.start, use.words[length + call.end - 1].end, tuple(pieces), differs, tuple(call.gone),
                Launch(launcher, to, call, values, default))


def _unasked(target: Facts, job_values: Mapping[str, str]) -> str:
    """What mpirun starts when nothing is said: a task in each slot, which are not all of the job's tasks where a task
    has several slots, or where the manager tells it nothing of the job."""
    if target.words.get("launch") != "mpirun":
        return ""
    if not target.slots:
        return "1" if job_values.get("tasks") == "1" else "?"
    return "?" if target.counts == "slots" and job_values.get("cpus_per_task", "1") != "1" else ""
