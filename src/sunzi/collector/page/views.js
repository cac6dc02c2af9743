// What is drawn of the chosen epoch, each from an answer of its own.

import { Refusal, askJson, epochPath, estimateQuery } from "./asking.js";
import { drawHealth, drawNoHealth } from "./health.js";
import { drawHistogram, drawWaitingHistogram } from "./histogram.js";
import { drawProgress } from "./progress.js";
import { state } from "./state.js";

// A view is asked for again only after so many times what its last answer took: a slow one cannot busy the collector.
const REST_FACTOR = 10;

/** Something that is drawn from one answer of the API, and asked for again when that has changed. */
class View {
  constructor(path, draw, drawNothing, movesWithTime = false) {
    Object.assign(this, { path, draw, drawNothing, movesWithTime });
    Object.assign(this, { key: "", address: "", askedAt: -Infinity, took: 0, answer: null });
  }

  async refresh(status, signal) {
    const address = `${epochPath(status)}/${this.path()}`;
    const key = `${address} ${status.reports} ${status.open}`;
    const rested = performance.now() - this.askedAt >= REST_FACTOR * this.took;
    const isDue = key !== this.key && (rested || this.address !== address);
    if (isDue) await this.ask(address, key, signal);
    if (this.answer && (isDue || this.movesWithTime)) this.draw(this.answer, status, this.address);
  }

  async ask(address, key, signal) {
    const begun = performance.now();
    try {
      this.answer = await askJson(address, signal);
    } catch (error) {
      if (!(error instanceof Refusal) || [401, 404, 503].includes(error.status)) throw error;
      this.answer = null;
      this.drawNothing(error.message, state.status);
    }
    Object.assign(this, { key, address, askedAt: performance.now(), took: performance.now() - begun });
  }
}

export const views = [
  new View(() => `estimate.json?${estimateQuery()}`, drawHistogram, drawWaitingHistogram),
  new View(() => "progress.json", drawProgress, () => {}, true),
  new View(() => "health.json", drawHealth, () => drawNoHealth("Nothing to check before the first reports.")),
];
