/* Elements from code, and a view that follows its description without losing focus. */

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "selected"]);

const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A text of others with question marks for control characters and for what turns the direction of writing; anything else as it is. */
export function legible(text) {
  return typeof text === "string" ? text.replace(OBEYED, "?") : text;
}

/**
 * Make an element. `on` holds its listeners, `vars` its custom CSS properties; other keys are attributes.
 * Texts are never read as markup.
 */
export function h(tag, given = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const node = name === "svg" || name === "path" ? document.createElementNS(SVG, name) : document.createElement(name || "div");
  const { on, vars, ...attributes } = given;
  if (classes.length) node.setAttribute("class", classes.join(" "));
  node.listeners = on ?? {};
  node.vars = vars ?? {};
  node.wanted = {};
  for (const [key, value] of Object.entries(attributes)) setAttribute(node, key, value);
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false).map(legible));
  follow(node, node);
  return node;
}

function setAttribute(node, key, value) {
  if (PROPERTIES.has(key)) {
    node.wanted[key] = value ?? (key === "value" ? "" : false);
    return;
  }
  if (value === null || value === undefined || value === false) return;
  if (key === "class") node.setAttribute("class", [node.getAttribute("class"), value].filter(Boolean).join(" "));
  else node.setAttribute(key, value === true ? "" : value);
}

/** Take over listeners, CSS variables and properties of the description `next`. */
function follow(node, next) {
  for (const name of Object.keys(node.listeners ?? {})) if (!(name in next.listeners)) node[`on${name}`] = null;
  for (const [name, listener] of Object.entries(next.listeners)) node[`on${name}`] = listener;
  for (const name of Object.keys(node.vars)) if (!(name in next.vars)) node.style.removeProperty(name);
  for (const [name, value] of Object.entries(next.vars)) node.style.setProperty(name, value);
  for (const [name, value] of Object.entries(next.wanted)) {
    const typing = name === "value" && node === document.activeElement && node.dataset.draft !== undefined;
    if (!typing && node[name] !== value) node[name] = value;
  }
  node.listeners = next.listeners;
  node.vars = next.vars;
  node.wanted = next.wanted;
}

/** Make the children of `place` look like `wanted`, keeping every element that is still there. */
export function show(place, ...wanted) {
  const next = wanted.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  match(place, next.map((child) => (child instanceof Node ? child : document.createTextNode(legible(child)))));
}

function match(place, next) {
  const keyed = new Map([...place.children].filter((child) => child.dataset?.key).map((child) => [child.dataset.key, child]));
  let at = place.firstChild;
  for (const child of next) {
    const key = child.dataset?.key;
    const old = key ? keyed.get(key) : at;
    if (old && isAlike(old, child)) {
      if (old === at) at = at.nextSibling;
      else place.insertBefore(old, at);
      become(old, child);
    } else place.insertBefore(child, at);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

function isAlike(old, next) {
  return old.nodeType === next.nodeType && old.nodeName === next.nodeName && old.dataset?.key === next.dataset?.key && old.type === next.type;
}

function become(old, next) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    const isOwn = name === "style" || (name === "open" && old.nodeName === "DETAILS");
    if (!isOwn && !next.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  match(old, [...next.childNodes]);
  follow(old, next);
}
