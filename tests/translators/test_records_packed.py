"""Compressed logs: what their first bytes say, in members, damaged, cut, and of gigabytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.errors import UsageError
from sssjob.translators.records._packed import PackedError, packing, unpacked
from tests.strategies import examples


def zstd(data: bytes) -> bytes:
    zstd: bytes = pytest.importorskip("zstandard").ZstdCompressor(write_checksum=True).compress(data)
    return zstd


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": zstd}
TEXT = b"".join(b"11/21/2026 10:00:%02d;E;%d.head;user=a\n" % (n % 60, n) for n in range(3000))


@pytest.mark.parametrize("name", PACKERS)
def test_what_was_compressed_comes_back(name: str) -> None:
    """Also in several members, as appending makes them, and filled up with zeros, as on a tape."""
    pack = PACKERS[name]
    for data, text in ((pack(TEXT), TEXT), (pack(TEXT[:500]) + pack(TEXT[500:]), TEXT), (pack(TEXT) + bytes(512), TEXT),
                       (pack(b""), b"")):
        assert packing(data[:6]) == name
        assert unpacked(io.BytesIO(data)).read() == text


@settings(max_examples=examples(30), deadline=None)
@given(data=st.binary(max_size=40))
def test_what_is_not_compressed_stays(data: bytes) -> None:
    if packing(data) is None:
        assert unpacked(io.BytesIO(data)).read() == data


@pytest.mark.parametrize("name", PACKERS)
def test_what_is_damaged_or_cut_is_told_behind_what_was_whole(name: str) -> None:
    text = TEXT[:9000]          # read byte by byte
    data = PACKERS[name](text)
    first = PACKERS[name](b"a\n")
    for wrong in (data[:len(data) // 2], data[:-1], data + b"nothing", first + data[:7]):
        file, read = unpacked(io.BytesIO(wrong)), b""
        with pytest.raises(PackedError, match=r"damaged|too early|stand others"):
            while piece := file.read(1):
                read += piece
        assert (b"a\n" + text).startswith(read) or text.startswith(read)
    odd = bytearray(data)
    odd[len(odd) // 2] ^= 0xFF
    with pytest.raises(PackedError):
        unpacked(io.BytesIO(bytes(odd))).read()


def test_zstd_without_its_extra_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UsageError, match=r"needs zstandard: pip install 'sssjob\[zstd\]'"):
        unpacked(io.BytesIO(b"\x28\xb5\x2f\xfd" + bytes(9))).read()


@pytest.mark.parametrize("name", PACKERS)
def test_a_small_file_of_many_bytes(name: str) -> None:
    """What comes at a time is bounded, however much the whole is."""
    size = 1 << 24
    file = unpacked(io.BytesIO(PACKERS[name](bytes(size))))
    total = 0
    while piece := file.read(1 << 20):
        total += len(piece)
    assert total == size
