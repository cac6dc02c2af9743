// A survey of one question. Sunzi's client randomises the answer; once the visitor has agreed, its device queues the
// report and sends it until it is acknowledged.

import { fetchEpoch } from "./client/index.js";
import { Device } from "./client/device.js";
import { readReport } from "./client/reading.js";

const COLLECTION = "/v1/collections/browsers";
const ATTRIBUTE = "browser";
const LIFETIME = 6; // the ε that this browser may spend on ATTRIBUTE in total
const MAX_EPSILON = 2; // per report; plans with more are rejected
const REFRESH_SECONDS = 2;

const byId = (id) => document.getElementById(id);

function say(text, kind = "") {
  byId("notice").textContent = text;
  byId("notice").dataset.kind = kind;
}

function showAnswers(labels) {
  byId("answers").replaceChildren(
    ...labels.map((label) => {
      const [choice, input] = [document.createElement("label"), document.createElement("input")];
      Object.assign(input, { type: "radio", name: "answer", value: label, required: true });
      choice.append(input, label);
      return choice;
    }),
  );
  document.querySelector("fieldset").disabled = false;
  byId("question").ariaBusy = "false";
}

/** The probabilities of randomised response over k labels, in words. */
function describePlan({ domain: { size }, epsilon }) {
  const odds = Math.exp(Number(epsilon));
  const percent = (share) => `${Math.round(100 * share)} %`;
  const [truth, other] = [odds / (odds + size - 1), 1 / (odds + size - 1)];
  return (
    `This page sends your answer with probability ${percent(truth)} and each other answer with probability ` +
    `${percent(other)} (ε\u00a0=\u00a0${epsilon}). It draws once: the same answer always gives the same report.`
  );
}

/** Show the bits of a report, lowest first, with the padding of the last byte dimmed. */
function showBits(body, used) {
  const bits = [...body].map((byte) => byte.toString(2).padStart(8, "0").split("").reverse().join("")).join("");
  const unused = document.createElement("span");
  unused.className = "unused";
  unused.textContent = bits.slice(used);
  byId("bits").replaceChildren(bits.slice(0, used), unused);
}

async function showReport(device, { plan }, chosen, id) {
  const waiting = await device.waiting();
  const report = waiting.find((each) => each.id === id);
  byId("waiting").textContent = `${waiting.length} to be sent`;
  byId("spent").textContent = `ε ${await device.spent(ATTRIBUTE)} of ${LIFETIME} in total`;
  if (!report) return;
  byId("chosen").textContent = chosen;
  byId("seen").textContent = plan.domain.labels[readReport(plan, report.body).payload];
  byId("hexadecimal").textContent = [...report.body].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  showBits(report.body, Math.ceil(Math.log2(plan.domain.size)));
  byId("no-report").hidden = true;
  byId("report").hidden = false;
}

/** What a report of this answer would say. It is shown before anything is stored or sent. */
async function showPreview(device, { plan, url }, chosen) {
  byId("no-report").hidden = true;
  byId("preview").textContent = (await device.preview(plan, ATTRIBUTE, chosen, url)).meaning;
}

/** The result in words; keepSending may already have sent the report. */
function sentence({ acknowledged, waiting }, outcome) {
  if (waiting > 0) return "The collector cannot be reached; your report will be sent later.";
  if (acknowledged > 0) return "Your report was counted.";
  return outcome === "repeated" ? "This browser has already answered: it has one report per epoch." : "Your report was sent.";
}

/** Why a report cost nothing. */
const FREE = {
  queued: "It is the same report as before, so it cost nothing.",
  kept: "This browser has used up its privacy budget, so it was its last report again, whatever you choose.",
};

async function answer(device, epoch, chosen) {
  try {
    const { id, cost, outcome } = await device.queue(epoch.plan, ATTRIBUTE, chosen, epoch.url);
    if (outcome === "silent") {
      say("This browser has used up its privacy budget and sends nothing more.");
      return;
    }
    await showReport(device, epoch, chosen, id);
    const flushed = await device.flush();
    byId("waiting").textContent = `${flushed.waiting} to be sent`;
    const reason = cost === "0" ? FREE[outcome] : undefined;
    if (!flushed.rejected) say([sentence(flushed, outcome), reason].filter(Boolean).join(" "));
    await showResult();
  } catch (error) {
    say(`This did not work: ${error.message}.`, "error");
  }
}

