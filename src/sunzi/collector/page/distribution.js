// Numbers: the mean; of ordered plans also the distribution in bins, quantiles, and the share of a range that is chosen
// by dragging over the bins or with two fields.

import { parameter } from "./address.js";
import { View } from "./api.js";
import { makeAxis } from "./bars.js";
import { announce, byId, element, inputById, setAttributes, setHidden, setText, svgElement, svgText } from "./dom.js";
import { decimalsFor, percent } from "./format.js";
import { binText, drawNoRecords, edge, isDates, planOf, questionPath, rangeText, showRecords, whileShown }
  from "./records.js";

/** @import { Answer, Answers, Choice, Domain, Status } from "./api.js" */
/** @typedef {[number, number]} Range the places of its ends among the edges of the plan's bins */

const MOST_BARS = 32;
const DAY_MILLISECONDS = 86_400_000;

/** @type {Range | null} the range under the pointer, while it is dragged */
let dragged = null;

const domainOf = () => planOf("ordered")?.domain ?? null;

/** @param {Domain} domain */
const barsOf = ({ size }) => Math.min(MOST_BARS, size);

/**
 * The range in the address; null if there is none in this domain.
 * @param {Domain} domain
 * @returns {Range | null}
 */
function selectedRange(domain) {
  const ends = parameter("range").split(":");
  if (ends.length !== 2 || ends.includes("")) return null;
  const [from, to] = ends.map((end) => nearestPlace(domain, Number(end)));
  return from < to ? [from, to] : null;
}

/**
 * @param {Domain} domain
 * @param {number} number
 */
function nearestPlace(domain, number) {
  const [low, high] = [edge(domain, 0), edge(domain, domain.size)];
  return Math.min(domain.size, Math.max(0, Math.round(((number - low) * domain.size) / (high - low))));
}

/**
 * @param {Domain} domain
 * @param {Range} range
 */
const rangeQuery = (domain, [from, to]) => `${edge(domain, from)}:${edge(domain, to)}`;

/**
 * @param {Domain} domain
 * @returns {[string, string][]}
 */
function barQuestions(domain) {
  const [bars, width] = [barsOf(domain), domain.size / barsOf(domain)];
  return Array.from({ length: bars }, (_, bar) => ["range", rangeQuery(domain, [bar * width, (bar + 1) * width])]);
}

/**
 * The address of everything that is shown, optionally with the selected range; null for plans without numbers.
 * @param {Choice} choice
 */
export function distributionPath(choice, file = "answers.json", withRange = false) {
  const domain = domainOf();
  if (!domain) return planOf("number") ? questionPath(choice, file, [["mean", "true"]]) : null;
  const range = withRange && selectedRange(domain);
  return questionPath(choice, file, [
    ...barQuestions(domain), ...(range ? [/** @type {[string, string]} */ (["range", rangeQuery(domain, range)])] : []),
    ["quantile", "0.5"], ["quantile", "0.95"], ["mean", "true"],
  ]);
}

/** @param {Choice} choice */
function rangePath(choice) {
  const domain = domainOf();
  const range = domain && selectedRange(domain);
  return range ? questionPath(choice, "answers.json", [["range", rangeQuery(domain, range)]]) : null;
}

export const distributionViews = [
  new View(whileShown((choice) => distributionPath(choice)), drawDistribution, drawNoRecords),
  new View(whileShown(rangePath), drawRange, (message) => setText(byId("range-share"), `No share: ${message}.`)),
];

/**
 * @param {Answers} answers
 * @param {Status} status
 */
function drawDistribution({ answers }, status) {
  const plan = planOf("ordered") ?? planOf("number");
  if (!plan) return;
  const bars = answers.filter((answer) => answer.is_share);
  drawMeasures(plan.domain, answers.filter((answer) => !answer.is_share));
  if (bars.length) drawBars(plan.domain, bars);
  showRecords(bars.length ? `${bars.length} bins, ` : "", status, bars.some(({ value }) => value < 0));
}

