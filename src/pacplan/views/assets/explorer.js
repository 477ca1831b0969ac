// Walks through the search tree. All text goes in as text nodes: names are the user's own.
(() => {
  "use strict";
  const tree = JSON.parse(document.getElementById("tree-data").textContent);
  const host = document.getElementById("explorer");
  // Where we are, and how: places, each with the number of the action that led there.
  const walked = [{ place: 0, by: null }];

  // Records, as views/explorer.py writes them.
  const placeOf = ([name, visits, offered, actions]) => ({ name, visits, offered, actions });
  const recordOf = ([name, visits, reward, rewardLow, rewardHigh, value, lower, upper, successors, seen]) =>
    ({ name, visits, reward, rewardLow, rewardHigh, value, lower, upper, successors, seen });
  const actionOf = (number) => recordOf(tree.actions[number]);
  const total = (action) => action.successors.reduce((sum, [, , times]) => sum + times, 0);

  const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

  function element(tag, options = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(options)) {
      if (name === "onclick") made.addEventListener("click", value);
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  function drawn(tag, attributes, style) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    Object.assign(made.style, style);
    return made;
  }

  // What the bars of a place have in common: an axis that holds all bounds and estimates.
  function scaleOf(actions) {
    const all = actions.flatMap((a) => [a.lower, a.upper, a.value]).filter((x) => x !== null);
    const low = Math.min(...all), high = Math.max(...all);
    return (x) => (high > low ? `${(100 * (x - low) / (high - low)).toFixed(2)}%` : "50%");
  }

  function words(action) {
    const parts = [];
    if (action.lower !== null && action.upper !== null) parts.push(`${action.lower} to ${action.upper}`);
    else if (action.upper !== null) parts.push(`at most ${action.upper}`);
    if (action.value !== null) parts.push(`estimate ${action.value}`);
    return parts.join(", ");
  }

  function bar(action, at, role) {
    const colour = `var(--${role})`;
    const picture = drawn("svg", { role: "img", "aria-label": words(action) || "nothing is known" }, {});
    if (action.upper !== null) {
      const low = action.lower === null ? action.upper : action.lower;
      picture.append(drawn(
        "line", { x1: at(low), x2: at(Math.max(low, action.upper)), y1: 10, y2: 10 },
        { stroke: colour, strokeWidth: 7, strokeLinecap: "round", strokeOpacity: 0.5 }));
    }
    if (action.value !== null) {
      picture.append(drawn("circle", { cx: at(action.value), cy: 10, r: 4 }, { fill: colour }));
    }
    return picture;
  }

  // Only the root's actions are taken, or challenge the one that is.
  function roleOf(number) {
    return number === tree.taken ? "taken" : number === tree.challenger ? "challenger" : "other";
  }

  function stateName(name) {
    return name === null ? "the end of the episode" : `state ${tree.names[name]}`;
  }

  function successor([place, name, times], by, all) {
    const share = all > 0 ? times / all : 0;
    const label = tree.openLoop ? "go on from here" : stateName(name);
    const open = place !== null;
    const line = element("li", {});
    const filled = element("i", { style: `width:${(100 * share).toFixed(1)}%` });
    const width = element("span", { class: "share", "aria-hidden": "true" }, filled);
    const to = open
      ? element("button", { type: "button", onclick: () => walk({ place, by }) }, label)
      : element("span", {}, label);
    const often = tree.openLoop || all === 0 ? "" : `${share.toFixed(3)} (${times.toLocaleString("en")})`;
    line.append(width, to, element("span", { class: "times" }, often));
    return line;
  }

  function actionRow(number, at) {
    const action = actionOf(number);
    const role = roleOf(number);
    const name = element("span", {}, `action ${tree.names[action.name]} `);
    if (role !== "other") name.append(element("small", { class: role }, role));
    const known = element("span", { class: "known" }, words(action) || count(action.visits, "visit"));
    const head = element("summary", {}, name, bar(action, at, role), known);
    const row = element("details", { class: "act" }, head);
    row.addEventListener("toggle", () => {
      if (row.open && row.children.length === 1) row.append(led(number));
    });
    return row;
  }

  function led(number) {
    const action = actionOf(number);
    const facts = [count(action.visits, "visit")];
    if (action.reward !== null) {
      const known = action.rewardLow === null ? "" : action.rewardLow === action.rewardHigh
        ? ", known" : `, between ${action.rewardLow} and ${action.rewardHigh}`;
      facts.push(`reward ${action.reward} on average${known}`);
    }
    const inside = element("div", { class: "led" }, element("p", {}, `${facts.join("; ")}.`));
    if (action.successors.length) {
      inside.append(element("ul", {}, ...action.successors.map((s) => successor(s, number, total(action)))));
    } else inside.append(element("p", {}, "Nothing below was recorded."));
    const more = action.seen - action.successors.length;
    if (more > 0) inside.append(element("p", {}, `and ${count(more, "rarer state")}`));
    return inside;
  }

  function crumbs() {
    const list = element("ol", { class: "crumbs" });
    walked.forEach((step, i) => {
      const place = placeOf(tree.places[step.place]);
      const state = tree.openLoop && i > 0 ? null : stateName(place.name);
      const by = i === 0 ? "start" : `action ${tree.names[actionOf(step.by).name]}`;
      const label = i > 0 && state ? `${by}, ${state}` : by;
      const last = i === walked.length - 1;
      const back = () => { walked.length = i + 1; show(true); };
      const entry = last ? label : element("button", { type: "button", onclick: back }, label);
      list.append(element("li", last ? { "aria-current": "step" } : {}, entry));
    });
    return element("nav", { "aria-label": "The way here" }, list);
  }

  function walk(...steps) {
    walked.push(...steps);
    show(true);
  }

  // The map: actions and the states they led to below one another, as wide as they were often taken. It
  // shows nothing that the list below it does not lead to, so readers of the screen pass it by.
  const LEVELS = 6, HEIGHT = 22, NARROWEST = 0.6;

  function map(place) {
    const cells = [];
    let deepest = 0;
    const put = (left, width, level, label, colour, strength, steps) => {
      deepest = Math.max(deepest, level + 1);
      const box = { x: `${left}%`, y: level * HEIGHT, width: `${width}%`, height: HEIGHT - 1 };
      const cell = drawn("svg", box, {});
      const title = drawn("title", {}, {});
      title.textContent = label;
      const text = drawn("text", { x: 4, y: 15 }, {});
      text.textContent = label;
      const inside = { width: "100%", height: "100%", rx: 2 };
      cell.append(title, drawn("rect", inside, { fill: colour, fillOpacity: strength }));
      // A name that would be cut off early says nothing.
      if (width * host.clientWidth > 100 * Math.min(6.5 * label.length + 10, 90)) cell.append(text);
      if (steps.length) {
        cell.style.cursor = "pointer";
        cell.addEventListener("click", () => walk(...steps));
      }
      cells.push(cell);
    };
    const below = (number, left, width, level, colour, steps) => {
      const actions = placeOf(tree.places[number]).actions.map((n) => [n, actionOf(n)]);
      const visits = actions.reduce((sum, [, action]) => sum + action.visits, 0) || 1;
      for (const [n, action] of actions) {
        const wide = width * action.visits / visits;
        if (wide < NARROWEST) { left += wide; continue; }
        const ink = colour || `var(--${roleOf(n)})`;
        put(left, wide, level, `action ${tree.names[action.name]}`, ink, 0.45, steps);
        if (level + 1 < LEVELS) onwards(n, left, wide, level + 1, ink, steps);
        left += wide;
      }
    };
    const onwards = (by, left, width, level, colour, steps) => {
      const action = actionOf(by), all = total(action);
      for (const [place, name, times] of action.successors) {
        const wide = tree.openLoop ? width : all > 0 ? width * times / all : 0;
        if (wide >= NARROWEST) {
          const open = place !== null;
          const there = open ? [...steps, { place, by }] : steps;
          if (!tree.openLoop) put(left, wide, level, stateName(name), colour, 0.2, open ? there : []);
          // The places of sequences of actions have no line of their own.
          const next = tree.openLoop ? level : level + 1;
          if (open && next < LEVELS) below(place, left, wide, next, colour, there);
        }
        left += wide;
      }
    };
    const first = walked.length > 1 ? `var(--${roleOf(walked[1].by)})` : null;
    below(place, 0, 100, 0, first, []);
    const picture = drawn("svg", { class: "map", "aria-hidden": "true", height: deepest * HEIGHT }, {});
    picture.append(...cells);
    return picture;
  }

  function show(focus) {
    const step = walked[walked.length - 1];
    const place = placeOf(tree.places[step.place]);
    const steps = walked.length - 1;
    const title = steps > 0 && tree.openLoop ? `After ${count(steps, "action")}` : stateName(place.name);
    const heading = element("h3", { tabindex: "-1" }, title.replace(/^state/, "State"));
    const facts = [steps === 0 ? "where the plan begins" : `after ${count(steps, "step")}`];
    if (!tree.openLoop) facts.push(count(place.visits, "visit"));
    facts.push(`${count(place.offered, "action")} offered`);
    const about = element("div", {}, heading, element("p", {}, facts.join(", ")));
    const here = element("div", { class: "here" }, about);
    const visits = (number) => actionOf(number).visits;
    const actions = [...place.actions].sort((a, b) => visits(b) - visits(a));
    const at = scaleOf(actions.map(actionOf));
    host.replaceChildren(crumbs(), here, map(step.place), ...actions.map((n) => actionRow(n, at)));
    if (focus) heading.focus({ preventScroll: true });
    if (focus && host.getBoundingClientRect().top < 0) host.scrollIntoView();
  }

  show(false);
})();
