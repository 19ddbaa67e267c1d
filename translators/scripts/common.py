"""Meanings that several dialects share: dependencies, mail, environment, file names, and what is kept of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from sssjob.document.model import Environment
from sssjob.lrm.names import JOB_NAMES
from sssjob.lrm.usage import whole
from sssjob.request.asked import JOB
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    CONTRADICTORY,
    DROPPED,
    INVENTED,
    SITE,
    Asking,
    Entry,
    Reading,
    Row,
    Special,
    dialect_of,
)
from sssjob.translators.scripts.body import facts_of
from sssjob.translators.scripts.grammars import Grammar, file_writer
from sssjob.translators.scripts.raw import Option, split_outside
from sssjob.translators.scripts.rows import STREAMS

__all__ = ["MAIL", "OF_DEPENDENCIES", "OF_FILES", "OF_MAIL", "SCHEDULER", "WAIT", "array", "dependencies", "directory",
           "file_name", "foreign_id", "mail", "moment", "named_variables", "one_more", "read_dependencies", "read_mail",
           "read_variables", "rowed", "source_merges", "streams", "user_hold", "variables"]

#: The place of an Extension that several resource managers know.
SCHEDULER: Final = "Extension[name={},type=Scheduler]"
#: Whether the submit command waits for the end of the job.
WAIT: Final = SCHEDULER.format("Wait")

Written = list[tuple[str, "str | None"]]
_CONDITIONS: Final = {"afterok": "OnSuccess", "afternotok": "OnFailure", "afterany": "OnExit"}
_KINDS: Final = {v: k for k, v in _CONDITIONS.items()}
_ID: Final = re.compile(r"@JOBID:[^@]*@|[^:@]+")
_SAFE: Final = re.compile(r"@JOBID:[^@]*@|[^\s@:,?+]+")
_PLACEHOLDER: Final = re.compile(r"@JOBID:([^@]*)@")
_CLAUSE: Final = re.compile(r"(?:@JOBID:[^@]*@|[^,@])+")
#: The end of the id of an array as a whole, and what Torque adds to the kind of a dependency on one (qsub(1B), depend).
_WHOLE_ARRAY: Final = "[]"
_ON_ARRAY: Final = "array"


# -- dependencies
#: Where the writers of this module look.
OF_DEPENDENCIES: Final = ("Dependency", SCHEDULER.format("DependencyOther"))
OF_MAIL: Final = ("NotificationList", SCHEDULER.format("MailEvents"), SCHEDULER.format("MailUser"))
OF_FILES: Final = ("InputFile", "OutputFile", "ErrorFile")


def read_dependencies(reading: Reading, option: Option) -> None:
    """``afterok:1:2,afterany:3``; a bare id is afterany. Other kinds are kept as Extension DependencyOther."""
    text = option.value or ""
    if "?" in text:
        reading.top("Extension[name=DependencyOther,type=Scheduler]", text, option)
        return
    for clause in _CLAUSE.findall(text):
        kind, colon, rest = clause.partition(":")
        if clause.startswith("@JOBID:") or (not colon and clause[:1].isdigit()):
            kind, rest = "afterany", clause
        if reading.dialect.name == "torque" and all(job.endswith(_WHOLE_ARRAY) for job in _ID.findall(rest)):
            kind = kind.removesuffix(_ON_ARRAY)
        if kind in _CONDITIONS and _ID.search(rest):
            for job in _ID.findall(rest):
                reading.top("Dependency", job, option, condition=_CONDITIONS[kind])
        else:
            reading.top("Extension[name=DependencyOther,type=Scheduler]", clause, option)


def dependencies(asking: Asking, unsaid: Iterable[str] = ()) -> str:
    """The same text. unsaid: kinds, or signs in them, that the target does not know. Ids of another system become
    placeholders (decisions 21)."""
    clauses: list[tuple[str, list[str]]] = []
    for e in asking.find("Dependency"):
        e.understood |= {"condition", "designator", "code"}
        kind = _KINDS.get(e.attributes.get("condition", "OnSuccess"))
        by_name = e.attributes.get("designator", "JobId") != "JobId"
        if kind is None or by_name or "code" in e.attributes or not _SAFE.fullmatch(e.text):
            asking.dropped(e, f"{asking.dialect.title} cannot say this dependency")
            continue
        if asking.dialect.name == "torque" and _PLACEHOLDER.sub(r"\1", e.text).endswith(_WHOLE_ARRAY):
            kind += _ON_ARRAY
        if clauses and clauses[-1][0] == kind:
            clauses[-1][1].append(foreign_id(asking, e))
        else:
            clauses.append((kind, [foreign_id(asking, e)]))
    clauses_written = [f"{kind}:{':'.join(ids)}" for kind, ids in clauses]
    for e in asking.extensions("DependencyOther"):
        if asking.source != asking.dialect.name and (any(u in e.text for u in unsaid) or ":" in e.text):
            asking.dropped(e, f"{asking.dialect.title} cannot say {e.text}")
        elif "?" in e.text and clauses_written:
            asking.dropped(e, f"{e.text} cannot stand beside another dependency")
        else:
            clauses_written.append(_PLACEHOLDER.sub(lambda hit: asking.context.ids.get(hit[1], hit[0]), e.text))
    return ",".join(clauses_written)


def foreign_id(asking: Asking, e: Entry) -> str:
    """The id of a dependency for the target: from the id map, else ``@JOBID:id@``, which is told."""
    text = e.text
    new_id = asking.context.ids.get(_PLACEHOLDER.sub(r"\1", text) if "@" in text else text)
    if new_id is not None or e.text.startswith("@JOBID:") or asking.source == asking.dialect.name:
        return new_id or e.text
    asking.note(SITE, e, f"{e.text} is an id of another system; @JOBID:{e.text}@ stands for its successor")
    return f"@JOBID:{e.text}@"


# -- mail
#: Event of ours -> word of the job object; others go to Extension MailEvents.
MAIL: Final = {"begin": "JobStart", "end": "JobEnd", "all": "All", "none": "None"}
_EVENTS: Final = {v: k for k, v in MAIL.items()}


def read_mail(reading: Reading, events: list[str], to: Option | None, option: Option | None) -> None:
    """Events by our names and an address; an address without events is kept as Extension MailUser."""
    events_read = [MAIL[e] for e in MAIL if e in events]
    others = [e for e in events if e not in MAIL]
    address = to.value if to is not None else None
    if events_read and option is not None:
        more = {"uri": address} if address else {}
        reading.put("NotificationList", ",".join(events_read), option, **more)
    if others and option is not None:
        reading.put("Extension[name=MailEvents,type=Scheduler]", ",".join(others), option)
    if address and to is not None and not events_read:
        reading.put("Extension[name=MailUser,type=Scheduler]", address, to)


def mail(asking: Asking, words: Mapping[str, str], near: Mapping[str, str]) -> tuple[list[str], str | None]:
    """Words of the target for the events, and the address, unless it is one for events of which none is carried. near:
    event -> one that is close to it."""
    words_written: list[str] = []
    listed = asking.one("NotificationList", carried=("uri",))
    events = [] if listed is None else [_EVENTS.get(w.strip(), w.strip()) for w in listed.text.split(",") if w.strip()]
    other = asking.extension("MailEvents")
    named = [] if other is None else other.text.split(",")
    for entry, names in ((listed, events), (other, named)):
        for name in names:
            if entry is None:
                continue
            if name in words:
                words_written.append(words[name])
            elif name == "all":
                words_written += [words[n] for n in ("begin", "end", "abort") if n in words]
                asking.note(APPROXIMATED, entry, f"all events are {', '.join(words_written)}", "info")
            elif near.get(name) in words:
                words_written.append(words[near[name]])
                asking.note(APPROXIMATED, entry, f"mail at {name}: {near[name]} is close to it")
            elif name == "none":
                asking.note(APPROXIMATED, entry, "no mail is sent where no option asks for it", "info")
            else:
                asking.dropped(entry, f"no mail at {name}")
    user = asking.extension("MailUser")
    address = None if listed is None or "uri" not in listed.attributes or not words_written else _address(
        asking, listed, listed.attributes["uri"], "NotificationList/@uri")
    if user is not None:
        address = address or _address(asking, user, user.text, "Extension MailUser")
    return list(dict.fromkeys(words_written)), address


_URI: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://)?)?([^/?#]*)(.*)", re.ASCII | re.DOTALL)
#: Schemes whose authority is an address of mail; it is the first one where none is named.
_OF_MAIL: Final = ("smtp", "mailto", "smtps")


def _address(asking: Asking, entry: Entry, uri: str, subject: str) -> str | None:
    """The address in ``[scheme://]authority``; None, with a finding, where that is no address of mail."""
    match = _URI.fullmatch(uri.strip())
    assert match is not None
    scheme, authority, rest = (match[1] or "smtp").lower(), match[2].strip(), match[3]
    if scheme in _OF_MAIL and authority and rest in ("", "/"):
        return authority
    if authority or rest:
        asking.dropped(entry, f"{uri[:80]} is no address of mail, and {asking.dialect.title} notifies by mail alone",
                       subject)
    return None


# -- environment
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def read_variables(reading: Reading, text: str, option: Option, export: str | None, *, whole: bool = False) -> None:
    """``A=1,B``: variables, and the names alone as Extension ExportNames. Quotes around a value go; whole: those around
    name and value do, and no other ones."""
    scope = reading.scope(("Environment",))
    if export is not None:
        _export(scope, export)
    names: list[str] = []
    for part in split_outside(text, ","):
        name, sign, value = (_bare(part.strip()) if whole else part.strip()).partition("=")
        if not _NAME.fullmatch(name):
            if part.strip():
                reading.misfit(option, f"{part!r} is no variable", "NAME or NAME=VALUE")
                return
        elif sign:
            reading.put("Environment/Variable", value if whole else _bare(value), option, name=name)
        else:
            names.append(name)
    if names:
        reading.put("Extension[name=ExportNames,type=Scheduler]", ",".join(names), option)


def _export(scope: object, value: str) -> None:
    assert isinstance(scope, Environment)
    scope.attributes = {"export": value}


def _bare(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def named_variables(asking: Asking) -> Iterator[Entry]:
    """The variables of the job whose names are such, each with its name in the attribute."""
    for e in asking.variables:
        if e.tag != "Variable" or e.level != JOB:
            continue
        e.used = True
        e.understood |= {"name"}
        if _NAME.fullmatch(e.attributes.get("name", "")):
            yield e
        else:
            asking.dropped(e, f"{e.attributes.get('name')!r} is no name of a variable")


_SIGNS: Final = re.compile(r"[,'\"\\\x00-\x1f\x7f]")
_QUOTED: Final = re.compile(r"[^'\"\\\x00-\x1f\x7f]*")


def _spelt(name: str, value: str) -> str | None:
    """A value with a comma or with blanks around it in quotes."""
    if _SIGNS.search(value) is None and value == value.strip():
        return f"{name}={value}"
    return f"{name}='{value}'" if _QUOTED.fullmatch(value) else None


def variables(asking: Asking, spelt: Callable[[str, str], str | None] = _spelt) -> list[str]:
    """``A=1`` and names. spelt: one variable; None where the directive cannot say it, for managers read quotes,
    backslashes and line breaks in their own ways: those are left to the script."""
    texts = []
    for e in named_variables(asking):
        name = e.attributes.get("name", "")
        text = spelt(name, e.text)
        if text is None:
            asking.unsaid.append((e, f"the value of {name} cannot be quoted"))
        else:
            texts.append(text)
    names = asking.extension("ExportNames")
    return texts + ([] if names is None else names.text.split(","))


# -- files
_PADDED: Final = re.compile(r"(\{[a-z_]+):\d+\}")


def file_name(asking: Asking, tag: str, literal: Callable[[str], str] = str, *, folder: bool = True,
              holds: Iterable[str] = ("Merge",)) -> tuple[str | None, set[str]]:
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
    if asking.source == "sge" != asking.dialect.name and tag != "InputFile" and _is_kept(text):
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
    if "{array_jobid}" in text and not asking.says("Array") and asking.source != asking.dialect.name:
        asking.note(APPROXIMATED, entry, "the job is no array; the id is its own", "info")
        text = text.replace("{array_jobid}", "{jobid}")
    tokens = dict(asking.dialect.tokens)
    name = asking.job.value("Name")
    if "{name}" not in tokens and name is not None:
        tokens["{name}"] = str(name)
        if "{name}" in text:
            asking.note(APPROXIMATED, entry, f"the name stands in the file name as {name}")
    if text.endswith("/") and not folder:
        element = ".{index}" if asking.says("Array") and "{index}" in tokens else ""
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
            asking.note(DROPPED, entry, f"{entry.tag}: {asking.dialect.title} has no {error.args[0]} in file names; "
                        "the rest of the name is written")
            text = rest


def _without(text: str, token: str) -> str:
    """A file name without a token, nor the sign that parts it from the rest, nor a folder that it alone named."""
    token = re.escape(token)
    return re.sub(rf"[._-]?{token}", "", re.sub(rf"(^|/){token}(?:[._-]|/|$)", r"\1", text))


_SHELLS: Final = re.compile(r"\$(?:\{\{([A-Za-z_]\w*)\}\}|([A-Za-z_]\w*))", re.ASCII)
#: Managers that fill variables in in the names of files.
_FILLING: Final = ("lsf", "sge", "torque")
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
    if rest is None or (asking.source in _FILLING) == (asking.dialect.name in _FILLING) or not asking.source:
        return text
    if asking.source not in _FILLING:
        asking.note(APPROXIMATED, entry, f"{entry.tag}: {asking.dialect.title} fills in {rest[0]} in file names, "
                    f"{asking.origin} takes it as it stands")
        return text
    home = "" if asking.context.site is None else asking.context.site.home or ""
    below = text.removeprefix("$HOME/")
    if below != text and home and ("{user}" not in home or "{user}" in asking.dialect.tokens):
        return f"{home}/{below}"
    what = f"{entry.tag}: {asking.origin} fills in {rest[0]} in file names, {asking.dialect.title} takes it as it " \
           "stands"
    if "/" in text[rest.start():]:
        asking.note(SITE, entry, f"{what}, and there is no directory of that name"
                    f"{'; home of a site profile says which one it is' if below != text and not home else ''}",
                    subject=f"{entry.tag} directory")
    else:
        asking.note(APPROXIMATED, entry, what)
    return text


def expands(asking: Asking, text: str) -> bool:
    """Whether a path has variables that the source fills in and the target does not, and that a shell can fill in."""
    return "$" in text and asking.source in _FILLING and asking.dialect.name not in _FILLING and \
        _PATH.fullmatch(text) is not None


_PATH: Final = re.compile(r"/(?:[\w./+@%:,-]|\$[A-Za-z_]\w*)+", re.ASCII)


def _of_element(asking: Asking, entry: Entry, text: str) -> str:
    """A file name of an array without what the manager adds to it for each element by itself."""
    added = asking.dialect.element
    if text.endswith(("/", added)) or asking.source == asking.dialect.name:
        return text.removesuffix(added)
    rest = _without(_PADDED.sub(r"\1}", text), "{index}")
    asking.note(APPROXIMATED, entry, f"{entry.tag}: {asking.dialect.title} adds the index of each element to the name: "
                f"{rest}{added}")
    return rest


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


def rowed(row: Row, write: Callable[[Asking], Written], *more: str) -> Special:
    """What is read as a row is, and written in another way. more: places that write looks at beside that of the row."""
    return Special((row.name,), lambda reading, options: reading.row(row, options[row.name]), write,
                   of=(row.place, *more))


def named(row: Row) -> Special:
    """The option of the job's name, written as the manager takes it."""
    def write(asking: Asking) -> Written:
        """The name of the job, made to fit the rules of the target; what was changed is reported."""
        entry = asking.at(row.place)
        if entry is None:
            return []
        name, rule = entry.text, JOB_NAMES[asking.dialect.name]
        if asking.source == asking.dialect.name or not (fault := rule.fault(name)):
            return [(row.name, name)]
        fit = rule.fitted(name)
        asking.note(APPROXIMATED, entry, f"a name that {fault} is not taken there; it is {fit}")
        return [(row.name, fit)]

    return rowed(row, write)


def user_hold(name: str) -> Special:
    """The option of a hold, which a user can ask for only for himself."""
    def write(asking: Asking) -> Written:
        """The option for Hold User; other holds are dropped."""
        options: Written = []
        for e in asking.find("Hold"):
            if e.text == "User":
                options = [(name, None)]
            else:
                asking.dropped(e, "a user cannot ask for this hold")
        return options

    return rowed(Row(name, "Hold", fixed="User"), write)


def moment(name: str, tag: str, grammar: Grammar) -> Special:
    """The option of a time of day of the site's clock."""
    def write(asking: Asking) -> Written:
        """The time in the grammar of the option, in the zone of the site."""
        text = asking.moment(tag, grammar)
        return [] if text is None else [(name, text)]

    return Special((name,), lambda reading, options: reading.moment(tag, grammar, options[name]), write, of=(tag,))


def directory(name: str) -> Special:
    """The option of the directory that a job starts in, where that is the directory of submission unless it says
    another one."""
    row = Row(name, "InitialWorkingDirectory")

    def write(asking: Asking) -> Written:
        """The directory of the job; none where the manager starts jobs there anyway."""
        entry = asking.one("InitialWorkingDirectory")
        if entry is not None and expands(asking, entry.text):
            entry.used = False                  # the script goes there
            return []
        if entry is not None and entry.text == "." and asking.source not in ("", asking.dialect.name):
            asking.note(APPROXIMATED, entry, "a job starts there anyway", "info")
            return []
        return asking.row(row)

    return Special((name,), lambda reading, options: reading.row(row, options[name]), write, of=(row.place,))


def merged(asking: Asking, error: tuple[str | None, set[str]], output: tuple[str | None, set[str]]) -> str:
    """``oe``, ``eo`` or nothing: which streams go into one file."""
    if "Merge" in error[1]:
        if "Merge" in output[1]:
            asking.note(CONTRADICTORY, None, "both streams are merged; the second counts", subject="ErrorFile")
        return "oe"
    return "eo" if "Merge" in output[1] else ""


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
        files = {tag: file_name(asking, tag, folder=asking.dialect.folders) for tag in options.values()}
        names = {tag: text for tag, (text, _) in files.items()}
        together = merged(asking, files["ErrorFile"], files["OutputFile"])
        if together:
            kept, follows = ("OutputFile", "ErrorFile") if together == "oe" else ("ErrorFile", "OutputFile")
            names[kept] = names[follows] = names[kept] or names[follows]
            asking.note(APPROXIMATED, None, f"{follows}: both streams are sent to the same file", "info", follows)
        elif names["OutputFile"] is not None and "ErrorFile" not in asking.tags and source_merges(asking):
            names["ErrorFile"] = names["OutputFile"]
            asking.note(APPROXIMATED, None, f"ErrorFile: without one {asking.origin} sends both streams to one file; "
                        "it is named twice", "info", "ErrorFile")
        return [(name, text) for name, tag in options.items() if (text := names[tag])]

    return Special(tuple(options), read, write, of=tuple(options.values()))


def array(asking: Asking, *, lists: bool, step: bool, throttle: bool = True) -> str | None:
    """The text of Extension Array, when the target can hold it."""
    entry = asking.extension("Array")
    if entry is None:
        return None
    text = entry.text
    if not lists and "," in text:
        asking.dropped(entry, f"{asking.dialect.title} has one range, not {text}")
        return None
    if not step and ":" in text:
        asking.dropped(entry, f"{asking.dialect.title} has no step in arrays")
        return None
    if not lists and "-" not in text:
        index, percent, most = text.partition("%")
        number = whole(index)
        if number is None:
            asking.dropped(entry, f"{text[:80]!r} is no array")
            return None
        text = f"{index}-{number + 1}:2{percent}{most}"     # qsub refuses a range that ends where it begins
        asking.note(APPROXIMATED, entry, f"the one index {index} is written as {text}")
    return text


def one_more(asking: Asking) -> None:
    """Tell of the files whose names have the index of an array in them, which is counted from 1 and no more from 0."""
    for e in (e for tag in STREAMS for e in asking.said(tag) if "{index" in e.text):
        asking.note(APPROXIMATED, e, f"{e.tag}: the index in it is one more than before, as that of the tasks")


def lost(asking: Asking, name: str, message: str) -> None:
    """A loss that belongs to no single property."""
    asking.note(DROPPED, None, message, subject=name)
