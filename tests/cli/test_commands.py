"""Every command and option: what it does, and what it refuses."""

from __future__ import annotations

import io
import json
import os
import re
import resource
import stat
import subprocess
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest

from sssjob.cli import main
from sssjob.cli._app import COMMANDS
from sssjob.version import __version__
from tests.commands import commands

Command = Any
UNKNOWN_LINE = "unknown.xml:3:3: SSS301"


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# --- the whole

def test_version(sssjob: Command) -> None:
    assert sssjob("--version") == (0, f"sssjob {__version__}\n", "")


def test_version_imports_nothing_heavy() -> None:
    code = "import sys; from sssjob.cli import main; main(['--version']); print([m for m in HEAVY if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", f"HEAVY = ['click', 'lxml', 'rich', 'pydantic', 'json']; {code}"],
                             capture_output=True, text=True, check=True)
    assert process.stdout.splitlines()[-1] == "[]"


def test_version_is_quick() -> None:
    def least(*arguments: str) -> float:
        """Seconds of CPU of a program, which do not grow when the machine is busy."""
        seconds = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(seconds)

    assert least("-m", "sssjob", "--version") - least("-c", "pass") < 0.1


def test_help_lists_every_command(sssjob: Command) -> None:
    code, out, _ = sssjob("--help")
    assert code == 0
    assert [n for n in COMMANDS if f"  {n} " not in out] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each(sssjob: Command, name: str) -> None:
    code, out, err = sssjob(name, "-h")
    assert (code, err, out.startswith(f"Usage: sssjob {name}")) == (0, "", True)


def _sections(page: str) -> dict[str, str]:
    """The first word of each command that a heading of the page names -> all text below headings that name it."""
    sections: defaultdict[str, str] = defaultdict(str)
    for section in page.split("\n### ")[1:]:
        for word in set(re.findall(r"`sssjob ([a-z-]+)", section.partition("\n")[0])):
            sections[word] += section
    return sections


def test_every_option_is_documented() -> None:
    """A command has a heading or a point below that of its group, and there, or among what all share, its options."""
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    sections, shared = _sections(page), page.partition("\n## Commands")[0]
    missing = []
    for name, command in commands():
        group, _, inner = name.partition(" ")
        section = sections[group]
        if not re.search(rf"`(sssjob {group} )?{inner}\b", section):
            missing.append(name)
        missing += [f"{name} {option.opts[-1]}" for option in command.params if isinstance(option, click.Option)
                    and not any(re.search(rf"{spelling}\b", section + shared) for spelling in option.opts)]
    assert missing == []


@pytest.mark.parametrize(("arguments", "expected"), [
    (["chek"], "did you mean 'check'?"),
    (["zzzzzz"], "known: account, ask, attach"),
    (["check"], "FILE..."),
    (["check", "--polcy", "warn", "job.xml"], "--policy"),
    (["check", "--policy", "maybe", "job.xml"], "maybe"),
    (["check", "--profile", "4.0", "job.xml"], "4.0"),
    (["convert", "job.xml"], "--to"),
    (["convert", "-f", "sss", "-t", "ssss", "job.xml"], "known: sss"),
    (["convert", "-f", "sss", "-t", "sss", "--to-profile", "x", "job.xml"], "'x'"),
    (["convert", "-f", "sss", "-t", "sss", "--out", "d", "-o", "f", "job.xml"], "exclude"),
    (["query", "//Job[", "job.xml"], "query"),
    (["query", "--xpath", "2.0", "//Job", "job.xml"], "2.0"),
    (["query", "--format", "csv", "//Job", "job.xml"], "csv"),
    (["query", "--var", "x", "//Job", "job.xml"], "NAME=VALUE"),
    (["query", "--stream", "//Job[2]", "group.xml"], "alone"),
    (["match", "-", "-"], "standard input"),
    (["explain", "SSS999"], "unknown rule SSS999"),
    (["run", "--executor", "nowhere", "job.xml"], "nowhere"),
    (["run", "--timeout", "0", "job.xml"], "0"),
    (["run", "--timeout", "nan", "job.xml"], "nan"),
    (["run", "--timeout", "1e400", "job.xml"], "1e400 is no number of seconds"),
    (["convert", "-f", "sss", "-t", "sss-json", "--option", "indent", "job.xml"], "NAME=VALUE"),
    (["convert", "-f", "sss", "-t", "sss-json", "--option", "indent=x", "job.xml"], "'x'"),
    (["convert", "-f", "sss", "-t", "sss-json", "--option", "indent=-3", "job.xml"], "from 0 to 16, not '-3'"),
    (["convert", "-f", "sss", "-t", "sss-json", "--option", "indent=9999999999", "job.xml"], "from 0 to 16"),
    (["convert", "-f", "sss", "-t", "sss", "--option", "indent=0", "job.xml"], "no option 'indent' of sss"),
    (["convert", "-f", "sss", "-t", "sss", "--option", "indent=0", "--out", "d", "job.xml"], "no option 'indent'"),
    (["query", "  ", "job.xml"], "empty"),
    (["query", "--stream", "--policy", "warn", "//Job", "-"], "only once"),
    (["show", "job.xml", "x\x1b[31m"], "x\\u{001B}[31m"),
    ([], "Commands:"),
    (["completion", "tcsh"], "tcsh"),
])
def test_usage_is_refused(sssjob: Command, place: Path, arguments: list[str], expected: str) -> None:
    code, out, err = sssjob(*arguments)
    assert (code, out) == (2, "")
    assert expected in err


