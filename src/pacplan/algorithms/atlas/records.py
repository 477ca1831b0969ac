"""The arrays of a chart: made, grown, filled with what a round claims, and read."""

import numpy as np

from pacplan.algorithms.atlas.chart import CLAIM, LINK, PAIR, STATE
from pacplan.algorithms.atlas.estimate import Estimate, Numbers, Values, estimate
from pacplan.algorithms.atlas.problem import Design
from pacplan.engine.memory import MemoryBudget
from pacplan.engine.merge_table import empty_table, grown

# States, pairs and links that there is room for at first.
_ROOM = 256


class Records:
    """A chart's arrays: its attributes are those of a `Chart`, but for the engine's."""

    def __init__(self, listed: Numbers, most: int) -> None:
        self.listed, self.most = listed, np.array([most])
        self.states, self.pairs, self.links = (np.zeros(0, kind) for kind in (STATE, PAIR, LINK))
        self.claims = np.zeros(0, CLAIM)
        self.used, self.cursor = np.zeros(3, np.int64), np.zeros(1, np.int64)
        self.state_table, self.link_table = empty_table(16), empty_table(16)
        self.functions, self.outside = np.zeros((1, 0)), np.zeros(0)

    def reserve(self, room: MemoryBudget, actions: int) -> None:
        """Make room for half as many again of all; the last state may have so many actions."""
        states, pairs, links = map(int, self.used)
        more = max(_ROOM, len(self.listed) + 1 - states)
        self.states = room.extend(self.states, states + max(more, states // 2))
        self.pairs = room.extend(self.pairs, pairs + max(_ROOM, actions, pairs // 2))
        self.links = room.extend(self.links, links + max(_ROOM, links // 2))
        self.state_table = grown(self.state_table, len(self.states) - states, room)
        self.link_table = grown(self.link_table, len(self.links) - links, room)
        rows, (before, columns) = len(self.states) + 1, self.functions.shape
        if rows > before:
            room.request((rows - before) * columns * 8)
            wider = np.empty((rows, columns))
            wider[:before], wider[before:] = self.functions, self.outside
            self.functions = wider

    @property
    def calls(self) -> Numbers:
        """Calls of each pair."""
        return np.asarray(self.pairs["calls"][: self.used[1]])

    @property
    def keys(self) -> Numbers:
        """The states, as the session has them."""
        return np.asarray(self.states["key"][: self.used[0]])

    @property
    def closed(self) -> bool:
        """Whether all states that there can be are charted."""
        return bool(self.used[0] == self.most[0])

    @property
    def called(self) -> bool:
        """Whether all calls that were to do are made."""
        return bool(self.used[0] > 0 and self.cursor[0] == self.used[1])

    def order(self, todo: Values) -> None:
        """Have the first pairs called so often, rounded up, and the others not."""
        pairs = self.pairs[: self.used[1]]
        pairs["todo"] = 0
        pairs["todo"][: len(todo)] = np.ceil(todo)
        self.cursor[0] = 0

    def estimate(self, lowest: float, width: float) -> Estimate:
        """What the calls so far suggest."""
        states, pairs, links = map(int, self.used)
        return estimate(self.pairs[:pairs], self.links[:links], states, lowest, width)

    def begin(self, design: Design, room: MemoryBudget) -> None:
        """Have the calls from now on count for the claims of a design."""
        claims, functions = design.claims, design.functions
        rows, columns = len(self.states) + 1, len(functions.outside)
        room.request(max(0, rows * columns - self.functions.size) * 8)
        self.outside = functions.outside
        self.functions = np.empty((rows, columns))
        self.functions[: functions.values.shape[1]] = functions.values.T
        self.functions[functions.values.shape[1] :] = functions.outside
        self.claims = np.zeros(len(claims.pair), CLAIM)
        self.claims["column"], self.claims["theta"] = claims.function, claims.theta
        self.claims["product"] = 1.0
        pairs = self.pairs[: self.used[1]]
        first = np.searchsorted(claims.pair, np.arange(len(pairs) + 1))
        pairs["claim"], pairs["claims"] = first[:-1], np.diff(first)

    def end(self) -> None:
        """The round is over: calls count for no claims."""
        self.pairs["claims"] = 0
        self.claims = np.zeros(0, CLAIM)
