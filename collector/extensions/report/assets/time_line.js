// The time line: what each thread did in a span. Exact where the report has the lanes; elsewhere
// the cells of the heat map tell the waits.

const LANE = 20;
const MAX_LANES = 40;
const MAX_COLORS = 7;
const PALETTES = {
  light: ["#b42318", "#1f5fae", "#1a7f4b", "#8a5a00", "#7a3fa0", "#0f7b83", "#a1306e"],
  dark: ["#ff7a6b", "#7db7f5", "#6fd196", "#e0b354", "#c79bea", "#62c7cf", "#ee8cc0"],
};
const BACKGROUNDS = { holds: "hold", runs: "runs", idle: "idle", sleeps: "idle" };

class TimeLineView {
  constructor(data, cells) {
    this.data = data;
    this.cells = cells;
    this.lanes = data.lanes;
    this.canvas = $("time-line");
    const lanes = this.lanes;
    this.whole = lanes
      ? { beginMs: lanes.begin_ms, endMs: lanes.begin_ms + lanes.span_us / 1000 }
      : { beginMs: cells.beginMs, endMs: cells.timeMs(cells.count) };
    this.span = this.whole;
    whenRedrawn(() => this.draw());
  }

  /** Draw a span in milliseconds since 1970; null: the whole time line. */
  show(span) {
    this.span = span || this.whole;
    this.draw();
  }

  get isExact() {
    const { lanes, whole, span } = this;
    return lanes && span.beginMs >= whole.beginMs - 20 && span.endMs <= whole.endMs + 20;
  }

  /** Return rows: { tid, name, us, waits: [lock -> Float64Array], backgrounds }. */
  rows(columns) {
    const rows = this.isExact ? this.laneRows(columns) : this.cellRows(columns);
    rows.sort((a, b) => b.us - a.us || a.tid - b.tid);
    return rows;
  }

  laneRows(columns) {
    const { lanes, span } = this;
    const perColumn = ((span.endMs - span.beginMs) * 1000) / columns;
    const offset = (span.beginMs - lanes.begin_ms) * 1000;
    const end = (span.endMs - lanes.begin_ms) * 1000;
    return lanes.lanes.map((lane) => {
      const row = { tid: lane.tid, name: lane.name, us: 0, waits: new Map(), backgrounds: [] };
      let at = 0;
      for (let i = 0; i < lane.spans.length; i += 3) {
        const from = Math.max(at, offset);
        at += lane.spans[i];
        const to = Math.min(at, end);
        if (to <= from) continue;
        const state = lanes.states[lane.spans[i + 1]];
        if (state === "waits") {
          row.us += to - from;
          addTo(row.waits, lane.spans[i + 2], columns, (from - offset) / perColumn,
            (to - offset) / perColumn);
        } else if (state in BACKGROUNDS) {
          const [begin, until] = [from, to].map((us) => (us - offset) / perColumn);
          row.backgrounds.push([BACKGROUNDS[state], begin, until]);
        }
      }
      return row;
    });
  }

  cellRows(columns) {
    const { cells, span } = this;
    const cell = (ms) => Math.round(((ms - cells.beginMs) * 1000) / cells.cellUs);
    const from = Math.max(0, cell(span.beginMs));
    const to = Math.min(cells.count, Math.max(cell(span.endMs), from + 1));
    const perColumn = (to - from) / columns;
    const rows = new Map();
    for (const { tid, lock, ...series } of cells.series) {
      let row = rows.get(tid);
      if (!row) {
        const name = this.data.heat.thread_names[tid] || "";
        rows.set(tid, (row = { tid, name, us: 0, waits: new Map(), backgrounds: [] }));
      }
      cells.each(series, from, to, (first, us, count) => {
        row.us += us * count;
        const begin = (first - from) / perColumn;
        const share = Math.min(1, us / cells.cellUs);
        addTo(row.waits, lock, columns, begin, begin + (count / perColumn) * share);
      });
    }
    return [...rows.values()];
  }

  draw() {
    const width = this.canvas.clientWidth || 300;
    const labels = Math.min(230, Math.round(width * 0.27));
    const columns = Math.max(1, Math.floor(width - labels));
    const all = this.rows(columns);
    const rows = all.filter((row) => row.us || row.backgrounds.some(([name]) => name === "hold"));
    const drawn = rows.slice(0, MAX_LANES);
    const colors = this.colors(rows);
    const context = sized(this.canvas, width, drawn.length * LANE + AXIS);
    drawn.forEach((row, number) =>
      this.drawLane(context, row, number * LANE, labels, columns, colors));
    this.drawAxis(context, drawn.length * LANE, labels, width);
    this.tell(rows, drawn, colors, all);
  }

