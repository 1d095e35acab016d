// The heat map: locks or threads over time. Keys and the mouse choose a span of a row.

const ROW = 22;
const AXIS = 24;
const COLUMN = 4;
const MAX_HEAT_ROWS = { lock: 20, tid: 30 };

class HeatMap {
  /** `onChoose(first, second)` gets one or two spans: { from, to, key, value, name }. */
  constructor(data, cells, onChoose) {
    this.data = data;
    this.cells = cells;
    this.onChoose = onChoose;
    this.canvas = $("heat-map");
    this.key = "lock";
    this.from = 0;
    this.to = cells.count;
    this.row = 0;
    this.anchor = null;
    this.span = null;
    this.first = null;
    this.second = null;
    this.totals = { lock: this.sums("lock"), tid: this.sums("tid") };
    this.connect();
    this.choose(false);
    whenRedrawn(() => this.draw());
  }

  sums(key) {
    const sums = new Map();
    for (const series of this.cells.series) {
      sums.set(series[key], (sums.get(series[key]) || 0) + series.us);
    }
    return [...sums].sort((a, b) => b[1] - a[1]);
  }

  name(value) {
    if (value === null) return this.key === "lock" ? "all locks" : "all threads";
    if (this.key === "lock") return lockName(this.data, value);
    const name = this.data.heat.thread_names[value];
    return name ? `${name} ${value}` : `thread ${value}`;
  }

  get values() {
    const rows = this.totals[this.key].slice(0, MAX_HEAT_ROWS[this.key]);
    return [null, ...rows.map(([value]) => value)];
  }

  // ---- drawing ----

  measure() {
    const width = this.canvas.clientWidth || 300;
    const labels = Math.min(230, Math.round(width * 0.27));
    const columns = Math.max(1, Math.floor((width - labels) / COLUMN));
    let perColumn = Math.max(1, Math.ceil((this.to - this.from) / columns));
    const { block } = this.cells;
    if (this.cells.isWhole(this.from, this.to)) perColumn = Math.ceil(perColumn / block) * block;
    const count = Math.ceil((this.to - this.from) / perColumn);
    return { width, labels, perColumn, count, step: (width - labels) / count };
  }

  draw() {
    const layout = (this.layout = this.measure());
    const { cells, from, to } = this;
    const values = this.values;
    const sums = cells.rows(this.key, from, to, layout.perColumn);
    const all = new Float64Array(layout.count);
    for (const row of sums.values()) row.forEach((us, column) => (all[column] += us));
    const rows = values.map((value) => (value === null ? all : sums.get(value)));
    this.rows = rows;
    this.most = 0;
    for (const row of rows.slice(1)) {
      if (row) this.most = row.reduce((most, us) => Math.max(most, us), this.most);
    }
    const height = values.length * ROW + AXIS;
    const context = sized(this.canvas, layout.width, height);
    const heat = color("heat");
    values.forEach((value, number) => {
      const y = number * ROW;
      context.fillStyle = color(number === this.row ? "text" : "dim");
      context.font = `${number === this.row ? "600 " : ""}${FONT}`;
      context.fillText(fitting(context, this.name(value), layout.labels - 10), 0, y + ROW / 2);
      context.fillStyle = color("panel");
      context.fillRect(layout.labels, y + 1, layout.width - layout.labels, ROW - 2);
      this.drawRow(context, layout, rows[number], y, heat, value === null);
    });
    this.drawAxis(context, layout, values.length * ROW);
    this.drawSpans(context, layout);
    this.tell();
  }

  drawRow(context, layout, row, y, heat, isSum) {
    if (!row) return;
    const most = isSum ? Math.max(...row) : this.most;
    context.fillStyle = heat;
    row.forEach((us, column) => {
      if (!us) return;
      context.globalAlpha = 0.12 + 0.88 * Math.sqrt(us / most);
      // Whole pixels: else a thin line shows between two cells.
      const begin = Math.round(layout.labels + column * layout.step);
      const end = Math.round(layout.labels + (column + 1) * layout.step);
      context.fillRect(begin, y + 1, Math.max(1, end - begin), ROW - 2);
    });
    context.globalAlpha = 1;
  }

