"""Batch scripts of Flux, as flux-batch reads them.

Source: RFC 23 (durations), 26 (dependencies), 35 (constraints), and flux-batch(1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from fnmatch import fnmatchcase
from math import ceil
from typing import Final

from sssjob.document.model import Environment
from sssjob.errors import LexicalError
from sssjob.lrm.flux.durations import read_fsd
from sssjob.translators.scripts._flux_layout import (
    LAYOUT,
    kept_of,
    read_layout,
    read_requires,
    several,
    write_layout,
    write_requires,
)
from sssjob.translators.scripts._flux_lines import FLAGS, SENTINEL, arguments, directive, live, scan
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    AnyRow,
    Asking,
    Dialect,
    Reading,
    Row,
    Special,
    harmless,
    translator,
)
from sssjob.translators.scripts.common import Written, directory, named, signal_of, time_limit
from sssjob.translators.scripts.dependencies import CORRESPONDING, OF_DEPENDENCIES, dependencies, read_dependencies
from sssjob.translators.scripts.environment import named_variables
from sssjob.translators.scripts.grammars import FROM_NOW, SLURM_TIME, Grammar, Kept, file_reader
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.streams import OF_FILES, file_name, in_one_file

__all__ = ["DIALECT", "TRANSLATOR", "duration", "is_whole"]

# -- durations and numbers

def duration(text: str, unit: int = 1) -> Decimal:
    """Seconds of a Flux Standard Duration; unit: seconds that a bare number counts. ValueError for another form."""
    try:
        return read_fsd(text, unit)
    except LexicalError:
        raise ValueError("is no duration of Flux") from None


def is_whole(seconds: Decimal) -> bool:
    """Whether a finite number, of any size, has no fraction."""
    return seconds == seconds.to_integral_value()


def _limit(text: str) -> int:
    seconds = duration(text, 60)
    if seconds == 0 or seconds.is_infinite():
        raise Kept("no limit")
    return ceil(seconds)


_TIME: Final = Grammar(_limit, lambda text: f"{int(text)}s", "minutes, or a number with s, m, h or d")


def _read_time(reading: Reading, options: Mapping[str, Option]) -> None:
    """A limit in whole seconds, which is what a Duration can say."""
    option = options["--time-limit"]
    reading.row(Row("--time-limit", "Requested/Duration", _TIME), option)
    with suppress(ValueError):
        seconds = duration(option.value or "", 60)
        if seconds.is_finite() and not is_whole(seconds):
            reading.tell(APPROXIMATED, option, f"rounded up to {ceil(seconds)} s")


# -- dependencies, times
_OTHER: Final = "Extension[name=DependencyOther,type=Scheduler]"


def _read_dependency(reading: Reading, options: Mapping[str, Option]) -> None:
    for option in reading.every("--dependency"):
        scheme, _, value = (option.value or "").partition(":")
        if scheme == "begin-time" and re.fullmatch(r"\d{1,12}(?:\.0*)?", value, re.ASCII):
            reading.top("EligibleTime", int(value.partition(".")[0]), option)
        elif scheme in ("after", "singleton", "begin-time") or "," in value:
            reading.top(_OTHER, option.value or "", option)
        else:
            read_dependencies(reading, option)
    if (begin := options.get("--begin-time")) is not None:
        with suppress(ValueError):
            plus, ahead = (begin.value or "")[:1], duration((begin.value or "")[1:])
            if plus == "+" and ahead.is_finite():
                reading.put(FROM_NOW, ceil(ahead), begin)
                return
        reading.moment("EligibleTime", _CLOCK, begin)


def _clock(text: str) -> int:
    """A time of day that is stated whole; all else depends on when the job is submitted."""
    value = SLURM_TIME.read(text.replace(" ", "T"))
    assert isinstance(value, int)
    return value


_CLOCK: Final = Grammar(_clock, str, "YYYY-MM-DD HH:MM:SS")


def _write_dependency(asking: Asking) -> Written:
    texts = []
    for clause in re.findall(r"(?:@JOBID:[^@]*@|[^,@])+", dependencies(asking, ("on:", "before", CORRESPONDING))):
        kind, _, rest = clause.partition(":")
        ids = re.findall(r"@JOBID:[^@]*@|[^:@]+", rest) if kind in ("afterok", "afterany", "afternotok") else []
        texts += [f"{kind}:{id_}" for id_ in ids] or [clause]
    begin = asking.one("EligibleTime")
    if begin is not None:
        texts.append(f"begin-time:{begin.text}")
    ahead = asking.from_now()
    options: Written = [("--dependency", text) for text in texts]
    return options if ahead is None else [*options, ("--begin-time", f"+{ahead}s")]


# -- priority, signal
_DEFAULT: Final = 16
_NAMES: Final = {"hold": 0, "default": _DEFAULT, "expedite": 31}


def _read_urgency(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["--urgency"]
    text = option.value or ""
    number = _NAMES.get(text, int(text) if re.fullmatch(r"\d{1,2}", text, re.ASCII) else -1)
    if not 0 <= number <= 31:
        reading.misfit(option, "is no urgency", "0 to 31, hold, default or expedite")
    elif number == 0:
        reading.put("Hold", "User", option)
    else:
        reading.put("Priority", number - _DEFAULT, option)


def _write_urgency(asking: Asking) -> Written:
    hold, priority = asking.one("Hold"), asking.one("Priority")
    if hold is not None:
        if priority is not None:
            asking.dropped(priority, "a held job has no urgency")
        if hold.text != "User":
            asking.dropped(hold, f"a hold of {hold.text} cannot be asked for")
            return []
        return [("--urgency", "hold")]
    if priority is None:
        return []
    urgency = _DEFAULT + int(priority.text)
    number = min(max(urgency, 1), 31)
    if asking.source not in ("", "flux") or number != urgency:
        asking.note(APPROXIMATED, priority, f"urgency {number}: 16 is the default, larger is sooner, users stop at 16")
    return [("--urgency", str(number))]


_SIGNAL: Final = "Extension[name=Signal,type=Scheduler]"


def _read_signal(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["--signal"]
    name, _, time = (option.value or "").partition("@")
    try:
        seconds = duration(time or "60")
    except ValueError as error:
        reading.misfit(option, str(error), "[SIG][@TIME]")
        return
    if not re.fullmatch(r"\w*", name, re.ASCII) or not seconds.is_finite() or not is_whole(seconds):
        reading.keep(option)
        return
    reading.put(_SIGNAL, f"{name.removeprefix('SIG') or 'USR1'}@{int(seconds)}", option)


def _write_signal(asking: Asking) -> Written:
    entry = asking.extension("Signal")
    if entry is None:
        return []
    signal = signal_of(entry.text)
    if signal is None:
        asking.dropped(entry, f"{entry.text} is no signal with a time")
        return []
    of_script, name, ahead = signal
    if of_script or asking.source == "slurm":
        asking.note(APPROXIMATED, entry, "all processes of the job get the signal")
    return [("--signal", f"{name}@{ahead}s")]


# -- files and environment
_TOKENS: Final = {"{jobid}": "{{id}}", "{name}": "{{name}}", "{host}": "{{node.name}}", "{node_rank}": "{{node.id}}",
                  "{task_rank}": "{{taskid}}"}
_NATIVE: Final = {v[2:-2]: k for k, v in _TOKENS.items()} | {
    "jobid": "{jobid}", "task.id": "{task_rank}", "task.rank": "{task_rank}"}
_PATH: Final = Grammar(file_reader(_NATIVE, r"\{\{(?P<name>[a-z_.]+)\}\}"), str, "a file name")
_STREAMS: Final = (("--input", "InputFile"), ("--output", "OutputFile"), ("--error", "ErrorFile"))
_APPEND: Final = "output.mode=append"


def _read_files(reading: Reading, options: Mapping[str, Option]) -> None:
    extra = reading.every("--setopt")
    append = any(o.value == _APPEND for o in extra) and "--output" in options
    for setting in extra:
        if not (append and setting.value == _APPEND):
            reading.keep(setting)
    for name, tag in _STREAMS:
        option = options.get(name)
        if option is None:
            continue
        if option.value in ("none", "kvs"):
            reading.keep(option)
        elif append and tag != "InputFile":
            reading.put(tag, _PATH.read(option.value or " "), option, redirectList="Append")
        else:
            reading.row(Row(name, tag, _PATH), option)


def _write_files(asking: Asking) -> Written:
    def literal(text: str) -> str:
        """Text as a Flux template holds it. Raises LookupError for what it cannot hold."""
        if "{{" in text and asking.source != "flux":
            raise LookupError("way to say '{{'")
        return text

    pairs: Written = []
    source, _ = file_name(asking, "InputFile", literal)
    (output, of_output), (error, of_error) = in_one_file(asking, literal, folder=False)
    for name, text in (("--input", source), ("--output", output), ("--error", error)):
        if text is not None:
            pairs.append((name, text))
    pairs += [("--setopt", e.text) for e in kept_of(asking, "setopt")]
    if "Append" in of_output ^ of_error and None not in (output, error):
        asking.note(APPROXIMATED, None, "ErrorFile: Flux appends to all files or to none", subject="ErrorFile")
    if "Append" in of_output | of_error:
        pairs.append(("--setopt", _APPEND))
    return pairs


_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TAKEN_OUT: Final = re.compile(r"-[\w*?]+", re.ASCII)
_RULE: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.S)


def _rules(texts: list[str]) -> tuple[bool | None, dict[str, str]] | None:
    """Whether the submitter's variables go along (None: not said), and what is set; None for rules that only Flux can
    follow in their order. Variables that are taken out (``-LD_*``) mind no order where none of them is set."""
    export: bool | None = None
    variables: dict[str, str] = {}
    for number, text in enumerate(texts):
        parts = _RULE.fullmatch(text)
        if text in ("-*", "*") and number == 0:
            export = text == "*"
        elif _NAME.fullmatch(text) and export is False and not variables:
            continue
        elif _TAKEN_OUT.fullmatch(text) and export is None:
            if any(fnmatchcase(name, text[1:]) for name in variables):
                return None
        elif parts is None or parts[1] in variables or "$" in parts[2].replace("$$", ""):
            return None
        else:
            variables[parts[1]] = parts[2].replace("$$", "$")
    return export, variables


def _read_env(reading: Reading, options: Mapping[str, Option]) -> None:
    options_given = reading.every("--env")
    rules = _rules([o.value or "" for o in options_given])
    if rules is None:
        for option in options_given:
            reading.keep(option)
        return
    export, variables = rules
    scope = reading.scope(("Environment",))
    assert isinstance(scope, Environment)
    if export is not None:
        scope.attributes = {"export": "true" if export else "false"}
    names = [o for o in options_given if _NAME.fullmatch(o.value or "")]
    if names:
        reading.put("Extension[name=ExportNames,type=Scheduler]", ",".join(o.value or "" for o in names), names[0])
    for option in options_given:
        name, sign, _ = (option.value or "").partition("=")
        if name.startswith("-") and name != "-*":
            reading.keep(option)
        elif sign:
            reading.put("Environment/Variable", variables[name], option, name=name)


def _write_env(asking: Asking) -> Written:
    kept = [e.text for e in kept_of(asking, "env")]
    export = asking.export()
    texts = kept + ([] if export is None else ["*" if export else "-*"])
    names = asking.extension("ExportNames")
    if names is not None:
        if export is False:
            texts += names.text.split(",")
        else:
            asking.note(APPROXIMATED, names, "all variables of the submitter are there in Flux, these too")
    texts += [f"{e.attributes['name']}={e.text.replace('$', '$$')}" for e in named_variables(asking)]
    return [("--env", text) for text in texts]


def _read_sentinel(reading: Reading, options: Mapping[str, Option]) -> None:
    reading.put("Extension[name=Prefix,type=flux]", options["sentinel"].value or "", options["sentinel"])


def _write_sentinel(asking: Asking) -> Written:
    """Lines of a language whose comments do not begin with ``#`` keep their beginning."""
    entry = asking.extension("Prefix", "flux")
    if entry is not None and SENTINEL.fullmatch(entry.text):
        asking.prefix = entry.text
    return []


