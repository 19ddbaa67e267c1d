"""Where task groups become one, or only the first is carried, a target of one kind of task tells it at the second: that
is the one which is no group of its own any more."""

from __future__ import annotations

import sys

import pytest

from tests.laws.documents import read
from tests.laws.readers import READERS
from tests.laws.test_amounts import written

TARGETS = ("sge", "cobalt", "htcondor", "flux", "flux-jobspec", "psij")


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("second", ["<TaskGroup><TaskCount>3</TaskCount></TaskGroup>",
                                    "<TaskGroup><TaskCount>3</TaskCount><Executable>/bin/y</Executable></TaskGroup>"])
def test_it_is_told_at_the_second(name: str, second: str) -> None:
    first = "<TaskGroup><TaskCount>2</TaskCount></TaskGroup>"
    findings = written(name, read(f"<Job>\n<Executable>/bin/x</Executable>\n{first}\n{second}\n</Job>"))[1]
    assert {f.line for f in findings if f.subject == "TaskGroup"} == {4}


ONE_OF_ALL = ("flux", "flux-jobspec", "sge", "cobalt", "htcondor", "jsdl", "adl")
SIDE_BY_SIDE = {"slurm": "srun --het-group=0 {} : --het-group=1 {}", "pbspro": "mpirun -n 2 {} : -n 3 {}",
                "torque": "mpirun -n 2 {} : -n 3 {}", "lsf": "mpirun -n 2 {} : -n 3 {}"}


def groups(of_job: str, first: str, second: str) -> str:
    """A job of two task groups, with what each says beside its count; a property a line."""
    return (f"<Job>\n{of_job}\n<TaskGroup><TaskCount>2</TaskCount>\n{first}\n</TaskGroup>\n"
            f"<TaskGroup><TaskCount>3</TaskCount>\n{second}\n</TaskGroup>\n</Job>")


def program(name: str) -> str:
    """An Executable."""
    return f"<Executable>/bin/{name}</Executable>"


COMMANDS = {
    "both say it": (groups("", program("a"), program("b")), "/bin/a", "/bin/b", 7),
    "the first inherits": (groups(program("j"), "", program("b")), "/bin/j", "/bin/b", 7),
    "the second inherits": (groups(program("j"), program("a"), ""), "/bin/a", "/bin/j", 2),
    "arguments": (groups(program("j"), "<Arguments>1</Arguments>", "<Arguments>2</Arguments>"), "/bin/j 1", "/bin/j 2",
                  7),
    "arguments of the second": (groups(program("j"), "", "<Arguments>2</Arguments>"), "/bin/j", "/bin/j 2", 0)}


@pytest.mark.parametrize(("text", "first", "second", "line"), COMMANDS.values(), ids=COMMANDS)
def test_each_group_has_its_own_command_or_it_is_told(text: str, first: str, second: str, line: int) -> None:
    """Where one group has the command of the job, all were started with the command of the other one, in silence."""
    for name, command in SIDE_BY_SIDE.items():
        output, findings = written(name, read(text))
        assert output.splitlines()[-1] == command.format(first, second)
        assert not any(f.rule == "SSS501" for f in findings)
    for name in ONE_OF_ALL:
        output, findings = written(name, read(text))
        lost = [f for f in findings if f.subject in ("Executable", "Arguments")]
        assert lost and (not line or {f.line for f in lost} == {line}), [str(f) for f in findings]
        assert first.partition(" ")[0] in output and (second.partition(" ")[0] not in output or "/bin/j" in first)


@pytest.mark.parametrize("name", [*ONE_OF_ALL, "pbspro", "torque", "lsf"])
@pytest.mark.parametrize(("of_job", "first", "second"), [
    (0, 100, 960), (0, 960, 100), (100, 0, 960), (960, 100, 0), (960, 0, 100)])
def test_the_limit_is_that_of_the_longest_group(name: str, of_job: int, first: int, second: int) -> None:
    """That of the first group was taken, in silence: the job would have been ended before the second one had."""
    def limit(seconds: int) -> str:
        """What is asked for."""
        return f"<Requested><Duration>{seconds}</Duration></Requested>" if seconds else ""

    text = groups(program("j") + limit(of_job), limit(first), limit(second))
    assert READERS[name](written(name, read(text))[0]).seconds == 960


