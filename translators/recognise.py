"""Which format a text is in: every format says what it sees of itself in there, and why.

A format's ``recognise`` gets a ``Sample`` and gives a ``Fit`` or None; nothing here knows any format. One that its own
reader would take is before one that it would not. Of relatives that would take the same lines the first one counts, and
that is said; where others fit beside each other nothing is guessed: the caller is told of both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from sssjob.errors import FormatError, UsageError
from sssjob.findings import Findings, escape
from sssjob.limits import LIMITS
from sssjob.translators.base import Translator
from sssjob.translators.registry import BUILT_IN, get, names

if TYPE_CHECKING:
    from sssjob.translators.scripts.raw import Line
    from sssjob.translators.scripts.rows import Scan

__all__ = ["Fit", "NoFormatError", "Sample", "as_script_of", "begun", "by_beginning", "by_keys", "by_root", "guess",
           "recognise", "scripts"]


@dataclass(frozen=True, slots=True)
class Fit:
    """Why a text is of a format. objection: gives what its own reader would not take, asked only where other formats
    fit too; claims: the lines that show it: of two formats that claim the same lines, one with nothing against it is
    meant."""

    why: str
    objection: Callable[[], str] = str      # there is none
    claims: frozenset[int] = frozenset()

    @property
    def against(self) -> str:
        """What its own reader would not take; empty: nothing."""
        return self.objection()


class Sample:
    """A text that nobody has named the format of."""

    def __init__(self, data: bytes, path: str = "-") -> None:
        self.data, self.path = data, path
        self.live: dict[str, list[Line]] = {}       # dialect -> the lines that its manager obeys
        #: Dialect -> what the first stage of its reader made of the text, without a site and with the policy Warn.
        self.scans: dict[str, tuple[Scan, Findings]] = {}

    @cached_property
    def head(self) -> str:
        """The beginning, without a byte order mark."""
        return self.data[:LIMITS.recognise_bytes].decode("utf-8-sig", "replace")

    @cached_property
    def text(self) -> str:
        """All of it, as a script is read; the beginning of what is too large for one."""
        return self.data[:LIMITS.script_bytes].decode("utf-8", "surrogateescape")

    @cached_property
    def lines(self) -> list[Line]:
        """The lines of the text."""
        from sssjob.translators.scripts.raw import lines_of

        return list(lines_of(self.text))

    def fit(self, translator: Translator) -> Fit | None:
        """What a format sees of itself in the text."""
        if translator.recognise is None:
            return None
        if translator.marks and not any(map(self.text.__contains__, translator.marks)):
            return None
        return translator.recognise(self)

    @cached_property
    def root(self) -> tuple[str, str] | None:
        """Local name and namespace of the root element of XML."""
        match = _ROOT.match(self.head)
        if match is None:
            return None
        prefix, _, local = match["name"].rpartition(":")
        named = re.search(rf"""\sxmlns{':' if prefix else ''}{re.escape(prefix)}\s*=\s*["']([^"']*)""", match["more"])
        return local, named[1] if named else ""

    @cached_property
    def keys(self) -> frozenset[str] | None:
        """The keys of a JSON object, of the first one of an array or of JSON Lines; None: this is none."""
        if not re.match(r"\s*(?:\[\s*)?\{", self.head):
            return None
        keys: set[str] = set()
        depth = 0
        for hit in _TOKEN.finditer(self.head, self.head.index("{")):
            sign = hit[0][0]
            if sign in "{[":
                depth += 1
            elif sign in "}]":
                depth -= 1
                if not depth:
                    break
            elif hit["colon"] and depth == 1:
                keys.add(hit["text"])
        return frozenset(keys)


_ROOT: Final = re.compile(r"(?:\s++|<\?[^>]*+>|(?><!--.*?-->)|<!DOCTYPE[^>\[]*+>)*+"
                          r"<(?P<name>[A-Za-z_][\w.:-]*+)(?P<more>[^>]*+)", re.DOTALL)
_TOKEN: Final = re.compile(r'[{}\[\]]|"(?P<text>(?:[^"\\]|\\.)*+)"(?P<colon>\s*:)?', re.DOTALL)


# -- what formats use
def by_root(sample: Sample, roots: frozenset[str], namespaces: frozenset[str] | None = None) -> Fit | None:
    """By the root element: one of these names, in one of these namespaces (None: any)."""
    root = sample.root
    if root is None or root[0] not in roots or (namespaces is not None and root[1] not in namespaces):
        return None
    return Fit(f"the root element is {root[0]}{f' of {root[1]}' if namespaces is not None and root[1] else ''}")


def by_keys(sample: Sample, all_of: frozenset[str], any_of: frozenset[str] = frozenset()) -> Fit | None:
    """By keys of JSON: all of the first, and one of the second if there are any."""
    keys = sample.keys
    if keys is None or not all_of <= keys or (any_of and not any_of & keys):
        return None
    shown = sorted(all_of | (any_of & keys))[:4]
    return Fit(f"a JSON object with {', '.join(shown)}")


def by_beginning(sample: Sample, pattern: re.Pattern[str], what: str) -> Fit | None:
    """By the form of the first lines, blank ones left out."""
    return Fit(f"it begins with {what}") if pattern.match(sample.head.lstrip()) else None


# -- asking all
class NoFormatError(FormatError):
    """A text that no format sees anything of itself in."""


#: Our own formats: what shows one of them is nothing else, so that no other format needs to be imported.
_OURS: Final = ("sss", "sss-json")
_SCRIPTS: Final = "sssjob.translators.scripts."


def recognise(data: bytes | Sample, path: str = "-", preferred: Callable[[], str] = str
              ) -> list[tuple[Translator, Fit]]:
    """The formats that a text may be in, in the order of the registry; a third party's that cannot be loaded is left
    out. preferred: gives the name of the one that counts of relatives that would take the same lines (empty: any)."""
    fits = _fitting(data if isinstance(data, Sample) else Sample(data, path))
    if len(fits) > 1 and (name := preferred()):
        fits.sort(key=lambda fit: fit[0].name != name)
    first = next((fit for _, fit in _meant(fits) if fit.claims and not fit.against), None) if len(fits) > 1 else None
    same = [t.name for t, fit in fits if first is not None and fit is not first and fit.claims == first.claims
            and not fit.against]
    more = f"; {' and '.join(same)} would read it too" if same else ""
    return [(t, replace(fit, why=fit.why + more) if fit is first else fit) for t, fit in _meant(fits)]


def _meant(fits: list[tuple[Translator, Fit]]) -> list[tuple[Translator, Fit]]:
    """The formats without those whose reader would refuse something and those that come after another one of the same
    lines, where there is a format that would take what it claims."""
    first = next((fit for _, fit in fits if fit.claims and not fit.against), None) if len(fits) > 1 else None
    if first is None:
        return fits
    return [(t, fit) for t, fit in fits if fit is first or not fit.claims or (
        fit.claims != first.claims and not fit.against)]


def _fitting(sample: Sample, *, scripts_only: bool = False) -> list[tuple[Translator, Fit]]:
    """The formats that see something of themselves in a text. scripts_only: of those that are not ours, the ones that
    may be of scripts."""
    data = sample.data
    fits: list[tuple[Translator, Fit]] = []
    for name in _OURS if data[:1000].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"<", b"{", b"[") else ():
        translator = get(name)
        fit = sample.fit(translator)
        if fit is not None:
            return [(translator, fit)]
    built_in, others = _by_origin(_of_scripts(names()) if scripts_only else _possible(data))
    fits += [(translator, fit) for translator in built_in if (fit := sample.fit(translator)) is not None]
    for name in others:
        with suppress(UsageError):          # ``guess`` tells where nothing else fits
            translator = get(name)
            fit = sample.fit(translator)
            if fit is not None:
                fits.append((translator, fit))
    return fits


