"""``sssjob offers``: what the machine of a site offers now, asked of its resource manager."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from sssjob.cli._complete import files
from sssjob.cli._files import emit
from sssjob.cli._findings import problem
from sssjob.cli._options import output_option
from sssjob.cli._profiles import load_site
from sssjob.cli._seconds import MORE_THAN_NONE
from sssjob.errors import UsageError
from sssjob.findings import escape

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.document.model import Document
    from sssjob.lrm.nodes import Limits, Node

    #: The nodes of a machine, and the limits of its queues.
    Machine = tuple[list[Node], dict[str, Limits]]

__all__ = ["ANSWER_S", "SilentError", "answer", "ask", "ask_machine", "askable", "command", "offers_of"]

_ARC: Final = "arc"
ANSWER_S = 30.0             # how long a resource manager may take for an answer
_ASIDE_S: Final = 10.0      # the same for one without which there are offers too
#: What a manager says of a large machine is long, and still no more than this.
_ANSWER_BYTES = 64 << 20


class SilentError(Exception):
    """A resource manager that gives no answer, or none that can be understood; the message says why."""


@click.command("offers")
@click.argument("site", metavar="[SITE]", required=False, shell_complete=files)
@click.option("--site", "site_name", metavar="SITE", shell_complete=files, help="SITE, as other commands take it.")
@click.option("--idle", is_flag=True, help="Only nodes on which nothing runs now.")
@click.option("--timeout", type=MORE_THAN_NONE, default=ANSWER_S, metavar="SECONDS",
              help="The longest to wait for each answer (default: 30).")
@click.option("--json", "as_json", is_flag=True, help="Messages as JSON.")
@output_option
def command(site: str | None, site_name: str | None, idle: bool, timeout: float, as_json: bool, output: str) -> int:
    """Ask the resource manager of SITE (the name of a profile, or its file) what it offers, and write the offers.

    A JobGroup with a Job for each queue, as `match` and `route` hold requests against. Slurm, Grid Engine, PBS,
    Torque, LSF, HTCondor, Flux, an ARC computing element and this machine (`local`) can be asked. Exit status 4: it
    gave no answer.
    """
    from sssjob.xml.writer import write_document

    if (site is None) == (site_name is None):
        raise UsageError("one SITE is asked: offers SITE, or offers --site SITE")
    profile, path = load_site(site_name if site is None else site)
    assert profile is not None
    try:
        document = ask(profile, path, idle=idle, seconds=timeout)
    except SilentError as error:
        problem(str(error), as_json=as_json, status=4)
        return 4
    emit(write_document(document), output)
    return 0


def ask(site: Site, path: str, *, idle: bool = False, seconds: float = ANSWER_S) -> Document:
    """The offers of a site's machine. path: of its profile; idle: of nodes only on which nothing runs; seconds: how
    long each answer may take. Raises UsageError where its manager cannot be asked, SilentError without an answer."""
    return offers_of(site, path, ask_machine(site, path, seconds), idle=idle)


def offers_of(site: Site, path: str, machine: Machine, *, idle: bool = False) -> Document:
    """The offers that an answer comes to."""
    from sssjob.document.model import Document
    from sssjob.findings import Findings
    from sssjob.translators.specs._offers import offers

    return Document(offers(*machine, site.machine, site, idle=idle), {}, path, "3.1", Findings(path))


def ask_machine(site: Site, path: str, seconds: float = ANSWER_S) -> Machine:
    """The nodes of a site's machine, and the limits of its queues; arguments and errors as of ``ask``."""
    if site.manager is None:
        raise UsageError(f"{path}: manager is missing: it is not known whom to ask")
    if site.manager not in askable():
        raise UsageError(f"{path}: {site.manager} cannot be asked for offers yet, {', '.join(sorted(askable()))} can; "
                         "others may be written as documents by hand (docs/sites.md)")
    if site.manager == "local" and site.ssh is not None:
        raise UsageError(f"{path}: local runs jobs on this machine, and not on {escape(site.ssh.host)} behind SSH")
    try:
        nodes, queues = _ASKED[site.manager](_Manager(site, seconds)) if site.manager != _ARC else (
            _arc(site, path, seconds))
    except ValueError as error:
        raise SilentError(f"{escape(site.name)}: the answer cannot be understood: {escape(str(error))}") from None
    except SilentError as error:
        raise SilentError(f"{escape(site.name)}: {error}") from None
    if not nodes:
        raise SilentError(f"{escape(site.name)}: the answer names no nodes")
    return nodes, queues


class _Manager(NamedTuple):
    """The manager of a site. seconds: how long an answer may take."""

    site: Site
    seconds: float

    def __call__(self, *command: str) -> str:
        """What a command answers. Raises SilentError."""
        return answer(command, self.seconds, self.site)

    def perhaps(self, *command: str) -> str:
        """What a command answers without which there are offers too: it may be missing, forbidden, or hang."""
        try:
            return answer(command, min(self.seconds, _ASIDE_S), self.site)
        except SilentError:
            return ""