@pytest.mark.parametrize("name", ["none.xml", ".", "a\0b"])
@pytest.mark.parametrize("command", [["check"], ["show"], ["explain"], ["query", "//Job"], ["run"],
                                     ["convert", "-f", "sss", "-t", "sss"], ["match", "job.xml"]])
def test_unreadable_is_status_3(sssjob: Command, place: Path, command: list[str], name: str) -> None:
    code, _, err = sssjob(*command, name)
    assert code == 3
    assert err.startswith("sssjob: ") and err.count("\n") == 1


def test_internal_errors_are_one_line(sssjob: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("what\x1b")

    monkeypatch.setattr("sssjob.validation.check", fail)
    assert sssjob("check", "job.xml") == (
        70, "", "sssjob: internal error: ZeroDivisionError: what\\u{001B} (set SSSJOB_DEBUG=1 for the traceback)\n")
    monkeypatch.setenv("SSSJOB_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["check", "job.xml"])


@pytest.mark.parametrize(("error", "code", "expected"), [
    (KeyboardInterrupt(), 130, "sssjob: interrupted\n"), (BrokenPipeError(), 141, ""),
    (OSError(28, "No space left on device"), 3, "sssjob: No space left on device\n"),
])
def test_ends_by_signal_and_pipe(sssjob: Command, place: Path, monkeypatch: pytest.MonkeyPatch,
                                 error: BaseException, code: int, expected: str) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("sssjob.cli.explain.emit", fail)
    assert sssjob("explain", "SSS301") == (code, "", expected)


# --- check, and the shared options

def test_check_is_silent_when_fine(sssjob: Command, place: Path) -> None:
    assert sssjob("check", "--schema", "job.xml", "group.xml") == (0, "", "")


def test_check_goes_on_after_a_bad_file(sssjob: Command, place: Path) -> None:
    code, out, err = sssjob("check", "--json", "broken.xml", "unknown.xml", "none.xml", "job.xml")
    assert code == 3
    assert [(r["file"], r["ok"]) for r in records(out)] == [
        ("broken.xml", False), ("unknown.xml", False), ("none.xml", False), ("job.xml", True)]
    assert [r.get("rule", r["type"]) for r in records(err)] == ["SSS101", "SSS301", "error"]


def test_check_says_where_to_the_column(sssjob: Command, place: Path) -> None:
    """What is found after reading has the place of its property too."""
    (place / "times.xml").write_text("<JobGroup>\n  <Id>g</Id>\n  <Job><Id>a</Id><StartTime>20</StartTime>"
                                     "<EndTime>10</EndTime></Job>\n</JobGroup>\n")
    assert sssjob("check", "times.xml").err == (
        "times.xml:3:43: SSS412 warning EndTime 10 is before StartTime 20\n")


def test_check_schema_finds(sssjob: Command, place: Path) -> None:
    code, _, err = sssjob("check", "--policy", "ignore", "--schema", "unknown.xml")
    assert code == 1
    assert "Colour" in err


@pytest.mark.parametrize(("options", "code", "severity"), [
    ([], 1, " error "), (["--policy", "warn"], 0, " warning "), (["--policy", "WARN", "--strict"], 1, " warning "),
    (["-q", "--policy", "warn", "--strict"], 1, " warning "), (["--policy", "ignore"], 0, None),
    (["--policy", "warn", "-q"], 0, None), (["-q"], 1, " error "),
])
def test_policy_strict_quiet(sssjob: Command, place: Path, options: list[str], code: int, severity: str | None
                             ) -> None:
    got, out, err = sssjob("check", *options, "unknown.xml")
    assert (got, out) == (code, "")
    assert err == "" if severity is None else err.startswith(UNKNOWN_LINE + severity)


def test_profile(sssjob: Command, place: Path) -> None:
    Path("old.xml").write_text("<Job><JobId>1</JobId></Job>")
    assert sssjob("check", "old.xml").code == 0
    assert sssjob("check", "--profile", "3.1", "old.xml").code == 1


def test_standard_input(sssjob: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path("unknown.xml").read_bytes())))
    code, _, err = sssjob("check", "-")
    assert (code, err.startswith("-:3:3: SSS301 error")) == (1, True)


# --- convert

