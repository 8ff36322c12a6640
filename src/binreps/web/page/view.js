// What a fit and the costs look like. Nothing is computed here but decisions.

import { decide, totals } from "./decide.js";
import { rateCurves, riskLines } from "./draw.js";
import { byId, fill, fillTable, h } from "./dom.js";
import { chance, count, percent, plural } from "./words.js";

const ROWS = 200; // of the list at once
const SIGNS = { negative: "−", inconclusive: "?", positive: "+" };

export const tag = (answer) => h("span", { class: `tag ${answer ?? ""}` }, answer ?? "undecided");

// What does not depend on the costs.
export function showFit(fit, part, notes, methods) {
  const population = fit.populations[part];
  fill("cards", Object.entries(population.headline).map(([name, one]) => card(name, one, fit.options.level)));
  const sentences = new Set([...notes, ...fit.notes].map((note) => note.sentence));
  fill("notes", [...sentences].map((sentence) => h("p", { class: "note" }, sentence)));
  fill("curves", rateCurves(fit.curves[part]));
  const columns = Object.fromEntries(Object.keys(population.rates[0]).map((name) => [name, methods[name] ?? name]));
  fillTable("rates", population.rates, columns, (value, name) => (name === "rate" ? value : chance(value)));
}

function card(name, { estimate, lower, upper }, level) {
  const range = lower === null ? "no interval by this method"
    : `${Math.round(100 * level)}% interval ${percent(lower)} to ${percent(upper)}`;
  return h("div", { class: "card" }, h("h2", {}, name[0].toUpperCase() + name.slice(1)), h("strong", {}, percent(estimate)),
    h("span", { class: "quiet" }, range));
}

// What follows from the costs, redrawn whenever they move.
export function showDecisions(population, costs, chosen) {
  const sums = totals(population.cells, costs);
  const all = Object.values(sums).reduce((sum, number) => sum + number, 0) || 1;
  fill("answers", Object.entries(sums).map(([answer, number]) =>
    h("span", {}, tag(answer), ` ${count(number)} (${percent(number / all)})`)));
  fill("risks", riskLines(costs, population.cells, byId("risks").clientWidth));
  showLattice(population.decisions, costs, chosen);
}

function showLattice(rows, costs, chosen) {
  const most = Math.max(...rows.map((row) => row.n));
  const byN = Map.groupBy ? Map.groupBy(rows, (row) => row.n) : grouped(rows);
  const cell = (row) => {
    const answer = decide(row.probability, costs);
    const here = row.n === chosen.n && row.s === chosen.s;
    const title = `${row.s} of ${row.n} positive: ${answer ?? "undecided"}`;
    return h("td", { class: `${answer ?? ""}${here ? " chosen" : ""}`, "data-n": row.n, "data-s": row.s, title },
      chance(row.probability), h("small", {}, SIGNS[answer] ?? "–", h("span", { class: "word" }, ` ${answer ?? ""}`)));
  };
  const head = Array.from({ length: most + 1 }, (_, s) => h("th", { scope: "col" }, s));
  fill("lattice", h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "positives"), head)),
    h("tbody", {}, [...byN].map(([n, own]) => h("tr", {}, h("th", { scope: "row" }, `of ${n}`), own.map(cell)))));
}

function grouped(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(row.n, [...(groups.get(row.n) ?? []), row]);
  return groups;
}

// Everyone by name where there are names, cell by cell where there are none.
export function showPeople(data, population, costs) {
  const byPair = new Map(population.cells.map((cell) => [`${cell.n},${cell.s}`, cell]));
  const search = byId("search").value.trim().toLowerCase();
  const only = byId("only").value;
  const shown = [];
  let found = 0;
  for (const person of people(data, population)) {
    const cell = byPair.get(`${person.n},${person.s}`);
    const answer = decide(cell?.score ?? null, costs);
    if ((only && answer !== only) || !person.name.toLowerCase().includes(search)) continue;
    found += 1;
    if (shown.length < ROWS) shown.push({ ...cell, ...person, answer });
  }
  const columns = { name: "individual", n: "n", s: "s", score: "probability", interval: "interval", answer: "answer" };
  fillTable("people", shown, columns, (value, name, row) => {
    if (name === "answer") return tag(value);
    if (name === "score") return chance(value);
    if (name === "interval") return row.lower === null ? "" : `${chance(row.lower)} to ${chance(row.upper)}`;
    return value;
  });
  const more = found > shown.length ? `; the first ${count(shown.length)} are shown, the download has them all` : "";
  byId("people-count").textContent = `${plural(found, data.individuals ? "individual" : "row")} found${more}.`;
}

function* people(data, population) {
  const named = data.individuals;
  if (!named) {
    for (const cell of population.cells) yield { name: plural(cell.weight, "individual"), n: cell.n, s: cell.s };
    return;
  }
  for (let i = 0; i < named.name.length; i += 1) {
    if (named.population && named.population[i] !== population.name) continue;
    yield { name: named.name[i], n: named.n[i], s: named.s[i] };
  }
}

export function showFindings(findings) {
  const warnings = findings.filter((one) => one.severity === "warning");
  fill("warned", warnings.length ? h("p", { class: "problem" }, warnings[0].sentence, " ", h("a", { href: "#checks-title" }, "What to do")) : []);
  fill("checks", findings.length
    ? findings.map((one) => h("p", { class: one.severity === "warning" ? "problem" : "note" }, one.sentence, " ", h("em", {}, one.advice)))
    : h("p", {}, "Nothing to report: the data identify the rates, and the model describes the counts."));
}

export function showNext(answer) {
  byId("next-words").textContent = answer.replicates
    ? `Measure ${plural(answer.replicates, "individual")} once more, then look again:` : "It pays for nobody at this cost.";
  const rows = answer.rows.filter((row) => row.measure).sort((a, b) => a.rank - b.rank);
  const columns = { measure: "individuals to measure", n: "n", s: "s", decision: "answer now", worth: "worth of a replicate" };
  fillTable("next-table", rows, columns, (value, name) => (name === "decision" ? tag(value) : name === "worth" ? chance(value) : value));
}

export function showPlan(answer) {
  byId("plan-words").textContent = answer.sentence;
  const columns = { individuals: "individuals", replicates: "replicates", tests: "tests", cost: "cost", probability: "probability of the goal", reached: "reached" };
  const there = Object.fromEntries(Object.entries(columns).filter(([name]) => answer.rows.length && name in answer.rows[0]));
  fillTable("plan-table", answer.rows, there, (value, name) => (name === "probability" ? chance(value) : typeof value === "number" ? count(value) : value));
}
