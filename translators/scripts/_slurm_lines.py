"""How sbatch finds and splits directives: the first stage, lines of PBS and LSF that it obeys included.

Source: sbatch(1) of 22.05, of 26.11 for options that came later, and what sbatch 22.05.8 printed for small cases
(``sbatch -vv``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Final, cast

from sssjob.templates.quoting import Directive, bare, sbatch
from sssjob.translators.scripts.base import APPROXIMATED, CONTRADICTORY, SITE, Reading, Scan
from sssjob.translators.scripts.raw import (
    Line,
    Option,
    Refusal,
    Word,
    before_commands,
    command_words,
    option_of,
    plain_breaks,
    slurm_words,
    texts_of,
)

#: Long option -> "" no argument, ":" one, "?" one only after ``=``.
LONG: Final = dict.fromkeys((
    "consolidate-segments", "contiguous", "help", "hold", "ignore-pbs", "no-requeue",
    "overcommit", "oversubscribe", "parsable", "quiet", "reboot", "requeue", "share", "spread-job", "spread-segments",
    "stepmgr", "test-only", "usage", "use-min-nodes", "verbose", "version", "wait"), "") | \
    dict.fromkeys(("exclusive", "get-user-env", "nice", "no-kill", "oom-kill-step", "propagate", "resv-ports"), "?") | \
    dict.fromkeys((
        "account", "acctg-freq", "array", "batch", "bb", "bbf", "begin", "chdir", "cluster", "cluster-constraint",
        "clusters", "comment", "constraint", "container", "container-id", "core-spec", "cores-per-socket",
        "cpu-freq", "cpus-per-gpu", "cpus-per-task", "deadline", "delay-boot", "dependency", "distribution",
        "error", "exclude", "export", "export-file", "extra", "extra-node-info", "gid", "gpu-bind", "gpu-freq",
        "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "gres-flags", "hint", "input",
        "job-name", "kill-on-invalid-dep", "licenses", "mail-type", "mail-user", "mcs-label", "mem", "mem-bind",
        "mem-per-cpu", "mem-per-gpu", "mem-update", "mincpus", "network", "nodefile", "nodelist", "nodes", "ntasks",
        "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node", "ntasks-per-socket", "open-mode", "output",
        "partition", "power", "prefer", "priority", "profile", "qos", "reservation", "resources", "runtime",
        "segment", "signal", "sockets-per-node", "switches", "tasks-per-node", "thread-spec", "threads-per-core",
        "time", "time-min", "tmp", "tres-bind", "tres-per-task", "uid", "wait-all-nodes", "wckey", "wrap"), ":")
_WRITTEN: Final = frozenset(f"--{name}" for name in LONG)
SAME: Final = {"cluster": "clusters", "share": "oversubscribe", "tasks-per-node": "ntasks-per-node"}
_SHORT: Final = {
    "a": "array", "A": "account", "b": "begin", "B": "extra-node-info", "c": "cpus-per-task", "C": "constraint",
    "d": "dependency", "D": "chdir", "e": "error", "F": "nodefile", "G": "gpus", "h": "help", "H": "hold",
    "i": "input", "J": "job-name", "k": "no-kill", "L": "licenses", "m": "distribution", "M": "clusters",
    "n": "ntasks", "N": "nodes", "o": "output", "O": "overcommit", "p": "partition", "q": "qos", "Q": "quiet",
    "s": "oversubscribe", "S": "core-spec", "t": "time", "v": "verbose", "V": "version", "w": "nodelist", "W": "wait",
    "x": "exclude",
}
PREFIXES: Final = ("#SBATCH", "#SLURM")
_DIRECTIVE: Final = re.compile("|".join(PREFIXES)).match
_PARTS: Final = ("hetjob", "packjob")
#: One long option with a plain value, or one that takes none: nearly all lines are such.
_PLAIN: Final = re.compile(r"""#SBATCH\s++--([a-z-]++)(?:=([^\s"'\\#]++))?\s*+""")
#: With a value, and without one: the name of the option.
_VALUED: Final = {name: f"--{SAME.get(name, name)}" for name, kind in LONG.items() if kind}
_FLAGS: Final = {name: f"--{SAME.get(name, name)}" for name, kind in LONG.items() if kind != ":"}


def live(lines: list[Line]) -> list[Line]:
    """The lines that sbatch obeys."""
    header = lines[:before_commands(lines)]
    return list(compress(header, map(_DIRECTIVE, texts_of(header))))


