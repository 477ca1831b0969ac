"""Bracket's answers: right, in the end, for every horizon, goal and promise."""

import numpy as np
import pytest

import pacplan
from bandits import bandit
from conftest import interpreted
from hard_problems import GAMMA, TREES, Kind, lens_on_searches, most
from pacplan import BrokenPromiseError, exact
from pacplan.algorithms.betting.bets import LARGEST_FRACTION

lens = pytest.fixture(lens_on_searches)


@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("actions", [2, 5])
def test_wrong_answers_are_rare(delta, actions):
    epsilon, runs = 0.2, 150
    rng = np.random.default_rng(7)
    wrong = 0
    for run in range(runs):
        means = np.full(actions, 0.4)
        best = rng.integers(actions)
        means[best] += epsilon + 0.01
        plan = pacplan.Bracket(epsilon=epsilon, delta=delta, gamma=0.0).plan(
            bandit(*means, noise="bernoulli"), 0, seed=run
        )
        assert plan.certified and plan.gap <= epsilon
        wrong += plan.action != best
    assert wrong <= most(runs, delta)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("kind", TREES, ids=str)
def test_wrong_answers_are_rare_in_trees(kind, delta):
    rng = np.random.default_rng(8)
    runs, wrong = 1000, 0
    for run in range(runs):
        model = kind.draw(rng)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=kind.horizon)[0, 0]
        # As hard as it gets: the second best action is just not good enough.
        epsilon = max(0.9 * float(np.diff(np.sort(q))[-1]), 0.1)
        planner = pacplan.Bracket(epsilon=epsilon, delta=delta, gamma=GAMMA, horizon=kind.horizon)
        plan = planner.plan(model, 0, seed=run, budget=200_000)
        wrong += q.max() - q[plan.action] > max(0.0, plan.gap) + 1e-9
    assert wrong <= most(runs, delta)


@pytest.mark.parametrize(
    ("means", "epsilon"), [((0.09, 0.09), 0.02), ((0.5, 0.5), 0.02), ((0.5, 0.5, 0.5), 0.05)]
)
def test_ties_end(means, epsilon):
    plan = pacplan.Bracket(epsilon=epsilon, delta=0.1, gamma=0.0).plan(
        bandit(*means, noise="bernoulli"), 0, seed=0, budget=2_000_000
    )
    assert plan.certified


def test_forced_bets_alone_reach_the_mean(lens):
    # Coins at 1/2, epsilon = .1: the proof of termination promises L >= 1/2 - (1/8 + 1/12) epsilon.
    planner = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.0, goal="value")
    planner.plan(bandit(0.5, noise="bernoulli"), 0, seed=0, budget=1_500_000)
    search = lens.last[0]
    rules = search.arrays["settings"]
    forced = search.root["forced"][0] * rules["forced_step"][0]
    assert 0.5 - (1 / 8 + 1 / 12) * 0.1 <= forced <= 0.5


@pytest.mark.parametrize("epsilon", [0.7, 0.05, 0.004, 0.0005])
def test_forced_grid_is_fine_enough(lens, epsilon):
    pacplan.Bracket(epsilon=epsilon, delta=0.1, gamma=0.0).plan(
        bandit(0.5, 0.5, noise="bernoulli"), 0, seed=0, budget=1
    )
    rules = lens.last[0].arrays["settings"]
    assert rules["forced_step"][0] <= epsilon / 8 + 1e-12
    halved = lens.last[0].kernel_state().forced_wealth.shape[2] - 1
    assert LARGEST_FRACTION * 0.5**halved <= epsilon / 24


# What was declared.


@pytest.mark.parametrize(
    ("rewards", "transitions"),
    [("unknown", "unknown"), ("deterministic", "unknown"), ("unknown", "deterministic")],
)
@pytest.mark.parametrize("ends", [False, True])
def test_what_is_declared_agrees_with_dynamic_programming(rewards, transitions, ends):
    if "unknown" not in (rewards, transitions):
        pytest.skip("nothing is random")
    rng = np.random.default_rng(3)
    kind = Kind(3, 2, 1 if transitions == "deterministic" else 2, "none", ends, (-1.0, 2.0), False)
    for seed in range(5):
        model = kind.draw(rng)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=3)[0, 0]
        plan = pacplan.Bracket(
            epsilon=0.5, delta=1e-6, gamma=GAMMA, horizon=3, rewards=rewards, transitions=transitions
        ).plan(model, 0, seed=seed, budget=20_000)
        assert plan.upper[np.argmax(q)] >= q.max() - 1e-9
        assert (plan.lower <= q + 1e-9).all()
        if plan.certified:
            assert q[plan.action] >= q.max() - 0.5


