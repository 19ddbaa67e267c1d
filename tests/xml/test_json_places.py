"""Findings about JSON name the line and column of what they are about, as those about XML do."""

from __future__ import annotations

import json
import random

import pytest

from sssjob.conversion.intake import gate
from sssjob.document.model import Document
from sssjob.errors import RejectedError
from sssjob.findings import Finding, Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.xml.json_places import JsonPlaces

TWIN = """{"JobGroup": {"Id": "g",
 "Job": [
  {"Id": "a", "Executable": "/bin/x", "Requested":
    {"Processors": {"value": 16, "op": "GE"}, "Node": ["n1",
      "n2"]}},
  {"Id": "b",
   "Executable": "http://x",
   "Dependency": "b", "TaskGroup": [{"TaskCount": 2},
     {"TaskCount":
       -1}]},
  {"Id": "c", "Requested": [{"Processors": 4}, {"Colour": "red"},
    {"Processors": {"value": 2, "conj": "Or", "op": "XX"}}]}]}}
"""
JOBSPECS = """[{"executable": "/bin/a", "arguments": ["x"]},
 {"executable": "/bin/${B}b",
  "environment": {"A": "1", "B": "${C}"},
  "resources": {"node_count": 3,
     "process_count": 6, "memory": 3000000001},
  "attributes": {"duration": "90.5 s",
    "queue_name": "a b", "custom_attributes": {"slurm.constraint": "x",
       "lsf.foo": 7}}}]
"""
JOBSPEC = """{"version": 1, "resources": [
  {"type": "slot", "count": 2, "label": "task",
   "with": [{"type": "core", "count": 1}, {"type": "fpga", "count": 3}]}],
 "tasks": [{"command": ["a"], "slot": "task",
   "count": {"per_slot": 1}}],
 "attributes": {"system": {"duration": -5, "colour": 7,
   "queue": 3}}}
"""


def told(name: str, text: str, target: str = "") -> list[Finding]:
    """What reading a text, checking it and writing it for a target tells."""
    context = ReadContext("x.json", policy=Policy.WARN)
    try:
        document = get(name).read(text.encode(), context)
    except RejectedError as error:
        return list(error.findings)
    findings = [*context.findings, *gate(document)]
    if target:
        writing = Findings("x.json")
        writing.places = document.places
        body = next(iter(document.jobs()))[0] if name != "psij" else list(document.jobs())[1][0]
        get(target).write(Document(body, {}, "x.json", places=document.places),
                          WriteContext(writing, policy=Policy.WARN))
        findings += writing
    return findings


def stands(findings: list[Finding], text: str) -> dict[str, str]:
    """Subject -> what stands in the text where the findings about it point."""
    lines = text.splitlines()
    return {f.subject: lines[f.line - 1][f.column - 1:][:14] for f in findings}


def test_the_twin() -> None:
    """A value in a list is found itself, a member by its key, an ordered container by the numbers of its members."""
    assert stands(told("sss-json", TWIN, "slurm"), TWIN) == {
        "Colour": '"Colour": "red', "op": '"Processors": ', "Processors": '"Processors": ', "TaskCount": '"TaskCount":',
        "Id": '"Id": "a", "Ex', "Executable": '"Executable": ', "b": '"Dependency": '}
    assert {(f.subject, f.line) for f in told("sss-json", TWIN)} == {
        ("Colour", 11), ("op", 12), ("TaskCount", 9), ("Executable", 7), ("b", 8)}


def test_job_specs() -> None:
    """The second of two; what a document calls by other names is found by those of a JobSpec."""
    assert {(f.subject, f.line) for f in told("psij", JOBSPECS, "sge")} >= {
        ("Environment", 3), ("Duration", 6), ("lsf.foo", 8), ("Queue", 7), ("NodeCount", 4)}


@pytest.mark.parametrize(("member", "line", "column"), [
    ('"resources": {"node_count": 1,\n "colour": 1}', 3, 2),
    ('"resources": {"node_count": 2, "process_count": 5}', 2, 1),
    ('"colour": 1', 2, 1), ('"attributes": {"duration":\n  "1 hour", "queue_name": "b"}', 2, 16)])
def test_what_is_no_job_spec(member: str, line: int, column: int) -> None:
    finding, = told("psij", f'{{"executable": "/bin/a",\n{member}}}')
    assert (finding.line, finding.column) == (line, column), str(finding)


