"""The layout's own promises: rooms, links, licence, no place of the machine it was made on."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import packages_distributions
from importlib.resources import files
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import psij
import sssjob.translators
from tests.sources import imports

ROOT = Path(__file__).parents[1]
TEXT = (".py", ".md", ".toml", ".sh", ".xml", ".xsd", ".json", ".j2")


@pytest.mark.parametrize("name", ["translators", "schemas", "templates"])
def test_links_point_at_the_real_folders(name: str) -> None:
    link = ROOT / "sssjob" / name
    assert link.is_symlink() and os.readlink(link) == f"../{name}"


@pytest.mark.parametrize("name", ["sssjob", "psij", "translators", "schemas", "templates", "tests", "pyproject.toml",
                                  "README.md", "examples", "docs", "bench", ".ci/run", "Makefile", "CHANGELOG.md",
                                  "LICENSE"])
def test_rooms(name: str) -> None:
    assert (ROOT / name).exists()


def test_schemas_are_resources() -> None:
    assert files("sssjob.schemas").joinpath("sssjob-3.1.0.xsd").is_file()


def test_modules_come_from_here() -> None:
    for module in (psij, sssjob.translators):
        assert module.__file__ is not None
        assert Path(module.__file__).resolve().is_relative_to(ROOT)


def imported(path: Path) -> set[str]:
    """The top packages that a module imports, wherever in it and also by ``import_module`` of a text."""
    text = path.read_text()
    names = set(re.findall(r"\bimport_module\(['\"]([\w.]+)", text))
    for node in imports(ast.parse(text), annotations=True):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def test_every_import_is_declared() -> None:
    """As a dependency of the core or of an extra; and each that is declared is imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    declared = {Requirement(text).name.lower().replace("_", "-") for text in requirements}
    modules = chain(*((ROOT / room).rglob("*.py") for room in ("sssjob", "psij", "translators")))
    names = set().union(*map(imported, modules)) - sys.stdlib_module_names - {"sssjob", "psij"}
    distributions = packages_distributions()
    found = {name: {d.lower().replace("_", "-") for d in distributions.get(name, [name])} for name in names}
    assert {name: of for name, of in found.items() if not of & declared} == {}
    assert declared - set().union(*found.values()) == set()


def test_every_package_is_installed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    places = settings["package-dir"]
    found = {p.parent.relative_to(ROOT) for top in ("sssjob", "psij", "translators", "schemas", "templates")
             for p in (ROOT / top).rglob("__init__.py")}
    stated = {Path(places.get(n) or _place(n, places)) for n in settings["packages"]}
    assert {p for p in found if p not in stated} == set()
    assert [p for p in stated if not (ROOT / p).is_dir()] == []


def _place(name: str, places: dict[str, str]) -> str:
    for package, folder in places.items():
        if name.startswith(package + "."):
            return folder + name[len(package):].replace(".", "/")
    return name.replace(".", "/")


def test_psij_does_not_know_the_model() -> None:
    code = "import psij, sys; print([m for m in sys.modules if m.startswith('sssjob.')])"
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


def test_exported_names_exist() -> None:
    for path in sorted((ROOT / "sssjob").glob("*.py")):
        if path.stem == "__main__":
            continue
        module = import_module(f"sssjob.{path.stem}" if path.stem != "__init__" else "sssjob")
        assert [n for n in getattr(module, "__all__", ()) if not hasattr(module, n)] == []


def test_texts_name_no_place_of_this_machine() -> None:
    place = "/".join(("", "work", ""))
    for top in ("sssjob", "psij", "translators", "schemas", "templates", "tests", "docs", "examples", "bench"):
        for path in (ROOT / top).rglob("*"):
            if path.suffix in TEXT and path.is_file() and not path.is_symlink():
                assert place + "main" not in path.read_text(encoding="utf-8", errors="replace"), path


def test_licence() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
