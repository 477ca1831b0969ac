"""Sizes and seeds of random problems that make no sense are refused by name."""

import pytest

from pacplan import envs
from refusals import refused


@pytest.mark.parametrize(
    ("name", "value"),
    [("states", 1.5), ("actions", 0), ("successors", True), ("reward_density", 1.1), ("seed", -1)],
)
def test_garnet_settings(name, value):
    refused(lambda: envs.garnet(**{name: value}), name, repr(value))


def test_garnet_more_successors_than_states():
    refused(lambda: envs.garnet(states=3, successors=4), "successors=4", "3")