@pytest.mark.parametrize("name", ["pbspro", "lsf", "sge", "flux"])
def test_the_queue_of_another_group_is_told(name: str) -> None:
    output, findings = written(name, read(groups(program("j") + "<Queue>day</Queue>", "", "<Queue>night</Queue>")))
    assert "day" in output and "night" not in output
    assert [(f.line, f.rule) for f in findings if f.subject == "Queue"] == [(7, "SSS501")]


SIX_TASKS = "<TaskCount>6</TaskCount><TaskDefaults><Requested><Processors>4</Processors></Requested></TaskDefaults>"
ON_TWO_NODES = ("<Requested><NodeCount>2</NodeCount><Processors>16</Processors><Memory units='GB'>40</Memory>"
                "</Requested>")


@pytest.mark.parametrize("name", ["flux", "flux-jobspec", "sge", "cobalt", "jsdl", "psij"])
@pytest.mark.parametrize("second", ["", program("b")])
def test_of_groups_of_which_the_first_is_carried_its_copies_start(name: str, second: str) -> None:
    """The executable of six tasks was started seven times; JSDL had the processes of the first group, and the nodes,
    processors and memory of the second one."""
    text = (f"<Job>\n{program('a')}\n<TaskGroup>{SIX_TASKS}</TaskGroup>\n"
            f"<TaskGroup>{second}{ON_TWO_NODES}</TaskGroup>\n</Job>")
    output, findings = written(name, read(text))
    native = READERS[name](output)
    assert (native.copies, native.memory) == (6, None)
    assert native.processors == (6 if name == "cobalt" else 24) and native.nodes in (None, 1)
    assert {f.line for f in findings if f.subject == "TaskGroup"} == {4}


def test_equal_groups_of_jsdl_add_up() -> None:
    """One of the two was asked for."""
    each = "<TaskGroup><Requested><Processors>8</Processors><Memory units='MB'>3</Memory></Requested></TaskGroup>"
    native = READERS["jsdl"](written("jsdl", read(f"<Job>\n{program('a')}\n{each}\n{each}\n</Job>"))[0])
    assert native.processors == 16 and native.memory == 6 << 20


def test_groups_of_one_command_have_streams_of_their_own_in_slurm() -> None:
    """Those of the second group were dropped, although one command starts both."""
    stream = "<OutputFile>{}.log</OutputFile>".format
    output, findings = written("slurm", read(groups(program("a"), stream("a"), stream("b"))))
    assert "--output=a.log" in output
    assert output.splitlines()[-1] == "srun --het-group=0 /bin/a : --het-group=1 --output=b.log /bin/a"
    assert not any(f.rule == "SSS501" for f in findings)
    output, findings = written("slurm", read(groups(program("a"), stream("a"), program("b"))))
    assert [(f.line, f.rule) for f in findings if f.subject == "OutputFile"] == [(4, "SSS502")]


def test_memory_of_the_defaults_is_that_of_each_group() -> None:
    """Torque got the memory of one group for all of them, and nothing was told."""
    text = ("<Job><Executable>/bin/x</Executable><TaskGroupDefaults><Requested><Memory units='GB'>1</Memory>"
            "</Requested></TaskGroupDefaults>"
            f"{'<TaskGroup><TaskCount>2</TaskCount><Feature>a</Feature></TaskGroup>' * 3}</Job>")
    assert "-l mem=3gb\n" in written("torque", read(text))[0]


def calls_of(name: str, number: int) -> int:
    """How many functions are called to write a job of task groups. number: of them."""
    job = read("<Job>\n<Executable>/bin/x</Executable>\n" + "".join(
        f"<TaskGroup><TaskCount>2</TaskCount><Duration>{60 + each}</Duration>\n<InitialWorkingDirectory>/d{each}"
        f"</InitialWorkingDirectory><Requested><Memory units='MB'>{200 + each}</Memory></Requested></TaskGroup>"
        for each in range(number)) + "</Job>")
    calls = 0

    def count(frame: object, event: str, function: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        written(name, job)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("name", ["slurm", "pbspro", "torque", "lsf", "sge", "flux", "jsdl"])
def test_each_group_costs_what_the_ones_before_it_did(name: str) -> None:
    """Each group was looked for among all of them, several times: 2,000 took three to five seconds to write. Here 30
    more groups after 60 cost what they do after 30, but for a few calls."""
    calls_of(name, 2)       # what is made once
    few, more, many = (calls_of(name, number) for number in (30, 60, 90))
    assert (many - more) - (more - few) < 3 * 30 * 30
