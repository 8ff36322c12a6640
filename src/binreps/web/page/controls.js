// What the user moves: costs, expectations, method.

import { ask } from "./api.js";
import { byId, fill, h, tell } from "./dom.js";
import { percent, short } from "./words.js";

const COSTS = {
  falsePositive: ["A wrong positive", 1],
  falseNegative: ["A wrong negative", 1],
  inconclusive: ["An inconclusive answer", 0.25],
};

// Sliders of costs move by factors, from 0.01 to 100; any other cost can be typed beside them.
export function costSliders(onMove) {
  const costs = {};
  for (const [name, [title, usual]] of Object.entries(COSTS)) {
    costs[name] = usual;
    const number = h("input", { id: `${name}-number`, type: "number", min: 0, step: "any", value: usual, "aria-label": `${title}, exact cost` });
    const range = h("input", { id: name, type: "range", min: -2, max: 2, step: 0.02, value: Math.log10(usual) });
    const spoken = () => range.setAttribute("aria-valuetext", short(costs[name]));
    range.addEventListener("input", (event) => {
      costs[name] = Number((10 ** Number(range.value)).toPrecision(2));
      number.value = costs[name];
      spoken();
      onMove(event);
    });
    number.addEventListener("input", (event) => {
      const value = Number(number.value);
      if (!(value > 0 && value < Infinity)) return;
      costs[name] = value;
      range.value = Math.log10(value);
      spoken();
      onMove(event);
    });
    spoken();
    byId("costs").append(h("div", { class: "slider" }, h("label", { for: name }, title), number, range));
  }
  return costs;
}

const BELIEFS = {
  prevalence: { title: "Prevalence", rate: "prevalence", low: 0.005, high: 0.95, expect: 0.05, surprise: 0.2, side: "above" },
  false_negative: { title: "Sensitivity", rate: "sensitivity", low: 0.51, high: 0.999, expect: 0.9, surprise: 0.75, side: "below" },
  false_positive: { title: "Specificity", rate: "specificity", low: 0.51, high: 0.999, expect: 0.95, surprise: 0.85, side: "below" },
};

// "I expect 5% and would be surprised above 20%" as Beta shapes; a rate without an expectation has none.
export function beliefs(onPrior) {
  const prior = {};
  const editors = Object.entries(BELIEFS).map(([name, belief]) => editor(name, belief, prior, onPrior));
  byId("prior").append(...editors.map(({ box }) => box));
  byId("better-than-chance").addEventListener("input", (event) => {
    prior.better_than_chance = event.target.checked;
    for (const { widen } of editors) widen(event.target.checked);
    onPrior();
  });
  return prior;
}

function editor(name, belief, prior, onPrior) {
  const id = (part) => `${name}-${part}`;
  const tick = h("input", { type: "checkbox", id: id("on") });
  const words = h("p", { class: "quiet", id: id("words"), role: "status" });
  const slider = (part, title, value) => {
    const output = h("output", { for: id(part) }, percent(value));
    const range = h("input", { type: "range", id: id(part), min: belief.low, max: belief.high, step: 0.005, value });
    return { range, output, row: h("div", { class: "slider" }, h("label", { for: id(part) }, title), output, range) };
  };
  const expect = slider("expect", "I expect", belief.expect);
  const surprise = slider("surprise", `I would be surprised ${belief.side}`, belief.surprise);
  const inside = h("div", { hidden: true }, expect.row, surprise.row, words);
  let asked = 0;

  async function update() {
    inside.hidden = !tick.checked;
    const mine = ++asked;
    if (!tick.checked) {
      delete prior[name];
      onPrior();
      return;
    }
    const values = [expect, surprise].map(({ range }) => Number(range.value));
    [expect, surprise].forEach(({ output }, i) => { output.textContent = percent(values[i]); });
    try {
      const answer = await ask("/api/prior", {
        rate: belief.rate, expect: values[0], [`surprised_${belief.side}`]: values[1], better_than_chance: Boolean(prior.better_than_chance),
      });
      if (mine !== asked) return;
      prior[name] = answer.shapes;
      const [a, b] = answer.shapes.map(short);
      const ends = [answer.quantiles[0].value, answer.quantiles.at(-1).value].map(percent);
      const cut = prior.better_than_chance ? "cut where the two add up to 100%" : "below ½";
      words.textContent = `90% between ${ends[0]} and ${ends[1]}. Beta(${a}, ${b})${name === "prevalence" ? "" : ` of the error rate, ${cut}`}.`;
      onPrior();
    } catch (error) {
      if (mine === asked) words.textContent = error.message;
    }
  }

  // Sensitivity and specificity start at ½, and at 0 where error rates need only be better than chance.
  function widen(better) {
    if (name === "prevalence") return;
    for (const { range } of [expect, surprise]) range.min = better ? 0.005 : belief.low;
    if (tick.checked) update();
  }

  for (const each of [tick, expect.range, surprise.range]) each.addEventListener("input", update);
  return { widen, box: h("div", { class: "belief" }, h("label", { for: id("on") }, tick, " ", belief.title), inside) };
}

export function choices(methods, onChange) {
  fill("method", methods.map(({ id, name }) => h("option", { value: id }, name)));
  for (const id of ["method", "level", "replicates"]) byId(id).addEventListener("change", onChange);
  return () => {
    const replicates = byId("replicates").value;
    return {
      method: byId("method").value,
      level: Number(byId("level").value),
      replicates: replicates ? Number(replicates) : null,
    };
  };
}

export function fail(error) {
  tell("wrong", error?.message ?? null);
}
