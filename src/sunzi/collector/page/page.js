// The live page. Every two seconds it polls the status of one epoch; when that changed, it redraws the histogram, the
// timeline and the health. It sends requests to its own origin only.
//
// All figures come from the collector; the page estimates nothing. Labels and messages are inserted as text, never as
// markup.

import { VIEWS, currentView, defaultView, isOffered, parameter, selectedValues, setParameters } from "./address.js";
import { LostConnection, Refusal, View, addressDownloads, epochPath, makeDownloads, requestJson, token }
  from "./api.js";
import { differencePath, drawChanges, drawNoChanges, incomparable } from "./changes.js";
import { drawHealth, drawNoHealth, drawStatus, drawTimeline } from "./collection.js";
import { distributionPath, distributionViews, listenToRange, showRange } from "./distribution.js";
import { all, byId, inputById, selectById, setAttributes, setHidden, setOptions, setText } from "./dom.js";
import { atSecond, clockSeconds, counted, dayAndClock, whole } from "./format.js";
import { drawGuarantee, drawNoGuarantee } from "./guarantee.js";
import { drawHistogram, drawNoHistogram, drawNoSum, drawSelection, drawSum, estimateQuery, sumPath }
  from "./histogram.js";
import { refreshPlan } from "./records.js";
import { copySnippet, makeLanguages, refreshSnippet } from "./snippets.js";
import { showTable, tablePath, tableViews } from "./tables.js";
import { textsPath, textsView } from "./texts.js";
import { drawNoTrend, drawTrend, trendPath } from "./trend.js";

/** @import { ViewName } from "./address.js" */
/** @import { Choice, Group, Status } from "./api.js" */

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
  /** @type {Group[]} the public groups of the chosen epoch */
  groups: [],
};

/**
 * The path of what a view shows, if it is the current one.
 * @param {ViewName} name
 * @param {(status: Status) => string | null} path
 * @returns {(status: Status) => string | null}
 */
const during = (name, path) => (status) => (currentView() === name ? path(status) : null);

const views = [
  new View((status) => `${epochPath(status)}/groups.json`, fillGroups, () => {}),
  new View(during("histogram", (status) => estimatePath(status)), drawHistogram, drawNoHistogram),
  new View(during("histogram", (status) => sumPath(status)), drawSum, drawNoSum),
  new View(during("changes", (status) => differencePath(status)), drawChanges, drawNoChanges),
  new View(during("trend", (status) => trendPath(status)), drawTrend, drawNoTrend),
  textsView,
  ...distributionViews,
  ...tableViews,
  new View((status) => `${epochPath(status)}/guarantee.json`, drawGuarantee, drawNoGuarantee),
  new View((status) => `${epochPath(status)}/progress.json`, drawTimeline, () => {}, true),
  new View((status) => `${epochPath(status)}/health.json`, drawHealth, drawNoHealth),
];

// What is shown

/** @param {Choice} choice */
const estimatePath = (choice, form = "json") => `${epochPath(choice)}/estimate.${form}?${estimateQuery()}`;

/**
 * The path of a file that has what is shown; null if there is none.
 * @param {Choice} choice
 * @param {string} file
 */
function filePath(choice, file) {
  const [kind, form] = file.split(".");
  if (kind === "records") return recordsPath(choice, form);
  if (kind === "discover") return textsPath(choice, form);
  if (kind === "sum") return sumPath(choice, form);
  if (kind === "difference") return differencePath(choice, form);
  if (kind === "trend") return trendPath(choice, form);
  const query = estimateQuery();
  if (file === "estimate.png" && (query.has("search") || query.has("postprocess"))) return null;
  if (file === "tally") return `${epochPath(choice)}/tally${query.has("group") ? `?group=${query.get("group")}` : ""}`;
  return `${epochPath(choice)}/${file}${kind === "estimate" ? `?${query}` : ""}`;
}

/**
 * @param {Choice} choice
 * @param {string} form
 */
