// The document: find and create elements, update only what changed, show short messages.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const ANNOUNCEMENT_SECONDS = 15;
const TOAST_SECONDS = 8;

/** @param {string} id */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {string} id */
export const inputById = (id) => /** @type {HTMLInputElement} */ (document.getElementById(id));

/** @param {string} id */
export const selectById = (id) => /** @type {HTMLSelectElement} */ (document.getElementById(id));

/**
 * All HTML elements that match a CSS selector.
 * @param {string} selector
 * @returns {NodeListOf<HTMLElement>}
 */
export const all = (selector) => document.querySelectorAll(selector);

/**
 * @param {Element} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * @template {Element} T
 * @param {T} node
 * @param {Record<string, string | number>} attributes
 */
export function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
  }
  return node;
}

/**
 * @param {HTMLElement} node
 * @param {boolean} hidden
 */
export function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {string} className
 */
export function element(name, className, text = "") {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = text;
  return node;
}

/**
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, string | number>} attributes
 */
export function svgElement(name, attributes = {}) {
  return setAttributes(document.createElementNS(SVG_NAMESPACE, name), attributes);
}

/**
 * @param {string} text
 * @param {Record<string, string | number>} attributes
 */
export function svgText(text, attributes) {
  const node = svgElement("text", attributes);
  node.textContent = text;
  return node;
}

/**
 * Replace the options of a select if they differ, and keep its value.
 * @param {HTMLSelectElement} select
 * @param {{ text: string, value: string, isDisabled?: boolean }[]} options
 */
export function setOptions(select, options) {
  const name = JSON.stringify(options);
  if (select.dataset.name === name) return;
  const { value } = select;
  select.dataset.name = name;
  select.replaceChildren(...options.map((each) => {
    return Object.assign(new Option(each.text, each.value), { disabled: each.isDisabled ?? false });
  }));
  select.value = value;
}

let announcedAt = -Infinity;

/**
 * Tell screen readers: at once in response to an action, otherwise at most every few seconds.
 * @param {string} text
 */
export function announce(text, atOnce = false) {
  if (!atOnce && performance.now() - announcedAt < ANNOUNCEMENT_SECONDS * 1000) return;
  if (byId("announcer").textContent === text) return;
  announcedAt = performance.now();
  setText(byId("announcer"), text);
}

let toastTimer = 0;

/**
 * Show a message for a few seconds.
 * @param {string} text
 */
export function showToast(text) {
  setText(byId("toast"), text);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => setText(byId("toast"), ""), TOAST_SECONDS * 1000);
}
