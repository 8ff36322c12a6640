// Elements without markup in strings: whatever comes from data goes in as text.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

function made(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const h = (tag, attributes, ...children) => made(document.createElement(tag), attributes, children);

export const svg = (tag, attributes, ...children) =>
  made(document.createElementNS(SVG, tag), attributes, children);

export function fill(id, ...children) {
  byId(id).replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

// A table from rows of objects; `columns` maps a key to its title, `shown` a value to text or an element.
export function fillTable(id, rows, columns, shown = (value) => value) {
  const names = Object.keys(columns);
  fill(
    id,
    h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, columns[name])))),
    h("tbody", {}, rows.map((row) => h("tr", {}, names.map((name) => h("td", {}, shown(row[name], name, row)))))),
  );
}

export function tell(id, sentence) {
  const place = byId(id);
  place.textContent = sentence ?? "";
  place.hidden = !sentence;
}
