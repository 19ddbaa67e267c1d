"""Format ``flux-jobspec``: a job request of Flux, jobspec V1, as JSON; YAML is read too.

A jobspec is what ``flux submit`` and ``flux batch`` make of their options. So it is read into those options and written
from them: what they mean stands in the dialect ``flux`` alone. Sources: RFC 14 and 25 (jobspec), 26 (dependencies),
31 (constraints), 37 (files), and the jobspecs that flux-core 0.88 prints.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from typing import Any, Final

from sssjob.document.element import Container
from sssjob.document.model import Document, File, Raw
from sssjob.errors import UsageError
from sssjob.findings import Policy
from sssjob.lrm.flux.errors import ProtocolError
from sssjob.lrm.flux.jobspec import Level, faults
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import Fit, Sample, by_keys
from sssjob.translators.scripts.accepting import accepted
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    INVENTED,
    REFUSED,
    Asking,
    Reading,
    asking_for,
    express,
    leftovers,
    understand,
)
from sssjob.translators.scripts.flux import DIALECT
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.writing import words_of
from sssjob.translators.specs._flux_fold import Fold
from sssjob.translators.specs._flux_unfold import Unfold

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
    lenient = context.policy in (Policy.WARN, Policy.IGNORE)
    for fault in faults(value, level):
        findings.add(REFUSED, fault.partition(":")[0], fault, severity="warning" if lenient else None)
    findings.raise_if_rejected()
    for fault in faults(value, "rfc") if level == "flux" else ():
        findings.add(APPROXIMATED, fault.partition(":")[0], f"{fault}; RFC 25 does not allow that", severity="info")
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
    return Document(root, files, context.path, context.profile, findings)


def _parsed(data: bytes, context: ReadContext) -> Any:
    """JSON, else YAML."""
    findings, limits = context.findings, context.limits
    most = limits.script_bytes
    if len(data) > most:
        findings.add("SSS110", "script_bytes", f"more than {most} bytes (limit script_bytes)")
        findings.raise_if_rejected()
    try:
        text = data.decode("utf-8-sig")
        if text.lstrip()[:1] in ("{", "["):
            return json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
        if len(data) > limits.yaml_bytes:
            findings.add("SSS110", "yaml_bytes", f"more than {limits.yaml_bytes} bytes of YAML (limit yaml_bytes)")
            findings.raise_if_rejected()
        return _yaml(text, limits.depth)
    except RecursionError:
        findings.add("SSS110", "depth", f"more than {limits.depth} levels (limit depth)")
    except json.JSONDecodeError as error:
        findings.add("SSS111", "JSON", error.msg, line=error.lineno, column=error.colno)
    except (UnicodeDecodeError, ValueError) as error:
        findings.add("SSS111", "JSON", str(error))
    findings.raise_if_rejected()
    raise AssertionError("a finding above rejects")


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return members


def _yaml(text: str, depth: int) -> Any:
    """A YAML document without aliases, which could grow without end. Raises ValueError."""
    try:
        import yaml
    except ImportError:
        raise UsageError("reading YAML needs PyYAML: pip install 'sssjob[yaml]'") from None

    class Loader(yaml.SafeLoader):
        """The types of JSON: days stay text."""

    Loader.yaml_implicit_resolvers = {
        sign: [(tag, form) for tag, form in resolvers if not tag.endswith((":timestamp", ":merge", ":value"))]
        for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
    level = 0
    try:
        for event in yaml.parse(text, Loader):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"an alias, *{event.anchor}, is not taken")
            level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if level > depth:
                raise ValueError(f"more than {depth} levels (limit depth)")
        value = yaml.load(text, Loader)
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise ValueError(f"no YAML: {getattr(error, 'problem', None) or 'malformed'}{where}") from None
    if not _is_json(value):
        raise ValueError("a value is of no type of JSON")
    return value


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_json(v) for k, v in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


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