def scan(reading: Reading, lines: list[Line]) -> Scan:
    """The directives of a script. Words of all lines are one command line, so that an option may find its value on the
    next line."""
    first = lines[0] if lines else Line(1, "")
    if not first.text.startswith("#!"):
        reading.refuse("sbatch wants #! at the very beginning"
                       + (", before it stands a byte order mark" if first.text.startswith("\ufeff#!") else ""), 1,
                       text=first.text)
    lines = plain_breaks(lines, partial(reading.refuse, "DOS line breaks, which sbatch refuses"))
    result, words, end = Scan(), list[Word | Option](), before_commands(lines)
    for line, plain in zip(lines[:end], map(_PLAIN.fullmatch, texts_of(lines)), strict=False):
        if plain is not None:
            option, value = plain.groups()
            name = _FLAGS.get(option) if value is None else _VALUED.get(option)
            if name is not None:
                words.append(option_of((name, value, line[0], plain.start(1) - 1, line[1])))
                continue
        text = line.text
        if not text.startswith(PREFIXES):
            if "#SBATCH" in text:
                _dead(reading, line, late=False)
            result.rest.append(line)
            continue
        words_read = _words(reading, line)
        if words_read and words_read[0].text in _PARTS:
            result.components[-1] += parse(reading, words, lines)
            result.components.append([])
            words = []
        else:
            words += words_read
    for line in [line for line in lines[end:] if "#SBATCH" in line.text]:
        _dead(reading, line, late=True)
    result.rest += lines[end:]
    result.components[-1] += parse(reading, words, lines)
    whole = "\n".join(("", *texts_of(lines)))
    if any(f"\n{prefix}" in whole for prefix in _OTHERS) and not any(
            o.name == "--ignore-pbs" for o in result.components[0]):
        _foreign(reading, lines, end, result)
    return result


def _dead(reading: Reading, line: Line, *, late: bool) -> None:
    text = line.text.lstrip()
    if text.startswith("#SBATCH") and (late or text != line.text):
        why = "sbatch stops reading at the first command" if late else "blanks stand before it"
        reading.dead(line, why, len(line.text) - len(text) + 1)


def _words(reading: Reading, line: Line) -> list[Word]:
    prefix = PREFIXES[0] if line.text.startswith(PREFIXES[0]) else PREFIXES[1]
    if prefix == "#SLURM":
        reading.refuse("#SLURM is read as #SBATCH, with an error message", line.number, 1, "#SLURM", line.text)
    try:
        words, ignored = slurm_words(line.text, line.number, len(prefix))
    except Refusal as error:
        reading.refuse(str(error), line.number, error.column, "directive", line.text)
        return []
    if ignored.strip("\\ \t"):
        reading.findings.add(APPROXIMATED, "directive", "sbatch ignores the rest of a line after an empty word",
                             line=line.number, column=line.text.rindex(ignored) + 1, excerpt=line.text)
    return words


#: Options of plain text, which sbatch does not look into (opt.c of Slurm 22.05): it takes an empty one.
_BLANK: Final = frozenset((
    "--account", "--comment", "--constraint", "--job-name", "--licenses", "--mail-user", "--partition", "--qos",
    "--reservation", "--wckey"))


def parse(reading: Reading, words: Sequence[Word | Option], lines: Iterable[Line]) -> list[Option]:
    """Options out of words, as getopt_long does it. An option among them is one, unless the word before wants a value.
    """
    if Word not in map(type, words):
        return cast("list[Option]", list(words))
    options: list[Option] = []
    queue = list(reversed(words))
    texts = {line.number: line.text for line in lines}

    def add(name: str, value: str | None, at: Word) -> None:
        """Add an option under its usual name; one that sbatch ignores because it is empty is reported."""
        name = f"--{SAME.get(name, name)}"
        if value == "" and name in _BLANK:
            reading.findings.add(APPROXIMATED, name, f"{name}: is empty, which sbatch takes as if it was not given",
                                 line=at.line, column=at.column, excerpt=texts.get(at.line, ""))
            return
        options.append(Option(name, value, at.line, at.column, texts.get(at.line, "")))

    def refuse(message: str, at: Word) -> None:
        """Report what sbatch refuses, at its word."""
        reading.refuse(message, at.line, at.column, at.text, texts.get(at.line, ""))

    site = reading.context.site
    of_plugins = () if site is None else site.slurm.plugin_options
    while queue:
        at = queue.pop()
        if isinstance(at, Option):
            options.append(at)
        elif at.text.startswith("--") and len(at.text) > 2:
            name_given, sign, value = at.text[2:].partition("=")
            if name_given in of_plugins:
                beside = _beside(at, queue) if not sign else None
                add(name_given, value if sign else None if beside is None else beside.text, at)
                continue
            name = _full(name_given, refuse, at)
            if name is None:
                continue
            kind = LONG[name]
            if kind == ":" and not sign:
                if not queue:
                    refuse(f"--{name} wants a value", at)
                    continue
                add(name, _text(queue.pop()), at)
            elif kind == "" and sign:
                refuse(f"--{name} takes no value", at)
            else:
                add(name, value if sign else None, at)
        elif at.text.startswith("-") and len(at.text) > 1:
            _short(at, queue, add, refuse)
        else:
            refuse(f"{at.text!r} is no option", at)
    return options


