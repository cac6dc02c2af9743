// The facts at the top, and the tick that says whether reports arrive.

import { epochPath } from "./asking.js";
import { byId, setAttributes, setText } from "./dom.js";
import { announcer } from "./notices.js";
import { atSecond, counted, dayAndClock, epsilonInShort, epsilonInWords, whole } from "./numbers.js";
import { state } from "./state.js";

export function drawStatus(status) {
  setText(byId("collection"), status.collection);
  setText(byId("epoch"), `epoch ${status.epoch}`);
  document.title = `${status.collection}: ${counted(status.reports, "report")}`;
  setAttributes(byId("state"), { "data-state": status.open ? "open" : "closed" });
  const closing = status.open ? "" : ` ${atSecond(dayAndClock, status.closed_at)}`;
  setText(byId("state"), status.open ? "Open: takes reports" : `Closed${closing}: takes no reports any more`);
  setText(byId("reports"), whole(status.reports));
  setText(byId("since"), `since ${atSecond(dayAndClock, status.opened_at)}`);
  setText(byId("epsilon"), epsilonInShort(status.epsilon));
  setText(byId("epsilon-words"), epsilonInWords(status.epsilon));
  setText(byId("values"), whole(status.domain_size));
  const bits = Number(status.report_bits.toFixed(1)).toLocaleString("en-US");
  const onAverage = status.report_bits % 1 ? " on average" : "";
  setText(byId("protocol"), `protocol ${status.protocol}, ${bits} bits a report${onAverage}`);
  drawTick(status);
  announcer.say(counted(status.reports, "report"));
}

function drawTick({ open, reports }) {
  const texts = {
    waiting: "Waiting for the first report",
    arrived: open ? `${counted(reports, "report")} arrived` : `Closed with ${counted(reports, "report")}`,
    closed: "Closed without a report",
  };
  const now = reports > 0 ? "arrived" : open ? "waiting" : "closed";
  const tick = byId("tick");
  if (tick.dataset.state === "waiting" && now === "arrived" && tick.dataset.epoch === epochPath(state.chosen)) {
    announcer.say("The first report has arrived.", true);
  }
  setAttributes(tick, { "data-state": now, "data-epoch": epochPath(state.chosen) });
  setText(byId("tick-text"), texts[now]);
}
