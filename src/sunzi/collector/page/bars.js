// Tables in which each row has its own bar and interval, all on one axis.

import { element, setAttributes, setText, svgElement, svgText } from "./dom.js";
import { percent } from "./format.js";

/**
 * The axis that all rows share: `place` maps a share to percent of the drawing's width, `name` changes with the axis.
 * @typedef {{ ticks: number[], place: (share: number) => string, decimals: number, name: string }} Axis
 *
 * What a row draws; `processed` is a post-processed share, if there is one.
 * @typedef {{ value: number, low: number, high: number, processed: number | null }} Bar
 *
 * Whether a value differs from 0: tested for all values at once, by its own interval only, or not.
 * @typedef {"clear" | "alone" | "unclear"} Certainty
 */

/** @typedef {ReturnType<typeof makeBarRow>} BarRow */

/**
 * An axis that includes all these shares and 0.
 * @param {number[]} values
 * @returns {Axis}
 */
export function makeAxis(values) {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const step = niceStep((high - low || 1e-6) / 5);
  // Round ends keep the axis still while reports come in.
  const [first, last] = [Math.floor((5 * low) / step) / 5, Math.ceil((5 * high) / step) / 5];
  const ticks = [];
  for (let tick = Math.ceil(first); tick <= last; tick += 1) ticks.push(tick * step);
  /** @param {number} share */
  const place = (share) => `${(3 + (94 * (share / step - first)) / (last - first)).toFixed(3)}%`;
  return { ticks, place, decimals: stepDecimals(step), name: `${first} ${last} ${step}` };
}

/**
 * The smallest of 1, 2, 5 times a power of ten that is at least this large.
 * @param {number} least
 */
export function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((factor) => factor * power >= least * (1 - 1e-9)) ?? 10);
}

/**
 * The decimals of a percentage that this step needs.
 * @param {number} step
 */
export const stepDecimals = (step) => Math.max(0, -Math.floor(Math.log10(100 * step) + 1e-9));

/** @param {Axis} axis */
function gridLines({ ticks, place }, top = 0) {
  return ticks.map((tick) => {
    const x = place(tick);
    return svgElement("line", { x1: x, x2: x, y1: top, y2: "100%", class: tick === 0 ? "zero" : "grid" });
  });
}

/**
 * @param {HTMLElement} node an svg element above the bars
 * @param {Axis} axis
 */
export function drawAxis(node, axis) {
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

/**
 * A table's row: the label, the drawing, and a cell for each of these names.
 * @param {string[]} names
 */
export function makeBarRow(names) {
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
  const line = element("div", "label-line");
  const label = element("bdi", "label-text");
  line.append(label);
  header.append(line);
  const marks = makeMarks();
  cell("td", "cell", "drawing").append(marks.svg);
  const cells = Object.fromEntries(names.map((name) => [name, cell("td", "cell", name)]));
  return { row, line, label, marks, cells };
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
 * Rows are created once and then only updated.
 * @template {BarRow} T
 * @param {HTMLElement} body
 * @param {T[]} made all rows so far
 * @param {number} count
 * @param {() => T} make
 */
export function showRows(body, made, count, make) {
  while (made.length < count) made.push(make());
  while (body.childElementCount > count) body.lastElementChild?.remove();
  body.append(...made.slice(body.childElementCount, count).map(({ row }) => row));
}

/**
 * @param {BarRow} elements
 * @param {string | number} value
 * @param {Certainty} certainty
 */
export function drawLabel(elements, value, certainty) {
  const label = String(value);
  setText(elements.label, label.trim() ? label : JSON.stringify(label));
  setAttributes(elements.label, { title: label });
  setAttributes(elements.row, { class: certainty });
}

/**
 * @param {BarRow["marks"]} marks
 * @param {Bar} bar
 * @param {Axis} axis
 */
export function drawMarks(marks, { value, low, high, processed }, axis) {
  const { place, name } = axis;
  const y = processed === null ? "50%" : "36%";
  const [from, to] = [Math.min(0, value), Math.max(0, value)];
  const width = `${(Number.parseFloat(place(to)) - Number.parseFloat(place(from))).toFixed(3)}%`;
  if (marks.svg.dataset.name !== name) marks.grid.replaceChildren(...gridLines(axis));
  marks.svg.dataset.name = name;
  setAttributes(marks.bar, { x: place(from), width, y });
  setAttributes(marks.whisker, { x1: place(low), x2: place(high), y1: y, y2: y });
  setAttributes(marks.low, { x: place(low), y });
  setAttributes(marks.high, { x: place(high), y });
  const x = processed === null ? "0%" : place(processed);
  setAttributes(marks.processed, { x, y: "78%", display: processed === null ? "none" : "inline" });
}
