"""Job object <-> JobSpec: both ways, and everything that is lost is named."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psij import (
    URI,
    JobAttributes,
    JobSpec,
    JSONSerializer,
    ResourceSpecV1,
    StageIn,
    StageOut,
    StageOutFlags,
    StagingMode,
)
from sssjob.document.model import Document, Job, JobGroup
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.request.asked import Target
from sssjob.translators import ReadContext, WriteContext
from sssjob.translators.specs.psij import TRANSLATOR, from_spec, to_spec
from sssjob.xml.reader import read_document
from tests.strategies import examples


def job(text: str) -> Job:
    root = read_document(f"<Job><Executable>/bin/x</Executable>{text}</Job>".encode()).root
    assert isinstance(root, Job)
    return root


def spec(text: str, findings: Findings | None = None, files: Mapping[str, str] | None = None) -> JobSpec:
    return to_spec(job(text), Findings() if findings is None else findings, files=files)


def resources(text: str) -> dict[str, Any]:
    made = spec(text).resources
    assert isinstance(made, ResourceSpecV1)
    return {k: v for k, v in made._values().items() if v is not None and v is not False}


def told(text: str) -> set[tuple[str, str, str]]:
    findings = Findings()
    spec(text + "<Environment export='true'/>", findings)
    return {(f.rule, f.severity, f.subject) for f in findings}


# --- job object -> JobSpec ------------------------------------------------------------------------------------------

def test_plain_job() -> None:
    findings = Findings()
    made = spec("""<Name>n</Name><Arguments>a 'b c' ""</Arguments><InitialWorkingDirectory>/w</InitialWorkingDirectory>
        <InputFile>i</InputFile><OutputFile>o</OutputFile><ErrorFile>e</ErrorFile><Queue>q</Queue><Project>p</Project>
        <Reservation>r</Reservation><Requested><Duration>3600</Duration></Requested>
        <Environment export='false'><Variable name='A'> 1 </Variable></Environment>""", findings)
    assert made == JobSpec("/bin/x", ["a", "b c", ""], "/w", "n", False, {"A": " 1 "}, "i", "o", "e", None,
                           JobAttributes(timedelta(hours=1), "q", "p", "r"))
    assert not findings.rejected


@pytest.mark.parametrize(("where", "severities"), [
    ("<Extension type='Scheduler' name='Dialect'>slurm</Extension>", []),
    ("<TaskGroup><Extension type='Scheduler' name='ChunkCount'>2</Extension><TaskCount>1</TaskCount></TaskGroup>",
     [("SSS502", "warning", "ChunkCount")]),
])
def test_what_our_readers_note_is_no_reason_to_refuse(where: str, severities: list[tuple[str, str, str]]) -> None:
    assert sorted(told(where)) == severities


@pytest.mark.parametrize(("text", "expected"), [
    ("<Processors>4</Processors>", {"process_count": 4}),
    ("<Requested><Processors>4</Processors><NodeCount>2</NodeCount></Requested>",
     {"process_count": 4, "node_count": 2}),
    ("<TaskGroup><TaskCount>4</TaskCount></TaskGroup>", {"process_count": 4}),
    ("<Processors>8</Processors><TaskGroup><TaskCount>4</TaskCount></TaskGroup>",
     {"process_count": 4, "cpu_cores_per_process": 2}),
    ("<Processors>8</Processors><TaskGroup><TaskDefaults><Requested><Processors>2</Processors></Requested>"
     "</TaskDefaults></TaskGroup>", {"process_count": 4, "cpu_cores_per_process": 2}),
    ("<TaskDistribution type='ProcessorsPerTask'>2</TaskDistribution><Processors>8</Processors>",
     {"process_count": 4, "cpu_cores_per_process": 2}),
    ("<TaskDistribution>3</TaskDistribution><NodeCount>2</NodeCount>", {"node_count": 2, "processes_per_node": 3}),
    ("<NodeCount>3</NodeCount><Processors>4</Processors>", {"process_count": 4}),
    ("<Memory>2</Memory>", {"memory": 2 << 20}),
    ("<Memory units='GB' metric='PerNode'>0.5</Memory><NodeCount>3</NodeCount>", {"memory": 3 << 29, "node_count": 3}),
    ("<TaskGroup><TaskCount>2</TaskCount><TaskDefaults><Memory units='KB'>3</Memory><Resource name='GPU'>2</Resource>"
     "</TaskDefaults></TaskGroup>", {"process_count": 2, "memory": 6 << 10, "gpu_cores_per_process": 2}),
    ("<Resource name='GPU'>4</Resource><Processors>2</Processors>", {"process_count": 2, "gpu_cores_per_process": 2}),
    ("<TaskGroup><Task><Node>a</Node></Task><Task><Node>b</Node></Task></TaskGroup>", {"process_count": 2}),
    ("<Requested><Processors op='GE' group='1'>4</Processors><Processors op='LE' group='-1'>8</Processors>"
     "</Requested>", {"process_count": 4}),
    ("<Requested><Processors preference='1'>4</Processors><Processors preference='2'>8</Processors></Requested>",
     {"process_count": 8}),
    ("<Extension type='Scheduler' name='ExclusiveNodeUse'>true</Extension>", {"exclusive_node_use": True}),
    ("<Requested><Processors group='1'>16</Processors><Memory group='-1'>1</Memory><Processors conj='Or' group='1'>8"
     "</Processors><Memory group='-1'>4</Memory></Requested>", {"process_count": 16, "memory": 1 << 20}),
    ("<Requested><Processors>16</Processors><Processors conj='Or' group='1'>8</Processors><Memory group='-1'>4</Memory>"
     "</Requested>", {"process_count": 16}),
    ("<Requested><Processors>16</Processors><Processors conj='Or'>8</Processors></Requested>", {"process_count": 16}),
    ("<Requested><Processors op='LE'>16</Processors></Requested>", {"process_count": 1}),
    ("<Requested><Processors op='GT'>16</Processors><Processors op='NE'>17</Processors></Requested>",
     {"process_count": 18}),
    ("<Requested><Memory op='GT'>1</Memory></Requested>", {"memory": (1 << 20) + 1}),
    ("<Requested><Memory op='GE' units='GB'>1</Memory><Memory op='LE' units='TB'>1</Memory></Requested>",
     {"memory": 1 << 30}),
    ("<Requested><Memory preference='-1'>1</Memory><Processors>2</Processors></Requested>", {"process_count": 2}),
    ("<Requested><Processors>4</Processors><Processors>5</Processors></Requested>", {"process_count": 4}),
    ("<Requested><Processors>4</Processors></Requested><TaskGroup><TaskCount>2</TaskCount><Requested><Processors "
     "preference='1'>6</Processors><Processors preference='2'>8</Processors></Requested></TaskGroup>",
     {"process_count": 2, "cpu_cores_per_process": 4}),
])
def test_resources(text: str, expected: dict[str, Any]) -> None:
    assert resources(text) == expected


EITHER = ("<Requested><Queue group='1'>a</Queue><Duration group='-1'>60</Duration><Queue conj='Or' group='1'>b</Queue>"
          "<Memory>1</Memory><Duration group='-1'>90</Duration></Requested>")
_EITHER = "(Queue = a and Duration = 60) or (Queue = b and Memory = 1 and Duration = 90)"


@pytest.mark.parametrize(("text", "expected"), [
    (EITHER, [f"Duration: 60 is taken of {_EITHER}", f"Queue: a is taken of {_EITHER}",
              f"Memory: only an alternative that is not taken asks for it: {_EITHER}"]),
    ("<Requested><Processors op='GE'>4</Processors><Processors op='LE'>8</Processors></Requested>",
     ["Processors: 4 is taken of GE 4, LE 8"]),
    ("<Requested><Memory preference='-1'>1</Memory></Requested>", ["Memory: the wish for 1 is not carried"]),
    ("<Requested><Memory op='LE'>1</Memory></Requested>",
     ["Memory: nothing is asked for, LE 1 is only an upper bound"]),
    ("<Requested><Memory op='NE'>1</Memory></Requested>", ["Memory: the condition NE 1 has no place in a JobSpec"]),
    ("<Requested><Queue>a</Queue><Queue conj='Nand'>b</Queue></Requested>",
     ["Queue: the condition not EQ b has no place in a JobSpec"]),
    ("<Requested><Processors>4</Processors><Processors>5</Processors></Requested>",
     ["Requested: the first value of each name is taken, for no value meets Processors = 4 and Processors = 5"]),
    ("<Requested><Memory>1</Memory><Memory metric='PerNode'>2</Memory></Requested>",
     ["Memory: EQ 2 does not fit beside 1"]),
    ("<Requested><Duration op='LE'>60</Duration></Requested>", []),
    ("<Requested><Memory units='GB'>1</Memory></Requested>", []),
])
def test_what_was_chosen_is_told(text: str, expected: list[str]) -> None:
    findings = Findings()
    spec(text + "<Environment export='true'/>", findings)
    assert [f.message for f in findings] == expected


@pytest.mark.parametrize(("text", "duration"), [
    ("", None), ("<Requested><Duration>60</Duration></Requested>", 60),
    ("<Requested><Duration op='GE'>60</Duration><Duration op='LE'>90</Duration></Requested>", 90),
    ("<Requested><Duration preference='1'>60</Duration><Duration preference='3'>30</Duration></Requested>", 30),
])
def test_duration(text: str, duration: int | None) -> None:
    attributes = spec(text).attributes
    assert attributes is not None
    assert attributes.duration == (None if duration is None else timedelta(seconds=duration))


@pytest.mark.parametrize(("text", "launcher"), [
    ("", None), ("<Processors>4</Processors>", None), ("<TaskGroup><TaskCount>1</TaskCount></TaskGroup>", None),
    ("<TaskGroup><TaskCount>2</TaskCount></TaskGroup>", "mpirun"),
    ("<Extension type='Scheduler' name='Launcher'>srun</Extension><TaskGroup><TaskCount>2</TaskCount></TaskGroup>",
     "srun"),
])
def test_launcher(text: str, launcher: str | None) -> None:
    assert spec(text).launcher == launcher


def test_nearest_scope_counts() -> None:
    made = spec("""<Arguments>far</Arguments><Environment export='true'><Variable name='A'>1</Variable><Variable
        name='B'>1</Variable></Environment><TaskGroupDefaults><Arguments>middle</Arguments></TaskGroupDefaults>
        <TaskGroup><TaskDefaults><Arguments>near</Arguments><Environment export='false'><Variable name='B'>2</Variable>
        </Environment></TaskDefaults></TaskGroup>""")
    assert (made.arguments, made.environment, made.inherit_environment) == (["near"], {"A": "1", "B": "2"}, False)


@pytest.mark.parametrize(("text", "expected"), [
    ("<User>u</User>", ("SSS501", "error", "User")),
    ("<User awarenessPolicy='Warn'>u</User>", ("SSS501", "warning", "User")),
    ("<Id>1</Id>", ("SSS501", "warning", "Id")),
    ("<Requested><Feature>f</Feature></Requested>", ("SSS501", "error", "Feature")),
    ("<Requested><Memory op='Match'>1</Memory></Requested>", ("SSS501", "error", "Memory")),
    ("<Requested><Memory context='Configured'>1</Memory></Requested>", ("SSS501", "error", "Memory/@context")),
    ("<Memory units='parsec'>1</Memory>", ("SSS501", "error", "Memory")),
    ("<OutputFile redirectList='Flush'>o</OutputFile>", ("SSS501", "error", "OutputFile/@redirectList")),
    ("<Dependency>x</Dependency>", ("SSS501", "error", "Dependency")),
    ("<Resource name='License' type='M'>1</Resource>", ("SSS501", "error", "Resource License")),
    ("<Extension type='Scheduler' name='Array'>1-3</Extension>", ("SSS501", "error", "Extension Array")),
    ("<State>Completed</State><ExitCode>0</ExitCode><Delivered><Node>n</Node></Delivered>",
     ("SSS501", "warning", "State, ExitCode, Delivered/Node")),
    ("<Arguments>'open</Arguments>", ("SSS502", "warning", "Arguments")),
    ("<Arguments>${A}</Arguments>", ("SSS502", "info", "Arguments")),
    ("<Name>/bin/x</Name>", ("SSS502", "warning", "Name")),
    ("<InitialWorkingDirectory>w</InitialWorkingDirectory>", ("SSS504", "warning", "InitialWorkingDirectory")),
    ("<NodeCount>3</NodeCount><Processors>4</Processors>", ("SSS501", "error", "NodeCount")),
    ("<Other awarenessPolicy='Warn'>1</Other>", ("SSS501", "warning", "Other")),
    ("<TaskGroup><TaskCount>2</TaskCount></TaskGroup>", ("SSS503", "warning", "Launcher")),
    ("<TaskGroup><Task><Arguments>1</Arguments></Task><Task><Arguments>2</Arguments></Task></TaskGroup>",
     ("SSS501", "error", "Arguments")),
])
def test_what_is_lost_is_told(text: str, expected: tuple[str, str, str]) -> None:
    assert expected in told(text)


@pytest.mark.parametrize(("kind", "name", "text"), [("sge", "memory", "mem_free"), ("lsf", "nnodes", "true")])
def test_with_which_option_something_was_said_is_no_option(kind: str, name: str, text: str) -> None:
    """No executor takes such an attribute for one of its own (``#$ -memory mem_free``, which qsub refuses)."""
    extension = f"<Extension type='{kind}' name='{name}'>{text}</Extension>"
    attributes = spec(extension).attributes
    assert attributes is not None and attributes.custom_attributes == {f"sssjob.{kind}.{name}": text}
    again = from_spec(spec(extension), Findings()).all("Extension")
    assert [(p.attributes["type"], p.attributes["name"], p.text) for p in again] == [(kind, name, text)]


def test_a_job_without_counts_is_one_process_on_one_node() -> None:
    assert resources("<Memory metric='PerNode' units='MB'>64</Memory>") == {"memory": 64 << 20}
    assert ("SSS502", "info", "Memory") in told("<Memory metric='PerProcessor' units='MB'>64</Memory>")
    assert ("SSS501", "error", "Memory") in told(
        "<Memory metric='PerNode' units='MB'>64</Memory><TaskGroup><TaskCount>2</TaskCount></TaskGroup>")


def test_export_not_stated_is_invented() -> None:
    findings = Findings()
    assert spec("", findings).inherit_environment is True
    assert [(f.rule, f.subject) for f in findings] == [("SSS503", "export")]


def test_script_needs_a_file() -> None:
    text = "<Job><Executable>#Script</Executable></Job>"
    root = read_document(text.encode()).root
    assert isinstance(root, Job)
    findings = Findings()
    to_spec(root, findings)
    assert ("SSS501", "Executable") in {(f.rule, f.subject) for f in findings.rejecting()}
    assert to_spec(root, Findings(), files={"Script": "/s/1"}).executable == "/s/1"


def test_equal_task_groups_become_one() -> None:
    part = "<TaskGroup><TaskCount>{}</TaskCount></TaskGroup>"
    findings = Findings()
    made = spec(part.format(2) + part.format(3), findings).resources
    assert isinstance(made, ResourceSpecV1) and made.process_count == 5
    assert ("SSS502", "TaskGroup") in {(f.rule, f.subject) for f in findings}
    assert ("SSS501", "error", "TaskGroup") in told(part.format(1) + "<TaskGroup><Arguments>x</Arguments></TaskGroup>")


def test_policy_ignore_is_silent() -> None:
    findings = Findings()
    to_spec(job("<User>u</User><Environment export='true'/>"), findings, policy=Policy.IGNORE)
    assert not list(findings)


@pytest.mark.parametrize(("name", "text", "why"), [
    ("StageIn", '{"source": "x"}', "target is missing"),
    ("StageIn", '{"target": "x", "source": ""}', "source is missing"),
    ("StageIn", "a b", 'it is no JSON object like {"source": "a", "target": "b"}'),
    ("StageOut", "[" * 100_000, 'it is no JSON object like {"source": "a", "target": "b"}'),
    ("StageOut", '["a", "b"]', 'it is no JSON object like {"source": "a", "target": "b"}'),
    ("StageOut", '{"source": "x", "target": 5}', "target is no text"),
    ("StageIn", '{"source": "x", "target": "y", "mode": "ZAP"}', "mode 'ZAP' is not known (known: COPY, LINK, MOVE)"),
    ("StageIn", '{"source": "x", "target": "y", "flags": "NONE"}',
     "'flags' is not known (known: source, target, mode)"),
    ("StageOut", '{"source": "x", "target": "y", "when": "ALWAYS"}',
     "'when' is not known (known: source, target, mode, flags)"),
    ("StageOut", '{"source": "x", "target": "y", "flags": "ALWAYS|"}',
     "flag '' is not known (known: NONE, IF_PRESENT, ON_SUCCESS, ON_ERROR, ON_CANCEL, ALWAYS)"),
    ("CleanupFlags", "NEVER",
     "flag 'NEVER' is not known (known: NONE, IF_PRESENT, ON_SUCCESS, ON_ERROR, ON_CANCEL, ALWAYS)")])
def test_malformed_staging_is_told_with_its_place(name: str, text: str, why: str) -> None:
    """It is no matter of what a JobSpec can hold, and half of it would stage other files than were meant."""
    findings = Findings()
    staged = spec(f"<Extension type='PSIJ' name='{name}'>{text}</Extension><Environment export='true'/>", findings)
    assert [(f.severity, f.path, f.message) for f in findings] == [
        ("error", "/Job/Extension", f"Extension {name}: it is malformed: {why}")]
    assert (staged.stage_in, staged.stage_out, staged.cleanup_flags) == (None, None, JobSpec().cleanup_flags)


# --- JobSpec -> job object ------------------------------------------------------------------------------------------

def test_full_spec_comes_back() -> None:
    attributes = JobAttributes(timedelta(minutes=10), "q", "a", "r", {"slurm.constraint": "x", "plain": "y"})
    full = JobSpec(
        "/bin/e", ["1", "b c"], "/d", "n", False, {"A": "1"}, "i", "o", "e",
        ResourceSpecV1(2, 4, 2, 3, 1, True, 1536 << 20), attributes, "/pre", "/post", "mpirun",
        {StageIn("http://h/f", "f", StagingMode.LINK), StageIn("/a", "b")},
        {StageOut("o", URI("file:///o"), StageOutFlags.ON_ERROR | StageOutFlags.IF_PRESENT, StagingMode.MOVE)},
        {"x", "y"}, StageOutFlags.ON_SUCCESS)
    findings = Findings()
    assert to_spec(from_spec(full, findings), findings) == full
    assert not list(findings)


def test_spec_findings() -> None:
    findings = Findings()
    job = from_spec(JobSpec("/x", ["${A}"], attributes=JobAttributes(timedelta(seconds=1.5), custom_attributes={
        "slurm.n": 3})), findings)
    assert [(f.rule, f.subject) for f in findings] == [("SSS502", "Arguments"), ("SSS502", "Duration"),
                                                       ("SSS502", "slurm.n")]
    assert job.requested is not None and job.requested.value("Duration") == 2


# --- the law: read(write(x)) == x for what the format can express ---------------------------------------------------

_NAMES = st.text("abcdefXYZ09_-.", min_size=1, max_size=8).filter(lambda t: t.strip(".-") != "")
_WORDS = st.lists(st.text("ab '\"\\$~*\t", max_size=6), max_size=4)
_CUSTOM: st.SearchStrategy[dict[str, object]] = st.dictionaries(
    _NAMES.map(lambda n: f"slurm.{n}"), _NAMES.map(lambda n: n), min_size=1, max_size=2)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Jobs in the form that from_spec gives, of anything that a JobSpec can hold."""
    nodes = draw(st.none() | st.integers(1, 4))
    each = draw(st.none() | st.integers(1, 4))
    many = draw(st.booleans())
    processes = draw(st.none() | st.integers(1, 3).map(lambda n: n * (nodes or 1)))
    spec = JobSpec(
        "/bin/" + draw(_NAMES), draw(st.none() | _WORDS), draw(st.none() | _NAMES.map(lambda n: f"/{n}")),
        draw(st.none() | _NAMES), draw(st.booleans()),
        draw(st.none() | st.dictionaries(st.from_regex("[A-Z_]{1,4}", fullmatch=True), st.text("ab c", max_size=5),
                                         min_size=1, max_size=3)),
        draw(st.none() | _NAMES), draw(st.none() | _NAMES), draw(st.none() | _NAMES),
        ResourceSpecV1(nodes, processes, None, each, draw(st.none() | st.integers(1, 3)), draw(st.booleans()),
                       draw(st.none() | st.integers(1, 1 << 45))),
        JobAttributes(draw(st.none() | st.integers(0, 10**6).map(lambda n: timedelta(seconds=n))),
                      draw(st.none() | _NAMES), draw(st.none() | _NAMES), draw(st.none() | _NAMES),
                      draw(st.none() | _CUSTOM)),
        launcher=draw(st.just("mpirun") | st.just("srun")) if many else None)
    return from_spec(spec, Findings())


@settings(max_examples=examples(75), deadline=None)
@given(jobs())
def test_job_comes_back(first: Job) -> None:
    findings = Findings()
    assert from_spec(to_spec(first, findings), findings) == first
    assert not findings.rejected


@given(_WORDS)
def test_arguments_come_back(words: list[str]) -> None:
    first = from_spec(JobSpec("/x", words), Findings())
    assert first.value("Arguments") == shlex.join(words)
    assert to_spec(first, Findings()).arguments == words


@given(st.integers(1, 1 << 50))
def test_memory_is_exact(amount: int) -> None:
    first = from_spec(JobSpec("/x", resources=ResourceSpecV1(memory=amount)), Findings())
    assert first.requested is not None and first.requested.memory
    assert isinstance(first.requested.memory.value, Decimal)
    made = to_spec(first, Findings()).resources
    assert isinstance(made, ResourceSpecV1) and made.memory == amount


def test_paths_are_text_in_documents() -> None:
    first = from_spec(JobSpec("/x", stdout_path=Path("a/b")), Findings())
    assert first.value("OutputFile") == "a/b"


# --- text -----------------------------------------------------------------------------------------------------------

def written(document: Document) -> tuple[str, Findings]:
    context = WriteContext()
    return TRANSLATOR.write(document, context), context.findings


ONE = '{"executable": "/bin/a", "attributes": {"duration": "60 s"}}'


def test_object_is_a_job() -> None:
    context = ReadContext(path="d/x.json")
    document = TRANSLATOR.read(ONE.encode(), context)
    assert isinstance(document.root, Job)
    assert document.root.value("Executable") == "/bin/a"
    text, findings = written(document)
    assert JSONSerializer().loads(text) == JSONSerializer().loads(ONE)
    assert not list(findings)


@pytest.mark.parametrize("text", [f"[{ONE}, {ONE}]", f"{ONE}\n{ONE}\n", f"\ufeff[\n{ONE},\n{ONE}\n]\n"])
def test_several_are_a_group(text: str) -> None:
    document = TRANSLATOR.read(text.encode(), ReadContext(path="d/x.json"))
    assert isinstance(document.root, JobGroup)
    assert (document.root.value("Id"), len(document.root.jobs)) == ("x.json", 2)
    again, findings = written(document)
    assert TRANSLATOR.read(again.encode(), ReadContext(path="d/x.json")) == document
    assert [f.severity for f in findings] == ["warning"]


@pytest.mark.parametrize(("text", "rule", "line"), [
    ("", "SSS112", 0), ("{", "SSS111", 1), ("[]", "SSS112", 0), (f"[{ONE},]", "SSS111", 1), (f"[{ONE}] x", "SSS111", 1),
    ("[" * 100_000, "SSS111", 0), ("3", "SSS112", 1), (f'{ONE}\n{{"executable": "/x", "no": 1}}', "SSS112", 2),
    ('{"executable": 1}', "SSS112", 1), ('{"name": "a", "name": "b"}', "SSS112", 1),
    ('{"resources": {"__version": 1, "node_count": -1}}', "SSS112", 1),
])
def test_bad_text_is_refused(text: str, rule: str, line: int) -> None:
    with pytest.raises(RejectedError) as caught:
        TRANSLATOR.read(text.encode(), ReadContext())
    assert next((f.rule, f.line) for f in caught.value.findings if f.rejects) == (rule, line)


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(RejectedError, match="UTF-8"):
        TRANSLATOR.read(b"\xff\xfe{", ReadContext())


def test_dependencies_and_references_are_reported() -> None:
    document = read_document(b"""<JobGroup><Id>g</Id><JobDefaults><Executable>/d</Executable></JobDefaults>
        <Job><Id>a</Id></Job><Job><Id>b</Id><Dependency>a</Dependency></Job><Job>other</Job></JobGroup>""")
    text, findings = written(document)
    assert text.count('"executable": "/d"') == 2
    assert [f.subject for f in findings.rejecting()] == ["Dependency", "Job"]


@pytest.mark.parametrize(("name", "path", "expected"), [
    ("out.{jobid}-{index:3}", "out.{jobid}-{index:3}", ["OutputFile: PSI/J fills nothing in for {jobid}, {index:3}"]),
    ("a{{jobid}}", "a{jobid}", []),
])
def test_tokens_of_file_names(name: str, path: str, expected: list[str]) -> None:
    """A JobSpec alone has none; braces that stand for themselves come over and back."""
    findings = Findings("x")
    spec = to_spec(job(f"<OutputFile>{name}</OutputFile>"), findings)
    assert str(spec.stdout_path) == path
    assert [f.message for f in findings if f.subject == "OutputFile"] == expected
    assert expected or from_spec(spec, Findings("x")).value("OutputFile") == name


@pytest.mark.parametrize(("executor", "stated", "words"), [
    ("slurm", "", "SSS503 info: Environment: the job does not say whether the submitter's variables go along; PSI/J "
                  "passes them on"),
    ("arc", "", "SSS503 info: Environment: the job does not say whether the submitter's variables go along; arc passes "
                "none on"),
    ("slurm", "<Environment export='true'/>", ""),
    ("arc", "<Environment export='true'/>", "SSS602 error: Environment: the submitter's variables are to go along; arc "
                                            "passes none on"),
    ("iri", "<Environment export='false'/>", ""),
])
def test_variables_of_the_submitter_and_a_service_elsewhere(executor: str, stated: str, words: str) -> None:
    """A service that is reached over the network never sees them: that is told, and follows the policy."""
    (job, _), = read_document(f"<Job><Executable>/bin/true</Executable>{stated}</Job>".encode()).jobs()
    findings = Findings()
    to_spec(job, findings, target=Target(rule="SSS602", executor=executor))
    assert [f"{finding.rule} {finding.severity}: {finding.message}" for finding in findings
            if "Environment" in finding.message] == [words][:bool(words)]
