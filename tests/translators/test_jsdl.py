"""JSDL 1.0: what its elements ask for, ranges as expressions, and what has no place on either side."""

from __future__ import annotations

import shlex
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.model import Document, Job, Requested, new_property
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from tests.strategies import examples

SPACES = ('xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl" '
          'xmlns:p="http://schemas.ggf.org/jsdl/2005/11/jsdl-posix" '
          'xmlns:h="http://schemas.ggf.org/jsdl/2006/07/jsdl-hpcpa" '
          'xmlns:s="http://schemas.ogf.org/jsdl/2007/02/jsdl-spmd" xmlns:x="urn:x"')
WHOLE = """<JobIdentification><JobName>cfd</JobName><Description>a run</Description><JobAnnotation>n1</JobAnnotation>
<JobProject>phys</JobProject><JobProject>chem</JobProject></JobIdentification>
<Application><ApplicationName>gnuplot</ApplicationName><ApplicationVersion>4</ApplicationVersion>
<s:SPMDApplication><p:Executable>/bin/app</p:Executable><p:Argument>a b</p:Argument><p:Argument>it's</p:Argument>
<p:Output>o{1}</p:Output><p:Error>e</p:Error><p:WorkingDirectory>/w</p:WorkingDirectory>
<p:Environment name="A">1 2</p:Environment><p:WallTimeLimit>3600</p:WallTimeLimit><p:CPUTimeLimit>60</p:CPUTimeLimit>
<p:UserName>u</p:UserName><s:NumberOfProcesses>8</s:NumberOfProcesses><s:ProcessesPerHost>4</s:ProcessesPerHost>
<s:ThreadsPerProcess>2</s:ThreadsPerProcess><s:SPMDVariation>http://www.ogf.org/jsdl/2007/02/jsdl-spmd/MPICH2
</s:SPMDVariation></s:SPMDApplication></Application>
<Resources><CandidateHosts><HostName>h1</HostName><HostName>h2</HostName></CandidateHosts>
<FileSystem name="HOME"><MountPoint>/home</MountPoint></FileSystem><ExclusiveExecution>true</ExclusiveExecution>
<OperatingSystem><OperatingSystemType><OperatingSystemName>LINUX</OperatingSystemName></OperatingSystemType>
<OperatingSystemVersion>5</OperatingSystemVersion></OperatingSystem>
<CPUArchitecture><CPUArchitectureName>x86_64</CPUArchitectureName></CPUArchitecture>
<IndividualPhysicalMemory><LowerBoundedRange>2097152.0</LowerBoundedRange></IndividualPhysicalMemory>
<TotalResourceCount><Range><LowerBound>1</LowerBound><UpperBound>3</UpperBound></Range></TotalResourceCount></Resources>
<DataStaging><FileName>in</FileName><CreationFlag>overwrite</CreationFlag><Source><URI>http://h/in</URI></Source>
</DataStaging><DataStaging name="x"><FileName>out</FileName><CreationFlag>append</CreationFlag>
<Target><URI>http://h/out</URI></Target></DataStaging>"""


def definition(description: str) -> bytes:
    return f"<JobDefinition {SPACES}><JobDescription>{description}</JobDescription></JobDefinition>".encode()


def read(data: bytes, policy: Policy | None = None) -> tuple[Document, Findings]:
    context = ReadContext("j", Findings("j"), policy=policy)
    return get("jsdl").read(data, context), context.findings


def job(description: str) -> Job:
    return next(j for j, _ in read(definition(description))[0].jobs())


def write(document: Document) -> tuple[str, list[tuple[str, str]]]:
    context = WriteContext(Findings("j"), policy=Policy.WARN)
    return get("jsdl").write(document, context), [(f.kind, f.subject) for f in context.findings]


def test_everything_that_it_knows_comes_back() -> None:
    document, findings = read(definition(WHOLE))
    assert list(findings) == []
    text, reported = write(document)
    again, _ = read(text.encode())
    assert reported == [] and again.root == document.root and write(again)[0] == text


