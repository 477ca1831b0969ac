"""Arguments that several commands take."""

from argparse import ArgumentParser
from pathlib import Path

from pacplan.cli.values import setting


def add_set(parser: ArgumentParser) -> None:
    """Settings of the problem."""
    parser.add_argument(
        "--set",
        action="append",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help="setting of the problem, e.g. states=50 (repeat)",
    )


def add_quiet(parser: ArgumentParser) -> None:
    """No progress."""
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")


def add_json(parser: ArgumentParser, what: str) -> None:
    """Output for programs."""
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON, and no progress")


def add_workers(parser: ArgumentParser) -> None:
    """How many processes."""
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes; by default one per core. 1 starts none"
    )


def add_dask(parser: ArgumentParser) -> None:
    """A cluster instead."""
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on a Dask cluster: the address of its scheduler, or 'local' to start one here",
    )


def add_out(parser: ArgumentParser, default: str) -> None:
    """Where results go."""
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=f"folder; by default {default}")
