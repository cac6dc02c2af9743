// The page's address determines what the page shows, so every view has a permalink and the back button works.

/** @typedef {"records" | "texts" | "histogram" | "changes" | "trend"} ViewName */

/** @type {ViewName[]} */
export const VIEWS = ["records", "texts", "histogram", "changes", "trend"];

/** @type {ViewName[]} the views that the plan has, the default one first */
let offered = ["histogram", "changes", "trend"];

/** @param {string} name */
export const parameter = (name) => new URLSearchParams(location.search).get(name) ?? "";

/** The values that are selected, for their sum and their trend. */
export const selectedValues = () => new URLSearchParams(location.search).getAll("value");

/** @param {ViewName[]} names the default one first */
export function setViews(names) {
  offered = names;
}

/** @param {ViewName} name */
export const isOffered = (name) => offered.includes(name);

/** @returns {ViewName} */
export const defaultView = () => offered[0];

/** @returns {ViewName} */
export function currentView() {
  return offered.find((name) => name === parameter("view")) ?? defaultView();
}

/**
 * Change parameters of the address; an empty one is removed.
 * @param {Record<string, string | string[]>} changes
 * @param {boolean} isStep whether the back button returns to the address before
 */
export function setParameters(changes, isStep) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const each of [value].flat()) if (each) query.append(name, each);
  }
  const address = query.size ? `?${query}` : location.pathname;
  if (address === (location.search || location.pathname)) return;
  if (isStep) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
