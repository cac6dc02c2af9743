// What clients of the chosen collection are told now, and a program that sends a report there, to be copied.

import { askJson } from "./asking.js";
import { byId, element, setHidden, setText } from "./dom.js";
import { javascript } from "./javascript.js";
import { python } from "./python.js";
import { state } from "./state.js";

// A further language is a further entry here: its name, its mark of a comment, how it writes a text, and a function from
// a plan's offer and an example to lines. A line is [code] or [code, comment].
const LANGUAGES = [python, javascript];

function exampleValue({ labels, labels_sha256: hash }, literal) {
  if (labels) return literal(labels[0]);
  return hash ? "\"ONE OF YOUR LABELS\"" : "0";
}

function drawSnippet() {
  const language = LANGUAGES.find(({ name }) => byId(`language-${name}`).checked);
  const { offer } = state;
  const lines = language.lines(offer, exampleValue(offer.plan.domain, language.literal));
  const spans = lines.flatMap(([code, comment], index) => {
    const ending = index < lines.length - 1 ? "\n" : "";
    if (!comment) return [code + ending];
    return [code ? `${code}  ` : "", element("span", "comment", `${language.comment} ${comment}`), ending];
  });
  byId("code").replaceChildren(...spans);
  for (const note of document.querySelectorAll("[data-language]")) {
    setHidden(note, note.dataset.language !== language.name);
  }
}

function describeSearch({ size, ...rest }) {
  const hasLabels = Object.keys(rest).some((key) => key.startsWith("labels"));
  byId("search").placeholder = hasLabels ? "any part of it" : `0 to ${size - 1}`;
}

/** Ask for the offer again when an epoch was opened or closed. */
export async function refreshOffer(signal) {
  const { collection } = state.chosen;
  const siblings = state.epochs.filter((epoch) => epoch.collection === collection);
  const asOf = `${collection} ${siblings.map((epoch) => `${epoch.epoch}${epoch.open}`)}`;
  if (state.offer?.asOf !== asOf) {
    state.offer = { ...(await askJson(`v1/collections/${collection}/plan`, signal)), asOf };
    drawSnippet();
    describeSearch(state.offer.plan.domain);
  }
  const { epoch } = state.offer;
  setHidden(byId("elsewhere"), epoch === state.chosen.epoch);
  setText(byId("elsewhere"), `Clients that ask now are told epoch ${epoch}, not epoch ${state.chosen.epoch}.`);
}

export async function copySnippet() {
  const code = byId("code").textContent;
  try {
    await navigator.clipboard.writeText(code);
    setText(byId("copy"), "Copied");
  } catch { // the clipboard is only given to secure pages: choose the text, so that Ctrl+C takes it
    getSelection().selectAllChildren(byId("code"));
    setText(byId("copy"), "Press Ctrl+C");
  }
  setTimeout(() => setText(byId("copy"), "Copy"), 3000);
}

export function makeLanguages() {
  for (const [index, { name }] of LANGUAGES.entries()) {
    const radio = element("input", "");
    Object.assign(radio, { type: "radio", name: "language", id: `language-${name}`, checked: index === 0 });
    radio.addEventListener("change", drawSnippet);
    const label = element("label", "", name);
    label.htmlFor = radio.id;
    byId("languages").append(radio, label);
  }
}
