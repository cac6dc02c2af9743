// Reports over time, as steps.

import { byId, setText, svgElement, svgText } from "./dom.js";
import { atSecond, clock, counted, day, dayAndClock, month, whole } from "./numbers.js";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const BIN_SECONDS = [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 28 * DAY, 364 * DAY];
const TICK_SECONDS = [1, 2, 5, 10, 15, 30].map((n) => n * MINUTE)
  .concat([1, 2, 3, 6, 12].map((n) => n * HOUR), [1, 2, 7, 14, 28, 91, 182, 364].map((n) => n * DAY));
const PLOT = { top: 10, height: 112 };

const shiftOf = (seconds) => new Date(seconds * 1000).getTimezoneOffset() * MINUTE;
const floorTo = (seconds, step) => Math.floor((seconds - shiftOf(seconds)) / step) * step + shiftOf(seconds);

function makeBins(minutes, status) {
  const end = status.open ? Date.now() / 1000 : status.closed_at;
  const last = Math.max(end, ...minutes.slice(-1).map((row) => row.minute));
  const first = Math.min(minutes[0]?.minute ?? status.opened_at, last - 10 * MINUTE);
  const width = BIN_SECONDS.find((seconds) => (last - first) / seconds <= 150) ?? BIN_SECONDS.at(-1);
  const start = floorTo(first, width);
  const bins = new Array(Math.floor((last - start) / width) + 1).fill(0);
  for (const { minute, reports } of minutes) bins[Math.floor((minute - start) / width)] += reports;
  return { start, width, bins, end: start + bins.length * width };
}

const widthInWords = (seconds) => {
  const [unit, name] = [[DAY, "day"], [HOUR, "hour"], [MINUTE, "minute"]].find(([size]) => seconds >= size);
  return seconds === unit ? name : `${seconds / unit} ${name}s`;
};

function steps(bins, top) {
  const corners = bins.map((reports, index) => `V${(1 - reports / top).toFixed(4)}H${index + 1}`).join("");
  return `M0 1${corners}V1`;
}

function timeTicks({ start, end }) {
  const step = TICK_SECONDS.find((seconds) => (end - start) / seconds <= 5) ?? TICK_SECONDS.at(-1);
  const ticks = [];
  for (let at = floorTo(start, step) + step; at < end; at += step) ticks.push(at);
  return ticks.map((at) => {
    const share = (100 * (at - start)) / (end - start);
    const isMidnight = step >= DAY || floorTo(at, DAY) === at;
    return { share, text: atSecond(step > 28 * DAY ? month : isMidnight ? day : clock, at) };
  });
}

export function drawProgress(minutes, status) {
  const made = makeBins(minutes, status);
  const top = roundAbove(Math.max(...made.bins));
  const plot = stepPlot(made.bins, top);
  byId("timeline").replaceChildren(...levelMarks(top), plot, ...levelLabels(top), ...timeMarks(made));
  setText(byId("progress-about"), `per ${widthInWords(made.width)}`);
  setText(byId("progress-text"), progressInWords(minutes));
}

/** An even number not below this one, with at most two digits before its zeros. */
function roundAbove(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  const factor = [1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10].find((each) => each * power >= most);
  return Math.max(2, 2 * Math.ceil((factor * power) / 2));
}

const heightOf = (level, top) => PLOT.top + PLOT.height * (1 - level / top);

function levelMarks(top) {
  return [top, top / 2, 0].map((level) => {
    const [y1, y2] = [heightOf(level, top), heightOf(level, top)];
    return svgElement("line", { x1: 0, x2: "100%", y1, y2, class: level ? "grid" : "zero" });
  });
}

function levelLabels(top) {
  return [top, top / 2].map((level) => svgText(whole(level), { x: 0, y: heightOf(level, top) + 12 }));
}

/** As wide as its room: one unit a bin, stretched. */
function stepPlot(bins, top) {
  const size = { y: PLOT.top, width: "100%", height: PLOT.height };
  const plot = svgElement("svg", { ...size, viewBox: `0 0 ${bins.length} 1`, preserveAspectRatio: "none" });
  const path = steps(bins, top);
  plot.append(svgElement("path", { d: path, class: "area" }), svgElement("path", { d: path, class: "outline" }));
  return plot;
}

function timeMarks(made) {
  const foot = PLOT.top + PLOT.height;
  return timeTicks(made).flatMap(({ share, text }) => {
    const x = `${share.toFixed(2)}%`;
    const stub = svgElement("line", { x1: x, x2: x, y1: foot, y2: foot + 5, class: "zero" });
    if (share < 5 || share > 95) return [stub]; // its text would stick out
    return [stub, svgText(text, { x, y: foot + 18, class: "time" })];
  });
}

function progressInWords(minutes) {
  if (!minutes.length) return "No report yet.";
  const busiest = minutes.reduce((best, row) => (row.reports > best.reports ? row : best));
  const today = atSecond(day, Date.now() / 1000);
  const when = (at) => atSecond(atSecond(day, at) === today ? clock : dayAndClock, at);
  const most = `Busiest minute: ${when(busiest.minute)} with ${counted(busiest.reports, "report")}.`;
  return `${most} Last report: ${when(minutes.at(-1).minute)}.`;
}
