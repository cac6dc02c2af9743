// The live page. Every two seconds it polls the status of one epoch; when that changed, it redraws the histogram, the
// timeline and the health. It sends requests to its own origin only.
//
// All figures come from the collector; the page estimates nothing. Labels and messages are inserted as text, never as
// markup.

import { LostConnection, Refusal, View, addressDownloads, epochPath, makeDownloads, requestJson, token }
  from "./api.js";
import { drawHealth, drawNoHealth, drawStatus, drawTimeline } from "./collection.js";
import { byId, inputById, selectById, setAttributes, setHidden, setText } from "./dom.js";
import { clockSeconds } from "./format.js";
import { drawHistogram, drawNoHistogram, estimateQuery } from "./histogram.js";
import { copySnippet, makeLanguages, refreshSnippet } from "./snippets.js";

/** @import { Choice, Status } from "./api.js" */

const POLL_SECONDS = 2;
const MAX_PAUSE_SECONDS = 30;
const LIST_SECONDS = 20;
const SEARCH_DELAY_MILLISECONDS = 250;

const state = {
  /** @type {Status[]} */
  epochs: [],
  listedAt: -Infinity,
  /** @type {Choice | null} */
  choice: null,
};

const views = [
  new View(() => `estimate.json?${estimateQuery()}`, drawHistogram, drawNoHistogram),
  new View(() => "progress.json", drawTimeline, () => {}, true),
  new View(() => "health.json", drawHealth, drawNoHealth),
];

// Choosing an epoch

/** @param {Status} epoch */
function choose(epoch) {
  state.choice = { collection: epoch.collection, epoch: epoch.epoch };
  // Shown open to those who have yet to send a report; after that only the reader opens or closes it.
  /** @type {HTMLDetailsElement} */ (byId("client")).open = epoch.open && epoch.reports === 0;
  byId("main").setAttribute("aria-busy", "true"); // until everything on it belongs to this epoch
  addressDownloads(state.choice, estimateQuery());
}

function chooseByHand() {
  const epoch = state.epochs.find((each) => epochPath(each) === selectById("choice").value);
  if (!epoch) return;
  const query = new URLSearchParams({ collection: epoch.collection, epoch: String(epoch.epoch) });
  history.replaceState(null, "", `?${query}`);
  choose(epoch);
  restart();
}

/** The epoch in the page's address, or else the newest, preferably an open one. */
function defaultEpoch() {
  const query = new URLSearchParams(location.search);
  const [collection, epoch] = [query.get("collection"), Number(query.get("epoch"))];
  const matching = state.epochs.filter((each) => !collection || each.collection === collection);
  const newest = [...(matching.length ? matching : state.epochs)].sort((a, b) => b.opened_at - a.opened_at);
  return matching.find((each) => each.epoch === epoch) ?? newest.find((each) => each.open) ?? newest[0];
}

function fillChooser() {
  setHidden(byId("chooser"), state.epochs.length <= 1);
  const select = selectById("choice");
  const names = state.epochs.map((each) => `${each.collection}, epoch ${each.epoch}${each.open ? "" : " (closed)"}`);
  if (select.dataset.names !== names.join("\n")) {
    select.replaceChildren(...state.epochs.map((each, index) => new Option(names[index], epochPath(each))));
    select.dataset.names = names.join("\n");
  }
  if (state.choice) select.value = epochPath(state.choice);
}

/**
 * List the epochs if the list is old, and choose one if the chosen one is missing.
 * @param {AbortSignal} signal
 */
async function refreshList(signal) {
  if (state.epochs.length && performance.now() - state.listedAt < LIST_SECONDS * 1000) return;
  state.epochs = await requestJson("v1/collections", signal);
  state.listedAt = performance.now();
  const isListed = state.epochs.some((each) => state.choice && epochPath(each) === epochPath(state.choice));
  if (state.epochs.length && !isListed) choose(defaultEpoch());
  fillChooser();
}

// Polling

let polling = new AbortController();
let timer = 0;
let failures = 0;

