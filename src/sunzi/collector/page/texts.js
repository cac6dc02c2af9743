// The texts found in an open plan so far, and how frequent a text must be to be found.

import { currentView, parameter } from "./address.js";
import { View, epochPath } from "./api.js";
import { drawAxis, drawLabel, drawMarks, makeAxis, makeBarRow, showRows } from "./bars.js";
import { byId, setAttributes, setHidden, setText } from "./dom.js";
import { counted, decimalsFor, percent, whole } from "./format.js";
import { whyEmpty } from "./histogram.js";

/** @import { BarRow } from "./bars.js" */
/** @import { Choice, Discovery, Status } from "./api.js" */

const MOST_SHOWN = 100;
const MOST_LENGTHS = 5; // of more thresholds, those of the shortest and the longest texts and of a list are shown

/** @type {BarRow[]} */
const tableRows = [];

/**
 * The address of the texts; null while another view is shown.
 * @param {Choice} choice
 */
export function textsPath(choice, form = "json") {
  if (currentView() !== "texts") return null;
  const query = new URLSearchParams(form === "json" ? { top: String(MOST_SHOWN) } : {});
  if (parameter("group")) query.set("group", parameter("group"));
  return `${epochPath(choice)}/discover.${form}?${query}`;
}

/**
 * @param {Discovery} found
 * @param {Status} status
 */
function drawTexts(found, { open }) {
  const { found: rows, accepted, reports, candidates, false_share: falseShare, group } = found;
  if (rows.length) drawRows(rows, reports);
  const shown = rows.length < accepted ? `the ${rows.length} most frequent of ` : "";
  const whose = group ? ` of ${group}` : "";
  setText(byId("texts-about"), `${shown}${counted(accepted, "text")} found in ${counted(reports, "report")}${whose}`);
  setText(byId("texts-threshold"), thresholdInWords(found));
  setText(byId("texts-errors"), `The search proposed ${counted(candidates, "text")}, and the count of other reports `
    + `accepted ${whole(accepted)}. On average, at most ${percent(falseShare, 0)} % of these are false positives, `
    + "and at most 5 % of the intervals miss.");
  setHidden(byId("texts-open"), !open);
  setHidden(byId("texts-none"), rows.length > 0);
  setHidden(byId("texts-rows"), !rows.length);
  setHidden(byId("texts-empty"), true);
  setHidden(byId("texts-shown"), false);
}

/**
 * @param {Discovery["found"]} rows
 * @param {number} reports
 */
function drawRows(rows, reports) {
  const axis = makeAxis(rows.flatMap((row) => [row.low, row.high]));
  // An interval is about four standard errors wide.
  const decimals = decimalsFor(rows.map((row) => (row.high - row.low) / 4));
  showRows(byId("texts-body"), tableRows, rows.length, () => makeBarRow(["share", "interval", "users"]));
  rows.forEach(({ label, frequency: value, low, high }, index) => {
    const { marks, cells } = tableRows[index];
    drawLabel(tableRows[index], label || "(empty text)", "clear");
    setText(cells.share, `${percent(value, decimals)} %`);
    setText(cells.interval, `${percent(low, decimals)} … ${percent(high, decimals)}`);
    setText(cells.users, whole(value * reports));
    drawMarks(marks, { value, low, high, processed: null }, axis);
  });
  drawAxis(byId("texts-axis"), axis);
  setAttributes(byId("texts-rows"), { "data-decimals": Math.min(4, decimals) });
}

/** @param {Discovery} found */
function thresholdInWords({ thresholds, reports }) {
  const shown = thresholds.length > MOST_LENGTHS ? [thresholds[0], ...thresholds.slice(-2)] : thresholds;
  const parts = shown.filter(({ frequency }) => frequency <= 1).map(({ tokens, frequency }) => {
    const which = tokens === null ? "you name it in a list of candidates" : `it has up to ${counted(tokens, "token")}`;
    return `${(100 * frequency).toPrecision(3)} % if ${which}`;
  });
  const among = `Among ${counted(reports, "report")},`;
  if (!parts.length) return `${among} no text can be found reliably: more are needed.`;
  const last = parts.pop();
  const joined = parts.length ? `${parts.join(", ")}, or ${last}` : last;
  return `${among} a text is found in four of five collections from a share of ${joined}.`;
}

/**
 * @param {string} message of the collector
 * @param {Status} status
 */
function drawNoTexts(message, status) {
  const [title, text] = whyEmpty(message, status);
  setText(byId("texts-empty-title"), title);
  setText(byId("texts-empty-text"), text);
  setText(byId("texts-about"), "");
  setHidden(byId("texts-shown"), true);
  setHidden(byId("texts-empty"), false);
}

export const textsView = new View(textsPath, drawTexts, drawNoTexts);