def test_convert_there_and_back(sssjob: Command, place: Path) -> None:
    assert sssjob("convert", "-f", "sss", "-t", "sss-json", "job.xml", "-o", "job.json") == (0, "", "")
    assert stat.S_IMODE(os.stat("job.json").st_mode) == 0o600
    code, out, _ = sssjob("convert", "--from", "sss-json", "--to", "sss", "job.json")
    assert (code, out) == (0, sssjob("convert", "-f", "sss", "-t", "sss", "job.xml").out)


def test_convert_writes_nothing_when_it_rejects(sssjob: Command, place: Path) -> None:
    assert sssjob("convert", "-f", "sss", "-t", "sss", "-o", "new.xml", "unknown.xml").code == 1
    assert sssjob("convert", "-f", "sss", "-t", "sss", "--out", "new", "unknown.xml").code == 1
    assert not Path("new.xml").exists() and not Path("new").exists()


def test_convert_carries_over_what_a_spec_says(sssjob: Command, place: Path) -> None:
    """A spec carries no policy: what does not carry over is told, and written is the rest (decisions 13)."""
    (place / "spec.json").write_text('{"executable": "/bin/date", "launcher": "mpirun"}')
    code, out, err = sssjob("convert", "-f", "psij", "-t", "slurm", "spec.json")
    assert code == 0 and out.endswith("/bin/date\n") and "SSS501 warning [breaks] Extension Launcher" in err
    assert sssjob("convert", "-f", "psij", "-t", "slurm", "--policy", "reject", "spec.json")[:2] == (1, "")


def test_convert_to_psij(sssjob: Command, place: Path) -> None:
    code, out, err = sssjob("convert", "-f", "sss", "-t", "psij", "--policy", "warn", "job.xml")
    assert code == 0
    assert json.loads(out)["executable"] == "/bin/echo"
    assert "SSS501 warning [looks] Id" in err


def test_convert_profile(sssjob: Command, place: Path) -> None:
    out = sssjob("convert", "-f", "sss", "-t", "sss", "--to-profile", "3.0", "job.xml").out
    assert "<JobId>demo.1</JobId>" in out


def test_convert_one_file_a_job(sssjob: Command, place: Path) -> None:
    code, out, _ = sssjob("convert", "-f", "sss", "-t", "sss", "--out", "d", "group.xml")
    assert (code, out) == (0, "d/a.xml\nd/_._b.xml\n")
    assert "<Project>red</Project>" in Path("d/a.xml").read_text()


def test_output_replaces_links_and_leaves_devices(sssjob: Command, place: Path) -> None:
    Path("kept").write_text("kept")
    Path("link").symlink_to("kept")
    assert sssjob("convert", "-f", "sss", "-t", "sss", "job.xml", "-o", "link").code == 0
    assert Path("kept").read_text() == "kept" and not Path("link").is_symlink()
    assert sssjob("convert", "-f", "sss", "-t", "sss", "job.xml", "-o", os.devnull).code == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert [p.name for p in place.iterdir() if p.name.startswith(".sssjob-")] == []


@pytest.mark.parametrize("target", [".", "none/x.xml"])
def test_output_that_cannot_be_written(sssjob: Command, place: Path, target: str) -> None:
    assert sssjob("convert", "-f", "sss", "-t", "sss", "job.xml", "-o", target).code == 3
    assert sssjob("run", "job.xml", "-o", target).code == 3
    assert not Path("hello.out").exists()


def test_convert_options(sssjob: Command, place: Path) -> None:
    answer = sssjob("convert", "-f", "sss", "-t", "sss-json", "--option", "indent=0", "offer.xml")
    assert answer == (0, '{"Delivered": {"Processors": 2, "Memory": {"value": 1, "units": "GB"}}}\n', "")


@pytest.mark.parametrize("policy", ["warn", "ignore"])
def test_convert_explains_the_way_of_every_property(sssjob: Command, place: Path, policy: str) -> None:
    code, _, err = sssjob("convert", "--explain", "-f", "sss", "-t", "psij", "--policy", policy, "job.xml")
    ways = [line.partition(" (")[0] for line in err.splitlines() if line.startswith("Job/")]
    assert (code, ways) == (0, [
        "Job/Id: dropped", "Job/Name: exact", "Job/Executable: exact", "Job/Arguments: exact",
        "Job/OutputFile: exact", "Job/Environment/Variable API_TOKEN: exact", "Job/Requested/Processors: approximated",
        "Job/Requested/Memory: approximated"])
    err = sssjob("convert", "--json", "--explain", "-f", "sss", "-t", "psij", "--policy", policy, "job.xml").err
    assert {"type": "way", "name": "Job/Name", "way": "exact"} in records(err)


