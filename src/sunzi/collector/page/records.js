// Plans of numbers and of tables: what the page needs to know about them, and what it shows without an estimate.

import { currentView, parameter, setViews } from "./address.js";
import { epochPath, requestJson } from "./api.js";
import { byId, setHidden, setText } from "./dom.js";
import { whyEmpty } from "./histogram.js";

/** @import { ViewName } from "./address.js" */
/** @import { Choice, Domain, RecordPlan, Status } from "./api.js" */

/** @type {Record<string, string>} what the view of each protocol is called */
const TITLES = { ordered: "Distribution", number: "Mean", tables: "Tables" };
const DAYS = "days since 1970-01-01";
const DAY_MILLISECONDS = 86_400_000;

let fingerprint = "";
/** @type {RecordPlan | null} */
let plan = null;

/**
 * The plan of the displayed epoch, if it has this protocol.
 * @param {RecordPlan["protocol"]} protocol
 */
export const planOf = (protocol) => (plan?.protocol === protocol ? plan : null);

/**
 * The views that plans of a protocol have, the default one first.
 * @param {string} protocol
 * @returns {ViewName[]}
 */
function viewsOf(protocol) {
  if (protocol === "prefixes") return ["texts"]; // there is no list of values to estimate
  if (protocol === "number") return ["records"]; // its values are too many to list
  return [...(TITLES[protocol] ? /** @type {const} */ (["records"]) : []), "histogram", "changes", "trend"];
}

/**
 * Fetch the plan if it is for numbers or tables, and offer its views.
 * @param {Status} status
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>} whether it is another plan than before
 */
export async function refreshPlan(status, signal) {
  if (status.plan === fingerprint) return false;
  const title = TITLES[status.protocol];
  plan = title ? await requestJson(`${epochPath(status)}/plan`, signal) : null;
  fingerprint = status.plan;
  setText(byId("records-title"), title ?? "");
  const views = viewsOf(status.protocol);
  setViews(views);
  setHidden(byId("views"), views.length === 1);
  setHidden(byId("distribution"), status.protocol !== "ordered");
  setHidden(byId("measures"), status.protocol === "tables");
  setHidden(byId("tables"), status.protocol !== "tables");
  return true;
}

/**
 * The address of answers, or of another file, about the users that the page shows.
 * @param {Choice} choice
 * @param {string} file
 * @param {[string, string][]} questions
 */
export function questionPath(choice, file, questions) {
  const group = parameter("group");
  const query = new URLSearchParams([...questions, ...(group ? [["group", group]] : [])]);
  return `${epochPath(choice)}/${file}?${query}`;
}

/**
 * The path of what the view of records shows, if it is the current one.
 * @param {(choice: Choice) => string | null} path
 * @returns {(choice: Choice) => string | null}
 */
export const whileShown = (path) => (choice) => (currentView() === "records" ? path(choice) : null);

/**
 * @param {string} what is shown
 * @param {Status} status
 * @param {boolean} hasNegatives
 */
export function showRecords(what, { reports }, hasNegatives) {
  const whose = parameter("group") || `${reports.toLocaleString("en-US")} reports`;
  setText(byId("records-about"), `${what}from ${whose}`);
  setHidden(byId("records-negatives"), !hasNegatives);
  setHidden(byId("records-empty"), true);
  setHidden(byId("records-shown"), false);
}

/**
 * @param {string} message of the collector
 * @param {Status} status
 */
export function drawNoRecords(message, status) {
  const [title, text] = whyEmpty(message, status);
  setText(byId("records-empty-title"), title);
  setText(byId("records-empty-text"), text);
  setText(byId("records-about"), "");
  setHidden(byId("records-shown"), true);
  setHidden(byId("records-empty"), false);
}

/** @param {Domain} domain */
export const isDates = ({ range }) => range?.unit === DAYS;

/**
 * The end of a bin: 0 for the low end of the range, `domain.size` for the high one.
 * @param {Domain} domain
 * @param {number} place
 */
export function edge({ range, size }, place) {
  const [low, high] = [Number(range?.low), Number(range?.high)];
  return Number((low + ((high - low) * place) / size).toPrecision(15));
}

/**
 * A number of the range without its unit, or a date.
 * @param {Domain} domain
 * @param {number} number
 * @param {number} decimals at most
 */
export function rangeText(domain, number, decimals = 10) {
  if (isDates(domain)) return new Date(number * DAY_MILLISECONDS).toISOString().slice(0, 10);
  return number.toLocaleString("en-US", { maximumFractionDigits: decimals }).replace("-", "−");
}

/**
 * @param {Domain} domain
 * @param {number} from
 * @param {number} to
 */
export function binText(domain, from, to) {
  const unit = domain.range?.unit && !isDates(domain) ? ` ${domain.range.unit}` : "";
  return `${rangeText(domain, edge(domain, from))} to ${rangeText(domain, edge(domain, to))}${unit}`;
}
