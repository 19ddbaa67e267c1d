"""What two runs of one job have left, each in a directory of its own, compared file by file.

Files are paired by name, and those that a manager makes of standard output and errors where no option names a file by
what they hold. The id of a job and the directory that it ran in stand for those of the other one, in names and texts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Final

__all__ = ["Difference", "Leavings", "differences"]

_WHOLE: Final = 4 << 20         # bytes of a file up to which ids in it are looked for; larger ones are equal or not
_LINES: Final = 20              # lines that are shown of one difference
_DIRECTORY: Final = b"\0directory"      # stands for the directory of either run
_BOTH: Final = "standard output and errors"
_ROLES: Final = ("standard output", "standard errors")
#: Grid Engine makes these of a job in a parallel environment: what starting and ending the environment puts out.
_OF_ENVIRONMENTS: Final = r".+\.p[oe]{id}(\.\d+)?"

_Stream = tuple[str, str]       # role, and the number of the element of an array; empty where it is no array


@dataclass(frozen=True, slots=True)
class Difference:
    """subject: a file, a stream, or how the jobs ended. lines: a diff of the texts, where there is one."""

    subject: str
    message: str
    lines: tuple[str, ...] = ()

    def record(self) -> dict[str, object]:
        """The same as JSON."""
        return {"subject": self.subject, "message": self.message, "lines": list(self.lines)}


@dataclass(frozen=True, slots=True)
class Leavings:
    """Where a job has run. title: of its manager; ids: the spellings of its id, the longest first; scripts: the names
    of the files that were there before; streams: what the manager calls output and errors where no option names them
    (``{name}.o{jobid}``), errors none where they go into the same file; home: another directory where these may be,
    changed no earlier than since (seconds since the epoch), for an old job may have had the same id; places: the paths
    of the directory where the job ran, if that is another one of which it is a copy."""

    title: str
    directory: Path
    ids: Sequence[str]
    scripts: frozenset[str] = frozenset()
    streams: Sequence[str] = ()
    home: Path | None = None
    since: float = 0.0
    places: Sequence[Path] = ()

    def files(self) -> dict[str, Path]:
        """The files and links in the directory by relative name, without those that were there and empty ones of a
        parallel environment."""
        paths: dict[str, Path] = {}
        own = re.compile(_OF_ENVIRONMENTS.format(id=self._id))
        for folder, folders, names in os.walk(self.directory, onerror=_unless_gone):
            links = [name for name in folders if Path(folder, name).is_symlink()]
            for path in (Path(folder, name) for name in (*names, *links)):
                name = str(path.relative_to(self.directory))
                if name not in self.scripts and not (own.fullmatch(name) and path.lstat().st_size == 0):
                    paths[name] = path
        return paths

    def outputs(self, files: Mapping[str, Path]) -> dict[_Stream, Path]:
        """The files of the streams that no option names; those of ``home`` only where the directory has none."""
        streams = dict(self._outputs_among(files))
        if not streams and self.home is not None:
            listed = os.listdir(self.home) if self.home.is_dir() else []
            outputs = dict(self._outputs_among({name: self.home / name for name in listed}))
            streams = {stream: path for stream, path in outputs.items() if path.stat().st_mtime >= self.since}
        return streams

    def _outputs_among(self, files: Mapping[str, Path]) -> Iterator[tuple[_Stream, Path]]:
        roles = _ROLES if len(self.streams) > 1 else (_BOTH,)
        for role, pattern in zip(roles, self.streams, strict=False):
            expression = re.escape(pattern).replace(r"\{name\}", "[^/]+").replace(r"\{jobid\}", (
                rf"{self._id}(?:[._[-](?P<element>\d+)\]?)?"))
            for name, path in files.items():
                if (match := re.fullmatch(rf"{expression}(?:[.-](?P<last>\d+))?", name)) and path.is_file():
                    yield (role, match["element"] or match["last"] or ""), path

    @property
    def _id(self) -> str:
        return f"(?:{'|'.join(re.escape(ident) for ident in self.ids)})"

    def text(self, path: Path) -> bytes:
        """The content of a file, with its directory as a word; what a link leads to, of a link."""
        content = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()
        return self.plain(content)

    def plain(self, content: bytes) -> bytes:
        """Bytes with the directory that the job ran in, as it was named or without links, as a word."""
        places = self.places or (self.directory, self.directory.resolve())
        for directory in sorted(set(places), key=lambda path: -len(str(path))):
            content = content.replace(os.fsencode(directory), _DIRECTORY)
        return content

    def words(self, content: bytes) -> list[bytes | None]:
        """Bytes cut at numbers and ids; None stands for an id."""
        ids = [os.fsencode(ident) for ident in self.ids]
        words = rb"((?:%s)(?!\d)|\d+)" % b"|".join(map(re.escape, ids))      # 123 is no id in 41234
        return [None if number % 2 and part in ids else part for number, part in enumerate(re.split(words, content))]


def _unless_gone(error: OSError) -> None:
    """Raise an error of a directory, but for one that a job has removed."""
    if not isinstance(error, FileNotFoundError):
        raise error


def differences(original: Leavings, converted: Leavings) -> Iterator[Difference]:
    """What two jobs have left that is not the same."""
    files, converted_files = original.files(), converted.files()
    outputs, converted_outputs = original.outputs(files), converted.outputs(converted_files)
    yield from _of_streams(original, converted, outputs, converted_outputs)
    files = {name: path for name, path in files.items() if path not in outputs.values()}
    converted_files = {name: path for name, path in converted_files.items() if path not in converted_outputs.values()}
    for name, path in sorted(files.items()):
        partner = _partner(original, converted, name, converted_files)
        if partner is None:
            yield Difference(name, f"{original.title} left it, {converted.title} did not")
        else:
            yield from _of_file(original, converted, name, path, converted_files.pop(partner))
    for name in sorted(converted_files):
        yield Difference(name, f"{converted.title} left it, {original.title} did not")


def _partner(original: Leavings, converted: Leavings, name: str, converted_files: Mapping[str, Path]) -> str | None:
    """The name of the other run's file that has the same name but for ids; the very same first."""
    if name in converted_files:
        return name
    words = original.words(os.fsencode(name))
    return next((candidate for candidate in sorted(converted_files)
                 if converted.words(os.fsencode(candidate)) == words), None)


