"""Format ``flux-jobspec``: a job request of Flux, jobspec V1, as JSON; YAML is read too.

A jobspec is what ``flux submit`` and ``flux batch`` make of their options. So it is read into those options and written
from them: what they mean stands in the dialect ``flux`` alone. Sources: RFC 14 and 25 (jobspec), 26 (dependencies),
31 (constraints), 37 (files), and the jobspecs that ``flux submit --dry-run`` of flux-core
0.88 prints.
"""

from __future__ import annotations

import base64
import copy
import json
import re
import shlex
import signal
from collections.abc import Callable, Sequence
from typing import Any, Final

from sssjob.document.element import Container, Item
from sssjob.document.model import Document, File, Raw
from sssjob.errors import UsageError
from sssjob.findings import Policy
from sssjob.lrm.flux.errors import ProtocolError
from sssjob.lrm.flux.jobspec import Layout, Level, faults
from sssjob.lrm.usage import whole
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import Fit, Sample, by_keys
from sssjob.translators.scripts.accepting import accepted
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    DROPPED,
    INVENTED,
    REFUSED,
    SITE,
    Asking,
    Reading,
    asking_for,
    express,
    leftovers,
    understand,
)
from sssjob.translators.scripts.flux import DIALECT, duration, is_whole
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.side_by_side import copies_of
from sssjob.translators.scripts.writing import words_of
from sssjob.translators.specs._flux_constraints import as_object
from sssjob.translators.specs._flux_unfold import NEST, PLACE, STREAMS, Options, Unfold
from sssjob.translators.specs._yaml import YamlFault, read_yaml, values_in
from sssjob.xml._faults import members_once, no_constant, parse_fault
from sssjob.xml.json_places import JsonPlaces, Steps

__all__ = ["TRANSLATOR", "read", "write"]


_LEVELS: Final = ("schema", "rfc", "flux")


# -- reading
def read(data: bytes, context: ReadContext) -> Document:
    """The document of a jobspec. Option ``level``: who judges it, flux (the default), rfc or schema.

    Raises RejectedError when it is no jobspec, or when that judge refuses it.
    """
    level: Level = context.options.get("level") or "flux"       # type: ignore[assignment]
    if level not in _LEVELS:
        raise UsageError(f"level is one of {', '.join(_LEVELS)}, not {level!r}")
    findings = context.findings
    value = _parsed(data, context)
    places = findings.places = JsonPlaces(data, context.path, _known_as, None if _in_json(data) else values_in)
    lenient = context.policy in (Policy.WARN, Policy.IGNORE)
    for fault in faults(value, level):
        findings.add(REFUSED, fault.partition(":")[0], fault, severity="warning" if lenient else None,
                     path=_path(fault))
    findings.raise_if_rejected()
    for fault in faults(value, "rfc") if level == "flux" else ():
        findings.add(APPROXIMATED, fault.partition(":")[0], f"{fault}; RFC 25 does not allow that", severity="info",
                     path=_path(fault))
    reading = Reading(DIALECT, context)
    unfold = Unfold(reading, value)
    try:
        options, command, files = unfold.all()
    except (ProtocolError, KeyError, AttributeError, TypeError) as error:
        findings.add("SSS112", "jobspec", str(error))
        findings.raise_if_rejected()
        raise
    job = understand(reading, [[Option(name, text, 0, 0, "") for name, text in options]])
    unfold.said_apart(job)
    if command:
        job.set_as_is("Executable", command[0])
        if len(command) > 1:
            job.set_as_is("Arguments", shlex.join(command[1:]))
    job.items.sort(key=lambda item: isinstance(item, Container))
    findings.raise_if_rejected()
    root: Any = job
    if files:
        root = Raw("Request", {"action": "Submit"}, children=[Raw("Object", text="Job"), Raw("Data", children=[job])])
    places.root = root
    return Document(root, files, context.path, context.profile, findings, places=places)


