"""The interface of all executors, and the way to get one by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from psij._interpreter import check_interpreter
from psij.job import Job, JobStatusCallback, _as_callback
from psij.job_executor_config import JobExecutorConfig

if TYPE_CHECKING:
    from packaging.version import Version

    from psij._site import Filled, Site
    from psij.descriptor import Descriptor
    from psij.job_launcher import Launcher
    from psij.job_spec import JobSpec
    from psij.job_status import JobStatus

__all__ = ["JobExecutor"]

_FILLED = "_filled"     # attribute of jobs that an executor has filled defaults into
_Names = list[str]      # the method ``list`` hides the built-in inside the class


class JobExecutor(ABC):
    """Runs jobs somewhere.

    url: where the backend is, for executors that need to be told. config: settings, the default ones when None.
    """

    _CONFIG: ClassVar[type[JobExecutorConfig]] = JobExecutorConfig

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        self.url = url
        self.config = JobExecutorConfig._or_default(config)
        self._cb: JobStatusCallback | None = None
        self._name: str | None = None
        self._defaults: Site | None = None          # what is filled into jobs
        self._descriptor: Descriptor | None = None
        self._launchers: dict[tuple[str, str | None], Launcher] = {}
        # Now, and not at the first submit: a signal handler that submits too may interrupt that.
        import_module("psij._validate")

    @property
    def name(self) -> str:
        """The name this executor was asked for, else the one in its descriptor, else that of its class."""
        if self._name is not None:
            return self._name
        descriptor = self._described()
        return type(self).__name__ if descriptor is None else descriptor.name

    @property
    def version(self) -> Version:
        """The version in the executor's descriptor; 0 when there is no descriptor."""
        from packaging.version import Version

        descriptor = self._described()
        return Version("0") if descriptor is None else descriptor.version

    def _described(self) -> Descriptor | None:
        if self._descriptor is None:
            from psij._plugins import EXECUTORS

            self._descriptor = EXECUTORS.descriptor_of(type(self))
        return self._descriptor

    @abstractmethod
    def submit(self, job: Job) -> None:
        """Hand a NEW job to the backend.

        After a return everything is told by statuses. Raises InvalidJobException when the description is wrong,
        InvalidStateException when the job is not NEW, SubmitException when the backend could not take it; then no job
        was made and the state is still NEW.
        """

    def submit_all(self, jobs: Iterable[Job], told: Callable[[Job, Exception | None], None] | None = None) -> None:
        """Submit many NEW jobs, in their order; one that cannot be submitted does not keep the others from it.

        Executor ``local`` starts some while it makes the next ones ready. told: is called for each job with what
        ``submit`` raises, or None, maybe in another thread. Without it, what was raised comes in an ExceptionGroup when
        all have been tried, each with a note that names the job; the jobs that were not submitted are NEW. Where a
        signal handler raises meanwhile, jobs that were begun go on, and no others are.
        """
        from psij._handlers import aside, interrupting

        errors: list[Exception] = []
        stopped: list[bool] = []

        def note(job: Job, error: Exception | None) -> None:
            """Keep the error of a job, with a note that names it."""
            if error is not None:
                error.add_note(f"Job {getattr(job, 'id', job)}")
                errors.append(error)

        listed = tuple(jobs)
        if interrupting():
            JobExecutor._submit_all(self, listed, told or note)
        else:
            try:
                aside(lambda: self._submit_all(takewhile(lambda job: not stopped, listed), told or note))
            except BaseException:
                stopped.append(True)
                raise
        if errors:
            raise ExceptionGroup(f"{len(errors)} of {len(listed)} jobs were not submitted", errors)

    def _submit_all(self, jobs: Iterable[Job], on_job: Callable[[Job, Exception | None], None]) -> None:
        """Submit jobs, in an order that may be faster. on_job: of each with what ``submit`` raises, None where it is
        well."""
        for job in jobs:
            try:
                self.submit(job)
            except Exception as error:
                on_job(job, error)
            else:
                on_job(job, None)

    @abstractmethod
    def cancel(self, job: Job) -> None:
        """Ask for the end of a job. Raises InvalidStateException when it was never submitted, else SubmitException."""

    @abstractmethod
    def attach(self, job: Job, native_id: str) -> None:
        """Follow a job that the backend already has. Raises InvalidJobException when ``job`` is not NEW."""

    def set_job_status_callback(self, cb: JobStatusCallback | Callable[[Job, JobStatus], None] | None) -> None:
        """Have cb told of every change of status of every job of this executor; None removes it."""
        self._cb = _as_callback(cb)

    def _check_job(self, job: Job) -> JobSpec:
        """The specification of a job that may be submitted; for executors.

        A job that no executor is bound to when its status changes (plug-ins do not know Job._bind) becomes this one's.
        Raises InvalidStateException, InvalidJobException; SubmitException in a subinterpreter.
        """
        check_interpreter()

        from psij._validate import check_is_job, check_spec

        check_is_job(job)
        job._follow_here()
        job._check_unbound()
        before: Filled | None = job.__dict__.pop(_FILLED, None)
        if before is not None and before.untouched(job.spec):       # by another executor, which did not take it
            job.spec = before.stated
        spec = check_spec(job.spec)
        if self._defaults is not None:
            stated, spec = spec, self._defaults.fill(spec)
            if spec is not stated:
                job.spec = spec
                job.__dict__[_FILLED] = self._defaults.filled(spec, stated)
        job._candidate = self
        return spec

    def _get_launcher(self, name: str, version_constraint: str | None = None) -> Launcher:
        """The launcher of that name, with this executor's settings; see Launcher.get_instance."""
        from psij.job_launcher import Launcher

        key = (name, version_constraint)
        if key not in self._launchers:
            self._launchers[key] = Launcher.get_instance(name, version_constraint, self.config)
        return self._launchers[key]

    def _follow_in_fork(self, job: Job) -> None:
        """In a forked child: follow a job that the parent has submitted. For executors; called when the job is used
        there. This one cannot, and says so."""
        job._is_out_of_reach(f"executor {self.name} does not follow jobs across forks")

    def _set_job_status(self, job: Job, status: JobStatus) -> None:
        """Set a job's status; for executors."""
        job.status = status

    @staticmethod
    def get_instance(name: str, version_constraint: str | None = None, url: str | None = None,
                     config: JobExecutorConfig | None = None) -> JobExecutor:
        """A new executor of that name (in any case).

        version_constraint: a PEP 440 specifier such as ``>= 0.0.1``; the newest version that fits is taken. config:
        None for that of the site's defaults. Raises ValueError when there is no such executor, it cannot be loaded, or
        the file of the defaults is wrong.
        """
        from psij._plugins import EXECUTORS
        from psij._site import site_of

        cls: type[JobExecutor]
        cls, descriptor = EXECUTORS.get(name, version_constraint, JobExecutor)
        site = site_of(descriptor.name, cls._CONFIG)
        if config is None and site.settings:
            config = cls._CONFIG(**site.settings)
        executor = cls(url=url, config=config)
        executor._defaults = site if site.jobs and executor.config.site_defaults else None
        executor._name = name
        executor._descriptor = descriptor
        return executor

    @staticmethod
    def get_executor_names() -> set[str]:
        """Names of all executors that can be asked for."""
        from psij._plugins import EXECUTORS

        return EXECUTORS.names()

    @staticmethod
    def register_executor(desc: Descriptor, root: str | Path) -> None:
        """Make an executor known. root: the folder under which the module of its class lies."""
        from psij._plugins import EXECUTORS

        EXECUTORS.register(desc, Path(root))

    def __str__(self) -> str:
        return f"{type(self).__name__}[{self.name}]"

    @abstractmethod
    def list(self) -> _Names:
        """Native identifiers of the jobs this executor knows and could attach to; all unfinished ones among them."""
