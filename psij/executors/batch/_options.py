"""What a job says, as options of a submit command: its name, the members of its specification, its custom attributes.

Nothing here knows a resource manager; ``lrm`` and the executors make their directives of it.
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta

from psij.exceptions import InvalidJobException
from psij.executors.batch._host import HERE, Host
from psij.job_spec import JobSpec
from psij.resource_spec import ResourceSpecV1
from sssjob.lrm.clocks import clock
from sssjob.templates.quoting import Directive

#: The custom attribute whose value ``custom`` says that the options for resources and the time limit stand among the
#: custom attributes: the resources of the specification then only tell how many processes the launcher starts.
RESOURCES = "psij.resources"
#: A custom attribute: ``native`` says of a job that does not inherit the submitter's environment that it keeps what the
#: resource manager itself puts there (HOME, PATH ...); without it such a job finds few other variables than its own.
ENVIRONMENT = "psij.environment"
#: A custom attribute: ``native`` says that exit codes by which a program gives its resource manager orders reach it.
EXIT = "psij.exit"
#: A custom attribute: comments that the resource manager reads in the script, a line each, such as ``#BB`` and ``#DW``.
COMMENTS = "psij.comments"

_COMMENT = re.compile(r"#[A-Z]+[ \t][^\0\r\n]*")
_UNFIT = re.compile(r"[^\w.+=@-]+")
_log = logging.getLogger("psij")
_warned: set[tuple[str, object]] = set()


def warn_once(about: object, message: str, *arguments: object) -> None:
    """Log a warning, once in this process of the same thing."""
    if (message, about) not in _warned:
        _warned.add((message, about))
        _log.warning(message, *arguments)


def limit_text(duration: timedelta) -> str:
    """``HH:MM:SS``, rounded up."""
    return clock(-int(-duration.total_seconds() // 1))


def job_name(spec: JobSpec, longest: int) -> Directive:
    """The name: the one given, as it is, or one made of the executable's. The option is ``name``.

    longest: bytes that the resource manager takes; more are refused.
    """
    if spec._name is not None:
        if len(os.fsencode(spec._name)) > longest:
            raise InvalidJobException(f"name has more than {longest} bytes, which is the most that can be taken")
        return Directive("name", spec._name, "name")
    return Directive("name", _UNFIT.sub("_", os.path.basename(spec.executable or ""))[:60] or "job", "executable")


def member_directives(spec: JobSpec, options: Iterable[tuple[str, str]]) -> list[Directive]:
    """Options for the members of the attributes that are stated. options: option and member, as ``q``, ``queue_name``.
    """
    return [Directive(option, getattr(spec.attributes, member), f"attributes.{member}")
            for option, member in options if getattr(spec.attributes, member, None) is not None]


def custom_directives(spec: JobSpec, prefix: str, refused: Mapping[str, str]) -> list[Directive]:
    """Options from the custom attributes ``<prefix>.<option>``.

    True makes an option without a value, None and False none at all; text and numbers are values; a list or a tuple
    makes the option once for each of its members. refused: options that cannot be given, with the reason.
    """
    custom = spec.attributes.custom_attributes if spec.attributes is not None else None
    directives = []
    for name, stated in (custom or {}).items():
        owner, _, option = name.partition(".")
        if (owner != prefix and owner.lower() != prefix) or not option:
            continue
        field = f"custom attribute {name!r}"
        if option in refused:
            raise InvalidJobException(f"{field} cannot be used: {refused[option]}")
        if type(stated) is str:
            directives.append(Directive(option, stated, field))
            continue
        for value in stated if isinstance(stated, (list, tuple)) else (stated,):
            if value is None or value is False:
                continue
            if value is not True and not isinstance(value, (str, int, float)):
                raise InvalidJobException(f"{field} must be text, a number, True, False or a list of these, not "
                                          f"{type(value).__name__}")
            directives.append(Directive(option, None if value is True else str(value), field))
    return directives


def in_reservation(directives: list[Directive], reservation: Directive) -> list[Directive]:
    """The directives with that for a reservation. Where reservations are queues it takes the place of queue_name, which
    is logged once in this process."""
    replaced = [directive for directive in directives
                if (directive.option, directive.field) == (reservation.option, "attributes.queue_name")]
    for directive in replaced:
        warn_once(reservation.value, "attributes.queue_name %r is not used: reservation %r is a queue, and a job is "
                  "in one", directive.value, reservation.value)
    return [directive for directive in directives if directive not in replaced] + [reservation]


def local_time(at: float, form: str, host: Host = HERE) -> str | None:
    """A time of the future as local time, rounded up to a second; None where the clock shows it twice, and of another
    host, of whose zone nothing is known.

    at: in seconds since the epoch. form: as of strftime(3), of full minutes or seconds.
    """
    if not host.is_here:
        return None
    at = math.ceil(at)
    shown = time.strftime(form, time.localtime(at))
    again = (time.strftime(form, time.localtime(at + shift)) for shift in (-7200, -3600, -1800, 1800, 3600, 7200))
    return None if shown in again else shown


def requested(spec: JobSpec) -> ResourceSpecV1 | None:
    """The resources that options are to be made of: none where custom attributes ask for them (see RESOURCES)."""
    asked = resources(spec)
    return None if asks_itself(spec) else asked


def time_limit(spec: JobSpec) -> timedelta | None:
    """The time limit that an option is to be made of: none where custom attributes ask for it (see RESOURCES)."""
    return None if spec.attributes is None or asks_itself(spec) else spec.attributes.duration


def asks_itself(spec: JobSpec) -> bool:
    """Whether the custom attributes of a job ask for its resources and its time limit (see RESOURCES)."""
    return custom_of(spec).get(RESOURCES) == "custom"


def custom_of(spec: JobSpec) -> Mapping[str, object]:
    """The custom attributes of a specification, none where it has none."""
    return (spec.attributes.custom_attributes if spec.attributes is not None else None) or {}


def appended(spec: JobSpec) -> list[str]:
    """Which of ``stdout`` and ``stderr`` go on where their files end, by the custom attributes ``psij.stdout_mode`` and
    ``psij.stderr_mode`` (``truncate``, ``append``). Raises InvalidJobException."""
    streams = []
    for stream in ("stdout", "stderr"):
        mode = custom_of(spec).get(f"psij.{stream}_mode", "truncate")
        if mode not in ("truncate", "append"):
            raise InvalidJobException(f"custom attribute 'psij.{stream}_mode' must be one of truncate, append, not "
                                      f"{mode!r}")
        if mode == "append":
            streams.append(stream)
    return streams


def resources(spec: JobSpec) -> ResourceSpecV1 | None:
    """The resources asked for. Raises InvalidJobException for a form that is not known."""
    if spec.resources is None or (isinstance(spec.resources, ResourceSpecV1) and spec.resources.version == 1):
        return spec.resources
    raise InvalidJobException(f"resources of version {spec.resources.version} are not understood (known: 1)")


def keeps_environment(spec: JobSpec) -> bool:
    """Whether nothing is to be taken out of the environment in which the script of a job is started. Raises
    InvalidJobException."""
    return _is_native(spec, ENVIRONMENT) or spec.inherit_environment


def orders_by_exit(spec: JobSpec) -> bool:
    """Whether an exit code of a job is an order to the resource manager. Raises InvalidJobException."""
    return _is_native(spec, EXIT)


def comments(spec: JobSpec) -> list[str]:
    """Comments that the resource manager reads in the script. Raises InvalidJobException for a line that is none."""
    lines = str(custom_of(spec).get(COMMENTS, "")).split("\n") if COMMENTS in custom_of(spec) else []
    for line in lines:
        if not _COMMENT.fullmatch(line):
            raise InvalidJobException(f"custom attribute {COMMENTS!r} must be lines such as '#BB capacity=1TB', not "
                                      f"{line!r}")
    return lines


def _is_native(spec: JobSpec, name: str) -> bool:
    stated = custom_of(spec).get(name)
    if stated not in (None, "native"):
        raise InvalidJobException(f"custom attribute {name!r} must be native, not {stated!r}")
    return stated is not None


def share(total: int, parts: int) -> int:
    """A part of a total, rounded up."""
    return -(-total // parts)


def directory(spec: JobSpec, host: Host = HERE) -> str:
    """The job's directory on a host: absolute; without one our own, on another host the home directory."""
    if spec.directory is None:
        return os.getcwd() if host.is_here else host.home
    path = at_home(str(spec.directory), host)
    return os.path.abspath(path) if host.is_here else str(host.place(path))


def at_home(path: str, host: Host) -> str:
    """A path on a host, with the home directory in place of a tilde."""
    return host.home + path[1:] if path == "~" or path.startswith("~/") else path
