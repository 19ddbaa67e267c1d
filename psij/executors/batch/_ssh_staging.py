"""Staging between this machine and a host behind SSH: files and folders of jobs as tar archives over its connection.

A file or folder is unpacked beside its target, and gets its name when all of it is there: the archive of what is
brought ends with a mark, and what is fetched is followed by the exit code of tar. A transfer that was interrupted is
made anew. The rules of targets that exist are those of staging on one machine. What comes from a host is not believed:
names that lead out of the folder, or through a link, and whatever is neither file, folder nor link, are refused.
Sources: tar(1) of GNU, BSD and BusyBox for the options; mv(1), find(1) and rm(1) of POSIX.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Final

from psij.exceptions import InvalidJobException
from psij.executors import _local_staging as here
from psij.executors._local_spawn import LaunchError
from psij.executors._local_staging import PART, PASSING, Item, Staging, StagingError, StagingStopped
from psij.executors.batch._host import CutError, UnreachableError
from psij.executors.batch._ssh import SSHHost
from psij.executors.batch._ssh_line import Line, LineEnded, LineStopped
from psij.executors.batch._unpacking import pack, unpack
from psij.staging import StageIn, StageOut, StageOutFlags, StagingMode

_CANNOT: Final = 9              # exit codes of our scripts: what is wanted cannot be,
_NO_FOLDER: Final = 8           # and the job's directory is not there
_CUT: Final = 7                 # the stream has ended too early
#: What tar says of an archive that is not whole: GNU, BusyBox, BSD.
_NOT_WHOLE: Final = ("Unexpected EOF", "short read", "Truncated")
_PASSES: Final = (*(os.strerror(number) for number in PASSING), "file changed as we read it")
_Stop = Callable[[], bool]

_CANNOT_BE: Final = f"""cannot() {{ printf '%s\\n' "$1" >&2; exit {_CANNOT}; }}"""

#: Receives an archive for $target: $kind is file or folder, $part the new folder beside it, $old a pattern of those of
#: transfers that were interrupted.
_RECEIVE: Final = f"""{_CANNOT_BE}
[ -d "$directory" ] || {{
    [ -e "$directory" ] && problem='is not a directory' || problem='does not exist'
    printf '%s\\n' "the directory $directory $problem" >&2; exit {_NO_FOLDER}; }}
mkdir -p "$parent" || exit {_CANNOT}
[ "$kind" = folder ] || [ ! -d "$target" ] || cannot 'the target is a folder'
[ ! -e "$target" ] || [ -f "$target" ] || [ -d "$target" ] || cannot 'the target is a device or a pipe'
rm -rf "$parent/$old"*
mkdir -m 700 "$part" || exit {_CANNOT}
trap 'rm -rf "$part"' 0
trap 'exit 1' 1 2 13 15
printf '%s says ready\\n' "$sssjob_mark"
tar -xpof - -C "$part" || exit 1
cat >/dev/null
[ -f "$part/end" ] || exit {_CUT}
if [ "$kind" = folder ] && [ -d "$target" ]; then
    cd "$part/it" || exit 1
    find . -type d -exec sh -c 'for one do [ -d "$0/$one" ] || mkdir "$0/$one" || exit; done' "$target" {{}} + &&
    find . ! -type d -exec sh -c 'for one do
        [ ! -d "$0/$one" ] || {{ printf "%s\\n" "$0/$one is a folder" >&2; exit 1; }}
        mv -f "$one" "$0/$one" || exit
    done' "$target" {{}} + || exit {_CANNOT}
else
    mv -f "$part/it" "$target" || exit {_CANNOT}
fi"""

#: Sends an archive of $source, which is $name in $parent; of a file its name in the archive is of no meaning.
_SEND: Final = f"""{_CANNOT_BE}
if [ ! -e "$source" ]; then printf '%s says absent\\n' "$sssjob_mark"
elif [ -d "$source" ]; then
    cd "$source" || exit {_CANNOT}
    printf '%s says folder\\n' "$sssjob_mark"
    tar -cf - .
elif [ -f "$source" ]; then
    cd "$parent" || exit {_CANNOT}
    printf '%s says file\\n' "$sssjob_mark"
    tar -chf - "./$name"
