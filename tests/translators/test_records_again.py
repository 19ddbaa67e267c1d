"""Quick ways of readers against the careful ones: lines cut by their form, facts made once, jobs written plainly."""

from __future__ import annotations

import os
import re
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.element import Property, Value
from sssjob.document.model import Document, Job
from sssjob.errors import SSSJobError
from sssjob.findings import Findings
from sssjob.translators import get
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.records import _again, _pbs, lsf_acct, stream
from sssjob.translators.records._lines import lines
from sssjob.translators.records._packed import packing
from sssjob.translators.records._sss import PlainJobs
from sssjob.translators.records.base import RecordTranslator
from sssjob.xml.writer import write_document
from tests.strategies import documents, examples
from tests.translators.test_records_hostile import NASTY, SEEDS

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAMPLES = os.environ.get("SSSJOB_SAMPLES")
TEXTS = ("pbs-acct", "sacct", "sge-acct", "lsf-acct")
LOGS = {"pbs-acct": "openpbs-23.06.06/records/accounting.log", "sge-acct": "gridengine-8.1.9/records/accounting.txt",
        "sacct": "slurm-22.05.8/records/sacct.psv"}
FOLDERS = {"pbs-acct": "pbs", "sge-acct": "sge", "sacct": "slurm", "lsf-acct": "lsf"}


PIECES = (*NASTY, b" ", b'a="b c"', b"x=1 ")
MARKS = (b"<", b"&", b">", b"'", b'"', b"a[1],b[2]", b"\xc3\xa9", b"\x01", b" ")


def told(name: str, data: bytes) -> tuple[list[str], object, list[str]]:
    """Jobs as text with their lines, counts, findings; of an input that is refused, why."""
    reader = get(name)
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    context = ReadContext(options={"timezone": "Europe/Berlin"})
    stream = reader.stream(BytesIO(data), context)
    try:
        jobs = [f"{job.line}: {write_document(job, findings=Findings())}" for job in stream]
    except SSSJobError as error:
        jobs = [str(error)]
    return jobs, stream.counts.record(), [str(f) for f in context.findings]


def assert_same(name: str, data: bytes) -> None:
    with patch.object(_again, "_OFTEN", 1):
        quick = told(name, data)
    with patch.object(_again, "_OFTEN", 1 << 60), patch.object(_again, "LONGEST", 0):
        careful = told(name, data)
    assert quick == careful


@pytest.mark.parametrize("name", LOGS)
def test_recorded_logs_twice(name: str) -> None:
    data = (FIXTURES / LOGS[name]).read_bytes()
    assert_same(name, data + data)


@pytest.mark.skipif(SAMPLES is None, reason="SSSJOB_SAMPLES names no folder of public samples")
@pytest.mark.parametrize("name", FOLDERS)
def test_public_samples(name: str) -> None:
    for path in sorted((Path(str(SAMPLES)) / "accounting-samples" / FOLDERS[name]).iterdir()):
        data = path.read_bytes().rstrip(b"\n") + b"\n"
        assert_same(name, data * 3)


@pytest.mark.parametrize("name", TEXTS)
@given(data=st.data())
@settings(max_examples=examples(40))
def test_hostile_lines(name: str, data: st.DataObject) -> None:
    seed = SEEDS[name].splitlines(keepends=True)
    log = seed[:1] if name == "sacct" else []
    for _ in range(data.draw(st.integers(1, 4))):
        line = bytearray(data.draw(st.sampled_from(seed)).rstrip(b"\n"))
        for _ in range(data.draw(st.integers(0, 4))):
            at = data.draw(st.integers(0, len(line)))
            line[at:at + data.draw(st.integers(0, 12))] = data.draw(st.sampled_from(PIECES))
        log += [bytes(line) + b"\n"] * data.draw(st.integers(1, 3))
    assert_same(name, b"".join(log))


# --- forms --------------------------------------------------------------------------------------------------------

HEAD = "11/21/2026 10:00:09;E;7.head;"
NAMES = ("user", "group", "account", "jobname", "queue", "exec_host", "Resource_List.ncpus", "Resource_List.x", "end",
         "Exit_status", "exec_vnode", "session", "resources_used.mem", "run_count", "a-b")
VALUES = st.text(st.sampled_from('ab=". \\9\t\xa0-_+[]'), max_size=6)
WORDS = VALUES | st.builds("{}={}".format, st.sampled_from(NAMES), VALUES) | st.builds(
    '{}="{}"'.format, st.sampled_from(NAMES), VALUES)
