"""A host behind SSH, by the system's own ``ssh``: one connection a host, which all commands share.

``ssh`` is told to ask for nothing: who has to type a second factor does so once, and leaves a connection behind that
stays for ten minutes after its last use. A command goes as a script for ``sh -s`` on standard input, and only when the
other side has answered a greeting: before that nothing can have been run there. The script is one compound command, of
which a shell runs nothing before it has read all, so that no half of it is run where the line is cut. Lines that nobody
can know before tell its answers from banners, messages of the day and profiles that talk.

Files that are written, and those that are removed, wait for the next command, which does so first. The records that
jobs write come with the answers to questions; what is read is what came last, and nothing else is asked for them.
Sources: ssh(1), ssh_config(5), sh(1), touch(1), find(1) and awk(1) of POSIX.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import subprocess
import tempfile
import threading
import time
from base64 import encodebytes
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex
from typing import Final

from psij.executors.batch._command import OUTPUT_LIMIT, Message, Result, run
from psij.executors.batch._host import ENDINGS, HERE, CutError, Host, UnreachableError

#: Seconds that a connection stays when nobody uses it.
_PERSIST_S: Final = 600
#: Bytes of the path of a Unix socket that a name of ssh's own and the end of its folder leave.
_LONGEST: Final = 40
_CONNECT_S: Final = 30.0        # the longest to wait for a connection
_LEAVE_S: Final = 10.0          # the longest that a process stays to remove files
_FILE_S: Final = 60.0           # the longest that a command about files alone may take
_SAYS: Final = 3                # last lines of standard error that are told
_ALL_S: Final = 600.0           # after so long all records are sent once more, and not only fresh ones
_SKEW_S: Final = 120            # records count as fresh for so much longer, for clocks of file servers differ
_AGAIN_S: Final = 5.0           # before a host that could not be looked at is tried again for that alone
_MOST: Final = 64 * 1024        # bytes of a record, or of a file of the system
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: Names of what jobs write, of which the contents come along.
_RECORDS: Final = (".start", ".ec", ".nodefile", ".left")
_STAMP: Final = "%Y%m%d%H%M.%S"

_hosts: dict[tuple[str, str], SSHHost] = {}


def host_of(name: str | None, setup: str | None = None) -> Host:
    """The host of that name, None for this machine. setup: a line of sh with which each command there begins.

    Raises ValueError for a name that ssh would take for an option.
    """
    if name is None:
        return HERE
    if not name or name.startswith("-") or not name.isprintable():
        raise ValueError(f"ssh_host is to be a host, or user@host, not {name!r}")
    key = name, setup or ""
    if key not in _hosts:
        _hosts[key] = SSHHost(*key)
    return _hosts[key]


def connecting(host: str) -> list[str]:
    """The words of a command that logs in and leaves a connection behind for others; it may ask on the terminal."""
    return ["ssh", "-f", "-N", *_shared(), "--", host]


def _shared() -> list[str]:
    return ["-o", "ControlMaster=auto", "-o", f"ControlPath={_folder()}/%C", "-o", f"ControlPersist={_PERSIST_S}",
            "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3"]


def _folder() -> Path:
    """Where connections are: a folder that only its owner enters, with a short path."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR", ""), "sssjob")
    if "XDG_RUNTIME_DIR" not in os.environ or len(os.fsencode(folder)) > _LONGEST:
        folder = Path(tempfile.gettempdir(), f"sssjob-{os.geteuid()}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat(follow_symlinks=False)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise OSError(0, "others could use the connections in it", str(folder))
    return folder


@dataclass(slots=True)
class _Facts:
    """What a host says of itself."""

    uid: int
    user: str
    home: str
    environ: Mapping[str, str]


@dataclass(slots=True)
class _Folder:
    """A directory of records as it was last seen. stamp: when, by the clock of the host; empty before. since: monotonic
    time of the last answer with all records."""

    names: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    number: int = 0
    stamp: str = ""
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class _Task:
    """What is still to be done to files there. path: of which; a later task for it takes its place. lines: of sh, which
    fail where it cannot be done. content: of a file, which the lines have as their standard input."""

    path: str
    lines: str
    content: bytes | None = None


class SSHHost(Host):
    """A host that the system's ssh reaches. setup: a line of sh with which each command there begins."""

    def __init__(self, name: str, setup: str = "") -> None:
        super().__init__()
        self.name, self.setup = name, setup
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._tasks: dict[str, _Task] = {}
        self._folders: dict[str, _Folder] = {}      # that are looked at
        self._private: set[str] = set()             # directories that were made
        self._facts: _Facts | None = None
        self._answers = False           # whether it did when it was asked last
        self._failed = -_AGAIN_S        # monotonic time when it could not be looked at last

    def forked(self) -> None:
        """In a forked child: what the parent has not sent is its own."""
        self._begin()

    def leave(self) -> None:
        """At the end of this process: what was to be removed is, where the host was there last. What is left otherwise
        goes when nobody has touched it for a month."""
        with self._lock:
            self._tasks = {path: task for path, task in self._tasks.items() if task.content is None}
        if self._tasks and self._answers:
            with suppress(OSError, subprocess.TimeoutExpired):
                self._asked(":", _LEAVE_S)

    # --- what is known of it ---------------------------------------------------------------------------------------

    def _known(self) -> _Facts:
        with self._lock:
            if self._facts is None:
                script = 'id -u; id -un; printf "%s\\n" "$HOME"; env'
                lines = self._asked(script, _FILE_S).stdout.split("\n")
                if len(lines) < 4 or not lines[0].isdecimal() or not lines[2].startswith("/"):
                    raise UnreachableError(f"{self.name}: the answer cannot be understood: {lines[:3]!r:.200}")
                pairs = (line.partition("=") for line in lines[3:])
                environ = {name: value for name, equals, value in pairs if equals and _NAME.fullmatch(name)}
                self._facts = _Facts(int(lines[0]), lines[1], lines[2], environ)
            return self._facts

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of a login there, as the first answer told it."""
        return self._known().environ

    @property
    def home(self) -> str:
        """The home directory there."""
        return self._known().home

    @property
    def uid(self) -> int:
        """The effective user id there."""
        return self._known().uid

    @property
    def user(self) -> str | None:
        """The name of the user there; None where the system there has none."""
        return self._known().user or None

    @property
    def way(self) -> str:
        """The name under which ``ssh`` reaches the machine."""
        return f"ssh {self.name}"

    def place(self, path: str) -> Path:
        """The path there; relative ones begin in the home directory."""
        if path.startswith("/"):
            return Path(os.path.normpath(path))
        if path == "~" or path.startswith("~/"):
            path = path[2:]
        return Path(os.path.normpath(os.path.join(self.home, path)))

    # --- commands --------------------------------------------------------------------------------------------------

    def run(self, command: Sequence[str], timeout_s: float, *, plain: bool = True, look: bool = True,
            limit: int = OUTPUT_LIMIT) -> Result:
        """Run a command there; FileNotFoundError where it is not found there."""
        locale = "LC_ALL=C; export LC_ALL\n" if plain else ""
        script = f"command -v {shlex.quote(command[0])} >/dev/null 2>&1 || exit 127\n{locale}exec {shlex.join(command)}"
        result = self._asked(script, timeout_s, look=look, command=command, limit=limit)
        if result.exit_code == 127 and not (result.stdout or result.stderr):
            raise FileNotFoundError(f"{command[0]!r} is not found on {self.name}")
        return result

    def which(self, program: str) -> str:
        """The name: what path it has there is not known without asking."""
        return program

    def words(self, timeout_s: float) -> list[str]:
        """The command that has a shell there read a script from its standard input."""
        return ["ssh", "-T", "-o", "BatchMode=yes", *_shared(), "-o",
                f"ConnectTimeout={max(int(min(timeout_s, _CONNECT_S)), 1)}", "--", self.name, "exec /bin/sh -s"]

    def _asked(self, script: str, timeout_s: float, *, look: bool = False, command: Sequence[str] = (),
               limit: int = OUTPUT_LIMIT) -> Result:
        """Have lines of sh run there in a shell of their own, after what is to be done to files. Raises
        UnreachableError, CutError, subprocess.TimeoutExpired."""
        mark = f"sssjob {token_hex(16)}"
        with self._lock:
            tasks = dict(self._tasks)
            folders = {path: self._stamp_of(folder) for path, folder in self._folders.items()} if look else {}
        text = _whole(mark, self.setup, tasks.values(), script, folders)
        message = Message(f"printf '%s\\n' '{mark}'\n".encode(), f"{mark}\n".encode(), text)
        words = self.words(timeout_s)
        try:
            result = run(words, timeout_s, None, limit, message)
        except subprocess.TimeoutExpired as e:
            if not message.sent:
                raise UnreachableError(f"{self.name}: ssh gave no answer in {timeout_s:g} s") from None
            raise subprocess.TimeoutExpired(list(command) or words, timeout_s, e.output, e.stderr) from None
        except FileNotFoundError:
            raise UnreachableError(f"{self.name}: there is no ssh here") from None
        self._answers = message.sent
        if not message.sent:
            raise UnreachableError(f"{self.name}: {_last(result.stderr) or f'ssh ended with {result.exit_code}'}")
        return self._taken(result, mark, tasks, folders)

    def _taken(self, result: Result, mark: str, tasks: Mapping[str, _Task], folders: Mapping[str, str]) -> Result:
        """The answer of the script in that of ssh; the rest of it is taken in."""
        _, _, answer = result.stdout.partition(f"{mark}\n")
        done, _, answer = answer.partition(f"{mark} begins\n")
        stdout, ended, rest = answer.partition(f"\n{mark} ended ")
        errors = result.stderr.partition(f"{mark} begins\n")[2].partition(f"\n{mark} ended\n")[0]
        if not ended:
            if f"{mark} cannot\n" in done:
                raise OSError(f"{self.name}: files cannot be written there: {_last(result.stderr)}")
            raise CutError(f"{self.name}: the line was lost: {_last(result.stderr) or 'ssh says nothing'}")
        code, _, seen = rest.partition("\n")
        with self._lock:
            for path, task in tasks.items():
                if self._tasks.get(path) is task:
                    del self._tasks[path]
                    self._is_done(task)
            if seen.endswith(f"{mark} end\n"):
                for part in seen.split(f"{mark} folder ")[1:]:
                    self._take_folder(part, folders)
        return Result(int(code) if code.isdecimal() else 255, stdout, errors)

    def _is_done(self, task: _Task) -> None:
        """A file that was written is there before the next look."""
        folder = self._folders.get(os.path.dirname(task.path))
        if task.content is not None and folder is not None:
            folder.names.append(os.path.basename(task.path))

    # --- records ---------------------------------------------------------------------------------------------------

    def _stamp_of(self, folder: _Folder) -> str:
        """From when on records are fresh, as touch(1) takes it; empty for all."""
        if not folder.stamp or time.monotonic() - folder.since > _ALL_S:
            return ""
        at = datetime.strptime(folder.stamp, _STAMP).replace(tzinfo=UTC) - timedelta(seconds=_SKEW_S)
        return at.strftime(_STAMP)

    def _take_folder(self, part: str, asked: Mapping[str, str]) -> None:
        """What came of a directory: its number among those that were asked for, the time, names, lines of records."""
        head, _, body = part.partition("\n")
        number, _, stamp = head.partition(" ")
        path = list(asked)[int(number)]
        folder, texts = self._folders[path], dict[str, list[str]]()
        names: list[str] = []
        for line in body.split("\n"):
            if line.startswith("N "):
                names.append(line[2:])
            elif line.startswith("R ./"):
                name, tab, text = line[4:].partition("\t")
                if tab:
                    texts.setdefault(name, []).append(f"{text}\n")
        if not asked[path]:
            folder.texts, folder.since = {}, time.monotonic()
        folder.texts |= {name: "".join(lines)[:_MOST] for name, lines in texts.items()}
        names_there = set(names) - {os.path.basename(task.path) for task in self._tasks.values()
                                    if task.content is None}
        folder.texts = {name: text for name, text in folder.texts.items() if name in names_there}
        folder.names, folder.stamp = sorted(names_there), stamp if re.fullmatch(r"\d{12}\.\d\d", stamp) else ""
        folder.number += 1

    def _seen(self, directory: Path) -> _Folder:
        """A directory as it was last seen; it is looked at where it never was."""
        with self._lock:
            folder = self._folders.setdefault(str(directory), _Folder())
            if not folder.number:
                if time.monotonic() - self._failed < _AGAIN_S:
                    raise UnreachableError(f"{self.name}: nothing is known of {directory} yet")
                try:
                    self._asked(":", _FILE_S, look=True)
                except (OSError, subprocess.TimeoutExpired):
                    self._failed = time.monotonic()
                    raise
            return folder

    # --- files -----------------------------------------------------------------------------------------------------

    def _add(self, path: Path | str, lines: str, content: bytes | None = None) -> None:
        with self._lock:
            self._tasks.pop(str(path), None)
            self._tasks[str(path)] = _Task(str(path), lines, content)

    def make_private(self, directory: Path) -> None:
        """Have the directory made before the next command that runs there."""
        with self._lock:
            if str(directory) in self._private:
                return
            self._private.add(str(directory))
        path = shlex.quote(str(directory))
        self._add(f"{directory}/", f"mkdir -p -m 700 {path} && [ -O {path} ] && chmod go-rwx {path}")

    def clear_old(self, directory: Path, now: float) -> None:
        """Have old files removed there with the next command; it is no error where that fails."""
        named = " -o ".join(f"-name '*{ending}'" for ending in ENDINGS)
        self._add(f"{directory}/old", f"cd {shlex.quote(str(directory))} && find . ! -name . -prune -mtime +30 "
                  f"\\( {named} \\) -exec rm -rf -- {{}} + || :")

    def write(self, path: Path, content: bytes, mode: int = 0o600) -> None:
        """Have the file there before the next command runs, whole, in place of one that is there."""
        whole = shlex.quote(str(path))
        fresh = f"{whole}.$$.new"       # of one shell alone: two commands that are sent at a time both write the file
        self._add(path, f"cat >{fresh} && chmod {mode:o} {fresh} && mv -f -- {fresh} {whole}", content)

    def remove(self, path: Path) -> None:
        """Have the file removed with the next command, unless it is known not to be there."""
        with self._lock:
            folder = self._folders.get(str(path.parent))
            if folder is not None and folder.number:
                if path.name not in folder.names and str(path) not in self._tasks and folder.stamp:
                    return          # it was never there: suffixes of files are many
                folder.names = [name for name in folder.names if name != path.name]
                folder.texts.pop(path.name, None)
        self._add(path, f"rm -f -- {shlex.quote(str(path))} || :")

    def names(self, directory: Path) -> list[str]:
        """The names in the directory as the last answer told them."""
        return list(self._seen(directory).names)

    def changed(self, directory: Path) -> int:
        """The number of the last answer that told other names than the one before; UnreachableError before the first.
        """
        with self._lock:
            folder = self._folders.setdefault(str(directory), _Folder())
            if not folder.number:
                raise UnreachableError(f"{self.name}: nothing is known of {directory} yet")
            return folder.number

    def exists(self, path: Path) -> bool:
        """Whether the last answer had the name in its directory."""
        return path.name in self._seen(path.parent).names

    def record(self, path: Path, most: int) -> str | None:
        """The text of the record as the last answer had it."""
        try:
            return self._seen(path.parent).texts.get(path.name)
        except (OSError, subprocess.TimeoutExpired):        # not to be read now: no record
            return None

    def tail(self, path: Path, most: int) -> bytes:
        """The end of the record that the last answer had, else of the file, which is asked for."""
        whole = self.record(path, most)
        if whole is not None:
            return whole.encode("utf-8", "surrogateescape")[-most:]
        try:
            if not self.exists(path):
                return b""
            out = self._asked(f"exec tail -c {most} -- {shlex.quote(str(path))}", _FILE_S).stdout
        except (OSError, subprocess.TimeoutExpired):
            return b""
        return out.encode("utf-8", "surrogateescape")

    def text(self, path: Path) -> str:
        """The beginning of the file, which is asked for. Raises OSError where it cannot be read."""
        result = self._files(f"exec head -c {_MOST} -- {shlex.quote(str(path))}")
        if result.exit_code:
            raise OSError(f"{self.name}: {_last(result.stderr)}")
        return result.stdout

    def real(self, path: Path) -> Path:
        """The path without links, which is asked for; the path itself where there is no answer."""
        answer = self._files(f"exec readlink -f -- {shlex.quote(str(path))}")
        return Path(answer.stdout.rstrip("\n")) if not answer.exit_code and answer.stdout.startswith("/") else path

    def note(self, directory: Path, name: str) -> None:
        """Have the file made with the next command."""
        folder, file = shlex.quote(str(directory)), shlex.quote(str(directory / name))
        self._add(directory / name, f"mkdir -p -m 700 {folder} && : >{file}")

    def unnote(self, directory: Path, name: str) -> bool:
        """Remove file and directory there; whether the directory could be removed."""
        folder, file = shlex.quote(str(directory)), shlex.quote(str(directory / name))
        return self._files(f"rm -f -- {file} && rmdir -- {folder}").exit_code == 0

    def _files(self, script: str) -> Result:
        """Run lines of sh about files. Raises OSError alone."""
        try:
            return self._asked(script, _FILE_S)
        except subprocess.TimeoutExpired:
            raise CutError(f"{self.name}: no answer in {_FILE_S:g} s") from None


def _whole(mark: str, setup: str, tasks: Iterable[_Task], script: str, folders: Mapping[str, str]) -> bytes:
    """The script that is sent: one compound command. folders: directory -> from when on records are fresh."""
    parts = [b"{", setup.encode("utf-8", "surrogateescape"), b"(", b"umask 077"]
    for task in tasks:
        parts += _lines_of(task, f"{mark} text")
    parts.append(f""") || {{ printf '%s cannot\\n' '{mark}'; exit 0; }}