@pytest.mark.parametrize("target", ["psij", "slurm", "jsdl", "flux-jobspec"])
def test_what_is_told_of_a_request_is_not_told_of_what_was_delivered(sssjob: Command, place: Path, target: str) -> None:
    """What an earlier run left is no part of a request; of two properties of one name each has its own way."""
    Path("done.xml").write_text(
        "<Job><Id>a</Id><State>Completed</State><Executable>/bin/a</Executable><StartTime>1</StartTime><EndTime>5</EndTime>"
        "<Charge>3</Charge><Requested><Processors op='GE'>12</Processors><Duration>60</Duration></Requested>"
        "<Delivered><Processors>12</Processors><Duration>4</Duration></Delivered></Job>")
    err = sssjob("convert", "-q", "--explain", "-t", target, "--policy", "warn", "done.xml").err
    ways = dict(line.partition(" (")[0].split(": ") for line in err.splitlines() if line.startswith("Job/"))
    requested = ways.pop("Job/Requested/Processors")
    assert (requested, ways) == ("exact" if target == "jsdl" else "approximated", {     # which has bounds
        "Job/Id": "dropped", "Job/Executable": "exact", "Job/Requested/Duration": "exact"} | dict.fromkeys((
            "Job/State", "Job/StartTime", "Job/EndTime", "Job/Charge", "Job/Delivered/Processors",
            "Job/Delivered/Duration"), "fact not carried"))


def test_convert_to_files_tells_what_the_group_loses(sssjob: Command, place: Path) -> None:
    said = "group.xml:1:1: SSS501 {} the files of single jobs have no place for Id of the group\n"
    options = ("-f", "sss", "-t", "sss", "group.xml", "--out")
    assert sssjob("convert", *options, "d").err == said.format("warning [looks]")
    assert sssjob("convert", *options, "d", "--policy", "ignore").err == ""
    assert sssjob("convert", *options, "e", "--policy", "reject") == (1, "", said.format("error"))
    assert not Path("e").exists()


def test_exact_notes_only_with_explain(sssjob: Command, place: Path) -> None:
    Path("foreign.xml").write_text("<Job><Id>1</Id><StepId>x</StepId></Job>")
    assert "SSS312" not in sssjob("convert", "-f", "sss", "-t", "sss", "foreign.xml").err
    assert "SSS312" in sssjob("convert", "--explain", "-f", "sss", "-t", "sss", "foreign.xml").err


def test_policy_inside_a_document_wins(sssjob: Command, place: Path) -> None:
    Path("own.xml").write_text(
        "<Job><Id>1</Id>\n<Requested awarenessPolicy='Reject'><Colour/></Requested><Shade/></Job>")
    code, _, err = sssjob("check", "--policy", "ignore", "own.xml")
    assert (code, [line.split()[0] for line in err.splitlines()]) == (1, ["own.xml:2:37:"])


# --- query, show, explain, match

QUOTES = "<Job><Id>1</Id><Requested><Memory op=”LE”>5</Memory></Requested></Job>"


def test_query_tells_repairs_and_follows_the_profile(sssjob: Command, place: Path) -> None:
    Path("quotes.xml").write_text(QUOTES)
    code, out, err = sssjob("query", "//@op", "--format", "text", "quotes.xml")
    assert (code, out, err.split()[1:3]) == (0, "LE\n", ["SSS104", "warning"])
    assert sssjob("query", "//@op", "--strict", "quotes.xml").code == 1
    assert records(sssjob("query", "//@op", "--json", "quotes.xml").err)[0]["rule"] == "SSS104"
    code, out, err = sssjob("query", "--profile", "3.1", "//@op", "quotes.xml", "job.xml")
    assert (code, out.count("op"), err.split()[1:3]) == (1, 2, ["SSS101", "error"])
    assert sssjob("query", "--profile", "3.1", "//JobId", "job.xml").out == ""
    assert sssjob("query", "//JobId", "job.xml").out == "<Id>demo.1</Id>\n"


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_query_follows_the_policy_when_there_is_one(sssjob: Command, place: Path, stream: list[str]) -> None:
    assert sssjob("query", *stream, "//Id", "unknown.xml") == (0, "<Id>x</Id>\n", "")
    code, out, err = sssjob("query", *stream, "--policy", "reject", "//Id", "unknown.xml", "job.xml")
    assert (code, out, err.startswith(UNKNOWN_LINE + " error")) == (1, "<Id>demo.1</Id>\n", True)
    code, out, err = sssjob("query", *stream, "--policy", "warn", "//Id", "unknown.xml")
    assert (code, out, err.startswith(UNKNOWN_LINE + " warning")) == (0, "<Id>x</Id>\n", True)
    assert sssjob("query", *stream, "--policy", "ignore", "//Id", "unknown.xml") == (0, "<Id>x</Id>\n", "")


