"""What settings mean for a run: the configuration of an executor, and what is filled in where a document is silent."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psij
from psij.executors.batch._config import BatchSchedulerExecutorConfig
from psij.executors.batch._host import Host
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.conversion.settings import OF_SITES, SETTINGS, Layer, Settings, Value, checked, file_layers, variables_layer
from sssjob.document.element import new_property
from sssjob.document.inherit import effective
from sssjob.document.model import Document
from sssjob.errors import AccessError, UsageError
from sssjob.findings import Findings, escape

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.run.journal import Entry

__all__ = ["complete", "config_of", "following", "load_settings", "pinned", "reached", "site_layer"]

#: Setting -> member of the configuration of batch executors.
_MEMBERS: Final = {"polling_interval": "queue_polling_interval", "command_timeout": "command_timeout",
                   "submit_commands": "submit_commands", "accounting_delay": "accounting_delay",
                   "lost_after": "lost_after", "work_directory": "work_directory", "launcher": "launcher",
                   "ssh_host": "ssh_host",
                   "ssh_setup": "ssh_setup", "ssh_directory": "ssh_directory",
                   "ssh_staging_bytes": "staging_bytes"}
_OF_SGE: Final = ("parallel_environment", "parallel_environments", "memory_resource", "gpu_resource",
                  "exclusive_resource")
_OF_COBALT: Final = ("cores_per_node",)
#: The same of the executors that speak HTTP.
_OF_REST: Final = {"facility": "url", "token_file": "token_file", "lost_after": "lost_after",
                   "polling_interval": "polling_interval", "command_timeout": "request_timeout"}
_OF_IRI: Final = {**_OF_REST, "resource": "resource"}
_OF_ARC: Final = {**_OF_REST, "accounting_delay": "accounting_delay", "work_directory": "work_directory"}
#: Properties that are filled in: property -> setting.
_FILLED: Final = {"Queue": "queue", "Project": "account"}
_HERE: Final = ("local", "fluxexec")        # no queues, no accounts
#: How a resource manager is asked, which may change while a job runs.
_ASKING: Final = ("polling_interval", "command_timeout", "submit_commands", "accounting_delay", "lost_after")
_PINNED: Final = "settings.json"            # in the folder of a submission, of one in a journal of version 7
_LONGEST: Final = 1 << 16


def load_settings(site: tuple[Site, str] | None = None, options: Mapping[str, tuple[Any, str]] | None = None,
                  environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings that hold: options, then variables, then the configuration of the user and of the system. A site
    profile counts just below the place that names it.

    site: a profile that an option names, with its path. options: name of a setting -> value and name of the option.
    Raises SettingsError, SiteError, AccessError.
    """
    layers: list[Layer] = []
    for layer in (*file_layers(environment), variables_layer(environment)):
        named = layer.values.get("site")
        if named is not None and site is None:
            layers.append(site_layer(*_read_site(named, environment)))
        layers.append(layer)
    if site is not None:
        layers.append(site_layer(*site))
    if options:
        layers.append(Layer({name: Value(*setting) for name, setting in options.items()}))
    return Settings(layers[::-1])


def _read_site(named: Value, environment: Mapping[str, str]) -> tuple[Site, str]:
    from sssjob.conversion.settings import site_file
    from sssjob.conversion.site import read_site

    path = site_file(str(named.value), environment)
    try:
        return read_site(Path(path).read_bytes(), path), path
    except OSError as error:
        raise AccessError(path, f"{error.strerror or error} (site, as {named.source} says)") from error


def site_layer(site: Site, path: str) -> Layer:
    """The settings of a site profile: its table ``run``, the executor of its manager, and the parallel environment that
    it prefers. Raises SettingsError."""
    layer = checked(site.run, lambda keys: f"{path} (run)")
    implied = {}
    if site.manager is not None:
        implied["executor"] = Value(site.manager, f"{path} (manager)")
    if site.sge.pe and not any("parallel_environment" in values for values in (layer.values, *layer.of.values())):
        implied["parallel_environment"] = Value(next(iter(site.sge.pe)), f"{path} (sge.pe)")
        implied["parallel_environments"] = Value(site.sge.rules(), f"{path} (sge.pe)")
    for name in OF_SITES.keys() - _OF_SGE if site.ssh is not None else ():
        if (value := getattr(site.ssh, name.removeprefix("ssh_"))) is not None:
            implied[name] = Value(value, f"{path} ({name.replace('_', '.')})")
    return Layer({**implied, **layer.values}, layer.of)


