"""Seeds of plans."""

import secrets

import numpy as np

from pacplan.core import checks

Seed = int | np.random.SeedSequence | None

# Of a seed that is drawn: it can be given again, and every reader of JSON keeps all its digits.
_SEED_BITS = 53


def seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """The seed of all random numbers of a plan."""
    if isinstance(seed, np.random.SeedSequence):
        # A copy, so that planning twice with one sequence gives the same plan.
        return np.random.SeedSequence(entropy=seed.entropy, spawn_key=seed.spawn_key)
    if seed is None:
        return np.random.SeedSequence(secrets.randbits(_SEED_BITS))
    return np.random.SeedSequence(checks.integer("seed", seed, least=0))
