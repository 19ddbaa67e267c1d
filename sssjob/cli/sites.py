"""``sssjob sites``: the profiles of sites, what is wrong in them, and whether their resource managers answer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import click

from sssjob.cli._complete import executors, files
from sssjob.cli._files import emit, read_bytes
from sssjob.cli._findings import problem
from sssjob.cli._options import output_option
from sssjob.cli._profiles import load_site, profiles
from sssjob.cli._seconds import MORE_THAN_NONE
from sssjob.cli._tables import table
from sssjob.cli.executors import trouble
from sssjob.errors import AccessError, SSSJobError, UsageError
from sssjob.findings import escape
from sssjob.lrm.reasons import ALIASES, EXECUTORS

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.conversion.site_drafting import SiteFacts

__all__ = ["command"]

_MOST_ENVIRONMENTS = 100    # parallel environments that are asked about
_LONGEST_NAME = 200
#: What a host says of its zone: a name, or the file of it.
_ZONE = ("/bin/sh", "-c", 'if [ -n "$TZ" ]; then echo "$TZ"; else readlink -f /etc/localtime || :; fi')
_PATIENCE_S = 10.0          # how long each resource manager may take to answer


@dataclass(frozen=True, slots=True)
class _Row:
    """One profile. works: whether its resource manager answers here; why: what is wrong with the profile or with the
    manager, empty where nothing is."""

    site: str
    manager: str
    machine: str
    file: str
    works: bool
    why: str


@click.group("sites", invoke_without_command=True)
@click.option("--timeout", type=MORE_THAN_NONE, default=_PATIENCE_S, metavar="SECONDS",
              help="The longest to wait for each manager (default: 10).")
@click.option("--json", "as_json", is_flag=True, help="A record a site.")
@click.pass_context
def command(context: click.Context, timeout: float, as_json: bool) -> int:
    """List the sites that have a profile beside the configuration, and whether each can be reached.

    A profile that is wrong, and two profiles of one cluster, are reported on standard error; the exit status is 1 then.
    """
    if context.invoked_subcommand is not None:
        return 0
    rows, sites, wrong = [], {}, 0
    for name, (path, site) in profiles().items():
        if isinstance(site, SSSJobError):
            problem(str(site), as_json=as_json, status=1)
            rows.append(_Row(name, "", "", path, False, "the profile is wrong"))
            wrong += 1
            continue
        sites[name] = site
        why = _unreachable(site, path, timeout)
        rows.append(_Row(name, site.manager or "", site.machine or "", path, not why, why))
    for message in _doubles(sites):
        problem(message, as_json=as_json, status=1)
        wrong += 1
    if as_json:
        emit("".join(json.dumps(asdict(row)) + "\n" for row in rows))
    elif rows:
        shown = [[escape(row.site), row.manager, escape(row.machine), row.why or "works"] for row in rows]
        emit("\n".join([*table(shown, ["site", "manager", "machine", "reach"]), ""]))
    return 1 if wrong else 0


@command.command("check")
@click.argument("name", metavar="NAME", shell_complete=files)
@click.option("--timeout", type=MORE_THAN_NONE, default=_PATIENCE_S, metavar="SECONDS",
              help="The longest to wait for the manager (default: 10).")
@click.option("--json", "as_json", is_flag=True, help="A record a thing that is missing.")
def check(name: str, timeout: float, as_json: bool) -> int:
    """Test a profile (its name, or a file) and say what is missing or wrong, one thing a line; exit status 1 where
    anything is.

    Rates that cannot be read, a further profile of the same cluster, and queues that the manager does not have are
    told too.
    """
    site, path = load_site(name)
    assert site is not None
    missing = [*_missing(site), *_wrong(site, path)]
    if site.manager:
        away = _unreachable(site, path, timeout)
        missing += [away] if away else _strangers(site, path, timeout)
    if as_json:
        emit("".join(json.dumps({"site": site.name, "file": path, "missing": fault}) + "\n" for fault in missing))
    else:
        emit("".join(f"{escape(site.name)}: {fault}\n" for fault in missing))
    return 1 if missing else 0


@command.command("connect")
@click.argument("name", metavar="NAME", shell_complete=files)
def connect(name: str) -> int:
    """Log in to a site behind SSH (its name, or the file of its profile), and leave the connection for other commands.

    A password or a second factor is asked for on the terminal, once; the connection ends when nobody has used it for
    ten minutes. Exit status 4: there is none.
    """
    import subprocess

    from psij.executors.batch._ssh import connecting

    site, path = load_site(name)
    assert site is not None
    if site.ssh is None:
        raise UsageError(f"{path}: ssh is missing: the site is here")
    code = subprocess.run(connecting(site.ssh.host), check=False).returncode
    if code:
        problem(f"{site.ssh.host}: ssh ended with {code}", status=4)
        return 4
    return 0


@command.command("draft")
@click.argument("manager", metavar="MANAGER", shell_complete=executors)
@click.option("--name", metavar="NAME", help="What the site is called (default: as its cluster).")
@click.option("--ssh-host", metavar="HOST", help="Ask there, by ssh (user@host, or a name of its configuration).")
@click.option("--ssh-setup", metavar="LINE", help="A line of sh with which each command there begins.")
@click.option("--timeout", type=MORE_THAN_NONE, default=_PATIENCE_S, metavar="SECONDS",
              help="The longest to wait for each answer (default: 10).")
@click.option("--json", "as_json", is_flag=True, help="Messages as JSON.")
@output_option
def draft(manager: str, name: str | None, ssh_host: str | None, ssh_setup: str | None, timeout: float, as_json: bool,
          output: str) -> int:
    """Write a profile of the site that is here, or behind --ssh-host, from the answers of its resource MANAGER (slurm,
    sge, pbs ...).

    What the manager does not say stands there as a comment. Exit status 4: it gave no answer.
    """
    from sssjob.cli.offers import SilentError
    from sssjob.conversion.site import read_site
    from sssjob.conversion.site_drafting import draft_site

    try:
        text = draft_site(_facts(_asked_at(manager, name, ssh_host, ssh_setup), name, timeout))
    except SilentError as error:
        problem(str(error), as_json=as_json, status=4)
        return 4
    read_site(text, "the draft")
    emit(text, output)
    return 0


def _asked_at(manager: str, name: str | None, host: str | None, setup: str | None) -> Site:
    """What is known of a site before its manager is asked. Raises UsageError."""
    from pydantic import ValidationError

    from sssjob.conversion.site import SSH, Site

    manager = ALIASES.get(manager, manager)
    if manager not in EXECUTORS:
        raise UsageError(f"there is no manager {manager!r} (known: {', '.join(sorted(EXECUTORS))})")
    if manager == "arc":
        raise UsageError("arc is asked at an address, which only a profile states: write one (docs/exchange.md)")
    if setup is not None and host is None:
        raise UsageError("--ssh-setup goes with --ssh-host")
    try:
        ssh = None if host is None else SSH(host=host, setup=setup)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise UsageError(f"--ssh-{wrong['loc'][0]}: '{escape(str(wrong['input']), 80)}': "
                         f"{wrong['msg'].removeprefix('Value error, ')}") from None
    return Site(name=name or manager, manager=manager, ssh=ssh)


def _facts(site: Site, name: str | None, seconds: float) -> SiteFacts:
    """What the manager of a site says of it. name: what the site is called, if somebody says it. Raises UsageError,
    SilentError."""
    from sssjob.cli.offers import answer, ask_machine
    from sssjob.conversion.site_drafting import SiteFacts
    from sssjob.lrm.sge_nodes import COMPLEXES, ENVIRONMENT, ENVIRONMENT_NAMES, allocation_rule, complexes_shown

    manager = site.manager or ""
    nodes, queues = ask_machine(site, manager, seconds)
    machine = _machine_of(site, seconds)
    rules: dict[str, str | int] = {}
    complexes: dict[str, tuple[str, str]] = {}
    if manager == "sge":
        for environment in answer(ENVIRONMENT_NAMES, seconds, site).split()[:_MOST_ENVIRONMENTS]:
            rule = allocation_rule(answer((*ENVIRONMENT, environment), seconds, site))
            rules |= {environment: rule} if rule is not None else {}
        complexes = complexes_shown(answer(COMPLEXES, seconds, site))
    return SiteFacts(name or machine or manager, manager, machine, _zone(answer(_ZONE, seconds, site)), nodes, queues,
                     rules, complexes, site.ssh)


def _machine_of(site: Site, seconds: float) -> str | None:
    """What the manager calls its cluster; None where it does not say."""
    from psij import JobExecutor, SubmitException
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig

    host, setup = (None, None) if site.ssh is None else (site.ssh.host, site.ssh.setup)
    config = BatchSchedulerExecutorConfig(command_timeout=seconds, ssh_host=host, ssh_setup=setup)
    executor = JobExecutor.get_instance(site.manager or "", config=config)
    try:
        cluster = executor.cluster() if isinstance(executor, BatchSchedulerExecutor) else None
    except SubmitException:
        return None
    return None if cluster is None else "".join(c for c in cluster.name if c.isprintable())[:_LONGEST_NAME] or None


def _zone(words: str) -> str | None:
    """The name of the zone of a host's clock, where the system knows it. words: what ``_ZONE`` puts out there."""
    named = words.partition("/zoneinfo/")[2] or words
    try:
        return ZoneInfo(named.strip().removeprefix(":")).key
    except (OSError, ValueError, LookupError):
        return None


