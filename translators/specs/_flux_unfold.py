"""A jobspec of Flux as options of flux-batch, for the dialect ``flux`` to understand.

Source: RFC 14, 25, 26 and 37; which option a key comes from was seen with ``flux submit --dry-run`` of flux-core 0.88.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from sssjob.document.element import new_property
from sssjob.document.model import File, Job, TaskGroup
from sssjob.findings import Policy
from sssjob.lrm.flux.jobspec import Layout, read_layout, read_task
from sssjob.translators.scripts.base import APPROXIMATED, DROPPED, Reading
from sssjob.translators.specs._flux_constraints import as_text

#: Id of the File.
SCRIPT: Final = "Script"
#: Where a batch script lies when the job runs, and the command before it (RFC 37, flux-batch).
PLACE: Final = "{{tmpdir}}/script"
NEST: Final = ("flux", "broker")

Options = list[tuple[str, "str | None"]]
#: Key of the shell's options, stream, option.
STREAMS: Final = (("input", "stdin", "--input"), ("output", "stdout", "--output"), ("output", "stderr", "--error"))


def _said(value: object) -> str:
    """A value as ``--setattr`` takes it: text as it is where JSON would not read it otherwise."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _taken(outer: dict[str, Any], key: str) -> dict[str, Any]:
    """A copy of the object at a key, which is taken out; what is no object stays."""
    return dict(outer.pop(key)) if isinstance(outer.get(key), dict) else {}


