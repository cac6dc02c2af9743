// One epoch in numbers: its status, its reports over time and its health.

import { epochPath } from "./api.js";
import { announce, byId, element, setAttributes, setText, svgElement, svgText } from "./dom.js";
import {
  atSecond, clock, counted, day, dayAndClock, epsilonInShort, epsilonInWords, guessInWords, month, whole,
} from "./format.js";

/** @import { Health, HealthTest, Minute, Status } from "./api.js" */
/** @typedef {"fine" | "alarm" | "unknown"} HealthState */
/** @typedef {{ start: number, end: number, width: number, counts: number[] }} Bins */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const BIN_SECONDS = [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 28 * DAY, 364 * DAY];
const TICK_SECONDS = [1, 2, 5, 10, 15, 30].map((n) => n * MINUTE)
  .concat([1, 2, 3, 6, 12].map((n) => n * HOUR), [1, 2, 7, 14, 28, 91, 182, 364].map((n) => n * DAY));
const RECORDS = ["ordered", "number", "tables"]; // whose number of values says little
/** @type {Record<string, string>} */
const UNCOUNTED = { number: "Numbers", prefixes: "Texts" };
const TOO_FEW = "Too few reports";
const PLOT = { top: 10, height: 112 };

/** @param {Status} status */
export function drawStatus(status) {
  setText(byId("collection"), status.collection);
  setText(byId("epoch"), `epoch ${status.epoch}`);
  document.title = `${status.collection}: ${counted(status.reports, "report")}`;
  setAttributes(byId("state"), { "data-state": status.open ? "open" : "closed" });
  setText(byId("state"), status.open ? "Open" : `Closed ${atSecond(dayAndClock, status.closed_at)}`);
  setText(byId("reports"), whole(status.reports));
  setText(byId("since"), `since ${atSecond(dayAndClock, status.opened_at)}`);
  setText(byId("epsilon"), epsilonInShort(status.epsilon));
  setText(byId("epsilon-words"), epsilonInWords(status.epsilon));
  setText(byId("guess-words"), status.protocol === "prefixes" ? "" : guessInWords(status)); // no list to guess from
  setText(byId("values"), UNCOUNTED[status.protocol] ?? whole(status.domain_size));
  setText(byId("values-words"), RECORDS.includes(status.protocol) ? status.values : "");
  const bits = Number(status.report_bits.toFixed(1)).toLocaleString("en-US");
  const onAverage = status.report_bits % 1 ? " on average" : "";
  setText(byId("protocol"), `protocol ${status.protocol}, ${bits} bits per report${onAverage}`);
  drawTick(status);
  announce(counted(status.reports, "report"));
}

/**
 * Show whether reports arrive.
 * @param {Status} status
 */
function drawTick(status) {
  const { open, reports } = status;
  const texts = {
    waiting: "Waiting for the first report",
    received: open ? `${counted(reports, "report")} received` : `Closed with ${counted(reports, "report")}`,
    closed: "Closed without any reports",
  };
  const state = reports > 0 ? "received" : open ? "waiting" : "closed";
  const tick = byId("tick");
  if (tick.dataset.state === "waiting" && state === "received" && tick.dataset.epoch === epochPath(status)) {
    announce("The first report has arrived.", true);
  }
  setAttributes(tick, { "data-state": state, "data-epoch": epochPath(status) });
  setText(byId("tick-text"), texts[state]);
}

/**
 * Draw the number of reports over time as steps.
 * @param {Minute[]} minutes in ascending order
 * @param {Status} status
 */
export function drawTimeline(minutes, status) {
  const bins = makeBins(minutes, status);
  const top = roundUp(Math.max(...bins.counts));
  byId("timeline").replaceChildren(...levelLines(top), plotSteps(bins, top), ...levelLabels(top), ...timeMarks(bins));
  setText(byId("timeline-about"), `per ${duration(bins.width)}`);
  setText(byId("timeline-text"), timelineInWords(minutes));
}

/** @param {number} seconds since 1970 */
const zoneOffset = (seconds) => new Date(seconds * 1000).getTimezoneOffset() * MINUTE;

/**
 * The last multiple of the step in local time.
 * @param {number} seconds
 * @param {number} step
 */
function floorTo(seconds, step) {
  return Math.floor((seconds - zoneOffset(seconds)) / step) * step + zoneOffset(seconds);
}

/**
 * @param {Minute[]} minutes
 * @param {Status} status
 * @returns {Bins}
 */
function makeBins(minutes, status) {
  const end = status.open ? Date.now() / 1000 : status.closed_at;
  const last = Math.max(end, ...minutes.slice(-1).map((row) => row.minute));
  const first = Math.min(minutes[0]?.minute ?? status.opened_at, last - 10 * MINUTE);
  const width = BIN_SECONDS.find((seconds) => (last - first) / seconds <= 150) ?? 364 * DAY;
  const start = floorTo(first, width);
  const counts = new Array(Math.floor((last - start) / width) + 1).fill(0);
  for (const { minute, reports } of minutes) counts[Math.floor((minute - start) / width)] += reports;
  return { start, end: start + counts.length * width, width, counts };
}

/** @param {number} seconds */
function duration(seconds) {
  const [unit, name] = seconds >= DAY ? [DAY, "day"] : seconds >= HOUR ? [HOUR, "hour"] : [MINUTE, "minute"];
  return seconds === unit ? name : `${seconds / unit} ${name}s`;
}

