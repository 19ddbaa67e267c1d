"""The killable process that evaluates queries which could take long, as seen from this side (see ``_child``)."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lxml import etree

from sssjob.errors import QueryError, QueryTimeout
from sssjob.limits import Limits
from sssjob.query import _child

_START_SECONDS: Final = 60.0        # for the process to start, and to parse


class Worker:
    """The killable process that evaluates queries; started when it is first asked."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()

    def ask(self, query_text: str, version: str, context: Any, variables: Mapping[str, str],
            namespaces: Mapping[str, str]) -> list[Any]:
        """The results in the form of ``_child.evaluate_10``; raises QueryError or QueryTimeout."""
        root = context.getroottree().getroot()
        answer = self._exchange({"query": query_text, "version": version, "variables": dict(variables),
                                 "namespaces": dict(namespaces), "at": _steps(context)},
                                etree.tostring(root, encoding="utf-8"))
        order = list(root.iter()) if any(len(f) == 3 for f in answer["found"]) else []
        return [[f[0], order[f[1]], f[2]] if len(f) == 3 else f for f in answer["found"]]

    def plan(self, query_text: str, variables: Mapping[str, str], namespaces: Mapping[str, str]) -> dict[str, Any]:
        """How a stream answers, as ``_local.plan``; raises QueryError with the reason where it cannot."""
        request = {"query": query_text, "variables": dict(variables), "namespaces": dict(namespaces), "analyse": True}
        plan: dict[str, Any] = self._exchange(request, b"")["plan"]
        if "refused" in plan:
            raise QueryError(f"the query cannot be asked of a stream: {plan['refused']}")
        return plan

    def _exchange(self, request: dict[str, Any], data: bytes) -> dict[str, Any]:
        process = self._process or self._start()
        try:
            assert process.stdin is not None
            whole = {**request, "bytes": len(data), "seconds": self.limits.query_seconds}
            process.stdin.write(json.dumps(whole).encode() + b"\n")
            process.stdin.write(data)
            process.stdin.flush()
        except OSError:
            self.close()
            raise QueryError("the query was given up: its process ended") from None
        self._line(_START_SECONDS)
        answer: dict[str, Any] = json.loads(self._line(self.limits.query_seconds))
        if "error" in answer:
            raise QueryError(f"the query cannot be evaluated: {answer['error']}")
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        kept = {k: v for k, v in os.environ.items() if k in {"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"}}
        kept["PYTHONPATH"] = os.pathsep.join(str(Path(p).resolve()) for p in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-B", str(Path(_child.__file__))], env=kept, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._line(_START_SECONDS)
        return self._process

    def _line(self, seconds: float) -> bytes:
        """The next line of the process; kills it when none comes in time or it is too long."""
        assert self._process is not None and self._process.stdout is not None
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while (at := self._buffer.find(b"\n", -1 << 17)) < 0:
                if not selector.select(max(0.0, end - time.monotonic())):
                    self.close()
                    raise QueryTimeout(f"the query took longer than query_seconds ({self.limits.query_seconds:g} s)")
                chunk = os.read(self._process.stdout.fileno(), 1 << 16)
                self._buffer += chunk
                if not chunk or len(self._buffer) > self.limits.document_bytes:
                    self.close()
                    raise QueryError("the query was given up: " + ("its process ended" if not chunk else
                                     f"its results are larger than document_bytes ({self.limits.document_bytes})"))
        line = bytes(self._buffer[:at])
        del self._buffer[:at + 1]
        return line

    def close(self) -> None:
        """Kill the process."""
        process, self._process = self._process, None
        self._buffer.clear()
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            try:
                if stream is not None:
                    stream.close()
            except OSError:         # its last bytes find nobody: it has ended
                continue
        process.wait()


def _steps(element: Any) -> list[int]:
    """Indexes from the root down to the element."""
    steps: list[int] = []
    while (above := element.getparent()) is not None:
        steps.append(above.index(element))
        element = above
    return steps[::-1]
