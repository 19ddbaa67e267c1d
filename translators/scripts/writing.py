"""Writing a script: options in canonical order, the body, and what the defaults of the two systems differ in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Final

from sssjob.document.element import Container
from sssjob.document.model import Document, JobDefaults
from sssjob.findings import Findings, Policy
from sssjob.request.asked import GROUP, JOB, Entry, policy_of
from sssjob.templates.quoting import QuotingError, word
from sssjob.translators.base import WriteContext
from sssjob.translators.scripts import side_by_side, untranslated
from sssjob.translators.scripts.accepting import accepted, said_by, subject_of
from sssjob.translators.scripts.asking import SUSPECT, Asking, is_fact
from sssjob.translators.scripts.body import carry, mode_of
from sssjob.translators.scripts.copies import SHEBANG
from sssjob.translators.scripts.in_place import Piece, page_of
from sssjob.translators.scripts.opening import argument, interpreted, moves, opened
from sssjob.translators.scripts.raw import lines_of, shell_words
from sssjob.translators.scripts.rows import (
    APPROXIMATED,
    DIALECT,
    DROPPED,
    SITE,
    WHOLE_NODES,
    AnyRow,
    Dialect,
    Row,
    ScriptDocument,
    of_part,
)

__all__ = ["asking_for", "directive_of", "express", "leftovers", "script_apart", "script_of", "with_scripts",
           "words_of", "write"]

def write(dialect: Dialect, document: Document, context: WriteContext) -> str:
    """The script of the one job in a document; what it cannot say is in ``context.findings``."""
    mode_of(context.options.get("body"))
    asked = asking_for(dialect, document, context)
    first, page = asked[0], page_of(asked, document, context)
    first.page = page
    shebang, first.body = _body(asked, _groups_line(asked))
    options = accepted(asked, express(asked))
    body = opened(first, shebang, first.body)
    shebang, old = interpreted(first, shebang)
    _defaults(first)
    leftovers(asked)
    commented = untranslated.wanted(first)
    if commented:
        body = _with_restored(asked, options, body)
    written = [(name, value, line) for name, value, asking in options
               if (line := directive_of(dialect, name, value, asking))]
    comments = untranslated.comments(asked) if commented else []
    if page is None:
        whole = "".join(text for _, text in comments) + old + body
        pieces = [*((text, True) for _, _, text in written), (whole, False)]
    else:
        pieces = page.pieces(written, comments, old, body)
    return _disarmed(first, [(shebang, True), *pieces])


def _with_restored(asked: Sequence[Asking], options: list[tuple[str, str | None, Asking]], body: str) -> str:
    """Take options out of comments about what another dialect could not say, among those of the first part; gives the
    body without them."""
    first = asked[0]
    again, body = untranslated.restored(first, [name for name, _, _ in options], body)
    if first.page is not None:
        again += first.page.restored(first, [name for name, _, _ in options] + [name for name, _ in again])
    at = next((n for n, o in enumerate(options) if o[2] is not first), len(options))      # of the next part
    options[at:at] = [(name, value, first) for name, value in again]
    return body


def refuse_jobs(findings: Findings, count: str) -> None:
    """Refuse a document for a format of which a text holds one job. count: of its jobs. Raises RejectedError."""
    findings.add("SSS505", "Document", f"{count} jobs, a script holds one (--out writes one file each)")
    findings.raise_if_rejected()


def asking_for(dialect: Dialect, document: Document, context: WriteContext) -> list[Asking]:
    """The one job in a document, ready to be asked; several where it has parts that the dialect can say."""
    jobs = list(document.jobs())
    if len(jobs) != 1:
        refuse_jobs(context.findings, str(len(jobs)))
    job, defaults = jobs[0]
    from_script = isinstance(document, ScriptDocument)
    policy = policy_of(document.root if isinstance(document.root, Container) else job,
                       context.policy or (Policy.WARN if from_script else Policy.REJECT))
    if isinstance(defaults, JobDefaults):
        from sssjob.document.inherit import effective

        job = effective(job, defaults, policy=policy.value).fold()
    whole = Asking(job, document, context, dialect, policy, None)
    return [whole.of(group) for group in whole.groups] if dialect.separator and len(whole.groups) > 1 else [whole]


def express(asked: Sequence[Asking]) -> list[tuple[str, str | None, Asking]]:
    """The options of a job in the order of writing: name, value (None: without one), and the part that they are of."""
    dialect, page = asked[0].dialect, asked[0].page
    options: list[tuple[str, str | None, Asking]] = []
    for number, asking in enumerate(asked):
        if number:
            options.append((dialect.separator, None, asking))
        for row, own in dialect.rows_for(asking.keys, asking.own):
            alone = list(asking.kept(row, (), GROUP)) if number and own and not of_part(row) else []
            if number and not alone:
                if not _again(row):
                    continue
                asking.again = not of_part(row)
            texts = alone or (asking.row(row) if isinstance(row, Row) else list(row.write(asking)))
            if own:
                texts += asking.kept(row, [name for name, _ in texts])
            if not texts:
                continue
            if len(texts) > 1:
                order = row.names.index
                texts.sort(key=lambda option: order(option[0]))
            if page is not None:
                page.row(asking, row, texts)
            for name, value in texts:
                options.append((name, value, asking))
        asking.again = False
        kept = list(asking.open())
        if page is not None:
            page.row(asking, None, kept)
        options += [(*m, asking) for m in kept]
    return options


def _again(row: AnyRow) -> bool:
    """Whether each part of a heterogeneous job says it anew."""
    return of_part(row) or row.name in ("--time", "--account", "--partition", "--qos", WHOLE_NODES)


def directive_of(dialect: Dialect, name: str, value: str | None, asking: Asking) -> str:
    """An option as lines of a script; empty, with a finding, where no line can hold its value."""
    try:
        text = dialect.directive(name, value)
        if "\n" not in text:
            return f"{asking.prefix} {text}\n"
        return "".join(f"{asking.prefix} {line}\n" for line in text.split("\n"))
    except QuotingError as error:
        asking.note(DROPPED, said_by(asking, name, value), str(error), subject=subject_of(asking, name, value))
        return ""


_LOGIN: Final = "SSS528"


def _groups_line(asked: Sequence[Asking]) -> str | None:
    """The command that starts several task groups with executables of their own, where there are such."""
    if len(asked[0].groups) < 2:
        return None
    words = side_by_side.command(asked, argument)
    return None if words is None else " ".join(words)


def _body(asked: Sequence[Asking], line: str | None = None) -> tuple[str, str]:
    """The first line, and what follows: the script of the job, else a line that starts its executable. asked: the parts
    of the job; line: a command that starts all of it."""
    asking = asked[0]
    if line is not None:
        return _runs(line), f"{line}\n"
    entry, arguments = asking.one("Executable"), asking.one("Arguments")
    text = "" if entry is None else entry.text
    file = asking.document.files.get(text[1:]) if text.startswith("#") else None
    if file is not None:
        script = file.as_text()
        if arguments is not None:
            asking.dropped(arguments, "a script gets its arguments when it is submitted")
        if len(asked) > 1 and asking.source != asking.dialect.name:
            asking.note(APPROXIMATED, None, f"TaskGroup: {asking.dialect.title} starts the script in the first of "
                        f"{len(asked)} components, whose nodes are all that mpirun sees; {asking.dialect.beside}",
                        subject="TaskGroup")
        first, end, rest = script.partition("\n")
        if first.startswith("#!") and end:
            return first + end, _carried(asking, first, rest, 1)
        if asking.source == asking.dialect.name:
            return "", _carried(asking, "", script, 0)     # it runs as it did
        if asking.source and "Shell" not in asking.tags:
            asking.note(_LOGIN, None, f"Shell: the script has no #! line: under {asking.origin} the login shell of its "
                        "user runs it, here sh", subject="Shell")
        shell = asking.job.first("Shell")
        named = shell is not None and re.fullmatch(r"/[\w./+-]{1,100}", shell.text, re.ASCII)
        return f"#!{named[0]}\n" if named else SHEBANG, _carried(asking, "", script, 0)
    command = [str(word(text))] if text else []
    if entry is not None and "://" in text:
        asking.note(DROPPED, entry, f"{text[:80]} would have to be fetched, which no script does by itself")
    if asking.came_from("scratch") and text and text[0] not in "/$" and "InitialWorkingDirectory" in asking.tags:
        asking.note(APPROXIMATED, entry, "a file of the directory of submission, here of the one that the job starts "
                    "in")
    if arguments is not None:
        try:
            command += [argument(asking, each) for each in shell_words(arguments.text)]
        except ValueError:
            command.append(word(arguments.text))
    line = f"{side_by_side.launched(asked)}{' '.join(command)}" if command else ""
    return _runs(line), f"{line}\n" if line else ""


def _carried(asking: Asking, shebang: str, text: str, first: int) -> str:
    """The body for the target, without the comments and blank lines that stay among the directives of its page."""
    lines = 0 if asking.page is None else asking.page.cut
    return carry(asking, shebang, text.split("\n", lines)[-1] if lines else text, first + lines)


def _runs(line: str) -> str:
    """The first line of a script of one command: only bash can spell a control character in one line (``$'..'``)."""
    return "#!/bin/bash\n" if "$'" in line else SHEBANG


def _defaults(asking: Asking) -> None:
    """What the source's defaults did and the target's do not (decisions 14)."""
    asking.extension(DIALECT)
    if not asking.source or asking.source == asking.dialect.name:
        return
    source = asking.source_dialect
    if source is None:
        return
    name, target = source.title, asking.dialect
    if source.exports != (target.exports and not asking.few) and asking.stated_export() is None:
        asking.note(APPROXIMATED, None, f"Environment: jobs of {name} find {_much(source)} of the submitter's "
                    f"variables unless told otherwise, those of {target.title} {_much(target)}", subject="Environment")
    if source.starts_in != target.starts_in and asking.job.first("InitialWorkingDirectory") is None \
            and not asking.goes and (asking.opened or not moves(asking.body)):
        asking.note(APPROXIMATED, None, f"InitialWorkingDirectory: a job of {name} starts in the {source.starts_in} "
                    f"directory, one of {target.title} in the {target.starts_in} directory"
                    + (f"; the script begins with {asking.opened}" if asking.opened else ""),
                    "info" if asking.opened and source.starts_in == "submit" else None, "InitialWorkingDirectory")
    _default_files(asking, source)


def _default_files(asking: Asking, source: Dialect) -> None:
    """What becomes of output that no option sends anywhere: its file has another name, or errors get one of their
    own. It is a warning where commands name such a file."""
    target = asking.dialect
    if source.files == target.files or "OutputFile" in asking.tags or not (
            source.files and (target.files or target.unfiled)):
        return
    if "ErrorFile" in asking.tags:          # joined, or somewhere else
        source, target = (replace(dialect, files=dialect.files[:1]) for dialect in (source, target))
    name = asking.job.value("Name")
    begins = [re.escape(text.replace("{name}", str(name)).partition("{")[0]) for text in source.files
              if name is not None or not text.startswith("{name}")]
    named = any(begin and re.search(rf"(?<![\w.-]){begin}[$*?`]", asking.body) for begin in begins)
    if not named and len(source.files) == len(target.files) == 1:
        return
    asking.note(APPROXIMATED, None, f"OutputFile: without an option output of {source.title} is in {_files(source)}, "
                f"that of {target.title} {f'in {_files(target)}' if target.files else target.unfiled}"
                + ("; the commands name such a file" if named else ""), "warning" if named else "info", "OutputFile")


def _files(dialect: Dialect) -> str:
    names = " and ".join(text.format(name="NAME", jobid="ID") for text in dialect.files)
    return names if len(dialect.files) > 1 else f"{names} with errors"


def _much(dialect: Dialect) -> str:
    return "all" if dialect.exports else "few"


def _disarmed(asking: Asking, pieces: Sequence[Piece]) -> str:
    """The script, with ``#`` before each line that the target would take for a directive and that is none."""
    marks = asking.dialect.marks
    text = "".join(map(_TEXT, pieces))
    others = "\n".join([other for other, directive in pieces if not directive])
    if asking.dialect.late and asking.source == asking.dialect.name and "<<" in others:
        return text         # here-documents keep their text, and its directives were obeyed before
    if marks and not any([mark in others for mark in marks]):
        return text
    lines = list(lines_of(text))
    number, ours = 0, set[int]()
    for piece, directive in pieces:
        count = piece.count("\n")
        if directive:
            ours.update(range(number + 1, number + count + 1))
        number += count
    live = {line.number for line in asking.dialect.live(lines) if line.number not in ours}
    for line in lines if live else ():
        if line.number in live:
            asking.findings.add(APPROXIMATED, "directive", f"{asking.dialect.title} would obey this comment of the "
                                f"script; it is written with {asking.dialect.disarm} before it", line=line.number,
                                column=1, excerpt=line.text)
    before = asking.dialect.disarm
    return "".join((before if line.number in live else "") + line.text + line.end for line in lines) if live else text