printf '%s begins\\n' '{mark}'; printf '%s begins\\n' '{mark}' >&2
(
{script}
) </dev/null
sssjob_code=$?
printf '\\n%s ended %s\\n' '{mark}' "$sssjob_code"; printf '\\n%s ended\\n' '{mark}' >&2
""".encode("utf-8", "surrogateescape"))
    parts += [_look(mark, number, path, stamp).encode("utf-8", "surrogateescape")
              for number, (path, stamp) in enumerate(folders.items())]
    return b"\n".join([*parts, f"printf '%s end\\n' '{mark}'\nexit 0\n}}\n".encode()])


def _lines_of(task: _Task, end: str) -> list[bytes]:
    """The lines of sh that do something to files. end: a line that no text has."""
    lines = task.lines.encode("utf-8", "surrogateescape")
    if task.content is None:
        return [b"{ " + lines + b"; } || exit 1"]
    content = task.content
    if b"\0" in content or not content.endswith(b"\n"):         # no text of sh
        lines, content = lines.replace(b"cat ", b"base64 -d ", 1), encodebytes(content) or b"\n"
    return [b"{ " + lines + f"; }} <<'{end}' || exit 1".encode(), content[:-1], end.encode()]


def _look(mark: str, number: int, path: str, stamp: str) -> str:
    """Lines of sh that show the names in a directory, and the records that are fresh. stamp: from when on."""
    records = " -o ".join(f"-name '*{ending}'" for ending in _RECORDS)
    begin, newer, end = "", "", ""
    mine = f"\\( {records} \\) -size -129 -o -name '*.out' -size -5"
    if stamp:
        begin = f"(umask 077; : >.look.$$ && TZ=UTC0 touch -t {stamp} .look.$$)\n"
        newer, end = "-newer ./.look.$$ ", "\nrm -f .look.$$"
    return f"""(
printf '%s folder %s %s\\n' '{mark}' {number} "$(date -u +{_STAMP})"
cd {shlex.quote(path)} || exit
LC_ALL=C; export LC_ALL
ls -1 | sed 's/^/N /'
{begin}find . ! -name . -prune -type f -user "$(id -u)" \\( {mine} \\) \\
{newer}-exec awk '{{ print "R " FILENAME "\\t" $0 }}' {{}} +{end}
) 2>/dev/null </dev/null"""


def _last(text: str) -> str:
    """What standard error says, in a line."""
    return "; ".join(filter(None, map(str.strip, text.splitlines()[-_SAYS:])))[:400]


def _forked() -> None:
    for host in _hosts.values():
        host.forked()


def _leave() -> None:
    for host in _hosts.values():
        host.leave()


os.register_at_fork(after_in_child=_forked)
atexit.register(_leave)
