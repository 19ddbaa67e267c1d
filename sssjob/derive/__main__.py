"""``python -m sssjob.derive [--check]``: write the generated files, or say which are out of date (exit 1)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def generated() -> Iterator[tuple[str, Callable[[], str]]]:
    """(path below the root, generator) of every generated file."""
    from sssjob.derive import accessors, conformance, coverage, jsonschema, options, reference, xsd

    yield "sssjob/document/kinds.py", accessors.kinds
    yield "sssjob/document/accessors.py", accessors.accessors
    yield "schemas/sssjob-3.1.0.xsd", xsd.xsd
    yield "schemas/sssjob-3.1.0-assertions.xsd", xsd.xsd11
    yield "schemas/sssjob.schema.json", jsonschema.json_schema
    yield "docs/reference/elements.md", reference.elements
    yield "docs/reference/rules.md", reference.rules
    yield "docs/reference/conformance.md", conformance.conformance
    yield "docs/reference/coverage.md", coverage.coverage
    yield "docs/reference/options.md", options.options
    yield "docs/reference/limits.md", reference.limits


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit status."""
    stale = []
    for name, make in generated():
        path, text = ROOT / name, make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{'out of date' if '--check' in arguments else 'written'}: {name}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
