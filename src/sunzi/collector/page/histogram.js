// The histogram: a table in which each row has its own bar and interval, all on one axis.

import { announce, byId, element, inputById, selectById, setAttributes, setHidden, setText, svgElement, svgText }
  from "./dom.js";
import { counted, decimalsFor, percent, whole } from "./format.js";

/** @import { Estimate, Row, Status } from "./api.js" */
/** @typedef {`frequency_${string}` | null} ProcessedColumn the column of post-processed frequencies, if requested */

/**
 * The axis that all rows share: `place` maps a share to percent of the drawing's width, `name` changes with the axis.
 * @typedef {{ ticks: number[], place: (share: number) => string, decimals: number, name: string }} Axis
 */

/** @typedef {ReturnType<typeof makeRow>} RowElements */

/** @type {RowElements[]} created once and then only updated */
const tableRows = [];

/** The query of the estimate that the controls select. */
export function estimateQuery() {
  const query = new URLSearchParams({ top: selectById("top").value });
  if (inputById("search").value) query.set("search", inputById("search").value);
  if (inputById("both").checked) query.set("postprocess", selectById("method").value);
  return query;
}

/**
 * @param {Estimate} estimate
 * @param {Status} _status
 * @param {URLSearchParams} query the query of this estimate, which may be older than the controls
 */
export function drawHistogram(estimate, _status, query) {
  const rows = estimate.histogram;
  const search = query.get("search") ?? "";
  if (!rows.length) return drawEmpty("No matches", `No label contains “${search}”.`);
  /** @type {ProcessedColumn} */
  const column = estimate.postprocess ? `frequency_${estimate.postprocess}` : null;
  const axis = makeAxis(rows, column);
  const decimals = decimalsFor(rows.map((row) => row.standard_error));
  while (tableRows.length < rows.length) tableRows.push(makeRow());
  rows.forEach((row, index) => drawRow(tableRows[index], row, axis, decimals, column));
  const body = byId("body");
  while (body.childElementCount > rows.length) body.lastElementChild?.remove();
  body.append(...tableRows.slice(body.childElementCount, rows.length).map(({ row }) => row));
  drawAxis(axis);
  setAttributes(byId("rows"), { "data-decimals": Math.min(4, decimals) }); // sets the width of the columns
  describeHistogram(estimate, search);
  setHidden(byId("empty"), true);
  for (const id of ["rows", "legend"]) setHidden(byId(id), false);
}

/**
 * @param {string} message of the collector
 * @param {Status} status
 */
export function drawNoHistogram(message, { reports, open }) {
  if (reports > 0) drawEmpty("Too few reports for an estimate", `${message[0].toUpperCase()}${message.slice(1)}.`);
  else if (!open) drawEmpty("Closed without any reports", "There is nothing to estimate.");
  else drawEmpty("Waiting for the first report", "The program above sends one. The histogram then appears here.");
}

/**
 * @param {string} title
 * @param {string} text
 */
function drawEmpty(title, text) {
  setText(byId("empty-title"), title);
  setText(byId("empty-text"), text);
  setText(byId("histogram-about"), "");
  for (const id of ["rows", "effect", "negatives", "legend"]) setHidden(byId(id), true);
  setHidden(byId("empty"), false);
}

/**
 * @param {Estimate} estimate
 * @param {string} search
 */
function describeHistogram(estimate, search) {
  const rows = estimate.histogram;
  const { domain_size: size, postprocess = "", postprocess_effect: effect } = estimate;
  const most = rows.length < size ? `the ${rows.length} most frequent of ${whole(size)} values` : `all ${size} values`;
  const shown = search ? counted(rows.length, "matching value") : most;
  setText(byId("histogram-about"), `${shown}, from ${counted(estimate.reports, "report")}`);
  setText(byId("interval"), `${Number((100 * estimate.confidence).toPrecision(6))} % interval`);
  setHidden(byId("negatives"), !rows.some((row) => row.frequency < 0));
  byId("rows").classList.toggle("with-processed", postprocess !== "");
  for (const id of ["processed-key", "effect"]) setHidden(byId(id), !postprocess);
  setText(byId("processed-title"), postprocess && `Post\u2011processed ${postprocess}`);
  setText(byId("effect"), postprocess && `Post-processed with ${postprocess}, next to the raw estimate: ${effect}.`);
  if (search) announce(`${counted(rows.length, "value")} found`, true);
}

/**
 * @param {Row[]} rows
 * @param {ProcessedColumn} column
 * @returns {Axis}
 */
function makeAxis(rows, column) {
  const values = rows.flatMap((row) => [row.low, row.high, row.frequency, column ? row[column] : 0]);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const step = niceStep((high - low || 1e-6) / 5);
  // Round ends keep the axis still while reports come in.
  const [first, last] = [Math.floor((5 * low) / step) / 5, Math.ceil((5 * high) / step) / 5];
  const ticks = [];
  for (let tick = Math.ceil(first); tick <= last; tick += 1) ticks.push(tick * step);
  /** @param {number} share */
  const place = (share) => `${(3 + (94 * (share / step - first)) / (last - first)).toFixed(3)}%`;
  const decimals = Math.max(0, -Math.floor(Math.log10(100 * step) + 1e-9));
  return { ticks, place, decimals, name: `${first} ${last} ${step}` };
}

