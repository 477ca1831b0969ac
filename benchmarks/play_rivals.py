"""The players of benchmarks/play.py. Those of packages that are missing are left out."""

import importlib.util
import math
import os
import time
from typing import Any

import numba
import numpy as np

import pacplan

# An effective horizon: what comes later is worth less than this part.
REST = 0.01


def effective(gamma: float) -> int:
    """Steps until little is left."""
    return min(math.ceil(math.log(REST) / math.log(gamma)), 200)


class Player:
    """Plays tasks.

    Attributes:
        settings: what it may be set to. The best one is found by playing worlds that do not count.
        calls: calls to the model, of all decisions since `begin`.
    """

    settings: tuple[dict[str, Any], ...] = ({},)
    calls = 0

    def plays(self, task: Any) -> bool:
        """Whether it can play a task."""
        return True

    def begin(self, task: Any, setting: dict[str, Any], seed: int) -> None:
        """Get ready for an episode."""
        raise NotImplementedError

    def act(self, world: Any, limit: float) -> Any:
        """Choose an action within so many seconds."""
        raise NotImplementedError


class Random(Player):
    """Plays at random."""

    def begin(self, task: Any, setting: dict[str, Any], seed: int) -> None:
        """Get ready for an episode."""
        self.rng = np.random.default_rng(seed)

    def act(self, world: Any, limit: float) -> Any:
        """Choose an action."""
        actions = world.actions()
        return actions[int(self.rng.integers(len(actions)))]


class Best(Player):
    """Plays by the optimal values."""

    def plays(self, task: Any) -> bool:
        """Where values are known."""
        return task.values is not None

    def begin(self, task: Any, setting: dict[str, Any], seed: int) -> None:
        """Get ready for an episode."""
        self.values = task.values

    def act(self, world: Any, limit: float) -> Any:
        """Choose an action."""
        return int(np.argmax(self.values(world.shown[-1])))


class Ours(Player):
    """A planner of pacplan."""

    def __init__(self, make: Any, *settings: dict[str, Any], quick: bool = False) -> None:
        self.make, self.settings, self.quick = make, settings or ({},), quick

    def plays(self, task: Any) -> bool:
        """Not if steps are Python's, for those that need many calls."""
        return not (self.quick and task.slow)

    def begin(self, task: Any, setting: dict[str, Any], seed: int) -> None:
        """Get ready for an episode."""
        planner = self.make(gamma=task.gamma, **setting)
        self.agent, self.calls = pacplan.Agent(planner, task.model, seed=seed), 0

    def act(self, world: Any, limit: float) -> Any:
        """Choose an action."""
        self.agent.time_limit = limit
        action = self.agent.act(world.shown[0])
        self.calls += self.agent.history[-1].plan.samples
        return action


def certain(gamma: float) -> Any:
    """Atlas, Bracket or Canopy, as `pacplan.plan` chooses if it is asked for an accuracy."""
    return pacplan.Auto(epsilon="1%", delta=0.1, gamma=gamma, sample=True)


# The textbook's UCT, as simple as it is usually written: a tree of what was seen, one new node in each
# episode, random play below it, a new tree for each decision. The constant C is in units of the range
# of returns; the action played most is taken.


@numba.njit
def step_table(law, state, action, rng):
    """A step in a table."""
    rewards, cumulative, successors = law
    u = rng.random()
    for k in range(cumulative.shape[2]):
        if u < cumulative[state, action, k]:
            return successors[state, action, k], rewards[state, action], False
    return 0, rewards[state, action], True


