// Which epochs there are, and which one is looked at.

import { askJson, epochPath } from "./asking.js";
import { byId, setHidden } from "./dom.js";
import { addressTwins } from "./downloads.js";
import { state } from "./state.js";

const LIST_SECONDS = 20;

function fillChooser() {
  const several = state.epochs.length > 1;
  setHidden(byId("chooser"), !several);
  const choice = byId("choice");
  const described = (epoch) => `${epoch.collection}, epoch ${epoch.epoch}${epoch.open ? "" : " (closed)"}`;
  const wanted = state.epochs.map(described).join("\n");
  if (choice.dataset.holds !== wanted) {
    choice.replaceChildren(...state.epochs.map((epoch) => new Option(described(epoch), epochPath(epoch))));
    choice.dataset.holds = wanted;
  }
  if (state.chosen) choice.value = epochPath(state.chosen);
}

function wantedEpoch() {
  const query = new URLSearchParams(location.search);
  const [collection, epoch] = [query.get("collection"), Number(query.get("epoch"))];
  const among = state.epochs.filter((each) => !collection || each.collection === collection);
  const newest = [...(among.length ? among : state.epochs)].sort((a, b) => b.opened_at - a.opened_at);
  return among.find((each) => each.epoch === epoch) ?? newest.find((each) => each.open) ?? newest[0];
}

function choose(epoch) {
  state.chosen = { collection: epoch.collection, epoch: epoch.epoch };
  // Whoever has yet to send a report sees how; it never opens or closes by itself after that.
  byId("client").open = epoch.open && epoch.reports === 0;
  byId("main").setAttribute("aria-busy", "true"); // until everything on it is this epoch's
  addressTwins();
}

/** Look at the epoch that was picked, and keep it in the address. */
export function chooseByHand() {
  const epoch = state.epochs.find((each) => epochPath(each) === byId("choice").value);
  history.replaceState(null, "", `?${new URLSearchParams({ collection: epoch.collection, epoch: epoch.epoch })}`);
  choose(epoch);
}

/** List the epochs again if that was long ago, and choose one if none is chosen or the chosen one is gone. */
export async function refreshList(signal) {
  if (state.epochs.length && performance.now() - state.listedAt < LIST_SECONDS * 1000) return;
  state.epochs = await askJson("v1/collections", signal);
  state.listedAt = performance.now();
  const isThere = state.epochs.some((each) => state.chosen && epochPath(each) === epochPath(state.chosen));
  if (state.epochs.length && !isThere) choose(wantedEpoch());
  fillChooser();
}
