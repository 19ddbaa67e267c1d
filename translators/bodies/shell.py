"""Where a script uses names, by the grammar of the shell.

A search for the names finds candidates; the tree of tree-sitter-bash tells what each one is. Without candidates nothing
is parsed. Positions are bytes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final, Literal

from sssjob.limits import Limits
from sssjob.translators.bodies import POSITIONAL

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = ["WRAPPERS", "Kind", "Shell", "Use", "Word", "is_call", "is_label"]

_PIECE: Final = 1 << 16
#: Bytes that take no time to speak of, whatever they are: no clock is asked.
_SMALL: Final = 2048
#: Nodes around a name; real scripts have less than 50.
_DEPTH: Final = 400
#: Words that may stand before a command and change nothing about it.
WRAPPERS: Final = (b"time", b"exec", b"nohup", b"command", b"env", b"nice", b"timeout", b"stdbuf")
#: simple: $X; braced: ${X}; operated: ${X:-a}; arithmetic: X in $((X)); assigned: X=; text: quoted, or a bare word;
#: odd: ${!X}, ${X[1]}, export X, a phrase of several words; unknown: inside what does not parse; held: what a variable
#: is set to begins with it.
Kind = Literal["simple", "braced", "operated", "arithmetic", "assigned", "text", "odd", "comment", "unknown",
               "command", "held"]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command: its text as written, and where."""

    text: bytes
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Use:
    """A name: what it is there, where it stands, the expansion around it, the words of the command from it on and those
    before it; long: of a command with more words than are looked at, these are left out."""

    name: str
    kind: Kind
    start: int
    end: int
    outer: tuple[int, int] = (0, 0)
    words: tuple[Word, ...] = ()
    long: bool = False
    before: tuple[bytes, ...] = ()


@cache
def _parser() -> Parser | None:
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError:
        return None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class Shell:
    """A script in a shell; parsed when the first use is asked for.

    why: why it is not parsed (a limit, the library is not there), else empty.
    """

    def __init__(self, data: bytes, limits: Limits) -> None:
        self.data, self.limits = data, limits
        self.why = self._trouble()

    def _trouble(self) -> str:
        if len(self.data) > self.limits.shell_bytes:
            return f"it is longer than {self.limits.shell_bytes} bytes"
        return "" if _parser() is not None else "tree-sitter and tree-sitter-bash are not installed"

    @cached_property
    def root(self) -> Node | None:
        """The tree; None, and why says why, where there is none. What is no shell can take time by its square."""
        parser = _parser()
        if parser is None or self.why:
            return None
        if len(self.data) <= _SMALL:
            return parser.parse(self.data).root_node
        end = time.thread_time() + self.limits.shell_seconds
        try:
            root = parser.parse(lambda at, _: self.data[at:at + _PIECE],
                                progress_callback=lambda at, error: time.thread_time() > end).root_node
        except ValueError:          # stopped by the callback
            parser.reset()
            self.why = f"it takes longer than {self.limits.shell_seconds} s to parse"
            return None
        if root.has_error and len(self.data) > self.limits.shell_broken_bytes:
            self.why = f"it does not parse, and is longer than {self.limits.shell_broken_bytes} bytes"
            return None
        return root

    def uses(self, names: re.Pattern[bytes]) -> Iterator[Use]:
        """Every use of the names that is no comment; without a tree all count as text."""
        for match in names.finditer(self.data):
            use = self.use(*match.span())
            if use.kind != "comment":
                yield use

    def _commented(self, at: int) -> bool:
        """Whether a line is a comment by its first sign."""
        return self.data[self.data.rfind(b"\n", 0, at) + 1:at].lstrip()[:1] == b"#"

    def use(self, start: int, end: int) -> Use:
        """What stands at a place."""
        name = self.data[start:end].decode()
        if self.root is None:
            return Use(name, "comment" if self._commented(start) else "text", start, end)
        path = self._path(self.root, start, end)
        if path is None:
            return Use(name, "comment" if self._commented(start) else "unknown", start, end)
        return _classified(
            name, path, self.data, start, end, self.limits.shell_words)

    def positional(self) -> tuple[int, int] | None:
        """The place of the first word that the script takes from its own call (``$1``, ``$@``, ``$#``), outside of
        functions, which have words of their own; None where there is none, or the script sets them itself."""
        if _SETS_WORDS.search(self.data) or self.root is None:
            return None
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if node.type in _EXPANSIONS and _POSITIONAL.match(self.data, node.start_byte):
                return node.start_byte, node.end_byte
            if node.type != "function_definition":
                waiting += reversed(node.children)
        return None

    def quoted(self, at: int) -> bool:
        """Whether a place is text of a here-document or of a string, and no line of this script."""
        if self.root is None:
            return False
        cursor = self.root.walk()
        for _ in range(_DEPTH):
            node = cursor.node
            if node is None or node.start_byte > at or node.end_byte <= at:
                return False
            if node.type in ("heredoc_body", "string", "raw_string"):
                return True
            if cursor.goto_first_child_for_byte(at) is None:
                return False
        return False

    def _path(self, root: Node, start: int, end: int) -> list[Node] | None:
        """The nodes around a place, the innermost first, eight at most; None where it does not parse or nests too deep.

        From the root inward: a node looks for its parent from the root each time it is asked.
        """
        cursor = root.walk()
        around: list[Node] = []
        for _ in range(_DEPTH):
            node = cursor.node
            if node is None or node.start_byte > start or node.end_byte < end:
                break
            if node.type == "ERROR" or node.is_missing:
                return None
            around.append(node)
            if cursor.goto_first_child_for_byte(start) is None:
                break
        else:
            return None
        return around[:-9:-1]