/** @type {Record<string, string>} */
const MEASURES = { "quantile 0.5": "Median", "quantile 0.95": "95 % of values are below", mean: "Mean" };

/**
 * @param {Domain} domain
 * @param {Answer[]} measures
 */
function drawMeasures(domain, measures) {
  const unit = domain.range?.unit && !isDates(domain) ? ` ${domain.range.unit}` : "";
  byId("measures").replaceChildren(...measures.map(({ question, value, low, high, note }) => {
    const decimals = low < high ? Math.min(10, Math.max(0, 1 - Math.floor(Math.log10((high - low) / 4)))) : 2;
    const [middle, from, to] = [value, low, high].map((number) => rangeText(domain, number, decimals));
    const measure = element("div", "measure");
    measure.append(element("h3", "", MEASURES[question]), element("p", "figure", `${middle}${unit}`));
    measure.append(element("p", "soft", `95 % interval ${from} … ${to}`));
    if (note) measure.append(element("p", "soft", note));
    return measure;
  }));
}

/**
 * @param {Domain} domain
 * @param {Answer[]} bars
 */
function drawBars(domain, bars) {
  const axis = makeAxis(bars.flatMap(({ low, high }) => [low, high]));
  const decimals = decimalsFor(bars.map((bar) => bar.standard_error));
  /** @param {number} share */
  const top = (share) => 100 - Number.parseFloat(axis.place(share));
  const lines = axis.ticks.flatMap((tick) => [
    svgElement("line", { x1: 0, x2: "100%", y1: `${top(tick)}%`, y2: `${top(tick)}%`, class: tick ? "grid" : "zero" }),
    svgText(`${percent(tick, axis.decimals)} %`, { x: -6, y: `${top(tick)}%`, dy: 4, class: "end" }),
  ]);
  const binsPerBar = domain.size / bars.length;
  const drawn = bars.map(({ value, low, high }, bar) => {
    const group = svgElement("g", { class: low > 0 ? "clear" : "unclear" });
    const [x, left, width] = [bar + 0.5, bar + 0.1, 0.8].map((part) => place(part, bars.length));
    const [y, height] = [`${top(Math.max(0, value))}%`, `${Math.abs(top(value) - top(0)).toFixed(3)}%`];
    const name = svgElement("title");
    const bin = binText(domain, bar * binsPerBar, (bar + 1) * binsPerBar);
    const interval = `${percent(low, decimals)} … ${percent(high, decimals)}`;
    name.textContent = `${bin}: ${percent(value, decimals)} % (${interval})`;
    group.append(
      name,
      svgElement("rect", { x: left, width, y, height, class: "mark-bar" }),
      svgElement("line", { x1: x, x2: x, y1: `${top(low)}%`, y2: `${top(high)}%`, class: "mark-whisker" }),
    );
    return group;
  });
  const last = isDates(domain) ? 2 : 4; // dates are long
  const range = edge(domain, domain.size) - edge(domain, 0);
  const digits = Math.min(15, Math.max(0, 3 - Math.floor(Math.log10(range)))); // so that quarters of the range differ
  const labels = Array.from({ length: last + 1 }, (_, index) => {
    const at = (domain.size * index) / last;
    const anchor = index === 0 ? "start" : index === last ? "end" : "middle";
    const text = rangeText(domain, edge(domain, at), digits);
    return svgText(text, { x: place(index, last), y: "100%", dy: "1.4em", "text-anchor": anchor });
  });
  const selection = svgElement("rect", { id: "selection", y: 0, height: "100%" });
  byId("bars").replaceChildren(...lines, selection, ...drawn, ...labels);
  showRange();
}

/**
 * @param {number} part
 * @param {number} whole
 */
const place = (part, whole) => `${((100 * part) / whole).toFixed(3)}%`;