@lru_cache(maxsize=8)
def _by_origin(formats: tuple[str, ...]) -> tuple[list[Translator], list[str]]:
    """(those that are built in, the names of the others) of formats."""
    return [get(name) for name in formats if name in BUILT_IN], [name for name in formats if name not in BUILT_IN]


def scripts(sample: Sample) -> list[Translator]:
    """The dialects of scripts that a text may be in. Of a text without any sign of a built-in one nobody is asked,
    unless others are installed."""
    if len(names()) == len(BUILT_IN) and _SIGN.search(sample.data) is None:
        return []
    return [translator for translator, _ in _meant(_fitting(sample, scripts_only=True)) if translator.kind == "script"]


#: What stands in every script of a built-in dialect: the prefix of its directives, or the last word of a submit file.
_SIGN: Final = re.compile(rb"#SBATCH|#PBS|BSUB|#\$|#COBALT|(?i:flux:)|(?im:^\s*queue)")


def _possible(data: bytes) -> tuple[str, ...]:
    """The formats to ask: what begins as a script does can be no record and no description in XML or JSON."""
    return _of_scripts(names()) if data.startswith(b"#!") else names()


@lru_cache(maxsize=1)
def _of_scripts(formats: tuple[str, ...]) -> tuple[str, ...]:
    """The formats that may be of scripts: those of others may be anything."""
    return tuple(name for name in formats if BUILT_IN.get(name, _SCRIPTS).startswith(_SCRIPTS))


