// What the user moves: costs, expectations, method. Each value goes into the settings at once, or is marked
// with the reason why not, and the last valid one stays.

import { ask } from "./api.js";
import { byId, fill, h, mark } from "./dom.js";
import { rule } from "./decide.js";
import { USUAL } from "./settings.js";
import { percent, short } from "./words.js";

const COSTS = { falsePositive: "A false alarm", falseNegative: "A miss", inconclusive: "No clear answer" };

// Sliders of costs move by factors, from 0.01 to 100; any other cost can be typed beside them.
export function costSliders(kept, onMove) {
  for (const [name, title] of Object.entries(COSTS)) {
    const number = h("input", { id: `${name}-number`, type: "number", min: 0, step: "any", "aria-label": `${title}, exact cost`, "aria-describedby": `${name}-bad` });
    const range = h("input", { id: name, type: "range", min: -2, max: 2, step: 0.02 });
    range.addEventListener("input", (event) => {
      onMove(event);
      kept.choose({ [name]: Number((10 ** Number(range.value)).toPrecision(2)) });
    });
    number.addEventListener("input", (event) => {
      const value = Number(number.value);
      const bad = number.value === "" ? "Type a cost; until then the last one counts."
        : value > 0 && value < Infinity ? null : "A cost must be above 0; the last one counts.";
      if (!mark(number, bad)) return;
      onMove(event);
      kept.choose({ [name]: value });
    });
    byId("cost-fields").append(h("div", { class: "slider" }, h("label", { for: name }, title), number, range,
      h("p", { id: `${name}-bad`, class: "bad", role: "alert", hidden: true })));
  }
  byId("cost-fields").append(h("p", { id: "cost-words", class: "small quiet" }));
}

export function showCosts(settings) {
  for (const name of Object.keys(COSTS)) {
    const [range, number] = [byId(name), byId(`${name}-number`)];
    if (number !== document.activeElement || Number(number.value) !== settings[name]) number.value = settings[name];
    if (range !== document.activeElement) range.value = Math.log10(settings[name]);
    range.setAttribute("aria-valuetext", short(settings[name]));
    mark(number, null);
  }
  byId("costs-now").textContent = Object.keys(COSTS).map((name) => short(settings[name])).join(" · ");
  byId("cost-words").textContent = costWords(rule(settings));
}

function costWords(best) {
  if (best.allows) return `Negative below ${percent(best.lower)}, positive above ${percent(best.upper)}, inconclusive between.`;
  return `Negative below ${percent(best.lower)}, positive from there on. No clear answer costs too much to be given.`;
}

const BELIEFS = {
  prevalence: { title: "Prevalence", rate: "prevalence", low: 0.005, high: 0.95, start: [0.05, 0.2], side: "above" },
  false_negative: { title: "Sensitivity", rate: "sensitivity", low: 0.51, high: 0.999, start: [0.9, 0.75], side: "below" },
  false_positive: { title: "Specificity", rate: "specificity", low: 0.51, high: 0.999, start: [0.95, 0.85], side: "below" },
};

// "I expect 5% and would be surprised above 20%": a tick opens the sliders, and only a move is a setting.
export function beliefs(kept) {
  for (const [name, belief] of Object.entries(BELIEFS)) byId("beliefs").append(editor(name, belief, kept));
}

function editor(name, belief, kept) {
  const id = (part) => `${name}-${part}`;
  const tick = h("input", { type: "checkbox", id: id("on") });
  const slider = (part, title, value) => {
    const range = h("input", { type: "range", id: id(part), min: belief.low, max: belief.high, step: 0.005, value });
    range.addEventListener("input", () => kept.choose({ [name]: ["expect", "surprise"].map((one) => Number(byId(id(one)).value)) }));
    return h("div", { class: "slider" }, h("label", { for: id(part) }, title), h("output", { id: id(`${part}-now`), for: id(part) }, percent(value)), range);
  };
  const inside = h("div", { id: id("inside"), hidden: true }, slider("expect", "I expect", belief.start[0]),
    slider("surprise", `I would be surprised ${belief.side}`, belief.start[1]),
    h("p", { class: "small quiet", id: id("words"), role: "status" }, "Move a slider to use it."));
  tick.addEventListener("input", () => {
    inside.hidden = !tick.checked;
    if (!tick.checked) kept.choose({ [name]: null });
  });
  return h("div", { class: "belief" }, h("label", { class: "tick", for: id("on") }, tick, " ", belief.title), inside);
}

