"""Finding executors and launchers.

Every element of sys.path is searched for a folder ``psij-descriptors``; the modules in it list Descriptors. They are
read at the first question for a name, never when psij is imported; the class itself is loaded when it is asked for.
psij's own folder ``descriptors`` is read too, because in an editable install it is not on sys.path under that name. A
folder or file that others may write to, and a folder found through the implicit current directory, are left out with
a logged warning.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import logging
import os
import stat
import sys
import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from psij._handlers import apart
from psij.descriptor import Descriptor

_log = logging.getLogger("psij")
_FOLDER = "psij-descriptors"
_CLOSE = 0.8        # names at least so much alike are taken for one that is misspelt: slrum for slurm
_OWN_ROOT = Path(__file__).resolve().parent.parent
_lock = threading.RLock()       # one thread searches or loads


@dataclass(slots=True)
class Plugin:
    """A descriptor, where its class must be, and the class or the error once it was asked for."""

    descriptor: Descriptor
    root: Path
    cls: type | None = None
    error: Exception | None = None

    @property
    def file(self) -> Path | None:
        """The file that must hold the class; None when there is none."""
        base = self.root.joinpath(*self.descriptor.cls.split(".")[:-1])
        for file in (base.with_name(base.name + ".py"), base / "__init__.py"):
            if file.is_file():
                return file.resolve()
        return None

    def load(self, kind: type) -> type:
        """The class. Raises the error of its loading, the same one at every call."""
        with _lock:
            if self.error is None and self.cls is None:
                try:
                    self.cls = self._load(kind)
                except Exception as e:
                    self.error = e
        if self.cls is None:
            raise self.error or ImportError(self.descriptor.cls)
        return self.cls

    def _load(self, kind: type) -> type:
        module_name, _, class_name = self.descriptor.cls.rpartition(".")
        file = self.file
        if file is None:
            raise ImportError(f"There is no module {module_name!r} in {self.root}")
        cls = getattr(_load_module(module_name, file), class_name)
        if not (isinstance(cls, type) and issubclass(cls, kind)):
            raise TypeError(f"{self.descriptor.cls} is not a subclass of {kind.__name__}")
        cls.__psij_file__ = str(file)      # type: ignore[attr-defined]
        return cls


def _load_module(name: str, file: Path) -> ModuleType:
    """The module in that file and no other, under its dotted name."""
    if name.split(".")[0] == "psij" and file.is_relative_to(_OWN_ROOT):
        return importlib.import_module(name)
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) and Path(str(loaded.__file__)).resolve() == file:
        return loaded
    return _execute(name, file, register=loaded is None)


def _execute(name: str, file: Path, register: bool) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    if register:
        sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if register:
            sys.modules.pop(name, None)
        raise
    return module


@dataclass(slots=True)
class Registry:
    """All known plugins of one kind (``executor`` or ``launcher``) by lower-case name, versions in order."""

    kind: str
    plugins: dict[str, list[Plugin]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def register(self, descriptor: Descriptor, root: Path) -> None:
        """Add a plugin. The same file again is ignored; another class of the same version raises ValueError."""
        plugin = Plugin(descriptor, Path(root))
        versions = self.plugins.setdefault(descriptor.name.lower(), [])
        for other in versions:
            if other.descriptor.version == descriptor.version:
                if other.file == plugin.file and other.descriptor.cls == descriptor.cls:
                    return
                raise ValueError(f"{self.kind} {descriptor.name} {descriptor.version} is described twice: "
                                 f"{other.descriptor.path} and {descriptor.path}")
        versions.append(plugin)
        versions.sort(key=lambda item: item.descriptor.version)
        for alias in descriptor.aliases or ():
            self.aliases.setdefault(alias.lower(), descriptor.name.lower())

    def names(self) -> set[str]:
        """Names of all plugins, without aliases."""
        _scan()
        return {versions[0].descriptor.name for versions in self.plugins.values() if versions}

    def all(self) -> list[Plugin]:
        """All plugins, by name and version."""
        _scan()
        return [plugin for name in sorted(self.plugins) for plugin in self.plugins[name]]

    def get(self, name: str, constraint: str | None, kind: type) -> tuple[type, Descriptor]:
        """Class and descriptor of the newest version that fits.

        constraint: a PEP 440 specifier such as ``>= 0.0.1``, or None. Raises ValueError when the name is not known, no
        version fits or the plugin cannot be loaded (with the loading error as cause).
        """
        if not isinstance(name, str):
            raise TypeError(f"the name of a plug-in ({self.kind}) is a text, not {name!r}")
        return apart(lambda: self._get(name, constraint, kind))

    def _get(self, name: str, constraint: str | None, kind: type) -> tuple[type, Descriptor]:
        plugin = self._choose(name, constraint)
        try:
            return plugin.load(kind), plugin.descriptor
        except Exception as e:
            raise ValueError(f"Unable to load {self.kind} {name!r} ({plugin.descriptor.cls}): {e}") from e

    def descriptor_of(self, cls: type) -> Descriptor | None:
        """The newest descriptor that names this class."""
        dotted = f"{cls.__module__}.{cls.__qualname__}"
        matching = [plugin for plugin in self.all() if plugin.cls is cls or plugin.descriptor.cls == dotted]
        return matching[-1].descriptor if matching else None

    def _choose(self, name: str, constraint: str | None) -> Plugin:
        _scan()
        key = name.lower()
        versions = self.plugins.get(key) or self.plugins.get(self.aliases.get(key, ""))
        if not versions:
            raise ValueError(self._unknown(name))
        try:
            specifiers = SpecifierSet(constraint or "")
        except InvalidSpecifier as e:
            raise ValueError(f"version_constraint {constraint!r} is none (it is like '>= 0.2, < 1'; PEP 440)") from e
        fitting = [plugin for plugin in versions if specifiers.contains(plugin.descriptor.version, prereleases=True)]
        if not fitting:
            versions_there = ", ".join(str(plugin.descriptor.version) for plugin in versions)
            raise ValueError(f"No version of {self.kind} {name!r} satisfies {constraint!r} (known: {versions_there})")
        return fitting[-1]

    def fits(self, name: str, constraint: str) -> bool:
        """Whether a version of a plugin satisfies a constraint; so it is of one that is not there."""
        try:
            return bool(self._choose(name, constraint))
        except ValueError:
            return self.canonical(name) not in self.plugins

    def canonical(self, name: str) -> str:
        """The name in small letters, that of the plugin for an alias."""
        _scan()
        key = name.lower()
        return key if key in self.plugins else self.aliases.get(key, key)

    def is_own(self, name: str) -> bool:
        """Whether a name, or an alias, is of a plugin that comes with psij."""
        return any(plugin.root == _OWN_ROOT for plugin in self.plugins.get(self.canonical(name), ()))

    def misspelt(self, name: str, *others: str) -> str | None:
        """The name that is meant by one that is no plugin's but much like one, or like one of the others."""
        key = self.canonical(name)
        if key in self.plugins or key in self.aliases or key in others:
            return None
        candidates = [*self.plugins, *self.aliases, *others]
        swapped = [candidate for candidate in candidates if sorted(candidate) == sorted(key)]
        close = swapped or difflib.get_close_matches(key, candidates, 1, _CLOSE)
        return close[0] if close else None

    def _unknown(self, name: str) -> str:
        available = sorted(public for public in self.names() if not public.startswith("_"))
        close = difflib.get_close_matches(name.lower(), [*available, *self.aliases], 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        if not available and not _OWN_ROOT.is_dir():
            hint = f" The package psij lies in {_OWN_ROOT}, and it does not run from an archive: unpack it."
        return f"No such {self.kind}: {name!r}. Available {self.kind}s: {', '.join(available) or 'none'}.{hint}"


EXECUTORS = Registry("executor")
LAUNCHERS = Registry("launcher")

_seen: set[Path] = set()                 # roots already searched
_last_path: list[str] | None = None      # sys.path at the last search


def _scan() -> None:
    """Search what has come to sys.path since the last time."""
    global _last_path
    with _lock:
        if _last_path == sys.path:
            return
        if _last_path is None:
            _read_folder(_OWN_ROOT, Path(__file__).resolve().parent / "descriptors")
        _last_path = list(sys.path)
        for element in _last_path:
            _scan_element(element)


def _scan_element(element: str) -> None:
    root = Path(element).resolve()
    if not element:
        if (root / _FOLDER).is_dir() and root not in _seen:
            _log.warning("%s/%s is not read: the current directory is on sys.path only implicitly", root, _FOLDER)
        return
    if root not in _seen:
        _seen.add(root)
        _warn_of_other_psij(root)
        _read_folder(root, root / _FOLDER)


def _warn_of_other_psij(root: Path) -> None:
    """Say so when psij-python is installed there. (importlib.metadata would cost more than all the rest.)"""
    metadata_folder = next(root.glob("psij_python-*.*-info"), None)
    # A wheel of ``python -m psij alias`` has no code
    if metadata_folder is not None and "+sssjob" not in metadata_folder.name:
        version = metadata_folder.stem.partition("-")[2]
        warnings.warn(f"psij-python {version} is installed in {root}, beside the psij of sssjob. Both have a package "
                      "named psij, so that each may run the other's code: uninstall one of them, or use an environment "
                      "for each.", RuntimeWarning, stacklevel=2)


def _read_folder(root: Path, folder: Path) -> None:
    if not folder.is_dir() or _unsafe(folder):
        return
    for file in sorted(folder.glob("*.py")):
        if not _unsafe(file):
            _read_descriptors(root, file)


def _unsafe(path: Path) -> bool:
    if os.name == "posix" and path.stat().st_mode & stat.S_IWOTH:
        _log.warning("%s is not read: everybody may write to it", path)
        return True
    return False


def _read_descriptors(root: Path, file: Path) -> None:
    """Register what a descriptor module lists. Errors are logged: they concern this module only."""
    try:
        module = _execute(f"_psij_descriptors_{file.stem}", file, register=False)
    except Exception:
        _log.warning("The descriptor module %s cannot be read", file, exc_info=True)
        return
    for registry, variable in ((EXECUTORS, "__PSI_J_EXECUTORS__"), (LAUNCHERS, "__PSI_J_LAUNCHERS__")):
        _register_all(registry, getattr(module, variable, ()), root, file)


def _register_all(registry: Registry, descriptors: Iterable[Any], root: Path, file: Path) -> None:
    for descriptor in descriptors:
        if not isinstance(descriptor, Descriptor):
            _log.warning("%s: %r is not a Descriptor and is skipped", file, descriptor)
            continue
        descriptor.path = file
        try:
            registry.register(descriptor, root)
        except (ValueError, TypeError) as e:
            _log.warning("%s", e)
