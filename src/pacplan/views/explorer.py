"""The tree explorer: a self-contained page for walking through a search tree."""

import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pacplan.core import checks
from pacplan.core.keys import same
from pacplan.core.words import at_least, at_most, estimated
from pacplan.engine.tree import Evidence, SearchTree
from pacplan.views.outline import Box, Outline, outline
from pacplan.views.style import check_target, library, short

if TYPE_CHECKING:
    from pacplan.result import Plan

# Levels shown at once; a click goes deeper.
_LEVELS = 9
_MOST_SUCCESSORS = 8
_STATE = "#E3E3E3"

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Search tree, pacplan</title>
<link rel="icon" href="data:,">
<style>
body {{ font: 15px/1.45 sans-serif; margin: 1.2em 1.6em; color: #222; max-width: 1500px; }}
h1 {{ font-size: 1.25em; margin: 0 0 .3em; }}
p {{ margin: .25em 0; }}
</style>
</head>
<body>
<h1>The search tree of {planner}</h1>
{paragraphs}
{figure}
</body>
</html>
"""


def explore(plan: "Plan", path: str | os.PathLike[str], *, most: int = 5000) -> Path:
    """Write a page for walking through the search tree of a plan.

    The page holds all it needs and loads nothing from the network. Actions and the states they led to
    lie below one another, in proportion to their visits; a click on a box goes there, the strip above
    leads back. Pointing at a box shows its numbers.

    Args:
        plan: the plan of a planner that keeps a tree.
        path: the file to write, such as "tree.html".
        most: most boxes to show. The most visited ones are shown, and the page says how many are not.

    Returns:
        The path.

    Raises:
        ImportError: Plotly is not installed.
        ValueError: the plan has no tree, or the file cannot be written.
    """
    target = check_page(path)
    checks.integer("most", most, least=1)
    if plan.tree is None:
        raise ValueError(f"there is no search tree to explore: {plan.planner} keeps none")
    shown = outline(plan.tree, most)
    figure, colour = _icicle(plan.tree, plan.action, shown)
    paragraphs = [plan.guarantee, plan.effort, _legend(plan.tree, colour), _cut(shown)]
    page = _PAGE.format(
        planner=escape(plan.planner),
        paragraphs="\n".join(f"<p>{escape(text)}</p>" for text in paragraphs),
        figure=figure.to_html(
            full_html=False,
            include_plotlyjs=True,
            default_height="74vh",
            config={"displayModeBar": False, "responsive": True},
        ),
    )
    target.write_text(page, "utf-8")
    return target


def check_page(path: str | os.PathLike[str]) -> Path:
    """Raise unless a page can be drawn, and written to this path; nothing is written yet."""
    library("plotly")
    return check_target(path, "page", "tree.html")


def _icicle(tree: SearchTree, taken: Any, shown: Outline) -> tuple[Any, str]:
    """The figure, and what its colours mean."""
    evidence = {
        box.name: tree.evidence(box.pair, box.path) for box in shown.boxes if box.pair is not None
    }
    colour, numbers = _colours(evidence)
    here: dict[str, int] = {}
    for box in shown.boxes:
        here[box.parent] = here.get(box.parent, 0) + 1
    hover = []
    for box in shown.boxes:
        known = evidence.get(box.name)
        lines = _of_state(tree, box) if known is None else _of_action(tree, box, known)
        hidden = shown.below[box.name] - here.get(box.name, 0)
        if hidden:
            lines.append(f"not shown: {hidden:,} of the {shown.below[box.name]:,} boxes right below")
        hover.append("<br>".join([f"<b>{escape(lines[0])}</b>", *map(escape, lines[1:])]))
    scale = [number for number in numbers.values() if number is not None]
    graph = library("plotly.graph_objects")
    icicle = graph.Icicle(
        ids=[box.name for box in shown.boxes],
        parents=[box.parent for box in shown.boxes],
        labels=[escape(_label(tree, taken, box)) for box in shown.boxes],
        values=[box.visits for box in shown.boxes],
        hovertext=hover,
        hoverinfo="text",
        branchvalues="total",
        maxdepth=_LEVELS,
        tiling={"orientation": "v"},
        pathbar={"thickness": 26},
        textposition="middle center",
        marker={
            # States are grey: bounds and estimates belong to actions.
            "colors": [_STATE if (x := numbers.get(box.name)) is None else x for box in shown.boxes],
            "colorscale": "Viridis",
            "cmin": min(scale, default=0.0),
            "cmax": max(scale, default=1.0),
            "showscale": bool(scale),
            "colorbar": {"title": {"text": colour, "side": "right"}, "thickness": 16},
            "line": {"color": "white", "width": 1},
        },
    )
    layout = {
        "margin": {"l": 0, "r": 0, "t": 34, "b": 8},
        "uniformtext": {"minsize": 10, "mode": "hide"},
        "hoverlabel": {"align": "left", "font": {"size": 13}},
        "font": {"size": 13},
    }
    return graph.Figure(icicle, layout), colour if scale else ""


def _colours(evidence: dict[str, Evidence]) -> tuple[str, dict[str, float | None]]:
    """What to colour actions by: the quantity known for most of them, and its values."""
    choices: dict[str, dict[str, float | None]] = {
        "distance between the bounds": {
            name: None if known.lower is None or known.upper is None else known.upper - known.lower
            for name, known in evidence.items()
        },
        "value, estimated": {name: known.value for name, known in evidence.items()},
        "upper bound on the value": {name: known.upper for name, known in evidence.items()},
    }
    # The first of those known for most actions.
    title = max(choices, key=lambda title: sum(x is not None for x in choices[title].values()))
    return title, choices[title]


def _label(tree: SearchTree, taken: Any, box: Box) -> str:
    """The box's name on the page."""
    node = box.path[-1]
    if box.pair is not None:
        action = tree.action(node, box.pair)
        mark = ", taken" if len(box.path) == 1 and same(action, taken) else ""
        return f"action {short(action, 20)}{mark}"
    return "end" if tree.nodes[node]["actions"] == 0 else f"state {short(tree.state(node), 20)}"


def _of_state(tree: SearchTree, box: Box) -> list[str]:
    """What is known of a state reached."""
    node = tree.nodes[box.path[-1]]
    if node["actions"] == 0:
        return ["end of the episode", f"reached {box.visits:,} times"]
    name = f"state {short(tree.state(box.path[-1]), 80)}"
    steps = len(box.path) - 1
    return [
        name,
        f"after {steps} step{'s' * (steps != 1)}" if steps else "the state planned from",
        f"n = {box.visits:,} visits",
        f"{int(node['tried']):,} of {int(node['actions']):,} actions tried",
    ]


def _of_action(tree: SearchTree, box: Box, known: Evidence) -> list[str]:
    """What is known of an action tried."""
    assert box.pair is not None
    node = box.path[-1]
    counted = int(tree.pairs[box.pair]["n"])
    lines = [
        f"action {short(tree.action(node, box.pair), 80)}",
        f"step {len(box.path)}" if tree.open_loop else f"in state {short(tree.state(node), 80)}",
        f"n = {counted:,} visits",
    ]
    if counted != box.visits:
        lines[-1] = f"n = {counted:,} ({box.visits:,} further down)"
    if known.reward is not None:
        lines.append(f"reward {estimated(known.reward)} on average")
    if known.reward_interval is not None:
        low, high = known.reward_interval
        lines[-1] += f", bounds {at_least(low)} and {at_most(high)}" if low < high else ", known"
    if known.value is not None:
        lines.append(f"value {estimated(known.value)}, estimated")
    # Whether the bounds are proven depends on the planner; the guarantee above says.
    if known.lower is not None and known.upper is not None:
        lines.append(f"bounds {at_least(known.lower)} and {at_most(known.upper)}")
    elif known.upper is not None:
        lines.append(f"upper bound {at_most(known.upper)}")
    return lines if tree.open_loop else [*lines, *_successors(tree, box.pair)]


def _successors(tree: SearchTree, pair: int) -> list[str]:
    """The states that an action led to, and how often."""
    outcomes = sorted(tree.outcomes(pair), key=lambda outcome: -outcome.count)
    seen = sum(outcome.count for outcome in outcomes)
    lines = [f"{len(outcomes):,} successor{'s' * (len(outcomes) != 1)} seen:"] if outcomes else []
    for outcome in outcomes[:_MOST_SUCCESSORS]:
        name = "end" if outcome.ended else f"state {short(outcome.state)}"
        share = f"{outcome.count / seen:.3f} ({outcome.count:,} times)" if seen else ""
        lines.append(f"  {name}  {share}".rstrip())
    if len(outcomes) > _MOST_SUCCESSORS:
        lines.append(f"  and {len(outcomes) - _MOST_SUCCESSORS:,} more")
    return lines


def _legend(tree: SearchTree, colour: str) -> str:
    """How to read the figure."""
    kinds = "actions and the states they led to (grey)"
    if tree.open_loop:
        kinds = "sequences of actions, whatever states they led to"
    colours = f" Colour: {colour}." if colour else ""
    return (
        f"From the top: {kinds}, as wide as they were often visited.{colours} Point at a box for its "
        "numbers, click on it to go there, and on the strip above the boxes to go back. Bounds hold as "
        "far as the guarantee above says."
    )


def _cut(shown: Outline) -> str:
    """What is not shown."""
    rest = shown.total - len(shown.boxes)
    text = f"All {shown.total:,} boxes that were visited are on this page."
    if rest:
        least = min(box.visits for box in shown.boxes)
        text = (
            f"Cut: {len(shown.boxes):,} of {shown.total:,} boxes are on this page, the most visited "
            f"ones, down to {least:,} visit{'s' * (least != 1)}. The {rest:,} others leave blank space."
        )
    if shown.unvisited:
        text += f" {shown.unvisited:,} that were never visited have no width."
    return text