def _of_file(original: Leavings, converted: Leavings, name: str, path: Path, partner: Path) -> Iterator[Difference]:
    regular = [file.is_file() and not file.is_symlink() for file in (path, partner)]
    if not any(regular) and not (path.is_symlink() and partner.is_symlink()):
        return                      # two pipes or sockets
    if regular[0] != regular[1]:
        yield Difference(name, "it is a file on one side and none on the other")
    elif all(regular) and max(file.stat().st_size for file in (path, partner)) > _WHOLE:
        if not _equal(path, partner):
            yield Difference(name, f"it differs (of more than {_WHOLE >> 20} MiB, ids and directories count as text)")
    else:
        yield from _of_texts(original, converted, name, original.text(path), converted.text(partner))


def _equal(path: Path, partner: Path) -> bool:
    """Whether two files have the same content."""
    import filecmp

    return filecmp.cmp(path, partner, shallow=False)


def _of_texts(original: Leavings, converted: Leavings, subject: str, text: bytes,
              converted_text: bytes) -> Iterator[Difference]:
    if _alike(original, converted, text, converted_text):
        return
    if not (_is_text(text) and _is_text(converted_text)):
        yield Difference(subject, f"it differs, and is no text ({len(text)} and {len(converted_text)} bytes)")
        return
    lines, converted_lines = text.splitlines(), converted_text.splitlines()
    if len(lines) == len(converted_lines):          # a line that differs by its id alone is not shown
        lines = [changed if _alike(original, converted, line, changed) else line
                 for line, changed in zip(lines, converted_lines, strict=True)]
    shown = list(unified_diff([_readable(line) for line in lines], [_readable(line) for line in converted_lines],
                              original.title, converted.title, lineterm="", n=1))
    more = len(shown) - _LINES
    rest = [f"... {more} more lines"] if more > 0 else []
    yield Difference(subject, "it differs" if shown else "it differs by its line ends", (*shown[:_LINES], *rest))


def _alike(original: Leavings, converted: Leavings, text: bytes, converted_text: bytes) -> bool:
    """Whether texts are the same, or are when the id of one job stands for that of the other one."""
    if text == converted_text:
        return True
    return original.words(text) == converted.words(converted_text)


def _is_text(content: bytes) -> bool:
    """Whether lines of a content can be shown."""
    try:
        return "\0" not in content.replace(_DIRECTORY, b"").decode()
    except UnicodeDecodeError:
        return False


def _readable(line: bytes) -> str:
    return line.replace(_DIRECTORY, b"DIRECTORY").decode("utf-8", "backslashreplace")


def _of_streams(original: Leavings, converted: Leavings, outputs: Mapping[_Stream, Path],
                converted_files: Mapping[_Stream, Path]) -> Iterator[Difference]:
    """Streams that no option names, element by element. Where one manager has a file for both and the other one a file
    each, nobody knows which line came first: they are compared as sets of lines."""
    for element in sorted({number for _, number in (*outputs, *converted_files)}):
        texts = [{role: text for (role, number), path in files.items() if number == element
                  and (text := side.text(path))} for side, files in ((original, outputs), (converted, converted_files))]
        of_element = f" of element {element}" if element else ""
        if _BOTH in texts[0] or _BOTH in texts[1]:
            whole = [b"".join(roles.values()) for roles in texts]
            if any(len(roles) > 1 for roles in texts):
                whole = [b"\n".join(sorted(text.splitlines())) for text in whole]
            yield from _of_texts(original, converted, f"{_BOTH}{of_element}", whole[0], whole[1])
        else:
            for role in _ROLES:
                yield from _of_texts(original, converted, f"{role}{of_element}", texts[0].get(role, b""),
                                     texts[1].get(role, b""))