_EXPANSIONS: Final = ("simple_expansion", "expansion")
_POSITIONAL: Final = re.compile(POSITIONAL.encode())
_SETS_WORDS: Final = re.compile(rb"(?:^|[;&|]|\bthen|\bdo)[ \t]*set[ \t]+(?:--|[^-+\s])", re.MULTILINE)


def _classified(name: str, path: list[Node], data: bytes, start: int, end: int, most: int) -> Use:
    node = path[0]
    if node.type == "comment":
        return Use(name, "comment", start, end)
    here = _here(path, data, start)
    if node.type in _RAW and (words := _run_by(path, data)) and _opens(data, start):
        return Use(name, "odd", start, end, (start, end), before=words)
    if here == "dead" or (node.type in _RAW and here != "live"):
        return _held(name, path, start, end) or _later(name, path, data, start, end) or Use(name, "text", start, end)
    if node.type == "variable_name" and (node.start_byte, node.end_byte) == (start, end):
        return _variable(name, node, path[1], data)
    if node.type in ("command", "variable_assignment", "concatenation", "string") and not name.isidentifier():
        return Use(name, "odd", start, end, (start, end))
    if _is_counted(path, data, start) and not _SETS.match(data[start:start + _BACK]):
        return Use(name, "arithmetic", start, end, (start, end))
    if node.type == "word" and node.end_byte == end:
        used = _command(name, path, start, most)
        if used.kind == "command":
            return used
    return _held(name, path, start, end) or _later(name, path, data, start, end) or _in_text(
        name, path, data, start, end)


#: Nodes in which the shell expands nothing.
_RAW: Final = ("raw_string", "ansi_c_string")
#: Commands of which a word in quotes is run by this shell when it is time, and shells that run one behind -c, in which
#: the variables of this one are there.
_LATER: Final = (b"trap", b"eval")
_SHELLS: Final = (b"sh", b"bash", b"dash", b"ksh", b"zsh")


