"""Meanings that several dialects share: dependencies, mail, environment, holds, arrays, and what is kept of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from sssjob.document.model import Environment
from sssjob.lrm.names import JOB_NAMES
from sssjob.lrm.usage import whole
from sssjob.request.asked import JOB, Entry
from sssjob.translators.scripts.asking import Asking
from sssjob.translators.scripts.grammars import Grammar, unstamped
from sssjob.translators.scripts.raw import TEMPLATE, Option, split_outside
from sssjob.translators.scripts.reading import Reading
from sssjob.translators.scripts.rows import APPROXIMATED, DROPPED, SITE, STREAMS, Row, Special

__all__ = [
    "CORRESPONDING", "FILLING", "MAIL", "OF_DEPENDENCIES", "OF_MAIL", "SCHEDULER", "WAIT", "array", "corresponding",
    "dependencies", "directory", "expands", "foreign_id", "holds_macro", "mail", "moment", "name_alone", "named",
    "named_variables", "one_more", "patterned", "priority_between", "read_dependencies", "read_mail", "read_variables",
    "rowed", "signal_of", "time_limit", "user_hold", "variables",
]

#: The place of an Extension that several resource managers know.
SCHEDULER: Final = "Extension[name={},type=Scheduler]"
#: Whether the submit command waits for the end of the job.
WAIT: Final = SCHEDULER.format("Wait")

Written = list[tuple[str, "str | None"]]
_CONDITIONS: Final = {"afterok": "OnSuccess", "afternotok": "OnFailure", "afterany": "OnExit"}
_KINDS: Final = {v: k for k, v in _CONDITIONS.items()}
_ID: Final = re.compile(r"@JOBID:[^@]*@|[^:@]+(?:@[\w.-]+)?")
_SAFE: Final = re.compile(r"@JOBID:[^@]*@|[^\s@:,?+]+")
#: ``123.a@b``: the job is at another server than its id says (qsub(1B), -W depend).
_AT_SERVER: Final = re.compile(r"(?P<id>[^\s@:,?+]+)@[\w.-]+")
_PLACEHOLDER: Final = re.compile(r"@JOBID:([^@]*)@")
_CLAUSE: Final = re.compile(r"(?:@JOBID:[^@]*@|[^,@]|@(?!JOBID:))+")
#: The end of the id of an array as a whole, and what Torque adds to the kind of a dependency on one (qsub(1B), depend).
_WHOLE_ARRAY: Final = "[]"
_ON_ARRAY: Final = "array"


# -- dependencies
#: Where the writers of this module look.
OF_DEPENDENCIES: Final = ("Dependency", SCHEDULER.format("DependencyOther"))
OF_MAIL: Final = ("NotificationList", SCHEDULER.format("MailEvents"), SCHEDULER.format("MailUser"))


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
        if reading.dialect.name == "torque" and all(
                _id_alone(job).endswith(_WHOLE_ARRAY) for job in _ID.findall(rest)):
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
        if by_name and e.text not in asking.context.ids:
            asking.dropped(e, f"{asking.dialect.title} waits for jobs by their ids; --id-map says that of "
                           f"{e.text[:80]}")
            continue
        if kind is None or "code" in e.attributes or not _SAFE.fullmatch(_id_alone(e.text)):
            asking.dropped(e, f"{asking.dialect.title} cannot say this dependency")
            continue
        if asking.dialect.name == "torque" and _PLACEHOLDER.sub(r"\1", _id_alone(e.text)).endswith(
                _WHOLE_ARRAY):
            kind += _ON_ARRAY
        if clauses and clauses[-1][0] == kind:
            clauses[-1][1].append(foreign_id(asking, e))
        else:
            clauses.append((kind, [foreign_id(asking, e)]))
    clauses_written = [f"{kind}:{':'.join(ids)}" for kind, ids in clauses]
    for e in asking.extensions("DependencyOther"):
        waits_for = re.fullmatch(r"on:\d+", e.text, re.ASCII) is not None and {
            asking.source, asking.dialect.name} == {"pbspro", "torque"}      # a number of other jobs, qsub(1B) of both
        if e.text.startswith(CORRESPONDING) and asking.source != asking.dialect.name and \
                CORRESPONDING not in unsaid and (ids := corresponding(asking, e)):
            clauses_written.append(CORRESPONDING + ids.replace(",", ":"))
        elif asking.source != asking.dialect.name and not waits_for and (
                any(u in e.text for u in unsaid) or ":" in e.text):
            asking.dropped(e, f"{asking.dialect.title} cannot say {e.text}")
        elif "?" in e.text and clauses_written:
            asking.dropped(e, f"{e.text} cannot stand beside another dependency")
        else:
            clauses_written.append(_PLACEHOLDER.sub(lambda hit: asking.context.ids.get(hit[1], hit[0]), e.text))
    return ",".join(clauses_written)


#: How Slurm says that each element of an array waits for the one of the same index of another array.
CORRESPONDING: Final = "aftercorr:"


def corresponding(asking: Asking, e: Entry) -> str:
    """The arrays of ``aftercorr:1:2`` for the target, parted by commas; empty where one of them has no plain id."""
    arrays = e.text.removeprefix(CORRESPONDING).split(":")
    if not all(re.fullmatch(r"[\w.-]+", array_id, re.ASCII) for array_id in arrays):
        return ""
    e.used = True
    e.understood |= {"name", "type"}
    for array_id in arrays if asking.source != asking.dialect.name else ():
        if array_id not in asking.context.ids:
            asking.note(SITE, e, f"{array_id} is a job of another system; @JOBID:{array_id}@ stands for its successor")
    if asking.source != asking.dialect.name:
        waits = "the end of each element, not for its success" if asking.dialect.name == "sge" else \
            "the success of each element"
        asking.note(APPROXIMATED, e, f"{asking.dialect.title} waits for {waits}")
        arrays = [asking.context.ids.get(array_id) or f"@JOBID:{array_id}@" for array_id in arrays]
    return ",".join(arrays)


def foreign_id(asking: Asking, e: Entry) -> str:
    """The id of a dependency for the target: from the id map, else ``@JOBID:id@``, which is told."""
    text = _id_alone(e.text)
    new_id = asking.context.ids.get(_PLACEHOLDER.sub(r"\1", text) if "@" in text else text)
    if new_id is not None or text.startswith("@JOBID:") or asking.source == asking.dialect.name:
        return new_id or e.text
    asking.note(SITE, e, f"{text} is an id of another system; @JOBID:{text}@ stands for its successor")
    return f"@JOBID:{text}@"


def _id_alone(text: str) -> str:
    """The id of a job without the server that PBS asks for it."""
    at_server = _AT_SERVER.fullmatch(text)
    return text if at_server is None else at_server["id"]


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
            if "(" in e.text and asking.macros and holds_macro(asking, e.text):
                asking.unsaid.append((e, f"the value of {e.attributes['name']} depends on the job"))
                continue
            yield e
        else:
            asking.dropped(e, f"{e.attributes.get('name')!r} is no name of a variable")


def holds_macro(asking: Asking, text: str) -> bool:
    """Whether a text has something that its own manager replaces in every job, as ``$(Process)`` of HTCondor."""
    lower = text.lower()
    return "$int(" in lower or any(f"$({name})" in lower for name in asking.macros)


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


def rowed(row: Row, write: Callable[[Asking], Written], *more: str) -> Special:
    """What is read as a row is, and written in another way. more: places that write looks at beside that of the row."""
    return Special((row.name,), lambda reading, options: reading.row(row, options[row.name]), write,
                   of=(row.place, *more))


_FILLED_IN: Final = re.compile(r"[._-]?\$(?:INT)?\([^()]*\)", re.IGNORECASE)


def named(row: Row) -> Special:
    """The option of the job's name, written as the manager takes it."""
    def write(asking: Asking) -> Written:
        """The name of the job, made to fit the rules of the target; what was changed is reported."""
        entry = asking.at(row.place)
        if entry is None:
            return []
        name, rule = name_alone(asking, entry), JOB_NAMES.get(asking.dialect.name)
        if asking.source == asking.dialect.name or rule is None or not (fault := rule.fault(name)) or \
                not rule.fault(TEMPLATE.sub(lambda hit: hit[0] if hit[0][0] in "$!" else "P", name)):
            return [(row.name, name)] if name else []
        fit = rule.fitted(name)
        asking.note(APPROXIMATED, entry, f"a name that {fault} is not taken there; it is {fit}")
        return [(row.name, fit)]

    return rowed(row, write)


