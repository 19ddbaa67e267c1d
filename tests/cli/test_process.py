"""The command as a process: closed and full streams, pipes that break, signals, terminals, shells, what is imported."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from sssjob.cli import main
from tests import forks

ROOT: Final = Path(__file__).parents[2]
#: What is started where the start of an interpreter is what matters: streams that are closed, or buffered otherwise.
SSSJOB: Final = f"'{sys.executable}' -m sssjob"
LONG: Final = """<JobGroup><Id>g</Id>
<Job><Id>a</Id><Executable>/bin/sh</Executable><Arguments>-c 'echo $$ > pid; exec sleep 60'</Arguments></Job>
<Job><Id>b</Id><Executable>/bin/true</Executable><Dependency>a</Dependency></Job></JobGroup>"""


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"} | more


def bash(line: str, command: str = "", **more: str) -> tuple[int, str, str]:
    """A line of bash in which sssjob is a command, one that is forked unless stated; (status, that of the first command
    of a pipe, out, err)."""
    script = f'sssjob() {{ {command or shlex.join(forks.command())} "$@"; }}; {line}\nexit "${{PIPESTATUS[0]}}"'
    ended = subprocess.run(["bash", "-c", script], env=environment(**more), capture_output=True, text=True, timeout=60)
    return ended.returncode, ended.stdout, ended.stderr


def bash_of(line: str, unbuffered: str) -> tuple[int, str, str]:
    """The same, for tests whose commands write at once and do not: those that do not are forked, not started.

    unbuffered: as PYTHONUNBUFFERED has it, which an interpreter looks at when it starts.
    """
    if unbuffered:
        return bash(line, SSSJOB, PYTHONUNBUFFERED=unbuffered)
    return bash(line)


# --- streams

@pytest.fixture
def many(place: Path) -> str:
    Path("many.xml").write_text(
        "<JobGroup><Id>g</Id>" + "".join(f"<Job><Id>job {n}</Id></Job>" for n in range(9_000)) + "</JobGroup>")
    return "many.xml"


def both(unbuffered: list[str], *more: str) -> pytest.MarkDecorator:
    """Commands with a buffer, and some of them without, which write in other ways."""
    return pytest.mark.parametrize(("command", "unbuffered"), [
        *((command, "") for command in (*unbuffered, *more)), *((command, "1") for command in unbuffered)])


@both(["convert -f sss -t sss", "query --stream //Id", "show --json"], "query //Id", "show", "show --brief", "explain")
def test_reader_of_the_pipe_goes_away(many: str, command: str, unbuffered: str) -> None:
    code, out, err = bash_of(f"sssjob {command} {many} | head -1", unbuffered)
    assert (code, out.count("\n"), err) == (141, 1, "")


@both(["--version", "check --help", "check --json job.xml", "query //Id job.xml", "convert -f sss -t sss job.xml"],
      "--help", "explain SSS101", "executors", "completion bash", "show job.xml", "match job.xml offer.xml",
      "convert -f sss -t sss job.xml -o /dev/full")
def test_full_disk(place: Path, command: str, unbuffered: str) -> None:
    code, _, err = bash_of(f"sssjob {command} > /dev/full", unbuffered)
    assert (code, err.count("\n"), "No space left on device" in err) == (3, 1, True)


@pytest.mark.parametrize(("line", "code"), [
    ("sssjob check unknown.xml 2> /dev/full", 1), ("sssjob check 2> /dev/full", 2), ("sssjob 2> /dev/full", 2),
    ("sssjob check unknown.xml 2>&-", 1), ("sssjob check unknown.xml <&- >&- 2>&-", 1), ("sssjob chek 2>&-", 2),
    ("sssjob check unknown.xml 2> >(true)", 1), ("sssjob check job.xml <&- >&- 2>&-", 0),
])
def test_findings_that_nobody_reads_change_nothing(place: Path, line: str, code: int) -> None:
    for unbuffered in ("", "1") if "&-" not in line else ("1",):     # streams that are closed are found at the start
        assert bash_of(line, unbuffered)[0] == code


@pytest.mark.parametrize(("line", "expected"), [
    ("sssjob convert -f sss -t sss job.xml >&-", "standard output: Bad file descriptor"),
    ("sssjob run job.xml -q >&-", "standard output: is closed"),
    ("sssjob check - <&-", "-: Bad file descriptor"), ("sssjob convert -f sss -t sss <&-", "-: Bad file descriptor"),
    ("sssjob query --stream //Id - <&-", "-: Bad file descriptor"),
])
def test_closed_streams(place: Path, line: str, expected: str) -> None:
    assert bash(line, SSSJOB) == (3, "", f"sssjob: {expected}\n")
    assert not Path("hello.out").exists()


def test_files_do_not_take_the_place_of_closed_streams(place: Path) -> None:
    assert bash("sssjob run job.xml --policy warn -o made.xml <&- >&- 2>&-", SSSJOB)[0] == 0
    assert Path("made.xml").read_text().startswith("<Job>\n") and Path("hello.out").read_text() == "hello\n"


def test_results_survive_a_full_disk(place: Path) -> None:
    code, out, err = bash("sssjob run -q --policy warn job.xml -o /dev/full")
    assert (code, "<ExitCode>0</ExitCode>" in out) == (3, True)
    assert err == "sssjob: /dev/full: No space left on device\n"


@pytest.mark.parametrize("command", ["check", "query //Id", "query --stream //Id"])
def test_standard_input_can_be_read_once(place: Path, command: str) -> None:
    code, out, err = bash(f"sssjob {command} - - < job.xml")
    assert (code, out, "only once" in err) == (2, "", True)


def test_fifos(place: Path) -> None:
    os.mkfifo("in")
    os.mkfifo("out")
    code, out, _ = bash("cat out > got & cat job.xml > in & sssjob convert -f sss -t sss in -o out; wait")
    assert (code, out) == (0, "")
    assert Path("got").read_text().startswith("<Job>") and Path("out").is_fifo()


def test_names_that_are_not_utf8(place: Path) -> None:
    name = os.fsdecode(b"b\xff\x1b[31md.xml")
    shutil.copy("unknown.xml", name)
    code, out, err = bash("sssjob check --json b*d.xml")
    assert (code, {json.loads(line)["file"] for line in (out + err).splitlines()}) == (1, {name})
    assert bash("sssjob check b*d.xml")[2].startswith("b\\u{DCFF}\\u{001B}[31md.xml:3:3: SSS301")
    process = subprocess.run([*forks.command(), "convert", "-f", "sss", "-t", "sss", "--out", b"d\xff",
                              "job.xml"], env=environment(), capture_output=True)
    assert (process.returncode, process.stdout) == (0, b"d\xff/demo.1.xml\n")
    assert os.path.exists(b"d\xff/demo.1.xml")


def test_output_link_to_a_device_is_replaced(place: Path) -> None:
    Path("link").symlink_to("/dev/null")
    assert bash("sssjob convert -f sss -t sss job.xml -o link")[0] == 0
    assert Path("link").is_file() and not Path("link").is_symlink()


# --- signals

@pytest.mark.parametrize(("number", "code", "why"), [
    (signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated"), (signal.SIGHUP, 129, "hangup"),
])
def test_signals_cancel_and_the_document_comes_all_the_same(place: Path, number: int, code: int, why: str) -> None:
    Path("long.xml").write_text(LONG)
    process = subprocess.Popen([*forks.command(), "run", "--policy", "warn", "--json", "long.xml"],
                               env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not (Path("pid").exists() and Path("pid").read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert out.startswith("<JobGroup>") and "<StatusMessage>cancel:" in out
    assert f"cancel: {why} before it was started" in out
    *_, last = told = [json.loads(line) for line in err.splitlines()]
    assert last == {"kind": "result", "origin": "sssjob", "exit_code": code}
    assert {"type": "error", "status": code, "message": f"{why}: what ran was cancelled"} in told
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("pid").read_text()), 0)


def test_nohup_is_respected(place: Path) -> None:
    Path("long.xml").write_text(LONG.replace("exec sleep 60", "kill -HUP $PPID; sleep 0.2"))
    line = f"trap '' HUP; exec {SSSJOB} run -q --policy warn --no-job-code long.xml -o made.xml"
    assert subprocess.run(["bash", "-c", line], env=environment(), timeout=120).returncode == 0


def test_job_that_a_signal_ends(place: Path) -> None:
    Path("own.xml").write_text("<Job><Executable>/bin/sh</Executable><Arguments>-c 'kill -TERM $$'</Arguments></Job>")
    code, out, err = bash("sssjob run --policy warn --json own.xml")
    assert (code, '<Extension type="LRM" name="ExitSignal">15</Extension>' in out) == (143, True)
    assert json.loads(err.splitlines()[-1]) == {"kind": "result", "origin": "job", "exit_code": 143}


def test_missing_executable_and_time_limit(place: Path) -> None:
    Path("none.xml").write_text("<Job><Executable>/no/such</Executable></Job>")
    code, out, err = bash("sssjob run --policy warn --json none.xml")
    assert (code, "<StatusMessage>launch: " in out) == (5, True)
    assert json.loads(err.splitlines()[-1]) == {"kind": "result", "origin": "sssjob", "exit_code": 5}
    Path("slow.xml").write_text("<Job><Executable>/bin/sleep</Executable><Arguments>60</Arguments>"
                                "<Requested><Duration>1</Duration></Requested></Job>")
    code, out, _ = bash("sssjob run --policy warn -q slow.xml")
    assert (code, "<StatusMessage>timeout: " in out) == (143, True)


# --- terminals

def terminal(*arguments: str, **more: str) -> tuple[subprocess.Popen[bytes], int]:
    """A command with a terminal of its own, and the other side of it."""
    ours, theirs = pty.openpty()
    own = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    process = subprocess.Popen([sys.executable, "-ISc", own, sys.executable, "-m", "sssjob", *arguments], stdin=theirs,
                               stdout=theirs, stderr=theirs, start_new_session=True,
                               env=environment(**{"TERM": "xterm"} | more))
    os.close(theirs)
    return process, ours


def on_terminal(*arguments: str, **more: str) -> tuple[int, str]:
    """What a command, which is forked, shows on a terminal of 80 columns, standard error included."""
    ours, theirs = pty.openpty()
    process = forks.Forked(["sssjob", *arguments], Path.cwd(), environment(**{"TERM": "xterm"} | more), [theirs] * 3)
    os.close(theirs)
    shown = b""
    with suppress(OSError):         # the other side has gone
        while piece := os.read(ours, 65_536):
            shown += piece
    os.close(ours)
    return process.wait(60), shown.decode().replace("\r\n", "\n")


HIDDEN: Final = "\u202e\x9b31m"
HOSTILE: Final = f"""<JobGroup><Id>g</Id>
<Job><Id>a{HIDDEN}</Id><Executable>/bin/true</Executable></Job>
<Job><Id>b{HIDDEN}</Id><Executable>/bin/false</Executable></Job></JobGroup>"""


@pytest.mark.parametrize("arguments", [
    ["check"], ["show"], ["show", "--brief"], ["explain"], ["query", "//Id"], ["convert", "-f", "sss", "-t", "sss"],
    ["convert", "-f", "sss", "-t", "sss-json"], ["run", "--policy", "warn"]])
def test_terminals_get_no_control_characters_of_documents(place: Path, arguments: list[str]) -> None:
    Path("bad.xml").write_text(HOSTILE)
    code, shown = on_terminal(*arguments, "bad.xml")
    assert code == (1 if arguments[0] == "run" else 0)
    assert not {"\u202e", "\x9b"} & set(shown) and "\\u{202E}" in shown
    assert set(re.findall("\x1b\\[[0-9;?]*([A-Za-z])", shown)) <= set("mKAhl")


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
@pytest.mark.parametrize("arguments", [["check", "unknown.xml"], ["show", "job.xml"], ["chek"], ["--help"]])
def test_no_colour_where_none_is_wanted(place: Path, arguments: list[str], more: dict[str, str]) -> None:
    assert "\x1b" not in on_terminal(*arguments, **more)[1]


def test_colour_otherwise(place: Path) -> None:
    assert "\x1b" in on_terminal("check", "unknown.xml")[1]


def test_caret_under_the_place(place: Path) -> None:
    _, shown = on_terminal("check", "unknown.xml", NO_COLOR="1")
    assert shown == ("unknown.xml:3:3: SSS301 error unknown element Colour in Job (did you mean Cluster?)\n"
                     "      <Colour>red</Colour>\n      ^\nunknown.xml: not accepted, 1 error, 0 warnings\n")


def test_progress_is_one_line(place: Path) -> None:
    names = [f"{n}-{'x' * 60}" for n in range(3)]
    Path("wide.xml").write_text("<JobGroup><Id>g</Id>" + "".join(
        f"<Job><Id>{n}</Id><Executable>/bin/sleep</Executable><Arguments>0.5</Arguments></Job>" for n in names)
        + "</JobGroup>")
    code, shown = on_terminal("run", "--policy", "ignore", "wide.xml", "-o", "made.xml")
    assert (code, shown.count("\x1b[1A")) == (0, 1)        # a line up at the end only: nothing was wrapped
    assert all(f"{n}: done" in shown for n in names)


def test_terminal_that_is_closed_cancels_and_the_document_is_written(place: Path) -> None:
    Path("long.xml").write_text(LONG)
    process, fd = terminal("run", "--policy", "warn", "long.xml", "-o", "made.xml")
    end = time.monotonic() + 60
    while not (Path("pid").exists() and Path("pid").read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    os.close(fd)
    assert process.wait(120) == 129
    assert "cancel: hangup before it was started" in Path("made.xml").read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("pid").read_text()), 0)


# --- shells

def test_bash_completes(place: Path) -> None:
    """Sourced in bash, asked as the shell asks."""
    script = """source <(sssjob completion bash); complete -p sssjob
    compopt() { echo "$@"; }
    ask() {
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _sssjob_completion sssjob; echo "${COMPREPLY[@]}"
    }
    ask sssjob co; ask sssjob check --pr; ask sssjob check --profile 3; ask sssjob convert -f sss
    ask sssjob run --executor lo
    ask sssjob explain SSS60; ask sssjob check j; ask sssjob convert --out d"""
    where = place / "bin"
    where.mkdir()
    (where / "sssjob").write_text(f'#!/bin/sh\nexec {shlex.join(forks.command())} "$@"\n')
    (where / "sssjob").chmod(0o755)
    process = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60,
                             env=environment(PATH=f"{where}:{os.environ['PATH']}"))
    assert process.stderr == ""
    assert process.stdout.splitlines() == [
        "complete -o nosort -F _sssjob_completion sssjob", "completion config convert", "--profile", "3.1 3.0",
        "sss sss-json",
        "local", "SSS601 SSS602 SSS603 SSS604 SSS605 SSS606 SSS607", "-o default", "", "-o dirnames", ""]


@pytest.mark.parametrize(("shell", "script"), [
    ("zsh", "autoload -U compinit; compinit -u -D; eval \"$(sssjob completion zsh)\"; print $_comps[sssjob]"),
    ("fish", "sssjob completion fish | source; complete -C 'sssjob exp'"),
])
def test_other_shells_take_the_script(place: Path, shell: str, script: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    Path("sssjob").write_text(f'#!/bin/sh\nexec {SSSJOB} "$@"\n')
    Path("sssjob").chmod(0o755)
    process = subprocess.run([shell, "-c", script], capture_output=True, text=True, timeout=60,
                             env=environment(PATH=f"{place}:{os.environ['PATH']}", HOME=str(place)))
    assert process.stderr == "" and process.stdout.startswith({"zsh": "_sssjob_completion", "fish": "explain"}[shell])


# --- what is imported

HEAVY: Final = ("elementpath", "xmlschema", "pydantic", "rich", "jinja2", "jsonschema", "pyarrow", "psij", "lxml",
                "re2", "sssjob.translators.records", "sssjob.document.patterns")


#: Commands of one interpreter, one after the other -> what each of them has imported after those before it.
PROGRAMS: Final = (
    {("--version",): [], ("--help",): ["click"], ("explain", "SSS301"): ["click"], ("completion", "bash"): ["click"],
     ("check", "--help"): ["click"], ("run", "--help"): ["click"],
     ("convert", "-q", "-f", "slurm", "-t", "pbspro", "job.sh"): ["click"]},
    {("check", "job.xml"): ["lxml", "click"], ("show", "job.xml"): ["lxml", "click"],
     ("query", "//Id", "job.xml"): ["lxml", "click"], ("explain", "job.xml"): ["lxml", "click"],
     ("convert", "-f", "sss", "-t", "sss-json", "job.xml"): ["lxml", "click"],
     ("match", "job.xml", "offer.xml"): ["lxml", "click"]},
    {("executors",): ["psij", "click"]},
    {("run", "-q", "--policy", "warn", "job.xml"): ["psij", "lxml", "click"]},
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda commands: " ".join(next(iter(commands))))
def test_heavy_modules_are_imported_only_when_used(place: Path, program: dict[tuple[str, ...], list[str]]) -> None:
    (place / "job.sh").write_text("#!/bin/sh\n#SBATCH -n 2\nhostname\n")
    code = ("import json, sys; from sssjob.cli import main\n"
            f"for arguments in {list(program)!r}:\n"
            "    main(list(arguments))\n"
            f"    print(json.dumps([m for m in {(*HEAVY, 'click')!r} if m in sys.modules]), file=sys.stderr)\n")
    ended = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
    lines = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("[")]
    assert dict(zip(program, lines, strict=True)) == program


def test_a_directory_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                           capsys: pytest.CaptureFixture[str]) -> None:
    """Of all that a run needs, nobody can guess what "No such file or directory" is about."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["run", str(ROOT / "examples" / "hello.xml"), "--executor", "local"]) == 3
    assert capsys.readouterr().err == "sssjob: the current directory: No such file or directory\n"