@numba.njit
def grow(step, law, offered, tree, used, root, episodes, horizon, gamma, c, rng):
    """Play episodes; returns the calls. A node has a state, a sibling and visits; then its actions."""
    child, sibling, states, visits, n, w = tree
    path, rewards = np.empty((horizon, 2), np.int64), np.empty(horizon)
    calls = 0
    for _ in range(episodes):
        node, state, length, inside, over = 0, root, 0, True, False
        steps = 0
        while steps < horizon and not over and used[0] < len(states):
            row = offered[state % len(offered)]
            if inside:
                best, action = -np.inf, 0
                for a in range(len(row)):
                    if row[a]:
                        score = 1e300 * (1.0 + rng.random())
                        if n[node, a] > 0:
                            score = w[node, a] + c * math.sqrt(math.log(visits[node]) / n[node, a])
                        if score > best:
                            best, action = score, a
                path[length] = node, action
                length += 1
            else:
                action = rng.integers(0, len(row))
                while not row[action]:
                    action = rng.integers(0, len(row))
            state, rewards[steps], over = step(law, state, action, rng)
            steps += 1
            if inside and not over:
                after = child[node, action]
                while after >= 0 and states[after] != state:
                    after = sibling[after]
                if after < 0:
                    after, inside = used[0], False
                    used[0] += 1
                    states[after], visits[after], sibling[after] = state, 0, child[node, action]
                    n[after], w[after], child[after] = 0, 0.0, -1
                    child[node, action] = after
                node = after
        calls += steps
        value = 0.0
        for h in range(steps - 1, -1, -1):
            value = rewards[h] + gamma * value
            if h < length:
                node, action = path[h]
                visits[node] += 1
                n[node, action] += 1
                w[node, action] += (value - w[node, action]) / n[node, action]
    return calls


SETTINGS: tuple[dict[str, Any], ...] = (
    {"c": 2**0.5, "horizon": None},
    {"c": 0.3, "horizon": None},
    {"c": 0.05, "horizon": None},
    {"c": 0.1, "horizon": 12},
)


class Textbook(Player):
    """The textbook's UCT."""

    settings = SETTINGS
    nodes = 2**18

    def begin(self, task: Any, setting: dict[str, Any], seed: int) -> None:
        """Get ready for an episode."""
        self.task, self.rng, self.calls = task, np.random.default_rng(seed), 0
        self.gamma, self.horizon = task.gamma, setting["horizon"] or effective(task.gamma)
        low, high = task.model.reward_range
        self.c = setting["c"] * (high - low) * (1 - self.gamma**self.horizon) / (1 - self.gamma)
        if not task.slow and getattr(self, "known", None) is not task:
            self.known = task
            self.step, self.law, self.offered = compiled(task)
            size, actions = self.nodes, self.offered.shape[1]
            pairs = [np.zeros((size, actions), kind) for kind in (np.int32, np.int32, np.float64)]
            self.tree = pairs[0], *(np.zeros(size, np.int64) for _ in range(3)), *pairs[1:]

    def act(self, world: Any, limit: float) -> Any:
        """Choose an action."""
        return self.act_slowly(world, limit) if self.task.slow else self.act_fast(world, limit)

    def act_fast(self, world: Any, limit: float) -> Any:
        """Search in compiled code, some episodes at a time."""
        end, used, episodes = time.perf_counter() + limit, np.ones(1, np.int64), 8
        child, _, _, visits, n, w = self.tree
        child[0], visits[0], n[0], w[0] = -1, 0, 0, 0.0
        root, settings = world.state, (self.horizon, self.gamma, self.c, self.rng)
        while (now := time.perf_counter()) < end and used[0] < self.nodes:
            self.calls += grow(
                self.step, self.law, self.offered, self.tree, used, root, episodes, *settings
            )
            took = time.perf_counter() - now
            episodes = max(1, int(episodes * min(2.0, 3e-4 / took)))
        return int(np.argmax(n[0]))

    def act_slowly(self, world: Any, limit: float) -> Any:
        """Search in Python: one copy of the world for each episode."""
        end, actions = time.perf_counter() + limit, world.actions()
        new = lambda: [0, [0] * len(actions), [0.0] * len(actions), {}]  # noqa: E731
        root = new()
        while root[0] == 0 or time.perf_counter() < end:
            play, node, path, rewards, over = world.branch(self.rng), root, [], [], False
            while len(rewards) < self.horizon and not over:
                if rewards and time.perf_counter() >= end:
                    break
                if node is None:
                    a = int(self.rng.integers(len(actions)))
                else:
                    a = self.choose(node)
                    path.append((node, a))
                seen, reward, over = play(actions[a])
                rewards.append(reward)
                if node is not None and not over:
                    after = node[3].get((a, seen))
                    if after is None:
                        node[3][a, seen] = new()
                    node = after
            self.calls += len(rewards)
            value = 0.0
            for h in range(len(rewards) - 1, -1, -1):
                value = rewards[h] + self.gamma * value
                if h < len(path):
                    node, a = path[h]
                    node[0] += 1
                    node[1][a] += 1
                    node[2][a] += (value - node[2][a]) / node[1][a]
        return actions[int(np.argmax(root[1]))]

    def choose(self, node: Any) -> int:
        """UCB1."""
        visits, n, w, _ = node
        untried = [a for a, count in enumerate(n) if count == 0]
        if untried:
            return untried[int(self.rng.integers(len(untried)))]
        bonus = self.c * math.sqrt(math.log(visits))
        return max(range(len(n)), key=lambda a: w[a] + bonus / math.sqrt(n[a]))


