"""The language server, spoken to as an editor does: what it says of scripts, and what a broken client gets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from sssjob.conversion.editing import Page
from sssjob.limits import LIMITS
from tests import forks

pytest.importorskip("pygls")

SCRIPT = """#!/bin/bash
#SBATCH --job-name=cfd --mem=4G
#SBATCH --ntasks-per-nod=4
#SBATCH --nodez=2
#SBATCH -n 4
srun ./a.out
#SBATCH --qos=late
"""
URI = "file:///home/ann/a.sh"


class Editor:
    """A client that speaks the protocol over pipes. program: the command ``sssjob``."""

    def __init__(self, *program: str) -> None:
        self.process = subprocess.Popen([*program, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.count = 0
        self.told: list[dict[str, Any]] = []        # notifications that came while an answer was waited for

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self.process.stdin is not None and self.process.stdout is not None
        return self.process.stdin, self.process.stdout

    def send(self, method: str, params: object, **more: object) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        self.pipes[0].write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.pipes[0].flush()

    def message(self) -> dict[str, Any]:
        length, out = 0, self.pipes[1]
        while (line := out.readline()) != b"\r\n":
            assert line, self.process.stderr.read() if self.process.stderr else ""
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        found: dict[str, Any] = json.loads(out.read(length))
        return found

    def ask(self, method: str, params: object) -> Any:
        """The result of a request."""
        self.count += 1
        self.send(method, params, id=self.count)
        while "id" not in (found := self.message()) or "method" in found:
            self.told.append(found)
        assert "error" not in found, found
        return found["result"]

    def notified(self, method: str) -> Any:
        """The parameters of the next notification."""
        while True:
            found = self.told.pop(0) if self.told else self.message()
            if found.get("method") == method:
                return found["params"]

    def begin(self, encoding: str = "utf-16") -> Any:
        result = self.ask("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": {
            "general": {"positionEncodings": [encoding]}}})
        self.send("initialized", {})
        return result

    def open(self, text: str, uri: str = URI) -> list[dict[str, Any]]:
        self.send("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "shellscript", "version": 1,
                                                            "text": text}})
        found: list[dict[str, Any]] = self.notified("textDocument/publishDiagnostics")["diagnostics"]
        return found

    def end(self) -> tuple[int, bytes]:
        """The exit status, and what was told on standard error."""
        if self.process.poll() is None:
            self.ask("shutdown", None)
            self.send("exit", None)
        told = self.process.communicate(timeout=120)[1]
        return self.process.returncode, told


@pytest.fixture(params=["forked"])
def editor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Editor]:
    """An editor with its server: a process that is forked, or an interpreter of its own."""
    program = tmp_path / "sssjob"
    program.write_text(forks.program("module", "tests.cli.lsp_program"))
    program.chmod(0o755)
    made = Editor(str(program)) if request.param == "forked" else Editor(sys.executable, "-m", "sssjob")
    yield made
    if made.process.poll() is None:
        made.process.kill()
    made.process.communicate()


def at(line: int, character: int) -> dict[str, Any]:
    return {"textDocument": {"uri": URI}, "position": {"line": line, "character": character}}


def ranged(one: dict[str, Any]) -> tuple[int, int, int]:
    return one["range"]["start"]["line"], one["range"]["start"]["character"], one["range"]["end"]["character"]


@pytest.mark.parametrize("editor", ["interpreter"], indirect=True)
def test_an_editor_at_work(editor: Editor) -> None:
    """What is found is marked at its place and anew after each change; hover, names and conversions are answered."""
    assert editor.begin()["serverInfo"]["name"] == "sssjob"
    diagnostics = editor.open(SCRIPT)
    assert [(ranged(one), one["code"], one["severity"]) for one in diagnostics] == [
        ((2, 8, 26), "SSS525", 4), ((3, 8, 17), "SSS505", 1), ((6, 0, 7), "SSS506", 4)]
    editor.send("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"range": {
        "start": {"line": 3, "character": 8}, "end": {"line": 3, "character": 17}}, "text": "--nodes=2"}]})
    changed = editor.notified("textDocument/publishDiagnostics")
    assert changed["version"] == 2 and 3 not in [ranged(one)[0] for one in changed["diagnostics"]]

    hover = editor.ask("textDocument/hover", at(1, 27))
    assert ranged(hover) == (1, 23, 31)
    assert hover["contents"]["value"].startswith("**--mem** of Slurm\n\n- Memory 4 GB PerNode\n\n```\n#PBS -l ")
    assert editor.ask("textDocument/hover", at(5, 2)) is None

    names = editor.ask("textDocument/completion", at(3, 13))["items"]
    assert [one["label"] for one in names] == ["--nodes", "--nodelist", "--nodefile"]
    assert names[0]["textEdit"]["range"]["start"]["character"] == 8

    actions = editor.ask("textDocument/codeAction", {"textDocument": {"uri": URI}, "range": {
        "start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "context": {"diagnostics": []}})
    titles = [one["title"] for one in actions]
    assert titles[0] == "Mend what can be mended without a doubt" and "Convert to PBS Pro" in titles
    assert "--ntasks-per-node=4" in actions[0]["edit"]["changes"][URI][0]["newText"]
    convert = editor.ask("codeAction/resolve", actions[titles.index("Convert to PBS Pro")])
    assert "#PBS -l select=2:" in convert["edit"]["changes"][URI][0]["newText"]

    editor.send("textDocument/didClose", {"textDocument": {"uri": URI}})
    assert editor.notified("textDocument/publishDiagnostics")["diagnostics"] == []
    assert editor.end() == (0, b"")


@pytest.mark.parametrize(("encoding", "start"), [("utf-16", 15), ("utf-32", 14), ("utf-8", 17)])
def test_characters_are_counted_as_the_editor_does(editor: Editor, encoding: str, start: int) -> None:
    """A sign outside of the first plane is one, two or four units."""
    editor.begin(encoding)
    diagnostics = editor.open("#!/bin/sh\n#SBATCH -J \U0001f600  --nodez=2\n")
    assert [ranged(one)[:2] for one in diagnostics if one["code"] == "SSS505"] == [(1, start)]


@pytest.mark.parametrize("text", ["", "#!/bin/sh\necho no directive\n", "\0", "#SBATCH", "#SBATCH -J '", "\ud800",
                                  "#PBS -N a\n#SBATCH -J a\n", "{{ a }}\n#SBATCH {{ b }}\n", "#SBATCH -J a\r\n"])
def test_any_text_is_a_page(text: str) -> None:
    """Whatever stands in an editor: marks lie within it, and nothing raises at any place."""
    page = Page(text)
    for mark in page.marks():
        assert 0 <= mark.start <= mark.end <= len(page.lines[mark.line] if page.lines else "")
    for line in range(-1, len(page.lines) + 2):
        for character in (0, 1, 8, 11, 100):
            page.hover(line, character)
            page.proposals(line, character)
    page.mended()
    for target in page.targets():
        page.converted(target.name)


def test_a_script_that_is_too_large(editor: Editor) -> None:
    editor.begin()
    assert [one["code"] for one in editor.open("#SBATCH -J a\n" + "x" * LIMITS.script_bytes)] == ["SSS110"]


def test_a_large_script_holds_nobody_up(editor: Editor) -> None:
    """What nobody types is not read after each key: one mark says so, and whatever is asked of it is answered."""
    editor.begin()
    marks = editor.open("#SBATCH -J a\n" + "echo $SLURM_JOB_ID\n" * (LIMITS.shell_bytes // 19 + 1))
    assert [(ranged(mark), mark["code"], mark["severity"]) for mark in marks] == [((0, 0, 0), "SSS110", 4)]
    assert editor.ask("textDocument/hover", at(0, 9)) is None
    assert editor.ask("textDocument/completion", at(1, 4))["items"] == []
    beginning = {"line": 0, "character": 0}
    assert editor.ask("textDocument/codeAction", {"textDocument": {"uri": URI}, "context": {"diagnostics": []},
                                                  "range": {"start": beginning, "end": beginning}}) == []


@pytest.mark.parametrize("params", [None, [1], {}, at(-1, 0), at(1, 2) | {"position": {"line": "x"}}])
def test_a_request_without_its_parameters_is_answered(editor: Editor, params: object) -> None:
    """An editor that waits for an answer shows nothing else meanwhile."""
    editor.begin()
    editor.open(SCRIPT)
    editor.count += 1
    editor.send("textDocument/hover", params, id=editor.count)
    while "id" not in (answer := editor.message()):
        assert answer["method"] in ("window/showMessage", "textDocument/publishDiagnostics")
    assert answer["id"] == editor.count and answer["error"]["code"] in (-32602, -32603)
    assert editor.ask("textDocument/hover", at(1, 9)) is not None


@pytest.mark.parametrize("sent", [
    b"", b"Content-Length: 5\r\n\r\n{]{]{", b"Content-Length: x\r\n\r\n{}", b"nothing of the kind\r\n\r\n",
    b'Content-Length: 46\r\n\r\n{"jsonrpc":"2.0","method":"exit","params":null}', b"Content-Length: 99999\r\n\r\n{}"])
def test_a_broken_client(editor: Editor, sent: bytes) -> None:
    """The server ends with its client, without a traceback."""
    out, told = editor.process.communicate(sent, timeout=120)
    assert b"Traceback" not in told + out


def test_an_answer_comes_while_one_types(editor: Editor) -> None:
    """An unknown address, a place outside of the text, a request that does not exist: an answer each."""
    editor.begin()
    assert editor.open(SCRIPT)
    outside = {"textDocument": {"uri": "file:///nowhere/b.sh"}, "position": {"line": 99, "character": 99}}
    assert editor.ask("textDocument/hover", at(99, 99)) is None
    assert editor.ask("textDocument/completion", at(99, 0))["items"] == []
    assert editor.ask("textDocument/hover", outside) is None
    editor.count += 1
    editor.send("textDocument/strange", {}, id=editor.count)
    assert editor.message()["error"]["code"] == -32601
    assert editor.end() == (0, b"")


def test_the_time_of_an_answer() -> None:
    """All marks of a script, and a hover with all other managers: the time is in bench, here only that both come."""
    page, begun = Page(SCRIPT), time.process_time()
    assert page.marks() and page.hover(1, 27)
    assert time.process_time() - begun < 30
