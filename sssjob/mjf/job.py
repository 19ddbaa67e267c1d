"""Connects the job object with Machine/Job Features: takes from a job the values that a provider publishes, and writes
into a job what its pilot reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Final

from sssjob.document.element import Property
from sssjob.document.lexical import LexicalError
from sssjob.document.units import to_bytes
from sssjob.document.values import resource_limit
from sssjob.mjf.keys import KEYS
from sssjob.mjf.status import Figures, Usage
from sssjob.mjf.values import MJFValueError, Value, read_value, write_value

if TYPE_CHECKING:
    from sssjob.document.model import Job, JobDefaults

__all__ = ["misstated", "record_pilot", "record_usage", "values_of"]

#: key -> (property of Requested, ResourceLimit): of both the first that is known
_LIMITS: Final = {"wall_limit_secs": ("Duration", ""), "cpu_limit_secs": ("", "CPUTime"),
                  "max_rss_bytes": ("Memory", "MaxMemorySize"), "max_swap_bytes": ("Swap", "MaxSwap"),
                  "scratch_limit_bytes": ("Disk", "MaxDisk")}


def values_of(job: Job, defaults: JobDefaults | None = None, *, granted: Mapping[str, Value | None] | None = None
              ) -> dict[str, Value]:
    """The keys that a job object knows, in the units of the note.

    granted: what the resource manager has granted on this node (allocated_cpu, job_id, jobstart_secs, total_cpu ...),
    which wins over what was asked for; None takes a key away. What is not known is left out, and so is a limit of 0.
    cpu_limit_secs is never made up from wall time and processors; a ResourceLimit has no unit and counts bytes.
    """
    from sssjob.document.inherit import effective

    whole = effective(job, defaults).fold()
    values: dict[str, Value] = {}
    for name, value in (*_facts(whole), *_limits(whole), *_extensions(whole), *(granted or {}).items()):
        if value is None:
            values.pop(name, None)
            continue
        try:
            write_value(KEYS[name], value)
        except MJFValueError:
            continue                    # a value that no file can hold is not known
        values[name] = value
    return values


def misstated(job: Job) -> Iterator[tuple[str, str]]:
    """(name, reason) of the Extensions of type MJF that a job states and no provider can say: not a key, the pilot's
    own, or a value of another form."""
    for p in job.all("Extension"):
        if p.get("type") != "MJF":
            continue
        name = str(p.get("name"))
        key = KEYS.get(name)
        if key is None:
            yield name, "is no key of Machine/Job Features"
        elif key.area == "status":
            yield name, "is said by a pilot, not by a job"
        else:
            try:
                read_value(key.kind, p.text)
            except MJFValueError as error:
                yield name, str(error)


def _facts(job: Job) -> Iterator[tuple[str, Value | None]]:
    for p in job.delivered.all("Processors") if job.delivered is not None else ():
        name = {"Configured": "total_cpu", "Dedicated": "allocated_cpu", None: "allocated_cpu"}.get(p.get("context"))
        if name and p.get("metric") is None:
            yield name, int(p.text) if p.text.isdigit() else None
    for name, tag in (("job_id", "Id"), ("jobstart_secs", "StartTime")):
        value = job.value(tag)
        if isinstance(value, int | str):
            yield name, value


def _limits(job: Job) -> Iterator[tuple[str, Value | None]]:
    from sssjob.request import least_request

    requested = least_request(job.requested) if job.requested else None
    limits = {str(p.get("name")).lower(): p for p in job.all("ResourceLimit") if p.get("type") != "Soft"}
    for name, (tag, limit) in _LIMITS.items():
        asked = requested.first(tag) if requested is not None and tag else None
        if asked is not None and asked.property.get("metric") is None:
            yield name, _amount(asked.property)
        elif limit.lower() in limits:
            value = resource_limit(limits[limit.lower()].text)
            yield name, value if isinstance(value, int) else None


def _amount(p: Property) -> int | None:
    """Seconds of a Duration, else bytes, a fraction of one dropped."""
    try:
        number = Decimal(p.text)
        return int(number if p.tag == "Duration" else to_bytes(number, p.get("units")))
    except (LexicalError, ArithmeticError):
        return None


def _extensions(job: Job) -> Iterator[tuple[str, Value | None]]:
    """``<Extension type="MJF" name="hs06_job">80</Extension>``, of the job or delivered."""
    for scope in (job, job.delivered):
        for p in scope.all("Extension") if scope is not None else ():
            key = KEYS.get(str(p.get("name")))
            if p.get("type") == "MJF" and key is not None and key.area != "status":
                try:
                    yield key.name, read_value(key.kind, p.text)
                except MJFValueError:
                    continue            # told by ``misstated``


def record_usage(job: Job, usage: Usage, last: Figures | None = None) -> None:
    """Write what a pilot used into Delivered: mean and greatest number of cores; last: the wastes at the last
    snapshot, for a job that was killed or drained."""
    if usage.mean is None or usage.greatest is None:
        return
    delivered = job.ensure("Delivered")
    delivered.items = [i for i in delivered.items if not (isinstance(i, Property) and _ours(i))]
    for metric, number in (("Average", usage.mean), ("Max", usage.greatest)):
        delivered.add_as_is("Processors", _rounded(number), metric=metric)
    for name in ("kill_waste", "draining_waste"):
        waste = getattr(last, name, None)
        if waste is not None:
            delivered.add_as_is("Extension", str(_rounded(waste)), name=name, type="MJF")


def record_pilot(job: Job, pilot_metadata: Mapping[str, float], ended_badly: bool) -> None:
    """Write what the metadata of a final status has of a pilot (``pilot``) into Delivered; the wastes of a job that was
    killed or drained."""
    usage = Usage(pilot_metadata.get("cores_max"))
    usage.take(0.0, pilot_metadata.get("cores_mean"))
    usage.greatest = pilot_metadata.get("cores_max", usage.greatest)
    wastes = Figures(None, None, pilot_metadata.get("draining_waste"), pilot_metadata.get("kill_waste"))
    record_usage(job, usage, wastes if ended_badly else None)


def _ours(p: Property) -> bool:
    """Whether ``record_usage`` writes such a property."""
    if p.tag == "Processors":
        return p.get("metric") in ("Average", "Max")
    return p.tag == "Extension" and p.get("type") == "MJF" and str(p.get("name")).endswith("_waste")


def _rounded(number: float) -> Decimal:
    """To thousandths, without zeros at the end."""
    rounded = Decimal(repr(float(number))).quantize(Decimal("0.001"), ROUND_HALF_UP).normalize()
    return rounded.quantize(Decimal(1)) if rounded == rounded.to_integral_value() else rounded