def test_broken_promises_are_noticed():
    settings_ = {"epsilon": 0.0, "delta": 0.1, "gamma": GAMMA, "horizon": 2}

    def step(state, action, rng):
        return int(rng.integers(2)), float(rng.integers(2)), False

    noisy = pacplan.Simulator(step, actions=2, reward_range=(0, 1))
    with pytest.raises(BrokenPromiseError, match="='deterministic', but"):
        pacplan.Bracket(**settings_, rewards="deterministic").plan(noisy, 0, seed=0, budget=1000)
    with pytest.raises(BrokenPromiseError, match="second successor"):
        pacplan.Bracket(**settings_, transitions="deterministic").plan(noisy, 0, seed=0, budget=1000)


# Horizons and goals.


def test_certificate_for_the_infinite_horizon():
    rng = np.random.default_rng(5)
    planner = pacplan.Bracket(epsilon=1.0, delta=0.01, gamma=0.5, target="infinite")
    for seed in range(20):
        model = Kind(2, 2, 2, noise="none", reward_range=(-1.0, 1.0)).draw(rng)
        q = exact.discounted(model, gamma=0.5)[0]
        plan = planner.plan(model, 0, seed=seed)
        assert plan.certified
        assert q[plan.action] >= q.max() - 1.0
        tail = 2.0 * 0.5**plan.horizon / 0.5
        assert plan.gap <= 1.0 - tail + 1e-12


@pytest.mark.parametrize("kind", [Kind(1, 1, 1), Kind(1, 3, 1), Kind(2, 2, 2), Kind(2, 1, 2)], ids=str)
def test_value_goal(kind):
    rng = np.random.default_rng(6)
    planner = pacplan.Bracket(epsilon=0.25, delta=0.01, gamma=1.0, horizon=kind.horizon, goal="value")
    for seed in range(10):
        model = kind.draw(rng)
        q = exact.finite_horizon(model, gamma=1.0, horizon=kind.horizon)[0, 0]
        plan = planner.plan(model, 0, seed=seed, budget=200_000)
        assert plan.certified
        assert abs(plan.value - q.max()) <= 0.25 + 1e-12
        assert plan.upper.max() - plan.lower.max() <= 0.5 + 1e-12


def test_one_action_needs_no_call():
    plan = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.5).plan(
        bandit(0.5, noise="bernoulli"), 0, seed=0
    )
    assert plan.certified and plan.samples == 0 and plan.action == 0


def test_what_is_absurd_is_refused():
    model = Kind(3, 2, 2).draw(np.random.default_rng(0))
    with pytest.raises(ValueError, match="H steps"):
        pacplan.Bracket(epsilon=1.0, delta=0.1, gamma=0.5, target="infinite", goal="value")
    with pytest.raises(ValueError, match="at most 151"):
        pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.1, horizon=400).plan(model, 0, seed=0)
    with pytest.raises(ValueError, match="at least 1e-05, or 0"):
        pacplan.Bracket(epsilon=1e-9, delta=0.1, gamma=0.0).plan(model, 0, seed=0)
    plan = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.1, horizon=151).plan(
        model, 0, seed=0, budget=2000
    )
    assert np.isfinite(plan.upper).all()


@pytest.mark.parametrize("goal", ["action", "value"])
def test_delta_is_shared_as_the_proof_says(lens, goal):
    # One twentieth of delta, or a tenth of the half above, is for the sets of transitions: of all pairs
    # that one policy can take at the depths where transitions matter.
    model = Kind(4, 2, 3).draw(np.random.default_rng(0))
    planner = pacplan.Bracket(epsilon=0.2, delta=0.2, gamma=GAMMA, horizon=4, goal=goal)
    planner.plan(model, 0, seed=0, budget=1)
    levels, rules = lens.last[0].arrays["levels"], lens.last[0].arrays["settings"][0]
    below = rules["delta_exploit"] + rules["delta_forced"]
    if goal == "action":
        process = 0.95 * 0.2
        # Each of the two actions has money of its own.
        below += rules["delta_exploit"]
        # Y = beta [below] + (1 - beta) Z [ c + (1 - c) below ]
        assert below == pytest.approx(0.1 * process)
        assert rules["log_joint"] == pytest.approx(-np.log(0.9 * process))
        assert rules["log_share"] == pytest.approx(-np.log(0.2 * 0.9 * process))
    else:
        assert below == pytest.approx(0.1)
        assert rules["log_share"] == pytest.approx(-np.log(0.9 * 0.1))
    np.testing.assert_allclose(levels["price"][:3], np.log(3 * np.array([1, 3, 9]) / 0.01))


INTERPRETED = """
import pacplan
model = pacplan.envs.garnet(states=50, seed=1, noise="bernoulli")
for goal in ("action", "value"):
    planner = pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=0.7, goal=goal)
    plan = planner.plan(model, 0, seed=2, budget=400)
    print(plan.action, plan.lower.tolist(), plan.upper.tolist(), plan.values.tolist())
"""


def test_compiled_and_interpreted_runs_agree(capsys, tmp_path):
    printed = interpreted(INTERPRETED, tmp_path)
    exec(INTERPRETED)
    assert capsys.readouterr().out == printed