_TEXT: Final = itemgetter(0)       # of a piece


def _tell_of_export(asked: Sequence[Asking]) -> None:
    """A finding where the document says whether the submitter's variables go along, and no option of the dialect can
    say it, nor do its jobs find them so anyway."""
    dialect = asked[0].dialect
    if not any(asking.exporting for asking in asked) and asked[0].export() not in (None, dialect.exports):
        cannot = "keep the submitter's variables back" if dialect.exports else "pass the submitter's variables on"
        asked[0].note(APPROXIMATED, None, f"Environment: {dialect.title} cannot {cannot}", subject="Environment")


def leftovers(asked: Sequence[Asking]) -> None:
    """One finding for each property and attribute that was not carried."""
    many = len(asked) > 1
    _tell_of_export(asked)
    used = {e.place: e for asking in asked for e in asking.entries if e.used} if many else {}
    seen: set[tuple[str, int]] = set()
    for asking in asked:
        asking.forget()
        for e in asking.entries:
            same_place = e if e.used else None
            if same_place is not None and not many and (not e.attributes or e.attributes.keys() <= e.understood) and (
                    (e.tag not in SUSPECT and e.slot != "Delivered") or not is_fact(e)):
                continue                # most are carried whole
            if many:
                if e.place in seen:
                    continue
                seen.add(e.place)
                same_place = used.get(e.place)
            if (e.slot == "Delivered" or e.tag in SUSPECT) and is_fact(e):
                asking.note(DROPPED, e, "results of a run are no part of a request", "warning", e.tag)
            elif same_place is None:
                name = e.attributes.get("name") if e.tag != "Variable" else None
                if e.tag == "Name" and e.level != JOB:
                    asking.note(DROPPED, e, f"the name of a {e.path.split('/')[-2].partition('[')[0]} has no place in "
                                f"{asking.dialect.title}", "warning")
                elif spelling := asking.spelling(e):
                    asking.note(APPROXIMATED, e, spelling, "info", f"{e.tag} {name}")
                elif not _says_what_holds(e):
                    asking.dropped(e, "", f"{e.tag} {name}" if name else e.tag)
            elif same_place.attributes and not same_place.attributes.keys() <= same_place.understood:
                for attribute in sorted(same_place.attributes.keys() - same_place.understood - {"awarenessPolicy"}):
                    asking.dropped(e, f"attribute {attribute} is not carried", f"{e.tag}/@{attribute}")


