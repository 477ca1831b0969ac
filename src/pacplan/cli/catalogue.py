"""The planners and problems that come with pacplan, by name, in words: help needs to import nothing."""

PLANNERS = {
    "atlas": "proven, with few calls; for states that recur, even over an infinite horizon",
    "bracket": "proven, with few calls; for successors that recur",
    "canopy": "proven; for successors that may all be new (continuous noise)",
    "mdp-gape": "proven; the planner of the MDP-GapE paper",
    "anytime": "the best move within a budget or time limit, without a setting",
    "sparse-sampling": "proven for small horizons: a full tree of samples",
    "uct": "a good guess within a budget: UCB1 at every node",
    "brue": "a good guess within a budget: uniform exploration",
    "olop": "a good guess within a budget: sequences of actions",
    "kl-olop": "the same with Kullback-Leibler bounds",
    "opd": "certain; for problems without randomness",
    "op-mdp": "certain, from tables, without sampling",
    "stop": "proven; optimistic over policies, for small gamma",
    "trailblazer": "the value of a state",
    "smooth-cruiser": "the value of a state, entropy-regularised",
    "ugape-mcts": "proven; for games of two players",
    "value-iteration": "certain, from tables and outcomes, without sampling",
}
"""The names of `pacplan.planners`, and what each is for."""

PROBLEMS = {
    "game_tree": "a game of two players (needs --set tree=)",
    "garnet": "a random MDP, as in the paper",
    "gridworld": "a maze with a slippery floor",
    "inventory": "order stock for a random demand",
    "queues": "choose which kind of job to work on",
    "riverswim": "swim upstream for a large reward, or drift down to a tiny one",
    "sailing": "cross a lake while the wind turns",
}
"""The names of `pacplan.envs`, and what each is about."""