_DEFAULTED = """<JobGroup>
<JobDefaults><Project>p</Project><Requested><Memory units="GB">2</Memory></Requested></JobDefaults>
<Job><Id>1</Id></Job>
<Job><Id>2</Id><Project>own</Project><Requested><Memory>100</Memory></Requested></Job>
</JobGroup>
"""


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_query_over_effective_values(sssjob: Command, place: Path, stream: list[str]) -> None:
    Path("d.xml").write_text(_DEFAULTED)
    ask = partial(sssjob, "query", *stream, "--effective")
    assert ask("count(//Job[Project='p'])", "--format", "text", "d.xml") == (0, "1\n", "")
    assert sssjob("query", *stream, "count(//Job[Project='p'])", "--format", "text", "d.xml") == (0, "0\n", "")
    assert ask("//Job[sss:bytes(Requested/Memory) > 1073741824]", "d.xml") == (
        0, '<Job><Id>1</Id><Project>p</Project><Requested><Memory units="GB">2</Memory></Requested></Job>\n', "")
    assert ask("--json", "//Project", "d.xml").out == (
        '{"kind": "element", "name": "Project", "file": "d.xml", "line": 3, "path": "/JobGroup/Job[1]/Project", '
        '"value": "p"}\n{"kind": "element", "name": "Project", "file": "d.xml", "line": 4, '
        '"path": "/JobGroup/Job[2]/Project", "value": "own"}\n')


def test_query_over_effective_values_reads_the_document(sssjob: Command, place: Path) -> None:
    """What reading finds is told, as for JSON; --policy decides whether it refuses."""
    for stream in ([], ["--stream"]):
        code, out, err = sssjob("query", "--effective", *stream, "//Id", "unknown.xml")
        assert (code, out) == (1, "<Id>x</Id>\n") and "SSS301" in err
        code, out, err = sssjob("query", "--effective", *stream, "--policy", "reject", "//Id", "unknown.xml")
        assert (code, out) == (1, "") and err.count("SSS301") == 1
        code, out, err = sssjob("query", "--effective", *stream, "--policy", "warn", "//Id", "unknown.xml")
        assert (code, out) == (0, "<Id>x</Id>\n") and err.count("SSS301") == 1


def test_query_with_defaults_after_the_jobs(sssjob: Command, place: Path) -> None:
    lines = _DEFAULTED.splitlines(keepends=True)
    Path("late.xml").write_text("".join([lines[0], *lines[2:4], lines[1], lines[4]]))
    assert sssjob("query", "--effective", "--format", "text", "//Project", "late.xml") == (0, "p\nown\n", "")
    assert sssjob("query", "--effective", "--stream", "--format", "text", "sum(//Memory)", "late.xml") == (
        2, "", "sssjob: late.xml:4: JobDefaults stands after jobs that it holds for, which a stream has let go by "
               "then; leave --stream away\n")


@pytest.mark.parametrize(("query", "code", "out", "err"), [
    ("count(//Job)", 0, "2\n", ""),
    ("sum(//Memory)", 0, "102\n", ""),
    ("max(//Memory)", 0, "100\n", ""),
    ("exists(//Job[Id = 3])", 0, "false\n", ""),
    ("count(Project)", 0, "0\n1\n", ""),
    ("//Job[last()]", 2, "", "a stream shows each Job alone: it has no place among other jobs (position, last)\n"),
    ("last()", 2, "", "a stream shows each Job alone: it has no place among other jobs (position, last)\n"),
    ("/JobGroup/JobDefaults", 2, "",
     "a stream shows each Job alone: JobDefaults stands beside the jobs and is not seen\n"),
    ("count(//Job) + 1", 2, "",
     "its value depends on more than one job; one value of a whole stream is that of count(), sum(), min(), "
     "max(), exists() or empty() of a path, and a value of each Job that of //Job/...\n"),
    ("2 + 2", 2, "", "the query asks nothing of a job: leave --stream away\n"),
])
def test_query_over_all_jobs_of_a_stream(sssjob: Command, place: Path, query: str, code: int, out: str,
                                         err: str) -> None:
    Path("d.xml").write_text("\n".join(line for line in _DEFAULTED.splitlines() if "JobDefaults" not in line).replace(
        "<Job><Id>1</Id></Job>", "<Job><Id>1</Id><Requested><Memory>2</Memory></Requested></Job>"))
    why = f"sssjob: the query cannot be asked of a stream: {err}" if err else ""
    assert sssjob("query", "--stream", "--format", "text", query, "d.xml") == (code, out, why)


@pytest.mark.parametrize(("query", "expected"), [
    ("last()", "the query cannot be evaluated: last() counts nothing here: it belongs into a condition, [last()]"),
    ("count(1)", "the query cannot be evaluated: a function or an operator that takes nodes was given a value"),
    ("//Job[Id=$x]", "the query cannot be evaluated: it has a variable that was not given (--var NAME=VALUE)"),
    ("//foo:Job", "the query cannot be evaluated: it has a prefix that the root of the document does not declare"),
    ("sss:bites(.)", "there is no function sss:bites(); of the prefix sss there are bytes, seconds, nodes"),
    ("sss:bytes()", "the query cannot be evaluated: sss:bytes() takes one argument, not 0"),
])
def test_query_says_what_is_wrong(sssjob: Command, place: Path, query: str, expected: str) -> None:
    assert sssjob("query", query, "job.xml") == (2, "", f"sssjob: {expected}\n")