else cannot "$source is not a file"
fi"""

#: Removes $1 in the folder $2, which has to be in the directory of the job.
_REMOVE: Final = f"""{_CANNOT_BE}
cd "$directory" && root=$(pwd -P; echo .) || exit {_CANNOT}
root=${{root%??}}
gone() (
    cd "$2" 2>/dev/null || [ -d "$2" ] || exit 0
    cd "$2" && at=$(pwd -P; echo .) || exit {_CANNOT}
    case ${{at%??}}/ in
    "${{root%/}}"/*) rm -rf "./$1" ;;
    *) cannot "${{at%??}}/$1 is not inside the job's directory $root" ;;
    esac
)"""


def check_modes(items: Iterable[Item | StageIn | StageOut], host: str) -> None:
    """Refuse, with InvalidJobException, what cannot be between this machine and a host."""
    for item in items:
        if item.mode is StagingMode.LINK:
            raise InvalidJobException(f"{item.source}: a link cannot lead to {host} or back; files of jobs behind SSH "
                                      "are copied or moved (COPY, MOVE)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SSHStaging(Staging):
    """Staging whose job is on a host behind SSH: sources of ``stage_in`` and targets of ``stage_out`` are here, all
    other paths there.

    idle_s: how long nothing may be heard. most: bytes of one file or folder.
    """

    host: SSHHost
    idle_s: float
    most: int

    # --- what the rules of staging are made of ---------------------------------------------------------------------

    def is_brought(self, item: Item) -> bool:
        """As ``Staging``. Of a host that gives no answer it is taken to be so: the submission that follows fails as
        well, and it is looked again."""
        if item.mode is not StagingMode.MOVE or os.path.lexists(item.source):
            return False
        try:
            return self._run(_words(target=item.target) + '[ -e "$target" ] || [ -h "$target" ]', lambda: False)[0] == 0
        except OSError:
            return True

    def _bring_one(self, item: Item, stop: _Stop) -> None:
        with _told("stage-in", item, item.source, self._there(item.target)):
            if not os.path.exists(item.source):
                raise OSError(errno.ENOENT, f"{item.source} does not exist")
            target, mark = item.target.rstrip("/"), f"{PART}{self.mark or token_hex(8)}"
            parent = os.path.dirname(target)
            words = _words(directory=self.directory, target=target, parent=parent, old=mark,
                           part=os.path.join(parent, f"{mark}.{token_hex(4)}"),
                           kind="folder" if os.path.isdir(item.source) else "file")
            with self._line(words + _RECEIVE, stop) as line:
                with suppress(LineEnded):
                    line.heard()
                    pack(item.source, line.send, self.most)
                    line.end()
                code, why = line.ended()
            if code == _NO_FOLDER:
                raise LaunchError(why)
            if code == _CUT or (code == 1 and any(words in why for words in _NOT_WHOLE)):
                raise CutError(f"{self.host.name}: the line was lost")
            _check(code, why)
            if item.mode is StagingMode.MOVE:
                here.delete(item.source)

    def _fetch_one(self, item: Item, stop: _Stop, again: bool) -> None:
        with _told("stage-out", item, self._there(item.source), item.target):
            folder = os.path.dirname(item.target.rstrip("/"))
            os.makedirs(folder, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f"{PART}{self.mark}", dir=folder) as part:
                whole = os.path.join(part, "it")
                if not self._receive(item, whole, stop):
                    if item.flags & StageOutFlags.IF_PRESENT or (
                            again and item.mode is StagingMode.MOVE and os.path.lexists(item.target)):
                        return
                    raise OSError(errno.ENOENT, f"{item.source} does not exist")
                here.stage_one(Item(whole, item.target, StagingMode.MOVE), stop)
            if item.mode is StagingMode.MOVE:
                _check(*self._run(_words(source=item.source.rstrip("/")) + 'rm -rf "$source"', stop))

    def _receive(self, item: Item, whole: str, stop: _Stop) -> bool:
        """Have a file or folder of the host here, under another name; False where there is none there."""
        parent, name = os.path.split(item.source.rstrip("/"))
        with self._line(_words(source=item.source, parent=parent, name=name) + _SEND, stop) as line:
            line.end()
            with suppress(LineEnded):
                kind = line.heard()
                if kind == "absent":
                    return False
                unpack(line.read, whole, kind == "folder", self.most)
            _check(*line.ended())
        return True

    def _remove_all(self) -> None:
        calls = []
        for path in self.cleanup:
            parent, name = os.path.split(path.rstrip("/"))
            while name == ".":
                parent, name = os.path.split(parent)
            if name == "..":
                raise StagingError("cleanup", f"cannot remove {path}: it ends with '..'")
            calls.append(f"gone {shlex.quote(name)} {shlex.quote(parent)} || exit")
        try:
            _check(*self._run(_words(directory=self.directory) + "\n".join((_REMOVE, *calls)), lambda: False))
        except OSError as e:
            raise _error("cleanup", f"cannot remove {', '.join(self.cleanup)} on {self.host.name}", e) from e

    # --- the line --------------------------------------------------------------------------------------------------

    def _there(self, path: str) -> str:
        return f"{self.host.name}:{path}"

    def _line(self, script: str, stop: _Stop) -> Line:
        return Line(self.host, script, self.idle_s, stop)

    def _run(self, script: str, stop: _Stop) -> tuple[int, str]:
        """Run a script without a stream: its exit code, and what it says. Raises OSError, LineStopped."""
        with self._line(script, stop) as line:
            line.end()
            return line.ended()


class _Refusal(OSError):
    """What a script has said on standard error when it failed."""


def _check(code: int, why: str) -> None:
    if code:
        raise _Refusal(0, why or f"it ended with {code}")


def _words(**values: str) -> str:
    """Lines of sh that give names to values."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())


@contextmanager
def _told(reason: str, item: Item, source: str, target: str) -> Iterator[None]:
    """Raises what went wrong as staging does."""
    try:
        yield
    except LineStopped:
        raise StagingStopped from None
    except (OSError, shutil.Error) as e:
        raise _error(reason, f"cannot {item.mode.name.lower()} {source} to {target}", e) from e


def _error(reason: str, text: str, error: OSError | shutil.Error) -> StagingError:
    away = isinstance(error, CutError | UnreachableError)
    passes = any(why in str(error) for why in _PASSES) if isinstance(error, _Refusal) else here.may_pass(error)
    return StagingError(reason, f"{text}: {getattr(error, 'strerror', None) or error}", away or passes, away)
