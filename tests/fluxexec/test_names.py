"""The names of the two packages of protocols: each is there, and none is loaded before it is asked for."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

PACKAGES = ("sssjob.fluxexec", "sssjob.mjf")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_has_one_home(package: str) -> None:
    module = import_module(package)
    homes = [name for names in module._HOMES.values() for name in names]
    assert sorted(homes) == sorted(module.__all__)
    assert set(homes).isdisjoint(module._HOMES)         # a module would take the place of a name that is called alike
    for home, names in module._HOMES.items():
        assert all(getattr(module, name) is getattr(import_module(f"{package}.{home}"), name) for name in names)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = module.Nothing


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_imports_none_of_it(package: str) -> None:
    code = f"import sys, {package}; print([n for n in sys.modules if n.startswith('{package}.')])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


def test_who_reads_local_directories_needs_no_http() -> None:
    code = "import sys, sssjob.mjf.provider; print([n for n in ('ssl', 'http.client', 'email') if n in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"