def _beside(at: Word, queue: list[Word | Option]) -> Word | None:
    """The word behind an option of a plugin on its line, which is its value; only the plugin knows if it has one."""
    following = queue[-1] if queue else None
    if not isinstance(following, Word) or following.line != at.line or following.text.startswith("-"):
        return None
    queue.pop()
    return following


def _text(word: Word | Option) -> str:
    """A word as it stands."""
    return word.text if isinstance(word, Word) else word.text[word.column - 1:].rstrip()


def _short(at: Word, queue: list[Word | Option], add: Callable[[str, str | None, Word], None],
           refuse: Callable[[str, Word], None]) -> None:
    letters = at.text[1:]
    while letters:
        name, letters = _SHORT.get(letters[0]), letters[1:]
        if name is None:
            refuse(f"{at.text}: no such option", at)
            return
        if LONG[name] == ":":
            if not letters and not queue:
                refuse(f"{at.text} wants a value", at)
                return
            add(name, letters or _text(queue.pop()), at)
            return
        if LONG[name] == "?" and letters:
            add(name, letters, at)
            return
        add(name, None, at)


def _full(prefix: str, refuse: Callable[[str, Word], None], at: Word) -> str | None:
    """The long option of that name or that begins with it alone."""
    if prefix in LONG:
        return prefix
    fits = [name for name in LONG if name.startswith(prefix)]
    if len({SAME.get(name, name) for name in fits}) == 1:
        return fits[0]
    if fits:
        refuse(f"--{prefix} may be {', '.join('--' + f for f in sorted(fits))}", at)
    else:
        refuse(f"--{prefix}: no such option, unless plugin_options in [slurm] of a site profile name it", at)
    return None


# -- directives of others that sbatch obeys
_PBS: Final = {"N": "job-name", "A": "account", "q": "partition", "o": "output", "e": "error", "M": "mail-user"}
_BSUB: Final = {"J": "job-name", "P": "account", "q": "partition", "o": "output", "e": "error", "u": "mail-user",
                "n": "ntasks"}
_OTHERS: Final = {"#BSUB": _BSUB, "#PBS": _PBS}
_LETTERS: Final = {"a": "FAIL", "b": "BEGIN", "e": "END", "n": "NONE"}


def _foreign(reading: Reading, lines: list[Line], end: int, result: Scan) -> None:
    """Lines of LSF, else of PBS, anywhere in the file; they win over #SBATCH."""
    for prefix, names in _OTHERS.items():
        hit = [(i, line) for i, line in enumerate(lines) if line.text.startswith(prefix)]
        for index, line in hit:
            reading.findings.add(CONTRADICTORY, prefix, f"sbatch obeys lines of {prefix} too, and they win",
                                 line=line.number, column=1, excerpt=line.text)
            result.components[0] += _foreign_options(reading, line, prefix, names)
            if index < end:
                result.rest.remove(line)
        if hit:
            return


def _foreign_options(reading: Reading, line: Line, prefix: str, names: Mapping[str, str]) -> list[Option]:
    try:
        words, _ = slurm_words(line.text, line.number, len(prefix))
    except Refusal as error:
        reading.findings.add(SITE, prefix, f"{error}; what sbatch makes of the line depends on its release",
                             line=line.number, column=error.column or 1, excerpt=line.text)
        return []
    options: list[Option] = []
    queue = list(reversed([w.text for w in words]))
    while queue:
        word = queue.pop()
        letter, value = word[1:2], word[2:] or (queue.pop() if queue else "")
        pairs = [(names[letter], value)] if letter in names else []
        if prefix == "#PBS" and letter == "m":
            pairs = [("mail-type", ",".join(_LETTERS[c] for c in value if c in _LETTERS))]
        if prefix == "#PBS" and letter == "l":
            pairs = [p for part in value.split(",") for p in _resource(part)]
        options += [Option(f"--{n}", v, line.number, 1, line.text) for n, v in pairs]
        if not pairs:
            reading.findings.add(SITE, prefix, f"{word} {value}: what sbatch makes of it depends on its release",
                                 line=line.number, column=1, excerpt=line.text)
    return options


def _resource(text: str) -> list[tuple[str, str]]:
    name, _, value = text.partition("=")
    if name in ("walltime", "mem"):
        return [("time" if name == "walltime" else name, value)]
    match = re.fullmatch(r"(\d+)(?::ppn=(\d+))?", value) if name == "nodes" else None
    if match is None:
        return []
    return [("nodes", match[1])] + ([("ntasks", str(int(match[1]) * int(match[2])))] if match[2] else [])


def arguments(reading: Reading, text: str) -> list[Option]:
    """The options of a command line."""
    return parse(reading, command_words(text), ())


def directive(name: str, value: str | None) -> str:
    """One option as a line of a script. Raises QuotingError."""
    if value is not None and name in _WRITTEN and bare(value):
        return f"{name}={value}"
    return name if name in _PARTS else sbatch(Directive(name.lstrip("-"), value, name))
