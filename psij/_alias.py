"""A wheel without code that has the name psij-python: for programs whose metadata demand that distribution.

It depends on sssjob, whose package ``psij`` they then get. Its version is the one that is asked for with the local
label ``sssjob``, so that a list of what is installed shows what it is.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

from packaging.version import Version

#: The release of psij-python whose public names this package has.
PEER = "0.9.11"


def write_alias(folder: Path, version: str = PEER) -> Path:
    """Write the wheel into a folder; its path. Raises OSError; InvalidVersion (a ValueError) for no version."""
    whole = f"{Version(version).public}+sssjob"
    info = f"psij_python-{whole}.dist-info"
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: psij-python\nVersion: {whole}\n"
                            "Summary: Stands for psij-python; the code is that of sssjob\nRequires-Dist: sssjob\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: psij\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{name},sha256={_digest(text)},{len(text.encode())}" for name, text in texts.items()]
    texts[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""])
    path = folder / f"psij_python-{whole}-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in texts.items():
            wheel.writestr(zipfile.ZipInfo(name), text)
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