FIELDS = SEEDS["lsf-acct"].decode().splitlines()


@given(st.lists(WORDS, max_size=12), st.lists(WORDS, max_size=12))
@settings(max_examples=examples(100))
def test_a_form_of_pbs_says_what_the_careful_way_says(one: list[str], other: list[str]) -> None:
    """The form of one record, held against another record and against itself."""
    form = _pbs.form_of(HEAD + " ".join(one))
    for text in (" ".join(one), " ".join(other)):
        if form is not None and "\t" not in text and text.isascii() and (found := form.match(HEAD + text)):
            who, when, ended, held, used = form.said(found.groups())
            assert found.groups()[:2] == ("11/21/2026 10:00:09", "7.head")
            assert (_pbs.section(_pbs.WHO, who), when, ended, _pbs.section(_pbs.HELD, held), used) == (
                _pbs.Facts(text).said())


def test_most_records_of_pbs_have_a_form() -> None:
    lines = [line for line in SEEDS["pbs-acct"].decode().splitlines() if ";E;" in line]
    assert lines and all(_pbs.form_of(line) is not None for line in lines)


@given(st.data())
@settings(max_examples=examples(75))
def test_a_form_of_lsf_says_what_the_careful_way_says(data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(FIELDS))
    form = lsf_acct._form(one)
    fields = [found[0] for found in lsf_acct._TOKEN.finditer(one)]
    for _ in range(data.draw(st.integers(0, 3))):
        fields[data.draw(st.integers(1, len(fields) - 1))] = data.draw(
            st.sampled_from(('"a ""b"" c"', '""', "0", "1", "2", "-1", '"x y"', 'a"b', '"', "12", '"0"')))
    text = " ".join(fields)
    if form is None or (match := form.match(text)) is None:
        return
    values = match.groups()
    careful = lsf_acct._Fields(lsf_acct._cut(text))
    assert [section(values) for section in form.sections] == [careful.texts(s) for s in lsf_acct._SECTIONS]
    assert form.tail(values) == careful.tail()
    assert lsf_acct._cut(values[form.hosts]) == careful.fields[slice(*careful.hosts)]


def test_all_records_of_lsf_have_a_form() -> None:
    finished = [line for line in FIELDS if line.startswith('"JOB_FINISH"')]
    assert finished and all((f := lsf_acct._form(line)) is not None and f.match(line) for line in finished)


def test_commands_of_many_words_have_the_form_of_others() -> None:
    """How many blanks and doubled quotes are in what is not read makes no other form."""
    line = next(line for line in FIELDS if line.startswith('"JOB_FINISH"'))
    fields = [found[0] for found in lsf_acct._TOKEN.finditer(line)]
    form, asked = lsf_acct._form(line), int(fields[22])
    at = 27 + asked + int(fields[23 + asked])           # the command, behind jobName
    fields[at] = '"a b ""c d"" e"'
    assert form is not None and form.match(" ".join(fields)) is not None


class Plain:
    """A form of blanks."""

    def __init__(self, text: str) -> None:
        self.match = re.compile(" ".join(["([^ ]*+)"] * len(text.split(" ")))).fullmatch


def test_a_form_is_taken_when_it_came_often() -> None:
    forms = _again.Forms(Plain, " ")
    cut = [forms.cut(f"user=u{n} ctime={n}") is not None for n in range(40)]
    assert cut == [False] * 16 + [True] * 24
    assert all(forms.cut(text) is None for text in ("user=u ctime=1 end=2", "user=\xe4 b", "a\tb c"))


def test_forms_and_facts_are_bounded() -> None:
    forms = _again.Forms(Plain, " ")
    for n in range(400):
        for _ in range(20):
            forms.cut(" ".join(f"k{n}x{i}=1" for i in range(1 + n % 300)))
    known = [form for beside in forms._known.values() for form in beside]
    assert 0 < len(known) <= _again._FORMS
    assert forms.cut(" ".join("a" * 500)) is None       # more blanks than are worth a pattern
    once = _again.Once(str.upper, most=10)
    assert [once[str(n)] for n in range(100)] == [str(n) for n in range(100)] and len(once) <= 10
    assert once["x" * 5000] == "X" * 5000 and len(once) <= 10 and "x" * 5000 not in once


def test_what_told_something_is_made_again() -> None:
    findings, made = Findings(), []

    def make(key: str) -> str:
        made.append(key)
        if key == "odd":
            findings.add("SSS541", "Node", "odd")
        return key

    once = _again.Once(make, findings)
    for key in ("plain", "odd", "plain", "odd"):
        assert once[key] == key
    assert made == ["plain", "odd", "odd"] and len(findings) == 2


