"""``sssjob offers`` and ``route --site``: managers are asked, by commands that print what real ones printed."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from psij.executors import _rest_calls
from sssjob import read
from sssjob.cli import _routing
from sssjob.cli import offers as offers_module
from tests.cli.conftest import Command
from tests.fakes.arc import Arc, served

FIXTURES = Path(__file__).parents[1] / "fixtures"
MACHINE = FIXTURES / "slurm-22.05.8" / "machine"
GRID_ENGINE = FIXTURES / "gridengine-8.1.9" / "machine"
ANSWERS = f"""#!/bin/sh
case "$*" in
    "-o show node") cat {shlex.quote(str(MACHINE / 'show-node.txt'))} ;;
    "-o show partition") cat {shlex.quote(str(MACHINE / 'show-partition.txt'))} ;;
    "-o show licenses") cat {shlex.quote(str(MACHINE / 'show-licenses.txt'))} ;;
    *) echo "scontrol: $*" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command, first on the path, and a profile beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "scontrol"
    program.write_text(ANSWERS)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    (tmp_path / "alpha.toml").write_text("name = 'alpha'\nmanager = 'slurm'\nmachine = 'a'\n")
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH -N 2 -n 8 -t 2-0\ndate\n")
    return program


def test_offers_of_partitions(sssjob: Command, scontrol: Path) -> None:
    """A partition that is down offers nothing; the longest run is that of the partition, ten years without a limit."""
    answer = sssjob("offers", "alpha.toml", "-o", "alpha.xml")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    text = Path("alpha.xml").read_text()
    assert [text.count(f"<Queue>{name}</Queue>") for name in ("batch", "debug", "closed")] == [3, 1, 0]
    assert text.count("<Duration>600</Duration>") == 1 and text.count("<Duration>315360000</Duration>") == 3
    assert "<Id>a</Id>" in text and '<Node aggregation="Range">node[1-3]</Node>' in text


@pytest.mark.parametrize(("option", "met"), [
    ("-L matlab:4", True), ("-L matlab:5", False), ("-L ansys:1", False), ("--gres=gpu:fake:2", True),
    ("--gres=gpu:a100:2", False), ("--qos=tiny", True), ("--qos=nosuch", False), ("-A anybody", True),
])
def test_licences_gpus_and_qualities_of_service(sssjob: Command, scontrol: Path, option: str, met: bool) -> None:
    program = scontrol.with_name("sacctmgr")
    program.write_text(f"#!/bin/sh\ncat {shlex.quote(str(MACHINE / 'show-qos.txt'))}\n")
    program.chmod(0o755)
    Path("job.sh").write_text(f"#!/bin/sh\n#SBATCH -n 2 -t 10 {option}\ndate\n")
    answer = sssjob("route", "-q", "job.sh", "--sites", "alpha.toml")
    assert (answer.code, answer.out.startswith("1. alpha, batch: met, ")) == (0 if met else 1, met), answer


def test_a_site_that_does_not_tell_its_licences_and_qualities_of_service(sssjob: Command, scontrol: Path) -> None:
    scontrol.write_text(ANSWERS.replace('"-o show licenses") cat', '"-o show licenses") false'))
    answer = sssjob("offers", "alpha.toml")
    assert (answer.code, answer.err) == (0, "") and answer.out.count("<Queue>batch</Queue>") == 3
    assert "License" not in answer.out and "Allowed" not in answer.out


def test_the_site_as_other_commands_take_it(sssjob: Command, scontrol: Path) -> None:
    assert sssjob("offers", "--site", "alpha.toml") == sssjob("offers", "alpha.toml")
    for words in ((), ("alpha.toml", "--site", "alpha.toml")):
        answer = sssjob("offers", *words)
        assert answer.code == 2 and "one SITE is asked: offers SITE, or offers --site SITE" in answer.err


def test_what_the_profile_says_counts_first(sssjob: Command, scontrol: Path) -> None:
    with Path("alpha.toml").open("a") as profile:
        profile.write("[queues.batch]\nduration = 7200\n")
    answer = sssjob("offers", "alpha.toml")
    assert answer.out.count("<Duration>7200</Duration>") == 3


