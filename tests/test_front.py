"""``import sssjob``: one function for what each command does, over documents, texts and files alike."""

from __future__ import annotations

import copy
import io
import json
import math
import pickle
import pydoc
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile, SpooledTemporaryFile
from typing import Any

import pytest
from hypothesis import given

import sssjob
from sssjob import Delivered, Document, Findings, Job, JobDefaults, JobGroup, Property, RejectedError, UsageError
from sssjob.accounting.privacy import PrivacyError
from sssjob.accounting.rates import RatesError
from sssjob.conversion.site import SiteError
from sssjob.document.kinds import Consumable
from sssjob.errors import AccessError, SSSJobError
from sssjob.limits import LIMITS, Limits
from sssjob.serve.operations import RequestError
from sssjob.xml.reader import read_document
from tests.strategies import documents

TEXT = "<Job><Id>1</Id><Requested><Processors>4</Processors></Requested></Job>"
SCRIPT = "#!/bin/sh\n#SBATCH -t 30\nhostname\n"
JOB = Job(id="1", requested={"processors": 4})


def test_names_are_there_and_nothing_is_imported_before_they_are_used() -> None:
    code = "import sssjob, sys; print([m for m in sys.modules if m.startswith('sssjob.')]); dir(sssjob)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "['sssjob.version']\n"
    assert set(sssjob.__all__) <= set(dir(sssjob))
    with pytest.raises(AttributeError, match="no attribute 'reed'"):
        dir(sssjob.__getattr__("reed"))


def test_rooms_of_the_same_name_can_be_called() -> None:
    code = "import sssjob, sssjob.query, sssjob.run; print(sssjob.query('//Id', '<Job><Id>7</Id></Job>')[0].text())"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "7\n"


@pytest.mark.parametrize("source", [TEXT, f"\n {TEXT}", TEXT.encode(), io.BytesIO(TEXT.encode()), io.StringIO(TEXT),
                                    json.dumps(JOB.to_dict()), json.dumps(JOB.to_dict(), indent=1)])
def test_texts_are_read(source: Any) -> None:
    assert sssjob.read(source).root == JOB


