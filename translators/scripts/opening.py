"""What a job asks for and its resource manager has no option for, said by the script: the shell by its first line, the
directory that it starts in, the file of its standard input, the limits of its processes and variables whose values no
directive can say by its first commands.

Nothing is put before a script in another language than the shell's, nor with ``--body keep``; before one for csh only
what csh says in the same words.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from sssjob.lrm.variables import Given
from sssjob.templates.quoting import word
from sssjob.translators.bodies.csh import CSH
from sssjob.translators.bodies.languages import SHELLS, interpreter
from sssjob.translators.bodies.shim import found
from sssjob.translators.bodies.values import given
from sssjob.translators.scripts.body import facts_of, known, mode_of
from sssjob.translators.scripts.environment import holds_macro
from sssjob.translators.scripts.resource_limits import commands, stood

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sssjob.request.asked import Entry
    from sssjob.translators.scripts.base import Asking

__all__ = ["argument", "interpreted", "moves", "opened"]

_APPROXIMATED: Final = "SSS502"
_SITE: Final = "SSS504"
_MACRO: Final = re.compile(r"\$(?:INT)?\((?P<name>\w{1,40})(?:,\s*(?P<form>%0?\d{0,2}d))?\)", re.ASCII)
_INDEX: Final = re.compile(r"\$\(Proc(?:ess|Id)\)", re.IGNORECASE)
#: The first command goes to a directory that does not depend on where it is; any command of the outermost level does.
_FIRST: Final = re.compile(r"(?:[ \t]*(?:#.*)?\n)*[ \t]*cd[ \t]+[\"']?[/$~]")
_COMMAND: Final = re.compile(r"^[ \t]*[^#\s]", re.MULTILINE)
_ANY: Final = re.compile(r"^cd[ \t]+[\"']?[/$~]", re.MULTILINE)


def argument(asking: Asking, text: str, what: str = "Arguments") -> str:
    """A word of the command line, or the value of a variable (what: Environment); what macros of the source said,
    variables of the target's jobs say."""
    if "(" not in text or not asking.macros:
        return str(word(text))
    if not asking.values:
        asking.values = {name: _value(asking, meaning) for name, meaning in asking.macros.items()}
    values = asking.values
    pieces, at = [], 0
    for hit in _MACRO.finditer(text):
        whole_number = hit[0].startswith("$INT")
        if hit["name"].lower() not in values and not whole_number:
            continue
        value = _worked_out(asking, hit, values) if whole_number else values[hit["name"].lower()]
        if value is None:
            asking.note(_SITE, None, f"{what}: {hit[0]} is a macro that nothing stands for here; it stays as text",
                        subject=what)
            continue
        asking.note(_APPROXIMATED, None, f"{what}: {hit[0]} became {value.text}", "info", what)
        pieces += [str(word(text[at:hit.start()])) if at < hit.start() else "", f'"{value.text}"']
        at = hit.end()
    return "".join(pieces) + (str(word(text[at:])) if at < len(text) or not text else "")


def _worked_out(asking: Asking, hit: re.Match[str], values: Mapping[str, Given | None]) -> Given | None:
    """What stands for ``$INT(NAME,%03d)``, where NAME is the number of the job or a macro that is made of it by sums
    and products. The shell computes with whole numbers, as $INT does with those (condor_submit(1), Functions)."""
    name = hit["name"].lower()
    macro = asking.extension(name, asking.source) if name not in values else None
    index = values.get("process")
    if index is None or (name not in values and macro is None):
        return None
    formula = f"$({name})" if macro is None else macro.text
    if not re.fullmatch(r"[\d\s+*()-]*", _INDEX.sub("", formula), re.ASCII):
        return None
    if macro is not None:
        macro.used = True
    number = index.text if _INDEX.fullmatch(formula) else f"$(({_INDEX.sub(index.text.replace(chr(92), ''), formula)}))"
    return Given(f"$(printf {hit['form']} {number})" if hit["form"] else number)


def _value(asking: Asking, meaning: str) -> Given | None:
    source, target, asked = facts_of(asking.source_dialect), facts_of(asking.dialect), known(asking)
    if meaning == "job_id" and "array" in asked:
        meaning = "array_id"
    if meaning == "array_index" and "array" not in asked:
        return Given("0")               # the one process of a cluster
    return given(meaning, source, target, asked) if source is not None and target is not None else None


#: The Extension by which a chunk of PBS Pro says how many threads a task has.
_PBS_THREADS: Final = "select.ompthreads"