class Unfold:
    """A jobspec that a judge has let pass."""

    def __init__(self, reading: Reading, value: dict[str, Any]) -> None:
        self.reading, self.value = reading, value
        self.made: Options = []
        self.copies: int | None = None      # of the command, where there are fewer than slots
        self.slots: Layout | None = None

    def all(self) -> tuple[Options, list[str], dict[str, File]]:
        """(options, command, files). Raises JobspecError for what no option can say."""
        words, count = read_task(self.value["tasks"])
        command, files = list(words), dict[str, File]()
        attributes = dict(self.value["attributes"] or {})
        system, user = _taken(attributes, "system"), _taken(attributes, "user")
        shell = _taken(system, "shell")
        options = _taken(shell, "options")
        script = _script(system)
        nested = script is not None and PLACE in command
        self._layout(count, nested and options.get("per-resource") == {"type": "node"})
        if nested and script is not None:
            at = command.index(PLACE)
            broker = command[len(NEST):at] if tuple(command[:len(NEST)]) == NEST else []
            self.made += [("--broker-opts", word) for word in broker]
            command = [f"#{SCRIPT}", *command[at + 1:]]
            files[SCRIPT] = script
            del system["files"]["script"]
            if not system["files"]:
                del system["files"]
            if options.get("per-resource") == {"type": "node"}:
                del options["per-resource"]
        self._system(system)
        self._options(options)
        for prefix, more in (("shell.", shell), ("", system), ("user.", user), (".", attributes)):
            self.made += [("--setattr", f"{prefix}{key}={_said(more[key])}") for key in more]
        return self.made, command, files

    def tell(self, subject: str, message: str) -> None:
        """Tell of what is only nearly the same."""
        self.reading.findings.add(APPROXIMATED, subject, message, severity="info", path=f"/{subject}")

    def lose(self, subject: str, message: str, path: str) -> None:
        """Tell of what is not carried. path: where it stands."""
        self.reading.findings.add(DROPPED, subject, message, policy=self.reading.context.policy or Policy.WARN,
                                  path=path)

    def _layout(self, count: dict[str, int], nested: bool) -> None:
        layout = read_layout(self.value["resources"])
        self._others(layout.nodes is not None)
        tasks = layout.total if nested or "total" not in count else count["total"]
        tasks *= count.get("per_slot", 1)
        if layout.nodes is not None:
            self.made.append(("--nodes", str(layout.nodes)))
        if layout.total > tasks:
            self.copies, self.slots = tasks, layout
            tasks = layout.total
        self.made.append(("--nslots", str(tasks)))
        self.made += [(name, str(n)) for name, n in (
            ("--cores-per-slot", layout.cores), ("--gpus-per-slot", layout.gpus)) if n]
        if layout.exclusive:
            self.made.append(("--exclusive", None))
        if not layout.cores:
            self.tell("resources", "resources: a slot without cores is read as one of no stated number of them")

    def _others(self, on_nodes: bool) -> None:
        """Tell of what a slot has beside cores and GPUs: no option says it."""
        slot = self.value["resources"][0]["with"][0] if on_nodes else self.value["resources"][0]
        for vertex in slot["with"]:
            if (kind := vertex["type"]) not in ("core", "gpu"):
                self.lose(kind, f"{kind}: {vertex['count']} of each slot are not taken, only cores and GPUs are",
                          "/resources")

    def said_apart(self, job: Job) -> None:
        """Say cores and GPUs of all slots as those of the job, and only as many tasks as are started: options of Flux
        know slots alone."""
        if self.copies is None or self.slots is None:
            return
        group = next(iter(job.task_groups), None)
        if group is not None:
            job.items.remove(group)
        requested = job.ensure("Requested")
        requested.add_as_is("Processors", self.slots.total * (self.slots.cores or 1))
        if self.slots.gpus:
            requested.add_as_is("Resource", Decimal(self.slots.total * self.slots.gpus), name="GPU")
        if self.copies > 1:
            job.items.append(TaskGroup([new_property("TaskCount", self.copies)]))

    def _system(self, system: dict[str, Any]) -> None:
        """Takes out what has an option."""
        limit = system.pop("duration", 0)
        if limit < 0:
            self.lose("Duration", f"Duration: {limit} is no limit", "/attributes/system/duration")
        if limit > 0:
            self.made.append(("--time-limit", f"{int(limit) if limit == int(limit) else limit}s"))
        for key, name in (("queue", "--queue"), ("bank", "--bank"), ("cwd", "--cwd")):
            if isinstance(system.get(key), str) and system[key]:
                self.made.append((name, system.pop(key)))
        job = system.get("job")
        if isinstance(job, dict) and isinstance(job.get("name"), str) and job["name"]:
            self.made.append(("--job-name", job["name"]))
            system["job"] = {key: more for key, more in job.items() if key != "name"}
            if not system["job"]:
                del system["job"]
        self._environment(system)
        self._dependencies(system)
        if "constraints" in system:
            try:
                self.made.append(("--requires", as_text(system["constraints"])))
                del system["constraints"]
            except ValueError:
                pass        # stays an attribute

    def _environment(self, system: dict[str, Any]) -> None:
        environment = system.pop("environment", None)
        if not isinstance(environment, dict):
            return
        self.made.append(("--env", "-*"))
        for name, text in environment.items():
            if isinstance(text, str) and re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
                self.made.append(("--env", f"{name}={text.replace('$', '$$')}"))
            elif "." in name or "=" in name or not name:
                self.lose(name, f"{name!r} is no name of a variable", "/attributes/system/environment")
            else:
                self.made.append(("--setattr", f"environment.{name}={_said(text)}"))

    def _dependencies(self, system: dict[str, Any]) -> None:
        dependencies = system.get("dependencies")
        if not isinstance(dependencies, list) or not all(
                isinstance(d, dict) and isinstance(d.get("scheme"), str) and isinstance(d.get("value"), str)
                and all(isinstance(v, str) for v in d.values()) for d in dependencies):
            return
        del system["dependencies"]
        for dependency in dependencies:
            more = "&".join(f"{k}={v}" for k, v in dependency.items() if k not in ("scheme", "value"))
            value = f":{dependency['value']}" if dependency["value"] or dependency["scheme"] != "singleton" else ""
            self.made.append(("--dependency", f"{dependency['scheme']}{value}{'?' + more if more else ''}"))

    def _options(self, options: dict[str, Any]) -> None:
        """Options of the shell: streams, limits, a signal; all others as they are."""
        for side, stream, name in STREAMS:
            place = options.get(side)
            stream_place = place.get(stream) if isinstance(place, dict) else None
            if (not isinstance(stream_place, dict) or stream_place.get("type") != "file"
                    or not isinstance(stream_place.get("path"), str)):
                continue
            self.made.append((name, stream_place["path"]))
            options[side] = {k: v for k, v in options[side].items() if k != stream}
            more = {k: v for k, v in stream_place.items() if k not in ("type", "path")}
            if more:
                options[side][stream] = more
        limits = options.get("rlimit")
        if isinstance(limits, dict) and all(isinstance(v, int) for v in limits.values()):
            del options["rlimit"]
            self.made += [("--rlimit", f"{name}={number}") for name, number in limits.items()]
        warning = options.get("signal")
        if isinstance(warning, dict) and warning.keys() == {"signum", "timeleft"} and all(
                isinstance(v, int) for v in warning.values()):
            del options["signal"]
            self.made.append(("--signal", f"{_signal_name(warning['signum'])}@{warning['timeleft']}s"))
        for key, value in _flat(options):
            self.made.append(("--setopt", f"{key}={_said(value)}"))


def _flat(options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """``output`` is parted into its keys, for some of them have meanings."""
    for key, value in options.items():
        if key in ("output", "input") and isinstance(value, dict):
            for name, inner in value.items():
                if isinstance(inner, dict):
                    yield from ((f"{key}.{name}.{k}", v) for k, v in inner.items())
                else:
                    yield f"{key}.{name}", inner
        else:
            yield key, value


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return str(number)


def _script(system: dict[str, Any]) -> File | None:
    """The batch script among the files of a jobspec."""
    files = system.get("files")
    script = files.get("script") if isinstance(files, dict) else None
    if not isinstance(script, dict) or not isinstance(script.get("data"), str):
        return None
    system["files"] = dict(system["files"])
    if script.get("encoding", "utf-8") == "utf-8":
        return File(SCRIPT, script["data"])
    return File(SCRIPT, script["data"], "base64") if script["encoding"] == "base64" else None