def compiled(task: Any) -> tuple[Any, Any, Any]:
    """The step of a task for Numba, its law, and which actions states offer."""
    if task.table is None:
        own = task.jitted

        @numba.njit
        def step(law, state, action, rng):
            return own(state, action, rng)

        return step, 0, np.ones((1, task.model.max_actions), np.bool_)
    rewards, cumulative, successors = sampled_law(task.table)
    return step_table, (rewards, cumulative, successors), rewards > -np.inf


def sampled_law(table: Any) -> tuple[Any, Any, Any]:
    """Rewards, cumulative probabilities and successors; beyond the last probability is an end."""
    rewards, p, successors = table.sparse()
    cumulative = np.cumsum(p, -1)
    cumulative[np.abs(cumulative - 1.0) < 1e-9] = 1.0
    return rewards, cumulative, np.ascontiguousarray(successors)


class POUCT(Player):
    """POUCT of pomdp-py; observations show the state."""

    settings = SETTINGS[1:]

    def begin(self, task: Any, setting: dict[str, Any], seed: int) -> None:
        """Get ready for an episode."""
        import pomdp_py

        self.task, self.calls, self.rng = task, 0, np.random.default_rng(seed)
        self.horizon = setting["horizon"] or effective(task.gamma)
        low, high = task.model.reward_range
        spread = (high - low) * (1 - task.gamma**self.horizon) / (1 - task.gamma)
        self.c, player, model = setting["c"] * spread, self, task.model

        class Thing(pomdp_py.State, pomdp_py.Observation, pomdp_py.Action):
            """Whatever it is, by its value; None is the end."""

            def __init__(self, value, key):
                self.value, self.key = value, key

            def __hash__(self):
                return hash(self.key)

            def __eq__(self, other):
                return self.key == other.key

        class Rollout(pomdp_py.RolloutPolicy):
            """Random play."""

            def get_all_actions(self, state=None, history=None):
                actions = (0,) if state.value is None else model.actions(state.value)
                return [Thing(action, i) for i, action in enumerate(actions)]

            def rollout(self, state, history=None):
                actions = self.get_all_actions(state)
                return actions[int(player.rng.integers(len(actions)))]

            def sample(self, state):
                return self.rollout(state)

        class Model(pomdp_py.BlackboxModel):
            """Steps of the task."""

            def sample(self, state, action):
                if state.value is None:
                    return state, state, 0.0, 1
                player.calls += 1
                after, reward, over = model.step(state.value, action.value, player.rng)
                after = Thing(None, None) if over else Thing(after, after)
                return after, after, reward, 1

        self.kit = pomdp_py, Thing, Rollout(), Model()

    def act(self, world: Any, limit: float) -> Any:
        """Choose an action."""
        library, thing, policy, model = self.kit
        state = world.shown[0] if self.task.env is None else self.task.model.state_of(world.shown[0])
        root = library.Histogram({thing(state, state): 1.0})
        agent = library.Agent(root, policy, blackbox_model=model)
        planner = library.POUCT(
            max_depth=self.horizon,
            planning_time=limit,
            discount_factor=self.task.gamma,
            exploration_const=self.c,
            rollout_policy=policy,
        )
        return planner.plan(agent).value