export function showBeliefs(settings) {
  for (const [name, belief] of Object.entries(BELIEFS)) {
    const id = (part) => byId(`${name}-${part}`);
    const said = settings[name];
    if (said) {
      id("on").checked = true;
      id("inside").hidden = false;
    } else if (id("on").checked && id("words").dataset.used) { // undone, or unticked
      id("on").checked = false;
      id("inside").hidden = true;
    }
    if (!said) id("words").textContent = "Move a slider to use it.";
    id("words").dataset.used = said ? "yes" : "";
    const values = said ?? belief.start;
    ["expect", "surprise"].forEach((part, i) => {
      if (name !== "prevalence") id(part).min = settings.better ? 0.005 : belief.low;
      if (id(part) !== document.activeElement) id(part).value = values[i];
      id(`${part}-now`).textContent = percent(Number(id(part).value));
    });
  }
  const used = Object.keys(BELIEFS).filter((name) => settings[name]);
  byId("expect-now").textContent = used.length ? used.map((name) => BELIEFS[name].title.toLowerCase()).join(", ") : "nothing";
}

const remembered = new Map();

// The prior that says what is expected, from the server; what cannot be said stands under its sliders.
export async function priorOf(settings, signal) {
  const prior = { better_than_chance: settings.better };
  for (const [name, belief] of Object.entries(BELIEFS)) {
    const said = settings[name];
    if (!said) continue;
    const asked = { rate: belief.rate, expect: said[0], [`surprised_${belief.side}`]: said[1], better_than_chance: settings.better };
    const key = JSON.stringify(asked);
    try {
      if (!remembered.has(key)) remembered.set(key, await ask("/api/prior", asked, signal));
    } catch (error) {
      if (error.name !== "AbortError") byId(`${name}-words`).textContent = error.message;
      throw Object.assign(error, { said: true });
    }
    const answer = remembered.get(key);
    prior[name] = answer.shapes;
    byId(`${name}-words`).textContent = beliefWords(name, answer, settings.better);
  }
  return prior;
}

function beliefWords(name, answer, better) {
  const [a, b] = answer.shapes.map(short);
  const ends = [answer.quantiles[0].value, answer.quantiles.at(-1).value].map(percent);
  const cut = better ? "cut where the two add up to 100%" : "below ½";
  return `90% between ${ends[0]} and ${ends[1]}. Beta(${a}, ${b})${name === "prevalence" ? "" : ` of the error rate, ${cut}`}.`;
}

export function choices(methods, kept) {
  fill("method", methods.map(({ id, name }) => h("option", { value: id }, name)));
  byId("method").addEventListener("change", (event) => kept.choose({ method: event.target.value }));
  byId("level").addEventListener("change", (event) => kept.choose({ level: Number(event.target.value) }));
  byId("better-than-chance").addEventListener("input", (event) => kept.choose({ better: event.target.checked }));
  byId("replicates").addEventListener("input", (event) => {
    const { value } = event.target;
    const number = value === "" ? null : Number(value);
    const good = event.target.validity.badInput === false && (number === null || (Number.isInteger(number) && number >= 1 && number <= 50));
    if (mark(event.target, good ? null : "A whole number from 1 to 50; the last one counts.")) kept.choose({ replicates: number });
  });
}

// Only where every test errs alike is there another method to choose.
export function showChoices(settings, model) {
  byId("method").disabled = model !== "common";
  byId("method").value = settings.method;
  if (byId("method").value !== settings.method) byId("method").value = USUAL.method;
  byId("level").value = String(settings.level);
  byId("better-than-chance").checked = settings.better;
  if (byId("replicates") !== document.activeElement) {
    byId("replicates").value = settings.replicates ?? "";
    mark(byId("replicates"), null);
  }
}
