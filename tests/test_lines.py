"""Big documents read by their lines are read as by a tree: the same objects, lines and findings, or no lines."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from bench.documents import job_documents
from sssjob import reader
from sssjob.element import Container, Property
from sssjob.errors import RejectedError
from sssjob.findings import Findings
from sssjob.limits import Limits
from sssjob.model import Document, JobGroup
from sssjob.reader import read_document
from sssjob.writer import write_document
from tests.strategies import containers

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
    """Reads by lines and by a tree and compares. used: whether the lines were enough."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patch = monkeypatch
        self.used = False
        by_lines = reader._Reader.lines

        def spied(made: Any, lines: Any, path: str) -> Any:
            read = by_lines(made, lines, path)
            self.used = read is not None
            return read

        monkeypatch.setattr(reader._Reader, "lines", spied)

    def by_tree(self, text: str, profile: str) -> Document:
        """The document without its lines."""
        with self.patch.context() as patch:
            patch.setattr(reader, "lines_of", lambda data, limits: None)
            return read_document(text, profile=profile)

    def read(self, text: str, profile: str = "liberal") -> Document:
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


#: What a line may hide: (name, change of the marked job, whether the lines may still be used).
CHANGES = [
    ("comment", lambda t: t.replace(MARK, f"<!--\n{MARK}-->\n"), False),
    ("comment on a line", lambda t: t.replace(MARK, f"    <!-- x -->\n{MARK}"), False),
    ("CDATA", lambda t: t.replace(MARK, "    <Queue><![CDATA[\n    <Id>no</Id>\n]]></Queue>\n"), False),
    ("instruction", lambda t: t.replace(MARK, f"<?x\n{MARK}?>\n"), False),
    ("carriage returns", lambda t: t.replace("\n", "\r\n"), False),
    ("text over lines", lambda t: t.replace("marked", "\n    marked\n    "), True),
    ("two on a line", lambda t: t.replace(MARK, "    <Queue>marked</Queue><Project>p</Project>\n"), True),
    ("text beside", lambda t: t.replace(MARK, "    stray <Queue>marked</Queue>\n"), False),
    ("text after", lambda t: t.replace(MARK, "    <Queue>marked</Queue> stray\n"), False),
    ("no-break space beside", lambda t: t.replace(MARK, "    \u00a0<Queue>marked</Queue>\n"), True),
    ("line separator", lambda t: t.replace("marked", "mar\u2028ked"), False),
    ("character reference", lambda t: t.replace("marked", "m&#97;rked"), True),
    ("entity", lambda t: t.replace("marked", "a&lt;b"), True),
    ("empty", lambda t: t.replace("marked", ""), False),
    ("empty tag", lambda t: t.replace("<Queue>marked</Queue>", "<Queue/>"), False),
    ("blank lines", lambda t: t.replace(MARK, f"\n{MARK}\n"), True),
    ("blank lines between jobs", lambda t: t.replace("  </Job>\n", "  </Job>\n\n"), True),
    ("space in the tag", lambda t: t.replace("<Queue>", "<Queue >"), True),
    ("space in the end tag", lambda t: t.replace("</Queue>", "</Queue >"), True),
    ("unknown element", lambda t: t.replace(MARK, "    <Colour>red</Colour>\n"), False),
    ("alias", lambda t: t.replace("<User>ann</User>", "<UserId>ann</UserId>"), False),
    ("repeated", lambda t: t.replace(MARK, MARK + MARK.replace("marked", "other")), False),
    ("quotes of the other kind", lambda t: t.replace("<Processors>777<", "<Processors op='GE'>777<"), True),
    ("greater-than in an attribute", lambda t: t.replace("<Processors>", '<Processors op="G>E">'), False),
    ("attribute beside a known one",
     lambda t: t.replace("<Processors>777<", "<Processors op=\"GE\">3</Processors>\n"
                         "      <Processors op=\"GE\" x='\"'>4<"), False),
    ("namespace", lambda t: t.replace("<Queue>", '<Queue xmlns="urn:x">'), True),
    ("prefix", lambda t: t.replace("<Queue>", '<Queue xmlns:x="urn:x">'), True),
    ("attribute of the job", lambda t: t.replace("<Job>", '<Job awarenessPolicy="Warn">', 1), True),
    ("job that is a reference", lambda t: t.replace("</JobGroup>", "  <Job>m</Job>\n</JobGroup>"), True),
    ("job in a job", lambda t: t.replace(MARK, MARK + "    <Job>\n      <Id>i</Id>\n    </Job>\n"), False),
    ("end at another place", lambda t: t.replace("    </Requested>\n  </Job>\n", "    </Requested>\n </Job>\n"), True),
    ("defaults after", lambda t: t.replace("</JobGroup>", "  <JobDefaults>\n    <User>x</User>\n  </JobDefaults>\n"
                                           "</JobGroup>"), True),
    ("property after", lambda t: t.replace("</JobGroup>", "  <Name>late</Name>\n</JobGroup>"), True),
    ("text in the group", lambda t: t.replace("</JobGroup>", "  stray\n</JobGroup>"), False),
    ("leading zeros", lambda t: t.replace("<Processors>777<", "<Processors>0777<"), True),
    ("other digits", lambda t: t.replace("<Processors>777<", "<Processors>\u0664<"), False),
    ("mixed", lambda t: t.replace("marked", "marked<b>x</b>"), False),
    ("comment after the end", lambda t: t + "<!-- x -->\n", False),
    ("a mark in a text", lambda t: t.replace("marked", "what?!"), True),
]


@pytest.mark.parametrize(("change", "used"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
@pytest.mark.parametrize("profile", ["liberal", "3.1"])
def test_what_a_line_may_hide(both: Both, change: Any, used: bool, profile: str) -> None:
    text = change(plain())
    assert text != plain()
    try:
        both.read(text, profile)
    except RejectedError as error:
        with pytest.raises(RejectedError) as other:
            both.by_tree(text, profile)
        assert [str(f) for f in error.findings] == [str(f) for f in other.value.findings]
        return
    assert profile != "liberal" or both.used is used


def test_limits_hold_by_lines(both: Both) -> None:
    text = plain()
    for limits in (Limits(document_elements=100), Limits(attributes=1), Limits(document_bytes=1000)):
        with pytest.raises(RejectedError, match="SSS110"):
            read_document(text, limits=limits)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow,
                                                                 HealthCheck.function_scoped_fixture])
@given(containers("JobGroup"))
def test_any_group(both: Both, body: Container) -> None:
    findings = Findings()
    text = write_document(Document(body), findings=findings)
    assume(not findings.rejected)
    both.read(text.replace("</JobGroup>\n", f"{JOB}{JOB}</JobGroup>\n") if "\n</JobGroup>" in text else text)