def _run_by(path: list[Node], data: bytes) -> tuple[bytes, ...]:
    """The words before a string that is the text of commands, in which variables are expanded later: of ``trap``,
    ``eval`` or ``sh -c``; none where it is another one."""
    if len(path) < 2 or path[1].type != "command":
        return ()
    before = [data[word.start_byte:word.end_byte] for word in path[1].children[:_WORDS]
              if word.end_byte <= path[0].start_byte]
    runs = bool(before) and (before[0] in _LATER or (before[-1].startswith(b"-") and before[-1].endswith(b"c") and any(
        word.rpartition(b"/")[2] in _SHELLS for word in before)))
    return tuple(before) if runs else ()


#: Words of a command that are looked at for what runs its text.
_WORDS: Final = 16
#: What stands right before a name: backslashes, of which each second one is text, dollars, of which each second one
#: makes the number of the process of the one before it, and perhaps a brace.
_OPENED: Final = re.compile(rb"(\\*)(\$+)(\{?)\Z")
_OPERATORS: Final = b":-=+?%#/^,@"
_BACK: Final = 256      # bytes before a name that are looked at for what they make of it


def _in_text(name: str, path: list[Node], data: bytes, start: int, end: int) -> Use:
    """A name in what the grammar takes for text: it does not see every expansion in words such as ``$A/$B.txt``, nor
    arithmetic in here-documents. Source: bash(1), Parameter Expansion, Arithmetic Expansion and Here Documents."""
    sign = _opens(data, start)
    if sign == b"$":
        return Use(name, "simple", start, end, (start - 1, end))
    if sign and (close := data.find(b"}", end)) >= 0:
        kind: Kind = "braced" if close == end else "operated" if data[end] in _OPERATORS else "odd"
        return Use(name, kind, start, end, (start - 2, close + 1))
    return Use(name, "odd" if path[1].type == "subscript" else "text", start, end, (start, end))


def _opens(data: bytes, start: int) -> bytes:
    """The ``$`` or ``${`` with which an expansion of the name at a place begins; nothing where it is text."""
    before = _OPENED.search(data, max(0, start - _BACK), start)
    if before is None or (len(before[2]) - len(before[1]) % 2) % 2 == 0:
        return b""
    return b"$" + before[3]


#: Arithmetic that is still open.
_COUNTS: Final = re.compile(rb"(?<!\\)(?:\\\\)*\$\(\((?:(?!\)\)).)*\Z", re.DOTALL)


def _is_counted(path: list[Node], data: bytes, start: int) -> bool:
    """Whether a word or text is arithmetic, where the grammar does not say so: what ``let`` is given, the three parts
    of ``for ((;;))``, and in here-documents, of which it makes text or a subshell."""
    node = path[0]
    if node.type.startswith("heredoc"):
        return _COUNTS.search(data, max(node.start_byte, start - _BACK), start) is not None
    if node.type != "word":
        return False
    outer = next((n.type for n in path[1:] if n.type not in _WITHIN), "")
    if outer == "c_style_for_statement":
        return True
    around = next((n for n in path if n.type in ("command", "subshell")), None)
    return (around is not None and (around.text or b"").startswith(b"let ")) or any(
        n.type == "subshell" and data[n.start_byte - 2:n.start_byte] == b"$(" for n in path)


def _here(path: list[Node], data: bytes, start: int) -> str:
    """Whether a place is in a here-document: live, dead, where nothing is expanded because its delimiter is quoted, or
    nothing. The grammar may take the first words of one for words of the line before."""
    for node in path:
        if node.type == "heredoc_redirect":
            begins = next((child for child in node.children if child.type == "heredoc_start"), None)
            if begins is not None and 0 <= data.find(b"\n", begins.end_byte) < start:
                return "dead" if re.search(rb"[\"'\\]", begins.text or b"") else "live"
    return ""


_PARTS: Final = re.compile(rb"\S+")
#: Signs within which a blank need not end a word.
_SIGNS: Final = re.compile(rb"[\"'`\\(]")


