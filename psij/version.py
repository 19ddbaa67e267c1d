"""The version of the psij package."""

__all__ = ["DISTRIBUTION", "VERSION", "__version__"]

#: What the package is installed with: another distribution that has a package of this name overwrites this file.
DISTRIBUTION = "sssjob"

__version__ = VERSION = "0.1.0"
