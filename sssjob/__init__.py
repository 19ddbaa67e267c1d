"""sssjob: a job is one document, the SSS job object, from request to charge."""

from sssjob.version import __version__

__all__ = ["__version__"]
