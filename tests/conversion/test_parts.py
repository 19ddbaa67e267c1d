"""A group in parts that do not depend on each other, and the group of these parts."""

from __future__ import annotations

import random

import pytest

from sssjob.conversion.merging import joined, parts
from sssjob.document.graph import derived_state
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document

AFTER = "<Dependency designator='{1}'>{0}</Dependency>"


def group(jobs: str, around: str = "<Id>g</Id>") -> str:
    return f"<JobGroup>{around}{jobs}</JobGroup>"


def job(name: str, *needs: str, by: str = "JobId", more: str = "") -> str:
    return f"<Job><Id>{name}</Id>{''.join(AFTER.format(need, by) for need in needs)}{more}</Job>"


def places(text: str) -> list[tuple[int, ...]]:
    return [part.places for part in parts(read_document(text.encode()))]


@pytest.mark.parametrize(("text", "expected"), [
    (group(job("a") + job("b")), [(0,), (1,)]),
    (group(job("a", "b") + job("b") + job("c")), [(0, 1), (2,)]),
    (group(job("a") + job("b", "a") + job("c") + job("d", "c", "b")), [()]),
    # two that wait for one hang together; two that wait for the same job of another document do not
    (group(job("a") + job("b", "a") + job("x") + job("c", "a")), [(0, 1, 3), (2,)]),
    (group(job("a", "elsewhere") + job("b", "elsewhere")), [(0,), (1,)]),
    # a Name is that of many, and all of them must have ended
    (group(job("a", more="<Name>n</Name>") + job("b", more="<Name>n</Name>") + job("c", "n", by="JobName") + job("d")),
     [(0, 1, 2), (3,)]),
    # what waits for a name hangs together with whoever waits for it too
    (group(job("c", "n", by="JobName") + job("d", "n", by="JobName") + job("a", more="<Name>n</Name>")
           + job("b", more="<Name>n</Name>") + job("e")), [(0, 1, 2, 3), (4,)]),
    # those of defaults count for all jobs without one of their own
    (group(job("a", "z") + job("b") + job("c"),
           "<Id>g</Id><JobDefaults><Dependency designator='JobId'>a</Dependency></JobDefaults>"), [()]),
    # an array is one job; a cycle, which is told elsewhere, one part
    (group(job("a", more="<Extension type='Scheduler' name='Array'>1-9</Extension>") + job("b", "a") + job("c")),
     [(0, 1), (2,)]),
    (group(job("a", "b") + job("b", "a") + job("c")), [(0, 1), (2,)]),
    # a failure that ends all others
    (group(job("a", more="<Extension type='Scheduler' name='OnFailure'>fail-fast</Extension>") + job("b")), [()]),
    (group(job("a", more="<Extension type='Scheduler' name='OnFailure'>keep-going</Extension>") + job("b")),
     [(0,), (1,)]),
    (group(job("a") + job("b"), "<Id>g</Id><JobDefaults><Extension type='Scheduler' name='OnFailure'>fail-fast"
                                "</Extension></JobDefaults>"), [()]),
    # what cannot be called as a whole, or is no group of its own jobs
    (group(job("a") + job("b"), ""), [()]),
    (group(job("a") + job("b") + "<Job>elsewhere</Job>"), [()]),
    (job("a"), [()]), (group(""), [()]), (group(job("a")), [()]),
])
def test_what_hangs_together(text: str, expected: list[tuple[int, ...]]) -> None:
    assert places(text) == expected


def test_each_part_is_the_group_of_its_jobs() -> None:
    """With what the group says of itself and for its jobs, and the Files that its jobs name."""
    envelope = ("<Request action='Submit'><Object>Job</Object>{files}<JobGroup awarenessPolicy='Warn'><Id>g</Id>"
                "<Description>d</Description><JobDefaults><Queue>q</Queue></JobDefaults>{jobs}</JobGroup></Request>")
    files = {name: f"<File id='{name}'>echo {name}</File>" for name in "ab"}
    jobs = {name: job(name, more=f"<Executable>#{name}</Executable>") for name in "ab"}
    document = read_document(envelope.format(files="".join(files.values()), jobs="".join(jobs.values())).encode())
    several = parts(document)
    assert [write_document(part.document) for part in several] == [write_document(read_document(envelope.format(
        files=files[name], jobs=jobs[name]).encode())) for name in "ab"]
    for body in document.groups():
        body.set_as_is("State", derived_state(body))
    assert write_document(joined(several)) == write_document(document)


@pytest.mark.parametrize("seed", range(20))
def test_the_parts_together_are_the_group(seed: int) -> None:
    """Whatever depends on what, no dependency leads from one part into another, and the jobs come back in order."""
    draw = random.Random(seed)
    names = [f"j{number}" for number in range(draw.randint(1, 30))]
    needs = {name: draw.sample(names[:number], min(number, draw.choice((0, 0, 0, 1, 2))))
             for number, name in enumerate(names)}
    document = read_document(group("".join(job(name, *needs[name]) for name in names),
                                   "<Id>g</Id><State>Unstarted</State>").encode())
    several = parts(document)
    part_of = {str(one.value("Id")): number for number, part in enumerate(several)
               for one, _ in part.document.jobs()}
    assert all(part_of[name] == part_of[need] for name in names for need in needs[name])
    assert len(several) == len(names) - len(_forest(names, needs))
    if len(several) > 1:
        draw.shuffle(several)
        whole = joined(several)
        assert [job for job, _ in whole.jobs()] == [job for job, _ in document.jobs()]


def _forest(names: list[str], needs: dict[str, list[str]]) -> list[tuple[str, str]]:
    """A dependency for each job but one of every set of jobs that hang together."""
    sets = {name: {name} for name in names}
    forest = []
    for name in names:
        for need in needs[name]:
            if sets[name] is not sets[need]:
                forest.append((name, need))
                sets[name] |= sets[need]
                for member in sets[need]:
                    sets[member] = sets[name]
    return forest