def _path(fault: str) -> str:
    """The path of what a judge says something of, as ``resources[0].with: ...``."""
    return "/" + re.sub(r"\[(\d+)\]", r"/\1", fault.partition(":")[0]).replace(".", "/")


_SYSTEM: Final = ("attributes", "system")
#: Property -> where a jobspec says it; all others are resources.
_PLACES: Final[dict[str, Steps]] = {
    "Executable": ("tasks", "0", "command"), "Arguments": ("tasks", "0", "command"),
    "TaskCount": ("tasks", "0", "count"),
    "Duration": (*_SYSTEM, "duration"), "Queue": (*_SYSTEM, "queue"), "Project": (*_SYSTEM, "bank"),
    "Name": (*_SYSTEM, "job", "name"), "InitialWorkingDirectory": (*_SYSTEM, "cwd"),
    "Environment": (*_SYSTEM, "environment"), "Variable": (*_SYSTEM, "environment"), "Job": (),
    "Node": (*_SYSTEM, "constraints"), "Feature": (*_SYSTEM, "constraints"), "Extension": _SYSTEM,
    "Dependency": (*_SYSTEM, "dependencies"), "InputFile": (*_SYSTEM, "shell", "options", "input"),
    "OutputFile": (*_SYSTEM, "shell", "options", "output"), "ErrorFile": (*_SYSTEM, "shell", "options", "output")}


def _known_as(item: Item | None, path: Sequence[str]) -> Steps:
    """Where a jobspec says what a document has under a path from the job on."""
    return _PLACES.get(item.tag if item is not None else path[-1] if path else "Job", ("resources",))


def _in_json(data: bytes) -> bool:
    """Whether a jobspec is JSON, else YAML."""
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _parsed(data: bytes, context: ReadContext) -> Any:
    """JSON, else YAML."""
    findings, limits = context.findings, context.limits
    most = limits.script_bytes
    if len(data) > most:
        findings.add("SSS110", "script_bytes", f"more than {most} bytes (limit script_bytes)")
        findings.raise_if_rejected()
    try:
        text = data.decode("utf-8-sig")
        if _in_json(data):
            return json.loads(text, parse_constant=no_constant, object_pairs_hook=members_once)
        if len(data) > limits.yaml_bytes:
            findings.add("SSS110", "yaml_bytes", f"more than {limits.yaml_bytes} bytes of YAML (limit yaml_bytes)")
            findings.raise_if_rejected()
        return read_yaml(text, limits.depth)
    except RecursionError:
        findings.add("SSS110", "depth", f"more than {limits.depth} levels (limit depth)")
    except json.JSONDecodeError as error:
        findings.add("SSS111", "JSON", error.msg, line=error.lineno, column=error.colno)
    except YamlFault as error:
        findings.add("SSS111", "YAML", str(error), line=error.line, column=error.column)
    except (UnicodeDecodeError, ValueError) as error:
        findings.add("SSS111", "JSON", parse_fault(error))
    findings.raise_if_rejected()
    raise AssertionError("a finding above rejects")


# -- writing
def write(document: Document, context: WriteContext) -> str:
    """The jobspec of the one job in a document; what it cannot say is in ``context.findings``."""
    asked = asking_for(DIALECT, document, context)
    asking = asked[0]
    for tag in ("Priority", "Hold"):
        for e in asking.find(tag):
            asking.dropped(e, "an urgency is said when a job is submitted, not in its jobspec")
    command, script = _command(asking)
    options = [(name, value) for name, value, _ in accepted(asked, express(asked), of_own=True) if name != "--urgency"]
    asking.extension("Dialect")
    leftovers(asked)
    jobspec = Fold(asking, options, command, script).jobspec()
    return json.dumps(jobspec, ensure_ascii=False, indent=2) + "\n"