def time_limit(name: str, spelt: Callable[[str], str], zero: str, rounded: str = "") -> Callable[[Asking], Written]:
    """The writer of the option of a job's time limit. zero: why none of 0 can be asked for; rounded: what is told of
    one that is no whole number of minutes."""
    def write(asking: Asking) -> Written:
        """The option, where the job has a limit."""
        entry = asking.at("Requested/Duration")
        if entry is None or int(entry.text) <= 0:
            if entry is not None:
                asking.dropped(entry, zero)
            return []
        if rounded and int(entry.text) % 60:
            asking.note(APPROXIMATED, entry, rounded)
        return [(name, spelt(entry.text))]

    return write


def priority_between(least: int, most: int) -> Callable[[Asking], Written]:
    """The writer of ``-p``, whose numbers lie between two: a Priority, or a Nice with its sign turned."""
    def write(asking: Asking) -> Written:
        """The option, where the job has a priority that says something on that scale."""
        priority, nice = asking.one("Priority"), asking.extension("Nice")
        entry = priority or nice
        if entry is None:
            return []
        if priority is not None and asking.source in ("slurm", "lsf"):
            asking.dropped(priority, f"a priority of {asking.origin} is not on the scale from {least} to {most}")
            return []
        value = asking.whole(entry)
        if entry is nice and value == 0:
            asking.note(APPROXIMATED, nice, "it is what jobs have unless told", "info")
        if value is None or (entry is nice and not value):
            return []
        if entry is nice:
            value = -value
            asking.note(APPROXIMATED, nice, "larger is later there, sooner here; the sign is turned")
        bounded = max(least, min(most, value))
        if bounded != value:
            asking.note(APPROXIMATED, entry, f"the range is from {least} to {most}; {bounded} is taken")
        return [("-p", str(bounded))]

    return write


