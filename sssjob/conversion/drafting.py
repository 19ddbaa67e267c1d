"""A site profile drafted from a survey: every open question as a commented line with a guess, so that the draft is a
valid profile as it stands, and stays one whichever lines lose their comment sign."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from sssjob.conversion.site import OPTION
from sssjob.conversion.survey import KINDS, Answer, Question, Survey

__all__ = ["draft", "is_untouched"]

#: Names of parallel environments that put all slots on one host, at many sites.
_ONE_HOST: Final = re.compile(r"smp|thread|openmp|omp|shm|shared|single|serial|multicore|local", re.IGNORECASE)
_MOST: Final = 200              # names of one kind


_BEGIN: Final = "# A site profile, drafted from"
#: Lines of a draft that nobody has touched: blank, a comment, its name, the head of a table.
_UNTOUCHED: Final = re.compile(r'\s*|#.*|name = ".*"|\[[^]]*\]')


def is_untouched(text: str) -> bool:
    """Whether a text is a draft in which no guess has become an answer."""
    return text.startswith(_BEGIN) and all(map(_UNTOUCHED.fullmatch, text.splitlines()))


def draft(survey: Survey, name: str = "draft") -> str:
    """The text of the profile, in TOML."""
    number = sum(survey.formats.values())
    lines = [f"{_BEGIN} {number} {'script' if number == 1 else 'scripts'}. Lines of the form",
             "# \"#key = value\" are guesses: take the sign away from those that hold, with the right value.",
             f"name = {json.dumps(name)}", ""]
    for block in (_plain(survey, "clock", '#timezone = "UTC"'), *(_map(survey, k) for k in KINDS if KINDS[k].property),
                  _modules(survey), _slurm(survey), _lsf(survey), _sge(survey), _without_key(survey)):
        lines += block
    return "\n".join(lines).rstrip() + "\n"


def _seen(answer: Answer) -> str:
    """``12 scripts, such as a.sh:3``."""
    return f"{answer.scripts} {'script' if answer.scripts == 1 else 'scripts'}, such as {_shown(answer.example)}"


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def _plain(survey: Survey, kind: str, line: str) -> list[str]:
    """A key with one value for all scripts."""
    rows = survey.of(kind)
    if not rows:
        return []
    return [*(f"# {_shown(q.name)}: {_seen(a)}" for q, a in rows[:5]), line, ""]


def _names(rows: list[tuple[Question, Answer]]) -> Iterator[str]:
    """Name in the scripts = name here; the guess is that it stays. A name of several dialects stands there once."""
    taken: set[str] = set()
    for question, answer in rows:
        if question.name not in taken and len(taken) < _MOST and question.name.isprintable() \
                and len(question.name) <= 200:
            taken.add(question.name)
            key = json.dumps(question.name, ensure_ascii=False)
            yield f"#{key} = {key}     # {_seen(answer)}"
    unnamed = len({q.name for q, _ in rows} - taken)
    if unnamed:
        yield f"# and {unnamed} more"


def _map(survey: Survey, kind: str) -> list[str]:
    rows = survey.of(kind)
    if not rows:
        return []
    return [f"# {KINDS[kind].title}: the name in the scripts = the name here; \"\" leaves it out",
            f"[{KINDS[kind].key}]", *_names(rows), ""]


def _modules(survey: Survey) -> list[str]:
    rows = survey.of("module")
    return ["# environment modules: the name in the scripts = the name here; \"\" leaves it out", "[modules]",
            *_names(rows), ""] if rows else []


def _slurm(survey: Survey) -> list[str]:
    names = [question.name for question, _ in survey.of("plugin")[:_MOST] if OPTION.fullmatch(question.name)]
    return ["# options that plugins add to sbatch; others are slips", "[slurm]",
            f"#plugin_options = {json.dumps(names)}", ""] if names else []


def _lsf(survey: Survey) -> list[str]:
    units = _plain(survey, "unit", '#unit_for_limits = "MB"')
    reserves = _plain(survey, "reserve", "#reserve_per_task = false")
    limits = _plain(survey, "limit", "#job_memory_limit = false")
    rows = [*(["# LSF_UNIT_FOR_LIMITS: KB, MB, GB ...", *units] if units else ()),
            *(["# RESOURCE_RESERVE_PER_TASK: whether rusage[mem=4GB] is that of each task", *reserves]
              if reserves else ()),
            *(["# LSB_JOB_MEMLIMIT: whether -M is the memory of the whole job", *limits] if limits else ())]
    return ["[lsf]", *rows] if rows else []


def _sge(survey: Survey) -> list[str]:
    lines = []
    if survey.of("h_vmem"):
        lines = ["[sge]", *_plain(survey, "h_vmem", "#h_vmem_per_slot = true")]
    rows = survey.of("pe")
    if rows:
        lines.append("# allocation_rule as qconf -sp NAME shows it: $pe_slots, $fill_up, $round_robin or a number")
    for question, answer in rows[:_MOST]:
        rule = "$pe_slots" if _ONE_HOST.search(question.name) else "$fill_up"
        if question.name.isprintable() and len(question.name) <= 200:
            lines += [f"#[sge.pe.{json.dumps(question.name, ensure_ascii=False)}]     # {_seen(answer)}",
                      f'#allocation_rule = "{rule}"']
    rows = [(q, a) for q, a in survey.of("complex") if q.dialect == "sge" and q.name.isprintable()]
    if rows:
        lines += ["# complexes: GPU, Memory or License of each slot; \"GPU per job\" ... if it is counted once a job",
                  "[sge.complex]"]
    for question, answer in rows[:_MOST]:
        key = json.dumps(question.name[:200], ensure_ascii=False)
        lines.append(f'#{key} = "{_guess(question.name)}"     # {_seen(answer)}')
    return [*lines, ""] if lines else []


def _guess(name: str) -> str:
    """What a complex may be, by its name."""
    return next((what for what, words in _COMPLEXES.items() if words.search(name)), "License")


_COMPLEXES: Final = {"GPU": re.compile(r"gpu|coproc|cuda", re.IGNORECASE),
                     "Memory": re.compile(r"mem|ram", re.IGNORECASE)}


def _without_key(survey: Survey) -> list[str]:
    """What no key answers: names that conversions keep, drop or tell of."""
    lines = []
    for kind, about in KINDS.items():
        rows = [] if about.key else [row for row in survey.of(kind) if (kind, row[0].dialect) != ("complex", "sge")]
        if rows:
            lines += [f"# No key answers {about.title}; conversions tell what becomes of them:",
                      *(f"#   {_shown(q.name)} ({q.dialect}): {_seen(a)}" for q, a in rows[:20])]
            if len(rows) > 20:
                lines.append(f"#   and {len(rows) - 20} more")
    return lines
