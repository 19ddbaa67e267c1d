"""Each extra, installed alone beside what the package needs, gives what the docs promise of it; without it a sentence
says which one is missing, or the work is done in another way. ``tests/extras.py`` has what is done with each.

An environment of its own for each would cost minutes and a registry. What is not installed is hidden instead from the
interpreter that uses the extra, by what distributions state they depend on: an import that is not declared fails.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.extras import EXTRAS, ROOT, USES

#: Extra -> what its use gives with it, and without.
GIVES = {
    "re2": ("re2", "re"),
    "tables": ("b'PAR1', 1 row", "sssjob: format parquet needs pyarrow: pip install 'sssjob[tables]'"),
    "json-schema": ("0 of 2 faults", "checking against the JSON Schema needs jsonschema: pip install "
                                     "'sssjob[json-schema]'"),
    "words": ("6731191091817518", "job ids as words need mnemonicode: pip install 'sssjob[words]'"),
    "yaml": ("1 document", "-: SSS111 error reading YAML needs PyYAML: pip install 'sssjob[yaml]'"),
    "postgresql": ("sssjob: postgresql://127.0.0.1:1/books: connection",
                   "sssjob: a ledger in PostgreSQL needs psycopg: pip install 'sssjob[postgresql]'"),
    "report": ("1 plots", "sssjob: a report needs matplotlib: pip install 'sssjob[report]'"),
    "pdf": ("b'%PDF-'", "sssjob: an invoice as PDF needs fpdf2: pip install 'sssjob[pdf]'"),
    "dask": ("log.parquet", "sssjob: Parquet files and charge tables made by several processes need pyarrow: "
                            "pip install 'sssjob[tables]'"),
    "zstd": ("3 lines", "sssjob: a log that is compressed with zstd needs zstandard: "
                         "pip install 'sssjob[zstd]'"),
    "lsp": ("initialized", "sssjob: a language server needs pygls: pip install 'sssjob[lsp]'"),
    "serve": ("answered [200]", "sssjob: a server needs starlette, uvicorn and httptools: pip install 'sssjob[serve]'"),
    "top": ("shown", "no job waits or runs"),
}


def test_every_extra_is_used() -> None:
    assert EXTRAS.keys() == USES.keys() == GIVES.keys()


@pytest.mark.sweep
@pytest.mark.slow
def test_each_extra_alone_and_what_is_said_without_them() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.extras", "none", *EXTRAS], cwd=ROOT, capture_output=True,
                          text=True, timeout=240, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    without, *alone = map(json.loads, done.stdout.splitlines())
    assert without == {extra: sentence for extra, (_, sentence) in GIVES.items()}
    assert [{extra: text[:len(GIVES[extra][0])] for extra, text in use.items()} for use in alone] == [
        {extra: GIVES[extra][0]} for extra in EXTRAS]