def config_of(executor: str, stated: Mapping[str, Any]) -> psij.JobExecutorConfig | None:
    """The configuration of an executor with those settings; None where they say nothing of it."""
    members: dict[str, Any] = {_MEMBERS[name]: value for name, value in stated.items() if name in _MEMBERS}
    if executor.lower() in _HERE:
        if "ssh_host" in members:
            raise UsageError(f"executor {executor} runs jobs on this machine, and not on {members['ssh_host']} behind "
                             "SSH")
        return None
    if executor.lower() in ("arc", "iri") and "ssh_host" in members:
        raise UsageError(f"executor {executor} speaks to its service itself, and not through {members['ssh_host']} by "
                         "SSH")
    if executor.lower() == "iri":
        from psij.executors.iri import IRIExecutorConfig

        return IRIExecutorConfig(**{_OF_IRI[name]: value for name, value in stated.items() if name in _OF_IRI})
    if executor.lower() == "arc":
        from psij.executors.arc import ARCExecutorConfig

        return ARCExecutorConfig(**{_OF_ARC[name]: _expanded(name, value) for name, value in stated.items()
                                    if name in _OF_ARC})
    if "work_directory" in members and "ssh_host" not in members:
        members["work_directory"] = _expanded("work_directory", members["work_directory"])
    launcher = members.pop("launcher", None)
    kind, own = _kind(executor)
    members |= {name: stated[name] for name in own if name in stated}
    if members.get("parallel_environment") not in members.get("parallel_environments", {}):     # another one is wanted
        members.pop("parallel_environments", None)
    if not members and launcher is None:
        return None
    config = kind(**members)
    config.launcher = launcher
    return config


def _expanded(name: str, value: Any) -> Any:
    return os.path.abspath(os.path.expanduser(value)) if name == "work_directory" else value


def reached(backend: BatchSchedulerExecutor) -> Host:
    """The host of an executor, which answers. Raises AccessError where it does not."""
    try:
        _ = backend.host.home
    except OSError as error:
        raise AccessError(backend.host.name, f"cannot be reached: {escape(str(error))}") from error
    return backend.host


def _kind(executor: str) -> tuple[type[BatchSchedulerExecutorConfig], tuple[str, ...]]:
    """The class of the configuration of an executor, and the settings that only this one has."""
    if executor.lower() in ("sge", "gridengine"):
        from psij.executors.batch.sge import SGEExecutorConfig

        return SGEExecutorConfig, _OF_SGE
    if executor.lower() == "cobalt":
        from psij.executors.batch.cobalt import CobaltExecutorConfig

        return CobaltExecutorConfig, _OF_COBALT
    return BatchSchedulerExecutorConfig, ()


def complete(document: Document, executor: str, settings: Settings, findings: Findings) -> None:
    """Fill in the queue and the account of jobs that name none, each with a finding (SSS503) that says where it is
    from. Jobs of this machine have neither."""
    for tag, name in _FILLED.items():
        value = settings.get(name, executor)
        if value.value is None or executor.lower() in _HERE:
            continue
        filled = 0
        for job, defaults in document.jobs():
            if _names(effective(job, defaults).fold(), tag):
                continue
            job.items.append(new_property(tag, str(value.value)))
            filled += 1
        if filled:
            findings.add("SSS503", tag, f"{tag} {value.value} of {filled} job{'s' * (filled > 1)} is from "
                         f"{value.source}", severity="info")


def _names(scope: Any, tag: str) -> bool:
    """Whether a job, or anything in it, has a property."""
    return any(getattr(item, "tag", None) == tag or (hasattr(item, "items") and _names(item, tag))
               for item in scope.items)


def pinned(stated: Mapping[str, Any], backend: psij.JobExecutor | None = None) -> dict[str, Any]:
    """The settings with which a submission is made, as the journal keeps them, so that each client finds its files, on
    a host behind SSH also while that is out of reach. backend: its executor. Raises AccessError."""
    if not isinstance(backend, BatchSchedulerExecutor) or backend.host.is_here:
        return dict(stated)
    host = reached(backend)
    places = {"work_directory": str(backend.config.work_directory),
              "ssh_directory": backend.config.ssh_directory or "~"}
    return {**stated, **{name: str(host.place(path)) for name, path in places.items()}}


def following(entry: Entry, stated: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with which a submission is followed, or made once more: those that it was made with, but for how
    its resource manager is asked, which the present ones say. stated: the present ones."""
    if entry.pinned is None:
        entry.pinned = _stored(entry)
    return {**entry.pinned, **{name: value for name, value in stated.items() if name in _ASKING}}


def _stored(entry: Entry) -> dict[str, Any]:
    """The settings with which a submission was made; those of an earlier version's are in a file beside its scripts."""
    all_settings = {**SETTINGS, **OF_SITES}
    with suppress(OSError, ValueError, AttributeError):
        stored = entry.settings or json.loads((entry.folder / _PINNED).read_bytes()[:_LONGEST])
        return {name: all_settings[name].check(value) for name, value in stored.items() if name in all_settings}
    return {}
