"""An execution service as a process: over standard input and output, at a Unix socket, or at a Flux broker."""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from psij import JobExecutor, JobExecutorConfig
from sssjob.errors import AccessError, UsageError
from sssjob.fluxexec.broker import connect_broker
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.runner import PsijRunner
from sssjob.fluxexec.service import Runner, Service, State
from sssjob.fluxexec.simulator import SimulatedRunner
from sssjob.fluxexec.transport import FdChannel, Lines, listen
from sssjob.lrm.flux.errors import ProtocolError

__all__ = ["Server"]

log = logging.getLogger("sssjob.fluxexec")
_DRAIN_S = 5.0          # for the other side to read what is left


class Server:
    """executor: a PSI/J executor by name; None: simulate. state: a folder in which a later server finds the jobs of
    this one. options: of ``Service``."""

    def __init__(self, executor: str | None, *, state: Path | None = None, **options: Any) -> None:
        self.loop = Loop(virtual=executor is None)
        self.options, self.state = options, state
        self.runner: Runner = SimulatedRunner(self.loop, split=True)
        if executor is not None:
            try:
                instance = JobExecutor.get_instance(executor, config=_config())
            except ValueError as error:
                raise UsageError(str(error)) from None
            self.runner = PsijRunner(self.loop, instance, folder=state)
        self.service: Service | None = None
        self.signal = 0
        self._eof = False

    def serve_stdio(self, fd_in: int = 0, fd_out: int = 1) -> int:
        """Serve one job manager. At the end of input, what was started is finished."""
        channel = Lines(self.loop, os.dup(fd_in), os.dup(fd_out), half=True)
        channel.ended = self._ended
        return self._run(lambda: self._serve(channel))

    def serve_broker(self, uri: str | None = None) -> int:
        """Serve a Flux instance."""
        return self._run(lambda: self._serve(connect_broker(self.loop, uri), broker=True))

    def serve_socket(self, path: str) -> int:
        """Serve one job manager after the other at a Unix socket."""
        with listen(path) as listener:
            # soon: after the end of the connection before, if both are there to see
            self.loop.watch(listener.fileno(), 1, lambda events: self.loop.soon(lambda: self._accept(listener)))
            try:
                return self._run(lambda: None)
            finally:
                with suppress(OSError):
                    os.unlink(path)

    def _run(self, begin: Callable[[], None]) -> int:
        """The exit status: 0, or 128 and a signal.

        Raises ProtocolError when the job manager refuses the service, AccessError when the connection is lost.
        """
        try:
            with self._signals():
                begin()
                if not self.loop.stopped:
                    self.loop.run(self._finished)
                self._leave()
        finally:
            self.loop.close()
        service = self.service
        if service is not None and service.why and not self.signal:
            if service.refused:
                raise ProtocolError(service.why)
            raise AccessError("job manager", service.why)
        return 128 + self.signal if self.signal else 0

    def _serve(self, channel: FdChannel, *, broker: bool = False) -> None:
        self.service = Service(self.loop, channel, self.runner, broker=broker, changed=self._changed, **self.options)
        self.service.begin()

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                log.warning("a connection cannot be taken: %s", error)
            return
        with connection:
            if self.service is not None and self.service.state is not State.DEAD:
                log.warning("a second job manager was turned away")
                return
            self._serve(_Visit(self.loop, connection.detach()))

    def _changed(self, service: Service) -> None:
        if service.state is not State.DEAD or service is not self.service:
            return
        if not isinstance(service.channel, _Visit) or service.refused:
            self.loop.stop()
        elif service.why:
            log.warning("%s", service.why)
            service.why = ""

    def _ended(self) -> None:
        self._eof = True
        service = self.service
        if service is not None and service.state is not State.REGISTERED:
            service.close()
            service.why = "the job manager went away before it answered hello"

    def _finished(self) -> bool:
        service = self.service
        if self.signal:
            return True
        return self._eof and service is not None and (service.state is State.DEAD or not service.jobs)

    def _leave(self) -> None:
        """End what nobody could find again, and let the other side read what is left."""
        service = self.service
        if service is not None and service.state is not State.DEAD:
            channel, jobs = service.channel, len(service.jobs)
            if jobs and self.state is None:
                log.warning("%d jobs are ended with the service", jobs)
            assert isinstance(channel, FdChannel)
            self.loop.run(lambda: channel.pending == 0, timeout=_DRAIN_S)
            service.close(give_up=self.state is None)
        if isinstance(self.runner, PsijRunner):
            if self.state is None:
                self.runner.end_all(_DRAIN_S)
            else:
                self.runner.close()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM, SIGINT and SIGHUP end the loop."""
        def caught(number: int, frame: object) -> None:
            """Note the signal and stop the loop."""
            self.signal = number
            self.loop.stop()

        # another thread may be given the signal: the pipe wakes this one
        wakeup = signal.set_wakeup_fd(self.loop.wakeup_fd(), warn_on_full_buffer=False)
        before = {n: signal.signal(n, caught) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)


def _config() -> JobExecutorConfig | None:
    """Where SSSJOB_MJF is set, jobs get Machine/Job Features. Raises UsageError."""
    if "SSSJOB_MJF" not in os.environ:
        return None
    from sssjob.mjf.provider import from_environment

    config = JobExecutorConfig()
    config.surroundings = from_environment(os.environ)
    return config


class _Visit(Lines):
    """The connection of a job manager that may be followed by another."""