/** Ask for the consent, which can be withdrawn at any time. Until it is given, answers show only what they would send. */
async function askForConsent(device, plan) {
  const box = byId("consent");
  byId("about").textContent = device.notice(plan, ATTRIBUTE);
  const show = async () => {
    box.checked = await device.enabled();
    byId("send").disabled = !box.checked;
  };
  box.addEventListener("change", async () => {
    try {
      const wanted = box.checked;
      if (wanted) await device.enable();
      else await device.disable();
      await show();
      if (!wanted) say("Nothing more is sent. What this browser had stored is deleted.");
      else say(box.checked ? "" : "Your browser asks not to be tracked, so this page sends nothing.");
    } catch (error) {
      box.checked = false;
      say(`This did not work: ${error.message}.`, "error");
    }
  });
  await show();
  box.disabled = false;
}

function svgElement(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** A bar from 0 and a line for the interval, on a scale from −5 % to the largest upper bound. */
function drawBar({ frequency, low, high }, largest) {
  const at = (share) => `${(100 * (Math.max(-0.05, Math.min(largest, share)) + 0.05)) / (largest + 0.05)}%`;
  const width = `${Math.max(0, parseFloat(at(frequency)) - parseFloat(at(0)))}%`;
  const picture = svgElement("svg", { role: "presentation" });
  picture.append(
    svgElement("rect", { class: "bar", x: at(0), y: "15%", width, height: "70%", rx: 2 }),
    svgElement("line", { class: "zero", x1: at(0), x2: at(0), y1: 0, y2: "100%" }),
    svgElement("line", { class: "interval", x1: at(low), x2: at(high), y1: "50%", y2: "50%" }),
  );
  return picture;
}

function cell(role, content, className = "") {
  const element = document.createElement("span");
  element.className = className;
  element.setAttribute("role", role);
  element.append(content);
  return element;
}

async function showResult() {
  const response = await fetch(`${COLLECTION}/epochs/current/estimate.json`).catch(() => undefined);
  if (!response?.ok) return;
  const { reports, histogram } = await response.json();
  const largest = Math.max(...histogram.map(({ high }) => high));
  const percent = (share) => `${(100 * Math.max(0, share)).toFixed(0)}`;
  byId("reports").textContent = `from ${reports.toLocaleString("en")} reports`;
  byId("everybody").hidden = false;
  byId("result").replaceChildren(
    ...histogram.map((row) => {
      const line = document.createElement("div");
      line.setAttribute("role", "row");
      const share = `${percent(row.frequency)} %  (${percent(row.low)} to ${percent(row.high)})`;
      line.append(cell("rowheader", row.label), cell("cell", drawBar(row, largest)), cell("cell", share, "share"));
      return line;
    }),
  );
}

async function start() {
  const epoch = await fetchEpoch(COLLECTION);
  const onError = ({ message }) => say(`The collector rejected a report: ${message}`, "error");
  const device = await Device.open({ lifetimeEpsilon: LIFETIME, maxEpsilon: MAX_EPSILON, onError });
  showAnswers(epoch.plan.domain.labels);
  byId("terms").textContent = describePlan(epoch.plan);
  await askForConsent(device, epoch.plan);
  device.keepSending();
  byId("answers").addEventListener("change", ({ target }) => {
    showPreview(device, epoch, target.value).catch(({ message }) => say(`This did not work: ${message}.`, "error"));
  });
  byId("question").addEventListener("submit", (event) => {
    event.preventDefault();
    void answer(device, epoch, new FormData(event.target).get("answer"));
  });
  say(byId("consent").checked ? "" : "Please agree above before you answer.");
  await showResult();
  setInterval(showResult, 1000 * REFRESH_SECONDS);
}

start().catch((error) => say(`This page cannot report: ${error.message}`, "error"));
