// Tables of several attributes: cells and margins with their intervals, shares within the values of one attribute, and
// whether two attributes are independent.

import { parameter } from "./address.js";
import { View } from "./api.js";
import { byId, element, selectById, setHidden, setOptions, setText } from "./dom.js";
import { decimalsFor, percent } from "./format.js";
import { binText, drawNoRecords, planOf, questionPath, showRecords, whileShown }
  from "./records.js";

/** @import { Answer, Answers, Choice, Domain, Estimate, Row, Status } from "./api.js" */
/** @typedef {{ name: string, domain: Domain }} Attribute */
/** @typedef {"cells" | "rows" | "columns"} Part the cells, or the margin of the rows or of the columns */

const MOST_CELLS = 2500;
const LEGENDS = {
  all: "Each share has its 95 % interval below it. Grey cells are not distinguishable from 0, tested for all cells at once.",
  given: "Cells are shares within each value, “All” are shares of all records; each has its 95 % interval below it. " +
    "Grey shares are not distinguishable from 0. “?” means that too few records have this value to estimate shares " +
    "within it.",
};

/** @type {Record<Part, HTMLTableCellElement[]>} */
const drawn = { cells: [], rows: [], columns: [] };
let drawnTable = "";
let drawnGiven = "";

/**
 * Names with commas between them, quoted as in CSV.
 * @param {Attribute[]} attributes
 */
