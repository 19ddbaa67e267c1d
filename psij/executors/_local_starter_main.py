"""The starter process itself: all that the interpreter that ``_local_starter`` starts imports, and nobody else.

Its arguments are CHANNEL REPORTS BELL ENDS, sockets that keep packets apart and the file to which
it adds how jobs end (see ``_local_ends``; empty: none). It imports nothing but built-in and extension modules, because
the memory that it has is the least that a job can be measured to have.

CHANNEL: it says ``ready``; then it answers each request, in their order. Request: 8 bytes, the length and in the
highest bit whether the client listens at the bell for its answer, and a marshalled tuple (see ``serve``), in several
packets when it is long; the first brings the descriptors of those standard streams of the job that are not /dev/null,
as all of ours are. Answer: a marshalled tuple of the number of the request, process id
(0 when there is none), errno, what failed, text, and when it was begun, by the monotonic clock.

REPORTS: a marshalled list; for each process that ended a tuple of process id, wait status, CPU seconds, peak memory as
in ru_maxrss (0: no more than ours), and the time by the monotonic clock. A report goes before the end is added to ENDS,
but for the first one: who looks there has patience, where there is such a file.

BELL: a byte where there are answers; a client that waits for many listens here, so as not to be woken for each. While
there are requests to take, the bell is rung for several answers at once, and several reports go together: at most
``_TOGETHER``, of which the first is no older than ``_TOGETHER_S`` when the next job is started. A report goes at
once where none was sent for that long and nobody waits at the bell.

A request may name a file for a record of the job (see ``_local_records``); one that is there already bars the start.

The door: a socket in the abstract namespace, named by our process id, at which other processes of the same user ask for
the end of one of ours by its id, in digits. They get what goes to REPORTS; nothing, when it is none of ours.

It ends when CHANNEL is closed and all its processes have ended.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import gc
import marshal
import posix
import resource
import select
import sys
import time

TYPE_CHECKING = False       # without importing typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

_ENOENT, _ENOTDIR, _EMFILE = 2, 20, 24
_HEADER, _RINGS = 8, 1 << 63        # bytes of the length; in it: the bell is to be rung for the answer
_PACKET = 1 << 16       # bytes of the longest packet
_THREE = 12             # bytes of three descriptors
_ASKERS = 64            # at the door, at most
_ENDS = 256             # reports that are kept for who asks late
_TOGETHER, _TOGETHER_S = 8, 0.002       # answers or reports that wait; seconds for which they do
_FULL = 1 << 20         # bytes of a file of ends that becomes the old one
_AGAIN = 1 << 14        # bytes after which it is opened anew: another starter may have renamed it
_records: "dict[int, bytes]" = {}       # by process id
_running: "dict[int, tuple[float, float]]" = {}     # process ids; before and after its start, by CLOCK_BOOTTIME
_askers: "dict[int, list[_socket.socket]]" = {}     # by process id
_ends: "dict[int, tuple[Any, ...]]" = {}        # the last reports, by process id
_floor = [0]            # the last answer of own_peak, which only grows
_RESET = (_signal.SIGPIPE, _signal.SIGXFSZ)     # Python ignores them; jobs do not
_FIXED = (_signal.SIGKILL, _signal.SIGSTOP)
# What posix_spawn is told to reset it need not ask about, which takes as long again; what is ignored stays so.
_DEFAULT = tuple(number for number in _signal.valid_signals() if number in _RESET or (
    number not in _FIXED and _signal.getsignal(number) != _signal.SIG_IGN))


def error_of(errors: "list[OSError]") -> OSError:
    """What to say when no candidate could be executed: one that is there counts more than others that are not."""
    return next((e for e in errors if e.errno not in (_ENOENT, _ENOTDIR)), errors[-1])


def spawn(candidates: "list[bytes]", arguments: "list[bytes]", environment: "dict[bytes, bytes]", mask: "list[int]",
          streams: "Sequence[int]") -> int:
    """Start the first candidate that can be executed."""
    errors = []
    actions = [(posix.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(streams) if fd != number]
    for path in candidates:
        try:
            return posix.posix_spawn(path, arguments, environment, file_actions=actions, setsid=True, setsigmask=mask,
                                     setsigdef=_DEFAULT)
        except OSError as e:
            errors.append(e)
    raise error_of(errors)


def fork(candidates: "list[bytes]", arguments: "list[bytes]", environment: "dict[bytes, bytes]", mask: "list[int]",
         streams: "Sequence[int]", limits: "list[tuple[str, int, int, int]]", nice: int) -> "tuple[int, int, str, str]":
    """Start a job with limits and niceness, which posix_spawn does not know; the answer to the request."""
    report, write = posix.pipe()        # both are closed by exec
    pid = posix.fork()
    if pid == 0:
        become(candidates, arguments, environment, mask, streams, limits, nice, write)
    posix.close(write)
    report_bytes = posix.read(report, _PACKET)
    posix.close(report)
    if not report_bytes:
        return pid, 0, "", ""
    posix.waitpid(pid, 0)
    return 0, *marshal.loads(report_bytes)


def become(candidates: "list[bytes]", arguments: "list[bytes]", environment: "dict[bytes, bytes]", mask: "list[int]",
           streams: "Sequence[int]", limits: "list[tuple[str, int, int, int]]", nice: int, report: int) -> "NoReturn":
    """In the new process: become the job, or say through the pipe what failed."""
    what = ""
    try:
        posix.setsid()
        for number, fd in enumerate(streams):
            if fd != number:
                posix.dup2(fd, number)
        for number in _RESET:
            _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        for what, number, soft, hard in limits:  # noqa: B007
            resource.setrlimit(number, (soft, hard))
        what = "nice"
        if nice:
            posix.nice(nice)
        what = ""
        execute(candidates, arguments, environment)
    except OSError as e:
        posix.write(report, marshal.dumps((e.errno, what, e.strerror)))
    except BaseException as e:
        posix.write(report, marshal.dumps((0, what, str(e))))
    finally:
        posix._exit(127)


def execute(candidates: "list[bytes]", arguments: "list[bytes]", environment: "dict[bytes, bytes]") -> "NoReturn":
    """Become the first candidate that can be executed."""
    errors = []
    for path in candidates:
        try:
            posix.execve(path, arguments, environment)
        except OSError as e:
            errors.append(e)
    raise error_of(errors)


def serve(request: "tuple[Any, ...]", descriptors: "Sequence[int]") -> "tuple[int, int, str, str]":
    """Start a job; the answer to the request. Returns when the executable runs or is known not to.

    descriptors: descriptors; the request begins with the place of each standard stream among them, -1 for /dev/null.
    """
    places, *arguments, record, head = request
    try:
        if len(descriptors) <= max(places):
            raise OSError(_EMFILE, "Too many open files")
        streams = [number if place < 0 else descriptors[place] for number, place in enumerate(places)]
        if not record:
            return start(streams, *arguments)
        fd = posix.open(record, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o600)
        try:
            posix.write(fd, head)
            began = time.clock_gettime(time.CLOCK_BOOTTIME)     # before the job can do anything: it is not to be short
            answer = start(streams, *arguments)
            if answer[0]:
                _records[answer[0]] = record
                posix.write(fd, b"%d %d %f\n" % (answer[0], ticks(answer[0]), began))
        except BaseException:
            posix.unlink(record)
            raise
        finally:
            posix.close(fd)
        if not answer[0]:
            posix.unlink(record)
        return answer
    except OSError as e:
        return 0, e.errno or 0, "", e.strerror or ""
    except ValueError as e:
        return 0, 0, "", str(e)


def start(streams: "Sequence[int]", candidates: "list[bytes]", arguments: "list[bytes]",
          environment: "dict[bytes, bytes]", directory: bytes, mask: "list[int]",
          limits: "list[tuple[str, int, int, int]]", nice: int) -> "tuple[int, int, str, str]":
    """Start a job; the answer to the request. Raises OSError."""
    posix.chdir(directory)
    if limits or nice:
        return fork(candidates, arguments, environment, mask, streams, limits, nice)
    return spawn(candidates, arguments, environment, mask, streams), 0, "", ""


def ticks(pid: int) -> int:
    """When a process started, in clock ticks since boot; 0 where that cannot be told."""
    try:
        fd = posix.open(b"/proc/%d/stat" % pid, posix.O_RDONLY)
        try:
            return int(posix.read(fd, 4096).rpartition(b")")[2].split()[19])
        finally:
            posix.close(fd)
    except (OSError, IndexError, ValueError):       # it has ended and was reaped
        return 0


def peak_of(usage: "Any") -> int:
    """The peak of a process as in ru_maxrss; 0 where it cannot be distinguished from the memory that we have ourselves,
    which Linux counts as the process' own before its exec."""
    peak: int = usage.ru_maxrss
    if _floor[0] < peak < 4 * _floor[0] or not _floor[0]:
        _floor[0] = own_peak()
    return peak if peak > _floor[0] else 0


