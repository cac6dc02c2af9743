// Twins: every view as JSON, CSV and others, to download.

import { BASE, Refusal, ask, epochPath, estimateQuery } from "./asking.js";
import { byId, element, setAttributes } from "./dom.js";
import { showToast } from "./notices.js";
import { state } from "./state.js";

// A link cannot send a token, so its click fetches the file and hands it over; its address still is the file's.
const TWINS = {
  status: ["status.json", "status.csv"],
  estimate: ["estimate.json", "estimate.csv", "estimate.parquet", "estimate.png", "tally"],
  plan: ["plan"],
  progress: ["progress.json", "progress.csv"],
  health: ["health.json", "health.csv"],
};
const TWIN_NAMES = { json: "JSON", csv: "CSV", parquet: "Parquet", png: "PNG", tally: "Tally file", plan: "Plan file" };
const twinName = (file) => TWIN_NAMES[file.split(".").at(-1)];

function twinQuery(file) {
  if (!file.startsWith("estimate.")) return "";
  return `?${file.endsWith(".png") ? new URLSearchParams({ top: byId("top").value }) : estimateQuery()}`;
}

export function makeTwins() {
  for (const place of document.querySelectorAll(".twins")) {
    const links = TWINS[place.dataset.view].map((file) => {
      const link = element("a", "twin", twinName(file));
      link.dataset.file = file;
      link.setAttribute("aria-label", `Download ${place.dataset.view} as ${twinName(file)}`);
      link.addEventListener("click", downloadTwin);
      return link;
    });
    place.append(element("span", "soft", "Download "), ...links);
  }
}

export function addressTwins() {
  for (const link of document.querySelectorAll(".twin")) {
    const { file } = link.dataset;
    setAttributes(link, { href: new URL(`${epochPath(state.chosen)}/${file}${twinQuery(file)}`, BASE).href });
  }
}

async function downloadTwin(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a tab of its own, as for any link
  event.preventDefault();
  const { file } = event.currentTarget.dataset;
  const { collection, epoch } = state.chosen;
  const endings = { plan: "plan.json", tally: "tally" };
  try {
    const content = await (await ask(event.currentTarget.href)).blob();
    saveAs(content, endings[file] ? `${collection}-${epoch}.${endings[file]}` : `${collection}-${epoch}-${file}`);
  } catch (error) {
    showToast(error instanceof Refusal ? `Not there: ${error.message}.` : "Connection lost; try again.");
  }
}

function saveAs(content, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
