"""Format ``xrsl``: the Extended Resource Specification Language of ARC.

It is another text for what ADL says: read and written by way of an ActivityDescription, as ARC itself maps the
attributes of the two to each other. Sizes are mebibytes, times minutes where no unit is named. Sources: reference
manual of xRSL; the mapping of attributes in the ARC SDK.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from lxml import etree

from sssjob.document.model import Document
from sssjob.findings import Policy
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import Fit, Sample, by_beginning
from sssjob.translators.scripts.base import APPROXIMATED, Reading, asking_for, leftovers
from sssjob.translators.scripts.rows import DirectivePlaces
from sssjob.translators.scripts.writing import with_scripts
from sssjob.translators.specs._adl_names import ADL, ARC, JOBS, ORDER, PARTS
from sssjob.translators.specs._elements import description, in_order
from sssjob.translators.specs._xrsl_text import Boolean, Relation, XrslError, parsed
from sssjob.translators.specs._xrsl_to import Relations
from sssjob.translators.specs.adl import ActivityReader

__all__ = ["TRANSLATOR", "files", "read", "write"]

FORMAT: Final = description("xrsl", "xRSL", **JOBS)
_BEGINNING: Final = re.compile(r"(?:\(\*.*?\*\)\s*+)*+[&+|]\s*+(?:\(\*.*?\*\)\s*+)*+\(\s*+[&|(\"'A-Za-z]", re.DOTALL)


def read(data: bytes, context: ReadContext) -> Document:
    """The document of a specification of one job. Raises RejectedError when it is none."""
    findings, reading = context.findings, Reading(FORMAT, context)
    if len(data) > context.limits.document_bytes:
        findings.add("SSS110", "document_bytes", f"more than {context.limits.document_bytes} bytes")
        findings.raise_if_rejected()
    try:
        specification = parsed(data.decode("utf-8-sig"))
        job = ActivityReader(reading).activity(Activity(reading).of(specification))
    except (XrslError, UnicodeDecodeError) as error:
        findings.add("SSS505", "xRSL", str(error), severity="error", line=getattr(error, "line", 0))
        findings.raise_if_rejected()
        raise
    findings.raise_if_rejected()
    return Document(job, {}, context.path, context.profile, findings, places=DirectivePlaces(reading.origins))


def _written(document: Document, context: WriteContext) -> tuple[str, dict[str, str]]:
    asked = asking_for(FORMAT, document, context)
    relations = Relations(asked[0])
    text = relations.text()
    asked[0].extension("Dialect")
    leftovers(asked)
    return text, relations.scripts


def _recognise(sample: Sample) -> Fit | None:
    return by_beginning(sample, _BEGINNING, "&, | or + and a relation in brackets")


write, files = with_scripts(_written, ".xrsl")

TRANSLATOR = Translator("xrsl", "xRSL of ARC", "spec", read, write, (".xrsl",), _recognise, files,
                        one_job=True)

_UNITS: Final = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_SPAN: Final = re.compile(r"(?:\s*,?\s*\d{1,12}\s*(?:[wdhms][a-z]*)?)++\s*", re.ASCII | re.IGNORECASE)
_STEP: Final = re.compile(r"(\d+)\s*([a-z]?)", re.ASCII | re.IGNORECASE)
_FLAGS: Final = {"yes": "true", "true": "true", "no": "false", "false": "false"}
#: Attributes that add to what was said before.
_AGAIN: Final = ("runtimeenvironment", "notify", "jobreport", "credentialserver", "environment", "inputfiles",
                 "outputfiles")
_LETTERS: Final = {"b": "PREPROCESSING", "q": "PROCESSING", "f": "POSTPROCESSING", "e": "TERMINAL"}


def seconds_of(text: str) -> int | None:
    """``90``, ``60 minutes``, ``1 day, 12 hours``, ``PT1H``: a number without a unit is of minutes, or of the unit
    that follows the one before it."""
    if text.upper().startswith("P"):
        match = re.fullmatch(r"P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?",
                             text.upper(), re.ASCII)
        return None if match is None or not any(match.groups()) else sum(
            int(number or 0) * seconds for number, seconds in zip(match.groups(), _UNITS.values(), strict=True))
    if _SPAN.fullmatch(text) is None:
        return None
    total, unit, order = 0, "m", list(_UNITS)
    for number, letter in _STEP.findall(text):
        unit = letter.lower() or unit
        total += int(number) * _UNITS[unit]
        unit = order[min(order.index(unit) + 1, len(order) - 1)]
    return total


class Activity:
    """The ActivityDescription of a specification; its elements have the lines of the relations."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.root = etree.Element(f"{{{ADL}}}ActivityDescription")
        self.parts = {name: etree.SubElement(self.root, f"{{{ADL}}}{name}") for name in PARTS}
        self.seen: dict[str, Relation] = {}
        self.line = 0

    def of(self, specification: Boolean) -> Any:
        """The root element."""
        while specification.sign != "&" and len(specification.parts) == 1 and isinstance(
                specification.parts[0], Boolean):
            specification = specification.parts[0]
        if specification.sign == "+":
            raise XrslError(f"{len(specification.parts)} jobs are described, a document holds one", specification.line)
        self.take(specification)
        self.derived()
        for name, part in self.parts.items():
            in_order(part, ORDER[name])
        return self.root

    def take(self, part: Boolean | Relation) -> None:
        """Relations that hold together; of alternatives the first one."""
        if isinstance(part, Relation):
            self.relation(part)
            return
        if part.sign == "+":
            raise XrslError("jobs of their own stand inside another one", part.line)
        if part.sign == "|" and len(part.parts) > 1:
            self.reading.findings.add(APPROXIMATED, "|", f"|: of {len(part.parts)} alternatives the first is taken",
                                      line=part.line, policy=self.reading.context.policy or Policy.WARN)
        for inner in part.parts[:1] if part.sign == "|" else part.parts:
            self.take(inner)

    def relation(self, relation: Relation) -> None:
        """One attribute."""
        name, self.line = relation.name, relation.line
        handler = _HANDLERS.get(name)
        if name == "rslsubstitution":
            return
        if handler is None or relation.operator != "=":
            self.unknown(relation, "has no place in a job" if handler is None else f"with {relation.operator} has no "
                         "place in a job")
        elif name in self.seen and name not in _AGAIN:
            self.refuse(relation, "is said already")
        else:
            self.seen[name] = relation
            handler(self, relation)

    def unknown(self, relation: Relation, why: str) -> None:
        """What is not carried; the policy decides."""
        self.reading.findings.add("SSS301", relation.name, f"{relation.name}: {why}", line=relation.line,
                                  policy=self.reading.context.policy or Policy.WARN)

    def refuse(self, relation: Relation, why: str) -> None:
        """What ARC would refuse."""
        self.reading.refuse(f"{relation.name}: {why}", relation.line, 0, relation.name)

    def add(self, into: Any, name: str, text: str = "", space: str = ADL) -> Any:
        """An element with text."""
        node: Any = etree.SubElement(into, f"{{{space}}}{name}")
        node.sourceline = self.line
        try:
            node.text = text
        except ValueError:
            raise XrslError("a character in it cannot stand in a description", self.line) from None
        return node

    def word(self, relation: Relation) -> str | None:
        """The one string of an attribute; None, and refused, where it is none."""
        if len(relation.words) == 1 and not relation.tuples:
            return relation.words[0]
        self.refuse(relation, "one value is wanted")
        return None

    def number(self, relation: Relation) -> int | None:
        """The whole number of an attribute; None, and refused, where it is none."""
        text = self.word(relation)
        if text is not None and re.fullmatch(r"\d{1,15}", text.strip(), re.ASCII):
            return int(text)
        if text is not None:
            self.refuse(relation, f"{text[:80]!r} is no whole number")
        return None

    def of_text(self, relation: Relation, part: str, name: str, space: str = ADL) -> None:
        """An attribute that is the text of an element."""
        text = self.word(relation)
        if text:
            self.add(self.parts[part], name, text, space)

    def of_size(self, relation: Relation, name: str) -> None:
        """Mebibytes, which are bytes in ADL."""
        number = self.number(relation)
        if number is not None:
            self.add(self.parts["Resources"], name, str(number << 20))

    def of_time(self, relation: Relation, part: str, name: str, form: str = "{}") -> None:
        """A span of time, in seconds."""
        text = self.word(relation)
        seconds = None if text is None else seconds_of(text.strip())
        if seconds is not None:
            self.add(self.parts[part], name, form.format(seconds))
        elif text is not None:
            self.refuse(relation, f"{text[:80]!r} is no span of time")

    def executable(self) -> Any:
        """The element of the executable."""
        part = self.parts["Application"]
        node = part.find(f"{{{ADL}}}Executable")
        return self.add(part, "Executable") if node is None else node

    def path(self, relation: Relation) -> None:
        """executable."""
        text = self.word(relation)
        if text:
            node = self.add(self.executable(), "Path", text)
            node.getparent().insert(0, node)

    def arguments(self, relation: Relation) -> None:
        """arguments."""
        if relation.tuples:
            self.refuse(relation, "an argument is a string")
        for text in relation.words:
            self.add(self.executable(), "Argument", text)

    def environment(self, relation: Relation) -> None:
        """environment: pairs of a name and a value."""
        if relation.words or any(len(pair) != 2 for pair in relation.tuples):
            self.refuse(relation, '("NAME" "VALUE") is wanted')
            return
        for name, value in relation.tuples:
            node = self.add(self.parts["Application"], "Environment")
            self.add(node, "Name", name)
            self.add(node, "Value", value)

    def runtime(self, relation: Relation) -> None:
        """runtimeenvironment: a name, and options."""
        if not relation.words or not relation.words[0] or relation.tuples:
            self.refuse(relation, "a name is wanted")
            return
        node = self.add(self.parts["Resources"], "RuntimeEnvironment")
        for name, text in zip(["Name", *["Option"] * len(relation.words)], relation.words, strict=False):
            self.add(node, name, text)

    def system(self, relation: Relation) -> None:
        """opsys."""
        text = self.word(relation)
        if text:
            self.add(self.add(self.parts["Resources"], "OperatingSystem"), "Name", text)

    def logging(self, relation: Relation) -> None:
        """jobreport: a service that usage is reported to."""
        text = self.word(relation)
        if text:
            node = self.add(self.parts["Application"], "RemoteLogging")
            self.add(node, "ServiceType", "SGAS")
            self.add(node, "URL", text)

    def access(self, relation: Relation) -> None:
        """nodeaccess: inbound, outbound, or both."""
        words = sorted(set(relation.words))
        access = {("inbound",): "inbound", ("outbound",): "outbound", ("inbound", "outbound"): "inoutbound"}
        if tuple(words) in access and not relation.tuples:
            self.add(self.parts["Resources"], "NodeAccess", access[tuple(words)])
        else:
            self.refuse(relation, "inbound, outbound or both are wanted")

    def dry(self, relation: Relation) -> None:
        """dryrun."""
        if (self.word(relation) or "").lower() == "yes":
            self.add(self.parts["Application"], "DryRun", "true", ARC)

    def notify(self, relation: Relation) -> None:
        """notify: letters of states and addresses, in each string."""
        for text in relation.words:
            words = text.split()
            letters = words.pop(0) if words and "@" not in words[0] else "be"
            if not words or any("@" not in word for word in words) or set(letters) - set("bqfecd"):
                self.refuse(relation, f"{text[:80]!r} is not letters of b, q, f, e, c, d and addresses of mail")
                continue
            if set(letters) & set("cd"):
                self.unknown(relation, "mail when a job is cancelled or deleted has no place in a job")
            for address in words if set(letters) & set(_LETTERS) else ():
                node = self.add(self.parts["Application"], "Notification")
                self.add(node, "Protocol", "email")
                self.add(node, "Recipient", address)
                for letter, state in _LETTERS.items():
                    if letter in letters:
                        self.add(node, "OnState", state)

    def inputs(self, relation: Relation) -> None:
        """inputfiles: a name, where it comes from (empty: the client), and options."""
        self.staged(relation, "InputFile", "Source")

    def outputs(self, relation: Relation) -> None:
        """outputfiles: a name, where it goes to (empty: it stays to be fetched), and options."""
        self.staged(relation, "OutputFile", "Target")

    def staged(self, relation: Relation, name: str, end: str) -> None:
        """Files that are copied."""
        if relation.words:
            self.refuse(relation, '("NAME" "URL") is wanted')
        for file in relation.tuples:
            if len(file) < 2 or not file[0] or any("=" not in option for option in file[2:]):
                self.refuse(relation, '("NAME" "URL" "OPTION=VALUE" ...) is wanted')
                continue
            node = self.add(self.parts["DataStaging"], name)
            self.add(node, "Name", file[0])
            if not file[1]:
                continue
            inner = self.add(node, end)
            self.add(inner, "URI", file[1])
            for option in file[2:]:
                key, _, value = option.partition("=")
                if key == "delegationid":
                    self.add(inner, "DelegationID", value)
                    continue
                pair = self.add(inner, "Option")
                self.add(pair, "Name", key)
                self.add(pair, "Value", value)

    def later(self, relation: Relation) -> None:
        """What several attributes say together."""

    def derived(self) -> None:
        """Slots, joined streams, and which files are executable."""
        self.slots()
        join, part = self.seen.get("join"), self.parts["Application"]
        if join is not None and (self.word(join) or "").lower() in ("yes", "true"):
            self.line = join.line
            output, error = part.find(f"{{{ADL}}}Output"), part.find(f"{{{ADL}}}Error")
            if output is None:
                self.refuse(join, "stdout is wanted beside it")
            elif error is None:
                self.add(part, "Error", output.text or "")
            elif error.text != output.text:
                self.refuse(join, "stderr names another file")
        relation = self.seen.get("executables")
        if relation is not None:
            self.line = relation.line
            files = {file.findtext(f"{{{ADL}}}Name"): file for file in self.parts["DataStaging"]
                     if etree.QName(file).localname == "InputFile"}
            for name in relation.words:
                if name in files:
                    self.add(files[name], "IsExecutable", "true")
                else:
                    self.refuse(relation, f"{name[:80]} is none of the inputfiles")

    def slots(self) -> None:
        """count, countpernode and exclusiveexecution."""
        relations = [self.seen.get(name) for name in ("count", "countpernode", "exclusiveexecution")]
        count, each, exclusive = relations
        first = next((relation for relation in relations if relation is not None), None)
        if first is None:
            return
        if count is None and each is not None:
            self.refuse(each, "count is wanted beside it")
            return
        number = 1 if count is None else self.number(count)
        a_host = None if each is None else self.number(each)
        for relation, value in ((count, number), (each, a_host)):
            if relation is not None and value == 0:
                self.refuse(relation, "one slot at least is wanted")
        if not number:
            return
        self.line = first.line
        node = self.add(self.parts["Resources"], "SlotRequirement")
        self.add(node, "NumberOfSlots", str(number))
        if a_host:
            self.add(node, "SlotsPerHost", str(a_host))
        word = None if exclusive is None else self.word(exclusive)
        if exclusive is None or word is None:
            return
        if word.lower() in _FLAGS:
            self.add(node, "ExclusiveExecution", _FLAGS[word.lower()])
        else:
            self.refuse(exclusive, "yes or no is wanted")


