// Values over epochs: a small chart per value with its intervals and alarms.

import { parameter, selectedValues } from "./address.js";
import { niceStep, stepDecimals } from "./bars.js";
import { byId, element, inputById, selectById, setHidden, setText, svgElement, svgText } from "./dom.js";
import { atSecond, counted, day, decimalsFor, percent, signedPercent } from "./format.js";

/** @import { Alarm, Choice, Progress, Series, Trend } from "./api.js" */
/** @typedef {{ left: (place: number) => number, top: (share: number) => number, ticks: number[], decimals: number }} Scale */

const HEIGHT = 96;
const PLOT = { top: 8, height: 70 };

/**
 * The address of the trend that the controls select: of searched or selected values, or of those that come first.
 * @param {Choice} choice
 */
export function trendPath({ collection }, form = "json") {
  const query = new URLSearchParams({ top: selectById("top").value });
  const search = inputById("search").value;
  if (search) query.set("search", search);
  else if (selectedValues().length) for (const value of selectedValues()) query.append("value", value);
  else if (parameter("sort")) query.set("sort", parameter("sort"));
  return `v1/collections/${collection}/trend.${form}?${query}`;
}

/** @param {Trend | Progress} answer */
export function drawTrend(answer) {
  if ("computed" in answer) return drawNoTrend(`${answer.computed} of ${answer.epochs} epochs are estimated`);
  const { values, epochs, alarms, held_back: heldBack, other_domain: others } = answer;
  if (!values.length) return drawNoTrend("no label matches your search");
  const [first, last] = [epochs[0], epochs[epochs.length - 1]];
  const span = `${atSecond(day, first.opened_at)} to ${atSecond(day, last.opened_at)}`;
  setText(byId("trend-about"), `${counted(values.length, "value")}, ${counted(epochs.length, "epoch")}, ${span}`);
  byId("panels").replaceChildren(...values.map((series) => makePanel(series, answer)));
  setText(byId("trend-alarms"), alarmsInWords(alarms, answer));
  setText(byId("trend-held-back"), heldBackInWords(heldBack, others));
  setHidden(byId("trend-empty"), true);
  setHidden(byId("trend-shown"), false);
}

/** @param {string} message of the collector */
export function drawNoTrend(message) {
  setText(byId("trend-empty-text"), `${message[0].toUpperCase()}${message.slice(1)}.`);
  setHidden(byId("trend-shown"), true);
  setHidden(byId("trend-empty"), false);
  setText(byId("trend-about"), "");
}

/**
 * @param {Alarm[]} alarms
 * @param {Trend} trend
 */
function alarmsInWords(alarms, { one_in: oneIn, domain_size: size, epochs }) {
  const rate = `One false alarm is expected in ${Math.round(oneIn / size).toLocaleString("en-US")} epochs, over all values.`;
  if (!alarms.length) return `No alarm in these epochs. ${rate}`;
  const newest = alarms.slice(-5).reverse().map((alarm) => {
    const since = atSecond(day, epochs[alarm.since].opened_at);
    return `${alarm.label} ${alarm.direction} since ${since}`;
  });
  const more = alarms.length > newest.length ? `, and ${alarms.length - newest.length} earlier` : "";
  return `${counted(alarms.length, "alarm")}: ${newest.join("; ")}${more}. ${rate}`;
}

/**
 * @param {number[]} heldBack
 * @param {number[]} others
 */
function heldBackInWords(heldBack, others) {
  const texts = [
    heldBack.length ? `${counted(heldBack.length, "epoch")} with too few reports` : "",
    others.length ? `${counted(others.length, "epoch")} with other values` : "",
  ].filter(Boolean);
  return texts.length ? `Left out: ${texts.join(", ")}.` : "";
}

/**
 * @param {Series} series
 * @param {Trend} trend
 */
