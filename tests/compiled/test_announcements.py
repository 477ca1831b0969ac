"""Every compilation is announced in plain words."""

import gc
from contextlib import nullcontext

import numba
import pytest
from numba.core import event
from numba.extending import overload

from kernel_files import ASK_KINDS, finish, folder_of_kernels, fresh_kernel, start
from pacplan.algorithms import bracket, mdp_gape, stop, uct
from pacplan.algorithms.mdp_gape.sweep import sweep
from pacplan.bounds.bernoulli import kl_lower
from pacplan.compiled import announcements
from pacplan.compiled.jit import kernel
from pacplan.engine.episodes import play
from pacplan.engine.steps import work
from pacplan.models.simulator import PythonHandle
from pacplan.models.tabular import TabularHandle
from pacplan.models.told import ToldHandle

folder = pytest.fixture(folder_of_kernels)
fresh = pytest.fixture(fresh_kernel)


def test_every_compilation_is_announced(folder):
    log = "import logging; logging.basicConfig(level=logging.INFO)\n"
    kinds = ("constant", "nested")
    lines = finish(start(folder, log + ASK_KINDS, *kinds))[1].splitlines()
    assert len(lines) == 4
    for line, words in zip(lines[::2], ("a constant model", "a nested array model"), strict=True):
        assert f"compiling run of handled for {words}" in line and "later runs start warm" in line
    assert all("took" in line and line.endswith("s to compile") for line in lines[1::2])
    assert finish(start(folder, log + ASK_KINDS, *kinds))[1] == ""


@pytest.mark.versions
def test_planners_are_announced_in_plain_words():
    def title(function, *classes):
        kinds = tuple(numba.types.NamedTuple((), kind) for kind in classes)
        data = {"dispatcher": function, "args": kinds}
        return announcements._title(event.Event("numba:compile", event.EventStatus.START, data))

    python, tabular, told = PythonHandle, TabularHandle, ToldHandle
    assert title(play, uct.Search, tabular) == "uct for a tabular model"
    assert title(play, bracket.records.Search, python) == "bracket for a Python model"
    assert title(work, stop.Draws, told, tabular) == "stop for a told tabular model"
    assert title(sweep, mdp_gape.records.Search, tabular) == "sweep of mdp_gape for a tabular model"
    assert title(kl_lower) == "kl_lower of bernoulli"


@pytest.mark.versions
@pytest.mark.parametrize("collecting", [True, False])
@pytest.mark.parametrize("fails", [False, True])
def test_the_garbage_collector_rests_while_a_kernel_is_compiled(collecting, fails):
    during = []

    def asked(n):
        """Answered by Numba while it compiles."""

    @overload(asked)
    def _answer(n):
        during.append(gc.isenabled())
        return None if fails else lambda n: n

    @kernel
    def run(n):
        return asked(n)

    was = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        with pytest.raises(numba.TypingError) if fails else nullcontext():
            run(1)
        after = gc.isenabled()
    finally:
        (gc.enable if was else gc.disable)()
    assert during and not any(during)
    assert after == collecting
