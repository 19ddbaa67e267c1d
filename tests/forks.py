"""A server that forks for each command: a test pays for what a command does, and not for the start of its interpreter.

It has imported what the commands import. What it forks is a process of its own all the same, with the caller's
arguments, environment, directory, umask and standard streams: it can be sent signals, it may be killed, and it ends
as an interpreter ends. What the start itself shows (which modules a command imports, options of the interpreter, the
limit of a shell on all it starts) needs a real one. Four kinds of programs are known: ``sssjob``; what looks after
local jobs (``keeper``, whose standard input is the pipe on which it says that it is ready); the commands of
the stand-ins (``tests.fakes``), whose files (``program``) ask the server and become what it answers; and the ``main``
of any module, which the server imports when it is first asked for it. Stand-ins are called thousands of times, and the
copy of a process costs more than they do: a server of their own answers for them itself, and forks only for an answer
that takes time.

A request is the three streams and a length (``sendmsg``), then as many bytes of ``marshal``: the words of the program
(``sssjob``, or ``keeper``, or ``stand-in``, module, command, state directory, or ``module`` and its name; then its
arguments) and the directory, as texts or as bytes, the environment, the umask, the process that the caller stands for,
and limits (``RLIMIT_*`` -> value). The answers are the process id, and when it has ended its status as ``os.waitpid``
gives it. Who closes the connection before that has it killed. A program with ``SSSJOB_TEST_FORKS`` in its environment
asks the servers that it names instead of starting some.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import importlib
import marshal
import os
import resource
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sssjob.query._worker import Worker
    from tests.fakes.lab import Answer

__all__ = ["Child", "Command", "Forked", "address", "command", "fork_keepers", "fork_queries", "program", "shared"]

_ROOT = Path(__file__).parents[1]
_OF_ANOTHER = "SSSJOB_TEST_FORKS"
_NUMBER = 8                     # bytes of a number on the wire
_AT_ONCE = 4096                 # bytes that a pipe takes at once, or none of them
_LARGE_PAGE, _MADV_HUGEPAGE, _MADV_COLLAPSE = 1 << 21, 14, 25       # of Linux; others know none of them
_INTERPRETER_LINE = 120         # bytes that every system reads of one
#: What the commands import when they are used.
_IMPORTED = ("_strptime", "encodings.ascii", "encodings.utf_8_sig", "gzip", "psij._site", "psij._validate",
             "psij.executors.batch.sge", "psij.executors.batch.slurm",
             "psij.executors.batch.template_function_library", "psij.executors.local", "sssjob.cli._app",
             "sssjob.cli._dry_run", "sssjob.cli._journal", "sssjob.cli._recognised", "sssjob.cli._tables",
             "sssjob.cli._wishes",
             *(f"sssjob.cli.{name}" for name in ("attach", "cancel", "check", "convert", "explain", "hold", "list_",
                                                 "log", "query", "release", "rerun", "run", "show", "status",
                                                 "submit", "wait")),
             "sssjob.conversion.intake", "sssjob.conversion.merging", "sssjob.lrm.sge",
             "sssjob.lrm.slurm", "sssjob.mjf.provider", "sssjob.query", "sssjob.request.explaining",
             "sssjob.run.again", "sssjob.run.client", "sssjob.run.engine", "sssjob.run.keeper", "sssjob.run.keeping",
             "sssjob.run.returning", "sssjob.run.routing", "sssjob.translators.scripts.sge",
             "sssjob.translators.scripts.slurm", "sssjob.translators.specs.sss", "sssjob.validation",
             "sssjob.xml._aside", "sssjob.xml.reader", "sssjob.xml.twin")
#: Commands that are used once, of one document.
_USED = ("check", "show", "query //Id", "explain", "convert -q --policy ignore -t slurm",
         "convert -q --policy ignore -t sge", "convert -q --policy ignore -t psij",
         *(f"submit -q --policy ignore --dry-run --executor {name}" for name in ("local", "slurm", "sge")))
#: Templates that they render, which are compiled once.
_TEMPLATES = ("job.sh.j2", "sge.sh.j2", "slurm.sh.j2")
#: What the ``main`` of a module imports.
_OF_MAIN = {"sssjob.query._child": ("elementpath.xpath31", "sssjob.document.nodeset")}


#: The two servers: of what imports the product, and of stand-ins.
_COMMANDS, _STAND_INS = "commands", "stand-ins"
#: The address of this server, in itself and in what it forks.
_own_address: list[str] = []


# --- who asks ------------------------------------------------------------------------------------------------------

def address() -> str:
    """The socket of the server of this process and of those that it forks; the server ends with the last of them."""
    return _served(_COMMANDS)


@functools.cache
def _served(kind: str) -> str:
    """The socket of a server, which is started where there is none."""
    if (other := os.environ.get(_OF_ANOTHER)) is not None:
        return dict(zip((_COMMANDS, _STAND_INS), other.split("\n"), strict=False))[kind]
    if _own_address:
        return _own_address[0]
    path = f"{_folder()}/{kind}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(128)
        process = subprocess.Popen([sys.executable, "-m", "tests.forks", str(listening.fileno()), kind], cwd=_ROOT,
                                   stdin=subprocess.PIPE, pass_fds=[listening.fileno()],
                                   env=os.environ | {"PYTHONWARNINGS": "error"})
    owner = os.getpid()

    def close() -> None:
        if os.getpid() == owner:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()

    atexit.register(close)
    return path


@functools.cache
def _folder() -> str:
    """A folder for the sockets of this process, which goes with it."""
    folder, owner = tempfile.mkdtemp(prefix="sssjob-"), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


@functools.cache
def _asks() -> str | None:
    """``forks.c`` as a program, where it can be compiled and run."""
    if (other := os.environ.get(_OF_ANOTHER)) is not None:
        return other.split("\n")[2] or None
    return None if _own_address else _compiled(f"{_folder()}/ask")


def shared() -> dict[str, str]:
    """What a program has to have in its environment to use the servers of this process."""
    return {_OF_ANOTHER: "\n".join((_served(_COMMANDS), _served(_STAND_INS), _asks() or ""))}


def _compiled(asks: str) -> str | None:
    """``forks.c`` as a program of that name, which starts in a millisecond, an interpreter in ten; None without a
    compiler, in a folder in which nothing can be executed, or where the name is too long for an interpreter line."""
    compiler = shutil.which("cc")
    if compiler is None or len(asks) > _INTERPRETER_LINE:
        return None
    try:
        subprocess.run([compiler, "-O1", "-o", asks, Path(__file__).with_suffix(".c")], check=True,
                       stderr=subprocess.DEVNULL)
        subprocess.run([asks], check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return asks


class Forked:
    """A process that the server forks.

    words: the program and its arguments; streams: its standard input, output and error, which stay open here.
    """

    def __init__(self, words: Sequence[str], cwd: str | Path, env: Mapping[str, str], streams: Sequence[int],
                 limits: Mapping[int, int] | None = None) -> None:
        self.returncode: int | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(address())
        request = marshal.dumps((
            list(words), os.fspath(cwd), {os.fsencode(k): os.fsencode(v) for k, v in env.items()}, _umask(),
            os.getpid(), dict(limits or {})))
        socket.send_fds(self._connection, [len(request).to_bytes(_NUMBER)], streams)
        self._connection.sendall(request)
        self.pid = _number(self._connection)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, or the negative number of the signal that ended it. timeout: seconds."""
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = os.waitstatus_to_exitcode(_number(self._connection))
            except TimeoutError:
                raise subprocess.TimeoutExpired("sssjob", timeout or 0) from None
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless its end is known."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


