// What readers of an epoch's published results can learn: the guarantee of the batch, or why there is none.

import { byId, element, setHidden, setText } from "./dom.js";

/** @import { Guarantee } from "./api.js" */

/** @param {Guarantee} answer */
export function drawGuarantee({ batch_guarantee: found, no_batch_guarantee: reason, facts }) {
  setText(byId("readers-text"), found ? found.meaning : `No guarantee is claimed for readers: ${reason}.`);
  setHidden(byId("readers-details"), !found);
  if (!found) return;
  byId("readers-facts").replaceChildren(...facts.flatMap(({ name, text }) => {
    return [element("dt", "", name), element("dd", "", text)];
  }));
  byId("readers-conditions").replaceChildren(...found.conditions.map((text) => element("li", "", text)));
}

/** @param {string} message of the collector */
export function drawNoGuarantee(message) {
  drawGuarantee({ batch_guarantee: null, no_batch_guarantee: message, facts: [] });
}