def _says_what_holds(e: Entry) -> bool:
    """Whether a property asks for what a script gets anyway: it is not interactive, and starts its executable once."""
    return (e.tag == "Interactive" and e.value is False) or (
        e.tag == "Extension" and e.attributes.get("name") == "Launcher" and e.text == "single")


def script_of(asking: Asking) -> str:
    """The whole script of a job, carried over, for a target that keeps its directives in another file."""
    shebang, asking.body = _body([asking])
    shebang, old = interpreted(asking, shebang)
    _defaults(asking)
    return shebang + old + asking.body


def words_of(asking: Asking, arguments: Entry | None) -> list[str]:
    """The words of Arguments; those that open a quote and never close it are one word, which is told."""
    if arguments is None:
        return []
    try:
        return shell_words(arguments.text)
    except ValueError as error:
        asking.note(APPROXIMATED, arguments, f"taken as one argument: {error}")
        return [arguments.text]


def with_scripts(written: Callable[[Document, WriteContext], tuple[str, dict[str, str]]], suffix: str) -> tuple[
        Callable[[Document, WriteContext], str], Callable[[Document, WriteContext], Mapping[str, str]]]:
    """The writer of a description beside whose text stand the scripts of its jobs, and of all its files by name.

    written: gives the text and the scripts by name; suffix: of the description's own file.
    """
    def write(document: Document, context: WriteContext) -> str:
        """The description alone; a finding names each script that belongs beside it."""
        text, scripts = written(document, context)
        for name in scripts:
            script_apart(document, context, name)
        return text

    def files(document: Document, context: WriteContext) -> Mapping[str, str]:
        """The description and its scripts by their names."""
        text, scripts = written(document, context)
        stem = next((name.removesuffix(".sh") for name in scripts), context.name or "job")
        return {f"{stem}{suffix}": text, **scripts}

    return write, files


def script_apart(document: Document, context: WriteContext, name: str) -> None:
    """The finding for a script that is a file of its own beside a description, at the first Executable that names
    one."""
    jobs = [job for job, _ in document.jobs() if str(job.value("Executable") or "").startswith("#")]
    job = jobs[0] if jobs else None
    context.findings.add(SITE, "Executable", f"the script of the job belongs into {name}, beside the description "
                         "(--out writes both)", policy=context.policy or Policy.WARN, path="" if job is None else
                         "/Job/Executable", item=None if job is None else job.first("Executable"), within=job)
