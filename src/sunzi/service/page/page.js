// The live page: asks the collector every two seconds how many reports an epoch holds and, when they are more than
// before, draws its histogram, its reports over time and its health. It talks to its own origin alone.
//
// Every figure here comes from the collector; the page counts and estimates nothing. Text of others (labels, messages)
// is only ever set as text, never as markup.

const POLL_SECONDS = 2;
const LONGEST_PAUSE_SECONDS = 30;
const LIST_SECONDS = 20;
// A view is asked for again only after so many times what its last answer took: a slow one cannot busy the collector.
const REST_FACTOR = 10;
const ANNOUNCE_SECONDS = 15;
const TOKEN_KEY = "sunzi-admin-token";
const SVG = "http://www.w3.org/2000/svg";
const BASE = new URL(".", location.href);

const byId = (id) => document.getElementById(id);

const state = {
  token: sessionStorage.getItem(TOKEN_KEY) ?? "",
  epochs: [],
  listedAt: -Infinity,
  chosen: null, // { collection, epoch }
  status: null, // of the chosen epoch
  offer: null, // the plan that clients of the chosen collection are told
};

// ------------------------------------------------------------------------------------------------------ asking the API

class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

class LostConnection extends Error {}

async function ask(path, signal) {
  const headers = state.token ? { Authorization: `Bearer ${state.token}` } : {};
  const options = { headers, signal, cache: "no-store", credentials: "omit" };
  const answer = await fetch(new URL(path, BASE), options).catch((error) => {
    throw signal?.aborted ? error : new LostConnection();
  });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Refusal(answer.status, said.message ?? `the collector answered ${answer.status}`);
}

const askJson = async (path, signal) => (await ask(path, signal)).json();

const epochPath = ({ collection, epoch }) => `v1/collections/${collection}/epochs/${epoch}`;

function estimateQuery() {
  const query = new URLSearchParams({ top: byId("top").value });
  if (byId("search").value) query.set("search", byId("search").value);
  if (byId("beside").checked) query.set("postprocess", byId("method").value);
  return query;
}

// ---------------------------------------------------------------------------------------------------- numbers as words

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const clockSeconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const month = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric" });
const dayAndClock = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
});