def test_a_jobspec() -> None:
    """What a slot has beside cores and GPUs, and a limit below 0, were lost in silence."""
    findings = told("flux-jobspec", JOBSPEC, "torque")
    assert {(f.rule, f.subject, f.line) for f in findings if f.rule in ("SSS501", "SSS505")} == {
        ("SSS501", "fpga", 1), ("SSS501", "Duration", 6), ("SSS501", "Extension setattr", 6),
        ("SSS505", "attributes.system.queue", 7)}
    assert ("TaskCount", 5) in {(f.subject, f.line) for f in findings}


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_jobspec_in_yaml(mark: bytes) -> None:
    """What stands in JSON has the same lines in YAML, of which it is a form; those of blocks have theirs."""
    assert [(f.rule, f.subject, f.line - 1) for f in told("flux-jobspec", f"# YAML\n{JOBSPEC}", "torque")] == [
        (f.rule, f.subject, f.line) for f in told("flux-jobspec", JOBSPEC, "torque")]
    text = """version: 1
resources:
  - type: slot
    label: größe
    count: 2
    with:
      - {type: core, count: -1}
tasks: [{command: [/bin/a], slot: größe, count: {per_slot: 1}}]
attributes:
  system: {duration: 60, cwd: 'größe', queue: 7}
"""
    with pytest.raises(RejectedError) as refused:
        get("flux-jobspec").read(mark + text.encode(), ReadContext(policy=Policy.WARN))
    assert {(f.subject, f.line, f.column) for f in refused.value.findings if f.severity == "warning"} == {
        ("resources[0].with[0].count", 7, 22), ("attributes.system.queue", 10, 40)}


@pytest.mark.parametrize(("text", "place"), [
    ("version: 1\nresources: &a []\ntasks: *a\n", (3, 8)), ("version: 1\nresources: [\n", (3, 1)),
    ("version: 1\nresources: {}}\n", (2, 14)), ("version: 1\ntasks: !!set {a}\n", (0, 0))])
def test_what_is_no_yaml_of_a_jobspec(text: str, place: tuple[int, int]) -> None:
    context = ReadContext()
    with pytest.raises(RejectedError):
        get("flux-jobspec").read(text.encode(), context)
    finding, = context.findings
    assert (finding.rule, finding.subject, (finding.line, finding.column)) == ("SSS111", "YAML", place)


def test_every_value_of_any_text_is_found() -> None:
    """Against Python's own reader: the value that begins where a pointer leads to, is the one that it means."""
    dice = random.Random(7)
    decoder = json.JSONDecoder()

    def value(depth: int) -> object:
        """Any value."""
        kind = dice.randrange(7 if depth else 4)
        if kind < 4:
            return (dice.randrange(-5, 99), 'a"b\\{[,: ü', None, 1.5e-7)[kind]
        if kind == 4:
            return [value(depth - 1) for _ in range(dice.randrange(4))]
        return {dice.choice('xyz"{]\\ü') + str(n): value(depth - 1) for n in range(dice.randrange(4))}

    def walk(places: JsonPlaces, text: str, inner: object, steps: tuple[str, ...]) -> None:
        """Everything inside a value."""
        place = places.at(0, steps)
        assert place is not None
        at = sum(len(line) for line in text.splitlines(keepends=True)[:place[0] - 1]) + place[1] - 1
        decoded, end = decoder.raw_decode(text, at)
        if steps and not steps[-1].isdigit():
            assert decoded == steps[-1]
            decoded, _ = decoder.raw_decode(text, text.index(":", end) + 1 + len(" "))
        assert decoded == inner
        members = inner.items() if isinstance(inner, dict) else enumerate(inner) if isinstance(inner, list) else ()
        for key, member in members:
            walk(places, text, member, (*steps, str(key)))

    for _ in range(60):
        whole = {"top": value(4)}
        text = json.dumps(whole, indent=dice.choice([None, 1]), ensure_ascii=dice.random() < 0.5)
        walk(JsonPlaces(text.encode(), "x.json"), text, whole, ())


@pytest.mark.parametrize("text", [
    '{"Job": {"Id": "a", "X": [}}', '{"Job": 3', "{", '{"Job": {"Id": ["a", {"b": [[1]]}]}}',
    '{"Job": [[], {}, 1, {"Id": "a", "B": 2}]}', '{"Job": {"": 1, "/": 2, "~": {"[1]": 3}}}'])
def test_texts_that_are_no_documents_have_findings_with_places(text: str) -> None:
    findings = told("sss-json", text)
    assert findings
    assert all(f.line == 1 for f in findings), [str(f) for f in findings]


def test_no_source_line_is_kept() -> None:
    """One line is often the whole text, with the values of all variables; that of XML is masked."""
    text = ('{"executable": "/bin/a", "arguments": [], "environment": {"API_KEY": "12345678"}, '
            '"attributes": {"queue_name": "a b"}}')
    findings = told("psij", f"[{text},{text}]", "slurm")
    assert findings
    assert not any("12345678" in str(f.record()) for f in findings)