def own_peak() -> int:
    """The most memory that we had ourselves, in kilobytes; ru_maxrss would have that of our client in it."""
    fd = posix.open(b"/proc/self/status", posix.O_RDONLY)
    try:
        return int(posix.read(fd, 4096).partition(b"VmHWM:")[2].split()[0])
    finally:
        posix.close(fd)


def write_end(pid: int, status: int, cpu: float, peak: int) -> None:
    """Complete the record of a process, if it has one."""
    record = _records.pop(pid, None)
    if record is None:
        return
    try:
        fd = posix.open(record, posix.O_WRONLY | posix.O_APPEND)
        try:
            posix.write(fd, b"%d %f %d %f\n" % (status, cpu, peak, time.clock_gettime(time.CLOCK_BOOTTIME)))
        finally:
            posix.close(fd)
    except OSError:         # it was removed: nobody is interested any more
        return


class Outbox:
    """Reports that are to be sent, and the bell that is to be rung for answers that were."""

    def __init__(self, reports: _socket.socket, bell: _socket.socket) -> None:
        self.listener, self.bell = reports, bell
        self.reports: list[tuple[int, int, float, int, float]] = []
        self.answers = 0        # for which the bell was not rung
        self.since = 0.0        # when the first came, by the monotonic clock
        self.sent = 0.0         # the time in the last report that was sent
        self.together = False   # the last request was one of many

    def waits(self) -> bool:
        """Whether there is something to do."""
        return bool(self.answers or self.reports)

    def note(self, now: float) -> None:
        """Do it when it is enough: after an answer or a report has come."""
        if self.answers + len(self.reports) == 1:
            self.since = now
        if self.answers >= _TOGETHER or len(self.reports) >= _TOGETHER or now - self.since > _TOGETHER_S:
            self.flush()

    def report(self, report: "tuple[int, int, float, int, float]") -> None:
        """Send a report, at once after a quiet while."""
        self.reports.append(report)
        if not self.together and report[-1] - self.sent > _TOGETHER_S:
            self.flush()
        else:
            self.note(report[-1])

    def flush(self) -> None:
        """Send the reports and ring the bell."""
        try:
            if self.answers:
                self.answers = 0
                self.bell.send(b"x", _socket.MSG_NOSIGNAL | _socket.MSG_DONTWAIT)
        except OSError:         # nobody listens any more, or nobody has for long
            pass
        try:
            if self.reports:
                self.sent = self.reports[-1][-1]
                self.listener.send(marshal.dumps(self.reports), _socket.MSG_NOSIGNAL)
        except OSError:
            pass
        self.reports.clear()