def test_limit_of_nodes_and_states(sssjob: Command, scontrol: Path) -> None:
    """MaxNodes is the most that a job gets; a node that drains is left out, and so is a banner."""
    edits = ("-e '1iWelcome to NodeName=x, no mail' -e '/^NodeName=node1/s/State=IDLE/State=IDLE*+DRAIN/' "
             "-e s/MaxNodes=UNLIMITED/MaxNodes=1/")
    scontrol.write_text(ANSWERS.replace("cat ", f"sed {edits} "))
    answer = sssjob("offers", "alpha.toml")
    assert answer.out.count("<NodeCount>1</NodeCount>") == answer.out.count("<NodeCount>") > 0
    assert "node1" not in answer.out


@pytest.fixture
def grid_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """qhost and qconf, first on the path, and a profile beside them; the file that qhost prints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts.xml").write_text((GRID_ENGINE / "qhost-q.xml").read_text())
    (tmp_path / "bin").mkdir()
    for name, text in (("qhost", "cat hosts.xml"), ("qconf", f"""case "$*" in
    -sql) echo all.q; echo short.q ;;
    "-sq all.q,short.q") cat {shlex.quote(str(GRID_ENGINE / 'qconf-sq.txt'))} ;;
    -sel) echo localhost ;;
    "-se global") ;;
    "-se localhost") cat {shlex.quote(str(GRID_ENGINE / 'qconf-se.txt'))} ;;
    *) exit 1 ;;
esac""")):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "beta.toml").write_text("name = 'beta'\nmanager = 'sge'\nmachine = 'b'\n")
    return tmp_path / "hosts.xml"


SHORT = """  <Job>
    <Id>short.q</Id>
    <Machine>b</Machine>
    <Queue>short.q</Queue>
    <NodeCount>1</NodeCount>
    <Processors>8</Processors>
    <Memory units="MB" metric="PerNode">24064</Memory>
    <Duration>60</Duration>
    <Node aggregation="Range">localhost</Node>
  </Job>
