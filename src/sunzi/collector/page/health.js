// Whether the reports look honest.

import { byId, element, setAttributes, setText } from "./dom.js";
import { announcer } from "./notices.js";

const ICONS = { fine: "✓", alarm: "!", unknown: "–" };
const stateOf = (test) => (test.alarm ? "alarm" : test.p_value === null ? "unknown" : "fine");

export function drawHealth(health) {
  const now = health.alarm ? "alarm" : health.p_value === null ? "unknown" : "fine";
  const short = { alarm: "Alarm", unknown: "Cannot say", fine: "No alarm" }[now];
  if (health.alarm && byId("verdict").dataset.state !== "alarm") announcer.say(`Health alarm: ${health.verdict}`, true);
  drawVerdict(now, short, `${short}: ${health.verdict}.`);
  byId("tests").replaceChildren(...health.tests.map(drawTest));
}

function drawVerdict(now, short, text) {
  for (const id of ["verdict", "health-fact"]) setAttributes(byId(id), { "data-state": now });
  setText(byId("health-short"), now === "alarm" ? `⚠ ${short}` : short);
  setText(byId("verdict-text"), text);
}

function drawTest(test) {
  const now = stateOf(test);
  const item = element("li", "test");
  item.dataset.state = now;
  const icon = element("span", "test-icon", ICONS[now]);
  icon.setAttribute("aria-hidden", "true");
  const words = element("div", "");
  words.append(element("p", "test-verdict", test.verdict));
  if (test.expected) words.append(element("p", "soft", `Expected: ${test.expected}.`));
  item.append(icon, words);
  return item;
}

export function drawNoHealth(text) {
  drawVerdict("unknown", "–", text);
  byId("tests").replaceChildren();
}
