// Elements without markup in strings: whatever comes from data goes in as text.

import { SIGNS } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

const there = (child) => child !== null && child !== undefined && child !== false;

function made(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter(there));
  return element;
}

export const h = (tag, attributes, ...children) => made(document.createElement(tag), attributes, children);

export const svg = (tag, attributes, ...children) =>
  made(document.createElementNS(SVG, tag), attributes, children);

export function fill(id, ...children) {
  byId(id).replaceChildren(...children.flat(Infinity).filter(there));
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

// An answer: its sign, its word, its colour.
export const pill = (answer) =>
  h("span", { class: `pill ${answer ?? "undecided"}` }, h("i", { "aria-hidden": "true" }, SIGNS[answer] ?? "–"), answer ?? "undecided");

// A bar whose parts are as long as their numbers.
export function shares(sums, signs) {
  return Object.entries(sums).filter(([, number]) => number).map(([answer, number]) => {
    const part = h("span", { class: answer === "undecided" ? "" : answer }, signs ? SIGNS[answer] : null);
    part.style.flex = `${number} 0 0`;
    return part;
  });
}

export const styled = (element, styles) => {
  for (const [name, value] of Object.entries(styles)) element.style.setProperty(name, value);
  return element;
};

// Says beside a field what is wrong with its value; the sentence is the reason that assistive tools read.
export function mark(input, sentence, place = input.getAttribute("aria-describedby")) {
  if (sentence) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
  tell(place, sentence);
  return !sentence;
}
