"""Jobspecs of Flux: as flux-core prints them for its options, read back, and what they have no place for."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.model import Document, Job
from sssjob.errors import RejectedError, UsageError
from sssjob.findings import Findings, Policy
from sssjob.lrm.flux.jobspec import faults
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.specs._flux_constraints import as_object, as_text
from tests.strategies import examples

TESTS = Path(__file__).parents[1]
VECTORS: list[dict[str, Any]] = json.loads(
    (TESTS / "fluxexec/fixtures/flux-core-0.88.0/cli-to-jobspec.json").read_text())["vectors"]
#: Options of flux-submit alone, and what is no part of a jobspec.
OTHER = ("--cores", "--tasks-per", "--urgency")
SUBMITTED = [v for v in VECTORS if v["ok"] and not any(o in v["options"] for o in OTHER)]
VERDICTS: list[dict[str, Any]] = [v for v in json.loads(
    (TESTS / "fluxexec/fixtures/flux-core-0.88.0/jobspec-verdicts.json").read_text())["vectors"] if not v.get("quirk")]
RECORDED = json.loads((TESTS / "fixtures/flux-0.88/job-info-jobspec.json").read_text())


def read(value: object, policy: Policy | None = None, **options: str) -> tuple[Document, Findings]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    context = ReadContext("spec", Findings("spec"), policy=policy, options=options)
    return get("flux-jobspec").read(data, context), context.findings


def write(document: Document) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    context = WriteContext(Findings("spec"), policy=Policy.WARN)
    answer = json.loads(get("flux-jobspec").write(document, context))
    assert faults(answer, "rfc") == [] and faults(answer, "flux") == []         # whatever is written suits both
    return answer, [(f.kind, f.subject) for f in context.findings]


def from_options(options: str, argv: list[str]) -> Document:
    """A job with the options of a command line."""
    context = ReadContext("job", Findings("job"), policy=Policy.WARN, options={"set": options})
    document = get("flux").read(b"#!/bin/sh\n", context)
    job = next(j for j, _ in document.jobs())
    job.set("Executable", argv[0])
    job.set("Arguments", shlex.join(argv[1:]))
    return Document(job)


def bare(value: dict[str, Any]) -> dict[str, Any]:
    """Without what flux-core puts there though nobody asked for it."""
    system = value["attributes"]["system"]
    if not system.get("environment"):
        system.pop("environment", None)
    system["duration"] = float(system["duration"])
    return value


@pytest.mark.parametrize("case", SUBMITTED, ids=[v["options"] for v in SUBMITTED])
def test_options_become_the_jobspec_that_flux_prints(case: dict[str, Any]) -> None:
    text, _ = write(from_options(case["options"], case["argv"]))
    assert bare(text) == bare(case["jobspec"])


JOBSPECS = [*(v["jobspec"] for v in VECTORS if v["ok"]), RECORDED,
            *(v["jobspec"] for v in VERDICTS if not faults(v["jobspec"], "rfc") + faults(v["jobspec"], "flux"))]


@pytest.mark.parametrize("value", JOBSPECS)
def test_reading_what_was_written(value: dict[str, Any]) -> None:
    document, findings = read(value)
    text, reported = write(document)
    assert reported == ([("invented", "Processors")] if [f.subject for f in findings] == ["resources"] else [])
    again, _ = read(text)
    assert reported or (again.root == document.root and again.files == document.files)
    assert write(again)[0] == text


def test_a_recorded_one_comes_back_whole() -> None:
    assert write(read(RECORDED)[0])[0] == RECORDED


def test_what_it_asks_for() -> None:
    job = next(j for j, _ in read({
        "version": 1, "resources": [{"type": "node", "count": 2, "exclusive": True, "with": [
            {"type": "slot", "count": 4, "label": "task", "with": [
                {"type": "core", "count": 3}, {"type": "gpu", "count": 1}]}]}],
        "tasks": [{"command": ["app", "two words"], "slot": "task", "count": {"per_slot": 1}}],
        "attributes": {"system": {
            "duration": 5400.0, "cwd": "/run", "queue": "batch", "bank": "phys", "job": {"name": "cfd"},
            "environment": {"A": "5$", "B": None, "F%": "x"}, "project": "p1",
            "dependencies": [{"scheme": "afterok", "value": "f1"}, {"scheme": "begin-time", "value": "1767225600"}],
            "constraints": {"and": [{"properties": ["a", "^b"]}, {"hostlist": ["n[1-4]"]}]},
            "shell": {"options": {"output": {"stdout": {"type": "file", "path": "o.{{id}}", "label": True},
                                             "mode": "append"},
                                  "signal": {"signum": 12, "timeleft": 90}, "rlimit": {"core": 0}}}},
            "user": {"note": {"x": 1}}}})[0].jobs())
    assert job.requested is not None and job.environment is not None
    assert [(p.tag, p.text) for p in job.requested.properties()] == [
        ("Duration", "5400"), ("NodeCount", "2"), ("Feature", "a"), ("Feature", "b"), ("Node", "n[1-4]")]
    assert {p.tag: p.text for p in job.properties() if p.tag != "Extension"} == {
        "Executable": "app", "Arguments": "'two words'", "Name": "cfd", "Project": "phys", "Queue": "batch",
        "Dependency": "f1", "EligibleTime": "1767225600", "InitialWorkingDirectory": "/run",
        "OutputFile": "o.{jobid}"}
    assert job.environment.variables() == {"A": "5$"} and job.environment.export is False
    assert [p.text for p in job.all("Extension")] == [
        "true", "USR2@90", "output.stdout.label=true", "environment.B=null", "environment.F%=x", "project=p1",
        'user.note={"x":1}', "core=0", "flux"]


def test_a_batch_script_goes_along() -> None:
    script = "#!/bin/sh\n#FLUX: -N2 -n4\n#FLUX: --broker-opts=-v\nmodule load x\n"
    document = get("flux").read(script.encode(), ReadContext())
    output, _ = write(document)
    system = output["attributes"]["system"]
    assert output["tasks"][0]["command"] == ["flux", "broker", "-v", "{{tmpdir}}/script"]
    assert system["files"]["script"]["data"] == "#!/bin/sh\nmodule load x\n"
    assert system["shell"]["options"]["per-resource"] == {"type": "node"}
    back = read(output)[0]
    assert back.files == document.files
    text = get("flux").write(back, WriteContext(policy=Policy.WARN))
    assert text == ("#!/bin/sh\n#FLUX: --nodes=2\n#FLUX: --nslots=4\n#FLUX: --cores-per-slot=1\n#FLUX: --env=-*\n"
                    "#FLUX: --broker-opts=-v\nmodule load x\n").replace("#FLUX: --env=-*\n", "")


@pytest.mark.parametrize(("text", "value"), [
    ("a", {"properties": ["a"]}), ("a b,c", {"properties": ["a", "b", "c"]}), ("-a", {"properties": ["^a"]}),
    ("not (a|b)", {"not": [{"or": [{"properties": ["a"]}, {"properties": ["b"]}]}]}),
    ("-host:n7", {"not": [{"hostlist": ["n7"]}]}), ("rank:0-3", {"ranks": ["0-3"]}),
    ("a or b and c", {"or": [{"properties": ["a"]}, {"properties": ["b", "c"]}]}),
])
def test_constraints(text: str, value: dict[str, Any]) -> None:
    assert as_object(text) == value
    assert as_object(as_text(value)) == value


@pytest.mark.parametrize("text", ["", "a|", "(a", "a)", "'a", "memory:3", "(" * 10_000, "-", "and", "host:"])
def test_malformed_constraints(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        as_object(text)


@pytest.mark.parametrize("value", [{}, {"and": []}, {"properties": ["a b"]}, {"properties": ["a"], "or": []}])
def test_what_is_no_constraint_stays_an_attribute(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        as_text(value)
    spec = VERDICTS[0]["jobspec"] | {"attributes": {"system": {"duration": 1, "constraints": value}}}
    assert write(read(spec)[0])[0]["attributes"]["system"]["constraints"] == value


def _with(**changes: object) -> dict[str, Any]:
    """A jobspec that flux-core takes, with other values at places with dots."""
    spec: dict[str, Any] = json.loads(json.dumps(VERDICTS[0]["jobspec"]))
    for place, value in changes.items():
        *steps, last = place.split("__")
        at: Any = spec
        for step in steps:
            at = at[int(step)] if step.isdigit() else at[step]
        at[last] = value
    return spec


#: Seen with a live broker of flux-core 0.88, which refuses each of them.
REFUSED = [
    ("resources__0__label", 5, "resources[0].label: is not text"),
    ("resources__0__exclusive", "yes", "resources[0].exclusive: is not true or false"),
    ("tasks__0__count", {"total": 0}, "tasks[0].count.total: is no whole number from 1"),
    ("tasks__0__count", {"per_slot": 0}, "tasks[0].count.per_slot: is no whole number from 1"),
    ("tasks__0__count", {"per_resource": {"type": "node", "count": 1}},
     "tasks[0].count: the key 'per_resource' is not known"),
    ("attributes__other", {}, "attributes: the key 'other' is not known"),
    ("extra", 1, "jobspec: the key 'extra' is not known"),
    ("attributes__system__dependencies", {}, "attributes.system.dependencies: is no list"),
    ("attributes__system__dependencies", [{"scheme": "afterok"}],
     "attributes.system.dependencies[0]: is no object with the text value"),
    ("attributes__system__dependencies", [{"scheme": "afterok", "value": 5}],
     "attributes.system.dependencies[0]: is no object with the text value"),
    ("attributes__system__constraints", [], "attributes.system.constraints: is no object"),
    ("attributes__system__constraints", {"foo": ["x"]},
     "attributes.system.constraints: the operator 'foo' is not known"),
    ("attributes__system__constraints", {"properties": "a"}, "attributes.system.constraints.properties: is no list"),
    ("attributes__system__constraints", {"and": [1]}, "attributes.system.constraints.and[0]: is no object"),
]


@pytest.mark.parametrize(("place", "value", "message"), REFUSED)
def test_what_flux_core_refuses_is_refused(place: str, value: object, message: str) -> None:
    spec = _with(**{place: value})
    assert faults(spec, "flux") == [message]
    with pytest.raises(RejectedError, match=re.escape(message)):
        read(spec)


YAML = b"""version: 1
resources:
  - type: slot
    count: 2
    label: task
    with:
      - {type: core, count: 1}