const atSecond = (format, seconds) => format.format(new Date(seconds * 1000));
const minus = (text) => text.replace("-", "−");
const whole = (number) => minus(grouped.format(Math.round(number) || 0)); // "|| 0" because −0 is written "-0"
const counted = (number, noun) => `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;

function percent(share, decimals) {
  const text = (100 * share).toFixed(decimals);
  return minus(Number(text) === 0 ? (0).toFixed(decimals) : text);
}

/** Decimals of a percentage that show two digits of the typical error. */
function decimalsFor(standardErrors) {
  const typical = [...standardErrors].sort((a, b) => a - b)[Math.floor(standardErrors.length / 2)] * 100;
  return typical > 0 ? Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(typical)))) : 2;
}

function epsilonAsNumber(text) {
  const [numerator, denominator = "1"] = text.split("/");
  return Number(numerator) / Number(denominator);
}

/** The exact fraction, unless it is long; its file has it in full. */
function epsilonInShort(text) {
  return text.length <= 6 ? `ε = ${text}` : `ε ≈ ${Number(epsilonAsNumber(text).toPrecision(4))}`;
}

function epsilonInWords(text) {
  const factor = Math.exp(epsilonAsNumber(text));
  const times = factor < 1e15 ? Number(factor.toPrecision(3)).toLocaleString("en-US") : `e^${text}`;
  return `Whatever a user sent, no value makes that report more than ${times} times as likely as another.`;
}

// ------------------------------------------------------------------------------------------ changing only what changed

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
  return node;
}

function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

function element(name, className, text = "") {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = text;
  return node;
}

const svgElement = (name, attributes = {}) => setAttributes(document.createElementNS(SVG, name), attributes);

function svgText(text, attributes) {
  const node = svgElement("text", attributes);
  node.textContent = text;
  return node;
}

/** Speak to those who do not see: at once if it answers an action, else at most once in a while. */
const announcer = {
  spokenAt: -Infinity,
  say(text, atOnce = false) {
    if (!atOnce && performance.now() - this.spokenAt < ANNOUNCE_SECONDS * 1000) return;
    if (byId("announcer").textContent === text) return;
    this.spokenAt = performance.now();
    setText(byId("announcer"), text);
  },
};

let toastTimer = 0;
function showToast(text) {
  setText(byId("toast"), text);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => setText(byId("toast"), ""), 8000);
}

// ---------------------------------------------------------------------------------------------------- facts at the top

function drawStatus(status) {
  setText(byId("collection"), status.collection);
  setText(byId("epoch"), `epoch ${status.epoch}`);
  document.title = `${status.collection}: ${counted(status.reports, "report")}`;
  setAttributes(byId("state"), { "data-state": status.open ? "open" : "closed" });
  const closing = status.open ? "" : ` ${atSecond(dayAndClock, status.closed_at)}`;
  setText(byId("state"), status.open ? "Open: takes reports" : `Closed${closing}: takes no reports any more`);
  setText(byId("reports"), whole(status.reports));
  setText(byId("since"), `since ${atSecond(dayAndClock, status.opened_at)}`);
  setText(byId("epsilon"), epsilonInShort(status.epsilon));
  setText(byId("epsilon-words"), epsilonInWords(status.epsilon));
  setText(byId("values"), whole(status.domain_size));
  const bits = Number(status.report_bits.toFixed(1)).toLocaleString("en-US");
  const onAverage = status.report_bits % 1 ? " on average" : "";
  setText(byId("protocol"), `protocol ${status.protocol}, ${bits} bits a report${onAverage}`);
  drawTick(status);
  announcer.say(counted(status.reports, "report"));
}

function drawTick({ open, reports }) {
  const texts = {
    waiting: "Waiting for the first report",
    arrived: open ? `${counted(reports, "report")} arrived` : `Closed with ${counted(reports, "report")}`,
    closed: "Closed without a report",
  };
  const now = reports > 0 ? "arrived" : open ? "waiting" : "closed";
  const tick = byId("tick");
  if (tick.dataset.state === "waiting" && now === "arrived" && tick.dataset.epoch === epochPath(state.chosen)) {
    announcer.say("The first report has arrived.", true);
  }
  setAttributes(tick, { "data-state": now, "data-epoch": epochPath(state.chosen) });
  setText(byId("tick-text"), texts[now]);
}

function fillChooser() {
  const several = state.epochs.length > 1;
  setHidden(byId("chooser"), !several);
  const choice = byId("choice");
  const described = (epoch) => `${epoch.collection}, epoch ${epoch.epoch}${epoch.open ? "" : " (closed)"}`;
  const wanted = state.epochs.map(described).join("\n");
  if (choice.dataset.holds !== wanted) {
    choice.replaceChildren(...state.epochs.map((epoch) => new Option(described(epoch), epochPath(epoch))));
    choice.dataset.holds = wanted;
  }
  if (state.chosen) choice.value = epochPath(state.chosen);
}

// ----------------------------------------------------------------------------------------------------------- histogram

/** Where shares stand, in percent of the drawing's width, and the ticks between. Zero is always among them. */
function makeAxis(rows, processedColumn) {
  const values = rows.flatMap((row) => [row.low, row.high, row.frequency, processedColumn ? row[processedColumn] : 0]);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const step = niceStep((high - low || 1e-6) / 5);
  // The ends are round numbers, so that the axis moves only now and then while reports come in.
  const [first, last] = [Math.floor((5 * low) / step) / 5, Math.ceil((5 * high) / step) / 5];
  const ticks = [];
  for (let tick = Math.ceil(first); tick <= last; tick += 1) ticks.push(tick * step);
  const place = (share) => 3 + (94 * (share / step - first)) / (last - first);
  const decimals = Math.max(0, -Math.floor(Math.log10(100 * step) + 1e-9));
  return { ticks, place: (share) => `${place(share).toFixed(3)}%`, decimals, name: `${first} ${last} ${step}` };
}

function niceStep(atLeast) {
  const power = 10 ** Math.floor(Math.log10(atLeast));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= atLeast * (1 - 1e-9));
}

function gridLines({ ticks, place }, from = 0) {
  return ticks.map((tick) => {
    const [x1, x2] = [place(tick), place(tick)];
    return svgElement("line", { x1, x2, y1: from, y2: "100%", class: tick === 0 ? "zero" : "grid" });
  });
}

function drawAxis(axis) {
  const node = byId("axis");
  if (node.dataset.name === axis.name) return;
  node.dataset.name = axis.name;
  const many = axis.ticks.length > 6;
  const labels = axis.ticks
    .filter((tick, index) => !many || index % 2 === axis.ticks.indexOf(0) % 2)
    .map((tick) => {
      const place = { x: axis.place(tick), y: 12, class: tick === 0 ? "tick-zero" : "tick" };
      return svgText(`${percent(tick, axis.decimals)} %`, place);
    });
  node.replaceChildren(...labels, ...gridLines(axis, 17));
}

/** One row of the table, made once and then only changed. */
function makeRow() {
  const row = document.createElement("tr");
  row.setAttribute("role", "row");
  const cells = Object.fromEntries(
    ["label", "drawing", "share", "interval", "processed", "users"].map((name) => {
      const cell = element(name === "label" ? "th" : "td", name);
      cell.setAttribute("role", name === "label" ? "rowheader" : "cell");
      row.append(cell);
      return [name, cell];
    }),
  );
  cells.label.scope = "row";
  const label = element("bdi", "label-text");
  const mark = element("span", "near-zero", "≈ 0");
  mark.append(element("span", "unseen", ", not distinguishable from 0"));
  const line = element("div", "label-line");
  line.append(label, mark);
  cells.label.append(line);
  const drawing = makeDrawing();
  cells.drawing.append(drawing.svg);
  return { row, cells, label, mark, drawing };
}

function makeDrawing() {
  const svg = svgElement("svg", { "aria-hidden": "true" });
  const parts = {
    grid: svgElement("g"),
    bar: svgElement("rect", { class: "mark-bar", height: 12 }),
    whisker: svgElement("line", { class: "mark-whisker" }),
    low: svgElement("rect", { class: "mark-cap", width: 1.5, height: 10 }),
    high: svgElement("rect", { class: "mark-cap", width: 1.5, height: 10 }),
    processed: svgElement("svg", { width: 1, height: 1, class: "mark-holder" }),
  };
  parts.processed.append(svgElement("path", { class: "mark-processed", d: "M0-5.5l5.5 5.5-5.5 5.5-5.5-5.5z" }));
  svg.append(...Object.values(parts));
  return { svg, ...parts };
}

function drawRow(made, row, axis, decimals, processedColumn) {
  const label = String(row.label);
  setText(made.label, label.trim() ? label : JSON.stringify(label));
  setAttributes(made.label, { title: label });
  setAttributes(made.row, { class: row.above_zero ? "clear" : "unclear" });
  setHidden(made.mark, row.above_zero);
  setText(made.cells.share, `${percent(row.frequency, decimals)} %`);
  setText(made.cells.interval, `${percent(row.low, decimals)} … ${percent(row.high, decimals)}`);
  setText(made.cells.users, whole(row.count));
  setText(made.cells.processed, processedColumn ? `${percent(row[processedColumn], decimals)} %` : "");
  drawMarks(made.drawing, row, axis, processedColumn);
}

function drawMarks(drawing, row, { place, ticks, name }, processedColumn) {
  const lane = processedColumn ? "36%" : "50%";
  const [from, to] = [Math.min(0, row.frequency), Math.max(0, row.frequency)];
  const width = `${(Number.parseFloat(place(to)) - Number.parseFloat(place(from))).toFixed(3)}%`;
  if (drawing.svg.dataset.name !== name) drawing.grid.replaceChildren(...gridLines({ ticks, place }));
  drawing.svg.dataset.name = name;
  setAttributes(drawing.bar, { x: place(from), width, y: lane });
  setAttributes(drawing.whisker, { x1: place(row.low), x2: place(row.high), y1: lane, y2: lane });
  setAttributes(drawing.low, { x: place(row.low), y: lane });
  setAttributes(drawing.high, { x: place(row.high), y: lane });
  const at = processedColumn ? place(row[processedColumn]) : "0%";
  setAttributes(drawing.processed, { x: at, y: "78%", display: processedColumn ? "inline" : "none" });
}

const madeRows = [];

function drawHistogram(estimate, status, address) {
  const rows = estimate.histogram;
  const searched = new URL(address, BASE).searchParams.get("search"); // not what has been typed since
  if (!rows.length) return drawNoHistogram("No value matches", `No label contains “${searched}”.`);
  const processedColumn = estimate.postprocess ? `frequency_${estimate.postprocess}` : null;
  const axis = makeAxis(rows, processedColumn);
  const decimals = decimalsFor(rows.map((row) => row.standard_error));
  while (madeRows.length < rows.length) madeRows.push(makeRow());
  rows.forEach((row, index) => drawRow(madeRows[index], row, axis, decimals, processedColumn));
  const body = byId("body");
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  body.append(...madeRows.slice(body.rows.length, rows.length).map((made) => made.row));
  drawAxis(axis);
  setAttributes(byId("rows"), { "data-decimals": Math.min(4, decimals) }); // its columns are as wide as that needs
  describeHistogram(estimate, rows, searched);
  setHidden(byId("empty"), true);
  for (const id of ["rows", "legend"]) setHidden(byId(id), false);
}

function describeHistogram(estimate, rows, searched) {
  const shown = shownInWords(rows.length, estimate.domain_size, searched);
  setText(byId("histogram-about"), `${shown}, from ${counted(estimate.reports, "report")}`);
  setText(byId("level"), `${Number((100 * estimate.level).toPrecision(6))} % interval`);
  setHidden(byId("negatives"), !rows.some((row) => row.frequency < 0));
  describeProcessing(estimate, Boolean(estimate.postprocess));
  if (searched) announcer.say(`${counted(rows.length, "value")} found`, true);
}

function shownInWords(rows, size, searched) {
  if (searched) return counted(rows, "matching value");
  return rows < size ? `the ${rows} most frequent of ${whole(size)} values` : `all ${rows} values`;
}

function describeProcessing({ postprocess, postprocess_effect: effect }, isProcessed) {
  byId("rows").classList.toggle("with-processed", isProcessed);
  for (const id of ["processed-key", "effect"]) setHidden(byId(id), !isProcessed);
  setText(byId("processed-title"), isProcessed ? `Post\u2011processed ${postprocess}` : "");
  setText(byId("effect"), isProcessed ? `Post-processed by ${postprocess}, beside the raw estimate: ${effect}.` : "");
}

function drawNoHistogram(title, text) {
  setText(byId("empty-title"), title);
  setText(byId("empty-text"), text);
  setText(byId("histogram-about"), "");
  for (const id of ["rows", "effect", "negatives", "legend"]) setHidden(byId(id), true);
  setHidden(byId("empty"), false);
}

// --------------------------------------------------------------------------------------------------- reports over time

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const BIN_SECONDS = [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 28 * DAY, 364 * DAY];
const TICK_SECONDS = [1, 2, 5, 10, 15, 30].map((n) => n * MINUTE)
  .concat([1, 2, 3, 6, 12].map((n) => n * HOUR), [1, 2, 7, 14, 28, 91, 182, 364].map((n) => n * DAY));
const PLOT = { top: 10, height: 112 };

const shiftOf = (seconds) => new Date(seconds * 1000).getTimezoneOffset() * MINUTE;
const floorTo = (seconds, step) => Math.floor((seconds - shiftOf(seconds)) / step) * step + shiftOf(seconds);

function makeBins(minutes, status) {
  const end = status.open ? Date.now() / 1000 : status.closed_at;
  const last = Math.max(end, ...minutes.slice(-1).map((row) => row.minute));
  const first = Math.min(minutes[0]?.minute ?? status.opened_at, last - 10 * MINUTE);
  const width = BIN_SECONDS.find((seconds) => (last - first) / seconds <= 150) ?? BIN_SECONDS.at(-1);
  const start = floorTo(first, width);
  const bins = new Array(Math.floor((last - start) / width) + 1).fill(0);
  for (const { minute, reports } of minutes) bins[Math.floor((minute - start) / width)] += reports;
  return { start, width, bins, end: start + bins.length * width };
}

const widthInWords = (seconds) => {
  const [unit, name] = [[DAY, "day"], [HOUR, "hour"], [MINUTE, "minute"]].find(([size]) => seconds >= size);
  return seconds === unit ? name : `${seconds / unit} ${name}s`;
};

function steps(bins, top) {
  const corners = bins.map((reports, index) => `V${(1 - reports / top).toFixed(4)}H${index + 1}`).join("");
  return `M0 1${corners}V1`;
}

function timeTicks({ start, end }) {
  const step = TICK_SECONDS.find((seconds) => (end - start) / seconds <= 5) ?? TICK_SECONDS.at(-1);
  const ticks = [];
  for (let at = floorTo(start, step) + step; at < end; at += step) ticks.push(at);
  return ticks.map((at) => {
    const share = (100 * (at - start)) / (end - start);
    const isMidnight = step >= DAY || floorTo(at, DAY) === at;
    return { share, text: atSecond(step > 28 * DAY ? month : isMidnight ? day : clock, at) };
  });
}

function drawProgress(minutes, status) {
  const made = makeBins(minutes, status);
  const top = roundAbove(Math.max(...made.bins));
  const plot = stepPlot(made.bins, top);
  byId("timeline").replaceChildren(...levelMarks(top), plot, ...levelLabels(top), ...timeMarks(made));
  setText(byId("progress-about"), `per ${widthInWords(made.width)}`);
  setText(byId("progress-text"), progressInWords(minutes));
}

/** An even number not below this one, with at most two digits before its zeros. */
function roundAbove(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  const factor = [1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10].find((each) => each * power >= most);
  return Math.max(2, 2 * Math.ceil((factor * power) / 2));
}

const heightOf = (level, top) => PLOT.top + PLOT.height * (1 - level / top);

function levelMarks(top) {
  return [top, top / 2, 0].map((level) => {
    const [y1, y2] = [heightOf(level, top), heightOf(level, top)];
    return svgElement("line", { x1: 0, x2: "100%", y1, y2, class: level ? "grid" : "zero" });
  });
}

function levelLabels(top) {
  return [top, top / 2].map((level) => svgText(whole(level), { x: 0, y: heightOf(level, top) + 12 }));
}

/** As wide as its room: one unit a bin, stretched. */
function stepPlot(bins, top) {
  const size = { y: PLOT.top, width: "100%", height: PLOT.height };
  const plot = svgElement("svg", { ...size, viewBox: `0 0 ${bins.length} 1`, preserveAspectRatio: "none" });
  const path = steps(bins, top);
  plot.append(svgElement("path", { d: path, class: "area" }), svgElement("path", { d: path, class: "outline" }));
  return plot;
}

function timeMarks(made) {
  const foot = PLOT.top + PLOT.height;
  return timeTicks(made).flatMap(({ share, text }) => {
    const x = `${share.toFixed(2)}%`;
    const stub = svgElement("line", { x1: x, x2: x, y1: foot, y2: foot + 5, class: "zero" });
    if (share < 5 || share > 95) return [stub]; // its text would stick out
    return [stub, svgText(text, { x, y: foot + 18, class: "time" })];
  });
}

function progressInWords(minutes) {
  if (!minutes.length) return "No report yet.";
  const busiest = minutes.reduce((best, row) => (row.reports > best.reports ? row : best));
  const today = atSecond(day, Date.now() / 1000);
  const when = (at) => atSecond(atSecond(day, at) === today ? clock : dayAndClock, at);
  const most = `Busiest minute: ${when(busiest.minute)} with ${counted(busiest.reports, "report")}.`;
  return `${most} Last report: ${when(minutes.at(-1).minute)}.`;
}

// -------------------------------------------------------------------------------------------------------------- health

const ICONS = { fine: "✓", alarm: "!", unknown: "–" };
const stateOf = (test) => (test.alarm ? "alarm" : test.p_value === null ? "unknown" : "fine");

function drawHealth(health) {
  const now = health.alarm ? "alarm" : health.p_value === null ? "unknown" : "fine";
  const short = { alarm: "Alarm", unknown: "Cannot say", fine: "No alarm" }[now];
  if (health.alarm && byId("verdict").dataset.state !== "alarm") announcer.say(`Health alarm: ${health.verdict}`, true);
  drawVerdict(now, short, `${short}: ${health.verdict}.`);
  byId("tests").replaceChildren(...health.tests.map(drawTest));
}

function drawVerdict(now, short, text) {
  for (const id of ["verdict", "health-fact"]) setAttributes(byId(id), { "data-state": now });
  setText(byId("health-short"), now === "alarm" ? `⚠ ${short}` : short);
  setText(byId("verdict-text"), text);
}

function drawTest(test) {
  const now = stateOf(test);
  const item = element("li", "test");
  item.dataset.state = now;
  const icon = element("span", "test-icon", ICONS[now]);
  icon.setAttribute("aria-hidden", "true");
  const words = element("div", "");
  words.append(element("p", "test-verdict", test.verdict));
  if (test.expected) words.append(element("p", "soft", `Expected: ${test.expected}.`));
  item.append(icon, words);
  return item;
}

function drawNoHealth(text) {
  drawVerdict("unknown", "–", text);
  byId("tests").replaceChildren();
}

// ------------------------------------------------------------------------------------------------------ client snippet

// A further language is a further entry here: a name, and a function from a plan's offer and an example to lines.
// A line is [code] or [code, comment].
const LANGUAGES = [{ name: "Python", lines: pythonLines }];

function pythonLines(offer, example, epsilon) {
  const server = BASE.href.replace(/\/$/, "");
  const plan = "labels_sha256" in offer.plan.domain
    ? [
      ["with open(\"plan.json\", \"w\") as file:"],
      ["    json.dump(offer[\"plan\"], file)"],
      ["plan = sunzi.load_plan(\"plan.json\", labels=\"labels.txt\")", "the label file of this plan"],
    ]
    : [["plan = sunzi.Plan.from_json(json.dumps(offer[\"plan\"]))"]];
  return [
    ["", "pip install sunzi"],
    ["import json, secrets, urllib.request"],
    ["import sunzi"],
    [""],
    [`server = ${quoted(server)}`],
    [`collection = f"{server}/v1/collections/${offer.collection}"`],
    ["with urllib.request.urlopen(f\"{collection}/plan\") as answer:"],
    ["    offer = json.load(answer)"],
    ...plan,
    [`client = plan.client(max_epsilon=${quoted(epsilon)})`, "refuses a larger epsilon"],
    [""],
    [`report = client.report(${example})`, "randomised here"],
    ["identity = secrets.token_hex(16)", "the same if it is sent again"],
    ["query = f\"id={identity}&plan={offer['fingerprint']}\""],
    ["address = f\"{server}{offer['upload']}/reports?{query}\""],
    ["request = urllib.request.Request(address, data=report)"],
    ["with urllib.request.urlopen(request) as answer:"],
    ["    print(answer.read().decode())"],
  ];
}

/** A text as a literal of Python (and of JavaScript but for \U): what cannot be seen is written as an escape. */
function quoted(text) {
  const unseen = /[\p{C}\p{Z}]/gu;
  return JSON.stringify(text).replace(unseen, (character) => {
    if (character === " ") return character;
    const code = character.codePointAt(0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
}

function exampleValue({ labels, labels_sha256: hash }) {
  if (labels) return quoted(labels[0]);
  return hash ? "\"ONE OF YOUR LABELS\"" : "0";
}

function drawSnippet() {
  const language = LANGUAGES.find(({ name }) => byId(`language-${name}`).checked);
  const { offer } = state;
  const lines = language.lines(offer, exampleValue(offer.plan.domain), offer.plan.epsilon);
  const spans = lines.flatMap(([code, comment], index) => {
    const ending = index < lines.length - 1 ? "\n" : "";
    if (!comment) return [code + ending];
    return [code ? `${code}  ` : "", element("span", "comment", `# ${comment}`), ending];
  });
  byId("code").replaceChildren(...spans);
  const { size } = offer.plan.domain;
  const hasLabels = Object.keys(offer.plan.domain).some((key) => key.startsWith("labels"));
  byId("search").placeholder = hasLabels ? "any part of it" : `0 to ${size - 1}`;
}