function listed(attributes) {
  return attributes.map(({ name }) => (/[",]|^\s/.test(name) ? `"${name.replaceAll('"', '""')}"` : name)).join(",");
}

/** The tables of the plan, each as its attributes, then every attribute alone. */
function plannedTables() {
  const plan = planOf("tables");
  const attributes = plan?.domain.attributes ?? [];
  const tables = (plan?.parameters.views ?? []).map((view) => view.attributes.map((number) => attributes[number]));
  const alone = new Set(tables.filter((table) => table.length > 1).flat());
  for (const [first, ...others] of tables) if (!others.length) alone.delete(first);
  return [...tables, ...Array.from(alone, (attribute) => [attribute])];
}

/** The attributes of the table in the address, or else of the first with two of them. */
function chosenTable() {
  const tables = plannedTables();
  const wanted = tables.find((table) => listed(table) === parameter("table"));
  return wanted ?? tables.find((table) => table.length === 2) ?? tables[0] ?? [];
}

/** The attribute within whose values the shares are; empty for shares of all records. */
function chosenGiven() {
  const table = chosenTable();
  const found = table.length > 1 && table.find((attribute) => listed([attribute]) === parameter("given"));
  return found ? listed([found]) : "";
}

/**
 * The attributes of a part of a table; the last one has the columns, if there are several.
 * @param {Attribute[]} table
 * @param {Part} part
 */
function attributesOf(table, part) {
  if (part === "cells") return table;
  if (table.length === 1) return [];
  return part === "rows" ? table.slice(0, -1) : table.slice(-1);
}

/**
 * @param {Choice} choice
 * @param {Part} part
 */
function partPath(choice, part, file = "estimate.json") {
  const attributes = attributesOf(chosenTable(), part);
  return attributes.length ? questionPath(choice, file, [["table", listed(attributes)]]) : null;
}

/**
 * The address of the cells, in this format.
 * @param {Choice} choice
 */
export function tablePath(choice, form = "json") {
  const given = chosenGiven();
  if (!given || form === "png") return partPath(choice, "cells", `estimate.${form}`);
  return questionPath(choice, `answers.${form}`, [["table", listed(chosenTable())], ["given", given]]);
}

/** @param {Choice} choice */
function independencePath(choice) {
  const table = chosenTable();
  if (table.length !== 2) return null;
  return questionPath(choice, "answers.json", [["table", listed(table)], ["independence", "true"]]);
}

export const tableViews = [
  new View(whileShown((choice) => tablePath(choice)), drawTable, drawNoRecords),
  // Two tables may share a margin: draw it again, even if it is not requested again.
  new View(whileShown((choice) => partPath(choice, "rows")), (answer) => drawPart("rows", answer), () => {}, true),
  new View(whileShown((choice) => partPath(choice, "columns")), (answer) => drawPart("columns", answer), () => {}, true),
  new View(whileShown(independencePath), drawIndependence, drawNoTest),
];

/** Synchronise the select and the empty table with the address. */
export function showTable() {
  const table = chosenTable();
  if (!table.length) return;
  setOptions(selectById("table"), plannedTables().map((each) => {
    return { text: each.map(({ name }) => name).join(" × "), value: listed(each) };
  }));
  selectById("table").value = listed(table);
  const given = chosenGiven();
  setOptions(selectById("given"), [{ text: "shares of all records", value: "" }, ...table.map((attribute) => {
    return { text: `shares within each ${attribute.name}`, value: listed([attribute]) };
  })]);
  selectById("given").value = given;
  setHidden(byId("given").parentElement ?? byId("given"), table.length < 2);
  setText(byId("table-legend"), given ? LEGENDS.given : LEGENDS.all);
  setHidden(byId("independence"), table.length !== 2);
  if (given !== drawnGiven) for (const cell of drawn.cells) cell.replaceChildren();
  drawnGiven = given;
  const key = JSON.stringify(table);
  if (key === drawnTable) return;
  drawnTable = key;
  setText(byId("independence"), "");
  makeTable(table);
}

/** @param {Attribute} attribute */
function labelsOf({ domain }) {
  const { labels, range, size } = domain;
  if (labels) return labels;
  return Array.from({ length: size }, (_, index) => (range ? binText(domain, index, index + 1) : String(index)));
}

/**
 * All combinations of the labels of these attributes; the last attribute varies fastest.
 * @param {Attribute[]} attributes
 * @returns {string[][]}
 */
function combinations([first, ...others]) {
  if (!first) return [[]];
  return labelsOf(first).flatMap((label) => combinations(others).map((rest) => [label, ...rest]));
}

/** @param {Attribute[]} table */
function makeTable(table) {
  for (const part of /** @type {Part[]} */ (Object.keys(drawn))) drawn[part] = [];
  const isLarge = table.reduce((cells, { domain }) => cells * domain.size, 1) > MOST_CELLS;
  setHidden(byId("table-large"), !isLarge);
  const rows = table.length > 1 ? table.slice(0, -1) : table;
  const columns = table.length > 1 ? table[table.length - 1] : null;
  const names = rows.map(({ name }) => name).join(", ");
  if (isLarge) return byId("cells").replaceChildren();
  const head = element("thead", "");
  if (columns) {
    const first = element("tr", "");
    first.append(element("td", ""), Object.assign(heading(columns.name, "colgroup"), { colSpan: columns.domain.size }));
    head.append(first);
  }
  const titles = element("tr", "");
  const above = [names, ...(columns ? [...labelsOf(columns), "All"] : ["Share"])];
  titles.append(...above.map((text) => heading(text, "col")));
  head.append(titles);
  const body = element("tbody", "");
  for (const labels of combinations(rows)) {
    const row = element("tr", "");
    row.append(heading(labels.join(", "), "row"), ...cells("cells", columns?.domain.size ?? 1));
    if (columns) row.append(...cells("rows", 1));
    body.append(row);
  }
  byId("cells").replaceChildren(head, body);
  if (!columns) return;
  const foot = element("tr", "");
  foot.append(heading("All", "row"), ...cells("columns", columns.domain.size), element("td", "", "100 %"));
  const last = element("tfoot", "");
  last.append(foot);
  byId("cells").append(last);
}

/**
 * @param {string} text
 * @param {string} scope
 */
const heading = (text, scope) => Object.assign(element("th", "", text.trim() ? text : JSON.stringify(text)), { scope });

/**
 * @param {Part} part
 * @param {number} count
 */
function cells(part, count) {
  const made = Array.from({ length: count }, () => element("td", part === "cells" ? "" : "margin"));
  drawn[part].push(...made);
  return made;
}

/**
 * @param {Estimate | Answers} found shares of all records, or within the values of an attribute
 * @param {Status} status
 */
function drawTable(found, status) {
  if ("answers" in found) {
    drawn.cells.forEach((cell, index) => drawShare(cell, found.answers[index]));
    return showRecords("", status, found.answers.some(({ value, low }) => low !== null && value < 0));
  }
  drawPart("cells", found);
  showRecords("", status, found.histogram.some(({ frequency }) => frequency < 0));
}

/**
 * A conditional share; "?" if its interval is unbounded.
 * @param {HTMLTableCellElement} cell
 * @param {Answer} answer
 */
function drawShare(cell, { value, low, high }) {
  if (low !== null && high !== null) {
    const row = { frequency: value, low, high, above_zero: low > 0 };
    return drawCell(cell, row, decimalsFor([(high - low) / 4]));
  }
  cell.classList.add("unclear");
  cell.replaceChildren(element("span", "share", "?"), element("span", "soft", "no interval"));
}

/**
 * @param {Part} part
 * @param {Estimate} estimate
 */
function drawPart(part, { histogram }) {
  const decimals = decimalsFor(histogram.map((row) => row.standard_error));
  drawn[part].forEach((cell, index) => drawCell(cell, histogram[index], decimals));
}

/**
 * @param {HTMLTableCellElement} cell
 * @param {Pick<Row, "frequency" | "low" | "high" | "above_zero">} row
 * @param {number} decimals
 */
function drawCell(cell, { frequency, low, high, above_zero: isAbove }, decimals) {
  cell.classList.toggle("unclear", !isAbove);
  const share = element("span", "share", `${percent(frequency, decimals)} %`);
  const interval = element("span", "soft", `${percent(low, decimals)} … ${percent(high, decimals)}`);
  cell.replaceChildren(share, interval);
  if (!isAbove) cell.append(element("span", "unseen", ", not distinguishable from 0"));
}

/** @param {Answers} answers */
function drawIndependence({ answers }) {
  const p = answers[answers.length - 1].value;
  const found = p < 1e-6 ? "p < 0.000001" : `p = ${p.toPrecision(2)}`;
  const [row, column] = chosenTable().map(({ name }) => name);
  setText(byId("independence"), p < 0.05
    ? `${row} and ${column} are associated: if they were independent, this table would be surprising, ${found}.`
    : `The data are consistent with independence of ${row} and ${column}: ${found}.`);
}

/** @param {string} message of the collector */
function drawNoTest(message) {
  setText(byId("independence"), `No test of independence: ${message}.`);
}