function recordsPath(choice, form) {
  const table = tablePath(choice, form);
  if (table || form !== "png") return table ?? distributionPath(choice, `answers.${form}`, true);
  return isOffered("histogram") ? estimatePath(choice, "png") : null; // a mean has no picture
}

/** Synchronise controls, panels and downloads with the page's address. */
function showAddress() {
  const view = currentView();
  for (const name of VIEWS) {
    inputById(`view-${name}`).checked = name === view;
    for (const node of all(`#view-${name}, [for=view-${name}]`)) setHidden(node, !isOffered(name));
  }
  setHidden(byId("controls"), view === "records" || view === "texts");
  for (const panel of all("[data-panel]")) setHidden(panel, panel.dataset.panel !== view);
  if (document.activeElement !== byId("search")) inputById("search").value = parameter("search");
  selectById("top").value = parameter("top") || "20";
  const method = parameter("postprocess");
  inputById(method ? "both" : "raw").checked = true;
  if (method) selectById("method").value = method;
  selectById("method").disabled = !method;
  selectById("limit").value = parameter("verdict") || "any";
  selectById("sort").value = parameter("sort") || "frequent";
  drawSelection();
  showRange();
  showTable();
  setHidden(byId("sum"), !selectedValues().length);
  if (!state.choice) return;
  fillComparison(state.choice, view);
  const { choice } = state;
  const name = [choice.collection, choice.epoch, parameter("group")].filter(Boolean).join("-");
  addressDownloads((file) => filePath(choice, file), name);
}

/** @param {Group[]} groups */
function fillGroups(groups) {
  state.groups = groups;
  const options = groups.map(({ group, reports, published }) => {
    return { text: `${group} (${whole(reports)})`, value: group, isDisabled: !published };
  });
  for (const [id, name] of [["group", "group"], ["before-group", "before_group"]]) {
    setOptions(selectById(id), [{ text: "all users", value: "" }, ...options]);
    selectById(id).value = parameter(name);
  }
  setHidden(byId("group-chooser"), !groups.length);
  showAddress();
}

/**
 * The epochs to compare with, by default the previous one.
 * @param {Choice} choice
 * @param {ViewName} view
 */
function fillComparison(choice, view) {
  const hasGroups = state.groups.length > 0;
  const others = state.epochs.filter(({ collection, epoch }) => {
    return collection === choice.collection && (hasGroups || epoch !== choice.epoch);
  });
  const before = others.find(({ epoch, reports }) => epoch < choice.epoch && reports > 0) ?? others[0];
  setOptions(selectById("before"), others.map((each) => ({ text: describe(each), value: String(each.epoch) })));
  const wanted = others.find(({ epoch }) => String(epoch) === parameter("before")) ?? before;
  selectById("before").value = wanted ? String(wanted.epoch) : "";
  setHidden(byId("before-group-control"), view !== "changes" || !hasGroups);
  const reason = incomparable(choice);
  if (reason) drawNoChanges(reason);
}

/** @param {Status} epoch */
function describe({ epoch, open, reports, opened_at: opened }) {
  return `epoch ${epoch}, ${atSecond(dayAndClock, opened)}, ${counted(reports, "report")}${open ? "" : ", closed"}`;
}

/**
 * Show another address.
 * @param {Record<string, string | string[]>} changes
 * @param {boolean} isStep whether the back button returns
 */
function goTo(changes, isStep) {
  setParameters(changes, isStep);
  if (isStep) byId("main").setAttribute("aria-busy", "true"); // until the new view is drawn
  showAddress();
  restart();
}

// Choosing an epoch

/** @param {Status} epoch */
function choose(epoch) {
  state.choice = { collection: epoch.collection, epoch: epoch.epoch };
  // Open until the first report arrives; after that, only the user opens or closes it.
  /** @type {HTMLDetailsElement} */ (byId("client")).open = epoch.open && epoch.reports === 0;
  byId("main").setAttribute("aria-busy", "true"); // until everything on it belongs to this epoch
  showAddress();
}

