// The document: finding and making its parts, and changing only what changed.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
  return node;
}

export function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

export function element(name, className, text = "") {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = text;
  return node;
}

export const svgElement = (name, attributes = {}) => setAttributes(document.createElementNS(SVG, name), attributes);

export function svgText(text, attributes) {
  const node = svgElement("text", attributes);
  node.textContent = text;
  return node;
}