class Mctx(Player):
    """Stochastic MuZero of mctx, told the table: its chance nodes know the probabilities.

    New nodes are valued by random play. The number of simulations is fixed when it is compiled: as many
    as fit in the time, by a trial.
    """

    trial = 64

    def plays(self, task: Any) -> bool:
        """Tables."""
        return task.table is not None

    def begin(self, task: Any, setting: dict[str, Any], seed: int) -> None:
        """Get ready for an episode."""
        os.environ.setdefault(
            "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        )
        import jax

        self.calls, self.key = 0, jax.random.PRNGKey(seed)
        if getattr(self, "task", None) is not task:
            self.task, self.size = task, None

    def compile(self, n: int) -> Any:
        """A search of n simulations."""
        import jax
        import jax.numpy as jnp
        import mctx

        rewards, cumulative, successors = sampled_law(self.task.table)
        end, gamma = len(rewards), self.task.gamma
        p = np.diff(cumulative, axis=-1, prepend=0.0)
        p = np.append(p, 1.0 - p.sum(-1, keepdims=True), -1)
        p = np.append(p, np.eye(p.shape[2])[-1][None, None] * np.ones((1, p.shape[1], 1)), 0)
        to = np.append(successors, np.full((*successors.shape[:2], 1), end), -1)
        to = np.append(to, np.full((1, *to.shape[1:]), end), 0)
        offered = np.append(rewards > -np.inf, np.ones((1, p.shape[1]), bool), 0)
        paid = jnp.array(
            np.append(np.where(rewards > -np.inf, rewards, 0.0), np.zeros((1, p.shape[1])), 0)
        )
        logits, to = jnp.array(np.log(np.maximum(p, 1e-12))), jnp.array(to)
        prior = jnp.array(np.where(offered, 0.0, -1e9))

        def rollout(state, key):
            def body(_, carry):
                state, key, value, weight = carry
                key, one, two = jax.random.split(key, 3)
                action = jax.random.categorical(one, prior[state])
                value += weight * paid[state, action]
                k = jax.random.categorical(two, logits[state, action])
                return to[state, action, k], key, value, weight * gamma

            steps = min(effective(gamma), 40)
            return jax.lax.fori_loop(0, steps, body, (state, key, 0.0, 1.0))[2]

        def decide(params, key, action, state):
            state = state[:, 0]
            after = jnp.stack([state, action], 1)
            expected = jax.vmap(rollout)(
                to[state, action, jnp.argmax(logits[state, action], -1)], key[None]
            )
            value = paid[state, action] + gamma * expected
            found = mctx.DecisionRecurrentFnOutput(
                chance_logits=logits[state, action], afterstate_value=value
            )
            return found, after

        def chance(params, key, outcome, after):
            state, action = after[:, 0], after[:, 1]
            new = to[state, action, outcome]
            value = jax.vmap(rollout)(new, key[None])
            found = mctx.ChanceRecurrentFnOutput(
                action_logits=prior[new],
                value=value,
                reward=paid[state, action],
                discount=jnp.full(new.shape, gamma),
            )
            return found, jnp.stack([new, new], 1)

        def search(state, key):
            root = mctx.RootFnOutput(
                prior_logits=prior[state][None],
                value=rollout(state, key)[None],
                embedding=jnp.full((1, 2), state),
            )
            result = mctx.stochastic_muzero_policy(
                None,
                key,
                root,
                decide,
                chance,
                n,
                dirichlet_fraction=0.0,
                temperature=0.0,
                invalid_actions=(prior[state] < 0.0)[None].astype(jnp.float32),
            )
            return result.action[0]

        return jax.jit(search)

    def act(self, world: Any, limit: float) -> Any:
        """Choose an action."""
        import jax

        if self.size is None:
            self.size, self.search = self.trial, self.compile(self.trial)
            took = []
            for _ in range(4):
                began = time.process_time()
                int(self.search(world.state, self.key))
                took.append(time.process_time() - began)
            self.size = max(2, int(self.size * limit / min(took)))
            self.search = self.compile(self.size)
            int(self.search(world.state, self.key))
        self.key, key = jax.random.split(self.key)
        self.calls += self.size
        return int(self.search(world.state, key))


def players() -> dict[str, Player]:
    """All players that can play here, by name."""
    uct = pacplan.UCT
    tuned = [
        {"horizon": 5, "exploration": 0.1},
        {"horizon": 12, "exploration": 0.1},
        {"horizon": 12, "exploration": 0.5},
        {"horizon": 30, "exploration": 0.1},
        {"rollout": "random", "exploration": 0.1},
    ]
    found: dict[str, Player] = {
        "anytime": Ours(pacplan.Anytime),
        "uct": Ours(uct),
        "uct random": Ours(uct, {"rollout": "random"}),
        "uct 5": Ours(uct, {"horizon": 5}),
        "uct tuned": Ours(uct, *tuned),
        "brue": Ours(pacplan.BRUE, quick=True),
        "certain": Ours(certain, quick=True),
        "textbook": Textbook(),
    }
    if importlib.util.find_spec("pomdp_py"):
        found["pomdp-py"] = POUCT()
    if importlib.util.find_spec("mctx"):
        found["mctx"] = Mctx()
    return found | {"random": Random(), "best": Best()}
