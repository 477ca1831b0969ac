"""Numba's private names: pacplan uses some for speed, and works without them.

`docs/inside.md` lists them. A missing one costs speed or compile time, and one line of warning.
"""

import logging
from typing import Any

import numba

_logger = logging.getLogger("pacplan")
warned: set[str] = set()
"""The warnings given so far."""


def warn_once(about: str, message: str) -> None:
    """Log a warning, once for each thing that it may be about."""
    if about not in warned:
        warned.add(about)
        _logger.warning("pacplan: %s", message)


def missing(names: str, cost: str) -> None:
    """Say that this Numba lacks something, and what that costs."""
    warn_once(names, f"Numba {numba.__version__} has no {names}: {cost}")


def known_options(**wanted: Any) -> dict[str, Any]:
    """The options of `numba.njit` among these that this Numba knows; it would refuse the others."""
    target = getattr(numba.njit(lambda: None), "targetdescr", None)
    declared = getattr(target, "options", None)
    unknown = [name for name in wanted if not hasattr(declared, name)]
    if unknown and not numba.config.DISABLE_JIT:
        missing(f"option {', '.join(unknown)}", "kernels take longer to compile or to run")
    return {name: value for name, value in wanted.items() if name not in unknown}