/** @param {AbortSignal} signal */
async function refresh(signal) {
  await refreshList(signal);
  const { choice, epochs } = state;
  if (!epochs.length || !choice) return showOnly("nothing");
  /** @type {Status} */
  const status = await requestJson(`${epochPath(choice)}/status.json`, signal);
  drawStatus(status);
  await Promise.all([refreshSnippet(choice, epochs, signal), ...views.map((view) => view.refresh(status, signal))]);
  byId("main").setAttribute("aria-busy", "false");
  showOnly("main");
}

async function poll() {
  const { signal } = polling;
  try {
    await refresh(signal);
    failures = 0;
    setConnection("live", "Live");
    byId("connection").title = `Last update ${clockSeconds.format(new Date())}`;
    setHidden(byId("forget"), !token.value);
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof Refusal && error.status === 401) return requireToken();
    fail(error);
  }
  const pause = Math.min(MAX_PAUSE_SECONDS, POLL_SECONDS * 2 ** failures);
  if (!document.hidden) timer = setTimeout(poll, pause * 1000);
}

/** @param {unknown} error */
function fail(error) {
  failures += 1;
  const isRefusal = error instanceof Refusal;
  if (isRefusal && error.status === 404) state.listedAt = -Infinity; // the epoch is gone: list them again
  setConnection("lost", isRefusal ? "Collector error, retrying" : "Connection lost, retrying");
  if (!isRefusal && !(error instanceof LostConnection)) console.error(error);
}

/** Abort what is under way and poll now. */
function restart() {
  polling.abort();
  clearTimeout(timer);
  polling = new AbortController();
  if (!document.hidden) poll();
}

/**
 * @param {string} name
 * @param {string} text
 */
function setConnection(name, text) {
  setAttributes(byId("connection"), { "data-state": name });
  setText(byId("connection-text"), text);
}

/** @param {"gate" | "nothing" | "main"} id */
function showOnly(id) {
  const wasLocked = !byId("gate").hidden;
  for (const other of ["gate", "nothing", "main"]) setHidden(byId(other), other !== id);
  if (wasLocked && id === "main") byId("title").focus();
}

// The admin token

function requireToken() {
  setText(byId("gate-error"), token.value ? "This token is wrong." : "");
  token.value = "";
  setHidden(byId("forget"), true);
  setConnection("locked", "Locked");
  showOnly("gate");
  inputById("token").value = "";
  inputById("token").focus();
}

/** @param {SubmitEvent} event */
function unlock(event) {
  event.preventDefault();
  const entered = inputById("token").value.trim();
  // An HTTP header can carry nothing else, so no token contains it.
  if (!/^[\x20-\x7e]+$/.test(entered)) return setText(byId("gate-error"), "This token is wrong.");
  token.value = entered;
  setConnection("connecting", "Connecting");
  restart();
}

/** Forget the token and everything that was read with it. */
function forget() {
  token.value = "";
  Object.assign(state, { epochs: [], listedAt: -Infinity, choice: null });
  restart();
}

// Controls

let searchTimer = 0;

function controlsChanged() {
  selectById("method").disabled = !inputById("both").checked;
  if (state.choice) addressDownloads(state.choice, estimateQuery());
  restart();
}

function searchChanged() {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(controlsChanged, SEARCH_DELAY_MILLISECONDS);
}

/**
 * The key "/" moves to the search field.
 * @param {KeyboardEvent} event
 */
function shortcut(event) {
  const isTyping = event.target instanceof Element && event.target.closest("input:not([type=radio]), select, textarea");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey && !byId("main").hidden) {
    event.preventDefault();
    byId("search").focus();
  }
}

function listen() {
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("search").addEventListener("input", searchChanged);
  for (const id of ["top", "raw", "both", "method"]) byId(id).addEventListener("change", controlsChanged);
  byId("choice").addEventListener("change", chooseByHand);
  byId("copy").addEventListener("click", copySnippet);
  byId("gate-form").addEventListener("submit", unlock);
  byId("forget").addEventListener("click", forget);
  document.addEventListener("keydown", shortcut);
  document.addEventListener("visibilitychange", restart);
  addEventListener("online", restart);
}

makeLanguages();
makeDownloads();
listen();
poll();
