"""The published text of release 3.1.0, where it is at hand, against the vocabulary and the table of its sentences."""

from __future__ import annotations

import re

import pytest

from sssjob.derive.conformance import STATEMENTS
from sssjob.document.vocabulary import ELEMENTS
from tests.spec.support import examples, needs_published_text, published_text
from tests.spec.test_vocabulary import ADAPTER, DEVIATIONS

pytestmark = needs_published_text

_TYPES = "String|Integer|Float|Boolean|DateTime|Duration"
_LEVELS = "MUST|SHOULD|MAY"
_ROW = re.compile(rf"({_TYPES})(.*?)\s*({_LEVELS})({_LEVELS})(RD)?$")
_WORD = re.compile(rf"\b({_LEVELS}|REQUIRED|RECOMMENDED|OPTIONAL)\b")
_SAME = {"REQUIRED": "MUST", "RECOMMENDED": "SHOULD", "OPTIONAL": "MAY"}
_HEAD = re.compile(r"(?:(?P<number>\d+\.\d) .*|(?:24\.0\.0\.1\.\d )?(?P<element>[A-Z][A-Za-z]*) ?Element"
                   r"|(?P<part>Credentials|Consumable Resources|Simple \w+ Properties|Job|JobDefaults|TaskGroup|"
                   r"TaskGroupDefaults|Task|TaskDefaults)|Appendix (?P<appendix>A))")
#: Sections whose words demand nothing: 2.1 lists the keywords, 10.0 names a day in May.
_SILENT = ("2.1", "10.0")


def sections() -> dict[str, list[str]]:
    """Section as the vocabulary names it -> its lines; rows of tables are left out."""
    sections: dict[str, list[str]] = {}
    number = section = ""
    for line in map(str.strip, published_text().splitlines()):
        head = _HEAD.fullmatch(line)
        if head is None:
            if not _ROW.match(line):
                sections.setdefault(section, []).append(line)
        elif head["number"]:
            number = section = head["number"]
        elif head["appendix"]:
            section = "A"
        else:
            section = f"{number} {head['element']} Element" if head["element"] else f"{number} {head['part']}"
    return sections


def test_every_sentence_with_a_keyword_is_a_statement() -> None:
    wanted = {section: [_SAME.get(w, w) for line in lines for w in _WORD.findall(line)]
              for section, lines in sections().items() if section not in _SILENT}
    found: dict[str, list[str]] = {}
    for s in STATEMENTS:
        if s.number.isdigit():
            found.setdefault(s.section, []).append(s.level)
    assert found == {section: words for section, words in wanted.items() if words}


def rows(number: int) -> list[str]:
    """The rows of a table as ``type appearance compliance categories``."""
    text = published_text().partition(f"\nTable {number}:")[2].partition("\n\n")[0]
    found = (_ROW.match(line.strip()) for line in text.splitlines())
    return [" ".join((m[1], m[3], m[4], m[5] or "-")) for m in found if m is not None]


@pytest.mark.parametrize("number", [1, 2, 3, 4, 6, 7])
def test_rows_of_the_tables_are_those_of_the_text(number: int) -> None:
    def fact(name: str, what: str, value: str) -> str:
        return {"SuspendDuration": {"type": "Integer", "categories": ""}}.get(name, {}).get(what, value) if (
            name, what) in DEVIATIONS else value

    found = [" ".join((fact(e.name, "type", e.type), e.appearance, e.compliance,
                       fact(e.name, "categories", e.categories) or "-"))
             for e in ELEMENTS if e.section.endswith(f"Table {number}")]
    if number == 2:
        found.insert(20, ADAPTER.removeprefix("Network "))
    assert found == rows(number)


def test_former_names_stand_in_the_order_of_the_alphabet() -> None:
    """What pins the restored names: Table 2 was sorted by the names of release 3.0."""
    former = {"Id": "JobId", "Name": "JobName", "State": "JobState", "Type": "JobType"}
    names = [former.get(e.name) or e.former or e.name for e in ELEMENTS if e.section == "5.1 Table 2"]
    names.insert(20, "NetworkAdapter")
    shown = {"EndTime": "EndTime", "CompletionTime": "EndTime", "GlobalJobId": "GlobalJobId"}
    ordered = [shown.get(n, n).lower() for n in names]
    assert ordered == sorted(ordered)


@pytest.mark.parametrize(("name", "title"), [
    ("very-simple", "Very Simple Example"), ("moderate", "Moderate Example"), ("elaborate", "Elaborate Example"),
])
def test_examples_are_those_of_the_text(name: str, title: str) -> None:
    text = published_text().partition(f"\n{title}\n")[2]
    assert text.partition("\n\n")[2].startswith((examples() / f"{name}.xml").read_text(encoding="utf-8").rstrip())
