"""Checkpoints that no search can have written, with a right checksum: they are refused, or resumed.

    python crafting.py FILES SEED

makes so many of them of each real one, and resumes each. Anything but a ValueError or a plan within
its limits comes out, and so does what crashes or hangs. Without compilation, an index outside an array
is an IndexError.
"""

import ast
import json
import random
import signal
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

import pacplan
from every_planner import NAMES, make, problem, simulator
from pacplan.engine.checkpoint import Checkpoint, Stored
from pacplan.engine.interrupts import _ctrl_c

BUDGET = 400
GARNET = pacplan.envs.garnet(states=8, actions=3, seed=5)


def searches():
    """Planners and models: each planner, and the ways in which its arrays differ."""
    for name in NAMES:
        if pacplan.planners[name].keeps_checkpoints:
            yield make(name), problem(name)
    for kind, settings in (
        (pacplan.Bracket, {"merge": "depth"}),
        (pacplan.Bracket, {"merge": "stationary"}),
        (pacplan.Bracket, {"rewards": "known"}),
        (pacplan.MDPGapE, {"merge": "depth"}),
    ):
        yield kind(epsilon=0.0, delta=0.1, gamma=0.7, horizon=5, **settings), GARNET
    yield make("uct"), simulator(problem("uct").step, "uct")
    yield pacplan.OPD(gamma=0.7, merge="depth", horizon=6), problem("opd")


def real(planner, model, path, calls):
    """A checkpoint of a search that was interrupted after so many calls."""

    def press(snapshot):
        if snapshot.samples >= calls:
            signal.raise_signal(signal.SIGINT)

    planner.plan(model, 0, seed=3, budget=BUDGET, checkpoint=path, callback=press)
    _ctrl_c.absorbed = False
    return Checkpoint.read(path)


def dtype_of(kind):
    """The type that a file names; records with their padding."""
    described = ast.literal_eval(kind)
    return np.dtype(described[0][1] if described[0][0] == "" else described)


def strange(when, value, array):
    """Another value for a number."""
    if array.dtype == np.bool_:
        return when.choice([0, 1])
    if np.issubdtype(array.dtype, np.integer):
        near = [-2, -1, 0, 1, 2, 5, len(array), int(value) - 1, int(value) + 1, int(value) * 2]
        info = np.iinfo(array.dtype)
        far = [2**10, 2**20, 2**30, 2**31 - 1, info.max, info.min, info.max - 1]
        return min(max(when.choice(near + near + far), info.min), info.max)
    return when.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, -1e300, 1e-300, 2.0**62, 0.5])


def crafted(checkpoint, when):
    """A checkpoint with some numbers changed, and what was changed."""
    header, arrays, changed = dict(checkpoint.header), dict(checkpoint.arrays), []
    for _ in range(when.choice([1, 1, 1, 2, 3])):
        what = when.random()
        name = when.choice([name for name, stored in arrays.items() if 0 not in stored.shape])
        stored = arrays[name]
        if what < 0.05:
            field = when.choice(["state", "seconds", "budget", "spawn_key", "entropy"])
            header[field] = when.choice([None, -1, 0, 10**30, "[" * 500, "9", [-1], [], {}, 1.5])
            changed.append(("header", field, header[field]))
        elif what < 0.15:
            shape = list(stored.shape)
            place = when.randrange(len(shape))
            rows = shape[place]
            shape[place] = when.choice([0, 1, rows - 1, rows + 1, 2 * rows, 2**33, 2**45, 2**61, -1])
            arrays[name] = stored._replace(shape=tuple(shape))
            changed.append((name, "shape", shape))
        else:
            if stored.shape != checkpoint.arrays[name].shape:
                continue
            dtype = dtype_of(stored.kind)
            array = np.zeros(stored.shape, dtype)
            stored.write(array)
            # Most records are free: change one that is not.
            rows = max(1, min(len(array), -(-len(stored.raw) * len(array) // max(1, array.nbytes))))
            row = when.randrange(rows)
            field = (
                None
                if dtype.names is None
                else when.choice([n for n in dtype.names if dtype[n].kind != "V"])
            )
            column = array if field is None else array[field]
            flat = column.reshape(len(column), -1)
            place = when.randrange(flat.shape[1])
            if column.dtype == np.bool_ and when.random() < 0.3:
                column.view(np.uint8)[row] = 7
            elif when.random() < 0.2:
                flat[row, place] = flat[when.randrange(rows), place]
            else:
                flat[row, place] = strange(when, flat[row, place], flat)
            if field is None:
                array[row] = flat[row].reshape(array[row].shape)
            else:
                array[field][row] = flat[row].reshape(array[field][row].shape)
            arrays[name] = Stored(stored.kind, stored.shape, array.tobytes().rstrip(b"\0"))
            changed.append((name, field, row, flat[row, place]))
    return replace(checkpoint, header=header, arrays=arrays), changed


def resumed(planner, model, path):
    """How a checkpoint fares: "refused" or "resumed"."""
    try:
        plan = planner.resume(path, model, time_limit=0.5)
    except ValueError:
        return "refused"
    budget = Checkpoint.read(path).header["budget"]
    assert budget is None or plan.samples <= budget, "it made too many calls"
    return "resumed"


def main(files, seed):
    """Craft, resume and count; print each kind of failure."""
    warnings.simplefilter("ignore")
    when, counts = random.Random(seed), {"refused": 0, "resumed": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        for planner, model in searches():
            for calls in (1, 100, 250):
                checkpoint = real(planner, model, path, calls)
                assert resumed(planner, model, path) == "resumed"
                for _ in range(files):
                    other, changed = crafted(checkpoint, when)
                    other.write(path)
                    print(json.dumps([repr(planner), repr(changed)]), flush=True)
                    counts[resumed(planner, model, path)] += 1
    print(json.dumps(counts))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
