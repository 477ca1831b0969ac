"""Sizes and seeds of random problems that make no sense are refused by name."""

import pytest

from conftest import short
from pacplan import envs
from refusals import NOT_FINITE, NOT_REAL, NOT_WHOLE, refused


@pytest.mark.parametrize("name", ["states", "actions", "successors"])
@pytest.mark.parametrize("value", [*NOT_WHOLE, 0, -1], ids=short)
def test_garnet_sizes(name, value):
    refused(lambda: envs.garnet(**{name: value}), name, repr(value))


@pytest.mark.parametrize("value", [*NOT_REAL, *NOT_FINITE, -0.1, 1.1], ids=short)
def test_garnet_reward_density(value):
    refused(lambda: envs.garnet(states=5, reward_density=value), "reward_density", repr(value))


@pytest.mark.parametrize("value", [*NOT_WHOLE, -1], ids=short)
def test_garnet_seed(value):
    refused(lambda: envs.garnet(states=5, seed=value), "seed", repr(value))


def test_garnet_more_successors_than_states():
    refused(lambda: envs.garnet(states=3, successors=4), "successors=4", "3")
