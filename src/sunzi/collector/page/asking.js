// Asking the API: the addresses of what there is, and answers to them. Everything lies below the page's own address.

import { byId } from "./dom.js";
import { state } from "./state.js";

export const BASE = new URL(".", location.href);

export const epochPath = ({ collection, epoch }) => `v1/collections/${collection}/epochs/${epoch}`;

/** What the controls ask of the histogram. */
export function estimateQuery() {
  const query = new URLSearchParams({ top: byId("top").value });
  if (byId("search").value) query.set("search", byId("search").value);
  if (byId("beside").checked) query.set("postprocess", byId("method").value);
  return query;
}

/** The collector answered, but not with what was asked for. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Nobody answered. */
export class LostConnection extends Error {}

/** An answer with content; the token goes with every question. Throws a Refusal or a LostConnection. */
export async function ask(path, signal) {
  const headers = state.token ? { Authorization: `Bearer ${state.token}` } : {};
  const options = { headers, signal, cache: "no-store", credentials: "omit" };
  const answer = await fetch(new URL(path, BASE), options).catch((error) => {
    throw signal?.aborted ? error : new LostConnection();
  });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Refusal(answer.status, said.message ?? `the collector answered ${answer.status}`);
}

export const askJson = async (path, signal) => (await ask(path, signal)).json();
