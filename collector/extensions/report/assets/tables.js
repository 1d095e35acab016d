// Tables that a click or Enter on a head sorts, and that a text filters.

const MAX_ROWS = 50;

/**
 * Add a table to a section.
 * A column has `title`, `value(row)`, and maybe `text(value, row)`, `node(row)`, `help`, `isWords`.
 */
function addTable(section, noun, columns, rows, isStuck, sorting = null) {
  const state = { column: sorting, isDown: true, filter: "", isWhole: false };
  const search = element("input", {
    type: "search", id: `${noun}-filter`, placeholder: "filter",
    "aria-label": `Filter the ${noun}s`,
  });
  const summary = element("p", { class: "hint", role: "status", id: `${noun}-count` });
  const more = element("button", { type: "button", class: "more" });
  const body = element("tbody");
  const heads = columns.map((column) => headOf(column, () => sortBy(column)));
  const table = element(
    "table", { id: `${noun}-table` }, element("thead", {}, element("tr", {}, ...heads)), body,
  );
  section.append(
    element("div", { class: "bar search" }, search), summary,
    element("div", { class: "table" }, table), more,
  );
  const texts = rows.map((row) =>
    columns.map((column) => cellText(column, row)).join(" ").toLowerCase());

  function sortBy(column) {
    state.isDown = state.column === column ? !state.isDown : !column.isWords;
    state.column = column;
    draw();
  }

  function draw() {
    const chosen = rows.map((row, number) => ({ row, number }));
    const shown = chosen.filter(({ number }) => texts[number].includes(state.filter));
    if (state.column) {
      const sign = state.isDown ? -1 : 1;
      const { value } = state.column;
      shown.sort((a, b) =>
        sign * compared(value(a.row), value(b.row), sign) || a.number - b.number);
    }
    const drawn = state.isWhole ? shown : shown.slice(0, MAX_ROWS);
    body.replaceChildren(...drawn.map(({ row }) => rowOf(columns, row, isStuck(row))));
    heads.forEach((head, number) => {
      const isSorted = columns[number] === state.column;
      const order = isSorted ? (state.isDown ? "descending" : "ascending") : "none";
      head.setAttribute("aria-sort", order);
      head.firstChild.textContent =
        columns[number].title + (isSorted ? (state.isDown ? " ▾" : " ▴") : "");
    });
    const whole = shown.length < rows.length ? ` of ${exact(rows.length)}` : "";
    summary.textContent = counted(shown.length, noun) + whole;
    more.hidden = shown.length <= drawn.length;
    more.textContent = `show all ${exact(shown.length)}`;
  }

  search.addEventListener("input", () => {
    state.filter = search.value.toLowerCase();
    draw();
  });
  more.addEventListener("click", () => {
    state.isWhole = true;
    draw();
    heads[0].firstChild.focus();
  });
  draw();
}

function headOf(column, sort) {
  const button = element("button", { type: "button", title: column.help || "" }, column.title);
  button.addEventListener("click", sort);
  const head = element("th", { scope: "col" }, button);
  if (column.isWords) head.className = "words";
  return head;
}

/** Compare two values; those that are not measured come last in any order. */
function compared(a, b, sign) {
  const isMissing = [a, b].map((value) => value === null || value === undefined || value === "");
  if (isMissing[0] || isMissing[1]) return sign * (isMissing[0] - isMissing[1]);
  return typeof a === "string" ? a.localeCompare(b) : a - b;
}

function cellText(column, row) {
  if (column.node) return "";
  const value = column.value(row);
  return column.text ? column.text(value, row) : String(value ?? "-");
}

function rowOf(columns, row, isStuck) {
  const cells = columns.map((column) => {
    const value = column.value(row);
    const cell = element("td", {});
    if (column.isWords) cell.className = "words";
    else if (value === 0) cell.className = "zero";
    if (column.node) cell.append(column.node(row));
    else cell.textContent = cellText(column, row);
    if (typeof value === "number") {
      cell.dataset.value = String(value);
      cell.title = String(value);
    }
    return cell;
  });
  return element("tr", isStuck ? { class: "stuck" } : {}, ...cells);
}

