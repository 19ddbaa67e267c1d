"""Documents read as text are read as by a tree: the same objects, lines and findings, whatever their layout."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.strategies import booleans, integers, lists, sampled_from, tuples

from bench.documents import job_documents
from sssjob.document.element import Container, Property
from sssjob.document.model import Document, JobGroup
from sssjob.errors import RejectedError
from sssjob.findings import Findings
from sssjob.limits import Limits
from sssjob.xml import reader
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.strategies import containers, examples

JOBS = list(itertools.islice(job_documents(30), 30))
MARK = "    <Queue>marked</Queue>\n"
JOB = f"  <Job>\n    <Id>m</Id>\n    <User>ann</User>\n{MARK}    <Requested>\n      <Processors>777</Processors>\n" \
      "    </Requested>\n  </Job>\n"


def group(*jobs: str) -> str:
    return f"<JobGroup>\n  <Id>g</Id>\n{''.join(jobs)}</JobGroup>\n"


def plain(jobs: int = 20) -> str:
    indented = ("".join(f"  {line}\n" for line in job.splitlines()) for job in JOBS[:jobs])
    return group(*indented, JOB)


def flat(item: Any) -> Any:
    """All of an object, with lines and spellings, which comparing leaves out."""
    if isinstance(item, Container):
        return item.tag, item.line, item.spelling, item.reference, item.attributes, [flat(i) for i in item.items]
    if isinstance(item, Property):
        return type(item), item.tag, item.value, type(item.value), item.attributes, item.spelling
    return item


def told(document: Document) -> list[Any]:
    assert document.findings is not None
    return [(f.rule, f.severity, f.path, f.line, f.column, f.message) for f in document.findings]


class Both:
    """Reads as text and by a tree and compares. used: whether the text was enough."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patch = monkeypatch
        self.used = False
        as_text = reader._as_text

        def spied(*arguments: Any) -> Document | None:
            read = as_text(*arguments)
            self.used = read is not None
            return read

        monkeypatch.setattr(reader, "_as_text", spied)

    def by_tree(self, text: str | bytes, profile: str) -> Document:
        """The document, read as a tree."""
        with self.patch.context() as patch:
            patch.setattr(reader, "plain_text", lambda data, limits: None)
            return read_document(text, profile=profile)

    def read(self, text: str | bytes, profile: str = "liberal") -> Document:
        """The document, the same both ways."""
        self.used = False
        made, other = read_document(text, profile=profile), self.by_tree(text, profile)
        assert told(made) == told(other)
        assert [flat(b) for b in made.bodies()] == [flat(b) for b in other.bodies()]
        return made


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Both:
    return Both(monkeypatch)


@pytest.mark.parametrize("profile", ["liberal", "3.1", "3.0"])
@pytest.mark.parametrize("head", ["", '<?xml version="1.0"?>\n', "<?xml version='1.0' encoding='utf-8'?>\n"])
def test_plain_documents(both: Both, profile: str, head: str) -> None:
    document = both.read(head + plain(), profile)
    assert both.used and isinstance(document.root, JobGroup) and len(list(document.jobs())) == 21