function chooseByHand() {
  const epoch = state.epochs.find((each) => epochPath(each) === selectById("choice").value);
  if (!epoch) return;
  const { collection } = epoch;
  const none = { group: "", before_group: "", value: [], search: "", range: "", table: "" };
  const others = collection === state.choice?.collection ? {} : none;
  setParameters({ collection, epoch: String(epoch.epoch), before: "", ...others }, true);
  choose(epoch);
  restart();
}

/** Show what the address specifies, after the back button or a link has changed it. */
function addressChanged() {
  const epoch = state.epochs.length ? defaultEpoch() : null;
  if (epoch && state.choice && epochPath(epoch) !== epochPath(state.choice)) choose(epoch);
  fillChooser();
  showAddress();
  for (const [id, name] of [["group", "group"], ["before-group", "before_group"]]) selectById(id).value = parameter(name);
  restart();
}

/** The epoch in the page's address, or else the newest, preferably an open one. */
function defaultEpoch() {
  const [collection, epoch] = [parameter("collection"), Number(parameter("epoch"))];
  const matching = state.epochs.filter((each) => !collection || each.collection === collection);
  const newest = [...(matching.length ? matching : state.epochs)].sort((a, b) => b.opened_at - a.opened_at);
  return matching.find((each) => each.epoch === epoch) ?? newest.find((each) => each.open) ?? newest[0];
}

function fillChooser() {
  setHidden(byId("chooser"), state.epochs.length <= 1);
  const options = state.epochs.map((each) => ({ text: `${each.collection}, ${describe(each)}`, value: epochPath(each) }));
  setOptions(selectById("choice"), options);
  if (state.choice) selectById("choice").value = epochPath(state.choice);
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
  showAddress();
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
  if (await refreshPlan(status, signal)) showAddress();
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

/** Abort requests in progress and poll now. */
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
  // HTTP headers allow no other characters, so no token contains them.
  if (!/^[\x20-\x7e]+$/.test(entered)) return setText(byId("gate-error"), "This token is wrong.");
  token.value = entered;
  setConnection("connecting", "Connecting");
  restart();
}

/** Forget the token and everything that was read with it. */
function forget() {
  token.value = "";
  Object.assign(state, { epochs: [], listedAt: -Infinity, choice: null, groups: [] });
  restart();
}

// Controls

let searchTimer = 0;

function controlsChanged() {
  const top = selectById("top").value;
  goTo({
    top: top === "20" ? "" : top,
    search: inputById("search").value,
    postprocess: inputById("both").checked ? selectById("method").value : "",
    verdict: selectById("limit").value === "any" ? "" : selectById("limit").value,
    sort: selectById("sort").value === "frequent" ? "" : selectById("sort").value,
  }, false);
}

function searchChanged() {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(controlsChanged, SEARCH_DELAY_MILLISECONDS);
}

/**
 * Add a value to the sum, or remove it.
 * @param {Event} event
 */
function valuePicked({ target }) {
  if (!(target instanceof HTMLInputElement) || !target.matches(".pick")) return;
  const value = target.dataset.value ?? "";
  const others = selectedValues().filter((each) => each !== value);
  goTo({ value: target.checked ? [...others, value] : others }, false);
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
  for (const id of ["top", "raw", "both", "method", "limit", "sort"]) {
    byId(id).addEventListener("change", controlsChanged);
  }
  for (const view of VIEWS) {
    byId(`view-${view}`).addEventListener("change", () => goTo({ view: view === defaultView() ? "" : view }, true));
  }
  for (const id of ["group", "before", "before-group", "table", "given"]) {
    byId(id).addEventListener("change", () => goTo({ [id.replace("-", "_")]: selectById(id).value }, true));
  }
  listenToRange(goTo);
  byId("body").addEventListener("change", valuePicked);
  byId("clear").addEventListener("click", () => goTo({ value: [] }, false));
  addEventListener("popstate", addressChanged);
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
showAddress();
poll();
