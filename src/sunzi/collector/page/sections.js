// Which section of the page is shown, and how the connection fares.

import { byId, setAttributes, setHidden, setText } from "./dom.js";

export function showOnly(id) {
  const wasLocked = !byId("gate").hidden;
  for (const other of ["gate", "nothing", "main"]) setHidden(byId(other), other !== id);
  if (wasLocked && id === "main") byId("title").focus();
}

export function setConnection(now, text) {
  setAttributes(byId("connection"), { "data-state": now });
  setText(byId("connection-text"), text);
}