  drawAxis(context, layout, y) {
    const spanMs = ((this.to - this.from) * this.cells.cellUs) / 1000;
    const plot = layout.width - layout.labels;
    const ticks = Math.max(1, Math.min(8, Math.floor(plot / 140)));
    context.fillStyle = color("dim");
    context.font = FONT;
    for (let number = 0; number <= ticks; number++) {
      const part = number / ticks;
      const text = clock(this.cells.timeMs(this.from) + part * spanMs, spanMs);
      context.textAlign = number === 0 ? "left" : number === ticks ? "right" : "center";
      context.fillText(text, layout.labels + part * plot, y + AXIS / 2 + 2);
    }
    context.textAlign = "left";
  }

  drawSpans(context, layout) {
    const frame = (span, row, style, isDashed) => {
      const begin = Math.max(0, (span.from - this.from) / layout.perColumn);
      const end = Math.min(layout.count, (span.to - this.from) / layout.perColumn);
      if (end <= begin || row < 0) return;
      context.strokeStyle = style;
      context.lineWidth = 2;
      context.setLineDash(isDashed ? [4, 3] : []);
      context.strokeRect(
        layout.labels + begin * layout.step, row * ROW + 1,
        Math.max(3, (end - begin) * layout.step), ROW - 2,
      );
      context.setLineDash([]);
    };
    if (this.first && !this.first.isWhole && this.first.key === this.key) {
      frame(this.first, this.values.indexOf(this.first.value), color("link"), false);
    }
    if (this.second && this.second.key === this.key) {
      frame(this.second, this.values.indexOf(this.second.value), color("good"), false);
    }
    if (this.span) frame(this.span, this.row, color("text"), true);
  }

  /** Say in words what is chosen. */
  tell() {
    const span = this.span || { from: this.from, to: this.to };
    const value = this.values[this.row];
    const us = this.cells
      .chosen(this.key, value)
      .reduce((sum, series) => sum + this.cells.sum(series, span.from, span.to), 0);
    const spanMs = ((span.to - span.from) * this.cells.cellUs) / 1000;
    const from = clock(this.cells.timeMs(span.from), spanMs);
    const to = clock(this.cells.timeMs(span.to), spanMs);
    const threads = us / (spanMs * 1000);
    $("heat-now").textContent =
      `${this.name(value)}, ${from} to ${to}: ${duration(us / 1e6)} of waits` +
      (us ? `, ${threads >= 0.01 ? threads.toFixed(2) : "<0.01"} threads on average` : "");
    $("heat-now").dataset.us = String(us);
    $("zoom-in").disabled = !this.span || this.to - this.from <= 2;
    const isWhole = this.from === 0 && this.to === this.cells.count;
    $("zoom-out").disabled = $("whole").disabled = isWhole;
    $("compare").disabled = !this.span || !this.first;
    $("clear").disabled = !this.span && !this.second && (!this.first || this.first.isWhole);
  }

  // ---- choosing ----

