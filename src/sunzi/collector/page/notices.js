// Short messages: spoken to those who do not see, or shown for a moment.

import { byId, setText } from "./dom.js";

const ANNOUNCE_SECONDS = 15;

/** Speak to those who do not see: at once if it answers an action, else at most once in a while. */
export const announcer = {
  spokenAt: -Infinity,
  say(text, atOnce = false) {
    if (!atOnce && performance.now() - this.spokenAt < ANNOUNCE_SECONDS * 1000) return;
    if (byId("announcer").textContent === text) return;
    this.spokenAt = performance.now();
    setText(byId("announcer"), text);
  },
};

let toastTimer = 0;
export function showToast(text) {
  setText(byId("toast"), text);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => setText(byId("toast"), ""), 8000);
}