def test_query_forms(sssjob: Command, place: Path) -> None:
    assert sssjob("query", "//Job/Id", "group.xml").out == "<Id>a</Id>\n<Id>../b</Id>\n"
    assert sssjob("query", "--format", "text", "//Job/Id", "group.xml", "job.xml").out == "a\n../b\ndemo.1\n"
    assert [r["value"] for r in records(sssjob("query", "--json", "//Job/Id/text()", "group.xml").out)] == ["a", "../b"]
    assert sssjob("query", "--stream", "--format", "text", "Id", "group.xml").out == "a\n../b\n"
    assert sssjob("query", "--var", "x=a", "--format", "text", "//Job[Id=$x]/Id", "group.xml").out == "a\n"
    joined = sssjob("query", "--xpath", "3.1", "--format", "text", "string-join(//Job/Id, '+')", "group.xml")
    assert joined.out == "a+../b\n"


def test_line_breaks_make_no_rows(sssjob: Command, place: Path) -> None:
    Path("rows.xml").write_text("<Job><Id>1&#10;2  Completed  0</Id><Name>a&#10;b</Name></Job>")
    for options in ([], ["--origins"]):
        assert "\n2  Completed" not in sssjob("show", "-q", *options, "rows.xml").out
    assert sssjob("show", "-q", "--brief", "rows.xml").out.splitlines()[2:] == [
        "1↵2  Completed  0  ·      ·     ·                       ·           ·"]


def test_show_does_not_obey_markup(sssjob: Command, place: Path) -> None:
    Path("m.xml").write_text("<Job><Id>1</Id><Arguments>[red]x[/red] \u009b31m</Arguments></Job>")
    out = sssjob("show", "m.xml").out
    assert "[red]x[/red] \\u{009B}31m" in out


def test_explain_rule(sssjob: Command, place: Path) -> None:
    code, out, _ = sssjob("explain", "sss301")
    assert (code, out.splitlines()[0]) == (0, "SSS301  element not known")
    assert records(sssjob("explain", "--json", "SSS301").out)[0]["governed"] is True


def test_explain_document(sssjob: Command, place: Path) -> None:
    assert sssjob("explain", "job.xml").out == (
        "Job demo.1 asks for:\n  all of\n    Processors at least 1\n    Memory at least 64 MB\n")


def test_explain_takes_defaults_groups_and_bare_requests(sssjob: Command, place: Path) -> None:
    Path("many.xml").write_text(
        "<JobGroup><Id>g</Id><JobDefaults><Requested><Memory units='MB'>5</Memory></Requested></JobDefaults>"
        "<Job><Id>a</Id><TaskGroup><Requested><Processors>2</Processors></Requested></TaskGroup></Job></JobGroup>")
    assert sssjob("explain", "many.xml").out == (
        "Job a asks for:\n  Memory 5 MB (from JobDefaults)\n  task group 1:\n    Processors 2\n")
    Path("bare.xml").write_text("<Requested><Memory group='1'>5</Memory><Swap group='-1'>1</Swap></Requested>")
    assert sssjob("explain", "bare.xml").out == (
        "Requested asks for:\n  all of\n    Memory 5 MB\n    Swap 1 MB\n")
    Path("wild.xml").write_text("<Requested><Memory group='1000000000000'>5</Memory></Requested>")
    assert len(sssjob("explain", "wild.xml").out) < 100


def test_match_without_an_answer(sssjob: Command, place: Path) -> None:
    """A request that is refused is neither met nor not met; its findings name the file."""
    Path("wild.xml").write_text("<Requested><Memory group='1000000'>5</Memory></Requested>")
    for option in ([], ["--json"]):
        code, out, err = sssjob("match", *option, "wild.xml", "offer.xml")
        assert (code, out, "group_depth" in err) == (1, "", True)
    assert "wild.xml:1:1: SSS110 error" in sssjob("match", "wild.xml", "offer.xml").err


def test_match(sssjob: Command, place: Path) -> None:
    assert sssjob("match", "job.xml", "offer.xml") == (0, "met\n", "")
    Path("small.xml").write_text("<Delivered><Processors>1</Processors></Delivered>")
    code, out, _ = sssjob("match", "job.xml", "small.xml")
    assert (code, out.splitlines()[0], "Memory" in out) == (1, "not met", True)
    assert "Processors" in sssjob("match", "--explain", "job.xml", "offer.xml").out
    assert records(sssjob("match", "--json", "job.xml", "offer.xml").out)[0]["met"] is True


# --- run, executors, completion

