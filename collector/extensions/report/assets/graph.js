// The wait-for graph. Each thread stands above the lock that it waits for, each lock above its
// holder, so the causes of all waits are at the bottom. An arrow that closes a circle goes back up.

const CHARACTER = 7.4;
const LABEL_CHARACTER = 6.9;
const LINE = 17;
const GAP = { label: 14, curve: 30, node: 26, side: 22, edge: 4 };

function drawGraph(graph) {
  const view = $("graph-view");
  if (!graph.nodes.length) {
    view.append(element("p", { class: "hint" }, "No thread waits for a lock at this moment."));
    return;
  }
  const nodes = new Map(graph.nodes.map((node) => [node.key, boxOf(node)]));
  const arrows = graph.arrows
    .filter((arrow) => nodes.has(arrow.start) && nodes.has(arrow.end))
    .map((arrow) => ({ ...arrow, isBack: false, side: 0 }));
  const roots = treesOf(nodes, arrows);
  const size = placeTrees(roots, arrows, Math.max(320, view.clientWidth - 8));
  const picture = svg("svg", {
    width: size.width, height: size.height, viewBox: `0 0 ${size.width} ${size.height}`,
    role: "img", "aria-label": graphWords(nodes, arrows),
  });
  for (const arrow of arrows) picture.append(...arrowShapes(nodes, arrow));
  for (const node of nodes.values()) picture.append(...boxShapes(node));
  view.append(picture);
  view.tabIndex = 0;
}

/** Return the graph as sentences, for readers that do not see it. */
function graphWords(nodes, arrows) {
  return arrows
    .map((arrow) => {
      const [start, end] = [arrow.start, arrow.end].map((key) => nodes.get(key).lines.join(" "));
      return `${start} ${arrow.lines.join(" ")} ${end}.`;
    })
    .join(" ");
}

const longest = (lines) => Math.max(0, ...lines.map((line) => [...line].length));

function boxOf(node) {
  return {
    ...node, width: Math.max(4, longest(node.lines)) * CHARACTER + 28,
    height: node.lines.length * LINE + 14, x: 0, y: 0, above: [], below: null, labels: 0,
  };
}

/** Make trees of the graph: each node gets the node below it and those above. Return the roots. */
function treesOf(nodes, arrows) {
  const leaving = new Map([...nodes.keys()].map((key) => [key, []]));
  const entered = new Set(arrows.map((arrow) => arrow.end));
  for (const arrow of arrows) leaving.get(arrow.start).push(arrow);
  const state = new Map();
  const starts = [...nodes.keys()].sort((a, b) => entered.has(a) - entered.has(b));
  for (const start of starts) {
    if (state.has(start)) continue;
    const path = [[start, 0]];
    state.set(start, "open");
    while (path.length) {
      const top = path[path.length - 1];
      const arrow = leaving.get(top[0])[top[1]++];
      if (!arrow) {
        state.set(top[0], "done");
        path.pop();
      } else if (state.get(arrow.end) === "open") arrow.isBack = true;
      else if (!state.has(arrow.end)) {
        state.set(arrow.end, "open");
        path.push([arrow.end, 0]);
      }
    }
  }
  for (const [key, node] of nodes) {
    const forward = leaving.get(key).filter((arrow) => !arrow.isBack);
    node.labels = Math.max(0, ...forward.map((arrow) => arrow.lines.length));
    node.label = Math.max(0, ...forward.map((arrow) => longest(arrow.lines))) * LABEL_CHARACTER;
    if (!forward.length) continue;
    node.below = nodes.get(forward[0].end);
    node.below.above.push(node);
  }
  return [...nodes.values()].filter((node) => !node.below);
}

/** Place the trees side by side, in rows that fit; return the size of the picture. */
function placeTrees(roots, arrows, room) {
  const size = { width: 0, height: GAP.edge };
  let x = GAP.edge;
  let row = [];
  const endRow = () => {
    const height = Math.max(...row.map(({ bottom }) => bottom));
    for (const { root, bottom } of row) shift(root, 0, size.height + height - bottom);
    size.height += height + GAP.curve;
    [row, x] = [[], GAP.edge];
  };
  for (const root of roots) {
    const width = widthOf(root);
    const members = new Set(treeOf(root).map((node) => node.key));
    const backs = arrows.filter((arrow) => arrow.isBack && members.has(arrow.start));
    const labels = Math.max(0, ...backs.map((arrow) => longest(arrow.lines))) * LABEL_CHARACTER;
    const whole = width + (backs.length ? backs.length * GAP.side + labels + 12 : 0);
    if (row.length && x + whole > room) endRow();
    const bottom = placeTree(root, x);
    backs.forEach((arrow, number) => (arrow.side = x + width + (number + 0.4) * GAP.side));
    row.push({ root, bottom });
    x += whole + GAP.node;
    size.width = Math.max(size.width, x);
  }
  endRow();
  return size;
}