"""


def test_offers_of_queues_of_grid_engine(sssjob: Command, grid_engine: Path) -> None:
    """Processors are slots; a queue is there for as long as its h_rt says."""
    answer = sssjob("offers", "beta.toml")
    long = SHORT.replace("short.q", "all.q").replace(">60<", ">315360000<")
    assert (answer.code, answer.out) == (0, f"<JobGroup>\n  <Id>b</Id>\n{long}{SHORT}</JobGroup>\n")


def test_a_site_whose_queues_are_all_closed_leaves_the_others(sssjob: Command, scontrol: Path) -> None:
    scontrol.write_text(ANSWERS.replace("cat ", "sed -e 's/State=UP/State=DOWN/' "))
    Path("here.toml").write_text("name = 'here'\nmanager = 'local'\n")
    Path("job.sh").write_text("#!/bin/sh\n#SBATCH -n 1 -t 10\ndate\n")
    answer = sssjob("route", "-q", "job.sh", "--sites", "alpha.toml,here.toml")
    assert (answer.code, answer.out.partition(",")[0], answer.err) == (0, "1. here", ""), answer
    assert sssjob("route", "-q", "job.sh", "--sites", "alpha.toml").code == 1


def test_no_host_is_idle(sssjob: Command, grid_engine: Path) -> None:
    """The start is not known then."""
    grid_engine.write_text(grid_engine.read_text().replace("name='slots_used'>0", "name='slots_used'>1"))
    Path("job.sh").write_text("#!/bin/sh\n#$ -l h_rt=50\ndate\n")
    answer = sssjob("route", "-q", "job.sh", "--starts", "--sites", "beta.toml")
    assert answer.code == 0 and answer.out.count("start not known (its idle nodes are not enough)") == 2, answer


def test_consumables_of_grid_engine_are_what_the_profile_says(sssjob: Command, grid_engine: Path) -> None:
    """Those of a host and those of the cluster; of memory there is no more than may be consumed."""
    profile = Path("beta.toml")
    profile.write_text(f'{profile.read_text()}[sge.complex]\ngpu = "GPU"\nmem = "Memory"\nmatlab = "License"\n')
    resources = ('<Resource name="GPU" metric="PerNode">2</Resource>\n'
                 '    <Resource name="License" type="matlab">4</Resource>\n    <Duration>')
    short = SHORT.replace("24064", "4096").replace("<Duration>", resources)
    long = short.replace("short.q", "all.q").replace(">60<", ">315360000<")
    answer = sssjob("offers", "beta.toml")
    assert (answer.code, answer.out) == (0, f"<JobGroup>\n  <Id>b</Id>\n{long}{short}</JobGroup>\n")
    Path("job.sh").write_text("#!/bin/sh\n#$ -pe smp 2\n#$ -l gpu=1,matlab=2,h_rt=50\ndate\n")
    assert sssjob("route", "-q", "job.sh", "--sites", "beta.toml").out.startswith("1. beta, all.q: met, ")
    Path("job.sh").write_text("#!/bin/sh\n#$ -pe smp 2\n#$ -l gpu=2,h_rt=50\ndate\n")       # of each slot
    assert "Resource GPU 2 instead of 4" in sssjob("route", "-q", "job.sh", "--sites", "beta.toml").out


@pytest.mark.parametrize(("values", "message"), [
    ("gpu=two", "gpu 'two' is no number"), ("gpu=-1", "gpu '-1' is no number"), ("mem=much", "is no size")])
def test_consumables_that_are_none(sssjob: Command, grid_engine: Path, values: str, message: str) -> None:
    profile = Path("beta.toml")
    profile.write_text(f'{profile.read_text()}[sge.complex]\ngpu = "GPU"\nmem = "Memory"\n')
    qconf = Path("bin/qconf")
    qconf.write_text(qconf.read_text().replace(
        "-sel)", f"'-se localhost') echo hostname localhost; echo complex_values {values} ;;\n    -sel)"))
    answer = sssjob("offers", "beta.toml")
    assert (answer.code, answer.out) == (4, "") and message in answer.err


def test_queues_of_grid_engine_that_take_no_job(sssjob: Command, grid_engine: Path) -> None:
    """A queue that is disabled on a host offers nothing of it, one that is only loaded does; idle hosts have no slot
    in use."""
    text = grid_engine.read_text()
    state = "<queuevalue qname='{}' name='state_string'>"
    grid_engine.write_text(text.replace(state.format("all.q"), state.format("all.q") + "d").replace(
        state.format("short.q"), state.format("short.q") + "a"))
    assert sssjob("offers", "beta.toml").out == f"<JobGroup>\n  <Id>b</Id>\n{SHORT}</JobGroup>\n"
    grid_engine.write_text(text.replace("name='slots_used'>0", "name='slots_used'>1", 1))
    assert "<Job>" not in sssjob("offers", "--idle", "beta.toml").out


@pytest.mark.parametrize(("answer", "message"), [
    ("<qhost", "it is no XML: "), ("<qhost><host name='global'/></qhost>", "the answer names no nodes"),
    ("<qhost><host name='h'><queue name='q'/></host></qhost>", "host h: slots '' is no number"),
    ("<!DOCTYPE q [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><qhost><host name='h'><queue name='q'><queuevalue "
     "name='slots'>&e;</queuevalue></queue></host></qhost>", "it has a DOCTYPE"),
])
def test_answers_of_grid_engine_that_are_none(sssjob: Command, grid_engine: Path, answer: str, message: str) -> None:
    grid_engine.write_text(answer)
    reply = sssjob("offers", "beta.toml")
    assert (reply.code, reply.out) == (4, "") and message in reply.err


LSF = FIXTURES / "lsf-constructed" / "machine"


@pytest.fixture
def lsf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The commands of LSF, which print files beside them, and a profile; the folder of the files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    for words, file in (("bhosts -w", "bhosts"), ("lshosts -w", "lshosts"), ("bqueues -l", "bqueues-l"),
                        ("bmgroup -r -w", "bmgroup")):
        name, options = words.split(maxsplit=1)
        (tmp_path / file).write_text((LSF / f"{file}.txt").read_text())
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\ntest \"$*\" = '{options}' && cat {file}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "gamma.toml").write_text("name = 'gamma'\nmanager = 'lsf'\nmachine = 'g'\n")
    return tmp_path


def of_lsf(sssjob: Command, *words: str) -> list[tuple[str, ...]]:
    """Queue, nodes, processors, seconds and names of the offers."""
    answer = sssjob("offers", "gamma.toml", *words)
    assert answer.code == 0, answer.err
    return [tuple(str(job.value(name)) for name in ("Queue", "NodeCount", "Processors", "Duration", "Node"))
            for job, _ in read(answer.out).jobs()]


def test_offers_of_queues_of_lsf(sssjob: Command, lsf: Path) -> None:
    """Slots where they are limited, else processors; a host that is full takes the next job, one that is closed none.
    Of RUNLIMIT the maximum counts, not the default; groups and hosts that are left out are those of the queue."""
    assert of_lsf(sssjob) == [
        ("normal", "3", "40", "172800", "c1,c2,g1"), ("normal", "1", "16", "172800", "c1"),
        ("normal", "1", "16", "172800", "c2"), ("normal", "1", "32", "172800", "g1"),
        ("gpu", "2", "32", "5430", "c1,g1"), ("gpu", "1", "16", "5430", "c1"), ("gpu", "1", "32", "5430", "g1"),
        ("free", "1", "8", "315360000", "old")]
    assert of_lsf(sssjob, "--idle") == [("normal", "1", "16", "172800", "c1"), ("gpu", "1", "16", "5430", "c1"),
                                        ("free", "1", "8", "315360000", "old")]


def test_lsf_is_asked_for_groups_where_a_queue_names_one(sssjob: Command, lsf: Path) -> None:
    (lsf / "bin" / "bmgroup").write_text("#!/bin/sh\nexit 1\n")
    assert sssjob("offers", "gamma.toml").code == 4
    text = (lsf / "bqueues-l").read_text()
    (lsf / "bqueues-l").write_text(text.replace("gpus/ c1+2", "g1").replace("PROCLIMIT", "TASKLIMIT"))
    assert ("gpu", "1", "32", "5430", "g1") in of_lsf(sssjob) and of_lsf(sssjob)[0][2] == "40"


@pytest.mark.parametrize(("file", "old", "new", "message"), [
    ("bhosts", "HOST_NAME ", "HOSTS ", "there is no column HOST_NAME"), ("bhosts", "-     16 ", "-     x6 ", "host c1"),
    ("lshosts", "62G", "6?G", "memory '6?G' is no size"), ("bqueues-l", "QUEUE:", "Q:", "it names no queue"),
    ("lshosts", " 16 ", " 9999999999 ", "the answer"), ("bmgroup", "GROUP_NAME", "G", "there is no column GROUP_NAME")])
def test_answers_of_lsf_that_are_none(sssjob: Command, lsf: Path, file: str, old: str, new: str, message: str) -> None:
    (lsf / file).write_text((lsf / file).read_text().replace(old, new))
    if file == "lshosts" and "9" in new:
        (lsf / "bhosts").write_text((lsf / "bhosts").read_text().replace("16 ", "- "))
    answer = sssjob("offers", "gamma.toml")
    assert (answer.code, answer.out, message in answer.err) == (4, "", True), answer.err


def test_route_asks(sssjob: Command, scontrol: Path) -> None:
    answer = sssjob("route", "-q", "job.sh", "--site", "alpha.toml")
    assert (answer.code, answer.err) == (0, "")
    assert [line.split(":")[0] for line in answer.out.splitlines()] == [
        "1. alpha, batch", "2. alpha, batch.2", "-  alpha, batch.3", "-  alpha, debug"]


def test_a_manager_that_is_silent_leaves_the_others(sssjob: Command, scontrol: Path) -> None:
    scontrol.write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
    Path("beta.toml").write_text("name = 'beta'\n")
    Path("beta.xml").write_text("<Job><Id>b</Id><NodeCount>4</NodeCount><Processors>64</Processors>"
                                "<Duration>864000</Duration></Job>")
    answer = sssjob("route", "-q", "job.sh", "--offers", "beta.toml=beta.xml", "--site", "alpha.toml")
    assert (answer.code, answer.err) == (0, "sssjob: alpha: Unable to contact slurm controller\n")
    assert answer.out.startswith("1. beta, beta.xml: met")
    answer = sssjob("route", "-q", "job.sh", "--site", "alpha.toml")
    assert (answer.code, answer.out) == (4, "")
    assert sssjob("offers", "alpha.toml").code == 4


@pytest.mark.parametrize(("answer", "message"), [
    ("echo Welcome to alpha", "the answer names no nodes"), ("sleep 5", "scontrol gave no answer in 0.3 s"),
    ("echo NodeName=n1 CPUTot=many Partitions=batch",
     "the answer cannot be understood: node n1: CPUTot=many is no number"),
    ("echo NodeName=n1 CPUTot=4 RealMemory=1; echo PartitionName=p MaxTime=soon",
     "the answer cannot be understood: partition p: MaxTime=soon is no limit"),
    ("exit 3", "scontrol ended with 3"),
])
def test_answers_that_are_none(sssjob: Command, scontrol: Path, answer: str, message: str) -> None:
    scontrol.write_text(f"#!/bin/sh\n{answer}\n")
    reply = sssjob("offers", "alpha.toml", "--timeout", "0.3" if "sleep" in answer else "20", "-o", "out.xml")
    assert (reply.code, reply.out, reply.err) == (4, "", f"sssjob: alpha: {message}\n")
    assert not Path("out.xml").exists()


@pytest.mark.parametrize(("profile", "message"), [
    ("", "manager is missing: it is not known whom to ask"),
    ("manager = 'nqsv'\n", "nqsv cannot be asked for offers yet, arc, flux, htcondor, local, lsf, pbs, "),
])
def test_refusals(sssjob: Command, scontrol: Path, profile: str, message: str) -> None:
    Path("alpha.toml").write_text(f"name = 'alpha'\n{profile}")
    for words in (("offers", "alpha.toml"), ("route", "job.sh", "--site", "alpha.toml")):
        answer = sssjob(*words)
        assert (answer.code, answer.out) == (2, "") and f"alpha.toml: {message}" in answer.err
    assert "no site to choose from" in sssjob("route", "job.sh").err


def test_this_machine(sssjob: Command, scontrol: Path) -> None:
    """What its processes may use, without queues and limits, so that it can be one of several sites."""
    Path("here.toml").write_text("name = 'here'\nmanager = 'local'\n")
    count = len(os.sched_getaffinity(0))
    answer = sssjob("offers", "here.toml")
    assert answer.code == 0 and "<Queue>" not in answer.out
    assert f"<NodeCount>1</NodeCount>\n    <Processors>{count}</Processors>\n    <Memory " in answer.out
    Path("job.xml").write_text("<Job><Id>1</Id><Requested><Processors>1</Processors><Duration>86400</Duration></Requested>"
                               "</Job>")
    assert sssjob("route", "-q", "job.xml", "--sites", "here.toml").out.startswith("1. here, ")
    Path("away.toml").write_text("name = 'away'\nmanager = 'local'\n[ssh]\nhost = 'a'\n")
    answer = sssjob("offers", "away.toml")
    assert (answer.code, "local runs jobs on this machine, and not on a behind SSH" in answer.err) == (2, True)


def test_no_command(sssjob: Command, scontrol: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    answer = sssjob("offers", "alpha.toml")
    assert (answer.code, answer.err) == (4, "sssjob: alpha: scontrol: No such file or directory\n")


#: Manager -> commands that answer as real ones did, and queue, nodes, processors and duration of what is offered.
OTHERS: dict[str, tuple[dict[str, str], list[tuple[str, ...]]]] = {
    "pbs": ({"pbsnodes": f"cat {FIXTURES}/openpbs-23.06.06/machine/pbsnodes.json",
             "qstat": f"cat {FIXTURES}/openpbs-23.06.06/machine/qstat-Qf.json"},
            [("workq", "1", "8", "315360000"), ("highq", "1", "8", "600")]),
    "pbs_classic": ({"pbsnodes": f"cat {FIXTURES}/slurm-torque-22.05.8/machine/pbsnodes.txt",
                     "qstat": f"cat {FIXTURES}/slurm-torque-22.05.8/machine/qstat-Qf.txt"},
                    [("batch", "3", "12", "315360000"), ("batch", "2", "8", "315360000"),
                     ("batch", "1", "4", "315360000")]),
    "htcondor": ({"condor_status": f"cat {FIXTURES}/htcondor-constructed/machine/condor_status.json"},
                 [("", "2", "4", "315360000"), ("", "1", "16", "315360000"), ("", "1", "2", "315360000")]),
    "flux": ({"flux": f"cat {FIXTURES}/flux-0.88/machine/resource-R.json"}, [("", "2", "4", "")]),
}


@pytest.mark.parametrize("manager", OTHERS)
def test_other_managers_are_asked(sssjob: Command, scontrol: Path, manager: str) -> None:
    commands, expected = OTHERS[manager]
    for name, text in commands.items():
        (scontrol.parent / name).write_text(f"#!/bin/sh\n{text}\n")
        (scontrol.parent / name).chmod(0o755)
    Path("alpha.toml").write_text(f"name = 'alpha'\nmanager = '{manager}'\nmachine = 'a'\n")
    answer = sssjob("offers", "alpha.toml", "-o", "alpha.xml")
    assert (answer.code, answer.err) == (0, "")
    offers = [job for job, _ in read(Path("alpha.xml")).jobs()]
    assert [tuple(str(job.value(name) if job.value(name) is not None else "") for name in (
        "Queue", "NodeCount", "Processors", "Duration")) for job in offers][:len(expected)] == expected
    Path("one.sh").write_text("#!/bin/sh\n#SBATCH -N 1 -n 4 -t 2-0\ndate\n")
    assert sssjob("route", "-q", "one.sh", "--sites", "alpha.toml").code == int(manager == "flux")
    for name in commands:
        (scontrol.parent / name).write_text("#!/bin/sh\necho '{'\n")
    answer = sssjob("offers", "alpha.toml")
    assert answer.code == 4
    assert "the answer cannot be understood: " in answer.err or "no nodes" in answer.err


def test_managers_are_asked_side_by_side(sssjob: Command, scontrol: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hangs keeps no other waiting."""
    for name in ("one", "two", "three"):
        Path(f"{name}.toml").write_text(f"name = '{name}'\nmanager = 'slurm'\n")
    together, real = threading.Barrier(3), offers_module.ask_machine

    def meeting(*arguments: Any) -> Any:
        together.wait(20)           # breaks where one begins only when another one has ended
        return real(*arguments)

    monkeypatch.setattr(_routing, "ask_machine", meeting)
    answer = sssjob("route", "-q", "job.sh", "--sites", "one.toml,two.toml,three.toml")
    assert (answer.code, answer.out.count(": met")) == (0, 6)


