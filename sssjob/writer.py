"""From objects to XML: canonical spelling, straight quotes, two spaces of indentation, nothing invented.

Profiles other than ``3.1`` write the names of other systems; what such a system refuses is a finding (SSS501), decided
by awarenessPolicy like everything else. Writing is string building: the text of a property is escaped, never trusted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sssjob.element import Container, Property, Raw
from sssjob.findings import Findings, Policy
from sssjob.model import Document, File, Job
from sssjob.profiles import Profile
from sssjob.profiles import profile as profile_of
from sssjob.values import writable

__all__ = ["write_document"]

_TEXT: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_ATTRIBUTE: Final = {**_TEXT, '"': "&quot;", "\n": "&#10;", "\t": "&#9;"}
_TEXT_MARKS: Final = re.compile("[&<>\r]")
_ATTRIBUTE_MARKS: Final = re.compile('[&<>\r"\n\t]')
_MARKED: Final = re.compile("[^\t\n -%'-;=?-~\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TABLE: Final = {"JobGroup": "JobGroup", "TaskGroup": "TaskGroup", "TaskGroupDefaults": "TaskGroup", "Task": "Task",
                 "TaskDefaults": "Task"}
_XML_NS: Final = "{http://www.w3.org/XML/1998/namespace}"


def _escaped(text: str) -> str:
    return _TEXT_MARKS.sub(lambda m: _TEXT[m.group()], text)


def _quoted(text: str) -> str:
    return _ATTRIBUTE_MARKS.sub(lambda m: _ATTRIBUTE[m.group()], text)


class _Writer:
    """Appends the lines of one document to ``out``."""

    def __init__(self, profile: Profile, findings: Findings, policy: Policy) -> None:
        self.profile = profile
        self.findings = findings
        self.policy = policy
        self.out: list[str] = []
        self.files: dict[str, File] = {}
        self.plain = not (profile.names or profile.keep_spelling or profile.refused or profile.packed_script)
        self._attribute_texts: dict[int, str] = {}      # by identity: the document outlives the writer

    def names(self, container: str) -> Callable[[Property], str]:
        """How properties are called in a container under this profile."""
        if self.profile.keep_spelling:
            return lambda p: p.spelling or p.tag
        table = _TABLE.get(container, "Job")
        own = {**self.profile.names.get("Job", {}), **self.profile.names.get(table, {})} if table != "Job" else dict(
            self.profile.names.get("Job", {}))
        if table != "Job":       # Id, Name and State of a group are not those of a job
            own |= {n: self.profile.names.get(table, {}).get(n, n) for n in ("Id", "Name", "State")}
        return lambda p: own.get(p.tag, p.tag)

    # -- parts
    def container(self, node: Container, indent: str, tag: str | None = None, policy: Policy | None = None) -> None:
        """One container with everything in it."""
        policy = Policy.of(node.attributes.get("awarenessPolicy", "")) or policy or self.policy
        tag = tag or (node.spelling if self.profile.keep_spelling and node.spelling else node.tag)
        if node.tag in self.profile.refused:
            self._refused(node.tag, node.line, policy)
            return
        start = tag + self.attributes(node.attributes)
        if node.reference is not None:
            self.out.append(f"{indent}<{start}>{_escaped(node.reference)}</{tag}>\n")
            return
        if not node.items:
            self.out.append(f"{indent}<{start}/>\n")
            return
        if node.tag == "Environment" and self.profile.packed_script:
            self.out.append(f"{indent}<{start}>{_escaped(_packed(node))}</{tag}>\n")
            return
        self.out.append(f"{indent}<{start}>\n")
        self.items(node, indent + "  ", policy)
        self.out.append(f"{indent}</{tag}>\n")

    def items(self, node: Container, indent: str, policy: Policy) -> None:
        """The items of a container, in order."""
        if self.plain:
            self._plain_items(node, indent, policy)
            return
        name_of, refused = self.names(node.tag), self.profile.refused
        for item in node.items:
            if isinstance(item, Property):
                if item.tag in refused:
                    self._refused(item.tag, node.line, policy)
                else:
                    self._property(item, indent, name_of(item))
            else:
                self._inner(item, indent, policy)

    def _plain_items(self, node: Container, indent: str, policy: Policy) -> None:
        """The same for canonical names: the hot loop of writing. Texts without marks go in as they are."""
        append, marked, attributes_of = self.out.append, _MARKED.search, self._attribute_texts.get
        for item in node.items:
            if not isinstance(item, Property):
                self._inner(item, indent, policy)
                continue
            value, tag = item.value, item.tag
            if value.__class__ is str:
                text = value if marked(value) is None else self.text(value, tag)
            elif value.__class__ is int:
                text = str(value)
            else:
                text = item.text
            attributes = item.attributes
            if attributes:
                more = attributes_of(id(attributes))
                if more is None:
                    more = self._attribute_texts[id(attributes)] = self.attributes(attributes)
                append(f"{indent}<{tag}{more}>{text}</{tag}>\n")
            else:
                append(f"{indent}<{tag}>{text}</{tag}>\n")

    def _property(self, item: Property, indent: str, tag: str) -> None:
        """One property under a name of this profile."""
        text = self.text(item.text, item.tag)
        if self.profile.packed_script and item.tag == "Executable" and item.text[1:] in self.files:
            tag, text = "SubmitString", self._submit_string(item.text[1:])
        kept = self.attributes(item.attributes) if item.tag != "Extension" or tag == "Extension" else ""
        self.out.append(f"{indent}<{tag}{kept}>{text}</{tag}>\n")

    def _inner(self, item: Container | Raw, indent: str, policy: Policy) -> None:
        if isinstance(item, Container):
            self.container(item, indent, None, policy)
            return
        self.out.append(indent)
        self.raw(item, indent)
        self.out.append("\n")

    def text(self, text: str, subject: str) -> str:
        """Escaped character data; what XML cannot hold is a rejecting finding."""
        if not text.isprintable() and not writable(text):
            self.findings.add("SSS201", subject, f"{subject} holds characters that XML cannot hold",
                              hint="a File may carry them as base64")
        return _escaped(text)

    def attributes(self, attributes: dict[str, str]) -> str:
        """`` name="value"`` for each attribute, in the order given."""
        if not attributes:
            return ""
        return "".join(f' {_attribute_name(k)}="{_quoted(self._checked(v, k))}"' for k, v in attributes.items())

    def _checked(self, text: str, subject: str) -> str:
        if not text.isprintable():
            self.text(text, subject)
        return text

    def raw(self, node: Raw, indent: str, space: str = "") -> None:
        """An element of another vocabulary as it was; jobs inside an envelope are written as objects.

        space: the default namespace that holds where it stands."""
        own, _, tag = node.tag.rpartition("}")
        own = own[1:]
        declared = f' xmlns="{_quoted(own)}"' if own != space else ""
        self.out.append(f"<{tag}{declared}{self.attributes(node.attributes)}")
        body = node.tag.rpartition("}")[2]
        files = self.files if body in ("Request", "Response") else {}
        if not node.children and not node.text and not files:
            self.out.append("/>")
            return
        self.out.append(f">{self.text(node.text, tag)}")
        mixed = bool(node.text) or any(isinstance(c, str) for c in node.children)
        for child in node.children:
            if isinstance(child, str):
                self.out.append(self.text(child, tag))
                continue
            self.out.append("" if mixed else f"\n{indent}  ")
            if isinstance(child, Container):
                self.out[-1] = "\n"
                self.container(child, indent + "  ", self._root(child))
                self.out[-1] = self.out[-1].rstrip("\n")
            else:
                self.raw(child, indent + "  ", own)
        for file in files.values():
            self.out.append("\n")
            self.file(file, indent + "  ")
            self.out[-1] = self.out[-1].rstrip("\n")
        self.out.append(f"</{tag}>" if mixed or not (node.children or files) else f"\n{indent}</{tag}>")

    def file(self, file: File, indent: str) -> None:
        """A File element; text that XML cannot hold goes in as base64."""
        text, encoded = file.text, file.encoded
        if encoded is not None and not writable(text):
            self.text(text, f"File {file.id}")
        if encoded is None and not writable(text):
            import base64

            text, encoded = base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii"), "base64"
        more = f' encoded="{_quoted(encoded)}"' if encoded else ""
        self.out.append(f'{indent}<File id="{_quoted(file.id)}"{more}>{_escaped(text)}</File>\n')

    def _root(self, node: Container) -> str | None:
        if self.profile.keep_spelling or not isinstance(node, Job):
            return None
        return self.profile.root

    def _refused(self, name: str, line: int, policy: Policy) -> None:
        self.findings.add("SSS501", name, f"{name} is not accepted in profile {self.profile.name}", policy=policy,
                          line=line)

    def _submit_string(self, name: str) -> str:
        from sssjob.moab import pack

        file = self.files[name]
        return _escaped(pack(file.text if file.encoded is None else file.content().decode("utf-8", "replace")))

    # -- whole documents
    def document(self, document: Document) -> str:
        """The text of a whole document."""
        self.files = document.files
        root = document.root
        if isinstance(root, Raw):
            self.raw(root, "")
            self.out.append("\n")
        elif self.files and not self.profile.packed_script:
            self._request(root)
        else:
            self.container(root, "", self._root(root))
        return "".join(self.out)

    def _request(self, root: Container) -> None:
        """A job that comes with Files: SSSRMAP's Request with Object, Data and the Files beside it."""
        user = root.value("User")
        actor = f' actor="{_quoted(str(user))}"' if user else ""
        self.out.append(f'<Request action="Submit"{actor}>\n  <Object>{root.tag}</Object>\n  <Data>\n')
        self.container(root, "    ", self._root(root))
        self.out.append("  </Data>\n")
        for file in self.files.values():
            self.file(file, "  ")
        self.out.append("</Request>\n")


def _attribute_name(name: str) -> str:
    if name.startswith(_XML_NS):
        return "xml:" + name.removeprefix(_XML_NS)
    space, _, local = name.rpartition("}")
    return f'xmlns:a="{_quoted(space[1:])}" a:{local}' if space else local


def _packed(node: Container) -> str:
    return ";".join(f"{p.attributes.get('name', '')}={p.text}" for p in node.properties())


def write_document(document: Document | Container, *, profile: str = "3.1", findings: Findings | None = None,
                   policy: Policy | None = None) -> str:
    """The XML text of a document or of one container, ending in a line break.

    profile: the names to use; ``liberal`` restores the spelling that was read. findings: collects what the profile
    cannot hold. Raises RejectedError when something rejects and no findings were given; with findings, ask
    ``findings.rejected`` before using the text.
    """
    collected = Findings() if findings is None else findings
    writer = _Writer(profile_of(profile), collected, policy or Policy.REJECT)
    text = writer.document(document if isinstance(document, Document) else Document(document))
    if findings is None:
        collected.raise_if_rejected()
    return text