/**
 * The next even number with at most two significant digits.
 * @param {number} count
 */
function roundUp(count) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, count)));
  const factor = [1, 1.2, 1.6, 2, 3, 4, 5, 6, 8].find((each) => each * power >= count) ?? 10;
  return Math.max(2, 2 * Math.ceil((factor * power) / 2));
}

/**
 * @param {number} level
 * @param {number} top
 */
const heightOf = (level, top) => PLOT.top + PLOT.height * (1 - level / top);

/** @param {number} top */
function levelLines(top) {
  return [top, top / 2, 0].map((level) => {
    const y = heightOf(level, top);
    return svgElement("line", { x1: 0, x2: "100%", y1: y, y2: y, class: level ? "grid" : "zero" });
  });
}

/** @param {number} top */
function levelLabels(top) {
  return [top, top / 2].map((level) => svgText(whole(level), { x: 0, y: heightOf(level, top) + 12 }));
}

/**
 * The steps, one unit wide each, stretched to the width of the card.
 * @param {Bins} bins
 * @param {number} top
 */
function plotSteps({ counts }, top) {
  const size = { y: PLOT.top, width: "100%", height: PLOT.height };
  const plot = svgElement("svg", { ...size, viewBox: `0 0 ${counts.length} 1`, preserveAspectRatio: "none" });
  const corners = counts.map((reports, index) => `V${(1 - reports / top).toFixed(4)}H${index + 1}`).join("");
  const d = `M0 1${corners}V1`;
  plot.append(svgElement("path", { d, class: "area" }), svgElement("path", { d, class: "outline" }));
  return plot;
}

/** @param {Bins} bins */
function timeMarks({ start, end }) {
  const foot = PLOT.top + PLOT.height;
  const step = TICK_SECONDS.find((seconds) => (end - start) / seconds <= 5) ?? 364 * DAY;
  const marks = [];
  for (let at = floorTo(start, step) + step; at < end; at += step) {
    const place = (100 * (at - start)) / (end - start);
    const x = `${place.toFixed(2)}%`;
    const isMidnight = step >= DAY || floorTo(at, DAY) === at;
    marks.push(svgElement("line", { x1: x, x2: x, y1: foot, y2: foot + 5, class: "zero" }));
    if (place < 5 || place > 95) continue; // the text would stick out
    const text = atSecond(step > 28 * DAY ? month : isMidnight ? day : clock, at);
    marks.push(svgText(text, { x, y: foot + 18, class: "time" }));
  }
  return marks;
}

/** @param {Minute[]} minutes */
function timelineInWords(minutes) {
  if (!minutes.length) return "No reports yet.";
  const busiest = minutes.reduce((best, row) => (row.reports > best.reports ? row : best));
  const today = atSecond(day, Date.now() / 1000);
  /** @param {number} at */
  const when = (at) => atSecond(atSecond(day, at) === today ? clock : dayAndClock, at);
  const last = minutes[minutes.length - 1].minute;
  return `Busiest minute: ${when(busiest.minute)}, ${counted(busiest.reports, "report")}. Last report: ${when(last)}.`;
}

/**
 * Show whether the reports look honest.
 * @param {Health} health
 */
export function drawHealth(health) {
  const state = health.too_few ? "unknown" : healthState(health);
  const short = health.too_few ? TOO_FEW : { alarm: "Alarm", unknown: "Unknown", fine: "No alarm" }[state];
  if (health.alarm && byId("verdict").dataset.state !== "alarm") announce(`Health alarm: ${health.verdict}`, true);
  drawVerdict(state, short, health.too_few ? sentence(health.verdict) : `${short}: ${health.verdict}.`);
  byId("tests").replaceChildren(...health.tests.map(makeTest));
}

/**
 * @param {string} message of the collector
 * @param {Status} status
 */
export function drawNoHealth(message, { reports }) {
  const short = message.includes("until it is closed") ? "Not yet" : TOO_FEW;
  if (reports) drawVerdict("unknown", short, sentence(message));
  else drawVerdict("unknown", "–", "Nothing to check before the first reports.");
  byId("tests").replaceChildren();
}

/** @param {string} text */
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

/**
 * @param {HealthTest} test
 * @returns {HealthState}
 */
const healthState = ({ alarm, p_value: p }) => (alarm ? "alarm" : p === null ? "unknown" : "fine");

/**
 * @param {HealthState} state
 * @param {string} short
 * @param {string} text
 */
function drawVerdict(state, short, text) {
  for (const id of ["verdict", "health-fact"]) setAttributes(byId(id), { "data-state": state });
  setText(byId("health-short"), state === "alarm" ? `⚠ ${short}` : short);
  setText(byId("verdict-text"), text);
}

/** @param {HealthTest} test */
function makeTest(test) {
  const state = healthState(test);
  const item = element("li", "test");
  item.dataset.state = state;
  const icon = element("span", "test-icon", { fine: "✓", alarm: "!", unknown: "–" }[state]);
  icon.setAttribute("aria-hidden", "true");
  const words = element("div", "");
  words.append(element("p", "test-verdict", test.verdict));
  if (test.expected) words.append(element("p", "soft", `Expected: ${test.expected}.`));
  item.append(icon, words);
  return item;
}