def test_what_it_asks_for() -> None:
    job_text = job(WHOLE)
    assert job_text.name == "cfd" and job_text.arguments == "'a b' 'it'\"'\"'s'" and job_text.project == "phys"
    assert job_text.requested is not None and job_text.environment is not None
    assert job_text.environment.variables() == {"A": "1 2"} and job_text.environment.export is None
    assert [(p.tag, p.text, p.attributes) for p in job_text.requested.properties()] == [
        ("Duration", "3600", {}), ("Node", "h1,h2", {"aggregation": "List"}), ("OperatingSystem", "LINUX", {}),
        ("Architecture", "x86_64", {}), ("Memory", "2", {"units": "MB", "op": "GE", "metric": "PerNode"}),
        ("NodeCount", "1", {"op": "GE"}), ("NodeCount", "3", {"op": "LE"})]
    assert job_text.task_groups[0].task_count == 8


RANGES = [
    ("<Exact>4</Exact>", [("EQ", 4, {})]),
    ("<LowerBoundedRange exclusiveBound='true'>4</LowerBoundedRange>", [("GT", 4, {})]),
    ("<UpperBoundedRange>4</UpperBoundedRange>", [("LE", 4, {})]),
    ("<Range><LowerBound>2</LowerBound><UpperBound exclusiveBound='true'>4</UpperBound></Range>",
     [("GE", 2, {}), ("LT", 4, {})]),
    ("<Exact>2</Exact><Exact>4</Exact>", [("EQ", 2, {"group": "1"}), ("EQ", 4, {"conj": "Or", "group": "-1"})]),
    ("<Exact>2</Exact><Range><LowerBound>8</LowerBound><UpperBound>16</UpperBound></Range>",
     [("EQ", 2, {"group": "1"}), ("GE", 8, {"conj": "Or", "group": "1"}), ("LE", 16, {"group": "-2"})]),
    ('<Exact epsilon="1">4</Exact>', [("GE", 3, {}), ("LE", 5, {})]),
    ('<Exact epsilon="0.5">0.2</Exact>', [("GE", 0, {}), ("LE", 0, {})]),
    ("<Range><LowerBound>1.5</LowerBound><UpperBound>4.5</UpperBound></Range>", [("GE", 2, {}), ("LE", 4, {})]),
    ('<LowerBoundedRange exclusiveBound="true">1.5</LowerBoundedRange>', [("GT", 1, {})]),
    ('<UpperBoundedRange exclusiveBound="true">4.5</UpperBoundedRange>', [("LT", 5, {})]),
]


@pytest.mark.parametrize(("text", "expected"), RANGES, ids=[str(n) for n in range(len(RANGES))])
def test_ranges_are_expressions(text: str, expected: list[tuple[str, int, dict[str, str]]]) -> None:
    data = definition(f"<Resources><TotalCPUCount>{text}</TotalCPUCount></Resources>")
    document, _ = read(data)
    requested = next(j for j, _ in document.jobs()).requested
    assert requested is not None
    assert [(p.op, p.value, {k: v for k, v in p.attributes.items() if k != "op"})
            for p in requested.properties()] == expected
    assert read(write(document)[0].encode())[0].root == document.root


@pytest.mark.parametrize("text", [
    "<Exact>x</Exact>", "<Exact>NaN</Exact>", "<Exact>-1</Exact>", "<Exact/>", "<Between>3</Between>",
    "<Range><LowerBound>2</LowerBound></Range>", "<Exact>1e999999</Exact>", "<Exact>1.5</Exact>",
    '<Exact epsilon="x">2</Exact>'])
def test_malformed_ranges(text: str) -> None:
    with pytest.raises(RejectedError):
        job(f"<Resources><TotalCPUCount>{text}</TotalCPUCount></Resources>")


@pytest.mark.parametrize(("text", "subject"), [
    ("<x:Odd/>", "Odd"), ("<Resources><x:Odd/></Resources>", "Odd"), ("<Application><x:App/></Application>", "App"),
    ("<Application><p:POSIXApplication><p:Odd/></p:POSIXApplication></Application>", "Odd"),
    ("<Application><p:POSIXApplication name='n'/></Application>", "POSIXApplication/@name"),
    ("<Application><p:POSIXApplication><p:Executable filesystemName='HOME'>x</p:Executable></p:POSIXApplication>"
     "</Application>", "Executable/@filesystemName")])
def test_the_policy_decides_about_what_is_not_known(text: str, subject: str) -> None:
    assert [(f.kind, f.subject, f.severity) for f in read(definition(text))[1]] == [("unknown", subject, "warning")]
    with pytest.raises(RejectedError):
        read(definition(text), Policy.REJECT)
    assert not [f for f in read(definition(text), Policy.IGNORE)[1] if f.severity != "info"]


