"""The files of the standard streams: their names in the spelling of another manager, and what shares one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from sssjob.request.asked import Entry
from sssjob.translators.scripts.asking import Asking
from sssjob.translators.scripts.body import facts_of
from sssjob.translators.scripts.common import FILLING, Written
from sssjob.translators.scripts.grammars import file_writer
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.reading import Reading
from sssjob.translators.scripts.rows import (
    APPROXIMATED,
    CONTRADICTORY,
    DROPPED,
    INVENTED,
    SITE,
    Row,
    Special,
    dialect_of,
)

__all__ = ["OF_FILES", "file_name", "in_one_file", "in_two_files", "merged", "source_merges", "streams"]

#: The name of a file in the target's spelling, None for none, and the words of its redirectList.
NamedFile = tuple[str | None, set[str]]

#: Where the writers of this module look.
OF_FILES: Final = ("InputFile", "OutputFile", "ErrorFile")
_PADDED: Final = re.compile(r"(\{[a-z_]+):\d+\}")


def file_name(asking: Asking, tag: str, literal: Callable[[str], str] = str, *, folder: bool = True,
              holds: Iterable[str] = ("Merge",)) -> NamedFile:
    """The file of a stream in the target's spelling (None: none), and its redirectList. holds: the words of that list
    that the target can say."""
    entry = asking.one(tag, carried=("redirectList",))
    if entry is None:
        return None, set()
    redirects = entry.attributes.get("redirectList")
    how = set() if redirects is None else {w.strip() for w in redirects.split(",") if w.strip()}
    for lost in sorted(how.difference(holds, ("Close",))):
        if lost == "Append" and "{jobid}" in entry.text:
            asking.note(APPROXIMATED, entry, "a file of each job is a new one; there is nothing to append to", "info")
        else:
            asking.note(DROPPED, entry, f"{asking.dialect.title} cannot say {lost} of a file")
    text = entry.text
    if _appends(asking.source) and asking.source != asking.dialect.name and tag != "InputFile" and _is_kept(text):
        if "Append" in holds:
            how.add("Append")
        else:
            asking.note(APPROXIMATED, entry, f"{asking.dialect.title} empties a file that is there, where Grid Engine "
                        "appends to it")
    if "Close" in how:
        return "/dev/null", how         # a stream that is closed at once is one that nothing comes of
    if not text:
        return None, how
    if "$" in text and asking.source != asking.dialect.name:
        text = _filled(asking, entry, text)
    if asking.dialect.element and asking.says("Array"):
        text = _of_element(asking, entry, text)
    if "{" not in text and "}" not in text and text[-1] != "/":
        try:
            return literal(text), how       # most names are the same for all jobs
        except LookupError as error:
            asking.dropped(entry, f"{asking.dialect.title} has no {error.args[0]} in file names")
            return None, how
    text = _for_each(asking, entry, text)
    if not asking.says("Array") and asking.source != asking.dialect.name:
        text = _without_array(asking, entry, text)
    tokens = dict(asking.dialect.tokens)
    name = asking.job.value("Name")
    if "{name}" not in tokens and "{name}" in text and (called := str(name or "") or _script_name(asking)):
        tokens["{name}"] = called
        asking.note(APPROXIMATED, entry, f"the name stands in the file name as {called}" + (
            "" if name else ", as the script is called"))
    if text.endswith("/") and not folder:
        source = dialect_of(asking.source) or asking.dialect
        element = source.numbered if asking.says("Array") and "{index}" in tokens else ""
        number = "{array_jobid}" if element and "{array_jobid}" in tokens else "{jobid}"
        text += ("{name}.o" if tag == "OutputFile" else "{name}.e") + number + element
        asking.note(INVENTED, entry, f"a directory cannot be named; the file in it is {text}")
    if "{array_jobid}" not in tokens and "{jobid}" in tokens:
        tokens["{array_jobid}"] = tokens["{jobid}"]
        if "{array_jobid}" in text:
            asking.note(APPROXIMATED, entry, f"the id of the array is written as {tokens['{jobid}']}")
    if not asking.dialect.pads and _PADDED.search(text):
        asking.note(APPROXIMATED, entry, f"{asking.dialect.title} does not pad numbers with zeros")
        text = _PADDED.sub(r"\1}", text)
    return _with_tokens(asking, entry, text, tokens, literal), how


def _script_name(asking: Asking) -> str:
    """What a job without a name is called: as its script, under every manager (-N of qsub(1B) and submit(1), -J of
    sbatch(1)); empty where that came from no file."""
    path = asking.document.path if asking.source_dialect is not None else ""
    return re.sub(r"[^\w.+@-]", "_", path.rpartition("/")[2], flags=re.ASCII).strip("-_")


def _appends(source: str) -> bool:
    dialect = dialect_of(source)
    return dialect is not None and dialect.appends


def _is_kept(text: str) -> bool:
    """Whether a file may hold what an earlier job wrote: one that no id of a job tells from those of others."""
    return bool(text) and not text.endswith("/") and not text.startswith("/dev/") and "jobid}" not in text


def _with_tokens(asking: Asking, entry: Entry, text: str, tokens: Mapping[str, str], literal: Callable[[str], str]
                 ) -> str | None:
    """A file name in the target's spelling, without the tokens that it does not have; None where too little is left."""
    while True:
        try:
            return file_writer(text, tokens, literal)
        except LookupError as error:
            rest = _without(text, error.args[0])
            named = error.args[0] in ("{name}", "{index}") and _OF_ONE_JOB.search(rest)
            if rest == text or not rest.strip("/._-") or (_APART.match(error.args[0]) and not named):
                asking.dropped(entry, f"{asking.dialect.title} has no {error.args[0]} in file names")
                return None
            folder = rest.rpartition("/")[0]
            elsewhere = folder and not text.startswith(f"{folder}/")
            asking.note(DROPPED, entry, f"{entry.tag}: {asking.dialect.title} has no {error.args[0]} in file names; "
                        "the rest of the name is written" + (f", and its directory {folder} has to be made" if elsewhere
                                                             else ""),
                        subject=f"{entry.tag} directory" if elsewhere else "")
            text = rest


