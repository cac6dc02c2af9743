// The histogram: its rows, what it says of itself, and what stands there while it has none.

import { BASE } from "./asking.js";
import { drawAxis, makeAxis } from "./axis.js";
import { byId, setAttributes, setHidden, setText } from "./dom.js";
import { announcer } from "./notices.js";
import { counted, decimalsFor, whole } from "./numbers.js";
import { drawRow, makeRow } from "./rows.js";

const madeRows = [];

export function drawHistogram(estimate, status, address) {
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
  setText(byId("interval"), `${Number((100 * estimate.confidence).toPrecision(6))} % interval`);
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

export function drawWaitingHistogram(message, { reports, open }) {
  if (reports > 0) drawNoHistogram("Not enough to estimate yet", `${message}.`);
  else if (!open) drawNoHistogram("Closed without a report", "There is nothing to estimate.");
  else drawNoHistogram("Waiting for the first report", "The program above sends one. The histogram appears by itself.");
}