/** Synchronise the marked range and the fields with the pointer or the address. */
export function showRange() {
  const domain = domainOf();
  if (!domain) return;
  const range = dragged ?? selectedRange(domain);
  const [from, to] = range ?? [0, 0];
  const selection = byId("selection");
  if (selection) setAttributes(selection, { x: place(from, domain.size), width: place(to - from, domain.size) });
  for (const [id, at] of /** @type {[string, number][]} */ ([["range-from", from], ["range-to", to]])) {
    const [type, ...ends] = [isDates(domain) ? "date" : "number", edge(domain, 0), edge(domain, domain.size)];
    const [min, max] = ends.map((end) => fieldText(domain, end));
    setAttributes(byId(id), { type, min, max, step: isDates(domain) ? 1 : "any" });
    if (document.activeElement !== byId(id)) inputById(id).value = range ? fieldText(domain, edge(domain, at)) : "";
  }
  setHidden(byId("range-clear"), !range);
  if (!range) setText(byId("range-share"), "Drag over the bars, or enter both ends, to see the share of a range.");
}

/**
 * @param {Domain} domain
 * @param {number} number
 */
const fieldText = (domain, number) => (isDates(domain) ? rangeText(domain, number) : String(number));

/** @param {Answers} answers */
function drawRange({ answers: [{ value, low, high, standard_error: error }] }) {
  const domain = domainOf();
  const range = domain && selectedRange(domain);
  if (!range) return;
  const decimals = decimalsFor([error]);
  const share = element("strong", "", `${percent(value, decimals)} %`);
  const interval = element("span", "soft", `95 % interval ${percent(low, decimals)} … ${percent(high, decimals)}`);
  byId("range-share").replaceChildren(`${binText(domain, ...range)}: `, share, " ", interval);
  announce(byId("range-share").textContent ?? "", true);
}

/** @param {(changes: Record<string, string>, isStep: boolean) => void} goTo */
export function listenToRange(goTo) {
  const bars = byId("bars");
  let start = 0;
  /** @param {PointerEvent} event */
  const barAt = ({ clientX }) => {
    const { left, width } = bars.getBoundingClientRect();
    const count = barsOf(domainOf() ?? { size: 1 });
    return Math.min(count - 1, Math.max(0, Math.floor(((clientX - left) * count) / width)));
  };
  /** @param {PointerEvent} event */
  const drag = (event) => {
    const domain = domainOf();
    if (!domain) return;
    const [bar, width] = [barAt(event), domain.size / barsOf(domain)];
    dragged = [Math.min(start, bar) * width, (Math.max(start, bar) + 1) * width];
    showRange();
  };
  bars.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    bars.setPointerCapture(event.pointerId);
    start = barAt(event);
    drag(event);
  });
  bars.addEventListener("pointermove", (event) => dragged && drag(event));
  bars.addEventListener("pointerup", () => {
    const [domain, range] = [domainOf(), dragged];
    dragged = null;
    if (domain && range) goTo({ range: rangeQuery(domain, range) }, false);
  });
  bars.addEventListener("pointercancel", () => {
    dragged = null;
    showRange();
  });
  for (const id of ["range-from", "range-to"]) byId(id).addEventListener("change", () => fieldsChanged(goTo));
  byId("range-form").addEventListener("submit", (event) => event.preventDefault());
  byId("range-clear").addEventListener("click", () => goTo({ range: "" }, false));
}

/** @param {(changes: Record<string, string>, isStep: boolean) => void} goTo */
function fieldsChanged(goTo) {
  const domain = domainOf();
  if (!domain) return;
  const unit = isDates(domain) ? DAY_MILLISECONDS : 1;
  const [from, to] = ["range-from", "range-to"].map((id) => nearestPlace(domain, inputById(id).valueAsNumber / unit));
  if (from < to) goTo({ range: rangeQuery(domain, [from, to]) }, false);
}