def _without(text: str, token: str) -> str:
    """A file name without a token, nor the sign that parts it from the rest, nor a folder that it alone named."""
    token = re.escape(token)
    return re.sub(rf"[._-]?{token}", "", re.sub(rf"(^|/){token}(?:[._-]|/|$)", r"\1", text))


_SHELLS: Final = re.compile(r"\$(?:\{\{([A-Za-z_]\w*)\}\}|([A-Za-z_]\w*))", re.ASCII)
#: Those that do not, or few, while scripts for them are written as if they did; which, and what is meant by others.
_MEANT: Final = {"pbspro": ("PBS Pro fills in no variables", {
    "PBS_JOBID": "{jobid}", "PBS_JOBNAME": "{name}", "PBS_ARRAY_INDEX": "{index}"}), "torque": (
    "Torque fills in PBS_JOBID and HOME alone", {"PBS_JOBNAME": "{name}", "PBS_ARRAYID": "{index}"})}


def _filled(asking: Asking, entry: Entry, text: str) -> str:
    """A file name with tokens for the variables that scripts for PBS Pro have in it; what else only one of the two
    managers fills in is told."""
    fills, names = _MEANT.get(asking.source, ("", {}))
    with_tokens = _SHELLS.sub(lambda hit: names.get(hit[1] or hit[2], hit[0]), text)
    if with_tokens != text:
        dialect = dialect_of(asking.source)
        added = dialect.element if dialect is not None else ""
        if added and with_tokens.endswith(added) and added.strip("-") in with_tokens.removesuffix(added):
            with_tokens = with_tokens.removesuffix(added)
        asking.note(APPROXIMATED, entry, f"{entry.tag}: {fills} in file names; {with_tokens} is what is meant")
        text = with_tokens
    rest = _SHELLS.search(text)
    if rest is None or (asking.source in FILLING) == (asking.dialect.name in FILLING) or not asking.source:
        return text
    variable = rest[0].replace("{{", "{").replace("}}", "}")
    if asking.source not in FILLING:
        asking.note(APPROXIMATED, entry, f"{entry.tag}: {asking.dialect.title} fills in {variable} in file names, "
                    f"{asking.origin} takes it as it stands")
        return text
    home = "" if asking.context.site is None else asking.context.site.home or ""
    below = text.removeprefix("$HOME/")
    if below != text and home and ("{user}" not in home or "{user}" in asking.dialect.tokens):
        return f"{home}/{below}"
    what = f"{entry.tag}: {asking.origin} fills in {variable} in file names, {asking.dialect.title} takes it as it " \
           "stands"
    if "/" in text[rest.start():]:
        asking.note(SITE, entry, f"{what}, and there is no directory of that name"
                    f"{'; home of a site profile says which one it is' if below != text and not home else ''}",
                    subject=f"{entry.tag} directory")
    else:
        asking.note(APPROXIMATED, entry, what)
    return text


