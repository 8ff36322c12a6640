// Whether the answers can be used: one light, one sentence, one button; and below what speaks against them.

import { byId, fill, h } from "./dom.js";
import { plural } from "./words.js";

const LIGHTS = { green: "✓", amber: "!", red: "×" };
const KINDS = { green: "good", amber: "read", red: "stop" };

// What a button does, by the id of an action: `act` is { choose, columns, expect }.
function button(action, names, act) {
  if (!action) return null;
  const does = {
    model: () => act.choose(asSettings(action.value)),
    method: () => act.choose({ method: action.value }),
    column: act.columns,
    prior: act.expect,
  }[action.id];
  const words = { model: `Use: ${(names[action.value] ?? action.value).toLowerCase()}`, method: `Use the method ${action.value}`, column: "Name a column", prior: "Say what I expect" }[action.id];
  return does ? h("button", { type: "button", class: "main-action", onclick: does }, words) : null;
}

// A model as settings: one of them is a switch.
export const asSettings = (model) => (model === "better-than-chance" ? { model: "common", better: true } : { model, better: false });

// `own` is the verdict on the model that is used, `comparison` on all that the data allow; either may not be there yet.
export function showVerdict(own, comparison, used, names, act) {
  const other = comparison && comparison.verdict.light !== "green" && (comparison.verdict.light === "red" || comparison.chosen !== used);
  const verdict = other ? comparison.verdict : own;
  if (!verdict) {
    fill("verdict");
    return;
  }
  const more = verdict.light === "green" ? null : button(verdict.action, names, act)
    ?? h("button", { type: "button", onclick: () => { byId("checks-title").scrollIntoView(); byId("checks-title").focus(); } }, "What I can do");
  fill("verdict", h("div", { class: `verdict ${KINDS[verdict.light]}` },
    h("span", { class: "lights", "aria-hidden": "true" }, Object.entries(LIGHTS).map(([light, sign]) => h("i", { class: light === verdict.light ? "on" : "" }, sign))),
    h("p", {}, h("b", {}, `${verdict.word}.`), " ", verdict.sentence), more));
}

export function showFindings(findings, names, act) {
  fill("checks", findings.length
    ? findings.map((one) => h("div", { class: one.severity === "warning" ? "problem" : "note" }, one.sentence, " ", h("em", {}, one.advice), " ", button(one.action, names, act)))
    : h("p", {}, "Nothing to report: the data identify the rates, and the model describes the counts."));
}

const gain = ({ difference, se }) => (Math.abs(difference) < 0.05 ? "0" : `${difference > 0 ? "+" : "−"}${Math.abs(difference).toFixed(1)} ± ${se.toFixed(1)}`);

// The models that were tried, the simplest first.
export function showCompared(comparison, used, names, act) {
  if (!comparison || comparison.models.length < 2) {
    fill("compared");
    return;
  }
  const row = (one, i) => h("tr", {}, h("td", {}, h("b", {}, names[one.model] ?? one.model)),
    h("td", {}, i ? gain(one) : ""),
    h("td", {}, i ? (one.changed ? plural(one.changed, "answer") : "none") : ""),
    h("td", {}, one.model === used ? "used" : h("button", { type: "button", onclick: () => act.choose(asSettings(one.model)) }, "Use", h("span", { class: "hidden-words" }, ` ${names[one.model] ?? one.model}`))));
  const refused = Object.entries(comparison.refused).map(([model, why]) => h("p", { class: "small quiet" }, `${names[model] ?? model}: ${why}`));
  fill("compared", h("p", { class: "small quiet" }, `Which model describes an individual best that it has not seen: a difference counts if it is above 4 and above twice its standard error. The simplest that is not refuted: ${(names[comparison.chosen] ?? "").toLowerCase()}.`),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Models compared" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Model", "Better by", "Changes", ""].map((title) => h("th", { scope: "col" }, title || h("span", { class: "hidden-words" }, "Choose"))))),
      h("tbody", {}, comparison.models.map(row)))), refused);
}
