"""How well agents play with equal time for a decision.

    python3 dev.py python benchmarks/play.py               the problems that constants were tuned on
    python3 dev.py python benchmarks/play.py --held-out    others
    python3 dev.py python benchmarks/play.py --tasks Taxi,chain --players anytime,textbook --ms 3

All players meet the same worlds with the same luck, and have the same time for a decision: `--ms` of
processor time, and ten times as much if a step of the problem is Python's. On a machine that is shared,
decisions get as much more time as others lost of late, and one that got far too little is made again;
what Anytime learnt in it stays. All problems take more than an hour, and a third of that with `--ms 3`.

A score is 0 for random play and 1 for the best. If optimal values are known, it follows from what the
actions lose by them, sum of gamma^t (V*(s_t) - Q*(s_t, a_t)), which says more than the rewards: luck
plays less of a part. Otherwise it follows from the sum of rewards; the best is then a known number, or
the best mean of all players. Where a player has several settings, each problem gets the setting that
does best in three worlds that do not count: that is for rivals; Anytime has no settings.

Peers, if they are installed: POUCT of pomdp-py (`pip install pomdp-py`), and mctx (`pip install mctx`),
which is told the probabilities, and takes part only if it is named: it compiles for seconds in each
problem. AI-Toolbox (C++) is left out: pip finds no wheel of it.
"""

import argparse
import math
import time
import warnings
from dataclasses import dataclass, field

import numpy as np
from rich.console import Console
from rich.table import Table

import play_tasks
from pacplan.compiled.tiered import waiting
from play_rivals import Player, players

TRIALS, ELSEWHERE = 3, 100_000
RANDOM_EPISODES = 100
# Played only if named: they need no comparison, or many seconds for each problem.
EXTRA = "best", "mctx"
UNTIMED = "random", "best"
# A decision that got less than this part of its time is made again, up to so many times.
LEAST, AGAIN = 0.4, 5


class Clock:
    """Times decisions. What other programs take of a decision's time, later ones are given back."""

    stretch = 1.0  # time that passes, in units of what is used

    def decide(self, player: Player, world, seconds: float, record: "Record"):
        """A decision that may use so many seconds of the processor; made again if it got too few."""
        made = player.calls
        for _ in range(AGAIN):
            player.calls = made  # Those of a decision that is made again do not count.
            limit = seconds * self.stretch
            began = time.perf_counter(), time.process_time()
            action = player.act(world, limit)
            passed, used = time.perf_counter() - began[0], time.process_time() - began[1]
            if used >= LEAST * seconds or passed < limit / 2:
                break
        if seconds > 0.0:
            now = min(max(seconds / max(used, 1e-9), 0.5), 2.0)
            self.stretch = min(max(self.stretch * now**0.1, 1.0), 5.0)
        record.seconds += used
        record.decisions += 1
        return action


@dataclass
class Record:
    """What a player did in a task."""

    results: list[float] = field(default_factory=list)  # by episode: minus the loss, or the return
    calls: int = 0
    decisions: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        each = max(self.decisions, 1)
        return f"{self.calls / each:,.0f} in {1e3 * self.seconds / each:.1f} ms"


def play(
    task, player: Player, setting, episode: int, seconds: float, clock: Clock, record: Record
) -> None:
    """An episode."""
    world = task.world(episode)
    player.begin(task, setting, episode)
    result, weight = 0.0, 1.0
    for t in range(task.steps):
        if t == 0 and not record.decisions and seconds > 0.0:
            player.act(world, seconds)  # Compiles.
            player.begin(task, setting, episode)
        action = clock.decide(player, world, seconds, record)
        if task.values is not None:
            q = task.values(world.shown[-1])
            result -= weight * (q.max() - q[action])
            weight *= task.gamma
        reward, over = world.step(action, play_tasks.luck(episode, t + 1))
        if task.values is None:
            result += reward
        if over:
            break
    record.calls += player.calls
    record.results.append(result)


def chosen(task, player: Player, seconds: float, clock: Clock):
    """The setting that does best in other worlds."""
    if len(player.settings) == 1:
        return player.settings[0]
    records = [Record() for _ in player.settings]
    for episode in range(ELSEWHERE, ELSEWHERE + TRIALS):
        for setting, record in zip(player.settings, records, strict=True):
            play(task, player, setting, episode, seconds, clock, record)
    means = [np.mean(record.results) for record in records]
    return player.settings[int(np.argmax(means))]


