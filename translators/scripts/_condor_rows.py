"""What the commands of HTCondor's submit descriptions mean: the table of the dialect, and how each is read and written.

Source: condor_submit(1); values were compared with what the parser of the 23.0 bindings makes of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from sssjob.document.failures import RETRY, FailurePolicyError, Retry
from sssjob.lrm.idset import one_range
from sssjob.lrm.variables import FACTS
from sssjob.templates.quoting import condor_string
from sssjob.translators.scripts._condor_job import (
    kept_as_it_is,
    name_of,
    of_each_machine,
    raw_text,
    read_command,
    read_layout,
    read_machines,
    read_variables,
    tell_of_macros,
    write_command,
    write_layout,
    write_machines,
    write_variables,
)
from sssjob.translators.scripts.base import APPROXIMATED, SITE, AnyRow, Asking, Reading, Row, Special
from sssjob.translators.scripts.choices import fits
from sssjob.translators.scripts.common import SCHEDULER, Written, array, expands, of_home, patterned
from sssjob.translators.scripts.grammars import COUNT, INTEGER, Kept, file_reader
from sssjob.translators.scripts.layout import in_all
from sssjob.translators.scripts.notices import OF_MAIL, mail, read_mail
from sssjob.translators.scripts.raw import Option, Told
from sssjob.translators.scripts.streams import OF_FILES, file_name, merged

__all__ = ["ALIASES", "ROWS", "TOKENS", "index", "kept_as_it_is", "name_of"]

#: Another name of a command -> the one that wins over it.
ALIASES: Final = {
    "args": "arguments", "env": "environment", "get_env": "getenv", "initial_dir": "initialdir", "iwd": "initialdir",
    "job_iwd": "initialdir", "in": "input", "stdin": "input", "out": "output", "stdout": "output", "err": "error",
    "stderr": "error", "prio": "priority", "jobprio": "priority", "batchname": "batch_name",
    "jobbatchname": "batch_name", "cmd": "executable", "requestcpus": "request_cpus", "request_cpu": "request_cpus",
    "requestmemory": "request_memory", "requestdisk": "request_disk", "requestgpus": "request_gpus",
    "request_gpu": "request_gpus", "node_count": "machine_count", "nodecount": "machine_count",
    "jobnotification": "notification", "notifyuser": "notify_user", "accountinggroup": "accounting_group",
    "acctgroup": "accounting_group", "acct_group": "accounting_group", "jobuniverse": "universe",
}


# -- files, queue
TOKENS: Final = {"{jobid}": "$(Cluster)", "{index}": "$(Process)", "{node_rank}": "$(Node)"}
_NATIVE: Final = {"cluster": "{jobid}", "clusterid": "{jobid}", "process": "{index}", "procid": "{index}",
                  "node": "{node_rank}"}
_INDEX: Final = "$INT(array_index)"
#: The number of a job, with zeros before it or without.
_NUMBER: Final = re.compile(r"\$INT\((array_index|process|procid|cluster|clusterid)(?:,%(?:0(\d{1,3}))?d)?\)",
                            re.IGNORECASE | re.ASCII)
_INTEGER: Final = re.compile(r"\$INT(?=\()", re.IGNORECASE)
_MACRO: Final = re.compile(r"\$\((?:Cluster|ClusterId|Process|ProcId|Node)\)", re.IGNORECASE)
_pattern = file_reader({**_NATIVE, "array_index": "{index}"}, r"\$\((?P<name>[a-z_]+)(?:\0(?P<width>\d+))?\)")
_STREAMS: Final = (("input", "InputFile"), ("output", "OutputFile"), ("error", "ErrorFile"))


def _path(text: str) -> str:
    text = _MACRO.sub(lambda hit: hit[0].lower(), text)
    return _pattern(_NUMBER.sub(lambda hit: f"$({hit[1].lower()}" + (f"\0{int(hit[2])})" if hit[2] else ")"), text))


def _read_files(reading: Reading, options: Mapping[str, Option]) -> None:
    output = options.get("output")
    for name, tag in _STREAMS:
        option = options.get(name)
        if option is None or not option.value:
            continue
        tell_of_macros(reading, option, _INTEGER.sub("$OTHER", _NUMBER.sub("", _MACRO.sub("", option.value))))
        if name == "error" and output is not None and output.value == option.value:
            reading.put(tag, "", option, redirectList="Merge")      # the same file: HTCondor merges the streams
        else:
            reading.put(tag, _path(option.value), option)


def _read_directory(reading: Reading, options: Mapping[str, Option]) -> None:
    tell_of_macros(reading, options["initialdir"])
    reading.row(_DIRECTORY, options["initialdir"])


def _write_directory(asking: Asking) -> Written:
    """The directory; variables that the source fills in are those of who submits, by ``$ENV`` (condor_submit(1))."""
    entry = asking.one("InitialWorkingDirectory")
    if entry is not None and (pattern := patterned(asking, entry.text)):
        asking.dropped(entry, f"only {asking.origin} fills in {pattern}")
        return []
    if entry is None or not expands(asking, entry.text):
        return asking.row(_DIRECTORY)
    own = [name for name in re.findall(r"\$(\w+)", entry.text) if name in FACTS[asking.source].variables]
    if own:
        asking.note(SITE, entry, f"{asking.dialect.title} takes ${own[0]} as it stands, and there is no such directory")
        return asking.row(_DIRECTORY)
    asking.note(APPROXIMATED, entry, "condor_submit fills in the variables, from the environment that it is called in")
    return [("initialdir", re.sub(r"\$(\w+)", r"$ENV(\1)", of_home(entry.text)))]


_DIRECTORY: Final = Row("initialdir", "InitialWorkingDirectory")


def _write_files(asking: Asking) -> Written:
    entry = asking.extension("Array")
    match = re.fullmatch(r"(\d+)(?:-\d+(?::(\d+))?)?(?:%\d+)?", entry.text, re.ASCII) if entry is not None else None
    shifted = match is not None and (match[1] != "0" or match[2] not in (None, "1"))

    def literal(text: str) -> str:
        """Text as a submit description holds it. Raises LookupError for what it cannot hold."""
        return raw_text(asking, text)

    options: Written = []
    streams = [file_name(asking, tag, literal, folder=tag == "InputFile") for _, tag in _STREAMS]
    join = merged(asking, streams[2], streams[1])
    names = [s[0] for s in streams]
    if join == "oe":
        names[2] = names[1]
    elif join == "eo":
        names[1] = names[2]
        for tag in ("OutputFile", "ErrorFile"):
            asking.note(APPROXIMATED, None, f"{tag}: both streams go into one file", "info", tag)
    elif names[1] is not None and names[1] == names[2]:
        asking.note(APPROXIMATED, None, "ErrorFile: both streams go into one file", "info", "ErrorFile")
    if join and names[1] is None:
        asking.note(APPROXIMATED, None, "ErrorFile: without a file HTCondor discards the streams", subject="ErrorFile")
    for (name, _), value in zip(_STREAMS, names, strict=True):
        if value is not None:
            options.append((name, value.replace("$(Process)", _INDEX).replace("$INT(Process,", f"{_INDEX[:-1]},")
                            if shifted else value))
    return options


def _read_staging(reading: Reading, options: Mapping[str, Option]) -> None:
    """Files by name; whole folders and macros are kept as they are."""
    remaps = options.get("transfer_output_remaps")
    renamed: dict[str, str] = {}
    if remaps is not None:
        pairs = [p.partition("=") for p in (remaps.value or "").strip('" ').split(";") if p.strip()]
        renamed = {k.strip(): v.strip() for k, _, v in pairs}
    for name, kind in (("transfer_input_files", "StageIn"), ("transfer_output_files", "StageOut")):
        option = options.get(name)
        if option is None or not option.value:
            continue
        files = [f for f in re.split(r"\s*,\s*", option.value.strip()) if f]
        if files == ['""']:
            reading.tell(APPROXIMATED, option, "no file is transferred", "info")
            reading.keep(Told(*option))
            continue
        if any(f.endswith("/") or "$" in f or '"' in f for f in files) or (
                kind == "StageOut" and any("$" in renamed.get(f, "") for f in files)):
            kept_as_it_is(reading, option, "folders or macros among the files")
            continue
        for file in files:
            target = file.rstrip("/").rpartition("/")[2]
            if kind == "StageOut":
                target = renamed.pop(file, target)
            reading.put(f"Extension[name={kind},type=PSIJ]", json.dumps({"source": file, "target": target}), option)
    if renamed and remaps is not None:
        reading.keep(remaps)


def _write_staging(asking: Asking) -> Written:
    options: Written = []
    renamed: list[str] = []
    for name, kind in (("transfer_input_files", "StageIn"), ("transfer_output_files", "StageOut")):
        files: list[str] = []
        for e in asking.extensions(kind, "PSIJ"):
            try:
                staging = json.loads(e.text)
                source, target = str(staging["source"]), str(staging["target"])
            except (ValueError, LookupError, TypeError):
                asking.dropped(e, "is no file to transfer")
                continue
            base = source.rstrip("/").rpartition("/")[2]
            more = set(staging) - {"source", "target"}
            if more or re.search(r"[,;=\"\s$]", source + target) or (kind == "StageIn" and target != base):
                asking.dropped(e, f"{source} to {target}: the file keeps its name, and is always transferred")
                continue
            files.append(source)
            if target != base:
                renamed.append(f"{source}={target}")
        if files:
            options.append((name, ", ".join(files)))
    if renamed:
        options.append(("transfer_output_remaps", condor_string(";".join(renamed))))
    return options


def _read_array(reading: Reading, options: Mapping[str, Option]) -> None:
    """What ``_job`` found out about the queue statement."""
    if (option := options.get("queue")) is not None:
        reading.put("Extension[name=Array,type=Scheduler]", option.value or "", option)
    if (unread := options.get("queue from")) is not None:
        reading.put("Extension[name=queue,type=htcondor]", unread.value or "", unread)


def index(array: str) -> str:
    """Jobs of a cluster are counted from 0, one by one."""
    tasks = one_range(array.partition("%")[0])
    if tasks is None:
        return ""
    first, _, step = tasks
    text = f"{{}} * {step}" if step > 1 else "{}"
    return "" if not first and step <= 1 else f"{text} + {first}" if first else text


def _write_array(asking: Asking) -> Written:
    unread = asking.extension("queue", "htcondor")
    text = array(asking, lists=False, step=True)
    if unread is not None:
        return [("queue", unread.text.partition(" ")[2])]
    written, _, most = (text or "").partition("%")
    tasks = one_range(written) if re.fullmatch(r"\d{0,9}", most, re.ASCII) else None
    if tasks is None:
        if text is not None:
            entry = asking.extension("Array")
            assert entry is not None
            asking.dropped(entry, f"{text} is no range")
        return []
    first, last, step = *tasks[:2], tasks[2] or 1
    if (last - first) % step:
        asking.note(APPROXIMATED, asking.extension("Array"), f"the last index is {last - (last - first) % step}",
                    "info")
    options: Written = []
    if first or step != 1 or last <= first:     # queue 1 alone is no array
        factor = f" * {step}" if step != 1 else ""
        options.append(("array_index", f"$(Process){factor}{f' + {first}' if first else ''}"))
    if most:
        options.append(("max_materialize", most))
    return [*options, ("queue", str(max(0, last - first) // step + 1))]


# -- mail, priority, licences, times
_MAIL: Final = {"always": ["all"], "complete": ["end"], "error": ["fail"], "never": ["none"]}


def _read_mail(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options.get("notification")
    events = _MAIL.get((option.value or "").lower(), []) if option is not None else []
    if option is not None and not events:
        reading.misfit(option, "is no notification", "Always, Complete, Error or Never")
        option = None
    read_mail(reading, events, options.get("notify_user"), option)


def _write_mail(asking: Asking) -> Written:
    words, address = mail(asking, {"all": "Always", "end": "Complete", "fail": "Error", "none": "Never"},
                          {"abort": "fail"})
    if "Complete" in words and "Error" in words:
        asking.note(APPROXIMATED, asking.extension("MailEvents"), "Complete tells of both", "info",
                    "Extension MailEvents")
    word = next((w for w in ("Always", "Complete", "Error", "Never") if w in words), None)
    options: Written = [("notification", word)] if word else []
    return [*options, ("notify_user", address)] if address else options


def _read_hold(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["hold"]
    if (option.value or "").lower() in ("true", "1", "yes"):
        reading.put("Hold", "User", option)
    elif (option.value or "").lower() not in ("false", "0", "no"):
        reading.misfit(option, "is neither True nor False", "True or False")


def _write_hold(asking: Asking) -> Written:
    entry = asking.one("Hold")
    if entry is None:
        return []
    if entry.text != "User":
        asking.dropped(entry, f"a hold of {entry.text} cannot be asked for")
        return []
    return [("hold", "True")]


def _read_licences(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["concurrency_limits"]
    matches = [re.fullmatch(r"([\w.]+)(?::(\d{1,9}))?", p.strip(), re.ASCII) for p in (option.value or "").split(",")]
    if not all(matches):
        kept_as_it_is(reading, option)
        return
    for hit in matches:
        assert hit is not None
        reading.put("Requested/Resource", int(hit[2] or 1), option, name="License", type=hit[1])


def _write_licences(asking: Asking) -> Written:
    licences = []
    for e in asking.find("Resource", name="License"):
        e.understood |= {"type"}
        kind = e.attributes.get("type", "license")
        if fits(asking, e, kind):
            count = in_all(asking, e)
            licences.append(kind if count == 1 else f"{kind}:{count}")
    return [("concurrency_limits", ", ".join(licences))] if licences else []


def _read_resources(reading: Reading, options: Mapping[str, Option]) -> None:
    """``request_NAME`` of another resource than those HTCondor knows."""


def _write_resources(asking: Asking) -> Written:
    options: Written = []
    for e in asking.find("Resource"):
        name = e.attributes.get("name", "")
        if name in ("GPU", "License"):
            e.used = bool(e.understood & {"units", "type"})
            continue
        e.understood |= {"name", "metric", "type"}
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or "type" in e.attributes:
            asking.dropped(e, f"{name} cannot be requested")
            continue
        if asking.source != "htcondor":
            asking.note(SITE, e, f"machines may not have a resource {name}")
        each = of_each_machine(asking, e)
        if each:
            options.append(("request_resource", f"{name} = {each}"))
    return options


#: With which command the limit of a job was said, where it is not that of its execution: that of all of it with its
#: transfers, or an attribute of a site with its value.
_LIMIT: Final = "Extension[name=limit,type=htcondor]"
#: Attributes with the limit of a job, and the seconds of their words. Source: the batch service of CERN, batchdocs.
_OF_SITE: Final[Mapping[str, Mapping[str, int]]] = {"MY.MaxRuntime": {}, "MY.JobFlavour": {
    "espresso": 1200, "microcentury": 3600, "longlunch": 7200, "workday": 28800, "tomorrow": 86400,
    "testmatch": 259200, "nextweek": 604800}}


def _read_limit_of_site(reading: Reading, options: Mapping[str, Option]) -> None:
    """``+JobFlavour`` and ``+MaxRuntime``, by which sites that have them end a job, where nothing else limits it."""
    limits = [option for name, option in options.items() if name in _OF_SITE or name.startswith("allowed_")]
    for option in [option for option in limits if option.name in _OF_SITE]:
        word = (option.value or "").strip('"')
        seconds = int(word) if re.fullmatch("[1-9][0-9]{0,8}", word) else _OF_SITE[option.name].get(word.lower())
        if seconds is None or len(limits) > 1 or (option.name == "MY.JobFlavour" and word.isdigit()):
            reading.keep(option)
            continue
        reading.put("Requested/Duration", seconds, option)
        reading.put(_LIMIT, f"{option.name} = {option.value}", option)
        reading.tell(SITE, option, f"taken for a limit of {seconds} s, as the batch service of CERN does")


def _read_seconds(reading: Reading, options: Mapping[str, Option]) -> None:
    _read_limit_of_site(reading, options)
    whole = options.get("allowed_job_duration")
    if whole is not None and ("allowed_execute_duration" in options or not re.fullmatch(
            "[0-9]+", whole.value or "", re.ASCII)):
        reading.keep(whole)         # the job has another limit, or this one is an expression
    elif whole is not None:
        reading.put("Requested/Duration", int(whole.value or ""), whole)
        reading.put(_LIMIT, whole.name, whole)
    for name, where in (("allowed_execute_duration", "Requested/Duration"), ("deferral_time", "EligibleTime"),
                        ("priority", "Priority")):
        option = options.get(name)
        if option is None:
            continue
        try:
            (INTEGER if name == "priority" else COUNT).read(option.value or "")
        except (ValueError, Kept):
            kept_as_it_is(reading, option)
            continue
        reading.put(where, int(option.value or ""), option)


def _write_seconds(asking: Asking) -> Written:
    options: Written = []
    entry, marked = asking.at("Requested/Duration"), asking.extension("limit", "htcondor")
    if entry is not None:
        if int(entry.text) > 0:
            name, _, value = ("allowed_execute_duration" if marked is None else marked.text).partition(" = ")
            options.append((name, value or entry.text))
        else:
            asking.dropped(entry, "no time at all cannot be asked for")
    begin, priority = asking.one("EligibleTime"), asking.one("Priority")
    if begin is not None:
        options.append(("deferral_time", begin.text))
    if priority is not None:
        if asking.source not in ("", "htcondor"):
            asking.note(APPROXIMATED, priority, "larger is sooner, but only among the jobs of one user")
        options.append(("priority", priority.text))
    nice = asking.extension("Nice") if priority is None else None
    if nice is not None and (number := asking.whole(nice)) is not None:
        asking.note(APPROXIMATED, nice, "larger is later there, sooner here; the sign is turned")
        options.append(("priority", str(-number)))
    return options


def _read_nothing(reading: Reading, options: Mapping[str, Option]) -> None:
    """The macro of an index that was shifted says nothing by itself."""


def _write_restart(asking: Asking) -> Written:
    entry = asking.one("Restartable")
    if entry is not None and entry.value is False:
        asking.dropped(entry, "a job that is driven from its machine starts again")
    elif entry is not None:
        asking.note(APPROXIMATED, entry, "a job that is driven from its machine starts again anyway", "info")
    return []


# -- attempts
_TIMES: Final = re.compile(r"[1-9]\d?|100", re.ASCII)        # further attempts of one job
_RETRIES: Final = ("max_retries", "retry_until", "success_exit_code")


def _read_retries(reading: Reading, options: Mapping[str, Option]) -> None:
    """A job that is tried again after any code but 0, and after signals; what depends on other codes is HTCondor's own.
    Source: condor_submit, max_retries."""
    times = options.get("max_retries")
    if times is not None and len(options) == 1 and _TIMES.fullmatch(times.value or ""):
        reading.put(SCHEDULER.format(RETRY), f"exit={times.value} signal={times.value} total={times.value}", times)
        return
    for option in options.values():
        reading.keep(option)


def _write_retries(asking: Asking) -> Written:
    entry = asking.extension(RETRY)
    if entry is None:
        return []
    with suppress(FailurePolicyError):
        retry = Retry.of(entry.text)
        plain = {clause.name: clause.most for clause in retry.clauses if not clause.changes}
        if len(plain) == len(retry.clauses) and plain == dict.fromkeys(("exit", "signal"), retry.total):
            return [("max_retries", str(retry.total))]
    asking.dropped(entry, "max_retries knows no classes of failures but exit codes and signals together, as in "
                   "exit=3 signal=3 total=3", "Extension Retry")
    return []


#: Commands that only HTCondor has, in the order of writing. Others that it may know are kept too.
_OWN: Final = (
    "docker_image", "container_image", "docker_network_type", "transfer_executable", "should_transfer_files",
    "when_to_transfer_output", "transfer_output_remaps", "transfer_checkpoint_files", "checkpoint_exit_code",
    "preserve_relative_paths", "stream_input", "stream_output", "stream_error", "log", "log_xml", "append_files",
    "rank", "require_gpus", "gpus_minimum_capability", "gpus_maximum_capability", "gpus_minimum_memory",
    "gpus_minimum_runtime", "nice_user", "accounting_group_user",
    "on_exit_hold", "on_exit_remove", "on_exit_hold_reason", "periodic_hold", "periodic_release", "periodic_remove",
    "periodic_hold_reason", "hold_kill_sig", "kill_sig", "kill_sig_timeout", "remove_kill_sig",
    "job_max_vacate_time", "job_lease_duration", "leave_in_queue", "max_idle", "cron_minute",
    "cron_hour", "cron_day_of_month", "cron_month", "cron_day_of_week", "deferral_window", "deferral_prep_time",
    "coresize", "core_size", "image_size", "email_attributes", "encrypt_execute_directory", "run_as_owner",
    "load_profile", "want_graceful_removal", "x509userproxy", "use_x509userproxy", "use_oauth_services",
    "grid_resource", "shell", "description", "environment_shell", "dont_encrypt_input_files", "manifest",
)

ROWS: Final[tuple[AnyRow, ...]] = (
    Row("batch_name", "Name"),
    Special(("executable", "arguments"), read_command, write_command, of=("Executable", "Arguments")),
    Special(("environment", "getenv"), read_variables, write_variables),
    Special(("initialdir",), _read_directory, _write_directory, of=("InitialWorkingDirectory",)),
    Special(("input", "output", "error"), _read_files, _write_files, of=OF_FILES),
    Special(("transfer_input_files", "transfer_output_files", "transfer_output_remaps"), _read_staging,
            _write_staging, of=("Extension[name=StageIn,type=PSIJ]", "Extension[name=StageOut,type=PSIJ]")),
    Special(("universe", "machine_count", "request_cpus", "request_memory", "request_disk", "request_gpus"),
            read_layout, write_layout, part=True),
    Row("accounting_group", "Project"),
    Special(("allowed_execute_duration", "allowed_job_duration", *_OF_SITE, "deferral_time", "priority"), _read_seconds,
            _write_seconds, of=("Requested/Duration", _LIMIT, "EligibleTime", "Priority", SCHEDULER.format("Nice"))),
    Special(("requirements",), read_machines, write_machines,
            of=("OperatingSystem", "Architecture", "Node", "Feature", "Extension[name=requirements,type=htcondor]"),
            beside=("request_memory", "request_cpus")),
    Special(("concurrency_limits",), _read_licences, _write_licences, of=("Resource",)),
    Special(("request_resource",), _read_resources, _write_resources, of=("Resource",)),
    Special(("notification", "notify_user"), _read_mail, _write_mail, of=OF_MAIL),
    Special(("hold",), _read_hold, _write_hold, of=("Hold",)),
    Special(("restart",), _read_nothing, _write_restart, of=("Restartable",)),
    Special(_RETRIES, _read_retries, _write_retries, of=(SCHEDULER.format(RETRY),)),
    *(Row(name) for name in _OWN if name not in ("transfer_output_remaps",)),
    Special(("array_index", "max_materialize", "queue", "queue from"), _read_array, _write_array,
            of=(SCHEDULER.format("Array"), "Extension[name=queue,type=htcondor]")),
)