async function refreshOffer(signal) {
  const { collection } = state.chosen;
  const siblings = state.epochs.filter((epoch) => epoch.collection === collection);
  const asOf = `${collection} ${siblings.map((epoch) => `${epoch.epoch}${epoch.open}`)}`;
  if (state.offer?.asOf !== asOf) {
    state.offer = { ...(await askJson(`v1/collections/${collection}/plan`, signal)), asOf };
    drawSnippet();
  }
  const { epoch } = state.offer;
  setHidden(byId("elsewhere"), epoch === state.chosen.epoch);
  setText(byId("elsewhere"), `Clients that ask now are told epoch ${epoch}, not epoch ${state.chosen.epoch}.`);
}

async function copySnippet() {
  const code = byId("code").textContent;
  try {
    await navigator.clipboard.writeText(code);
    setText(byId("copy"), "Copied");
  } catch { // the clipboard is only given to secure pages: choose the text, so that Ctrl+C takes it
    getSelection().selectAllChildren(byId("code"));
    setText(byId("copy"), "Press Ctrl+C");
  }
  setTimeout(() => setText(byId("copy"), "Copy"), 3000);
}

function makeLanguages() {
  for (const [index, { name }] of LANGUAGES.entries()) {
    const radio = element("input", "");
    Object.assign(radio, { type: "radio", name: "language", id: `language-${name}`, checked: index === 0 });
    radio.addEventListener("change", drawSnippet);
    const label = element("label", "", name);
    label.htmlFor = radio.id;
    byId("languages").append(radio, label);
  }
}

