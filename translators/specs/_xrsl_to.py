"""An ActivityDescription as xRSL."""

from __future__ import annotations

import re
from typing import Any, Final

from sssjob.translators.scripts.base import APPROXIMATED, DROPPED, Asking
from sssjob.translators.specs._adl_to import Writer
from sssjob.translators.specs._elements import local
from sssjob.translators.specs._xrsl_text import quoted

#: Element whose text is an attribute -> its name.
_TEXTS: Final = {
    "Name": "jobname", "Input": "stdin", "Output": "stdout", "Error": "stderr", "LoggingDirectory": "gmlog",
    "CredentialService": "credentialserver", "AccessControl": "acl", "Rerun": "rerun", "Priority": "priority",
    "StartTime": "starttime", "Platform": "architecture", "QueueName": "queue", "DelegationID": "delegationid"}
_SIZES: Final = {"IndividualPhysicalMemory": ("memory", "Memory"), "DiskSpaceRequirement": ("disk", "Disk")}
_TIMES: Final = {"TotalCPUTime": "cputime", "WallTime": "walltime"}
_SLOTS: Final = {"NumberOfSlots": "count", "SlotsPerHost": "countpernode", "ExclusiveExecution": "exclusiveexecution"}
_FILES: Final = {"InputFile": "inputfiles", "OutputFile": "outputfiles"}
_STATES: Final = {"PREPROCESSING": "b", "PROCESSING": "q", "POSTPROCESSING": "f", "TERMINAL": "e"}
_ACCESS: Final = {"inbound": ["inbound"], "outbound": ["outbound"], "inoutbound": ["inbound", "outbound"]}
#: Elements without an attribute -> what of the job they say, where it is no Extension of their name.
_SUBJECTS: Final = {"Description": "Extension Comment", "IndividualVirtualMemory": "Swap"}


class Relations:
    """One job on its way into relations. scripts: by name, beside them."""

    def __init__(self, asking: Asking) -> None:
        self.asking, self.writer = asking, Writer(asking)
        self.lines: list[str] = []
        self.executables: list[str] = []
        self.tuples: dict[str, list[list[str]]] = {"environment": [], "inputfiles": [], "outputfiles": []}

    @property
    def scripts(self) -> dict[str, str]:
        """The scripts that belong beside."""
        return self.writer.scripts

    def text(self) -> str:
        """The specification."""
        for part in self.writer.activity():
            for node in part:
                self.element(node)
        for attribute, tuples in self.tuples.items():
            if tuples:
                inner = " ".join(f"({' '.join(map(quoted, words))})" for words in tuples)
                self.lines.append(f"({attribute} = {inner})")
        self.say("executables", *self.executables)
        return "\n".join(["&", *self.lines]) + "\n"

    def say(self, attribute: str, *words: str) -> None:
        """One relation; of nothing none."""
        if words:
            self.lines.append(f"({attribute} = {' '.join(map(quoted, words))})")

    def lost(self, name: str) -> None:
        """The finding for an element without an attribute."""
        subject = _SUBJECTS.get(name, f"Extension {name}")
        entry = next((e for tag in (subject.split()[0],) for e in self.asking.said(tag)
                      if tag != "Extension" or e.attributes.get("name") == subject.split()[1]), None)
        self.asking.note(DROPPED, entry, f"{subject}: dropped, xRSL has no place for it", subject=subject)

    def element(self, node: Any) -> None:
        """The relation of an element."""
        name, text = local(node), node.text or ""
        if name in _TEXTS and not len(node) and not node.attrib:
            self.say(_TEXTS[name], text)
        elif name in _SIZES:
            self.size(int(text), *_SIZES[name])
        elif name in _TIMES:
            self.say(_TIMES[name], f"{text} seconds")
        elif name == "SlotRequirement":
            for inner in node:
                word = {"true": "yes", "false": "no"}.get(inner.text, inner.text)
                self.say(_SLOTS[local(inner)], word)
        elif name in ("Executable", "Environment", "OperatingSystem"):
            self.nested(node)
        elif (words := _words(node)) is not None:
            self.say(*words)
        elif name in _FILES and (file := _file(node)) is not None:
            self.tuples[_FILES[name]].append(file)
            if any(local(inner) == "IsExecutable" and inner.text in ("true", "1") for inner in node):
                self.executables.append(file[0])
        else:
            self.lost(name)

    def size(self, size: int, attribute: str, tag: str) -> None:
        """Bytes in whole mebibytes."""
        if size % (1 << 20):
            entry = next(iter(self.asking.said(tag)), None)
            self.asking.note(APPROXIMATED, entry, f"{tag}: rounded up to whole MiB", subject=tag)
        self.say(attribute, str(-(-size >> 20)))

    def nested(self, node: Any) -> None:
        """Executable, Environment and OperatingSystem."""
        texts = [(local(inner), inner.text or "") for inner in node]
        if local(node) == "Environment":
            self.tuples["environment"].append([text for _, text in texts])
            return
        names = {"Path": "executable", "Name": "opsys"}
        for name, text in texts:
            if name in names:
                self.say(names[name], text)
            elif name != "Argument":
                self.lost(f"OperatingSystem{name}" if local(node) == "OperatingSystem" else name)
        self.say("arguments", *(text for name, text in texts if name == "Argument"))


def _words(node: Any) -> list[str] | None:
    """The attribute and the strings of an element that has a form of its own; None where xRSL cannot say it."""
    name, text = local(node), node.text or ""
    inner = [(local(child), child.text or "") for child in node]
    attributes = any(child.attrib or len(child) for child in node) or bool(node.attrib)
    words: list[str] | None = None
    if name == "RuntimeEnvironment" and inner[:1] and inner[0][0] == "Name" and {n for n, _ in inner[1:]} <= {"Option"}:
        words = ["runtimeenvironment", *(text for _, text in inner)]
    elif name == "NodeAccess" and text in _ACCESS:
        words = ["nodeaccess", *_ACCESS[text]]
    elif name == "DryRun" and text in ("true", "1"):
        words = ["dryrun", "yes"]
    elif name == "WipeTime" and (match := re.fullmatch(r"PT(\d{1,12})S", text, re.ASCII)):
        words = ["lifetime", f"{match[1]} seconds"]
    elif name == "RemoteLogging" and [n for n, _ in inner] == ["ServiceType", "URL"] and inner[0][1] == "SGAS":
        words = ["jobreport", inner[1][1]]
    elif name == "Notification" and inner[:1] == [("Protocol", "email")]:
        addresses = [text for name, text in inner if name == "Recipient"]
        states = [text for name, text in inner if name == "OnState"]
        if addresses and states and all(s in _STATES for s in states) and all("@" in a for a in addresses):
            words = ["notify", " ".join(["".join(_STATES[s] for s in states), *addresses])]
    return None if attributes else words


def _file(node: Any) -> list[str] | None:
    """Name, URL and options of a file; None where xRSL cannot say it."""
    file = ["", ""]
    for child in node:
        name = local(child)
        if name == "Name":
            file[0] = child.text or ""
        elif name in ("Source", "Target") and not file[1] and not child.attrib:
            for inner in child:
                text, pair = inner.text or "", [each.text or "" for each in inner]
                if local(inner) == "URI":
                    file[1] = text
                elif local(inner) == "DelegationID":
                    file.append(f"delegationid={text}")
                elif local(inner) == "Option" and len(pair) == 2:
                    file.append("=".join(pair))
                else:
                    return None
        elif name != "IsExecutable":
            return None
    return file if file[0] and not node.attrib else None