@pytest.fixture
def element(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arc]:
    """An ARC computing element, and the profile of a site in the folder of profiles."""
    monkeypatch.setattr(_rest_calls, "_PAUSE_S", 0.001)
    monkeypatch.setenv("SSSJOB_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "sites"
    folder.mkdir()
    (tmp_path / "config.toml").touch()
    (tmp_path / "token").write_text("T\n")
    (tmp_path / "token").chmod(0o600)
    with served(tmp_path) as server:
        server.information = (FIXTURES / "arc-constructed" / "machine" / "glue2.xml").read_bytes()
        (folder / "gamma.toml").write_text(
            f"name = 'gamma'\nmanager = 'arc'\nmachine = 'gamma'\ntimezone = 'UTC'\n[run]\nfacility = '{server.url}'\n"
            f"token_file = '{tmp_path / 'token'}'\n")
        yield server


def test_an_arc_computing_element(sssjob: Command, element: Arc, tmp_path: Path) -> None:
    """What it publishes is what the same text is as a file; it is reached by the settings of its profile."""
    answer = sssjob("offers", "gamma")
    assert answer.code == 0, answer.err
    (tmp_path / "glue2.xml").write_bytes(element.information)
    from_file = sssjob("convert", "-q", "--site", "gamma", "-f", "glue2", "-t", "sss", "glue2.xml").out
    assert answer.out == from_file and answer.out.count("<Queue>main</Queue>") >= 1
    assert sssjob("sites").out.splitlines()[-1].split() == ["gamma", "arc", "gamma", "works"]
    assert sssjob("sites", "check", "gamma").out == "gamma: rates is missing: quote and charge need --rates\n"
    (tmp_path / "job.xml").write_text("<Job><Requested><Processors>8</Processors><Queue>main</Queue></Requested></Job>")
    assert sssjob("route", "-q", "job.xml", "--sites", "gamma").out.startswith("1. gamma, main")


@pytest.mark.parametrize(("text", "down", "words"), [
    (b"<InfoRoot/>", 0, "gamma: the answer cannot be understood: it names no ExecutionEnvironment"),
    (b"<InfoRoot", 0, "gamma: the answer cannot be understood: "),
    (b"", 401, "gamma: 127.0.0.1 refuses it (401): "),
])
def test_an_arc_computing_element_without_an_answer(sssjob: Command, element: Arc, text: bytes, down: int, words: str
                                                    ) -> None:
    element.information, element.down = text, down
    answer = sssjob("offers", "gamma")
    assert (answer.code, answer.out) == (4, "") and answer.err.startswith(f"sssjob: {words}"), answer.err
