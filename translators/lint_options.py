"""Checks of the options that the submit command obeys."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from itertools import compress
from operator import itemgetter, not_
from typing import Final

from sssjob.lrm.acceptance import judge_of
from sssjob.translators.lint_base import Hit, Script
from sssjob.translators.scripts.base import Dialect
from sssjob.translators.scripts.raw import TEMPLATE, Option

__all__ = ["FILES", "OUTPUTS", "TIMES", "TOKENS", "no_limit", "nowhere", "patterns", "refused", "resources", "short",
           "signs", "streams", "twice", "two_fields", "unexpanded", "unitless"]


def refused(script: Script) -> Iterator[Hit]:
    """What the submit command refuses beside what its reader said already."""
    judge = judge_of(script.dialect.name)
    if judge is None or not script.dialect.prefix:      # a description's reader asks its judge
        return
    for lone in script.options if judge.whole and len(script.parts) > 1 else ():
        if lone.name in judge.whole:
            yield Hit(lone.line, lone.column, lone.name, f"{lone.shown}: {judge.command} refuses it: "
                      f"{judge.whole[lone.name]}")
    for part in script.parts:
        refusals = judge.refusals(map(_SAID, part))
        if not refusals:
            continue
        findings_refused = [f for f in script.findings if f.kind == "refused"]
        refused_before = {(f.line, f.subject) for f in findings_refused}
        messages = " ".join([f.message for f in findings_refused])
        last = {option.name: option for option in part}
        for refusal in refusals:
            option = last.get(refusal.option)
            if option is None:
                yield Hit(0, 0, refusal.option, f"{refusal.option} is not said: {refusal.why}; {judge.command} refuses "
                          "the job unless the command line says it", "warning")
            elif (option.line, option.name) not in refused_before and refusal.why not in messages and not (
                    option.value and TEMPLATE.search(option.value, 0, 4096)):
                yield Hit(option.line, option.column, option.name, f"{option.shown}: {judge.command} refuses it: "
                          f"{refusal.why}")


_SAID: Final = itemgetter(0, 1)     # name and value of an option


def two_fields(script: Script) -> Iterator[Hit]:
    """Times of two fields, which are minutes and seconds."""
    for option in script.of(TIMES):
        match = _MINUTES.fullmatch(option.value or "")
        if match is not None:
            first, second = int(match[1]), int(match[2])
            yield Hit(option.line, option.column, option.name,
                      f"{option.shown} is {first} min and {second} s, not {first} h and {second} min")


_MINUTES: Final = re.compile(r"(\d{1,9}):(\d{1,2})", re.ASCII)
TIMES: Final = ("--time", "--time-min", "-l walltime", "-l cput", "-l pcput")


def no_limit(script: Script) -> Iterator[Hit]:
    """A time limit of zero, which is none."""
    for option in script.of(("--time",)):
        if _ZERO.fullmatch(option.value or "") is not None:
            yield Hit(option.line, option.column, option.name, f"{option.shown} asks for no limit at all")


_ZERO: Final = re.compile(r"[0:]+")


def twice(script: Script) -> Iterator[Hit]:
    """Options whose last value alone counts."""
    if len(script.last) == len(script.options):
        return
    for part in script.parts:
        first: dict[str, Option] = {}
        for option in part:
            before = first.setdefault(option.name, option)
            if before.value != option.value and option.line and option.name not in (
                    *_ADDED, *script.dialect.adds):
                yield Hit(option.line, option.column, option.name, f"{option.shown}: line {before.line} says "
                          f"{before.shown}; the last one counts")


#: Options that add to what was said before: resources, variables, dependencies.
_ADDED: Final = ("-R", "-v", "-l", "-W", "-w", "-pe", "-hold_jid", "-q", "-o", "--attrs", "--setattr", "--setopt",
                 "--env")


def short(script: Script) -> Iterator[Hit]:
    """Long options that are cut: one that is meant as another is a warning."""
    options = script.options            # nothing but its own name begins so, where that stands in the text
    stands = map(str.startswith, map(_TEXT, options), map(_NAME, options), map((-1).__add__, map(_COLUMN, options)))
    for option in compress(options, map(not_, stands)):
        match = _LONG.match(option.text, option.column - 1) if option.column else None
        if match is None or match[0] in script.dialect.known or match[0] == option.name:
            continue
        likely = {"--tasks": "--ntasks", "--task": "--ntasks"}.get(match[0])
        more = f", not as {likely}" if likely else ", which releases since 2025 refuse" \
            if script.dialect.name == "flux" else ""
        yield Hit(option.line, option.column, match[0], f"{match[0]} is no option; it is read as {option.name}{more}",
                  None if more else "info")


_LONG: Final = re.compile(r"--[\w-]+")


_NAME, _COLUMN, _TEXT = itemgetter(0), itemgetter(3), itemgetter(4)     # of an option


def resources(script: Script) -> Iterator[Hit]:
    """``-l`` resources that only a site could know, where a known one is spelled much the same."""
    for option in [option for option in script.options if option.name.startswith("-l ")]:
        name = option.name.removeprefix("-l ")
        if option.name in script.dialect.known or name in _STANDARD:
            continue
        resource_names = [n.removeprefix("-l ") for n in script.dialect.known if n.startswith("-l ")]
        close = difflib.get_close_matches(name, resource_names, 1, 0.75)
        if close:
            yield Hit(option.line, option.column, option.name, f"{name} is no resource that {script.dialect.title} "
                      f"comes with; did you mean {close[0]}?")


#: pbs_resources(7B) of both, without those that are in the tables of the dialects.
_STANDARD: Final = ("arch", "cput", "pcput", "file", "host", "mem", "mpiprocs", "ncpus", "nice", "nodect", "ompthreads",
                    "other", "pmem", "procs", "pvmem", "software", "vmem", "vnode", "walltime", "naccesspolicy",
                    "feature",
                    "h_rt", "s_rt", "h_vmem", "s_vmem", "h_cpu", "s_cpu", "h_data", "h_fsize", "h_stack", "mem_free",
                    "virtual_free", "hostname", "qname", "num_proc", "swap_free", "tmpfs", "gpu", "ngpus", "gpus")


def unexpanded(script: Script) -> Iterator[Hit]:
    """Variables in directives, which no shell reads."""
    if "$" not in script.values:
        return
    allowed = _PSEUDO.get(script.dialect.name, script.dialect.filled)
    for option in script.options:
        for hit in _VARIABLE.finditer(option.value) if option.value and "$" in option.value else ():
            name = hit[1] or hit[2]
            filled = name in allowed or (script.dialect.name == "sge" and name.startswith(allowed))     # $JOB_ID_
            if option.line and not filled and option.name not in _EVALUATED \
                    and (option.line, option.column) not in script.templates:
                yield Hit(option.line, option.column, option.name, f"{option.shown}: no shell reads a directive, so "
                          f"{hit[0]} is taken as it stands")
                break


_VARIABLE: Final = re.compile(r"(?<![\\$@%{])\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
_EVALUATED: Final = ("--wrap",)
#: qsub(1) of Grid Engine, -o; requests.c of Torque's pbs_mom (PBS Pro has ^array_index^ alone); qsub(1) of Cobalt.
_PSEUDO: Final[Mapping[str, tuple[str, ...]]] = {
    "sge": ("HOME", "USER", "JOB_ID", "JOB_NAME", "HOSTNAME", "SGE_TASK_ID", "TASK_ID"),
    "torque": ("PBS_JOBID", "HOME"),
    "pbspro": (), "cobalt": ("jobid", "COBALT_JOBID"),
    "lsf": ("HOME", "USER"),
    "htcondor": (), "slurm": (), "flux": (),
}


def patterns(script: Script) -> Iterator[Hit]:
    """Patterns in names of files that the manager does not know."""
    tokens = TOKENS[script.dialect.name]
    for option in script.of(FILES):
        for hit in _PATTERN.finditer(option.value or ""):
            if hit[1] is None and hit[2] not in tokens:
                yield Hit(option.line, option.column, option.name, f"{option.shown}: {hit[0]} is no pattern of "
                          f"{script.dialect.title}; it is taken as it stands")
                break


_PATTERN: Final = re.compile(r"%(?:(%)|\d*(\w?))", re.ASCII)
FILES: Final = ("--output", "--error", "--input", "-o", "-e", "-i", "-oo", "-eo")
#: sbatch(1), section FILENAME PATTERN; bsub(1), -o.
TOKENS: Final[Mapping[str, str]] = {"slurm": "AaJjNnstuxb", "lsf": "JI"}


def unitless(script: Script) -> Iterator[Hit]:
    """Memory without a unit: of LSF unless the site says which, elsewhere so few bytes that another unit was meant."""
    if script.dialect.name != "lsf":
        yield from _few_bytes(script)
        return
    if script.site is not None and script.site.lsf.unit_for_limits is not None:
        return
    for option in script.options:
        plain = {"-M": "KB", "-v": "KB"}.get(option.name)
        if plain and (option.value or "").isdigit():
            yield Hit(option.line, option.column, option.name, _UNITLESS.format(option.shown, plain), "info")
        elif option.name == "-R" and (match := _RUSAGE.search((option.value or "")[:4096])) is not None:
            yield Hit(option.line, option.column, option.name, _UNITLESS.format(f"mem={match[1]}", "MB"), "info")


def _few_bytes(script: Script) -> Iterator[Hit]:
    """Memory of PBS and Grid Engine in bytes that are less than 1 MiB (pbs_resources(7B), sge_types(1))."""
    for option in [option for option in script.options if option.name.startswith("-l ")]:
        name = option.name.removeprefix("-l ")
        text = option.value or ""
        if name in ("select", "nodes"):
            match = _OF_CHUNK.search(text[:4096])
            name, text = ("", "") if match is None else (match[1], match[2])
        if name in _MEMORY and text.isdecimal() and 0 < int(text) < 1 << 20:
            yield Hit(option.line, option.column, option.name, f"{name}={text} has no unit: that is {text} bytes")


_MEMORY: Final = frozenset((
    "mem", "vmem", "pmem", "pvmem", "h_vmem", "s_vmem", "mem_free", "virtual_free", "h_rss", "s_rss", "h_data",
    "s_data", "h_stack", "s_stack"))
_OF_CHUNK: Final = re.compile(r":((?:mem|vmem))=(\d+)(?![\w.])", re.ASCII)
_UNITLESS: Final = "{} has no unit: the site says which (LSF_UNIT_FOR_LIMITS), and where it says nothing it is {}"
_RUSAGE: Final = re.compile(r"rusage\[[^\]]*?\bmem=(\d+)(?![\w.])", re.ASCII)


def streams(script: Script) -> Iterator[Hit]:
    """Output that goes elsewhere than it seems."""
    joins = script.dialect.name in ("pbspro", "torque", "sge")
    for part in script.parts:
        last = script.last if len(script.parts) == 1 else {option.name: option for option in part}
        for option in [option for option in part if option.name in OUTPUTS] if len(last) < len(part) else [
                last[name] for name in OUTPUTS if name in last]:
            why = _astray(script.dialect, option, last)
            if why:
                yield Hit(option.line, option.column, option.name, f"{option.shown}: {why}")
        join, unused = last.get("-j"), last.get("-e")
        if joins and join is not None and unused is not None and join.value in ("oe", "y", "yes"):
            yield Hit(unused.line, unused.column, "-e", f"{unused.shown} is unused: {join.shown} sends both streams "
                      "to the file of standard output")


def nowhere(script: Script) -> Iterator[Hit]:
    """A directory of Grid Engine that its daemons take from their own: the job waits in an error (seen with 8.1.9)."""
    option = script.last.get("-wd")
    if option is not None and option.value and not option.value.startswith(("/", "~")) and not TEMPLATE.match(
            option.value, 0, 4096):
        yield Hit(option.line, option.column, option.name, f"{option.shown}: no absolute directory; the job waits in "
                  "an error (Eqw), for the daemon takes it from its own. -cwd and a cd in the script go there")


def _astray(dialect: Dialect, option: Option, last: Mapping[str, Option]) -> str:
    """Why a stream does not go to the file that its option seems to name, or nothing."""
    value = option.value or ""
    if dialect.name in ("pbspro", "torque"):
        return f"standard output goes to a file {value}; -j oe joins the two" \
            if option.name == "-o" and value in ("e", "eo") else ""
    if value.endswith("/") and not dialect.folders:
        return "a file is wanted, and this names a folder"
    if dialect.name == "slurm" and "--array" in last and last[option.name] is option and not _APART.search(value):
        return "all elements of the array write into one file; %A_%a keeps them apart"
    return ""


OUTPUTS: Final = ("--output", "--error", "-o", "-e")
#: A pattern that differs between the elements of an array, or a file that takes everything.
_APART: Final = re.compile(r"%\d*[ajJ]|\A/dev/(?!shm/)", re.ASCII)


def signs(script: Script) -> Iterator[Hit]:
    """A = or a # that is no separator here."""
    if script.dialect.name == "htcondor":
        for line in script.lines:
            match = _COMMENTED.match(line.text[:4096])
            if match is not None:
                yield Hit(line.number, match.start(2) + 1, match[1], "# and what follows are a part of the value; a "
                          "comment is a line of its own")
    if "\n=" not in f"\n{script.values}" and script.dialect.name != "sge":
        return
    for option in script.options:
        value = option.value or ""
        if value.startswith("=") and _GLUED.match(option.text, max(0, option.column - 1)) is not None:
            yield Hit(option.line, option.column, option.name, f"{option.shown}: the = is a part of the value")
        elif script.dialect.name == "sge" and option.line and _cut(option.text):
            yield Hit(option.line, option.text.index("#", 2) + 1, option.name, "Grid Engine ends the line at #, inside "
                      "quotes too")
            return


_COMMENTED: Final = re.compile(r"\s*([+\w.]+)\s*=[^#]*\s(#)")
_GLUED: Final = re.compile(r"-\w=")


def _cut(line: str) -> bool:
    """Whether the first # of a directive stands inside of quotes."""
    before, sign, _ = line[2:].partition("#")
    return bool(sign) and (before.count('"') % 2 == 1 or before.count("'") % 2 == 1)