#: What a text may hide: (name, change of the marked job).
CHANGES: list[tuple[str, Callable[[str], str]]] = [
    ("> in attributes", lambda t: t.replace(MARK, "    <Environment>\n" + "".join(
        f"<Variable name={n}>{v}</Variable>\n" for v in "xy" for n in ('"a>b"', "'a>b'", "'a' export=\"a>'b\"",
                                                                        "'\"' export=\"a>b\""))
        + f"    </Environment>\n{MARK}")),
    ("comment", lambda t: t.replace(MARK, f"<!--\n{MARK}-->\n")),
    ("comment on a line", lambda t: t.replace(MARK, f"    <!-- x -->\n{MARK}")),
    ("CDATA", lambda t: t.replace(MARK, "    <Queue><![CDATA[\n    <Id>no</Id>\n]]></Queue>\n")),
    ("instruction", lambda t: t.replace(MARK, f"<?x\n{MARK}?>\n")),
    ("carriage returns", lambda t: t.replace("\n", "\r\n")),
    ("text over lines", lambda t: t.replace("marked", "\n    marked\n    ")),
    ("two on a line", lambda t: t.replace(MARK, "    <Queue>marked</Queue><Project>p</Project>\n")),
    ("text beside", lambda t: t.replace(MARK, "    stray <Queue>marked</Queue>\n")),
    ("text after", lambda t: t.replace(MARK, "    <Queue>marked</Queue> stray\n")),
    ("no-break space beside", lambda t: t.replace(MARK, "    \u00a0<Queue>marked</Queue>\n")),
    ("line separator", lambda t: t.replace("marked", "mar\u2028ked")),
    ("character reference", lambda t: t.replace("marked", "m&#97;rked")),
    ("entity", lambda t: t.replace("marked", "a&lt;b")),
    ("empty", lambda t: t.replace("marked", "")),
    ("empty tag", lambda t: t.replace("<Queue>marked</Queue>", "<Queue/>")),
    ("blank lines", lambda t: t.replace(MARK, f"\n{MARK}\n")),
    ("blank lines between jobs", lambda t: t.replace("  </Job>\n", "  </Job>\n\n")),
    ("space in the tag", lambda t: t.replace("<Queue>", "<Queue >")),
    ("space in the end tag", lambda t: t.replace("</Queue>", "</Queue >")),
    ("unknown element", lambda t: t.replace(MARK, "    <Colour>red</Colour>\n")),
    ("alias", lambda t: t.replace("<User>ann</User>", "<UserId>ann</UserId>")),
    ("repeated", lambda t: t.replace(MARK, MARK + MARK.replace("marked", "other"))),
    ("quotes of the other kind", lambda t: t.replace("<Processors>777<", "<Processors op='GE'>777<")),
    ("greater-than in an attribute", lambda t: t.replace("<Processors>", '<Processors op="G>E">')),
    ("attribute beside a known one",
     lambda t: t.replace("<Processors>777<", "<Processors op=\"GE\">3</Processors>\n"
                         "      <Processors op=\"GE\" x='\"'>4<")),
    ("namespace", lambda t: t.replace("<Queue>", '<Queue xmlns="urn:x">')),
    ("prefix", lambda t: t.replace("<Queue>", '<Queue xmlns:x="urn:x">')),
    ("attribute of the job", lambda t: t.replace("<Job>", '<Job awarenessPolicy="Warn">', 1)),
    ("job that is a reference", lambda t: t.replace("</JobGroup>", "  <Job>m</Job>\n</JobGroup>")),
    ("job in a job", lambda t: t.replace(MARK, MARK + "    <Job>\n      <Id>i</Id>\n    </Job>\n")),
    ("end at another place", lambda t: t.replace("    </Requested>\n  </Job>\n", "    </Requested>\n </Job>\n")),
    ("defaults after", lambda t: t.replace("</JobGroup>", "  <JobDefaults>\n    <User>x</User>\n  </JobDefaults>\n"
                                           "</JobGroup>")),
    ("property after", lambda t: t.replace("</JobGroup>", "  <Name>late</Name>\n</JobGroup>")),
    ("text in the group", lambda t: t.replace("</JobGroup>", "  stray\n</JobGroup>")),
    ("leading zeros", lambda t: t.replace("<Processors>777<", "<Processors>0777<")),
    ("other digits", lambda t: t.replace("<Processors>777<", "<Processors>\u0664<")),
    ("mixed", lambda t: t.replace("marked", "marked<b>x</b>")),
    ("comment after the end", lambda t: t + "<!-- x -->\n"),
    ("a mark in a text", lambda t: t.replace("marked", "what?!")),
]


#: After these, all of the document is read as a tree.
WHOLE = ("instruction", "text in the group")


@pytest.mark.parametrize(("name", "change"), CHANGES, ids=[c[0] for c in CHANGES])
@pytest.mark.parametrize("profile", ["liberal", "3.1"])
def test_what_a_text_may_hide(both: Both, name: str, change: Any, profile: str) -> None:
    text = change(plain())
    assert text != plain()
    try:
        both.read(text, profile)
    except RejectedError as error:
        with pytest.raises(RejectedError) as other:
            both.by_tree(text, profile)
        assert [str(f) for f in error.findings] == [str(f) for f in other.value.findings]
        return
    assert profile != "liberal" or both.used is (name not in WHOLE)


def with_old_names(text: str) -> str:
    """The document in the names and with the habits of Maui and Gold."""
    for name, old in (("Id", "JobId"), ("User", "UserId"), ("Project", "ProjectId"), ("State", "JobState")):
        text = re.sub(rf"\n(    +)<{name}>(.*)</{name}>", rf"\n\1<{old}>\2</{old}>", text)
    text = text.replace("Duration>", "WallDuration>").replace("<Requested>\n", "<Requested>\n<NodeCount></NodeCount>\n")
    return re.sub("(<Feature>.*</Feature>)", r"<NodeProperties>\n\1</NodeProperties><UMask>18</UMask>", text)


