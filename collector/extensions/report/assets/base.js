// Elements, figures as text, and the data of the page. No text of the data ever becomes markup:
// everything goes through textContent.

const $ = (id) => document.getElementById(id);

/** Return a new element. `attributes` are its attributes; children are elements or texts. */
function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for an element of SVG. */
function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

/** Return the bytes of a part of the page: base64 of raw deflate. */
async function partOf(id) {
  const text = $(id).textContent;
  let packed;
  if (Uint8Array.fromBase64) packed = Uint8Array.fromBase64(text);
  else {
    const binary = atob(text);
    packed = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) packed[i] = binary.charCodeAt(i);
  }
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Return a number with digits behind the point. A tie goes to the even digit, as in Python. */
function fixed(value, digits) {
  const text = value.toFixed(digits);
  const exactly = value.toFixed(60);
  const isTie = /^50*$/.test(exactly.slice(exactly.indexOf(".") + 1 + digits));
  const isOdd = Number(text.at(-1)) % 2 === 1;
  return isTie && isOdd ? (value - 0.5 / 10 ** digits).toFixed(digits) : text;
}

function threeDigits(value) {
  if (value < 9.995) return fixed(value, 2);
  return fixed(value, value < 99.95 ? 1 : 0);
}

const two = (number) => String(number).padStart(2, "0");

/** Return a time in seconds as text, as collector/render/words/units.py does. */
function duration(seconds) {
  if (seconds === null || seconds === undefined) return "-";
  if (seconds <= 0) return "0";
  const whole = Math.floor(seconds);
  if (whole >= 3600) {
    return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
  }
  if (whole >= 600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  for (const [unit, suffix] of [[1, "s"], [1e-3, "ms"], [1e-6, "us"]]) {
    if (seconds >= unit * 0.9995) return `${threeDigits(seconds / unit)} ${suffix}`;
  }
  return `${fixed(seconds * 1e9, 0)} ns`;
}

/** Return a count with all its digits. */
function exact(number) {
  if (number === null || number === undefined) return "-";
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

function counted(number, thing) {
  return `${exact(number)} ${thing}${number === 1 ? "" : "s"}`;
}

/** Return a moment as time of day in UTC, with milliseconds where the span is short. */
function clock(ms, spanMs) {
  const date = new Date(ms);
  const parts = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()];
  const time = parts.map(two).join(":");
  if (spanMs > 60000) return time;
  return `${time}.${String(date.getUTCMilliseconds()).padStart(3, "0")}`;
}

/** Return the kind and name of a lock. */
function lockName(data, id) {
  return data.lock_names[id] || `lock ${id}`;
}

/** Return the first names, and how many more there are. */
function named(names, most) {
  const left = names.length - most;
  return names.slice(0, most).join(", ") + (left > 0 ? ` and ${exact(left)} more` : "");
}

/** Return the name of a function of a stack. */
function functionName(frame) {
  return frame.function || `${frame.module || "?"}+${frame.offset}`;
}

/** Return a frame with its file and line. */
function frameText(frame) {
  const line = frame.file ? (frame.line ? `${frame.file}:${frame.line}` : frame.file) : "";
  const where = line ? ` at ${line}` : frame.module ? ` in ${frame.module}` : "";
  return functionName(frame) + where + (frame.inlined ? " (inlined)" : "");
}

/** Return a colour of the style sheet. */
function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const isDark = matchMedia("(prefers-color-scheme: dark)");
const isPrinted = matchMedia("print");

/** Call a function when the width or the colours of the page change. */
function whenRedrawn(draw) {
  let wanted = 0;
  const later = () => {
    cancelAnimationFrame(wanted);
    wanted = requestAnimationFrame(draw);
  };
  addEventListener("resize", later);
  isDark.addEventListener("change", later);
  isPrinted.addEventListener("change", draw);
}

const FONT = '12px system-ui, "DejaVu Sans", sans-serif';

/** Give a canvas its size in CSS pixels; return its context, in the same pixels. */
function sized(canvas, width, height) {
  const ratio = Math.min(devicePixelRatio || 1, 3);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = FONT;
  context.textBaseline = "middle";
  return context;
}

/** Return a text that fits into so many pixels. Its middle goes: the ends of locks differ. */
function fitting(context, text, width) {
  const points = [...text];
  if (context.measureText(text).width <= width) return text;
  const part = (count) => {
    const tail = Math.ceil((count * 2) / 3);
    const head = points.slice(0, count - tail).join("");
    return `${head}…${points.slice(points.length - tail).join("")}`;
  };
  let low = 1;
  let high = Math.min(points.length - 1, 200);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(part(middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return part(low);
}