// ----------------------------------------------------------------------------------------- twins: JSON, CSV and others

// A link cannot send a token, so its click fetches the file and hands it over; its address still is the file's.
const TWINS = {
  status: ["status.json", "status.csv"],
  estimate: ["estimate.json", "estimate.csv", "estimate.parquet", "estimate.png", "tally"],
  plan: ["plan"],
  progress: ["progress.json", "progress.csv"],
  health: ["health.json", "health.csv"],
};
const TWIN_NAMES = { json: "JSON", csv: "CSV", parquet: "Parquet", png: "PNG", tally: "Tally file", plan: "Plan file" };
const twinName = (file) => TWIN_NAMES[file.split(".").at(-1)];

function twinQuery(file) {
  if (!file.startsWith("estimate.")) return "";
  return `?${file.endsWith(".png") ? new URLSearchParams({ top: byId("top").value }) : estimateQuery()}`;
}

function makeTwins() {
  for (const place of document.querySelectorAll(".twins")) {
    const links = TWINS[place.dataset.view].map((file) => {
      const link = element("a", "twin", twinName(file));
      link.dataset.file = file;
      link.setAttribute("aria-label", `Download ${place.dataset.view} as ${twinName(file)}`);
      link.addEventListener("click", downloadTwin);
      return link;
    });
    place.append(element("span", "soft", "Download "), ...links);
  }
}

