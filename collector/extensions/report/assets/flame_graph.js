// The callers of waits as a flame graph, entry functions first; or the difference of two spans.

const FRAME = 23;
const LEAST_SHARE = 0.0008;

class FlameGraph {
  constructor(stacks) {
    this.stacks = stacks;
    this.view = $("flame");
    this.view.addEventListener("keydown", (event) => this.pressed(event));
  }

  /** Show sums by stack. `first` and `second` are { sums, seconds, name }; second may be null. */
  show(first, second) {
    this.first = first;
    this.second = second;
    this.root = this.node("all", null, null);
    this.add(first, "a");
    if (second) this.add(second, "b");
    this.zoom(this.root);
  }

  node(name, frame, parent) {
    return { name, frame, parent, a: 0, b: 0, children: new Map() };
  }

  add(part, key) {
    // Spans of different lengths are compared by the second.
    const scale = this.second ? 1 / part.seconds : 1;
    for (const [stack, us] of part.sums) {
      const frames = this.stacks[stack] || [];
      let node = this.root;
      node[key] += us * scale;
      const path = frames.length ? [...frames].reverse() : [{ function: "stack not known" }];
      for (const frame of path) {
        const name = functionName(frame);
        let child = node.children.get(name);
        if (!child) node.children.set(name, (child = this.node(name, frame, node)));
        child[key] += us * scale;
        node = child;
      }
    }
  }

  weight(node) {
    return node.a + node.b;
  }

  byWeight(nodes) {
    return [...nodes].sort((a, b) => this.weight(b) - this.weight(a));
  }

  words(node) {
    const where = node.frame ? frameText(node.frame) : "all callers";
    if (this.second) {
      const [a, b] = [node.a, node.b].map((us) => us / 1e6);
      const sign = b >= a ? "+" : "-";
      const change = `${sign}${duration(Math.abs(b - a))}`;
      return `${where}: ${duration(a)} a second, then ${duration(b)} (${change})`;
    }
    const share = this.root.a ? (100 * node.a) / this.root.a : 0;
    return `${where}: ${duration(node.a / 1e6)}, ${share.toFixed(1)} % of these waits`;
  }

  zoom(node) {
    this.top = node;
    this.boxes = new Map();
    const whole = this.weight(node);
    const shapes = [];
    let deepest = 0;
    const above = [];
    for (let parent = node.parent; parent; parent = parent.parent) above.unshift(parent);
    above.forEach((parent, depth) => shapes.push(this.box(parent, 0, 1, depth)));
    const open = [[node, 0, above.length]];
    while (open.length) {
      const [current, left, depth] = open.pop();
      const width = whole ? this.weight(current) / whole : 1;
      if (width < LEAST_SHARE) continue;
      deepest = Math.max(deepest, depth);
      shapes.push(this.box(current, left, width, depth));
      let begin = left;
      for (const child of this.byWeight(current.children.values())) {
        open.push([child, begin, depth + 1]);
        begin += this.weight(child) / whole;
      }
    }
    this.view.replaceChildren(...shapes);
    this.view.style.height = `${(deepest + 1) * FRAME}px`;
    this.focus(node, false);
  }

  box(node, left, width, depth) {
    const all = this.second ? "both spans" : `all: ${duration(node.a / 1e6)}`;
    const label = node.frame ? node.name : all;
    const box = element("div", {
      role: "treeitem", tabindex: -1, "aria-level": depth + 1, "aria-label": this.words(node),
      title: this.words(node),
    }, label);
    Object.assign(box.style, {
      left: `${left * 100}%`, width: `${width * 100}%`, top: `${depth * FRAME}px`,
      background: this.fill(node),
    });
    box.addEventListener("click", () => this.zoom((node === this.top && node.parent) || node));
    box.addEventListener("focus", () => this.tell(node));
    box.addEventListener("mouseenter", () => this.tell(node));
    this.boxes.set(node, box);
    return box;
  }

  fill(node) {
    if (this.second) {
      const whole = this.weight(node);
      const change = whole ? (node.b - node.a) / whole : 0;
      const strength = Math.sqrt(Math.abs(change));
      return `hsl(${change > 0 ? 8 : 212} ${15 + strength * 70}% ${90 - strength * 28}%)`;
    }
    let hash = 7;
    for (const character of node.name) hash = (hash * 31 + character.codePointAt(0)) % 997;
    return `hsl(${18 + (hash % 34)} 78% ${70 + (hash % 9)}%)`;
  }

  tell(node) {
    $("flame-now").textContent = this.words(node);
  }

  focus(node, isMoved = true) {
    for (const box of this.boxes.values()) box.tabIndex = -1;
    const box = this.boxes.get(node);
    box.tabIndex = 0;
    this.current = node;
    if (isMoved) box.focus();
    else this.tell(node);
  }

  pressed(event) {
    const node = this.current;
    const drawn = (nodes) => nodes.filter((other) => this.boxes.has(other));
    const siblings = node.parent ? drawn(this.byWeight(node.parent.children.values())) : [node];
    const number = siblings.indexOf(node);
    const steps = {
      ArrowDown: drawn(this.byWeight(node.children.values()))[0], ArrowUp: node.parent,
      ArrowLeft: siblings[number - 1], ArrowRight: siblings[number + 1], Home: this.root,
    };
    if (event.key in steps) {
      if (steps[event.key]) this.focus(steps[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      this.zoom(node);
      this.focus(node);
    } else if (event.key === "Escape") {
      this.zoom(this.root);
      this.focus(this.root);
    } else return;
    event.preventDefault();
  }
}