def _text(part: str, name: str, space: str = ADL) -> Callable[[Activity, Relation], None]:
    return lambda activity, relation: activity.of_text(relation, part, name, space)


_HANDLERS: Final[dict[str, Callable[[Activity, Relation], None]]] = {
    "jobname": _text("ActivityIdentification", "Name"), "executable": Activity.path, "arguments": Activity.arguments,
    "stdin": _text("Application", "Input"), "stdout": _text("Application", "Output"),
    "stderr": _text("Application", "Error"), "environment": Activity.environment, "notify": Activity.notify,
    "gmlog": _text("Application", "LoggingDirectory", ARC), "jobreport": Activity.logging,
    "credentialserver": _text("Application", "CredentialService", ARC),
    "acl": _text("Application", "AccessControl", ARC), "rerun": _text("Application", "Rerun", ARC),
    "priority": _text("Application", "Priority", ARC), "dryrun": Activity.dry,
    "starttime": _text("Application", "StartTime", ARC),
    "lifetime": lambda activity, relation: activity.of_time(relation, "Application", "WipeTime", "PT{}S"),
    "opsys": Activity.system, "architecture": _text("Resources", "Platform"), "nodeaccess": Activity.access,
    "runtimeenvironment": Activity.runtime, "queue": _text("Resources", "QueueName"),
    "memory": lambda activity, relation: activity.of_size(relation, "IndividualPhysicalMemory"),
    "disk": lambda activity, relation: activity.of_size(relation, "DiskSpaceRequirement"),
    "cputime": lambda activity, relation: activity.of_time(relation, "Resources", "TotalCPUTime"),
    "walltime": lambda activity, relation: activity.of_time(relation, "Resources", "WallTime"),
    "delegationid": _text("DataStaging", "DelegationID", ARC), "inputfiles": Activity.inputs,
    "outputfiles": Activity.outputs, "executables": Activity.later, "join": Activity.later, "count": Activity.later,
    "countpernode": Activity.later, "exclusiveexecution": Activity.later}