#: Options of its own that add up when they are given again (base.py of its bindings).
_SEVERAL: Final = ("setattr", "rlimit", "add-file", "conf", "broker-opts", "flags")
ROWS: Final[tuple[AnyRow, ...]] = (
    Special(("sentinel",), _read_sentinel, _write_sentinel, of=("Extension[name=Prefix,type=flux]",)),
    named(Row("--job-name", "Name")),
    Row("--bank", "Project"),
    Row("--queue", "Queue"),
    Special(("--time-limit",), _read_time, time_limit("--time-limit", _TIME.write, "0 would be no limit at all"),
            of=("Requested/Duration",)),
    Special((*LAYOUT, "--exclusive"), read_layout, write_layout, part=True),
    Special(("--requires",), read_requires, write_requires, part=True,
            of=("Feature", "Node", "Extension[name=requires,type=flux]")),
    Special(("--dependency", "--begin-time"), _read_dependency, _write_dependency,
            of=(*OF_DEPENDENCIES, "EligibleTime", FROM_NOW)),
    Special(("--urgency",), _read_urgency, _write_urgency, of=("Hold", "Priority")),
    Special(("--signal",), _read_signal, _write_signal, of=(_SIGNAL,)),
    directory("--cwd"),
    Special(("--input", "--output", "--error", "--setopt"), _read_files, _write_files,
            of=(*OF_FILES, "Extension[name=setopt,type=flux]")),
    Special(("--env",), _read_env, _write_env),
    *(several(f"--{name}") for name in _SEVERAL),
    *(Row(f"--{name}") for name in ("debug-emulate", "dry-run", "dump", "label-io", "quiet", "unbuffered", "verbose",
                                    "wrap")),
)

#: Options of its own that a job can do without.
_HARMLESS: Final = harmless(
    looks="debug-emulate dump label-io quiet unbuffered verbose")

DIALECT: Final = Dialect(
    "flux", "Flux", "#FLUX:", ROWS, scan, directive, arguments, _TOKENS, ("FLUX_",), live, (".flux", ".sh"),
    disarm="#off ", marks=("flux:", "FLUX:"), launcher="flux run", threads=True, folders=False, absolute=True,
    each="flux batch --env={}={}",
    spellings=("exclusive",), adds=("--requires", "--dependency", *(f"--{name}" for name in _SEVERAL)),
    files=("flux-{jobid}.out",), of_input="flux", consequences=_HARMLESS,
    flags=frozenset(f"--{name}" for name in FLAGS))
TRANSLATOR: Final = translator(DIALECT)
