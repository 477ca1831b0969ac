"""The command `pacplan`. Its modules import what they run when it runs, so that help comes at once."""

from pacplan.cli.main import main

__all__ = ["main"]