def test_names_are_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is never read as text, whatever stands in it."""
    monkeypatch.chdir(tmp_path)
    for name in ("simple.xml", "#SBATCH", "Job"):
        (tmp_path / name).write_text(TEXT)
        document = sssjob.read(name)
        assert document.root == JOB == sssjob.read(Path(name)).root and document.path == name
    for missing in ("absent.xml", "", Path("<x>"), "a\0b"):
        with pytest.raises(AccessError):
            sssjob.read(missing)
    with pytest.raises(UsageError, match="a document, a path"):
        sssjob.read(5)      # type: ignore[arg-type]


@pytest.mark.parametrize(("expression", "source"), [
    (TEXT, "//Id"), (f"\n {TEXT}", "//Id"), ('{"Job": {}}', "//Id"), (JOB, "//Id"), (TEXT.encode(), "//Id"),
    ("job.xml", "//Id")])
def test_expression_and_source_of_a_query_the_other_way_round(expression: Any, source: str, tmp_path: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.xml").write_text(TEXT)
    with pytest.raises(UsageError, match="query takes the expression first, then the source"):
        sssjob.query(expression, source)


def test_a_query_over_lines() -> None:
    assert sssjob.query("//Id\n[true()]", TEXT)[0].text() == str(JOB.id)
    with pytest.raises(AccessError, match="absent"):
        sssjob.query("//Id", "absent.xml")


@pytest.mark.parametrize("items", ["x", b"x", 5, (1,), {"id": "1"}, range(1)])
def test_a_container_is_made_of_items(items: Any) -> None:
    for kind in (Job, sssjob.Requested, sssjob.JobGroup):
        with pytest.raises(UsageError, match=f"{kind.tag}: a list of its properties and containers is expected"):
            kind(items)
    assert Job(iter(JOB.items)) == JOB == Job(tuple(JOB.items))


def test_any_format_is_read_by_every_door() -> None:
    assert sssjob.query("//Duration", SCRIPT)[0].text() == "1800"
    assert "Duration 1800 s\n" in sssjob.explain(SCRIPT)
    assert not sssjob.check(SCRIPT).rejected
    with pytest.raises(UsageError, match="no format is recognised"):
        sssjob.read("echo\n")
    with pytest.raises(UsageError, match="unknown format"):
        sssjob.read(SCRIPT, format="slrum")


def test_what_rejects_raises_or_is_collected() -> None:
    wrong = "<Job><Id>1</Id><Foo/></Job>"
    with pytest.raises(RejectedError, match="SSS301"):
        sssjob.read(wrong)
    findings = Findings()
    assert sssjob.read(wrong, findings=findings).root is not None and findings.rejected
    assert not list(sssjob.read(wrong, policy="Ignore").findings or ())
    assert [f.rule for f in sssjob.check(wrong)] == ["SSS301"] and sssjob.check("<Job>").rejected
    with pytest.raises(UsageError, match="no policy 'Maybe'"):
        sssjob.read(wrong, policy="Maybe")
    with pytest.raises(UsageError, match="no option 'x'"):
        sssjob.read(SCRIPT, options={"x": "1"})


@pytest.mark.parametrize("door", [
    lambda j: sssjob.write(j), lambda j: sssjob.write(j, format="slurm"), lambda j: sssjob.write(j, format="sss-json"),
    lambda j: sssjob.convert(j, "pbspro"), sssjob.run, sssjob.submit])
def test_what_was_made_by_hand_and_is_wrong_goes_through_no_door(door: Any) -> None:
    with pytest.raises(RejectedError, match="NodeCount"):
        door(Job([Property("Id", "1"), Property("Executable", "/bin/true"), Property("NodeCount", "many")]))


def test_write(tmp_path: Path) -> None:
    place = tmp_path / "job.xml"
    assert sssjob.write(JOB, path=place) == place.read_text()
    with pytest.raises(RejectedError):
        sssjob.write(Job([Property("Foo", 1)]), path=place)
    assert sssjob.read(place).root == JOB
    with pytest.raises(AccessError):
        sssjob.write(JOB, path=tmp_path / "none" / "job.xml")
    findings = Findings()
    assert "#SBATCH" in sssjob.write(Job(executable="/bin/true", requested={"duration": 60}, time_category="m"),
                                     format="slurm", policy="Warn", findings=findings)
    assert findings and not findings.rejected


def test_convert() -> None:
    conversion = sssjob.convert(SCRIPT, "pbspro")
    assert "#PBS -l walltime=00:30:00" in conversion.text and not conversion.findings.rejected
    assert sssjob.convert(JOB, "sss").text == sssjob.write(JOB)
    with pytest.raises(RejectedError):
        sssjob.convert("<Job><Executable>/bin/true</Executable><TimeCategory>m</TimeCategory></Job>", "slurm")


def test_match_quote_effective() -> None:
    assert sssjob.match(TEXT, Delivered(processors=4)).met and not sssjob.match(JOB, Delivered(processors=3)).met
    rates = 'name = "r"\nversion = "1"\n[[rate]]\ntype = "VBR"\nname = "Processors"\nrate = 1\nper = "hour"\n'
    group = JobGroup(id="g", defaults=JobDefaults(requested={"duration": 3600}), jobs=[JOB])
    (quote,) = sssjob.quote(group, rates)
    assert getattr(quote, "amount", None) == Decimal(4)
    view = sssjob.effective(JOB, group.defaults)
    assert view.value("Duration", "Requested") == 3600
    assert sssjob.explain(JobGroup(jobs=[JOB, Job(id="2")])) == (
        "Job 1 asks for:\n  Processors 4\nJob 2 asks for nothing in particular.\n")


def test_help_shows_type_unit_and_section() -> None:
    shown = pydoc.plain(pydoc.render_doc(Job.memory)).replace("\n    \n", "\n\n")       # as Python 3.11 indents them
    assert shown.endswith("""\
memory
    Memory: amount of memory.

    Type: Float (Decimal, MB without units (set: also "2 GB")).
    At least 0.
    Attributes: context, units, metric, duration, consumptionRate, dynamic.
    May also stand in Requested and Delivered.
    Section 5.1 Table 4 of the SSS job object.
