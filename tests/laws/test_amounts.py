"""What a script or a spec asks for, in the eyes of its manager, is what the document asks for, or a finding says how it
differs; and what comes back from it means the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

from hypothesis import HealthCheck, given, settings

from sssjob.document.model import Document
from sssjob.findings import Finding, Findings, Policy
from sssjob.request import Request
from sssjob.request.totals import Totals, is_gpu
from sssjob.translators import WriteContext, get
from tests.cases import Cases
from tests.laws.documents import geometries, read, request_of_text
from tests.laws.readers import READERS, Native
from tests.strategies import FIXED, examples

#: Findings that refuse a translation unless a policy lets it pass, and those that leave it to the site.
REFUSING = ("SSS501", "SSS504")
LAYOUT = {"Processors", "NodeCount", "TaskCount", "TaskDistribution", "TaskGroup", "ChunkCount"}
#: Property -> the names in findings that account for a difference in it.
ABOUT = {"processors": LAYOUT, "nodes": {"Resource", *LAYOUT},
         "copies": {"NodeCount", "TaskCount", "TaskDistribution", "TaskGroup", "Launcher"},
         "memory": {"Memory", *LAYOUT}, "gpus": {"Resource", "GPU", *LAYOUT}, "disk": {"Disk", *LAYOUT},
         "licences": {"Resource", "License", *LAYOUT}, "other resources": {"Resource", "fpga", *LAYOUT},
         "seconds": {"Duration"}}


@lru_cache(maxsize=64)
def written_of(name: str, text: str) -> tuple[str, Findings]:
    """What is written of the document of a text: once, where several laws look at it."""
    return written(name, read(text))


def written(name: str, document: Document) -> tuple[str, Findings]:
    """The text in a format, and what was told."""
    findings = Findings("x")
    findings.places = document.places
    return get(name).write(document, WriteContext(findings, policy=Policy.WARN)), findings


def amount(totals: Totals, tag: str) -> tuple[Fraction | None, bool]:
    """An amount of the whole job, and whether it is known."""
    total = totals.amounts.get((tag, None, None))
    return (None, True) if total is None else (total.value, total.known)


def differences(totals: Totals, native: Native) -> Iterator[tuple[str, Fraction | None, Fraction | None, Fraction]]:
    """(what, asked, written, what is still no more) of all that is not the same."""
    partly = len(totals.parts) > 1 and any(part.layout.node_apart is None for part in totals.parts)
    nodes = totals.nodes.value if totals.nodes and not (partly and not totals.nodes.plain) else None
    layout = totals.layout
    least = nodes or (Fraction(layout.per_node) if layout.per_node else Fraction(1))
    none_said = max(least, Fraction(len(totals.parts)))        # each group has a task
    processors = totals.processors.value if totals.processors else min(none_said, Fraction(native.processors))
    rows: list[tuple[str, Fraction | None, Fraction | None, Fraction]] = [
        ("processors", processors, Fraction(native.processors), Fraction(0)),
        ("nodes", nodes, None if native.nodes is None else Fraction(native.nodes), Fraction(0)),
        ("copies", Fraction(totals.copies), Fraction(native.copies), Fraction(0)),
        ("seconds", None if totals.seconds is None else Fraction(totals.seconds),
         None if native.seconds is None else Fraction(native.seconds), Fraction(59)),
    ]
    gpus = [total for identity, total in totals.amounts.items() if is_gpu(identity)]
    count = sum((total.value for total in gpus), Fraction(0))
    most = max(processors, Fraction(totals.tasks or 1), least)
    of_gpus = count if len(totals.parts) > 1 else max(Fraction(0), count - most)
    whole = (most + of_gpus) * (1 << 20)        # less than a MiB of each
    for what, tag, value in (("memory", "Memory", native.memory), ("disk", "Disk", native.disk)):
        asked, known = amount(totals, tag)
        if known and not (native.spread and value is not None):
            rows.append((what, asked, value, whole))
    if all(total.known for total in gpus) and not native.spread:
        rows.append(("gpus", count if gpus else None, native.gpus, Fraction(0)))
    for what, identity, name in (("licences", ("Resource", "License", "lic"), "lic"),
                                 ("other resources", ("Resource", "fpga", None), "fpga")):
        total = totals.amounts.get(identity)
        if total is None or total.known:
            rows.append((what, total.value if total else None,
                         Fraction(native.named[name]) if name in native.named else None, Fraction(0)))
    for what, asked, value, more in rows:
        if what == "nodes" and asked is None and value == 1:
            continue        # where it is one node it is no more than was asked for
        if what in ("memory", "disk") and asked is not None and value is not None and 0 < value - asked < whole:
            continue        # whole units
        if what == "processors" and nodes is not None and value == nodes > processors:
            continue        # no node is without one
        if asked != value:
            yield what, asked, value, more


def subject_words(finding: Finding) -> set[str]:
    """The names that a finding is about."""
    return set(re.split(r"[ /]", finding.subject))


def misplaced(text: str, findings: Findings) -> list[str]:
    """Findings about a property that do not stand at a line that says it. What follows from several task groups stands
    at the job; counts that follow from others stand at those."""
    lines, several = text.splitlines(), text.count("<TaskGroup>") > 1
    wrong = []
    for f in findings:
        tag, line = re.split(r"[ /]", f.subject)[0], lines[f.line - 1]
        if f.severity == "info" or f"<{tag}" not in text or f"<{tag}" in line or tag == "Requested":
            continue
        if not (several and line == "<Job>") and not re.match(
                "<(TaskGroup|TaskCount|TaskDistribution|Extension name=.(ChunkCount|Launcher))", line):
            wrong.append(str(f))
    return wrong


def _untold_name(line: str, request: Request, output: str, findings: Findings) -> str | None:
    """What a line names, a feature, nodes, or a resource of the site, where no word of it is written and no finding
    tells it, though it holds: defaults may be overridden."""
    hit = re.match(r"<(Feature|Node|Resource)[ >](?:name='(fpga)')?[^>]*>([^<]*)<", line)
    if hit is None or (hit[1] == "Resource" and not hit[2]) or (hit[1] != "Resource" and not any(
            p.tag == hit[1] and p.text == hit[3] for level in request.levels
            for p in level.expression.properties)) or any(
            hit[1] in subject_words(f) or (f.subject == "TaskGroup" and f.rule in REFUSING) for f in findings):
        return None
    if "op='NE'" in line and hit[1] == "Node" and "n1" in output:
        return None         # whoever asks for one node by name excludes all others
    words = [hit[2]] if hit[2] else re.split("[,;]", hit[3])
    ranges = {"n[1-3]": ["n1", "n2", "n3"]}.get(hit[3], words)
    return None if all(word in output for word in words) or all(word in output for word in ranges) else hit[1]


def problems(name: str, text: str) -> list[tuple[str, str]]:
    """(kind, all that is to be seen) of each place where a format breaks the law."""
    request = request_of_text(text)
    totals = request.totals
    output, findings = written_of(name, text)
    about = f"{text}\n{output}\n" + "\n".join(map(str, findings))
    broken = []
    for what, asked, value, rounding in differences(totals, READERS[name](output)):
        names = ABOUT[what] | ({"GPU", "Resource"} if what == "memory" and "PerGPU" in text else set())
        told = [f for f in findings if not names.isdisjoint(subject_words(f))]
        if not told:
            broken.append((f"{what} untold", f"{what}: {asked} are asked for, {value} are written\n{about}"))
        elif value is not None and value > (asked or 0) + rounding and (asked is not None or what != "nodes") \
                and not any(f.rule in REFUSING for f in told):
            broken.append((f"{what} more", f"{what}: {value} are written for {asked}\n{about}"))
    for line in text.splitlines():
        if (tag := _untold_name(line, request, output, findings)) is not None:
            broken.append(("name untold", f"{tag} is asked for and not written: {line}\n{about}"))
    broken += [("told twice", f"{one}\n{about}") for one, other in combinations(findings, 2) if one.same(other)]
    broken += [("misplaced", f"{place}\n{about}") for place in misplaced(text, findings)]
    return broken


@settings(max_examples=examples(40), derandomize=FIXED, deadline=None, suppress_health_check=[HealthCheck.too_slow,
                                                                           HealthCheck.filter_too_much])
@given(geometries())
def test_what_is_written_asks_for_what_the_document_asks(text: str) -> None:
    """In every format that has a reader: making a document up takes longer than writing it in one of them."""
    with Cases() as case:
        for name in READERS:
            with case(name):
                broken = problems(name, text)
                assert not broken, "\n".join(about for _, about in broken)