/**
 * The smallest of 1, 2, 5 times a power of ten that is at least this large.
 * @param {number} least
 */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((factor) => factor * power >= least * (1 - 1e-9)) ?? 10);
}

/** @param {Axis} axis */
function gridLines({ ticks, place }, top = 0) {
  return ticks.map((tick) => {
    const x = place(tick);
    return svgElement("line", { x1: x, x2: x, y1: top, y2: "100%", class: tick === 0 ? "zero" : "grid" });
  });
}

/** @param {Axis} axis */
function drawAxis(axis) {
  const node = byId("axis");
  if (node.dataset.name === axis.name) return;
  node.dataset.name = axis.name;
  const every = axis.ticks.length > 6 ? 2 : 1;
  const labels = axis.ticks
    .filter((_, index) => (index - axis.ticks.indexOf(0)) % every === 0)
    .map((tick) => {
      const attributes = { x: axis.place(tick), y: 12, class: tick === 0 ? "tick-zero" : "tick" };
      return svgText(`${percent(tick, axis.decimals)} %`, attributes);
    });
  node.replaceChildren(...labels, ...gridLines(axis, 17));
}

function makeRow() {
  const row = document.createElement("tr");
  row.setAttribute("role", "row");
  /** @param {"th" | "td"} tag @param {string} role @param {string} name */
  const cell = (tag, role, name) => {
    const node = element(tag, name);
    node.setAttribute("role", role);
    row.append(node);
    return node;
  };
  const header = cell("th", "rowheader", "label");
  header.scope = "row";
  const label = element("bdi", "label-text");
  const nearZero = element("span", "near-zero", "≈ 0");
  nearZero.append(element("span", "unseen", ", not distinguishable from 0"));
  const alone = element("span", "near-zero", "> 0 ?");
  alone.append(element("span", "unseen", ", above 0 by its own interval only"));
  const line = element("div", "label-line");
  line.append(label, nearZero, alone);
  header.append(line);
  const marks = makeMarks();
  cell("td", "cell", "drawing").append(marks.svg);
  const [share, interval, processed, users] = ["share", "interval", "processed", "users"]
    .map((name) => cell("td", "cell", name));
  return { row, label, nearZero, alone, marks, share, interval, processed, users };
}

function makeMarks() {
  const svg = svgElement("svg", { "aria-hidden": "true" });
  const marks = {
    grid: svgElement("g"),
    bar: svgElement("rect", { class: "mark-bar", height: 12 }),
    whisker: svgElement("line", { class: "mark-whisker" }),
    low: svgElement("rect", { class: "mark-cap", width: 1.5, height: 10 }),
    high: svgElement("rect", { class: "mark-cap", width: 1.5, height: 10 }),
    processed: svgElement("svg", { width: 1, height: 1, class: "mark-holder" }),
  };
  marks.processed.append(svgElement("path", { class: "mark-processed", d: "M0-5.5l5.5 5.5-5.5 5.5-5.5-5.5z" }));
  svg.append(...Object.values(marks));
  return { svg, ...marks };
}

/**
 * @param {RowElements} elements
 * @param {Row} row
 * @param {Axis} axis
 * @param {number} decimals
 * @param {ProcessedColumn} column
 */
function drawRow(elements, row, axis, decimals, column) {
  const label = String(row.label);
  setText(elements.label, label.trim() ? label : JSON.stringify(label));
  setAttributes(elements.label, { title: label });
  const isAlone = !row.above_zero && row.low > 0;
  setAttributes(elements.row, { class: row.above_zero ? "clear" : isAlone ? "alone" : "unclear" });
  setHidden(elements.nearZero, row.above_zero || isAlone);
  setHidden(elements.alone, !isAlone);
  setText(elements.share, `${percent(row.frequency, decimals)} %`);
  setText(elements.interval, `${percent(row.low, decimals)} … ${percent(row.high, decimals)}`);
  setText(elements.users, whole(row.count));
  setText(elements.processed, column ? `${percent(row[column], decimals)} %` : "");
  drawMarks(elements.marks, row, axis, column);
}

/**
 * @param {ReturnType<typeof makeMarks>} marks
 * @param {Row} row
 * @param {Axis} axis
 * @param {ProcessedColumn} column
 */
function drawMarks(marks, row, axis, column) {
  const { place, name } = axis;
  const y = column ? "36%" : "50%";
  const [from, to] = [Math.min(0, row.frequency), Math.max(0, row.frequency)];
  const width = `${(Number.parseFloat(place(to)) - Number.parseFloat(place(from))).toFixed(3)}%`;
  if (marks.svg.dataset.name !== name) marks.grid.replaceChildren(...gridLines(axis));
  marks.svg.dataset.name = name;
  setAttributes(marks.bar, { x: place(from), width, y });
  setAttributes(marks.whisker, { x1: place(row.low), x2: place(row.high), y1: y, y2: y });
  setAttributes(marks.low, { x: place(row.low), y });
  setAttributes(marks.high, { x: place(row.high), y });
  const x = column ? place(row[column]) : "0%";
  setAttributes(marks.processed, { x, y: "78%", display: column ? "inline" : "none" });
}
