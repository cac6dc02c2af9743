// One row of the histogram: its label, its drawing and its numbers.

import { gridLines } from "./axis.js";
import { element, setAttributes, setHidden, setText, svgElement } from "./dom.js";
import { percent, whole } from "./numbers.js";

/** One row of the table, made once and then only changed. */
export function makeRow() {
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

export function drawRow(made, row, axis, decimals, processedColumn) {
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