class Command(Forked):
    """A command ``sssjob`` in a process that the server forks, to be used as a ``subprocess.Popen`` with text pipes.

    limits: ``RLIMIT_*`` -> the most that the process may use of it. words: what it is, if something else.
    """

    def __init__(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str],
                 limits: Mapping[int, int] | None = None, words: Sequence[str] = ("sssjob",)) -> None:
        (out, theirs_out), (err, theirs_err) = os.pipe(), os.pipe()
        self._streams = {out: bytearray(), err: bytearray()}
        with open(os.devnull, "rb") as null:
            super().__init__([*words, *arguments], cwd, env, [null.fileno(), theirs_out, theirs_err], limits)
        os.close(theirs_out)
        os.close(theirs_err)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it writes until it ends. timeout: seconds, each time that it is silent."""
        with selectors.DefaultSelector() as waiting:
            for stream in self._streams:
                waiting.register(stream, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(timeout)
                if not ready:
                    raise subprocess.TimeoutExpired("sssjob", timeout or 0)
                for key, _ in ready:
                    piece = os.read(key.fd, 65536)
                    self._streams[key.fd] += piece
                    if not piece:
                        waiting.unregister(key.fd)
                        os.close(key.fd)
        self.wait(timeout)
        out, err = (bytes(text).decode() for text in self._streams.values())
        return out, err

    def __enter__(self) -> Command:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._connection.close()


class Child(Forked):
    """The ``main`` of a module, to be used as a ``subprocess.Popen`` with two pipes of bytes."""

    def __init__(self, module: str) -> None:
        (theirs_in, into), (out, theirs_out) = os.pipe(), os.pipe()
        with open(os.devnull, "wb") as null:
            super().__init__(["module", module], _ROOT, {}, [theirs_in, theirs_out, null.fileno()])
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin, self.stdout = os.fdopen(into, "wb"), os.fdopen(out, "rb")


def fork_queries(patch: Any) -> None:
    """Have the processes that evaluate queries forked. patch: a pytest.MonkeyPatch."""
    from sssjob.query import _worker

    def start(worker: Worker) -> Child:
        child = Child("sssjob.query._child")
        worker._process = child         # type: ignore[assignment]
        worker._line(_worker._START_SECONDS)
        return child

    patch.setattr(_worker.Worker, "_start", start)


def fork_keepers(patch: Any = None) -> None:
    """Have the processes that look after local jobs forked. patch: a pytest.MonkeyPatch; None: for this process.

    Each is a process of its own all the same, which the process that submits waits for and hands a pipe.
    """
    keeper = importlib.import_module("sssjob.run.keeper")

    def run(words: Sequence[str], *, stdin: int, stdout: int, stderr: int, pass_fds: Sequence[int],
            start_new_session: bool, check: bool) -> None:
        path, _, *numbers = words[words.index("-c") + 2:]
        forked = Forked(["keeper", path, *numbers], os.getcwd(), os.environ, [*pass_fds, stdout, stderr])
        if code := forked.wait():
            raise subprocess.CalledProcessError(code, list(words))

    own = SimpleNamespace(run=run, DEVNULL=subprocess.DEVNULL, SubprocessError=subprocess.SubprocessError)
    if patch is None:
        keeper.__dict__["subprocess"] = own
    else:
        patch.setattr(keeper, "subprocess", own)


@functools.cache
def command() -> tuple[str, ...]:
    """The words that start ``sssjob``: a program that the server forks and that has the signals that are sent to it, or
    where nothing can be compiled an interpreter."""
    if _asks() is None:
        return sys.executable, "-m", "sssjob"
    path = Path(_folder()) / "sssjob"
    path.write_text(program("sssjob"))
    path.chmod(0o755)
    return (str(path),)


_PROGRAM = """\
import _socket, marshal, os
def asked(n):
    text = b''
    while len(text) < n:
        piece = c.recv(n - len(text))
        if not piece:
            os.kill(os.getpid(), 9)
        text += piece
    return int.from_bytes(text, 'big')