# --- lines --------------------------------------------------------------------------------------------------------

class Slowly(BytesIO):
    """Gives a few bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self.most = most

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(self.most)


@given(st.lists(st.binary(max_size=8) | st.sampled_from([b"plain", b"\t", b"\r", b"a" * 30]), max_size=8),
       st.integers(1, 9), st.booleans())
def test_lines_do_not_depend_on_pieces(texts: list[bytes], most: int, end: bool) -> None:
    data = b"\n".join(texts) + b"\n" * end
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or packing(data) is not None:     # neither lines of UTF-8 nor plain
        return
    slow, quick = ([line._replace(text=line.text[:20]) for line in lines(file, 20)]     # of a long one more may be held
                   for file in (Slowly(data, most), BytesIO(data)))
    assert slow == quick
    found = list(lines(BytesIO(data), 1000))
    expected = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert len(found) == len(expected) - (expected[-1] == b"")
    for line, raw in zip(found, expected, strict=False):
        if raw.isascii() and raw.decode().isprintable():
            assert (line.text, line.note) == (raw.decode(), "")


# --- XML ----------------------------------------------------------------------------------------------------------

def both(job: Job) -> tuple[str | None, str, int]:
    """A job by the plain writer, by the one of documents, and how many findings that had."""
    context = WriteContext()
    return PlainJobs().text(job), stream._inner([job], context), len(context.findings)


@pytest.mark.parametrize("name", sorted({*TEXTS, "htcondor-history", "cobalt-acct", "flux-jobs", "swf", "sacct-json"}))
@given(data=st.data())
@settings(max_examples=examples(30))
def test_plain_jobs_are_written_as_documents_are(name: str, data: st.DataObject) -> None:
    text = bytearray(SEEDS[name])
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(text)))
        text[at:at] = data.draw(st.sampled_from(MARKS))
    reader = get(name)
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    for job in reader.stream(BytesIO(bytes(text)), ReadContext(options={"timezone": "UTC"})):
        plain, written, findings = both(job)
        assert plain is None or (plain, 0) == (written, findings)


@given(documents())
@settings(max_examples=examples(30), deadline=None)
def test_jobs_of_any_document_are_written_as_documents_are(document: Document) -> None:
    """Each once more, when the text of its outline is there."""
    plain_jobs = PlainJobs()
    for job, _ in list(document.jobs()) * 2:
        plain, (of_one, written, findings) = plain_jobs.text(job), both(job)
        assert plain == of_one and (plain is None or (plain, 0) == (written, findings))


@pytest.mark.parametrize("value", ["100 % & <more>", "%s", "a\x07", "\xe9", "\ud800", True, Decimal("1E+3"),
                                   Decimal("1E-10")])
def test_odd_values_are_written_as_documents_are(value: Value) -> None:
    """Behind one whose value is a plain text or number."""
    plain_jobs = PlainJobs()
    for name in ("a", 1, value):
        job = Job([Property("Name", name), Property("Extension", "x", {"name": "100%"})])
        plain, (_, written, findings) = plain_jobs.text(job), both(job)
        assert plain is None or (plain, 0) == (written, findings)
        assert plain is not None or (isinstance(value, str) and not value.isprintable())


def test_most_jobs_are_plain() -> None:
    reader = get("pbs-acct")
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    jobs = list(reader.stream(BytesIO(SEEDS["pbs-acct"]), ReadContext()))
    assert jobs and all(both(job)[0] is not None for job in jobs)


def test_another_form_is_told_once_a_stream() -> None:
    nodes = ["a[1-9999],b[1-2]" if n % 2 else "n1" for n in range(1, 9)]     # more names than readers write out
    rows = "".join(f"{n}|COMPLETED|1795000000|1795000060|60|4|{text}\n" for n, text in enumerate(nodes, 1))
    reader, context = get("sacct"), WriteContext()
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    text = "JobID|State|Start|End|ElapsedRaw|AllocCPUS|NodeList\n" + rows
    out = "".join(stream.texts(reader.stream(BytesIO(text.encode()), ReadContext()), get("sss"), context, "log"))
    assert [f.subject for f in context.findings] == ["Node"]
    assert [n for n in range(1, 9) if f"<Id>{n}</Id>" in out] == list(range(1, 9))
    assert out.index("<Id>1<") < out.index("<Id>2<") < out.index("<Id>8<") and out.count("a9999,b1,b2<") == 4
