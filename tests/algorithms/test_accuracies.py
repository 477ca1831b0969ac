"""Planners that need an accuracy beforehand."""

import pytest

import pacplan


@pytest.mark.parametrize("cls", [pacplan.TrailBlazer, pacplan.SmoothCruiser, pacplan.StOP])
@pytest.mark.parametrize(
    "bad",
    [{"epsilon": 0.0}, {"epsilon": -1.0}, {"delta": 0.0}, {"delta": 1.0}, {"gamma": 1.0}],
)
def test_bad_accuracies(cls, bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        cls(**({"epsilon": 1.0, "delta": 0.1, "gamma": 0.5} | bad))


@pytest.mark.parametrize("cls", [pacplan.TrailBlazer, pacplan.SmoothCruiser, pacplan.StOP])
def test_the_number_of_actions_must_be_known(cls):
    model = pacplan.Simulator(lambda s, a, rng: (s, 0.5, False), actions=lambda s: 2, successors=1)
    with pytest.raises(ValueError, match="max_actions"):
        cls(epsilon=1.0, delta=0.1, gamma=0.5).plan(model, 0)