import sys
mask = os.umask(0)
os.umask(mask)
request = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environb), mask, os.getppid(), {}))
c = _socket.socket(_socket.AF_UNIX)
c.connect(ADDRESS)
streams = b''.join(n.to_bytes(4, sys.byteorder) for n in (0, 1, 2))
c.sendmsg([len(request).to_bytes(8, 'big')], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
sent = 0
while sent < len(request):
    sent += c.send(request[sent:])
asked(8)
os._exit(os.waitstatus_to_exitcode(asked(8)) & 255)
"""


def program(*words: str) -> str:
    """A program, as the text of its file, that has the server run what these words and its own arguments say.

    Where nothing can be compiled it is a shell script, which imports next to nothing, without the site's packages.
    """
    socket_path, asks = _served(_STAND_INS if words[0] == "stand-in" else _COMMANDS), _asks()
    if asks is not None and not any("\n" in word or not word for word in words):
        return "\n".join([f"#!{asks}", socket_path, *words]) + "\n"
    text = _PROGRAM.replace("ADDRESS", repr(socket_path))
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -ISc {shlex.quote(text)} {shlex.join(words)} "$@"\n'


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _exactly(connection: socket.socket, count: int) -> bytes:
    text = b""
    while len(text) < count:
        piece = connection.recv(count - len(text))
        if not piece:
            raise ConnectionError("the other side is gone")
        text += piece
    return text


def _number(connection: socket.socket) -> int:
    return int.from_bytes(_exactly(connection, _NUMBER))


# --- the server ----------------------------------------------------------------------------------------------------

class _Server:
    """Forks until its standard input ends; ``serve`` comes back in each of the processes that it forks.

    The input ends with the last process that holds the other end. Where the process that started the server can be
    watched, the server also ends with that one, and kills what it has forked: a run of the tests that is killed may
    leave copies of itself that hold the other end for ever.
    """

    def __init__(self, listening: socket.socket) -> None:
        self.listening = listening
        self.starter: int | None = None
        with suppress(AttributeError, OSError):     # other systems than Linux
            self.starter = os.pidfd_open(os.getppid())
        _own_address.append(listening.getsockname())
        self.running: dict[int, socket.socket] = {}
        self.answer: Answer | None = None       # of the stand-in that was asked last
        self.waiting = selectors.DefaultSelector()
        self.woken, self.wake = os.pipe()
        for end in (self.woken, self.wake):
            os.set_blocking(end, False)
        for one in (listening, 0, self.woken, *(() if self.starter is None else (self.starter,))):
            self.waiting.register(one, selectors.EVENT_READ)

    def serve(self) -> list[str]:
        """The words of the program that this process, a forked one, is to be."""
        signal.set_wakeup_fd(self.wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        while True:
            for key, _ in self.waiting.select():
                if key.fileobj == 0:
                    os._exit(0)
                elif key.fileobj == self.starter:
                    for pid in self.running:
                        os.kill(pid, signal.SIGKILL)
                    os._exit(0)
                elif key.fileobj == self.woken:
                    os.read(self.woken, 4096)
                    self._reap()
                elif key.fileobj is self.listening:
                    words = self._serve_one(self.listening.accept()[0])
                    if words is not None:
                        return words
                elif key.data in self.running:
                    os.kill(key.data, signal.SIGKILL)
                    self.waiting.unregister(key.fileobj)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                connection = self.running.pop(ended[0])
                with suppress(KeyError):
                    self.waiting.unregister(connection)
                with suppress(OSError):
                    connection.sendall(ended[1].to_bytes(_NUMBER))
                connection.close()

    def _serve_one(self, connection: socket.socket) -> list[str] | None:
        try:
            length, streams, *_ = socket.recv_fds(connection, _NUMBER, 3)
            words, cwd, environment, umask, caller, limits = marshal.loads(
                _exactly(connection, int.from_bytes(length)))
        except (OSError, ValueError, EOFError):         # a caller that was killed meanwhile
            connection.close()
            return None
        words = [os.fsdecode(word) for word in words]
        if words[0] == "module":
            with suppress(ImportError):         # told where it is called
                for name in (words[1], *_OF_MAIN.get(words[1], ())):
                    importlib.import_module(name)
        elif words[0] == "stand-in":
            self.answer = self._answer(words[1:], streams[0], cwd, environment, umask, caller)
            if _said_at_once(self.answer, connection, streams):
                return None
        pid = os.fork()
        if pid:
            for stream in streams:
                os.close(stream)
            self.running[pid] = connection
            self.waiting.register(connection, selectors.EVENT_READ, pid)
            with suppress(OSError):
                connection.sendall(pid.to_bytes(_NUMBER))
            return None
        self._become(connection, streams, cwd, environment, umask, limits)
        result: list[str] = words
        return result

    def _answer(self, words: Sequence[str], read: int, cwd: str | bytes, environment: Mapping[bytes, bytes],
                umask: int, caller: int) -> Answer:
        """What a command of a stand-in answers. It runs in this process, which is as that of the caller meanwhile."""
        from tests.fakes.lab import Answer, Lab

        module, name, state, *arguments = words
        os.chdir(cwd)
        os.umask(umask)
        os.environb.clear()
        os.environb.update(environment)
        try:
            command = importlib.import_module(module).COMMANDS[name]
            answer: Answer = Lab(Path(state), caller, Path(f"/proc/self/fd/{read}")).answer(name, command, arguments)
        except Exception:
            return Answer(1, "", traceback.format_exc())
        return answer

    def _become(self, connection: socket.socket, streams: Sequence[int], cwd: str | bytes,
                environment: Mapping[bytes, bytes], umask: int, limits: Mapping[int, int]) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.waiting.close()
        for one in (self.listening, connection, *self.running.values()):
            one.close()
        for end in (self.woken, self.wake, *(() if self.starter is None else (self.starter,))):
            os.close(end)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(cwd)
        os.umask(umask)
        os.environb.clear()
        os.environb.update(environment)
        _move_home()
        for kind, most in limits.items():
            resource.setrlimit(kind, (most, most))


def _said_at_once(answer: Answer, connection: socket.socket, streams: Sequence[int]) -> bool:
    """Put out the answer, unless that might keep others waiting: it takes time, or more than a pipe holds."""
    texts = [text.encode("utf-8", "surrogateescape") for text in (answer.stdout, answer.stderr)]
    if answer.seconds or max(map(len, texts)) > _AT_ONCE:
        return False
    for stream, text in zip(streams[1:], texts, strict=True):
        with suppress(OSError):
            if text:
                os.write(stream, text)
    for stream in streams:
        os.close(stream)
    with suppress(OSError):
        for number in (os.getpid(), answer.exit_code << 8):
            connection.sendall(number.to_bytes(_NUMBER))
    connection.close()
    return True


def _move_home() -> None:
    """Have the work directory, which is settled by an import, below the home directory of the environment of now."""
    if "psij" not in sys.modules:       # in the server of stand-ins
        return
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
    from psij.job_executor_config import JobExecutorConfig

    default = Path(os.path.expanduser("~/.psij/work"))
    JobExecutorConfig.DEFAULT_WORK_DIRECTORY = default
    for config in (JobExecutorConfig, BatchSchedulerExecutorConfig):
        config.DEFAULT.work_directory = default


def _main(words: list[str], answer: Answer | None) -> int:
    """Be a program. answer: of a stand-in."""
    if words[0] == "sssjob":
        from sssjob.cli import main

        fork_keepers()
        sys.argv = words
        return main()
    if words[0] == "keeper":
        from sssjob.run import keeping

        os.setsid()
        ready = os.dup(0)
        with open(os.devnull, "rb") as null:
            os.dup2(null.fileno(), 0)
        sys.argv = [*words[:2], str(ready), *words[2:]]
        keeping.main()
        return 0
    if words[0] == "module":
        sys.argv = words[1:]
        importlib.import_module(words[1]).main()
        return 0
    assert answer is not None
    return answer.given()


def _warm(folder: str) -> None:
    """Use what the commands use: what they make when it is first needed (readers of elements, patterns, names of
    executors) is there in each process that is forked. folder: for an empty journal, which goes with it."""
    from psij import JobExecutor
    from sssjob.cli import main

    JobExecutor.get_executor_names()
    with open(os.devnull, "w", encoding="utf-8") as null, redirect_stdout(null), redirect_stderr(null):
        os.environ["SSSJOB_JOURNAL"] = f"{folder}/journal.db"
        for words in (*(f"{words} {_ROOT}/examples/pipeline.xml" for words in _USED), "list", "wait @1"):
            main(words.split())
    assert threading.active_count() == 1, "a thread would not be in what is forked"


def _in_large_pages() -> None:
    """Have the kernel keep the memory of this process in pages of 2 MB where it can: a fork copies the table of pages,
    which is a fourth of what a short command takes."""
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text().splitlines() if os.path.exists("/proc/self/maps") else ():
        span, rights, _, _, inode, *name = line.split()
        if inode == "0" and rights.startswith("rw") and name in ([], ["[heap]"]):
            start, end = (int(address, 16) for address in span.split("-"))
            start += -start % _LARGE_PAGE
            for advice in (_MADV_HUGEPAGE, _MADV_COLLAPSE) if start < end - end % _LARGE_PAGE else ():
                libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - end % _LARGE_PAGE - start), advice)


def _end(code: int) -> None:
    """End as an interpreter does, but for taking all objects apart, which would copy the memory of the server."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = 120
    os._exit(code)


if __name__ == "__main__":
    _server = _Server(socket.socket(fileno=int(sys.argv[1])))
    for _module in _IMPORTED if sys.argv[2] == _COMMANDS else ("tests.fakes.lab",):
        importlib.import_module(_module)
    for _template in _TEMPLATES if sys.argv[2] == _COMMANDS else ():
        importlib.import_module("sssjob.templates").environment().get_template(_template)
    if sys.argv[2] == _COMMANDS:
        _warm(os.path.dirname(_server.listening.getsockname()))
    gc.collect()
    gc.freeze()
    _in_large_pages()
    _end(_main(_server.serve(), _server.answer))