def test_match_says_what_eq_means(sssjob: Command, place: Path) -> None:
    """An offer of more is capacity; to the letter EQ asks for just so much, and a refusal says so."""
    Path("exact.xml").write_text("<Requested><Memory units='MB'>512</Memory><Processors>2</Processors></Requested>")
    assert sssjob("match", "exact.xml", "offer.xml") == (0, "met\n", "")
    assert sssjob("match", "--delivered", "exact.xml", "offer.xml") == (1, (
        "not met\n  - all of\n    - Memory = 512 MB: offered 1 GB (EQ asks for just so much, GE for at least)\n"
        "    + Processors = 2: offered 2\n"), "")


# --- the JSON twin

@pytest.fixture
def twin(sssjob: Command, place: Path) -> Path:
    """The group in JSON, behind a mark that says nothing, as some editors write it."""
    text = sssjob("convert", "-f", "sss", "-t", "sss-json", "group.xml").out
    path = place / "group.json"
    path.write_bytes(b"\xef\xbb\xbf\n" + text.encode())
    return path


@pytest.mark.parametrize("words", [["check"], ["show"], ["show", "--origins"], ["explain"], ["query", "//Id"],
                                   ["query", "--policy", "warn", "//Project"]])
def test_commands_read_the_twin_like_the_document(sssjob: Command, place: Path, twin: Path, words: list[str]) -> None:
    assert sssjob(*words, twin) == sssjob(*words, "group.xml")


def test_the_twin_runs(sssjob: Command, place: Path, twin: Path) -> None:
    assert sssjob("run", "-q", twin, "-o", "done.xml")[:2] == (0, "")
    assert sssjob("query", "--format", "text", "//Job/State", "done.xml").out == "Completed\nCompleted\n"


def test_findings_in_the_twin_have_lines(sssjob: Command, place: Path) -> None:
    Path("a.json").write_text('{"Job": {"Id": "a", "Colour": "red", "StartTime": 5, "EndTime": 3}}')
    code, _, err = sssjob("check", "a.json")
    assert (code, err) == (1, (
        "a.json:1:21: SSS301 error unknown element Colour in Job (did you mean Cluster?)\n"
        "a.json:1:54: SSS412 warning EndTime 3 is before StartTime 5\n"))
    assert sssjob("query", "--policy", "reject", "//Id", "a.json")[:2] == (1, "")
    assert sssjob("query", "//Id", "a.json")[:2] == (1, "<Id>a</Id>\n")


@pytest.mark.parametrize(("words", "code", "expected"), [
    (["check", "--schema"], 2, "group.json is JSON; --schema is for XML (convert -f sss-json -t sss makes it)"),
    (["check", "--profile", "3.1"], 2, "group.json is JSON, which has one form; --profile 3.1 is for XML"),
    (["query", "--stream", "//Job"], 1, "this is JSON, of which sss-json is the form of job documents"),
    (["convert", "-f", "sss", "-t", "psij"], 1, "this is JSON, of which sss-json is the form of job documents"),
])
def test_what_is_for_xml_alone(sssjob: Command, place: Path, twin: Path, words: list[str], code: int, expected: str
                               ) -> None:
    answer = sssjob(*words, "group.json")
    assert (answer.code, answer.out, expected in answer.err) == (code, "", True)


def test_run(sssjob: Command, place: Path) -> None:
    code, out, err = sssjob("run", "job.xml", "--executor", "local", "--policy", "warn", "--json")
    assert code == 0
    assert Path("hello.out").read_text() == "hello\n"
    assert "<State>Completed</State>" in out and "<ExitCode>0</ExitCode>" in out
    assert records(err)[-1] == {"kind": "result", "origin": "job", "exit_code": 0}


def test_run_passes_the_code_on(sssjob: Command, place: Path) -> None:
    Path("seven.xml").write_text("<Job><Executable>/bin/sh</Executable><Arguments>-c 'exit 7'</Arguments></Job>")
    assert sssjob("run", "seven.xml", "-o", "out.xml").code == 7
    assert "<ExitCode>7</ExitCode>" in Path("out.xml").read_text()
    assert sssjob("run", "--no-job-code", "seven.xml", "-o", "out.xml").code == 0


def test_run_refused_by_a_finding(sssjob: Command, place: Path) -> None:
    code, out, err = sssjob("run", "--json", "unknown.xml")
    assert (code, out) == (1, "")
    assert records(err)[-1] == {"kind": "result", "origin": "sssjob", "exit_code": 1}


def test_findings_beyond_the_limit_are_counted_once(sssjob: Command, place: Path) -> None:
    jobs = "".join(f"<Job><Id>{n}</Id><Executable>/bin/true</Executable></Job>" for n in range(400))
    Path("many.xml").write_text(f"<JobGroup><Id>g</Id>{jobs}</JobGroup>")
    err = sssjob("run", "many.xml", "--timeout", "0.01", "-o", "made.xml").err
    assert err.count("more findings are not shown") == 1


