from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sssjob.mjf.web import metadata
from tests.mjf.support import Site, Web, served


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Metadata are asked once a process; a port may serve two tests."""
    metadata.cache_clear()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site with no directory yet."""
    return Site(tmp_path)


@pytest.fixture
def web() -> Iterator[Web]:
    """A loopback server that says 404 to everything."""
    with served() as web:
        yield web
