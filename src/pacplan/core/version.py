"""The version of pacplan."""

__version__ = "0.1.0"