def moves(body: str) -> bool:
    """Whether a script goes to a directory of its own, so that it matters little where it starts."""
    return _ANY.search(body) is not None


def opened(asking: Asking, shebang: str, body: str) -> str:
    """The body with the commands that say what no option said."""
    limits, wanting = "ResourceLimit" in asking.tags, _wanting(asking)
    if not (limits or wanting or asking.unsaid or _PBS_THREADS in asking.named):
        return body         # most scripts say all by options
    kept = mode_of(asking.context.options.get("body")) == "keep"
    shell = asking.job.first("Shell")
    program = interpreter(f"#!{shell.text}" if shell is not None and shell.text else shebang)
    csh, foreign = program in CSH, program not in SHELLS
    exports = _exports(asking, kept or foreign) if asking.unsaid else []
    exports += [] if kept or foreign else _threads(asking, body)
    if (foreign and not csh) or not (limits or exports or wanting):
        return body
    if kept:
        return "".join(f"{line}\n" for line in commands(asking, shebang)) + body if stood(asking) and not csh else body
    shim = next((shim_found for shim_found in found(body) if shim_found.start == 0), None)
    at = 0 if shim is None else shim.end        # a shim may have to be first
    lines = [*exports, *_umask(asking), *(commands(asking, shebang) if limits and not csh else ()),
             *_directory(asking, body[at:], csh=csh), *(() if csh else _input(asking))]
    return body[:at] + "".join(f"{line}\n" for line in lines) + body[at:]


def _exports(asking: Asking, kept: bool) -> list[str]:
    """The commands that set variables whose values no directive can say. kept: the script stays as it is, so that
    they are dropped."""
    lines = []
    for entry, why in asking.unsaid:
        if kept or "\n#" in entry.text:        # such a line may be a directive
            asking.dropped(entry, why)
            continue
        macro = asking.macros and holds_macro(asking, entry.text)
        value = argument(asking, entry.text, "Environment") if macro else shlex.quote(entry.text)
        lines.append(f"export {entry.attributes['name']}={value}")
        asking.note(_APPROXIMATED, entry, f"{why}; the script exports it")
    return lines


def _threads(asking: Asking, body: str) -> list[str]:
    """``ompthreads`` of a chunk of PBS Pro, from which its jobs have OMP_NUM_THREADS (pbs_resources(7B)); the script
    runs in the first one."""
    if _PBS_THREADS not in asking.named or asking.dialect.name == "pbspro":
        return []
    stated = [e for e in asking.said("Extension") if e.attributes.get("name") == _PBS_THREADS]
    if not stated or not stated[0].text.isdecimal():
        return []
    stated[0].used = True
    stated[0].understood |= stated[0].attributes.keys()
    if "OMP_NUM_THREADS=" in body:
        return []           # it is the script's own
    line = f"export OMP_NUM_THREADS={stated[0].text}"
    asking.note(_APPROXIMATED, stated[0], f"ompthreads: the script begins with {line}", "info")
    return [line]


def _masked(asking: Asking) -> Entry | None:
    """The mask of new files that no option said."""
    if "Umask" not in asking.named:
        return None
    stated = [e for e in asking.said("Extension") if e.attributes.get("name") == "Umask" and not e.used]
    return stated[0] if len(stated) == 1 and re.fullmatch(r"[0-7]{1,4}", stated[0].text) else None


def _umask(asking: Asking) -> list[str]:
    """``-W umask`` of PBS, ``--umask`` of Cobalt: a command of the same name says it, from then on."""
    entry = _masked(asking)
    if entry is None:
        return []
    entry.used = True
    entry.understood |= entry.attributes.keys()
    line = f"umask {entry.text}"
    asking.note(_APPROXIMATED, entry, f"{asking.dialect.title} has no option for it; the script begins with {line}",
                "info")
    return [line]


def _wanting(asking: Asking) -> bool:
    """Whether there may be something to say: a property without an option, or nothing about a directory where the
    script must go to that of its submission."""
    if "InputFile" in asking.tags and (_closed(asking) or _unsaid(asking, "InputFile")) is not None:
        return True
    if "InitialWorkingDirectory" in asking.tags:
        return _unsaid(asking, "InitialWorkingDirectory") is not None or _masked(asking) is not None
    return (asking.dialect.starts_in == "home" and not asking.goes) or _masked(asking) is not None


def _unsaid(asking: Asking, tag: str) -> Entry | None:
    """The property of the job that no option said."""
    if tag not in asking.tags:
        return None
    entries = [e for e in asking.said(tag) if e.slot == "" and e.level == "Job"]
    return entries[0] if len(entries) == 1 and not entries[0].used and entries[0].text else None