""")
    page = pydoc.plain(pydoc.render_doc(Job))
    for said in ("NodeCount: number of nodes.", "Type: Duration (int, seconds", "Section 5.1 Table 2", "requested"):
        assert said in page
    assert "One of the words: Configured, Available, Used, Dedicated." in (Consumable.context.__doc__ or "")


def test_limits_show_only_what_differs() -> None:
    assert (repr(LIMITS), repr(Limits(depth=3, text=5))) == ("Limits()", "Limits(depth=3, text=5)")
    assert "Limits(document_bytes" not in pydoc.plain(pydoc.render_doc(read_document))


@given(documents())
def test_dicts_there_and_back(document: Document) -> None:
    twin = document.to_dict()
    try:
        back = Document.from_dict(twin)
    except RejectedError as error:
        assert {f.rule for f in error.findings if f.rejects} <= {"SSS301", "SSS302"}
    else:
        assert back == document


@pytest.mark.parametrize("twin", [{"Job": {"Id": None}}, {"Job": {"Id": object()}}, {"Job": {"Memory": float("inf")}}])
def test_what_the_twin_has_no_form_for_is_refused(twin: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Job.from_dict(twin)


def test_a_dict_of_another_container_is_refused() -> None:
    with pytest.raises(UsageError, match="the dict has the key Job, not JobGroup"):
        JobGroup.from_dict(JOB.to_dict())
    assert Job(memory=Decimal("0.1234567890123456789012")).to_dict()["Job"]["Memory"] == Decimal(
        "0.1234567890123456789012")


def test_what_is_no_document_is_named() -> None:
    with pytest.raises(UsageError, match="a document, a Job or a JobGroup is expected, not a int"):
        sssjob.write(3)  # type: ignore[arg-type]
    for wrong in (JobGroup([5]), Job(["x"])):       # type: ignore[list-item]
        with pytest.raises(UsageError, match="a list of its properties and containers is expected, not "):
            sssjob.convert(wrong, to="slurm")
    with pytest.raises(UsageError, match="not a JobGroup"):
        sssjob.effective(JobGroup())  # type: ignore[arg-type]
    with pytest.raises(AccessError, match="'': no file can have this name"):
        sssjob.read("")
    with pytest.raises(UsageError, match=r"no policy 3 \(known: Reject, Warn, Ignore\)"):
        sssjob.convert(JOB, to="slurm", policy=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(("function", "argument", "values"), [
    (sssjob.read, "format", (None, [], 5, b"sss")), (sssjob.read, "profile", (None, [], {})),
    (sssjob.read, "policy", (5, [], "")), (sssjob.read, "options", (5, ["a"], "a=b", {"indent": 2}, {5: "a"})),
    (sssjob.read, "site", (5, b"", [])), (sssjob.read, "findings", (5, [], b"")),
    (sssjob.check, "format", (None, [])), (sssjob.explain, "findings", (5, [])),
    (sssjob.convert, "to", (None, [], 5)), (sssjob.convert, "to_profile", (None, [])),
    (sssjob.convert, "options", (5, {"site": None})), (sssjob.run, "executor", (None, 5, ["local"])),
    (sssjob.run, "timeout", ("5", [], -1, math.nan, math.inf)), (sssjob.run, "cwd", (5, b"/")),
    (sssjob.submit, "executor", (None, 5, [])),
    (partial(sssjob.quote, rates="name='a'\nversion='1'\n"), "start", ("2026-01-01", 1.5, b"", [])),
    (partial(sssjob.query, "//Id"), "variables", (5, ["a"], {1: "a"})),
    (partial(sssjob.query, "//Id"), "version", (4,)),
], ids=str)
def test_arguments_of_another_type_are_named(function: Callable[..., object], argument: str,
                                             values: tuple[object, ...]) -> None:
    """Nobody has to read a traceback of what is inside; nothing is run."""
    for value in values:
        with pytest.raises(UsageError):
            function(TEXT, **{argument: value})


@pytest.mark.parametrize("name", ["", "a\0", "\ud800"])
def test_names_that_no_file_can_have(name: str) -> None:
    for function in (sssjob.read, sssjob.check, lambda path: sssjob.write(JOB, path=path),
                     lambda path: sssjob.quote(JOB, path), lambda path: sssjob.convert(JOB, site=path)):
        with pytest.raises(AccessError, match="no file can have this name"):
            function(name)


def test_open_files_of_every_kind() -> None:
    """A temporary file of text is no TextIOBase; one that is closed, or of other bytes, cannot be read."""
    with NamedTemporaryFile("w+", encoding="utf-8") as named, SpooledTemporaryFile(mode="w+") as spooled:
        for file in (named, spooled, io.StringIO(TEXT), io.BytesIO(TEXT.encode())):
            if file in (named, spooled):
                file.write(TEXT)
                file.seek(0)
            assert sssjob.read(file).root == JOB
    for broken in (named, io.TextIOWrapper(io.BytesIO(b"\xff"), "utf-8")):
        with pytest.raises(AccessError):
            sssjob.read(broken)


def test_a_quote_at_the_end_of_the_calendar_is_refused_with_a_reason() -> None:
    rates = (Path(__file__).parents[1] / "examples/rates.toml").read_bytes()
    job = Job(executable="x", processors=1, duration=60, eligible_time=253_402_214_400)
    assert "no calendar" in str(sssjob.quote(job, rates))


def _errors() -> list[SSSJobError]:
    """One of each kind that is made of more than a text, as its own constructor makes it."""
    with pytest.raises(RejectedError) as rejected:
        sssjob.convert("<Job/>", to="slurm")
    return [rejected.value, AccessError("/a/b", "is gone"), SiteError("site.toml", ["one", "two"]),
            RatesError("rates.toml", ["none"]), PrivacyError("privacy.toml", ["odd"]), RequestError(404, "no such job")]


@pytest.mark.parametrize("error", _errors(), ids=lambda error: type(error).__name__)
def test_an_error_comes_back_from_another_process(error: SSSJobError) -> None:
    """Pools of processes pickle what a call raises; one that cannot be read again ends the whole pool."""
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error) and str(again) == str(error)
        assert repr(vars(again)) == repr(vars(error))


def test_findings_show_themselves() -> None:
    """At a prompt they were ``<sssjob.findings.Findings object at 0x...>``; a document that was made has no lines."""
    group = JobGroup(id="g", jobs=[Job(id="1"), Job(id="1")])
    assert repr(sssjob.check(group)) == "Findings([\"-: SSS308 error Job Id '1' is used twice\"])"
    colours = sssjob.check("<Job>" + "<Colour>red</Colour>" * 12 + "</Job>")
    assert repr(colours).endswith("'] and 2 more)") and repr(Findings()) == "Findings([])"