def _unreachable(site: Site, path: str, seconds: float) -> str:
    """Why the resource manager of a site does not answer here; empty where it does."""
    from sssjob.cli.offers import SilentError, answer, ask_machine, askable

    if site.manager is None:
        return "no manager is named"
    if site.ssh is None:
        return trouble(site.manager, seconds, (site, path))
    try:
        if site.manager in askable():
            ask_machine(site, path, seconds)
        else:
            answer(("true",), seconds, site)
    except SilentError as error:
        return str(error).removeprefix(f"{escape(site.name)}: ")
    return ""


def _missing(site: Site) -> Iterator[str]:
    """Keys that a profile lacks, each with what cannot be done without it."""
    if site.manager is None:
        yield "manager is missing: run and submit do not know whom to ask"
    if site.machine is None:
        yield "machine is missing: two profiles of one cluster cannot be told apart, and offers name no machine"
    if site.timezone is None:
        yield "timezone is missing: times of day are taken as UTC"
    if site.rates is None:
        yield "rates is missing: quote and charge need --rates"
    if site.manager == "lsf" and site.lsf.unit_for_limits is None:
        yield "lsf.unit_for_limits is missing: memory without a suffix is not understood"
    if site.manager == "sge" and not site.sge.pe:
        yield "sge.pe is missing: jobs of several slots name no parallel environment"


