"""How far a reader walks: calls, functions, files and changes of file of one plan, and of one episode.

    python3 dev.py python benchmarks/walks.py            a call of pacplan.plan
    python3 dev.py python benchmarks/walks.py episode    the median episode of Bracket, interpreted

Only the package's own functions count, without those that draw random numbers.
"""

import os
import sys
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from types import FrameType
from typing import Any

EPISODE = sys.argv[1:] == ["episode"]
if EPISODE:
    os.environ["NUMBA_DISABLE_JIT"] = "1"

import pacplan  # noqa: E402
from pacplan.engine.search import KernelSearch  # noqa: E402

_PACKAGE = os.path.dirname(pacplan.__file__)
_LEFT_OUT = os.path.join("compiled", "streams.py")


def walk(function: Callable[[], Any]) -> tuple[int, int, int, int]:
    """Calls, functions, files and changes of file while a function runs."""
    visited: list[tuple[str, str]] = []

    def look(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        counts = file.startswith(_PACKAGE) and not file.endswith(_LEFT_OUT)
        if event == "call" and counts:
            visited.append((file, frame.f_code.co_qualname))

    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(None)
    files = [file for file, _ in visited]
    changes = sum(a != b for a, b in pairwise(files))
    return len(visited), len(set(visited)), len(set(files)), changes


def episodes(model: Any) -> list[tuple[int, int, int, int]]:
    """The walks of Bracket's episodes, one chunk each."""
    advance, walks = KernelSearch.advance, []

    def watched(search: Any, count: int, calls: int) -> int:
        ended: list[int] = []
        walks.append(walk(lambda: ended.append(advance(search, count, calls))))
        return ended[0]

    KernelSearch.advance = watched  # type: ignore[method-assign]
    planner = pacplan.Bracket(epsilon=1, delta=0.1, gamma=0.7)
    planner.chunk = 1
    planner.plan(model, 0, seed=0, budget=800)
    return walks


def main() -> None:
    model = pacplan.envs.garnet(seed=0)
    if EPISODE:
        found = [round(median(numbers)) for numbers in zip(*episodes(model), strict=True)]
    else:
        pacplan.plan(model, 0, epsilon=1, delta=0.1, gamma=0.7, seed=0, sample=True)
        found = list(
            walk(lambda: pacplan.plan(model, 0, epsilon=1, delta=0.1, gamma=0.7, seed=0, sample=True))
        )
    print("calls {}, functions {}, files {}, changes of file {}".format(*found))


if __name__ == "__main__":
    main()