def name_alone(asking: Asking, entry: Entry) -> str:
    """The name of a job without what its own manager fills in (``$(Cluster)``), which is told; empty where no more is
    left."""
    if not asking.macros or not holds_macro(asking, entry.text):
        return entry.text
    name = _FILLED_IN.sub("", entry.text)
    if name:
        asking.note(APPROXIMATED, entry, f"the name is {name}, without what {asking.origin} fills in")
    else:
        asking.dropped(entry, f"only {asking.origin} fills it in")
    return name


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

    return Special((name,), lambda reading, options: reading.moment(tag, grammar, options[name]), write,
                   of=(tag, *(unstamped(tag, scope) for scope in grammar.coming)))


#: Managers that fill variables in in the names of files.
FILLING: Final = ("lsf", "sge", "torque")
_PATH: Final = re.compile(r"(?:~/|\$HOME(?=/)|/)(?:[\w./+@%:,-]|\$[A-Za-z_]\w*)+", re.ASCII)


def expands(asking: Asking, text: str) -> bool:
    """Whether a path has variables that the source fills in and the target does not, and that a shell can fill in."""
    return ("$" in text or text.startswith("~")) and asking.source in FILLING \
        and asking.dialect.name not in FILLING and _PATH.fullmatch(text) is not None


_SIGNAL: Final = re.compile(r"(R?B?R?:)?(?:SIG)?(\w+)(?:@(\d{1,9}))?", re.ASCII)


def signal_of(text: str) -> tuple[bool, str, int] | None:
    """Of an Extension Signal (``B:USR1@100``): whether the script alone gets it, its name without SIG, and how many
    seconds before the end (sbatch(1): 60 unless it says so); None for anything else."""
    match = _SIGNAL.fullmatch(text)
    return None if match is None else ("B" in (match[1] or ""), match[2], int(match[3] or 60))


def patterned(asking: Asking, text: str) -> str:
    """The first pattern in a directory that only the source fills in (``%J`` of LSF); empty where there is none."""
    source = asking.source_dialect
    if source is None or source is asking.dialect or not source.patterns:
        return ""
    return min((pattern for pattern in source.patterns if pattern in text), key=text.find, default="")


def below(text: str) -> str:
    """A directory without what says nothing: ``./x`` is x, and ``./`` the directory of submission, ``.``."""
    return re.sub(r"\A(?:\./+)+", "", text) or "."


def of_home(text: str) -> str:
    """A path below the home directory as a shell takes it in quotes: ``~/x`` is ``$HOME/x``."""
    return f"$HOME{text[1:]}" if text.startswith("~/") else text


def elsewhere(asking: Asking, entry: Entry) -> bool:
    """Whether the directory is one that the target's option would look for in another place than the source: by its
    variables and patterns, or because it is not absolute where the manager takes it from that of its own daemon."""
    if expands(asking, entry.text) or patterned(asking, entry.text):
        return True
    whole = ("/", "$HOME", "~/") if asking.dialect.name in FILLING else "/"
    return asking.dialect.absolute and not entry.text.startswith(whole) and asking.source != asking.dialect.name


def directory(name: str, *, submits: bool = True) -> Special:
    """The option of the directory that a job starts in. submits: unless told, that is the directory of submission."""
    row = Row(name, "InitialWorkingDirectory")

    def write(asking: Asking) -> Written:
        """The directory of the job; none where the manager starts jobs there anyway."""
        entry = asking.one("InitialWorkingDirectory")
        own = asking.source in ("", asking.dialect.name)
        if submits and entry is not None and below(entry.text) == "." and not own:
            asking.note(APPROXIMATED, entry, "a job starts there anyway", "info")
            return []
        if entry is not None and elsewhere(asking, entry):
            entry.used = False                  # the script goes there
            return []
        return asking.row(row)

    return Special((name,), lambda reading, options: reading.row(row, options[name]), write, of=(row.place,))


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