/** Return bars of some values as a picture. */
function sparkline(values) {
  const most = Math.max(...values, 0);
  const width = 84 / values.length;
  const bars = values.map((value, number) => {
    const height = most ? Math.max(value ? 1.5 : 0, (18 * value) / most) : 0;
    const sizes = [number * width, -height, width - 0.4].map((size) => size.toFixed(1));
    return `M${sizes[0]} 20 v${sizes[1]} h${sizes[2]} V20 z`;
  });
  return svg(
    "svg", { class: "sparkline", viewBox: "0 0 84 20", "aria-hidden": "true" },
    svg("path", { d: bars.join("") }),
  );
}

const seconds = (value) => duration(value);

/** Return a column of a figure, of the interval where the document has one. */
function figure(title, key, text, help) {
  return {
    title, help, text,
    value: (row) => (row.interval && key in row.interval ? row.interval[key] : row[key]),
  };
}

function lockTable(data, trend) {
  const stuck = new Set(
    data.snapshot.deadlocks.flatMap((deadlock) => deadlock.cycle.map((edge) => edge.waits_for)),
  );
  addTable($("locks"), "lock", [
    { title: "lock", isWords: true, value: (lock) => data.lock_names[lock.id] || lock.name },
    figure("waited", "wait_s", seconds, "seconds that threads waited, in sum"),
    figure("for work", "idle_s", seconds, "of these, waits for work"),
    figure("waits", "contended", exact, "acquisitions that had to wait"),
    figure("wait p99", "wait_p99_s", seconds, "99 of 100 waits were no longer"),
    { title: "longest wait", value: (lock) => lock.wait_max_s,
      text: (value, lock) => (lock.wait_max_at_least ? ">" : "") + seconds(value),
      help: "the longest wait since the process started, > at least" },
    figure("taken", "acquisitions", exact, "acquisitions"),
    figure("held", "hold_s", seconds, "seconds that the lock was held, by timed holds"),
    { title: "trend", value: (lock) => trend.ofLock(lock).reduce((a, b) => a + b, 0),
      node: (lock) => sparkline(trend.ofLock(lock)), help: trend.help },
    { title: "waiting", value: (lock) => lock.waiters.length, text: exact,
      help: "threads that wait now" },
    { title: "holder", isWords: true, value: (lock) => data.lock_holders[lock.id] || "",
      help: "~ probably, ? the only thread that does not wait" },
  ], data.snapshot.locks, (lock) => stuck.has(lock.id));
}

function threadTable(data, trend) {
  const kinds = data.contention_kinds;
  const stuck = new Set(
    data.snapshot.deadlocks.flatMap((deadlock) => deadlock.cycle.map((edge) => edge.tid)),
  );
  const waited = (thread) => {
    const figures = thread.interval || thread;
    const wait = thread.waiting_for;
    // The sums of other kinds have waits for work, too.
    const isMixed = wait && !wait.idle && !kinds.includes(wait.kind);
    const present = isMixed ? Math.min(wait.since_s, figures.wait_s[wait.kind] || 0) : 0;
    return kinds.reduce((sum, kind) => sum + (figures.wait_s[kind] || 0), present);
  };
  const waitedColumn = {
    title: "waited", value: waited, text: seconds,
    help: "seconds of waits in contention; for semaphores and futexes, of the present wait alone",
  };
  const awaited = (thread) => {
    const wait = thread.waiting_for;
    return wait ? data.lock_names[wait.lock] || `${wait.kind} ${wait.lock}` : "";
  };
  addTable($("threads"), "thread", [
    { title: "thread", isWords: true, value: (thread) => thread.name },
    { title: "tid", value: (thread) => thread.tid, text: String },
    { title: "state", isWords: true, value: (thread) => (thread.alive ? thread.state : "ended") },
    waitedColumn,
    { title: "waits for", isWords: true, value: awaited },
    { title: "since", value: (thread) => (thread.waiting_for ? thread.waiting_for.since_s : null),
      text: seconds, help: "how long the present wait lasts" },
    figure("cpu", "cpu_s", seconds, "seconds on a CPU"),
    figure("taken", "acquisitions", exact, "acquisitions of locks"),
    figure("waits", "contended", exact, "acquisitions that had to wait"),
    { title: "trend", value: (thread) => trend.ofThread(thread).reduce((a, b) => a + b, 0),
      node: (thread) => sparkline(trend.ofThread(thread)), help: trend.help },
    { title: "holds", isWords: true, value: (thread) => thread.heldNames },
  ], data.snapshot.threads.map((thread) => ({
    ...thread,
    heldNames: named(thread.held.map((held) => lockName(data, held.lock)), 5),
  })), (thread) => stuck.has(thread.tid), waitedColumn);
}
