// The axis of the histogram, which all its rows share.

import { byId, svgElement, svgText } from "./dom.js";
import { percent } from "./numbers.js";

/** Where shares stand, in percent of the drawing's width, and the ticks between. Zero is always among them. */
export function makeAxis(rows, processedColumn) {
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

export function gridLines({ ticks, place }, from = 0) {
  return ticks.map((tick) => {
    const [x1, x2] = [place(tick), place(tick)];
    return svgElement("line", { x1, x2, y1: from, y2: "100%", class: tick === 0 ? "zero" : "grid" });
  });
}

export function drawAxis(axis) {
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
