"""From objects to XML: canonical spelling, straight quotes, two spaces of indentation, nothing invented.

Profiles other than ``3.1`` write the names of other systems; what such a system refuses is a finding (SSS501), decided
by awarenessPolicy like everything else. What ``3.1`` has another form for takes that form (sections 6.1 and 14), and a
finding says so. Writing is string building: the text of a property is escaped, never trusted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from sys import getrefcount
from typing import Final

from sssjob.document.element import Container, Item, Property, Raw, new_property
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Document, File, Job, Requested
from sssjob.document.states import waits
from sssjob.document.values import writable
from sssjob.document.vocabulary import CONTAINERS
from sssjob.findings import Findings, Policy, Severity
from sssjob.limits import LIMITS
from sssjob.xml._forms import FORMS, bracketed, is_adapter, is_parted
from sssjob.xml._in_order import attributes_fit, classes_of, in_order
from sssjob.xml._rereading import reread
from sssjob.xml.profiles import Profile
from sssjob.xml.profiles import profile as profile_of

__all__ = ["escaped", "quoted", "text_of", "write_compact", "write_document"]

_TEXT: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_ATTRIBUTE: Final = {**_TEXT, '"': "&quot;", "\n": "&#10;", "\t": "&#9;"}
_TEXT_MARKS: Final = re.compile("[&<>\r]")
_ATTRIBUTE_MARKS: Final = re.compile('[&<>\r"\n\t]')
_MARKED: Final = re.compile("[^\t\n -%'-;=?-~\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TABLE: Final = {"JobGroup": "JobGroup", "TaskGroup": "TaskGroup", "TaskGroupDefaults": "TaskGroup", "Task": "Task",
                 "TaskDefaults": "Task"}
#: Containers whose bare properties count as requested while the job waits.
_ASKING: Final = ("Job", "TaskGroup")
_ALONE: Final = 3       # references to a property that stands in one place: its container, a loop, the question
#: Containers whose brackets have to balance.
_BRACKETED: Final = frozenset(("Requested", "Delivered"))
_XML_NS: Final = "{http://www.w3.org/XML/1998/namespace}"


def escaped(text: str) -> str:
    """Text as it stands between tags."""
    return _TEXT_MARKS.sub(lambda m: _TEXT[m.group()], text)


def quoted(text: str) -> str:
    """Text as it stands between double quotes in a tag."""
    return _ATTRIBUTE_MARKS.sub(lambda m: _ATTRIBUTE[m.group()], text)


class _Writer:
    """Appends the lines of one document to ``out``."""

    def __init__(self, profile: Profile, findings: Findings, policy: Policy) -> None:
        self.profile = profile
        self.findings = findings
        self.policy = policy
        self.out: list[str] = []
        self.files: dict[str, File] = {}
        self.holder: Raw | None = None      # the element of another vocabulary in which they stand
        self.doubtful = False       # whether something was seen that the reader may not take
        self.has_raw = False        # whether something is written as it was read
        self.plain = not (profile.names or profile.keep_spelling or profile.refused or profile.packed_script)
        self._attribute_texts: dict[int, str] = {}      # by identity: the document outlives the writer
        self._lines: dict[str, dict[int, str]] = {}     # of properties that stand in several places, by indentation
        self._kept: list[Property] = []     # made here: their attributes must outlive the writer too
        self._blocks: list[Container] = []              # the same
        self._group: Container | None = None            # those that are being written
        self._job: Container | None = None
        self._told: set[str] = set()

    def names(self, container: str) -> Callable[[Property], str]:
        """How properties are called in a container under this profile."""
        if self.profile.keep_spelling:
            return lambda p: p.spelling or p.tag
        table = _TABLE.get(container, "Job")
        own = {**self.profile.names.get("Job", {}), **self.profile.names.get(table, {})} if table != "Job" else dict(
            self.profile.names.get("Job", {}))
        if table != "Job":       # Id, Name and State of a group are not those of a job
            own |= {n: self.profile.names.get(table, {}).get(n, n) for n in ("Id", "Name", "State")}
        return lambda p: "NetworkAdapter" if is_adapter(p) else own.get(p.tag, p.tag)

    # -- parts
    def container(self, node: Container, indent: str, tag: str | None = None, policy: Policy | None = None) -> None:
        """One container with everything in it."""
        policy = Policy.of(node.attributes.get("awarenessPolicy", "")) or policy or self.policy
        tag = tag or (node.spelling if self.profile.keep_spelling and node.spelling else node.tag)
        if node.tag in self.profile.refused:
            self._refused(node, node, policy)
            return
        if node.tag == "Job":
            self._job = node
        elif node.tag == "JobGroup":
            self._group = node
        start = tag + self.attributes(node.attributes)
        if node.reference is not None:
            self.out.append(f"{indent}<{start}>{escaped(node.reference)}</{tag}>\n")
            return
        if not node.items:
            self.out.append(f"{indent}<{start}/>\n")
            return
        if node.tag == "Environment" and self.profile.packed_script:
            self.out.append(f"{indent}<{start}>{escaped(_packed(node))}</{tag}>\n")
            return
        self.out.append(f"{indent}<{start}>\n")
        self.items(self._balanced(node), indent + "  ", policy)
        self.out.append(f"{indent}</{tag}>\n")

    def items(self, node: Container, indent: str, policy: Policy) -> None:
        """The items of a container, in order."""
        if self.plain:
            self._plain_items(node, node.items, indent, policy)
            return
        self.doubtful = True        # names of other systems: nothing was looked at on the way
        name_of, refused = self.names(node.tag), self.profile.refused
        for item in node.items:
            if isinstance(item, Property):
                if item.tag in refused:
                    self._refused(item, node, policy)
                else:
                    self._property(item, indent, name_of(item))
            else:
                self._inner(item, indent, policy)

    def _plain_items(self, node: Container, items: list[Item], indent: str, policy: Policy) -> None:
        """The same for canonical names: the hot loop of writing. Texts without marks go in as they are.

        items: those of the node, or what they became in 3.1."""
        append, marked, attributes_of = self.out.append, _MARKED.search, self._attribute_texts.get
        classes, bare_classes = classes_of(node.tag)
        lines = self._lines.setdefault(indent, {})
        line_of = lines.get
        start = len(self.out)
        for item in items:
            line = line_of(id(item))
            if line is not None:
                append(line)
                continue
            tag = item.tag
            if not isinstance(item, Property):
                if isinstance(item, Container) and item.items and not item.attributes and item.reference is None:
                    if tag == "Job":
                        self._job = item
                    append(f"{indent}<{tag}>\n")
                    whole = self._balanced(item) if tag in _BRACKETED else item
                    self._plain_items(whole, whole.items, indent + "  ", policy)
                    append(f"{indent}</{tag}>\n")
                else:
                    self._inner(item, indent, policy)
                continue
            value = item.value
            if value.__class__ is str:
                if tag in FORMS and items is node.items and FORMS[tag](item, node):     # rare
                    del self.out[start:]
                    self._plain_items(node, self._formed(node), indent, policy)
                    return
                text = value if marked(value) is None else self.text(value, tag)
            elif value.__class__ is int:
                text = str(value)
                if value < 0:
                    self.doubtful = True
            else:
                text = item.text
            attributes = item.attributes
            if attributes:
                if value.__class__ is not classes.get(tag):
                    self.doubtful = True
                more = attributes_of(id(attributes))
                if more is None:
                    self.doubtful = self.doubtful or not attributes_fit(node.tag, tag, tuple(attributes.items()))
                    more = self._attribute_texts[id(attributes)] = self.attributes(attributes)
                line = f"{indent}<{tag}{more}>{text}</{tag}>\n"
            else:
                if value.__class__ is not bare_classes.get(tag):
                    self.doubtful = True
                line = f"{indent}<{tag}>{text}</{tag}>\n"
            append(line)
            if getrefcount(item) > _ALONE and tag not in FORMS:
                lines[id(item)] = line

    def _balanced(self, node: Container) -> Container:
        """A Requested or Delivered whose brackets balance, as the reader would mend them (SSS402)."""
        if node.tag not in _BRACKETED or self.profile.keep_spelling:
            return node
        for item in node.items:         # most have no brackets at all
            if item.attributes and "group" in item.attributes:
                break
        else:
            return node
        groups = [p.attributes["group"] for p in node.properties() if "group" in p.attributes]
        from sssjob.request.tree import balanced, parse

        if balanced(groups, self.findings.limits):
            return node
        own_findings = Findings(limits=self.findings.limits)
        mended = list(parse(node, own_findings).properties)
        for finding in own_findings:
            if finding.rule == "SSS402":
                self.findings.add("SSS402", finding.subject, finding.message, within=node,
                                  item=next(p for p in node.properties() if "group" in p.attributes))
        if not own_findings:
            return node
        depth = low = 0
        for p in mended:
            depth += p.group or 0
            low = min(low, depth)
        for at, more in ((0, -low), (-1, low - depth)):
            group = (mended[at].group or 0) + more
            mended[at] = mended[at].replace(group=str(group) if group else None)
        self._kept += mended
        rest = iter(mended)
        return type(node)([next(rest) if isinstance(i, Property) else i for i in node.items], dict(node.attributes),
                          node.reference, node.line, node.spelling)

    # -- forms of 3.1 (section 6.1)
    def _formed(self, node: Container) -> list[Item]:
        """The items of a container in the forms of 3.1."""
        features = [] if CONTAINERS[node.tag].category else node.all("Feature")
        items = self._one_feature(features, node) if len(features) > 1 else node.items
        written_items = [self._names(i, node) if isinstance(i, Property) and i.tag == "Node" and is_parted(i) else i
                         for i in items]
        self._kept += [i for i in written_items if isinstance(i, Property)]
        return written_items

    def _one_feature(self, features: list[Property], node: Container) -> list[Item]:
        """The items of a container where one Feature stands in place of several.

        A List is any of its names where it asks for something, and all of them where it describes. So the bare List is
        what the container describes, and what a waiting job asks for by it, all of them, goes below Requested, which
        wins over what stands bare. Where that would mean something else the Features stay, with a finding."""
        listed, block = _one_list(features), self._block(features, node)
        if listed is None or (block is None and node.tag in _ASKING and self._waits()):
            self._tell("Feature", f"{len(features)} Feature in one {node.tag}, where the text has one; no other form "
                       "of 3.1 means all of them", node, rule="SSS304")
            return node.items
        self._tell("Feature", f"{len(features)} Feature in one {node.tag} become one List" + (
            ", and all of them are asked for below Requested" if block is not None else ""), node, "info")
        at = next(n for n, item in enumerate(node.items) if item.tag == "Feature")
        written_items = [listed if n == at else block if block is not None and item.tag == "Requested" else item
                         for n, item in enumerate(node.items) if item.tag != "Feature" or n == at]
        if block is not None:
            self._blocks.append(block)
            if not any(item is block for item in written_items):
                written_items.append(block)
        return written_items

    def _block(self, features: list[Property], node: Container) -> Container | None:
        """The Requested block of a waiting job with what its Features ask for; None where there is none to write."""
        blocks = list(node.containers("Requested"))
        above = [c for scope in (self._group, self._job) if scope is not None for c in scope.containers()
                 if c.tag.endswith("Defaults") and any(p.tag == "Feature" for p in c.leaves())]
        if node.tag not in _ASKING or not self._waits() or above or len(blocks) > 1:
            return None
        asked = blocks[0] if blocks else Requested()
        if asked.first("Feature") is not None:      # it wins over the bare ones
            return asked
        items = bracketed(asked.items)
        return None if items is None else type(asked)([*items, *features], asked.attributes)

    def _waits(self) -> bool:
        """Whether the job that is being written still waits: only then its bare properties ask for something."""
        return self._job is not None and waits(self._job.value("State"))

    def _names(self, item: Property, node: Container) -> Property:
        """A Range of several groups as a List."""
        from sssjob.document.nodeset import NodeSet

        try:
            text = ",".join(NodeSet.parse_range(item.text))
        except LexicalError as error:
            if getattr(error, "limit", ""):
                self.findings.add("SSS110", "Node", f"Node: {error}", item=item, within=node)
            return item
        if len(text) > LIMITS.text:
            self.findings.add("SSS110", "Node", f"the names of {item.text} are longer than the limit text "
                              f"({LIMITS.text})", item=item, within=node)
        self._tell("Node", f"Node: the groups of {item.text} become a List of their names", node, "info")
        return new_property("Node", text, item.attributes | {"aggregation": "List"})

    def _tell(self, subject: str, message: str, node: Container, severity: Severity | None = None,
              rule: str = "SSS502") -> None:
        """Another form, told once a name."""
        if subject not in self._told:
            self._told.add(subject)
            self.findings.add(rule, subject, message, severity=severity, item=node.first(subject), within=node)

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
        return escaped(text)

    def attributes(self, attributes: dict[str, str]) -> str:
        """`` name="value"`` for each attribute, in the order given."""
        if not attributes:
            return ""
        return "".join(f' {_attribute_name(k)}="{quoted(self._checked(v, k))}"' for k, v in attributes.items())

    def _checked(self, text: str, subject: str) -> str:
        if not text.isprintable():
            self.text(text, subject)
        return text

    def raw(self, node: Raw, indent: str, space: str = "") -> None:
        """An element of another vocabulary as it was; jobs inside an envelope are written as objects.

        space: the default namespace that holds where it stands."""
        self.has_raw = True
        own, _, tag = node.tag.rpartition("}")
        own = own[1:]
        declared = f' xmlns="{quoted(own)}"' if own != space else ""
        self.out.append(f"<{tag}{declared}{self.attributes(node.attributes)}")
        files = self.files if node is self.holder else {}
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
        more = f' encoded="{quoted(encoded)}"' if encoded else ""
        self.out.append(f'{indent}<File id="{quoted(file.id)}"{more}>{escaped(text)}</File>\n')

    def _root(self, node: Container) -> str | None:
        if self.profile.keep_spelling or not isinstance(node, Job):
            return None
        return self.profile.root

    def _refused(self, item: Property | Container, node: Container, policy: Policy) -> None:
        self.findings.add("SSS501", item.tag, f"{item.tag} is not accepted in profile {self.profile.name}",
                          policy=policy, item=item, within=node)

    def _submit_string(self, name: str) -> str:
        from sssjob.document.moab import pack

        file = self.files[name]
        return escaped(pack(file.text if file.encoded is None else file.content().decode("utf-8", "replace")))

    # -- whole documents
    def document(self, document: Document) -> str:
        """The text of a whole document."""
        self.files = document.files
        root = document.root
        if isinstance(root, Raw):
            self.holder = _holder(root) or root
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
        actor = f' actor="{quoted(str(user))}"' if user else ""
        self.out.append(f'<Request action="Submit"{actor}>\n  <Object>{root.tag}</Object>\n  <Data>\n')
        self.container(root, "    ", self._root(root))
        self.out.append("  </Data>\n")
        for file in self.files.values():
            self.file(file, "  ")
        self.out.append("</Request>\n")


def _holder(node: Raw) -> Raw | None:
    """The Request or Response at or below an element, beside whose Data the Files stand."""
    if node.tag.rpartition("}")[2] in ("Request", "Response"):
        return node
    inner = (_holder(child) for child in node.children if isinstance(child, Raw))
    return next((holder for holder in inner if holder is not None), None)


def _one_list(features: list[Property]) -> Property | None:
    """Several Features as one List; None where one cannot hold them."""
    from sssjob.request import names_of

    names: list[str] = []
    others: list[dict[str, str]] = []
    for p in features:
        node_names = names_of(p) if p.get("aggregation") in (None, "List") else ()
        names += node_names if isinstance(node_names, tuple) else ()
        others.append({k: v for k, v in p.attributes.items() if k not in ("aggregation", "delimiter")})
    delimiter = next((c for c in ",;|:/" if not any(c in name for name in names)), None)
    if delimiter is None or any(o != others[0] for o in others) or any(
            p.get("aggregation") not in (None, "List") for p in features):
        return None
    parted = {} if delimiter == "," else {"delimiter": delimiter}
    return new_property("Feature", delimiter.join(names), {"aggregation": "List"} | parted | others[0])


def _attribute_name(name: str) -> str:
    if name.startswith(_XML_NS):
        return "xml:" + name.removeprefix(_XML_NS)
    space, _, local = name.rpartition("}")
    return f'xmlns:a="{quoted(space[1:])}" a:{local}' if space else local


def _packed(node: Container) -> str:
    return ";".join(f"{p.attributes.get('name', '')}={p.text}" for p in node.properties())


def write_document(document: Document | Container, *, profile: str = "3.1", findings: Findings | None = None,
                   policy: Policy | None = None) -> str:
    """The XML text of a document or of one container, ending in a line break.

    profile: the names to use; ``liberal`` restores the spelling that was read. findings: collects what the profile
    cannot hold, and what the reader would say of a document that was made or changed by hand. Raises RejectedError when
    something rejects and no findings were given; with findings, ask ``findings.rejected`` before using the text.
    """
    collected = Findings() if findings is None else findings
    whole = document if isinstance(document, Document) else Document(document)
    if whole.places is not None:
        collected.places = whole.places
        count, first_line = whole.places.comments()
        if count:
            collected.add("SSS113", "comment", f"{count} comment{'s are' if count > 1 else ' is'} not kept",
                          severity="info", line=first_line)
    return _written(whole, profile, collected, policy or Policy.REJECT, findings is None)[0]


def write_compact(document: Document, *, profile: str = "3.1") -> tuple[str, bool]:
    """The XML text of a document without white space between elements and with an end tag for each; and whether it is
    in that form: what was kept as it was read is not. Raises RejectedError."""
    text, writer = _written(document, profile, Findings(), Policy.REJECT, True)
    if writer.has_raw or document.files:
        return text, False
    return "".join([_with_end(line) if line.endswith("/>\n") else line.strip() for line in writer.out]), True


def _with_end(line: str) -> str:
    """A line with an empty element that has an end tag."""
    start = line.strip().removesuffix("/>")
    return f"{start}></{start[1:].partition(' ')[0]}>"


def _written(whole: Document, profile: str, collected: Findings, policy: Policy, raises: bool) -> tuple[str, _Writer]:
    """The text of a document, and what wrote it. raises: RejectedError, when something rejects."""
    writer = _Writer(profile_of(profile), collected, policy)
    before = len(collected)
    text = writer.document(whole)
    wrong = any(f.rejects for f in islice(collected, before, None))
    if (writer.doubtful or whole.findings is None) and not (wrong or in_order(whole)):
        reread(whole, text if writer.plain else text_of(whole, Findings()), collected, policy)
    if raises:
        collected.raise_if_rejected()
    return text, writer


def text_of(document: Document, findings: Findings) -> str:
    """The XML text of a document in the names of 3.1.0, without a look at whether it would be read again."""
    return _Writer(profile_of("3.1"), findings, Policy.IGNORE).document(document)