function makePanel(series, { epochs, alarms, confidence }) {
  const panel = element("section", "panel");
  const heading = element("h3", "panel-label");
  heading.append(element("bdi", "", series.label.trim() ? series.label : JSON.stringify(series.label)));
  heading.title = series.label;
  const decimals = decimalsFor(series.standard_error);
  const last = series.frequency.length - 1;
  const ends = `${percent(series.low[last], decimals)} … ${percent(series.high[last], decimals)}`;
  const newest = element("p", "panel-newest");
  newest.append(element("strong", "", `${percent(series.frequency[last], decimals)} %`));
  newest.append(element("span", "soft", ` ${Number((100 * confidence).toPrecision(6))} % interval ${ends}`));
  const own = alarms.filter((alarm) => alarm.label === series.label);
  const words = own.map((alarm) => {
    const since = atSecond(day, epochs[alarm.since].opened_at);
    const step = signedPercent(alarm.after - alarm.before, decimals);
    return `${alarm.direction === "up" ? "▲" : "▼"} ${step} % since ${since}`;
  });
  const note = element("p", own.length ? "panel-alarm" : "soft", words.join(", ") || "no alarm");
  panel.append(heading, newest, drawSeries(series, epochs.map((each) => each.opened_at), own), note);
  return panel;
}

/**
 * @param {Series} series
 * @param {number[]} times
 * @param {Alarm[]} alarms
 */
function drawSeries(series, times, alarms) {
  const scale = makeScale(series, times);
  const text = `${series.label}: from ${percent(series.frequency[0], 1)} % to `
    + `${percent(series.frequency[times.length - 1], 1)} %`;
  const chart = svgElement("svg", { class: "series", height: HEIGHT, role: "img", "aria-label": text });
  const plot = svgElement("svg", { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", y: PLOT.top, width: "100%", height: PLOT.height });
  /** @param {number[]} shares */
  const points = (shares) => shares.map((share, place) => `${scale.left(place).toFixed(1)} ${scale.top(share).toFixed(1)}`);
  const band = [...points(series.low), ...points(series.high).reverse()];
  plot.append(
    svgElement("path", { d: `M${band.join("L")}Z`, class: "band" }),
    svgElement("path", { d: `M${points(series.frequency).join("L")}`, class: "line" }),
  );
  chart.append(...gridOf(scale), plot, ...alarms.map((alarm) => alarmMark(alarm, series, scale)));
  chart.append(...labelsOf(scale), ...timesOf(times));
  return chart;
}

/**
 * @param {Series} series
 * @param {number[]} times
 * @returns {Scale}
 */
function makeScale(series, times) {
  const [low, high] = [Math.min(0, ...series.low), Math.max(...series.high)];
  const step = niceStep((high - low || 1e-6) / 2);
  const [first, end] = [times[0], times[times.length - 1]];
  const isOrdered = times.every((time, place) => place === 0 || time > times[place - 1]);
  const bottom = Math.floor((4 * low) / step) / 4 * step;
  const top = Math.ceil((4 * high) / step) / 4 * step;
  const ticks = [];
  for (let tick = Math.ceil(bottom / step - 1e-9); tick * step <= top + 1e-12; tick += 1) ticks.push(tick * step);
  return {
    left: (place) => 1000 * (isOrdered ? (times[place] - first) / (end - first) : place / (times.length - 1)),
    top: (share) => 1000 * (1 - (share - bottom) / (top - bottom)),
    ticks,
    decimals: stepDecimals(step),
  };
}

/** @param {number} top in thousandths of the plot */
const pixels = (top) => PLOT.top + (PLOT.height * top) / 1000;

/** @param {Scale} scale */
function gridOf({ ticks, top }) {
  return ticks.map((tick) => {
    const y = pixels(top(tick));
    return svgElement("line", { x1: 0, x2: "100%", y1: y, y2: y, class: tick === 0 ? "zero" : "grid" });
  });
}

/** @param {Scale} scale */
function labelsOf({ ticks, top, decimals }) {
  return ticks.map((tick) => svgText(`${percent(tick, decimals)} %`, { x: 0, y: pixels(top(tick)) - 2 }));
}

/**
 * @param {Alarm} alarm
 * @param {Series} series
 * @param {Scale} scale
 */
function alarmMark(alarm, series, { left, top }) {
  const holder = svgElement("svg", {
    x: `${left(alarm.moment) / 10}%`, y: pixels(top(series.frequency[alarm.moment])), width: 1, height: 1, class: "alarm",
  });
  const d = alarm.direction === "up" ? "M0-7l6 11h-12z" : "M0 7l6-11h-12z";
  holder.append(svgElement("path", { d }));
  return holder;
}

/** @param {number[]} times */
function timesOf(times) {
  const [first, last] = [times[0], times[times.length - 1]].map((time) => atSecond(day, time));
  const y = HEIGHT - 4;
  return [svgText(first, { x: 0, y }), svgText(last, { x: "100%", y, class: "end" })];
}
