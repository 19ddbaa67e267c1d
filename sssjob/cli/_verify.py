"""``convert --verify``: the script and what it became are run, each by its own manager, and what they leave is
compared."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sssjob.cli._complete import directories
from sssjob.cli._findings import problem, record, say
from sssjob.cli._options import Session
from sssjob.cli._seconds import MORE_THAN_NONE
from sssjob.errors import UsageError
from sssjob.findings import Findings, Policy, escape

if TYPE_CHECKING:
    from sssjob.conversion.converting import Conversion
    from sssjob.conversion.site import Site
    from sssjob.document.model import Document
    from sssjob.run.leavings import Difference
    from sssjob.run.verifying import Verification
    from sssjob.translators.base import Translator

__all__ = ["Proof", "verify_options"]

_SECONDS: Final = 3600.0
_UNNAMED: Final = "job.sh"      # what a script of standard input is called


@dataclass(slots=True)
class Proof:
    """What ``--verify`` is told. sites: where the script and the converted one run, with the paths of the profiles; by
    the commands that are here where there is none. verification: of the script, once it is prepared; texts: gives the
    files of the converted one."""

    parent: Path
    seconds: float
    sites: tuple[tuple[Site | None, str], tuple[Site | None, str]] = ((None, ""), (None, ""))
    verification: Verification | None = None
    texts: Callable[[], dict[str, bytes]] = dict

    @staticmethod
    def wants_scripts(reader: Translator, writer: Translator) -> None:
        """Refuse formats that no manager takes."""
        for translator in (reader, writer):
            if translator.kind != "script":
                raise UsageError("--verify submits scripts to resource managers, and "
                                 f"{translator.name} is no format of such scripts")

    def prepare(self, session: Session, how: Conversion, reader: Translator, script: tuple[str, bytes],
                document: Document, policy: Policy | None) -> None:
        """Refuse, before anything is written or run, what cannot be submitted on both sides. script: its name, as it
        was stated, and its text."""
        from sssjob.run.verifying import Verification, side_of

        name = _UNNAMED if script[0] == "-" else Path(script[0]).name
        if sum(1 for _ in document.jobs()) != 1:
            raise UsageError("--verify is for a script of one job")
        original = side_of("original", reader.name, {_stored(reader, name): script[1]}, *self.sites[0])
        converted = side_of("converted", how.target, {}, *self.sites[1])
        self.texts = functools.partial(_texts, how, name, document, policy)
        self.verification = Verification((original, converted), self.parent, self.seconds, _teller(session),
                                         functools.partial(problem, as_json=session.as_json))

    def status(self, session: Session, converted: int) -> int:
        """Run both, tell what differs, and give the exit status. converted: that of the conversion; unless it is 0
        nothing runs."""
        from psij import SubmitException
        from sssjob.run.signals import STOPS
        from sssjob.run.verifying import Stopped

        verification = self.verification
        if converted or verification is None:
            problem("--verify ran nothing, for the conversion was not as it should be", as_json=session.as_json,
                    status=converted)
            return converted
        verification.sides[1].files = self.texts()
        try:
            all_differences = verification.run()
        except SubmitException as error:
            status = 4 if error.transient else 5
            problem(f"{error}{_kept(verification)}", as_json=session.as_json, status=status)
            return status
        except Stopped as stopped:
            status = STOPS.get(stopped.why, 6)
            why = f"not both jobs had ended after {self.seconds:g} s" if stopped.why == "timeout" else stopped.why
            problem(f"{why}; what had not ended was cancelled{_kept(verification)}", as_json=session.as_json,
                    status=status)
            return status
        _tell(session, verification, all_differences)
        return 1 if all_differences else 0


def _texts(how: Conversion, name: str, document: Document, policy: Policy | None) -> dict[str, bytes]:
    """The files of the converted script by name, the one that is submitted first."""
    context = how.writing(Findings(document.path), policy, Path(name).stem)
    texts = {name: how.text(document, context)} if how.writer.files is None else how.files(document, context)
    return {file: text.encode("utf-8", "surrogateescape") for file, text in texts.items()}


def _stored(reader: Translator, name: str) -> str:
    """The name of the original; submit commands of descriptions look for one of their own suffix."""
    return name if reader.files is None else str(Path(name).with_suffix(reader.suffixes[0]))


def _tell(session: Session, verification: Verification, all_differences: list[Difference]) -> None:
    ended = {side.name: {"manager": side.dialect.name, "site": side.site or None, "directory": side.place,
                         "native_id": side.native_id,
                         "state": side.job.status.state.name, "exit_code": side.job.status.exit_code}
             for side in verification.sides}
    if session.as_json:
        record({"type": "verified", "equal": not all_differences, **ended,
                "differences": [difference.record() for difference in all_differences],
                "kept": None if verification.root is None else str(verification.root)})
        return
    for difference in all_differences:
        _say(f"{difference.subject}: {difference.message}")
        for line in difference.lines:
            _say(f"  {line}")
    if all_differences:
        _say(f"verify: the runs differ{_kept(verification)}")
    elif not session.quiet:
        failed = verification.sides[0].job.status.exit_code not in (None, 0)
        _say("verify: both runs ended alike and left the same" + (
            "; both failed, so nothing is proved of what the script would have done then" if failed else ""))


def _kept(verification: Verification) -> str:
    places = verification.kept()
    return f"; their files are kept in {' and '.join(places)}" if places else ""


def _say(text: str) -> None:
    say(escape(text, 2000))


def _teller(session: Session) -> Callable[[str], None]:
    """What tells how the runs go on, unless ``-q`` asks for silence."""
    def tell(text: str) -> None:
        """Print a line, or a record."""
        if session.as_json and not session.quiet:
            record({"type": "progress", "message": text})
        elif not session.quiet:
            _say(text)
    return tell


def verify_options(function: Callable[..., int]) -> Callable[..., int]:
    """``--verify`` and what belongs to it, as one Proof; None without."""

    @click.option("--verify", is_flag=True, help="RUN the job twice: submit the script as it is and the converted one, "
                                                 "each to its own manager, and compare what they leave.")
    @click.option("--verify-in", metavar="DIR", shell_complete=directories,
                  help="Where the jobs of --verify run that are run here, each in a new directory; the nodes of the "
                       "managers have to see it (default: the current directory).")
    @click.option("--verify-timeout", type=MORE_THAN_NONE, metavar="SECONDS",
                  help=f"Cancel both jobs of --verify after so long (default: {_SECONDS:g}).")
    @functools.wraps(function)
    def command(*arguments: Any, verify: bool, verify_in: str | None, verify_timeout: float | None,
                **rest: Any) -> int:
        """Put the three options into a Proof, refuse what does not go with it, and run the function."""
        if not verify:
            if verify_in is not None or verify_timeout is not None:
                raise UsageError(f"--verify-{'in' if verify_in is not None else 'timeout'} is for --verify")
            return function(*arguments, proof=None, **rest)
        _alone(rest)
        parent = Path("." if verify_in is None else verify_in)
        if not parent.is_dir():
            raise UsageError(f"--verify-in {escape(str(parent))}: there is no such directory")
        return function(*arguments, proof=Proof(parent, verify_timeout or _SECONDS), **rest)

    return command


def _alone(options: Mapping[str, Any]) -> None:
    """Refuse what leaves no converted script of one file."""
    for name in ("diff", "queue", "privacy_file", "jobs", "report"):
        if options.get(name):
            raise UsageError(f"--verify and --{name.removesuffix('_file')} exclude each other")
