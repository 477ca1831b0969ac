"""Which kernels belong together, written beside them: what is there is known without reading it."""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from pacplan.compiled.cache import RECORD, circumstances, kept_in, replace_file
from pacplan.compiled.private import missing
from pacplan.compiled.sources import source_digest


def read_record(about: str) -> dict[str, list[str]]:
    """Lists of kernels' files, as they were written for these sources, this compiler and processor.

    Lists with a file that is no longer there are left out.
    """
    path = _place(about)
    if path is None:
        return {}
    try:
        found = json.loads(path.read_bytes())
        there = {entry.name for entry in os.scandir(path.parent)}
        return {name: files for name, files in found.items() if there.issuperset(files)}
    except (OSError, ValueError, AttributeError, TypeError):  # Not there, or damaged.
        return {}


def write_record(about: str, lists: dict[str, list[str]]) -> None:
    """Keep lists of kernels' files, if that is possible."""
    path = _place(about)
    if path is not None:
        with suppress(OSError):
            replace_file(path, json.dumps(lists).encode())


def _place(about: str) -> Path | None:
    """The file for what compiled code depends on now."""
    folder = kept_in()
    try:
        from numba.core.registry import cpu_target

        codegen = cpu_target.target_context.codegen()
    except (ImportError, AttributeError):
        missing("cpu_target", "what is there is found out by reading all of it")
        return None
    text = repr((source_digest(), circumstances(codegen)))
    name = f"{about}-{hashlib.sha256(text.encode()).hexdigest()[:40]}{RECORD}"
    return None if folder is None else folder / name
