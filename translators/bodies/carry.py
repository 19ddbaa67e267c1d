"""A script body on its way from one resource manager to another: kept, translated, or with a shim before it.

Nothing is dropped: what has no equal, or is not understood, stays and is told with line and column. Only a shell's
variables in expansions and arithmetic are renamed, and only commands whose words and options all have an equal; text in
single quotes, quoted here-documents and comments stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from sssjob.errors import UsageError
from sssjob.limits import LIMITS, Limits
from sssjob.lrm.variables import Facts, Given
from sssjob.translators.bodies import POSITIONAL, Mode, commands, shim
from sssjob.translators.bodies.commands import Answer, Edit, act_of, hosts_asked, replaced, same_command, submitted
from sssjob.translators.bodies.csh import CSH, in_csh
from sssjob.translators.bodies.languages import SHELLS, is_used
from sssjob.translators.bodies.shell import Shell, Use, is_call, is_label
from sssjob.translators.bodies.values import FILES, MADE, SLOTTED, given, has_no_name, is_unset, why_fixed

if TYPE_CHECKING:
    from sssjob.translators.bodies.functions import Functions

__all__ = ["Body", "Tell", "carried", "pattern"]

#: rule, subject, message, line of the body from 0, column from 1, the line
Tell = Callable[[str, str, str, int, int, str], None]

LEFT_VARIABLE: Final = "SSS510"
LEFT_COMMAND: Final = "SSS511"
CLOSE: Final = "SSS512"
TEXT: Final = "SSS513"
UNKNOWN: Final = "SSS514"
LANGUAGE: Final = "SSS515"
UNREAD: Final = "SSS516"
CARRIED: Final = "SSS517"
EDITED: Final = "SSS518"
_SHOWN: Final = 80          # characters of a command in messages


@dataclass(frozen=True, slots=True)
class Body:
    """A body without its ``#!`` line, the interpreter that runs it, and asked, which says what its job asks for by
    meaning (``tasks``, ``cpus_per_task``, ``array``, ``directory`` ...). submit: the call of the target's submit
    command for the words of one of the source's, by name, and whether something reads what that prints; see
    ``submitting.submission``. inner: a script in a here-document for the target, by the name of its dialect, its text,
    and whether the shell that writes it leaves it alone; see ``submitting.inner_script``. converted: is told the first
    and the last line, from 0, of a call whose script in a here-document was converted with it."""

    text: str
    interpreter: str = "sh"
    asked: Callable[[], Mapping[str, str]] = dict
    submit: Callable[[str, list[str], bool], Answer] | None = None
    inner: Callable[[str, str, bool], Answer] = lambda name, text, quoted: "nothing converts it"
    converted: Callable[[int, int], None] = lambda first, last: None


def carried(body: Body, source: Facts, target: Facts, mode: Mode, tell: Tell, limits: Limits = LIMITS,
            facts: Callable[[str], Facts | None] = lambda name: None) -> str:
    """The body for the target. facts: those of another dialect, whose shim is found in the body.

    Raises UsageError where mode is translate and the library for it is not installed.
    """
    text = body.text
    if mode != "keep":
        text, sources, cuts = shim.taken_out(body.text, source, target, facts, lambda *where: tell(
            EDITED, "shim", "the shim was edited since sssjob wrote it; it is kept", *where))
    else:
        sources, cuts = [source] * (source.name != target.name), []
    work = _Work(text, cuts, body, target, mode, tell, limits)
    for origin in sources:
        work.look(origin)
    return work.done()


@lru_cache(maxsize=64)
def pattern(facts: Facts, before: str = r"(?<!\w)", after: str = r"(?!\w)") -> re.Pattern[bytes]:
    """Everything that a body may use of a dialect. before, after: what may not stand beside it."""
    names = [rf"{re.escape(n)}\w+" if n in facts.prefixes else re.escape(n) for n in facts.names]
    return re.compile(f"{before}(?:{'|'.join(names)}){after}".encode(), re.ASCII)


#: In a word of a call a piece of a file's name (``step1.sbatch``) is none of it.
_IN_WORD: Final = r"(?<![\w.-])", r"(?!\w|[.-]\w)"
#: An exit with a code, at the beginning of a command.
_EXIT: Final = re.compile(rb"(?<!\w)exit (\d{1,3})(?=[\s;&|)}\"']|\Z)")
#: A variable as it stands in a word of a call.
_EXPANSION: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
#: The beginning of a command that takes variables away; one that is not there cannot be missed.
_UNSETS: Final = re.compile(rb"\bunset\s[^;&|]*\Z")
#: What it is where it is, or may be, run.
_RUN: Final = ("command", "unknown")


class _Work:
    """One body: its uses, and what is made of them."""

    def __init__(self, text: str, cuts: Sequence[tuple[int, int]], body: Body, target: Facts, mode: Mode, tell: Tell,
                 limits: Limits) -> None:
        self.text, self.cuts, self.body, self.target, self.mode = text, cuts, body, target, mode
        self._tell, self.limits = tell, limits
        self.data = text.encode("utf-8", "surrogateescape")
        self.sources: list[str] = []                    # those of which something is used
        self.claimed: dict[str, str] = {}               # name -> the source that it was taken for
        self.given: dict[str, Given | None] = {}
        self.edits: list[Edit] = []
        self.lines: dict[str, list[str]] = {}           # of the shim, by what they define
        self.made: list[tuple[Use, Edit]] = []          # commands
        self.files, self.folders = dict[str, Given](), dict[str, Given]()   # that the shim makes, by their variables
        self.gone: list[tuple[int, int]] = []           # options of launchers that are left out

    @cached_property
    def known(self) -> Mapping[str, str]:
        """What the job asks for."""
        return self.body.asked()

    @cached_property
    def shell(self) -> Shell:
        """The body by the grammar of the shell, which is parsed once."""
        return Shell(self.data, self.limits)

    @cached_property
    def functions(self) -> Functions:
        """Those of the shim."""
        from sssjob.translators.bodies.functions import Functions

        return Functions(self.body.interpreter, self.known)

    # -- telling
    def tell(self, rule: str, use: Use, message: str) -> None:
        """Tell of one use, at its place in the script."""
        line, column, text = self.place(use.outer[0] if use.kind in ("simple", "braced", "operated") else use.start)
        self._tell(rule, use.name, message, line, column, text)

    def place(self, at: int) -> tuple[int, int, str]:
        """(line of the body from 0, column from 1, line)."""
        begin = self.data.rfind(b"\n", 0, at) + 1
        end = self.data.find(b"\n", at)
        row = self.data[begin:len(self.data) if end < 0 else end]
        before = self.data[begin:at].decode("utf-8", "surrogateescape")
        line = self.data.count(b"\n", 0, at)
        line += sum(lines for begin, lines in self.cuts if begin <= line)
        return line, len(before) + 1, row.decode("utf-8", "surrogateescape")

    # -- looking
    def look(self, source: Facts) -> None:
        """Everything that the body uses of a source."""
        if len(self.data) > self.limits.script_bytes:
            self._tell(UNREAD, "script", f"the script is kept and not looked at: it is longer than "
                       f"{self.limits.script_bytes} bytes", *self.place(0))
            return
        self._codes(source)
        self._arguments(source)
        if not source.in_text(self.text):
            return
        names = pattern(source)
        if self.body.interpreter not in SHELLS:
            self._foreign(source, names)
            return
        shell = self.shell
        uses: list[Use] = []
        for use in shell.uses(names):
            if len(uses) == self.limits.shell_uses:
                self._tell(UNREAD, "script", f"the script uses more than {len(uses)} names of {source.title}; the rest "
                           "is kept and not looked at", *self.place(use.start))
                break
            uses.append(use)
        if self.mode == "translate" and shell.why:
            if "not installed" in shell.why:
                raise UsageError(f"--body translate: {shell.why}")
            self._tell(UNREAD, "script", f"the script is kept: {shell.why}", *self.place(0))
        own = {u.name for u in uses if u.kind == "assigned" and not source.own(u.name)}
        before, unseen = dict(self.claimed), False
        for use in uses:
            named = use.name in source.variables or use.name in source.constants or source.own(use.name)
            if use.name in own or use.kind == "assigned" or use.name in before or use.name in source.values:
                continue
            if self.gone and any(begin <= use.start < end for begin, end in self.gone) and (
                    self.mode == "translate" or self._given_by(source, use.name) is None):
                continue                    # it stands in an option that is left out
            self.claimed[use.name] = source.name
            if use.name in source.phrases:
                if use.kind == "odd" and use.name not in self.target.phrases:
                    self.tell(LEFT_COMMAND, use, f"{use.name} {source.phrases[use.name]} under {source.title}; the "
                              "line is kept")
                continue
            if named and use.kind == "held":
                use = replace(use, kind="text")
            if named and (source.own(use.name) or use.kind != "text") and not self._there(use.name, source):
                self.sources += [source.name] * (source.name not in self.sources)
                self._variable(use, source)
            elif not named and use.kind in ("command", "held", "unknown"):
                self._command(use, source)
            elif not named and use.kind == "text" and is_call(self.data, use):
                self.tell(TEXT, use, f"{use.name} is a command of {source.title} in text that another program runs; "
                          "the text is kept")
            elif not named and shell.why and self.mode != "translate" and not unseen:
                unseen = True
                self._tell(UNREAD, "script", f"commands of {source.title} are kept and not looked at: {shell.why}",
                           *self.place(use.start))

    def _arguments(self, source: Facts) -> None:
        """Words of the call, which the target's command does not pass on."""
        if source.passes and not self.target.passes and self.body.interpreter in SHELLS \
                and re.search(POSITIONAL, self.text):
            place = self.shell.positional()
            if place is not None:
                name = self.data[slice(*place)].decode("utf-8", "replace")
                self.tell(LEFT_VARIABLE, Use(name, "text", *place), f"the script reads {name[:20]}, a word of the call "
                          f"that submits it; {self.target.title} passes none on")

    def _codes(self, source: Facts) -> None:
        """Exit codes that mean more to one of the two."""
        codes = {**self.target.codes, **source.codes}
        if source.codes == self.target.codes or "exit" not in self.text or self.body.interpreter not in SHELLS:
            return
        seen: set[str] = set()
        for hit in _EXIT.finditer(self.data):
            code = hit[1].decode()
            if code not in codes or code in seen:
                continue
            use = self.shell.use(hit.start(1) - 5, hit.start(1) - 1)
            if use.kind in _RUN or (use.kind == "held" and use.before):        # trap 'save; exit 99' USR2
                seen.add(code)
                owner, other = (source, self.target) if code in source.codes else (self.target, source)
                self.tell(LEFT_COMMAND, Use(f"exit {code}", "text", *hit.span()), f"exit {code} {codes[code]} under "
                          f"{owner.title} and not under {other.title}; the line is kept")

    def _foreign(self, source: Facts, names: re.Pattern[bytes]) -> None:
        """A body in another language: names that tell whose they are, found as text."""
        seen, own = set[str](), dict[str, bool]()
        for count, hit in enumerate(names.finditer(self.data)):
            name = hit[0].decode()
            if count == self.limits.shell_uses:
                self._tell(UNREAD, "script", f"the script uses more than {count} names of {source.title}; the rest is "
                           "kept and not looked at", *self.place(hit.start()))
                return
            if name not in seen and not self._there(name, source) and is_used(
                    self.data, hit.start(), name, source, self.body.interpreter, own):
                seen.add(name)
                use = Use(name, "text", *hit.span())
                if not (self.body.interpreter in CSH and self._is_set(use, source)):
                    self.tell(LANGUAGE, use, f"the script uses {name} of {source.title}; a script for "
                              f"{self.body.interpreter} is kept as it is")

    def _is_set(self, use: Use, source: Facts) -> bool:
        """Whether lines of sh set a variable above a body that they do not read."""
        value = Given(source.constants[use.name]) if use.name in source.constants else \
            self._given_by(source, use.name)
        if value is None or self.mode == "keep" or use.name in source.commands:
            return False
        self.sources += [source.name] * (source.name not in self.sources)
        self._define(use, source, value)
        return True

    def _there(self, name: str, source: Facts) -> bool:
        """Whether the target sets the same variable to the same."""
        target = self.target
        if name in source.constants:
            return target.constants.get(name) == source.constants[name]
        meaning = source.variables.get(name, "")
        return target.variables.get(name) == meaning and target.absent.get(name) == source.absent.get(name) and (
            source.counts == target.counts or meaning not in SLOTTED)

    # -- variables
    def _variable(self, use: Use, source: Facts) -> None:
        line = self.data.rfind(b"\n", 0, use.start) + 1
        if use.name in self.lines or (use.kind == "odd" and _UNSETS.search(self.data, line, use.start)):
            return
        if self.mode == "keep":
            self.tell(LEFT_VARIABLE, use, f"the script uses {use.name} of {source.title}, which {self.target.title} "
                      "does not set; the name is kept")
            return
        value = Given(source.constants[use.name]) if use.name in source.constants else \
            self._given_by(source, use.name)
        launched = any(source.commands.get(word.decode("utf-8", "replace")) == "launch" for word in use.before)
        if launched and source.variables.get(use.name) == "node_rank":
            self.tell(TEXT, use, f"{use.name} of {source.title} is kept: each task that is started has its own")
            return
        if value is None:
            if not is_unset(source.variables.get(use.name, ""), source, self.known):        # else unset here too
                self.tell(LEFT_VARIABLE, use, f"the script uses {use.name} of {source.title}, for which "
                          f"{self.target.title} has nothing; the name is kept")
        elif value.name == use.name:
            self._given(use, value, f"{use.name} of {source.title} is that of {self.target.title}")
        elif self.mode == "shim" or self._is_made_above(use, source, value):
            self._define(use, source, value)
            if launched and self.target.words.get("launch") == "mpirun":
                self.tell(CLOSE, use, f"whether tasks on other nodes get {use.name} depends on the MPI")
        else:
            self._rename(use, source, value)

    def _is_made_above(self, use: Use, source: Facts, value: Given) -> bool:
        """Whether commands before the first one have to make the value: a file, a folder, what is known there only; and
        what a directive says, which is to be changed in one place."""
        if use.kind in ("text", "unknown"):
            return False
        meaning = source.variables.get(use.name, "")
        guarded = meaning.startswith("array_") and not value.name and "array" not in self.known
        return guarded or value.top or "\n" in value.text or (meaning in MADE and not value.name) or (
            "$" not in value.text and value.text == self.known.get(meaning)) or has_no_name(
            use, source, value, self.known)

    def _given_by(self, source: Facts, name: str) -> Given | None:
        if name not in self.given:
            self.given[name] = given(source.variables.get(name, ""), source, self.target, self.known)
        return self.given[name]

    def _define(self, use: Use, source: Facts, value: Given) -> None:
        meaning = source.variables.get(use.name, "")
        if meaning in MADE and not value.name:
            (self.files if meaning in FILES else self.folders)[use.name] = value
            self.lines[use.name] = []
        else:
            self.lines[use.name] = shim.definition(use.name, value, source.absent.get(use.name, ""))
        self._given(use, value, f"the shim gives {use.name} of {source.title} as " + (
            "a file that it makes" if meaning in FILES else
            "what a command of it prints" if len(value.text) > _SHOWN else value.text.partition("\n")[0]))

    def _made_here(self) -> dict[str, list[str]]:
        """The lines that make files, and then the folder of the job, which the files are not to stand in; where it has
        several names it is made once."""
        clean: list[str] | None = None if b"trap" in self.data or self.body.interpreter in CSH else []
        definitions = {name: shim.file_definition(name, value, clean) for name, value in self.files.items()}
        for name, value in self.folders.items():
            first = next(iter(self.folders))
            definitions[name] = shim.folder_definition(name, value,
                                                       clean) if name == first else [f'export {name}="${first}"']
        return definitions

    def _given(self, use: Use, value: Given, what: str) -> None:
        """What became of a variable."""
        close = f", which is only close: {value.close}" if value.close else ""
        self.tell(CLOSE if close else CARRIED, use, what + close)

    def _rename(self, use: Use, source: Facts, value: Given) -> None:
        why = why_fixed(use)
        if use.kind == "text" and is_label(self.data, use):
            return
        if why:
            rule = {"text": TEXT, "unknown": UNKNOWN}.get(use.kind, LEFT_VARIABLE)
            self.tell(rule, use, f"{use.name} of {source.title} is kept: {why}")
            return
        text = value.text
        if value.name and use.kind != "simple":
            start, end, text = use.start, use.end, value.name
        elif value.name:
            start, end, text = *use.outer, self._plain(use, value.name)
        else:
            start, end = use.outer
        self.edits.append(Edit(start, end, (text,)))
        self._given(use, value, f"{use.name} of {source.title} became {value.text}")

    def _plain(self, use: Use, name: str) -> str:
        """``$NAME``, with braces where what follows would run into it."""
        after = self.data[use.end:use.end + 1]
        return f"${{{name}}}" if after.isalnum() or after == b"_" else f"${name}"

    # -- commands
    def _command(self, use: Use, source: Facts) -> None:
        act, length = act_of(use, source)
        shown = " ".join([use.name, *(w.text.decode("utf-8", "replace") for w in use.words[1:length])])
        submits = act == "submit" and self.body.submit is not None and use.kind == "command"
        if same_command(use, act, source, self.target) and not submits:     # what a call may say is each one's own
            return
        if use.long:
            self.tell(LEFT_COMMAND, use, f"{shown} is a command of {source.title}; the line is kept: it has more than "
                      f"{self.limits.shell_words} words")
            return
        if use.kind == "unknown":
            self.tell(UNKNOWN, use, f"{use.name} of {source.title} is kept: this part of the script does not parse")
            return
        edit = "" if self.mode == "keep" else replaced(use, source, self.target, self.known)
        if submits:
            edit = self._submitted(use, length, source)
            same = isinstance(edit, Edit) and self._text_of(edit) == self.data[edit.start:edit.end]
            if isinstance(edit, Edit) and self.mode != "translate":
                edit = self._submit_function(use, length, source, edit, same=same)
            if same:
                return                              # the target's command takes the call as it is
        elif self.mode == "shim":
            edit = self._function(use, act, length, source, edit)
        elif isinstance(edit, Edit) and use.kind == "held":
            edit = f"{f'the text of {use.before[0].decode()}' if use.before else 'a variable'} holds it (--body shim)"
        if isinstance(edit, Edit):
            self.gone += edit.gone
            if self.mode == "translate":
                self.made.append((use, edit))
            return
        why = f": {edit}" if edit else ""
        self.tell(LEFT_COMMAND, use, f"{shown} is a command of {source.title}; the line is kept{why}")

    def _text_of(self, edit: Edit) -> bytes:
        """What an edit writes."""
        return b"".join(p.encode("utf-8", "surrogateescape") if isinstance(p, str) else self.data[slice(*p)]
                        for p in edit.pieces)

    def _submitted(self, use: Use, length: int, source: Facts) -> Edit | str:
        """The call of the target's submit command for one of the source's, or why there is none."""
        submit = self.body.submit
        assert submit is not None
        texts = [w.text.decode("utf-8", "surrogateescape") for w in use.words[length:]]
        rest = "\n".join(_EXPANSION.sub("", text) for text in texts).encode("utf-8", "surrogateescape")
        if pattern(source, *_IN_WORD).search(rest):
            return f"a name of {source.title} stands among its words"
        own = {name: self._in_call(name, source) for text in texts for name in _names_in(text)
               if name in source.variables or name in source.constants or source.own(name)}
        if why := next((text for text in own.values() if not text.startswith("$")), ""):
            return why
        edit = submitted(use, length, self.data, lambda words, read: submit(source.name, words, read),
                         lambda text, quoted: self.body.inner(source.name, text, quoted))
        if not isinstance(edit, Edit) or self.mode != "translate" or not own:
            return edit
        call = _EXPANSION.sub(lambda hit: own.get(hit[1] or hit[2], hit[0]), str(edit.pieces[0]))
        return replace(edit, pieces=(call, *edit.pieces[1:]))

    def _in_call(self, name: str, source: Facts) -> str:
        """What stands for a variable of the source in a call of the target's submit command, else why nothing can."""
        value = Given(source.constants[name]) if name in source.constants else self._given_by(source, name)
        meaning, kept = source.variables.get(name, ""), f"${{{name}}}"
        if self._there(name, source):
            return kept
        if value is None:
            return f"a name of {source.title} stands among its words"
        if meaning in ("job_id", "array_id") and "array" in self.known and self.target.name in ("pbspro", "torque"):
            return f"an array is not waited for by the number that {name} is"
        use = Use(name, "braced", 0, 0)
        if self.mode != "translate" or self._is_made_above(use, source, value):
            return kept
        return value.text if value.text.startswith("$") else f"{name} stands among its words"

    def _submit_function(self, use: Use, length: int, source: Facts, edit: Edit, *, same: bool) -> Edit | str:
        """A call of the submit command by a function of the shim, else why it has none and what ``translate`` writes.
        same: the target's command takes the call as it is."""
        call = str(edit.pieces[0])
        more = ", and its here-document for it" if len(edit.pieces) > 1 else ""
        why = "" if self.mode == "shim" and not more and not call.startswith("printf ") else "no function"
        why = why or self.functions.unfit(use) or self.functions.submit(use, length, call)
        if why:
            return f"--body translate writes {call[:200]}{more}"
        if not same:
            self.lines.setdefault(use.name, [])
            self.sources += [source.name] * (source.name not in self.sources)
            self.tell(CLOSE if edit.differs else CARRIED, use, f"the shim gives this call as {call}{edit.differs}")
        return edit

    def _function(self, use: Use, act: str, length: int, source: Facts, edit: Edit | str) -> Edit | str:
        """The same where the shim has a function for it, else why it has none."""
        if act == "hosts" and hosts_asked(use) and self.target.hosts:
            edit = Edit(use.start, use.end, (self.target.hosts,))
        why = self.functions.unfit(use) if isinstance(edit, Edit) else edit
        if why or not isinstance(edit, Edit):
            self.functions.refused.add(use.name)
            return why
        second = use.words[1].text.decode() if length == 2 else ""
        if edit.launch is not None:
            self.functions.launch(use, second, edit.launch)
        else:
            self.functions.call(use.name, second, edit.word)
        self.lines.setdefault(use.name, [])
        self.sources += [source.name] * (source.name not in self.sources)
        shown = f"{use.name} {second}".strip()
        if edit.differs:
            self.tell(CLOSE, use, f"the shim gives {shown} as {edit.word}{edit.differs}")
        else:
            self.tell(CARRIED, use, f"the shim gives {'scontrol show hostnames' if act == 'hosts' else shown}")
        return edit

    # -- the end
    def done(self) -> str:
        """The body as it is to be written."""
        made_here = self._made_here()
        order = [*(name for name in self.lines if name not in self.folders), *self.folders]
        lines = [line for name in order
                 for line in made_here.get(name) or self.lines[name] or self.functions.lines(name)]
        if lines and self.body.interpreter in CSH:
            lines = in_csh(lines, order)
        top = shim.marked("\n".join(lines).split("\n"), self.sources, self.target.name) if lines else ""
        if not self.edits and not self.made:
            return top + self.text
        for use, edit in self.made:
            self._told(use, edit)
        edits = [e for e in self.edits if not any(m.start <= e.start and e.end <= m.end for _, m in self.made)]
        whole = commands.applied(self.data, (0, len(self.data)), edits + [edit for _, edit in self.made], self.edits)
        return top + whole.decode("utf-8", "surrogateescape")

    def _told(self, use: Use, edit: Edit) -> None:
        if len(edit.pieces) > 1:
            self.body.converted(self.place(edit.start)[0], self.place(edit.end)[0])
        if edit.differs:
            self.tell(CLOSE, use, f"{use.name} became {edit.word}{edit.differs}")
        else:
            self.tell(CARRIED, use, f"{use.name} became {edit.word}")


def _names_in(text: str) -> list[str]:
    """The variables that a shell expands in a word."""
    return [hit[1] or hit[2] for hit in _EXPANSION.finditer(text)]
