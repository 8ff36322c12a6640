// What a fit looks like: headline numbers, rates, findings. Nothing is computed here.

import { rateCurves, riskLines } from "./draw.js";
import { byId, fill, fillTable, h, shares, styled } from "./dom.js";
import { SIGNS, count, percent, plural } from "./words.js";

// What does not depend on the costs.
export function showFit(fit, part, notes, methods) {
  const population = fit.populations[part];
  fill("cards", Object.entries(population.headline).map(([name, one]) => number(name, one, fit.options.level)));
  const used = fit.populations[part].sources ? "source-not-used" : "covariates-not-used";
  const kept = [...notes.filter(({ id }) => id !== used || !(population.sources ?? population.odds_ratios)), ...fit.notes];
  const sentences = new Set(kept.map((note) => note.sentence));
  fill("notes", sentences.size ? h("details", { class: "card" }, h("summary", {}, plural(sentences.size, "note")),
    [...sentences].map((sentence) => h("p", { class: "note" }, sentence))) : null);
  fill("curves", rateCurves(fit.curves[part] ?? {}));
  const columns = Object.fromEntries(Object.keys(population.rates[0] ?? {}).map((name) => [name, methods[name] ?? name]));
  fillTable("rates", population.rates, columns, (value, name) => (name === "rate" ? value : percent(value)));
}

function number(name, { estimate, lower, upper }, level) {
  const open = typeof lower !== "number";
  const bar = open ? null : h("div", { class: "range", "aria-hidden": "true" },
    styled(h("i"), { left: `${100 * lower}%`, right: `${100 * (1 - upper)}%` }), styled(h("b"), { left: `${100 * estimate}%` }));
  return h("div", { class: "number" }, h("h2", { class: "eyebrow" }, name[0].toUpperCase() + name.slice(1)), h("strong", { class: "dims" }, percent(estimate)), bar,
    h("span", { class: "small quiet" }, open ? "no interval by this method" : `${percent(lower)} to ${percent(upper)}`),
    open ? null : h("span", { class: "hidden-words" }, `, interval of ${Math.round(100 * level)}%`));
}

// How many get which answer.
export function showAnswers(sums) {
  const all = Object.values(sums).reduce((sum, one) => sum + one, 0);
  byId("answers-title").textContent = `Answers for ${plural(all, "individual")}`;
  fill("shares", shares(sums, true));
  fill("answers", Object.entries(sums).map(([answer, one]) => h("span", { "data-answer": answer }, `${SIGNS[answer] ?? "–"} ${answer} `, h("b", {}, count(one)))));
  fill("dock-answers", Object.entries(sums).map(([answer, one]) => h("span", { class: `pill ${answer}`, "aria-hidden": "true" }, h("i", {}, SIGNS[answer] ?? "–"), count(one))));
}

export function showRisks(best, cells) {
  if (!byId("more-rates").open) return;
  const once = [...new Map(cells.map((cell) => [cell.score, cell])).values()];
  fill("risks", riskLines(best, once, byId("risks").clientWidth));
}
