// The admin token: asked for, kept in this tab, forgotten.

import { byId, setHidden, setText } from "./dom.js";
import { setConnection, showOnly } from "./sections.js";
import { forgetEpochs, keepToken, state } from "./state.js";

export function askForToken() {
  const wasWrong = state.token !== "";
  setToken("");
  setText(byId("gate-error"), wasWrong ? "This token is wrong." : "");
  setConnection("locked", "Locked");
  showOnly("gate");
  byId("token").value = "";
  byId("token").focus();
}

function setToken(token) {
  keepToken(token);
  setHidden(byId("forget"), !token);
}

/** Take the token that was typed in; says whether it is one, right or wrong. */
export function takeToken() {
  const token = byId("token").value.trim();
  // No header can carry anything else, so no token holds it.
  const isToken = /^[\x20-\x7e]+$/.test(token);
  if (isToken) {
    setToken(token);
    setConnection("connecting", "Connecting");
  } else setText(byId("gate-error"), "This token is wrong.");
  return isToken;
}

/** Forget the token, and all that was read with it. */
export function forgetToken() {
  setToken("");
  forgetEpochs();
}
