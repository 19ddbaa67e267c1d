"""An attribute that is malformed is a finding wherever it stands, whatever stands beside it; it never ends a check."""

from __future__ import annotations

import pytest

import sssjob
from tests.cases import Cases

PROPERTIES = ("Processors", "NodeCount", "Memory", "Node", "Duration", "Feature", "Queue", "Disk")
VALUES = {"Node": "n1", "Feature": "f", "Queue": "q"}
ATTRIBUTES = ("preference", "group", "conj", "op", "dynamic", "performanceFactor", "consumptionRate", "aggregation")


def element(tag: str, attribute: str = "", text: str = "") -> str:
    """A property, perhaps with an attribute."""
    return f"<{tag}{f' {attribute}={chr(34)}{text}{chr(34)}' if attribute else ''}>{VALUES.get(tag, '2')}</{tag}>"


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("text", ["0.5.1", "x", "-"])
def test_it_is_a_finding(attribute: str, text: str) -> None:
    """A preference of a Node beside NodeCount was read as a number before it was known to be one."""
    with Cases() as case:
        for tag in PROPERTIES:
            with case(tag):
                lines = [element(tag, attribute, text), *(element(other) for other in PROPERTIES if other != tag)]
                requested = f"<Requested>{''.join(lines)}</Requested>"
                findings = sssjob.check(f"<Job><Executable>/bin/a</Executable>{requested}</Job>")
                assert findings.rejected
                assert any(attribute in f.message for f in findings), [str(f) for f in findings]
