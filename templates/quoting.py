"""One filter for each context in which a template puts a value.

``word``            a word of a POSIX shell: exactly these characters, whatever they are
``words``           a list of words
``sbatch``          an option of an ``#SBATCH`` line
``slurm_path``      a file name in such an option where ``%`` has a meaning
``sge``             an option of a ``#$`` line of Grid Engine
``pbs``             an option of a ``#PBS`` line of PBS Pro, OpenPBS and Torque
``bsub``            an option of a ``#BSUB`` line of LSF
``nqsv``            an option of a ``#PBS`` line of NQSV
``flux``            an option of a ``#FLUX:`` line
``flux_path``       a file name in such an option where ``{{`` has a meaning
``condor``          a line of an HTCondor submit description
``condor_string``   a string in such a line, as an expression
``condor_word``     an argument in its ``arguments = "..."``
``condor_path``     a file name in it
``cobalt``          an option of a ``#COBALT`` line
``xml``             the text of an element of XML

``bare(text)`` is true of a text that means itself in all of them, without any quotes.

A mark in a word of the shell stands for what only the job itself knows when it runs (``marked_words``):
``ELEMENT_MARKS`` for the index of the element, where a script serves all elements of an array, ``ID_MARK`` and
``NUMBER_MARK`` for its id, ``HOST_MARK`` for its host.

All return Quoted. A value that cannot be said in a context raises QuotingError. No result has a line break in it: some
resource managers read directives anywhere in the file, even inside a quoted word.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

__all__ = ["ELEMENT_MARKS", "FILTERS", "HOST_MARK", "ID_MARK", "NUMBER_MARK", "TAG_MARK", "WIDEST_INDEX", "Directive",
           "Quoted", "QuotingError", "bare", "bsub", "checked", "cobalt", "condor", "condor_path", "condor_string",
           "condor_word", "expanding_word", "flux", "flux_path", "index_mark", "lines", "marked_words", "nqsv", "pbs",
           "sbatch", "sge", "slurm_path", "word", "words", "xml"]

#: The greatest width to which an index can be filled up with zeros.
WIDEST_INDEX: Final = 9
#: Marks in texts, by width: the index of an element, as it is (0) or filled up with zeros. Unicode keeps these for such
#: uses within a program: they are no characters.
ELEMENT_MARKS: Final = tuple(chr(0xFDD0 + width) for width in range(WIDEST_INDEX + 1))
#: The mark for the tag of an element.
TAG_MARK: Final = chr(0xFDD0 + WIDEST_INDEX + 1)
#: The marks for the native id of a job, and for the number in it, which of an element is that of the array.
ID_MARK: Final = chr(0xFDD0 + WIDEST_INDEX + 2)
NUMBER_MARK: Final = chr(0xFDD0 + WIDEST_INDEX + 3)
#: The mark for the host that the job runs on.
HOST_MARK: Final = chr(0xFDD0 + WIDEST_INDEX + 4)
_MARK = re.compile(f"([{ELEMENT_MARKS[0]}-{HOST_MARK}])")
_VARIABLES = {ELEMENT_MARKS[0]: "_psij_index", TAG_MARK: "_psij_tag",
              ID_MARK: "_psij_native", NUMBER_MARK: "_psij_native%%[!0-9]*",
              HOST_MARK: "SLURMD_NODENAME:-$HOSTNAME",
              **{mark: f"_psij_index_{width}" for width, mark in enumerate(ELEMENT_MARKS) if width}}
_marked: ContextVar[bool] = ContextVar("marked", default=False)

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+", re.ASCII)
bare = _PLAIN.fullmatch        # no function around it: writers of scripts ask it of each of their options
_ASCII = re.compile(r"[ -~]*", re.ASCII)
_UNFIT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"})
_DIRECTIONS = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SGE_UNFIT = re.compile(r"[\"'#\\]")
_SGE_TWO = re.compile(r"pe \S+ [\d,:-]+|binding (?:env|pe|set) \S+", re.ASCII)     # options of two words
_SGE_SOFT = "soft -"
_BSUB_COMMENT = re.compile(r"(?:^|[ ])#")
_FLUX_SPECIAL = re.compile(r"([^\w@%+=:,./-])", re.ASCII)
_OPTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)


class Quoted(str):
    """Text that is ready for its place in a script."""

    __slots__ = ()


class QuotingError(ValueError):
    """A value cannot stand where it is wanted. field: what the value is, as far as known; value; reason."""

    def __init__(self, field: str | None, value: str, reason: str) -> None:
        super().__init__(f"{field or 'value'} {value!r} {reason}")
        self.field = field
        self.value = value
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Directive:
    """An option for the resource manager.

    option: its name, without dashes. value: None for an option that has none. field: the member of the job's
    description that it comes from, for messages.
    """

    option: str
    value: str | None = None
    field: str | None = None


def _is_control(character: str) -> bool:
    """Controls, line and paragraph separators, undecodable bytes, and what turns the direction of text."""
    return unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs") or character in _DIRECTIONS


def _clean(text: str) -> bool:
    return _ASCII.fullmatch(text) is not None or not any(map(_is_control, text))


def _ansi(text: str) -> str:
    """``$'...'`` with every control as bytes: readable by bash in any locale."""
    out = []
    for character in text:
        if character in "'\\":
            out.append("\\" + character)
        elif _is_control(character):
            out += [f"\\{byte:03o}" for byte in os.fsencode(character)]
        else:
            out.append(character)
    return "$'" + "".join(out) + "'"


def index_mark(width: int = 0) -> str:
    """The mark for an index that is filled up with zeros to a width, of WIDEST_INDEX at most."""
    return ELEMENT_MARKS[width]


@contextmanager
def marked_words() -> Iterator[None]:
    """Meanwhile, in this thread, marks in words of the shell become the variables of the job that runs the script;
    otherwise they are characters as any others."""
    token = _marked.set(True)
    try:
        yield
    finally:
        _marked.reset(token)


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    if not text.isascii() and _marked.get() and _MARK.search(text):
        return "".join(f'"${{{_VARIABLES[part]}}}"' if n % 2 else (_quoted(part) if part else "")
                       for n, part in enumerate(_MARK.split(text)))
    if _clean(text):
        return "'" + text.replace("'", "'\"'\"'") + "'"
    return _ansi(text)


def word(value: object) -> Quoted:
    """One word of a shell script (bash)."""
    return Quoted(_quoted(value if type(value) is str else str(value)))


def expanding_word(pieces: Sequence[str], kept: bool = False) -> Quoted:
    """One word of a shell script in which the shell puts the values of variables.

    pieces: literal, name, literal, name, ..., literal. kept: a variable that is not set is ``${NAME}`` then, else
    nothing.
    """
    if len(pieces) == 1:
        return word(pieces[0])
    return Quoted("".join(_variable(part, kept) if index % 2 else (_quoted(part) if part else "")
                          for index, part in enumerate(pieces)))


def _variable(name: str, kept: bool) -> str:
    return f'"${{{name}-\\${{{name}\\}}}}"' if kept else f'"${{{name}-}}"'


def lines(text: object) -> Quoted:
    """Lines of a shell script that were made as such, not of anything that somebody has said."""
    return Quoted(str(text).rstrip("\n"))


def words(values: Iterable[object]) -> Quoted:
    """Words, parted by blanks."""
    return Quoted(" ".join([_quoted(str(value)) for value in values]))


def checked(directive: Directive, plain: bool = False) -> str:
    """The value of a directive ("" for none), when no control character is in it and the name is that of an option.

    plain: tabs are refused too.
    """
    value = directive.value or ""
    if not _OPTION.fullmatch(directive.option):
        raise QuotingError(directive.field, directive.option, "is not the name of an option")
    if not _PLAIN.fullmatch(value) and not _clean(value if plain else value.replace("\t", " ")):
        raise QuotingError(directive.field, value, "contains a line break or another control character, which cannot "
                                                   "be part of a directive")
    return value


def sbatch(directive: Directive) -> Quoted:
    """``--option="value"`` of an ``#SBATCH`` line, ``-o "value"`` for an option of one letter.

    Double quotes with backslash before ``"`` and ``\\``; all else is literal. Seen with sbatch 22.05.8.
    """
    option, plain = directive.option, directive.value
    if plain is not None and len(option) > 1 and _PLAIN.fullmatch(plain) and _OPTION.fullmatch(option):
        return Quoted(f"--{option}={plain}")
    value = checked(directive)
    dashes, join = ("-", " ") if len(directive.option) == 1 else ("--", "=")
    if directive.value is None:
        return Quoted(f"{dashes}{directive.option}")
    if not _PLAIN.fullmatch(value):
        value = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return Quoted(f"{dashes}{directive.option}{join}{value}")


def slurm_path(value: object) -> Quoted:
    """A file name for ``--output`` and the like, with its percent signs doubled.

    A backslash turns all patterns off in there, so that it cannot be said (sbatch(1), FILENAME PATTERN).
    """
    text = str(value)
    if "\\" in text:
        raise QuotingError("path", text, "contains a backslash, which Slurm's file name patterns cannot hold")
    return Quoted(text.replace("%", "%%"))


def sge(directive: Directive) -> Quoted:
    """``-option value`` of a ``#$`` line.

    A value with a blank stands in double quotes and must be the last of its line. Quotes inside a value are taken away
    and a ``#`` ends the line even inside quotes, so that neither can be said. Seen with Grid Engine 8.1.9. The option
    ``soft -l`` is ``-l`` of a wish: what ``-soft`` begins ends with its line.
    """
    if directive.option.startswith(_SGE_SOFT):
        wish = Directive(directive.option.removeprefix(_SGE_SOFT), directive.value, directive.field)
        return Quoted(f"-soft {sge(wish)}")
    value = checked(directive, plain=True)
    if directive.value is None:
        return Quoted(f"-{directive.option}")
    if unfit := _SGE_UNFIT.search(value):
        raise QuotingError(directive.field, value, f"contains {unfit[0]!r}, which a directive of Grid Engine cannot "
                                                   "hold")
    if not _PLAIN.fullmatch(value) and not _SGE_TWO.fullmatch(f"{directive.option} {value}"):
        if not value.strip() or value != value.strip():
            raise QuotingError(directive.field, value, "is empty, or begins or ends with a blank, which a directive of "
                                                       "Grid Engine cannot hold")
        value = f'"{value}"'
    return Quoted(f"-{directive.option} {value}")


def flux(directive: Directive) -> Quoted:
    """``--option=value`` of a ``#FLUX:`` line, ``-o value`` for an option of one letter.

    The line is split by Python's shlex, after three quotes in a row were looked for; so there is a backslash before
    each special character and no quote at all. Seen with the parser of flux-core 0.88 (RFC 36).
    """
    value = checked(directive)
    dashes, join = ("-", " ") if len(directive.option) == 1 else ("--", "=")
    if directive.value is None:
        return Quoted(f"{dashes}{directive.option}")
    quoted = _FLUX_SPECIAL.sub(r"\\\1", value) if value else "''"
    return Quoted(f"{dashes}{directive.option}{join}{quoted}")


def flux_path(value: object) -> Quoted:
    """A file name for ``--output`` and the like. Two opening braces would begin a tag, which cannot be quoted."""
    text = str(value)
    if "{{" in text:
        raise QuotingError("path", text, "contains '{{', which begins a tag in Flux's file names")
    return Quoted(text)


def _in_quotes(directive: Directive, value: str) -> str:
    """The value in quotes of a kind that is not in it, for dialects where nothing has a meaning between them."""
    if not value.strip():
        raise QuotingError(directive.field, value, "is empty, which a directive cannot hold")
    if "\\" in value:
        raise QuotingError(directive.field, value, "contains a backslash, which a directive cannot hold")
    if _PLAIN.fullmatch(value):
        return value
    quote = "'" if '"' in value else '"'
    if quote in value:
        raise QuotingError(directive.field, value, "contains both kinds of quotes, which a directive cannot hold")
    return f"{quote}{value}{quote}"


def pbs(directive: Directive) -> Quoted:
    """``-o value`` of a ``#PBS`` line; all options have one letter.

    Both kinds of quotes part words; whether a backslash is literal between them is not documented, so that it cannot
    be said (qsub.c of OpenPBS and of Torque).
    """
    value = checked(directive, plain=True)
    if len(directive.option) != 1 or not directive.option.isalpha():
        raise QuotingError(directive.field, directive.option, "is not an option of qsub: they have one letter")
    if directive.value is None:
        return Quoted(f"-{directive.option}")
    return Quoted(f"-{directive.option} {_in_quotes(directive, value)}")


def bsub(directive: Directive) -> Quoted:
    """``-option value`` of a ``#BSUB`` line.

    Both kinds of quotes part words; a backslash at the end of a line continues it, and a word that begins with ``#``
    ends it (sub_parse of openlava; whether inside quotes too is not documented, so that it cannot be said).
    """
    if directive.value is not None and _PLAIN.fullmatch(directive.value) and _OPTION.fullmatch(directive.option):
        return Quoted(f"-{directive.option} {directive.value}")
    value = checked(directive, plain=True)
    if _BSUB_COMMENT.search(value):
        raise QuotingError(directive.field, value, "has a word that begins with '#', which may begin a comment")
    if directive.value is None:
        return Quoted(f"-{directive.option}")
    return Quoted(f"-{directive.option} {_in_quotes(directive, value)}")


def nqsv(directive: Directive) -> Quoted:
    """``-o value`` or ``--option=value`` of a ``#PBS`` line of NQSV.

    How it reads quotes is nowhere to be found: a value that would need them cannot be said.
    """
    value = checked(directive, plain=True)
    dashes, join = ("-", " ") if len(directive.option) == 1 else ("--", "=")
    if directive.value is None:
        return Quoted(f"{dashes}{directive.option}")
    if not _PLAIN.fullmatch(value):
        raise QuotingError(directive.field, value, "is empty or has characters that may have a meaning in a directive "
                                                   "of NQSV")
    return Quoted(f"{dashes}{directive.option}{join}{value}")


def condor(directive: Directive) -> Quoted:
    """``option = value`` in a submit description of HTCondor; the value as it is, with its macros.

    A backslash at its end would join it with the next line.
    """
    value = checked(directive)
    if value.endswith("\\"):
        raise QuotingError(directive.field, value, "ends with a backslash, which continues the line")
    return Quoted(f"{directive.option} = {'true' if directive.value is None else value}")


def _condor_text(text: str, field: str | None) -> str:
    """Text without macros. Two dollar signs in a row would be replaced later, when a machine has been found."""
    checked(Directive("value", text, field))
    if "$$" in text:
        raise QuotingError(field, text, "contains '$$', which HTCondor's submit description cannot hold")
    return text.replace("$", "$(DOLLAR)")


def condor_path(value: object) -> Quoted:
    """A file name in a submit description. Seen with HTCondor 23.0, like what follows."""
    return Quoted(_condor_text(str(value), "path"))


def condor_word(value: object) -> Quoted:
    """One argument within the double quotes of ``arguments``."""
    return Quoted("'" + _condor_text(str(value), "argument").replace("'", "''").replace('"', '""') + "'")


def condor_string(value: str, field: str | None = None) -> str:
    """An expression that is this string, for the value of a directive. A backslash is one of its characters."""
    return '"' + _condor_text(value, field).replace('"', '\\"') + '"'


def cobalt(directive: Directive) -> Quoted:
    """``--option value`` of a ``#COBALT`` line, which is split at blanks; there are no quotes (Cobalt's qsub.py)."""
    value = checked(directive, plain=True)
    dashes = "-" if len(directive.option) == 1 else "--"
    if directive.value is None:
        return Quoted(f"{dashes}{directive.option}")
    if not value or any(map(str.isspace, value)):
        raise QuotingError(directive.field, value, "is empty or contains a blank, which a directive of Cobalt cannot "
                                                   "hold")
    return Quoted(f"{dashes}{directive.option} {value}")


def xml(value: object) -> Quoted:
    """The text of an element of XML 1.0, whose readers give these characters back: blanks of all kinds as they are."""
    text = str(value)
    if (character := _UNFIT_XML.search(text)) is not None:
        raise QuotingError(None, text, f"contains the character {ord(character[0]):#04x}, which XML cannot hold")
    return Quoted(text.translate(_XML))


FILTERS: dict[str, Callable[..., Quoted]] = {
    "lines": lines, "word": word, "words": words,
    "sbatch": sbatch, "condor": condor, "condor_path": condor_path, "condor_word": condor_word,
    "flux": flux, "cobalt": cobalt, "sge": sge,
    "pbs": pbs, "bsub": bsub, "nqsv": nqsv, "xml": xml}