def _wrong(site: Site, path: str) -> Iterator[str]:
    """What is wrong with what a profile names: its rates, and its cluster, which another profile has too."""
    from sssjob.accounting.rates import RatesError, read_rates

    if site.rates is not None:
        file = os.path.join(os.path.dirname(path), site.rates)
        try:
            read_rates(read_bytes(file), file)
        except RatesError as error:
            yield f"rates: {escape(site.rates)}: {'; '.join(map(escape, error.problems))}"
        except AccessError as error:
            yield f"rates: {error}"
    for name, (file, other) in profiles().items():      # `sssjob sites` tells of those that are wrong
        if os.path.abspath(file) != os.path.abspath(path) and not isinstance(other, SSSJobError) and (
                site.machine is not None and (other.manager, other.machine) == (site.manager, site.machine)):
            yield f"the site {escape(name)} is the same cluster, machine {escape(site.machine)}"


def _strangers(site: Site, path: str, seconds: float) -> list[str]:
    """Queues that a profile names and the manager does not have, where it can be asked."""
    from sssjob.cli.offers import SilentError, ask_machine, askable

    if site.manager not in askable():
        return []
    try:
        _, queues = ask_machine(site, path, seconds)
    except SilentError as error:
        return [str(error).removeprefix(f"{escape(site.name)}: ")]
    named = {f"queues.{queue}": queue for queue in site.queues}
    named |= {f"map.Queue.{other}": queue for other, queue in site.map.get("Queue", {}).items() if queue}
    return [f"{escape(key)}: there is no queue {escape(queue)}" for key, queue in named.items()
            if queues and queue not in queues]


def _doubles(sites: dict[str, Site]) -> Iterator[str]:
    """What is wrong where two profiles are about one cluster: its jobs would be counted and sent twice."""
    first: dict[tuple[str | None, str], str] = {}
    for name, site in sites.items():
        if site.machine is not None:
            other = first.setdefault((site.manager, site.machine), name)
            if other != name:
                yield f"the sites {other} and {name} are one cluster, machine {site.machine}"