def _closed(asking: Asking) -> Entry | None:
    """An input that is closed at once, which no option said."""
    if "InputFile" not in asking.tags:
        return None
    return next((e for e in asking.said("InputFile") if e.slot == "" and e.level == "Job" and not e.used
                 and e.attributes.get("redirectList") == "Close"), None)


def _directory(asking: Asking, body: str, *, csh: bool) -> list[str]:
    from sssjob.translators.scripts.common import below, expands, of_home, patterned

    where = _submitted(asking)
    entry = _unsaid(asking, "InitialWorkingDirectory")
    if entry is None:
        if not where or asking.goes or "InitialWorkingDirectory" in asking.tags \
                or not asking.came_from("submit", "scratch") or asking.dialect.starts_in != "home" \
                or _FIRST.match(body) or not _COMMAND.search(body):
            return []
        asking.opened = f'cd "{where}"'
        return [asking.opened]
    text = below(entry.text)
    if text == "." and where:
        line = f'cd "{where}"'
    elif patterned(asking, text):
        path = _filled(asking, text if text.startswith("/") else f"{where}/{text}")
        if path is None or (csh and re.search(r"%%|\$\(", path)):
            return []
        line = f'mkdir -p "{path}" && cd "{path}"'          # which LSF makes
    elif expands(asking, text):
        line = f'cd "{of_home(text)}"'
    elif text.startswith("/"):
        line = f"cd {word(text)}"
    elif (where or asking.dialect.starts_in == "submit") and re.fullmatch(r"[\w./+@%:,-]+", text):
        line = f'cd "{where}/{text}"' if where else f"cd ./{text}"
    else:
        return []
    entry.used = True
    option = "for directories below another" if asking.dialect.absolute else "for it"
    if expands(asking, text) or patterned(asking, text):
        option = "that fills in variables"
    asking.note(_APPROXIMATED, entry, f"{asking.dialect.title} has no option {option}; the script begins with {line}",
                "info")
    return [line]


def _filled(asking: Asking, text: str) -> str | None:
    """A directory in double quotes, with the target's variables for the patterns that the source fills in; None where
    it has none for one of them, or a shell would make something else of the rest."""
    patterns = {} if asking.source_dialect is None else asking.source_dialect.patterns
    pieces = re.split("|".join(f"({re.escape(p)})" for p in sorted(patterns, key=len, reverse=True)), text)
    values = [None if piece is None else _value(asking, patterns[piece]) if piece in patterns else Given(piece)
              for piece in pieces]
    if any(value is None for piece, value in zip(pieces, values, strict=True) if piece is not None):
        return None
    path = "".join(value.text for value in values if value is not None)
    return None if re.search(r'["\\`\n]', text) else path


def _submitted(asking: Asking) -> str:
    """``$PBS_O_WORKDIR``: how a job of the target says the directory of its submission."""
    facts = facts_of(asking.dialect)
    names = () if facts is None else facts.variables.items()
    return next((f"${name}" for name, meaning in names if meaning == "submit_dir"), "")


def interpreted(asking: Asking, shebang: str) -> tuple[str, str]:
    """The first line of the script, which names the shell where no option does, and the one that stood there, which
    stays below it."""
    entry = _unsaid(asking, "Shell")
    if entry is None or not re.fullmatch(r"/[\w./+-]{1,100}", entry.text):
        return shebang, ""
    entry.used = True
    if shebang.split()[:1] == [f"#!{entry.text}"]:
        asking.note(_APPROXIMATED, entry, "the first line of the script says it", "info")
        return shebang, ""
    asking.note(_APPROXIMATED, entry, f"{asking.dialect.title} has no option for it; the first line of the script says "
                "it")
    stated = any(file.content().startswith(b"#!") for file in asking.document.files.values())
    return f"#!{entry.text}\n", shebang if stated else ""


def _input(asking: Asking) -> list[str]:
    entry = _closed(asking) or _unsaid(asking, "InputFile")
    closed = entry is not None and entry.attributes.get("redirectList") == "Close"
    if entry is None or (entry.attributes and not closed) or "{" in entry.text:
        return []
    entry.used = True
    entry.understood |= entry.attributes.keys()
    line = f"exec < {'/dev/null' if closed else word(entry.text)}"
    asking.note(_APPROXIMATED, entry, f"{asking.dialect.title} has no option for it; the script begins with {line}",
                "info")
    return [line]
