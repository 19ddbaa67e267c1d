"""The exceptions of psij.

    Exception
    ├── InvalidJobException           what the job says cannot be understood; the same job will fail again
    │   ├── InvalidJobTypeException   also a TypeError: a value of the wrong type
    │   └── InvalidStateException     also a SubmitException: the job's state does not allow the request
    ├── JobException                  a job that was run and waited for in one step has failed
    └── SubmitException               the request did not reach the backend; ``transient`` says if trying again may help
        └── QueueFullException        there are as many jobs in the queue as may be
"""

from __future__ import annotations

__all__ = ["InvalidJobException", "InvalidJobTypeException", "InvalidStateException", "JobException",
           "QueueFullException", "SubmitException"]


class InvalidJobException(Exception):
    """The job's description is wrong; submitting the same description again fails again.

    message: for an end user. exception: an underlying exception for debugging, or None.
    """

    def __init__(self, message: str, exception: BaseException | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.exception = exception

    def __str__(self) -> str:
        return self.message


class InvalidJobTypeException(InvalidJobException, TypeError):
    """A value in the job's description has the wrong type (also a TypeError)."""


class JobException(Exception):
    """A job has failed: what ``AsyncJobExecutor.run`` raises. exit_code: None where it is not known."""

    def __init__(self, message: str | None, exit_code: int | None = None) -> None:
        super().__init__(message or "the job failed")
        self.message = message
        self.exit_code = exit_code


class SubmitException(Exception):
    """A request could not be handed to the backend, for a reason that is not in the job.

    message: for an end user. exception: an underlying exception, or None. transient: trying again later may help.
    """

    def __init__(self, message: str, exception: BaseException | None = None, transient: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.exception = exception
        self.transient = transient

    def __str__(self) -> str:
        return self.message

    def isTransient(self) -> bool:
        """Whether trying again later may help; the PSI/J specification's spelling of ``transient``."""
        return self.transient


class QueueFullException(SubmitException):
    """No job was made, for there are as many in the queue as its limits allow: there is room when some have ended."""

    def __init__(self, message: str, exception: BaseException | None = None) -> None:
        super().__init__(message, exception, transient=True)


class InvalidStateException(InvalidJobException, SubmitException):
    """The job's state does not allow the request: submitting it twice, or cancelling one never submitted."""

    def __init__(self, message: str, exception: BaseException | None = None, transient: bool = False) -> None:
        InvalidJobException.__init__(self, message, exception)
        self.transient = transient
