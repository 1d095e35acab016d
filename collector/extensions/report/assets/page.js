// Puts the page together.

function showHead(data) {
  const { process, host, taken_at: taken } = data.snapshot;
  $("title").textContent = `${process.comm} ${process.pid}`;
  $("origin").textContent = `locktop report · ${host} · ${taken}`;
  document.title = `${process.comm} ${process.pid}: locktop report`;
  data.sentences.forEach((text, number) => {
    const label = element("span", { class: "label" }, ["Verdict", "Cause", "What helps"][number]);
    const kind = number ? "plain" : data.tone;
    $("sentences").append(element("p", { class: `sentence ${kind}` }, label, text));
  });
}

function showSections() {
  for (const section of document.querySelectorAll("section")) {
    if (section.hidden) continue;
    const link = element("a", { href: `#${section.id}` }, section.querySelector("h2").textContent);
    $("sections").append(link);
  }
}

const block = (lines) => element("pre", { tabindex: 0 }, lines.join("\n").replace(/^\n+/, ""));

function folded(title, ...content) {
  return element("details", {}, element("summary", {}, title), ...content);
}

function showFindings(data) {
  const body = $("findings-body");
  for (const lines of data.findings) body.append(block(lines));
  const names = new Map(data.snapshot.threads.map((thread) => [thread.tid, thread.name]));
  for (const pattern of data.snapshot.patterns) {
    const where = pattern.lock ? ` at ${lockName(data, pattern.lock)}` : "";
    const threads = pattern.tids.map((tid) => `${names.get(tid) || ""} ${tid}`.trim());
    body.append(
      element("h3", {}, data.pattern_words[pattern.name] + where),
      element("p", {}, `${pattern.evidence}.`),
      element("p", { class: "hint" }, `Threads: ${named(threads, 8)}`),
      element("p", { class: "advice" }, element("strong", {}, "What helps: "), pattern.advice),
    );
  }
  if (data.potential.length) body.append(folded("Potential deadlocks", block(data.potential)));
  if (!body.childNodes.length) {
    body.append(element("p", { class: "hint" }, "No deadlock, no potential one, and no pattern."));
  }
}

function showParts(data) {
  for (const lines of data.parts) $("parts-body").append(block(lines));
  $("whatif").hidden = !data.parts.length;
}

function showStacks(data) {
  const body = $("stacks-body");
  const names = new Map(data.snapshot.threads.map((thread) => [thread.tid, thread.name]));
  const groups = data.snapshot.thread_groups.filter((group) => group.stack);
  groups.sort((a, b) => a.idle - b.idle || (b.longest_s || 0) - (a.longest_s || 0));
  for (const group of groups) {
    const frames = data.snapshot.stacks[group.stack] || [];
    const who = group.threads.length > 1
      ? `${exact(group.threads.length)} threads (${group.name})`
      : `${names.get(group.threads[0]) || group.name} ${group.threads[0]}`;
    const what = group.lock ? data.lock_names[group.lock] || group.lock_name : group.state;
    const since = group.longest_s === null ? "" : `, for up to ${duration(group.longest_s)}`;
    const title = `${who}: ${what}${since}${group.idle ? ", for work" : ""}`;
    const lines = frames.map((frame, number) => `${number} ${frameText(frame)}`);
    const detail = folded(title, block(lines));
    detail.open = !group.idle && body.childNodes.length < 5;
    body.append(detail);
  }
  if (!groups.length) body.append(element("p", { class: "hint" }, "No stack is known."));
}

function showMeasured(data) {
  for (const [name, text] of data.measured) {
    $("measured-body").append(element("dt", {}, name), element("dd", {}, text));
  }
}