def _of_element(asking: Asking, entry: Entry, text: str) -> str:
    """A file name of an array without what the manager adds to it for each element by itself."""
    added = asking.dialect.element
    if text.endswith(("/", added)) or text == "/dev/null" or asking.source == asking.dialect.name:
        return text.removesuffix(added)
    rest = _without(_PADDED.sub(r"\1}", text), "{index}")
    asking.note(APPROXIMATED, entry, f"{entry.tag}: {asking.dialect.title} adds the index of each element to the name: "
                f"{rest}{added}")
    return rest


_INDEX: Final = re.compile(r"\{index(?::(\d+))?\}")


def _without_array(asking: Asking, entry: Entry, text: str) -> str:
    """A file name of a job that is no array, with what the source fills in for an index there, and its own id for that
    of an array; another manager may fill in a number of its own or nothing (4294967294 of Slurm)."""
    source = facts_of(asking.source_dialect)
    index = "" if source is None else source.no_index
    if index and _INDEX.search(text) is not None:
        asking.note(APPROXIMATED, entry, f"the job is no array; its index is {index}", "info")
        text = _INDEX.sub(lambda hit: index.zfill(int(hit[1] or 0)) if index.isdecimal() else index, text)
    if "{array_jobid}" in text:
        asking.note(APPROXIMATED, entry, "the job is no array; the id is its own", "info")
        text = text.replace("{array_jobid}", "{jobid}")
    return text


#: Pieces without which the files of several jobs or elements would be one.
_OF_ONE_JOB: Final = re.compile(r"\{(?:array_)?jobid\b")
_APART: Final = re.compile(r"\{(?:jobid|array_jobid|index|name)\b")


def _for_each(asking: Asking, entry: Entry, text: str) -> str:
    """A file name with the id of the job, for an array where each element had an id of its own and has none now, or
    the other way."""
    if "{jobid}" not in text or not asking.says("Array"):
        return text
    source, target = facts_of(dialect_of(asking.source)), facts_of(asking.dialect)
    if source is None or target is None or source.unique is target.unique:
        return text
    if target.unique:
        if "{array_jobid}" in asking.dialect.tokens:
            return text.replace("{jobid}", "{array_jobid}")
        asking.note(APPROXIMATED, entry, f"each element of an array has an id of its own in {asking.dialect.title}")
        return text
    if "{index}" not in asking.dialect.tokens or "{index}" in text:
        return text
    asking.note(APPROXIMATED, entry, "all elements of an array have one id there; the index stands after it")
    return text.replace("{jobid}", "{jobid}.{index}")


def merged(asking: Asking, error: NamedFile, output: NamedFile) -> str:
    """``oe``, ``eo`` or nothing: which streams go into one file."""
    if "Merge" in error[1]:
        if "Merge" in output[1]:
            asking.note(CONTRADICTORY, None, "both streams are merged; the second counts", subject="ErrorFile")
        return "oe"
    return "eo" if "Merge" in output[1] else ""


