// The histogram of an epoch, and the sum of the values that are selected in it.

import { parameter, selectedValues } from "./address.js";
import { epochPath } from "./api.js";
import { drawAxis, drawLabel, drawMarks, makeAxis, makeBarRow, showRows } from "./bars.js";
import { announce, byId, element, inputById, selectById, setAttributes, setHidden, setText } from "./dom.js";
import { counted, decimalsFor, percent, whole } from "./format.js";

/** @import { Choice, Estimate, Row, Status, Sum } from "./api.js" */
/** @import { Axis } from "./bars.js" */
/** @typedef {`frequency_${string}` | null} ProcessedColumn the column of post-processed frequencies, if requested */
/** @typedef {ReturnType<typeof makeRow>} RowElements */

/** @type {RowElements[]} */
const tableRows = [];

/** The query of the estimate that the controls select. */
export function estimateQuery() {
  const query = new URLSearchParams({ top: selectById("top").value });
  if (inputById("search").value) query.set("search", inputById("search").value);
  if (inputById("both").checked) query.set("postprocess", selectById("method").value);
  if (parameter("group")) query.set("group", parameter("group"));
  return query;
}

/**
 * The address of the sum of the selected values; null if there are none.
 * @param {Choice} choice
 */
export function sumPath(choice, form = "json") {
  const query = new URLSearchParams(selectedValues().map((value) => ["value", value]));
  if (!query.size) return null;
  if (parameter("group")) query.set("group", parameter("group"));
  return `${epochPath(choice)}/sum.${form}?${query}`;
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
  const axis = makeAxis(rows.flatMap((row) => [row.low, row.high, row.frequency, column ? row[column] : 0]));
  const decimals = decimalsFor(rows.map((row) => row.standard_error));
  showRows(byId("body"), tableRows, rows.length, makeRow);
  rows.forEach((row, index) => drawRow(tableRows[index], row, axis, decimals, column));
  drawAxis(byId("axis"), axis);
  drawSelection();
  setAttributes(byId("rows"), { "data-decimals": Math.min(4, decimals) }); // sets the width of the columns
  describeHistogram(estimate, search);
  setHidden(byId("empty"), true);
  for (const id of ["rows", "legend"]) setHidden(byId(id), false);
}

/**
 * @param {string} message of the collector
 * @param {Status} status
 */
export function drawNoHistogram(message, status) {
  drawEmpty(...whyEmpty(message, status));
}

/**
 * Why there is no estimate, as a title and a text.
 * @param {string} message of the collector
 * @param {Status} status
 * @returns {[string, string]}
 */
export function whyEmpty(message, { reports, open }) {
  const isHeldBack = message.includes("until it is closed");
  const tooFew = /more reports?|too few/.test(message) ? "Too few reports for an estimate" : "No estimate";
  const title = isHeldBack ? "Published when the epoch is closed" : tooFew;
  if (reports > 0 || isHeldBack) return [title, `${message[0].toUpperCase()}${message.slice(1)}.`];
  if (!open) return ["Closed without any reports", "There is nothing to estimate."];
  return ["Waiting for the first report", "The program above sends one. The estimate then appears here."];
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
  const { domain_size: size, postprocess = "", postprocess_effect: effect, group } = estimate;
  const most = rows.length < size ? `the ${rows.length} most frequent of ${whole(size)} values` : `all ${size} values`;
  const shown = search ? counted(rows.length, "matching value") : most;
  const whose = group ? ` of ${group}` : "";
  setText(byId("histogram-about"), `${shown}, from ${counted(estimate.reports, "report")}${whose}`);
  setText(byId("interval"), `${Number((100 * estimate.confidence).toPrecision(6))} % interval`);
  setHidden(byId("negatives"), !rows.some((row) => row.frequency < 0));
  byId("rows").classList.toggle("with-processed", postprocess !== "");
  for (const id of ["processed-key", "effect"]) setHidden(byId(id), !postprocess);
  setText(byId("processed-title"), postprocess && `Post\u2011processed ${postprocess}`);
  setText(byId("effect"), postprocess && `Post-processed with ${postprocess}, next to the raw estimate: ${effect}.`);
  if (search) announce(`${counted(rows.length, "value")} found`, true);
}

function makeRow() {
  const made = makeBarRow(["share", "interval", "processed", "users"]);
  const nearZero = element("span", "near-zero", "≈ 0");
  nearZero.append(element("span", "unseen", ", not distinguishable from 0"));
  const alone = element("span", "near-zero", "> 0 ?");
  alone.append(element("span", "unseen", ", above 0 by its own interval only"));
  const pick = Object.assign(element("input", "pick"), { type: "checkbox" });
  made.line.prepend(pick);
  made.line.append(nearZero, alone);
  return { ...made, nearZero, alone, pick };
}

/**
 * @param {RowElements} elements
 * @param {Row} row
 * @param {Axis} axis
 * @param {number} decimals
 * @param {ProcessedColumn} column
 */
function drawRow(elements, row, axis, decimals, column) {
  const isAlone = !row.above_zero && row.low > 0;
  drawLabel(elements, row.label, row.above_zero ? "clear" : isAlone ? "alone" : "unclear");
  setAttributes(elements.pick, { "data-value": String(row.label), "aria-label": `Select ${row.label} for a sum` });
  setHidden(elements.nearZero, row.above_zero || isAlone);
  setHidden(elements.alone, !isAlone);
  const { share, interval, users, processed } = elements.cells;
  setText(share, `${percent(row.frequency, decimals)} %`);
  setText(interval, `${percent(row.low, decimals)} … ${percent(row.high, decimals)}`);
  setText(users, whole(row.count));
  setText(processed, column ? `${percent(row[column], decimals)} %` : "");
  const { frequency: value, low, high } = row;
  drawMarks(elements.marks, { value, low, high, processed: column ? row[column] : null }, axis);
}

/** Tick the values that are selected. */
export function drawSelection() {
  const selected = new Set(selectedValues());
  for (const { pick } of tableRows) pick.checked = selected.has(pick.dataset.value ?? "");
}

/** @param {Sum} sum */
export function drawSum(sum) {
  const decimals = decimalsFor([sum.standard_error]);
  const names = sum.values.length > 6 ? [...sum.values.slice(0, 5), `${sum.values.length - 5} more`] : sum.values;
  setText(byId("sum-values"), names.join(" + "));
  setText(byId("sum-share"), `${percent(sum.frequency, decimals)} %`);
  const level = Number((100 * sum.confidence).toPrecision(6));
  const interval = `${percent(sum.low, decimals)} … ${percent(sum.high, decimals)}`;
  setText(byId("sum-interval"), `${level} % interval ${interval}, ${counted(sum.count, "user")}`);
  setHidden(byId("sum"), false);
}

/** @param {string} message */
export function drawNoSum(message) {
  setHidden(byId("sum"), !message);
  setText(byId("sum-values"), message && `No sum: ${message}.`);
  for (const id of ["sum-share", "sum-interval"]) setText(byId(id), "");
}