class Ends:
    """The file to which ends are added, which others write to as well; path empty: none."""

    def __init__(self, path: bytes) -> None:
        self.path, self.fd, self.room = path, -1, 0

    def add(self, pid: int, status: int, cpu: float, peak: int, began: "tuple[float, float]") -> None:
        """Add the end of a process. began: before and after its start."""
        if not self.path:
            return
        try:
            if self.room <= 0 or not posix.fstat(self.fd).st_nlink:
                self.open()
            self.room -= posix.write(self.fd, b"\n%d %d %f %f %f %f %d .\n" % (
                pid, status, *began, time.clock_gettime(time.CLOCK_BOOTTIME), cpu, peak))
        except OSError:         # no room, or no such folder any more: it may be otherwise with the next one
            return

    def open(self) -> None:
        """Open the file; one that is full is made the old one. Raises OSError."""
        if self.fd >= 0:
            posix.close(self.fd)
            self.fd = -1
        self.fd = self.once()
        if posix.fstat(self.fd).st_size >= _FULL:
            posix.lockf(self.fd, posix.F_LOCK, 0)       # until it is closed
            if posix.stat(self.path).st_ino == posix.fstat(self.fd).st_ino:
                posix.rename(self.path, self.path + b".old")
            full, self.fd = self.fd, -1
            posix.close(full)
            self.fd = self.once()
        self.room = _AGAIN

    def once(self) -> int:
        """Its descriptor."""
        return posix.open(self.path, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_NOFOLLOW, 0o600)


def take(channel: _socket.socket, number: int, outbox: Outbox) -> bool:
    """Take a request of that number and answer it; False when there are no more."""
    try:
        return take_one(channel, number, outbox)
    except OSError:     # nobody is there; the jobs are
        return False


def take_one(channel: _socket.socket, number: int, outbox: Outbox) -> bool:
    """Take a request and answer it; False at the end. Raises OSError."""
    packet, extra, _, _ = channel.recvmsg(_PACKET, _socket.CMSG_SPACE(_THREE), _socket.MSG_CMSG_CLOEXEC)
    if not packet:
        return False
    descriptors = [fd for _, _, data in extra for fd in memoryview(data).cast("i")]
    size = int.from_bytes(packet[:_HEADER], "little")
    rings, size = bool(size & _RINGS), size & ~_RINGS
    body = bytearray(packet[_HEADER:])
    while len(body) < size:
        more = channel.recv(_PACKET)
        if not more:
            return False
        body += more
    request, began, before = marshal.loads(body), time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)
    answer = serve(request, descriptors)
    if answer[0]:
        _running[answer[0]] = before, time.clock_gettime(time.CLOCK_BOOTTIME)
    channel.send(marshal.dumps((number, *answer, began)))
    outbox.together = rings
    if rings:
        outbox.answers += 1
        outbox.note(time.monotonic())
    for fd in descriptors:
        posix.close(fd)
    posix.chdir("/")
    return True


