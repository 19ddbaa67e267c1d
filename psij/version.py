"""The version of the psij package."""

__all__ = ["VERSION", "__version__"]

__version__ = VERSION = "0.1.0"
