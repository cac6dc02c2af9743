// Asking again and again, ever less often while it fails.

import { LostConnection, Refusal, askJson, epochPath } from "./asking.js";
import { byId, setHidden } from "./dom.js";
import { refreshList } from "./epochs.js";
import { drawStatus } from "./facts.js";
import { clockSeconds } from "./numbers.js";
import { setConnection, showOnly } from "./sections.js";
import { refreshOffer } from "./snippet.js";
import { state } from "./state.js";
import { askForToken } from "./token.js";
import { views } from "./views.js";

const POLL_SECONDS = 2;
const LONGEST_PAUSE_SECONDS = 30;

let polling = new AbortController();
let timer = 0;
let failures = 0;

async function refresh(signal) {
  await refreshList(signal);
  if (!state.epochs.length) return showOnly("nothing");
  state.status = await askJson(`${epochPath(state.chosen)}/status.json`, signal);
  drawStatus(state.status);
  await Promise.all([refreshOffer(signal), ...views.map((view) => view.refresh(state.status, signal))]);
  byId("main").setAttribute("aria-busy", "false");
  return showOnly("main");
}

export async function poll() {
  const { signal } = polling;
  try {
    await refresh(signal);
    failures = 0;
    setConnection("live", "Live");
    byId("connection").title = `Last update ${clockSeconds.format(new Date())}`;
    setHidden(byId("forget"), !state.token);
  } catch (error) {
    if (signal.aborted) return;
    if (error.status === 401) return askForToken();
    fail(error);
  }
  const pause = Math.min(LONGEST_PAUSE_SECONDS, POLL_SECONDS * 2 ** failures);
  if (!document.hidden) timer = setTimeout(poll, pause * 1000);
}

function fail(error) {
  failures += 1;
  if (error.status === 404) state.listedAt = -Infinity; // the epoch is gone: see which there are
  const isOutOfOrder = error instanceof Refusal;
  setConnection("lost", isOutOfOrder ? "The collector is out of order, retrying" : "Connection lost, retrying");
  if (!isOutOfOrder && !(error instanceof LostConnection)) console.error(error);
}

/** Drop what is under way and begin anew; called whenever something else is wanted. */
export function restart() {
  polling.abort();
  clearTimeout(timer);
  polling = new AbortController();
  if (!document.hidden) poll();
}