  drawLane(context, row, y, labels, columns, colors) {
    const waited = duration(row.us / 1e6);
    context.fillStyle = colors.get("dim");
    const room = labels - 12 - context.measureText(waited).width;
    context.fillText(fitting(context, row.name || `thread ${row.tid}`, room), 0, y + LANE / 2);
    context.textAlign = "right";
    context.fillText(waited, labels - 6, y + LANE / 2);
    context.textAlign = "left";
    for (const name of ["idle", "runs", "hold"]) {
      const isThin = name !== "hold";
      context.fillStyle = colors.get(name);
      for (const [other, from, to] of row.backgrounds) {
        if (other !== name) continue;
        const [top, height] = isThin ? [8, 4] : [5, 10];
        context.fillRect(labels + from, y + top, Math.max(0.5, to - from), height);
      }
    }
    this.drawWaits(context, row, y, labels, columns, colors);
  }

  /** Draw of each column the lock that was waited for longest; columns alike are one rectangle. */
  drawWaits(context, row, y, labels, columns, colors) {
    const most = new Float64Array(columns);
    const locks = new Array(columns).fill(null);
    for (const [lock, coverage] of row.waits) {
      for (let column = 0; column < columns; column++) {
        if (coverage[column] > most[column]) {
          most[column] = coverage[column];
          locks[column] = lock;
        }
      }
    }
    const level = (column) => Math.min(8, 2 + Math.ceil(most[column] * 6));
    for (let column = 0; column < columns; ) {
      let end = column + 1;
      if (locks[column] !== null) {
        while (end < columns && locks[end] === locks[column] && level(end) === level(column)) end++;
        context.fillStyle = colors.get(locks[column]) || colors.get("dim");
        context.globalAlpha = level(column) / 8;
        context.fillRect(labels + column, y + 2, end - column, LANE - 4);
      }
      column = end;
    }
    context.globalAlpha = 1;
  }

  drawAxis(context, y, labels, width) {
    const { beginMs, endMs } = this.span;
    const ticks = Math.max(1, Math.min(8, Math.floor((width - labels) / 140)));
    context.fillStyle = color("dim");
    for (let number = 0; number <= ticks; number++) {
      const part = number / ticks;
      context.textAlign = number === 0 ? "left" : number === ticks ? "right" : "center";
      const text = clock(beginMs + part * (endMs - beginMs), endMs - beginMs);
      context.fillText(text, labels + part * (width - labels), y + AXIS / 2 + 2);
    }
    context.textAlign = "left";
  }

  colors(rows) {
    const sums = new Map();
    for (const row of rows) {
      for (const [lock, coverage] of row.waits) {
        sums.set(lock, (sums.get(lock) || 0) + coverage.reduce((a, b) => a + b, 0));
      }
    }
    const order = [...sums].sort((a, b) => b[1] - a[1]).slice(0, MAX_COLORS);
    const palette = PALETTES[isDark.matches && !isPrinted.matches ? "dark" : "light"];
    const others = ["dim", "idle", "runs", "hold"].map((name) => [name, color(name)]);
    return new Map([...others, ...order.map(([lock], number) => [lock, palette[number]])]);
  }

  tell(rows, drawn, colors, all) {
    const spanS = (this.span.endMs - this.span.beginMs) / 1000;
    const known = this.data.heat?.is_sampled ? "estimated from samples" : "exact";
    const basis = this.isExact ? known : "from the cells of the heat map: the waits alone";
    const left = rows.length - drawn.length;
    const still = all.length - rows.length;
    $("time-hint").textContent =
      `${duration(spanS)} from ${clock(this.span.beginMs, spanS * 1000)}, ${basis}. ` +
      (left ? `${counted(left, "thread")} with less waiting left out. ` : "") +
      (still ? `${counted(still, "thread")} without waits and holds left out. ` : "") +
      "Choose a span in the heat map to see it here.";
    const locks = [...colors].filter(([key]) => typeof key === "number");
    const names = locks.map(([lock, fill]) => [`waits for ${lockName(this.data, lock)}`, fill]);
    const states = [["holds a lock", "hold"], ["runs", "runs"], ["asleep or idle", "idle"]]
      .filter(() => this.isExact)
      .map(([text, name]) => [text, color(name)]);
    $("time-legend").replaceChildren(...[...names, ...states].map(([text, fill]) => {
      const swatch = element("span", { class: "swatch" });
      swatch.style.background = fill;
      return element("span", {}, swatch, text);
    }));
    const waits = drawn.map((row) => `${row.name || row.tid} waited ${duration(row.us / 1e6)}`);
    this.canvas.setAttribute("aria-label", `What each thread did when: ${named(waits, 10)}`);
  }
}

/** Add a span in columns to the coverage of each column by a lock. */
function addTo(waits, lock, columns, from, to) {
  let coverage = waits.get(lock);
  if (!coverage) waits.set(lock, (coverage = new Float64Array(columns)));
  let column = Math.max(0, Math.floor(from));
  while (column < to && column < columns) {
    coverage[column] += Math.min(to, column + 1) - Math.max(from, column);
    column++;
  }
}
