"""The version of the psij package."""

__version__ = "0.1.0"
