"""Which kernels belong together, written beside them: what is there is known without reading it."""

import hashlib
import json
import os
from contextlib import suppress

from numba.core.registry import cpu_target

from pacplan.compiled.cache import RECORD, circumstances, kept_in, replace_file
from pacplan.compiled.sources import source_digest


def read_record(about: str) -> dict[str, list[str]]:
    """Lists of kernels' files, as they were written for these sources, this compiler and processor.

    Lists with a file that is no longer there are left out.
    """
    folder = kept_in()
    if folder is None:
        return {}
    try:
        found = json.loads((folder / _name(about)).read_bytes())
        there = {entry.name for entry in os.scandir(folder)}
        return {name: files for name, files in found.items() if there.issuperset(files)}
    except (OSError, ValueError, AttributeError, TypeError):  # Not there, or damaged.
        return {}


def write_record(about: str, lists: dict[str, list[str]]) -> None:
    """Keep lists of kernels' files, if that is possible."""
    folder = kept_in()
    if folder is not None:
        with suppress(OSError):
            replace_file(folder / _name(about), json.dumps(lists).encode())


def _name(about: str) -> str:
    text = repr((source_digest(), circumstances(cpu_target.target_context.codegen())))
    return f"{about}-{hashlib.sha256(text.encode()).hexdigest()[:40]}{RECORD}"