def _slurm(ask: _Manager) -> Machine:
    from sssjob.lrm import slurm_nodes as slurm

    return slurm.nodes_shown(ask(*slurm.NODES)), slurm.partitions_shown(
        ask(*slurm.PARTITIONS), *slurm.shared_shown(ask.perhaps(*slurm.SHARED)))


def _sge(ask: _Manager) -> Machine:
    from sssjob.lrm import sge_nodes as sge

    names = ask(*sge.QUEUE_NAMES).split()
    hosts = sge.hosts_shown(ask(*sge.HOSTS))
    queues = sge.queues_shown(ask(*sge.QUEUES, ",".join(names))) if names else {}
    complexes = ask.site.sge.complex
    if complexes:
        there_are = sge.consumables_shown(ask.perhaps(*sge.CONSUMABLES))
        hosts = [sge.with_consumables(host, there_are, complexes) for host in hosts]
        shared = sge.shared_consumables(there_are, complexes)
        queues = {name: replace(limits, shared=shared) for name, limits in queues.items()}
    return hosts, queues


def _pbs(ask: _Manager) -> Machine:
    from sssjob.lrm.pbs_nodes import NODES, QUEUES, in_queues, nodes_shown, queues_shown

    queues = queues_shown(ask(*QUEUES))
    return in_queues(nodes_shown(ask(*NODES)), queues), queues


def _htcondor(ask: _Manager) -> Machine:
    import json

    from sssjob.lrm.condor_nodes import MACHINES, machines_of
    from sssjob.lrm.nodes import ANYWHERE, TEN_YEARS_S, Limits

    # a pool has no limit of time unless its policies have one, which no command tells
    return machines_of(json.loads(ask(*MACHINES))), {ANYWHERE: Limits(open=True, duration=TEN_YEARS_S)}


def _flux(ask: _Manager) -> Machine:
    import json

    from sssjob.lrm.flux.nodes import FREE, UP, nodes_of

    free = {node.name for node in nodes_of(json.loads(ask(*FREE)))}
    return [replace(node, busy=node.name not in free) for node in nodes_of(json.loads(ask(*UP)))], {}


def _lsf(ask: _Manager) -> Machine:
    from sssjob.lrm import lsf_nodes as lsf

    queues = ask(*lsf.QUEUES)
    groups = lsf.groups_shown(ask(*lsf.GROUPS)) if lsf.names_groups(queues) else {}
    limits, members = lsf.queues_shown(queues, groups)
    return lsf.hosts_shown(ask(*lsf.HOSTS), ask(*lsf.STATIC), members), limits


def _arc(site: Site, path: str, seconds: float) -> Machine:
    """As the functions of ``_ASKED``, by the settings of the site."""
    from psij import SubmitException
    from psij.executors.arc import ARCJobExecutor
    from sssjob.lrm.glue2 import nodes_and_shares
    from sssjob.run.configuring import config_of, load_settings

    config = config_of(_ARC, load_settings((site, path)).stated(_ARC) | {"command_timeout": seconds})
    try:
        return nodes_and_shares(ARCJobExecutor(config=config).information())
    except SubmitException as error:
        raise SilentError(escape(str(error), 400)) from None


def _local(ask: _Manager) -> Machine:
    from sssjob.lrm.nodes import this_machine

    return this_machine()


#: Manager -> how it is asked: given what gives the answer of a command, the nodes, and the limits of queues. Both may
#: raise ValueError.
_ASKED: Final[dict[str, Callable[[_Manager], Machine]]] = {
    "local": _local, "slurm": _slurm, "sge": _sge, "pbs": _pbs, "pbs_classic": _pbs, "htcondor": _htcondor,
    "flux": _flux, "lsf": _lsf}


def askable() -> frozenset[str]:
    """The managers that can be asked for offers."""
    return frozenset((*_ASKED, _ARC))


def answer(command: tuple[str, ...], seconds: float, site: Site | None = None) -> str:
    """What a command puts out, in the locale C. site: where it is run, None here. Raises SilentError."""
    from psij.executors.batch._command import OutputLimitError
    from psij.executors.batch._ssh import host_of

    ssh = None if site is None else site.ssh
    host = host_of(None) if ssh is None else host_of(ssh.host, ssh.setup)
    try:
        result = host.run(command, seconds, look=False, limit=_ANSWER_BYTES)
    except subprocess.TimeoutExpired:
        raise SilentError(f"{command[0]} gave no answer in {seconds:g} s") from None
    except OutputLimitError:
        raise SilentError(f"{command[0]} puts out more than {_ANSWER_BYTES} bytes") from None
    except OSError as error:
        raise SilentError(f"{command[0]}: {error.strerror}" if host.is_here else escape(str(error), 400)) from None
    if result.exit_code:
        raise SilentError(escape("; ".join(filter(None, map(str.strip, result.output.splitlines()))), 400)
                          or f"{command[0]} ended with {result.exit_code}")
    return result.stdout