def _command(asking: Asking) -> tuple[list[str], File | None]:
    """The words of the command, and the script that is its first one."""
    entry, arguments = asking.one("Executable"), asking.one("Arguments")
    words = words_of(asking, arguments)
    text = "" if entry is None else entry.text
    file = asking.document.files.get(text[1:]) if text.startswith("#") else None
    if entry is None:
        asking.note(INVENTED, None, "Executable: a jobspec has a command; true is taken", subject="Executable")
        text = "true"
    return [text, *words], file


_YAML: Final = re.compile(r"(?ms)(?=.*^resources:\s*$)(?=.*^tasks:\s*$)(?=.*^version:)")


def _recognise(sample: Sample) -> Fit | None:
    fit = by_keys(sample, frozenset(("version", "resources", "tasks")))
    if fit is None and _YAML.match(sample.head):
        return Fit("YAML with version, resources and tasks")
    return fit


TRANSLATOR = Translator("flux-jobspec", "Flux jobspec V1 (JSON, YAML)", "spec", read, write, (".jobspec",), _recognise)


class Fold:
    """Options of flux-batch as a jobspec, as flux-core makes it."""

    def __init__(self, asking: Asking, options: Options, command: list[str], script: File | None) -> None:
        self.asking, self.options, self.command, self.script = asking, options, command, script
        self.system: dict[str, Any] = {"duration": 0}
        self.shell: dict[str, Any] = {}
        self.attributes: dict[str, Any] = {"system": self.system}
        self.counts: dict[str, int] = {}
        self.broker: list[str] = []
        self.requires: list[str] = []
        self.late: list[tuple[str, str]] = []

    def jobspec(self) -> dict[str, Any]:
        """The jobspec; what has no place in it is told."""
        for name, value in self.options:
            fold = _FOLDS.get(name)
            if fold is None:
                self.lost(name, "is said when a job is submitted, not in its jobspec")
            else:
                fold(self, name, value or "")
        if self.requires:
            self._constraints()
        layout, count = self._layout()
        command = self._nested() if self.script is not None else self.command
        self.system["shell"] = {"options": self.shell}
        for key, value in self.late:
            self._setattr(key, value)
        return {"resources": layout.vertices(), "tasks": [{"command": command, "slot": layout.label, "count": count}],
                "attributes": self.attributes, "version": 1}

    def lost(self, name: str, why: str, subject: str = "") -> None:
        """Tell that an option is not carried, and why."""
        self.asking.note(DROPPED, None, f"{name} {why}", subject=f"Extension {subject or name.lstrip('-')}")

    def _layout(self) -> tuple[Layout, dict[str, int]]:
        counts = self.counts
        nodes, tasks = counts.get("--nodes"), counts.get("--nslots")
        exclusive = "--exclusive" in counts
        if tasks is None:
            tasks = nodes or 1
            exclusive = exclusive or nodes is not None
            self.asking.note(INVENTED, None, f"TaskCount: a jobspec has slots, {tasks} here"
                             + (", each a whole node" if nodes else ""), "info", "TaskCount")
        if "--cores-per-slot" not in counts:
            self.asking.note(INVENTED, None, "Processors: a slot has one core unless more are asked for", "info",
                             "Processors")
        slots = tasks if nodes is None else -(-tasks // nodes)
        layout = Layout(slots, counts.get("--cores-per-slot", 1), counts.get("--gpus-per-slot", 0), nodes, exclusive)
        copies = layout.total if self.script is not None else copies_of(self.asking)
        for e in self.asking.said("TaskDistribution") if copies < layout.total else ():
            times = "once" if copies == 1 else f"{copies} times"
            self.asking.note(APPROXIMATED, e, f"the command is started {times}, on {layout.total} slots")
        return layout, {"per_slot": 1} if layout.total == copies else {"total": copies}

    def _nested(self) -> list[str]:
        """The command that starts an instance with the script in it, once on each node."""
        assert self.script is not None
        self.shell.setdefault("per-resource", {"type": "node"})
        content = self.script.content()
        try:
            file = {"mode": 0o100700, "encoding": "utf-8", "data": content.decode()}
        except UnicodeDecodeError:
            file = {"mode": 0o100700, "encoding": "base64", "data": base64.b64encode(content).decode()}
        self.system.setdefault("files", {})["script"] = file
        return [*NEST, *self.broker, PLACE, *self.command[1:]]

    def _constraints(self) -> None:
        try:
            self.system["constraints"] = as_object(" ".join(self.requires))
        except ValueError as error:
            self.lost("--requires", f"{' '.join(self.requires)}: {error}")

    # -- one option
    def count(self, name: str, value: str) -> None:
        """Options of the layout: a number, 1 for a flag. 0 slots beside nodes are not said (flux batch of 0.88)."""
        if value == "0" and name == "--nslots":
            return
        number = whole(value or "1")
        if number is None:
            self.lost(name, f"{value[:80]!r} is no number")
        else:
            self.counts[name] = number

    def limit(self, name: str, value: str) -> None:
        """--time-limit: seconds, of a duration whose unit is minutes unless said."""
        try:
            seconds = duration(value, 60)
        except ValueError as error:
            self.lost(name, str(error))
            return
        endless = seconds.is_infinite()         # 0 is no limit
        self.system["duration"] = 0 if endless else int(seconds) if is_whole(seconds) else float(seconds)

    def text(self, name: str, value: str) -> None:
        """An option whose text is an attribute of the system."""
        self.system[name.lstrip("-")] = value

    def job_name(self, name: str, value: str) -> None:
        """--job-name."""
        self.system.setdefault("job", {})["name"] = value

    def require(self, name: str, value: str) -> None:
        """--requires: all of them together."""
        self.requires.append(value)

    def dependency(self, name: str, value: str) -> None:
        """--dependency: ``SCHEME:VALUE[?KEY=VALUE&...]``."""
        scheme, _, rest = value.partition(":")
        rest, _, more = rest.partition("?")
        dependency = {"scheme": scheme, "value": rest}
        dependency |= {k: v for k, _, v in (pair.partition("=") for pair in more.split("&") if pair)}
        self.system.setdefault("dependencies", []).append(dependency)

    def warning(self, name: str, value: str) -> None:
        """--signal: ``SIGNAL[@SECONDS]``, 60 unless said."""
        text, _, seconds = value.partition("@")
        number = whole(text)
        number = getattr(signal, f"SIG{text.removeprefix('SIG')}", None) if number is None else number
        if number is None:
            self.lost(name, f"{text[:80]} is no signal")
            return
        try:
            self.shell["signal"] = {"signum": int(number), "timeleft": int(duration(seconds or "60"))}
        except (ValueError, OverflowError):
            self.lost(name, f"{seconds} is no number of seconds")

    def stream(self, name: str, value: str) -> None:
        """--input, --output, --error: a file. ``none`` and ``kvs`` mean the default and add nothing."""
        if value in ("none", "kvs"):
            return
        side, key, _ = next(s for s in STREAMS if s[2] == name)
        self.shell.setdefault(side, {}).setdefault(key, {}).update({"type": "file", "path": value})

    def label(self, name: str, value: str) -> None:
        """--label-io."""
        _put(self.shell, "output.stdout.label", True)

    def unbuffered(self, name: str, value: str) -> None:
        """--unbuffered: the options of the shell that flux batch of 0.88 writes for it."""
        for path, setting in (("output.stdout.buffer.type", "none"), ("output.stderr.buffer.type", "none"),
                              ("output.batch-timeout", 0.05), ("input.batch-timeout", 0)):
            _put(self.shell, path, setting)

    def environment(self, name: str, value: str) -> None:
        """--env: what can be said without the submitter's variables; the rest is told."""
        variables: dict[str, str] = self.system.setdefault("environment", {})
        variable, sign, text = value.partition("=")
        if value == "-*":
            variables.clear()
        elif sign and re.fullmatch(r"\w+", variable, re.ASCII) and "$" not in text.replace("$$", ""):
            variables[variable] = text.replace("$$", "$")
        elif value != "*":
            self.lost(name, f"{value} depends on the submitter's environment",
                      "ExportNames" if value.isidentifier() else "")
        else:
            self.asking.note(SITE, None, "Environment: a jobspec has variables of its own; those of the submitter have "
                             "to be added", subject="Environment")

    def resource_limit(self, name: str, value: str) -> None:
        """--rlimit: a number; a limit of the submitter's is told."""
        which, sign, number = value.partition("=")
        if sign and re.fullmatch(r"-?\d{1,19}", number, re.ASCII):
            self.shell.setdefault("rlimit", {})[which] = int(number)
        elif value != "-*":
            self.lost(name, f"{value} depends on the submitter's limits")

    def option(self, name: str, value: str) -> None:
        """--setopt: an option of the shell; files are not read."""
        key, sign, text = value.partition("=")
        if key.startswith("^"):
            self.lost(name, f"{value} names a file, which is not read")
        elif not _put(self.shell, key, _value(text) if sign else 1):
            self.lost(name, f"{value} contradicts another one")

    def attribute(self, name: str, value: str) -> None:
        """--setattr: put in when everything else is there."""
        key, sign, text = value.partition("=")
        if key.startswith("^"):
            self.lost(name, f"{value} names a file, which is not read")
        else:
            self.late.append((key, text if sign else "1"))

    def _setattr(self, key: str, text: str) -> None:
        full = key if key.startswith((".", "user.", "system.")) else f"system.{key}"
        before = copy.deepcopy(self.attributes)
        if not _put(self.attributes, full.lstrip("."), _value(text)) or _faulty(self.attributes):
            self.attributes = before
            self.system = before["system"]
            self.lost("--setattr", f"{key}={text[:80]} is no value that it may have")

    def broker_option(self, name: str, value: str) -> None:
        """--broker-opts: of the nested instance that runs a script."""
        self.broker.append(value)
        if self.script is None:
            self.lost(name, "needs a script")


def _faulty(attributes: dict[str, Any]) -> bool:
    """Whether a judge would refuse the attributes."""
    whole = {"version": 1, "resources": Layout().vertices(), "attributes": attributes,
             "tasks": [{"command": ["true"], "slot": "task", "count": {"total": 1}}]}
    return bool(faults(whole, "rfc") or faults(whole, "flux"))


def _value(text: str) -> Any:
    """As flux reads the value of --setattr and --setopt: JSON, else text."""
    try:
        return json.loads(text, parse_constant=no_constant)
    except (ValueError, RecursionError):
        return text


def _put(into: dict[str, Any], path: str, value: Any) -> bool:
    """A value at a path with dots; False where a value that is no object stands in the way."""
    *steps, last = path.split(".")
    for step in steps:
        into = into.setdefault(step, {})
        if not isinstance(into, dict):
            return False
    if isinstance(into.get(last), dict) and isinstance(value, dict):
        into[last].update(value)
    else:
        into[last] = value
    return True


_Step = Callable[[Fold, str, str], None]
_FOLDS: Final[dict[str, _Step]] = {
    **dict.fromkeys(("--nodes", "--nslots", "--cores-per-slot", "--gpus-per-slot", "--exclusive"), Fold.count),
    **dict.fromkeys(("--queue", "--bank", "--cwd"), Fold.text),
    **dict.fromkeys(("--input", "--output", "--error"), Fold.stream),
    "--time-limit": Fold.limit, "--job-name": Fold.job_name, "--requires": Fold.require,
    "--dependency": Fold.dependency, "--signal": Fold.warning, "--label-io": Fold.label, "--env": Fold.environment,
    "--rlimit": Fold.resource_limit, "--setopt": Fold.option, "--setattr": Fold.attribute,
    "--broker-opts": Fold.broker_option, "--unbuffered": Fold.unbuffered,
}
