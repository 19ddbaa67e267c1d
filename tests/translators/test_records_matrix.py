"""Every format of accounting records, spoiled in the ways in which logs are spoiled.

Formats come from the registry and their fixtures from one folder, so that a new format is held against all of this
once it is registered; without a fixture it fails by its name. A cell is a law for all formats: records before the
damage stay as they were, records are counted (read = given + rejected), and what is lost is told.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from sssjob.document.model import Job
from sssjob.errors import UsageError
from sssjob.limits import LIMITS
from sssjob.translators import ReadContext, get, names
from sssjob.translators.records.base import REASONS, RecordTranslator
from sssjob.xml.writer import write_document

FIXTURES: Final = Path(__file__).parents[1] / "fixtures" / "records"


def formats() -> list[str]:
    """The formats of accounting records that are registered and can be read."""
    translators = [get(name) for name in names()]
    return [t.name for t in translators if isinstance(t, RecordTranslator) and (t.stream or t.sums)]


FORMATS: Final = formats()


class Read(NamedTuple):
    """What became of an input. records: a text each; told: findings but those of severity info."""

    records: list[str]
    rejected: int
    told: list[str]


def read(name: str, data: bytes, *, zone: bool = True, text: int = LIMITS.text) -> Read:
    """Read an input, and hold the counts against what came of it. text: the limit of a line."""
    translator = get(name)
    assert isinstance(translator, RecordTranslator)
    context = ReadContext("log", limits=replace(LIMITS, text=text),
                          options={"machine": "m"} | ({"timezone": "UTC"} if zone else {}))
    opened = translator.sums or translator.stream
    assert opened is not None
    stream = opened(BytesIO(data), context)
    records = [write_document(item) if isinstance(item, Job) else repr(replace(item, line=0)) for item in stream]
    counts = stream.counts
    assert counts.read == counts.given + counts.rejected
    assert counts.rejected == counts.reasons.total() and set(counts.reasons) <= set(REASONS)
    return Read(records, counts.rejected, [str(f) for f in context.findings if f.severity != "info"])


def fixture(name: str) -> bytes:
    """Good records of a format: the project's, or those of a plug-in below ``SSSJOB_SAMPLES``."""
    path = FIXTURES / f"{name}.txt"
    if not path.is_file() and "SSSJOB_SAMPLES" in os.environ:
        path = Path(os.environ["SSSJOB_SAMPLES"]) / "records" / path.name
    assert path.is_file(), f"format {name} has no fixture: put two good records or more into {path}"
    return path.read_bytes()


@pytest.mark.parametrize("name", FORMATS)
def test_the_fixture_is_good(name: str) -> None:
    made = read(name, fixture(name))
    assert len(made.records) >= 2 and not made.rejected and not made.told


@pytest.mark.parametrize("name", FORMATS)
def test_torn_anywhere(name: str) -> None:
    """Records before the cut are as they were; a record that is cut is lost or told, or all of it was there."""
    data = fixture(name)
    whole = read(name, data).records
    for cut in sorted({len(data) * part // 40 for part in range(1, 40)} | {len(data) - 1, len(data) - 2}):
        made = read(name, data[:cut])
        kept = [record for record in made.records if record in whole]
        assert kept == whole[:len(kept)], cut
        assert made.records == whole or made.told or made.rejected or len(made.records) == len(kept) < len(whole), cut


def damage(name: str, data: bytes) -> bytes:
    """The data with all characters of its middle line replaced."""
    lines = data.splitlines(keepends=True)
    lines[len(lines) // 2] = b"\xff\xfe\x00 no text \xc3(\n"
    return b"".join(lines)


@pytest.mark.parametrize("name", FORMATS)
def test_bytes_that_are_no_text(name: str) -> None:
    made = read(name, damage(name, fixture(name)))
    assert made.told


@pytest.mark.parametrize("name", FORMATS)
def test_a_line_too_long(name: str) -> None:
    """It is told, and not held, where a format has lines; all other records are as they were."""
    data = fixture(name)
    lines = data.splitlines(keepends=True)
    limit = max(len(data), 1000)
    at = len(lines) // 2
    made = read(name, b"".join([*lines[:at], lines[at].rstrip(b"\n") + b"x" * (3 * limit) + b"\n", *lines[at + 1:]]),
                text=limit)
    whole = read(name, data).records
    assert (made.told or made.records == whole) and all(len(text) < limit for text in made.told)
    assert [record for record in whole if record in made.records] == made.records


@pytest.mark.parametrize("name", FORMATS)
def test_times_without_a_zone(name: str) -> None:
    """Where no zone is named, either none was needed, or the option is asked for."""
    data = fixture(name)
    try:
        made = read(name, data, zone=False)
    except UsageError as error:
        assert "timezone" in str(error)
    else:
        assert made == read(name, data)


@pytest.mark.parametrize("name", FORMATS)
def test_gzip(name: str) -> None:
    """A compressed log is read as a log is; one that is cut gives what was whole, and says so."""
    packed = gzip.compress(fixture(name), mtime=0)
    assert read(name, packed) == read(name, fixture(name))
    made = read(name, packed[:-9])
    assert made.rejected and any("the gzip data end too early" in told for told in made.told)


@pytest.mark.parametrize("name", FORMATS)
def test_another_header(name: str) -> None:
    """Where what stands first is no longer there, all records are as they were, or something is told."""
    lines = fixture(name).splitlines(keepends=True)
    made = read(name, b"".join([b"format: another v99.9\n", *lines[1:]]))
    assert made.told


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("data", [b"", b"\n", b"\r\n\n", b" \t\n", b"\xef\xbb\xbf"])
def test_an_empty_file(name: str, data: bytes) -> None:
    made = read(name, data)
    assert made.records == [] and made.rejected <= 1


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("change", [
    pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="CRLF"),
    pytest.param(lambda data: b"\n" + data, id="blank line before"),
    pytest.param(lambda data: data + b"\n", id="blank line behind"),
    pytest.param(lambda data: data + b" \t\r\n\n", id="blanks behind"),
    pytest.param(lambda data: b"\xef\xbb\xbf" + data, id="byte order mark"),
    pytest.param(lambda data: data.decode().encode("utf-16"), id="UTF-16"),
])
def test_what_changes_nothing(name: str, change: Callable[[bytes], bytes]) -> None:
    data = fixture(name)
    assert read(name, change(data)) == read(name, data)


@pytest.mark.parametrize("name", FORMATS)
def test_a_stray_blank_line(name: str) -> None:
    """Wherever it stands: it changes nothing, or what it parts is told."""
    lines = fixture(name).splitlines(keepends=True)
    good = read(name, b"".join(lines))
    for at in range(1, len(lines)):
        made = read(name, b"".join([*lines[:at], b"\n", *lines[at:]]))
        assert made == good or made.told, at


def test_a_format_that_is_new_is_asked_for_its_fixture() -> None:
    with pytest.raises(AssertionError, match=r"format acme-acct has no fixture: .* into .*acme-acct\.txt"):
        fixture("acme-acct")
