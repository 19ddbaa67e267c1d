"""What a script could not say, as comments in it, and the way back.

    # untranslated (slurm): --gres-flags=enforce-binding

stands after the last directive, one line for each loss, so that a person finds it; where a script with such lines is
written for the dialect that they name, they become directives again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sssjob.findings import escape
from sssjob.templates.quoting import QuotingError
from sssjob.translators.base import ReadContext
from sssjob.translators.scripts.reading import Reading
from sssjob.translators.scripts.rows import dialect_of

if TYPE_CHECKING:
    from sssjob.request.asked import Entry
    from sssjob.translators.scripts.asking import Asking
    from sssjob.translators.scripts.raw import Option

__all__ = ["OPTION", "comments", "restored", "wanted"]

#: The option of script formats that asks for it.
OPTION: Final = "comments"
_LENGTH: Final = 1_000
_LINE: Final = re.compile(r"^# untranslated \((?P<name>[\w.-]{1,100})\): (?P<text>.{1,1000})(?:\n|\Z)",
                          re.MULTILINE | re.ASCII)


def wanted(asking: Asking) -> bool:
    """Whether the option ``comments`` is given; ValueError for anything but yes and no."""
    value = asking.context.options.get(OPTION, "no")
    if value not in ("yes", "no"):
        raise ValueError(f"{OPTION} is yes or no, not {value!r}")
    return value == "yes"


def comments(asked: Sequence[Asking]) -> list[tuple[int, str]]:
    """For each property that was lost the line of its directive (0: none) and a comment, as its own dialect says it,
    else by name and value."""
    lines = [(0 if origin is None else origin.line,
              f"# untranslated ({asking.source or 'sss'}): {escape(_said(asking, entry, origin), _LENGTH)}\n")
             for asking in asked for entry, origin in asking.lost]
    return list(dict.fromkeys(lines))


def _said(asking: Asking, entry: Entry, origin: Option | None) -> str:
    source = dialect_of(asking.source)
    if origin is not None and source is not None:
        try:
            return source.directive(origin.name, origin.value)
        except QuotingError:
            return origin.shown
    more = "".join(f" {k}={v}" for k, v in entry.attributes.items())
    return f"{entry.path.removeprefix('/Job/')}{more}: {getattr(entry.item, 'text', '')}"


def restored(asking: Asking, names: Sequence[str], body: str) -> tuple[list[tuple[str, str | None]], str]:
    """Options out of such lines of the dialect, but for those that are said already, and the body without them."""
    dialect = asking.dialect
    restored_options: dict[str, str | None] = {}

    def taken(hit: re.Match[str]) -> str:
        """The directive that a comment was before; the comment itself where it is of another dialect or cannot be read.
        """
        if hit["name"] != dialect.name or hit["text"].endswith("…"):
            return hit[0]
        reading = Reading(dialect, ReadContext())
        try:
            options = dialect.arguments(reading, hit["text"])
        except ValueError:
            return hit[0]
        if not options or reading.findings.rejected:
            return hit[0]
        restored_options.update((o.name, o.value) for o in options if o.name not in names)
        return ""

    body = _LINE.sub(taken, body)
    return list(restored_options.items()), body
