"""``python -m tests.extras EXTRA...``: use what each extra of the package is for, in a process of its own that can
import no more than the package's dependencies and those of the extra. ``none`` uses all of them without any.

What is not there is not looked up at all: neither imported, nor found by ``find_spec``. So each program behaves as in
an environment of its own, in which only that extra was installed, without the minute that it takes to make one.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Final, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT: Final = Path(__file__).parents[1]
#: The project as its file states it: what it depends on, and by each extra.
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: Final[dict[str, list[str]]] = PROJECT["optional-dependencies"]


class _Only:
    """A finder that finds nothing of packages that are not there."""

    def __init__(self, finder: Any, absent: frozenset[str]) -> None:
        self.finder, self.absent = finder, absent

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] in self.absent:
            return None
        spec: ModuleSpec | None = self.finder.find_spec(name, path, target)
        return spec

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finder, name)


def needed(stated: Sequence[str], installed: Mapping[NormalizedName, Distribution]) -> Iterator[NormalizedName]:
    """The names of all distributions that are installed with these requirements."""
    waiting, seen = [Requirement(text) for text in stated], set[tuple[str, str]]()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen or name not in installed:
                continue
            seen.add((name, extra))
            yield name
            waiting += [more for more in map(Requirement, installed[name].requires or ())
                        if more.marker is None or more.marker.evaluate({"extra": extra})]


def hide(extra: str) -> None:
    """Let nothing be found but what is installed with the package and one extra (``none``: with the package)."""
    installed = {canonicalize_name(one.name): one for one in distributions()}
    kept = {*needed([*PROJECT["dependencies"], *EXTRAS.get(extra, ())], installed), canonicalize_name(PROJECT["name"])}
    modules = {name: {path.parts[0].partition(".")[0] for path in one.files or ()} for name, one in installed.items()}
    present = set().union(*(modules[name] for name in kept))
    absent = frozenset(set().union(*modules.values()) - present - {"..", "", "tests", "bench"})
    assert not absent & sys.modules.keys() - {"_distutils_hack"}, "nothing that is hidden was imported before"
    sys.meta_path[:] = [_Only(finder, absent) for finder in sys.meta_path]


# --- what each of them is for ---------------------------------------------------------------------------------------

JOB: Final = b"<Job><Id>1</Id><Account>chem</Account></Job>"
RATES: Final = ('name = "site"\nversion = "1"\ncurrency = ""\n[[rate]]\ntype = "VBR"\nname = "Processors"\nrate = 1\n'
                'per = "second"\n')
LOG: Final = ("JobID|Partition|State|Start|End|ElapsedRaw|AllocCPUS|User\n"
              "7|p|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|3600|8|ann\n"
       "8|p|COMPLETED|2026-01-02T00:00:00|2026-01-02T01:00:00|3600|8|ann\n")
JOBSPEC: Final = """\
version: 1
resources: [{type: slot, label: task, count: 2, with: [{type: core, count: 1}]}]
tasks: [{command: [hostname], slot: task, count: {per_slot: 1}}]
attributes: {system: {duration: 60}}
"""


class Answer(NamedTuple):
    """What a command did. out: standard output; err: standard error."""

    status: int
    out: bytes
    err: str

    @property
    def why(self) -> str:
        """The sentence with which the command refused; empty where it was done."""
        return self.err.splitlines()[-1] if self.status else ""


def sssjob(*words: str, data: bytes = b"") -> Answer:
    """The command in this process, whose standard streams are files meanwhile."""
    from sssjob.cli import main

    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        source.write(data)
        source.seek(0)
        kept = [os.dup(number) for number in range(3)]
        try:
            for number, stream in enumerate((source, out, err)):
                os.dup2(stream.fileno(), number)
            status = main([*words])
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            for number, own in enumerate(kept):
                os.dup2(own, number)
                os.close(own)
        out.seek(0)
        err.seek(0)
        return Answer(status, out.read(), err.read().decode())


def _files() -> None:
    """A log of Slurm, compressed with zstd too (a frame of one raw block), and rates."""
    Path("log").write_text(LOG, encoding="ascii")
    text = LOG.encode()
    block = (len(text) << 3 | 1).to_bytes(3, "little")
    Path("log.zst").write_bytes(bytes.fromhex("28b52ffd20") + bytes([len(text)]) + block + text)
    Path("rates.toml").write_text(RATES, encoding="ascii")


def _re2() -> str:
    from sssjob.document.patterns import compile_pattern

    return compile_pattern("(a+)+b").engine


def _tables() -> str:
    from sssjob.xml.rows import arrow

    answer = sssjob("convert", "-f", "sacct", "-t", "parquet", "--option", "timezone=UTC", "log")
    return answer.why or f"{answer.out[:4]!r}, {arrow(JOB, ['Id', 'Account']).num_rows} row"


def _json_schema() -> str:
    from sssjob.xml.schema import validate_json

    twin = sssjob("convert", "-t", "sss-json", data=JOB)
    return f"{len(validate_json(twin.out))} of {len(validate_json(b'[]'))} faults"


def _words() -> str:
    from sssjob.lrm.flux.ids import read_id, write_id

    return str(read_id(write_id(6731191091817518, "words")))


def _yaml() -> str:
    answer = sssjob("convert", "-f", "flux-jobspec", "-t", "sss", data=JOBSPEC.encode())
    return answer.why or f"{answer.out.count(b'</Job>')} document"


def _postgresql() -> str:
    return sssjob("ledger", "balance", "--ledger", "postgresql://127.0.0.1:1/books").why


def _report() -> str:
    answer = sssjob("account", "-f", "sacct", "--option", "timezone=UTC", "--every", "day", "--report", "page.html",
                    "log")
    return answer.why or f"{Path('page.html').read_text(encoding='utf-8').count('<svg')} plots"


def _pdf() -> str:
    assert sssjob("ledger", "deposit", "chem", "10", "--new", "--ledger", "books").status == 0
    answer = sssjob("ledger", "invoice", "chem", "2026-01", "-t", "pdf", "--ledger", "books")
    return answer.why or repr(answer.out[:5])


def _dask() -> str:
    words = ("charge", "-f", "sacct", "--option", "timezone=UTC", "--rates", "rates.toml", "-o", "out/", "--dask")
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        return sssjob(*words, "tcp://127.0.0.1:1", "log").why
    with distributed.LocalCluster(n_workers=1, processes=False, protocol="tcp://", host="127.0.0.1",
                                  dashboard_address=None) as cluster:
        answer = sssjob(*words, cluster.scheduler_address, "log")
    return answer.why or ", ".join(sorted(os.listdir("out")))


def _zstd() -> str:
    answer = sssjob("convert", "-f", "sacct", "-t", "csv", "--option", "timezone=UTC", "log.zst")
    return answer.why or f"{len(answer.out.splitlines())} lines"


def _lsp() -> str:
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None, "rootUri": None}},
        {"id": 2, "method": "shutdown"}, {"method": "exit"}]
    bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
    pid = os.fork()             # the server ends its process
    if not pid:
        answer = sssjob("lsp", data=b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(one), one) for one in bodies))
        Path("answer").write_bytes(answer.out + answer.err.encode())
        os._exit(0)
    os.waitpid(pid, 0)
    text = Path("answer").read_text(encoding="utf-8")
    return "initialized" if '"hoverProvider"' in text else text


def _serve() -> str:
    """The server in this process, asked once by a thread, which then ends it as an administrator does."""
    token = sssjob("serve", "--new-token", "amy").out.decode().partition("\n")
    with open(os.open("users", os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as users:
        users.write(token[2])
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    statuses: list[int] = []

    def ask() -> None:
        until = time.monotonic() + 60
        while not statuses and time.monotonic() < until:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                connection.request("GET", "/v1/jobs", headers={"Authorization": f"Bearer {token[0]}"})
                statuses.append(connection.getresponse().status)
            except ConnectionRefusedError:
                time.sleep(0.02)
            finally:
                connection.close()
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    answer = sssjob("serve", "--users", "users", "--port", str(port), "--executor", "local")
    if answer.status:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return answer.why
    thread.join()
    return f"answered {statuses}"


def _top() -> str:
    """The live view, without a terminal: where it cannot be had, the command prints its tables instead."""
    from sssjob.run.client import Client
    from sssjob.run.journal import open_journal

    try:
        from sssjob.cli._top import Top
    except ModuleNotFoundError:
        return sssjob("top", "--once").out.decode()

    async def looked(app: Top) -> None:
        async with app.run_test() as pilot:
            await pilot.press("q")

    with open_journal(Path("journal.db")) as journal:
        asyncio.run(looked(Top(Client(journal), 60)))
    return "shown"


USES: Final[dict[str, Callable[[], str]]] = {
    "re2": _re2, "tables": _tables, "json-schema": _json_schema, "words": _words, "yaml": _yaml,
    "postgresql": _postgresql, "report": _report, "pdf": _pdf, "dask": _dask, "zstd": _zstd, "lsp": _lsp,
    "serve": _serve, "top": _top}


def used(extra: str) -> str:
    """What using an extra gives, or the sentence that says why it cannot be used."""
    from sssjob.errors import SSSJobError

    try:
        return USES[extra]().strip()
    except SSSJobError as error:
        return str(error)


def _alone(extra: str) -> None:
    """Print what comes of each use with one extra, as a line of JSON."""
    hide(extra)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ |= {"SSSJOB_JOURNAL": f"{folder}/journal.db", "MPLCONFIGDIR": folder}
        _files()
        print(json.dumps({name: used(name) for name in (USES if extra == "none" else (extra,))}), flush=True)


def main(extras: Sequence[str]) -> None:
    """Use each extra in a process that is forked with what all of them import, which is of no extra."""
    for name in _COMMON:
        import_module(name)
    for extra in extras:
        pid = os.fork()
        if not pid:
            try:
                _alone(extra)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if status := os.waitpid(pid, 0)[1]:
            sys.exit(f"{extra}: {status}")


_COMMON: Final = ("sssjob.cli._app", "sssjob.cli.account", "sssjob.cli.charge", "sssjob.cli.convert",
                  "sssjob.conversion.intake", "sssjob.xml.reader", "sssjob.translators.specs.sss")

if __name__ == "__main__":
    main(sys.argv[1:])
