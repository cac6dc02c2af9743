// The live page: asks the collector every two seconds how many reports an epoch holds and, when they are more than
// before, draws its histogram, its reports over time and its health. It talks to its own origin alone.
//
// Every figure here comes from the collector; the page counts and estimates nothing. Text of others (labels, messages)
// is only ever set as text, never as markup.

import { byId } from "./dom.js";
import { addressTwins, makeTwins } from "./downloads.js";
import { chooseByHand } from "./epochs.js";
import { poll, restart } from "./polling.js";
import { copySnippet, makeLanguages } from "./snippet.js";
import { forgetToken, takeToken } from "./token.js";

let searchTimer = 0;

function controlsChanged() {
  byId("method").disabled = !byId("beside").checked;
  addressTwins();
  restart();
}

function searchChanged() {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(controlsChanged, 250);
}

function epochPicked() {
  chooseByHand();
  restart();
}

function unlock(event) {
  event.preventDefault();
  if (takeToken()) restart();
}

function forget() {
  forgetToken();
  restart();
}

function shortcut(event) {
  const typing = event.target.closest?.("input:not([type=radio]), select, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey && !byId("main").hidden) {
    event.preventDefault();
    byId("search").focus();
  }
}

function listen() {
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("search").addEventListener("input", searchChanged);
  for (const id of ["top", "raw", "beside", "method"]) byId(id).addEventListener("change", controlsChanged);
  byId("choice").addEventListener("change", epochPicked);
  byId("copy").addEventListener("click", copySnippet);
  byId("gate-form").addEventListener("submit", unlock);
  byId("forget").addEventListener("click", forget);
  document.addEventListener("keydown", shortcut);
  document.addEventListener("visibilitychange", restart);
  addEventListener("online", restart);
}

makeLanguages();
makeTwins();
listen();
poll();