  connect() {
    const { canvas } = this;
    for (const [id, key] of [["by-lock", "lock"], ["by-thread", "tid"]]) {
      $(id).addEventListener("click", () => this.show(key));
    }
    const buttons = {
      "zoom-in": () => this.zoomIn(), "zoom-out": () => this.zoomOut(),
      whole: () => this.window(0, this.cells.count), choose: () => this.choose(false),
      compare: () => this.choose(true), clear: () => this.clear(),
    };
    for (const [id, act] of Object.entries(buttons)) $(id).addEventListener("click", act);
    canvas.addEventListener("keydown", (event) => this.pressed(event));
    canvas.addEventListener("pointerdown", (event) => {
      const hit = this.hit(event);
      if (!hit) return;
      this.row = hit.row;
      this.anchor = hit.column;
      this.point(hit.column);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.anchor === null || !canvas.hasPointerCapture(event.pointerId)) return;
      const hit = this.hit(event, true);
      if (hit) this.point(hit.column, true);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (this.anchor === null) return;
      this.anchor = null;
      this.choose(event.shiftKey);
    });
  }

  hit(event, isDragged) {
    const box = this.canvas.getBoundingClientRect();
    const { labels, step, count } = this.layout;
    const row = Math.floor((event.clientY - box.top) / ROW);
    const column = Math.floor((event.clientX - box.left - labels) / step);
    if (!isDragged && (row < 0 || row >= this.values.length || column < 0)) return null;
    return { row, column: Math.max(0, Math.min(count - 1, column)) };
  }

  /** Choose a column; or the span from the anchor to it. */
  point(column, isWider) {
    const { perColumn } = this.layout;
    const other = isWider && this.anchor !== null ? this.anchor : column;
    const [low, high] = other < column ? [other, column] : [column, other];
    this.span = {
      from: this.from + low * perColumn,
      to: Math.min(this.to, this.from + (high + 1) * perColumn),
    };
    this.column = column;
    this.draw();
  }

  pressed(event) {
    const columns = this.layout.count;
    const column = this.column ?? -1;
    const steps = {
      ArrowLeft: Math.max(0, column - 1), ArrowRight: Math.min(columns - 1, column + 1),
      PageUp: Math.max(0, column - 10), PageDown: Math.min(columns - 1, column + 10),
      Home: 0, End: columns - 1,
    };
    if (event.key in steps) {
      if (!event.shiftKey) this.anchor = null;
      else if (this.anchor === null) this.anchor = Math.max(0, column);
      this.point(steps[event.key], event.shiftKey);
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const row = this.row + (event.key === "ArrowUp" ? -1 : 1);
      this.row = Math.max(0, Math.min(this.values.length - 1, row));
      this.draw();
    } else if (event.key === "Enter" || event.key === " ") this.choose(false);
    else if (event.key === "c" && !event.ctrlKey) this.choose(true);
    else if (event.key === "+") this.zoomIn();
    else if (event.key === "-") this.zoomOut();
    else if (event.key === "Escape") this.clear();
    else return;
    event.preventDefault();
  }

  show(key) {
    this.key = key;
    this.row = 0;
    $("by-lock").setAttribute("aria-pressed", String(key === "lock"));
    $("by-thread").setAttribute("aria-pressed", String(key === "tid"));
    this.draw();
  }

  window(from, to) {
    this.from = Math.max(0, from);
    this.to = Math.min(this.cells.count, Math.max(to, this.from + 1));
    this.anchor = null;
    this.column = null;
    this.draw();
  }

  zoomIn() {
    if (!this.span) return;
    const middle = (this.span.from + this.span.to) / 2;
    const length = Math.max(
      this.span.to - this.span.from, Math.min(8, this.cells.count),
      (this.span.to - this.span.from) * 2 >= this.to - this.from ? 0 : 1,
    );
    this.window(Math.floor(middle - length / 2), Math.ceil(middle + length / 2));
  }

  zoomOut() {
    const length = this.to - this.from;
    this.window(Math.floor(this.from - length / 2), Math.ceil(this.to + length / 2));
  }

  choose(isSecond) {
    const value = this.values[this.row];
    const span = this.span || { from: this.from, to: this.to };
    const chosen = { ...span, key: this.key, value, name: this.name(value), isWhole: !this.span };
    if (isSecond && this.first) this.second = chosen;
    else {
      this.first = chosen;
      this.second = null;
    }
    this.draw();
    this.onChoose(this.first, this.second);
  }

  clear() {
    this.span = this.first = this.second = this.anchor = this.column = null;
    this.row = 0;
    this.choose(false);
  }
}