function addressTwins() {
  for (const link of document.querySelectorAll(".twin")) {
    const { file } = link.dataset;
    setAttributes(link, { href: new URL(`${epochPath(state.chosen)}/${file}${twinQuery(file)}`, BASE).href });
  }
}

async function downloadTwin(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a tab of its own, as for any link
  event.preventDefault();
  const { file } = event.currentTarget.dataset;
  const { collection, epoch } = state.chosen;
  const endings = { plan: "plan.json", tally: "tally" };
  try {
    const content = await (await ask(event.currentTarget.href)).blob();
    saveAs(content, endings[file] ? `${collection}-${epoch}.${endings[file]}` : `${collection}-${epoch}-${file}`);
  } catch (error) {
    showToast(error instanceof Refusal ? `Not there: ${error.message}.` : "Connection lost; try again.");
  }
}

function saveAs(content, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// --------------------------------------------------------------------------------------------------------------- views

/** Something that is drawn from one answer of the API, and asked for again when that has changed. */
class View {
  constructor(path, draw, drawNothing, movesWithTime = false) {
    Object.assign(this, { path, draw, drawNothing, movesWithTime });
    Object.assign(this, { key: "", address: "", askedAt: -Infinity, took: 0, answer: null });
  }

  async refresh(status, signal) {
    const address = `${epochPath(status)}/${this.path()}`;
    const key = `${address} ${status.reports} ${status.open}`;
    const rested = performance.now() - this.askedAt >= REST_FACTOR * this.took;
    const isDue = key !== this.key && (rested || this.address !== address);
    if (isDue) await this.ask(address, key, signal);
    if (this.answer && (isDue || this.movesWithTime)) this.draw(this.answer, status, this.address);
  }

  async ask(address, key, signal) {
    const begun = performance.now();
    try {
      this.answer = await askJson(address, signal);
    } catch (error) {
      if (!(error instanceof Refusal) || [401, 404, 503].includes(error.status)) throw error;
      this.answer = null;
      this.drawNothing(error.message, state.status);
    }
    Object.assign(this, { key, address, askedAt: performance.now(), took: performance.now() - begun });
  }
}

function drawWaitingHistogram(message, { reports, open }) {
  if (reports > 0) drawNoHistogram("Not enough to estimate yet", `${message}.`);
  else if (!open) drawNoHistogram("Closed without a report", "There is nothing to estimate.");
  else drawNoHistogram("Waiting for the first report", "The program above sends one. The histogram appears by itself.");
}

const views = [
  new View(() => `estimate.json?${estimateQuery()}`, drawHistogram, drawWaitingHistogram),
  new View(() => "progress.json", drawProgress, () => {}, true),
  new View(() => "health.json", drawHealth, () => drawNoHealth("Nothing to check before the first reports.")),
];

// --------------------------------------------------------------------------------------------------- choosing an epoch

function wantedEpoch() {
  const query = new URLSearchParams(location.search);
  const [collection, epoch] = [query.get("collection"), Number(query.get("epoch"))];
  const among = state.epochs.filter((each) => !collection || each.collection === collection);
  const newest = [...(among.length ? among : state.epochs)].sort((a, b) => b.opened_at - a.opened_at);
  return among.find((each) => each.epoch === epoch) ?? newest.find((each) => each.open) ?? newest[0];
}

function choose(epoch) {
  state.chosen = { collection: epoch.collection, epoch: epoch.epoch };
  // Whoever has yet to send a report sees how; it never opens or closes by itself after that.
  byId("client").open = epoch.open && epoch.reports === 0;
  byId("main").setAttribute("aria-busy", "true"); // until everything on it is this epoch's
  addressTwins();
}

function chooseByHand() {
  const epoch = state.epochs.find((each) => epochPath(each) === byId("choice").value);
  history.replaceState(null, "", `?${new URLSearchParams({ collection: epoch.collection, epoch: epoch.epoch })}`);
  choose(epoch);
  restart();
}

async function refreshList(signal) {
  if (state.epochs.length && performance.now() - state.listedAt < LIST_SECONDS * 1000) return;
  state.epochs = await askJson("v1/collections", signal);
  state.listedAt = performance.now();
  const isThere = state.epochs.some((each) => state.chosen && epochPath(each) === epochPath(state.chosen));
  if (state.epochs.length && !isThere) choose(wantedEpoch());
  fillChooser();
}

// ------------------------------------------------------------------------------------------------------------- polling

let polling = new AbortController();
let timer = 0;
let failures = 0;

function showOnly(id) {
  const wasLocked = !byId("gate").hidden;
  for (const other of ["gate", "nothing", "main"]) setHidden(byId(other), other !== id);
  if (wasLocked && id === "main") byId("title").focus();
}

function setConnection(now, text) {
  setAttributes(byId("connection"), { "data-state": now });
  setText(byId("connection-text"), text);
}

async function refresh(signal) {
  await refreshList(signal);
  if (!state.epochs.length) return showOnly("nothing");
  state.status = await askJson(`${epochPath(state.chosen)}/status.json`, signal);
  drawStatus(state.status);
  await Promise.all([refreshOffer(signal), ...views.map((view) => view.refresh(state.status, signal))]);
  byId("main").setAttribute("aria-busy", "false");
  return showOnly("main");
}

async function poll() {
  const { signal } = polling;
  try {
    await refresh(signal);
    failures = 0;
    setConnection("live", "Live");
    byId("connection").title = `Last update ${clockSeconds.format(new Date())}`;
    setHidden(byId("forget"), !state.token);
  } catch (error) {
    if (signal.aborted) return;
    if (error.status === 401) return askForToken();
    fail(error);
  }
  const pause = Math.min(LONGEST_PAUSE_SECONDS, POLL_SECONDS * 2 ** failures);
  if (!document.hidden) timer = setTimeout(poll, pause * 1000);
}

function fail(error) {
  failures += 1;
  if (error.status === 404) state.listedAt = -Infinity; // the epoch is gone: see which there are
  const isOutOfOrder = error instanceof Refusal;
  setConnection("lost", isOutOfOrder ? "The collector is out of order, retrying" : "Connection lost, retrying");
  if (!isOutOfOrder && !(error instanceof LostConnection)) console.error(error);
}

/** Drop what is under way and begin anew; called whenever something else is wanted. */
function restart() {
  polling.abort();
  clearTimeout(timer);
  polling = new AbortController();
  if (!document.hidden) poll();
}

// ----------------------------------------------------------------------------------------------------------- the token

function askForToken() {
  const wasWrong = state.token !== "";
  setToken("");
  setText(byId("gate-error"), wasWrong ? "This token is wrong." : "");
  setConnection("locked", "Locked");
  showOnly("gate");
  byId("token").value = "";
  byId("token").focus();
}

function setToken(token) {
  state.token = token;
  if (token) sessionStorage.setItem(TOKEN_KEY, token);
  else sessionStorage.removeItem(TOKEN_KEY);
  setHidden(byId("forget"), !token);
}

function unlock(event) {
  event.preventDefault();
  const token = byId("token").value.trim();
  // No header can carry anything else, so no token holds it.
  if (!/^[\x20-\x7e]+$/.test(token)) return setText(byId("gate-error"), "This token is wrong.");
  setToken(token);
  setConnection("connecting", "Connecting");
  return restart();
}

function forget() {
  setToken("");
  Object.assign(state, { epochs: [], listedAt: -Infinity, chosen: null, status: null, offer: null });
  restart();
}

// ------------------------------------------------------------------------------------------------------------ controls

let searchTimer = 0;

function controlsChanged() {
  byId("method").disabled = !byId("beside").checked;
  addressTwins();
  restart();
}

function searchChanged() {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(controlsChanged, 250);
}

function shortcut(event) {
  const typing = event.target.closest?.("input:not([type=radio]), select, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey && !byId("main").hidden) {
    event.preventDefault();
    byId("search").focus();
  }
}

function listen() {
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("search").addEventListener("input", searchChanged);
  for (const id of ["top", "raw", "beside", "method"]) byId(id).addEventListener("change", controlsChanged);
  byId("choice").addEventListener("change", chooseByHand);
  byId("copy").addEventListener("click", copySnippet);
  byId("gate-form").addEventListener("submit", unlock);
  byId("forget").addEventListener("click", forget);
  document.addEventListener("keydown", shortcut);
  document.addEventListener("visibilitychange", restart);
  addEventListener("online", restart);
}

makeLanguages();
makeTwins();
listen();
poll();