def begun(head: bytes, path: str = "-") -> tuple[Translator, Fit] | None:
    """The format of records that a text of any size begins in, by its first ``recognise_bytes``; None where these are
    no records or may be something else too, so that all of the text has to be looked at."""
    fits = recognise(head, path)
    return fits[0] if len(fits) == 1 and fits[0][0].kind == "record" else None


def guess(text: bytes | Sample, path: str = "-", preferred: Callable[[], str] = str) -> tuple[Translator, Fit]:
    """The one format of a text; NoFormatError where none fits, FormatError with the reasons where several do. text: a
    Sample has its own path, and knows afterwards what a reader of scripts need not find out again. preferred: as of
    ``recognise``."""
    fits = recognise(text, path, preferred)
    if len(fits) == 1:
        return fits[0]
    data, path = (text.data, text.path) if isinstance(text, Sample) else (text, path)
    shown = escape(path) or "-"
    if not fits:
        raise NoFormatError(f"{shown}: no format is recognised in it{_written(data) or _calling(data)}; name one with "
                            f"--from{_not_asked()}")
    reasons = "; ".join(f"{t.name} ({fit.why}{f', but {fit.against}' if fit.against else ''})" for t, fit in fits)
    raise FormatError(f"{shown}: fits {len(fits)} formats, name one with --from: {reasons}")


def as_script_of(data: bytes, path: str, dialect: str) -> str:
    """Why a text of no format, or of one of several, is a script of the manager that is to run it: it may be one among
    others, or has no directives, calls no submit command and writes no other script. Empty where it is none of it."""
    fits = recognise(data, path)
    if not fits and data.startswith(b"#!") and not (_written(data) or _calling(data)):
        return "a script without directives, for the manager that is to run it"
    return next((fit.why for translator, fit in fits if translator.name == dialect), "")


#: Beginnings of directives, for a text in which none is live.
_DIRECTIVE: Final = re.compile(r"#(?:SBATCH|PBS|BSUB|COBALT|\$|[ \t]?(?:flux|FLUX):)(?=[ \t]+-)")


def _written(data: bytes) -> str:
    """What a script that writes another one has in its here-documents, or else in its strings; empty where it has
    nothing there."""
    from sssjob.translators.scripts.raw import here_lines, lines_of

    every = list(lines_of(data[:LIMITS.recognise_bytes].decode("utf-8", "replace")))
    inner_lines = [line for line in here_lines(every) if _DIRECTIVE.match(line.text)] if b"<<" in data else []
    where, text_lines = "a here-document", inner_lines or [
        line for line in every if line.text.lstrip()[:1] != "#" and _DIRECTIVE.search(line.text)]
    if not inner_lines:
        where = "text that the script writes"
    hit = _DIRECTIVE.search(text_lines[0].text) if text_lines else None
    if hit is None:
        return ""
    lines, stand, first = ("line", "stands", "") if len(text_lines) == 1 else ("lines", "stand", "the first ")
    return f": {len(text_lines)} {lines} of {hit[0]} {stand} in {where}, {first}in line {text_lines[0].number}"


def _calling(data: bytes) -> str:
    """The first call of a submit command in a script that is no job itself; empty where there is none."""
    from sssjob.lrm.variables import FACTS

    titles: dict[str, list[str]] = {}
    for facts in FACTS.values():
        for command in (command for command, act in facts.commands.items() if act == "submit"):
            titles.setdefault(command, []).append(facts.title)
    called = re.compile(rf"^[^#\n]*?(?<![\w./-])({'|'.join(sorted(map(re.escape, titles)))})(?![\w./-])", re.MULTILINE)
    text = data[:LIMITS.recognise_bytes].decode("utf-8", "replace")
    hit = called.search(text) if text.startswith("#!") else None
    if hit is None:
        return ""
    *others, last = titles[hit[1]]
    where = f": line {text.count(chr(10), 0, hit.start(1)) + 1} calls {hit[1]} of {', '.join(others)}"
    return f"{where}{' or ' if others else ''}{last}, " + ("whose submit files are converted, not calls"
                                                           if last == "HTCondor" else "so it is a script that submits")


def _not_asked() -> str:
    """The formats that could not be asked, with the reason of each."""
    reasons = []
    for name in names():
        try:
            get(name)
        except UsageError as error:
            reasons.append(f"; {error}")
    return "".join(reasons)