#: How programs lay out what they write: each is read as text, whatever its names.
LAYOUTS: dict[str, Callable[[str], str]] = {
    "indented": lambda t: t,
    "no line breaks": lambda t: re.sub(r"\n\s*", "", t),
    "CRLF": lambda t: t.replace("\n", "\r\n"),
    "tabs and blank lines": lambda t: t.replace("  ", "\t").replace("\n", "\n\n"),
    "comments": lambda t: t.replace("<Queue>", "<!-- a\n > < & -- comment\n--><Queue>".replace(" -- ", " "))
                           .replace("</Queue>", "<!-- x --></Queue>"),
    "CDATA": lambda t: t.replace(">Heavy Water", "><![CDATA[Heavy & <Water>]]>"),
    "entities": lambda t: t.replace(">Heavy", ">R&amp;D &lt;&#65;&gt;"),
    "namespace": lambda t: t.replace("<JobGroup", '<JobGroup xmlns="http://scidac.org/ScalableSystems"', 1),
    "prefix": lambda t: re.sub(r"<(/?)(\w)", r"<\1s:\2", t).replace("<s:JobGroup", '<s:JobGroup xmlns:s="urn:x"', 1),
    "Latin-1": lambda t: '<?xml version="1.0" encoding="iso-8859-1"?>\n' + t.replace("Heavy", "H\u00e9avy"),
    "attributes of the group": lambda t: t.replace("<JobGroup", '<JobGroup awarenessPolicy="Warn"', 1),
    "schema of the group": lambda t: t.replace(
        "<JobGroup", '<JobGroup xmlns:i="http://www.w3.org/2001/XMLSchema-instance"\n i:schemaLocation="a b"', 1),
    "in a message": lambda t: f'<Request action="Submit">\n<Object>Job</Object><Data>\n{t}</Data></Request>',
    "jobs in a message": lambda t: "<Response><Count>9</Count><Data>\n" + t[t.index("  <Job>"):t.rindex("</")]
                                   + "</Data>\n</Response>",
    "msub": lambda t: t.replace("Job>", "job>"),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("names", [str, with_old_names], ids=["3.1", "old"])
def test_every_layout_is_read_as_text(both: Both, layout: Any, names: Any) -> None:
    text = layout(names(group(*JOBS, JOB)))
    document = both.read(text if "iso-8859" not in text else text.encode("latin-1"))
    assert both.used and len(list(document.jobs())) == 31


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow,
                                                                 HealthCheck.function_scoped_fixture])
@given(sampled_from(sorted(LAYOUTS)), lists(tuples(integers(0, 5), sampled_from(CHANGES)), max_size=4), booleans())
def test_any_mixture_of_forms(both: Both, layout: str, changes: list[Any], old: bool) -> None:
    """What stands in some jobs changes nothing about how the others are read, in any layout."""
    jobs = [*JOBS[:5], JOB]
    for at, (name, change) in changes:
        if "group" not in name and "after" not in name:
            jobs[at] = change(jobs[at].replace("<Queue>", "<Queue>", 1)) if at == 5 else change(JOB) + jobs[at]
    text = group(*jobs)
    text = LAYOUTS[layout](with_old_names(text) if old else text)
    try:
        both.read(text if "iso-8859" not in text else text.encode("latin-1", "xmlcharrefreplace"))
    except RejectedError as error:
        with pytest.raises(RejectedError) as other:
            both.by_tree(text if "iso-8859" not in text else text.encode("latin-1", "xmlcharrefreplace"), "liberal")
        assert [str(f) for f in error.findings] == [str(f) for f in other.value.findings]


def test_a_cut_at_the_wrong_end_tag_costs_no_more_than_a_tree(both: Both) -> None:
    """End tags with spaces are passed over by the quick look for the end of a job."""
    both.read(group(*["  <Job ><Id>a</Id></Job >\n"] * 300, JOB, JOB))
    both.read(group(*["  <Job ><Id>a</Id></Job\n>\n<Id >b</Id >"] * 300))


def test_limits_hold(both: Both) -> None:
    text = plain()
    for limits in (Limits(document_elements=100), Limits(attributes=1), Limits(document_bytes=1000)):
        with pytest.raises(RejectedError, match="SSS110"):
            read_document(text, limits=limits)


@settings(max_examples=examples(26), deadline=None, suppress_health_check=[HealthCheck.too_slow,
                                                                 HealthCheck.function_scoped_fixture])
@given(containers("JobGroup"))
def test_any_group(both: Both, body: Container) -> None:
    findings = Findings()
    text = write_document(Document(body), findings=findings)
    assume(not findings.rejected)
    both.read(text.replace("</JobGroup>\n", f"{JOB}{JOB}</JobGroup>\n") if "\n</JobGroup>" in text else text)