def reap(outbox: Outbox, ends: Ends) -> bool:
    """Report the processes that have ended, to all who have asked before; whether there are others."""
    while True:
        try:
            pid, status, usage = posix.wait4(-1, posix.WNOHANG)
        except ChildProcessError:       # there are no others
            return False
        if pid == 0:
            return True
        cpu, peak, now = usage.ru_utime + usage.ru_stime, peak_of(usage), time.monotonic()
        write_end(pid, status, cpu, peak)
        report = pid, status, cpu, peak, now
        began = _running.pop(pid, None)
        if began is not None and ends.fd < 0:       # who finds no file of ends has no patience
            ends.add(pid, status, cpu, peak, began)
            began = None
        outbox.report(report)
        _ends.pop(pid, None)
        _ends[pid] = report
        if len(_ends) > _ENDS:
            del _ends[next(iter(_ends))]
        if began is not None:
            ends.add(pid, status, cpu, peak, began)
        for asker in _askers.pop(pid, ()):
            tell(asker, report)


def tell(asker: _socket.socket, report: "tuple[Any, ...]") -> None:
    """Send one who asked at the door a report."""
    try:
        asker.send(marshal.dumps([report]), _socket.MSG_NOSIGNAL | _socket.MSG_DONTWAIT)
    except OSError:         # it does not listen any more
        return


def open_door() -> "_socket.socket | None":
    """Where others ask; None where there can be none."""
    try:
        door = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        door.bind(b"\0psij-starter-%d" % posix.getpid())
        door.listen(_ASKERS)
        door.setblocking(False)
        return door
    except OSError:         # no such sockets, or somebody else has the name
        return None


def let_all_in(door: _socket.socket) -> None:
    """Take the questions of all who ask at the door."""
    while True:
        try:
            asker = _socket.socket(fileno=vars(_socket.socket)["_accept"](door)[0])
        except OSError:         # nobody else
            return
        let_in(asker)


def let_in(asker: _socket.socket) -> None:
    """Take the question of one who asks."""
    try:
        user = int.from_bytes(asker.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)[4:8], sys.byteorder)
        if user != posix.geteuid() or sum(map(len, _askers.values())) >= _ASKERS:
            return
        asker.settimeout(1)
        pid = int(asker.recv(16))
    except (OSError, ValueError):       # it has gone, or it asks nothing
        return
    if pid not in _running and pid in _ends:
        tell(asker, _ends[pid])
    if pid in _running:
        _askers.setdefault(pid, []).append(asker)


def main() -> None:
    """Serve and report until the end."""
    channel, reports, bell = (_socket.socket(fileno=int(fd)) for fd in sys.argv[1:4])
    ends = Ends(sys.argv[4].encode(sys.getfilesystemencoding(), "surrogateescape"))
    woken, wake = posix.pipe()
    for fd in (channel.fileno(), reports.fileno(), bell.fileno()):
        posix.set_inheritable(fd, False)
    posix.set_blocking(wake, False)
    _signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    _signal.signal(_signal.SIGCHLD, lambda number, frame: None)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    poll = select.poll()
    door = open_door()
    if door is not None:        # first: who asked before an end is told of it
        poll.register(door, select.POLLIN)
    poll.register(channel, select.POLLIN)
    poll.register(woken, select.POLLIN)
    poll.register(reports, 0)           # only its end
    serving = busy = True
    number = 1
    outbox = Outbox(reports, bell)
    gc.disable()            # nothing here refers to itself
    channel.send(b"ready")
    while serving or busy:
        ready = poll.poll(0) if outbox.waits() else None
        if not ready:
            outbox.flush()
            ready = poll.poll()
        for fd, _ in ready:
            if fd == woken:
                posix.read(woken, 4096)
                busy = reap(outbox, ends)
            elif fd == reports.fileno():
                poll.unregister(reports)
            elif door is not None and fd == door.fileno():
                let_all_in(door)
            elif take(channel, number, outbox):
                busy = True
                number += 1
            else:
                serving = False
                outbox.flush()
                poll.unregister(channel)
                channel.close()
                busy = reap(outbox, ends)
    outbox.flush()


try:
    main()
except OSError:     # the other side has gone
    posix._exit(1)