def test_run_strict_starts_nothing_after_a_warning(sssjob: Command, place: Path) -> None:
    Path("many.xml").write_text(Path("job.xml").read_text().replace(">1<", ">5000<"))
    code, out, err = sssjob("run", "--strict", "--json", "many.xml")
    assert (code, out, records(err)[-1]) == (1, "", {"kind": "result", "origin": "sssjob", "exit_code": 1})
    assert not Path("hello.out").exists()
    Path("plain.xml").write_text("<Job><Id>1</Id><Executable>/bin/true</Executable></Job>")
    assert sssjob("run", "--strict", "-q", "plain.xml").code == 0


@pytest.mark.parametrize("inside", ["<Dependency>demo.1</Dependency>",
                                    "<TaskDistribution type='Geometry'>{</TaskDistribution>"])
def test_run_starts_nothing_that_check_refuses(sssjob: Command, place: Path, inside: str) -> None:
    job = Path("job.xml").read_text().replace("</Job>", f"{inside}</Job>")
    Path("wrong.xml").write_text(f"<JobGroup><Id>g</Id>{job}</JobGroup>")
    code, out, _ = sssjob("run", "--policy", "ignore", "wrong.xml")
    assert (code, out, Path("hello.out").exists()) == (1, "", False)


@pytest.mark.parametrize("arguments", [["none.xml"], ["--executor", "none", "job.xml"], ["job.xml", "-o", "no/such"],
                                       ["broken.xml"], ["job.xml", "-o", "a\0b"]])
def test_run_says_at_the_end_whose_the_code_is(sssjob: Command, place: Path, arguments: list[str]) -> None:
    code, out, err = sssjob("run", "--json", *arguments)
    assert (out, records(err)[-1]) == ("", {"kind": "result", "origin": "sssjob", "exit_code": code})


def test_run_timeout_and_resume(sssjob: Command, place: Path) -> None:
    Path("long.xml").write_text("<Job><Executable>/bin/sleep</Executable><Arguments>60</Arguments></Job>")
    assert sssjob("run", "--timeout", "0.3", "long.xml", "-o", "out.xml").code == 6
    assert sssjob("run", "job.xml", "-o", "done.xml").code == 0
    Path("hello.out").unlink()
    assert sssjob("run", "--resume", "done.xml", "-o", "again.xml").code == 0
    assert not Path("hello.out").exists()


def test_executors(sssjob: Command) -> None:
    assert "local" in sssjob("executors").out.splitlines()
    assert "local" in json.loads(sssjob("executors", "--json").out)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(sssjob: Command, shell: str) -> None:
    code, out, _ = sssjob("completion", shell)
    assert (code, "_SSSJOB_COMPLETE" in out) == (0, True)


def test_completion_answers() -> None:
    environment = os.environ | {"_SSSJOB_COMPLETE": "bash_complete", "COMP_WORDS": "sssjob che", "COMP_CWORD": "1"}
    process = subprocess.run([sys.executable, "-m", "sssjob"], env=environment, capture_output=True, text=True)
    assert (process.returncode, process.stdout) == (0, "plain,check\n")


@pytest.mark.parametrize(("body", "stays"), [("translate", 0), ("shim", 1)])
def test_out_does_not_tell_of_directives_that_were_converted_with_their_call(place: Path, sssjob: Command, body: str,
                                                                             stays: int) -> None:
    """As without it: what reading has found is told when the job was written."""
    (place / "drive.sh").write_text("#!/bin/bash\n#SBATCH -J drive\nsbatch <<E\n#!/bin/sh\n#SBATCH -J job$i\n./a\nE\n")
    for more in ([], ["--out", "new"]):
        done = sssjob("convert", "-f", "slurm", "-t", "pbspro", "--body", body, "drive.sh", *more)
        assert (done.code, done.err.count("SSS506")) == (0, stays), done.err


@pytest.mark.parametrize("words", [
    ["check"], ["explain"], ["show"], ["query", "//Id"], ["lint", "-f", "slurm"], ["canonical", "--digest"], ["split"],
    ["survey"], ["match", "offer.xml"], ["diff", "offer.xml"], ["route"], ["account"], ["rates", "check"],
    ["run", "--dry-run", "--executor", "slurm"], ["submit", "--dry-run", "--executor", "slurm"]])
@pytest.mark.parametrize("file", ["job.xml", "broken.xml", "job.sh", "none.xml"])
def test_whatever_is_asked_for_as_json_is_json(sssjob: Command, place: Path, words: list[str], file: str) -> None:
    """Of a command that writes no document each line of both streams is an object, whatever the end."""
    (place / "job.sh").write_text("#!/bin/sh\n#SBATCH -n 4 -t 10 --bogus=3\nhostname\n")
    answer = sssjob(*words, "--json", file)
    for text in (answer.out, answer.err):
        try:
            whole = [json.loads(text)] if text else []
        except json.JSONDecodeError:
            whole = records(text)
        assert all(isinstance(one, dict | list) for one in whole), answer
