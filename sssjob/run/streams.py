"""The files that the standard streams of JobSpecs go to: which of them are emptied, and by whom."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final

from psij import JobSpec
from sssjob.templates.quoting import HOST_MARK, ID_MARK, NUMBER_MARK

__all__ = ["MERGE", "emptied", "for_launcher", "share_files"]

#: The custom attribute of a stream that goes where the other one goes.
MERGE: Final = "local.merge"
_LOCAL: Final = "local"
#: What stands in a name for what only the job itself knows.
_MARKS: Final = frozenset((NUMBER_MARK, ID_MARK, HOST_MARK))
_DEVICES: Final = ("/dev", "/dev/fd", "/dev/pts")       # what is written to a file there is kept nowhere


def emptied(spec: JobSpec) -> Iterator[str]:
    """The files of streams that a job empties when it starts, but for those that its native id or host names."""
    custom = (spec.attributes.custom_attributes if spec.attributes is not None else None) or {}
    for member in ("stdout", "stderr"):
        path = getattr(spec, f"{member}_path")
        if path is None or "append" in (custom.get(f"{_LOCAL}.{member}_mode"), custom.get(f"psij.{member}_mode")):
            continue
        name = str(path)
        if name.isascii() or _MARKS.isdisjoint(name):
            file = os.path.normpath(os.path.join(str(spec.directory or ""), name))
            if os.path.dirname(file) not in _DEVICES:
                yield file


def share_files(specs: Sequence[JobSpec]) -> None:
    """Have the parts of a job that are started one after the other, and run side by side, add to a file that several of
    them write: the first that writes it empties it, where the job does not say that it is gone on with."""
    writers: dict[str, list[tuple[JobSpec, str]]] = {}
    for spec in specs:
        of_one = {os.path.join(str(spec.directory), str(path)): member for member in ("stderr", "stdout")
                  if (path := getattr(spec, f"{member}_path")) is not None}
        for path, member in of_one.items():
            writers.setdefault(path, []).append((spec, member))
    for shared in writers.values():
        for n, (spec, member) in enumerate(shared if len(shared) > 1 else ()):
            assert spec.attributes is not None
            name, custom = f"{_LOCAL}.{member}_mode", spec.attributes.custom_attributes or {}
            spec.attributes.set_custom_attribute(name, "append" if n else custom.get(name, "share"))


def for_launcher(spec: JobSpec, custom: dict[str, object], merged: str) -> None:
    """Say of the streams what launchers understand, in place of what the local executor does."""
    modes = {stream: custom.pop(f"local.{stream}_mode", None) for stream in ("stdout", "stderr")}
    if custom.pop(MERGE, None) is not None:        # one file, which both append to
        member, _, other = merged.partition("-to-")
        setattr(spec, f"{member}_path", getattr(spec, f"{other}_path"))
        modes[member] = modes[other]
    custom.update({f"psij.{stream}_mode": mode for stream, mode in modes.items() if mode is not None})
