// What changed between two epochs, or groups of users: each value's change with its interval, the clearest first.

import { parameter } from "./address.js";
import { drawAxis, drawLabel, drawMarks, makeAxis, makeBarRow, showRows } from "./bars.js";
import { announce, byId, element, inputById, selectById, setAttributes, setHidden, setText } from "./dom.js";
import { atSecond, counted, dayAndClock, decimalsFor, percent, signedPercent, whole } from "./format.js";

/** @import { Change, Choice, Difference, Side } from "./api.js" */
/** @import { Axis, Certainty } from "./bars.js" */

/** @typedef {ReturnType<typeof makeRow>} RowElements */

/** @type {RowElements[]} */
const tableRows = [];

/**
 * Why the two sides that the controls select cannot be compared; empty if they can.
 * @param {Choice} choice
 */
export function incomparable({ epoch }) {
  const before = selectById("before").value;
  if (!before) return "there is no other epoch to compare with";
  const [group, other] = [parameter("group"), parameter("before_group")];
  const isSplit = group !== other && group.split("=")[0] === other.split("=")[0];
  if (before !== String(epoch) || isSplit) return "";
  return "both sides contain the same reports; choose another epoch, or two groups of one attribute";
}

/**
 * The address of the difference that the controls select; null if there is none.
 * @param {Choice} choice
 */
export function differencePath(choice, form = "json") {
  if (incomparable(choice)) return null;
  const { collection, epoch } = choice;
  const before = selectById("before").value;
  const query = new URLSearchParams({ before, after: String(epoch), top: selectById("top").value });
  const search = inputById("search").value;
  if (search && form === "png") return null; // pictures show the clearest changes of all values
  if (search) query.set("search", search);
  if (selectById("limit").value !== "any") query.set("verdict", selectById("limit").value);
  if (parameter("before_group")) query.set("before_group", parameter("before_group"));
  if (parameter("group")) query.set("after_group", parameter("group"));
  return `v1/collections/${collection}/difference.${form}?${query}`;
}

/** @param {Difference} difference */
export function drawChanges(difference) {
  const rows = difference.changes;
  if (!rows.length) return drawNoChanges("no label matches your search");
  describeChanges(difference);
  const axis = makeAxis(rows.flatMap((row) => [row.low, row.high]));
  const decimals = decimalsFor(rows.map((row) => row.standard_error));
  showRows(byId("changes-body"), tableRows, rows.length, makeRow);
  rows.forEach((row, index) => drawRow(tableRows[index], row, axis, decimals));
  drawAxis(byId("changes-axis"), axis);
  setAttributes(byId("changes-rows"), { "data-decimals": Math.min(4, decimals) });
  setHidden(byId("changes-empty"), true);
  for (const id of ["changes-rows", "changes-summary", "changes-reading"]) setHidden(byId(id), false);
}

/** @param {string} message of the collector */
export function drawNoChanges(message) {
  setText(byId("changes-about"), "");
  setText(byId("changes-empty-text"), `${message[0].toUpperCase()}${message.slice(1)}.`);
  for (const id of ["changes-rows", "changes-summary", "changes-reading"]) setHidden(byId(id), true);
  setHidden(byId("changes-empty"), false);
}

/** @param {Side} side */
function named({ epoch, group, reports, opened_at: opened }) {
  const whose = group ? `, ${group}` : "";
  return `epoch ${epoch}${whose} (${atSecond(dayAndClock, opened)}, ${counted(reports, "report")})`;
}

/** @param {Difference} difference */
function describeChanges({ before, after, changed, domain_size: size, p_value: p, confidence, verdict, changes }) {
  setText(byId("changes-about"), `from ${named(before)} to ${named(after)}`);
  const rate = `${Number((100 * (1 - confidence)).toPrecision(3))} %`;
  const limit = verdict === "any"
    ? `The probability of any false positive is at most ${rate}.`
    : `On average, at most ${rate} of these are false positives.`;
  const found = changed ? `${whole(changed)} of ${counted(size, "value")} changed.` : `No change found in ${counted(size, "value")}.`;
  const test = `If nothing had changed at all, this would be surprising: p ${p < 1e-6 ? "< 0.000001" : `= ${p.toPrecision(2)}`}.`;
  setText(byId("changes-verdict"), [found, changed ? limit : ""].join(" ").trim());
  setText(byId("changes-test"), p < 0.05 ? test : `The data are consistent with no change at all: p = ${p.toPrecision(2)}.`);
  setText(byId("changes-interval"), `${Number((100 * confidence).toPrecision(6))} % interval`);
  setHidden(byId("changes-negatives"), !changes.some((row) => row.before < 0 || row.after < 0));
  announce(found, true);
}

/**
 * @param {Change} row
 * @returns {Certainty}
 */
const certaintyOf = (row) => (row.changed ? "clear" : row.low > 0 || row.high < 0 ? "alone" : "unclear");

function makeRow() {
  const made = makeBarRow(["share", "interval", "sides"]);
  const verdict = element("span", "near-zero");
  made.line.append(verdict);
  return { ...made, verdict };
}

/**
 * @param {RowElements} elements
 * @param {Change} row
 * @param {Axis} axis
 * @param {number} decimals
 */
function drawRow(elements, row, axis, decimals) {
  const certainty = certaintyOf(row);
  const { share, interval, sides } = elements.cells;
  drawLabel(elements, row.label, certainty);
  setText(share, `${signedPercent(row.change, decimals)} %`);
  setText(interval, `${signedPercent(row.low, decimals)} … ${signedPercent(row.high, decimals)}`);
  setText(elements.verdict, { clear: "changed", alone: "perhaps", unclear: "" }[certainty]);
  setHidden(elements.verdict, certainty === "unclear");
  setText(sides, `${percent(row.before, decimals)} → ${percent(row.after, decimals)} %`);
  drawMarks(elements.marks, { value: row.change, low: row.low, high: row.high, processed: null }, axis);
}