function treeOf(root) {
  const nodes = [root];
  for (const node of nodes) nodes.push(...node.above);
  return nodes;
}

/** Return the width of a node with its label and with all above it. */
function widthOf(node) {
  const own = Math.max(node.width, node.width / 2 + 10 + node.label);
  const above = node.above.reduce((sum, child) => sum + widthOf(child) + GAP.node, -GAP.node);
  return (node.span = Math.max(own, above));
}

/** Place a tree, level by level from the top down; return where it ends. */
function placeTree(root, x) {
  const levels = [];
  const open = [[root, x, 0]];
  let deepest = 0;
  const depths = new Map();
  while (open.length) {
    const [node, left, depth] = open.pop();
    deepest = Math.max(deepest, depth);
    depths.set(node, depth);
    const above = node.above.reduce((sum, child) => sum + child.span + GAP.node, -GAP.node);
    let begin = left + Math.max(0, (node.span - above) / 2);
    if (node.above.length <= 1) begin = left;
    for (const child of node.above) {
      open.push([child, begin, depth + 1]);
      begin += child.span + GAP.node;
    }
    node.left = left;
  }
  for (const [node, depth] of depths) (levels[deepest - depth] ??= { nodes: [] }).nodes.push(node);
  let y = 0;
  for (const level of levels) {
    const height = Math.max(...level.nodes.map((node) => node.height));
    for (const node of level.nodes) node.y = y + height - node.height;
    level.bottom = y + height;
    const labels = Math.max(...level.nodes.map((node) => node.labels));
    y = level.bottom + GAP.label + labels * LINE + GAP.curve;
  }
  center(root);
  return levels[levels.length - 1].bottom;
}

/** Put each node below the middle of those above it; a node without any stays at the left. */
function center(root) {
  for (const node of treeOf(root).reverse()) {
    const { above } = node;
    if (!above.length) node.x = node.left;
    else {
      const [first, last] = [above[0], above[above.length - 1]];
      const middle = (first.x + first.width / 2 + last.x + last.width / 2) / 2;
      const most = node.left + node.span - Math.max(node.width, node.width / 2 + 10 + node.label);
      node.x = Math.max(node.left, Math.min(middle - node.width / 2, most));
    }
  }
  // A wide root below a narrow tree: all above it moves to its middle.
  for (const node of treeOf(root)) {
    if (node.above.length !== 1) continue;
    const [child] = node.above;
    const by = node.x + node.width / 2 - (child.x + child.width / 2);
    if (by > 0) shift(child, by, 0);
  }
}

function shift(root, x, y) {
  for (const node of treeOf(root)) {
    node.x += x;
    node.y += y;
  }
}

function boxShapes(node) {
  const shapes = [svg("rect", {
    class: `node ${node.part}`, x: node.x, y: node.y, width: node.width, height: node.height,
    rx: node.part === "lock" ? node.height / 2 : 5,
  })];
  node.lines.forEach((line, number) => shapes.push(svg("text", {
    class: number ? "dim" : "", x: node.x + node.width / 2,
    y: node.y + 7 + LINE * (number + 0.75), "text-anchor": "middle",
  }, line)));
  return shapes;
}

function arrowShapes(nodes, arrow) {
  const [start, end] = [nodes.get(arrow.start), nodes.get(arrow.end)];
  let path, tip, x, y;
  if (arrow.isBack) {
    const from = { x: start.x + start.width, y: start.y + start.height / 2 };
    const to = { x: end.x + end.width, y: end.y + end.height / 2 };
    const side = arrow.side;
    path = `M${from.x} ${from.y} H${side - 8} Q${side} ${from.y} ${side} ${from.y - 8}` +
      ` V${to.y + 8} Q${side} ${to.y} ${side - 8} ${to.y} H${to.x + 8}`;
    tip = `M${to.x} ${to.y} l9 -5 v10 z`;
    [x, y] = [side + 8, (from.y + to.y) / 2 + 4];
  } else {
    const from = { x: start.x + start.width / 2, y: start.y + start.height };
    const to = { x: end.x + end.width / 2, y: end.y };
    const bend = Math.min(from.y + GAP.label + start.labels * LINE, to.y - GAP.curve);
    const middle = (bend + to.y) / 2;
    path = `M${from.x} ${from.y} V${bend}` +
      ` C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y - 8}`;
    tip = `M${to.x} ${to.y} l-5 -9 h10 z`;
    [x, y] = [from.x + 8, from.y + GAP.label + 4];
  }
  const shapes = [svg("path", { class: "arrow", d: path }), svg("path", { class: "tip", d: tip })];
  arrow.lines.forEach((line, number) => shapes.push(svg("text", {
    class: "dim", x, y: y + number * LINE,
  }, line)));
  return shapes;
}