/** Return what a sparkline shows: the cells of the heat map, else the last minute. */
function trendOf(data, cells) {
  if (!cells) {
    const { recent_lock_waits: locks, recent_thread_waits: threads } = data.snapshot;
    const none = new Array(12).fill(0);
    return {
      help: "waits in the last minute", ofLock: (lock) => locks[lock.id] || none,
      ofThread: (thread) => threads[thread.tid] || none,
    };
  }
  const columns = Math.min(42, cells.blocks);
  const perColumn = Math.ceil(cells.blocks / columns) * cells.block;
  const rows = (key) => cells.rows(key, 0, cells.count, perColumn);
  const [locks, threads] = [rows("lock"), rows("tid")];
  const none = new Array(columns).fill(0);
  return {
    help: "waits over the time of the heat map",
    ofLock: (lock) => [...(locks.get(lock.id) || none)],
    ofThread: (thread) => [...(threads.get(thread.tid) || none)],
  };
}

/** Return the microseconds by stack that the counters of the snapshot have. */
function countedStacks(data) {
  const sums = new Map();
  for (const lock of data.snapshot.locks) {
    for (const entry of lock.wait_stacks) {
      if (entry.idle) continue;
      const us = 1e6 * (entry.interval ? entry.interval.wait_s : entry.wait_s);
      if (us > 0) sums.set(entry.stack, (sums.get(entry.stack) || 0) + us);
    }
  }
  return sums;
}

function showTime(data, cells) {
  const stacks = { ...(data.heat ? data.heat.stacks : {}), ...data.snapshot.stacks };
  const flame = new FlameGraph(stacks);
  if (!cells) {
    $("heat-body").hidden = $("time").hidden = true;
    $("heat-hint").textContent =
      "A saved snapshot has no waits over time. Reports of recordings and running processes have.";
    $("callers-hint").textContent = "All waits in contention, by the counters of the snapshot.";
    const sums = countedStacks(data);
    flame.show({ sums, seconds: 1 }, null);
    if (!sums.size) $("callers").hidden = true;
    return;
  }
  const kinds = data.heat.is_sampled ? ", estimated from samples" : "";
  $("heat-hint").textContent =
    `Waits in contention in cells of ${cells.cellUs / 1000} ms${kinds}. ` +
    "The stronger the colour, the more threads wait. Times are UTC.";
  const line = new TimeLineView(data, cells);
  const part = (span) => ({
    sums: cells.stacks(cells.chosen(span.key, span.value), span.from, span.to),
    seconds: ((span.to - span.from) * cells.cellUs) / 1e6,
  });
  const words = (span) => {
    const spanMs = ((span.to - span.from) * cells.cellUs) / 1000;
    const [from, to] = [span.from, span.to].map((cell) => clock(cells.timeMs(cell), spanMs));
    return `${span.name}, ${from} to ${to}`;
  };
  new HeatMap(data, cells, (first, second) => {
    flame.show(part(first), second && part(second));
    $("callers-hint").textContent = second
      ? `First: ${words(first)}. Second: ${words(second)}. Red grew, blue shrank, by the second.`
      : `${words(first)}. Width is time waited; entry functions are at the top.`;
    const { isWhole, from, to } = second || first;
    line.show(isWhole ? null : { beginMs: cells.timeMs(from), endMs: cells.timeMs(to) });
  });
}

/** Wait until the whole file is read: the cells come last, behind this script. */
function whenRead() {
  return new Promise((resolve) => {
    if (document.readyState !== "loading") resolve();
    else addEventListener("DOMContentLoaded", resolve);
  });
}

async function showPage() {
  const data = JSON.parse(new TextDecoder().decode(await partOf("document")));
  showHead(data);
  drawGraph(data.graph);
  showParts(data);
  showFindings(data);
  showStacks(data);
  showMeasured(data);
  document.documentElement.dataset.begun = String(Math.round(performance.now()));
  await whenRead();
  const cells = data.heat ? new Cells(data.heat, await partOf("cells")) : null;
  showTime(data, cells);
  const trend = trendOf(data, cells);
  lockTable(data, trend);
  threadTable(data, trend);
  showSections();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

addEventListener("beforeprint", () => {
  for (const detail of document.querySelectorAll("details")) detail.open = true;
});
showPage().catch((error) => {
  const text = `This report is damaged: ${error.message}`;
  $("sentences").append(element("p", { class: "sentence alert" }, text));
  throw error;
});