def _held(name: str, path: list[Node], start: int, end: int) -> Use | None:
    """A name that a variable is set to, perhaps with options: ``run="srun -n 4"``."""
    path = path[path[0].type == "string_content":]
    if len(path) < 2 or path[1].type != "variable_assignment":
        return None
    quoted = int(path[0].type in ("string", "raw_string"))
    begin, stop = path[0].start_byte + quoted, path[0].end_byte - quoted
    text = (path[0].text or b"")[quoted:stop - begin + quoted]
    if begin != start or (text[end - start:end - start + 1].strip() and end != stop):
        return None
    if _SIGNS.search(text):
        return Use(name, "held", start, end, words=(Word(name.encode(), start, end),))
    words = [Word(hit[0], begin + hit.start(), begin + hit.end()) for hit in _PARTS.finditer(text)]
    return Use(name, "held", start, end, words=tuple(words))


#: What stands before a command in a text, from the beginning of that on, and what ends one.
_BEGINS: Final = re.compile(rb"(?:\A|[;&|({\n]|\b(?:then|do|else|if|while|until|!))\s*\Z")
_ENDS: Final = re.compile(rb"[;&|)}\n]|\Z")


def _later(name: str, path: list[Node], data: bytes, start: int, end: int) -> Use | None:
    """A command in the text of ``trap`` or ``eval``, which this shell runs later: ``trap 'scancel 5' TERM``."""
    path = path[path[0].type == "string_content":]
    if not path or path[0].type not in ("string", "raw_string"):
        return None
    before, begin, stop = _run_by(path, data), path[0].start_byte + 1, path[0].end_byte - 1
    if not before or before[0] not in _LATER or _BEGINS.search(data[begin:start]) is None or \
            _NAME_ENDS.match(data[end:stop]) is None:
        return None
    hit = _ENDS.search(data[:stop], end)
    stop = stop if hit is None else hit.start()
    parts = [] if _SIGNS.search(data[end:stop]) else _PARTS.finditer(data[end:stop])
    words = [Word(part[0], end + part.start(), end + part.end()) for part in parts]
    return Use(name, "held", start, end, words=(Word(name.encode(), start, end), *words), before=before)


_NAME_ENDS: Final = re.compile(rb"[\s;&|)}]|\Z")
_ARITHMETIC: Final = ("binary_expression", "unary_expression", "parenthesized_expression", "ternary_expression",
                      "arithmetic_expansion", "compound_statement", "c_style_for_statement")
#: What arithmetic is made of in the parts of ``for ((;;))``.
_WITHIN: Final = (*_ARITHMETIC[:4], "variable_assignment", "postfix_expression")
_STEPS: Final = (b"++", b"--")
_SETS: Final = re.compile(rb"\A\w+\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)")


def _variable(name: str, node: Node, above: Node, data: bytes) -> Use:
    """A name of a variable. The grammar may count blanks before an expansion to it; they are left out."""
    start, end = node.start_byte, node.end_byte
    text, before = above.text or b"", start - above.start_byte
    if above.type == "simple_expansion" and text[:before].endswith(b"$"):
        kind: Kind = "simple" if _opens(data, start) else "text"
        return Use(name, kind, start, end, (start - 1, end))
    if above.type == "expansion" and text[:before].endswith(b"${"):
        kind = "braced" if above.end_byte - end == 1 else "operated"
        return Use(name, kind, start, end, (start - 2, above.end_byte))
    if above.type in ("variable_assignment", "for_statement", "select_statement"):
        return Use(name, "assigned", start, end, (start, end))
    if above.type in _ARITHMETIC and _SETS.match(text[before:]) is None and text[:before].rstrip()[-2:] not in _STEPS:
        return Use(name, "arithmetic", start, end, (start, end))
    return Use(name, "odd", start, end, (start, end))