def compare(task, chosen_players: dict[str, Player], episodes: int, ms: float) -> dict[str, Record]:
    """Play a task: each episode by all players in turn, so what disturbs one disturbs all."""
    seconds, clock = ms / 1e3 * (10 if task.slow else 1), Clock()
    able = {name: player for name, player in chosen_players.items() if player.plays(task)}
    settings = {name: chosen(task, player, seconds, clock) for name, player in able.items()}
    records = {name: Record() for name in able}
    for episode in range(episodes):
        for name, player in able.items():
            given = 0.0 if name in UNTIMED else seconds
            play(task, player, settings[name], episode, given, clock, records[name])
    for episode in range(ELSEWHERE, ELSEWHERE + RANDOM_EPISODES):
        play(task, able["random"], {}, episode, 0.0, clock, records["random"])
    for name, setting in settings.items():
        if len(able[name].settings) > 1:
            print(f"    {name}: {setting}", flush=True)
    return records


def scores(
    task, records: dict[str, Record], episodes: int
) -> tuple[dict[str, np.ndarray], float, float]:
    """Scores by player and episode, and the results that 0 and 1 stand for."""
    low, high = float(np.mean(records["random"].results)), 0.0
    if task.values is None:
        means = [np.mean(record.results[:episodes]) for record in records.values()]
        high = max(means) if task.best is None else task.best
    width = max(high - low, 1e-12)
    found = {name: (np.array(r.results[:episodes]) - low) / width for name, r in records.items()}
    return found, low, high


def shown(values: np.ndarray) -> str:
    """A mean and its standard error."""
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / math.sqrt(len(values)):.3f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", help="some of them, or parts of their names, with commas")
    parser.add_argument("--players", help="some of them, with commas")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument(
        "--ms", type=float, default=10.0, help="for a decision; ten times that in Python"
    )
    parser.add_argument("--held-out", action="store_true", help="problems that nothing was tuned on")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    made = play_tasks.HELD_OUT if options.held_out else play_tasks.TUNING
    wanted = [part.strip() for part in (options.tasks or "").split(",")]
    everyone = players()
    names = (options.players or ",".join(name for name in everyone if name not in EXTRA)).split(",")
    names = [name for name in everyone if name in names or name == "random"]
    console = Console(width=60 + 16 * len(names), highlight=False)
    all_scores: dict[str, dict[str, np.ndarray]] = {}
    ends, work, returns = {}, {}, {}
    with waiting():
        for title, make in made.items():
            if not any(part in title for part in wanted):
                continue
            task = make()
            print(f"{title}", flush=True)
            group = {name: everyone[name] for name in names}
            records = compare(task, group, options.episodes, options.ms)
            all_scores[title], *ends[title] = scores(task, records, options.episodes)
            if task.values is None:
                returns[title] = {name: np.array(r.results) for name, r in records.items()}
            work[title] = records
            for name, record in records.items():
                print(f"    {name}: {shown(all_scores[title][name])}, {record}", flush=True)
    report(console, names, all_scores, ends, work)
    if returns:
        table = Table("mean return", *names, box=None)
        for title, row in returns.items():
            table.add_row(title, *(shown(row[name]) if name in row else "" for name in names))
        console.print("", table)


def report(console: Console, names: list[str], found, ends, work) -> None:
    """Print scores, differences from the first player, and work."""
    columns = [name for name in names if name not in ("random", "best")]
    table = Table("score", *columns, "random plays", "best plays", box=None)
    for title, row in found.items():
        cells = [shown(row[name]) if name in row else "" for name in columns]
        table.add_row(title, *cells, *(f"{end:.3g}" for end in ends[title]))
    table.add_section()
    everywhere = [np.mean([row[columns[0]].mean() for row in found.values()])]
    for name in columns[1:]:
        both = [(row[columns[0]].mean(), row[name].mean()) for row in found.values() if name in row]
        everywhere.append(np.mean(both, 0)[1] if both else math.nan)
    table.add_row("mean of those played", *(f"{mean:.3f}" for mean in everywhere), style="bold")
    console.print(table, "")
    table = Table(f"{columns[0]} minus", *columns[1:], box=None)
    for title, row in found.items():
        cells = []
        for name in columns[1:]:
            cell = shown(row[columns[0]] - row[name]) if name in row else ""
            error = np.std(row[columns[0]] - row[name], ddof=1) if name in row else 0.0
            worse = name in row and np.mean(row[columns[0]] - row[name]) < -2 * error / math.sqrt(
                len(row[name])
            )
            cells.append(f"[bold red]{cell} ![/]" if worse else cell)
        table.add_row(title, *cells)
    console.print(table, "")
    table = Table("calls and time of a decision", *columns, box=None)
    for title, records in work.items():
        table.add_row(title, *(str(records[name]) if name in records else "" for name in columns))
    console.print(table)


if __name__ == "__main__":
    main()
