"""JobSpecs by the plan of a shape are those of the whole way."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from psij import JobSpec
from sssjob.document.model import Job
from sssjob.findings import Findings, Policy
from sssjob.request.asked import Target
from sssjob.translators.specs import _spec_plans
from sssjob.translators.specs._psij_to_spec import to_spec
from sssjob.translators.specs._spec_plans import SpecPlans
from sssjob.xml.reader import read_document

SLURM = Target(rule="SSS602", handled=frozenset(("Id", "Hold")), executor="slurm", launcher="srun")
TARGETS = (SLURM, Target(rule="SSS602", handled=frozenset(("Id",)), executor="local", launcher="multiple"))
VALUES = {
    "Id": ("j1", "j2", "j3", "a b"),
    "Name": ("first", "second", "/bin/echo", "echo", "two words", "é", "a\nb"),
    "Executable": ("/bin/echo", "/bin/echo", "echo", "#script", "http://host/x"),
    "Arguments": ("a", "b", "1 '2 3'", "", "a b", "'2  3' 4", "'4'", '"5 6" 7', "it's", "'", "a  b", " a", "$HOME x",
                  "${X} y", "a;b c", "~/a b", "a\\ b c", "é b"),
    "OutputFile": ("o1", "o2", "o3", "", "o 3", "{jobid}.out", "/dev/null"),
    "ErrorFile": ("e1", "e2", "o1", "{name}"),
    "InputFile": ("i1", "i2", "i3", "o1"),
    "InitialWorkingDirectory": ("/tmp", "/tmp", "relative"),
    "Variable": ("1", "2", "3", "", "${HOME}", "a b", "PATH"),
    "Duration": ("60", "600", "61", "0", "00060", "90.5", "-1", "x", "99999999999", "123456789"),
    "Processors": ("1", "1", "4"), "TaskCount": ("1", "3"), "NodeCount": ("1", "2"), "Memory": ("5", "7"),
}


def _of(chance: random.Random, tags: Iterable[str], odd: float, attributes: str = "") -> str:
    """Properties, mostly with one of their first three values, and now and then twice."""
    texts = {tag: chance.choice(VALUES[tag] if chance.random() < odd else VALUES[tag][:3]) for tag in tags}
    return "".join(f"<{tag}{attributes}>{text}</{tag}>" * (2 if chance.random() < odd / 4 else 1)
                   for tag, text in texts.items())


def _jobs(seed: int, number: int) -> Iterator[Job]:
    """Jobs of a few shapes, of which some have values that are no part of any plan."""
    chance = random.Random(seed)
    shapes = [[tag for tag in tags if chance.random() < 0.8] for tags in 6 * [list(VALUES)[:8]]]
    for _ in range(number):
        odd = chance.choice((0.0, 0.0, 0.1))
        variables = "".join(_of(chance, ["Variable"], odd, f" name='{name}'") for name in (
            "A", "A" if chance.random() < odd else "B"))
        text = _of(chance, chance.choice(shapes), odd) + f"<Environment export='true'>{variables}</Environment>"
        more = [tag for tag in ("NodeCount", "Memory") if chance.random() < odd]
        text += f"<Requested>{_of(chance, ['Duration', 'Processors', *more], odd)}</Requested>"
        if chance.random() < odd:
            text += f"<TaskGroup>{_of(chance, ['TaskCount', 'OutputFile'], odd)}</TaskGroup>"
        if chance.random() < odd:
            text += "<Unknown>1</Unknown><Priority>3</Priority>"
        policy = " awarenessPolicy='Ignore'" if chance.random() < odd else ""
        job = read_document(f"<Job{policy}>{text}</Job>".encode()).root
        assert isinstance(job, Job)
        yield job


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_makes_what_the_whole_way_makes(seed: int) -> None:
    """The same JobSpec and the same findings, whatever jobs came before; and none shares anything that can change."""
    plans, specs = SpecPlans(), list[tuple[JobSpec, str]]()
    for n, job in enumerate(_jobs(seed, 400)):
        for target in TARGETS:
            policy = Policy.WARN if n % 9 == 0 else Policy.REJECT
            mine, whole = Findings(), Findings()
            spec = plans.to_spec(job, mine, policy=policy, files={}, target=target)
            assert spec == to_spec(job, whole, policy=policy, files={}, target=target)
            assert [str(finding) for finding in mine] == [str(finding) for finding in whole]
            specs.append((spec, repr(spec)))
            if n % 7 == 0:
                if spec.arguments is not None:
                    spec.arguments.append("more")
                if spec.environment is not None:
                    spec.environment["MORE"] = "x"
                assert spec.attributes is not None
                spec.attributes.set_custom_attribute("slurm.qos", "high")
                specs.pop()
    assert all(repr(spec) == text for spec, text in specs)


def test_most_jobs_of_a_shape_take_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way is gone for the first two jobs, and for the two marked ones."""
    whole: list[Job] = []

    def counted(job: Job, *arguments: Any, **more: Any) -> JobSpec:
        whole.append(job)
        return to_spec(job, *arguments, **more)

    monkeypatch.setattr(_spec_plans, "to_spec", counted)
    plans = SpecPlans()
    for n in range(20):
        text = (f"<Job><Id>j{n}</Id><Name>n{n}</Name><Executable>/bin/echo</Executable>"
                f"<Arguments>--case {n} 'of 20'</Arguments><OutputFile>o{n}</OutputFile><Environment export='true'>"
                f"<Variable name='N'>{n}</Variable></Environment>"
                f"<Requested><Duration>{n + 1}</Duration></Requested></Job>")
        job = read_document(text.encode()).root
        assert isinstance(job, Job)
        spec = plans.to_spec(job, Findings(), policy=Policy.REJECT, files={}, target=SLURM)
        assert (spec.name, spec.arguments) == (f"n{n}", ["--case", str(n), "of 20"])
    assert len(whole) == 4
