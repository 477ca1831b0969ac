"""Numba without the private names that pacplan uses: plans are the same, and one line says so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pacplan

PLANS = """
import json, logging, sys
import numba
import numpy as np
import pacplan
from pacplan.compiled.jit import kernel
from pacplan.compiled.prefetch import begin_to_load
from pacplan.compiled.tiered import waiting

def step(state, action, rng):
    state = (3 * state + action + (rng.random() < 0.5)) % 17
    return state, (state % 5) / 4.0, state == 13

def stepped(function):
    return pacplan.Simulator(function, actions=3, successors=2)

models = {
    "table": pacplan.envs.garnet(states=30, actions=3, seed=2),
    "jitted": stepped(numba.njit(step)),
    "python": stepped(step),
}
planners = {
    "SparseSampling": pacplan.SparseSampling(gamma=0.7, horizon=3, width=4),
    "UCT": pacplan.UCT(gamma=0.7, horizon=4),
    "MDPGapE": pacplan.MDPGapE(epsilon=0, delta=0.1, gamma=0.7, horizon=3),
    "Bracket": pacplan.Bracket(epsilon=0, delta=0.1, gamma=0.7, horizon=3),
}

@kernel
def loaded(numbers):
    begin_to_load(numbers, 1)
    return numbers[0]

assert loaded(np.array([7, 8])) == 7

def told(name):
    planner, model = name.split()
    limits = {} if planner == "SparseSampling" else {"budget": 501}
    plan = planners[planner].plan(models[model], 1, seed=3, **limits)
    numbers = (plan.values, plan.calls, plan.lower, plan.upper, plan.gap)
    return [plan.action, plan.samples, plan.episodes, *map(repr, numbers)]

with waiting():
    print(json.dumps({name: told(name) for name in json.loads(sys.argv[1])}))
"""
# Some names are removed for good. Others Numba needs itself, so they are hidden from pacplan alone.
HIDE = """
import sys, types
from numba.core import base, codegen, compiler, cpu, dispatcher, pythonapi

class Hidden:
    def __init__(self, owner, name):
        self.name, self.inner = name, owner.__dict__[name]
        setattr(owner, name, self)

    def __get__(self, instance, owner=None):
        if sys._getframe(1).f_globals["__name__"].startswith("pacplan."):
            raise AttributeError(self.name)
        return self.inner.__get__(instance, owner)

"""
REMOVALS = {
    "_reduce": 'Hidden(compiler.CompileResult, "_reduce")\n',
    "events": 'sys.modules["numba.core.event"] = types.ModuleType("without names")\n',
    "option forceinline": "del cpu.CPUTargetOptions.__mro__[1].forceinline\n",
    "option no_cfunc_wrapper": "del cpu.CPUTargetOptions.__mro__[1].no_cfunc_wrapper\n",
    "add_overload of dispatchers": 'Hidden(dispatcher._DispatcherBase, "add_overload")\n',
    "_finalize_final_module of libraries": 'Hidden(codegen.CPUCodeLibrary, "_finalize_final_module")\n',
    "way to begin loads": 'Hidden(base.BaseContext, "make_array")\n',
    "way to call Python directly": 'Hidden(pythonapi.PythonAPI, "call_function_objargs")\n',
}
PLANNERS, MODELS = ("UCT", "MDPGapE", "Bracket"), ("table", "jitted", "python")


def told(names, *removed, folder=None):
    """What plans say in a process that lacks some names, and its log but for the compilations."""
    script = HIDE + "".join(REMOVALS[name] for name in removed) + PLANS
    paths = {"PYTHONPATH": str(Path(pacplan.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(names)],
        env=os.environ | paths | ({} if folder is None else {"NUMBA_CACHE_DIR": str(folder)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), [
        line for line in done.stderr.splitlines() if "compiling" not in line
    ]


def has_one_line_each(log, removed):
    return len(log) == len(removed) and all(any(name in line for line in log) for name in removed)


def test_without_any_of_them(tmp_path):
    # Its kernel is small: without these names it takes many times as long to compile.
    small = ["SparseSampling python"]
    plans, log = told(small, *REMOVALS, folder=tmp_path)
    assert has_one_line_each(log, REMOVALS), log
    assert (plans, []) == told(small)


@pytest.mark.statistical
@pytest.mark.parametrize("removed", [*([name] for name in REMOVALS), [*REMOVALS]], ids=str)
def test_without_one_of_them(tmp_path, removed):
    names = [f"{planner} {model}" for planner in PLANNERS for model in MODELS]
    plans, log = told(names, *removed, folder=tmp_path)
    assert has_one_line_each(log, removed), log
    assert (plans, []) == told(names)