def in_one_file(asking: Asking, literal: Callable[[str], str], *, folder: bool = True) -> tuple[NamedFile, NamedFile]:
    """The files of output and error for a manager that has both streams in one unless two are named: of merged ones
    the file of output alone has a name."""
    output, error = (file_name(asking, tag, literal, folder=folder, holds=("Merge", "Append")) for tag in OF_FILES[1:])
    join = merged(asking, error, output)
    if join == "eo" or (join and output[0] is None):
        for tag in OF_FILES[1:]:
            asking.note(APPROXIMATED, None, f"{tag}: {asking.dialect.title} has both streams in one file unless two "
                        "are named", "info", tag)
    elif not join and output[0] is not None and error[0] is None and asking.source and not source_merges(asking):
        asking.note(APPROXIMATED, None, "ErrorFile: without a file of its own the error stream goes into that of the "
                    "output", subject="ErrorFile")
    if join:
        output, error = (output, (None, error[1])) if join == "oe" else (error, (None, output[1]))
    return output, error


def in_two_files(asking: Asking, *, folder: bool) -> tuple[str | None, str | None]:
    """The files of output and error for a manager that keeps both streams apart unless the same file is named twice."""
    output, error = (file_name(asking, tag, folder=folder) for tag in OF_FILES[1:])
    join = merged(asking, error, output)
    if join:
        first, follows = OF_FILES[1:] if join == "oe" else OF_FILES[:0:-1]
        stated = (output if join == "oe" else error)[0]
        kept = stated or _own_file(asking, first)
        if kept is None:
            asking.note(APPROXIMATED, None, f"{follows}: {asking.dialect.title} keeps both streams apart unless a file "
                        "is named twice, and the job names none", subject=follows)
        else:
            where = "the same file" if stated else f"{kept}, which {asking.dialect.title} itself makes for {first}"
            asking.note(APPROXIMATED, None, f"{follows}: both streams are sent to {where}", "info", follows)
        return kept, kept
    if output[0] is not None and "ErrorFile" not in asking.tags and source_merges(asking):
        asking.note(APPROXIMATED, None, f"ErrorFile: without one {asking.origin} sends both streams to one file; it is "
                    "named twice", "info", "ErrorFile")
        return output[0], output[0]
    return output[0], error[0]


def _own_file(asking: Asking, tag: str) -> str | None:
    """The file that the manager itself gives a stream without one, as an option names it; None: nothing says which."""
    name = dict(zip(OF_FILES[1:], asking.dialect.files, strict=False)).get(tag, "")
    for token, spelling in asking.dialect.tokens.items():
        name = name.replace(token, spelling)
    return None if "{" in name else name or None


def source_merges(asking: Asking) -> bool:
    """Whether the source puts both streams into one file unless two are named."""
    source = dialect_of(asking.source)
    return source is not None and source.merges


def streams(output: str, error: str, source: str = "") -> Special:
    """The options of the files of standard output, standard error and (source) standard input, spelled by the tokens of
    the dialect, for a manager that keeps both outputs apart unless the same file is named twice."""
    options = {output: "OutputFile", error: "ErrorFile"} | ({source: "InputFile"} if source else {})

    def read(reading: Reading, directives: Mapping[str, Option]) -> None:
        """The files of the streams, each as its row reads it."""
        for name, option in directives.items():
            reading.row(Row(name, options[name], reading.dialect.file_names), option)

    def write(asking: Asking) -> Written:
        """The files of the streams, both in one where the job merges them."""
        names = [*in_two_files(asking, folder=asking.dialect.folders),
                 *([file_name(asking, "InputFile", folder=asking.dialect.folders)[0]] if source else [])]
        return [(name, text) for name, text in zip(options, names, strict=True) if text]

    return Special(tuple(options), read, write, of=tuple(options.values()))