@pytest.mark.parametrize("data", [
    b"", b"<a/>", b"<!DOCTYPE x [<!ENTITY e 'x'>]>" + definition(WHOLE), b"\x00\x01", definition(WHOLE)[:-9],
    f"<JobDefinition {SPACES}/>".encode()])
def test_bad_documents(data: bytes) -> None:
    with pytest.raises(RejectedError):
        read(data)


def test_hpc_profile() -> None:
    text = "<h:HPCProfileApplication><h:Executable>x</h:Executable></h:HPCProfileApplication>"
    text = f"<Application>{text}</Application>"
    document, _ = read(definition(text))
    output, findings = write(document)
    assert "jsdl-hpcpa:HPCProfileApplication" in output and findings == []
    assert read(output.encode())[0].root == document.root


def test_from_a_script_the_script_goes_beside() -> None:
    script = b"#!/bin/bash\n#SBATCH -J cfd -N 2 -t 10 -p batch --mem=4G -a 1-3 -o %x.%j.out\necho\n"
    document = get("slurm").read(script, ReadContext())
    text, findings = write(document)
    assert {("dropped", "Queue"), ("dropped", "Extension Array"), ("dropped", "OutputFile"),
            ("site-dependent", "Executable")} == {one for one in findings if one[0] != "approximated"}
    beside = get("jsdl").files
    assert beside is not None
    made = dict(beside(document, WriteContext(Findings("j"), policy=Policy.WARN, name="cfd")))
    assert made == {"cfd.jsdl": text, "cfd.sh": "#!/bin/bash\necho\n"}
    assert "<Exact>4294967296</Exact>" in text and "<jsdl-posix:WallTimeLimit>600</jsdl-posix:WallTimeLimit>" in text


def test_an_expression_without_such_a_form_is_taken_down() -> None:
    wish = Job([Requested([new_property("NodeCount", 4, {"preference": "5"}),
                           new_property("NodeCount", 2, {"preference": "1", "conj": "Or"})])])
    text, findings = write(Document(wish))
    assert "<Exact>4</Exact>" in text and ("approximated", "NodeCount") in findings


def test_characters_that_xml_cannot_hold() -> None:
    text, findings = write(Document(Job([new_property("Name", "a\x01b")])))
    assert "JobName" not in text and findings == [("dropped", "Name")]


def test_recognised() -> None:
    from sssjob.translators.recognise import guess

    assert guess(definition(WHOLE))[0].name == "jsdl"


@settings(max_examples=examples(40))
@given(st.lists(st.text(max_size=8), max_size=4), st.text(max_size=12),
       st.decimals(0, Decimal("1e15"), allow_nan=False, allow_infinity=False, places=3))
def test_any_text_comes_back_or_is_told(words: list[str], name: str, memory: Decimal) -> None:
    made = Job([new_property("Name", name), new_property("Executable", "x"),
                new_property("Arguments", shlex.join(words)),
                Requested([new_property("Memory", memory, {"units": "KB"})])])
    text, findings = write(Document(made))
    back = next(j for j, _ in read(text.encode())[0].jobs())
    dropped = {subject for _, subject in findings}
    assert back.name == (name.strip() or None) or "Name" in dropped or "\r" in name
    if not any("\r" in w or (w and not w.strip()) for w in words) and "Arguments" not in dropped:
        assert shlex.split(back.arguments or "") == words


def test_findings_name_the_line_of_the_element() -> None:
    """What the target cannot say is told where JSDL says it; what only describes a job looks different without it."""
    document = get("jsdl").read(f"<JobDefinition {SPACES}><JobDescription>{WHOLE}</JobDescription></JobDefinition>"
                                .encode(), ReadContext("j.jsdl", Findings("j.jsdl")))
    findings = Findings("j.jsdl")
    findings.places = document.places
    get("slurm").write(document, WriteContext(findings, policy=Policy.WARN))
    told = {f.subject.split()[0] if f.subject.startswith("ResourceLimit") else f.subject: f for f in findings}
    expected = {"OperatingSystem": ("OperatingSystemName", "breaks"), "Architecture": ("CPUArchitectureName", "breaks"),
                "Application": ("ApplicationName", "looks"), "Extension JobAnnotation": ("JobAnnotation", "looks"),
                "ResourceLimit": ("CPUTimeLimit", "looks")}
    for subject, (element, consequence) in expected.items():
        finding = told[subject]
        assert f"{element}>" in WHOLE.splitlines()[finding.line - 1], subject
        assert finding.consequence == consequence, subject
