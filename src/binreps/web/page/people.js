// Everyone in the data: by name where there are names, cell by cell where there are none. Sorted by a press on a
// column's head; a row opens what explains its answer.

import { ANSWERS, decide } from "./decide.js";
import { byId, fill, h, pill, styled } from "./dom.js";
import { SIGNS, chance, count, names, plural } from "./words.js";

const ROWS = 200; // of the list at once
const ORDER = { negative: 0, positive: 1, inconclusive: 2 };
const COLUMNS = {
  name: { title: "Individual", value: (one) => one.name, first: "ascending" },
  tests: { title: "Tests", value: (one) => one.s / one.n + 1e-6 * one.n, first: "descending" },
  score: { title: "Chance positive", value: (one) => one.score ?? -1, first: "descending" },
  answer: { title: "Answer", value: (one) => ORDER[one.answer] ?? 3, first: "descending" },
};

// Everyone of one population with a score; `cell` is the place in the data's cells.
export function everyone(data, fit, population) {
  const { cells, individuals } = data;
  const own = (i) => population === null || cells.population[i] === population;
  const entry = (name, i, weight) => ({
    name, weight, cell: i, n: cells.n[i], s: cells.s[i], score: fit.scores.score[i], lower: fit.scores.lower[i], upper: fit.scores.upper[i],
  });
  if (individuals) return individuals.name.map((name, j) => entry(name, individuals.cell[j], 1)).filter((one) => own(one.cell));
  return cells.n.map((_, i) => entry(plural(cells.weight[i], "individual"), i, cells.weight[i])).filter((one) => own(one.cell));
}

const dots = ({ n, s }) => (n <= 12 ? "●".repeat(s) + "○".repeat(n - s) : "");

// `explain(person)` gives an element that explains one of them.
export function peopleTable(explain, onChange) {
  const state = { only: "", sort: "answer", up: false, open: null, detail: null };
  let shownNow = [];

  function show(people, best, named) {
    const search = byId("search").value.trim().toLowerCase();
    const sums = { negative: 0, inconclusive: 0, positive: 0 };
    const found = [];
    for (const one of people) {
      one.answer = decide(one.score, best);
      sums[one.answer ?? "undecided"] = (sums[one.answer ?? "undecided"] ?? 0) + one.weight;
      if ((!state.only || one.answer === state.only) && one.name.toLowerCase().includes(search)) found.push(one);
    }
    buttons(sums);
    sorted(found);
    shownNow = found.slice(0, ROWS);
    fill("people", head(), h("tbody", {}, shownNow.flatMap(row)));
    reach(byId("people").querySelector("[aria-expanded=true]") ?? byId("people").querySelector("tr.person button"));
    tellCount(found.length, people.length, search, named);
    const open = people.filter((one) => one.answer === "inconclusive").map((one) => one.name);
    byId("print-people").textContent = open.length ? `Inconclusive, and in need of another test: ${names(open, 200)}.` : "Nobody is inconclusive.";
  }

  function buttons(sums) {
    const all = Object.values(sums).reduce((sum, number) => sum + number, 0);
    const each = [["", `All ${count(all)}`], ...[...ANSWERS].reverse().map((answer) => [answer, `${SIGNS[answer]} ${answer} ${count(sums[answer])}`])];
    const old = byId("only").contains(document.activeElement) ? document.activeElement.dataset.only : null;
    fill("only", each.map(([only, text]) => h("button", { type: "button", "data-only": only, "aria-pressed": String(state.only === only),
      onclick: () => { state.only = only; onChange(); } }, text)));
    if (old !== null) byId("only").querySelector(`[data-only="${old}"]`).focus();
  }

  function sorted(found) {
    const { value } = COLUMNS[state.sort];
    const sign = state.up ? 1 : -1;
    const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
    found.sort((a, b) => sign * compare(value(a), value(b)) || a.name.localeCompare(b.name, "en", { numeric: true }));
  }

  function head() {
    return h("thead", {}, h("tr", {}, Object.entries(COLUMNS).map(([id, { title, first }]) => {
      const here = state.sort === id;
      const press = () => {
        state.up = here ? !state.up : first === "ascending";
        state.sort = id;
        onChange();
        byId("people").querySelector(`th[data-column=${id}] button`).focus();
      };
      return h("th", { scope: "col", "data-column": id, "aria-sort": here ? (state.up ? "ascending" : "descending") : null },
        h("button", { type: "button", onclick: press }, title));
    })));
  }

  function row(one) {
    const open = state.open === one.name;
    const toggle = () => {
      state.open = open ? null : one.name;
      state.detail = open ? null : explain(one);
      onChange();
      [...byId("people").querySelectorAll("tr.person button")].find((button) => button.textContent === one.name)?.focus();
    };
    const line = h("tr", { class: "person", onclick: toggle },
      h("td", {}, h("button", { type: "button", tabindex: -1, "aria-expanded": String(open) }, one.name)),
      h("td", {}, h("span", { class: "dots", "aria-hidden": "true" }, dots(one)), " ", h("span", { class: one.n <= 12 ? "small quiet" : "" }, `${one.s} of ${one.n}`)),
      h("td", {}, h("span", { class: "bar-chance", "aria-hidden": "true" }, styled(h("i"), { width: `${100 * (one.score ?? 0)}%` })), chance(one.score)),
      h("td", {}, pill(one.answer)));
    return open ? [line, h("tr", { class: "detail" }, h("td", { colspan: 4 }, state.detail))] : [line];
  }

  // One stop of the Tab key for the whole list; arrow keys go from row to row.
  function reach(button) {
    for (const other of byId("people").querySelectorAll("tr.person button[tabindex='0']")) other.tabIndex = -1;
    if (button) button.tabIndex = 0;
  }

  function step(event) {
    const away = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!away || !event.target.matches("tr.person button")) return;
    const all = [...byId("people").querySelectorAll("tr.person button")];
    const next = all[all.indexOf(event.target) + away];
    if (!next) return;
    event.preventDefault();
    reach(next);
    next.focus();
  }

  function tellCount(found, all, search, named) {
    const more = found > ROWS ? `The first ${ROWS} of ${count(found)} are shown; the answers as CSV have them all.` : "";
    byId("people-count").replaceChildren(...(found || !all ? [more] : [
      `No individual matches${search ? ` “${search}”` : ""}${state.only ? `, and only ${state.only} ones are shown` : ""}. `,
      h("button", { type: "button", class: "link", onclick: () => { byId("search").value = ""; state.only = ""; onChange(); } }, `Show all ${count(all)}`)]));
    if (!named && found) byId("people-count").append(" One row for each result, as the data have no names.");
  }

  byId("search").addEventListener("input", onChange);
  byId("people").addEventListener("keydown", step);
  return {
    show,
    close: () => { state.open = null; state.only = ""; byId("search").value = ""; },
    again: () => { // the costs or the fit have changed
      const one = shownNow.find((person) => person.name === state.open);
      if (one) explain(one, state.detail);
    },
  };
}