tasks:
  - command: [app, "yes", 2026-01-02]
    slot: task
    count: {per_slot: 1}
attributes:
  system:
    duration: 60
"""


def test_yaml() -> None:
    job = next(j for j, _ in read(YAML)[0].jobs())
    assert job.arguments == "yes 2026-01-02" and job.task_groups[0].task_count == 2


@pytest.mark.parametrize("data", [
    b"", b"{", b"[]", b'{"version": 1}', b'{"a": 1, "a": 2}', b"a: &x [1]\nb: *x\n", b"a: [", b"\xff\xfe",
    b"- " * 500 + b"x", b'{"version": NaN}', b"[" * 100_000, b"a: !!python/object/apply:os.system [x]\n",
    b"a: !!binary aGk=\n", b"\t{\x00}"])
def test_bad_text(data: bytes) -> None:
    with pytest.raises(RejectedError):
        read(data)


def test_large_text() -> None:
    with pytest.raises(RejectedError, match="yaml_bytes"):
        read(b"a: " + b"x" * (1 << 20))


def test_who_judges() -> None:
    no_duration = VERDICTS[0]["jobspec"] | {"attributes": {"system": {}}}
    assert not read(no_duration, level="schema")[1].rejected
    with pytest.raises(RejectedError):
        read(no_duration)
    extra = VERDICTS[0]["jobspec"] | {"resources": [{**VERDICTS[0]["jobspec"]["resources"][0], "x": 1}]}
    assert [f.severity for f in read(extra)[1]] == ["info"]
    with pytest.raises(RejectedError):
        read(extra, level="rfc")
    with pytest.raises(UsageError, match="level is one of"):
        read(extra, level="nobody")


@pytest.mark.parametrize("case", VERDICTS, ids=[v["name"] for v in VERDICTS])
def test_no_verdict_ends_in_another_exception(case: dict[str, Any]) -> None:
    try:
        document, _ = read(case["jobspec"], policy=Policy.WARN)
    except RejectedError:
        return
    write(document)


def test_what_it_has_no_place_for() -> None:
    text = b"#!/bin/sh\n#SBATCH -n 4 --mem=8G -a 1-3 --mail-type=END --nice=5 --export=ALL\n"
    _, told = write(get("slurm").read(text, ReadContext(policy=Policy.WARN)))
    assert set(told) == {("dropped", "Memory"), ("dropped", "Extension Array"), ("dropped", "NotificationList"),
                         ("dropped", "Extension Nice"), ("invented", "Processors"), ("site-dependent", "Environment")}
    _, told = write(get("flux").read(
        b"#!/bin/sh\n#FLUX: -n1 -c1 --urgency=3 --flags=debug --env=A=$B --rlimit=core --setattr=^f=x\n",
        ReadContext()))
    assert set(told) == {("dropped", "Priority"), ("dropped", "Extension flags"), ("dropped", "Extension env"),
                         ("dropped", "Extension rlimit"), ("dropped", "Extension setattr")}


def test_recognised() -> None:
    from sssjob.translators.recognise import guess

    assert guess(json.dumps(RECORDED).encode())[0].name == guess(YAML)[0].name == "flux-jobspec"


VALUES = st.recursive(st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=5),
                      lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                          st.sampled_from(["type", "count", "with", "a.b", "", "output", "stdout", "options"]), inner,
                          max_size=3), max_leaves=8)


@settings(max_examples=examples(53))
@given(st.sampled_from(["shell", "environment", "dependencies", "constraints", "job", "files", "cwd", "x"]), VALUES)
def test_any_attribute_comes_back_or_is_refused(name: str, value: object) -> None:
    spec = VERDICTS[0]["jobspec"] | {"attributes": {"system": {"duration": 1, name: value}}}
    try:
        document, _ = read(spec)
        text, _ = write(document)
        again, _ = read(text)
    except RejectedError:
        return
    assert write(again)[0] == text
    assert isinstance(next(j for j, _ in again.jobs()), Job)


ONE = [{"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}], "label": "task"}]


@pytest.mark.parametrize(("options", "resources", "refused"), [
    ("-n0", ONE, ["--nslots 0: flux batch refuses it: asks for no slots"]),
    ("-n1 -c0", ONE, ["--cores-per-slot 0: flux batch refuses it: is below 1"]),
    ("-N0 -n1", ONE, ["--nodes 0: flux batch refuses it: is below 1"]),
    ("-N1 -n0", [{"type": "node", "count": 1, "with": ONE, "exclusive": True}], []),
    ("-n1 -g0", ONE, []),
])
def test_no_count_of_nothing_gets_into_a_jobspec(options: str, resources: object, refused: list[str]) -> None:
    context = WriteContext(Findings("job"))
    text = f"#!/bin/sh\n#FLUX: {options}\n./a\n"
    answer = json.loads(get("flux-jobspec").write(get("flux").read(text.encode(), ReadContext()), context))
    assert answer["resources"] == resources
    assert [f.message for f in context.findings if f.severity != "info"] == refused


def test_unbuffered_is_options_of_the_shell() -> None:
    context = WriteContext(Findings("job"))
    document = get("flux").read(b"#!/bin/sh\n#FLUX: -n1 -u\n./a\n", ReadContext())
    answer = json.loads(get("flux-jobspec").write(document, context))
    assert answer["attributes"]["system"]["shell"]["options"] == {
        "output": {**{stream: {"buffer": {"type": "none"}} for stream in ("stdout", "stderr")}, "batch-timeout": 0.05},
        "input": {"batch-timeout": 0}, "per-resource": {"type": "node"}}
    assert [f.message for f in context.findings if f.severity != "info"] == []


@pytest.mark.parametrize("seconds", [float("inf"), float("nan")])
def test_a_duration_is_a_finite_number_of_seconds(seconds: float) -> None:
    spec = {"resources": [{"type": "slot", "count": 1, "label": "t", "with": [{"type": "core", "count": 1}]}],
            "tasks": [{"command": ["x"], "slot": "t", "count": {"per_slot": 1}}],
            "attributes": {"system": {"duration": seconds}}, "version": 1}
    assert list(faults(spec, "flux")) == ["attributes.system.duration: is no number"]