def _command(name: str, path: list[Node], start: int, most: int) -> Use:
    """A word that may be the name of a command, perhaps with a folder before it and after words such as time."""
    node = path[0]
    text: bytes = node.text or b""
    plain = Use(name, "text", start, node.end_byte)
    if text.rpartition(b"/")[2].decode("utf-8", "replace") != name:
        return plain
    whole = path[2 if path[1].type == "command_name" else 1]
    if whole.type != "command":
        return plain
    if whole.child_count > most:
        first = whole.child_by_field_name("name")
        begins = first is not None and first.start_byte == node.start_byte
        return Use(name, "command", node.start_byte, node.end_byte, long=True) if begins else plain
    words = _words_of(whole)
    at = next((i for i, w in enumerate(words) if w.start == node.start_byte), None)
    if at is None or not _wrapped(words[:at]):
        return plain
    return Use(name, "command", node.start_byte, node.end_byte, (whole.start_byte, whole.end_byte), tuple(words[at:]),
               before=tuple(w.text for w in words[:at]))


def _words_of(command: Node) -> list[Word]:
    """The words of a command. The grammar may make two of one in which a variable follows on a sign
    (``${a}:$b,c``): what touches is one word."""
    words: list[Word] = []
    for node in command.children:
        if node.type in ("variable_assignment", "file_redirect", "herestring_redirect"):
            continue
        text = node.text or b""
        if words and words[-1].end == node.start_byte:
            words[-1] = Word(words[-1].text + text, words[-1].start, node.end_byte)
        else:
            words.append(Word(text, node.start_byte, node.end_byte))
    return words


def _wrapped(before: list[Word]) -> bool:
    """Whether what stands before a word leaves it a command."""
    return not before or (before[0].text in WRAPPERS and all(
        w.text in WRAPPERS or w.text.startswith(b"-") or b"=" in w.text or w.text[:1].isdigit() for w in before))


# --- names in texts that no shell expands ---------------------------------------------------------------------------
# Names in the text of a body that no shell expands: what people read, and what another program runs.

#: The value of a variable behind its name; what shows text to people, and what sends it to something else.
_NAMED: Final = re.compile(rb"\s*[=:]\s*[\"']?\$\{?(\w+)")
_SHOWS: Final = re.compile(rb"(?:^|[;&|{]|(?<!\$)\(|\bthen|\bdo|\belse)\s*(?:echo|printf)\s[^;|&>`]*\Z", re.MULTILINE)
_SENT: Final = re.compile(rb"\||>(?!\s*&\s*2\b)")
#: What stands before a call in a text, and after its name.
_BEGINS_CALL: Final = re.compile(rb"[\"';&|(][ \t]*\Z")
_CALLED_WITH: Final = re.compile(rb"[ \t]+(?:-{1,2}[A-Za-z]|\./|\{)")


def is_call(data: bytes, use: Use) -> bool:
    """Whether a text begins with a call, or goes on with one, that is not only shown: ``--cluster "qsub -V"``. data:
    the whole body."""
    line = data.rfind(b"\n", 0, use.start) + 1
    return _BEGINS_CALL.search(data, line, use.start) is not None and _CALLED_WITH.match(
        data, use.end) is not None and _SHOWS.search(data, line, use.start) is None


def is_label(data: bytes, use: Use) -> bool:
    """Whether a name is a word that people read: ``(PBS_ARRAYID)``, ``echo "SLURM_NTASKS: $SLURM_NTASKS"``, or that of
    a variable beside its value: ``--env SLURM_NTASKS=$SLURM_NTASKS``. data: the whole body."""
    before, after = data[use.start - 1:use.start], data[use.end:use.end + 1]
    if (after == b":" and before in (b"", b" ", b"\t", b'"', b"'")) or (before, after) == (b"(", b")"):
        return True
    if (hit := _NAMED.match(data, use.end)) is not None and hit[1] == use.name.encode():
        return True
    line, end = data.rfind(b"\n", 0, use.start) + 1, data.find(b"\n", use.end)
    return before not in (b"$", b"{") and _SHOWS.search(data, line, use.start) is not None and \
        _SENT.search(data, use.end, len(data) if end < 0 else end) is None
